"""Matchings that halve a problem without losing what a partition, or two, have found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from linkwise._random import new_stream, shuffle, uniform
from linkwise.search.problem import Problem, quotient

if TYPE_CHECKING:
    from linkwise._types import Int32s


__all__ = ["coarsen", "hierarchy"]

NOISE = 0.5  # matchings differ from call to call, so that repeated cycles see other graphs
STALLED = 0.9  # a level that keeps more than this share of its vertices is not worth having


def coarsen(
    problem: Problem, cells: Int32s, max_volume: float, seed: int
) -> tuple[Problem, Int32s] | None:
    """Merge matched vertices of the same cell; None if hardly any can be matched."""
    parent, n_coarse = _match(problem, cells, max_volume, seed)
    if n_coarse > STALLED * problem.n_vertices:
        return None
    return quotient(problem, parent, n_coarse), parent


def hierarchy(
    problem: Problem, cells: Int32s, target: int, n_clusters: int, rng: np.random.RandomState
) -> tuple[list[tuple[Problem, Int32s]], Problem]:
    """Coarsen until `target` vertices; return the levels (problem, parent) and the coarsest."""
    levels: list[tuple[Problem, Int32s]] = []
    total = problem.volume.sum()
    while problem.n_vertices > target:
        near_the_end = problem.n_vertices < 4 * target
        limit = total / ((3 if near_the_end else 10) * n_clusters)
        found = coarsen(problem, cells, limit, int(rng.randint(2**31)))
        if found is None:
            break
        levels.append((problem, found[1]))
        problem, parent = found
        coarse_cells = np.empty(problem.n_vertices, np.int32)
        coarse_cells[parent] = cells
        cells = coarse_cells
    return levels, problem


@njit(cache=True, nogil=True)
def _match(p: Problem, cells: Int32s, max_volume: float, seed: int) -> tuple[Int32s, int]:
    """Match vertices along heavy edges inside cells; never cannot-linked ones.

    The heaviness ``w (1 / vol_u + 1 / vol_v)`` is what the cut would lose if the edge were cut.
    """
    n = p.volume.size
    stream = new_stream(seed)
    order = np.arange(n).astype(np.int32)
    shuffle(order, stream)
    parent = np.full(n, -1, np.int32)
    apart = np.full(n, -1, np.int32)  # apart[u] == v: u is cannot-linked to v
    n_coarse = 0
    for v in order:
        if parent[v] >= 0:
            continue
        for e in range(p.apart_indptr[v], p.apart_indptr[v + 1]):
            apart[p.apart_indices[e]] = v
        best = -1.0
        mate = -1
        for e in range(p.indptr[v], p.indptr[v + 1]):
            u = p.indices[e]
            if parent[u] >= 0 or cells[u] != cells[v] or apart[u] == v:
                continue
            if p.volume[u] + p.volume[v] > max_volume:
                continue
            heaviness = p.weight[e] * (1.0 / p.volume[u] + 1.0 / p.volume[v])
            heaviness *= 1.0 + NOISE * uniform(stream)
            if heaviness > best:
                best = heaviness
                mate = u
        parent[v] = n_coarse
        if mate >= 0:
            parent[mate] = n_coarse
        n_coarse += 1
    return parent, n_coarse
