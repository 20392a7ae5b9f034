"""Rooms for tests of the annotation page: small data, and a solver that answers at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import make_blobs

from linkwise.app.engine import Found, Question
from linkwise.app.first import close_calls
from linkwise.app.items import Items
from linkwise.app.project import Project
from linkwise.app.room import Room
from linkwise.graph import Prepared

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "0123456789abcdef"
N = 60


class StubSolver:
    """Always the same clusters; proposes close calls. `broken` makes it raise."""

    def __init__(self, labels, n_clusters, *, shift=False):
        self.labels, self.k, self.shift = labels, n_clusters, shift
        self.broken = False
        self.n_fits = 0
        self.is_behind = self.is_quick = False
        self.patience = None
        self.known = None

    def tell(self, known):
        self.is_behind = self.known is not None and known.upto != self.known.upto
        self.known = known

    def refit(self):
        self.n_fits += 1
        self.is_behind = False
        if self.broken:
            raise RuntimeError("the solver is broken on purpose")

    def shown(self):
        """Nothing: its questions come at once."""

    def found(self, known):
        labels = self.labels
        if self.shift:  # the same clusters under other numbers, at every fit
            labels = (labels + self.n_fits) % self.k
        sure = np.full((labels.size, self.k), 0.2 / self.k)
        sure[np.arange(labels.size), labels] += 0.8
        # Always among the first, so that it shows if it is asked when it should not be
        questions = [Question((0, 2), "test"), *close_calls(sure, labels)]
        rng = np.random.RandomState(0)
        pairs = np.sort(rng.randint(labels.size, size=(200, 2)), axis=1)
        questions += [Question((int(a), int(b)), "test") for a, b in pairs if a != b]
        return Found(known, labels, sure, questions, 0.05, (), "stub", is_full=True)


def blobs(n=N, k=3):
    X, y = make_blobs(n, centers=k, n_features=4, cluster_std=0.6, random_state=1)
    return X, y


def make_room(folder: Path, *, n=N, k=3, items=None, solver=None, names=None, **settings) -> Room:
    X, y = blobs(n, k)
    names = [f"item {i}" for i in range(n)] if names is None else names
    if items is None:
        columns = {"name": [f"Name {i}" for i in range(n)], "x": X[:, 0].tolist()}
        items = Items(names, "row", columns, X, ["x", "y", "z", "t"])
    project = Project(folder / "test.linkwise", names, "data")
    solver = StubSolver(y, k) if solver is None else solver
    return Room(project, items, Prepared(X), n_clusters=k, solver=solver, **settings)


class Running:
    """A real server on a free port, in a thread; use it in a `with` statement."""

    def __init__(self, room: Room):
        from linkwise.app.listen import Listening, bind

        self.room, self._sock = room, bind("127.0.0.1", 0)
        self._server = Listening(room, self._sock, token=TOKEN)
        self.port = self._server.port
        self._thread = threading.Thread(target=self._server.listen, daemon=True)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(timeout=60)
        self._sock.close()
        assert not self._thread.is_alive(), "the server did not stop"
