"""Proper colourings of small total cost, where every vertex has a cost for each colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise._jit import late_module
from linkwise.constraints.coloring import kernels
from linkwise.constraints.coloring.search import (
    ROUNDS,
    TABU_STEPS,
    Coloring,
    colored,
    find_coloring,
    guided_coloring,
    peel,
    subgraph,
)

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s
    from linkwise.constraints.coloring.search import CannotLinkGraph

sparse = late_module("scipy.sparse")  # takes 0.2 s to import
csgraph = late_module("scipy.sparse.csgraph")

MAX_SWEEPS = 100  # of Kempe chains; a few are usual


def assign(
    graph: CannotLinkGraph,
    cost: Floats,
    rng: np.random.RandomState,
    *,
    n_restarts: int = 30,
) -> Coloring:
    """Return a proper colouring whose total cost is small; arguments as in `guided_coloring`.

    Exact where the graph is a forest, by dynamic programming; elsewhere the trees that hang
    from cycles are folded into them, exactly, and what remains is coloured greedily, guided by
    costs with more and more noise, and improved by swapping Kempe chains. Every component
    keeps its best colouring. Where the cheapest colouring leaves a colour unused, the little that
    is changed for it need not be the best.
    """
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    n, k = cost.shape
    if k < 2:
        return guided_coloring(graph, cost, rng, tabu_steps=0)
    folded = cost.copy()
    order, parent, n_folded = kernels.fold_leaves(*graph, folded)
    cyclic = np.ones(n, dtype=bool)
    cyclic[order[:n_folded]] = False
    colors = np.full(n, -1, dtype=np.int32)
    if n_folded < n:
        vertices, inner = subgraph(graph, cyclic)
        colors[vertices] = _assign_cyclic(inner, folded[vertices], rng, n_restarts=n_restarts)
    kernels.unfold_leaves(order, parent, n_folded, folded, colors)
    if np.bincount(colors[colors >= 0], minlength=k).min() == 0:
        kernels.fill_empty(cost, colors)
        kernels.kempe_descent(*graph, cost, colors, MAX_SWEEPS, False)  # noqa: FBT003
    return Coloring(colors, int((colors < 0).sum()))


def _assign_cyclic(
    graph: CannotLinkGraph, cost: Floats, rng: np.random.RandomState, *, n_restarts: int
) -> Int32s:
    """Colour a graph without leaves cheaply; every component keeps its best colouring."""
    n, k = cost.shape
    peeling = peel(graph, k)
    component = _components(graph)
    best = colored(graph, cost, rng, peeling=peeling, rounds=ROUNDS, tabu_steps=TABU_STEPS)
    if (best < 0).any():
        best = find_coloring(graph, k, rng, cost=cost).colors
    best_cost = _improve(graph, cost, best, component=component)
    regret = np.partition(cost, 1, axis=1)
    spread = float(np.median(regret[:, 1] - regret[:, 0]))
    for restart in range(1, n_restarts):
        # From a little noise to as much as there is to lose.
        noise = 4.0 * spread * restart / n_restarts
        noisy = cost + noise * rng.random_sample((n, k))
        trial = colored(graph, noisy, rng, peeling=peeling, rounds=10, tabu_steps=0)
        trial_cost = _improve(graph, cost, trial, component=component)
        better = trial_cost < best_cost
        chosen = better[component]
        best[chosen] = trial[chosen]
        best_cost[better] = trial_cost[better]
    return best


def _components(graph: CannotLinkGraph) -> Int32s:
    n = graph.n_groups
    ones = np.ones(graph.indices.size, dtype=np.int8)
    matrix = sparse.csr_array((ones, graph.indices, graph.indptr), shape=(n, n))
    component: Int32s = csgraph.connected_components(matrix, directed=False)[1]
    return component


def _improve(graph: CannotLinkGraph, cost: Floats, colors: Int32s, *, component: Int32s) -> Floats:
    """Improve a colouring in place; return what it costs in each component."""
    kernels.kempe_descent(*graph, cost, colors, MAX_SWEEPS, True)  # noqa: FBT003
    paid = np.where(colors < 0, np.inf, cost[np.arange(colors.size), colors])
    return np.bincount(component, weights=paid).astype(np.float64)
