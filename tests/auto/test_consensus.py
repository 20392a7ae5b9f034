"""Consensus: weights by likelihood, clusters matched before they are averaged."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linkwise.auto import consensus
from linkwise.auto.consensus import likelihood, matching, merge, shares, votes


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
    colder = votes(np.array([0.0, -3.0]), 3.0)
    assert_allclose(colder[0] / colder[1], np.e)


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


def best_mixture(said, belief, prior, n_rounds=200_000):
    """The same objective, by expectation maximisation until nothing moves any more."""
    before = prior / prior.sum()
    noise = max(likelihood(before @ said, belief)[1], consensus.LEAST_RATE)
    flip = belief * noise + (1 - belief) / 2
    told = (1 - flip) * said + flip * (1 - said)
    weights = before
    for _ in range(n_rounds):
        owed = weights[:, None] * told
        counts = (owed / owed.sum(axis=0)).sum(axis=1) + consensus.PRIOR_WEIGHT * before
        last, weights = weights, counts / counts.sum()
        if np.abs(weights - last).max() < 1e-11:
            break
    return weights


@pytest.mark.parametrize(("m", "differ"), [(1, 1.0), (7, 1.0), (60, 1.0), (2000, 0.01)])
def test_shares_maximise_the_likelihood_of_the_mixture(m, differ):
    rng = np.random.RandomState(m)
    # The last case: parts that hardly differ, where steps are small long before the maximum.
    said = np.clip(rng.beta(0.5, 0.5, size=m) + differ * rng.normal(size=(4, m)), 0.0, 1.0)
    belief = np.where(rng.uniform(size=m) < 0.3, rng.uniform(size=m), 1.0)
    prior = rng.uniform(0.2, 2.0, size=4)
    found = shares(said, belief, prior)
    assert_allclose(found.sum(), 1.0)
    assert_allclose(found, best_mixture(said, belief, prior), atol=1e-3)


def test_shares_are_the_prior_where_nothing_is_known():
    prior = np.array([1.0, 3.0])
    assert_allclose(shares(np.zeros((2, 0)), np.zeros(0), prior), [0.25, 0.75])
    said = np.array([[0.9] * 50, [0.1] * 50])
    assert_allclose(shares(said, np.zeros(50), prior), [0.25, 0.75], atol=1e-4)


def test_many_pairs_overrule_the_prior():
    said = np.array([[0.5] * 400, [0.98] * 400])
    found = shares(said, np.ones(400), np.array([9.0, 1.0]))
    assert found[1] > 0.95
    assert shares(said[:, :2], np.ones(2), np.array([9.0, 1.0]))[1] < 0.3


def test_a_part_that_knows_something_else_keeps_its_share():
    # The first knows 110 of 200 pairs, the second the other 90: by likelihood it would be unheard.
    knows = np.arange(200) < 110
    said = np.where(np.array([knows, ~knows]), 0.95, 0.3)
    found = shares(said, np.ones(200), np.ones(2))
    assert 0.35 < found[1] < found[0]
    scores = np.array([likelihood(row, np.ones(200))[0] for row in said])
    assert votes(scores, 2.0)[1] < 0.01
