"""The learner: regressions without a sample equal regressions fitted without it."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs, make_circles
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from linkwise import Prepared
from linkwise.auto import learner, views
from linkwise.auto.bases import Basis
from linkwise.auto.learner import Design, Ridge, fit_learner, log_softmax


@pytest.fixture
def case():
    rng = np.random.RandomState(0)
    n, b, k = 40, 5, 3
    features = np.hstack((rng.normal(size=(n, b)), np.ones((n, 1))))
    penalty = np.array([1.0] * b + [1e-3])
    Q = rng.dirichlet(np.ones(k), size=n)
    weights = np.where(rng.uniform(size=n) < 0.5, 1.0, 0.3)
    return features, penalty, Q, weights


def regression(features, penalty, Q, weights):
    A = features.T @ (weights[:, None] * features) + np.diag(penalty)
    return np.linalg.solve(A, features.T @ (weights[:, None] * Q))


def design_of(weights, *bases):
    """Return what a learner with one or two bases learns from."""
    ridges = [Ridge.of(Basis(*basis), weights) for basis in bases]
    names = ("linear", "graph")[: len(ridges)]
    return Design(np.arange(weights.size), weights, dict(zip(names, ridges, strict=True)))


def test_coefficients_are_those_of_the_normal_equations(case):
    features, penalty, Q, weights = case
    _, found = fit_learner(design_of(weights, (features, penalty)), ("linear",), Q)
    assert_allclose(found.coefficients[0], regression(*case), atol=1e-10)


def test_leaving_out_equals_refitting(case, monkeypatch):
    features, penalty, Q, weights = case
    monkeypatch.setattr(learner, "_discriminant", lambda F, Q, weights: (np.eye(3), np.zeros(3)))
    monkeypatch.setattr(learner, "log_softmax", lambda logits: logits)
    F, _ = fit_learner(design_of(weights, (features, penalty)), ("linear",), Q)
    for i in range(len(Q)):
        others = np.arange(len(Q)) != i
        M = regression(features[others], penalty, Q[others], weights[others])
        assert_allclose(F[i], features[i] @ M, atol=1e-9)


def test_the_discriminant_is_that_of_lda():
    rng = np.random.RandomState(1)
    y = rng.randint(3, size=300)
    F = rng.normal(size=(300, 4)) + np.array([[0, 0, 0, 0], [2, 0, 1, 0], [0, 2, 0, 1]])[y]
    Q = np.eye(3)[y]
    slope, intercept = learner._discriminant(F, Q, np.ones(300))
    within = sum(
        (F[y == c] - F[y == c].mean(0)).T @ (F[y == c] - F[y == c].mean(0)) for c in range(3)
    )
    S = 0.9 * within / 300 + np.diag(0.1 * np.diag(within) / 300 + 1e-6)
    means = np.array([F[y == c].mean(0) for c in range(3)])
    prior = (np.bincount(y) + 1) / 303
    quadratic = np.array(
        [
            np.log(prior[c])
            - 0.5 * np.einsum("ij,jk,ik->i", F - means[c], np.linalg.inv(S), F - means[c])
            for c in range(3)
        ]
    ).T
    assert_allclose(log_softmax(F @ slope + intercept), log_softmax(quadratic), atol=1e-8)
    theirs = LinearDiscriminantAnalysis().fit(F, y).predict(F)
    assert ((F @ slope + intercept).argmax(axis=1) == theirs).mean() > 0.97


def test_a_new_sample_gets_the_log_probability_of_a_sample_that_is_left_out(case):
    features, penalty, Q, weights = case
    # With weight zero, the last sample has no part in anything.
    weights = weights.copy()
    weights[-1] = 0.0
    left_out, found = fit_learner(design_of(weights, (features, penalty)), ("linear",), Q)
    last = {"linear": Basis(features[-1:], penalty)}
    assert_allclose(found.log_probability(last)[0], left_out[-1], atol=1e-9)


def test_several_bases_are_stacked(case):
    features, penalty, Q, weights = case
    design = design_of(weights, (features, penalty), (features[:, :2], penalty[:2]))
    left_out, found = fit_learner(design, ("linear", "graph"), Q)
    assert left_out.shape == Q.shape
    assert_allclose(np.exp(left_out).sum(axis=1), 1.0, atol=1e-4)
    assert found.names == ("linear", "graph")
    assert [M.shape for M in found.coefficients] == [(6, 3), (2, 3)]


def test_no_log_probability_is_certain(case):
    features, penalty, _, weights = case
    Q = np.eye(3)[(features[:, 0] > 0).astype(int)]
    left_out, _ = fit_learner(design_of(weights, (100 * features, penalty)), ("linear",), Q)
    assert left_out.min() >= learner.FLOOR
    assert np.isfinite(left_out).all()


@pytest.mark.parametrize("shape", [(1, 3), (300, 1), (300, 8), (300, 40)])
def test_the_largest_of_each_row_is_numpys(shape):
    logits = np.random.RandomState(0).normal(size=shape)
    found = learner._largest(logits)
    assert found.tolist() == logits.max(axis=1, keepdims=True).tolist()


def test_a_classifier_gives_new_samples_what_it_gives_to_those_of_the_fit(monkeypatch):
    monkeypatch.setattr(views, "MAX_ROWS", 300)
    X, y = make_blobs(900, 4, centers=3, cluster_std=2, random_state=0)
    data = views.Views.of(Prepared(5 + 1e3 * X))
    view = data.view(views.both_scalings(data.prepared.X)[1], 3)
    P = np.eye(3)[y[data.order][view.rows]]
    monkeypatch.setattr(learner, "fit_classifier", rigid_learner)
    wanted = learner.everywhere(view, view.rows, P).argmax(axis=1)
    found = learner.Classifier.of(view, view.rows, P)
    others = np.setdiff1d(np.arange(900), view.rows)
    assert others.size == 600
    assert_array_equal(found.predict(data.prepared.X[others]), wanted[others])
    assert len(pickle.dumps(found)) < 100_000  # neither samples nor graph


def rigid_learner(view, rows, probability):
    """Return the learner of the principal components and radial functions."""
    return fit_learner(view.design(rows, rows), ("linear", "kernel"), probability)[1]


def spirals(n_samples, random_state):
    """Return two arms that turn around each other twice: radial functions are too wide."""
    rng = np.random.RandomState(random_state)
    y, r = np.arange(n_samples) % 2, 2 * np.sqrt(rng.uniform(0.05, 1, n_samples))
    angle = 2 * np.pi * r + np.pi * y
    X = np.column_stack((r * np.cos(angle), r * np.sin(angle)))
    return X + rng.normal(scale=0.02, size=X.shape), y


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (spirals, None),
        (partial(make_circles, noise=0.05, factor=0.5), ("linear", "kernel")),
        (partial(make_blobs, centers=2), ("linear",)),
    ],
)
def test_functions_on_the_graph_are_not_known_at_new_samples(monkeypatch, make, names):
    """Where they explain more than the best of the features, there is no classifier of these."""
    monkeypatch.setattr(views, "MAX_ROWS", 300)
    fit_classifier = learner.fit_classifier
    monkeypatch.setattr(
        learner,
        "fit_classifier",
        lambda *given, **named: (fit_classifier if named else learner_with_graph)(*given, **named),
    )
    X, y = make(900, random_state=0)
    data = views.Views.of(Prepared(X))
    view = data.view(views.both_scalings(X)[0], 2)
    P = np.eye(2)[y[data.order][view.rows]]
    found = learner.Classifier.of(view, view.rows, P)
    assert (None if found is None else found.learner.names) == names
    if found is not None:
        assert (found.predict(X) == y).mean() > 0.95  # the blobs overlap


def learner_with_graph(view, rows, probability):
    return fit_learner(view.design(rows, rows), ("linear", "graph"), probability)[1]


def test_a_learner_is_found_among_the_bases_that_are_named():
    X, y = spirals(400, random_state=0)
    data = views.Views.of(Prepared(X))
    view, rows = data.view(views.both_scalings(X)[0], 2), np.arange(400)
    P = np.eye(2)[y[data.order]]
    assert "graph" in learner.fit_classifier(view, rows, P).names
    assert "graph" not in learner.fit_classifier(view, rows, P, names=learner.OF_FEATURES).names


def test_a_gain_is_judged_by_its_standard_error():
    """Of draws from the soft partition, in the standard deviation of the difference."""
    rng = np.random.RandomState(0)
    P = rng.dirichlet(np.ones(3), size=200)
    labels, others = P.argmax(axis=1), rng.randint(3, size=200)
    truth = (rng.uniform(size=(20_000, 200, 1)) > P.cumsum(axis=1)).sum(axis=2)
    assert learner.is_beyond_chance(labels, others, P)  # by many errors
    assert not learner.is_beyond_chance(others, labels, P)
    # Labels that are a little better than others in few samples
    few = others.copy()
    few[:9] = labels[:9]
    gains = (truth == few).sum(axis=1) - (truth == others).sum(axis=1)
    assert learner.is_beyond_chance(few, others, P) == (gains.mean() > gains.std())
    assert not learner.is_beyond_chance(labels, labels, P)
