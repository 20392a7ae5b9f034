"""CCL: Klein, Kamvar & Manning 2002, constrained complete link."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score

from linkwise import Constraints
from linkwise.exceptions import TooLargeError
from linkwise.methods import ccl as module
from linkwise.methods.ccl import (
    CCL,
    Distances,
    ccl,
    complete_link,
    constrained_distances,
    group_distances,
    nearest_allowed,
    shorten,
)

# Six points on a line, written out below.
LINE = np.array([[0.0], [1.0], [4.0], [6.0], [10.0], [11.5]])


def pairs_of(y, seed, n_pairs):
    return Constraints.sample(y, min(n_pairs, len(y) * (len(y) - 1) // 2), random_state=seed)


def floyd_warshall(D):
    """Shortest paths over all points, by three loops."""
    D = D.copy()
    for m, i, j in product(range(len(D)), repeat=3):
        D[i, j] = min(D[i, j], D[i, m] + D[m, j])
    return D


def naive_complete_link(D, k):
    """Merge the clusters of smallest diameter until `k` are left, by looking at all pairs."""
    clusters = [[i] for i in range(len(D))]
    heights = []
    while len(clusters) > k:
        distance = {
            (a, b): D[np.ix_(clusters[a], clusters[b])].max()
            for a, b in combinations(range(len(clusters)), 2)
        }
        a, b = min(distance, key=distance.get)
        heights.append(distance[a, b])
        clusters[a] += clusters.pop(b)
    labels = np.empty(len(D), dtype=int)
    for c, members in enumerate(clusters):
        labels[members] = c
    return labels, heights


# The example by hand ----------------------------------------------------------------------------


def test_six_points_by_hand():
    # Must-link 1 - 4 (at 1 and 10): the pair g is at distance 1 from sample 0, min(3, 6) = 3 from
    # sample 2, min(5, 4) = 4 from sample 3, 1.5 from sample 5. Through it 0 - 5 is 1 + 1.5 = 2.5
    # instead of 11.5, 0 - 3 is 5 instead of 6, 2 - 5 is 4.5 instead of 7.5; 0 - 2 stays 4,
    # 2 - 3 stays 2 and 3 - 5 stays 5.5.
    known = Constraints(6, must_link=[(1, 4)])
    group = known.components()
    assert group.tolist() == [0, 1, 2, 3, 1, 4]
    D = constrained_distances(LINE, known, group).D
    expected = [
        [0.0, 1.0, 4.0, 5.0, 2.5],
        [1.0, 0.0, 3.0, 4.0, 1.5],
        [4.0, 3.0, 0.0, 2.0, 4.5],
        [5.0, 4.0, 2.0, 0.0, 5.5],
        [2.5, 1.5, 4.5, 5.5, 0.0],
    ]
    assert_allclose(D, expected, rtol=1e-12)
    # g and 0 at 1; 2 and 3 at 2; {g, 0} and 5 at max(1.5, 2.5); the rest at max(4, 5, 5.5, ...).
    model = CCL(2).fit(LINE, constraints=known)
    tree = [
        [1, 4, 0.0, 2],
        [0, 6, 1.0, 3],
        [2, 3, 2.0, 2],
        [5, 7, 2.5, 4],
        [8, 9, 5.5, 6],
    ]
    assert_allclose(model.linkage_, tree, rtol=1e-12)
    assert_array_equal(model.children_, np.array(tree)[:, :2])
    assert_array_equal(model.labels_, [0, 0, 1, 1, 0, 0])
    assert model.result_.objective == 2.5


def test_six_points_by_hand_with_a_cannot_link():
    # With 0 and 5 apart, {g, 0} may not take 5: {2, 3} joins {g, 0} at max(3, 4, 4, 5) = 5, before
    # 5 and {2, 3} at 5.5. The last merge is across the cannot-link, at twice the largest distance.
    known = Constraints(6, must_link=[(1, 4)], cannot_link=[(0, 5)])
    model = CCL(2).fit(LINE, constraints=known)
    assert_allclose(model.linkage_[:, 2], [0, 1, 2, 5, 11], rtol=1e-12)
    assert_array_equal(model.labels_, [0, 0, 0, 0, 0, 1])


# Distances --------------------------------------------------------------------------------------


@given(st.integers(3, 14), st.integers(0, 10_000), st.integers(0, 8))
def test_detours_over_must_links_are_all_shortest_paths(n, seed, n_links):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 2))
    must = rng.randint(n, size=(n_links, 2))
    must = must[must[:, 0] != must[:, 1]]
    D = cdist(X, X)
    D[must[:, 0], must[:, 1]] = D[must[:, 1], must[:, 0]] = 0
    known = Constraints(n, must)
    group = known.components()
    found = constrained_distances(X, known, group).D
    assert_allclose(found[np.ix_(group, group)], floyd_warshall(D), atol=1e-12)
    assert_array_equal(found, found.T)


@given(st.integers(3, 12), st.integers(0, 10_000))
def test_shorten_is_floyds_algorithm_over_some_points(n, seed):
    # Arbitrary symmetric numbers: nothing but the points in `through` may be on a path.
    rng = np.random.RandomState(seed)
    D = rng.uniform(size=(n, n))
    D = np.minimum(D, D.T)
    np.fill_diagonal(D, 0)
    through = np.flatnonzero(rng.uniform(size=n) < 0.4)
    expected = D.copy()
    for m, i, j in product(through, range(n), range(n)):
        expected[i, j] = min(expected[i, j], expected[i, m] + expected[m, j])
    shorten(D, through)
    assert_allclose(D, expected, atol=1e-12)


@pytest.mark.parametrize("block", [1, 7, 50, 10_000])
def test_group_distances_in_blocks(monkeypatch, block):
    monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.RandomState(0)
    X = rng.normal(size=(20, 3))
    group = np.unique(rng.randint(8, size=20), return_inverse=True)[1]
    all_distances = cdist(X, X)
    for g, h in combinations(range(group.max() + 1), 2):
        expected = all_distances[np.ix_(group == g, group == h)].min()
        for given_as, metric in ((X, "euclidean"), (all_distances, "precomputed")):
            assert group_distances(given_as, group, metric)[g, h] == expected


def test_beliefs_move_distances_by_their_share():
    # 0 - 1 halves to 0.5; then 0 - 2 is 0.5 + 3 = 3.5. The largest distance is then 11 (0 - 5).
    known = Constraints(
        6, [(0, 1)], [(2, 3)], must_link_belief=0.5, cannot_link_belief=0.25
    )  # fmt: skip
    found = constrained_distances(LINE, known, np.arange(6))
    assert found.top == 11.0
    assert_allclose(found.D[0], [0, 0.5, 3.5, 5.5, 9.5, 11.0])
    assert found.D[2, 3] == found.D[3, 2] == 2 + 0.25 * (11 - 2)
    assert found.apart.shape == (0, 2)


def test_of_several_pairs_between_groups_the_most_believed_counts():
    known = Constraints(
        6,
        [(0, 1), (0, 2), (1, 2)],
        [(0, 4), (1, 4)],
        must_link_belief=[1.0, 0.2, 0.6],
        cannot_link_belief=[0.9, 0.3],
    )
    group = known.components()
    found = constrained_distances(LINE, known, group)
    g, two, four = group[0], group[2], group[4]
    assert found.D[g, two] == pytest.approx(0.4 * 3)
    plain = 1.2 + 6  # from the pair over sample 2 to sample 4
    assert found.D[g, four] == pytest.approx(plain + 0.9 * (found.top - plain))


def test_near_certain_beliefs_give_the_clusters_of_certain_pairs():
    X, y = make_blobs(40, centers=3, cluster_std=2, random_state=0)
    known = pairs_of(y, 0, 6)
    certain = CCL(3, random_state=0).fit(X, constraints=known).labels_
    nearly = CCL(3).fit(X, constraints=known.with_belief(1 - 1e-9)).labels_
    assert_array_equal(certain, nearly)


# Merging ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("n", [2, 3, 10, 150])
def test_without_constraints_it_is_scipys_complete_linkage(metric, n):
    X = np.random.RandomState(n).normal(size=(n, 4))
    model = CCL(2, metric=metric).fit(X)
    name = {"manhattan": "cityblock"}.get(metric, metric)
    expected = hierarchy.linkage(X, "complete", metric=name)
    assert_allclose(model.linkage_, expected, rtol=1e-12)
    for k in range(2, min(n, 8) + 1):
        clusters = hierarchy.cut_tree(expected, k).ravel()
        labels = CCL(k, metric=metric).fit(X).labels_
        assert adjusted_rand_score(clusters, labels) == 1
        assert set(labels) == set(range(k))


@settings(max_examples=60)
@given(st.integers(4, 14), st.integers(2, 4), st.integers(0, 10_000), st.integers(0, 12))
def test_merges_equal_those_of_the_definition(n, k, seed, n_pairs):
    # Twin: distances of all samples by Floyd, cannot-links beyond, then all pairs of clusters.
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(n, 2)), rng.randint(3, size=n)
    known = pairs_of(y, seed, n_pairs)
    group = known.components()
    tree = complete_link(constrained_distances(X, known, group))
    D = cdist(X, X)
    must, closure = known.must_link, known.closure()
    D[must[:, 0], must[:, 1]] = D[must[:, 1], must[:, 0]] = 0
    D = floyd_warshall(D)
    top = D.max()
    i, j = closure.cannot_link.T
    D[i, j] = D[j, i] = 10 * top + D[i, j]
    labels, heights = naive_complete_link(D, min(k, tree.left.size + 1))
    heights = np.minimum(heights, 2 * top)
    n_inside = n - tree.left.size - 1  # merges of must-linked samples, at height 0
    assert_allclose(heights[n_inside:], tree.height[: len(heights) - n_inside], atol=1e-12)
    assert adjusted_rand_score(labels, module._cut(tree, k)[group]) == pytest.approx(1)


@settings(max_examples=60)
@given(
    st.integers(4, 30),
    st.integers(2, 4),
    st.integers(0, 10_000),
    st.integers(0, 40),
    st.sampled_from(["sound", "paper"]),
)
@pytest.mark.filterwarnings("ignore:.*cannot-link.*violated:UserWarning")
def test_the_tree_is_valid_and_the_clusters_are_its_cut(n, k, seed, n_pairs, merging):
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(n, 2)), rng.randint(k, size=n)
    known = pairs_of(y, seed, n_pairs)
    result = ccl(X, known, k, merging=merging, random_state=0)
    assert hierarchy.is_valid_linkage(result.linkage, throw=True)
    assert hierarchy.is_monotonic(result.linkage)
    assert sorted(hierarchy.leaves_list(result.linkage)) == list(range(n))
    assert result.linkage[-1, 3] == n
    # Undoing the last k - 1 merges leaves the clusters: one root each.
    n_made = max(0, n - k)
    clusters = {i: {i} for i in range(n)}
    for row, (a, b, _, size) in enumerate(result.linkage[:n_made]):
        clusters[n + row] = clusters.pop(int(a)) | clusters.pop(int(b))
        assert len(clusters[n + row]) == size
    if len(np.unique(known.components())) >= k:
        assert len(clusters) == k == len(np.unique(result.labels))
        for members in clusters.values():
            assert np.unique(result.labels[list(members)]).size == 1
    must = known.must_link
    assert (result.labels[must[:, 0]] == result.labels[must[:, 1]]).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [2, 3, 5])
def test_all_pairs_of_the_true_labels_return_the_true_labels(k, seed):
    # Labels that have nothing to do with the data.
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(40, 3)), rng.permutation(np.arange(40) % k)
    spanning = Constraints(
        40,
        [pair for c in range(k) for pair in zip(*[iter(np.flatnonzero(y == c))] * 2, strict=False)]
        + [tuple(np.flatnonzero(y == c)[i : i + 2]) for c in range(k) for i in range(1, 40 // k, 2)
           if i + 1 < (y == c).sum()],
        [tuple(np.flatnonzero(y == c)[:1]) + tuple(np.flatnonzero(y == d)[:1])
         for c, d in combinations(range(k), 2)],
    )  # fmt: skip
    everything = spanning.closure().to_constraints()
    assert everything.n_pairs == 40 * 39 // 2
    for known in (everything, spanning, Constraints.from_labels(y)):
        labels = CCL(k).fit(X, constraints=known).labels_
        assert adjusted_rand_score(y, labels) == 1


def test_clusters_come_from_the_order_of_merges_not_from_a_height():
    # Copies merge at height 0, all of them: a cut by height leaves two clusters.
    X = np.array([[0.0], [0.0], [0.0], [0.0], [5.0]])
    result = ccl(X, Constraints(5), 3)
    assert np.unique(hierarchy.fcluster(result.linkage, 3, "maxclust")).size == 2
    assert np.unique(result.labels).size == 3
    # Four samples, mutually apart: the last three merges have one height.
    known = Constraints(5, (), list(combinations(range(4), 2)))
    with pytest.warns(UserWarning, match="2 cannot-link.*violated"):
        result = ccl(np.arange(5.0)[:, None], known, 2)
    assert_allclose(result.linkage[:, 2], [1, 8, 8, 8])
    assert np.unique(hierarchy.fcluster(result.linkage, 2, "maxclust")).size == 1
    assert np.unique(result.labels).size == 2


# Cannot-links -----------------------------------------------------------------------------------


def test_a_dead_end_of_the_paper_is_avoided():
    # The three pairs of neighbours merge first, and are then mutually apart. The paper merges the
    # first two, which violates 0 | 2. Sample 2 is nearer to the other cluster than sample 0.
    X = np.array([[0.0], [0.1], [10.0], [10.2], [20.0], [20.3]])
    known = Constraints(6, (), [(0, 2), (1, 4), (3, 5)])
    with pytest.warns(UserWarning, match=r"1 cannot-link.*violated.*samples 0 and 2") as warned:
        paper = CCL(2, merging="paper").fit(X, constraints=known)
    assert warned[0].filename == __file__
    assert_array_equal(paper.labels_, [0, 0, 0, 0, 1, 1])
    sound = CCL(2, random_state=0).fit(X, constraints=known)
    assert_array_equal(sound.labels_, [0, 0, 1, 0, 1, 1])
    # 0 - 1, then 4 - 5, then the two others join those they may be with.
    assert_allclose(sound.linkage_[:, 2], [0.1, 0.3, 10.2, 10.3, 40.6], rtol=1e-12)


def test_merges_across_wanted_clusters_come_last_and_never_lower():
    # 0 and 1 are nearest, but shall be in two clusters: they merge after 2 and 3, at their height.
    D = cdist(*[np.array([[0.0], [1.0], [10.0], [20.0]])] * 2)
    nothing = np.empty((0, 2), dtype=np.intp)
    tree = complete_link(Distances(D, nothing, 20.0), np.array([0, 1, 2, 2]))
    assert {tree.left[0], tree.right[0]} == {2, 3}
    assert_allclose(tree.height, [10, 10, 20])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_feasible_cannot_links_always_hold(k):
    violated = 0
    for seed in range(15):
        rng = np.random.RandomState(seed)
        X, y = rng.normal(size=(60, 2)), rng.permutation(np.arange(60) % k)
        known = pairs_of(y, seed, 50)
        labels = (
            CCL(k, random_state=0).fit(X, constraints=known).labels_
        )  # a warning would be an error
        assert known.n_violated(labels) == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_warn_if_violated", lambda *_: None)
            violated += known.n_violated(ccl(X, known, k, merging="paper").labels)
    assert violated > 0  # what the paper's order does with the same pairs


@settings(max_examples=60)
@given(st.integers(3, 7), st.integers(2, 3), st.integers(0, 10_000), st.floats(0.1, 0.6))
def test_allowed_clusters_are_the_nearest(n, k, seed, density):
    # Reference: all ways to give n groups k clusters.
    rng = np.random.RandomState(seed)
    D = cdist(*[rng.normal(size=(n, 2))] * 2)
    i, j = np.triu_indices(n, 1)
    apart = np.column_stack([i, j])[rng.uniform(size=i.size) < density]
    labels = rng.permutation(np.concatenate([np.arange(k), rng.randint(k, size=n - k)]))
    wanted = nearest_allowed(Distances(D, apart, D.max()), labels, k, rng=rng)
    ways = np.array(list(product(range(k), repeat=n)))
    ways = ways[(ways[:, apart[:, 0]] != ways[:, apart[:, 1]]).all(axis=1)]
    if len(ways) == 0:
        assert wanted is None
        return
    assert (ways == wanted).all(axis=1).any()
    cost = np.zeros((n, k))
    for g, c in product(range(n), range(k)):
        others = (labels == c) & (np.arange(n) != g)
        if g not in apart:
            cost[g, c] = D.max() * (labels[g] != c)
        elif others.any():
            cost[g, c] = D[g, others].mean()
    paid = cost[np.arange(n), ways].sum(axis=1)
    best = ways[paid.argmin()]
    assert cost[np.arange(n), wanted].sum() >= paid.min() - 1e-12
    if np.unique(best).size == k:
        # Rings leave room for error, but not on so few groups.
        assert cost[np.arange(n), wanted].sum() == pytest.approx(paid.min())
        free = np.setdiff1d(np.arange(n), apart)
        assert_array_equal(wanted[free], labels[free])


def test_cannot_links_that_cannot_hold_are_reported():
    # A hub and a ring of five need four clusters; no four samples are mutually apart.
    ring = [(i, (i + 1) % 5) for i in range(5)]
    known = Constraints(8, (), ring + [(5, i) for i in range(5)])
    X = np.random.RandomState(0).normal(size=(8, 2))
    with pytest.warns(UserWarning, match=r"cannot-link.*violated"):
        result = ccl(X, known, 3)
    assert known.n_violated(result.labels) >= 1
    assert len(np.unique(result.labels)) == 3
    assert known.n_violated(ccl(X, known, 4).labels) == 0


def test_pairs_help_on_iris():
    X, y = load_iris(return_X_y=True)
    few, many = (pairs_of(y, 0, m) for m in (30, 300))
    plain, some, most = (
        adjusted_rand_score(y, CCL(3, random_state=0).fit(X, constraints=known).labels_)
        for known in (None, few, many)
    )
    assert plain < some
    assert most > 0.95


# The shell --------------------------------------------------------------------------------------


def test_precomputed_distances_give_the_same_answer():
    X, y = make_blobs(60, centers=3, cluster_std=2, random_state=1)
    known = pairs_of(y, 0, 20)
    D = cdist(X, X)
    before = D.copy()
    from_samples = CCL(3).fit(X[:45], constraints=known.restrict(range(45)))
    from_distances = CCL(3, metric="precomputed").fit(
        D[:45, :45], constraints=known.restrict(range(45))
    )
    assert_array_equal(from_samples.linkage_, from_distances.linkage_)
    assert_array_equal(from_samples.predict(X[45:]), from_distances.predict(D[45:, :45]))
    assert_array_equal(D, before)
    # scikit-learn takes rows and columns of a matrix between samples.
    scores = cross_val_score(
        CCL(3, metric="precomputed"), D, y, cv=3, scoring="adjusted_rand_score"
    )
    assert_allclose(
        scores, cross_val_score(CCL(3), X, y, cv=3, scoring="adjusted_rand_score"), atol=1e-12
    )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_new_samples_get_the_cluster_of_their_nearest_sample(monkeypatch, metric):
    X, _ = make_blobs(50, centers=3, cluster_std=4, random_state=0)
    model = CCL(3, metric=metric).fit(X[:30])
    name = {"manhattan": "cityblock"}.get(metric, metric)
    expected = model.labels_[cdist(X[30:], X[:30], name).argmin(axis=1)]
    assert_array_equal(model.predict(X[30:]), expected)
    monkeypatch.setattr(module, "BLOCK", 90)
    assert_array_equal(model.predict(X[30:]), expected)
    assert_array_equal(model.predict(X[:30]), model.labels_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda D: D[:, :4], r"square.*\(5, 4\)"),
        (lambda D: D - 3, "must not be negative"),
        (lambda D: D + np.eye(5), "sample 0 to itself is 1"),
        (np.triu, r"symmetric.*D\[0, 4\] is 4"),
    ],
)
def test_wrong_distances(change, message):
    D = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    with pytest.raises(ValueError, match=message):
        CCL(2, metric="precomputed").fit(change(D))


def test_distances_that_do_not_exist():
    with pytest.raises(ValueError, match=r"Sample 1 is zero in all features"):
        CCL(2, metric="cosine").fit([[1.0, 2.0], [0.0, 0.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="leave the range"):
        CCL(2).fit([[1e200], [-1e200], [0.0]])


def test_too_many_groups_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_GROUPS", 10)
    X = np.random.RandomState(0).normal(size=(12, 2))
    with pytest.raises(TooLargeError, match=r"all 12 groups.*at most 10.*SignedCSC"):
        CCL(2).fit(X)
    # Groups count, not samples.
    known = Constraints(12, must_link=[(0, 1), (1, 2)])
    assert CCL(2).fit(X, constraints=known).labels_.size == 12


# Corners ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(2, 7))
def test_tiny_inputs(n):
    X = np.arange(n, dtype=float)[:, None] ** 2
    for k in range(2, n + 1):
        model = CCL(k, random_state=0).fit(X, constraints=Constraints(n, (), [(0, n - 1)]))
        assert set(model.labels_) == set(range(k))
        assert model.labels_[0] != model.labels_[n - 1]
        assert hierarchy.is_valid_linkage(model.linkage_)


def test_copies_of_one_sample():
    known = Constraints(8, [(0, 1), (2, 3)], [(0, 2)])
    model = CCL(3).fit(np.zeros((8, 2)), constraints=known)
    assert set(model.labels_) == {0, 1, 2}
    assert model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3]
    assert model.linkage_[-1, 2] == 1.0  # nothing is far; apart is still above
    assert model.linkage_[-2, 2] == 0.0


@pytest.mark.parametrize("factor", [1e-100, 1e-10, 1e10, 1e100])
def test_the_unit_of_the_data_does_not_matter(factor):
    X, y = make_blobs(60, centers=3, cluster_std=3, random_state=1)
    known = pairs_of(y, 0, 40)
    model, scaled = (
        CCL(3, random_state=0).fit(X, constraints=known),
        CCL(3, random_state=0).fit(factor * X, constraints=known),
    )
    assert_array_equal(model.labels_, scaled.labels_)
    assert_allclose(scaled.linkage_[:, 2], factor * model.linkage_[:, 2], rtol=1e-9)


def test_the_order_of_samples_does_not_matter():
    X, y = make_blobs(60, centers=3, cluster_std=3, random_state=1)
    known = pairs_of(y, 0, 40)
    order = np.random.RandomState(0).permutation(60)
    straight = CCL(3, random_state=0).fit(X, constraints=known).labels_
    shuffled = CCL(3, random_state=0).fit(X[order], constraints=known.restrict(order)).labels_
    assert adjusted_rand_score(straight[order], shuffled) == 1


@pytest.mark.parametrize("factor", [1e-218, 1e-300])
def test_distances_that_vanish_are_refused_and_directions_are_not(factor):
    X, _ = make_blobs(30, centers=3, random_state=0)
    with pytest.raises(ValueError, match="leave the range of floating-point numbers"):
        CCL(3).fit(factor * X)
    for metric in ("cosine", "manhattan"):
        here, there = CCL(3, metric=metric).fit(X), CCL(3, metric=metric).fit(factor * X)
        assert_array_equal(here.labels_, there.labels_)
        assert_array_equal(there.predict(factor * X), there.labels_)
