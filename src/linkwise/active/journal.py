"""A file of answers: one JSON object a line, on the disk before the answer counts.

The first line holds the settings of the session. A process can die at any moment: what follows the
last line break was never reported as written, and is cut off when the file is opened again. A
write that fails leaves nothing behind.

Each line ends with a checksum of itself and of all lines before it: a changed byte, a lost or a
repeated line is named, and never read as another answer. Files of format 1 have none.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from zlib import crc32

import numpy as np

from linkwise._files import FileInUseError, atomic, create, lock
from linkwise._inputs import is_sparse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import FileIO
    from pathlib import Path

FORMAT = "linkwise session 2"
WITHOUT_CHECKS = "linkwise session 1"
SETTINGS = {
    "data": str,
    "n_samples": int,
    "n_clusters": int,
    "strategy": str,
    "method": str,
    "noisy": bool,
    "seed": int,
}


def fingerprint(data: Any) -> str:
    """Return a hash of the shape and the values of an array or a sparse matrix."""
    parts = [np.asarray(data)] if not is_sparse(data) else _sorted_parts(data)
    digest = hashlib.sha256(repr(tuple(data.shape)).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _sorted_parts(data: Any) -> list[np.ndarray[Any, Any]]:
    from scipy.sparse import csr_array  # noqa: PLC0415  (it is imported: the data are sparse)

    A = csr_array(data, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    return [A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data]


class Mark(NamedTuple):
    """The end of a file: its length and the checksum of its last line; None if there are none."""

    end: int = 0
    check: int | None = 0


class Journal:
    """The file of a session; only one session at a time may add to it.

    Who uses it keeps the `Mark` of what it knows to be in the file. After an `append` that did
    not return, for whatever reason, `roll_back` to that mark makes the file agree with it.

    Parameters
    ----------
    path : Path
        The file. If it is missing or empty it has to `begin`. A torn last line is cut off.

    Attributes
    ----------
    header : dict or None
        The first line; None if the file is missing or empty.
    records : list of dict
        The lines after it, as they were when the file was opened.
    mark : Mark
        Where they end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        records, self.mark = _records(path, _content(path))
        self.header = records[0] if records else None
        self.records = records[1:]
        self._file: FileIO | None = None
        self._pending: tuple[int, bytes] | None = None  # where a line is written

    def begin(self, header: dict[str, Any]) -> Mark:
        """Write the first line.

        Raises
        ------
        FileInUseError
            If another session has begun the file in the meantime.
        """
        content, mark = _encoded([header])
        create(self.path, content)
        self.header = header
        return mark

    def append(self, record: dict[str, Any], after: Mark) -> Mark:
        """Add a record; it is on the disk when this returns. If it does not, `roll_back`.

        Raises
        ------
        FileInUseError
            If another session wrote to the file: the two may contradict each other.
        """
        self.roll_back(after)
        line, mark = _encoded([record], after)
        # Without a buffer, which would try to write the rest of a failed line when it is closed.
        self._file = self.path.open("r+b", buffering=0)
        lock(self._file, self.path)
        self._check_unchanged(self._file, after)
        self._pending = (after.end, line)
        _write_all(self._file, line)
        self._close()
        return mark

    def roll_back(self, to: Mark) -> None:
        """Cut off what an `append` wrote that did not return, or whose mark was not kept."""
        try:
            if self._pending is not None and self._pending[0] == to.end:
                self._cut_off(*self._pending)
                self._pending = None
        finally:
            self._close()

    def _cut_off(self, end: int, line: bytes) -> None:
        if self._file is None or self._file.closed:
            self._file = self.path.open("r+b", buffering=0)
            lock(self._file, self.path)
        self._file.seek(end)
        if line.startswith(self._file.read()):  # otherwise another session went on
            self._file.truncate(end)

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _check_unchanged(self, file: FileIO, after: Mark) -> None:
        if file.seek(0, os.SEEK_END) == after.end:
            file.seek(0)
            # Of the same length, but another one that was put in its place?
            if _without_check(json.loads(file.readline())) == self.header:
                return
        raise FileInUseError(
            f"Another session wrote to {self.path} after this one had read it; this answer is not "
            "recorded. Session.load goes on with what the file holds now; use one session per file."
        )


# Lines -------------------------------------------------------------------------------------


def _encoded(records: Sequence[dict[str, Any]], after: Mark | None = None) -> tuple[bytes, Mark]:
    """Return records as lines, and the mark after them."""
    end, check = Mark() if after is None else after
    lines = []
    for record in records:
        body = json.dumps(record).encode()[:-1]
        if check is None:
            lines.append(body + b"}\n")
        else:
            check = crc32(body, check)
            lines.append(body + b', "check": "%08x"}\n' % check)
        end += len(lines[-1])
    return b"".join(lines), Mark(end, check)


def _content(path: Path) -> bytes:
    """Return the complete lines of a file, and cut off the rest."""
    if not path.exists():
        return b""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole in {0, len(content)}:  # a header is never torn: `create` puts whole files in place
        return content
    _records(path, content[:whole])  # what is no session is left as it is
    _check_torn(path, content, whole)
    with path.open("r+b") as file:
        lock(file, path)
        content = file.read()  # what looked torn may have been in the middle of a write
        whole = content.rfind(b"\n") + 1
        file.truncate(whole)
        os.fsync(file.fileno())
    return content[:whole]


def _check_torn(path: Path, content: bytes, whole: int) -> None:
    """Raise ValueError if a last line was complete, and only its line break was changed."""
    try:
        _records(path, content[:-1] + b"\n")
    except ValueError:
        return
    _raise_damaged(path, content.count(b"\n", 0, whole) + 1)


def _records(path: Path, content: bytes) -> tuple[list[dict[str, Any]], Mark]:
    """Return what the lines of a file say, and the mark after them."""
    if not content:
        return [], Mark()
    if not content.endswith(b"\n"):
        _raise_not_a_record(path, 1)
    lines = content.splitlines(keepends=True)
    records, mark = [], Mark()
    for number, line in enumerate(lines, 1):
        record = _parsed(path, number, line)
        if number == 1:
            _check_header(path, record, line)
            mark = Mark(0, None if record["format"] == WITHOUT_CHECKS else 0)
        if mark.check is None:
            mark = Mark(mark.end + len(line), None)
        else:
            expected, mark = _encoded([_without_check(record)], mark)
            if line != expected:
                _raise_damaged(path, number)
        records.append(_without_check(record))
    return records, mark


def _without_check(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "check"}


def _check_header(path: Path, header: dict[str, Any], line: bytes) -> None:
    if header.get("format") not in (FORMAT, WITHOUT_CHECKS):
        raise ValueError(
            f"{path} begins with {line[:60]!r}, which is not the header of a session "
            f"({FORMAT!r}). Choose another path."
        )
    kinds = {name: type(header.get(name)) for name in SETTINGS}
    if header.get("n_clusters") == "auto":
        kinds["n_clusters"] = int
    if kinds != SETTINGS or ("check" in header) != (header["format"] == FORMAT):
        _raise_damaged(path, 1)


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        _raise_not_a_record(path, number)
    if not isinstance(record, dict):
        _raise_not_a_record(path, number)
    return record


def _raise_not_a_record(path: Path, number: int) -> NoReturn:
    raise ValueError(f"Line {number} of {path} is not a record of a session. Choose another path.")


def _raise_damaged(path: Path, number: int) -> NoReturn:
    before = "The lines before it are sound: go on with a copy of these." if number > 1 else ""
    raise ValueError(
        f"Line {number} of {path} is damaged: it is not what was written there. "
        f"{before or 'Choose another path.'}"
    )


def _write_all(file: FileIO, line: bytes) -> None:
    """Write a line at the end, to the disk."""
    file.seek(0, os.SEEK_END)
    while line:  # the system may take a part at a time
        line = line[file.write(line) :]
    os.fsync(file.fileno())


def write(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write a whole file, in place of an old one only when it is complete."""
    with atomic(path) as unfinished:
        unfinished.write_bytes(_encoded(records)[0])


def check_settings(path: Path, header: dict[str, Any], settings: dict[str, Any]) -> None:
    """Raise ValueError if a file was begun with other data or other settings."""
    if header["data"] != settings["data"]:
        raise ValueError(
            f"{path} keeps answers about other data ({header['n_samples']} samples; these are "
            f"{settings['n_samples']}, or other values). Give the data it was begun with, or "
            "choose another path."
        )
    for name in ("n_clusters", "strategy", "method", "noisy", "seed"):
        if header[name] != settings[name]:
            raise ValueError(
                f"{path} was begun with {name}={header[name]!r}, not {settings[name]!r}. "
                "Session.load takes the settings from the file; for others choose another path."
            )
