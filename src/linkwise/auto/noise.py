"""Constraints that may be wrong: the likelihood of predictions under a rate of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.auto.propagation import flip_rate

if TYPE_CHECKING:
    from linkwise._types import Floats


RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
PRIOR_PAIRS = 20.0  # correct constraints that the prior of the error rate counts for


def noisy(predicted: Floats, belief: Floats, rate: float) -> Floats:
    """Return predictions of constraints of which some say the opposite of what is true."""
    flip = flip_rate(belief, rate)
    return (1 - flip) * predicted + flip * (1 - predicted)


def log_likelihood(predicted: Floats, belief: Floats, rate: float) -> Floats:
    """Return the log-likelihood of the constraints, at a rate of errors."""
    total: Floats = np.log(np.maximum(noisy(predicted, belief, rate), 1e-300)).sum(axis=-1)
    return total


def likelihood(predicted: Floats, belief: Floats) -> tuple[float, float]:
    """Return the log-likelihood at the rate of errors that explains it best, and that rate."""
    values = [
        float(log_likelihood(predicted, belief, rate)) + PRIOR_PAIRS * np.log1p(-rate)
        for rate in RATES
    ]
    best = int(np.argmax(values))
    return values[best], RATES[best]


def probability_wrong(predicted: Floats, belief: Floats, rate: float) -> Floats:
    """Return the probability of each constraint to be wrong, given its prediction by others."""
    flip = flip_rate(belief, rate)
    wrong: Floats = flip * (1 - predicted) / np.maximum(noisy(predicted, belief, rate), 1e-300)
    return wrong
