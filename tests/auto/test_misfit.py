"""Do Gaussians describe the samples? Each estimate against a plain version of itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.stats import multivariate_normal
from sklearn.datasets import make_blobs, make_circles, make_moons

from linkwise.auto import mixture
from linkwise.auto.mixture import (
    gaussian_likelihood,
    gaussian_misfit,
    gaussian_rows,
    kernel_rows,
    smooth_directions,
)
from linkwise.graph import Affinity


def samples(n, q, seed=0):
    rng = np.random.RandomState(seed)
    return rng.normal(size=(n, q)) @ rng.normal(size=(q, q))


def random_graph(n, seed=0):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.2), 1)
    return W + W.T


# Directions --------------------------------------------------------------------------------


@pytest.mark.parametrize("as_graph", [np.asarray, csr_array])
def test_directions_are_generalised_eigenvectors(as_graph):
    n, W = 40, random_graph(40)
    P = samples(n, 5)
    Y = smooth_directions(P, as_graph(W), 3)
    local = np.zeros((5, 5))
    for i in range(n):
        for j in range(n):  # P' L P is half the sum over all ordered pairs
            local += 0.5 * W[i, j] * np.outer(P[i] - P[j], P[i] - P[j])
    local /= W.sum()
    local += (np.trace(local) / n + 1e-9) * np.eye(5)
    V = np.linalg.lstsq(P, Y, rcond=None)[0]
    ratio = np.diag(V.T @ (P.T @ P / n) @ V)
    assert_allclose(V.T @ local @ V, np.eye(3), atol=1e-9)
    largest = np.sort(np.linalg.eigvals(np.linalg.solve(local, P.T @ P / n)).real)[::-1][:3]
    assert_allclose(ratio, largest)


def test_directions_leave_noise_out():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    noise = np.random.RandomState(0).normal(size=(300, 1))
    Y = smooth_directions(np.hstack([noise, X]), Affinity().fit_transform(X), 2)
    fit = np.linalg.lstsq(np.hstack([X, np.ones((300, 1))]), Y, rcond=None)[0]
    assert_allclose(np.hstack([X, np.ones((300, 1))]) @ fit, Y, atol=0.1 * Y.std())


def test_directions_of_a_graph_without_edges():
    P = samples(10, 2)
    assert np.isfinite(smooth_directions(P, csr_array((10, 10)), 2)).all()
    assert not smooth_directions(np.zeros((10, 1)), csr_array((10, 10)), 3).any()


# Gaussians ---------------------------------------------------------------------------------


def described(Z, labels, ridge):
    """Return mean, covariance and size of every cluster, as the formula says."""
    n, q = Z.shape
    clusters = {c: Z[labels == c] for c in set(labels.tolist())}
    scatters = {c: np.cov(A.T, bias=True).reshape(q, q) * len(A) for c, A in clusters.items()}
    prior = (q + 2) * sum(scatters.values()) / n
    return {
        c: (
            A.mean(axis=0),
            (scatters[c] + prior) / (len(A) + q + 2) + ridge * np.eye(q),
            len(A),
        )
        for c, A in clusters.items()
    }


@pytest.mark.parametrize("q", [1, 3, 14])
def test_the_likelihood_is_the_mean_over_samples(q):
    n, k = 60, 4
    P = samples(n, q)
    labels = np.random.RandomState(0).randint(k - 1, size=n)  # the last cluster is empty
    Z = P[:, :10] / np.sqrt(P[:, :10].var(axis=0).mean())
    model = described(Z, labels, 0.01)
    total = 0.0
    for z, c in zip(Z, labels, strict=True):
        mean, covariance, size = model[c]
        total += np.log(size / n) + multivariate_normal(mean, covariance).logpdf(z)
    constant = -0.5 * Z.shape[1] * np.log(2 * np.pi)
    assert_allclose(gaussian_likelihood(P, labels, k), total / n - constant)


def test_leaving_a_sample_out_is_a_change_of_rank_one():
    n, q, k = 40, 3, 3
    Z = samples(n, q) / 3
    labels = np.random.RandomState(0).permutation(np.arange(n) % k)
    model = described(Z, labels, 1e-3)
    found = gaussian_rows(Z, labels, k)[0]
    for i in range(n):
        mean, covariance, size = model[labels[i]]
        d = Z[i] - mean
        others = (labels == labels[i]) & (np.arange(n) != i)
        without = covariance - np.outer(d, d) / (size + q + 2)
        expected = multivariate_normal(Z[others].mean(axis=0), without).logpdf(Z[i])
        assert_allclose(found[i], np.log(size / n) + expected)


def test_in_a_large_cluster_it_is_the_gaussian_of_the_others():
    Z = samples(5_000, 2)
    labels = np.zeros(5_000, np.intp)
    found = gaussian_rows(Z, labels, 1)[0]
    others = Z[1:]
    expected = multivariate_normal(others.mean(axis=0), np.cov(others.T)).logpdf(Z[0])
    assert_allclose(found[0], expected, rtol=5e-3)


def test_a_cluster_of_one_sample_and_an_empty_one():
    Z = samples(20, 2)
    labels = np.zeros(20, np.intp)
    labels[3] = 2
    found = gaussian_rows(Z, labels, 4)[0]
    _, covariance, _ = described(Z, labels, 1e-3)[2]
    log_det = np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert_allclose(found[3], np.log(1 / 20) - 0.5 * (log_det + 8))
    assert np.isfinite(found).all()
    assert np.isfinite(gaussian_likelihood(Z, labels, 4))


def test_equal_samples_far_from_the_mean_have_no_spread():
    for value in np.random.RandomState(0).uniform(0, 2, size=40).tolist():
        with np.errstate(all="raise"):
            P = np.full((3, 2), value)
            assert np.isfinite(gaussian_likelihood(P, np.zeros(3, np.intp), 2))


def test_a_mixture_is_left_out_of_its_own_cluster_alone():
    n, q, k = 40, 3, 4
    Z = samples(n, q) / 3
    labels = np.random.RandomState(0).permutation(np.arange(n) % (k - 1))  # the last is empty
    model = described(Z, labels, 1e-3)
    found = gaussian_rows(Z, labels, k)[1]
    for i in range(n):
        density = 0.0
        for c, (mean, covariance, size) in model.items():
            gaussian = multivariate_normal(mean, covariance)
            if c == labels[i]:
                d = Z[i] - mean
                others = Z[(labels == c) & (np.arange(n) != i)]
                without = covariance - np.outer(d, d) / (size + q + 2)
                gaussian = multivariate_normal(others.mean(axis=0), without)
            density += size / n * gaussian.pdf(Z[i])
        assert_allclose(found[i], np.log(density))


def test_a_mixture_of_one_is_a_gaussian():
    Z = samples(30, 2)
    labels = np.zeros(30, np.intp)
    assert_allclose(*gaussian_rows(Z, labels, 1))


# Kernel density ----------------------------------------------------------------------------


def kernel_rows_slowly(Z, at, columns, factor):
    """Return the log of the density at some samples, for one width of all kernels."""
    q = Z.shape[1]

    def distances(i):
        found = [(np.linalg.norm(Z[i] - Z[j]), j) for j in columns]
        return [(r, j) for r, j in found if r > 1e-9]

    reach = {j: sorted(r for r, _ in distances(j))[6] for j in columns}
    logs = []
    for i in at:
        density = 0.0
        for r, j in distances(i):
            h = 1.4 * factor * reach[j] / np.sqrt(q)
            density += np.exp(-0.5 * (r / h) ** 2) / (np.sqrt(2 * np.pi) * h) ** q
        logs.append(np.log(density / len(distances(i))))
    return np.array(logs)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_the_kernel_density_is_that_of_the_best_width(q):
    Z = samples(40, q)
    Z[5] = Z[6]  # identical samples
    columns = np.delete(np.arange(40), [0, 9])
    at = columns[::3]
    every = [kernel_rows_slowly(Z, at, columns, c) for c in (0.35, 0.5, 0.7, 1.0, 1.4)]
    assert_allclose(kernel_rows(Z, at, columns), max(every, key=np.mean))


def test_a_density_of_identical_samples_is_not_infinite():
    every = np.arange(30)
    assert not kernel_rows(np.ones((30, 2)), every, every).any()
    assert np.isfinite(kernel_rows(np.repeat([[0.0], [1.0]], 15, axis=0), every, every)).all()
    assert np.isfinite(kernel_rows(np.array([[0.0], [1.0]]), every[:2], every[:2])).all()
    assert not kernel_rows(np.zeros((1, 1)), every[:1], every[:1]).any()


# Misfit ------------------------------------------------------------------------------------

SHAPES = {
    "moons": make_moons(400, noise=0.05, random_state=0),
    "rings": make_circles(400, noise=0.04, factor=0.4, random_state=0),
}


def misfit_of(X, labels, k):
    Y = smooth_directions(X - X.mean(axis=0), Affinity().fit_transform(X), 10)
    return gaussian_misfit(Y, labels, k)


@pytest.mark.parametrize("spread", [0.3, 0.6, 1.0])
def test_gaussians_describe_blobs(spread):
    X, y = make_blobs(400, centers=3, cluster_std=spread, random_state=0)
    assert misfit_of(X, y, 3).separate < 0.3


@pytest.mark.parametrize("shape", SHAPES)
def test_gaussians_describe_no_moons_or_rings(shape):
    X, y = SHAPES[shape]
    found = misfit_of(X, y, 2)
    assert min(found) > 0.25
    assert found.separate > 0.4


def test_a_mixture_describes_blobs_that_overlap():
    X, _ = make_blobs(500, centers=2, cluster_std=2.5, random_state=1)
    labels = (X[:, 0] > np.median(X[:, 0])).astype(int)  # a cut through both of them
    found = misfit_of(X, labels, 2)
    assert found.mixture < found.separate - 0.05
    assert found.mixture < 0.15


def test_many_samples_are_compared_at_some(monkeypatch):
    X, y = make_blobs(400, centers=3, random_state=0)
    exact = gaussian_misfit(X, y, 3)
    monkeypatch.setattr(mixture, "N_EVALUATED", 100)
    monkeypatch.setattr(mixture, "N_KERNELS", 300)
    assert_allclose(gaussian_misfit(X, y, 3), exact, atol=0.15)
    assert gaussian_misfit(X, y, 3) == gaussian_misfit(X, y, 3)


def test_the_misfit_of_identical_samples_is_finite():
    assert np.isfinite(gaussian_misfit(np.zeros((9, 2)), np.arange(9) % 2, 2)).all()
