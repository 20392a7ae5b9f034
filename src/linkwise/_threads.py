"""The owner of the number of threads of BLAS, which belongs to the process."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Iterator


def controller() -> ThreadpoolController:
    """Look for the libraries with threads of their own, which takes milliseconds."""
    return _controller(len(sys.modules))  # a new module may have loaded one


@lru_cache(maxsize=1)
def _controller(_: int) -> ThreadpoolController:
    return ThreadpoolController()


class _Owner:
    """Limits BLAS while a block wants it; the last block to end takes the limit away.

    Two threads that save and restore a limit crosswise, as `threadpool_limits` does, leave it
    behind for good.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_limited = 0
        self._limiter: Any = None
        self._n_blocks = 0
        self._before: list[tuple[Any, int]] = []

    def limit(self) -> None:
        with self._lock:
            self._n_limited += 1
            if self._n_limited == 1:
                self._limiter = controller().limit(limits=1, user_api="blas")

    def release(self) -> None:
        with self._lock:
            self._n_limited -= 1
            if not self._n_limited:
                self._limiter.restore_original_limits()

    def enter(self) -> None:
        with self._lock:
            self._n_blocks += 1
            if self._n_blocks == 1 and not self._n_limited:
                pools = controller().lib_controllers
                self._before = [(p, p.num_threads) for p in pools if p.user_api == "blas"]

    def leave(self) -> None:
        with self._lock:
            self._n_blocks -= 1
            if self._n_blocks or self._n_limited:
                return
            for pool, n_threads in self._before:
                # A one is what scikit-learn sets for a moment, in k-means and neighbour searches.
                if pool.num_threads == 1 != n_threads:
                    pool.set_num_threads(n_threads)
            self._before = []


_OWNER = _Owner()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread; so sums have one order, and many blocks no contest."""
    _OWNER.limit()
    try:
        with controller().limit(limits=1, user_api="openmp"):  # each thread has its own number
            yield
    finally:
        _OWNER.release()


@contextmanager
def kept_limits() -> Iterator[None]:
    """Leave the number of threads of BLAS as it was, whatever overlaps with this block."""
    _OWNER.enter()
    try:
        yield
    finally:
        _OWNER.leave()
