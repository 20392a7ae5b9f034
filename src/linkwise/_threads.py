"""The owner of the number of threads of BLAS and of signal handlers, which are the process's."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def uninterrupted(*signals: int) -> Iterator[None]:
    """Put Ctrl-C off: a module half imported, or a kernel half compiled, would break later calls.

    Other `signals` can be put off as well.

    Other threads are never interrupted. A handler that is not Python's own is asked as usual.
    """
    handlers: dict[int, Any] = {}
    for number in (signal.SIGINT, *signals):
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
    if threading.current_thread() is not threading.main_thread() or not handlers:
        yield
        return
    came: list[tuple[int, Any]] = []
    for number in handlers:
        signal.signal(number, lambda *signal_and_frame: came.append(signal_and_frame))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if came:
        number, frame = came[-1]
        handlers[number](number, frame)


_lock = threading.Lock()
_seen: dict[int, ThreadpoolController] = {}  # by the number of modules: a new one may load another


def controller() -> ThreadpoolController:
    """Look for the libraries with threads of their own, which takes milliseconds."""
    n_modules = len(sys.modules)
    known = _seen.get(n_modules)
    if known is None:
        # It calls Python from C, where the exception of a signal would be swallowed.
        with uninterrupted(signal.SIGTERM):
            known = ThreadpoolController()
        _seen.clear()
        _seen[n_modules] = known
    return known


class _Limit:
    """The limit of BLAS, which the first block that wants it sets and the last one takes away.

    Two threads that save and restore a limit crosswise, as `threadpool_limits` does, leave it
    behind for good.
    """

    n_blocks = 0
    limiter: Any = None


class _Kept:
    """The numbers of threads before the first block that keeps them."""

    n_blocks = 0
    before: tuple[tuple[Any, int], ...] = ()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread; so sums have one order, and many blocks no contest."""
    with _lock:
        _Limit.n_blocks += 1
        if _Limit.n_blocks == 1:
            _Limit.limiter = controller().limit(limits=1, user_api="blas")
    try:
        with controller().limit(limits=1, user_api="openmp"):  # each thread has its own number
            yield
    finally:
        with _lock:
            _Limit.n_blocks -= 1
            if not _Limit.n_blocks:
                _Limit.limiter.restore_original_limits()


@contextmanager
def kept_limits() -> Iterator[None]:
    """Leave the number of threads of BLAS as it was, whatever overlaps with this block."""
    with _lock:
        _Kept.n_blocks += 1
        if _Kept.n_blocks == 1 and not _Limit.n_blocks:
            pools = controller().select(user_api="blas").lib_controllers
            _Kept.before = tuple(zip(pools, map(attrgetter("num_threads"), pools), strict=True))
    try:
        yield
    finally:
        with _lock:
            _Kept.n_blocks -= 1
            if not (_Kept.n_blocks or _Limit.n_blocks):
                for pool, n_threads in _Kept.before:
                    # A one is what scikit-learn sets for a moment, in k-means and searches.
                    if pool.num_threads == 1 != n_threads:
                        pool.set_num_threads(n_threads)
                _Kept.before = ()
