r"""Generalised eigenproblems :math:`A x = \lambda B x`, by way of a factor of `B` or its solves."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csc_array, csr_array, diags_array, issparse
from scipy.sparse.linalg import ArpackError, aslinearoperator, eigsh, splu

from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg.eigen import (
    DEFAULT_MAX_ITER,
    DEFAULT_TOL,
    EigenPairs,
    fix_signs,
    smallest,
)
from linkwise.linalg.krylov import ARPACK_TAKES_RNG, Method, basis_size
from linkwise.linalg.operators import Congruence, Counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse.linalg import LinearOperator

    from linkwise._types import Floats, Graph, Symmetric


def generalized_smallest(
    A: Symmetric,
    B: Graph,
    k: int,
    *,
    rng: np.random.RandomState,
    tol: float = DEFAULT_TOL,
    method: Method = "auto",
    max_iter: int | None = None,
) -> EigenPairs:
    r"""Compute the `k` smallest eigenpairs of :math:`A x = \lambda B x`, in increasing order.

    `B` is symmetric and positive definite (else LinAlgError), or the diagonal of such a matrix.
    With a factor :math:`B = G G^T` the problem is the standard one of :math:`G^{-1} A G^{-T}`,
    which `smallest` solves to `tol`. The factor is a square root when `B` is diagonal, and a
    Cholesky factor, dense or sparse like `B`, otherwise. The vectors are B-orthonormal, the
    residuals are the norms of ``A x - lambda B x``, and `converged` is that of the standard
    problem.

    Examples
    --------
    >>> A, B = np.diag([1.0, 3.0, 2.0]), np.array([1.0, 10.0, 1.0])
    >>> generalized_smallest(A, B, 2, rng=np.random.RandomState(0)).values.round(12).tolist()
    [0.3, 1.0]
    """
    factor = _factor(B)
    C = Congruence(A, factor.solve_transposed, factor.solve)
    standard = smallest(C, k, rng, tol=tol, method=method, max_iter=max_iter)
    X = fix_signs(factor.solve_transposed(standard.vectors))
    BX = B[:, np.newaxis] * X if B.ndim == 1 else B @ X
    residuals = np.linalg.norm(A @ X - BX * standard.values, axis=0)
    return EigenPairs(standard.values, X, residuals, standard.converged, standard.n_products)


def pencil_largest(
    A: Symmetric,
    B: Symmetric,
    k: int,
    *,
    rng: np.random.RandomState,
    inverse: LinearOperator,
    tol: float = 1e-9,
    max_iter: int | None = None,
) -> EigenPairs:
    r"""Compute the `k` largest eigenpairs of :math:`A x = \mu B x`, in decreasing order.

    Lanczos in the inner product of `B` (ARPACK's second mode), from solves with `B` by `inverse`,
    its pseudoinverse. `A` may be indefinite. `B` is positive definite on the range of `inverse`, to
    which all vectors belong; outside of it both matrices are zero. `k` is less than its dimension
    by two or more; `tol` is relative to each value. The vectors are B-orthonormal, the residuals
    are the norms of ``A x - mu B x``. When ARPACK gives up, only the pairs that it found come back,
    with a ``ConvergenceWarning``.

    Examples
    --------
    >>> A, B = np.diag(np.arange(-20.0, 20.0)), np.diag(np.full(40, 2.0))
    >>> inverse = np.diag(1 / B.diagonal())
    >>> rng = np.random.RandomState(0)
    >>> pencil_largest(A, B, 2, rng=rng, inverse=inverse).values.round(9).tolist()
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
            ncv=min(basis_size(n, k), n - 1),
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
    values, vectors = values[order], fix_signs(vectors[:, order])
    residuals = np.linalg.norm(counted @ vectors - (B @ vectors) * values, axis=0)
    return EigenPairs(values, vectors, residuals, converged, counted.n_products)


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
        raise np.linalg.LinAlgError(
            f"The right-hand matrix is not positive definite: pivot {bad[0]} is "
            f"{pivots[bad[0]]:.3g}. Add a small multiple of the identity to it."
        )
