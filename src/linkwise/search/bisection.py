"""The 1-spectral cut in two clusters: every cannot-link satisfied by continuation in its penalty.

Rangapuram & Hein (2012). The penalty of uncertain pairs is given; the penalty of certain ones rises
until they are satisfied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, triu
from scipy.sparse.csgraph import reverse_cuthill_mckee

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise._jit import late_module
from linkwise.linalg import eigen
from linkwise.linalg.laplacian import degrees
from linkwise.search.cut import HUGE, CutObjective, refine_up
from linkwise.search.objective import Context, Found
from linkwise.search.one_spectral import (
    PenalizedCut,
    Point,
    Record,
    SignedGroups,
    Split,
    linear_minimizer,
    ratio_dca,
)
from linkwise.search.problem import graph_only

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkwise._types import AnyArray, Bools, Floats, Int32s, Int64s, Ints
    from linkwise.linalg.fista import Edges
    from linkwise.search.one_spectral import Critical, Settings
    from linkwise.search.problem import Groups, Levels, Problem

fista = late_module("linkwise.linalg.fista")  # imports numba

FIRST_PENALTY = 1 / 64  # of the exact penalty (Theorem 2.1)
DOUBLINGS = 10
EXACT = 1.01  # times the penalty of Theorem 2.1: descent stays consistent then (Theorem 3.1)
AGREE = 3  # starts that end in the best value, none of them under a penalty: no more are made
AT_ONCE = 2  # starts between two looks at that, whatever the number of threads
RECOMBINED = 5  # of the best partitions of the starts
NOISE = (0.03, 0.1, 0.3)  # of the restarts, in units of the indicator
FAILURES = 5  # restarts without success before giving up
RESTARTS = 50  # in all
STARTS_SHARE, COARSE_SHARE = 0.7, 0.6  # of the work, about, for those who watch
CERTIFY = 5  # times the inner iterations, for the certificate of the answer
START_TOL = 1e-4  # a start may be rough
REORDERED_FROM = 200_000  # edges above which the vertices do not fit into the cache
FLOAT32_FROM = 2_000_000  # edges above which single precision halves the traffic
LEAST_VOLUME = 1e-6  # of the mean, for vertices without weight
CERTAIN = np.inf  # stands for a belief above all others
SAME = 1e-9  # relative: values closer than this are the same
BY_VALUE = attrgetter("value")
VALUE_AND_PENALTY = attrgetter("split.value", "gamma")


class Family(NamedTuple):
    """The penalised cuts of one graph for all penalties.

    A certain pair has the penalty `hard`, an uncertain one `soft` times its belief.
    """

    edges: Edges
    together: Floats  # belief of the must-link along each edge
    volume: Floats
    heads: Int64s
    tails: Int64s
    belief: Floats  # of each cannot-link; 0 for a certain one
    certain: tuple[Int64s, Int64s]  # heads and tails of certain pairs
    random_walk: csr_array
    order: Ints  # which vertex of the problem stands where
    balance: str = "lovasz"

    def vector(self, z: AnyArray) -> Floats:
        """Return a partition, or any values of the vertices, as a vector in the family's order."""
        f: Floats = z[self.order].astype(np.float64)
        return f

    def partition(self, above: Bools) -> Int32s:
        """Return the sides of the vertices of the problem."""
        z = np.empty(above.size, np.int32)
        z[self.order] = above
        return z

    def at(self, *, soft: float = 0.0, hard: float = 0.0) -> PenalizedCut:
        """Return the penalised cut at given penalties."""
        edges = self.edges
        if soft and self.together.any():
            weight = edges.weight + (soft * self.together).astype(edges.weight.dtype)
            edges = edges._replace(weight=weight)
        penalty = np.where(self.belief == 0, hard, soft * self.belief)
        some = penalty > 0
        pairs = self.heads[some], self.tails[some], penalty[some]
        return PenalizedCut(edges, self.volume, *pairs, self.random_walk, self.balance)

    def consistent(self, f: Floats, soft: float) -> Split:
        """Return the cheapest threshold that parts every certain pair; they must be disjoint."""
        heads, tails = self.certain
        first_up = f[heads] >= f[tails]
        forced = f.copy()
        forced[np.where(first_up, heads, tails)] = f.max() + 1.0
        forced[np.where(first_up, tails, heads)] = f.min() - 1.0
        return self.at(soft=soft).threshold(forced)

    def n_violated(self, above: Bools) -> int:
        """Return how many certain pairs a partition violates."""
        heads, tails = self.certain
        return int((above[heads] == above[tails]).sum())

    def exact_penalty(self, value: float) -> float:
        """Return a penalty above which a minimiser satisfies all certain pairs (Theorem 2.1)."""
        return EXACT * value * float(self.volume.sum()) / 4


class Matrices(NamedTuple):
    """A family before its edges are laid out: easy to restrict to a part of the graph."""

    W: csr_array
    together: csr_array  # belief of uncertain must-links
    apart: csr_array  # belief of uncertain cannot-links; infinite for a certain one
    volume: Floats

    def restrict(self, members: Ints) -> Matrices:
        """Return the same for a part of the vertices."""
        block = np.ix_(members, members)
        W, together, apart = (csr_array(A[block]) for A in self[:3])
        return Matrices(W, together, apart, self.volume[members])


def matrices_of(problem: Problem) -> Matrices:
    """Return the matrices of a contracted problem; a certain pair is no uncertain one as well."""
    shape = (problem.n_vertices, problem.n_vertices)
    W = csr_array((problem.weight, problem.indices, problem.indptr), shape=shape)
    soft = csr_array((problem.soft_weight, problem.soft_indices, problem.soft_indptr), shape=shape)
    certain = np.full(problem.apart_indices.size, CERTAIN)
    apart = csr_array((certain, problem.apart_indices, problem.apart_indptr), shape=shape)
    # A vertex without an edge, or an anchor, weighs nothing: it is no cluster alone.
    linked = (degrees(W) > 0) | (problem.loop > 0)
    volume = np.where(linked & (problem.n_samples > 0), problem.volume, 0.0)
    together, uncertain = (abs(soft) + soft) / 2, (abs(soft) - soft) / 2
    return Matrices(W, csr_array(together), csr_array(uncertain + apart), volume)


def family_of(matrices: Matrices, balance: str) -> Family:
    """Lay the edges out; of large graphs so that neighbours are near to each other."""
    order = np.arange(matrices.volume.size)
    if matrices.W.nnz > 2 * REORDERED_FROM:
        order = reverse_cuthill_mckee(matrices.W, symmetric_mode=True).astype(np.intp)
        matrices = matrices.restrict(order)
    W = matrices.W
    # Two matrices with one pattern: real and imaginary part.
    both = csr_array(W + 1j * matrices.together)
    both.sort_indices()
    dtype = np.float32 if both.nnz > 2 * FLOAT32_FROM else np.float64
    edges = fista.edges_of(both.real, dtype)
    together = fista.edges_of(both.imag, dtype).weight
    degree = degrees(W)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    apart = triu(matrices.apart, 1, format="coo")
    heads, tails = apart.row.astype(np.int64), apart.col.astype(np.int64)
    is_certain = np.isinf(apart.data)
    return Family(
        edges,
        together,
        matrices.volume,
        heads,
        tails,
        np.where(is_certain, 0.0, apart.data),
        (heads[is_certain], tails[is_certain]),
        csr_array(diags_array(inverse) @ W),
        order,
        balance,
    )


# --- one start


class Track(NamedTuple):
    """The way of one start through the penalties."""

    split: Split  # the best consistent partition met
    f: Floats  # the vector at the last penalty
    gamma: float  # the last penalty
    path: tuple[Point, ...]
    last: Critical  # where it ended, with the certificate


def follow(
    family: Family,
    f: Floats,
    settings: Settings,
    *,
    record: Record,
    soft: float = 0.0,
    allowed: int = 0,
    or_nearest: bool = False,
) -> Track:
    """Raise the penalty of certain pairs until at most `allowed` are violated.

    If more always are, there is no answer, or with `or_nearest` the one that violates fewest.
    Begins without a penalty, and continues from the vector at the last one. Meanwhile every vector
    gives a consistent partition by a threshold that parts the pairs; the best one is kept.
    """
    best = Split(np.inf, np.zeros(f.size, bool))
    nearest, fewest = best, (np.inf, np.inf)  # violated, and the value
    points: list[Point] = []
    hard = 0.0
    while True:
        found = ratio_dca(family.at(soft=soft, hard=hard), f, settings, record=record)
        f, above = found.f, found.split.above
        n_violated, indicator = family.n_violated(above), above.astype(np.float64)
        value = family.at().value(indicator)
        points.append(Point(hard, value, n_violated))
        splits = [Split(family.at(soft=soft).value(indicator), above)]
        if n_violated:
            splits.append(family.consistent(f, soft))
        for split in splits:
            n_left = family.n_violated(split.above)
            if n_left <= allowed and split.value < best.value:
                best = split
            if (n_left, split.value) < fewest:
                nearest, fewest = split, (n_left, split.value)
        if not allowed:
            record.offer(best)
        reference = best.value if np.isfinite(best.value) else value
        n_doublings = DOUBLINGS if not allowed else 2 * DOUBLINGS
        if n_violated <= allowed or len(points) > n_doublings or not 0 < reference < np.inf:
            break
        if hard:
            hard *= 2
        elif allowed:  # first, all violated pairs together cost as much as the cut
            cost = value if np.isfinite(value) else reference  # one side may have no volume
            hard = family.exact_penalty(cost) / n_violated
        else:
            hard = FIRST_PENALTY * family.exact_penalty(reference)
    if or_nearest and not np.isfinite(best.value):
        best = nearest
    return Track(best, f, hard, tuple(points), found)


def spectral_start(W: csr_array, volume: Floats, rng: np.random.RandomState) -> Floats:
    """Return the second eigenvector of a graph whose vertices weigh `volume`."""
    n = W.shape[0]
    if n <= 2:
        return np.arange(n, dtype=np.float64)
    weight = np.maximum(volume, LEAST_VOLUME * volume.mean()) if volume.any() else np.ones(n)
    loops = np.maximum(weight - degrees(W), 0.0)
    scaling = diags_array(1.0 / np.sqrt(weight))
    S = csr_array(scaling @ (W + diags_array(loops)) @ scaling)
    vectors = eigen.largest(S, 2, rng, tol=START_TOL, warns=False).vectors
    v: Floats = vectors[:, 1] / np.sqrt(weight)
    return v


# --- the objective


@dataclass(frozen=True, eq=False)
class Bisection:
    """The 1-spectral cut of a graph in two clusters."""

    family: Family
    cuts: CutObjective  # the same partitions, for moves of single vertices
    unit: float
    settings: Settings
    record: Record
    gamma: float = 0.0  # penalty of uncertain pairs
    is_coarse: bool = False  # a level of a larger graph, on which the answer is refined

    @classmethod
    def on(
        cls,
        W: csr_array,
        groups: Groups,
        effort: str = "default",
        *,
        mass: Floats | None,
        settings: Settings,
        record: Record,
    ) -> Bisection:
        """Return the objective for the groups of samples of a graph."""
        cuts = CutObjective.on(W, groups, effort, k=2, mass=mass)
        family = family_of(matrices_of(cuts.problem), settings.balance)
        return cls(family, cuts, float(degrees(W).mean()) / 2, settings, record)

    def at(self, gamma: float) -> Bisection:
        """Return the same objective with another penalty of uncertain pairs."""
        strength = gamma / self.unit if self.unit > 0 else 0.0
        return replace(self, gamma=gamma, cuts=self.cuts.at(strength * self.cuts.unit))

    def value(self, z: Int32s) -> float:
        """Return the penalised cut of a partition."""
        return self.family.at(soft=self.gamma).value(self.family.vector(z))

    def local_search(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Descend from a consistent partition to another one (Theorem 3.1)."""
        best = self._split(z)
        if np.isfinite(best.value):
            best = self._descended(best, best.above.astype(np.float64))
        return self._refined(self.family.partition(best.above), rng)

    def recombine(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s:
        """Recombine two partitions, from the better one."""
        best = min((z, other), key=self.value)
        if not self.settings.refine:
            return best
        return min((self.cuts.recombine(z, other, rng), best), key=self.value)

    def search(self, context: Context, first: Sequence[Int32s] = ()) -> Found:
        """Return the best consistent partition met, over all starts, penalties and restarts."""
        rng, record = context.rng, self.record
        record.best = min(map(self._split, (self.cuts.color.feasible, *first)), key=BY_VALUE)
        try:
            coarse = self.cuts.coarse_level(rng, first) if self.settings.refine else None
            if coarse is not None:
                return self._search_coarse(*coarse, context=context, first=first)
            tracks: list[Track] = []
            for batch in self._starts(rng, first):
                seeds = rng.randint(2**31, size=len(batch)).tolist()
                for track in context.run(list(map(partial, repeat(self._track), batch, seeds))):
                    tracks.append(track)
                    done = STARTS_SHARE * min(len(tracks) / self.settings.n_starts, 1.0)
                    context.log(f"start {len(tracks)}: best {record.best.value:.6g}", done)
                if agreed := self._agree(tracks):
                    break
            z = self._best_of(tracks, rng)
            z = self._restarted(z, 1 if agreed else FAILURES, context)
            if not self.is_coarse:
                z = self._certified(z)
            return Found(z, self.value(z), len(tracks))
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            record.is_stopped = True  # also for what still runs in other threads
            z = self.family.partition(record.best.above)
            return Found(z, self.value(z), 0, interrupted=True)

    def _split(self, z: Int32s) -> Split:
        return Split(self.value(z), self.family.vector(z) > 0)

    def _refined(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Move single vertices and chains, if the settings ask for it and it lowers the value."""
        if not self.settings.refine:
            return z
        return min((self.cuts.local_search(z, rng), z), key=self.value)

    def _descended(self, best: Split, f: Floats, *, tie_breaker: Floats | None = None) -> Split:
        """Descend from `f` at the exact penalty; return the better consistent partition."""
        cut = self.family.at(soft=self.gamma, hard=self.family.exact_penalty(best.value))
        found = ratio_dca(cut, f, self.settings, record=self.record, tie_breaker=tie_breaker)
        candidates = [best, self.family.consistent(found.f, self.gamma)]
        if self.family.n_violated(found.split.above) == 0:
            candidates.append(found.split)
        return min(candidates, key=BY_VALUE)

    def _agree(self, tracks: list[Track]) -> bool:
        """Whether starts agree on a best partition that no penalty was needed for.

        Penalties make several local minima, and the lowest one may be rarely found; without them
        it hardly is. On a coarse level any agreement will do.
        """
        values = np.array(list(map(VALUE_AND_PENALTY, tracks)))
        agreeing = values[:, 0] <= values[:, 0].min() * (1 + SAME)
        free = self.is_coarse or not values[agreeing, 1].any()
        return bool(agreeing.sum() >= AGREE and free)

    def _starts(
        self, rng: np.random.RandomState, first: Sequence[Int32s]
    ) -> Iterator[list[Floats]]:
        """Yield vectors to start from: given ones, the spectral one, SCLC's, random ones."""
        problem = self.cuts.problem
        n = problem.n_vertices
        graph = csr_array((problem.weight, problem.indices, problem.indptr), shape=(n, n))
        spectral = spectral_start(graph, problem.volume, rng)
        yield [*map(self.family.vector, first), self.family.vector(spectral)]
        n_random = self.settings.n_starts - 1
        if self.family.certain[0].size and n_random > 0:
            yield [self._linear_start(rng)]
            n_random -= 1
        for start in range(0, n_random, AT_ONCE):
            yield list(rng.normal(size=(min(AT_ONCE, n_random - start), n)))

    def _linear_start(self, rng: np.random.RandomState) -> Floats:
        """Return the sides that the normalised cut with linear constraints finds (SCLC)."""
        heads, tails = self.family.certain
        heads, tails = self.family.order[heads], self.family.order[tails]
        group = np.arange(self.cuts.problem.n_vertices)
        sign = np.ones(group.size)
        group[tails], sign[tails] = heads, -1.0
        _, numbered = np.unique(group, return_inverse=True)
        groups = SignedGroups(numbered, sign, np.arange(group.size))
        x = linear_minimizer(graph_only(self.cuts.problem), groups, rng, warns=False).x
        # A threshold parts every pair if no value of a pair is nearer to zero.
        nonzero, paired = np.abs(x) > 0, np.zeros(x.size, bool)
        paired[heads] = paired[tails] = True
        least = np.abs(x[paired & nonzero]).min(initial=np.abs(x).max())
        split = self.family.at().threshold(self.family.vector(np.clip(x, -least, least)))
        sides = self.family.partition(split.above) > 0 if np.isfinite(split.value) else x > 0
        sides = np.where(nonzero | ~paired, sides, sign > 0)
        if sides.all() or not sides.any():
            sides = np.arange(x.size) > 0  # nothing tells the vertices apart
        return self.family.vector(sides)

    def _track(self, f: Floats, seed: int) -> Track:
        """Follow one start, and refine its best partition."""
        rng = np.random.RandomState(seed)
        track = follow(self.family, f, self.settings, record=self.record, soft=self.gamma)
        split = track.split
        if not np.isfinite(split.value):
            return track
        if track.gamma > 0:
            f = split.above.astype(np.float64)
            split = self._descended(split, f, tie_breaker=track.f)
        better = self._split(self._refined(self.family.partition(split.above), rng))
        self.record.offer(better)
        return track._replace(split=better)

    def _best_of(self, tracks: list[Track], rng: np.random.RandomState) -> Int32s:
        """Recombine the best partitions of the starts."""
        ranked: list[Track] = []
        for track in sorted(tracks, key=attrgetter("split.value")):
            if not ranked or track.split.value > ranked[-1].split.value * (1 + SAME):
                ranked.append(track)
        best = ranked[0]
        self.record.path, self.record.gamma = best.path, best.gamma
        if not np.isfinite(best.split.value):
            return self.cuts.color.feasible
        z = self.family.partition(best.split.above)
        for other in ranked[1:RECOMBINED]:
            if np.isfinite(other.split.value):
                z = self.recombine(z, self.family.partition(other.split.above), rng)
                self.record.offer(self._split(z))
        return z

    def _restarted(self, z: Int32s, n_failures: int, context: Context) -> Int32s:
        """Descend again from the best partition plus noise, until too many fail."""
        best = self._split(z)
        n_failed = n_tried = 0
        while n_failed < n_failures and n_tried < RESTARTS and 0 < best.value < np.inf:
            noise = NOISE[n_tried % len(NOISE)] * context.rng.normal(size=z.size)
            split = self._descended(best, best.above + noise)
            n_tried += 1
            if split.value >= best.value * (1 - SAME):
                n_failed += 1
                continue
            z = self._refined(self.family.partition(split.above), context.rng)
            best = min((self._split(z), split), key=BY_VALUE)
            self.record.offer(best)
            done = STARTS_SHARE + (1 - STARTS_SHARE) * n_tried / RESTARTS
            context.log(f"restart {n_tried}: best {self.record.best.value:.6g}", done)
        return self.family.partition(best.above)

    def _certified(self, z: Int32s) -> Int32s:
        """Solve the inner problem at the answer for long: a proof, or one more descent."""
        best, record = self._split(z), self.record
        while 0 < best.value < np.inf:
            cut = self.family.at(soft=self.gamma, hard=self.family.exact_penalty(best.value))
            f = best.above.astype(np.float64)
            found = ratio_dca(cut, f, self.settings, record=record, patience=CERTIFY)
            record.gap, record.converged = found.gap, found.converged
            lower = found.split.value < best.value * (1 - SAME)
            if not lower or self.family.n_violated(found.split.above):
                break
            best = found.split
            record.offer(best)
        return self.family.partition(best.above)

    # --- coarse levels of large graphs

    def _search_coarse(
        self, cuts: CutObjective, levels: Levels, *, context: Context, first: Sequence[Int32s]
    ) -> Found:
        """Search a coarse level; descend on the graph itself from its answer alone.

        That descent is the certificate as well. A start takes as many passes over the edges of a
        large graph as of a small one.
        """
        rng, record = context.rng, self.record
        n, m = self.cuts.problem.n_vertices, cuts.problem.n_vertices
        context.log(f"coarse level of {m} vertices for {n}: best {record.best.value:.6g}")
        small = self._at_level(cuts)
        found = small.search(context.part(0.0, COARSE_SHARE), [levels.down(z) for z in first])
        self._add_work(small.record)
        record.path, record.gamma = small.record.path, small.record.gamma
        record.offer(self._split(levels.up(found.z)))
        if found.interrupted:
            raise KeyboardInterrupt
        z = self._refined_up(levels, found.z, rng)
        record.offer(self._split(z))
        z = self._refined(z, rng)
        record.offer(self._split(z))
        context.log(f"back on the graph: best {record.best.value:.6g}", COARSE_SHARE)
        z = self._certified(self._restarted_coarse(z, context.part(COARSE_SHARE, 1.0)))
        return Found(z, self.value(z), found.n_generations)

    def _at_level(self, cuts: CutObjective) -> Bisection:
        """Return the objective on a coarse level."""
        settings = self.settings.rough()
        family = family_of(matrices_of(cuts.problem), settings.balance)
        record = Record(self.record.report)
        return replace(
            self, family=family, cuts=cuts, settings=settings, record=record, is_coarse=True
        )

    def _add_work(self, other: Record) -> None:
        self.record.n_iter += other.n_iter
        self.record.n_outer += other.n_outer

    def _restarted_coarse(self, z: Int32s, context: Context) -> Int32s:
        """Restart on another coarse level, which respects the best partition.

        On a large graph noise takes tens of thousands of passes over the edges to settle.
        """
        coarse = self.cuts.coarse_level(context.rng, [z])
        if coarse is None:
            return z
        cuts, levels = coarse
        small = self._at_level(cuts)
        disturbed = small._restarted(levels.down(z), len(NOISE), context)
        self._add_work(small.record)
        better = self._refined_up(levels, disturbed, context.rng)
        if self.value(better) >= self.value(z) * (1 - SAME):
            return z
        better = self._refined(better, context.rng)
        self.record.offer(self._split(better))
        context.log(f"restarted: best {self.record.best.value:.6g}", 1.0)
        return better

    def _refined_up(self, levels: Levels, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Bring a partition of a coarse level back to the graph, refined at every level."""
        effort = self.cuts.effort
        effort = effort._replace(climb_up_to=min(effort.climb_up_to, HUGE))
        refined = refine_up(levels, z, rng, k=2, effort=effort)
        return min(refined, levels.up(z), key=self.value)
