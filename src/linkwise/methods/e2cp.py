"""E2CP: exhaustive and efficient constraint propagation (Lu & Ip 2010)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from linkwise._params import Interval
from linkwise.constraints.table import constraint_matrix
from linkwise.linalg.lowrank import symmetric_product
from linkwise.methods._propagation import (
    Factors,
    PropagationClusterer,
    Reach,
    adjusted,
    constrained_samples,
    dense,
    resolvents,
    symmetric_walk,
)
from linkwise.methods.ncut import normalized_cut

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity
    from linkwise.linalg.warm import WarmStarts
    from linkwise.result import Result

GLOBAL_ALPHA = 0.9  # above it pairs are spread over the whole graph


def e2cp(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    alpha: float = 0.8,
    scale: str = "max",
    solver: str = "auto",
    tol: float = 5e-4,
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
    warm: WarmStarts | None = None,
) -> Result:
    """Spread the pairs along the rows and then the columns of `Y`; cluster the adjusted graph.

    Pairs come to hold between the neighbours of their endpoints: ``F = (1 - alpha)^2 P Y P`` with
    the resolvent ``P = (I - alpha S)^-1`` of the random walk. Affinities rise where `F` is positive
    and fall where it is negative.
    """
    rng = check_random_state(random_state)
    W_star = propagated_graph(
        W, constraints, alpha=alpha, scale=scale, solver=solver, tol=tol, warm=warm
    )
    enforced = constraints if hard else None
    return normalized_cut(W_star, n_clusters, rng, enforced=enforced, warm=warm)


def propagated_graph(
    W: Graph,
    constraints: Constraints,
    *,
    alpha: float = 0.8,
    scale: str = "max",
    solver: str = "auto",
    tol: float = 5e-4,
    warm: WarmStarts | None = None,
) -> Graph:
    """Return ``W*``, the graph with affinities raised and lowered by `F`; see :func:`e2cp`."""
    # W*: by the dense `propagate` up to 3,000 samples, by the sparse `factors` above
    return adjusted(
        W,
        constraint_matrix(constraints),
        propagate=partial(propagate, alpha=alpha),
        factors=partial(propagation_factors, alpha=alpha, tol=tol, warm=warm),
        scale=scale,
        solver=solver,
        reach=Reach(f"alpha={alpha:g}", alpha > GLOBAL_ALPHA, f"alpha <= {GLOBAL_ALPHA}"),
    )


def propagate(W: Graph, Y: csr_array, alpha: float) -> Floats:
    """Return ``F = G Y G`` with ``G = (1 - alpha) P``, by a dense Cholesky factor."""
    C = constrained_samples(Y)
    A = dense(symmetric_walk(W).S)
    A *= -alpha
    A[np.diag_indices_from(A)] += 1
    units = np.zeros((A.shape[0], C.size), order="F")
    units[C, np.arange(C.size)] = 1 - alpha
    factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    G = cho_solve(factor, units, overwrite_b=True, check_finite=False)
    return symmetric_product(G, csr_array(Y[C][:, C]) @ G.T)


def propagation_factors(
    W: csr_array,
    columns: Ints,
    *,
    alpha: float,
    tol: float,
    warm: WarmStarts | None = None,
) -> Factors:
    """Return the factors of `F`: the constrained columns of ``G = (1 - alpha) P``, sparse."""
    G = (1 - alpha) * resolvents(W, columns, [alpha], tol=tol, warm=warm)[0]
    return Factors(csr_array(G), np.ones((1, 1)), G)


class E2CP(PropagationClusterer):
    """Exhaustive and efficient constraint propagation (Lu & Ip, 2010).

    Each pair is spread over the graph, first from one endpoint and then from the other; the
    result raises and lowers affinities everywhere the pairs reach, and the adjusted graph is
    clustered. Soft: it trades the cut against the constraints.

    Parameters
    ----------
    n_clusters
    affinity
    alpha : float in (0, 1), default=0.8
        How far pairs are spread: the damping of the random walk. Near 0 they are not spread. Lower
        it if neighbours often belong to different clusters.
    scale
    solver
    tol
    hard
    random_state

    References
    ----------
    Z. Lu, H. Ip: Constrained spectral clustering via exhaustive and efficient constraint
    propagation. ECCV 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import E2CP, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> E2CP(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Lu & Ip 2010"
    is_distributed = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, 1, closed="neither")],
    }
    solve = staticmethod(e2cp)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    alpha: float = 0.8
    scale: str = "max"
    solver: str = "auto"
    tol: float = 5e-4
    hard: bool = False
    random_state: int | np.random.RandomState | None = None
