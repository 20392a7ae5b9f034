"""The graph builder: golden graphs, slow twins, invariances, messages."""

import pickle
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, load_npz
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs, make_moons
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from linkwise import NCut
from linkwise.exceptions import DisconnectedGraphWarning, TooLargeError
from linkwise.graph import Affinity, affinity, connect, neighbors
from linkwise.graph.neighbors import NeighborSearch

GOLDEN = Path(__file__).resolve().parents[2] / "shared" / "golden" / "graphs"

SCALES = ["local", "xu", "variance", 0.7, "connectivity"]
SYMMETRIES = ["union", "mean", "mutual"]
KINDS = {"nearest": {"neighbors": 5}, "radius": {"radius": 0.4}, "full": {"neighbors": None}}


def normal(n, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def dense(W):
    return W.toarray() if hasattr(W, "toarray") else W


def assert_is_affinity(W, n):
    """Symmetric, non-negative, finite, nothing on the diagonal; canonical if sparse."""
    A = dense(W)
    assert A.shape == (n, n)
    assert A.dtype == np.float64
    assert np.isfinite(A).all()
    assert A.min() >= 0
    assert_array_equal(A, A.T)
    assert_array_equal(np.diag(A), 0)
    if not isinstance(W, np.ndarray):
        assert isinstance(W, csr_array)
        assert (W.data > 0).all()
        assert W.has_sorted_indices
        assert W.nnz == np.count_nonzero(A), "duplicates or a stored diagonal"


# ---- slow twins: loops over samples, written from the definitions ----


def reference_neighbors(X, k):
    """Indices of the k nearest, without self, by a sort of every row of all distances."""
    D = cdist(X, X)
    return D, [sorted((j for j in range(len(X)) if j != i), key=lambda j: D[i, j])[:k]
               for i in range(len(X))]  # fmt: skip


def reference_affinity(X, k, scale, symmetrize):
    """Weights of the k nearest neighbours, entry by entry."""
    n = len(X)
    D, near = reference_neighbors(X, k)
    s = [D[i, near[i][-1]] for i in range(n)]
    if scale == "variance":
        sigma = np.sqrt(np.mean([np.var(X[:, f]) for f in range(X.shape[1])]))
    elif scale == "xu":
        sigma = reference_xu(X)[1]
    else:
        sigma = scale
    A = np.zeros((n, n))
    for i in range(n):
        for j in near[i]:
            if scale == "connectivity":
                A[i, j] = 1
            elif scale == "local":
                A[i, j] = np.exp(-(D[i, j] ** 2) / (s[i] * s[j]))
            else:
                A[i, j] = np.exp(-(D[i, j] ** 2) / (2 * sigma**2))
    return {"union": np.maximum, "mutual": np.minimum, "mean": lambda a, b: (a + b) / 2}[
        symmetrize
    ](A, A.T)


def reference_xu(X):
    """m and sigma of Xu et al. (2005), in the paper's steps 1 to 4."""
    n = len(X)
    delta = [sorted(cdist(X, X)[i, [j for j in range(n) if j != i]]) for i in range(n)]
    _, m = max((delta[i][m] - delta[i][m - 1], m) for i in range(n) for m in range(1, n - 1))
    widest = max(delta[i][m - 1] for i in range(n))
    sigma = widest / np.sqrt(-2 * np.log(0.001))
    assert np.exp(-(widest**2) / (2 * sigma**2)) == pytest.approx(0.001)
    return m, sigma


def reference_spanning_tree_length(D, labels):
    """Length of the minimum spanning tree between components: Kruskal over all pairs."""
    tree = {label: label for label in labels}
    total = 0.0
    for distance, i, j in sorted((D[i, j], i, j) for i, j in combinations(range(len(D)), 2)):
        a, b = tree[labels[i]], tree[labels[j]]
        if a != b:
            total += distance
            tree = {label: (a if root == b else root) for label, root in tree.items()}
    return total


# ---- golden graphs and formulas of the papers ----


@pytest.mark.parametrize(
    "name", ["iris", "wine", "breast_cancer", "digits", "moons2000", "moons2000h", "moons20000"]
)
def test_golden_graphs(name):
    X, W = golden(name)
    built = Affinity(neighbors=10).fit(X)
    assert built.n_components_ == 1
    assert built.n_joined_ == 0
    ours = built.affinity_matrix_
    assert_array_equal(ours.indptr, W.indptr)
    assert_array_equal(ours.indices, W.indices)
    assert_allclose(ours.data, W.data, rtol=1e-12)


def test_golden_graph_with_a_tie_at_the_tenth_neighbour():
    # In iris without setosa one sample has two others exactly equally far at the 10th place, so
    # that one edge is undefined: 2 of the 1296 entries may differ in position, not in distance.
    X, W = golden("iris2")
    ours = Affinity(neighbors=10).fit_transform(X)
    assert ours.nnz == W.nnz
    differ = abs(ours - W).tocoo()
    wrong = differ.data > 1e-9
    assert wrong.sum() <= 4
    lengths = np.linalg.norm(X[differ.coords[0][wrong]] - X[differ.coords[1][wrong]], axis=1)
    assert_allclose(lengths, lengths[:1].repeat(lengths.size), rtol=1e-12)


def golden(name):
    path = GOLDEN / f"{name}_W.npz"
    if not path.exists():
        pytest.skip(f"the golden graphs are not at {GOLDEN}")
    X = np.load(GOLDEN / f"{name}_data.npz")["X"]
    W = csr_array(load_npz(path))
    W.sort_indices()
    return StandardScaler().fit_transform(X), W


@pytest.mark.parametrize("seed", range(3))
def test_xu_finds_nine_neighbours_on_xor(seed):
    # Xu et al. 2005, section 3: four tight corners of ten samples give m = 9.
    corners = np.repeat([[0, 0], [1, 0], [1, 1], [0, 1]], 10, axis=0)
    X = corners + np.random.default_rng(seed).uniform(-0.1, 0.1, size=(40, 2))
    builder = Affinity(neighbors=None, scale="xu").fit(X)
    m, sigma = reference_xu(X)
    assert builder.m_ == m == 9
    assert builder.scale_ == pytest.approx(sigma)
    # "each point in the data set will have affinity >= eps to its m closest neighbors"
    W = np.sort(builder.affinity_matrix_, axis=1)[:, ::-1]
    assert W[:, 8].min() == pytest.approx(0.001)
    assert Affinity(scale="xu", m=9).fit(X).scale_ == pytest.approx(sigma)


def test_xu_does_not_depend_on_the_size_of_blocks(monkeypatch):
    X = normal(30)
    whole = Affinity(scale="xu").fit(X)
    monkeypatch.setattr(neighbors, "BLOCK_ENTRIES", 70)
    parts = Affinity(scale="xu").fit(X)
    assert (whole.m_, whole.scale_) == (parts.m_, parts.scale_)


def test_local_scaling_takes_the_seventh_neighbour_in_full_graphs():
    X = normal(25)
    D = cdist(X, X)
    s = np.sort(D, axis=1)[:, 7]
    expected = np.exp(-(D**2) / np.outer(s, s)) - np.eye(25)
    assert_allclose(Affinity(neighbors=None).fit_transform(X), expected, atol=1e-14)


@pytest.mark.parametrize(("scale", "symmetrize"), list(product(SCALES, SYMMETRIES)))
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("d", [2, 20])
def test_equals_the_loop_over_samples(scale, symmetrize, d):
    X = normal(40, d)
    W = Affinity(5, scale=scale, symmetrize=symmetrize, connect=None).fit_transform(X)
    assert_allclose(dense(W), reference_affinity(X, 5, scale, symmetrize), atol=1e-13)


def test_epsilon_graph_equals_the_definition():
    X = normal(60)
    D = cdist(X, X)
    with pytest.warns(DisconnectedGraphWarning):
        W = dense(Affinity(radius=0.5, scale=0.3, connect=None).fit_transform(X))
    assert_allclose(W, np.where(D <= 0.5, np.exp(-(D**2) / 0.18), 0) - np.eye(60), atol=1e-14)


# ---- what every graph is ----


@pytest.mark.parametrize(("kind", "scale", "symmetrize"), list(product(KINDS, SCALES, SYMMETRIES)))
@pytest.mark.parametrize("d", [2, 20])
def test_every_graph_is_symmetric_without_diagonal(kind, scale, symmetrize, d):
    X = normal(50, d) / np.sqrt(d)
    builder = Affinity(**KINDS[kind], scale=scale, symmetrize=symmetrize)
    W = builder.fit_transform(X)
    assert_is_affinity(W, 50)
    assert isinstance(W, np.ndarray) == (kind == "full")
    assert connected_components(csr_array(W))[0] == 1
    assert builder.n_joined_ == builder.n_components_ - 1
    assert builder.component_sizes_.sum() == 50


small_data = arrays(
    np.float64,
    st.tuples(st.integers(3, 25), st.integers(1, 3)),
    elements=st.integers(-4, 4).map(float),
)


@given(small_data, st.integers(1, 12), st.sampled_from(SCALES), st.sampled_from(SYMMETRIES))
@settings(max_examples=150, deadline=None)
def test_duplicates_and_ties_give_a_connected_graph(X, k, scale, symmetrize):
    # Integer coordinates: duplicates, constant features, equal rows, ties, n <= k.
    builder = Affinity(k, scale=scale, symmetrize=symmetrize)
    W = builder.fit_transform(X)
    assert_is_affinity(W, len(X))
    assert connected_components(W)[0] == 1
    assert builder.n_joined_ == builder.n_components_ - 1


@given(st.floats(1e-100, 1e100), st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_local_scaling_does_not_see_the_unit_of_x(unit, seed):
    X = normal(30, 3, seed)
    W, scaled = Affinity(5).fit_transform(X), Affinity(5).fit_transform(unit * X)
    assert_array_equal(W.indices, scaled.indices)
    assert_allclose(W.data, scaled.data, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_permutation_of_the_samples_permutes_the_graph(kind, scale):
    X = np.vstack([normal(40), normal(30) + 9])
    order = np.random.default_rng(1).permutation(70)
    W = dense(Affinity(**KINDS[kind], scale=scale).fit_transform(X))
    permuted = dense(Affinity(**KINDS[kind], scale=scale).fit_transform(X[order]))
    assert_allclose(permuted, W[np.ix_(order, order)], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("d", [3, 40])
def test_a_distant_origin_changes_nothing(d):
    # |a|^2 - 2ab + |b|^2 loses everything here: the neighbours would be noise.
    X = np.round(normal(200, d) * 2**20) / 2**20
    moved = X + 2.0**24
    assert_array_equal(moved - 2.0**24, X)
    for kind in ({}, {"neighbors": None}):
        W, far = Affinity(**kind).fit_transform(X), Affinity(**kind).fit_transform(moved)
        assert_allclose(dense(far), dense(W), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("d", [4, 40])
def test_tree_and_brute_force_agree(d, monkeypatch):
    X = normal(300, d)
    query = normal(20, d, seed=1)
    answers = []
    for tree in (True, False):
        monkeypatch.setattr(neighbors, "tree_is_faster", lambda n, d, tree=tree: tree)
        search = NeighborSearch(X)
        assert search.has_tree == tree
        answers.append((*search.nearest(7), *search.nearest(3, query=query),
                        dense(search.within(np.sqrt(d)))))  # fmt: skip
    for a, b in zip(*answers, strict=True):
        assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(
    ("metric", "params"),
    [("manhattan", None), ("chebyshev", None), ("cosine", None), ("minkowski", {"p": 3})],
)
@pytest.mark.parametrize("d", [4, 30])
def test_other_metrics(metric, params, d):
    X = normal(80, d)
    name = {"manhattan": "cityblock"}.get(metric, metric)
    D = cdist(X, X, name, **(params or {}))
    by_metric = Affinity(6, metric=metric, metric_params=params).fit_transform(X)
    by_distance = Affinity(6, metric="precomputed").fit_transform(D)
    assert_allclose(dense(by_metric), dense(by_distance), atol=1e-9)


def test_callable_and_tree_only_metrics():
    X = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    plain = Affinity(4).fit_transform(X)
    own = Affinity(4, metric=lambda a, b: np.sqrt(((a - b) ** 2).sum())).fit_transform(X)
    assert_allclose(dense(own), dense(plain), atol=1e-12)
    assert_is_affinity(Affinity(4, metric="haversine").fit_transform(X), 40)


@pytest.mark.parametrize("kind", KINDS)
def test_precomputed_equals_euclidean(kind):
    X = np.vstack([normal(40), normal(20) + 9])
    D, new = cdist(X, X), normal(5, seed=2)
    from_samples = Affinity(**KINDS[kind]).fit(X)
    from_distances = Affinity(**KINDS[kind], metric="precomputed").fit(D)
    assert_allclose(
        dense(from_distances.affinity_matrix_), dense(from_samples.affinity_matrix_), atol=1e-12
    )
    assert_allclose(
        dense(from_distances.extend(cdist(new, X))), dense(from_samples.extend(new)), atol=1e-12
    )


def test_distances_that_differ_by_direction_are_refused():
    D = cdist(normal(5), normal(5))
    D += D.T
    with pytest.raises(ValueError, match=r"symmetric, but X\[\d, \d\] is .* Fill in both"):
        Affinity(2, metric="precomputed").fit(np.triu(D))


def test_squares_of_tiny_distances_do_not_underflow():
    D = cdist(normal(20), normal(20))
    D += D.T
    W, tiny = (Affinity(4, metric="precomputed").fit_transform(D * unit) for unit in (1, 1e-200))
    assert_allclose(tiny.data, W.data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_sparse_and_float32_input(kind, scale):
    X = normal(60, 12)
    X[np.abs(X) < 0.8] = 0
    X = np.float32(X).astype(np.float64) * (0.2 if kind == "radius" else 1)
    expected = dense(Affinity(**KINDS[kind], scale=scale).fit_transform(X))
    W = Affinity(**KINDS[kind], scale=scale).fit_transform(csr_array(X))
    assert_allclose(dense(W), expected, rtol=1e-7, atol=1e-12)
    single = Affinity(**KINDS[kind], scale=scale).fit_transform(np.float32(X))
    assert_is_affinity(single, 60)
    assert_allclose(dense(single), expected, rtol=1e-4, atol=1e-6)


# ---- duplicates ----


@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize("neighbor_count", [4, None])
def test_equal_rows_all_weigh_one(d, neighbor_count):
    X = np.full((30, d), 3.7)
    for scale in SCALES:
        builder = Affinity(neighbor_count, scale=scale)
        W = builder.fit_transform(X)
        assert_is_affinity(W, 30)
        assert_array_equal(W.data if neighbor_count else W[~np.eye(30, dtype=bool)], 1)
        assert connected_components(csr_array(W))[0] == 1


@pytest.mark.parametrize("d", [2, 30])
def test_more_duplicates_than_neighbours(d):
    # The local scale of a duplicated sample is 0: the smallest positive distance replaces it.
    X = np.vstack([np.repeat(normal(1, d), 25, axis=0), normal(25, d, seed=1)])
    builder = Affinity(5).fit(X)
    positive = cdist(X, X)
    _, near = reference_neighbors(X, 5)
    smallest = min(positive[i, j] for i in range(50) for j in near[i] if positive[i, j] > 0)
    assert_allclose(builder.scale_[:25], smallest)
    assert (builder.scale_[25:] > 0).all()
    W = builder.affinity_matrix_
    assert_is_affinity(W, 50)
    # A stored zero distance is an edge of weight 1, not a missing edge.
    assert (dense(W)[:25, :25] == 1).sum(axis=1).min() >= 5


def test_duplicates_are_exactly_zero_apart_in_many_dimensions():
    # |a|^2 - 2ab + |b|^2 puts some of these pairs about 1e-7 apart.
    X = np.repeat(normal(300, 50) * 3 + 1, 2, axis=0)
    search = NeighborSearch(X)
    assert not search.has_tree
    assert_array_equal(search.nearest(1)[0], 0)
    assert_array_equal(search.all_distances()[np.arange(0, 600, 2), np.arange(1, 600, 2)], 0)
    assert (search.closest(np.arange(0, 600, 2), np.arange(1, 600, 2))[0] == 0).all()


def test_self_is_excluded_by_index_among_duplicates():
    X = np.repeat([[0.0], [5.0]], 3, axis=0)
    distances, indices = NeighborSearch(X).nearest(2)
    assert_array_equal(distances, 0)
    assert [set(row) for row in indices.tolist()] == [
        {1, 2},
        {0, 2},
        {0, 1},
        {4, 5},
        {3, 5},
        {3, 4},
    ]


def test_few_samples():
    for n, k in [(2, 1), (2, 10), (5, 10), (5, 4)]:
        X = normal(n)
        W = Affinity(k).fit_transform(X)
        assert_is_affinity(W, n)
        if k >= n - 1:
            assert W.nnz == n * (n - 1)
            assert_array_equal(dense(W), dense(Affinity(n - 1).fit_transform(X)))
    for scale in SCALES:
        assert_is_affinity(Affinity(None, scale=scale).fit_transform(normal(2)), 2)


# ---- neighbour transformers ----


@pytest.mark.parametrize("scale", ["local", "variance", "xu"])
@pytest.mark.parametrize("d", [2, 25])
def test_a_plugged_in_transformer_equals_the_built_in_search(scale, d):
    X, new = normal(200, d), normal(10, d, seed=1)
    own = Affinity(8, scale=scale).fit(X)
    plugged = Affinity(KNeighborsTransformer(n_neighbors=8), scale=scale).fit(X)
    assert_allclose(dense(plugged.affinity_matrix_), dense(own.affinity_matrix_), atol=1e-9)
    # It gives new samples 9 neighbours, because it counts training samples as their own first.
    assert_allclose(dense(plugged.extend(new)), dense(own.extend(new)), atol=1e-9)


def test_a_radius_transformer_equals_the_epsilon_graph():
    X = normal(100)
    own = Affinity(radius=0.6, scale=0.5).fit_transform(X)
    plugged = Affinity(RadiusNeighborsTransformer(radius=0.6), scale=0.5).fit_transform(X)
    assert_allclose(dense(plugged), dense(own), atol=1e-12)
    # Rows of different lengths, some perhaps empty, have a local scale too.
    uneven = Affinity(RadiusNeighborsTransformer(radius=0.3)).fit_transform(X)
    assert_is_affinity(uneven, 100)


def test_duplicates_found_by_a_transformer_stay_linked():
    X = np.repeat(normal(10), 2, axis=0)
    W = dense(Affinity(KNeighborsTransformer(n_neighbors=3)).fit_transform(X))
    assert_array_equal(W[np.arange(0, 20, 2), np.arange(1, 20, 2)], 1)


def test_the_transformer_given_is_not_fitted():
    transformer = KNeighborsTransformer(n_neighbors=3)
    builder = Affinity(transformer).fit(normal(20))
    assert not hasattr(transformer, "n_samples_fit_")
    assert builder.transformer_.n_samples_fit_ == 20


class WrongTransformer:
    def __init__(self, output):
        self.output = output

    def fit_transform(self, X):
        return self.output


@pytest.mark.parametrize(
    ("output", "error", "message"),
    [
        (np.zeros((5, 5)), TypeError, "WrongTransformer.fit_transform returned a ndarray"),
        (csr_array((5, 3)), ValueError, r"shape \(5, 3\); expected \(5, 5\)"),
        (
            csr_array(([-1.0], ([2], [3])), shape=(5, 5)),
            ValueError,
            "-1.0 as the distance between samples 2 and 3",
        ),
        (csr_array(([np.nan], ([4], [0])), shape=(5, 5)), ValueError, "nan as .* samples 4 and 0"),
    ],
)
def test_wrong_output_of_a_transformer(output, error, message):
    with pytest.raises(error, match=message):
        Affinity(WrongTransformer(output)).fit(normal(5))


# ---- pieces and links ----


def test_pieces_are_reported_when_left_alone():
    X = np.vstack([normal(30), normal(20) + 50, normal(12) - 50])
    builder = Affinity(5, connect=None)
    with pytest.warns(DisconnectedGraphWarning, match=r"3 connected components, of 30, 20, 12 sa"):
        W = builder.fit_transform(X)
    assert connected_components(W)[0] == builder.n_components_ == 3
    assert_array_equal(builder.component_sizes_, [30, 20, 12])
    assert builder.n_joined_ == 0


def test_joining_keeps_the_other_edges_and_adds_the_shortest_links():
    X = np.vstack([normal(30), normal(20) + 50, normal(12) - 50])
    with pytest.warns(DisconnectedGraphWarning):
        apart = Affinity(5, connect=None).fit_transform(X)
    builder = Affinity(5).fit(X)
    added = (builder.affinity_matrix_ - apart).tocoo()
    links = {(i, j) for i, j, w in zip(*added.coords, added.data, strict=True) if w > 0 and i < j}
    D = cdist(X, X)
    pairs = [np.unravel_index(D[:30, a:b].argmin(), (30, b - a)) for a, b in [(30, 50), (50, 62)]]
    assert links == {(pairs[0][0], 30 + pairs[0][1]), (pairs[1][0], 50 + pairs[1][1])}
    # Their own weight is exp(-1000): they take the smallest one of the graph.
    assert_allclose(added.data[added.data > 0], apart.data.min())
    assert builder.n_joined_ == 2
    assert_array_equal(builder.component_sizes_, [30, 20, 12])


def test_a_link_has_its_own_weight_if_that_is_larger():
    X = np.array([[0.0], [1.0], [3.0], [4.0], [20.0], [25.0]])
    W = Affinity(1, scale=2.0).fit_transform(X)
    smallest = np.exp(-(5**2) / 8)  # of the edge 20 - 25
    assert W[1, 2] == pytest.approx(np.exp(-(2**2) / 8))
    assert W[3, 4] == pytest.approx(smallest)


def test_weights_that_underflow_leave_the_graph_connected():
    X = normal(50)
    for kind in KINDS.values():
        builder = Affinity(**kind, scale=1e-3).fit(X)
        assert builder.n_components_ > 1
        assert_is_affinity(builder.affinity_matrix_, 50)
        assert connected_components(csr_array(builder.affinity_matrix_))[0] == 1


def test_an_epsilon_graph_without_edges_becomes_the_spanning_tree():
    X = normal(40)
    builder = Affinity(radius=1e-9).fit(X)
    assert builder.n_components_ == 40
    assert builder.affinity_matrix_.nnz == 2 * 39


def random_pieces(n, n_pieces, seed):
    labels = np.random.default_rng(seed).integers(n_pieces, size=n)
    return np.unique(labels, return_inverse=True)[1]


def assert_is_shortest_spanning_tree(links, D, labels):
    """As many links as needed, between different pieces, of the smallest total length."""
    assert links.distance.size == labels.max()
    assert_allclose(D[links.i, links.j], links.distance, atol=1e-12)
    ends = (labels[links.i], labels[links.j])
    joined = csr_array((np.ones(links.i.size), ends), shape=(labels.max() + 1, labels.max() + 1))
    assert connected_components(joined, directed=False)[0] == 1
    shortest = reference_spanning_tree_length(D, labels.tolist())
    assert links.distance.sum() == pytest.approx(shortest)


@given(small_data, st.integers(2, 6), st.integers(0, 1000), st.sampled_from([0, 3, 100]))
@settings(max_examples=60, deadline=None)
def test_links_are_a_minimum_spanning_tree(X, n_pieces, seed, small):
    labels = random_pieces(len(X), n_pieces, seed)
    D = cdist(X, X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connect, "SMALL_COMPONENT", small)
        for search in (NeighborSearch(X), NeighborSearch(D, "precomputed"), brute_force(X)):
            assert_is_shortest_spanning_tree(connect.shortest_links(search, labels), D, labels)


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(3, 60), st.integers(1, 3)),
        elements=st.integers(-4, 4).map(float) | st.floats(-4, 4),
    ),
    st.integers(2, 20),
    st.integers(0, 1000),
    st.sampled_from([("euclidean", {}), ("cityblock", {}), ("chebyshev", {}),
                     ("minkowski", {"p": 3})]),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_links_found_in_boxes_are_a_minimum_spanning_tree(X, n_pieces, seed, metric):
    name, params = metric
    labels = random_pieces(len(X), n_pieces, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connect, "BOXES_ABOVE", 0)
        search = NeighborSearch(X, name, params)
        assert connect.boxes_pay(search)
        links = connect.shortest_links(search, labels)
    assert_is_shortest_spanning_tree(links, cdist(X, X, name, **params), labels)


def test_both_searches_for_links_agree_on_more_samples():
    X, labels = make_blobs(3_000, n_features=4, centers=12, random_state=0)
    search = NeighborSearch(X)
    assert connect.boxes_pay(search)
    in_boxes = connect.shortest_links(search, labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connect, "BOXES_LIMIT", 0)
        by_comparison = connect.shortest_links(search, labels)
    pairs = [
        {frozenset(pair) for pair in zip(links.i.tolist(), links.j.tolist(), strict=True)}
        for links in (in_boxes, by_comparison)
    ]
    assert pairs[0] == pairs[1]


def brute_force(X):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "tree_is_faster", lambda n, d: False)
        return NeighborSearch(X)


@pytest.mark.parametrize("sparse", [False, True])
def test_links_beyond_the_budget_still_span_and_are_near_the_shortest(sparse):
    X, labels = make_blobs(2_000, n_features=20, centers=5, random_state=0)
    X = np.vstack([X, normal(60, 20) + np.repeat(40 * normal(4, 20, 1), 15, axis=0)])
    labels = np.concatenate([labels, 5 + np.repeat(np.arange(4), 15)])
    search = NeighborSearch(csr_array(X) if sparse else X)
    exact = connect.shortest_links(search, labels)
    near = connect.shortest_links(search, labels, budget=0)
    assert near.distance.size == exact.distance.size == 8
    total = exact.distance.sum()
    assert total <= near.distance.sum() <= 1.1 * total


# ---- new samples ----


@pytest.mark.parametrize("scale", ["local", 0.7, "connectivity"])
def test_extend_equals_the_definition(scale):
    X, new, k = normal(50), normal(8, seed=1), 6
    builder = Affinity(k, scale=scale).fit(X)
    D = cdist(new, X)
    train = np.sort(cdist(X, X), axis=1)[:, k]
    expected = np.zeros_like(D)
    for i in range(8):
        near = np.argsort(D[i])[:k]
        s = D[i, near[-1]]
        for j in near:
            expected[i, j] = {
                "local": np.exp(-(D[i, j] ** 2) / (s * train[j])),
                0.7: np.exp(-(D[i, j] ** 2) / (2 * 0.7**2)),
                "connectivity": 1.0,
            }[scale]
    extended = builder.extend(new)
    assert isinstance(extended, csr_array)
    assert_allclose(dense(extended), expected, atol=1e-14)
    again = pickle.loads(pickle.dumps(builder)).extend(new)
    assert_array_equal(dense(again), dense(extended))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d", [2, 20])
def test_new_samples_near_far_and_equal_all_have_a_neighbour(kind, scale, d):
    X = normal(50, d) / np.sqrt(d)
    new = np.vstack([X[:3], normal(3, d, 5), np.full((1, d), 1e6)])
    builder = Affinity(**KINDS[kind], scale=scale).fit(X)
    for query in (new, csr_array(new)):
        W = builder.extend(query)
        assert W.shape == (7, 50)
        assert np.isfinite(W.data).all()
        assert (np.diff(W.indptr) > 0).all()
        assert (W.data > 0).all()
        assert_allclose(dense(W)[[0, 1, 2], [0, 1, 2]], 1)


def test_extend_without_a_distance_above_zero():
    W = Affinity(3).fit(np.ones((6, 2))).extend([[1.0, 1.0], [2.0, 2.0]])
    assert (dense(W)[0] == 1).sum() == 3
    assert np.count_nonzero(dense(W)[1]) == 3


# ---- messages ----


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"neighbors": 0}, "'neighbors' parameter of Affinity must be"),
        ({"neighbors": 2.5}, "'neighbors' parameter of Affinity must be"),
        ({"neighbors": "ten"}, "'neighbors' parameter of Affinity must be"),
        ({"radius": 0}, "'radius' parameter"),
        ({"scale": -1}, "'scale' parameter"),
        ({"scale": np.inf}, "'scale' parameter"),
        ({"scale": "global"}, "'scale' parameter .*'local'"),
        ({"scale_neighbor": 0}, "'scale_neighbor' parameter"),
        ({"m": 0}, "'m' parameter"),
        ({"symmetrize": "max"}, "'symmetrize' parameter .*'mutual'"),
        ({"metric": "nearness"}, "'metric' parameter"),
        ({"connect": "tree"}, "'connect' parameter"),
        (
            {"neighbors": KNeighborsTransformer(), "radius": 1.0},
            "radius=1 and the neighbour transformer KNeighborsTransformer both",
        ),
        (
            {"neighbors": KNeighborsTransformer(n_neighbors=3), "scale_neighbor": 7},
            "scale_neighbor=7, but KNeighborsTransformer found only 3 neighbours of sample 0",
        ),
        (
            {"neighbors": KNeighborsTransformer(n_neighbors=3), "scale": "xu", "m": 4},
            "m=4, but KNeighborsTransformer found only 3",
        ),
        ({"metric": "precomputed"}, r"needs a square matrix of distances, got \(20, 2\)"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        Affinity(**parameters).fit(normal(20))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.nan], [0, 0], [1, 1]], "NaN"),
        ([[1.0, np.inf], [0, 0], [1, 1]], "infinity"),
        ([[1.0, 2.0]], "1 sample"),
        ([1.0, 2.0, 3.0], "Expected 2D array"),
        (np.array([[1e300], [-1e300], [3e300]]), "largest feature is 3e.300 in size"),
    ],
)
def test_wrong_samples(X, message):
    with pytest.raises(ValueError, match=message):
        Affinity(1).fit(X)


@pytest.mark.parametrize("small", [0, 100])
def test_pieces_infinitely_far_apart_cannot_be_joined(small, monkeypatch):
    monkeypatch.setattr(connect, "SMALL_COMPONENT", small)
    X = np.vstack([normal(12), normal(12) + 50])
    with pytest.raises(ValueError, match=r"cannot be joined.*connect=None"):
        Affinity(4, metric=lambda a, b: d if (d := abs(a - b).sum()) < 20 else np.inf).fit(X)


def test_wrong_precomputed_distances():
    D = cdist(normal(5), normal(5))
    D += D.T
    D[1, 3] = D[3, 1] = -2
    with pytest.raises(ValueError, match=r"X\[1, 3\] is -2"):
        Affinity(2, metric="precomputed").fit(D)
    with pytest.raises(ValueError, match="about features"):
        Affinity(2, metric="precomputed", scale="variance").fit(np.abs(D))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        Affinity(2, metric="precomputed").fit(csr_array(np.abs(D)))


def test_dense_computations_are_refused_above_their_limit(monkeypatch):
    for module in (neighbors, affinity):
        monkeypatch.setattr(module, "DENSE_LIMIT", 20)
    X = normal(21)
    with pytest.raises(TooLargeError, match=r"full graph of 21 samples .* limit is 20.*neighbors="):
        Affinity(None).fit(X)
    with pytest.raises(TooLargeError, match=r"21 samples and the limit is 20. Give m="):
        Affinity(scale="xu").fit(X)
    assert Affinity(scale="xu", m=9).fit(X).m_ == 9
    for search in (NeighborSearch(X), brute_force(X)):
        with pytest.raises(TooLargeError, match=r"radius=100 gives more than 400 pairs"):
            search.within(100.0)


def test_extend_needs_fit_and_the_same_features():
    with pytest.raises(ValueError, match="not fitted"):
        Affinity().extend(normal(3))
    with pytest.raises(ValueError, match="expecting 2 features"):
        Affinity().fit(normal(20)).extend(normal(3, 5))


def test_a_transformer_without_transform_cannot_extend():
    output = KNeighborsTransformer(n_neighbors=2).fit_transform(normal(5))
    builder = Affinity(WrongTransformer(output)).fit(normal(5))
    with pytest.raises(TypeError, match="WrongTransformer has no transform"):
        builder.extend(normal(2))


# These compare fit_transform(X), the graph, with transform(X), affinities *to* the graph.
NOT_THE_GRAPH = dict.fromkeys(
    ("check_transformer_data_not_an_array", "check_transformer_general"),
    "a graph among samples is not the affinities of further samples to them",
)


@parametrize_with_checks(
    [Affinity(), Affinity(None), Affinity(radius=1.0), Affinity(3, scale="xu", m=2)],
    expected_failed_checks=lambda _: NOT_THE_GRAPH,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_pipeline_of_graph_and_method():
    X, _ = make_blobs(90, centers=3, cluster_std=2.0, random_state=3)
    pipeline = make_pipeline(Affinity(5), NCut(3, affinity="precomputed", random_state=0))
    straight = NCut(3, affinity=Affinity(5), random_state=0).fit(X[:70])
    assert_array_equal(pipeline.fit(X[:70])[-1].labels_, straight.labels_)
    assert_array_equal(pipeline.predict(X), straight.predict(X))


def test_moons_are_two_pieces_joined_once():
    X, y = make_moons(300, noise=0.03, random_state=0)
    builder = Affinity(8).fit(X)
    assert builder.n_components_ == 2
    assert builder.n_joined_ == 1
    across = dense(builder.affinity_matrix_)[np.ix_(y == 0, y == 1)]
    assert np.count_nonzero(across) == 1


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_features_whose_squares_are_no_numbers_are_refused(unit):
    X = np.random.RandomState(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=r"largest feature is .*divide X"):
        Affinity().fit(X * unit)
    with pytest.raises(ValueError, match="divide X"):
        Affinity().fit(csr_array(X * unit))
    Affinity().fit(X * 0)


# Far and large numbers -----------------------------------------------------------------------


def groups_far_apart(gap, n_samples=240, n_features=20):
    rng = np.random.RandomState(0)
    centres = gap * np.eye(3, n_features)[np.arange(n_samples) % 3]
    return rng.normal(size=(n_samples, n_features)) + centres


@pytest.mark.parametrize("gap", [1e7, 1e8, 1e12])
@pytest.mark.parametrize("to", [np.asarray, csr_array])
def test_neighbours_are_exact_however_far_groups_are(gap, to):
    X = groups_far_apart(gap)
    distances, indices = NeighborSearch(to(X)).nearest(10)
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=-1))
    np.fill_diagonal(D, np.inf)
    assert_array_equal(indices, np.argsort(D, axis=1)[:, :10])
    assert_allclose(distances, np.sort(D, axis=1)[:, :10])


def test_the_closest_samples_are_exact_however_far_groups_are():
    X = groups_far_apart(1e9)
    rows, cols = np.arange(0, 60), np.arange(60, 240)
    distances, found = NeighborSearch(X).closest(rows, cols)
    D = np.sqrt(((X[rows, None] - X[cols]) ** 2).sum(axis=-1))
    assert_array_equal(found, cols[D.argmin(axis=1)])
    assert_allclose(distances, D.min(axis=1))


def test_many_sparse_samples_that_rounding_hides_are_refused(monkeypatch):
    monkeypatch.setattr("linkwise.graph.neighbors.SLOWEST", 1_000)
    with pytest.raises(ValueError, match="rounding hides their distances"):
        NeighborSearch(csr_array(groups_far_apart(1e9))).nearest(10)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("factor", [1e245, 1e-245, 1e300])
def test_directions_do_not_depend_on_the_scale(metric, factor):
    X = np.random.RandomState(0).normal(size=(40, 5))
    factors = np.where(np.arange(40) % 2, factor, 1.0)[:, None]
    for scaled in (X * factor, X * factors):
        here, there = Affinity(metric=metric).fit(X), Affinity(metric=metric).fit(scaled)
        assert abs(here.affinity_matrix_ - there.affinity_matrix_).max() < 1e-10
        assert abs(here.extend(X[:5, ::-1]) - there.extend(factor * X[:5, ::-1])).max() < 1e-10
    if metric == "cosine":
        there = Affinity(metric=metric).fit(csr_array(X * factors))
        assert abs(Affinity(metric=metric).fit_transform(X) - there.affinity_matrix_).max() < 1e-10


@pytest.mark.parametrize("factor", [1e110, 1e-110])
def test_powers_that_leave_the_range_of_numbers_are_refused(factor):
    X = factor * np.random.RandomState(0).normal(size=(40, 5))
    with pytest.raises(ValueError, match="powers of 3 of such numbers leave the range"):
        Affinity(metric="minkowski", metric_params={"p": 3}).fit(X)
    Affinity(metric="manhattan").fit(X)
    Affinity().fit(X)


@pytest.mark.parametrize("neighbors", [3, None])
@pytest.mark.parametrize("scale", [1e-170, 1e-300])
def test_a_scale_far_below_the_distances_warns_of_nothing(neighbors, scale):
    X = np.concatenate([1e-160 * np.arange(5), np.arange(1, 10)])[:, None]
    builder = Affinity(neighbors, scale=scale).fit(X)
    assert np.isfinite(builder.extend(3 * X).data).all()
