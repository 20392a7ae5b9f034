"""Affinity editing: must-links and cannot-links written into the graph itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linkwise.constraints import Constraints

__all__ = ["constraint_graph", "edit", "link_strength"]


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


def link_strength(W: csr_array | NDArray[np.float64], link_weight: float | str) -> float:
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


def edit(
    W: csr_array | NDArray[np.float64], constraints: Constraints, link_weight: float | str = "max"
) -> csr_array | NDArray[np.float64]:
    """Move the affinity of every must-link to full strength, of every cannot-link to zero.

    A pair of belief `b` moves by the share `b` of the way: ``(1 - b) w + b target``. Sparse graphs
    stay sparse: only the constrained pairs are added.
    """
    if constraints.is_empty:
        return W
    Q = constraint_graph(constraints)
    strength = link_strength(W, link_weight)
    if not issparse(W):
        return _edit_dense(W, Q.tocoo(), strength)
    edited = csr_array(W - abs(Q).multiply(W) + strength * Q.maximum(0))
    edited.eliminate_zeros()
    return edited


def _edit_dense(W: NDArray[np.float64], Q: coo_array, strength: float) -> NDArray[np.float64]:
    edited = W.copy()
    edited[Q.row, Q.col] *= 1 - abs(Q.data)
    edited[Q.row, Q.col] += strength * np.maximum(Q.data, 0)
    return edited
