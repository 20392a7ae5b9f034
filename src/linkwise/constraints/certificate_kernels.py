"""Compiled searches for subgraphs that a number of colours cannot colour.

Graphs are in compressed row form (`indptr`, `indices`). The kernels are handed valid arrays and
check nothing. Their slow twins are in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from linkwise._types import Bools, Int32s, Int64s


__all__ = ["exact_coloring", "local_obstruction", "odd_ring", "wheel"]

COLORED, IMPOSSIBLE, UNDECIDED = 1, 0, -1


# Odd rings ---------------------------------------------------------------------------------


@njit(cache=True)
def _ring_through(u: int, w: int, parent: Int32s, depth: Int32s) -> Int32s:
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
    indptr: Int64s,
    indices: Int32s,
    inside: Int32s,
    level: int,
    source: int,
    max_depth: int,
    buffers: Int32s,
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
            if inside[u] < level:
                continue
            if depth[u] < 0:
                depth[u] = depth[v] + 1
                parent[u] = v
                queue[tail] = u
                tail += 1
            elif depth[u] == depth[v]:
                return _ring_through(v, u, parent, depth), tail
    return queue[:0].copy(), tail


@njit(cache=True)
def odd_ring(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    inside: Int32s,
    level: int,
    members: Int32s,
    n_sources: int,
    buffers: Int32s,
) -> Int32s:
    """Return a short odd ring among the `members`, the vertices with ``inside >= level``.

    Empty if there is none: that is exact. The ring is a shortest one if there are at most
    `n_sources` members. The rows of `buffers` are the parent and the depth of each vertex in a
    search, and its queue; the depths are -1 before and after.
    """
    depth, queue = buffers[1], buffers[2]
    best = queue[:0].copy()
    n = indptr.size
    for i in range(members.size):
        if depth[members[i]] < 0 and best.size == 0:
            best, n_queued = _ring_from(indptr, indices, inside, level, members[i], n, buffers)
            # What was searched without success stays marked: it needs no second search.
    for v in members:
        depth[v] = -1
    if best.size <= 3:
        return best
    stride = 1 + (members.size - 1) // n_sources
    for i in range(0, members.size, stride):
        max_depth = (best.size - 3) // 2  # deeper rings are no shorter
        ring, n_queued = _ring_from(indptr, indices, inside, level, members[i], max_depth, buffers)
        for v in queue[:n_queued]:
            depth[v] = -1
        if ring.size and ring.size < best.size:
            best = ring
    return best


# Wheels ------------------------------------------------------------------------------------


@njit(cache=True)
def _enter(  # noqa: PLR0912, PLR0913, PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    inside: Int32s,
    level: int,
    hub: int,
    min_degree: int,
    degree: Int32s,
    stack: Int32s,
    start: int,
) -> tuple[int, int]:
    """Narrow the set of a level to the neighbours of a hub, less those of too low degree.

    Writes the members, by falling degree, to `stack` from `start`. Returns where they end and
    the number of edges looked at.
    """
    tail = start
    for u in indices[indptr[hub] : indptr[hub + 1]]:
        if inside[u] == level - 1:
            inside[u] = level
            stack[tail] = u
            tail += 1
    work = tail - start
    if tail - start <= min_degree:
        for u in stack[start:tail]:
            inside[u] = level - 1
        return start, work
    for u in stack[start:tail]:
        count = 0
        for w in indices[indptr[u] : indptr[u + 1]]:
            count += inside[w] == level
        degree[u] = count
        work += indptr[u + 1] - indptr[u]
    members = stack[start:tail].copy()
    for seed in members:
        if inside[seed] != level or degree[seed] >= min_degree:
            continue
        # The part of the stack being rewritten serves as the queue of vertices to take out.
        inside[seed] = level - 1
        stack[start] = seed
        head, end = start, start + 1
        while head < end:
            u = stack[head]
            head += 1
            for w in indices[indptr[u] : indptr[u + 1]]:
                if inside[w] == level:
                    degree[w] -= 1
                    if degree[w] < min_degree:
                        inside[w] = level - 1
                        stack[end] = w
                        end += 1
    end = start
    kept = members[inside[members] == level]
    for u in kept[np.argsort(-degree[kept], kind="mergesort")]:
        stack[end] = u
        end += 1
    return end, work


@njit(cache=True)
def _search_hubs(  # noqa: PLR0913, PLR0917 - one search, one place
    indptr: Int64s,
    indices: Int32s,
    n_colors: int,
    root: int,
    max_calls: int,
    inside: Int32s,
    spent: Int32s,
    degree: Int32s,
    stack: Int32s,
    buffers: Int32s,
) -> tuple[Int32s, Int32s, int, int]:
    """Look for a wheel with a given first hub.

    Returns the hubs, the ring (empty: none), the calls and the edges looked at. More calls
    than `max_calls` mean that the search was cut off.
    """
    depth_max = n_colors - 2
    hubs = np.empty(depth_max, np.int32)
    starts = np.zeros(depth_max + 2, np.int64)
    ends = np.zeros(depth_max + 2, np.int64)
    next_ = np.zeros(depth_max + 2, np.int64)
    ring = stack[:0].copy()
    calls, work = 0, 0
    level = 1
    hubs[0] = root
    entering = True
    while level > 0:
        if entering:
            calls += 1
            hub, n_left, start = hubs[level - 1], n_colors - level, starts[level]
            ends[level], edges = _enter(
                indptr, indices, inside, level, hub, n_left, degree, stack, start
            )
            work += edges
            next_[level] = starts[level]
            members = stack[starts[level] : ends[level]]
            if level == depth_max and members.size:
                ring = odd_ring(indptr, indices, inside, level, members, 50, buffers)
        members = stack[starts[level] : ends[level]]
        while next_[level] < ends[level] and spent[stack[next_[level]]] <= level:
            next_[level] += 1
        stop = ring.size > 0 or calls > max_calls
        if not stop and level < depth_max and next_[level] < ends[level]:
            hubs[level] = stack[next_[level]]
            starts[level + 1] = ends[level]
            level += 1
            entering = True
            continue
        # Done with this level. Its hub was tried with everything beside the same hubs: it need
        # not be tried again until one of those changes.
        for u in members:
            inside[u] = level - 1
            if spent[u] == level:
                spent[u] = n_colors
        level -= 1
        entering = False
        if level > 0:
            spent[hubs[level]] = level
    if ring.size == 0:
        hubs = hubs[:0]
    return hubs, ring, calls, work


@njit(cache=True)
def wheel(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s, indices: Int32s, n_colors: int, max_calls: int, max_work: int
) -> tuple[Int32s, Int32s]:
    """Look for ``n_colors - 2`` pairwise adjacent hubs, all adjacent to each of an odd ring.

    Such a wheel needs ``n_colors + 1`` colours; with a ring of three it is a clique. Int32s
    are tried as hubs by falling degree, each briefly at first and then at length. For three
    colours the ring is the shortest that was found. Needs at least three colours.

    Returns
    -------
    hubs, ring : ndarray of int32
        Empty if no wheel was found within `max_calls` narrowings and about `max_work` edges.
    """
    n = indptr.size - 1
    degree = (indptr[1:] - indptr[:-1]).astype(np.int32)
    order = np.argsort(-degree, kind="mergesort")
    inside = np.zeros(n, np.int32)
    spent = np.full(n, n_colors, np.int32)  # the level at which a hub was tried in full
    done = np.zeros(n, np.bool_)
    stack = np.empty((n_colors - 1) * max(1, degree.max()) + 1, np.int32)
    buffers = np.full((3, n), -1, np.int32)
    best_hubs, best_ring = stack[:0].copy(), stack[:0].copy()
    calls, work = 0, 0
    for brief in (True, False):
        for root in order:
            if calls >= max_calls or work >= max_work:
                break
            if done[root]:
                continue
            limit = 4 * n_colors + 20 if brief else max_calls - calls
            hubs, ring, more_calls, more_work = _search_hubs(
                indptr, indices, n_colors, root, limit, inside, spent, degree, stack, buffers
            )
            calls += more_calls
            work += more_work
            # A hub that was searched in full need not be tried again beside other hubs.
            done[root] = more_calls <= limit
            if done[root]:
                spent[root] = 0
            if ring.size and (best_ring.size == 0 or ring.size < best_ring.size):
                best_hubs, best_ring = hubs, ring
            if best_ring.size and (n_colors > 3 or best_ring.size == 3):
                return best_hubs, best_ring
    return best_hubs, best_ring


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


# Neighbourhoods ----------------------------------------------------------------------------


@njit(cache=True)
def _ball(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    center: int,
    max_size: int,
    inside: Bools,
    members: Int32s,
) -> tuple[int, int]:
    """Collect the vertices within two steps; returns their number, and the edges looked at."""
    inside[center] = True
    members[0] = center
    head, tail, work = 0, 1, 0
    level_end = 1
    for _ in range(2):
        while head < level_end:
            v = members[head]
            head += 1
            work += indptr[v + 1] - indptr[v]
            for u in indices[indptr[v] : indptr[v + 1]]:
                if not inside[u] and tail < max_size:
                    inside[u] = True
                    members[tail] = u
                    tail += 1
        level_end = tail
    return tail, work


@njit(cache=True)
def _core_within(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    members: Int32s,
    min_degree: int,
    inside: Bools,
    degree: Int32s,
) -> int:
    """Take out members of too few neighbours inside, again and again; returns the edges seen."""
    work = 0
    for v in members:
        count = 0
        for u in indices[indptr[v] : indptr[v + 1]]:
            count += inside[u]
        degree[v] = count
        work += indptr[v + 1] - indptr[v]
    queue = np.empty(members.size, np.int32)
    tail = 0
    for v in members:
        if degree[v] < min_degree:
            inside[v] = False
            queue[tail] = v
            tail += 1
    head = 0
    while head < tail:
        v = queue[head]
        head += 1
        for u in indices[indptr[v] : indptr[v + 1]]:
            if inside[u]:
                degree[u] -= 1
                if degree[u] < min_degree:
                    inside[u] = False
                    queue[tail] = u
                    tail += 1
    return work


@njit(cache=True)
def local_obstruction(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    n_colors: int,
    order: Int64s,
    max_size: int,
    max_nodes: int,
    max_work: int,
) -> Int32s:
    """Return vertices within two steps of one vertex that cannot be coloured; empty if unseen.

    Goes through the vertices in the given order. In a sparse graph most neighbourhoods are
    nearly trees and have no core: they cost a few steps.
    """
    n = indptr.size - 1
    inside = np.zeros(n, np.bool_)
    degree = np.empty(n, np.int32)
    place = np.empty(n, np.int32)
    members = np.empty(max_size, np.int32)
    work = 0
    for center in order:
        if work > max_work:
            break
        size, edges = _ball(indptr, indices, center, max_size, inside, members)
        ball = members[:size]
        work += edges + _core_within(indptr, indices, ball, n_colors, inside, degree)
        core = ball[inside[ball]]
        if core.size > n_colors:
            part_indptr = np.zeros(core.size + 1, np.int64)
            for i in range(core.size):
                place[core[i]] = i
                part_indptr[i + 1] = part_indptr[i] + degree[core[i]]
            part = np.empty(part_indptr[-1], np.int32)
            position = 0
            for v in core:
                for u in indices[indptr[v] : indptr[v + 1]]:
                    if inside[u]:
                        part[position] = place[u]
                        position += 1
            status, n_nodes, _ = exact_coloring(part_indptr, part, n_colors, max_nodes)
            work += n_nodes * core.size
            if status == IMPOSSIBLE:
                return core
        inside[ball] = False
    return members[:0]
