"""Bases: what describes samples, and new samples in the same way."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from linkwise import Affinity, Prepared
from linkwise.auto import bases
from linkwise.auto.bases import (
    Landmarks,
    Spectrum,
    build_bases,
    n_vectors,
    principal_components,
)
from linkwise.auto.views import View
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.linalg.laplacian import combinatorial, degrees


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(80, n_features=6, centers=3, random_state=0)[0]


@pytest.mark.parametrize("d", [6, 120])
def test_components_are_those_of_pca(d):
    X = np.random.RandomState(0).normal(size=(50, d)) * np.linspace(1, 5, d)
    found = principal_components(X).scores
    pca = PCA(found.shape[1]).fit(X)
    turned = pca.transform(X)
    assert_allclose(
        np.abs(found / np.linalg.norm(found, axis=0)),
        np.abs(turned / np.linalg.norm(turned, axis=0)),
        atol=1e-6,
    )
    assert pca.explained_variance_ratio_.sum() >= 0.98 or found.shape[1] == 40


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_scale_of_the_data_overflows(blobs, scale):
    small, usual = principal_components(scale * blobs).scores, principal_components(blobs).scores
    assert_allclose(small, usual, rtol=1e-6, atol=1e-9)


def test_constant_data_have_no_components():
    assert_allclose(principal_components(np.ones((5, 3))).scores, 0.0)


def test_functions_on_the_graph_are_eigenvectors_of_the_walk(blobs):
    W = Affinity().fit_transform(blobs)
    found = Spectrum.of(W, 10, np.random.RandomState(0))
    d = degrees(W)[:, None]
    assert_allclose(combinatorial(W) @ found.vectors / d, found.vectors * found.values, atol=1e-6)
    assert_allclose((found.vectors**2).mean(axis=0), 1.0)
    assert (np.diff(found.values) >= -1e-9).all()


def test_the_pieces_of_a_graph_have_functions_of_their_own():
    W = np.zeros((12, 12))
    W[:5, :5] = W[5:9, 5:9] = 1
    np.fill_diagonal(W, 0)
    found = Spectrum.of(csr_array(W), 3, np.random.RandomState(0))
    assert_allclose(found.values, 0.0, atol=1e-12)
    # The two large pieces alone, then the three isolated vertices together.
    assert [np.flatnonzero(v).tolist() for v in found.vectors.T] == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8],
        [9, 10, 11],
    ]


def test_landmarks_approximate_the_kernel(blobs):
    scores = principal_components(blobs).scores
    found = Landmarks.of(scores, np.random.RandomState(2))
    features = build_bases(blobs, Affinity().fit_transform(blobs), 3).at(slice(None))["kernel"][0]
    squares = ((scores[:, None] - scores[None]) ** 2).sum(axis=2)
    K = np.exp(-squares / found.bandwidth)
    assert np.abs(features @ features.T - K).max() < 0.05
    between = ((found.centers[:, None] - found.centers[None]) ** 2).sum(axis=2)
    K = np.exp(-between / found.bandwidth)
    assert_allclose(K @ found.whiten @ found.whiten.T @ K, K, atol=1e-6)


def test_all_bases_have_a_penalty(blobs):
    bases = build_bases(blobs, Affinity().fit_transform(blobs), 3)
    here, some = bases.at(slice(None)), bases.at(np.array([3, 5]))
    assert list(here) == ["linear", "kernel", "graph"]
    for name, basis in here.items():
        assert basis.features.shape == (80, basis.penalty.size)
        assert_allclose(some[name].features, basis.features[[3, 5]])
        assert_array_equal(some[name].penalty, basis.penalty)
    assert list(bases.at(slice(None), ("linear", "graph"))) == ["linear", "graph"]


def test_a_graph_alone(blobs):
    W = Affinity().fit_transform(blobs)
    bases = build_bases(None, W, 3)
    found = bases.at(slice(None))
    assert list(found) == ["linear", "graph"]
    assert found["linear"].features.shape == (80, found["linear"].penalty.size) == (80, 3)
    assert_allclose(np.linalg.norm(bases.embedding(3), axis=1), 1.0)


@pytest.mark.parametrize(("k", "n", "m"), [(3, 150, 30), (10, 1000, 40), (2, 12, 4), (3, 4, 3)])
def test_number_of_functions(k, n, m):
    assert n_vectors(k, n) == m


def test_only_the_first_components_of_wide_data(monkeypatch):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(120, 5)) @ rng.normal(size=(5, 90)) + 0.01 * rng.normal(size=(120, 90))
    whole = principal_components(X).scores
    monkeypatch.setattr(bases, "WIDE", 50)
    some = principal_components(X).scores
    assert some.shape == whole.shape == (120, 10)
    assert_allclose(some[:, :5], whole[:, :5], atol=1e-6)


def test_bases_for_fewer_clusters(blobs):
    W = Affinity().fit_transform(blobs)
    many, few = build_bases(blobs, W, 9), build_bases(blobs, W, 3)
    cut = many.for_clusters(3).at(slice(None))
    for name, basis in few.at(slice(None)).items():
        assert_allclose(cut[name].penalty, basis.penalty, atol=1e-5)
        assert cut[name].features.shape == basis.features.shape


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_components_of_sparse_data(scale):
    rng = np.random.RandomState(0)
    X = rng.poisson(0.3, size=(150, 80)) * rng.gamma(2.0, size=80)
    X[:70, :5] += 4
    dense = principal_components(scale * X).scores
    sparse = principal_components(csr_array(scale * X)).scores
    assert sparse.shape == dense.shape == (150, 40)
    unit = X.max() / np.abs(X - X.mean(axis=0)).max()  # each is in units of its own
    assert_allclose(sparse * unit, dense, atol=1e-6 * np.abs(dense).max())


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_sparse_samples_that_are_all_equal(value):
    X = np.zeros((60, 50))
    X[:, 3] = value
    assert not principal_components(csr_array(X)).scores.any()


@pytest.mark.parametrize("m", [1, 4, 7, 9])
def test_fewer_functions_than_pieces(m):
    rng = np.random.RandomState(0)
    W = block_diag(*[np.triu(rng.uniform(size=(s, s)), 1) for s in (9, 4, 6, 3, 5, 7, 2, 4)])
    W = csr_array(W + W.T)
    few, many = (Spectrum.of(W, size, np.random.RandomState(0)) for size in (m, 12))
    assert_allclose(np.abs(many.first(m).vectors), np.abs(few.vectors), atol=1e-6)
    assert_allclose(many.first(m).values, few.values, atol=1e-8)


def test_ten_components_are_kept_where_fewer_explain_the_variance():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(100, 1)) * np.ones(25) + 1e-2 * rng.normal(size=(100, 25))
    assert principal_components(X).scores.shape[1] == 10
    assert principal_components(X[:, :4]).scores.shape[1] == 4  # all of few features


def test_no_two_components_of_a_graph_share_a_place():
    W = csr_array(block_diag(*[np.ones((8, 8)) - np.eye(8) for _ in range(7)]))
    with pytest.warns(DisconnectedGraphWarning):
        data = Prepared(W, "precomputed")
    view = View(data, None, build_bases(None, W, 2))
    for cut in view.coarse_cuts:
        assert len(cut.levels) == 3
        for level in cut.levels[1:]:  # no micro-cluster has samples of two components
            found = np.unique(level.labels * 7 + np.arange(56) // 8) // 7
            assert np.unique(found).size == found.size


def test_bases_at_new_samples_are_those_at_the_samples_themselves(blobs):
    found = build_bases(blobs, Affinity().fit_transform(blobs), 3)
    some, new = found.at(np.array([3, 5, 70])), found.of_new(blobs[[3, 5, 70]])
    assert list(new) == ["linear", "kernel"]
    for name, basis in new.items():
        assert_allclose(basis.features, some[name].features, atol=1e-12)
        assert_array_equal(basis.penalty, some[name].penalty)
