"""The token of a project, kept beside it: a tab that is open works again after a restart.

Who can read the file can open the page, so it is this user's alone. It is of use only while the
page is served, and only on this machine.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = "-token"
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
TOKEN = re.compile(rb"[0-9a-f]{32}")


def new_token() -> str:
    """Return a secret of 128 bits."""
    return secrets.token_hex(16)


def kept_token(project: Path) -> str:
    """Return the token of a project; a new one if there is none that nobody else could read."""
    path = project.with_name(project.name + SUFFIX)
    if os.name != "posix":
        return new_token()  # who may read a file is not told by its mode there
    token = _read(path)
    if token is None:
        token = new_token()
        with suppress(OSError):  # then it is new the next time, too
            _write(path, token)
    return token


def _read(path: Path) -> str | None:
    """Return the token in a file that belongs to this user alone."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        is_private = stat.S_ISREG(found.st_mode) and not stat.S_IMODE(found.st_mode) & ~PRIVATE
        content = os.read(file, 64) if is_private and found.st_uid == os.geteuid() else b""
    finally:
        os.close(file)
    return content.decode() if TOKEN.fullmatch(content) else None


def _write(path: Path, token: str) -> None:
    """Replace the file by one that was never readable for others."""
    unfinished = path.with_name(f"{path.name}-{secrets.token_hex(4)}")
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(file, "w") as opened:
            opened.write(token)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
