"""Cluster: the only door to Dask. Work is submitted, answers are fetched, failures get words."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from linkwise._optional import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Dask advises to scatter large arguments. What is scattered is lost with its worker; the arguments
# of a task are not.
UNLIMITED = {"distributed.admin.large-graph-warning-threshold": "1 TB"}
# Variables that Dask gives to the processes it starts, and leaves behind in this one.
FOR_WORKERS = ("PYTHONHASHSEED", "__DASK_PARENT_PID")
# The scheduler gives waiting tasks to idle workers, data and all, even if they have a preferred
# worker. It leaves those with this name where they are: it takes them for short ones.
UNMOVED = "split-stage"


class Cluster:
    """Workers of Dask.

    Parameters
    ----------
    client : distributed.Client or None
        The client to use: by default the current one and, if there is none, one with a local
        cluster of processes, which `close` ends.
    """

    def __init__(self, client: Any = None) -> None:
        self.distributed = require("distributed", extra="dask", purpose="linkwise.distributed")
        self.dask = require("dask", extra="dask", purpose="linkwise.distributed")
        require("dask.array", extra="dask", purpose="linkwise.distributed")
        self._owned = None
        self._variables: dict[str, str | None] = {}
        if client is None:
            try:
                client = self.distributed.get_client()
            except ValueError:  # there is none
                self._variables = _variables()
                # Not the default of the process: it ends with this object, others must not use it.
                client = self._owned = local_client(set_as_default=False)
        self.client = client
        try:
            self._look_at(client)
        except BaseException:  # nobody else could end what was started here
            self.close()
            raise

    def _look_at(self, client: Any) -> None:
        self.address = client.scheduler.address
        self._workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        if not self._workers:
            raise RuntimeError(
                f"The Dask cluster at {self.address} has no workers. Start some, for example by "
                f"`dask worker {self.address}`."
            )

    @property
    def n_workers(self) -> int:
        """Number of workers at the beginning."""
        return len(self._workers)

    def close(self) -> None:
        """End the local cluster, if this object has started one."""
        if self._owned is not None:
            self._owned.close()
            if self._owned.cluster is not None:
                self._owned.cluster.close()
            self._owned = None
            _set_variables(self._variables)  # a worker may have been started again in between

    def submit(
        self, function: Callable[..., Any], *args: Any, at: float | None = None, **settings: Any
    ) -> Any:
        """Return the future of a call; `at`, in [0, 1), is a place among the workers."""
        if at is not None:
            settings |= {"key": _unmoved(function), **self._preferred(at)}
        self._check_open()
        with _unlimited(self.dask):
            return self.client.submit(function, *args, pure=False, **settings)

    def _preferred(self, at: float) -> dict[str, Any]:
        """Return where a task runs: on the worker at a place, or on others when it is gone."""
        address = self._workers[int(at * len(self._workers))]
        return {"workers": [address], "allow_other_workers": True}

    def lazy(self, function: Callable[..., Any], *args: Any, at: float) -> Any:
        """Return a call that is sent to the workers with those that depend on it."""
        with self.dask.annotate(**self._preferred(at)):
            task = self.dask.delayed(function, pure=False, traverse=False)
            return task(*args, dask_key_name=_unmoved(function))

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the futures of lazy tasks."""
        self._check_open()
        with _unlimited(self.dask):
            futures: list[Any] = self.client.compute(list(tasks))
        return futures

    def _check_open(self) -> None:
        if self.client.status in {"closed", "closing"}:
            raise RuntimeError(
                f"The Dask client of the cluster at {self.address} is closed, and what was "
                "prepared there is gone. Prepare the data again, with an open client."
            )

    def fetch(self, futures: Sequence[Any]) -> list[Any]:
        """Return the answers.

        Raises
        ------
        RuntimeError
            If the scheduler is gone, or workers die again and again.
        """
        try:
            answers: list[Any] = self.client.gather(list(futures))
        except self.distributed.scheduler.KilledWorker as error:
            raise RuntimeError(
                f"Workers of the Dask cluster at {self.address} died several times in the same "
                f"step ({_step(error.task)}). Mostly they ran out of memory: give workers more, "
                "use more of them, or smaller chunks."
            ) from error
        except (self.distributed.client.FutureCancelledError, OSError, TimeoutError) as error:
            if isinstance(error, OSError) and self.client.status == "running":
                raise  # of a task, such as a file that is not there
            raise RuntimeError(
                f"The Dask scheduler at {self.address} is gone, and its results with it. Start the "
                "cluster again, and the fit from its beginning."
            ) from error
        return answers


def _step(key: Any) -> str:
    """Return the name of a task for a message."""
    return str(key[1] if isinstance(key, tuple) and key[0] == UNMOVED else key)


def _unmoved(function: Callable[..., Any]) -> tuple[str, str, str]:
    """Return the key of a task that the scheduler does not move to an idle worker."""
    return UNMOVED, getattr(function, "__name__", type(function).__name__), uuid4().hex


class _Blocks:
    """The blocks that send work at the moment, in all threads, and the setting they share."""

    lock = threading.Lock()
    n = 0
    setting: Any = None


@contextmanager
def _unlimited(dask: Any) -> Iterator[None]:
    """Let Dask take large arguments without advice.

    Its configuration belongs to the process: the first block sets it and the last one takes it
    back. Two threads that did so crosswise would leave it behind for good.
    """
    with _Blocks.lock:
        _Blocks.n += 1
        if _Blocks.n == 1:
            _Blocks.setting = dask.config.set(UNLIMITED)
    try:
        yield
    finally:
        with _Blocks.lock:
            _Blocks.n -= 1
            if not _Blocks.n:
                _Blocks.setting.__exit__(None, None, None)
                _Blocks.setting = None


def _variables() -> dict[str, str | None]:
    """Return the variables of this process that Dask sets for its workers."""
    dask = require("dask", extra="dask", purpose="linkwise.distributed")
    names = {*FOR_WORKERS, *dask.config.get("distributed.nanny.pre-spawn-environ", {})}
    return {name: os.environ.get(name) for name in names}


def _set_variables(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def local_client(n_workers: int | None = None, *, set_as_default: bool = True) -> Any:
    """Start a cluster of processes on this machine, one thread each; return its client."""
    distributed = require("distributed", extra="dask", purpose="linkwise.distributed")
    before = _variables()
    try:
        return distributed.Client(
            n_workers=n_workers,
            set_as_default=set_as_default,
            threads_per_worker=1,
            processes=True,
            # A worker that takes its time to end is no news, and errors of tasks are raised here.
            silence_logs=logging.CRITICAL,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any free port: there may be other clusters
        )
    finally:
        _set_variables(before)


def identity(value: Any) -> Any:
    """Return what is given: a value that lives on a worker."""
    return value


def item(values: Any, number: int) -> Any:
    """Return one of several results."""
    return values[number]
