"""The process that clusters for the page; `apart` starts it.

Messages come by the standard input and leave by the standard output (`wire`). It ends
with the server, however that ends: the standard input is closed then.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO

from linkwise._jit import compiling_note
from linkwise.app import wire

if TYPE_CHECKING:
    from linkwise._types import Int32s, Singles
    from linkwise.app.engine import Engine, Found, Known


class Sender:
    """A publisher whose news go to the server."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._lock = stream, Lock()
        self._doing = ""

    def _send(self, name: str, *values: Any) -> None:
        with self._lock:
            wire.send(self._stream, name, *values)

    def found(self, result: Found) -> None:
        """Send a clustering."""
        self._send("found", result)

    def placed(self, points: Singles, name: str) -> None:
        """Send a map."""
        self._send("placed", points, name)

    def linked(self, neighbors: Int32s) -> None:
        """Send the nearest samples."""
        self._send("linked", neighbors)

    def failed(self, reason: str) -> None:
        """Send an error in words."""
        self._send("failed", reason)

    def working(self, what: str) -> None:
        """Send what is being done."""
        self._doing = what
        self._send("working", what)

    def compiling(self, words: str) -> None:
        """Send that what is being done takes longer, this once."""
        print(f"linkwise: {words}", file=sys.stderr, flush=True)
        self._send("working", f"{self._doing} ({words})" if self._doing else words)


def main() -> None:
    """Import, then do what the server asks for until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of Ctrl-C, the server decides
    requests, sender = _streams()
    compiling_note.tell = sender.compiling
    _import()  # before there are data
    engine: Engine | None = None
    while True:
        try:
            name, values = wire.receive(requests)
        except (EOFError, OSError, ValueError):
            os._exit(0)  # whatever the threads are doing
        if name == "begin":
            engine = _begun(sender, *values)
        elif engine is not None:
            engine.submit(*values)


def _streams() -> tuple[BinaryIO, Sender]:
    """Take the standard streams; what anybody prints goes to the error stream from here on."""
    requests = os.fdopen(os.dup(0), "rb")
    news = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123  (a number is needed)
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return requests, Sender(news)


def _import() -> None:
    """Import what is needed later, all in one thread: numba cannot be imported by two at once.

    scikit-learn imports pandas if it is there, which takes 0.3 s and 67 MB. Samples are plain
    numbers here, so it is kept out until the rest is imported.
    """
    modules: dict[str, Any] = sys.modules
    is_out = modules.setdefault("pandas", None) is None
    try:
        for name in ("numba", "linkwise.app.solvers", "linkwise.auto"):
            import_module(name)
    finally:
        if is_out:
            del modules["pandas"]


def _begun(sender: Sender, X: Any, known: Known, settings: dict[str, bool]) -> Engine:
    """Start an engine."""
    from linkwise.app.engine import Engine  # noqa: PLC0415
    from linkwise.app.first import provisional  # noqa: PLC0415
    from linkwise.app.solvers import solver_for  # noqa: PLC0415
    from linkwise.graph import Prepared  # noqa: PLC0415

    data = Prepared(X, "precomputed" if settings["is_graph"] else None)
    by_size = settings["by_size"]
    first = None if by_size else provisional
    solver = solver_for(data, by_size=by_size)
    engine = Engine(data, sender, solver, first, has_map=settings["has_map"])
    engine.start(known, is_new=settings["is_new"])
    return engine
