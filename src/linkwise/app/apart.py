"""Apart: the engine in a process of its own, so that answers share no interpreter with clustering.

The server imports nothing that clusters. It finds the first map and the provisional clusters by
itself, while the other process still imports. If that process ends, the next answer starts another.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import linkwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise.app.engine import Known, Publisher


class Process:
    """The other process: it is sent messages, and sends what to tell the publisher."""

    def __init__(self) -> None:
        self._lock, self._reading = Lock(), Lock()
        sources = str(Path(linkwise.__file__).resolve().parent.parent)  # the same as here
        paths = [sources, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "linkwise.app.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def send(self, *message: Any) -> None:
        """Send a message; BrokenPipeError if the process has ended."""
        with self._lock:
            assert self._process.stdin is not None
            pickle.dump(message, self._process.stdin, protocol=5)
            self._process.stdin.flush()

    def receive(self) -> tuple[str, tuple[Any, ...]]:
        """Wait for the next message; EOFError if the process has ended."""
        with self._reading:
            assert self._process.stdout is not None
            name, values = pickle.load(self._process.stdout)
            return name, values

    def ended(self) -> int:
        """Return the code that the process ended with."""
        return self._process.wait()

    def end(self) -> None:
        """End the process at once: all that it knows is known here."""
        self._process.kill()
        self._process.wait()
        with self._lock, self._reading, suppress(OSError):  # what was not sent is of no use
            for stream in (self._process.stdout, self._process.stdin):
                assert stream is not None
                stream.close()


class Apart:
    """An engine in another process.

    Parameters
    ----------
    data : Samples or Prepared
        The samples.
    publisher : Publisher
        Who is told; called from threads of its own.
    process : Process
        The other process, which may have begun to import before there were data.
    by_size : bool, default=False
        Whether there are many small clusters, which are reviewed.
    """

    def __init__(
        self, data: Any, publisher: Publisher, process: Process, *, by_size: bool = False
    ) -> None:
        self.data, self._publisher, self._by_size = data, publisher, by_size
        self._process: Process | None = process
        self._lock = Lock()
        self._stopped = self._has_map = False

    def start(self, known: Known, *, is_new: bool) -> None:
        """Begin to work; without an earlier clustering, provisional clusters come first."""
        Thread(target=self._first, args=(known, is_new), daemon=True).start()

    def _first(self, known: Known, is_new: bool) -> None:  # noqa: FBT001  (of a thread)
        """Find what needs no library here, then let the other process do the rest."""
        from linkwise.app import layout  # noqa: PLC0415
        from linkwise.app.first import provisional  # noqa: PLC0415

        if layout.has_columns(self.data):
            placed = lambda: self._publisher.placed(layout.principal_axes(self.data), "axes")  # noqa: E731
            self._has_map = self._guarded(placed)
            if is_new and not self._by_size:
                is_new = not self._guarded(
                    lambda: self._publisher.found(provisional(self.data, known))
                )
        with self._lock:
            if self._process is not None and not self._stopped:
                self._begin(self._process, known, is_new=is_new)

    def _guarded(self, step: Callable[[], Any]) -> bool:
        try:
            step()
        except Exception as error:
            traceback.print_exc()
            self._publisher.failed(f"{type(error).__name__}: {error}")
            return False
        return True

    def _begin(self, process: Process, known: Known, *, is_new: bool) -> None:
        """Hand over the samples, and listen."""
        Thread(target=self._listen, args=(process,), daemon=True).start()
        settings = {
            "is_graph": self.data.is_graph,
            "by_size": self._by_size,
            "is_new": is_new,
            "has_map": self._has_map,
        }
        with suppress(OSError):  # who listens tells that it has ended
            process.send("begin", self.data.X, known, settings)

    def _listen(self, process: Process) -> None:
        """Tell the publisher everything until the process ends."""
        with suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
            while not self._stopped:
                name, values = process.receive()
                self._guarded(partial(getattr(self._publisher, name), *values))
        with self._lock:
            if self._stopped:
                return
            self._process = None
        code = process.ended()
        process.end()
        self._publisher.working("")
        self._publisher.failed(
            f"the process that finds them has ended ({code}); the next answer starts another"
        )

    def submit(self, known: Known) -> None:
        """Hand over what is known now; a process that has ended is started again."""
        with self._lock:
            if self._stopped:
                return
            if self._process is None:
                self._process = Process()
                self._begin(self._process, known, is_new=False)
                return
            with suppress(OSError):  # who listens tells that it has ended
                self._process.send("submit", known)

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            self._stopped = True
            process, self._process = self._process, None
        if process is not None:
            process.end()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more will come."""
        return self._stopped
