"""SL: spectral learning (Kamvar, Klein & Manning 2003), called KKM by Xu and SL by Wacquet."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from linkwise._params import Interval, StrOptions
from linkwise.linalg.embedding import leading_eigenpairs
from linkwise.linalg.laplacian import additive_normalization
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.methods.csc import edit
from linkwise.methods.ncut import normalized_cut, ratio_sum, spectral_result
from linkwise.partition import unit_rows
from linkwise.search.rows import cluster_rows

if TYPE_CHECKING:
    from linkwise._types import Graph
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity
    from linkwise.linalg.warm import WarmStarts
    from linkwise.result import Result


def sl(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    normalization: str = "additive",
    link_weight: float | str = "max",
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
    warm: WarmStarts | None = None,
) -> Result:
    """Write the constraints into the affinities, then cluster by a normalised Markov chain."""
    rng = check_random_state(random_state)
    enforced = constraints if hard else None
    A = edit(W, constraints, link_weight)
    if normalization == "symmetric":
        return normalized_cut(A, n_clusters, rng, enforced=enforced, warm=warm)
    return additive_cut(A, n_clusters, rng, enforced=enforced, warm=warm)


def additive_cut(
    A: Graph,
    n_clusters: int,
    rng: np.random.RandomState,
    *,
    enforced: Constraints | None = None,
    warm: WarmStarts | None = None,
) -> Result:
    """Cluster by ``N = (A + d_max I - D) / d_max``, a chain with self-loops where degrees are low.

    ``I - N`` is the combinatorial Laplacian over ``d_max``: what is relaxed is the ratio cut.
    """
    N = additive_normalization(A)
    profile = np.ones(N.shape[0])
    start = None if warm is None else warm.additive
    eigenpairs = leading_eigenpairs(N, n_clusters, rng, profile=profile, warm=start)
    embedding = unit_rows(eigenpairs.vectors)
    labels = cluster_rows(embedding, n_clusters, rng, enforced=enforced)
    return spectral_result(labels, embedding, eigenpairs, objective=ratio_sum(A, labels, profile))


class SpectralLearning(ConstrainedClusterer):
    """Spectral learning: affinity editing with an additive normalisation (Kamvar et al., 2003).

    A must-link sets the affinity of its pair to the maximum, a cannot-link to zero; then the
    edited graph is clustered spectrally.

    Parameters
    ----------
    n_clusters
    affinity
    normalization : {"additive", "symmetric"}, default="additive"
        The Markov chain: ``(A + d_max I - D) / d_max`` of Kamvar et al. (the KKM of Xu 2005), or
        ``D^-1/2 A D^-1/2``, which is what Wacquet 2013 compares with as SL. Take ``"symmetric"``
        to compare with NCut.
    link_weight : float, "max" or "degree", default="max"
        Affinity of a certain must-link: the largest of the graph, the mean degree (a strong
        link), or a number. The papers write 1, the maximum of their Gaussian affinities. Take
        ``"degree"`` if must-links are not strong enough.
    hard
    random_state

    References
    ----------
    S. Kamvar, D. Klein, C. Manning: Spectral learning. IJCAI 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints, SpectralLearning
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> SpectralLearning(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Kamvar et al. 2003"
    family = "affinity editing"
    minimizes_cut = True
    is_distributed = True
    max_clusters = MOST_EIGENVECTORS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "normalization": [StrOptions({"additive", "symmetric"})],
        "link_weight": [StrOptions({"max", "degree"}), Interval(Real, 0, None, closed="neither")],
    }
    solve = staticmethod(sl)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    normalization: str = "additive"
    link_weight: float | str = "max"
    hard: bool = False
    random_state: int | np.random.RandomState | None = None
