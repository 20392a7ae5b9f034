"""Moves between feasible partitions, with their exact gains.

A single vertex may go where none of its cannot-links is. Where one is, the whole Kempe chain
changes places: the vertices of two clusters that cannot-links connect to it. Either way a proper
colouring stays proper, so no constraint is ever violated on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s, Int64s
    from linkwise.search.problem import Problem


__all__ = [
    "Scratch",
    "State",
    "best_move",
    "chain_gain",
    "collect_chain",
    "evaluate",
    "execute",
    "move",
    "new_scratch",
    "new_state",
]

NEVER = -np.inf


class State(NamedTuple):
    """A partition and its tables, kept exact by every move."""

    z: Int32s  # cluster of each vertex
    S: Floats  # S[v, c]: weight from v to cluster c, loops not included
    Q: Int32s  # Q[v, c]: cannot-links of v into cluster c
    R: Floats  # R[v, c]: soft weight from v to cluster c; positive wants apart
    volume: Floats
    inside: Floats  # weight inside each cluster, each edge twice
    size: Int64s  # samples in each cluster


class Scratch(NamedTuple):
    """Memory of a search, allocated once."""

    members: Int32s  # the chain collected last
    mark: Int64s  # clock at which a vertex joined a chain
    clock: Int64s
    locked: Int64s  # epoch in which a vertex may not move any more
    epoch: Int64s


@njit(cache=True, nogil=True)
def new_scratch(n: int) -> Scratch:
    """Return empty scratch memory for `n` vertices."""
    return Scratch(
        np.empty(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(1, np.int64),
        np.zeros(n, np.int64),
        np.ones(1, np.int64),
    )


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
            if w > 0 and together:
                violated += 0.5 * w
            elif w < 0 and not together:
                violated -= 0.5 * w
    total = p.gamma * violated
    for c in range(k):
        if volume[c] > 0:
            total += 1.0 - inside[c] / volume[c]
    return total


@njit(cache=True, nogil=True)
def move(p: Problem, s: State, v: int, b: int) -> None:
    """Move a vertex, and tell its neighbours."""
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


@njit(cache=True, nogil=True)
def collect_chain(p: Problem, s: State, scratch: Scratch, v: int, b: int, cap: int) -> int:
    """Collect the Kempe chain of `v` between its cluster and `b` in ``scratch.members``.

    Returns its size; 0 if it is larger than `cap` or meets a locked vertex.
    """
    a = s.z[v]
    scratch.clock[0] += 1
    now = scratch.clock[0]
    epoch = scratch.epoch[0]
    members, mark = scratch.members, scratch.mark
    members[0] = v
    mark[v] = now
    size = 1
    head = 0
    while head < size:
        u = members[head]
        head += 1
        other = b if s.z[u] == a else a
        if s.Q[u, other] == 0:
            continue
        for e in range(p.apart_indptr[u], p.apart_indptr[u + 1]):
            w = p.apart_indices[e]
            if s.z[w] == other and mark[w] != now:
                if size == cap or scratch.locked[w] == epoch:
                    return 0
                mark[w] = now
                members[size] = w
                size += 1
    return size


@njit(cache=True, nogil=True)
def chain_gain(p: Problem, s: State, scratch: Scratch, size: int, a: int, b: int) -> float:
    """Return what F loses when the collected chain between `a` and `b` changes places.

    NEVER, if that would leave a cluster empty.
    """
    now = scratch.clock[0]
    # Index 0 is the part of the chain in a, index 1 the part in b.
    to_a = np.zeros(2)
    to_b = np.zeros(2)
    loop = np.zeros(2)
    volume = np.zeros(2)
    count = np.zeros(2, np.int64)
    within = np.zeros(2)  # weight inside the chain, each edge twice
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
            soft += s.R[v, here] - s.R[v, there]
            for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
                u = p.soft_indices[e]
                if scratch.mark[u] == now:
                    # Pairs inside the chain keep their relation whatever the tables say.
                    soft += p.soft_weight[e] if s.z[u] == there else -p.soft_weight[e]
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
    a = s.z[v]
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
        if near and s.S[v, b] <= 0.0 and not (has_soft and s.R[v, b] < 0.0):
            continue
        if s.Q[v, b] == 0:
            if not can_leave:
                continue
            joined = s.inside[b] + 2.0 * s.S[v, b] + p.loop[v]
            gain = leaving + joined / (s.volume[b] + p.volume[v])
            gain -= s.inside[b] / s.volume[b]
            if has_soft:
                gain += p.gamma * (s.R[v, a] - s.R[v, b])
        elif s.Q[v, b] < cap:
            size = collect_chain(p, s, scratch, v, b, cap)
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

    They are in ``scratch.members``, where the caller finds whom to wake or to log.
    """
    a = s.z[v]
    if s.Q[v, b] == 0:
        scratch.members[0] = v
        move(p, s, v, b)
        return 1
    size = collect_chain(p, s, scratch, v, b, s.z.size)
    for at in range(size):
        u = scratch.members[at]
        move(p, s, u, b if s.z[u] == a else a)
    return size
