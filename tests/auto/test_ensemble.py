"""The ensemble: registered candidates, honest evidence, and the answer without constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from canonical import in_canonical_order
from linkwise import Auto, Constraints, Prepared
from linkwise.auto import ensemble, prior
from linkwise.auto.candidates import CANDIDATES, COARSE_CUT, LEARNER, UNSUPERVISED, Candidate
from linkwise.auto.consensus import ANCHOR, Group, from_labels


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return in_canonical_order(StandardScaler().fit_transform(X), y)


@pytest.fixture(scope="module")
def data(iris):
    """Return the same, prepared: what no constraint changes is found once."""
    return Prepared(iris[0])


# The registry -----------------------------------------------------------------------------------


def test_every_candidate_is_registered_once():
    names = [one.name for one in CANDIDATES]
    assert len(set(names)) == len(names)
    groups = {one.group for one in CANDIDATES} | {ANCHOR}
    assert len({group.name for group in groups}) == len(groups)
    lists = (ensemble.ALONE, ensemble.CHEAP, ensemble.OTHERS)
    assert sorted(one.name for part in lists for one in part) == sorted(names)
    assert all(one.group == UNSUPERVISED for one in CANDIDATES if one.is_preferred or one.optimism)
    assert all(one.least == 0 for one in ensemble.ALONE)
    assert all(one.least >= ensemble.FEW for one in ensemble.CHEAP + ensemble.OTHERS)


def by_name(model):
    return {one.name: one for one in model.report_.candidates}


@pytest.mark.parametrize(
    "group", [UNSUPERVISED, LEARNER, COARSE_CUT, Group("new", 0.2)], ids=lambda group: group.name
)
def test_a_candidate_is_added_by_one_entry(group, monkeypatch):
    # Only the new candidate knows a partition that the samples do not show.
    y = np.random.RandomState(0).permutation(np.arange(90) % 3)
    X, y = in_canonical_order(make_blobs(90, centers=3, random_state=3)[0], y)
    entry = Candidate("oracle", group, lambda trial: from_labels(y[trial.rows], 3), least=0)
    name = "ALONE" if group == UNSUPERVISED else "OTHERS"  # as if the registry had it
    monkeypatch.setattr(ensemble, name, [*getattr(ensemble, name), entry])
    monkeypatch.setitem(prior.BY_NAME, "oracle", entry)
    known = Constraints.sample(y, 40, random_state=0)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert by_name(model)["oracle"].group == group.name
    assert by_name(model)["oracle"].weight > 0.4
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_a_candidate_is_used_from_its_least_number_of_constraints_on(iris, monkeypatch):
    X, y = iris
    entry = Candidate("late", LEARNER, lambda trial: from_labels(y[trial.rows], 3), least=12)
    never = Candidate("never", LEARNER, lambda trial: 1 / 0, applies=lambda trial: False)
    monkeypatch.setattr(ensemble, "OTHERS", [entry, never])
    for m, is_used in ((11, False), (12, True)):
        known = Constraints.sample(y, m, random_state=0)
        model = Auto(3, random_state=0).fit(X, constraints=known)
        assert ("late" in by_name(model)) == is_used
        assert "never" not in by_name(model)


# Evidence ---------------------------------------------------------------------------------------


@pytest.fixture
def trace(monkeypatch):
    """Return a function that fits, and returns the folds and what was found in each of them."""

    def fit(X, known):
        folds, found = [], []

        def make(model, number, folds_of=ensemble.folds_of):
            folds.extend(folds_of(model, number))
            return folds

        def find(self, trial, used, find_in=ensemble.Ensemble._find_in):
            find_in(self, trial, used)
            if trial.model.n_constraints and trial not in found:
                found.append(trial)

        with monkeypatch.context() as patch:
            patch.setattr(ensemble, "folds_of", make)
            patch.setattr(ensemble.Ensemble, "_find_in", find)
            Auto(3, random_state=0).fit(X, constraints=known)
        return folds, found

    return fit


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_nothing_is_known_of_what_is_held_out(iris, trace, kind):
    X, y = iris
    if kind == "labels":
        known = Constraints.from_labels(np.where(np.arange(150) % 5 == 0, y, -1))
    else:
        known = Constraints.sample(y, 60, random_state=0)
    folds, straight = trace(X, known)
    held = folds[0].held
    if kind == "labels":
        labels = known.labels.copy()
        at = np.flatnonzero(labels >= 0)[held]
        labels[at] = (labels[at] + 1) % 3
        other = Constraints.from_labels(labels)
    else:
        # Weaker, not turned round: the order of pairs, and so the folds, must not change.
        must, cannot = np.split(np.where(held, 0.3, 1.0), [len(known.must_link)])
        other = replace(known, must_link_belief=must, cannot_link_belief=cannot)
    others, turned = trace(X, other)
    assert_array_equal(others[0].held, held)
    assert len(straight) == len(turned) == len(folds) + 1
    one, two = (trials[1].found for trials in (straight, turned))  # the whole comes first
    assert one.keys() == two.keys()
    assert len(one) > 10
    for name in one:
        assert_array_equal(one[name].log_probability, two[name].log_probability)
        assert one[name].error_rate == two[name].error_rate
    one, two = (trials[2].found for trials in (straight, turned))
    # Where they are given, they are used.
    assert any((one[name].log_probability != two[name].log_probability).any() for name in one)


def test_the_score_is_not_flattered():
    # Random pairs can be learnt by heart; those held out are as uncertain as before.
    X, y = make_blobs(120, centers=3, cluster_std=2.0, random_state=3)
    known = Constraints.sample(np.random.RandomState(3).permutation(y), 60, random_state=3)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    share = len(known.must_link) / 60
    chance = share * np.log(share) + (1 - share) * np.log(1 - share)
    assert model.report_.score < chance + 0.05


def test_weights_add_up_to_one(iris, data):
    y = iris[1]
    for m in (0, 2, 6, 40):
        known = Constraints.sample(y, m, random_state=0)
        found = Auto(3, random_state=0).fit(data, constraints=known).report_.candidates
        assert_allclose(sum(one.weight for one in found), 1.0)
        assert all(np.isnan(one.score) for one in found) == (m == 0)


# The anchor -------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8])
def test_few_pairs_that_agree_with_the_answer_do_not_change_it(data, m):
    without = Auto(3, random_state=0).fit(data).labels_
    for seed in range(3):
        known = Constraints.sample(without, m, random_state=seed)
        model = Auto(3, random_state=0).fit(data, constraints=known)
        assert adjusted_rand_score(without, model.labels_) > 0.97
        assert model.report_.changed < 0.02


def test_there_is_an_anchor_from_the_first_constraint_on(iris, data):
    for m in (0, 1, 2, 10):
        known = Constraints.sample(iris[1], m, random_state=0)
        found = by_name(Auto(3, random_state=0).fit(data, constraints=known))
        assert ("without constraints" in found) == (m > 0)


def four_squares(n=160):
    """Return four squares, and for each the class of its two diagonals."""
    corner = np.arange(n) % 4
    X = np.random.RandomState(0).uniform(size=(n, 2)) + 1.6 * np.column_stack(divmod(corner, 2))
    return X, corner, (corner // 2) ^ (corner % 2)


def determines(known, corner):
    """Whether pairs connect all squares."""
    joined = np.eye(4, dtype=bool)
    for i, j in corner[np.vstack((known.must_link, known.cannot_link))]:
        joined[i, j] = joined[j, i] = True
    return (np.linalg.matrix_power(joined.astype(int), 4) > 0).all()


@pytest.mark.parametrize("m", [8, 16])
def test_pairs_decide_which_squares_belong_together(m):
    X, corner, y = four_squares()
    data, right = Prepared(X), []
    for seed in range(10 if m == 8 else 4):
        known = Constraints.sample(y, m, random_state=seed)
        if determines(known, corner):
            labels = Auto(2, random_state=0).fit(data, constraints=known).labels_
            right.append(adjusted_rand_score(y, labels) == 1.0)
    assert len(right) >= 3
    assert all(right), right


def test_right_pairs_are_not_overruled_by_candidates_that_misjudge_samples():
    # Two clusters that overlap: one sample of six is on the wrong side.
    centers, n_violated, noise = [[0.0, 0.0], [4.0, 0.0]], 0, []
    for seed in range(8):
        X, y = make_blobs(80, centers=centers, cluster_std=2.0, random_state=seed)
        known = Constraints.sample(y, 60, random_state=seed)
        model = Auto(2, random_state=0).fit(X, constraints=known)
        n_violated += known.n_violated(model.labels_)
        noise.append(model.noise_)
    assert n_violated <= 1  # of 480; 5 if candidates count for the same whatever the pairs say
    assert np.mean(noise) < 0.01
