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
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats


MAX_LEVERAGE = 0.98  # bounds the leave-one-out value of a sample that determines its own fit
SHRINKAGE = 0.1  # of the covariance to its diagonal
FLOOR = -12.0  # of a log-probability: nothing is certain


class Ridge(NamedTuple):
    """A basis prepared for regressions with fixed weights."""

    features: Floats  # (n, b)
    solved: Floats  # (n, b): diag(w) Phi A^-1
    leverage: Floats  # (n,): w_i phi_i' A^-1 phi_i

    @classmethod
    def of(cls, features: Floats, penalty: Floats, weights: Floats) -> Ridge:
        """Factor the normal equations once; every later regression is two products."""
        weighted = features * weights[:, None]
        factor = cho_factor(features.T @ weighted + np.diag(penalty))
        solved = cho_solve(factor, weighted.T).T
        leverage = np.einsum("ij,ij->i", features, solved)
        return cls(features, solved, np.minimum(leverage, MAX_LEVERAGE))

    def coefficients(self, Q: Floats) -> Floats:
        """Return the regression of the columns of `Q` on the basis."""
        coefficients: Floats = self.solved.T @ Q
        return coefficients

    def left_out(self, coefficients: Floats, Q: Floats) -> Floats:
        """Return the value at every sample of the regression without this sample."""
        h = self.leverage[:, None]
        F: Floats = (self.features @ coefficients - h * Q) / (1 - h)
        return F


class Learner(NamedTuple):
    """A linear function of some bases, which also holds for new samples."""

    names: tuple[str, ...]  # of the bases
    coefficients: tuple[Floats, ...]  # (b, k) for each basis
    intercept: Floats  # (k,)

    def log_probability(self, features: dict[str, Floats]) -> Floats:
        """Return log-probabilities of clusters for rows of bases."""
        logits = self.intercept + sum(
            features[name] @ M for name, M in zip(self.names, self.coefficients, strict=True)
        )
        return np.maximum(log_softmax(logits), FLOOR)


def fit_learner(
    ridges: Sequence[Ridge], names: tuple[str, ...], Q: Floats, weights: Floats
) -> tuple[Floats, Learner]:
    """Return the leave-one-out log-probabilities of every sample, and the learner behind them."""
    # All k columns, although they add up to a constant: no cluster is different from the others.
    # The shrunken covariance is regular.
    coefficients = [ridge.coefficients(Q) for ridge in ridges]
    F = np.concatenate(
        [r.left_out(M, Q) for r, M in zip(ridges, coefficients, strict=True)], axis=1
    )
    slope, intercept = _discriminant(F, Q, weights)
    left_out = np.maximum(log_softmax(F @ slope + intercept), FLOOR)
    parts = np.split(slope, len(ridges))
    linear = tuple(M @ part for M, part in zip(coefficients, parts, strict=True))
    return left_out, Learner(names, linear, intercept)


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
    shifted = logits - logits.max(axis=1, keepdims=True)
    normal: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return normal
