"""From the samples that were partitioned to all others of a large data set."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from linkwise.auto.learner import fit_learner, log_softmax

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Floats, Ints
    from linkwise.auto.ensemble import Answer
    from linkwise.auto.learner import Learner
    from linkwise.auto.view import View


BLOCK = 20_000  # samples described at a time


def fit_classifier(view: View, rows: Ints, probability: Floats) -> Learner:
    """Return the learner that repeats a soft partition with the fewest errors, each left out."""
    design = view.design(rows, rows)
    rigid, *flexible = view.bases.names
    labels = probability.argmax(axis=1)
    best, lowest = None, np.inf
    for size in range(len(flexible) + 1):
        for more in combinations(flexible, size):
            names = (rigid, *more)
            ridges = [design.ridges[name] for name in names]
            left_out, learner = fit_learner(ridges, names, probability, design.weights)
            loss = float((left_out.argmax(axis=1) != labels).mean())
            if loss < lowest:
                best, lowest = learner, loss
    assert best is not None
    return best


def everywhere(answer: Answer) -> Floats:
    """Return probabilities of all samples, given those of the rows."""
    view, rows = answer.view, answer.rows
    if rows.size == view.n_samples:
        return answer.probability.copy()
    learner = fit_classifier(view, rows, answer.probability)
    probability = np.empty((view.n_samples, view.k))
    for block in blocks(view.n_samples, rows):
        features = view.bases.features(block)
        probability[block] = np.exp(log_softmax(learner.log_probability(features)))
    probability[rows] = answer.probability
    return probability


def blocks(n: int, known: Ints) -> Iterator[Ints]:
    """Yield the samples that are not known, in blocks."""
    rest = np.setdiff1d(np.arange(n), known, assume_unique=True)
    for start in range(0, rest.size, BLOCK):
        yield rest[start : start + BLOCK]
