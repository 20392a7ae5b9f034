"""Many clusters by splitting one cluster in two, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse

from linkwise._kernels import relabelled
from linkwise.partition.threshold import row_sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import AnyArray, Floats, Ints, Matrix

    Split: TypeAlias = Callable[[Matrix, Ints], AnyArray | None]


class Bisection(NamedTuple):
    """Clusters made by recursive bisection, and what their cut costs."""

    labels: Ints
    objective: float


class _Candidate(NamedTuple):
    """A cluster that can be split: its two parts, and what the split adds to the total cut."""

    parts: tuple[Ints, Ints]
    added: float


def recursive_bisection(
    W: Matrix, k: int, split: Split, *, weights: Floats | None = None
) -> Bisection:
    r"""Make `k` clusters by splitting one cluster in two, again and again.

    Every cluster is split for trial; the split is kept that leads to the lowest total

    .. math:: \sum_c \mathrm{cut}(c, V \setminus c) / b(c)

    over all clusters, the rule of Rangapuram & Hein (2012), section 5, with the convention of
    :func:`linkwise.metrics.ncut`. The vertex weights :math:`b` are the degrees (normalised cut)
    unless given; ones make it ratio cut. ``split(W_sub, indices)`` gets the subgraph of a cluster
    of at least two vertices and their indices in `W`, and returns labels 0 and 1; None, or one
    label for all, if it should stay whole. Each cluster is tried once, so `split` is called at most
    ``2 k - 3`` times. There are fewer than `k` clusters if none that are left can be split.

    Examples
    --------
    >>> from linkwise.partition import best_threshold
    >>> path = np.diag([1.0, 0.1, 1.0, 0.2, 1.0], 1)
    >>> W = path + path.T
    >>> def halve(W_sub, indices):
    ...     return best_threshold(W_sub, indices.astype(float)).labels
    >>> recursive_bisection(W, 3, halve).labels.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    b = row_sums(W) if weights is None else weights
    clusters: list[Ints] = [np.arange(W.shape[0])]
    candidates = [None if k == 1 else _candidate(W, clusters[0], b=b, split=split)]
    while len(clusters) < k:
        added = [np.inf if c is None else c.added for c in candidates]
        chosen = int(np.argmin(added))
        candidate = candidates[chosen]
        if candidate is None:
            break
        clusters[chosen : chosen + 1] = candidate.parts
        # After the last split nothing more is tried: a trial may be an expensive solve.
        parts = candidate.parts if len(clusters) < k else ()
        candidates[chosen : chosen + 1] = [_candidate(W, part, b=b, split=split) for part in parts]
    labels = np.empty(W.shape[0], dtype=np.intp)
    for label, members in enumerate(clusters):
        labels[members] = label
    return Bisection(relabelled(labels), sum(_cost(W, b, members) for members in clusters))


def _candidate(W: Matrix, members: Ints, *, b: Floats, split: Split) -> _Candidate | None:
    """Split a cluster for trial; None if it stays whole."""
    if members.size < 2:
        return None
    labels = split(W[np.ix_(members, members)], members)
    if labels is None:
        return None
    first = np.asarray(labels) == 0
    if first.all() or not first.any():
        return None
    parts = members[first], members[~first]
    added = _cost(W, b, parts[0]) + _cost(W, b, parts[1]) - _cost(W, b, members)
    return _Candidate(parts, added)


def _cost(W: Matrix, b: Floats, members: Ints) -> float:
    """``cut(c, rest) / b(c)``; a cluster without edges or weight costs nothing."""
    inside = np.zeros(W.shape[0], dtype=bool)
    inside[members] = True
    rows = W[members]
    if issparse(rows):
        cut = float(rows.data[~inside[rows.indices]].sum())
    else:
        cut = float(rows[:, ~inside].sum())
    weight = float(b[members].sum())
    return cut / weight if weight > 0 else 0.0
