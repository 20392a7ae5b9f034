"""The number of clusters, if it is unknown: the one whose candidates explain the answers.

Candidates without answers are found for a few numbers. Each number is as probable as its candidates
make the answers, times a prior around the number that the spectrum shows. The samples may show more
clusters than there are, when a class has several: then clusters are merged that answers join.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.active.hypotheses import Beliefs, Clustering, Hypotheses, Rival, told
from linkwise.auto.n_clusters import least_clusters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkwise._types import Floats, Ints
    from linkwise.active.answers import Answer
    from linkwise.active.model import Model
    from linkwise.constraints import Constraints

BELOW, ABOVE = 1, 3  # numbers looked at beside the first one
MORE, MOST_MORE = 2, 12  # numbers added while the largest is the best; how far at most
MOST_OTHERS = 0.5  # weight of the clusterings into other numbers together
MERGED, MOST_MERGED = 0.2, 20  # weight of clusterings with two clusters merged; their number
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
        first, n = self.first, constraints.n_samples
        lowest = max(2, first - BELOW, least_clusters(constraints, n))
        scores: dict[int, float] = {}
        while True:
            highest = min(max(self._highest, lowest + 1), n)
            for k in range(lowest, highest + 1):
                if k not in scores:
                    scores[k] = self.after(k, answers).log_likelihood - STEP * abs(k - first)
            best = max(scores, key=lambda k: scores[k])
            if best < highest or highest >= min(first + MOST_MORE, n):
                return self._with_merged(scores, answers)
            self._highest = highest + MORE

    def _with_merged(self, scores: dict[int, float], answers: Sequence[Answer]) -> dict[int, float]:
        """Return scores that know of clusters that belong together."""
        found = dict(scores)
        for k in {self.first, max(scores, key=lambda number: scores[number])} & set(scores):
            hypotheses = self.after(k, ()).hypotheses
            for price, labels in merged(Beliefs(hypotheses, (), hypotheses.weights), answers):
                alone = replace(hypotheses, labels=labels[None], weights=np.ones(1))
                beliefs = Beliefs(alone, (), alone.weights).after_all(answers)
                number = int(labels.max()) + 1
                score = beliefs.log_likelihood - price - STEP * abs(number - self.first)
                found[number] = np.logaddexp(found.get(number, -np.inf), score)
        return found

    def after(self, k: int, answers: Sequence[Answer]) -> Beliefs:
        """Return what the candidates for `k` clusters say, given the answers."""
        answers = tuple(answers)
        known = self._beliefs.get(k)
        if known is None or known.answers != answers[: len(known.answers)]:
            hypotheses = self._hypotheses(k) if known is None else known.hypotheses
            known = Beliefs(hypotheses, (), hypotheses.weights)
        self._beliefs[k] = known.after_all(answers[len(known.answers) :])
        return self._beliefs[k]

    def _hypotheses(self, k: int) -> Hypotheses:
        model = self.model.fitted(self.prior, n_clusters=k)
        return Hypotheses.of(model, Clustering(model.labels_, model.result_.probability))


def merged(beliefs: Beliefs, answers: Sequence[Answer]) -> Iterator[tuple[float, Ints]]:
    """Yield the clusters that are shown, two more of them merged each time, and what it costs.

    Those are merged that most answers join. One of many pairs was chosen each time: the price is
    the logarithm of their number.
    """
    labels, joined = beliefs.hypotheses.shown, answers_between(beliefs, answers)
    k, price = len(joined), 0.0
    while k > 2:
        np.fill_diagonal(joined, 0)
        a, b = sorted(map(int, np.unravel_index(joined.argmax(), joined.shape)))
        if joined[a, b] <= 0:
            return
        price += float(np.log(k * (k - 1) / 2))
        labels = np.where(labels == b, a, labels)
        labels, k = labels - (labels > b), k - 1
        joined[a] += joined[b]
        joined[:, a] += joined[:, b]
        joined = np.delete(np.delete(joined, b, 0), b, 1)
        yield price, labels


def answers_between(beliefs: Beliefs, answers: Sequence[Answer]) -> Floats:
    """Return how many answers join every two clusters that are shown, less those that part them."""
    labels = beliefs.hypotheses.shown
    joined = np.zeros((int(labels.max()) + 1,) * 2)
    for one in told(answers):
        i, j = beliefs.places(one[:2])
        if min(i, j) >= 0:
            joined[labels[[i, j]], labels[[j, i]]] += 1 if one.answer == "same" else -1
    return joined


def with_two_merged(hypotheses: Hypotheses, answers: Sequence[Answer]) -> list[Rival]:
    """Return the clustering that is shown with any two clusters merged that no answer parts."""
    labels = hypotheses.shown
    joined = answers_between(Beliefs(hypotheses, (), hypotheses.weights), answers)
    pairs = [(a, b) for a, b in np.argwhere(np.triu(joined >= 0, 1)).tolist()]
    if not pairs or len(joined) < 3:
        return []
    kept = sorted(pairs, key=lambda pair: -joined[pair])[:MOST_MERGED]
    weight = MERGED / len(kept)
    return [Rival(np.where(labels == b, a, labels), weight) for a, b in kept]


def rivals(numbers: Numbers, scores: dict[int, float], best: int, *, samples: Ints) -> list[Rival]:
    """Return the clusterings of some samples into other numbers, weighted by probability."""
    total = np.logaddexp.reduce(list(scores.values()))
    others = [k for k in scores if k != best]
    weights = np.exp(np.array([scores[k] for k in others]) - total)
    shown = [numbers.after(k, ()).hypotheses.clustering.labels for k in others]
    return [
        Rival(labels[samples], min(float(weight), MOST_OTHERS / len(others)))
        for labels, weight in zip(shown, weights, strict=True)
    ]
