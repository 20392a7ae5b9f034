"""The k-means twin: the same moves and chains, with the sum of squares as objective.

A vertex is a must-link group: its number of samples and the sum of their rows. With the sum `M`
and the number `N` of each cluster, the sum of squares is a constant minus ``sum_c |M_c|^2 / N_c``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from linkwise._random import new_stream, shuffle
from linkwise.search.evolve import Found, Member, Report, Run, keep_best
from linkwise.search.moves import (
    NEVER,
    Scratch,
    State,
    collect_chain,
    execute,
    new_scratch,
    new_state,
)
from linkwise.search.starts import squared_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import AnyInts, Floats, Int32s, Ints
    from linkwise.search.problem import Problem
    from linkwise.search.starts import Colorer


__all__ = ["MeansSearch", "n_starts_for"]

TINY = 1e-13  # gains below this are rounding
MAX_SWEEPS = 200
CHAIN_CAP = 64
LARGE = 20_000  # vertices above which fewer starts are made


def n_starts_for(name: str, n_vertices: int) -> int:
    """Return how many starts an effort makes."""
    n_starts = {"fast": 4, "default": 20, "thorough": 60}[name]
    return n_starts if n_vertices <= LARGE else max(2, n_starts // 5)


class MeansSearch(NamedTuple):
    """Constrained k-means as a landscape: a problem without edges, and the rows of its vertices.

    Values are shares of the total sum of squares.
    """

    problem: Problem  # cannot-links and soft pairs; volume is the number of samples
    sums: Floats  # sum of the rows of each vertex, over the root of the total sum of squares
    within: float  # sum of squares inside vertices, a share of the total
    k: int
    color: Colorer
    n_starts: int

    def at(self, gamma: float) -> MeansSearch:
        """Return the same landscape with another price of soft pairs."""
        return self._replace(problem=self.problem._replace(gamma=gamma))

    def value(self, z: Int32s) -> float:
        """Return the objective of a partition."""
        return self.within + evaluate_means(self.problem, self.sums, z, self.k)

    def polish(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Descend from a partition."""
        return _descend(self.problem, self.sums, z, self.k, int(rng.randint(2**31)))

    def cross(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s:
        """Return the better of two partitions; centres do not recombine."""
        del rng
        return z if self.value(z) <= self.value(other) else other

    def search(
        self,
        rng: np.random.RandomState,
        run: Run,
        first: Sequence[Int32s] = (),
        report: Report | None = None,
    ) -> Found:
        """Return the best of many starts."""
        tasks = [partial(self._begin, s) for s in rng.randint(2**31, size=self.n_starts).tolist()]
        tasks += [partial(self._adopt, z, 0) for z in first]
        return keep_best(run, tasks, self._known, report)

    def _known(self) -> Member:
        return Member(self.value(self.color.known), self.color.known)

    def nearest(self, centers: Floats, rng: np.random.RandomState) -> Int32s:
        """Return a feasible partition with vertices near their centres."""
        mass = self.problem.volume
        rows = self.sums / mass[:, None]
        return self.color(mass[:, None] * squared_distances(rows, centers), rng)

    def _begin(self, seed: int) -> Member:
        rng = np.random.RandomState(seed)
        mass = self.problem.volume
        rows = self.sums / mass[:, None]
        centers = rows[_spread_seeds(rows, mass, self.k, rng)]
        best: Member | None = None
        for _ in range(50):
            z = self.nearest(centers, rng)
            member = Member(self.value(z), z)
            if best is not None and member.value >= best.value - TINY:
                break
            best = member
            centers = _centers(self.sums, mass, z, self.k)
        assert best is not None
        return self._adopt(best.z, int(rng.randint(2**31)))

    def _adopt(self, z: Int32s, seed: int) -> Member:
        z = _descend(self.problem, self.sums, z, self.k, seed)
        return Member(self.value(z), z)


def _centers(sums: Floats, mass: Floats, z: AnyInts, k: int) -> Floats:
    totals = np.zeros((k, sums.shape[1]))
    np.add.at(totals, z, sums)
    centers: Floats = totals / np.bincount(z, weights=mass, minlength=k)[:, None]
    return centers


def _spread_seeds(rows: Floats, mass: Floats, k: int, rng: np.random.RandomState) -> Ints:
    """Draw seeds with probability by squared distance from those drawn (k-means++)."""
    chosen = [int(rng.choice(mass.size, p=mass / mass.sum()))]
    nearest = squared_distances(rows, rows[chosen]).ravel()
    for _ in range(1, k):
        weight = mass * nearest
        total = weight.sum()
        p = weight / total if total > 0 else mass / mass.sum()
        chosen.append(int(rng.choice(mass.size, p=p)))
        nearest = np.minimum(nearest, squared_distances(rows, rows[chosen[-1:]]).ravel())
    return np.array(chosen)


@njit(cache=True, nogil=True)
def evaluate_means(p: Problem, sums: Floats, z: Int32s, k: int) -> float:
    """Return the sum of squares between vertices, plus the price of violated soft pairs."""
    M = np.zeros((k, sums.shape[1]))
    N = np.zeros(k)
    total = 0.0
    violated = 0.0
    for v in range(z.size):
        N[z[v]] += p.volume[v]
        for j in range(sums.shape[1]):
            M[z[v], j] += sums[v, j]
            total += sums[v, j] * sums[v, j] / p.volume[v]
        for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
            w = p.soft_weight[e]
            together = z[p.soft_indices[e]] == z[v]
            if (w > 0) == together:
                violated += 0.5 * abs(w)
    for c in range(k):
        if N[c] > 0:
            total -= (M[c] * M[c]).sum() / N[c]
    return total + p.gamma * violated


@njit(cache=True, nogil=True)
def _descend(p: Problem, sums: Floats, z: Int32s, k: int, seed: int) -> Int32s:
    """Make gaining moves and chain swaps until there is none (Hartigan's rule)."""
    n = z.size
    s = new_state(p, z, k)
    scratch = new_scratch(n)
    stream = new_stream(seed)
    M = np.zeros((k, sums.shape[1]))
    for i in range(n):
        M[z[i]] += sums[i]
    order = np.arange(n).astype(np.int32)
    for _ in range(MAX_SWEEPS):
        gained = 0.0
        shuffle(order, stream)
        for at_step in range(n):
            v = int(order[at_step])
            here = s.z[v]
            gain, there = _best_move(p, s, scratch, sums, M, v)
            if gain > TINY:
                n_moved = execute(p, s, scratch, v, there)
                for at in range(n_moved):
                    u = scratch.members[at]
                    M[s.z[u]] += sums[u]
                    M[here + there - s.z[u]] -= sums[u]  # the other one of the two
                gained += gain
        if gained <= 0.0:
            break
    return s.z


@njit(cache=True, nogil=True)
def _best_move(
    p: Problem, s: State, scratch: Scratch, sums: Floats, M: Floats, v: int
) -> tuple[float, int]:
    """Return the largest gain of moving `v`, alone or with its chain, and the cluster."""
    a = s.z[v]
    k = s.volume.size
    best = NEVER
    to = -1
    m = p.volume[v]
    leaving = NEVER
    if s.size[a] > p.n_samples[v]:
        leaving = _after(M[a], sums[v], -1.0) / (s.volume[a] - m)
        leaving -= _after(M[a], sums[v], 0.0) / s.volume[a]
    for b in range(k):
        if b == a:
            continue
        if s.Q[v, b] == 0:
            if s.size[a] <= p.n_samples[v]:
                continue
            gain = leaving + _after(M[b], sums[v], 1.0) / (s.volume[b] + m)
            gain -= _after(M[b], sums[v], 0.0) / s.volume[b]
            if p.soft_indices.size > 0:
                gain += p.gamma * (s.R[v, a] - s.R[v, b])
        elif s.Q[v, b] < CHAIN_CAP:
            size = collect_chain(p, s, scratch, v, b, CHAIN_CAP)
            if size == 0:
                continue
            gain = _chain_gain(p, s, scratch, sums, M, size, a, b)
        else:
            continue
        if gain > best:
            best = gain
            to = b
    return best, to


@njit(cache=True, nogil=True)
def _after(total: Floats, row: Floats, sign: float) -> float:
    """Return the squared length of ``total + sign * row``."""
    square = 0.0
    for j in range(row.size):
        x = total[j] + sign * row[j]
        square += x * x
    return square


@njit(cache=True, nogil=True)
def _chain_gain(
    p: Problem,
    s: State,
    scratch: Scratch,
    sums: Floats,
    M: Floats,
    size: int,
    a: int,
    b: int,
) -> float:
    """Return what the objective loses when the collected chain changes places."""
    now = scratch.clock[0]
    flow = np.zeros(sums.shape[1])  # from a to b
    mass = 0.0
    count = 0
    soft = 0.0
    for at in range(size):
        v = scratch.members[at]
        here, there = (a, b) if s.z[v] == a else (b, a)
        sign = 1.0 if here == a else -1.0
        mass += sign * p.volume[v]
        count += p.n_samples[v] if here == a else -p.n_samples[v]
        for j in range(flow.size):
            flow[j] += sign * sums[v, j]
        if p.soft_indices.size > 0:
            soft += s.R[v, here] - s.R[v, there]
            for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
                u = p.soft_indices[e]
                if scratch.mark[u] == now:
                    soft += p.soft_weight[e] if s.z[u] == there else -p.soft_weight[e]
    if s.size[a] - count == 0 or s.size[b] + count == 0:
        return NEVER
    gain = _after(M[a], flow, -1.0) / (s.volume[a] - mass) - _after(M[a], flow, 0.0) / s.volume[a]
    gain += _after(M[b], flow, 1.0) / (s.volume[b] + mass) - _after(M[b], flow, 0.0) / s.volume[b]
    return gain + p.gamma * soft
