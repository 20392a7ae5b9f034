"""Auto: the consensus of experts, its promises and its corners."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, load_wine, make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, ConflictError, Constraints, NCut, Prepared
from linkwise.auto import estimator as module
from linkwise.auto import places, pool, survey
from linkwise.auto.bases import Bases, build_bases
from linkwise.auto.estimator import Auto, auto
from linkwise.constraints import feasible
from linkwise.datasets import make_xor
from linkwise.exceptions import ConvergenceWarning


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=3, cluster_std=1.0, random_state=3)


@pytest.fixture(scope="module")
def told():
    """Return a model of iris with 30 pairs, for tests that only look at it."""
    X, y = load_iris(return_X_y=True)
    known = Constraints.sample(y, 30, random_state=0)
    return Auto(3, random_state=0).fit(StandardScaler().fit_transform(X), constraints=known)


@pytest.fixture
def few_numbers(monkeypatch):
    """Consider at most six clusters."""
    monkeypatch.setattr("linkwise.auto.clusters.MOST", 6)


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
    told, wrong = flipped(Constraints.sample(y, 180, random_state=0), 0.15, 0)
    model = Auto(3, random_state=0).fit(X, constraints=told)
    is_wrong = [suspect.samples in wrong for suspect in model.suspects_]
    probability = [suspect.probability for suspect in model.suspects_]
    assert sum(is_wrong) == len(wrong)
    assert roc_auc_score(is_wrong, probability) > 0.95
    assert abs(model.noise_ - len(wrong) / told.n_pairs) < 0.05
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


def test_labels_and_pairs_together(iris):
    X, y = iris
    partial = np.full(150, -1)
    partial[::15] = y[::15]
    pairs = Constraints.sample(y, 30, random_state=1)
    both = Constraints(150, pairs.must_link, pairs.cannot_link, labels=partial)
    model = Auto(3, random_state=0).fit(X, constraints=both)
    assert ari(y, model.labels_) > 0.8
    assert {suspect.kind for suspect in model.suspects_} == {"must-link", "cannot-link", "label"}


# Hard -------------------------------------------------------------------------------------------


def test_hard_pairs_hold_without_exception():
    X, y = make_blobs(150, centers=3, cluster_std=3.0, random_state=3)
    told, _ = flipped(Constraints.sample(y, 60, random_state=0), 0.1, 0)
    soft = Auto(3, random_state=0).fit(X, constraints=told)
    hard = Auto(3, hard=True, random_state=0).fit(X, constraints=told)
    assert told.n_violated(soft.labels_) > 0
    assert told.n_violated(hard.labels_) == 0
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
        X, y = make_blobs(150, centers=k, cluster_std=0.5, center_box=(-15, 15), random_state=1)
        assert Auto(random_state=0).fit(X).n_clusters_ == k
        monkeypatch.setattr("linkwise.auto.clusters.MOST", k + 2)
        known = Constraints.sample(y, 60, random_state=0)
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
    assert_allclose(new.sum(axis=1), 1.0, atol=1e-3)
    copies = (X[1::2, None] == X[None, ::2]).all(axis=2).any(axis=1)
    assert_array_equal(model.predict(X[1::2])[~copies], new.argmax(axis=1)[~copies])
    assert ari(y[1::2], model.predict(X[1::2])) > 0.8
    one_by_one = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(1, 30, 2)])
    assert_allclose(one_by_one, new[:15], atol=1e-9)


def test_spread_pairs_are_heard(iris, monkeypatch):
    X, y = iris
    known = Constraints.sample(y, 15, random_state=0)

    def is_heard(known):
        model = Auto(3, random_state=0).fit(X, constraints=known)
        return "e2cp, repeated" in {voice.start for voice in model.report_.voices}

    assert is_heard(known)
    assert not is_heard(None)
    monkeypatch.setattr(places, "SPREAD_FROM", 10)
    assert not is_heard(known)
    W = Affinity().fit_transform(X)
    monkeypatch.undo()
    graph = Auto(3, affinity="precomputed", random_state=0).fit(W, constraints=known)
    assert "e2cp, repeated" in {voice.start for voice in graph.report_.voices}


def is_cut(model):
    return "cut, repeated" in {voice.start for voice in model.report_.voices}


def test_a_cut_that_obeys_is_heard(iris, monkeypatch):
    X, y = iris
    known = Constraints.sample(y, 15, random_state=0)
    W = Affinity().fit_transform(X)
    assert is_cut(Auto(3, random_state=0).fit(X, constraints=known))
    assert is_cut(Auto(3, affinity="precomputed", random_state=0).fit(W, constraints=known))
    assert not is_cut(Auto(3, random_state=0).fit(X))
    monkeypatch.setattr(places, "CUT_ENTRIES", W.nnz - 1)
    assert not is_cut(Auto(3, random_state=0).fit(X, constraints=known))


def test_the_cut_obeys(blobs):
    X, y = blobs
    bases = build_bases(X, Affinity().fit_transform(X), 3, fine=True)
    random = np.random.RandomState(0).permutation(y)
    known = Constraints.sample(random, 20, random_state=0)
    graph = places.to_cut(bases, known)
    assert known.n_violated(places.low_cut(graph, known, 0)) == 0
    assert ari(y, places.low_cut(graph, Constraints(90), 0)) == 1.0


def test_what_cannot_be_obeyed_is_not_cut(blobs):
    X, _ = blobs
    W = Affinity().fit_transform(X)
    bases = build_bases(X, W, 3, fine=True)
    triangle = Constraints(90, [(0, 1), (1, 2)], [(0, 2)])
    four = Constraints(90, [], [(i, j) for i in range(4) for j in range(i)])
    assert places.to_cut(bases, triangle) is None
    assert places.to_cut(bases, four) is None
    known = Constraints(90, [(0, 1), (1, 2), (0, 3)], [(0, 2), (4, 5), (6, 7)])
    assert not is_cut(Auto(3, random_state=0).fit(X, constraints=known))


def test_too_many_labels_are_not_cut(blobs, monkeypatch):
    X, y = blobs
    known = Constraints.from_labels(np.where(np.arange(90) % 9 == 0, y, -1))
    bases = build_bases(X, Affinity().fit_transform(X), 3, fine=True)
    assert places.to_cut(bases, known) is not None
    monkeypatch.setattr(feasible, "MAX_LABEL_PAIRS", 2)
    assert places.to_cut(bases, known) is None


def test_a_dense_graph_is_not_cut(blobs):
    X, y = blobs
    W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    known = Constraints.sample(y, 9, random_state=0)
    assert places.to_cut(build_bases(None, W, 3, fine=False), known) is None


def starts_and_opinions(X, known, monkeypatch):
    """Return what is held back in each rehearsal, its starts and what is said in it."""
    seen, rehearse = [], pool._rehearse

    def spy(task, trial, *args, **options):
        found = rehearse(task, trial, *args, **options)
        logits = [one.logits for party in found.parties for one in party]
        seen.append((trial.held, [start.labels for start in trial.starts], logits))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(pool, "_rehearse", spy)
        Auto(3, random_state=0).fit(X, constraints=known)
    return seen


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_nothing_is_known_of_what_is_held_back(iris, monkeypatch, kind):
    X, y = iris
    if kind == "labels":
        known = Constraints.from_labels(np.where(np.arange(150) % 5 == 0, y, -1))
    else:
        known = Constraints.sample(y, 60, random_state=0)
    straight = starts_and_opinions(X, known, monkeypatch)
    held = straight[0][0]
    if kind == "labels":
        labels = known.labels.copy()
        at = np.flatnonzero(labels >= 0)[held]
        labels[at] = (labels[at] + 1) % 3
        other = Constraints.from_labels(labels)
    else:
        # Weaker, not turned round: the order of pairs, and so the folds, must not change.
        must, cannot = np.split(np.where(held, 0.3, 1.0), [len(known.must_link)])
        other = replace(known, must_link_belief=must, cannot_link_belief=cannot)
    turned = starts_and_opinions(X, other, monkeypatch)
    assert_array_equal(turned[0][0], held)
    for one, two in zip(straight[0][1], turned[0][1], strict=True):
        assert_array_equal(one, two)
    for one, two in zip(straight[0][2], turned[0][2], strict=True):
        assert_array_equal(one, two)
    differs = [(one != two).any() for one, two in zip(straight[1][2], turned[1][2], strict=True)]
    assert any(differs)  # where they are told, they are listened to


def test_a_cut_that_is_not_found_obeys_nothing(blobs, monkeypatch):
    X, y = blobs
    known = Constraints.sample(np.random.RandomState(0).permutation(y), 20, random_state=0)
    graph = places.to_cut(build_bases(X, Affinity().fit_transform(X), 3, fine=True), known)
    found = places.hard_labels

    def gives_up(search, price):
        if not search.constraints.is_empty:
            raise ConflictError("undecided")
        return found(search, price)

    monkeypatch.setattr(places, "hard_labels", gives_up)
    assert ari(y, places.low_cut(graph, known, 0)) == 1.0


def test_interrupting_a_cut_is_no_answer(iris, monkeypatch):
    X, y = iris
    found = places.hard_labels

    def stops(search, price):
        return found(search, price)._replace(interrupted=True)

    monkeypatch.setattr(places, "hard_labels", stops)
    with pytest.raises(KeyboardInterrupt):
        Auto(3, random_state=0).fit(X, constraints=Constraints.sample(y, 9, random_state=0))


def test_the_score_is_not_flattered():
    # Random pairs can be learnt by heart; those held back are as uncertain as before.
    X, y = make_blobs(120, centers=3, cluster_std=2.0, random_state=3)
    known = Constraints.sample(np.random.RandomState(3).permutation(y), 60, random_state=3)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    share = len(known.must_link) / 60
    chance = share * np.log(share) + (1 - share) * np.log(1 - share)
    assert model.report_.score < chance + 0.05


def test_interrupting_the_search_for_a_number_of_clusters(iris, monkeypatch):
    X, y = iris
    calls = []

    def stops(task, plan, learn=pool.learn):
        calls.append(plan)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return learn(task, plan)

    monkeypatch.setattr(pool, "learn", stops)
    with pytest.raises(KeyboardInterrupt):
        Auto(random_state=0).fit(X, constraints=Constraints.sample(y, 20, random_state=0))
    assert len(calls) == 20


def test_one_constraint_cannot_be_held_back(iris):
    X, _ = iris
    model = Auto(3, random_state=0).fit(X, constraints=Constraints(150, must_link=[(0, 1)]))
    assert model.report_.n_held_back == 0
    assert "1 constraint, 0 violated" in str(model.report_)
    assert "a constraint given the others" in str(model.report_)


def test_labels_that_stand_for_too_many_pairs_are_not_spread(iris, monkeypatch):
    X, y = iris
    partial = np.where(np.arange(150) % 3 == 0, y, -1)
    monkeypatch.setattr(places, "SPREAD_LABELS", 49)
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(partial))
    assert not any("e2cp" in voice.start for voice in model.report_.voices)
    monkeypatch.undo()
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(partial))
    assert any("e2cp" in voice.start for voice in model.report_.voices)


def test_labels_are_held_back_too(iris):
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


def test_a_graph_alone():
    X, y = make_moons(150, noise=0.08, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 40, random_state=0)
    model = Auto(2, affinity="precomputed", random_state=0).fit(W, constraints=known)
    assert ari(y, model.labels_) > 0.9
    assert {name for voice in model.report_.voices for name in voice.bases} == {"smooth", "graph"}
    assert model.predict_proba(W).shape == (150, 2)


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


# How it works -----------------------------------------------------------------------------------


def test_function_and_estimator_agree(iris, told):
    X, y = iris
    known = Constraints.sample(y, 30, random_state=0)
    result = auto(X, known, 3, W=Affinity().fit_transform(X), random_state=0)
    assert_array_equal(result.labels, told.labels_)
    assert_allclose(result.probability, told.result_.probability)


def test_threads_change_nothing(iris):
    X, y = iris
    known = Constraints.sample(y, 9, random_state=0)
    one, two = (Auto(3, random_state=0, n_jobs=n).fit(X, constraints=known) for n in (1, 2))
    assert_array_equal(one.result_.probability, two.result_.probability)


def test_prepared_data_are_described_once(iris, told):
    X, y = iris
    first, second = (Constraints.sample(y, m, random_state=0) for m in (9, 30))
    data = Prepared(X)
    Auto(3, random_state=0).fit(data, constraints=first)
    kept = data.attached(Bases)
    again = Auto(3, random_state=0).fit(data, constraints=second)
    assert data.attached(Bases) is kept
    assert_array_equal(again.result_.probability, told.result_.probability)
    assert_array_equal(again.predict_proba(X[:9] + 0.1), told.predict_proba(X[:9] + 0.1))
    other = Auto(2, random_state=0).fit(data, constraints=first)
    plain = Auto(2, random_state=0).fit(X, constraints=first)
    assert_array_equal(other.result_.probability, plain.result_.probability)


def test_bases_for_more_clusters_begin_with_those_for_fewer(iris, told):
    X, y = iris
    known = Constraints.sample(y, 30, random_state=0)
    data = Prepared(X)
    Auto(12, random_state=0).fit(data)
    shared = Auto(3, random_state=0).fit(data, constraints=known)
    assert shared.bases_.graphs["graph"].values.size == 30
    assert_array_equal(shared.labels_, told.labels_)
    assert_allclose(shared.result_.probability, told.result_.probability, atol=1e-3)


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


def test_a_number_of_clusters_that_is_a_guess_is_called_so(iris):
    X, _ = iris
    report = Auto(random_state=0).fit(X).report_
    assert report.n_clusters_probability[report.n_clusters] < 0.5
    assert "a guess" in report.summary()[0]
    assert "a guess" not in str(Auto(3, random_state=0).fit(X).report_)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_equal_samples_are_told(form):
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


def test_labels_too_many_to_learn_from_are_heard_in_the_end(monkeypatch):
    X, y = make_blobs(400, centers=3, cluster_std=3.0, random_state=3)
    labels = y.copy()
    labels[::4] = -1
    wrong = 13
    labels[wrong] = (y[wrong] + 1) % 3
    known = Constraints.from_labels(labels)
    whole = Auto(3, random_state=0).fit(X, constraints=known)
    monkeypatch.setattr(survey, "LABELLED_ROWS", 60)
    monkeypatch.setattr(survey, "LABELLED_LEAST", 10)
    heard = survey.heard_constraints(known, 0)
    assert np.sum(heard.labels >= 0) == 60
    assert min(np.bincount(heard.labels[heard.labels >= 0])) >= 10
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert model.report_.n_constraints == len(model.suspects_) == 300
    assert ari(model.labels_[::4], y[::4]) > ari(whole.labels_[::4], y[::4]) - 0.1
    given = labels >= 0
    assert (model.labels_ == labels)[given].mean() > (y == labels)[given].mean() - 0.05
    assert wrong in [suspect.samples[0] for suspect in model.suspects_[:30]]
    assert_allclose(model.result_.probability.sum(axis=1), 1.0)


def test_prepared_graphs_and_affinities(iris):
    X, y = iris
    known = Constraints.sample(y, 9, random_state=0)
    W = Affinity(8).fit_transform(X)
    graph = Auto(3, random_state=0).fit(Prepared(W, affinity="precomputed"), constraints=known)
    plain = Auto(3, affinity="precomputed", random_state=0).fit(W, constraints=known)
    assert_array_equal(graph.result_.probability, plain.result_.probability)
    assert_array_equal(graph.predict(W[:5]), plain.predict(W[:5]))
    data = Prepared(W, affinity="precomputed")
    for k in (2, 5):  # what is kept for fewer clusters is not used for more
        kept = Auto(k, random_state=0).fit(data, constraints=known)
        plain = Auto(k, affinity="precomputed", random_state=0).fit(W, constraints=known)
        assert_array_equal(kept.result_.probability, plain.result_.probability)
    own = Auto(3, random_state=0).fit(Prepared(X, affinity=Affinity(5)), constraints=known)
    assert set(own.bases_.names) == {"linear", "kernel", "graph"}


def test_experts_learn_from_a_sample_of_many(monkeypatch):
    X, y = make_blobs(600, centers=3, cluster_std=0.8, random_state=3)
    known = Constraints.sample(y, 60, random_state=0)
    whole = Auto(3, random_state=0).fit(X, constraints=known)
    monkeypatch.setattr(survey, "FREE_ROWS", 100)
    monkeypatch.setattr(module, "BLOCK", 70)
    sampled = Auto(3, random_state=0).fit(X, constraints=known)
    assert ari(whole.labels_, sampled.labels_) > 0.97
    assert_allclose(sampled.result_.probability.sum(axis=1), 1.0, atol=1e-3)


def test_an_interrupt_leaves_the_best_so_far(iris, monkeypatch):
    X, y = iris
    known = Constraints.sample(y, 30, random_state=0)
    learn, calls = pool.learn, []

    def stops(task, plan):
        calls.append(task.is_told)  # experts that are told nothing come first
        if sum(calls) == 4:
            raise KeyboardInterrupt
        return learn(task, plan)

    monkeypatch.setattr(pool, "learn", stops)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = Auto(3, random_state=0).fit(X, constraints=known)
    assert not model.result_.converged
    told = [v for v in model.report_.voices if ", " not in v.start or "merged" in v.start]
    assert len(told) == 3
    assert ari(y, model.labels_) > 0.5


def test_the_report_can_be_read(iris, capsys):
    X, y = iris
    known = Constraints.sample(y, 30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Auto(3, random_state=0, verbose=1).fit(X, constraints=known)
    lines = capsys.readouterr().out
    assert "[Auto] k-means, linear: log-likelihood of a constraint -0." in lines
    assert "[Auto] heard: experts that learn " in lines
    text = str(model.report_)
    assert text.startswith("3 clusters (given)")
    assert "30 constraints, " in text
    assert "those told help to predict those held back" in text
    assert "heard: experts that learn " in text
    assert set(model.report_.shares) == {
        *("experts that learn", "experts told nothing"),
        *("e2cp", "cut", "spectral"),
    }
    assert_allclose(sum(model.report_.shares.values()), 1.0)
    assert "experts heard, the 6 heaviest of " in text
    assert_allclose(sum(voice.weight for voice in model.report_.voices), 1.0)


def test_noise_is_what_the_suspects_say(iris):
    X, y = iris
    known, _ = flipped(Constraints.sample(y, 90, random_state=0), 0.1, 0)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert_allclose(model.noise_, np.mean([one.probability for one in model.suspects_]))
    assert f"about {model.noise_:.1%} wrong" in str(model.report_)


def test_the_report_says_whether_constraints_help(iris):
    X, y = iris
    told = Auto(3, random_state=0).fit(X, constraints=Constraints.sample(y, 9, random_state=0))
    report = told.report_
    helps = replace(report, score=-0.2, score_without=-0.4)
    assert helps.summary()[-1] == "those told help to predict those held back"
    idle = replace(report, score=-0.2, score_without=-0.21)
    assert idle.summary()[-1] == "those told hardly help to predict those held back"
    coin = replace(report, score=-0.69, score_without=-1.2)
    assert coin.summary()[-1].startswith("nothing predicts them better than a coin")
    assert len(replace(report, n_held_back=0).summary()) == 3


def test_order_of_samples_does_not_matter(iris):
    X, y = iris
    known = Constraints.sample(y, 75, random_state=0)
    order = np.random.RandomState(0).permutation(150)
    place = np.argsort(order)
    there = Constraints(150, place[known.must_link], place[known.cannot_link])
    straight = Auto(3, random_state=0).fit(X, constraints=known).labels_
    shuffled = Auto(3, random_state=0).fit(X[order], constraints=there).labels_
    assert ari(straight[order], shuffled) > 0.95


def test_a_cluster_in_two_distant_places():
    X, y = make_xor(60, spread=0.4, random_state=0)
    known = Constraints.sample(y, 20, random_state=0)
    model = Auto(2, random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_probabilities_of_new_samples_add_up_to_one(iris):
    X, y = iris
    known = Constraints.sample(y[::2], 20, random_state=0)
    model = Auto(3, random_state=0).fit(X[::2], constraints=known)
    assert_allclose(model.predict_proba(X[1::2]).sum(axis=1), 1.0, rtol=1e-12)


def test_the_report_counts_labels_and_pairs(iris):
    X, y = iris
    wrong = y.copy()
    wrong[::25] = (wrong[::25] + 1) % 3
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(wrong))
    assert model.report_.n_constraints == 150
    assert 0 < model.report_.n_violated < 20
    assert "3 clusters (given)" in str(model.report_)
    assert "experts heard, the 6 heaviest" in str(model.report_)


def test_sparse_features(iris, told):
    X, y = iris
    known, dense = Constraints.sample(y, 30, random_state=0), told
    for data in (csr_array(X), Prepared(csr_array(X))):
        model = Auto(3, random_state=0).fit(data, constraints=known)
        assert_allclose(model.result_.probability, dense.result_.probability, atol=1e-3)
        assert_array_equal(model.predict(csr_array(X)), model.labels_)
        assert_allclose(
            model.predict_proba(csr_array(X + 0.1)), dense.predict_proba(X + 0.1), atol=1e-3
        )
        assert_array_equal(model.predict(X), dense.predict(csr_array(X)))


def test_contradictions_are_found_before_the_number_of_clusters(iris, monkeypatch):
    monkeypatch.setattr(module, "build_bases", None)  # never reached
    known = Constraints(150, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    with pytest.raises(ConflictError, match="0 - 1 - 2"):
        Auto(hard=True).fit(iris[0], constraints=known)


def test_labels_that_contradict_a_pair_with_the_number_of_clusters_unknown(few_numbers):
    y = np.arange(60) % 5
    X = np.random.RandomState(0).normal(size=(60, 3)) + 6 * np.eye(5)[y][:, :3]
    labels = np.where(np.arange(60) < 10, y, -1)
    known = Constraints(60, cannot_link=[(0, 5)], labels=labels)
    assert Auto(random_state=0).fit(X, constraints=known).n_clusters_ >= 5
