"""The shortest links that join the connected components of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from linkwise.graph.boxes import build_boxes, closest_by_boxes

if TYPE_CHECKING:
    from linkwise._types import Bools, Ints
    from linkwise.graph.neighbors import NeighborSearch


EXACT_BUDGET = 2_000_000_000  # distance evaluations a round; about ten seconds on one core
SMALL_COMPONENT = 100  # samples; below, one search for all such components together
BOXES_ABOVE = 2_000  # samples; below, all pairs take milliseconds, loading compiled code more
# Boxes prune the less, the more features there are. At this limit (10^6 samples of 8 features,
# 10^5 of 11) a round takes seconds where components lie apart, and no longer than the search for
# neighbours where every sample is a component of its own.
BOXES_LIMIT = 300_000_000  # samples times 2^features
N_STARTS = 8  # pairs from which the search for a locally shortest link descends


Links: TypeAlias = "np.recarray[Any, Any]"  # fields `distance`, `i`, `j`: pairs of samples to join
FIELDS = [("distance", np.float64), ("i", np.intp), ("j", np.intp)]


def shortest_links(search: NeighborSearch, component: Ints, *, budget: int = EXACT_BUDGET) -> Links:
    """Minimum spanning tree between the components, by the rounds of Boruvka.

    In each round every component but the largest proposes its shortest link to a sample outside.
    They are the shortest while a round takes at most `budget` distances. Beyond, a big component is
    linked by `locally_shortest`, and of small ones only some members are compared. In few
    dimensions a tree of boxes finds the shortest links, without any limit.
    """
    forest, rounds = component, [np.rec.array(None, dtype=FIELDS, shape=0)]
    has_many = search.n_samples > BOXES_ABOVE
    boxes = build_boxes(search.X) if has_many and boxes_pay(search) else None
    while (n_trees := int(forest.max()) + 1) > 1:
        if boxes is None:
            proposed = closest_outside(search, forest, budget)
        else:
            largest = int(np.bincount(forest).argmax())
            found = closest_by_boxes(boxes, forest, largest, exponent=search.exponent or 2.0)
            proposed = np.rec.fromarrays(np.delete(found, largest, axis=1), dtype=FIELDS)
        if np.isinf(proposed.distance).any():
            raise ValueError(
                "The connected components of the graph cannot be joined: the metric gives no "
                "finite distance between them. Use another metric, or connect=None to leave them."
            )
        links, forest = spanning(proposed, forest, n_trees)
        rounds.append(links)
    return np.concatenate(rounds).view(np.recarray)


def boxes_pay(search: NeighborSearch) -> bool:
    """Whether a tree of boxes finds closest pairs faster than comparisons do."""
    n_samples, n_features = search.X.shape
    return search.has_boxes and n_samples * 2.0**n_features <= BOXES_LIMIT


def spanning(proposed: Links, forest: Ints, n_trees: int) -> tuple[Links, Ints]:
    """Join trees along the shortest link that each proposes: Kruskal's spanning forest of these.

    Returns the links taken, and the new trees.
    """
    own = forest[proposed.i]
    order = np.lexsort((proposed.j, proposed.i, proposed.distance, own))
    links: Any = np.sort(proposed[order[np.unique(own[order], return_index=True)[1]]])
    low, high = np.sort(forest[np.stack([links.i, links.j])], axis=0)
    # The first link of each pair of trees, weighted by its rank: no two are equal, and a distance
    # of 0 would be no edge for scipy.
    rank = np.unique(low * n_trees + high, return_index=True)[1]
    # SciPy 1.13 takes no spanning tree of a graph with indices of 64 bits.
    pairs = np.stack([low[rank], high[rank]]).astype(np.int32)
    graph = csr_array((rank + 1.0, (pairs[0], pairs[1])), shape=(n_trees, n_trees))
    tree = minimum_spanning_tree(graph)
    joined = connected_components(tree, directed=False)[1]
    return links[np.sort(tree.data.astype(np.intp)) - 1], joined[forest]


def closest_outside(search: NeighborSearch, forest: Ints, budget: int) -> Links:
    """Link members of each component, except the largest one, with the closest sample outside."""
    sizes = np.bincount(forest)
    asked = np.arange(sizes.size) != sizes.argmax()
    small = np.flatnonzero((asked & (sizes <= SMALL_COMPONENT))[forest])
    found = []
    if small.size:
        # All by one search: a component of s samples holds s - 1 neighbours of each of its members,
        # so the s nearest of a member include one outside.
        k = int(np.bincount(forest[small]).max())
        if small.size * search.n_samples > budget:
            small = representatives(forest, small, max(1, budget // search.n_samples))
        distances, indices = search.nearest(k, samples=small)
        first = (forest[indices] != forest[small][:, None]).argmax(axis=1)
        row = np.arange(small.size)
        nearest = [distances[row, first], small, indices[row, first]]
        found.append(np.rec.fromarrays(nearest, dtype=FIELDS))
    big = np.flatnonzero(asked & (sizes > SMALL_COMPONENT))
    for component in big[np.argsort(sizes[big], kind="stable")]:
        members, others = np.flatnonzero(forest == component), np.flatnonzero(forest != component)
        work = members.size * others.size
        if work > budget:
            found.append(locally_shortest(search, forest == component))
            continue
        distances, targets = search.closest(members, others)
        found.append(np.rec.fromarrays([distances, members, targets], dtype=FIELDS))
        budget -= work
    return np.concatenate(found).view(np.recarray)


def representatives(forest: Ints, members: Ints, n_wanted: int) -> Ints:
    """Keep the first members of each component, as many as wanted in all but at least one each."""
    grouped = members[np.argsort(forest[members], kind="stable")]
    _, start, counts = np.unique(forest[grouped], return_index=True, return_counts=True)
    rank = np.arange(grouped.size) - np.repeat(start, counts)
    return np.sort(grouped[rank < max(1, n_wanted // counts.size)])


def locally_shortest(search: NeighborSearch, inside: Bools) -> Links:
    """Find a short link across the border of a component, not always the shortest.

    Starts from the closest pairs of a sample of both sides, then goes from each end to the
    closest sample of the other side and back, as long as the distance falls: projections in turn
    on two sets. A step costs `N_STARTS` times n distances. Two convex sets far apart are
    joined by their closest pair; others may be joined by a locally closest one.
    """
    members, others = (
        side[np.linspace(0, side.size - 1, min(size, side.size)).astype(np.intp)]
        for side, size in ((np.flatnonzero(inside), 500), (np.flatnonzero(~inside), 5_000))
    )
    distances, _ = search.closest(members, others)
    ends = members[np.argsort(distances, kind="stable")[:N_STARTS]]
    distance, link = np.inf, (-1, -1)
    while True:
        block = np.where(inside != inside[ends[0]], search.from_samples(ends), np.inf)
        row, target = np.unravel_index(block.argmin(), block.shape)
        if block[row, target] >= distance:
            break
        distance, link = float(block[row, target]), (int(ends[row]), int(target))
        ends = np.unique(block.argmin(axis=1))
    i, j = link if inside[link[0]] else link[::-1]
    return np.rec.array([(distance, i, j)], dtype=FIELDS)
