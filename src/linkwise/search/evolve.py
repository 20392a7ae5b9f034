"""The search: starts, cycles over coarser graphs, and a small population that recombines.

Every partition on the way satisfies every cannot-link, and no step raises the objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.search.coarsen import hierarchy
from linkwise.search.moves import evaluate
from linkwise.search.refine import Plan, refine
from linkwise.search.starts import Colorer, embed, mutate_split_merge, spectral_start

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s
    from linkwise.search.problem import Problem


__all__ = [
    "CutSearch",
    "Effort",
    "Found",
    "Member",
    "Report",
    "Run",
    "cycle",
    "effort_for",
    "improve",
    "keep_best",
    "run_here",
    "workers",
]

SAME = 1e-9  # partitions whose values differ by less count as one
BATCH = 2  # children made at once, whatever the number of threads: same seed, same answer
LARGE = 5_000  # vertices above which a climb is cut short
HUGE = 20_000  # vertices above which there is one round of climbs
VAST = 200_000  # vertices above which only a thorough search climbs
HUBS_FROM = 2_000  # vertices above which hubs do not climb
# Large graphs in many dimensions have coarse copies in which everyone is everyone's neighbour. A
# climb there costs the square of the degree, and finds nothing: on MNIST (70,000 samples, k = 10)
# and on 100,000 samples of blobs in 16 dimensions (1,000 pairs, effort "fast") the answer is the
# same to the last digit without those climbs, at 1/5 and 1/14 of the time.
DENSE, DENSER = 30.0, 2.0  # mean degree that is dense, also in units of the graph's own


class Effort(NamedTuple):
    """How long to search."""

    population: int
    generations: int
    stall: int  # generations without a new best before giving up
    fruit: int = 30
    rounds: int = 3
    climb_up_to: int = 2**62  # vertices of the largest level with climbs
    dense_from: float = np.inf  # mean degree of a level above which it has no climbs


class Found(NamedTuple):
    """The best partition of a search."""

    z: Int32s
    value: float
    n_generations: int
    interrupted: bool = False


class Member(NamedTuple):
    """One of the population."""

    value: float
    z: Int32s


def effort_for(name: str, n_vertices: int, k: int, mean_degree: float = 0.0) -> Effort:
    """Return the constants of an effort; many clusters need a larger population."""
    dense_from = max(DENSE, DENSER * mean_degree) if n_vertices > LARGE else np.inf
    if name == "fast":
        return Effort(2, 2, 2, fruit=9, rounds=1, climb_up_to=LARGE, dense_from=dense_from)
    if name == "thorough" or (k >= 8 and n_vertices <= LARGE):
        return Effort(12, 40, 20)
    if n_vertices <= LARGE:
        return Effort(6, 20, 10)
    return Effort(3, 4, 4, climb_up_to=VAST, dense_from=dense_from)


def _plan(effort: Effort, problem: Problem) -> Plan:
    n = problem.n_vertices
    mean_degree = problem.indices.size / max(n, 1)
    hub = int(max(200, 20 * mean_degree)) if n > HUBS_FROM else 2**31
    fruit = min(effort.fruit, 10) if n >= LARGE else effort.fruit
    climbs = n <= effort.climb_up_to and mean_degree <= effort.dense_from
    rounds = min(effort.rounds, 1 if n >= HUGE else 3) if climbs else 0
    # On huge levels most long chains are given up half-way, at the price of the memory they touch.
    sweep_cap, climb_cap = (16, 4) if n >= HUGE else (64, 8)
    return Plan(sweep_cap, climb_cap, rounds, fruit, hub)


def improve(
    problem: Problem, z: Int32s, k: int, effort: Effort, rng: np.random.RandomState
) -> Int32s:
    """Refine a partition on the graph itself."""
    return refine(problem, z, k, _plan(effort, problem), int(rng.randint(2**31)))


def cycle(
    problem: Problem,
    z: Int32s,
    k: int,
    effort: Effort,
    rng: np.random.RandomState,
    *,
    other: Int32s | None = None,
) -> Int32s:
    """Shrink the graph inside the clusters of `z`, and refine at every size on the way back.

    With an `other` partition, inside what both agree on: what they share stays, what they
    differ in is decided on a small graph. Never worse than `z`.
    """
    cells = z if other is None else (z * np.int32(k) + other).astype(np.int32)
    levels, coarsest = hierarchy(problem, cells, max(60, 15 * k), k, rng)
    labels = [z]
    for _, parent in levels:
        coarse = np.empty(int(parent.max()) + 1, np.int32)
        coarse[parent] = labels[-1]
        labels.append(coarse)
    refined = improve(coarsest, labels[-1], k, effort, rng)
    for fine, parent in reversed(levels):
        refined = improve(fine, refined[parent], k, effort, rng)
    return refined


Report = Callable[[str], None]
Task = Callable[[], Any]
Run = Callable[[Sequence[Task]], Iterable[Any]]


def run_here(tasks: Sequence[Task]) -> Iterator[Any]:
    """Run tasks one after the other."""
    return (task() for task in tasks)


@contextmanager
def workers(n_jobs: int) -> Iterator[Run]:
    """Yield what runs tasks: one after the other, or in threads (the kernels release the lock)."""
    if n_jobs == 1:
        yield run_here
        return
    with ThreadPoolExecutor(n_jobs) as pool:

        def run(tasks: Sequence[Task]) -> Iterator[Any]:
            futures = [pool.submit(task) for task in tasks]
            try:
                for future in futures:
                    yield future.result()
            finally:
                # After an interrupt nobody waits for what has not begun.
                for future in futures:
                    future.cancel()

        yield run


class CutSearch(NamedTuple):
    """The normalised cut as a landscape to search."""

    problem: Problem
    k: int
    color: Colorer
    effort: Effort

    def at(self, gamma: float) -> CutSearch:
        """Return the same landscape with another price of soft pairs."""
        return self._replace(problem=self.problem._replace(gamma=gamma))

    def value(self, z: Int32s) -> float:
        """Return the objective of a partition."""
        return evaluate(self.problem, z, self.k)

    def polish(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Refine a partition on the graph, then on a whole cycle of coarser ones."""
        # The cycle ends on this graph; on a huge one, climbing before it as well does not pay.
        first = self.effort._replace(climb_up_to=min(self.effort.climb_up_to, HUGE))
        z = improve(self.problem, z, self.k, first, rng)
        return cycle(self.problem, z, self.k, self.effort, rng)

    def cross(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s:
        """Recombine two partitions, from the better one."""
        if self.value(other) < self.value(z):
            z, other = other, z
        return cycle(self.problem, z, self.k, self.effort, rng, other=other)

    def search(
        self,
        rng: np.random.RandomState,
        run: Run,
        first: Sequence[Int32s] = (),
        report: Report | None = None,
    ) -> Found:
        """Return the best partition met: starts, then generations of a small population.

        `first` are partitions to begin with besides the usual starts. Interrupting returns the
        best so far, which may be no more than feasible.
        """
        population: list[Member] = []
        generation = 0
        limit = self.effort.population
        try:
            vectors = embed(self.problem, self.k, rng)
            tasks = [partial(self._begin, vectors, s, n) for n, s in enumerate(_seeds(rng, limit))]
            more = zip(first, _seeds(rng, len(first)), strict=True)
            tasks += [partial(self._adopt, z, s) for z, s in more]
            for member in run(tasks):
                _insert(population, member, limit)
                _tell(report, "start", len(population), population)
            stalled = 0
            while generation < self.effort.generations and stalled < self.effort.stall:
                best = population[0].value
                parents = list(population)
                for member in run(
                    [partial(self._child, vectors, parents, s) for s in _seeds(rng, BATCH)]
                ):
                    generation += 1
                    _insert(population, member, limit)
                stalled = 0 if population[0].value < best - SAME else stalled + BATCH
                _tell(report, "generation", generation, population)
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            known = [self._member(z) for z in (*first, self.color.known)]
            best_member = min((*population, *known), key=lambda member: member.value)
            return Found(best_member.z, best_member.value, generation, interrupted=True)
        return Found(population[0].z, population[0].value, generation)

    def _begin(self, vectors: Floats, seed: int, number: int) -> Member:
        rng = np.random.RandomState(seed)
        z = spectral_start(
            self.problem, vectors, self.k, self.color, rng, unit_rows=number % 2 == 0
        )
        return self._adopt(z, int(rng.randint(2**31)))

    def _adopt(self, z: Int32s, seed: int) -> Member:
        return self._member(self.polish(z, np.random.RandomState(seed)))

    def _member(self, z: Int32s) -> Member:
        return Member(self.value(z), z)

    def _child(self, vectors: Floats, population: list[Member], seed: int) -> Member:
        """Make one new partition from the population."""
        rng = np.random.RandomState(seed)
        parent = population[rng.randint(len(population))].z
        chance = rng.uniform()
        if self.k > 2 and chance < 0.4:
            z = mutate_split_merge(self.problem, parent, vectors, self.color, rng)
            return self._adopt(z, int(rng.randint(2**31)))
        if len(population) > 1 and chance < 0.8:
            one, two = rng.choice(len(population), 2, replace=False)
            return self._member(self.cross(population[one].z, population[two].z, rng))
        return self._member(cycle(self.problem, parent, self.k, self.effort, rng))


def keep_best(
    run: Run, tasks: Sequence[Task], known: Callable[[], Member], report: Report | None
) -> Found:
    """Run independent tasks; return the best, also when interrupted, or else what is known."""
    population: list[Member] = []
    n_done = 0
    try:
        for member in run(tasks):
            n_done += 1
            _insert(population, member, 1)
            _tell(report, "start", n_done, population)
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        best = population[0] if population else known()
        return Found(best.z, best.value, n_done, interrupted=True)
    return Found(population[0].z, population[0].value, n_done)


def _seeds(rng: np.random.RandomState, n: int) -> list[int]:
    seeds: list[int] = rng.randint(2**31, size=n).tolist()
    return seeds


def _tell(report: Report | None, stage: str, number: int, population: list[Member]) -> None:
    if report is not None:
        report(f"{stage} {number}: best {population[0].value:.6g}")


def _insert(population: list[Member], member: Member, limit: int) -> None:
    """Keep the best in order; of those with the same value, the one that is best by a hair."""
    same = [other for other in population if abs(member.value - other.value) < SAME]
    if any(other.value <= member.value for other in same):
        return
    population[:] = [other for other in population if all(other is not twin for twin in same)]
    population.append(member)
    population.sort(key=lambda m: m.value)
    del population[limit:]
