"""More than two clusters: repeated 1-spectral splits, then the search that keeps every constraint.

Rangapuram & Hein (2012), section 5: a split need not part every cannot-link, since both ends may be
parted later. How many may remain is estimated for classes of equal size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.partition import recursive_bisection
from linkwise.search.bisection import descend, follow, matrices_of, spectral_start
from linkwise.search.coarse import coarse_copy
from linkwise.search.evolve import Found
from linkwise.search.one_spectral import Split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Int32s, Int64s, Ints
    from linkwise.search.bisection import Family, Matrices, Record, Settings, Track
    from linkwise.search.evolve import CutSearch, Report, Run


__all__ = ["Recursion", "recursive_partition"]

OWN = 1e-3  # what the repair prefers a vertex's own cluster by


class Recursion(NamedTuple):
    """Partitions in more than two as a landscape: splits to begin with, then moves."""

    cuts: CutSearch
    settings: Settings
    record: Record

    def at(self, gamma: float) -> Recursion:
        """Return the same landscape with another price of uncertain pairs."""
        return self._replace(cuts=self.cuts.at(gamma))

    def value(self, z: Int32s) -> float:
        """Return the objective of a partition."""
        return self.cuts.value(z)

    def polish(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Refine a partition by moves."""
        return self.cuts.polish(z, rng)

    def cross(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s:
        """Recombine two partitions."""
        return self.cuts.cross(z, other, rng)

    def search(
        self,
        rng: np.random.RandomState,
        run: Run,
        first: Sequence[Int32s] = (),
        report: Report | None = None,
    ) -> Found:
        """Return the best partition met, from splits that were repaired and from other starts."""
        begun = list(first)
        try:
            repaired = self._split(rng, begun)
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            z = min((*begun, self.cuts.color.known), key=self.value)
            return Found(z, self.value(z), 0, interrupted=True)
        if np.unique(repaired).size == self.cuts.k:
            begun.append(repaired)
            if report is not None:
                report(f"splits: {self.value(repaired):.6g} after repair")
        return self.cuts.search(rng, run, begun, report)

    def _split(self, rng: np.random.RandomState, first: Sequence[Int32s]) -> Int32s:
        """Split and repair; a large graph as a coarse copy, which the moves bring back."""
        coarse = coarse_copy(self.cuts, rng, first)
        cuts = self.cuts if coarse is None else coarse.cuts
        search = None if coarse is None else self.settings.rough()
        parts = recursive_partition(cuts, self.settings, self.record, rng, search=search)
        z = repair(cuts, parts, rng)
        return z if coarse is None else coarse.refined(z, rng)


def repair(cuts: CutSearch, z: Int32s, rng: np.random.RandomState) -> Int32s:
    """Return a partition that parts every certain pair, near to `z`.

    A vertex costs what it loses: the share of its weight to other clusters.
    """
    problem = cuts.problem
    n = problem.n_vertices
    W = csr_array((problem.weight, problem.indices, problem.indptr), shape=(n, n))
    member = np.zeros((n, cuts.k))
    member[np.arange(n), z] = 1.0
    cost = (problem.volume[:, None] - W @ member) / problem.volume[:, None] - OWN * member
    return cuts.color(cost, rng)


def recursive_partition(
    cuts: CutSearch,
    settings: Settings,
    record: Record,
    rng: np.random.RandomState,
    *,
    search: Settings | None = None,
) -> Int32s:
    """Split one cluster in two, again and again: the method of the paper, violations and all.

    With settings for the `search`, only the best start of each split is solved as usual.
    """
    problem = cuts.problem
    matrices = matrices_of(problem)
    degree = np.asarray(matrices.W.sum(axis=1)).ravel()
    splitting = _Splitting(
        matrices, degree, problem.n_samples, cuts.k, problem.gamma, settings, record, rng, search
    )
    # A vertex without weight stands for something, if only next to nothing.
    found = recursive_bisection(matrices.W, cuts.k, splitting.split, weights=problem.volume)
    return _with_all_clusters(found.labels.astype(np.int32), cuts.k)


def _with_all_clusters(z: Int32s, k: int) -> Int32s:
    """Part single vertices off the largest clusters where nothing could be split any more."""
    for c in range(int(z.max()) + 1, k):
        z[np.flatnonzero(z == np.bincount(z).argmax())[-1]] = c
    return z


class _Splitting(NamedTuple):
    matrices: Matrices
    degree: Floats
    n_samples: Int64s  # of each vertex
    k: int
    price: float  # of uncertain pairs, over the volume of a cluster
    settings: Settings
    record: Record
    rng: np.random.RandomState
    search: Settings | None = None  # if other ones than for the certificate

    def split(self, part: csr_array, members: Ints) -> Int32s | None:
        """Return the two sides of a part that add least to the total cut, or None.

        A part may be in pieces, where the cuts before went through. To part them is free; so the
        largest one is split as well, and the others stay on its heavier side.
        """
        n_pieces, piece = connected_components(part, directed=False)
        candidates = [self._sides(part, members)]
        if n_pieces > 1:
            weight = np.bincount(piece, weights=self.matrices.volume[members])
            largest = np.flatnonzero(piece == weight.argmax())
            inner = self._sides(csr_array(part[np.ix_(largest, largest)]), members[largest])
            if inner is not None:
                volume = self.matrices.volume[members[largest]]
                sides = np.full(members.size, volume[inner == 1].sum() * 2 > volume.sum())
                sides[largest] = inner
                candidates.append(sides.astype(np.int32))
        usable = [sides for sides in candidates if sides is not None]
        return min(usable, key=lambda sides: self._cost(members, sides), default=None)

    def _cost(self, members: Ints, sides: Int32s) -> float:
        """Return cut over vertex weight of the two sides, in the whole graph."""
        W, b = self.matrices.W, self.matrices.volume
        total = 0.0
        for side in (0, 1):
            inside = np.zeros(b.size)
            inside[members[sides == side]] = 1.0
            cut, weight = float(inside @ (W @ (1.0 - inside))), float(b @ inside)
            total += cut / weight if weight > 0 else 1.0
        return total

    def _sides(self, part: csr_array, members: Ints) -> Int32s | None:
        """Split a part by descent, from the spectral vector and from a random one."""
        if members.size < 2:
            return None
        inside = self.matrices.restrict(members)
        if self.settings.by_degree:
            outside = self.degree[members] - np.asarray(part.sum(axis=1)).ravel()
            inside = inside._replace(volume=np.maximum(inside.volume - outside, 0.0))
        family = inside.family(self.settings.balance)
        allowed = self._allowed(members, int((family.belief == 0).sum()))
        soft = self.price * float(inside.volume.sum()) / 4
        spectral = spectral_start(part, inside.volume, self.rng)
        tracks = [
            follow(
                family,
                f,
                self.search or self.settings,
                self.record,
                soft=soft,
                allowed=allowed,
                allowed_is_a_wish=True,
            )
            for f in (family.vector(spectral), self.rng.normal(size=members.size))
        ]
        best = min(tracks, key=lambda track: track.split.value)
        if not np.isfinite(best.split.value):
            return None
        if self.search is not None:
            best = self._continued(family, best, soft)
        self.record.certify_worst(best)
        return family.partition(best.split.above)

    def _continued(self, family: Family, track: Track, soft: float) -> Track:
        """Descend further at the last price; keep what is lower and violates no more pairs."""
        cut = family.at(soft=soft, hard=track.gamma)
        found = descend(cut, track.f, self.settings, self.record)
        above = found.split.above
        split = Split(family.at(soft=soft).value(above.astype(np.float64)), above)
        if family.n_violated(above) > family.n_violated(track.split.above):
            split = track.split
        best = min(track.split, split, key=lambda candidate: candidate.value)
        return track._replace(split=best, f=found.f, last=found)

    def _allowed(self, members: Ints, n_pairs: int) -> int:
        """Return how many cannot-links may stay inside the sides: one class against the others."""
        n_classes = max(2, self.k * int(self.n_samples[members].sum()) // int(self.n_samples.sum()))
        return n_pairs * (n_classes - 2) // n_classes
