r"""A learner: from a soft partition to log-probabilities of each sample, learnt from the others.

Given a soft partition `Q` (n x k) and weights `w`, each basis :math:`\Phi` explains the columns of
`Q` by a ridge regression

.. math:: F = \Phi (\Phi^\top \mathrm{diag}(w) \Phi + \mathrm{diag}(p))^{-1}
   \Phi^\top \mathrm{diag}(w) Q,

of which each sample takes the *leave-one-out* value. Linear discriminant analysis of all these
values gives the log-probabilities. Ridge regression of indicators followed
by discriminant analysis is discriminant analysis in the space of the basis, so this learns a metric
as well; and as the covariance is shared, the log-probabilities of a new sample are a linear
function of its basis.

A learner also carries the clusters of some samples over to all others: the *classifier* of a large
data set.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from linkwise.auto.bases import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkwise._types import Floats, Ints
    from linkwise.auto.bases import Bases, Basis
    from linkwise.auto.views import Scaling, View


MAX_LEVERAGE = 0.98  # bounds the leave-one-out value of a sample that determines its own fit
SHRINKAGE = 0.1  # of the covariance to its diagonal
FLOOR = -12.0  # of a log-probability: nothing is certain
BLOCK = 20_000  # samples described at a time
OF_FEATURES = ("linear", "kernel")  # bases that are known at new samples
FEW_COLUMNS, MANY_ROWS = 16, 200  # up to, and from which on, columns are compared one by one


class Ridge(NamedTuple):
    """A basis prepared for regressions with fixed weights."""

    features: Floats  # (n, b)
    solved: Floats  # (n, b): diag(w) Phi A^-1
    leverage: Floats  # (n,): w_i phi_i' A^-1 phi_i

    @classmethod
    def of(cls, basis: Basis, weights: Floats) -> Ridge:
        """Factor the normal equations once; every later regression is two products."""
        features = basis.features
        weighted = features * weights[:, None]
        factor = cho_factor(features.T @ weighted + np.diag(basis.penalty))
        solved = cho_solve(factor, weighted.T).T
        leverage = np.einsum("ij,ij->i", features, solved)
        return cls(features, solved, np.minimum(leverage, MAX_LEVERAGE))


class Design(NamedTuple):
    """Samples to learn from, their weights, and the normal equations of each basis."""

    rows: Ints
    weights: Floats
    ridges: dict[str, Ridge]


class Learner(NamedTuple):
    """A linear function of some bases, which also holds for new samples."""

    names: tuple[str, ...]  # of the bases
    coefficients: tuple[Floats, ...]  # (b, k) for each basis: the regressions
    slopes: tuple[Floats, ...]  # (k, k) for each basis: the discriminants of their values
    intercept: Floats  # (k,)

    def log_probability(self, bases: dict[str, Basis]) -> Floats:
        """Return log-probabilities of clusters for rows of bases."""
        logits = self.intercept
        for name, M, slope in zip(self.names, self.coefficients, self.slopes, strict=True):
            logits = logits + bases[name].features @ (M @ slope)
        return np.maximum(log_softmax(logits), FLOOR)


def fit_learner(design: Design, names: tuple[str, ...], Q: Floats) -> tuple[Floats, Learner]:
    """Return the leave-one-out log-probabilities of every sample, and the learner behind them."""
    # All k columns, although they add up to a constant: no cluster is different from the others.
    # The shrunken covariance is regular.
    coefficients, values = [], []
    for name in names:
        ridge = design.ridges[name]
        M, h = ridge.solved.T @ Q, ridge.leverage[:, None]
        coefficients.append(M)
        values.append((ridge.features @ M - h * Q) / (1 - h))  # the regression without the sample
    F = np.concatenate(values, axis=1)
    slope, intercept = _discriminant(F, Q, design.weights)
    left_out = np.maximum(log_softmax(F @ slope + intercept), FLOOR)
    slopes = tuple(np.split(slope, len(names)))
    return left_out, Learner(names, tuple(coefficients), slopes, intercept)


def _discriminant(F: Floats, Q: Floats, weights: Floats) -> tuple[Floats, Floats]:
    r"""Return slopes and intercepts of :math:`\log\pi_c - |F - \mu_c|^2_{S^{-1}} / 2`.

    The quadratic term is the same for all clusters and drops out.
    """
    weighted = Q * weights[:, None]
    size = weighted.sum(axis=0)
    prior = (size + 1) / (size + 1).sum()
    means = (weighted.T @ F) / np.maximum(size, 1e-12)[:, None]
    S = (F.T @ (F * weights[:, None]) - (means.T * size) @ means) / size.sum()
    spread = np.maximum(np.diag(S), 0.0)
    S = (1 - SHRINKAGE) * S
    S[np.diag_indices_from(S)] += SHRINKAGE * spread + 1e-6
    slope = cho_solve(cho_factor(S), means.T)
    intercept = np.log(prior) - 0.5 * np.einsum("cd,dc->c", means, slope)
    return slope, intercept


def log_softmax(logits: Floats) -> Floats:
    """Return normalised log-probabilities."""
    shifted = logits - _largest(logits)
    normal: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return normal


def _largest(logits: Floats) -> Floats:
    """Return the largest entry of each row, as a column.

    NumPy takes four times as long for short rows as for a few columns one after the other.
    """
    k = logits.shape[1]
    if not 0 < k <= FEW_COLUMNS or len(logits) < MANY_ROWS:
        return logits.max(axis=1, keepdims=True)
    largest = logits[:, :1].copy()
    for c in range(1, k):
        np.maximum(largest, logits[:, c : c + 1], out=largest)
    return largest


# --- from the samples that were partitioned to all others of a large data set


def fit_classifier(
    view: View, rows: Ints, probability: Floats, *, names: Sequence[str] = NAMES
) -> Learner:
    """Return the learner that repeats a soft partition with the fewest errors, each left out.

    It may learn from the bases of these names.
    """
    design = view.design(rows, rows, names)
    rigid, *flexible = design.ridges
    labels = probability.argmax(axis=1)
    best, lowest = None, np.inf
    for size in range(len(flexible) + 1):
        for more in combinations(flexible, size):
            left_out, learner = fit_learner(design, (rigid, *more), probability)
            loss = float((left_out.argmax(axis=1) != labels).mean())
            if loss < lowest:
                best, lowest = learner, loss
    assert best is not None
    return best


class Classifier(NamedTuple):
    """Gives clusters to samples that a fit has not seen, as it does to those it did not partition.

    It holds only what its learner needs: copies are sent to workers.
    """

    learner: Learner
    bases: Bases
    scaling: Scaling | None

    @classmethod
    def of(cls, view: View, rows: Ints, probability: Floats) -> Classifier | None:
        """Learn the probabilities of the rows; None if that takes functions on the graph.

        These are not known elsewhere: there, new samples follow their neighbours. The best function
        of the features is taken if what the graph explains beyond is not more than chance.
        """
        learner = fit_classifier(view, rows, probability)
        if not view.has_features:
            return None
        if "graph" in learner.names:
            design = view.design(rows, rows)
            flexible = fit_learner(design, learner.names, probability)[0]
            rival = fit_classifier(view, rows, probability, names=OF_FEATURES)
            others, learner = fit_learner(design, rival.names, probability)
            if is_beyond_chance(flexible.argmax(axis=1), others.argmax(axis=1), probability):
                return None
        spectrum = view.bases.spectrum._replace(vectors=np.zeros((0, 0)))
        bases = replace(view.bases, W=None, scores=None, spectrum=spectrum)
        return cls(learner, bases, view.scaling)

    def predict(self, X: Any) -> Ints:
        """Return the clusters of new samples."""
        labels = np.empty(len(X), np.intp)
        for start in range(0, len(X), BLOCK):
            block = X[start : start + BLOCK]
            scaled = block if self.scaling is None else self.scaling.transform(block)
            found = self.learner.log_probability(self.bases.of_new(scaled))
            labels[start : start + BLOCK] = found.argmax(axis=1)
        return labels


def is_beyond_chance(labels: Ints, others: Ints, probability: Floats) -> bool:
    """Whether labels are right more often than others by more than one standard error.

    Where two labels of a sample differ, the soft partition says how likely each of them is right.
    """
    at = np.flatnonzero(labels != others)
    first, second = probability[at, labels[at]], probability[at, others[at]]
    gain = first - second
    variance = (first + second - gain**2).sum()
    return bool(gain.sum() > np.sqrt(variance))


def everywhere(view: View, rows: Ints, probability: Floats) -> Floats:
    """Return probabilities of all samples, given those of the rows."""
    learner = fit_classifier(view, rows, probability)
    found = np.empty((view.n_samples, view.k))
    for block in blocks(view.n_samples, rows):
        found[block] = np.exp(log_softmax(learner.log_probability(view.bases.at(block))))
    found[rows] = probability
    return found


def blocks(n: int, known: Ints) -> Iterator[Ints]:
    """Yield the samples that are not known, in blocks."""
    rest = np.setdiff1d(np.arange(n), known, assume_unique=True)
    for start in range(0, rest.size, BLOCK):
        yield rest[start : start + BLOCK]
