"""How far a run is: a bar in a terminal, an occasional line elsewhere."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

SECONDS_BETWEEN_LINES = 30.0


class Progress:
    """Counts fits, of which there will be `n_fits`, on the error stream if `shown`."""

    def __init__(self, n_fits: int, *, shown: bool) -> None:
        self._n_fits, self._n_done, self._n_failed = n_fits, 0, 0
        self._shown = shown
        self._start = self._last = time.monotonic()
        self._bar = _bar(n_fits) if shown and n_fits else None

    def step(self, *, failed: bool) -> None:
        """Count one fit."""
        self._n_done += 1
        self._n_failed += failed
        if self._bar is not None:
            self._bar.update()
            if failed:
                self._bar.set_postfix(failed=self._n_failed)
        elif self._shown and time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            took = self._last - self._start
            failures = f", {self._n_failed} without an answer" if self._n_failed else ""
            line = f"{self._n_done} of {self._n_fits} fits in {took:.0f} s{failures}"
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()


def _bar(n_fits: int) -> Any:
    """Return a bar of tqdm, if it is installed and there is a terminal to draw on."""
    if not sys.stderr.isatty():
        return None
    try:
        tqdm = import_module("tqdm")
    except ImportError:
        return None
    return tqdm.tqdm(total=n_fits, unit="fit", file=sys.stderr)
