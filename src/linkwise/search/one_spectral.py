r"""The penalised cut as a ratio of functions on the vertices, and its descent (RatioDCA).

Rangapuram & Hein (2012): partitions of a graph with edge weights `w` and vertex weights `b`,
cannot-linked pairs at a price each,

.. math:: F(f) = \frac{\sum w_{ij} |f_i - f_j|
   + \sum_{\text{pairs}} p_{ij} \, (\max f - \min f - |f_i - f_j|)}{S(f)},
   \qquad S(1_C) = \frac{b(C) \, b(\bar C)}{b(V)}.

At an indicator ``F`` is the cut plus the price of violated pairs, times ``1/b(C) + 1/b(C')``; its
minimum over all vectors is the minimum over all partitions (Theorem 2.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from linkwise.linalg import fista

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse import csr_array

    from linkwise._types import Bools, Floats, Int64s
    from linkwise.linalg.fista import Edges


__all__ = ["Critical", "Pairs", "PenalizedCut", "Split", "ratio_dca"]

EQUAL = 1e-9  # relative: values closer than this are the same
MAX_OUTER = 200  # steps; a handful is usual
PATIENCE = 400  # inner iterations after which any descent will do


class Pairs(NamedTuple):
    """Cannot-linked vertices and the price of each violated pair."""

    heads: Int64s
    tails: Int64s
    price: Floats


class Split(NamedTuple):
    """Two sides of a graph, and what they cost."""

    value: float
    above: Bools


class PenalizedCut(NamedTuple):
    """The functional, on vectors and on partitions."""

    edges: Edges
    volume: Floats  # b
    pairs: Pairs
    walk: csr_array  # to the neighbours, in proportion to the weights
    balance: str = "lovasz"

    @property
    def spread_price(self) -> float:
        """The factor of ``max f - min f``."""
        return float(self.pairs.price.sum())

    def value(self, f: Floats) -> float:
        """Return ``F(f)``."""
        edges, pairs = self.edges, self.pairs
        total = fista.total_variation(edges.indptr, edges.indices, edges.weight, f)
        if pairs.price.size:
            apart = np.abs(f[pairs.heads] - f[pairs.tails])
            total += float(pairs.price @ (np.ptp(f) - apart))
        balance = self.balance_of(f)
        return float(total / balance) if balance > 0 else np.inf

    def balance_of(self, f: Floats) -> float:
        """Return ``S(f)``, from sums of positive terms: small volumes must not cancel."""
        b = self.volume
        if self.balance == "deviation":
            return 0.5 * float(b @ np.abs(f - (b @ f) / (b.sum() or 1.0)))
        order = np.argsort(f)
        below, above = _below_and_above(b[order])
        return float(np.diff(f[order]) @ (below * above)) / (float(b.sum()) or 1.0)

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
        heads, tails, price = self.pairs
        difference = f[heads] - f[tails]
        equal = EQUAL * float(np.ptp(f))
        for other in (tie_breaker, None):
            tied = np.abs(difference) <= equal
            if not tied.any():
                break
            g = self.walk @ f if other is None else other
            difference[tied] = (g[heads] - g[tails])[tied]
        np.add.at(slope, heads, price * np.sign(difference))
        np.add.at(slope, tails, -price * np.sign(difference))
        return slope

    def threshold(self, f: Floats) -> Split:
        """Return the cheapest split between two values of `f`."""
        order = np.argsort(f, kind="stable")
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        edges, sorted_f = self.edges, f[order]
        below, above = _below_and_above(self.volume[order])
        usable = (sorted_f[:-1] < sorted_f[1:]) & (below > 0) & (above > 0)
        pattern = edges.indptr, edges.indices, edges.weight
        costs = _costs(position, *pattern, *self.pairs)[usable]
        sides = np.zeros(f.size, bool)
        if not costs.size:
            return Split(np.inf, sides)
        values = costs * (1 / below[usable] + 1 / above[usable])
        sides[order[np.flatnonzero(usable)[values.argmin()] + 1 :]] = True
        # Running sums carry the rounding of the whole graph; the answer is summed afresh.
        return Split(self.value(sides.astype(np.float64)), sides)


def _below_and_above(b: Floats) -> tuple[Floats, Floats]:
    """Return the volumes on both sides of every threshold, each summed up by itself."""
    return np.cumsum(b)[:-1], np.cumsum(b[::-1])[::-1][1:]


@njit(cache=True, nogil=True)
def _costs(position, indptr, indices, weight, heads, tails, price):  # type: ignore[no-untyped-def]
    """Return cut and price of violated pairs for every threshold but the last.

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
        _add(opened, lost, min(first, last), -price[p])
        _add(opened, lost, max(first, last), price[p])
        cost += price[p]
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


class Critical(NamedTuple):
    """Where the descent ended, with the certificate of its last inner problem."""

    f: Floats
    split: Split  # the cheapest threshold met
    n_outer: int
    n_iter: int  # of the inner solver
    gap: float  # duality gap of the last inner problem, relative to its data
    converged: bool  # whether that problem proved that nothing is lower


def _never(n_outer: int, n_iter: int, value: float) -> bool:
    return False


def ratio_dca(
    cut: PenalizedCut,
    f: Floats,
    *,
    tol: float = 1e-6,
    max_iter: int = 800,
    tie_breaker: Floats | None = None,
    least: float = EQUAL,
    stopped: Callable[[int, int, float], bool] = _never,
) -> Critical:
    """Descend from `f` until nothing is lower (Algorithm 1 of the paper).

    Numerator and denominator are replaced by what supports them at `f`; the convex problem that
    remains has a negative value exactly where there is descent. It is solved no further than to
    half of what is possible: the next problem starts from its duals. A step that lowers the value
    by no more than the share `least` is the last one, unless a threshold is lower. Between two
    problems it asks whether it was `stopped`, telling the number of problems and of iterations, and
    the value.
    """
    flow = fista.new_flow(cut.edges)
    best = cut.threshold(f)
    value = cut.value(f)
    ties = f if tie_breaker is None else tie_breaker
    n_outer = n_iter = 0
    gap, converged = 0.0, True
    while n_outer < MAX_OUTER and 0 < value < np.inf and not stopped(n_outer, n_iter, value):
        y = value * cut.balance_slope(f, ties)
        if cut.pairs.price.size:
            y += cut.pair_slope(f, ties)
        scale = float(np.linalg.norm(y))
        y = y.astype(cut.edges.weight.dtype)
        inner, flow = fista.minimize(
            cut.edges,
            y,
            cut.spread_price,
            flow,
            tol=tol * scale,
            max_iter=max_iter,
            patience=PATIENCE,
        )
        n_outer += 1
        n_iter += inner.n_iter
        gap, converged = max(inner.gap, 0.0) / scale, inner.bound >= -tol * scale
        lower = _lower(cut, inner, value)
        is_small = lower is None or lower[1] >= value * (1 - least)
        if lower is not None:
            f, value = lower
            ties = f
            split = cut.threshold(f)
            best = split if split.value < best.value else best
        if not is_small:
            continue
        if best.value < value * (1 - least):
            # Thresholding descends as well (Theorem 2.2); within the sides the old order decides.
            f, ties, value = best.above.astype(np.float64), f, best.value
        else:
            break
    if value == 0:  # nothing is below
        gap, converged = 0.0, True
    return Critical(f, best, n_outer, n_iter, gap, converged)


def _lower(
    cut: PenalizedCut, inner: fista.InnerSolution, value: float
) -> tuple[Floats, float] | None:
    """Return the inner solution and its value if it is lower."""
    if inner.value >= 0:
        return None
    f = inner.f.astype(np.float64)
    reached = cut.value(f)
    return (f, reached) if reached < value * (1 - EQUAL) else None
