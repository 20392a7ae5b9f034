"""The pool: experts that start in different places, learn from the pairs, and are compared."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.experts.consensus import Consensus, likelihood, matching, merge, votes
from linkwise.experts.expert import Expert, Ridge, consult, log_softmax
from linkwise.experts.propagation import Pairs, propagate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from linkwise.search.evolve import Report, Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]

__all__ = [
    "Assignment",
    "Candidate",
    "Party",
    "Pool",
    "Settled",
    "Start",
    "Task",
    "agree",
    "hear",
    "learn",
    "settle",
    "survey",
]

RIGID = ("linear", "smooth")  # the second if there are no features
FLEXIBLE = (
    ("linear", "kernel"),
    ("linear", "graph"),
    ("linear", "fine graph"),
    ("linear", "graph", "kernel"),
    ("smooth", "graph"),
)
N_LEADERS = 2  # candidates from which flexible experts start, besides the consensus
FIRST_NOISE = 0.05

MAX_ROUNDS = 15
TOL = 2e-3  # mean change of a probability
TRUST = 0.9  # in the labels of a start
SURE = 1e-3  # added to a probability before it becomes an opinion


class Task(NamedTuple):
    """What all candidates learn from."""

    ridges: dict[str, Ridge]
    weights: Floats  # of the samples
    vertices: Ints  # samples that something is said about
    pairs: Pairs  # between vertices
    labelled: Ints  # vertices with a label
    label: Ints  # the number of each one's label
    k: int

    @property
    def is_told(self) -> bool:
        """Whether anything is said at all."""
        return bool(self.vertices.size)

    @property
    def belief(self) -> Floats:
        """How firmly each pair, then each label, is said."""
        return np.concatenate((self.pairs.belief, np.ones(self.labelled.size)))


class Settled(NamedTuple):
    """Opinions and what is said, added up."""

    probability: Floats  # (n, k)
    said: Floats  # for each pair, then each label: its probability without itself
    logits: Floats  # (n_vertices, k)


class Candidate(NamedTuple):
    """One expert after learning."""

    name: str
    probability: Floats  # (n, k), with what the pairs say
    opinion: Floats  # (n, k), without what pairs say about the sample itself
    said: Floats
    score: float
    noise: float
    expert: Expert
    n_rounds: int


class Assignment(NamedTuple):
    """What a candidate is to learn from, and where it begins."""

    bases: tuple[str, ...]
    title: str
    start: Floats
    noise: float
    max_rounds: int = MAX_ROUNDS


def learn(task: Task, plan: Assignment) -> Candidate:
    """Alternate between the opinion of an expert and what the pairs make of it.

    The score is the log-likelihood of every pair given the others.
    """
    ridges = [task.ridges[name] for name in plan.bases]
    messages = np.zeros((len(task.pairs.ends), 2, task.k))
    Q = plan.start
    for n_rounds in range(1, plan.max_rounds + 1):  # noqa: B007
        opinion, expert = consult(ridges, plan.bases, Q, task.weights)
        settled = settle(task, opinion, plan.noise, messages)
        change = float(np.abs(settled.probability - Q).mean())
        Q = settled.probability
        if change < TOL:
            break
    score, rate = likelihood(settled.said, task.belief)
    return Candidate(plan.title, Q, opinion, settled.said, score, rate, expert, n_rounds)


def settle(task: Task, opinion: Floats, noise: float, messages: Floats | None = None) -> Settled:
    """Add what pairs and labels say to the opinion on their samples."""
    if messages is None:
        messages = np.zeros((len(task.pairs.ends), 2, task.k))
    probability = np.exp(log_softmax(opinion))
    at = task.vertices
    evidence, cluster = _label_evidence(task, probability, noise)
    found = propagate(opinion[at] + evidence, task.pairs, noise, messages)
    probability[at] = np.exp(log_softmax(found.logits))
    without = log_softmax((found.logits - evidence)[task.labelled])
    said = np.concatenate(
        (
            np.where(task.pairs.together, found.together, 1 - found.together),
            np.exp(without[np.arange(cluster.size), cluster]),
        )
    )
    return Settled(probability, np.clip(said, 0.0, 1.0), found.logits)


def _label_evidence(task: Task, probability: Floats, noise: float) -> tuple[Floats, Ints]:
    """Return log-likelihoods of the labels, and the cluster that each label stands for.

    Which cluster a label stands for is decided by the opinions on all samples that have it.
    """
    evidence = np.zeros((task.vertices.size, task.k))
    if not task.labelled.size:
        return evidence, np.zeros(0, np.intp)
    members = np.zeros((task.labelled.size, task.k))
    members[np.arange(task.labelled.size), task.label] = 1.0
    order = matching(probability[task.vertices[task.labelled]], members)
    cluster = order[task.label]
    evidence[task.labelled] = np.log(max(noise, 1e-6) / max(task.k - 1, 1))
    evidence[task.labelled, cluster] = np.log1p(-noise)
    return evidence, cluster


def agree(task: Task, candidates: list[Candidate]) -> tuple[Consensus, Settled]:
    """Merge the opinions of the candidates, then add what is said."""
    found = merge(
        [np.exp(log_softmax(c.opinion)) for c in candidates],
        np.array([c.score for c in candidates]),
        np.array([c.noise for c in candidates]),
    )
    return found, settle(task, np.log(found.probability + SURE), found.noise)


def soft(labels: Ints, k: int) -> Floats:
    """Return probabilities that trust labels not quite."""
    Q = np.full((labels.size, k), (1 - TRUST) / max(k - 1, 1))
    Q[np.arange(labels.size), labels] = TRUST
    return Q


class Start(NamedTuple):
    """A clustering to begin with."""

    name: str
    labels: Ints
    spectral: bool = False  # of the graph: an expert on the graph may begin here as well
    plain: bool = False  # made without constraints
    voice: float = 0.0  # how much is given on it, beside all experts that learn; see `Party`


class Party(NamedTuple):
    """Candidates of one kind, and how much is given on them beforehand."""

    candidates: list[Candidate]
    prior: float = 1.0


class Pool(NamedTuple):
    """All candidates, and what they say together."""

    candidates: list[Candidate]
    consensus: Consensus
    settled: Settled
    without: Floats  # what `Settled.said` is for experts that are told nothing
    interrupted: bool = False


def survey(
    task: Task,
    starts: Iterable[Start],
    run: Run,
    report: Report | None = None,
    *,
    quick: bool = False,
) -> Pool:
    """Let rigid experts learn from every start, and flexible ones from what these agree on.

    A flexible expert that starts from a clustering confirms it; one that starts from what rigid
    experts have learnt from the pairs improves on it. Interrupting ends the survey with the
    candidates that are there, if there are any.

    Beside them, experts that are told nothing are heard, and starts that have a voice, as far as
    they predict constraints as well: a few constraints are learnt by heart too easily.
    A `quick` survey asks rigid experts alone.
    """
    starts = list(starts)
    candidates: list[Candidate] = []
    untold: list[Candidate] = []
    voices: list[Party] = []
    interrupted = False
    try:
        if task.is_told and not quick:
            untold, voices = _untold(task, starts, run), list(_voices(task, starts))
        for candidate in run(_tasks(task, _first(task, starts))):
            _add(candidates, candidate, report)
        if task.is_told and not quick:
            _learn_flexibly(task, candidates, run, report)
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        if not candidates:
            raise
        interrupted = True
    if quick or not task.is_told:
        return hear(task, [Party(candidates)])._replace(interrupted=interrupted)
    parties = [Party(candidates), *voices]
    if _rigid(task) == "linear" and untold:  # on a graph alone they repeat spectral clustering
        parties.append(Party(untold))
    pool = hear(task, parties)
    return pool._replace(without=predicted_without(task, untold), interrupted=interrupted)


def hear(task: Task, parties: Sequence[Party]) -> Pool:
    """Merge the opinions in each party, then those of the parties; add what is said.

    A party is weighted by its prior and by how well it predicts constraints. No other party gets
    more than its prior relative to the first one.
    """
    found = [agree(task, party.candidates) for party in parties]
    scores = np.array([likelihood(settled.said, task.belief)[0] for _, settled in found])
    prior = np.array([party.prior for party in parties])
    shares = votes(np.minimum(scores - scores[0], 0.0), prior)
    first = found[0][0]
    order = [matching(one.probability, first.probability) for one, _ in found]
    parts = list(zip(shares, [one for one, _ in found], order, strict=True))
    consensus = Consensus(
        np.sum([share * one.probability[:, at] for share, one, at in parts], axis=0),
        np.concatenate([share * one.weights for share, one, _ in parts]),
        tuple(own[at] for _, one, at in parts for own in one.order),
        first.noise,
    )
    settled = settle(task, np.log(consensus.probability + SURE), consensus.noise)
    candidates = [c for party in parties for c in party.candidates]
    return Pool(candidates, consensus, settled, np.zeros(0))


def _untold(task: Task, starts: list[Start], run: Run) -> list[Candidate]:
    """Return experts that learn from no constraint."""
    plans = _first(task, [start for start in starts if start.plain])
    candidates = run(_tasks(_blind(task), plans))
    return [_judged(task, c, f"{c.name}, without constraints") for c in candidates]


def _voices(task: Task, starts: list[Start]) -> Iterator[Party]:
    """Yield experts that repeat a start that has a voice."""
    bases = _rigid(task), "graph"
    for start in starts:
        if start.voice:
            Q = soft(start.labels, task.k)
            expert = learn(_blind(task), Assignment(bases, "", Q, FIRST_NOISE, max_rounds=1))
            yield Party([_judged(task, expert, f"{start.name}, repeated")], start.voice)


def _blind(task: Task) -> Task:
    """Return the task without constraints."""
    return task._replace(
        vertices=task.vertices[:0],
        pairs=Pairs(task.pairs.ends[:0], task.pairs.together[:0], task.pairs.belief[:0]),
        labelled=task.labelled[:0],
        label=task.label[:0],
    )


def _judged(task: Task, candidate: Candidate, name: str) -> Candidate:
    """Return an expert that was told nothing, with how it predicts what is said."""
    settled = settle(task, candidate.opinion, FIRST_NOISE)
    score, rate = likelihood(settled.said, task.belief)
    return candidate._replace(
        name=name,
        probability=settled.probability,
        said=settled.said,
        score=score,
        noise=rate,
    )


def predicted_without(task: Task, untold: list[Candidate]) -> Floats:
    """Return the probability of what each pair and label says, by experts that are told nothing."""
    if not untold:
        return np.zeros(0)
    opinions = [np.exp(log_softmax(c.opinion)) for c in untold]
    alike = np.zeros(len(untold))
    opinion = np.log(merge(opinions, alike, alike + FIRST_NOISE).probability + SURE)
    # Of pairs that are wrong half of the time nothing can be learnt.
    return settle(task, opinion, 0.5).said


def _rigid(task: Task) -> str:
    return next(name for name in RIGID if name in task.ridges)


def _first(task: Task, starts: Iterable[Start]) -> Iterator[Assignment]:
    rigid = _rigid(task)
    for start in starts:
        Q = soft(start.labels, task.k)
        yield Assignment((rigid,), start.name, Q, FIRST_NOISE)
        if start.spectral:
            yield Assignment((rigid, "graph"), start.name, Q, FIRST_NOISE)


def _learn_flexibly(
    task: Task, candidates: list[Candidate], run: Run, report: Report | None
) -> None:
    consensus, settled = agree(task, candidates)
    leaders = sorted(candidates, key=lambda c: -c.score)[:N_LEADERS]
    begin = [("consensus", settled.probability), *((c.name, c.probability) for c in leaders)]
    assignments = [
        Assignment(bases, title, Q, consensus.noise)
        for bases in FLEXIBLE
        if set(bases) <= set(task.ridges)
        for title, Q in begin
    ]
    for candidate in run(_tasks(task, assignments)):
        _add(candidates, candidate, report)


def _tasks(task: Task, assignments: Iterable[Assignment]) -> list[Callable[[], Candidate]]:
    return [partial(learn, task, a) for a in assignments]


def _add(candidates: list[Candidate], candidate: Candidate, report: Report | None) -> None:
    candidates.append(candidate)
    if report is not None:
        bases = " + ".join(candidate.expert.names)
        report(f"{candidate.name}, {bases}: log-likelihood {candidate.score:.4g}")
