"""Output files are checked before any work is done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from linkwise._files import resolved
from linkwise.cli.console import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what the cell of a formula begins with


def check_output(
    path: Path | None,
    option: str,
    *,
    inputs: Sequence[Path | None] = (),
    formats: Sequence[str] = (),
) -> None:
    """Raise, before any work is done, if a file could not be written in the end."""
    if path is None:
        return
    if path.is_dir():
        raise BadInput(f"{option} {path} is a folder. Name a file in it.")
    folder = resolved(path).parent
    if not folder.is_dir():
        raise BadInput(f"{option} {path}: there is no folder {folder}. Create it first.")
    is_special = path.exists() and not path.is_file()
    if not is_special and not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"{option} {path}: nothing can be written to the folder {folder}.")
    if path.exists() and not os.access(path, os.W_OK):
        raise BadInput(f"{option} {path} is write-protected. Choose another name.")
    for given in inputs:
        if given is not None and _is_same_file(path, given):
            raise BadInput(f"{option} {path} would overwrite the input. Choose another name.")
    # A pipe or a device has no suffix to go by; it gets the first format.
    if formats and not is_special and path.suffix.lower() not in formats:
        raise BadInput(f"{option} {path}: the name must end in one of {', '.join(formats)}.")


def check_distinct(outputs: Mapping[str, Path | None]) -> None:
    """Raise if two files have one name; the keys are the options."""
    given = [(option, path) for option, path in outputs.items() if path is not None]
    for k, (option, path) in enumerate(given):
        for other, taken in given[:k]:
            if _is_same_file(path, taken):
                raise BadInput(f"{option} {path} is the file of {other}. Choose another name.")


def _is_same_file(path: Path, other: Path) -> bool:
    """Whether two names mean one file; into a pipe or a device anything may go."""
    if path.exists() and other.exists():
        return path.is_file() and path.samefile(other)
    return resolved(path) == resolved(other)


def without_formulas(names: Sequence[str]) -> list[str]:
    """Put an apostrophe before names that a spreadsheet would compute, numbers excepted."""
    return [f"'{name}" if _is_formula(name) else name for name in names]


def _is_formula(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return name.startswith(FORMULA)
    return False
