"""How far a long call is: a bar on a terminal or in a notebook, from two seconds on.

The bar is drawn by tqdm, if that is installed. Elsewhere (pipes, files, tests) nothing is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from shutil import get_terminal_size
from threading import Event, RLock, Thread, get_ident
from time import monotonic
from typing import Any, NamedTuple, Self

from linkwise import _jit

DELAY = 2.0  # seconds for which nothing is shown
EVERY = 1.0  # seconds between looks at the clock, on a terminal
FORMAT = "{desc}: {percentage:3.0f}% |{bar:25}| {elapsed}{postfix}"

# Called with the share of the work that is done, None for "as before", and what was done last.
Report = Callable[[float | None, str], None]

_open: list[Progress] = []  # calls in progress, each inside the one before
_LOCK = RLock()


class _Step(NamedTuple):
    """What is being done, and the shares of the work at which it begins and ends."""

    first: float = 0.0
    last: float = 1.0
    what: str = ""


class Progress:
    """Shows how far a call is, while it lasts.

    Parameters
    ----------
    name : str
        What is being done.
    verbose : int or None, default=None
        None shows a bar on a terminal or in a notebook once the call has taken two seconds. 0 shows
        nothing. 1 prints a line for each step.
    callback : callable, default=None
        Called as ``callback(share, what)``, whatever is shown.

    Notes
    -----
    A call inside another one draws no bar of its own: it moves that of the outer call, from where
    it stands to the end of its present step.

    Examples
    --------
    >>> with Progress("fit", verbose=1) as progress:
    ...     progress(0.5, "half of it")
    [fit]  50% half of it
    """

    def __init__(
        self,
        name: str,
        verbose: int | None = None,
        *,
        callback: Callable[[float, str], None] | None = None,
    ) -> None:
        self._name, self._verbose, self._callback = name, verbose, callback
        self._share, self._step = 0.0, _Step()
        self._bar: Any = None
        self._outer: Progress | None = None
        self._lines: list[str] = []  # to be written above the bar as soon as there is one
        self._ended = Event()

    def __enter__(self) -> Self:
        self._began, self._thread = monotonic(), get_ident()
        with _LOCK:
            self._outer = _open[-1] if _open else None
            _open.append(self)
        self._note_before = _jit.compiling_note.is_wanted
        if self._verbose is not None:
            _jit.compiling_note.is_wanted = bool(self._verbose)
        elif self._outer is None and is_watched() and not is_notebook():
            # In a thread: a single step may take long.
            Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        _jit.compiling_note.is_wanted = self._note_before
        with _LOCK:
            if self in _open:
                _open.remove(self)
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    def __call__(self, share: float | None, what: str, *, upto: float | None = None) -> None:
        """Tell the share of the work that is done, and what was done last.

        `upto` is the share at which the step that begins now will end.
        """
        self._share = self._share if share is None else share
        self._step = _Step(self._share, self._share if upto is None else upto, what)
        if self._callback is not None:
            self._callback(self._share, what)
        if self._verbose:
            print(f"[{self._name}] {self._share:4.0%} {what}")
        elif self._verbose is None:
            self._show(what)

    def part(self, first: float = 0.0, last: float = 1.0) -> Report | None:
        """Return what tells the progress of a part of the work; None if nobody follows it."""
        told = self._callback is not None or bool(self._verbose)
        is_shown = self._verbose is None and (self._outer is not None or is_watched())
        return part(self, first, last) if told or is_shown else None

    def write(self, line: str) -> None:
        """Write a line above the bar; nothing, if no bar will be drawn."""
        with _LOCK:
            if self._bar is None:
                self._lines.append(line)
            else:
                self._bar.write(line, file=sys.stderr)

    @property
    def is_drawn(self) -> bool:
        """Whether there is a bar."""
        return self._bar is not None

    def _show(self, what: str) -> None:
        if self._outer is None:
            self._draw(what)
        elif self._outer._thread == self._thread:  # fits in several threads have one bar at most
            self._outer._move_to(self._share, what)

    def _move_to(self, share: float, what: str) -> None:
        """Take over the progress of a call inside the present step."""
        first, last, outer_what = self._step
        self._share = first + share * (last - first)
        self._show(f"{outer_what}: {what}" if outer_what else what)

    def _watch(self) -> None:
        wait = DELAY
        while not self._ended.wait(wait):
            self._draw()
            wait = EVERY

    def _draw(self, what: str | None = None) -> None:
        if self._verbose is not None or monotonic() - self._began < DELAY:
            return
        with _LOCK:
            if self._bar is None and not self._ended.is_set():
                self._bar = _new_bar(self._name, monotonic() - self._began)
                for line in self._lines if self._bar is not None else ():
                    self._bar.write(line, file=sys.stderr)
                if self._bar is None:
                    self._verbose = 0  # nothing to draw on: not asked again
            if self._bar is not None:
                self._bar.n = max(self._bar.n, min(self._share, 1.0))
                text = self._step.what if what is None else what
                self._bar.set_postfix_str(text, refresh=False)
                self._bar.refresh()


def part(report: Callable[..., None], first: float, last: float) -> Report:
    """Return what reports a part of the work, in shares of that part."""

    def report_part(share: float | None, what: str) -> None:
        report(None if share is None else first + share * (last - first), what)

    return report_part


def is_watched() -> bool:
    """Whether progress is worth showing: the error stream goes to a terminal, or a notebook."""
    return (sys.stderr is not None and sys.stderr.isatty()) or (
        "IPython" in sys.modules and is_notebook()
    )


def is_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


_jit.compiling_note.is_watched = is_watched


def _new_bar(name: str, seconds: float) -> Any:
    """Return a bar of tqdm; None if it is not installed or there is nothing to draw on."""
    if not is_watched():
        return None
    in_notebook = is_notebook()
    # A notebook draws the bar itself, in the place that the format leaves for it.
    shown = FORMAT.replace("{bar:25}", "{bar}") if in_notebook else FORMAT
    for module in ("tqdm.auto", "tqdm") if in_notebook else ("tqdm",):
        try:
            tqdm = import_module(module).tqdm
            # A terminal that does not know its size is taken for one of the usual size.
            size = get_terminal_size()
            shape = {"ncols": size.columns, "nrows": size.lines, "file": sys.stderr}
            bar = tqdm(desc=name, total=1.0, bar_format=shown, leave=False, **shape)
        except ImportError:  # of tqdm, or of the widgets for notebooks
            continue
        bar.start_t -= seconds  # the call began before its bar
        return bar
    return None
