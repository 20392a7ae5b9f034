"""The sum of squares: the same moves and chains as for the cut, in constrained k-means.

A vertex is a must-link group: its number of samples and the sum of their rows. With the sum `M`
and the number `N` of each cluster, the sum of squares is a constant minus ``sum_c |M_c|^2 / N_c``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise._jit import njit
from linkwise._kernels import new_stream, shuffle
from linkwise.constraints.coloring.kernels import Scratch, kempe_chain, new_scratch
from linkwise.partition import spread_seeds
from linkwise.search.local_search import NEVER, State, execute, new_state
from linkwise.search.objective import Context, Found, colorer
from linkwise.search.problem import Problem, edgeless_problem
from linkwise.search.starts import squared_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import AnyInts, Floats, Int32s
    from linkwise.search.objective import Colorer
    from linkwise.search.problem import Groups


TINY = 1e-13  # gains below this are rounding
MAX_SWEEPS = 200
CHAIN_CAP = 64
STARTS = {"fast": 4, "default": 20, "thorough": 60}
LARGE = 20_000  # vertices above which fewer starts are made
ANCHOR_MASS = 1e-9


@dataclass(frozen=True, eq=False)
class MeansObjective:
    """The sum of squares: a problem without edges, and the rows of its vertices.

    Values are shares of the total sum of squares.
    """

    problem: Problem  # cannot-links and soft pairs; volume is the number of samples
    sums: Floats  # sum of the rows of each vertex, over the root of the total sum of squares
    within: float  # sum of squares inside vertices, a share of the total
    k: int
    color: Colorer
    n_starts: int
    unit: float

    @classmethod
    def on(cls, rows: Floats, groups: Groups, effort: str = "default", *, k: int) -> MeansObjective:
        """Return the objective for the groups of samples; `rows` are from `scaled_rows`."""
        n_samples = rows.shape[0]
        mass = np.full(groups.of_sample.size, ANCHOR_MASS)
        mass[:n_samples] = 1.0
        problem = edgeless_problem(groups, mass)
        members = csr_array(
            (np.ones(n_samples), (groups.of_sample[:n_samples], np.arange(n_samples))),
            shape=(groups.n_groups, n_samples),
        )
        sums: Floats = np.ascontiguousarray(members @ rows)
        within = float((rows**2).sum() - ((sums**2).sum(axis=1) / problem.volume).sum())
        n_starts = STARTS[effort]
        if problem.n_vertices > LARGE:
            n_starts = max(2, n_starts // 5)
        color = colorer(problem, k, groups.feasible)
        return cls(problem, sums, max(within, 0.0), k, color, n_starts, 1.0 / n_samples)

    def at(self, gamma: float) -> MeansObjective:
        """Return the same objective with another penalty of soft pairs."""
        return replace(self, problem=self.problem._replace(gamma=gamma))

    def value(self, z: Int32s) -> float:
        """Return the objective of a partition."""
        return self.within + evaluate_means(self.problem, self.sums, z, self.k)

    def local_search(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Descend from a partition."""
        return _descend(self.problem, self.sums, z, self.k, int(rng.randint(2**31)))

    def recombine(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s:
        """Return the better of two partitions; centres do not recombine."""
        del rng
        return z if self.value(z) <= self.value(other) else other

    def search(self, context: Context, first: Sequence[Int32s] = ()) -> Found:
        """Return the best of many starts."""
        seeds = context.rng.randint(2**31, size=self.n_starts).tolist()
        tasks = [partial(self._begin, seed) for seed in seeds]
        tasks += [partial(self._descended, z, 0) for z in first]
        best: Found | None = None
        n_done = 0
        try:
            for z, value in context.run(tasks):
                n_done += 1
                if best is None or value < best.value:
                    best = Found(z, value, n_done)
                context.log(f"start {n_done}: best {best.value:.6g}", n_done / len(tasks))
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            feasible = self.color.feasible
            best = best or Found(feasible, self.value(feasible), n_done)
            return best._replace(n_generations=n_done, interrupted=True)
        assert best is not None
        return best._replace(n_generations=n_done)

    def nearest(self, centers: Floats, rng: np.random.RandomState) -> Int32s:
        """Return a feasible partition with vertices near their centres."""
        mass = self.problem.volume
        rows = self.sums / mass[:, None]
        return self.color(mass[:, None] * squared_distances(rows, centers), rng)

    def _begin(self, seed: int) -> tuple[Int32s, float]:
        """Run Lloyd's algorithm with a feasible assignment from random centres, then descend."""
        rng = np.random.RandomState(seed)
        mass = self.problem.volume
        rows = self.sums / mass[:, None]
        centers = rows[spread_seeds(rows, self.k, rng, mass=mass)]
        z, lowest = self.color.feasible, np.inf
        for _ in range(50):
            nearest = self.nearest(centers, rng)
            value = self.value(nearest)
            if value >= lowest - TINY:
                break
            z, lowest = nearest, value
            centers = mean_rows(self.sums, mass, z, k=self.k)
        return self._descended(z, int(rng.randint(2**31)))

    def _descended(self, z: Int32s, seed: int) -> tuple[Int32s, float]:
        z = _descend(self.problem, self.sums, z, self.k, seed)
        return z, self.value(z)


def scaled_rows(X: Floats) -> tuple[Floats, float]:
    """Return rows centred and scaled to a total sum of squares of 1, and the total before."""
    rows = X - X.mean(axis=0)
    largest = float(np.abs(rows).max(initial=0.0))
    # Squares of the rows as given may overflow or vanish.
    rows = rows / largest if largest > 0 else rows
    total = float((rows**2).sum())
    with np.errstate(over="ignore"):
        unit = float(np.square(largest))  # infinite where squares are
    return rows / np.sqrt(total) if total > 0 else rows, total * unit


def mean_rows(sums: Floats, mass: Floats, z: AnyInts, *, k: int) -> Floats:
    """Return the centre of each cluster."""
    totals = np.column_stack([np.bincount(z, column, minlength=k) for column in sums.T])
    centers: Floats = totals / np.bincount(z, weights=mass, minlength=k)[:, None]
    return centers


@njit(cache=True, nogil=True)
def evaluate_means(p: Problem, sums: Floats, z: Int32s, k: int) -> float:
    """Return the sum of squares between vertices, plus the penalty of violated soft pairs."""
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
            if (w > 0) != together:
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
                gain += p.gamma * (s.R[v, b] - s.R[v, a])
        elif s.Q[v, b] < CHAIN_CAP:
            size = kempe_chain(p.apart_indptr, p.apart_indices, s.z, v, b, CHAIN_CAP, scratch)
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
            soft += s.R[v, there] - s.R[v, here]
            for e in range(p.soft_indptr[v], p.soft_indptr[v + 1]):
                u = p.soft_indices[e]
                if scratch.mark[u] == now:
                    soft += p.soft_weight[e] if s.z[u] == here else -p.soft_weight[e]
    if s.size[a] - count == 0 or s.size[b] + count == 0:
        return NEVER
    gain = _after(M[a], flow, -1.0) / (s.volume[a] - mass) - _after(M[a], flow, 0.0) / s.volume[a]
    gain += _after(M[b], flow, 1.0) / (s.volume[b] + mass) - _after(M[b], flow, 0.0) / s.volume[b]
    return gain + p.gamma * soft
