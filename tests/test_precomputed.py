"""Graphs that users bring: what is accepted, what is repaired, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.sparse import csr_array

from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.graph import check_affinity


def complete(n, seed=0):
    W = np.triu(np.random.RandomState(seed).uniform(0.1, 1, size=(n, n)), 1)
    return W + W.T


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_good_graph_passes_unchanged(form):
    W = form(complete(6))
    checked = check_affinity(W)
    assert_array_equal(checked if form is np.asarray else checked.toarray(), complete(6))


def test_older_matrices_become_arrays():
    older = sparse.csr_matrix(complete(5))  # noqa: TID251
    assert isinstance(check_affinity(older), csr_array)


def test_loops_stored_zeros_and_duplicates_are_tidied():
    indptr, indices = np.array([0, 3, 5, 8]), np.array([1, 1, 2, 0, 2, 1, 2, 0])
    data = np.array([0.5, 0.5, 0.0, 1.0, 2.0, 2.0, 9.0, 0.0])
    W = csr_array((data, indices, indptr), shape=(3, 3))
    checked = check_affinity(W)
    assert_array_equal(checked.toarray(), [[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    assert checked.nnz == 4
    assert checked.has_canonical_format
    assert W.data.size == 8  # the caller's graph stays as it was


@given(st.integers(2, 20), st.integers(0, 100), st.floats(1e-6, 1))
def test_one_asymmetric_entry_is_always_seen(n, seed, amount):
    W = complete(n, seed)
    i, j = np.random.RandomState(seed).permutation(n)[:2]
    W[i, j] += amount
    with pytest.raises(ValueError, match=rf"W\[({i}, {j}|{j}, {i})\]"):
        check_affinity(csr_array(W))


def test_rounding_is_no_asymmetry():
    W = complete(6)
    W[0, 1] *= 1 + 1e-10
    checked = check_affinity(W)
    assert_array_equal(checked, checked.T)


def test_isolated_vertices_count_as_components():
    W = np.zeros((5, 5))
    W[:3, :3] = complete(3)
    with pytest.warns(DisconnectedGraphWarning, match=r"3 connected components \(sizes 3, 1, 1\)"):
        check_affinity(csr_array(W))
    with pytest.warns(DisconnectedGraphWarning, match="5 connected components"):
        check_affinity(csr_array((5, 5)))
