"""What a search minimises, what it works with, and partitions that satisfy every constraint.

Three objectives follow one protocol: the normalised cut (:mod:`linkwise.search.cut`), the sum of
squares (:mod:`linkwise.search.means`), and the 1-spectral cut, in two clusters
(:mod:`linkwise.search.bisection`) or more (:mod:`linkwise.search.recursion`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from operator import call
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment

from linkwise._progress import Report, part
from linkwise.constraints.coloring import CannotLinkGraph, Peeling, guided_coloring, peel
from linkwise.constraints.feasible import feasible_groups, require_coloring
from linkwise.constraints.table import symmetric_matrix
from linkwise.exceptions import ConvergenceWarning
from linkwise.search.problem import Groups, merge_for_two

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s, Int64s, Ints
    from linkwise.constraints import Constraints
    from linkwise.search.problem import Problem

Run = Callable[[Sequence[Callable[[], Any]]], Iterable[Any]]
run_here: Run = partial(map, call)  # tasks one after the other


@contextmanager
def workers(n_jobs: int) -> Iterator[Run]:
    """Yield what runs tasks: one after the other, or in threads (the kernels release the lock)."""
    if n_jobs == 1:
        yield run_here
        return
    with ThreadPoolExecutor(n_jobs) as pool:

        def run(tasks: Sequence[Callable[[], Any]]) -> Iterator[Any]:
            futures = [pool.submit(task) for task in tasks]
            try:
                for future in futures:
                    yield future.result()
            finally:
                # After an interrupt, tasks that have not begun are dropped.
                for future in futures:
                    future.cancel()

        yield run


class Context(NamedTuple):
    """Random numbers, threads and messages of a search."""

    rng: np.random.RandomState
    run: Run = run_here
    report: Report | None = None

    def log(self, line: str, share: float | None = None) -> None:
        """Report progress: the share of the work that is done, None for "as before"."""
        if self.report is not None:
            self.report(share, line)

    def part(self, first: float, last: float) -> Context:
        """Return the same for a part of the work, which reports shares of that part."""
        report = None if self.report is None else part(self.report, first, last)
        return self._replace(report=report)


class Found(NamedTuple):
    """The best partition of a search."""

    z: Int32s
    value: float
    n_generations: int
    interrupted: bool = False


class Objective(Protocol):
    """A function of partitions with a penalty of violated soft pairs, and ways to lower it.

    Every partition that it returns satisfies every certain constraint.
    """

    @property
    def unit(self) -> float:
        """The penalty of strength 1: half of what it costs to misplace an average sample."""

    def at(self, gamma: float) -> Objective:
        """Return the same objective with another penalty."""

    def value(self, z: Int32s) -> float:
        """Return the objective of a partition."""

    def local_search(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Return a partition near `z` that is no worse."""

    def recombine(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s:
        """Return a partition no worse than the better one of two."""

    def search(self, context: Context, first: Sequence[Int32s] = ()) -> Found:
        """Return the best partition met, from the usual starts and those in `first`.

        Interrupting returns the best so far, which may be no more than feasible.
        """


# Builds the objective on the partitions that constraints leave open, for an effort.
Build = Callable[["Groups", str], Objective]


class Colorer(NamedTuple):
    """Turns costs of clusters into feasible partitions."""

    graph: CannotLinkGraph
    peeling: Peeling
    feasible: Int32s  # a feasible partition, for when the guided one fails
    n_samples: Int64s  # of each vertex

    def __call__(self, cost: Floats, rng: np.random.RandomState) -> Int32s:
        """Return a feasible partition with low cost, every cluster non-empty."""
        found = guided_coloring(self.graph, cost, rng, peeling=self.peeling)
        colors = found.colors if found.n_left == 0 else _recolored(self.feasible, cost)
        return _with_samples(colors, cost, self.n_samples)


def colorer(problem: Problem, k: int, feasible: Int32s) -> Colorer:
    """Prepare colouring the cannot-links of a problem, of which one solution is given."""
    graph = CannotLinkGraph(problem.apart_indptr, problem.apart_indices)
    return Colorer(graph, peel(graph, k), feasible, problem.n_samples)


def _with_samples(colors: Int32s, cost: Floats, count: Int64s) -> Int32s:
    """Give each cluster that holds nothing but anchors the sample that is cheapest for it.

    Where there are anchors, samples have no cannot-links.
    """
    k = cost.shape[1]
    if count.all():
        return colors
    for c in np.flatnonzero(np.bincount(colors, weights=count, minlength=k) == 0):
        size = np.bincount(colors, weights=count, minlength=k)
        can_go = (count > 0) & (size[colors] > count)
        extra = np.where(can_go, cost[:, c] - cost[np.arange(colors.size), colors], np.inf)
        colors[int(extra.argmin())] = c
    return colors


def _recolored(feasible: Int32s, cost: Floats) -> Int32s:
    """Permute the clusters of a partition so that they cost least."""
    k = cost.shape[1]
    totals = np.array([cost[feasible == c].sum(axis=0) for c in range(k)])
    _, names = linear_sum_assignment(totals)
    renamed: Int32s = names.astype(np.int32)[feasible]
    return renamed


class Task(NamedTuple):
    """The objective to minimise, over which partitions, and how."""

    build: Build
    constraints: Constraints
    k: int
    context: Context
    effort: str = "default"


class Answer(NamedTuple):
    """Labels of samples, and how the search for them went."""

    labels: Ints
    n_iter: int
    interrupted: bool = False


def certain_groups(constraints: Constraints, k: int, rng: np.random.RandomState) -> Groups:
    """Return what certain constraints leave open, and one feasible partition of it.

    Raises ConflictError if there is none, or none was found.
    """
    found = feasible_groups(constraints, k)
    colors = require_coloring(constraints, k, rng, groups=found).colors
    uncertain = constraints.table.kept(constraints.table.belief < 1)
    soft = symmetric_matrix(uncertain.pairs, uncertain.weight, constraints.n_samples)
    groups = Groups(found.component.astype(np.int32), found.n_groups, found.graph, soft, colors)
    return merge_for_two(groups) if k == 2 else groups


def hard_labels(task: Task, strength: float, *, check: bool = True) -> Answer:
    """Return a partition that satisfies every certain constraint, or raise ConflictError.

    Pairs of lower belief are soft, with the penalty `strength`. With `check`, the labels are
    counted on the constraints as they were given, whatever the search found.
    """
    context = task.context
    groups = certain_groups(task.constraints, task.k, context.rng)
    objective = task.build(groups, task.effort)
    found = objective.at(strength * objective.unit).search(context)
    labels = found.z[groups.of_sample].astype(np.intp)
    if check:
        assert_satisfied(task.constraints, labels)
    return Answer(labels, found.n_generations, found.interrupted)


def assert_satisfied(constraints: Constraints, labels: Ints) -> None:
    """Raise AssertionError if labels violate a certain constraint: the search has an error."""
    n_violated = constraints.certain.n_violated(labels)
    if n_violated:
        message = f"{n_violated} certain constraints are violated: this is an error in linkwise."
        raise AssertionError(message)


def warn_interrupted() -> None:
    """Warn that the answer is the best so far."""
    message = "The search was interrupted; this is the best partition found until then."
    warnings.warn(message, ConvergenceWarning, stacklevel=2)
