"""Sparse matrices as patterns: every kernel against its dense twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from linkwise.linalg.sparse import (
    canonical_format,
    largest_entry,
    largest_rows,
    moved_entries,
    pairs_between,
    positions,
    union_above,
)


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_entries_move_by_their_share(n, seed):
    rng = np.random.RandomState(seed)
    A = rng.uniform(0.1, 1, size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4)
    F = rng.choice([-1.0, -0.5, 0, 0, 0, 0.3, 1.0], size=(n, n))
    expected = [
        [(1 - abs(f)) * a + 3.0 * max(f, 0.0) for a, f in zip(*rows, strict=True)]
        for rows in zip(A, F, strict=True)
    ]
    before = A.copy()
    assert_allclose(moved_entries(A, csr_array(F), 3.0), expected, rtol=1e-14)
    found = moved_entries(csr_array(A), csr_array(F), 3.0)
    assert_allclose(found.toarray(), expected, rtol=1e-14)
    assert found.has_canonical_format
    assert (found.data != 0).all()
    assert_array_equal(A, before)


def test_a_share_of_one_reaches_its_target_exactly():
    A = csr_array([[0.0, 0.1], [0.7, 0.3]])
    F = csr_array([[0.0, 1.0], [-1.0, 0.0]])
    assert_array_equal(moved_entries(A, F, 0.9).toarray(), [[0.0, 0.9], [0.0, 0.3]])


def test_entries_stored_twice_are_added_first():
    A = csr_array((np.array([0.2, 0.3, 1.0]), np.array([1, 1, 0]), np.array([0, 2, 3])))
    assert largest_entry(canonical_format(A)) == 1.0
    assert_allclose(moved_entries(A, csr_array((2, 2)), 1.0).toarray(), [[0, 0.5], [1, 0]])
    assert A.nnz == 3
    assert largest_entry(csr_array((2, 2))) == 1.0


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_the_pattern_is_the_union_above_the_diagonal(n, seed):
    rng = np.random.RandomState(seed)
    parts = [rng.uniform(0.1, 1, size=(n, n)) * (rng.uniform(size=(n, n)) < 0.3) for _ in range(3)]
    pattern = union_above(*map(csr_array, parts))
    stored = csr_array((np.ones(pattern.nnz), pattern.indices, pattern.indptr), pattern.shape)
    assert_array_equal(stored.toarray(), np.triu(np.sum(parts, axis=0) > 0, 1))
    assert_array_equal(pattern.toarray(), np.triu(parts[0], 1))
    other = csr_array(np.triu(parts[1], 1))
    found = positions(pattern, other)
    rows = np.searchsorted(pattern.indptr, found, side="right") - 1
    assert_array_equal(
        np.column_stack([rows, pattern.indices[found]]), np.argwhere(other.toarray())
    )


def test_of_equal_entries_the_first_rows_count():
    A = csr_array([[0.5, 1.0], [1.0, 1.0], [0.5, 1.0], [0.5, 0.0]])
    assert_array_equal(largest_rows(A, 3), [[1, 0, 2], [0, 1, 2]])


def test_pairs_between_groups_are_listed_once():
    groups = np.array([[0, 2, -1], [4, 2, 3], [1, -1, -1]], dtype=np.int32)
    found = pairs_between(groups, np.array([0, 1]), np.array([1, 2]), n=5)
    expected = np.zeros((5, 5), dtype=bool)
    for i, j in [(0, 4), (0, 2), (0, 3), (2, 4), (2, 3), (1, 4), (1, 2), (1, 3)]:
        expected[i, j] = True
    assert found.has_canonical_format
    assert_array_equal(found.toarray(), expected)
