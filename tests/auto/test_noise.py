"""Constraints that may be wrong: rates of errors, and what they make of a prediction."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from linkwise.auto import constraint_model as noise
from linkwise.auto.constraint_model import (
    Reliability,
    likelihood,
    log_likelihood,
    noisy,
    probability_wrong,
)


def given(belief):
    """Return pairs of some belief."""
    return Reliability(belief, np.ones(belief.size))


def test_the_rate_of_wrong_pairs_is_found():
    rng = np.random.RandomState(0)
    for wrong in (0.0, 0.1, 0.2):
        predicted = np.where(rng.uniform(size=4000) < wrong, 0.001, 0.999)
        value, rate = likelihood(predicted, given(np.ones(4000)))
        assert abs(rate - wrong) <= 0.01
        expected = np.log((1 - rate) * predicted + rate * (1 - predicted)).sum()
        assert_allclose(value, expected + noise.PRIOR_PAIRS * np.log1p(-rate))


def test_faint_pairs_tell_candidates_nothing_apart():
    good, _ = likelihood(np.full(10, 0.99), given(np.full(10, 1e-12)))
    bad, _ = likelihood(np.full(10, 0.01), given(np.full(10, 1e-12)))
    assert_allclose(good, bad)
    least = min(noise.RATES)
    assert_allclose(good, 10 * np.log(0.5) + noise.PRIOR_PAIRS * np.log1p(-least))


def test_a_certain_prediction_of_a_certain_pair_is_not_infinite():
    assert np.isfinite(log_likelihood(np.zeros(3), given(np.ones(3)), 0.0))
    assert_allclose(noisy(np.array([0.0, 1.0]), given(np.ones(2)), 0.1), [0.1, 0.9])


def test_the_probability_to_be_wrong_is_the_rule_of_bayes():
    predicted, belief, rate = np.array([0.9, 0.2, 0.5]), np.array([1.0, 1.0, 0.4]), 0.1
    flip = belief * rate + (1 - belief) / 2
    expected = flip * (1 - predicted) / (flip * (1 - predicted) + (1 - flip) * predicted)
    assert_allclose(probability_wrong(predicted, given(belief), rate), expected)
    assert_allclose(probability_wrong(np.full(1, 0.5), given(np.ones(1)), 0.1), 0.1)
