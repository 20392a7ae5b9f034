"""Prepared data: one graph for many fits, and solvers that start where they ended."""

from __future__ import annotations

import pickle
from threading import Barrier, Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse
from sklearn.metrics import adjusted_rand_score

from linkwise import (
    CSC,
    E2CP,
    METHODS,
    Affinity,
    ApproximateNeighbors,
    Auto,
    Constraints,
    NCut,
    Prepared,
    SpectralLearning,
)
from linkwise.linalg import warm as warm_module
from linkwise.linalg.warm import WarmStarts

every_method = pytest.mark.parametrize("Method", METHODS.values(), ids=METHODS.keys())


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], 40)
    return rng.normal(size=(120, 4)) + 4 * y[:, None], y


@pytest.fixture
def known(blobs):
    known = Constraints.sample(blobs[1], 30, random_state=0)
    triangle = [(0, 40), (0, 80), (40, 80)]  # label methods need three groups that differ
    return Constraints(
        120, must_link=known.must_link, cannot_link=np.vstack([known.cannot_link, triangle])
    )


@every_method
def test_prepared_data_give_the_same_clusters(Method, blobs, known):
    X, _ = blobs
    known = None if Method is NCut else known
    plain = Method(3, random_state=0).fit(X, constraints=known)
    prepared = Method(3, random_state=0).fit(Prepared(X), constraints=known)
    assert_array_equal(plain.labels_, prepared.labels_)
    assert prepared.n_features_in_ == 4
    assert_array_equal(plain.predict(X[:5] + 0.1), prepared.predict(X[:5] + 0.1))


@every_method
def test_new_samples_are_an_array(Method, blobs, known):
    data = Prepared(blobs[0])
    model = Method(3, random_state=0).fit(data, constraints=None if Method is NCut else known)
    with pytest.raises(TypeError, match=r"Pass its \.X"):
        model.predict(data)


def test_the_graph_is_built_once_and_only_when_needed(blobs, known):
    X, _ = blobs
    Counting, built = counting_affinity()
    data = Prepared(X, affinity=Counting(8))
    assert not built
    METHODS["cpca"](3).fit(data, constraints=known)
    assert not built
    for Method in (CSC, NCut, E2CP):
        used = None if Method is NCut else known
        model = Method(3, random_state=0).fit(data, constraints=used)
        assert model.affinity_matrix_ is data.W
        assert model.affinity_ is data.affinity_
    assert len(built) == 1


def test_a_precomputed_graph_is_checked_once(blobs, known):
    W = Affinity().fit_transform(blobs[0])
    data = Prepared(W, affinity="precomputed")
    for affinity in (None, "precomputed"):
        model = CSC(3, affinity=affinity, random_state=0).fit(data, constraints=known)
        assert model.affinity_ is None
        assert_array_equal(model.predict(W[:10]), model.labels_[:10])
    with pytest.raises(ValueError, match="negative"):
        Prepared(csr_array(-W), affinity="precomputed")


def test_refused(blobs):
    X, _ = blobs
    data = Prepared(X)
    with pytest.raises(ValueError, match="Give it to Prepared"):
        CSC(3, affinity=Affinity(5)).fit(data)
    with pytest.raises(ValueError, match="not 'full'"):
        Prepared(X, affinity="full")
    with pytest.raises(TypeError, match="needs dense features"):
        METHODS["cpca"](3).fit(Prepared(csr_array(X)))
    with pytest.raises(ValueError, match="the data are a graph"):
        METHODS["cpca"](3).fit(Prepared(Affinity().fit_transform(X), affinity="precomputed"))
    with pytest.raises(ValueError, match="NaN"):
        Prepared(np.full((3, 2), np.nan))


def test_feature_names_are_kept(blobs):
    pandas = pytest.importorskip("pandas", reason="needs the extra 'frames'")
    frame = pandas.DataFrame(blobs[0], columns=list("abcd"))
    model = NCut(3, random_state=0).fit(Prepared(frame))
    assert model.feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("Method", [NCut, SpectralLearning, CSC, METHODS["signed"], E2CP])
def test_a_later_fit_starts_from_the_vectors_of_an_earlier_one(Method):
    rng = np.random.RandomState(1)
    y = np.repeat(np.arange(4), 1_000)
    X = rng.normal(size=(4_000, 3)) + 5 * rng.normal(size=(4, 3))[y]
    known = [Constraints.sample(y, 60, random_state=s) for s in (0, 1)]
    data = Prepared(X)
    used = None if Method is NCut else known[1]
    Method(4, random_state=0).fit(data, constraints=None if Method is NCut else known[0])
    warm = Method(4, random_state=0).fit(data, constraints=used)
    cold = Method(4, random_state=0).fit(X, constraints=used)
    assert adjusted_rand_score(cold.labels_, warm.labels_) > 0.995
    assert warm.result_.converged
    assert np.allclose(cold.result_.eigenvalues, warm.result_.eigenvalues, atol=1e-5)


def test_only_missing_columns_are_computed():
    A = csr_array(np.random.RandomState(0).uniform(size=(6, 6)))
    asked = []

    def compute(columns):
        asked.append(columns.tolist())
        return A[:, columns]

    warm = WarmStarts()
    for wanted in ([1, 4], [0, 4, 5], [1, 4], [0, 1, 4, 5]):
        found = warm.columns((0.5, 1e-4), np.array(wanted), compute)
        assert_array_equal(found.toarray(), A.toarray()[:, wanted])
    assert asked == [[1, 4], [0, 5]]
    assert warm.columns((0.8, 1e-4), np.empty(0, dtype=np.intp), compute).shape == (6, 0)


def test_the_number_of_columns_has_a_limit(monkeypatch):
    monkeypatch.setattr(warm_module, "MOST_ENTRIES", 20)
    A = csr_array(np.ones((6, 6)))
    asked = []

    def compute(columns):
        asked.append(columns.tolist())
        return A[:, columns]

    warm = WarmStarts()
    for wanted in ([0, 1, 2], [2, 3], [3], [0, 3]):
        found = warm.columns((0.5, 1e-4), np.array(wanted), compute)
        assert_array_equal(found.toarray(), np.ones((6, len(wanted))))
    # After the second call only its own columns are left.
    assert asked == [[0, 1, 2], [3], [0]]


@pytest.mark.parametrize("key", ["sl", "csc", "signed", "e2cp", "srcp"])
def test_later_fits_of_large_data_are_those_of_new_data(key, monkeypatch):
    # Filtering, as from 10,000 samples on.
    monkeypatch.setattr("linkwise.linalg.eigen.CHEBYSHEV_FROM", 1_000)
    rng = np.random.RandomState(2)
    y = np.repeat(np.arange(4), 900)
    X = rng.normal(size=(3_600, 4)) + 4 * rng.normal(size=(4, 4))[y]
    data = Prepared(X)
    for n_pairs, seed in ((200, 0), (210, 0), (200, 1), (20, 2)):
        known = Constraints.sample(y, n_pairs, random_state=seed)
        warm = METHODS[key](4, random_state=0).fit(data, constraints=known)
        cold = METHODS[key](4, affinity="precomputed", random_state=0)
        cold.fit(data.W, constraints=known)
        assert warm.result_.converged
        assert_allclose(warm.result_.eigenvalues, cold.result_.eigenvalues, atol=1e-8)
        assert adjusted_rand_score(cold.labels_, warm.labels_) > 0.999


def test_cold_data_share_the_graph_and_nothing_that_solvers_found(blobs):
    data = Prepared(blobs[0])
    CSC(2, random_state=0).fit(data)
    cold = data.cold()
    assert cold.W is data.W
    assert cold.warm.adjacency.vectors is None
    CSC(2, random_state=0).fit(cold)
    assert cold.warm.adjacency.vectors is not data.warm.adjacency.vectors


# --- one object for one set of data


def counting_affinity():
    """Return a class of affinities, and the list that each build of a graph adds to."""
    built = []

    class Counting(Affinity):
        def fit_transform(self, X, y=None):
            built.append(X.shape)
            return super().fit_transform(X, y)

    return Counting, built


def test_prepared_data_are_not_prepared_again(blobs):
    X, _ = blobs
    data = Prepared.of(X)
    assert Prepared.of(data) is data
    assert Prepared.of(data, Affinity()) is data
    own = Prepared(X, Affinity(7))
    assert Prepared.of(own, Affinity(7)) is own
    graph = Prepared(data.W, "precomputed")
    assert Prepared.of(graph, "precomputed") is graph
    for asked in (Affinity(8), "precomputed"):
        with pytest.raises(ValueError, match="prepared with affinity=Affinity"):
            Prepared.of(own, asked)


def test_degrees_and_components_are_those_of_the_graph():
    W = csr_array(np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)))
    with pytest.warns(UserWarning, match="2 connected components"):
        data = Prepared(W, "precomputed")
    assert data.degrees.tolist() == [2.0] * 6
    assert data.components.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.n_samples == 6


@pytest.mark.parametrize("affinity", [None, Affinity(None)], ids=["neighbours", "full"])
def test_fewer_vectors_are_a_part_of_the_embedding(affinity, blobs, monkeypatch):
    data = Prepared(blobs[0], affinity)
    five = data.embedding(5, np.random.RandomState(0))
    fresh = Prepared(blobs[0], affinity).embedding(3, rng := np.random.RandomState(0))
    monkeypatch.setattr("linkwise.graph.prepared.spectral_embedding", None)  # not called again
    three = data.embedding(3, again := np.random.RandomState(0))
    assert_allclose(three.values, five.values[:3], rtol=0)
    assert np.shares_memory(three.vectors, five.vectors)
    assert_allclose(three.values, fresh.values, atol=1e-9)
    assert rng.randint(100) == again.randint(100)  # as much is drawn


def test_the_embedding_of_a_graph_in_pieces_depends_on_the_number():
    # The first vectors of three components stand for two of them; two vectors stand for all.
    W = csr_array(np.kron(np.eye(3), np.ones((3, 3)) - np.eye(3)))
    with pytest.warns(UserWarning, match="3 connected components"):
        data = Prepared(W, "precomputed")
    data.embedding(4, np.random.RandomState(0))
    two = data.embedding(2, rng := np.random.RandomState(0))
    assert (np.abs(two.vectors).sum(axis=1) > 0).all()
    assert rng.randint(100) == np.random.RandomState(0).randint(100)  # nothing was drawn


def test_ncut_uses_the_embedding_that_is_there(blobs, monkeypatch):
    data = Prepared(blobs[0])
    first = NCut(4, random_state=0).fit(data)
    monkeypatch.setattr("linkwise.linalg.eigen.largest", None)
    assert_array_equal(NCut(4, random_state=0).fit(data).labels_, first.labels_)
    assert NCut(3, random_state=0).fit(data).result_.converged


def test_threads_share_one_graph_and_one_embedding(blobs):
    Counting, built = counting_affinity()
    data, found, together = Prepared(blobs[0], Counting()), [], Barrier(4)

    def fit():
        together.wait()
        found.append(NCut(3, random_state=0).fit(data))

    threads = [Thread(target=fit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert len(found) == 4
    for model in found:
        assert_array_equal(model.labels_, found[0].labels_)


def test_a_warm_start_saves_products(monkeypatch):
    monkeypatch.setattr("linkwise.linalg.eigen.CHEBYSHEV_FROM", 1_000)
    rng = np.random.RandomState(1)
    X = rng.normal(size=(3_000, 3)) + 5 * rng.normal(size=(4, 3))[np.repeat(np.arange(4), 750)]
    data = Prepared(X)
    cold = data.embedding(4, np.random.RandomState(0))
    data._embedding = None
    warm = data.embedding(4, np.random.RandomState(0))
    assert warm.n_products < 0.3 * cold.n_products
    assert_allclose(warm.values, cold.values, atol=1e-8)


def test_prepared_data_can_be_pickled(blobs):
    data = Prepared(blobs[0])
    model = NCut(3, random_state=0).fit(data)
    again = pickle.loads(pickle.dumps(data))
    assert again.W is not data.W
    assert str(again) == str(data)
    assert_array_equal(NCut(3, random_state=0).fit(again).labels_, model.labels_)


def test_print_shows_what_is_there(blobs, known):
    data = Prepared(blobs[0])
    assert repr(data) == "Prepared(120 samples)"
    assert "edges" not in str(data)
    NCut(3, random_state=0).fit(data)
    E2CP(3, solver="lowrank", random_state=0).fit(data, constraints=known)
    data.components  # noqa: B018
    lines = str(data).splitlines()
    assert lines[0] == "Prepared data of 120 samples"
    table = {line[:24].strip(): line[24:].split() for line in lines[1:]}
    assert table["X"] == ["120", "x", "4", "3,840", "bytes"]
    assert table["W"][:2] == [str(data.W.nnz // 2), "edges"]
    assert table["components"][0] == "1"
    assert table["embedding"] == ["3", "vectors", "2,880", "bytes"]
    assert table["warm: resolvent 0.8"][1] == "columns"
    sizes = [int(row[-2].replace(",", "")) for row in table.values()]
    assert sizes[-1] == sum(sizes[:-1])
    assert repr(data) == "Prepared(120 samples, graph built)"


# --- files


def equal_state(data, again):
    """Assert that two prepared data hold the same."""
    for name in ("X", "W", "degrees", "components"):
        a, b = getattr(data, name), getattr(again, name)
        assert_array_equal(a.toarray() if issparse(a) else a, b.toarray() if issparse(b) else b)
    assert str(data) == str(again)


@pytest.mark.parametrize("kind", ["dense", "sparse", "graph", "full", "approximate"])
def test_a_file_gives_the_same_labels_and_starts_warm(kind, blobs, known, tmp_path, monkeypatch):
    X, _ = blobs
    X = csr_array(X) if kind == "sparse" else X
    affinity = {
        "graph": "precomputed",
        "full": Affinity(None, scale=2.0),
        "approximate": Affinity(ApproximateNeighbors(8)),
    }.get(kind)
    data = Prepared(Affinity().fit_transform(X) if kind == "graph" else X, affinity)
    NCut(3, random_state=0).fit(data)
    solver = "exact" if kind == "full" else "lowrank"
    for Method, named in ((E2CP, {"solver": solver}), (SpectralLearning, {})):
        Method(3, random_state=0, **named).fit(data, constraints=known)
    data.save(tmp_path / "data.npz")
    again = Prepared.load(tmp_path / "data.npz")
    assert "graph built" in repr(again)
    equal_state(data, again)
    with monkeypatch.context() as patch:
        patch.setattr(Affinity, "fit", None)  # neither the graph
        patch.setattr("linkwise.graph.prepared.spectral_embedding", None)  # nor the embedding
        patch.setattr("linkwise.methods._propagation.resolvent_columns", None)  # nor columns
        fitted = [
            NCut(3, random_state=0).fit(again),
            E2CP(3, solver=solver, random_state=0).fit(again, constraints=known),
        ]
    fresh = [
        NCut(3, random_state=0).fit(data),
        E2CP(3, solver=solver, random_state=0).fit(data, constraints=known),
    ]
    new = data.W[:5] if kind == "graph" else X[:5] + (0 if kind == "sparse" else 0.1)
    for model, other in zip(fitted, fresh, strict=True):
        assert_array_equal(model.labels_, other.labels_)
        assert_array_equal(model.predict(new), other.predict(new))


def test_a_file_before_the_graph_is_built(blobs, tmp_path):
    Prepared(blobs[0], Affinity(7)).save(tmp_path / "data.npz")
    again = Prepared.load(tmp_path / "data.npz")
    assert repr(again) == "Prepared(120 samples)"
    assert again.affinity.neighbors == 7
    assert again.affinity_ is None
    assert again.W.nnz == Affinity(7).fit_transform(blobs[0]).nnz


def test_a_file_needs_no_pickle(blobs, tmp_path):
    data = Prepared(blobs[0])
    NCut(3, random_state=0).fit(data)
    data.save(tmp_path / "data")  # the name is taken as it is
    with np.load(tmp_path / "data", allow_pickle=False) as stored:
        assert all(stored[name].dtype != object for name in stored.files)


def test_feature_names_survive_a_file(blobs, tmp_path):
    pandas = pytest.importorskip("pandas", reason="needs the extra 'frames'")
    frame = pandas.DataFrame(blobs[0], columns=list("abcd"))
    Prepared(frame).save(tmp_path / "data.npz")
    model = NCut(3, random_state=0).fit(Prepared.load(tmp_path / "data.npz"))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert_array_equal(model.predict(frame), model.labels_)


@pytest.mark.parametrize(
    "affinity",
    [
        counting_affinity()[0](),
        Affinity(metric=lambda a, b: abs(a - b).sum()),
        Affinity(random_state=np.random.RandomState(0)),
    ],
    ids=["own class", "function", "generator"],
)
def test_an_affinity_that_no_file_can_hold(affinity, blobs, tmp_path):
    with pytest.raises(ValueError, match='affinity="precomputed"'):
        Prepared(blobs[0], affinity).save(tmp_path / "data.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["text", "cut", "flipped", "foreign", "version", "shape"])
def test_a_damaged_or_foreign_file_is_one_error(damage, blobs, tmp_path):
    path = tmp_path / "data.npz"
    data = Prepared(blobs[0])
    NCut(3, random_state=0).fit(data)
    data.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    if damage == "text":
        path.write_text("a,b\n1,2\n")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-2_000])
    elif damage == "flipped":
        content = bytearray(path.read_bytes())
        content[2_000] ^= 255
        path.write_bytes(content)
    elif damage == "foreign":
        np.savez(path, X=blobs[0])
    elif damage == "version":
        facts = str(arrays["prepared"]).replace('"version": 1', '"version": 99')
        np.savez(path, **{**arrays, "prepared": np.array(facts)})
    else:
        np.savez(path, **{**arrays, "degrees": arrays["degrees"][:5]})
    with pytest.raises(ValueError, match=r"data\.npz was not written by Prepared\.save, or"):
        Prepared.load(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Prepared.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("name", ["W.data", "W.indices", "embedding.vectors", "degrees"])
def test_a_file_with_one_changed_number_is_refused(blobs, tmp_path, name):
    data = Prepared(blobs[0])
    data.embedding(3, np.random.RandomState(0))
    data.save(tmp_path / "data.npz")
    with np.load(tmp_path / "data.npz") as stored:
        arrays = dict(stored)
    arrays[name].flat[1] += 1
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(ValueError, match="checksum"):
        Prepared.load(tmp_path / "data.npz")


def test_what_is_attached_is_printed_with_its_size():
    class Kept:
        title = "results of a method"

        def __init__(self, data):
            self.data = data  # counted already
            self.parts = {"a": [np.zeros(100), (np.zeros(50),)], "name": "text"}
            self.twice = self.parts["a"][0]

    class Bare:
        pass

    data = Prepared(np.arange(12.0).reshape(-1, 1))
    data.attached[Kept] = Kept(data)
    data.attached[Bare] = Bare()
    lines = str(data).splitlines()
    kept = next(line for line in lines if line.startswith("results of a method"))
    assert kept.split()[-3:] == ["kept", "1,200", "bytes"]
    assert any(line.startswith("Bare") for line in lines)
    assert lines[-1].split()[-2:] == ["1,296", "bytes"]


def test_what_auto_keeps_has_a_name_and_a_size():
    data = Prepared(np.random.RandomState(0).normal(size=(60, 3)))
    Auto(2, random_state=0).fit(data)
    line = next(line for line in str(data).splitlines() if "candidates of Auto" in line)
    assert int(line.split()[-2].replace(",", "")) > 60 * 8
