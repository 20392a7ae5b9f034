"""Connected components of a symmetric graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from scipy.sparse import csr_array, issparse

if TYPE_CHECKING:
    from linkwise._types import Graph, Ints


def symmetric_components(W: Graph) -> tuple[int, Ints]:
    """Return the number of components and the component of each vertex, by the nonzero weights.

    (scipy's search takes stored zeros for links.)

    Examples
    --------
    >>> symmetric_components(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    (2, array([0, 0, 1]))
    """
    n = W.shape[0]
    if not issparse(W):
        linked = W != 0
        np.fill_diagonal(linked, val=False)
        # One vertex linked with all others settles the usual case without a copy of the graph.
        if linked.sum(axis=1).max(initial=0) >= n - 1:
            return 1, np.zeros(n, dtype=np.intp)
        W = linked
    graph = csr_array(W)
    component, n_components = _joined(graph.indptr, graph.indices, graph.data)
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
                _join(parent, _root(parent, i), _root(parent, indices[e]))
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
                    _join(parent, _root(parent, i), _root(parent, indices[e]))
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


@njit(cache=True, nogil=True)
def _join(parent, i, j):  # type: ignore[no-untyped-def]
    # Both are roots. Roots are the first vertices of their trees, whatever the order of the edges.
    if i < j:
        parent[j] = i
    elif j < i:
        parent[i] = j
