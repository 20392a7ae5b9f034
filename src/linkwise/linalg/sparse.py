"""Sparse matrices as patterns: entries that are moved, united, looked up or chosen.

Rows are sorted and hold no column twice (`canonical_format`); every function is one or two passes
over the stored entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, issparse

from linkwise._jit import njit
from linkwise.linalg.blocks import BlockMatrix

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Int32s, Ints

# Words of 64 bits in which the columns of a row are noted: one line of the cache.
N_WORDS = 8


def canonical_format(A: csr_array) -> csr_array:
    """Return the matrix with sorted rows and no entry stored twice, itself if it is so."""
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A


def largest_entry(A: Graph) -> float:
    """Return the largest entry, or 1 for a matrix without positive ones."""
    largest = float(A.max())
    return largest if largest > 0 else 1.0


# Entries that are moved ---------------------------------------------------------------------------


def moved_entries(A: Graph, F: csr_array, target: float) -> Graph:
    """Move each entry by the share `f` of the way to `target`, or to zero where `f` is negative.

    ``(1 - |f|) a + target max(f, 0)``, with `f` the entries of `F`, within [-1, 1]. A sparse `A`
    stays sparse: the pattern of `F` is added, zeros are left out.
    """
    if isinstance(A, BlockMatrix):
        return A.merged(moved_entries, F, target)
    if not issparse(A):
        return _moved_dense(A, F.tocoo(), target)
    A = canonical_format(csr_array(A))
    entries = (A.indptr, A.indices, A.data)
    shares = (F.indptr.astype(A.indptr.dtype), F.indices.astype(A.indices.dtype), F.data)
    data, indices, indptr = _moved_sparse(entries, shares, target, A.shape[1])
    return csr_array((data, indices, indptr), shape=A.shape)


@njit(cache=True, nogil=True)
def _moved_sparse(entries, shares, target, width):  # type: ignore[no-untyped-def]
    """Return `moved_entries` of two matrices with sorted rows."""
    ptr, index, value = entries
    f_ptr, f_index, f_value = shares
    n = ptr.size - 1
    size = index.size + f_index.size
    out_value, out_index, out_ptr = np.empty(size), np.empty(size, index.dtype), np.zeros_like(ptr)
    at = 0
    for i in range(n):
        e, f = ptr[i], f_ptr[i]
        if f == f_ptr[i + 1]:
            for e in range(ptr[i], ptr[i + 1]):
                if value[e] != 0:
                    out_value[at], out_index[at] = value[e], index[e]
                    at += 1
            out_ptr[i + 1] = at
            continue
        while e < ptr[i + 1] or f < f_ptr[i + 1]:
            j = index[e] if e < ptr[i + 1] else width
            other = f_index[f] if f < f_ptr[i + 1] else width
            w = value[e] if j <= other else 0.0
            if other <= j:
                w = w - abs(f_value[f]) * w + target * max(f_value[f], 0.0)
            if w != 0:
                out_value[at], out_index[at] = w, min(j, other)
                at += 1
            e, f = e + (j <= other), f + (other <= j)
        out_ptr[i + 1] = at
    return out_value[:at], out_index[:at], out_ptr


def _moved_dense(A: Floats, F: coo_array, target: float) -> Floats:
    moved = A.copy()
    moved[F.row, F.col] *= 1 - abs(F.data)
    moved[F.row, F.col] += target * np.maximum(F.data, 0)
    return moved


# Patterns -----------------------------------------------------------------------------------------


def union_above(A: csr_array, *more: csr_array) -> csr_array:
    """Return `A` above the diagonal, with zeros stored where only another matrix has entries."""
    pattern = A
    for other in more or (csr_array(A.shape),):
        pattern.sort_indices()
        other.sort_indices()
        parts = (pattern.indptr, pattern.indices, pattern.data, other.indptr, other.indices)
        indptr, indices, data = _union_above(*parts)
        pattern = csr_array((data, indices, indptr), shape=A.shape)
    return pattern


@njit(cache=True)
def _union_above(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    ptr, index, value, more_ptr, more_index
):
    """Merge the sorted rows of two matrices above the diagonal, with the values of the first."""
    n = ptr.size - 1
    out_ptr = np.zeros(n + 1, np.int64)
    for filling in (False, True):
        size = out_ptr[n] if filling else 0
        out_index, out_value = np.empty(size, np.int32), np.zeros(size)
        at = 0
        for i in range(n):
            a, b = ptr[i], more_ptr[i]
            while a < ptr[i + 1] or b < more_ptr[i + 1]:
                j = index[a] if a < ptr[i + 1] else n
                other = more_index[b] if b < more_ptr[i + 1] else n
                if min(j, other) > i:
                    if filling:
                        out_index[at] = min(j, other)
                        if j <= other:
                            out_value[at] = value[a]
                    at += 1
                a, b = a + (j <= other), b + (other <= j)
            out_ptr[i + 1] = at
    return out_ptr, out_index, out_value


def positions(pattern: csr_array, part: csr_array) -> Ints:
    """Return where the entries of `part` are stored in `pattern`, which has them all."""
    pattern.sort_indices()
    part.sort_indices()
    return np.asarray(_positions(pattern.indptr, pattern.indices, part.indptr, part.indices))


@njit(cache=True)
def _positions(ptr, index, part_ptr, part_index):  # type: ignore[no-untyped-def]
    found = np.empty(part_index.size, np.intp)
    for i in range(part_ptr.size - 1):
        at = ptr[i]
        for e in range(part_ptr[i], part_ptr[i + 1]):
            while index[at] < part_index[e]:
                at += 1
            found[e] = at
    return found


def largest_rows(A: csr_array | csc_array, width: int, columns: Ints | None = None) -> Int32s:
    """Return the rows of the `width` largest entries of each column, -1 where there are less.

    Of all columns, unless some are given.
    """
    by_column = A.tocsc()
    wanted = np.arange(A.shape[1]) if columns is None else columns
    found = np.full((wanted.size, width), -1, dtype=np.int32)
    _fill_largest(by_column.indptr, by_column.indices, by_column.data, wanted, found)
    return found


@njit(cache=True)
def _fill_largest(ptr, index, value, columns, found):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Insert the entries of each column into a short list, the largest first."""
    width = found.shape[1]
    largest = np.empty(width)
    for at in range(columns.size):
        c, n_found = columns[at], 0
        for e in range(ptr[c], ptr[c + 1]):
            if n_found == width and value[e] <= largest[width - 1]:  # ties: the first row
                continue
            rank = min(n_found, width - 1)
            while rank > 0 and largest[rank - 1] < value[e]:
                largest[rank], found[at, rank] = largest[rank - 1], found[at, rank - 1]
                rank -= 1
            largest[rank], found[at, rank] = value[e], index[e]
            n_found = min(n_found + 1, width)


def pairs_between(groups: Int32s, a: Ints, b: Ints, *, n: int) -> csr_array:
    """Return the pattern, above the diagonal, of all pairs of a member of `a` and one of `b`.

    `a` and `b` are rows of `groups`, taken in parallel; members are below `n`, -1 is none.
    """
    smaller, larger = _between(groups, a, b)
    indptr, indices = _sorted_rows(smaller, larger, n)
    return csr_array((np.ones(indices.size, dtype=np.bool_), indices, indptr), shape=(n, n))


@njit(cache=True)
def _between(groups, a, b):  # type: ignore[no-untyped-def]
    """Return the pairs of the rows `a` and `b` of `groups`: smaller numbers, and larger ones."""
    width = groups.shape[1]
    small = np.empty(a.size * width * width, np.int32)
    large, n_found = np.empty_like(small), 0
    for link in range(a.size):
        for i in groups[a[link]]:
            for j in groups[b[link]]:
                if i >= 0 and j >= 0 and i != j:
                    small[n_found], large[n_found] = min(i, j), max(i, j)
                    n_found += 1
    return small[:n_found], large[:n_found]


@njit(cache=True)
def _sorted_rows(rows, columns, n):  # type: ignore[no-untyped-def]
    """Return the pattern with these entries, once each: pointers and sorted columns."""
    row_ptr, column_ptr = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for e in range(rows.size):
        row_ptr[rows[e] + 1] += 1
        column_ptr[columns[e] + 1] += 1
    for i in range(n):
        row_ptr[i + 1] += row_ptr[i]
        column_ptr[i + 1] += column_ptr[i]
    by_column = np.empty_like(rows)
    for e in range(rows.size):
        by_column[column_ptr[columns[e]]] = rows[e]
        column_ptr[columns[e]] += 1  # in the end where the column ends
    filled, sorted_columns = row_ptr.copy(), np.empty_like(columns)
    for column in range(n):
        for e in range(column_ptr[column - 1] if column else 0, column_ptr[column]):
            row = by_column[e]
            if filled[row] == row_ptr[row] or sorted_columns[filled[row] - 1] != column:
                sorted_columns[filled[row]] = column
                filled[row] += 1
    once_ptr, at = np.zeros(n + 1, np.int64), 0
    for row in range(n):
        for e in range(row_ptr[row], filled[row]):
            sorted_columns[at] = sorted_columns[e]
            at += 1
        once_ptr[row + 1] = at
    return once_ptr, sorted_columns[:at].copy()


def coupled_edges(A: csr_array, G: csr_array, T: csr_array) -> csr_array:
    """Return edges of `A`, above the diagonal: all where ``G T G'`` is not zero, and few others.

    `G` may be several blocks side by side, each with the columns of `T`. An entry is not zero where
    a column of one endpoint is linked by `T` with a column of the other. One bit of a word stands
    for several columns, so some edges are found for nothing.
    """
    graph, factor, links = ((M.indptr, M.indices) for M in (A, G, T))
    indices, indptr = _coupled_edges(graph, factor, links)
    return csr_array((np.ones(indices.size), indices, indptr), shape=A.shape)


@njit(cache=True)
def _coupled_edges(graph, factor, pairs):  # type: ignore[no-untyped-def]
    ptr, index = graph
    g_ptr, g_index = factor
    p_ptr, p_index = pairs
    n, width = ptr.size - 1, p_ptr.size - 1
    partners = np.zeros((width, N_WORDS), np.uint64)
    for c in range(width):
        for p in range(p_ptr[c], p_ptr[c + 1]):
            _note(partners, c, p_index[p])
    own, sought = np.zeros((n, N_WORDS), np.uint64), np.zeros((n, N_WORDS), np.uint64)
    for i in range(n):
        first = 0  # column of the block
        for a in range(g_ptr[i], g_ptr[i + 1]):
            while g_index[a] >= first + width:
                first += width
            c = g_index[a] - first
            _note(own, i, c)
            for word in range(N_WORDS):
                sought[i, word] |= partners[c, word]
    found, found_ptr, n_found = np.empty(index.size, np.int32), np.zeros(n + 1, np.int64), 0
    for i in range(n):
        s = sought[i]
        s0, s1, s2, s3, s4, s5, s6, s7 = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
        for e in range(ptr[i], ptr[i + 1]):
            j = index[e]
            if j > i:
                t = own[j]
                both = (s0 & t[0]) | (s1 & t[1]) | (s2 & t[2]) | (s3 & t[3])
                both |= (s4 & t[4]) | (s5 & t[5]) | (s6 & t[6]) | (s7 & t[7])
                found[n_found] = j
                n_found += both != 0
        found_ptr[i + 1] = n_found
    return found[:n_found].copy(), found_ptr


@njit(cache=True)
def _note(words, row, column):  # type: ignore[no-untyped-def]
    """Set the bit of a column in the words of a row."""
    bit = np.uint64(column) & np.uint64(64 * N_WORDS - 1)
    words[row, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
