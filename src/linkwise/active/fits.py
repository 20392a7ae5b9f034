"""Fits: the clusterings of :class:`~linkwise.Auto` under the answers, each found once.

Questions need the candidates of a fit, but not of the newest one: between fits, answers change
their weights. A fit is due after five more answers, later after twenty-five.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.active.answers import constraints_of
from linkwise.active.hypotheses import Beliefs, Hypotheses, as_pairs, told, with_answers
from linkwise.active.numbers import Numbers, rivals, with_two_merged
from linkwise.auto.assign import feasible_labels, likeliest_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Ints
    from linkwise.active.answers import Answer
    from linkwise.active.model import Model
    from linkwise.constraints import Constraints
    from linkwise.constraints.conflict import Suspect

EVERY, RARELY, OFTEN_UNTIL = 5, 25, 25  # answers between fits; up to so many answers
ANCHOR = "without constraints"  # the candidate of `Auto` that is its start
GATE, GATE_UNTIL = 1.5, 30  # log-likelihood that a change has to gain; up to so many answers
KEPT = 8  # fits beside the first


@dataclass(frozen=True, eq=False)
class Fit:
    """A clustering under some answers, and the candidates that it was chosen from."""

    answers: tuple[Answer, ...]
    labels: Ints
    suspects: tuple[Suspect, ...]
    hypotheses: Hypotheses

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.hypotheses.consensus.shape[1])

    def beliefs(self, answers: Sequence[Answer], known: Beliefs | None = None) -> Beliefs:
        """Return what the candidates say after more answers; `known` if it leads there."""
        answers = tuple(answers)
        is_on_the_way = (
            known is not None
            and known.hypotheses is self.hypotheses
            and known.answers == answers[: len(known.answers)]
        )
        if not is_on_the_way or known is None:
            known = Beliefs(self.hypotheses, self.answers, self.hypotheses.weights)
        for answer in answers[len(known.answers) :]:
            known = known.after(answer)
        return known


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

    def after(self, answers: Sequence[Answer]) -> Fit:
        """Return the fit under all the answers, computed if it is not there."""
        answers = tuple(answers)
        with self._computing:
            found = self.known(answers)
            if found is None:
                start = self.after(()) if answers else None
                found = self._fit(answers, start)
                self._keep(found)
            return found

    def _keep(self, fit: Fit) -> None:
        fits = {**self._fits, len(fit.answers): fit}
        for old in sorted(n for n in fits if n)[:-KEPT]:
            del fits[old]
        self._fits = fits  # in one step, for other threads

    def _fit(self, answers: tuple[Answer, ...], start: Fit | None) -> Fit:
        constraints = constraints_of(answers, self.prior, noisy=self.noisy)
        scores = {} if self.numbers is None else self.numbers.scores(answers, constraints)
        k = max(scores, key=lambda number: scores[number]) if scores else None
        model = self.model.fitted(constraints, n_clusters=k)
        probability, labels = model.result_.probability, model.labels_
        is_same_number = start is not None and k in (None, start.n_clusters)
        if start is not None and is_same_number and is_start_better(model, len(answers)):
            probability = self._settled(start, answers)
            labels = self._labels(probability, constraints)
        hypotheses = Hypotheses.of(model.committee_, model.affinity_matrix_, probability, labels)
        if self.numbers is not None and k is not None:
            others = rivals(self.numbers, scores, k, samples=hypotheses.samples)
            hypotheses = hypotheses.beside([*others, *with_two_merged(hypotheses, answers)])
        return Fit(answers, labels, model.suspects_, hypotheses)

    @staticmethod
    def _settled(start: Fit, answers: tuple[Answer, ...]) -> Floats:
        return with_answers(start.hypotheses.consensus + 1e-3, *as_pairs(told(answers)))

    def _labels(self, probability: Floats, constraints: Constraints) -> Ints:
        if self.noisy or not self.model.estimator.hard:
            return likeliest_labels(probability)
        rng = np.random.RandomState(0)
        return feasible_labels(np.log(probability + 1e-12), constraints, rng)


def is_start_better(model: Any, n_answers: int) -> bool:
    """Whether no candidate of a fit predicts held-out answers clearly better than its start."""
    committee = model.committee_
    if n_answers >= GATE_UNTIL or committee.evidence is None or ANCHOR not in committee.names:
        return False
    anchor = committee.evidence[committee.names.index(ANCHOR)]
    return bool(committee.evidence.max() - anchor < GATE)
