"""Connected components of a symmetric graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numba import njit
from scipy.sparse import csr_array, issparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Graph: TypeAlias = csr_array | NDArray[np.float64]

__all__ = ["symmetric_components"]


def symmetric_components(W: Graph) -> tuple[int, NDArray[np.intp]]:
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
    component, n_components = _visited(graph.indptr, graph.indices, graph.data)
    return int(n_components), component


@njit(cache=True, nogil=True)
def _visited(indptr, indices, data):  # type: ignore[no-untyped-def]
    """Return the component of each vertex, by first appearance, and how many there are."""
    n = indptr.size - 1
    component = np.full(n, -1, np.intp)
    waiting = np.empty(n, np.int64)
    n_components = 0
    for start in range(n):
        if component[start] >= 0:
            continue
        component[start] = n_components
        waiting[0], head, tail = start, 0, 1
        while head < tail:
            i = waiting[head]
            head += 1
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if component[j] < 0 and data[e] != 0:
                    component[j] = n_components
                    waiting[tail] = j
                    tail += 1
        n_components += 1
    return component, n_components
