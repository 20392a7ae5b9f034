"""Steps shared by the methods that propagate pairs: how F is reached, and what it does to W."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import csc_array, csr_array, issparse, kron, triu

from linkwise.exceptions import TooLargeError
from linkwise.linalg.embedding import looped_adjacency
from linkwise.linalg.laplacian import degrees
from linkwise.linalg.lowrank import resolvent_columns, values_on
from linkwise.linalg.warm import WarmStarts
from linkwise.methods._editing import canonical_format, constraint_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats, Graph, Int32s, Ints
    from linkwise.constraints import Constraints


__all__ = [
    "Factors",
    "Walk",
    "changed_pattern",
    "constrained",
    "dense",
    "edges_between",
    "is_exact",
    "largest_affinity",
    "pair_matrix",
    "pairs_of",
    "reach",
    "refine",
    "refine_entries",
    "refine_sparse",
    "refined_pattern",
    "resolvents",
    "strength",
    "surroundings",
    "symmetric",
    "upper_pattern",
    "walk",
]

# SRCP of a sparse graph at 3,000 vertices: 9 s and 0.5 GB exactly, 0.1 s by sparse factors.
AUTO_EXACT = 3_000
# One eigendecomposition of this size takes 5 minutes and 4 GB.
MAX_EXACT = 10_000
# New edges between the surroundings of must-linked pairs: at most this many for each edge of the
# graph, or this many in all if that is more, and never above the last number, which is 200 MB of a
# graph; and from each end to at most this many vertices.
FILL_SHARE, FILL_LEAST, FILL_MOST, MAX_REACH = 4.0, 2_000_000, 16_000_000, 64
# Words of 64 bits in which the columns of a row are noted: one line of the cache.
N_WORDS = 8


def is_exact(W: Graph, solver: str) -> bool:
    """Say whether the n x n matrix of propagated pairs is to be formed."""
    n = W.shape[0]
    if solver == "lowrank" or (solver == "auto" and issparse(W) and n > AUTO_EXACT):
        return False
    if n > MAX_EXACT:
        message = (
            f"The exact propagation forms dense matrices over {n} x {n} pairs of samples; the "
            f"limit is {MAX_EXACT} samples. Take solver='lowrank' on a sparse neighbour graph, "
            "for example affinity=Affinity(10)."
        )
        raise TooLargeError(message)
    return True


def pair_matrix(constraints: Constraints) -> csr_array:
    """Return `Y` of Fu et al. (2): ``+belief`` must-link, ``-belief`` cannot-link, else 0."""
    Y = constraint_graph(constraints)
    Y.eliminate_zeros()
    return Y


class Walk(NamedTuple):
    """The normalised adjacency `S`, and a positive vector that it keeps: ``S v = v``."""

    S: Graph
    profile: Floats


def walk(W: Graph) -> Walk:
    """Return the walk that propagates; it stays at isolated vertices.

    The profile are the square roots of the degrees, in units of the mean degree.
    """
    d = degrees(W)
    mean = d.mean() if d.any() else 1.0
    profile = np.sqrt(np.where(d > 0, d / mean, 1.0))
    return Walk(looped_adjacency(W, d), profile)


def resolvents(
    W: csr_array,
    columns: Ints,
    alphas: list[float],
    *,
    tol: float,
    warm: WarmStarts | None = None,
) -> list[csc_array]:
    """Return columns of ``(I - alpha S)^-1``, one matrix for each alpha.

    Those of an earlier fit are not computed again. Warm starts belong to one graph, so `S` is the
    same as long as they are; it is not even formed if nothing is missing.
    """
    given: list[Walk] = []

    def columns_for(alpha: float) -> Callable[[Ints], csc_array]:
        def compute(missing: Ints) -> csc_array:
            if not given:
                given.append(walk(W))
            S, profile = given[0]
            return csc_array(resolvent_columns(S, profile, missing, alpha=alpha, tol=tol))

        return compute

    warm = WarmStarts() if warm is None else warm
    return [warm.columns((alpha, tol), columns, columns_for(alpha)) for alpha in alphas]


class Factors(NamedTuple):
    """``F = sum_kl weights_kl G_k Y_CC G_l'``, over blocks of columns, one a constrained sample."""

    G: csr_array  # the blocks side by side
    weights: Floats
    near: csc_array  # how near each sample is to each constrained one


def pairs_of(factors: Factors, Y: csr_array) -> csr_array:
    """Return ``T`` of ``F = G T G'``: the pairs among the constrained samples, for all blocks."""
    C = constrained(Y)
    return csr_array(kron(factors.weights, Y[C][:, C]))


def dense(A: Graph) -> Floats:
    """Return a dense copy."""
    return np.array(A.toarray() if issparse(A) else A, dtype=np.float64)  # type: ignore[union-attr]


def refine(W: Graph, F: Floats, Y: csr_array, scale: str) -> Floats:
    """Return `W*` of Fu et al. (9) for every pair of samples; its diagonal is zero.

    `W` counts in units of its largest affinity and `F` is held within [-1, 1], so that `W*` stays
    within [0, 1].
    """
    pairs = Y.tocoo()
    factor = strength(F[pairs.row, pairs.col], pairs.data, scale)
    adjusted = refine_entries(dense(W) / largest_affinity(W), factor * F)
    np.fill_diagonal(adjusted, 0.0)
    return adjusted


def strength(f: Floats, y: Floats, scale: str) -> float:
    """Return the factor of `F`, from its values at the given pairs.

    Propagation dilutes: at its own place a certain pair keeps 0.05 (E2CP) or 0.15 (SRCP) on
    neighbour graphs. With `scale` ``"max"`` the tenth of the pairs that keeps most has its full
    belief again. (Not the one pair that keeps most: two samples with no other neighbour keep all.)
    """
    kept = np.abs(f) > 0
    if scale == "paper" or not kept.any():
        return 1.0
    # This kind of quantile is the same whether pairs are listed once or in both directions.
    ratios = np.abs(y[kept]) / np.abs(f[kept])
    return float(np.quantile(ratios, 0.1, method="inverted_cdf"))


def refine_entries(w: Floats, f: Floats) -> Floats:
    """Return ``1 - (1 - f)(1 - w)`` for ``f >= 0`` and ``(1 + f) w`` else, entry by entry."""
    # Both are w + |f| (target - w), with target 1 or 0.
    f = np.clip(f, -1.0, 1.0)
    change = np.abs(f)
    change *= (f > 0) - w
    change += w
    return change


def largest_affinity(W: Graph) -> float:
    """Return the largest affinity, or 1 for a graph without edges."""
    largest = float(W.max())
    return largest if largest > 0 else 1.0


def refine_sparse(W: csr_array, factors: Factors, Y: csr_array, scale: str) -> csr_array:
    """Return `W*` on the edges, the constrained pairs and the surroundings of must-links.

    Elsewhere `F` is left out: negative values change nothing where there is no edge, and positive
    ones are far from every must-link.
    """
    W = canonical_format(csr_array(W))
    pattern = changed_pattern(W, Y, factors)
    f = values_on(factors.G, pairs_of(factors, Y), pattern)
    pairs = csr_array(triu(Y, k=1))
    factor = strength(f[places(pattern, pairs)], pairs.data, scale)
    pattern.data = np.clip(factor * f, -1.0, 1.0)
    below = csr_array(pattern.T)
    graph, lower, upper = ((A.indptr, A.indices, A.data) for A in (W, below, pattern))
    data, indices, indptr = _refined(graph, lower, upper, largest_affinity(W))
    return csr_array((data, indices, indptr), shape=W.shape)


@njit(cache=True)
def _refined(graph, below, above, unit):  # type: ignore[no-untyped-def]
    """Return `refine_entries` of a graph without its diagonal, zeros left out.

    `F` is given below and above the diagonal, and zero where it is not; all rows are sorted.
    """
    ptr, index, value = graph
    n, size = ptr.size - 1, index.size + below[1].size + above[1].size
    out_ptr = np.zeros(n + 1, np.int64)
    out_index, out_value = np.empty(size, np.int32), np.empty(size)
    at = 0
    for i in range(n):
        e, last = ptr[i], ptr[i + 1]
        if below[0][i] == below[0][i + 1] and above[0][i] == above[0][i + 1]:
            for e in range(ptr[i], last):
                if index[e] != i and value[e] != 0:
                    out_index[at], out_value[at] = index[e], value[e] / unit
                    at += 1
            out_ptr[i + 1] = at
            continue
        for upper in (False, True):
            f_ptr, f_index, f_value = above if upper else below
            a, b = f_ptr[i], f_ptr[i + 1]
            border = n if upper else i
            while True:
                j = index[e] if e < last and index[e] < border else border
                other = f_index[a] if a < b else border
                if j == border and other == border:
                    break
                w = value[e] / unit if j <= other else 0.0
                f = f_value[a] if other <= j else 0.0
                w += abs(f) * ((1.0 if f > 0 else 0.0) - w)
                if w != 0:
                    out_index[at], out_value[at] = min(j, other), w
                    at += 1
                e, a = e + (j <= other), a + (other <= j)
            if not upper and e < last and index[e] == i:
                e += 1
        out_ptr[i + 1] = at
    return out_value[:at], out_index[:at], out_ptr


def changed_pattern(W: csr_array, Y: csr_array, factors: Factors) -> csr_array:
    """Return the pattern, above the diagonal, of all pairs where `refine_sparse` may change `W`."""
    C = constrained(Y)
    pairs = csr_array(Y[C][:, C])
    edges = edges_between(W, factors.G, pairs)
    return upper_pattern(edges, Y, surroundings(W, pairs, factors.near))


def edges_between(W: csr_array, G: csr_array, pairs: csr_array) -> csr_array:
    """Return edges, above the diagonal: all where ``G T G'`` is not zero, and few others.

    It is not zero where a column of one end is the partner of a column of the other. That is so at
    few of the edges only, as pairs are spread no farther than the surroundings of their ends. One
    bit of a word stands for several columns, so some edges are found for nothing.
    """
    graph, factor, links = ((A.indptr, A.indices) for A in (W, G, pairs))
    indices, indptr = _edges_between(graph, factor, links)
    return csr_array((np.ones(indices.size), indices, indptr), shape=W.shape)


@njit(cache=True)
def _edges_between(graph, factor, pairs):  # type: ignore[no-untyped-def]
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


def refined_pattern(W: csr_array, Y: csr_array, near: csr_array | csc_array) -> csr_array:
    """Return `W` above the diagonal, with zeros stored where the pairs may bring new edges.

    `near` tells how near each sample is to each constrained one.
    """
    C = constrained(Y)
    return upper_pattern(W, Y, surroundings(W, csr_array(Y[C][:, C]), near))


def surroundings(W: csr_array, pairs: csr_array, near: csr_array | csc_array) -> csr_array:
    """Return `reach` of the must-links, as far as the size of the graph allows."""
    limit = min(max(FILL_SHARE * W.nnz, FILL_LEAST), FILL_MOST)
    return reach(near, csr_array(pairs.maximum(0)), limit)


def symmetric(upper: csr_array) -> csr_array:
    """Return the symmetric matrix with these entries above the diagonal, zeros left out."""
    upper.eliminate_zeros()
    return csr_array(upper + upper.T)


def constrained(Y: csr_array) -> Ints:
    """Return the samples that are in a pair."""
    return np.flatnonzero(np.diff(Y.indptr))


def upper_pattern(W: csr_array, *more: csr_array) -> csr_array:
    """Return `W` above the diagonal, with zeros stored where only another matrix has entries."""
    pattern = W
    for other in more or (csr_array(W.shape),):
        pattern.sort_indices()
        other.sort_indices()
        parts = (pattern.indptr, pattern.indices, pattern.data, other.indptr, other.indices)
        indptr, indices, data = _united_above(*parts)
        pattern = csr_array((data, indices, indptr), shape=W.shape)
    return pattern


@njit(cache=True)
def _united_above(  # type: ignore[no-untyped-def]  # noqa: PLR0917
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


def places(pattern: csr_array, part: csr_array) -> Ints:
    """Return where the entries of `part` are stored in `pattern`, which has them all."""
    pattern.sort_indices()
    part.sort_indices()
    return np.asarray(_places(pattern.indptr, pattern.indices, part.indptr, part.indices))


@njit(cache=True)
def _places(ptr, index, part_ptr, part_index):  # type: ignore[no-untyped-def]
    found = np.empty(part_index.size, np.intp)
    for i in range(part_ptr.size - 1):
        row = index[ptr[i] : ptr[i + 1]]
        for e in range(part_ptr[i], part_ptr[i + 1]):
            found[e] = ptr[i] + np.searchsorted(row, part_index[e])
    return found


def reach(near: csr_array | csc_array, links: csr_array, limit: float) -> csr_array:
    """Return the pairs between the surroundings of the two ends of each link, above the diagonal.

    Parameters
    ----------
    near : csr_array or csc_array of shape (n, c)
        How near each sample is to each constrained one, itself included.
    links : csr_array of shape (c, c)
        The must-links among the constrained samples.
    limit : float
        Number of pairs that are affordable: surroundings shrink to the nearest samples until
        they fit.
    """
    n, n_links = near.shape[0], max(links.nnz, 1)
    width = int(min(MAX_REACH, np.sqrt(limit / n_links)))
    if width < 1 or links.nnz == 0:
        return csr_array((n, n))
    a, b = triu(links, k=1).nonzero()
    ends, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    around = nearest(near, width, ends)
    first, last = _between(around, place[: a.size], place[a.size :])
    indptr, indices = _sorted_rows(first, last, n)
    return csr_array((np.ones(indices.size, dtype=np.bool_), indices, indptr), shape=(n, n))


@njit(cache=True)
def _between(around, a, b):  # type: ignore[no-untyped-def]
    """Return the pairs of the rows `a` and `b` of `around`: smaller numbers, and larger ones."""
    width = around.shape[1]
    small = np.empty(a.size * width * width, np.int32)
    large, n_found = np.empty_like(small), 0
    for link in range(a.size):
        for i in around[a[link]]:
            for j in around[b[link]]:
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
    row_ptr, column_ptr = np.cumsum(row_ptr), np.cumsum(column_ptr)
    by_column = np.empty_like(rows)
    for e in range(rows.size):
        by_column[column_ptr[columns[e]]] = rows[e]
        column_ptr[columns[e]] += 1  # in the end where the column ends
    filled, sorted_columns = row_ptr[:n].copy(), np.empty_like(columns)
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


def nearest(near: csr_array | csc_array, width: int, columns: Ints | None = None) -> Int32s:
    """Return the rows of the `width` largest entries of each column, -1 where there are less.

    Of all columns, unless some are given.
    """
    by_column = near.tocsc()
    wanted = np.arange(near.shape[1]) if columns is None else columns
    found = np.full((wanted.size, width), -1, dtype=np.int32)
    _fill_nearest(by_column.indptr, by_column.indices, by_column.data, wanted, found)
    return found


@njit(cache=True)
def _fill_nearest(ptr, index, value, columns, found):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    for at, c in enumerate(columns):
        order = np.argsort(-value[ptr[c] : ptr[c + 1]], kind="mergesort")  # ties: the first row
        for rank in range(min(order.size, found.shape[1])):
            found[at, rank] = index[ptr[c] + order[rank]]
