"""Local search: descend by single moves and Kempe chains, then climb out by losing moves.

Every kernel starts and ends at a feasible partition and never raises F.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from linkwise._random import new_stream, shuffle
from linkwise.search.moves import (
    Scratch,
    State,
    best_move,
    chain_gain,
    collect_chain,
    execute,
    move,
    new_scratch,
    new_state,
)

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int32s, Int64s, UInt64s
    from linkwise.search.problem import Problem


__all__ = ["Plan", "refine"]

TINY = 1e-13  # gains below this are rounding
MAX_SWEEPS = 100


class Plan(NamedTuple):
    """How hard to search at one level."""

    sweep_cap: int  # longest chain in sweeps
    climb_cap: int  # longest chain in climbs
    rounds: int  # rounds of long chains and climbs; 0: chains once, no climbs
    fruit: int  # moves of a climb without a new best before it gives up
    hub_degree: int  # a vertex with more neighbours does not climb


class Log(NamedTuple):
    """What climbs have done."""

    touched: Bools  # vertices that need no climb of their own any more
    moved: Int32s  # in the climb under way, in order
    came_from: Int32s


class Heap(NamedTuple):
    """Vertices by their best gain, largest first; each at most once."""

    vertex: Int32s
    place: Int32s  # of each vertex, -1 outside
    gain: Floats  # of each vertex
    size: Int64s


@njit(cache=True, nogil=True)
def refine(p: Problem, z: Int32s, k: int, plan: Plan, seed: int) -> Int32s:
    """Return a partition with F no larger, where no move or chain of `plan` gains any more."""
    n = z.size
    s = new_state(p, z, k)
    scratch = new_scratch(n)
    stream = new_stream(seed)
    order = np.arange(n).astype(np.int32)
    active = np.ones(n, np.bool_)
    _descend(p, s, scratch, order, active, plan.sweep_cap, stream)
    for _ in range(max(plan.rounds, 1)):
        gained = 0.0
        if k > 2 and p.apart_indices.size > 0:
            gained += _swap_chains(p, s, scratch)
        if plan.rounds > 0:
            gained += _climb_everywhere(p, s, scratch, order, plan, stream)
        if gained <= TINY:
            break
        active[:] = True
        gained += _descend(p, s, scratch, order, active, plan.sweep_cap, stream)
    return s.z


@njit(cache=True, nogil=True)
def _is_inner(p: Problem, s: State, v: int) -> bool:
    """Whether all edges of `v` stay in its cluster and nothing ties it elsewhere."""
    if p.apart_indptr[v + 1] > p.apart_indptr[v] or p.soft_indptr[v + 1] > p.soft_indptr[v]:
        return False
    if p.indptr[v + 1] == p.indptr[v]:
        return False  # a piece of its own: cheaper where it dilutes a larger cut
    return s.S[v, s.z[v]] + p.loop[v] >= p.volume[v] * (1.0 - 1e-12)


@njit(cache=True, nogil=True)
def _wake(p: Problem, active: Bools, v: int) -> None:
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
    at the end all are asked once more.
    """
    scratch.epoch[0] += 1
    total = 0.0
    all_asked = bool(active.all())
    for _ in range(MAX_SWEEPS):
        gained = 0.0
        shuffle(order, stream)
        for v in order:
            if not active[v]:
                continue
            active[v] = False
            if _is_inner(p, s, v):
                continue
            gain, b = best_move(p, s, scratch, v, cap, False)
            if gain > TINY:
                n_moved = execute(p, s, scratch, v, b)
                for at in range(n_moved):
                    _wake(p, active, scratch.members[at])
                gained += gain
        total += gained
        if gained <= 0.0 and all_asked:
            break
        all_asked = gained <= 0.0
        if all_asked:
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
                size = collect_chain(p, s, scratch, v, other, n)
                for m in range(size):
                    seen[scratch.members[m]] = pair
                gain = chain_gain(p, s, scratch, size, a, b)
                if gain > TINY:
                    for m in range(size):
                        u = scratch.members[m]
                        move(p, s, u, b if s.z[u] == a else a)
                    total += gain
    return total


# Climbs --------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _climb_everywhere(
    p: Problem, s: State, scratch: Scratch, order: Int32s, plan: Plan, stream: UInt64s
) -> float:
    """Start a climb at every vertex at a border that no climb has touched; return the gain."""
    n = s.z.size
    heap = Heap(np.empty(n, np.int32), np.full(n, -1, np.int32), np.zeros(n), np.zeros(1, np.int64))
    log = Log(np.zeros(n, np.bool_), np.empty(n, np.int32), np.empty(n, np.int32))
    shuffle(order, stream)
    total = 0.0
    for v in order:
        too_many = p.indptr[v + 1] - p.indptr[v] > plan.hub_degree
        if not log.touched[v] and not too_many and not _is_inner(p, s, v):
            total += _climb(p, s, scratch, heap, log, v, plan)
    return total


@njit(cache=True, nogil=True)
def _climb(
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
    _offer(p, s, scratch, heap, start, plan.climb_cap)
    n_moved = 0
    n_best = 0
    gained = 0.0
    best = 0.0
    fruitless = 0
    while heap.size[0] > 0 and fruitless < plan.fruit:
        v = heap.vertex[0]
        gain, b = best_move(p, s, scratch, v, plan.climb_cap, True)
        if b >= 0 and gain < heap.gain[v] - TINY and heap.size[0] > 1:
            _set_gain(heap, v, gain)
            if heap.vertex[0] != v:
                continue
        _take_out(heap, v)
        if b < 0:
            continue
        n_here = _step(p, s, scratch, heap, log, n_moved, v, b)
        for at in range(n_moved, n_moved + n_here):
            _offer_neighbors(p, s, scratch, heap, log.moved[at], plan)
        n_moved += n_here
        gained += gain
        fruitless += 1
        if gained > best + TINY:
            best = gained
            n_best = n_moved
            fruitless = 0
    for at in range(n_moved - 1, n_best - 1, -1):
        move(p, s, log.moved[at], log.came_from[at])
    for at in range(heap.size[0]):
        heap.place[heap.vertex[at]] = -1
    heap.size[0] = 0
    scratch.epoch[0] = epoch + 1
    return best


@njit(cache=True, nogil=True)
def _step(
    p: Problem,
    s: State,
    scratch: Scratch,
    heap: Heap,
    log: Log,
    n_moved: int,
    v: int,
    b: int,
) -> int:
    """Execute a move of a climb, log it, and lock who moved."""
    a = s.z[v]
    n_here = execute(p, s, scratch, v, b)
    for at in range(n_here):
        u = scratch.members[at]
        log.moved[n_moved + at] = u
        log.came_from[n_moved + at] = a if s.z[u] == b else b
        scratch.locked[u] = scratch.epoch[0]
        log.touched[u] = True
        if heap.place[u] >= 0:
            _take_out(heap, u)
    return n_here


@njit(cache=True, nogil=True)
def _offer_neighbors(
    p: Problem, s: State, scratch: Scratch, heap: Heap, v: int, plan: Plan
) -> None:
    for e in range(p.indptr[v], p.indptr[v + 1]):
        u = p.indices[e]
        if (
            scratch.locked[u] != scratch.epoch[0]
            and p.indptr[u + 1] - p.indptr[u] <= plan.hub_degree
        ):
            _offer(p, s, scratch, heap, u, plan.climb_cap)


@njit(cache=True, nogil=True)
def _offer(p: Problem, s: State, scratch: Scratch, heap: Heap, v: int, cap: int) -> None:
    """Put a vertex in the heap with its best gain, or renew it."""
    gain, b = best_move(p, s, scratch, v, cap, True)
    if b < 0:
        if heap.place[v] >= 0:
            _take_out(heap, v)
        return
    if heap.place[v] < 0:
        last = heap.size[0]
        heap.size[0] += 1
        heap.gain[v] = gain
        heap.vertex[last] = v
        heap.place[v] = last
        _rise(heap, last)
    else:
        _set_gain(heap, v, gain)


@njit(cache=True, nogil=True)
def _set_gain(heap: Heap, v: int, gain: float) -> None:
    rises = gain > heap.gain[v]
    heap.gain[v] = gain
    if rises:
        _rise(heap, heap.place[v])
    else:
        _sink(heap, heap.place[v])


@njit(cache=True, nogil=True)
def _take_out(heap: Heap, v: int) -> None:
    hole = heap.place[v]
    heap.place[v] = -1
    heap.size[0] -= 1
    last = heap.vertex[heap.size[0]]
    if last == v:
        return
    heap.vertex[hole] = last
    heap.place[last] = hole
    _rise(heap, hole)
    _sink(heap, heap.place[last])


@njit(cache=True, nogil=True)
def _rise(heap: Heap, at: int) -> None:
    v = heap.vertex[at]
    gain = heap.gain[v]
    while at > 0:
        up = (at - 1) // 2
        u = heap.vertex[up]
        if heap.gain[u] >= gain:
            break
        heap.vertex[at] = u
        heap.place[u] = at
        at = up
    heap.vertex[at] = v
    heap.place[v] = at


@njit(cache=True, nogil=True)
def _sink(heap: Heap, at: int) -> None:
    v = heap.vertex[at]
    gain = heap.gain[v]
    size = heap.size[0]
    while 2 * at + 1 < size:
        down = 2 * at + 1
        if down + 1 < size and heap.gain[heap.vertex[down + 1]] > heap.gain[heap.vertex[down]]:
            down += 1
        u = heap.vertex[down]
        if heap.gain[u] <= gain:
            break
        heap.vertex[at] = u
        heap.place[u] = at
        at = down
    heap.vertex[at] = v
    heap.place[v] = at
