"""File formats of pairs. To add one, write its two functions and name it in FORMATS.

``read(path)`` returns the columns of a file as lists, with the line of each row; it raises
ValueError if the file is not such a table. ``write(path, table, names)`` gets the names of the
samples, or None to write their numbers. tests/test_constraints_io.py has an example.
"""

from __future__ import annotations

import codecs
import csv
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._files import atomic

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from linkwise.constraints.table import PairTable

REQUIRED = ("i", "j", "link")
KNOWN = (*REQUIRED, "belief")


class Columns(NamedTuple):
    """The columns i, j, link and perhaps belief as lists, and how to name a place in them."""

    values: dict[str, list[Any]]
    rows: list[int]
    place: Callable[[int], str]  # row or line number -> words

    def where(self, k: int, column: str) -> str:
        """Name the cell in the k-th row, with its value."""
        return f"{self.place(self.rows[k])}: {column} is {self.values[column][k]!r}"


class Format(NamedTuple):
    """How pairs are read from a file and written to one."""

    read: Callable[[Path], Columns]
    write: Callable[[Path, PairTable, list[str] | None], None]


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format that the suffix of a path names; CSV unless it names another."""
    return FORMATS.get(Path(path).suffix.lower(), FORMATS[".csv"])


# CSV ---------------------------------------------------------------------------------------


def _read_csv(path: Path) -> Columns:
    content = path.read_bytes()  # at once: a pipe can be read only once
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        text = content.decode("utf-16" if content.startswith(marks) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason}). Save it as UTF-8.") from error
    return _csv_columns(csv.reader(StringIO(text, newline="")), path)


def _csv_columns(reader: Any, path: Path) -> Columns:
    """Collect the columns of pairs from a csv reader; blank lines are skipped."""
    try:
        header = next(reader, None)
        if header is None:
            raise ValueError(f"{path} is empty. Its first line must name the columns: i,j,link.")
        names = [name.strip().lower() for name in header]
        _check_columns(names, f"{path}, line 1")
        wanted = [name for name in KNOWN if name in names]
        positions = [names.index(name) for name in wanted]
        columns: list[list[str]] = [[] for _ in wanted]
        lines: list[int] = []
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(names):
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(fields)} values, but the header names "
                    f"{len(names)} columns ({', '.join(names)})."
                )
            lines.append(reader.line_num)
            for column, position in zip(columns, positions, strict=True):
                column.append(fields[position].strip())
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not valid CSV ({error}).") from error
    table: dict[str, list[Any]] = dict(zip(wanted, columns, strict=True))
    return Columns(table, lines, lambda line: f"{path}, line {line}")


def _write_csv(path: Path, table: PairTable, names: list[str] | None) -> None:
    """Write pairs; the file appears only when it is complete."""
    with atomic(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KNOWN)
        columns = (table.pairs.tolist(), table.sign.tolist(), table.belief.tolist())
        for (i, j), sign, belief in zip(*columns, strict=True):
            shown = (i, j) if names is None else (names[i], names[j])
            writer.writerow((*shown, "must" if sign > 0 else "cannot", belief))


FORMATS = {".csv": Format(_read_csv, _write_csv)}


# Data frames ---------------------------------------------------------------------------------


def frame_columns(df: Any) -> Columns:
    """Return the columns of a data frame (of any library) or a dict of columns."""
    # By duck typing, so that no data frame library has to be installed.
    original = list(df.columns if hasattr(df, "columns") else df)
    names = [str(name).strip().lower() for name in original]
    _check_columns(names, "The data frame")
    columns = {
        name: np.asarray(df[original[names.index(name)]]).tolist()
        for name in KNOWN
        if name in names
    }
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The columns have different lengths: {lengths}.")
    rows = list(range(lengths["i"]))
    return Columns(columns, rows, lambda row: f"row {row}")


def _check_columns(names: list[str], place: str) -> None:
    missing = [name for name in REQUIRED if name not in names]
    for delimiter in (";", "\t", "|", " "):
        if len(names) == 1 and delimiter in names[0]:
            raise ValueError(
                f"{place} has one column, {names[0][:60]!r}, which holds {delimiter!r}. "
                "Separate the columns by commas."
            )
    if missing:
        raise ValueError(
            f"{place} has no column {', '.join(map(repr, missing))}; the columns found are "
            f"{names}. Needed are i, j (samples), link (must or cannot) and, if wanted, belief."
        )
    for name in KNOWN:
        if names.count(name) > 1:
            raise ValueError(f"{place} has the column {name!r} more than once.")
