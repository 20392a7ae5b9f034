"""Linear systems of graphs: the two ways agree with slow dense twins, and nothing is NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs

from linkwise import Affinity
from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg import solve
from linkwise.linalg.laplacian import combinatorial, degrees, normalized_adjacency
from linkwise.linalg.solve import definite_solve, dirichlet, poisson_solve, resolvent, solid

BOTH_WAYS = pytest.mark.parametrize("method", ["direct", "cg", "auto"])
BOTH_FORMS = pytest.mark.parametrize("form", [csr_array, np.array], ids=["sparse", "dense"])


def random_graph(n, seed, density=0.4):
    """Return a dense graph, connected by a path; weights over several orders of magnitude."""
    rng = np.random.RandomState(seed)
    weights = 10.0 ** rng.uniform(-3, 3, size=(n, n))
    W = np.triu(weights * (rng.uniform(size=(n, n)) < density), 1)
    W[np.arange(n - 1), np.arange(1, n)] = weights[0][: n - 1]
    return W + W.T


def path(n):
    W = np.diag(np.ones(n - 1), 1)
    return W + W.T


def slow_dirichlet(W, fixed, values):
    """Write the harmonic extension as one equation a vertex, with known values as equations."""
    n = len(W)
    A, b = np.zeros((n, n)), np.zeros((n, values.shape[1]))
    for i in range(n):
        if fixed[i]:
            A[i, i], b[i] = 1.0, values[np.flatnonzero(fixed).tolist().index(i)]
        else:
            A[i] = -W[i]
            A[i, i] += W[i].sum()
    return np.linalg.solve(A, b)


def slow_poisson(W, B):
    """Return the least-norm solution, moved to a weighted mean of zero."""
    U = np.linalg.pinv(combinatorial(W)) @ B
    d = W.sum(axis=1)
    return U - (d @ U) / d.sum()


@BOTH_FORMS
@BOTH_WAYS
@settings(max_examples=25)
@given(st.integers(3, 30), st.integers(0, 1000))
def test_dirichlet_equals_its_slow_twin(form, method, n, seed):
    W = random_graph(n, seed)
    rng = np.random.RandomState(seed)
    fixed = np.zeros(n, dtype=bool)
    fixed[rng.choice(n, rng.randint(1, n), replace=False)] = True
    values = rng.normal(size=(fixed.sum(), 3))
    found = dirichlet(form(W), fixed, values, method=method, tol=1e-13)
    assert_allclose(found.x, slow_dirichlet(W, fixed, values), atol=1e-7)
    assert_array_equal(found.x[fixed], values)
    assert found.converged


@BOTH_FORMS
@BOTH_WAYS
@settings(max_examples=25)
@given(st.integers(2, 30), st.integers(0, 1000), st.floats(0.01, 0.99))
def test_resolvent_equals_its_slow_twin(form, method, n, seed, alpha):
    S = normalized_adjacency(random_graph(n, seed))
    B = np.random.RandomState(seed).normal(size=(n, 4))
    found = resolvent(form(S), alpha, B, method=method, tol=1e-13)
    assert_allclose(found.x, np.linalg.solve(np.eye(n) - alpha * S, B), rtol=1e-8, atol=1e-9)
    assert found.converged


@BOTH_FORMS
@BOTH_WAYS
@settings(max_examples=25)
@given(st.integers(2, 30), st.integers(0, 1000))
def test_poisson_equals_its_slow_twin(form, method, n, seed):
    W = random_graph(n, seed)
    B = np.random.RandomState(seed).normal(size=(n, 3))
    B -= B.mean(axis=0)
    found = poisson_solve(form(W), B, method=method, tol=1e-13, max_iter=10_000)
    expected = slow_poisson(W, B)
    assert_allclose(found.x, expected, atol=1e-6 * np.abs(expected).max())
    assert_allclose(W.sum(axis=1) @ found.x, 0, atol=1e-6 * np.abs(expected).max() * W.sum())


def test_the_two_ways_agree_on_a_neighbour_graph():
    X, y = make_blobs(1500, 5, centers=4, cluster_std=4.0, random_state=0)
    W = Affinity(10).fit_transform(X)
    fixed = np.zeros(1500, dtype=bool)
    fixed[::50] = True
    Y = np.eye(4)[y]
    B = np.where(fixed[:, None], Y - Y[fixed].mean(axis=0), 0)
    for solver, arguments in (
        (dirichlet, (W, fixed, Y[fixed])),
        (resolvent, (normalized_adjacency(W), 0.9, Y)),
        (poisson_solve, (W, B)),
    ):
        direct, cg = (solver(*arguments, method=method) for method in ("direct", "cg"))
        assert_allclose(direct.x, cg.x, atol=1e-7)
        assert direct.n_iter == 0 < cg.n_iter < 200
        assert direct.converged
        assert cg.converged
        assert cg.residuals.max() < 1e-9


def test_residuals_are_true():
    W = csr_array(random_graph(40, 3))
    S, B = normalized_adjacency(W), np.random.RandomState(0).normal(size=(40, 3))
    found = resolvent(S, 0.99, B, method="cg", tol=1e-4)
    left = B - (found.x - 0.99 * (S @ found.x))
    size = np.linalg.norm(B, axis=0) + np.linalg.norm(found.x, axis=0)
    expected = np.linalg.norm(left, axis=0) / size
    assert_allclose(found.residuals, expected)
    assert 1e-12 < found.residuals.max() < 1e-3


@pytest.mark.parametrize("method", ["direct", "cg"])
def test_a_diagonal_that_is_not_one(method):
    A = np.diag(np.geomspace(3, 300, 50)) - normalized_adjacency(random_graph(50, 0))
    B = np.random.RandomState(0).normal(size=(50, 2))
    for matrix in (A, csr_array(A)):
        assert_allclose(A @ definite_solve(matrix, B, method=method).x, B, atol=1e-8)


def test_stopping_early_warns_with_the_residual():
    W = csr_array(path(400))
    fixed = np.arange(400) == 0
    with pytest.warns(
        ConvergenceWarning, match=r"1 of 1 linear systems.*residual is \d.*uncertain"
    ):
        found = dirichlet(W, fixed, np.ones((1, 1)), method="cg", max_iter=5)
    assert not found.converged
    assert found.n_iter == 5


def test_a_long_path_is_factorised_after_all():
    n = 3000
    fixed = np.zeros(n, dtype=bool)
    fixed[[0, -1]] = True
    values = np.array([[0.0], [1.0]])
    found = dirichlet(csr_array(path(n)), fixed, values, max_iter=20)
    assert_allclose(found.x[:, 0], np.linspace(0, 1, n), atol=1e-9)
    assert found.converged


def test_a_column_of_zeros_takes_no_iteration():
    S = normalized_adjacency(csr_array(path(30)))
    found = resolvent(S, 0.5, np.zeros((30, 2)), method="cg")
    assert_array_equal(found.x, 0)
    assert found.n_iter == 0
    assert found.converged


# Degenerate graphs ------------------------------------------------------------------------------


@BOTH_FORMS
@BOTH_WAYS
def test_components_without_a_fixed_vertex_get_zero(form, method):
    W = np.zeros((9, 9))
    W[:4, :4], W[4:8, 4:8] = path(4), path(4)
    fixed = np.zeros(9, dtype=bool)
    fixed[[0, 3]] = True
    x = dirichlet(form(W), fixed, np.array([[0.0], [3.0]]), method=method).x[:, 0]
    assert_allclose(x, [0, 1, 2, 3, 0, 0, 0, 0, 0], atol=1e-9)


@BOTH_FORMS
def test_all_fixed_and_all_but_one(form):
    W, values = form(random_graph(6, 0)), np.arange(12.0).reshape(6, 2)
    fixed = np.ones(6, dtype=bool)
    assert_array_equal(dirichlet(W, fixed, values).x, values)
    fixed[2] = False
    expected = slow_dirichlet(random_graph(6, 0), fixed, values[fixed])
    assert_allclose(dirichlet(W, fixed, values[fixed]).x, expected)


@BOTH_FORMS
@BOTH_WAYS
@pytest.mark.parametrize("bridge", [1e-3, 1e-9, 1e-14, 1e-60, 1e-200])
def test_a_piece_on_a_faint_bridge_has_the_value_at_the_other_end(form, method, bridge):
    # Two cliques of five; labels in the first alone. In the second, the harmonic extension is
    # constant and equal to the value at the bridge, however faint.
    W = np.kron(np.eye(2), np.ones((5, 5)))
    np.fill_diagonal(W, 0)
    W[4, 5] = W[5, 4] = bridge
    fixed = np.zeros(10, dtype=bool)
    fixed[:2] = True
    found = dirichlet(form(W), fixed, np.eye(2), method=method, tol=1e-13)
    assert_allclose(found.x[2:], 0.5, atol=1e-5)
    assert found.converged


@BOTH_FORMS
@BOTH_WAYS
def test_poisson_balances_each_component(form, method):
    W = np.zeros((8, 8))
    W[:4, :4], W[4:7, 4:7] = path(4), path(3)
    B = np.random.RandomState(0).normal(size=(8, 2))
    U = poisson_solve(form(W), B, method=method).x
    for part in (slice(0, 4), slice(4, 7)):
        balanced = B[part] - B[part].mean(axis=0)
        assert_allclose(U[part], slow_poisson(W[part, part], balanced), atol=1e-8)
    assert_array_equal(U[7], 0)


@BOTH_FORMS
def test_solid_drops_edges_that_are_faint_at_both_ends(form):
    W = np.zeros((4, 4))
    W[0, 1], W[1, 2], W[2, 3] = 1.0, 1e-12, 1e-12
    kept = solid(form(W + W.T))
    # (1, 2) is all that vertex 2 has beside (2, 3): it stays.
    assert_array_equal(np.asarray(kept.toarray() if form is csr_array else kept), W + W.T)
    W[2, 3] = 1.0
    kept = solid(form(W + W.T))
    assert degrees(kept).tolist() == [1.0, 1.0, 1.0, 1.0]


def test_no_dense_array_is_formed_from_a_sparse_graph(monkeypatch):
    monkeypatch.setattr(csr_array, "toarray", lambda *_: pytest.fail("dense"))
    n = solve.DIRECT_LIMIT + 500
    W = csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    W = csr_array(W + W.T)
    fixed = np.arange(n) % 10 == 0
    B = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    assert dirichlet(W, fixed, np.ones((fixed.sum(), 1))).converged
    assert poisson_solve(W, B).converged
    assert resolvent(normalized_adjacency(W), 0.9, B).converged


def test_columns_solved_in_parts_are_those_solved_together(monkeypatch):
    W = csr_array(random_graph(60, 0))
    B = np.random.RandomState(0).normal(size=(60, 7))
    together = poisson_solve(W, B, method="cg")
    monkeypatch.setattr(solve, "BLOCK_ENTRIES", 60 * 3)
    in_parts = poisson_solve(W, B, method="cg")
    assert_allclose(in_parts.x, together.x, rtol=1e-9, atol=1e-12)
    assert_allclose(in_parts.residuals, together.residuals, rtol=1e-6, atol=1e-13)
    assert in_parts.n_iter == together.n_iter
    assert in_parts.converged == together.converged
