"""Rows of an embedding to clusters, freely or under hard constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.partition import kmeans, relabelled
from linkwise.search.means import MeansObjective, mean_rows, scaled_rows
from linkwise.search.objective import (
    Context,
    Found,
    assert_satisfied,
    certain_groups,
    warn_interrupted,
)

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.constraints import Constraints

# Other starts are tried only if hard constraints raise the sum of squares by more than this share
# over that of free k-means, which bounds it from below as far as k-means finds the optimum.
NEAR_BOUND = 0.01


def cluster_rows(
    V: Floats,
    k: int,
    rng: np.random.RandomState,
    *,
    enforced: Constraints | None = None,
    n_init: int | None = None,
) -> Ints:
    """Cluster the rows of an embedding by k-means, freely or under hard constraints.

    With `enforced`, the same sum of squares is lowered, but only among the partitions that satisfy
    every certain pair and label of these constraints. `n_init` is the number of random starts of
    :func:`linkwise.partition.kmeans`.

    Returns labels numbered by first appearance. Raises ConflictError if no partition satisfies the
    constraints, or none was found.

    Examples
    --------
    >>> from linkwise import Constraints
    >>> V = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> known = Constraints(4, cannot_link=[(0, 1)])
    >>> rng = np.random.RandomState(0)
    >>> cluster_rows(V, 2, rng, enforced=known).tolist()
    [0, 1, 1, 1]
    """
    free = kmeans(V, k, rng, n_init=n_init)
    if enforced is None or not enforced.certain.n_violated(free.labels):
        return free.labels
    groups = certain_groups(enforced, k, rng)
    rows, _ = scaled_rows(V)
    objective = MeansObjective.on(rows, groups, "fast", k=k)
    # The feasible partition nearest to the free centres, then a descent
    n_free = int(free.labels.max()) + 1
    centers = mean_rows(rows, np.ones(V.shape[0]), free.labels, k=n_free)
    # (with fewer distinct rows than clusters there are too few centres: any feasible one)
    start = objective.nearest(centers, rng) if n_free == k else groups.feasible
    z = objective.local_search(start, rng)
    found = Found(z, objective.value(z), 1)
    bound = float(((rows - centers[free.labels]) ** 2).sum())
    if found.value > (1 + NEAR_BOUND) * bound:
        found = objective.search(Context(rng), [z])
    labels = relabelled(found.z[groups.of_sample])
    assert_satisfied(enforced, labels)
    if found.interrupted:
        warn_interrupted()
    return labels
