"""cPCA (SSDR): Zhang, Zhou & Chen 2007; Wacquet et al. 2013, section 3.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from asserts import assert_same_subspace
from linkwise import Constraints
from linkwise.exceptions import TooLargeError
from linkwise.methods import _projection
from linkwise.methods._projection import (
    center,
    nearest_center,
    oriented,
    principal_variances,
    share_dimension,
)
from linkwise.methods.cpca import PAIRS_PER_BLOCK, ConstrainedPCA, cpca, criterion_matrix
from linkwise.partition import kmeans
from strategies import any_constraints

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def dense_criterion(X, pairs, weights, *, alpha, beta):
    """``X L X'`` of equation (14): the n x n weights of (11), by a loop, and their Laplacian."""
    N = len(X)
    n_cannot, n_must = (weights < 0).sum(), (weights > 0).sum()
    W = np.full((N, N), 1 / N**2)
    for (i, j), weight in zip(pairs, weights, strict=True):
        change = alpha * -weight / n_cannot if weight < 0 else -beta * weight / n_must
        W[i, j] += change
        W[j, i] += change
    L = np.diag(W.sum(axis=1)) - W
    return X.T @ L @ X


def elongated(n=60, seed=0):
    """Two classes that differ along the second feature, while the first one varies most."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 5)) * [6.0, 0.4, 1.0, 0.5, 0.2]
    X[:, 1] += 2.5 * y
    return X, y


# The paper ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 6), (12, 30)], ids=["long", "wide"])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (1, 20), (0.3, 0), (0, 2)])
def test_components_are_the_top_eigenvectors_of_equation_14(shape, alpha, beta):
    rng = np.random.RandomState(0)
    X = rng.normal(size=shape) * np.linspace(3, 0.5, shape[1]) + 5
    known = Constraints.sample(np.arange(shape[0]) % 3, 20, random_state=1)
    result = cpca(X, known, 3, n_components=3, alpha=alpha, beta=beta, random_state=0)
    J = dense_criterion(X, *known.signed_pairs(), alpha=alpha, beta=beta)
    values, vectors = np.linalg.eigh(J)
    if shape[1] > shape[0]:
        assert values[-3] > 0.1  # zero is an eigenvalue many times over
    assert_allclose(result.eigenvalues, values[:-4:-1], rtol=1e-10)
    assert_allclose(np.abs(result.components @ vectors[:, :-4:-1]), np.eye(3), atol=1e-8)


def test_objective_of_a_direction_is_equation_9():
    X, y = elongated(30)
    known = Constraints.sample(y, 25, random_state=0)
    J = criterion_matrix(center(X).Z, known, alpha=0.7, beta=1.3) * 4.0 ** center(X).exponent
    a = np.random.RandomState(1).normal(size=5)
    p = X @ a
    cannot, must = known.cannot_link, known.must_link
    expected = p.var()
    expected += 0.7 * np.mean((p[cannot[:, 0]] - p[cannot[:, 1]]) ** 2)
    expected -= 1.3 * np.mean((p[must[:, 0]] - p[must[:, 1]]) ** 2)
    assert a @ J @ a == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("share", [True, False])
def test_without_weights_of_the_pairs_it_is_pca(share):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 100, random_state=0)
    m = None if share else 4
    model = ConstrainedPCA(3, n_components=m, alpha=0, beta=0).fit(X, constraints=known)
    pca = PCA(0.95 if share else 4).fit(X)
    assert model.n_components_ == pca.n_components_ == (10 if share else 4)
    assert_same_subspace(model.components_.T, pca.components_.T, tol=1e-8)
    assert_allclose(model.mean_, pca.mean_, atol=1e-12)
    n = len(X)
    assert_allclose(model.result_.eigenvalues, pca.explained_variance_ * (n - 1) / n)


def test_without_pairs_it_is_pca():
    X, _ = elongated()
    assert_same_subspace(
        ConstrainedPCA(2, n_components=2).fit(X).components_.T, PCA(2).fit(X).components_.T
    )


@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_the_term_of_absent_pairs_vanishes(kind):
    X, _ = elongated()
    known = Constraints(60, **{kind: [(0, 1), (2, 3)]})
    J = criterion_matrix(X - X.mean(axis=0), known, alpha=1, beta=1)
    sign = 1 if kind == "cannot_link" else -1
    difference = X[[0, 2]] - X[[1, 3]]
    expected = np.cov(X.T, bias=True) + sign * difference.T @ difference / 2
    assert_allclose(J, expected, atol=1e-10)


def test_one_component_of_elongated_classes_needs_the_pairs():
    X, y = elongated()
    known = Constraints.sample(y, 40, random_state=0)
    without = ConstrainedPCA(2, n_components=1, random_state=0).fit(X)
    model = ConstrainedPCA(2, n_components=1, beta=20, random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, without.labels_) < 0.1
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert known.satisfied(model.labels_) > known.satisfied(without.labels_)


def test_with_as_many_components_as_features_it_is_kmeans():
    X, y = load_iris(return_X_y=True)
    known = Constraints.sample(y, 100, random_state=0)
    model = ConstrainedPCA(3, n_components=4, random_state=0).fit(X, constraints=known)
    plain = KMeans(3, n_init=20, random_state=0).fit(X)
    assert adjusted_rand_score(model.labels_, plain.labels_) == 1
    assert model.result_.objective == pytest.approx(plain.inertia_)


@pytest.mark.parametrize(("name", "dimension"), [("yale_32x32", 71), ("orl_32x32", 115)])
def test_share_of_the_variance_gives_the_dimensions_of_the_paper(name, dimension):
    # Wacquet et al., section 6.2.
    path = DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip("the data sets of the papers are not at hand")
    X = np.load(path)["X"].astype(float)
    assert X.shape[1] > X.shape[0]
    assert share_dimension(principal_variances(center(X).Z)) == dimension


# Pairs, labels and beliefs ------------------------------------------------------------------------


@given(any_constraints(max_samples=8), st.integers(0, 100))
def test_labels_are_summed_as_if_their_pairs_were_listed(known, seed):
    X = np.random.RandomState(seed).normal(size=(known.n_samples, 3))
    X -= X.mean(axis=0)
    pairs, weights = known.signed_pairs(limit=1000)
    expected = dense_criterion(X, pairs, weights, alpha=0.8, beta=1.7)
    assert_allclose(criterion_matrix(X, known, alpha=0.8, beta=1.7), expected, atol=1e-12)


def test_more_pairs_than_a_block():
    X, y = make_blobs(400, n_features=3, centers=2, random_state=0)
    X -= X.mean(axis=0)
    listed = Constraints.sample(y, 2 * PAIRS_PER_BLOCK + 5, random_state=0)
    J = criterion_matrix(X, listed, alpha=1, beta=1)
    assert_allclose(J, dense_criterion(X, *listed.signed_pairs(), alpha=1, beta=1), rtol=1e-10)


def test_the_labels_of_all_samples_cost_no_pairs():
    # Two thousand million pairs are implied.
    X, y = make_blobs(60_000, n_features=2, centers=3, random_state=0)
    X -= X.mean(axis=0)
    J = criterion_matrix(X, Constraints.from_labels(y), alpha=1, beta=1)
    within = np.array([(y == c).mean() ** 2 for c in range(3)])
    scatter = sum(w * 2 * np.cov(X[y == c].T, bias=True) for c, w in enumerate(within))
    across = 2 * np.cov(X.T, bias=True) - scatter
    expected = np.cov(X.T, bias=True) + across / (1 - within.sum()) - scatter / within.sum()
    assert_allclose(J, expected, rtol=1e-3)


def test_a_belief_weighs_its_pair():
    X, _ = elongated(6)
    X -= X.mean(axis=0)
    pairs = [(0, 1), (2, 4)]
    known = Constraints(6, cannot_link=pairs, cannot_link_belief=[0.25, 1.0])
    J = criterion_matrix(X, known, alpha=1, beta=1)
    a, b = X[0] - X[1], X[2] - X[4]
    expected = np.cov(X.T, bias=True) + (0.25 * np.outer(a, a) + np.outer(b, b)) / 2
    assert_allclose(J, expected, atol=1e-12)


# Invariances --------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-200, 1e-100, 1e-10, 0.3, 1e10, 1e100, 1e150])
def test_unit_of_the_data_does_not_matter(factor):
    X, y = elongated()
    known = Constraints.sample(y, 30, random_state=0)
    model = ConstrainedPCA(2, n_components=2, random_state=0)
    here = model.fit(X, constraints=known)
    labels, components = here.labels_, here.components_
    there = model.fit(factor * X, constraints=known)
    assert_array_equal(there.labels_, labels)
    assert_array_equal(there.predict(factor * X), labels)
    assert_allclose(there.components_, components, atol=1e-10)


def test_moving_and_rotating_the_data_does_not_matter():
    X, y = elongated()
    known = Constraints.sample(y, 30, random_state=0)
    turn = np.linalg.qr(np.random.RandomState(3).normal(size=(5, 5)))[0]
    here = cpca(X, known, 2, n_components=2, random_state=0)
    there = cpca(X @ turn + 1e6, known, 2, n_components=2, random_state=0)
    assert_array_equal(here.labels, there.labels)
    assert_allclose(np.abs(here.embedding), np.abs(there.embedding), atol=1e-6)


@pytest.mark.parametrize("shape", [(60, 5), (12, 30)], ids=["long", "wide"])
def test_signs_are_determined(shape):
    n, d = shape
    X = np.random.RandomState(0).normal(size=shape) * np.linspace(3, 0.5, d)
    known = Constraints.sample(np.arange(n) % 2, 30, random_state=0)
    order = np.random.RandomState(0).permutation(n)
    here = ConstrainedPCA(2, n_components=4).fit(X, constraints=known)
    there = ConstrainedPCA(2, n_components=4).fit(X[order], constraints=known[order])
    assert_allclose(here.components_, there.components_, atol=1e-10)
    largest = np.abs(here.components_).argmax(axis=1)
    assert (here.components_[range(4), largest] > 0).all()


def test_rounding_does_not_decide_a_sign():
    tied = np.array([[-1.0, 1.0 + 1e-9], [1.0 + 1e-9, -1.0]])
    assert_array_equal(oriented(tied), [[1.0, -1.0 - 1e-9], [1.0 + 1e-9, -1.0]])


# A transformer ------------------------------------------------------------------------------------


def test_transform_of_the_training_data_is_the_embedding():
    X, y = elongated()
    known = Constraints.sample(y, 30, random_state=0)
    model = ConstrainedPCA(2, n_components=2, random_state=0)
    embedding = model.fit_transform(X, constraints=known)
    assert_array_equal(embedding, model.embedding_)
    assert_array_equal(model.transform(X), model.embedding_)
    assert_allclose(embedding, (X - model.mean_) @ model.components_.T)
    assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)
    assert_array_equal(model.get_feature_names_out(), ["constrainedpca0", "constrainedpca1"])


def test_predict_is_the_nearest_centre_in_the_projection():
    X, y = elongated(200)
    known = Constraints.sample(y, 100, random_state=0)
    model = ConstrainedPCA(2, n_components=1, beta=20, random_state=0)
    model.fit(X[:150], constraints=known[:150])
    assert_array_equal(model.predict(X[:150]), model.labels_)
    for c in range(2):
        mean = model.embedding_[model.labels_ == c].mean(axis=0)
        assert_allclose(model.cluster_centers_[c], mean, atol=1e-10)
    new = model.transform(X[150:])
    distances = np.linalg.norm(new[:, None] - model.cluster_centers_[None], axis=2)
    assert_array_equal(model.predict(X[150:]), distances.argmin(axis=1))
    assert adjusted_rand_score(model.predict(X[150:]), y[150:]) > 0.9
    assert set(model.predict(np.full((2, 5), 1e200))) <= {0, 1}


@given(st.integers(1, 20), st.integers(1, 4), st.integers(1, 5), st.integers(0, 1000))
def test_nearest_centre_equals_its_slow_twin(n, m, k, seed):
    rng = np.random.RandomState(seed)
    # Few distinct values, for ties.
    V, centers = rng.randint(0, 3, (n, m)) * 1.0, rng.randint(0, 3, (k, m)) * 1.0
    slow = []
    for v in V:
        distances = [sum((a - b) ** 2 for a, b in zip(v, c, strict=True)) for c in centers]
        slow.append(distances.index(min(distances)))
    assert_array_equal(nearest_center(V, centers), slow)


def test_training_labels_come_back_for_many_overlapping_samples():
    # Above 5,000 rows k-means ends before its centres stand still.
    X = np.random.RandomState(0).normal(size=(8_000, 3))
    model = ConstrainedPCA(6, random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    assert np.unique(model.labels_).size == 6


def test_labels_are_what_predict_answers_even_if_kmeans_stopped_short(monkeypatch):
    X, _ = elongated()

    def stopped_short(V, k, rng):
        found = kmeans(V, k, rng)
        labels = found.labels.copy()
        labels[7] = 1 - labels[7]
        return found._replace(labels=labels)

    monkeypatch.setattr(_projection, "kmeans", stopped_short)
    model = ConstrainedPCA(2, random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.labels_)


def test_constraints_travel_through_pipelines():
    X, y = elongated()
    known = Constraints.sample(y, 40, random_state=0)
    scaled = StandardScaler().fit_transform(X)
    alone = ConstrainedPCA(3, n_components=1, random_state=0).fit(scaled, constraints=known)
    with sklearn.config_context(enable_metadata_routing=True):
        method = ConstrainedPCA(3, n_components=1, random_state=0)
        method.set_fit_request(constraints=True)
        last = make_pipeline(StandardScaler(), method).fit(X, constraints=known)
        within = make_pipeline(StandardScaler(), method, KMeans(3, random_state=0))
        within.fit(X, constraints=known)
    assert_array_equal(last.predict(X), alone.labels_)
    assert_array_equal(last.transform(X), alone.embedding_)
    assert_array_equal(within[1].embedding_, alone.embedding_)
    assert not np.array_equal(alone.components_, ConstrainedPCA(3).fit(scaled).components_)
    # Without routing the step is named.
    named = make_pipeline(StandardScaler(), ConstrainedPCA(3, n_components=1, random_state=0))
    assert_array_equal(named.fit_predict(X, constrainedpca__constraints=known), alone.labels_)


def test_frames_go_in_and_come_out():
    pd = pytest.importorskip("pandas")
    X, _ = elongated()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = ConstrainedPCA(2, n_components=2).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == ["constrainedpca0", "constrainedpca1"]
    assert_allclose(out.to_numpy(), model.embedding_)


# Corners ------------------------------------------------------------------------------------------


def test_number_of_components():
    X, _ = elongated()
    assert share_dimension(np.array([0.95, 0.05])) == 2  # as scikit-learn: more than the share
    assert share_dimension(np.array([0.951, 0.049])) == 1
    assert share_dimension(np.array([1.0, 0.0])) == 1
    for bad in (0, -1, 1.5, "all"):
        with pytest.raises(ValueError, match="'n_components' parameter"):
            ConstrainedPCA(2, n_components=bad).fit(X)
    with pytest.raises(ValueError, match="n_components=6, but X has 60 samples and 5 features"):
        ConstrainedPCA(2, n_components=6).fit(X)
    with pytest.raises(ValueError, match="at most 3 components"):
        ConstrainedPCA(2, n_components=4).fit(X[:3])
    assert ConstrainedPCA(2, n_components=5).fit(X).n_components_ == 5


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_weights_are_not_negative(name):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        ConstrainedPCA(2, **{name: -0.1}).fit(elongated()[0])


def test_not_fitted():
    model = ConstrainedPCA(2)
    with pytest.raises(NotFittedError):
        model.transform([[0.0]])
    with pytest.raises(NotFittedError):
        _ = model.components_
    assert not hasattr(model, "cluster_centers_")


def test_too_many_samples_and_features(monkeypatch):
    monkeypatch.setattr(_projection, "MAX_DIMENSIONS", 20)
    rng = np.random.RandomState(0)
    with pytest.raises(TooLargeError, match=r"21 samples and 30 features.*at most 20 of either"):
        ConstrainedPCA(2).fit(rng.normal(size=(21, 30)))
    assert ConstrainedPCA(2).fit(rng.normal(size=(20, 30))).labels_.size == 20
    assert ConstrainedPCA(2).fit(rng.normal(size=(30, 20))).labels_.size == 30


def test_data_without_variance():
    model = ConstrainedPCA(2, random_state=0).fit(
        np.full((5, 3), 0.1), constraints=Constraints(5, cannot_link=[(0, 1)])
    )
    assert model.n_components_ == 1
    assert_allclose(model.embedding_, 0, atol=1e-15)
    assert_array_equal(model.predict(np.full((2, 3), 0.1)), [0, 0])


def test_far_from_zero_the_mean_is_exact():
    rng = np.random.RandomState(0)
    Z = rng.normal(size=(5_000, 3))
    near, far = center(Z), center(Z + 1e9)
    assert near.exponent == far.exponent
    assert_allclose(near.Z, far.Z, atol=1e-7)
    assert_allclose(far.Z.mean(axis=0), 0, atol=1e-12)


@settings(max_examples=40)
@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 10_000))
def test_tiny_inputs(n, d, seed):
    rng = np.random.RandomState(seed)
    X = rng.randint(0, 3, size=(n, d)) * 1.0
    y = np.append([0, 1], rng.randint(0, 2, n - 2))
    known = Constraints.sample(y, rng.randint(0, n * (n - 1) // 2 + 1), random_state=seed)
    model = ConstrainedPCA(2, random_state=0).fit(X, constraints=known)
    assert np.isfinite(model.embedding_).all()
    assert_array_equal(model.predict(X), model.labels_)
    assert model.labels_.max() == min(1, len(np.unique(model.embedding_.round(9), axis=0)) - 1)


@pytest.mark.parametrize("factor", [1e160, 1e300])
def test_sums_of_squares_that_overflow_are_refused(factor):
    X = factor * np.random.RandomState(0).normal(size=(30, 4))
    with pytest.raises(ValueError, match="leave the range of floating-point numbers"):
        ConstrainedPCA(2, random_state=0).fit(X)
