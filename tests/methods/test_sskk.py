"""SSKK: Kulis, Basu, Dhillon & Mooney 2005, semi-supervised kernel k-means."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Constraints, NCut, metrics
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.methods.sskk import (
    SSKK,
    _neighborhoods,
    descend,
    pair_penalty,
    penalised_graph,
    sskk,
)
from linkwise.search.kernel_kmeans import (
    VertexWeighted,
    _one_pass,
    _sums,
    association,
    batch_steps,
    contracted,
    filled,
    single_moves,
)


def random_graph(n, seed, density=0.5):
    rng = np.random.RandomState(seed)
    A = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    return A + A.T


def random_pairs(n, seed, n_pairs=6):
    rng = np.random.RandomState(seed)
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(i.size)[:n_pairs]
    pairs, is_must = np.column_stack([i, j])[chosen], rng.uniform(size=chosen.size) < 0.5
    belief = rng.choice([0.25, 0.5, 0.99], size=chosen.size)
    return Constraints(
        n,
        pairs[is_must],
        pairs[~is_must],
        must_link_belief=belief[is_must],
        cannot_link_belief=belief[~is_must],
    )


def random_problem(n, k, seed, penalty=0.7):
    """A graph with pairs, and a clustering without empty clusters."""
    graph = penalised_graph(
        csr_array(random_graph(n, seed)), random_pairs(n, seed), penalty=penalty
    )
    rng = np.random.RandomState(seed)
    labels = rng.permutation(np.concatenate([np.arange(k), rng.randint(k, size=n - k)]))
    return graph, labels


def kernel(graph, sigma):
    """Return ``K = sigma D^-1 + D^-1 M D^-1``, densely."""
    D_inv = np.diag(1 / graph.d)
    return sigma * D_inv + D_inv @ graph.M.toarray() @ D_inv


def squared_distances(K, d, labels, k):
    """Return ``|phi_i - m_c|^2`` for all `i` and `c`, by the definition of the weighted mean."""
    n = len(d)
    distances = np.empty((n, k))
    for c in range(k):
        inside = np.flatnonzero(labels == c)
        alpha = d[inside] / d[inside].sum()
        for i in range(n):
            distances[i, c] = (
                K[i, i] - 2 * alpha @ K[i, inside] + alpha @ K[np.ix_(inside, inside)] @ alpha
            )
    return distances


problems = (st.integers(5, 12), st.integers(2, 4), st.integers(0, 10_000))


# The criterion ----------------------------------------------------------------------------------


@given(*problems, st.sampled_from([0.0, 0.5, 3.0]))
def test_the_association_is_the_sum_of_weighted_squared_distances(n, k, seed, sigma):
    graph, labels = random_problem(n, k, seed)
    distances = squared_distances(kernel(graph, sigma), graph.d, labels, k)
    within = (graph.d * distances[np.arange(n), labels]).sum()
    loops = (graph.M.diagonal() / graph.d).sum()
    expected = sigma * (n - k) + loops - association(graph, labels, k)
    assert_allclose(within, expected, atol=1e-10)


@given(*problems)
def test_the_objective_is_the_penalised_normalised_cut(n, k, seed):
    # Kulis et al.: links(V_c, rest) / deg(V_c) - must-links inside + cannot-links inside, each
    # divided by deg(V_c); a pair counts in both directions, as an edge does.
    A = random_graph(n, seed, density=1.0)
    known, w = random_pairs(n, seed), 0.7
    _, labels = random_problem(n, k, seed)
    unit = A.sum(axis=1).mean()
    expected = 0.0
    for c in range(k):
        inside = labels == c
        cut = A[np.ix_(inside, ~inside)].sum() / unit
        reward = known.must_link_belief[inside[known.must_link].all(axis=1)].sum()
        penalty = known.cannot_link_belief[inside[known.cannot_link].all(axis=1)].sum()
        expected += (cut - 2 * w * reward + 2 * w * penalty) / (A[inside].sum() / unit)
    graph = penalised_graph(csr_array(A), known, w)
    assert_allclose(k - association(graph, labels, k), expected, atol=1e-10)


def test_without_pairs_the_objective_is_the_normalised_cut():
    X, _ = make_blobs(80, centers=3, cluster_std=3, random_state=0)
    W = Affinity().fit_transform(X)
    result = sskk(W, Constraints(80), 3, random_state=0)
    assert result.objective == pytest.approx(metrics.ncut(W, result.labels))
    assert result.objective <= NCut(3, random_state=0).fit(X).result_.objective + 1e-12


@settings(max_examples=40)
@given(*problems)
def test_eigenvalues_bound_the_objective_from_below(n, k, seed):
    W, known = csr_array(random_graph(n, seed)), random_pairs(n, seed)
    result = sskk(W, known, k, penalty=0.7, random_state=0)
    graph = penalised_graph(W, known, 0.7)
    S = graph.M.toarray() / np.sqrt(np.outer(graph.d, graph.d))
    lowest = np.sort(1 - np.linalg.eigvalsh(S))[:k]
    assert_allclose(result.eigenvalues, lowest, atol=1e-8)
    assert result.objective >= lowest.sum() - 1e-8
    assert result.objective == pytest.approx(k - association(graph, result.labels, k))


@settings(max_examples=30)
@given(st.integers(4, 7), st.integers(0, 300))
def test_small_problems_end_in_the_better_half_of_all_bipartitions(n, seed):
    graph, _ = random_problem(n, 2, seed)
    found = sskk(
        csr_array(random_graph(n, seed)), random_pairs(n, seed), 2, penalty=0.7, random_state=0
    )
    every = [
        2 - association(graph, np.array((0, *rest)), 2) for rest in product((0, 1), repeat=n - 1)
    ]
    assert found.objective >= min(every[1:]) - 1e-10
    assert found.objective <= np.median(every[1:]) + 1e-10


# The descent ------------------------------------------------------------------------------------


@given(*problems, st.sampled_from([0.0, 0.3, 5.0]), st.sampled_from([0.1, 1.0, 10.0]))
def test_the_objective_never_increases(n, k, seed, sigma, penalty):
    graph, labels = random_problem(n, k, seed, penalty)
    rng = np.random.RandomState(seed)
    batch = batch_steps(graph, labels, k, sigma=sigma, max_iter=50)
    alone = single_moves(graph, batch.labels, k, rng=rng, max_iter=50)
    for phase in (batch, alone):
        assert (np.diff(phase.history) > 0).all()
        assert phase.history[-1] == pytest.approx(association(graph, phase.labels, k))
        assert set(phase.labels) == set(range(k))
    assert alone.history[0] == batch.history[-1]
    group = np.maximum(np.arange(n) - 1, 0)  # samples 0 and 1 are must-linked
    whole = descend(graph, labels, group, k=k, shift=sigma, max_iter=50, rng=rng)
    assert (np.diff(whole.history) < 0).all()
    assert whole.history[-1] == pytest.approx(k - association(graph, whole.labels, k))


@given(*problems)
def test_a_positive_definite_kernel_never_refuses_a_batch_step(n, k, seed):
    # Twin: Lloyd's algorithm on the dense kernel, by the definition of the distances.
    graph, labels = random_problem(n, k, seed)
    sigma = np.abs(graph.M.toarray()).sum(axis=1).max() / graph.d.min()
    K = kernel(graph, sigma)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    expected = labels
    for _ in range(50):
        moved = squared_distances(K, graph.d, expected, k).argmin(axis=1)
        if (moved == expected).all():
            break
        expected = moved
    found = batch_steps(graph, labels, k, sigma=sigma, max_iter=50)
    assert_array_equal(found.labels, expected)


@given(*problems)
def test_no_single_move_is_left(n, k, seed):
    graph, labels = random_problem(n, k, seed)
    found = single_moves(graph, labels, k, rng=np.random.RandomState(0), max_iter=100)
    assert found.converged
    for v, c in product(range(n), range(k)):
        other = found.labels.copy()
        other[v] = c
        if np.unique(other).size == k:
            assert association(graph, other, k) <= found.history[-1] + 1e-9


@given(*problems)
def test_a_vertex_moves_to_where_it_helps_most(n, k, seed):
    # Twin of the kernel: all moves of one vertex, each summed afresh.
    graph, labels = random_problem(n, k, seed)
    M, d = graph
    for v in range(n):
        moved = labels.copy()
        Q, V = _sums(graph, moved, k)
        _one_pass(M.indptr, M.indices, M.data, M.diagonal(), d, moved, Q, V, np.array([v]))
        values = np.full(k, -np.inf)
        for c in range(k):
            other = labels.copy()
            other[v] = c
            if np.unique(other).size == k:
                values[c] = association(graph, other, k)
        assert values[moved[v]] == pytest.approx(values.max())
        # The running sums are those of the new clusters.
        for kept, summed in zip((Q, V), _sums(graph, moved, k), strict=True):
            assert_allclose(kept, summed, atol=1e-12)


@given(*problems)
def test_groups_have_the_association_of_their_members(n, k, seed):
    graph, labels = random_problem(n, k, seed)
    group = np.random.RandomState(seed).permutation(np.arange(n) // 2)
    groups = contracted(graph, group)
    together = labels[: groups.d.size] % k
    expected = association(graph, together[group], k)
    assert association(groups, together, k) == pytest.approx(expected)


@given(*problems)
def test_an_empty_cluster_gets_the_best_vertex(n, k, seed):
    graph, labels = random_problem(n, k, seed)
    complete = filled(graph, labels, k + 1)
    values = np.full(n, -np.inf)
    for v in range(n):
        other = labels.copy()
        other[v] = k
        if np.unique(other).size == k + 1:
            values[v] = association(graph, other, k + 1)
    assert (complete != labels).sum() == 1
    assert association(graph, complete, k + 1) == pytest.approx(values.max())
    assert set(filled(graph, np.zeros(n, dtype=np.intp), n)) == set(range(n))


def test_must_linked_samples_move_together():
    # 2 and 3 are held together by their must-link: alone neither leaves, together both do.
    A = np.zeros((6, 6))
    for i, j, w in [(0, 1, 1), (4, 5, 1), (2, 4, 0.3), (3, 5, 0.3), (1, 2, 0.2)]:
        A[i, j] = A[j, i] = w
    known = Constraints(6, must_link=[(2, 3)])
    graph = penalised_graph(csr_array(A), known, 0.5)
    start, rng = np.array([0, 0, 0, 0, 1, 1]), np.random.RandomState(0)
    alone = single_moves(graph, start, 2, rng=rng, max_iter=10)
    together = descend(graph, start, known.components(), k=2, shift=0.0, max_iter=10, rng=rng)
    assert_array_equal(alone.labels, start)
    assert_array_equal(together.labels, [0, 0, 1, 1, 1, 1])
    assert together.history[-1] < 2 - alone.history[-1]


def test_a_limit_on_the_passes_is_reported():
    X, y = make_blobs(300, centers=5, cluster_std=4, random_state=0)
    known = Constraints.sample(y, 150, random_state=0)
    short = SSKK(5, max_iter=1, random_state=0).fit(X, constraints=known)
    full = SSKK(5, random_state=0).fit(X, constraints=known)
    assert not short.result_.converged
    assert full.result_.converged
    assert full.result_.objective <= short.result_.objective
    assert short.n_iter_ == 3 < full.n_iter_


# Penalties and starts ---------------------------------------------------------------------------


def test_the_automatic_penalty_shares_half_a_degree_among_the_must_links_of_a_sample():
    assert pair_penalty(Constraints(9)) == 0.5
    assert pair_penalty(Constraints(9, [(0, 1), (2, 3)], [(4, 5)])) == 0.5
    clique = Constraints.from_labels([0] * 5 + [-1] * 4)
    assert pair_penalty(clique) == pytest.approx(0.5 / 4)
    # A path has ends with 1 and 2 must-links: (1 + 4 + 1) / (1 + 2 + 1).
    assert pair_penalty(Constraints(9, [(0, 1), (1, 2)])) == pytest.approx(0.5 / 1.5)
    # Doubtful pairs are weak already.
    assert pair_penalty(clique.with_belief(0.125)) == 0.5


def test_a_penalty_is_in_units_of_the_mean_degree():
    A = random_graph(10, 0, density=1.0)
    known = Constraints(10, [(0, 1)], [(2, 3)])
    graph = penalised_graph(csr_array(7 * A), known, 0.25)
    plain = penalised_graph(csr_array(A), known, 0.0)
    change = (graph.M - plain.M).toarray()
    assert_allclose(change[[0, 1, 2, 3], [1, 0, 3, 2]], [0.25, 0.25, -0.25, -0.25])
    assert graph.d.mean() == pytest.approx(1)
    assert_allclose(graph.d, plain.d)


def test_neighbourhoods_are_large_and_far_apart():
    rows = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [5.0], [5.2], [9.0], [9.1]])
    group = np.array([0, 0, 0, 1, 1, 2, 2, 3, 4])
    # The largest group first; then 2 * 5^2 for the pair at 5.1; the single samples come last.
    assert_array_equal(_neighborhoods(rows, group, 2), [0] * 5 + [1] * 4)
    # All three groups are used up before a sample alone.
    assert_array_equal(_neighborhoods(rows, group, 4), [0, 0, 0, 2, 2, 1, 1, 3, 3])


def test_the_best_start_is_kept():
    X, y = make_blobs(150, centers=4, cluster_std=4, random_state=1)
    W = Affinity().fit_transform(X)
    for seed in range(3):
        known = Constraints.sample(y, 60, random_state=seed)
        found = {
            start: sskk(W, known, 4, start=start, random_state=0).objective
            for start in ("best", "spectral", "neighborhoods")
        }
        assert found["best"] <= min(found["spectral"], found["neighborhoods"]) + 1e-3


@pytest.mark.parametrize(("load", "least"), [(load_iris, 0.9), (load_breast_cancer, 0.95)])
def test_many_pairs_are_learnt(load, least):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=0)
    labels = SSKK(len(np.unique(y)), random_state=0).fit(X, constraints=known).labels_
    assert adjusted_rand_score(y, labels) >= least


def test_many_labels_do_not_fall_off_as_clusters():
    # 400 labels are 80,000 pairs: with a fixed reward a cluster of labelled samples alone would
    # be better than any cut.
    X, y = make_blobs(1_000, 6, centers=2, cluster_std=3, random_state=0)
    partial = np.where(np.arange(1_000) < 400, y, -1)
    known = Constraints.from_labels(partial)
    labels = SSKK(2, random_state=0).fit(X, constraints=known).labels_
    assert metrics.adjusted_rand(y, labels, outside=known) > 0.9
    assert known.satisfied(labels) > 0.99
    lost = SSKK(2, penalty=0.5, random_state=0).fit(X, constraints=known).labels_
    assert metrics.adjusted_rand(y, lost, outside=known) < 0.1


# Corners ----------------------------------------------------------------------------------------


def test_pieces_and_isolated_vertices():
    W = np.zeros((13, 13))
    W[:5, :5] = W[5:10, 5:10] = 1
    np.fill_diagonal(W, 0)
    known = Constraints(13, must_link=[(0, 10), (11, 12)], cannot_link=[(0, 5)])
    with pytest.warns(DisconnectedGraphWarning):
        model = SSKK(3, affinity="precomputed", random_state=0).fit(csr_array(W), constraints=known)
    assert np.isfinite(model.embedding_).all()
    assert_array_equal(model.labels_, [0] * 5 + [1] * 5 + [0, 2, 2])


def test_a_graph_without_edges():
    known = Constraints(4, [(0, 1), (2, 3)], [(0, 2)])
    result = sskk(csr_array((4, 4)), known, 2, random_state=0)
    assert_array_equal(result.labels, [0, 0, 1, 1])


@pytest.mark.parametrize("n", range(2, 7))
def test_tiny_inputs(n):
    X = np.arange(n, dtype=float)[:, None] ** 2
    for k in range(2, n + 1):
        model = SSKK(k, random_state=0).fit(X, constraints=Constraints(n, (), [(0, n - 1)]))
        assert set(model.labels_) == set(range(k))
        assert model.labels_[0] != model.labels_[n - 1]


def test_copies_of_one_sample():
    X = np.zeros((8, 2))
    known = Constraints(8, [(0, 1), (2, 3)], [(0, 2)])
    labels = SSKK(3, random_state=0).fit(X, constraints=known).labels_
    assert set(labels) == {0, 1, 2}
    assert labels[0] == labels[1] != labels[2] == labels[3]


def test_more_clusters_than_must_link_groups_given_to_the_function():
    # The shell refuses this; the function separates what it must.
    W = csr_array(np.ones((4, 4)) - np.eye(4))
    result = sskk(W, Constraints(4, [(0, 1), (1, 2), (2, 3)]), 2, random_state=0)
    assert set(result.labels) == {0, 1}


def test_a_dense_graph_is_clustered_like_a_sparse_one():
    W = random_graph(30, 3, density=0.8)
    known = random_pairs(30, 3, n_pairs=20)
    dense, sparse = (sskk(form, known, 3, random_state=0) for form in (W, csr_array(W)))
    assert_array_equal(dense.labels, sparse.labels)


def test_weights_are_positive():
    W = random_graph(12, 5, density=0.1)
    graph = penalised_graph(csr_array(W), Constraints(12), 0.5)
    assert isinstance(graph, VertexWeighted)
    assert (W.sum(axis=1) == 0).any()
    assert (graph.d > 0).all()
    assert_allclose(graph.M.sum(axis=1), graph.d)
