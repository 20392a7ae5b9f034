"""Affinity: the one builder of similarity graphs; `WEIGHTS` are its weight functions."""

from __future__ import annotations

import warnings
from itertools import chain
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.neighbors import VALID_METRICS
from sklearn.utils import check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from linkwise._inputs import checked_format, checked_numbers
from linkwise._params import HasMethods, Interval, StrOptions, validates_parameters
from linkwise._quiet import kept_filters
from linkwise._threads import kept_limits
from linkwise.exceptions import DisconnectedGraphWarning, TooLargeError
from linkwise.graph.approximate import ApproximateNeighbors
from linkwise.graph.connect import shortest_links
from linkwise.graph.extension import keep_a_link, link_duplicates_only, link_empty_rows
from linkwise.graph.neighbors import (
    DENSE_LIMIT,
    NeighborSearch,
    check_magnitude,
    chunks,
    minkowski_exponent,
    neighbor_table_to_graph,
)
from linkwise.graph.precomputed import check_distances, listed_sizes
from linkwise.graph.reduce import SPARSE_DIMENSIONS, Reduction
from linkwise.graph.transformer import (
    extended_graph,
    fitted_graph,
    kth_stored,
    last_stored,
    measured_recall,
    row_length,
)
from linkwise.linalg.laplacian import symmetric_components

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from linkwise._types import Floats, Ints, Matrix

XU_EPSILON = 1e-3  # affinity of a sample to its m-th neighbour, at least (Xu et al. 2005)
# Zelnik-Manor & Perona (2004) scale by the distance to the 7th neighbour.
SELF_TUNING_NEIGHBOR = 7
# An exact search is the rule while it is cheap. CPU seconds of an exact and an approximate search
# (k = 10, five clusters, one thread): n = 20,000, 8 features 1.2 and 0.5, 16 features 1.8 and 0.9,
# 50 features 2.6 and 1.2; n = 50,000, 8 features 8.4 and 1.0, 16 features 9.1 and 2.0, 50 features
# 17.6 and 4.7. A k-d tree keeps up in few dimensions: n = 100,000, 2 features 0.6 and 1.3, 4
# features 1.7 and 1.5, 8 features 22.7 and 2.5.
EXACT_SAMPLES = 30_000
EXACT_FEATURES = 4


class Weight(NamedTuple):
    """A weight function: how its scale is chosen, and its formula.

    ``choose(builder, distances)`` returns the scale of a distance graph, a positive number; if
    `is_per_sample`, ``choose(builder, distances, query)`` returns one for each row, which are the
    samples of `fit`, or new ones in `query`. ``formula(d, s_i, s_j)`` returns the weights of
    distances between samples with these scales.
    """

    choose: Callable[..., Any]
    formula: Callable[[Floats, Any, Any], Floats]
    is_per_sample: bool = False


def gaussian(distances: Floats, s_i: Any, s_j: Any) -> Floats:
    """Affinities ``exp(-d^2 / (s_i s_j))``.

    Subnormal results become zero: their inverse, as the degree of a sample, would overflow.
    """
    # Two divisions instead of d^2 / (s_i s_j), which underflows where distances are near 1e-160.
    with np.errstate(over="ignore"):  # so far away that the affinity is zero
        weights = np.exp(-(distances / s_i) * (distances / s_j))
    weights[weights < np.finfo(float).tiny] = 0
    return weights


def gaussian_of_sigma(distances: Floats, sigma: float, _: float) -> Floats:
    """Affinities ``exp(-d^2 / (2 sigma^2))``."""
    return gaussian(distances, np.sqrt(2) * sigma, np.sqrt(2) * sigma)


def ones(distances: Floats, _s_i: Any, _s_j: Any) -> Floats:
    """Return weight 1 for every edge."""
    return np.ones_like(distances)


def local_scale(builder: Affinity, distances: Matrix, query: Any = None) -> Floats:
    """Distance of every sample to the same neighbour (Zelnik-Manor & Perona 2004)."""
    scale = builder._kth_distance(distances, "scale_neighbor", query)
    return np.where(scale > 0, scale, builder._smallest_distance)  # zero among many duplicates


def sigma_xu(builder: Affinity, distances: Matrix) -> float:
    """Solve for the sigma with ``exp(-widest^2 / (2 sigma^2)) = 0.001`` (Xu et al. 2005).

    `widest` is the largest distance of a sample to its m-th neighbour. Section 3 of the paper
    says so; see `sigma_xu_gap` for its other reading.
    """
    n_samples = distances.shape[0]
    if builder.m is not None:
        builder.m_ = min(int(builder.m), n_samples - 1)
        widest = float(builder._kth_distance(distances, "m").max())
    elif n_samples <= DENSE_LIMIT:
        builder.m_, widest, _ = largest_gap(builder._search.row_blocks())
    else:
        raise TooLargeError(
            f'scale="xu" compares all pairs of samples to find m; there are '
            f"{n_samples:,} samples and the limit is {DENSE_LIMIT:,}. "
            "Give m= (the size of the smallest group of neighbours to keep together)."
        )
    return sigma_reaching(widest) or builder._smallest_distance


def sigma_xu_gap(builder: Affinity, distances: Matrix) -> float:
    """Solve for the sigma with ``exp(-d^2 / (2 sigma^2)) = 0.001`` at the gap itself.

    `d` is the distance before the largest gap, ``delta_im`` of the one sample i that has it: step 4
    of the heuristic read as it stands. Samples with their m-th neighbour farther away have less
    than 0.001 to it.
    """
    n_samples = distances.shape[0]
    if builder.m is not None:
        raise ValueError(
            f'scale="xu-gap" takes m from the largest gap, but m={builder.m} is given. Leave m '
            'out, or use scale="xu".'
        )
    if n_samples > DENSE_LIMIT:
        raise TooLargeError(
            f'scale="xu-gap" compares all pairs of samples to find the gap; there are '
            f"{n_samples:,} samples and the limit is {DENSE_LIMIT:,}. "
            'Use scale="xu" with m=, or scale="local".'
        )
    builder.m_, _, before = largest_gap(builder._search.row_blocks())
    return sigma_reaching(before) or builder._smallest_distance


def sigma_reaching(distance: float) -> float:
    """Return the sigma by which samples at this distance have the affinity 0.001."""
    return float(distance / np.sqrt(-2 * np.log(XU_EPSILON)))


def sigma_variance(builder: Affinity, _: Matrix) -> float:
    """Root of the mean variance of the features (Wacquet et al. 2013)."""
    if builder._search.is_precomputed:
        raise ValueError(
            'scale="variance" is about features, but metric="precomputed" gives none. '
            'Use scale="local" or a number.'
        )
    X = builder._search.X
    variances = mean_variance_axis(X, axis=0)[1] if issparse(X) else np.var(X, axis=0)
    return float(np.sqrt(np.mean(variances))) or builder._smallest_distance


def given_sigma(builder: Affinity, _: Matrix) -> float:
    """Return the number that is the scale."""
    return float(builder.scale)


def no_scale(_builder: Affinity, _: Matrix) -> None:
    """Return None: the weight does not depend on the distance."""


# A new weight function is one more line here.
WEIGHTS = {
    "local": Weight(local_scale, gaussian, is_per_sample=True),
    "xu": Weight(sigma_xu, gaussian_of_sigma),
    "xu-gap": Weight(sigma_xu_gap, gaussian_of_sigma),
    "variance": Weight(sigma_variance, gaussian_of_sigma),
    "connectivity": Weight(no_scale, ones),
}
FIXED = Weight(given_sigma, gaussian_of_sigma)  # if the scale is a number


class Gap(NamedTuple):
    """The largest gap between consecutive neighbour distances of a sample."""

    m: int  # the gap is after the m-th neighbour
    widest: float  # largest distance of any sample to its m-th neighbour
    before: float  # distance of the sample that has the gap to its m-th neighbour


def largest_gap(blocks: Iterable[Floats]) -> Gap:
    """Find the rank m after which some sample has its largest gap (Xu et al. 2005).

    The gap is the largest ``delta_{i,m+1} - delta_{i,m}`` over all samples i, where
    ``delta_{i,m}`` is the distance of sample i to its m-th neighbour.
    `blocks` are rows of all distances, infinite from a sample to itself; one is held at a time.
    """
    best, m, before = -np.inf, 1, 0.0
    widest: Floats | float = 0.0
    for block in blocks:
        delta = np.sort(block, axis=1)[:, :-1]
        widest = np.maximum(widest, delta.max(axis=0))
        gaps = np.diff(delta, axis=1)
        if gaps.size and gaps.max() > best:
            best = gaps.max()
            i, m = (int(at) for at in np.unravel_index(gaps.argmax(), gaps.shape))
            m, before = m + 1, float(delta[i, m])
    largest = float(np.atleast_1d(widest)[m - 1])
    return Gap(m, largest, before if np.isfinite(best) else largest)


def smallest_positive(values: Matrix) -> float:
    """Smallest positive entry; 1 if there is none."""
    values = values.data if issparse(values) else values
    smallest = float(np.min(values, where=values > 0, initial=np.inf))
    return smallest if np.isfinite(smallest) else 1.0


def symmetrized(A: Matrix, transposed: Matrix, how: str) -> Matrix:
    """Make the weights of the two directions of every edge one; some rows of both are enough.

    "union" takes the larger and "mutual" the smaller of the two, an absent edge being zero;
    "mean" their mean, so that an edge seen from one side only has half its weight.
    """
    if how == "mean":
        return (A + transposed) / 2
    if not issparse(A):
        return np.maximum(A, transposed) if how == "union" else np.minimum(A, transposed)
    return A.maximum(transposed) if how == "union" else A.minimum(transposed)


def check_in_range(X: Any, affinity: Affinity | str | None) -> None:
    """Raise ValueError, with the places, if distances of features leave the range of numbers."""
    builder = affinity if isinstance(affinity, Affinity) else Affinity()
    exponent = minkowski_exponent(builder.metric, builder.metric_params or {})
    if exponent is not None and np.isfinite(exponent):
        check_magnitude(X, exponent)


class Affinity(TransformerMixin, BaseEstimator):
    r"""Similarity graph of samples: neighbours, Gaussian weights, one connected component.

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
        as `metric`, which is still used for joining components and for `scale="xu"`. Take more if
        the graph falls into parts, and fewer if clusters are small.
    radius : float, default=None
        Link all samples at most this far apart (an epsilon graph). When set, a number of
        `neighbors` plays no role. Use it if a distance has a meaning in your data.
    scale : {"local", "xu", "xu-gap", "variance", "connectivity"} or float, default="local"
        What distance is near.

        - "local": self-tuning (Zelnik-Manor & Perona 2004), as above;
        - "xu": one sigma, for which every sample has an affinity of at least 0.001 to its `m`
          nearest neighbours (Xu, desJardins & Wagstaff 2005);
        - "xu-gap": the second reading of that paper, whose last step asks for 0.001 at the distance
          before the largest gap, that of the one sample which has it; a smaller sigma;
        - "variance": sigma^2 is the mean variance of the features (Wacquet et al. 2013);
        - a positive number: sigma itself, in ``exp(-d^2 / (2 sigma^2))``;
        - "connectivity": every edge weighs 1.

        Change it if you know the scale of your data, or to repeat a paper.
    scale_neighbor : int, default=None
        Which neighbour gives the local scale: by default the last one of a graph of nearest
        neighbours (or of a transformer), and the 7th in epsilon and full graphs. A scale of
        zero, which many duplicates cause, is replaced by the smallest positive distance. Raise it
        if the nearest neighbours are noisy.
    m : int, default=None
        Neighbours that `scale="xu"` keeps near; not for "xu-gap". By default it is the place of
        the largest gap between consecutive neighbour distances of any sample, which takes all n^2
        distances. Give it above 10,000 samples.
    symmetrize : {"union", "mean", "mutual"}, default="union"
        Edge weight where two directions meet: the larger one; their mean, an absent one being
        zero; or the smaller one, so that only mutual neighbours are linked. Take "mutual" if a few
        samples are neighbours of very many.
    metric : str or callable, default="euclidean"
        Any metric of :class:`sklearn.neighbors.NearestNeighbors`, or "precomputed": X then
        holds distances, as a dense array of shape (n_samples, n_samples). Change it if Euclidean
        distances mean little, as for counts or angles.
    metric_params : dict, default=None
        Parameters of the metric. Give them if the metric needs some.
    connect : {"mst"} or None, default="mst"
        What to do with a graph of several connected components: add the links of the minimum
        spanning tree between them, or leave it and warn. Set None if separate parts of the graph
        are separate clusters.
    search : {"auto", "exact", "approximate"}, default="auto"
        How a number of `neighbors` is searched for: comparing all pairs or with a k-d tree, or by
        :class:`ApproximateNeighbors`, for the Euclidean metric. "auto" is exact up to 30,000
        samples, and beyond in up to 4 dimensions. Take "exact" to miss no neighbour, at any price.
    reduce_to : int, default=None
        Dimensions to keep by principal components (of sparse X: singular vectors) before
        anything else; distances are then those in the reduced space. Without it only sparse X
        is reduced, to 100 dimensions, where the search is approximate. Euclidean metric only. Set
        it, to 50 for example, if there are hundreds of features.
    n_jobs : int, default=None
        Threads of tree and approximate searches; None is one for trees, and as many as BLAS may
        use for approximate searches. Comparisons of all pairs use the threads of OpenMP. Set -1 to
        use all cores.
    random_state : int, RandomState instance or None, default=0
        Seed of approximate searches and of reductions. A number by default, so that samples have
        one graph. Change it to see how much the answer depends on it.

    Attributes
    ----------
    affinity_matrix_ : csr_array or ndarray of shape (n_samples, n_samples)
        The graph: symmetric, not negative, zero diagonal. An ndarray if it is full.
    scale_ : float, ndarray of shape (n_samples,) or None
        Sigma, the local scales, or None for "connectivity".
    m_ : int
        The m that was used; only for `scale="xu"` and "xu-gap".
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
    that, the link between two large components may be a locally shortest one.

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
            StrOptions(set(WEIGHTS)),
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

    reduction_: Reduction | None
    _table: Any  # distances and indices of approximate neighbours, while fitting

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
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = self.metric != "precomputed"
        return tags

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
        X = self._checked(X)
        self.recall_, self.reduction_, self._table = 1.0, None, None
        if self.reduce_to is not None or issparse(X):
            X = self._reduced(X)
        self._search = NeighborSearch(X, self.metric, self.metric_params, n_jobs=self.n_jobs)
        # Cells are inverted lists: the samples nearest to one of many centres (decision 6).
        self._is_by_cells = self._is_approximate(X)
        if self._is_by_cells:
            self._search_by_cells(X)
        # The distance graph D, not symmetric: row i holds the neighbours of sample i.
        distances = self._distances()
        self._smallest_distance = smallest_positive(distances)
        # The scales s, and W = exp(-d_ij^2 / (s_i s_j)), made symmetric.
        self._weight = WEIGHTS[self.scale] if isinstance(self.scale, str) else FIXED
        self.scale_ = self._weight.choose(self, distances)
        self._table = None
        W = self._weighted(distances)
        W = symmetrized(W, csr_array(W.T) if issparse(W) else W.T, self.symmetrize)
        # The links of the minimum spanning tree between the connected components of W.
        self.affinity_matrix_ = self._connected(W)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Matrix:
        """Build the graph of `X`, as in `fit`, and return it: `affinity_matrix_`."""
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
        sparse = False if self.metric == "precomputed" else "csr"
        X = checked_format(X)
        with kept_filters(), checked_numbers():
            X = validate_data(self, X, reset=False, accept_sparse=sparse, dtype=np.float64)
        X = X if self.reduction_ is None else self.reduction_.transform(X)
        X = self._search.in_same_format(X)
        distances = self._distances(X)
        own = self._weight.choose(self, distances, X) if self._weight.is_per_sample else None
        weights = self._weighted(distances, own)
        keep_a_link(weights, distances, self._smallest_weight)
        link_duplicates_only(weights, distances)
        weights.eliminate_zeros()
        weights.sort_indices()
        return weights

    def _checked(self, X: Any) -> Any:
        sparse = False if self.metric == "precomputed" else "csr"
        X = checked_format(X)
        with kept_filters(), checked_numbers():
            X = validate_data(self, X, accept_sparse=sparse, dtype=np.float64, ensure_min_samples=2)
        self._kind = "nearest" if isinstance(self.neighbors, Integral) else "transformer"
        if self.radius is not None or self.neighbors is None:
            self._kind = "full" if self.radius is None else "radius"
        self._is_euclidean = minkowski_exponent(self.metric, self.metric_params or {}) == 2
        check_in_range(X, self)
        if self._is_euclidean:
            return X
        if self.metric == "precomputed":
            check_distances(X)
        if self.reduce_to is not None:
            self._raise_not_euclidean(f"reduce_to={self.reduce_to}")
        if self.search == "approximate" and self._kind == "nearest":
            self._raise_not_euclidean('search="approximate"')
        return X

    def _raise_not_euclidean(self, setting: str) -> None:
        raise ValueError(
            f"{setting} needs Euclidean distances, but metric={self.metric!r}. For the cosine "
            "metric scale the samples to length 1 and leave metric out: the neighbours are the "
            "same."
        )

    def _is_approximate(self, X: Any) -> bool:
        if self._kind != "nearest" or not self._is_euclidean or self.search == "exact":
            return False
        is_costly = X.shape[0] > EXACT_SAMPLES and X.shape[1] > EXACT_FEATURES
        return self.search == "approximate" or is_costly

    def _reduced(self, X: Any) -> Any:
        """Return the samples in the space in which distances are taken."""
        is_approximate = self._is_approximate(X)
        n_dimensions = self.reduce_to
        if n_dimensions is None:
            if not is_approximate:
                return X
            n_dimensions = SPARSE_DIMENSIONS
        if n_dimensions >= X.shape[1]:
            return X.toarray() if issparse(X) and is_approximate else X
        self.reduction_ = Reduction(int(n_dimensions), check_random_state(self.random_state))
        return self.reduction_.fit_transform(X)

    def _distances(self, query: Any = None) -> Matrix:
        """Distance graph from the samples of `fit`, or from new ones, to those of `fit`.

        Dense for the full graph of the samples of `fit`.
        """
        with kept_filters(), kept_limits():
            if self._kind == "nearest":
                found = self._nearest(int(self.neighbors), query)
                distances = neighbor_table_to_graph(*found, self._search.n_samples)
            elif self._kind == "full":
                distances = self._search.full_graph(query)
            elif self._kind == "radius":
                distances = self._within(self.radius, query)
            else:
                distances = self._by_transformer(query)
        if not np.isfinite(distances.data if issparse(distances) else distances).all():
            raise ValueError(
                "Some distances between samples are not finite: they overflow, or the metric is "
                "not defined for some samples. Rescale X, or choose another metric."
            )
        return distances

    def _within(self, radius: Any, query: Any) -> csr_array:
        if hasattr(self.neighbors, "fit_transform"):
            raise ValueError(
                f"radius={radius:g} and the neighbour transformer "
                f"{type(self.neighbors).__name__} both define the edges. Leave one out."
            )
        return link_empty_rows(self._search.within(radius, query), self._search, query)

    def _search_by_cells(self, X: Any) -> None:
        """Search once for all neighbours that the graph and its scale need."""
        rank = max(int(self.neighbors), int(self.scale_neighbor or 0), int(self.m or 0))
        self.transformer_ = ApproximateNeighbors(
            rank, n_jobs=self.n_jobs, random_state=self.random_state
        )
        self._table = self.transformer_.fit(X).kneighbors()
        self.recall_ = self.transformer_.recall_

    def _nearest(self, k: int, query: Any) -> tuple[Floats, Ints]:
        if not self._is_by_cells:
            return self._search.nearest(k, query=query)
        if query is not None:
            return self.transformer_.kneighbors(query, k)
        distances, indices = self._table  # there is one while fitting
        return distances[:, :k], indices[:, :k]

    def _by_transformer(self, query: Any) -> csr_array:
        if query is not None:
            n_samples = self._search.n_samples
            return extended_graph(self.transformer_, query, n_samples, k=self._row_length)
        # Not all transformers are estimators; others are copied as they are.
        self.transformer_ = clone(self.neighbors, safe=False)
        graph = fitted_graph(self.transformer_, self._search.X)
        self._row_length: int | None = row_length(graph)
        self.recall_ = measured_recall(
            self.transformer_, graph, self._search, random_state=self.random_state
        )
        return graph

    def _kth_distance(self, distances: Matrix, parameter: str, query: Any = None) -> Floats:
        """Distance of every sample to the neighbour that a parameter names."""
        k = getattr(self, parameter)
        if k is None and self._kind == "transformer":
            return last_stored(distances)
        if k is None:
            k = self.neighbors if self._kind == "nearest" else SELF_TUNING_NEIGHBOR
        k = min(int(k), self._search.n_samples - 1)
        if self._kind == "transformer":
            return kth_stored(distances, k, parameter=parameter, transformer=self.transformer_)
        if self._kind == "nearest" and k <= (n_stored := distances.nnz // distances.shape[0]):
            return np.array(distances.data.reshape(-1, n_stored)[:, k - 1])
        return self._nearest(k, query)[0][:, -1]

    def _weighted(self, distances: Matrix, own: Floats | None = None) -> Matrix:
        """Weights of a distance graph; `own` are the scales of its rows if they are new samples."""
        if issparse(distances):
            rows = np.repeat(np.arange(distances.shape[0]), np.diff(distances.indptr))
            values = self._weights(distances.data, (rows, distances.indices), own)
            return csr_array((values, distances.indices, distances.indptr), shape=distances.shape)
        for part in chunks(*distances.shape):
            pairs = ((part, None), slice(None))
            distances[part] = self._weights(distances[part], pairs)
        np.fill_diagonal(distances, 0)
        return distances

    def _weights(
        self, distances: Floats, pairs: tuple[Any, Any], own: Floats | None = None
    ) -> Floats:
        """Weights of the distances between the samples `i` and `j` of each pair."""
        if not self._weight.is_per_sample:
            return self._weight.formula(distances, self.scale_, self.scale_)
        i, j = pairs
        own = self.scale_ if own is None else own
        return self._weight.formula(distances, own[i], self.scale_[j])

    def _connected(self, W: Matrix) -> Matrix:
        if issparse(W):
            W.eliminate_zeros()
            W.sort_indices()
        self._smallest_weight = smallest_positive(W)
        _, component = symmetric_components(W)
        self.component_sizes_ = np.sort(np.bincount(component))[::-1]
        self.n_components_ = int(self.component_sizes_.size)
        self.n_joined_ = 0 if self.connect is None else self.n_components_ - 1
        if self.n_joined_:
            links = shortest_links(self._search, component)
            weights = self._weights(links.distance, (links.i, links.j))
            if not (W.nnz if issparse(W) else W.any()):
                self._smallest_weight = smallest_positive(weights)
            weights = np.tile(np.maximum(weights, self._smallest_weight), 2)  # in both directions
            i, j = np.append(links.i, links.j), np.append(links.j, links.i)
            if issparse(W):
                return W + csr_array((weights, (i, j)), shape=W.shape)
            W[i, j] = weights
            return W
        if self.n_components_ > 1:
            message = (
                f"The graph has {self.n_components_} connected components, of "
                f"{listed_sizes(self.component_sizes_)} samples. "
                'Use connect="mst" to join them by their shortest links, or more neighbours.'
            )
            warnings.warn(message, DisconnectedGraphWarning, stacklevel=2)
        return W
