"""The normalised cut with linear constraints: equal and opposite values of constrained samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise.linalg import eigen
from linkwise.linalg.laplacian import degrees
from linkwise.linalg.operators import Deflated, Projected
from linkwise.partition import relabelled

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints

SMALL = 500  # vertices up to which the projected matrix is dense


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


class Minimizer(NamedTuple):
    """The minimiser, its value, and the certificate."""

    x: Floats
    value: float
    residual: float
    converged: bool


def linear_minimizer(W: Graph, groups: SignedGroups, rng: np.random.RandomState) -> Minimizer:
    """Minimise ``x' L x / x' D x`` over ``x = R z`` with ``x' D 1 = 0``.

    With the groups' volumes on the diagonal of `G`, ``y = G^1/2 z`` is the leading eigenvector of
    ``G^-1/2 R' W R G^-1/2`` in the complement of ``b = G^-1/2 R' D 1``, which is an eigenvector
    itself only where there are no cannot-links.
    """
    d = degrees(W)
    mean = float(d.mean()) or 1.0
    d = d / mean
    volume = np.bincount(groups.group, weights=d * np.abs(groups.sign))
    heavy = volume > 0
    if not heavy.any():
        return Minimizer(np.zeros(d.size), 0.0, 0.0, converged=True)
    column = np.cumsum(heavy) - 1
    rows = np.flatnonzero(heavy[groups.group] & (groups.sign != 0))
    # R G^-1/2, without the groups that have no volume or must be zero.
    entries = groups.sign[rows] / np.sqrt(volume[groups.group[rows]])
    shape = (d.size, int(heavy.sum()))
    R = csr_array((entries, (rows, column[groups.group[rows]])), shape=shape)
    S = csr_array(R.T @ W @ R) if issparse(W) else R.T @ (R.T @ W).T
    found = _leading(S / mean, R.T @ d, rng)
    x = R @ found.vectors[:, 0]
    value, residual = float(1 - found.values[0]), float(found.residuals[0])
    return Minimizer(x, value, residual, converged=found.converged)


def _leading(S: Any, b: Floats, rng: np.random.RandomState) -> eigen.EigenPairs:
    """Return the leading eigenpair of `S` in the complement of `b`."""
    n = S.shape[0]
    length = float(np.linalg.norm(b))
    if n == 1 or length <= 1e-12 * np.sqrt(n):
        # One group alone cannot be balanced; and groups that are balanced by themselves need not.
        return eigen.largest(S, 1, rng)
    U = (b / length)[:, None]
    # The eigenvalues are within [-1, 1], this puts b below.
    on_complement: Any
    if n <= SMALL:
        P = np.eye(n) - U @ U.T
        on_complement = P @ (S @ P) - 2.0 * (U @ U.T)
    else:
        on_complement = Deflated(Projected(S, U), U, 2.0)
    return eigen.largest(on_complement, 1, rng, known=U, known_values=np.array([-2.0]))
