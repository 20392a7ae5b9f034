"""More than two clusters as in the paper: the recursion of Rangapuram & Hein (2012), section 5.

Clusters are split in two until there are `k`. A split is chosen by the multi-cut (6); how many
cannot-links it may leave is estimated for classes of equal size. The best of several runs counts,
by its cut. Where the paper is silent the rules are those of the authors' program (version 1.1):

- a split is tried at no more than five penalties; if none of them leaves few enough cannot-links
  violated, the one without a penalty is taken;
- of the clusters that could be split, those count that part their share of the cannot-links, and in
  the last round those that part most.

So cannot-links may be violated, even if they could all hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from linkwise.linalg.laplacian import degrees
from linkwise.search.bisection import family_of, spectral_start
from linkwise.search.one_spectral import Point, Record, ratio_dca

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int32s, Ints
    from linkwise.search.bisection import Family, Matrices
    from linkwise.search.one_spectral import Critical, Settings

N_PENALTIES = 5  # the first is zero
STEP = 0.1  # from one penalty to the next, in units of the largest weight
SAME_CUT = 1e-8  # where the cut has not changed, the step is doubled
MOST_COMPONENTS = 20  # of a disconnected part, the heaviest, that are split off by themselves


class Outcome(NamedTuple):
    """A partition in `k` clusters, what it costs, and the work it took."""

    z: Int32s
    value: float  # sum over clusters of cut over vertex weight, plus penalties of uncertain pairs
    record: Record


class Trial(NamedTuple):
    """What one start gave at one penalty."""

    cut: float  # without the penalty of certain pairs
    penalized: float
    n_violated: int
    found: Critical


class Candidate(NamedTuple):
    """A partition with one cluster more."""

    clusters: list[Ints]
    multi_cut: float
    n_parted: int
    parts_its_share: bool


@dataclass(frozen=True, eq=False)
class PaperRun:
    """One run of the recursion on a contracted graph."""

    matrices: Matrices
    k: int
    soft: float  # penalty of uncertain pairs, over the volume of a cluster
    settings: Settings
    record: Record
    rng: np.random.RandomState

    def partition(self) -> Int32s:
        """Split until there are `k` clusters, or none that can be split."""
        n = self.matrices.volume.size
        clusters = [np.arange(n)]
        sides: dict[bytes, Int32s | None] = {}
        while len(clusters) < self.k:
            for members in clusters:
                if members.tobytes() not in sides:
                    sides[members.tobytes()] = self._sides(members)
            splits = [sides[members.tobytes()] for members in clusters]
            candidates = self._candidates(clusters, splits)
            if not candidates:
                break
            clusters = self._chosen(candidates, n_clusters=len(clusters) + 1).clusters
        return self._filled(_labels(clusters, n))

    def _filled(self, z: Int32s) -> Int32s:
        """Let single vertices leave the largest clusters where nothing could be split."""
        for c in range(int(z.max()) + 1, self.k):
            z[np.flatnonzero(z == np.bincount(z).argmax())[-1]] = c
        return z

    # --- which cluster is split

    def _candidates(self, clusters: list[Ints], splits: list[Int32s | None]) -> list[Candidate]:
        """Return the partitions in which one cluster is split."""
        n = self.matrices.volume.size
        candidates = []
        for at, (members, sides) in enumerate(zip(clusters, splits, strict=True)):
            if sides is None:
                continue
            halves = [members[sides == 0], members[sides == 1]]
            halved = [*clusters[:at], *halves, *clusters[at + 1 :]]
            z = _labels(halved, n)
            n_parted = self._n_parted(z)
            share = min(self._share(members), self._share_of_all(len(halved)))
            candidates.append(Candidate(halved, self._multi_cut(z), n_parted, n_parted >= share))
        return candidates

    def _chosen(self, candidates: list[Candidate], n_clusters: int) -> Candidate:
        """Return the lowest multi-cut of those that part their share of the cannot-links."""
        eligible = [c for c in candidates if c.parts_its_share]
        if n_clusters == self.k or not eligible:
            return min(candidates, key=lambda c: (-c.n_parted, c.multi_cut))
        return min(eligible, key=lambda c: c.multi_cut)

    def _share(self, members: Ints) -> int:
        """Return how many cannot-links should be parted once this cluster is split.

        As many as one of its classes has to the others, if there are equally many between all.
        """
        m = self._n_classes(members)
        return int(2 * (m - 1) / (self.k * (self.k - 1)) * self._pairs[0].size)

    def _share_of_all(self, n_clusters: int) -> float:
        """Return how many cannot-links so many classes, split off one by one, would part."""
        share = (2 * self.k - n_clusters) * (n_clusters - 1) / (self.k * (self.k - 1))
        return share * self._pairs[0].size

    def _n_classes(self, members: Ints) -> int:
        """Return how many classes a cluster holds, if all are of equal size."""
        return max(2, members.size * self.k // self.matrices.volume.size)

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        """Return the certain cannot-links of the contracted graph, each once."""
        apart = self.matrices.apart.tocoo()
        once = (apart.row < apart.col) & np.isinf(apart.data)
        return apart.row[once], apart.col[once]

    def _n_parted(self, z: Int32s) -> int:
        heads, tails = self._pairs
        return int((z[heads] != z[tails]).sum())

    def _multi_cut(self, z: Int32s) -> float:
        """Return the multi-cut (6): the sum of the normalised cuts of every cluster."""
        cut, weight = cuts_and_weights(self.matrices, z)
        rest = weight.sum() - weight
        return float(_ratio(cut, weight).sum() + _ratio(cut, rest).sum())

    # --- how a cluster is split

    def _sides(self, members: Ints) -> Int32s | None:
        """Return the two sides of a cluster, or None if it stays whole.

        A cluster may be disconnected by the splits before; then the sides that cost least among
        its components alone, and the split of the heaviest with the others on its heavier side.
        """
        if members.size <= 2:
            return np.arange(2, dtype=np.int32) if members.size == 2 else None
        part = csr_array(self.matrices.W[np.ix_(members, members)])
        n_components, component = connected_components(part, directed=False)
        candidates = [self._descended(members)]
        if n_components > 1:
            candidates += self._by_component(members, component)
        usable = [s for s in candidates if s is not None and np.ptp(s)]
        return min(usable, key=lambda s: self._cost(members, s), default=None)

    def _by_component(self, members: Ints, component: Ints) -> list[Int32s | None]:
        volume = self.matrices.volume[members]
        weight = np.bincount(component, weights=volume)
        heaviest = np.argsort(-weight, kind="stable")[:MOST_COMPONENTS]
        candidates = [(component == c).astype(np.int32) for c in heaviest]
        inside = np.flatnonzero(component == heaviest[0])
        inner = self._descended(members[inside]) if inside.size > 1 else None
        if inner is not None:
            is_heavier = 2 * volume[inside][inner == 1].sum() > volume[inside].sum()
            sides = np.full(members.size, is_heavier, dtype=np.int32)
            sides[inside] = inner
            candidates.append(sides)
        return list(candidates)

    def _cost(self, members: Ints, sides: Int32s) -> float:
        """Return what the two sides add to the multi-cut, in the whole graph."""
        z = np.full(self.matrices.volume.size, 2, dtype=np.int32)
        z[members] = sides
        cut, weight = cuts_and_weights(self.matrices, z)
        rest = weight.sum() - weight
        return float((_ratio(cut, weight) + _ratio(cut, rest))[:2].sum())

    def _descended(self, members: Ints) -> Int32s | None:
        """Split by descent from the spectral vector and from a random one, penalty by penalty."""
        inside = self.matrices.restrict(members)
        if self.settings.by_degree:
            outside = degrees(csr_array(self.matrices.W[members])) - degrees(inside.W)
            inside = inside._replace(volume=np.maximum(inside.volume - outside, 0.0))
        family = family_of(inside, self.settings.balance)
        spectral = family.vector(spectral_start(inside.W, inside.volume, self.rng))
        starts = [spectral, self.rng.normal(size=members.size)]
        m = self._n_classes(members)
        allowed = family.certain[0].size * (m - 2) // m
        trials = self._penalized(family, starts, allowed)
        best = min(trials, key=lambda trial: trial.cut)
        if not np.isfinite(best.cut):
            return None
        self.record.gap = max(self.record.gap, best.found.gap)
        self.record.converged = self.record.converged and best.found.converged
        return family.partition(best.found.split.above)

    def _penalized(self, family: Family, starts: list[Floats], allowed: int) -> list[Trial]:
        """Raise the penalty until few enough pairs are violated; return what may be taken.

        That are the partitions at the last penalty if it suffices, and all of them if none does.
        """
        soft = self.soft * float(family.volume.sum()) / 4
        trials: list[Trial] = []
        hard, step, before = 0.0, STEP, np.inf
        for _ in range(N_PENALTIES):
            now = [self._trial(family, f, soft=soft, hard=hard) for f in starts]
            best = min(now, key=lambda trial: trial.penalized)
            lowest = min(trial.cut for trial in now)
            self.record.path += (Point(hard, best.cut, best.n_violated),)
            self.record.gamma = max(self.record.gamma, hard)
            if best.n_violated <= allowed:
                return now
            starts = [trial.found.f for trial in now]
            trials += now
            step = 2 * step if abs(lowest - before) < SAME_CUT else step
            hard, before = hard + step, lowest
        return trials

    def _trial(self, family: Family, f: Floats, *, soft: float, hard: float) -> Trial:
        found = ratio_dca(family.at(soft=soft, hard=hard), f, self.settings, record=self.record)
        above = found.split.above
        cut = family.at(soft=soft).value(above.astype(np.float64))
        return Trial(cut, found.split.value, family.n_violated(above), found)


def run_of(run: PaperRun) -> Outcome:
    """Return the partition of one run, and the sum of cut over vertex weight."""
    z = run.partition()
    cut, weight = cuts_and_weights(run.matrices, z)
    return Outcome(z, float(_ratio(cut, weight).sum()), run.record)


def cuts_and_weights(matrices: Matrices, z: Int32s) -> tuple[Floats, Floats]:
    """Return for each cluster the weight of its edges to others, and of its vertices."""
    W, k = matrices.W, int(z.max()) + 1
    heads = np.repeat(z, np.diff(W.indptr))
    crossing: Bools = heads != z[W.indices]
    cut: Floats = np.bincount(heads[crossing], W.data[crossing], k).astype(np.float64)
    weight: Floats = np.bincount(z, matrices.volume, k).astype(np.float64)
    return cut, weight


def _ratio(cut: Floats, weight: Floats) -> Floats:
    """Return ``cut / weight``; a cluster without weight is no cluster."""
    return np.divide(cut, weight, out=np.full(cut.size, 1.0), where=weight > 0)


def _labels(clusters: list[Ints], n: int) -> Int32s:
    z = np.zeros(n, dtype=np.int32)
    for label, members in enumerate(clusters):
        z[members] = label
    return z
