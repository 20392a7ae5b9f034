"""Partitions: k-means, signs, thresholds, repeated halving."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs

from linkwise import partition
from linkwise.metrics import cut, ncut, rcut
from linkwise.partition import (
    best_threshold,
    kmeans,
    recursive_bisection,
    relabelled,
    sign_split,
    unit_rows,
)


def rng(seed=0):
    return np.random.RandomState(seed)


def random_graph(n, seed=0, density=0.4):
    """Symmetric, non-negative, with loops: they count in the volume and in no cut."""
    W = rng(seed).rand(n, n) * (rng(seed + 1).rand(n, n) < density)
    return np.maximum(W, W.T)


def both_kinds(W):
    return [W, csr_array(W)]


# --- rows ------------------------------------------------------------------------------------


def test_unit_rows_have_length_one_and_zeros_stay():
    V = np.array([[3.0, 4.0], [0.0, 0.0], [1e-200, 0.0], [1e200, 1e200], [-2.0, 0.0]])
    half = np.sqrt(0.5)
    assert_allclose(unit_rows(V), [[0.6, 0.8], [0, 0], [1, 0], [half, half], [-1, 0]])


def test_unit_rows_leaves_its_input_alone():
    V = np.array([[3.0, 4.0]])
    unit_rows(V)
    assert_array_equal(V, [[3.0, 4.0]])


@given(st.lists(st.integers(-3, 3), max_size=12))
def test_canonical_numbers_by_first_appearance(labels):
    seen = {}
    expected = [seen.setdefault(label, len(seen)) for label in labels]
    assert_array_equal(relabelled(np.array(labels, dtype=int)), expected)


@pytest.mark.parametrize("kind", [">i8", "<i4", "u1", "f4"])
def test_canonical_takes_numbers_of_any_kind(kind):
    assert relabelled(np.array([2, 0, 2, 1], dtype=kind)).tolist() == [0, 1, 0, 2]


def test_canonical_takes_strings():
    assert relabelled(np.array(["b", "a", "b"])).tolist() == [0, 1, 0]


def test_sign_split_puts_zeros_with_the_positive():
    assert sign_split(np.array([-1.0, -0.0, 0.0, 2.0])).tolist() == [0, 1, 1, 1]


# --- k-means ---------------------------------------------------------------------------------


def assert_partition_of(V, found, k):
    """Labels, centres and inertia tell the same story, and there are k clusters."""
    assert_array_equal(found.labels, relabelled(found.labels))
    assert np.unique(found.labels).size == len(found.centers) == k
    for c in range(k):
        assert_allclose(found.centers[c], V[found.labels == c].mean(axis=0), atol=1e-9)
    spread = V - found.centers[found.labels]
    inertia = sum(np.sum(difference**2) for difference in spread)
    assert_allclose(found.inertia, inertia, rtol=1e-9, atol=1e-12)


def best_partition_by_enumeration(V, k):
    """Lowest inertia of all k^n labellings."""
    best = np.inf
    for code in range(k ** len(V)):
        labels = code // k ** np.arange(len(V)) % k
        parts = [V[labels == c] for c in range(k)]
        if all(len(part) for part in parts):
            best = min(best, sum(((p - p.mean(axis=0)) ** 2).sum() for p in parts))
    return best


@pytest.mark.parametrize("seed", range(5))
def test_kmeans_finds_the_optimum_of_tiny_problems(seed):
    V = rng(seed).normal(size=(8, 2))
    found = kmeans(V, 3, rng(seed))
    assert_partition_of(V, found, 3)
    assert_allclose(found.inertia, best_partition_by_enumeration(V, 3))


@pytest.mark.parametrize("n", [60, 12_000])
@pytest.mark.parametrize("seed", range(3))
def test_kmeans_finds_separate_groups_in_any_order(n, seed):
    V, y = make_blobs(n, 5, centers=6, cluster_std=0.5, random_state=1)
    order = rng(seed).permutation(n)
    assert_array_equal(kmeans(V[order], 6, rng(seed)).labels, relabelled(y[order]))


@pytest.mark.parametrize("seed", range(5))
def test_kmeans_finds_two_far_rows_among_many(seed):
    # A random sample of 5,000 of 12,000 rows misses both in one of three cases.
    V = rng().normal(size=(12_000, 3))
    V[:2] += 60
    found = kmeans(V, 2, rng(seed))
    assert_array_equal(found.labels, np.arange(12_000) >= 2)


def test_kmeans_is_not_fooled_by_an_outlier():
    # The outlier is the first farthest-first row; the random starts must win against it.
    V = np.concatenate([rng().normal(size=(50, 2)), rng(1).normal(size=(50, 2)) + 30, [[80, 80]]])
    found = kmeans(V, 2, rng())
    assert_array_equal(found.labels[:100], np.repeat([0, 1], 50))


def test_kmeans_never_does_worse_than_its_farthest_first_start():
    # Many small groups: random starts alone often miss one.
    V, y = make_blobs(300, 2, centers=np.arange(30)[:, None] * [7.0, 0], random_state=0)
    for seed in range(3):
        assert_array_equal(kmeans(V, 30, rng(seed), n_init=1).labels, relabelled(y))


def test_kmeans_takes_rows_as_they_are():
    # One direction, two lengths: unit rows would all be equal.
    V = np.array([[1.0, 1.0], [1.1, 1.1], [9.0, 9.0], [9.1, 9.1]])
    assert kmeans(V, 2, rng()).labels.tolist() == [0, 0, 1, 1]


def test_kmeans_same_seed_same_answer():
    V = rng().normal(size=(200, 4))
    first, second = kmeans(V, 5, rng(1)), kmeans(V, 5, rng(1))
    assert_array_equal(first.labels, second.labels)
    assert_array_equal(first.centers, second.centers)


@pytest.mark.parametrize("k", [3, 4, 5, 9])
def test_equal_rows_are_never_separated(k):
    # Three distinct rows: with k above 3 there are three clusters, and no warning.
    distinct = np.array([[0.0, 1.0], [2.0, 0.0], [5.0, 5.0]])
    which = np.array([2, 0, 0, 1, 2, 1, 0])
    found = kmeans(distinct[which], k, rng())
    assert_partition_of(distinct[which], found, 3)
    assert_array_equal(found.labels, relabelled(which))
    assert found.inertia == 0


def test_rows_that_differ_by_rounding_are_equal():
    V = np.full((6, 2), 1 / np.sqrt(6)) + 1e-16 * rng().normal(size=(6, 2))
    assert kmeans(V, 3, rng()).labels.tolist() == [0] * 6


@pytest.mark.parametrize("k", [2, 3, 4])
def test_kmeans_gives_k_clusters_when_rows_nearly_coincide(k):
    # Differences of 1e-9 are real, but below what |x|^2 - 2xy + |y|^2 can see.
    V = np.concatenate([np.zeros((5, 1)), np.full((5, 1), 1.0), [[1 + 1e-9]], [[2e-9]]])
    assert_partition_of(V, kmeans(V, k, rng()), k)


def test_kmeans_falls_back_on_its_seeds_when_a_cluster_is_lost(monkeypatch):
    V = np.array([[0.0], [0.1], [5.0], [9.0]])
    lost = partition.KMeansPartition(np.zeros(4, dtype=np.intp), V[:3], 0.0, 1)
    monkeypatch.setattr("linkwise.partition.lloyd._lloyd", lambda *args, **kwargs: lost)
    assert_partition_of(V, kmeans(V, 3, rng()), 3)


@pytest.mark.parametrize(
    ("V", "k", "labels"),
    [
        ([[1.0]], 1, [0]),
        ([[1.0]], 3, [0]),
        ([[1.0], [2.0]], 1, [0, 0]),
        ([[1.0], [2.0]], 2, [0, 1]),
        ([[1.0], [1.0]], 2, [0, 0]),
        ([[1.0], [2.0]], 5, [0, 1]),
        ([[0.0, 0.0], [0.0, 0.0]], 2, [0, 0]),
    ],
)
def test_kmeans_on_almost_nothing(V, k, labels):
    V = np.array(V)
    found = kmeans(V, k, rng())
    assert_partition_of(V, found, max(labels) + 1)
    assert found.labels.tolist() == labels


@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_number_of_clusters_is_k_or_the_number_of_distinct_rows(k, n, seed):
    V = rng(seed).randint(0, 3, size=(n, 2)).astype(float)
    assert_partition_of(V, kmeans(V, k, rng(seed)), min(k, len(np.unique(V, axis=0))))


# --- thresholds ------------------------------------------------------------------------------


def threshold_cost(W, above, objective, b):
    """Written as in a textbook."""
    between = sum(W[i, j] for i in np.flatnonzero(above) for j in np.flatnonzero(~above))
    sides = b[above].sum(), b[~above].sum()
    if min(sides) <= 0:
        return np.inf
    if objective.endswith("cheeger"):
        return between / min(sides)
    return between / sides[0] + between / sides[1]


def all_thresholds(W, v, objective, b):
    return {t: threshold_cost(W, v > t, objective, b) for t in np.unique(v)[:-1]}


OBJECTIVES = ["ncut", "rcut", "ncheeger", "rcheeger"]


@given(
    st.integers(2, 12),
    st.integers(0, 2**31 - 2),
    st.sampled_from(OBJECTIVES),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_best_threshold_equals_enumeration(n, seed, objective, tied, weighted):
    W = random_graph(n, seed)
    v = rng(seed).randint(0, 4, size=n) / 2 if tied else rng(seed).normal(size=n)
    b = W.sum(axis=1) if objective.startswith("n") else np.ones(n)
    if weighted:
        b = rng(seed).rand(n)
    costs = all_thresholds(W, v, objective, b)
    best = min(costs.values(), default=np.inf)
    for kind in both_kinds(W):
        found = best_threshold(kind, v, objective=objective, weights=b if weighted else None)
        assert_allclose(found.objective, best, atol=1e-12)
        assert_array_equal(found.labels, v > found.value)
        if np.isfinite(best):
            assert_allclose(costs[found.value], best, atol=1e-12)
        else:
            assert not found.labels.any()


@pytest.mark.parametrize("seed", range(5))
def test_threshold_objective_is_the_metric_of_its_labels(seed):
    W, v = csr_array(random_graph(40, seed)), rng(seed).normal(size=40)
    by_volume, by_size = best_threshold(W, v), best_threshold(W, v, objective="rcut")
    assert_allclose(by_volume.objective, ncut(W, by_volume.labels), rtol=1e-12)
    assert_allclose(by_size.objective, rcut(W, by_size.labels), rtol=1e-12)


def test_threshold_of_a_path_by_hand():
    # 0 -1- 1 -.1- 2 -1- 3: the middle cut costs .1 / 2.1 on each side.
    path = np.diag([1.0, 0.1, 1.0], 1)
    found = best_threshold(path + path.T, np.array([4.0, 3.0, 2.0, 1.0]))
    assert found.labels.tolist() == [1, 1, 0, 0]
    assert found.value == 2.0
    assert_allclose(found.objective, 0.2 / 2.1)
    cheeger = best_threshold(path + path.T, np.arange(4.0), objective="rcheeger")
    assert_allclose(cheeger.objective, 0.1 / 2)


def test_threshold_between_components_costs_exactly_nothing():
    # A running sum of such weights would end in 1e-17 in place of 0.
    blocks = np.kron(np.eye(2), random_graph(15, density=1.0))
    assert best_threshold(csr_array(blocks), np.arange(30.0)).objective == 0.0


def test_threshold_value_lies_below_neighbouring_floats():
    # The mean of two neighbouring floats is one of them; the lower value itself is safe.
    v = np.array([1.0, np.nextafter(1.0, 2.0)])
    for kind in both_kinds(np.array([[0.0, 1.0], [1.0, 0.0]])):
        assert best_threshold(kind, v).labels.tolist() == [0, 1]
        assert best_threshold(kind, v).objective == 2.0


@pytest.mark.parametrize("v", [[2.0], [2.0, 2.0], [2.0, 2.0, 2.0]])
def test_constant_vector_is_not_cut(v):
    found = best_threshold(np.ones((len(v), len(v))), np.array(v))
    assert (found.labels.tolist(), found.value, found.objective) == ([0] * len(v), 2.0, np.inf)


def test_threshold_leaves_no_side_without_volume():
    # Vertex 0 is isolated: cutting it off is 0 / 0, not a cut.
    W = np.zeros((4, 4))
    W[1, 2] = W[2, 1] = W[2, 3] = W[3, 2] = 1.0
    for kind in both_kinds(W):
        assert best_threshold(kind, np.arange(4.0)).labels.tolist() in ([0, 0, 1, 1], [0, 0, 0, 1])
        assert best_threshold(kind * 0, np.arange(4.0)).objective == np.inf


@pytest.mark.parametrize("seed", range(5))
def test_offset_makes_the_penalised_cut_of_rangapuram_and_hein(seed):
    # Eq. 1: (cut + gamma (M + N)) / bal, with cut, M and N counting both directions,
    # and bal = 2 vol(C) vol(rest) / vol(V).
    n, gamma = 12, 0.7
    W, v = random_graph(n, seed), rng(seed).normal(size=n)
    pairs = rng(seed).permutation(list(combinations(range(n), 2)))
    must, cannot = pairs[:4], pairs[4:10]
    signed = W.copy()
    for sign, which in ((1, must), (-1, cannot)):
        for i, j in which:
            signed[i, j] += sign * gamma
            signed[j, i] += sign * gamma
    degrees = W.sum(axis=1)
    found = best_threshold(csr_array(signed), v, weights=degrees, offset=gamma * len(cannot))

    def F(C):
        M = 2 * sum(C[i] != C[j] for i, j in must)
        N = 2 * sum(C[i] == C[j] for i, j in cannot)
        bal = 2 * degrees[C].sum() * degrees[~C].sum() / degrees.sum()
        return (2 * cut(W, C) + gamma * (M + N)) / bal

    assert_allclose(found.objective, F(found.labels == 1))
    assert_allclose(found.objective, min(F(v > t) for t in np.sort(v)[:-1]))


# --- repeated halving ------------------------------------------------------------------------


def chain_of_cliques(sizes, bridges):
    """Cliques in a row, joined by one edge of the given weight each."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    W = (y[:, None] == y[None, :]).astype(float)
    np.fill_diagonal(W, 0)
    for c, weight in enumerate(bridges):
        i = int(np.flatnonzero(y == c)[-1])
        W[i, i + 1] = W[i + 1, i] = weight
    return W, y


def halve_in_order(W_sub, indices):
    return best_threshold(W_sub, indices.astype(float)).labels


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_bisection_finds_cliques_in_a_row(kind):
    W, y = chain_of_cliques([4, 5, 6, 4], [0.1, 0.2, 0.3])
    found = recursive_bisection(kind(W), 4, halve_in_order)
    assert_array_equal(found.labels, y)
    assert_allclose(found.objective, ncut(W, y))


def test_bisection_splits_where_the_total_cut_stays_lowest():
    # After the first split at .1 the weaker of the bridges .5 and .2 goes, then the other.
    W, y = chain_of_cliques([4, 4, 4, 4], [0.5, 0.1, 0.2])
    labels = [recursive_bisection(W, k, halve_in_order).labels for k in (1, 2, 3, 4)]
    assert_array_equal(labels[0], np.zeros(16))
    assert_array_equal(labels[1], y >= 2)
    assert_array_equal(labels[2], relabelled(np.maximum(y, 1)))
    assert_array_equal(labels[3], y)


@pytest.mark.parametrize("seed", range(4))
def test_every_round_of_bisection_is_the_best_of_all_candidates(seed):
    # Twin: try all clusters in every round, and compare complete partitions.
    W = random_graph(20, seed, density=0.6)
    labels = np.zeros(20, dtype=int)
    for k in (2, 3, 4, 5):
        trials = []
        for c in np.unique(labels):
            members = np.flatnonzero(labels == c)
            if members.size > 1:
                trial = labels.copy()
                parts = halve_in_order(W[np.ix_(members, members)], members)
                trial[members[parts == 1]] = k
                trials.append(trial)
        labels = min(trials, key=lambda trial: ncut(W, trial))
        found = recursive_bisection(csr_array(W), k, halve_in_order)
        assert_array_equal(found.labels, relabelled(labels))
        assert_allclose(found.objective, ncut(W, labels))


def test_bisection_with_unit_weights_is_ratio_cut():
    W = random_graph(12, 3)
    found = recursive_bisection(W, 3, halve_in_order, weights=np.ones(12))
    assert_allclose(found.objective, rcut(W, found.labels))


def test_bisection_leaves_whole_what_cannot_be_split():
    W, y = chain_of_cliques([3, 3, 3], [0.1, 0.2])

    def only_the_whole(W_sub, indices):
        return halve_in_order(W_sub, indices) if indices.size == 9 else None

    assert_array_equal(recursive_bisection(W, 3, only_the_whole).labels, y > 0)
    for refuse in (lambda W, i: None, lambda W, i: np.zeros(i.size), lambda W, i: np.ones(i.size)):
        assert not recursive_bisection(W, 3, refuse).labels.any()


def test_bisection_hands_over_subgraph_and_indices_and_wastes_no_trial():
    W, _ = chain_of_cliques([3, 3, 3, 3], [0.1, 0.2, 0.3])
    calls = []

    def recording(W_sub, indices):
        assert_array_equal(W_sub.toarray(), W[np.ix_(indices, indices)])
        calls.append(indices.size)
        return halve_in_order(W_sub, indices)

    recursive_bisection(csr_array(W), 4, recording)
    assert len(calls) <= 2 * 4 - 3
    calls.clear()
    recursive_bisection(csr_array(W), 1, recording)
    assert not calls


@pytest.mark.parametrize(("n", "k", "labels"), [(1, 1, [0]), (1, 2, [0]), (2, 2, [0, 1])])
def test_bisection_on_almost_nothing(n, k, labels):
    for kind in both_kinds(np.ones((n, n))):
        assert recursive_bisection(kind, k, halve_in_order).labels.tolist() == labels


def test_bisection_stops_at_single_vertices():
    assert recursive_bisection(np.ones((3, 3)), 7, halve_in_order).labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("n", [12, 50, 300])
@pytest.mark.parametrize("seed", range(20))
def test_threshold_never_cuts_off_an_isolated_tail(n, seed):
    W = np.triu(np.random.RandomState(seed).uniform(0.1, 1, size=(n, n)), 1)
    W[:, -1] = 0  # the last vertex is isolated, and last along v
    W += W.T
    found = best_threshold(W, np.arange(n, dtype=float))
    assert np.isfinite(found.objective)
    assert found.labels[: n - 1].any()


@pytest.mark.parametrize(
    "labels",
    [
        [3, 3, 1, 0, 1],
        [10**9, 2, 10**9, 0],
        [-1, 5, -1, 2],
        [True, False, True],
        ["b", "a", "b"],
        np.array([7, 2, 7, 0], dtype=np.int8),
        np.array([7, 2, 7, 0], dtype=np.uint16),
        [],
    ],
)
def test_canonical_labels_of_any_kind(labels):
    labels = np.asarray(labels, dtype=np.intp if len(labels) == 0 else None)
    met = list(dict.fromkeys(labels.tolist()))
    found = relabelled(labels)
    assert found.dtype == np.intp
    assert found.tolist() == [met.index(label) for label in labels.tolist()]
