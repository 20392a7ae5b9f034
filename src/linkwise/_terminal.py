"""Whether somebody is looking."""

from __future__ import annotations

import sys


def is_terminal() -> bool:
    """Whether the error stream goes to a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def is_watched() -> bool:
    """Whether progress is worth showing: on a terminal, or in a notebook."""
    return is_terminal() or is_notebook()
