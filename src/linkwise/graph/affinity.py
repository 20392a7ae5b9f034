"""Affinity: the one builder of similarity graphs."""

from __future__ import annotations

import warnings
from itertools import chain
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import EfficiencyWarning
from sklearn.neighbors import VALID_METRICS
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from linkwise._params import HasMethods, Interval, StrOptions, validates_parameters
from linkwise.exceptions import DisconnectedGraphWarning, TooLargeError
from linkwise.graph.approximate import (
    LOW_RECALL,
    ApproximateNeighbors,
    recall_of_graph,
    warn_of_low_recall,
)
from linkwise.graph.connect import shortest_links, with_links
from linkwise.graph.neighbors import (
    DENSE_LIMIT,
    NeighborSearch,
    chunks,
    exact_is_cheap,
    minkowski_exponent,
    nearest_stored,
    neighbor_table_to_graph,
    transformer_graph,
    without_diagonal,
)
from linkwise.graph.reduce import SPARSE_DIMENSIONS, Reduction
from linkwise.graph.weights import (
    gaussian,
    positive_scale,
    sigma_variance,
    sigma_xu,
    smallest_positive,
    symmetrized,
    xu_neighbor,
)
from linkwise.linalg.components import symmetric_components

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats


__all__ = ["Affinity"]

# Zelnik-Manor & Perona (2004) scale by the distance to the 7th neighbour.
SELF_TUNING_NEIGHBOR = 7
SLOW_METRIC = 100_000  # samples; above, comparing all pairs by any metric takes minutes
LARGEST = 1e151  # feature whose square can be used; 1 / LARGEST is the smallest such one


class Affinity(TransformerMixin, BaseEstimator):
    r"""Similarity graph of samples: neighbours, Gaussian weights, one connected piece.

    The default is a graph of the 10 nearest neighbours with self-tuning weights

    .. math:: w_{ij} = \exp\left(-d_{ij}^2 / (s_i s_j)\right),

    where :math:`s_i` is the distance of sample `i` to its 10th neighbour, symmetric by the
    union of the two directions, and joined by its shortest links where it falls apart.

    Parameters
    ----------
    neighbors : int, None or neighbour transformer, default=10
        Number of nearest neighbours, the sample itself not counted (at most n - 1 are used);
        None for the full graph, which is dense and limited to 10,000 samples; or an object with
        `fit_transform` (and `transform`, for `extend`) that returns a sparse matrix of
        distances, such as :class:`sklearn.neighbors.KNeighborsTransformer` or pynndescent's
        ``PyNNDescentTransformer``. A transformer searches by its own metric: give the same one
        as `metric`, which is still used for joining pieces and for `scale="xu"`.
    radius : float, default=None
        Link all samples at most this far apart (an epsilon graph). When set, a number of
        `neighbors` plays no role.
    scale : {"local", "xu", "variance", "connectivity"} or float, default="local"
        What distance is near.

        - "local": self-tuning (Zelnik-Manor & Perona 2004), as above;
        - "xu": one sigma, for which every sample has an affinity of at least 0.001 to its `m`
          nearest neighbours (Xu, desJardins & Wagstaff 2005);
        - "variance": sigma^2 is the mean variance of the features (Wacquet et al. 2013);
        - a positive number: sigma itself, in ``exp(-d^2 / (2 sigma^2))``;
        - "connectivity": every edge weighs 1.
    scale_neighbor : int, default=None
        Which neighbour gives the local scale: by default the last one of a graph of nearest
        neighbours (or of a transformer), and the 7th in epsilon and full graphs. A scale of
        zero, which many duplicates cause, is replaced by the smallest positive distance.
    m : int, default=None
        Neighbours that `scale="xu"` keeps near. By default it is the place of the largest gap
        between consecutive neighbour distances of any sample, which takes all n^2 distances.
    symmetrize : {"union", "mean", "mutual"}, default="union"
        Edge weight where two directions meet: the larger one; their mean, an absent one being
        zero; or the smaller one, so that only mutual neighbours stay linked.
    metric : str or callable, default="euclidean"
        Any metric of :class:`sklearn.neighbors.NearestNeighbors`, or "precomputed": X then
        holds distances, as a dense array of shape (n_samples, n_samples).
    metric_params : dict, default=None
        Parameters of the metric.
    connect : {"mst"} or None, default="mst"
        What to do with a graph in several pieces: add the links of the minimum spanning tree
        between the pieces, or leave it and warn.
    search : {"auto", "exact", "approximate"}, default="auto"
        How a number of `neighbors` is searched for: comparing all pairs or with a k-d tree, or by
        :class:`ApproximateNeighbors`, for the Euclidean metric. "auto" is exact up to 30,000
        samples, and beyond in up to 4 dimensions.
    reduce_to : int, default=None
        Dimensions to keep by principal components (of sparse X: singular vectors) before
        anything else; distances are then those in the reduced space. Without it only sparse X
        is reduced, to 100 dimensions, where the search is approximate. Euclidean metric only.
    n_jobs : int, default=None
        Threads of tree and approximate searches; None is one for trees, and as many as BLAS may
        use for approximate searches. Comparisons of all pairs use the threads of OpenMP.
    random_state : int, RandomState instance or None, default=0
        Seed of approximate searches and of reductions. A number by default, so that samples have
        one graph.

    Attributes
    ----------
    affinity_matrix_ : csr_array or ndarray of shape (n_samples, n_samples)
        The graph: symmetric, not negative, zero diagonal. An ndarray if it is full.
    scale_ : float, ndarray of shape (n_samples,) or None
        Sigma, the local scales, or None for "connectivity".
    m_ : int
        The m that was used; only for `scale="xu"`.
    n_components_ : int
        Connected components before they were joined.
    component_sizes_ : ndarray of shape (n_components_,)
        Their numbers of samples, in decreasing order.
    n_joined_ : int
        Links added to join them.
    recall_ : float
        Share of the nearest neighbours that were found: 1 if the search is exact, otherwise
        measured on 500 samples.
    reduction_ : Reduction or None
        The directions that X was reduced to, if it was; its `n_dimensions` is their number.
    transformer_ : object
        The fitted neighbour transformer, if there is one; approximate searches have one.
    n_features_in_ : int
        Number of features seen in `fit`.

    Warns
    -----
    DisconnectedGraphWarning
        With `connect=None`, when the graph has several components.
    LowRecallWarning
        When an approximate search or a transformer misses more than one in twenty neighbours.

    See Also
    --------
    sklearn.neighbors.kneighbors_graph : Neighbours without weights, not symmetric.

    Notes
    -----
    A graph is about the samples it was built from. `fit_transform` returns it; `transform` (or
    `extend`) returns the affinities of other samples to these.

    The same seed gives the same graph, on any number of threads; exact searches use none.
    Reordering the samples reorders the graph in the same way, except where
    several samples are exactly equally far at the k-th place: then it is not defined which of
    them are neighbours.

    A joining link has its own weight under the same scale, but not less than the smallest weight
    of the other edges, so that the graph stays connected in floating point. The links are the
    exact minimum spanning tree in few dimensions (8 for a million samples, 11 for a hundred
    thousand), and elsewhere as long as a round of its search takes at most 2e9 distances; beyond
    that, the link between two large pieces may be a locally shortest one.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise.graph import Affinity
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> builder = Affinity(neighbors=2)
    >>> W = builder.fit_transform(X)
    >>> W.nnz // 2
    7
    >>> builder.component_sizes_.tolist(), builder.n_joined_
    ([3, 3], 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "neighbors": [
            Interval(Integral, 1, None, closed="left"),
            HasMethods(["fit_transform"]),
            None,
        ],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "scale": [
            StrOptions({"local", "xu", "variance", "connectivity"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "scale_neighbor": [Interval(Integral, 1, None, closed="left"), None],
        "m": [Interval(Integral, 1, None, closed="left"), None],
        "symmetrize": [StrOptions({"union", "mean", "mutual"})],
        "metric": [StrOptions({*chain(*VALID_METRICS.values()), "precomputed"}), callable],
        "metric_params": [dict, None],
        "connect": [StrOptions({"mst"}), None],
        "search": [StrOptions({"auto", "exact", "approximate"})],
        "reduce_to": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    _ranks: Floats | None  # while fitting: distances to more neighbours than the graph has

    def __init__(  # noqa: PLR0913  (a scikit-learn estimator lists its parameters here)
        self,
        neighbors: Any = 10,
        *,
        radius: float | None = None,
        scale: str | float = "local",
        scale_neighbor: int | None = None,
        m: int | None = None,
        symmetrize: str = "union",
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        connect: str | None = "mst",
        search: str = "auto",
        reduce_to: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.neighbors = neighbors
        self.radius = radius
        self.scale = scale
        self.scale_neighbor = scale_neighbor
        self.m = m
        self.symmetrize = symmetrize
        self.metric = metric
        self.metric_params = metric_params
        self.connect = connect
        self.search = search
        self.reduce_to = reduce_to
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @property
    def _kind(self) -> str:
        if self.radius is not None:
            return "radius"
        if self.neighbors is None:
            return "full"
        return "nearest" if isinstance(self.neighbors, Integral) else "transformer"

    @validates_parameters(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Affinity:
        """Build the graph.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples; distances if `metric="precomputed"`.
        y : None
            Ignored.

        Returns
        -------
        Affinity
            The builder itself; the graph is `affinity_matrix_`.
        """
        X = self._reduced(self._checked_input(X))
        self._search = NeighborSearch(X, self.metric, self.metric_params, self.n_jobs)
        distances = self._distances(X)
        self._choose_scale(distances)
        self._ranks = None
        W = symmetrized(self._weighted(distances), self.symmetrize)
        if issparse(W):
            W.eliminate_zeros()
            W.sort_indices()
        self._smallest_weight = smallest_positive(W.data if issparse(W) else W)
        self.affinity_matrix_ = self._joined(W)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Build the graph and return it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples; distances if `metric="precomputed"`.
        y : None
            Ignored.

        Returns
        -------
        csr_array or ndarray of shape (n_samples, n_samples)
            The graph, `affinity_matrix_`.
        """
        return self.fit(X, y).affinity_matrix_

    def transform(self, X: Any) -> csr_array:
        """Return the affinities of new samples to those of `fit`; the same as `extend`.

        With it a pipeline of an `Affinity` and a method with ``affinity="precomputed"`` predicts
        new samples. It is not the graph, even for the samples of `fit`: that is `fit_transform`.
        """
        return self.extend(X)

    def extend(self, X: Any) -> csr_array:
        """Affinities of new samples to those of `fit`, by the same rules.

        A new sample is linked with its k nearest training samples, those within the radius (the
        nearest one if there is none), or all; its local scale is its distance to the same
        neighbour as in `fit`. The nearest training sample always has a positive affinity.
        Nothing is made symmetric, and the graph does not change.

        A new sample equal to training samples is linked with these alone, with weight 1: it is the
        same sample once more, and what is known of that one holds for it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            New samples; their distances to the training samples if `metric="precomputed"`.

        Returns
        -------
        csr_array of shape (n_new, n_samples)
            Affinities.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=self._sparse_format, dtype=np.float64)
        X = X if self.reduction_ is None else self.reduction_.transform(X)
        X = self._search.in_same_format(X)
        distances = self._distances_of_new(X)
        scale: Any = self.scale_
        if self._is_local:
            own = self._local_scale(distances, query=X)
            scale = positive_scale(own, self._smallest_distance)
        weights = self._weighted(distances, scale)
        lift_empty_rows(weights, distances, self._smallest_weight)
        link_duplicates_only(weights, distances)
        weights.eliminate_zeros()
        weights.sort_indices()
        return weights

    @property
    def _sparse_format(self) -> Any:
        return False if self._is_precomputed else "csr"

    @property
    def _is_local(self) -> bool:
        return isinstance(self.scale, str) and self.scale == "local"

    def _checked_input(self, X: Any) -> Any:
        X = validate_data(
            self, X, accept_sparse=self._sparse_format, dtype=np.float64, ensure_min_samples=2
        )
        n = X.shape[0]
        if self._kind == "radius" and hasattr(self.neighbors, "fit_transform"):
            message = (
                f"radius={self.radius:g} and the neighbour transformer "
                f"{type(self.neighbors).__name__} both say who is linked. Leave one out."
            )
            raise ValueError(message)
        if self._kind == "full" and n > DENSE_LIMIT:
            message = (
                f"A full graph of {n:,} samples is dense; the limit is {DENSE_LIMIT:,}. "
                "Use a graph of nearest neighbours: neighbors=10."
            )
            raise TooLargeError(message)
        if self._is_precomputed:
            self._check_precomputed(X)
        if self.reduce_to is not None:
            self._refuse_without_euclid(f"reduce_to={self.reduce_to}")
        if self.search == "approximate" and self._kind == "nearest":
            self._refuse_without_euclid('search="approximate"')
        if self._is_euclidean:
            refuse_extreme_numbers(X)
        return X

    @property
    def _is_euclidean(self) -> bool:
        return minkowski_exponent(self.metric, self.metric_params or {}) == 2

    def _is_approximate(self, X: Any) -> bool:
        if self._kind != "nearest" or not self._is_euclidean or self.search == "exact":
            return False
        return self.search == "approximate" or not exact_is_cheap(*X.shape)

    def _refuse_without_euclid(self, name: str) -> None:
        if self._is_euclidean:
            return
        message = (
            f"{name} needs Euclidean distances, but metric={self.metric!r}. For the cosine metric "
            "scale the samples to length 1 and leave metric out: the neighbours are the same."
        )
        raise ValueError(message)

    def _reduced(self, X: Any) -> Any:
        """Return the samples in the space in which distances are taken."""
        self.reduction_: Reduction | None = None
        n_dimensions = self.reduce_to
        if n_dimensions is None and issparse(X) and self._is_approximate(X):
            n_dimensions = SPARSE_DIMENSIONS
        if n_dimensions is None:
            return X
        if n_dimensions >= X.shape[1]:
            return X.toarray() if issparse(X) and self._is_approximate(X) else X
        self.reduction_ = Reduction(int(n_dimensions), check_random_state(self.random_state))
        return self.reduction_.fit_transform(X)

    def _check_precomputed(self, X: Floats) -> None:
        if X.shape[0] != X.shape[1]:
            message = f'metric="precomputed" needs a square matrix of distances, got {X.shape}.'
            raise ValueError(message)
        if X.min() < 0:
            i, j = np.unravel_index(X.argmin(), X.shape)
            message = f"Distances must not be negative, but X[{i}, {j}] is {X[i, j]}."
            raise ValueError(message)
        gap = np.abs(X - X.T)
        if gap.max() > 1e-8 * X.max():
            i, j = np.unravel_index(gap.argmax(), X.shape)
            message = (
                f"Distances must be symmetric, but X[{i}, {j}] is {X[i, j]:g} and X[{j}, {i}] is "
                f"{X[j, i]:g}. Fill in both triangles, for example X + X.T."
            )
            raise ValueError(message)
        if isinstance(self.scale, str) and self.scale == "variance":
            message = (
                'scale="variance" is about features, but metric="precomputed" gives none. '
                'Use scale="local" or a number.'
            )
            raise ValueError(message)

    def _distances(self, X: Any) -> Any:
        """Distance graph of the samples: dense for full graphs, without diagonal otherwise."""
        search = self._search
        self.recall_ = 1.0
        self._ranks = None
        if self.radius is not None:
            distances = search.within(self.radius)
        elif self._kind == "full":
            distances = search.all_distances()
            np.fill_diagonal(distances, 0)
        elif self._kind == "nearest":
            found = self._nearest_of_all(X)
            distances = neighbor_table_to_graph(*found, search.n_samples)
        else:
            # Not all transformers are estimators; others are copied as they are.
            self.transformer_ = clone(self.neighbors, safe=False)
            output = self.transformer_.fit_transform(X)
            name = f"{type(self.transformer_).__name__}.fit_transform"
            shape = (search.n_samples, search.n_samples)
            distances = nearest_stored(without_diagonal(transformer_graph(output, shape, name)))
            self._measure_recall(distances)
        self._check_finite(distances)
        return distances

    def _nearest_of_all(self, X: Any) -> tuple[Floats, Any]:
        k = int(self.neighbors)
        self._is_by_cells = self._is_approximate(X)
        if not self._is_by_cells:
            self._warn_if_slow(X)
            return self._search.nearest(k)
        # As many neighbours as the scale asks for, in one search.
        rank = max(k, int(self.scale_neighbor or 0), int(self.m or 0))
        self.transformer_ = ApproximateNeighbors(
            rank, n_jobs=self.n_jobs, random_state=self.random_state
        )
        distances, indices = self.transformer_.fit(X).kneighbors()
        self.recall_ = self.transformer_.recall_
        self._ranks = distances
        return distances[:, :k], indices[:, :k]

    def _warn_if_slow(self, X: Any) -> None:
        n_samples = X.shape[0]
        if n_samples <= SLOW_METRIC or self._is_euclidean or self._search.has_tree:
            return
        message = (
            f"With metric={self.metric!r} the search for neighbours compares all pairs of "
            f"{n_samples:,} samples. An approximate search takes the Euclidean metric (for "
            '"cosine", scale the samples to length 1), or another transformer as neighbors=.'
        )
        warnings.warn(message, EfficiencyWarning, stacklevel=2)

    def _measure_recall(self, distances: csr_array) -> None:
        """Compare what a transformer found for some samples with their true neighbours."""
        known = getattr(self.transformer_, "recall_", None)
        if known is not None:  # it has measured, and warned, itself
            self.recall_ = float(known)
            return
        self.recall_ = recall_of_graph(distances, self._search, self.random_state)
        if self.recall_ < LOW_RECALL:
            name = type(self.transformer_).__name__
            warn_of_low_recall(
                self.recall_,
                f"Let {name} search more widely; or give its metric as metric= here, where it is "
                f"{self.metric!r}.",
                stacklevel=2,
            )

    def _distances_of_new(self, X: Any) -> csr_array:
        search = self._search
        if self.radius is not None:
            graph = with_nearest_in_empty_rows(search.within(self.radius, X), search, X)
        elif self._kind == "full":
            distances = search.all_distances(X)
            # Built by hand: a conversion would drop the zero distances of duplicates.
            columns = np.tile(np.arange(search.n_samples), (distances.shape[0], 1))
            graph = neighbor_table_to_graph(distances, columns, search.n_samples)
        elif self._kind == "nearest":
            found = self._nearest_of_new(int(self.neighbors), X)
            graph = neighbor_table_to_graph(*found, search.n_samples)
        else:
            graph = self._transformed(X)
        self._check_finite(graph)
        return graph

    def _nearest_of_new(self, k: int, X: Any) -> tuple[Floats, Any]:
        if self._is_by_cells:
            return self.transformer_.kneighbors(X, k)
        return self._search.nearest(k, query=X)

    def _transformed(self, X: Any) -> csr_array:
        name = type(self.transformer_).__name__
        if not hasattr(self.transformer_, "transform"):
            message = f"{name} has no transform, so it cannot find the neighbours of new samples."
            raise TypeError(message)
        shape = (X.shape[0], self._search.n_samples)
        graph = transformer_graph(self.transformer_.transform(X), shape, f"{name}.transform")
        # Transformers count a training sample as its own neighbour, and give new ones as many.
        return nearest_stored(graph, self._transformer_row_length)

    @staticmethod
    def _check_finite(distances: Any) -> None:
        values = distances.data if issparse(distances) else distances
        if not np.isfinite(values).all():
            message = (
                "Some distances between samples are not finite: they overflow, or the metric is "
                "not defined for some samples. Rescale X, or choose another metric."
            )
            raise ValueError(message)

    def _choose_scale(self, distances: Any) -> None:
        values = distances.data if issparse(distances) else distances
        self._smallest_distance = smallest_positive(values)
        if self._kind == "transformer":
            lengths = np.unique(np.diff(distances.indptr))
            self._transformer_row_length = int(lengths[0]) if lengths.size == 1 else None
        self.scale_: Any
        if not isinstance(self.scale, str):
            self.scale_ = float(self.scale)
        elif self.scale == "connectivity":
            self.scale_ = None
        elif self.scale == "local":
            self.scale_ = positive_scale(self._local_scale(distances), self._smallest_distance)
        else:
            sigma = (
                sigma_variance(self._search.X)
                if self.scale == "variance"
                else self._sigma_xu(distances)
            )
            self.scale_ = sigma if sigma > 0 else self._smallest_distance

    def _sigma_xu(self, distances: Any) -> float:
        if self.m is None:
            self.m_, widest = xu_neighbor(self._search)
        else:
            self.m_ = min(int(self.m), self._search.n_samples - 1)
            widest = float(self._kth_distance(distances, self.m_, "m").max())
        return sigma_xu(widest)

    def _local_scale(self, distances: Any, query: Any = None) -> Floats:
        rank = self.scale_neighbor
        if rank is None and self._kind == "transformer":
            return last_in_rows(distances)
        if rank is None:
            rank = int(self.neighbors) if self._kind == "nearest" else SELF_TUNING_NEIGHBOR
        rank = min(rank, self._search.n_samples - 1)
        return self._kth_distance(distances, rank, "scale_neighbor", query)

    def _kth_distance(self, distances: Any, k: int, name: str, query: Any = None) -> Floats:
        """Distance of every sample to its k-th neighbour, from the graph if it goes that far."""
        if self._kind == "transformer":
            lengths = np.diff(distances.indptr)
            if lengths.min() < k:
                i = int(lengths.argmin())
                message = (
                    f"{name}={k}, but {type(self.transformer_).__name__} found only {lengths[i]} "
                    f"neighbours of sample {i}. Let it search for more, or lower {name}."
                )
                raise ValueError(message)
            return np.asarray(distances.data[distances.indptr[:-1] + k - 1])
        if self._kind == "nearest":
            stored = distances.data.reshape(distances.shape[0], -1)
            if k <= stored.shape[1]:
                return np.array(stored[:, k - 1])
            if query is not None:
                return self._nearest_of_new(k, query)[0][:, -1]
            if self._ranks is not None:
                return np.array(self._ranks[:, k - 1])
        return self._search.nearest(k, query=query)[0][:, -1]

    def _weighted(self, distances: Any, own_scale: Any = None) -> Any:
        """Weights of a distance graph; `own_scale` is that of its rows if they are new samples."""
        if not issparse(distances):
            return self._weighted_in_place(distances)
        rows = np.repeat(np.arange(distances.shape[0]), np.diff(distances.indptr))
        own_scale = self.scale_ if own_scale is None else own_scale
        values = self._weights(distances.data, self._at(own_scale, rows), distances.indices)
        return csr_array((values, distances.indices, distances.indptr), shape=distances.shape)

    def _weighted_in_place(self, distances: Floats) -> Floats:
        columns = np.arange(distances.shape[1])
        for part in chunks(*distances.shape):
            own = self.scale_[part, None] if self._is_local else self.scale_
            distances[part] = self._weights(distances[part], own, columns)
        np.fill_diagonal(distances, 0)
        return distances

    def _weights(self, distances: Floats, own_scale: Any, columns: Any) -> Floats:
        if self.scale_ is None:
            return np.ones_like(distances)
        if self._is_local:
            return gaussian(distances, own_scale, self.scale_[columns])
        bandwidth = np.sqrt(2) * self.scale_
        return gaussian(distances, bandwidth, bandwidth)

    def _at(self, scale: Any, samples: Any) -> Any:
        return scale[samples] if self._is_local else scale

    def _joined(self, W: Any) -> Any:
        _, labels = symmetric_components(W)
        self.component_sizes_ = np.sort(np.bincount(labels))[::-1]
        self.n_components_ = int(self.component_sizes_.size)
        self.n_joined_ = 0
        if self.n_components_ == 1:
            return W
        if self.connect is None:
            warnings.warn(self._pieces_message(), DisconnectedGraphWarning, stacklevel=2)
            return W
        links = shortest_links(self._search, labels)
        self.n_joined_ = len(links)
        return with_links(W, links, self._link_weights(links, has_edges=self._has_edges(W)))

    def _link_weights(self, links: Any, *, has_edges: bool) -> Floats:
        i = np.array([link.i for link in links])
        j = np.array([link.j for link in links])
        weights = self._weights(
            np.array([link.distance for link in links]), self._at(self.scale_, i), j
        )
        if not has_edges:
            self._smallest_weight = smallest_positive(weights)
        return np.maximum(weights, self._smallest_weight)

    @staticmethod
    def _has_edges(W: Any) -> bool:
        return bool(W.nnz if issparse(W) else W.any())

    def _pieces_message(self) -> str:
        sizes = ", ".join(map(str, self.component_sizes_[:5].tolist()))
        more = ", ..." if self.n_components_ > 5 else ""
        return (
            f"The graph has {self.n_components_} connected components, of {sizes}{more} samples. "
            'Use connect="mst" to join them by their shortest links, or more neighbours.'
        )


def refuse_extreme_numbers(X: Any) -> None:
    """Raise ValueError if squares of the features leave the range of numbers."""
    values = X.data if issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        message = (
            f"The largest feature is {largest:.0e} in size: squares of such numbers leave the "
            "range of floating-point numbers. Divide X by np.abs(X).max()."
        )
        raise ValueError(message)


def last_in_rows(distances: csr_array) -> Floats:
    """Distance to the last neighbour of each row, zero for rows without any."""
    lengths = np.diff(distances.indptr)
    last = np.zeros(lengths.size)
    last[lengths > 0] = distances.data[distances.indptr[1:][lengths > 0] - 1]
    return last


def with_nearest_in_empty_rows(graph: csr_array, search: NeighborSearch, X: Any) -> csr_array:
    """Give each new sample that has no neighbour its nearest one."""
    empty = np.flatnonzero(np.diff(graph.indptr) == 0)
    if empty.size == 0:
        return graph
    distances, indices = search.nearest(1, query=X[empty])
    stored = graph.tocoo()
    rows = np.concatenate([stored.coords[0], empty])
    columns = np.concatenate([stored.coords[1], indices[:, 0]])
    values = np.concatenate([stored.data, distances[:, 0]])
    return csr_array((values, (rows, columns)), shape=graph.shape)


def lift_empty_rows(weights: csr_array, distances: csr_array, smallest: float) -> None:
    """Where all weights of a row underflow, give its nearest neighbour the smallest weight."""
    largest = np.zeros(weights.shape[0])
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    np.maximum.at(largest, rows, weights.data)
    order = np.lexsort((distances.data, rows))
    has_edges = np.diff(weights.indptr) > 0
    lost = (largest == 0) & has_edges
    weights.data[order[weights.indptr[:-1][lost]]] = smallest


def link_duplicates_only(weights: csr_array, distances: csr_array) -> None:
    """In rows of samples that equal training samples, cut all links but those of distance 0."""
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    is_duplicate = np.zeros(weights.shape[0], dtype=bool)
    is_duplicate[rows[distances.data == 0]] = True
    weights.data[is_duplicate[rows] & (distances.data > 0)] = 0
