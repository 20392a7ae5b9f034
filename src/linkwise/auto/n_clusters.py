"""How many clusters: what the constraints require, what the spectrum suggests, what predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import softmax

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.auto.coarse_cut import coarse_cuts
from linkwise.auto.consensus import EPS, ERROR_RATE, TRUST, centred_mean, softened
from linkwise.auto.constraint_model import ConstraintModel, log_likelihood
from linkwise.auto.evidence import Prediction, held_out_probability, make_folds, without_held
from linkwise.auto.views import representative_rows
from linkwise.exceptions import ConflictError
from linkwise.partition import kmeans

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats
    from linkwise.auto.bases import Bases
    from linkwise.constraints import Constraints


MOST = 12  # clusters that are considered
MORE = 4  # clusters considered beyond the least that the constraints require
N_COARSE, N_FOLDS = 3, 3  # micro-clusterings and folds for each number
PENALTIES = (0.05, 0.2)  # of a violated pair; the better one counts
NUMBERS = 2.0  # log-likelihood that makes a number of clusters e times as probable


class Choice(NamedTuple):
    """Numbers of clusters, and how probable each is."""

    best: int  # the most probable one
    numbers: tuple[int, ...]
    probability: Floats
    interrupted: bool = False


def least_clusters(constraints: Constraints, most: int) -> int:
    """Return a number of clusters below which the certain constraints are proved impossible.

    Contradictions, which no number satisfies, do not count.
    """
    n_labels = (
        0
        if constraints.labels is None
        else np.unique(constraints.labels[constraints.labels >= 0]).size
    )
    least = min(max(2, n_labels), most)
    while least < most:
        try:
            constraints.check(least)
        except ConflictError as error:
            if error.bracket is None or error.bracket[0] <= least:
                break
            least = min(int(error.bracket[0]), most)
        else:
            break
    return least


def range_of_clusters(least: int, n_samples: int) -> tuple[int, ...]:
    """Return the numbers of clusters that are worth a look."""
    highest = min(max(MOST, least + MORE), max(least, n_samples // 2))
    return tuple(range(least, highest + 1))


def numbers_of_clusters(constraints: Constraints) -> tuple[int, ...]:
    """Return the numbers of clusters to choose from."""
    n = constraints.n_samples
    numbers = range_of_clusters(least_clusters(constraints, n), n)
    # No more clusters than groups that must-links leave, if they contradict nothing
    n_groups = max(int(constraints.components().max(initial=0)) + 1, numbers[0])
    return tuple(k for k in numbers if k <= n_groups)


def gap_prior(eigenvalues: Floats, numbers: tuple[int, ...]) -> Floats:
    """Return log-probabilities of numbers of clusters by the gaps of the spectrum.

    ``k`` clusters that hang together badly make `k` small eigenvalues. A number is as probable as
    the next eigenvalue is larger than the `k`-th, up to ten times; without a next one there is no
    gap.
    """
    weight = np.full(len(numbers), 1 / 1.1)
    for at, k in enumerate(numbers):
        if k < eigenvalues.size and eigenvalues[k] > 0:
            weight[at] = 1 / (eigenvalues[k - 1] / eigenvalues[k] + 0.1)
    log: Floats = np.log(weight / weight.sum())
    return log


def choose_n_clusters(
    bases: Bases,
    constraints: Constraints,
    numbers: tuple[int, ...],
    *,
    callback: Callable[[float, str], None] | None,
) -> Choice:
    """Return how probable each number of clusters is.

    Coarse cuts predict held-out constraints, for each number. Interrupting leaves out the numbers
    that were not looked at yet.
    """
    prior = gap_prior(bases.spectrum.values, numbers)
    n_constraints = ConstraintModel.of(constraints, 2).n_constraints
    scores, interrupted = np.full(len(numbers), -np.inf), False
    try:
        for at, k in enumerate(numbers if n_constraints > 1 and len(numbers) > 1 else ()):
            scores[at] = _predictive_score(bases.for_clusters(k), constraints) / NUMBERS
            if callback is not None:
                callback((at + 1) / len(numbers), f"{k} clusters")
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        interrupted = True
    if not np.isfinite(scores).any():
        scores[:] = 0.0
    probability = softmax(scores + prior)
    return Choice(numbers[int(probability.argmax())], numbers, probability, interrupted)


def _predictive_score(bases: Bases, constraints: Constraints) -> float:
    """Return the log-likelihood of held-out constraints by coarse cuts, at the better penalty."""
    k, rng = bases.n_clusters, np.random.RandomState(0)
    model = ConstraintModel.of(constraints, k)
    folds = make_folds(model, np.random.RandomState(0), N_FOLDS)
    if not folds:  # a single question, asked twice
        return 0.0
    given = [without_held(constraints, fold.hidden).signed_pairs() for fold in folds]
    start = kmeans(bases.embedding(k), k, rng, n_init=3).labels
    rows = np.union1d(representative_rows(start.size), model.vertices)
    vertices = np.searchsorted(rows, model.vertices)
    cuts = coarse_cuts(bases, start, N_COARSE, rng=rng)
    scores = []
    for penalty in PENALTIES:
        said = []
        for pairs, weight in given:
            found = [labels for cut in cuts for labels in cut.partitions(pairs, weight, penalty)]
            parts = [softened(labels[rows], k, TRUST) for labels in found]
            mean = centred_mean(parts, np.ones(len(parts)), power=2.0).probability
            said.append(Prediction(np.log(mean[vertices] + EPS), ERROR_RATE))
        held_out = held_out_probability(model, folds, said)
        scores.append(float(log_likelihood(held_out, model.reliability, ERROR_RATE)))
    return max(scores)
