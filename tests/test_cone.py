"""Least squares over the positive semidefinite matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize as scipy_minimize

from asserts import assert_positive_semidefinite
from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg import cone


def terms(n_terms, m, seed):
    rng = np.random.RandomState(seed)
    U, V = rng.normal(size=(2, n_terms, m))
    return U, V, rng.normal(size=n_terms), rng.uniform(0.1, 2, size=n_terms)


def slow_objective(M, U, V, target, weight):
    return sum(w * (u @ M @ v - t) ** 2 for u, v, t, w in zip(U, V, target, weight, strict=True))


def problem(n_terms, m, seed):
    """Return a form with a minimiser on the boundary, and a bound on its trace."""
    U, V, target, weight = terms(n_terms, m, seed)
    form = cone.products(U, V, target=target, weight=weight)
    unit = cone.products(np.eye(m), np.eye(m), target=np.ones(m), weight=np.ones(m))
    # sum (M_ii - 1)^2 <= c at the minimum.
    form = form.plus(unit)
    return form, m + np.sqrt(m * form.c)


@given(st.integers(1, 6), st.integers(0, 100))
def test_coordinates_keep_inner_products(m, seed):
    rng = np.random.RandomState(seed)
    A, B = rng.normal(size=(2, m, m))
    A, B = A + A.T, B + B.T
    assert_allclose(cone.to_vector(A) @ cone.to_vector(B), (A * B).sum(), atol=1e-9)
    assert_allclose(cone.to_matrix(cone.to_vector(A), m), A)


@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 100))
def test_form_equals_the_sum_over_its_terms(n_terms, m, seed):
    given_terms = terms(n_terms, m, seed)
    form = cone.products(*given_terms[:2], target=given_terms[2], weight=given_terms[3])
    M = np.random.RandomState(seed).normal(size=(m, m))
    M = M + M.T
    assert_allclose(form.at(cone.to_vector(M)), slow_objective(M, *given_terms), atol=1e-8)


def test_blocks_of_terms_add_up(monkeypatch):
    U, V, target, weight = terms(103, 4, 0)
    whole = cone.products(U, V, target=target, weight=weight)
    monkeypatch.setattr(cone, "BLOCK_ENTRIES", 70)
    in_blocks = cone.products(U, V, target=target, weight=weight)
    assert_allclose(in_blocks.H, whole.H)
    assert_allclose(in_blocks.g, whole.g)
    assert in_blocks.c == whole.c


@pytest.mark.parametrize(("n_terms", "m"), [(10, 2), (30, 4), (200, 6)])
@pytest.mark.parametrize("seed", range(3))
def test_minimum_is_optimal(n_terms, m, seed):
    form, bound = problem(n_terms, m, seed)
    found = cone.minimize(form, np.eye(m), np.random.RandomState(0), trace_bound=bound, tol=1e-10)
    x = cone.to_vector(found.M)
    Z = cone.to_matrix(form.H @ x - form.g, m)
    assert found.converged
    assert_allclose(form.at(x), found.objective)
    # M and Z positive semidefinite, and orthogonal to each other.
    assert_positive_semidefinite(found.M)
    scale = np.abs(form.g).max()
    assert np.linalg.eigvalsh(Z)[0] > -1e-6 * scale
    assert abs((Z * found.M).sum()) < 1e-6 * scale
    assert np.trace(found.M) <= bound


@pytest.mark.parametrize("seed", range(4))
def test_another_solver_finds_no_lower_objective(seed):
    m = 4
    form, bound = problem(40, m, seed)
    found = cone.minimize(form, np.eye(m), np.random.RandomState(0), trace_bound=bound)

    def factored(entries):
        R = entries.reshape(m, m)
        x = cone.to_vector(R @ R.T)
        Z = cone.to_matrix(form.H @ x - form.g, m)
        return form.at(x), (4 * Z @ R).ravel()

    starts = np.random.RandomState(0).normal(size=(4, m * m))
    best = min(
        scipy_minimize(factored, s, jac=True, method="L-BFGS-B", options={"maxiter": 5_000}).fun
        for s in starts
    )
    assert_allclose(found.objective, best, rtol=1e-5)


@pytest.mark.parametrize("max_iter", [10, 20, 30])
def test_gap_bounds_what_is_left(max_iter):
    form, bound = problem(200, 6, 0)
    exact = cone.minimize(form, np.eye(6), np.random.RandomState(0), trace_bound=bound, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="Raise ridge"):
        rough = cone.minimize(
            form,
            np.eye(6),
            np.random.RandomState(0),
            trace_bound=bound,
            tol=1e-14,
            max_iter=max_iter,
        )
    assert not rough.converged
    assert rough.n_iter == max_iter
    assert rough.objective - exact.objective <= rough.gap * (1 + 1e-9)


def test_a_form_without_terms():
    empty = cone.products(
        np.empty((0, 2)), np.empty((0, 2)), target=np.empty(0), weight=np.empty(0)
    )
    found = cone.minimize(empty, np.eye(2), np.random.RandomState(0), trace_bound=1.0)
    assert found.objective == 0
    assert_allclose(found.M, np.eye(2))
