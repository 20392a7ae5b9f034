"""Auto: experts that learn from pairs, and their consensus. The method to begin with."""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from linkwise._params import Interval, StrOptions, validates_parameters
from linkwise._rows import RowIndex
from linkwise.constraints import Constraints
from linkwise.exceptions import ConflictError
from linkwise.experts.assign import feasible_labels, likeliest_labels
from linkwise.experts.bases import Bases, build_bases
from linkwise.experts.clusters import (
    Choice,
    choose,
    gap_prior,
    least_clusters,
    range_of_clusters,
)
from linkwise.experts.consensus import likelihood
from linkwise.experts.expert import Ridge
from linkwise.experts.pool import Pool, Start, Trial, say, survey
from linkwise.experts.propagation import Pairs
from linkwise.experts.rehearsal import deal
from linkwise.experts.starts import PRICE, SmallClusters, Told, plain_clusters
from linkwise.experts.task import Task, cluster_of_label
from linkwise.linalg.memory import Memory
from linkwise.methods._base import (
    ConstrainedClusterer,
    _similarities,
    refuse_as_y,
    refuse_too_many_clusters,
)
from linkwise.methods._cutting import refuse_too_many_labels
from linkwise.methods._units import in_units
from linkwise.methods.e2cp import e2cp
from linkwise.result import Result
from linkwise.search.evolve import workers
from linkwise.search.hard import Search, certain_groups, hard_labels, warn_if_interrupted
from linkwise.search.landscapes import CutData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from linkwise.experts.expert import Expert
    from linkwise.graph import Affinity, Prepared
    from linkwise.search.evolve import Report, Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]

__all__ = ["Auto", "AutoReport", "AutoResult", "Suspect", "Voice", "auto"]

ROUNDS, MANY_ROWS = 2, 5_000  # of all starts, up to so many samples; one beyond
# Parts of the constraints that are held back in turn: usually, in a quick survey, of many samples.
N_FOLDS, QUICK_FOLDS, FEW_FOLDS = 5, 3, 2
# How much is given beforehand on clusterings by other methods; a graph alone has few descriptions.
VOICE, VOICE_ON_GRAPH = {"spectral": 0.5, "e2cp": 0.5, "cut": 0.5}, {"e2cp": 2.0, "cut": 1.0}
SPREAD_UP_TO = 20_000  # samples of a graph over which pairs are spread
# Samples with constraints, and with labels, which stand for many pairs, to spread from at most;
# samples of a dense graph.
SPREAD_FROM, SPREAD_LABELS, SPREAD_DENSE = 5_000, 300, 3_000
CUT_ENTRIES = 50_000  # of a graph that is cut at most: about 3,000 samples
CUT_PRICE = 1.0  # of a pair of lower belief; see `ConstrainedCut`
NUMBERS = 2.0  # log-likelihood that makes a number of clusters e times as probable
FREE_WEIGHT = 0.3  # of a sample that nothing is said about, beside one with a pair
FREE_ROWS = 20_000  # samples without constraints that experts learn from
FREE_SHARE = 4.0  # their weight, at most, beside that of the samples with constraints
LABELLED_ROWS = 20_000  # samples with a label and no pair that experts learn from
LABELLED_LEAST = 50  # of each label, if there are so many
BLOCK = 20_000  # samples described at a time
GUESS = 0.5  # probability of a number of clusters below which it is called a guess
N_SHOWN = 6  # kinds of experts that a report lists
HEARD = 1e-3  # weight below which an expert is not heard


class Suspect(NamedTuple):
    """A constraint, and how probable it is that it is wrong."""

    kind: str  # "must-link", "cannot-link" or "label"
    samples: tuple[int, ...]  # the pair, or the labelled sample
    row: int  # position among the pairs of its kind as they were given, or the sample
    probability: float


class Voice(NamedTuple):
    """One expert in the consensus."""

    start: str
    bases: tuple[str, ...]
    weight: float
    score: float  # log-likelihood of constraints held back; given the others, if none could be
    noise: float


@dataclass(frozen=True)
class AutoReport:
    """What was chosen, and why.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_clusters_probability : dict of int to float
        How probable each number of clusters is that was considered.
    voices : tuple of Voice
        The experts, the heaviest first.
    score : float
        Mean log-likelihood of a constraint that was held back; 0 is best, -0.69 is a coin's.
    score_without : float
        The same for experts that were told no constraint.
    noise : float
        Estimated share of wrong constraints.
    n_constraints, n_violated : int
        Pairs and labels, and how many of them the labels violate.
    n_held_back : int
        How many of them were held back in turn. If none could be, the score is that of each one
        given the others, which flatters.
    """

    n_clusters: int
    n_clusters_probability: dict[int, float]
    voices: tuple[Voice, ...]
    score: float
    score_without: float
    noise: float
    n_constraints: int
    n_violated: int = 0
    n_held_back: int = 0

    def summary(self) -> list[str]:
        """Return what was chosen, in one line or three."""
        lines = [f"{self.n_clusters} clusters ({self._why_so_many()})"]
        if self.n_constraints:
            s = "s" if self.n_constraints > 1 else ""
            how = "held back" if self.n_held_back else "given the others"
            lines += [
                f"{self.n_constraints} constraint{s}, {self.n_violated} violated, "
                f"about {self.noise:.1%} wrong",
                f"log-likelihood of a constraint {how}: {self.score:.3f} "
                f"(without constraints: {self.score_without:.3f}; a coin: -0.693; best: 0)",
            ]
        return lines

    def __str__(self) -> str:
        lines = self.summary()
        heard: dict[str, float] = defaultdict(float)
        for voice in self.voices:
            heard[f"{' + '.join(voice.bases)}, from {voice.start}"] += voice.weight
        first = sorted(heard, key=lambda name: -heard[name])[:N_SHOWN]
        lines.append(f"experts heard, the {len(first)} heaviest of {len(heard)} kinds:")
        lines += [f"  {heard[name]:6.1%}  {name}" for name in first]
        return "\n".join(lines)

    def _why_so_many(self) -> str:
        numbers = self.n_clusters_probability
        if len(numbers) < 2:
            return "given"
        share = numbers[self.n_clusters]
        why = f"chosen of {min(numbers)} to {max(numbers)}, probability {share:.0%}"
        if self.n_clusters == max(numbers):
            why += ": the most that was tried"
        elif share < GUESS:
            why += ": a guess; give the number if you know it"
        return why


@dataclass(frozen=True, eq=False, repr=False)
class AutoResult(Result):
    """The answer of :func:`auto`.

    Parameters
    ----------
    probability : ndarray of shape (n_samples, n_clusters)
        Probability of each cluster, with what the constraints say.
    noise : float
        Estimated share of wrong constraints.
    suspects : tuple of Suspect
        All constraints, the one most likely wrong first.
    report : AutoReport
        What was chosen, and why.
    panel : Panel
        The experts that were heard; they have an opinion on new samples as well.
    """

    probability: Floats | None = None
    noise: float = 0.0
    suspects: tuple[Suspect, ...] = ()
    report: AutoReport | None = None
    panel: Panel | None = None


class Panel(NamedTuple):
    """Experts with their weights and the names they give to clusters."""

    experts: tuple[Expert, ...]
    weights: Floats
    order: tuple[Ints, ...]

    def probability(self, features: dict[str, Floats]) -> Floats:
        """Return probabilities of clusters for rows of bases."""
        voices = zip(self.experts, self.weights, self.order, strict=True)
        P = np.sum([w * np.exp(e.opinion(features))[:, at] for e, w, at in voices], axis=0)
        probability: Floats = P / P.sum(axis=1, keepdims=True)  # no opinion is certain: above 1
        return probability

    def renamed(self, order: Ints) -> Panel:
        """Return the panel with its clusters in another order."""
        return self._replace(order=tuple(at[order] for at in self.order))


def auto(
    X: Floats | None,
    W: csr_array | Floats,
    constraints: Constraints,
    n_clusters: int | str = "auto",
    *,
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AutoResult:
    """Cluster by the consensus of experts that learn from constraints; see :class:`Auto`.

    `X` are features, or None if there is only the graph `W`.
    """
    most = _most_clusters(constraints, n_clusters, W.shape[0])
    bases = build_bases(X, W, most, fine=True)
    options = Options(n_clusters, hard, random_state, n_jobs, verbose)
    return consult_experts(bases, constraints, options)


class Options(NamedTuple):
    """Parameters; see :class:`Auto`."""

    n_clusters: int | str
    hard: bool
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int


def consult_experts(bases: Bases, constraints: Constraints, options: Options) -> AutoResult:
    """Cluster samples that are described already."""
    rng = check_random_state(options.random_state)
    report = _print_progress if options.verbose else None
    # One thread of BLAS: its many calls are tiny, and with more the last bits would differ.
    with threadpool_limits(1), workers(effective_n_jobs(options.n_jobs)) as run:
        seed = int(rng.randint(2**31))
        survey_of = Survey(bases, _heard(constraints, seed), seed, run)
        if isinstance(options.n_clusters, str):
            choice = _choose_clusters(survey_of)
            say(report, f"{choice.best} clusters")
        else:
            choice = Choice((int(options.n_clusters),), np.ones(1))
        k = choice.best
        if options.hard:
            certain_groups(constraints, k, np.random.RandomState(0))  # or the reason why not
        found = survey_of(k, report)
        probability, said = _opinion(bases.for_clusters(k), constraints, found)
    warn_if_interrupted(interrupted=found.pool.interrupted)
    told = _report(found, choice, said)
    if options.hard:
        labels = feasible_labels(np.log(probability + 1e-12), constraints, rng)
    else:
        labels = likeliest_labels(probability)
    order = _in_order(labels, constraints, k)
    labels = np.argsort(order)[labels]
    return AutoResult(
        labels=labels,
        objective=-told.score,
        n_iter=sum(c.n_rounds for c in found.pool.candidates),
        converged=not found.pool.interrupted,
        probability=probability[:, order],
        noise=told.noise,
        suspects=_suspects(constraints, said, told.noise),
        report=replace(told, n_violated=_n_violated(constraints, labels)),
        panel=_panel(found.pool).renamed(order),
    )


class Found(NamedTuple):
    """The outcome of a survey."""

    k: int
    rows: Ints  # samples that the experts learnt from
    heard: Constraints  # what they learnt
    task: Task
    pool: Pool


class Said(NamedTuple):
    """How every pair, then every label, is predicted by the others."""

    probability: Floats
    belief: Floats

    def flip(self, noise: float) -> Floats:
        """Return the probability of each one to be wrong, beforehand."""
        wrong: Floats = self.belief * noise + (1 - self.belief) / 2
        return wrong

    def score(self, noise: float) -> float:
        """Return the mean log-likelihood."""
        flip, p = self.flip(noise), self.probability
        return float(np.log((1 - flip) * p + flip * (1 - p)).mean()) if p.size else 0.0


def _opinion(bases: Bases, constraints: Constraints, found: Found) -> tuple[Floats, Said]:
    """Return the probabilities of all samples, and how they predict all that is said."""
    panel = _panel(found.pool)
    probability = np.empty((bases.n_samples, found.k))
    for block in _blocks(bases.n_samples, found.rows):
        probability[block] = panel.probability(bases.features(block))
    probability[found.rows] = found.pool.settled.probability
    said = Said(found.pool.settled.said, found.task.belief)
    if found.heard is constraints:
        return probability, said
    return probability, _hear_rest(probability, constraints, found)


def _hear_rest(probability: Floats, constraints: Constraints, found: Found) -> Said:
    """Add the labels that the experts did not learn from, in place."""
    labelled, label = _labels(constraints)
    assert found.heard.labels is not None
    known = found.heard.labels[labelled] >= 0
    cluster = cluster_of_label(probability[labelled[known]], label[known])[label]
    noise = found.pool.consensus.noise
    n_pairs = constraints.n_pairs
    said = np.empty(n_pairs + labelled.size)
    said[:n_pairs] = found.pool.settled.said[:n_pairs]
    said[n_pairs:][known] = found.pool.settled.said[n_pairs:]
    rest, of_rest = labelled[~known], cluster[~known]
    said[n_pairs:][~known] = probability[rest, of_rest]
    probability[rest, of_rest] *= (1 - noise) * max(found.k - 1, 1) / max(noise, 1e-6)
    probability[rest] /= probability[rest].sum(axis=1, keepdims=True)
    beliefs = constraints.must_link_belief, constraints.cannot_link_belief
    return Said(said, np.concatenate((*beliefs, np.ones(labelled.size))))


def _in_order(labels: Ints, constraints: Constraints, k: int) -> Ints:
    """Return the clusters as they are numbered: those of labels as these, then by appearance.

    Labels that are no numbers of clusters, being too large, are numbered in their order.
    """
    order = _by_appearance(labels, k)
    labelled, label = _labels(constraints)
    if not labelled.size or constraints.labels is None:
        return order
    values = np.unique(constraints.labels[labelled])
    named = cluster_of_label(np.eye(k)[labels[labelled]], label)[: values.size]
    numbered = np.empty(k, np.intp)
    own = values if values[-1] < k else np.arange(values.size)
    numbered[own] = named
    numbered[np.setdiff1d(np.arange(k), own)] = order[~np.isin(order, named)]
    return numbered


def _by_appearance(labels: Ints, k: int) -> Ints:
    """Return the clusters in order of their first sample, then the empty ones."""
    seen, first = np.unique(labels, return_index=True)
    order = seen[np.argsort(first)]
    return np.concatenate((order, np.setdiff1d(np.arange(k), order))).astype(np.intp)


def _panel(pool: Pool) -> Panel:
    """Return the experts that weigh enough to be heard."""
    weights = pool.consensus.weights
    heard = np.flatnonzero(weights >= min(HEARD, weights.max()))
    return Panel(
        tuple(pool.candidates[at].expert for at in heard),
        weights[heard] / weights[heard].sum(),
        tuple(pool.consensus.order[at] for at in heard),
    )


def _blocks(n: int, known: Ints) -> Iterator[Ints]:
    """Yield the samples that experts have not learnt from, in blocks."""
    rest = np.setdiff1d(np.arange(n), known, assume_unique=True)
    for start in range(0, rest.size, BLOCK):
        yield rest[start : start + BLOCK]


# The survey ---------------------------------------------------------------------------------


class Survey(NamedTuple):
    """A survey of experts, for any number of clusters."""

    bases: Bases
    heard: Constraints
    seed: int
    run: Run

    def __call__(self, k: int, report: Report | None = None, *, quick: bool = False) -> Found:
        """Return what the experts say with `k` clusters."""
        rng = np.random.RandomState(self.seed)
        rows = _rows(self.heard, rng)
        bases = self.bases.for_clusters(k)
        task = _task(bases, self.heard, rows, k)
        places = _places(bases, self.heard, rows, seed=self.seed, quick=quick)
        starts = places.starts(self.heard, self.seed)
        trials = self._trials(task, places, QUICK_FOLDS if quick else N_FOLDS)
        pool = survey(task, starts, self.run, report, trials=trials, quick=quick)
        return Found(k, rows, self.heard, task, pool)

    def _trials(self, task: Task, places: Places, n_folds: int) -> Iterator[Trial]:
        """Yield what is held back, and where to begin without it."""
        if places.rows.size > MANY_ROWS:
            n_folds = FEW_FOLDS
        for held in deal(task, n_folds, np.random.RandomState(self.seed)):
            yield Trial(held, list(places.starts(_without(self.heard, held), self.seed)))


def _without(constraints: Constraints, held: NDArray[np.bool_]) -> Constraints:
    """Return the constraints that are not held back."""
    pairs, labels = np.split(held, [constraints.n_pairs])
    told = constraints.subset(~pairs)
    if constraints.labels is None:
        return told
    known = constraints.labels.copy()
    known[_labels(constraints)[0][labels]] = -1
    return replace(told, labels=known)


def _heard(constraints: Constraints, seed: int) -> Constraints:
    """Return the constraints without those labels that would be too many to learn from."""
    labelled, label = _labels(constraints)
    if labelled.size <= LABELLED_ROWS:
        return constraints
    mixed = np.random.RandomState(seed).permutation(labelled.size)
    mixed = mixed[np.argsort(label[mixed], kind="stable")]
    sizes = np.bincount(label)
    rank = np.arange(mixed.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Some of every label first; then all in proportion.
    plenty = rank >= LABELLED_LEAST
    turn = np.where(plenty, rank / np.repeat(sizes, sizes), rank)
    kept = mixed[np.lexsort((turn, plenty))[:LABELLED_ROWS]]
    labels = np.full(constraints.n_samples, -1)
    labels[labelled[kept]] = label[kept]
    return replace(constraints, labels=labels)


def _rows(constraints: Constraints, rng: np.random.RandomState) -> Ints:
    """Return the samples that experts learn from: those with constraints, and enough others."""
    free = np.flatnonzero(~constraints.constrained)
    if free.size > FREE_ROWS:
        free = rng.choice(free, FREE_ROWS, replace=False)
    return np.sort(np.concatenate((np.flatnonzero(constraints.constrained), free)))


def _task(bases: Bases, constraints: Constraints, rows: Ints, k: int) -> Task:
    told = constraints.constrained
    weights = np.where(told[rows], 1.0, FREE_WEIGHT)
    n_free, n_told = int((~told).sum()), int(told.sum())
    if rows.size < told.size:
        each = FREE_WEIGHT * n_free / FREE_ROWS
        weights[~told[rows]] = min(each, max(FREE_SHARE * n_told / FREE_ROWS, FREE_WEIGHT))
    features = bases.features(rows)
    ridges = {name: Ridge.of(features[name], bases.penalty(name), weights) for name in bases.names}
    vertices = np.flatnonzero(told[rows])
    place = np.full(told.size, -1, np.int32)
    place[rows[vertices]] = np.arange(vertices.size)
    labelled, label = _labels(constraints)
    return Task(
        ridges,
        weights,
        vertices,
        _pairs(constraints, place),
        place[labelled].astype(np.intp),
        label,
        k,
    )


def _pairs(constraints: Constraints, place: NDArray[np.int32]) -> Pairs:
    must, cannot = constraints.must_link, constraints.cannot_link
    return Pairs(
        place[np.concatenate((must, cannot))].reshape(-1, 2),
        np.repeat([True, False], [len(must), len(cannot)]),
        np.concatenate((constraints.must_link_belief, constraints.cannot_link_belief)),
    )


def _labels(constraints: Constraints) -> tuple[Ints, Ints]:
    """Return the labelled samples, and the number of each one's label."""
    if constraints.labels is None:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    labelled = np.flatnonzero(constraints.labels >= 0)
    _, number = np.unique(constraints.labels[labelled], return_inverse=True)
    return labelled, number.astype(np.intp)


class Places(NamedTuple):
    """Where starts are looked for; whatever is told, these are the same."""

    bases: Bases
    rows: Ints
    k: int
    grounds: tuple[Ground, ...]
    memory: Memory  # of pairs spread over the graph
    spreads: bool  # whether pairs are spread over the graph
    cut: CutData | None  # the graph, if it is cut the way the pairs want it

    def starts(self, constraints: Constraints, seed: int) -> Iterator[Start]:
        """Yield clusterings, most of them merged the way the pairs want it."""
        voices = VOICE_ON_GRAPH if self.bases.components is None else VOICE
        for name, labels in self._voices(constraints, seed):
            yield Start(name, labels[self.rows], voice=voices[name], is_learnt=True)
        pairs, weight = constraints.signed_pairs()
        place = np.zeros(constraints.n_samples, np.intp)
        place[self.rows] = np.arange(self.rows.size)
        for ground in self.grounds:
            yield ground.start(Told(place[pairs], weight))

    def _voices(self, constraints: Constraints, seed: int) -> Iterator[tuple[str, Ints]]:
        """Yield clusterings by other methods that learn from constraints."""
        W = self.bases.W
        if self.spreads:
            solver = "lowrank" if issparse(W) else "exact"
            options: dict[str, Any] = {"random_state": seed, "memory": self.memory}
            yield "e2cp", e2cp(W, constraints, self.k, solver=solver, **options).labels
        if self.cut is not None:
            yield "cut", _lowest_cut(self.cut, constraints, seed)


def _lowest_cut(graph: CutData, constraints: Constraints, seed: int) -> Ints:
    """Cut a graph so that every constraint holds; or without constraints, if they cannot."""
    with workers(1) as run:
        search = Search(graph, constraints, "fast", np.random.RandomState(seed), run)
        try:
            found = hard_labels(search, CUT_PRICE)
        except ConflictError:
            none = Constraints(constraints.n_samples)
            found = hard_labels(search._replace(constraints=none), CUT_PRICE)
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


def _places(bases: Bases, heard: Constraints, rows: Ints, *, seed: int, quick: bool) -> Places:
    has_pairs = heard.n_pairs > 0 or _labels(heard)[0].size > 1
    is_graph = bases.components is None  # of which there are few descriptions
    spreads = has_pairs and _can_spread(bases.W, heard) and (is_graph or not quick)
    cut = _to_cut(bases) if has_pairs and not quick else None
    rng = np.random.RandomState(seed)
    grounds: list[Ground] = []
    for number in range(ROUNDS if rows.size <= MANY_ROWS else 1):
        silent = number > 0 or (spreads and is_graph)
        voice = 0.0 if silent else VOICE["spectral"]
        grounds += _round_of_grounds(bases, rows, rng, voice=voice, has_pairs=has_pairs)
    return Places(bases, rows, bases.n_clusters, tuple(grounds), Memory(), spreads, cut)


def _can_spread(W: csr_array | Floats, heard: Constraints) -> bool:
    """Whether pairs are not too many to spread over the graph, and not too far."""
    most = SPREAD_UP_TO if issparse(W) else SPREAD_DENSE
    n_told, n_labelled = int(heard.constrained.sum()), _labels(heard)[0].size
    return W.shape[0] <= most and n_told <= SPREAD_FROM and n_labelled <= SPREAD_LABELS


def _to_cut(bases: Bases) -> CutData | None:
    """Return the graph for a constrained cut, if it is not too large."""
    W = bases.W
    n_entries = np.count_nonzero(W) if isinstance(W, np.ndarray) else W.nnz
    if n_entries > CUT_ENTRIES:
        return None
    return CutData(in_units(csr_array(W))[0], bases.n_clusters)


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


def _choose_clusters(about: Survey) -> Choice:
    bases, constraints = about.bases, about.heard
    numbers = range_of_clusters(least_clusters(constraints, bases.n_samples), bases.n_samples)
    prior = gap_prior(bases.graphs["graph"].values, numbers)
    scores = np.zeros(len(numbers))
    if not constraints.is_empty and len(numbers) > 1:
        for at, k in enumerate(numbers):
            found = about(k, quick=True)
            pool = found.pool
            if pool.interrupted:
                raise KeyboardInterrupt  # there is no answer yet
            scores[at] = likelihood(*_held_out(pool, found.task))[0] / NUMBERS
            if at and np.unique(pool.settled.probability.argmax(axis=1)).size < k:
                scores[at] = -np.inf  # this is an answer with fewer clusters
    return choose(numbers, scores, prior)


def _most_clusters(constraints: Constraints, n_clusters: int | str, n: int) -> int:
    if not isinstance(n_clusters, str):
        return int(n_clusters)
    return range_of_clusters(least_clusters(constraints, n), n)[-1]


# What is told -------------------------------------------------------------------------------


def _suspects(constraints: Constraints, said: Said, noise: float) -> tuple[Suspect, ...]:
    flip, p = said.flip(noise), said.probability
    wrong = flip * (1 - p) / np.maximum((1 - flip) * p + flip * (1 - p), 1e-300)
    labelled = _labels(constraints)[0]
    kinds = np.repeat(
        ["must-link", "cannot-link", "label"],
        [len(constraints.must_link), len(constraints.cannot_link), labelled.size],
    ).tolist()
    samples = [
        *map(tuple, constraints.must_link.tolist()),
        *map(tuple, constraints.cannot_link.tolist()),
        *((i,) for i in labelled.tolist()),
    ]
    rows = np.concatenate((constraints._must_link_row, constraints._cannot_link_row, labelled))
    # Equal probabilities: the less expected one first.
    order = np.lexsort((p, -wrong)).tolist()
    at = rows.tolist()
    return tuple(Suspect(kinds[i], samples[i], at[i], float(wrong[i])) for i in order)


def _n_violated(constraints: Constraints, labels: Ints) -> int:
    """Return the number of pairs and labels that do not hold."""
    n = 0
    for pairs, together in ((constraints.must_link, True), (constraints.cannot_link, False)):
        n += int(((labels[pairs[:, 0]] == labels[pairs[:, 1]]) != together).sum())
    labelled, label = _labels(constraints)
    if not labelled.size:
        return n
    k = max(int(labels.max()), int(label.max())) + 1
    cluster = cluster_of_label(np.eye(k)[labels[labelled]], label)
    return n + int((labels[labelled] != cluster[label]).sum())


def _report(found: Found, choice: Choice, said: Said) -> AutoReport:
    task, pool = found.task, found.pool
    voices = [
        Voice(c.name, c.expert.names, float(weight), float(score), c.noise)
        for c, weight, score in zip(
            pool.candidates, pool.consensus.weights, pool.scores, strict=True
        )
    ]
    numbers = zip(choice.numbers, choice.probability.tolist(), strict=True)
    noise, without = 0.0, 0.0
    if task.is_told:
        noise = pool.consensus.noise
        without = _best_score(_tested(pool.without, task))
    return AutoReport(
        n_clusters=found.k,
        n_clusters_probability=dict(numbers),
        voices=tuple(sorted(voices, key=lambda voice: -voice.weight)),
        score=_best_score(_held_out(pool, task)) if task.is_told else 0.0,
        score_without=without,
        noise=noise,
        n_constraints=said.belief.size,
        n_held_back=int(np.isfinite(pool.foretold).sum()),
    )


def _held_out(pool: Pool, task: Task) -> Said:
    """Return how constraints are predicted that were held back; or given the others, if none."""
    said = _tested(pool.foretold, task)
    return said if said.belief.size else Said(pool.settled.said, task.belief)


def _tested(probability: Floats, task: Task) -> Said:
    tested = np.isfinite(probability)
    return Said(probability[tested], task.belief[tested])


def _best_score(said: Said) -> float:
    """Return the mean log-likelihood at the rate of wrong constraints that explains them best."""
    return said.score(likelihood(*said)[1])


def _print_progress(line: str) -> None:
    print(f"[Auto] {line}")


class Auto(ConstrainedClusterer):
    """Clusters by the consensus of experts that learn from constraints: the default method.

    Several experts describe the samples in their own way: by principal components, by smooth
    functions on the neighbour graph, by radial functions. Each alternates between its opinion on
    every sample, formed without that sample, and what pairs and labels make of it by belief
    propagation, where any of them may be wrong. All learn again without some of the constraints, in
    turn; who predicts those is heard more, and the average is the answer. There is nothing to tune.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. ``"auto"`` takes the one that predicts the constraints best, with a
        preference for gaps of the spectrum, and at least as many as the cannot-links require.
    hard : bool, default=False
        Whether pairs of belief 1 and labels hold without exception. If they cannot,
        :class:`~linkwise.exceptions.ConflictError` says why. By default any of them may be found
        wrong, and contradictory ones are accepted.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()`` and, up to 20,000 samples, a finer graph
        beside it. With ``"precomputed"``, X is the graph, and experts on graphs alone are heard.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The answer does not depend on `n_jobs`.
    n_jobs : int, default=None
        Threads for independent experts; -1 for all.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    n_clusters_ : int
        Number of clusters.
    noise_ : float
        Estimated share of wrong constraints.
    suspects_ : tuple of Suspect
        All constraints, the one most likely wrong first: `kind`, `samples`, `row`, `probability`.
    report_ : AutoReport
        What was chosen, and why; print it.
    result_ : AutoResult
        All of this, and the probabilities of the training samples.
    bases_ : Bases
        How the samples are described. :class:`~linkwise.Prepared` data keep them for later fits.
    affinity_matrix_ : csr_array or ndarray of shape (n_samples, n_samples)
        The graph.
    affinity_ : Affinity or None
        The fitted graph builder; None for a precomputed graph.
    n_features_in_ : int
        Number of features seen by `fit`.

    Notes
    -----
    A pair of belief `b` is taken for one that a reliable source gave with probability `b`, and a
    coin otherwise: it is wrong with probability ``b * noise_ + (1 - b) / 2``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkwise import Auto, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> known = Constraints.sample(y, 15, random_state=0)
    >>> model = Auto(3, random_state=0).fit(X, constraints=known)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ConstrainedClusterer._parameter_constraints,
        "n_clusters": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
        "hard": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    solve = staticmethod(auto)

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        hard: bool = False,
        affinity: Affinity | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.hard = hard
        self.affinity = affinity
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @validates_parameters(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: object = None, *, constraints: Constraints | None = None) -> Auto:
        """Cluster `X`; see :meth:`ConstrainedClusterer.fit`.

        Prepared data keep their description, so a fit after some more answers is quick.
        """
        refuse_as_y(y)
        data = self._prepared(X)
        self._is_graph = self._is_precomputed if data is None else data.is_graph
        X = self._validated(X, needs_features=False)
        n = X.shape[0]
        if not isinstance(self.n_clusters, str):
            refuse_too_many_clusters(self.n_clusters, n)
        constraints = self._checked(constraints, n)
        bases = self._described(X, data, _most_clusters(constraints, self.n_clusters, n))
        if bases.components is not None and not bases.components.scores.any():
            message = "All samples are equal: only constraints can tell them apart."
            warnings.warn(message, UserWarning, stacklevel=3)
        options = Options(self.n_clusters, self.hard, self.random_state, self.n_jobs, self.verbose)
        self.result_: AutoResult = consult_experts(bases, constraints, options)
        self.labels_ = self.result_.labels
        self.bases_ = bases.for_clusters(self.n_clusters_)
        return self

    def _described(self, X: Any, data: Prepared | None, most_clusters: int) -> Bases:
        """Build the graph and the bases, unless prepared data hold them already."""
        self.affinity_matrix_ = self._graph(X if data is None else data)
        features = None if self._is_graph else X
        memory = Memory() if data is None else data.memory
        bases = memory.recall("bases")
        if bases is None or bases.n_clusters < most_clusters:
            fine = (self.affinity if data is None else data.affinity) is None
            bases = build_bases(features, self.affinity_matrix_, most_clusters, fine=fine)
            memory.keep("bases", bases)
        self._known = None if features is None else RowIndex(features)
        return bases

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each cluster for new samples.

        A copy of a training sample gets that one's probabilities, which constraints may have
        decided.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New samples; with ``affinity="precomputed"`` their affinities to the training samples,
            of shape (n_new, n_samples).

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
        """
        return self._predicted(X)[0]

    def predict(self, X: Any) -> Ints:
        """Assign new samples to their likeliest clusters; copies of training samples to theirs.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New samples; with ``affinity="precomputed"`` their affinities to the training samples,
            of shape (n_new, n_samples).

        Returns
        -------
        ndarray of shape (n_new,)
        """
        probability, copies = self._predicted(X)
        return np.where(copies >= 0, self.labels_[copies], probability.argmax(axis=1))

    def _predicted(self, X: Any) -> tuple[Floats, Ints]:
        """Return probabilities, and the training sample that each row is a copy of, or -1."""
        check_is_fitted(self)
        X = self._new_samples(X, accept_sparse="csr")
        assert self.result_.panel is not None
        assert self.result_.probability is not None
        copies = np.full(X.shape[0], -1)
        if self._known is None:
            X = _similarities(X)
        else:
            X = self.bases_.in_form(X)
            copies = self._known.find(X)
        probability = np.empty((X.shape[0], self.result_.probability.shape[1]))
        probability[copies >= 0] = self.result_.probability[copies[copies >= 0]]
        with threadpool_limits(1):
            for block in _blocks(X.shape[0], np.flatnonzero(copies >= 0)):
                similar = X[block] if self.affinity_ is None else self.affinity_.extend(X[block])
                features = self.bases_.new(X[block], similar)
                probability[block] = self.result_.panel.probability(features)
        return probability, copies

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        return self._report.n_clusters

    @property
    def noise_(self) -> float:
        """Estimated share of wrong constraints."""
        check_is_fitted(self, "result_")
        return self.result_.noise

    @property
    def suspects_(self) -> tuple[Suspect, ...]:
        """All constraints, the one most likely wrong first."""
        check_is_fitted(self, "result_")
        return self.result_.suspects

    @property
    def report_(self) -> AutoReport:
        """What was chosen, and why."""
        return self._report

    @property
    def _report(self) -> AutoReport:
        check_is_fitted(self, "result_")
        assert self.result_.report is not None
        return self.result_.report

    @property
    def accepts_contradictions(self) -> bool:
        """Whether constraints may be found wrong: then contradictory ones are accepted."""
        return not self.hard

    @property
    def needs_features(self) -> bool:
        """False: features are used if there are any."""
        return False

    def _refuse_impossible(self, constraints: Constraints) -> None:
        if self.hard and isinstance(self.n_clusters, str):
            constraints.check(constraints.n_samples)  # contradictions, whatever the number
        if self.hard or isinstance(self.n_clusters, str):
            return  # `fit` looks for a partition itself, and explains if there is none
        refuse_too_many_labels(constraints, self.n_clusters)
