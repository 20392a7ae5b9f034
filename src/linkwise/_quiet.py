"""The owner of the warning filters: silence for one thread, and filters as they were in the end.

`warnings.filters` belong to the process. Threads that save and restore them crosswise, as
`warnings.catch_warnings` does, leave silence behind for good, or lose it too early. So they are not
changed for a silence: one filter, which looks up what its own thread wants to ignore, is there
while anything of linkwise runs.
"""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import contextmanager
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Ignored(threading.local):
    categories: tuple[type[Warning], ...] = ()


_IGNORED = _Ignored()


class _IgnoredHere(type):
    """A class of warnings whose subclasses are those that this thread ignores."""

    def __subclasscheck__(cls, category: type) -> bool:
        return issubclass(category, _IGNORED.categories)


class QuietWarning(Warning, metaclass=_IgnoredHere):
    """Any warning that the current thread ignores at the moment."""


OWN = ("linkwise", "sklearn")  # packages through whose functions a user's call goes


def user_level() -> int:
    """Return the `stacklevel` at which a warning of the caller names the user's line.

    How many steps of linkwise and scikit-learn lie between depends on what was called.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in OWN:
        level, frame = level + 1, frame.f_back
    return level


FILTER = ("ignore", None, QuietWarning, None, 0)
# What the checks of scikit-learn add for a moment, in `check_array` and `type_of_target`.
TRANSIENT = (
    ("error", None, np.exceptions.ComplexWarning, None, 0),
    ("error", None, np.exceptions.VisibleDeprecationWarning, None, 0),
)


class _Blocks:
    """The blocks that run at the moment, in all threads, and the filters before the first."""

    lock = threading.Lock()
    n = 0
    before: Any = None
    n_transient = 0  # of `TRANSIENT` at their front


@contextmanager
def kept_filters() -> Iterator[None]:
    """Leave the warning filters as they were, whatever overlaps with this block."""
    with _Blocks.lock:
        _Blocks.n += 1
        if _Blocks.n == 1:
            _Blocks.before = warnings.filters
            transient = list(takewhile(TRANSIENT.__contains__, warnings.filters))
            _Blocks.n_transient = len(transient)
        current: Any = warnings.filters  # of the user, or of a recording, in between
        if current[:1] != [FILTER]:
            current.insert(0, FILTER)
    try:
        yield
    finally:
        with _Blocks.lock:
            _Blocks.n -= 1
            if not _Blocks.n:
                # Out go the filter, and a copy of the filters that is equal to those before: two
                # checks of scikit-learn that overlapped leave one, or their filter in this one.
                before, current = _Blocks.before, cast("Any", warnings.filters)
                for filters in (before, current):
                    while FILTER in filters:
                        filters.remove(FILTER)
                lasting = list(dropwhile(TRANSIENT.__contains__, before))
                if lasting == list(dropwhile(TRANSIENT.__contains__, current)):
                    warnings.filters = before
                transient = list(takewhile(TRANSIENT.__contains__, before))
                del before[: max(len(transient) - _Blocks.n_transient, 0)]
                _Blocks.before = None


@contextmanager
def quiet(*categories: type[Warning]) -> Iterator[None]:
    """Ignore categories of warnings, in this thread; of none given, all."""
    before = _IGNORED.categories
    with kept_filters():
        _IGNORED.categories = (*before, *(categories or (Warning,)))
        try:
            yield
        finally:
            _IGNORED.categories = before


_RECORDING = threading.RLock()


@contextmanager
def recorded() -> Iterator[list[warnings.WarningMessage]]:
    """Yield the list of the warnings of the block; one thread at a time."""
    with _RECORDING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
