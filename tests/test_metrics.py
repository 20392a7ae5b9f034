"""Scores of agreement, cuts and broken constraints."""

import json
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import coo_array, csr_array, load_npz
from sklearn import metrics as sk

from linkwise import metrics
from linkwise.constraints import Constraints
from linkwise.metrics import (
    accuracy,
    adjusted_rand,
    clustering_error,
    cut,
    ncut,
    nmi,
    pairwise_f,
    rand_index,
    rcut,
    scores,
    violated_count,
    violated_share,
)

GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden"

AGREEMENT = [accuracy, clustering_error, rand_index, adjusted_rand, nmi, pairwise_f]
every_agreement = pytest.mark.parametrize("score", AGREEMENT, ids=lambda score: score.__name__)

two_labellings = st.integers(1, 9).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-1, 3), min_size=n, max_size=n)] * 2)
)


def random_graph(n, seed=0):
    W = np.random.RandomState(seed).rand(n, n) * (np.random.RandomState(seed + 1).rand(n, n) < 0.5)
    return np.maximum(W, W.T)


# --- agreement: slow twins -------------------------------------------------------------------


def accuracy_by_all_namings(y, labels):
    classes, clusters = sorted(set(y)), sorted(set(labels))
    names = classes + [None] * len(clusters)  # a cluster may stay without a name
    best = 0
    for naming in permutations(names, len(clusters)):
        name = dict(zip(clusters, naming, strict=True))
        best = max(best, sum(name[c] == t for t, c in zip(y, labels, strict=True)))
    return best / len(y)


def error_by_majority_vote(y, labels):
    wrong = 0
    for c in set(labels):
        members = [t for t, other in zip(y, labels, strict=True) if other == c]
        wrong += len(members) - max(members.count(t) for t in members)
    return wrong / len(y)


def pairs_one_by_one(y, labels):
    """Pairs together in both, in the truth only, in the clusters only, in neither."""
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for i, j in combinations(range(len(y)), 2):
        counts[y[i] == y[j], labels[i] == labels[j]] += 1
    return tuple(counts.values())


@given(two_labellings)
@settings(max_examples=60, deadline=None)
def test_accuracy_equals_the_best_of_all_namings(both):
    y, labels = both
    if len(set(y)) + len(set(labels)) <= 6:
        assert_allclose(accuracy(y, labels), accuracy_by_all_namings(y, labels))


@given(two_labellings)
@settings(deadline=None)
def test_error_equals_majority_vote(both):
    assert_allclose(clustering_error(*both), error_by_majority_vote(*both), atol=1e-15)


@given(two_labellings)
@settings(deadline=None)
def test_pair_scores_equal_counting_pairs(both):
    together, only_true, only_found, neither = pairs_one_by_one(*both)
    n_pairs = together + only_true + only_found + neither
    assert rand_index(*both) == ((together + neither) / n_pairs if n_pairs else 1)
    precision, recall, f = pairwise_f(*both)
    found, true = together + only_found, together + only_true
    assert precision == (together / found if found else 1)
    assert recall == (together / true if true else 1)
    if found and true and together:
        assert_allclose(f, 2 / (1 / precision + 1 / recall))
    elif found or true:
        assert f == 0
    else:
        assert f == 1


@given(two_labellings)
@settings(deadline=None)
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_scores_equal_those_of_scikit_learn(both):
    assert_allclose(rand_index(*both), sk.rand_score(*both))
    assert_allclose(adjusted_rand(*both), sk.adjusted_rand_score(*both), atol=1e-12)
    assert_allclose(nmi(*both), sk.normalized_mutual_info_score(*both), atol=1e-12)


# --- agreement: known answers ----------------------------------------------------------------


def test_agreement_by_hand():
    y = ["a"] * 4 + ["b"] * 4
    labels = [0, 0, 0, 1, 1, 1, 2, 2]
    assert accuracy(y, labels) == 5 / 8  # a = 0, b = 1 or 2: the third cluster has no name
    assert clustering_error(y, labels) == 1 / 8  # a, b, b
    # Together in both 3 + 1 + 1 = 5 pairs, in the truth 12, in the clusters 3 + 3 + 1 = 7.
    assert pairwise_f(y, labels) == (5 / 7, 5 / 12, 10 / 19)
    assert rand_index(y, labels) == (5 + 14) / 28


def test_accuracy_with_fewer_clusters_than_classes():
    assert accuracy([0, 0, 1, 2], [5, 5, 5, 5]) == 0.5


@given(two_labellings)
@settings(deadline=None)
def test_perfect_scores_mean_the_same_partition(both):
    y, labels = both
    same = all(
        (y[i] == y[j]) == (labels[i] == labels[j]) for i, j in combinations(range(len(y)), 2)
    )
    assert (accuracy(y, labels) == 1) == same
    assert (rand_index(y, labels) == 1) == same
    assert (adjusted_rand(y, labels) == 1) == same
    assert (pairwise_f(y, labels).f == 1) == same


@every_agreement
def test_names_of_clusters_do_not_matter(score):
    rng = np.random.RandomState(0)
    y, labels = rng.randint(4, size=50), rng.randint(3, size=50)
    renamed = np.array(["x", "a", "m"])[labels]
    order = rng.permutation(50)
    assert_allclose(score(y, renamed), score(y, labels))
    assert_allclose(score(-y, labels), score(y, labels))
    assert_allclose(score(y[order], labels[order]), score(y, labels))


@every_agreement
def test_a_permuted_labelling_is_perfect(score):
    y = np.random.RandomState(0).randint(5, size=40)
    perfect = 0 if score is clustering_error else 1
    assert_allclose(score(y, (y + 2) % 5), perfect)


@every_agreement
def test_outside_scores_the_free_points_alone(score):
    rng = np.random.RandomState(1)
    y, labels = rng.randint(3, size=30), rng.randint(3, size=30)
    c = Constraints(30, must_link=[(0, 4), (4, 7)], cannot_link=[(1, 29)])
    free = ~np.isin(np.arange(30), [0, 1, 4, 7, 29])
    assert score(y, labels, outside=c) == score(y[free], labels[free])
    assert score(y, labels, outside=~free) == score(y[free], labels[free])
    assert score(y, labels, outside=[False] * 30) == score(y, labels)


@every_agreement
def test_nan_when_no_point_is_free(score):
    assert np.isnan(score([0, 1], [0, 1], outside=[True, True])).all()
    assert np.isnan(score([], [])).all()


@every_agreement
def test_one_point_agrees_with_itself(score):
    assert_allclose(score(["a"], [3]), 0 if score is clustering_error else 1)


def test_pair_counts_do_not_overflow():
    # Products of pair counts reach 10^22 here, beyond 64 bits.
    y = np.repeat([0, 1], 200_000)
    assert adjusted_rand(y, 1 - y) == 1.0
    assert abs(adjusted_rand(y, np.arange(400_000) % 2)) < 1e-4


def test_many_singletons_do_not_warn():
    assert adjusted_rand(range(30), range(30)) == 1.0
    assert nmi(range(30), range(30)) == pytest.approx(1.0)


# --- cuts ------------------------------------------------------------------------------------


def cut_twin(W, inside):
    total = 0.0
    for i in np.flatnonzero(inside):
        for j in np.flatnonzero(~inside):
            total += W[i, j]
    return total


def ncut_twin(W, labels):
    labels = np.asarray(labels)
    return sum(cut_twin(W, labels == c) / W[labels == c].sum() for c in np.unique(labels))


def rcut_twin(W, labels):
    labels = np.asarray(labels)
    return sum(cut_twin(W, labels == c) / (labels == c).sum() for c in np.unique(labels))


@pytest.mark.parametrize("kind", [np.asarray, csr_array, coo_array])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_cuts_equal_their_definitions(kind, k):
    W = random_graph(15)
    labels = np.random.RandomState(2).randint(k, size=15)
    by_pairs = sum(W[i, j] for i, j in combinations(range(15), 2) if labels[i] != labels[j])
    assert_allclose(cut(kind(W), labels), by_pairs)
    assert_allclose(ncut(kind(W), labels), ncut_twin(W, labels))
    assert_allclose(rcut(kind(W), labels), rcut_twin(W, labels))


def test_cuts_by_hand():
    # A path 0 -2- 1 -1- 2 -2- 3 with a loop at 0, cut in the middle: volumes 2 + 3 + 5 and 5.
    W = np.array([[5.0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 2], [0, 0, 2, 0]])
    labels = ["left", "left", "right", "right"]
    assert cut(W, labels) == 1
    assert_allclose(ncut(W, labels), 1 / 10 + 1 / 5)
    assert_allclose(rcut(W, labels), 1 / 2 + 1 / 2)
    assert_allclose(ncut(W, [0, 0, 1, 2]), 1 / 10 + 3 / 3 + 2 / 2)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_one_vs_rest_is_equation_6_of_rangapuram_and_hein(k):
    # NCut(C, rest) = cut / bal, cut = 2 sum w_ij, bal = 2 gvol(C) gvol(rest) / gvol(V).
    W = random_graph(14)
    labels = np.random.RandomState(3).randint(k, size=14)
    for score, b in ((ncut, W.sum(axis=1)), (rcut, np.ones(14))):
        equation_6 = 0.0
        for c in range(k):
            C = labels == c
            bal = 2 * b[C].sum() * b[~C].sum() / b.sum()
            equation_6 += 2 * cut_twin(W, C) / bal
        assert_allclose(score(W, labels, convention="one_vs_rest"), equation_6)
        if k == 2:
            assert_allclose(equation_6, 2 * score(W, labels))


def test_ncut_is_invariant_to_scale_and_order_and_names():
    W, labels = random_graph(20), np.random.RandomState(0).randint(3, size=20)
    order = np.random.RandomState(1).permutation(20)
    permuted = csr_array(W[np.ix_(order, order)])
    assert_allclose(ncut(7 * W, labels), ncut(W, labels))
    assert_allclose(rcut(7 * W, labels), 7 * rcut(W, labels))
    assert_allclose(ncut(permuted, labels[order]), ncut(W, labels))
    assert_allclose(ncut(W, 10 - 3 * labels), ncut(W, labels))


def test_components_cost_exactly_nothing_and_singletons_most():
    block = random_graph(10) + 0.1
    W = np.kron(np.eye(2), block)
    np.fill_diagonal(W, 0)
    for kind in (W, csr_array(W)):
        assert cut(kind, np.repeat([0, 1], 10)) == ncut(kind, np.repeat([0, 1], 10)) == 0
        assert_allclose(ncut(kind, np.arange(20)), 20)
        assert ncut(kind, np.zeros(20)) == 0


def test_a_cluster_without_volume_counts_nothing():
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 0] = 2.0
    for kind in (W, csr_array(W)):
        assert ncut(kind, [0, 1, 2]) == 2
        assert ncut(kind, [0, 0, 1]) == 0
        assert ncut(kind, [0, 0, 1], convention="one_vs_rest") == 0


def test_cuts_of_integer_and_boolean_graphs():
    W = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    for kind in (W, csr_array(W), W.astype(bool), csr_array(W.astype(bool))):
        assert cut(kind, [0, 0, 1]) == 1
        assert_allclose(ncut(kind, [0, 0, 1]), 1 / 3 + 1)


# --- golden numbers: what the authors' own programs answered ----------------


def golden_results():
    return sorted(GOLDEN.glob("results/*.json")) if GOLDEN.is_dir() else []


@pytest.mark.skipif(not golden_results(), reason=f"no golden results in {GOLDEN}")
def test_golden_results_have_the_stored_scores():
    graphs, checked = {}, 0
    for path in golden_results():
        stored = json.loads(path.read_text())
        name, labels = stored["dataset"], np.array(stored["labels"])
        if name not in graphs:
            truth = np.load(GOLDEN / "graphs" / f"{name}_data.npz")["y"]
            graphs[name] = csr_array(load_npz(GOLDEN / "graphs" / f"{name}_W.npz")), truth
        W, y = graphs[name]
        expected = stored.get("ncut", stored.get("ncut_knn"))
        assert_allclose(ncut(W, labels), expected, rtol=1e-9, err_msg=path.name)
        if "ncut_true_labels" in stored:
            assert_allclose(ncut(W, y), stored["ncut_true_labels"], rtol=1e-9)
        if "ari" in stored:
            assert_allclose(adjusted_rand(y, labels), stored["ari"], atol=1e-9)
        if "accuracy" in stored:
            assert_allclose(accuracy(y, labels), stored["accuracy"], atol=1e-9)
        checked += 1
    assert checked == len(golden_results())


@pytest.mark.skipif(not golden_results(), reason=f"no golden results in {GOLDEN}")
def test_golden_results_violate_as_many_pairs_as_stored():
    for path in golden_results():
        stored = json.loads(path.read_text())
        pairs_file = GOLDEN / "constraints" / f"{stored['dataset']}_{stored.get('constraints')}.npz"
        if "violated_ml" not in stored or not pairs_file.exists():
            continue
        pairs = np.load(pairs_file)
        c = Constraints(len(stored["labels"]), pairs["must_link"], pairs["cannot_link"])
        found = violated_count(c, stored["labels"])
        assert found == (stored["violated_ml"], stored["violated_cl"]), path.name


# --- constraints -----------------------------------------------------------------------------


def test_violations_by_hand():
    c = Constraints(
        5,
        must_link=[(0, 1), (1, 2)],
        cannot_link=[(0, 3), (3, 4)],
        must_link_belief=[1.0, 0.5],
        cannot_link_belief=[0.25, 1.0],
    )
    labels = ["a", "a", "b", "a", "c"]
    assert violated_count(c, labels) == (1, 1)
    assert violated_count(c, labels).total == 2
    assert_allclose(violated_share(c, labels), 0.75 / 2.75)
    assert violated_share(c, ["a", "a", "a", "b", "c"]) == 0


def test_partial_labels_count_as_the_pairs_they_imply():
    partial = np.array([0, 0, 1, 1, -1, 1])
    labels = np.array([0, 1, 1, 1, 0, 2])
    known = np.flatnonzero(partial >= 0)
    pairs = list(combinations(known, 2))
    must = [(i, j) for i, j in pairs if partial[i] == partial[j]]
    cannot = [(i, j) for i, j in pairs if partial[i] != partial[j]]
    listed, implied = Constraints(6, must, cannot), Constraints(6, labels=partial)
    repeated = Constraints(6, must, cannot, labels=partial)
    for c in (implied, repeated):
        assert violated_count(c, labels) == violated_count(listed, labels) == (3, 2)
        assert_allclose(violated_share(c, labels), 5 / 10)


@given(
    st.lists(st.integers(-1, 2), min_size=6, max_size=6),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.lists(st.integers(0, 14), max_size=6, unique=True),
    st.integers(0, 6),
)
@settings(deadline=None)
def test_violations_equal_looking_at_every_pair(partial, labels, drawn, n_must):
    pairs = [list(combinations(range(6), 2))[i] for i in drawn]
    must, cannot = set(pairs[:n_must]), set(pairs[n_must:])
    c = Constraints(6, sorted(must), sorted(cannot), labels=partial)
    for i, j in combinations(range(6), 2):
        if partial[i] >= 0 and partial[j] >= 0:
            (must if partial[i] == partial[j] else cannot).add((i, j))
    separated = sum(labels[i] != labels[j] for i, j in must)
    together = sum(labels[i] == labels[j] for i, j in cannot)
    assert violated_count(c, labels) == (separated, together)
    n_pairs = len(must) + len(cannot)
    assert_allclose(violated_share(c, labels), (separated + together) / max(n_pairs, 1), atol=1e-15)


def test_nothing_is_violated_without_constraints():
    assert violated_share(Constraints(3), [0, 1, 2]) == 0
    assert violated_count(Constraints(3), [0, 1, 2]) == (0, 0)


# --- everything at once ----------------------------------------------------------------------

AGREEMENT_NAMES = {
    "accuracy",
    "clustering_error",
    "rand_index",
    "adjusted_rand",
    "nmi",
    "pair_precision",
    "pair_recall",
    "pair_f",
}


def test_scores_gives_what_applies():
    y, labels, W = ["a", "a", "b", "b", "b"], [0, 0, 1, 1, 0], random_graph(5)
    c = Constraints(5, must_link=[(0, 1)])
    assert set(scores(y, labels)) == {"n_clusters"} | AGREEMENT_NAMES
    assert set(scores(None, labels, W=W)) == {"n_clusters", "cut", "ncut", "rcut"}
    broken = {"violated_share", "violated_must_link", "violated_cannot_link"}
    assert set(scores(None, labels, constraints=c)) == {"n_clusters", "n_free"} | broken
    everything = scores(y, labels, W=W, constraints=c)
    free = {f"free_{name}" for name in AGREEMENT_NAMES}
    assert set(everything) == (
        {"n_clusters", "n_free", "cut", "ncut", "rcut", "free_cut", "free_ncut", "free_rcut"}
        | broken
        | AGREEMENT_NAMES
        | free
    )
    assert everything["n_free"] == 3
    assert everything["accuracy"] == accuracy(y, labels) == 0.8
    assert everything["free_accuracy"] == accuracy(y, labels, outside=c) == 2 / 3
    assert everything["ncut"] == ncut(W, labels)
    json.dumps(everything)


def test_scores_without_free_points():
    found = scores([0, 1], [0, 1], constraints=Constraints(2, cannot_link=[(0, 1)]))
    assert found["accuracy"] == 1
    assert np.isnan(found["free_accuracy"])
    assert found["n_free"] == 0


# --- messages --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accuracy([0, 1, 1], [0, 1]), "y_true has 3 entries, but labels has 2"),
        (lambda: nmi([[0], [1]], [0, 1]), r"y_true must be one-dimensional.*\(2, 1\)"),
        (lambda: nmi([0, 1], 3), r"labels must be one-dimensional.*\(\)"),
        (lambda: nmi([0.0, np.nan], [0, 1]), r"y_true\[1\] is nan"),
        (lambda: nmi(np.array([0, "a"], dtype=object), [0, 1]), r"y_true mixes.*\(int, str\)"),
        (lambda: nmi([0, 1], [0, 1], outside=[0, 1]), "boolean mask.*type int"),
        (lambda: nmi([0, 1], [0, 1], outside=[True]), "about 1 samples, but labels has 2"),
        (lambda: ncut(np.ones((2, 3)), [0, 1]), r"square matrix.*\(2, 3\)"),
        (lambda: ncut(np.ones(2), [0, 1]), r"square matrix.*\(2,\)"),
        (lambda: cut(csr_array(np.eye(3)), [0, 1]), "W is about 3 samples, but labels has 2"),
        (lambda: ncut(np.eye(2), [0, 1], convention="cosc"), "'per_cluster' or 'one_vs_rest'"),
        (lambda: violated_count(Constraints(3), [0, 1]), "about 3 samples, but labels has 2"),
        (lambda: scores([0, 1], [0, 1], constraints=Constraints(3)), "about 3 samples"),
    ],
)
def test_wrong_input_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_every_public_name_is_tested_here():
    functions = {name for name in metrics.__all__ if name[0].islower()}
    assert functions <= set(globals())


def test_cuts_of_the_free_points_are_those_of_their_graph():
    W = np.triu(np.random.RandomState(0).uniform(size=(8, 8)), 1)
    W += W.T
    labels = np.array([0, 1, 2, 0, 1, 0, 1, 0])
    known = Constraints(8, must_link=[(0, 2)], cannot_link=[(2, 4)])
    free = [1, 3, 5, 6, 7]
    for score in (metrics.cut, metrics.ncut, metrics.rcut):
        expected = score(W[np.ix_(free, free)], labels[free])
        assert score(W, labels, outside=known) == pytest.approx(expected)
        assert score(csr_array(W), labels, outside=known) == pytest.approx(expected)
    assert metrics.scores(None, labels, W=W, constraints=known)["free_ncut"] == pytest.approx(
        metrics.ncut(W, labels, outside=known)
    )
