"""The survey of `Auto`: who learns from what, what is held back, how many clusters there are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.clusters import (
    Choice,
    choose,
    gap_prior,
    least_clusters,
    range_of_clusters,
)
from linkwise.auto.consensus import doubted, likelihood
from linkwise.auto.expert import Ridge
from linkwise.auto.places import MANY_ROWS, Places, find_places
from linkwise.auto.pool import Pool, Trial, survey
from linkwise.auto.propagation import Pairs, flip_rate
from linkwise.auto.rehearsal import deal
from linkwise.auto.task import Task, labelled_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Bools, Floats, Int32s, Ints
    from linkwise.auto.bases import Bases
    from linkwise.constraints import Constraints
    from linkwise.search.objective import Report, Run


# Parts of the constraints that are held back in turn: usually, in a quick survey, of many samples.
N_FOLDS, QUICK_FOLDS, FEW_FOLDS = 5, 3, 2
NUMBERS = 2.0  # log-likelihood that makes a number of clusters e times as probable
FREE_WEIGHT = 0.3  # of a sample that nothing is said about, beside one with a pair
FREE_ROWS = 20_000  # samples without constraints that experts learn from
FREE_SHARE = 4.0  # their weight, at most, beside that of the samples with constraints
LABELLED_ROWS = 20_000  # samples with a label and no pair that experts learn from
LABELLED_LEAST = 50  # of each label, if there are so many


class Said(NamedTuple):
    """How every pair, then every label, is predicted by the others."""

    probability: Floats
    belief: Floats

    def wrong(self, noise: float) -> Floats:
        """Return the probability of each one to be wrong, at a rate of wrong ones."""
        flip, said = flip_rate(self.belief, noise), self.probability
        wrong: Floats = flip * (1 - said) / np.maximum(doubted(*self, noise), 1e-300)
        return wrong

    def best_score(self) -> float:
        """Return the mean log-likelihood at the rate of wrong constraints that explains it best."""
        noise = likelihood(*self)[1]
        return float(np.log(doubted(*self, noise)).mean()) if self.belief.size else 0.0


class Found(NamedTuple):
    """The outcome of a survey."""

    k: int
    rows: Ints  # samples that the experts learnt from
    heard: Constraints  # what they learnt
    task: Task
    pool: Pool

    def held_out(self) -> Said:
        """Return how constraints are predicted that were held back; or given the others."""
        said = self.tested(self.pool.foretold)
        return said if said.belief.size else Said(self.pool.settled.said, self.task.belief)

    def tested(self, probability: Floats) -> Said:
        """Return predictions of the constraints that were held back."""
        tested = np.isfinite(probability)
        return Said(probability[tested], self.task.belief[tested])


class Survey(NamedTuple):
    """A survey of experts, for any number of clusters."""

    bases: Bases
    heard: Constraints
    seed: int
    run: Run

    def __call__(self, k: int, report: Report | None = None, *, quick: bool = False) -> Found:
        """Return what the experts say with `k` clusters."""
        rng = np.random.RandomState(self.seed)
        rows = _rows(self.heard, rng)
        bases = self.bases.for_clusters(k)
        task = _task(bases, self.heard, rows, k)
        places = find_places(bases, self.heard, rows, seed=self.seed, quick=quick)
        starts = places.starts(self.heard, self.seed)
        trials = self._trials(task, places, QUICK_FOLDS if quick else N_FOLDS)
        pool = survey(task, starts, self.run, report, trials=trials, quick=quick)
        return Found(k, rows, self.heard, task, pool)

    def _trials(self, task: Task, places: Places, n_folds: int) -> Iterator[Trial]:
        """Yield what is held back, and where to begin without it."""
        if places.rows.size > MANY_ROWS:
            n_folds = FEW_FOLDS
        for held in deal(task, n_folds, np.random.RandomState(self.seed)):
            yield Trial(held, list(places.starts(_without(self.heard, held), self.seed)))


def _without(constraints: Constraints, held: Bools) -> Constraints:
    """Return the constraints that are not held back."""
    pairs, labels = np.split(held, [constraints.n_pairs])
    told = constraints.subset(~pairs)
    if constraints.labels is None:
        return told
    known = constraints.labels.copy()
    known[labelled_samples(constraints)[0][labels]] = -1
    return replace(told, labels=known)


def heard_constraints(constraints: Constraints, seed: int) -> Constraints:
    """Return the constraints without those labels that would be too many to learn from."""
    labelled, label = labelled_samples(constraints)
    if labelled.size <= LABELLED_ROWS:
        return constraints
    mixed = np.random.RandomState(seed).permutation(labelled.size)
    mixed = mixed[np.argsort(label[mixed], kind="stable")]
    sizes = np.bincount(label)
    rank = np.arange(mixed.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Some of every label first; then all in proportion.
    plenty = rank >= LABELLED_LEAST
    turn = np.where(plenty, rank / np.repeat(sizes, sizes), rank)
    kept = mixed[np.lexsort((turn, plenty))[:LABELLED_ROWS]]
    labels = np.full(constraints.n_samples, -1)
    labels[labelled[kept]] = label[kept]
    return replace(constraints, labels=labels)


def _rows(constraints: Constraints, rng: np.random.RandomState) -> Ints:
    """Return the samples that experts learn from: those with constraints, and enough others."""
    free = np.flatnonzero(~constraints.constrained)
    if free.size > FREE_ROWS:
        free = rng.choice(free, FREE_ROWS, replace=False)
    return np.sort(np.concatenate((np.flatnonzero(constraints.constrained), free)))


def _task(bases: Bases, constraints: Constraints, rows: Ints, k: int) -> Task:
    told = constraints.constrained
    weights = np.where(told[rows], 1.0, FREE_WEIGHT)
    n_free, n_told = int((~told).sum()), int(told.sum())
    if rows.size < told.size:
        each = FREE_WEIGHT * n_free / FREE_ROWS
        weights[~told[rows]] = min(each, max(FREE_SHARE * n_told / FREE_ROWS, FREE_WEIGHT))
    features = bases.features(rows)
    ridges = {name: Ridge.of(features[name], bases.penalty(name), weights) for name in bases.names}
    vertices = np.flatnonzero(told[rows])
    place = np.full(told.size, -1, np.int32)
    place[rows[vertices]] = np.arange(vertices.size)
    labelled, label = labelled_samples(constraints)
    return Task(
        ridges,
        weights,
        vertices,
        _pairs(constraints, place),
        place[labelled].astype(np.intp),
        label,
        k,
    )


def _pairs(constraints: Constraints, place: Int32s) -> Pairs:
    must, cannot = constraints.must_link, constraints.cannot_link
    return Pairs(
        place[np.concatenate((must, cannot))].reshape(-1, 2),
        np.repeat([True, False], [len(must), len(cannot)]),
        np.concatenate((constraints.must_link_belief, constraints.cannot_link_belief)),
    )


def choose_clusters(about: Survey) -> Choice:
    """Return how probable each number of clusters is."""
    bases, constraints = about.bases, about.heard
    numbers = range_of_clusters(least_clusters(constraints, bases.n_samples), bases.n_samples)
    prior = gap_prior(bases.graphs["graph"].values, numbers)
    scores = np.zeros(len(numbers))
    if not constraints.is_empty and len(numbers) > 1:
        for at, k in enumerate(numbers):
            found = about(k, quick=True)
            pool = found.pool
            if pool.interrupted:
                raise KeyboardInterrupt  # there is no answer yet
            scores[at] = likelihood(*found.held_out())[0] / NUMBERS
            if at and np.unique(pool.settled.probability.argmax(axis=1)).size < k:
                scores[at] = -np.inf  # this is an answer with fewer clusters
    return choose(numbers, scores, prior)


def most_clusters(constraints: Constraints, n_clusters: int | str, n: int) -> int:
    """Return the largest number of clusters that may be asked for."""
    if not isinstance(n_clusters, str):
        return int(n_clusters)
    return range_of_clusters(least_clusters(constraints, n), n)[-1]
