"""NCut: normalised spectral clustering, the baseline of all papers and the last step of many."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_random_state

from linkwise._jit import SMALL_GRAPH, njit
from linkwise._params import StrOptions
from linkwise.linalg.blocks import BlockMatrix
from linkwise.linalg.embedding import random_walk_vectors, spectral_embedding
from linkwise.linalg.laplacian import degrees
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.partition import unit_rows
from linkwise.result import Result
from linkwise.search.rows import cluster_rows

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity, Prepared
    from linkwise.linalg.eigen import EigenPairs
    from linkwise.linalg.warm import WarmStarts


def ncut(
    W: Graph,
    n_clusters: int,
    *,
    rows: str = "unit",
    random_state: int | np.random.RandomState | None = None,
    prepared: Prepared | None = None,
) -> Result:
    r"""Cluster a graph by normalised spectral clustering.

    Relaxes

    .. math:: \min_{C_1 \dots C_k} \sum_c \mathrm{cut}(C_c, \bar C_c) / \mathrm{vol}(C_c)

    to the `k` leading eigenvectors of ``D^-1/2 W D^-1/2`` and rounds their rows by k-means. With
    `prepared`, whose graph is `W`, eigenvectors that it holds are not computed again.
    """
    rng = check_random_state(random_state)
    return normalized_cut(W, n_clusters, rng, rows=rows, prepared=prepared)


def normalized_cut(
    W: Graph,
    n_clusters: int,
    rng: np.random.RandomState,
    *,
    rows: str = "unit",
    enforced: Constraints | None = None,
    n_init: int | None = None,
    warm: WarmStarts | None = None,
    prepared: Prepared | None = None,
) -> Result:
    """Relax the normalised cut of `W` to eigenvectors, then round them by k-means.

    `z` are the leading eigenvectors of ``D^-1/2 W D^-1/2``. With `rows` ``"raw"`` the embedding is
    ``D^-1/2 z``, the eigenvectors of the random walk ``D^-1 W`` (Shi & Malik; Xu et al.); with
    ``"unit"`` its rows are scaled to length one (Ng, Jordan & Weiss), where `z` and ``D^-1/2 z``
    are the same. All certain constraints of `enforced` hold. K-means has `n_init`
    random starts. The eigensolver starts from `warm`. If
    `W` is the graph of `prepared`, its degrees and its embedding are taken.
    """
    if prepared is not None:
        d, eigenpairs = prepared.degrees, prepared.embedding(n_clusters, rng)
    else:
        d, start = degrees(W), None if warm is None else warm.adjacency
        eigenpairs = spectral_embedding(W, n_clusters, rng, d=d, warm=start)
    z = eigenpairs.vectors
    embedding = unit_rows(z) if rows == "unit" else random_walk_vectors(z, d)
    labels = cluster_rows(embedding, n_clusters, rng, enforced=enforced, n_init=n_init)
    return spectral_result(labels, embedding, eigenpairs, objective=ratio_sum(W, labels, d))


def ratio_sum(W: Graph, labels: Ints, weights: Floats) -> float:
    """Return what each cluster loses over the weight of its vertices, summed over clusters.

    A cluster loses the positive weight that leaves it and the negative one inside. With the
    (absolute) degrees as weights the sum is the (signed) normalised cut, with ones the ratio cut.
    """
    k = int(labels.max()) + 1
    if isinstance(W, BlockMatrix):
        lost = np.sum(W.collected(partial(_lost_sparse, k=k), labels), axis=0)
    elif issparse(W):
        lost = _lost_sparse(csr_array(W), labels, k)
    else:
        together = labels[:, None] == labels
        each = np.where(together, -W, W).clip(min=0).sum(axis=1)
        lost = np.bincount(labels, each, minlength=k).astype(np.float64, copy=False)
    total = np.bincount(labels, weights=weights, minlength=k)
    return float(np.divide(lost, total, out=np.zeros(k), where=total > 0).sum())


def _lost_sparse(W: csr_array, labels: Ints, k: int) -> Floats:
    if W.nnz > SMALL_GRAPH:
        indptr = W.indptr.astype(np.int64, copy=False)  # one type each: it is compiled once
        indices = W.indices.astype(np.int32, copy=False)
        return np.asarray(_lost(indptr, indices, W.data.astype(np.float64, copy=False), labels, k))
    here = np.repeat(labels[: W.shape[0]], np.diff(W.indptr))
    each = np.where(here == labels[W.indices], -W.data, W.data).clip(min=0)
    return np.bincount(here, each, minlength=k).astype(np.float64, copy=False)


@njit(cache=True, nogil=True)
def _lost(indptr, indices, data, labels, k):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    lost = np.zeros(k)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            is_lost = data[e] < 0 if labels[indices[e]] == labels[i] else data[e] > 0
            if is_lost:
                lost[labels[i]] += abs(data[e])
    return lost


def spectral_result(
    labels: Ints, embedding: Floats, eigenpairs: EigenPairs, *, objective: float
) -> Result:
    """Return the result of a spectral method; eigenvalues are the Laplacian's, ascending."""
    return Result(
        labels=labels,
        embedding=embedding,
        eigenvalues=1 - eigenpairs.values,
        residuals=eigenpairs.residuals,
        objective=objective,
        converged=eigenpairs.converged,
    )


class NCut(ConstrainedClusterer):
    """Normalised spectral clustering, without constraints.

    The baseline against which every constrained method is measured. Constraints given to `fit`
    are ignored with a warning.

    Parameters
    ----------
    n_clusters
    affinity
    rows : {"unit", "raw"}, default="unit"
        Whether the rows of the embedding are scaled to length one before k-means
        (Ng, Jordan & Weiss) or taken as they are. Take ``"raw"`` to repeat Shi & Malik.
    random_state

    References
    ----------
    A. Ng, M. Jordan, Y. Weiss: On spectral clustering: analysis and an algorithm. NIPS 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import NCut
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> NCut(2, random_state=0).fit(X).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Ng et al. 2001"
    family = "no constraints"
    minimizes_cut = True
    is_distributed = True
    max_clusters = MOST_EIGENVECTORS
    takes = ()
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rows": [StrOptions({"unit", "raw"})],
    }
    solve = staticmethod(ncut)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    rows: str = "unit"
    random_state: int | np.random.RandomState | None = None
