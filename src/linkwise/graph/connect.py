"""The pieces of a graph, and the shortest links that join them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import DisjointSet
from scipy.sparse import csr_array, issparse

from linkwise.graph.boxes import build_boxes, closest_by_boxes

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Ints
    from linkwise.graph.boxes import BoxTree
    from linkwise.graph.neighbors import NeighborSearch


__all__ = ["Link", "shortest_links", "with_links"]

EXACT_BUDGET = 2_000_000_000  # distance evaluations a round; about ten seconds on one core
SMALL_COMPONENT = 100  # samples; below, one search for all such components together
DIRECT_COMPONENT = 1_000  # samples; below, comparing with all others beats looking for a bound
BOXES_ABOVE = 2_000  # samples; below, all pairs take milliseconds, loading compiled code more
# Boxes prune the less, the more features there are. At this limit (10^6 samples of 8 features,
# 10^5 of 11) a round takes seconds where pieces lie apart, and no longer than the search for
# neighbours where every sample is a piece of its own.
BOXES_LIMIT = 300_000_000  # samples times 2^features
N_STARTS = 8  # pairs from which the approximate search descends
MAX_STEPS = 30  # a guard: the distance falls with every step, so the descent ends by itself


class Link(NamedTuple):
    """Two samples to join, and their distance. Links are ordered by distance, then by index."""

    distance: float
    i: int
    j: int


def shortest_links(
    search: NeighborSearch, labels: Ints, *, budget: int = EXACT_BUDGET
) -> list[Link]:
    """Minimum spanning tree between the components, by the rounds of Boruvka.

    In each round every component but the largest is linked with the closest sample outside.
    A link that would close a ring, which equal distances can make, is left out.

    Parameters
    ----------
    search : NeighborSearch
        Gives the distances.
    labels : ndarray of shape (n_samples,)
        Component of every sample, numbered from 0.
    budget : int
        Distance evaluations of a round up to which the closest pairs are exact. Beyond, big
        components are linked by `approximate_pair`, and of small ones only some members are
        asked. In few dimensions a tree of boxes finds the closest pairs, without any limit.

    Returns
    -------
    list of Link
        One link less than there are components.
    """
    links: list[Link] = []
    forest = labels
    boxes = build_boxes(search.X) if boxes_pay(search) else None
    while (n_trees := int(forest.max()) + 1) > 1:
        if boxes is None:
            candidates = closest_outside(search, forest, budget)
        else:
            candidates = closest_in_boxes(boxes, search, forest)
        refuse_infinite(candidates)
        joined = DisjointSet(range(n_trees))
        links += [
            link
            for link in sorted(candidates)
            if joined.merge(int(forest[link.i]), int(forest[link.j]))
        ]
        roots = [joined[tree] for tree in range(n_trees)]
        forest = np.unique(roots, return_inverse=True)[1][forest]
    return links


def refuse_infinite(links: list[Link]) -> None:
    """Say that pieces cannot be joined where the metric has no finite distance between them."""
    if all(np.isfinite(link.distance) for link in links):
        return
    message = (
        "Pieces of the graph cannot be joined: the metric gives no finite distance between them. "
        "Use another metric, or connect=None to leave them apart."
    )
    raise ValueError(message)


def boxes_pay(search: NeighborSearch) -> bool:
    """Whether a tree of boxes finds closest pairs faster than comparisons do."""
    n_samples, n_features = search.X.shape
    return (
        search.has_boxes and n_samples > BOXES_ABOVE and n_samples * 2.0**n_features <= BOXES_LIMIT
    )


def closest_in_boxes(boxes: BoxTree, search: NeighborSearch, forest: Ints) -> list[Link]:
    """Find the shortest link of each component, except the largest one, to the others."""
    largest = int(np.bincount(forest).argmax())
    exponent = 2.0 if search.exponent is None else search.exponent
    found = closest_by_boxes(boxes, forest, largest, exponent)
    links = map(Link, *(values.tolist() for values in found))
    return [link for component, link in enumerate(links) if component != largest]


def closest_outside(search: NeighborSearch, forest: Ints, budget: int) -> list[Link]:
    """Find the shortest link of each component, except the largest one, to the others."""
    sizes = np.bincount(forest)
    asked = np.ones(sizes.size, dtype=bool)
    asked[sizes.argmax()] = False
    links = small_components(search, forest, asked & (sizes <= SMALL_COMPONENT), budget)
    big = np.flatnonzero(asked & (sizes > SMALL_COMPONENT))
    for component in big[np.argsort(sizes[big], kind="stable")]:
        link, spent = big_component(search, forest == component, budget)
        links.append(link)
        budget -= spent
    return links


def small_components(
    search: NeighborSearch, forest: Ints, wanted: Bools, budget: int
) -> list[Link]:
    """Closest sample outside each wanted component, by one search for all of them.

    A component of s samples holds s - 1 neighbours of each of its members, so the s nearest of a
    member include one outside.
    """
    members = np.flatnonzero(wanted[forest])
    if members.size == 0:
        return []
    if members.size * search.n_samples > budget:
        members = representatives(forest, members, max(1, budget // search.n_samples))
    k = int(np.bincount(forest)[wanted].max())
    distances, indices = search.nearest(k, samples=members)
    outside = forest[indices] != forest[members][:, None]
    first = outside.argmax(axis=1)
    row = np.arange(members.size)
    distance, target = distances[row, first], indices[row, first]
    order = np.lexsort((target, members, distance, forest[members]))
    _, best = np.unique(forest[members][order], return_index=True)
    return [Link(float(distance[r]), int(members[r]), int(target[r])) for r in order[best].tolist()]


def representatives(forest: Ints, members: Ints, n_wanted: int) -> Ints:
    """Keep the first members of each component, as many as wanted in all but at least one each."""
    order = np.argsort(forest[members], kind="stable")
    grouped = members[order]
    _, start, counts = np.unique(forest[grouped], return_index=True, return_counts=True)
    rank = np.arange(grouped.size) - np.repeat(start, counts)
    return np.sort(grouped[rank < max(1, n_wanted // counts.size)])


def big_component(search: NeighborSearch, inside: Bools, budget: int) -> tuple[Link, int]:
    """Shortest link of one component with the rest, and the evaluations it took."""
    members, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    work = members.size * others.size
    if members.size <= DIRECT_COMPONENT and work <= budget:
        return closest_link(search, members, others), work
    link = approximate_pair(search, inside)
    if search.has_boxes:
        # No closer pair has an end farther than the known one from the other side's box.
        others = others[near_box(search.X, others, members, link.distance)]
        members = members[near_box(search.X, members, others, link.distance)]
    work = members.size * others.size
    if work > budget:
        return link, 0
    return min(link, closest_link(search, members, others)), work


def near_box(X: Floats, samples: Ints, of: Ints, margin: float) -> Bools:
    """Which samples lie in the bounding box of others, widened by a margin."""
    corners = X[of]
    # A relative slack of a few roundings: the margin is itself a rounded distance.
    margin *= 1 + 1e-12
    low, high = corners.min(axis=0) - margin, corners.max(axis=0) + margin
    candidates = X[samples]
    near: Bools = np.all((candidates >= low) & (candidates <= high), axis=1)
    return near


def closest_link(search: NeighborSearch, members: Ints, others: Ints) -> Link:
    """Closest pair of two sets of samples, exactly."""
    distances, targets = search.closest(members, others)
    best = np.lexsort((targets, members, distances))[0]
    return Link(float(distances[best]), int(members[best]), int(targets[best]))


def approximate_pair(search: NeighborSearch, inside: Bools) -> Link:
    """Find a close pair across the border of a component, not always the closest.

    Starts from the closest pairs of a sample of both sides, then goes from each end to the
    closest sample of the other side and back, as long as the distance falls: projections in turn
    on two sets. A step costs `N_STARTS` times n distances. Two convex sets far apart are
    joined by their closest pair; others may be joined by a locally closest one.
    """
    members, others = thinned(np.flatnonzero(inside), 500), thinned(np.flatnonzero(~inside), 5_000)
    distances, _ = search.closest(members, others)
    ends = members[np.argsort(distances, kind="stable")[:N_STARTS]]
    best = Link(np.inf, -1, -1)
    wanted = ~inside
    for _ in range(MAX_STEPS):
        distances, targets = closest_in(search, ends, wanted)
        nearest = int(distances.argmin())
        link = Link(float(distances[nearest]), int(ends[nearest]), int(targets[nearest]))
        if link.distance >= best.distance:
            break
        best = link
        ends, wanted = np.unique(targets), ~wanted
    if best.i >= 0 and not inside[best.i]:
        best = Link(best.distance, best.j, best.i)
    return best


def closest_in(search: NeighborSearch, samples: Ints, wanted: Bools) -> tuple[Floats, Ints]:
    """Closest of the wanted samples to each of a few samples."""
    distances = np.where(wanted, search.from_samples(samples), np.inf)
    targets = distances.argmin(axis=1)
    return distances[np.arange(samples.size), targets], targets


def thinned(samples: Ints, size: int) -> Ints:
    """At most `size` of the samples, evenly spaced."""
    if samples.size <= size:
        return samples
    return samples[np.linspace(0, samples.size - 1, size).astype(np.intp)]


def with_links(W: Any, links: list[Link], weights: Floats) -> Any:
    """Add links to a graph, in both directions."""
    i = np.array([link.i for link in links])
    j = np.array([link.j for link in links])
    if not issparse(W):
        W[i, j] = W[j, i] = weights
        return W
    both = (np.concatenate([i, j]), np.concatenate([j, i]))
    return W + csr_array((np.concatenate([weights, weights]), both), shape=W.shape)
