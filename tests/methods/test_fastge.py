"""FastGE: Cucuringu, Koutis, Chawla, Miller & Peng 2016."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh, null_space, qr
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from asserts import assert_same_subspace
from linkwise import Affinity, Constraints, NCut
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.methods.fastge import FastGE, constraint_cut, fast_ge, two_graphs


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    return Affinity().fit_transform(X), y


def laplacian(W):
    return np.diag(W.sum(axis=1)) - W


def demand_graph(d):
    K = np.outer(d, d) / d.sum()
    np.fill_diagonal(K, 0)
    return K


def paper_graphs(W, known, weight, demand):
    """Return `G` and `H` of the paper, dense, pair by pair; the demand graph is formed."""
    G, C = W.copy(), np.zeros_like(W)
    pairs, signed = known.signed_pairs()
    for (i, j), sign in zip(pairs, signed, strict=True):
        if sign > 0:
            G[i, j] = G[j, i] = G[i, j] + sign * weight(i, j)
        else:
            C[i, j] = C[j, i] = -sign * weight(i, j)
    return G, C + demand * demand_graph(W.sum(axis=1))


@pytest.mark.parametrize("link_weight", [1.0, 4.0, "paper"])
def test_embedding_solves_the_pencil_of_both_laplacians(blobs, link_weight):
    W, y = blobs
    W = W / W.max()
    known = Constraints.sample(y, 50, random_state=0)
    d = W.sum(axis=1)

    def weight(i, j):
        if link_weight == "paper":
            return d[i] * d[j] / (d.min() * d.max())
        return link_weight * min(d[i], d[j])

    demand = 1 / len(d) if link_weight == "paper" else 1.0
    G, H = paper_graphs(W.toarray(), known, weight, demand)
    L_G, L_H = laplacian(G), laplacian(H)
    result = fast_ge(W, known, 3, link_weight=link_weight, random_state=0)
    # Both have the constant in their kernel: the pencil lives on what is orthogonal to it.
    P = null_space(np.ones((1, len(d))))
    values, vectors = eigh(P.T @ L_G @ P, P.T @ L_H @ P)
    assert_allclose(result.eigenvalues[0], 0, atol=1e-12)
    assert_allclose(result.eigenvalues[1:], values[:2], rtol=1e-8)
    # Shifted so that d'x = 0, which changes neither side; a row is scaled to length one.
    x = P @ vectors[:, :2]
    x -= d @ x / d.sum()
    x = np.column_stack([np.ones(len(d)) / np.sqrt(demand * d.sum()), x])
    rows = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert_allclose(result.embedding @ result.embedding.T, rows @ rows.T, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("link_weight", [1.0, "paper"])
def test_without_constraints_it_is_ncut(blobs, k, link_weight):
    W, _ = blobs
    result = fast_ge(W, Constraints(120), k, link_weight=link_weight, random_state=0)
    plain = NCut(k, affinity="precomputed", random_state=0).fit(W)
    assert_array_equal(result.labels, plain.labels_)
    spaces = (qr(V, mode="economic")[0] for V in (result.embedding, plain.embedding_))
    # Rows of both are scaled by their own lengths, so equal spaces before are equal after.
    if link_weight == 1.0:
        assert_same_subspace(*spaces, tol=1e-6)
        assert_allclose(result.eigenvalues, plain.result_.eigenvalues, atol=1e-8)
        assert result.objective == pytest.approx(plain.result_.objective)


def test_without_constraints_it_is_ncut_on_a_graph_that_is_iterated_on():
    X, _ = make_blobs(900, centers=4, cluster_std=1.5, random_state=0)
    W = Affinity().fit_transform(X)
    result = fast_ge(W, Constraints(900), 4, random_state=0)
    plain = NCut(4, affinity="precomputed", random_state=0).fit(W)
    assert adjusted_rand_score(result.labels, plain.labels_) == 1
    assert_allclose(
        result.embedding @ result.embedding.T, plain.embedding_ @ plain.embedding_.T, atol=1e-3
    )


@pytest.mark.parametrize("seed", range(4))
def test_fifty_pairs_on_two_moons_are_all_satisfied(seed):
    X, y = make_moons(2_000, noise=0.1, random_state=0)
    known = Constraints.sample(y, 50, random_state=seed)
    model = FastGE(2, random_state=0).fit(X, constraints=known)
    assert known.satisfied(model.labels_) == 1
    assert adjusted_rand_score(y, model.labels_) > 0.99
    # Norms of A z - lambda B z, with a norm of A above 1: relative residuals are lower still.
    assert model.result_.residuals.max() < 1e-6
    assert model.result_.converged


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("seed", range(2))
def test_many_pairs_are_learnt(load, seed):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=seed)
    model = FastGE(len(np.unique(y)), random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) > 0.88


def test_multigrid_and_lanczos_give_one_answer():
    pytest.importorskip("pyamg")
    X, y = make_moons(1_000, noise=0.1, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 40, random_state=0)
    by_lanczos = fast_ge(W, known, 3, random_state=0)
    by_multigrid = fast_ge(W, known, 3, solver="multigrid", random_state=0)
    assert_allclose(by_multigrid.eigenvalues, by_lanczos.eigenvalues, atol=1e-9)
    assert by_multigrid.residuals.max() < 1e-6
    assert adjusted_rand_score(by_multigrid.labels, by_lanczos.labels) == 1


# The two graphs -----------------------------------------------------------------------------------


def test_a_pair_weighs_as_much_as_all_edges_of_its_lesser_sample(blobs):
    W, _ = blobs
    known = Constraints(
        120, [(0, 1), (5, 9)], [(2, 3)], must_link_belief=[1, 0.5], cannot_link_belief=0.25
    )
    graphs = two_graphs(W, known, 2.0)
    scaled = W.toarray() / W.max()
    d = scaled.sum(axis=1)
    added = graphs.G.toarray() - scaled
    assert_allclose(added[0, 1], 2 * min(d[0], d[1]))
    assert_allclose(added[9, 5], 2 * min(d[5], d[9]) / 2)
    assert_allclose(graphs.C[2, 3], 2 * min(d[2], d[3]) / 4)
    assert np.count_nonzero(np.abs(added) > 1e-12) == 4
    assert graphs.C.nnz == 2
    assert graphs.demand == 1


def test_dense_and_sparse_graphs_are_the_same(blobs):
    W, y = blobs
    known = Constraints.sample(y, 30, random_state=0)
    sparse, dense = two_graphs(W, known, 1.0), two_graphs(W.toarray(), known, 1.0)
    assert_allclose(sparse.G.toarray(), dense.G)
    assert_allclose(
        fast_ge(W, known, 3, random_state=0).eigenvalues,
        fast_ge(W.toarray(), known, 3, random_state=0).eigenvalues,
        atol=1e-12,
    )


@pytest.mark.parametrize("factor", [1e-100, 1e-10, 1e10, 1e100])
@pytest.mark.parametrize("link_weight", [1.0, "paper"])
def test_the_unit_of_the_graph_does_not_matter(blobs, factor, link_weight):
    W, y = blobs
    known = Constraints.sample(y, 40, random_state=0)
    here = fast_ge(W, known, 3, link_weight=link_weight, random_state=0)
    there = fast_ge(factor * W, known, 3, link_weight=link_weight, random_state=0)
    assert_allclose(there.eigenvalues, here.eigenvalues, atol=1e-12)
    assert_array_equal(there.labels, here.labels)


def test_objective_is_a_quotient_of_two_cuts(blobs):
    W, y = blobs
    known = Constraints.sample(y, 40, random_state=0)
    graphs = two_graphs(W, known, 1.0)
    G, C, d = graphs.G.toarray(), graphs.C.toarray(), graphs.d
    labels = np.random.RandomState(0).randint(3, size=120)
    expected = 0.0
    for c in range(3):
        x = (labels == c).astype(float)
        expected += x @ laplacian(G) @ x / (x @ (np.diag(d) + laplacian(C)) @ x)
    assert constraint_cut(graphs, labels) == pytest.approx(expected)
    result = fast_ge(W, known, 3, random_state=0)
    assert result.objective == pytest.approx(constraint_cut(graphs, result.labels))
    # The relaxation is a lower bound, by the principle of Ky Fan.
    assert result.eigenvalues.sum() <= result.objective


def test_evidence_that_cancels_out_says_nothing(blobs):
    W, _ = blobs
    both = Constraints(120, [(0, 1)], [(0, 1)], must_link_belief=0.5, cannot_link_belief=0.5)
    assert_array_equal(
        fast_ge(W, both, 3, random_state=0).labels,
        fast_ge(W, Constraints(120), 3, random_state=0).labels,
    )


def test_many_labels_do_not_explode():
    X, y = make_blobs(4_000, centers=3, cluster_std=3.0, random_state=0)
    partial = np.where(np.arange(4_000) % 2, -1, y)
    known = Constraints.from_labels(partial)
    model = FastGE(3, random_state=0).fit(X, constraints=known)
    graphs = two_graphs(model.affinity_matrix_, known, 1.0)
    assert graphs.C.nnz < 40_000  # of the two million that the labels imply
    assert known.satisfied(model.labels_) == 1


# Pieces -------------------------------------------------------------------------------------------


def pieces(*sizes):
    """Return a graph of complete pieces."""
    W = np.zeros((sum(sizes), sum(sizes)))
    first = 0
    for size in sizes:
        W[first : first + size, first : first + size] = 1
        first += size
    np.fill_diagonal(W, 0)
    return csr_array(W)


def labels_of(W, k, **pairs):
    return fast_ge(W, Constraints(W.shape[0], **pairs), k, random_state=0)


def test_fewer_pieces_than_clusters():
    # Two pieces; the second is a pair of cliques on one bridge.
    W = pieces(6, 5, 5).tolil()
    W[10, 11] = W[11, 10] = 0.1
    for pairs in ({}, {"cannot_link": [(6, 12), (0, 7)]}, {"must_link": [(12, 13)]}):
        result = labels_of(csr_array(W), 3, **pairs)
        assert_array_equal(result.labels, [0] * 6 + [1] * 5 + [2] * 5)
        assert_allclose(result.eigenvalues[:2], 0, atol=1e-12)
        assert result.eigenvalues[2] > 1e-3
        assert result.residuals.max() < 1e-6


def test_as_many_pieces_as_clusters():
    result = labels_of(pieces(4, 5, 3), 3, cannot_link=[(0, 5)])
    assert_array_equal(result.labels, [0] * 4 + [1] * 5 + [2] * 3)
    assert_array_equal(result.eigenvalues, 0)
    assert result.objective == 0


def test_a_must_link_joins_two_pieces():
    result = labels_of(pieces(4, 5, 3), 2, must_link=[(0, 10)])
    assert_array_equal(result.labels, [0] * 4 + [1] * 5 + [0] * 3)


def test_more_pieces_than_clusters_respect_cannot_links():
    # By volume 9-12 would join 13-15 and 16-17.
    W = pieces(9, 4, 3, 2)
    assert_array_equal(labels_of(W, 2).labels, [0] * 9 + [1] * 9)
    apart = labels_of(W, 2, cannot_link=[(9, 13)])
    assert_array_equal(apart.labels, [0] * 9 + [1] * 4 + [0] * 3 + [1] * 2)
    chain = labels_of(W, 2, cannot_link=[(9, 13), (13, 16)])
    assert_array_equal(chain.labels, [0] * 9 + [1] * 4 + [0] * 3 + [1] * 2)


def test_isolated_samples_are_reached_by_their_links():
    W = np.zeros((8, 8))
    W[:6, :6] = pieces(3, 3).toarray()
    W[2, 3] = W[3, 2] = 0.1
    known = Constraints(8, must_link=[(0, 6), (5, 7)], cannot_link=[(6, 7)])
    assert_array_equal(
        fast_ge(csr_array(W), known, 2, random_state=0).labels, [0, 0, 0, 1, 1, 1, 0, 1]
    )


def test_a_graph_without_edges():
    known = Constraints(5, must_link=[(0, 1), (2, 3)], cannot_link=[(0, 2)])
    with pytest.warns(DisconnectedGraphWarning):
        model = FastGE(2, affinity="precomputed", random_state=0).fit(
            csr_array((5, 5)), constraints=known
        )
    assert known.satisfied(model.labels_) == 1


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(2, 7) for k in range(2, n + 1)])
def test_tiny_graphs(n, k):
    W = csr_array(np.ones((n, n)) - np.eye(n))
    result = fast_ge(W, Constraints(n, cannot_link=[(0, n - 1)]), k, random_state=0)
    assert result.labels.shape == (n,)
    assert np.isfinite(result.embedding).all()
    assert result.labels[0] != result.labels[-1]


def test_copies_of_one_sample():
    X = np.repeat([[0.0], [1.0], [5.0], [6.0]], 5, axis=0)
    known = Constraints(20, must_link=[(0, 5)], cannot_link=[(0, 10)])
    labels = FastGE(2, random_state=0).fit_predict(X, constraints=known)
    assert_array_equal(labels, [0] * 10 + [1] * 10)
