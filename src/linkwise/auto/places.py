"""Where the experts of `Auto` begin, and which other methods are heard beside them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise.auto.pool import Start
from linkwise.auto.starts import PRICE, SmallClusters, Told, plain_clusters
from linkwise.auto.task import labelled_samples
from linkwise.constraints import Constraints
from linkwise.constraints.coloring import find_coloring
from linkwise.constraints.feasible import feasible_groups
from linkwise.exceptions import ConflictError, TooLargeError
from linkwise.linalg.warm import WarmStarts
from linkwise.methods.e2cp import e2cp
from linkwise.search.cut import CutObjective
from linkwise.search.objective import Context, Task, hard_labels
from linkwise.search.problem import rescaled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Graph, Ints
    from linkwise.auto.bases import Bases


ROUNDS, MANY_ROWS = 2, 5_000  # of all starts, up to so many samples; one beyond
# How much is given beforehand on clusterings by other methods; a graph alone has few descriptions.
VOICE, VOICE_ON_GRAPH = {"spectral": 0.5, "e2cp": 0.5, "cut": 0.5}, {"e2cp": 2.0, "cut": 1.0}
SPREAD_UP_TO = 20_000  # samples of a graph over which pairs are spread
# Samples with constraints, and with labels, which stand for many pairs, to spread from at most;
# samples of a dense graph.
SPREAD_FROM, SPREAD_LABELS, SPREAD_DENSE = 5_000, 300, 3_000
# Entries of a graph that is cut, at most: about 2,000 samples; and for each sample.
CUT_ENTRIES, CUT_DEGREE = 32_000, 40
CUT_PRICE = 1.0  # of a pair of lower belief; see `ConstrainedCut`


class Places(NamedTuple):
    """Where starts are looked for; whatever is told, these are the same."""

    bases: Bases
    rows: Ints
    grounds: tuple[Ground, ...]
    warm: WarmStarts  # of pairs spread over the graph
    spreads: bool  # whether pairs are spread over the graph
    cut: Task | None  # the graph, if it is cut the way the pairs want it

    def starts(self, constraints: Constraints, seed: int) -> Iterator[Start]:
        """Yield clusterings, most of them merged the way the pairs want it."""
        voices = VOICE_ON_GRAPH if self.bases.components is None else VOICE
        for name, labels in self._others(constraints, seed):
            yield Start(name, labels[self.rows], voice=voices[name], is_learnt=True)
        pairs, weight = constraints.signed_pairs()
        place = np.zeros(constraints.n_samples, np.intp)
        place[self.rows] = np.arange(self.rows.size)
        for ground in self.grounds:
            yield ground.start(Told(place[pairs], weight))

    def _others(self, constraints: Constraints, seed: int) -> Iterator[tuple[str, Ints]]:
        """Yield clusterings by other methods that learn from constraints."""
        if self.spreads:
            labels = e2cp(
                self.bases.W,
                constraints,
                self.bases.n_clusters,
                solver="lowrank" if issparse(self.bases.W) else "exact",
                random_state=seed,
                warm=self.warm,
            ).labels
            yield "e2cp", labels
        if self.cut is not None:
            yield "cut", low_cut(self.cut, constraints, seed)


def low_cut(task: Task, constraints: Constraints, seed: int) -> Ints:
    """Return a low cut of a graph under which every certain constraint holds."""
    context = Context(np.random.RandomState(seed))
    task = task._replace(constraints=constraints, context=context)
    try:
        found = hard_labels(task, CUT_PRICE)
    except ConflictError:  # they can all hold, with others (see `to_cut`), but it was not found
        none = Constraints(constraints.n_samples)
        found = hard_labels(task._replace(constraints=none), CUT_PRICE)
    if found.interrupted:
        raise KeyboardInterrupt
    return found.labels


class Ground(NamedTuple):
    """A clustering of an embedding, or small clusters of one to be merged."""

    name: str
    clusters: Ints | SmallClusters
    spectral: bool = False
    voice: float = 0.0
    price: float = PRICE  # of a violated pair

    def start(self, told: Told) -> Start:
        """Return the start that the pairs make of it."""
        if not isinstance(self.clusters, SmallClusters):
            return Start(self.name, self.clusters, self.spectral, plain=True, voice=self.voice)
        return Start(self.name, self.clusters.merged(told, self.price), self.spectral)


def find_places(bases: Bases, heard: Constraints, rows: Ints, *, seed: int, quick: bool) -> Places:
    """Return where experts begin, and which other methods are heard."""
    has_pairs = heard.n_pairs > 0 or labelled_samples(heard)[0].size > 1
    is_graph = bases.components is None  # of which there are few descriptions
    spreads = has_pairs and _can_spread(bases.W, heard) and (is_graph or not quick)
    cut = to_cut(bases, heard) if has_pairs and not quick else None
    rng = np.random.RandomState(seed)
    grounds: list[Ground] = []
    for number in range(ROUNDS if rows.size <= MANY_ROWS else 1):
        silent = number > 0 or (spreads and is_graph)
        voice = 0.0 if silent else VOICE["spectral"]
        grounds += _round_of_grounds(bases, rows, rng, voice=voice, has_pairs=has_pairs)
    return Places(bases, rows, tuple(grounds), WarmStarts(), spreads, cut)


def _can_spread(W: Graph, heard: Constraints) -> bool:
    """Whether pairs are not too many to spread over the graph, and not too far."""
    most = SPREAD_UP_TO if issparse(W) else SPREAD_DENSE
    n_told, n_labelled = int(heard.constrained.sum()), labelled_samples(heard)[0].size
    return W.shape[0] <= most and n_told <= SPREAD_FROM and n_labelled <= SPREAD_LABELS


def to_cut(bases: Bases, constraints: Constraints) -> Task | None:
    """Return the graph for a constrained cut, unless it is too large or cannot obey."""
    W, k = bases.W, bases.n_clusters
    n_entries = np.count_nonzero(W) if isinstance(W, np.ndarray) else W.nnz
    if n_entries > min(CUT_ENTRIES, CUT_DEGREE * W.shape[0]) or not _can_obey(constraints, k):
        return None
    build = partial(CutObjective.on, rescaled(csr_array(W))[0], k=k)
    return Task(build, constraints, k, Context(np.random.RandomState(0)), effort="fast")


def _can_obey(constraints: Constraints, k: int) -> bool:
    """Whether a partition was found that satisfies every certain constraint."""
    try:
        groups = feasible_groups(constraints, k)
    except (ConflictError, TooLargeError):
        return False
    return find_coloring(groups.graph, k, np.random.RandomState(0)).n_left == 0


def _round_of_grounds(
    bases: Bases, rows: Ints, rng: np.random.RandomState, *, voice: float, has_pairs: bool
) -> Iterator[Ground]:
    k = bases.n_clusters
    narrow, wide = bases.embedding(k, rows), bases.embedding(2 * k, rows)
    if bases.components is not None:
        scores = bases.components.scores[rows]
        yield Ground("k-means", plain_clusters(scores, k, rng))
        for factor in (2, 4):
            small = SmallClusters.of(scores, k, rng, factor=factor)
            yield Ground(f"k-means, {factor} k merged", small)
    yield Ground("spectral", plain_clusters(narrow, k, rng), spectral=True, voice=voice)
    small = SmallClusters.of(narrow, k, rng, factor=4)
    yield Ground("spectral, 4 k merged", small, spectral=True)
    yield Ground("wide spectral, 4 k merged", SmallClusters.of(wide, k, rng, factor=4))
    if has_pairs:
        small = SmallClusters.of(wide, k, rng, factor=2)
        name, price = "wide spectral, 2 k merged by pairs", float(rows.size)
        yield Ground(name, small, spectral=True, price=price)
