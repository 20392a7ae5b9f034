"""Steps shared by the methods that propagate pairs: how F is reached, and what it does to W."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse, kron, triu

from linkwise._params import Interval, StrOptions
from linkwise.exceptions import TooLargeError
from linkwise.linalg.blocks import BlockMatrix
from linkwise.linalg.embedding import looped_adjacency
from linkwise.linalg.laplacian import degrees
from linkwise.linalg.lowrank import columns_from_blocks, resolvent_columns, values_on
from linkwise.linalg.sparse import (
    canonical_format,
    coupled_edges,
    largest_entry,
    largest_rows,
    moved_entries,
    pairs_between,
    positions,
    union_above,
)
from linkwise.linalg.warm import WarmStarts
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats, Graph, Ints

# SRCP of a sparse graph at 3,000 vertices: 9 s and 0.5 GB exactly, 0.1 s by sparse factors.
AUTO_EXACT = 3_000
# The same where pairs are spread so far that sparse factors miss much of them: SRCP takes a minute.
GLOBAL_EXACT = 6_000
# One eigendecomposition of this size takes 5 minutes and 4 GB.
MAX_EXACT = 10_000
ROUNDING = 1e-12  # affinities above 1 by no more than this are 1
# New edges between the neighbourhoods of must-linked pairs: the larger of the first two limits, but
# never above the third.
FILL_SHARE = 4.0  # for each edge of the graph
FILL_LEAST = 2_000_000
FILL_MOST = 16_000_000  # 200 MB of a graph
MAX_REACH = 64  # vertices reached from an endpoint of a must-link


def adjusted(
    W: Graph,
    Y: csr_array,
    *,
    propagate: Callable[[Graph, csr_array], Floats],
    factors: Callable[[csr_array, Ints], Factors],
    scale: str,
    solver: str,
    reach: Reach,
) -> Graph:
    """Return `W*` of Fu et al. (9): affinities that the propagated pairs `F` raise and lower.

    `propagate` returns all of `F` for a graph and the pairs `Y`, `factors` sparse factors of it for
    a graph and its constrained samples. Where pairs reach far, sparse factors are not good: `auto`
    is exact up to `GLOBAL_EXACT` samples then, and otherwise there is a warning.
    """
    if Y.nnz == 0:
        return W
    if scale == "paper":
        _warn_above_one(W)
    if solver == "auto" and reach.is_global and W.shape[0] <= GLOBAL_EXACT:
        solver = "exact"
    if is_exact(W, solver):
        return adjusted_dense(W, propagate(W, Y), Y, scale=scale)
    if reach.is_global:
        _warn_global(W.shape[0], reach)
    W = W if isinstance(W, BlockMatrix) else csr_array(W)
    return adjusted_sparse(W, factors(W, constrained_samples(Y)), Y, scale=scale)


class Reach(NamedTuple):
    """How far pairs are spread: the parameter that says so, and whether that is everywhere."""

    setting: str  # as in the call
    is_global: bool
    local: str  # values of the parameter for which they are not


def _warn_global(n: int, reach: Reach) -> None:
    """Warn that sparse factors leave much of the propagated pairs out."""
    exact = f"solver='exact' (up to {MAX_EXACT:,} samples)"
    message = (
        f"{reach.setting} spreads pairs over the whole graph; the low-rank propagation of {n:,} "
        "samples keeps what is near to them, and is wrong by 10 % and more on the edges. Take "
        f"{reach.local}{', or ' + exact if n <= MAX_EXACT else ''}, or a smaller tol=."
    )
    warnings.warn(message, UserWarning, stacklevel=7)


def is_exact(W: Graph, solver: str) -> bool:
    """Return whether the n x n matrix of propagated pairs is formed."""
    n = W.shape[0]
    is_large = issparse(W) and n > AUTO_EXACT
    if solver == "lowrank" or (solver == "auto" and (is_large or isinstance(W, BlockMatrix))):
        return False
    if isinstance(W, BlockMatrix):
        raise TooLargeError(
            "solver='exact' is for one machine, and the data are on Dask. Take solver='lowrank'."
        )
    if n > MAX_EXACT:
        raise TooLargeError(
            f"The exact propagation forms dense matrices over {n} x {n} pairs of samples; the "
            f"limit is {MAX_EXACT} samples. Take solver='lowrank' on a sparse neighbour graph, "
            "for example affinity=Affinity(10)."
        )
    return True


class SymmetricWalk(NamedTuple):
    """The normalised adjacency `S`, and its positive eigenvector: ``S profile = profile``."""

    S: Graph
    profile: Floats


def symmetric_walk(W: Graph) -> SymmetricWalk:
    """Return ``D^-1/2 W D^-1/2``, similar to the random walk, with loops at isolated vertices.

    The profile are the square roots of the degrees, in units of the mean degree.
    """
    d = degrees(W)
    mean = d.mean() if d.any() else 1.0
    profile = np.sqrt(np.where(d > 0, d / mean, 1.0))
    return SymmetricWalk(looped_adjacency(W, d), profile)


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
    given: list[SymmetricWalk] = []

    def columns_for(alpha: float) -> Callable[[Ints], csc_array]:
        def compute(missing: Ints) -> csc_array:
            if not given:
                given.append(symmetric_walk(W))
            S, profile = given[0]
            find: Any = columns_from_blocks if isinstance(S, BlockMatrix) else resolvent_columns
            return csc_array(find(S, profile, missing, alpha=alpha, tol=tol))

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
    C = constrained_samples(Y)
    return csr_array(kron(factors.weights, Y[C][:, C]))


def dense(A: Graph) -> Floats:
    """Return a dense copy."""
    return np.array(A.toarray() if issparse(A) else A, dtype=np.float64)  # type: ignore[union-attr]


def adjusted_dense(W: Graph, F: Floats, Y: csr_array, *, scale: str) -> Floats:
    """Return `W*` for every pair of samples; its diagonal is zero, as that of `W`."""
    pairs = Y.tocoo()
    shares = in_units(F, F[pairs.row, pairs.col], pairs.data, scale=scale)
    W_star = adjusted_entries(dense(W) / affinity_unit(W, scale), shares)
    np.fill_diagonal(W_star, 0.0)
    return W_star


def affinity_unit(W: Graph, scale: str) -> float:
    """Return what affinities are divided by: the largest one, or 1 by equation (9) as it stands."""
    return 1.0 if scale == "paper" else largest_entry(W)


def _warn_above_one(W: Graph) -> None:
    """Warn if equation (9) would lower the affinity of a must-link."""
    largest = largest_entry(W)
    if largest > 1 + ROUNDING:
        message = (
            "scale='paper' is equation (9), which is about affinities in [0, 1]; the largest here "
            f"is {largest:.6g}. Above 1 a must-link lowers an affinity. Divide the graph by its "
            "largest affinity, or take scale='max', which does that."
        )
        warnings.warn(message, UserWarning, stacklevel=7)


def in_units(F: Floats, f: Floats, y: Floats, *, scale: str) -> Floats:
    """Return `F` in the unit that its values `f` at the given pairs `y` ask for.

    Beyond [-1, 1] it is clipped, so that `W*` stays within [0, 1]; by the paper it is as it is.
    """
    if scale == "paper":
        return F
    return np.clip(scale_factor(f, y) * F, -1.0, 1.0)


def scale_factor(f: Floats, y: Floats) -> float:
    """Return the factor of `F` for ``scale="max"``, from its values at the given pairs.

    Propagation dilutes: at its own place a certain pair keeps 0.05 (E2CP) or 0.15 (SRCP) on
    neighbour graphs. With the factor the tenth of the pairs that keeps most has its full
    belief again. (Not the one pair that keeps most: two samples with no other neighbour keep all.)
    """
    kept = np.abs(f) > 0
    if not kept.any():
        return 1.0
    # This kind of quantile is the same whether pairs are listed once or in both directions.
    ratios = np.abs(y[kept]) / np.abs(f[kept])
    return float(np.quantile(ratios, 0.1, method="inverted_cdf"))


def adjusted_entries(w: Floats, f: Floats) -> Floats:
    """Return ``1 - (1 - f)(1 - w)`` for ``f >= 0`` and ``(1 + f) w`` else, entry by entry.

    An affinity cannot be negative; what ``|f| > 1`` brings below zero is zero.
    """
    # Both are w + |f| (target - w), with target 1 or 0.
    change = np.abs(f)
    change *= (f > 0) - w
    change += w
    return np.maximum(change, 0.0, out=change)


def adjusted_sparse(W: csr_array, factors: Factors, Y: csr_array, *, scale: str) -> csr_array:
    """Return `W*` on the edges, the constrained pairs and the pairs around must-links.

    Elsewhere `F` is left out: negative values change nothing where there is no edge, and positive
    ones are far from every must-link.
    """
    is_here = not isinstance(W, BlockMatrix)
    W = canonical_format(csr_array(W)) if is_here else W
    # The pairs, above the diagonal, where F may change W
    C = constrained_samples(Y)
    Y_CC = csr_array(Y[C][:, C])
    reached = W if is_here else W.only_rows(np.flatnonzero(np.diff(factors.G.indptr)))
    edges = coupled_edges(reached, factors.G, Y_CC)
    F = union_above(edges, Y, pairs_around(factors.near, Y_CC, _fill_limit(W)))
    # F = G T G' there, in the unit of the given pairs
    f = values_on(factors.G, pairs_of(factors, Y), F)
    given = csr_array(triu(Y, k=1))
    F.data = in_units(f, f[positions(F, given)], given.data, scale=scale)
    unit = affinity_unit(W, scale)
    W_star = moved_entries(W / unit, csr_array(F + F.T), 1.0)
    return W_star.mapped(_cleaned) if isinstance(W_star, BlockMatrix) else _cleaned(W_star)


def _cleaned(W_star: csr_array) -> csr_array:
    """Return rows of a graph without what is negative, as in `adjusted_entries`, or a loop."""
    entries = (np.maximum(W_star.data, 0.0), W_star.indices, W_star.indptr)
    W_star = csr_array(entries, shape=W_star.shape)
    if W_star.diagonal().any():
        W_star = W_star.copy()
        W_star.setdiag(0.0)
        W_star.eliminate_zeros()
    return W_star


def pattern_with_pairs(W: csr_array, Y: csr_array, near: csr_array | csc_array) -> csr_array:
    """Return `W` above the diagonal, with zeros stored where the pairs may bring new edges.

    `near` holds how near each sample is to each constrained one.
    """
    C = constrained_samples(Y)
    return union_above(W, Y, pairs_around(near, csr_array(Y[C][:, C]), _fill_limit(W)))


def _fill_limit(W: csr_array) -> float:
    """Return how many new edges a graph of this size may get."""
    n_entries = 0 if isinstance(W, BlockMatrix) else W.nnz
    return min(max(FILL_SHARE * n_entries, FILL_LEAST), FILL_MOST)


def constrained_samples(Y: csr_array) -> Ints:
    """Return the samples that are in a pair."""
    return np.flatnonzero(np.diff(Y.indptr))


def pairs_around(near: csr_array | csc_array, Y_CC: csr_array, limit: float) -> csr_array:
    """Return the pairs between the neighbourhoods of the two endpoints of each must-link.

    Parameters
    ----------
    near : csr_array or csc_array of shape (n, c)
        How near each sample is to each constrained one, itself included.
    Y_CC : csr_array of shape (c, c)
        The pairs among the constrained samples.
    limit : float
        Number of pairs that are affordable: neighbourhoods shrink to the nearest samples until
        they fit.

    Returns
    -------
    csr_array of shape (n, n)
        Above the diagonal only.
    """
    n, must_links = near.shape[0], csr_array(Y_CC.maximum(0))
    width = int(min(MAX_REACH, np.sqrt(limit / max(must_links.nnz, 1))))
    if width < 1 or must_links.nnz == 0:
        return csr_array((n, n))
    a, b = triu(must_links, k=1).nonzero()
    endpoints, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    neighborhoods = largest_rows(near, width, endpoints)
    return pairs_between(neighborhoods, place[: a.size], place[a.size :], n=n)


class PropagationClusterer(ConstrainedClusterer):
    """Base class of the methods that propagate pairs over the graph: what they share.

    Parameters
    ----------
    scale : {"max", "paper"}, default="max"
        The unit of propagated pairs and of affinities. ``"paper"``: both as they are, which is
        equation (9) of Fu et al. to the letter, for pairs of two samples (no sample has an affinity
        to itself); propagated pairs are faint then. ``"max"``: pairs
        are multiplied until the tenth of the given ones that kept most of their belief has all of
        it (a quantile of 10 %, not the maximum), and affinities are divided by the largest. Take
        ``"paper"`` only to repeat the paper.
    solver : {"auto", "exact", "lowrank"}, default="auto"
        ``"exact"`` forms all n x n new affinities, at most for 10,000 samples. ``"lowrank"``
        computes them on the edges of the graph, on the given pairs and around must-links only,
        and the graph stays sparse. ``"auto"`` is exact up to 3,000 samples and for dense graphs,
        and up to 6,000 where pairs are spread so far that ``"lowrank"`` would miss much (alpha
        above 0.9, mu below 0.05); beyond there is a warning. Take ``"exact"`` to compare, on a few
        thousand samples.
    tol : float, default=5e-4
        Residual up to which ``"lowrank"`` follows the random walk from a constrained sample. Lower
        it for a higher precision on large data.
    """

    family = "constraint propagation"
    max_clusters = MOST_EIGENVECTORS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": [StrOptions({"max", "paper"})],
        "solver": [StrOptions({"auto", "exact", "lowrank"})],
        "tol": [Interval(Real, 0, 1, closed="neither")],
    }
