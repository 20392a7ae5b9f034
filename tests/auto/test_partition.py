"""Soft partitions, and their average around a centre."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from linkwise.auto.consensus import (
    TRUST,
    centred_mean,
    from_labels,
    from_probability,
    matched_mean,
    rand_matrix,
    softened,
)


def test_a_hard_partition_is_trusted_not_quite():
    found = from_labels(np.array([1, 0, 2]), 3)
    P = np.exp(found.log_probability)
    assert_allclose(P.sum(axis=1), 1.0)
    assert_allclose(P.max(axis=1), TRUST)
    assert_array_equal(found.labels, [1, 0, 2])
    assert_allclose(softened(np.zeros(2, int), 1, 0.9), 0.9)  # of one cluster


def test_a_soft_partition_is_never_certain():
    found = from_probability(np.array([[1.0, 0.0]]))
    assert np.isfinite(found.log_probability).all()


def test_the_index_of_every_two_partitions():
    rng = np.random.RandomState(0)
    partitions = [rng.randint(3, size=40) for _ in range(5)] + [np.zeros(40, int)] * 2
    found = rand_matrix([np.eye(3)[labels] for labels in partitions])
    expected = [[adjusted_rand_score(a, b) for a in partitions] for b in partitions]
    assert_allclose(found, expected, atol=1e-12)


def test_an_average_knows_clusters_by_their_members():
    rng = np.random.RandomState(0)
    Q = rng.dirichlet(np.full(3, 0.2), size=30)
    found = matched_mean([Q, Q[:, [1, 2, 0]]], np.array([0.5, 0.5]), Q)
    assert_allclose(found, Q)
    renamed = centred_mean([Q[:, [1, 2, 0]], Q], np.ones(2)).probability
    assert_allclose(renamed[:, [2, 0, 1]], Q)


def test_a_vague_partition_is_no_reference():
    rng = np.random.RandomState(0)
    y = rng.randint(5, size=150)
    for _ in range(5):
        good = [softened(y, 5, 0.9)[:, rng.permutation(5)] for _ in range(2)]
        parts = [rng.dirichlet(np.full(5, 20.0), size=150), *good]
        mean = centred_mean(parts, np.array([0.1, 0.45, 0.45]))
        assert adjusted_rand_score(y, mean.probability.argmax(axis=1)) == 1.0
        assert mean.centre > 0


def test_partitions_unlike_the_centre_are_left_out():
    rng = np.random.RandomState(0)
    y = np.arange(300) % 3
    nearly = np.where(np.arange(300) < 30, (y + 1) % 3, y)
    parts = [softened(z, 3, 0.9) for z in (y, rng.permutation(y), nearly)]
    weights = centred_mean(parts, np.full(3, 1 / 3)).weights
    assert_allclose(weights.sum(), 1.0)
    assert weights[1] < 0.01
    assert min(weights[0], weights[2]) > 0.1
    alike = centred_mean(parts, np.full(3, 1 / 3), power=0.0).weights
    assert_allclose(alike, 1 / 3)


def test_one_partition_is_its_own_average():
    Q = softened(np.array([0, 1]), 2, 0.9)
    mean = centred_mean([Q], np.array([0.2]))
    assert mean.probability is Q
    assert_allclose(mean.weights, 1.0)
