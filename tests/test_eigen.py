"""Eigensolvers on graphs whose spectrum is known, and the certificates they return."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.sparse import block_diag, coo_array, csr_array, diags_array, eye_array, kron
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from asserts import assert_eigenpairs, assert_same_subspace
from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg import eigen, krylov
from linkwise.linalg.eigen import MANY_PAIRS_LIMIT, largest, smallest
from linkwise.linalg.generalized import generalized_smallest
from linkwise.linalg.laplacian import combinatorial, normalized_adjacency, symmetric
from linkwise.linalg.operators import Congruence, Counted, Deflated, Shifted
from theory import SparsePlusLowRank

BOTH_SIDES = [eigen.DENSE_LIMIT - 2, eigen.DENSE_LIMIT, eigen.DENSE_LIMIT + 2]
ITERATIVE = 700
both_sides = pytest.mark.parametrize("n", BOTH_SIDES)


def rng(seed=0):
    return np.random.RandomState(seed)


def edges(i, j, n):
    half = coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
    return csr_array(half + half.T)


def cycle(n):
    i = np.arange(n)
    return edges(i, (i + 1) % n, n)


def path(n):
    i = np.arange(n - 1)
    return edges(i, i + 1, n)


def star(n):
    i = np.arange(1, n)
    return edges(i, np.zeros_like(i), n)


def complete(n):
    return csr_array(1.0 - np.eye(n))


def grid(m):
    return csr_array(kron(path(m), eye_array(m)) + kron(eye_array(m), path(m)))


def copies(W, c):
    return csr_array(block_diag([W] * c, format="csr"))


def random_graph(n, *, degree=8, seed=0):
    random = rng(seed)
    i, j = random.randint(n, size=(2, n * degree))
    W = csr_array(coo_array((random.uniform(size=i.size), (i, j)), shape=(n, n)))
    return csr_array(W + W.T)


def random_symmetric(n, seed=0):
    A = rng(seed).normal(size=(n, n))
    return (A + A.T) / 2


# --- known spectra


@both_sides
@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_cycle(n, k):
    # cos(2 pi j / n): every value but the first is double.
    S = normalized_adjacency(cycle(n))
    pairs = largest(S, k, rng())
    j = np.array([0, 1, 1, 2, 2, 3, 3, 4])[:k]
    assert_allclose(pairs.values, np.cos(2 * np.pi * j / n), atol=1e-8)
    assert_eigenpairs(S, pairs, tol=1e-5)
    assert pairs.converged


@both_sides
def test_complete_graph(n):
    # 1 once, -1/(n - 1) in all other directions.
    S = normalized_adjacency(complete(n))
    pairs = largest(S, 6, rng())
    assert_allclose(pairs.values, [1] + [-1 / (n - 1)] * 5, atol=1e-8)
    assert_eigenpairs(S, pairs, tol=1e-5)


@both_sides
def test_star(n):
    # 1, -1, and 0 in all other directions.
    S = normalized_adjacency(star(n))
    assert_allclose(largest(S, 4, rng()).values, [1, 0, 0, 0], atol=1e-8)
    assert_allclose(smallest(S, 3, rng()).values, [-1, 0, 0], atol=1e-8)


@pytest.mark.parametrize("m", [10, 22, 30, 45])
@pytest.mark.parametrize("seed", [0, 1])
def test_grid(m, seed):
    # Combinatorial Laplacian of a square grid: sums of two values of the path's.
    L = combinatorial(grid(m))
    of_path = 2 - 2 * np.cos(np.pi * np.arange(m) / m)
    expected = np.sort(np.add.outer(of_path, of_path).ravel())[:10]
    pairs = smallest(L, 10, rng(seed))
    assert_allclose(pairs.values, expected, atol=1e-7)
    assert_eigenpairs(L, pairs, tol=1e-4, order="increasing")


@pytest.mark.parametrize(("part", "c"), [(cycle(100), 6), (complete(20), 30), (cycle(100), 3)])
def test_equal_components_without_help(part, c):
    S = normalized_adjacency(copies(part, c))
    expected = np.repeat(np.linalg.eigvalsh(normalized_adjacency(part).toarray())[::-1], c)[:8]
    pairs = largest(S, 8, rng())
    assert_allclose(pairs.values, expected, atol=1e-8)
    assert_eigenpairs(S, pairs, tol=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_no_copy_is_missed_where_lanczos_alone_misses_them(seed, monkeypatch):
    S = normalized_adjacency(cycle(2000))
    expected = np.cos(2 * np.pi * np.array([0, 1, 1, 2, 2]) / 2000)
    assert_allclose(largest(S, 5, rng(seed)).values, expected, atol=1e-9)
    # The test itself must be able to fail.
    monkeypatch.setattr(krylov, "_reaches_above", lambda *_, **__: False)
    assert not np.allclose(largest(S, 5, rng(seed)).values, expected, atol=1e-9)


# --- agreement, determinism, invariance


@pytest.mark.parametrize("solve", [largest, smallest])
@pytest.mark.parametrize("method", ["arpack", "lobpcg"])
def test_all_methods_agree(solve, method):
    A = normalized_adjacency(random_graph(ITERATIVE))
    exact = solve(A, 4, rng(), method="dense")
    pairs = solve(A, 4, rng(), method=method)
    assert_allclose(pairs.values, exact.values, atol=1e-9)
    assert_same_subspace(pairs.vectors, exact.vectors, tol=1e-3)
    assert exact.n_products is None
    assert pairs.n_products > 4


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9, 0])
@pytest.mark.parametrize("k", [3, 6])
def test_tolerance_is_met(tol, k):
    S = normalized_adjacency(path(800))
    pairs = largest(S, k, rng(), tol=tol)
    assert pairs.converged
    assert pairs.residuals.max() <= 4 * max(tol, 1e-12)


def test_values_near_zero_cost_no_more_than_others():
    # ARPACK alone stops relative to the value, and would go on until the residuals are as
    # far below the values as usual.
    L = combinatorial(path(800))
    at_zero = smallest(L, 5, rng())
    at_four = largest(csr_array(4 * eye_array(800) - L), 5, rng())
    assert at_zero.n_products <= 1.2 * at_four.n_products
    assert_allclose(at_zero.values, 4 - at_four.values, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scaling_the_matrix_scales_the_values(scale):
    S = normalized_adjacency(random_graph(ITERATIVE))
    pairs, scaled = largest(S, 4, rng()), largest(scale * S, 4, rng())
    assert_allclose(scaled.values, scale * pairs.values, rtol=1e-9)
    assert scaled.converged


@pytest.mark.parametrize("method", ["dense", "arpack", "lobpcg"])
@pytest.mark.parametrize(
    "W", [copies(cycle(200), 3), csr_array(np.ones((600, 600)))], ids=["cycles", "rank one"]
)
def test_same_seed_same_bits(W, method):
    # With rank one a Krylov space is full after two steps: ARPACK may draw new vectors.
    if method == "arpack" and not krylov.ARPACK_TAKES_RNG:
        pytest.skip("scipy < 1.17 draws new vectors from a state of its own")
    S = normalized_adjacency(W)
    first, second = (largest(S, 5, rng(3), method=method) for _ in range(2))
    assert_array_equal(first.values, second.values)
    assert_array_equal(first.vectors, second.vectors)


@pytest.mark.parametrize("method", ["dense", "arpack"])
def test_order_of_the_rows_does_not_matter(method):
    S = normalized_adjacency(random_graph(600))
    order = rng(1).permutation(600)
    pairs = largest(S, 4, rng(), tol=1e-10, method=method)
    permuted = largest(S[order][:, order], 4, rng(), tol=1e-10, method=method)
    assert_allclose(permuted.vectors, pairs.vectors[order], atol=1e-7)


def test_largest_entry_is_positive():
    V = np.array([[0.1, -0.7, -0.5], [-0.9, 0.7 * (1 + 1e-9), 0.5], [0.2, 0.1, 0.5]])
    # The second column is a tie up to rounding: its first entry decides.
    assert_array_equal(eigen.fix_signs(V), V * [-1, -1, -1])
    vectors = largest(random_symmetric(50), 10, rng()).vectors
    assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(10)] > 0).all()


@pytest.mark.parametrize("n", [50, ITERATIVE])
def test_linear_operator(n):
    S = normalized_adjacency(random_graph(n))
    pairs = largest(aslinearoperator(S), 4, rng())
    assert_eigenpairs(S, pairs, tol=1e-5)
    assert_allclose(pairs.values, largest(S.toarray(), 4, rng()).values, atol=1e-9)


# --- edges of the domain


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_all_pairs_of_a_small_matrix(n):
    A = random_symmetric(n)
    for method in ("auto", "dense", "arpack"):
        pairs = largest(A, n, rng(), method=method)
        assert_eigenpairs(A, pairs)
        assert_allclose(pairs.values, np.linalg.eigvalsh(A)[::-1], atol=1e-10)


@pytest.mark.parametrize("method", ["dense", "arpack", "lobpcg"])
@pytest.mark.parametrize("factor", [0.0, 1.0, -2.0])
def test_multiples_of_the_identity(method, factor):
    pairs = largest(csr_array(factor * eye_array(600)), 3, rng(), method=method)
    assert_allclose(pairs.values, factor, atol=1e-9)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(3), atol=1e-9)
    assert pairs.converged


@pytest.mark.parametrize("n", [20, ITERATIVE])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_entries_are_an_error_that_says_where(n, bad):
    W = random_graph(n).tolil()
    W[7, 7] = bad
    with pytest.raises(ValueError, match="not finite in row 7"):
        largest(csr_array(W), 3, rng())


@pytest.mark.parametrize("method", ["arpack", "lobpcg"])
def test_no_convergence_is_a_warning_and_a_full_block(method):
    S = normalized_adjacency(path(3000))
    with pytest.warns(ConvergenceWarning, match="of 5 eigenpairs did not converge.*max_iter"):
        pairs = largest(S, 5, rng(), method=method, max_iter=1)
    assert not pairs.converged
    assert pairs.vectors.shape == (3000, 5)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(5), atol=1e-9)
    # The certificate is true of a bad block as well.
    assert_eigenpairs(S, pairs, tol=1.0)
    assert pairs.residuals.max() > 4e-6


def test_the_warning_points_at_the_caller():
    with pytest.warns(ConvergenceWarning) as caught:
        smallest(combinatorial(path(3000)), 3, rng(), max_iter=1)
    assert caught[0].filename == __file__


def test_a_solver_that_fails_altogether_still_gives_a_block(monkeypatch):
    def fails(*args, **kwargs):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(krylov, "lobpcg", fails)
    with pytest.warns(ConvergenceWarning):
        pairs = largest(normalized_adjacency(path(3000)), 5, rng(), max_iter=1)
    assert pairs.vectors.shape == (3000, 5)


# --- deflation of known vectors


def indicators(c, size, *, sparse):
    """Normalised indicator vectors of `c` equal components of a regular graph."""
    block = np.kron(np.eye(c), np.ones((size, 1))) / np.sqrt(size)
    return csr_array(block) if sparse else block


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size", [20, 200])
@pytest.mark.parametrize("k", [2, 4, 7])
def test_components_are_complete_cheap_and_kept(sparse, size, k):
    c = 4
    S = normalized_adjacency(copies(cycle(size), c))
    known = indicators(c, size, sparse=sparse)
    pairs = largest(S, k, rng(), known=known, known_values=np.ones(c))
    assert_allclose(pairs.values, [1] * min(k, c) + [np.cos(2 * np.pi / size)] * (k - c), atol=1e-8)
    assert_eigenpairs(S, pairs, tol=1e-5)
    # They come back as they were given, not rotated.
    dense = indicators(c, size, sparse=False)[:, :k]
    assert_array_equal(pairs.vectors[:, : min(k, c)], dense)
    if k <= c and pairs.n_products is not None:
        assert pairs.n_products < 200


def test_found_vectors_are_orthogonal_to_known_ones_at_any_tolerance():
    S = normalized_adjacency(copies(random_graph(300), 3))
    V = np.sqrt(random_graph(300).sum(axis=1))
    known = np.kron(np.eye(3), V[:, np.newaxis]) / np.linalg.norm(V)
    pairs = largest(S, 6, rng(), tol=1e-3, known=known, known_values=np.ones(3))
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(6), atol=1e-12)


def test_known_vectors_of_a_laplacian():
    L = symmetric(copies(cycle(200), 4))
    known = indicators(4, 200, sparse=True)
    pairs = smallest(L, 6, rng(), known=known, known_values=np.zeros(4))
    second = 1 - np.cos(2 * np.pi / 200)
    assert_allclose(pairs.values, [0, 0, 0, 0, second, second], atol=1e-8)
    assert_eigenpairs(L, pairs, tol=1e-5, order="increasing")


@pytest.mark.parametrize("n", [60, ITERATIVE])
@pytest.mark.parametrize("chosen", [[0], [3, 1], [2, 10], [20, 21, 22, 23, 24]])
def test_known_vectors_anywhere_in_the_spectrum(n, chosen):
    A = normalized_adjacency(random_graph(n))
    exact = eigh(A.toarray())
    values, vectors = exact[0][::-1], exact[1][:, ::-1]
    pairs = largest(A, 5, rng(), tol=1e-9, known=vectors[:, chosen], known_values=values[chosen])
    assert_allclose(pairs.values, values[:5], atol=1e-9)
    assert_same_subspace(pairs.vectors, vectors[:, :5], tol=1e-5)


# --- the generalised problem


def positive_definite(n, kind):
    random = rng(5)
    if kind == "diagonal":
        return random.uniform(1, 3, size=n)
    if kind == "sparse diagonal":
        return csr_array(diags_array(random.uniform(1, 3, size=n)))
    B = combinatorial(random_graph(n, degree=2, seed=9)) + diags_array(np.full(n, 0.5))
    return csr_array(B) if kind == "sparse" else B.toarray()


@pytest.mark.parametrize("n", [40, ITERATIVE])
@pytest.mark.parametrize("kind", ["diagonal", "sparse diagonal", "sparse", "dense"])
def test_generalized_problem_against_lapack(n, kind):
    A, B = combinatorial(random_graph(n)), positive_definite(n, kind)
    dense_B = np.diag(B) if B.ndim == 1 else B @ np.eye(n)
    values, vectors = eigh(A.toarray(), dense_B, subset_by_index=(0, 3))
    pairs = generalized_smallest(A, B, 4, rng=rng(), tol=1e-9)
    assert_allclose(pairs.values, values, atol=1e-7)
    assert_eigenpairs(A, pairs, B=dense_B, tol=1e-6, order="increasing")
    agreement = np.abs(np.sum(vectors * (dense_B @ pairs.vectors), axis=0))
    assert_allclose(agreement, 1, atol=1e-6)
    assert pairs.converged


def test_generalized_problem_of_the_normalized_cut():
    # Shi and Malik 2000: L x = lambda D x has the spectrum of the normalised Laplacian.
    W = random_graph(ITERATIVE)
    of_cut = generalized_smallest(combinatorial(W), W.sum(axis=1), 4, rng=rng())
    assert_allclose(of_cut.values, smallest(symmetric(W), 4, rng()).values, atol=1e-9)
    assert_allclose(np.ptp(of_cut.vectors[:, 0]), 0, atol=1e-6)


@pytest.mark.parametrize("n", [40, ITERATIVE])
@pytest.mark.parametrize("sparse", [False, True])
def test_indefinite_right_hand_side_is_an_error(n, sparse):
    B = combinatorial(random_graph(n)) - 5 * eye_array(n)
    B = csr_array(B) if sparse else B.toarray()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        generalized_smallest(csr_array(eye_array(n)), B, 2, rng=rng())


# --- operators


N = 12
U = rng(2).normal(size=(N, 3))
V = np.linalg.qr(U)[0]
A = random_symmetric(N)
C = random_symmetric(3, seed=4)
R = rng(6).normal(size=(N, N))

OPERATORS = {
    "shifted": (lambda M: Shifted(M, 3.0, scale=-2.0), -2 * A + 3 * np.eye(N)),
    "deflated": (lambda M: Deflated(M, V, 5.0), A - 5 * V @ V.T),
    "deflated sparse": (lambda M: Deflated(M, csr_array(V), 5.0), A - 5 * V @ V.T),
    "low rank": (lambda M: SparsePlusLowRank(M, U, C), A + U @ C @ U.T),
    "low rank diagonal": (
        lambda M: SparsePlusLowRank(M, csr_array(U), np.array([1.0, -2.0, 0.5])),
        A + U @ np.diag([1.0, -2.0, 0.5]) @ U.T,
    ),
    "congruence": (lambda M: Congruence(M, lambda X: R @ X, lambda X: R.T @ X), R.T @ A @ R),
    "counted": (Counted, A),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("wrap", [np.asarray, csr_array, aslinearoperator])
def test_operators_against_dense(name, wrap):
    build, dense = OPERATORS[name]
    operator = build(wrap(A))
    X = rng(8).normal(size=(N, 4))
    assert isinstance(operator, LinearOperator)
    assert operator.dtype == np.float64
    assert_allclose(operator @ X, dense @ X, atol=1e-12)
    assert_allclose(operator @ X[:, 0], dense @ X[:, 0], atol=1e-12)
    assert_allclose(operator.T @ X, dense @ X, atol=1e-12)
    assert_allclose(operator.matvec(X[:, :1]), dense @ X[:, :1], atol=1e-12)


def test_a_block_is_one_product():
    class OncePerBlock(LinearOperator):
        calls = 0

        def __init__(self):
            super().__init__(np.dtype(float), (N, N))

        def _matmat(self, X):
            self.calls += 1
            return A @ X

    for build, _ in OPERATORS.values():
        inner = OncePerBlock()
        build(inner) @ np.ones((N, 5))
        assert inner.calls == 1


def test_counted_counts_vectors():
    counted = Counted(A)
    counted @ np.ones(N)
    counted @ np.ones((N, 4))
    assert counted.n_products == 5


def test_no_warning_leaks_from_the_solvers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        largest(normalized_adjacency(random_graph(ITERATIVE)), 4, rng(), method="lobpcg")


@pytest.mark.parametrize("n", [30, 700])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_singular_right_hand_matrix_is_refused(n, form):
    ring = np.roll(np.eye(n), 1, axis=1)
    B = 2 * np.eye(n) - ring - ring.T  # a Laplacian: constant vectors are in its kernel
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive definite|leading minor"):
        generalized_smallest(np.eye(n), form(B), 2, rng=np.random.RandomState(0))


def test_many_pairs_of_a_large_matrix_stay_sparse():
    n = MANY_PAIRS_LIMIT + 1
    assert eigen._chosen(eye_array(n), n // 5, "auto", known_shape=(n, 0)) == "arpack"
    n = MANY_PAIRS_LIMIT
    assert eigen._chosen(eye_array(n), n // 5, "auto", known_shape=(n, 0)) == "dense"


@pytest.mark.parametrize("in_silence", [False, True])
def test_a_spectrum_on_which_lapack_gives_up(monkeypatch, in_silence):
    A = np.diag(np.arange(6.0))
    original = eigen.eigh

    def gives_up(H, **named):
        if "subset_by_index" in named and in_silence:
            return np.empty(0), np.empty((6, 0))
        if "subset_by_index" in named:
            raise np.linalg.LinAlgError("Internal Error.")
        return original(H, **named)

    monkeypatch.setattr(eigen, "eigh", gives_up)
    pairs = eigen.largest(A, 2, np.random.RandomState(0))
    assert_allclose(pairs.values, [5, 4])
