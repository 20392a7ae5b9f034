"""Gaussian mixtures with full covariances, started from a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints

REGULARIZATION = 1e-4  # added to the variances
MAX_ITER = 20
TOL = 1e-3  # of the mean log-likelihood
SMOOTHING = 1e-3  # responsibility of the other clusters at the start, relative to the own one


class Mixture(NamedTuple):
    r"""Weights, means, and factors :math:`A_c` with :math:`A_c^T A_c = \Sigma_c^{-1}`."""

    weights: Floats  # (k,)
    means: Floats  # (k, q)
    factors: Floats  # (k, q, q), lower triangular

    def predict(self, Z: Floats) -> Ints:
        """Return the most likely cluster of each row."""
        return self.log_joint(Z).argmax(axis=1)

    def log_joint(self, Z: Floats) -> Floats:
        r"""Return :math:`\log w_c + \log N(z_i; \mu_c, \Sigma_c)`, of shape (n, k)."""
        q = Z.shape[1]
        diagonals = np.diagonal(self.factors, axis1=1, axis2=2)
        constant = np.log(self.weights) + np.log(np.abs(diagonals)).sum(axis=1)
        joint = np.empty((Z.shape[0], self.weights.size))
        for c, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            standard = (Z - mean) @ factor.T
            joint[:, c] = np.einsum("ij,ij->i", standard, standard)
        joint += q * np.log(2 * np.pi)
        joint *= -0.5
        joint += constant
        return joint


def mixture_partition(Z: Floats, start: Ints, *, rows: Ints | None = None) -> Floats:
    """Return probabilities of the clusters of a mixture that starts from a partition.

    Fitted to the given rows, or to all. Where the fit fails, or a cluster ends up empty, the
    partition stays as it is.
    """
    few, begin = (Z, start) if rows is None else (Z[rows], start[rows])
    unchanged: Floats = np.eye(int(start.max()) + 1)[start]
    try:
        _, R = _expectation(fit_mixture(few, begin).log_joint(Z))
    except np.linalg.LinAlgError:
        return unchanged
    return unchanged if np.setdiff1d(start, R.argmax(axis=1)).size else R


@np.errstate(all="ignore")  # what is not finite raises LinAlgError
def fit_mixture(Z: Floats, start: Ints) -> Mixture:
    r"""Fit one Gaussian for every cluster of a partition, by expectation-maximisation.

    The same steps as those of scikit-learn's `GaussianMixture`, in half the time on a thousand
    rows. The first covariances are drawn towards the pooled one by :math:`q + 2` samples, so that
    those of small clusters are regular:

    .. math:: \Sigma_c = \frac{S_c + (q + 2) S / n}{n_c + q + 2} + 10^{-4} I, \qquad
       S = \sum_c S_c,

    where :math:`S_c` is the scatter matrix of a cluster. Raises `LinAlgError` where a covariance
    is not positive definite, or not finite.
    """
    model = _first_mixture(Z, start)
    bound = -np.inf
    for _ in range(MAX_ITER):
        previous = bound
        bound, R = _expectation(model.log_joint(Z))
        model = _maximization(Z, R)
        if abs(bound - previous) < TOL:
            break
    return model


def _first_mixture(Z: Floats, start: Ints) -> Mixture:
    n, q = Z.shape
    R = np.eye(int(start.max()) + 1)[start] + SMOOTHING
    R /= R.sum(axis=1, keepdims=True)
    sizes, means, scatter = _moments(Z, R)
    pooled = scatter.sum(axis=0) / n
    covariances = (scatter + (q + 2) * pooled) / (sizes + q + 2)[:, None, None]
    return Mixture(sizes / sizes.sum(), means, _factors(covariances))


def _expectation(joint: Floats) -> tuple[float, Floats]:
    """Return the mean log-likelihood and the responsibilities of the clusters for each row."""
    top = joint.max(axis=1, keepdims=True)
    R = np.exp(joint - top)
    total = R.sum(axis=1, keepdims=True)
    R /= total
    return float((np.log(total) + top).mean()), R


def _maximization(Z: Floats, R: Floats) -> Mixture:
    sizes, means, scatter = _moments(Z, R)
    return Mixture(sizes / sizes.sum(), means, _factors(scatter / sizes[:, None, None]))


def _moments(Z: Floats, R: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the sizes of soft clusters, their means, and their scatter matrices."""
    sizes = R.sum(axis=0) + 10 * np.finfo(np.float64).eps  # no division by 0, as in scikit-learn
    means = R.T @ Z / sizes[:, None]
    scatter = np.empty((sizes.size, Z.shape[1], Z.shape[1]))
    for c, mean in enumerate(means):
        deviation = Z - mean
        scatter[c] = (deviation * R[:, c, None]).T @ deviation
    return sizes, means, scatter


def _factors(covariances: Floats) -> Floats:
    """Return the inverse Cholesky factors of regularised covariances."""
    covariances = covariances + REGULARIZATION * np.eye(covariances.shape[1])
    factors: Floats = np.linalg.inv(np.linalg.cholesky(covariances))
    if not np.isfinite(factors).all():
        raise np.linalg.LinAlgError("A covariance is not finite. Scale the features.")
    return factors
