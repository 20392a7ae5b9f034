"""The constraints as a signed matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csr_array

if TYPE_CHECKING:
    from linkwise.constraints.value import Constraints

__all__ = ["constraint_matrix"]


def constraint_matrix(constraints: Constraints) -> csr_array:
    """Return the symmetric `Q`: ``+belief`` for must-links, ``-belief`` for cannot-links, else 0.

    Partial labels stand for all pairs that they imply. When these are too many to list, a sparse
    set of pairs with the same closure takes their place (see ``Constraints.signed_pairs``).
    """
    pairs, weights = constraints.signed_pairs()
    i, j = pairs.T
    ends = (np.concatenate([i, j]), np.concatenate([j, i]))
    shape = (constraints.n_samples, constraints.n_samples)
    # Evidence both for and against a pair adds up to its balance.
    Q = csr_array(coo_array((np.tile(weights, 2), ends), shape=shape))
    Q.eliminate_zeros()
    return Q
