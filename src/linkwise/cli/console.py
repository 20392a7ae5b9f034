"""Output of a command: notes and warnings on stderr, progress on a terminal, one-line errors."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import traceback
import unicodedata
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from linkwise._files import FileInUseError
from linkwise._jit import compiling_note
from linkwise._progress import Progress
from linkwise.cli import MISSING_LIBRARY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INFEASIBLE = 1
BAD_INPUT = 2
INTERNAL_ERROR = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
LONGEST_WORD = 300  # letters of a name or a number in a message
LONGEST_TEXT = 5_000
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class BadInput(click.ClickException):
    """Something in the files or options is wrong; the message says what to do."""

    exit_code = BAD_INPUT


class Infeasible(click.ClickException):
    """The constraints cannot all hold; the message names the lines that prove it."""

    exit_code = INFEASIBLE


class ReaderLeftError(Exception):
    """The pipe that reads our output was closed."""


@dataclass
class Console:
    """Where a command prints: results on stdout, everything else on stderr."""

    quiet: bool = False
    json: bool = False
    debug: bool = False
    arguments: tuple[str, ...] = ()  # what was typed
    warnings: list[str] = field(default_factory=list)
    _progress: Progress | None = None

    def note(self, text: str) -> None:
        """Print what is being done, unless the user asked for quiet."""
        if not self.quiet:
            self._print(text)

    def warn(self, text: str) -> None:
        """Print a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)
            self._print(f"Warning: {text}")

    def _print(self, text: str) -> None:
        text = shown(text)
        if self._progress is not None and self._progress.is_drawn:
            self._progress.write(text)  # above the bar, not across it
        else:
            click.echo(text, err=True)

    def summary(self, facts: dict[str, Any]) -> None:
        """Print a machine-readable summary, if it was asked for."""
        if self.json:
            click.echo(json.dumps(_plain(facts), ensure_ascii=False))

    def ask(self, text: str, *, newline: bool = True) -> None:
        """Print a question: on stdout, unless that is for machines."""
        click.echo(text, nl=newline, err=self.json)

    @contextmanager
    def progress(self, name: str) -> Iterator[Progress]:
        """Yield what shows progress: on a terminal, and only if it takes more than two seconds."""
        with Progress(name, 0 if self.quiet else None) as progress:
            self._progress = progress
            try:
                yield progress
            finally:
                self._progress = None
        seconds = compiling_note.done()
        if seconds is not None:
            self.note(f"compiling is done, after {seconds:.0f} s; later runs need not")

    @contextmanager
    def showing_warnings(self) -> Iterator[None]:
        """Turn the library's warnings into lines of ours; warnings for developers are not shown."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)

            def show(message: Warning | str, *_: Any, **__: Any) -> None:
                self.warn(" ".join(str(message).split()))

            warnings.showwarning = show
            yield

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print columns of text; numbers stand on the right."""
        cells = [[printable(cell) for cell in row] for row in (header, *rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        right = [all(_is_number(row[k]) for row in rows) for k in range(len(header))]
        for row in cells:
            parts = [
                cell.rjust(width) if at_right else cell.ljust(width)
                for cell, width, at_right in zip(row, widths, right, strict=True)
            ]
            click.echo("  ".join(parts).rstrip())


def printable(text: str) -> str:
    r"""Return a text of one line in which no character can command the terminal.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return "".join(_escaped(letter) if _is_command(letter) else letter for letter in text)


def _is_command(letter: str) -> bool:
    """Whether a character controls the terminal, breaks the line or turns the text around."""
    return unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} or letter in TURNING


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def shown(text: str, most: int = LONGEST_TEXT) -> str:
    """Return a text for the terminal: without its commands, and long words and texts shortened."""
    lines = [
        " ".join(_shortened(word, LONGEST_WORD) for word in printable(line).split(" "))
        for line in text.split("\n")
    ]
    return _shortened("\n".join(lines), most)


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}...{text[-most // 4 :]} ({len(text):,} characters)"


def counted(number: int, word: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "must-link"), counted(2, "class")
    ('1 must-link', '2 classes')
    """
    plural = "" if number == 1 else "es" if word.endswith("s") else "s"
    return f"{number} {word}{plural}"


def in_options(text: str) -> str:
    """Return a message of the library with the options of the command line.

    >>> in_options('features as given (scaling="standardize" changes that)')
    'features as given (--set scaling=standardize changes that)'
    """
    text = re.sub(r'\bscaling="(\w+)"', r"--set scaling=\1", text)
    return text.replace("linkwise.Linkage", "-m linkage").replace("hard=True", "--set hard=true")


def _is_number(cell: str) -> bool:
    return cell.replace("-", "").replace(".", "").isdigit() or cell in {"", "-"}


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; what is not a number becomes null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def exit_code(error: BaseException, console: Console) -> int:
    """Print an error in one line, and return its exit code."""
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        message = "Interrupted. No file was left half-written."
        click.echo(message, err=True)
        console.summary({"error": message, "exit_code": INTERRUPTED})
        return INTERRUPTED
    if isinstance(error, (BrokenPipeError, ReaderLeftError)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    if console.debug:
        traceback.print_exception(error)
    message, code = _described(error)
    listed = getattr(error, "problems", None)
    if listed is None:
        message = " ".join(message.split())
    message = shown(message)
    click.echo(f"Error: {message}", err=True)
    facts: dict[str, Any] = {"error": message, "exit_code": code}
    if listed is not None:
        facts["problems"] = [problem.text for problem in listed]
        facts["suggestion"] = getattr(error, "suggestion", None)
    console.summary(facts)
    return code


def _described(error: BaseException) -> tuple[str, int]:
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "linkwise"
        return f"{error.format_message()} See: {where} --help", error.exit_code
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}.", BAD_INPUT
    if isinstance(error, MemoryError):
        return "Not enough memory. Use fewer rows, or a method for sparse graphs.", BAD_INPUT
    # By name: the module of ConflictError takes seconds to import.
    code = INFEASIBLE if type(error).__name__ == "ConflictError" else INTERNAL_ERROR
    if isinstance(error, ImportError):
        code = MISSING_LIBRARY
    elif isinstance(error, (ValueError, IndexError, FileInUseError)) and code != INFEASIBLE:
        code = BAD_INPUT
    if code == INTERNAL_ERROR:
        return f"{type(error).__name__}: {error} (a mistake in linkwise; see --debug)", code
    return in_options(str(error)), code
