"""Proofs that a number of colours does not suffice for a graph of cannot-links.

Every function returns subgraphs that cannot be coloured, or nothing. Nothing is no proof of the
contrary, except for two colours.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.constraints import certificate_kernels as search
from linkwise.constraints.coloring import CannotLinkGraph, Coloring, color_core, peel
from linkwise.constraints.coloring_kernels import (
    color_peeled,
    fill_empty,
    induced,
    symmetric_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Bools, Int32s, Int64s, Ints


__all__ = [
    "Certificate",
    "color_exhaustively",
    "colors_needed",
    "find_certificate",
    "graph_of",
    "minimal_certificate",
    "odd_ring",
    "wheel",
]

MAX_RINGS_TRIED = 50  # odd rings compared, to show a short one
WHEEL_CALLS = 200_000
WHEEL_WORK = 20_000_000  # edges looked at; some tenths of a second
EXACT_NODES = 200_000  # of the exhaustive search on a whole core
EXACT_WORK = 400_000_000  # nodes times vertices; about a second
FILTER_WORK = 400_000_000  # of all searches that make a proof minimal, likewise
LOCAL_SIZE, LOCAL_NODES, LOCAL_WORK = 600, 2_000, 50_000_000  # of the search around each vertex
SMALLEST_PART = 12  # vertices under most pressure that are searched first
CHECK_ROUNDS = 20  # greedy colourings tried before the exhaustive search
CHECK_TABU_STEPS = 200_000
QUICK_ROUNDS_WORK = 100_000  # vertices coloured greedily before anything else is tried


class Certificate(NamedTuple):
    """A subgraph that cannot be coloured."""

    kind: str  # "odd ring", "clique", "wheel" or "minimal set"
    vertices: list[int]  # of a ring in its order; of a wheel the hubs first
    edges: Ints  # pairs of vertices
    n_hubs: int = 0
    is_minimal: bool = True  # without any one of the edges, the subgraph can be coloured


def graph_of(pairs: Ints, n_groups: int) -> CannotLinkGraph:
    """Return the graph of distinct pairs (a, b) with a < b, sorted."""
    low, high = np.ascontiguousarray(pairs.T)
    return CannotLinkGraph(*symmetric_rows(low, high, n_groups))


def pairs_of(graph: CannotLinkGraph) -> Ints:
    """Return the edges (a, b) with a < b, sorted."""
    heads = np.repeat(np.arange(graph.n_groups), np.diff(graph.indptr))
    upper = heads < graph.indices
    return np.column_stack((heads[upper], graph.indices[upper])).astype(np.intp)


def find_certificate(
    graph: CannotLinkGraph, n_colors: int, rng: np.random.RandomState
) -> Certificate | None:
    """Return a proof that `n_colors` do not suffice; None if a colouring or no proof was found.

    Exact for one and two colours. For more, only the core can be hard. There it looks for a
    colouring and for a wheel, harder for a colouring, and at last it searches exhaustively,
    first where colouring failed most often.
    """
    if n_colors == 1:
        return _clique(pairs_of(graph)[0].tolist()) if graph.indices.size else None
    if n_colors == 2:
        return odd_ring(graph)
    peeling = peel(graph, n_colors)
    if not peeling.core.any():
        return None
    vertices, indptr, indices = induced(*graph, peeling.core)
    core = CannotLinkGraph(indptr, indices)
    cost = rng.random_sample((core.n_groups, n_colors))
    few = int(np.clip(QUICK_ROUNDS_WORK // core.n_groups, 2, CHECK_ROUNDS))
    if color_core(core, cost, rng, rounds=few, tabu_steps=0).n_left == 0:
        return None
    found = wheel(core, n_colors)
    if found is None:
        attempt = color_core(core, cost, rng, rounds=CHECK_ROUNDS, tabu_steps=CHECK_TABU_STEPS)
        if attempt.n_left == 0:
            return None
        found = minimal_certificate(core, n_colors, attempt.pressure)
    return None if found is None else _renumbered(found, vertices)


def _renumbered(found: Certificate, names: Int32s) -> Certificate:
    """Return the certificate with each vertex `v` called ``names[v]``."""
    return found._replace(
        vertices=names[found.vertices].tolist(), edges=names[found.edges].astype(np.intp)
    )


# Rings, cliques and wheels -----------------------------------------------------------------


def odd_ring(graph: CannotLinkGraph) -> Certificate | None:
    """Return a short odd ring, or None if there is none: then two colours suffice."""
    n = graph.n_groups
    buffers = np.full((3, n), -1, dtype=np.int32)
    # A group with one cannot-link is on no ring, and the search leaves it aside.
    inside = np.where(np.diff(graph.indptr) > 1, 0, -1).astype(np.int32)
    members = np.flatnonzero(inside == 0).astype(np.int32)
    ring = search.odd_ring(*graph, inside, 0, members, MAX_RINGS_TRIED, buffers).tolist()
    if not ring:
        return None
    ring = _from_its_smallest(ring)
    return Certificate("odd ring", ring, np.array(_around(ring), dtype=np.intp))


def wheel(graph: CannotLinkGraph, n_colors: int) -> Certificate | None:
    """Return hubs and an odd ring that need more than `n_colors`, if such were found."""
    hubs, ring = search.wheel(*graph, n_colors, WHEEL_CALLS, WHEEL_WORK)
    if not ring.size:
        return None
    if ring.size == 3:
        return _clique(sorted([*hubs.tolist(), *ring.tolist()]))
    center, rim = hubs.tolist(), _from_its_smallest(ring.tolist())
    spokes = [(h, r) for h in center for r in rim]
    edges = np.array([*combinations(center, 2), *spokes, *_around(rim)], dtype=np.intp)
    return Certificate("wheel", [*center, *rim], edges, len(center))


def _from_its_smallest(ring: list[int]) -> list[int]:
    """Start a ring at its smallest vertex and go on to the smaller of its neighbours."""
    first = ring.index(min(ring))
    ring = ring[first:] + ring[:first]
    return ring if ring[1] < ring[-1] else ring[:1] + ring[:0:-1]


def _around(ring: list[int]) -> list[tuple[int, int]]:
    return list(zip(ring, ring[1:] + ring[:1], strict=True))


def _clique(members: list[int]) -> Certificate:
    edges = np.array(list(combinations(members, 2)), dtype=np.intp)
    return Certificate("clique", members, edges)


# Exhaustive search -------------------------------------------------------------------------


def minimal_certificate(
    graph: CannotLinkGraph, n_colors: int, pressure: Int64s
) -> Certificate | None:
    """Return a subgraph that exhaustive search could not colour, made as small as possible.

    Looks around each vertex, those with most `pressure` first; then at those with most pressure
    together, twice as many each time; in the end at all of them.
    """
    order = np.argsort(-pressure, kind="stable")
    local = search.local_obstruction(*graph, n_colors, order, LOCAL_SIZE, LOCAL_NODES, LOCAL_WORK)
    if local.size:
        return _minimal(graph, local, n_colors)
    size = SMALLEST_PART
    while True:
        whole = size >= graph.n_groups
        chosen = _with_close(graph, order[:size])
        vertices, part = _core(graph, chosen, n_colors)
        limit = EXACT_NODES if whole else EXACT_NODES // 10
        if vertices.size:
            limit = min(limit, EXACT_WORK // vertices.size)
            if search.exact_coloring(*part, n_colors, limit)[0] == search.IMPOSSIBLE:
                return _minimal(graph, vertices, n_colors)
        if whole:
            return None
        size *= 2


def color_exhaustively(
    graph: CannotLinkGraph, n_colors: int, rng: np.random.RandomState
) -> Coloring | None:
    """Colour a graph by backtracking, where greedy and tabu search failed; None if undecided."""
    peeling = peel(graph, n_colors)
    vertices, indptr, indices = induced(*graph, peeling.core)
    limit = min(EXACT_NODES, EXACT_WORK // max(vertices.size, 1))
    status, _, inner = search.exact_coloring(indptr, indices, n_colors, limit)
    if status != search.COLORED:
        return None
    colors = np.full(graph.n_groups, -1, dtype=np.int32)
    colors[vertices] = inner
    cost = rng.random_sample((graph.n_groups, n_colors))
    color_peeled(*graph, peeling.order, cost, colors)
    fill_empty(cost, colors)
    return Coloring(colors, 0)


def _with_close(graph: CannotLinkGraph, some: Ints) -> Bools:
    """Return some vertices and those with at least two neighbours among them."""
    chosen = np.zeros(graph.n_groups, dtype=bool)
    chosen[some] = True
    heads = np.repeat(np.arange(graph.n_groups), np.diff(graph.indptr))
    n_chosen = np.bincount(heads[chosen[graph.indices]], minlength=graph.n_groups)
    return chosen | (n_chosen >= 2)


def _core(graph: CannotLinkGraph, chosen: Bools, n_colors: int) -> tuple[Int32s, CannotLinkGraph]:
    """Return the core of the subgraph on some vertices."""
    vertices, indptr, indices = induced(*graph, chosen)
    part = CannotLinkGraph(indptr, indices)
    kept, indptr, indices = induced(*part, peel(part, n_colors).core)
    return vertices[kept], CannotLinkGraph(indptr, indices)


def _minimal(graph: CannotLinkGraph, impossible: Int32s, n_colors: int) -> Certificate:
    """Drop vertices and then edges from a part that cannot be coloured, as long as it cannot."""
    chosen = np.zeros(graph.n_groups, dtype=bool)
    chosen[impossible] = True
    names, indptr, indices = induced(*graph, chosen)
    part = CannotLinkGraph(indptr, indices)
    n_nodes = search.exact_coloring(*part, n_colors, EXACT_NODES)[1]
    budget = _Budget(FILTER_WORK, max(2_000, 2 * n_nodes))
    kept = np.ones(part.n_groups, dtype=bool)
    for block in _shrinking_blocks(kept):
        kept[block] = False
        if not budget.is_impossible(_core(part, kept, n_colors)[1], n_colors):
            kept[block] = True
    inner, part = _core(part, kept, n_colors)
    names = names[inner]

    pairs = pairs_of(part)
    needed = np.ones(len(pairs), dtype=bool)
    everywhere = np.ones(part.n_groups, dtype=bool)
    for row in range(len(pairs)):
        needed[row] = False
        trial = _core(graph_of(pairs[needed], part.n_groups), everywhere, n_colors)[1]
        if not budget.is_impossible(trial, n_colors):
            needed[row] = True
        if budget.left <= 0:
            break
    edges = names[pairs[needed]].astype(np.intp)
    return Certificate(
        "minimal set", np.unique(edges).tolist(), edges, is_minimal=budget.decided_all
    )


def _shrinking_blocks(chosen: Bools) -> Iterator[Ints]:
    """Yield blocks of the vertices that are still chosen: halves first, single ones last."""
    size = max(1, int(chosen.sum()) // 2)
    while True:
        chosen_now = np.flatnonzero(chosen)
        yield from np.array_split(chosen_now, max(1, -(-chosen_now.size // size)))
        if size == 1:
            return
        size //= 2


class _Budget:
    """Work that the searches of one filter may do together: nodes times vertices."""

    def __init__(self, total: int, max_nodes: int) -> None:
        self.left = total
        self.max_nodes = max_nodes  # of one search
        self.decided_all = True

    def is_impossible(self, graph: CannotLinkGraph, n_colors: int) -> bool:
        """Whether exhaustive search proved that the graph cannot be coloured."""
        if not graph.n_groups:
            return False
        limit = max(0, min(self.max_nodes, self.left // graph.n_groups))
        status, n_nodes, _ = search.exact_coloring(*graph, n_colors, limit)
        self.left -= n_nodes * graph.n_groups + graph.indices.size
        self.decided_all &= status != search.UNDECIDED
        return bool(status == search.IMPOSSIBLE)


# Bounds ------------------------------------------------------------------------------------


def colors_needed(graph: CannotLinkGraph, too_few: int, rng: np.random.RandomState) -> int:
    """Return a number of colours above `too_few` with which a colouring was found."""
    n_colors = too_few
    while True:
        n_colors += 1
        peeling = peel(graph, n_colors)
        if not peeling.core.any():
            return n_colors
        vertices, indptr, indices = induced(*graph, peeling.core)
        cost = np.zeros((vertices.size, n_colors))
        attempt = color_core(
            CannotLinkGraph(indptr, indices), cost, rng, rounds=5, tabu_steps=20_000
        )
        if attempt.n_left == 0:
            return n_colors
