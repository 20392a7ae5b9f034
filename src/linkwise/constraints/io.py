"""Columns of a CSV file or a data frame to pairs, and back."""

from __future__ import annotations

import codecs
import csv
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._files import atomic
from linkwise._hints import hint
from linkwise.constraints.table import PairTable, common_pair
from linkwise.constraints.validation import as_n_samples, is_missing
from linkwise.exceptions import ConflictError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence


__all__ = ["id_positions", "read_csv", "read_frame", "read_pairs", "write_csv"]

REQUIRED = ("i", "j", "link")
SIGNS = {
    **dict.fromkeys(("must", "must-link", "must_link", "ml", "1", "+1", "1.0"), 1),
    **dict.fromkeys(("cannot", "cannot-link", "cannot_link", "cl", "-1", "-1.0"), -1),
}


class _Source(NamedTuple):
    """A table as lists of values, and how to name a place in it."""

    columns: dict[str, list[Any]]
    rows: list[int]
    place: Callable[[int], str]  # row or line number -> words

    def where(self, k: int, column: str) -> str:
        """Name the cell in the k-th row, with its value."""
        return f"{self.place(self.rows[k])}: {column} is {self.columns[column][k]!r}"


# Reading -----------------------------------------------------------------------------------


def read_csv(
    path: str | os.PathLike[str], n_samples: int | None, ids: Sequence[object] | None
) -> tuple[int, PairTable]:
    """Read pairs from a CSV file with the columns i, j, link and perhaps belief."""
    return _pair_table(_read_source(Path(path)), n_samples, ids)


def read_pairs(
    path: str | os.PathLike[str], n_samples: int | None, ids: Sequence[object] | None
) -> tuple[int, PairTable, Sequence[object] | None]:
    """Read pairs that may contradict each other; also the number and names of the samples.

    With neither `n_samples` nor `ids`, every name in the file is a sample.
    """
    source = _read_source(Path(path))
    if n_samples is None and ids is None:
        ends = zip(source.columns["i"], source.columns["j"], strict=True)
        ids = list(dict.fromkeys(_name(value) for pair in ends for value in pair))
        if not ids:
            message = f"{path} has a header but no pairs."
            raise ValueError(message)
    return *_parsed_table(source, n_samples, ids), ids


def _read_source(path: Path) -> _Source:
    content = path.read_bytes()  # at once: a pipe can be read only once
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        text = content.decode("utf-16" if content.startswith(marks) else "utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text ({error.reason}). Save it as UTF-8."
        raise ValueError(message) from error
    return _read_columns(csv.reader(StringIO(text, newline="")), path)


def _read_columns(reader: Any, path: Path) -> _Source:
    """Collect the columns we know from a csv reader; blank lines are skipped."""
    try:
        header = next(reader, None)
        if header is None:
            message = f"{path} is empty. Its first line must name the columns: i,j,link."
            raise ValueError(message)
        names = [name.strip().lower() for name in header]
        _check_columns(names, f"{path}, line 1")
        wanted = [name for name in (*REQUIRED, "belief") if name in names]
        positions = [names.index(name) for name in wanted]
        columns: list[list[str]] = [[] for _ in wanted]
        lines: list[int] = []
        for fields in reader:
            if not fields:
                continue
            if len(fields) != len(names):
                message = (
                    f"{path}, line {reader.line_num}: {len(fields)} values, but the header names "
                    f"{len(names)} columns ({', '.join(names)})."
                )
                raise ValueError(message)
            lines.append(reader.line_num)
            for column, position in zip(columns, positions, strict=True):
                column.append(fields[position].strip())
    except csv.Error as error:
        message = f"{path}, line {reader.line_num}: not valid CSV ({error})."
        raise ValueError(message) from error
    table: dict[str, list[Any]] = dict(zip(wanted, columns, strict=True))
    return _Source(table, lines, lambda line: f"{path}, line {line}")


def read_frame(
    df: Any, n_samples: int | None, ids: Sequence[object] | None
) -> tuple[int, PairTable]:
    """Read pairs from the columns of a data frame (of any library) or a dict of columns."""
    # By duck typing, so that no data frame library has to be installed.
    original = list(df.columns if hasattr(df, "columns") else df)
    names = [str(name).strip().lower() for name in original]
    _check_columns(names, "The data frame")
    columns = {
        name: np.asarray(df[original[names.index(name)]]).tolist()
        for name in (*REQUIRED, "belief")
        if name in names
    }
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        message = f"The columns have different lengths: {lengths}."
        raise ValueError(message)
    rows = list(range(lengths["i"]))
    return _pair_table(_Source(columns, rows, lambda row: f"row {row}"), n_samples, ids)


def _check_columns(names: list[str], place: str) -> None:
    missing = [name for name in REQUIRED if name not in names]
    for delimiter in (";", "\t", "|", " "):
        if len(names) == 1 and delimiter in names[0]:
            message = (
                f"{place} has one column, {names[0][:60]!r}, which holds {delimiter!r}. "
                "Separate the columns by commas."
            )
            raise ValueError(message)
    if missing:
        message = (
            f"{place} has no column {', '.join(map(repr, missing))}; the columns found are "
            f"{names}. Needed are i, j (samples), link (must or cannot) and, if wanted, belief."
        )
        raise ValueError(message)
    for name in (*REQUIRED, "belief"):
        if names.count(name) > 1:
            message = f"{place} has the column {name!r} more than once."
            raise ValueError(message)


def _pair_table(
    source: _Source, n_samples: int | None, ids: Sequence[object] | None
) -> tuple[int, PairTable]:
    """Parse and check the columns; every error names the line or row."""
    n, table = _parsed_table(source, n_samples, ids)
    _check_direct_conflict(n, table, source)
    return n, table


def _parsed_table(
    source: _Source, n_samples: int | None, ids: Sequence[object] | None
) -> tuple[int, PairTable]:
    """Parse the columns, whether or not the pairs contradict each other."""
    if ids is not None:
        positions = id_positions(ids, n_samples)
        n = len(positions)
        ends = [_parse(source, name, _IdParser(positions)) for name in ("i", "j")]
    else:
        if n_samples is None:
            message = (
                "n_samples is missing: without ids, i and j are positions, and the pairs do not "
                "tell how many samples there are. Pass n_samples=len(X), or ids=names."
            )
            raise TypeError(message)
        n = as_n_samples(n_samples)
        ends = [_parse(source, name, _PositionParser(n)) for name in ("i", "j")]
    pairs = np.array(ends, dtype=np.intp).T.reshape(-1, 2)
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        message = (
            f"{source.where(loops[0], 'i')}, and so is j: a sample paired with itself. "
            "Remove this row."
        )
        raise ValueError(message)
    sign = np.array(_parse(source, "link", _sign), dtype=np.float64)
    belief = np.ones(len(pairs))
    if "belief" in source.columns:
        belief = np.array(_parse(source, "belief", _belief), dtype=np.float64)
    return n, PairTable(np.sort(pairs, axis=1), sign, belief, np.array(source.rows, np.intp))


def _check_direct_conflict(n_samples: int, table: PairTable, source: _Source) -> None:
    """Raise if one pair is certainly linked both ways, naming both rows."""
    must = np.flatnonzero(table.weight == 1)
    cannot = np.flatnonzero(table.weight == -1)
    common = common_pair(table.pairs[must], table.pairs[cannot], n_samples)
    if common is not None:
        a, b = must[common[0]], cannot[common[1]]
        shown = f"({source.columns['i'][a]}, {source.columns['j'][a]})"
        message = (
            f"The pair {shown} is must-linked ({source.place(source.rows[a])}) and cannot-linked "
            f"({source.place(source.rows[b])}). Remove one of them, or give one a belief below 1."
        )
        raise ConflictError(message, tuple(table.pairs[a].tolist()), kind="contradiction")


def _parse(source: _Source, column: str, parse: Callable[[Any], Any]) -> list[Any]:
    """Parse a column, or name the first cell that cannot be parsed."""
    values = source.columns[column]
    try:
        return [parse(value) for value in values]
    except (ValueError, IndexError):  # one pass without bookkeeping; a second one finds the cell
        for k, value in enumerate(values):
            try:
                parse(value)
            except (ValueError, IndexError) as error:
                message = f"{source.where(k, column)}, {error}"
                raise type(error)(message) from None
        raise


class _PositionParser:
    """Parse sample positions."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples

    def __call__(self, value: Any) -> int:
        try:
            # int() is exact for text but truncates floats; "3.0" is text that only float() reads.
            position = int(value) if type(value) is str else int(_whole(value))
        except ValueError:
            position = int(_whole(value))
        if not 0 <= position < self.n_samples:
            message = (
                f"but there are only {self.n_samples} samples (valid positions are "
                f"0..{self.n_samples - 1})."
            )
            raise IndexError(message)
        return position


def _whole(value: Any) -> float:
    """Return a number without fraction, or raise ValueError."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(value, bool) or not number.is_integer():
        message = "but a position is a whole number. Pass ids=names if the columns hold names."
        raise ValueError(message)
    return number


class _IdParser:
    """Look names up."""

    def __init__(self, positions: dict[str, int]) -> None:
        self.positions = positions

    def __call__(self, value: Any) -> int:
        position = self.positions.get(_name(value))
        if position is None:
            known = self.positions
            message = f"which is not among the {len(known)} ids.{hint(_name(value), known)}"
            raise ValueError(message)
        return position


def _sign(value: Any) -> int:
    sign = SIGNS.get(value)  # as it mostly is; the rest only costs time
    if sign is None:
        sign = SIGNS.get(str(value).strip().lower())
    if sign is None:
        message = "but a link is must or cannot (or 1 or -1)."
        raise ValueError(message)
    return sign


def _belief(value: Any) -> float:
    if value == "":  # an empty cell means certain
        return 1.0
    try:
        belief = float(value)
    except (TypeError, ValueError):
        belief = np.nan
    if not 0 < belief <= 1:
        message = "but a belief is a number in (0, 1]. Write 1 for a certain pair."
        raise ValueError(message)
    return belief


# Names -------------------------------------------------------------------------------------


def _name(value: object) -> str:
    """Return a name as text, the same for 7, 7.0 and "7": files and frames disagree on types."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def id_positions(ids: Iterable[object], n_samples: int | None) -> dict[str, int]:
    """Return the position of each name, after checking that the names are distinct."""
    if isinstance(ids, str):
        message = f"ids is the text {ids!r}, but it must be a sequence of names, one per sample."
        raise TypeError(message)
    positions: dict[str, int] = {}
    for position, value in enumerate(ids):
        if is_missing(value):
            message = f"ids[{position}] is {value!r}. Every sample needs a name."
            raise ValueError(message)
        name = _name(value)
        if name in positions:
            message = (
                f"ids[{position}] is {name!r}, and so is ids[{positions[name]}]. "
                "Names must be unique."
            )
            raise ValueError(message)
        positions[name] = position
    if n_samples is not None and n_samples != len(positions):
        message = f"There are {len(positions)} ids, but n_samples is {n_samples}."
        raise ValueError(message)
    as_n_samples(len(positions))
    return positions


# Writing -----------------------------------------------------------------------------------


def write_csv(path: str | os.PathLike[str], table: PairTable, names: list[str] | None) -> None:
    """Write pairs; the file appears only when it is complete."""
    with atomic(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*REQUIRED, "belief"))
        columns = (table.pairs.tolist(), table.sign.tolist(), table.belief.tolist())
        for (i, j), sign, belief in zip(*columns, strict=True):
            shown = (i, j) if names is None else (names[i], names[j])
            writer.writerow((*shown, "must" if sign > 0 else "cannot", belief))
