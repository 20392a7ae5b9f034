"""Spanning trees, and clusters of similar size along their edges."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.sparse import csgraph
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import adjusted_rand_score

from linkwise.auto.spanning_tree import balanced_partition, minimum_spanning_tree


def samples(n, q, seed):
    return np.random.RandomState(seed).normal(size=(n, q))


def gini(sizes):
    """Return the Gini index, by two loops."""
    m, n = len(sizes), sum(sizes)
    return sum(abs(a - b) for a in sizes for b in sizes) / 2 / (n * max(m - 1, 1))


def balanced_partition_slowly(edges, n, k, limit):
    """Merge sets of samples, as Genie is described."""
    clusters = [{i} for i in range(n)]
    edges = [tuple(edge) for edge in edges]
    while len(clusters) > k:
        sizes = [len(c) for c in clusters]
        smallest = set().union(*(c for c in clusters if len(c) == min(sizes)))
        too_unequal = gini(sizes) > limit
        i, j = next(e for e in edges if not too_unequal or smallest & set(e))
        edges.remove((i, j))
        a = next(c for c in clusters if i in c)
        b = next(c for c in clusters if j in c)
        clusters = [c for c in clusters if c not in (a, b)] + [a | b]
    labels = np.empty(n, np.intp)
    for number, c in enumerate(sorted(clusters, key=min)):
        labels[list(c)] = number
    return labels


@pytest.mark.parametrize(("n", "q"), [(2, 1), (50, 1), (80, 3), (60, 12)])
@pytest.mark.parametrize("has_core", [False, True])
def test_the_tree_is_as_short_as_scipys(n, q, has_core):
    Z = samples(n, q, 0)
    core = np.random.RandomState(1).uniform(0, 1, n) if has_core else np.zeros(n)
    distance = np.maximum(cdist(Z, Z), np.maximum.outer(core, core))
    edges, lengths = minimum_spanning_tree(Z, core if has_core else None)
    assert_allclose(lengths, distance[edges[:, 0], edges[:, 1]])
    assert_allclose(lengths.sum(), csgraph.minimum_spanning_tree(distance).sum())
    assert (np.diff(lengths) >= 0).all()
    assert np.unique(balanced_partition(edges, n, 1, limit=1.0)).size == 1


def test_one_sample_has_no_edge():
    edges, lengths = minimum_spanning_tree(np.zeros((1, 2)))
    assert edges.shape == (0, 2)
    assert lengths.size == 0
    assert balanced_partition(edges, 1, 1, limit=0.3).tolist() == [0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 7, 100])
def test_without_a_limit_it_is_single_linkage(seed, k):
    Z = samples(100, 2, seed)
    edges, _ = minimum_spanning_tree(Z)
    found = balanced_partition(edges, 100, k, limit=1.0)
    # Not by fcluster: that of SciPy 1.13 never finds as many clusters as samples.
    expected = cut_tree(linkage(pdist(Z), "single"), n_clusters=k).ravel()
    assert adjusted_rand_score(found, expected) == 1.0
    assert set(found) == set(range(k))


@pytest.mark.parametrize("limit", [0.0, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_balanced_clusters_are_those_of_the_definition(limit, seed):
    edges, _ = minimum_spanning_tree(samples(40, 2, seed))
    for k in range(1, 41, 3):
        found = balanced_partition(edges, 40, k, limit=limit)
        assert_array_equal(found, balanced_partition_slowly(edges, 40, k, limit))
        assert set(found) == set(range(k))


def test_equal_samples_and_ties():
    edges, lengths = minimum_spanning_tree(np.zeros((20, 2)))
    assert not lengths.any()
    assert_array_equal(
        balanced_partition(edges, 20, 4, limit=0.1), balanced_partition_slowly(edges, 20, 4, 0.1)
    )


def test_an_outlier_is_no_cluster_of_its_own():
    Z = np.concatenate([samples(50, 2, 0), samples(50, 2, 1) + 8, [[100.0, 0.0]]])
    truth = np.repeat([0, 1], 50)
    edges, _ = minimum_spanning_tree(Z)
    assert adjusted_rand_score(balanced_partition(edges, 101, 2, limit=0.3)[:100], truth) == 1.0
    assert adjusted_rand_score(balanced_partition(edges, 101, 2, limit=1.0)[:100], truth) == 0.0


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_components_of_a_forest_are_not_merged(limit):
    edges = np.array([[0, 1], [2, 3], [3, 4]])
    assert balanced_partition(edges, 6, 2, limit=limit).tolist() == [0, 0, 1, 1, 1, 2]
    # The smallest cluster has no edge: the shortest of all is next.
    edges = np.array([[0, 1], [2, 3], [1, 2]])
    assert balanced_partition(edges, 5, 1, limit=limit).tolist() == [0, 0, 0, 0, 1]
