"""Corners that label propagation must turn: far samples, long paths, hidden cliques, wheels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, diags_array

from linkwise import E2CP, GFHF, LLGC, SRCP, Affinity, ConflictError, Constraints, Poisson
from linkwise.methods.gfhf import gfhf
from linkwise.methods.llgc import llgc
from linkwise.methods.poisson import poisson


def path(n):
    return csr_array(diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]))


def ends_known(n, margin=0):
    labels = np.full(n, -1)
    labels[margin], labels[n - 1 - margin] = 0, 1
    return Constraints.from_labels(labels)


@pytest.mark.parametrize("n", [901, 2001])
def test_llgc_decides_far_from_all_labels(n):
    # Both solvers: the nearer end wins, however small F is in the middle.
    labels = llgc(path(n), ends_known(n), 2).labels
    expected = (np.arange(n) > n // 2).astype(int)
    off_centre = np.arange(n) != n // 2
    assert_array_equal(labels[off_centre], expected[off_centre])


def test_poisson_solves_long_paths():
    result = poisson(path(10_001), ends_known(10_001, margin=10), 2)
    assert result.converged
    wrong = result.labels != (np.arange(10_001) > 5_000)
    assert wrong.sum() <= 1  # the middle itself is a tie


def test_equal_samples_are_decided_alike_by_poisson():
    labels = poisson(
        np.ones((6, 6)) - np.eye(6), Constraints.from_labels([1, 0, -1, -1, -1, -1]), 2
    )
    assert np.unique(labels.labels[2:]).size == 1


def test_decoys_do_not_hide_mutually_separated_groups():
    X = np.random.RandomState(0).normal(size=(9, 2))
    known = Constraints(
        9,
        must_link=[(3, 4), (5, 6), (7, 8)],
        cannot_link=[(0, 1), (0, 2), (1, 2), (0, 3), (1, 5), (2, 7)],
    )
    labels = GFHF(3, affinity=Affinity(3)).fit(X, constraints=known).labels_
    assert np.unique(labels[:3]).size == 3


def test_an_odd_wheel_is_not_satisfied_silently():
    # A hub apart from an odd ring needs four clusters.
    rim = [(i, i % 5 + 1) for i in range(1, 6)]
    wheel = Constraints(12, cannot_link=[(0, i) for i in range(1, 6)] + rim)
    X = np.random.RandomState(0).normal(size=(12, 2))
    with pytest.raises(ConflictError, match="odd ring of 5 cannot-linked samples"):
        GFHF(3).fit(X, constraints=wheel)


@pytest.mark.parametrize("method", [gfhf, llgc, poisson])
def test_functions_refuse_more_labels_than_clusters(method):
    known = Constraints.from_labels([0, 1, 2, -1, -1, -1])
    with pytest.raises(ConflictError, match="name 3 classes"):
        method(np.ones((6, 6)) - np.eye(6), known, 2)


@pytest.mark.parametrize("Method", [SRCP, E2CP])
def test_one_lonely_pair_does_not_switch_the_others_off(Method):
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 2)) + 1.5 * y[:, None]
    W = np.zeros((122, 122))
    W[:120, :120] = Affinity().fit_transform(X).toarray()
    W[120, 121] = W[121, 120] = 1.0  # two samples with no other neighbour keep their pair whole
    known = Constraints.sample(np.append(y, [-1, -1]), 60, random_state=0)
    lonely = Constraints(122, np.vstack([known.must_link, [(120, 121)]]), known.cannot_link)
    with pytest.warns(UserWarning, match="connected components"):
        without, with_it = (
            Method(2, affinity="precomputed", random_state=0).fit(W, constraints=c).result_
            for c in (known, lonely)
        )
    assert known.satisfied(with_it.labels) >= known.satisfied(without.labels) - 0.05


@pytest.mark.parametrize("Method", [GFHF, LLGC, Poisson])
def test_one_new_sample_can_be_predicted(Method):
    X = np.random.RandomState(0).normal(size=(40, 2))
    labels = np.full(40, -1)
    labels[[0, 1]] = [0, 1]
    for affinity in (None, Affinity(None, scale=1.0)):
        model = Method(2, affinity=affinity).fit(X, constraints=Constraints.from_labels(labels))
        assert model.predict(X[:1] + 0.01).shape == (1,)
