r"""The constrained cut as a ratio of functions on the vertices, and its descent (RatioDCA).

Rangapuram & Hein (2012): partitions of a graph with edge weights `w` and vertex weights `b`, with
a penalty of each violated cannot-link,

.. math:: F(f) = \frac{\sum w_{ij} |f_i - f_j|
   + \sum_{\text{pairs}} p_{ij} \, (\max f - \min f - |f_i - f_j|)}{S(f)},
   \qquad S(1_C) = \frac{b(C) \, b(\bar C)}{b(V)}.

At an indicator ``F`` is the cut plus the penalty of violated pairs, times ``1/b(C) + 1/b(C')``; its
minimum over all vectors is the minimum over all partitions (Theorem 2.2). Its quadratic relaxation,
with equal and opposite values of constrained samples (SCLC), is one of the starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise._jit import late_module, njit
from linkwise.linalg import eigen
from linkwise.linalg.laplacian import degrees
from linkwise.linalg.operators import Deflated, Projected
from linkwise.partition import relabelled

if TYPE_CHECKING:
    from linkwise._progress import Report
    from linkwise._types import Bools, Floats, Graph, Int64s, Ints
    from linkwise.linalg.fista import Edges

fista = late_module("linkwise.linalg.fista")  # imports numba

EQUAL = 1e-9  # relative: values closer than this are the same
MAX_OUTER = 200  # steps; a handful is usual
PATIENCE = 400  # inner iterations after which any descent will do
ROUGH_ITER = 200  # inner iterations without descent, where the answer is refined afterwards
ROUGH_LEAST = 1e-4  # share of the value below which a step is the last one, there
SMALL = 500  # vertices up to which the projected matrix of the relaxation is dense
EVERY = 5.0  # seconds between two reports of the steps of a descent


class Settings(NamedTuple):
    """How the descent is done."""

    n_starts: int = 10
    refine: bool = True
    balance: str = "lovasz"
    tol: float = 1e-6
    max_iter: int = 800
    by_degree: bool = True  # vertex weights are degrees, so a part of the graph has its own
    least: float = EQUAL  # share of the value: a descent by no more is the last one

    def rough(self) -> Settings:
        """Return what is good enough on a coarse level: moves on the graph itself undo the rest."""
        return self._replace(max_iter=min(self.max_iter, ROUGH_ITER), least=ROUGH_LEAST)


class Split(NamedTuple):
    """Two sides of a graph, and what they cost."""

    value: float
    above: Bools


class Point(NamedTuple):
    """Where one start was at one penalty."""

    gamma: float
    value: float  # of the cut without penalties
    n_violated: int  # pairs of the contracted graph


class Critical(NamedTuple):
    """Where the descent ended, with the certificate of its last inner problem."""

    f: Floats
    split: Split  # the cheapest threshold met
    n_outer: int
    n_iter: int  # of the inner solver
    gap: float  # duality gap of the last inner problem, relative to its data
    converged: bool  # whether that problem proved that nothing is lower


NO_SPLIT = Split(np.inf, np.zeros(0, bool))


@dataclass(eq=False)
class Record:
    """The work of a search, its best partition, and the certificate of its answer."""

    report: Report | None = None
    n_iter: int = 0
    n_outer: int = 0
    gap: float = 0.0
    converged: bool = True
    gamma: float = 0.0
    path: tuple[Point, ...] = ()
    best: Split = NO_SPLIT
    is_stopped: bool = False
    reported: float = field(default_factory=monotonic)
    lock: Lock = field(default_factory=Lock)  # starts may run in several threads

    def step(self, n_outer: int, n_iter: int, value: float) -> bool:
        """Report a step of a descent, now and then; return whether to stop there."""
        if self.report is not None and monotonic() - self.reported >= EVERY:
            self.reported = monotonic()
            self.report(None, f"step {n_outer}, {n_iter} inner iterations: {value:.6g}")
        return self.is_stopped

    def count(self, n_outer: int, n_iter: int) -> None:
        """Add the work of a descent."""
        with self.lock:
            self.n_outer += n_outer
            self.n_iter += n_iter

    def offer(self, split: Split) -> None:
        """Keep the best consistent partition met: the answer if the search is interrupted."""
        with self.lock:
            if split.value < self.best.value:
                self.best = split


class PenalizedCut(NamedTuple):
    """The functional, on vectors and on partitions."""

    edges: Edges
    volume: Floats  # b
    heads: Int64s  # cannot-linked vertices
    tails: Int64s
    penalty: Floats  # of each violated pair
    random_walk: csr_array  # to the neighbours, in proportion to the weights
    balance: str = "lovasz"

    def value(self, f: Floats) -> float:
        """Return ``F(f)``."""
        edges = self.edges
        total = fista.total_variation(edges.indptr, edges.indices, edges.weight, f)
        if self.penalty.size:
            apart = np.abs(f[self.heads] - f[self.tails])
            total += float(self.penalty @ (np.ptp(f) - apart))
        # S(f), from sums of positive terms: small volumes must not cancel.
        b, volume = self.volume, float(self.volume.sum()) or 1.0
        if self.balance == "deviation":
            balance = 0.5 * float(b @ np.abs(f - (b @ f) / volume))
        else:
            order = np.argsort(f)
            below, above = np.cumsum(b[order])[:-1], np.cumsum(b[order[::-1]])[-2::-1]
            balance = float(np.diff(f[order]) @ (below * above)) / volume
        return float(total / balance) if balance > 0 else np.inf

    def balance_slope(self, f: Floats, tie_breaker: Floats) -> Floats:
        """Return a subgradient of ``S`` at `f`.

        The Lovasz extension sorts; where `f` ties, any order gives one of its subgradients.
        """
        b, total = self.volume, float(self.volume.sum()) or 1.0
        if self.balance == "deviation":
            sign = np.sign(f - (b @ f) / total)
            slope: Floats = 0.5 * b * (sign - (b @ sign) / total)
            return slope
        order = np.lexsort((tie_breaker, f)) if tie_breaker is not f else np.argsort(f)
        sorted_b = b[order]
        slope = np.empty_like(f)
        slope[order] = sorted_b * (2 * np.cumsum(sorted_b) - sorted_b - total) / total
        return slope

    def pair_slope(self, f: Floats, tie_breaker: Floats) -> Floats:
        """Return a subgradient of ``sum p_ij |f_i - f_j|`` at `f`.

        Where a pair ties every number in [-1, 1] will do, but 0 would never part it: the
        tie-breaker decides, then the neighbours.
        """
        slope = np.zeros_like(f)
        heads, tails = self.heads, self.tails
        difference = f[heads] - f[tails]
        equal = EQUAL * float(np.ptp(f))
        for other in (tie_breaker, None):
            tied = np.abs(difference) <= equal
            if not tied.any():
                break
            g = self.random_walk @ f if other is None else other
            difference[tied] = (g[heads] - g[tails])[tied]
        np.add.at(slope, heads, self.penalty * np.sign(difference))
        np.add.at(slope, tails, -self.penalty * np.sign(difference))
        return slope

    def threshold(self, f: Floats) -> Split:
        """Return the cheapest split between two values of `f`."""
        order = np.argsort(f, kind="stable")
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        edges, sorted_f = self.edges, f[order]
        # The volumes on both sides of every threshold, each summed up by itself.
        b = self.volume[order]
        below, above = np.cumsum(b)[:-1], np.cumsum(b[::-1])[-2::-1]
        usable = (sorted_f[:-1] < sorted_f[1:]) & (below > 0) & (above > 0)
        pairs = self.heads, self.tails, self.penalty
        costs = _costs(position, edges.indptr, edges.indices, edges.weight, *pairs)[usable]
        sides = np.zeros(f.size, bool)
        if not costs.size:
            return Split(np.inf, sides)
        values = costs * (1 / below[usable] + 1 / above[usable])
        sides[order[np.flatnonzero(usable)[values.argmin()] + 1 :]] = True
        # Running sums carry the rounding of the whole graph; the answer is summed afresh.
        return Split(self.value(sides.astype(np.float64)), sides)


@njit(cache=True, nogil=True)
def _costs(position, indptr, indices, weight, heads, tails, penalty):  # type: ignore[no-untyped-def]
    """Return cut plus penalty of violated pairs for every threshold but the last.

    A vertex that crosses the threshold opens its edges to later vertices and closes the others.
    Sums keep what rounding takes off: a cut may be far smaller than the weights it is left of.
    """
    n = position.size
    opened, lost = np.zeros(n), np.zeros(n)
    cost, lost_cost = 0.0, 0.0
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            first, last = position[i], position[indices[e]]
            _add(opened, lost, min(first, last), weight[e])
            _add(opened, lost, max(first, last), -weight[e])
    for p in range(heads.size):
        first, last = position[heads[p]], position[tails[p]]
        _add(opened, lost, min(first, last), -penalty[p])
        _add(opened, lost, max(first, last), penalty[p])
        cost += penalty[p]
    costs = np.empty(n - 1)
    for p in range(n - 1):
        total = cost + opened[p]
        part = total - cost
        lost_cost += (cost - (total - part)) + (opened[p] - part) + lost[p]
        cost = total
        costs[p] = max(cost + lost_cost, 0.0)
    return costs


@njit(cache=True, nogil=True, inline="always")
def _add(sums, lost, at, x):  # type: ignore[no-untyped-def]
    """Add with the rounding error kept (Knuth's two-sum)."""
    old = sums[at]
    new = old + x
    part = new - old
    lost[at] += (old - (new - part)) + (x - part)
    sums[at] = new


def ratio_dca(
    cut: PenalizedCut,
    f: Floats,
    settings: Settings,
    *,
    record: Record,
    patience: int = 1,
    tie_breaker: Floats | None = None,
) -> Critical:
    """Descend from `f` until nothing is lower (Algorithm 1 of the paper).

    Numerator and denominator are replaced by their supporting functions at `f`; the convex problem
    that remains has a negative value exactly where there is descent. It is solved no further than
    to half of what is possible: the next problem starts from its duals. A step that lowers the
    value by no more than the share `settings.least` is the last one, unless a threshold is lower.
    `patience` multiplies the iterations of the inner solver. A constant vector stays where it is.
    """
    flow = fista.new_flow(cut.edges)
    best, value = cut.threshold(f), cut.value(f)
    ties = f if tie_breaker is None else tie_breaker
    spread, lowest = float(cut.penalty.sum()), 1 - settings.least
    n_outer = n_iter = 0
    gap, converged = 0.0, True
    while n_outer < MAX_OUTER and 0 < value < np.inf and not record.step(n_outer, n_iter, value):
        # The inner problem: total variation minus <y, f>, over the unit ball.
        y = value * cut.balance_slope(f, ties)
        if cut.penalty.size:
            y += cut.pair_slope(f, ties)
        scale = float(np.linalg.norm(y))
        tol = settings.tol * scale
        inner = fista.minimize(
            cut.edges,
            y.astype(cut.edges.weight.dtype),
            flow,
            c=spread,
            tol=tol,
            max_iter=patience * settings.max_iter,
            patience=PATIENCE,
        )
        n_outer += 1
        n_iter += inner.n_iter
        gap, converged = max(inner.value - inner.bound, 0.0) / scale, inner.bound >= -tol
        reached = cut.value(g := inner.f.astype(np.float64)) if inner.value < 0 else np.inf
        is_last = reached >= value * lowest
        if reached < value * (1 - EQUAL):
            f = ties = g
            value = reached
            split = cut.threshold(f)
            best = split if split.value < best.value else best
        if not is_last:
            continue
        if best.value >= value * lowest:
            break
        # Thresholding descends as well (Theorem 2.2); within the sides the old order decides.
        f, ties, value = best.above.astype(np.float64), f, best.value
    if value == 0:  # nothing is below
        gap, converged = 0.0, True
    record.count(n_outer, n_iter)
    return Critical(f, best, n_outer, n_iter, gap, converged)


# The quadratic relaxation with linear constraints --------------------------------------------


class SignedGroups(NamedTuple):
    """Samples whose values are equal up to their sign: all solutions of the linear equations.

    ``x = R z``, with ``R[i, group[i]] = sign[i]`` and any `z`. A group whose cannot-links
    contradict each other has the sign 0: its values must be zero.
    """

    group: Ints
    sign: Floats
    must: Ints  # the group by must-links alone

    def without_contradictions(self) -> SignedGroups:
        """Return the same without the cannot-links of contradictory groups."""
        bad = self.sign == 0
        group = np.where(bad, self.group.max() + 1 + self.must, self.group)
        return SignedGroups(relabelled(group), np.where(bad, 1.0, self.sign), self.must)


class Minimizer(NamedTuple):
    """The minimiser, its value, and the certificate."""

    x: Floats
    value: float
    residual: float
    converged: bool


def linear_minimizer(
    W: Graph, groups: SignedGroups, rng: np.random.RandomState, *, warns: bool = True
) -> Minimizer:
    """Minimise ``x' L x / x' D x`` over ``x = R z`` with ``x' D 1 = 0``.

    With the groups' volumes on the diagonal of `G`, ``y = G^1/2 z`` is the leading eigenvector of
    ``G^-1/2 R' W R G^-1/2`` in the complement of ``b = G^-1/2 R' D 1``, which is an eigenvector
    itself only where there are no cannot-links.
    """
    d = degrees(W)
    mean = float(d.mean()) or 1.0
    d = d / mean
    volume = np.bincount(groups.group, weights=d * np.abs(groups.sign))
    heavy = volume > 0
    if not heavy.any():
        return Minimizer(np.zeros(d.size), 0.0, 0.0, converged=True)
    column = np.cumsum(heavy) - 1
    rows = np.flatnonzero(heavy[groups.group] & (groups.sign != 0))
    # R G^-1/2, without the groups that have no volume or must be zero.
    entries = groups.sign[rows] / np.sqrt(volume[groups.group[rows]])
    shape = (d.size, int(heavy.sum()))
    R = csr_array((entries, (rows, column[groups.group[rows]])), shape=shape)
    S = csr_array(R.T @ W @ R) if issparse(W) else R.T @ (R.T @ W).T
    found = _leading(S / mean, R.T @ d, rng, warns=warns)
    x = R @ found.vectors[:, 0]
    value, residual = float(1 - found.values[0]), float(found.residuals[0])
    return Minimizer(x, value, residual, converged=found.converged)


def _leading(S: Any, b: Floats, rng: np.random.RandomState, *, warns: bool) -> eigen.EigenPairs:
    """Return the leading eigenpair of `S` in the complement of `b`."""
    n = S.shape[0]
    length = float(np.linalg.norm(b))
    if n == 1 or length <= 1e-12 * np.sqrt(n):
        # One group alone cannot be balanced; and groups that are balanced by themselves need not.
        return eigen.largest(S, 1, rng, warns=warns)
    U = (b / length)[:, None]
    # The eigenvalues are within [-1, 1], this puts b below.
    on_complement: Any
    if n <= SMALL:
        P = np.eye(n) - U @ U.T
        on_complement = P @ (S @ P) - 2.0 * (U @ U.T)
    else:
        on_complement = Deflated(Projected(S, U), U, 2.0)
    below = np.array([-2.0])
    return eigen.largest(on_complement, 1, rng, known=U, known_values=below, warns=warns)
