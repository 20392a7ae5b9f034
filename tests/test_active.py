"""Active clustering: what answers entail, and which questions the strategies ask."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import adjusted_rand_score

from linkwise import Affinity, Constraints, Prepared
from linkwise.active import STRATEGIES, NoisyOracle, Session, State, TruthOracle, forest, simulate
from linkwise.active.entail import as_labels, neighbourhoods
from linkwise.active.spectral import regions, sensitivity
from linkwise.active.state import Spectrum, spectrum
from linkwise.active.strategies import leaf_similarity, memberships, question_value
from linkwise.datasets import make_xor

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
PAPER = Affinity(None, scale="xu")


@pytest.fixture(scope="module", autouse=True)
def small_forests():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "N_TREES", 5)
        yield


@st.composite
def truths(draw, max_samples=6, max_clusters=4):
    """True labels of a few samples, every cluster with at least one."""
    k = draw(st.integers(2, max_clusters))
    more = draw(st.lists(st.integers(0, k - 1), max_size=max_samples - k))
    return np.array(draw(st.permutations([*range(k), *more])))


def link(y, pairs):
    return Constraints(
        y.size,
        [p for p in pairs if y[p[0]] == y[p[1]]],
        [p for p in pairs if y[p[0]] != y[p[1]]],
    )


@cache
def surjections(n, k):
    """All ways to put n samples into exactly k non-empty clusters."""
    ways = np.array(list(product(range(k), repeat=n)))
    return ways[[len(set(labels)) == k for labels in ways.tolist()]]


def undecided(n, k, known):
    """The pairs on which possible partitions differ: the reference, exponential and obvious."""
    ways = surjections(n, k)
    i, j = known.must_link.T
    ways = ways[(ways[:, i] == ways[:, j]).all(axis=1)]
    i, j = known.cannot_link.T
    ways = ways[(ways[:, i] != ways[:, j]).all(axis=1)]
    pairs = combinations(range(n), 2)
    return {(i, j) for i, j in pairs if np.unique(ways[:, i] == ways[:, j]).size == 2}


def a_state(n, k, known, **more):
    rng = np.random.RandomState(n)
    X = rng.normal(size=(n, 2))
    return State(Prepared(X, Affinity(3)), k, known, **more)


# What follows from answers -----------------------------------------------------------------


@given(truths(), st.data())
@settings(max_examples=60)
def test_a_pair_is_open_if_and_only_if_both_answers_are_possible(y, data):
    n, k = y.size, int(y.max()) + 1
    every_pair = list(combinations(range(n), 2))
    pairs = data.draw(st.lists(st.sampled_from(every_pair), max_size=10))
    known = link(y, pairs)
    state = a_state(n, k, known)
    expected = undecided(n, k, known) - set(pairs)
    assert {p for p in every_pair if state.is_open(*p)} == expected
    # What is seen at a glance never closes a pair that is open.
    seen = state.maybe_open(np.array(every_pair))
    assert expected <= {p for p, is_open in zip(every_pair, seen, strict=True) if is_open}


def test_two_clusters_are_decided_around_a_ring_of_cannot_links():
    known = Constraints(7, cannot_link=[(0, 1), (1, 2), (2, 3), (4, 5)])
    state = a_state(7, 2, known)
    assert state.relation(0, [2, 3]).tolist() == [1, -1]
    assert state.relation(0, [4, 6]).tolist() == [0, 0]


def test_a_sample_apart_from_all_but_one_cluster_is_in_that_one():
    known = Constraints(6, cannot_link=[(0, 1), (0, 2), (1, 2), (3, 0), (3, 1), (4, 3), (4, 0)])
    state = a_state(6, 3, known)
    assert state.relation(3, 2) == 1
    assert state.relation(4, 1) == 1  # follows from the first conclusion only
    assert state.relation(5, [0, 1, 2]).tolist() == [0, 0, 0]


def test_a_coloring_argument_that_no_rule_sees_closes_a_pair():
    # If 0 and 1 were together, they and the ring 2, 3, 4 would need four clusters.
    known = Constraints(8, cannot_link=[(2, 3), (3, 4), (2, 4), (0, 2), (1, 3), (1, 4)])
    state = a_state(8, 3, known)
    assert state.maybe_open(np.array([[0, 1]]))[0] or state.relation(0, 1) == -1
    assert not state.is_open(0, 1)


def test_as_many_groups_as_clusters_are_all_apart():
    state = a_state(5, 3, Constraints(5, must_link=[(0, 1), (2, 3)]))
    assert state.relation(0, [2, 4]).tolist() == [-1, -1]


def test_unknown_closes_its_pair_and_entails_nothing():
    state = a_state(5, 2, Constraints(5, must_link=[(0, 1)]), unknown=[(2, 1)])
    assert not state.is_open(1, 2)
    assert state.is_open(0, 2)
    assert state.relation(1, 2) == 0


def test_with_noisy_answers_only_asked_pairs_are_closed():
    known = Constraints(5, [(0, 1), (1, 2)], [(0, 2)], must_link_belief=0.9, cannot_link_belief=0.9)
    state = a_state(5, 2, known, noisy=True)
    closed = {p for p in combinations(range(5), 2) if not state.is_open(*p)}
    assert closed == {(0, 1), (1, 2), (0, 2)}
    assert_array_equal(state.neighbourhoods[0], [0, 1, 2])


def test_labels_given_beforehand_are_neighbourhoods():
    known = Constraints(8, cannot_link=[(0, 7), (6, 7), (5, 7)], labels=[0, 0, 1, 1, 2, -1, -1, -1])
    found = neighbourhoods(known, 4)
    assert [group.tolist() for group in found] == [[0, 1], [2, 3], [4]]


@given(truths(max_samples=7), st.data())
@settings(max_examples=30)
def test_facts_as_labels_say_the_same(y, data):
    n, k = y.size, int(y.max()) + 1
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(n), 2))), max_size=12))
    state = a_state(n, k, link(y, pairs))
    again = as_labels(state.facts, state.neighbourhoods)
    assert_array_equal(again.closure().to_matrix().toarray(), state.closure.to_matrix().toarray())


def test_uncertain_pairs_given_beforehand_stay_uncertain():
    known = Constraints(
        6,
        [(0, 1), (2, 3)],
        [(1, 2), (4, 5)],
        must_link_belief=[1, 0.5],
        cannot_link_belief=[1, 0.4],
    )
    evidence = a_state(6, 2, known).evidence
    assert_array_equal(evidence.must_link, [[2, 3]])
    assert_allclose(evidence.must_link_belief, 0.5)
    assert_allclose(evidence.cannot_link_belief, 0.4)
    assert_array_equal(evidence.labels, [0, 0, 1, -1, -1, -1])


def test_a_state_is_frozen():
    with pytest.raises(FrozenInstanceError):
        a_state(4, 2, Constraints(4)).n_clusters = 3


def quick(strategy):
    """Return a method that takes no time, unless the strategy needs Auto anyway."""
    return "auto" if strategy == "committee" else "e2cp"


# Every strategy ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:All samples are equal")
@every_strategy
@given(y=truths(), data=st.data())
@settings(max_examples=8)
def test_no_entailed_or_asked_pair_is_asked_and_the_truth_never_contradicts(strategy, y, data):
    n, k = y.size, int(y.max()) + 1
    X = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), float)[:, None]
    unknown = set(data.draw(st.lists(st.sampled_from(list(combinations(range(n), 2))), max_size=3)))
    start = link(
        y, data.draw(st.lists(st.sampled_from(list(combinations(range(n), 2))), max_size=2))
    )
    method = quick(strategy)
    session = Session(X, k, strategy=strategy, method=method, constraints=start, random_state=0)
    session._model.estimator.set_params(
        hard=False
    )  # tiny forests and fast fits: the questions are tested
    asked = set()
    while (pair := session.next()) is not None:
        assert pair in undecided(n, k, session.constraints)
        assert pair not in asked
        asked.add(pair)
        session.answer(*pair, None if pair in unknown else bool(y[pair[0]] == y[pair[1]]))
    left = undecided(n, k, session.constraints) - asked
    if strategy != "xu":  # xu ends when the regions are settled
        assert not left


@every_strategy
def test_several_questions_at_once_are_distinct_and_open(strategy):
    X, y = make_blobs(60, centers=4, cluster_std=3, random_state=0)
    session = Session(X, 4, strategy=strategy, method=quick(strategy), random_state=1)
    for n_queries in (5, 3, 8):
        found = session.batch(n_queries)
        assert len(found) == len(set(found)) <= n_queries
        assert strategy == "xu" or len(found) == n_queries
        for i, j in found:
            assert i < j
            assert session.state.is_open(i, j)
        for i, j in found[:2]:
            if session.state.is_open(i, j):
                session.answer(i, j, bool(y[i] == y[j]))


@every_strategy
def test_graphs_without_data_and_sparse_data_will_do(strategy):
    X, y = make_blobs(50, centers=3, random_state=2)
    W = Affinity().fit_transform(X)
    for data, affinity in ((W, "precomputed"), (W.toarray(), "precomputed"), (csr_array(X), None)):
        settings = {"strategy": strategy, "method": quick(strategy), "affinity": affinity}
        session = Session(data, 3, **settings, random_state=0)
        assert session.state.X is None
        curve = simulate(session, TruthOracle(y), 8, every=8)
        assert curve.labels.shape[1] == 50


@every_strategy
@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_the_unit_of_a_graph_changes_no_question(strategy, factor):
    X, y = make_blobs(40, centers=3, cluster_std=3, random_state=3)
    W = Affinity().fit_transform(X)
    settings = {"strategy": strategy, "method": quick(strategy), "affinity": "precomputed"}
    asked = [
        simulate(Session(V, 3, **settings, random_state=0), TruthOracle(y), 6, every=6).answers
        for V in (W, factor * W)
    ]
    assert asked[0] == asked[1]


@pytest.mark.filterwarnings("ignore:All samples are equal")
@every_strategy
def test_identical_samples_and_an_unconnected_graph(strategy):
    y = np.array([0, 1, 0, 1, 0, 1])
    settings = {"strategy": strategy, "method": quick(strategy), "random_state": 0}
    session = Session(np.ones((6, 2)), 2, **settings)
    simulate(session, TruthOracle(y), 20, every=20)
    with pytest.warns(match="connected components"):
        session = Session(np.zeros((6, 6)), 2, affinity="precomputed", **settings)
    curve = simulate(session, TruthOracle(y), 20)
    if strategy != "xu":
        assert adjusted_rand_score(y, curve.labels[-1]) == 1


@every_strategy
def test_as_many_clusters_as_samples_leave_nothing_to_ask(strategy):
    assert Session(np.arange(3.0)[:, None], 3, strategy=strategy).next() is None


@every_strategy
def test_noisy_answers_are_asked_once_and_never_refused(strategy):
    X, y = make_blobs(16, centers=2, cluster_std=2, random_state=0)
    settings = {"strategy": strategy, "method": quick(strategy), "random_state": 0}
    session = Session(X, 2, noisy=True, **settings)
    curve = simulate(session, NoisyOracle(y, 0.4, 0.1, random_state=0), 60, every=60)
    pairs = [(a.i, a.j) for a in curve.answers]
    assert len(set(pairs)) == len(pairs)
    assert (session.constraints.must_link_belief < 1).all()


# Random ------------------------------------------------------------------------------------


def test_random_questions_are_uniform_over_open_pairs():
    state = a_state(
        6, 3, Constraints(6, must_link=[(0, 1)], cannot_link=[(2, 3)]), unknown=[(4, 5)]
    )
    open_pairs = [p for p in combinations(range(6), 2) if state.is_open(*p)]
    assert len(open_pairs) == 12
    rng = np.random.RandomState(0)
    count = dict.fromkeys(open_pairs, 0)
    for _ in range(1200):
        count[tuple(STRATEGIES["random"](state, 1, rng)[0].tolist())] += 1
    # 100 expected of each; the deviation is about 10.
    assert 65 < min(count.values()) <= max(count.values()) < 135


def test_the_last_open_pairs_are_found_among_many_samples():
    # 3000 samples in two known groups and one that is free: almost no random pair is open.
    y = np.arange(3000) % 2
    labels = y.copy()
    labels[1234] = -1
    state = a_state(3000, 2, Constraints.from_labels(labels))
    (pair,) = STRATEGIES["random"](state, 1, np.random.RandomState(0)).tolist()
    assert 1234 in pair


# Explore -----------------------------------------------------------------------------------


def test_the_first_question_is_about_the_farthest_sample():
    state = a_state(30, 3, Constraints(30))
    i, j = STRATEGIES["explore"](state, 1, np.random.RandomState(0))[0]
    far = [np.linalg.norm(state.X - state.X[a], axis=1).argmax() == b for a, b in ((i, j), (j, i))]
    assert any(far)


def test_explore_asks_about_the_sample_farthest_from_all_neighbourhoods():
    # Basu, Banerjee & Mooney 2004: farthest-first; a slow twin over all pairs.
    known = Constraints(30, [(3, 4)], [(4, 11)])
    state = a_state(30, 4, known)
    placed = [3, 4, 11]
    nearest = [min(np.linalg.norm(x - state.X[p]) for p in placed) for x in state.X]
    wanted = int(np.argmax(nearest))
    means = [state.X[[3, 4]].mean(axis=0), state.X[11]]
    first = int(np.argmin([np.linalg.norm(state.X[wanted] - m) for m in means]))
    (pair,) = STRATEGIES["explore"](state, 1, np.random.RandomState(0)).tolist()
    assert wanted in pair
    assert set(pair) & set([[3, 4], [11]][first])


def test_explore_finds_all_clusters_with_the_fewest_questions_if_they_are_clear():
    # Farthest first never meets a cluster twice: 1 + 2 + 3 questions for four clusters.
    X, y = make_blobs(80, centers=[[0, 0], [9, 0], [0, 9], [9, 9]], random_state=0)
    session = Session(X, 4, strategy="explore", method="e2cp", random_state=0)
    simulate(session, TruthOracle(y), 6, every=6)
    assert sorted(int(y[group[0]]) for group in session.state.neighbourhoods) == [0, 1, 2, 3]


def test_a_sample_is_finished_before_the_next_one_is_begun():
    X, y = make_blobs(60, centers=4, cluster_std=4, random_state=1)
    session = Session(X, 4, strategy="explore", method="e2cp", random_state=0)
    simulate(session, TruthOracle(y), 30, every=30)
    done, current = set(), None
    for answer in session.answers[8:]:
        new = {answer.i, answer.j}
        if current is None or current not in new:
            assert not (new & done), "asked about a sample that was put aside"
        current = next((s for s in new if not session.state.placed[s]), None)


# Uncertainty -------------------------------------------------------------------------------


def test_value_of_a_question_by_hand():
    # Entropy over expected questions: for (.5, .3, .2) these are 1 * .5 + 2 * .3 + 3 * .2 = 1.7.
    p = np.array([[0.2, 0.5, 0.3], [0, 1, 0]])
    entropy = -(0.5 * np.log(0.5) + 0.3 * np.log(0.3) + 0.2 * np.log(0.2))
    assert_allclose(question_value(p), [entropy / 1.7, 0])


def test_a_forest_has_the_trees_of_scikit_learn_whatever_it_learnt_before(monkeypatch):
    monkeypatch.setattr(forest, "MAX_ROWS", 30)
    points, labels = make_blobs(60, centers=4, cluster_std=4, random_state=0)
    changed = labels.copy()
    changed[:2] = (changed[:2] + 1) % 4
    grown = forest.Forest(points)
    for y in (labels, changed, labels):
        slow = RandomForestClassifier(forest.N_TREES, max_samples=30, random_state=0)
        assert_array_equal(grown.leaves(y), slow.fit(points, y).apply(points))


def test_trees_whose_labels_did_not_change_are_not_grown_again(monkeypatch):
    points, labels = make_blobs(60, centers=4, random_state=0)
    grown = forest.Forest(points)
    before = grown.leaves(labels).copy()
    monkeypatch.setattr(forest, "DecisionTreeRegressor", None)  # growing a tree would fail
    assert_array_equal(grown.leaves(labels.copy()), before)


def test_leaf_similarity_is_the_share_of_common_leaves():
    rng = np.random.RandomState(0)
    leaf = rng.randint(4, size=(12, 7))
    groups = [np.array([0, 3, 5]), np.array([8])]
    slow = [
        [np.mean([np.mean(leaf[x] == leaf[m]) for m in members]) for members in groups]
        for x in range(12)
    ]
    assert_allclose(leaf_similarity(leaf, groups), slow)


def test_uncertainty_asks_about_the_most_valuable_sample_and_its_likeliest_neighbourhood():
    X, y = make_blobs(60, centers=3, cluster_std=4, random_state=0)
    session = Session(X, 3, strategy="uncertainty", method="e2cp", random_state=0)
    a, b, c = (int(np.flatnonzero(y == label)[0]) for label in range(3))
    for pair in ((a, b), (b, c), (a, c)):
        session.answer(*pair, "different")
    state = session.state
    p = memberships(state)
    assert_allclose(p.sum(axis=1), 1)
    value = np.where(state.placed, -1, question_value(p))
    (asked,) = [s for s in session.next() if not state.placed[s]]
    assert value[asked] == value.max() > 0
    likeliest = state.neighbourhoods[int(p[asked].argmax())]
    assert set(likeliest.tolist()) & set(session.next())


# Xu ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_two_questions_solve_xor(seed):
    # Xu et al. 2005: opposite corners are asked about, and both answers are must-links.
    X, y = make_xor(random_state=seed)
    session = Session(X, 2, strategy="xu", method="csc", affinity=PAPER, random_state=0)
    curve = simulate(session, TruthOracle(y), 10)
    assert curve.n_questions.tolist() == [0, 1, 2]
    assert {(a.i // 10, a.j // 10) for a in curve.answers} == {(0, 2), (1, 3)}
    assert [a.answer for a in curve.answers] == ["same", "same"]
    assert curve.ari(y)[2] == 1
    assert session.next() is None


def test_one_question_does_not_solve_xor():
    # Figure 3 of the paper.
    X, y = make_xor(random_state=0)
    session = Session(X, 2, strategy="xu", method="csc", affinity=PAPER, random_state=0)
    assert (simulate(session, TruthOracle(y), 1).ari(y) < 0.9).all()


def test_two_questions_are_enough_on_the_graph_alone():
    X, y = make_xor(random_state=0)
    W = PAPER.fit_transform(X)
    session = Session(W, 2, strategy="xu", method="csc", affinity="precomputed", random_state=0)
    curve = simulate(session, TruthOracle(y), 10)
    assert curve.n_questions[-1] <= 3
    assert curve.ari(y)[-1] == 1


def test_regions_of_xor_are_its_corners():
    X, _ = make_xor(random_state=0)
    found = regions(spectrum(PAPER.fit_transform(X), 12), 2)
    assert sorted(found.representative // 10) == [0, 1, 2, 3]
    assert found.is_constant


def test_xu_goes_on_with_smaller_regions_where_eigenvectors_are_not_constant():
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(80, 2))
    y = (X[:, 0] > 0.3).astype(int)
    session = Session(X, 2, strategy="xu", method="e2cp", random_state=0)
    assert not regions(session.state.base, 2).is_constant
    curve = simulate(session, TruthOracle(y), 25, every=25)
    assert curve.n_questions[-1] == 25


# Boundary ----------------------------------------------------------------------------------


def graph_of_random_points(n, seed):
    return Affinity(None, scale=0.7).fit_transform(np.random.RandomState(seed).normal(size=(n, 2)))


@pytest.mark.parametrize("k", [2, 3, 4])
def test_sensitivity_is_the_derivative_of_the_eigenvectors(k):
    W = graph_of_random_points(12, 0)
    whole = spectrum(W, 12)
    D = np.diag(W.sum(axis=1))
    assert_allclose(whole.vectors.T @ D @ whole.vectors, np.eye(12), atol=1e-10)
    pairs = np.array(list(combinations(range(12), 2)))
    expected = []
    t = 1e-6
    for i, j in pairs:
        moved = []
        for sign in (1, -1):
            A = W.copy()
            A[i, j] += sign * t
            A[j, i] += sign * t
            degrees = np.diag(A.sum(axis=1))
            F = eigh(degrees - A, degrees)[1][:, :k]
            F *= np.sign(np.sum(F * (D @ whole.vectors[:, :k]), axis=0))
            moved.append(whole.vectors[:, k:].T @ D @ F)
        expected.append(np.linalg.norm(moved[0] - moved[1]) / (2 * t))
    assert_allclose(sensitivity(whole, pairs, k), expected, rtol=1e-5)


def test_the_constant_eigenvector_is_never_moved():
    whole = spectrum(graph_of_random_points(12, 0), 12)
    assert_allclose(sensitivity(whole, np.array([[0, 1], [3, 8]]), 1), 0, atol=1e-12)


def test_equal_eigenvalues_give_finite_sensitivities():
    flat = Spectrum(np.zeros(4), np.eye(4))
    assert np.isfinite(sensitivity(flat, np.array([[0, 1], [1, 2]]), 2)).all()


def test_boundary_asks_about_the_gap_between_the_clusters():
    # Two lines of points that nearly touch: the question is about samples near the gap.
    x = np.concatenate([np.linspace(0, 1, 20), np.linspace(1.2, 2.2, 20)])
    session = Session(
        np.column_stack((x, np.zeros(40))), 2, strategy="boundary", method="e2cp", random_state=0
    )
    pair = session.next()
    assert min(abs(s - 19.5) for s in pair) < 6
