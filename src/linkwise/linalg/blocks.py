"""Symmetric matrices whose rows are kept in blocks, possibly on other machines.

Solvers and methods are written once: where they do more with a graph than to multiply with it, they
ask for one of the few operations here. A graph on one machine is a ``csr_array``; the rows of a
:class:`BlockMatrix` are where its blocks are, and only what a block needs travels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, diags_array

from linkwise.linalg.operators import Sum, SymmetricOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import AnyArray, AnyInts, Floats, Ints


class BlockMatrix(SymmetricOperator):
    """A symmetric sparse matrix in blocks of rows.

    A block is a ``csr_array``. Its first columns are its own rows, in the same order; the others
    are the rows of other blocks that it has entries for. A function that is applied to the blocks
    gets one of them and, for every vector that is handed over, the entries at its columns. It
    changes neither.
    """

    def mapped(self, function: Callable[..., csr_array], *vectors: AnyArray) -> BlockMatrix:
        """Return the matrix of changed blocks, of the same columns."""
        raise NotImplementedError

    def collected(self, function: Callable[..., Any], *vectors: AnyArray) -> list[Any]:
        """Return what a function gives for each block."""
        raise NotImplementedError

    def row_values(self, function: Callable[..., AnyArray], *vectors: AnyArray) -> AnyArray:
        """Return one entry or row for each row of the matrix."""
        raise NotImplementedError

    def merged(self, function: Callable[..., csr_array], Q: csr_array, *args: Any) -> BlockMatrix:
        """Return the matrix of the blocks ``function(block, rows of Q, *args)``; `Q` is small."""
        raise NotImplementedError

    def rows(self, indices: AnyInts) -> csr_array:
        """Return a few rows."""
        raise NotImplementedError

    def only_rows(self, indices: AnyInts) -> csr_array:
        """Return the matrix with a few of its rows, and no entries in others."""
        rows = self.rows(indices).tocoo()
        entries = (rows.data, (indices[rows.row], rows.col))
        return csr_array(entries, shape=self.shape)

    def components(self) -> tuple[int, Ints]:
        """Return the number of connected components, and the component of each vertex."""
        raise NotImplementedError

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        raise NotImplementedError

    def ordered(self) -> tuple[BlockMatrix, Ints]:
        """Return the matrix with its rows in the order of its blocks, and the row at each place."""
        raise NotImplementedError

    def in_blocks(self, V: AnyArray) -> Any:
        """Return vectors in blocks of rows, to be multiplied with again and again."""
        raise NotImplementedError

    def recurrence(
        self,
        start: AnyArray | None,
        R: AnyArray,
        steps: Sequence[tuple[AnyArray, AnyArray, AnyArray]],
        *,
        center: float,
        scale: float,
    ) -> AnyArray:
        """Return the last of ``Y = alpha (scale A E - center E + gamma R) - beta Y``, E = Y.

        In single precision. `steps` are ``(alpha, beta, gamma)``, one number a column each. `E` is
        `start` at first, or zero; `Y` is zero.
        """
        raise NotImplementedError

    def as_sum(self) -> Sum:
        """Return the parts: the matrix alone."""
        return Sum(self)

    # --- as a csr_array has them

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum of all entries, or of each row."""
        sums = self.row_values(row_sums)
        return float(sums.sum()) if axis is None else sums

    def max(self) -> float:
        """Return the largest entry; zeros count."""
        return float(max(self.collected(largest_of)))

    def min(self) -> float:
        """Return the smallest entry; zeros count."""
        return float(min(self.collected(smallest_of)))

    def diagonal(self) -> Floats:
        """Return the diagonal."""
        return self.row_values(diagonal_of)

    def __abs__(self) -> BlockMatrix:
        return self.mapped(abs)

    def __mul__(self, factor: Any) -> Any:
        return self.mapped(Times(float(factor)))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        return self.mapped(Times(1 / float(divisor)))

    def __add__(self, Q: Any) -> Any:
        return self.merged(added, csr_array(Q))

    def scaled(self, s: Floats) -> BlockMatrix:
        """Return ``diag(s) A diag(s)``."""
        return self.mapped(scaled_block, s)

    def plus_diagonal(self, diagonal: Floats) -> BlockMatrix:
        """Return ``A + diag(diagonal)``."""
        return self.mapped(with_diagonal, diagonal)


class Vectors:
    """Some vectors side by side on one machine: what a linear solver does with a block.

    The vectors in blocks of a :class:`BlockMatrix` have the same methods.
    """

    def __init__(self, values: Floats) -> None:
        self.values = values

    def times(self, A: Any) -> Vectors:
        """Return the product of a matrix with them."""
        return Vectors(A @ self.values)

    def dots(self, other: Vectors) -> Floats:
        """Return the inner product of each column with that of another block."""
        products: Floats = np.einsum("ij,ij->j", self.values, other.values)
        return products

    def columns(self, chosen: AnyArray) -> Vectors:
        """Return some of the columns."""
        return Vectors(np.ascontiguousarray(self.values[:, chosen]))

    def plus(self, factor: AnyArray, other: Vectors) -> Vectors:
        """Return the sum with another block, whose columns are multiplied with numbers."""
        total = factor * other.values
        total += self.values
        return Vectors(total)

    def gathered(self) -> Floats:
        """Return them as an array."""
        return self.values


def in_blocks(A: Any, V: Floats) -> Any:
    """Return vectors as a solver for a matrix takes them: in blocks, if its rows are."""
    return A.in_blocks(V) if isinstance(A, BlockMatrix) else Vectors(V)


class Times:
    """Multiplication with a number, which can be sent to where a block is."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, block: csr_array) -> csr_array:
        """Return the block, multiplied."""
        return block * self.factor


def row_sums(block: csr_array) -> Floats:
    """Sum the entries of each row."""
    return np.asarray(block.sum(axis=1), dtype=np.float64)


def absolute_row_sums(block: csr_array) -> Floats:
    """Sum the magnitudes of the entries of each row."""
    return row_sums(csr_array((np.abs(block.data), block.indices, block.indptr), block.shape))


def diagonal_of(block: csr_array) -> Floats:
    """Return the diagonal: a block's first columns are its own rows."""
    return np.asarray(block.diagonal())


def largest_of(block: csr_array) -> float:
    """Return the largest entry, at least 0."""
    return float(block.data.max(initial=0.0))


def smallest_of(block: csr_array) -> float:
    """Return the smallest entry, at most 0."""
    return float(block.data.min(initial=0.0))


def smallest_positive_of(block: csr_array) -> float:
    """Return the smallest positive entry, or infinity."""
    return float(np.min(block.data, where=block.data > 0, initial=np.inf))


def added(block: csr_array, Q: csr_array) -> csr_array:
    """Return the sum of two blocks."""
    return csr_array(block + Q)


def scaled_block(block: csr_array, s: Floats) -> csr_array:
    """Multiply each entry with the factors of its row and its column."""
    of_row = np.repeat(s[: block.shape[0]], np.diff(block.indptr))
    data = block.data * (of_row * s[block.indices])
    return csr_array((data, block.indices, block.indptr), shape=block.shape)


def with_diagonal(block: csr_array, diagonal: Floats) -> csr_array:
    """Add to the diagonal, which is where the columns are the own rows."""
    n = block.shape[0]
    return csr_array(block + csr_array(diags_array(diagonal[:n], shape=block.shape)))


def edges_between(block: csr_array, group: Ints, outside: AnyArray, vertex: Ints) -> AnyArray:
    """Return the edges from vertices that are `outside` to other groups: ends and weights."""
    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    kept = outside[rows] & (group[rows] != group[block.indices]) & (block.data != 0)
    ends = (vertex[rows[kept]], vertex[block.indices[kept]])
    return np.column_stack([*ends, block.data[kept]])


def kept_where(block: csr_array, mask: AnyArray) -> csr_array:
    """Drop the entries with a row or a column outside of the mask."""
    of_row = np.repeat(mask[: block.shape[0]], np.diff(block.indptr))
    data = block.data * (of_row & mask[block.indices])
    # Copies: zeros are eliminated in place, and the block is part of a graph that others use.
    kept = csr_array((data, block.indices.copy(), block.indptr.copy()), shape=block.shape)
    kept.eliminate_zeros()
    return kept
