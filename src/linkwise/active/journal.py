"""A file of answers: one JSON object a line, on the disk before the answer counts.

The first line holds the settings of the session. A process can die at any moment: what follows the
last line break was never reported as written, and is cut off when the file is opened again. A
write that fails leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise._files import atomic, lock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import FileIO
    from pathlib import Path

FORMAT = "linkwise session 1"


def fingerprint(data: Any) -> str:
    """Return a hash of the shape and the values of an array or a sparse matrix."""
    parts = [np.asarray(data)] if not issparse(data) else _sorted_parts(data)
    digest = hashlib.sha256(repr(tuple(data.shape)).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _sorted_parts(data: Any) -> list[np.ndarray[Any, Any]]:
    A = csr_array(data, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    return [A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data]


class Journal:
    """The file of a session; only one session at a time may add to it.

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
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: dict[str, Any] | None = None
        content = _content(path)
        self._end = len(content)
        records = _records(path, content)
        if records:
            self.header = records[0]
        self.records = records[1:]

    def begin(self, header: dict[str, Any]) -> None:
        """Write the first line."""
        self._end = write(self.path, [header])
        self.header = header

    def append(self, record: dict[str, Any]) -> None:
        """Add a record; it is on the disk when this returns, and not at all if this fails.

        Raises
        ------
        RuntimeError
            If another session wrote to the file: the two may contradict each other.
        """
        # Without a buffer, which would try to write the rest of a failed line when it is closed.
        with self.path.open("r+b", buffering=0) as file:
            lock(file, self.path)
            self._check_unchanged(file)
            try:
                self._end = _appended(file, _line(record))
            except BaseException:  # an interrupt, too, would leave half a line
                file.truncate(self._end)
                raise

    def _check_unchanged(self, file: FileIO) -> None:
        if file.seek(0, os.SEEK_END) == self._end:
            file.seek(0)
            # Of the same length, but begun by another session at the same moment?
            if json.loads(file.readline()) == self.header:
                return
        raise RuntimeError(
            f"Another session wrote to {self.path} after this one had read it; this answer is not "
            "recorded. Session.load goes on with what the file holds now; use one session per file."
        )


def _content(path: Path) -> bytes:
    """Return the complete lines of a file, and cut off the rest."""
    if not path.exists():
        return b""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole in {0, len(content)}:  # a header is never torn: `write` puts whole files in place
        return content
    _records(path, content[:whole])  # what is no session is left as it is
    with path.open("r+b") as file:
        lock(file, path)
        content = file.read()  # what looked torn may have been in the middle of a write
        whole = content.rfind(b"\n") + 1
        file.truncate(whole)
        os.fsync(file.fileno())
    return content[:whole]


def _records(path: Path, content: bytes) -> list[dict[str, Any]]:
    lines = content.splitlines()
    if not content.endswith(b"\n") and content:
        _raise_not_a_record(path, 1)
    records = [_parsed(path, number, line) for number, line in enumerate(lines, 1)]
    if records and records[0].get("format") != FORMAT:
        raise ValueError(
            f"{path} begins with {lines[0][:60]!r}, which is not the header of a session "
            f"({FORMAT!r}). Choose another path."
        )
    return records


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        _raise_not_a_record(path, number)
    if not isinstance(record, dict):
        _raise_not_a_record(path, number)
    return record


def _raise_not_a_record(path: Path, number: int) -> NoReturn:
    raise ValueError(f"Line {number} of {path} is not a record of a session. Choose another path.")


def _appended(file: FileIO, line: bytes) -> int:
    """Write a line at the end and return where it ends, on the disk."""
    end = file.seek(0, os.SEEK_END) + len(line)
    while line:  # the system may take a part at a time
        line = line[file.write(line) :]
    os.fsync(file.fileno())
    return end


def write(path: Path, records: Sequence[dict[str, Any]]) -> int:
    """Write a whole file, in place of an old one only when it is complete; return its length."""
    content = b"".join(map(_line, records))
    with atomic(path) as unfinished:
        unfinished.write_bytes(content)
    return len(content)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


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
