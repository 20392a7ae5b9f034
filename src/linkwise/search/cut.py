"""The normalised cut: starts, cycles over coarser graphs, and a small population that recombines.

Every partition on the way satisfies every cannot-link, and no step raises the objective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.search.local_search import Plan, evaluate, refine
from linkwise.search.objective import Colorer, Context, Found, colorer
from linkwise.search.problem import Problem, build_problem, hierarchy
from linkwise.search.starts import embed, mutate_split_merge, spectral_start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Int32s
    from linkwise.search.problem import Groups, Levels

SAME = 1e-9  # partitions whose values differ by less count as one
STARTS_SHARE = 0.4  # of the work that the starts are, about, for those who watch
BATCH = 2  # children made at once, whatever the number of threads: same seed, same answer
LARGE = 5_000  # vertices above which a climb is cut short
HUGE = 20_000  # vertices above which there is one round of climbs
VAST = 200_000  # vertices above which only a thorough search climbs
HUBS_FROM = 2_000  # vertices above which hubs do not climb
# Large graphs in many dimensions have coarse levels in which all vertices are neighbours. A
# climb there costs the square of the degree, and finds nothing: on MNIST (70,000 samples, k = 10)
# and on 100,000 samples of blobs in 16 dimensions (1,000 pairs, effort "fast") the answer is the
# same to the last digit without those climbs, at 1/5 and 1/14 of the time.
DENSE, DENSER = 30.0, 2.0  # mean degree that is dense, also in units of the graph's own

# A climb looks at all neighbours of each vertex that it moves: in a full graph at all vertices, so
# that climbs from a few of them meet the same moves. The climbs of a round cost as much as in a
# graph of this degree. Full graphs of blobs, k = 3: the same cuts, at n = 300 (thorough) in 8 CPU
# seconds and not 25, at 600 (default) in 7 and not 55, at 1,500 (fast) in 3 and not 34.
CLIMB_DEGREE = 60
STEPS_PER_CALL = 10_000_000  # moves looked at in one compiled call, which no interrupt stops

COARSE_FROM = 20_000  # vertices above which a coarse level is searched in place of the graph
COARSE = 5_000  # vertices of that level, besides those that have constraints
# Merged vertices of data in many dimensions have ever more neighbours: of a million samples in 16,
# a level of 6,000 vertices has 1.9 million edges, a quarter of the graph's. It is shrunk further.
EDGES = 500_000  # of a coarse level, while more than the least number of vertices are left
LEAST = 500  # vertices, besides those that have constraints
WORTH_IT = 0.5  # a coarse level with more than this share of the vertices saves nothing


class Effort(NamedTuple):
    """How long to search."""

    population: int
    generations: int
    stall: int  # generations without a new best before giving up
    fruit: int = 30
    rounds: int = 3
    climb_up_to: int = 2**62  # vertices of the largest level with climbs
    dense_from: float = np.inf  # mean degree of a level above which it has no climbs


class Member(NamedTuple):
    """One of the population."""

    value: float
    z: Int32s


def effort_for(name: str, n_vertices: int, k: int, *, mean_degree: float = 0.0) -> Effort:
    """Return the constants of an effort; many clusters need a larger population."""
    dense_from = max(DENSE, DENSER * mean_degree) if n_vertices > LARGE else np.inf
    if name == "fast":
        return Effort(2, 2, 2, fruit=9, rounds=1, climb_up_to=LARGE, dense_from=dense_from)
    if name == "thorough" or (k >= 8 and n_vertices <= LARGE):
        return Effort(12, 40, 20)
    if n_vertices <= LARGE:
        return Effort(6, 20, 10)
    return Effort(3, 4, 4, climb_up_to=VAST, dense_from=dense_from)


def _plan(effort: Effort, problem: Problem, k: int) -> Plan:
    """Return how hard to search at one level."""
    n = problem.n_vertices
    mean_degree = problem.indices.size / max(n, 1)
    hub = int(max(200, 20 * mean_degree)) if n > HUBS_FROM else 2**31
    fruit = min(effort.fruit, 10) if n >= LARGE else effort.fruit
    climbs = n <= effort.climb_up_to and mean_degree <= effort.dense_from
    rounds = min(effort.rounds, 1 if n >= HUGE else 3) if climbs else 0
    # On huge levels most long chains are given up half-way, after touching much memory.
    sweep_cap, climb_cap = (16, 4) if n >= HUGE else (64, 8)
    starts = n if mean_degree <= CLIMB_DEGREE else int(np.ceil(n * CLIMB_DEGREE / mean_degree))
    per_call = max(1, int(STEPS_PER_CALL / (fruit * (1 + mean_degree) * k)))
    return Plan(sweep_cap, climb_cap, rounds, fruit, hub, starts, per_call)


def improve(
    problem: Problem, z: Int32s, rng: np.random.RandomState, *, k: int, effort: Effort
) -> Int32s:
    """Refine a partition on the graph itself."""
    return refine(problem, z, k, _plan(effort, problem, k), int(rng.randint(2**31)))


def refine_up(
    levels: Levels, z: Int32s, rng: np.random.RandomState, *, k: int, effort: Effort
) -> Int32s:
    """Bring a partition of the coarsest level back, and refine it at every level on the way."""
    for fine, parent in reversed(levels.fine):
        z = improve(fine, z[parent], rng, k=k, effort=effort)
    return z


@dataclass(frozen=True, eq=False)
class CutObjective:
    """The normalised cut, or the cut over the mass of the clusters, of a contracted graph."""

    problem: Problem
    k: int
    color: Colorer
    effort: Effort
    unit: float

    @classmethod
    def on(
        cls,
        W: csr_array,
        groups: Groups,
        effort: str = "default",
        *,
        k: int,
        mass: Floats | None = None,
    ) -> CutObjective:
        """Return the objective for the groups of samples of a graph.

        `mass` is at least the degree of each sample; without it, that is the degree.
        """
        n, n_items = W.shape[0], groups.of_sample.size
        unit = k / n
        if mass is not None:
            unit = unit * float(W.sum() - W.diagonal().sum()) / float(mass.sum())
        if n_items > n:
            W, mass = _with_isolated(W, mass, n_items - n)
        problem = build_problem(W, groups, mass=mass)
        mean_degree = problem.indices.size / max(problem.n_vertices, 1)
        constants = effort_for(effort, problem.n_vertices, k, mean_degree=mean_degree)
        return cls(problem, k, colorer(problem, k, groups.feasible), constants, unit)

    def at(self, gamma: float) -> Self:
        """Return the same objective with another penalty of soft pairs."""
        return replace(self, problem=self.problem._replace(gamma=gamma))

    def value(self, z: Int32s) -> float:
        """Return the objective of a partition."""
        return evaluate(self.problem, z, self.k)

    def local_search(
        self,
        z: Int32s,
        rng: np.random.RandomState,
        *,
        other: Int32s | None = None,
        is_refined: bool = False,
    ) -> Int32s:
        """Refine a partition on the graph, then on a cycle of coarser ones; never worse than `z`.

        The cycle shrinks the graph inside the clusters of `z`, and refines at every level on the
        way back. With an `other` partition, inside what both agree on: what they share stays, what
        they differ in is decided on a small graph. Partitions that are refined begin there.
        """
        k, effort = self.k, self.effort
        if not is_refined:
            # The cycle ends on this graph; on a huge one, climbing before it does not pay.
            first = effort._replace(climb_up_to=min(effort.climb_up_to, HUGE))
            plan = _plan(first, self.problem, k)
            z = refine(self.problem, z, k, plan, int(rng.randint(2**31)))
        cells = z if other is None else (z * np.int32(k) + other).astype(np.int32)
        levels = hierarchy(self.problem, cells, max(60, 15 * k), k=k, rng=rng)
        plan = _plan(effort, levels.coarsest, k)
        z = refine(levels.coarsest, levels.down(z), k, plan, int(rng.randint(2**31)))
        return refine_up(levels, z, rng, k=k, effort=effort) if levels.fine else z

    def recombine(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s:
        """Recombine two partitions, from the better one."""
        if self.value(other) < self.value(z):
            z, other = other, z
        return self.local_search(z, rng, other=other, is_refined=True)

    def search(self, context: Context, first: Sequence[Int32s] = ()) -> Found:
        """Return the best partition met: starts, then generations of a small population."""
        rng, limit = context.rng, self.effort.population
        population: list[Member] = []
        generation = stalled = 0
        try:
            vectors = embed(self.problem, self.k, rng)
            tasks = [partial(self._begin, vectors, s, n) for n, s in enumerate(_seeds(rng, limit))]
            more = zip(first, _seeds(rng, len(first)), strict=True)
            tasks += [partial(self._adopt, z, s) for z, s in more]
            for number, member in enumerate(context.run(tasks), 1):
                _insert(population, member, limit)
                done = STARTS_SHARE * number / len(tasks)
                context.log(f"start {number}: best {population[0].value:.6g}", done)
            while generation < self.effort.generations and stalled < self.effort.stall:
                best, parents = population[0].value, list(population)
                children = [partial(self._child, vectors, parents, s) for s in _seeds(rng, BATCH)]
                for member in context.run(children):
                    generation += 1
                    _insert(population, member, limit)
                stalled = 0 if population[0].value < best - SAME else stalled + BATCH
                done = max(generation / self.effort.generations, stalled / self.effort.stall)
                done = STARTS_SHARE + (1 - STARTS_SHARE) * min(done, 1.0)
                context.log(f"generation {generation}: best {population[0].value:.6g}", done)
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            population += [self._member(z) for z in (*first, self.color.feasible)]
            best_member = min(population, key=lambda member: member.value)
            return Found(best_member.z, best_member.value, generation, interrupted=True)
        return Found(population[0].z, population[0].value, generation)

    def _begin(self, vectors: Floats, seed: int, number: int) -> Member:
        """Make one partition from k-means in the embedding."""
        rng = np.random.RandomState(seed)
        z = spectral_start(
            vectors, self.problem.volume, rng, color=self.color, k=self.k, unit=number % 2 == 0
        )
        return self._adopt(z, int(rng.randint(2**31)))

    def _adopt(self, z: Int32s, seed: int) -> Member:
        return self._member(self.local_search(z, np.random.RandomState(seed)))

    def _member(self, z: Int32s) -> Member:
        return Member(self.value(z), z)

    def _child(self, vectors: Floats, population: list[Member], seed: int) -> Member:
        """Make one new partition from the population."""
        rng = np.random.RandomState(seed)
        parent = population[rng.randint(len(population))].z
        chance = rng.uniform()
        if self.k > 2 and chance < 0.4:
            z = mutate_split_merge(self.problem, parent, vectors, color=self.color, rng=rng)
            return self._adopt(z, int(rng.randint(2**31)))
        if len(population) > 1 and chance < 0.8:
            one, two = rng.choice(len(population), 2, replace=False)
            return self._member(self.recombine(population[one].z, population[two].z, rng))
        return self._member(self.local_search(parent, rng, is_refined=True))

    def coarse_level(
        self, rng: np.random.RandomState, first: Sequence[Int32s] = ()
    ) -> tuple[Self, Levels] | None:
        """Merge neighbours until some thousand vertices are left; None for what is not large.

        Vertices with pairs stay by themselves, so that what was feasible stays so, and no penalty
        of a pair is lost inside a vertex. Nothing is merged across the partitions `first`.
        """
        problem, k = self.problem, self.k
        n = problem.n_vertices
        if n <= COARSE_FROM:
            return None
        linked = np.flatnonzero(np.diff(problem.apart_indptr) + np.diff(problem.soft_indptr))
        cells = np.zeros(n, np.int32)
        for z in first:
            cells = np.unique(cells * np.int64(k) + z, return_inverse=True)[1].astype(np.int32)
        cells[linked] = int(cells.max()) + 1 + np.arange(linked.size)
        levels = hierarchy(problem, cells, COARSE + linked.size, k=k, rng=rng)
        more, small = levels.fine, levels.coarsest
        while more and small.indices.size > 2 * EDGES and small.n_vertices > LEAST + linked.size:
            # One level at a time.
            more, small = hierarchy(small, levels.down(cells), small.n_vertices - 1, k=k, rng=rng)
            levels = levels._replace(fine=levels.fine + more, coarsest=small)
        if small.n_vertices > WORTH_IT * n:
            return None
        color = colorer(small, k, levels.down(self.color.feasible))
        return replace(self, problem=small, color=color), levels


def _with_isolated(
    W: csr_array, mass: Floats | None, n_more: int
) -> tuple[csr_array, Floats | None]:
    """Add isolated vertices without mass."""
    n = W.shape[0] + n_more
    indptr = np.concatenate((W.indptr, np.full(n_more, W.indptr[-1], W.indptr.dtype)))
    graph = csr_array((W.data, W.indices, indptr), shape=(n, n))
    return graph, mass if mass is None else np.concatenate((mass, np.zeros(n_more)))


def _seeds(rng: np.random.RandomState, n: int) -> list[int]:
    seeds: list[int] = rng.randint(2**31, size=n).tolist()
    return seeds


def _insert(population: list[Member], member: Member, limit: int) -> None:
    """Keep the best in order; of those with nearly the same value, the better one."""
    same = [other for other in population if abs(member.value - other.value) < SAME]
    if any(other.value <= member.value for other in same):
        return
    population[:] = [other for other in population if all(other is not twin for twin in same)]
    population.append(member)
    population.sort(key=lambda m: m.value)
    del population[limit:]
