"""Large graphs: search a coarse copy, and refine its answer at every size on the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.search.coarsen import hierarchy
from linkwise.search.evolve import CutSearch, improve
from linkwise.search.starts import colorer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Int32s
    from linkwise.search.problem import Problem


__all__ = ["LARGE", "Coarse", "coarse_copy"]

LARGE = 20_000  # vertices above which a coarse copy is searched
COARSE = 5_000  # vertices of that copy, besides those that have constraints
# Merged vertices of data in many dimensions have ever more neighbours: of a million samples in 16,
# a copy of 6,000 vertices has 1.9 million edges, a quarter of the graph's. It is shrunk further.
EDGES = 500_000  # of a copy, while more than the least number of vertices are left
LEAST = 500  # vertices, besides those that have constraints
WORTH_IT = 0.5  # a copy with more than this share of the vertices saves nothing
SWEEP_ONLY = 20_000  # vertices above which the way back has no climbs


class Coarse(NamedTuple):
    """A coarse copy of a search, and the way back."""

    cuts: CutSearch
    levels: list[tuple[Problem, Int32s]]  # from fine to coarse, each with the next one's vertices

    def down(self, z: Int32s) -> Int32s:
        """Return a partition that coarsening respected, or one side of each vertex of others."""
        return _down(self.levels, z)

    def up(self, z: Int32s) -> Int32s:
        """Return a partition of the coarse copy as one of the graph: the same cut."""
        for _, parent in reversed(self.levels):
            z = z[parent]
        return z

    def refined(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Do the same, and move vertices on every level."""
        effort = self.cuts.effort
        effort = effort._replace(climb_up_to=min(effort.climb_up_to, SWEEP_ONLY))
        for fine, parent in reversed(self.levels):
            priced = fine._replace(gamma=self.cuts.problem.gamma)
            z = improve(priced, z[parent], self.cuts.k, effort, rng)
        return z


def coarse_copy(
    cuts: CutSearch, rng: np.random.RandomState, first: Sequence[Int32s] = ()
) -> Coarse | None:
    """Merge neighbours until some thousand vertices are left; None for what is not large.

    Vertices with pairs stay by themselves, so that what was feasible stays so, and no price of a
    pair is lost inside a vertex. Nothing is merged across the partitions `first`.
    """
    problem = cuts.problem
    n = problem.n_vertices
    if n <= LARGE:
        return None
    tied = np.flatnonzero(np.diff(problem.apart_indptr) + np.diff(problem.soft_indptr))
    cells = np.zeros(n, np.int32)
    for z in first:
        cells = np.unique(cells * np.int64(cuts.k) + z, return_inverse=True)[1].astype(np.int32)
    cells[tied] = int(cells.max()) + 1 + np.arange(tied.size)
    levels, small = hierarchy(problem, cells, COARSE + tied.size, cuts.k, rng)
    more = levels
    while more and small.indices.size > 2 * EDGES and small.n_vertices > LEAST + tied.size:
        # One level at a time.
        more, small = hierarchy(small, _down(levels, cells), small.n_vertices - 1, cuts.k, rng)
        levels = levels + more
    if small.n_vertices > WORTH_IT * n:
        return None
    copy = Coarse(cuts._replace(problem=small), levels)
    return copy._replace(
        cuts=copy.cuts._replace(color=colorer(small, cuts.k, copy.down(cuts.color.known)))
    )


def _down(levels: list[tuple[Problem, Int32s]], z: Int32s) -> Int32s:
    for _, parent in levels:
        coarse = np.empty(int(parent.max()) + 1, np.int32)
        coarse[parent] = z
        z = coarse
    return z
