"""The lowest eigenpairs of two Laplacians together."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from scipy.sparse import coo_array, csr_array, eye_array

from asserts import assert_eigenpairs
from linkwise.linalg import pencil
from linkwise.linalg.laplacian import combinatorial


def ring(n):
    i = np.arange(n)
    edges = coo_array((np.ones(n), (i, (i + 1) % n)), shape=(n, n))
    return csr_array(edges + edges.T)


def random_links(n, n_links, seed):
    rng = np.random.RandomState(seed)
    i, j = rng.randint(n, size=(2, n_links))
    links = coo_array((rng.uniform(0.5, 3, n_links) * (i != j), (i, j)), shape=(n, n))
    return csr_array(links + links.T)


def identity_plus(C):
    return csr_array(eye_array(C.shape[0]) + combinatorial(C))


def constant(B):
    ones = np.ones((B.shape[0], 1))
    return ones / np.sqrt((ones.T @ (B @ ones)).item())


def assert_inverse_root(B):
    R = pencil.inverse_root(B)
    eye = np.eye(B.shape[0])
    assert_allclose(R.transposed(B @ R.product(eye)), eye, atol=1e-11)
    assert_allclose(R.transposed(eye), R.product(eye).T, atol=1e-12)
    assert_allclose(R.product(eye[:, 0]), R.product(eye)[:, 0], atol=1e-14)


@pytest.mark.parametrize("n_links", [0, 1, 10, 60, 400])
@pytest.mark.parametrize("max_core", [0, 2_000])
def test_root_of_the_inverse_by_a_factor_and_by_a_polynomial(n_links, max_core, monkeypatch):
    monkeypatch.setattr(pencil, "MAX_CORE", max_core)
    assert_inverse_root(identity_plus(random_links(50, n_links, 0)))


def test_root_of_an_ill_conditioned_inverse_by_a_polynomial(monkeypatch):
    monkeypatch.setattr(pencil, "MAX_CORE", -1)
    star = np.zeros((60, 60))
    star[0, 1:] = star[1:, 0] = 20.0
    assert_inverse_root(identity_plus(csr_array(star)))


def test_rows_without_a_link_are_left_alone():
    B = identity_plus(random_links(50, 5, 1))
    linked = np.flatnonzero(B.diagonal() != 1)
    x = np.random.RandomState(0).normal(size=50)
    changed = np.flatnonzero(pencil.inverse_root(B).product(x) != x)
    assert set(changed) <= set(linked)


def test_the_core_of_trees_and_rings_is_empty():
    path = ring(30).tolil()
    path[0, 29] = path[29, 0] = 0
    assert pencil._core_bound(identity_plus(csr_array(path))) == 0
    assert pencil._core_bound(identity_plus(ring(30))) <= 2


@pytest.mark.parametrize("seed", range(20))
def test_the_core_is_never_larger_than_its_bound(seed):
    C = random_links(60, 75, seed)
    linked = np.flatnonzero(np.diff(C.indptr))
    B = identity_plus(C)[linked][:, linked]
    adjacent = B.toarray() != 0
    np.fill_diagonal(adjacent, False)
    left = set(range(linked.size))
    while True:  # eliminate: the neighbours of an eliminated vertex become adjacent
        low = [v for v in left if adjacent[v, sorted(left)].sum() <= 2]
        if not low:
            break
        around = [u for u in left if adjacent[low[0], u]]
        adjacent[np.ix_(around, around)] = True
        adjacent[around, around] = False
        left -= {low[0]}
    assert len(left) <= max(pencil._core_bound(csr_array(B)), 0)


@pytest.mark.parametrize("n", [40, 700])
@pytest.mark.parametrize("dense", [False, True])
def test_lowest_equals_lapack(n, dense):
    A = combinatorial(csr_array(ring(n) + random_links(n, 2 * n, 1)))
    B = identity_plus(random_links(n, n // 2, 2))
    given = A.toarray() if dense else A
    pairs = pencil.lowest(given, B, 5, rng=np.random.RandomState(0), kernel=constant(B))
    values = eigh(A.toarray(), B.toarray(), eigvals_only=True)[:5]
    assert_allclose(pairs.values, values, atol=1e-10)
    assert_eigenpairs(A, pairs, B=B, tol=2e-6, order="increasing")
    assert pairs.converged


def test_polynomial_and_factor_give_one_answer(monkeypatch):
    A = combinatorial(csr_array(ring(700) + random_links(700, 1400, 1)))
    B = identity_plus(random_links(700, 900, 2))
    by_factor = pencil.lowest(A, B, 4, rng=np.random.RandomState(0), kernel=constant(B))
    monkeypatch.setattr(pencil, "MAX_CORE", 0)
    by_polynomial = pencil.lowest(A, B, 4, rng=np.random.RandomState(0), kernel=constant(B))
    assert_allclose(by_polynomial.values, by_factor.values, atol=1e-10)
    assert_eigenpairs(A, by_polynomial, B=B, tol=2e-6, order="increasing")


def test_double_eigenvalues_of_a_ring():
    A, B = combinatorial(ring(600)), identity_plus(csr_array((600, 600)))
    pairs = pencil.lowest(A, B, 5, rng=np.random.RandomState(0), kernel=constant(B))
    expected = 2 - 2 * np.cos(2 * np.pi * np.array([0, 1, 1, 2, 2]) / 600)
    assert_allclose(pairs.values, expected, atol=1e-9)


def test_several_vectors_in_the_kernel():
    parts = csr_array(np.kron(np.eye(2), ring(20).toarray()))
    B = identity_plus(random_links(40, 15, 0))
    indicators = np.kron(np.eye(2), np.ones((20, 1)))
    factor = np.linalg.cholesky(indicators.T @ (B @ indicators))
    kernel = np.linalg.solve(factor, indicators.T).T
    A = combinatorial(parts)
    pairs = pencil.lowest(A, B, 4, rng=np.random.RandomState(0), kernel=kernel)
    assert_allclose(pairs.values, eigh(A.toarray(), B.toarray(), eigvals_only=True)[:4], atol=1e-10)


@pytest.mark.parametrize("n", [40, 900])
def test_multigrid_finds_the_same_pairs(n):
    pytest.importorskip("pyamg")
    grid = csr_array(ring(n) + random_links(n, n // 4, 1))
    A, B = combinatorial(grid), identity_plus(random_links(n, n // 3, 2))
    by_lanczos = pencil.lowest(A, B, 4, rng=np.random.RandomState(0), kernel=constant(B))
    pairs = pencil.lowest(
        A, B, 4, rng=np.random.RandomState(0), kernel=constant(B), solver="multigrid"
    )
    assert_allclose(pairs.values, by_lanczos.values, atol=1e-8)
    assert_eigenpairs(A, pairs, B=B, tol=1e-6, order="increasing")
    assert pairs.converged


def test_multigrid_that_does_not_converge_says_so(monkeypatch):
    pytest.importorskip("pyamg")
    monkeypatch.setattr(pencil, "MAX_ITER", 1)
    A, B = combinatorial(ring(900)), identity_plus(random_links(900, 10, 0))
    with pytest.warns(pencil.ConvergenceWarning, match="solver='lanczos'"):
        pairs = pencil.lowest(
            A, B, 4, rng=np.random.RandomState(0), kernel=constant(B), solver="multigrid"
        )
    assert not pairs.converged
    assert pairs.residuals.max() > 4e-7


def test_multigrid_names_the_extra_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyamg", None)
    A, B = combinatorial(ring(900)), identity_plus(random_links(900, 10, 0))
    with pytest.raises(ImportError, match=r"pip install 'linkwise\[large\]'"):
        pencil.lowest(A, B, 3, rng=np.random.RandomState(0), kernel=constant(B), solver="multigrid")


@pytest.mark.parametrize("n_links", [0, 1, 10, 20])
def test_root_of_the_inverse_as_a_matrix(n_links):
    B = identity_plus(random_links(50, n_links, 0))
    N = pencil.root_minus_identity(B)
    R = np.eye(50) + N.toarray()
    assert_allclose(R.T @ B.toarray() @ R, np.eye(50), atol=1e-12)
    assert np.count_nonzero(N.toarray().any(axis=1)) <= 2 * n_links


def test_a_large_connected_set_stays_an_operator(monkeypatch):
    B = identity_plus(ring(40))
    assert pencil.root_minus_identity(B) is None
    monkeypatch.setattr(pencil, "MAX_SET", 40)
    assert pencil.root_minus_identity(B) is not None


@pytest.mark.parametrize("n", [60, 700])
def test_matrix_and_operator_have_the_same_eigenpairs(n, monkeypatch):
    A = combinatorial(csr_array(ring(n) + random_links(n, n, 1)))
    B = identity_plus(random_links(n, n // 10, 2))
    answers = []
    for max_set in (n, 0):
        monkeypatch.setattr(pencil, "MAX_SET", max_set)
        answers.append(
            pencil.lowest(
                A, B, 4, rng=np.random.RandomState(0), kernel=constant(B), solver="lanczos"
            )
        )
    assert_allclose(answers[0].values, answers[1].values, rtol=1e-6, atol=1e-9)
    gram = answers[0].vectors.T @ (B @ answers[1].vectors)
    assert_allclose(np.abs(gram), np.eye(4), atol=1e-4)
