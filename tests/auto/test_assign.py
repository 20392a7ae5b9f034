"""From probabilities to labels, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linkwise import ConflictError, Constraints
from linkwise.auto.consensus import feasible_labels, in_order, likeliest_labels


def best_cost(log_p, known):
    n, k = log_p.shape
    return min(
        -sum(log_p[i, z[i]] for i in range(n))
        for z in product(range(k), repeat=n)
        if len(set(z)) == k and known.n_violated(np.array(z)) == 0
    )


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_the_likeliest_feasible_labels(k, seed):
    rng = np.random.RandomState(seed)
    n = 8
    log_p = np.log(rng.dirichlet(np.full(k, 0.5), size=n) + 1e-3)
    truth = np.concatenate((np.arange(k), rng.randint(k, size=n - k)))
    known = Constraints.sample(truth, 7, random_state=seed)
    labels = feasible_labels(log_p, known, np.random.RandomState(0))
    assert known.n_violated(labels) == 0
    assert_allclose(-log_p[np.arange(n), labels].sum(), best_cost(log_p, known), atol=1e-9)


def test_labels_that_are_feasible_already_stay():
    rng = np.random.RandomState(0)
    p = rng.dirichlet(np.full(3, 0.1), size=60)
    labels = p.argmax(axis=1)
    known = Constraints.sample(labels, 40, random_state=0)
    assert_array_equal(feasible_labels(np.log(p + 1e-12), known, rng), labels)


def test_impossible_constraints_are_proved():
    ring = Constraints(6, cannot_link=[(0, 1), (1, 2), (0, 2)])
    with pytest.raises(ConflictError, match="odd"):
        feasible_labels(np.zeros((6, 2)), ring, np.random.RandomState(0))


def test_no_cluster_stays_empty():
    p = np.array([[0.9, 0.1, 0.0], [0.8, 0.15, 0.05], [0.7, 0.1, 0.2], [0.6, 0.4, 0.0]])
    assert likeliest_labels(p).tolist() == [0, 0, 2, 1]
    assert set(feasible_labels(np.log(p + 1e-9), Constraints(4), np.random.RandomState(0))) == {
        0,
        1,
        2,
    }


def test_more_clusters_than_samples():
    assert sorted(likeliest_labels(np.full((2, 3), 1 / 3))) == [0, 1]


def test_clusters_are_numbered_by_their_first_sample():
    labels = np.array([2, 2, 0, 1, 0])
    order = in_order(labels, Constraints(5), 4)
    assert order.tolist() == [2, 0, 1, 3]  # the empty one last
    assert np.argsort(order)[labels].tolist() == [0, 0, 1, 2, 1]


def test_clusters_have_the_numbers_of_their_labels():
    labels = np.array([2, 2, 0, 1, 0])
    known = Constraints.from_labels([1, -1, 0, -1, -1])
    assert np.argsort(in_order(labels, known, 3))[labels].tolist() == [1, 1, 0, 2, 0]
    large = Constraints.from_labels([70, -1, 5, -1, -1])  # no numbers of clusters
    assert np.argsort(in_order(labels, large, 3))[labels].tolist() == [1, 1, 0, 2, 0]
