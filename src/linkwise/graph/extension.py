"""Affinities of new samples: what differs from those of the samples of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from linkwise._types import Ints
    from linkwise.graph.neighbors import NeighborSearch


def link_empty_rows(graph: csr_array, search: NeighborSearch, query: Any) -> csr_array:
    """Give each new sample that has no neighbour its nearest one."""
    empty = np.flatnonzero(np.diff(graph.indptr) == 0)
    if query is None or empty.size == 0:
        return graph
    distances, indices = search.nearest(1, query=query[empty])
    stored = graph.tocoo()
    rows = np.concatenate([stored.coords[0], empty])
    columns = np.concatenate([stored.coords[1], indices[:, 0]])
    values = np.concatenate([stored.data, distances[:, 0]])
    return csr_array((values, (rows, columns)), shape=graph.shape)


def _rows(graph: csr_array) -> Ints:
    return np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))


def keep_a_link(weights: csr_array, distances: csr_array, smallest: float) -> None:
    """Where all weights of a row underflow, give its nearest neighbour the smallest weight."""
    largest = np.zeros(weights.shape[0])
    rows = _rows(weights)
    np.maximum.at(largest, rows, weights.data)
    order = np.lexsort((distances.data, rows))
    has_edges = np.diff(weights.indptr) > 0
    lost = (largest == 0) & has_edges
    weights.data[order[weights.indptr[:-1][lost]]] = smallest


def link_duplicates_only(weights: csr_array, distances: csr_array) -> None:
    """In rows of samples that equal training samples, cut all links but those of distance 0."""
    rows = _rows(weights)
    is_duplicate = np.zeros(weights.shape[0], dtype=bool)
    is_duplicate[rows[distances.data == 0]] = True
    weights.data[is_duplicate[rows] & (distances.data > 0)] = 0
