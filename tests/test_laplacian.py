"""Laplacians against their definitions, and the facts of spectral graph theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse

from asserts import assert_positive_semidefinite, assert_symmetric
from linkwise.linalg import laplacian
from linkwise.linalg.laplacian import symmetric_components
from reference import degree_matrix, identity_without_isolated, inverse_power, n_components


@st.composite
def graphs(draw, *, signed=False):
    """Small dense graphs with many absent edges, self-loops and isolated vertices."""
    n = draw(st.integers(1, 8))
    # Quarters: sums are exact, so that a zero degree is exactly zero.
    weights = st.integers(-8 if signed else 0, 8).map(lambda quarters: quarters / 4)
    upper = np.triu(draw(arrays(float, (n, n), elements=weights, fill=st.just(0.0))))
    return upper + np.triu(upper, 1).T


def random_graph(n, *, density=0.3, signed=False, seed=0):
    rng = np.random.RandomState(seed)
    W = rng.uniform(-1 if signed else 0, 1, (n, n)) * (rng.uniform(size=(n, n)) < density)
    W = np.triu(W, 1)
    return W + W.T


def D_of(W):
    return degree_matrix(W)


def D_bar(W):
    return degree_matrix(np.abs(W))


def scaled_both_sides(D, W):
    return inverse_power(D, 0.5) @ W @ inverse_power(D, 0.5)


DEFINITIONS = {
    "combinatorial": lambda W: D_of(W) - W,
    "symmetric": lambda W: identity_without_isolated(D_of(W)) - scaled_both_sides(D_of(W), W),
    "normalized_adjacency": lambda W: scaled_both_sides(D_of(W), W),
    "signed": lambda W: D_bar(W) - W,
}
SIGNED = [name for name in DEFINITIONS if name.startswith("signed")]
every_definition = pytest.mark.parametrize("name", DEFINITIONS)


@every_definition
@settings(max_examples=30)
@given(data=st.data())
def test_formulas_dense_and_sparse(name, data):
    W = data.draw(graphs(signed=name in SIGNED))
    expected = DEFINITIONS[name](W)
    function = getattr(laplacian, name)
    dense, sparse = function(W), function(csr_array(W))
    assert isinstance(dense, np.ndarray)
    assert isinstance(sparse, csr_array)
    assert_allclose(dense, expected, atol=1e-14)
    assert_allclose(sparse.toarray(), expected, atol=1e-14)


@every_definition
def test_the_graph_is_not_touched(name):
    W = csr_array(random_graph(30))
    parts = [W.data.copy(), W.indices.copy(), W.indptr.copy()]
    result = getattr(laplacian, name)(W)
    result.data[:] = 7
    result.indices[:] = 0
    for before, after in zip(parts, [W.data, W.indices, W.indptr], strict=True):
        assert_array_equal(before, after)


@every_definition
def test_symmetry_is_exact(name):
    # Not merely to rounding: Lanczos assumes it.
    W = random_graph(40, seed=3)
    assert_symmetric(getattr(laplacian, name)(W))
    assert_symmetric(getattr(laplacian, name)(csr_array(W)))


@pytest.mark.parametrize("rows_per_block", [1, 7, 50])
def test_scaling_in_blocks_of_rows(rows_per_block, monkeypatch):
    monkeypatch.setattr(laplacian, "ROWS_PER_BLOCK", rows_per_block)
    W = random_graph(50, density=0.1)
    assert_allclose(
        laplacian.normalized_adjacency(csr_array(W)).toarray(),
        DEFINITIONS["normalized_adjacency"](W),
        atol=1e-14,
    )


@given(graphs())
def test_signed_is_ordinary_for_non_negative_weights(W):
    assert_allclose(laplacian.signed(W), laplacian.combinatorial(W), atol=1e-14)


@given(graphs(signed=True))
def test_signed_laplacians_are_positive_semidefinite(W):
    assert_positive_semidefinite(laplacian.signed(W))


@given(graphs(signed=True))
def test_quadratic_form_of_the_signed_laplacian(W):
    # Kunegis et al. 2010: the sum over edges of |w_ij| (x_i - sign(w_ij) x_j)^2.
    n = len(W)
    x = np.random.RandomState(0).normal(size=n)
    expected = sum(
        abs(W[i, j]) * (x[i] - np.sign(W[i, j]) * x[j]) ** 2 for i in range(n) for j in range(i)
    ) + sum((abs(W[i, i]) - W[i, i]) * x[i] ** 2 for i in range(n))
    assert_allclose(x @ laplacian.signed(W) @ x, expected, atol=1e-10)


@given(graphs())
def test_zero_eigenvalues_count_the_components_isolated_vertices_included(W):
    for name in ("combinatorial", "symmetric", "signed"):
        values = np.linalg.eigvalsh(getattr(laplacian, name)(W))
        assert np.sum(np.abs(values) < 1e-9) == n_components(W), name


def test_isolated_vertices_are_zero_rows():
    W = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for name in DEFINITIONS:
        assert_array_equal(getattr(laplacian, name)(csr_array(W)).toarray()[2], 0)


def test_degrees():
    W = np.array([[0.0, 2.0, -3.0], [2.0, 0.0, 0.0], [-3.0, 0.0, 1.0]])
    for graph in (W, csr_array(W)):
        assert_array_equal(laplacian.degrees(graph), [-1, 2, -2])
        assert_array_equal(laplacian.absolute_degrees(graph), [5, 2, 4])
    assert_array_equal(laplacian.inverse_sqrt(np.array([4.0, 0.0, 0.25])), [0.5, 0, 2])


@given(graphs())
def test_additive_normalization_of_kamvar(W):
    # Kamvar, Klein and Manning 2003, section 2: N = (A + d_max I - D) / d_max.
    d_max = W.sum(axis=1).max()
    for graph in (W, csr_array(W)):
        N = laplacian.additive_normalization(graph)
        assert issparse(N) == issparse(graph)
        N = N.toarray() if issparse(N) else N
        if d_max > 0:
            assert_allclose(N, (W + d_max * np.eye(len(W)) - D_of(W)) / d_max, atol=1e-14)
        assert_allclose(N.sum(axis=1), 1)
        assert (N >= -1e-15).all()
        assert_symmetric(N)


@every_definition
def test_scaling_all_weights(name):
    W = random_graph(20, signed=name in SIGNED)
    factor = 3 if name in ("combinatorial", "signed") else 1
    function = getattr(laplacian, name)
    assert_allclose(function(3 * W), factor * function(W), atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_components_do_not_count_loops(form):
    W = form(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]))
    n_components, component = symmetric_components(W)
    assert n_components == 2
    assert_array_equal(component == component[0], [True, True, False])
