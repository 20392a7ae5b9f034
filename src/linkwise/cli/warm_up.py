"""``linkwise warm-up``: compile what would otherwise be compiled in the first fits."""

from __future__ import annotations

import time
import warnings
from inspect import signature
from typing import TYPE_CHECKING

from sklearn.datasets import make_blobs

from linkwise import _jit
from linkwise.cli import options
from linkwise.constraints import Constraints
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise.cli.console import Console
    from linkwise.cli.options import Method

LARGE = 20_000  # samples; for so many, neighbours and eigenvectors are found by other kernels


def run(console: Console, keys: Sequence[str]) -> int:
    """Fit methods to small data, and the baseline to large data, in which kernels are compiled."""
    chosen = {key: options.find_method(key) for key in keys} or dict(METHODS)
    _jit.compiling_note.is_wanted = False  # the user knows
    started = time.perf_counter()
    n_steps = len(chosen) + (not keys)
    with console.progress("compiling") as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (key, Method) in enumerate(chosen.items()):
            progress(number / n_steps, key, upto=(number + 1) / n_steps)
            fit_to_little(Method)
        if not keys:
            progress(1 - 1 / n_steps, "large data", upto=1.0)
            X, _ = make_blobs(LARGE, n_features=8, centers=3, random_state=0)
            METHODS["ncut"](3, random_state=0).fit(X)
    seconds = time.perf_counter() - started
    console.note(f"ready: {', '.join(chosen)} ({seconds:.0f} s)")
    console.summary({"command": "warm-up", "methods": list(chosen), "seconds": seconds})
    return 0


def fit_to_little(Method: Method) -> None:
    """Fit a method to some blobs: with labels, with pairs; and predict."""
    X, y = make_blobs(60, centers=3, random_state=0)
    labels = Constraints.from_labels([c if i % 4 == 0 else -1 for i, c in enumerate(y)])
    pairs = Constraints.sample(y, 150, random_state=0)
    pairs.check(3)
    settings = {"n_clusters": 3, "random_state": 0}
    settings = {name: settings[name] for name in settings if name in signature(Method).parameters}
    for known in (labels, pairs):
        Method(**settings).fit(X, constraints=known).predict(X)
