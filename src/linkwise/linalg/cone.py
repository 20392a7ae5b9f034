r"""Least squares over the positive semidefinite matrices.

Minimises :math:`\sum_t w_t (\langle A_t, M \rangle - b_t)^2` over symmetric :math:`M \succeq 0`.
Symmetric matrices are held as vectors: the upper triangle, its off-diagonal part times the square
root of two, so that inner products stay what they were. In these coordinates the objective is one
small quadratic form, whatever the number of terms.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg import eigen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Floats


# Entries of the block of terms that is in memory at a time: 32 MB.
BLOCK_ENTRIES = 4_000_000
CHECK_EVERY = 10  # the certificate costs as much as an iteration
ROUNDING = 1e-10  # of the objective at zero: no gap below this is judged


class QuadraticForm(NamedTuple):
    """``x' H x - 2 g' x + c``, the objective in vector coordinates."""

    H: Floats
    g: Floats
    c: float

    def at(self, x: Floats) -> float:
        """Return the value."""
        return float(x @ (self.H @ x) - 2 * self.g @ x + self.c)

    def plus(self, other: QuadraticForm) -> QuadraticForm:
        """Return the sum of both."""
        return QuadraticForm(self.H + other.H, self.g + other.g, self.c + other.c)


class ConeSolution(NamedTuple):
    """A minimiser, with its certificate."""

    M: Floats
    objective: float
    gap: float  # no positive semidefinite matrix has an objective lower by more than this
    n_iter: int
    converged: bool


def to_vector(M: Floats) -> Floats:
    """Return the coordinates of a symmetric matrix.

    Examples
    --------
    >>> M = np.array([[1.0, 2.0], [2.0, 3.0]])
    >>> bool(np.isclose(to_vector(M) @ to_vector(M), (M * M).sum()))
    True
    """
    rows, columns = np.triu_indices(M.shape[0])
    return np.asarray(M[rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2)))


def to_matrix(x: Floats, m: int) -> Floats:
    """Return the symmetric matrix with these coordinates."""
    rows, columns = np.triu_indices(m)
    M = np.zeros((m, m))
    M[rows, columns] = x / np.where(rows == columns, 1.0, np.sqrt(2))
    M[columns, rows] = M[rows, columns]
    return M


def products(U: Floats, V: Floats, *, target: Floats, weight: Floats) -> QuadraticForm:
    """Return ``sum_t weight_t (u_t' M v_t - target_t)^2`` over the rows of `U` and `V`."""
    m = U.shape[1]
    size = m * (m + 1) // 2
    H, g = np.zeros((size, size)), np.zeros(size)
    rows, columns = np.triu_indices(m)
    scale = np.where(rows == columns, 0.5, np.sqrt(0.5))
    for block in _blocks(U.shape[0], size):
        u, v, w = U[block], V[block], weight[block]
        A = scale * (u[:, rows] * v[:, columns] + u[:, columns] * v[:, rows])
        g += (w * target[block]) @ A
        A *= np.sqrt(w)[:, None]
        H += A.T @ A
    return QuadraticForm(H, g, float(weight @ target**2))


def _blocks(n_terms: int, size: int) -> Iterator[slice]:
    step = max(1, BLOCK_ENTRIES // size)
    for first in range(0, n_terms, step):
        yield slice(first, first + step)


def minimize(
    form: QuadraticForm,
    start: Floats,
    rng: np.random.RandomState,
    *,
    trace_bound: float,
    tol: float = 1e-6,
    max_iter: int = 20_000,
) -> ConeSolution:
    r"""Minimise a convex quadratic form over the positive semidefinite matrices.

    Accelerated projected gradients, restarted whenever a step goes uphill. With `Z` half the
    gradient at `M`, convexity gives for any :math:`M^* \succeq 0`

    .. math:: f(M) - f(M^*) \le 2 \langle Z, M \rangle - 2 \min(0, \lambda_{\min}(Z)) \, tr M^* ,

    and `trace_bound`, which no minimiser exceeds, makes the right-hand side a certificate. It is
    zero exactly where the optimality conditions hold: `Z` positive semidefinite and orthogonal to
    `M`. Stops when it is at most the share `tol` of the objective, else with a
    ``ConvergenceWarning``.

    Examples
    --------
    >>> U, one = np.eye(2), np.ones(2)
    >>> form = products(U, U, target=np.array([1.0, -1.0]), weight=one)
    >>> found = minimize(form, np.zeros((2, 2)), np.random.RandomState(0), trace_bound=4)
    >>> found.M.round(6).tolist(), round(found.objective, 6)
    ([[1.0, 0.0], [0.0, 0.0]], 1.0)
    """
    m = start.shape[0]
    top = eigen.largest(form.H, 1, rng, tol=1e-3)
    # Ritz values are from below.
    lipschitz = float(top.values[0] + top.residuals[0]) * (1 + 1e-12) or 1.0
    x = y = to_vector(start)
    t, gap, n_iter = 1.0, np.inf, 0
    while n_iter < max_iter:
        n_iter += 1
        x_next = _projected(y - (form.H @ y - form.g) / lipschitz, m)
        if (y - x_next) @ (x_next - x) > 0:  # uphill: restart the momentum
            t, y = 1.0, x_next
        else:
            t_next = (1 + np.sqrt(1 + 4 * t**2)) / 2
            t, y = t_next, x_next + (t - 1) / t_next * (x_next - x)
        x = x_next
        if n_iter % CHECK_EVERY == 0:
            gap = _gap(x, form.H @ x - form.g, m, trace_bound=trace_bound)
            if gap <= max(tol * form.at(x), ROUNDING * form.c):
                break
    objective = max(form.at(x), 0.0)
    converged = bool(gap <= max(tol * objective, ROUNDING * form.c))
    found = ConeSolution(to_matrix(x, m), objective, gap, n_iter, converged)
    if not converged:
        _warn(found, tol, least=ROUNDING * form.c)
    return found


def _warn(found: ConeSolution, tol: float, *, least: float) -> None:
    message = (
        f"The search for M stopped after {found.n_iter} iterations at a relative duality gap of "
        f"{found.gap / max(found.objective, least):.1e}; the limit is {tol:.0e}. Raise ridge, "
        "or lower n_components."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=3)


def _projected(x: Floats, m: int) -> Floats:
    """Return the nearest positive semidefinite matrix: negative eigenvalues become zero."""
    values, vectors = np.linalg.eigh(to_matrix(x, m))
    return to_vector((vectors * np.maximum(values, 0)) @ vectors.T)


def _gap(x: Floats, z: Floats, m: int, *, trace_bound: float) -> float:
    """Bound how far `x` is from the minimum; `z` is half the gradient."""
    lowest = float(np.linalg.eigvalsh(to_matrix(z, m))[0])
    return max(2 * float(z @ x) - 2 * min(0.0, lowest) * trace_bound, 0.0)
