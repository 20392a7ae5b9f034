"""Poisson learning: Calder et al. 2020. What all label methods share: test_gfhf.py."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, make_blobs

from linkwise import Affinity, Constraints
from linkwise.linalg.laplacian import combinatorial
from linkwise.methods.gfhf import gfhf
from linkwise.methods.poisson import poisson


def sources(partial, k):
    Y = np.zeros((partial.size, k))
    known = partial >= 0
    Y[known] = np.eye(k)[partial[known]]
    Y[known] -= Y[known].mean(axis=0)
    return Y


@pytest.fixture(scope="module")
def problem():
    X, y = make_blobs(60, centers=3, cluster_std=2.0, random_state=3)
    partial = np.full(60, -1)
    partial[::6] = y[::6]
    return Affinity().fit_transform(X), partial


def test_solves_the_poisson_equation(problem):
    W, partial = problem
    result = poisson(W, Constraints.from_labels(partial), 3)
    U, B, L = result.embedding, sources(partial, 3), combinatorial(W.toarray())
    assert_allclose(L @ U, B, atol=1e-9)
    assert_allclose(W.sum(axis=1) @ U, 0, atol=1e-9)
    assert_allclose(U.sum(axis=1), 0, atol=1e-9)
    assert_array_equal(result.labels, U.argmax(axis=1))
    assert result.objective == pytest.approx(np.trace(U.T @ L @ U) / 2 - np.trace(B.T @ U))


def test_is_the_limit_of_the_paper_s_iteration(problem):
    # Algorithm 1: U <- U + D^-1 (B - L U). A step of half the length also converges on
    # bipartite graphs.
    W, partial = problem
    A, B = W.toarray(), sources(partial, 3)
    d, L = A.sum(axis=1)[:, None], combinatorial(A)
    U = np.zeros((60, 3))
    for _ in range(20_000):
        U += (B - L @ U) / (2 * d)
    result = poisson(W, Constraints.from_labels(partial), 3)
    assert_allclose(result.embedding, U, atol=1e-7)


def test_balance_divides_by_the_share_of_labels(problem):
    W, partial = problem
    known = Constraints.from_labels(partial)
    share = np.bincount(partial[partial >= 0]) / (partial >= 0).sum()
    plain, balanced = (poisson(W, known, 3, balance=b).embedding for b in (False, True))
    assert_allclose(balanced, plain / (3 * share))


def test_one_label_a_class_serves_it_better_than_gfhf():
    X, y = load_digits(return_X_y=True)
    W = Affinity(10).fit_transform(X)
    found = {poisson: [], gfhf: []}
    for seed in range(5):
        rng = np.random.RandomState(seed)
        partial = np.full(y.size, -1)
        for c in range(10):
            partial[rng.choice(np.flatnonzero(y == c))] = c
        for method, shares in found.items():
            shares.append((method(W, Constraints.from_labels(partial), 10).labels == y).mean())
    assert np.mean(found[poisson]) > 0.85
    assert (np.array(found[poisson]) > np.array(found[gfhf])).all()


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_sources_are_balanced_in_each_component():
    rng = np.random.RandomState(0)
    W = np.zeros((12, 12))
    for part in (slice(0, 5), slice(5, 12)):
        size = part.stop - part.start
        W[part, part] = np.triu(rng.uniform(size=(size, size)), 1)
    W += W.T
    partial = np.full(12, -1)
    partial[[0, 1, 2, 6, 7]] = [0, 1, 1, 1, 0]
    U = poisson(W, Constraints.from_labels(partial), 2).embedding
    for part in (slice(0, 5), slice(5, 12)):
        assert_allclose(
            combinatorial(W[part, part]) @ U[part], sources(partial[part], 2), atol=1e-9
        )
        assert_allclose(W[part].sum(axis=1) @ U[part], 0, atol=1e-9)


@pytest.mark.parametrize("bridge", [1e-12, 1e-100, 0.0])
def test_charges_do_not_pile_up_behind_a_faint_bridge(bridge):
    # Three cliques of four. The third is of class 1 alone; if it counted for the mean, all of the
    # rest would have class 0 to spare.
    W = np.kron(np.eye(3), np.ones((4, 4)))
    np.fill_diagonal(W, 0)
    W[3, 4] = W[4, 3] = 0.1
    W[7, 8] = W[8, 7] = bridge
    partial = np.full(12, -1)
    partial[[0, 7, 9]] = [0, 1, 1]
    labels = poisson(W, Constraints.from_labels(partial), 2).labels
    assert_array_equal(labels, [0] * 4 + [1] * 8)
