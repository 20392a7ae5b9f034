"""What `Auto` tells: what the samples show, what the constraints changed, which it doubts."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.candidates import UNSUPERVISED
from linkwise.auto.consensus import least_rate
from linkwise.auto.constraint_model import (
    ConstraintModel,
    guessing_score,
    likelihood,
    log_likelihood,
    matching,
    probability_wrong,
)
from linkwise.auto.names import in_words
from linkwise.auto.views import GIVEN, JITTERED
from linkwise.constraints.table import make_suspects

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.auto.ensemble import Answer
    from linkwise.auto.n_clusters import Choice
    from linkwise.constraints import Constraints
    from linkwise.constraints.conflict import Suspect


RUNNER_UP = 0.05  # probability from which on another number of clusters is named
GUESS = 0.5  # probability of a number of clusters below which it is called a guess
CLEAR = 0.9  # probability of a kind of clusters above which it is called clear
N_SHOWN = 6  # candidates that a report lists
CLOSE = 0.02  # log-likelihoods that differ by less are called equal
MOST_CONTRADICTIONS = 3  # that are told in words
SMALL = 2  # samples of a cluster that is named
SUSPICIOUS = 0.5  # probability of being wrong above which a constraint is counted as a suspect


KINDS = {
    "compact": "compact clusters: Gaussians describe them",
    "overlapping": "compact clusters that overlap: no candidate stands out",
    "other shapes": "clusters of other shapes: the neighbour graph decides",
}


class Weight(NamedTuple):
    """One candidate in the consensus."""

    name: str
    group: str
    weight: float
    score: float  # mean log-likelihood of a held-out constraint; nan without constraints


@dataclass(frozen=True)
class AutoReport:
    """What was chosen, and why.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_clusters_probability : dict of int to float
        How probable each number of clusters is that was considered.
    kinds : dict of str to float
        Probabilities of the kinds of clusters that the samples show: ``"compact"`` (Gaussians
        describe them, and their likelihood compares candidates), ``"other shapes"`` (the cut of
        the graph compares them) and ``"overlapping"``.
    misfit : float
        What a Gaussian for each cluster loses against a density of any shape, in nats per sample;
        nan for a graph, and for features with few values.
    scaling : str
        How the features are scaled: ``"as given"`` or ``"standardised"``, followed by ``", those
        with few values jittered"`` where many features have few values.
    scalings : tuple of str
        Scalings that were compared.
    candidates : tuple of Weight
        The candidates, the heaviest first.
    centre : str
        The candidate that agrees most with all others.
    score : float
        Mean log-likelihood of a held-out constraint; 0 is best.
    score_without : float
        The same for candidates that see no constraint.
    score_guess : float
        The same for guessing: a pair by the share of must-links, a label among the clusters.
    noise : float
        Expected share of wrong constraints.
    n_constraints, n_violated, n_suspects : int
        Pairs and labels, how many of them the labels violate, and how many are more likely wrong
        than right.
    n_held_back : int
        How many of them were held out in turn. If none could be, the score is that of candidates
        that see no constraint.
    changed : float
        Share of the samples that the constraints moved to another cluster.
    small_clusters : tuple of (int, tuple of int)
        Clusters of one or two samples, and these samples.
    scaling_is_chosen : bool
        Whether the scaling was chosen, and not given as a parameter.
    interrupted : bool
        Whether the fit was interrupted: then this is the best answer so far.
    hard : bool
        Whether all constraints had to hold. `noise` and `n_suspects` are then what they would be
        if they had not.
    constraints : Constraints or None
        What was given. The summary tells the contradictions among them.
    """

    n_clusters: int
    n_clusters_probability: dict[int, float]
    kinds: dict[str, float]
    misfit: float
    scaling: str
    scalings: tuple[str, ...]
    candidates: tuple[Weight, ...]
    centre: str
    score: float
    score_without: float
    score_guess: float
    noise: float
    n_constraints: int
    n_violated: int = 0
    n_suspects: int = 0
    n_held_back: int = 0
    changed: float = 0.0
    small_clusters: tuple[tuple[int, tuple[int, ...]], ...] = ()
    scaling_is_chosen: bool = True
    interrupted: bool = False
    hard: bool = False
    constraints: Constraints | None = field(default=None, repr=False, compare=False)

    def summary(self) -> list[str]:
        """Return what was chosen, in some lines."""
        lines = [f"{self.n_clusters} clusters ({self._why_so_many()})", self._kind()]
        if self.interrupted:
            lines.insert(0, "interrupted: the best answer so far")
        if self.scaling and self.scaling_is_chosen:
            lines.append(self._scaling())
        if self.n_constraints:
            lines += self._constraints()
        for cluster, samples in self.small_clusters:
            s = "s" if len(samples) > 1 else ""
            name = str if self.constraints is None else self.constraints.facts.name
            named = " and ".join(map(name, samples))
            lines.append(f"cluster {cluster} has only sample{s} {named}")
        return lines

    def __str__(self) -> str:
        lines = self.summary()
        shown = [one for one in self.candidates[:N_SHOWN] if one.weight >= 0.005]
        lines.append(f"candidates, the {len(shown)} heaviest of {len(self.candidates)}:")
        lines += [f"  {one.weight:6.1%}  {in_words(one.name)}" for one in shown]
        lines.append(f"the one that agrees most with the others: {in_words(self.centre)}")
        return "\n".join(lines)

    def _why_so_many(self) -> str:
        numbers = self.n_clusters_probability
        if len(numbers) < 2:
            return "given"
        share = numbers[self.n_clusters]
        rest = {k: p for k, p in numbers.items() if k != self.n_clusters}
        second = max(rest, key=lambda k: rest[k])
        why = f"chosen of {min(numbers)} to {max(numbers)}, probability {share:.0%}"
        if rest[second] >= RUNNER_UP:
            why += f", then {second} with {rest[second]:.0%}"
        if self.n_clusters == max(numbers):
            why += ": the most that was tried; for many more there is linkwise.Linkage"
        elif share < GUESS:
            why += ": a guess; give the number if you know it"
            why += ", or take linkwise.Linkage if there may be hundreds of small ones"
        return why

    def _kind(self) -> str:
        kind = max(self.kinds, key=lambda name: self.kinds[name])
        sure = self.kinds[kind]
        how = "probably" if sure >= 0.5 else "perhaps"
        how = "clearly" if sure >= CLEAR else f"{how} ({sure:.0%})"
        if not self.scaling:
            return "the data are a graph: partitions are compared by their cut"
        if np.isnan(self.misfit):
            return "features have few values: partitions are compared by their likelihood"
        return f"the samples {how} show {KINDS[kind]}"

    def _scaling(self) -> str:
        own, other = "given", "standardize"
        if not self.scaling.startswith(GIVEN):
            own, other = other, own
        switch = f'scaling="{other}" changes that'
        if self.scaling.endswith(JITTERED):
            switch = f'scaling="{own}" leaves out the jitter'
        others = [name for name in self.scalings if name != self.scaling]
        why = f", compared by constraints with: {'; '.join(others)}" if others else ""
        return f"features {self.scaling}{why} ({switch})"

    def _constraints(self) -> list[str]:
        s = "s" if self.n_constraints > 1 else ""
        lines = [
            f"{self.n_constraints} constraint{s}, {self.n_violated} violated{self._errors()}, "
            f"{self.n_suspects} suspected",
            f"with {'them' if s else 'it'}, {self.changed:.1%} of the samples change their cluster",
        ]
        lines[1:1] = self._contradictions()
        if self.n_held_back:
            lines.append(
                f"log-likelihood of a held-out constraint: {self.score:.3f} (without constraints: "
                f"{self.score_without:.3f}; guessing: {self.score_guess:.3f}; best: 0)"
            )
            lines.append(self._verdict())
        return lines

    def _errors(self) -> str:
        """Return how many are estimated to be wrong; with hard=True all hold nevertheless."""
        if self.hard:
            return f"; without hard=True about {self.noise:.1%} would count as wrong"
        return f", about {self.noise:.1%} wrong"

    def _contradictions(self) -> list[str]:
        """Return what proves that some constraints cannot all hold."""
        if self.constraints is None:
            return []
        claims = [one.claim for one in self.constraints.conflicts(limit=MOST_CONTRADICTIONS)]
        lines = [f"contradiction: {claim[0].lower()}{claim[1:]}" for claim in claims]
        n_more = self.constraints.n_conflicts - len(lines)
        if n_more > 0:
            more = f"{n_more:,} more contradiction{'s' * (n_more > 1)}"
            lines.append(f"{more}: `linkwise check` and Constraints.conflicts() list them")
        return lines

    def _verdict(self) -> str:
        if self.score < self.score_guess + CLOSE:
            return "nothing predicts them better than guessing: check them, or the features"
        if self.score_without < self.score_guess:
            return "they contradict what the samples show on their own, and were followed"
        if self.score > self.score_without + CLOSE:
            return "those given help to predict those held out"
        return "they add little: without them, those held out are predicted just as well"


def rank_suspects(
    constraints: Constraints, left_out: Floats, answer: Answer
) -> tuple[Suspect, ...]:
    """Return all constraints, the one most likely wrong first.

    `left_out` is the probability of each pair, then of each label, given the others.
    """
    given = ConstraintModel.of(constraints, answer.model.k).reliability
    # Candidates follow wrong constraints that they learn from; held-out ones tell their number.
    rate = max(answer.error_rate, _held_out_errors(answer)[0])
    wrong = probability_wrong(left_out, given, rate)
    # What is said for and against a pair was predicted with the help of its opposite: the two
    # compete, and one of them is wrong.
    keys = np.sort(constraints.table.pairs, axis=1)
    _, question, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    question = question.ravel()
    twice = np.flatnonzero(count[question] == 2)
    first, second = twice[np.argsort(question[twice], kind="stable")].reshape(-1, 2).T
    only_first = wrong[first] * (1 - wrong[second])
    only_second = wrong[second] * (1 - wrong[first])
    total = only_first + only_second
    wrong[first] = np.where(total > 0, only_first / np.maximum(total, 1e-300), 0.5)
    wrong[second] = 1 - wrong[first]
    # Equal probabilities: the less expected one first.
    order = np.lexsort((left_out, -wrong))
    return make_suspects(constraints, order, probability=wrong[order])


def make_report(
    answer: Answer, choice: Choice, suspects: tuple[Suspect, ...], *, labels: Ints
) -> AutoReport:
    """Return what was chosen, and why."""
    prior, weights = answer.view.prior, []
    assert prior is not None
    for one, weight in zip(answer.members, answer.consensus.weights.tolist(), strict=True):
        score = float("nan") if one.held_out is None else _mean_score(answer, one.held_out)
        weights.append(Weight(one.name, one.group.name, weight, score))
    wrong = np.array(list(map(attrgetter("probability"), suspects)))
    score, without, guess = _scores(answer)
    one_of = np.eye(answer.model.k)
    was = one_of[answer.without.argmax(axis=1)]  # the cluster of each sample without constraints
    now = one_of[answer.probability.argmax(axis=1)]
    return AutoReport(
        n_clusters=answer.model.k,
        n_clusters_probability=dict(zip(choice.numbers, choice.probability.tolist(), strict=True)),
        kinds=prior.kinds,
        misfit=float("nan") if prior.misfit is None else prior.misfit.separate,
        scaling=answer.view.name,
        scalings=answer.scalings,
        candidates=tuple(sorted(weights, key=attrgetter("weight"), reverse=True)),
        centre=answer.members[answer.consensus.centre].name,
        score=score,
        score_without=without,
        score_guess=guess,
        noise=max(float(wrong.mean()), _held_out_errors(answer)[1]) if suspects else 0.0,
        n_constraints=len(suspects),
        n_suspects=int((wrong > SUSPICIOUS).sum()),
        n_held_back=answer.n_held_out,
        changed=float((was[:, matching(was, now)] != now).any(axis=1).mean()),
        small_clusters=small_clusters(labels),
        interrupted=answer.interrupted,
    )


def _held_out_errors(answer: Answer) -> tuple[float, float]:
    """Return the rate of errors that explains the held-out constraints, and their share."""
    if not answer.n_held_out:
        return 0.0, 0.0
    held_out = np.array(list(map(attrgetter("held_out"), answer.members)))
    predicted, given = answer.consensus.weights @ held_out, answer.model.reliability
    rate = likelihood(predicted, given)[1]
    return rate, float(probability_wrong(predicted, given, rate).mean())


def _scores(answer: Answer) -> tuple[float, float, float]:
    """Return mean log-likelihoods: of the ensemble, without constraints, and of guessing."""
    model, members = answer.model, answer.members
    if not model.n_constraints or members[0].held_out is None:
        return 0.0, 0.0, 0.0
    held_out, alone = [], np.zeros(len(members))
    for at, one in enumerate(members):
        held_out.append(one.held_out)
        alone[at] = one.prior if one.group == UNSUPERVISED else 0.0
    predicted = np.array(held_out)
    return (
        _mean_score(answer, answer.consensus.weights @ predicted),
        _mean_score(answer, alone / alone.sum() @ predicted),
        guessing_score(model) / model.n_constraints,
    )


def _mean_score(answer: Answer, held_out: Floats) -> float:
    """Return the mean log-likelihood at the error rate that explains it best."""
    given = answer.model.reliability
    rate = likelihood(held_out, given)[1]
    return float(log_likelihood(held_out, given, rate)) / max(answer.model.n_constraints, 1)


def small_clusters(labels: Ints) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return clusters of one or two samples, and these samples."""
    sizes, found = np.bincount(labels), {}
    for c in np.flatnonzero((sizes > 0) & (sizes <= SMALL)).tolist():
        found[c] = tuple(np.flatnonzero(labels == c).tolist())
    return tuple(found.items())


# --- for whoever asks what tells the candidates apart


class Committee(NamedTuple):
    """Candidate partitions of some samples, in the order of the data, and how far each is believed.

    Parameters
    ----------
    names : tuple of str
        Names of the candidates.
    samples : ndarray of shape (m,)
        Samples that were partitioned, ascending: all, or a part of many.
    labels : ndarray of shape (n_candidates, m)
        The partitions.
    weights : ndarray of shape (n_candidates,)
        Weights, adding up to 1.
    evidence : ndarray of shape (n_candidates,) or None
        Log-likelihood of held-out constraints; None if none were held out.
    coordinates : ndarray of shape (m, q)
        Where the samples are.
    """

    names: tuple[str, ...]
    samples: Ints
    labels: Ints
    weights: Floats
    evidence: Floats | None
    coordinates: Floats


def committee_of(answer: Answer, order: Ints | None) -> Committee:
    """Return the candidates of an answer; `order` are the samples in the order of its rows."""
    samples = answer.rows if order is None else order[answer.rows]
    ascending = np.argsort(samples)
    members, given = answer.members, answer.model.reliability
    evidence = None
    if answer.n_held_out:
        held_out = np.array(list(map(attrgetter("held_out"), members)))
        evidence = log_likelihood(held_out, given, least_rate(answer.model.n_constraints))
    labels = np.array(list(map(attrgetter("partition.labels"), members)))
    return Committee(
        tuple(map(attrgetter("name"), members)),
        samples[ascending],
        labels[:, ascending],
        answer.consensus.weights,
        evidence,
        answer.view.coordinates[answer.rows][ascending],
    )
