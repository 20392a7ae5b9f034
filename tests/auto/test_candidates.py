"""The candidates: what each finds, and when it is used."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from canonical import in_canonical_order
from linkwise import GFHF, Affinity, Auto, ConflictError, Constraints, Prepared
from linkwise.auto import candidates
from linkwise.auto.candidates import CANDIDATES, UNSUPERVISED
from linkwise.auto.consensus import EPS, ERROR_RATE
from linkwise.auto.constraint_model import ConstraintModel
from linkwise.auto.evidence import Trial, without_held
from linkwise.auto.views import Views
from linkwise.constraints import feasible
from linkwise.methods import _propagation

BY_NAME = {one.name: one for one in CANDIDATES}


@pytest.fixture(scope="module")
def blobs():
    return in_canonical_order(*make_blobs(90, centers=3, random_state=3))


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return in_canonical_order(StandardScaler().fit_transform(X), y)


def view_of(X, k=3, **options):
    views = Views(Prepared(X, **options))
    return views.view(views.scalings[0] if not options else None, k)


def trial_of(view, known):
    """Return a trial with all samples and the unsupervised partitions of its view."""
    model = ConstraintModel.of(known, view.k)
    rows = np.arange(view.n_samples)
    design = view.design(rows, model.vertices)
    trial = Trial(view, known, model, rows, lambda: design)
    if not view.partitions:
        for one in CANDIDATES:
            if one.group == UNSUPERVISED and one.is_used(trial):
                view.partitions[one.name] = trial.found[one.name] = one.find(trial)
        trial.found.clear()
    return trial


def found_by(name, trial):
    if name not in trial.found:
        trial.found[name] = BY_NAME[name].find(trial)
    return trial.found[name]


@pytest.mark.parametrize("name", BY_NAME)
def test_every_candidate_finds_clear_clusters(blobs, name):
    X, y = blobs
    if name.startswith("latent classes"):  # they are of features with two values
        wrong = np.random.RandomState(0).uniform(size=(90, 18)) < 0.05
        X, y = in_canonical_order(((y[:, None] == np.arange(18) % 3) ^ wrong).astype(float), y)
    pairs = Constraints.sample(y, 60, random_state=0).table
    labels = np.where(np.arange(90) % 9 == 0, y, -1)
    trial = trial_of(view_of(X), Constraints.from_table(90, pairs, labels=labels))
    for one in CANDIDATES:  # a candidate may begin from those above it
        if trial.view.binary is None and one.name.startswith("latent classes"):
            continue
        found = found_by(one.name, trial)
        if one.name == name:
            break
    assert found.log_probability.shape == (90, 3)
    assert np.isfinite(found.log_probability).all()
    assert 0 < found.error_rate <= ERROR_RATE
    assert adjusted_rand_score(y, found.labels) == 1.0


def test_a_learner_learns_a_metric_from_pairs(iris):
    # k-means mixes two species; pairs show the direction that tells them apart.
    X, y = iris
    known = Constraints.sample(y, 75, random_state=0)
    trial = trial_of(view_of(X), known)
    start = trial.view.partitions["k-means"].labels
    found = found_by("linear, k-means", trial)
    free = ~known.constrained
    assert adjusted_rand_score(y[free], found.labels[free]) > 0.1 + adjusted_rand_score(
        y[free], start[free]
    )
    assert found.score > -20


def test_names_of_clusters_do_not_matter_to_a_learner(iris):
    X, y = iris
    trial = trial_of(view_of(X), Constraints.sample(y, 40, random_state=0))
    labels = trial.view.partitions["k-means"].labels
    order = np.array([2, 0, 1])
    one = trial.learn("one", ("linear", "graph"), labels)
    two = trial.learn("two", ("linear", "graph"), order[labels])
    assert_allclose(one.posterior, two.posterior[:, order], atol=1e-6)
    assert_allclose(one.score, two.score, rtol=1e-6)


def test_a_learner_continues_where_it_ended(iris):
    X, y = iris
    trial = trial_of(view_of(X), Constraints.sample(y, 40, random_state=0))
    begin = trial.view.partitions["k-means"].labels
    first = trial.learn("a", ("linear",), begin)
    again = trial.learn("a", ("linear",), begin)
    assert np.abs(first.posterior - again.posterior).mean() < 2e-3
    other = trial.learn("a", ("linear",), np.arange(150) % 3)  # not from there
    assert_array_equal(other.labels, trial.learn("b", ("linear",), np.arange(150) % 3).labels)


def test_the_better_learner_has_the_larger_vote(iris):
    X, y = iris
    trial = trial_of(view_of(X), Constraints.sample(y, 75, random_state=0))
    wrong = np.random.RandomState(0).permutation(y)
    trial.found["noise"] = trial.learn("noise", ("graph",), wrong)
    trial.found["truth"] = trial.learn("truth", ("linear", "graph"), y)
    assert trial.found["truth"].score > trial.found["noise"].score
    assert_array_equal(trial.first_learners.leader, trial.found["truth"].posterior)
    agreed = trial.first_learners.consensus.argmax(axis=1)
    assert adjusted_rand_score(y, agreed) > 0.85


def test_held_out_constraints_are_not_in_a_trial(blobs):
    X, y = blobs
    labels = np.where(np.arange(90) % 9 == 0, y, -1)
    pairs = Constraints.sample(y, 12, random_state=0)
    known = Constraints(90, pairs.must_link, pairs.cannot_link, labels=labels)
    held = np.arange(22) % 3 == 0
    given = without_held(known, held)
    assert given.n_pairs == 8
    assert_array_equal(np.flatnonzero(given.labels >= 0), np.flatnonzero(labels >= 0)[~held[12:]])
    trial = trial_of(view_of(X), known)
    part = trial.without(held, trial.design)
    assert part.model.n_constraints == (~held).sum()
    assert_array_equal(part.model.vertices, trial.model.vertices)
    assert part.found == {}


# Propagation ------------------------------------------------------------------------------------


def test_constraints_are_propagated_where_they_are_not_too_many(blobs, monkeypatch):
    X, y = blobs
    for data, options in ((X, {}), (Affinity().fit_transform(X), {"affinity": "precomputed"})):
        trial = trial_of(view_of(data, **options), Constraints.sample(y, 50, random_state=0))
        assert BY_NAME["e2cp"].is_used(trial)
        assert adjusted_rand_score(y, found_by("e2cp", trial).labels) == 1.0
    few = trial_of(trial.view, Constraints.sample(y, 40, random_state=0))
    assert not BY_NAME["e2cp"].is_used(few)
    for name, value in (
        ("PROPAGATION_SAMPLES", 89),
        ("PROPAGATION_FROM", trial.model.vertices.size - 1),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(candidates, name, value)
            assert not BY_NAME["e2cp"].is_used(trial)
    labels = Constraints.from_labels(np.where(np.arange(90) % 2 == 0, y, -1))
    labelled = trial_of(trial.view, labels)
    assert BY_NAME["e2cp"].is_used(labelled)
    monkeypatch.setattr(candidates, "PROPAGATION_LABELS", 44)
    assert not BY_NAME["e2cp"].is_used(labelled)


def test_no_column_is_propagated_again_in_a_fold(blobs, monkeypatch):
    X, y = blobs
    trial = trial_of(view_of(X), Constraints.sample(y, 50, random_state=0))
    part = trial.without(np.arange(50) % 3 == 0, trial.design)
    found_by("e2cp", trial)
    n_calls = []
    monkeypatch.setattr(_propagation, "resolvent_columns", n_calls.append)
    assert adjusted_rand_score(y, found_by("e2cp", part).labels) == 1.0
    assert not n_calls


# The constrained cut ----------------------------------------------------------------------------


@pytest.fixture
def cut(monkeypatch):
    """Return the candidate, used from few constraints on."""
    monkeypatch.setattr(candidates, "CUT_SHARE", 0.0)
    return BY_NAME["constrained cut"]._replace(least=1)


def test_the_cut_satisfies_constraints(blobs, cut):
    X, y = blobs
    random = np.random.RandomState(0).permutation(y)
    known = Constraints.sample(random, 20, random_state=0)
    trial = trial_of(view_of(X), known)
    assert cut.is_used(trial)
    assert known.n_violated(cut.find(trial).labels) == 0


def test_it_is_used_with_many_constraints_on_a_small_graph(blobs, monkeypatch):
    X, y = blobs
    one, view = BY_NAME["constrained cut"], view_of(X)
    many, few = (
        trial_of(view, Constraints.sample(y, m, random_state=0))
        for m in (int(90 * candidates.CUT_SHARE) + 1, int(90 * candidates.CUT_SHARE))
    )
    assert one.is_used(many)
    assert not one.is_used(few)
    monkeypatch.setattr(candidates, "CUT_ENTRIES", view.W.nnz - 1)
    assert not one.is_used(many)


def test_what_cannot_be_satisfied_is_not_cut(blobs, cut):
    view = view_of(blobs[0])
    triangle = Constraints(90, [(0, 1), (1, 2)], [(0, 2)])
    four = Constraints(90, [], [(i, j) for i in range(4) for j in range(i)])
    ring = Constraints(90, [(0, 1), (1, 2), (0, 3)], [(0, 4), (4, 5), (6, 7)])
    assert not cut.is_used(trial_of(view, triangle))
    assert not cut.is_used(trial_of(view, four))
    assert cut.is_used(trial_of(view, ring))


def test_too_many_labels_are_not_cut(blobs, cut, monkeypatch):
    X, y = blobs
    known = Constraints.from_labels(np.where(np.arange(90) % 9 == 0, y, -1))
    trial = trial_of(view_of(X), known)
    assert cut.is_used(trial)
    monkeypatch.setattr(feasible, "MAX_LABEL_PAIRS", 2)
    assert not cut.is_used(trial)


def test_a_dense_graph_is_not_cut(blobs, cut):
    X, y = blobs
    W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    view = view_of(W, affinity="precomputed")
    assert not cut.is_used(trial_of(view, Constraints.sample(y, 9, random_state=0)))


def test_a_cut_that_is_not_found_satisfies_nothing(blobs, cut, monkeypatch):
    X, y = blobs
    known = Constraints.sample(np.random.RandomState(0).permutation(y), 20, random_state=0)
    found = candidates.hard_labels

    def gives_up(task, penalty):
        if not task.constraints.is_empty:
            raise ConflictError("undecided")
        return found(task, penalty)

    monkeypatch.setattr(candidates, "hard_labels", gives_up)
    assert adjusted_rand_score(y, cut.find(trial_of(view_of(X), known)).labels) == 1.0


# A graph alone ----------------------------------------------------------------------------------


def test_on_a_graph_candidates_need_no_features(blobs):
    X, y = blobs
    view = view_of(Affinity().fit_transform(X), affinity="precomputed")
    trial = trial_of(view, Constraints.sample(y, 60, random_state=0))
    used = [one.name for one in CANDIDATES if one.is_used(trial)]
    assert not any("kernel" in name or "k-means" in name or "tree" in name for name in used)
    assert {one.group.name for one in CANDIDATES if one.name in used} == {
        *("unsupervised", "coarse cut", "learner", "propagation", "constrained cut"),
    }
    for name in used:
        assert adjusted_rand_score(y, found_by(name, trial).labels) == 1.0


# Label propagation -------------------------------------------------------------------------------


def test_label_propagation_is_the_mean_of_three_ways(blobs):
    """Zhu et al. 2003, equations 5 and 9; Zhou et al. 2003, with classes of equal mass."""
    X, y = blobs
    W = Affinity().fit_transform(X)
    labels = np.full(y.size, -1)
    labels[::6] = y[::6]
    labels[:12] = y[:12]  # more of the first class
    known = Constraints.from_labels(labels)
    view = view_of(W, affinity="precomputed")
    trial = trial_of(view, known)
    found = np.exp(found_by("label propagation", trial).log_probability) - EPS
    model = GFHF(3, affinity="precomputed").fit(W, constraints=known)
    A, labelled = W.toarray(), labels >= 0
    d, Y = A.sum(axis=1), np.where(labelled[:, None], np.eye(3)[labels], 0.0)
    S = A / np.sqrt(np.outer(d, d))

    def without_own(F):
        # A label says nothing about its own sample: that is added later, and may be doubted.
        return np.where(labelled[:, None], A @ F / d[:, None], F)

    harmonic = without_own(model.label_distributions_)
    spread = without_own(np.linalg.solve(np.eye(y.size) - 0.9 * S, Y))
    mass = (Y.sum(axis=0) + 1) / harmonic.sum(axis=0)
    expected = np.zeros_like(found)
    for F in (harmonic, harmonic * mass, spread / spread.sum(axis=0)):
        sharp = (F / F.sum(axis=1, keepdims=True)) ** 3
        expected += sharp / sharp.sum(axis=1, keepdims=True) / 3
    assert_allclose(found, expected, atol=1e-7)


def test_label_propagation_needs_a_graph_alone_and_two_labels(blobs):
    X, y = blobs
    W, one = Affinity().fit_transform(X), BY_NAME["label propagation"]
    labels = np.full(y.size, -1)
    labels[::6] = y[::6]
    every, single = (Constraints.from_labels(np.where(labels < k, labels, -1)) for k in (3, 1))
    graph = view_of(W, affinity="precomputed")
    assert one.is_used(trial_of(graph, every))
    assert not one.is_used(trial_of(graph, single))
    assert not one.is_used(trial_of(graph, Constraints.sample(y, 20, random_state=0)))
    assert not one.is_used(trial_of(view_of(X), every))
    # A fold may have lost all labels: it says nothing.
    none = trial_of(graph, Constraints.sample(y, 20, random_state=0))
    assert np.ptp(one.find(none).log_probability) == 0


def test_two_labels_and_many_pairs_on_a_graph(blobs):
    X, y = blobs
    pairs = Constraints.sample(y, 30, random_state=0).table
    labels = np.full(y.size, -1)
    labels[[0, np.flatnonzero(y != y[0])[0]]] = 0, 1
    known = Constraints.from_table(y.size, pairs, labels=labels)
    model = Auto(3, affinity="precomputed", random_state=0)
    model.fit(Affinity().fit_transform(X), constraints=known)
    assert adjusted_rand_score(y, model.labels_) == 1.0
