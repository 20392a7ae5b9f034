r"""The lowest eigenpairs of a pencil of two Laplacians, :math:`A z = \lambda B z`.

`A` is positive semidefinite with a known kernel; :math:`B = I + P` with `P` sparse, positive
semidefinite, and zero but for the rows of some vertices. `lowest` has two ways:

- *Lanczos*. With a root `R` of the inverse, :math:`R^T B R = I`, the problem is the standard one
  of :math:`R^T A R`. Only the rows of `P` are touched: by small blocks where these rows fall into
  small connected sets, by a sparse Cholesky factor if that cannot fill up, and by a Chebyshev
  polynomial otherwise.
- *Multigrid*. LOBPCG on the pencil itself, preconditioned by smoothed aggregation of `A`. Its
  iterations hardly grow with the diameter of the graph.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate
from scipy.linalg import cholesky, eigh, qr, solve_triangular
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, issparse
from scipy.sparse.linalg import lobpcg

from linkwise._optional import require
from linkwise._quiet import quiet
from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg import eigen
from linkwise.linalg.blocks import BlockMatrix
from linkwise.linalg.eigen import EigenPairs
from linkwise.linalg.generalized import sparse_factor
from linkwise.linalg.krylov import SLACK
from linkwise.linalg.laplacian import symmetric_components
from linkwise.linalg.operators import Congruence

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats, Graph, Ints, Matrix

    Product: TypeAlias = Callable[[Floats], Floats]

Solver = Literal["lanczos", "multigrid"]

# Small eigenvalues are what separates clusters: on moons of 100,000 samples the second is 5e-5,
# and the residual must stay far below it.
TOL = 1e-7
# Vertices that are left once all of degree two or less are eliminated from the graph of `P`, at
# most: their factor may be dense, with two million entries at this size.
MAX_CORE = 2_000
# Vertices of the largest connected set of changed rows whose root is written down as a matrix: each
# of them gets the neighbours of all others.
MAX_SET = 32
POLYNOMIAL_TOL = 1e-13
MAX_ITER = 500
# Multigrid needs a definite matrix; the kernel is projected out of every vector anyway.
REGULARIZATION = 1e-8


class InverseRoot(NamedTuple):
    """A root `R` of the inverse, ``R R' = B^-1``, by its two products."""

    product: Product  # R X
    transposed: Product  # R' X


def lowest(
    A: Graph,
    B: csr_array,
    k: int,
    *,
    rng: np.random.RandomState,
    kernel: Floats,
    solver: Solver = "lanczos",
) -> EigenPairs:
    """Compute the `k` lowest eigenpairs of ``A z = lambda B z``, those of the kernel first.

    `A` is symmetric positive semidefinite, `B` the identity plus a sparse such matrix, and `kernel`
    a B-orthonormal basis of the kernel of `A`, of fewer than `k` columns. The solver
    ``"multigrid"`` needs a sparse `A` and pyamg. The vectors are B-orthonormal, the residuals are
    ``||A z - lambda B z||``. As `B` is no less than the identity, an eigenvalue of the pencil lies
    within each of them.

    Examples
    --------
    >>> A = csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> B = csr_array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 2.0]])
    >>> kernel = np.full((3, 1), 3**-0.5)
    >>> lowest(A, B, 2, rng=np.random.RandomState(0), kernel=kernel).values.round(9).tolist()
    [0.0, 0.333333333]
    """
    solve = _by_multigrid if solver == "multigrid" and issparse(A) else _by_lanczos
    found = solve(A, B, k, rng=rng, kernel=kernel)
    residuals = _residuals(A, B, found.values, vectors=found.vectors)
    return replace(found, residuals=residuals)


def _residuals(A: Matrix, B: csr_array, values: Floats, *, vectors: Floats) -> Floats:
    return np.asarray(np.linalg.norm(A @ vectors - (B @ vectors) * values, axis=0))


def _by_lanczos(
    A: Graph, B: csr_array, k: int, *, rng: np.random.RandomState, kernel: Floats
) -> EigenPairs:
    N = None if isinstance(A, np.ndarray) else root_minus_identity(B)
    if N is None:
        R = inverse_root(B)
        C: Any = Congruence(A, R.product, R.transposed)
    else:
        M = csr_array(N.T)
        R = InverseRoot(lambda X: X + N @ X, lambda X: X + M @ X)
        # (I + N)' A (I + N), where N has few rows: hardly more than one copy of A.
        AN = _times_few_rows(A, N)
        inner = M @ AN
        C = A + csr_array(AN + AN.T + (inner + inner.T) / 2)
    # R' B maps B-orthonormal vectors to orthonormal ones.
    known = np.asarray(R.transposed(B @ kernel))
    zeros = np.zeros(kernel.shape[1])
    found = eigen.smallest(C, k, rng, tol=TOL, known=known, known_values=zeros)
    return replace(found, values=np.maximum(found.values, 0), vectors=R.product(found.vectors))


def _times_few_rows(A: Any, N: csr_array) -> csr_array:
    """Return ``A N`` for a symmetric `A` and an `N` with entries in few rows."""
    if not isinstance(A, BlockMatrix):
        return csr_array(A @ N)
    rows = np.flatnonzero(np.diff(N.indptr))
    return csr_array(A.rows(rows).T @ N[rows])


def root_minus_identity(B: csr_array) -> csr_array | None:
    """Return ``R - I`` of a root of the inverse as a sparse matrix; None if it would fill up.

    The rows of `P` fall into connected sets, and each has a small triangular block. With it the
    standard problem has a matrix, whose products are faster than those of an operator.
    """
    rows = _changed_rows(B)
    block = csr_array(B[rows][:, rows])
    _, component = symmetric_components(block)
    sizes = np.bincount(component)
    if sizes.max(initial=0) > MAX_SET:
        return None
    order = np.argsort(component, kind="stable")
    block, ends = csr_array(block[order][:, order]), np.cumsum(sizes)
    roots = [_root(block[a:b, a:b].toarray()) for a, b in zip(ends - sizes, ends, strict=True)]
    parts = block_diag(roots, format="coo") if roots else coo_array((0, 0))
    place = rows[order]
    N = csr_array((parts.data, (place[parts.row], place[parts.col])), shape=B.shape)
    ones = csr_array((np.ones(rows.size), (rows, rows)), shape=B.shape)
    return csr_array(N - ones)


def _root(B: Floats) -> Floats:
    """Return the upper triangular `R` with ``R R' = B^-1``."""
    factor = cholesky(B, lower=True)
    return np.asarray(solve_triangular(factor, np.eye(len(B)), lower=True).T)


def inverse_root(B: csr_array) -> InverseRoot:
    """Return a root of the inverse of ``B = I + P``; rows without an entry of `P` stay."""
    rows = _changed_rows(B)
    if rows.size == 0:
        return InverseRoot(_unchanged, _unchanged)
    block = csr_array(B[rows][:, rows])
    if _core_bound(block) > MAX_CORE:
        product = _on_rows(rows, _chebyshev_root(block))
        return InverseRoot(product, product)
    factor = sparse_factor(block)
    return InverseRoot(_on_rows(rows, factor.solve_transposed), _on_rows(rows, factor.solve))


def _changed_rows(B: csr_array) -> Ints:
    """Return the rows in which `B` differs from the identity."""
    changed = (B - eye_array(B.shape[0], format="csr")).tocsr()
    changed.eliminate_zeros()
    return np.flatnonzero(np.diff(changed.indptr))


def _core_bound(B: csr_array) -> int:
    """Bound the vertices of degree three or more that stay when all others are eliminated.

    A connected graph with ``c`` independent cycles has at most ``2 c - 2`` of them. Elimination
    by least degree takes the others first, without any fill.
    """
    n = B.shape[0]
    n_edges = (B.nnz - n) // 2
    n_components, _ = symmetric_components(B)
    return min(n, 2 * (n_edges - n + n_components))


def _unchanged(X: Floats) -> Floats:
    return X


def _on_rows(rows: Ints, product: Product) -> Product:
    def apply(X: Floats) -> Floats:
        changed = X.copy()
        changed[rows] = product(X[rows])
        return changed

    return apply


def _chebyshev_root(B: csr_array) -> Product:
    """Return the product with ``B^-1/2`` by a polynomial, for a spectrum in ``[1, bound]``.

    A polynomial of a symmetric matrix is symmetric: what Lanczos sees is exactly symmetric too.
    """
    bound = float(abs(B).sum(axis=1).max())
    shrink = (np.sqrt(bound) + 1) / (np.sqrt(bound) - 1)
    degree = int(np.ceil(np.log(4 / POLYNOMIAL_TOL) / np.log(shrink)))
    middle, half = (bound + 1) / 2, (bound - 1) / 2

    def inverse_sqrt(t: Any) -> Any:
        return (middle + half * t) ** -0.5

    coefficients = np.asarray(chebinterpolate(inverse_sqrt, degree))

    def product(X: Floats) -> Floats:
        # Clenshaw's recurrence on (B - middle) / half, whose spectrum is in [-1, 1].
        b, b_next = coefficients[-1] * X, np.zeros_like(X)
        for c in coefficients[-2:0:-1]:
            b, b_next = (2 / half) * (B @ b - middle * b) - b_next + c * X, b
        return np.asarray((B @ b - middle * b) / half - b_next + coefficients[0] * X)

    return product


def _by_multigrid(
    A: csr_array, B: csr_array, k: int, *, rng: np.random.RandomState, kernel: Floats
) -> EigenPairs:
    n, c = kernel.shape
    if n <= max(eigen.DENSE_LIMIT, 10 * k):  # LOBPCG needs a block much narrower than long
        return _by_lanczos(A, B, k, rng=rng, kernel=kernel)
    start = rng.uniform(-1, 1, size=(n, k - c))
    M = _multigrid(A, kernel)
    with quiet():  # our own warning, on the final residuals, replaces those of LOBPCG
        _, vectors = lobpcg(A, start, B, M, kernel, tol=TOL, maxiter=MAX_ITER, largest=False)
    found = _rayleigh_ritz(A, B, vectors)
    worst, limit = found.residuals.max(), SLACK * TOL
    converged = bool(worst <= limit)
    if not converged:
        message = (
            f"LOBPCG did not converge: the worst residual is {worst:.1e}, the limit is "
            f"{limit:.1e}. Take solver='lanczos'."
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=5)
    return EigenPairs(
        np.append(np.zeros(c), found.values),
        np.hstack([kernel, found.vectors]),
        np.append(np.zeros(c), found.residuals),
        converged,
        n_products=None,
    )


def _multigrid(A: csr_array, kernel: Floats) -> Any:
    pyamg = require("pyamg", extra="large", purpose="solver='multigrid'")
    shifted = csr_array(A + REGULARIZATION * eye_array(A.shape[0], format="csr"))
    # pyamg takes no others; SciPy 1.13 makes those of a sum 64 bits long.
    shifted.indices, shifted.indptr = (
        part.astype(np.int32, copy=False) for part in (shifted.indices, shifted.indptr)
    )
    # The profile of the kernel, once for all components, is what coarse levels must represent.
    near_kernel = np.abs(kernel).max(axis=1, keepdims=True)
    return pyamg.smoothed_aggregation_solver(shifted, B=near_kernel).aspreconditioner()


def _rayleigh_ritz(A: csr_array, B: csr_array, block: Floats) -> EigenPairs:
    """Return the best approximations in the span of a block."""
    Q, _ = qr(block, mode="economic")
    values, rotation = eigh(Q.T @ (A @ Q), Q.T @ (B @ Q))
    residuals = _residuals(A, B, values, vectors=Q @ rotation)
    return EigenPairs(values, Q @ rotation, residuals, converged=True, n_products=None)
