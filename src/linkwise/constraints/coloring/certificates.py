"""Proofs that a number of colours does not suffice for a graph of cannot-links.

Every function returns subgraphs that cannot be coloured, or nothing. Nothing is no proof of the
contrary, except for two colours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.constraints.coloring import exhaustive, kernels
from linkwise.constraints.coloring.search import (
    Coloring,
    color_core,
    graph_of,
    pairs_of,
    peel,
    subgraph,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import AnyInts, Bools, Int64s, Ints
    from linkwise.constraints.coloring.search import CannotLinkGraph

MAX_RINGS_TRIED = 50  # odd rings compared, to show a short one
CLIQUE_WORK = 20_000_000  # edges looked at; some tenths of a second
EXACT_NODES = 200_000  # of the exhaustive search on a whole core
EXACT_WORK = 400_000_000  # nodes times vertices; about a second
FILTER_WORK = 400_000_000  # of all searches that make a proof minimal, likewise
SMALLEST_PART = 12  # vertices that are searched first
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


def find_certificate(
    graph: CannotLinkGraph, n_colors: int, rng: np.random.RandomState
) -> Certificate | None:
    """Return a proof that `n_colors` do not suffice; None if a colouring or no proof was found.

    Exact for one and two colours. For more, only the core can be hard. There it looks for a
    colouring and for a clique, harder for a colouring, and at last it searches exhaustively,
    first where colouring failed most often.
    """
    if n_colors == 1:
        return _named(pairs_of(graph)[:1]) if graph.indices.size else None
    if n_colors == 2:
        return odd_ring(graph)
    vertices, core = subgraph(graph, peel(graph, n_colors).core)
    found = _certificate_of_core(core, n_colors, rng) if core.n_groups else None
    return None if found is None else _named(vertices[found.edges], is_minimal=found.is_minimal)


def _certificate_of_core(
    core: CannotLinkGraph, n_colors: int, rng: np.random.RandomState
) -> Certificate | None:
    cost = rng.random_sample((core.n_groups, n_colors))
    few = int(np.clip(QUICK_ROUNDS_WORK // core.n_groups, 2, CHECK_ROUNDS))
    if color_core(core, cost, rng, rounds=few, tabu_steps=0).n_left == 0:
        return None
    clique = large_clique(core, n_colors + 1)
    if clique.size > n_colors:
        return _named(clique[np.column_stack(np.triu_indices(clique.size, 1))])
    attempt = color_core(core, cost, rng, rounds=CHECK_ROUNDS, tabu_steps=CHECK_TABU_STEPS)
    return minimal_certificate(core, n_colors, attempt.pressure) if attempt.n_left else None


def odd_ring(graph: CannotLinkGraph) -> Certificate | None:
    """Return a short odd ring, or None if there is none: then two colours suffice."""
    # A group with one cannot-link is on no ring.
    members = np.flatnonzero(np.diff(graph.indptr) > 1).astype(np.int32)
    ring = exhaustive.odd_ring(*graph, members, MAX_RINGS_TRIED).tolist()
    if not ring:
        return None
    ring = _from_its_smallest(ring)
    return Certificate("odd ring", ring, np.column_stack((ring, np.roll(ring, -1))))


def large_clique(graph: CannotLinkGraph, size: int) -> Ints:
    """Return up to `size` vertices that are pairwise apart, found greedily; ascending."""
    found = exhaustive.greedy_clique(*graph, size, CLIQUE_WORK)
    return np.sort(found).astype(np.intp)


# Naming a proof ------------------------------------------------------------------------------


def _named(pairs: AnyInts, *, is_minimal: bool = True) -> Certificate:
    """Recognise a clique, or a wheel: hubs adjacent to all, and a ring."""
    edges = pairs.astype(np.intp)
    vertices, degree = np.unique(edges, return_counts=True)
    is_hub = degree == vertices.size - 1
    hubs, rim = vertices[is_hub].tolist(), vertices[~is_hub].tolist()
    if not rim:
        return Certificate("clique", hubs, edges)
    ring = _ring_order(edges[np.isin(edges, rim).all(axis=1)], rim)
    if hubs and ring:
        return Certificate("wheel", [*hubs, *ring], edges, len(hubs), is_minimal)
    return Certificate("minimal set", vertices.tolist(), edges, is_minimal=is_minimal)


def _ring_order(edges: Ints, vertices: list[int]) -> list[int]:
    """Return the vertices of a ring in its order; empty if the edges are no single ring."""
    around: dict[int, list[int]] = {v: [] for v in vertices}
    for a, b in edges.tolist():
        around[a].append(b)
        around[b].append(a)
    if any(len(neighbors) != 2 for neighbors in around.values()):
        return []
    ring = [vertices[0], around[vertices[0]][0]]
    while len(ring) < len(vertices):
        a, b = around[ring[-1]]
        ring.append(b if a == ring[-2] else a)
    return _from_its_smallest(ring) if len(set(ring)) == len(vertices) else []


def _from_its_smallest(ring: list[int]) -> list[int]:
    """Start a ring at its smallest vertex and go on to the smaller of its neighbours."""
    first = ring.index(min(ring))
    ring = ring[first:] + ring[:first]
    return ring if ring[1] < ring[-1] else ring[:1] + ring[:0:-1]


# Exhaustive search -------------------------------------------------------------------------


def minimal_certificate(
    graph: CannotLinkGraph, n_colors: int, pressure: Int64s
) -> Certificate | None:
    """Search exhaustively for a part that cannot be coloured.

    Looks at the vertices with most `pressure`, twice as many each time, and in the end at all.
    """
    order = np.argsort(-pressure, kind="stable")
    size = SMALLEST_PART
    while True:
        whole = size >= graph.n_groups
        part = _core_pairs(graph, _with_close(graph, order[:size]), n_colors)
        limit = EXACT_NODES if whole else EXACT_NODES // 10
        if _search(part, n_colors, limit)[0] == exhaustive.IMPOSSIBLE:
            return _minimal(part, n_colors)
        if whole:
            return None
        size *= 2


def color_exhaustively(
    graph: CannotLinkGraph, n_colors: int, rng: np.random.RandomState
) -> Coloring | None:
    """Colour a graph by backtracking, where greedy and tabu search failed; None if undecided."""
    peeling = peel(graph, n_colors)
    vertices, core = subgraph(graph, peeling.core)
    limit = min(EXACT_NODES, EXACT_WORK // max(vertices.size, 1))
    status, _, inner = exhaustive.exact_coloring(*core, n_colors, limit)
    if status != exhaustive.COLORED:
        return None
    colors = np.full(graph.n_groups, -1, dtype=np.int32)
    colors[vertices] = inner
    cost = rng.random_sample((graph.n_groups, n_colors))
    kernels.color_peeled(*graph, peeling.order, cost, colors)
    kernels.fill_empty(cost, colors)
    return Coloring(colors, 0)


def _with_close(graph: CannotLinkGraph, some: Ints) -> Bools:
    """Return some vertices and those with at least two neighbours among them."""
    chosen = np.zeros(graph.n_groups, dtype=bool)
    chosen[some] = True
    heads = np.repeat(np.arange(graph.n_groups), np.diff(graph.indptr))
    n_chosen = np.bincount(heads[chosen[graph.indices]], minlength=graph.n_groups)
    return chosen | (n_chosen >= 2)


def _core_pairs(graph: CannotLinkGraph, chosen: Bools, n_colors: int) -> Ints:
    """Return the edges of the core of the subgraph on some vertices."""
    vertices, part = subgraph(graph, chosen)
    inner, core = subgraph(part, peel(part, n_colors).core)
    return vertices[inner][pairs_of(core)].astype(np.intp)


def _search(pairs: Ints, n_colors: int, max_nodes: int) -> tuple[int, int]:
    """Colour the core of some edges exhaustively; return the status and the work."""
    names, ends = np.unique(pairs, return_inverse=True)
    graph = graph_of(ends.reshape(-1, 2), names.size)
    _, core = subgraph(graph, peel(graph, n_colors).core)
    limit = max(0, min(max_nodes, EXACT_WORK // max(1, core.n_groups)))
    status, n_nodes, _ = exhaustive.exact_coloring(*core, n_colors, limit)
    return status, n_nodes * core.n_groups + 20 * len(pairs)


def _minimal(pairs: Ints, n_colors: int) -> Certificate:
    """Drop edges from a part that cannot be coloured, as long as it cannot (delta debugging)."""
    is_kept = np.ones(len(pairs), dtype=bool)
    work, is_minimal = 0, True
    for block in _shrinking_blocks(is_kept):
        is_kept[block] = False
        status, more = _search(pairs[is_kept], n_colors, EXACT_NODES)
        is_kept[block] = status != exhaustive.IMPOSSIBLE
        work += more
        is_minimal &= status != exhaustive.UNDECIDED or block.size > 1
        if work > FILTER_WORK:
            is_minimal = False
            break
    edges = pairs[is_kept]
    return Certificate("minimal set", np.unique(edges).tolist(), edges, is_minimal=is_minimal)


def _shrinking_blocks(chosen: Bools) -> Iterator[Ints]:
    """Yield blocks of what is still chosen: halves first, single ones last."""
    size = max(1, int(chosen.sum()) // 2)
    while True:
        chosen_now = np.flatnonzero(chosen)
        yield from np.array_split(chosen_now, max(1, -(-chosen_now.size // size)))
        if size == 1:
            return
        size //= 2


# Bounds ------------------------------------------------------------------------------------


def colors_needed(graph: CannotLinkGraph, too_few: int, rng: np.random.RandomState) -> int:
    """Return a number of colours above `too_few` with which a colouring was found."""
    n_colors = too_few
    while True:
        n_colors += 1
        peeling = peel(graph, n_colors)
        if not peeling.core.any():
            return n_colors
        _, core = subgraph(graph, peeling.core)
        cost = np.zeros((core.n_groups, n_colors))
        attempt = color_core(core, cost, rng, rounds=5, tabu_steps=20_000)
        if attempt.n_left == 0:
            return n_colors
