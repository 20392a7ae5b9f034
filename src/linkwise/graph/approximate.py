"""ApproximateNeighbors: a neighbour transformer for many samples, and its recall."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from linkwise._params import Interval, validates_parameters
from linkwise.graph.cells import (
    SPARE,
    Found,
    build_cells,
    chosen_cells,
    in_threads,
    nearest_centres,
    nearest_exactly,
    nearest_in_cells,
    ranked,
    ranked_centres,
    row_blocks,
    search_cells,
    worker_count,
)
from linkwise.graph.neighbors import drop_self, neighbor_table_to_graph
from linkwise.graph.transformer import LOW_RECALL, SAMPLE_SIZE, recall_of, warn_of_low_recall

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from linkwise._types import Floats, Int32s, Ints


# Cells, times the root of n: fewer have more members to compare with, more make smaller products,
# which are slower. CPU seconds on images of digits with 50 features: n = 70,000, 1.0: 2.1 and
# 1.5: 2.2; n = 300,000, 1.5: 10.7 and 2.5: 12.0.
CELLS_PER_ROOT = 1.5
ONE_CELL = 1_000  # samples; below, all pairs take milliseconds
SAMPLE_SPREAD = 10_000  # samples that estimate the spread of the data
# A sample this many times farther than the spread: measured recall is 0.98 up to 1e7, 0.36 at 1e8.
FARTHEST = 1e7
QUERY_BLOCK = 16_384  # new samples searched for at a time


class ApproximateNeighbors(TransformerMixin, BaseEstimator):
    """Nearest neighbours of many samples, nearly all of them the true ones; a transformer.

    The samples are divided among cells by k-means, and each is compared with the members of the
    cells around it. How many cells that takes is found on 500 of the samples, whose true
    neighbours are looked up once: as many as give the wanted `recall`.

    The metric is Euclidean. Distances are exact; only neighbours may be missed. The same seed
    gives the same neighbours on any number of threads.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of each sample, the sample itself not counted. Take as many as the graph needs.
    recall : float, default=0.98
        Share of the true neighbours to find. With 1 every sample is compared with all. Raise it if
        neighbours must not be missed; the search is then slower.
    n_cells : int, default=None
        Cells; by default about 1.5 times the root of the number of samples. Leave it, unless you
        measure.
    n_probes : int, default=None
        Cells searched for each sample. By default found, for the wanted recall. Set it to fix the
        work instead of the recall.
    n_jobs : int, default=None
        Threads; None for as many as BLAS may use. Set -1 to use all cores.
    random_state : int, RandomState instance or None, default=0
        Seed of the cells and of the samples that the recall is measured on. Change it to see how
        much the answer depends on it.

    Attributes
    ----------
    recall_ : float
        Share of the true neighbours found, on the samples it was measured on.
    n_cells_ : int
        Cells made; more than `n_cells` where some were too large.
    n_probes_ : int
        Cells searched for each sample.
    n_features_in_ : int
        Number of features seen in `fit`.

    Warns
    -----
    LowRecallWarning
        When less than 0.95 of the neighbours are found, which a given `n_probes` can cause.

    See Also
    --------
    linkwise.graph.Affinity : Makes a graph of neighbours; uses this search on many samples.
    sklearn.neighbors.KNeighborsTransformer : The exact search.

    Notes
    -----
    Neighbours are the same as those of an exact search where `n_probes` is `n_cells_`. Samples
    without structure in many dimensions do not form cells, so that nearly all are
    compared; reduce the dimensions first.

    References
    ----------
    Sivic & Zisserman (2003), Video Google: a text retrieval approach to object matching in
    videos. ICCV.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import Affinity, ApproximateNeighbors
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> search = ApproximateNeighbors(n_neighbors=5).fit(X)
    >>> search.recall_ >= 0.98
    True
    >>> distances, indices = search.kneighbors()
    >>> indices.shape
    (2000, 5)
    >>> Affinity(neighbors=ApproximateNeighbors(5)).fit_transform(X).shape
    (2000, 2000)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "recall": [Interval(Real, 0, 1, closed="right")],
        "n_cells": [Interval(Integral, 1, None, closed="left"), None],
        "n_probes": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        recall: float = 0.98,
        n_cells: int | None = None,
        n_probes: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.recall = recall
        self.n_cells = n_cells
        self.n_probes = n_probes
        self.n_jobs = n_jobs
        self.random_state = random_state

    @validates_parameters(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> ApproximateNeighbors:
        """Divide the samples among cells, and find how many to search.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : None
            Ignored.

        Returns
        -------
        ApproximateNeighbors
            The transformer itself.
        """
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C", ensure_min_samples=2)
        self._fit_checked(X)
        if self.recall_ < LOW_RECALL:
            warn_of_low_recall(self.recall_, self._advice(), stacklevel=4)
        return self

    def _fit_checked(self, X: Any) -> None:
        random_state = check_random_state(self.random_state)
        n_samples = X.shape[0]
        check_outliers(X)
        n_cells = cell_count(n_samples) if self.n_cells is None else self.n_cells
        self._X = X
        self._cells = build_cells(X, n_cells, random_state, n_threads=self._n_threads)
        self.n_cells_ = int(self._cells.centres.shape[0])
        sample = random_state.permutation(n_samples)[: 2 * SAMPLE_SIZE]
        # Those that the choice is made on would flatter it.
        chooses, tests = (sample, sample) if n_samples <= ONE_CELL else np.array_split(sample, 2)
        self._choose_probes(np.sort(chooses))
        self.recall_ = self._measured_recall(np.sort(tests))

    @property
    def _n_threads(self) -> int:
        return worker_count(self.n_jobs)

    def _choose_probes(self, sample: Ints) -> None:
        """Count ever more cells until they hold the wanted share of the sample's neighbours."""
        self.n_probes_ = min(int(self.n_probes or 1), self.n_cells_)
        if self.recall == 1 and not self.n_probes:
            self.n_probes_ = self.n_cells_
        if self.n_probes or self.n_probes_ == self.n_cells_:
            return
        needed = self._cells_needed(sample)
        while (needed < self.n_probes_).mean() < self.recall and self.n_probes_ < self.n_cells_:
            self.n_probes_ = min(more_probes(self.n_probes_), self.n_cells_)

    def _cells_needed(self, sample: Ints) -> Ints:
        """Return how many cells are nearer than the one that holds a true neighbour."""
        cells = self._cells
        cell_of = np.empty(self._X.shape[0], np.intp)
        cell_of[cells.order] = np.repeat(np.arange(self.n_cells_), np.diff(cells.start))
        order = ranked_centres(self._X[sample], cells.centres, unit=cells.unit)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(self.n_cells_)[None], axis=1)
        return np.take_along_axis(rank, cell_of[self._true_neighbors(sample)[1]], axis=1)

    def _true_neighbors(self, sample: Ints) -> tuple[Floats, Ints]:
        k = min(int(self.n_neighbors), self._X.shape[0] - 1)
        return nearest_in_cells(
            self._X, self._cells, self._X[sample], k, itself=sample, n_threads=self._n_threads
        )

    def _measured_recall(self, sample: Ints) -> float:
        true = self._true_neighbors(sample)[0]
        found = self._search_new(self._X[sample], true.shape[1] + 1)
        return recall_of(drop_self(*found, sample)[0], true[:, -1:])

    def _advice(self) -> str:
        if self.n_probes:
            return f"Leave out n_probes={self.n_probes}, or give more."
        return f"Set more than recall={self.recall:g}."

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None) -> tuple[Floats, Ints]:
        """Find the nearest samples.

        Parameters
        ----------
        X : array of shape (n_queries, n_features), default=None
            New samples; by default the samples of `fit`, which are not their own neighbours.
        n_neighbors : int, default=None
            How many; by default as in the constructor. At most all samples there are.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            From near to far.
        indices : ndarray of shape (n_queries, n_neighbors)
            The neighbours.
        """
        check_is_fitted(self)
        k = int(self.n_neighbors if n_neighbors is None else n_neighbors)
        if X is None:
            return self._search_all(min(k, self._X.shape[0] - 1))
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32], order="C")
        tables = [
            self._search_new(X[block], min(k, self._X.shape[0]))
            for block in row_blocks(X.shape[0], QUERY_BLOCK)
        ]
        distances, indices = zip(*tables, strict=True)
        return np.concatenate(distances), np.concatenate(indices)

    def fit_transform(self, X: Any, y: Any = None) -> csr_array:
        """Fit to `X`, and return the distances of the samples to their neighbours.

        Each sample is its own first neighbour, with distance 0.
        """
        distances, indices = self.fit(X).kneighbors()
        n_samples = distances.shape[0]
        itself = np.arange(n_samples)[:, None]
        return neighbor_table_to_graph(
            np.hstack([np.zeros((n_samples, 1)), distances]),
            np.hstack([itself, indices]),
            n_samples,
        )

    def transform(self, X: Any) -> csr_array:
        """Distances of new samples to their neighbours: one more than `n_neighbors`.

        One more, since a sample of `fit` is its own first neighbour.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)
            New samples.

        Returns
        -------
        csr_array of shape (n_queries, n_samples)
            Distances.
        """
        check_is_fitted(self)
        found = self.kneighbors(X, int(self.n_neighbors) + 1)
        return neighbor_table_to_graph(*found, self._X.shape[0])

    def _search_all(self, k: int) -> tuple[Floats, Ints]:
        """Neighbours of the samples of `fit`, searched for cell by cell."""
        cells, n_samples = self._cells, self._X.shape[0]
        probes = chosen_cells(cells, cells.centres, self.n_probes_, n_threads=self._n_threads)
        found = Found.nothing(n_samples, k + SPARE)

        def search(cell: int) -> None:
            part = slice(cells.start[cell], cells.start[cell + 1])
            own = np.ascontiguousarray(cells.members[part, :-1])
            lists = Found(found.squares[part], found.positions[part])
            search_cells(cells, cell, own, probes[part], part.start, lists)

        in_threads(search, range(self.n_cells_), self._n_threads)
        positions = np.empty_like(found.positions)
        positions[cells.order] = found.positions
        return self._ranked(self._X, positions, k, itself=np.arange(n_samples))

    def _search_new(self, queries: Any, k: int) -> tuple[Floats, Ints]:
        """Neighbours of new samples, those with the same nearest centre together."""
        cells = self._cells
        probes = self._probes(queries)
        found = Found.nothing(queries.shape[0], k + SPARE)

        def search(cell: int) -> None:
            rows = np.flatnonzero(probes[:, 0] == cell)
            relative = (queries[rows] / cells.unit - cells.centres[cell]).astype(np.float32)
            lists = Found(found.squares[rows], found.positions[rows])
            search_cells(cells, cell, relative, probes[rows], -1, lists)
            found.squares[rows], found.positions[rows] = lists

        in_threads(search, np.unique(probes[:, 0]), self._n_threads)
        return self._ranked(queries, found.positions, k)

    def _probes(self, queries: Any) -> Int32s:
        """Return the cells to search for each query."""
        cells = self._cells
        return nearest_centres(
            queries, cells.centres, self.n_probes_, unit=cells.unit, n_threads=self._n_threads
        )

    def _ranked(
        self, queries: Any, positions: Int32s, k: int, *, itself: Ints | None = None
    ) -> tuple[Floats, Ints]:
        """Keep the k nearest; search all samples for those queries whose cells hold too few."""
        n_threads = self._n_threads
        samples = self._cells.order.astype(np.int32)[positions]
        samples[positions < 0] = -1
        distances, indices = ranked(
            queries, self._X, samples, k=k, unit=self._cells.unit, n_threads=n_threads
        )
        rows = np.flatnonzero(indices[:, -1] < 0)
        if rows.size:
            distances[rows], indices[rows] = nearest_exactly(
                self._X,
                queries[rows],
                k,
                itself=None if itself is None else itself[rows],
                n_threads=n_threads,
            )
        return distances, indices


def cell_count(n_samples: int) -> int:
    """Return how many cells many samples are divided among."""
    return 1 if n_samples <= ONE_CELL else int(CELLS_PER_ROOT * np.sqrt(n_samples))


def more_probes(n_probes: int) -> int:
    """Return the next larger number of cells to try."""
    return n_probes + max(1, n_probes // 8)


def check_outliers(X: Any) -> None:
    """Raise ValueError if a sample is so far off that the others are one point beside it.

    Distances within cells are in single precision: a code for missing values such as 1e20 would
    take the neighbours of every sample with it, unnoticed.
    """
    some = np.asarray(X[:: max(1, X.shape[0] // SAMPLE_SPREAD)], dtype=np.float64)
    middle = np.median(some, axis=0)
    spread = np.median(np.abs(some - middle), axis=0).max(initial=0.0)
    off = np.maximum(X.max(axis=0) - middle, middle - X.min(axis=0))
    if spread > 0 and off.max() > FARTHEST * spread:
        feature = int(off.argmax())
        sample = int(np.abs(X[:, feature] - middle[feature]).argmax())
        raise ValueError(
            f"X[{sample}, {feature}] is {X[sample, feature]:g}, {off.max() / spread:.0e} times "
            "farther from the median than half of the samples. Beside it their distances "
            "vanish by rounding. If it stands for a missing value, leave the sample out; otherwise "
            'use Affinity(search="exact").'
        )
