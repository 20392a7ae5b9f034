"""From probabilities to labels: the likeliest ones, or the likeliest that satisfy constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.auto.constraint_model import cluster_of_label, labelled_samples
from linkwise.constraints.coloring import CannotLinkGraph
from linkwise.constraints.table import symmetric_matrix
from linkwise.search.cut import effort_for, improve
from linkwise.search.local_search import evaluate
from linkwise.search.objective import assert_satisfied, certain_groups, colorer
from linkwise.search.problem import Groups, edgeless_problem

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.constraints import Constraints


ANCHOR_MASS = 1e-9
STARTS, FEW_STARTS = 20, 3  # up to so many groups, and beyond
MANY_GROUPS = 2_000


def likeliest_labels(probability: Floats) -> Ints:
    """Give each sample its likeliest cluster; an empty cluster gets the sample likeliest for it."""
    labels = probability.argmax(axis=1)
    k = probability.shape[1]
    sizes = np.bincount(labels, minlength=k)
    for c in np.flatnonzero(sizes == 0):
        gain = np.where(sizes[labels] > 1, probability[:, c], -1.0)
        taken = int(gain.argmax())
        if gain[taken] < 0:
            break  # fewer samples than clusters
        sizes[labels[taken]] -= 1
        labels[taken], sizes[c] = c, 1
    return labels.astype(np.intp)


def feasible_labels(
    log_probability: Floats, constraints: Constraints, rng: np.random.RandomState
) -> Ints:
    """Return likely labels among those that satisfy every certain constraint.

    Raises ConflictError if there are none, or none were found. Each cluster is an *anchor*: a
    vertex that all anchors are cannot-linked to. A sample in a cluster pays the price
    ``-log p`` to its anchor, and single moves and Kempe chains lower the sum.
    """
    k = log_probability.shape[1]
    groups = certain_groups(constraints, k, rng)
    cost = np.zeros((groups.n_groups, k))
    np.add.at(cost, groups.of_sample, -log_probability)
    g = groups.n_groups
    vertex, cluster = np.divmod(np.arange(g * k), k)
    prices = symmetric_matrix(np.column_stack((vertex, g + cluster)), -cost.ravel(), g + k)
    a, b = np.triu_indices(k, 1)
    clique = symmetric_matrix(np.column_stack((a, b)), np.ones(a.size), k)
    apart = CannotLinkGraph(
        np.concatenate((groups.apart.indptr, groups.apart.indptr[-1] + clique.indptr[1:])).astype(
            np.int64
        ),
        np.concatenate((groups.apart.indices, g + clique.indices)).astype(np.int32),
    )
    # The groups are the items now: they are contracted already.
    feasible = np.concatenate((groups.feasible, np.arange(k))).astype(np.int32)
    items = Groups(np.arange(g + k, dtype=np.int32), g + k, apart, prices, feasible, n_anchors=k)
    mass = np.concatenate((np.bincount(groups.of_sample, minlength=g), np.full(k, ANCHOR_MASS)))
    problem = edgeless_problem(items, mass.astype(np.float64))._replace(gamma=1.0)
    effort = effort_for("default", g, k)
    alone = edgeless_problem(groups, np.ones(groups.of_sample.size))
    color = colorer(alone, k, groups.feasible)
    best, lowest = None, np.inf
    for number in range(STARTS if g <= MANY_GROUPS else FEW_STARTS):
        # The first start is the likeliest; the others lean elsewhere.
        lean = 1.0 if number == 0 else rng.exponential(size=cost.shape)
        z = np.concatenate((color(cost * lean, rng), np.arange(k))).astype(np.int32)
        z = improve(problem, z, rng, k=k, effort=effort)
        value = evaluate(problem, z, k)
        if value < lowest:
            best, lowest = z, value
    assert best is not None
    name = np.empty(k, np.intp)
    name[best[g:]] = np.arange(k)  # anchors may have changed places
    labels: Ints = name[best[:g]][groups.of_sample]
    assert_satisfied(constraints, labels)
    return labels


def in_order(labels: Ints, constraints: Constraints, k: int) -> Ints:
    """Return the clusters as they are numbered: those of labels as these, then by appearance.

    Labels that are no numbers of clusters, being too large, are numbered in their order.
    """
    order = _by_appearance(labels, k)
    labelled, label = labelled_samples(constraints)
    if not labelled.size or constraints.labels is None:
        return order
    values = np.unique(constraints.labels[labelled])
    named = cluster_of_label(np.eye(k)[labels[labelled]], label)[: values.size]
    numbered = np.empty(k, np.intp)
    own = values if values[-1] < k else np.arange(values.size)
    numbered[own] = named
    numbered[np.setdiff1d(np.arange(k), own)] = order[~np.isin(order, named)]
    return numbered


def _by_appearance(labels: Ints, k: int) -> Ints:
    """Return the clusters in order of their first sample, then the empty ones."""
    seen, first = np.unique(labels, return_index=True)
    order = seen[np.argsort(first)]
    return np.concatenate((order, np.setdiff1d(np.arange(k), order))).astype(np.intp)
