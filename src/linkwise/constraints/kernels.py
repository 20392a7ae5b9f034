"""Compiled searches on graphs in compressed row form (`indptr`, `indices`).

They are handed valid arrays and check nothing. Their slow twins are in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    Ints = NDArray[np.intp]

__all__ = ["core_numbers", "greedy_clique", "shortest_chains"]


@njit(cache=True)
def shortest_chains(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Ints,
    indices: Ints,
    class_of: Ints,
    class_indptr: Ints,
    class_members: Ints,
    starts: Ints,
    ends: Ints,
) -> tuple[Ints, Ints]:
    """Find a shortest chain from each start to its end.

    The vertices are ``0 .. n - 1``. All members of a class are one step apart without
    having edges: class `c` is the virtual vertex ``n + c``. A start or an end may be a
    virtual vertex; the chain then begins or ends at the class member that is best.

    Returns
    -------
    chain_indptr, chain : ndarray
        Chain `q` is ``chain[chain_indptr[q]:chain_indptr[q + 1]]``. A virtual vertex
        between two vertices says that this step is made within a class. A chain is
        empty when there is none.
    """
    n = indptr.size - 1
    n_classes = class_indptr.size - 1
    # Row 0 is the search from the start, row 1 the search from the end.
    parent = np.full((2, n + n_classes), -1, np.intp)
    queue = np.empty((2, n), np.intp)
    seen = np.empty((2, n_classes), np.intp)
    chain_indptr = np.zeros(starts.size + 1, np.intp)
    chain = np.empty(max(16, 8 * starts.size), np.intp)
    for q in range(starts.size):
        found, n_queued, n_seen = _search_from_both_ends(
            indptr,
            indices,
            class_of,
            class_indptr,
            class_members,
            starts[q],
            ends[q],
            parent,
            queue,
            seen,
        )
        position = chain_indptr[q]
        if found >= 0:
            length = _chain_length(found, n, parent)
            while position + length > chain.size:
                chain = np.concatenate((chain, np.empty_like(chain)))
            _write_chain(found, n, parent, chain[position : position + length])
            position += length
        chain_indptr[q + 1] = position
        # Clearing only what was touched keeps a short chain cheap in a large graph.
        for side in range(2):
            parent[side, queue[side, : n_queued[side]]] = -1
            for c in seen[side, : n_seen[side]]:
                parent[side, n + c] = -1
    return chain_indptr, chain[: chain_indptr[-1]]


@njit(cache=True)
def _search_from_both_ends(  # noqa: PLR0912, PLR0913, PLR0915, PLR0917 - one search, one place
    indptr: Ints,
    indices: Ints,
    class_of: Ints,
    class_indptr: Ints,
    class_members: Ints,
    start: int,
    end: int,
    parent: Ints,
    queue: Ints,
    seen: Ints,
) -> Any:
    """Breadth-first search from both ends; returns the vertex where they meet, or -1.

    A step within a class is charged on entering the virtual vertex in the direction of
    the chain, so the search from the end notes the class of a vertex at the vertex's own
    level and the search from the start one level later. With that, each side knows all
    vertices within `level` steps, the sides have not met, and so the first meeting is on
    a shortest chain.
    """
    n = indptr.size - 1
    head = np.zeros(2, np.intp)
    tail = np.zeros(2, np.intp)
    n_seen = np.zeros(2, np.intp)
    n_opened = np.zeros(2, np.intp)  # classes whose members have been queued
    work = np.zeros(2, np.intp)  # estimated cost of the next level of each side
    for side in range(2):
        root = start if side == 0 else end
        parent[side, root] = root
        if root < n:
            queue[side, 0] = root
            tail[side] = 1
        else:
            seen[side, 0] = root - n
            n_seen[side] = n_opened[side] = 1
            for t in class_members[class_indptr[root - n] : class_indptr[root - n + 1]]:
                parent[side, t] = root
                queue[side, tail[side]] = t
                tail[side] += 1
    c = class_of[end] if end < n else -1
    if c >= 0:
        parent[1, n + c] = end
        seen[1, 0] = c
        n_seen[1] = 1

    while tail[0] > head[0] or tail[1] > head[1]:
        side = 0 if work[0] <= work[1] else 1
        if tail[side] == head[side]:
            side = 1 - side
        other = 1 - side
        level_end = tail[side]
        if side == 0:
            for s in queue[0, head[0] : level_end]:
                c = class_of[s]
                if c >= 0 and parent[0, n + c] < 0:
                    parent[0, n + c] = s
                    seen[0, n_seen[0]] = c
                    n_seen[0] += 1
                    if parent[1, n + c] >= 0:
                        return n + c, tail, n_seen
        for s in queue[side, head[side] : level_end]:
            for t in indices[indptr[s] : indptr[s + 1]]:
                if parent[side, t] < 0:
                    parent[side, t] = s
                    queue[side, tail[side]] = t
                    tail[side] += 1
                    if parent[other, t] >= 0:
                        return t, tail, n_seen
        for k in range(n_opened[side], n_seen[side]):
            c = seen[side, k]
            for t in class_members[class_indptr[c] : class_indptr[c + 1]]:
                if parent[side, t] < 0:
                    parent[side, t] = n + c
                    queue[side, tail[side]] = t
                    tail[side] += 1
                    if parent[other, t] >= 0:
                        return t, tail, n_seen
        n_opened[side] = n_seen[side]
        head[side] = level_end
        work[side] = 0
        for s in queue[side, level_end : tail[side]]:
            work[side] += 1 + indptr[s + 1] - indptr[s]
            c = class_of[s]
            if c >= 0 and parent[side, n + c] < 0:
                work[side] += class_indptr[c + 1] - class_indptr[c]
                if side == 1:
                    parent[1, n + c] = s
                    seen[1, n_seen[1]] = c
                    n_seen[1] += 1
                    if parent[0, n + c] >= 0:
                        return n + c, tail, n_seen
    return -1, tail, n_seen


@njit(cache=True)
def _chain_length(meeting: int, n: int, parent: Ints) -> int:
    """Count the vertices of a chain, without virtual vertices at its ends."""
    length = 1
    for side in range(2):
        v = meeting
        while parent[side, v] != v:
            v = parent[side, v]
            length += 1
        if v >= n:
            length -= 1
    return length


@njit(cache=True)
def _write_chain(meeting: int, n: int, parent: Ints, chain: Ints) -> None:
    """Write a chain from its start to its end."""
    k = 0
    v = meeting
    while True:
        chain[k] = v
        k += 1
        p = parent[0, v]
        if p == v or (p >= n and parent[0, p] == p):
            break
        v = p
    chain[:k] = chain[:k][::-1].copy()
    v = meeting
    while True:
        p = parent[1, v]
        if p == v or (p >= n and parent[1, p] == p):
            break
        chain[k] = p
        k += 1
        v = p


@njit(cache=True)
def core_numbers(indptr: Ints, indices: Ints) -> tuple[Ints, Ints]:
    """Peel a graph by smallest degree (Batagelj and Zaversnik, 2003), in linear time.

    Returns
    -------
    core : ndarray
        The largest `k` such that the vertex is in a subgraph of minimum degree `k`.
    order : ndarray
        The vertices in the order of peeling (a degeneracy order).
    """
    n = indptr.size - 1
    core = indptr[1:] - indptr[:-1]
    bin_start = np.zeros(n + 2, np.intp)
    for v in range(n):
        bin_start[core[v] + 1] += 1
    bin_start = np.cumsum(bin_start)
    order = np.empty(n, np.intp)
    place = np.empty(n, np.intp)
    fill = bin_start.copy()
    for v in range(n):
        place[v] = fill[core[v]]
        order[place[v]] = v
        fill[core[v]] += 1
    for position in range(n):
        v = order[position]
        for u in indices[indptr[v] : indptr[v + 1]]:
            if core[u] > core[v]:
                # Swap u to the front of its bin, then move the bin's border past it.
                front = bin_start[core[u]]
                w = order[front]
                order[front], order[place[u]] = u, w
                place[w], place[u] = place[u], front
                bin_start[core[u]] = front + 1
                core[u] -= 1
    return core, order


@njit(cache=True)
def greedy_clique(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Ints, indices: Ints, core: Ints, order: Ints, size: int, budget: int
) -> Ints:
    """Look for a clique of a given size, greedily from many seeds.

    A member of such a clique has a core number of at least ``size - 1``. From each seed,
    in reverse degeneracy order, the next member is the candidate with most neighbours
    among the candidates. Stops after about `budget` steps.

    Returns
    -------
    ndarray
        The clique, or an empty array when none was found (there may still be one).
    """
    n = indptr.size - 1
    clique = np.empty(size, np.intp)
    candidate = np.zeros(n, np.bool_)
    members = np.empty(n, np.intp)
    for seed in order[::-1]:
        if core[seed] < size - 1 or budget <= 0:
            break
        n_members = 0
        for u in indices[indptr[seed] : indptr[seed + 1]]:
            if core[u] >= size - 1:
                candidate[u] = True
                members[n_members] = u
                n_members += 1
        clique[0] = seed
        n_clique = 1
        while n_clique < size and n_clique + n_members >= size:
            best, best_count = -1, -1
            for u in members[:n_members]:
                count = 0
                for w in indices[indptr[u] : indptr[u + 1]]:
                    count += candidate[w]
                budget -= indptr[u + 1] - indptr[u]
                if count > best_count:
                    best, best_count = u, count
            clique[n_clique] = best
            n_clique += 1
            # Keep the candidates that are neighbours of the new member.
            old = members[:n_members].copy()
            n_members = 0
            for w in indices[indptr[best] : indptr[best + 1]]:
                if candidate[w]:
                    members[n_members] = w
                    n_members += 1
            candidate[old] = False
            candidate[members[:n_members]] = True
        candidate[members[:n_members]] = False
        if n_clique == size:
            return clique
    return clique[:0]
