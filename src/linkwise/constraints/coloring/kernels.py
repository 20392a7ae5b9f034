"""Compiled colouring of graphs in compressed row form (`indptr`, `indices`).

They are handed valid arrays and check nothing; random numbers come from the seed they are
handed. A colour of -1 means none. Their slow twins are in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._jit import njit
from linkwise._kernels import empty_heap, new_stream, put, remove, sink, uniform

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int32s, Int64s, UInt64s


EXAMINED = 50  # uncoloured vertices that one step of the tabu search compares
TENURE = 0.6  # share of the uncoloured vertices by which an ejected colour stays forbidden


# Peeling -----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def peel_below(indptr: Int64s, indices: Int32s, n_colors: int) -> tuple[Bools, Int32s]:
    """Remove vertices with fewer than `n_colors` neighbours until none is left; linear.

    Returns
    -------
    core : ndarray of bool
        Which vertices stay.
    order : ndarray of int32
        The others as they were removed.
    """
    n = indptr.size - 1
    degree = indptr[1:] - indptr[:-1]
    core = np.ones(n, np.bool_)
    order = np.empty(n, np.int32)
    tail = 0
    for v in range(n):
        if degree[v] < n_colors:
            core[v] = False
            order[tail] = v
            tail += 1
    head = 0
    while head < tail:
        v = order[head]
        head += 1
        for u in indices[indptr[v] : indptr[v + 1]]:
            degree[u] -= 1
            if core[u] and degree[u] < n_colors:
                core[u] = False
                order[tail] = u
                tail += 1
    return core, order[:tail].copy()


@njit(cache=True, nogil=True)
def color_peeled(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s, indices: Int32s, order: Int32s, cost: Floats, colors: Int32s
) -> None:
    """Colour the vertices of `order` from its end, each with its cheapest allowed colour."""
    k = cost.shape[1]
    taken = np.full(k, -1, np.int64)
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        for u in indices[indptr[v] : indptr[v + 1]]:
            if colors[u] >= 0:
                taken[colors[u]] = position
        best = -1
        for c in range(k):
            if taken[c] != position and (best < 0 or cost[v, c] < cost[v, best]):
                best = c
        colors[v] = best


@njit(cache=True, nogil=True)
def fill_empty(cost: Floats, colors: Int32s) -> None:
    """Give each unused colour the vertex that takes it most cheaply, if there is one to spare.

    Nothing has the unused colour, so every vertex may take it. A vertex stays where it is the
    only one of its colour.
    """
    n, k = cost.shape
    count = np.zeros(k, np.int64)
    for c in colors:
        if c >= 0:
            count[c] += 1
    for empty in range(k):
        if count[empty] > 0:
            continue
        best, best_rise = -1, np.inf
        for v in range(n):
            c = colors[v]
            if c < 0:
                best = v
                break
            if count[c] > 1:
                rise = cost[v, empty] - cost[v, c]
                if best < 0 or rise < best_rise:
                    best, best_rise = v, rise
        if best < 0:
            return
        if colors[best] >= 0:
            count[colors[best]] -= 1
        colors[best] = empty
        count[empty] = 1


# DSATUR ------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _cheapest(v: int, cost: Floats, taken: Bools) -> tuple[int, float]:
    """Return the cheapest allowed colour (-1: none) and what the next cheapest costs more."""
    best = -1
    first, second = np.inf, np.inf
    for c in range(cost.shape[1]):
        if taken[v, c]:
            continue
        x = cost[v, c]
        if best < 0 or x < first:
            second = first
            first = x
            best = c
        elif x < second:
            second = x
    return best, second - first if second < np.inf else np.inf


@njit(cache=True, nogil=True)
def _hub_ranks(indptr: Int64s, n_colors: int) -> Int64s:
    """Rank vertices of many neighbours by the logarithm of their number; 0 for all others."""
    n = indptr.size - 1
    rank = np.zeros(n, np.int64)
    for v in range(n):
        degree = indptr[v + 1] - indptr[v]
        if degree > 4 * n_colors:
            rank[v] = int(np.floor(2.0 * np.log2(degree / n_colors)))
    return rank


@njit(cache=True, nogil=True)
def dsatur(indptr: Int64s, indices: Int32s, cost: Floats, failures: Int64s) -> tuple[Int32s, int]:
    """Colour a graph greedily, guided by costs; returns the colours and how many are missing.

    The next vertex is one with most colours among its neighbours (Brelaz, 1979), then one of
    the highest rank, by its degree and its earlier failures, then one with most to lose: the
    cost of its second-cheapest allowed colour above the cheapest.
    """
    n, k = cost.shape
    taken = np.zeros((n, k), np.bool_)
    heap = empty_heap(n, np.minimum(_hub_ranks(indptr, k) + failures, 63))
    heap.size[0] = n
    for v in range(n):
        heap.vertex[v] = heap.place[v] = v
        heap.key[v] = _cheapest(v, cost, taken)[1]
    for i in range(n // 2 - 1, -1, -1):
        sink(heap, i)

    colors = np.full(n, -1, np.int32)
    n_left = 0
    while heap.size[0] > 0:
        v = heap.vertex[0]
        remove(heap, v)
        c = _cheapest(v, cost, taken)[0]
        if c < 0:
            n_left += 1
            continue
        colors[v] = c
        for u in indices[indptr[v] : indptr[v + 1]]:
            if heap.place[u] >= 0 and not taken[u, c]:
                taken[u, c] = True
                heap.rank[u] += 64  # above every other rank
                put(heap, u, _cheapest(u, cost, taken)[1])
    return colors, n_left


# Tabu search -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _best_ejection(  # noqa: PLR0917 - numba takes no keyword-only arguments
    pool: Int32s,
    n_left: int,
    best_left: int,
    n_same: Int32s,
    tabu: Int64s,
    step: int,
    state: UInt64s,
) -> tuple[int, int]:
    """Return the vertex to colour and its colour that eject the fewest; -1 if all are tabu."""
    k = n_same.shape[1]
    examined = min(n_left, EXAMINED)
    start = int(uniform(state) * n_left) if n_left > examined else 0
    vertex, color, fewest, ties = -1, -1, 1 << 30, 0
    for t in range(examined):
        v = pool[(start + t) % n_left]
        for c in range(k):
            ejected = n_same[v, c]
            if ejected > fewest:
                continue
            # A tabu move is taken all the same if it leaves fewer than ever before.
            if tabu[v, c] > step and n_left - 1 + ejected >= best_left:
                continue
            if ejected < fewest:
                fewest, ties = ejected, 0
            ties += 1
            if ties == 1 or uniform(state) * ties < 1.0:
                vertex, color = v, c
    return vertex, color


@njit(cache=True, nogil=True)
def partial_col(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s, indices: Int32s, colors: Int32s, n_colors: int, max_steps: int, seed: int
) -> tuple[Int32s, int, Int64s]:
    """Colour the vertices left over, by ejecting others (Bloechliger and Zufferey, 2008).

    Each step colours one vertex and takes the colour from its neighbours that have it; these
    may not have it back for some steps. Returns the best partial colouring seen, how many it
    leaves, and how often each vertex was left without a colour.
    """
    n = colors.size
    state = new_stream(seed)
    n_same = np.zeros((n, n_colors), np.int32)  # neighbours of each colour
    tabu = np.zeros((n, n_colors), np.int64)
    pool = np.empty(n, np.int32)
    place = np.full(n, -1, np.int32)
    pressure = (colors < 0).astype(np.int64)
    n_left = 0
    for v in range(n):
        if colors[v] < 0:
            pool[n_left] = v
            place[v] = n_left
            n_left += 1
        else:
            for u in indices[indptr[v] : indptr[v + 1]]:
                n_same[u, colors[v]] += 1
    best, best_left = colors.copy(), n_left
    for step in range(1, max_steps + 1):
        if n_left == 0:
            break
        v, c = _best_ejection(pool, n_left, best_left, n_same, tabu, step, state)
        if v < 0:
            continue
        n_left -= 1
        last = pool[n_left]
        pool[place[v]] = last
        place[last] = place[v]
        place[v] = -1
        colors[v] = c
        for u in indices[indptr[v] : indptr[v + 1]]:
            n_same[u, c] += 1
            if colors[u] == c:
                colors[u] = -1
                pressure[u] += 1
                pool[n_left] = u
                place[u] = n_left
                n_left += 1
                tabu[u, c] = step + 1 + int(10.0 * uniform(state)) + int(TENURE * n_left)
                for w in indices[indptr[u] : indptr[u + 1]]:
                    n_same[w, c] -= 1
        if n_left < best_left:
            best_left = n_left
            best[:] = colors
    return best, best_left, pressure


@njit(cache=True, nogil=True)
def _draw_color(counts: Int32s, share: Floats, state: UInt64s) -> int:
    """Draw a colour with a probability that falls with its conflicts."""
    fewest = counts.min()
    total = 0.0
    for count in counts:
        total += share[min(count - fewest, share.size - 1)]
    rest = uniform(state) * total
    for c in range(counts.size - 1):
        rest -= share[min(counts[c] - fewest, share.size - 1)]
        if rest < 0.0:
            return c
    return counts.size - 1


@njit(cache=True, nogil=True)
def anneal(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s, indices: Int32s, colors: Int32s, n_colors: int, n_sweeps: int, seed: int
) -> None:
    """Lower the number of equally coloured neighbours by annealing, in place.

    Every vertex draws its colour anew in each sweep (heat bath); the temperature falls linearly
    from 0.5 (of one conflict) to 0.
    """
    n = colors.size
    state = new_stream(seed)
    n_same = np.zeros((n, n_colors), np.int32)
    for v in range(n):
        for u in indices[indptr[v] : indptr[v + 1]]:
            n_same[u, colors[v]] += 1
    share = np.zeros(20)  # of a colour with so many conflicts more than the best
    for sweep in range(n_sweeps):
        temperature = 0.5 * (1.0 - sweep / n_sweeps)
        for i in range(share.size):
            share[i] = np.exp(-i / temperature)
        for v in range(n):
            old = colors[v]
            new = _draw_color(n_same[v], share, state)
            if new == old:
                continue
            colors[v] = new
            for u in indices[indptr[v] : indptr[v + 1]]:
                n_same[u, old] -= 1
                n_same[u, new] += 1


@njit(cache=True, nogil=True)
def drop_conflicts(indptr: Int64s, indices: Int32s, colors: Int32s) -> int:
    """Take the colour from vertices until no neighbours share one; returns how many lost it."""
    n_left = 0
    for v in range(colors.size):
        for u in indices[indptr[v] : indptr[v + 1]]:
            if colors[v] >= 0 and colors[u] == colors[v]:
                colors[v] = -1
                n_left += 1
    return n_left


# Linear costs ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _cheapest_other(row: Floats, excluded: int) -> int:
    """Return the cheapest colour but one."""
    best = -1
    for c in range(row.size):
        if c != excluded and (best < 0 or row[c] < row[best]):
            best = c
    return best


@njit(cache=True, nogil=True)
def fold_leaves(indptr: Int64s, indices: Int32s, cost: Floats) -> tuple[Int32s, Int32s, int]:
    """Fold vertices with at most one neighbour into it, exactly, until none is left.

    `cost` becomes the least cost of a vertex together with all that was folded into it: the
    dynamic programme over trees. Needs two colours.

    Returns
    -------
    order, parent : ndarray of int32
        The folded vertices in the order of folding, and what each was folded into (-1: it is
        the last of its component).
    n_folded : int
        How many entries of `order` count.
    """
    n, k = cost.shape
    degree = indptr[1:] - indptr[:-1]
    order = np.empty(n, np.int32)
    parent = np.full(n, -1, np.int32)
    folded = np.zeros(n, np.bool_)
    tail = 0
    for v in range(n):
        if degree[v] <= 1:
            order[tail] = v
            tail += 1
    head = 0
    while head < tail:
        v = order[head]
        head += 1
        folded[v] = True
        for u in indices[indptr[v] : indptr[v + 1]]:
            if folded[u]:
                continue
            parent[v] = u
            best = _cheapest_other(cost[v], -1)
            second = _cheapest_other(cost[v], best)
            for c in range(k):
                cost[u, c] += cost[v, second if c == best else best]
            degree[u] -= 1
            if degree[u] == 1:  # at 0 it is in the queue already
                order[tail] = u
                tail += 1
    return order, parent, tail


@njit(cache=True, nogil=True)
def unfold_leaves(  # noqa: PLR0917 - numba takes no keyword-only arguments
    order: Int32s, parent: Int32s, n_folded: int, cost: Floats, colors: Int32s
) -> None:
    """Colour folded vertices optimally, given the colours of all others."""
    for position in range(n_folded - 1, -1, -1):
        v = order[position]
        excluded = colors[parent[v]] if parent[v] >= 0 else -1
        colors[v] = _cheapest_other(cost[v], excluded)


class Scratch(NamedTuple):
    """Memory for Kempe chains, allocated once."""

    members: Int32s  # the chain collected last
    mark: Int64s  # clock at which a vertex joined a chain
    clock: Int64s
    locked: Int64s  # epoch in which a vertex may not move any more
    epoch: Int64s


@njit(cache=True, nogil=True)
def new_scratch(n: int) -> Scratch:
    """Return arrays for chains of `n` vertices, none of them locked."""
    return Scratch(
        np.empty(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(1, np.int64),
        np.zeros(n, np.int64),
        np.ones(1, np.int64),
    )


@njit(cache=True, nogil=True)
def kempe_chain(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    colors: Int32s,
    start: int,
    other: int,
    cap: int,
    scratch: Scratch,
) -> int:
    """Write the Kempe chain of a vertex and another colour to ``scratch.members``.

    Returns its length; 0 if it is longer than `cap` or meets a locked vertex.
    """
    own = colors[start]
    scratch.clock[0] += 1
    now, epoch = scratch.clock[0], scratch.epoch[0]
    members, mark = scratch.members, scratch.mark
    members[0] = start
    mark[start] = now
    head, tail = 0, 1
    while head < tail:
        v = members[head]
        head += 1
        opposite = other if colors[v] == own else own
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            if colors[u] == opposite and mark[u] != now:
                if tail == cap or scratch.locked[u] == epoch:
                    return 0
                mark[u] = now
                members[tail] = u
                tail += 1
    return tail


@njit(cache=True, nogil=True)
def kempe_descent(  # noqa: PLR0917 - numba takes no keyword-only arguments
    indptr: Int64s,
    indices: Int32s,
    cost: Floats,
    colors: Int32s,
    max_sweeps: int,
    may_empty: bool,  # noqa: FBT001
) -> int:
    """Swap the two colours of Kempe chains while that lowers the cost; returns the sweeps made.

    A chain is a component of the vertices of two colours: swapping it keeps a colouring proper.
    A sweep looks at every chain, in linear time. Unless it may, no colour loses its last
    vertex. Vertices without a colour stay so.
    """
    n, k = cost.shape
    seen = np.full((n, k), -1, np.int32)  # the last sweep that looked at this chain
    scratch = new_scratch(n)
    queue = scratch.members
    count = np.zeros(k, np.int64)
    for c in colors:
        if c >= 0:
            count[c] += 1
    for sweep in range(max_sweeps):
        improved = False
        for start in range(n):
            for other in range(k):
                own = colors[start]
                if own < 0 or other == own or seen[start, other] == sweep:
                    continue
                length = kempe_chain(indptr, indices, colors, start, other, n, scratch)
                gain, size, n_own = 0.0, 0.0, 0
                for v in queue[:length]:
                    to = other if colors[v] == own else own
                    gain += cost[v, colors[v]] - cost[v, to]
                    size += abs(cost[v, colors[v]]) + abs(cost[v, to])
                    n_own += colors[v] == own
                    seen[v, to] = sweep
                moved = length - n_own
                emptied = (count[own] == n_own and moved == 0) or (
                    count[other] == moved and n_own == 0
                )
                if gain <= 1e-12 * size or (
                    emptied and not may_empty
                ):  # rounding must not keep it going
                    continue
                for v in queue[:length]:
                    colors[v] = other if colors[v] == own else own
                count[own] += moved - n_own
                count[other] += n_own - moved
                improved = True
        if not improved:
            return sweep + 1
    return max_sweeps
