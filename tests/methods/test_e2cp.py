"""E2CP: Lu & Ip 2010; and the refinement of affinities, Fu et al. 2011 (9)."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse, triu
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from asserts import assert_symmetric
from linkwise import Affinity, Constraints, NCut
from linkwise.constraints.table import constraint_matrix
from linkwise.exceptions import DisconnectedGraphWarning, TooLargeError
from linkwise.linalg.laplacian import degrees, normalized_adjacency
from linkwise.linalg.lowrank import values_on
from linkwise.linalg.sparse import coupled_edges, largest_rows, positions
from linkwise.linalg.warm import WarmStarts
from linkwise.methods import _propagation
from linkwise.methods._propagation import (
    adjusted_dense,
    adjusted_entries,
    adjusted_sparse,
    constrained_samples,
    pairs_around,
    pairs_of,
    pattern_with_pairs,
)
from linkwise.methods.e2cp import E2CP, e2cp, propagate, propagation_factors


def path_graph(n):
    return csr_array(np.eye(n, k=1) + np.eye(n, k=-1))


def random_problem(n, seed):
    """Return a connected random graph and random pairs."""
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4), 1)
    W += np.eye(n, k=1)
    Y = np.triu(rng.choice([-1.0, -0.5, 0, 0, 0, 0.5, 1.0], size=(n, n)), 1)
    return csr_array(W + W.T), csr_array(Y + Y.T)


def test_propagation_is_the_limit_of_the_iterations():
    # Lu & Ip: first down the columns, then along the rows.
    W, alpha = path_graph(8), 0.8
    Y = constraint_matrix(Constraints(8, must_link=[(0, 1)], cannot_link=[(2, 7)]))
    S, Z = normalized_adjacency(W).toarray(), Y.toarray()
    F = Z.copy()
    for _ in range(300):
        F = alpha * S @ F + (1 - alpha) * Z
    vertical, F = F, F.copy()
    for _ in range(300):
        F = alpha * F @ S + (1 - alpha) * vertical
    assert_allclose(propagate(W, Y, alpha), F, atol=1e-12)
    assert_allclose(propagate(W.toarray(), Y, alpha), F, atol=1e-12)


@given(st.integers(3, 20), st.integers(0, 500), st.sampled_from([0.2, 0.8, 0.95]))
def test_propagation_is_symmetric_and_bounded(n, seed, alpha):
    W, Y = random_problem(n, seed)
    assume(Y.nnz)
    F = propagate(W, Y, alpha)
    assert_symmetric(F)
    assert np.linalg.norm(F, 2) <= np.linalg.norm(Y.toarray(), 2) + 1e-12
    # Entry by entry, in units of the degrees: the walk averages.
    d = np.sqrt(degrees(W))
    scaled = abs(Y).toarray() / np.outer(d, d)
    assert (np.abs(F) / np.outer(d, d)).max() <= scaled.max() + 1e-12
    assert (np.abs(F) <= propagate(W, abs(Y), alpha) + 1e-12).all()
    assert propagate(W, abs(Y), alpha).min() >= 0


def test_values_stay_below_one_on_a_regular_graph_but_not_on_every_graph():
    ring = csr_array(np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1))
    every_pair = csr_array(np.ones((12, 12)) - np.eye(12))
    assert np.abs(propagate(ring, every_pair, 0.8)).max() <= 1
    # Two hubs with 12 leaves each; every leaf of the one is linked to every leaf of the other.
    W, Y = np.zeros((26, 26)), np.zeros((26, 26))
    W[0, 2:14] = W[1, 14:] = Y[2:14, 14:] = 1
    F = propagate(csr_array(W + W.T), csr_array(Y + Y.T), 0.8)
    assert F[0, 1] > 2
    refined = adjusted_dense(csr_array(W + W.T), F, csr_array(Y + Y.T), scale="paper")
    assert refined[0, 1] == F[0, 1]  # equation (9) as it stands
    refined = adjusted_dense(csr_array(W + W.T), F, csr_array(Y + Y.T), scale="max")
    assert refined.max() == 1


def test_refinement_is_equation_9():
    # Fu et al. (9), entry by entry.
    W, Y = random_problem(12, 3)
    W *= 0.3
    F = propagate(W, Y, 0.8)
    w = W.toarray()
    refined = adjusted_dense(W, F, Y, scale="paper")
    for i in range(12):
        for j in range(12):
            if i == j:
                expected = 0.0
            elif F[i, j] >= 0:
                expected = 1 - (1 - F[i, j]) * (1 - w[i, j])
            else:
                expected = (1 + F[i, j]) * w[i, j]
            assert refined[i, j] == pytest.approx(expected, abs=1e-14)


@given(st.floats(0, 1), st.floats(-2, 2))
def test_refined_affinities_are_affinities(w, f):
    refined = adjusted_entries(np.array([w]), np.array([f]))[0]
    assert refined >= 0
    assert refined <= 1 or f > 1
    assert (refined >= w - 1e-15) if f >= 0 else (refined <= w + 1e-15)


def test_the_strongest_pair_is_full_again():
    W, _ = random_problem(15, 0)
    known = Constraints(15, [(0, 7)], [(3, 9)], must_link_belief=0.5, cannot_link_belief=0.25)
    Y = constraint_matrix(known)
    F = propagate(W, Y, 0.8)
    assert F[0, 7] > -F[3, 9] > 0
    nothing = csr_array((15, 15))
    assert adjusted_dense(nothing, F, Y, scale="max")[0, 7] == pytest.approx(0.5)
    assert adjusted_dense(nothing, F, Y, scale="paper")[0, 7] == pytest.approx(F[0, 7])


@given(st.integers(4, 20), st.integers(0, 500), st.sampled_from(["max", "paper"]))
def test_sparse_refinement_equals_the_dense_one_on_its_pattern(n, seed, scale):
    W, Y = random_problem(n, seed)
    assume(Y.nnz)
    factors = propagation_factors(W, constrained_samples(Y), alpha=0.8, tol=1e-13)
    sparse = adjusted_sparse(W, factors, Y, scale=scale)
    dense = adjusted_dense(W, propagate(W, Y, 0.8), Y, scale=scale)
    assert_symmetric(sparse)
    stored = (sparse != 0).toarray()
    assert_allclose(sparse.toarray()[stored], dense[stored], atol=1e-9)
    kept = (W != 0).toarray() | (Y > 0).toarray()
    assert_allclose(sparse.toarray()[kept], dense[kept], atol=1e-9)


def test_sparse_refinement_leaves_little_out():
    X, y = load_iris(return_X_y=True)
    W = Affinity(10).fit_transform(StandardScaler().fit_transform(X))
    Y = constraint_matrix(Constraints.sample(y, 50, random_state=0))
    factors = propagation_factors(W, constrained_samples(Y), alpha=0.8, tol=5e-4)
    sparse = adjusted_sparse(W, factors, Y, scale="max").toarray()
    dense = adjusted_dense(W, propagate(W, Y, 0.8), Y, scale="max")
    assert np.abs(sparse - dense).sum() <= 0.05 * dense.sum()


def test_the_surroundings_of_a_link_are_the_nearest_samples():
    near = csr_array([[1.0, 0], [0.5, 0], [0.7, 0.1], [0, 0.2], [0, 1.0]])
    assert_array_equal(largest_rows(near, 2), [[0, 2], [4, 3]])
    assert_array_equal(largest_rows(near, 4), [[0, 2, 1, -1], [4, 3, 2, -1]])
    links = csr_array([[0, 1.0], [1.0, 0]])
    found = pairs_around(near, links, limit=8).toarray() > 0
    expected = np.zeros((5, 5), dtype=bool)
    expected[np.ix_([0, 2], [4, 3])] = True
    assert_array_equal(found, np.triu(expected | expected.T))
    assert pairs_around(near, links, limit=1).nnz == 0


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return Affinity(10).fit_transform(X), y, Constraints.sample(y, 200, random_state=0)


def relative_error(W, Y, F, factors):
    """Return the error of `F` on edges and pairs, relative in the Frobenius norm."""
    pattern = pattern_with_pairs(W, Y, factors.near)
    f = values_on(factors.G, pairs_of(factors, Y), pattern)
    rows = np.repeat(np.arange(W.shape[0]), np.diff(pattern.indptr))
    wanted = (pattern.data > 0) | (np.asarray(Y[rows, pattern.indices]).ravel() != 0)
    exact = F[rows, pattern.indices][wanted]
    return np.linalg.norm(f[wanted] - exact) / np.linalg.norm(exact)


def test_low_rank_propagation_is_within_one_percent(digits):
    W, _, known = digits
    Y = constraint_matrix(known)
    factors = propagation_factors(W, constrained_samples(Y), alpha=0.8, tol=5e-4)
    assert relative_error(W, Y, propagate(W, Y, 0.8), factors) < 0.01


def test_both_solvers_find_the_same_clusters(digits):
    W, y, known = digits
    exact, lowrank = (
        adjusted_rand_score(y, e2cp(W, known, 10, solver=solver, random_state=0).labels)
        for solver in ("exact", "lowrank")
    )
    assert abs(exact - lowrank) <= 0.02


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_without_constraints_it_is_ncut(solver, k):
    X, _ = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    ours, plain = E2CP(k, solver=solver, random_state=0), NCut(k, random_state=0)
    assert_array_equal(ours.fit(X).labels_, plain.fit(X).labels_)


@pytest.mark.parametrize(("load", "least"), [(load_iris, 0.8), (load_breast_cancer, 0.85)])
@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_many_pairs_are_learnt(load, least, solver):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=0)
    model = E2CP(len(np.unique(y)), solver=solver, random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) >= least


def test_the_scale_of_the_paper_is_faint():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=0)
    found = {
        scale: adjusted_rand_score(
            y, E2CP(3, scale=scale, random_state=0).fit(X, constraints=known).labels_
        )
        for scale in ("max", "paper")
    }
    assert found["max"] > found["paper"] + 0.1


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_pieces_and_isolated_vertices(solver):
    W = np.zeros((13, 13))
    W[:5, :5] = W[5:10, 5:10] = 1
    np.fill_diagonal(W, 0)
    # 10, 11 and 12 have no edges; a link ties 10 to the first piece and 11 to 12.
    known = Constraints(13, must_link=[(0, 10), (11, 12)], cannot_link=[(0, 5)])
    with pytest.warns(DisconnectedGraphWarning):
        model = E2CP(3, affinity="precomputed", solver=solver, random_state=0).fit(
            csr_array(W), constraints=known
        )
    assert np.isfinite(model.embedding_).all()
    assert_array_equal(model.labels_, [0] * 5 + [1] * 5 + [0, 2, 2])
    F = propagate(csr_array(W), constraint_matrix(known), 0.8)
    assert np.isfinite(F).all()
    assert F[11, 12] == pytest.approx(1)  # nowhere to go: the pair stays as it is


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_a_graph_without_edges(solver):
    result = e2cp(csr_array((4, 4)), Constraints(4, [(0, 1), (2, 3)]), 2, solver=solver)
    assert result.labels[0] == result.labels[1] != result.labels[2] == result.labels[3]


def test_a_large_exact_problem_is_refused(monkeypatch):
    monkeypatch.setattr(_propagation, "MAX_EXACT", 50)
    X, y = make_blobs(60, centers=2, random_state=0)
    known = Constraints.sample(y, 10, random_state=0)
    with pytest.raises(TooLargeError, match=r"60 x 60 .* 50 samples\. Take solver='lowrank'"):
        E2CP(2, solver="exact").fit(X, constraints=known)


def test_above_the_limit_nothing_dense_is_formed(monkeypatch):
    X, y = make_blobs(60, centers=2, random_state=0)
    known = Constraints.sample(y, 10, random_state=0)
    met = []
    adjust = _propagation.adjusted_sparse

    def noted(*given, scale):
        met.append(given)
        return adjust(*given, scale=scale)

    monkeypatch.setattr(_propagation, "AUTO_EXACT", 50)
    monkeypatch.setattr(_propagation, "adjusted_sparse", noted)
    E2CP(2, random_state=0).fit(X, constraints=known)
    assert len(met) == 1
    assert all(issparse(part) for part in (met[0][0], met[0][1].G, met[0][2]))


def test_many_labels_stay_affordable():
    X, y = make_blobs(4_000, centers=4, cluster_std=2.0, random_state=0)
    partial = np.where(np.arange(4_000) % 4 == 0, y, -1)
    W = Affinity(10).fit_transform(X)
    result = e2cp(W, Constraints.from_labels(partial), 4, random_state=0)
    plain = NCut(4, affinity="precomputed", random_state=0).fit(W).labels_
    assert adjusted_rand_score(y, result.labels) > adjusted_rand_score(y, plain)


def test_new_edges_have_a_limit_however_large_the_graph(monkeypatch):
    X, y = make_blobs(300, centers=3, random_state=0)
    W = Affinity(10).fit_transform(X)
    Y = constraint_matrix(Constraints.sample(y, 60, random_state=0))
    near = propagation_factors(W, constrained_samples(Y), alpha=0.8, tol=5e-4).near
    plenty = pattern_with_pairs(W, Y, near).nnz
    monkeypatch.setattr(_propagation, "FILL_MOST", 500)
    few = pattern_with_pairs(W, Y, near).nnz
    assert few <= (W.nnz + Y.nnz + 500) // 2 < plenty


def sparse_problem(n, n_pairs, seed):
    """Return a graph of neighbours on a circle, and random pairs."""
    rng = np.random.RandomState(seed)
    W = sum(np.eye(n, k=k) * rng.uniform(0.1, 1, size=n) for k in (1, 2, n - 1))
    Y = np.zeros((n, n))
    i, j = rng.randint(n, size=(2, n_pairs))
    Y[i, j] = rng.choice([-1.0, 1.0], size=n_pairs)
    Y = np.triu(Y, 1) + np.triu(Y.T, 1)
    return csr_array(W + W.T), csr_array(np.clip(Y + Y.T, -1, 1))


@pytest.mark.parametrize(("module", "parameter"), [("e2cp", "alpha"), ("srcp", "mu")])
@pytest.mark.parametrize(("n", "n_pairs"), [(60, 3), (60, 30), (900, 900)])
def test_refinement_on_few_edges_equals_that_on_all(module, parameter, n, n_pairs):
    # 900 pairs have more ends than there are bits for their columns.
    W, Y = sparse_problem(n, n_pairs, seed=n_pairs)
    factors_of = import_module(f"linkwise.methods.{module}").propagation_factors
    factors = factors_of(W, constrained_samples(Y), tol=1e-2, **{parameter: 0.5})
    pattern = pattern_with_pairs(W, Y, factors.near)
    f = values_on(factors.G, pairs_of(factors, Y), pattern)
    pairs = csr_array(triu(Y, k=1))
    factor = _propagation.scale_factor(f[positions(pattern, pairs)], pairs.data)
    pattern.data = adjusted_entries(pattern.data / W.max(), np.clip(factor * f, -1, 1))
    expected = csr_array(pattern + pattern.T)
    found = adjusted_sparse(W, factors, Y, scale="max")
    assert_array_equal((found != 0).toarray(), (expected != 0).toarray())
    assert_allclose(found.toarray(), expected.toarray(), rtol=1e-13)
    assert found.has_canonical_format
    assert (found.data != 0).all()


@pytest.mark.parametrize(("n", "n_pairs"), [(60, 3), (900, 900)])
def test_no_edge_with_propagated_pairs_is_missed(n, n_pairs):
    W, Y = sparse_problem(n, n_pairs, seed=n_pairs)
    C = constrained_samples(Y)
    factors = propagation_factors(W, C, alpha=0.5, tol=1e-2)
    F = (factors.G @ pairs_of(factors, Y) @ factors.G.T).toarray()
    found = coupled_edges(W, factors.G, csr_array(Y[C][:, C])).toarray() > 0
    edges = np.triu(W.toarray() > 0, 1)
    assert not (edges & (F != 0) & ~found).any()
    assert not (found & ~edges).any()
    if n_pairs == 3:
        assert found.sum() < edges.sum() / 2


def test_surroundings_of_many_links_against_all_pairs():
    rng = np.random.RandomState(0)
    near = csr_array(rng.uniform(size=(30, 6)) * (rng.uniform(size=(30, 6)) < 0.5))
    links = np.triu(rng.uniform(size=(6, 6)) < 0.6, 1)
    expected = np.zeros((30, 30), dtype=bool)
    for a, b in np.argwhere(links):
        i, j = (column[column >= 0] for column in largest_rows(near, 4)[[a, b]])
        expected[np.ix_(i, j)] = True
    expected = np.triu(expected | expected.T, 1)
    links = csr_array((links + links.T).astype(float))
    found = pairs_around(near, links, limit=16 * links.nnz)
    assert found.has_canonical_format
    assert_array_equal(found.toarray(), expected)


def test_the_walk_is_not_formed_if_no_column_is_missing(monkeypatch):
    W, Y = sparse_problem(60, 10, seed=0)
    warm = WarmStarts()
    first = propagation_factors(W, constrained_samples(Y), alpha=0.8, tol=1e-4, warm=warm)
    monkeypatch.delattr(_propagation, "symmetric_walk")
    second = propagation_factors(W, constrained_samples(Y), alpha=0.8, tol=1e-4, warm=warm)
    assert_array_equal(first.G.toarray(), second.G.toarray())
