"""Bases: descriptions of the samples that do not depend on constraints, computed once.

=============  ==================================================================================
`linear`       principal components, for clusters that a plane separates
`graph`        the smoothest functions on the neighbour graph, for clusters of any shape
`smooth`       the very smoothest of them, in place of principal components if there are none
`kernel`       radial functions around landmarks (Nyström), for what is in between
=============  ==================================================================================

Each comes with a penalty for every column, which says how readily a learner uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_svd

from linkwise._quiet import quiet
from linkwise._threads import one_thread
from linkwise.linalg import eigen
from linkwise.linalg.embedding import random_walk_vectors, spectral_embedding
from linkwise.linalg.laplacian import degrees, symmetric_components
from linkwise.partition import unit_rows

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints


VARIANCE, MIN_COMPONENTS, MAX_COMPONENTS = 0.98, 10, 40
WIDE = 2_000  # samples and features beyond which not all components are computed
N_LANDMARKS, LANDMARK_SAMPLE = 100, 20_000
LINEAR_PENALTY, CONSTANT_PENALTY = 1.0, 1e-3
GRAPH_PENALTY, KERNEL_PENALTY = 10.0, 0.1
LARGE, LARGE_TOL = 20_000, 1e-4  # samples above which eigenvectors are a little less exact


class Components(NamedTuple):
    """Principal components of the data."""

    scores: Floats  # (n, q)
    mean: Floats
    axes: Floats  # (d, q)

    @classmethod
    def of(cls, X: Any) -> Components:
        """Keep 98 % of the variance, but at least 10 components and at most 40."""
        if issparse(X):
            return cls.of_sparse(X)
        mean = X.mean(axis=0)
        centred = X - mean
        unit = float(np.abs(centred).max(initial=0.0)) or 1.0
        centred /= unit  # squares of the data as given may overflow
        n, d = X.shape
        values, axes = _principal_axes(centred)
        share = np.cumsum(values) / max(float(np.vdot(centred, centred)), 1e-300)
        q = min(_n_components(share), d, n)
        axes = _with_signs(axes[:, :q])
        return cls(centred @ axes, mean, axes / unit)

    @classmethod
    def of_sparse(cls, X: Any) -> Components:
        """Do the same to a sparse matrix, which stays sparse."""
        if min(X.shape) <= MAX_COMPONENTS + 1:  # it is small, at least in one direction
            return cls.of(X.toarray())
        unit = float(np.abs(X.data).max(initial=0.0)) or 1.0
        lowest, highest = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
        if (lowest == highest).all():  # there is nothing to decompose
            return cls(np.zeros((X.shape[0], 1)), lowest, np.zeros((X.shape[1], 1)))
        model = PCA(MAX_COMPONENTS, svd_solver="arpack", random_state=0).fit(X / unit)
        share = np.cumsum(model.explained_variance_ratio_)
        q = _n_components(share)
        axes = _with_signs(model.components_[:q].T) / unit
        centred = cls(np.zeros((0, q)), unit * model.mean_, axes)
        return centred._replace(scores=centred.new(X))

    @property
    def unit_scores(self) -> Floats:
        """The scores, scaled by one factor to a mean variance of 1."""
        return self.scores / _rms(self.scores)

    def new(self, X: Any) -> Floats:
        """Return the components of new samples."""
        if issparse(X):
            return np.asarray(X @ self.axes) - self.mean @ self.axes
        scores: Floats = (X - self.mean) @ self.axes
        return scores


class Spectrum(NamedTuple):
    """Smooth functions on a graph: eigenvectors of the walk, the smoothest first."""

    vectors: Floats  # (n, m), each of mean square 1
    values: Floats  # (m,), of the normalised Laplacian, ascending
    n_pieces: int = 1  # that the graph falls into; of more than `m`, the last share a function

    @classmethod
    def of(cls, W: Any, m: int, rng: np.random.RandomState) -> Spectrum:
        """Return the first `m` functions on the graph `W`."""
        d = degrees(W)
        d = d / (d[d > 0].mean() if d.any() else 1.0)  # no scale of the graph over- or underflows
        tol = LARGE_TOL if d.size > LARGE else eigen.DEFAULT_TOL
        found = spectral_embedding(W, m, rng, tol=tol)
        vectors = random_walk_vectors(found.vectors, d)
        vectors /= np.sqrt((vectors**2).mean(axis=0))
        return cls(vectors, np.maximum(1 - found.values, 0.0), symmetric_components(W)[0])

    def first(self, m: int) -> Spectrum:
        """Return the `m` smoothest functions."""
        vectors = self.vectors[:, :m]
        if self.n_pieces > m and self.vectors.shape[1] > m:
            last = (self.vectors[:, m - 1 : self.n_pieces] != 0).any(axis=1)
            vectors = np.column_stack((vectors[:, :-1], last / np.sqrt(last.mean())))
        return Spectrum(vectors, self.values[:m], self.n_pieces)


class Landmarks(NamedTuple):
    """Radial functions around landmarks."""

    centers: Floats  # (m, q), among the principal components
    bandwidth: float  # median squared distance
    whiten: Floats  # (m, m): K_mm^-1/2

    @classmethod
    def of(cls, scores: Floats, rng: np.random.RandomState) -> Landmarks:
        """Place landmarks by k-means."""
        n = scores.shape[0]
        sample = scores if n <= LANDMARK_SAMPLE else scores[_choice(rng, n, LANDMARK_SAMPLE)]
        m = max(1, min(N_LANDMARKS, n // 2))
        with quiet(ConvergenceWarning):
            model = KMeans(m, n_init=1, random_state=rng).fit(sample)
        centers: Floats = np.unique(model.cluster_centers_, axis=0)
        bandwidth = float(np.median(_squares(sample, centers))) or 1.0
        K = np.exp(-_squares(centers, centers) / bandwidth)
        values, V = np.linalg.eigh(K)
        kept = values > 1e-8 * values[-1]
        return cls(centers, bandwidth, V[:, kept] / np.sqrt(values[kept]))

    def new(self, scores: Floats) -> Floats:
        """Return the functions at rows of principal components."""
        features: Floats = np.exp(-_squares(scores, self.centers) / self.bandwidth) @ self.whiten
        return features


@dataclass(frozen=True, eq=False)
class Bases:
    """All bases of one data set.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    components : Components or None
        None if the data are a graph.
    spectrum : Spectrum
        Smooth functions on the graph.
    landmarks : Landmarks or None
        None if the data are a graph.
    n_clusters : int
        Number of clusters, at most, that the bases are meant for.
    W : csr_array or ndarray
        The graph.
    """

    n_samples: int
    components: Components | None
    spectrum: Spectrum
    landmarks: Landmarks | None
    n_clusters: int = 0
    W: Any = None

    def for_clusters(self, k: int) -> Bases:
        """Return the bases with as many functions on the graph as `k` clusters need."""
        spectrum = self.spectrum.first(n_vectors(k, self.n_samples))
        return replace(self, spectrum=spectrum, n_clusters=k)

    @property
    def names(self) -> tuple[str, ...]:
        """The bases there are."""
        features = ("linear", "kernel") if self.components is not None else ("smooth",)
        return (*features, "graph")

    def features(self, rows: Ints | slice = slice(None)) -> dict[str, Floats]:
        """Return every basis at some of the samples."""
        scores = None if self.components is None else self.components.scores[rows]
        return self._described(scores, self.spectrum.vectors[rows])

    def _described(self, scores: Floats | None, vectors: Floats) -> dict[str, Floats]:
        described = {"graph": vectors}
        if scores is not None and self.components is not None and self.landmarks is not None:
            ones = np.ones((scores.shape[0], 1))
            described["linear"] = np.hstack((scores / _rms(self.components.scores), ones))
            described["kernel"] = self.landmarks.new(scores)
        else:
            described["smooth"] = vectors[:, : self.n_clusters]
        return described

    def penalty(self, name: str) -> Floats:
        """Return what the columns of a basis cost."""
        if name == "smooth":
            return self.penalty("graph")[: self.n_clusters]
        if name == "graph":
            return GRAPH_PENALTY * self.spectrum.values + CONSTANT_PENALTY
        if name == "linear" and self.components is not None:
            penalty = np.full(self.components.scores.shape[1] + 1, LINEAR_PENALTY)
            penalty[-1] = CONSTANT_PENALTY
            return penalty
        assert self.landmarks is not None
        return np.full(self.landmarks.whiten.shape[1], KERNEL_PENALTY)

    def embedding(self, m: int, rows: Ints | slice = slice(None)) -> Floats:
        """Return the first `m` functions on the graph at some samples, rows scaled to length 1."""
        return unit_rows(self.spectrum.first(m).vectors[rows])

    @property
    def wide_embedding(self) -> Floats:
        """The embedding that micro-clusters are sought in: no two components share a place."""
        return self.embedding(max(2 * self.n_clusters, self.spectrum.n_pieces))


def n_vectors(k: int, n: int) -> int:
    """Return how many functions on the graph `k` clusters need."""
    return max(1, min(max(4 * k, 30), max(n // 3, min(k, n))))


def build_bases(X: Any, W: Any, k: int) -> Bases:
    """Describe samples by their features, if there are any, and by their graph.

    The bases describe the data: no seed of the caller's changes them, and bases for more clusters
    begin with those for fewer.
    """
    n = W.shape[0]
    with one_thread():  # with more threads of BLAS the last bits would differ
        spectrum = Spectrum.of(W, n_vectors(k, n), np.random.RandomState(0))
        if X is None:
            return Bases(n, None, spectrum, None, n_clusters=k, W=W)
        components = Components.of(X)
        landmarks = Landmarks.of(components.scores, np.random.RandomState(2))
    return Bases(n, components, spectrum, landmarks, n_clusters=k, W=W)


def _n_components(share: Floats) -> int:
    """Return how many components to keep, given the share of the variance of the first ones."""
    enough = int(np.searchsorted(share, VARIANCE)) + 1
    return min(max(enough, MIN_COMPONENTS), MAX_COMPONENTS)


def _principal_axes(centred: Floats) -> tuple[Floats, Floats]:
    """Return squared singular values, descending, and right singular vectors."""
    n, d = centred.shape
    if min(n, d) > WIDE:  # only the first ones are wanted
        _, singular, rows = randomized_svd(centred, MAX_COMPONENTS, random_state=0)
        return singular**2, rows.T
    if d <= n:
        values, axes = np.linalg.eigh(centred.T @ centred)
        return np.maximum(values[::-1], 0.0), axes[:, ::-1]
    values, left = np.linalg.eigh(centred @ centred.T)
    values, left = np.maximum(values[::-1], 0.0), left[:, ::-1]
    return values, centred.T @ (left / np.sqrt(np.maximum(values, 1e-300)))


def _with_signs(axes: Floats) -> Floats:
    """Make the largest entry of every column positive: the same data, the same axes."""
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    signed: Floats = axes * np.where(largest < 0, -1.0, 1.0)
    return signed


def _rms(scores: Floats) -> float:
    """Return the root of the mean squared entry."""
    return float(np.sqrt((scores**2).mean())) or 1.0


def _squares(rows: Floats, centers: Floats) -> Floats:
    squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centers.T + (centers**2).sum(axis=1)
    return np.maximum(squares, 0.0)


def _choice(rng: np.random.RandomState, n: int, m: int) -> Ints:
    return np.sort(rng.choice(n, m, replace=False))
