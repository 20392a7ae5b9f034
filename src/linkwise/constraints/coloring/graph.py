"""The graph of cannot-links between groups of must-linked samples, and its core."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.constraints.coloring import kernels

if TYPE_CHECKING:
    from linkwise._types import Bools, Int32s, Int64s, Ints


class CannotLinkGraph(NamedTuple):
    """Cannot-links between groups: symmetric rows, sorted, without loops and duplicates."""

    indptr: Int64s
    indices: Int32s

    @property
    def n_groups(self) -> int:
        """The number of vertices."""
        return self.indptr.size - 1


def graph_of(pairs: Ints, n_groups: int) -> CannotLinkGraph:
    """Return the graph of distinct pairs (a, b) with a < b, sorted."""
    low, high = np.ascontiguousarray(pairs.T)
    return CannotLinkGraph(*kernels.symmetric_rows(low, high, n_groups))


def pairs_of(graph: CannotLinkGraph) -> Ints:
    """Return the edges (a, b) with a < b, sorted."""
    heads = np.repeat(np.arange(graph.n_groups), np.diff(graph.indptr))
    upper = heads < graph.indices
    return np.column_stack((heads[upper], graph.indices[upper])).astype(np.intp)


def subgraph(graph: CannotLinkGraph, kept: Bools) -> tuple[Int32s, CannotLinkGraph]:
    """Return the vertices that are kept, and the graph on them, renumbered."""
    vertices, indptr, indices = kernels.induced(*graph, kept)
    return vertices, CannotLinkGraph(indptr, indices)


class Peeling(NamedTuple):
    """The vertices that may be hard to colour, and the order in which the others came off."""

    core: Bools
    order: Int32s  # to be coloured in reverse


def peel(graph: CannotLinkGraph, n_colors: int) -> Peeling:
    """Remove vertices with fewer than `n_colors` neighbours, again and again.

    Coloured last and in reverse order, each of them finds a colour. So only the core that
    remains can lack a colouring; if it is empty, there is one for certain.
    """
    return Peeling(*kernels.peel_below(*graph, n_colors))
