"""Where DATA come from: a file, or a pipe, which can be read only once."""

from __future__ import annotations

import codecs
import sys
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING, Any, NamedTuple

from linkwise.cli.console import BadInput
from linkwise.cli.formats import FORMATS

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO, TextIO

    from linkwise.cli.requests import DataRequest

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")
ADDRESSES = ("http", "https", "ftp", "s3", "gs")


class Source(NamedTuple):
    """DATA, with their name for messages; `content` is what a pipe held."""

    name: str
    path: Path
    suffix: str
    content: bytes | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.path.stat().st_size if self.content is None else len(self.content)

    def open(self) -> Any:
        """Return what libraries read from: a path, or a file from its beginning."""
        return self.path if self.content is None else BytesIO(self.content)

    def binary(self) -> BinaryIO:
        """Open the content; the caller closes it, also where a library forgets to."""
        return self.path.open("rb") if self.content is None else BytesIO(self.content)

    def text(self, encoding: str) -> TextIO:
        """Open the content as text, with line ends as they are."""
        binary = self.binary()
        try:
            return TextIOWrapper(binary, encoding=encoding, newline="")
        except BaseException:
            binary.close()
            raise

    def encoding(self, asked: str) -> str:
        """Return the encoding to read with; marks that programs write at the beginning count."""
        if asked.lower() not in {"utf-8", "utf8"}:
            return asked
        with self.binary() as file:
            start = file.read(2)
        # A byte order mark, which spreadsheets write, is no part of the first name.
        return "utf-16" if start in UTF16_MARKS else "utf-8-sig"


def is_stdin(path: Path) -> bool:
    """Whether a name stands for what is piped into the program."""
    return str(path) == "-"


def suffix_of(request: DataRequest) -> str:
    """Return the format of DATA as a suffix: as typed, by name, or CSV for a pipe."""
    path = request.data
    if request.format is not None:
        return f".{request.format}"
    if is_stdin(path) or (not path.suffix and path.exists() and not path.is_file()):
        return ".csv"
    return path.suffix.lower()


def source_of(request: DataRequest) -> Source:
    """Find DATA; a pipe is read to its end."""
    path, suffix = request.data, suffix_of(request)
    if not is_stdin(path):
        if path.is_dir():
            raise BadInput(
                f"{path} is a folder, not a file. Of images, give a table with a row for each: a "
                "column with the names of the files (--image COLUMN), and numbers to cluster by."
                if any(path.glob("*.png")) or any(path.glob("*.jp*g"))
                else f"{path} is a folder, not a file."
            )
        if not path.exists():
            is_address = str(path).partition(":/")[0] in ADDRESSES
            remedy = " It is an address: download the file first." if is_address else ""
            raise BadInput(f"There is no file {path}.{remedy}")
    if suffix not in FORMATS:
        message = f"{path}: the name must end in one of {', '.join(FORMATS)}, or use --format."
        remedy = " Unpack the file first." if suffix in PACKED else ""
        raise BadInput(message + remedy)
    if path.is_file():
        return Source(request.name, path, suffix)
    if FORMATS[suffix].needs_file:
        raise BadInput(f"{request.name} is a pipe, but {suffix} needs a file. Save it first.")
    if is_stdin(path):
        return Source(request.name, path, suffix, sys.stdin.buffer.read())
    return Source(request.name, path, suffix, path.read_bytes())
