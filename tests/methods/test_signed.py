"""Signed Laplacian cSC: Wacquet, Poisson Caillault, Hamad & Hebert 2013."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Constraints, NCut, SignedCSC
from linkwise.linalg.eigen import largest
from linkwise.linalg.laplacian import absolute_degrees
from linkwise.methods import ncut
from linkwise.methods.ncut import ratio_sum
from linkwise.methods.signed import (
    VIOLATION_PENALTY,
    best_sign_pattern,
    rounding_score,
    signed_csc,
    sound_rounding,
    violated_weight,
)
from linkwise.partition import kmeans, unit_rows
from theory import signed_normalized_adjacency


def random_signed_graph(n, seed):
    rng = np.random.RandomState(seed)
    A = np.triu(rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.6), 1)
    return A + A.T


def signed_ncut(A, labels):
    """``sum_c (positive weight leaving c + negative weight inside c) / absolute volume of c``."""
    return ratio_sum(A, labels, absolute_degrees(A))


def slow_signed_ncut(A, labels):
    total = 0.0
    for c in np.unique(labels):
        inside = labels == c
        volume = np.abs(A[inside]).sum()
        leaving = np.maximum(A, 0)[np.ix_(inside, ~inside)].sum()
        quarrel = np.maximum(-A, 0)[np.ix_(inside, inside)].sum()
        total += (leaving + quarrel) / volume if volume else 0.0
    return total


def test_embedding_solves_equations_41_to_44():
    X, y = make_blobs(60, centers=3, cluster_std=2, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 30, random_state=0)
    gamma, scale = 0.3, W.max()
    result = signed_csc(W, known, 3, gamma=gamma, random_state=0)
    W_csc = gamma * W.toarray() + (1 - gamma) * scale * known.to_matrix().toarray()  # (41)
    d = np.abs(W_csc).sum(axis=1)  # (43)
    L = np.diag(d) - W_csc  # (42)
    normalized = L / np.sqrt(np.outer(d, d))
    values, z = np.linalg.eigh(normalized)
    rows = z[:, :3] / np.linalg.norm(z[:, :3], axis=1, keepdims=True)
    assert_allclose(result.eigenvalues, values[:3], atol=1e-7)
    assert_allclose(result.embedding @ result.embedding.T, rows @ rows.T, atol=1e-5)
    assert result.objective == pytest.approx(slow_signed_ncut(W_csc, result.labels))


def test_gamma_one_is_ncut():
    X, y = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    known = Constraints.sample(y, 40, random_state=0)
    signed = SignedCSC(3, gamma=1, random_state=0).fit(X, constraints=known)
    plain = NCut(3, random_state=0).fit(X)
    assert_array_equal(signed.labels_, plain.labels_)
    assert signed.result_.objective == pytest.approx(plain.result_.objective)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_without_constraints_it_is_ncut(k):
    X, _ = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    assert_array_equal(
        SignedCSC(k, random_state=0).fit(X).labels_, NCut(k, random_state=0).fit(X).labels_
    )


def test_constraints_alone_when_gamma_is_zero():
    # A ring of must-links and cannot-links that is balanced: the first eigenvector is the split.
    known = Constraints(6, [(0, 1), (1, 2), (3, 4), (4, 5)], [(2, 3), (0, 5)])
    W = csr_array(np.ones((6, 6)) - np.eye(6))
    result = signed_csc(W, known, 2, gamma=0, random_state=0)
    assert_array_equal(result.labels, [0, 0, 0, 1, 1, 1])
    assert result.eigenvalues[0] == pytest.approx(0, abs=1e-8)
    assert result.objective == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("seed", range(3))
def test_many_pairs_are_learnt(load, seed):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=seed)
    model = SignedCSC(len(np.unique(y)), random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) >= 0.9


def test_the_rule_of_the_paper_collapses_when_cannot_links_abound():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    known = Constraints.sample(y, 2 * len(y), random_state=0)
    paper = SignedCSC(2, selection="paper", random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, paper.labels_) < 0.2


def test_the_rule_of_the_paper_is_the_sign_of_the_second_vector():
    X, y = make_blobs(60, centers=2, cluster_std=2, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 10, random_state=0)
    result = signed_csc(W, known, 2, selection="paper", random_state=0)
    sides = result.embedding[:, 1] >= 0
    assert adjusted_rand_score(sides, result.labels) == 1


@given(st.integers(2, 12), st.integers(0, 1000), st.integers(1, 4))
def test_signed_ncut_equals_its_slow_twin(n, seed, k):
    A = random_signed_graph(n, seed)
    labels = np.random.RandomState(seed).randint(k, size=n)
    expected, d = slow_signed_ncut(A, labels), absolute_degrees(A)
    assert_allclose(ratio_sum(A, labels, d), expected, atol=1e-12)
    assert_allclose(ratio_sum(csr_array(A), labels, d), expected, atol=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ncut, "SMALL_GRAPH", -1)  # the kernel, as for graphs of many edges
        assert_allclose(ratio_sum(csr_array(A), labels, d), expected, atol=1e-12)


@given(st.integers(3, 12), st.integers(0, 1000))
def test_violated_weight_counts_broken_pairs(n, seed):
    Q = np.sign(random_signed_graph(n, seed))
    labels = np.random.RandomState(seed).randint(2, size=n)
    broken = sum(
        1
        for i in range(n)
        for j in range(i)
        if (Q[i, j] > 0 and labels[i] != labels[j]) or (Q[i, j] < 0 and labels[i] == labels[j])
    )
    assert violated_weight(csr_array(Q), labels) == broken


@given(st.integers(3, 14), st.integers(0, 1000))
def test_best_sign_pattern_equals_trying_every_line(n, seed):
    rng = np.random.RandomState(seed)
    A, Q = random_signed_graph(n, seed), csr_array(np.sign(random_signed_graph(n, seed + 1)))
    z = rng.normal(size=(n, 2))
    # Between two neighbouring angles at which the line meets a sample, the split is the same.
    meets = np.sort(np.arctan2(z[:, 1], z[:, 0]) % np.pi)
    turns = np.append((meets[1:] + meets[:-1]) / 2, (meets[-1] + meets[0] + np.pi) / 2)
    splits = [(z @ [-np.sin(t), np.cos(t)] >= 0).astype(int) for t in turns]
    costs = [
        slow_signed_ncut(A, s) + VIOLATION_PENALTY * violated_weight(Q, s) / np.abs(A).sum()
        for s in splits
        if np.abs(A[s == 0]).sum() > 0 and np.abs(A[s == 1]).sum() > 0
    ]
    labels = best_sign_pattern(A, Q, z)
    if costs:
        assert_allclose(rounding_score(csr_array(A), Q, labels), min(costs), atol=1e-9)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_sound_rounding_is_never_beaten_by_a_candidate(k, seed):
    # Overlapping clusters and noisy pairs, where the candidates differ.
    X, y = make_blobs(150, centers=k, cluster_std=4.5, random_state=seed)
    known = Constraints.sample(y, 60, random_state=seed).with_belief(0.9)
    W = Affinity().fit_transform(X)
    Q = csr_array(0.5 * W.max() * known.to_matrix())
    A = csr_array(0.5 * W + Q)
    z = largest(signed_normalized_adjacency(A), k, np.random.RandomState(0)).vectors
    found = sound_rounding(A, Q, z, rng=np.random.RandomState(0))
    candidates = [kmeans(V, k, np.random.RandomState(0)).labels for V in (unit_rows(z), z)]
    if k == 2:
        candidates.append(best_sign_pattern(A, Q, z))
    scores = [rounding_score(A, Q, labels) for labels in candidates]
    assert rounding_score(A, Q, found) == pytest.approx(min(scores), abs=1e-9)


def test_every_kind_of_candidate_wins_somewhere():
    winners = set()
    for seed in range(40):
        k = 2 + seed % 2
        X, y = make_blobs(120, centers=k, cluster_std=5.0, random_state=seed)
        known = Constraints.sample(y, 40, random_state=seed).with_belief(0.9)
        W = Affinity().fit_transform(X)
        Q = csr_array(0.5 * W.max() * known.to_matrix())
        A = csr_array(0.5 * W + Q)
        z = largest(signed_normalized_adjacency(A), k, np.random.RandomState(0)).vectors
        candidates = {"unit": kmeans(unit_rows(z), k, np.random.RandomState(0)).labels}
        candidates["raw"] = kmeans(z, k, np.random.RandomState(0)).labels
        if k == 2:
            candidates["line"] = best_sign_pattern(A, Q, z)
        found = sound_rounding(A, Q, z, rng=np.random.RandomState(0))
        same = {name for name, c in candidates.items() if adjusted_rand_score(c, found) == 1}
        if len(same) == 1:
            winners |= same
    assert winners == {"unit", "raw", "line"}


@pytest.mark.parametrize("belief", [1e-12, 1e-6, 1e-3])
def test_a_faint_wrong_pair_does_not_split_a_cluster(belief):
    X, y = make_blobs(200, centers=[[-4, 0], [4, 0]], cluster_std=1.0, random_state=0)
    i, j = np.flatnonzero(y == 0)[:2]
    wrong = Constraints(200, cannot_link=[(i, j)], cannot_link_belief=belief)
    labels = SignedCSC(2, random_state=0).fit(X, constraints=wrong).labels_
    assert adjusted_rand_score(y, labels) == 1


def test_few_correct_pairs_do_no_harm():
    X, y = load_breast_cancer(return_X_y=True)
    W = Affinity().fit_transform(StandardScaler().fit_transform(X))
    without = adjusted_rand_score(y, NCut(2, affinity="precomputed", random_state=0).fit(W).labels_)
    for seed in range(8):
        known = Constraints.sample(y, 11, random_state=seed)
        labels = (
            SignedCSC(2, affinity="precomputed", random_state=0).fit(W, constraints=known).labels_
        )
        assert adjusted_rand_score(y, labels) > without - 0.05


def test_violated_constraints_cost_extra_in_the_rounding():
    A, Q = random_signed_graph(9, 0), csr_array(np.sign(random_signed_graph(9, 1)))
    labels = np.array([0, 1, 0, 1, 1, 0, 0, 1, 1])
    extra = rounding_score(csr_array(A), Q, labels) - slow_signed_ncut(A, labels)
    assert extra == pytest.approx(VIOLATION_PENALTY * violated_weight(Q, labels) / np.abs(A).sum())
    assert extra > 0
