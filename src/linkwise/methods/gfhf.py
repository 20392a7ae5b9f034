"""GFHF: Gaussian fields and harmonic functions (Zhu, Ghahramani & Lafferty 2003)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linkwise.linalg.laplacian import combinatorial
from linkwise.linalg.solve import dirichlet
from linkwise.methods._labels import (
    LabelPropagator,
    Seeds,
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


def gfhf(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    class_mass: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Propagate labels by the harmonic function of the graph.

    Solves, for the indicators of the classes,

    .. math:: \min_f \tfrac12 \sum_{ij} w_{ij} (f_i - f_j)^2 \quad\text{with } f_l = y_l,

    whose solution is ``f_u = (I - P_uu)^-1 P_ul y_l``, ``P = D^-1 W``: the chance that a random
    walk from a sample meets a label of the class first. `embedding` holds these probabilities.
    """
    seeds = label_seeds(constraints, n_clusters)
    if seeds is None:
        return plain_cut(W, n_clusters, random_state)
    # Harmonic function: the Dirichlet problem with the labels as boundary values
    found = dirichlet(W, seeds.known, seeds.indicator)
    F = distributions(found.x, seeds)
    objective = smoothness(combinatorial(W), F)
    scores = class_mass_normalized(F, seeds) if class_mass else F
    return label_result(scores, found, objective)


def class_mass_normalized(F: Floats, seeds: Seeds) -> Floats:
    """Weigh the classes so that their masses over the unlabelled samples are the proportions.

    Zhu et al., section 4: class `c` is scaled by ``q_c / sum_u f_uc``, with ``q_c`` its share of
    the labelled samples. Rows are scaled to sum 1 again.
    """
    mass = F[~seeds.known].sum(axis=0)
    weight = np.divide(seeds.proportions, mass, out=np.ones_like(mass), where=mass > 0)
    return distributions(F * weight, seeds)


class GFHF(LabelPropagator):
    """Gaussian fields and harmonic functions: label propagation that keeps the known labels.

    Every sample gets the weighted mean of its neighbours' label distributions; known labels do not
    change. Without any constraints the answer is that of :class:`~linkwise.NCut`.

    Parameters
    ----------
    n_clusters
    affinity
    class_mass : bool, default=False
        Whether to weigh the classes so that each gets the share of unlabelled samples that it has
        of the labelled ones. Helps when labels are few and drawn in the true proportions. Set it
        then.
    random_state

    References
    ----------
    X. Zhu, Z. Ghahramani, J. Lafferty: Semi-supervised learning using Gaussian fields and harmonic
    functions. ICML 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import GFHF, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints.from_labels([-1, 1, -1, -1, 0, -1])
    >>> GFHF(2).fit_predict(X, constraints=known).tolist()
    [1, 1, 1, 0, 0, 0]
    """

    paper = "Zhu et al. 2003"
    is_distributed = True
    enforcement = "labels are kept"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "class_mass": ["boolean"],
    }
    solve = staticmethod(gfhf)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    class_mass: bool = False
    random_state: int | np.random.RandomState | None = None
