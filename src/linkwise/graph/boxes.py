"""Closest samples outside their own component, by a tree of boxes; compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.neighbors import KDTree

from linkwise._jit import njit

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Ints


LEAF_SIZE = 16


class BoxTree(NamedTuple):
    """Binary tree of bounding boxes; the children of node v are 2v + 1 and 2v + 2.

    Node v holds the samples ``order[start[v]:end[v]]``, all of them in the box from `low[v]` to
    `high[v]`.
    """

    X: Floats
    order: Ints
    start: Ints
    end: Ints
    is_leaf: Bools
    low: Floats
    high: Floats


def build_boxes(X: Floats) -> BoxTree:
    """Take the boxes of scikit-learn's k-d tree."""
    data, order, nodes, bounds = (
        np.asarray(a) for a in KDTree(X, leaf_size=LEAF_SIZE).get_arrays()
    )
    return BoxTree(
        np.ascontiguousarray(data, dtype=np.float64),
        order.astype(np.intp),
        nodes["idx_start"].astype(np.intp),
        nodes["idx_end"].astype(np.intp),
        nodes["is_leaf"].astype(np.bool_),
        np.ascontiguousarray(bounds[0]),
        np.ascontiguousarray(bounds[1]),
    )


def closest_by_boxes(
    tree: BoxTree, forest: Ints, skipped: int, *, exponent: float
) -> tuple[Floats, Ints, Ints]:
    """Return for every component the closest pair of a member and another sample, and its distance.

    One pass over the samples of the `tree`. A box is passed over when it lies in the sample's own
    component, or farther than the closest pair that its component has so far: most samples, which
    are far from the border, end at the root. `forest` is the component of every sample, numbered
    from 0; the result is infinite and -1 for the component `skipped`.
    """
    forest = np.ascontiguousarray(forest, dtype=np.intp)
    powers, member, target = _closest(tree, forest, skipped, exponent)
    return (powers if np.isinf(exponent) else powers ** (1 / exponent)), member, target


@njit(cache=True)
def _add(total: float, difference: float, exponent: float) -> float:
    """Add a coordinate to the power of a distance."""
    if exponent == 2.0:
        return total + difference * difference
    if exponent == 1.0:
        return total + abs(difference)
    if exponent == np.inf:
        return max(total, abs(difference))
    return total + abs(difference) ** exponent


@njit(cache=True)
def _to_box(tree: Any, node: int, i: int, exponent: float) -> float:
    """Power of the distance from sample i to the nearest corner or side of a box."""
    total = 0.0
    for f in range(tree.X.shape[1]):
        x = tree.X[i, f]
        total = _add(total, max(tree.low[node, f] - x, x - tree.high[node, f], 0.0), exponent)
    return total


@njit(cache=True)
def _component_of_boxes(tree: Any, forest: Any) -> Any:
    """Return the component that all samples of a box share, -1 where they share none."""
    n_nodes = tree.start.size
    shared = np.full(n_nodes, -1, dtype=np.intp)
    for node in range(n_nodes - 1, -1, -1):
        if tree.is_leaf[node]:
            first = forest[tree.order[tree.start[node]]]
            same = True
            for position in range(tree.start[node], tree.end[node]):
                same = same and forest[tree.order[position]] == first
            if same:
                shared[node] = first
        elif shared[2 * node + 1] == shared[2 * node + 2]:
            shared[node] = shared[2 * node + 1]
    return shared


@njit(cache=True)
def _closest(tree: Any, forest: Any, skipped: int, exponent: float) -> tuple[Any, Any, Any]:
    """Visit the boxes that may hold a closer pair, the nearer child of each box first."""
    n_components = forest.max() + 1
    best = np.full(n_components, np.inf)
    member = np.full(n_components, -1, dtype=np.intp)
    target = np.full(n_components, -1, dtype=np.intp)
    shared = _component_of_boxes(tree, forest)
    waiting = np.empty(256, dtype=np.intp)  # at most two wait on each level of the tree
    waiting_power = np.empty(256)
    # In the order of the tree, so that one sample warms the cache for the next.
    for i in tree.order:
        own = forest[i]
        if own == skipped:
            continue
        waiting[0], waiting_power[0] = 0, _to_box(tree, 0, i, exponent)
        n_waiting = 1
        while n_waiting > 0:
            n_waiting -= 1
            node = waiting[n_waiting]
            if shared[node] == own or waiting_power[n_waiting] >= best[own]:
                continue
            if tree.is_leaf[node]:
                for position in range(tree.start[node], tree.end[node]):
                    j = tree.order[position]
                    if forest[j] == own:
                        continue
                    power = 0.0
                    for f in range(tree.X.shape[1]):
                        power = _add(power, tree.X[i, f] - tree.X[j, f], exponent)
                    if power < best[own]:
                        best[own], member[own], target[own] = power, i, j
                continue
            near, far = 2 * node + 1, 2 * node + 2
            to_near = _to_box(tree, near, i, exponent)
            to_far = _to_box(tree, far, i, exponent)
            if to_far < to_near:
                near, far, to_near, to_far = far, near, to_far, to_near
            waiting[n_waiting], waiting_power[n_waiting] = far, to_far
            waiting[n_waiting + 1], waiting_power[n_waiting + 1] = near, to_near
            n_waiting += 2
    return best, member, target
