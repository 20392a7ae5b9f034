"""Replies of a model, kept in a file so that no question is paid for twice.

One JSON object a line, each with a checksum of its own. A process can die at any moment, and two
may write at once: a line that is torn or damaged is left out, and its question is asked again.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from threading import Lock
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = b'{"key": "'  # of every line


class ReplyCache:
    """Replies by question.

    Parameters
    ----------
    path : Path or None
        The file; None keeps replies in memory only. A missing file is made with the first reply.

    Attributes
    ----------
    n_damaged : int
        Lines of the file that were left out.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.n_damaged = 0
        self._lock = Lock()  # threads may ask at once
        self._replies: dict[str, str] = {}
        if path is not None and path.exists():
            self._read(path)

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, key: str) -> str | None:
        """Return the reply to a question; None if there is none."""
        return self._replies.get(key)

    def put(self, key: str, reply: str) -> None:
        """Keep a reply; it is on the disk when this returns."""
        with self._lock:
            if self.path is not None:
                _append(self.path, _line(key, reply))
            self._replies[key] = reply

    def _read(self, path: Path) -> None:
        content = path.read_bytes()
        *lines, _torn = content.split(b"\n")  # what follows the last line break was never reported
        found = [_parsed(line) for line in lines if line]
        self._replies = dict(one for one in found if one is not None)
        self.n_damaged = sum(one is None for one in found)
        if content and not self._replies and not content.startswith(BEGIN):
            raise ValueError(
                f"{path} begins with {content[:40]!r}, and is no file of replies. Choose another "
                "path."
            )
        if self.n_damaged:
            warnings.warn(
                f"{path} has {self.n_damaged} damaged lines, which were left out: what they "
                "answered is asked again.",
                UserWarning,
                stacklevel=4,
            )


def question_key(*parts: str) -> str:
    """Return a short name of a question, another one for other parts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _line(key: str, reply: str) -> bytes:
    body = json.dumps({"key": key, "reply": reply}).encode()[:-1]
    return body + b', "check": "%08x"}\n' % crc32(body)


def _parsed(line: bytes) -> tuple[str, str] | None:
    """Return the question and the reply of a line; None if it is not what was written."""
    try:
        record = json.loads(line)
        key, reply = record["key"], record["reply"]
        is_whole = (
            isinstance(key, str) and isinstance(reply, str) and _line(key, reply) == line + b"\n"
        )
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return (key, reply) if is_whole and {type(key), type(reply)} == {str} else None


def _append(path: Path, line: bytes) -> None:
    """Add a line in one write, on a line of its own even after a torn one."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.lseek(file, 0, os.SEEK_END)
        if size:
            os.lseek(file, size - 1, os.SEEK_SET)
            line = line if os.read(file, 1) == b"\n" else b"\n" + line
        while line:  # the system may take a part at a time
            line = line[os.write(file, line) :]
        os.fsync(file)
    finally:
        os.close(file)
