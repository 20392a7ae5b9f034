"""The file of a run: one line of JSON a fit, in the order they were done.

The first line holds the settings. A run may be stopped at any moment, by any means: lines are only
ever appended, and a last line that was not written to its end is dropped by the next run. Every
line ends with a checksum of itself, or none does: files of older versions have none, and get none.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

from linkwise._files import lock
from linkwise.evaluate.estimators import by_name_only, is_partly_seen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import IO

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, int, int]

KIND = "linkwise learning curve, format 1"
BEGINNING = f'{{"file": "{KIND}"'
PLAIN = ("random_state", "kind", "nested", "metrics", "affinity", "linkwise")
NAMED = ("data", "methods")
HEADER = {"file", "settings"}  # what the first line holds


def key_of(row: Row) -> Key:
    """Return what identifies a fit."""
    return row["data"], row["method"], row["amount"], row["draw"]


class Store:
    """The rows of a run, read from a file and added to it.

    Parameters
    ----------
    path : str, path-like or None
        The file; None to keep rows in memory only.
    settings : dict
        What the numbers depend on: plain values, and under ``data`` and ``methods`` a description
        by name. A file with other settings raises ValueError. Names that it lacks are added to it.
    """

    def __init__(self, path: str | os.PathLike[str] | None, settings: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.settings = settings
        self.rows: dict[Key, Row] = {}
        self._file: IO[bytes] | None = None
        self._checked = True

    def __enter__(self) -> Store:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b")
            try:
                lock(self._file, self.path)
                self._resume(self._file, self.path)
            except BaseException:
                self._file.close()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def add(self, row: Row) -> None:
        """Keep a row; a later row of the same fit replaces the earlier one."""
        self.rows[key_of(row)] = row
        self._write(row)

    def _resume(self, file: IO[bytes], path: Path) -> None:
        header, records, good = _read(file, path)
        file.truncate(good)
        self._checked = header is None or _starts_checked(file)
        if header is None:
            self._write({"file": KIND, "settings": self.settings})
            return
        stored, self.rows = _merged(header, records)
        more = _additions(stored, self.settings, path)
        self._warn_of_code(stored, path)
        if any(more.values()):
            self._write({"more": more})

    def _warn_of_code(self, stored: dict[str, Any], path: Path) -> None:
        """Warn of functions that may have changed, as far as can be seen."""
        answered = {method for _, method, *_ in self.rows}
        known = {name: text for name, text in stored["methods"].items() if name in answered}
        asked = self.settings["methods"]
        unverified = [
            repr(name)
            for name in known.keys() & asked.keys()
            if is_partly_seen(asked[name]) or known[name] != asked[name]
        ]
        kind = self.settings["kind"]
        if self.rows and (is_partly_seen(kind) or stored["kind"] != kind):
            unverified.append("kind")
        if unverified:
            message = (
                f"{path} holds results of {', '.join(sorted(unverified))}. Of a function only the "
                "code is compared, not the values that a closure or a lambda takes from outside; "
                "and in older files only the name. If anything was changed, take a new file."
            )
            warnings.warn(message, UserWarning, stacklevel=4)

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(_line(record, checked=self._checked))
            self._file.flush()


def read_rows(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Row]]:
    """Return the settings and the rows of a file, without changing it."""
    path = Path(path)
    with path.open("rb") as file:
        header, records, _ = _read(file, path)
    if header is None:
        raise ValueError(f"{path} holds no settings yet: its run was stopped before it began.")
    settings, rows = _merged(header, records)
    return settings, list(rows.values())


def _merged(header: dict[str, Any], records: list[Row]) -> tuple[dict[str, Any], dict[Key, Row]]:
    """Return the settings, with what was added later, and the last row of each fit."""
    settings, rows = header["settings"], {}
    for record in records:
        if "more" in record:
            for part in NAMED:
                settings[part] |= record["more"][part]
        else:
            rows[key_of(record)] = record
    return settings, rows


def _read(file: IO[bytes], path: Path) -> tuple[dict[str, Any] | None, list[Row], int]:
    """Return the header, the other records, and where the last complete line ends."""
    file.seek(0)
    content = file.read()
    beginning = BEGINNING.encode()
    if not content.startswith(beginning) and not beginning.startswith(content):
        raise ValueError(
            f"{path} is not the file of a learning curve: it does not start with {BEGINNING}. "
            "It was left as it is. Choose another path."
        )
    good = content.rfind(b"\n") + 1
    lines = content[:good].splitlines()
    if _has_check(content[good:-1]):  # complete, but for a line break that was changed
        lines.append(content[good:])
    records = list(_records(lines, path))
    # A last line without its end was cut off while it was written.
    return (records[0], records[1:], good) if records else (None, [], 0)


def _starts_checked(file: IO[bytes]) -> bool:
    file.seek(0)
    return _has_check(file.readline().rstrip())


def _has_check(line: bytes) -> bool:
    """Whether a line ends with the checksum of what it holds."""
    body, _, check = line.rpartition(b", ")
    return check == _check(body)


def _check(body: bytes) -> bytes:
    return b'"check": "%08x"}' % crc32(body)


def _records(lines: list[bytes], path: Path) -> Iterator[dict[str, Any]]:
    checked = bool(lines) and _has_check(lines[0])
    for number, line in enumerate(lines, start=1):
        try:
            record = _unchecked(line, checked=checked)
            _check_record(record, number)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{path}, line {number} is damaged: {line[:60]!r}. Only the last line can be cut "
                "off by a stopped run, so something else wrote here. Delete the line to compute "
                "it again."
            ) from error
        yield {
            name: math.nan if value is None and number > 1 else value
            for name, value in record.items()
        }


def _unchecked(line: bytes, *, checked: bool) -> dict[str, Any]:
    """Return the record of a line; ValueError if its checksum is wrong, or out of place."""
    if _has_check(line) is not checked:
        raise ValueError(f"wrong or unexpected checksum: {line[-30:]!r}")
    record: dict[str, Any] = json.loads(line.rpartition(b", ")[0] + b"}" if checked else line)
    return record


def _check_record(record: dict[str, Any], number: int) -> None:
    """Raise KeyError, TypeError or ValueError if a record is not what its place asks for."""
    if number == 1 and set(record) != HEADER:  # for example a checksum under a damaged name
        raise ValueError(f"the first line holds {sorted(record)}")
    if number > 1 and "more" not in record:
        key_of(record)
        return
    named = record["settings"] if number == 1 else record["more"]
    for part in NAMED:
        named[part].items()


def _line(record: dict[str, Any], *, checked: bool) -> bytes:
    # JSON has no nan; null stands for it.
    plain = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in record.items()
    }
    line = json.dumps(plain, allow_nan=False).encode()
    return line[:-1] + b", " + _check(line[:-1]) + b"\n" if checked else line + b"\n"


def _additions(stored: dict[str, Any], asked: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the data sets and methods that the file does not know, if nothing else differs."""
    for name in PLAIN:
        _check_same(path, name, stored=stored.get(name), asked=asked[name])
    more: dict[str, Any] = {}
    for part in NAMED:
        for name in stored[part].keys() & asked[part].keys():
            values = {"stored": stored[part][name], "asked": asked[part][name]}
            _check_same(path, f"{part}[{name!r}]", **values)
        more[part] = {n: v for n, v in asked[part].items() if n not in stored[part]}
    return more


def _check_same(path: Path, name: str, *, stored: Any, asked: Any) -> None:
    is_same = stored == asked or (isinstance(asked, str) and stored == by_name_only(asked))
    if not is_same:
        raise ValueError(
            f"{path} was made with other settings: {name} is {stored!r} there, and {asked!r} now. "
            "Mixed in one table, the numbers would mean nothing. Repeat the call with the "
            "settings of the file, or choose another path."
        )
