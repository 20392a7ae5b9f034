"""The pool: experts that start in different places, learn from the pairs, and are compared."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.auto.consensus import Consensus, likelihood, merge, shares, votes
from linkwise.auto.expert import Expert, consult, log_softmax
from linkwise.auto.rehearsal import (
    SURE,
    Opinion,
    Rehearsal,
    foretold,
    merged,
    rehearsed_score,
    without_held,
)
from linkwise.auto.task import Settled, Task, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from linkwise._types import Bools, Floats, Ints
    from linkwise.search.objective import Report, Run


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
# How much is given beforehand on experts that learn, and on those that are told nothing.
LEARNT, UNTOLD = 2.0, 4.0

MAX_ROUNDS = 15
TOL = 2e-3  # mean change of a probability
TRUST = 0.9  # in the labels of a start
CANDIDATES = 6.0  # log-likelihood of constraints held back that makes a vote e times as heavy


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


def agree(task: Task, candidates: list[Candidate]) -> tuple[Consensus, Settled]:
    """Merge the opinions of the candidates, then add what is said."""
    found = _merged(candidates, votes(np.array([c.score for c in candidates])))
    return found, settle(task, np.log(found.probability + SURE), found.noise)


def _merged(candidates: list[Candidate], weights: Floats) -> Consensus:
    opinions = [np.exp(log_softmax(c.opinion)) for c in candidates]
    return merge(opinions, weights, np.array([c.noise for c in candidates]))


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
    voice: float = 0.0  # how much is given on it beforehand; see `Party`
    is_learnt: bool = False  # it has all that constraints say: no expert learns from there


class Party(NamedTuple):
    """Candidates of one kind, and how much is given on them beforehand."""

    candidates: list[Candidate]
    prior: float = LEARNT
    name: str = "experts that learn"


class Trial(NamedTuple):
    """Constraints to hold back, and where to begin with the others."""

    held: Bools  # pairs, then labels
    starts: list[Start]


class Pool(NamedTuple):
    """All candidates, and what they say together."""

    candidates: list[Candidate]
    consensus: Consensus
    settled: Settled
    scores: Floats  # log-likelihoods of constraints held back, by each candidate; or given others
    shares: dict[str, float]  # of the parties
    foretold: Floats  # probability of each constraint where it was held back, or nan
    without: Floats  # what `Settled.said` is for experts that are told nothing
    interrupted: bool = False


def survey(
    task: Task,
    starts: Iterable[Start],
    run: Run,
    report: Report | None = None,
    *,
    trials: Iterable[Trial] = (),
    quick: bool = False,
) -> Pool:
    """Let rigid experts learn from every start, and flexible ones from what these agree on.

    A flexible expert that starts from a clustering confirms it; one that starts from what rigid
    experts have learnt from the pairs improves on it. Beside them, experts that are told nothing
    are heard, and starts that have a voice. How much, is decided by `trials`: all that learns from
    constraints does so again without some of them, which it is to predict.

    Interrupting ends the survey with the candidates that are there, if there are any. A `quick`
    survey asks rigid experts alone.
    """
    learnt: list[Candidate] = []
    untold: list[Candidate] = []
    voices: list[Party] = []
    rehearsals: list[Rehearsal] = []
    interrupted = False
    try:
        starts = list(starts)
        if task.is_told and not quick:
            untold, voices = _untold(task, starts, run), list(_voices(task, starts))
        for candidate in _learners(task, starts, run, quick=quick):
            learnt.append(candidate)
            say(report, _described(task, candidate))
        for trial in trials:
            rehearsals.append(_rehearse(task, trial, untold, run, quick=quick))
            say(report, f"rehearsal {len(rehearsals)} without {trial.held.sum()} constraints")
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        if not learnt:
            raise KeyboardInterrupt from error
        interrupted = True
    pool = hear(task, _parties(task, learnt, voices, untold), rehearsals)
    say(report, "heard: " + ", ".join(f"{name} {w:.0%}" for name, w in pool.shares.items()))
    without = predicted_without(task, untold, rehearsals)
    return pool._replace(without=without, interrupted=interrupted)


def _parties(
    task: Task, learnt: list[Candidate], voices: list[Party], untold: list[Candidate]
) -> list[Party]:
    parties = [Party(learnt), *voices]
    if _rigid(task) == "linear" and untold:  # on a graph alone they repeat spectral clustering
        parties.append(Party(untold, UNTOLD, "experts told nothing"))
    return parties


def _rehearse(
    task: Task, trial: Trial, untold: list[Candidate], run: Run, *, quick: bool = False
) -> Rehearsal:
    """Repeat the survey without some constraints, but for those who were told none anyway."""
    told = task.told(~trial.held)
    untold = [_judged(told, candidate, candidate.name) for candidate in untold]
    learnt = list(_learners(told, trial.starts, run, quick=quick))
    voices = [] if quick else list(_voices(told, trial.starts))
    at = task.vertices
    opinions = tuple(
        tuple(Opinion(c.opinion[at], c.noise) for c in party.candidates)
        for party in _parties(task, learnt, voices, untold)
    )
    return Rehearsal(trial.held, without_held(task, trial.held), opinions)


def hear(task: Task, parties: Sequence[Party], rehearsals: Sequence[Rehearsal] = ()) -> Pool:
    """Merge the opinions in each party, then those of the parties; add what is said.

    Candidates and parties are weighted by how they predict constraints that were held back.
    Without rehearsals, candidates are weighted by how they predict each constraint given the
    others, and parties by their prior alone.
    """
    scores = [_scores(task, at, party, rehearsals) for at, party in enumerate(parties)]
    weights = [votes(of, CANDIDATES) if rehearsals else votes(of) for of in scores]
    found = [_merged(p.candidates, w) for p, w in zip(parties, weights, strict=True)]
    common = [_common(rehearsals, at, of) for at, of in enumerate(weights)]
    share = _shares(task, parties, rehearsals, common)
    whole = merge([one.probability for one in found], share, np.array([o.noise for o in found]))
    parts = zip(found, whole.order, strict=True)
    consensus = whole._replace(
        weights=np.concatenate([w * one.weights for w, one in zip(share, found, strict=True)]),
        order=tuple(own[at] for one, at in parts for own in one.order),
    )
    final = [merged(of, share) for of in zip(*common, strict=True)]
    return Pool(
        candidates=[c for party in parties for c in party.candidates],
        consensus=consensus,
        settled=settle(task, np.log(consensus.probability + SURE), consensus.noise),
        scores=np.concatenate(scores),
        shares={party.name: float(w) for party, w in zip(parties, share, strict=True)},
        foretold=foretold(task, rehearsals, final),
        without=np.zeros(0),
    )


def _scores(task: Task, at: int, party: Party, rehearsals: Sequence[Rehearsal]) -> Floats:
    """Return how well the candidates of a party predict constraints that were held back."""
    if not rehearsals:
        return np.array([c.score for c in party.candidates])
    each = zip(*(rehearsal.parties[at] for rehearsal in rehearsals), strict=True)
    told = (foretold(task, rehearsals, opinions) for opinions in each)
    return np.array([rehearsed_score(task, said) for said in told])


def _common(rehearsals: Sequence[Rehearsal], at: int, weights: Floats) -> list[Opinion]:
    """Return the common opinion of a party in each rehearsal."""
    return [merged(rehearsal.parties[at], weights) for rehearsal in rehearsals]


def _shares(
    task: Task,
    parties: Sequence[Party],
    rehearsals: Sequence[Rehearsal],
    common: Sequence[Sequence[Opinion]],
) -> Floats:
    """Return the weights of the parties."""
    prior = np.array([party.prior for party in parties])
    if not rehearsals:
        return prior / prior.sum()
    said = np.array([foretold(task, rehearsals, opinions) for opinions in common])
    tested = np.isfinite(said[0])
    return shares(said[:, tested], task.belief[tested], prior)


def _untold(task: Task, starts: list[Start], run: Run) -> list[Candidate]:
    """Return experts that learn from no constraint."""
    plans = _first(task, [start for start in starts if start.plain])
    candidates = run(_tasks(task.blind(), plans))
    return [_judged(task, c, f"{c.name}, without constraints") for c in candidates]


def _voices(task: Task, starts: list[Start]) -> Iterator[Party]:
    """Yield experts that repeat a start that has a voice."""
    bases = _rigid(task), "graph"
    for start in starts:
        if start.voice:
            Q = soft(start.labels, task.k)
            expert = learn(task.blind(), Assignment(bases, "", Q, FIRST_NOISE, max_rounds=1))
            repeated = _judged(task, expert, f"{start.name}, repeated")
            yield Party([repeated], start.voice, start.name)


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


def predicted_without(
    task: Task, untold: list[Candidate], rehearsals: Sequence[Rehearsal] = ()
) -> Floats:
    """Return the probability of what each pair and label says, by experts that are told nothing.

    Which cluster a label stands for is known from labels that were not held back.
    """
    if not untold:
        return np.zeros(0)
    opinions = [np.exp(log_softmax(c.opinion)) for c in untold]
    alike = np.full(len(untold), 1 / len(untold))
    opinion = np.log(merge(opinions, alike, alike).probability + SURE)
    # Of pairs that are wrong half of the time nothing can be learnt.
    if not rehearsals:
        return settle(task, opinion, 0.5).said
    return foretold(task, rehearsals, [Opinion(opinion[task.vertices], 0.5)] * len(rehearsals))


def _rigid(task: Task) -> str:
    return next(name for name in RIGID if name in task.ridges)


def _first(task: Task, starts: Iterable[Start]) -> Iterator[Assignment]:
    rigid = _rigid(task)
    for start in starts:
        if start.is_learnt:
            continue
        Q = soft(start.labels, task.k)
        yield Assignment((rigid,), start.name, Q, FIRST_NOISE)
        if start.spectral:
            yield Assignment((rigid, "graph"), start.name, Q, FIRST_NOISE)


def _learners(
    task: Task, starts: list[Start], run: Run, *, quick: bool = False
) -> Iterator[Candidate]:
    """Yield experts that learn: from every start, then from what these have learnt."""
    rigid = []
    for candidate in run(_tasks(task, _first(task, starts))):
        rigid.append(candidate)
        yield candidate
    if task.is_told and not quick:
        yield from run(_tasks(task, _flexible(task, rigid)))


def _flexible(task: Task, candidates: list[Candidate]) -> Iterator[Assignment]:
    consensus, settled = agree(task, candidates)
    leaders = sorted(candidates, key=lambda c: -c.score)[:N_LEADERS]
    begin = [("consensus", settled.probability), *((c.name, c.probability) for c in leaders)]
    for bases in FLEXIBLE:
        if set(bases) <= set(task.ridges):
            for title, Q in begin:
                yield Assignment(bases, title, Q, consensus.noise)


def _tasks(task: Task, assignments: Iterable[Assignment]) -> list[Callable[[], Candidate]]:
    return [partial(learn, task, a) for a in assignments]


def _described(task: Task, candidate: Candidate) -> str:
    line = f"{candidate.name}, {' + '.join(candidate.expert.names)}"
    if not task.is_told:
        return line
    return f"{line}: log-likelihood of a constraint {candidate.score / task.belief.size:.3f}"


def say(report: Report | None, line: str) -> None:
    """Report progress, if it is wanted."""
    if report is not None:
        report(line)
