"""LLGC: Zhou et al. 2003, in the notation of Wang. What all label methods share: test_gfhf.py."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import make_blobs

from linkwise import Affinity, Constraints
from linkwise.methods.llgc import LLGC, llgc


@pytest.fixture(scope="module")
def problem():
    X, y = make_blobs(60, centers=3, cluster_std=2.0, random_state=3)
    partial = np.full(60, -1)
    partial[::6] = y[::6]
    return Affinity().fit_transform(X), partial


def criterion_6(F, A, Y, mu):
    """Return (6) of Wang for all classes, by its sums."""
    G = F / np.sqrt(A.sum(axis=1))[:, None]
    return (A * ((G[:, None] - G[None]) ** 2).sum(axis=2)).sum() / 2 + mu * ((F - Y) ** 2).sum()


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.99])
def test_equation_5(problem, alpha):
    W, partial = problem
    result = llgc(W, Constraints.from_labels(partial), 3, alpha=alpha)
    A = W.toarray()
    A_bar = A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1)))
    y0 = np.zeros((60, 3))
    y0[partial >= 0] = np.eye(3)[partial[partial >= 0]]
    f = (1 - alpha) * np.linalg.inv(np.eye(60) - alpha * A_bar) @ y0  # (5)
    assert_allclose(result.embedding, f / f.sum(axis=1, keepdims=True), atol=1e-9)
    assert_array_equal(result.labels, f.argmax(axis=1))
    assert result.objective == pytest.approx(criterion_6(f, A, y0, (1 - alpha) / alpha))
    assert result.converged


def test_objective_is_the_minimum_of_criterion_6(problem):
    W, partial = problem
    result = llgc(W, Constraints.from_labels(partial), 3)
    Y = np.zeros((60, 3))
    Y[partial >= 0] = np.eye(3)[partial[partial >= 0]]
    A = W.toarray()

    def cost(F):
        return criterion_6(F.reshape(60, 3), A, Y, 1.0)

    def slope(F):
        F = F.reshape(60, 3)
        s = np.sqrt(A.sum(axis=1))
        return 2 * (F - A @ (F / s[:, None]) / s[:, None] + (F - Y)).ravel()

    other = minimize(cost, np.zeros(180), jac=slope, tol=1e-10)
    assert result.objective == pytest.approx(other.fun, rel=1e-6)


def test_a_wrong_label_is_outvoted():
    X, y = make_blobs(60, centers=[[0, 0], [10, 0]], random_state=0)
    partial = y.copy()
    partial[7] = 1 - y[7]
    model = LLGC(2, alpha=0.9).fit(X, constraints=Constraints.from_labels(partial))
    assert_array_equal(model.labels_, y)


def test_small_alpha_keeps_the_labels(problem):
    W, partial = problem
    known = partial >= 0
    labels = llgc(W, Constraints.from_labels(partial), 3, alpha=1e-3).labels
    assert_array_equal(labels[known], partial[known])


def test_far_away_samples_are_decided_beyond_the_noise_of_the_solver():
    # On a path the scores shrink by a constant factor a step; conjugate gradients must resolve
    # them far from both labels.
    n = 1201
    X = np.arange(n, dtype=float)[:, None]
    partial = np.full(n, -1)
    partial[[580, 620]] = [0, 1]
    model = LLGC(2, affinity=Affinity(2, scale="connectivity"))
    labels = model.fit(X, constraints=Constraints.from_labels(partial)).labels_
    near = np.arange(575, 626)
    assert_array_equal(labels[near], near > 600)


@pytest.mark.parametrize("alpha", [0, 1, -0.5, 1.5, "half"])
def test_alpha_out_of_range(alpha):
    with pytest.raises(ValueError, match="'alpha' parameter"):
        LLGC(2, alpha=alpha).fit(np.eye(5))
