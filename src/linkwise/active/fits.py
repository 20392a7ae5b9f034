"""Fits: the clusterings of :class:`~linkwise.Auto` under the answers, each found once.

Questions need the candidates of a fit, but not of the newest one: between fits, answers change
their weights. A fit is due after five more answers, later after twenty-five.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.active.agreement import agreed
from linkwise.active.answers import constraints_of
from linkwise.active.doubts import doubts
from linkwise.active.hypotheses import (
    EPS,
    Beliefs,
    Clustering,
    Hypotheses,
    as_pairs,
    share_moved,
    told,
    with_answers,
)
from linkwise.active.numbers import Numbers, rivals, with_two_merged
from linkwise.auto.consensus import TRUST, feasible_labels, likeliest_labels, softened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Ints
    from linkwise.active.answers import Answer
    from linkwise.active.model import Model
    from linkwise.auto import Auto
    from linkwise.auto.report import Committee
    from linkwise.constraints import Constraints
    from linkwise.constraints.conflict import Suspect

EVERY, RARELY, OFTEN_UNTIL = 5, 25, 25  # answers between fits; up to so many answers
ANCHOR = "without constraints"  # the candidate of `Auto` that is its start
GATE, GATE_UNTIL = 1.5, 30  # log-likelihood that a change has to gain; up to so many answers
LEAP = 0.1  # share of samples that moves only if the answers gain as much
KEPT = 8  # fits beside the first


@dataclass(frozen=True, eq=False)
class Fit:
    """A clustering under some answers, and the candidates that it was chosen from."""

    answers: tuple[Answer, ...]
    suspects: tuple[Suspect, ...]
    candidates: Hypotheses
    _lock: Any = field(default_factory=Lock, init=False, repr=False)

    def __reduce__(self) -> tuple[type[Fit], tuple[Any, ...]]:
        """Leave out the lock, and what can be worked out again."""
        return Fit, (self.answers, self.suspects, self.candidates)

    @property
    def hypotheses(self) -> Hypotheses:
        """The candidates and, for questions only, doubts."""
        if not self.answers:  # the candidates without any are different enough
            return self.candidates
        with self._lock:  # else what is forgotten meanwhile comes back
            return self._doubted

    @cached_property
    def _doubted(self) -> Hypotheses:
        return self.candidates.doubted(doubts(self.candidates, self.answers))

    @property
    def labels(self) -> Ints:
        """The clustering."""
        return self.candidates.clustering.labels

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.candidates.clustering.probability.shape[1])

    @property
    def shown(self) -> Beliefs:
        """What the candidates say under its answers, before there are doubts."""
        candidates = self.candidates
        return Beliefs(candidates, self.answers, candidates.weights, n_fitted=len(self.answers))

    def forget(self) -> None:
        """Give memory back."""
        with self._lock:
            self.candidates.forget()
            if "_doubted" in self.__dict__:
                self._doubted.forget()

    def beliefs(self, answers: Sequence[Answer], known: Beliefs | None = None) -> Beliefs:
        """Return what the candidates say after more answers; `known` if it leads there."""
        answers = tuple(answers)
        is_on_the_way = (
            known is not None
            and known.hypotheses is self.hypotheses
            and known.answers == answers[: len(known.answers)]
        )
        if not is_on_the_way or known is None:
            n, weights = len(self.answers), self.hypotheses.weights
            known = Beliefs(self.hypotheses, self.answers, weights, n_fitted=n)
        return known.after_all(answers[len(known.answers) :])


def due_after(n_answers: int) -> int:
    """Return the number of answers, at most `n_answers`, at which the last fit was due."""
    return n_answers - n_answers % (EVERY if n_answers < OFTEN_UNTIL else RARELY)


class Fits:
    """The fits of a session, by the number of answers.

    Threads may ask for fits at the same time: one of them computes, the others wait for it.

    Parameters
    ----------
    model : Model
        The estimator, an `Auto`, and the data.
    prior : Constraints
        What was known before the first answer.
    noisy : bool
        Whether answers may be wrong.
    """

    def __init__(self, model: Model, prior: Constraints, *, noisy: bool) -> None:
        self.model, self.prior, self.noisy = model, prior, noisy
        self.numbers = Numbers(model, prior) if model.chooses_number else None
        self._fits: dict[int, Fit] = {}
        self._recalled: dict[int, tuple[tuple[Answer, ...], Ints]] = {}
        self._computing = RLock()

    def known(self, answers: Sequence[Answer]) -> Fit | None:
        """Return the fit under all the answers, if it was computed."""
        found = self._fits.get(len(answers))
        return found if found is not None and found.answers == tuple(answers) else None

    def latest(self, answers: Sequence[Answer]) -> Fit:
        """Return the fit under the most of the answers, from the first one on."""
        answers = tuple(answers)
        for n, fit in sorted(self._fits.items(), reverse=True):
            if fit.answers == answers[:n]:
                return fit
        return self.after(())

    def recall(self, answers: Sequence[Answer], labels: Ints) -> None:
        """Take what was shown after some answers from a file, if a later fit needs it."""
        n = len(answers)
        if 0 < n == due_after(n) < GATE_UNTIL:
            self._recalled[n] = tuple(answers), labels

    def after(self, answers: Sequence[Answer]) -> Fit:
        """Return the fit under all the answers, computed if it is not there."""
        answers = tuple(answers)
        found = self.known(answers)
        if found is not None:  # without waiting for another one that is being computed
            return found
        with self._computing:
            found = self.known(answers)
            if found is None:
                found = self._fit(answers)
                self._keep(found)
            return found

    def _keep(self, fit: Fit) -> None:
        for earlier in self._fits.values():
            earlier.forget()
        n_answers = len(fit.answers)
        fits = {n: one for n, one in self._fits.items() if n != n_answers}
        fits[n_answers] = fit  # the newest last: after many answers were taken back, it stays
        for old in [n for n in fits if n][:-KEPT]:
            del fits[old]
        self._fits = fits  # in one step, for other threads

    def _fit(self, answers: tuple[Answer, ...]) -> Fit:
        constraints = constraints_of(answers, self.prior, noisy=self.noisy)
        scores = {} if self.numbers is None else self.numbers.scores(answers, constraints)
        k = max(scores, key=lambda number: scores[number]) if scores else None
        model = self.model.fitted(constraints, n_clusters=k)
        shown = Clustering(model.labels_, model.result_.probability)
        together = agreed(model.committee_, shown.probability, n_constraints(constraints))
        if together is not None:
            shown = self._settled(together, answers, constraints)
        hypotheses = Hypotheses.of(model, shown)
        better = self._better(model, hypotheses, answers)
        if better is not None:
            hypotheses = Hypotheses.of(model, self._settled(better, answers, constraints))
        if self.numbers is not None and k is not None:
            others = rivals(self.numbers, scores, k, samples=hypotheses.samples)
            hypotheses = hypotheses.beside([*others, *with_two_merged(hypotheses, answers)])
        return Fit(answers, model.suspects_, hypotheses)

    def _better(
        self, model: Auto, hypotheses: Hypotheses, answers: tuple[Answer, ...]
    ) -> Floats | None:
        """Return the probabilities of an earlier clustering if few answers speak against it."""
        if not 0 < len(answers) < GATE_UNTIL:
            return None
        k = model.n_clusters_
        start = self.after(()).candidates.clustering
        if start.probability.shape[1] == k and is_start_better(model.committee_):
            return start.probability + EPS
        before = self._shown_before(answers)
        if int(before.max()) + 1 == k and is_idle_leap(hypotheses, before, answers):
            return softened(before, k, TRUST)
        return None

    def _shown_before(self, answers: tuple[Answer, ...]) -> Ints:
        """Return what was shown after the fit before."""
        last = answers[: due_after(len(answers) - 1)]
        recalled = self._recalled.get(len(last))
        if recalled is not None and recalled[0] == last:
            return recalled[1]
        return self.after(last).labels

    def _settled(
        self, probability: Floats, answers: tuple[Answer, ...], constraints: Constraints
    ) -> Clustering:
        """Return a clustering with the samples in answers where the answers say."""
        given = with_answers(probability, *as_pairs(told(answers)))
        return Clustering(self._labels(given, constraints), given)

    def _labels(self, probability: Floats, constraints: Constraints) -> Ints:
        if self.noisy or not self.model.estimator.hard:
            return likeliest_labels(probability)
        rng = np.random.RandomState(0)
        return feasible_labels(np.log(probability + 1e-12), constraints, rng)


def n_constraints(constraints: Constraints) -> int:
    """Return the number of pairs and labels."""
    n_labels = 0 if constraints.labels is None else int((constraints.labels >= 0).sum())
    return constraints.n_pairs + n_labels


def is_start_better(committee: Committee) -> bool:
    """Whether no candidate predicts held-out answers clearly better than the one without any."""
    if committee.evidence is None or ANCHOR not in committee.names:
        return False
    anchor = committee.evidence[committee.names.index(ANCHOR)]
    return bool(committee.evidence.max() - anchor < GATE)


def is_idle_leap(hypotheses: Hypotheses, before: Ints, answers: Sequence[Answer]) -> bool:
    """Whether samples would move, though the answers are hardly explained better then.

    The more samples move, the more the answers have to gain.
    """
    now = hypotheses.clustering.labels
    moved = share_moved(now, before)
    if moved == 0:
        return False
    gain = hypotheses.explanation(now, answers) - hypotheses.explanation(before, answers)
    return gain < GATE * min(moved / LEAP, 1.0)
