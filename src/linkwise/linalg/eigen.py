r"""Eigenpairs at the ends of the spectrum of a symmetric matrix, with their residuals.

`largest` and `smallest` take a dense array, a sparse array or a ``LinearOperator``. Small problems
go to LAPACK, larger ones to ARPACK (implicitly restarted Lanczos), with LOBPCG to finish what
ARPACK could not (`linkwise.linalg.krylov`), and large sparse ones to Chebyshev-filtered subspace
iteration (`linkwise.linalg.chebyshev`).

Three things are added to ARPACK:

- the stopping rule is relative to the norm of the matrix, not to the eigenvalue, so that
  eigenvalues near zero cost no more than others;
- a Krylov space contains one vector of an eigenspace, however many dimensions that has. Once
  ARPACK is done, a short Lanczos run in the complement of what it found looks for values
  above the last one returned; as long as there are any, they are computed and merged;
- whatever happens, a full block of vectors comes back, with its residuals.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import issparse

from linkwise._jit import late_module
from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg.blocks import BlockMatrix
from linkwise.linalg.krylov import (
    ROUNDING,
    SLACK,
    Known,
    Limits,
    Method,
    Ritz,
    check_finite,
    krylov_pairs,
    norm_estimate,
    spectrum_bounds,
)
from linkwise.linalg.operators import Counted, Shifted, as_sum
from linkwise.linalg.warm import EigenWarmStart

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Symmetric

chebyshev = late_module("linkwise.linalg.chebyshev")  # imports numba

# On kNN graphs LAPACK is faster up to 400 rows and costs at most 10 ms more up to 500, and it
# cannot miss a pair. For more than this share of all pairs it is faster (at 2,000 rows).
DENSE_LIMIT = 500
MANY_PAIRS_LIMIT = 3_000  # beyond, a dense array costs more memory than any sparse graph
DENSE_SHARE = 0.15
# Rows from which filtering replaces ARPACK. On 10-NN graphs of 1,000 to 20,000 vertices, in a
# square and in 16 dimensions, it took at most 2/3 of the processor time for 2, 5, 15 and 40 pairs;
# but a process that has not used its kernels yet must load them, and at this size ARPACK needs
# some 0.3 s.
CHEBYSHEV_FROM = 10_000
# Sine of the angle to the exact embedding (5 and 15 vectors) and processor time, filtering:
#             10-NN graph of 100,000 points in a square    of 70,000 digits in 50 dimensions
#   1e-4      1e-1         1.6 to 1.9 s                    5e-3          0.7 to 0.9 s
#   1e-5      6e-3, 2e-2   2.1 to 2.2 s                    3e-4, 2e-4    0.8 to 1.1 s
#   1e-6      1e-3, 3e-4   2.3 to 3.1 s                    4e-5, 3e-5    0.9 to 1.2 s
# Planar graphs, with gaps of 1e-5, decide: 1e-4 loses their embedding, 1e-5 blurs it.
DEFAULT_TOL = 1e-6
DEFAULT_MAX_ITER = 1_000
# Entries this close in relative magnitude are a tie when the sign of a vector is chosen.
SIGN_TIE = 1e-4


@dataclass(frozen=True, eq=False)
class EigenPairs:
    """Eigenvalues, eigenvectors, and the certificate of both.

    Attributes
    ----------
    values : ndarray of shape (k,)
        Eigenvalues, from the wanted end of the spectrum inwards.
    vectors : ndarray of shape (n, k)
        Orthonormal eigenvectors (B-orthonormal for the generalised problem), in columns.
        The entry of largest magnitude of each is positive.
    residuals : ndarray of shape (k,)
        Norms of ``A v - lambda v`` (or ``A v - lambda B v``). An eigenvalue of `A` lies
        within the residual of each value.
    converged : bool
        Whether the residuals meet the tolerance.
    n_products : int or None
        Number of vectors that `A` was multiplied with; None for a direct method.
    """

    values: Floats
    vectors: Floats
    residuals: Floats
    converged: bool
    n_products: int | None


def largest(  # noqa: PLR0913
    A: Symmetric,
    k: int,
    rng: np.random.RandomState,
    *,
    tol: float = DEFAULT_TOL,
    known: Graph | None = None,
    known_values: Floats | None = None,
    method: Method = "auto",
    max_iter: int | None = None,
    warm: EigenWarmStart | None = None,
    warns: bool = True,
) -> EigenPairs:
    """Compute the `k` algebraically largest eigenpairs of a symmetric matrix, in decreasing order.

    When the residuals miss the tolerance a ``ConvergenceWarning`` is issued and `converged` is
    false; the block is complete nonetheless. The cost is a number of products with `A` that grows
    like the inverse square root of the gap after the k-th value, and twice as many passes over a
    basis of ``2 k + 20`` vectors.

    Parameters
    ----------
    A : ndarray, csr_array or LinearOperator of shape (n, n)
        Symmetric.
    k : int
        Number of pairs, at most `n`.
    rng : RandomState
        Source of the start vectors.
    tol : float, default=1e-6
        Residuals aimed at, relative to the norm of `A`. Zero means machine precision.
    known, known_values : arrays of shape (n, c) and (c,), optional
        Orthonormal eigenvectors known beforehand, such as the indicator vectors of connected
        components, and their values. They are taken out of the problem and merged into the answer.
    method : {'auto', 'dense', 'arpack', 'lobpcg', 'chebyshev'}, default='auto'
        'auto' is 'dense' for small matrices or many pairs, 'chebyshev' for large ones that are
        sparse, or sparse plus terms of low rank, else 'arpack'.
    max_iter : int, default=1000
        Limit on the restarts of ARPACK, the iterations of LOBPCG, or the filters of 'chebyshev'.
    warm : EigenWarmStart, optional
        What a solve of nearly the same matrix found; what this solve finds replaces it. It saves
        time when it is good; the answer is right whatever it is.
    warns : bool, default=True
        Whether a missed tolerance is a warning; a start of another search may be rough.

    Examples
    --------
    >>> pairs = largest(np.diag([1.0, 3.0, 2.0]), 2, np.random.RandomState(0))
    >>> pairs.values.tolist(), pairs.vectors.argmax(axis=0).tolist()
    ([3.0, 2.0], [1, 2])
    """
    limits = Limits(method, tol, max_iter or DEFAULT_MAX_ITER, warm, warns)
    return _extreme(A, k, rng, limits=limits, known=(known, known_values), sign=1)


def smallest(  # noqa: PLR0913
    A: Symmetric,
    k: int,
    rng: np.random.RandomState,
    *,
    tol: float = DEFAULT_TOL,
    known: Graph | None = None,
    known_values: Floats | None = None,
    method: Method = "auto",
    max_iter: int | None = None,
    warm: EigenWarmStart | None = None,
) -> EigenPairs:
    """Compute the `k` algebraically smallest eigenpairs, in increasing order.

    The parameters and the answer are those of `largest`.

    Examples
    --------
    >>> smallest(np.diag([1.0, 3.0, 2.0]), 2, np.random.RandomState(0)).values.tolist()
    [1.0, 2.0]
    """
    limits = Limits(method, tol, max_iter or DEFAULT_MAX_ITER, warm)
    return _extreme(A, k, rng, limits=limits, known=(known, known_values), sign=-1)


def _extreme(
    A: Symmetric,
    k: int,
    rng: np.random.RandomState,
    *,
    limits: Limits,
    known: tuple[Graph | None, Floats | None],
    sign: int,
) -> EigenPairs:
    """Compute the `k` largest eigenpairs of ``sign * A``, as pairs of `A`."""
    V, values = known
    if V is None or values is None:
        V, values = np.empty((A.shape[0], 0)), np.empty(0)
    method = _chosen(A, k, limits.method, known_shape=V.shape)
    counted = None if method == "dense" else Counted(A)
    # H has the wanted pairs on top: ``sign * A + shift * I``.
    H: Any
    if counted is None:
        H, shift = sign * as_dense(A), 0.0
        if not np.isfinite(H).all():
            check_finite(H)
        scale = float(np.abs(H).sum(axis=1).max())
        found = _direct(H, k, V, shift=2 * scale)
    else:
        shift = 0.0 if method == "chebyshev" else norm_estimate(counted, rng)
        H = Shifted(counted, shift, scale=sign)
        of_H = Known(V, sign * values + shift)
        if method == "chebyshev":
            found, scale = _filtered(H, k, rng, limits=limits, known=of_H)
        else:
            # The spectrum moves to [0, 2 scale]: ARPACK stops relative to the eigenvalue, and
            # now that means relative to the norm, even for eigenvalues of A near zero.
            scale = shift
            found = krylov_pairs(H, k, rng, limits=limits, known=of_H, scale=scale)
    ritz = _merged(H, found, Known(V, sign * values + shift), k=k)
    limit = SLACK * max(limits.tol, ROUNDING) * scale
    converged = bool((ritz.residuals <= limit).all())
    if limits.warns and not converged:
        _warn(ritz.residuals, limit, limits)
    n_products = None if counted is None else counted.n_products
    vectors = fix_signs(ritz.vectors)
    if limits.warm is not None:
        limits.warm.vectors = vectors
    return EigenPairs(sign * (ritz.values - shift), vectors, ritz.residuals, converged, n_products)


def _chosen(A: Symmetric, k: int, method: Method, *, known_shape: tuple[int, int]) -> Method:
    """Return the method that is used, for that many rows and known vectors."""
    n, c = known_shape
    if method == "auto":
        is_direct = n <= DENSE_LIMIT or (k >= DENSE_SHARE * n and n <= MANY_PAIRS_LIMIT)
    else:  # the others cannot deliver nearly all pairs
        is_direct = method == "dense" or k >= n - 1
    if is_direct:
        return "dense"
    if method in {"arpack", "lobpcg"}:
        return method
    # A block of too large a share of all vectors does not fit beside the known ones.
    if c >= k or 4 * chebyshev.block_width(k) > n - c:
        return "arpack"
    if method == "chebyshev":
        return method
    # Products with blocks that are elsewhere are few and wide, or they wait for each other.
    is_large = n >= CHEBYSHEV_FROM or isinstance(A, BlockMatrix)
    return "chebyshev" if is_large and as_sum(A) is not None else "arpack"


def as_dense(A: Any) -> Floats:
    """Return a matrix or operator as a dense array."""
    if isinstance(A, np.ndarray):
        return A
    return np.asarray(A.toarray() if issparse(A) else A @ np.eye(A.shape[1]))


def _direct(H: Floats, k: int, V: Graph, *, shift: float) -> Ritz:
    """Compute the largest pairs of the complement of the eigenvectors `V` by LAPACK."""
    n, c = V.shape
    k = min(k, n - c)
    if k == 0:
        return Ritz(np.empty(0), np.empty((n, 0)), np.empty(0))
    if c:  # their eigenvalues are lowered
        H = H - as_dense(V @ (shift * V.T))
    try:
        values, vectors = eigh(H, subset_by_index=(n - k, n - 1))
    except np.linalg.LinAlgError:
        values, vectors = np.empty(0), np.empty((n, 0))
    if values.size < k:
        # LAPACK's way to some of the pairs gives up on a few highly degenerate spectra, and does
        # not always say so.
        values, vectors = eigh(H, driver="evd")
        values, vectors = values[n - k :], vectors[:, n - k :]
    values, vectors = values[::-1], vectors[:, ::-1]
    return Ritz(values, vectors, np.linalg.norm(H @ vectors - vectors * values, axis=0))


def _filtered(
    H: Shifted, k: int, rng: np.random.RandomState, *, limits: Limits, known: Known
) -> tuple[Ritz, float]:
    """Compute the largest pairs of the complement of `known` by filtering; also the norm."""
    warm = limits.warm or EigenWarmStart()
    # The filter corrects bounds that are not quite right; of any matrix here they are estimates.
    if warm.vectors is None or warm.spectrum is None:
        warm.spectrum = spectrum_bounds(H, rng)
    low, high, scale = warm.spectrum
    counted = H.A
    found = chebyshev.leading(
        Shifted(counted.A, 0.0, scale=H.scale / scale),
        k,
        rng,
        bounds=(low / scale, high / scale),
        tol=max(limits.tol, ROUNDING),
        known=known.vectors,
        known_values=known.values / scale,
        max_iter=limits.max_iter,
        warm=warm,
    )
    counted.n_products += found.n_products
    return Ritz(scale * found.values, found.vectors, scale * found.residuals), scale


def _merged(H: Any, found: Ritz, known: Known, *, k: int) -> Ritz:
    """Return the `k` largest of both; of equal values the known ones come first."""
    if known.values.size == 0:
        return found
    order = np.argsort(-known.values, kind="stable")[:k]
    values, vectors = known.values[order], as_dense(known.vectors[:, order])
    residuals = np.linalg.norm(H @ vectors - vectors * values, axis=0)
    values = np.append(values, found.values)
    order = np.argsort(-values, kind="stable")[:k]
    return Ritz(
        values[order],
        np.hstack([vectors, found.vectors])[:, order],
        np.append(residuals, found.residuals)[order],
    )


def fix_signs(vectors: Floats) -> Floats:
    """Turn each vector so that its entry of largest magnitude is positive.

    The rule does not depend on the order of the entries, except for ties: there the first
    of the tied entries decides.
    """
    magnitude = np.abs(vectors)
    tied = magnitude >= (1 - SIGN_TIE) * magnitude.max(axis=0)
    deciding = vectors[tied.argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(deciding < 0, -1.0, 1.0)


def _warn(residuals: Floats, limit: float, limits: Limits) -> None:
    message = (
        f"{np.sum(residuals > limit)} of {residuals.size} eigenpairs did not converge: the "
        f"worst residual is {residuals.max():.1e}, the limit for tol={limits.tol:g} is "
        f"{limit:.1e}. Increase max_iter (now {limits.max_iter}) or tol, or use "
        f"method='dense' if the matrix fits into memory."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=4)
