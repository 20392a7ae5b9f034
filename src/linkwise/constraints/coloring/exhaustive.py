"""Compiled searches for subgraphs that a number of colours cannot colour.

Graphs are in compressed row form (`indptr`, `indices`). The kernels are handed valid arrays and
check nothing. Their slow twins are in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise._jit import njit

if TYPE_CHECKING:
    from linkwise._types import Int32s, Int64s

COLORED, IMPOSSIBLE, UNDECIDED = 1, 0, -1


# Odd rings ---------------------------------------------------------------------------------


@njit(cache=True)
def _ring_through(u: int, w: int, parent: Int32s) -> Int32s:
    """Return the ring of an edge between equally deep vertices and their paths to the root."""
    length = 1
    a, b = u, w
    while a != b:
        a, b = parent[a], parent[b]
        length += 2
    ring = np.empty(length, np.int32)
    a, b = u, w
    i = 0
    while a != b:
        ring[i] = a
        ring[length - 1 - i] = b
        a, b = parent[a], parent[b]
        i += 1
    ring[i] = a
    return ring


@njit(cache=True)
def _ring_from(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s, indices: Int32s, source: int, max_depth: int, buffers: Int32s
) -> tuple[Int32s, int]:
    """Search breadth first for an edge within a level; returns its ring and what was queued.

    The ring is empty if there is none up to `max_depth`. The caller clears the depths.
    """
    parent, depth, queue = buffers[0], buffers[1], buffers[2]
    depth[source] = 0
    parent[source] = source
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        v = queue[head]
        head += 1
        if depth[v] > max_depth:
            break
        for u in indices[indptr[v] : indptr[v + 1]]:
            if depth[u] < 0:
                depth[u] = depth[v] + 1
                parent[u] = v
                queue[tail] = u
                tail += 1
            elif depth[u] == depth[v]:
                return _ring_through(v, u, parent), tail
    return queue[:0].copy(), tail


@njit(cache=True)
def odd_ring(indptr: Int64s, indices: Int32s, members: Int32s, n_sources: int) -> Int32s:
    """Return a short odd ring; empty if there is none: that is exact.

    Searches from the `members`, which hold every vertex that may be on a ring. The ring is a
    shortest one if there are at most `n_sources` of them.
    """
    n = indptr.size - 1
    buffers = np.full((3, n), -1, np.int32)  # parent, depth, and the queue
    depth, queue = buffers[1], buffers[2]
    best = queue[:0].copy()
    for v in members:
        if depth[v] < 0 and best.size == 0:
            best, _ = _ring_from(indptr, indices, v, n, buffers)
            # What was searched without success stays marked: it needs no second search.
    depth[:] = -1
    if best.size <= 3:
        return best
    stride = 1 + (members.size - 1) // n_sources
    for i in range(0, members.size, stride):
        max_depth = (best.size - 3) // 2  # deeper rings are no shorter
        ring, n_queued = _ring_from(indptr, indices, members[i], max_depth, buffers)
        for v in queue[:n_queued]:
            depth[v] = -1
        if ring.size and ring.size < best.size:
            best = ring
    return best


# Cliques -----------------------------------------------------------------------------------


@njit(cache=True)
def greedy_clique(indptr: Int64s, indices: Int32s, size: int, max_work: int) -> Int32s:
    """Return `size` pairwise adjacent vertices, or the largest clique that was found.

    Grows a clique from every vertex, by falling degree: the next member is the candidate with
    the most neighbours among the candidates. Stops after about `max_work` edges.
    """
    n = indptr.size - 1
    level = np.zeros(n, np.int32)  # how many members of the clique a vertex is adjacent to
    candidates = np.empty(n, np.int32)
    clique = np.empty(n, np.int32)
    best = clique[:0].copy()
    work = 0
    for start in np.argsort(indptr[:-1] - indptr[1:], kind="mergesort"):
        n_members, n_candidates, chosen = 0, 0, start
        while chosen >= 0:
            clique[n_members] = chosen
            n_members += 1
            n_candidates = 0
            for u in indices[indptr[chosen] : indptr[chosen + 1]]:
                if level[u] == n_members - 1:
                    level[u] = n_members
                    candidates[n_candidates] = u
                    n_candidates += 1
            chosen, most = -1, -1
            for v in candidates[:n_candidates]:
                if n_members + n_candidates <= best.size:
                    break  # it cannot become the largest
                count = 0
                for u in indices[indptr[v] : indptr[v + 1]]:
                    count += level[u] == n_members
                work += indptr[v + 1] - indptr[v]
                if count > most:
                    chosen, most = v, count
        for u in indices[indptr[start] : indptr[start + 1]]:
            level[u] = 0
        if n_members > best.size:
            best = clique[:n_members].copy()
        if best.size >= size or work > max_work:
            break
    return best[:size]


# Exhaustive search -------------------------------------------------------------------------


@njit(cache=True)
def _most_constrained(colors: Int32s, saturation: Int32s, weight: Int64s, degree: Int64s) -> int:
    """Return the uncoloured vertex with fewest colours left, then with most failures."""
    best = -1
    for v in range(colors.size):
        if colors[v] >= 0:
            continue
        if best < 0 or (saturation[v], weight[v], degree[v]) > (
            saturation[best],
            weight[best],
            degree[best],
        ):
            best = v
    return best


@njit(cache=True)
def _give(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    v: int,
    c: int,
    colors: Int32s,
    n_same: Int32s,
    saturation: Int32s,
    weight: Int64s,
) -> bool:
    """Colour a vertex; returns whether every uncoloured neighbour has a colour left."""
    colors[v] = c
    fine = True
    for u in indices[indptr[v] : indptr[v + 1]]:
        n_same[u, c] += 1
        if n_same[u, c] == 1:
            saturation[u] += 1
            if saturation[u] == n_same.shape[1] and colors[u] < 0:
                weight[u] += 1
                fine = False
    return fine


@njit(cache=True)
def _take_back(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    v: int,
    colors: Int32s,
    n_same: Int32s,
    saturation: Int32s,
) -> int:
    """Undo `_give`; returns the colour."""
    c = colors[v]
    colors[v] = -1
    for u in indices[indptr[v] : indptr[v + 1]]:
        n_same[u, c] -= 1
        if n_same[u, c] == 0:
            saturation[u] -= 1
    return c


@njit(cache=True)
def exact_coloring(
    indptr: Int64s, indices: Int32s, n_colors: int, max_nodes: int
) -> tuple[int, int, Int32s]:
    """Colour a graph by exhaustive search (DSATUR with backtracking).

    Colours that are not in use yet are equal, so only the first of them is tried.

    Returns
    -------
    status : int
        1 if it was coloured, 0 if that is impossible, -1 if `max_nodes` did not decide it.
    n_nodes : int
        Colours given on the way.
    colors : ndarray of int32
        The colouring, if there is one.
    """
    n = indptr.size - 1
    colors = np.full(n, -1, np.int32)
    n_same = np.zeros((n, n_colors), np.int32)
    saturation = np.zeros(n, np.int32)
    weight = np.zeros(n, np.int64)
    degree = indptr[1:] - indptr[:-1]
    trail = np.empty(n + 1, np.int32)
    used = np.zeros(n + 1, np.int32)  # colours in use before each vertex of the trail
    next_color = np.zeros(n + 1, np.int32)
    length, n_nodes = 0, 0
    if n == 0:
        return COLORED, 0, colors
    trail[0] = _most_constrained(colors, saturation, weight, degree)
    while True:
        v = trail[length]
        c = next_color[length]
        while c < n_colors and n_same[v, c] > 0:
            c += 1
        if c >= min(n_colors, used[length] + 1):
            if length == 0:
                return IMPOSSIBLE, n_nodes, colors
            length -= 1
            _take_back(indptr, indices, trail[length], colors, n_same, saturation)
            continue
        next_color[length] = c + 1
        n_nodes += 1
        if n_nodes > max_nodes:
            return UNDECIDED, n_nodes, colors
        if not _give(indptr, indices, v, c, colors, n_same, saturation, weight):
            _take_back(indptr, indices, v, colors, n_same, saturation)
            continue
        length += 1
        if length == n:
            return COLORED, n_nodes, colors
        used[length] = max(used[length - 1], c + 1)
        next_color[length] = 0
        trail[length] = _most_constrained(colors, saturation, weight, degree)
