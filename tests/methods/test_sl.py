"""Spectral learning: Kamvar, Klein & Manning 2003; Wacquet 2013, eq. 27; Xu 2005, eq. 2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse
from sklearn.datasets import make_blobs

from linkwise import CSC, Affinity, Constraints, NCut, SpectralLearning
from linkwise.methods.csc import edit
from linkwise.methods.ncut import ratio_sum
from linkwise.methods.sl import sl
from linkwise.metrics import ncut, rcut
from linkwise.partition import relabelled


def random_graph(n, seed):
    W = np.triu(np.random.RandomState(seed).uniform(size=(n, n)), 1)
    W[W < 0.5] = 0
    W[0, 1] = 1.0  # the largest affinity, as in the papers
    return W + W.T


def test_edited_affinity_is_equation_27():
    W = random_graph(6, seed=0)
    known = Constraints(6, must_link=[(0, 5), (2, 3)], cannot_link=[(0, 1), (4, 5)])
    expected = W.copy()
    for i, j in known.must_link:
        expected[i, j] = expected[j, i] = 1
    for i, j in known.cannot_link:
        expected[i, j] = expected[j, i] = 0
    assert_allclose(edit(W, known), expected)
    assert_allclose(edit(csr_array(W), known).toarray(), expected)


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.integers(0, 50))
def test_beliefs_scale_the_edits(together, apart, seed):
    W = random_graph(7, seed)
    known = Constraints(
        7, [(1, 2)], [(0, 1), (3, 6)], must_link_belief=together, cannot_link_belief=apart
    )
    expected = W.copy()
    expected[1, 2] = expected[2, 1] = (1 - together) * W[1, 2] + together * W.max()
    for i, j in [(0, 1), (3, 6)]:
        expected[i, j] = expected[j, i] = (1 - apart) * W[i, j]
    assert_allclose(edit(W, known), expected, atol=1e-14)
    assert_allclose(edit(csr_array(W), known).toarray(), expected, atol=1e-14)


def test_link_weight_may_be_named():
    W = random_graph(6, seed=1)
    known = Constraints(6, must_link=[(2, 5)])
    assert edit(W, known, "degree")[2, 5] == pytest.approx(W.sum() / 6)
    assert edit(W, known, 0.3)[2, 5] == pytest.approx(0.3)


def test_sparse_graphs_stay_sparse():
    X, y = make_blobs(400, centers=3, random_state=0)
    W = Affinity().fit_transform(X)
    edited = edit(W, Constraints.sample(y, 50, random_state=0))
    assert issparse(edited)
    assert edited.nnz <= W.nnz + 100
    assert (edited.data > 0).all()


def test_additive_embedding_solves_equation_2():
    # N = (A + d_max I - D) / d_max, its leading eigenvectors, rows at unit length.
    A = random_graph(30, seed=2)
    result = sl(A, Constraints(30), 3, random_state=0)
    d = A.sum(axis=1)
    N = (A + d.max() * np.eye(30) - np.diag(d)) / d.max()
    values, vectors = np.linalg.eigh(N)
    top = vectors[:, ::-1][:, :3]
    expected = top / np.linalg.norm(top, axis=1, keepdims=True)
    assert_allclose(1 - result.eigenvalues, values[::-1][:3], atol=1e-8)
    # Signs of eigenvectors are free; inner products of rows are not.
    assert_allclose(result.embedding @ result.embedding.T, expected @ expected.T, atol=1e-6)


def test_symmetric_normalisation_is_ncut_of_the_edited_graph():
    X, y = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 40, random_state=0)
    ours = SpectralLearning(
        3, affinity="precomputed", normalization="symmetric", random_state=0
    ).fit(W, constraints=known)
    plain = NCut(3, affinity="precomputed", random_state=0).fit(edit(W, known))
    assert_array_equal(ours.labels_, plain.labels_)
    assert ours.result_.objective == pytest.approx(plain.result_.objective)
    # The random walk of Xu's CSC has the same unit rows.
    walk = CSC(3, affinity="precomputed", random_state=0).fit(W, constraints=known)
    assert_array_equal(ours.labels_, walk.labels_)


def test_without_constraints_symmetric_is_ncut():
    X, _ = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    assert_array_equal(
        SpectralLearning(3, normalization="symmetric", random_state=0).fit(X).labels_,
        NCut(3, random_state=0).fit(X).labels_,
    )


@pytest.mark.parametrize("seed", range(5))
def test_without_constraints_additive_is_ncut_where_degrees_are_equal(seed):
    # The additive chain relaxes the ratio cut, which is the normalised cut on a regular graph.
    blocks = np.kron(np.eye(3), np.ones((10, 10)))
    W = blocks + 0.1 * random_graph(30, seed)
    np.fill_diagonal(W, 0)
    for _ in range(500):  # Sinkhorn's scaling: all degrees become 1
        s = 1 / np.sqrt(W.sum(axis=1))
        W = s[:, None] * W * s
    W = (W + W.T) / 2
    assert_allclose(W.sum(axis=1), 1, atol=1e-10)
    additive, plain = (
        M(3, affinity="precomputed", random_state=0).fit(W) for M in (SpectralLearning, NCut)
    )
    assert_array_equal(additive.labels_, plain.labels_)
    assert_allclose(additive.result_.eigenvalues, plain.result_.eigenvalues, atol=1e-6)
    rows, expected = additive.embedding_, plain.embedding_
    assert_allclose(rows @ rows.T, expected @ expected.T, atol=1e-5)


@given(st.integers(3, 15), st.integers(0, 300))
def test_sparse_editing_equals_the_dense_one_and_leaves_the_graph_alone(n, seed):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4), 1)
    W += W.T
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(i.size)[:4]
    pairs, beliefs = np.column_stack([i, j])[chosen], rng.choice([0.3, 1.0], size=chosen.size)
    known = Constraints(
        n,
        must_link=pairs[:2],
        cannot_link=pairs[2:],
        must_link_belief=beliefs[:2],
        cannot_link_belief=beliefs[2:],
    )
    # Entries in any order, each in two halves.
    order = rng.permutation(np.count_nonzero(W))
    rows, columns = (np.tile(part[order], 2) for part in np.nonzero(W))
    sorting = np.argsort(rows, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
    given = csr_array(((W / 2)[rows, columns][sorting], columns[sorting], indptr), shape=(n, n))
    before = [part.copy() for part in (given.data, given.indices, given.indptr)]
    edited = edit(given, known)
    assert_allclose(edited.toarray(), edit(W, known), atol=1e-15)
    assert edited.has_canonical_format
    assert (edited.data != 0).all()
    for part, old in zip((given.data, given.indices, given.indptr), before, strict=True):
        assert_array_equal(part, old)


@given(st.integers(2, 12), st.integers(1, 4), st.integers(0, 300))
def test_ratio_sums_are_the_cuts_of_the_metrics(n, k, seed):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.6), 1)
    W += W.T
    labels = relabelled(rng.randint(k, size=n))
    for form in (W, csr_array(W)):
        assert_allclose(ratio_sum(form, labels, W.sum(axis=1)), ncut(W, labels), atol=1e-12)
        assert_allclose(ratio_sum(form, labels, np.ones(n)), rcut(W, labels), atol=1e-12)
