"""Micro-clusters, merged the way the pairs want it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score

from linkwise.auto import coarse_cut
from linkwise.auto.coarse_cut import MicroClusters, Small

NO_PAIRS = np.zeros((0, 2), np.intp), np.zeros(0)


def merged(rows, pairs, *, factor):
    small = MicroClusters.of(rows, 2, np.random.RandomState(0), factor=factor)
    return small.merged(*pairs)


def cost(small, group, k):
    """Return the cost of a grouping, written as in the formula, up to a constant."""
    total = 0.0
    for c in range(k):
        inside = group == c
        if inside.any():
            mean = np.average(small.centers[inside], axis=0, weights=small.mass[inside])
            total += (small.mass[inside] * ((small.centers[inside] - mean) ** 2).sum(1)).sum()
            total += 0.5 * small.apart[np.ix_(inside, inside)].sum()
    return total


@pytest.mark.parametrize("seed", range(3))
def test_a_descent_ends_where_no_single_move_gains(seed):
    rng = np.random.RandomState(seed)
    n, k = 12, 3
    apart = rng.normal(size=(n, n)) * 3
    small = Small(
        rng.normal(size=(n, 2)), rng.uniform(1, 5, n), np.triu(apart, 1) + np.triu(apart, 1).T
    )
    start = np.arange(n) % k
    group, value = coarse_cut._lower_inertia(small, start, k)
    assert_allclose(value, cost(small, group, k))
    assert value <= cost(small, start, k)
    for a, c in product(range(n), range(k)):
        moved = group.copy()
        moved[a] = c
        if np.unique(moved).size == k:
            assert cost(small, moved, k) >= value - 1e-6


def four_blobs():
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(4), 30)
    return rng.normal(size=(120, 2)) * 0.3 + np.array([[0, 0], [0, 3], [4, 0], [4, 3]])[y], y


def test_pairs_decide_which_blobs_belong_together():
    # By distance the two on the left are one cluster; the pairs want the two below.
    X, blob = four_blobs()
    below = blob % 2
    pairs = np.array([(i, j) for i in range(0, 120, 7) for j in range(3, 120, 11) if i != j])
    same = below[pairs[:, 0]] == below[pairs[:, 1]]
    by_pairs = merged(X, (pairs, np.where(same, 1.0, -1.0)), factor=4)
    assert adjusted_rand_score(by_pairs, below) > 0.95
    without = merged(X, NO_PAIRS, factor=4)
    assert adjusted_rand_score(without, blob // 2) > 0.95


def test_the_same_pairs_give_the_same_clusters():
    X, _ = four_blobs()
    small = MicroClusters.of(X, 2, np.random.RandomState(0), factor=4)
    pairs = np.array([(0, 40), (0, 100)]), np.array([1.0, -1.0])
    assert_allclose(small.merged(*pairs), small.merged(*pairs))


def test_many_rows_follow_the_centres_of_some(monkeypatch):
    X, blob = four_blobs()
    monkeypatch.setattr(coarse_cut, "SAMPLE", 40)
    monkeypatch.setattr(coarse_cut, "SAMPLE_EACH", 1)
    assert adjusted_rand_score(merged(X, NO_PAIRS, factor=2), blob // 2) == 1.0


def test_fewer_distinct_rows_than_small_clusters():
    X = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0)
    labels = merged(X, NO_PAIRS, factor=4)
    assert labels.tolist() in ([0] * 8 + [1] * 4, [1] * 8 + [0] * 4)
    everywhere = merged(np.zeros((6, 2)), NO_PAIRS, factor=2)
    assert set(everywhere) == {0}
