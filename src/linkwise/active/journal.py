"""A file that keeps answers: one JSON object a line, appended and on the disk before it counts.

The first line says what the answers are about. A process can die at any moment: what follows the
last line break was never reported as kept, and is cut off when the file is opened again.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy.sparse import csr_array, issparse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["FORMAT", "append", "fingerprint", "read", "write"]

FORMAT = "linkwise session 1"


def fingerprint(data: Any) -> str:
    """Return a hash of the shape and the values of an array or a sparse matrix."""
    parts = [np.asarray(data)] if not issparse(data) else _canonical(data)
    digest = hashlib.sha256(repr(tuple(data.shape)).encode())
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _canonical(data: Any) -> list[np.ndarray[Any, Any]]:
    A = csr_array(data, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    return [A.indptr.astype(np.int64), A.indices.astype(np.int64), A.data]


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """Return the header and the records of a file; None if it is missing or empty.

    A torn last line is cut off.
    """
    if not path.exists():
        return None
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    lines = content[:whole].splitlines()
    if content and not lines:  # a header is never torn: `write` puts whole files in place
        _refuse(path, 1)
    records = [_parsed(path, number, line) for number, line in enumerate(lines, 1)]
    if records and records[0].get("format") != FORMAT:
        message = (
            f"{path} begins with {lines[0][:60]!r}, which is not the header of a session "
            f"({FORMAT!r}). Choose another path."
        )
        raise ValueError(message)
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
            os.fsync(file.fileno())
    return (records[0], records[1:]) if records else None


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        _refuse(path, number)
    if not isinstance(record, dict):
        _refuse(path, number)
    return record


def _refuse(path: Path, number: int) -> NoReturn:
    message = f"Line {number} of {path} is not a record of a session. Choose another path."
    raise ValueError(message)


def append(path: Path, record: dict[str, Any]) -> None:
    """Add a record; it is on the disk when this returns."""
    with path.open("ab") as file:
        file.write(_line(record))
        file.flush()
        os.fsync(file.fileno())


def write(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write a whole file, in place of an old one only when it is complete."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with draft.open("wb") as file:
        file.write(b"".join(map(_line, records)))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    if os.name == "posix":  # the name of a new file is on the disk when its folder is
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"
