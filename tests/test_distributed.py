"""linkwise.distributed: the same answers as on one machine, on a cluster of processes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from threading import Timer
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs

import linkwise
from linkwise import Affinity, Constraints, NCut, Prepared
from linkwise.auto import estimator, learner, views
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.graph import cells, tiles
from linkwise.graph.affinity import symmetrized
from linkwise.graph.prepared import drawn
from linkwise.linalg.blocks import BlockMatrix, kept_where
from linkwise.linalg.laplacian import symmetric_components

da = pytest.importorskip("dask.array", reason="the extra `dask` is not installed")
distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
psutil = pytest.importorskip("psutil")

from linkwise.distributed import Prepared as OnDask  # noqa: E402
from linkwise.distributed import prepared, regions, search  # noqa: E402
from linkwise.distributed.cluster import Cluster, _unmoved, local_client  # noqa: E402
from linkwise.distributed.graph import entries_into, symmetric_block  # noqa: E402
from linkwise.distributed.matrix import (  # noqa: E402
    linked_components,
    multiplied,
    own_components,
)
from linkwise.distributed.regions import CellGraph  # noqa: E402

# Tests of processes share one cluster, which takes seconds to start. What blocks compute is tested
# in this process: the same calls, without Dask's scheduler between them.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of processes that were ended
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Of Dask 2024.8, about tests that compute in this process beside the shared cluster.
    pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler"),
]
N, K = 1_200, 4
PAIRS = ["SpectralLearning", "CSC", "SignedCSC", "FastGE", "E2CP"]
LABELS = ["GFHF", "LLGC", "Poisson"]


@pytest.fixture(scope="module")
def client():
    client = local_client(2)
    yield client
    workers = list(client.run(os.getpid).values())
    cluster = client.cluster
    client.close()
    cluster.close()
    assert not any(map(psutil.pid_exists, workers))


class Here:
    """A cluster that does everything at once, in this process."""

    n_workers, address = 2, "here"

    def __init__(self, client=None):
        import dask
        import dask.array

        self.dask = dask

    def submit(self, function, *args, at=None):
        # What a task gets belongs to others: on workers it is shared with them.
        shared = [arg for arg in args if isinstance(arg, (csr_array, np.ndarray, tuple, list))]
        before = [pickle.dumps(arg) for arg in shared]
        answer = function(*args)
        assert before == [pickle.dumps(arg) for arg in shared]
        return answer

    lazy = submit

    def close(self):
        self.is_closed = True

    def compute(self, tasks):
        if not tasks or not hasattr(tasks[0], "dask"):
            return list(tasks)
        return list(self.dask.compute(*tasks, scheduler="synchronous"))

    def fetch(self, futures):
        return list(futures)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(prepared, "Cluster", Here)


@pytest.fixture(scope="module")
def samples():
    return make_blobs(N, 5, centers=K, cluster_std=2.2, random_state=0)


@pytest.fixture(scope="module")
def one(samples):
    return Prepared(samples[0])


@pytest.fixture(scope="module")
def many(samples):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "Cluster", Here)
        patch.setattr(search, "REGIONS_PER_WORKER", 2)
        found = OnDask(da.from_array(samples[0], chunks=(500, 3)))
        assert found.W.n_blocks == 4
    return found


def whole(W):
    """The matrix in one piece."""
    assert isinstance(W, BlockMatrix)
    return W.rows(np.arange(W.shape[0]))


def known_of(y, name):
    if name == "NCut":
        return {}
    if name in LABELS:
        given = np.full(y.size, -1)
        given[::60] = y[::60]
        return {"constraints": Constraints.from_labels(given)}
    return {"constraints": Constraints.sample(y, 60, random_state=0)}


def test_the_graph_is_that_of_one_machine(one, many):
    assert_allclose(whole(many.W).toarray(), one.W.toarray(), atol=1e-12)
    assert_allclose(many.degrees, one.degrees)
    assert many.recall_ == 1
    assert 0 < many.W.halo_share < 0.6


@pytest.mark.usefixtures("here")
def test_cells_find_what_they_find_on_one_machine(samples, monkeypatch):
    monkeypatch.setattr(search, "EXACT_SAMPLES", 500)
    found = OnDask(da.from_array(samples[0], chunks=(400, 5)))
    # Not so many cells that all are searched
    W = Affinity(search="approximate").fit(samples[0])
    assert_allclose(found.W.sum(axis=1), W.affinity_matrix_.sum(axis=1), rtol=1e-9)
    assert found.recall_ == pytest.approx(W.recall_, abs=0.01)


@pytest.mark.usefixtures("here")
def test_of_many_cells_those_around_are_searched(samples, monkeypatch):
    """Centres are found, assigned and chosen by cells of their own; the neighbours are the same."""
    monkeypatch.setattr(search, "EXACT_SAMPLES", 500)
    monkeypatch.setattr(search, "CELLS_PER_REGION", 40)
    found = OnDask(da.from_array(samples[0], chunks=(400, 5)))
    total = found.W.sum()
    monkeypatch.setattr(search, "ALL_CELLS", 30)
    monkeypatch.setattr(search, "NEAR_CELLS", 30)
    monkeypatch.setattr(search, "AROUND", 1.5)
    near = OnDask(da.from_array(samples[0], chunks=(400, 5)))
    assert near.W.sum() == pytest.approx(total, rel=0.01)
    assert min(found.recall_, near.recall_) >= 0.97


@pytest.mark.usefixtures("here")
def test_neighbours_of_neighbours_spare_cells(monkeypatch):
    monkeypatch.setattr(search, "EXACT_SAMPLES", 500)
    monkeypatch.setattr(search, "CELLS_PER_REGION", 100)
    X, _ = make_blobs(6_000, 8, centers=3, cluster_std=2.0, random_state=0)

    def found():
        chunks = OnDask(da.from_array(X, chunks=(2_000, 8))).chunks
        return search.find_neighbors(chunks, 10, np.random.RandomState(0))

    by_cells = found()
    monkeypatch.setattr(search, "PROPORTIONAL_FROM", 5_000)
    with monkeypatch.context() as patch:  # the join would take as long as all these cells
        patch.setattr(tiles, "join_neighbors", None)
        patch.setattr(search, "JOIN_CELLS", by_cells.n_probes)
        direct = found()
        assert (direct.n_probes, direct.recall) == (by_cells.n_probes, by_cells.recall)
    monkeypatch.setattr(search, "JOIN_CELLS", 0)
    joined = found()
    assert joined.n_probes <= 0.75 * by_cells.n_probes
    assert joined.recall >= 0.98
    # Where they find nothing more, the cells are searched that hold enough.
    for owner, step in (
        (tiles, "offer_back"),
        (tiles, "join_neighbors"),
        (search, "enter_offers"),
    ):
        monkeypatch.setattr(owner, step, lambda *_: None)
    searched_again = found()
    assert searched_again.n_probes == by_cells.n_probes
    assert searched_again.recall == by_cells.recall


@pytest.fixture(params=[6, 12])
def lists(request):
    """Samples, and lists of 50 of them: random ones, so that they are rarely the nearest."""
    width = request.param
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    squares = ((X[:, None] - X) ** 2).sum(axis=2) / 4
    rows = np.array([rng.permutation(np.delete(np.arange(60), i))[:width] for i in range(50)])
    rows = np.take_along_axis(rows, np.argsort(np.take_along_axis(squares[:50], rows, 1)), 1)
    near = np.take_along_axis(squares[:50], rows, 1).astype(np.float32)
    rows[0, 3:], near[0, 3:] = -1, np.inf
    return SimpleNamespace(X=X, squares=squares, found=cells.Found(near, rows.astype(np.int32)))


def check_lists(lists):
    """From near to far, nobody twice, with the right distances."""
    rows, near = lists.found.positions, lists.found.squares
    for i in range(len(rows)):
        held = rows[i][rows[i] >= 0]
        assert np.unique(held).size == held.size
        assert i not in held
        assert_allclose(near[i, : held.size], lists.squares[i, held], rtol=1e-5)
    assert (near[:, 1:] >= near[:, :-1]).all()


def test_who_is_listed_lists_the_other_if_it_is_near_enough(lists):
    near, rows = lists.found
    before = rows.copy()
    tiles.offer_back(lists.found)
    check_lists(lists)
    assert (rows != before).any()
    for i in range(50):
        for j, square in zip(rows[i], near[i], strict=True):
            assert j < 0 or j >= 50 or i in rows[j] or near[j, -1] <= square


def test_ways_lead_to_listed_rows_and_back(lists):
    rows = lists.found.positions
    width = rows.shape[1]
    for i, way in enumerate(tiles.both_ways(lists.found)):
        listed = rows[i][rows[i] >= 0]
        by = [(a, j) for j in range(50) for a in range(width) if rows[j, a] == i]
        back = [j for _, j in sorted(by) if j not in listed][: 2 * width - listed.size]
        expected = [*listed, *back]
        assert_array_equal(way[: len(expected)], expected)
        assert_array_equal(way[len(expected) :], -1)


def test_joined_lists_hold_the_nearest_of_the_neighbours_of_neighbours(lists):
    """But for members of the cells that a row has looked at: they had their chance before."""
    ways = [way[way >= 0].tolist() for way in tiles.both_ways(lists.found)]
    cell_of = np.arange(60, dtype=np.int32) % 5
    probes = np.array([[i % 3, 3] for i in range(50)], dtype=np.int32)
    reached = []
    for i in range(50):
        met = {c for j in ways[i] if j < 50 for c in ways[j]} - set(ways[i]) - {i}
        met = {c for c in met if cell_of[c] not in probes[i]}
        reached.append(met | set(lists.found.positions[i]) - {-1})
    before = lists.found.positions.copy()
    both = tiles.both_ways(lists.found)
    tiles.join_neighbors(lists.X, 2.0, both, probes, cell_of, lists.found)
    check_lists(lists)
    assert (lists.found.positions != before).mean() > 0.1
    for i, rows in enumerate(lists.found.positions):
        far = np.array(sorted(reached[i]))
        expected = far[np.argsort(lists.squares[i, far])][: len(rows)]
        assert_array_equal(rows[: expected.size], expected)


@pytest.mark.parametrize("n_features", [1, 7, 8, 9, 40])
def test_the_squared_distance_of_two_rows(n_features):
    X = np.random.RandomState(0).normal(size=(2, n_features))
    expected = ((X[0] - X[1]) ** 2).sum() / 4
    assert cells.square_between(X, 0.5, 0, 1) == pytest.approx(expected, rel=1e-12)


def test_centres_in_order_are_near_the_next():
    centres = np.random.RandomState(0).normal(size=(500, 3))
    order = search.nearby_order(centres)
    assert_array_equal(np.sort(order), np.arange(500))

    def step(rows):
        return np.linalg.norm(np.diff(centres[rows], axis=0), axis=1).mean()

    assert step(order) < 0.6 * step(np.arange(500))


def test_regions_offer_samples_to_those_that_they_found(lists):
    """Two tables of 25 samples each; the places of the first are 0 to 24."""
    near, rows = (part[:50].copy() for part in lists.found)
    tables = [search.Table(near[part], rows[part]) for part in (slice(0, 25), slice(25, 50))]
    offers = search.offers_to(tables[1], 25, (0, 25))
    found = search.with_offers(tables[0], [offers])
    assert_array_equal(tables[0].places, rows[:25])  # what Dask holds stays as it was
    for j in range(25):
        others = [i for i in range(25, 50) if j in rows[i]]
        reached = np.union1d(rows[j], others).astype(int)
        reached = reached[reached >= 0]
        expected = reached[np.argsort(lists.squares[j, reached])][: rows.shape[1]]
        assert_array_equal(found.places[j, : expected.size], expected)
        assert_allclose(found.distances[j, : expected.size], lists.squares[j, expected], rtol=1e-5)


def test_centres_are_ranked_as_lists_rank_them():
    rng = np.random.RandomState(0)
    X, centres = rng.normal(size=(30, 4)), rng.normal(size=(200, 4))
    ranked = cells.ranked_centres(2 * X, centres, unit=2.0)
    assert_array_equal(ranked, cells.nearest_centres(X, centres, 200, n_threads=1))
    assert_array_equal(cells.centres_around(X, centres, 20), ranked[:, :20])


def cells_of_blobs(n_clusters, n_cells=60):
    """Cells on clusters in a row that touch, the clusters of the cells, and a sample."""
    rng = np.random.RandomState(0)
    middle = 6 * np.arange(n_clusters)[:, None] * np.eye(3)[:1]
    sample = np.repeat(middle, 600, axis=0) + rng.normal(size=(600 * n_clusters, 3))
    centres = sample[rng.permutation(len(sample))[: n_cells * n_clusters]]
    return sample, centres, np.rint(centres[:, 0] / 6).clip(0, n_clusters - 1).astype(int)


@pytest.mark.parametrize(("n_workers", "n_regions"), [(2, 2), (2, 4), (4, 4), (3, 3)])
def test_regions_are_cut_between_clusters(n_workers, n_regions):
    sample, centres, cluster = cells_of_blobs(n_clusters=12)
    graph = CellGraph(sample, centres)
    region = graph.divided(n_workers, n_regions)
    assert_array_equal(np.unique(region), np.arange(n_regions))
    sizes = np.bincount(region, graph.weights)
    assert sizes.max() <= 1.25 * sizes.sum() / n_regions
    # All cells of a cluster, but for a few on its rim, are on one worker.
    worker = region * n_workers // n_regions
    most = [np.bincount(worker[cluster == c]).max() for c in range(12)]
    assert sum(most) >= 0.98 * cluster.size


def test_moves_mend_a_bad_bisection():
    sample, centres, cluster = cells_of_blobs(n_clusters=2)
    graph = CellGraph(sample, centres)
    bounds = regions._bounds(graph.weights, 0.5)
    rng = np.random.RandomState(0)
    start = (cluster == 0) ^ (rng.uniform(size=cluster.size) < 0.04)
    found = regions._refined(graph.links, graph.weights, start, bounds)
    assert regions._cut(graph.links, found) < 0.2 * regions._cut(graph.links, start)
    assert bounds[0] <= graph.weights[found].sum() <= bounds[1]


def test_there_may_be_fewer_cells_than_regions():
    X = np.arange(6.0).reshape(3, 2)
    region = CellGraph(X, X).divided(4, 8)
    assert_array_equal(np.sort(region), np.arange(3))
    assert_array_equal(CellGraph(X[:1], X[:1]).divided(2, 2), [0])


@pytest.mark.usefixtures("here")
def test_few_rows_travel_where_the_samples_have_clusters():
    X, _ = make_blobs(3_000, 8, centers=8, cluster_std=1.5, random_state=0)
    found = OnDask(da.from_array(X, chunks=(700, 8)))
    assert found.W.n_blocks == 2
    assert 0 < found.W.halo_share < 0.1
    # On one worker nothing travels, however many blocks there are.
    found.cluster.n_workers = 1
    assert found.W.halo_share == 0


@pytest.mark.parametrize(("scale", "symmetrize"), [("connectivity", "mutual"), (1.5, "mean")])
@pytest.mark.usefixtures("here")
def test_other_weights(samples, scale, symmetrize):
    affinity = Affinity(6, scale=scale, symmetrize=symmetrize)
    found = OnDask(da.from_array(samples[0], chunks=(700, 5)), affinity)
    W = affinity.fit_transform(samples[0])
    assert_allclose(found.degrees, W.sum(axis=1), rtol=1e-9)


def test_operations_are_those_of_a_sparse_matrix(one, many):
    rng = np.random.RandomState(0)
    V, s = rng.normal(size=(N, 3)), rng.uniform(size=N)
    # Pairs that no block has columns for
    Q = csr_array((np.ones(4), ([0, 700, 5, 900], [700, 0, 900, 5])), shape=(N, N))
    A, B = many.W + Q, csr_array(one.W + Q)
    assert_allclose(A @ V, B @ V)
    assert_allclose(A @ V[:, 0], B @ V[:, 0])
    assert_allclose(whole((2 * A).scaled(s)).toarray(), 2 * s[:, None] * B.toarray() * s)
    assert_allclose(A.plus_diagonal(s).diagonal(), s)
    assert (A.max(), A.min()) == pytest.approx((B.max(), 0.0))
    assert A.sum() == pytest.approx(B.sum())


def test_a_matrix_in_the_order_of_its_blocks(one, many):
    """A block of vectors is then a slice of them, and a copy: solvers write to vectors again."""
    matrix, order = many.W.ordered()
    V = np.random.RandomState(0).normal(size=(N, 3))
    given = V[order]
    blocks = matrix.in_blocks(given)
    given[:] = np.nan
    assert_allclose(blocks.gathered(), V[order])
    assert_allclose((matrix @ blocks).gathered(), (one.W @ V)[order])
    assert matrix.layout.is_ordered
    assert not many.W.layout.is_ordered


@pytest.mark.parametrize("width", [1, 8, 11, 16])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_product_of_a_block(width, kind):
    rng = np.random.RandomState(width)
    block = csr_array(rng.normal(size=(30, 50)) * (rng.uniform(size=(30, 50)) < 0.2))
    X = rng.normal(size=(50, width)).astype(kind)
    found = multiplied(block, X[:30], X[30:45], X[45:])
    assert_allclose(found, block.toarray() @ X, rtol=1e-6 if kind == np.float32 else 1e-12)


def test_components_of_a_block_and_the_links_between_them():
    """Stored zeros link nothing."""
    rng = np.random.RandomState(0)
    block = csr_array(rng.normal(size=(40, 60)) * (rng.uniform(size=(40, 60)) < 0.05))
    block.data[::2] = 0
    own = own_components(block)
    A = block.toarray()[:, :40]
    _, expected = connected_components(A != 0, directed=False)
    assert_array_equal(own[:, None] == own, expected[:, None] == expected)
    component = np.append(own, 100 + np.arange(20) // 3)
    pairs = {(component[i], component[j]) for i, j in np.argwhere(block.toarray()) if j >= 40}
    found = linked_components(block, component)
    assert sorted(map(tuple, found.tolist())) == sorted(pairs)
    assert linked_components(block[:, :40], own).shape == (0, 2)


@pytest.mark.parametrize("symmetrize", ["union", "mutual", "mean"])
def test_a_symmetric_block_and_its_outer_columns(symmetrize):
    """Edges of 30 samples, in blocks of 10 and 20; a column without entries is left out."""
    rng = np.random.RandomState(0)
    places = np.array([rng.permutation(np.delete(np.arange(30), i))[:4] for i in range(30)])
    weights = rng.uniform(0.1, 1, size=places.shape)
    A = csr_array((weights.ravel(), places.ravel(), np.arange(0, 121, 4)), shape=(30, 30))
    expected = symmetrized(A.toarray(), A.toarray().T, symmetrize)
    for first, last in ((0, 10), (10, 30)):
        parts = [(places[a:b], weights[a:b]) for a, b in ((0, 10), (10, 30))]
        arriving = [
            entries_into(part, at, (first, last)) for part, at in zip(parts, (0, 10), strict=True)
        ]
        mine = (places[first:last], weights[first:last])
        block, outside = symmetric_block(mine, arriving, (first, last), (30, symmetrize))
        columns = np.append(np.arange(first, last), outside)
        assert block.indices.dtype == np.int32
        assert np.unique(block.indices[block.indices >= last - first]).size == outside.size
        assert_allclose(block.toarray(), expected[first:last, columns])
        assert block.nnz == np.count_nonzero(expected[first:last])


def test_a_recurrence_is_the_same_in_blocks(one, many):
    from linkwise.linalg.chebyshev import _Product

    rng = np.random.RandomState(0)
    R = rng.normal(size=(N, 5)).astype(np.float32)
    steps = [tuple(rng.uniform(size=(3, 5))) for _ in range(4)]
    found = many.W.recurrence(None, R, steps, center=0.2, scale=0.1)

    def work(m):
        return np.zeros((N, m)), np.zeros((N, m))

    wanted = _Product(0.1 * one.W).recurrence((None, R), steps, center=0.2, work=work)
    assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["NCut", *PAIRS, *LABELS])
def test_methods_answer_as_on_one_machine(one, many, samples, name):
    X, y = samples
    settings = {"solver": "lowrank"} if name == "E2CP" else {}
    model = getattr(linkwise, name)(K, random_state=0, **settings)
    given = known_of(y, name)
    there = model.fit(many.cold(), **given)
    assert isinstance(there.labels_, da.Array)
    assert there.labels_.chunks == ((500, 500, 200),)
    labels, values = there.labels_.compute(), there.result_.eigenvalues
    predicted = there.predict(da.from_array(X[:300], chunks=(100, 5))).compute()
    here = model.fit(one.cold(), **given)
    assert_array_equal(labels, here.labels_)
    if values is not None:
        assert_allclose(values, here.result_.eigenvalues, atol=1e-6)
    assert (predicted == labels[:300]).mean() > 0.97


@pytest.mark.usefixtures("here")
def test_signed_of_two_clusters_turns_the_same_line():
    X, y = make_blobs(600, 3, centers=2, cluster_std=4, random_state=1)
    known = Constraints.sample(y, 40, random_state=0)
    there = OnDask(da.from_array(X, chunks=(250, 3)))
    model = linkwise.SignedCSC(2, random_state=0)
    labels = model.fit(there, constraints=known).labels_.compute()
    assert_array_equal(labels, model.fit(X, constraints=known).labels_)


@pytest.mark.usefixtures("here")
def test_harmonic_functions_go_beyond_faint_edges():
    """A component that hangs on the others by a faint edge gets the value at its other end."""
    X = np.random.RandomState(0).uniform(size=(200, 3))
    X[100:] = 50 + 0.001 * X[100:]
    affinity = Affinity(5, scale=0.2)
    labels = np.full(200, -1)
    labels[[X[:100, 0].argmin(), X[:100, 0].argmax()]] = 0, 1
    known = Constraints.from_labels(labels)
    there = OnDask(da.from_array(X, chunks=(70, 3)), affinity)
    found = linkwise.GFHF(2).fit(there, constraints=known)
    wanted = linkwise.GFHF(2, affinity=affinity).fit(X, constraints=known)
    assert_allclose(found.embedding_, wanted.embedding_, atol=1e-6)


@pytest.mark.usefixtures("here")
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_labels_in_some_components_leave_the_graph_as_it_is():
    X, y = make_blobs(450, 3, centers=3, cluster_std=0.3, random_state=0)
    affinity = Affinity(5, connect=None)
    labels = np.full(450, -1)
    labels[[np.argmax(y == 0), np.argmax(y == 1)]] = 0, 1
    known = Constraints.from_labels(labels)
    there = OnDask(da.from_array(X, chunks=(150, 3)), affinity)
    before = whole(there.W)
    found = linkwise.GFHF(2).fit(there, constraints=known).labels_.compute()
    assert_allclose((whole(there.W) - before).toarray(), 0, atol=0)
    wanted = linkwise.GFHF(2, affinity=affinity).fit(X, constraints=known).labels_
    assert_array_equal(found[y < 2], wanted[y < 2])


def test_a_block_may_be_without_edges():
    assert kept_where(csr_array((2, 5)), np.ones(5, dtype=bool)).shape == (2, 5)


def test_a_cluster_that_was_started_ends_with_data_that_are_refused(monkeypatch):
    started = []
    monkeypatch.setattr(
        prepared, "Cluster", lambda client: started.append(Here(client)) or started[0]
    )
    with pytest.raises(ValueError, match="nan"):
        OnDask(da.from_array(np.full((10, 2), np.nan), chunks=(5, 2)))
    assert started[0].is_closed


def test_a_cluster_of_ones_own_is_nobody_elses(client, monkeypatch):
    asked = {}

    def nobody():
        raise ValueError("no client")

    monkeypatch.setattr("distributed.get_client", nobody)
    monkeypatch.setattr(
        "linkwise.distributed.cluster.local_client", lambda **how: asked.update(how) or client
    )
    assert Cluster().client is client
    assert asked == {"set_as_default": False}


def test_labels_are_there_when_the_cluster_is_gone(client, samples):
    X = samples[0][:300]
    model = NCut(K, random_state=0).fit(X)
    there = OnDask(da.from_array(X, chunks=(100, 5)), client=client)
    labels = there.predicted(model, np.array([7]), np.array([3]))
    wanted = model.predict(X)
    wanted[7] = 3
    assert_array_equal(labels.compute(scheduler="synchronous"), wanted)  # asks no worker


def test_chunks_may_be_empty(samples):
    X = samples[0][:300]
    model = linkwise.Auto(K, random_state=0, verbose=0).fit(X)
    chunks = da.from_array(X, chunks=(100, 5))
    some = chunks[da.from_array(np.arange(300) >= 120, chunks=100)]  # none of the first hundred
    assert_array_equal(model.predict(some).compute(scheduler="sync"), model.predict(X[120:]))
    assert prepared.labels_of_chunk(X[:0], 0, model, np.zeros(0, int), np.zeros(0, int)).size == 0


def test_too_few_neighbours_within_reach_are_an_error():
    with pytest.raises(ValueError, match="1 samples have fewer than 2 neighbours"):
        search._check_found(np.array([[1, 2], [0, -1]]), np.arange(5), 2)


@pytest.mark.usefixtures("here")
def test_components_are_joined():
    X = np.concatenate(
        [make_blobs(200, 4, centers=1, random_state=i)[0] + 40 * i for i in range(3)]
    )
    chunks = da.from_array(X, chunks=(150, 4))
    joined = OnDask(chunks)
    assert joined.components.max() == 0
    assert_allclose(joined.degrees, Prepared(X).degrees)
    apart = OnDask(chunks, Affinity(connect=None))
    with pytest.warns(DisconnectedGraphWarning, match="3 connected components"):
        n_components, component = symmetric_components(apart.W)
    assert n_components == 3
    assert_array_equal(component, np.repeat([0, 1, 2], 200))


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (np.where(np.arange(20).reshape(10, 2) == 7, np.nan, 1.0), "nan .* row 3 of chunk 1.* 13"),
        (np.ones((10, 3)), "3 columns in chunk 1 .* 2 elsewhere"),
        (csr_array(np.ones((10, 2))), "sparse rows.* row 0 of chunk 1"),
        (np.ones((10, 2)) * 1j, "complex numbers in row 0 of chunk 1"),
        (np.array([["1", "2"]] * 4 + [["1", "two"]] * 6, dtype=object), "'two'.* row 4 of chunk 1"),
    ],
)
def test_bad_chunks_are_named(client, chunk, message):
    def block(block_info=None):
        return chunk if block_info[None]["chunk-location"][0] == 1 else np.ones((10, 2))

    X = da.map_blocks(block, chunks=((10,) * 3, (2,)), dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=message):
        OnDask(X, client=client)


def test_what_is_for_one_machine_is_refused(client, many, samples):
    with pytest.raises(TypeError, match=r"COSC is for one machine.*SignedCSC"):
        linkwise.COSC(K).fit(many)
    with pytest.raises(TypeError, match=r"linkwise\.distributed\.Prepared"):
        NCut(K).fit(many.source)
    with pytest.raises(TypeError, match="takes a Dask array"):
        OnDask(samples[0], client=client)
    with pytest.raises(ValueError, match="metric='cosine' is for one machine"):
        OnDask(many.source, Affinity(metric="cosine"), client=client)


@pytest.mark.usefixtures("here")
def test_auto_learns_on_a_subset(samples, monkeypatch):
    monkeypatch.setattr(prepared, "SUBSET", 600)
    X, y = samples
    known = Constraints.sample(y, 40, random_state=0)
    there = OnDask(da.from_array(X, chunks=(500, 5)))
    model = linkwise.Auto(K, random_state=0, hard=True, verbose=0).fit(there, constraints=known)
    labels = model.labels_.compute()
    assert model.labels_.chunks == ((500, 500, 200),)
    assert known.n_violated(labels) == 0
    assert linkwise.metrics.adjusted_rand(labels, y) > 0.9
    assert known.constrained[list(model.suspects_[0].samples)].all()
    P = model.predict_proba(there.source)
    assert P.shape == (N, K)
    assert (P.compute().argmax(axis=1) == labels).mean() > 0.95
    # Small enough, all samples are the subset.
    monkeypatch.setattr(prepared, "SUBSET", N)
    same = linkwise.Auto(K, random_state=0, verbose=0).fit(there, constraints=known)
    here = linkwise.Auto(K, random_state=0, verbose=0).fit(X, constraints=known)
    assert_array_equal(same.labels_.compute(), here.labels_)


@pytest.mark.usefixtures("here")
def test_auto_partitions_the_samples_that_one_machine_does(samples, monkeypatch):
    monkeypatch.setattr(prepared, "SUBSET", 600)
    monkeypatch.setattr(views, "MAX_ROWS", 200)
    monkeypatch.setattr(estimator, "MAX_ROWS", 200)
    monkeypatch.setattr(views, "ORDERED_UP_TO", 0)  # as of so many samples that there is a subset
    X, y = samples
    known = Constraints.sample(y, 40, random_state=0)
    there = OnDask(da.from_array(X, chunks=(500, 5)))
    many = linkwise.Auto(K, random_state=0, verbose=0).fit(there, constraints=known)
    here = linkwise.Auto(K, random_state=0, verbose=0).fit(X, constraints=known)
    partitioned = np.union1d(drawn(N, 200), np.flatnonzero(known.constrained))
    assert_array_equal(np.sort(many.committee_.samples), partitioned)
    assert_array_equal(np.sort(here.committee_.samples), partitioned)
    # Where their features tell clusters apart, others are given the same function of these
    monkeypatch.setattr(linkwise.Auto, "predict", None)
    monkeypatch.setattr(learner, "fit_classifier", linear_learner)
    many = linkwise.Auto(K, random_state=0, verbose=0).fit(there, constraints=known)
    here = linkwise.Auto(K, random_state=0, verbose=0).fit(X, constraints=known)
    assert linkwise.metrics.adjusted_rand(many.labels_.compute(), here.labels_) > 0.97


@pytest.mark.usefixtures("here")
def test_a_subset_of_all_samples_is_partitioned_as_on_one_machine(samples, monkeypatch):
    """In the order of their own that has no regard to how the rows are ordered."""
    monkeypatch.setattr(views, "MAX_ROWS", 300)
    monkeypatch.setattr(estimator, "MAX_ROWS", 300)
    X, y = samples
    known = Constraints.sample(y, 40, random_state=0)
    there = OnDask(da.from_array(X, chunks=(500, 5)))
    many = linkwise.Auto(K, random_state=0, verbose=0).fit(there, constraints=known)
    here = linkwise.Auto(K, random_state=0, verbose=0).fit(X, constraints=known)
    assert here.committee_.samples.size < N / 2
    assert_array_equal(many.committee_.samples, here.committee_.samples)
    assert_array_equal(many.labels_.compute(), here.labels_)


def linear_learner(view, rows, probability):
    return learner.fit_learner(view.design(rows, rows), ("linear",), probability)[1]


def test_any_fitted_estimator_predicts_dask_arrays(client, samples):
    X, y = samples
    known = Constraints.sample(y, 40, random_state=0)
    chunks = da.from_array(X, chunks=(500, 2))
    for name in ("ConstrainedPCA", "CCL", "SignedCSC"):
        model = getattr(linkwise, name)(K).fit(X[:300], constraints=known.restrict(range(300)))
        assert_array_equal(model.predict(chunks).compute(), model.predict(X))


def test_new_samples_on_dask_are_rows(samples):
    model = NCut(K, random_state=0).fit(samples[0])
    line = da.ones(5)
    for X in (line, line[line > 0], da.ones((2, 2, 5))):  # of unknown length, too
        for predict in (model.predict, linkwise.Auto.predict_proba.__get__(model)):
            with pytest.raises(ValueError, match=f"Expected 2D array, got {X.ndim}D array"):
                predict(X)
    assert model.predict(line[None]).compute().shape == (1,)  # as the message says


def test_work_stays_with_its_worker(client):
    """Also while the other is idle: what a block needs is where its worker is."""
    cluster = Cluster(client)
    pids = client.run(os.getpid)

    def pid_of_worker(_):
        time.sleep(0.05)
        return os.getpid()

    first, second = (pids[address] for address in sorted(pids))
    for at, pid in ((0.0, first), (0.5, second)):
        asked = [cluster.submit(pid_of_worker, i, at=at) for i in range(10)]
        assert cluster.fetch(asked) == [pid] * 10
        asked = [cluster.lazy(pid_of_worker, i, at=at) for i in range(10)]
        assert cluster.fetch(cluster.compute(asked)) == [pid] * 10


def test_only_the_halo_travels(client, samples, monkeypatch):
    monkeypatch.setattr(search, "REGIONS_PER_WORKER", 4)
    W = OnDask(da.from_array(samples[0], chunks=(500, 5)), client=client).W
    assert W.n_blocks == 8
    V = np.ones((N, 16), dtype=np.float32)
    one = np.ones(16)
    W.recurrence(None, V, [(one, one, one)], center=0.0, scale=0.1)

    def received(dask_worker):
        return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)

    travelled = []
    for n_steps in (2, 7):
        before = sum(client.run(received).values())
        W.recurrence(None, V, [(one, one, one)] * n_steps, center=0.0, scale=0.1)
        travelled.append(sum(client.run(received).values()) - before)
    share = (travelled[1] - travelled[0]) / 5 / V.nbytes
    assert share == pytest.approx(W.halo_share, rel=0.2)


def test_processes_answer_as_one_machine(client, one, samples):
    X, y = samples
    there = OnDask(da.from_array(X, chunks=(500, 5)), client=client)
    assert there.W.n_blocks == 2
    assert_array_equal(
        NCut(K, random_state=0).fit(there).labels_, NCut(K, random_state=0).fit(one).labels_
    )
    known = known_of(y, "LLGC")
    model = linkwise.LLGC(K).fit(there, **known)
    assert_array_equal(model.labels_.compute(), linkwise.LLGC(K).fit(one, **known).labels_)
    predicted = model.predict(there.source).compute()
    assert (predicted == model.labels_.compute()).mean() > 0.97


def test_processes_learn_as_one_machine(client):
    X, y = make_blobs(300, 3, centers=3, cluster_std=2, random_state=0)
    known = Constraints.sample(y, 20, random_state=0)
    model = linkwise.Auto(3, random_state=0, verbose=0)
    there = OnDask(da.from_array(X, chunks=(100, 3)), client=client)
    found = model.fit(there, constraints=known).labels_.compute()
    assert_array_equal(found, model.fit(X, constraints=known).labels_)


PREDICT = """
import dask.array as da
from sklearn.datasets import make_blobs
import linkwise
from linkwise.distributed import Prepared
from linkwise.distributed.cluster import local_client

if __name__ == "__main__":
    X, y = make_blobs(1000, 8, centers=4, cluster_std=2.5, random_state=0)
    given = [int(cluster) if i % 50 == 0 else -1 for i, cluster in enumerate(y)]
    known = linkwise.Constraints.from_labels(given)
    chunks = da.from_array(X, chunks=(500, 8))
    with local_client(2) as client:
        for _ in range(3):
            with Prepared(chunks, client=client) as there:
                model = linkwise.GFHF(4).fit(there, constraints=known)
                inside = model.predict(chunks).compute()
        outside = model.predict(chunks[:10]).compute()
    wanted = linkwise.GFHF(4).fit(X, constraints=known).predict(X)
    print(*((found == wanted[: found.size]).all() for found in (inside, outside, model.predict(X))))
"""


def test_predictions_are_not_computed_while_they_are_sent(tmp_path):
    """In a program of its own: one that waits for itself would not end."""
    program = tmp_path / "predict.py"
    program.write_text(PREDICT)
    command = [sys.executable, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * 3


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_fitted_model_needs_the_cluster_no_more(many, samples, monkeypatch, is_sent):
    X, y = samples
    model = linkwise.GFHF(K).fit(many.cold(), **known_of(y, "GFHF"))
    builder = model.affinity_

    def refuse(*_):
        raise AssertionError("The cluster was asked.")

    monkeypatch.setattr(Here, "compute", refuse)
    if is_sent:
        builder = pickle.loads(pickle.dumps(builder))
    wanted = Affinity().fit(X).extend(X[:50] + 0.01)
    assert_allclose(builder.extend(X[:50] + 0.01).toarray(), wanted.toarray())


@pytest.mark.parametrize("name", ["NCut", "GFHF", "Auto"])
@pytest.mark.usefixtures("here")
def test_it_tells_what_is_on_the_client(name):
    X, y = make_blobs(200, 3, centers=2, random_state=0)
    there = OnDask(da.from_array(X, chunks=(100, 3)))
    assert repr(there) == "Prepared(200 samples)"
    lines = str(there).splitlines()
    assert lines[0] == "Prepared data of 200 samples on Dask; bytes are those on the client"
    assert [line.split() for line in lines[1:]] == [
        ["X", "200", "x", "3", "0", "bytes"],
        ["total", "0", "bytes"],
    ]
    settings = {"verbose": 0} if name == "Auto" else {}
    getattr(linkwise, name)(2, random_state=0, **settings).fit(there, **known_of(y, name))
    lines = str(there).splitlines()
    if name == "Auto":  # which builds graphs of its own
        assert len(lines) == 3
        return
    assert repr(there) == "Prepared(200 samples, graph built)"
    assert lines[2].split() == ["W", "2", "blocks", "of", "rows", "0", "bytes"]
    assert lines[3].split() == ["representatives", "200", "4,800", "bytes"]


KILL = "import os, signal, time; time.sleep({}); os.kill({}, signal.SIGKILL)"


@pytest.mark.parametrize("stage", ["neighbours", "eigenvectors"])
def test_a_killed_worker_changes_nothing(client, one, stage):
    wanted = NCut(K, random_state=0).fit(one.cold()).labels_
    there = OnDask(da.from_array(one.X, chunks=(300, 5)), client=client)
    if stage == "eigenvectors":
        assert there.W.n_blocks == 2
    victim = next(iter(client.run(os.getpid).values()))
    killed = subprocess.Popen([sys.executable, "-c", KILL.format(0.1, victim)])
    assert_array_equal(NCut(K, random_state=0).fit(there).labels_, wanted)
    assert killed.wait(timeout=30) == 0
    assert not psutil.pid_exists(victim)
    client.wait_for_workers(2, timeout=60)


def started(program, *options):
    """Start a program of Dask on loopback."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--host", "127.0.0.1"]
    return subprocess.Popen(
        [*command, "--no-dashboard", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.fixture
def processes(tmp_path):
    """A scheduler and a worker of their own, as on a cluster."""
    path = tmp_path / "scheduler.json"
    file = str(path)
    scheduler = started("scheduler", "--port", "0", "--scheduler-file", file)
    for _ in range(600):  # it writes its address when it listens
        if path.exists():
            break
        time.sleep(0.1)
    options = ("--nthreads", "1", "--death-timeout", "30", "--local-directory", str(tmp_path))
    worker = started("worker", "--scheduler-file", file, *options)
    yield file, scheduler, worker
    for process in (scheduler, worker):
        process.kill()
        process.wait(timeout=30)


def fit_again_and_again(there):
    """Fit until there is an error: one fit may be done before the scheduler is killed."""
    while True:
        NCut(K, random_state=0).fit(there.cold())


@pytest.mark.parametrize("moment", ["while chunks are read", "before a fit", "during a fit"])
def test_a_scheduler_that_is_gone_is_an_error_and_leaves_nothing(processes, samples, moment):
    file, scheduler, worker = processes
    X = da.from_array(samples[0], chunks=(400, 5))
    before = set(psutil.Process().children(recursive=True))
    # A scheduler that does not answer is waited for, by default for 30 seconds.
    with distributed.Client(scheduler_file=file, set_as_default=False, timeout=5) as client:
        client.wait_for_workers(1, timeout=60)
        family = set(psutil.Process(worker.pid).children(recursive=True))
        if moment == "while chunks are read":
            X = X.map_blocks(lambda block: time.sleep(4) or block)
            timer = Timer(0.5, scheduler.kill)
            timer.start()
            with pytest.raises(RuntimeError, match=r"scheduler at tcp://127.* is gone"):
                OnDask(X, client=client)
            timer.join()
        else:
            there = OnDask(X, client=client)
            assert there.W.n_blocks == 1
            timer = Timer(0.1 if moment == "during a fit" else 0, scheduler.kill)
            timer.start()
            if moment == "before a fit":
                scheduler.wait(timeout=30)
            with pytest.raises(RuntimeError, match=r"scheduler at tcp://127.* is gone"):
                fit_again_and_again(there)
    assert worker.wait(timeout=60) is not None  # ends by itself
    assert not psutil.wait_procs(family, timeout=30)[1]
    assert set(psutil.Process().children(recursive=True)) <= before


def test_without_the_extra_the_message_names_it():
    script = """
import sys
sys.modules["distributed"] = None
from linkwise.distributed import Prepared
class Array:
    dask, to_delayed = {}, None
try:
    Prepared(Array())
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'linkwise[dask]'" in done.stdout


def test_a_file_that_is_missing_is_not_taken_for_a_missing_scheduler(client):
    def block():
        raise FileNotFoundError("part-3.npy")

    X = da.map_blocks(block, chunks=((10,) * 2, (2,)), dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(FileNotFoundError, match=r"part-3\.npy"):
        OnDask(X, client=client)


def test_the_message_of_killed_workers_names_the_step(client):
    cluster = Cluster(client)
    error = cluster.distributed.scheduler.KilledWorker(_unmoved(max), None, 3)

    def gather(futures):
        raise error

    cluster.client = SimpleNamespace(gather=gather)
    with pytest.raises(RuntimeError, match=r"same step \(max\)\. Mostly they ran out of memory"):
        cluster.fetch([None])
