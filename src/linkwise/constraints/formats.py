"""File formats of pairs. To add one, write its two functions and name it in FORMATS.

``read(path)`` returns the columns of a file as lists, with the line of each row; it raises
ValueError if the file is not such a table. ``write(path, table, names)`` gets the names of the
samples, or None to write their numbers; a format may do without it. tests/test_constraints_io.py
has an example.
"""

from __future__ import annotations

import codecs
import csv
import warnings
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._files import UNREADABLE, atomic
from linkwise._optional import require
from linkwise._quiet import user_level
from linkwise._text import OLE_MARK, WINDOWS, WINDOWS_NOTE, ZIP_MARK, delimiter_of, is_windows_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from linkwise.constraints.table import PairTable

REQUIRED = ("i", "j", "link")
KNOWN = (*REQUIRED, "belief")


class Columns(NamedTuple):
    """The columns of a table as lists, and how to name a place in them."""

    values: dict[str, list[Any]]
    rows: list[int]
    place: Callable[[int], str]  # row or line number -> words
    unit: str = "line"  # what the rows are counted in

    def where(self, k: int, column: str) -> str:
        """Name the cell in the k-th row, with its value."""
        return f"{self.place(self.rows[k])}: {column} is {self.values[column][k]!r}"


class Format(NamedTuple):
    """How pairs are read from a file and written to one."""

    read: Callable[[Path], Columns]
    write: Callable[[Path, PairTable, list[str] | None], None] | None = None


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format that the suffix of a path names; CSV unless it names another."""
    return FORMATS.get(Path(path).suffix.lower(), FORMATS[".csv"])


def writable() -> tuple[str, ...]:
    """Return the suffixes of formats that pairs can be written in."""
    return tuple(suffix for suffix, known in FORMATS.items() if known.write is not None)


def write_pairs(path: Path, table: PairTable, names: list[str] | None) -> None:
    """Write pairs in the format that the suffix names."""
    write = format_of(path).write
    if write is None:
        raise ValueError(f"Pairs cannot be written as {path.suffix}. Call the file .csv.")
    write(path, table, names)


# CSV ---------------------------------------------------------------------------------------


def _read_csv(path: Path) -> Columns:
    content = path.read_bytes()  # at once: a pipe can be read only once
    if content.startswith((ZIP_MARK, OLE_MARK)):
        raise ValueError(f"{path} is a spreadsheet, not CSV. {spreadsheet_advice(content)}")
    text = _decoded(content, path)
    delimiter = delimiter_of(text.partition("\n")[0])
    return _csv_columns(csv.reader(StringIO(text, newline=""), delimiter=delimiter), path)


def _decoded(content: bytes, path: Path) -> str:
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return content.decode("utf-16" if content.startswith(marks) else "utf-8-sig")
    except UnicodeDecodeError as error:
        if is_windows_text(content):
            warnings.warn(f"{path} {WINDOWS_NOTE}.", UserWarning, stacklevel=user_level())
            return content.decode(WINDOWS)
        raise ValueError(f"{path} is not UTF-8 text ({error.reason}). Save it as UTF-8.") from error


def spreadsheet_advice(content: bytes) -> str:
    """Say what to do about a file that begins as a spreadsheet."""
    if content.startswith(OLE_MARK):
        return "Save it as .xlsx or CSV."
    return "Name it .xlsx if it is from Excel, or save it as CSV."


def _csv_columns(reader: Any, path: Path) -> Columns:
    """Collect the columns from a csv reader; blank lines are skipped."""
    try:
        header = next(reader, None)
        if header is None:
            raise ValueError(f"{path} is empty. Its first line must name the columns: i,j,link.")
        columns: list[list[str]] = [[] for _ in header]
        lines: list[int] = []
        for fields in reader:
            if not fields or not (fields[0] or any(fields)):
                continue
            if len(fields) != len(header):
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(fields)} values, but the header names "
                    f"{len(header)} columns ({', '.join(header)})."
                )
            lines.append(reader.line_num)
            for column, field in zip(columns, fields, strict=True):
                column.append(field.strip())
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not valid CSV ({error}).") from error
    return _as_columns(header, columns, lines, path=path)


def _as_columns(
    header: list[Any], columns: list[list[Any]], lines: list[int], *, path: Path
) -> Columns:
    names = ["" if name is None else str(name).strip() for name in header]
    _check_distinct(names, f"{path}, line 1")
    values: dict[str, list[Any]] = dict(zip(names, columns or [[] for _ in names], strict=True))
    return Columns(values, lines, lambda line: f"{path}, line {line}")


def write_csv(path: Path, table: PairTable, names: list[str] | None) -> None:
    """Write pairs; the file appears only when it is complete."""
    with atomic(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KNOWN)
        columns = (table.pairs.tolist(), table.sign.tolist(), table.belief.tolist())
        for (i, j), sign, belief in zip(*columns, strict=True):
            shown = (i, j) if names is None else (names[i], names[j])
            writer.writerow((*shown, "must" if sign > 0 else "cannot", belief))


# Excel -------------------------------------------------------------------------------------


def _read_excel(path: Path) -> Columns:
    openpyxl = require("openpyxl", extra="excel", purpose="Reading .xlsx files")
    try:
        sheet = openpyxl.load_workbook(path, read_only=True, data_only=True).worksheets[0]
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    except (*UNREADABLE, KeyError) as error:
        raise ValueError(f"{path} is no readable .xlsx file ({error}).") from error
    if not rows:
        raise ValueError(f"{path} is empty. Its first row must name the columns: i, j, link.")
    filled = [k for k, row in enumerate(rows) if k and any(cell is not None for cell in row)]
    kept = [["" if cell is None else cell for cell in rows[k]] for k in filled]
    columns = [list(column) for column in zip(*kept, strict=True)]
    return _as_columns(rows[0], columns, [k + 1 for k in filled], path=path)


FORMATS = {".csv": Format(_read_csv, write_csv), ".xlsx": Format(_read_excel)}


# Data frames ---------------------------------------------------------------------------------


def frame_columns(df: Any) -> Columns:
    """Return the columns of a data frame (of any library) or a dict of columns."""
    # By duck typing, so that no data frame library has to be installed.
    original = list(df.columns if hasattr(df, "columns") else df)
    names = [str(name).strip() for name in original]
    _check_distinct(names, "The data frame")
    values = {name: np.asarray(df[key]).tolist() for name, key in zip(names, original, strict=True)}
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The columns have different lengths: {lengths}.")
    rows = list(range(next(iter(lengths.values()), 0)))
    return Columns(values, rows, lambda row: f"row {row}", "row")


def _check_distinct(names: list[str], place: str) -> None:
    folded = [name.lower() for name in names]
    for name in KNOWN:
        if folded.count(name) > 1:
            raise ValueError(f"{place} has the column {name!r} more than once.")
