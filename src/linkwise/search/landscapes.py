"""From samples to landscapes: what the search needs, built from a graph or from rows.

Items are the samples, followed by anchors: one for each known label, if labels may be wrong.
An anchor weighs next to nothing; the samples that have the label are tied to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from linkwise.linalg.laplacian import degrees
from linkwise.search.bisection import Bisection, Point, Record
from linkwise.search.evolve import CutSearch, effort_for
from linkwise.search.means import MeansSearch, n_starts_for
from linkwise.search.problem import Groups, build_problem, edgeless_problem
from linkwise.search.recursion import Recursion
from linkwise.search.starts import colorer

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s, Ints
    from linkwise.search.bisection import Settings


__all__ = ["CutData", "MeansData", "OneSpectralData"]

ANCHOR_MASS = 1e-9


class CutData(NamedTuple):
    """The normalised cut of a graph; with `mass`, over the mass of the clusters."""

    W: csr_array
    k: int
    mass: Floats | None = None  # at least the degree of each sample

    @property
    def unit(self) -> float:
        """Half of what it costs to misplace an average sample: strengths count in it."""
        n = self.W.shape[0]
        if self.mass is None:
            return self.k / n
        return self.k / n * float(self.W.sum() - self.W.diagonal().sum()) / float(self.mass.sum())

    def landscape(self, groups: Groups, soft: csr_array, known: Int32s, effort: str) -> CutSearch:
        """Return the landscape of partitions of the groups."""
        n_items = groups.of_sample.size
        mass = self.mass
        if mass is not None:
            mass = np.concatenate((mass, np.zeros(n_items - mass.size)))
        problem = build_problem(_padded(self.W, n_items), groups, soft, 0.0, mass)
        mean_degree = problem.indices.size / max(problem.n_vertices, 1)
        constants = effort_for(effort, problem.n_vertices, self.k, mean_degree)
        return CutSearch(problem, self.k, colorer(problem, self.k, known), constants)


class MeansData(NamedTuple):
    """The sum of squares of rows, as a share of the total."""

    rows: Floats  # centred, with total sum of squares 1
    k: int

    @property
    def unit(self) -> float:
        """Half of what it costs to misplace an average sample: strengths count in it."""
        return 1.0 / self.rows.shape[0]

    @classmethod
    def of(cls, X: Floats, k: int) -> tuple[MeansData, float]:
        """Centre and scale rows; return their total sum of squares as well."""
        rows = X - X.mean(axis=0)
        largest = float(np.abs(rows).max(initial=0.0))
        # Squares of the rows as given may overflow or vanish.
        rows = rows / largest if largest > 0 else rows
        total = float((rows**2).sum())
        with np.errstate(over="ignore"):
            unit = float(np.square(largest))  # infinite where squares are
        return cls(rows / np.sqrt(total) if total > 0 else rows, k), total * unit

    def landscape(self, groups: Groups, soft: csr_array, known: Int32s, effort: str) -> MeansSearch:
        """Return the landscape of partitions of the groups."""
        n_samples = self.rows.shape[0]
        n_items = groups.of_sample.size
        mass = np.full(n_items, ANCHOR_MASS)
        mass[:n_samples] = 1.0
        problem = edgeless_problem(groups, mass, soft, 0.0)
        members = csr_array(
            (np.ones(n_samples), (groups.of_sample[:n_samples], np.arange(n_samples))),
            shape=(groups.n_groups, n_samples),
        )
        sums: Floats = np.ascontiguousarray(members @ self.rows)
        within = float((self.rows**2).sum() - ((sums**2).sum(axis=1) / problem.volume).sum())
        n_starts = n_starts_for(effort, problem.n_vertices)
        color = colorer(problem, self.k, known)
        return MeansSearch(problem, sums, max(within, 0.0), self.k, color, n_starts)


class OneSpectralData(NamedTuple):
    """A graph to be cut by 1-spectral descent, for the searches under constraints."""

    cuts: CutData
    b: Floats  # vertex weights
    mass_factor: float  # by which the search scales them
    settings: Settings
    record: Record

    @classmethod
    def of(cls, W: csr_array, k: int, b: Floats | None, settings: Settings) -> OneSpectralData:
        """Scale the vertex weights so that the moves of the search can use them."""
        d = degrees(W)
        if b is None or not d.any():
            return cls(CutData(W, k), d, 1.0, settings, Record())
        factor = float((d / b).max())
        return cls(CutData(W, k, factor * b), b, factor, settings, Record())

    def objective(self, labels: Ints) -> float:
        """Sum over the clusters of cut over vertex weight; without either it is nothing."""
        W, k = self.cuts.W, int(labels.max()) + 1
        heads = np.repeat(labels, np.diff(W.indptr))
        crossing = heads != labels[W.indices]
        cut = np.bincount(heads[crossing], weights=W.data[crossing], minlength=k)
        weight = np.bincount(labels, weights=self.b, minlength=k)
        return float(np.divide(cut, weight, out=np.zeros(k), where=weight > 0).sum())

    @property
    def k(self) -> int:
        """Number of clusters."""
        return self.cuts.k

    @property
    def price(self) -> float:
        """Half of the mean degree: what it costs in cut to misplace a sample, by half."""
        return float(degrees(self.cuts.W).mean()) / 2

    @property
    def unit(self) -> float:
        """The price of strength 1, in the landscape's own measure."""
        return self.price if self.k == 2 else self.cuts.unit

    @property
    def path(self) -> tuple[Point, ...]:
        """The prices of the descents that led to the answer."""
        points = self.record.path
        return tuple(Point(p.gamma, self.mass_factor * p.value, p.n_violated) for p in points)

    def landscape(
        self, groups: Groups, soft: csr_array, known: Int32s, effort: str
    ) -> Bisection | Recursion:
        """Return the landscape of partitions of the groups."""
        moves = self.cuts.landscape(groups, soft, known, effort)
        if self.k == 2:
            units = self.price, self.cuts.unit
            return Bisection.of(moves, units, self.settings, self.record)
        return Recursion(moves, self.settings, self.record)


def _padded(W: csr_array, n_items: int) -> csr_array:
    """Add isolated vertices."""
    n = W.shape[0]
    if n_items == n:
        return W
    indptr = np.concatenate((W.indptr, np.full(n_items - n, W.indptr[-1], W.indptr.dtype)))
    return csr_array((W.data, W.indices, indptr), shape=(n_items, n_items))
