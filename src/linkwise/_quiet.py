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
            _Blocks.n_transient = _n_transient(warnings.filters)
        current: Any = warnings.filters  # of the user, or of a recording, in between
        if current[:1] != [FILTER]:
            current.insert(0, FILTER)
    try:
        yield
    finally:
        with _Blocks.lock:
            _Blocks.n -= 1
            if not _Blocks.n:
                _restore(_Blocks.before, _Blocks.n_transient)
                _Blocks.before = None


def _n_transient(filters: Any) -> int:
    """Return how many filters at the front are there for a moment."""
    return next((k for k, entry in enumerate(filters) if entry not in TRANSIENT), len(filters))


def _restore(before: Any, n_transient: int) -> None:
    """Take the filter out, and a copy of the filters that is equal to those before."""
    lasting, current = [], cast("Any", warnings.filters)
    for filters in (before, current):
        while FILTER in filters:
            filters.remove(FILTER)
        lasting.append(filters[_n_transient(filters) :])
    # Two checks of scikit-learn that overlapped leave a copy behind, or their filter in this one.
    if lasting[0] == lasting[1]:
        warnings.filters = before
    del before[: max(_n_transient(before) - n_transient, 0)]


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
