r"""Eigenpairs at the ends of the spectrum of a symmetric matrix, with their residuals.

`largest` and `smallest` take a dense array, a sparse array or a ``LinearOperator``;
`generalized_smallest` solves :math:`A x = \lambda B x`, `pencil_largest` the same with a `B` that
is known by its solves only. Small problems go to LAPACK, larger ones to ARPACK (implicitly
restarted Lanczos), with LOBPCG to finish what ARPACK could not, and large sparse ones to
Chebyshev-filtered subspace iteration (`linkwise.linalg.chebyshev`).

Three things are added to ARPACK:

- the stopping rule is relative to the norm of the matrix, not to the eigenvalue, so that
  eigenvalues near zero cost no more than others;
- a Krylov space contains one vector of an eigenspace, however many dimensions that has. Once
  ARPACK is done, a short Lanczos run in the complement of what it found looks for values
  above the last one returned; as long as there are any, they are computed and merged;
- whatever happens, a full block of vectors comes back, and its residuals say what it is worth.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import (
    cholesky,
    eigh,
    eigh_tridiagonal,
    eigvalsh_tridiagonal,
    qr,
    solve_triangular,
)
from scipy.sparse import csc_array, csr_array, diags_array, issparse
from scipy.sparse.linalg import (
    ArpackError,
    ArpackNoConvergence,
    aslinearoperator,
    eigsh,
    lobpcg,
    splu,
)

from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg import chebyshev
from linkwise.linalg.operators import Congruence, Counted, Deflated, Shifted, as_sum
from linkwise.linalg.warm import EigenWarmStart

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse.linalg import LinearOperator

    from linkwise._types import Floats, Graph, Symmetric


__all__ = [
    "EigenPairs",
    "generalized_smallest",
    "largest",
    "pencil_largest",
    "smallest",
    "sparse_factor",
]

Method = Literal["auto", "dense", "arpack", "lobpcg", "chebyshev"]

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
# Rounding alone leaves residuals of some hundred epsilons: no tolerance below this is judged.
ROUNDING = 1e-12
# Solvers stop on estimates, which differ from the true residuals by rounding and by the
# rotation that ends the computation.
SLACK = 4.0
# Share of a random vector in start vectors made of given ones: these may lack a direction.
START_NOISE = 1e-2
# Products the search for missed copies may cost: a share of those spent so far, and a least
# number. Up to CHECK_THOROUGHLY rows, where regular grids and rings mostly live and a product
# is cheap, it searches longer.
CHECK_SHARE, CHECK_LEAST = 0.25, 30
CHECK_THOROUGHLY = 5_000
THOROUGH_SHARE, THOROUGH_LEAST = 0.5, 100
# Entries this close in relative magnitude are a tie when the sign of a vector is chosen.
SIGN_TIE = 1e-4
# scipy < 1.17 draws the vectors that leave an invariant subspace from a state of its own.
ARPACK_TAKES_RNG = "rng" in signature(eigsh).parameters


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
) -> EigenPairs:
    r"""Compute the `k` algebraically largest eigenpairs of a symmetric matrix.

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
    known : ndarray or csr_array of shape (n, c), optional
        Orthonormal eigenvectors known beforehand, such as the indicator vectors of connected
        components. They are taken out of the problem and merged into the answer. Values at
        the wanted end cost nothing; others are allowed.
    known_values : ndarray of shape (c,), optional
        Their eigenvalues.
    method : {'auto', 'dense', 'arpack', 'lobpcg', 'chebyshev'}, default='auto'
        'auto' is 'dense' for small matrices or many pairs, 'chebyshev' for large ones that are
        sparse, or sparse plus terms of low rank, else 'arpack'.
    max_iter : int, default=1000
        Limit on the restarts of ARPACK, the iterations of LOBPCG, or the filters of 'chebyshev'.
    warm : EigenWarmStart, optional
        What a solve of nearly the same matrix found, such as approximate eigenvectors to begin
        with. It saves time when it is good; the answer is right whatever it is. What this solve
        finds replaces it.

    Returns
    -------
    EigenPairs
        In decreasing order. When the residuals miss the tolerance a ``ConvergenceWarning``
        is issued and `converged` is false; the block is complete nonetheless.

    Notes
    -----
    The cost is a number of products with `A` that grows like the inverse square root of the
    gap after the k-th value, and twice as many passes over a basis of ``2 k + 20`` vectors.

    Examples
    --------
    >>> pairs = largest(np.diag([1.0, 3.0, 2.0]), 2, np.random.RandomState(0))
    >>> pairs.values.tolist(), pairs.vectors.argmax(axis=0).tolist()
    ([3.0, 2.0], [1, 2])
    """
    limits = _Limits(method, tol, max_iter or DEFAULT_MAX_ITER, warm)
    return _extreme(A, k, rng, limits=limits, known=_known(A, known, known_values), sign=1)


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
    limits = _Limits(method, tol, max_iter or DEFAULT_MAX_ITER, warm)
    return _extreme(A, k, rng, limits=limits, known=_known(A, known, known_values), sign=-1)


def generalized_smallest(
    A: Symmetric,
    B: Graph,
    k: int,
    rng: np.random.RandomState,
    *,
    tol: float = DEFAULT_TOL,
    method: Method = "auto",
    max_iter: int | None = None,
) -> EigenPairs:
    r"""Compute the `k` smallest eigenpairs of :math:`A x = \lambda B x`.

    With a factor :math:`B = G G^T` the problem is the standard one of
    :math:`G^{-1} A G^{-T}`, which `smallest` solves. The factor is a square root when `B` is
    diagonal, and a Cholesky factor, dense or sparse like `B`, otherwise.

    Parameters
    ----------
    A : ndarray, csr_array or LinearOperator of shape (n, n)
        Symmetric.
    B : ndarray or csr_array of shape (n, n), or ndarray of shape (n,)
        Symmetric and positive definite, or the diagonal of such a matrix.
    k, rng, method, max_iter
        As in `largest`.
    tol : float, default=1e-6
        Residuals of the standard problem aimed at, relative to its norm.

    Returns
    -------
    EigenPairs
        In increasing order. The vectors are B-orthonormal, the residuals are the norms of
        ``A x - lambda B x``, and `converged` is that of the standard problem.

    Raises
    ------
    LinAlgError
        If `B` is not positive definite.

    Examples
    --------
    >>> A, B = np.diag([1.0, 3.0, 2.0]), np.array([1.0, 10.0, 1.0])
    >>> generalized_smallest(A, B, 2, np.random.RandomState(0)).values.round(12).tolist()
    [0.3, 1.0]
    """
    factor = _factor(B)
    C = Congruence(A, factor.solve_transposed, factor.solve)
    standard = smallest(C, k, rng, tol=tol, method=method, max_iter=max_iter)
    X = _with_fixed_signs(factor.solve_transposed(standard.vectors))
    BX = B[:, np.newaxis] * X if B.ndim == 1 else B @ X
    residuals = np.linalg.norm(A @ X - BX * standard.values, axis=0)
    return EigenPairs(standard.values, X, residuals, standard.converged, standard.n_products)


def pencil_largest(
    A: Symmetric,
    B: Symmetric,
    k: int,
    rng: np.random.RandomState,
    *,
    inverse: LinearOperator,
    tol: float = 1e-9,
    max_iter: int | None = None,
) -> EigenPairs:
    r"""Compute the `k` largest eigenpairs of :math:`A x = \mu B x` from solves with `B`.

    Lanczos in the inner product of `B` (ARPACK's second mode). `A` may be indefinite. `B` is
    positive definite on the range of `inverse`, to which all vectors belong; outside of it both
    matrices are zero.

    Parameters
    ----------
    A, B : ndarray, csr_array or LinearOperator of shape (n, n)
        Symmetric; `B` positive semidefinite.
    k : int
        Number of pairs, at most two less than the dimension of the range.
    rng : RandomState
        Source of the start vector.
    inverse : LinearOperator of shape (n, n)
        Solves with `B`: its pseudoinverse.
    tol : float, default=1e-9
        Accuracy of the values, relative to each.
    max_iter : int, default=1000
        Limit on the restarts.

    Returns
    -------
    EigenPairs
        In decreasing order, B-orthonormal. The residuals are the norms of ``A x - mu B x``. When
        ARPACK gives up, only the pairs that it found come back, with a ``ConvergenceWarning``.

    Examples
    --------
    >>> A, B = np.diag(np.arange(-20.0, 20.0)), np.diag(np.full(40, 2.0))
    >>> inverse = np.diag(1 / B.diagonal())
    >>> pencil_largest(A, B, 2, np.random.RandomState(0), inverse=inverse).values.round(9).tolist()
    [9.5, 9.0]
    """
    counted = Counted(A)
    n = A.shape[0]
    options: dict[str, Any] = {"rng": rng.randint(2**31)} if ARPACK_TAKES_RNG else {}
    converged = True
    try:
        values, vectors = eigsh(
            counted,
            k,
            M=aslinearoperator(B),
            Minv=aslinearoperator(inverse),
            which="LA",
            v0=inverse @ rng.uniform(-1, 1, size=n),
            # A basis of all that there is leaves ARPACK no shift to apply.
            ncv=min(_basis_size(n, k), n - 1),
            tol=tol,
            maxiter=max_iter or DEFAULT_MAX_ITER,
            **options,
        )
    except ArpackError as error:
        values = getattr(error, "eigenvalues", np.empty(0))
        vectors = getattr(error, "eigenvectors", np.empty((n, 0)))
        converged = False
        message = (
            f"{k - values.size} of {k} eigenpairs of a pencil did not converge. Increase max_iter "
            f"(now {max_iter or DEFAULT_MAX_ITER}) or tol."
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], _with_fixed_signs(vectors[:, order])
    residuals = np.linalg.norm(counted @ vectors - (B @ vectors) * values, axis=0)
    return EigenPairs(values, vectors, residuals, converged, counted.n_products)


class _Limits(NamedTuple):
    method: Method
    tol: float
    max_iter: int
    warm: EigenWarmStart | None


class _Known(NamedTuple):
    """Orthonormal eigenvectors given by the caller, dense or sparse, possibly none."""

    vectors: Graph
    values: Floats


class _Ritz(NamedTuple):
    """Approximate eigenpairs in decreasing order, with the norms of their residuals."""

    values: Floats
    vectors: Floats
    residuals: Floats


def _known(A: Symmetric, vectors: Graph | None, values: Floats | None) -> _Known:
    if vectors is None or values is None:
        return _Known(np.empty((A.shape[0], 0)), np.empty(0))
    return _Known(vectors, values)


def _extreme(
    A: Symmetric,
    k: int,
    rng: np.random.RandomState,
    *,
    limits: _Limits,
    known: _Known,
    sign: int,
) -> EigenPairs:
    """Compute the `k` largest eigenpairs of ``sign * A``, as pairs of `A`."""
    method = _chosen(A, k, limits.method, known)
    counted = Counted(A)
    shift = 0.0
    if method == "dense":
        M = _as_dense(A)
        _check_finite(M)
        scale = float(np.abs(M).sum(axis=1).max())
        H: Any = sign * M
        known = _Known(known.vectors, sign * known.values)
        found = _direct(H, k, known, 2 * scale)
    elif method == "chebyshev":
        H = Shifted(counted, 0.0, scale=sign)
        known = _Known(known.vectors, sign * known.values)
        found, scale = _filtered(H, k, rng, limits=limits, known=known)
    else:
        # The spectrum moves to [0, 2 scale]: ARPACK stops relative to the eigenvalue, and
        # now that means relative to the norm, even for eigenvalues of A near zero.
        shift = scale = _norm(counted, rng)
        H = Shifted(counted, shift, scale=sign)
        known = _Known(known.vectors, sign * known.values + shift)
        found = _iterative(H, k, rng, limits=limits, known=known, scale=scale)
    ritz = _merged(found, _certified(H, known, k), k)
    limit = _limit(limits.tol, scale)
    converged = bool((ritz.residuals <= limit).all())
    if not converged:
        _warn(ritz.residuals, limit, limits)
    vectors = _with_fixed_signs(ritz.vectors)
    if limits.warm is not None:
        limits.warm.vectors = vectors
    return EigenPairs(
        values=sign * (ritz.values - shift),
        vectors=vectors,
        residuals=ritz.residuals,
        converged=converged,
        n_products=None if method == "dense" else counted.n_products,
    )


def _chosen(A: Symmetric, k: int, method: Method, known: _Known) -> Method:
    """Return the method that is used."""
    n, c = known.vectors.shape
    if _is_direct(n, k, method):
        return "dense"
    if method in {"arpack", "lobpcg"}:
        return method
    # A block of too large a share of all vectors does not fit beside the known ones.
    if c >= k or 4 * chebyshev.block_width(k) > n - c:
        return "arpack"
    if method == "chebyshev":
        return method
    return "chebyshev" if n >= CHEBYSHEV_FROM and as_sum(A) is not None else "arpack"


def _is_direct(n: int, k: int, method: Method) -> bool:
    """Whether LAPACK is to be used; the others cannot deliver nearly all pairs."""
    if method == "auto":
        return n <= DENSE_LIMIT or (k >= DENSE_SHARE * n and n <= MANY_PAIRS_LIMIT)
    return method == "dense" or k >= n - 1


# --- the direct way


def _as_dense(A: Any) -> Floats:
    if isinstance(A, np.ndarray):
        return A
    return np.asarray(A.toarray() if issparse(A) else A @ np.eye(A.shape[1]))


def _direct(H: Floats, k: int, known: _Known, shift: float) -> _Ritz:
    """Compute the largest pairs of the complement of `known` by LAPACK."""
    n, c = known.vectors.shape
    if c:
        H = _as_dense(Deflated(H, known.vectors, shift))
    k = min(k, n - c)
    if k == 0:
        return _Ritz(np.empty(0), np.empty((n, 0)), np.empty(0))
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
    return _Ritz(values, vectors, np.linalg.norm(H @ vectors - vectors * values, axis=0))


# --- the iterative ways


def _filtered(
    H: Shifted, k: int, rng: np.random.RandomState, *, limits: _Limits, known: _Known
) -> tuple[_Ritz, float]:
    """Compute the largest pairs of the complement of `known` by filtering; also the norm."""
    warm = limits.warm or EigenWarmStart()
    # The filter corrects bounds that are not quite right; of any matrix here they are estimates.
    if warm.vectors is None or warm.spectrum is None:
        warm.spectrum = _spectrum_bounds(H, rng)
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
    return _Ritz(scale * found.values, found.vectors, scale * found.residuals), scale


def _spectrum_bounds(H: Any, rng: np.random.RandomState) -> tuple[float, float, float]:
    """Return a lower bound of the spectrum, its upper end, and its largest magnitude, about.

    The bound is the lowest of ten Ritz values less its residual: not certain, but never far off.
    """
    alphas, betas = _lanczos(H, rng.uniform(-1, 1, size=H.shape[0]), 10)
    values, vectors = eigh_tridiagonal(alphas, betas[:-1])
    low = float(values[0] - abs(betas[-1] * vectors[-1, 0]))
    return low, float(values[-1]), float(np.abs(values).max()) or 1.0


def _iterative(
    H: Shifted, k: int, rng: np.random.RandomState, *, limits: _Limits, known: _Known, scale: float
) -> _Ritz:
    """Compute the largest pairs of the complement of `known` by Krylov methods.

    Returns at most `k` pairs, which together with `known` hold the `k` largest.
    """
    n, c = known.vectors.shape
    without_known = Deflated(H, known.vectors, 2 * scale) if c else H
    found = nothing = _Ritz(np.empty(0), np.empty((n, 0)), np.empty(0))
    n_wanted = max(k - c, 0)
    # Every round brings at least one vector above the k-th value so far.
    for _ in range(k + 2):
        rest: Any = without_known
        if found.values.size:
            rest = Deflated(without_known, found.vectors, 2 * scale)
        if n_wanted:
            block = _block(rest, n_wanted, rng, limits=limits, scale=scale)
            found = _rayleigh_ritz(H, np.hstack([found.vectors, block]), known, k)
            rest = Deflated(without_known, found.vectors, 2 * scale)
            has_start = limits.warm is not None and limits.warm.vectors is not None
            limits = limits._replace(warm=None)
            if (found.residuals > _limit(limits.tol, scale)).any():
                if not has_start:
                    break
                found = nothing  # a bad start must do no harm
                continue
        last = np.sort(np.append(found.values, known.values))[-k]
        if not _reaches_above(rest, last + limits.tol * scale, H.A.n_products, rng):
            break
        # Copies mostly come in pairs: the symmetry of a ring, a square or a cube.
        n_wanted = min((k + 1) // 2, n - c - found.values.size - 2)
        if n_wanted < 1:
            break
    return found


def _block(H: Any, k: int, rng: np.random.RandomState, *, limits: _Limits, scale: float) -> Floats:
    """Approximate the leading eigenvectors of `H` as well as the limits allow."""
    n = H.shape[0]
    given = _sound(limits.warm, n)
    if limits.method == "lobpcg":
        start = rng.uniform(-1, 1, size=(n, k))
        start[:, : given.shape[1]] *= START_NOISE
        start[:, : given.shape[1]] += given[:, :k] * np.sqrt(n)
        return _lobpcg(H, start, limits.max_iter, limits.tol * scale)
    start = rng.uniform(-1, 1, size=n)
    if given.shape[1]:
        # A vector with a share in each of them.
        start = given @ rng.uniform(1, 2, size=given.shape[1]) + START_NOISE * start / np.sqrt(n)
    options: dict[str, Any] = {"rng": rng.randint(2**31)} if ARPACK_TAKES_RNG else {}
    try:
        # H has eigenvalues up to 2 scale, and ARPACK's tolerance is relative to them.
        _, vectors = eigsh(
            H,
            k,
            which="LA",
            v0=start,
            ncv=_basis_size(n, k),
            tol=limits.tol / 2,
            maxiter=limits.max_iter,
            **options,
        )
    except (ArpackNoConvergence, ArpackError) as error:
        partial = getattr(error, "eigenvectors", np.empty((n, 0)))
        missing = k - partial.shape[1]
        start = np.hstack([partial, rng.uniform(-1, 1, size=(n, missing))])
        n_iter = min(limits.max_iter, 50)
        return _lobpcg(H, start, n_iter, limits.tol * scale)
    return np.asarray(vectors)


def _sound(warm: EigenWarmStart | None, n: int) -> Floats:
    """Return the start vectors that are finite and not zero, of unit length."""
    start = None if warm is None else warm.vectors
    if start is None:
        return np.empty((n, 0))
    lengths = np.linalg.norm(start, axis=0)
    sound = np.isfinite(lengths) & (lengths > 0)
    return np.asarray(start[:, sound] / lengths[sound])


def _basis_size(n: int, k: int) -> int:
    """Vectors ARPACK keeps: more cost memory and time a step, fewer cost restarts."""
    return min(n, 2 * k + 20)


def _lobpcg(H: Any, start: Floats, max_iter: int, tol: float) -> Floats:
    """Improve a block of vectors; hand it back unimproved if that fails."""
    start, _ = qr(start, mode="economic")
    with warnings.catch_warnings():
        # Our own warning, on the final residuals, replaces those of LOBPCG.
        warnings.simplefilter("ignore")
        try:
            _, vectors = lobpcg(H, start, largest=True, tol=tol, maxiter=max_iter)
        except (np.linalg.LinAlgError, ValueError):
            return start
    return vectors if np.isfinite(vectors).all() else start


def _rayleigh_ritz(H: Any, block: Floats, known: _Known, k: int) -> _Ritz:
    """Return the `k` best approximations in the span of a block, orthogonal to `known`."""
    if known.values.size:
        block = block - known.vectors @ (known.vectors.T @ block)
    Q, _ = qr(block, mode="economic", overwrite_a=True)
    HQ = H @ Q
    _check_finite(HQ)
    values, rotation = eigh(Q.T @ HQ)
    values, rotation = values[::-1][:k], rotation[:, ::-1][:, :k]
    vectors = Q @ rotation
    return _Ritz(values, vectors, np.linalg.norm(HQ @ rotation - vectors * values, axis=0))


def _norm(A: Counted, rng: np.random.RandomState) -> float:
    """Estimate the largest magnitude of an eigenvalue, from below, by ten products."""
    alphas, betas = _lanczos(A, rng.uniform(-1, 1, size=A.shape[0]), 10)
    return float(np.abs(eigvalsh_tridiagonal(alphas, betas[:-1])).max()) or 1.0


def _reaches_above(H: Any, bound: float, n_products: int, rng: np.random.RandomState) -> bool:
    """Whether a short Lanczos run proves that `H` has an eigenvalue above `bound`.

    A Ritz value is never above the largest eigenvalue: yes is certain, no is not. Without
    storing or orthogonalising a basis a step costs little more than its product, and copies
    of Ritz values that this brings do no harm to the largest.
    """
    n_steps = max(CHECK_LEAST, int(CHECK_SHARE * n_products))
    if H.shape[0] <= CHECK_THOROUGHLY:
        n_steps = max(THOROUGH_LEAST, int(THOROUGH_SHARE * n_products))
    alphas, betas = _lanczos(H, rng.uniform(-1, 1, size=H.shape[0]), n_steps)
    last = alphas.size - 1
    top = eigvalsh_tridiagonal(alphas, betas[:-1], select="i", select_range=(last, last))
    return bool(top[0] > bound)


def _lanczos(A: Any, start: Floats, n_steps: int) -> tuple[Floats, Floats]:
    """Return the diagonal and off-diagonal of the Lanczos matrix of `A`.

    The last entry of the latter leads out of the matrix.
    """
    alphas: list[float] = []
    betas: list[float] = []
    v, v_before, beta = start / np.linalg.norm(start), np.zeros_like(start), 0.0
    for _ in range(min(n_steps, start.size)):
        w = A @ v
        alpha = float(v @ w)
        if not np.isfinite(alpha):
            _check_finite(w)
        alphas.append(alpha)
        w -= alpha * v
        w -= beta * v_before
        beta = float(np.linalg.norm(w))
        betas.append(beta)
        # The space is invariant: what is left is rounding.
        if beta <= ROUNDING * max(map(abs, alphas)):
            break
        v, v_before = w / beta, v
    return np.array(alphas), np.array(betas)


# --- what all ways end in


def _limit(tol: float, scale: float) -> float:
    """Return the largest residual that counts as converged."""
    return SLACK * max(tol, ROUNDING) * scale


def _certified(H: Any, known: _Known, k: int) -> _Ritz:
    """Return the `k` largest known pairs, dense, with their residuals."""
    order = np.argsort(-known.values, kind="stable")[:k]
    values, chosen = known.values[order], known.vectors[:, order]
    vectors = _as_dense(chosen)
    return _Ritz(values, vectors, np.linalg.norm(H @ vectors - vectors * values, axis=0))


def _merged(found: _Ritz, known: _Ritz, k: int) -> _Ritz:
    """Return the `k` largest of both; of equal values the known ones come first."""
    if known.values.size == 0:
        return found
    order = np.argsort(-np.append(known.values, found.values), kind="stable")[:k]
    return _Ritz(
        np.append(known.values, found.values)[order],
        np.hstack([known.vectors, found.vectors])[:, order],
        np.append(known.residuals, found.residuals)[order],
    )


def _with_fixed_signs(vectors: Floats) -> Floats:
    """Turn each vector so that its entry of largest magnitude is positive.

    The rule does not depend on the order of the entries, except for ties: there the first
    of the tied entries decides.
    """
    magnitude = np.abs(vectors)
    tied = magnitude >= (1 - SIGN_TIE) * magnitude.max(axis=0)
    deciding = vectors[tied.argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(deciding < 0, -1.0, 1.0)


def _check_finite(product: Floats) -> None:
    finite = np.isfinite(product)
    if not finite.all():
        row = int(np.argwhere(~finite)[0][0])
        message = (
            f"A product with the matrix is not finite in row {row}: the matrix holds NaN or "
            f"infinite entries there, or entries too large to add. Check the weights of "
            f"vertex {row} and its neighbours."
        )
        raise ValueError(message)


def _warn(residuals: Floats, limit: float, limits: _Limits) -> None:
    message = (
        f"{np.sum(residuals > limit)} of {residuals.size} eigenpairs did not converge: the "
        f"worst residual is {residuals.max():.1e}, the limit for tol={limits.tol:g} is "
        f"{limit:.1e}. Increase max_iter (now {limits.max_iter}) or tol, or use "
        f"method='dense' if the matrix fits into memory."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


# --- factors of the right-hand side


class _Factor(NamedTuple):
    """A factor `G` of ``B = G G'`` by its two solves: ``G^-1 X`` and ``G^-T X``."""

    solve: Callable[[Floats], Floats]
    solve_transposed: Callable[[Floats], Floats]


def _factor(B: Any) -> _Factor:
    if B.ndim == 1:
        return _diagonal_factor(B)
    if not issparse(B):
        return _dense_factor(B)
    diagonal = B.diagonal()
    if B.nnz == np.count_nonzero(diagonal):
        return _diagonal_factor(diagonal)
    return sparse_factor(B)


def _diagonal_factor(diagonal: Floats) -> _Factor:
    _check_positive(diagonal)
    s = 1 / np.sqrt(diagonal)

    def solve(X: Floats) -> Floats:
        return np.asarray(s * X if X.ndim == 1 else s[:, np.newaxis] * X)

    return _Factor(solve, solve)


def _dense_factor(B: Floats) -> _Factor:
    G = cholesky(B, lower=True)
    _check_positive(G.diagonal() ** 2)

    def solve(X: Floats) -> Floats:
        return np.asarray(solve_triangular(G, X, lower=True, check_finite=False))

    def solve_transposed(X: Floats) -> Floats:
        return np.asarray(solve_triangular(G, X, lower=True, trans="T", check_finite=False))

    return _Factor(solve, solve_transposed)


def sparse_factor(B: csr_array) -> _Factor:
    """Factor a sparse `B` by SuperLU, which has no Cholesky but can be made to do one.

    Without pivoting ``P B P' = L U`` and ``U = diag(U) L'``, so ``G = P' L diag(U)^1/2``.
    """
    options = {"SymmetricMode": True}
    lu = splu(csc_array(B), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    pivots = lu.U.diagonal()
    _check_positive(pivots)
    # A triangular matrix is its own factor: this only gives its fast solves, for blocks.
    G = splu(
        csc_array(lu.L @ diags_array(np.sqrt(pivots))),
        permc_spec="NATURAL",
        diag_pivot_thresh=0.0,
        options=options,
    )
    place = lu.perm_c
    order = np.argsort(place)

    def solve(X: Floats) -> Floats:
        return np.asarray(G.solve(X[order]))

    def solve_transposed(X: Floats) -> Floats:
        return np.asarray(G.solve(X, "T")[place])

    return _Factor(solve, solve_transposed)


def _check_positive(pivots: Floats) -> None:
    # A pivot that is nothing but rounding means a singular matrix.
    smallest = pivots.size * np.finfo(np.float64).eps * np.abs(pivots).max(initial=0.0)
    bad = np.flatnonzero(~(pivots > smallest))
    if bad.size:
        message = (
            f"The right-hand matrix is not positive definite: pivot {bad[0]} is "
            f"{pivots[bad[0]]:.3g}. Add a small multiple of the identity to it."
        )
        raise np.linalg.LinAlgError(message)
