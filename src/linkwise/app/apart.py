"""Apart: the engine in a process of its own, so that answers share no interpreter with clustering.

The server imports nothing that clusters. It finds the first map and the provisional clusters by
itself, while the other process still imports. If that process ends, the next answer starts another.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any

import linkwise
from linkwise.app import layout, wire
from linkwise.app.first import provisional

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise.app.engine import Known, Publisher


def _threads() -> dict[str, str]:
    """Return settings that leave a core to the browser and the server."""
    n_threads = str(max((os.cpu_count() or 1) - 1, 1))
    return {f"{name}_NUM_THREADS": n_threads for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


class Process:
    """The other process: it is sent messages, and sends what to tell the publisher."""

    def __init__(self) -> None:
        self._lock, self._reading = Lock(), Lock()
        sources = str(Path(linkwise.__file__).resolve().parent.parent)  # the same as here
        paths = [sources, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "linkwise.app.worker"],  # no module of the data's folder
            process_group=0 if os.name == "posix" else None,  # Ctrl-C is for the server alone
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**_threads(), **os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def send(self, name: str, *values: Any) -> None:
        """Send a message; BrokenPipeError if the process has ended."""
        with self._lock:
            assert self._process.stdin is not None
            wire.send(self._process.stdin, name, *values)

    def receive(self) -> tuple[str, list[Any]]:
        """Wait for the next message; EOFError if the process has ended."""
        with self._reading:
            assert self._process.stdout is not None
            return wire.receive(self._process.stdout)

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
        self._changed = Condition()
        self._waiting: Known | None = None  # to be handed over
        self._stopped = self._has_map = False

    def start(self, known: Known, *, is_new: bool) -> None:
        """Begin to work; without an earlier clustering, provisional clusters come first."""
        Thread(target=self._speak, args=(known, is_new), daemon=True).start()

    def submit(self, known: Known) -> None:
        """Hand over what is known now, without waiting; what was not sent yet is dropped."""
        with self._changed:
            self._waiting = known
            self._changed.notify_all()

    def stop(self) -> None:
        """End the process."""
        with self._changed:
            self._stopped = True
            process, self._process = self._process, None
            self._changed.notify_all()
        if process is not None:
            process.end()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more will come."""
        return self._stopped

    # One thread speaks: a pipe is full until the other process has read ------------------------

    def _speak(self, known: Known, is_new: bool) -> None:  # noqa: FBT001  (of a thread)
        """Find what needs no library here, then let the other process do the rest."""
        self._begin(known, is_new=self._first(known, is_new=is_new))
        while (newest := self._next()) is not None:
            process = self._process
            if process is None:  # it has ended
                self._begin(newest, is_new=False)
            else:
                with suppress(OSError, ValueError):  # who listens tells that it has ended
                    process.send("submit", newest)

    def _first(self, known: Known, *, is_new: bool) -> bool:
        """Make the first map and clusters; return whether clusters are still missing."""
        if not layout.has_columns(self.data):
            return is_new
        self._has_map = self._guarded(
            lambda: self._publisher.placed(layout.principal_axes(self.data), "axes")
        )
        if not is_new or self._by_size:
            return is_new
        return not self._guarded(lambda: self._publisher.found(provisional(self.data, known)))

    def _next(self) -> Known | None:
        """Wait for something to hand over; None if there never will be."""
        with self._changed:
            while self._waiting is None and not self._stopped:
                self._changed.wait()
            known, self._waiting = self._waiting, None
            return None if self._stopped else known

    def _begin(self, known: Known, *, is_new: bool) -> None:
        """Hand over the samples, to another process if the one before has ended, and listen."""
        with self._changed:
            if self._stopped:
                return
            process = self._process = self._process or Process()
        Thread(target=self._listen, args=(process,), daemon=True).start()
        settings = {
            "is_graph": self.data.is_graph,
            "by_size": self._by_size,
            "is_new": is_new,
            "has_map": self._has_map,
        }
        with suppress(OSError, ValueError):  # who listens tells that it has ended
            process.send("begin", self.data.X, known, settings)

    # Another one listens -----------------------------------------------------------------------

    def _listen(self, process: Process) -> None:
        """Tell the publisher everything until the process ends."""
        with suppress(Exception):  # whatever it is, nothing more can be read
            while not self._stopped:
                name, values = process.receive()
                self._guarded(partial(getattr(self._publisher, name), *values))
        with self._changed:
            if self._stopped:
                return
            self._process = None
        process.end()
        code = process.ended()
        self._publisher.working("")
        self._publisher.failed(
            f"the process that finds them has ended ({code}); the next answer starts another"
        )

    def _guarded(self, step: Callable[[], Any]) -> bool:
        """Run a step; an error is told, and the page goes on with what there is."""
        try:
            step()
        except Exception as error:
            traceback.print_exc()
            self._publisher.failed(f"{type(error).__name__}: {error}")
            return False
        return True
