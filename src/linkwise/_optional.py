"""Import of optional libraries, with a message that names the extra."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which extra provides it and why."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {module.partition('.')[0]}, which is not installed. "
            f"Install it with: pip install 'linkwise[{extra}]'"
        ) from error
