"""CSP: flexible constrained spectral clustering (Wang & Davidson 2010)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from sklearn.utils import check_random_state

from linkwise import metrics
from linkwise._interrupts import interruptible_eigh
from linkwise._params import Interval, StrOptions
from linkwise._quiet import quiet
from linkwise.constraints.table import constraint_matrix
from linkwise.exceptions import ConvergenceWarning, TooLargeError
from linkwise.linalg import eigen
from linkwise.linalg.generalized import pencil_largest
from linkwise.linalg.laplacian import degrees, symmetric, symmetric_components
from linkwise.linalg.operators import Deflated, Projected, SymmetricOperator
from linkwise.linalg.solve import solid
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.methods.ncut import normalized_cut
from linkwise.partition import kmeans, relabelled, sign_split, unit_rows
from linkwise.result import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Floats, Graph, Ints, Matrix
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity


AUTO_SHARE = 0.5  # of the largest attainable satisfaction: Wacquet et al. 2013, section 4
HALVINGS = 10
# Two eigendecompositions: 0.6 s at 1,000 samples; one minute and 1.6 GB at 5,000.
AUTO_DENSE = 1_000
MAX_DENSE = 5_000
# Solutions that the sparse way computes at most, those of the largest mu, before it takes the
# cheapest. On the golden graphs, at a satisfaction of 0.5, the cheapest was the 16th at worst.
VANISHING_WEIGHT = 1e-8  # a column of an embedding that is rounding
MAX_CANDIDATES = 64
CLEAR_GAP = 4.0
# The cost of separating connected components. Zero would make mu infinite.
COUPLING = 1e-6
# The shift of the sparse way need not be exact, its solves must be.
MAX_RATIOS, RATIO_RESTARTS = 30, 50
CG_TOL, CG_ACCEPTED, CG_ITERATIONS = 1e-10, 1e-8, 10_000


@dataclass(frozen=True, eq=False, repr=False)
class CSPResult(Result):
    """The answer of CSP.

    Parameters
    ----------
    satisfaction : float or None
        The threshold that was used, as a share of the largest attainable satisfaction. None
        without constraints.
    n_feasible : int or None
        Solutions that met the threshold; the cheapest of them are the embedding. The sparse solver
        counts at most 64.
    """

    satisfaction: float | None = None
    n_feasible: int | None = None


def csp(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    satisfaction: float | str = "auto",
    orthogonal: bool = True,
    rows: str = "unit",
    solver: str = "auto",
    random_state: int | np.random.RandomState | None = None,
) -> CSPResult:
    r"""Find the cheapest cut that satisfies the constraints to a given degree.

    .. math:: \min_f \; f^T \bar L f \quad \text{s.t.} \quad f^T \bar Q f \ge \beta, \;
       f^T f = 1, \; f \perp D^{1/2} 1

    with `Q` the signed matrix of the pairs, normalised like the graph. Its stationary points are
    the solutions of :math:`\bar L f = \lambda (\bar Q - \beta I) f` with a positive `lambda`; the
    ``k - 1`` cheapest are the embedding. `eigenvalues` are their `lambda`, `residuals` the norms of
    ``L f - lambda (Q - beta I) f``, and `objective` is the normalised cut of the labels.
    """
    rng = check_random_state(random_state)
    Q = constraint_matrix(constraints)
    if Q.nnz == 0:
        plain = normalized_cut(W, n_clusters, rng)
        return CSPResult(**vars(plain))
    # Both solvers leave k-means the same numbers.
    rounding_rng = np.random.RandomState(rng.randint(2**31))
    dense = is_dense(W.shape[0], solver, n_clusters)
    # The pencil (L_bar, Q_bar), the threshold beta, the stationary points f
    P = pencil(W, Q, orthogonal=orthogonal)
    values = attainable(P, max(MAX_CANDIDATES, n_clusters) + 1, rng)
    beta = threshold(P, values, n_clusters, satisfaction=satisfaction)
    found, n_feasible = _stationary_points(P, values, beta, k=n_clusters - 1, dense=dense, rng=rng)
    # The k - 1 cheapest are the embedding
    chosen = found.cheapest(n_clusters - 1)
    embedding = (chosen.vectors * column_weights(chosen.costs)) / np.sqrt(P.d)[:, None]
    if rows == "unit" and n_clusters > 2:
        embedding = unit_rows(embedding)
    labels = _rounded(embedding, n_clusters, rounding_rng)
    return CSPResult(
        labels=labels,
        embedding=embedding,
        eigenvalues=1 / chosen.mu,
        residuals=chosen.residuals,
        objective=metrics.ncut(W, labels),
        n_iter=found.n_iter,
        converged=found.converged,
        satisfaction=float(beta / _unit(values)),
        n_feasible=n_feasible,
    )


def _stationary_points(
    P: Pencil, values: Floats, beta: float, *, k: int, dense: bool, rng: np.random.RandomState
) -> tuple[Found, int]:
    """Return the feasible solutions, at least `k`, and how many there are as far as is known."""
    if dense:
        found = feasible_vectors(P, beta)
        n_feasible = found.mu.size
    else:
        n_candidates = max(MAX_CANDIDATES, k + 1)
        n_feasible = min(count_feasible(P, values, beta), n_candidates, P.t.size - 3)
        found = leading_vectors(P, beta, k, rng=rng, n_feasible=n_feasible)
    if found.mu.size < k:
        raise ValueError(
            f"Only {found.mu.size} of {k} feasible vectors could be computed: the threshold is at "
            "the edge of what is feasible. Lower satisfaction."
        )
    return found, n_feasible


def column_weights(costs: Floats) -> Floats:
    """Return the paper's weights ``1 - f' L f``, none of them zero.

    A cost of 1 is the middle of the spectrum; on stars and bipartite graphs most vectors have it.
    Its weight would be rounding, and too few columns would be left to separate the clusters.
    """
    weights = 1 - costs
    vanishing = np.abs(weights) < VANISHING_WEIGHT
    largest = np.abs(weights).max(initial=0.0)
    return np.where(vanishing, 1e-3 * largest if largest > VANISHING_WEIGHT else 1.0, weights)


def is_dense(n: int, solver: str, n_clusters: int) -> bool:
    """Return whether all solutions are computed by LAPACK."""
    if solver == "auto":
        return n <= AUTO_DENSE
    # ARPACK cannot deliver nearly all vectors of a tiny problem.
    if solver == "sparse":
        return n <= 20 or (n_clusters > n - 3 and n <= MAX_DENSE)
    if n > MAX_DENSE:
        raise TooLargeError(
            f"solver='dense' decomposes matrices of {n} x {n} samples; the limit is {MAX_DENSE} "
            "samples. Take solver='sparse'."
        )
    return True


# --- the pencil


class Pencil(NamedTuple):
    """``(Q - beta I) f = mu L f``: the eigenproblem turned over, as `L` is the definite one.

    `L` and `Q` are normalised by the same degrees, in units of their mean; an isolated vertex
    counts as one of mean degree. With `orthogonal`, `f` is orthogonal to `t`. Without, as in the
    paper, it is a solution beside the trivial one, ``lambda = 0, f = t``, and therefore
    ``t' (Q - beta I) f = 0``.
    """

    L: Graph
    Q: csr_array
    d: Floats
    t: Floats  # the trivial solution, D^1/2 1 at length 1
    kernel: csr_array  # of L, one unit row a component
    orthogonal: bool

    def shifted(self, X: Floats, beta: float) -> Floats:
        """Return ``(Q - beta I) X``."""
        product: Floats = self.Q @ X - beta * X
        return product


def pencil(W: Graph, Q: csr_array, *, orthogonal: bool) -> Pencil:
    """Normalise the graph and the pairs alike."""
    W = solid(W)
    d = degrees(W)
    _, component = symmetric_components(W)
    d = np.where(d > 0, d / (d[d > 0].mean() if d.any() else 1.0), 1.0)
    scale = diags_array(1 / np.sqrt(d))
    volume = np.bincount(component, weights=d)
    unit = np.sqrt(d / volume[component])
    kernel = csr_array((unit, (component, np.arange(d.size))))
    t = np.sqrt(d / d.sum())
    return Pencil(symmetric(W), csr_array(scale @ Q @ scale), d, t, kernel, orthogonal)


# --- the threshold


def attainable(P: Pencil, m: int, rng: np.random.RandomState) -> Floats:
    """Return the `m` largest stationary values of ``f' Q f``, of all if there are fewer.

    With `orthogonal`, of `f` orthogonal to `t`. `Q` is zero but for the constrained samples, so the
    problem has their number of dimensions, and one for the rest of `t`.
    """
    C = np.flatnonzero(np.diff(P.Q.indptr))  # constrained samples
    n, n_others = P.t.size, P.t.size - C.size
    Q = csr_array(P.Q[C][:, C])
    if not P.orthogonal:
        values = eigen.largest(Q, min(m, C.size), rng).values
        zeros = np.zeros(n_others)
    else:
        t = P.t[C]
        if n_others:
            t = np.append(t, np.linalg.norm(np.delete(P.t, C)))
            Q.resize((t.size, t.size))
        t /= np.linalg.norm(t)
        below = -2 * _norm_bound(P.Q)
        U = t[:, None]
        on_complement = Deflated(Projected(Q, U), U, -below)
        found = eigen.largest(
            on_complement, min(m, t.size - 1), rng, known=U, known_values=np.array([below])
        )
        values, zeros = found.values, np.zeros(max(n - t.size, 0))
    return np.sort(np.append(values, zeros))[::-1][:m]


def count_feasible(P: Pencil, values: Floats, beta: float) -> int:
    """Return how many solutions have a positive `mu`, by Sylvester's law of inertia.

    As many as ``Q - beta I`` has positive eigenvalues. Without `orthogonal`, one less if the
    trivial solution is feasible, too.
    """
    count = int((values > beta + 1e-10 * abs(values).max()).sum())
    return count if P.orthogonal else count - int(P.t @ (P.Q @ P.t) > beta)


def threshold(P: Pencil, values: Floats, k: int, *, satisfaction: float | str) -> float:
    """Return `beta`: the given share, or the first feasible one of those that "auto" tries."""
    if satisfaction != "auto":
        beta = float(satisfaction) * _unit(values)
        n_feasible = count_feasible(P, values, beta)
        if n_feasible < k - 1 or values[0] <= 0:
            raise ValueError(
                f"satisfaction={satisfaction} leaves {max(n_feasible, 0)} feasible vectors, and "
                f"{k} clusters need {k - 1}. Lower it, add constraints, or take "
                "satisfaction='auto'."
            )
        return beta
    return next(
        beta for beta in _thresholds(P, values, k) if count_feasible(P, values, beta) >= k - 1
    )


def _thresholds(P: Pencil, values: Floats, k: int) -> Iterator[float]:
    share = reachable_share(P, k)
    beta = min(AUTO_SHARE * float(values[0]), share.believed)
    if beta > 0:
        for halving in range(HALVINGS):
            yield beta / 2**halving
    # Not even small shares are feasible: let the pairs be violated to a degree.
    beta = min(beta, -share.certain) if beta > 0 else beta
    norm = _norm_bound(P.Q)
    while beta > -norm:
        yield beta
        beta = min(2 * beta, -share.certain)
    yield min(beta, -2 * norm)  # every vector is feasible


class _Share(NamedTuple):
    believed: float
    certain: float


def reachable_share(P: Pencil, k: int) -> _Share:
    """Return the satisfaction of a clustering that satisfies all pairs, in units of its volume.

    Clusters of one size are the corners of a simplex. With coordinates of variance 1, two
    samples have the product ``k - 1`` in one cluster and ``-1`` in two, so a must-link adds 1 to
    each of the ``k - 1`` coordinates and a cannot-link ``1 / (k - 1)``. No threshold above can be
    met by any clustering. A pair of belief `b` is expected to be satisfied with the balance
    ``2 b - 1``; in `certain` it counts like any other.
    """
    entries = P.Q.tocoo()
    # The pairs as they were before their normalisation.
    belief = entries.data * np.sqrt(P.d[entries.row] * P.d[entries.col])
    weight = np.where(belief > 0, 1.0, 1 / (k - 1)) / P.d.sum()
    balance = 2 * np.minimum(np.abs(belief), 1) - 1
    return _Share(float((weight * balance).sum()), float(weight.sum()))


def _norm_bound(Q: csr_array) -> float:
    return float(abs(Q).sum(axis=1).max())


def _unit(values: Floats) -> float:
    """Return the largest attainable satisfaction, of which shares are given."""
    return float(values[0]) if values[0] > 0 else float(np.abs(values).max()) or 1.0


# --- the solutions


class Found(NamedTuple):
    """Feasible solutions, in decreasing order of `mu`."""

    mu: Floats
    vectors: Floats  # of length 1
    costs: Floats  # f' L f
    residuals: Floats  # of L f - (Q - beta I) f / mu
    n_iter: int | None = None
    converged: bool = True

    def cheapest(self, k: int) -> Found:
        """Return the `k` solutions of the lowest cost."""
        order = np.argsort(self.costs, kind="stable")[:k]
        return self._replace(
            mu=self.mu[order],
            vectors=self.vectors[:, order],
            costs=self.costs[order],
            residuals=self.residuals[order],
        )


def feasible_vectors(P: Pencil, beta: float) -> Found:
    """Compute all solutions with a positive `mu`, by LAPACK.

    In the eigenvectors of `L`, divided by the roots of its eigenvalues, the pencil is a symmetric
    matrix.
    """
    L: Matrix = P.L
    L = L.toarray() if issparse(L) else L
    # L has eigenvalues up to 2: this puts the trivial vector last.
    values, U = interruptible_eigh(L + 3 * np.outer(P.t, P.t))
    n_kernel = P.kernel.shape[0] - 1
    values, U = np.maximum(values[:-1], np.finfo(float).eps), U[:, :-1]
    values[:n_kernel] = COUPLING
    T = U / np.sqrt(values)
    A = T.T @ P.shifted(T, beta)
    if not P.orthogonal:
        a = T.T @ P.shifted(P.t, beta)
        A -= np.outer(a, a) / _trivial(P, beta)
    mu, Y = interruptible_eigh((A + A.T) / 2)
    keep = np.flatnonzero(mu > 0)[::-1]
    return _found(P, beta, mu=mu[keep], F=T @ Y[:, keep])


def leading_vectors(
    P: Pencil, beta: float, k: int, *, rng: np.random.RandomState, n_feasible: int
) -> Found:
    """Compute solutions with the largest `mu` until the `k` cheapest are well among them.

    A solution of lower `mu` can be cheaper only if it clears the threshold by less. The search
    ends when the `k` cheapest are in the first half of what was computed, when the next `lambda` is
    four times theirs, so that its margin would have to be a quarter, or when all `n_feasible` are
    known. It comes in rounds, because the first `mu` are often far larger than the others, which
    need another shift.
    """
    A, B = _Numerator(P, beta), _Denominator(P)
    found, n_solves, converged = _found(P, beta, mu=A.mu, F=A.F), 0, True
    goals = [1, k, 2 * k + 6]
    while converged and A.mu.size < n_feasible:
        goal = min(goals.pop(0) if goals else 2 * A.mu.size, n_feasible)
        if goal <= A.mu.size:
            continue
        ratio = _lowest_ratio(A, B, rng)
        if A.mu.size >= k and ratio * found.cheapest(k).mu.min() > CLEAR_GAP:
            break
        inverse = _ShiftedInverse(A, B, ratio / 2)
        pairs = inverse.largest(goal - A.mu.size, rng)
        A.take_out(B, pairs)
        n_solves += inverse.n_solves
        converged = pairs.converged and inverse.converged
        found = _found(P, beta, mu=A.mu, F=A.F)
        ranks = np.argsort(found.costs, kind="stable")[:k]
        if not goals and ranks.max(initial=0) < A.mu.size // 2:
            break
    return found._replace(n_iter=n_solves, converged=converged)


def _found(P: Pencil, beta: float, *, mu: Floats, F: Floats) -> Found:
    """Complete the part in the complement of `t` to solutions of length 1."""
    if not P.orthogonal:
        F = F - np.outer(P.t, (P.t @ P.shifted(F, beta)) / _trivial(P, beta))
    F = F / np.linalg.norm(F, axis=0)
    LF = P.L @ F
    coupled = LF
    if P.kernel.shape[0] > 1:
        coupled = LF + COUPLING * _off(P.t, P.kernel.T @ (P.kernel @ F))
    difference = coupled - P.shifted(F, beta) / mu
    if P.orthogonal:
        difference = _off(P.t, difference)  # the multiplier of f' t = 0
    return Found(mu, F, (F * LF).sum(axis=0), np.linalg.norm(difference, axis=0))


def _off(t: Floats, X: Floats) -> Floats:
    """Project off the trivial vector."""
    part: Floats = X - (t if X.ndim == 1 else t[:, None]) * (t @ X)
    return part


def _trivial(P: Pencil, beta: float) -> float:
    """Return ``t' (Q - beta I) t``, kept away from zero, where no solution but `t` is left."""
    value = float(P.t @ P.shifted(P.t, beta))
    least = 1e-12 * (_norm_bound(P.Q) + abs(beta))
    return value if abs(value) > least else -least


class _Numerator(SymmetricOperator):
    """``Q - beta I`` on the complement of `t`; a Schur complement unless `orthogonal`.

    Solutions that were found are taken out: their `mu` becomes zero, the others do not change.
    """

    def __init__(self, P: Pencil, beta: float) -> None:
        super().__init__(P.t.size)
        self.P, self.beta = P, beta
        self.a = _off(P.t, P.shifted(P.t, beta))
        self.weight = 0.0 if P.orthogonal else 1 / _trivial(P, beta)
        self.mu = np.empty(0)
        self.F = self.BF = np.empty((P.t.size, 0))

    def take_out(self, B: _Denominator, pairs: eigen.EigenPairs) -> None:
        """Add solutions, given by `mu` and vectors of any length."""
        keep = pairs.values > 0
        F = pairs.vectors[:, keep]
        BF = B @ F
        lengths = np.sqrt((F * BF).sum(axis=0))
        self.mu = np.append(self.mu, pairs.values[keep])
        self.F = np.column_stack([self.F, F / lengths])
        self.BF = np.column_stack([self.BF, BF / lengths])

    def low_rank(self, X: Floats) -> Floats:
        """Return what is subtracted from ``Q - beta I``, times `X`."""
        as_columns = (slice(None), None) if X.ndim == 2 else slice(None)
        part = np.zeros_like(X)
        if self.weight:
            part += self.weight * self.a[as_columns] * (self.a @ X)
        if self.mu.size:
            part += self.BF @ (self.mu[as_columns] * (self.BF.T @ X))
        return part

    def _product(self, X: Floats) -> Floats:
        inside = _off(self.P.t, X)
        return _off(self.P.t, self.P.shifted(inside, self.beta)) - self.low_rank(inside)


class _Denominator(SymmetricOperator):
    """`L` on the complement of `t`, its components coupled."""

    def __init__(self, P: Pencil) -> None:
        super().__init__(P.t.size)
        self.P = P
        self.is_coupled = P.kernel.shape[0] > 1

    def coupling(self, X: Floats) -> Floats:
        """Return what telling components apart costs, times an `X` orthogonal to `t`."""
        product: Floats = COUPLING * (self.P.kernel.T @ (self.P.kernel @ X))
        return product

    def _product(self, X: Floats) -> Floats:
        inside = _off(self.P.t, X)
        product: Floats = self.P.L @ inside
        return product + self.coupling(inside) if self.is_coupled else product


class _Difference(SymmetricOperator):
    """``B - tau A``, and `lift` on `t`."""

    def __init__(self, A: _Numerator, B: _Denominator, tau: float, *, lift: float = 0.0) -> None:
        super().__init__(A.shape[0])
        self.A, self.B, self.lift = A, B, lift
        self.shift(tau)

    def shift(self, tau: float) -> None:
        """Set `tau`."""
        self.tau = tau
        P = self.A.P
        # What is sparse in it, at the cost of one product.
        if issparse(P.L):
            diagonal = diags_array(np.full(P.t.size, tau * self.A.beta))
            self.formed: Any = csr_array(P.L - tau * P.Q + diagonal)
        else:
            self.formed = P.L - tau * P.Q.toarray()
            self.formed[np.diag_indices_from(self.formed)] += tau * self.A.beta

    def _product(self, X: Floats) -> Floats:
        t = self.A.P.t
        inside = _off(t, X)
        product: Floats = _off(t, self.formed @ inside) + self.tau * self.A.low_rank(inside)
        if self.B.is_coupled:
            product += self.B.coupling(inside)
        if self.lift:
            product += self.lift * (X - inside)
        return product


def _lowest_ratio(A: _Numerator, B: _Denominator, rng: np.random.RandomState) -> float:
    """Approximate the lowest positive `lambda`, from above, by Dinkelbach's iteration.

    ``B - tau A`` is definite below it. Above, the lowest eigenvector has a ratio
    ``f' B f / f' A f`` that is lower than `tau`.
    """
    norm = _norm_bound(A.P.Q) + abs(A.beta)
    tau, best = 2 / norm, np.inf
    t = A.P.t[:, None]
    for _ in range(MAX_RATIOS):
        lift = 2 + 2 * tau * norm
        D = _Difference(A, B, tau, lift=lift)
        with quiet(ConvergenceWarning):
            # A poor vector gives a poor ratio, which the solves will notice.
            pairs = eigen.smallest(
                D, 1, rng, known=t, known_values=np.array([lift]), max_iter=RATIO_RESTARTS
            )
        f = pairs.vectors[:, 0]
        satisfied = float(f @ (A @ f))
        ratio = float(f @ (B @ f)) / satisfied if satisfied > 0 else np.inf
        if not np.isfinite(best) and not np.isfinite(ratio):
            tau *= 8
        elif ratio > 0.98 * best:
            break
        else:
            tau = best = ratio
    return min(best, tau)


class _NotDefiniteError(ArithmeticError):
    """A direction of negative curvature was met."""


class _ShiftedInverse(SymmetricOperator):
    """Solves with ``B - tau A`` on the complement of `t`, by conjugate gradients.

    The pencil ``A f = nu (B - tau A) f`` has the same vectors, and ``mu = nu / (1 + tau nu)``. With
    `tau` between 0 and the lowest positive `lambda` the positive `mu` are drawn apart, the negative
    ones are pressed together above ``-1 / tau``, and the solves are better conditioned.
    """

    def __init__(self, A: _Numerator, B: _Denominator, tau: float) -> None:
        super().__init__(A.shape[0])
        self.B = _Difference(A, B, tau)
        self.n_solves, self.converged = 0, True

    def largest(self, k: int, rng: np.random.RandomState) -> eigen.EigenPairs:
        """Compute the `k` largest `mu`; halve `tau` while it proves to be too large."""
        while True:
            try:
                pairs = pencil_largest(self.B.A, self.B, k, rng=rng, inverse=self)
            except _NotDefiniteError:
                self.B.shift(self.B.tau / 2)
                continue
            return replace(pairs, values=pairs.values / (1 + self.B.tau * pairs.values))

    def _product(self, X: Floats) -> Floats:
        if X.ndim == 2:
            return np.column_stack([self._product(x) for x in X.T])
        self.n_solves += 1
        r = _off(self.B.A.P.t, X)
        z, p = np.zeros_like(r), r
        squared = float(r @ r)
        limit = CG_TOL**2 * squared
        for _ in range(CG_ITERATIONS):
            if squared <= limit:
                break
            Dp = self.B @ p
            curvature = float(p @ Dp)
            if curvature <= 0:
                raise _NotDefiniteError
            step = squared / curvature
            z += step * p
            r = r - step * Dp
            before, squared = squared, float(r @ r)
            p = r + (squared / before) * p
        self.converged &= squared <= CG_ACCEPTED**2 / CG_TOL**2 * limit
        return z


def _rounded(embedding: Floats, k: int, rng: np.random.RandomState) -> Ints:
    """Split by sign for two clusters, unless all are on one side; else k-means on the rows."""
    if k == 2:
        sides = relabelled(sign_split(embedding[:, 0]))
        if sides.any():
            return sides
    return kmeans(embedding, k, rng).labels


class CSP(ConstrainedClusterer):
    """Flexible constrained spectral clustering (CSP, FCSC; Wang & Davidson, 2010).

    The cheapest normalised cut among the vectors that satisfy the constraints to a given degree.
    Soft: it is the sum over all pairs that has to reach the degree, not each pair.

    Parameters
    ----------
    n_clusters
    affinity
    satisfaction : float below 1 or "auto", default="auto"
        Threshold of the satisfaction, as a share of the largest value that any vector attains.
        Negative values tolerate violations. A value that leaves fewer than ``n_clusters - 1``
        vectors is an error. ``"auto"`` starts at 0.5, but not above what a clustering without
        violations would have, and is halved until it is feasible. Raise it if pairs should count
        more.
    orthogonal : bool, default=True
        Whether solutions are orthogonal to the constant vector, as a balanced cut is (Wang, Qian
        & Davidson, 2012, equation 7). False is the eigenproblem of the first paper, whose solutions
        may come close to the constant. Set False only to repeat the first paper.
    rows : {"unit", "raw"}, default="unit"
        Whether the rows of the embedding are scaled to length one before k-means, or taken as they
        are, as in the paper. Two clusters are split by sign, where it makes no difference. Take
        ``"raw"`` only to repeat the paper.
    solver : {"auto", "dense", "sparse"}, default="auto"
        ``"dense"`` computes all solutions and takes the cheapest, for at most 5,000 samples.
        ``"sparse"`` computes those that are best for their degree of satisfaction, at most 64, and
        takes the cheapest of them. ``"auto"`` is dense up to 1,000 samples. Change it only to
        compare the two.
    random_state

    Attributes
    ----------
    satisfaction_ : float or None
        The threshold that was used; None without constraints.
    result_ : CSPResult
        Labels, embedding, eigenvalues, residuals and objective.

    References
    ----------
    X. Wang, I. Davidson: Flexible constrained spectral clustering. KDD 2010.

    X. Wang, B. Qian, I. Davidson: On constrained spectral clustering and its applications. Data
    Mining and Knowledge Discovery 28 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CSP, Affinity, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> model = CSP(2, affinity=Affinity(3), random_state=0).fit(X, constraints=known)
    >>> model.labels_.tolist(), round(model.satisfaction_, 3)
    ([0, 0, 0, 1, 1, 1], 0.5)
    """

    paper = "Wang & Davidson 2010"
    family = "constrained criterion"
    minimizes_cut = True
    max_clusters = MOST_EIGENVECTORS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "satisfaction": [StrOptions({"auto"}), Interval(Real, None, 1, closed="neither")],
        "orthogonal": ["boolean"],
        "rows": [StrOptions({"unit", "raw"})],
        "solver": [StrOptions({"auto", "dense", "sparse"})],
    }
    solve = staticmethod(csp)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    satisfaction: float | str = "auto"
    orthogonal: bool = True
    rows: str = "unit"
    solver: str = "auto"
    random_state: int | np.random.RandomState | None = None

    @property
    def satisfaction_(self) -> float | None:
        """The threshold that was used, as a share of the largest attainable satisfaction."""
        result: CSPResult = self.result_
        return result.satisfaction
