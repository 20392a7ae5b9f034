"""Compiled searches on graphs in compressed row form (`indptr`, `indices`).

They are handed valid arrays and check nothing. Their slow twins are in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise._jit import njit

if TYPE_CHECKING:
    from typing import Any

    from linkwise._types import Ints


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
