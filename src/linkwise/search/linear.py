"""The normalised cut with linear constraints: equal and opposite values of constrained samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise.linalg import eigen
from linkwise.linalg.laplacian import degrees
from linkwise.linalg.operators import Deflated, Projected
from linkwise.partition import best_threshold, relabelled

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Graph, Ints

__all__ = ["Cut", "SignedGroups", "constrained_cut"]


class SignedGroups(NamedTuple):
    """Samples whose values are equal up to their sign: all solutions of the linear equations.

    ``x = R z``, with ``R[i, group[i]] = sign[i]`` and any `z`. A group whose cannot-links
    contradict each other has the sign 0: its values must be zero.
    """

    group: Ints
    sign: Floats
    must: Ints  # the group by must-links alone

    def without_contradictions(self) -> SignedGroups:
        """Return the same without the cannot-links of contradictory groups."""
        bad = self.sign == 0
        group = np.where(bad, self.group.max() + 1 + self.must, self.group)
        return SignedGroups(relabelled(group), np.where(bad, 1.0, self.sign), self.must)

    @property
    def has_both_signs(self) -> Bools:
        """Which samples are in a group with cannot-links."""
        total = np.bincount(self.group, weights=self.sign)
        size = np.bincount(self.group)
        return (np.abs(total) < size)[self.group]


class Cut(NamedTuple):
    """The minimiser, its value, the certificate, and the two sides."""

    x: Floats
    value: float
    residual: float
    converged: bool
    labels: Ints


def constrained_cut(W: Graph, groups: SignedGroups, rng: np.random.RandomState) -> Cut:
    """Minimise ``x' L x / x' D x`` over ``x = R z`` with ``x' D 1 = 0``, and split `x`.

    With the groups' volumes on the diagonal of `G`, ``y = G^1/2 z`` is the leading eigenvector of
    ``G^-1/2 R' W R G^-1/2`` in the complement of ``b = G^-1/2 R' D 1``, which is an eigenvector
    itself only where there are no cannot-links.
    """
    d = degrees(W)
    mean = float(d.mean()) or 1.0
    d = d / mean
    volume = np.bincount(groups.group, weights=d * np.abs(groups.sign))
    heavy = volume > 0
    column = np.cumsum(heavy) - 1
    inside = heavy[groups.group] & (groups.sign != 0)
    rows = np.flatnonzero(inside)
    # R G^-1/2, without the groups that have no volume or must be zero.
    entries = groups.sign[rows] / np.sqrt(volume[groups.group[rows]])
    shape = (d.size, int(heavy.sum()))
    R = csr_array((entries, (rows, column[groups.group[rows]])), shape=shape)
    S = _between(W, R) / mean
    if not heavy.any():
        nothing = np.zeros(d.size)
        return Cut(nothing, 0.0, 0.0, converged=True, labels=_sides(W, nothing, groups))
    found = _leading(S, R.T @ d, rng)
    x = R @ found.vectors[:, 0]
    return Cut(
        x,
        float(1 - found.values[0]),
        float(found.residuals[0]),
        converged=found.converged,
        labels=_sides(W, x, groups),
    )


def _between(W: Graph, R: csr_array) -> Any:
    if issparse(W):
        return csr_array(R.T @ W @ R)
    return R.T @ (R.T @ W).T


def _leading(S: Any, b: Floats, rng: np.random.RandomState) -> eigen.EigenPairs:
    """Return the leading eigenpair of `S` in the complement of `b`."""
    n = S.shape[0]
    length = float(np.linalg.norm(b))
    if n == 1 or length <= 1e-12 * np.sqrt(n):
        # One group alone cannot be balanced; and groups that are balanced by themselves need not.
        return eigen.largest(S, 1, rng)
    U = (b / length)[:, None]
    # The eigenvalues are within [-1, 1], this puts b below.
    on_complement = Deflated(Projected(S, U), U, 2.0)
    return eigen.largest(on_complement, 1, rng, known=U, known_values=np.array([-2.0]))


def _sides(W: Graph, x: Floats, groups: SignedGroups) -> Ints:
    """Split at the threshold of the lowest normalised cut that keeps all constraints.

    A threshold keeps the must-links in any case, and the cannot-link ``x_i = -x_j`` if its
    magnitude is at most ``|x_i|``. Zero keeps all of them. Where `x` is zero the signs decide.
    """
    opposite = groups.has_both_signs & (groups.sign != 0)
    weighty = np.abs(x) > 0
    least = np.abs(x[opposite & weighty]).min(initial=np.abs(x).max())
    found = best_threshold(W, np.clip(x, -least, least))
    # All the volume may be on one side of every threshold: then zero is as good as any.
    sides = found.labels == 1 if np.isfinite(found.objective) else x > 0
    sides = np.where(weighty | ~opposite, sides, groups.sign > 0)
    if sides.all() or not sides.any():
        # Nothing tells the samples apart: the first group stands alone.
        sides = groups.must != groups.must[0]
    return sides.astype(np.intp)
