"""NCut: normalised spectral clustering, the baseline of all papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils import check_random_state

from linkwise._params import StrOptions
from linkwise.methods._base import ConstrainedClusterer
from linkwise.methods._spectral import normalized_cut

if TYPE_CHECKING:
    import numpy as np

    from linkwise._types import Graph
    from linkwise.graph import Affinity
    from linkwise.linalg.memory import Memory
    from linkwise.result import Result

__all__ = ["NCut", "ncut"]


def ncut(
    W: Graph,
    n_clusters: int,
    *,
    rows: str = "unit",
    random_state: int | np.random.RandomState | None = None,
    memory: Memory | None = None,
) -> Result:
    r"""Cluster a graph by normalised spectral clustering.

    Relaxes

    .. math:: \min_{C_1 \dots C_k} \sum_c \mathrm{cut}(C_c, \bar C_c) / \mathrm{vol}(C_c)

    to the `k` leading eigenvectors of ``D^-1/2 W D^-1/2`` and rounds their rows by k-means.
    """
    rng = check_random_state(random_state)
    return normalized_cut(W, n_clusters, rng, rows, memory=memory)


class NCut(ConstrainedClusterer):
    """Normalised spectral clustering, without constraints.

    The baseline against which every constrained method is measured. Constraints given to `fit`
    are ignored with a warning.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()``.
    rows : {"unit", "raw"}, default="unit"
        Whether the rows of the embedding are scaled to length one before k-means
        (Ng, Jordan & Weiss) or taken as they are.
    random_state : int, RandomState instance or None, default=None
        Seed of the eigensolver's start and of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    result_ : Result
        Labels, embedding, eigenvalues, residuals and objective.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Coordinates that were partitioned.
    affinity_matrix_ : csr_array or ndarray of shape (n_samples, n_samples)
        The graph, before any constraint touched it.
    affinity_ : Affinity or None
        The fitted graph builder; None for a precomputed graph.
    n_features_in_ : int
        Number of features seen by `fit`.

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
    takes = ()
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ConstrainedClusterer._parameter_constraints,
        "rows": [StrOptions({"unit", "raw"})],
    }
    solve = staticmethod(ncut)

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        affinity: Affinity | str | None = None,
        rows: str = "unit",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.rows = rows
        self.random_state = random_state
