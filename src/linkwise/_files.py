"""Files that appear only when they are complete, and that one process at a time writes."""

from __future__ import annotations

import os
import secrets
import struct
import sys
import zipfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform != "win32":
    import fcntl

# What numpy, zipfile and zlib raise about damaged archives.
UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, NotImplementedError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
LONGEST_STEM = 40  # of an unfinished file, whose name must not outgrow what the system allows


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; it becomes `path` if the block ends well, and vanishes if not.

    The unfinished file lies in the same folder, so that renaming it is one step for the file
    system, and keeps the suffix, which some writers go by. It is on the disk before it gets its
    name. A link is followed, not replaced. What is no regular file, such as a pipe or a device, is
    written directly. Errors name `path`.

    Parameters
    ----------
    path : str or path-like
        The file to write; its folder exists.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "answer.txt"
    ...     with atomic(path) as unfinished:
    ...         _ = unfinished.write_text("42")
    ...         before = path.exists()
    ...     before, path.read_text()
    (False, '42')
    """
    named = Path(path)
    # Before links are followed: those of /dev/stdout lead to names that cannot be opened.
    if named.exists() and not named.is_file():
        yield named
        return
    final = named.resolve()
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    stem = final.stem[:LONGEST_STEM].lstrip(".")
    unfinished = final.with_name(f".{stem}.{mark}.unfinished{final.suffix}")
    try:
        yield unfinished
        _settle(unfinished, final)
    except OSError as error:
        _rename_in(error, unfinished, named)
        raise
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _settle(unfinished: Path, final: Path) -> None:
    """Put a complete file in its place, so that a crash leaves the old one or the new one."""
    with unfinished.open("rb+") as file:
        os.fsync(file.fileno())
    if final.exists():
        unfinished.chmod(final.stat().st_mode & 0o7777)  # who may read it is up to its owner
    unfinished.replace(final)
    # The new name is safe only when its folder is; systems without this need none.
    with suppress(OSError):
        folder = os.open(final.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _rename_in(error: OSError, unfinished: Path, named: Path) -> None:
    """Let an error speak of the file that the user asked for."""
    if error.errno is None:  # of a library that writes its own messages
        shown = tuple(_renamed(part, unfinished, named) for part in error.args)
        error.args = shown
    elif error.filename is None or str(error.filename) == str(unfinished):
        error.filename = str(named)
        error.filename2 = None


def _renamed(part: Any, unfinished: Path, named: Path) -> Any:
    return part.replace(str(unfinished), str(named)) if isinstance(part, str) else part


def lock(file: IO[Any], path: str | os.PathLike[str]) -> None:
    """Make sure that one process at a time writes to an open file; closing it ends the lock.

    Raises
    ------
    RuntimeError
        If another open file of the same name holds the lock, in this process or another one.
    """
    if sys.platform == "win32":
        return  # no such locks there
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        message = f"Another run is writing to {path}. Wait for it, or choose another path."
        raise RuntimeError(message) from error
