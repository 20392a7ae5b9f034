"""Data sets as files of a folder: ``NAME.npz`` with arrays `X` and `y`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from linkwise._files import UNREADABLE
from linkwise.datasets.preprocess import encoded

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Ints

VARIABLE = "LINKWISE_DATA"


def data_folder(data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder of data files: the one given, else what the environment says."""
    given = data_home if data_home is not None else os.environ.get(VARIABLE) or None
    return None if given is None else Path(given).expanduser()


def find(name: str, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file of a data set, if there is one."""
    folder = data_folder(data_home)
    path = None if folder is None else folder / f"{name}.npz"
    return path if path is not None and path.is_file() else None


def read(path: Path) -> tuple[AnyArray, Ints]:
    """Read `X` and `y` from a file, and raise for what cannot be clustered."""
    X, y = _arrays(path)
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "biuf":
        _raise_unusable(path, f"X must be a table of numbers, but it is {_shown(X)}")
    if y.shape != X.shape[:1]:
        _raise_unusable(
            path,
            f"y must have one label for each of the {X.shape[0]} samples of X, but it is "
            f"{_shown(y)}",
        )
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        _raise_unusable(path, f"X[{row}, {column}] is {X[row, column]}; values must be finite")
    if y.dtype.kind not in "biufUS" or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        why = f"y must be of numbers or strings, all of them known, but it is {_shown(y)}"
        _raise_unusable(path, why)
    return X, encoded(y)


def _arrays(path: Path) -> tuple[AnyArray, AnyArray]:
    try:
        # A file of ours is closed whatever happens; one that numpy opens stays open if it is bad.
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            names = sorted(stored.files) if hasattr(stored, "files") else None
            arrays = {name: stored[name] for name in names or () if name in {"X", "y"}}
    except UNREADABLE as error:
        _raise_unusable(path, f"it cannot be read: {error}", error)
    if names is None:
        _raise_unusable(path, "it is a single array, not an archive of X and y")
    for name in ("X", "y"):
        if name not in arrays:
            _raise_unusable(path, f"there is no array {name} in it, only {names}")
    return arrays["X"], arrays["y"]


def _shown(array: AnyArray) -> str:
    return f"of shape {array.shape} and type {array.dtype}"


def _raise_unusable(path: Path, why: str, cause: Exception | None = None) -> NoReturn:
    raise ValueError(f"{path} is no data set: {why}.") from cause
