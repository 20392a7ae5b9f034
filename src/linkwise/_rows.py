"""Rows found by value: which sample of an array is a copy of a given one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Ints, UInt64s


BLOCK = 100_000


@dataclass(eq=False)
class RowIndex:
    """The rows of an array, sorted by a key when one is first looked for, to find equal ones.

    Examples
    --------
    >>> index = RowIndex(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> index.find(np.array([[3.0, 4.0], [4.0, 3.0], [1.0, 2.0]])).tolist()
    [1, -1, 0]
    """

    rows: Any

    @cached_property
    def _sorted(self) -> tuple[Ints, UInt64s]:
        """The order of the rows by their keys, and the keys in that order."""
        keys = _keys(self.rows)
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def in_form(self, X: Any) -> Any:
        """Return rows in the form of the index: sparse, or not."""
        if issparse(X) == issparse(self.rows):
            return X
        return csr_array(X) if issparse(self.rows) else X.toarray()

    def is_all(self, X: Any) -> bool:
        """Whether `X` has all rows of the index, in their order."""
        if X.shape != self.rows.shape:
            return False
        n = X.shape[0]
        return bool(_equal((self.rows, np.arange(n)), (X, np.arange(n))).all())

    def find(self, X: Any) -> Ints:
        """Return for each row of `X` the first equal row of the index, or -1.

        Both are arrays, or both are in the CSR format.
        """
        keys, (order, known) = _keys(X), self._sorted
        found = np.full(keys.size, -1, np.intp)
        at = np.searchsorted(known, keys)
        open_rows = np.arange(keys.size)
        while True:  # more than once only if different rows have one key
            open_rows = open_rows[at[open_rows] < known.size]
            open_rows = open_rows[known[at[open_rows]] == keys[open_rows]]
            if not open_rows.size:
                return found
            candidates = order[at[open_rows]]
            equal = _equal((self.rows, candidates), (X, open_rows))
            found[open_rows[equal]] = candidates[equal]
            open_rows = open_rows[~equal]
            at[open_rows] += 1


def _equal(first: tuple[Any, Ints], second: tuple[Any, Ints]) -> Bools:
    """Return which chosen rows of one array equal the chosen rows of another."""
    (A, at), (B, to) = first, second
    equal = np.empty(at.size, dtype=bool)
    for start in range(0, at.size, BLOCK):
        block = slice(start, start + BLOCK)
        left, right = A[at[block]], B[to[block]]
        if issparse(left):
            differs = left != right
            equal[block] = np.diff(differs.indptr) == 0
        else:
            equal[block] = (left == right).all(axis=1)
    return equal


def _keys(rows: Any) -> UInt64s:
    """Return a number for each row, the same for equal rows."""
    factors = np.random.RandomState(0).randint(2**63, size=rows.shape[1], dtype=np.uint64)
    factors = factors * np.uint64(2) + np.uint64(1)
    keys = np.empty(rows.shape[0], np.uint64)
    for start in range(0, keys.size, BLOCK):
        block = slice(start, start + BLOCK)
        part = rows[block]
        if issparse(part):  # zeros add nothing, stored or not
            sums = np.append(np.uint64(0), np.cumsum(_bits(part.data) * factors[part.indices]))
            keys[block] = sums[part.indptr[1:]] - sums[part.indptr[:-1]]
        else:
            keys[block] = (_bits(part) * factors).sum(axis=1, dtype=np.uint64)
    return keys


def _bits(values: Floats) -> UInt64s:
    """Return numbers that are 0 for 0 and differ for different values."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # + 0.0: no -0.0
    bits ^= bits >> np.uint64(32)  # small whole numbers have their digits at the upper end
    return bits
