"""Linkage: the formulas against brute force, the tree, and what it promises about constraints."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, is_valid_linkage
from scipy.sparse import csr_array
from scipy.special import expit, logit
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkwise import ConflictError, Constraints, Linkage, Prepared
from linkwise.graph.neighbors import NeighborSearch
from linkwise.linkage.coordinates import Coordinates, Radii, _leading
from linkwise.linkage.cut import (
    MODELS,
    Answers,
    Calibration,
    Prior,
    _gains,
    calibrate,
    choose_cut,
    prior_cut,
)
from linkwise.linkage.logodds import (
    LogOdds,
    pair_scatter,
    shrunk_covariance,
    total_covariance,
    within_scatter,
)
from linkwise.linkage.records import RecordVectorizer
from linkwise.linkage.tree import (
    Items,
    MergeRule,
    Merges,
    Tree,
    candidate_pairs,
    grow_to,
    grow_tree,
)
from reference import mean_log_odds, merged_greedily
from strategies import constraints_from_a_partition

FEW = settings(max_examples=25, deadline=None)


def small_clusters(n_clusters=60, size=4, d=6, spread=0.3, seed=0):
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.repeat(np.arange(n_clusters), size))
    return rng.normal(size=(n_clusters, d))[y] + spread * rng.normal(size=(y.size, d)), y


def random_items(seed, n=12, d=3, n_pairs=30):
    rng = np.random.RandomState(seed)
    pairs = np.array(list(combinations(range(n), 2)))
    pairs = pairs[np.sort(rng.permutation(len(pairs))[:n_pairs])]
    g, h = rng.normal(size=(n, d)), rng.rand(n)
    return Items.samples(g, h, pairs)


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1.0


# Log-odds ---------------------------------------------------------------------------------------


def test_log_odds_are_the_ratio_of_two_gaussians():
    # log p(x, y | one centre) - log p(x) - log p(y), W within, T - W between.
    rng = np.random.RandomState(0)
    A, B = rng.normal(size=(2, 3, 3))
    W, T = A @ A.T, A @ A.T + 50 * B @ B.T
    x, y = rng.normal(size=(2, 3))
    odds = LogOdds.of(W, T, n_samples=10**9)
    g, h = odds.terms(np.stack((x, y)))
    joint = np.block([[T, T - W], [T - W, T]])
    expected = multivariate_normal(np.zeros(6), joint).logpdf(np.r_[x, y])
    expected -= sum(multivariate_normal(np.zeros(3), T).logpdf(z) for z in (x, y))
    assert odds.between(g, h, np.array([[0, 1]]))[0] == pytest.approx(expected)


def test_directions_below_the_noise_are_dropped():
    W = np.eye(2)
    assert LogOdds.of(W, np.diag([9.0, 1.01]), n_samples=100).ratio == pytest.approx([8.0])


def test_scatter_within_clusters_and_pairs():
    Z = np.random.RandomState(0).normal(size=(7, 2))
    y = np.array([0, 0, 0, 1, 1, 2, 0])
    found = within_scatter(Z, y)
    expected = sum(
        np.outer(z - Z[y == k].mean(axis=0), z - Z[y == k].mean(axis=0))
        for k in range(3)
        for z in Z[y == k]
    )
    assert_allclose(found.sums, expected, atol=1e-12)
    assert found.freedom == 4
    # Of two samples it is that of the pair.
    pair = pair_scatter(Z, np.array([[2, 5]]))
    assert_allclose(pair.sums, within_scatter(Z[[2, 5]], np.array([0, 0])).sums, atol=1e-12)
    assert pair.freedom == 1


def test_covariances_are_shrunk_but_keep_their_trace():
    Z = np.random.RandomState(0).normal(size=(40, 10))
    Z -= Z.mean(axis=0)
    T = total_covariance(Z)
    scatter = within_scatter(Z, np.zeros(40, int))
    W = shrunk_covariance(scatter, T)
    assert np.trace(W) == pytest.approx(np.trace(scatter.sums) / 39, rel=1e-5)
    assert np.ptp(np.linalg.eigvalsh(W)) < np.ptp(np.linalg.eigvalsh(scatter.sums / 39))


# Merging ----------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
@FEW
def test_mean_log_odds_of_two_clusters_is_that_of_all_their_pairs(seed):
    items = random_items(seed)
    left, right, height, _ = grow_tree(items, MergeRule(0.3))
    clusters = {i: [i] for i in range(12)}
    for a, b, found in zip(left, right, height, strict=True):
        expected = mean_log_odds(0.3, items.g, items.h, clusters[a], clusters[b])
        assert found == pytest.approx(expected)
        clusters[a] += clusters.pop(b)


@given(
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([-np.inf, -1.0, 0.0]),
    st.sampled_from([-0.5, 0.0, np.inf]),
)
@FEW
def test_merging_is_the_greedy_one(seed, answered, stop, level):
    items = random_items(seed)
    rng = np.random.RandomState(seed)
    if answered:
        answer = rng.choice([0.0, 2.0, -2.0, -np.inf], size=len(items.pairs))
        side = rng.choice([-1, -1, 0, 1], size=12).astype(np.int32)
        items = items._replace(answer=answer, side=side, size=rng.randint(1, 4, 12).astype(float))
    prior = -0.7 if seed % 3 else 0.0
    rule = MergeRule(0.3, cut=-0.2, slope=1.5, stop=stop, prior=prior, level=level)
    left, right, height, _ = grow_tree(items, rule)
    expected = merged_greedily(items, rule)
    found = [
        (min(a, b), max(a, b), s)
        for (a, b, s) in zip(left.tolist(), right.tolist(), height.tolist(), strict=True)
    ]
    assert len(found) == len(expected)
    clusters, twin = {i: {i} for i in range(12)}, {i: {i} for i in range(12)}
    for (a, b, s), (c, d, e) in zip(found, expected, strict=True):
        assert s == pytest.approx(e)
        assert {frozenset(clusters[a]), frozenset(clusters[b])} == {
            frozenset(twin[c]),
            frozenset(twin[d]),
        }
        for sets, (u, v) in ((clusters, (a, b)), (twin, (c, d))):
            union = sets[u] | sets[v]
            for member in union:
                sets[member] = union


def test_merging_goes_on_where_candidates_end():
    X = np.repeat(np.arange(10.0), 3)[:, None]
    items = Items.samples(X, X[:, 0] ** 2 / 2, np.array([[0, 1], [1, 2]]))
    left, *_ = grow_to(items, MergeRule(0.0), 4, rng=np.random.RandomState(0))
    assert left.size == 26


def test_merging_in_steps_is_merging_at_once(monkeypatch):
    items = random_items(3, n=40, n_pairs=200)
    at_once = grow_tree(items, MergeRule(0.3))
    monkeypatch.setattr("linkwise.linkage.tree.STEP", 3)
    for a, b in zip(at_once, grow_tree(items, MergeRule(0.3)), strict=True):
        assert_array_equal(a, b)


def test_must_linked_groups_are_contracted():
    items = random_items(0)
    group = np.array([0, 0, 1, 2, 3, 4, 1, 5, 6, 7, 8, 9])
    found = items.contracted(group)
    assert_allclose(found.g[0], items.g[:2].sum(axis=0))
    assert_allclose(found.h[1], items.h[[2, 6]].sum())
    assert found.size.tolist() == [2, 2] + [1] * 8
    ends = {tuple(sorted(pair)) for pair in group[items.pairs].tolist() if pair[0] != pair[1]}
    assert {tuple(pair) for pair in found.pairs.tolist()} == ends


# The tree ---------------------------------------------------------------------------------------


def test_a_tree_cut_at_any_height_is_a_partition():
    X, _ = small_clusters(30)
    model = Linkage(random_state=0).fit(X)
    tree = model.result_.tree
    before = np.arange(len(X))
    for n_merges in range(tree.n_merges + 1):
        labels = tree.labels(n_merges)
        assert labels.max() + 1 == len(X) - n_merges
        # Coarser than the one before: who was together stays together.
        assert np.unique(np.column_stack((before, labels)), axis=0).shape[0] == before.max() + 1
        before = labels


def test_the_tree_is_one_for_scipy():
    X, _ = small_clusters(30)
    model = Linkage(random_state=0).fit(X)
    assert model.tree_.shape == (len(X) - 1, 4)
    assert is_valid_linkage(model.tree_)
    assert (np.diff(model.tree_[:, 2]) >= 0).all()
    cut = fcluster(model.tree_, model.tree_[len(X) - model.n_clusters_ - 1, 2], "distance")
    assert same_partition(cut, model.labels_)


def test_joins_are_when_clusters_meet():
    X, _ = small_clusters(20)
    tree = Linkage(random_state=0).fit(X).result_.tree
    pairs = np.random.RandomState(0).randint(len(X), size=(50, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    for (i, j), at in zip(pairs, tree.joins(pairs), strict=True):
        assert tree.labels(at)[i] != tree.labels(at)[j]
        if at < tree.n_merges:
            assert tree.labels(at + 1)[i] == tree.labels(at + 1)[j]


def test_share_of_joined_pairs():
    X, _ = small_clusters(20)
    tree = Linkage(random_state=0).fit(X).result_.tree
    for n_merges in (1, 20, tree.n_merges):
        sizes = np.bincount(tree.labels(n_merges))
        share = (sizes * (sizes - 1)).sum() / (len(X) * (len(X) - 1))
        assert tree.joined_shares()[n_merges - 1] == pytest.approx(share)


# Cut and calibration ----------------------------------------------------------------------------


def test_two_gaussians_are_cut_between():
    rng = np.random.RandomState(0)
    odds = np.concatenate((rng.normal(-20, 2, 8_000), rng.normal(5, 1, 4_000)))
    prior = prior_cut(odds)
    assert prior.is_clear
    assert -14 < prior.cut < 2
    assert prior.scale == pytest.approx(25, abs=1)
    assert not prior_cut(rng.normal(size=5_000)).is_clear


def cut_of(is_must, prior, *, times=40):
    """Return the cut of four merges by answers about the pairs that they join."""
    heights = np.array([9.0, 8.0, 3.0, -7.0])
    left, right = np.array([0, 2, 0, 0]), np.array([1, 3, 2, 4])
    tree = Tree(1_000, Merges(left, right, heights, heights))
    joins = np.tile(tree.joins(np.array([[0, 1], [0, 2], [1, 3], [0, 4]])), times)
    is_must = np.resize(is_must, joins.size)
    answers = Answers(joins, is_must, np.ones(joins.size))
    return choose_cut(tree, answers, Prior(prior, 10.0, is_clear=True))


def test_the_cut_satisfies_answers():
    assert 3.0 < cut_of([True, False, False, False], 20.0) < 9.0
    assert -7.0 < cut_of([True, True, True, False], 20.0) < 3.0
    assert 9.0 < cut_of([False, False, False, False], 5.0) < 99.0


def test_the_cut_stays_where_answers_are_few_or_disagree():
    assert 3.0 < cut_of([True, False, False, False], 5.0) < 9.0
    assert cut_of([False, False, False, False], 5.0, times=1) == 5.0  # one is violated
    mixed = [True, True, True, True, False, False, False, False]
    assert cut_of(mixed, 5.0) == 5.0
    none = Answers(np.zeros(0, int), np.zeros(0, bool), np.zeros(0))
    tree = Tree(3, Merges(np.array([0]), np.array([1]), np.ones(1), np.ones(1)))
    assert choose_cut(tree, none, Prior(5.0, 10.0, is_clear=True)) == 5.0


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.2])
def test_error_rate_is_found(rate):
    rng = np.random.RandomState(0)
    height = rng.uniform(-10, 10, 4_000)
    same = rng.rand(4_000) < 1 / (1 + np.exp(-2 * height))
    flipped = rng.rand(4_000) < rate
    is_must = same ^ flipped
    answers = Answers(np.zeros(4_000, int), is_must, np.ones(4_000))
    found = calibrate(height, answers, 0.0, 5.0)
    assert found.error_rate == pytest.approx(flipped.mean(), abs=0.01)
    if rate <= 0.1:  # beyond, some wrong answers are taken for a steep slope
        assert found.slope == pytest.approx(2.0, rel=0.2)
    wrong = found.wrong(height, is_must, np.ones(4_000))
    assert wrong[is_must != same].mean() > 0.5 > wrong[is_must == same].mean()


def test_a_belief_is_a_share_of_certainty():
    rule = Calibration(0.0, 1.0, 0.1)
    odds = rule.answer_odds(np.array([True, False, True]), np.array([1.0, 1.0, 1e-9]))
    assert_allclose(odds, [logit(0.9), -logit(0.9), 0.0], atol=1e-8)


# Coordinates ------------------------------------------------------------------------------------


def test_principal_components_keep_distances_and_new_samples():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 120)) + 5
    for rows in (X, np.tile(X, (3, 1)) + 1e-9 * rng.normal(size=(150, 120))):
        coordinates = Coordinates("auto", rng)
        Z = coordinates.fit_transform(rows)
        assert Z.shape[1] <= 100
        assert_allclose(coordinates.transform(rows[:4]), Z[:4], atol=1e-6)
    V = _leading(X, 100)
    assert V.shape == (120, 3)
    assert_allclose((X - X.mean(axis=0)) @ V @ V.T, X - X.mean(axis=0), atol=1e-9)


def test_gaussian_samples_stay_and_far_ones_are_drawn_in():
    rng = np.random.RandomState(0)
    Z = rng.normal(size=(4_000, 5)) @ rng.normal(size=(5, 5))
    Z -= Z.mean(axis=0)
    assert_allclose(Radii.of(Z).winsorized(Z), Z, rtol=0.1)
    far = Z * rng.standard_t(2, size=(4_000, 1))
    winsorized = Radii.of(far).winsorized(far)
    length, before = np.linalg.norm(winsorized, axis=1), np.linalg.norm(far, axis=1)
    assert (length <= before * (1 + 1e-12)).all()
    assert length.max() < before.max() / 3
    assert_allclose(
        np.abs((winsorized * far).sum(axis=1)), length * before, rtol=1e-9
    )  # same direction


# What it promises -------------------------------------------------------------------------------


@given(constraints_from_a_partition(max_samples=14, max_clusters=4), st.integers(0, 100))
@FEW
def test_hard_satisfies_every_certain_pair(known, seed):
    n = known.n_samples
    if n < 2:
        return
    X = np.random.RandomState(seed).normal(size=(n, 2))
    labels = Linkage(hard=True, random_state=0).fit(X, constraints=known).labels_
    assert known.certain.n_violated(labels) == 0


@given(constraints_from_a_partition(max_samples=14, max_clusters=4), st.integers(0, 100))
@FEW
def test_must_linked_samples_are_never_apart(known, seed):
    """Wherever the tree is cut, and whatever the threshold is."""
    certain = Constraints(known.n_samples, must_link=known.certain.must_link)
    if known.n_samples < 2:
        return
    X = np.random.RandomState(seed).normal(size=(known.n_samples, 2))
    tree = Linkage(hard=True, random_state=0).fit(X, constraints=certain).result_.tree
    for height in (np.finfo(float).max, *tree.height[np.isfinite(tree.height)]):
        assert certain.n_violated(tree.labels(tree.n_above(height))) == 0
    for threshold in (1e6, -1e6):
        model = Linkage(threshold=threshold, hard=True, random_state=0).fit(X, constraints=certain)
        assert certain.n_violated(model.labels_) == 0


@given(st.integers(0, 10**6))
@FEW
def test_hard_with_a_number_satisfies_every_pair_or_proves_it_cannot(seed):
    rng = np.random.RandomState(seed)
    n, k = 10, int(rng.randint(2, 5))
    y = rng.randint(k + (rng.rand() < 0.3), size=n)
    known = Constraints.sample(y, 8 if seed % 2 else 20, random_state=seed)
    X = rng.normal(size=(n, 2))
    try:
        labels = Linkage(k, hard=True, random_state=0).fit(X, constraints=known).labels_
    except ConflictError:
        with pytest.raises(ConflictError):
            known.check(k)
        return
    assert known.n_violated(labels) == 0
    assert labels.max() + 1 == k


def test_contradictions_are_proved_if_hard_and_weighed_if_not():
    X, y = small_clusters(d=12, spread=0.2)
    a, b, c = np.flatnonzero(y == 0)[:3]
    known = Constraints(len(X), must_link=[(a, b), (b, c)], cannot_link=[(a, c)])
    with pytest.raises(ConflictError, match="cannot-linked, but the must-links") as refused:
        Linkage(hard=True).fit(X, constraints=known)
    with pytest.raises(ConflictError) as checked:
        known.check()
    assert str(refused.value) == str(checked.value)
    model = Linkage().fit(X, constraints=known)
    worst = model.suspects_[0]
    assert worst.kind == "cannot-link"
    assert worst.samples == tuple(sorted((a, c)))


def test_labels_hold_if_hard():
    X, y = small_clusters(spread=0.8)
    partial = np.where(np.random.RandomState(0).rand(len(y)) < 0.5, y, -1)
    known = Constraints.from_labels(partial)
    labels = Linkage(hard=True).fit(X, constraints=known).labels_
    assert known.n_violated(labels) == 0
    suspects = Linkage().fit(X, constraints=known).suspects_
    assert {s.kind for s in suspects} == {"label"}
    assert len(suspects) == (partial >= 0).sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_order_of_samples_and_pairs_does_not_matter(seed):
    X, y = small_clusters(spread=0.5)
    known = Constraints.sample(y, 60, random_state=1)
    straight = Linkage(random_state=0).fit(X, constraints=known)
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(X))
    to = np.argsort(order)
    must, cannot = to[rng.permutation(known.must_link)], to[rng.permutation(known.cannot_link)]
    shuffled = Linkage(random_state=0).fit(X[order], constraints=Constraints(len(X), must, cannot))
    assert same_partition(straight.labels_[order], shuffled.labels_)
    assert shuffled.cut_ == pytest.approx(straight.cut_)
    assert shuffled.error_rate_ == pytest.approx(straight.error_rate_)


def test_same_answer_on_one_and_two_threads():
    X, y = small_clusters(200, spread=0.5)
    known = Constraints.sample(y, 100, random_state=1)
    answers = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            answers.append(Linkage(random_state=0).fit(X, constraints=known))
    assert_array_equal(answers[0].labels_, answers[1].labels_)
    assert answers[0].cut_ == answers[1].cut_


# The estimator ----------------------------------------------------------------------------------


def reviewed(X, y, n_pairs, n_wrong=0):
    """Return answers about pairs of neighbours, the first of them wrong, and the wrong pairs."""
    near = candidate_pairs(NeighborSearch(X).nearest(5)[1])
    pairs = near[np.random.RandomState(0).permutation(len(near))[:n_pairs]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    same[:n_wrong] ^= True
    wrong = {tuple(sorted(pair)) for pair in pairs[:n_wrong].tolist()}
    return Constraints(len(y), pairs[same], pairs[~same]), wrong


@pytest.mark.parametrize("seed", [0, 1])
def test_the_number_of_clusters_is_found(seed):
    X, y = small_clusters(150, size=5, d=10, spread=0.15, seed=seed)
    model = Linkage().fit(X)
    assert model.n_clusters_ == 150
    assert same_partition(y, model.labels_)
    assert model.error_rate_ is None
    assert model.suspects_ == ()


@pytest.mark.parametrize("seed", [0, 1])
def test_pairs_repair_the_cut_and_wrong_ones_are_named(seed):
    X, y = small_clusters(150, size=5, d=10, spread=0.25, seed=seed)
    without = adjusted_rand_score(y, Linkage().fit(X).labels_)
    assert 0.9 < without < 0.95
    known, wrong = reviewed(X, y, 300, n_wrong=20)
    model = Linkage().fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert model.error_rate_ == pytest.approx(20 / 300, abs=0.025)
    named = {s.samples for s in model.suspects_[:20]}
    assert len(named & wrong) >= 17
    assert all(s.probability > 0.5 for s in model.suspects_[:15])


@pytest.mark.parametrize("n_pairs", [4, 8])
def test_few_pairs_do_not_move_the_cut(n_pairs):
    X, y = small_clusters(150, size=5, d=10, spread=0.4)
    free = Linkage().fit(X)
    known, _ = reviewed(X, y, n_pairs)
    model = Linkage().fit(X, constraints=known)
    assert model.cut_ == free.cut_
    score = adjusted_rand_score(y, model.labels_)
    assert score > adjusted_rand_score(y, free.labels_) - 0.02


def test_threshold_makes_clusters_purer():
    X, _ = small_clusters(spread=0.6)
    counts = [Linkage(threshold=t).fit(X).n_clusters_ for t in (-3.0, 0.0, 3.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[2]
    assert Linkage().fit(X).n_clusters_ == counts[1]
    with pytest.raises(ValueError, match="both say where to stop"):
        Linkage(5, threshold=1.0).fit(X)


def test_probability_is_above_one_half_within_clusters():
    X, y = small_clusters(spread=0.5)
    known = Constraints.sample(y, 200, random_state=0)
    model = Linkage().fit(X, constraints=known)
    together = model.labels_[model.pairs_[:, 0]] == model.labels_[model.pairs_[:, 1]]
    assert_array_equal(model.pair_probability_ > 0.5, together)
    some = model.pairs_[:7, ::-1]
    assert_array_equal(model.pair_probability(some), model.pair_probability_[:7])
    with pytest.raises(IndexError, match="only 240 samples"):
        model.pair_probability([(0, 240)])


def test_new_samples_join_a_cluster_or_none():
    X, y = small_clusters(100, size=6, d=10, spread=0.2)
    model = Linkage().fit(X[:500])
    assert_array_equal(model.predict(X[:500]), model.labels_)
    predicted = model.predict(X[500:])
    seen = np.isin(y[500:], y[:500])
    assert (
        adjusted_rand_score(np.r_[y[:500], y[500:][seen]], np.r_[model.labels_, predicted[seen]])
        > 0.95
    )
    assert model.predict(X[:2] + 30).tolist() == [-1, -1]


def test_probability_of_new_samples():
    X, y = small_clusters(50, d=8, spread=0.2)
    model = Linkage(random_state=0).fit(X[:150])
    new = X[150:]
    joins = model.predict_proba(new)
    assert_array_equal(joins > 0.5, model.predict(new) >= 0)
    # Row by row, it is the logistic curve of the log-odds of the two samples.
    found, (i, j) = model.result_, (np.arange(50), np.roll(np.arange(50), 1))
    terms = found.odds.terms(found.coordinates.transform(new))
    odds = found.odds.between(*terms, np.column_stack((i, j))) + found.rule.prior
    expected = expit(found.rule.slope * (odds - found.rule.cut))
    assert_allclose(model.predict_proba(new[i], new[j]), expected)
    same = y[150:][i] == y[150:][j]
    mates = [np.flatnonzero(y[:150] == label)[:1] for label in y[150:]]
    have = [k for k, mate in enumerate(mates) if mate.size]
    with_mate = model.predict_proba(new[have], X[[int(mates[k][0]) for k in have]])
    assert np.median(with_mate) > 0.5 > np.median(model.predict_proba(new[i], new[j])[~same])
    with pytest.raises(ValueError, match="compared row by row"):
        model.predict_proba(new[:3], new[:4])


def test_probability_of_new_samples_on_dask():
    da = pytest.importorskip("dask.array")
    X, _ = small_clusters(50, d=8, spread=0.2)
    model = Linkage(random_state=0).fit(X[:150])
    new = da.from_array(X[150:], chunks=(20, 8))
    assert_allclose(model.predict_proba(new).compute(), model.predict_proba(X[150:]))
    with pytest.raises(ValueError, match="taken alone"):
        model.predict_proba(new, new)


def test_sparse_rows():
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(80), 4)
    words = rng.rand(80, 600) < 0.05
    X = csr_array((words[y] ^ (rng.rand(320, 600) < 0.002)).astype(float))
    model = Linkage(random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert_array_equal(model.predict(X), model.labels_)
    assert model.predict(X[:3].toarray()).tolist() == model.labels_[:3].tolist()


def test_prepared_data_give_the_same_answer():
    X, _ = small_clusters()
    assert_array_equal(Linkage().fit(Prepared(X)).labels_, Linkage().fit(X).labels_)
    with pytest.raises(ValueError, match="needs features, but the data are a graph"):
        Linkage().fit(Prepared(np.ones((4, 4)), affinity="precomputed"))


@pytest.mark.parametrize("n_clusters", [None, 2])
def test_degenerate_data(n_clusters):
    copies = np.ones((6, 2))
    assert Linkage(n_clusters).fit(copies).labels_.shape == (6,)
    two = Linkage(n_clusters).fit([[0.0], [1.0]])
    assert two.labels_.shape == (2,)
    pairs = np.repeat(np.random.RandomState(0).normal(size=(20, 3)), 2, axis=0)
    labels = Linkage(20).fit(pairs).labels_
    assert same_partition(labels, np.repeat(np.arange(20), 2))


@pytest.mark.parametrize("power", [350, -350])
def test_the_scale_of_the_data_does_not_matter(power):
    X, _ = small_clusters(40)
    found = Linkage().fit(X).labels_
    assert_array_equal(Linkage().fit(np.ldexp(X, power)).labels_, found)
    with pytest.raises(ValueError, match="divide X by"):
        Linkage().fit(np.ldexp(X, 2 * power))


def test_a_second_fit_forgets_the_first():
    X, _ = small_clusters(30)
    Z, _ = small_clusters(40, seed=1)
    model = Linkage().fit(X)
    model.tree_, model.pair_probability_, model.predict(X + 0.01)
    model.fit(Z)
    assert model.tree_.shape == (159, 4)
    assert model.pair_probability_.shape == model.pairs_.shape[:1]
    assert_array_equal(model.predict(Z), model.labels_)


def test_ctrl_c_is_heard(monkeypatch):
    X, _ = small_clusters()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("linkwise.linkage.tree.merge_some", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Linkage().fit(X)


def test_candidates_are_distinct_pairs():
    assert candidate_pairs(np.array([[1, 2], [0, 2], [0, 1]])).tolist() == [[0, 1], [0, 2], [1, 2]]


def test_the_likelihood_of_answers_is_that_of_each_of_them():
    rng = np.random.RandomState(0)
    x, is_must = rng.uniform(-3, 3, 50), rng.rand(50) < 0.5
    belief, moves = rng.rand(50), np.array([-1.0, 0.0, 0.7])
    answers = Answers(np.zeros(50, int), is_must, belief)
    gain, error = _gains(x, answers, moves, MODELS)

    def logs(cut):
        """Return the log-likelihood of each answer, with what suits all best, and its prior."""
        each = []
        for slope, w in MODELS:
            p = expit(np.where(is_must, 1, -1) * slope * (x - cut))
            each.append((np.log(w + (1 - 2 * w) * p), 48 * np.log1p(-w)))
        return max(each, key=lambda log: belief @ log[0] + log[1])

    for k, move in enumerate(moves):
        (there, after), (here, before) = logs(move), logs(0.0)
        differences = belief * (there - here)
        # Heights are in bins of a fiftieth.
        assert gain[k] == pytest.approx(differences.sum() + after - before, abs=0.5)
        assert error[k] == pytest.approx(np.sqrt(np.square(differences).sum()), abs=0.5)


def test_answers_that_a_cut_satisfies_do_not_push_it_down():
    """One kind just above the cut, the other far below: merging more would have no support."""
    heights = np.concatenate((np.linspace(0.1, 0.4, 400), np.linspace(-3, -1, 400)))
    pairs = np.arange(1_600).reshape(-1, 2)[np.argsort(-heights)]
    falling = np.sort(heights)[::-1]
    tree = Tree(100_000, Merges(pairs[:, 0], pairs[:, 1], falling, falling))
    is_must = np.arange(800) < 400
    joins = np.argsort(np.argsort(-heights))
    answers = Answers(joins, is_must, np.ones(800))
    assert choose_cut(tree, answers, Prior(0.0, 1.0, is_clear=True)) == 0.0
    # Where answers are violated it still moves, and up until it is between the two kinds.
    assert choose_cut(tree, answers, Prior(0.5, 1.0, is_clear=True)) < 0.1
    assert choose_cut(tree, answers, Prior(-0.95, 1.0, is_clear=True)) > -0.8


def test_what_an_answer_asks_for_is_merged_last():
    """A far pair that an answer joins must not be the seed of its cluster."""
    x = np.array([[0.0], [0.2], [0.3], [2.0]])
    pairs = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [0, 3]])
    items = Items.samples(x, x[:, 0] ** 2 / 2, pairs)
    items = items._replace(answer=np.array([0, 0, 0, 0, 5.0]))
    rule = MergeRule(1.0, stop=-9.0, level=0.0)
    found = grow_tree(items, rule)
    assert found.left.size == 3
    assert 3 in (found.left[2], found.right[2])
    assert 0 < found.height[2] < 1e-6
    assert found.odds[2] > 1  # the answer counts in the probability
    hurried = grow_tree(items, rule._replace(level=np.inf))
    assert {hurried.left[0], hurried.right[0]} == {0, 3}


# The review queue -------------------------------------------------------------------------------


def test_review_queue_is_that_of_the_formula():
    X, y = small_clusters(40, spread=0.4)
    known, _ = reviewed(X, y, 30)
    model = Linkage(random_state=0).fit(X, constraints=known)
    found, result = model.review(known), model.result_
    assert (np.diff(found.value) <= 1e-12).all()
    rule, labels = result.rule, model.labels_
    answered = {tuple(pair) for pair in known.table.pairs.tolist()}
    for (i, j), p, value in zip(found.pairs.tolist(), found.probability, found.value, strict=True):
        assert (i, j) not in answered
        before = result.tree.labels(min(result.tree.joins(np.array([[i, j]]))[0], result.n_merges))
        A, B = (np.flatnonzero(before == before[k]) for k in (i, j))
        assert value == pytest.approx(p * (1 - p) * np.sqrt(A.size * B.size))
        if labels[i] != labels[j] and not any(
            (labels[[i, j]] == labels[list(pair)]).all()
            or (labels[[j, i]] == labels[list(pair)]).all()
            for pair in answered
        ):
            mean = mean_log_odds(rule.c, result.embedding, result.h, A, B)
            weight = np.sqrt(2 * A.size * B.size / (A.size + B.size))
            odds = rule.slope * (mean + rule.prior / np.sqrt(weight) - rule.cut)
            assert logit(p) == pytest.approx(odds, abs=1e-6)


def test_two_clusters_are_asked_about_once():
    X, _ = small_clusters(40, spread=0.4)
    model = Linkage(random_state=0).fit(X)
    pairs = model.review().pairs
    between = np.sort(model.labels_[pairs], axis=1)
    between = between[between[:, 0] != between[:, 1]]
    assert len(np.unique(between, axis=0)) == len(between) > 0


def test_items_are_scored_as_the_kernel_does():
    items = random_items(0)._replace(answer=np.random.RandomState(0).choice([0.0, 1.5, -1.0], 30))
    rule = MergeRule(0.3, cut=-0.2, slope=1.5, prior=-0.7)
    found = grow_tree(items, rule)
    first = {found.left[0], found.right[0]}
    at = [set(pair) == first for pair in items.pairs.tolist()].index(True)
    assert items.scores(rule)[at] == pytest.approx(found.odds[0])


def test_probability_of_a_sample_is_the_mean_over_its_mates():
    X, _ = small_clusters(30, spread=0.5)
    model = Linkage(random_state=0).fit(X)
    for i in range(len(X)):
        mates = np.flatnonzero((model.labels_ == model.labels_[i]) & (np.arange(len(X)) != i))
        if mates.size:
            expected = model.pair_probability([(i, j) for j in mates]).mean()
        else:
            near = model.pairs_[(model.pairs_ == i).any(axis=1)]
            expected = 1 - model.pair_probability(near).max()
        assert model.probability_[i] == pytest.approx(expected)


def test_asking_the_queue_helps_more_than_asking_neighbours():
    X, y = small_clusters(60, size=6, d=8, spread=0.45)
    known = Constraints(len(X))
    for _ in range(3):
        queue = Linkage(random_state=0).fit(X, constraints=known).review(known).pairs[:30]
        same = y[queue[:, 0]] == y[queue[:, 1]]
        known = known.with_pairs(must_link=queue[same], cannot_link=queue[~same])
    asked = Linkage(random_state=0).fit(X, constraints=known)
    others, _ = reviewed(X, y, 90)
    drawn = Linkage(random_state=0).fit(X, constraints=others)
    scores = [adjusted_rand_score(y, model.labels_) for model in (asked, drawn)]
    assert scores[0] > scores[1]


# Records ----------------------------------------------------------------------------------------

PEOPLE = {
    "name": ["Ann Smith", "Anne Smith", "Bo Li", "", "n/a"],
    "age": [41.0, 42.0, 90.0, np.nan, np.nan],
    "sex": ["f", "f", "m", "", ""],
}


def test_a_missing_field_agrees_with_nothing():
    V = RecordVectorizer(["name"], numeric=["age"], categorical=["sex"]).fit_transform(PEOPLE)
    agreement = (V @ V.T).toarray()
    assert_allclose(agreement[3:], 0.0)  # nothing is known of these, not even of each other
    assert_allclose(np.diag(agreement)[:3], 1.0)
    assert agreement[0, 1] > 0.5 > agreement[0, 2]
    sexless = {**PEOPLE, "sex": [""] * 5}
    other = RecordVectorizer(["name"], numeric=["age"], categorical=["sex"]).fit(PEOPLE)
    without = other.transform(sexless)
    assert (without @ without.T).toarray()[0, 2] <= agreement[0, 2] + 1e-12


def test_near_numbers_agree_in_part_and_categories_wholly():
    numbers = {"x": np.arange(100.0), "c": list("ab") * 50, "t": [f"w{k}" for k in range(100)]}
    model = RecordVectorizer(["t"], numeric=["x"], categorical=["c"]).fit(numbers)
    hats = model.transform({**numbers, "c": [""] * 100, "t": [""] * 100})
    agreement = (hats @ hats.T).toarray()
    assert_allclose(np.diag(agreement), 1.0)
    assert agreement[50, 51] > agreement[50, 55] > agreement[50, 70] == 0.0
    classes = model.transform({**numbers, "x": np.full(100, np.nan), "t": [""] * 100})
    assert_allclose((classes @ classes.T).toarray()[0, :4], [1, 0, 1, 0])
    unseen = model.transform({"x": [np.nan], "c": ["z"], "t": [""]})
    assert unseen.nnz == 0


def test_records_with_typing_errors_are_found():
    rng = np.random.RandomState(0)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    names = ["".join(rng.choice(letters, 8)) + "".join(rng.choice(letters, 9)) for _ in range(80)]
    y = np.repeat(np.arange(80), 3)
    typed = []
    for k in y:
        name = list(names[k])
        name[rng.randint(17)] = letters[rng.randint(26)]
        typed.append("".join(name))
    V = RecordVectorizer(["name"]).fit_transform({"name": typed})
    model = Linkage(random_state=0).fit(V)
    assert adjusted_rand_score(y, model.labels_) > 0.95
