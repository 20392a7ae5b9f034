"""cLPP: Cevikalp et al. 2008; Wacquet et al. 2013, section 3.2."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn.datasets import load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from asserts import assert_same_subspace
from linkwise import Affinity, Constraints
from linkwise.methods.clpp import RIDGE, ConstrainedLPP, clpp, signed_graph
from theory import signed_normalized_adjacency


def dense_weights(W, known):
    """Equation (21) by a loop; a certain pair weighs as much as the largest affinity."""
    W_tilde = W.toarray()
    largest = W_tilde.max()
    for (i, j), belief in zip(*known.signed_pairs(), strict=True):
        W_tilde[i, j] += largest * belief
        W_tilde[j, i] += largest * belief
    return W_tilde


def dense_solution(X, W_tilde):
    """All eigenpairs of (22) with absolute degrees and the ridge, and the weighted mean."""
    n = len(X)
    D = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            D[i, i] += abs(W_tilde[i, j])
    weight = D + RIDGE * np.trace(D) / n * np.eye(n)
    mean = np.diag(weight) @ X / np.trace(weight)
    Y = X - mean
    values, vectors = eigh(Y.T @ (D - W_tilde) @ Y, Y.T @ weight @ Y)
    return values, vectors, mean


def data(n=60, d=5, seed=0):
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, d)) * np.linspace(3, 0.5, d)
    X[:, 1] += 4 * y
    return X, y


def separated(n=90, seed=0):
    """Three classes in the plane of two features, and a third feature of much noise."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 3
    place = np.array([[0, 0], [6, 0], [0, 6]])
    X = np.column_stack([place[y] + rng.normal(size=(n, 2)), 4 * rng.normal(size=n)])
    return X, y


# The paper ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_pairs", [0, 20, 200])
def test_components_solve_equation_22(n_pairs):
    X, y = data()
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, n_pairs, random_state=0)
    result = clpp(X + 3, known, 3, W=W, n_components=4, random_state=0)
    values, vectors, mean = dense_solution(X, dense_weights(W, known))
    assert_allclose(result.eigenvalues, values[:4], atol=1e-8)
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), range(5)])
    assert_allclose(result.components, (signs * vectors).T[:4], atol=1e-6 * np.abs(vectors).max())
    assert_allclose(result.mean, mean + 3, atol=1e-9)
    assert result.residuals.max() < 1e-8


def test_weights_are_those_of_equation_21():
    X, y = data(20)
    W = Affinity(5).fit_transform(X)
    known = Constraints(
        20,
        must_link=[(0, 3), (1, 19)],
        cannot_link=[(0, 1), (2, 3)],
        must_link_belief=[0.25, 1.0],
        labels=np.append(y[:6], np.full(14, -1)),
    )
    expected = dense_weights(W, known)
    assert_allclose(signed_graph(W, known).toarray(), expected)
    assert_allclose(signed_graph(W.toarray(), known), expected)
    assert (expected < 0).any()


def test_criterion_of_a_direction_is_a_sum_over_signed_edges():
    X, y = data(30)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 40, random_state=0)
    result = clpp(X, known, 3, W=W, n_components=1, random_state=0)
    w, p = dense_weights(W, known), result.embedding[:, 0]
    d = np.abs(w).sum(axis=1)
    above = sum(
        abs(w[i, j]) * (p[i] - np.sign(w[i, j]) * p[j]) ** 2 for i in range(30) for j in range(i)
    )
    below = ((d + RIDGE * d.mean()) * p**2).sum()
    assert below == pytest.approx(1)
    assert result.eigenvalues[0] == pytest.approx(above / below)


def test_it_is_signed_spectral_clustering_for_linear_functions():
    # With as many free features as samples every function of the samples is linear.
    rng = np.random.RandomState(0)
    n = 15
    X, y = rng.normal(size=(n, 14)), np.arange(n) % 2
    W = Affinity(4).fit_transform(X)
    known = Constraints.sample(y, 12, random_state=0)
    result = clpp(X, known, 2, W=W, n_components=14, random_state=0)
    w = dense_weights(W, known)
    d = np.abs(w).sum(axis=1)
    S = signed_normalized_adjacency(w)
    # Centred functions are orthogonal to the constant one in the inner product of the degrees.
    u = np.sqrt(d / d.sum())
    P = np.eye(n) - np.outer(u, u)
    spectrum = np.sort(1 - np.linalg.eigvalsh(P @ S @ P - 2 * np.outer(u, u)))[:-1]
    assert_allclose(result.eigenvalues, spectrum, atol=1e-5)


def test_without_pairs_neighbours_stay_near():
    # Four tight groups on a line; the second feature is wide noise without any structure.
    rng = np.random.RandomState(0)
    X = np.column_stack([np.repeat(np.arange(4.0), 40), 3 * rng.normal(size=160)])
    X[:, 0] += 0.02 * rng.normal(size=160)
    scaled = X / X.std(axis=0)
    W = Affinity(10).fit_transform(scaled[:, :1])
    result = clpp(scaled, Constraints(160), 4, W=W, n_components=1, random_state=0)
    assert adjusted_rand_score(np.repeat(np.arange(4), 40), result.labels) == 1
    assert abs(result.components[0, 0]) > 20 * abs(result.components[0, 1])


def test_pairs_find_the_features_that_matter():
    X, y = separated()
    known = Constraints.sample(y, 60, random_state=0)
    without = ConstrainedLPP(3, n_components=2, random_state=0).fit(X)
    model = ConstrainedLPP(3, n_components=2, random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, without.labels_) < 0.5
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert known.satisfied(model.labels_) > known.satisfied(without.labels_)


@pytest.mark.parametrize("seed", range(3))
def test_wine_is_learnt_with_as_many_components_as_clusters(seed):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=seed)
    model = ConstrainedLPP(3, n_components=3, random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) > 0.9


# Invariances --------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-100, 1e-10, 0.3, 1e10, 1e100])
def test_unit_of_the_data_does_not_matter(factor):
    X, y = data()
    known = Constraints.sample(y, 30, random_state=0)
    model = ConstrainedLPP(3, random_state=0)
    here = model.fit(X, constraints=known)
    labels, embedding = here.labels_, here.embedding_
    there = model.fit(factor * X, constraints=known)
    assert_array_equal(there.labels_, labels)
    assert_array_equal(there.predict(factor * X), labels)
    assert_allclose(there.embedding_, embedding, atol=1e-9)


@pytest.mark.parametrize("factor", [1e-100, 0.3, 1e100])
def test_unit_of_the_affinity_does_not_matter(factor):
    X, y = data()
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 30, random_state=0)
    here = clpp(X, known, 3, W=W, random_state=0)
    there = clpp(X, known, 3, W=csr_array(factor * W), random_state=0)
    assert_array_equal(here.labels, there.labels)
    assert_allclose(here.eigenvalues, there.eigenvalues, atol=1e-9)


def test_given_the_graph_any_mixing_of_features_gives_the_same_embedding():
    X, y = data()
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 30, random_state=0)
    mixing = np.random.RandomState(1).normal(size=(5, 5))
    here = clpp(X, known, 3, W=W, n_components=3, random_state=0)
    there = clpp(X @ mixing + 100, known, 3, W=W, n_components=3, random_state=0)
    assert_allclose(np.abs(here.embedding), np.abs(there.embedding), atol=1e-9)
    assert_array_equal(here.labels, there.labels)


def test_signs_are_determined():
    X, y = data()
    known = Constraints.sample(y, 30, random_state=0)
    order = np.random.RandomState(0).permutation(60)
    here = ConstrainedLPP(3, n_components=4).fit(X, constraints=known)
    there = ConstrainedLPP(3, n_components=4).fit(X[order], constraints=known[order])
    assert_allclose(here.components_, there.components_, atol=1e-8)
    largest = np.abs(here.components_).argmax(axis=1)
    assert (here.components_[range(4), largest] > 0).all()


def test_sparse_and_dense_graphs_give_one_answer():
    X, y = data()
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 30, random_state=0)
    assert_allclose(
        clpp(X, known, 3, W=W, random_state=0).embedding,
        clpp(X, known, 3, W=W.toarray(), random_state=0).embedding,
        atol=1e-10,
    )


# A transformer ------------------------------------------------------------------------------------


def test_transform_and_predict():
    X, y = separated(200)
    known = Constraints.sample(y, 100, random_state=0)
    model = ConstrainedLPP(3, n_components=2, random_state=0)
    embedding = model.fit_transform(X[:150], constraints=known[:150])
    assert_array_equal(embedding, model.embedding_)
    assert_array_equal(model.transform(X[:150]), embedding)
    assert_allclose(embedding, (X[:150] - model.mean_) @ model.components_.T)
    assert_array_equal(model.predict(X[:150]), model.labels_)
    assert adjusted_rand_score(model.predict(X[150:]), y[150:]) > 0.8
    assert_array_equal(model.get_feature_names_out(), ["constrainedlpp0", "constrainedlpp1"])


def test_neighbors_make_the_graph():
    X, y = data()
    known = Constraints.sample(y, 30, random_state=0)
    model = ConstrainedLPP(3, neighbors=4, random_state=0).fit(X, constraints=known)
    W = Affinity(4).fit_transform(X)
    assert_array_equal(model.affinity_matrix_.toarray(), W.toarray())
    assert_array_equal(model.embedding_, clpp(X, known, 3, W=W, random_state=0).embedding)
    search = KNeighborsTransformer(n_neighbors=4)
    other = ConstrainedLPP(3, neighbors=search, random_state=0).fit(X, constraints=known)
    assert_allclose(other.embedding_, model.embedding_, atol=1e-9)
    for bad in (0, 2.5, None):
        with pytest.raises(ValueError, match="'neighbors' parameter"):
            ConstrainedLPP(3, neighbors=bad).fit(X)


def test_constraints_travel_through_a_pipeline():
    X, y = data()
    known = Constraints.sample(y, 30, random_state=0)
    scaled = StandardScaler().fit_transform(X)
    alone = ConstrainedLPP(3, random_state=0).fit(scaled, constraints=known)
    with sklearn.config_context(enable_metadata_routing=True):
        method = ConstrainedLPP(3, random_state=0).set_fit_request(constraints=True)
        pipeline = make_pipeline(StandardScaler(), method).fit(X, constraints=known)
    assert_array_equal(pipeline.predict(X), alone.labels_)
    assert_array_equal(pipeline.transform(X), alone.embedding_)


# Corners ------------------------------------------------------------------------------------------


def test_more_features_than_samples_are_reduced_by_pca_first():
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(25, 60)) * np.linspace(5, 0.1, 60), np.arange(25) % 2
    known = Constraints.sample(y, 20, random_state=0)
    W = Affinity().fit_transform(X)
    pca = PCA(0.95).fit(X)
    wide = clpp(X, known, 2, W=W, random_state=0)
    assert wide.components.shape == (pca.n_components_, 60)
    assert pca.n_components_ < 24
    basis = np.linalg.qr(wide.components.T)[0]
    assert_same_subspace(basis, pca.components_.T, tol=1e-7)
    reduced = clpp(pca.transform(X), known, 2, W=W, n_components=pca.n_components_, random_state=0)
    assert_allclose(wide.eigenvalues, reduced.eigenvalues, atol=1e-8)
    assert_allclose(np.abs(wide.embedding), np.abs(reduced.embedding), atol=1e-7)
    # More are kept when more are asked for: all 24 in which 25 samples can vary.
    assert clpp(X, known, 2, W=W, n_components=25, random_state=0).components.shape == (24, 60)


def test_new_samples_of_wide_data_are_predicted():
    X, y = make_blobs(80, n_features=100, centers=3, cluster_std=2, random_state=0)
    model = ConstrainedLPP(3, n_components=2, random_state=0).fit(
        X[:60], constraints=Constraints.sample(y[:60], 30, random_state=0)
    )
    assert adjusted_rand_score(y[60:], model.predict(X[60:])) > 0.9


def test_constant_and_repeated_columns_change_nothing():
    X, y = data()
    known = Constraints.sample(y, 30, random_state=0)
    W = Affinity().fit_transform(X)
    here = clpp(X, known, 3, W=W, n_components=3, random_state=0)
    singular = np.column_stack([X, np.full(60, 7.7), X[:, 0] - 2 * X[:, 1], X[:, 2], np.zeros(60)])
    there = clpp(singular, known, 3, W=W, n_components=3, random_state=0)
    assert_allclose(here.eigenvalues, there.eigenvalues, atol=1e-8)
    assert_allclose(np.abs(here.embedding), np.abs(there.embedding), atol=1e-8)
    # The data vary in five directions, whatever is asked for.
    assert clpp(singular, known, 3, W=W, n_components=9, random_state=0).components.shape == (5, 9)


def test_duplicates_only():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0]], 4, axis=0)
    model = ConstrainedLPP(3, random_state=0).fit(X)
    assert model.n_components_ == 1
    assert_array_equal(model.labels_, np.repeat([0, 1, 2], 4))
    assert_array_equal(model.predict(X), model.labels_)


def test_data_without_variance():
    known = Constraints(5, cannot_link=[(0, 1)])
    model = ConstrainedLPP(2, random_state=0).fit(np.full((5, 3), 0.1), constraints=known)
    assert model.n_components_ == 1
    assert_allclose(model.embedding_, 0, atol=1e-15)
    assert_array_equal(model.labels_, [0] * 5)


def test_graph_without_edges():
    X, _ = data(10)
    result = clpp(X, Constraints(10), 2, W=csr_array((10, 10)), n_components=2, random_state=0)
    assert_allclose(result.eigenvalues, 0, atol=1e-12)
    assert_allclose(result.embedding.T @ result.embedding, np.eye(2), atol=1e-9)


def test_degrees_that_cancel_out_leave_a_solvable_problem():
    # A cannot-link on the only edge of two samples takes all their weight away.
    W = csr_array(np.kron(np.eye(3), [[0.0, 1.0], [1.0, 0.0]]))
    X = np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 0.0], [5.0, 1.0], [9.0, 3.0], [9.0, 4.0]])
    known = Constraints(6, cannot_link=[(0, 1)])
    assert signed_graph(W, known)[[0, 1]].sum() == 0
    result = clpp(X, known, 2, W=W, n_components=2, random_state=0)
    assert np.isfinite(result.embedding).all()
    everything = Constraints(6, cannot_link=[(0, 1), (2, 3), (4, 5)])
    assert np.isfinite(clpp(X, everything, 2, W=W, random_state=0).embedding).all()


def test_number_of_components():
    X, _ = data()
    with pytest.raises(ValueError, match="'n_components' parameter"):
        ConstrainedLPP(2, n_components=0).fit(X)
    with pytest.raises(ValueError, match="n_components=6, but X has 60 samples and 5 features"):
        ConstrainedLPP(2, n_components=6).fit(X)
    assert ConstrainedLPP(2, n_components=5).fit(X).n_components_ == 5
    assert ConstrainedLPP(2).fit(X).n_components_ == PCA(0.95).fit(X).n_components_


@settings(max_examples=40)
@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 10_000))
def test_tiny_inputs(n, d, seed):
    rng = np.random.RandomState(seed)
    X = rng.randint(0, 3, size=(n, d)) * 1.0
    y = np.append([0, 1], rng.randint(0, 2, n - 2))
    known = Constraints.sample(y, rng.randint(0, n * (n - 1) // 2 + 1), random_state=seed)
    model = ConstrainedLPP(2, random_state=0).fit(X, constraints=known)
    assert np.isfinite(model.embedding_).all()
    assert_array_equal(model.predict(X), model.labels_)
