"""Do Gaussians describe the samples? What they lose against a kernel density, in nats per sample.

Both densities are estimated in the few directions along which samples differ most, compared with
their neighbours. Of blobs the loss is small; of moons, rings and spirals it is large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints, Matrix

N_COMPONENTS = 10  # in which partitions are compared by their likelihood
N_DIRECTIONS = 3  # in which Gaussians are compared with a kernel density
COARSE_RIDGE, FINE_RIDGE = 1e-2, 1e-3  # added to the variances of the first and the second
MAX_LEVERAGE = 0.9  # of a sample on the covariance of its cluster

WIDTHS = (0.35, 0.5, 0.7, 1.0, 1.4)  # factors of the width of all kernels, the best is taken
NEIGHBOR = 7  # whose distance gives the width of a kernel
DUPLICATE = 1e-12  # share of the largest squared distance below which samples are identical
N_EVALUATED, N_KERNELS = 600, 3_000  # samples at which densities are compared, and kernels
TINY = 1e-300  # in place of 0 in a denominator


def _scaled(Z: Floats) -> Floats:
    """Scale columns by a common factor to a mean variance of 1."""
    return np.ascontiguousarray(Z / max(np.sqrt(Z.var(axis=0).mean()), TINY))


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
    parts = [rows for rows in parts if rows.size]
    deviations = [Z[rows] - Z[rows].mean(axis=0) for rows in parts]
    scatters = [D.T @ D for D in deviations]
    prior = (q + 2) * sum(scatters) / n
    return [
        Cluster(rows, D, S, (S + prior) / (rows.size + q + 2) + ridge * np.eye(q))
        for rows, D, S in zip(parts, deviations, scatters, strict=True)
    ]


def gaussian_likelihood(P: Floats, labels: Ints, k: int) -> float:
    r"""Return the mean log-likelihood of samples and clusters, with a Gaussian for each cluster.

    The mean over the samples of :math:`\log(n_c / n) + \log N(x_i; \mu_c, \Sigma_c)` in the first
    10 columns, up to a constant.
    """
    Z = P[:, :N_COMPONENTS]
    n = Z.shape[0]
    total = 0.0
    for cluster in _gaussians(_scaled(Z), labels, k, ridge=COARSE_RIDGE):
        size = cluster.rows.size
        log_det = np.linalg.slogdet(cluster.covariance)[1]
        squares = np.trace(np.linalg.solve(cluster.covariance, cluster.scatter))
        total += size * (np.log(size / n) - 0.5 * log_det) - 0.5 * squares
    return float(total / n)


def gaussian_rows(Z: Floats, labels: Ints, k: int) -> Floats:
    r"""Return :math:`\log(n_c / n) + \log N(z_i; \mu_c, \Sigma_c)`, with each sample left out.

    Without sample `i`, its deviation :math:`d` from the mean of its cluster is :math:`n_c / (n_c -
    1)` times as large, and the covariance loses :math:`d d^T / (n_c + q + 2)`, by the formulas for
    a change of rank one.
    """
    n, q = Z.shape
    found = np.empty(n)
    for rows, deviation, _, covariance in _gaussians(Z, labels, k, ridge=FINE_RIDGE):
        L = np.linalg.cholesky(covariance)
        squares = (solve_triangular(L, deviation.T, lower=True) ** 2).sum(axis=0)
        leverage = np.minimum(squares / (rows.size + q + 2), MAX_LEVERAGE)
        if rows.size > 1:
            squares *= (rows.size / (rows.size - 1)) ** 2 / (1 - leverage)
        else:  # nothing is left of the cluster: two standard deviations off in every column
            squares += 4 * q
        log_det = 2 * np.log(np.diag(L)).sum() + np.log1p(-leverage)
        found[rows] = np.log(rows.size / n) - 0.5 * (log_det + squares + q * np.log(2 * np.pi))
    return found


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
    widths = (1.4 * c * reach / np.sqrt(Z.shape[1]) for c in WIDTHS)
    densities = [_log_kernel_sums(squares, width, Z.shape[1]) for width in widths]
    best = max(densities, key=np.mean)
    return best - np.log(np.isfinite(squares).sum(axis=1))


def _log_kernel_sums(squares: Floats, width: Floats, q: int) -> Floats:
    """Return the log of the sum of Gaussian kernels in `q` dimensions, at each row."""
    logs = squares * (-0.5 / width**2)
    logs -= q * np.log(width) + 0.5 * q * np.log(2 * np.pi)
    top = logs.max(axis=1)
    logs -= top[:, None]
    return np.log(np.exp(logs, out=logs).sum(axis=1)) + top


def mixture_rows(Z: Floats, labels: Ints, k: int) -> Floats:
    r"""Return :math:`\log \sum_c (n_c / n) N(z_i; \mu_c, \Sigma_c)`, with each sample left out.

    Left out of its own cluster, that is: the others do not depend on it.
    """
    n, q = Z.shape
    clusters = _gaussians(Z, labels, k, ridge=FINE_RIDGE)
    joint = np.empty((n, len(clusters)))
    own = np.empty(n, np.intp)
    for c, (rows, deviation, _, covariance) in enumerate(clusters):
        L = np.linalg.cholesky(covariance)
        mean = Z[rows[0]] - deviation[0]
        squares = (solve_triangular(L, (Z - mean).T, lower=True) ** 2).sum(axis=0)
        log_det = 2 * np.log(np.diag(L)).sum()
        joint[:, c] = np.log(rows.size / n) - 0.5 * (log_det + squares + q * np.log(2 * np.pi))
        own[rows] = c
    joint[np.arange(n), own] = gaussian_rows(Z, labels, k)
    density: Floats = logsumexp(joint, axis=1)
    return density


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
    Z = _scaled(Y[:, :N_DIRECTIONS])
    rng = np.random.RandomState(0)
    columns = _some(np.arange(n), N_KERNELS, rng)
    at = _some(columns, N_EVALUATED, rng)
    density = kernel_rows(Z, at, columns)
    separate = float((density - gaussian_rows(Z, labels, k)[at]).mean())
    return Misfit(separate, float((density - mixture_rows(Z, labels, k)[at]).mean()))


def _some(rows: Ints, most: int, rng: np.random.RandomState) -> Ints:
    """Return all rows, or so many at random; ascending."""
    return rows if rows.size <= most else np.sort(rng.choice(rows, most, replace=False))
