"""The step that many methods end in: eigenvectors of a graph, then k-means on their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numba import njit
from scipy.sparse import csr_array, issparse

from linkwise.linalg.laplacian import degrees, normalized_adjacency
from linkwise.linalg.walk import leading_vectors, staying_if_isolated, walk_vectors
from linkwise.partition import unit_rows
from linkwise.result import Result
from linkwise.search.rows import cluster_rows

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.linalg.eigen import EigenPairs
    from linkwise.linalg.memory import Memory

__all__ = [
    "lost_weights",
    "normalized_cut",
    "ratio_sum",
    "rounded",
    "spectral_result",
]


def normalized_cut(
    W: Graph,
    n_clusters: int,
    rng: np.random.RandomState,
    rows: str,
    *,
    obey: Constraints | None = None,
    memory: Memory | None = None,
) -> Result:
    """Relax the normalised cut of `W` to eigenvectors, then round them by k-means.

    `z` are the leading eigenvectors of ``D^-1/2 W D^-1/2``. With `rows` ``"raw"`` the embedding is
    ``D^-1/2 z``, the eigenvectors of the random walk ``D^-1 W`` (Shi & Malik; Xu et al.); with
    ``"unit"`` its rows are scaled to length one (Ng, Jordan & Weiss), where `z` and ``D^-1/2 z``
    are the same. The certain constraints of `obey` hold without exception. With a `memory` the
    eigensolver starts from the vectors of the last graph that it knows.
    """
    d = degrees(W)
    S = staying_if_isolated(normalized_adjacency(W, d), d)
    pairs = leading_vectors(S, np.sqrt(d), n_clusters, rng, memory=memory)
    embedding = unit_rows(pairs.vectors) if rows == "unit" else walk_vectors(pairs.vectors, d)
    labels = rounded(embedding, n_clusters, rng, obey)
    return spectral_result(labels, embedding, pairs, ratio_sum(W, labels, d))


def ratio_sum(W: Graph, labels: Ints, weights: Floats) -> float:
    """Return what each cluster loses over the weight of its vertices, summed over clusters.

    With the (absolute) degrees as weights that is the (signed) normalised cut, with ones the ratio
    cut.
    """
    lost = lost_weights(W, labels)
    total = np.bincount(labels, weights=weights, minlength=lost.size)
    return float(np.divide(lost, total, out=np.zeros(lost.size), where=total > 0).sum())


def lost_weights(W: Graph, labels: Ints) -> Floats:
    """Return, of each cluster, the positive weight that leaves it and the negative one inside."""
    k = int(labels.max()) + 1
    if issparse(W):
        graph = csr_array(W)
        return np.asarray(_lost(graph.indptr, graph.indices, graph.data, labels, k))
    together = labels[:, None] == labels
    of_row = np.where(together, -W, W).clip(min=0).sum(axis=1)
    return np.asarray(np.bincount(labels, of_row, minlength=k), dtype=np.float64)


@njit(cache=True, nogil=True)
def _lost(indptr, indices, data, labels, k):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    lost = np.zeros(k)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            is_lost = data[e] < 0 if labels[indices[e]] == labels[i] else data[e] > 0
            if is_lost:
                lost[labels[i]] += abs(data[e])
    return lost


def rounded(
    embedding: Floats,
    n_clusters: int,
    rng: np.random.RandomState,
    obey: Constraints | None,
) -> Ints:
    """Cluster the rows of an embedding; the certain constraints of `obey` hold."""
    assign: Literal["free", "feasible"] = "free" if obey is None else "feasible"
    return cluster_rows(embedding, n_clusters, rng, assign=assign, constraints=obey)


def spectral_result(
    labels: Ints,
    embedding: Floats,
    pairs: EigenPairs,
    objective: float,
) -> Result:
    """Return the result of a spectral method; eigenvalues are the Laplacian's, ascending."""
    return Result(
        labels=labels,
        embedding=embedding,
        eigenvalues=1 - pairs.values,
        residuals=pairs.residuals,
        objective=objective,
        converged=pairs.converged,
    )
