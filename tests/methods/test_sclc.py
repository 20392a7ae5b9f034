"""SCLC: Eriksson, Olsson & Kahl 2007; Xu, Li & Schuurmans 2009."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh, null_space
from scipy.sparse import csr_array, load_npz
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise import Affinity, Constraints, NCut, metrics
from linkwise.exceptions import ConstraintsIgnoredWarning
from linkwise.methods.sclc import SCLC, _Halving, constrained_cut, sclc, signed_groups

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden"


def golden_case(data, pairs):
    if not GOLDEN.is_dir():
        pytest.skip(f"the golden graphs are not at {GOLDEN}")
    W = csr_array(load_npz(GOLDEN / "graphs" / f"{data}_W.npz"))
    with np.load(GOLDEN / "constraints" / f"{data}_{pairs}.npz") as stored:
        known = Constraints(W.shape[0], stored["must_link"], stored["cannot_link"])
    with np.load(GOLDEN / "graphs" / f"{data}_data.npz") as stored:
        return W, known, stored["y"]


def equations(constraints):
    """Return the rows e_i - e_j of the must-links and e_i + e_j of the cannot-links."""
    C = np.zeros((constraints.n_pairs, constraints.n_samples))
    for row, (i, j) in enumerate(constraints.must_link):
        C[row, i], C[row, j] = 1, -1
    for row, (i, j) in enumerate(constraints.cannot_link, start=len(constraints.must_link)):
        C[row, i] = C[row, j] = 1
    return C


def dense_solution(W, constraints):
    """Minimise over an explicit basis of the null space of all equations, x' D 1 = 0 included."""
    W = W.toarray()
    d = W.sum(axis=1)
    N = null_space(np.vstack([equations(constraints), d / np.linalg.norm(d)]))
    values, Z = eigh(N.T @ (np.diag(d) - W) @ N, N.T @ np.diag(d) @ N)
    return values, N @ Z


def rayleigh(W, x):
    d = np.asarray(W.sum(axis=1))
    return x @ (d * x - W @ x) / (x @ (d * x))


def selector(groups):
    R = np.zeros((groups.group.size, groups.group.max() + 1))
    R[np.arange(groups.group.size), groups.group] = groups.sign
    return R[:, np.abs(R).sum(axis=0) > 0]


def binary(y):
    return (y > 0).astype(int)


# --- the null space


def random_pairs(n, seed, n_pairs, *, balanced):
    rng = np.random.RandomState(seed)
    if balanced:
        return Constraints.sample(rng.randint(2, size=n), n_pairs, random_state=seed)
    i, j = np.triu_indices(n, 1)
    chosen = rng.permutation(i.size)[:n_pairs]
    is_must = rng.uniform(size=n_pairs) < 0.5
    pairs = np.column_stack([i, j])[chosen]
    return Constraints(n, pairs[is_must], pairs[~is_must])


@given(st.integers(2, 12), st.integers(0, 10_000), st.integers(0, 12), st.booleans())
def test_signed_groups_span_the_null_space(n, seed, n_pairs, balanced):
    # Contradictory groups included: their values can only be zero.
    known = random_pairs(n, seed, min(n_pairs, n * (n - 1) // 2), balanced=balanced)
    R = selector(signed_groups(known))
    N = null_space(equations(known)) if known.n_pairs else np.eye(n)
    assert R.shape == N.shape
    assert_allclose(equations(known) @ R, 0)
    assert_allclose(R, N @ (N.T @ R), atol=1e-10)


@given(st.integers(2, 12), st.integers(0, 10_000), st.integers(2, 4))
def test_labels_are_the_pairs_that_they_imply(n, seed, n_classes):
    rng = np.random.RandomState(seed)
    partial = rng.randint(-1, n_classes, size=n)
    labelled = Constraints.from_labels(partial)
    i, j = np.triu_indices(n, 1)
    both = (partial[i] >= 0) & (partial[j] >= 0)
    pairs, same = np.column_stack([i, j])[both], (partial[i] == partial[j])[both]
    listed = signed_groups(Constraints(n, pairs[same], pairs[~same]))
    groups = signed_groups(labelled)
    assert_array_equal(groups.group, listed.group)
    assert_allclose(selector(groups) @ selector(groups).T, selector(listed) @ selector(listed).T)


def test_contradictions_fall_back_to_must_links():
    ring = Constraints(6, must_link=[(2, 3)], cannot_link=[(0, 1), (1, 2), (0, 3), (4, 5)])
    groups = signed_groups(ring)
    assert_array_equal(groups.sign, [0, 0, 0, 0, 1, -1])
    without = groups.without_contradictions()
    assert_array_equal(without.group, [0, 1, 2, 2, 3, 3])
    assert_array_equal(without.sign, [1, 1, 1, 1, 1, -1])


# --- the minimum


@pytest.mark.parametrize("pairs", ["p10_s0", "p10_s1", "p50_s0", "p50_s1", "p100_s0", "p100_s1"])
def test_equals_the_dense_null_space_on_wine(pairs):
    W, _, y = golden_case("wine", pairs)
    n_pairs = int(pairs.partition("_")[0][1:])
    known = Constraints.sample(binary(y), n_pairs, random_state=int(pairs[-1]))
    result = sclc(W, known, 2, random_state=0)
    values, vectors = dense_solution(W, known)
    x = result.embedding[:, 0]
    assert result.eigenvalues[0] == pytest.approx(values[0], rel=1e-9)
    assert rayleigh(W, x) == pytest.approx(values[0], rel=1e-9)
    d = np.asarray(W.sum(axis=1))
    best = vectors[:, 0]
    assert abs(x @ (d * best)) / np.sqrt(x @ (d * x)) == pytest.approx(1, abs=1e-9)
    # Every equation, before any rounding.
    x = x / np.abs(x).max()
    assert np.abs(equations(known) @ x).max() <= 1e-8
    assert abs(d @ x) / d.sum() <= 1e-8
    assert known.n_violated(result.labels) == 0


@pytest.mark.parametrize("data", ["iris2", "breast_cancer", "moons2000h"])
@pytest.mark.parametrize("pairs", ["p10_s0", "p50_s1", "p100_s0"])
def test_no_pair_is_violated_on_the_golden_sets(data, pairs):
    W, known, y = golden_case(data, pairs)
    result = sclc(W, known, 2, random_state=0)
    x = result.embedding[:, 0] / np.abs(result.embedding).max()
    assert np.abs(equations(known) @ x).max() <= 1e-8
    assert known.n_violated(result.labels) == 0
    assert result.converged
    assert result.residuals.max() < 1e-5
    # The sign is one of the thresholds that were compared.
    by_sign = (x >= 0).astype(int)
    assert known.n_violated(by_sign) == 0
    assert result.objective <= metrics.ncut(W, by_sign) + 1e-12
    assert adjusted_rand_score(y, result.labels) > 0.4


@settings(max_examples=40)
@given(st.integers(0, 500), st.integers(1, 12), st.booleans())
def test_the_minimum_on_random_graphs(seed, n_pairs, dense):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(14, 14)) * (rng.uniform(size=(14, 14)) < 0.5), 1)
    W = W + W.T + np.eye(14, k=1) + np.eye(14, k=-1)
    known = random_pairs(14, seed, n_pairs, balanced=True)
    cut = constrained_cut(W if dense else csr_array(W), signed_groups(known), rng)
    values, _ = dense_solution(csr_array(W), known)
    assert cut.value == pytest.approx(values[0], abs=1e-9)
    assert rayleigh(W, cut.x) == pytest.approx(values[0], abs=1e-9)
    assert known.n_violated(cut.labels) == 0


def test_without_cannot_links_it_is_the_contracted_graph():
    # Two blobs and a bridge; must-links make a chain one vertex.
    X, _ = make_blobs(60, centers=2, cluster_std=3.0, random_state=0)
    W = Affinity(6).fit_transform(X)
    known = Constraints(60, must_link=[(0, 1), (1, 2), (7, 9)])
    group = known.components()
    R = np.eye(group.max() + 1)[group]
    small = R.T @ W.toarray() @ R  # loops count: they are part of the volume
    d = small.sum(axis=1)
    values = eigh(np.diag(d) - small, np.diag(d), eigvals_only=True)
    result = sclc(W, known, 2, random_state=0)
    assert result.eigenvalues[0] == pytest.approx(values[1], rel=1e-8)


@settings(max_examples=25)
@given(st.integers(0, 300), st.integers(1, 6))
def test_the_threshold_is_the_best_that_keeps_the_pairs(seed, n_pairs):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(20, 2))
    W = Affinity(4).fit_transform(X)
    known = random_pairs(20, seed, n_pairs, balanced=True)
    result = sclc(W, known, 2, random_state=0)
    x = result.embedding[:, 0]
    feasible = [
        metrics.ncut(W, labels)
        for labels in ((x > t).astype(int) for t in x)
        if known.n_violated(labels) == 0 and np.ptp(labels)
    ]
    assert result.objective == pytest.approx(min(feasible))


# --- more than two clusters


@pytest.mark.parametrize(("data", "k"), [("iris", 3), ("wine", 3), ("digits", 10)])
@pytest.mark.parametrize("pairs", ["p50_s0", "p100_s0"])
def test_must_links_hold_for_any_number_of_clusters(data, k, pairs):
    W, known, y = golden_case(data, pairs)
    result = sclc(W, known, k, random_state=0)
    assert np.unique(result.labels).size == k
    assert len(known.violated(result.labels).must_link) == 0
    assert adjusted_rand_score(y, result.labels) > 0.7
    # The last split goes where cannot-links are left.
    assert len(known.violated(result.labels).cannot_link) == 0
    assert result.embedding.shape == (len(y), k - 1)
    assert result.eigenvalues.shape == result.residuals.shape == (k - 1,)


def test_each_column_is_a_split_of_its_part():
    X, y = make_blobs(90, centers=3, cluster_std=1.0, random_state=3)
    known = Constraints.sample(y, 40, random_state=0)
    result = SCLC(3, random_state=0).fit(X, constraints=known).result_
    first, second = result.embedding.T
    assert (first != 0).all()
    part = second != 0
    # The second part is a side of the first split, and its labels are the sides of the second.
    assert np.unique(result.labels[part]).size == 2
    assert np.unique(result.labels[~part]).size == 1


def test_an_odd_ring_inside_a_part_does_not_force_zeros():
    # 40 of 60 samples are to become two clusters, but three of them exclude each other.
    X, _ = make_blobs(60, centers=3, cluster_std=2.0, random_state=0)
    W = Affinity(6).fit_transform(X)
    ring = Constraints(60, cannot_link=[(0, 1), (1, 2), (0, 2), (3, 4)])
    halving = _Halving(W, ring, 3, rng=np.random.RandomState(0))
    members = np.arange(40)
    labels = halving.split(W[:40, :40], members)
    (_, cut) = halving.cuts[members.tobytes()]
    assert (np.abs(cut.x[:3]) > 0).all()
    assert cut.x[3] == -cut.x[4] != 0
    assert labels[3] != labels[4]


def test_a_chain_of_must_links_is_never_split():
    X, _ = make_blobs(60, centers=4, cluster_std=0.5, random_state=1)
    chain = Constraints(60, must_link=[(i, i + 1) for i in range(0, 40, 2)])
    labels = SCLC(4, random_state=0).fit(X, constraints=chain).labels_
    assert chain.n_violated(labels) == 0
    assert np.unique(labels).size == 4


def test_as_many_clusters_as_groups():
    X = np.random.RandomState(0).normal(size=(9, 2))
    known = Constraints(9, must_link=[(0, 1), (1, 2), (3, 4), (5, 6), (6, 7)])
    labels = SCLC(4, random_state=0).fit(X, constraints=known).labels_
    assert_array_equal(labels, [0, 0, 0, 1, 1, 2, 2, 2, 3])


# --- what the constraints may be


def test_uncertain_pairs_are_ignored_with_a_warning():
    X, _ = load_wine(return_X_y=True)
    known = Constraints(178, cannot_link=[(0, 1)])
    both = Constraints(
        178, must_link=[(3, 100)], must_link_belief=0.9, cannot_link=known.cannot_link
    )
    certain = SCLC(2, random_state=0).fit(X, constraints=known)
    with pytest.warns(ConstraintsIgnoredWarning, match="1 pairs of belief below 1") as warned:
        mixed = SCLC(2, random_state=0).fit(X, constraints=both)
    assert warned[0].filename == __file__
    assert_array_equal(mixed.labels_, certain.labels_)


@pytest.mark.parametrize("k", [2, 3])
def test_without_constraints_it_is_ncut(k):
    X, _ = load_wine(return_X_y=True)
    assert_array_equal(
        SCLC(k, random_state=0).fit(X).labels_, NCut(k, random_state=0).fit(X).labels_
    )


def test_all_samples_labelled():
    X, y = make_blobs(40, centers=2, cluster_std=8.0, random_state=0)
    model = SCLC(2, random_state=0).fit(X, constraints=Constraints.from_labels(y))
    assert adjusted_rand_score(y, model.labels_) == 1
    # One group is left, and with it one vector: the labels.
    assert_allclose(np.abs(model.embedding_), np.abs(model.embedding_[0, 0]))


def test_labels_of_three_classes_in_three_clusters():
    X, y = make_blobs(90, centers=3, cluster_std=2.0, random_state=3)
    partial = np.where(np.arange(90) % 3 == 0, y, -1)
    known = Constraints.from_labels(partial)
    labels = SCLC(3, random_state=0).fit(X, constraints=known).labels_
    assert known.n_violated(labels) == 0


# --- corners


@settings(max_examples=60)
@given(st.integers(2, 6), st.integers(0, 1000), st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_tiny_graphs(n, seed, density, dense):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    W = W + W.T
    y = np.append([0, 1], rng.randint(2, size=n - 2))
    known = Constraints.sample(y, rng.randint(1, n * (n - 1) // 2 + 1), random_state=seed)
    for k in range(2, min(n, np.unique(known.components()).size) + 1):
        model = SCLC(k, affinity="precomputed", random_state=0)
        labels = model.fit(W if dense else csr_array(W), constraints=known).labels_
        assert np.isfinite(model.embedding_).all()
        assert set(labels) == set(range(k))
        if k == 2:
            assert known.n_violated(labels) == 0
        else:
            assert len(known.violated(labels).must_link) == 0


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_isolated_vertices_obey_their_pairs():
    W = np.kron(np.eye(2), np.ones((4, 4)))
    np.fill_diagonal(W, 0)
    W = np.pad(W, (0, 3))
    known = Constraints(11, must_link=[(8, 0)], cannot_link=[(9, 10), (0, 4)])
    labels = SCLC(2, affinity="precomputed").fit(csr_array(W), constraints=known).labels_
    assert known.n_violated(labels) == 0
    assert_array_equal(labels[:8], np.repeat([0, 1], 4))


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_all_the_volume_on_one_side():
    # No threshold has a finite cut.
    W = np.zeros((4, 4))
    W[1, 2] = W[2, 1] = 1
    known = Constraints(4, cannot_link=[(0, 1), (0, 2), (0, 3)])
    labels = SCLC(2, affinity="precomputed").fit(W, constraints=known).labels_
    assert_array_equal(labels, [0, 1, 1, 1])


@pytest.mark.parametrize("factor", [1e-100, 1e100])
@pytest.mark.parametrize("k", [2, 3])
def test_units_do_not_matter(factor, k):
    X, y = make_blobs(60, centers=3, cluster_std=2.0, random_state=3)
    W = Affinity(6).fit_transform(X)
    known = Constraints.sample(y if k == 3 else binary(y), 20, random_state=0)
    here, there = (sclc(c * W, known, k, random_state=0) for c in (1.0, factor))
    assert_array_equal(here.labels, there.labels)
    assert_allclose(here.eigenvalues, there.eigenvalues, rtol=1e-9)
    assert_allclose(here.embedding, there.embedding, atol=1e-6)


def test_no_vector_of_signs_is_cheaper_than_the_bound():
    # The relaxation is below every balanced cut that obeys the pairs: all 2^8 of them.
    rng = np.random.RandomState(0)
    W = rng.uniform(size=(8, 8))
    W = np.triu(W, 1) + np.triu(W, 1).T
    W = W / np.sqrt(np.outer(W.sum(axis=1), W.sum(axis=1)))
    for _ in range(200):  # equal degrees, so that balance is a matter of counting
        W = W / np.sqrt(np.outer(W.sum(axis=1), W.sum(axis=1)))
    known = Constraints(8, must_link=[(0, 1)], cannot_link=[(2, 3), (4, 5)])
    result = sclc(csr_array(W), known, 2, random_state=0)
    cuts = [
        metrics.ncut(W, np.array(labels))
        for labels in product([0, 1], repeat=8)
        if sum(labels) == 4 and known.n_violated(labels) == 0
    ]
    # A balanced cut of value c has x'Lx / x'Dx = c: both volumes are half of all.
    assert result.eigenvalues[0] <= min(cuts) + 1e-12
    assert result.objective >= result.eigenvalues[0]
