"""GPAffinity: Lu & Carreira-Perpinan 2008 (called AP by Fu et al. 2011)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from asserts import assert_positive_semidefinite, assert_symmetric
from linkwise import CSC, Constraints, NCut
from linkwise.constraints.table import constraint_matrix
from linkwise.exceptions import DisconnectedGraphWarning, TooLargeError
from linkwise.methods import gp
from linkwise.methods._propagation import dense
from linkwise.methods.gp import (
    GPAffinity,
    covariance_shift,
    gp_affinity,
    link_precision,
    posterior_blocks,
    posterior_part,
)


def random_covariance(n, seed):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5), 1)
    W = (W + W.T) / covariance_shift(csr_array(W + W.T), rng)
    return W + np.eye(n)


def random_pairs(n, seed, n_pairs=6):
    rng = np.random.RandomState(seed)
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(i.size)[:n_pairs]
    sign = rng.choice([-1, 1], size=chosen.size)
    return i[chosen], j[chosen], sign


@given(st.integers(4, 12), st.integers(0, 500), st.sampled_from([1e-3, 0.01, 0.5]))
def test_the_precision_form_is_the_conditioned_covariance(n, seed, noise):
    # K - K M (M'K M + eps I)^-1 M'K, with e_i - e_j for a must-link, e_i + e_j for a cannot-link.
    K = random_covariance(n, seed)
    i, j, sign = random_pairs(n, seed)
    M = np.eye(n)[:, i] - sign * np.eye(n)[:, j]
    inner = M.T @ K @ M + noise * np.eye(sign.size)
    expected = K - K @ M @ np.linalg.solve(inner, M.T @ K)
    known = Constraints(
        n,
        np.column_stack([i, j])[sign > 0],
        np.column_stack([i, j])[sign < 0],
    )
    B = link_precision(constraint_matrix(known), noise).toarray()
    found = K - K @ posterior_part(K, B) @ K
    assert_allclose(found, expected, atol=1e-9)
    assert_positive_semidefinite(found, tol=1e-8)


def test_a_pair_of_lower_belief_is_seen_with_more_noise():
    half = Constraints(4, [(0, 1)], [(2, 3)], must_link_belief=0.5)
    B = link_precision(constraint_matrix(half), 0.01).toarray()
    assert_allclose(B[:2, :2], np.array([[1, -1], [-1, 1]]) / 1.01)
    assert_allclose(B[2:, 2:], np.array([[1, 1], [1, 1]]) / 0.01)


@given(st.integers(2, 15), st.integers(0, 200))
def test_the_shifted_graph_is_a_covariance(n, seed):
    assert_positive_semidefinite(random_covariance(n, seed))


def test_a_gaussian_affinity_needs_no_more_than_its_own_diagonal():
    X, _ = make_blobs(40, random_state=0)
    W = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2) / 8)
    np.fill_diagonal(W, 0)
    assert W.max() <= covariance_shift(W, np.random.RandomState(0)) <= 1 + 1e-6


def test_must_linked_samples_become_one():
    # Nearly noise-free: the function has one value at both, so the same covariance with everything.
    # With less noise, rounding errors are larger than it.
    K = random_covariance(8, 0)
    B = link_precision(constraint_matrix(Constraints(8, [(1, 5)])), 1e-8).toarray()
    posterior = K - K @ posterior_part(K, B) @ K
    assert_allclose(posterior[1], posterior[5], atol=1e-7)
    B = link_precision(constraint_matrix(Constraints(8, (), [(1, 5)])), 1e-8).toarray()
    posterior = K - K @ posterior_part(K, B) @ K
    assert_allclose(posterior[1], -posterior[5], atol=1e-7)


@given(st.integers(5, 20), st.integers(0, 200), st.booleans())
def test_sparse_affinities_equal_the_dense_ones_on_their_pattern(n, seed, two):
    K = random_covariance(n, seed)
    W = csr_array(K - np.eye(n))
    i, j, sign = random_pairs(n, seed)
    known = Constraints(n, np.column_stack([i, j])[sign > 0], np.column_stack([i, j])[sign < 0])
    Y = constraint_matrix(known)
    B = link_precision(csr_array(Y if two else Y.maximum(0)), 0.01)
    dense, sparse = gp._conditioned_dense(W, Y, B), gp._conditioned(W, Y, B)
    assert_symmetric(dense)
    assert_symmetric(sparse)
    kept = (W != 0).toarray() | (Y != 0).toarray()
    assert_allclose(sparse.toarray()[kept], dense[kept], atol=1e-10)
    assert dense.min() >= 0


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_cannot_links_remove_their_affinity_when_there_are_more_clusters(solver, monkeypatch):
    K = random_covariance(10, 2)
    W = csr_array(np.maximum(K, 0.1) - np.diag(np.maximum(K, 0.1).diagonal()))
    known = Constraints(10, (), [(0, 1), (2, 3)], cannot_link_belief=[1.0, 0.25])
    clustered = []
    cut = gp.normalized_cut
    monkeypatch.setattr(
        gp,
        "normalized_cut",
        lambda A, *given, **more: clustered.append(A) or cut(A, *given, **more),
    )
    gp.gp_affinity(W, known, 3, solver=solver, random_state=0)
    edited = dense(clustered[0])
    unit = edited[4, 5] / W[4, 5]
    assert edited[0, 1] == edited[1, 0] == 0
    assert edited[2, 3] == pytest.approx(0.75 * unit * W[2, 3])


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_cannot_links_alone_edit_the_graph_when_there_are_more_clusters(solver):
    X, y = make_blobs(60, centers=3, cluster_std=4, random_state=0)
    known = Constraints(60, (), Constraints.sample(y, 400, random_state=0).cannot_link)
    ours = GPAffinity(3, solver=solver, random_state=0).fit(X, constraints=known)
    edited = CSC(3, random_state=0).fit(X, constraints=known)
    plain = NCut(3, random_state=0).fit(X)
    assert_allclose(ours.result_.eigenvalues, edited.result_.eigenvalues, atol=1e-8)
    assert np.abs(ours.result_.eigenvalues - plain.result_.eigenvalues).max() > 1e-3


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_without_constraints_it_is_ncut(solver, k):
    X, _ = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    ours, plain = GPAffinity(k, solver=solver, random_state=0), NCut(k, random_state=0)
    assert_array_equal(ours.fit(X).labels_, plain.fit(X).labels_)


@pytest.mark.parametrize(("load", "least"), [(load_iris, 0.85), (load_breast_cancer, 0.95)])
@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_many_pairs_are_learnt(load, least, solver):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=0)
    model = GPAffinity(len(np.unique(y)), solver=solver, random_state=0)
    assert adjusted_rand_score(y, model.fit(X, constraints=known).labels_) >= least


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_pieces_and_isolated_vertices(solver):
    W = np.zeros((13, 13))
    W[:5, :5] = W[5:10, 5:10] = 1
    np.fill_diagonal(W, 0)
    known = Constraints(13, must_link=[(0, 10), (11, 12)], cannot_link=[(0, 5)])
    with pytest.warns(DisconnectedGraphWarning):
        model = GPAffinity(3, affinity="precomputed", solver=solver, random_state=0).fit(
            csr_array(W), constraints=known
        )
    assert np.isfinite(model.embedding_).all()
    assert_array_equal(model.labels_, [0] * 5 + [1] * 5 + [0, 2, 2])


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_a_graph_without_edges(solver):
    result = gp_affinity(csr_array((4, 4)), Constraints(4, [(0, 1), (2, 3)]), 2, solver=solver)
    assert result.labels[0] == result.labels[1] != result.labels[2] == result.labels[3]


def test_too_many_constrained_samples_are_refused(monkeypatch):
    monkeypatch.setattr(gp, "MAX_CONSTRAINED", 5)
    X, y = make_blobs(60, centers=2, random_state=0)
    known = Constraints.sample(y, 10, random_state=0)
    with pytest.raises(TooLargeError, match=r"samples are constrained; .* at most 5"):
        GPAffinity(2, solver="lowrank").fit(X, constraints=known)


@given(st.integers(2, 14), st.integers(0, 10_000))
def test_the_sparse_posterior_is_the_dense_one(n, seed):
    rng = np.random.RandomState(seed)
    # Few affinities and few pairs, so that there are several connected sets.
    K = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.1), 1)
    K = (K + K.T) / n + np.eye(n)
    Y = np.triu(rng.choice([-1.0, 0.5, 1.0], size=(n, n)) * (rng.uniform(size=(n, n)) < 0.1), 1)
    B = link_precision(csr_array(Y + Y.T), 0.01)
    found = posterior_blocks(csr_array(K), B)
    assert_allclose(found.toarray(), posterior_part(K, B.toarray()), rtol=1e-9, atol=1e-9)


def test_more_samples_may_be_constrained_than_are_connected(monkeypatch):
    monkeypatch.setattr(gp, "MAX_CONSTRAINED", 2)
    W = csr_array(np.kron(np.eye(20), 1 - np.eye(3)))
    pairs = [(3 * at, 3 * at + 1) for at in range(20)]
    result = gp_affinity(W, Constraints(60, pairs), 3, solver="lowrank", random_state=0)
    assert result.labels.size == 60
