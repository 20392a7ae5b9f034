"""Silence for a known, harmless warning; also in several threads at once."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# The filters belong to the process: threads that save and restore them crosswise would leave the
# silence behind for good.
_FILTERS = RLock()


@contextmanager
def quiet(category: type[Warning]) -> Iterator[None]:
    """Ignore a category of warnings."""
    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
