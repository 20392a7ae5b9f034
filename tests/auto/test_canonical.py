"""The order of the samples does not matter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise import Affinity, Auto, Constraints, Prepared
from linkwise.auto import views
from linkwise.auto.views import Views, canonical_order, constraint_places, permuted


@pytest.fixture(scope="module")
def overlapping():
    """Return blobs that no two starts divide alike, and a permutation of them."""
    X, y = make_blobs(120, centers=4, n_features=3, cluster_std=3.5, random_state=0)
    return X, y, np.random.RandomState(0).permutation(120)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_the_same_samples_have_the_same_order(overlapping, form):
    X, _, order = overlapping
    straight, shuffled = (canonical_order(Prepared(form(Z))) for Z in (X, X[order]))
    assert_array_equal(order[shuffled], straight)
    assert_array_equal(canonical_order(Prepared(form(X[straight]))), np.arange(120))


def test_a_graph_and_many_samples_stay_as_they_are(overlapping, monkeypatch):
    X = overlapping[0]
    W = Affinity().fit_transform(X)
    assert canonical_order(Prepared(W, affinity="precomputed")) is None
    monkeypatch.setattr(views, "ORDERED_UP_TO", 119)
    assert canonical_order(Prepared(X)) is None


def test_a_graph_that_is_there_is_reordered(overlapping):
    X = overlapping[0]
    data = Prepared(X)
    W = data.W
    found = Views(data)
    order, other = found.order, found.prepared
    assert_array_equal(other.X, X[order])
    assert other.affinity_ is None  # not built again
    assert_allclose(other.W.toarray(), W.toarray()[np.ix_(order, order)])
    assert_allclose(permuted(other.W, np.argsort(order)).toarray(), W.toarray())
    assert_allclose(permuted(other.W.toarray(), np.argsort(order)), W.toarray())


def test_constraints_are_found_again(overlapping):
    _, y, order = overlapping
    pairs = Constraints.sample(y, 20, random_state=0)
    labels = np.where(np.arange(120) % 9 == 0, y, -1)
    belief = np.linspace(0.3, 1, len(pairs.must_link))
    known = Constraints(
        120, pairs.must_link, pairs.cannot_link, labels=labels, must_link_belief=belief
    )
    inner = known.restrict(order)
    place = constraint_places(known, order)
    assert_array_equal(np.sort(place), np.arange(20 + (labels >= 0).sum()))
    inner_pairs = np.vstack((inner.must_link, inner.cannot_link))
    given = np.vstack((known.must_link, known.cannot_link))
    assert_array_equal(np.sort(order[inner_pairs[place[:20]]], axis=1), given)
    labelled = np.flatnonzero(inner.labels >= 0)
    assert_array_equal(order[labelled[place[20:] - 20]], np.flatnonzero(labels >= 0))


@pytest.mark.parametrize("m", [0, 20])
def test_permuted_samples_are_permuted_in_the_answer(overlapping, m):
    X, y, order = overlapping
    known = Constraints.sample(y, m, random_state=0)
    place = np.argsort(order)
    there = Constraints(120, place[known.must_link], place[known.cannot_link])
    straight = Auto(4, random_state=0).fit(X, constraints=known)
    shuffled = Auto(4, random_state=0).fit(X[order], constraints=there)
    assert adjusted_rand_score(straight.labels_[order], shuffled.labels_) == 1.0
    assert_allclose(
        np.sort(straight.result_.probability[order], axis=1),
        np.sort(shuffled.result_.probability, axis=1),
        atol=1e-6,
    )


def test_the_graph_is_in_the_order_of_the_data(overlapping):
    X, _, _ = overlapping
    model = Auto(4, random_state=0).fit(X)
    assert_allclose(model.affinity_matrix_.toarray(), Affinity().fit_transform(X).toarray())
    data = Prepared(X)
    W = data.W  # built before: it is used, not built again
    again = Auto(4, random_state=0).fit(data)
    assert again.affinity_matrix_ is W
    assert_array_equal(again.labels_, model.labels_)
    assert_allclose(again.predict_proba(X[:20] + 0.01), model.predict_proba(X[:20] + 0.01))
