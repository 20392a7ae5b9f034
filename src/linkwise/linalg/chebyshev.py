r"""Leading eigenpairs of a large symmetric matrix by Chebyshev-filtered subspace iteration.

A block of more vectors than are wanted is multiplied with a polynomial of the matrix that is small
on the unwanted part of the spectrum and grows fast above it; a Rayleigh-Ritz step then turns the
block into approximate eigenpairs (Zhou, Saad, Tiago & Chelikowsky 2006, *Self-consistent-field
calculations using Chebyshev-filtered subspace iteration*). What is particular here:

- The filter runs in single precision, to any tolerance. For a Ritz pair of residual :math:`r`,

  .. math:: p(A) x = p(\theta) x + q(A) r , \qquad q(t) = \frac{p(t) - p(\theta)}{t - \theta} ,

  and only the second term is computed by products. It is as small as the residual, and so is its
  rounding. Residuals and Rayleigh-Ritz steps are in double precision.
- Leading pairs that have converged take no more part in the filter (they do in Rayleigh-Ritz).
- A large sparse matrix is solved roughly on a coarse level an eighth its size first, and that on a
  level of its own (`linkwise.linalg.aggregation`). What comes out is where the filter starts, with
  some noise: what the coarse level does not contain is found as by random vectors, at tolerances of
  1e-6 and below. (At loose ones the noise has not grown enough when all that it contains has
  converged.)
- The degree follows from the gap that the Ritz values show and from what is missing.

Multiple eigenvalues need no care: a random block meets every direction of an eigenspace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise.linalg import block_kernels as kernels
from linkwise.linalg.aggregation import Aggregates, aggregated
from linkwise.linalg.block_kernels import LANES, RowThreads
from linkwise.linalg.blocks import BlockMatrix
from linkwise.linalg.operators import Sum, as_sum
from linkwise.linalg.ordering import local_order
from linkwise.linalg.warm import EigenWarmStart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import AnyArray, Floats, Ints

    Steps = Sequence[tuple[Floats, Floats, Floats]]  # alpha, beta and gamma of every column


# Vectors beside the wanted ones, as a share of these, and at least.
GUARD_SHARE, GUARD_LEAST = 0.4, 4
# The growth of the leading direction, relative to that of the last wanted one, that single
# precision bears in one filter: its rounding is 6e-8.
MAX_RATIO = 1e6
MAX_DEGREE = 300
MIN_DEGREE = 4
# What the residuals are to lose in one filter, at most: the Ritz values that the next one is made
# of are better, which beats a higher degree.
MAX_GAIN = 1e3
SURPLUS = 2.0  # what is asked of a filter, over what is missing
# Share of the predicted gain that shows that the filter's bound is not too low.
GROWTH_SHARE = 0.7
MARGIN = 0.01  # below a Ritz value that proves the bound of the spectrum wrong
NEAR_TOP = 1e-6  # known values this close to the largest are among the wanted ones
# Rows from which a coarse level is solved first, how well, and the share of noise in what it gives.
COARSE_FROM, COARSE_TOL, COARSE_NOISE, COARSE_ITER = 5_000, 1e-2, 0.1, 20
ROWS_PER_COLUMN = 4  # of the block, that a coarse level has at least
SMOOTHING = 8  # degree of the polynomial that smoothes what the coarse level gives
# Bytes of a block in single precision up to which a good start makes do with the order that the
# rows have: of 100,000 rows a new order costs 35 ms and no product gets faster; of 300,000 it costs
# 130 ms and saves 65 ms a product in double precision.
UNORDERED = 8_000_000
# Degree of the first filter up to which it is made for the bound of another matrix, and so that the
# random vectors beside the start are trusted after it.
BRIEF_DEGREE = 20
KNOWN_SHARE = 0.75  # of the square of a start vector in the known ones, above which it is dropped
# Condition of a block's Gram matrix above which its Ritz vectors are orthogonalised again, and
# relative size of the directions that are dropped.
ROUGH, ROUGH_AT_END, NOTHING = 1e8, 1e3, 1e-13


class Leading(NamedTuple):
    """Approximate eigenpairs in decreasing order, with the norms of their residuals."""

    values: Floats
    vectors: Floats
    residuals: Floats
    n_iter: int  # filters
    n_products: int


def block_width(k: int) -> int:
    """Return the number of vectors in the block for `k` wanted ones.

    Examples
    --------
    >>> [block_width(k) for k in (1, 4, 5, 15, 40)]
    [8, 8, 16, 24, 56]
    """
    width = k + max(GUARD_LEAST, int(np.ceil(GUARD_SHARE * k)))
    return -(-width // LANES) * LANES


def leading(  # noqa: PLR0913
    A: Any,
    k: int,
    rng: np.random.RandomState,
    *,
    bounds: tuple[float, float],
    tol: float,
    known: Any = None,
    known_values: Floats | None = None,
    max_iter: int = 1_000,
    warm: EigenWarmStart | None = None,
) -> Leading:
    """Compute the largest eigenpairs of a symmetric matrix with eigenvalues between -1 and 1.

    At most `k` pairs, orthogonal to the orthonormal eigenvectors `known`; together they hold the
    `k` largest. `block_width` of them must fit into the space several times. What `as_sum` takes
    apart is multiplied in single precision, other operators as they are. `bounds` are a lower bound
    of the spectrum, corrected if Ritz values show that it is none, and about the largest
    eigenvalue. `tol` is the residual aimed at, `max_iter` a limit on the number of filters. The
    answer does not depend on `warm`, only the time does; the order of the rows and the value below
    which the filter damped are written to it.
    """
    values = np.empty(0) if known_values is None else np.sort(known_values)[::-1]
    n_on_top = int((values >= bounds[1] - NEAR_TOP).sum())
    width = block_width(max(k - n_on_top, 1))
    warm = EigenWarmStart() if warm is None else warm
    start = warm.vectors
    if start is not None:
        start = _without(start, known) if values.size else start
        width = max(width, -(-(start.shape[1] + GUARD_LEAST) // LANES) * LANES)
    # From a good start there are too few products to pay for rows in another order.
    brief = start is not None and 4 * A.shape[0] * width <= UNORDERED
    with _product(A, width, None if brief else warm) as product:
        basis = _Basis(product, width, rng, known=known if values.size else None)
        if start is None:
            basis.fill_from_coarse(k, bounds)
        else:
            basis.fill(product.permute(start))
        basis.rayleigh_ritz()
        cutoff = None if start is None else warm.cutoffs.get(k)
        goal = _Goal(k, tol, values, is_warm=start is not None, cutoff=cutoff)
        n_iter = _iterate(basis, goal, bounds=bounds, max_iter=max_iter)
        # The first one stays: that of a short search is less accurate.
        warm.cutoffs.setdefault(k, float(basis.values[-1]))
        return basis.answer(min(k, width), n_iter)


def _without(start: Floats, known: Any) -> Floats:
    """Return the start vectors that are not about linear combinations of the known ones."""
    inside = np.asarray(known.T @ start)
    squares = np.einsum("ij,ij->j", start, start)
    return start[:, np.einsum("ij,ij->j", inside, inside) <= KNOWN_SHARE * squares]


class _Goal(NamedTuple):
    k: int
    tol: float
    known_values: Floats  # decreasing
    is_warm: bool  # the start was given
    cutoff: float | None = None  # below which values are damped, for nearly the same matrix

    def n_wanted(self, values: Floats) -> int:
        """Return how many of these values are among the `k` largest, known ones included."""
        union = np.sort(np.append(values, self.known_values))[::-1]
        last = union[min(self.k, union.size) - 1]
        n_known = int((self.known_values >= last).sum())
        return max(min(self.k - n_known, values.size), 0)


def _iterate(basis: _Basis, goal: _Goal, *, bounds: tuple[float, float], max_iter: int) -> int:
    """Filter until all wanted pairs have converged; return the number of filters."""
    low, high = bounds
    bound = float(basis.values[-1])
    expected, before = np.inf, 0.0
    # Random vectors are trusted to have met every direction once they grew this much. From a
    # random start they have, when anything has converged.
    growth, trusted = 0.0, np.log(10 * np.sqrt(basis.product.n)) if goal.is_warm else 0.0
    # An eigenvalue is at most a residual away from a Ritz value.
    seen = basis.values + basis.norms
    for n_iter in range(max_iter):
        n_wanted = goal.n_wanted(basis.values)
        worst = float(basis.norms[:n_wanted].max(initial=0.0))
        if worst <= goal.tol and growth >= trusted:
            if basis.condition > ROUGH_AT_END:
                basis.rayleigh_ritz()
                continue
            if not goal.is_warm or (basis.values <= seen + goal.tol)[:n_wanted].all():
                return n_iter
            # Wanted vectors that the start had not: there may be more than there were guards.
            growth = 0.0
            basis.renew(n_wanted)
            seen = basis.values + basis.norms
        low = min(low, float(basis.values[-1]) - MARGIN)
        if before < worst * np.exp(min(GROWTH_SHARE * expected, 500.0)):
            bound = float(basis.values[-1])
        last = float(basis.values[max(n_wanted - 1, 0)])
        # The first Ritz values of a random block tell nothing of the largest eigenvalue, which
        # the filter must not let grow out of the range of single precision.
        top = max(float(basis.values[0]), float(goal.known_values.max(initial=-1.0)), high)
        bound = _below(bound, last, low)
        gain = max(SURPLUS * worst / goal.tol, np.exp(trusted - growth), SURPLUS)
        degree = _degree((low, bound), last=last, top=top, gain=min(gain, MAX_GAIN))
        if n_iter == 0 and goal.cutoff is not None:
            # The random vectors of the block have no values yet that would make a good bound.
            better = _below(max(goal.cutoff, bound), last, low)
            trusting = _degree((low, better), last=last, top=top, gain=1.1 * np.exp(trusted))
            if trusting <= BRIEF_DEGREE:
                bound, degree = better, trusting
        expected, before = _log_growth(degree, (low, bound), last), worst
        growth += expected
        n_locked = int(np.argmax(np.append(basis.norms[:n_wanted], np.inf) > goal.tol))
        if not basis.filter((low, bound), degree, n_locked):
            # Something below the bound has grown out of range.
            low = -basis.product.norm_bound()
            basis.fill(None)
        basis.rayleigh_ritz()
    return max_iter


def _below(bound: float, last: float, low: float) -> float:
    """Return the bound, lowered so that the last wanted value can grow at the largest degree."""
    least = 0.5 * (last - low) * 0.5 * (3 / MAX_DEGREE) ** 2
    return max(min(bound, last - least), low + 1e-6)


def _rate(value: float, damped: tuple[float, float]) -> float:
    """Return by how much a value above the damped interval grows a degree, in logarithms."""
    low, bound = damped
    t = (2 * value - low - bound) / (bound - low)
    return float(np.arccosh(max(t, 1.0)))


def _log_growth(degree: int, damped: tuple[float, float], value: float) -> float:
    x = degree * _rate(value, damped)
    return float(x + np.log1p(np.exp(-2 * x)) - np.log(2))


def _degree(damped: tuple[float, float], *, last: float, top: float, gain: float) -> int:
    """Return the degree that brings the gain, within what single precision bears."""
    slow, fast = _rate(last, damped), _rate(top, damped)
    degree = np.arccosh(gain) / max(slow, 1e-9)
    degree = min(degree, np.log(MAX_RATIO) / max(fast - slow, 1e-9), MAX_DEGREE)
    return max(int(np.ceil(degree)), MIN_DEGREE)


# --- the block


class _Basis:
    """A block of Ritz vectors, in decreasing order of their values, with its residuals.

    Three arrays hold everything. While the filter runs, the memory of the products holds both of
    its blocks, in single precision.
    """

    def __init__(
        self, product: _Product, width: int, rng: np.random.RandomState, *, known: Any = None
    ) -> None:
        self.product = product
        self.rng = rng
        self.known = None if known is None else product.permute(known)
        self.X = np.empty((product.n, width))
        self.AX = np.empty((product.n, width))
        self.R = np.zeros((product.n, width), dtype=product.kind)
        self.values, self.norms = np.zeros(width), np.full(width, np.inf)
        self.condition = np.inf
        self._n_done = 0  # columns of X whose products are in AX

    def fill_from_coarse(self, k: int, bounds: tuple[float, float]) -> None:
        """Set the block to vectors of a coarse level of the matrix, else to random ones."""
        coarse = self.product.coarse_level(bounds)
        if coarse is None or coarse.n < ROWS_PER_COLUMN * self.X.shape[1]:
            self.fill(None)
            return
        with coarse:
            small = _Basis(coarse, self.X.shape[1], self.rng)
            small.fill_from_coarse(k, bounds)
            small.rayleigh_ritz()
            goal = _Goal(k, COARSE_TOL, np.empty(0), is_warm=False)
            _iterate(small, goal, bounds=bounds, max_iter=COARSE_ITER)
            coarse.aggregates.prolong(small.X, self.X)
            damped, top = (bounds[0], float(small.values[-1])), max(small.values[0], bounds[1])
        n = self.product.n
        for first in range(0, n, kernels.ROWS_PER_BLOCK):
            rows = self.X[first : first + kernels.ROWS_PER_BLOCK]
            rows += COARSE_NOISE * np.sqrt(3 / n) * self.rng.uniform(-1, 1, size=rows.shape)
        self.smooth(damped, float(top))

    def smooth(self, damped: tuple[float, float], top: float) -> None:
        """Multiply the block with a polynomial, in single precision; no Ritz values are needed.

        Vectors of a coarse level jump between aggregates. That makes large residuals and hides how
        near the vectors are.
        """
        low, bound = damped
        bound = max(bound, low + MARGIN)
        center, half = (low + bound) / 2, (bound - low) / 2
        outside = max((top - center) / half, 1.0)
        one = np.ones(self.X.shape[1])
        ratio = 1 / outside
        alpha, beta = ratio / half, 0.0
        steps = []
        for _ in range(SMOOTHING):
            steps.append((alpha * one, beta * one, 0 * one))
            following = 1 / (2 * outside - ratio)
            alpha, beta, ratio = 2 * following / half, ratio * following, following
        self.X[:] = self.product.recurrence((self.X, self.R), steps, center=center, work=self._work)

    def fill(self, start: Floats | None) -> None:
        """Set the block to the start vectors, and random ones beside."""
        self._n_done = 0
        n_given = 0
        if start is not None:
            lengths = np.linalg.norm(start, axis=0)
            sound = np.isfinite(lengths) & (lengths > 0)
            n_given = int(sound.sum())
            self.X[:, :n_given] = start[:, sound] / lengths[sound]
        n, width = self.X.shape
        self.X[:, n_given:] = self.rng.uniform(-1, 1, size=(n, width - n_given))

    def renew(self, first: int) -> None:
        """Replace the vectors from `first` on by random ones."""
        size = (self.product.n, self.X.shape[1] - first)
        self.X[:, first:] = self.rng.uniform(-1, 1, size=size) / np.sqrt(size[0])
        self.rayleigh_ritz()

    def filter(self, damped: tuple[float, float], degree: int, n_locked: int) -> bool:
        """Multiply the vectors after the locked ones with a Chebyshev polynomial.

        Returns whether that is finite.
        """
        first = n_locked // LANES * LANES
        low, bound = damped
        center, half = (low + bound) / 2, (bound - low) / 2
        t = (self.values[first:] - center) / half
        # With T_i the polynomials and s_i = T_i(max(t, 1)), E_i = (T_i(A) - T_i(t)) x / s_i;
        # `now` is T_i(t) / s_i, and `ratio` is s_(i - 1) / s_i: all of them stay in range.
        outside = np.maximum(t, 1.0)
        ratio, now, before = 1 / outside, t / outside, np.ones_like(t)
        steps = [(ratio / half, 0 * ratio, before)]
        for _ in range(degree - 1):
            following = 1 / (2 * outside - ratio)
            steps.append((2 * following / half, ratio * following, now))
            now, before = 2 * following * t * now - ratio * following * before, now
            ratio = following
        blocks = (None, self.R)
        change = self.product.recurrence(blocks, steps, center=center, first=first, work=self._work)
        self.X[:, first:] *= now
        self.X[:, first:] += change
        # What was locked has not changed: its products follow from its residuals.
        self.AX[:, :first] = self.X[:, :first] * self.values[:first] + self.R[:, :first]
        self._n_done = first
        return bool(np.isfinite(self.X[:, first:].sum(axis=0)).all())

    def _work(self, m: int) -> Any:
        n = self.product.n
        if self.product.kind == np.float64:
            return np.empty((n, m)), np.empty((n, m))
        memory = self.AX.reshape(-1).view(np.float32)
        return memory[: 2 * n * m].reshape(2, n, m)

    def rayleigh_ritz(self) -> None:
        """Turn the block into Ritz vectors; double precision throughout."""
        team = self.product.team
        for _ in range(4):
            self._project()
            self.product.apply(self.X, self._n_done, self.AX)
            self._n_done = 0
            self.values, Q, self.condition = _small_ritz(
                team.cross(self.X, self.X), team.cross(self.X, self.AX)
            )
            m, rank = Q.shape
            Q = np.hstack([Q, np.zeros((m, m - rank))])
            team.on_rows(kernels.rotate, self.X, Q)
            if rank == m and self.condition <= ROUGH:
                break
            size = (self.product.n, m - rank)
            self.X[:, rank:] = self.rng.uniform(-1, 1, size=size) / np.sqrt(size[0])
        team.on_rows(kernels.rotate, self.AX, Q)
        sums = np.empty((team.n_blocks, m))
        team.on_blocks(kernels.residual, self.X, self.AX, self.values, self.R, sums)
        self.norms = np.sqrt(sums.sum(axis=0))

    def _project(self) -> None:
        if self.known is None:
            return
        if issparse(self.known):
            self.X -= self.known @ (self.known.T @ self.X)
            return
        Z = self.product.team.cross(self.known, self.X)
        self.product.team.on_rows(kernels.add_product, self.X, self.known, -Z)

    def answer(self, k: int, n_iter: int) -> Leading:
        """Return the first vectors, in the caller's order of the rows."""
        vectors = self.product.unpermute(self.X[:, :k])
        return Leading(self.values[:k], vectors, self.norms[:k], n_iter, self.product.n_products)


def _small_ritz(G: Floats, H: Floats) -> tuple[Floats, Floats, float]:
    """Return Ritz values, the rotation to the Ritz vectors, and the condition of the block.

    `G` is the Gram matrix of the block, `H` that with its products. Directions that are nothing
    but rounding are dropped (Stathopoulos & Wu 2002, *A block orthogonalization procedure with
    constant synchronization requirements*).
    """
    lengths = np.sqrt(G.diagonal())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    weights, U = np.linalg.eigh(scale[:, None] * G * scale)
    kept = weights > NOTHING * weights[-1]
    T = scale[:, None] * U[:, kept] / np.sqrt(weights[kept])
    values, V = np.linalg.eigh(T.T @ ((H + H.T) / 2) @ T)
    condition = float(weights[-1] / weights[kept][0])
    return values[::-1].copy(), np.ascontiguousarray((T @ V)[:, ::-1]), condition


# --- products


class _Product:
    """Products of a matrix with blocks, and the order of the rows they are done in."""

    kind: Any = np.float64  # of the filter
    order: Ints | None = None  # the row of the caller at each place

    def __init__(self, A: Any) -> None:
        self.A = A
        self.n = A.shape[0]
        self.n_products = 0
        self.team = RowThreads(np.arange(self.n + 1))

    def __enter__(self) -> _Product:
        return self

    def __exit__(self, *_: object) -> None:
        self.team.close()

    def permute(self, block: Any) -> Any:
        """Return a block of the caller in our order of the rows."""
        if self.order is not None:
            block = block[self.order]
        return csr_array(block) if issparse(block) else np.ascontiguousarray(block)

    def unpermute(self, block: Floats) -> Floats:
        """Return a block in the caller's order."""
        if self.order is None:
            return block.copy()
        out = np.empty(block.shape)
        out[self.order] = block
        return out

    def coarse_level(self, bounds: tuple[float, float]) -> _CoarseProduct | None:
        """Return the matrix on a coarse level; None if there is none or it would not pay."""
        return None

    def norm_bound(self) -> float:
        """Return a bound of the norm of the matrix, which was assumed to be 1."""
        return 2.0

    def apply(self, X: Floats, first: int, out: Floats) -> None:
        """Write ``A X`` to `out`, from the column `first` on."""
        self.n_products += X.shape[1] - first
        out[:, first:] = self.A @ X[:, first:]

    def advance(
        self,
        blocks: tuple[AnyArray, AnyArray, AnyArray],
        coefficients: Any,
        *,
        center: float,
        first: int = 0,
    ) -> None:
        """Overwrite `Y` by ``alpha (A X - center X + gamma R[:, first:]) - beta Y``."""
        X, R, Y = blocks
        alpha, beta, gamma = coefficients
        self.n_products += X.shape[1]
        product = self.A @ X
        product -= center * X
        product += gamma * R[:, first:]
        Y *= -beta
        Y += alpha * product

    def recurrence(
        self,
        blocks: tuple[AnyArray | None, AnyArray],
        steps: Steps,
        *,
        center: float,
        first: int = 0,
        work: Callable[[int], Any],
    ) -> AnyArray:
        """Return the last `Y` of steps by `advance`, in which `Y` is the next `X`.

        `blocks` are the first `X`, zero if it is None, and `R`; ``work(m)`` is memory for two
        blocks of `m` columns.
        """
        start, R = blocks
        E, Y = work(R.shape[1] - first)
        E[:], Y[:] = 0 if start is None else start, 0
        for coefficients in steps:
            self.advance((E, R, Y), coefficients, center=center, first=first)
            E, Y = Y, E
        return np.asarray(E)


class _BlockProduct(_Product):
    """A matrix in blocks of rows: all steps of a filter are done where the blocks are.

    Rows are in the order of the blocks: a block is then a slice of the vectors, and not some of
    their rows, which lie anywhere in memory.
    """

    kind = np.float32

    def __init__(self, A: Any, parts: Sum) -> None:
        super().__init__(A)
        matrix, self.order = parts.A.ordered()
        self.parts = parts._replace(A=matrix)

    def apply(self, X: Floats, first: int, out: Floats) -> None:
        self.n_products += X.shape[1] - first
        product = self.parts.A @ X[:, first:]
        product *= self.parts.scale
        if self.parts.shift:
            product += self.parts.shift * X[:, first:]
        out[:, first:] = product

    def recurrence(
        self,
        blocks: tuple[AnyArray | None, AnyArray],
        steps: Steps,
        *,
        center: float,
        first: int = 0,
        work: Callable[[int], Any],
    ) -> AnyArray:
        start, R = blocks
        self.n_products += len(steps) * (R.shape[1] - first)
        return self.parts.A.recurrence(
            start, R[:, first:], steps, center=center - self.parts.shift, scale=self.parts.scale
        )


class _SparseProduct(_Product):
    """A sparse matrix plus terms of low rank: compiled kernels, the filter in single precision."""

    kind = np.float32

    def __init__(self, A: Any, parts: Sum, order: Ints | None) -> None:
        super().__init__(A)
        core = parts.A
        self.order = order
        indices = core.indices
        matrix = (
            core.indptr.astype(np.int64),
            indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32),
            np.asarray(core.data, dtype=np.float64),
        )
        self._take(matrix if self.order is None else self._ordered(matrix), parts)

    def _take(self, matrix: tuple[Any, Any, Any], parts: Sum) -> None:
        self.scale, self.shift = parts.scale, parts.shift
        self.double = matrix
        self.single = (*self.double[:2], (self.scale * self.double[2]).astype(np.float32))
        self.team = RowThreads(self.double[0])
        self.terms = [(self.permute(U), np.asarray(C, dtype=np.float64)) for U, C in parts.terms]
        self.single_terms = [(U.astype(np.float32), C) for U, C in self.terms]

    def coarse_level(self, bounds: tuple[float, float]) -> _CoarseProduct | None:
        if self.n < COARSE_FROM:
            return None
        aggregates = aggregated(self.single, (bounds[0] - self.shift, bounds[1] - self.shift))
        return None if aggregates is None else _CoarseProduct(self, aggregates)

    def _ordered(self, matrix: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        place = np.empty(self.n, dtype=np.uint32)
        place[self.order] = np.arange(self.n, dtype=np.uint32)
        lengths = np.diff(matrix[0])[self.order]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        ordered = (indptr, np.empty_like(matrix[1]), np.empty_like(matrix[2]))
        self.team.on_rows(kernels.permute_rows, self.order, place, matrix, ordered)
        return ordered

    def norm_bound(self) -> float:
        indptr, _, data = self.double
        sums = np.add.reduceat(np.append(np.abs(data), 0.0), indptr[:-1])
        sums[np.diff(indptr) == 0] = 0.0
        bound = abs(self.scale) * sums.max(initial=0.0) + abs(self.shift)
        for U, C in self.terms:
            size = np.sum(U.data**2) if issparse(U) else np.sum(U**2)
            bound += float(size * np.abs(C).sum(axis=1).max(initial=0.0))
        return float(bound)

    def apply(self, X: Floats, first: int, out: Floats) -> None:
        m = X.shape[1] - first
        self.n_products += m
        out[:, first:] = 0.0  # it may hold anything, and zero times that need not be zero
        coefficients = np.full(m, self.scale), np.zeros(m), np.zeros(m)
        center = np.array([-self.shift / self.scale])
        self.team.on_rows(
            kernels.step, self.double, (X, X, out), (*coefficients, center), (first, first, first)
        )
        for U, C in self.terms:
            out[:, first:] += self._term(U, C, np.ascontiguousarray(X[:, first:]))

    def advance(
        self,
        blocks: tuple[AnyArray, AnyArray, AnyArray],
        coefficients: Any,
        *,
        center: float,
        first: int = 0,
    ) -> None:
        X, _, Y = blocks
        self.n_products += X.shape[1]
        given = [np.asarray(part, dtype=self.kind) for part in coefficients]
        given.append(np.array([center - self.shift], dtype=self.kind))
        self.team.on_rows(kernels.step, self.single, blocks, tuple(given), (0, first, 0))
        for U, C in self.single_terms:
            Y += given[0] * self._term(U, C, X)

    def _term(self, U: Any, C: Floats, X: AnyArray) -> AnyArray:
        """Return ``U C U' X``."""
        if issparse(U):
            return np.asarray(U @ (C @ (U.T @ X)).astype(X.dtype))
        product = np.zeros_like(X)
        Z = (C @ self.team.cross(U, X)).astype(X.dtype)
        self.team.on_rows(kernels.add_product, product, U, Z)
        return product


class _CoarseProduct(_SparseProduct):
    """The matrix restricted to vectors that are smooth on its aggregates."""

    def __init__(self, original: _SparseProduct, aggregates: Aggregates) -> None:
        matrix = aggregates.matrix
        _Product.__init__(self, np.empty((matrix[0].size - 1, 0)))
        self.aggregates = aggregates
        self.order = None  # neighbours are as near as they are in the original
        terms = tuple((aggregates.restricted(U), C) for U, C in original.terms)
        self._take(matrix, Sum(None, 1.0, original.shift, terms))


def _product(A: Any, width: int, warm: EigenWarmStart | None) -> _Product:
    """Return products with `A`; without a warm start the rows stay in their order."""
    parts = as_sum(A)
    if parts is None or parts.scale == 0:
        return _Product(A)
    if isinstance(parts.A, BlockMatrix):
        return _Product(A) if parts.terms else _BlockProduct(A, parts)
    order = None
    if warm is not None:
        if warm.row_order is None:
            order = local_order(parts.A, np.dtype(_SparseProduct.kind).itemsize * width)
            warm.row_order = np.empty(0, dtype=np.intp) if order is None else order
        order = warm.row_order if warm.row_order.size else None
    return _SparseProduct(A, parts, order)
