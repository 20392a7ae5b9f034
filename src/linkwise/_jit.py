"""numba's `njit`, with numba imported when the first kernel runs.

Importing numba takes 0.3 s, a seventh of what importing an estimator takes in all; whoever reads a
table, or an error message, runs no kernel.
"""

from __future__ import annotations

import os
import sys
from functools import update_wrapper
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCK = RLock()

# Stored entries of a graph up to which numpy and scipy take milliseconds where a kernel takes a
# fraction of one: there a kernel is not worth the second that compiling it takes.
SMALL_GRAPH = 200_000


class Kernel:
    """A function that numba compiles: it stands for the dispatcher that it makes when needed."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._options = options
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """What numba made of the function."""
        if self._dispatcher is None:
            with _LOCK:
                if self._dispatcher is None:  # no other thread was faster
                    compiled = import_module("numba").njit(**self._options)
                    self._dispatcher = compiled(self.__wrapped__)
        return self._dispatcher

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher(*args)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks of a name in another kernel."""
        return self.dispatcher._numba_type_

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling look for these before there is a function
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


class late_module:  # noqa: N801  (used as a function)
    """A module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return a function to be compiled at its first call; as a decorator, with numba's options."""
    if function is None:
        return lambda function: njit(function, **options)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":  # as numba does: nothing to compile
        return function
    if "numba" in sys.modules:
        return import_module("numba").njit(**options)(function)
    return Kernel(function, options)
