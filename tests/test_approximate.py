"""The search by cells: against all pairs, its recall, its seed, and how Affinity uses it."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import EfficiencyWarning
from sklearn.neighbors import KNeighborsTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from linkwise.exceptions import LowRecallWarning
from linkwise.graph import (
    Affinity,
    ApproximateNeighbors,
    affinity,
    approximate,
    cells,
    neighbors,
    tiles,
    transformer,
)
from linkwise.graph.neighbors import NeighborSearch


def blobs(n=3_000, d=6, seed=0):
    return make_blobs(n, d, centers=8, cluster_std=1.5, random_state=seed)[0]


def structureless(n=3_000, d=20, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def all_pairs(X, k):
    """The k nearest of each sample among all distances: the slow twin."""
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    near = np.sort(np.argpartition(D, k - 1, axis=1)[:, :k], axis=1)
    order = np.take_along_axis(
        near, np.argsort(np.take_along_axis(D, near, axis=1), axis=1, kind="stable"), axis=1
    )
    return np.take_along_axis(D, order, axis=1), order


def true_recall(found, true):
    return np.mean(found <= true[:, -1:] * (1 + 1e-9))


def in_order(table):
    return np.sort(table[1], axis=1)


# ---- kernels against their twins ----


@pytest.mark.parametrize("n_columns", [1, 63, 64, 65, 200])
def test_the_lists_hold_the_smallest_scores(n_columns):
    rng = np.random.default_rng(n_columns)
    scores = rng.normal(size=(7, n_columns)).astype(np.float32)
    norms = rng.uniform(size=7).astype(np.float32)
    queries = rng.permutation(9)[:7]
    found = cells.Found.nothing(9, 5)
    cells.keep_smallest(scores, norms, queries, 100, found)
    for row, query in enumerate(queries):
        order = np.argsort(scores[row])[:5]
        assert_array_equal(found.positions[query, : order.size], 100 + order)
        assert_allclose(found.squares[query, : order.size], scores[row, order] + norms[row])
        assert_array_equal(found.positions[query, order.size :], -1)
    assert np.isinf(found.squares[np.setdiff1d(np.arange(9), queries)]).all()


@pytest.mark.parametrize("width", [1, 2, 8, 9, 12, 15, 16, 17, 30])
def test_a_neighbour_is_entered_at_once_as_step_by_step(width):
    rng = np.random.default_rng(width)
    found, twin = (cells.Found.nothing(3, width) for _ in range(2))
    for position, square in enumerate(rng.integers(60, size=200).astype(np.float32)):  # with ties
        query = position % 3
        if square < twin.squares[query, -1]:
            cells.insert(twin, query, square, position)
            assert tiles.enter(found, query, square, position) == twin.squares[query, -1]
        assert_array_equal(found.squares, twin.squares)
        assert_array_equal(found.positions, twin.positions)


@pytest.mark.parametrize("n_features", [1, 5, 16, 33])
@pytest.mark.parametrize("n_queries", [1, 15, 16, 40])
def test_tiles_enter_the_nearest_members(n_features, n_queries):
    """Whatever is left over when members and queries are taken several at a time."""
    rng = np.random.default_rng(n_features)
    for n_members in (1, 2, tiles.ROWS - 1, tiles.ROWS, 3 * tiles.ROWS + 5, 200):
        rows = rng.normal(size=(n_members, n_features))
        queries = rng.normal(size=(n_queries, n_features)).astype(np.float32)
        found = cells.Found.nothing(n_queries, 7)
        tiles.search_all(cells.augmented(rows), (0, len(rows)), queries, found)
        far = cdist(queries, rows, "sqeuclidean")
        order = np.argsort(far, axis=1)[:, :7]
        width = order.shape[1]
        assert_array_equal(found.positions[:, :width], order)
        near = np.take_along_axis(far, order, axis=1)
        assert_allclose(found.squares[:, :width], near, rtol=1e-4, atol=1e-5)
        assert_array_equal(found.positions[:, width:], -1)


def test_a_score_does_not_depend_on_its_tile():
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(100, 9)), rng.normal(size=(50, 9)).astype(np.float32)
    together, alone = cells.Found.nothing(50, 100), cells.Found.nothing(50, 100)
    tiles.search_all(cells.augmented(rows), (0, len(rows)), queries, together)
    for i in range(50):
        one = cells.Found(alone.squares[i : i + 1], alone.positions[i : i + 1])
        tiles.search_all(cells.augmented(rows), (0, len(rows)), queries[i : i + 1], one)
    assert_array_equal(together.squares, alone.squares)
    assert_array_equal(together.positions, alone.positions)


def test_candidates_are_ranked_by_distance_then_by_index():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(40, 2)).astype(float)  # many distances are equal
    candidates = np.array([rng.permutation(40)[:9] for _ in range(30)], dtype=np.int32)
    candidates[0, 2:] = -1
    distances, indices = cells.ranked(X[:30], X, candidates, k=5, unit=2.0, n_threads=1)
    for i, row in enumerate(candidates):
        held = row[row >= 0]
        far = cdist(X[i : i + 1], X[held])[0]
        order = np.lexsort((held, far))[:5]
        assert_array_equal(indices[i, : order.size], held[order])
        assert_allclose(distances[i, : order.size], far[order])
        assert np.isinf(distances[i, order.size :]).all()
        assert_array_equal(indices[i, order.size :], -1)


def test_cells_hold_every_sample_once_relative_to_their_centre():
    X = blobs() * 3 + 50
    built = cells.build_cells(X, 40, np.random.RandomState(0), n_threads=1)
    assert_array_equal(np.sort(built.order), np.arange(len(X)))
    sizes = np.diff(built.start)
    assert sizes.min() > 0
    assert sizes.max() <= cells.LARGEST_CELL * len(X) // 40 + 1
    cell = np.repeat(np.arange(sizes.size), sizes)
    back = (built.members[:, :-1] + built.centres[cell]) * built.unit
    assert_allclose(back, X[built.order], atol=1e-5)
    assert_allclose(built.members[:, -1], (built.members[:, :-1] ** 2).sum(axis=1), rtol=1e-5)


def test_nearest_centres_equal_a_sort():
    X = structureless(500, 4)
    centres = structureless(30, 4, seed=1)
    found = cells.nearest_centres(X, centres, 6, n_threads=1)
    assert_array_equal(found, np.argsort(cdist(X, centres), axis=1)[:, :6])


@pytest.mark.parametrize("d", [1, 3, 70])
def test_comparison_with_all_equals_the_twin(d):
    X = structureless(700, d)
    rows = np.arange(0, 700, 3)
    distances, indices = cells.nearest_exactly(X, X[rows], 9, itself=rows)
    true = all_pairs(X, 9)
    assert_array_equal(indices, true[1][rows])
    assert_allclose(distances, true[0][rows], rtol=1e-12)


@pytest.mark.parametrize("itself", [True, False])
def test_comparison_with_all_cells_equals_the_twin(itself):
    X = np.concatenate([blobs(900), 1e-4 * blobs(900, seed=1) + 30])
    built = cells.build_cells(X, 30, np.random.RandomState(0), n_threads=1)
    rows = np.arange(0, 1_800, 3)
    given = {"itself": rows, "n_threads": 2} if itself else {}
    distances, indices = cells.nearest_in_cells(X, built, X[rows], 9, **given)
    true = all_pairs(X, 9)
    if itself:
        assert_array_equal(indices, true[1][rows])
        assert_allclose(distances, true[0][rows], rtol=1e-12)
    else:
        assert_array_equal(indices[:, 0], rows)
        assert_array_equal(indices[:, 1:], true[1][rows, :8])


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_cells_searched_is_the_exact_search(d, dtype):
    X = structureless(1_500, d).astype(dtype)
    search = ApproximateNeighbors(7, n_cells=30, n_probes=1_000).fit(X)
    assert search.recall_ == 1
    assert search.n_probes_ == search.n_cells_
    distances, indices = search.kneighbors()
    true = all_pairs(X.astype(np.float64), 7)
    assert_allclose(distances, true[0], rtol=1e-12)
    assert_array_equal(indices, true[1])


# ---- recall ----


@pytest.mark.parametrize("X", [blobs(4_000), structureless(4_000, 8)], ids=["blobs", "one"])
def test_the_recall_stated_is_the_true_one(X):
    search = ApproximateNeighbors(10).fit(X)
    assert 1 < search.n_probes_ < search.n_cells_
    share = true_recall(search.kneighbors()[0], all_pairs(X, 10)[0])
    # 500 queries; the ten answers of a query hang together, so count queries, at most.
    error = np.sqrt(share * (1 - share) / 500)
    assert abs(search.recall_ - share) < 4 * error
    assert share > 0.98 - 4 * error


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.LowRecallWarning")
def test_a_higher_recall_searches_more_cells():
    X = structureless(4_000, 8)
    few, many, whole = (ApproximateNeighbors(recall=r).fit(X) for r in (0.7, 0.99, 1.0))
    assert few.n_probes_ < many.n_probes_ < whole.n_probes_ == whole.n_cells_


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.LowRecallWarning")
def test_as_few_cells_are_searched_as_hold_the_wanted_neighbours():
    X = structureless(3_000, 8)
    sample = np.arange(0, 3_000, 10)
    for recall in (0.5, 0.9, 0.98):
        search = ApproximateNeighbors(10, recall=recall).fit(X)
        search._choose_probes(sample)
        chosen, shares = search.n_probes_, {}
        for n_probes in range(1, chosen + 1):  # the slow way: search, and compare
            search.n_probes_ = n_probes
            shares[n_probes] = search._measured_recall(sample)
        assert shares[chosen] >= recall
        fewer = [n for n in shares if n < chosen and approximate.more_probes(n) <= chosen]
        assert all(shares[n] < recall for n in fewer)


@pytest.mark.parametrize("n_around", [None, 12])
def test_the_cells_chosen_for_a_sample_are_the_nearest(n_around):
    """Of all, or of those around the centre of its own cell."""
    X = 3 * blobs(800) + 20
    built = cells.build_cells(X, 25, np.random.RandomState(0), n_threads=1)
    found = cells.chosen_cells(built, built.centres, 6, n_around=n_around, n_threads=2)
    cell = np.repeat(np.arange(len(built.centres)), np.diff(built.start))
    far = cdist(X[built.order] / built.unit, built.centres)
    if n_around is not None:
        between = cdist(built.centres, built.centres)
        allowed = np.argsort(np.argsort(between, axis=1), axis=1) < n_around
        far[~allowed[cell]] = np.inf
    assert_array_equal(found, np.argsort(far, axis=1)[:, :6])


def test_a_low_recall_is_said():
    X = structureless()
    with pytest.warns(LowRecallWarning, match=r"neighbours were not found. Leave out n_probes=1"):
        search = ApproximateNeighbors(n_probes=1).fit(X)
    assert search.recall_ < 0.7
    with pytest.warns(LowRecallWarning, match=r"more than recall=0.5"):
        ApproximateNeighbors(recall=0.5).fit(X)


class Forgetful(KNeighborsTransformer):
    """Looks at every third sample only."""

    def fit_transform(self, X, y=None):
        graph = csr_array(super().fit(X[::3]).transform(X))
        return csr_array((graph.data, graph.indices * 3, graph.indptr), shape=(len(X), len(X)))


def test_the_recall_of_a_transformer_is_measured():
    X = blobs(1_200)
    exact = Affinity(KNeighborsTransformer(n_neighbors=8)).fit(X)
    assert exact.recall_ == 1
    with pytest.warns(LowRecallWarning, match="Let Forgetful search more widely"):
        built = Affinity(Forgetful(n_neighbors=8)).fit(X)
    assert built.recall_ == pytest.approx(1 / 3, abs=0.1)


def test_the_recall_does_not_depend_on_which_of_equal_samples_are_found():
    X = np.repeat(blobs(60), 50, axis=0)
    search = ApproximateNeighbors(10).fit(X)
    assert search.recall_ == 1
    assert_array_equal(search.kneighbors()[0], 0)


# ---- duplicates, few samples, extremes ----


def test_most_samples_equal():
    # One cell would hold them all, and take their number squared.
    X = np.vstack([np.zeros((4_000, 3)), blobs(1_000, 3) + 30])
    search = ApproximateNeighbors(5).fit(X)
    sizes = np.diff(search._cells.start)
    assert sizes.max() <= cells.LARGEST_CELL * 5_000 // int(1.5 * np.sqrt(5_000)) + 1
    distances, indices = search.kneighbors()
    assert (indices != np.arange(5_000)[:, None]).all()
    assert_array_equal(distances[:4_000], 0)
    assert all(np.unique(row).size == 5 for row in indices[::50])


def test_a_sample_is_not_its_own_neighbour_but_its_duplicates_are():
    X = np.vstack([blobs(1_500), blobs(1_500)[:300]])
    distances, indices = ApproximateNeighbors(4, n_cells=20).fit(X).kneighbors()
    assert (indices != np.arange(len(X))[:, None]).all()
    assert_array_equal(indices[1_500:, 0], np.arange(300))
    assert_array_equal(distances[1_500:, 0], 0)
    assert (distances[300:1_500, 0] > 0).all()


@pytest.mark.parametrize("n_cells", [1, 5, 50])
@pytest.mark.parametrize("n", [2, 3, 12])
def test_few_samples(n, n_cells):
    X = structureless(n, 3)
    distances, indices = ApproximateNeighbors(10, n_cells=n_cells).fit(X).kneighbors()
    true = all_pairs(X, min(10, n - 1))
    assert_allclose(distances, true[0])
    assert_array_equal(indices, true[1])


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.LowRecallWarning")
def test_cells_with_too_few_members_are_filled_up_exactly():
    X = structureless(400, 5)
    _, indices = ApproximateNeighbors(50, n_cells=100, n_probes=2).fit(X).kneighbors()
    assert indices.shape == (400, 50)
    assert indices.min() >= 0
    assert all(np.unique(row).size == 50 for row in indices)
    true = all_pairs(X, 50)
    short = np.all(indices == true[1], axis=1)
    assert short.mean() > 0.5, "rows with fewer than 50 candidates are searched exactly"
    new = ApproximateNeighbors(50, n_cells=100, n_probes=2).fit(X).kneighbors(X[:9] + 0.01)[1]
    assert new.min() >= 0


@pytest.mark.parametrize("unit", [1e-150, 1e-20, 1.0, 1e20, 1e150])
def test_units_do_not_matter(unit):
    X = blobs(1_200, 4)
    search = ApproximateNeighbors(6, n_cells=20)
    plain = search.fit(X).kneighbors()
    scaled = clone(search).fit(X * unit).kneighbors()
    assert np.mean(in_order(plain) == in_order(scaled)) > 0.995
    assert_allclose(scaled[0] / unit, plain[0], rtol=1e-3)


def test_close_samples_far_from_each_other_and_from_zero():
    # Two groups 1e6 apart, 1 wide: single precision keeps differences, not coordinates.
    X = np.vstack([structureless(1_000, 3), structureless(1_000, 3, seed=1) + 1e6])
    search = ApproximateNeighbors(5, n_cells=40).fit(X)
    true = all_pairs(X[1_000:] - 1e6, 5)[0]
    share = np.mean(search.kneighbors()[0][1_000:] <= true[:, -1:] * (1 + 1e-6))
    assert share > 0.97


# ---- seed, threads, copies ----


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_same_bits_on_any_number_of_threads(n_jobs):
    X = blobs(5_000)
    graphs = []
    for jobs, blas in ((1, 1), (n_jobs, 1), (n_jobs, 2)):
        with threadpool_limits(blas):
            built = Affinity(search="approximate", n_jobs=jobs, random_state=3).fit(X)
            graphs.append((built.affinity_matrix_, built.recall_, built.extend(X[:50] + 0.1)))
    for W, recall, new in graphs[1:]:
        for ours, first in ((W, graphs[0][0]), (new, graphs[0][2])):
            assert_array_equal(ours.indices, first.indices)
            assert_array_equal(ours.data, first.data)
        assert recall == graphs[0][1]


def test_the_seed_matters_and_is_enough():
    X = structureless(4_000, 10)
    first, again, other = (
        ApproximateNeighbors(random_state=seed, recall=0.96).fit(X).kneighbors()[1]
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert (first != other).any()


def test_pickles_and_clones():
    X = blobs(1_500)
    search = ApproximateNeighbors(4, n_cells=10).fit(X)
    copied = pickle.loads(pickle.dumps(search))
    for ours, theirs in zip(search.kneighbors(X[:20]), copied.kneighbors(X[:20]), strict=True):
        assert_array_equal(ours, theirs)
    fresh = clone(search)
    assert fresh.get_params() == search.get_params()
    assert not hasattr(fresh, "recall_")


@parametrize_with_checks([ApproximateNeighbors(), ApproximateNeighbors(3, n_cells=4)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---- the transformer, by itself and in Affinity ----


def test_transform_counts_a_training_sample_as_its_own_neighbour():
    X = blobs(1_500)
    search = ApproximateNeighbors(6, n_cells=10, recall=1.0)
    graph = search.fit_transform(X)
    assert isinstance(graph, csr_array)
    assert_array_equal(np.diff(graph.indptr), 7)
    assert_array_equal(graph.indices[::7], np.arange(1_500))
    theirs = KNeighborsTransformer(n_neighbors=6).fit_transform(X)
    assert_allclose(graph.toarray(), theirs.toarray(), atol=1e-6)
    assert_allclose(search.transform(X[:40]).toarray(), graph[:40].toarray())


@pytest.mark.parametrize("scale", ["local", "connectivity", "variance"])
def test_affinity_by_cells_equals_the_exact_one_where_the_recall_is_whole(scale, monkeypatch):
    monkeypatch.setattr(affinity, "ApproximateNeighbors", whole_search)
    X = blobs(1_600)
    ours = Affinity(7, scale=scale, search="approximate").fit(X)
    exact = Affinity(7, scale=scale, search="exact").fit(X)
    assert ours.recall_ == exact.recall_ == 1
    assert_allclose(ours.affinity_matrix_.toarray(), exact.affinity_matrix_.toarray(), atol=1e-12)
    new = blobs(1_700)[-100:]
    assert_allclose(ours.extend(new).toarray(), exact.extend(new).toarray(), atol=1e-12)
    plugged = Affinity(ApproximateNeighbors(7, recall=1.0), scale=scale).fit(X)
    assert_allclose(
        plugged.affinity_matrix_.toarray(), exact.affinity_matrix_.toarray(), atol=1e-12
    )


def whole_search(n_neighbors, **parameters):
    return ApproximateNeighbors(n_neighbors, recall=1.0, n_cells=12, **parameters)


@pytest.mark.parametrize("parameters", [{"scale_neighbor": 15}, {"scale": "xu", "m": 15}])
def test_a_scale_by_a_farther_neighbour_takes_one_search(parameters, monkeypatch):
    monkeypatch.setattr(affinity, "ApproximateNeighbors", whole_search)
    X = blobs(1_600)
    exact = Affinity(5, search="exact", **parameters).fit(X)
    new = blobs(1_700)[-100:]
    expected = exact.extend(new).toarray()
    monkeypatch.setattr(NeighborSearch, "nearest", None)
    ours = Affinity(5, search="approximate", connect=None, **parameters)
    with pytest.warns(UserWarning, match="connected components"):
        ours.fit(X)
    assert_allclose(ours.scale_, exact.scale_)
    assert_allclose(ours.extend(new).toarray(), expected, atol=1e-12)


def test_affinity_chooses_by_size_and_dimension(monkeypatch):
    monkeypatch.setattr(affinity, "EXACT_SAMPLES", 1_000)
    few, many = blobs(900), blobs(1_100)
    assert not hasattr(Affinity().fit(few), "transformer_")
    built = Affinity().fit(many)
    assert isinstance(built.transformer_, ApproximateNeighbors)
    assert 0.9 < built.recall_ <= 1
    assert not hasattr(Affinity().fit(many[:, :3]), "transformer_"), "a tree is exact and fast"
    assert not hasattr(Affinity(search="exact").fit(many), "transformer_")
    assert not hasattr(Affinity(metric="manhattan").fit(many), "transformer_")
    assert isinstance(
        Affinity(metric="minkowski", metric_params={"p": 2}).fit(many).transformer_,
        ApproximateNeighbors,
    )


def test_other_metrics_are_exact_and_say_when_they_are_slow(monkeypatch):
    monkeypatch.setattr(neighbors, "SLOW_METRIC", 100)
    X = np.abs(blobs(150, 20))
    with pytest.warns(EfficiencyWarning, match="metric='cosine'.*all pairs of 150 samples"):
        built = Affinity(metric="cosine").fit(X)
    assert built.recall_ == 1
    with pytest.raises(ValueError, match=r'search="approximate" needs Euclidean distances'):
        Affinity(metric="cosine", search="approximate").fit(X)
    with pytest.raises(ValueError, match="reduce_to=5 needs Euclidean distances"):
        Affinity(metric="manhattan", reduce_to=5).fit(X)
    with pytest.raises(ValueError, match="reduce_to=5 needs Euclidean distances"):
        Affinity(metric="precomputed", reduce_to=5).fit(cdist(X, X))


# ---- fewer dimensions ----


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_reduced_samples_have_the_graph_of_their_principal_components(search):
    X = blobs(1_500, 30)
    built = Affinity(6, reduce_to=4, search=search).fit(X)
    assert built.reduction_.n_dimensions == 4
    assert built.n_features_in_ == 30
    model = PCA(4, random_state=0)
    by_hand = Affinity(6, search=search).fit(model.fit_transform(X))
    assert by_hand.reduction_ is None
    assert_allclose(built.affinity_matrix_.toarray(), by_hand.affinity_matrix_.toarray(), atol=1e-9)
    new = blobs(1_600, 30)[-100:]
    expected = by_hand.extend(model.transform(new))
    assert_allclose(built.extend(new).toarray(), expected.toarray(), atol=1e-9)


def test_nothing_is_reduced_where_there_is_nothing_to_drop():
    X = blobs(300, 5)
    for reduce_to in (None, 5, 50):
        assert Affinity(reduce_to=reduce_to).fit(X).reduction_ is None


def test_sparse_samples_are_reduced_for_an_approximate_search_only():
    X = random_sparse(2_000, 400, density=0.05, format="csr", random_state=0)
    assert Affinity().fit(X).reduction_ is None
    built = Affinity(search="approximate").fit(X)
    assert built.reduction_.n_dimensions == 100
    again = Affinity(search="approximate").fit(X)
    assert_array_equal(built.affinity_matrix_.data, again.affinity_matrix_.data)
    # A sample of `fit` comes back as a duplicate of itself, up to rounding.
    near = built.extend(X[:20])
    assert_array_equal(np.argmax(near.toarray(), axis=1), np.arange(20))
    explicit = Affinity(search="approximate", reduce_to=20).fit(X)
    assert explicit.reduction_.n_dimensions == 20


def test_sparse_samples_of_few_features_are_not_reduced():
    X = random_sparse(1_500, 30, density=0.3, format="csr", random_state=0)
    built = Affinity(search="approximate").fit(X)
    assert built.reduction_ is None
    straight = Affinity(search="approximate").fit(X.toarray())
    assert_array_equal(built.affinity_matrix_.data, straight.affinity_matrix_.data)
    assert_allclose(built.extend(X[:9]).toarray(), straight.extend(X[:9].toarray()).toarray())


def test_samples_in_float32_stay_float32_in_the_transformer():
    X = blobs(1_200).astype(np.float32)
    search = ApproximateNeighbors(5).fit(X)
    assert search._X.dtype == np.float32
    assert search.kneighbors()[0].dtype == np.float64


def test_rows_of_a_transformer_without_neighbours_do_not_count():
    graph = csr_array(([1.0], ([0], [1])), shape=(3, 3))
    search = NeighborSearch(np.array([[0.0], [1.0], [5.0]]))
    assert transformer.recall_of_graph(graph, search, 0) == 1
    assert transformer.recall_of_graph(csr_array((3, 3)), search, 0) == 1


def test_a_sample_beyond_single_precision_is_named():
    X = np.random.RandomState(0).normal(size=(2_000, 6))
    X[17, 3] = 1e6
    assert ApproximateNeighbors(5).fit(X).recall_ > 0.95
    X[17, 3] = 1e20
    with pytest.raises(ValueError, match=r"X\[17, 3\] is 1e\+20.*search=.exact"):
        ApproximateNeighbors(5).fit(X)
    X[:] = 1.0  # nothing to compare with
    ApproximateNeighbors(5).fit(X)
