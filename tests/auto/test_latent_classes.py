"""Latent classes: clusters of samples whose features have two values."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise import Auto, Constraints, Prepared
from linkwise.auto.bases import binary_features
from linkwise.auto.latent_classes import PRIOR, latent_class_evidence, latent_class_partition
from linkwise.auto.views import Views


def answers_of_classes(n, k, d, seed, *, spread=0.4):
    """Return 0/1 answers to `d` questions by `k` classes of people, and the classes."""
    rng = np.random.RandomState(seed)
    share = rng.beta(spread, spread, size=(k, d))
    y = rng.randint(k, size=n)
    return (rng.uniform(size=(n, d)) < share[y]).astype(float), y


def test_evidence_is_the_product_of_predictions_one_sample_after_another():
    B, y = answers_of_classes(30, 3, 5, seed=0)
    k, log_probability = 3, 0.0
    size, upper = np.zeros(k), np.zeros((k, 5))
    for row, c in zip(B, y, strict=True):
        log_probability += np.log((size[c] + 1) / (size.sum() + k))
        share = (upper[c] + PRIOR) / (size[c] + 2 * PRIOR)
        log_probability += np.log(np.where(row == 1, share, 1 - share)).sum()
        size[c] += 1
        upper[c] += row
    assert_allclose(latent_class_evidence(B, y, k), log_probability / 30)
    assert_allclose(latent_class_evidence(csr_array(B), y, k), log_probability / 30)


def test_evidence_prefers_the_classes_to_others_and_to_parts_of_them():
    B, y = answers_of_classes(300, 2, 12, seed=1)
    best = latent_class_evidence(B, y, 4)
    shuffled = np.random.RandomState(0).permutation(y)
    halves = y + 2 * (np.arange(300) % 2)
    assert best > latent_class_evidence(B, halves, 4)
    assert best > latent_class_evidence(B, shuffled, 4)


def test_a_partition_is_corrected_and_keeps_its_numbers():
    B, y = answers_of_classes(300, 3, 15, seed=2)
    start = y.copy()
    wrong = np.random.RandomState(0).choice(300, 75, replace=False)
    start[wrong] = (start[wrong] + 1) % 3
    R = latent_class_partition(B, start, 3)
    assert_allclose(R.sum(axis=1), 1.0)
    assert (R.argmax(axis=1) == y).mean() > 0.95
    assert (start == y).mean() == 0.75
    assert_allclose(latent_class_partition(csr_array(B), start, 3), R)


def test_responsibilities_are_those_of_the_formula():
    """One sample at a time, with the frequencies of the last step."""
    B, y = answers_of_classes(40, 2, 4, seed=3)
    R = latent_class_partition(B, y, 2)
    size = R.sum(axis=0)
    share = (R.T @ B + PRIOR) / (size[:, None] + 2 * PRIOR)
    for row, found in zip(B, R, strict=True):
        joint = (size + 1) * np.prod(np.where(row == 1, share, 1 - share), axis=1)
        assert_allclose(found, joint / joint.sum(), atol=0.02)  # it stops before the last digit


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_what_counts_as_binary(make):
    rng = np.random.RandomState(0)
    two = np.where(rng.uniform(size=(50, 6)) < 0.4, 3.5, 0.0)
    many = rng.normal(size=(50, 1))
    constant = np.hstack((np.zeros((50, 2)), np.full((50, 2), 7.0)))
    assert_array_equal(binary_features(make(two)) @ np.eye(6), two > 0)
    assert_array_equal(binary_features(make(np.hstack((constant, two)))) @ np.eye(6), two > 0)
    assert binary_features(make(np.hstack((two, many)))) is None  # what it says would be lost
    assert binary_features(make(constant)) is None


def test_repeated_and_stored_zero_entries_of_a_sparse_matrix():
    rows, columns = np.array([0, 0, 1, 2, 3]), np.array([0, 0, 0, 1, 0])
    X = csr_array((np.array([0.5, 0.5, 1.0, 1.0, 0.0]), (rows, columns)), shape=(4, 2))
    X = csr_array((X.data, X.indices, X.indptr), shape=(4, 2))
    assert_array_equal(binary_features(X).toarray(), [[1, 0], [1, 0], [0, 1], [0, 0]])


def test_standardised_values_are_the_same_two():
    B, _ = answers_of_classes(60, 2, 8, seed=4)
    scaled = (B - B.mean(axis=0)) / B.std(axis=0)
    assert_array_equal(binary_features(scaled), B)


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_auto_finds_classes_of_people_who_answer_yes_or_no(make):
    B, y = answers_of_classes(400, 4, 20, seed=5, spread=0.7)
    model = Auto(4, random_state=0).fit(make(B))
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert "few values" in str(model.report_)


def test_a_gaussian_without_variance_does_not_win():
    """Of a category that says nothing, one column in a cluster is constant."""
    B, y = answers_of_classes(300, 3, 10, seed=8)
    category = np.eye(12)[np.random.RandomState(0).randint(12, size=300)]
    found = Auto(3, random_state=0).fit(np.hstack((B, category))).labels_
    assert adjusted_rand_score(y, found) > 0.8


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_numbers_beside_categories_are_not_ignored(make):
    X, y = make_blobs(300, centers=3, n_features=4, random_state=1)
    category = np.eye(12)[np.random.RandomState(0).randint(12, size=300)]
    mixed = make(np.hstack((4 * X / X.std(axis=0), category, np.ones((300, 2)))))
    assert adjusted_rand_score(y, Auto(3, random_state=0).fit(mixed).labels_) > 0.9


def test_other_features_have_no_latent_classes():
    X, _ = make_blobs(80, centers=3, random_state=0)
    model = Auto(3, random_state=0).fit(X)
    assert not any("latent" in one.name for one in model.report_.candidates)
    views = Views(Prepared(X))
    assert views.view(views.scalings[0], 3).binary is None


def test_pairs_overrule_latent_classes():
    B, y = answers_of_classes(200, 4, 16, seed=7)
    wanted = y % 2  # two of the classes belong together
    rng = np.random.RandomState(0)
    pairs = rng.randint(200, size=(60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = wanted[pairs[:, 0]] == wanted[pairs[:, 1]]
    known = Constraints(200, pairs[same], pairs[~same])
    found = Auto(2, random_state=0).fit(B, constraints=known).labels_
    assert adjusted_rand_score(wanted, found) > 0.9
