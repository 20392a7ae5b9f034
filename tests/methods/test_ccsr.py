"""CCSR: Li, Liu & Tang 2009."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Constraints, NCut
from linkwise.exceptions import TooLargeError
from linkwise.linalg import cone
from linkwise.methods.ccsr import CCSR, ccsr, criterion


def standardized(load):
    X, y = load(return_X_y=True)
    return Affinity().fit_transform(StandardScaler().fit_transform(X)), y


@pytest.fixture(scope="module")
def wine():
    return standardized(load_wine)


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(60, centers=3, cluster_std=2.5, random_state=1)
    return Affinity().fit_transform(X), y


def first_eigenvectors(W, m):
    """Return ``F`` with ``F' F = n I``, from the dense normalised Laplacian."""
    W = W.toarray()
    d = W.sum(axis=1)
    _, z = np.linalg.eigh(np.eye(len(d)) - W / np.sqrt(np.outer(d, d)))
    return np.sqrt(len(d)) * z[:, :m]


def paper_objective(M, F, known):
    """Sum ``(f_i' M f_j - t_ij)^2`` over the diagonal and the pairs, one by one."""
    total = sum((f @ M @ f - 1) ** 2 for f in F)
    pairs, signed = known.signed_pairs()
    for (i, j), sign in zip(pairs, signed, strict=True):
        total += abs(sign) * (F[i] @ M @ F[j] - (sign > 0)) ** 2
    return total


def ncut_metric(m, k):
    return np.diag(np.r_[np.ones(k) / k, np.zeros(m - k)])


def by_lbfgs(form, m, n_starts=3):
    """Minimise over ``M = R R'`` without a cone, from several starts."""

    def factored(entries):
        R = entries.reshape(m, m)
        x = cone.to_vector(R @ R.T)
        return form.at(x), (4 * cone.to_matrix(form.H @ x - form.g, m) @ R).ravel()

    rng = np.random.RandomState(0)
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-13, "gtol": 1e-9}
    return min(
        minimize(
            factored, rng.normal(size=m * m) / m, jac=True, method="L-BFGS-B", options=options
        ).fun
        for _ in range(n_starts)
    )


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_criterion_is_that_of_the_paper(blobs, ridge):
    W, y = blobs
    known = Constraints.sample(y, 20, random_state=0).with_belief(0.7)
    F, k = first_eigenvectors(W, 5), 3
    form = criterion(F, known, ridge=ridge, towards=ncut_metric(5, k))
    M = np.random.RandomState(0).normal(size=(5, 5))
    M = M @ M.T
    pull = ridge * 60 * ((M - ncut_metric(5, k)) ** 2).sum()
    assert_allclose(form.at(cone.to_vector(M)), paper_objective(M, F, known) + pull)


@pytest.mark.parametrize(
    ("load", "share", "ridge"), [(load_iris, 0.5, 0.0), (load_wine, 0.2, 0.0), (load_wine, 1, 0.3)]
)
def test_objective_is_that_of_an_independent_solver(load, share, ridge):
    W, y = standardized(load)
    known = Constraints.sample(y, int(share * len(y)), random_state=0)
    m, k = 8, 3
    result = ccsr(W, known, k, n_components=m, ridge=ridge, random_state=0)
    F = first_eigenvectors(W, m)
    form = criterion(F, known, ridge=ridge, towards=ncut_metric(m, k))
    assert_allclose(result.objective, by_lbfgs(form, m), rtol=1e-5)
    assert result.converged
    # The certificate: the last residual is the duality gap relative to the objective.
    assert result.residuals.shape == (m + 1,)
    assert result.residuals[-1] <= 1e-6


def test_embedding_has_the_learnt_inner_products(wine):
    W, y = wine
    known = Constraints.sample(y, 100, random_state=0)
    m, k = 10, 3
    result = ccsr(W, known, k, n_components=m, ridge=0.1, random_state=0)
    F, E = first_eigenvectors(W, m), result.embedding
    # F M F' = E E' gives M, as F' F = n I: it is optimal.
    M = F.T @ E @ E.T @ F / len(y) ** 2
    form = criterion(F, known, ridge=0.1, towards=ncut_metric(m, k))
    assert_allclose(F @ M @ F.T, E @ E.T, atol=1e-6)
    assert_allclose(form.at(cone.to_vector(M)), result.objective, rtol=1e-6)
    assert_allclose(np.linalg.eigvalsh(M)[::-1], result.eigenvalues, atol=1e-7)
    Z = cone.to_matrix(form.H @ cone.to_vector(M) - form.g, m)
    scale = np.abs(form.g).max()
    assert np.linalg.eigvalsh(Z)[0] > -1e-3 * scale
    assert abs((Z * M).sum()) < 1e-3 * scale


def test_the_bound_on_the_trace_holds(wine):
    W, y = wine
    for ridge in (0.0, 0.3):
        for n_pairs in (0, 20, 300):
            known = Constraints.sample(y, n_pairs, random_state=0)
            result = ccsr(W, known, 3, ridge=ridge, random_state=0)
            n_must = len(known.must_link)
            # ridge * n * |M_0|^2 with M_0 = I / 3 on three vectors.
            at_zero = len(y) + n_must + ridge * len(y) / 3
            assert result.eigenvalues.sum() <= 1 + np.sqrt(at_zero / len(y))
            assert result.objective <= at_zero


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_without_constraints_it_is_about_ncut(load):
    W, y = standardized(load)
    k = len(np.unique(y))
    plain = NCut(k, affinity="precomputed", random_state=0).fit(W).labels_
    free = ccsr(W, Constraints(len(y)), k, random_state=0).labels
    assert adjusted_rand_score(plain, free) > 0.85
    assert adjusted_rand_score(y, free) > adjusted_rand_score(y, plain) - 0.05


def test_a_strong_ridge_keeps_the_embedding_of_ncut(wine):
    W, y = wine
    known = Constraints.sample(y, 50, random_state=0)
    result = ccsr(W, known, 3, ridge=1e6, random_state=0)
    assert_allclose(result.eigenvalues, [1 / 3] * 3 + [0] * 12, atol=1e-3)
    F = first_eigenvectors(W, 3)
    assert_allclose(result.embedding @ result.embedding.T, F @ F.T / 3, atol=0.05)


def test_the_ridge_prevents_what_few_pairs_do_to_the_criterion_of_the_paper(wine):
    W, y = wine
    scores = {0.0: [], 0.3: []}
    for seed in range(4):
        known = Constraints.sample(y, len(y) // 10, random_state=seed)
        for ridge, found in scores.items():
            labels = ccsr(W, known, 3, ridge=ridge, random_state=0).labels
            found.append(adjusted_rand_score(y, labels))
    assert np.mean(scores[0.0]) < 0.7
    assert min(scores[0.3]) > 0.85


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_many_pairs_are_learnt(load):
    W, y = standardized(load)
    known = Constraints.sample(y, 2 * len(y), random_state=0)
    labels = ccsr(W, known, len(np.unique(y)), random_state=0).labels
    assert adjusted_rand_score(y, labels) > 0.8


@pytest.mark.parametrize("factor", [1e-100, 1e-10, 1e10, 1e100])
def test_the_unit_of_the_graph_does_not_matter(wine, factor):
    W, y = wine
    known = Constraints.sample(y, 40, random_state=0)
    here, there = (ccsr(c * W, known, 3, random_state=0) for c in (1.0, factor))
    assert_allclose(there.objective, here.objective, rtol=1e-6)
    assert_array_equal(there.labels, here.labels)


@pytest.mark.parametrize("n_components", [1, 2, 3, 10, 25, 80])
def test_fewer_vectors_than_clusters_and_more_than_samples(n_components):
    X, y = make_blobs(25, centers=3, random_state=1)
    known = Constraints.sample(y, 10, random_state=0)
    result = ccsr(Affinity(5).fit_transform(X), known, 3, n_components=n_components, random_state=0)
    assert result.embedding.shape == (25, min(25, max(3, n_components)))
    assert set(result.labels) == {0, 1, 2}


def test_too_many_vectors_are_refused():
    W = csr_array(np.ones((120, 120)) - np.eye(120))
    with pytest.raises(TooLargeError, match=r"with 110 eigenvectors.*the limit is 100"):
        CCSR(2, affinity="precomputed", n_components=110).fit(W)
    with pytest.raises(TooLargeError, match="n_clusters=101"):
        CCSR(101, affinity="precomputed").fit(W)


def test_beliefs_weigh_the_pairs(wine):
    W, y = wine
    wrong = Constraints(len(y), must_link=[(0, 170)], must_link_belief=1e-9)
    assert_allclose(
        ccsr(W, wrong, 3, random_state=0).objective,
        ccsr(W, Constraints(len(y)), 3, random_state=0).objective,
        rtol=1e-6,
    )


@pytest.mark.parametrize("n", range(2, 7))
def test_tiny_graphs(n):
    W = csr_array(np.ones((n, n)) - np.eye(n))
    known = Constraints(n, cannot_link=[(0, n - 1)])
    result = ccsr(W, known, 2, random_state=0)
    assert set(result.labels) == {0, 1}
    assert np.isfinite(result.embedding).all()
    assert result.converged


def test_pieces_and_isolated_samples():
    W = np.zeros((12, 12))
    W[:5, :5] = W[5:9, 5:9] = 1
    np.fill_diagonal(W, 0)
    W = csr_array(W)
    assert_array_equal(ccsr(W, Constraints(12), 2, random_state=0).labels, [0] * 5 + [1] * 7)
    known = Constraints(12, must_link=[(0, 9)], cannot_link=[(0, 5)])
    labels = ccsr(W, known, 2, ridge=0.0, random_state=0).labels
    assert labels[0] == labels[9] != labels[5]


def test_copies_of_one_sample():
    X = np.repeat([[0.0], [1.0], [5.0], [6.0]], 5, axis=0)
    known = Constraints(20, must_link=[(0, 5)], cannot_link=[(0, 10)])
    labels = CCSR(2, random_state=0).fit_predict(X, constraints=known)
    assert_array_equal(labels, [0] * 10 + [1] * 10)
