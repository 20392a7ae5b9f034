"""Settings shared by all tests."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec

import pytest

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if IS_WORKER:  # the processes share the cores; read by BLAS and OpenMP when NumPy is imported
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}

import numba  # noqa: E402
from hypothesis import settings  # noqa: E402

if IS_WORKER:  # tests about threads may still ask for more
    numba.set_num_threads(1)

# Compiled kernels make the first example slow; that is no failure. Examples are the same each run.
settings.register_profile("linkwise", deadline=None, derandomize=True, max_examples=50)
# `pytest --hypothesis-profile=thorough` looks at new examples each time.
settings.register_profile("thorough", deadline=None, max_examples=1_000)
settings.load_profile("linkwise")


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heard():
    """Undo what a shell does to its background processes, and these to theirs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Skip the examples of a module whose library is an extra that is not installed."""
    missing = pytest.mark.skip(reason="the examples of linkwise.tl need anndata")
    for item in items:
        if find_spec("anndata") is None and item.name.startswith("linkwise.tl."):
            item.add_marker(missing)
