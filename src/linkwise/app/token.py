"""The token of a project, kept beside it: a tab that is open works again after a restart.

Who can read the file can open the page, so it is this user's alone. A tab that is open sends the
token to whoever listens on the port, also while the page is not served. So it has an age.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = "-token"
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
MAX_AGE = 12 * 3600.0  # seconds: a day of work
TOKEN = re.compile(rb"[0-9a-f]{32}")


def new_token() -> str:
    """Return a secret of 128 bits."""
    return secrets.token_hex(16)


def kept_token(project: Path, *, anew: bool = False) -> str:
    """Return the token of a project; a new one if there is none that nobody else could read.

    An old one is replaced, and with `anew` any.
    """
    path = project.with_name(project.name + SUFFIX)
    if os.name != "posix":
        return new_token()  # who may read a file is not told by its mode there
    token = None if anew else _read(path)
    if token is None:
        token = new_token()
        with suppress(OSError):  # then it is new the next time, too
            _write(path, token)
    return token


def replace_token(project: Path) -> None:
    """Replace the token of a project if it has one: somebody else may know it."""
    if project.with_name(project.name + SUFFIX).exists():
        kept_token(project, anew=True)


def _read(path: Path) -> str | None:
    """Return the token in a file that belongs to this user alone, unless it is old."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        is_young = time.time() - found.st_mtime < MAX_AGE
        content = os.read(file, 64) if _is_private(found) and is_young else b""
    finally:
        os.close(file)
    return content.decode() if TOKEN.fullmatch(content) else None


def _is_private(found: os.stat_result) -> bool:
    """Whether a file belongs to this user alone. Some file systems have no modes."""
    is_mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    return is_mine and not stat.S_IMODE(found.st_mode) & ~PRIVATE


def _write(path: Path, token: str) -> None:
    """Replace the file by one that was never readable for others."""
    unfinished = path.with_name(f"{path.name}-{secrets.token_hex(4)}")
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(file, "w") as opened:
            if not _is_private(os.fstat(file)):
                raise PermissionError(f"{unfinished}: others may read it")
            opened.write(token)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
