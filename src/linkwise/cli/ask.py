"""``linkwise ask``: one key an answer in the terminal, one line an answer in a pipe."""

from __future__ import annotations

import os
import select
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np

from linkwise.active import ReviewSession, Session
from linkwise.active.answers import constraints_of
from linkwise.active.journal import Journal, fingerprint
from linkwise.active.stopping import may_stop
from linkwise.cli import options
from linkwise.cli.console import BadInput, Infeasible, counted, printable, shown
from linkwise.cli.items import Comparison, compare_rows
from linkwise.cli.pairs import error_in_words
from linkwise.cli.projects import answers_told, n_clusters_of, note_clusters
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
    from linkwise.constraints import Constraints

    Asked: TypeAlias = Session | ReviewSession

ANSWERS = {
    **dict.fromkeys("sy", "same"),
    **dict.fromkeys("dn", "different"),
    **dict.fromkeys("u?", "unknown"),
}
KEYS = "s same, d different, u don't know, z undo, q quit (y and n are s and d)"
PROMPT = "[s/d/u/z/q] "
IN_A_LINE = set("sdu?zq")  # keys that may be typed in one line; with y and n words could be keys
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
WIDEST = 28
MISSING = "missing"


def run(request: AskRequest, console: Console, given: Given) -> int:
    """Ask until the user has had enough, or nothing is left to ask."""
    options.limit_threads(request.threads)
    task = load(request, console, given, has_project=request.project is not None)
    session = _session(request, task, console)
    save_prepared(task, request, console)
    if session.answers:
        console.note(f"{request.session or request.project}: goes on after {_told(session)}")
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
        _pairs(session, task).to_file(request.output, ids=ids)
        console.note(f"wrote {request.output}")
    _note_where(session, request, console, written=request.output is not None)
    answers = [answer.answer for answer in session.answers]
    console.summary(
        {
            "command": "ask",
            "n_answers": len(answers),
            **{word: answers.count(word) for word in ("same", "different", "unknown")},
            **_state_of(session),
            "labels": session.labels,
        }
    )
    return 0


def _state_of(session: Asked) -> dict[str, Any]:
    """Return how many clusters there are, and how far they are settled."""
    if isinstance(session, ReviewSession):
        return {"n_clusters": int(np.unique(session.labels).size), "stability": session.stability}
    return {
        "n_clusters": session.n_clusters_now,
        "still_to_change": session.still_to_change,
        "stability": session.stability,
    }


def _note_where(session: Asked, request: AskRequest, console: Console, *, written: bool) -> None:
    """Note where the answers are; if nowhere, how to keep them the next time."""
    answers = _told(session)
    are_missing = bool(session.answers) and not written
    if request.session is not None or request.project is not None:
        how = "; linkwise ask ... -o pairs.csv writes them as pairs" if are_missing else ""
        console.note(f"{answers} kept in {request.session or request.project}{how}")
    elif are_missing:
        how = "--session FILE" if request.output else "-o pairs.csv or --session FILE"
        console.warn(f"{answers} given, but not kept: use {how} to keep them.")


def _told(session: Asked) -> str:
    """Return how many answers there are; of a project, as many as the page says."""
    facts = getattr(session, "facts", None)
    return counted(len(session.answers), "answer") if facts is None else answers_told(facts)


def _pairs(session: Asked, task: Task) -> Constraints:
    """Return what is known; of a project with the beliefs that the page exports.

    That answers may be wrong is a matter of clustering, and no belief of who gave them.
    """
    if not hasattr(session, "facts"):
        return session.constraints
    return constraints_of(session.answers, task.known, noisy=False)


def _session(request: AskRequest, task: Task, console: Console) -> Asked:
    if request.project is not None:
        return _in_project(request, task, console)
    if request.is_review:
        seed, path = request.seed or 0, request.session
        try:
            return ReviewSession(
                task.prepared, constraints=task.known, random_state=seed, path=path
            )
        except ValueError as error:
            raise BadInput(str(error)) from error
    settings: dict[str, Any] = {"constraints": task.known}
    if request.n_clusters is not None:
        settings["n_clusters"] = request.n_clusters
    if request.method is not None:
        settings["method"] = options.key_of(options.find_method(request.method))
    if request.strategy is not None:
        settings["strategy"] = request.strategy
    path = request.session
    try:
        if path is not None and path.exists() and path.stat().st_size:
            return _resumed(path, task, {**settings, "random_state": request.seed})
        settings = {"n_clusters": "auto", **settings, "random_state": request.seed or 0}
        return Session(task.prepared, **settings, path=path)
    except ConflictError as error:
        k = request.n_clusters or task.data.n_samples
        raise Infeasible(error_in_words(error, task.known, task.data.names, k)) from error
    except ValueError as error:
        if "needs the number of clusters" in str(error):
            raise BadInput(f"{error} Say it with -k, for example -k 3.") from error
        raise


def _in_project(request: AskRequest, task: Task, console: Console) -> Session:
    """Return a session that reads and writes a project of ``linkwise serve``."""
    project, terminal = (import_module(f"linkwise.app.{name}") for name in ("project", "terminal"))
    names = [str(name) for name in task.data.shown_ids()]
    try:
        opened = project.Project(request.project, names, fingerprint(task.prepared.X))
    except project.WrongProjectError as error:
        raise BadInput(str(error)) from error
    note_clusters(opened, request.n_clusters, console)
    k = n_clusters_of(opened, request.n_clusters) or "auto"
    made: Session = terminal.ProjectSession(
        task.prepared, k, project=opened, constraints=task.known, random_state=request.seed or 0
    )
    return made


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
        is_given = name == "n_clusters" and begun != "auto"
        remedy = f"Use {option} {begun}" if is_given else f"Leave {option} out"
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
        if set(keys) <= IN_A_LINE:
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
            console.ask(PROMPT, newline=False)
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
        try:
            return f"took back: {session.undo().answer}"
        except ValueError:
            return "nothing to undo"
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
    console.ask(f"Question {len(session.answers) + 1} ({_where_it_stands(session, pair)})")
    cells = compare_rows(task.data, pair)
    header = Comparison("", str(ids[pair[0]]), str(ids[pair[1]]), 0.0)
    lines = [header, *cells]
    texts = [
        [printable(part) for part in (line.name, line.first or MISSING, line.second or MISSING)]
        for line in lines
    ]
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*texts, strict=True)]
    for line, parts in zip(lines, texts, strict=True):
        shown = "  ".join(_cut(part, width) for part, width in zip(parts, widths, strict=True))
        text = f"  {shown}  {line.mark if line is not header else ''}".rstrip()
        console.ask(click.style(text, bold=True) if line.mark and line is not header else text)
    console.ask(PROMPT, newline=False)


def _where_it_stands(session: Asked, pair: tuple[int, int]) -> str:
    """Return how the pair is clustered now, and how far the clustering is settled."""
    if isinstance(session, ReviewSession):
        same = session.labels[pair[0]] == session.labels[pair[1]]
        return "now together" if same else "now apart"
    labels = session.provisional
    parts = ["now together" if labels[pair[0]] == labels[pair[1]] else "now apart"]
    if not isinstance(session.n_clusters, int):
        parts.append(counted(session.n_clusters_now, "cluster"))
    if session.answers:
        still = session.still_to_change
        stop = ": you can stop" if may_stop(still, len(session.answers)) else ""
        parts.append(f"{still:.0%} of the rows may still move{stop}")
    return ", ".join(parts)


def _cut(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"
