"""Constraints that may be wrong: the likelihood of predictions under a rate of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.propagation import flip_rate

if TYPE_CHECKING:
    from linkwise._types import Floats


RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
PRIOR_PAIRS = 20.0  # correct constraints that the prior of the error rate counts for


class Reliability(NamedTuple):
    """How far constraints can be trusted: pairs, then labels."""

    belief: Floats
    n_wrong: Floats  # ways of being wrong: 1 for a pair, one for each other cluster for a label

    @property
    def size(self) -> int:
        """Number of constraints."""
        return self.belief.size


def noisy(predicted: Floats, given: Reliability, rate: float) -> Floats:
    """Return predictions of constraints of which some say another thing than what is true."""
    flip = flip_rate(given.belief, rate)
    return (1 - flip) * predicted + flip * (1 - predicted) / given.n_wrong


def log_likelihood(predicted: Floats, given: Reliability, rate: float) -> Floats:
    """Return the log-likelihood of the constraints, at a rate of errors."""
    total: Floats = np.log(np.maximum(noisy(predicted, given, rate), 1e-300)).sum(axis=-1)
    return total


def likelihood(predicted: Floats, given: Reliability) -> tuple[float, float]:
    """Return the log-likelihood at the rate of errors that explains it best, and that rate."""
    values = [
        float(log_likelihood(predicted, given, rate)) + PRIOR_PAIRS * np.log1p(-rate)
        for rate in RATES
    ]
    best = int(np.argmax(values))
    return values[best], RATES[best]


def probability_wrong(predicted: Floats, given: Reliability, rate: float) -> Floats:
    """Return the probability of each constraint to be wrong, given its prediction by others."""
    flip = flip_rate(given.belief, rate)
    by_error = flip * (1 - predicted) / given.n_wrong
    wrong: Floats = by_error / np.maximum(noisy(predicted, given, rate), 1e-300)
    return wrong
