"""Sparse columns of a resolvent, values of a product where needed, and the separated kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from asserts import assert_symmetric
from linkwise.linalg.laplacian import degrees, normalized_adjacency
from linkwise.linalg.lowrank import cauchy_sum, resolvent_columns, symmetric_product, values_on


def random_graph(n, seed, density=0.3):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    W[0, 1:] += 0.1  # connected
    return csr_array(W + W.T)


def slow_push(S, least, start, alpha):
    """Push one vertex at a time, whichever has most to give."""
    x = np.eye(len(S))[start]
    r = alpha * S[:, start]
    while (r > least).any():
        u = np.argmax(r - least)
        given_on, r[u] = r[u], 0.0
        x[u] += given_on
        r += alpha * given_on * S[:, u]
    return x


@settings(max_examples=40)
@given(
    st.integers(3, 20),
    st.integers(0, 500),
    st.sampled_from([0.1, 0.8, 0.9]),
    st.sampled_from([1e-1, 1e-2, 1e-3]),
)
def test_columns_are_within_their_bound(n, seed, alpha, tol):
    W = random_graph(n, seed)
    S, profile = normalized_adjacency(W), np.sqrt(degrees(W))
    columns = np.unique(np.random.RandomState(seed).randint(n, size=4))
    P = np.linalg.inv(np.eye(n) - alpha * S.toarray())[:, columns]
    missing = P - resolvent_columns(S, profile, columns, alpha=alpha, tol=tol).toarray()
    assert missing.min() >= -1e-12
    assert (missing <= tol / (1 - alpha) * profile[:, None] + 1e-12).all()
    # The slow twin pushes in another order: both leave less than the same bound.
    slow = np.column_stack([slow_push(S.toarray(), tol * profile, c, alpha) for c in columns])
    assert (np.abs(P - slow - missing) <= tol / (1 - alpha) * profile[:, None] + 1e-12).all()


def test_columns_stay_near_their_vertex():
    n = 1_000
    W = csr_array(np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))
    G = resolvent_columns(
        normalized_adjacency(W), np.ones(n), np.array([500]), alpha=0.8, tol=1e-3
    ).toarray()
    reached = np.flatnonzero(G[:, 0])
    assert 0.4 < G.sum() / 5 <= 1
    assert reached.min() >= 480
    assert reached.max() <= 520
    # On a ring P is known: (1 / sqrt(1 - a^2)) q^distance, q = (1 - sqrt(1 - a^2)) / a.
    exact = 1 / 0.6 * 0.5 ** np.abs(np.arange(n) - 500.0)
    assert_allclose(G[:, 0], exact, atol=1e-3 / 0.2)


@given(st.integers(2, 20), st.integers(1, 8), st.integers(0, 500))
def test_values_on_a_pattern_equal_the_whole_product(n, c, seed):
    rng = np.random.RandomState(seed)
    G, T, pattern = (
        rng.normal(size=shape) * (rng.uniform(size=shape) < 0.4)
        for shape in ((n, c), (c, c), (n, n))
    )
    G, T, pattern = csr_array(G), T + T.T, csr_array(pattern)
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    whole = G.toarray() @ T @ G.toarray().T
    assert_allclose(values_on(G, csr_array(T), pattern), whole[rows, pattern.indices], atol=1e-12)


def test_values_of_an_empty_factor_are_zero():
    pattern = csr_array(np.ones((3, 3)))
    assert_array_equal(values_on(csr_array((3, 2)), csr_array(np.eye(2)), pattern), np.zeros(9))


@pytest.mark.parametrize("n", [1, 255, 256, 257, 600])
def test_half_of_a_symmetric_product_is_enough(n):
    A = np.random.RandomState(0).normal(size=(n, 7))
    product = symmetric_product(A, A.T)
    assert_allclose(product, A @ A.T, atol=1e-12)
    assert_symmetric(product)


@pytest.mark.parametrize("low", [0.01, 0.2, 1.0])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_the_separated_kernel_is_as_near_as_it_says(low, tol):
    high = low + 2
    found = cauchy_sum(low, high, tol)
    x = np.linspace(low, high, 300)
    # The shifts, 1 / (x + s), and the weights between them.
    terms = 1 / np.add.outer(x, found.shifts)
    kernel = terms @ found.weights @ terms.T
    relative = np.abs(kernel * np.add.outer(x, x) - 1)
    assert relative.max() <= 1.01 * found.error + 1e-9
    assert found.error <= tol
    assert ((low <= found.shifts) & (found.shifts <= high)).all()


def test_no_shifts_do_better_than_the_best_ones():
    x = np.geomspace(0.2, 2.2, 200)
    best = cauchy_sum(0.2, 2.2, 3e-3)
    assert len(best.shifts) == 3
    rng = np.random.RandomState(0)
    for _ in range(200):
        other = best.shifts * np.exp(0.1 * rng.normal(size=3))
        r = np.prod((x[:, None] - other) / (x[:, None] + other), axis=1)
        assert np.max(r**2) >= 0.98 * best.error


def test_columns_of_several_lists_are_those_of_one(monkeypatch):
    W = random_graph(12, 0)
    S, profile = normalized_adjacency(W), np.sqrt(degrees(W))
    columns = np.array([7, 2, 3, 11, 0])
    together = resolvent_columns(S, profile, columns, alpha=0.8, tol=1e-2)
    monkeypatch.setattr("linkwise.linalg.lowrank.COLUMNS_PER_LIST", 2)
    apart = resolvent_columns(S, profile, columns, alpha=0.8, tol=1e-2)
    assert_array_equal(apart.toarray(), together.toarray())
    assert resolvent_columns(S, profile, columns[:0], alpha=0.8, tol=1e-2).shape == (12, 0)


def a_walk():
    W = random_graph(12, 0)
    return normalized_adjacency(W), np.sqrt(degrees(W))


@pytest.mark.parametrize("alpha", [0.9999, 1 - 1e-9])
def test_columns_that_reach_far_are_solved_for(alpha, monkeypatch):
    monkeypatch.setattr("linkwise.linalg.lowrank.MOST_SWEEPS", 5)
    S, profile = a_walk()
    P = np.linalg.inv(np.eye(12) - alpha * S.toarray())
    columns = np.array([0, 3, 7])
    found = resolvent_columns(S, profile, columns, alpha=alpha, tol=1e-3).toarray()
    assert_allclose(found, P[:, columns], rtol=1e-5, atol=1e-3 * profile.max())


def test_calls_that_are_cut_short_find_the_same_columns(monkeypatch):
    S, profile = a_walk()
    columns = np.arange(12)
    at_once = resolvent_columns(S, profile, columns, alpha=0.9, tol=1e-4).toarray()
    monkeypatch.setattr("linkwise.linalg.lowrank.STEPS_PER_CALL", 10_000)
    step_by_step = resolvent_columns(S, profile, columns, alpha=0.9, tol=1e-4).toarray()
    assert_array_equal(at_once, step_by_step)
