"""The 1-spectral cut in more than two clusters: repeated splits, then moves between partitions.

Rangapuram & Hein (2012), section 5: a split need not part every cannot-link, since its samples may
be parted later. How many may remain is estimated for classes of equal size.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.linalg.laplacian import degrees
from linkwise.partition import recursive_bisection
from linkwise.search.bisection import family_of, follow, matrices_of, spectral_start
from linkwise.search.cut import HUGE, CutObjective, refine_up
from linkwise.search.objective import Context, Found
from linkwise.search.one_spectral import Record, Split, ratio_dca
from linkwise.search.paper_recursion import PaperRun, run_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Int32s, Ints
    from linkwise.search.bisection import Family, Matrices, Track
    from linkwise.search.one_spectral import Settings
    from linkwise.search.problem import Groups

AT_ONCE = 2  # runs between two reports, whatever the number of threads
OWN = 1e-3  # by how much the repair prefers a vertex's own cluster


@dataclass(frozen=True, eq=False, kw_only=True)
class Recursion(CutObjective):
    """The normalised cut, with repeated 1-spectral splits among its starts.

    Without `settings.refine` the paper's recursion is the answer, the best of several runs: it may
    violate cannot-links.
    """

    settings: Settings
    record: Record

    @classmethod
    def on(  # type: ignore[override]  # needs settings and a record besides
        cls,
        W: csr_array,
        groups: Groups,
        effort: str = "default",
        *,
        k: int,
        mass: Floats | None,
        settings: Settings,
        record: Record,
    ) -> Recursion:
        """Return the objective for the groups of samples of a graph."""
        cuts = CutObjective.on(W, groups, effort, k=k, mass=mass)
        return cls(**vars(cuts), settings=settings, record=record)

    def search(self, context: Context, first: Sequence[Int32s] = ()) -> Found:
        """Return the best partition met, from splits that were repaired and from other starts."""
        starts = list(first)
        if not self.settings.refine:
            return self._best_run(context)
        try:
            z = self._split(context.rng, starts)
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            z = min((*starts, self.color.feasible), key=self.value)
            return Found(z, self.value(z), 0, interrupted=True)
        if np.unique(z).size == self.k:
            starts.append(z)
            context.log(f"splits: {self.value(z):.6g} after repair")
        return super().search(context, starts)

    def _best_run(self, context: Context) -> Found:
        """Return the lowest cut of `n_starts` runs of the paper's recursion."""
        matrices, best = matrices_of(self.problem), None
        seeds = context.rng.randint(2**31, size=self.settings.n_starts).tolist()
        try:
            for start in range(0, len(seeds), AT_ONCE):
                runs = [self._run(matrices, seed) for seed in seeds[start : start + AT_ONCE]]
                for found in context.run([partial(run_of, run) for run in runs]):
                    best = found if best is None else min(best, found, key=attrgetter("value"))
                    self.record.n_iter += found.record.n_iter
                    self.record.n_outer += found.record.n_outer
                context.log(f"run {start + len(runs)}: best {best.value:.6g}" if best else "")
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            z = self.color.feasible if best is None else best.z
            return Found(z, self.value(z), 0, interrupted=True)
        assert best is not None  # there is one start at least
        for name in ("gap", "converged", "gamma", "path"):
            setattr(self.record, name, getattr(best.record, name))
        return Found(best.z, best.value, len(seeds))

    def _run(self, matrices: Matrices, seed: int) -> PaperRun:
        record, rng = Record(self.record.report), np.random.RandomState(seed)
        return PaperRun(matrices, self.k, self.problem.gamma, self.settings, record, rng)

    def _split(self, rng: np.random.RandomState, first: Sequence[Int32s]) -> Int32s:
        """Split and repair; a large graph on a coarse level, from which moves bring it back."""
        coarse = self.coarse_level(rng, first)
        if coarse is None:
            return repair(self, recursive_partition(self, rng), rng)
        cuts, levels = coarse
        z = repair(cuts, recursive_partition(cuts, rng, rough=True), rng)
        effort = self.effort._replace(climb_up_to=min(self.effort.climb_up_to, HUGE))
        return refine_up(levels, z, rng, k=self.k, effort=effort)


def repair(cuts: CutObjective, z: Int32s, rng: np.random.RandomState) -> Int32s:
    """Return a partition that parts every certain pair, near to `z`.

    The cost of a vertex is the share of its weight to other clusters.
    """
    problem = cuts.problem
    n = problem.n_vertices
    W = csr_array((problem.weight, problem.indices, problem.indptr), shape=(n, n))
    member = np.zeros((n, cuts.k))
    member[np.arange(n), z] = 1.0
    cost = (problem.volume[:, None] - W @ member) / problem.volume[:, None] - OWN * member
    return cuts.color(cost, rng)


def recursive_partition(
    cuts: Recursion, rng: np.random.RandomState, *, rough: bool = False
) -> Int32s:
    """Split one cluster in two, again and again: a start, which may violate cannot-links.

    With `rough`, only the best start of each split is solved with the settings themselves.
    """
    problem = cuts.problem
    matrices = matrices_of(problem)
    splitting = Splitting(cuts, matrices, degrees(matrices.W), rng, rough=rough)
    # Weights are volumes: even an isolated vertex has a little.
    found = recursive_bisection(matrices.W, cuts.k, splitting.split, weights=problem.volume)
    z = found.labels.astype(np.int32)
    # Where nothing could be split any more, single vertices leave the largest clusters.
    for c in range(int(z.max()) + 1, cuts.k):
        z[np.flatnonzero(z == np.bincount(z).argmax())[-1]] = c
    return z


@dataclass(frozen=True, eq=False)
class Splitting:
    """Splits of parts of a graph in two."""

    cuts: Recursion
    matrices: Matrices
    degree: Floats
    rng: np.random.RandomState
    _: KW_ONLY
    rough: bool = False  # whether all starts but the best are solved roughly

    def split(self, part: csr_array, members: Ints) -> Int32s | None:
        """Return the two sides of a part that add least to the total cut, or None.

        A part may be disconnected by the cuts before. To separate its components is free; so the
        largest one is split as well, and the others stay on its heavier side.
        """
        n_components, component = connected_components(part, directed=False)
        candidates = [self._sides(part, members)]
        if n_components > 1:
            weight = np.bincount(component, weights=self.matrices.volume[members])
            largest = np.flatnonzero(component == weight.argmax())
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
        if self.cuts.settings.by_degree:
            outside = self.degree[members] - degrees(part)
            inside = inside._replace(volume=np.maximum(inside.volume - outside, 0.0))
        family = family_of(inside, self.cuts.settings.balance)
        allowed = self._allowed(members, family.certain[0].size)
        # The penalty of uncertain pairs is over the volume of a cluster.
        soft = self.cuts.problem.gamma * float(inside.volume.sum()) / 4
        settings = self.cuts.settings.rough() if self.rough else self.cuts.settings
        how: dict[str, Any] = {
            "record": self.cuts.record,
            "soft": soft,
            "allowed": allowed,
            "or_nearest": True,
        }
        spectral = family.vector(spectral_start(part, inside.volume, self.rng))
        starts = spectral, self.rng.normal(size=members.size)
        tracks = [follow(family, f, settings, **how) for f in starts]
        best = min(tracks, key=lambda track: track.split.value)
        if not np.isfinite(best.split.value):
            return None
        if self.rough:
            best = self._continued(family, best, soft)
        self._certify(best)
        return family.partition(best.split.above)

    def _certify(self, track: Track) -> None:
        """Keep the worst certificate of several splits, their highest penalty and all paths."""
        record = self.cuts.record
        record.gap = max(record.gap, track.last.gap)
        record.converged = record.converged and track.last.converged
        record.gamma = max(record.gamma, track.gamma)
        record.path += track.path

    def _continued(self, family: Family, track: Track, soft: float) -> Track:
        """Descend further at the last penalty; keep what is lower and violates no more pairs."""
        cut = family.at(soft=soft, hard=track.gamma)
        found = ratio_dca(cut, track.f, self.cuts.settings, record=self.cuts.record)
        above = found.split.above
        split = Split(family.at(soft=soft).value(above.astype(np.float64)), above)
        if family.n_violated(above) > family.n_violated(track.split.above):
            split = track.split
        best = min(track.split, split, key=lambda candidate: candidate.value)
        return track._replace(split=best, f=found.f, last=found)

    def _allowed(self, members: Ints, n_pairs: int) -> int:
        """Return how many cannot-links may stay inside the sides: one class against the others."""
        n_samples = self.cuts.problem.n_samples
        n_classes = max(2, self.cuts.k * int(n_samples[members].sum()) // int(n_samples.sum()))
        return n_pairs * (n_classes - 2) // n_classes
