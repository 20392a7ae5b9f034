"""The number of clusters, if it is unknown: the one whose candidates explain the answers.

Candidates without answers are found for a few numbers. Each number is as probable as its candidates
make the answers, times a prior around the number that the spectrum shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.active.hypotheses import Beliefs, Hypotheses, Rival
from linkwise.auto.assign import likeliest_labels
from linkwise.auto.n_clusters import least_clusters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Ints
    from linkwise.active.answers import Answer
    from linkwise.active.model import Model
    from linkwise.constraints import Constraints

BELOW, ABOVE = 1, 3  # numbers looked at beside the first one
MORE, MOST_MORE = 2, 12  # numbers added while the largest is the best; how far at most
MOST_OTHERS = 0.5  # weight of the clusterings into other numbers together
STEP = 0.7  # log-probability that each cluster more or less costs


class Numbers:
    """Beliefs of the candidates for some numbers of clusters."""

    def __init__(self, model: Model, prior: Constraints) -> None:
        self.model, self.prior = model, prior
        self._first: int | None = None
        self._beliefs: dict[int, Beliefs] = {}
        self._highest = 0

    @property
    def first(self) -> int:
        """The number of clusters before any answer."""
        if self._first is None:
            self._first = int(self.model.fitted(self.prior).n_clusters_)
            self._highest = self._first + ABOVE
        return self._first

    def scores(self, answers: Sequence[Answer], constraints: Constraints) -> dict[int, float]:
        """Return log-probabilities of numbers of clusters, up to a constant."""
        first = self.first
        n = constraints.n_samples
        lowest = max(2, first - BELOW, least_clusters(constraints, n))
        scores: dict[int, float] = {}
        while True:
            highest = min(max(self._highest, lowest + 1), n)
            for k in range(lowest, highest + 1):
                if k not in scores:
                    scores[k] = self.after(k, answers).log_likelihood - STEP * abs(k - first)
            best = max(scores, key=lambda k: scores[k])
            if best < highest or highest >= min(first + MOST_MORE, n):
                return scores
            self._highest = highest + MORE

    def after(self, k: int, answers: Sequence[Answer]) -> Beliefs:
        """Return what the candidates for `k` clusters say, given the answers."""
        answers = tuple(answers)
        known = self._beliefs.get(k)
        if known is None or known.answers != answers[: len(known.answers)]:
            hypotheses = self._hypotheses(k) if known is None else known.hypotheses
            known = Beliefs(hypotheses, (), hypotheses.weights)
        for answer in answers[len(known.answers) :]:
            known = known.after(answer)
        self._beliefs[k] = known
        return known

    def _hypotheses(self, k: int) -> Hypotheses:
        model = self.model.fitted(self.prior, n_clusters=k)
        found, labels = model.result_.probability, model.labels_
        return Hypotheses.of(model.committee_, model.affinity_matrix_, found, labels)


def rivals(numbers: Numbers, scores: dict[int, float], best: int, *, samples: Ints) -> list[Rival]:
    """Return the clusterings of some samples into other numbers, weighted by probability."""
    total = np.logaddexp.reduce(list(scores.values()))
    others = [k for k in scores if k != best]
    weights = np.exp(np.array([scores[k] for k in others]) - total)
    shown = [likeliest_labels(numbers.after(k, ()).hypotheses.consensus) for k in others]
    return [
        Rival(labels[samples], min(float(weight), MOST_OTHERS / len(others)))
        for labels, weight in zip(shown, weights, strict=True)
    ]
