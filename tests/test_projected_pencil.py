"""`Projected` and `pencil_largest`: operators on a complement, and pencils known by solves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator

from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg.generalized import pencil_largest
from linkwise.linalg.operators import Projected


def symmetric(n, seed):
    A = np.random.RandomState(seed).normal(size=(n, n))
    return A + A.T


def definite(n, seed):
    A = np.random.RandomState(seed).normal(size=(n, n))
    return A @ A.T / n + 0.1 * np.eye(n)


@pytest.mark.parametrize("c", [1, 3])
def test_projected_is_the_product_of_three_matrices(c):
    A = symmetric(9, 0)
    U = np.linalg.qr(np.random.RandomState(1).normal(size=(9, c)))[0]
    off = np.eye(9) - U @ U.T
    X = np.random.RandomState(2).normal(size=(9, 4))
    assert_allclose(Projected(A, U) @ X, off @ A @ off @ X, atol=1e-13)
    assert_allclose(Projected(A, U) @ X[:, 0], off @ A @ off @ X[:, 0], atol=1e-13)
    assert_allclose(Projected(A, U) @ U, 0, atol=1e-13)


@pytest.mark.parametrize("k", [1, 5])
def test_pencil_of_an_indefinite_and_a_definite_matrix(k):
    A, B = symmetric(60, 0), definite(60, 1)
    pairs = pencil_largest(A, B, k, rng=np.random.RandomState(0), inverse=np.linalg.inv(B))
    values, vectors = eigh(A, B)
    assert_allclose(pairs.values, values[::-1][:k], rtol=1e-9)
    assert_allclose(pairs.vectors.T @ B @ pairs.vectors, np.eye(k), atol=1e-8)
    overlap = np.abs(np.diag(pairs.vectors.T @ B @ vectors[:, ::-1][:, :k]))
    assert_allclose(overlap, 1, atol=1e-8)
    assert_allclose(
        pairs.residuals,
        np.linalg.norm(A @ pairs.vectors - B @ pairs.vectors * pairs.values, axis=0),
        atol=1e-12,
    )
    assert pairs.converged
    assert pairs.n_products > k


def test_a_singular_pencil_on_the_range_of_its_solves():
    # Both matrices vanish on the first direction, and the pseudoinverse keeps away from it.
    A, B = np.zeros((30, 30)), np.zeros((30, 30))
    A[1:, 1:], B[1:, 1:] = symmetric(29, 2), definite(29, 3)
    inverse = np.linalg.pinv(B, hermitian=True)
    pairs = pencil_largest(A, B, 3, rng=np.random.RandomState(0), inverse=inverse)
    assert_allclose(pairs.values, eigh(A[1:, 1:], B[1:, 1:])[0][::-1][:3], rtol=1e-9)
    assert_allclose(pairs.vectors[0], 0, atol=1e-12)


def test_the_same_seed_gives_the_same_pairs():
    A, B = symmetric(60, 0), definite(60, 1)
    inverse = np.linalg.inv(B)
    first, second = (
        pencil_largest(A, B, 2, rng=np.random.RandomState(5), inverse=inverse) for _ in range(2)
    )
    assert_array_equal(first.vectors, second.vectors)


def test_giving_up_is_said():
    A, B = symmetric(400, 0), np.diag(np.logspace(-6, 0, 400))
    inverse = np.diag(1 / B.diagonal())
    with pytest.warns(ConvergenceWarning, match="eigenpairs of a pencil did not converge"):
        pairs = pencil_largest(
            -A @ A, B, 4, rng=np.random.RandomState(0), inverse=inverse, max_iter=1
        )
    assert not pairs.converged
    assert pairs.values.size < 4


def test_an_error_of_the_solves_reaches_the_caller():
    def refuse(x):
        raise ArithmeticError

    broken = LinearOperator((60, 60), matvec=refuse, dtype=float)
    with pytest.raises(ArithmeticError):
        pencil_largest(
            symmetric(60, 0), np.eye(60), 2, rng=np.random.RandomState(0), inverse=broken
        )
