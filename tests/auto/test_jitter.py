"""Jitter: features with few values are spread, so that their values are no clusters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Auto, Constraints, Prepared
from linkwise.auto import views as views_module
from linkwise.auto.bases import few_valued, jittered
from linkwise.auto.views import GIVEN, JITTERED, STANDARDIZED, Views


def customers(seed=0, n=300):
    """Return two clusters in four numbers, beside two categories that say nothing about them."""
    rng = np.random.RandomState(seed)
    y = rng.randint(2, size=n)
    numbers = 1.6 * (2 * y[:, None] - 1) * rng.uniform(0.5, 1, 4) + rng.normal(size=(n, 4))
    region, channel = np.eye(3)[rng.randint(3, size=n)], rng.randint(2, size=n)
    return StandardScaler().fit_transform(np.column_stack((numbers, region, channel))), y


def test_a_jittered_value_is_rounded_back_to_what_it_was():
    rng = np.random.RandomState(0)
    X = np.column_stack((rng.randint(5, size=200), rng.normal(size=200))).astype(float)
    found = jittered(X, few_valued(X))
    mean = X[:, 0].mean()
    spread = mean + (found.X[:, 0] - mean) / found.shrinkage[0]
    assert_array_equal(np.round(spread), X[:, 0])
    assert np.unique(spread).size == 200
    assert_array_equal(found.X[:, 1], X[:, 1])
    assert found.shrinkage[1] == 1.0


def test_what_is_mostly_noise_is_drawn_towards_the_mean():
    # Var(shrunk) = s^2 / (s^2 + noise) * s^2: the best linear estimate of the value.
    X = np.zeros((20_000, 3))
    X[:, 2] = np.arange(20_000)  # no equal samples
    X[::2, 0] = X[:200, 1] = 1.0
    found = jittered(X, np.array([True, True, False]))
    variance, noise = X.var(axis=0), np.array([1 / 12, 1 / 12, 0.0])
    assert_allclose(found.shrinkage, variance / (variance + noise), rtol=0.05)
    assert_allclose(found.X.var(axis=0), found.shrinkage * variance, rtol=0.05)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_units_do_not_matter_to_jitter(unit):
    X = np.random.RandomState(0).randint(4, size=(50, 2)) + np.arange(100).reshape(50, 2) / 1e6
    few, units = np.array([True, True]), np.array([unit, 3.0])
    assert_allclose(jittered(X * units, few).X / units, jittered(X, few).X)


@pytest.mark.parametrize("seed", range(3))
def test_a_category_is_no_cluster(seed):
    X, y = customers(seed)
    model = Auto(2, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.8
    assert model.report_.scaling == STANDARDIZED + JITTERED
    assert 'those with few values jittered (scaling="standardize" leaves out the jitter)' in str(
        model.report_
    )


@pytest.mark.parametrize("seed", range(3))
def test_constraints_can_show_that_a_category_is_the_clusters(seed):
    X, _ = customers(seed)
    region = X[:, 4] > 0
    assert abs(adjusted_rand_score(region, Auto(2, random_state=0).fit(X).labels_)) < 0.2
    known = Constraints.sample(region.astype(int), 60, random_state=0)
    model = Auto(2, random_state=0).fit(X, constraints=known)
    assert {STANDARDIZED, STANDARDIZED + JITTERED} <= set(model.report_.scalings)
    assert adjusted_rand_score(region, model.labels_) > 0.9


def test_equal_samples_get_the_same_cluster():
    rng = np.random.RandomState(0)
    y = rng.randint(2, size=300)
    X = 3.5 + 0.5 * (2 * y[:, None] - 1) + rng.normal(size=(300, 4))
    X = np.clip(np.round(X), 1, 6)
    assert 150 < len(np.unique(X, axis=0)) < 280
    model = Auto(2, random_state=0).fit(X)
    assert model.report_.scaling.endswith(JITTERED)
    for row in np.unique(X, axis=0):
        assert np.unique(model.labels_[(row == X).all(axis=1)]).size == 1
    assert_array_equal(model.predict(X), model.labels_)


def test_rows_in_another_order_get_the_same_clusters():
    X, _ = customers()
    order = np.random.RandomState(1).permutation(len(X))
    first, second = (Auto(2, random_state=0).fit(rows).labels_ for rows in (X, X[order]))
    assert adjusted_rand_score(first[order], second) == 1.0


def test_new_samples_are_scaled_without_noise():
    X, y = customers()
    model = Auto(2, random_state=0).fit(X[:200])
    assert adjusted_rand_score(y[200:], model.predict(X[200:])) > 0.7
    scaling = model._scaling
    expected = scaling.shrinkage * (X[200:] - scaling.mean) / scaling.deviation
    assert_allclose(scaling.transform(X[200:]), expected)
    assert (scaling.shrinkage[4:] < 0.9).all()


def test_one_far_value_is_not_spread_over_what_lies_between():
    rng = np.random.RandomState(0)
    X = np.column_stack((rng.randint(4, size=200), rng.normal(size=200))).astype(float)
    X[0, 0] = 1000.0
    found = jittered(X, np.array([True, False]))
    mean = X[:, 0].mean()
    spread = mean + (found.X[:, 0] - mean) / found.shrinkage[0]
    assert np.abs(spread[1:] - X[1:, 0]).max() <= 0.5
    assert abs(spread[0] - 1000.0) < 500


def test_constraints_can_show_how_many_values_of_a_category_are_the_clusters():
    X, _ = customers()
    region = X[:, 4:7].argmax(axis=1)
    known = Constraints.sample(region, 40, random_state=0)
    model = Auto(random_state=0).fit(X, constraints=known)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(region, model.labels_) > 0.95


@pytest.mark.parametrize("scaling", ["given", "standardize"])
def test_only_an_automatic_scaling_jitters(scaling):
    X, _ = customers()
    known = Constraints(300, must_link=[(0, 1)])
    report = Auto(2, scaling=scaling, random_state=0).fit(X, constraints=known).report_
    assert report.scalings == (GIVEN if scaling == "given" else STANDARDIZED,)


@pytest.mark.parametrize("scaling", ["given", "standardize", "auto"])
def test_noise_is_drawn_only_where_it_is_used(scaling, monkeypatch):
    drawn = []
    monkeypatch.setattr(views_module, "jittered", lambda *args: drawn.append(0) or jittered(*args))
    Auto(2, scaling=scaling, random_state=0).fit(customers()[0])
    assert len(drawn) == (scaling == "auto")


def test_constant_features_do_not_matter_to_jitter():
    X, _ = customers()
    views = [
        Views.of(Prepared(np.hstack((part, np.ones((300, 9)))))) for part in (X, X[:, [0, -1]])
    ]
    assert views[0].scalings[0].shrinkage is not None
    assert views[1].scalings[0].shrinkage is None


@pytest.mark.parametrize(
    "form",
    [
        "numbers",
        "binary",
        "plane",
        "few samples",
        "copies",
        "one in nine",
        "sparse",
        "own affinity",
    ],
)
def test_what_is_not_jittered(form):
    X, _ = customers()
    given = {
        "numbers": make_blobs(100, 3, random_state=0)[0],
        "binary": np.column_stack(
            (np.sign(np.random.RandomState(0).normal(size=(300, 11))), X[:, 0])
        ),
        "plane": X[:, [0, -1]],
        "few samples": X[:99],
        "copies": np.random.RandomState(0).randint(5, size=(90, 2)).astype(float),
        "one in nine": np.hstack((np.random.RandomState(0).normal(size=(300, 8)), X[:, -1:])),
        "sparse": csr_array(X),
        "own affinity": X,
    }[form]
    affinity = Affinity(8) if form == "own affinity" else None
    views = Views.of(Prepared(given, affinity))
    assert not any(one.name.endswith(JITTERED) for one in views.scalings)
    assert views.jittered is None
