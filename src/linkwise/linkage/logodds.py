"""Log-odds that two samples are one thing, and the covariances they follow from.

The two-covariance model (Brümmer & de Villiers 2010; "PLDA" in speaker recognition): samples of a
cluster are Gaussian around its centre with covariance W, and centres are Gaussian with covariance
T - W, T being that of all samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import eigh

from linkwise.graph.neighbors import chunks

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints


RIDGE = 1e-6  # of the mean variance: what keeps covariances invertible


class Scatter(NamedTuple):
    """A sum of squares and products, and its degrees of freedom."""

    sums: Floats
    freedom: float


class LogOdds(NamedTuple):
    """The log-odds ``c - h(x) - h(y) + g(x) . g(y)`` of two samples of coordinates x and y."""

    directions: Floats  # of shape (n_features, n_dimensions): columns v with T v = e W v
    ratio: Floats  # e - 1: variance between clusters over that within
    c: float

    @classmethod
    def of(cls, W: Floats, T: Floats, n_samples: int) -> LogOdds:
        """Solve ``T v = e W v``, and keep what is above the noise.

        With no clusters at all the largest `e` would be about ``(1 + sqrt(d/n))^2``, the edge of
        the Marchenko-Pastur rule.
        """
        e, V = eigh(T, W)
        kept = e > (1 + np.sqrt(len(T) / n_samples)) ** 2
        kept[-1] = True
        ratio = np.maximum(e[kept] - 1, 1e-3)
        c = 0.5 * float(np.sum(2 * np.log1p(ratio) - np.log1p(2 * ratio)))
        return cls(V[:, kept], ratio, c)

    def terms(self, Z: Floats) -> tuple[Floats, Floats]:
        """Return `g` and `h` of samples."""
        Y = Z @ self.directions
        one, two = self.ratio / (1 + self.ratio), self.ratio / (1 + 2 * self.ratio)
        h: Floats = 0.5 * (Y * Y) @ (one - two)
        return Y * np.sqrt(two), h

    def rowwise(self, one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> Floats:
        """Return the log-odds of samples with others, row by row; each is given by its terms."""
        (g, h), (u, v) = one, other
        odds: Floats = self.c - h - v + np.einsum("ij,ij->i", g, u)
        return odds

    def between(self, g: Floats, h: Floats, pairs: Ints) -> Floats:
        """Return the log-odds of pairs of samples."""
        odds = np.empty(len(pairs))
        for part in chunks(len(pairs), g.shape[1]):
            i, j = pairs[part].T
            odds[part] = self.c - h[i] - h[j] + np.einsum("ij,ij->i", g[i], g[j])
        return odds


def total_covariance(Z: Floats) -> Floats:
    """Return the covariance of centred samples, invertible."""
    T: Floats = Z.T @ Z / len(Z)
    return _invertible(T, float(np.trace(T)) / len(T))


def _invertible(C: Floats, variance: float) -> Floats:
    ridge = RIDGE * variance if variance > 0 else 1.0
    return C + ridge * np.eye(len(C))


def pair_scatter(Z: Floats, pairs: Ints) -> Scatter:
    """Return the scatter within pairs of samples."""
    sums = np.zeros((Z.shape[1], Z.shape[1]))
    for part in chunks(len(pairs), Z.shape[1]):
        D = Z[pairs[part, 0]] - Z[pairs[part, 1]]
        sums += D.T @ D / 2
    return Scatter(sums, float(len(pairs)))


def within_scatter(Z: Floats, labels: Ints) -> Scatter:
    """Return the scatter around the means of clusters."""
    size = np.bincount(labels)
    means = cluster_sums(Z, labels) / size[:, None]
    sums: Floats = Z.T @ Z - (means * size[:, None]).T @ means
    return Scatter(sums, float(len(Z) - size.size))


def cluster_sums(Z: Floats, labels: Ints) -> Floats:
    """Return the sum of the rows of each cluster."""
    order = np.argsort(labels, kind="stable")
    begin = np.flatnonzero(np.diff(labels[order], prepend=-1))
    return np.add.reduceat(Z[order], begin, axis=0)


def shrunk_covariance(scatter: Scatter, T: Floats) -> Floats:
    """Return the covariance of a scatter, shrunk towards a sphere: oracle approximation (OAS).

    Chen, Wiesel, Eldar & Hero: Shrinkage algorithms for MMSE covariance estimation. IEEE
    Transactions on Signal Processing 58, 2010.
    """
    S, f = scatter.sums / max(scatter.freedom, 1.0), max(scatter.freedom, 2.0)
    # The share depends on ratios only: by a power of two, their squares stay in range.
    unit = np.ldexp(S, -int(np.frexp(np.trace(S))[1]))
    d, trace, squares = len(S), float(np.trace(unit)), float((unit * unit).sum())
    denominator = (f + 1 - 2 / d) * (squares - trace**2 / d)
    share = 1.0
    if denominator > 0:
        share = min(1.0, ((1 - 2 / d) * squares + trace**2) / denominator)
    W = (1 - share) * S + share * float(np.trace(S)) / d * np.eye(d)
    return _invertible(W, float(np.trace(T)) / d)
