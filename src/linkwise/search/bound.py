r"""How far a normalised cut is from the best: a bound that no partition with the constraints beats.

A partition in `k` clusters is a projection :math:`P` of rank `k`: its entries are
:math:`\sqrt{d_i d_j} / \mathrm{vol}(c)` for two vertices of a cluster `c`, and 0 for others. The
normalised cut is :math:`\mathrm{tr}(L P)` with the normalised Laplacian :math:`L`. So the sum of
the `k` smallest eigenvalues of :math:`L` is below every cut. The constraints raise it:

- must-linked samples are contracted; with two clusters also samples that cannot-links leave on one
  side;
- a cannot-linked pair has :math:`P_{ij} = 0`, so :math:`L` may get any weight :math:`t_{ij}` there
  and the cut remains the same. The bound is a concave function of the weights; a few steps of
  ascent raise it.

The constant vector (times the roots of the degrees) lies in the range of every :math:`P`; it is
taken out of that eigenproblem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise import metrics
from linkwise.constraints.coloring import CannotLinkGraph
from linkwise.constraints.feasible import feasible_groups
from linkwise.constraints.table import symmetric_matrix
from linkwise.exceptions import ConflictError, TooLargeError
from linkwise.linalg import eigen
from linkwise.linalg.embedding import spectral_embedding
from linkwise.linalg.laplacian import degrees, normalized_adjacency
from linkwise.linalg.operators import Deflated, Projected
from linkwise.search.problem import Groups, merge_for_two

if TYPE_CHECKING:
    from linkwise._types import AnyInts, Floats, Graph, Ints
    from linkwise.constraints import Constraints

ASCENTS = 10  # eigenproblems to weigh the cannot-links
ASCEND_UP_TO = 20_000  # vertices after contraction: above it only must-links are used
FIRST_STEP, LONGER, SHORTER = 0.5, 1.5, 1 / 3  # of the way to the cut, by the slope
ROUNDING = 1e-12  # of the sum of eigenvalues


@dataclass(eq=False)
class CutCertificate:
    """The normalised cut of labels, and a lower bound; computed when they are asked for.

    Parameters
    ----------
    W : csr_array or ndarray of shape (n_samples, n_samples)
        The graph.
    constraints : Constraints
        The bound holds for every partition that satisfies the certain ones.
    labels : ndarray of shape (n_samples,)
        The partition; the bound is for as many clusters.
    eigenvalues : tuple of ndarray, optional
        The smallest eigenvalues of the normalised Laplacian of `W`, one for each cluster, and their
        residuals, if they are known.
    """

    W: Graph
    constraints: Constraints
    labels: Ints
    eigenvalues: tuple[Floats, Floats] | None = None

    @cached_property
    def cut(self) -> float:
        """The normalised cut of the labels."""
        return float(metrics.ncut(self.W, self.labels))

    @cached_property
    def bound(self) -> float:
        """What every partition that satisfies the certain constraints costs at least."""
        k = int(np.unique(self.labels).size)
        known = self.eigenvalues
        if known is not None and known[0].size == k and self.constraints.is_empty:
            return _below(*known)
        return lower_bound(self.W, self.constraints, k, target=self.cut)

    @property
    def gap(self) -> float:
        """The share of the cut by which another partition could be lower at most.

        Negative if the labels violate certain constraints and pay less for it.
        """
        return (self.cut - self.bound) / self.cut if self.cut > 0 else 0.0

    def sentence(self) -> str:
        """Say in one sentence how good the cut is."""
        keeps = "" if self.constraints.certain.is_empty else " that keeps your certain pairs"
        n_violated = self.constraints.certain.n_violated(self.labels)
        if n_violated:
            return (
                f"The normalised cut is {self.cut:.4g} and violates {n_violated} certain pairs; "
                f"every partition{keeps} has at least {self.bound:.4g}."
            )
        if self.cut == 0:
            return "The normalised cut is 0: no partition is better."
        return (
            f"No partition{keeps} can have a normalised cut more than {_percent(self.gap)} lower "
            f"({self.cut:.4g}; the bound is {self.bound:.4g})."
        )


def _percent(share: float) -> str:
    """Return a share in per cent, rounded up: the sentence must stay true."""
    digits = 0 if share >= 0.01 else 1
    return f"{np.ceil(share * 100 * 10**digits) / 10**digits:.{digits}f} %"


def lower_bound(
    W: Graph, constraints: Constraints, k: int, *, target: float = np.inf, ascents: int = ASCENTS
) -> float:
    """Return a number that no normalised cut in `k` clusters with the certain constraints is below.

    `target` is a cut that is known, which guides the ascent; beyond it there is nothing to gain.
    Residuals of the eigensolver are subtracted.

    Examples
    --------
    >>> from linkwise import Constraints
    >>> W = np.array([[0, 3, 1, 0], [3, 0, 0, 1], [1, 0, 0, 3], [0, 1, 3, 0]], dtype=float)
    >>> round(lower_bound(W, Constraints(4), 2), 6)  # the best cut is 2 / 8 + 2 / 8
    0.5
    >>> round(lower_bound(W, Constraints(4, cannot_link=[(0, 1)]), 2, target=1.5), 1)
    1.3
    """
    groups = _groups(constraints, k)
    contracted = W if groups is None else contract(W, groups.of_sample)
    n = contracted.shape[0]
    if n <= k:
        # One partition is left, and every vertex is a cluster.
        return float(metrics.ncut(contracted, np.arange(n))) * (1 - ROUNDING)
    found = spectral_embedding(contracted, k, np.random.RandomState(0))
    plain = _below(1 - found.values, found.residuals)
    if groups is None or groups.apart.indices.size == 0 or n > ASCEND_UP_TO:
        return plain
    return max(plain, _ascended(contracted, groups, k, target=target, ascents=ascents))


def _below(values: Floats, residuals: Floats) -> float:
    """Return what the sum of the eigenvalues is at least: each is within its residual."""
    total = float(np.maximum(values - residuals, 0.0).sum())
    return max(total - ROUNDING * max(total, 1.0), 0.0)


def _groups(constraints: Constraints, k: int) -> Groups | None:
    """Return what must be together and what apart; None if nothing must.

    Constraints that cannot all hold, or labels with too many pairs, leave the must-links alone.
    """
    certain = constraints.certain
    if certain.is_empty:
        return None
    try:
        found = feasible_groups(certain, k)
        component, n_groups, apart = found.component, found.n_groups, found.graph
    except (ConflictError, TooLargeError):
        component = certain.components()
        n_groups = int(component.max()) + 1
        apart = CannotLinkGraph(np.zeros(n_groups + 1, np.int64), np.zeros(0, np.int32))
    # Neither soft pairs nor a feasible partition are needed here.
    unused = csr_array((component.size, component.size)), np.zeros(n_groups, np.int32)
    groups = Groups(component.astype(np.int32), n_groups, apart, *unused)
    if k == 2 and apart.indices.size:
        merged = merge_for_two(groups)
        pairs = _pairs(merged)
        if (pairs[0] != pairs[1]).all():  # else an odd ring: no partition in two satisfies it
            return merged
    return groups


def _pairs(groups: Groups) -> tuple[AnyInts, AnyInts]:
    """Return the cannot-linked groups, each pair once."""
    heads = np.repeat(np.arange(groups.n_groups), np.diff(groups.apart.indptr))
    once = heads <= groups.apart.indices
    return heads[once], groups.apart.indices[once]


def contract(W: Graph, group: AnyInts) -> Graph:
    """Return the graph of the groups; the weight inside of a group is a loop."""
    n = group.size
    R = csr_array((np.ones(n), (np.arange(n), group)), shape=(n, int(group.max()) + 1))
    return csr_array(R.T @ csr_array(W) @ R) if issparse(W) else R.T @ (R.T @ W).T


class _Bound(NamedTuple):
    """The bound at some weights of the cannot-links, and its slope."""

    value: float
    slope: Floats


class _Weighted(NamedTuple):
    """The eigenproblem whose cannot-links have weights."""

    S: csr_array  # normalised adjacency
    constant: Floats  # its leading eigenvector, of unit length
    pairs: tuple[AnyInts, AnyInts]
    k: int

    def at(self, t: Floats) -> _Bound:
        """Return the bound with the weights `t`, and how it changes with them."""
        heads, tails = self.pairs
        T = symmetric_matrix(np.column_stack((heads, tails)), t, self.constant.size)
        M = csr_array(self.S - T)
        q = self.constant
        below = 2.0 + 2.0 * float(abs(T).sum(axis=1).max())
        U = q[:, None]
        on_complement = Deflated(Projected(M, U), U, below)
        found = eigen.largest(
            on_complement,
            self.k - 1,
            np.random.RandomState(0),
            known=U,
            known_values=np.array([-below]),
            warns=False,
        )
        V = found.vectors
        value = 1 - float(q @ (M @ q)) + float((1 - found.values - found.residuals).sum())
        slope: Floats = 2 * ((V[heads] * V[tails]).sum(axis=1) + q[heads] * q[tails])
        return _Bound(value - ROUNDING * (1 + below), slope)


def _ascended(W: Graph, groups: Groups, k: int, *, target: float, ascents: int) -> float:
    """Raise the bound by weights of the cannot-links, step by step along its slope."""
    d = degrees(W)
    if k < 2 or not (d > 0).all():
        return 0.0
    constant = np.sqrt(d / d.sum())
    problem = _Weighted(csr_array(normalized_adjacency(W, d)), constant, _pairs(groups), k)
    t = np.zeros(problem.pairs[0].size)
    best, share = problem.at(t), FIRST_STEP
    aim = target if np.isfinite(target) else float(k)
    for _ in range(ascents):
        squared = float(best.slope @ best.slope)
        if best.value >= aim or squared == 0:
            break
        further = t + share * (aim - best.value) / squared * best.slope
        found = problem.at(further)
        if found.value > best.value:
            t, best, share = further, found, share * LONGER
        else:
            share *= SHORTER
    return best.value
