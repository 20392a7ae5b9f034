"""Two clusters by 1-spectral descent: every cannot-link kept by continuation in its price.

A landscape in the sense of :mod:`linkwise.search.soft`: the price of uncertain pairs is given, the
price of certain ones rises until they hold.
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, triu
from scipy.sparse.csgraph import reverse_cuthill_mckee

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise._quiet import quiet
from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg import eigen, fista
from linkwise.search.coarse import coarse_copy
from linkwise.search.evolve import Found
from linkwise.search.linear import SignedGroups, constrained_cut
from linkwise.search.one_spectral import EQUAL, Pairs, PenalizedCut, Split, ratio_dca
from linkwise.search.problem import graph_only

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkwise._types import AnyArray, Bools, Floats, Int32s, Int64s, Ints
    from linkwise.linalg.fista import Edges
    from linkwise.search.coarse import Coarse
    from linkwise.search.evolve import CutSearch, Report, Run
    from linkwise.search.one_spectral import Critical
    from linkwise.search.problem import Problem


__all__ = [
    "Bisection",
    "Family",
    "Matrices",
    "Point",
    "Record",
    "Settings",
    "Track",
    "follow",
    "matrices_of",
    "spectral_start",
]

FIRST_PRICE = 1 / 64  # of the price that is certain to be enough (Theorem 2.1)
DOUBLINGS = 10
ENOUGH = 1.01  # times the price of Theorem 2.1: then descent cannot leave consistency (Theorem 3.1)
AGREE = 3  # starts that end in the best value, none of them under a price: no more are made
AT_ONCE = 2  # starts between two looks at that, whatever the number of threads
REFINED = 5  # of the best partitions of the starts
NOISE = (0.03, 0.1, 0.3)  # of the restarts, in units of the indicator
FAILURES = 5  # restarts without success before giving up
RESTARTS = 50  # in all
CERTIFY = 5  # times the inner iterations, for the certificate of the answer
START_TOL = 1e-4  # a start may be rough
ROUGH_ITER = 200  # inner iterations without descent, where the answer is not the last word
ROUGH_LEAST = 1e-4  # share of the value below which a step is the last one, there
REORDERED_FROM = 200_000  # edges above which the vertices do not fit into the cache
FLOAT32_FROM = 2_000_000  # edges above which single precision halves the traffic
LEAST_VOLUME = 1e-6  # of the mean, for what weighs nothing
CERTAIN = np.inf  # stands for a belief above all others
SAME = 1e-9  # relative: values closer than this are the same
EVERY = 5.0  # seconds between two lines about the steps of a descent


class Settings(NamedTuple):
    """How the descent is done."""

    n_starts: int = 10
    refine: bool = True
    balance: str = "lovasz"
    tol: float = 1e-6
    max_iter: int = 800
    by_degree: bool = True  # vertex weights are degrees, so a part of the graph has its own
    least: float = EQUAL  # share of the value: a descent by no more is the last one

    def rough(self) -> Settings:
        """Return what is good enough on a coarse copy: moves on the graph itself undo the rest."""
        return self._replace(max_iter=min(self.max_iter, ROUGH_ITER), least=ROUGH_LEAST)


class Point(NamedTuple):
    """Where one start was at one price."""

    gamma: float
    value: float  # of the cut without prices
    n_violated: int  # pairs of the contracted graph


class Record:
    """What the search met on its way, for the certificate of the answer; grows, never shrinks."""

    def __init__(self, report: Report | None = None) -> None:
        self._lock = Lock()
        self.report = report
        self._told = monotonic()
        self.is_stopped = False
        self.n_iter = 0
        self.n_outer = 0
        self.gap = 0.0
        self.converged = True
        self.gamma = 0.0
        self.path: tuple[Point, ...] = ()
        self.best = Split(np.inf, np.zeros(0, bool))

    def count(self, found: Critical) -> None:
        """Add the work of one descent; starts may run in several threads."""
        with self._lock:
            self.n_iter += found.n_iter
            self.n_outer += found.n_outer

    def step(self, n_outer: int, n_iter: int, value: float) -> bool:
        """Tell of a step of a descent, now and then; return whether to stop there."""
        if self.report is not None and monotonic() - self._told >= EVERY:
            self._told = monotonic()
            self.report(f"step {n_outer}, {n_iter} inner iterations: {value:.6g}")
        return self.is_stopped

    def take_over(self, other: Record) -> None:
        """Add the work of a search on a coarse copy of the graph, and keep its path."""
        self.add_work(other)
        self.path, self.gamma = other.path, other.gamma

    def add_work(self, other: Record) -> None:
        """Add the work of descents on a coarse copy of the graph."""
        self.n_iter += other.n_iter
        self.n_outer += other.n_outer

    def offer(self, split: Split) -> None:
        """Keep the best consistent partition met: the answer if the search is interrupted."""
        with self._lock:
            if split.value < self.best.value:
                self.best = split

    def certify(self, found: Critical) -> None:
        """Keep the certificate of the last inner problem."""
        self.gap, self.converged = found.gap, found.converged

    def certify_worst(self, track: Track) -> None:
        """Keep the worst certificate of several problems, their highest price and all paths."""
        self.gap = max(self.gap, track.last.gap)
        self.converged = self.converged and track.last.converged
        self.gamma = max(self.gamma, track.gamma)
        self.path += track.path


class Family(NamedTuple):
    """The penalised cuts of one graph for all prices.

    Certain pairs cost `hard` each, uncertain ones `soft` times their belief.
    """

    edges: Edges
    together: Floats  # belief of the must-link along each edge
    volume: Floats
    heads: Int64s
    tails: Int64s
    belief: Floats  # of each cannot-link; 0 for a certain one
    walk: csr_array
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

    @property
    def has_certain_pairs(self) -> bool:
        """Whether there are pairs that must hold."""
        return bool((self.belief == 0).any())

    def at(self, *, soft: float = 0.0, hard: float = 0.0) -> PenalizedCut:
        """Return the penalised cut at given prices."""
        edges = self.edges
        if soft and self.together.any():
            weight = edges.weight + (soft * self.together).astype(edges.weight.dtype)
            edges = edges._replace(weight=weight)
        price = np.where(self.belief == 0, hard, soft * self.belief)
        costly = price > 0
        pairs = Pairs(self.heads[costly], self.tails[costly], price[costly])
        return PenalizedCut(edges, self.volume, pairs, self.walk, self.balance)

    def consistent(self, f: Floats, soft: float) -> Split:
        """Return the cheapest threshold that parts every certain pair; they must be disjoint."""
        heads, tails = self._certain()
        first_up = f[heads] >= f[tails]
        forced = f.copy()
        forced[np.where(first_up, heads, tails)] = f.max() + 1.0
        forced[np.where(first_up, tails, heads)] = f.min() - 1.0
        return self.at(soft=soft).threshold(forced)

    def n_violated(self, above: Bools) -> int:
        """Return how many certain pairs a partition violates."""
        heads, tails = self._certain()
        return int((above[heads] == above[tails]).sum())

    def _certain(self) -> tuple[Int64s, Int64s]:
        certain = self.belief == 0
        return self.heads[certain], self.tails[certain]

    def enough(self, value: float) -> float:
        """Return a price of certain pairs above which a minimiser keeps them all (Theorem 2.1)."""
        return ENOUGH * value * float(self.volume.sum()) / 4


class Matrices(NamedTuple):
    """What a family is made of, before its edges are laid out: easy to restrict."""

    W: csr_array
    together: csr_array  # belief of uncertain must-links
    apart: csr_array  # belief of uncertain cannot-links; infinite for a certain one
    volume: Floats

    def restrict(self, members: Ints) -> Matrices:
        """Return the same for a part of the vertices."""
        block = np.ix_(members, members)
        W, together, apart = (csr_array(A[block]) for A in self[:3])
        return Matrices(W, together, apart, self.volume[members])

    def family(self, balance: str) -> Family:
        """Lay the edges out; of large graphs so that neighbours are near to each other."""
        order = np.arange(self.volume.size)
        if self.W.nnz > 2 * REORDERED_FROM:
            order = reverse_cuthill_mckee(self.W, symmetric_mode=True).astype(np.intp)
            return self.restrict(order)._laid_out(balance, order)
        return self._laid_out(balance, order)

    def _laid_out(self, balance: str, order: Ints) -> Family:
        # Two matrices with one pattern: real and imaginary part.
        both = csr_array(self.W + 1j * self.together)
        both.sort_indices()
        dtype = np.float32 if both.nnz > 2 * FLOAT32_FROM else np.float64
        apart = triu(self.apart, 1, format="coo")
        return Family(
            fista.edges_of(_with_data(both, both.data.real), dtype),
            fista.edges_of(_with_data(both, both.data.imag), dtype).weight,
            self.volume,
            apart.row.astype(np.int64),
            apart.col.astype(np.int64),
            np.where(np.isinf(apart.data), 0.0, apart.data),
            _walk(self.W),
            order,
            balance,
        )


def matrices_of(problem: Problem) -> Matrices:
    """Read the matrices off a contracted problem; a certain pair is no uncertain one as well."""
    shape = (problem.n_vertices, problem.n_vertices)
    W = csr_array((problem.weight, problem.indices, problem.indptr), shape=shape)
    soft = csr_array((problem.soft_weight, problem.soft_indices, problem.soft_indptr), shape=shape)
    certain = np.full(problem.apart_indices.size, CERTAIN)
    apart = csr_array((certain, problem.apart_indices, problem.apart_indptr), shape=shape)
    # What has no edge, or is an anchor, weighs nothing: it is no cluster alone.
    linked = (np.asarray(W.sum(axis=1)).ravel() > 0) | (problem.loop > 0)
    volume = np.where(linked & (problem.n_samples > 0), problem.volume, 0.0)
    return Matrices(W, _positive(-soft), csr_array(_positive(soft) + apart), volume)


def _positive(A: csr_array) -> csr_array:
    kept = A.copy()  # dropping zeros below rearranges the arrays of the pattern
    kept.data = np.maximum(A.data, 0.0)
    kept.eliminate_zeros()
    return kept


def _with_data(A: csr_array, data: Floats) -> csr_array:
    return csr_array((np.ascontiguousarray(data), A.indices, A.indptr), shape=A.shape)


def _walk(W: csr_array) -> csr_array:
    degree = np.asarray(W.sum(axis=1)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    return csr_array(diags_array(inverse) @ W)


# --- one start


class Track(NamedTuple):
    """The way of one start through the prices."""

    split: Split  # the best consistent partition met
    f: Floats  # the vector at the last price
    gamma: float  # the last price
    path: tuple[Point, ...]
    last: Critical  # where it ended, with the certificate


def follow(
    family: Family,
    f: Floats,
    settings: Settings,
    record: Record,
    *,
    soft: float = 0.0,
    allowed: int = 0,
    allowed_is_a_wish: bool = False,
) -> Track:
    """Raise the price of certain pairs until at most `allowed` are violated.

    If more always are, there is no answer; or, where the number is a wish, the nearest one.
    Begins without a price, and continues from the vector at the last one. Meanwhile every vector
    gives a consistent partition by a threshold that parts the pairs; the best one is kept.
    """
    best = Split(np.inf, np.zeros(f.size, bool))
    least: tuple[int, Split] | None = None  # violated, if too many always are
    points: list[Point] = []
    hard = 0.0
    while True:
        found = descend(family.at(soft=soft, hard=hard), f, settings, record)
        f = found.f
        n_violated = family.n_violated(found.split.above)
        value = family.at().value(found.split.above.astype(np.float64))
        points.append(Point(hard, value, n_violated))
        for split in _candidates(family, found, soft):
            n_left = family.n_violated(split.above)
            if n_left <= allowed and split.value < best.value:
                best = split
            if least is None or (n_left, split.value) < (least[0], least[1].value):
                least = n_left, split
        if not allowed:
            record.offer(best)
        reference = best.value if np.isfinite(best.value) else value
        n_doublings = DOUBLINGS if not allowed else 2 * DOUBLINGS
        if n_violated <= allowed or len(points) > n_doublings or not 0 < reference < np.inf:
            break
        if hard:
            hard *= 2
        elif allowed:  # first, all that are violated cost as much as the cut
            hard = family.enough(value) / n_violated
        else:
            hard = FIRST_PRICE * family.enough(reference)
    if allowed_is_a_wish and not np.isfinite(best.value) and least is not None:
        best = least[1]
    return Track(best, f, hard, tuple(points), found)


def _candidates(family: Family, found: Critical, soft: float) -> Iterator[Split]:
    """Yield the partition of a descent, and one that parts all pairs if they are disjoint."""
    above = found.split.above
    yield Split(family.at(soft=soft).value(above.astype(np.float64)), above)
    if family.n_violated(above):
        yield family.consistent(found.f, soft)


def descend(
    cut: PenalizedCut,
    f: Floats,
    settings: Settings,
    record: Record,
    *,
    tie_breaker: Floats | None = None,
    patience: int = 1,
) -> Critical:
    """Descend from a vector; a constant one stays where it is."""
    found = ratio_dca(
        cut,
        f,
        tol=settings.tol,
        max_iter=patience * settings.max_iter,
        tie_breaker=tie_breaker,
        least=settings.least,
        stopped=record.step,
    )
    record.count(found)
    return found


def spectral_start(W: csr_array, volume: Floats, rng: np.random.RandomState) -> Floats:
    """Return the second eigenvector of a graph whose vertices weigh `volume`."""
    n = W.shape[0]
    if n <= 2:
        return np.arange(n, dtype=np.float64)
    weight = np.maximum(volume, LEAST_VOLUME * volume.mean()) if volume.any() else np.ones(n)
    loops = np.maximum(weight - np.asarray(W.sum(axis=1)).ravel(), 0.0)
    scaling = diags_array(1.0 / np.sqrt(weight))
    S = csr_array(scaling @ (W + diags_array(loops)) @ scaling)
    with quiet(ConvergenceWarning):
        vectors = eigen.largest(S, 2, rng, tol=START_TOL).vectors
    v: Floats = vectors[:, 1] / np.sqrt(weight)
    return v


# --- the landscape


class Bisection(NamedTuple):
    """Partitions in two as a landscape to search."""

    problem: Problem
    family: Family
    cuts: CutSearch  # the same partitions, for moves of single vertices
    unit: tuple[float, float]  # of prices: here, and there
    settings: Settings
    record: Record
    gamma: float = 0.0  # price of uncertain pairs
    is_copy: bool = False  # of a larger graph, which has the last word

    @classmethod
    def of(
        cls, cuts: CutSearch, unit: tuple[float, float], settings: Settings, record: Record
    ) -> Bisection:
        """Build the functional on the graph of a search."""
        family = matrices_of(cuts.problem).family(settings.balance)
        return cls(cuts.problem, family, cuts, unit, settings, record)

    def at(self, gamma: float) -> Bisection:
        """Return the same landscape with another price of uncertain pairs."""
        return self._replace(gamma=gamma)

    def value(self, z: Int32s) -> float:
        """Return the penalised cut of a partition."""
        return self.family.at(soft=self.gamma).value(self.family.vector(z))

    def polish(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Descend from a consistent partition to another one (Theorem 3.1)."""
        best = self._split(z)
        if np.isfinite(best.value):
            best = self._descended(best, best.above.astype(np.float64))
        return self._refined(self.family.partition(best.above), rng)

    def _split(self, z: Int32s) -> Split:
        return Split(self.value(z), self.family.vector(z) > 0)

    def cross(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s:
        """Recombine two partitions, from the better one."""
        best = min((z, other), key=self.value)
        if not self.settings.refine:
            return best
        return min((self._moves().cross(z, other, rng), best), key=self.value)

    def _moves(self) -> CutSearch:
        here, there = self.unit
        return self.cuts.at(self.gamma / here * there if here > 0 else 0.0)

    def _refined(self, z: Int32s, rng: np.random.RandomState) -> Int32s:
        """Move single vertices and chains, if that is asked for and lowers the value."""
        if not self.settings.refine:
            return z
        return min((self._moves().polish(z, rng), z), key=self.value)

    def _descended(self, best: Split, f: Floats, *, tie_breaker: Floats | None = None) -> Split:
        """Descend from `f` at a price that is enough; return the better consistent partition."""
        cut = self.family.at(soft=self.gamma, hard=self.family.enough(best.value))
        found = descend(cut, f, self.settings, self.record, tie_breaker=tie_breaker)
        candidates = [best, self.family.consistent(found.f, self.gamma)]
        if self.family.n_violated(found.split.above) == 0:
            candidates.append(found.split)
        return min(candidates, key=lambda split: split.value)

    def search(
        self,
        rng: np.random.RandomState,
        run: Run,
        first: Sequence[Int32s] = (),
        report: Report | None = None,
    ) -> Found:
        """Return the best consistent partition met, over all starts, prices and restarts."""
        known = self.cuts.color.known
        self.record.best = min(map(self._split, (known, *first)), key=lambda split: split.value)
        try:
            coarse = coarse_copy(self.cuts, rng, first) if self.settings.refine else None
            if coarse is None:
                return self._search_here(rng, run, first, report)
            return self._search_coarse(coarse, rng, run, first=first, report=report)
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            return self._stopped()

    def _search_here(
        self, rng: np.random.RandomState, run: Run, first: Sequence[Int32s], report: Report | None
    ) -> Found:
        tracks: list[Track] = []
        for batch in self._starts(rng, first):
            for track in run([partial(self._track, f, rng.randint(2**31)) for f in batch]):
                tracks.append(track)
                _tell(report, f"start {len(tracks)}", self.record)
            if self._agreed(tracks):
                break
        n_failures = 1 if self._agreed(tracks) else FAILURES
        z = self._restarted(self._best_of(tracks, rng), n_failures, rng, report)
        if not self.is_copy:
            z = self._certified(z)
        return Found(z, self.value(z), len(tracks))

    def _agreed(self, tracks: list[Track]) -> bool:
        """Whether starts agree on a best partition that no price was needed for.

        Prices open several valleys, and the deepest one may be rare; without them it hardly is. On
        a copy any agreement will do.
        """
        best = min(track.split.value for track in tracks)
        agreeing = [track for track in tracks if track.split.value <= best * (1 + SAME)]
        free = self.is_copy or all(track.gamma == 0 for track in agreeing)
        return len(agreeing) >= AGREE and free

    def _search_coarse(
        self,
        coarse: Coarse,
        rng: np.random.RandomState,
        run: Run,
        *,
        first: Sequence[Int32s],
        report: Report | None,
    ) -> Found:
        """Search a coarse copy of the graph; descend on the graph itself from its answer alone.

        That descent is the certificate as well. A start takes as many passes over the edges of a
        large graph as of a small one.
        """
        record = self.record
        n, m = self.problem.n_vertices, coarse.cuts.problem.n_vertices
        _tell(report, f"coarse copy of {m} vertices for {n}", record)
        small = self._on(coarse)
        found = small.search(rng, run, [coarse.down(z) for z in first], report)
        record.take_over(small.record)
        record.offer(self._split(coarse.up(found.z)))
        if found.interrupted:
            return self._stopped()
        z = self._refined_coarse(coarse, found.z, rng)
        record.offer(self._split(z))
        z = self._refined(z, rng)
        record.offer(self._split(z))
        _tell(report, "back on the graph", record)
        z = self._certified(self._restarted_coarse(z, rng, report))
        return Found(z, self.value(z), found.n_generations)

    def _on(self, coarse: Coarse) -> Bisection:
        """Return the landscape of a coarse copy."""
        settings = self.settings.rough()
        small = Bisection.of(coarse.cuts, self.unit, settings, Record(self.record.report))
        return small._replace(gamma=self.gamma, is_copy=True)

    def _restarted_coarse(
        self, z: Int32s, rng: np.random.RandomState, report: Report | None
    ) -> Int32s:
        """Restart on another coarse copy, which respects the best partition.

        On a large graph noise takes tens of thousands of passes over the edges to settle.
        """
        coarse = coarse_copy(self.cuts, rng, [z])
        if coarse is None:
            return z
        small = self._on(coarse)
        disturbed = small._restarted(coarse.down(z), len(NOISE), rng, report)
        self.record.add_work(small.record)
        better = self._refined_coarse(coarse, disturbed, rng)
        if self.value(better) >= self.value(z) * (1 - SAME):
            return z
        better = self._refined(better, rng)
        self.record.offer(self._split(better))
        _tell(report, "restarted", self.record)
        return better

    def _refined_coarse(self, coarse: Coarse, z: Int32s, rng: np.random.RandomState) -> Int32s:
        moves = coarse.cuts.at(self._moves().problem.gamma)
        return min(coarse._replace(cuts=moves).refined(z, rng), coarse.up(z), key=self.value)

    def _stopped(self) -> Found:
        """Return the best partition so far, and stop what still runs in other threads."""
        self.record.is_stopped = True
        z = self.family.partition(self.record.best.above)
        return Found(z, self.value(z), 0, interrupted=True)

    def _starts(
        self, rng: np.random.RandomState, first: Sequence[Int32s]
    ) -> Iterator[list[Floats]]:
        """Yield vectors to start from: what is given, the spectral one, SCLC's, random ones."""
        n = self.problem.n_vertices
        given = [self.family.vector(z) for z in first]
        graph = csr_array(
            (self.problem.weight, self.problem.indices, self.problem.indptr), shape=(n, n)
        )
        spectral = spectral_start(graph, self.problem.volume, rng)
        yield [*given, self.family.vector(spectral)]
        n_random = self.settings.n_starts - 1
        if self.family.has_certain_pairs and n_random > 0:
            yield [self._linear_start(rng)]
            n_random -= 1
        for start in range(0, n_random, AT_ONCE):
            yield [rng.normal(size=n) for _ in range(min(AT_ONCE, n_random - start))]

    def _linear_start(self, rng: np.random.RandomState) -> Floats:
        """Return the sides that normalised cut with linear constraints finds."""
        heads, tails = (self.family.order[ends] for ends in self.family._certain())
        group = np.arange(self.problem.n_vertices)
        sign = np.ones(group.size)
        group[tails], sign[tails] = heads, -1.0
        _, numbered = np.unique(group, return_inverse=True)
        groups = SignedGroups(numbered, sign, np.arange(group.size))
        with quiet(ConvergenceWarning):
            found = constrained_cut(graph_only(self.problem), groups, rng)
        return self.family.vector(found.labels)

    def _track(self, f: Floats, seed: int) -> Track:
        rng = np.random.RandomState(seed)
        track = follow(self.family, f, self.settings, self.record, soft=self.gamma)
        if not np.isfinite(track.split.value):
            return track
        split = track.split
        if track.gamma > 0:
            f = split.above.astype(np.float64)
            split = self._descended(split, f, tie_breaker=track.f)
        z = self._refined(self.family.partition(split.above), rng)
        better = self._split(z)
        self.record.offer(better)
        return track._replace(split=better)

    def _best_of(self, tracks: list[Track], rng: np.random.RandomState) -> Int32s:
        """Recombine the best partitions of the starts."""
        ranked: list[Track] = []
        for track in sorted(tracks, key=lambda t: t.split.value):
            if not ranked or track.split.value > ranked[-1].split.value * (1 + SAME):
                ranked.append(track)
        self.record.path, self.record.gamma = ranked[0].path, ranked[0].gamma
        if not np.isfinite(ranked[0].split.value):
            return self.cuts.color.known
        z = self.family.partition(ranked[0].split.above)
        usable = [track for track in ranked[1:REFINED] if np.isfinite(track.split.value)]
        for other in usable:
            z = self.cross(z, self.family.partition(other.split.above), rng)
            self.record.offer(self._split(z))
        return z

    def _restarted(
        self, z: Int32s, n_failures: int, rng: np.random.RandomState, report: Report | None
    ) -> Int32s:
        """Descend again from disturbed copies of the best partition, until too many fail."""
        best = self._split(z)
        n_failed = n_tried = 0
        while n_failed < n_failures and n_tried < RESTARTS and 0 < best.value < np.inf:
            noise = NOISE[n_tried % len(NOISE)] * rng.normal(size=z.size)
            split = self._descended(best, best.above + noise)
            n_tried += 1
            if split.value >= best.value * (1 - SAME):
                n_failed += 1
                continue
            refined = self._split(self._refined(self.family.partition(split.above), rng))
            best = min((refined, split), key=lambda candidate: candidate.value)
            self.record.offer(best)
            _tell(report, f"restart {n_tried}", self.record)
        return self.family.partition(best.above)

    def _certified(self, z: Int32s) -> Int32s:
        """Solve the inner problem at the answer for long: a proof, or one more descent."""
        best = self._split(z)
        while 0 < best.value < np.inf:
            cut = self.family.at(soft=self.gamma, hard=self.family.enough(best.value))
            f = best.above.astype(np.float64)
            found = descend(cut, f, self.settings, self.record, patience=CERTIFY)
            self.record.certify(found)
            lower = found.split.value < best.value * (1 - SAME)
            if not lower or self.family.n_violated(found.split.above):
                break
            best = found.split
            self.record.offer(best)
        return self.family.partition(best.above)


def _tell(report: Report | None, stage: str, record: Record) -> None:
    if report is not None:
        report(f"{stage}: best {record.best.value:.6g}")
