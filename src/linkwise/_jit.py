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
from time import monotonic
from typing import TYPE_CHECKING, Any

from linkwise._threads import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCK = RLock()

# Stored entries of a graph up to which numpy and scipy take milliseconds where a kernel takes a
# fraction of one: there a kernel is not worth the second that compiling it takes.
SMALL_GRAPH = 200_000


# Seconds of compiling after which a line says so: a kernel or two are not worth one.
NOTE_AFTER = 0.5


def _has_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class CompilingNote:
    """Says once on the error stream that kernels are being compiled: a listener of numba's."""

    def __init__(self) -> None:
        self.is_wanted: bool | None = None  # None: if somebody is looking
        self.is_watched: Callable[[], bool] = _has_terminal
        self.tell: Callable[[str], None] | None = None  # None: to the error stream
        self._is_registered = self._is_written = self._is_open = False
        self._depth, self._began, self._spent = 0, 0.0, 0.0

    def register(self) -> None:
        """Listen to what numba compiles; it tells nothing about kernels that are in its cache."""
        with _LOCK:
            if self._is_registered:
                return
            self._is_registered = True
            events = import_module("numba.core.event")
            listen = {"on_start": lambda _, e: self._begin(e), "on_end": lambda _, __: self._end()}
            listener = type("Listener", (events.Listener,), listen)
            events.register("numba:compile", listener())

    def done(self) -> float | None:
        """Return the seconds spent on compiling if the error stream was told of it, only once."""
        if not self._is_open:
            return None
        self._is_open = False
        return self._spent

    def _end(self) -> None:
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self._spent += monotonic() - self._began

    def _begin(self, event: Any) -> None:
        if not self._depth and not _is_own(event):
            return  # of the user, or of another library
        self._depth += 1
        now = monotonic()
        if self._depth == 1:
            self._began = now
        if not self._is_written and self._spent + now - self._began > NOTE_AFTER:
            self._is_written = True
            words = "compiling once, 10 to 40 s"
            if self.tell is not None:
                self.tell(words)
                return
            wanted = self.is_wanted
            if wanted is None:
                wanted = self.is_watched()
            if wanted:
                self._is_open = True
                print(f"linkwise: {words}", file=sys.stderr, flush=True)


def _is_own(event: Any) -> bool:
    function = event.data["dispatcher"].py_func
    return str(function.__module__).startswith("linkwise.")


compiling_note = CompilingNote()


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
                    self._dispatcher = _compiled(self.__wrapped__, self._options)
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
        with uninterrupted():
            module = import_module(self._name)
        return getattr(module, name)


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return a function to be compiled at its first call; as a decorator, with numba's options.

    A kernel is compiled for itself and once more in each kernel that calls it. One that is called
    in a single place is therefore given ``inline="always"``: an eighth to a third less to wait for.
    """
    if function is None:
        return lambda function: njit(function, **options)
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":  # as numba does: nothing to compile
        return function
    if "numba" in sys.modules:
        return _compiled(function, options)
    return Kernel(function, options)


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    with uninterrupted():
        compiling_note.register()
        dispatcher = import_module("numba").njit(**options)(function)
    compile_ = dispatcher.compile

    def compile_uninterrupted(signature: Any) -> Any:
        with uninterrupted():
            return compile_(signature)

    dispatcher.compile = compile_uninterrupted
    return dispatcher
