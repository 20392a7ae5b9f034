"""Distances between samples: nearest neighbours, epsilon balls, all pairs.

A *distance graph* is a ``csr_array`` whose row `i` stores the distances from sample `i` to its
neighbours. A stored zero is a duplicate of the sample, not an absent edge, and a sample is never
its own neighbour: it is left out by its index, because a duplicate has the same distance.
"""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.spatial import KDTree
from sklearn.exceptions import EfficiencyWarning
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin_min
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors

from linkwise.exceptions import TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from linkwise._types import Floats, Ints, Matrix


DENSE_LIMIT = 10_000  # samples; one matrix of all distances is then 800 MB

# Exponent of each metric that a k-d tree can search; their balls fit in boxes of the same radius.
MINKOWSKI_EXPONENTS = {
    "euclidean": 2.0,
    "l2": 2.0,
    "manhattan": 1.0,
    "cityblock": 1.0,
    "l1": 1.0,
    "chebyshev": np.inf,
}

# Metrics that do not depend on the length of a sample.
DIRECTIONS = frozenset({"cosine", "correlation"})
LARGEST_EXPONENT = 400  # of two, of a number whose square can be used
LARGEST = 1e151  # feature whose square can be used; 1 / LARGEST is the smallest such one
# Distances from expanded squares are off by about 1e-16 of the squared norms. Below this share of
# them, the squared distance to the last neighbour is no longer sure to six digits.
DOUBTFUL = 1e-9
SLOWEST = 10_000_000  # pairs of sparse samples that are compared one by one

SLOW_METRIC = 100_000  # samples; above, comparing all pairs by any metric takes minutes
BLOCK_ENTRIES = 4_000_000  # numbers held at once by a chunked computation: 32 MB


def minkowski_exponent(metric: Any, metric_params: dict[str, Any]) -> float | None:
    """Exponent p of a Minkowski distance, None for every other metric."""
    if metric == "minkowski" and set(metric_params) <= {"p"}:
        exponent = float(metric_params.get("p", 2))
        return exponent if exponent >= 1 else None
    if isinstance(metric, str) and not metric_params:
        return MINKOWSKI_EXPONENTS.get(metric)
    return None


def tree_is_faster(n_samples: int, n_features: int) -> bool:
    """Whether a k-d tree beats the comparison of all pairs.

    Measured for k = 10 on one thread. Gaussian samples, n = 20,000: 0.4 s against 1.7 s with 5
    features, 1.8 s against 1.9 s with 8, 4.3 s against 1.8 s with 10. Five clusters,
    n = 100,000: 31 s against 32 s with 9 features, 48 s against 32 s with 10. Comparison is
    quadratic and the tree nearly linear, so the limit rises with log2 n. On few samples both take
    milliseconds, and the tree is free of cancellation.
    """
    return n_features <= 15 and (n_samples <= 1_000 or 150 * 2**n_features <= n_samples)


def thread_count(n_jobs: int | None) -> int:
    """Read scikit-learn's `n_jobs`: None is one thread, -1 all cores, -2 all but one."""
    n_jobs = 1 if n_jobs is None else int(n_jobs)
    return max(1, n_jobs if n_jobs >= 0 else (os.cpu_count() or 1) + 1 + n_jobs)


def chunks(n_rows: int, entries_per_row: int) -> Iterator[slice]:
    """Slices over rows that hold about `BLOCK_ENTRIES` entries each."""
    step = max(1, BLOCK_ENTRIES // max(1, entries_per_row))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def exact_euclidean(A: Any, B: Any, pairs: tuple[Ints, ...]) -> Floats:
    """Distances between the samples ``A[i]`` and ``B[j]`` of each pair.

    Fast Euclidean distances come from ``|a|^2 - 2 a'b + |b|^2``, which cancels: duplicates would
    be about 1e-8 apart. The difference of the vectors does not cancel.
    """
    i, j = pairs
    distances = np.empty(i.size)
    for part in chunks(i.size, A.shape[1]):
        difference = A[i[part]] - B[j[part]]
        if issparse(difference):
            squares = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", difference, difference)
        distances[part] = np.sqrt(squares)
    return distances


def check_magnitude(X: Any, exponent: float = 2.0) -> None:
    """Raise ValueError if powers of the features leave the range of numbers; of two by default."""
    values = X.data if issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    limit = LARGEST ** (2 / exponent)
    if largest > limit or 0 < largest < 1 / limit:
        powers = "squares" if exponent == 2 else f"powers of {exponent:g}"
        raise ValueError(
            f"The largest feature is {largest:.0e} in size{_places(X, limit)}: {powers} of such "
            "numbers leave the range of floating-point numbers. Correct it, or divide X by "
            "np.abs(X).max()."
        )


def _places(X: Any, limit: float) -> str:
    """Say where entries above a limit are, if they are few: then they are mistakes."""
    rows, columns = np.nonzero(abs(X) > limit) if not issparse(X) else (abs(X) > limit).nonzero()
    if not 0 < rows.size <= 3:
        return ""
    shown = ", ".join(f"X[{i}, {j}]" for i, j in zip(rows, columns, strict=True))
    return f" ({shown})"


def rows_in_range(X: Any) -> Any:
    """Scale the samples whose squares leave the range of numbers by powers of two.

    For metrics of directions, which do not see the scale.
    """
    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if issparse(largest) else np.asarray(largest)
    exponents = np.frexp(largest)[1]
    exponents[(abs(exponents) <= LARGEST_EXPONENT) | (largest == 0)] = 0
    if not exponents.any():
        return X
    if not issparse(X):
        return np.ldexp(X, -exponents[:, None])
    X = csr_array(X, copy=True)
    X.data = np.ldexp(X.data, -np.repeat(exponents, np.diff(X.indptr)))
    return X


def euclidean_block(A: Any, B: Any, norms_B: Floats) -> Floats:
    """All Euclidean distances from `A` to `B`, those tiny against the norms recomputed exactly."""
    norms_A = squared_norms(A)
    distances: Floats = euclidean_distances(
        A, B, X_norm_squared=norms_A[:, None], Y_norm_squared=norms_B
    )
    tiny = np.nonzero(distances**2 <= 1e-6 * (norms_A[:, None] + norms_B))
    distances[tiny] = exact_euclidean(A, B, tiny)
    return distances


def squared_norms(X: Any) -> Floats:
    """Squared length of every sample."""
    if issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=float).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def drop_self(distances: Floats, indices: Ints, samples: Ints) -> tuple[Floats, Ints]:
    """Remove each sample from its own list of k + 1 neighbours, leaving k.

    A sample with more than k duplicates may be missing from its own list: then the last goes.
    """
    is_self = indices == samples[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    shape = (indices.shape[0], indices.shape[1] - 1)
    return distances[~is_self].reshape(shape), indices[~is_self].reshape(shape)


def sort_rows(distances: Floats, indices: Ints) -> tuple[Floats, Ints]:
    """Order each list of neighbours from near to far, equal distances by index."""
    order = np.lexsort((indices, distances), axis=1)
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(indices, order, axis=1)


class NeighborSearch:
    """Answers which samples of `X` are near, and how far they are.

    `metric` is any metric of scikit-learn's neighbours, or "precomputed": then `X` holds distances.
    A k-d tree answers for the Minkowski metrics in few dimensions (see `tree_is_faster`), on
    `n_jobs` threads. All else is scikit-learn's: blocks of pairs, whose memory does not grow with
    n^2, on the threads of OpenMP, or its own trees for metrics such as haversine. Euclidean
    distances are exact to rounding in both ways.
    """

    def __init__(
        self,
        X: Any,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        *,
        n_jobs: int | None = None,
    ) -> None:
        self.is_of_directions = isinstance(metric, str) and metric in DIRECTIONS
        self.X = rows_in_range(X) if self.is_of_directions else X
        self.n_samples = int(X.shape[0])
        self.metric = metric
        self.metric_params = dict(metric_params or {})
        self.n_jobs = n_jobs
        self.is_precomputed = metric == "precomputed"
        self.exponent = minkowski_exponent(metric, self.metric_params)
        self.is_euclidean = self.exponent == 2
        self.has_boxes = self.exponent is not None and not issparse(X)
        self.has_tree = self.has_boxes and tree_is_faster(*X.shape)

    @cached_property
    def _offset(self) -> Floats | None:
        # Norms far above the spread of the samples would hide the differences among them.
        if not self.is_euclidean or issparse(self.X):
            return None
        mean = self.X.mean(axis=0)
        return mean if mean @ mean > self.X.var(axis=0).sum() else None

    @cached_property
    def _centred_X(self) -> Any:  # noqa: N802
        return self._centred(self.X)

    @cached_property
    def _squared_norms(self) -> Floats:
        return squared_norms(self._centred_X)

    def in_same_format(self, query: Any) -> Any:
        """Make new samples an array if `X` is one, sparse if `X` is."""
        query = rows_in_range(query) if self.is_of_directions else query
        if issparse(self.X):
            return csr_array(query)
        return query.toarray() if issparse(query) else query

    def _centred(self, samples: Any) -> Any:
        return samples if self._offset is None else samples - self._offset

    @cached_property
    def _index(self) -> Any:
        # Built when first needed: with a neighbour transformer it seldom is.
        if self.has_tree:
            return KDTree(self.X)
        # Above, a Minkowski metric was found faster by brute force; of the others, scikit-learn
        # knows which have a tree.
        others = {name: value for name, value in self.metric_params.items() if name != "p"}
        index = NearestNeighbors(
            algorithm="auto" if self.exponent is None else "brute",
            metric=self.metric,
            p=self.metric_params.get("p", 2),
            metric_params=others or None,
            n_jobs=self.n_jobs,
        )
        return index.fit(self._centred_X)

    def nearest(
        self, k: int, *, query: Any = None, samples: Ints | None = None
    ) -> tuple[Floats, Ints]:
        """Distances and indices of the k nearest samples, from near to far.

        Of the samples in `query`, which are new, or of the searched `samples` themselves (by
        index; default all), which are not their own neighbours.
        """
        if query is not None:
            return self._lookup(query, min(k, self.n_samples))
        if samples is None:
            samples = np.arange(self.n_samples)
        whole = samples.size == self.n_samples
        if whole and self.n_samples > SLOW_METRIC and not (self.is_euclidean or self.has_tree):
            self._warn_slow()
        rows = self.X if whole else self.X[samples]
        return drop_self(*self._lookup(rows, min(k, self.n_samples - 1) + 1), samples)

    def _warn_slow(self) -> None:
        message = (
            f"With metric={self.metric!r} the search for neighbours compares all pairs of "
            f"{self.n_samples:,} samples. An approximate search takes the Euclidean metric (for "
            '"cosine", scale the samples to length 1), or another transformer as neighbors=.'
        )
        warnings.warn(message, EfficiencyWarning, stacklevel=2)

    def _lookup(self, query: Any, k: int) -> tuple[Floats, Ints]:
        if self.is_precomputed:
            return self._lookup_in_rows(query, k)
        if self.has_tree:
            workers = 1 if self.n_jobs is None else thread_count(self.n_jobs)
            distances, indices = self._index.query(query, k=k, p=self.exponent, workers=workers)
            shape = (query.shape[0], k)
            return distances.reshape(shape), indices.reshape(shape)
        distances, indices = self._index.kneighbors(self._centred(query), n_neighbors=k)
        if not self.is_euclidean:
            return distances, indices
        rows = np.repeat(np.arange(query.shape[0]), k)
        exact = exact_euclidean(query, self.X, (rows, indices.ravel()))
        distances, indices = sort_rows(exact.reshape(indices.shape), indices)
        doubtful = self._doubtful(self._centred(query), distances[:, -1])
        if doubtful.size:
            distances[doubtful], indices[doubtful] = self._by_differences(query[doubtful], k)
        return distances, indices

    def _doubtful(self, query: Any, distances: Floats, norms: Floats | None = None) -> Ints:
        """Return which samples are so near to others that rounding decides about neighbours."""
        norms = self._squared_norms if norms is None else norms
        scale = squared_norms(query) + norms.max()
        return np.flatnonzero((distances > 0) & (distances**2 < DOUBTFUL * scale))

    def _by_differences(self, query: Any, k: int) -> tuple[Floats, Ints]:
        """Search by differences of features, which do not cancel, however far off they are."""
        if not issparse(query):
            distances, indices = KDTree(self.X).query(query, k=k)
            shape = (query.shape[0], k)
            return distances.reshape(shape), indices.reshape(shape)
        if query.shape[0] * self.n_samples > SLOWEST:
            raise ValueError(
                f"{query.shape[0]:,} samples are so near to each other, compared with their "
                "length, that rounding hides their distances, and X is sparse. Scale the features "
                "to similar size, or give X as a dense array."
            )
        pairs = np.indices((query.shape[0], self.n_samples)).reshape(2, -1)
        distances = exact_euclidean(query, self.X, (pairs[0], pairs[1]))
        return self._lookup_in_rows(distances.reshape(query.shape[0], -1), k)

    def _lookup_in_rows(self, rows: Floats, k: int) -> tuple[Floats, Ints]:
        distances = np.empty((rows.shape[0], k))
        indices = np.empty((rows.shape[0], k), dtype=np.intp)
        for part in chunks(*rows.shape):
            block = rows[part]
            found = np.argpartition(block, k - 1, axis=1)[:, :k]
            values = np.take_along_axis(block, found, axis=1)
            distances[part], indices[part] = sort_rows(values, found)
        return distances, indices

    def all_distances(self, query: Any = None) -> Floats:
        """Distances from the samples in `query` (default: `X`) to all samples of `X`."""
        if self.is_precomputed:
            return np.array(self.X if query is None else query)
        rows = self.X if query is None else query
        distances = np.empty((rows.shape[0], self.n_samples))
        for part in chunks(*distances.shape):
            distances[part] = self._block(rows[part])
        return distances

    def full_graph(self, query: Any = None) -> Matrix:
        """All distances: a dense matrix, but a distance graph from the samples in `query`."""
        if query is None and self.n_samples > DENSE_LIMIT:
            raise TooLargeError(
                f"A full graph of {self.n_samples:,} samples is dense; the limit is "
                f"{DENSE_LIMIT:,}. Use a graph of nearest neighbours: neighbors=10."
            )
        distances = self.all_distances(query)
        if query is None:
            np.fill_diagonal(distances, 0)
            return distances
        # Built by hand: a conversion would drop the zero distances of duplicates.
        columns = np.tile(np.arange(self.n_samples), (distances.shape[0], 1))
        return neighbor_table_to_graph(distances, columns, self.n_samples)

    def from_samples(self, samples: Ints | slice) -> Floats:
        """Distances from some of the samples to all of them."""
        return self.X[samples] if self.is_precomputed else self._block(self.X[samples])

    def _block(self, rows: Any) -> Floats:
        if self.is_euclidean:
            return euclidean_block(self._centred(rows), self._centred_X, self._squared_norms)
        return np.asarray(
            pairwise_distances(rows, self.X, metric=self.metric, **self.metric_params), dtype=float
        )

    def row_blocks(self) -> Iterator[Floats]:
        """All distances in blocks of whole rows, infinite from a sample to itself."""
        for part in chunks(self.n_samples, self.n_samples):
            block = np.array(self.from_samples(part))
            block[np.arange(block.shape[0]), np.arange(part.start, part.stop)] = np.inf
            yield block

    def within(self, radius: float, query: Any = None) -> csr_array:
        """Distance graph of the samples at most `radius` away.

        Raises
        ------
        TooLargeError
            When the balls hold more distances than a full graph at its limit would.
        """
        rows = self.X if query is None else query
        graph = self._balls_by_tree(rows, radius) if self.has_tree else self._balls(rows, radius)
        return without_diagonal(graph) if query is None else graph

    def _balls_by_tree(self, rows: Any, radius: float) -> csr_array:
        tree = KDTree(rows)
        # Counting is much cheaper than listing, and shows beforehand whether the list fits.
        n_found = self._index.count_neighbors(tree, radius, p=self.exponent)
        check_ball_sizes(int(n_found), radius)
        found = tree.sparse_distance_matrix(
            self._index, radius, p=self.exponent, output_type="ndarray"
        )
        shape = (rows.shape[0], self.n_samples)
        return csr_array((found["v"], (found["i"], found["j"])), shape=shape)

    def _balls(self, rows: Any, radius: float) -> csr_array:
        found: list[tuple[Floats, Ints, Ints]] = []
        n_found = 0
        for part in chunks(rows.shape[0], self.n_samples):
            block = rows[part] if self.is_precomputed else self._block(rows[part])
            i, j = np.nonzero(block <= radius)
            found.append((block[i, j], i + part.start, j))
            n_found += i.size
            check_ball_sizes(n_found, radius)
        values, i, j = (np.concatenate(blocks) for blocks in zip(*found, strict=True))
        return csr_array((values, (i, j)), shape=(rows.shape[0], self.n_samples))

    def closest(self, rows: Ints, cols: Ints) -> tuple[Floats, Ints]:
        """For each sample of `rows`, the closest of `cols`: its distance and its index."""
        if self.is_precomputed:
            best = np.concatenate(
                [
                    np.argmin(self.X[np.ix_(rows[part], cols)], axis=1)
                    for part in chunks(rows.size, cols.size)
                ]
            )
            return self.X[rows, cols[best]], cols[best]
        A, B = self._centred_X[rows], self._centred_X[cols]
        best, distances = pairwise_distances_argmin_min(
            A, B, metric=self.metric, metric_kwargs=self.metric_params or None
        )
        if not self.is_euclidean:
            return distances, cols[best]
        distances = exact_euclidean(self.X, self.X, (rows, cols[best]))
        doubtful = self._doubtful(A, distances, self._squared_norms[cols])
        if doubtful.size and not issparse(A):
            tree = KDTree(self.X[cols])
            distances[doubtful], best[doubtful] = tree.query(self.X[rows[doubtful]])
        return distances, cols[best]


def check_ball_sizes(n_found: int, radius: float) -> None:
    """Stop before an epsilon graph outgrows the memory that a full graph may take."""
    if n_found > DENSE_LIMIT**2:
        raise TooLargeError(
            f"radius={radius:g} gives more than {DENSE_LIMIT**2:,} pairs of neighbours."
            " Use a smaller radius, or radius=None with neighbors=10."
        )


def neighbor_table_to_graph(distances: Floats, indices: Ints, n_columns: int) -> csr_array:
    """Distance graph whose rows keep the order of the table, from near to far."""
    n_rows, k = indices.shape
    # Half the index memory, and faster products, wherever 32 bits are enough.
    small = max(n_rows * k, n_columns) <= np.iinfo(np.int32).max
    integer = np.int32 if small else np.int64
    indptr = np.arange(0, n_rows * k + 1, k, dtype=integer)
    columns = indices.ravel().astype(integer)
    return csr_array((distances.ravel(), columns, indptr), shape=(n_rows, n_columns))


def without_diagonal(graph: csr_array) -> csr_array:
    """Drop the distance of every sample to itself; stored zeros elsewhere stay."""
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    kept = graph.indices != rows
    counts = np.bincount(rows[kept], minlength=graph.shape[0])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((graph.data[kept], graph.indices[kept], indptr), shape=graph.shape)
