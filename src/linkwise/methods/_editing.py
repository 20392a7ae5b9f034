"""Affinity editing: must-links and cannot-links written into the graph itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from scipy.sparse import coo_array, csr_array, issparse

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph
    from linkwise.constraints import Constraints

__all__ = ["canonical_format", "constraint_graph", "edit", "link_strength"]


def constraint_graph(constraints: Constraints) -> csr_array:
    """Return `Q`, the signed graph of the constraints: ``+belief`` must, ``-belief`` cannot.

    Partial labels stand for all pairs that they imply. When these are too many to list, a sparse
    set of pairs with the same closure takes their place (see ``Constraints.signed_pairs``).
    """
    pairs, weights = constraints.signed_pairs()
    i, j = pairs.T
    ends = (np.concatenate([i, j]), np.concatenate([j, i]))
    shape = (constraints.n_samples, constraints.n_samples)
    # Evidence both for and against a pair adds up to its balance.
    return csr_array(coo_array((np.tile(weights, 2), ends), shape=shape))


def link_strength(W: Graph, link_weight: float | str) -> float:
    """Return the affinity that a certain must-link stands for.

    The papers write 1, for affinities in [0, 1]. The largest affinity of the graph says the same
    and does not change its meaning when the graph is measured in other units.
    """
    if link_weight == "degree":
        return float(W.sum()) / W.shape[0]
    if link_weight == "max":
        largest = float(W.max())
        return largest if largest > 0 else 1.0
    return float(link_weight)


def edit(W: Graph, constraints: Constraints, link_weight: float | str = "max") -> Graph:
    """Move the affinity of every must-link to full strength, of every cannot-link to zero.

    A pair of belief `b` moves by the share `b` of the way: ``(1 - b) w + b target``. Sparse graphs
    stay sparse: only the constrained pairs are added.
    """
    if constraints.is_empty:
        return W
    Q = constraint_graph(constraints)
    if not issparse(W):
        return _edit_dense(W, Q.tocoo(), link_strength(W, link_weight))
    W = canonical_format(csr_array(W))  # first: the largest entry is of a whole, not of its halves
    strength = link_strength(W, link_weight)
    graph, links = (W.indptr, W.indices, W.data), (Q.indptr, Q.indices, Q.data)
    data, indices, indptr = _edit_sparse(graph, links, strength)
    return csr_array((data, indices, indptr), shape=W.shape)


def canonical_format(W: csr_array) -> csr_array:
    """Return the graph with sorted rows and no entry stored twice, itself if it is so."""
    if not W.has_canonical_format:
        W = W.copy()
        W.sum_duplicates()
    return W


@njit(cache=True, nogil=True)
def _edit_sparse(graph, links, strength):  # type: ignore[no-untyped-def]
    """Return the edited graph, without zeros; the rows of both matrices are sorted."""
    ptr, index, value = graph
    q_ptr, q_index, q_value = links
    n = ptr.size - 1
    size = index.size + q_index.size
    out_value, out_index, out_ptr = np.empty(size), np.empty(size, index.dtype), np.zeros_like(ptr)
    at = 0
    for i in range(n):
        e, q = ptr[i], q_ptr[i]
        if q == q_ptr[i + 1]:
            for e in range(ptr[i], ptr[i + 1]):
                if value[e] != 0:
                    out_value[at], out_index[at] = value[e], index[e]
                    at += 1
            out_ptr[i + 1] = at
            continue
        while e < ptr[i + 1] or q < q_ptr[i + 1]:
            j = index[e] if e < ptr[i + 1] else n
            other = q_index[q] if q < q_ptr[i + 1] else n
            w = value[e] if j <= other else 0.0
            if other <= j:
                w = w - abs(q_value[q]) * w + strength * max(q_value[q], 0.0)
            if w != 0:
                out_value[at], out_index[at] = w, min(j, other)
                at += 1
            e, q = e + (j <= other), q + (other <= j)
        out_ptr[i + 1] = at
    return out_value[:at], out_index[:at], out_ptr


def _edit_dense(W: Floats, Q: coo_array, strength: float) -> Floats:
    edited = W.copy()
    edited[Q.row, Q.col] *= 1 - abs(Q.data)
    edited[Q.row, Q.col] += strength * np.maximum(Q.data, 0)
    return edited
