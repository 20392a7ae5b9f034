"""Asserters of meaning: each checks what a result is, not how it was computed."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose


def assert_eigenpairs(A, pairs, *, B=None, tol=1e-8, order="decreasing"):
    """Check ``A v = lambda B v``, B-orthonormality, the order, and the certificate."""
    values, vectors = pairs.values, pairs.vectors
    BV = vectors if B is None else B @ vectors
    residuals = np.linalg.norm(A @ vectors - BV * values, axis=0)
    assert (residuals <= tol * np.maximum(1, np.abs(values))).all(), f"residuals {residuals}"
    assert_allclose(vectors.T @ BV, np.eye(values.size), atol=tol)
    steps = np.diff(values) if order == "decreasing" else -np.diff(values)
    assert (steps <= tol).all(), f"not in {order} order: {values}"
    assert_allclose(pairs.residuals, residuals, atol=1e-12, rtol=1e-3)


def assert_same_subspace(U, V, *, tol=1e-8):
    """Check that two orthonormal blocks span one space, whatever their signs and rotation."""
    sine = np.linalg.norm(U - V @ (V.T @ U), 2)
    assert U.shape == V.shape
    assert sine <= tol, f"the sine of the largest angle between them is {sine:.1e}"


def assert_symmetric(A):
    """Check exact symmetry, dense or sparse."""
    assert abs(A - A.T).max() == 0


def assert_positive_semidefinite(A, *, tol=1e-10):
    """Check that no eigenvalue of a dense symmetric matrix is negative beyond rounding."""
    values = np.linalg.eigvalsh(A)
    assert values[0] >= -tol * max(1, abs(values[-1])), f"smallest eigenvalue {values[0]}"
