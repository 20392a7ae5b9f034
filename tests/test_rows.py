"""Rows that are found by value."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from linkwise import _rows
from linkwise._rows import RowIndex


def found_slowly(rows, X):
    return [next((i for i, row in enumerate(rows) if (row == x).all()), -1) for x in X]


@pytest.mark.parametrize("values", [2, 5, 1000])
def test_equals_a_search_row_by_row(values):
    rng = np.random.RandomState(0)
    rows = rng.randint(values, size=(200, 3)).astype(float)
    X = np.vstack((rng.randint(values, size=(100, 3)), rows[:20])).astype(float)
    assert_array_equal(RowIndex(rows).find(X), found_slowly(rows, X))


def test_rows_that_share_a_key(monkeypatch):
    monkeypatch.setattr(_rows, "_keys", lambda rows: np.zeros(len(rows), np.uint64))
    rows = np.arange(12.0).reshape(6, 2)
    assert_array_equal(RowIndex(rows).find(rows[::-1]), np.arange(6)[::-1])
    assert RowIndex(rows).find(np.array([[0.0, 2.0]])).tolist() == [-1]


@pytest.mark.parametrize("values", [2, 5, 1000])
def test_sparse_rows(values):
    rng = np.random.RandomState(0)
    rows = rng.randint(values, size=(200, 4)) * (rng.uniform(size=(200, 4)) < 0.6)
    X = np.vstack((rng.randint(values, size=(100, 4)), rows[:20])).astype(float)
    stored = csr_array(X)
    stored.data[::7] = 0  # zeros that are stored are zeros
    found = RowIndex(csr_array(rows.astype(float))).find(stored)
    assert_array_equal(found, found_slowly(rows, stored.toarray()))


def test_zeros_of_either_sign_are_equal():
    assert RowIndex(np.array([[0.0, 1.0]])).find(np.array([[-0.0, 1.0]])).tolist() == [0]


def test_keys_differ():
    grid = np.stack(np.meshgrid(*[np.arange(8.0)] * 5), axis=-1).reshape(-1, 5)
    assert np.unique(_rows._keys(grid)).size > 0.99 * len(grid)


def test_blocks_do_not_matter(monkeypatch):
    rows = np.random.RandomState(0).normal(size=(50, 4))
    whole = _rows._keys(rows)
    monkeypatch.setattr(_rows, "BLOCK", 7)
    assert_array_equal(_rows._keys(rows), whole)
    assert_array_equal(RowIndex(rows).find(rows), np.arange(50))
    assert_array_equal(RowIndex(csr_array(rows)).find(csr_array(rows)), np.arange(50))
