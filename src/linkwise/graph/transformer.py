"""Neighbour transformers that users bring: what they return is checked, and its recall measured."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_random_state

from linkwise._inputs import checked_format
from linkwise.exceptions import LowRecallWarning
from linkwise.graph.neighbors import without_diagonal

if TYPE_CHECKING:
    from linkwise._types import Floats
    from linkwise.graph.neighbors import NeighborSearch


LOW_RECALL = 0.95
SAMPLE_SIZE = 500  # queries with k = 10: the standard error of a recall of 0.98 is below 0.004
LONGEST_ROW = 100  # neighbours of a sample that the recall of a transformer is measured on


def nearest_stored(graph: csr_array, k: int | None = None) -> csr_array:
    """Order the rows of a distance graph from near to far and keep the first `k` of each."""
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    order = np.lexsort((graph.indices, graph.data, rows))
    counts = np.diff(graph.indptr)
    if k is not None:
        rank = np.arange(rows.size) - np.repeat(graph.indptr[:-1], counts)
        order = order[rank < k]
        counts = np.minimum(counts, k)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((graph.data[order], graph.indices[order], indptr), shape=graph.shape)


def transformer_graph(output: Any, shape: tuple[int, int], name: str) -> csr_array:
    """Check what a neighbour transformer returned, and make it a distance graph.

    Raises
    ------
    TypeError, ValueError
        When the output is not a sparse matrix of finite, non-negative distances of this shape.
    """
    if not issparse(output):
        raise TypeError(
            f"{name} returned a {type(output).__name__}; a neighbour transformer must return a "
            "sparse matrix of distances, like sklearn.neighbors.KNeighborsTransformer."
        )
    if output.shape != shape:
        raise ValueError(f"{name} returned distances of shape {output.shape}; expected {shape}.")
    graph = csr_array(checked_format(output, f"What {name} returned"), dtype=np.float64)
    wrong = np.flatnonzero(~(np.isfinite(graph.data) & (graph.data >= 0)))
    if wrong.size:
        i = int(np.searchsorted(graph.indptr, wrong[0], side="right")) - 1
        raise ValueError(
            f"{name} returned {graph.data[wrong[0]]} as the distance between samples {i} and "
            f"{graph.indices[wrong[0]]}; distances must be finite and not negative."
        )
    return graph


def fitted_graph(transformer: Any, X: Any) -> csr_array:
    """Fit a transformer, and return the neighbours that it finds, from near to far."""
    name = f"{type(transformer).__name__}.fit_transform"
    output = transformer.fit_transform(X)
    graph = transformer_graph(output, (X.shape[0], X.shape[0]), name)
    return nearest_stored(without_diagonal(graph))


def extended_graph(transformer: Any, query: Any, n_samples: int, *, k: int | None) -> csr_array:
    """Return the neighbours of new samples among the samples of `fit`, at most `k` each.

    Transformers count a training sample as its own neighbour, and give new ones as many.
    """
    name = type(transformer).__name__
    if not hasattr(transformer, "transform"):
        message = f"{name} has no transform, so it cannot find the neighbours of new samples."
        raise TypeError(message)
    output = transformer.transform(query)
    return nearest_stored(
        transformer_graph(output, (query.shape[0], n_samples), f"{name}.transform"), k
    )


def row_length(graph: csr_array) -> int | None:
    """Return the number of entries in every row; None if rows differ."""
    lengths = np.unique(np.diff(graph.indptr))
    return int(lengths[0]) if lengths.size == 1 else None


def last_stored(graph: csr_array) -> Floats:
    """Distance to the last neighbour of each row, zero for rows without any."""
    lengths = np.diff(graph.indptr)
    last = np.zeros(lengths.size)
    last[lengths > 0] = graph.data[graph.indptr[1:][lengths > 0] - 1]
    return last


def kth_stored(graph: csr_array, k: int, *, parameter: str, transformer: Any) -> Floats:
    """Distance to the k-th neighbour of each row, which the parameter of this name needs."""
    lengths = np.diff(graph.indptr)
    if lengths.min() < k:
        i = int(lengths.argmin())
        raise ValueError(
            f"{parameter}={k}, but {type(transformer).__name__} found only {lengths[i]} "
            f"neighbours of sample {i}. Let it search for more, or lower {parameter}."
        )
    return np.asarray(graph.data[graph.indptr[:-1] + k - 1])


def recall_of(found: Floats, farthest: Any) -> float:
    """Share of found neighbours that are as near as the farthest true one.

    By distance, for of several samples equally far any may be a neighbour.
    """
    # Distances of a transformer may be in single precision.
    return float(np.mean(found <= farthest * (1 + 1e-6)))


def measured_recall(
    transformer: Any, graph: csr_array, search: NeighborSearch, *, random_state: Any
) -> float:
    """Compare what a transformer found for some samples with their true neighbours."""
    known = getattr(transformer, "recall_", None)
    if known is not None:  # it has measured, and warned, itself
        return float(known)
    recall = recall_of_graph(graph, search, random_state)
    if recall < LOW_RECALL:
        advice = (
            f"Let {type(transformer).__name__} search more widely; or give its metric as metric= "
            f"here, where it is {search.metric!r}."
        )
        warn_of_low_recall(recall, advice, stacklevel=3)
    return recall


def recall_of_graph(graph: csr_array, search: NeighborSearch, random_state: Any) -> float:
    """Recall of a distance graph, on some of its rows; a row of m should hold the m nearest."""
    n_samples = search.n_samples
    drawn = np.sort(check_random_state(random_state).permutation(n_samples)[:SAMPLE_SIZE])
    lengths = np.diff(graph.indptr)[drawn]
    sample, lengths = drawn[lengths > 0], np.minimum(lengths[lengths > 0], LONGEST_ROW)
    if sample.size == 0:
        return 1.0
    true, _ = search.nearest(int(lengths.max()), samples=sample)
    shares = [
        recall_of(graph.data[start : start + length], true[row, length - 1])
        for row, (start, length) in enumerate(zip(graph.indptr[sample], lengths, strict=True))
    ]
    return float(np.average(shares, weights=lengths))


def warn_of_low_recall(recall: float, advice: str, *, stacklevel: int) -> None:
    """Warn how many neighbours are missed, and what to do."""
    message = f"About {1 - recall:.0%} of the nearest neighbours were not found. {advice}"
    warnings.warn(message, LowRecallWarning, stacklevel=stacklevel)
