"""Explicit and label-implied pairs in one list, or an error where they are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.constraints import implied
from linkwise.constraints.table import PairTable, symmetric_matrix
from linkwise.exceptions import TooLargeError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from linkwise.constraints.value import Constraints

MAX_LISTED = 1_000_000  # label-implied pairs that are turned into explicit ones without asking


def all_pairs(constraints: Constraints, purpose: str) -> PairTable:
    """Return explicit and label-implied pairs, each once; TooLargeError above a million."""
    n_implied = sum(implied.count_implied(constraints.labels))
    if n_implied > MAX_LISTED:
        message = (
            f"{purpose}, but these labels imply {n_implied} pairs; the limit is {MAX_LISTED}. "
            "Keep the labels themselves, or choose pairs with signed_pairs()."
        )
        raise TooLargeError(message)
    return some_pairs(constraints, n_implied)


def some_pairs(constraints: Constraints, limit: int) -> PairTable:
    """Return explicit and label-implied pairs, each once.

    Above `limit` label-implied pairs, a few of them with the same closure.
    """
    labels = constraints.labels
    if labels is None or sum(implied.count_implied(labels)) <= limit:
        pairs = implied.all_pairs(labels)
    else:
        pairs = implied.sparse_pairs(labels, max(0, limit - constraints.n_pairs))
    return constraints.table.joined(PairTable.of(*pairs)).unique(constraints.n_samples)


def to_matrix(constraints: Constraints) -> csr_array:
    """Return all pairs as a symmetric matrix of signed beliefs."""
    n_pairs = constraints.n_pairs + sum(implied.count_implied(constraints.labels))
    if n_pairs > implied.MAX_PAIRS:
        message = (
            f"The matrix would hold {n_pairs} pairs, most of them implied by labels; at most "
            f"{implied.MAX_PAIRS} are listed. Use signed_pairs(), a sparse stand-in with the "
            "same closure."
        )
        raise TooLargeError(message)
    return constraint_matrix(constraints, implied.MAX_PAIRS)


def constraint_matrix(constraints: Constraints, limit: int = MAX_LISTED) -> csr_array:
    """Return the symmetric matrix of signed beliefs, of `some_pairs`: `Y` or `Q` in the papers."""
    listed = some_pairs(constraints, limit)
    matrix = symmetric_matrix(listed.pairs, listed.weight, constraints.n_samples)
    matrix.eliminate_zeros()  # evidence that cancels out says nothing
    return matrix
