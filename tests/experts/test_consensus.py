"""Consensus: weights by likelihood, clusters matched before they are averaged."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from linkwise.experts import consensus
from linkwise.experts.consensus import likelihood, matching, merge, votes


def soft(labels, k, trust=0.9):
    return np.where(np.eye(k)[labels] > 0, trust, (1 - trust) / (k - 1))


def test_matching_undoes_a_permutation():
    Q = soft(np.array([0, 0, 1, 2, 2, 1]), 3)
    order = np.array([1, 2, 0])
    assert_array_equal(Q[:, order][:, matching(Q[:, order], Q)], Q)


def test_names_of_clusters_do_not_matter():
    labels = np.array([0, 0, 1, 1, 2, 2])
    one, two = soft(labels, 3), soft(np.array([0, 0, 1, 2, 2, 2]), 3)
    weights, rates = np.array([0.6, 0.4]), np.array([0.05, 0.02])
    straight = merge([one, two], weights, rates)
    renamed = merge([one, two[:, [2, 0, 1]]], weights, rates)
    assert_allclose(straight.probability, renamed.probability)
    assert_allclose(straight.probability.sum(axis=1), 1.0)


def test_votes_are_exponential_in_the_likelihood():
    weights = votes(np.array([0.0, -consensus.TEMPERATURE, -1e9]))
    assert_allclose(weights[0] / weights[1], np.e)
    assert weights[2] == 0.0
    assert_allclose(weights.sum(), 1.0)
    colder = votes(np.array([0.0, -3.0]), np.array([1.0, 2.0]), 3.0)
    assert_allclose(colder[0] / colder[1], np.e / 2)


def test_noise_is_the_geometric_mean_of_the_rates():
    Q = soft(np.array([0, 1]), 2)
    assert_allclose(merge([Q, Q], np.full(2, 0.5), np.array([0.01, 0.04])).noise, 0.02)


def test_the_rate_of_wrong_pairs_is_found():
    rng = np.random.RandomState(0)
    for wrong in (0.0, 0.1, 0.2):
        said = np.where(rng.uniform(size=4000) < wrong, 0.001, 0.999)
        value, rate = likelihood(said, np.ones(4000))
        assert abs(rate - wrong) <= 0.01
        flip = rate
        expected = np.log((1 - flip) * said + flip * (1 - said)).sum()
        assert_allclose(value, expected + consensus.PRIOR_PAIRS * np.log1p(-rate))


def test_faint_pairs_tell_candidates_nothing_apart():
    good, _ = likelihood(np.full(10, 0.99), np.full(10, 1e-12))
    bad, _ = likelihood(np.full(10, 0.01), np.full(10, 1e-12))
    assert_allclose(good, bad)
    assert_allclose(good, 10 * np.log(0.5) + 20 * np.log1p(-0.005))
