"""linkwise.distributed: hostile chunks and parameters, and what a cluster leaves behind."""

from __future__ import annotations

import copy
import os
import pickle
import threading

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="the extra `dask` is not installed")
pytest.importorskip("distributed", reason="the extra `dask` is not installed")

import dask.array as da  # noqa: E402

from linkwise import Affinity  # noqa: E402
from linkwise.distributed import Prepared, chunks, cluster  # noqa: E402
from linkwise.distributed.chunks import ChunkError, looked_at  # noqa: E402

GOOD = np.random.RandomState(0).normal(size=(10, 2))


class Seen:
    """A cluster that looks at chunks in this process."""

    dask = dask

    def compute(self, tasks):
        return list(dask.compute(*tasks, scheduler="synchronous"))

    def fetch(self, futures):
        return futures


def changed(value, *, dtype=object):
    X = GOOD.astype(dtype)
    X[7, 1] = value
    return X


def of(*blocks, shape=(10, 2)):
    lazy = [da.from_delayed(dask.delayed(block), shape, dtype=float) for block in blocks]
    return da.concatenate(lazy)


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (changed(10**400), r"an integer too large \(column 1\) in row 7 of chunk 1.* row 17 of X"),
        (changed("x" * 120_000), r"'x{99}\.\.\. \(120,002 characters\)"),
        (changed("NaT", dtype="M8[s]"), r"dates or durations \(datetime64\[s\]\)"),
        (GOOD.astype("m8[s]"), "dates or durations"),
        (np.zeros((10, 2), dtype=[("a", float)]), "records .*columns of one type"),
        (np.ma.masked_equal(changed(99.0, dtype=float), 99.0), "masked values in row 7 of chunk 1"),
        (changed(np.longdouble("1e400"), dtype=np.longdouble), r"inf \(column 1\) in row 7"),
        (GOOD[:, 0], "type ndarray, which has no rows and columns"),
        (GOOD.tolist(), "type list, which has no rows"),
        (None, "type NoneType, which has no rows"),
        (GOOD[:4], "4 rows in chunk 1 .* where it says 10"),
    ],
)
def test_a_chunk_of_something_else_is_named(chunk, message):
    """Each was another exception, or silently other numbers: the values below a mask, -9e18."""
    with pytest.raises(ChunkError, match=message) as caught:
        chunks.Chunks(of(GOOD, chunk), Seen())
    assert caught.value.chunk == 1
    again = pickle.loads(pickle.dumps(caught.value))  # as it travels between processes
    assert (str(again), again.chunk, again.column) == (
        str(caught.value),
        caught.value.chunk,
        caught.value.column,
    )
    assert len(str(again)) < 400


def test_numbers_of_any_type_are_taken():
    wanted = looked_at(GOOD)
    for same in (GOOD.astype(object), np.ma.array(GOOD), GOOD.astype("U30")):
        found = looked_at(same)
        assert found.problem is None
        assert found.low.tolist() == wanted.low.tolist()
        assert found.high.tolist() == wanted.high.tolist()


@pytest.mark.filterwarnings("error")
def test_differences_beyond_all_numbers_are_refused():
    X = GOOD / np.abs(GOOD).max() * 1.7e308
    with pytest.raises(ValueError, match=r"column 1: differences .* divide X by 1e10"):
        chunks.Chunks(of(X), Seen())
    assert chunks.Chunks(of(X / 1e10), Seen()).n_samples == 10


def test_samples_need_features():
    with pytest.raises(ValueError, match="0 features"):
        chunks.Chunks(of(GOOD[:, :0], shape=(10, 0)), Seen())


@pytest.mark.parametrize(
    "wrong",
    [
        {"neighbors": 0},
        {"neighbors": -1},
        {"scale": 0},
        {"scale": -1.0},
        {"scale": np.nan},
        {"scale_neighbor": 0},
        {"scale_neighbor": 1.5},
        {"symmetrize": "no"},
        {"connect": "no"},
        {"random_state": "no"},
    ],
)
def test_parameters_of_the_graph_are_checked_before_anything_starts(wrong, monkeypatch):
    """They were not checked at all: a scale of -1 gave a graph, and an answer."""
    monkeypatch.setattr("linkwise.distributed.prepared.Cluster", None)
    with pytest.raises(ValueError, match=f"The {next(iter(wrong))!r} parameter of Affinity"):
        Prepared(of(GOOD), Affinity(**wrong))


def test_threads_leave_the_configuration_of_dask_as_it_was():
    before = copy.deepcopy(dask.config.config)
    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def first():
        with cluster._unlimited(dask):
            first_in.set()
            assert second_in.wait(10)
        first_out.set()

    thread = threading.Thread(target=first)
    thread.start()
    assert first_in.wait(10)
    with cluster._unlimited(dask):
        second_in.set()
        assert first_out.wait(10)
        name, value = next(iter(cluster.UNLIMITED.items()))
        assert dask.config.get(name) == value  # not taken away by the other one
    thread.join()
    assert dask.config.config == before


class StartedError(Exception):
    """Instead of a client."""


@pytest.fixture
def client_of_dask(monkeypatch):
    """What Dask does to the environment when it starts processes."""
    import distributed

    def start(**_):
        os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "6640", "__DASK_PARENT_PID": "1"}
        raise StartedError

    monkeypatch.setattr(distributed, "Client", start)


@pytest.mark.usefixtures("client_of_dask")
def test_a_local_cluster_leaves_the_environment_as_it_was(monkeypatch):
    """Later processes, of joblib for example, would have one thread and one hash seed."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    before = dict(os.environ)
    with pytest.raises(StartedError):
        cluster.local_client(1)
    assert dict(os.environ) == before


def test_a_cluster_that_was_started_ends_if_it_cannot_be_asked(monkeypatch):
    class Client:
        closed = 0
        cluster = None

        @property
        def scheduler(self):
            raise KeyboardInterrupt

        def close(self):
            type(self).closed += 1

    def nobody():
        raise ValueError

    import distributed

    monkeypatch.setattr(cluster, "local_client", lambda **_: Client())
    monkeypatch.setattr(distributed, "get_client", nobody)
    with pytest.raises(KeyboardInterrupt):
        cluster.Cluster()
    assert Client.closed == 1
