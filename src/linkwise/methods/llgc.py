"""LLGC: learning with local and global consistency (Zhou et al. 2003)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linkwise._params import Interval
from linkwise.linalg.laplacian import normalized_adjacency, symmetric
from linkwise.linalg.solve import resolvent
from linkwise.methods._labels import (
    LabelPropagator,
    distributions,
    label_result,
    label_seeds,
    plain_cut,
    smoothness,
)

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity
    from linkwise.result import Result

# Far from all labels the scores are tiny, and their order decides. Digits are cheap here: the
# condition number is (1 + alpha) / (1 - alpha).
TOL = 1e-13


def llgc(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    alpha: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Propagate labels while letting them change.

    Solves, with `Y` the indicators of the classes and ``mu = (1 - alpha) / alpha``,

    .. math:: \min_F \tfrac12 \sum_{ij} w_{ij}
        \Big\| \frac{F_i}{\sqrt{d_i}} - \frac{F_j}{\sqrt{d_j}} \Big\|^2
        + \mu \sum_i \| F_i - Y_i \|^2

    by ``F = (1 - alpha) (I - alpha S)^-1 Y``, ``S = D^-1/2 W D^-1/2``. `embedding` holds `F` with
    rows of sum 1, `objective` the minimum.
    """
    seeds = label_seeds(constraints, n_clusters)
    if seeds is None:
        return plain_cut(W, n_clusters, random_state)
    Y = seeds.matrix
    # F = (1 - alpha) (I - alpha S)^-1 Y
    found = resolvent(normalized_adjacency(W), alpha, Y, tol=TOL)
    F = (1 - alpha) * found.x
    scores = distributions(_carried_on(W, F, found.residuals), seeds)
    mu = (1 - alpha) / alpha
    objective = smoothness(symmetric(W), F) + mu * float(((F - Y) ** 2).sum())
    return label_result(scores, found, objective)


def _carried_on(W: Graph, F: Floats, residuals: Floats) -> Floats:
    """Replace rows of `F` that are lost in the solver's error by those of their neighbours.

    `F` is positive wherever a label is connected, but falls off exponentially: far from all labels
    it is smaller than any solver's residual. There only the nearest reached samples count, so
    their shares are carried outwards, step by step.
    """
    # A direct solution keeps relative accuracy, and its residuals are rounding.
    level = 10 * max(float(residuals.max(initial=0.0)), 1e-15) * np.abs(F).max(initial=0.0)
    reached = F.sum(axis=1) > level
    F = np.where(reached[:, None], np.maximum(F, 0.0), 0.0)
    while True:
        shares = F / np.where(reached, F.sum(axis=1), 1.0)[:, None]
        arriving = np.asarray(W @ shares)
        front = ~reached & (arriving.sum(axis=1) > 0)
        if not front.any():
            return F
        F[front] = arriving[front]
        reached |= front


class LLGC(LabelPropagator):
    """Learning with local and global consistency: label propagation that may revise labels.

    Every sample keeps a share ``1 - alpha`` of its label and takes the rest from its neighbours.
    Without any constraints the answer is that of :class:`~linkwise.NCut`.

    Parameters
    ----------
    n_clusters
    affinity
    alpha : float in (0, 1), default=0.5
        Share taken from the neighbours. Near 1 labels travel far and count less where they are.
        Take 0.99 with few labels on a large graph.
    random_state

    References
    ----------
    D. Zhou, O. Bousquet, T. N. Lal, J. Weston, B. Schoelkopf: Learning with local and global
    consistency. NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import LLGC, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints.from_labels([-1, 1, -1, -1, 0, -1])
    >>> LLGC(2).fit_predict(X, constraints=known).tolist()
    [1, 1, 1, 0, 0, 0]
    """

    paper = "Zhou et al. 2003"
    is_distributed = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, 1, closed="neither")],
    }
    solve = staticmethod(llgc)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    alpha: float = 0.5
    random_state: int | np.random.RandomState | None = None
