r"""Degrees, normalised adjacencies, Laplacians and connected components of a weighted graph.

`W` is the symmetric adjacency of the graph: a ``csr_array``, or a dense array. Sparse in
gives sparse out, dense in gives dense out, and `W` is never changed. Its weights are
non-negative, except in the functions named *signed* or *absolute*.

With the degrees :math:`d_i = \sum_j w_{ij}` and :math:`\bar d_i = \sum_j |w_{ij}|` on the
diagonals of :math:`D` and :math:`\bar D`:

=================================  ==================================================
`combinatorial`                    :math:`D - W`
`symmetric`                        :math:`I - D^{-1/2} W D^{-1/2}`
`signed`                           :math:`\bar D - W`
`normalized_adjacency`             :math:`D^{-1/2} W D^{-1/2}`
`additive_normalization`           :math:`(W + d_{\max} I - D) / d_{\max}`
=================================  ==================================================

An isolated vertex has a row of zeros in every normalised adjacency, and a row of zeros,
diagonal included, in every Laplacian: it is a component of its own, and the number of zero
eigenvalues of a Laplacian stays the number of components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from scipy.sparse.csgraph import connected_components

from linkwise._jit import SMALL_GRAPH, njit
from linkwise.linalg.blocks import BlockMatrix, absolute_row_sums

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints, Matrix

# Rows scaled at a time: the temporary arrays stay small beside the matrix.
ROWS_PER_BLOCK = 16_384


def degrees(W: Matrix) -> Floats:
    """Sum the weights of the edges of every vertex."""
    return np.asarray(W.sum(axis=1), dtype=np.float64)


def absolute_degrees(W: Matrix) -> Floats:
    """Sum the absolute weights of the edges of every vertex."""
    if isinstance(W, BlockMatrix):
        return W.row_values(absolute_row_sums)
    if issparse(W):
        W = csr_array((np.abs(W.data), W.indices, W.indptr), shape=W.shape)
        return degrees(W)
    return degrees(np.abs(W))


def inverse_sqrt(d: Floats) -> Floats:
    """Return ``d ** -0.5``, with zero for isolated vertices, whose degree is zero."""
    return np.divide(1.0, np.sqrt(d), out=np.zeros_like(d), where=d > 0)


def normalized_adjacency(W: Matrix, d: Floats | None = None) -> Matrix:
    """Return ``D^-1/2 W D^-1/2``, whose eigenvalues lie in [-1, 1].

    The eigenvalue 1 has the multiplicity of the number of components that have an edge. The degrees
    `d` are summed up unless given.

    Examples
    --------
    >>> normalized_adjacency(np.array([[0.0, 4.0], [4.0, 0.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    s = inverse_sqrt(degrees(W) if d is None else d)
    return scaled(W, s)


def combinatorial(W: Matrix) -> Matrix:
    """Return the Laplacian ``D - W``.

    Examples
    --------
    >>> combinatorial(np.array([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """
    return diagonal_minus(degrees(W), W)


def symmetric(W: Matrix) -> Matrix:
    """Return the symmetric normalised Laplacian ``I - D^-1/2 W D^-1/2``."""
    d = degrees(W)
    return diagonal_minus((d > 0).astype(np.float64), normalized_adjacency(W, d))


def signed(W: Matrix) -> Matrix:
    """Return the signed Laplacian, ``W`` subtracted from its absolute degrees.

    Positive semidefinite for any signs (Kunegis et al. 2010): its quadratic form is the sum
    of ``|w_ij| (x_i - sign(w_ij) x_j)^2`` over the edges.
    """
    return diagonal_minus(absolute_degrees(W), W)


def additive_normalization(W: Matrix) -> Matrix:
    """Return ``(W + d_max I - D) / d_max``: every row sums to one, symmetry is kept.

    The normalisation of Kamvar, Klein and Manning (2003), *Spectral learning*. A graph
    without edges gives the identity.
    """
    d = degrees(W)
    d_max = d.max(initial=0.0)
    if d_max == 0:
        return diagonal_minus(np.ones_like(d), W)
    normalized = diagonal_minus(d - d_max, W)
    normalized *= -1 / d_max
    return normalized


def scaled(W: Matrix, s: Floats) -> Matrix:
    """Return ``diag(s) W diag(s)`` at the memory of one copy of `W`.

    The two factors are multiplied first, which leaves `W` exactly symmetric.
    """
    if isinstance(W, BlockMatrix):
        return W.scaled(s)
    if not issparse(W):
        product = np.outer(s, s)
        product *= W
        return product
    n = W.shape[0]
    data = np.empty(W.data.size)
    for first in range(0, n, ROWS_PER_BLOCK):
        last = min(first + ROWS_PER_BLOCK, n)
        block = slice(W.indptr[first], W.indptr[last])
        of_row = np.repeat(s[first:last], np.diff(W.indptr[first : last + 1]))
        data[block] = W.data[block] * (of_row * s[W.indices[block]])
    # The index arrays are copied: an in-place operation on one matrix must not reach the other.
    return csr_array((data, W.indices.copy(), W.indptr.copy()), shape=W.shape)


def diagonal_minus(diagonal: Floats, W: Matrix) -> Matrix:
    """Return ``diag(diagonal) - W``."""
    if isinstance(W, BlockMatrix):
        return (W * -1.0).plus_diagonal(diagonal)
    if issparse(W):
        return csr_array(diags_array(diagonal, format="csr") - W)
    difference = np.negative(W, dtype=np.float64)
    difference[np.diag_indices_from(difference)] += diagonal
    return difference


def symmetric_components(W: Graph) -> tuple[int, Ints]:
    """Return the number of components and the component of each vertex, by the nonzero weights.

    (scipy's search takes stored zeros for links.)

    Examples
    --------
    >>> symmetric_components(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    (2, array([0, 0, 1]))
    """
    if isinstance(W, BlockMatrix):
        return W.components()
    n = W.shape[0]
    if not issparse(W):
        linked = W != 0
        np.fill_diagonal(linked, val=False)
        # One vertex linked with all others settles the usual case without a copy of the graph.
        if linked.sum(axis=1).max(initial=0) >= n - 1:
            return 1, np.zeros(n, dtype=np.intp)
        W = linked
    graph = csr_array(W)
    if graph.nnz <= SMALL_GRAPH:
        graph = csr_array((graph.data != 0, graph.indices, graph.indptr), shape=graph.shape)
        graph.eliminate_zeros()
        n_components, component = connected_components(graph, directed=False)
        return int(n_components), component.astype(np.intp)
    # One type each: the kernel is compiled once.
    component, n_components = _joined(
        graph.indptr.astype(np.int64, copy=False),
        graph.indices.astype(np.int32, copy=False),
        graph.data.astype(np.float64, copy=False),
    )
    return int(n_components), component


@njit(cache=True, nogil=True)
def _joined(indptr, indices, data):  # type: ignore[no-untyped-def]
    """Return the component of each vertex, by first appearance, and how many there are.

    Trees of vertices are joined along edges. Two edges a vertex mostly make one large tree of
    nearly all; the other edges are then read from the few vertices outside of it only (Sutton,
    Ben-Nun & Barak 2018, *Optimizing parallel graph connectivity computation via subgraph
    sampling*). Every edge is stored at both its ends.
    """
    n = indptr.size - 1
    parent = np.arange(n).astype(np.int32)
    for i in range(n):
        n_read = 0
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] != 0 and indices[e] != i:
                a, b = _root(parent, i), _root(parent, indices[e])
                parent[max(a, b)] = min(a, b)  # so a root is the first vertex of its tree
                n_read += 1
                if n_read == 2:
                    break
    size = np.zeros(n, np.int32)
    for i in range(n):
        size[_root(parent, i)] += 1
    largest = np.argmax(size) if n else 0
    for i in range(n):
        if _root(parent, i) != _root(parent, largest):
            for e in range(indptr[i], indptr[i + 1]):
                if data[e] != 0:
                    a, b = _root(parent, i), _root(parent, indices[e])
                    parent[max(a, b)] = min(a, b)
    component, number = np.empty(n, np.intp), np.full(n, -1, np.int32)
    n_components = 0
    for i in range(n):
        root = _root(parent, i)
        if number[root] < 0:
            number[root] = n_components
            n_components += 1
        component[i] = number[root]
    return component, n_components


@njit(cache=True, nogil=True)
def _root(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
