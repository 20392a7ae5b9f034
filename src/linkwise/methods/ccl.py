"""CCL: complete link under must-links and cannot-links (Klein, Kamvar & Manning 2002)."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linkwise._jit import njit
from linkwise._params import StrOptions
from linkwise.constraints.coloring import assign, graph_of
from linkwise.exceptions import TooLargeError
from linkwise.graph.neighbors import check_magnitude, rows_in_range
from linkwise.methods._base import ConstrainedClusterer
from linkwise.partition import relabelled
from linkwise.result import Result

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.constraints import Constraints
    from linkwise.constraints.table import PairTable
    from linkwise.graph import Prepared


# The distances between all must-link groups are kept: 3.2 GB at this size.
MAX_GROUPS = 20_000
# Distances computed at a time, 32 MB.
BLOCK = 1 << 22
# scipy's names of the metrics.
METRICS = {"euclidean": "euclidean", "manhattan": "cityblock", "cosine": "cosine"}


@dataclass(frozen=True, eq=False, repr=False)
class LinkageResult(Result):
    """A :class:`~linkwise.Result` with the tree it was cut from.

    Parameters
    ----------
    linkage : ndarray of shape (n_samples - 1, 4)
        The merges in their order, in the form of ``scipy.cluster.hierarchy.linkage``: the two
        clusters, the distance between them, and the number of samples. Cluster ``n_samples + i``
        is the one made by merge `i`.
    """

    linkage: Floats | None = None


def ccl(
    X: Floats,
    constraints: Constraints,
    n_clusters: int,
    *,
    metric: str = "euclidean",
    merging: str = "sound",
    random_state: int | np.random.RandomState | None = None,
) -> LinkageResult:
    """Merge the two nearest clusters until `n_clusters` are left; constraints change distances.

    The distance of two clusters is the largest between their samples. Must-linked samples are at
    distance 0, and every distance is at most that of a detour over must-links; cannot-linked
    samples are farther apart than all others. `objective` is the largest distance inside a cluster.
    """
    group = constraints.components()
    distances = constrained_distances(X, constraints, group, metric=metric)
    tree = complete_link(distances)
    apart = distances.apart
    if merging == "sound" and _violated(tree, apart, n_clusters).size:
        # Merging has overwritten the distances; a copy of them would double the memory.
        del distances
        distances = constrained_distances(X, constraints, group, metric=metric)
        rng = check_random_state(random_state)
        wanted = nearest_allowed(distances, _cut(tree, n_clusters), n_clusters, rng=rng)
        if wanted is not None:
            tree = complete_link(distances, wanted)
    _warn_if_violated(apart[_violated(tree, apart, n_clusters)], group)
    linkage = _linkage(group, tree)
    labels = relabelled(_cut(tree, n_clusters)[group])
    n_merges = labels.size - n_clusters
    objective = float(linkage[n_merges - 1, 2]) if n_merges > 0 else 0.0
    return LinkageResult(labels=labels, objective=objective, linkage=linkage)


# ---------------------------------------------------------------------------------------------
# Distances
# ---------------------------------------------------------------------------------------------


class Distances(NamedTuple):
    """Distances between must-link groups, and what keeps some of them apart."""

    D: Floats  # before cannot-links of belief 1
    apart: Ints  # pairs of groups with a cannot-link of belief 1
    top: float  # the largest distance


def constrained_distances(
    X: Floats, constraints: Constraints, group: Ints, *, metric: str = "euclidean"
) -> Distances:
    """Return the distances between must-link groups, as the constraints change them.

    A must-link of belief `b` between two groups leaves the share ``1 - b`` of their distance;
    then detours over must-links shorten the others. A cannot-link of belief `b` moves its distance
    by the share `b` of the way to the largest one.
    """
    n_groups = int(group.max()) + 1
    if n_groups > MAX_GROUPS:
        raise TooLargeError(
            f"Complete link keeps the distances between all {n_groups} groups of must-linked "
            f"samples, {8 * n_groups**2 / 1e9:.1f} GB; at most {MAX_GROUPS} are allowed. Cluster a "
            "subset and predict the rest, or take linkwise.CSC or linkwise.SignedCSC."
        )
    D = group_distances(X, group, metric)
    table = constraints.table
    near, near_belief = _uncertain(table.kept(table.is_must_link), group)
    # Of several pairs between two groups the one believed most decides: written last.
    D[near[:, 0], near[:, 1]] *= 1 - near_belief
    D[near[:, 1], near[:, 0]] = D[near[:, 0], near[:, 1]]
    through = np.bincount(group) > 1
    through[near] = True
    shorten(D, np.flatnonzero(through))
    top = float(D.max())
    far, far_belief = _uncertain(table.kept(~table.is_must_link), group)
    D[far[:, 0], far[:, 1]] += far_belief * (top - D[far[:, 0], far[:, 1]])
    D[far[:, 1], far[:, 0]] = D[far[:, 0], far[:, 1]]
    return Distances(D, np.asarray(constraints.closure().apart), top)


def group_distances(X: Floats, group: Ints, metric: str = "euclidean") -> Floats:
    """Return the smallest distance between the samples of two groups, for all pairs of groups."""
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    D = np.full((first.size, first.size), np.inf)
    n_rows = max(1, BLOCK // order.size)
    is_given = metric == "precomputed"
    ordered = X[:0] if is_given else X[order]
    for begin in range(0, order.size, n_rows):
        rows = order[begin : begin + n_rows]
        among = X[np.ix_(rows, order)] if is_given else _between(X[rows], ordered, metric)
        _check_finite(among, rows)
        to_groups = np.minimum.reduceat(among, first, axis=1)
        starts = np.flatnonzero(np.diff(group[rows], prepend=-1))
        here = group[rows[starts]]
        D[here] = np.minimum(D[here], np.minimum.reduceat(to_groups, starts, axis=0))
    np.fill_diagonal(D, 0.0)
    return D


def _between(rows: Floats, X: Floats, metric: str) -> Floats:
    """Return the distances of some samples to all; differences first, so duplicates are at 0."""
    if metric == "cosine":
        _check_directions(rows)
        rows, X = rows_in_range(rows), rows_in_range(X)
    distances: Floats = cdist(rows, X, METRICS[metric])
    # A cosine can exceed one by rounding.
    return np.maximum(distances, 0.0, out=distances)


def _check_finite(distances: Floats, rows: Ints) -> None:
    # Levels above the largest distance must be finite, too.
    wrong = np.flatnonzero(~(distances < 1e300).all(axis=1))
    if wrong.size:
        raise ValueError(
            f"The distances of sample {rows[wrong[0]]} are too large for numbers. Scale the data."
        )


def _check_directions(X: Floats) -> None:
    without = np.flatnonzero(~X.any(axis=1))
    if without.size:
        raise ValueError(
            f"Sample {without[0]} is zero in all features and has no cosine distance "
            f'({without.size} such row(s)). Leave it out, or take metric="euclidean".'
        )


def shorten(D: Floats, through: Ints) -> None:
    """Replace distances by those of shortest paths over the points in `through`, in place.

    For a metric this is what Floyd's algorithm over all points gives when only distances between
    points of `through` have been lowered. The entries above the diagonal are overwritten by those
    below.
    """
    E = D[through]
    inner = np.ascontiguousarray(E[:, through])
    for c in range(through.size):
        np.minimum(inner, inner[:, c, None] + inner[c], out=inner)
    _take_detours(D, _min_plus(inner, E))


def _uncertain(table: PairTable, group: Ints) -> tuple[Ints, Floats]:
    """Return the pairs of belief below 1 as pairs of groups, each once, with the largest belief."""
    i, j = group[table.pairs].T
    table = table.kept((table.belief < 1) & (i != j))
    ends, belief = np.sort(group[table.pairs], axis=1), table.belief
    order = np.lexsort((-belief, ends[:, 1], ends[:, 0]))
    ends, belief = ends[order], belief[order]
    is_first = np.ones(belief.size, dtype=bool)
    is_first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    return ends[is_first], belief[is_first]


@njit(cache=True)
def _min_plus(A, E):  # type: ignore[no-untyped-def]
    """Return ``min_c A[b, c] + E[c, j]``."""
    m, n = E.shape
    shortest = np.full((m, n), np.inf)
    for b in range(m):
        for c in range(m):
            first = A[b, c]
            for j in range(n):
                detour = first + E[c, j]
                shortest[b, j] = min(shortest[b, j], detour)
    return shortest


@njit(cache=True)
def _take_detours(D, E):  # type: ignore[no-untyped-def]
    """Lower ``D[i, j]`` to ``min_c E[c, i] + E[c, j]``, and mirror the lower triangle."""
    n = D.shape[0]
    for i in range(1, n):
        row = D[i]
        longest = row[:i].max()
        for c in range(E.shape[0]):
            first = E[c, i]
            if first >= longest:
                continue
            for j in range(i):
                detour = first + E[c, j]
                row[j] = min(row[j], detour)
    for i in range(n):
        for j in range(i):
            D[j, i] = D[i, j]


# ---------------------------------------------------------------------------------------------
# Merging
# ---------------------------------------------------------------------------------------------


class Tree(NamedTuple):
    """Merges of must-link groups, in order: slot `left` joins slot `right` at `height`."""

    left: Ints
    right: Ints
    height: Floats


def complete_link(distances: Distances, wanted: Ints | None = None) -> Tree:
    """Merge the two nearest clusters to the end; the distances are overwritten.

    Clusters that are apart come last. With `wanted`, the cluster that each group shall be in,
    merges across these come after all others.
    """
    D, apart, top = distances
    # Levels that no distance reaches.
    level = 4 * top if top > 0 else 1.0
    if wanted is not None:
        _put_off(D, wanted, level)
    D[apart[:, 0], apart[:, 1]] += 2 * level
    D[apart[:, 1], apart[:, 0]] += 2 * level
    left, right, height = _agglomerate(D)
    across = height >= 2 * level
    height = np.where(height >= level, np.fmod(height, level), height)
    height[across] = 2 * top if top > 0 else 1.0
    # A merge that was put off may be of nearer clusters than the one before: trees only grow.
    return Tree(left, right, np.maximum.accumulate(height))


@njit(cache=True)
def _put_off(D, wanted, level):  # type: ignore[no-untyped-def]
    for i in range(D.shape[0]):
        for j in range(D.shape[0]):
            if wanted[i] != wanted[j]:
                D[i, j] += level


@njit(cache=True)
def _agglomerate(D):  # type: ignore[no-untyped-def]
    n = D.shape[0]
    active = np.ones(n, dtype=np.bool_)
    nearest, low = np.empty(n, dtype=np.int64), np.full(n, np.inf)
    for i in range(n):
        nearest[i] = _nearest(D, active, i)
        if nearest[i] >= 0:
            low[i] = D[i, nearest[i]]
    left, right = np.empty(n - 1, dtype=np.int64), np.empty(n - 1, dtype=np.int64)
    height = np.empty(n - 1)
    for step in range(n - 1):
        i = int(np.argmin(low))
        # Distances only grow, so an old one is a lower bound.
        while not active[nearest[i]] or D[i, nearest[i]] > low[i]:
            nearest[i] = _nearest(D, active, i)
            low[i] = D[i, nearest[i]]
            i = int(np.argmin(low))
        j = nearest[i]
        left[step], right[step], height[step] = i, j, D[i, j]
        active[i] = False
        low[i] = np.inf
        for x in range(n):
            if active[x] and x != j:
                D[j, x] = max(D[j, x], D[i, x])
                D[x, j] = D[j, x]
    return left, right, height


@njit(cache=True)
def _nearest(D, active, i):  # type: ignore[no-untyped-def]
    best, least = -1, np.inf
    for j in range(D.shape[0]):
        if active[j] and j != i and D[i, j] < least:
            best, least = j, D[i, j]
    return best


# ---------------------------------------------------------------------------------------------
# Clusters without violated cannot-links
# ---------------------------------------------------------------------------------------------


def nearest_allowed(
    distances: Distances, labels: Ints, k: int, *, rng: np.random.RandomState
) -> Ints | None:
    """Return clusters of the groups that keep all pairs in `apart` apart; None if none is found.

    Groups that cannot-links touch go to clusters of `labels` at small mean distances that are
    allowed; the others keep theirs. This is colouring a graph at the least cost, exact where the
    cannot-links form no ring. For two clusters a way is found whenever there is one.
    """
    D, apart, top = distances
    membership = np.eye(k)[labels]
    held = np.unique(apart)
    # Groups without cannot-links keep their cluster: another one has the largest cost.
    cost = top * (1 - membership)
    # The distance of a group to itself is no evidence.
    n_others = np.maximum(membership.sum(axis=0) - membership[held], 1)
    cost[held] = D[held] @ membership / n_others
    found = assign(graph_of(apart, labels.size), cost, rng)
    return found.colors.astype(np.intp) if found.n_left == 0 else None


# ---------------------------------------------------------------------------------------------
# The tree
# ---------------------------------------------------------------------------------------------


def _linkage(group: Ints, tree: Tree) -> Floats:
    """Return all merges of samples in scipy's form: first the must-linked ones, at height 0."""
    n, n_groups = group.size, tree.left.size + 1
    cluster, size = [-1] * n_groups, [0] * n_groups
    rows: list[tuple[int, int, float, int]] = []
    for sample, g in enumerate(group.tolist()):
        size[g] += 1
        if size[g] == 1:
            cluster[g] = sample
        else:
            rows.append((sample, cluster[g], 0.0, size[g]))
            cluster[g] = n + len(rows) - 1
    for i, j, height in zip(*(part.tolist() for part in tree), strict=True):
        size[j] += size[i]
        rows.append((cluster[i], cluster[j], height, size[j]))
        cluster[j] = n + len(rows) - 1
    linkage = np.array(rows, dtype=np.float64).reshape(-1, 4)
    linkage[:, :2].sort(axis=1)
    return linkage


def _cut(tree: Tree, n_clusters: int) -> Ints:
    """Return the cluster of each group after all merges but the last ``n_clusters - 1``.

    By their order: many of the last merges may have one height, where a cut by height would give
    a single cluster.
    """
    n = tree.left.size + 1
    made = slice(max(0, n - n_clusters))
    ends = (tree.left[made], tree.right[made])
    edges = coo_array((np.ones(ends[0].size), ends), shape=(n, n))
    return relabelled(connected_components(edges, directed=False)[1])


def _violated(tree: Tree, apart: Ints, n_clusters: int) -> Ints:
    """Return the rows of `apart` whose groups the cut of a tree puts together."""
    together = _cut(tree, n_clusters)[apart]
    return np.flatnonzero(together[:, 0] == together[:, 1])


def _warn_if_violated(violated: Ints, group: Ints) -> None:
    if len(violated):
        first = np.unique(group, return_index=True)[1]
        i, j = first[violated[0]]
        message = (
            f"{len(violated)} cannot-link(s) between groups of must-linked samples are violated, "
            f"the first one between samples {i} and {j}: complete link reached this number of "
            "clusters only by merging across them. constraints.violated(labels) lists the pairs; "
            "more clusters avoid it."
        )
        # The user's line is behind this function, the method, two steps of `fit` and its wrapper.
        warnings.warn(message, UserWarning, stacklevel=6)


class CCL(ConstrainedClusterer):
    """Complete-link clustering under constraints (CCL; Klein, Kamvar & Manning, 2002).

    Distances, not a graph, are changed by the constraints: must-linked samples are at distance 0,
    which also brings near what is near to them; cannot-linked samples are farther apart than all
    others. Then the two nearest clusters are merged, by the distance of their farthest samples,
    until `n_clusters` are left. Hard: certain must-links always hold, and certain cannot-links
    whenever `n_clusters` clusters that satisfy them were found; otherwise a warning says
    how many do not. Pairs of lower belief change distances by that share.

    Parameters
    ----------
    n_clusters
    metric : {"euclidean", "manhattan", "cosine", "precomputed"}, default="euclidean"
        Distance of two samples. With ``"precomputed"``, `X` holds the distances between all
        samples, and for `predict` those of new samples to the training samples. Take ``"cosine"``
        for texts and embeddings, and ``"precomputed"`` if you have distances.
    merging : {"sound", "paper"}, default="sound"
        Whether a merge that would leave no way to `n_clusters` clusters without violating
        cannot-links is put off (``"sound"``) or made (``"paper"``). Take ``"paper"`` only to
        repeat the paper.
    random_state : int, RandomState instance or None, default=None
        Seed of the search for clusters that violate no cannot-link, where merging has led to some.
        Give a number to get the same answer every time.

    Attributes
    ----------
    result_ : LinkageResult
        Labels, largest distance inside a cluster, and the tree.
    linkage_ : ndarray of shape (n_samples - 1, 4)
        The tree for ``scipy.cluster.hierarchy``: one row a merge, in order. The clusters are those
        after ``n_samples - n_clusters`` merges.
    children_ : ndarray of shape (n_samples - 1, 2)
        The clusters of each merge, as in scikit-learn's ``AgglomerativeClustering``.

    References
    ----------
    D. Klein, S. Kamvar, C. Manning: From instance-level constraints to space-level constraints:
    making the most of prior knowledge in data clustering. ICML 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CCL, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> CCL(2).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Klein et al. 2002"
    family = "hierarchical"
    max_samples = MAX_GROUPS
    enforcement = "hard where that is found"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [StrOptions({*METRICS, "precomputed"})],
        "merging": [StrOptions({"sound", "paper"})],
    }
    solve = staticmethod(ccl)

    n_clusters: int = 2
    _: KW_ONLY
    metric: str = "euclidean"
    merging: str = "sound"
    random_state: int | np.random.RandomState | None = None

    @property
    def linkage_(self) -> Floats:
        """The tree for ``scipy.cluster.hierarchy``."""
        check_is_fitted(self, "result_")
        linkage: Floats = self.result_.linkage
        return linkage

    @property
    def children_(self) -> Ints:
        """The clusters of each merge."""
        return self.linkage_[:, :2].astype(np.intp)

    def predict(self, X: Any) -> Ints:
        """Assign new samples to the cluster of the nearest training sample.

        Training data get their labels back (unless duplicates of a sample are in several clusters).

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New samples; with ``metric="precomputed"`` their distances to the training samples, of
            shape (n_new, n_samples).

        Returns
        -------
        ndarray of shape (n_new,)
        """
        X = self._new_samples(X)
        if self._is_precomputed:
            _check_not_negative(X)
            return self.labels_[X.argmin(axis=1)]
        n_rows = max(1, BLOCK // self.labels_.size)
        nearest = [
            _between(X[begin : begin + n_rows], self._samples, self.metric).argmin(axis=1)
            for begin in range(0, len(X), n_rows)
        ]
        return self.labels_[np.concatenate(nearest)]

    def _check_samples(self, prepared: Prepared) -> None:
        super()._check_samples(prepared)
        if self._is_precomputed:
            _check_distances(prepared.X)
            return
        self._samples = prepared.X
        if self.metric == "euclidean":
            check_magnitude(prepared.X)

    @property
    def _is_precomputed(self) -> bool:
        return self.metric == "precomputed"


def _check_distances(D: Floats) -> None:
    """Check precomputed distances between the training samples."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            "Precomputed distances are a square matrix, one row and column a sample; got shape "
            f'{D.shape}. For a matrix of features take metric="euclidean".'
        )
    _check_not_negative(D)
    if D.diagonal().any():
        i = int(np.flatnonzero(D.diagonal())[0])
        raise ValueError(
            f"The distance of sample {i} to itself is {D[i, i]:g} instead of 0. Are these "
            "affinities? Methods with affinity=... take them."
        )
    difference = np.abs(D - D.T)
    if difference.max() > 1e-8 * D.max():
        i, j = (int(x) for x in np.unravel_index(difference.argmax(), D.shape))
        raise ValueError(
            f"Precomputed distances must be symmetric, but D[{i}, {j}] is {D[i, j]:g} and "
            f"D[{j}, {i}] is {D[j, i]:g}."
        )


def _check_not_negative(D: Floats) -> None:
    if D.min() < 0:
        message = f"Distances must not be negative, but the smallest one given is {D.min():g}."
        raise ValueError(message)
