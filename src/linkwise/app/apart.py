"""Apart: the engine in a process of its own, so that answers share no interpreter with clustering.

The server imports nothing that clusters. It finds the first map and the provisional clusters by
itself, while the other process still imports. If that process ends, the next answer starts another;
before there are questions, nobody can answer, so another is started at once.
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
from linkwise.app.engine import Known
from linkwise.app.first import provisional

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise.app.engine import Publisher


NICE = 10  # the browser and the server go first
N_TRIES = 3  # processes that are started one after the other before there are questions
RUN = "import sys; sys.path[:] = sys.argv[1:]; from linkwise.app.worker import main; main()"


def _threads(limit: int | None) -> dict[str, str]:
    """Return settings that leave a core to the browser and the server, unless others are wanted."""
    n_cores = os.cpu_count() or 1
    n_threads = max(n_cores - 1, 1) if limit is None else min(limit, n_cores)
    names = [f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")]
    usual = dict.fromkeys(names, str(n_threads))
    return {**usual, **os.environ} if limit is None else {**os.environ, **usual}


def command(code: str = RUN) -> list[str]:
    """Return the command of a process that imports from where this one does, in the same order.

    It takes no module from the folder that it is in: that is the data's.
    """
    sources, here = str(Path(linkwise.__file__).resolve().parent.parent), Path.cwd()
    paths = [path for path in sys.path if path and not _is_folder(path, here)]
    if sources not in [os.path.realpath(path) for path in paths]:
        paths.append(sources)
    return [sys.executable, "-P", "-c", code, *paths]


def _is_folder(path: str, folder: Path) -> bool:
    try:
        return Path(path).samefile(folder)
    except OSError:  # an archive that is gone, for example
        return False


class Process:
    """The other process: it is sent messages, and sends what to tell the publisher.

    Parameters
    ----------
    threads : int, default=None
        Threads that it may use; by default all but one core.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self._lock, self._reading = Lock(), Lock()
        self._process = subprocess.Popen(
            command(),
            process_group=0 if os.name == "posix" else None,  # Ctrl-C is for the server alone
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_threads(threads),
        )
        if hasattr(os, "setpriority"):  # from its first import on
            with suppress(OSError):  # it has ended
                os.setpriority(os.PRIO_PROCESS, self._process.pid, NICE)

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
        self._threads = process.threads
        self._changed = Condition()
        self._known = Known()  # what was handed over last
        self._is_waiting = False  # it was not sent yet
        self._stopped = self._has_map = self._is_new = self._has_found = False
        self._n_begun = 0  # processes

    def start(self, known: Known, *, is_new: bool) -> None:
        """Begin to work; without an earlier clustering, provisional clusters come first."""
        self._known, self._is_new = known, is_new
        Thread(target=self._speak, args=(known,), daemon=True).start()

    def submit(self, known: Known) -> None:
        """Hand over what is known now, without waiting; what was not sent yet is dropped."""
        with self._changed:
            self._known, self._is_waiting = known, True
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

    def _speak(self, known: Known) -> None:
        """Find what needs no library here, then let the other process do the rest."""
        self._first(known)
        self._guarded(partial(self._hand_over, known))
        while (newest := self._next()) is not None:
            self._guarded(partial(self._hand_over, newest))

    def _hand_over(self, known: Known) -> None:
        """Send what is known to the process; if there is none, begin with one."""
        process = self._process
        if process is None or not self._n_begun:
            self._begin(known)
        else:
            with suppress(OSError, ValueError):  # who listens tells that it has ended
                process.send("submit", known)

    def _first(self, known: Known) -> None:
        """Make the first map and, if there are none, clusters."""
        if not layout.has_columns(self.data):
            return
        self._has_map = self._guarded(
            lambda: self._publisher.placed(layout.principal_axes(self.data), "axes")
        )
        if self._is_new and not self._by_size:
            self._guarded(lambda: self._told("found", provisional(self.data, known)))

    def _told(self, name: str, *values: Any) -> None:
        """Tell the publisher; clusters come with questions."""
        getattr(self._publisher, name)(*values)
        if name == "found":
            self._is_new, self._has_found = False, True

    def _next(self) -> Known | None:
        """Wait for something to hand over; None if there never will be."""
        with self._changed:
            while not self._is_waiting and not self._stopped:
                self._changed.wait()
            self._is_waiting = False
            return None if self._stopped else self._known

    def _begin(self, known: Known) -> None:
        """Hand over the samples, to another process if the one before has ended, and listen."""
        with self._changed:
            if self._stopped:
                return
            process = self._process = self._process or Process(self._threads)
            self._n_begun += 1
        Thread(target=self._listen, args=(process,), daemon=True).start()
        settings = {
            "is_graph": self.data.is_graph,
            "by_size": self._by_size,
            "is_new": self._is_new,
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
                self._guarded(partial(self._told, name, *values))
        with self._changed:
            if self._stopped:
                return
            self._process = None
        process.end()
        self._publisher.working("")
        self._publisher.failed(self._ended(process.ended()))

    def _ended(self, code: int) -> str:
        """Say that the process has ended; start another if nobody could."""
        ended = f"the process that finds them has ended ({code})"
        if self._has_found:
            return f"{ended}; the next answer starts another"
        if self._n_begun >= N_TRIES:
            return f"{ended} {N_TRIES} times. The terminal says why; start linkwise serve again"
        self.submit(self._known)
        return f"{ended}, and another is started"

    def _guarded(self, step: Callable[[], Any]) -> bool:
        """Run a step; an error is told, and the page goes on with what there is."""
        try:
            step()
        except Exception as error:
            traceback.print_exc()
            self._publisher.failed(f"{type(error).__name__}: {error}")
            return False
        return True
