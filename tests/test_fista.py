"""The convex problem inside 1-spectral clustering: optimality first, then independent solvers."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import csr_array

from linkwise.linalg import fista


def random_graph(rng, n, density=0.5):
    upper = np.triu(rng.uniform(0.1, 1.0, size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    upper[np.arange(n - 1), np.arange(1, n)] = rng.uniform(0.1, 1.0, size=n - 1)
    return csr_array(upper + upper.T)


def random_direction(rng, n, scale):
    y = rng.normal(size=n)
    return scale * (y - y.mean())


def solve(W, y, c, dtype=np.float64, max_iter=20_000):
    edges = fista.edges_of(W, dtype)
    # share=1 is never reached: the solver runs until the gap is gone.
    flow = fista.new_flow(edges)
    found = fista.minimize(edges, y.astype(dtype), flow, c=c, tol=0.0, max_iter=max_iter, share=1.0)
    return found, flow


def objective(W, y, c, f):
    """Formula (4) of Rangapuram & Hein (2012), the sum over ordered pairs halved."""
    differences = np.abs(f[:, None] - f[None, :])
    return 0.5 * (W.toarray() * differences).sum() + c * (f.max() - f.min()) - y @ f


def solve_independently(W, y, c):
    """Minimise the objective plus half the squared norm, as a smooth program with bounds on
    every difference; the minimum over the unit ball is minus the length of that minimiser."""
    n = y.size
    i, j = np.triu(W.toarray(), 1).nonzero()
    w = W.toarray()[i, j]
    m = i.size
    # Variables: f, a bound on each difference, the largest and the smallest value.
    rows = np.zeros((2 * m + 2 * n, n + m + 2))
    e = np.arange(m)
    rows[e, i], rows[e, j], rows[e, n + e] = -1, 1, 1
    rows[m + e, i], rows[m + e, j], rows[m + e, n + e] = 1, -1, 1
    v = np.arange(n)
    rows[2 * m + v, v], rows[2 * m + v, n + m] = -1, 1
    rows[2 * m + n + v, v], rows[2 * m + n + v, n + m + 1] = 1, -1
    linear = np.concatenate((-y, w, [c, -c]))

    def value(x):
        return linear @ x + 0.5 * x[:n] @ x[:n]

    def slope(x):
        return linear + np.concatenate((x[:n], np.zeros(m + 2)))

    found = minimize(
        value,
        np.zeros(n + m + 2),
        jac=slope,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: rows @ x, "jac": lambda _: rows},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return found.x[:n]


@pytest.mark.parametrize("c", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_is_that_of_an_independent_solver(seed, c):
    rng = np.random.RandomState(seed)
    W, y = random_graph(rng, 8), random_direction(rng, 8, 2.0)
    found, _ = solve(W, y, c)
    f = solve_independently(W, y, c)
    assert_allclose(found.bound, -np.linalg.norm(f), atol=1e-5)
    assert_allclose(found.value, -np.linalg.norm(f), atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 40), st.floats(0, 3), st.floats(0.01, 10))
def test_the_duality_gap_closes_and_the_bound_is_one(seed, n, c, scale):
    rng = np.random.RandomState(seed)
    W, y = random_graph(rng, n, 0.3), random_direction(rng, n, scale)
    found, flow = solve(W, y, c)
    assert found.value - found.bound <= 1e-6 * np.linalg.norm(y)
    # The duals are feasible, and their sums are what the solver says they are.
    edges = fista.edges_of(W)
    assert (np.abs(flow.duals[:, 1]) <= edges.weight).all()
    heads = np.repeat(np.arange(n), np.diff(edges.indptr))
    sums = np.bincount(heads, flow.duals[:, 1], n) - np.bincount(edges.indices, flow.duals[:, 1], n)
    assert_allclose(flow.sums, sums, atol=1e-9 * (1 + scale))
    if found.value < 0:
        assert_allclose(np.linalg.norm(found.f), 1.0)
        assert_allclose(objective(W, y, c, found.f), found.value, atol=1e-9 * (1 + scale))
    # Weak duality: no vector of the unit ball is below the bound.
    for _ in range(20):
        f = rng.normal(size=n)
        f /= np.linalg.norm(f)
        assert objective(W, y, c, f) >= found.bound - 1e-9 * (1 + scale)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 50), st.floats(1e-3, 20))
def test_cutting_off_is_the_prox_of_the_max_min_term(seed, n, c):
    rng = np.random.RandomState(seed)
    d = rng.normal(size=n) * rng.choice([1e-3, 1.0, 1e3])
    d -= d.mean()
    f = d.copy()
    fista._cut_off(f, c, np.zeros(4))
    tiny = 1e-7 * (np.abs(d).max() + c)
    removed = d - f
    assert_allclose(removed.sum(), 0, atol=n * tiny)
    if np.ptp(f) > tiny:
        # What is removed is c (u - v), with u in the simplex over the largest entries and v over
        # the smallest: the optimality condition.
        assert_allclose(np.maximum(removed, 0).sum(), c, atol=n * tiny)
        assert (f[removed > tiny] >= f.max() - tiny).all()
        assert (f[removed < -tiny] <= f.min() + tiny).all()
    else:
        assert_allclose(f, 0, atol=tiny)
        assert np.abs(removed).sum() <= 2 * c + n * tiny


def test_two_blocks_give_what_one_gives(monkeypatch):
    rng = np.random.RandomState(0)
    W, y = random_graph(rng, 60, 0.2), random_direction(rng, 60, 1.0)
    one, _ = solve(W, y, 0.5, max_iter=300)
    monkeypatch.setattr(fista, "PARALLEL_FROM", 10)
    assert fista.edges_of(W).rows.size == 3
    two, _ = solve(W, y, 0.5, max_iter=300)
    assert_allclose(two.f, one.f, atol=1e-9)
    again, _ = solve(W, y, 0.5, max_iter=300)
    assert_array_equal(two.f, again.f)


def test_single_precision_loses_single_precision_only():
    rng = np.random.RandomState(1)
    W, y = random_graph(rng, 60, 0.2), random_direction(rng, 60, 1.0)
    double, _ = solve(W, y, 0.5)
    single, flow = solve(W, y, 0.5, dtype=np.float32, max_iter=2000)
    assert flow.duals[:, 1].dtype == single.f.dtype == np.float32
    assert_allclose(single.value, double.value, rtol=1e-4)


def test_it_stops_where_there_is_no_descent_and_where_there_is_enough():
    rng = np.random.RandomState(2)
    W = random_graph(rng, 30)
    edges = fista.edges_of(W)
    weak = random_direction(rng, 30, 1e-3)
    found = fista.minimize(edges, weak, fista.new_flow(edges), c=0.0, tol=1e-9, max_iter=5000)
    assert found.bound >= -1e-9
    assert found.n_iter < 5000
    strong = random_direction(rng, 30, 10.0)
    found = fista.minimize(edges, strong, fista.new_flow(edges), c=0.0, tol=1e-9, max_iter=5000)
    assert found.value <= 0.5 * found.bound < 0
    exact, _ = solve(W, strong, 0.0)
    assert found.n_iter < exact.n_iter
    assert found.bound <= exact.value


def test_a_graph_without_edges():
    W = csr_array((3, 3))
    found, _ = solve(W, np.array([1.0, 0.0, -1.0]), 0.0, max_iter=10)
    assert_allclose(found.f, np.array([1.0, 0.0, -1.0]) / np.sqrt(2))
    assert_allclose(found.value, -np.sqrt(2))


def test_the_bits_do_not_depend_on_the_number_of_threads(monkeypatch):
    before = numba.get_num_threads()
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("one thread only")
    rng = np.random.RandomState(3)
    W, y = random_graph(rng, 400, 0.05), random_direction(rng, 400, 1.0)
    monkeypatch.setattr(fista, "PARALLEL_FROM", 10)
    answers = []
    for n_threads in (1, 2):
        numba.set_num_threads(n_threads)
        try:
            answers.append(solve(W, y, 0.7, dtype=np.float32, max_iter=200))
        finally:
            numba.set_num_threads(before)
    assert_array_equal(answers[0][0].f, answers[1][0].f)
    assert_array_equal(answers[0][1].duals[:, 1], answers[1][1].duals[:, 1])


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 10_000),
    st.floats(1e-3, 1e4),
    st.sampled_from([1e-3, 1.0, 1e5]),
    st.sampled_from([-2.0, 0.0, 0.5, 100.0]),
)
def test_levels_of_single_precision_are_found_in_double(seed, c, scale, start):
    # From inside and from outside of the data, and from levels that have crossed.
    rng = np.random.RandomState(seed)
    d = (scale * (1 + rng.normal(size=500))).astype(np.float32)
    state = np.array([1.0, 0.0, start * scale, -start * scale])
    fista._cut_off(d.copy(), c, state)
    top, bottom = state[2:]
    assert_allclose(np.maximum(d.astype(float) - top, 0).sum(), c, rtol=1e-6)
    assert_allclose(np.maximum(bottom - d.astype(float), 0).sum(), c, rtol=1e-6)
    # Found means found: from here the levels do not move.
    again = state.copy()
    fista._cut_off(d.copy(), c, again)
    assert np.abs(again - state).sum() <= 1e-7 * np.abs(state[2:]).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_beyond_the_levels(dtype):
    d = np.random.RandomState(7).normal(size=1003).astype(dtype)  # not a multiple of any block
    d[:2] = 0.5, -0.25  # at a level is not beyond it
    found = fista._excess(d, np.array([1.0, 0.0, 0.5, -0.25]))
    x = d.astype(float)
    above, below = x[x > 0.5] - 0.5, -0.25 - x[x < -0.25]
    assert_allclose(found, [above.sum(), below.sum(), above.size, below.size], rtol=1e-12)


def test_iterations_may_be_interrupted_and_continued():
    rng = np.random.RandomState(4)
    W, y = random_graph(rng, 50, 0.2), random_direction(rng, 50, 1.0)
    edges = fista.edges_of(W)
    whole, parts = fista.new_flow(edges), fista.new_flow(edges)
    fista._iterate(edges, y, whole, n_steps=40)
    for n_steps in (1, 9, 30):
        fista._iterate(edges, y, parts, n_steps=n_steps)
    assert_allclose(parts.duals[:, 1], whole.duals[:, 1], atol=1e-10)
    assert_allclose(parts.ahead, whole.ahead, atol=1e-10)
