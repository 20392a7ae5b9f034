"""Local search between feasible partitions: moves with exact gains, descents and climbs.

A single vertex may go where none of its cannot-links is. Where one is, the whole Kempe chain
changes places: the vertices of two clusters that cannot-links connect to it. Either way a proper
colouring stays proper, so no constraint is ever violated on the way, and F never rises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._jit import njit
from linkwise._kernels import Heap, empty_heap, new_stream, put, remove, shuffle
from linkwise._threads import uninterrupted
from linkwise.constraints.coloring.kernels import Scratch, kempe_chain, new_scratch

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int32s, Int64s, UInt64s
    from linkwise.search.problem import Problem

NEVER = -np.inf
TINY = 1e-13  # gains below this are rounding
MAX_SWEEPS = 100
# A volume that loses all but this share of what leaves is counted again: of 1 + 1e-17 - 1 nothing
# would be left, and cuts are divided by it.
CANCELLED = 1e-9


class State(NamedTuple):
    """A partition and its tables, kept exact by every move."""

    z: Int32s  # cluster of each vertex
    S: Floats  # S[v, c]: weight from v to cluster c, loops not included
    Q: Int32s  # Q[v, c]: cannot-links of v into cluster c
    R: Floats  # R[v, c]: soft weight from v to cluster c; must-links positive
    volume: Floats
    inside: Floats  # weight inside each cluster, each edge twice
    size: Int64s  # samples in each cluster


class Plan(NamedTuple):
    """How hard to search at one level."""

    sweep_cap: int  # longest chain in sweeps
    climb_cap: int  # longest chain in climbs
    rounds: int  # rounds of long chains and climbs; 0: chains once, no climbs
    fruit: int  # moves of a climb without a new best before it gives up
    hub_degree: int  # a vertex with more neighbours does not climb
    starts: int = 2**62  # climbs of a round
    climbs_per_call: int = 2**62  # of a compiled call, which no interrupt stops


class Log(NamedTuple):
    """What climbs have done."""

    touched: Bools  # vertices that need no climb of their own any more
    moved: Int32s  # in the climb under way, in order
    came_from: Int32s


@njit(cache=True, nogil=True)
def new_state(p: Problem, z: Int32s, k: int) -> State:
    """Fill the tables for a partition; it is copied."""
    n = z.size
    S = np.zeros((n, k), np.float64)
    Q = np.zeros((n, k), np.int32)
    has_soft = p.soft_indices.size > 0
    R = np.zeros((n if has_soft else 1, k), np.float64)
    volume = np.zeros(k, np.float64)
    inside = np.zeros(k, np.float64)
    size = np.zeros(k, np.int64)
    for v in range(n):
        c = z[v]
        for e in range(p.indptr[v], p.indptr[v + 1]):
            S[v, z[p.indices[e]]] += p.weight[e]
        for e in range(p.apart_indptr[v], p.apart_indptr[v + 1]):
            Q[v, z[p.apart_indices[e]]] += 1
        for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
            R[v, z[p.soft_indices[e]]] += p.soft_weight[e]
        volume[c] += p.volume[v]
        inside[c] += p.loop[v] + S[v, c]
        size[c] += p.n_samples[v]
    return State(z.copy(), S, Q, R, volume, inside, size)


@njit(cache=True, nogil=True)
def evaluate(p: Problem, z: Int32s, k: int) -> float:
    """Return F(z), up to the soft pairs inside vertices, which no partition changes."""
    volume = np.zeros(k, np.float64)
    inside = np.zeros(k, np.float64)
    violated = 0.0
    for v in range(z.size):
        c = z[v]
        volume[c] += p.volume[v]
        inside[c] += p.loop[v]
        for e in range(p.indptr[v], p.indptr[v + 1]):
            if z[p.indices[e]] == c:
                inside[c] += p.weight[e]
        for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
            w = p.soft_weight[e]
            together = z[p.soft_indices[e]] == c
            if w > 0 and not together:
                violated += 0.5 * w
            elif w < 0 and together:
                violated -= 0.5 * w
    total = p.gamma * violated
    for c in range(k):
        if volume[c] > 0:
            total += 1.0 - inside[c] / volume[c]
    return total


@njit(cache=True, nogil=True)
def move(p: Problem, s: State, v: int, b: int) -> None:
    """Move a vertex, and update the tables of its neighbours."""
    a = s.z[v]
    s.inside[a] -= 2.0 * s.S[v, a] + p.loop[v]
    s.inside[b] += 2.0 * s.S[v, b] + p.loop[v]
    s.volume[a] -= p.volume[v]
    s.volume[b] += p.volume[v]
    s.size[a] -= p.n_samples[v]
    s.size[b] += p.n_samples[v]
    s.z[v] = b
    for e in range(p.indptr[v], p.indptr[v + 1]):
        u = p.indices[e]
        s.S[u, a] -= p.weight[e]
        s.S[u, b] += p.weight[e]
    for e in range(p.apart_indptr[v], p.apart_indptr[v + 1]):
        u = p.apart_indices[e]
        s.Q[u, a] -= 1
        s.Q[u, b] += 1
    for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
        u = p.soft_indices[e]
        s.R[u, a] -= p.soft_weight[e]
        s.R[u, b] += p.soft_weight[e]
    if s.volume[a] < CANCELLED * p.volume[v]:
        _recount(p, s, a)


@njit(cache=True, nogil=True, inline="always")
def _recount(p: Problem, s: State, c: int) -> None:
    """Add up the volume and the inner weight of a cluster."""
    s.volume[c] = s.inside[c] = 0.0
    for v in range(s.z.size):
        if s.z[v] != c:
            continue
        s.volume[c] += p.volume[v]
        s.inside[c] += p.loop[v]
        for e in range(p.indptr[v], p.indptr[v + 1]):
            if s.z[p.indices[e]] == c:
                s.inside[c] += p.weight[e]


@njit(cache=True, nogil=True)
def chain_gain(p: Problem, s: State, scratch: Scratch, size: int, a: int, b: int) -> float:
    """Return what F loses when the collected chain between `a` and `b` changes places.

    NEVER, if that would leave a cluster empty.
    """
    now = scratch.clock[0]
    # Index 0 is the part of the chain in a, index 1 the part in b.
    sums = np.zeros((6, 2))  # one array: five more would take longer to compile than what follows
    to_a, to_b, loop, volume, count = sums[0], sums[1], sums[2], sums[3], sums[4]
    within = sums[5]  # weight inside the chain, each edge twice
    between = 0.0  # each edge twice
    soft = 0.0
    for at in range(size):
        v = scratch.members[at]
        side = 0 if s.z[v] == a else 1
        here, there = (a, b) if side == 0 else (b, a)
        to_a[side] += s.S[v, a]
        to_b[side] += s.S[v, b]
        loop[side] += p.loop[v]
        volume[side] += p.volume[v]
        count[side] += p.n_samples[v]
        for e in range(p.indptr[v], p.indptr[v + 1]):
            u = p.indices[e]
            if scratch.mark[u] == now:
                if s.z[u] == here:
                    within[side] += p.weight[e]
                else:
                    between += p.weight[e]
        if p.soft_indices.size > 0:
            soft += s.R[v, there] - s.R[v, here]
            for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
                u = p.soft_indices[e]
                if scratch.mark[u] == now:
                    # Pairs inside the chain keep their relation, which the tables do not show.
                    soft += p.soft_weight[e] if s.z[u] == here else -p.soft_weight[e]
    size_a = s.size[a] - count[0] + count[1]
    size_b = s.size[b] - count[1] + count[0]
    if size_a == 0 or size_b == 0:
        return NEVER
    inside_a = s.inside[a] - 2 * to_a[0] + within[0] - loop[0]
    inside_a += loop[1] + within[1] + 2 * to_a[1] - between
    inside_b = s.inside[b] - 2 * to_b[1] + within[1] - loop[1]
    inside_b += loop[0] + within[0] + 2 * to_b[0] - between
    volume_a = s.volume[a] - volume[0] + volume[1]
    volume_b = s.volume[b] - volume[1] + volume[0]
    if volume_a <= 0 or volume_b <= 0:  # of next to nothing, rounding leaves nothing
        return NEVER
    before = s.inside[a] / s.volume[a] + s.inside[b] / s.volume[b]
    return inside_a / volume_a + inside_b / volume_b - before + p.gamma * soft


@njit(cache=True, nogil=True)
def best_move(
    p: Problem, s: State, scratch: Scratch, v: int, cap: int, near: bool
) -> tuple[float, int]:
    """Return the largest gain of moving `v`, alone or with its chain, and the cluster.

    Chains are tried up to `cap` vertices. With `near`, only clusters that `v` has an edge or a
    soft pair into. The cluster is -1 if there is no move.
    """
    a = np.int64(s.z[v])
    k = s.volume.size
    has_soft = p.soft_indices.size > 0
    best = NEVER
    to = -1
    rest = s.volume[a] - p.volume[v]  # may be rounded to nothing
    can_leave = s.size[a] > p.n_samples[v] and rest > 0
    leaving = 0.0
    if can_leave:
        left = s.inside[a] - 2.0 * s.S[v, a] - p.loop[v]
        leaving = left / rest - s.inside[a] / s.volume[a]
    for b in range(k):
        if b == a:
            continue
        if near and s.S[v, b] <= 0.0 and not (has_soft and s.R[v, b] > 0.0):
            continue
        if s.Q[v, b] == 0:
            if not can_leave:
                continue
            joined = s.inside[b] + 2.0 * s.S[v, b] + p.loop[v]
            gain = leaving + joined / (s.volume[b] + p.volume[v])
            gain -= s.inside[b] / s.volume[b]
            if has_soft:
                gain += p.gamma * (s.R[v, b] - s.R[v, a])
        elif s.Q[v, b] < cap:
            size = kempe_chain(p.apart_indptr, p.apart_indices, s.z, v, b, cap, scratch)
            if size == 0:
                continue
            gain = chain_gain(p, s, scratch, size, a, b)
        else:
            continue
        if gain > best:
            best = gain
            to = b
    return best, to


@njit(cache=True, nogil=True)
def execute(p: Problem, s: State, scratch: Scratch, v: int, b: int) -> int:
    """Move `v` to `b` with the chain that this needs; return how many vertices moved.

    They are in ``scratch.members``.
    """
    a = s.z[v]
    if s.Q[v, b] == 0:
        scratch.members[0] = v
        move(p, s, v, b)
        return 1
    size = kempe_chain(p.apart_indptr, p.apart_indices, s.z, v, b, s.z.size, scratch)
    for at in range(size):
        u = scratch.members[at]
        move(p, s, u, b if s.z[u] == a else a)
    return size


# Descents and climbs -------------------------------------------------------------------------


class Tables(NamedTuple):
    """What a refinement works with."""

    s: State
    scratch: Scratch
    heap: Heap
    log: Log
    stream: UInt64s
    order: Int32s
    active: Bools


def refine(p: Problem, z: Int32s, k: int, plan: Plan, seed: int) -> Int32s:
    """Return a partition with F no larger, where no move or chain of `plan` gains any more."""
    with uninterrupted():  # numba crashes if Ctrl-C comes while it makes named tuples
        tables = _new_tables(p, z, k, seed)
    _descend_from_everywhere(p, tables, plan)
    for _ in range(max(plan.rounds, 1)):
        gained, at, n_started = _begin_round(p, tables, plan), 0, 0
        while plan.rounds > 0 and at < z.size and n_started < plan.starts:
            # Back in Python in between, where an interrupt is heard.
            gain, at, n_started = _climb_on(p, tables, plan, at, n_started)
            gained += gain
        if gained <= TINY:
            break
        _descend_from_everywhere(p, tables, plan)
    return tables.s.z


# These three are Python: a kernel that calls kernels is compiled with a copy of all of them.


def _new_tables(p: Problem, z: Int32s, k: int, seed: int) -> Tables:
    n = z.size
    return Tables(
        s=new_state(p, z, k),
        scratch=new_scratch(n),
        heap=empty_heap(n, np.zeros(0, np.int64)),
        log=Log(np.zeros(n, np.bool_), np.empty(n, np.int32), np.empty(n, np.int32)),
        stream=new_stream(seed),
        order=np.arange(n, dtype=np.int32),
        active=np.empty(n, np.bool_),
    )


def _descend_from_everywhere(p: Problem, t: Tables, plan: Plan) -> None:
    t.active.fill(True)
    _descend(p, t.s, t.scratch, t.order, t.active, plan.sweep_cap, t.stream)


def _begin_round(p: Problem, t: Tables, plan: Plan) -> float:
    """Swap long chains, and shuffle the vertices to climb from; return the gain."""
    gained = 0.0
    if t.s.volume.size > 2 and p.apart_indices.size > 0:
        gained = _swap_chains(p, t.s, t.scratch)
    if plan.rounds > 0:
        t.log.touched.fill(False)
        shuffle(t.order, t.stream)
    return gained


@njit(cache=True, nogil=True)
def _climb_on(p: Problem, t: Tables, plan: Plan, at: int, n_started: int) -> tuple[float, int, int]:
    """Climb from the vertices at a border that no climb of this round has touched.

    Return the gain, the place in the order to go on from, and how many climbs there were.
    """
    gained = 0.0
    last = min(n_started + plan.climbs_per_call, plan.starts)
    while at < t.order.size and n_started < last:
        v = int(t.order[at])
        at += 1
        is_hub = p.indptr[v + 1] - p.indptr[v] > plan.hub_degree
        if not (t.log.touched[v] or is_hub or _is_inner(p, t.s, v)):
            gained += _climb(p, t.s, t.scratch, t.heap, t.log, v, plan)
            n_started += 1
    return gained, at, n_started


@njit(cache=True, nogil=True)
def _is_inner(p: Problem, s: State, v: int) -> bool:
    """Whether all edges of `v` stay in its cluster, and it has no pairs."""
    if p.apart_indptr[v + 1] > p.apart_indptr[v] or p.soft_indptr[v + 1] > p.soft_indptr[v]:
        return False
    if p.indptr[v + 1] == p.indptr[v]:
        return False  # isolated: cheaper where it dilutes a larger cut
    return s.S[v, s.z[v]] + p.loop[v] >= p.volume[v] * (1.0 - 1e-12)


@njit(cache=True, nogil=True, inline="always")
def _wake(p: Problem, active: Bools, v: int) -> None:
    """Mark a vertex and all that are connected to it as worth another look."""
    active[v] = True
    for e in range(p.indptr[v], p.indptr[v + 1]):
        active[p.indices[e]] = True
    for e in range(p.apart_indptr[v], p.apart_indptr[v + 1]):
        active[p.apart_indices[e]] = True
    for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
        active[p.soft_indices[e]] = True


@njit(cache=True, nogil=True)
def _descend(
    p: Problem,
    s: State,
    scratch: Scratch,
    order: Int32s,
    active: Bools,
    cap: int,
    stream: UInt64s,
) -> float:
    """Make the best gaining move of every active vertex until none gains; return the gain.

    A move wakes its neighbours. It also changes the volumes that everyone's gain depends on, so
    at the end all are tried once more.
    """
    scratch.epoch[0] += 1
    total = 0.0
    everywhere = np.bool_(False)  # a literal would compile another copy of the callee
    all_tried = bool(active.all())
    for _ in range(MAX_SWEEPS):
        gained = 0.0
        shuffle(order, stream)
        for v in order:
            if not active[v]:
                continue
            active[v] = False
            if _is_inner(p, s, v):
                continue
            gain, b = best_move(p, s, scratch, v, cap, everywhere)
            if gain > TINY:
                n_moved = execute(p, s, scratch, v, b)
                for at in range(n_moved):
                    _wake(p, active, scratch.members[at])
                gained += gain
        total += gained
        if gained <= 0.0 and all_tried:
            break
        all_tried = gained <= 0.0
        if all_tried:
            active[:] = True
    return total


@njit(cache=True, nogil=True)
def _swap_chains(p: Problem, s: State, scratch: Scratch) -> float:
    """Try every Kempe chain of every two clusters once, however long; return the gain."""
    scratch.epoch[0] += 1
    n, k = s.S.shape
    linked = np.empty(n, np.int32)
    n_linked = 0
    for v in range(n):
        if p.apart_indptr[v + 1] > p.apart_indptr[v]:
            linked[n_linked] = v
            n_linked += 1
    seen = np.full(n, -1, np.int64)
    total = 0.0
    for a in range(k):
        for b in range(a + 1, k):
            pair = a * k + b
            for at in range(n_linked):
                v = linked[at]
                c = s.z[v]
                if c not in (a, b) or seen[v] == pair:
                    continue
                other = b if c == a else a
                if s.Q[v, other] == 0:
                    continue
                size = kempe_chain(p.apart_indptr, p.apart_indices, s.z, v, other, n, scratch)
                for m in range(size):
                    seen[scratch.members[m]] = pair
                gain = chain_gain(p, s, scratch, size, a, b)
                if gain > TINY:
                    for m in range(size):
                        u = scratch.members[m]
                        move(p, s, u, b if s.z[u] == a else a)
                    total += gain
    return total


@njit(cache=True, nogil=True, inline="always")
def _climb(  # noqa: PLR0915
    p: Problem,
    s: State,
    scratch: Scratch,
    heap: Heap,
    log: Log,
    start: int,
    plan: Plan,
) -> float:
    """Move the best vertex around `start` again and again, losing or not; keep the best prefix.

    Each vertex moves once. Gains in the heap may be out of date; they are renewed on the way out.
    """
    scratch.epoch[0] += 1
    epoch = scratch.epoch[0]
    log.touched[start] = True
    put(heap, start, 0.0)
    near = np.bool_(True)  # literals would compile other copies of the callees
    n_moved: int = np.int64(0)  # type: ignore[assignment]
    n_best = fruitless = 0
    gained = best = 0.0
    while heap.size[0] > 0 and fruitless < plan.fruit:
        v = heap.vertex[0]
        gain, b = best_move(p, s, scratch, v, plan.climb_cap, near)
        if b >= 0 and gain < heap.key[v] - TINY and heap.size[0] > 1:
            put(heap, v, gain)
            if heap.vertex[0] != v:
                continue
        remove(heap, v)
        if b < 0:
            continue
        n_here = _step(p, s, scratch, log, n_moved, v, b)
        for at in range(n_moved, n_moved + n_here):
            if heap.place[log.moved[at]] >= 0:
                remove(heap, log.moved[at])
        for at in range(n_moved, n_moved + n_here):
            w = log.moved[at]
            for e in range(p.indptr[w], p.indptr[w + 1]):
                u = p.indices[e]
                is_hub = p.indptr[u + 1] - p.indptr[u] > plan.hub_degree
                if is_hub or scratch.locked[u] == epoch:
                    continue
                new_gain, to = best_move(p, s, scratch, u, plan.climb_cap, near)
                if to >= 0:
                    put(heap, u, new_gain)
                elif heap.place[u] >= 0:
                    remove(heap, u)
        n_moved += n_here
        gained += gain
        fruitless += 1
        if gained > best + TINY:
            best = gained
            n_best = n_moved
            fruitless = 0
    _roll_back(p, s, heap, log, n_best, n_moved)
    scratch.epoch[0] = epoch + 1
    return best


@njit(cache=True, nogil=True, inline="always")
def _roll_back(p: Problem, s: State, heap: Heap, log: Log, n_best: int, n_moved: int) -> None:
    """Undo the moves of a climb after the best prefix, and empty the heap."""
    for at in range(n_moved - 1, n_best - 1, -1):
        move(p, s, log.moved[at], np.int64(log.came_from[at]))
    for at in range(heap.size[0]):
        heap.place[heap.vertex[at]] = -1
    heap.size[0] = 0


@njit(cache=True, nogil=True, inline="always")
def _step(
    p: Problem,
    s: State,
    scratch: Scratch,
    log: Log,
    n_moved: int,
    v: int,
    b: int,
) -> int:
    """Execute a move of a climb, log it, and lock the vertices that moved."""
    a = s.z[v]
    n_here = execute(p, s, scratch, v, b)
    for at in range(n_here):
        u = scratch.members[at]
        log.moved[n_moved + at] = u
        log.came_from[n_moved + at] = a if s.z[u] == b else b
        scratch.locked[u] = scratch.epoch[0]
        log.touched[u] = True
    return n_here
