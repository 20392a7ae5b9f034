"""Violated constraints, and every score at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.metrics.agreement import (
    accuracy,
    adjusted_rand,
    clustering_error,
    nmi,
    pairwise_f,
    rand_index,
)
from linkwise.metrics.checks import as_codes, check_length
from linkwise.metrics.cuts import cut, ncut, rcut

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from linkwise._types import Ints, Matrix
    from linkwise.constraints import Constraints
    from linkwise.constraints.table import Violations
    from linkwise.metrics.checks import Outside


def violated_count(constraints: Constraints, labels: ArrayLike) -> Violations:
    """Count the violated pairs: must-links separated, cannot-links together.

    Pairs count whatever the belief in them. Partial labels count as the pairs they imply; a pair
    that is given and implied counts once.

    Parameters
    ----------
    constraints : Constraints
        What was known about the samples.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.

    Examples
    --------
    >>> from linkwise.constraints import Constraints
    >>> c = Constraints(4, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 3)])
    >>> violated_count(c, [0, 0, 1, 0])
    Violations(must_link=1, cannot_link=1)
    """
    return constraints.count_violated(_clusters(constraints, labels))


def violated_share(constraints: Constraints, labels: ArrayLike) -> float:
    r"""Share of the constraints that is violated, each weighted by its belief :math:`q`.

    .. math:: \sum_{(i,j) \text{ violated}} q_{ij} \Big/ \sum_{(i,j)} q_{ij}

    Partial labels count as the pairs they imply, with belief 1. 0 when there is no constraint.

    Parameters
    ----------
    constraints : Constraints
        What was known about the samples.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    """
    return 1.0 - constraints.satisfied(_clusters(constraints, labels))


def _clusters(constraints: Constraints, labels: ArrayLike) -> Ints:
    codes = as_codes(labels, "labels")
    check_length(constraints.n_samples, codes.size, "The constraints are about")
    return codes


def scores(
    y_true: ArrayLike | None,
    labels: ArrayLike,
    *,
    W: Matrix | None = None,
    constraints: Constraints | None = None,
) -> dict[str, float]:
    """Compute every score that what is given allows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True classes, if known.
    labels : array-like of shape (n_samples,)
        Found clusters.
    W : sparse or dense array of shape (n_samples, n_samples), optional
        Graph, for the quality of the cut.
    constraints : Constraints, optional
        For violated constraints, and for the scores of free points.

    Returns
    -------
    dict
        Always `n_clusters`. With `y_true`: `accuracy`, `clustering_error`, `rand_index`,
        `adjusted_rand`, `nmi`, `pair_precision`, `pair_recall`, `pair_f`, and with constraints
        the same of the free points as `free_accuracy` ... and their number `n_free`. With `W`:
        `cut`, `ncut`, `rcut`, and with constraints those of the graph among the free points,
        `free_cut` ... With constraints: `violated_share`, `violated_must_link`,
        `violated_cannot_link`.

    Examples
    --------
    >>> scores(None, [0, 0, 1], W=np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0]]))["rcut"]
    1.5
    """
    labels = as_codes(labels, "labels")
    found: dict[str, float] = {"n_clusters": np.unique(labels).size}
    if y_true is not None:
        y_true = as_codes(y_true, "y_true")
        found |= _agreement(y_true, labels, None)
    if y_true is not None and constraints is not None:
        free = _agreement(y_true, labels, constraints)
        found |= {f"free_{name}": score for name, score in free.items()}
    if constraints is not None:
        violated = violated_count(constraints, labels)
        found["n_free"] = int((~constraints.constrained).sum())
        found["violated_share"] = violated_share(constraints, labels)
        found["violated_must_link"] = violated.must_link
        found["violated_cannot_link"] = violated.cannot_link
    if W is not None:
        found |= {score.__name__: score(W, labels) for score in (cut, ncut, rcut)}
    if W is not None and constraints is not None:
        for score in (cut, ncut, rcut):
            found[f"free_{score.__name__}"] = score(W, labels, outside=constraints)
    return found


def _agreement(y_true: ArrayLike, labels: ArrayLike, outside: Outside) -> dict[str, float]:
    simple = (accuracy, clustering_error, rand_index, adjusted_rand, nmi)
    found = {score.__name__: score(y_true, labels, outside=outside) for score in simple}
    pairs = pairwise_f(y_true, labels, outside=outside)
    return found | {f"pair_{name}": score for name, score in pairs._asdict().items()}
