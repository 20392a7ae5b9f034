"""Auto: its promises and its corners."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Auto, ConflictError, Constraints, NCut, Prepared
from linkwise.auto import ensemble, learner, views
from linkwise.auto.views import Views
from linkwise.datasets import make_xor


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=3, cluster_std=1.0, random_state=3)


@pytest.fixture(scope="module")
def fitted():
    """Return a model of iris with 30 pairs, for tests that only look at it."""
    X, y = load_iris(return_X_y=True)
    known = Constraints.sample(y, 30, random_state=0)
    return Auto(3, random_state=0).fit(StandardScaler().fit_transform(X), constraints=known)


@pytest.fixture
def few_numbers(monkeypatch):
    """Consider at most six clusters."""
    monkeypatch.setattr("linkwise.auto.n_clusters.MOST", 6)


def ari(a, b):
    return adjusted_rand_score(a, b)


def flipped(known, share, seed):
    """Return the pairs with a share of them turned round, and which ones."""
    rng = np.random.RandomState(seed)
    wrong_must = rng.uniform(size=len(known.must_link)) < share
    wrong_cannot = rng.uniform(size=len(known.cannot_link)) < share
    must = np.vstack((known.must_link[~wrong_must], known.cannot_link[wrong_cannot]))
    cannot = np.vstack((known.cannot_link[~wrong_cannot], known.must_link[wrong_must]))
    wrong = {
        *map(tuple, known.must_link[wrong_must].tolist()),
        *map(tuple, known.cannot_link[wrong_cannot].tolist()),
    }
    return Constraints(known.n_samples, must, cannot), wrong


# What it is for ---------------------------------------------------------------------------------


def test_pairs_improve_samples_that_no_pair_names(iris):
    X, y = iris
    known = Constraints.sample(y, 75, random_state=0)
    free = ~known.constrained
    without = NCut(3, random_state=0).fit(X).labels_
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert ari(y[free], model.labels_[free]) > 0.8
    assert ari(y[free], model.labels_[free]) > ari(y[free], without[free])
    assert model.report_.score > model.report_.score_without


def test_shapes_that_no_plane_separates():
    X, y = make_moons(200, noise=0.08, random_state=0)
    known = Constraints.sample(y, 40, random_state=0)
    assert ari(y, Auto(2, random_state=0).fit(X, constraints=known).labels_) > 0.9


def test_wrong_pairs_are_found():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known, wrong = flipped(Constraints.sample(y, 180, random_state=0), 0.15, 0)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    is_wrong = [suspect.samples in wrong for suspect in model.suspects_]
    probability = [suspect.probability for suspect in model.suspects_]
    assert sum(is_wrong) == len(wrong)
    assert roc_auc_score(is_wrong, probability) > 0.95
    assert abs(model.noise_ - len(wrong) / known.n_pairs) < 0.05
    assert ari(y, model.labels_) > 0.85
    assert (np.diff(probability) <= 0).all()


def test_suspects_name_the_rows_that_were_given():
    X, y = make_blobs(60, centers=2, cluster_std=0.5, random_state=0)
    zero, one = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    must = [(one[0], one[1]), (zero[2], one[2]), (zero[0], zero[1])]
    cannot = [(zero[i], one[i]) for i in range(5, 15)]
    model = Auto(2, random_state=0).fit(X, constraints=Constraints(60, must, cannot))
    first = model.suspects_[0]
    assert (first.kind, first.row) == ("must-link", 1)
    assert first.samples == tuple(sorted((zero[2], one[2])))
    assert len(model.suspects_) == 13


def test_a_wrong_label_is_suspected(blobs):
    X, y = blobs
    partial = np.full(90, -1)
    partial[::5] = y[::5]
    partial[10] = (y[10] + 1) % 3
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(partial))
    assert ari(y, model.labels_) > 0.9
    assert model.suspects_[0].kind == "label"
    assert model.suspects_[0].samples == (10,)
    assert model.report_.n_constraints == 18


def test_one_wrong_pair_and_one_wrong_label_are_suspected():
    X, y = make_blobs(60, 4, centers=3, random_state=0)
    right = Constraints.sample(y, 20, random_state=0)
    zero, one = (int(np.flatnonzero(y == c)[0]) for c in (0, 1))
    labels = np.where(np.arange(60) >= 45, y, -1)
    labels[50] = (y[50] + 1) % 3
    known = Constraints(60, [*right.must_link, (zero, one)], right.cannot_link, labels=labels)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert {one.samples for one in model.suspects_[:2]} == {tuple(sorted((zero, one))), (50,)}
    assert (
        min(one.probability for one in model.suspects_[:2]) > 0.5 > model.suspects_[2].probability
    )
    assert ari(y, model.labels_) == 1.0


def test_labels_and_pairs_together(iris):
    X, y = iris
    partial = np.full(150, -1)
    partial[::15] = y[::15]
    pairs = Constraints.sample(y, 30, random_state=1)
    both = Constraints(150, pairs.must_link, pairs.cannot_link, labels=partial)
    model = Auto(3, random_state=0).fit(X, constraints=both)
    assert ari(y, model.labels_) > 0.8
    assert {suspect.kind for suspect in model.suspects_} == {"must-link", "cannot-link", "label"}


@pytest.mark.parametrize(
    "shape",
    [
        make_moons(200, noise=0.06, random_state=0),
        make_circles(200, noise=0.04, factor=0.4, random_state=0),
    ],
    ids=["moons", "circles"],
)
def test_clear_shapes_need_no_pairs(shape):
    X, y = shape
    model = Auto(2, random_state=0).fit(X)
    assert ari(y, model.labels_) == 1.0
    assert_array_equal(model.predict(X), model.labels_)


# Hard -------------------------------------------------------------------------------------------


def test_hard_pairs_hold_without_exception():
    X, y = make_blobs(90, centers=3, cluster_std=3.0, random_state=3)
    known, _ = flipped(Constraints.sample(y, 40, random_state=0), 0.1, 0)
    soft = Auto(3, random_state=0).fit(X, constraints=known)
    hard = Auto(3, hard=True, random_state=0).fit(X, constraints=known)
    assert known.n_violated(soft.labels_) > 0
    assert known.n_violated(hard.labels_) == 0
    assert hard.report_.n_violated == 0
    assert_array_equal(hard.predict(X), hard.labels_)


def test_hard_pairs_that_cannot_hold_are_proved_to(blobs):
    X, _ = blobs
    chain = Constraints(90, must_link=[(4, 7), (7, 9)], cannot_link=[(4, 9)])
    ring = Constraints(90, cannot_link=[(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    with pytest.raises(ConflictError, match="4 - 7 - 9"):
        Auto(3, hard=True).fit(X, constraints=chain)
    with pytest.raises(ConflictError, match="odd"):
        Auto(2, hard=True).fit(X, constraints=ring)
    assert not Auto(hard=True).accepts_contradictions


def test_soft_pairs_may_contradict_each_other(blobs):
    X, y = blobs
    chain = Constraints(90, must_link=[(4, 7), (7, 9)], cannot_link=[(4, 9)])
    model = Auto(3, random_state=0).fit(X, constraints=chain)
    assert ari(y, model.labels_) > 0.9
    assert model.accepts_contradictions
    everything = Constraints(4, must_link=[(0, 1), (1, 2), (2, 3)])
    assert set(Auto(2, random_state=0).fit(X[:4], constraints=everything).labels_) == {0, 1}


def test_more_labels_than_clusters(blobs, few_numbers):
    labels = np.full(90, -1)
    labels[:4] = np.arange(4)
    known = Constraints.from_labels(labels)
    with pytest.raises(ConflictError, match="4 different labels"):
        Auto(3).fit(blobs[0], constraints=known)
    assert Auto(random_state=0).fit(blobs[0], constraints=known).n_clusters_ >= 4


# Number of clusters -----------------------------------------------------------------------------


def test_the_number_of_clusters_is_found(monkeypatch):
    for k in (2, 5):
        X, y = make_blobs(90, centers=k, cluster_std=0.5, center_box=(-15, 15), random_state=1)
        assert Auto(random_state=0).fit(X).n_clusters_ == k
        monkeypatch.setattr("linkwise.auto.n_clusters.MOST", k + 2)
        known = Constraints.sample(y, 40, random_state=0)
        model = Auto(random_state=0).fit(X, constraints=known)
        assert model.n_clusters_ == k
        probability = model.report_.n_clusters_probability
        assert_allclose(sum(probability.values()), 1.0)
        assert max(probability, key=probability.get) == k


def test_cannot_links_require_clusters(blobs, few_numbers):
    clique = Constraints(90, cannot_link=[(i, j) for j in range(5) for i in range(j)])
    assert Auto(random_state=0).fit(blobs[0], constraints=clique).n_clusters_ >= 5


# New samples ------------------------------------------------------------------------------------


def test_probabilities_of_training_and_new_samples(iris):
    X, y = iris
    known = Constraints.sample(y[::2], 40, random_state=0)
    model = Auto(3, random_state=0).fit(X[::2], constraints=known)
    assert_allclose(model.predict_proba(X[::2]), model.result_.probability)
    new = model.predict_proba(X[1::2])
    assert_allclose(new.sum(axis=1), 1.0, rtol=1e-12)
    copies = (X[1::2, None] == X[None, ::2]).all(axis=2).any(axis=1)
    assert_array_equal(model.predict(X[1::2])[~copies], new.argmax(axis=1)[~copies])
    assert ari(y[1::2], model.predict(X[1::2])) > 0.75
    one_by_one = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(1, 30, 2)])
    assert_allclose(one_by_one, new[:15], atol=1e-9)


def test_labels_are_held_out_too(iris):
    X, y = iris
    partial = np.full(150, -1)
    partial[::10] = y[::10]
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(partial))
    assert model.report_.score > model.report_.score_without
    two = np.full(150, -1)
    two[[0, 149]] = y[[0, 149]]
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(two))
    assert model.labels_[0] == 0
    assert model.labels_[149] == 2


def test_predicting_the_training_samples_gives_their_labels(fitted, iris):
    assert_array_equal(fitted.predict(iris[0]), fitted.labels_)
    near = fitted.predict(iris[0] + 1e-7)  # no copies: the classifier repeats the answer
    assert (near == fitted.labels_).mean() > 0.97


# Graphs and sparse data -------------------------------------------------------------------------


@pytest.mark.parametrize("form", [csr_array, lambda W: W.toarray()], ids=["sparse", "dense"])
def test_a_graph_alone(form):
    X, y = make_moons(120, noise=0.08, random_state=0)
    W = form(Affinity().fit_transform(X))
    known = Constraints.sample(y, 40, random_state=0)
    model = Auto(2, affinity="precomputed", random_state=0).fit(W, constraints=known)
    assert ari(y, model.labels_) > 0.9
    names = {one.name for one in model.report_.candidates}
    assert "spectral" in names
    assert not names & {"k-means", "tree .3", "micro-clusters, 2 k"}
    assert model.predict_proba(W).shape == (120, 2)
    assert (model.predict(W) == model.labels_).mean() > 0.95
    assert_allclose(model.predict_proba(W).sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_more_components_than_clusters():
    W = block_diag(*[np.ones((10, 10)) - np.eye(10) for _ in range(5)])
    y = np.repeat([0, 1, 0, 1, 0], 10)
    without = Auto(2, affinity="precomputed", random_state=0).fit(W)
    assert set(without.labels_) == {0, 1}
    for seed in range(3):
        known = Constraints.sample(y, 20, random_state=seed)
        model = Auto(2, affinity="precomputed", random_state=0).fit(W, constraints=known)
        assert ari(y, model.labels_) == 1.0


def test_a_graph_in_prepared_data(iris):
    X, y = iris
    known = Constraints.sample(y, 9, random_state=0)
    W = Affinity(8).fit_transform(X)
    data = Prepared(W, affinity="precomputed")
    for k in (3, 2, 5):  # what is kept for fewer clusters is not used for more
        kept = Auto(k, random_state=0).fit(data, constraints=known)
        plain = Auto(k, affinity="precomputed", random_state=0).fit(W, constraints=known)
        assert_array_equal(kept.result_.probability, plain.result_.probability)
        assert_array_equal(kept.predict(W[:5]), plain.predict(W[:5]))


def test_an_affinity_in_prepared_data(iris):
    X, y = iris
    known = Constraints.sample(y, 9, random_state=0)
    own = Auto(3, random_state=0).fit(Prepared(X, affinity=Affinity(5)), constraints=known)
    same = Auto(3, affinity=Affinity(5), random_state=0).fit(X, constraints=known)
    assert_array_equal(own.labels_, same.labels_)
    assert own.affinity_matrix_.nnz < Affinity().fit_transform(X).nnz


# Many samples -----------------------------------------------------------------------------------


@pytest.fixture
def few_rows(monkeypatch):
    """Partition 120 samples; the others follow a classifier."""
    monkeypatch.setattr(views, "MAX_ROWS", 120)
    monkeypatch.setattr(ensemble, "FOLD_ROWS", 60)
    monkeypatch.setattr(learner, "BLOCK", 70)


def many_blobs():
    return make_blobs(500, centers=3, cluster_std=0.8, random_state=3)


@pytest.mark.parametrize("m", [0, 6, 40])
def test_of_many_samples_some_are_partitioned(few_rows, m):
    X, y = many_blobs()
    known = Constraints.sample(y, m, random_state=0)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert ari(y, model.labels_) > 0.97
    assert_allclose(model.result_.probability.sum(axis=1), 1.0, atol=1e-9)
    assert known.n_violated(model.labels_) == 0
    assert_array_equal(model.predict(X), model.labels_)


def test_many_samples_in_the_other_forms(few_rows):
    X, y = many_blobs()
    known = Constraints.sample(y, 20, random_state=0)
    W = Affinity().fit_transform(X)
    graph = Auto(3, affinity="precomputed", random_state=0).fit(W, constraints=known)
    assert ari(y, graph.labels_) > 0.9
    hard = Auto(3, hard=True, random_state=0).fit(X, constraints=known)
    assert known.n_violated(hard.labels_) == 0
    sparse = Auto(3, random_state=0).fit(csr_array(X), constraints=known)
    assert ari(y, sparse.labels_) > 0.97
    labels = np.where(np.arange(500) % 3 == 0, y, -1)
    labelled = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(labels))
    assert (labelled.labels_ == y)[labels >= 0].mean() > 0.97
    assert ari(y, labelled.labels_) > 0.97


def test_the_number_of_clusters_of_many_samples(few_rows, few_numbers):
    X, y = many_blobs()
    known = Constraints.sample(y, 40, random_state=0)
    assert Auto(random_state=0).fit(X, constraints=known).n_clusters_ == 3


# Corners ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "must", "cannot", "one", "all"])
def test_one_sided_pairs(blobs, kind):
    X, y = (part[:45] for part in blobs)
    some = Constraints.sample(y, 60, random_state=0)
    i, j = np.triu_indices(45, 1)
    pairs = np.column_stack((i, j))
    same = y[i] == y[j]
    known = {
        "none": Constraints(45),
        "must": Constraints(45, must_link=some.must_link),
        "cannot": Constraints(45, cannot_link=some.cannot_link),
        "one": Constraints(45, must_link=some.must_link[:1]),
        "all": Constraints(45, pairs[same], pairs[~same]),
    }[kind]
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert set(model.labels_) == {0, 1, 2}
    assert ari(y, model.labels_) == 1.0 if kind == "all" else ari(y, model.labels_) > 0.9
    assert np.isfinite(model.result_.probability).all()


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_tiny_data(n):
    X = np.arange(n, dtype=float)[:, None] ** 2
    known = Constraints(n, cannot_link=[(0, 1)])
    labels = Auto(2, random_state=0).fit(X, constraints=known).labels_
    assert set(labels) == {0, 1}
    assert Auto(random_state=0).fit(X).n_clusters_ >= 2


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_equal_samples_in_two_clusters_are_themselves(form):
    X = np.repeat(make_blobs(20, centers=2, random_state=0)[0], 2, axis=0)
    known = Constraints(40, cannot_link=[(0, 1), (6, 7), (14, 15)])
    model = Auto(2, hard=True, random_state=0).fit(form(X), constraints=known)
    assert model.labels_[0] != model.labels_[1]
    assert_array_equal(model.predict(form(X)), model.labels_)
    assert_array_equal(model.predict(form(X[:2])), model.labels_[[0, 0]])  # the first of both


def test_duplicates_and_constant_features():
    X = np.column_stack((np.repeat([0.0, 1.0, 5.0], 6), np.ones(18)))
    known = Constraints(18, must_link=[(0, 7)], cannot_link=[(0, 17)])
    labels = Auto(2, random_state=0).fit(X, constraints=known).labels_
    assert labels.tolist() == [0] * 12 + [1] * 6
    with pytest.warns(UserWarning, match="All samples are equal"):
        assert set(Auto(2, random_state=0).fit(np.ones((8, 2))).labels_) == {0, 1}


def test_a_belief_is_a_rate_of_errors(blobs):
    # Wrong pairs of low belief do no harm, certain ones do.
    X, y = blobs
    wrong, _ = flipped(Constraints.sample(y, 150, random_state=0), 1.0, 0)
    faint = Auto(3, random_state=0).fit(X, constraints=wrong.with_belief(0.01))
    assert ari(y, faint.labels_) > 0.9
    assert ari(y, Auto(3, random_state=0).fit(X, constraints=wrong).labels_) < 0.9


def test_as_many_clusters_as_samples():
    X = np.arange(5.0)[:, None] ** 2
    assert Auto(5, random_state=0).fit(X).labels_.tolist() == [0, 1, 2, 3, 4]
    known = Constraints(5, must_link=[(0, 1)])  # any constraint may be wrong, and one is
    assert set(Auto(5, random_state=0).fit(X, constraints=known).labels_) == set(range(5))


def test_one_class_of_labels(blobs):
    X, y = blobs
    labels = np.where((y == 1) & (np.arange(90) < 40), 0, -1)
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(labels))
    assert ari(y, model.labels_) > 0.9
    assert (model.labels_[labels == 0] == 0).all()


def test_one_feature_among_constant_ones():
    X = np.zeros((40, 5))
    X[:, 2] = np.repeat([0.0, 9.0], 20) + np.random.RandomState(0).normal(size=40)
    X[:, 4] = 1e6
    model = Auto(2, random_state=0).fit(X)
    assert model.labels_.tolist() == [0] * 20 + [1] * 20
    assert_array_equal(model.predict(X), model.labels_)
    assert model.predict(X[:1] + 0.01).tolist() == [0]


def test_more_features_than_samples():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(30, 200)) + 2 * np.repeat([0, 1], 15)[:, None] * rng.normal(size=200)
    assert Auto(2, random_state=0).fit(X).labels_.tolist() == [0] * 15 + [1] * 15


# How it works -----------------------------------------------------------------------------------


def test_threads_change_nothing(iris):
    X, y = iris
    known = Constraints.sample(y, 9, random_state=0)
    one, two = (Auto(3, random_state=0, n_jobs=n).fit(X, constraints=known) for n in (1, 2))
    assert_array_equal(one.result_.probability, two.result_.probability)


def test_the_same_seed_gives_the_same_answer(iris, fitted):
    X, y = iris
    known = Constraints.sample(y, 30, random_state=0)
    again = Auto(3, random_state=0).fit(X, constraints=known)
    assert_array_equal(again.result_.probability, fitted.result_.probability)


def test_a_model_can_be_pickled_and_cloned(iris, fitted):
    X, _ = iris
    restored = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(restored.labels_, fitted.labels_)
    assert_array_equal(restored.predict(X + 0.1), fitted.predict(X + 0.1))
    assert str(restored.report_) == str(fitted.report_)
    assert restored.suspects_ == fitted.suspects_
    copy = clone(Auto(4, scaling="given", hard=True, n_jobs=2, random_state=3))
    assert (
        copy.get_params()
        == Auto(4, scaling="given", hard=True, n_jobs=2, random_state=3).get_params()
    )


def test_prepared_data_are_described_once(iris, fitted):
    X, y = iris
    first, second = (Constraints.sample(y, m, random_state=0) for m in (9, 30))
    data = Prepared(X)
    Auto(3, random_state=0).fit(data, constraints=first)
    views = data.attached[Views]
    described = views.view(views.scalings[0], 3)
    partitions = dict(described.partitions)
    again = Auto(3, random_state=0).fit(data, constraints=second)
    assert data.attached[Views] is views
    assert all(described.partitions[name] is one for name, one in partitions.items())
    assert_array_equal(again.result_.probability, fitted.result_.probability)
    assert_array_equal(again.predict_proba(X[:9] + 0.1), fitted.predict_proba(X[:9] + 0.1))


def test_bases_for_more_clusters_begin_with_those_for_fewer(iris, fitted):
    X, y = iris
    known = Constraints.sample(y, 30, random_state=0)
    data = Prepared(X)
    Auto(12, random_state=0).fit(data)
    shared = Auto(3, random_state=0).fit(data, constraints=known)
    assert ari(shared.labels_, fitted.labels_) > 0.95


def test_contradictions_are_found_before_anything_is_computed(iris, monkeypatch):
    monkeypatch.setattr(views, "build_bases", None)  # never reached
    known = Constraints(150, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    with pytest.raises(ConflictError, match="0 - 1 - 2"):
        Auto(hard=True).fit(iris[0], constraints=known)


def test_clusters_are_numbered_as_their_labels(blobs):
    X, y = blobs
    known = np.full(90, -1)
    for c, value in enumerate([7, 2, 4]):
        known[np.flatnonzero(y == c)[-3:]] = value
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(known))
    given = known >= 0
    assert_array_equal(model.labels_[given], np.unique(known[given], return_inverse=True)[1])
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.predict_proba(X).argmax(axis=1), model.labels_)


def test_a_class_without_a_label(blobs):
    X, y = blobs
    known = np.full(90, -1)
    for c in (0, 2):
        known[np.flatnonzero(y == c)[:4]] = c
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(known))
    assert ari(model.labels_, y) > 0.8
    for c in (0, 2):
        assert (model.labels_[known == c] == c).all()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_equal_samples_are_mentioned(form):
    X = form(np.ones((50, 45)))
    known = Constraints(50, must_link=[(0, 1)], cannot_link=[(0, 2)])
    with pytest.warns(UserWarning, match="All samples are equal"):
        labels = Auto(2, random_state=0).fit(X, constraints=known).labels_
    assert labels[0] == labels[1] != labels[2]


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_the_answer_does_not_depend_on_earlier_fits():
    rng = np.random.RandomState(0)
    W = block_diag(*[np.triu(rng.uniform(size=(6, 6)), 1) for _ in range(60)])
    W = csr_array(W + W.T)
    known = Constraints.sample(np.arange(360) // 120, 40, random_state=0)
    data = Prepared(W, affinity="precomputed")
    Auto(12, random_state=0).fit(data, constraints=known)
    shared = Auto(3, random_state=0).fit(data, constraints=known)
    plain = Auto(3, affinity="precomputed", random_state=0).fit(W, constraints=known)
    assert_array_equal(shared.labels_, plain.labels_)


def test_sparse_samples_that_look_alike_are_not_copies():
    rng = np.random.RandomState(0)
    X = np.zeros((90, 60))
    X[:45, 0], X[45:, 0] = 50, -50  # all the variance that counts
    X[np.arange(90), 1 + rng.randint(59, size=90)] += rng.uniform(size=90)
    known = Constraints(90, cannot_link=[(0, 1), (2, 3), (4, 5)])
    model = Auto(2, hard=True, random_state=0).fit(csr_array(X), constraints=known)
    assert_array_equal(model.predict(csr_array(X)), model.labels_)


@pytest.mark.parametrize("m", [0, 20])
def test_permuting_clear_data_permutes_the_labels(blobs, m):
    X, y = blobs
    known = Constraints.sample(y, m, random_state=0)
    order = np.random.RandomState(0).permutation(90)
    place = np.argsort(order)
    there = Constraints(90, place[known.must_link], place[known.cannot_link])
    straight = Auto(3, random_state=0).fit(X, constraints=known).labels_
    shuffled = Auto(3, random_state=0).fit(X[order], constraints=there).labels_
    assert ari(straight[order], shuffled) == 1.0


def test_a_cluster_in_two_distant_places():
    X, y = make_xor(60, spread=0.4, random_state=0)
    known = Constraints.sample(y, 20, random_state=0)
    model = Auto(2, random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_sparse_features(iris, fitted):
    X, y = iris
    known, dense = Constraints.sample(y, 30, random_state=0), fitted
    for data in (csr_array(X), Prepared(csr_array(X))):
        model = Auto(3, random_state=0).fit(data, constraints=known)
        # The messages of the pairs settle within 1e-3.
        assert_allclose(model.result_.probability, dense.result_.probability, atol=5e-3)
        assert_array_equal(model.labels_, dense.labels_)
        assert_array_equal(model.predict(csr_array(X)), model.labels_)
        assert_allclose(
            model.predict_proba(csr_array(X + 0.1)), dense.predict_proba(X + 0.1), atol=5e-3
        )
        assert_array_equal(model.predict(X), dense.predict(csr_array(X)))


def test_labels_that_contradict_a_pair_with_the_number_of_clusters_unknown(few_numbers):
    y = np.arange(60) % 5
    X = np.random.RandomState(0).normal(size=(60, 3)) + 6 * np.eye(5)[y][:, :3]
    labels = np.where(np.arange(60) < 10, y, -1)
    known = Constraints(60, cannot_link=[(0, 5)], labels=labels)
    assert Auto(random_state=0).fit(X, constraints=known).n_clusters_ >= 5
