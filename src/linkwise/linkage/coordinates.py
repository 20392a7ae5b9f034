"""Dense coordinates of samples, also of those that come later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import issparse
from scipy.stats import beta
from sklearn.preprocessing import normalize
from sklearn.random_projection import SparseRandomProjection

from linkwise.linkage.logodds import total_covariance

if TYPE_CHECKING:
    from linkwise._types import Floats


DENSE_DIMENSIONS = 100
SPARSE_DIMENSIONS = 256
DENSITY = 1 / 16  # of the random projection


class Coordinates:
    """Centred dense coordinates: principal components, or a random projection of sparse rows.

    Sparse rows are projected and scaled to unit length, so that distances follow cosines. A
    projection keeps rare features, by which records differ; singular vectors would drop them.

    Parameters
    ----------
    n_components : int or "auto"
        Dimensions. "auto": at most 100 for arrays, 256 for sparse rows.
    rng : RandomState
        Draws the projection.
    """

    def __init__(self, n_components: int | str, rng: np.random.RandomState) -> None:
        self.n_components = n_components
        self.rng = rng

    def fit_transform(self, X: Any) -> Floats:
        """Find the directions, and return the coordinates of the samples."""
        auto = SPARSE_DIMENSIONS if issparse(X) else DENSE_DIMENSIONS
        d = auto if isinstance(self.n_components, str) else self.n_components
        self._is_sparse = issparse(X)
        self._directions: Any = None
        self._mean: Floats | float = 0.0
        if d < X.shape[1]:
            self._directions = (self._random if self._is_sparse else _leading)(X, d)
        Z = self._projected(X)
        self._mean = Z.mean(axis=0)
        Z = Z - self._mean
        self._radii = Radii.of(Z)
        Z = self._radii.winsorized(Z)
        self._shift = Z.mean(axis=0)
        return Z - self._shift

    def transform(self, X: Any) -> Floats:
        """Return the coordinates of new samples."""
        return self._radii.winsorized(self._projected(X) - self._mean) - self._shift

    def _random(self, X: Any, d: int) -> Any:
        projection = SparseRandomProjection(d, density=DENSITY, random_state=self.rng)
        return projection.fit(X).components_.T

    def _projected(self, X: Any) -> Floats:
        Z = X if self._directions is None else X @ self._directions
        Z = Z.toarray() if issparse(Z) else np.asarray(Z)
        return normalize(Z) if self._is_sparse else Z


class Radii(NamedTuple):
    """Mahalanobis distances from the mean, and those that samples of a Gaussian would have.

    Samples that are farther out than a Gaussian's of the same rank are drawn in: the log-odds of
    a Gaussian model would take the far samples of a cluster with heavy tails for others. (Radial
    Gaussianisation, Lyu & Simoncelli 2009, but never outwards.)
    """

    covariance: Floats
    found: Floats  # ascending
    gaussian: Floats

    @classmethod
    def of(cls, Z: Floats) -> Radii:
        """Return the radii of centred samples.

        With the covariance from the samples themselves, n times a beta variable are the squares.
        """
        n, d = Z.shape
        covariance = total_covariance(Z)
        found = np.sort(mahalanobis(Z, covariance))
        if n <= d + 2:
            return cls(covariance, found, found)
        rank = (np.arange(n) + 0.5) / n
        gaussian = np.sqrt(n * beta.ppf(rank, d / 2, (n - d - 1) / 2))
        return cls(covariance, found, np.minimum(found, gaussian))

    def winsorized(self, Z: Floats) -> Floats:
        """Return samples, drawn in if they are too far out."""
        radius = mahalanobis(Z, self.covariance)
        wanted = np.interp(radius, self.found, self.gaussian)
        shrunk = Z * (wanted / np.maximum(radius, np.finfo(float).tiny))[:, None]
        return np.where((wanted < radius)[:, None], shrunk, Z)


def mahalanobis(Z: Floats, covariance: Floats) -> Floats:
    """Return the lengths of vectors in units of a covariance."""
    whitened = solve_triangular(np.linalg.cholesky(covariance), Z.T, lower=True)
    return np.sqrt(np.einsum("ij,ij->j", whitened, whitened))


def _leading(X: Floats, d: int) -> Floats:
    """Return at most `d` leading principal directions; the order of samples does not matter."""
    centred = X - X.mean(axis=0)
    if X.shape[0] < X.shape[1]:
        _, values, rows = np.linalg.svd(centred, full_matrices=False)
        V = rows.T
    else:
        squares, V = np.linalg.eigh(centred.T @ centred)
        values, V = np.sqrt(np.maximum(squares[::-1], 0)), V[:, ::-1]
    kept = values[:d] > 1e-7 * values[0]
    return V[:, :d][:, kept] if kept.any() else V[:, :1]
