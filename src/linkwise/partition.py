"""From vectors to labels: k-means, signs, thresholds and repeated halving.

The last step of every spectral method. The functions work on plain arrays: they neither
check their input nor warn, and draw only from the generator they are handed. A graph `W` is
symmetric, a ``csr_array`` or a dense array.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from scipy.sparse import csr_array, issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import AnyArray, Bools, Floats, Ints, Matrix

    Split: TypeAlias = Callable[[Matrix, Ints], AnyArray | None]

__all__ = [
    "Bisection",
    "KMeansPartition",
    "Threshold",
    "best_threshold",
    "canonical",
    "kmeans",
    "recursive_bisection",
    "sign_split",
    "unit_rows",
]

# Restarts run on at most this many rows, and Lloyd's algorithm on all rows finishes the best:
# on 100,000 structureless rows a tenth of the time, at an inertia within 0.1 %.
RESTART_ROWS = 5_000

# Restarts are cheap where few rows make bad luck likely.
MANY_RESTARTS, MANY_RESTARTS_ROWS = 20, 2_000
FEW_RESTARTS = 10

# Up to RESTART_ROWS Lloyd runs until no row moves. Above, until the centres move less than this
# share of the variance: structureless data would creep on for hundreds of iterations.
LARGE_TOL = 1e-4

# Rows nearer than this share of the largest entry differ by the rounding of an eigensolver only.
SAME_ROW = 1e-12


class KMeansPartition(NamedTuple):
    """Clusters of the rows of a matrix."""

    labels: Ints
    centers: Floats
    inertia: float
    n_iter: int


class Threshold(NamedTuple):
    """Two clusters, ``labels = v > value``, and what their cut costs."""

    labels: Ints
    value: float
    objective: float


class Bisection(NamedTuple):
    """Clusters made by repeated halving, and what their cut costs."""

    labels: Ints
    objective: float


# ---------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------


def unit_rows(V: Floats) -> Floats:
    """Scale every row to length 1; a row of zeros stays as it is.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    # Dividing by the largest entry first keeps tiny and huge rows from under- and overflowing.
    largest = np.abs(V).max(axis=1, keepdims=True, initial=0.0)
    scaled = V / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Floats = scaled / np.where(lengths > 0, lengths, 1.0)
    return unit


def canonical(labels: AnyArray) -> Ints:
    """Renumber clusters by first appearance, so that equal partitions have equal labels.

    Examples
    --------
    >>> canonical(np.array([7, 2, 7, 0])).tolist()
    [0, 1, 0, 2]
    """
    labels = np.asarray(labels)
    if labels.dtype.kind == "i" and labels.dtype.isnative and labels.size and labels.min() >= 0:
        top = int(labels.max())
        if top <= 4 * labels.size:  # no sort then
            return np.asarray(_ranks(labels, top)[labels], dtype=np.intp)
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.intp)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[codes]


@njit(cache=True, nogil=True)
def _ranks(labels, top):  # type: ignore[no-untyped-def]
    """Return the place of each label up to `top` in the order of first appearance."""
    rank = np.full(top + 1, -1, np.intp)
    n_met = 0
    for label in labels:
        if rank[label] < 0:
            rank[label] = n_met
            n_met += 1
    return rank


def sign_split(v: Floats) -> Ints:
    """Split by sign: label 1 where ``v >= 0``, label 0 elsewhere.

    Zeros go to the positive side, so `v` and ``-v`` are the same partition only where `v` has
    no zero.

    Examples
    --------
    >>> sign_split(np.array([-0.3, 0.0, 0.2])).tolist()
    [0, 1, 1]
    """
    return (v >= 0).astype(np.intp)


# ---------------------------------------------------------------------------------------------
# k-means
# ---------------------------------------------------------------------------------------------


def kmeans(
    V: Floats,
    k: int,
    rng: np.random.RandomState,
    *,
    n_init: int | None = None,
    max_iter: int = 300,
) -> KMeansPartition:
    r"""Cluster rows around `k` centres.

    Looks for the partition of the rows :math:`v_i` with the lowest inertia

    .. math:: \sum_{c=1}^{k} \sum_{i \in c} \| v_i - \mu_c \|^2 .

    The rows are taken as they are; spectral methods that want directions pass
    :func:`unit_rows`. Several runs from random starts (k-means++) compete with one from the
    farthest-first rows, which depends neither on the seed nor on the order of the rows; the
    best of them is run until no row changes its cluster. Above 5,000 rows the competition is
    held on a random sample and judged on all rows, and the last run ends when the centres move
    by less than 1e-4 of the variance. An iteration costs ``O(n_rows * n_columns * k)``.

    Parameters
    ----------
    V : ndarray of shape (n_rows, n_columns)
        Rows to cluster.
    k : int
        Number of clusters.
    rng : RandomState
        Source of the random starts.
    n_init : int, optional
        Number of random starts: 20 up to 2,000 rows and 10 above, unless given.
    max_iter : int, default=300
        Iteration limit of each run.

    Returns
    -------
    KMeansPartition
        Ints numbered by first appearance (row 0 is in cluster 0), the centres in that order,
        the inertia, and the iterations of the final run over all rows.
        There are exactly `k` non-empty clusters when at least `k` rows are distinct. With fewer
        distinct rows each of them is a cluster, so there are fewer than `k`: equal rows are
        never separated, because must-linked samples often have them. Rows are distinct when
        they are farther apart than 1e-12 times the largest entry of `V`.

    Examples
    --------
    >>> V = np.array([[0.0], [5.0], [0.2], [5.2]])
    >>> kmeans(V, 2, np.random.RandomState(0)).labels.tolist()
    [0, 1, 0, 1]
    """
    V = np.ascontiguousarray(V, dtype=np.float64)
    n_rows = V.shape[0]
    seeds, nearest = _farthest_first(V, k)
    if seeds.size < k:
        return _partition(V, nearest)
    if n_init is None:
        n_init = MANY_RESTARTS if n_rows <= MANY_RESTARTS_ROWS else FEW_RESTARTS
    start = _best_start(V, seeds, rng, n_init=n_init, max_iter=max_iter)
    tol = 0.0 if n_rows <= RESTART_ROWS else LARGE_TOL
    found = _lloyd(V, start, max_iter=max_iter, tol=tol)
    # Lloyd can lose a cluster to rounding when rows nearly coincide; the seeds never do.
    complete = bool(np.bincount(found.labels, minlength=k).all())
    return _numbered_by_appearance(found) if complete else _partition(V, nearest)


def _farthest_first(V: Floats, k: int) -> tuple[Ints, Ints]:
    """Find up to `k` rows, each the farthest from those before, and put all with the nearest.

    Stops early when every row equals one of those found. No cluster is empty, as the rows
    found differ.
    """
    same = (SAME_ROW * np.abs(V).max(initial=0.0)) ** 2
    distances, nearest = np.full(V.shape[0], np.inf), np.zeros(V.shape[0], dtype=np.intp)
    _come_nearer(V, V.mean(axis=0), distances, nearest, 0)
    seeds = [int(distances.argmax())]
    distances[:] = np.inf
    _come_nearer(V, V[seeds[0]], distances, nearest, 0)
    while len(seeds) < k and distances.max() > same:
        seeds.append(int(distances.argmax()))
        _come_nearer(V, V[seeds[-1]], distances, nearest, len(seeds) - 1)
    return np.array(seeds, dtype=np.intp), nearest


@njit(cache=True, nogil=True)
def _come_nearer(V, point, distances, nearest, label):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Lower squared distances to those from a point, and write its label where it is nearer."""
    for i in range(V.shape[0]):
        total = 0.0
        for c in range(V.shape[1]):
            # Differences: |v|^2 - 2 v.p + |p|^2 could not tell near rows from equal ones.
            total += (V[i, c] - point[c]) ** 2
        if total < distances[i]:
            distances[i], nearest[i] = total, label


def _partition(V: Floats, labels: Ints) -> KMeansPartition:
    """Describe clusters found without Lloyd's algorithm."""
    labels = canonical(labels)
    sizes = np.bincount(labels)
    centers = np.column_stack([np.bincount(labels, column) / sizes for column in V.T])
    inertia = float(((V - centers[labels]) ** 2).sum())
    return KMeansPartition(labels, centers, inertia, 0)


def _best_start(
    V: Floats, seeds: Ints, rng: np.random.RandomState, *, n_init: int, max_iter: int
) -> Floats:
    """Centres of the best of all starts, each run to the end on (a sample of) the rows."""
    k, n_rows = seeds.size, V.shape[0]
    sample = V
    if n_rows > RESTART_ROWS:
        # The seeds stay in, or a small far cluster might leave no row to run on.
        chosen = rng.choice(n_rows, RESTART_ROWS, replace=False)
        sample = V[np.union1d(chosen, seeds)]
    ordered = _lloyd(sample, V[seeds], max_iter=max_iter)
    random = _fit(KMeans(k, n_init=n_init, max_iter=max_iter, random_state=rng), sample)
    if sample is V:
        return min(ordered, random, key=lambda run: run.inertia).centers
    return min(ordered.centers, random.centers, key=lambda centers: _inertia(V, centers))


def _inertia(V: Floats, centers: Floats) -> float:
    """Return the sum of the squared distances of all rows to their nearest centres."""
    distances, nearest = np.full(V.shape[0], np.inf), np.zeros(V.shape[0], dtype=np.intp)
    for label, center in enumerate(centers):
        _come_nearer(V, center, distances, nearest, label)
    return float(distances.sum())


def _lloyd(V: Floats, start: Floats, *, max_iter: int, tol: float = 1e-4) -> KMeansPartition:
    # Nothing is random from given centres; a fixed state keeps numpy's global one untouched.
    model = KMeans(start.shape[0], init=start, n_init=1, max_iter=max_iter, tol=tol, random_state=0)
    return _fit(model, V)


def _fit(model: KMeans, V: Floats) -> KMeansPartition:
    with warnings.catch_warnings():
        # Clusters lost to rounding are dealt with in `kmeans`.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(V)
    return KMeansPartition(
        model.labels_.astype(np.intp), model.cluster_centers_, float(model.inertia_), model.n_iter_
    )


def _numbered_by_appearance(found: KMeansPartition) -> KMeansPartition:
    rank = _ranks(found.labels, found.centers.shape[0] - 1)
    return found._replace(labels=rank[found.labels], centers=found.centers[np.argsort(rank)])


# ---------------------------------------------------------------------------------------------
# Thresholds
# ---------------------------------------------------------------------------------------------


def best_threshold(
    W: Matrix,
    v: Floats,
    *,
    objective: Literal["ncut", "rcut", "ncheeger", "rcheeger"] = "ncut",
    weights: Floats | None = None,
    offset: float = 0.0,
) -> Threshold:
    r"""Cut the graph between two values of a vector where that costs least.

    Of all partitions :math:`A_t = \{i : v_i > t\}`, :math:`B_t` its complement, finds the one
    with the lowest

    .. math:: \frac{\mathrm{cut}(A_t, B_t)}{b(A_t)} + \frac{\mathrm{cut}(A_t, B_t)}{b(B_t)}
       \quad\text{or}\quad \frac{\mathrm{cut}(A_t, B_t)}{\min(b(A_t), b(B_t))},

    the cut counting each edge once and :math:`b` being the volume or the size. All thresholds
    together cost one sort and one pass over the edges: moving a vertex across the threshold
    adds its weights to one side to the cut and takes off those to the other.

    Parameters
    ----------
    W : csr_array or ndarray of shape (n, n)
        Symmetric graph.
    v : ndarray of shape (n,)
        Value of each vertex.
    objective : {"ncut", "rcut", "ncheeger", "rcheeger"}, default="ncut"
        The sum (cut) or the worse side (Cheeger) of the two ratios; `n` divides by the volume,
        `r` by the number of vertices.
    weights : ndarray of shape (n,), optional
        Vertex weights to divide by in place of volume or size, such as those of a contracted graph.
    offset : float, default=0.0
        Added to every cut. With ``W + gamma (Q_must - Q_cannot)`` in place of `W`, the degrees
        of `W` as weights, and gamma times the number of cannot-links as offset, the objective
        is the penalised cut of Rangapuram & Hein (2012), eq. 1.

    Returns
    -------
    Threshold
        Ints (1 where ``v > value``), the largest value of the lower side, and the objective.
        A threshold never separates equal values, nor leaves a side without weight. If no
        threshold is left (`v` is constant, or one vertex only) all labels are 0, the value is
        the largest of `v`, and the objective is infinite.

    Examples
    --------
    >>> path = np.diag([1.0, 0.1, 1.0], 1)
    >>> best_threshold(path + path.T, np.array([0.0, 1.0, 2.0, 3.0])).labels.tolist()
    [0, 0, 1, 1]
    """
    b = _vertex_weights(W, objective) if weights is None else weights
    sum_or_worse = _cheeger if objective.endswith("cheeger") else _sum_of_ratios
    order = np.argsort(v, kind="stable")
    ascending = v[order]
    # Running sums are rounded: a cut is never negative, a weight of 1e-16 is none.
    cuts = np.maximum(offset + _cuts_along(W, order)[:-1], 0.0)
    below = _without_rounding(np.cumsum(b[order])[:-1])
    above = _without_rounding(np.cumsum(b[order][::-1])[::-1][1:])
    costs = sum_or_worse(cuts, below, above)
    costs[ascending[:-1] == ascending[1:]] = np.inf
    if not np.isfinite(costs).any():
        nowhere = np.zeros(v.size, dtype=np.intp)
        return Threshold(nowhere, float(v.max()), np.inf)
    value = ascending[costs.argmin()]
    is_above = v > value
    # The running sums carry the rounding of the whole graph; the answer is summed afresh.
    cut = np.array([offset + _weight_between(W, is_above)])
    cost = sum_or_worse(cut, b[~is_above].sum(), b[is_above].sum())
    return Threshold(is_above.astype(np.intp), float(value), float(cost[0]))


def _without_rounding(sums: Floats) -> Floats:
    """Set running sums that are nothing but rounding to zero."""
    return np.where(sums > 1e-12 * sums.max(initial=0.0), sums, 0.0)


def _cuts_along(W: Matrix, order: Ints) -> Floats:
    """Cut between the first ``t + 1`` vertices of an order and the rest, for every `t`."""
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    if issparse(W):
        row_position = np.repeat(position, np.diff(W.indptr))
        side = np.sign(position[W.indices] - row_position)
        # Sums by row, without an n x n matrix: a loop has side 0 and drops out.
        later_minus_earlier = csr_array((W.data * side, W.indices, W.indptr), W.shape)
        return np.cumsum(_row_sums(later_minus_earlier)[order])
    sorted_W = W[np.ix_(order, order)]
    later = np.triu(sorted_W, 1)
    # The part below the diagonal is the mirror image: its row sums are column sums of `later`.
    return np.cumsum(later.sum(axis=1) - later.sum(axis=0))


def _weight_between(W: Matrix, above: Bools) -> float:
    if issparse(W):
        rows = np.repeat(above, np.diff(W.indptr))
        return float(W.data[rows & ~above[W.indices]].sum())
    return float(W[np.ix_(above, ~above)].sum())


def _vertex_weights(W: Matrix, objective: str) -> Floats:
    return np.ones(W.shape[0]) if objective.startswith("r") else _row_sums(W)


def _row_sums(W: Matrix) -> Floats:
    return np.asarray(W.sum(axis=1), dtype=np.float64).ravel()


def _sum_of_ratios(cuts: Floats, below: Any, above: Any) -> Floats:
    return _ratio(cuts, below) + _ratio(cuts, above)


def _cheeger(cuts: Floats, below: Any, above: Any) -> Floats:
    return _ratio(cuts, np.minimum(below, above))


def _ratio(cuts: Floats, b: Any) -> Floats:
    """``cuts / b``, infinite where a side has no weight: nothing was cut off."""
    positive = np.broadcast_to(b > 0, cuts.shape)
    ratio: Floats = np.divide(cuts, b, out=np.full(cuts.shape, np.inf), where=positive)
    return ratio


# ---------------------------------------------------------------------------------------------
# Repeated halving
# ---------------------------------------------------------------------------------------------


class _Candidate(NamedTuple):
    """A cluster that can be split: its two parts, and what the split adds to the total cut."""

    parts: tuple[Ints, Ints]
    added: float


def recursive_bisection(
    W: Matrix, k: int, split: Split, *, weights: Floats | None = None
) -> Bisection:
    r"""Make `k` clusters by splitting one cluster in two, again and again.

    Every cluster is split for trial; the split is kept that leads to the lowest total

    .. math:: \sum_c \mathrm{cut}(c, V \setminus c) / b(c)

    over all clusters, the rule of Rangapuram & Hein (2012), section 5, with the
    convention of :func:`linkwise.metrics.ncut`. Each cluster is tried once, so `split` is
    called at most ``2 k - 3`` times.

    Parameters
    ----------
    W : csr_array or ndarray of shape (n, n)
        Symmetric graph.
    k : int
        Number of clusters to reach.
    split : callable
        ``split(W_sub, indices)`` gets the subgraph of a cluster of at least two vertices and
        their indices in `W`, and returns labels 0 and 1, or None if it should stay whole.
        One label for all also means that it stays whole.
    weights : ndarray of shape (n,), optional
        Vertex weights :math:`b`: degrees (normalised cut) unless given; ones make it ratio cut.

    Returns
    -------
    Bisection
        Ints numbered by first appearance, and the total cut above. There are fewer than `k`
        clusters if none that are left can be split.

    Examples
    --------
    >>> path = np.diag([1.0, 0.1, 1.0, 0.2, 1.0], 1)
    >>> W = path + path.T
    >>> def halve(W_sub, indices):
    ...     return best_threshold(W_sub, indices.astype(float)).labels
    >>> recursive_bisection(W, 3, halve).labels.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    b = _row_sums(W) if weights is None else weights
    clusters: list[Ints] = [np.arange(W.shape[0])]
    candidates: list[_Candidate | None] = [None if k == 1 else _try(W, b, clusters[0], split)]
    while len(clusters) < k:
        added = [np.inf if c is None else c.added for c in candidates]
        chosen = int(np.argmin(added))
        candidate = candidates[chosen]
        if candidate is None:
            break
        clusters[chosen : chosen + 1] = candidate.parts
        # After the last split nothing more is tried: a trial may be an expensive solve.
        tried = [_try(W, b, part, split) for part in candidate.parts] if len(clusters) < k else []
        candidates[chosen : chosen + 1] = tried
    labels = np.empty(W.shape[0], dtype=np.intp)
    for label, members in enumerate(clusters):
        labels[members] = label
    return Bisection(canonical(labels), sum(_cost(W, b, members) for members in clusters))


def _try(W: Matrix, b: Floats, members: Ints, split: Split) -> _Candidate | None:
    if members.size < 2:
        return None
    labels = split(W[np.ix_(members, members)], members)
    if labels is None:
        return None
    first = np.asarray(labels) == 0
    if first.all() or not first.any():
        return None
    parts = members[first], members[~first]
    added = _cost(W, b, parts[0]) + _cost(W, b, parts[1]) - _cost(W, b, members)
    return _Candidate(parts, added)


def _cost(W: Matrix, b: Floats, members: Ints) -> float:
    """``cut(c, rest) / b(c)``; a cluster without edges or weight costs nothing."""
    inside = np.zeros(W.shape[0], dtype=bool)
    inside[members] = True
    rows = W[members]
    if issparse(rows):
        cut = float(rows.data[~inside[rows.indices]].sum())
    else:
        cut = float(rows[:, ~inside].sum())
    weight = float(b[members].sum())
    return cut / weight if weight > 0 else 0.0
