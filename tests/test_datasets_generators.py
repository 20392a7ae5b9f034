"""Data made on the spot: their truth, their distribution, and how they are clustered."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse
from sklearn.neighbors import NearestNeighbors

from linkwise import E2CP, Constraints, NCut, SignedCSC
from linkwise.datasets import (
    extend_by_shifts,
    make_block_model,
    make_circles,
    make_customers,
    make_mixture,
    make_moons,
    make_shifted_digits,
    make_signed_block_model,
    make_spirals,
    make_xor,
    signed_parts,
)
from linkwise.datasets.generators import _bernoulli
from linkwise.metrics import adjusted_rand

GENERATORS = [
    make_xor,
    make_moons,
    make_circles,
    make_spirals,
    make_mixture,
    make_block_model,
    make_signed_block_model,
]


def dense(X):
    return X.toarray() if issparse(X) else X


@pytest.mark.parametrize("make", GENERATORS)
def test_the_seed_decides(make):
    (X, y), (again, y_again), (other, _) = (make(random_state=seed) for seed in (3, 3, 4))
    assert_array_equal(dense(X), dense(again))
    assert_array_equal(y, y_again)
    assert (dense(X) != dense(other)).any()
    rng = np.random.RandomState(3)
    assert_array_equal(dense(make(random_state=rng)[0]), dense(X))
    assert y.dtype == np.intp


@pytest.mark.parametrize("n_arms", [1, 2, 3, 5])
def test_arms_of_spirals_are_turned_copies(n_arms):
    X, y = make_spirals(600, n_arms=n_arms, turns=1.0, noise=0, random_state=0)
    radius = np.linalg.norm(X, axis=1)
    assert radius.min() >= 0.25
    assert radius.max() <= 1
    angle = np.arctan2(X[:, 1], X[:, 0]) / (2 * np.pi)
    winding = (angle - (radius - 0.25) / 0.75 - y / n_arms) % 1
    assert_allclose(np.minimum(winding, 1 - winding), 0, atol=1e-12)


@pytest.mark.parametrize("make", [make_moons, make_circles, make_spirals])
def test_rings_and_arms_are_connected_by_near_neighbours(make):
    for seed in range(5):
        X, y = make(random_state=seed)
        nearest = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(return_distance=False)
        assert (y[nearest] == y[:, None]).mean() > 0.99
        found = NCut(2, random_state=0).fit_predict(X)
        assert make is make_moons or adjusted_rand(y, found) > 0.95


def confusion(y, labels):
    """Return the share of each class (row) in each cluster (column)."""
    table = np.zeros((y.max() + 1, labels.max() + 1))
    np.add.at(table, (y, labels), 1)
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_of_the_mixture_splits_one_class_and_merges_two(seed):
    # Rangapuram and Hein 2012, Figure 2, with its 500 points and 80 random constraints.
    X, y = make_mixture(random_state=seed)
    assert X.shape == (500, 2)
    share = confusion(y, NCut(4, random_state=0).fit_predict(X))
    assert (share[0] > 0.25).sum() == 2
    assert (share[1] > 0.9).argmax() == (share[2] > 0.9).argmax()
    assert share[[1, 2]].max(axis=1).min() > 0.9
    known = Constraints.sample(y, 80, random_state=seed)
    found = E2CP(4, random_state=0).fit_predict(X, constraints=known)
    assert adjusted_rand(y, found) > 0.9


@pytest.mark.parametrize("n_samples", [1, 7, 20, 1000])
def test_the_mixture_has_its_shares_at_any_size(n_samples):
    X, y = make_mixture(n_samples, random_state=0)
    assert X.shape == (n_samples, 2)
    assert (np.diff(y) >= 0).all()
    share = np.bincount(y, minlength=4) / n_samples
    assert_allclose(share, [0.5, 0.15, 0.15, 0.2], atol=1 / n_samples)


# Block models


@pytest.mark.parametrize("p", [0, 0.03, 0.5, 0.97, 1])
def test_trials_succeed_independently_with_their_probability(p):
    rng = np.random.RandomState(0)
    hits = np.zeros(50)
    both = 0
    for _ in range(4000):
        position = _bernoulli(50, p, rng)
        assert (np.diff(position) > 0).all()
        assert position.size == 0 or (position[0] >= 0 and position[-1] < 50)
        hits[position] += 1
        both += np.isin([10, 11], position).all()
    # Five standard deviations of each of 51 counts.
    assert (np.abs(hits - 4000 * p) <= 5 * np.sqrt(4000 * p * (1 - p))).all()
    q = p * p
    assert abs(both - 4000 * q) <= 5 * np.sqrt(4000 * q * (1 - q))


@pytest.mark.parametrize("p", [1e-300, 1e-19, 1e-12])
def test_hardly_possible_trials_fail(p):
    assert _bernoulli(1000, p, np.random.RandomState(0)).size == 0


def test_a_block_model_is_a_graph():
    W, y = make_block_model(301, 4, p_in=0.3, p_out=0.05, random_state=0)
    assert isinstance(W, csr_array)
    assert (W != W.T).nnz == 0
    assert set(W.data.tolist()) == {1.0}
    assert not W.diagonal().any()
    assert np.ptp(np.bincount(y)) <= 1
    same = y[:, None] == y
    np.fill_diagonal(same, val=False)
    different = y[:, None] != y
    for pairs, p in ((same, 0.3), (different, 0.05)):
        n = pairs.sum() / 2
        edges = W.toarray()[pairs].sum() / 2
        assert abs(edges - n * p) < 5 * np.sqrt(n * p * (1 - p))


def test_a_large_sparse_block_model_costs_its_edges():
    tracemalloc.start()
    W, _ = make_block_model(200_000, 4, p_in=4e-5, p_out=1e-6, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    stored = W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
    assert W.nnz > 300_000
    assert peak < 15 * stored


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (2, 2), (5, 4), (6, 3)])
def test_tiny_block_models(n, k):
    W, y = make_block_model(n, k, p_in=1, p_out=0)
    assert_array_equal(W.toarray(), (y[:, None] == y) & ~np.eye(n, dtype=bool))
    signed, y = make_signed_block_model(n, k, density=1, flipped=0)
    expected = np.where(y[:, None] == y, 1, -1) * (1 - np.eye(n))
    assert_array_equal(signed.toarray(), expected)
    assert np.unique(y).size == k


def test_signs_are_flipped_with_their_probability():
    W, y = make_signed_block_model(400, 3, density=0.2, flipped=0.25, random_state=0)
    A = W.toarray()
    assert_array_equal(A, A.T)
    wrong = (A != 0) & ((A > 0) != (y[:, None] == y))
    n = (A != 0).sum() / 2
    assert abs(n - 0.2 * 400 * 399 / 2) < 5 * np.sqrt(0.16 * 400 * 399 / 2)
    assert abs(wrong.sum() / 2 - 0.25 * n) < 5 * np.sqrt(0.1875 * n)
    assert (make_signed_block_model(9, 1, flipped=1, density=1)[0].data == -1).all()


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (make_block_model, {"p_in": 1.5}),
        (make_block_model, {"p_out": -0.1}),
        (make_signed_block_model, {"density": 2}),
        (make_signed_block_model, {"flipped": float("nan")}),
    ],
)
def test_probabilities_are_checked(make, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} must be a probability"):
        make(**wrong)


@pytest.mark.parametrize("make", [make_block_model, make_signed_block_model])
@pytest.mark.parametrize("k", [0, 11])
def test_there_are_not_more_blocks_than_vertices(make, k):
    with pytest.raises(ValueError, match=f"10 samples cannot be shared out among {k} clusters"):
        make(10, k)


def test_a_block_model_is_clustered_as_a_graph():
    W, y = make_block_model(random_state=0)
    found = NCut(3, affinity="precomputed", random_state=0).fit_predict(W)
    assert adjusted_rand(y, found) > 0.95


# Signed graphs


def test_the_parts_make_up_the_signed_graph():
    rng = np.random.RandomState(0)
    A = np.round(rng.uniform(-0.9, 1, size=(30, 30)), 3) * (rng.uniform(size=(30, 30)) < 0.3)
    A = np.triu(A) + np.triu(A, 1).T
    A[2, 5] = A[5, 2] = 2.0
    graph, constraints = signed_parts(csr_array(A), belief=1)
    off = A * (1 - np.eye(30))
    negative = np.zeros((30, 30))
    i, j = constraints.cannot_link.T
    negative[i, j] = negative[j, i] = -2.0 * constraints.cannot_link_belief
    assert_allclose(graph.toarray() + negative, off, atol=1e-15)
    assert (graph.data > 0).all()
    assert constraints.must_link.size == 0


def test_signed_csc_works_on_the_signed_graph_itself():
    from linkwise.constraints.table import constraint_matrix
    from linkwise.methods.csc import link_affinity

    W, _ = make_signed_block_model(60, 2, density=0.5, random_state=0)
    graph, constraints = signed_parts(W, belief=1)
    Q = link_affinity(graph, "max") * constraint_matrix(constraints)
    assert_allclose((0.5 * graph + 0.5 * Q).toarray(), 0.5 * W.toarray())


@pytest.mark.parametrize("k", [2, 3])
def test_the_negative_edges_help(k):
    # Friends are as common between as inside blocks: all there is to know is in the signs.
    W, y = make_signed_block_model(240, k, density=0.15, flipped=0.2, random_state=0)
    graph, constraints = signed_parts(W)
    model = SignedCSC(k, affinity="precomputed", random_state=0)
    with_foes = adjusted_rand(y, model.fit(graph, constraints=constraints).labels_)
    assert with_foes > 0.9
    assert (constraints.cannot_link_belief < 1).all()


@pytest.mark.parametrize("A", [np.zeros((3, 3)), -np.ones((3, 3)), np.eye(3)])
def test_parts_of_degenerate_graphs(A):
    graph, constraints = signed_parts(csr_array(A))
    assert graph.nnz == 0
    assert len(constraints.cannot_link) == (3 if A[0, 1] < 0 else 0)


def test_the_graph_given_stays_as_it_is():
    W = csr_array(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    signed_parts(W)
    assert_array_equal(W.toarray(), [[1, -1], [-1, 1]])


# Shifts


def slowly_shifted(image, down, right):
    """Twin of `extend_by_shifts`: pixel by pixel."""
    height, width = image.shape
    moved = np.zeros_like(image)
    for row in range(height):
        for column in range(width):
            if 0 <= row + down < height and 0 <= column + right < width:
                moved[row + down, column + right] = image[row, column]
    return moved


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 3), (5, 4)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_shifts_equal_moving_pixels_one_by_one(shape, dtype):
    images = np.random.RandomState(0).randint(1, 200, size=(3, *shape)).astype(dtype)
    extended = extend_by_shifts(images.reshape(3, -1), shape)
    assert extended.dtype == dtype
    steps = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)]
    expected = [slowly_shifted(image, *step).ravel() for step in steps for image in images]
    assert_array_equal(extended, expected)


def test_shifts_need_no_memory_besides_the_result():
    images = np.ones((2000, 784), dtype=np.uint8)
    tracemalloc.start()
    extended = extend_by_shifts(images, (28, 28))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert extended.nbytes == 9 * images.nbytes
    assert peak < extended.nbytes + 0.1 * images.nbytes


def test_images_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"4 x 5 = 20 pixels a sample, but their shape is \(3, 21"):
        extend_by_shifts(np.zeros((3, 21)), (4, 5))


def test_shifted_digits_are_digits():
    X, y = make_shifted_digits()
    assert X.dtype == np.uint8
    assert_array_equal(y.reshape(9, 1797), np.tile(y[:1797], (9, 1)))
    assert_array_equal(X[1797].reshape(8, 8)[1:], X[0].reshape(8, 8)[:-1])


def test_customers_are_a_table_of_three_segments_across_two_generations():
    table, y = make_customers(4_000, random_state=0)
    assert {column.shape for column in table.values()} == {(4_000,)} == {y.shape}
    assert np.bincount(y).tolist() == [1_800, 1_200, 1_000]
    again, _ = make_customers(4_000, random_state=0)
    assert all((table[name] == again[name]).all() for name in table)
    # What the segments are made of differs between them; the generation does not.
    means = {name: [table[name][y == c].mean() for c in range(3)] for name in ("visits", "age")}
    assert means["visits"][0] > 2 * means["visits"][1] > 3 * means["visits"][2]
    assert np.ptp(means["age"]) < 2
    assert (np.abs(table["age"] - 44) > 5).mean() > 0.75  # two groups
    share = [(table["category"][y == c] == "groceries").mean() for c in range(3)]
    np.testing.assert_allclose(share, [0.75, 0.35, 0.05], atol=0.05)
    assert table["since"].dtype.kind == "M"
