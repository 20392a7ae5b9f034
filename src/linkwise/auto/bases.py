"""Bases: descriptions of the samples that do not depend on constraints, computed once.

=============  ==================================================================================
`linear`       principal components, for clusters that a plane separates; of a graph alone, the
               very smoothest functions on it
`kernel`       radial functions around landmarks (Nyström), for what is in between
`graph`        the smoothest functions on the neighbour graph, for clusters of any shape
=============  ==================================================================================

Each comes with a penalty for every column, which says how readily a learner uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse
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
    from collections.abc import Sequence

    from linkwise._types import Bools, Floats, Ints


NAMES = ("linear", "kernel", "graph")  # of the bases
VARIANCE, MIN_COMPONENTS, MAX_COMPONENTS = 0.98, 10, 40
WIDE = 2_000  # samples and features beyond which not all components are computed
N_LANDMARKS, LANDMARK_SAMPLE = 100, 20_000
LINEAR_PENALTY, CONSTANT_PENALTY = 1.0, 1e-3
GRAPH_PENALTY, KERNEL_PENALTY = 10.0, 0.1
LARGE, LARGE_TOL = 20_000, 1e-4  # samples above which eigenvectors are a little less exact
FEW_VALUES = 10  # distinct values of a feature that has few
NEARLY_CONSTANT = 0.9  # share of a value that leaves too few samples for a partition by a feature
JITTER_SEED = 91_307  # with a common one, noise is that of data that were drawn with it
BY_CHANCE = 0.05  # probability of columns that are exclusive by chance, in all of a table
CHECKED = 1_000  # rows and columns of which distinct values are counted


# --- features with few values, or two


def binary_features(X: Any) -> Any | None:
    """Return the features as 0 and 1, if each of them has two values; constant ones are left out.

    None if a feature has more values: what it says would be lost. The upper value is 1.
    """
    if issparse(X):
        return _sparse_binary_features(csc_array(X, copy=True))
    low, high = X.min(axis=0), X.max(axis=0)
    varies, is_upper = low < high, high == X
    if not varies.any() or not (is_upper | (low == X)).all():
        return None
    return is_upper[:, varies].astype(np.float64)


def _sparse_binary_features(X: csc_array) -> csr_array | None:
    """Return the same of a sparse matrix, whose features are zero or another value."""
    X.sum_duplicates()
    X.eliminate_zeros()
    stored = np.diff(X.indptr)
    varies = (stored > 0) & (stored < X.shape[0])
    first = np.repeat(X.data[X.indptr[:-1][stored > 0]], stored[stored > 0])
    if not varies.any() or (X.data != first).any():
        return None
    X.data = np.ones_like(X.data, dtype=np.float64)
    return csr_array(X[:, varies])


def one_hot_blocks(X: Any) -> list[Ints]:
    """Return the columns of each category: neighbours of which each sample has one at most.

    A category may lack a column, and its columns must not be exclusive by chance: if they were
    independent, that would happen in fewer than one table of twenty.
    """
    n, uppers = X.shape[0], _upper_rows(X)
    runs: list[list[int]] = []  # of columns that exclude each other
    is_taken, n_taken = np.zeros(n, dtype=bool), 0  # by a column of the last run
    for column, rows in uppers.items():
        is_next = bool(runs) and column == runs[-1][-1] + 1
        if not is_next or n_taken == n or is_taken[rows].any():
            runs.append([])
            is_taken[:], n_taken = False, 0
        runs[-1].append(column)
        is_taken[rows] = True
        n_taken += int(rows.size)
    found: list[Ints] = []
    for run in runs:
        sizes = np.array([uppers[column].size for column in run])
        n_shared = (sizes.sum() ** 2 - (sizes**2).sum()) / (2 * n)  # if they were independent
        if sizes.sum() == n or n_shared > np.log(len(uppers) / BY_CHANCE):
            found.append(np.array(run, dtype=np.intp))
    return found


def _upper_rows(X: Any) -> dict[int, Ints]:
    """Return the samples with the upper value of each feature that has two values."""
    found = {}
    if issparse(X):
        stored = csc_array(X, copy=True)
        stored.sum_duplicates()
        stored.eliminate_zeros()
        for at, (first, end) in enumerate(zip(stored.indptr, stored.indptr[1:], strict=False)):
            values = stored.data[first:end]
            if 0 < values.size < X.shape[0] and values[0] > 0 and (values == values[0]).all():
                found[at] = stored.indices[first:end].astype(np.intp)
        return found
    some = X[np.linspace(0, X.shape[0] - 1, min(X.shape[0], CHECKED)).astype(np.intp)]
    at_border = (some == some.min(axis=0)) | (some == some.max(axis=0))
    for at in np.flatnonzero(at_border.all(axis=0)).tolist():
        column = X[:, at]
        is_upper = column == column.max()
        if not is_upper.all() and (column[~is_upper] == column.min()).all():
            found[at] = np.flatnonzero(is_upper)
    return found


def few_valued(X: Any) -> Bools:
    """Return which features have so few distinct values that a density of them means nothing.

    Counted among samples from all of them, which may be sorted; of many sparse features, in some.
    """
    rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], CHECKED)).astype(np.intp)
    if issparse(X):
        some = np.linspace(0, X.shape[1] - 1, min(X.shape[1], CHECKED)).astype(np.intp)
        columns = csc_array(X[rows][:, some])
        values, most = np.split(columns.data, columns.indptr[1:-1]), FEW_VALUES - 1
    else:
        values, most = list(X[rows].T), min(FEW_VALUES, rows.size // 4)
    few = np.empty(len(values), bool)
    for at, column in enumerate(values):
        few[at] = np.unique(column).size <= most
    return few


def nearly_constant(X: Floats) -> Bools:
    """Return the features in which nearly all samples share a value."""
    share: Bools = (np.median(X, axis=0) == X).mean(axis=0) > NEARLY_CONSTANT
    return share


class Jittered(NamedTuple):
    """Features, those with few values spread by noise."""

    X: Floats
    shrinkage: Floats  # of each feature towards its mean, as far as it is noise; 1: no noise


def jittered(X: Floats, few: Bools) -> Jittered:
    """Spread features with few values evenly over the numbers that are rounded to each value.

    The values of a category, an answer or a count are islands: a graph falls apart between them,
    and a Gaussian on one of them has no variance. Spread, they say as much about clusters, and no
    more than other features. Equal samples get noise of their own: many at one point would be an
    island again.
    """
    rng = np.random.RandomState(JITTER_SEED)
    spread, shrinkage = np.array(X), np.ones(X.shape[1])
    units = np.abs(X).max(axis=0)  # keep squares in range
    units[units == 0] = 1.0
    # Numbers are drawn for the samples in an order that no unit of a feature changes.
    scaled = X / units - (X / units).mean(axis=0)
    deviation = np.where(np.ptp(scaled, axis=0) > 0, scaled.std(axis=0), 1.0)
    key = (scaled / deviation * rng.normal(size=X.shape[1])).sum(axis=1)
    rank = np.argsort(np.argsort(key, kind="stable"))
    for at in np.flatnonzero(few):
        unit = units[at]
        column = X[:, at] / unit
        values, place = np.unique(column, return_inverse=True)
        if values.size == 1:
            continue
        gap = np.diff(values)
        # A value far from all others is not spread over what lies between.
        width = np.minimum(np.append(gap[:1], gap), np.append(gap, gap[-1:]))
        noisy = column + rng.uniform(-0.5, 0.5, size=column.size)[rank] * width[place]
        shrinkage[at] = (column.std() / noisy.std()) ** 2
        spread[:, at] = unit * (column.mean() + shrinkage[at] * (noisy - column.mean()))
    return Jittered(spread, shrinkage)


# --- principal components


class Components(NamedTuple):
    """The principal axes of samples, and where they begin."""

    mean: Floats
    unit: float  # of the largest entry: squares of the data as given may overflow
    axes: Floats  # (n_features, q)

    def scores(self, X: Floats) -> Floats:
        """Return the place of new samples along the axes."""
        found: Floats = ((X - self.mean) / self.unit) @ self.axes
        return found


class Projected(NamedTuple):
    """Samples along their principal axes."""

    scores: Floats
    components: Components


def principal_components(X: Any) -> Projected:
    """Return the scores that keep 98 % of the variance, but at least 10 columns and at most 40.

    In units of the largest entry: squares of the data as given may overflow.
    """
    if issparse(X):
        if min(X.shape) > MAX_COMPONENTS + 1:
            return _sparse_components(X)
        X = X.toarray()  # it is small, at least in one direction
    mean = X.mean(axis=0)
    centred = X - mean
    unit = float(np.abs(centred).max(initial=0.0)) or 1.0
    centred /= unit
    # Squared singular values, descending, and right singular vectors
    n, d = centred.shape
    if min(n, d) > WIDE:  # only the first ones are wanted
        _, singular, rows = randomized_svd(centred, MAX_COMPONENTS, random_state=0)
        values, axes = singular**2, rows.T
    elif d <= n:
        values, axes = np.linalg.eigh(centred.T @ centred)
        values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1]
    else:
        values, left = np.linalg.eigh(centred @ centred.T)
        values, left = np.maximum(values[::-1], 0.0), left[:, ::-1]
        axes = centred.T @ (left / np.sqrt(np.maximum(values, 1e-300)))
    share = np.cumsum(values) / max(float(np.vdot(centred, centred)), 1e-300)
    axes = _leading(axes, share)
    return Projected(centred @ axes, Components(mean, unit, axes))


def _sparse_components(X: Any) -> Projected:
    """Do the same to a sparse matrix, which stays sparse."""
    if (X.min(axis=0).toarray() == X.max(axis=0).toarray()).all():  # nothing to decompose
        nothing = Components(np.zeros(X.shape[1]), 1.0, np.zeros((X.shape[1], 1)))
        return Projected(np.zeros((X.shape[0], 1)), nothing)
    unit = float(np.abs(X.data).max())
    X = X / unit
    model = PCA(MAX_COMPONENTS, svd_solver="arpack", random_state=0).fit(X)
    axes = _leading(model.components_.T, np.cumsum(model.explained_variance_ratio_))
    scores = np.asarray(X @ axes) - model.mean_ @ axes
    return Projected(scores, Components(model.mean_ * unit, unit, axes))


def _leading(axes: Floats, share: Floats) -> Floats:
    """Return the first axes, given the share of the variance that so many of them keep.

    The largest entry of every axis is positive: the same data, the same axes.
    """
    enough = int(np.searchsorted(share, VARIANCE)) + 1
    axes = axes[:, : min(max(enough, MIN_COMPONENTS), MAX_COMPONENTS)]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    signed: Floats = axes * np.where(largest < 0, -1.0, 1.0)
    return signed


# --- functions on the graph, and radial functions


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
        n, sample = scores.shape[0], scores
        if n > LANDMARK_SAMPLE:
            sample = scores[np.sort(rng.choice(n, LANDMARK_SAMPLE, replace=False))]
        m = max(1, min(N_LANDMARKS, n // 2))
        with quiet(ConvergenceWarning):
            model = KMeans(m, n_init=1, random_state=rng).fit(sample)
        centers: Floats = np.unique(model.cluster_centers_, axis=0)
        bandwidth = float(np.median(_squares(sample, centers))) or 1.0
        values, V = np.linalg.eigh(np.exp(-_squares(centers, centers) / bandwidth))
        kept = values > 1e-8 * values[-1]
        return cls(centers, bandwidth, V[:, kept] / np.sqrt(values[kept]))


def _squares(rows: Floats, centers: Floats) -> Floats:
    squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centers.T + (centers**2).sum(axis=1)
    return np.maximum(squares, 0.0)


# --- all of them


class Basis(NamedTuple):
    """Functions at some samples, in columns, and what a learner pays for each."""

    features: Floats
    penalty: Floats


@dataclass(frozen=True, eq=False)
class Bases:
    """All bases of one data set.

    Parameters
    ----------
    W : csr_array or ndarray
        The graph.
    n_clusters : int
        Number of clusters, at most, that the bases are meant for.
    spectrum : Spectrum
        Smooth functions on the graph.
    scores : ndarray of shape (n_samples, q) or None
        Principal components; None if the data are a graph.
    rms : float
        Root of their mean squared entry.
    landmarks : Landmarks or None
        None if the data are a graph.
    components : Components or None
        The axes of the scores.
    """

    W: Any
    n_clusters: int
    spectrum: Spectrum
    scores: Floats | None = None
    rms: float = 1.0
    landmarks: Landmarks | None = None
    components: Components | None = None

    def for_clusters(self, k: int) -> Bases:
        """Return the bases with as many functions on the graph as `k` clusters need."""
        spectrum = self.spectrum.first(n_vectors(k, self.W.shape[0]))
        return replace(self, spectrum=spectrum, n_clusters=k)

    def at(self, rows: Ints | slice, names: Sequence[str] = NAMES) -> dict[str, Basis]:
        """Return bases at some of the samples, the most rigid one first; those there are."""
        penalty = GRAPH_PENALTY * self.spectrum.values + CONSTANT_PENALTY
        graph, k = Basis(self.spectrum.vectors[rows], penalty), self.n_clusters
        if self.scores is None or self.landmarks is None:
            return {"linear": Basis(graph.features[:, :k], penalty[:k]), "graph": graph}
        scores = self.scores[rows]
        linear = np.hstack((scores / self.rms, np.ones((scores.shape[0], 1))))
        paid = np.full(linear.shape[1], LINEAR_PENALTY)
        paid[-1] = CONSTANT_PENALTY
        found = {"linear": Basis(linear, paid)}
        if "kernel" in names:  # the only one that takes time
            squares = _squares(scores, self.landmarks.centers)
            radial = np.exp(-squares / self.landmarks.bandwidth) @ self.landmarks.whiten
            found["kernel"] = Basis(radial, np.full(radial.shape[1], KERNEL_PENALTY))
        return found | {"graph": graph}

    def of_new(self, X: Any) -> dict[str, Basis]:
        """Return the bases at new samples that need no graph."""
        assert self.components is not None
        scores = self.components.scores(X)
        nothing = self.spectrum._replace(vectors=np.zeros((len(scores), 0)))
        found = replace(self, spectrum=nothing, scores=scores).at(slice(None))
        return {name: basis for name, basis in found.items() if name != "graph"}

    def embedding(self, m: int) -> Floats:
        """Return the first `m` functions on the graph, rows scaled to length 1."""
        return unit_rows(self.spectrum.first(m).vectors)


def n_vectors(k: int, n: int) -> int:
    """Return how many functions on the graph `k` clusters need."""
    return max(1, min(max(4 * k, 30), max(n // 3, min(k, n))))


def build_bases(X: Any, W: Any, k: int) -> Bases:
    """Describe samples by their features, if there are any, and by their graph.

    The bases describe the data: no seed of the caller's changes them, and bases for more clusters
    begin with those for fewer.
    """
    with one_thread():  # with more threads of BLAS the last bits would differ
        spectrum = Spectrum.of(W, n_vectors(k, W.shape[0]), np.random.RandomState(0))
        if X is None:
            return Bases(W, k, spectrum)
        scores, components = principal_components(X)
        landmarks = Landmarks.of(scores, np.random.RandomState(2))
    rms = float(np.sqrt((scores**2).mean())) or 1.0
    return Bases(W, k, spectrum, scores, rms, landmarks, components)
