"""An order of the samples that does not depend on the order in which they are given.

Random starts are drawn by the numbers of samples. Numbered in this order, the same samples give the
same clusters, whatever their order in the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise.auto.constraint_model import ConstraintModel
from linkwise.auto.fold_cache import constraint_keys
from linkwise.graph import Prepared

if TYPE_CHECKING:
    from linkwise._types import Graph, Ints
    from linkwise.constraints import Constraints


UP_TO = 20_000  # samples; beyond, a second copy of the graph would cost more than it is worth


def canonical_order(prepared: Prepared) -> Ints | None:
    """Return the samples sorted by a projection; None for a graph, which has none, or many."""
    if prepared.is_graph or prepared.n_samples > UP_TO:
        return None
    X = prepared.X
    direction = np.random.RandomState(0).normal(size=X.shape[1])
    # Summed row by row: the last bits do not depend on the place of a row.
    unit = np.abs(X.data if issparse(X) else X).max(initial=0.0) or 1.0
    scaled = X / unit
    key = scaled @ direction if issparse(X) else (scaled * direction).sum(axis=1)
    return np.argsort(np.asarray(key).ravel(), kind="stable")


def reordered(prepared: Prepared, order: Ints) -> Prepared:
    """Return the data in another order; a graph that is there already is not built again."""
    other = Prepared(prepared.X[order], prepared.affinity)
    if prepared.has_graph:
        other.set_graph(_permuted(prepared.W, order))
    return other


def in_given_order(W: Graph, order: Ints) -> Graph:
    """Return the graph of reordered samples in the order in which they were given."""
    return _permuted(W, np.argsort(order))


def _permuted(W: Graph, order: Ints) -> Graph:
    return csr_array(csr_array(W)[order][:, order]) if issparse(W) else W[np.ix_(order, order)]


def constraint_places(given: Constraints, inner: Constraints, order: Ints) -> Ints:
    """Return where each constraint is among the same ones on reordered samples."""
    rank = np.empty(order.size, np.intp)
    rank[order] = np.arange(order.size)
    of_inner = constraint_keys(ConstraintModel.of(inner, 1))
    place = {key: at for at, key in enumerate(of_inner)}
    model = ConstraintModel.of(given, 1)
    renumbered = model._replace(vertices=rank[model.vertices])
    return np.array([place[key] for key in constraint_keys(renumbered)], np.intp)
