"""Gaussians: mixtures that start from a partition, and whether Gaussians describe the samples.

The *misfit* is what Gaussians lose against a kernel density, in nats per sample. Both densities are
estimated in the few directions along which samples differ most, compared with their neighbours. Of
blobs the loss is small; of moons, rings and spirals it is large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints, Matrix

REGULARIZATION = 1e-4  # added to the variances
MAX_ITER = 20
TOL = 1e-3  # of the mean log-likelihood
SMOOTHING = 1e-3  # responsibility of the other clusters at the start, relative to the own one


N_COMPONENTS = 10  # in which partitions are compared by their likelihood
N_DIRECTIONS = 3  # in which Gaussians are compared with a kernel density
COARSE_RIDGE, FINE_RIDGE = 1e-2, 1e-3  # added to the variances of the first and the second
MAX_LEVERAGE = 0.9  # of a sample on the covariance of its cluster

WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4)  # factors of the width of all kernels, the best is taken
NEIGHBOR = 7  # whose distance gives the width of a kernel
DUPLICATE = 1e-12  # share of the largest squared distance below which samples are identical
N_EVALUATED, N_KERNELS = 600, 3_000  # samples at which densities are compared, and kernels
ROUNDING = 1e-14  # share of the largest value below which deviations are rounding errors
TINY = 1e-300  # in place of 0 in a denominator


# --- mixtures


class Mixture(NamedTuple):
    r"""Weights, means, and factors :math:`A_c` with :math:`A_c^T A_c = \Sigma_c^{-1}`."""

    weights: Floats  # (k,)
    means: Floats  # (k, q)
    factors: Floats  # (k, q, q), lower triangular

    def expectation(self, Z: Floats) -> tuple[float, Floats]:
        r"""Return the mean log-likelihood, and the responsibilities of the clusters for each row.

        These are :math:`w_c N(z_i; \mu_c, \Sigma_c)`, divided by their sum.
        """
        diagonals = np.diagonal(self.factors, axis1=1, axis2=2)
        joint = np.empty((Z.shape[0], self.weights.size))
        for c, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            standard = (Z - mean) @ factor.T
            joint[:, c] = np.einsum("ij,ij->i", standard, standard)
        joint += Z.shape[1] * np.log(2 * np.pi)
        joint *= -0.5
        joint += np.log(self.weights) + np.log(np.abs(diagonals)).sum(axis=1)
        top = joint.max(axis=1, keepdims=True)
        R = np.exp(joint - top)
        total = R.sum(axis=1, keepdims=True)
        R /= total
        return float((np.log(total) + top).mean()), R


def mixture_partition(Z: Floats, start: Ints, *, rows: Ints | None = None) -> Floats:
    """Return probabilities of the clusters of a mixture that starts from a partition.

    Fitted to the given rows, or to all. Where the fit fails, or a cluster ends up empty, the
    partition stays as it is.
    """
    few, begin = (Z, start) if rows is None else (Z[rows], start[rows])
    unchanged: Floats = np.eye(int(start.max()) + 1)[start]
    try:
        _, R = fit_mixture(few, begin).expectation(Z)
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
    R = np.eye(int(start.max()) + 1)[start] + SMOOTHING
    model = _maximization(Z, R / R.sum(axis=1, keepdims=True), n_pooled=Z.shape[1] + 2)
    bound = -np.inf
    for _ in range(MAX_ITER):
        previous = bound
        bound, R = model.expectation(Z)
        model = _maximization(Z, R)
        if abs(bound - previous) < TOL:
            break
    return model


def _maximization(Z: Floats, R: Floats, n_pooled: int = 0) -> Mixture:
    """Return weights, means and covariances of soft clusters.

    The covariances are drawn towards the pooled one by so many samples, and regularised.
    """
    sizes = R.sum(axis=0) + 10 * np.finfo(np.float64).eps  # no division by 0, as in scikit-learn
    means = R.T @ Z / sizes[:, None]
    scatter = np.empty((sizes.size, Z.shape[1], Z.shape[1]))
    for c, mean in enumerate(means):
        deviation = Z - mean
        scatter[c] = (deviation * R[:, c, None]).T @ deviation
    pooled = n_pooled * (scatter.sum(axis=0) / Z.shape[0])
    covariances = (scatter + pooled) / (sizes + n_pooled)[:, None, None]
    covariances += REGULARIZATION * np.eye(Z.shape[1])
    factors: Floats = np.linalg.inv(np.linalg.cholesky(covariances))
    if not np.isfinite(factors).all():
        raise np.linalg.LinAlgError("A covariance is not finite. Scale the features.")
    return Mixture(sizes / sizes.sum(), means, factors)


# --- do Gaussians describe the samples?


def smooth_directions(P: Floats, W: Matrix, q: int) -> Floats:
    r"""Project samples on the directions in which they differ most, compared with neighbours.

    These are the leading generalised eigenvectors of

    .. math:: \tfrac1n P^T P v = \lambda \Bigl(\frac{P^T L P}{\mathrm{vol}(W)}
       + \frac{t}{n} I\Bigr) v,

    where :math:`L = D - W` is the Laplacian of the graph and :math:`t` the trace of the first
    matrix on the right. Neighbours differ by about 1 in each.
    """
    n = P.shape[0]
    d = np.asarray(W.sum(axis=1)).ravel()
    local = P.T @ (d[:, None] * P - W @ P) / max(d.sum(), TINY)
    local = (local + local.T) / 2
    local += (np.trace(local) / n + 1e-9) * np.eye(P.shape[1])
    _, V = eigh(P.T @ P / n, local)
    directions: Floats = P @ V[:, ::-1][:, :q]
    return directions


class Cluster(NamedTuple):
    """A cluster that is described by a Gaussian."""

    rows: Ints
    deviation: Floats  # of its samples from their mean
    scatter: Floats
    covariance: Floats


def _gaussians(Z: Floats, labels: Ints, k: int, *, ridge: float) -> list[Cluster]:
    r"""Describe each cluster that is not empty by a Gaussian.

    Its covariance is drawn towards the pooled one by :math:`q + 2` samples,

    .. math:: \frac{S_c + (q + 2) S / n}{n_c + q + 2} + \text{ridge} \cdot I ,

    with the scatter matrices :math:`S_c` of the cluster and :math:`S = \sum_c S_c`.
    """
    n, q = Z.shape
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(labels, minlength=k))[:-1])
    deviations, scatters = [], []
    for rows in parts:
        if rows.size:
            deviation = Z[rows] - Z[rows].mean(axis=0)
            deviations.append((rows, deviation))
            scatters.append(deviation.T @ deviation)
    prior = (q + 2) * sum(scatters) / n
    found = []
    for (rows, deviation), S in zip(deviations, scatters, strict=True):
        covariance = (S + prior) / (rows.size + q + 2) + ridge * np.eye(q)
        found.append(Cluster(rows, deviation, S, covariance))
    return found


def _of_unit_spread(Z: Floats) -> Floats:
    """Divide samples by their standard deviation; equal ones differ by rounding errors only."""
    spread = float(np.sqrt(Z.var(axis=0).mean()))
    return Z / spread if spread > ROUNDING * np.abs(Z).max() else Z


def gaussian_likelihood(P: Floats, labels: Ints, k: int) -> float:
    r"""Return the mean log-likelihood of samples and clusters, with a Gaussian for each cluster.

    The mean over the samples of :math:`\log(n_c / n) + \log N(x_i; \mu_c, \Sigma_c)` in the first
    10 columns, up to a constant.
    """
    Z = P[:, :N_COMPONENTS]
    Z = _of_unit_spread(Z)
    n, total = Z.shape[0], 0.0
    for cluster in _gaussians(Z, labels, k, ridge=COARSE_RIDGE):
        size = cluster.rows.size
        log_det = np.linalg.slogdet(cluster.covariance)[1]
        squares = np.trace(np.linalg.solve(cluster.covariance, cluster.scatter))
        total += size * (np.log(size / n) - 0.5 * log_det) - 0.5 * squares
    return float(total / n)


def gaussian_rows(Z: Floats, labels: Ints, k: int) -> tuple[Floats, Floats]:
    r"""Return two log-densities at each sample, which is left out of its own cluster.

    The first is that of its cluster, :math:`\log(n_c / n) + \log N(z_i; \mu_c, \Sigma_c)`, the
    second that of the mixture of all. Without sample `i`, its deviation :math:`d` from the mean of
    its cluster is :math:`n_c / (n_c - 1)` times as large, and the covariance loses :math:`d d^T /
    (n_c + q + 2)`, by the formulas for a change of rank one.
    """
    n, q = Z.shape
    clusters = _gaussians(Z, labels, k, ridge=FINE_RIDGE)
    own, joint = np.empty(n), np.empty((n, len(clusters)))
    for c, (rows, deviation, _, covariance) in enumerate(clusters):
        L = np.linalg.cholesky(covariance)
        log_det = 2 * np.log(np.diag(L)).sum()
        mean, size = Z[rows[0]] - deviation[0], rows.size
        constant = np.log(size / n) - 0.5 * (log_det + q * np.log(2 * np.pi))
        joint[:, c] = constant - 0.5 * (solve_triangular(L, (Z - mean).T, lower=True) ** 2).sum(0)
        squares = (solve_triangular(L, deviation.T, lower=True) ** 2).sum(axis=0)
        leverage = np.minimum(squares / (size + q + 2), MAX_LEVERAGE)
        if size > 1:
            squares *= (size / (size - 1)) ** 2 / (1 - leverage)
        else:  # nothing is left of the cluster: two standard deviations off in every column
            squares += 4 * q
        own[rows] = constant - 0.5 * (np.log1p(-leverage) + squares)
        joint[rows, c] = own[rows]
    return own, logsumexp(joint, axis=1)


def kernel_rows(Z: Floats, at: Ints, columns: Ints) -> Floats:
    r"""Return the log of a kernel density at some samples, with each left out of its own.

    The density is a mean of Gaussian kernels at the samples `columns`, which include those in `at`
    (both ascending). The width of a kernel is :math:`1.4 \, c \, s_j / \sqrt q`, where :math:`s_j`
    is the distance to the 7th neighbour, and :math:`c` the best of five factors. Identical samples
    are left out of each other's density, which would be infinite. If all are identical, 0.
    """
    squares = cdist(Z[columns], Z[columns], "sqeuclidean")
    squares[squares < DUPLICATE * squares.max(initial=TINY)] = np.inf
    nearest = max(min(NEIGHBOR, columns.size - 1), 1) - 1
    reach = np.partition(squares, nearest, axis=1)[:, nearest]
    is_known = np.isfinite(reach)
    if not is_known.any():
        return np.zeros(at.size)
    reach = np.sqrt(np.where(is_known, reach, reach[is_known].max()))
    squares = squares[np.searchsorted(columns, at)]
    q, best = Z.shape[1], None
    for c in WIDTHS:
        width = 1.4 * c * reach / np.sqrt(q)
        logs = squares * (-0.5 / width**2)
        logs -= q * np.log(width) + 0.5 * q * np.log(2 * np.pi)
        top = logs.max(axis=1)
        logs -= top[:, None]
        density = np.log(np.exp(logs, out=logs).sum(axis=1)) + top
        if best is None or density.mean() > best.mean():
            best = density
    assert best is not None
    return best - np.log(np.isfinite(squares).sum(axis=1))


class Misfit(NamedTuple):
    """What Gaussians lose against a kernel density, in nats per sample."""

    separate: float  # each sample described by the Gaussian of its own cluster
    mixture: float  # by all of them: much less, if clusters overlap


def gaussian_misfit(Y: Floats, labels: Ints, k: int) -> Misfit:
    """Return what one Gaussian per cluster loses against a kernel density.

    In the first three columns, with every sample left out of both. Of many samples, at most 600
    are compared, with at most 3,000 kernels; always the same ones.
    """
    n = Y.shape[0]
    Z = Y[:, :N_DIRECTIONS]
    Z = _of_unit_spread(Z)
    rng = np.random.RandomState(0)
    columns = at = np.arange(n)
    if n > N_KERNELS:
        columns = at = np.sort(rng.choice(n, N_KERNELS, replace=False))
    if columns.size > N_EVALUATED:
        at = np.sort(rng.choice(columns, N_EVALUATED, replace=False))
    density = kernel_rows(Z, at, columns)
    own, mixture = gaussian_rows(Z, labels, k)
    return Misfit(float((density - own[at]).mean()), float((density - mixture[at]).mean()))
