"""Quality of the cut of a graph.

Every score takes a symmetric graph `W`, sparse or dense, and the cluster of each vertex. A single
cluster costs 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse

from linkwise.metrics.checks import as_codes, as_graph, free_points

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from linkwise._types import AnyArray, Floats, Ints, Matrix
    from linkwise.metrics.checks import Outside

    Convention: TypeAlias = Literal["per_cluster", "one_vs_rest"]


def cut(W: Matrix, labels: ArrayLike, *, outside: Outside = None) -> float:
    r"""Total weight of the edges between clusters, each edge counted once.

    .. math:: \tfrac12 \sum_{\ell_i \ne \ell_j} w_{ij}

    With `outside`, of the graph among the free points alone: those outside every constraint.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_samples, n_samples)
        Symmetric graph.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.

    Examples
    --------
    >>> cut(np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0]]), [0, 0, 1])
    1.0
    """
    return float(ClusterCuts.of(W, labels, outside).cut.sum() / 2)


def ncut(
    W: Matrix,
    labels: ArrayLike,
    *,
    convention: Convention = "per_cluster",
    outside: Outside = None,
) -> float:
    r"""Normalised cut: what each cluster loses to the others, relative to its volume.

    .. math:: \sum_c \frac{\mathrm{cut}(c, V \setminus c)}{\mathrm{vol}(c)}, \qquad
       \mathrm{vol}(c) = \sum_{i \in c} \sum_j w_{ij} ,

    for two clusters and for many. It does not change when `W` is scaled, and lies between 0 and
    the number of clusters.

    A cluster without volume has no edge to lose and counts 0.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_samples, n_samples)
        Symmetric graph; no weight is negative.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.
    convention : {"per_cluster", "one_vs_rest"}, default="per_cluster"
        "one_vs_rest" is eq. 6 of Rangapuram & Hein (2012): the sum over clusters of the two-way
        normalised cut of each against all others,
        :math:`\mathrm{cut}(c, V \setminus c) / \mathrm{vol}(c) + \mathrm{cut}(c, V \setminus c)
        / \mathrm{vol}(V \setminus c)`. A larger number, and for two clusters exactly twice the
        other. The authors' program reports "per_cluster".

    Examples
    --------
    >>> W = np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0]])
    >>> round(ncut(W, [0, 0, 1]), 4)  # 1 / 7 + 1 / 1
    1.1429
    """
    cuts = ClusterCuts.of(W, labels, outside)
    return _total_ratio(cuts.cut, cuts.volume, convention)


def rcut(
    W: Matrix,
    labels: ArrayLike,
    *,
    convention: Convention = "per_cluster",
    outside: Outside = None,
) -> float:
    r"""Ratio cut: what each cluster loses to the others, relative to its number of points.

    .. math:: \sum_c \frac{\mathrm{cut}(c, V \setminus c)}{|c|}

    It scales with `W`.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_samples, n_samples)
        Symmetric graph; no weight is negative.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    convention : {"per_cluster", "one_vs_rest"}, default="per_cluster"
        As in :func:`ncut`.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.

    Examples
    --------
    >>> rcut(np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0]]), [0, 0, 1])  # 1 / 2 + 1 / 1
    1.5
    """
    cuts = ClusterCuts.of(W, labels, outside)
    return _total_ratio(cuts.cut, cuts.size, convention)


class ClusterCuts(NamedTuple):
    """For each cluster: weight to the other clusters, sum of degrees, number of vertices."""

    cut: Floats
    volume: Floats
    size: Floats

    @classmethod
    def of(cls, W: Matrix, labels: ArrayLike, outside: Outside = None) -> ClusterCuts:
        """Compute them for the graph, or for the free points alone."""
        codes = as_codes(labels, "labels")
        W = as_graph(W, codes.size)
        if outside is not None:
            free = np.flatnonzero(free_points(outside, codes.size))
            W, codes = W[free][:, free], np.unique(codes[free], return_inverse=True)[1]
        n_clusters = codes.max(initial=-1) + 1
        if issparse(W):
            row_codes = np.repeat(codes, np.diff(W.indptr))
            crossing = row_codes != codes[W.indices]
            lost = _sums(row_codes[crossing], W.data[crossing], n_clusters)
        else:
            # Sums of crossing entries, not volume minus inside: an empty cut is then exactly 0.
            members = (codes == c for c in range(n_clusters))
            lost = np.array([W[np.ix_(m, ~m)].sum() for m in members], dtype=float)
        volume = _sums(codes, np.asarray(W.sum(axis=1)).ravel(), n_clusters)
        return cls(lost, volume, np.bincount(codes).astype(float))


def _sums(codes: Ints, values: AnyArray, n_clusters: int) -> Floats:
    sums: Floats = np.bincount(codes, weights=values, minlength=n_clusters).astype(float)
    return sums


def _total_ratio(lost: Floats, weight: Floats, convention: str) -> float:
    total = ratios(lost, weight).sum()
    if convention == "one_vs_rest":
        total += ratios(lost, weight.sum() - weight).sum()
    elif convention != "per_cluster":
        raise ValueError(f"convention must be 'per_cluster' or 'one_vs_rest', got {convention!r}.")
    return float(total)


def ratios(lost: Floats, weight: Floats) -> Floats:
    """Divide; 0 where there is no weight."""
    ratios: Floats = np.divide(lost, weight, out=np.zeros(lost.shape), where=weight > 0)
    return ratios
