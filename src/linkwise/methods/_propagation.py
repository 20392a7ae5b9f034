"""Steps shared by the methods that propagate pairs: how F is reached, and what it does to W."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from scipy.sparse import coo_array, csr_array, eye_array, issparse, kron, triu

from linkwise.exceptions import TooLargeError
from linkwise.linalg.laplacian import degrees, normalized_adjacency
from linkwise.linalg.lowrank import resolvent_columns, values_on
from linkwise.linalg.walk import staying_if_isolated
from linkwise.methods._editing import constraint_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linkwise.constraints import Constraints
    from linkwise.linalg.memory import Memory

    Block: TypeAlias = NDArray[np.float64]
    Graph: TypeAlias = csr_array | Block

__all__ = [
    "Factors",
    "Walk",
    "constrained",
    "dense",
    "is_exact",
    "largest_affinity",
    "pair_matrix",
    "pairs_of",
    "reach",
    "refine",
    "refine_entries",
    "refine_sparse",
    "refined_pattern",
    "resolvent",
    "strength",
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
    profile: NDArray[np.float64]


def walk(W: Graph) -> Walk:
    """Return the walk that propagates; it stays at isolated vertices.

    The profile are the square roots of the degrees, in units of the mean degree.
    """
    d = degrees(W)
    mean = d.mean() if d.any() else 1.0
    profile = np.sqrt(np.where(d > 0, d / mean, 1.0))
    return Walk(staying_if_isolated(normalized_adjacency(W), d), profile)


def resolvent(
    S: csr_array,
    profile: Block,
    columns: NDArray[np.intp],
    *,
    alpha: float,
    tol: float,
    memory: Memory | None = None,
) -> csr_array:
    """Return columns of ``(I - alpha S)^-1``; those that the memory holds are not computed again.

    A memory belongs to one graph, so `S` is the same as long as the memory is.
    """

    def compute(missing: NDArray[np.intp]) -> csr_array:
        return resolvent_columns(S, profile, missing, alpha=alpha, tol=tol)

    if memory is None:
        return compute(columns)
    return csr_array(memory.columns(("resolvent", alpha, tol), columns, compute))


class Factors(NamedTuple):
    """``F = sum_l G_l Y_CC G_l'``, over blocks of columns, one column a constrained sample."""

    G: csr_array  # the blocks side by side
    near: csr_array  # how near each sample is to each constrained one


def pairs_of(G: csr_array, Y: csr_array) -> csr_array:
    """Return the pairs among the constrained samples, once for each block of `G`."""
    C = constrained(Y)
    return csr_array(kron(eye_array(G.shape[1] // C.size), Y[C][:, C]))


def dense(A: Graph) -> Block:
    """Return a dense copy."""
    return np.array(A.toarray() if issparse(A) else A, dtype=np.float64)  # type: ignore[union-attr]


def refine(W: Graph, F: Block, Y: csr_array, scale: str) -> Block:
    """Return `W*` of Fu et al. (9) for every pair of samples; its diagonal is zero.

    `W` counts in units of its largest affinity and `F` is held within [-1, 1], so that `W*` stays
    within [0, 1].
    """
    pairs = Y.tocoo()
    factor = strength(F[pairs.row, pairs.col], pairs.data, scale)
    adjusted = refine_entries(dense(W) / largest_affinity(W), factor * F)
    np.fill_diagonal(adjusted, 0.0)
    return adjusted


def strength(f: Block, y: Block, scale: str) -> float:
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


def refine_entries(w: Block, f: Block) -> Block:
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
    pattern = refined_pattern(W, Y, factors.near)
    f = values_on(factors.G, pairs_of(factors.G, Y), pattern)
    pairs = csr_array(triu(Y, k=1))
    factor = strength(f[places(pattern, pairs)], pairs.data, scale)
    pattern.data = refine_entries(pattern.data / largest_affinity(W), factor * f)
    return symmetric(pattern)


def refined_pattern(W: csr_array, Y: csr_array, near: csr_array) -> csr_array:
    """Return `W` above the diagonal, with zeros stored where the pairs may bring new edges.

    `near` tells how near each sample is to each constrained one.
    """
    C = constrained(Y)
    links = csr_array(Y[C][:, C].maximum(0))
    limit = min(max(FILL_SHARE * W.nnz, FILL_LEAST), FILL_MOST)
    return upper_pattern(W, Y, reach(near, links, limit))


def symmetric(upper: csr_array) -> csr_array:
    """Return the symmetric matrix with these entries above the diagonal, zeros left out."""
    upper.eliminate_zeros()
    return csr_array(upper + upper.T)


def constrained(Y: csr_array) -> NDArray[np.intp]:
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


def places(pattern: csr_array, part: csr_array) -> NDArray[np.intp]:
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


def reach(near: csr_array, links: csr_array, limit: float) -> csr_array:
    """Return the pairs between the surroundings of the two ends of each link, above the diagonal.

    Parameters
    ----------
    near : csr_array of shape (n, c)
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
    around = nearest(near, width).astype(np.int32)
    a, b = triu(links, k=1).nonzero()
    i = np.repeat(around[a], width, axis=1).ravel()
    j = np.tile(around[b], (1, width)).ravel()
    met = (i >= 0) & (j >= 0) & (i != j)
    i, j = i[met], j[met]
    ends = (np.minimum(i, j), np.maximum(i, j))
    return csr_array(coo_array((np.ones(i.size, dtype=np.bool_), ends), shape=(n, n)))


def nearest(near: csr_array, width: int) -> NDArray[np.intp]:
    """Return the rows of the `width` largest entries of each column, -1 where there are less."""
    columns = near.tocsc()
    found = np.full((near.shape[1], width), -1, dtype=np.intp)
    _fill_nearest(columns.indptr, columns.indices, columns.data, found)
    return found


@njit(cache=True)
def _fill_nearest(ptr, index, value, found):  # type: ignore[no-untyped-def]
    for c in range(found.shape[0]):
        order = np.argsort(-value[ptr[c] : ptr[c + 1]], kind="mergesort")  # ties: the first row
        for rank in range(min(order.size, found.shape[1])):
            found[c, rank] = index[ptr[c] + order[rank]]
