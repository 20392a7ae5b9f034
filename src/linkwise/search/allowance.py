"""The lowest cut that violates at most so many constraints: local search within an allowance.

A price of violated constraints finds the partitions on the convex hull of cut and violations only;
between two prices there may be better ones. The search moves one sample after the other, each at
most once in a pass, always to where it costs least, also uphill and beyond the allowance; the best
partition within it is kept (Fiduccia & Mattheyses 1982). So samples that are linked to each other
move together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise._jit import njit
from linkwise.constraints.table import symmetric_matrix
from linkwise.linalg.laplacian import degrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Bools, Floats, Int32s
    from linkwise.constraints import Constraints

LONGEST_PASS = 200  # moves
PRICES = (0.1, 0.5, 3.0)  # of a violation beyond the allowance, in units of the cut
WORK = 40_000_000  # moves looked at in all restarts together
MOST_RESTARTS, FEWEST_RESTARTS = 120, 3
NO_CLUSTER = 1e6  # what a cluster without weight costs
LOWER = 1e-12  # relative: what counts as lower


class Allowance(NamedTuple):
    """A graph, the pairs that may be violated, and how many of them."""

    graph: csr_array  # over the items: samples, then anchors, which have no edges
    weight: Floats  # of the items; what balances the clusters
    pairs: csr_array  # violations: +1 for a cannot-linked item in the cluster, -1 for a must-linked
    is_movable: Bools
    k: int
    n_allowed: int
    gamma: float = 0.0  # penalty of each violation, over the weight of every cluster

    def descend(self, z: Int32s, price: float) -> Within:
        """Return the best partition of one pass."""
        W, P = self.graph, self.pairs
        graph = W.indptr, W.indices, W.data, self.weight
        pairs = P.indptr, P.indices, P.data
        bounds = (
            self.k,
            self.n_allowed,
            price,
            self.gamma,
            min(LONGEST_PASS, int(self.is_movable.sum())),
        )
        return Within(*_pass(z, graph, pairs, self.is_movable, bounds))


class Within(NamedTuple):
    """A partition, its cut over weight (infinite beyond the allowance), and its violations."""

    z: Int32s
    cut: float
    n_violated: int
    interrupted: bool = False


def allowance_of(
    W: csr_array, b: Floats | None, constraints: Constraints, *, k: int, n_allowed: int
) -> Allowance:
    """Return the problem of a graph with vertex weights `b`, or the degrees.

    Labels count as must-links to one anchor for each class; the anchors stay in clusters of their
    own.
    """
    facts, table, n = constraints.facts, constraints.table, constraints.n_samples
    n_items = n + facts.classes.size
    labels = np.column_stack((facts.labelled, n + facts.class_of))
    sign = np.where(table.is_must_link, -1.0, 1.0)
    pairs = symmetric_matrix(table.pairs, sign, n_items)
    pairs = csr_array(pairs + symmetric_matrix(labels, np.full(len(labels), -1.0), n_items))
    # A pair that was given both ways is violated whatever happens; here the two cancel.
    n_lost = int((sign > 0).sum() - pairs.data[pairs.data > 0].sum() / 2)
    graph = csr_array(W, copy=True)
    graph.resize((n_items, n_items))
    weight = np.concatenate((degrees(W) if b is None else b, np.zeros(n_items - n)))
    return Allowance(graph, weight, pairs, np.arange(n_items) < n, k, n_allowed - n_lost)


def lowest_within(
    problem: Allowance, starts: Sequence[Int32s], rng: np.random.RandomState
) -> Within:
    """Return the lowest cut within the allowance that is met from the starts and near to the best.

    Its cut is infinite if none was met.
    """
    best = Within(starts[0], np.inf, np.iinfo(np.int64).max)
    size = int(problem.is_movable.sum())
    work = size * problem.k * min(LONGEST_PASS, size) * 2 * len(PRICES)
    try:
        for z in starts:
            best = _better(best, _descended(problem, z))
        for restart in range(int(np.clip(WORK // work, FEWEST_RESTARTS, MOST_RESTARTS))):
            # Near to the best one, and every third time near to any of the starts.
            base = best.z if restart % 3 else starts[rng.randint(len(starts))]
            best = _better(best, _descended(problem, _perturbed(problem, base, rng)))
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        return best._replace(interrupted=True)
    return best


def _better(a: Within, b: Within) -> Within:
    """Return the lower cut; if both are beyond the allowance, the one that violates fewer."""
    if np.isinf(a.cut) and np.isinf(b.cut):
        return b if b.n_violated < a.n_violated else a
    return b if b.cut < a.cut * (1 - LOWER) else a


def _descended(problem: Allowance, z: Int32s) -> Within:
    """Repeat passes, at several prices, while they lower the cut."""
    best = problem.descend(z, PRICES[-1])
    improved = True
    while improved:
        improved = False
        for price in PRICES:
            better = _better(best, problem.descend(best.z, price))
            improved = improved or better is not best
            best = better
    return best


def _perturbed(problem: Allowance, z: Int32s, rng: np.random.RandomState) -> Int32s:
    """Put a few samples anywhere; no cluster becomes empty."""
    movable = np.flatnonzero(problem.is_movable)
    n_moved = rng.randint(1, max(2, min(movable.size // 2, LONGEST_PASS // 4)) + 1)
    chosen = rng.choice(movable, min(n_moved, movable.size), replace=False)
    moved = z.copy()
    moved[chosen] = rng.randint(problem.k, size=chosen.size)
    sizes = np.bincount(moved[movable], minlength=problem.k)
    return moved if (sizes > 0).all() else z


@njit(cache=True, nogil=True)
def _pass(start, graph, pairs, is_movable, bounds):  # type: ignore[no-untyped-def]
    """Move every sample at most once, the cheapest move first; return the best met."""
    indptr, indices, data, weight = graph
    pair_ptr, pair_index, pair_sign = pairs
    k, n_allowed, price, gamma, longest = bounds
    z = start.copy()
    of_item, of_cluster, n_violated = _tables(z, graph, pairs, is_movable, k)
    link, broken, degree = of_item
    cut, total, size = of_cluster
    value = 0.0
    for c in range(k):
        value += _ratio(cut[c] + gamma * n_violated, total[c])
    penalty = price * (value if 0 < value < k else 1.0)
    best, best_violated = z.copy(), n_violated
    best_value = value if n_violated <= n_allowed else np.inf
    locked = ~is_movable
    for _ in range(longest):
        limits = n_violated, n_allowed, penalty, gamma
        v, c = _cheapest(z, (locked, weight), of_item, of_cluster, limits)
        if v < 0:
            break
        a = z[v]
        n_violated += int(broken[v, c] - broken[v, a])
        cut[a] = max(cut[a] - degree[v] + 2 * link[v, a], 0.0)
        cut[c] = max(cut[c] + degree[v] - 2 * link[v, c], 0.0)
        total[a] -= weight[v]
        total[c] += weight[v]
        size[a] -= 1
        size[c] += 1
        for e in range(indptr[v], indptr[v + 1]):
            link[indices[e], a] -= data[e]
            link[indices[e], c] += data[e]
        for p in range(pair_ptr[v], pair_ptr[v + 1]):
            broken[pair_index[p], a] -= pair_sign[p]
            broken[pair_index[p], c] += pair_sign[p]
        z[v], locked[v] = c, True
        value = 0.0
        for other in range(k):
            value += _ratio(cut[other] + gamma * n_violated, total[other])
        is_within = n_violated <= n_allowed
        if is_within and value < best_value:
            best_value, best_violated = value, n_violated
            best[:] = z
        elif best_value == np.inf and n_violated < best_violated:
            best_violated = n_violated
            best[:] = z
    return best, best_value, best_violated


@njit(cache=True, nogil=True)
def _tables(z, graph, pairs, is_movable, k):  # type: ignore[no-untyped-def]
    """Return what is kept of each item and of each cluster, and the number of violations.

    ``link[v, c]`` is the weight between `v` and cluster `c`; ``broken[v, c]`` the violations of `v`
    in `c`, up to a constant of `v`.
    """
    indptr, indices, data, weight = graph
    pair_ptr, pair_index, pair_sign = pairs
    n = z.size
    link, broken, degree = np.zeros((n, k)), np.zeros((n, k)), np.zeros(n)
    cut, total, size = np.zeros(k), np.zeros(k), np.zeros(k, np.int64)
    n_violated = 0
    for v in range(n):
        total[z[v]] += weight[v]
        size[z[v]] += is_movable[v]
        for e in range(indptr[v], indptr[v + 1]):
            link[v, z[indices[e]]] += data[e]
            degree[v] += data[e]
        for p in range(pair_ptr[v], pair_ptr[v + 1]):
            u = pair_index[p]
            broken[v, z[u]] += pair_sign[p]
            if v < u and (z[u] == z[v]) == (pair_sign[p] > 0):
                n_violated += int(abs(pair_sign[p]))
        cut[z[v]] += degree[v] - link[v, z[v]]
    return (link, broken, degree), (cut, total, size), n_violated


@njit(cache=True, nogil=True)
def _cheapest(z, items, of_item, of_cluster, bounds):  # type: ignore[no-untyped-def]
    """Return the sample and the cluster of the move that costs least, or -1 twice."""
    locked, weight = items
    link, broken, degree = of_item
    cut, total, size = of_cluster
    n_violated, n_allowed, penalty, gamma = bounds
    k, value, inverse = cut.size, 0.0, 0.0
    for c in range(k):
        value += _ratio(cut[c], total[c])
        inverse += _ratio(1.0, total[c])
    chosen, to, lowest = -1, -1, np.inf
    for v in range(z.size):
        a = z[v]
        if locked[v] or size[a] == 1:
            continue
        left = _ratio(cut[a] - degree[v] + 2 * link[v, a], total[a] - weight[v])
        rest = value - _ratio(cut[a], total[a]) + left
        others = inverse - _ratio(1.0, total[a]) + _ratio(1.0, total[a] - weight[v])
        for c in range(k):
            if c == a:
                continue
            joined = _ratio(cut[c] + degree[v] - 2 * link[v, c], total[c] + weight[v])
            cost = rest - _ratio(cut[c], total[c]) + joined
            after = n_violated + int(broken[v, c] - broken[v, a])
            cost += penalty * max(after - n_allowed, 0)
            if gamma > 0:
                inverses = others - _ratio(1.0, total[c]) + _ratio(1.0, total[c] + weight[v])
                cost += gamma * after * inverses
            if cost < lowest:
                chosen, to, lowest = v, c, cost
    return chosen, to


@njit(cache=True, nogil=True, inline="always")
def _ratio(cut, total):  # type: ignore[no-untyped-def]
    """Return cut over weight; without weight nothing is a cluster."""
    return max(cut, 0.0) / total if total > 0 else NO_CLUSTER
