"""Minimum spanning trees of samples, and clusters of similar size along their edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._jit import njit
from linkwise._kernels import relabelled

if TYPE_CHECKING:
    from linkwise._types import Floats, Int64s, Ints


def minimum_spanning_tree(Z: Floats, core: Floats | None = None) -> tuple[Ints, Floats]:
    r"""Return the edges of a minimum spanning tree of all samples, the shortest first.

    The distance is :math:`\max(\|z_i - z_j\|, c_i, c_j)`: with core distances `c`, such as those
    to the 5th neighbour, the mutual reachability of HDBSCAN (Campello, Moulavi & Sander 2013).
    Prim's algorithm, in ``O(n_samples ** 2 * n_columns)`` time and no more memory than `Z`.

    Returns
    -------
    edges : ndarray of shape (n_samples - 1, 2)
    lengths : ndarray of shape (n_samples - 1,)

    Examples
    --------
    >>> edges, lengths = minimum_spanning_tree(np.array([[0.0], [5.0], [1.0]]))
    >>> edges.tolist(), lengths.tolist()
    ([[0, 2], [2, 1]], [1.0, 4.0])
    """
    columns = np.ascontiguousarray(Z.T, dtype=np.float64)
    least = np.zeros(Z.shape[0]) if core is None else np.asarray(core, dtype=np.float64) ** 2
    n = Z.shape[0]
    edges, squares = np.zeros((max(n - 1, 0), 2), np.int64), np.zeros(max(n - 1, 0))
    nearest, square = np.full(n, np.inf), np.zeros(n)
    _prim(columns, least, (edges, squares), (nearest, square, np.zeros(n, np.int64)))
    order = np.argsort(squares, kind="stable")
    return edges[order].astype(np.intp, copy=False), np.sqrt(squares[order])


@njit(cache=True, nogil=True)
def _prim(columns, least, tree, scratch):  # type: ignore[no-untyped-def]
    """Write edges and squared lengths; `least` holds the squared core distances."""
    q, n = columns.shape
    edges, lengths = tree
    # The squared distance of each sample to the tree, and where; of a member, -1.
    nearest, square, via = scratch
    last = 0
    for e in range(n - 1):
        via[last] = -1
        # Column by column: then the loop over the samples runs in vector registers.
        for j in range(n):
            square[j] = 0.0
        for c in range(q):
            x = columns[c, last]
            for j in range(n):
                square[j] += (columns[c, j] - x) ** 2
        following = -1
        for j in range(n):
            if via[j] >= 0:
                length = max(square[j], least[last], least[j])
                if length < nearest[j]:
                    nearest[j] = length
                    via[j] = last
                if following < 0 or nearest[j] < nearest[following]:
                    following = j
        last = following
        edges[e, 0] = via[last]
        edges[e, 1] = last
        lengths[e] = nearest[last]


class Sizes(NamedTuple):
    """Sizes of clusters, with the sums that their Gini index needs."""

    of: Int64s  # the cluster that a sample represents
    clusters: Int64s  # number of clusters of each size
    tree: Int64s  # Fenwick tree over the sizes: number of clusters, sum of their sizes


def balanced_partition(edges: Ints, n: int, k: int, *, limit: float) -> Ints:
    r"""Merge samples along the edges of a spanning tree into `k` clusters of similar size.

    Single linkage with a correction, as in Genie (Gagolewski, Bartoszuk & Cena 2016): as long as
    the sizes :math:`s_1, \dots, s_m` of the clusters are too unequal, that is, while their Gini
    index

    .. math:: G = \frac{\sum_{i < j} |s_i - s_j|}{(m - 1) \sum_i s_i}

    is above the limit, the shortest edge at one of the smallest clusters is next; otherwise the
    shortest of all. A limit of 1 is single linkage.

    Takes ``O(n log n)`` time and ``O(n)`` memory.

    Parameters
    ----------
    edges : ndarray of shape (n - 1, 2)
        Of a spanning tree, the shortest first. Connected components of a forest are not merged: of
        those there may be more than `k`.
    n, k : int
        Number of samples and of clusters.
    limit : float
        Gini index, from 0 (all sizes equal) to 1.

    Returns
    -------
    ndarray of shape (n,)
        Clusters, numbered by first appearance.

    Examples
    --------
    Single linkage leaves the distant sample alone; balanced clusters do not.

    >>> edges, _ = minimum_spanning_tree(np.array([[0.0], [1.0], [3.0], [4.0], [9.0]]))
    >>> balanced_partition(edges, 5, 2, limit=1.0).tolist()
    [0, 0, 0, 0, 1]
    >>> balanced_partition(edges, 5, 2, limit=0.1).tolist()
    [0, 0, 1, 1, 1]
    """
    parent = np.arange(n, dtype=np.int64)
    end = len(edges)  # the edges that are left are a list, closed to a ring by `end`
    before, after = np.arange(-1, end), np.arange(1, end + 2)
    before[0], after[end] = end, 0
    edges = np.ascontiguousarray(edges, dtype=np.int64)
    # At first every sample is a cluster of size 1, which some sums of the tree contain.
    clusters, tree = np.zeros(n + 1, np.int64), np.zeros((n + 1, 2), np.int64)
    clusters[1] = tree[2 ** np.arange(n.bit_length())] = n
    sizes = Sizes(np.ones(n, np.int64), clusters, tree)
    _merge(edges, (before, after), parent, sizes, (k, limit))
    return relabelled(parent)


@njit(cache=True, nogil=True)
def _merge(edges, ring, parent, sizes, wanted):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Write a representative of each sample's cluster to `parent`."""
    before, after = ring
    k, limit = wanted
    n, end = parent.size, edges.shape[0]
    spread = 0  # sum of |s_i - s_j|
    # No edge before the candidate is at a cluster of smallest size. (Literals would make numba
    # compile the callees twice.)
    smallest, candidate = np.int64(1), np.int64(0)
    n_clusters = n
    while n_clusters > k and after[end] != end:
        e = after[end]
        if spread / (n * (n_clusters - 1.0)) > limit:
            while candidate != end:  # the next edge that ends at one of the smallest clusters
                a, b = _root(parent, edges[candidate, 0]), _root(parent, edges[candidate, 1])
                if sizes.of[a] == smallest or sizes.of[b] == smallest:
                    break
                candidate = after[candidate]
            if candidate != end:
                e = candidate
        after[before[e]], before[after[e]] = after[e], before[e]
        if candidate == e:
            candidate = after[e]
        spread += _join(edges, e, parent, sizes)
        n_clusters -= 1
        if sizes.clusters[smallest] == 0:
            while sizes.clusters[smallest] == 0:
                smallest += 1
            candidate = after[end]
    for i in range(n):
        parent[i] = _root(parent, i)


@njit(cache=True, nogil=True)
def _root(parent: Int64s, i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True)
def _join(edges: Int64s, e: int, parent: Int64s, sizes: Sizes) -> int:
    """Join the clusters at an edge; return by how much the sum of size differences grows."""
    one = np.int64(1)
    a, b = _root(parent, edges[e, 0]), _root(parent, edges[e, 1])
    growth = -_differences(sizes, sizes.of[a])
    _change(sizes, sizes.of[a], -one)
    growth -= _differences(sizes, sizes.of[b])
    _change(sizes, sizes.of[b], -one)
    parent[b] = a
    sizes.of[a] += sizes.of[b]
    growth += _differences(sizes, sizes.of[a])
    _change(sizes, sizes.of[a], one)
    return growth


@njit(cache=True, nogil=True)
def _change(sizes: Sizes, size: int, sign: int) -> None:
    """Enter a cluster of this size, or remove one."""
    sizes.clusters[size] += sign
    at = size
    while at < sizes.clusters.size:
        sizes.tree[at, 0] += sign
        sizes.tree[at, 1] += sign * size
        at += at & -at


@njit(cache=True, nogil=True)
def _differences(sizes: Sizes, size: int) -> int:
    """Return the sum of the differences of all sizes to this one."""
    n_below, below = _up_to(sizes, size)
    n_all, total = _up_to(sizes, sizes.clusters.size - 1)
    return (2 * n_below - n_all) * size - 2 * below + total


@njit(cache=True, nogil=True)
def _up_to(sizes: Sizes, size: int) -> tuple[int, int]:
    """Return the number of clusters up to this size, and the sum of their sizes."""
    number, total = 0, 0
    while size > 0:
        number += sizes.tree[size, 0]
        total += sizes.tree[size, 1]
        size -= size & -size
    return number, total
