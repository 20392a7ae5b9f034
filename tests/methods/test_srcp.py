"""SRCP: Fu, Lu, Ip, Peng & Lu 2011."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import solve_continuous_lyapunov
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from asserts import assert_symmetric
from linkwise import Affinity, Constraints, NCut
from linkwise.constraints.table import constraint_matrix
from linkwise.exceptions import DisconnectedGraphWarning, TooLargeError
from linkwise.linalg.laplacian import degrees, normalized_adjacency, symmetric
from linkwise.linalg.lowrank import values_on
from linkwise.methods import _propagation
from linkwise.methods._propagation import (
    adjusted_dense,
    adjusted_sparse,
    constrained_samples,
    pairs_of,
)
from linkwise.methods.srcp import SRCP, propagate, propagation_factors, srcp


def random_problem(n, seed):
    """Return a connected random graph and random pairs."""
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4), 1)
    W += np.eye(n, k=1)
    Y = np.triu(rng.choice([-1.0, -0.5, 0, 0, 0, 0.5, 1.0], size=(n, n)), 1)
    return csr_array(W + W.T), csr_array(Y + Y.T)


@pytest.mark.parametrize("mu", [0.01, 0.2, 3.0])
def test_propagation_solves_the_lyapunov_equation_5(mu):
    X, y = make_blobs(80, centers=3, cluster_std=2, random_state=0)
    W = Affinity().fit_transform(X)
    Y = constraint_matrix(Constraints.sample(y, 40, random_state=0))
    A = mu * np.eye(80) + symmetric(W).toarray()
    F = propagate(W, Y, mu)
    assert_allclose(A @ F + F @ A, 2 * mu * Y.toarray(), atol=1e-12)
    assert_allclose(F, solve_continuous_lyapunov(A, 2 * mu * Y.toarray()), atol=1e-8)
    assert_allclose(propagate(W.toarray(), Y, mu), F, atol=1e-12)


def test_propagation_is_the_kronecker_form_6():
    W, Y = random_problem(12, 1)
    mu, eye = 0.2, np.eye(12)
    A = mu * eye + symmetric(W).toarray()
    vec = np.linalg.solve(np.kron(eye, A) + np.kron(A, eye), 2 * mu * Y.toarray().ravel("F"))
    assert_allclose(propagate(W, Y, mu), vec.reshape(12, 12, order="F"), atol=1e-10)


def test_propagation_is_the_limit_of_the_spreading_7():
    W, Y = random_problem(10, 2)
    alpha, S, F = 0.8, normalized_adjacency(W).toarray(), np.zeros((10, 10))
    for _ in range(300):
        F = alpha / 2 * (S @ F + F @ S) + (1 - alpha) * Y.toarray()
    assert_allclose(propagate(W, Y, (1 - alpha) / alpha), F, atol=1e-12)


@given(st.integers(3, 20), st.integers(0, 500), st.sampled_from([0.05, 0.2, 2.0]))
def test_propagation_is_symmetric_and_bounded(n, seed, mu):
    W, Y = random_problem(n, seed)
    assume(Y.nnz)
    F = propagate(W, Y, mu)
    assert_symmetric(F)
    assert np.linalg.norm(F, 2) <= np.linalg.norm(Y.toarray(), 2) + 1e-12
    # Entry by entry, in units of the degrees: the spreading averages.
    d = np.sqrt(degrees(W))
    scaled = abs(Y).toarray() / np.outer(d, d)
    assert (np.abs(F) / np.outer(d, d)).max() <= scaled.max() + 1e-12
    assert propagate(W, abs(Y), mu).min() >= -1e-12


@given(st.integers(3, 20), st.integers(0, 500))
def test_values_stay_below_one_on_a_regular_graph(n, seed):
    ring = csr_array(np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))
    _, Y = random_problem(n, seed)
    assume(Y.nnz)
    assert np.abs(propagate(ring, Y, 0.2)).max() <= 1 + 1e-12


def test_a_strong_mu_keeps_the_pairs_and_a_weak_one_spreads_them():
    W, Y = random_problem(12, 4)
    assert_allclose(propagate(W, Y, 1e6), Y.toarray(), atol=1e-5)
    # Towards mu = 0 only the part along the walk's own vector, sqrt(d), stays.
    v = np.sqrt(degrees(W))
    v /= np.linalg.norm(v)
    assert_allclose(propagate(W, Y, 1e-9), (v @ Y @ v) * np.outer(v, v), atol=1e-6)


@given(st.integers(4, 20), st.integers(0, 500), st.sampled_from([0.1, 0.2, 1.0]))
def test_low_rank_values_equal_the_exact_ones_up_to_the_kernel(n, seed, mu):
    W, Y = random_problem(n, seed)
    assume(Y.nnz)
    factors = propagation_factors(W, constrained_samples(Y), mu=mu, tol=1e-13)
    everywhere = csr_array(np.ones((n, n)))
    found = values_on(factors.G, pairs_of(factors, Y), everywhere).reshape(n, n)
    exact = propagate(W, Y, mu)
    assert np.linalg.norm(found - exact) <= 3e-3 * np.linalg.norm(exact)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return Affinity(10).fit_transform(X), y, Constraints.sample(y, 200, random_state=0)


def test_low_rank_refinement_is_within_three_percent(digits):
    W, _, known = digits
    Y = constraint_matrix(known)
    sparse = adjusted_sparse(
        W, propagation_factors(W, constrained_samples(Y), mu=0.2, tol=5e-4), Y, scale="paper"
    )
    exact = adjusted_dense(W, propagate(W, Y, 0.2), Y, scale="paper")
    # What the propagation changed, on the edges and the pairs.
    kept = ((W != 0) + (Y > 0)).toarray()
    before = W.toarray()[kept] / W.max()
    change, expected = sparse.toarray()[kept] - before, exact[kept] - before
    assert np.linalg.norm(change - expected) < 0.03 * np.linalg.norm(expected)


def test_both_solvers_find_the_same_clusters(digits):
    W, y, known = digits
    exact, lowrank = (
        adjusted_rand_score(y, srcp(W, known, 10, solver=solver, random_state=0).labels)
        for solver in ("exact", "lowrank")
    )
    assert abs(exact - lowrank) <= 0.02


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_without_constraints_it_is_ncut(solver, k):
    X, _ = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    ours, plain = SRCP(k, solver=solver, random_state=0), NCut(k, random_state=0)
    assert_array_equal(ours.fit(X).labels_, plain.fit(X).labels_)


@pytest.mark.parametrize(("load", "least"), [(load_iris, 0.8), (load_breast_cancer, 0.85)])
@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_many_pairs_are_learnt(load, least, solver):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=0)
    model = SRCP(len(np.unique(y)), solver=solver, random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) >= least


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_order_and_unit_do_not_matter(solver):
    X, y = make_blobs(150, centers=3, cluster_std=1.5, random_state=3)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 60, random_state=0)
    order = np.random.RandomState(0).permutation(150)
    place = np.argsort(order)
    moved = Constraints(150, place[known.must_link], place[known.cannot_link[:, ::-1]])
    here = srcp(W, known, 3, solver=solver, random_state=0).labels
    there = srcp(1e-3 * csr_array(W[order][:, order]), moved, 3, solver=solver, random_state=0)
    assert adjusted_rand_score(here[order], there.labels) == 1


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_pieces_and_isolated_vertices(solver):
    W = np.zeros((13, 13))
    W[:5, :5] = W[5:10, 5:10] = 1
    np.fill_diagonal(W, 0)
    # 10, 11 and 12 have no edges; a link ties 10 to the first piece and 11 to 12.
    known = Constraints(13, must_link=[(0, 10), (11, 12)], cannot_link=[(0, 5)])
    with pytest.warns(DisconnectedGraphWarning):
        model = SRCP(3, affinity="precomputed", solver=solver, random_state=0).fit(
            csr_array(W), constraints=known
        )
    assert np.isfinite(model.embedding_).all()
    assert_array_equal(model.labels_, [0] * 5 + [1] * 5 + [0, 2, 2])
    assert propagate(csr_array(W), constraint_matrix(known), 0.2)[11, 12] == pytest.approx(1)


def test_a_large_exact_problem_is_refused(monkeypatch):
    monkeypatch.setattr(_propagation, "MAX_EXACT", 50)
    X, y = make_blobs(60, centers=2, random_state=0)
    known = Constraints.sample(y, 10, random_state=0)
    with pytest.raises(TooLargeError, match=r"60 x 60 .* 50 samples\. Take solver='lowrank'"):
        SRCP(2, solver="exact").fit(X, constraints=known)
    with pytest.raises(TooLargeError, match="Affinity"):
        SRCP(2, affinity=Affinity(None)).fit(X, constraints=known)
