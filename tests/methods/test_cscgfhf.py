"""CSC+GFHF: Algorithm 4 of Wang et al., Labels vs. pairwise constraints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Constraints, NCut
from linkwise._quiet import quiet
from linkwise.linalg.laplacian import normalized_adjacency
from linkwise.methods.cscgfhf import CSCGFHF, cscgfhf, kernel_factor
from linkwise.methods.gfhf import gfhf
from theory import stationary_labeling


def partly(y, share, seed):
    rng = np.random.RandomState(seed)
    n_known = max(2, round(share * y.size))
    while True:
        chosen = rng.choice(y.size, n_known, replace=False)
        if np.unique(y[chosen]).size == np.unique(y).size:
            break
    partial = np.full(y.size, -1)
    partial[chosen] = y[chosen]
    return partial


def algorithm_4(A, y, sigma):
    """Return all solutions of (12) but the trivial one, at length 1, and their f' Q_bar f."""
    Q = np.exp(-((y[:, None] - y[None]) ** 2).sum(axis=2) / (2 * sigma**2))  # (15)
    d_Q = Q.sum(axis=0)
    Q_bar = Q / np.sqrt(np.outer(d_Q, d_Q))
    found = stationary_labeling(normalized_adjacency(A), Q_bar)
    return found, ((Q_bar @ found.vectors) * found.vectors).sum(axis=0)


@settings(max_examples=30)
@given(st.integers(0, 200), st.sampled_from([0.2, 0.5, 1.0]))
def test_algorithm_4_step_by_step(seed, sigma):
    X, y = make_blobs(40, centers=2, cluster_std=4.0, random_state=seed)
    A = Affinity(None).fit_transform(X)
    known = Constraints.from_labels(partly(y, 0.2, seed))
    propagated = gfhf(A, known, 2).embedding
    all_found, satisfied = algorithm_4(A, propagated[:, [1]] - propagated[:, [0]], sigma)
    result = cscgfhf(A, known, 2, sigma=sigma)
    best = satisfied.argmax()
    f = result.embedding[:, 0]
    assert result.residuals.max() < 1e-6
    assert_allclose(result.eigenvalues[0], all_found.values[best], rtol=1e-4)
    assert abs(f @ all_found.vectors[:, best]) == pytest.approx(1, abs=1e-4)
    # The split is by sign, up to the names of the two sides.
    clear = np.abs(f) > 1e-5
    assert len(set(zip(f[clear] >= 0, result.labels[clear], strict=True))) <= 2


def test_more_than_two_classes_take_k_minus_1_vectors():
    X, y = make_blobs(90, centers=4, cluster_std=1.0, random_state=1)
    A = Affinity().fit_transform(X)
    known = Constraints.from_labels(partly(y, 0.2, 0))
    result = cscgfhf(A, known, 4, random_state=0)
    all_found, satisfied = algorithm_4(A.toarray(), gfhf(A, known, 4).embedding, 0.5)
    best = np.argsort(-satisfied)[:3]
    assert_allclose(result.eigenvalues, all_found.values[best], rtol=1e-4)
    overlap = np.abs((result.embedding * all_found.vectors[:, best]).sum(axis=0))
    assert_allclose(overlap, 1, atol=1e-4)
    assert (result.labels == y).mean() > 0.95


@settings(max_examples=30)
@given(st.integers(2, 60), st.integers(1, 4), st.floats(0.05, 3.0))
def test_kernel_factor_equals_the_kernel(n, k, sigma):
    y = np.random.RandomState(n).dirichlet(np.ones(k + 1), size=n)
    Q = np.exp(-((y[:, None] - y[None]) ** 2).sum(axis=2) / (2 * sigma**2))
    G = kernel_factor(y, sigma)
    assert_allclose(G @ G.T, Q, atol=2e-6)
    assert G.shape[1] <= n


def test_the_kernel_of_two_classes_has_a_low_rank():
    y = np.random.RandomState(0).uniform(-1, 1, size=(5000, 1))
    assert kernel_factor(y, 0.5).shape[1] < 20


def iris():
    X, y = load_iris(return_X_y=True)
    return X[y > 0], y[y > 0] - 1


def wine():
    X, y = load_wine(return_X_y=True)
    return X[y < 2], y[y < 2]


def wdbc():
    return load_breast_cancer(return_X_y=True)


@pytest.mark.parametrize("load", [iris, wine, wdbc])
@pytest.mark.parametrize("affinity", [Affinity(), Affinity(None)], ids=["knn", "full"])
def test_no_numerical_failure_on_the_paper_s_sets(load, affinity):
    X, y = load()
    W = affinity.fit_transform(StandardScaler().fit_transform(X))
    scores = []
    for share in (0.05, 0.2, 0.5):
        for seed in range(2):
            result = cscgfhf(W, Constraints.from_labels(partly(y, share, seed)), 2)
            assert np.isfinite(result.embedding).all()
            assert result.converged
            assert result.residuals.max() < 1e-6
            scores.append(adjusted_rand_score(y, result.labels))
    assert np.mean(scores) > 0.5


def test_without_knowledge_it_is_ncut():
    X, _ = wine()
    assert_array_equal(
        CSCGFHF(2, random_state=0).fit(X).labels_, NCut(2, random_state=0).fit(X).labels_
    )


def test_clusters_carry_the_numbers_of_the_labels():
    X, y = make_blobs(90, centers=3, cluster_std=0.5, random_state=1)
    for names in ([0, 1, 2], [2, 0, 1]):
        partial = partly(np.array(names)[y], 0.2, 0)
        model = CSCGFHF(3, random_state=0).fit(X, constraints=Constraints.from_labels(partial))
        assert_array_equal(model.labels_, np.array(names)[y])
        assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("sigma", [1e-3, 0.1, 1e3])
def test_extreme_sigmas_are_finite(sigma):
    X, y = wine()
    known = Constraints.from_labels(partly(y, 0.3, 0))
    model = CSCGFHF(2, sigma=sigma).fit(X, constraints=known)
    assert np.isfinite(model.embedding_).all()


def test_all_samples_labelled():
    X, y = wine()
    W = Affinity().fit_transform(StandardScaler().fit_transform(X))
    result = cscgfhf(W, Constraints.from_labels(y), 2)
    assert np.isfinite(result.embedding).all()
    assert adjusted_rand_score(y, result.labels) > 0.85


@pytest.mark.parametrize("form", [csr_array, np.array], ids=["sparse", "dense"])
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_a_disconnected_graph(form):
    # The classes are components: the solutions of lambda = 0 that separate them are kept.
    W = np.zeros((11, 11))
    for part in (slice(0, 4), slice(4, 8), slice(8, 10)):
        W[part, part] = 1
    np.fill_diagonal(W, 0)
    partial = np.full(11, -1)
    partial[[0, 4, 5]] = [0, 1, 1]
    model = CSCGFHF(2, affinity="precomputed")
    labels = model.fit(form(W), constraints=Constraints.from_labels(partial)).labels_
    assert_array_equal(labels[:8], [0] * 4 + [1] * 4)
    assert_allclose(model.result_.eigenvalues, [0], atol=1e-12)
    assert model.result_.residuals.max() < 1e-9
    f = model.embedding_[:, 0]
    assert_allclose(f[:4] * f[4:8], -np.abs(f[0] * f[4]))


def test_one_class_alone_leaves_nothing_to_cut():
    partial = np.full(119, -1)
    partial[:3] = 1
    with pytest.warns(UserWarning, match="name 1 classes"):
        model = CSCGFHF(2).fit(wine()[0][:119], constraints=Constraints.from_labels(partial))
    assert_array_equal(model.labels_, 0)


def test_the_factor_of_many_samples_has_fewer_columns(monkeypatch):
    y = np.random.RandomState(0).uniform(size=(400, 3))
    full = kernel_factor(y, 0.5)
    monkeypatch.setattr("linkwise.methods.cscgfhf.MAX_ENTRIES", 400 * 10)
    few = kernel_factor(y, 0.5)
    assert few.shape == (400, 10)
    assert full.shape[1] > 10
    assert_allclose(few, full[:, :10], atol=1e-12)


def test_a_solution_that_rounding_cancels_is_left_out():
    W = np.zeros((5, 5))
    W[0, 2], W[0, 3], W[2, 3] = 4.622062762684127e-16, 0.06737786315596749, 9.162120354536444
    W = csr_array(W + W.T)
    known = Constraints(5, must_link=[(2, 4)], cannot_link=[(1, 3)])
    with quiet(UserWarning):
        model = CSCGFHF(2, affinity="precomputed", random_state=922).fit(W, constraints=known)
    assert np.isfinite(model.result_.embedding).all()
    assert np.isfinite(model.result_.eigenvalues).all()
