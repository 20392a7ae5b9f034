"""The owner of the warning filters: silence for one thread, and filters as they were in the end.

`warnings.filters` belong to the process. Threads that save and restore them crosswise, as
`warnings.catch_warnings` does, leave silence behind for good, or lose it too early. So they are not
changed for a silence: one filter, which looks up what its own thread wants to ignore, is there
while anything of linkwise runs.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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


FILTER = ("ignore", None, QuietWarning, None, 0)
# What the checks of scikit-learn add for a moment, in `check_array` and `type_of_target`.
TRANSIENT = (
    ("error", None, np.exceptions.ComplexWarning, None, 0),
    ("error", None, np.exceptions.VisibleDeprecationWarning, None, 0),
)


class _Owner:
    """Puts the filter in when the first block begins, and takes it out when the last one ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_blocks = 0
        self._before: Any = None

    def enter(self) -> None:
        with self._lock:
            self._n_blocks += 1
            if self._n_blocks == 1:
                self._before = warnings.filters
            current: Any = warnings.filters  # of the user, or of a recording, in between
            if current[:1] != [FILTER]:
                current.insert(0, FILTER)

    def leave(self) -> None:
        with self._lock:
            self._n_blocks -= 1
            if self._n_blocks:
                return
            # Two checks of scikit-learn that overlapped leave a copy behind.
            current: Any = warnings.filters
            if _lasting(current) == _lasting(self._before):
                warnings.filters = current = self._before
            for filters in (self._before, current):
                filters[:] = _without_ours(filters)
            self._before = None


def _lasting(filters: Any) -> list[Any]:
    """Return filters without those at the beginning that are there for a moment."""
    kept = _without_ours(filters)
    while kept and kept[0] in TRANSIENT:
        kept.pop(0)
    return kept


def _without_ours(filters: Any) -> list[Any]:
    return [one for one in filters if one is not FILTER]


_OWNER = _Owner()


@contextmanager
def kept_filters() -> Iterator[None]:
    """Leave the warning filters as they were, whatever overlaps with this block."""
    _OWNER.enter()
    try:
        yield
    finally:
        _OWNER.leave()


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
