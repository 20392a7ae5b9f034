"""One fit: its labels scored, its seconds taken, its failure recorded."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from linkwise._quiet import recorded
from linkwise._threads import one_thread
from linkwise.constraints import Constraints
from linkwise.evaluate.estimators import as_labels
from linkwise.exceptions import ConflictError, TooLargeError
from linkwise.metrics import scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise.evaluate.data import Problem
    from linkwise.evaluate.estimators import NamedEstimator
    from linkwise.evaluate.store import Row

# Every name that `scores` gives when it is given everything.
METRICS = tuple(scores([0, 1], [0, 1], W=np.eye(2), constraints=Constraints(2)))
CUTS = frozenset(name for name in METRICS if name.removeprefix("free_") in {"cut", "ncut", "rcut"})
ANSWERED = frozenset({"ok", "slow"})  # statuses of rows that have scores
LONGEST_MESSAGE = 500


class Task(NamedTuple):
    """A fit to be done."""

    data: str
    estimator: NamedEstimator
    amount: int
    draw: int
    constraints: Constraints
    seed: int


def measure(
    task: Task, dataset: Problem, metrics: tuple[str, ...], *, time_limit: float | None
) -> Row:
    """Fit, score and clock; an exception becomes a status."""
    found: dict[str, Any] = {}
    with pinned(), recorded() as caught:
        clock = _Clock()
        try:
            call = task.estimator.fit_call(dataset, task.constraints, task.seed)
            clock = _Clock()
            result = call()
            seconds = clock.read()
            labels = as_labels(result, dataset.y.size)
            W = dataset.W.W if CUTS & set(metrics) else None
            found = scores(dataset.y, labels, W=W, constraints=task.constraints)
            status, message = "ok", ""
        except (Exception, SystemExit) as error:  # it is recorded, and the run goes on
            seconds = clock.read()
            status, message = _status(error)
    if status == "ok" and time_limit is not None and seconds[0] > time_limit:
        status, message = "slow", f"It took {seconds[0]:.3g} s; the limit is {time_limit:g} s."
    kinds = sorted({warning.category.__name__ for warning in caught})
    return _row(
        task,
        dataset,
        {name: found.get(name, np.nan) for name in metrics},
        status=status,
        message=message,
        seconds=seconds,
        kinds=kinds,
    )


def skipped(task: Task, dataset: Problem, metrics: tuple[str, ...], *, message: str) -> Row:
    """Return the row of a fit that is not done."""
    nothing = (np.nan, np.nan)
    missing = dict.fromkeys(metrics, np.nan)
    return _row(task, dataset, missing, status="skipped", message=message, seconds=nothing)


def _row(
    task: Task,
    dataset: Problem,
    found: dict[str, Any],
    *,
    status: str,
    message: str,
    seconds: tuple[float, float],
    kinds: list[str] | None = None,
) -> Row:
    known = task.constraints
    return {
        "data": task.data,
        "method": task.estimator.name,
        "amount": task.amount,
        "draw": task.draw,
        "status": status,
        "message": message,
        "warnings": ", ".join(kinds or []),
        "n_samples": int(dataset.y.size),
        "n_must_link": len(known.must_link),
        "n_cannot_link": len(known.cannot_link),
        "n_labelled": 0 if known.labels is None else int((known.labels >= 0).sum()),
        **{name: _plain(value) for name, value in found.items()},
        "seconds": seconds[0],
        "cpu_seconds": seconds[1],
    }


def _plain(value: Any) -> float:
    """Return a number of Python, as the file gives it back."""
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def _status(error: BaseException) -> tuple[str, str]:
    status = "failed"
    if isinstance(error, ConflictError):
        status = "infeasible"
    elif isinstance(error, (TooLargeError, MemoryError)):
        status = "too large"
    message = f"{type(error).__name__}: {error}"
    return status, message[:LONGEST_MESSAGE]


class _Clock:
    """Wall and CPU seconds since it was made, those of finished child processes included."""

    def __init__(self) -> None:
        self._start = self._now()

    def read(self) -> tuple[float, float]:
        wall, cpu = self._now()
        return wall - self._start[0], cpu - self._start[1]

    @staticmethod
    def _now() -> tuple[float, float]:
        children = os.times()
        cpu = time.process_time() + children.children_user + children.children_system
        return time.perf_counter(), cpu


@contextmanager
def pinned() -> Iterator[None]:
    """Compute on one thread: parallel runs do not compete, and sums have one order."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with one_thread():
            yield
    finally:
        numba.set_num_threads(threads)
