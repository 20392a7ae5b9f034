"""SRCP: symmetric graph regularised constraint propagation (Fu et al. 2011)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.utils import check_random_state

from linkwise._interrupts import interruptible_eigh
from linkwise._params import Interval
from linkwise.constraints.table import constraint_matrix
from linkwise.linalg.lowrank import cauchy_sum, symmetric_product
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

# Relative error of the separated kernel. More terms would cancel more of the sparse columns'
# digits than they add: at mu = 0.2 this takes three, which are right to 0.16 %.
KERNEL_TOL = 3e-3

GLOBAL_MU = 0.05  # below it pairs are spread over the whole graph


def srcp(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    mu: float = 0.2,
    scale: str = "max",
    solver: str = "auto",
    tol: float = 5e-4,
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
    warm: WarmStarts | None = None,
) -> Result:
    r"""Spread the pairs along rows and columns of `Y` at once; cluster the adjusted graph.

    The propagated pairs `F` solve the Lyapunov equation

    .. math:: (\mu I + L) F + F (\mu I + L) = 2 \mu Y

    with the normalised Laplacian `L`. Affinities rise where `F` is positive and fall where it is
    negative.
    """
    rng = check_random_state(random_state)
    # W*: by the dense `propagate` up to 3,000 samples, by the sparse `factors` above
    W_star = adjusted(
        W,
        constraint_matrix(constraints),
        propagate=partial(propagate, mu=mu),
        factors=partial(propagation_factors, mu=mu, tol=tol, warm=warm),
        scale=scale,
        solver=solver,
        reach=Reach(f"mu={mu:g}", mu < GLOBAL_MU, f"mu >= {GLOBAL_MU}"),
    )
    enforced = constraints if hard else None
    return normalized_cut(W_star, n_clusters, rng, enforced=enforced, warm=warm)


def propagate(W: Graph, Y: csr_array, mu: float) -> Floats:
    """Solve the Lyapunov equation (5) in the eigenbasis `U` of `L`, where it is diagonal.

    ``(U' F U)_ij = 2 mu (U' Y U)_ij / (2 mu + l_i + l_j)`` with the eigenvalues `l`.
    """
    C = constrained_samples(Y)
    values, U = interruptible_eigh(dense(symmetric_walk(W).S))
    shifted = mu + 1 - values
    spread = symmetric_product(U[C].T, csr_array(Y[C][:, C]) @ U[C])
    spread *= 2 * mu / np.add.outer(shifted, shifted)
    return symmetric_product(U @ spread, U.T)


def propagation_factors(
    W: csr_array,
    columns: Ints,
    *,
    mu: float,
    tol: float,
    warm: WarmStarts | None = None,
) -> Factors:
    """Return factors of `F`: constrained columns of a few resolvents of the random walk, sparse.

    The kernel ``2 mu / (2 mu + l_i + l_j)`` is separated into a few products
    ``1 / (mu + l_i + s) 1 / (mu + l_j + t)``; each is a resolvent of `S`, with the damping
    ``1 / (1 + mu + s)``.
    """
    separated = cauchy_sum(mu, mu + 2, KERNEL_TOL)
    damping = 1 / (1 + mu + separated.shifts)
    found = resolvents(W, columns, damping.tolist(), tol=tol, warm=warm)
    P = [a * of_damping for a, of_damping in zip(damping, found, strict=True)]
    G = csr_array(hstack(P, format="csc"))
    return Factors(G, 2 * mu * separated.weights, P[int(np.argmax(damping))])


class SRCP(PropagationClusterer):
    """Symmetric graph regularised constraint propagation (Fu, Lu, Ip, Peng & Lu, 2011).

    Each pair is spread over the graph from both endpoints at once; the result raises and lowers
    affinities everywhere the pairs reach, and the adjusted graph is clustered. Soft: it trades
    the cut against the constraints.

    Parameters
    ----------
    n_clusters
    affinity
    mu : float, default=0.2
        How strongly a pair holds to where it was given, against smoothness over the graph. Small
        values spread far. The spreading iteration of the paper has ``mu = (1 - alpha) / alpha``.
        Raise it if neighbours often belong to different clusters.
    scale
    solver
    tol
    hard
    random_state

    References
    ----------
    Z. Fu, Z. Lu, H. Ip, Y. Peng, H. Lu: Symmetric graph regularized constraint propagation.
    AAAI 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import SRCP, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> SRCP(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Fu et al. 2011"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "mu": [Interval(Real, 0, None, closed="neither")],
    }
    solve = staticmethod(srcp)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    mu: float = 0.2
    scale: str = "max"
    solver: str = "auto"
    tol: float = 5e-4
    hard: bool = False
    random_state: int | np.random.RandomState | None = None
