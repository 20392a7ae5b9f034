"""Folds of an earlier fit: a constraint more joins them, and no fold is found again at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Auto, Constraints, Prepared
from linkwise.auto import ensemble
from linkwise.auto.constraint_model import ConstraintModel
from linkwise.auto.evidence import (
    LEAVE_ONE_OUT,
    STALE_SHARE,
    FoldCache,
    constraint_keys,
    n_folds_for,
)
from linkwise.auto.views import Views


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def some_pairs(y, m):
    """Return the first `m` of the same sequence of pairs; each as a pair and its kind."""
    rng = np.random.RandomState(0)
    pairs = np.array([np.sort(rng.choice(y.size, 2, replace=False)) for _ in range(200)])
    pairs = pairs[np.sort(np.unique(pairs, axis=0, return_index=True)[1])][:m]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Constraints(y.size, pairs[same], pairs[~same])


def folds_by_key(cache, known, seed=0):
    model = ConstraintModel.of(known, 3)
    return dict(zip(constraint_keys(model), cache.begin(model, seed).tolist(), strict=True))


# Which fold -------------------------------------------------------------------------------------


def test_a_key_says_what_a_constraint_says():
    known = Constraints(
        6, [(4, 1)], [(0, 2)], labels=[-1, -1, -1, 7, -1, 3], must_link_belief=[0.5]
    )
    keys = constraint_keys(ConstraintModel.of(known, 3))
    assert keys == [(1, 4, 1, 0.5), (0, 2, 0, 1.0), (3, -1, 1, 1.0), (5, -1, 0, 1.0)]


def test_new_constraints_join_the_smallest_folds(iris):
    cache = FoldCache()
    before = folds_by_key(cache, some_pairs(iris[1], 28))
    after = folds_by_key(cache, some_pairs(iris[1], 30))
    assert before.items() <= after.items()
    sizes = np.bincount(list(after.values()))
    assert sizes.size == n_folds_for(28)
    assert sizes.max() - sizes.min() <= 1


def test_what_contradicts_a_pair_goes_into_its_fold(iris):
    known = some_pairs(iris[1], 30)
    cache = FoldCache()
    before = folds_by_key(cache, known)
    i, j = known.must_link[3]
    cannot = [*known.cannot_link.tolist(), (i, j)]
    belief = [1.0] * len(known.cannot_link) + [0.9]
    other = Constraints(150, known.must_link, cannot, cannot_link_belief=belief)
    after = folds_by_key(cache, other)
    assert after[i, j, 0, 0.9] == before[i, j, 1, 1.0]


def test_folds_are_made_anew(iris):
    y = iris[1]

    def is_continued(first, second, seed=0):
        cache = FoldCache()
        before = folds_by_key(cache, first)
        after = folds_by_key(cache, second, seed)
        return before.items() <= after.items()

    thirty = some_pairs(y, 30)
    assert is_continued(thirty, thirty)
    assert is_continued(thirty, some_pairs(y, 33))
    assert not is_continued(thirty, some_pairs(y, 60))  # too many new ones
    assert not is_continued(thirty, thirty, seed=1)
    fewer = some_pairs(y, 29)
    fresh = folds_by_key(FoldCache(), fewer)
    cache = FoldCache()
    folds_by_key(cache, thirty)
    assert folds_by_key(cache, fewer) == fresh  # one was withdrawn
    weaker = thirty.with_belief(0.5)
    fresh = folds_by_key(FoldCache(), weaker)
    cache = FoldCache()
    folds_by_key(cache, thirty)
    assert folds_by_key(cache, weaker) == fresh  # all say something else
    few = some_pairs(y, LEAVE_ONE_OUT)
    cache = FoldCache()
    folds_by_key(cache, few)
    more = folds_by_key(cache, some_pairs(y, LEAVE_ONE_OUT + 1))
    assert len(set(more.values())) == n_folds_for(LEAVE_ONE_OUT + 1)


# What is found again ----------------------------------------------------------------------------


@pytest.fixture
def found(monkeypatch):
    """Return a list of the trials in which a candidate with constraints was found."""
    trials = []

    def record(find, trial):
        trials.append(trial)
        return find(trial)

    for name in ("CHEAP", "OTHERS"):
        some = getattr(ensemble, name)[:5]
        wrapped = [one._replace(find=partial(record, one.find)) for one in some]
        monkeypatch.setattr(ensemble, name, wrapped)
    return trials


def numbers_of_constraints(trials):
    return {trial.model.n_constraints for trial in trials}


def test_with_one_pair_more_no_fold_is_found_again(iris, found):
    X, y = iris
    data = Prepared(X)
    Auto(3, random_state=0).fit(data, constraints=some_pairs(y, 30))
    assert len({id(trial) for trial in found}) == 1 + n_folds_for(30)
    found.clear()
    model = Auto(3, random_state=0).fit(data, constraints=some_pairs(y, 31))
    assert numbers_of_constraints(found) == {31}
    assert model.report_.n_held_back == 31
    fresh = Auto(3, random_state=0).fit(X, constraints=some_pairs(y, 31))
    assert adjusted_rand_score(fresh.labels_, model.labels_) > 0.9
    assert abs(fresh.report_.score - model.report_.score) < 0.1
    found.clear()
    Auto(3, random_state=1).fit(data, constraints=some_pairs(y, 31))
    assert len({id(trial) for trial in found}) == 1 + n_folds_for(31)


def test_stale_folds_are_found_again_one_at_a_time(iris, found):
    X, y = iris
    data = Prepared(X)
    Auto(3, random_state=0).fit(data, constraints=some_pairs(y, 20))
    redone = []
    for m in range(21, 28):
        found.clear()
        Auto(3, random_state=0).fit(data, constraints=some_pairs(y, m))
        folds = {id(trial): trial for trial in found if trial.model.n_constraints < m}
        redone.append(len(folds))
        for trial in folds.values():  # it knows all that is not held out
            assert trial.model.n_constraints >= m - 6
    assert max(redone[:4]) == 1  # until others lack a fifth
    assert redone[0] == 0
    assert sum(redone) >= 1
    assert STALE_SHARE <= 0.2


def test_what_is_held_out_was_never_seen(iris, found):
    X, y = iris
    data = Prepared(X)
    for m in (30, 31, 32, 33):
        found.clear()
        Auto(3, random_state=0).fit(data, constraints=some_pairs(y, m))
    cache = data.attached[Views].folds[3]
    folds = cache._fold
    trials = next(iter(cache._trials.values()))
    for number, trial in enumerate(trials):
        seen = set(constraint_keys(trial.model))
        held = {key for key, fold in folds.items() if fold == number}
        assert not seen & held
        assert seen <= folds.keys()


@pytest.fixture
def kept(iris, monkeypatch):
    """Return the trials of folds that learnt from few samples and described all."""
    monkeypatch.setattr(ensemble, "FOLD_ROWS", 20)
    data = Prepared(iris[0])
    Auto(3, random_state=0).fit(data, constraints=some_pairs(iris[1], 12))
    return next(iter(data.attached[Views].folds[3]._trials.values()))


def test_no_description_of_all_samples_is_kept_after_a_fit(kept):
    assert len(kept) == n_folds_for(12)
    assert not any(trial.described for trial in kept)


def test_what_was_described_is_not_described_again(kept):
    graph = kept[0]._described(("graph",))["graph"]
    found = kept[1]._described(("kernel", "graph"))
    assert found["graph"] is graph
    assert found.keys() == {"kernel", "graph"}


def test_other_numbers_of_clusters_have_their_own_folds(iris, found):
    X, y = iris
    data = Prepared(X)
    known = some_pairs(y, 12)
    Auto(3, random_state=0).fit(data, constraints=known)
    found.clear()
    two = Auto(2, random_state=0).fit(data, constraints=known)
    assert len({id(trial) for trial in found}) > 1
    plain = Auto(2, random_state=0).fit(X, constraints=known)
    assert_array_equal(two.result_.probability, plain.result_.probability)


def test_threads_take_turns_on_prepared_data():
    """What a fit keeps belongs to its constraints: no other thread may use it meanwhile."""
    X, y = make_classification(150, 8, n_informative=5, n_classes=3, class_sep=0.7, random_state=3)
    known = [Constraints.sample(y, m, random_state=m) for m in (12, 30, 50, 20)]
    alone = [Auto(3, random_state=0).fit(X, constraints=one).labels_ for one in known]
    data = Prepared(X)
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(Auto(3, random_state=0).fit, data, constraints=one) for one in known]
        for fit, labels in zip(fits, alone, strict=True):
            assert adjusted_rand_score(fit.result().labels_, labels) == 1.0


def test_the_same_fit_again_gives_the_same_answer(iris):
    X, y = iris
    data = Prepared(X)
    for m in (20, 21, 21):
        model = Auto(3, random_state=0).fit(data, constraints=some_pairs(y, m))
    again = Auto(3, random_state=0).fit(data, constraints=some_pairs(y, 21))
    assert_allclose(again.result_.probability, model.result_.probability, atol=1e-6)
