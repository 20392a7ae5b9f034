"""How far data walk in one fit: functions, files, depth, and who called whom.

Imported by the architecture test; ``python tests/tracing.py`` prints the counts as a table.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import linkwise

SOURCE = Path(linkwise.__file__).parent
TRACED = ("NCut", "E2CP", "COSC", "Auto")


class Walk(NamedTuple):
    """What one call went through inside the library."""

    functions: set[tuple[str, str]]  # file, qualified name
    depth: int
    calls: set[tuple[str, str, str]]  # caller's layer, callee's layer, callee

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}


@cache  # asked at every call that Python makes
def layer_of(filename: str) -> str | None:
    """Return the top-level module or package of a file of the library; None for other files."""
    path = Path(filename)
    if not path.is_relative_to(SOURCE):
        return None
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def walk(call) -> Walk:
    """Run a function and record every function of the library that it reaches.

    A callback counts as called by the nearest function of the library on the stack, so one that is
    handed down and called from below is seen, even through scipy or joblib.
    """
    functions, calls, depth, deepest = set(), set(), 0, 0

    def profile(frame, event, _):
        nonlocal depth, deepest
        layer = layer_of(frame.f_code.co_filename)
        if layer is None or event not in {"call", "return"}:
            return
        if event == "return":
            depth -= 1
            return
        depth += 1
        deepest = max(deepest, depth)
        name = frame.f_code.co_qualname
        functions.add((frame.f_code.co_filename, name))
        caller = frame.f_back
        while caller is not None and layer_of(caller.f_code.co_filename) is None:
            caller = caller.f_back
        if caller is not None and name != "<module>":  # a module that is imported late
            calls.add((layer_of(caller.f_code.co_filename), layer, name))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(functions, deepest, calls)


def walk_of_fit(name: str, *, n_samples: int = 60) -> Walk:
    """Trace the fit of a method on three Gaussian clusters with a dozen pairs (two for COSC)."""
    rng = np.random.default_rng(0)
    k = 2 if name == "COSC" else 3
    y = np.arange(n_samples) % k
    X = rng.normal(size=(n_samples, 2)) + 4 * y[:, None]
    pairs = rng.integers(0, n_samples, (12, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    known = linkwise.Constraints(n_samples, pairs[same], pairs[~same])
    estimator = getattr(linkwise, name)(k, random_state=0)

    def fit():
        estimator.fit(X.copy(), constraints=None if name == "NCut" else known)

    fit()  # compiles what is not in the cache: no data walk through the compiler
    return walk(fit)


def main() -> None:
    print(f"{'fit':8} {'functions':>9} {'files':>5} {'depth':>5}")
    for name in sys.argv[1:] or TRACED:
        found = walk_of_fit(name)
        print(f"{name:8} {len(found.functions):9} {len(found.files):5} {found.depth:5}")


if __name__ == "__main__":
    main()
