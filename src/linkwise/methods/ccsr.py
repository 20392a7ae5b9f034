"""CCSR: constrained clustering by spectral regularisation (Li, Liu & Tang 2009)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from linkwise._params import Interval
from linkwise.exceptions import TooLargeError
from linkwise.linalg import cone
from linkwise.linalg.embedding import spectral_embedding
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.result import Result
from linkwise.search.rows import cluster_rows

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity, Prepared

# The quadratic form in M has (m (m + 1) / 2)^2 coefficients: 200 MB at this size.
MAX_COMPONENTS = 100


def ccsr(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    n_components: int = 15,
    ridge: float = 0.3,
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
    prepared: Prepared | None = None,
) -> Result:
    r"""Stretch the spectral embedding until it agrees with the pairs.

    With `f_i` the row of sample `i` in the first `m` eigenvectors, solves

    .. math:: \min_{M \succeq 0} \sum_{(i, j)} (f_i^T M f_j - t_{ij})^2 + \rho n \|M - M_0\|^2

    where `t` is 1 for each sample with itself and for must-links, and 0 for cannot-links, and
    clusters the rows of ``F M^1/2`` by k-means.
    """
    rng = check_random_state(random_state)
    # F: the m lowest eigenvectors of the Laplacian. F' F = n I: its entries and tr M are of order 1
    m = _n_vectors(W.shape[0], n_clusters, n_components)
    eigenpairs = spectral_embedding(W, m, rng) if prepared is None else prepared.embedding(m, rng)
    F = np.sqrt(W.shape[0]) * eigenpairs.vectors
    # M: the minimum over positive semidefinite matrices
    M_0 = np.diag(np.arange(m) < n_clusters) / n_clusters
    form = criterion(F, constraints, ridge=ridge, towards=M_0)
    # No term of the minimum exceeds the objective at zero; those of the diagonal sum up to n tr M.
    bound = float(1 + np.sqrt(form.c / F.shape[0]))
    found = cone.minimize(form, M_0, rng, trace_bound=bound)
    # F M^1/2, in the axes of M
    values, vectors = eigh(found.M)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    embedding = F @ (vectors * np.sqrt(values))
    relative_gap = found.gap / max(found.objective, cone.ROUNDING * form.c)
    return Result(
        labels=cluster_rows(embedding, n_clusters, rng, enforced=constraints if hard else None),
        embedding=embedding,
        eigenvalues=values,
        residuals=np.append(eigenpairs.residuals, relative_gap),
        objective=found.objective,
        n_iter=found.n_iter,
        converged=eigenpairs.converged and found.converged,
    )


def _n_vectors(n: int, n_clusters: int, n_components: int) -> int:
    """Return the number of eigenvectors: at least one a cluster, at most one a sample."""
    m = min(n, max(n_components, n_clusters))
    if m > MAX_COMPONENTS:
        raise TooLargeError(
            f"CCSR solves for a dense quadratic form in M, here with {m} eigenvectors "
            f"(n_components={n_components}, n_clusters={n_clusters}); the limit is "
            f"{MAX_COMPONENTS}. Take linkwise.FastGE for many clusters."
        )
    return m


def criterion(
    F: Floats,
    constraints: Constraints,
    *,
    ridge: float,
    towards: Floats,
) -> cone.QuadraticForm:
    """Return the objective as a quadratic form in `M`; each pair counts once, by its belief."""
    n, m = F.shape
    listed, signed = constraints.signed_pairs()
    ones = np.ones(n)
    form = cone.products(F, F, target=ones, weight=ones)
    i, j = listed.T
    target = (signed > 0).astype(np.float64)
    form = form.plus(cone.products(F[i], F[j], target=target, weight=np.abs(signed)))
    x_0 = cone.to_vector(towards)
    pull = cone.QuadraticForm(
        ridge * n * np.eye(m * (m + 1) // 2), ridge * n * x_0, float(ridge * n * x_0 @ x_0)
    )
    return form.plus(pull)


class CCSR(ConstrainedClusterer):
    """Constrained clustering by spectral regularisation (Li, Liu & Tang, 2009).

    The spectral embedding of more eigenvectors than clusters is stretched, by a positive
    semidefinite matrix, so that must-linked samples come together, cannot-linked ones become
    orthogonal, and all have length one. Made for any number of clusters. Soft: it fits the
    constraints in the mean.

    Parameters
    ----------
    n_clusters
    affinity
    n_components : int, default=15
        Number of eigenvectors, at most 100; no fewer than clusters and no more than samples are
        taken. Raise it if there are more than 15 clusters.
    ridge : float, default=0.3
        Pull towards the embedding of NCut, for each sample. 0 is the criterion of the paper, which
        overfits when pairs are few. Lower it if there are many pairs.
    hard
    random_state

    Attributes
    ----------
    result_ : Result
        Labels, embedding, the eigenvalues of `M`, the objective, and the residuals: those of the
        eigenvectors, and last the duality gap of `M` relative to the objective.

    References
    ----------
    Z. Li, J. Liu, X. Tang: Constrained clustering via spectral regularization. CVPR 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CCSR, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> CCSR(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Li et al. 2009"
    family = "constrained criterion"
    max_clusters = MOST_EIGENVECTORS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
    }
    solve = staticmethod(ccsr)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    n_components: int = 15
    ridge: float = 0.3
    hard: bool = False
    random_state: int | np.random.RandomState | None = None
