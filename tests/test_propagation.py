"""The theory of Wang et al., Labels vs. pairwise constraints, and (7) of Fu et al. 2011."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import eigh, solve_continuous_lyapunov

from linkwise.linalg.laplacian import normalized_adjacency
from theory import (
    gfhf_step,
    llgc_step,
    spreading_step,
    stationary_labeling,
    transition_matrix,
)

# Small graphs, full as in the papers.
graphs = st.tuples(st.integers(4, 12), st.integers(0, 1000))


def affinity(n, seed):
    """Return a full Gaussian graph, as in the paper."""
    X = np.random.RandomState(seed).normal(size=(n, 2))
    A = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    np.fill_diagonal(A, 0)
    return A


def constraint_matrix(n, seed):
    """Return a positive definite Q_bar: the kernel (15) of random labels, normalised."""
    y = np.random.RandomState(seed + 1).uniform(-1, 1, size=n)
    Q = np.exp(-((y[:, None] - y[None]) ** 2) / (2 * 0.1**2))
    return Q / np.sqrt(np.outer(Q.sum(axis=1), Q.sum(axis=1)))


def limit(step, start, n_steps=5000):
    y = start
    for _ in range(n_steps):
        y = step(y)
    return y


@settings(max_examples=30)
@given(graphs)
def test_gfhf_iteration_1_converges_to_equation_2(graph):
    n, seed = graph
    P = transition_matrix(affinity(n, seed))
    labelled = np.arange(n) < 3
    y_l = np.random.RandomState(seed).choice([-1.0, 1.0], size=(3, 1))
    y = limit(lambda y: gfhf_step(P, labelled, y), np.vstack([y_l, np.zeros((n - 3, 1))]), 1000)
    f_u = np.linalg.inv(np.eye(n - 3) - P[3:, 3:]) @ P[3:, :3] @ y_l  # (2)
    assert_allclose(y, np.vstack([y_l, f_u]), atol=1e-6)


@settings(max_examples=30)
@given(graphs, st.floats(0.05, 0.95))
def test_llgc_iteration_4_converges_to_equation_5(graph, alpha):
    n, seed = graph
    A_bar = normalized_adjacency(affinity(n, seed))
    y0 = np.random.RandomState(seed).choice([-1.0, 0.0, 1.0], size=(n, 1))
    y = limit(lambda y: llgc_step(A_bar, alpha, y, y0), y0, 600)
    assert_allclose(y, (1 - alpha) * np.linalg.inv(np.eye(n) - alpha * A_bar) @ y0, atol=1e-9)


@settings(max_examples=30)
@given(graphs, st.floats(0.05, 0.95))
def test_spreading_7_converges_to_the_lyapunov_equation_of_fu(graph, alpha):
    n, seed = graph
    S = normalized_adjacency(affinity(n, seed))
    Y = np.sign(affinity(n, seed + 5) - 0.5)
    Y = (Y + Y.T) / 2
    F = limit(lambda F: spreading_step(S, alpha, F, Y), np.zeros((n, n)), 400)
    mu = (1 - alpha) / alpha
    half = (np.eye(n) - S) + mu * np.eye(n)  # (5): (L_bar + mu I) F + F (L_bar + mu I) = 2 mu Y
    assert_allclose(F, solve_continuous_lyapunov(half, 2 * mu * Y), atol=1e-8)
    assert_allclose(F, F.T, atol=1e-12)


@settings(max_examples=30)
@given(graphs)
def test_definition_1_a_stationary_labeling_stays_in_place(graph):
    n, seed = graph
    A_bar, Q_bar = normalized_adjacency(affinity(n, seed)), constraint_matrix(n, seed)
    found = stationary_labeling(A_bar, Q_bar)
    residual = found.vectors - A_bar @ found.vectors - Q_bar @ found.vectors * found.values
    scale = np.linalg.norm(Q_bar @ found.vectors * found.values, axis=0)
    assert (np.linalg.norm(residual, axis=0) <= 1e-6 * np.maximum(scale, 1)).all()
    assert (found.values > 0).all()
    assert (np.diff(found.values) >= 0).all()


@settings(max_examples=30)
@given(graphs)
def test_claim_1_csc_with_beta_zero_finds_the_stationary_labelings(graph):
    n, seed = graph
    A_bar, Q_bar = normalized_adjacency(affinity(n, seed)), constraint_matrix(n, seed)
    Q_bar += 0.01 * np.eye(n)
    # (8) with beta = 0: L_bar f = lambda Q_bar f; the kernel of L_bar has lambda = 0.
    values, vectors = eigh(np.eye(n) - A_bar, Q_bar)
    vectors /= np.linalg.norm(vectors, axis=0)
    found = stationary_labeling(A_bar, Q_bar)
    assert_allclose(found.values, values[1:], rtol=1e-7)
    overlap = np.abs((found.vectors * vectors[:, 1:]).sum(axis=0))
    distinct = np.diff(values).min() > 1e-6
    if distinct:
        assert_allclose(overlap, 1, atol=1e-6)


@settings(max_examples=30)
@given(graphs, st.floats(0.05, 0.95))
def test_claim_2_llgc_is_the_case_of_P_GH_identity(graph, alpha):
    n, seed = graph
    A_bar = normalized_adjacency(affinity(n, seed))
    found = stationary_labeling(alpha * A_bar, np.eye(n))
    # (13): f = lambda (I - alpha A_bar)^-1 f
    propagated = np.linalg.inv(np.eye(n) - alpha * A_bar) @ found.vectors
    assert_allclose(propagated * found.values, found.vectors, atol=1e-9)
    assert found.values.size == n


@settings(max_examples=30)
@given(graphs, st.floats(0.05, 0.95))
def test_claim_3_csc_without_knowledge_is_llgc_and_spectral_clustering(graph, alpha):
    n, seed = graph
    A_bar = normalized_adjacency(affinity(n, seed))
    s, vectors = np.linalg.eigh(A_bar)
    csc = stationary_labeling(A_bar, np.eye(n))
    llgc = stationary_labeling(alpha * A_bar, np.eye(n))
    assert_allclose(csc.values, 1 - s[::-1][1:], atol=1e-9)
    assert_allclose(llgc.values, 1 - alpha * s[::-1], atol=1e-9)
    # Of the lowest cost: the second eigenvector, which plain spectral clustering takes.
    assert abs(csc.vectors[:, 0] @ vectors[:, -2]) == pytest.approx(1, abs=1e-6)
    assert abs(llgc.vectors[:, 1] @ csc.vectors[:, 0]) == pytest.approx(1, abs=1e-6)


def test_a_singular_constraint_matrix_does_no_harm():
    n = 10
    A_bar = normalized_adjacency(affinity(n, 0))
    y = np.repeat([-1.0, 1.0], 5)
    Q = np.exp(-((y[:, None] - y[None]) ** 2))  # of rank 2
    Q_bar = Q / np.sqrt(np.outer(Q.sum(axis=1), Q.sum(axis=1)))
    found = stationary_labeling(A_bar, Q_bar)
    assert found.values.size == 1
    f = found.vectors
    assert_allclose(f - A_bar @ f, found.values * (Q_bar @ f), atol=1e-8)
