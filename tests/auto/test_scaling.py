"""Scalings: features as given, or each divided by its standard deviation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Auto, Constraints, Prepared
from linkwise.auto import estimator
from linkwise.auto.bases import one_hot_blocks
from linkwise.auto.ensemble import Ensemble
from linkwise.auto.views import GIVEN, STANDARDIZED, Views, both_scalings, plausible_scalings

RNG = np.random.RandomState(0)


def first(X):
    return plausible_scalings(X)[0].name


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_one_unit_that_drowns_the_others_is_removed(load):
    X = load().data
    assert first(X) == STANDARDIZED
    assert len(plausible_scalings(X)) == 2
    scaled = StandardScaler().fit_transform(X)
    assert [one.name for one in plausible_scalings(scaled)] == [GIVEN]


@pytest.mark.parametrize("load", [load_iris, load_digits])
def test_features_of_one_unit_stay_as_given(load):
    assert first(load().data) == GIVEN


def test_variances_that_are_alike_need_no_second_look():
    X = RNG.normal(size=(200, 5)) * [1.0, 1.2, 1.4, 1.6, 1.8]
    assert [one.name for one in plausible_scalings(X)] == [GIVEN]
    assert [one.name for one in plausible_scalings(X * [1, 1, 1, 1, 2])] == [GIVEN, STANDARDIZED]
    assert [one.name for one in plausible_scalings(X[:, :1])] == [GIVEN]


def test_standardised_features_have_variance_one():
    X = RNG.normal(size=(50, 4)) * [1, 10, 100, 0] + [5, 0, 0, 7]
    _, standardized = both_scalings(X)
    found = standardized.transform(X)
    assert_allclose(found, StandardScaler().fit_transform(X[:, :3]))  # no constant feature
    assert_array_equal(both_scalings(X)[0].transform(X), X)


def test_sparse_features_are_not_centred():
    X = RNG.poisson(0.4, size=(80, 6)) * np.array([1, 1, 1, 1, 40, 0])
    dense, sparse = (both_scalings(form(X))[1] for form in (np.asarray, csr_array))
    assert_allclose(sparse.deviation, dense.deviation)
    found = sparse.transform(csr_array(X))
    assert issparse(found)
    assert found.nnz <= np.count_nonzero(X)
    assert found.shape == X.shape
    deviation = X[:, :5].std(axis=0)
    assert_allclose(found.toarray()[:, :5], X[:, :5] / deviation)
    assert not found.toarray()[:, 5].any()
    names = [[one.name for one in plausible_scalings(form(X))] for form in (np.asarray, csr_array)]
    assert names[0] == names[1]


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_no_unit_over_or_underflows(unit, form):
    X = load_wine().data
    assert first(form(X * unit)) == STANDARDIZED
    found = both_scalings(form(X * unit))[1].transform(form(X * unit))
    expected = both_scalings(form(X))[1].transform(form(X))
    assert_allclose(*((one.toarray() if issparse(one) else one) for one in (found, expected)))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_constant_features_are_no_unit(form):
    assert [one.name for one in plausible_scalings(form(np.ones((9, 3))))] == [GIVEN]
    X = np.column_stack((RNG.normal(size=40), np.full(40, 1e6), np.zeros(40)))
    assert [one.name for one in plausible_scalings(form(X))] == [GIVEN]


# Categories -------------------------------------------------------------------------------------


def categories(rng, n=300):
    """Return columns for each value of three categories, one of which has rare values."""
    shares = ([0.5, 0.3, 0.2], [0.98, 0.01, 0.01], [0.6, 0.4])
    return [np.eye(len(p))[rng.choice(len(p), n, p=p)] for p in shares]


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_the_columns_of_a_category_are_recognised(form):
    rng = np.random.RandomState(0)
    number = rng.normal(size=(300, 1))
    X = np.hstack((number, *categories(rng), number))
    found = [block.tolist() for block in one_hot_blocks(form(X))]
    assert found == [[1, 2, 3], [4, 5, 6], [7, 8]]
    # without the first column of each; a rare value alone could be exclusive by chance
    X = np.hstack((number, *(block[:, 1:] for block in categories(rng))))
    assert [block.tolist() for block in one_hot_blocks(form(X))] == [[1, 2]]


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_category_is_recognised_by_its_definition(form):
    # A slow twin: each complete block is a run of columns whose upper values count one.
    rng = np.random.RandomState(1)
    for _ in range(20):
        blocks = [np.eye(m)[rng.permutation(np.arange(60) % m)] for m in rng.randint(2, 6, size=4)]
        X, found = (
            np.hstack(blocks),
            [block.tolist() for block in one_hot_blocks(np.hstack(blocks))],
        )
        ends = np.cumsum([block.shape[1] for block in blocks])
        assert found == [list(range(e - b.shape[1], e)) for b, e in zip(blocks, ends, strict=True)]
        assert [block.tolist() for block in one_hot_blocks(form(X))] == found
        assert all((X[:, block].sum(axis=1) == 1).all() for block in found)


def test_answers_that_exclude_each_other_by_chance_are_no_category():
    rng = np.random.RandomState(0)
    n_found = 0
    for _ in range(200):
        X = (rng.uniform(size=(200, 12)) < rng.uniform(0.01, 0.15, size=12)).astype(float)
        n_found += bool(one_hot_blocks(X))
    assert n_found <= 10  # of twenty tables, one
    assert not one_hot_blocks(np.ones((9, 3)))
    assert not one_hot_blocks(RNG.normal(size=(9, 3)))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_category_counts_as_one_feature(form):
    rng = np.random.RandomState(0)
    X = np.hstack((40_000 + 9_000 * rng.normal(size=(300, 2)), *categories(rng)))
    _, standardized = both_scalings(form(X))
    found = standardized.transform(form(X))
    variance = (found.toarray() if issparse(found) else found).var(axis=0)
    totals = np.add.reduceat(variance, [0, 1, 2, 5, 8])
    assert_allclose(totals, 1.0)
    # columns of a category have one unit: two values are as far apart, whichever they are
    assert np.ptp(standardized.deviation[2:5]) == 0
    assert np.ptp(X[:, 2:5].std(axis=0)) > 0.01


def test_beside_a_category_the_other_features_tell_the_first_scaling():
    rng = np.random.RandomState(0)
    numbers, blocks = rng.normal(size=(300, 3)), categories(rng)
    assert [one.name for one in plausible_scalings(numbers)] == [GIVEN]
    names = [one.name for one in plausible_scalings(np.hstack((numbers, blocks[0])))]
    assert names == [STANDARDIZED, GIVEN]  # numbers stay as they are
    assert first(np.hstack((numbers * [15_000, 12, 0.1], blocks[0]))) == STANDARDIZED
    assert first(np.hstack((numbers[:, :1], blocks[0]))) == STANDARDIZED  # whatever its unit
    assert first(np.hstack((numbers * [3, 2, 1], blocks[0]))) == GIVEN  # such as components
    assert first(np.hstack(blocks)) == GIVEN  # nothing but categories: they have one unit


def test_a_category_beside_components_does_not_hide_them():
    # 0.53 if 40 components of little variance are standardised because of two dummies
    rng = np.random.RandomState(0)
    y, rotation = rng.randint(3, size=400), np.linalg.qr(rng.randn(3, 3))[0]
    few, many = 4 * rotation[y] + rng.randn(400, 3), 0.6 * rng.randn(400, 40)
    answer = rng.randint(2, size=400)
    X = np.column_stack((few, many, answer, 1 - answer))
    assert adjusted_rand_score(y, Auto(3, random_state=0).fit(X).labels_) > 0.9


@pytest.mark.parametrize("form", [float, bool, np.int8])
def test_dummies_do_not_hide_the_clusters(form):
    # 0.52 if each column is divided by its own deviation
    rng = np.random.RandomState(0)
    y = np.arange(300) % 3
    levels = 1.5 * np.array([[1, 0, -1], [-1, 1, 0], [0, -1, 1]])
    numbers = (levels[y] + rng.normal(size=(300, 3))) * [15_000, 12, 0.1] + [40_000, 45, 0.5]
    share = [0.4, 0.3, 0.1, 0.1, 0.04, 0.03, 0.02, 0.01]
    categories = [np.eye(8)[rng.choice(8, 300, p=share)] for _ in range(3)]
    table = np.hstack((numbers, *categories))
    if form is not float:
        pandas = pytest.importorskip("pandas")
        columns = {f"number {at}": numbers[:, at] for at in range(3)}
        dummies = np.hstack(categories).astype(form)
        table = pandas.DataFrame(columns | {f"is {at}": dummies[:, at] for at in range(24)})
    labels = Auto(3, random_state=0).fit(table).labels_
    assert adjusted_rand_score(y, labels) > 0.7


# In a fit ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def raw(wine):
    return Auto(3, random_state=0).fit(wine[0])


def test_raw_wine_is_standardised_wine(wine, raw):
    X, y = wine
    assert adjusted_rand_score(y, raw.labels_) > 0.85
    scaled = Auto(3, random_state=0).fit(StandardScaler().fit_transform(X))
    assert_array_equal(raw.labels_, scaled.labels_)
    assert raw.report_.scaling == STANDARDIZED
    assert raw.report_.scalings == (STANDARDIZED,)
    assert scaled.report_.scaling == GIVEN


def test_new_samples_are_scaled_too(wine, raw):
    X, _ = wine
    assert_array_equal(raw.predict(X), raw.labels_)
    assert (raw.predict(X + 1e-6) == raw.labels_).mean() > 0.97


def test_the_parameter_decides(wine, raw):
    X, _ = wine
    given = Auto(3, scaling="given", random_state=0).fit(X)
    assert given.report_.scaling == GIVEN
    assert adjusted_rand_score(given.labels_, raw.labels_) < 0.7
    standardized = Auto(3, scaling="standardize", random_state=0).fit(X)
    assert_array_equal(standardized.labels_, raw.labels_)
    both = {"given": GIVEN, "standardize": STANDARDIZED}
    iris = load_iris().data
    for value, name in both.items():  # with constraints too, and where nothing needs scaling
        known = Constraints(150, must_link=[(0, 1)])
        report = Auto(3, scaling=value, random_state=0).fit(iris, constraints=known).report_
        assert (report.scaling, report.scalings) == (name, (name,))


def test_scalings_are_compared_by_constraints():
    # The feature that tells the clusters apart is the small one, or the large one.
    rng = np.random.RandomState(0)
    y = np.arange(120) % 2
    other = rng.randint(2, size=120)
    X = np.column_stack((12 * other, 4 * y)) + rng.normal(size=(120, 2)) * [1.0, 0.2]
    for truth, name in ((y, STANDARDIZED), (other, GIVEN)):
        known = Constraints.sample(truth, 20, random_state=0)
        model = Auto(2, random_state=0).fit(X, constraints=known)
        assert set(model.report_.scalings) == {GIVEN, STANDARDIZED}
        assert adjusted_rand_score(truth, model.labels_) == 1.0, name


def test_another_scaling_needs_more_than_candidates_that_predict_by_chance(wine, monkeypatch):
    X, y = wine
    known, quick = Constraints.sample(y, 12, random_state=0), {STANDARDIZED: -20.0, GIVEN: -3.0}
    monkeypatch.setattr(Ensemble, "_quick_score", lambda self, view, cheap: quick[view.name])
    # What the standardised samples say alone predicts the pairs.
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert set(model.report_.scalings) == {GIVEN, STANDARDIZED}
    assert model.report_.scaling == STANDARDIZED
    # The pairs of classes that are clusters as given, and not standardised
    other = Auto(3, scaling="given", random_state=0).fit(X).labels_
    known = Constraints.sample(other, 12, random_state=0)
    assert Auto(3, random_state=0).fit(X, constraints=known).report_.scaling == GIVEN


def test_other_scalings_cost_quick_candidates_alone(wine):
    X, y = wine
    data = Prepared(X)
    Auto(3, random_state=0).fit(data, constraints=Constraints.sample(y, 12, random_state=0))
    views = Views.of(data)
    found = {one.name: set(views.view(one, 3).partitions) for one in views.scalings}
    assert len(found[GIVEN]) < len(found[STANDARDIZED])


def test_of_many_samples_only_the_more_plausible_scaling_is_tried(wine, monkeypatch):
    X, y = wine
    known = Constraints.sample(y, 9, random_state=0)
    monkeypatch.setattr(estimator, "SECOND_SCALING_UP_TO", 177)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert model.report_.scalings == (STANDARDIZED,)


def test_an_affinity_of_your_own_means_features_as_given(wine):
    X, _ = wine
    model = Auto(3, affinity=Affinity(8), random_state=0).fit(X)
    assert model.report_.scaling == GIVEN
    again = Auto(3, random_state=0).fit(Prepared(X, affinity=Affinity(8)))
    assert_array_equal(again.labels_, model.labels_)


def test_a_graph_has_no_scaling(wine):
    X, _ = make_blobs(60, centers=3, random_state=0)
    W = Affinity().fit_transform(X)
    report = Auto(3, affinity="precomputed", random_state=0).fit(W).report_
    assert report.scaling == ""
    assert report.scalings == ()


def test_sparse_features_are_scaled_in_a_fit(wine):
    X, y = wine
    model = Auto(3, random_state=0).fit(csr_array(X))
    assert model.report_.scaling == STANDARDIZED
    assert adjusted_rand_score(y, model.labels_) > 0.85
    assert_array_equal(model.predict(csr_array(X)), model.labels_)
    assert_array_equal(model.predict(X), model.labels_)
