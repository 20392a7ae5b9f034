"""Gaussian mixtures, started from a partition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from linkwise._quiet import quiet
from linkwise.auto.mixture import Mixture, fit_mixture, mixture_partition


def crossing(n=200, seed=0):
    """Return two long Gaussians that cross."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 2
    Z = rng.normal(size=(n, 2)) * np.where(y[:, None] == 0, [5.0, 0.3], [0.3, 5.0])
    return Z, y


def scattered(n, q, k, seed):
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.arange(n) % k)
    Z = 2 * rng.normal(size=(k, q))[y] + rng.normal(size=(n, q))
    start = np.where(rng.uniform(size=n) < 0.2, rng.randint(k, size=n), y)
    return Z, start, y


def scikit_learns(Z, start):
    """Return scikit-learn's mixture, from the start that is described."""
    n, q = Z.shape
    k = start.max() + 1
    R = np.where(np.arange(k) == start[:, None], 1.001, 0.001)
    R /= R.sum(axis=1, keepdims=True)
    means = np.array([np.average(Z, axis=0, weights=R[:, c]) for c in range(k)])
    deviation = Z - means[:, None]
    scatter = np.einsum("ic,cij,cil->cjl", R, deviation, deviation)
    prior = (q + 2) * scatter.sum(axis=0) / n
    covariances = [
        (scatter[c] + prior) / (R[:, c].sum() + q + 2) + 1e-4 * np.eye(q) for c in range(k)
    ]
    model = GaussianMixture(
        k,
        tol=1e-3,
        reg_covar=1e-4,
        max_iter=20,
        weights_init=R.mean(axis=0),
        means_init=means,
        precisions_init=np.linalg.inv(covariances),
        random_state=0,
    )
    with quiet(ConvergenceWarning):
        return model.fit(Z)


@pytest.mark.parametrize(("n", "q", "k"), [(60, 1, 2), (200, 2, 3), (300, 6, 5), (90, 10, 4)])
def test_the_fit_is_that_of_scikit_learn(n, q, k):
    Z, start, _ = scattered(n, q, k, 0)
    found, expected = fit_mixture(Z, start), scikit_learns(Z, start)
    assert_allclose(found.weights, expected.weights_, atol=1e-6)
    assert_allclose(found.means, expected.means_, atol=1e-6)
    precisions = np.einsum("cij,cil->cjl", found.factors, found.factors)
    assert_allclose(precisions, expected.precisions_, rtol=1e-6, atol=1e-6)
    assert_array_equal(found.expectation(Z)[1].argmax(axis=1), expected.predict(Z))


def test_the_fit_ends_after_20_iterations():
    Z, start = np.random.RandomState(0).normal(size=(300, 4)), np.arange(300) % 5  # no clusters
    expected = scikit_learns(Z, start)
    assert not expected.converged_
    assert_allclose(fit_mixture(Z, start).means, expected.means_, atol=1e-6)


def test_the_joint_density_is_that_of_scipy():
    rng = np.random.RandomState(0)
    Z, weights, means = rng.normal(size=(7, 3)), np.array([0.3, 0.7]), rng.normal(size=(2, 3))
    A = rng.normal(size=(2, 3, 5))
    covariances = A @ A.transpose(0, 2, 1)
    model = Mixture(weights, means, np.linalg.inv(np.linalg.cholesky(covariances)))
    joint = [weights[c] * multivariate_normal(means[c], covariances[c]).pdf(Z) for c in range(2)]
    bound, R = model.expectation(Z)
    assert_allclose(R, np.array(joint).T / np.sum(joint, axis=0)[:, None])
    assert_allclose(bound, np.log(np.sum(joint, axis=0)).mean())


def test_crossing_clusters_are_told_apart():
    Z, y = crossing()
    start = (np.abs(Z[:, 1]) > np.abs(Z[:, 0])).astype(np.intp)
    start[:20] = 0
    labels = mixture_partition(Z, start).argmax(axis=1)
    assert adjusted_rand_score(labels, y) > 0.75


def test_a_fit_to_some_rows_gives_labels_to_all():
    Z, start, y = scattered(600, 3, 3, 1)
    rows = np.arange(0, 600, 2)
    expected = fit_mixture(Z[rows], start[rows]).expectation(Z)[1].argmax(axis=1)
    labels = mixture_partition(Z, start, rows=rows).argmax(axis=1)
    assert_array_equal(labels, expected)
    assert adjusted_rand_score(labels, y) > adjusted_rand_score(start, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_where_the_fit_fails_the_partition_stays(bad):
    Z, start, _ = scattered(50, 2, 3, 0)
    Z[7] = bad
    with pytest.raises(np.linalg.LinAlgError, match=r"not finite|not positive definite"):
        fit_mixture(Z, start)
    assert_array_equal(mixture_partition(Z, start).argmax(axis=1), start)


def test_no_cluster_is_lost():
    # Clusters of four samples each, in no order: mixtures leave some of them empty.
    rng = np.random.RandomState(0)
    for n, k in ((12, 5), (30, 8), (40, 12)):
        Z = rng.normal(size=(n, 2))
        start = np.arange(n) % k
        assert set(mixture_partition(Z, start).argmax(axis=1)) == set(range(k))


@pytest.mark.parametrize("Z", [np.zeros((20, 3)), np.repeat(np.eye(2), 10, axis=0)])
def test_equal_rows(Z):
    start = np.repeat([0, 1], 10)
    assert set(mixture_partition(Z, start).argmax(axis=1)) == {0, 1}


def test_a_cluster_of_one_sample():
    Z, start, _ = scattered(40, 3, 2, 0)
    start[0] = 2
    assert set(mixture_partition(Z, start).argmax(axis=1)) == {0, 1, 2}


def test_rows_without_a_cluster_of_the_start():
    Z, start, _ = scattered(60, 3, 3, 0)
    rows = np.flatnonzero(start != 2)
    assert_array_equal(mixture_partition(Z, start, rows=rows).argmax(axis=1), start)
