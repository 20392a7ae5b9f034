"""Two clusters from one vector: the threshold with the cheapest cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Ints, Matrix


class Threshold(NamedTuple):
    """Two clusters, ``labels = v > value``, and what their cut costs."""

    labels: Ints
    value: float
    objective: float


def best_threshold(
    W: Matrix,
    v: Floats,
    *,
    objective: Literal["ncut", "rcut", "ncheeger", "rcheeger"] = "ncut",
    weights: Floats | None = None,
    offset: float = 0.0,
) -> Threshold:
    r"""Cut the graph between two values of a vector where that costs least.

    Of all partitions :math:`A_t = \{i : v_i > t\}`, :math:`B_t` its complement, finds the one
    with the lowest

    .. math:: \frac{\mathrm{cut}(A_t, B_t)}{b(A_t)} + \frac{\mathrm{cut}(A_t, B_t)}{b(B_t)}
       \quad\text{or}\quad \frac{\mathrm{cut}(A_t, B_t)}{\min(b(A_t), b(B_t))},

    the cut counting each edge once. In the name of the objective, `n` makes :math:`b` the volume
    and `r` the size; other vertex weights are given by `weights`. All thresholds together cost one
    sort and one pass over the edges: moving a vertex across the threshold adds its weights to one
    side to the cut and takes off those to the other.

    `offset` is added to every cut. With ``W + gamma (Q_must - Q_cannot)`` in place of `W`, the
    degrees of `W` as weights, and gamma times the number of cannot-links as offset, the objective
    is the penalised cut of Rangapuram & Hein (2012), eq. 1.

    A threshold never separates equal values, nor leaves a side without weight. If no threshold is
    left (`v` is constant, or one vertex only) all labels are 0, the value is the largest of `v`,
    and the objective is infinite.

    Examples
    --------
    >>> path = np.diag([1.0, 0.1, 1.0], 1)
    >>> best_threshold(path + path.T, np.array([0.0, 1.0, 2.0, 3.0])).labels.tolist()
    [0, 0, 1, 1]
    """
    b = _vertex_weights(W, objective) if weights is None else weights
    sum_or_worse = _cheeger if objective.endswith("cheeger") else _sum_of_ratios
    order = np.argsort(v, kind="stable")
    ascending = v[order]
    # Running sums are rounded: a cut is never negative, a weight of 1e-16 is none.
    cuts = np.maximum(offset + _cuts_along(W, order)[:-1], 0.0)
    below = _without_rounding(np.cumsum(b[order])[:-1])
    above = _without_rounding(np.cumsum(b[order][::-1])[::-1][1:])
    costs = sum_or_worse(cuts, below, above)
    costs[ascending[:-1] == ascending[1:]] = np.inf
    if not np.isfinite(costs).any():
        nowhere = np.zeros(v.size, dtype=np.intp)
        return Threshold(nowhere, float(v.max()), np.inf)
    value = ascending[costs.argmin()]
    is_above = v > value
    # The running sums carry the rounding of the whole graph; the answer is summed afresh.
    cut = np.array([offset + _weight_between(W, is_above)])
    cost = sum_or_worse(cut, b[~is_above].sum(), b[is_above].sum())
    return Threshold(is_above.astype(np.intp), float(value), float(cost[0]))


def _without_rounding(sums: Floats) -> Floats:
    """Set running sums that are nothing but rounding to zero."""
    return np.where(sums > 1e-12 * sums.max(initial=0.0), sums, 0.0)


def _cuts_along(W: Matrix, order: Ints) -> Floats:
    """Cut between the first ``t + 1`` vertices of an order and the rest, for every `t`."""
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    if issparse(W):
        row_position = np.repeat(position, np.diff(W.indptr))
        side = np.sign(position[W.indices] - row_position)
        # Sums by row, without an n x n matrix: a loop has side 0 and drops out.
        later_minus_earlier = csr_array((W.data * side, W.indices, W.indptr), W.shape)
        return np.cumsum(row_sums(later_minus_earlier)[order])
    sorted_W = W[np.ix_(order, order)]
    later = np.triu(sorted_W, 1)
    # The part below the diagonal is the mirror image: its row sums are column sums of `later`.
    return np.cumsum(later.sum(axis=1) - later.sum(axis=0))


def _weight_between(W: Matrix, above: Bools) -> float:
    if issparse(W):
        rows = np.repeat(above, np.diff(W.indptr))
        return float(W.data[rows & ~above[W.indices]].sum())
    return float(W[np.ix_(above, ~above)].sum())


def _vertex_weights(W: Matrix, objective: str) -> Floats:
    return np.ones(W.shape[0]) if objective.startswith("r") else row_sums(W)


def row_sums(W: Matrix) -> Floats:
    """Return the degree of each vertex."""
    return np.asarray(W.sum(axis=1), dtype=np.float64).ravel()


def _sum_of_ratios(cuts: Floats, below: Any, above: Any) -> Floats:
    return _ratio(cuts, below) + _ratio(cuts, above)


def _cheeger(cuts: Floats, below: Any, above: Any) -> Floats:
    return _ratio(cuts, np.minimum(below, above))


def _ratio(cuts: Floats, b: Any) -> Floats:
    """``cuts / b``, infinite where a side has no weight: nothing was cut off."""
    positive = np.broadcast_to(b > 0, cuts.shape)
    ratio: Floats = np.divide(cuts, b, out=np.full(cuts.shape, np.inf), where=positive)
    return ratio


def sign_split(v: Floats) -> Ints:
    """Split by sign: label 1 where ``v >= 0``, label 0 elsewhere.

    Zeros go to the positive side, so `v` and ``-v`` are the same partition only where `v` has
    no zero.

    Examples
    --------
    >>> sign_split(np.array([-0.3, 0.0, 0.2])).tolist()
    [0, 1, 1]
    """
    return (v >= 0).astype(np.intp)
