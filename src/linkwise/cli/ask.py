"""``linkwise ask``: one key an answer in the terminal, one line an answer in a pipe."""

from __future__ import annotations

import os
import select
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click
import numpy as np

from linkwise.active import ReviewSession, Session
from linkwise.active.journal import Journal
from linkwise.cli import options
from linkwise.cli.console import BadInput, Infeasible, counted, printable, shown
from linkwise.cli.pairs import error_in_words
from linkwise.cli.tables import text_of
from linkwise.cli.task import load, save_prepared
from linkwise.cli.writing import without_formulas
from linkwise.exceptions import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from linkwise.cli.console import Console
    from linkwise.cli.loading import Given
    from linkwise.cli.requests import AskRequest
    from linkwise.cli.task import Task

    Asked: TypeAlias = Session | ReviewSession

ANSWERS = {"s": "same", "d": "different", "u": "unknown", "?": "unknown"}
KEYS = "s same, d different, u don't know, z undo, q quit"
WORDS = {
    **dict.fromkeys(("same", "s", "yes", "y"), "s"),
    **dict.fromkeys(("different", "d", "no", "n"), "d"),
    **dict.fromkeys(("unknown", "u", "?", "don't know"), "u"),
    **dict.fromkeys(("undo", "z"), "z"),
    **dict.fromkeys(("quit", "q"), "q"),
}
ACCEPTED = (
    "same (s, yes, y), different (d, no, n), unknown (u, ?, don't know), undo (z) or quit (q); "
    "or a line of the keys s, d, u, ?, z, q, such as sdq"
)
SETTINGS = {
    "n_clusters": "-k",
    "strategy": "--strategy",
    "method": "--method",
    "random_state": "--seed",
}
MAX_SHOWN = 20  # columns of a row; the most different ones
WIDEST = 28


class Comparison(NamedTuple):
    """One column of two rows, and how much they differ."""

    name: str
    first: str
    second: str
    difference: float  # in standard deviations; of texts 0 or 1

    @property
    def mark(self) -> str:
        """Nothing for equal values, more signs for more different ones."""
        if self.first == self.second:
            return ""
        return "*" * (1 + int(self.difference >= 1) + int(self.difference >= 2))


def run(request: AskRequest, console: Console, given: Given) -> int:
    """Ask until the user has had enough, or nothing is left to ask."""
    options.limit_threads(request.threads)
    task = load(request, console, given)
    session = _session(request, task)
    save_prepared(task, request, console)
    if session.answers:
        console.note(f"{request.session}: goes on after {len(session.answers)} answers")
    console.note(f"Do these belong together? {KEYS}")
    try:
        with _keys() as key:
            _question_loop(session, task, console, key=key)
    except (BadInput, KeyboardInterrupt):
        _note_where(session, request, console, written=False)
        raise
    if request.output is not None:
        names = task.data.names
        ids = without_formulas(names) if names and request.spreadsheet_safe else names
        session.constraints.to_file(request.output, ids=ids)
        console.note(f"wrote {request.output}")
    _note_where(session, request, console, written=request.output is not None)
    answers = [answer.answer for answer in session.answers]
    console.summary(
        {
            "command": "ask",
            "n_answers": len(answers),
            **{word: answers.count(word) for word in ("same", "different", "unknown")},
            "stability": session.stability,
            "labels": session.labels,
        }
    )
    return 0


def _note_where(session: Asked, request: AskRequest, console: Console, *, written: bool) -> None:
    """Note where the answers are; if nowhere, how to keep them the next time."""
    answers = counted(len(session.answers), "answer")
    are_missing = bool(session.answers) and not written
    if request.session is not None:
        how = "; linkwise ask ... -o pairs.csv writes them as pairs" if are_missing else ""
        console.note(f"{answers} kept in {request.session}{how}")
    elif are_missing:
        how = "--session FILE" if request.output else "-o pairs.csv or --session FILE"
        console.warn(f"{answers} given, but not kept: use {how} to keep them.")


def _session(request: AskRequest, task: Task) -> Asked:
    if request.is_review:
        seed, path = request.seed or 0, request.session
        try:
            return ReviewSession(
                task.prepared, constraints=task.known, random_state=seed, path=path
            )
        except ValueError as error:
            raise BadInput(str(error)) from error
    assert request.n_clusters is not None
    settings: dict[str, Any] = {"n_clusters": request.n_clusters, "constraints": task.known}
    if request.method is not None:
        settings["method"] = options.key_of(options.find_method(request.method))
    if request.strategy is not None:
        settings["strategy"] = request.strategy
    path = request.session
    try:
        if path is not None and path.exists() and path.stat().st_size:
            return _resumed(path, task, {**settings, "random_state": request.seed})
        return Session(task.prepared, **settings, random_state=request.seed or 0, path=path)
    except ConflictError as error:
        words = error_in_words(error, task.data.names, request.n_clusters)
        raise Infeasible(words) from error


def _resumed(path: Path, task: Task, settings: dict[str, Any]) -> Session:
    """Resume a session; errors name the options that differ."""
    try:
        _check_settings(path, settings)
        return Session.load(path, task.prepared, **settings)
    except ConflictError:
        raise
    except ValueError as error:
        if "keeps answers about other data" not in str(error):
            raise BadInput(str(error)) from error
        header, n_rows = Journal(path).header or {}, task.data.n_samples
        differ = "the columns or values differ"
        if header.get("n_samples") != n_rows:
            differ = f"{header.get('n_samples')} rows, and these are {n_rows}"
        raise BadInput(
            f"{path} keeps answers about other data: {differ}. Give the same DATA with the options "
            "of then (such as --drop, --features, --scale), or choose another file."
        ) from error


def _check_settings(path: Path, settings: dict[str, Any]) -> None:
    header = Journal(path).header or {}
    for name, option in SETTINGS.items():
        begun, typed = header.get("seed" if name == "random_state" else name), settings.get(name)
        if typed is None or begun is None or typed == begun:
            continue
        # Without -k there is no question; the others may be left out.
        remedy = f"Use {option} {begun}" if name == "n_clusters" else f"Leave {option} out"
        raise BadInput(
            f"{path} was begun with {option} {begun}, not {option} {typed}. {remedy}, or choose "
            "another file."
        )


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Yield a function that waits for a key: of the terminal, or else of the lines of stdin.

    The terminal is set up once, not for each key, so that what is typed ahead is not lost.
    """
    if not sys.stdin.isatty():
        yield _Lines().key
        return
    try:
        termios, tty = import_module("termios"), import_module("tty")
    except ImportError:  # not POSIX
        yield click.getchar
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSADRAIN)
        yield lambda: _key(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class _Lines:
    """The lines of a pipe as keys; a line is read as a whole, or raises an error."""

    def __init__(self) -> None:
        self._number = 0
        self._keys: list[str] = []

    def key(self) -> str:
        """Return the next key, or an empty text at the end."""
        while not self._keys:
            line = sys.stdin.readline()
            if not line:
                return ""
            self._number += 1
            self._keys = self._parsed(line)
        return self._keys.pop(0)

    def _parsed(self, line: str) -> list[str]:
        words = line.lower().replace("\u2019", "'").split()
        phrase, keys = " ".join(words), "".join(words)
        if phrase in WORDS:
            return [WORDS[phrase]]
        if set(keys) <= {*ANSWERS, "z", "q"}:
            return list(keys)
        raise BadInput(
            f"Line {self._number} of the answers is {_cut(line.strip(), WIDEST).rstrip()!r}, which "
            f"is no answer. Accepted, one a line: {ACCEPTED}."
        )


def _key(terminal: int) -> str:
    """Read one key; those that send several letters, as arrows do, are one key without meaning."""
    first = os.read(terminal, 1)
    if first == b"\x1b":
        while select.select([terminal], [], [], 0)[0]:
            os.read(terminal, 32)
    return first.decode(errors="replace")


def _question_loop(session: Asked, task: Task, console: Console, *, key: Callable[[], str]) -> None:
    while (pair := _next_pair(session, console)) is not None:
        _show_question(session, task, pair, console=console)
        while not (done := _execute(session, task, pair, key=_pressed(key, console))):
            console.ask(f"  {KEYS}")
        if done == "quit":
            console.ask("")  # ends the line of the question
            return
        console.ask(f"  {done}\n")
    console.note("Nothing is left to ask: everything follows from the answers.")


def _next_pair(session: Asked, console: Console) -> tuple[int, int] | None:
    with console.progress("looking for the next question"):
        return session.next()


def _pressed(key: Callable[[], str], console: Console) -> str:
    try:
        return key().lower()
    except EOFError:
        return ""
    except (BadInput, KeyboardInterrupt):
        console.ask("")
        raise


def _execute(session: Asked, task: Task, pair: tuple[int, int], *, key: str) -> str:
    """Do what a key asks for and return what was done; an empty text if it means nothing."""
    if key in {"q", "", "\x04"}:
        return "quit"
    if key == "z":
        return f"took back: {session.undo().answer}" if session.answers else "nothing to undo"
    if key not in ANSWERS:
        return ""
    try:
        session.answer(*pair, ANSWERS[key])
    except ConflictError as error:
        ids = task.data.shown_ids()
        chain = shown(" - ".join(str(ids[sample]) for sample in error.witness))
        return f"not kept: it contradicts earlier answers ({chain}). z takes back the last one."
    return ANSWERS[key]


# Two rows side by side ---------------------------------------------------------------------


def _show_question(session: Asked, task: Task, pair: tuple[int, int], *, console: Console) -> None:
    ids = task.data.shown_ids()
    same_now = session.labels[pair[0]] == session.labels[pair[1]]
    stability = session.stability
    shown = "" if np.isnan(stability) else f", stability {stability:.2f}"
    now = "together" if same_now else "apart"
    console.ask(f"Question {len(session.answers) + 1} (now {now}{shown})")
    cells = compare_rows(task.data, pair)
    header = Comparison("", str(ids[pair[0]]), str(ids[pair[1]]), 0.0)
    lines = [header, *cells]
    texts = [[printable(part) for part in (line.name, line.first, line.second)] for line in lines]
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*texts, strict=True)]
    for line, parts in zip(lines, texts, strict=True):
        shown = "  ".join(_cut(part, width) for part, width in zip(parts, widths, strict=True))
        text = f"  {shown}  {line.mark if line is not header else ''}".rstrip()
        console.ask(click.style(text, bold=True) if line.mark and line is not header else text)
    console.ask("[s/d/u/z/q] ", newline=False)


def _cut(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"


def compare_rows(data: Any, pair: tuple[int, int]) -> list[Comparison]:
    """Return the columns of two rows with their differences: at most 20, the largest ones."""
    if data.X is None:
        return _compare_nodes(data.W, pair)
    if data.frame is None:
        columns = [data.X[:, [k]] for k in range(min(data.X.shape[1], 10_000))]
        values = [np.asarray(c.todense() if hasattr(c, "todense") else c).ravel() for c in columns]
        found = [
            _compared(name, column, pair)
            for name, column in zip(data.feature_names, values, strict=False)
        ]
    else:
        found = [_compared(str(name), data.frame[name], pair) for name in data.frame.columns]
    kept = sorted(sorted(range(len(found)), key=lambda k: -found[k].difference)[:MAX_SHOWN])
    return [found[k] for k in kept]


def _compared(name: str, column: Any, pair: tuple[int, int]) -> Comparison:
    values = np.asarray(column)
    first, second = text_of(values[list(pair)])
    if values.dtype.kind not in "biuf":
        return Comparison(name, first, second, float(first != second))
    spread = float(np.nanstd(values.astype(np.float64)))
    gap = abs(float(values[pair[0]]) - float(values[pair[1]]))
    difference = gap / spread if spread > 0 and np.isfinite(gap) else 0.0
    return Comparison(name, _short(first), _short(second), difference)


def _short(text: str) -> str:
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text


def _compare_nodes(W: Any, pair: tuple[int, int]) -> list[Comparison]:
    """Compare two nodes of a graph: edges, their weight, common neighbours."""
    rows = [W[[sample]] for sample in pair]
    neighbours = [set(row.nonzero()[1].tolist()) for row in rows]
    link, common = float(W[pair[0], pair[1]]), len(neighbours[0] & neighbours[1])
    edges, weights = [len(found) for found in neighbours], [float(row.sum()) for row in rows]
    return [
        Comparison("edges", str(edges[0]), str(edges[1]), 0.0),
        Comparison("weight of edges", f"{weights[0]:.6g}", f"{weights[1]:.6g}", 0.0),
        Comparison("edge between them", f"{link:.6g}", f"{link:.6g}", 0.0),
        Comparison("common neighbours", str(common), str(common), 0.0),
    ]
