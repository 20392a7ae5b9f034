"""``hard=True``: methods that trade constraints can be asked to keep them all."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs

from linkwise import METHODS, Constraints
from linkwise.exceptions import ConflictError
from linkwise.partition import kmeans
from linkwise.search.means import MeansObjective
from linkwise.search.rows import cluster_rows

HARD = {key: method for key, method in METHODS.items() if "hard" in signature(method).parameters}
every_hard_method = pytest.mark.parametrize("Method", HARD.values(), ids=HARD)


@pytest.fixture(scope="module")
def overlapping():
    X, y = make_blobs(150, 3, centers=3, cluster_std=3.0, random_state=2)
    return X, Constraints.sample(y, 150, random_state=0)


def test_the_methods_that_end_in_k_means_have_it():
    assert set(HARD) >= {"sl", "csc", "srcp", "e2cp", "gp", "signed"}


@every_hard_method
def test_nothing_is_violated_when_asked(Method, overlapping):
    X, known = overlapping
    soft = Method(3, random_state=0).fit(X, constraints=known)
    hard = Method(3, hard=True, random_state=0).fit(X, constraints=known)
    assert known.n_violated(hard.labels_) == 0
    assert np.unique(hard.labels_).size == 3
    # Nothing else changed: the same coordinates were clustered, or the same probabilities used,
    # whose columns are in the order in which clusters appear.
    if hasattr(hard, "embedding_"):
        np.testing.assert_allclose(hard.embedding_, soft.embedding_, atol=1e-10)
    else:
        before, after = (np.sort(m.result_.probability, axis=1) for m in (soft, hard))
        np.testing.assert_allclose(after, before, atol=1e-10)


@every_hard_method
def test_without_constraints_it_changes_nothing(Method, overlapping):
    X, _ = overlapping
    free = Method(3, random_state=0).fit(X)
    assert_array_equal(Method(3, hard=True, random_state=0).fit(X).labels_, free.labels_)


@every_hard_method
def test_the_impossible_is_refused(Method):
    X = np.random.RandomState(0).normal(size=(12, 2))
    known = Constraints(12, cannot_link=[(0, 1), (1, 2), (0, 2)])
    with pytest.raises(ConflictError, match="odd ring"):
        Method(2, hard=True).fit(X, constraints=known)


def test_feasible_rows_are_the_free_ones_where_these_obey():
    V = np.array([[0.0], [0.1], [1.0], [1.1]])
    free = kmeans(V, 2, np.random.RandomState(0)).labels
    obeyed = Constraints(4, must_link=[(0, 1)], cannot_link=[(0, 2)])
    broken = Constraints(4, must_link=[(0, 3)], cannot_link=[(0, 1)])
    for known, expected in ((obeyed, free), (broken, [0, 1, 0, 0])):
        rng = np.random.RandomState(0)
        labels = cluster_rows(V, 2, rng, enforced=known)
        assert known.n_violated(labels) == 0
        assert_array_equal(labels, expected)


def test_one_pair_costs_no_more_than_it_must():
    V, _ = make_blobs(400, 2, centers=12, cluster_std=1.0, random_state=0)

    def inertia(z):
        return sum(((V[z == c] - V[z == c].mean(axis=0)) ** 2).sum() for c in range(12))

    free = kmeans(V, 12, np.random.RandomState(0)).labels
    i, j = np.flatnonzero(free == free[0])[:2]
    known = Constraints(400, cannot_link=[(i, j)])
    for seed in range(4):
        rng = np.random.RandomState(seed)
        labels = cluster_rows(V, 12, rng, enforced=known)
        assert labels[i] != labels[j]
        # Moving one of the two to another cluster is a bound on what it costs.
        bounds = []
        for sample in (i, j):
            for c in range(12):
                moved = free.copy()
                moved[sample] = c
                bounds.append(inertia(moved) if moved[i] != moved[j] else np.inf)
        assert inertia(labels) <= min(bounds) * (1 + 1e-9)


def test_other_starts_are_tried_only_where_constraints_cost_much(monkeypatch):
    V, y = make_blobs(300, 2, centers=3, cluster_std=4.0, random_state=0)
    free = kmeans(V, 3, np.random.RandomState(0)).labels
    searched = []
    search = MeansObjective.search
    monkeypatch.setattr(
        MeansObjective, "search", lambda *given: searched.append(1) or search(*given)
    )
    near = np.flatnonzero(free == 0)[:2]
    far = Constraints.sample(np.random.RandomState(1).permutation(y), 100, random_state=0)
    for known, n_searches in ((Constraints(300, cannot_link=[near]), 0), (far, 1)):
        labels = cluster_rows(V, 3, np.random.RandomState(0), enforced=known)
        assert known.n_violated(labels) == 0
        assert len(searched) == n_searches


def test_uncertain_pairs_leave_the_free_clusters_alone():
    V, _ = make_blobs(100, 2, centers=4, cluster_std=1.0, random_state=0)
    free = kmeans(V, 4, np.random.RandomState(0)).labels
    i, j = np.flatnonzero(free == free[0])[:2]
    doubtful = Constraints(100, cannot_link=[(i, j)], cannot_link_belief=[0.5])
    labels = cluster_rows(V, 4, np.random.RandomState(0), enforced=doubtful)
    assert_array_equal(labels, free)
