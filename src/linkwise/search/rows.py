"""Rows of an embedding to clusters, freely or under hard constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.sparse import csr_array

from linkwise.partition import kmeans, relabelled
from linkwise.search.evolve import run_here
from linkwise.search.hard import (
    certain_groups,
    n_certain_violated,
    refuse_broken_promise,
    warn_if_interrupted,
)
from linkwise.search.landscapes import MeansData
from linkwise.search.means import _centers

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.constraints import Constraints

__all__ = ["cluster_rows"]


def cluster_rows(
    V: Floats,
    k: int,
    rng: np.random.RandomState,
    *,
    assign: Literal["free", "feasible"] = "free",
    constraints: Constraints | None = None,
) -> Ints:
    """Cluster the rows of an embedding, freely or under hard constraints.

    ``"free"`` is :func:`kmeans`. ``"feasible"`` lowers the same sum of squares, but only among the
    partitions that satisfy every certain pair and label of the constraints.

    Parameters
    ----------
    V : ndarray of shape (n, n_dims)
        The rows.
    k : int
        Number of clusters.
    rng : RandomState
        Seeds the starts.
    assign : {"free", "feasible"}, default="free"
        Whether constraints hold without exception.
    constraints : Constraints, optional
        What ``"feasible"`` satisfies.

    Returns
    -------
    ndarray of shape (n,)
        Ints numbered by first appearance.

    Raises
    ------
    ConflictError
        If no partition satisfies the constraints, or none was found.

    Examples
    --------
    >>> from linkwise import Constraints
    >>> V = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> known = Constraints(4, cannot_link=[(0, 1)])
    >>> rng = np.random.RandomState(0)
    >>> cluster_rows(V, 2, rng, assign="feasible", constraints=known).tolist()
    [0, 1, 1, 1]
    """
    free = kmeans(V, k, rng)
    if assign == "free" or constraints is None or constraints.is_empty:
        return free.labels
    if not n_certain_violated(constraints, free.labels):
        return free.labels
    groups, known = certain_groups(constraints, k, rng)
    data, _ = MeansData.of(V, k)
    landscape = data.landscape(groups, csr_array((V.shape[0],) * 2), known, "fast")
    # Nearest to what the rows want by themselves, among other starts.
    near_free = landscape.nearest(
        _centers(data.rows, np.ones(V.shape[0]), free.labels, int(free.labels.max()) + 1), rng
    )
    found = landscape.search(rng, run_here, first=[near_free])
    labels = relabelled(found.z[groups.of_sample])
    refuse_broken_promise(constraints, labels)
    warn_if_interrupted(interrupted=found.interrupted)
    return labels
