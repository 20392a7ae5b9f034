"""How many clusters: what the constraints require, what the spectrum suggests, what predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.auto.consensus import from_labels
from linkwise.auto.constraint_model import ConstraintModel, log_likelihood
from linkwise.auto.evidence import Prediction, Trial, held_out_probability, make_folds
from linkwise.auto.spanning_tree import balanced_partition
from linkwise.exceptions import ConflictError
from linkwise.partition import kmeans

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Floats, Ints
    from linkwise.auto.evidence import Fold
    from linkwise.auto.views import Scaling, View, Views
    from linkwise.constraints import Constraints


MOST = 12  # clusters that are considered, unless the last numbers are the most probable ones
MORE = 4  # clusters considered beyond the least that the constraints require
LIMIT = 100  # clusters in any case
DECLINE = 3  # numbers in a row, all improbable, that end the search
IMPROBABLE = 7.0  # nats by which their evidence is lower than the highest
N_FOLDS = 5  # for each number
STARTS = 3  # of k-means
TREE_LIMIT = 0.3  # Gini index of the sizes of clusters along the spanning tree
LINEAR = ("linear",)  # basis of the learner
LEARN_FROM = 9  # constraints from which on a learner is among those that predict
OTHER_ROWS = 600  # unconstrained samples that it learns from
# Shares of the constraints about which a candidate may know nothing, all equally probable
UNKNOWN = (0.02, 0.1, 0.3, 0.6, 1.0)
LEAST_ERROR = 0.01  # rate of wrong constraints besides
PER_LOG = 0.5  # what the logarithm of a number costs, for each unit of that of the constraints


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
    n_groups = max(groups_left(constraints), numbers[0])
    return tuple(k for k in numbers if k <= n_groups)


def groups_left(constraints: Constraints) -> int:
    """Return the most clusters that must-links leave, if they contradict nothing."""
    return int(constraints.components().max(initial=0)) + 1


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
    views: Views,
    scalings: Sequence[Scaling | None],
    constraints: Constraints,
    *,
    numbers: tuple[int, ...],
    callback: Callable[[float, str], None] | None,
) -> Choice:
    """Return how probable each number of clusters is.

    Some candidates predict held-out constraints, for each number in turn; of several scalings, the
    better one counts. The search ends when several numbers in a row are improbable, and goes on
    beyond the last one given while the most probable number is among the last. Interrupting leaves
    out the numbers that were not looked at yet.
    """
    bases = views.bases(scalings[0], numbers[-1])[1]
    if ConstraintModel.of(constraints, 2).n_constraints < 2 or len(numbers) < 2:
        return _choice(numbers, gap_prior(bases.spectrum.values, numbers))
    tried: list[int] = []
    evidence: list[float] = []
    highest = max(min(constraints.n_samples // 2, groups_left(constraints), LIMIT), numbers[-1])
    interrupted = False
    try:
        for k in range(numbers[0], highest + 1):
            if k > bases.n_clusters:
                bases = views.bases(scalings[0], 2 * k)[1]
            evidence.append(
                max(
                    log_evidence(views.view(scaling, k, is_kept=False), constraints)
                    for scaling in scalings
                )
            )
            tried.append(k)
            if callback is not None:
                callback(min(len(tried) / len(numbers), 1.0), f"{k} clusters")
            if has_declined(np.array(evidence), is_last=k >= numbers[-1]):
                break
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        interrupted = True
    if not tried:
        return _choice(numbers, gap_prior(bases.spectrum.values, numbers))._replace(
            interrupted=True
        )
    prior = gap_prior(bases.spectrum.values, tuple(tried))
    return _choice(tuple(tried), prior + evidence)._replace(interrupted=interrupted)


def has_declined(evidence: Floats, *, is_last: bool) -> bool:
    """Whether several numbers in a row are improbable, or no better at the end of the range."""
    if evidence.size <= DECLINE:
        return False
    loss = float(evidence.max() - evidence[-DECLINE:].max())
    return loss > (0.0 if is_last else IMPROBABLE)


def _choice(numbers: tuple[int, ...], log_probability: Floats) -> Choice:
    probability = softmax(log_probability)
    return Choice(numbers[int(probability.argmax())], numbers, probability)


def log_evidence(view: View, constraints: Constraints) -> float:
    """Return the log-likelihood of held-out constraints, and what so many clusters cost.

    Chance differences between numbers grow with the constraints, and so does the cost.
    """
    model = ConstraintModel.of(constraints, view.k)
    folds = make_folds(model, np.random.RandomState(0), N_FOLDS)
    if not folds:  # a single question, asked twice
        return 0.0
    held_out = np.array(_held_out(view, constraints, model, folds=folds))
    cost = PER_LOG * np.log(model.n_constraints) * np.log(view.k)
    return average_likelihood(held_out, model) - float(cost)


def average_likelihood(held_out: Floats, model: ConstraintModel) -> float:
    """Return the log of the likelihood of constraints, averaged over candidates and ignorance.

    Each row of `held_out` is what a candidate predicts. It may know nothing about a share of the
    constraints. These are guessed: two samples are in the same one of `k` clusters with probability
    1 / k. So a number that many must-links contradict is improbable, even if no candidate with any
    number predicts them.
    """
    guess = np.full(model.n_constraints, 1 / model.k)
    guess[: len(model.pairs.ends)][~model.pairs.together] = 1 - 1 / model.k
    scores = []
    for share in UNKNOWN:
        mixed = (1 - share) * held_out + share * guess
        scores.append(log_likelihood(mixed, model.reliability, LEAST_ERROR))
    return float(logsumexp(scores) - np.log(np.size(scores)))


def _held_out(
    view: View, constraints: Constraints, model: ConstraintModel, *, folds: list[Fold]
) -> list[Floats]:
    """Return the probability of each constraint by each candidate, found without it."""
    rows = learning_rows(view, model.vertices)
    starts = _unsupervised(view, rows)
    found = [[from_labels(labels, view.k)] * len(folds) for labels in starts]
    if model.n_constraints >= LEARN_FROM:
        design = view.design(rows, model.vertices, LINEAR)
        whole = Trial(view, constraints, model, rows, lambda: design)
        trials = [whole.without(fold.hidden, whole.design) for fold in folds]
        found.append([trial.learn("first", LINEAR, starts[0]) for trial in trials])
    at, predicted = np.searchsorted(rows, model.vertices), []
    for partitions in found:
        said = [Prediction(one.log_probability[at], one.error_rate) for one in partitions]
        predicted.append(held_out_probability(model, folds, said))
    return predicted


def _unsupervised(view: View, rows: Ints) -> list[Ints]:
    """Return k-means, a spanning tree and spectral clustering, without constraints, on rows."""
    k, rng, found = view.k, np.random.RandomState(0), []
    if view.bases.scores is not None:
        found.append(kmeans(view.bases.scores[rows], k, rng, n_init=STARTS).labels)
        if view.rows.size == view.n_samples:  # the tree has all of them
            edges = view.tree(robust=False)
            found.append(balanced_partition(edges, view.n_samples, k, limit=TREE_LIMIT)[rows])
    found.append(kmeans(view.bases.embedding(k)[rows], k, rng, n_init=STARTS).labels)
    return found


def learning_rows(view: View, constrained: Ints) -> Ints:
    """Return the constrained samples, and some others."""
    free = np.setdiff1d(view.rows, constrained)
    if free.size > OTHER_ROWS:
        free = np.random.RandomState(0).choice(free, OTHER_ROWS, replace=False)
    return np.union1d(constrained, free)
