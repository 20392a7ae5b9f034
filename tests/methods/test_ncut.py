"""Normalised spectral clustering: the relaxation and its rounding."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, NCut
from linkwise.linalg.laplacian import degrees, symmetric
from linkwise.methods.ncut import ncut
from theory import transition_matrix


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return Affinity().fit_transform(StandardScaler().fit_transform(X)), y


def test_raw_rows_are_eigenvectors_of_the_random_walk(wine):
    # Meila & Shi 2001: P x = lambda x with P = D^-1 W and lambda = 1 - Laplacian's eigenvalue.
    W, _ = wine
    result = ncut(W, 4, rows="raw", random_state=0)
    x, mu = result.embedding, result.eigenvalues
    assert_allclose(transition_matrix(W.toarray()) @ x, x * (1 - mu), atol=1e-6)
    # x = D^-1/2 z with orthonormal z.
    assert_allclose(x.T @ (degrees(W)[:, None] * x), np.eye(4), atol=1e-8)


def test_unit_rows_are_the_raw_ones_at_length_one(wine):
    W, _ = wine
    unit = ncut(W, 3, rows="unit", random_state=0).embedding
    raw = ncut(W, 3, rows="raw", random_state=0).embedding
    assert_allclose(unit, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-6)


def test_eigenvalues_are_the_lowest_of_the_laplacian(wine):
    W, _ = wine
    expected = np.linalg.eigvalsh(symmetric(W).toarray())[:5]
    assert_allclose(ncut(W, 5, random_state=0).eigenvalues, expected, atol=1e-6)


def test_objective_is_the_cut_over_the_volume():
    # Two triangles joined by one edge: one edge cut, each side has volume 7.
    W = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    W[2, 3] = W[3, 2] = 1
    result = ncut(W, 2, random_state=0)
    assert_array_equal(result.labels, [0, 0, 0, 1, 1, 1])
    assert result.objective == pytest.approx(2 / 7)


def test_agrees_with_scikit_learn_on_its_own_graph(wine):
    W, y = wine
    ours = NCut(3, affinity="precomputed", rows="raw", random_state=0).fit(W).labels_
    theirs = SpectralClustering(3, affinity="precomputed", random_state=0).fit(W.toarray()).labels_
    assert adjusted_rand_score(ours, theirs) > 0.95
    assert adjusted_rand_score(y, ours) > 0.85


def test_iterative_and_dense_solver_agree():
    X, y = make_blobs(800, centers=4, cluster_std=0.8, random_state=8)
    W = Affinity().fit_transform(X)
    sparse, dense = ncut(W, 4, random_state=0), ncut(W.toarray(), 4, random_state=0)
    assert_allclose(sparse.eigenvalues, dense.eigenvalues, atol=1e-6)
    assert adjusted_rand_score(sparse.labels, dense.labels) == 1
    assert adjusted_rand_score(sparse.labels, y) > 0.9
