"""Files that appear only when they are complete, and that one process at a time writes."""

from __future__ import annotations

import errno
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


class FileInUseError(RuntimeError):
    """Another process, or another part of this one, writes to a file."""


def resolved(path: str | os.PathLike[str]) -> Path:
    """Follow links; OSError if they lead in a circle, in all versions of Python."""
    try:
        return Path(path).resolve()
    except RuntimeError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


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
    final = resolved(named)
    with _unfinished(final, named) as unfinished:
        if final.exists():
            _make_as_private(unfinished, final)
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        unfinished.replace(final)
        _sync_folder(final)


def create(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that is missing or empty: complete, or not at all.

    Raises
    ------
    FileInUseError
        If somebody else has begun the file in the meantime.
    """
    final = resolved(path)
    with _unfinished(final, Path(path)) as unfinished:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(unfinished, final)  # unlike renaming, this fails if the name is taken
        except FileExistsError:
            _replace_empty(unfinished, final)
        except OSError:  # a file system without links
            with final.open("xb") as file:
                file.write(content)
        _sync_folder(final)


def _replace_empty(unfinished: Path, final: Path) -> None:
    with final.open("r+b") as file:
        lock(file, final)
        is_there = final.stat().st_ino == os.fstat(file.fileno()).st_ino
        if not is_there or file.seek(0, os.SEEK_END):
            message = f"Another run began {final} at the same moment. Choose another path."
            raise FileInUseError(message)
        _make_as_private(unfinished, final)
        unfinished.replace(final)


@contextmanager
def _unfinished(final: Path, named: Path) -> Iterator[Path]:
    """Yield a name beside a file, which is gone in the end; errors speak of the file itself."""
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    stem = final.stem[:LONGEST_STEM].lstrip(".")
    unfinished = final.with_name(f".{stem}.{mark}.unfinished{final.suffix}")
    try:
        yield unfinished
    except OSError as error:
        _rename_in(error, unfinished, named)
        raise
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _make_as_private(unfinished: Path, final: Path) -> None:
    """Let those read the new file who may read the old one, before anything is in it."""
    unfinished.touch(mode=0o600)
    unfinished.chmod(final.stat().st_mode & 0o7777)


def _sync_folder(final: Path) -> None:
    """Put a new name on the disk; systems without this need none."""
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
    FileInUseError
        If another open file of the same name holds the lock, in this process or another one.
    """
    if sys.platform == "win32":
        return  # no such locks there
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        message = f"Another run is writing to {path}. Wait for it, or choose another path."
        raise FileInUseError(message) from error
