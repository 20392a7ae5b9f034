"""The leading eigenpairs of a symmetric operator by Krylov methods: ARPACK, LOBPCG, Lanczos.

A Krylov space contains one vector of an eigenspace, however many dimensions that has. Once ARPACK
is done, a short Lanczos run in the complement of what it found looks for values above the last one;
as long as there are any, they are computed and merged.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal, eigvalsh_tridiagonal, qr
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh, lobpcg

from linkwise._quiet import quiet
from linkwise.linalg.operators import Counted, Deflated, Shifted

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph
    from linkwise.linalg.warm import EigenWarmStart

Method = Literal["auto", "dense", "arpack", "lobpcg", "chebyshev"]

# Rounding alone leaves residuals of some hundred epsilons: no tolerance below this is judged.
ROUNDING = 1e-12
# Solvers stop on estimates, which differ from the true residuals by rounding and by the
# rotation that ends the computation.
SLACK = 4.0
# Share of a random vector in start vectors made of given ones: these may lack a direction.
START_NOISE = 1e-2
NORM_STEPS = 10  # of Lanczos, to estimate the spectrum bounds or the norm
# Products the search for missed eigenpairs may cost: a share of those spent so far, and a least
# number. Up to CHECK_THOROUGHLY rows, where regular grids and rings mostly live and a product
# is cheap, it searches longer.
CHECK_SHARE, CHECK_LEAST = 0.25, 30
CHECK_THOROUGHLY = 5_000
THOROUGH_SHARE, THOROUGH_LEAST = 0.5, 100
# scipy < 1.17 draws the vectors that leave an invariant subspace from a state of its own.
ARPACK_TAKES_RNG = "rng" in signature(eigsh).parameters


class Limits(NamedTuple):
    """How a solver works: its name, when it stops, where it starts."""

    method: Method
    tol: float
    max_iter: int
    warm: EigenWarmStart | None
    warns: bool = True  # if it stops before it has converged


class Known(NamedTuple):
    """Orthonormal eigenvectors given by the caller, dense or sparse, possibly none."""

    vectors: Graph
    values: Floats


class Ritz(NamedTuple):
    """Approximate eigenpairs in decreasing order, with the norms of their residuals."""

    values: Floats
    vectors: Floats
    residuals: Floats


def krylov_pairs(
    H: Shifted, k: int, rng: np.random.RandomState, *, limits: Limits, known: Known, scale: float
) -> Ritz:
    """Compute the largest pairs of the complement of `known` by Krylov methods.

    Returns at most `k` pairs, which together with `known` hold the `k` largest.
    """
    n, c = known.vectors.shape
    without_known = Deflated(H, known.vectors, 2 * scale) if c else H
    found = nothing = Ritz(np.empty(0), np.empty((n, 0)), np.empty(0))
    n_wanted = max(k - c, 0)
    # Every round brings at least one vector above the k-th value so far.
    for _ in range(k + 2):
        rest: Any = without_known
        if found.values.size:
            rest = Deflated(without_known, found.vectors, 2 * scale)
        if n_wanted:
            block = _block(rest, n_wanted, rng, limits=limits, scale=scale)
            found = _rayleigh_ritz(H, np.hstack([found.vectors, block]), known, k=k)
            rest = Deflated(without_known, found.vectors, 2 * scale)
            has_start = limits.warm is not None and limits.warm.vectors is not None
            limits = limits._replace(warm=None)
            if (found.residuals > SLACK * max(limits.tol, ROUNDING) * scale).any():
                if not has_start:
                    break
                found = nothing  # a bad start must do no harm
                continue
        last = np.sort(np.append(found.values, known.values))[-k]
        if not _reaches_above(rest, last + limits.tol * scale, rng, n_products=H.A.n_products):
            break
        # Copies mostly come in pairs: the symmetry of a ring, a square or a cube.
        n_wanted = min((k + 1) // 2, n - c - found.values.size - 2)
        if n_wanted < 1:
            break
    return found


def _block(H: Any, k: int, rng: np.random.RandomState, *, limits: Limits, scale: float) -> Floats:
    """Approximate the leading eigenvectors of `H` as well as the limits allow."""
    n = H.shape[0]
    given = _sound(limits.warm, n)
    if limits.method == "lobpcg":
        start = rng.uniform(-1, 1, size=(n, k))
        start[:, : given.shape[1]] *= START_NOISE
        start[:, : given.shape[1]] += given[:, :k] * np.sqrt(n)
        return _lobpcg(H, start, max_iter=limits.max_iter, tol=limits.tol * scale)
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
            ncv=basis_size(n, k),
            tol=limits.tol / 2,
            maxiter=limits.max_iter,
            **options,
        )
    except (ArpackNoConvergence, ArpackError) as error:
        partial = getattr(error, "eigenvectors", np.empty((n, 0)))
        missing = k - partial.shape[1]
        start = np.hstack([partial, rng.uniform(-1, 1, size=(n, missing))])
        n_iter = min(limits.max_iter, 50)
        return _lobpcg(H, start, max_iter=n_iter, tol=limits.tol * scale)
    return np.asarray(vectors)


def _sound(warm: EigenWarmStart | None, n: int) -> Floats:
    """Return the start vectors that are finite and not zero, of unit length."""
    start = None if warm is None else warm.vectors
    if start is None:
        return np.empty((n, 0))
    lengths = np.linalg.norm(start, axis=0)
    sound = np.isfinite(lengths) & (lengths > 0)
    return np.asarray(start[:, sound] / lengths[sound])


def basis_size(n: int, k: int) -> int:
    """Vectors ARPACK keeps: more cost memory and time a step, fewer cost restarts."""
    return min(n, 2 * k + 20)


def _lobpcg(H: Any, start: Floats, *, max_iter: int, tol: float) -> Floats:
    """Improve a block of vectors; hand it back unimproved if that fails."""
    start, _ = qr(start, mode="economic")
    with quiet():  # our own warning, on the final residuals, replaces those of LOBPCG
        try:
            _, vectors = lobpcg(H, start, largest=True, tol=tol, maxiter=max_iter)
        except (np.linalg.LinAlgError, ValueError):
            return start
    return vectors if np.isfinite(vectors).all() else start


def _rayleigh_ritz(H: Any, block: Floats, known: Known, *, k: int) -> Ritz:
    """Return the `k` best approximations in the span of a block, orthogonal to `known`."""
    if known.values.size:
        block = block - known.vectors @ (known.vectors.T @ block)
    Q, _ = qr(block, mode="economic", overwrite_a=True)
    HQ = H @ Q
    check_finite(HQ)
    values, rotation = eigh(Q.T @ HQ)
    values, rotation = values[::-1][:k], rotation[:, ::-1][:, :k]
    vectors = Q @ rotation
    return Ritz(values, vectors, np.linalg.norm(HQ @ rotation - vectors * values, axis=0))


def spectrum_bounds(H: Any, rng: np.random.RandomState) -> tuple[float, float, float]:
    """Return a lower bound of the spectrum, its upper end, and its largest magnitude, about.

    The bound is the lowest of ten Ritz values less its residual: not certain, but never far off.
    """
    alphas, betas = lanczos(H, rng, NORM_STEPS)
    values, vectors = eigh_tridiagonal(alphas, betas[:-1])
    low = float(values[0] - abs(betas[-1] * vectors[-1, 0]))
    return low, float(values[-1]), float(np.abs(values).max()) or 1.0


def norm_estimate(A: Counted, rng: np.random.RandomState) -> float:
    """Estimate the largest magnitude of an eigenvalue, from below, by ten products."""
    alphas, betas = lanczos(A, rng, NORM_STEPS)
    return float(np.abs(eigvalsh_tridiagonal(alphas, betas[:-1])).max()) or 1.0


def _reaches_above(H: Any, bound: float, rng: np.random.RandomState, *, n_products: int) -> bool:
    """Whether a short Lanczos run proves that `H` has an eigenvalue above `bound`.

    A Ritz value is never above the largest eigenvalue: yes is certain, no is not. Without
    storing or orthogonalising a basis a step costs little more than its product, and copies
    of Ritz values that this brings do no harm to the largest.
    """
    n_steps = max(CHECK_LEAST, int(CHECK_SHARE * n_products))
    if H.shape[0] <= CHECK_THOROUGHLY:
        n_steps = max(THOROUGH_LEAST, int(THOROUGH_SHARE * n_products))
    alphas, betas = lanczos(H, rng, n_steps)
    last = alphas.size - 1
    top = eigvalsh_tridiagonal(alphas, betas[:-1], select="i", select_range=(last, last))
    return bool(top[0] > bound)


def lanczos(A: Any, rng: np.random.RandomState, n_steps: int) -> tuple[Floats, Floats]:
    """Return the diagonal and off-diagonal of the Lanczos matrix of `A`, from a random vector.

    The last entry of the latter leads out of the matrix.
    """
    alphas: list[float] = []
    betas: list[float] = []
    start = rng.uniform(-1, 1, size=A.shape[0])
    v, v_before, beta = start / np.linalg.norm(start), np.zeros_like(start), 0.0
    for _ in range(min(n_steps, start.size)):
        w = A @ v
        alpha = float(v @ w)
        if not np.isfinite(alpha):
            check_finite(w)
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


def check_finite(product: Floats) -> None:
    """Raise ValueError if a product with the matrix is not finite."""
    finite = np.isfinite(product)
    if not finite.all():
        row = int(np.argwhere(~finite)[0][0])
        raise ValueError(
            f"A product with the matrix is not finite in row {row}: the matrix holds NaN or "
            f"infinite entries there, or entries too large to add. Check the weights of "
            f"vertex {row} and its neighbours."
        )
