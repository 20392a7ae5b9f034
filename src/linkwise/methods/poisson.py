"""Poisson learning: label propagation for very few labels (Calder et al. 2020)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linkwise.linalg.laplacian import combinatorial, symmetric_components
from linkwise.linalg.solve import poisson_solve, solid
from linkwise.methods._labels import (
    LabelPropagator,
    label_result,
    label_seeds,
    plain_cut,
    smoothness,
)

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity
    from linkwise.result import Result


def poisson(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    balance: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Propagate labels as charges: each label is a source, their mean is drawn off.

    Solves, with `Y` the indicators of the classes and :math:`\bar y` their mean over the
    labelled samples,

    .. math:: L U = B, \quad B_i = Y_i - \bar y \text{ for labelled } i,\ 0 \text{ elsewhere},
       \quad \sum_i d_i U_i = 0,

    and decides by the largest entry of a row. `embedding` holds `U`, `objective` the energy
    :math:`\tfrac12 \mathrm{tr}(U^T L U) - \mathrm{tr}(B^T U)`.
    """
    seeds = label_seeds(constraints, n_clusters)
    if seeds is None:
        return plain_cut(W, n_clusters, random_state)
    W = solid(W)
    # Sources B: labels, without their mean in each connected component
    n_components, component = symmetric_components(W)
    members = np.zeros((n_components, seeds.n_classes))
    np.add.at(members, component[seeds.known], seeds.indicator)
    count = members.sum(axis=1, keepdims=True)
    mean = np.where(count > 0, members / np.where(count > 0, count, 1.0), seeds.proportions)
    B = np.where(seeds.known[:, None], seeds.matrix - mean[component], 0.0)
    # Potential U: L U = B
    found = poisson_solve(W, B)
    energy = smoothness(combinatorial(W), found.x) / 2 - float((B * found.x).sum())
    U = found.x / (seeds.n_classes * seeds.proportions) if balance else found.x
    # A component with labels of one class, or none, has no potential: the mean stands for it.
    is_contested = ((members > 0).sum(axis=1) > 1)[component][:, None]
    scores = np.where(is_contested, U, mean[component])
    decisive = np.where(is_contested, _without_rounding(U, component), mean[component])
    return label_result(scores, found, energy, decisive=decisive)


def _without_rounding(U: Floats, component: Ints) -> Floats:
    """Set what is rounding in a component to 0, so that equal samples are decided alike."""
    largest = np.zeros(int(component.max()) + 1)
    np.maximum.at(largest, component, np.abs(U).max(axis=1))
    clean: Floats = np.where(np.abs(U) > 1e-10 * largest[component][:, None], U, 0.0)
    return clean


class Poisson(LabelPropagator):
    """Poisson learning: label propagation that does not collapse when labels are very few.

    Known labels are sources and sinks instead of fixed values, so that a class reaches as far as
    its cluster goes, even from one label. Without any constraints the answer is that of
    :class:`~linkwise.NCut`.

    Parameters
    ----------
    n_clusters
    affinity
    balance : bool, default=False
        Whether to divide the potential of a class by its share of the labels: the paper's
        correction for classes of equal size of which unequal numbers of labels are known. Set it
        if you gave unequal numbers of labels of classes of equal size.
    random_state

    Attributes
    ----------
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Potential of each class, also ``embedding_``; the largest decides. No probabilities: they
        are positive and negative. Classes are the labels in increasing order.

    References
    ----------
    J. Calder, B. Cook, M. Thorpe, D. Slepcev: Poisson learning: graph based semi-supervised
    learning at very low label rates. ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints, Poisson
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints.from_labels([-1, 1, -1, -1, 0, -1])
    >>> Poisson(2).fit_predict(X, constraints=known).tolist()
    [1, 1, 1, 0, 0, 0]
    """

    paper = "Calder et al. 2020"
    is_distributed = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "balance": ["boolean"],
    }
    solve = staticmethod(poisson)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    balance: bool = False
    random_state: int | np.random.RandomState | None = None
