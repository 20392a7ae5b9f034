"""Settings shared by all tests."""

from __future__ import annotations

import os

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
