"""Settings shared by all tests."""

from __future__ import annotations

from hypothesis import settings

# Compiled kernels make the first example slow; that is no failure. Examples are the same each run.
settings.register_profile("linkwise", deadline=None, derandomize=True)
settings.load_profile("linkwise")
