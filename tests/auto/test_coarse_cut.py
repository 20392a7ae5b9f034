"""Coarse cuts: micro-clusters, grouped by a low normalised cut and by the pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from linkwise._kernels import new_stream
from linkwise.auto import coarse_cut
from linkwise.auto.coarse_cut import Clusters, CoarseCut, Level, contracted, split_to
from linkwise.datasets import make_xor
from linkwise.graph import Affinity
from linkwise.linalg.embedding import spectral_embedding

NO_PAIRS = np.zeros((0, 2), np.intp), np.zeros(0)


def random_graph(n, seed, density=0.3):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return W + W.T


def level_of(W, labels):
    return Level(labels, contracted(W, labels))


def random_pairs(n, m, seed):
    rng = np.random.RandomState(seed)
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    return pairs, rng.uniform(0.5, 1.0, m) * rng.choice([-1, 1], m)


def ncut(W, labels, k):
    """Return the normalised cut; a cluster without volume counts 1."""
    total = 0.0
    for c in range(k):
        volume = W[labels == c].sum()
        total += W[np.ix_(labels == c, labels != c)].sum() / volume if volume > 0 else 1.0
    return total


def violated_weight(labels, pairs, weight):
    total = 0.0
    for (i, j), w in zip(pairs, weight, strict=True):
        if (labels[i] == labels[j]) != (w > 0):
            total += abs(w)
    return total


def value_of_separation(level, pairs, weight, price):
    """Return the constant that the search leaves out: what all pairs cost, if kept apart."""
    inside = level.labels[pairs[:, 0]] == level.labels[pairs[:, 1]]
    must, cannot = weight > 0, weight < 0
    return price * (weight[must & ~inside].sum() - weight[cannot & inside].sum())


def unit_embedding(W, q):
    V = spectral_embedding(csr_array(W), q, np.random.RandomState(0)).vectors
    return V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300)


def rings(n_each, n_rings):
    """Return the graph of separate cycles."""
    n = n_each * n_rings
    W = np.zeros((n, n))
    for i in range(n):
        j = i // n_each * n_each + (i + 1) % n_each
        W[i, j] = W[j, i] = 1.0
    return W


@pytest.mark.parametrize("as_graph", [np.asarray, csr_array])
def test_the_contracted_graph_is_the_product_with_indicators(as_graph):
    W = random_graph(30, 0)
    labels = np.random.RandomState(0).permutation(np.arange(30) % 7)
    H = np.eye(7)[labels]
    found = contracted(as_graph(W), labels)
    assert_allclose(found, H.T @ W @ H)
    assert found.flags.c_contiguous
    assert found.dtype == np.float64


@pytest.mark.parametrize("seed", range(5))
def test_a_descent_ends_where_no_single_move_gains(seed):
    n, k, price = 60, 4, 0.2
    W = random_graph(n, seed)
    pairs, weight = random_pairs(n, 20, seed)
    level = level_of(W, np.arange(n) % 15)
    group = np.random.RandomState(seed).permutation(np.arange(15) % k)

    def cost(group):
        labels = group[level.labels]
        return ncut(W, labels, k) + price * violated_weight(labels, pairs, weight)

    before = cost(group)
    clusters = Clusters.empty(15, k)._replace(group=group)
    value = coarse_cut._descend(level.penalised(pairs, weight, price), clusters)
    lowest = cost(group)
    assert_allclose(value + value_of_separation(level, pairs, weight, price), lowest)
    assert lowest <= before
    losses = map(coarse_cut._loss.__wrapped__, clusters.inside, clusters.volume)
    assert clusters.loss.tolist() == list(losses)  # kept up to date, to the last bit
    for a, c in product(range(15), range(k)):
        moved = group.copy()
        moved[a] = c
        if np.unique(moved).size == k:
            assert cost(moved) >= lowest - 1e-8


def test_a_search_finds_the_best_of_all_groupings():
    k, price = 3, 0.1
    W = random_graph(32, 1)
    pairs, weight = random_pairs(32, 10, 1)
    level = level_of(W, np.arange(32) % 8)

    def cost(group):
        labels = group[level.labels]
        return ncut(W, labels, k) + price * violated_weight(labels, pairs, weight)

    groupings = (np.array(g) for g in product(range(k), repeat=8) if len(set(g)) == k)
    found = CoarseCut((level, level), k, seed=0, start=None).partitions(pairs, weight, price)[0]
    assert_allclose(cost(found[:8]), min(cost(g) for g in groupings))


@pytest.mark.parametrize("seed", range(8))
def test_split_and_merge_changes_three_clusters_at_most(seed):
    k = 4
    level = level_of(random_graph(40, seed), np.arange(40) % 20)
    graph = level.penalised(*NO_PAIRS, 0.0)
    before = np.arange(20) % k
    after = before.copy()
    clusters = Clusters.empty(20, k)._replace(group=after)
    coarse_cut._split_merge(graph, clusters, new_stream(seed))
    assert set(after) == set(range(k))
    same = [c for c in range(k) if np.array_equal(np.flatnonzero(after == c), np.arange(c, 20, k))]
    assert len(same) == k - 3
    merged = [c for c in range(k) if np.unique(before[after == c]).size == 2]
    assert len(merged) == 1


def test_four_pairs_tell_which_corners_belong_together():
    X, y = make_xor(40, random_state=0)
    W = Affinity().fit_transform(X)
    corner = np.arange(160) // 40
    pairs = np.array([[0, 80], [40, 120], [0, 40], [80, 120]])
    weight = np.array([1.0, 1.0, -1.0, -1.0])
    cut = CoarseCut.of(W, unit_embedding(W, 4), 2, rng=np.random.RandomState(0))
    for labels in cut.partitions(pairs, weight, 0.2):
        assert adjusted_rand_score(labels, y) == 1.0
    for labels in cut.partitions(*NO_PAIRS, 0.0):
        assert np.unique(corner * 2 + labels).size == 4  # no corner is cut


def test_the_search_begins_with_the_given_partition():
    W = rings(20, 6)
    truth = np.arange(120) // 20 % 3  # any grouping of six components has cut 0
    embedding = unit_embedding(W, 6)
    cut = CoarseCut.of(W, embedding, 3, rng=np.random.RandomState(0), start=truth)
    for labels in cut.partitions(*NO_PAIRS, 0.0):
        assert adjusted_rand_score(labels, truth) == 1.0


def test_the_same_seed_gives_the_same_partitions():
    W = random_graph(80, 0)
    embedding, pairs = unit_embedding(W, 6), random_pairs(80, 12, 0)

    def found():
        return CoarseCut.of(W, embedding, 3, rng=np.random.RandomState(5)).partitions(*pairs, 0.2)

    assert_array_equal(found(), found())
    cut = CoarseCut.of(W, embedding, 3, rng=np.random.RandomState(5))
    assert_array_equal(cut.partitions(*pairs, 0.2), cut.partitions(*pairs, 0.2))


def test_levels_have_2_5_and_12_micro_clusters_for_each_cluster():
    embedding = np.random.RandomState(0).normal(size=(200, 3))
    cut = CoarseCut.of(random_graph(200, 0), embedding, 3, rng=np.random.RandomState(0))
    assert [level.affinity.shape[0] for level in cut.levels] == [6, 15, 36]
    small = CoarseCut.of(random_graph(20, 0), embedding[:20], 3, rng=np.random.RandomState(0))
    assert [level.affinity.shape[0] for level in small.levels] == [6, 10, 10]


def test_centres_of_many_rows_are_sought_on_a_sample():
    rng = np.random.RandomState(0)
    n = 20_000
    block = np.arange(n) % 3
    neighbor = (np.arange(n) + 3) % n  # of the same block, but for the last ones
    W = csr_array((np.ones(n), (np.arange(n), neighbor)), shape=(n, n))
    embedding = np.eye(3)[block] + 0.05 * rng.normal(size=(n, 3))
    for labels in CoarseCut.of(W + W.T, embedding, 3, rng=rng).partitions(*NO_PAIRS, 0.0):
        assert adjusted_rand_score(labels, block) == 1.0


def test_too_few_groups_are_split():
    assert split_to(np.array([0, 0, 0, 1, 1, 0]), 4).tolist() == [0, 0, 3, 1, 1, 2]
    assert split_to(np.array([0, 0, 1]), 2).tolist() == [0, 0, 1]


def isolated_vertices():
    W = np.zeros((30, 30))
    W[:10, :10] = random_graph(10, 0)
    return W


DEGENERATE = {
    "equal rows": (random_graph(30, 0), np.ones((30, 2)), 3),
    "isolated vertices": (isolated_vertices(), np.random.RandomState(0).normal(size=(30, 3)), 3),
    "no edges": (np.zeros((12, 12)), np.random.RandomState(0).normal(size=(12, 3)), 2),
    "connected components": (rings(5, 8), np.random.RandomState(0).normal(size=(40, 3)), 4),
    "four samples": (random_graph(4, 0, 1.0), np.eye(4), 2),
    "as many samples as clusters": (random_graph(4, 0, 1.0), np.eye(4), 4),
    "few rows": (random_graph(12, 0), np.repeat([[0.0, 1.0], [1.0, 0.0]], 6, axis=0), 5),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("as_graph", [np.asarray, csr_array])
@pytest.mark.parametrize("m", [0, 4])
def test_degenerate_data_give_k_clusters(case, as_graph, m):
    W, embedding, k = DEGENERATE[case]
    n = len(W)
    pairs = random_pairs(n, m, 0) if m else NO_PAIRS
    for start in (None, np.arange(n) % k, np.zeros(n, np.intp)):
        cut = CoarseCut.of(as_graph(W), embedding, k, rng=np.random.RandomState(0), start=start)
        found = cut.partitions(*pairs, 0.2)
        assert len(found) == 2
        for labels in found:
            assert labels.shape == (n,)
            assert labels.dtype == np.intp
            assert set(labels.tolist()) == set(range(k))


def test_micro_clusters_are_related_where_there_is_an_edge_or_a_penalty():
    affinity, penalty = np.zeros((4, 4)), np.zeros((4, 4))
    affinity[0, 0] = affinity[1, 3] = affinity[3, 1] = 1.0
    penalty[0, 3] = penalty[3, 0] = -0.5
    graph = coarse_cut.PenalisedGraph.of(affinity, penalty)
    related = [graph.related[graph.first[a] : graph.first[a + 1]].tolist() for a in range(4)]
    assert related == [[0, 3], [3], [], [0, 1]]
