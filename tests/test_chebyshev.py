"""Chebyshev-filtered subspace iteration: kernels against slow twins, the solver against LAPACK."""

from __future__ import annotations

import os
from dataclasses import replace

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import block_diag, coo_array, csr_array, diags_array, eye_array, kron
from scipy.sparse.linalg import aslinearoperator

from asserts import assert_eigenpairs, assert_same_subspace
from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg import aggregation, chebyshev, ordering
from linkwise.linalg import block_kernels as kernels
from linkwise.linalg.block_kernels import RowThreads
from linkwise.linalg.eigen import largest, smallest
from linkwise.linalg.laplacian import (
    additive_normalization,
    combinatorial,
    normalized_adjacency,
)
from linkwise.linalg.operators import (
    Congruence,
    Counted,
    Deflated,
    Projected,
    Shifted,
    as_sum,
)
from linkwise.linalg.warm import EigenWarmStart
from theory import SparsePlusLowRank, signed_symmetric

N = 700


def rng(seed=0):
    return np.random.RandomState(seed)


def random_graph(n, *, degree=8, seed=0):
    random = rng(seed)
    i, j = random.randint(n, size=(2, n * degree))
    W = csr_array(coo_array((random.uniform(size=i.size), (i, j)), shape=(n, n)))
    return csr_array(W + W.T)


def ring(n):
    i = np.arange(n)
    half = coo_array((np.ones(n), (i, (i + 1) % n)), shape=(n, n)).tocsr()
    return csr_array(half + half.T)


def path(n):
    return csr_array(diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]))


def grid(m):
    return csr_array(kron(path(m), eye_array(m)) + kron(eye_array(m), path(m)))


def knn(X):
    from sklearn.neighbors import kneighbors_graph

    W = kneighbors_graph(X, 10)
    return csr_array(W.maximum(W.T))


def planar(n, seed=0):
    return knn(rng(seed).uniform(size=(n, 2)))


S = normalized_adjacency(random_graph(N))
VALUES, VECTORS = (part[..., ::-1] for part in np.linalg.eigh(S.toarray()))


def solved(A, k, solve=largest, **named):
    pairs = solve(A, k, rng(), method="chebyshev", **named)
    assert pairs.n_products > 0  # not LAPACK
    return pairs


# --- kernels


@pytest.mark.parametrize("step", [kernels.step, kernels.step_loop])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("m", [8, 16, 24, 32, 56])
def test_step_against_scipy(step, kind, m):
    W = random_graph(300, degree=5)
    W = csr_array(block_diag([W, csr_array((3, 3))], format="csr"))  # rows without entries
    n = W.shape[0]
    X, R, Y = (
        rng(seed).normal(size=(n, m + extra)).astype(kind) for seed, extra in enumerate((8, 16, 0))
    )
    alpha, beta, gamma = rng(5).normal(size=(3, m)).astype(kind)
    expected = alpha * (W @ X[:, 8:] - 0.25 * X[:, 8:] + gamma * R[:, 16:]) - beta * Y
    matrix = (W.indptr.astype(np.int64), W.indices.astype(np.uint32), W.data.astype(kind))
    coefficients = (alpha, beta, gamma, np.array([0.25], dtype=kind))
    step(matrix, (X, R, Y), coefficients, (8, 16, 0), 0, n)
    assert_allclose(Y, expected, atol=200 * np.finfo(kind).eps)


def test_the_loop_takes_over_where_the_vector_kernel_does_not_compile(monkeypatch):
    def broken(*_):
        raise RuntimeError("no such instruction")

    assert kernels._fastest_step() is kernels._step_in_registers
    monkeypatch.setattr(kernels, "_step_in_registers", broken)
    with pytest.warns(UserWarning, match="does not compile: no such instruction"):
        assert kernels._fastest_step.__wrapped__() is kernels.step_loop


def test_small_kernels_against_numpy(monkeypatch):
    monkeypatch.setattr(kernels, "ROWS_PER_BLOCK", 50)
    n, m = 203, 8
    X, Y, V = rng(0).normal(size=(n, m)), rng(1).normal(size=(n, m)), rng(2).normal(size=(n, 3))
    Q, values = rng(3).normal(size=(m, m)), rng(4).normal(size=m)
    team = RowThreads(np.arange(n + 1))
    assert team.n_blocks == 5
    assert_allclose(team.cross(V, X), V.T @ X, atol=1e-12)
    R, sums = np.empty((n, m), dtype=np.float32), np.empty((5, m))
    team.on_blocks(kernels.residual, X, Y, values, R, sums)
    assert_allclose(R, Y - X * values, atol=1e-5)
    assert_allclose(sums.sum(axis=0), np.sum((Y - X * values) ** 2, axis=0))
    expected = X + V @ Q[:3]
    team.on_rows(kernels.add_product, X, V, Q[:3])
    assert_allclose(X, expected, atol=1e-12)
    expected = X @ Q
    team.on_rows(kernels.rotate, X, Q)
    assert_allclose(X, expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, 7, 8, 203])
@pytest.mark.parametrize("m", [1, 3, 8, 11, 24])
def test_dense_products(monkeypatch, n, m):
    monkeypatch.setattr(kernels, "ROWS_PER_BLOCK", 50)
    X, Y = rng(0).normal(size=(n, m)), rng(1).normal(size=(n, 24))
    team = RowThreads(np.arange(n + 1))
    assert_allclose(team.cross(X, Y), X.T @ Y, atol=1e-12)
    assert_allclose(team.cross(Y, X), Y.T @ X, atol=1e-12)
    Q = rng(2).normal(size=(24, 24))
    expected = Y @ Q
    kernels.rotate(Y, Q, 0, n)
    assert_allclose(Y, expected, atol=1e-12)


def test_threads_share_all_rows(monkeypatch):
    monkeypatch.setattr(kernels, "PARALLEL_FROM", 0)
    monkeypatch.setattr(numba, "get_num_threads", lambda: 3)
    W = random_graph(100)
    team = RowThreads(W.indptr.astype(np.int64))
    met = []
    team.on_rows(lambda first, last: met.extend(range(first, last)))
    team.close()
    assert sorted(met) == list(range(100))


def test_filter_is_the_chebyshev_polynomial():
    # The residual form of the filter against the polynomial itself, of the dense matrix.
    with chebyshev._product(S, 8, None) as product:
        basis = chebyshev._Basis(product, 8, rng())
        basis.fill(None)
        basis.rayleigh_ritz()
        X, low, bound, degree = basis.X.copy(), -0.6, 0.1, 9
        assert basis.filter((low, bound), degree, 0)
        t = (2 * VALUES - low - bound) / (bound - low)
        of_matrix = np.polynomial.chebyshev.chebval(t, np.eye(degree + 1)[degree])
        expected = VECTORS @ (of_matrix[:, None] * (VECTORS.T @ X))
        t = np.maximum((2 * basis.values - low - bound) / (bound - low), 1)
        expected /= np.cosh(degree * np.arccosh(t))
        assert_allclose(basis.X, expected, atol=1e-5 * np.abs(expected).max())


# --- the order of the rows


def test_order_brings_neighbours_together(monkeypatch):
    monkeypatch.setattr(ordering, "NEAR", 1_000)
    shuffled = rng().permutation(2_000)
    W = ring(2_000)
    assert ordering.local_order(W, 96) is None  # already in order
    order = ordering.local_order(csr_array(W[shuffled][:, shuffled]), 96)
    assert_array_equal(np.sort(order), np.arange(2_000))
    assert ordering.local_order(random_graph(2_000), 96) is None  # no order helps


def test_order_is_worth_it_if_some_neighbours_get_near(monkeypatch):
    # In ten dimensions most neighbours stay far, in any order.
    W = knn(rng().normal(size=(4_000, 10)))
    monkeypatch.setattr(ordering, "NEAR", 60 * 96)
    monkeypatch.setattr(ordering, "WORTH", np.inf)
    assert ordering.local_order(W, 96) is not None
    monkeypatch.setattr(ordering, "WORTH_SHARE", 0.5)
    assert ordering.local_order(W, 96) is None


def test_the_order_is_kept_for_the_next_call(monkeypatch):
    monkeypatch.setattr(ordering, "NEAR", 1_000)
    A = normalized_adjacency(planar(3_000))
    warm = EigenWarmStart()
    first = solved(A, 5, tol=1e-8, warm=warm)
    assert warm.vectors is first.vectors
    assert warm.spectrum is not None
    assert list(warm.cutoffs) == [5]
    assert_array_equal(np.sort(warm.row_order), np.arange(3_000))
    monkeypatch.delattr("linkwise.linalg.chebyshev.local_order")
    second = solved(A, 5, tol=1e-8, warm=EigenWarmStart(row_order=warm.row_order))
    assert_allclose(second.values, first.values, atol=1e-12)


@pytest.mark.parametrize("with_known", [False, True])
def test_order_does_not_show(monkeypatch, with_known):
    W = planar(3_000)
    A, d = normalized_adjacency(W), np.sqrt(W.sum(axis=1))
    named = {"known": d[:, None] / np.linalg.norm(d), "known_values": np.ones(1)}
    named = named if with_known else {}
    U = rng().normal(size=(3_000, 2)) / 100
    A = SparsePlusLowRank(A, U - d[:, None] * (d @ U) / (d @ d), np.ones(2))
    expected = solved(A, 5, tol=1e-10, **named)
    monkeypatch.setattr(ordering, "NEAR", 1_000)
    assert ordering.local_order(as_sum(A).A, 96) is not None
    pairs = solved(A, 5, tol=1e-10, **named)
    assert_allclose(pairs.values, expected.values, atol=1e-12)
    assert_same_subspace(pairs.vectors, expected.vectors, tol=1e-6)
    assert_eigenpairs(A, pairs, tol=1e-9)


# --- against LAPACK


@pytest.mark.parametrize("solve", [largest, smallest])
@pytest.mark.parametrize("k", [1, 2, 5, 15, 40])
@pytest.mark.parametrize("seed", [0, 1])
def test_random_graphs(solve, k, seed):
    A = normalized_adjacency(random_graph(N, seed=seed))
    exact = np.linalg.eigvalsh(A.toarray())
    exact = exact[::-1][:k] if solve is largest else exact[:k]
    pairs = solved(A, k, solve, tol=1e-8)
    assert_allclose(pairs.values, exact, atol=1e-12)
    assert_eigenpairs(A, pairs, tol=1e-7, order="decreasing" if solve is largest else "increasing")
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-12)
    assert pairs.converged


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9, 0])
def test_any_tolerance_is_met_by_a_filter_in_single_precision(tol):
    A = normalized_adjacency(path(800))
    pairs = solved(A, 6, tol=tol)
    assert pairs.converged
    assert pairs.residuals.max() <= max(tol, 1e-12)
    true = np.linalg.norm(A @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert_allclose(pairs.residuals, true, atol=1e-14)


@pytest.mark.parametrize("k", [1, 2, 5, 8])
@pytest.mark.parametrize("n", [600, 2_000])
def test_double_values_of_a_ring(n, k):
    pairs = solved(normalized_adjacency(ring(n)), k)
    j = np.array([0, 1, 1, 2, 2, 3, 3, 4])[:k]
    assert_allclose(pairs.values, np.cos(2 * np.pi * j / n), atol=2e-9)


def test_double_values_of_a_grid():
    L = combinatorial(grid(30))
    of_path = 2 - 2 * np.cos(np.pi * np.arange(30) / 30)
    expected = np.sort(np.add.outer(of_path, of_path).ravel())[:10]
    pairs = solved(L, 10, smallest)
    assert_allclose(pairs.values, expected, atol=1e-8)
    assert_eigenpairs(L, pairs, tol=1e-4, order="increasing")


@pytest.mark.parametrize(("size", "c"), [(100, 6), (30, 30)])
def test_more_copies_than_the_block_has_vectors(size, c):
    A = normalized_adjacency(csr_array(block_diag([ring(size)] * c, format="csr")))
    expected = np.repeat(np.linalg.eigvalsh(normalized_adjacency(ring(size)).toarray())[::-1], c)
    pairs = solved(A, 8)
    assert_allclose(pairs.values, expected[:8], atol=1e-9)
    known = np.kron(np.eye(c), np.ones((size, 1))) / np.sqrt(size)
    for form in (np.asarray, csr_array):
        pairs = solved(A, c + 3, known=form(known), known_values=np.ones(c))
        assert_allclose(pairs.values, expected[: c + 3], atol=1e-9)
        assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(c + 3), atol=1e-12)


@pytest.mark.parametrize("chosen", [[0], [3, 1], [2, 10], [20, 21, 22]])
def test_known_vectors_anywhere_in_the_spectrum(chosen):
    pairs = solved(S, 5, tol=1e-9, known=VECTORS[:, chosen], known_values=VALUES[chosen])
    assert_allclose(pairs.values, VALUES[:5], atol=1e-12)
    assert_same_subspace(pairs.vectors, VECTORS[:, :5], tol=1e-6)


def test_an_indefinite_matrix_with_both_ends_far_out():
    A = csr_array(block_diag([random_graph(N), -3 * random_graph(N, seed=1)], format="csr"))
    exact = np.linalg.eigvalsh(A.toarray())
    assert_allclose(solved(A, 4, smallest, tol=1e-9).values, exact[:4], atol=1e-9)
    assert_allclose(solved(A, 4, largest, tol=1e-9).values, exact[::-1][:4], atol=1e-9)


def test_a_lower_end_that_lanczos_does_not_see():
    # An isolated edge has the value -1; a random vector hardly meets it.
    W = csr_array(block_diag([random_graph(20_000), ring(2)], format="csr"))
    A = normalized_adjacency(W)
    pairs = solved(A, 3)
    assert pairs.converged
    assert_allclose(pairs.values[:2], 1, atol=1e-9)
    assert_allclose(pairs.values[2], largest(A, 3, rng(), method="arpack").values[2], atol=1e-9)


def test_a_bound_that_is_none_is_corrected():
    found = chebyshev.leading(S, 4, rng(), bounds=(-0.01, 1.0), tol=1e-8)
    assert_allclose(found.values, VALUES[:4], atol=1e-12)


def test_growth_out_of_range_starts_again(monkeypatch):
    original, calls = chebyshev._Basis.filter, []

    def overflows(self, damped, degree, n_locked):
        calls.append(damped[0])
        if len(calls) > 2:
            return original(self, damped, degree, n_locked)
        # Half way down the spectrum, and far: what lies below grows by 1e58.
        with np.errstate(all="ignore"):
            return original(self, (0.0, 0.2), 300, 0)

    monkeypatch.setattr(chebyshev._Basis, "filter", overflows)
    found = chebyshev.leading(S, 4, rng(), bounds=(-0.6, 1.0), tol=1e-8)
    assert_allclose(found.values, VALUES[:4], atol=1e-12)
    assert calls[1] <= -1  # the bound that cannot be wrong


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_scale(scale):
    pairs = solved(scale * S, 4)
    assert_allclose(pairs.values, scale * VALUES[:4], rtol=1e-9)
    assert pairs.converged


@pytest.mark.parametrize("factor", [0.0, 1.0, -2.0])
def test_multiples_of_the_identity(factor):
    pairs = solved(csr_array(factor * eye_array(600)), 3)
    assert_allclose(pairs.values, factor, atol=1e-12)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-12)
    assert pairs.converged


@pytest.mark.parametrize("n", [1, 2, 3, 10, 40, 60])
def test_small_matrices(n):
    A = normalized_adjacency(csr_array(random_graph(n) + eye_array(n)))
    exact = np.linalg.eigvalsh(A.toarray())[::-1]
    for k in {1, min(3, n), n}:
        pairs = largest(A, k, rng(), method="chebyshev", tol=1e-10)
        assert_allclose(pairs.values, exact[:k], atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_entries_are_an_error_that_says_where(bad):
    W = random_graph(N).tolil()
    W[7, 7] = bad
    with pytest.raises(ValueError, match="not finite in row 7"):
        solved(csr_array(W), 3)


def test_no_convergence_is_a_warning_and_a_full_block():
    A = normalized_adjacency(path(3_000))
    with pytest.warns(ConvergenceWarning, match="of 5 eigenpairs did not converge") as caught:
        pairs = largest(A, 5, rng(), method="chebyshev", max_iter=1)
    assert caught[0].filename == __file__
    assert not pairs.converged
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(5), atol=1e-9)
    assert_eigenpairs(A, pairs, tol=1.0)


def test_converged_pairs_are_locked_and_stay_true(monkeypatch):
    original, locked = chebyshev._Basis.filter, []

    def spied(self, damped, degree, n_locked):
        locked.append(n_locked // kernels.LANES)
        return original(self, damped, degree, n_locked)

    monkeypatch.setattr(chebyshev._Basis, "filter", spied)
    A = normalized_adjacency(planar(3_000))
    pairs = solved(A, 30, tol=1e-9)
    assert locked[0] == 0
    assert max(locked) > 0
    assert locked == sorted(locked)  # once converged, always converged
    assert_eigenpairs(A, pairs, tol=1e-8)
    assert pairs.residuals.max() <= 1e-9


# --- operators

U = rng(2).normal(size=(N, 3)) / 30
V = np.linalg.qr(U)[0]
OPERATORS = {
    "shifted": lambda M: Shifted(M, 3.0, scale=-2.0),
    "deflated": lambda M: Deflated(M, V, 0.7),
    "deflated sparse": lambda M: Deflated(M, csr_array(V), 0.7),
    "projected": lambda M: Projected(M, V),
    "low rank": lambda M: SparsePlusLowRank(M, U, np.array([0.5, -1.0, 2.0])),
    "low rank sparse": lambda M: SparsePlusLowRank(M, csr_array(U), np.diag([0.5, -1.0, 2.0])),
    "counted": Counted,
    "nested": lambda M: Shifted(Deflated(Projected(Counted(M), V), V, 2.0), 0.3, scale=0.5),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("solve", [largest, smallest])
def test_operators_reach_single_precision(name, solve):
    A = OPERATORS[name](S)
    parts = as_sum(A)
    dense = parts.scale * parts.A.toarray() + parts.shift * np.eye(N)
    for factor, C in parts.terms:
        dense += factor @ (C @ factor.T.toarray() if hasattr(factor, "toarray") else C @ factor.T)
    assert_allclose(dense, A @ np.eye(N), atol=1e-12)
    exact = np.linalg.eigvalsh(dense)
    exact = exact[::-1][:4] if solve is largest else exact[:4]
    pairs = solved(A, 4, solve, tol=1e-10)
    assert_allclose(pairs.values, exact, atol=1e-10)
    assert_eigenpairs(A, pairs, tol=1e-8, order="decreasing" if solve is largest else "increasing")


@pytest.mark.parametrize(
    "A", [aslinearoperator(S), S.toarray(), Congruence(S, lambda X: X, lambda X: X)]
)
def test_operators_that_cannot(A):
    assert as_sum(A) is None
    assert_allclose(solved(A, 4, tol=1e-10).values, VALUES[:4], atol=1e-12)


def test_signed_laplacian():
    W = random_graph(N)
    W.data *= np.sign(W.data - 0.3)
    L = signed_symmetric(csr_array((W + W.T) / 2))
    exact = np.linalg.eigvalsh(L.toarray())[:5]
    assert_allclose(solved(L, 5, smallest, tol=1e-9).values, exact, atol=1e-12)


# --- warm starts

STARTS = {
    "good": VECTORS[:, :5],
    "noisy": VECTORS[:, :5] + 1e-4 * rng(1).normal(size=(N, 5)),
    "without the first": VECTORS[:, 1:6],
    "interior": VECTORS[:, 20:35],
    "last": VECTORS[:, -6:],
    "more than wanted": VECTORS[:, :40],
    "one six times": np.repeat(VECTORS[:, 3:4], 6, axis=1),
    "zero": np.zeros((N, 2)),
    "not finite": np.full((N, 3), np.nan),
    "none": np.empty((N, 0)),
}


@pytest.mark.parametrize("method", ["chebyshev", "arpack", "lobpcg"])
@pytest.mark.parametrize("name", STARTS)
def test_a_start_never_changes_the_answer(method, name):
    pairs = largest(S, 5, rng(), tol=1e-7, method=method, warm=EigenWarmStart(STARTS[name]))
    assert_allclose(pairs.values, VALUES[:5], atol=1e-11)
    assert pairs.converged


def test_a_start_that_lacks_more_than_there_are_guards():
    start = VECTORS[:, 30:50]
    assert chebyshev.block_width(15) - start.shape[1] < 15
    assert_allclose(
        solved(S, 15, tol=1e-7, warm=EigenWarmStart(start)).values, VALUES[:15], atol=1e-11
    )


def test_a_good_start_saves_products():
    cold = solved(S, 5).n_products
    good, noisy = (EigenWarmStart(STARTS[name]) for name in ("good", "noisy"))
    assert solved(-S, 5, smallest, warm=good).n_products < 0.3 * cold
    assert solved(S, 5, warm=EigenWarmStart(STARTS["good"])).n_products < 0.3 * cold
    assert solved(S, 5, warm=noisy).n_products < 0.7 * cold


def test_known_vectors_in_a_start_take_no_place():
    known = {"known": VECTORS[:, :1], "known_values": VALUES[:1]}
    with_it, without = (
        solved(S, 5, warm=EigenWarmStart(VECTORS[:, first:5]), **known).n_products
        for first in (0, 1)
    )
    assert with_it == without


def other_graph(weight=5.0):
    W = random_graph(N).tolil()
    W[3, 9] = W[9, 3] = weight
    return normalized_adjacency(csr_array(W))


@pytest.fixture
def degrees(monkeypatch):
    """Return a list that every filter adds its degree to."""
    degrees = []
    run = chebyshev._Basis.filter

    def noted(self, damped, degree, n_locked):
        degrees.append(degree)
        return run(self, damped, degree, n_locked)

    monkeypatch.setattr(chebyshev._Basis, "filter", noted)
    return degrees


def test_the_first_filter_is_made_for_the_bound_of_another_matrix(degrees):
    A = other_graph()
    warm = EigenWarmStart()
    solved(S, 5, warm=warm)
    n_filters = []
    for cutoffs in (warm.cutoffs, {}):
        degrees.clear()
        pairs = solved(A, 5, warm=replace(warm, vectors=VECTORS[:, :5], cutoffs=dict(cutoffs)))
        n_filters.append(len(degrees))
        assert_allclose(pairs.values, np.linalg.eigvalsh(A.toarray())[::-1][:5], atol=1e-9)
    assert n_filters[0] < n_filters[1]


@pytest.mark.parametrize("cutoff", [-5.0, -0.5, 0.999, 5.0])
@pytest.mark.parametrize("spectrum", [(-0.01, 0.9, 1.0), (-3.0, 3.0, 3.0), (0.5, 0.5, 0.5)])
def test_the_warm_start_of_another_matrix_does_no_harm(cutoff, spectrum):
    A = other_graph(50.0)
    for start in (VECTORS[:, :5], VECTORS[:, 20:25]):
        warm = EigenWarmStart(start, spectrum=spectrum, cutoffs={5: cutoff})
        pairs = solved(A, 5, tol=1e-7, warm=warm)
        assert_allclose(pairs.values, np.linalg.eigvalsh(A.toarray())[::-1][:5], atol=1e-9)
        assert pairs.converged


def test_a_bound_close_to_the_wanted_values_is_not_taken(degrees):
    A = normalized_adjacency(planar(3_000))
    cold = solved(A, 5)
    degrees.clear()
    solved(A, 5, warm=EigenWarmStart(cold.vectors, cutoffs={5: float(cold.values[4])}))
    assert degrees[0] <= chebyshev.BRIEF_DEGREE


def test_a_short_search_leaves_the_rows_in_their_order(monkeypatch):
    monkeypatch.setattr(ordering, "NEAR", 1_000)
    A = normalized_adjacency(planar(3_000))
    warm = EigenWarmStart()
    cold = solved(A, 5, tol=1e-8, warm=warm)
    taken = []
    run = chebyshev._SparseProduct._ordered
    monkeypatch.setattr(
        chebyshev._SparseProduct,
        "_ordered",
        lambda self, matrix: taken.append(1) or run(self, matrix),
    )
    brief = solved(A, 5, tol=1e-8, warm=warm)
    assert not taken
    monkeypatch.setattr(chebyshev, "UNORDERED", 0)
    ordered = solved(A, 5, tol=1e-8, warm=warm)
    assert taken
    assert_allclose(brief.values, cold.values, atol=1e-12)
    assert_allclose(ordered.values, cold.values, atol=1e-12)


def test_vectors_of_a_slightly_other_matrix_are_improved_not_doubted(monkeypatch):
    W = random_graph(N).tolil()
    W[3, 9] = W[9, 3] = 5.0
    A = normalized_adjacency(csr_array(W))
    monkeypatch.setattr(chebyshev._Basis, "renew", None)  # only for what the start had not
    pairs = solved(A, 5, warm=EigenWarmStart(VECTORS[:, :5]))
    exact = np.linalg.eigvalsh(A.toarray())[::-1][:5]
    assert np.abs(exact - VALUES[:5]).max() > 1e-4  # another matrix indeed
    assert_allclose(pairs.values, exact, atol=1e-9)


# --- smaller copies


def without_copy(monkeypatch):
    monkeypatch.setattr(chebyshev, "COARSE_FROM", 10**9)


@pytest.mark.parametrize("form", ["walk", "additive", "laplacian", "low rank"])
def test_a_smaller_copy_saves_products_and_changes_nothing(monkeypatch, form):
    W = planar(12_000)
    A = {
        "walk": normalized_adjacency,
        "additive": additive_normalization,
        "laplacian": lambda W: Shifted(combinatorial(W), 0.0, scale=-1.0),
        "low rank": lambda W: SparsePlusLowRank(
            normalized_adjacency(W), rng().normal(size=(12_000, 2)) / 400, np.ones(2)
        ),
    }[form](W)
    pairs = solved(A, 6, tol=1e-7)
    without_copy(monkeypatch)
    plain = solved(A, 6, tol=1e-7)
    assert_allclose(pairs.values, plain.values, atol=1e-8 * abs(plain.values).max())
    assert_same_subspace(pairs.vectors, plain.vectors, tol=1e-2)
    assert pairs.converged
    assert pairs.n_products < 0.85 * plain.n_products


def test_the_copy_is_the_matrix_on_its_aggregates():
    A = normalized_adjacency(planar(2_000))
    found = aggregation.aggregated(
        (A.indptr.astype(np.int64), A.indices.astype(np.uint32), A.data), (-1.0, 1.0)
    )
    indptr, indices, data = found.matrix
    m = indptr.size - 1
    assert m < 0.3 * 2_000
    assert_array_equal(np.unique(found.of), np.arange(m))
    P = csr_array((found.weight, (np.arange(2_000), found.of)), shape=(2_000, m))
    assert_allclose((P.T @ P).toarray(), np.eye(m), atol=1e-12)
    small = csr_array((data, indices.astype(np.int64), indptr), shape=(m, m))
    assert_allclose(small.toarray(), (P.T @ A @ P).toarray(), atol=1e-12)
    X, out = rng().normal(size=(m, 8)), np.empty((2_000, 8))
    found.prolong(X, out)
    assert_allclose(out, P @ X, atol=1e-12)
    assert_allclose(found.restricted(out), X, atol=1e-12)


def test_aggregates_are_joined_by_strong_positive_entries():
    # Two strong pairs, one held apart by its sign; a vertex of low degree, near the top by itself.
    A = np.diag([0.0, 0.0, 0.0, 0.0, 0.999])
    A[0, 1] = A[1, 0] = 0.9
    A[2, 3] = A[3, 2] = -0.9
    A[4, 0] = A[0, 4] = 1e-4
    S = csr_array(A)
    parts = S.indptr.astype(np.int64), S.indices.astype(np.uint32), S.data
    of = aggregation._gathered(*parts, np.sqrt(0.02 * (1 - A.diagonal())))
    assert aggregation._joined(parts, np.sqrt(0.02 * (1 - A.diagonal())), of) == 4
    assert of[0] == of[1]
    assert len(set(of[[0, 2, 3, 4]])) == 4
    assert aggregation.aggregated(parts, (-1.0, 1.0)) is None  # hardly smaller


def test_what_a_copy_does_not_know_is_found(monkeypatch):
    A = normalized_adjacency(planar(6_000))
    expected = solved(A, 5, tol=1e-9)
    missing = expected.vectors[:, 1]
    original = aggregation.Aggregates.prolong

    def without(self, block, out):
        original(self, block, out)
        if out.shape[0] == missing.size:
            out -= np.outer(missing, missing @ out)

    monkeypatch.setattr(aggregation.Aggregates, "prolong", without)
    monkeypatch.setattr(ordering, "NEAR", np.inf)  # rows as they are
    assert_allclose(solved(A, 5).values, expected.values, atol=1e-9)


# --- determinism


def test_same_seed_same_bits_other_seed_same_answer():
    first, second, other = (
        largest(S, 5, rng(seed), tol=1e-9, method="chebyshev") for seed in (3, 3, 4)
    )
    assert_array_equal(first.vectors, second.vectors)
    assert_allclose(first.vectors, other.vectors, atol=1e-6)


@pytest.mark.parametrize("with_terms", [False, True])
def test_same_bits_on_one_and_two_threads(monkeypatch, with_terms):
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip(f"numba may use one thread here, of {os.cpu_count()} cores")
    monkeypatch.setattr(kernels, "PARALLEL_FROM", 0)
    W = planar(40_000)
    A, d = normalized_adjacency(W), np.sqrt(W.sum(axis=1))
    if with_terms:
        A = SparsePlusLowRank(A, rng().normal(size=(40_000, 2)) / 300, np.ones(2))
    named = {} if with_terms else {"known": d[:, None] / np.linalg.norm(d), "known_values": [1.0]}
    named = {name: np.asarray(value) for name, value in named.items()}
    answers = []
    before = numba.get_num_threads()
    try:
        for n_threads in (1, 2):
            numba.set_num_threads(n_threads)
            answers.append(largest(A, 4, rng(), tol=1e-3, method="chebyshev", **named))
    finally:
        numba.set_num_threads(before)
    assert_array_equal(answers[0].vectors, answers[1].vectors)
    assert_array_equal(answers[0].residuals, answers[1].residuals)


def test_a_random_block_that_does_not_show_the_largest_values():
    # The Ritz values of random vectors are near 0 in a large space: a filter of a degree that these
    # ask for would let the largest eigenvalue grow out of the range of single precision.
    n = 400_000
    values = rng(1).uniform(-0.5, 0.5, size=n)
    values[:3] = 1.0, 0.99, 0.98
    A = diags_array(values, format="csr")
    found = largest(A, 3, rng(), method="chebyshev")
    assert_allclose(found.values, values[:3], atol=1e-9)
    assert found.n_products < 1_000


@pytest.mark.parametrize(("n_hubs", "n_leaves", "k"), [(5, 2_400, 3), (2, 6_000, 2)])
def test_hubs_whose_copies_are_smaller_than_the_block(n_hubs, n_leaves, k):
    n = n_hubs * (n_leaves + 1)
    hub = np.arange(n_hubs)
    leaf = np.arange(n_hubs, n)
    rows = np.concatenate((hub[:-1], np.repeat(hub, n_leaves)))
    columns = np.concatenate((hub[1:], leaf))
    W = coo_array((np.ones(rows.size), (rows, columns)), shape=(n, n))
    S = normalized_adjacency(csr_array(W + W.T))
    found = largest(S, k, np.random.RandomState(0), method="chebyshev")
    assert found.converged
    assert_allclose(S @ found.vectors, found.vectors * found.values, atol=1e-5)
    assert found.values[0] == pytest.approx(1.0, abs=1e-6)
