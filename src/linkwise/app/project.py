"""Project: one SQLite file. Its events are the truth; everything else is rebuilt from them.

An answer is on the disk when `append` returns (``synchronous=FULL``). Several processes may write:
each reads what the others have added before it adds its own. SQLite notices most damage of a file,
but not that of values: each event has a checksum of itself and of those before it, each clustering
one of its own.
"""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from contextlib import closing, contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from linkwise.app.events import KINDS, Event
from linkwise.app.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from linkwise._types import Ints

VERSION = 2  # rises with every change of SCHEMA, also of KINDS; version 1 had no checksums
APPLICATION = 0x4C4B5749  # "LKWI": tells our files from other databases
KEPT_RUNS = 60  # clusterings whose labels stay in the file
COLUMNS = ", ".join(Event._fields)
RUN = "rev, at, upto, labels, cast(stats as blob)"  # bytes: damaged text could not be decoded
WAIT = 5.0  # seconds that another process may hold the file
BUSY = "busy_timeout = 5000"
SETTINGS = ("synchronous = full", "foreign_keys = on", BUSY)
NOT_DAMAGE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}
SCHEMA = f"""
create table meta (key text primary key, value text not null);
create table item (id integer primary key, name text not null);
create table event (
  kind text not null check (kind in {KINDS}),
  uuid text not null, who text not null, a integer, b integer, relation text,
  weight real not null, ms integer, target integer, note text,
  part integer not null, at real not null, seq integer primary key autoincrement,
  unique (uuid, part), check (b is null or a < b)
);
create table run (
  rev integer primary key autoincrement, at real not null, upto integer not null,
  labels blob, stats text not null
);
"""
CHECKSUMS = """create table checksum (
  line text not null, number integer not null, value integer not null, primary key (line, number)
)"""


class Run(NamedTuple):
    """A clustering that was shown."""

    rev: int
    at: float
    upto: int  # last event that it knew
    labels: Ints | None
    stats: dict[str, Any]


class WrongProjectError(ValueError):
    """A file is no project, a damaged one, or one about other data."""


class Project:
    """The file of a project, and the ledger of its events.

    Parameters
    ----------
    path : Path
        The file; made if it is missing.
    names : sequence of str
        The samples, in the order of the data.
    fingerprint : str
        What tells these data from others.

    Raises
    ------
    WrongProjectError
        If the file is something else, is damaged, or keeps answers about other data.
    """

    def __init__(self, path: Path, names: Sequence[str], fingerprint: str) -> None:
        self.path = path
        self.lock = RLock()
        self._db, is_empty = _connect(path)
        self.ledger = Ledger()
        try:
            with self._damage_named():
                if is_empty:
                    self._create(names, fingerprint)
                self._check(len(names), fingerprint)
                self.refresh()
                self._check_writable()
        except BaseException:
            self._db.close()
            raise

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        """Turn what SQLite and JSON say about a damaged file into words."""
        try:
            yield
        except WrongProjectError:
            raise
        except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in NOT_DAMAGE:
                raise WrongProjectError(
                    f"{self.path} cannot be used ({error}). Close what else has it open and see "
                    "that you may write to it, or name another file with --project."
                ) from error
            raise self._damaged(str(error)) from error

    def _damaged(self, what: str) -> WrongProjectError:
        return WrongProjectError(
            f"{self.path} is damaged ({what}). Take a copy of it that is whole; "
            "or begin another file with --project, and keep this one."
        )

    def _create(self, names: Sequence[str], fingerprint: str) -> None:
        meta = {"data": fingerprint, "n_samples": len(names), "created": time.time()}
        with self._db as db:
            db.execute("begin immediate")
            if self._one("pragma application_id") == APPLICATION:
                return  # another process was faster
            for statement in (*SCHEMA.split(";"), CHECKSUMS):
                db.execute(statement)
            rows = [(key, json.dumps(value)) for key, value in meta.items()]
            db.executemany("insert into meta values (?, ?)", rows)
            db.executemany("insert into item values (?, ?)", enumerate(map(str, names)))
            db.execute(f"pragma application_id = {APPLICATION}")
            db.execute(f"pragma user_version = {VERSION}")

    def _check(self, n_samples: int, fingerprint: str) -> None:
        if self._one("pragma user_version") == 1:
            self._add_checksums()
        version = self._one("pragma user_version")
        if version != VERSION:
            raise WrongProjectError(
                f"{self.path} is a project of version {version}, and this linkwise reads version "
                f"{VERSION}. Use the linkwise that it was made with, or another file."
            )
        self._check_structure()
        if self.meta("data") != fingerprint:
            differ, begun = "the columns or values differ", self.meta("n_samples")
            if begun != n_samples:
                differ = f"{begun} rows, and these are {n_samples}"
            raise WrongProjectError(
                f"{self.path} keeps answers about other data: {differ}. Give the same DATA with "
                "the options of then (such as --drop, --features, --scale), or another file with "
                "--project."
            )

    def _check_writable(self) -> None:
        """Raise now what the first answer would raise."""
        self._db.execute("begin immediate")
        try:
            self._keep_checksum("event", self._insert(Event("answer", "", "", 0, 1)).seq, 0)
        finally:
            self._db.rollback()

    def _check_structure(self) -> None:
        """Raise WrongProjectError if tables, indices or their definitions are damaged."""
        found = self._one("pragma integrity_check(1)")
        if found != "ok":
            raise self._damaged(found.replace("\n", " "))
        query = "select sql from sqlite_master where type = 'table' and name not like 'sqlite%'"
        defined = {row[0].replace("CREATE TABLE", "create table", 1) for row in self._rows(query)}
        if defined != {text.strip() for text in (*SCHEMA.split(";"), CHECKSUMS)} - {""}:
            raise self._damaged("its tables are defined in another way")

    def _add_checksums(self) -> None:
        """Bring a project of version 1 up to date: what it holds now counts as whole."""
        with self._db as db:
            db.execute("begin immediate")
            if self._one("pragma user_version") != 1:
                return  # another process was faster
            db.execute(CHECKSUMS)
            value = 0
            for row in self._rows(f"select {COLUMNS} from event order by seq"):
                value = checksum(row, value)
                self._keep_checksum("event", row[-1], value)
            for row in self._rows(f"select {RUN} from run order by rev"):
                self._keep_checksum("run", row[0], checksum(row))
            db.execute(f"pragma user_version = {VERSION}")

    def _keep_checksum(self, line: str, number: int, value: int) -> None:
        self._db.execute("insert or replace into checksum values (?, ?, ?)", (line, number, value))

    def _checksum(self, line: str, number: int) -> int | None:
        query = "select value from checksum where line = ? and number = ?"
        value: int | None = self._one(query, line, number)
        return value

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._db.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        found = self._db.execute(query, values).fetchone()
        return None if found is None else found[0]

    def meta(self, key: str) -> Any:
        """Return a setting of the project, or None."""
        text = self._one("select value from meta where key = ?", key)
        return None if text is None else json.loads(text)

    # Events --------------------------------------------------------------------------------

    def refresh(self) -> int:
        """Read what other processes have added; returns how many events."""
        with self.lock:
            query = (
                f"select {COLUMNS}, value from event left join checksum "
                "on line = 'event' and number = seq where seq > ? order by seq"
            )
            rows = self._rows(query, self.ledger.last)
            value = self._last_checksum()
            for *row, expected in rows:
                value = checksum(row, value)
                if value != expected:
                    raise self._damaged(f"the checksum of event {row[-1]} is wrong")
            for *row, _ in rows:
                self.ledger.add(Event(*row))
            return len(rows)

    def _last_checksum(self) -> int:
        return self._checksum("event", self.ledger.last) or 0

    def append(self, events: Sequence[Event]) -> list[Event]:
        """Write the events of one action to the disk.

        Returns them with their numbers; nothing if the action was written before.
        """
        with self.lock:
            with self._db as db:
                db.execute("begin immediate")  # from here on nobody else writes
                self.refresh()
                if self._one("select 1 from event where uuid = ?", events[0].uuid):
                    return []
                now = time.time()
                numbered = [
                    self._insert(event._replace(part=part, at=now))
                    for part, event in enumerate(events)
                ]
                value = self._last_checksum()
                for event in numbered:
                    value = checksum(event, value)
                    self._keep_checksum("event", event.seq, value)
            for event in numbered:  # only what is on the disk counts
                self.ledger.add(event)
            return numbered

    def _insert(self, event: Event) -> Event:
        """Write an event; returns what the file holds then, with its number."""
        values = event[:-1]
        marks = ", ".join("?" * len(values))
        names = ", ".join(Event._fields[:-1])
        row = self._db.execute(f"insert into event ({names}) values ({marks})", values)
        query = f"select {COLUMNS} from event where seq = ?"
        return Event(*self._db.execute(query, (row.lastrowid,)).fetchone())

    def is_known(self, uuid: str) -> bool:
        """Whether an action was written before."""
        with self.lock:
            return self._one("select 1 from event where uuid = ?", uuid) is not None

    # Clusterings ---------------------------------------------------------------------------

    def keep_run(self, labels: Ints, upto: int, stats: dict[str, Any]) -> int:
        """Keep a clustering; of the oldest ones only the figures stay."""
        row = (time.time(), upto, labels.astype("<u2").tobytes(), json.dumps(stats))
        with self.lock, self._db as db:
            db.execute("begin immediate")
            done = db.execute("insert into run (at, upto, labels, stats) values (?, ?, ?, ?)", row)
            rev = int(done.lastrowid or 0)
            old = "select rev from run where rev <= ? and labels is not null"
            forgotten = [number for (number,) in self._rows(old, rev - KEPT_RUNS)]
            for number in forgotten:
                db.execute("update run set labels = null where rev = ?", (number,))
            for number in (*forgotten, rev):
                (kept,) = self._rows(f"select {RUN} from run where rev = ?", number)
                self._keep_checksum("run", number, checksum(kept))
        return rev

    def runs(self) -> list[Run]:
        """Return all clusterings, the oldest first."""
        with self.lock:
            rows = self._rows(f"select {RUN} from run order by rev")
            return [_run(row) for row in rows if self._is_whole(row)]

    def last_run(self) -> Run | None:
        """Return the clustering that was shown last, or None."""
        with self.lock:
            query = f"select {RUN} from run where labels is not null order by rev desc limit 1"
            row = self._db.execute(query).fetchone()
            return _run(row) if row is not None and self._is_whole(row) else None

    def _is_whole(self, run: tuple[Any, ...]) -> bool:
        """Whether a clustering is undamaged; if it is not, it is computed again."""
        return self._checksum("run", run[0]) == checksum(run)

    # The file ------------------------------------------------------------------------------

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy of the file."""
        with self.lock, closing(sqlite3.connect(path)) as other:
            self._db.backup(other)

    def changed(self) -> int:
        """Return a number that changes when another process has written."""
        with self.lock:
            return int(self._one("pragma data_version"))

    def is_open_elsewhere(self) -> bool:
        """Whether another process has the file open; False where this cannot be known.

        SQLite turns the write-ahead log off only for the last who has a file open.
        """
        with self.lock:
            if self._one("pragma journal_mode") != "wal":
                return False
            self._db.execute("pragma busy_timeout = 0")
            try:
                self._db.execute("pragma journal_mode = delete").fetchone()
                return False
            except sqlite3.OperationalError as error:
                return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            finally:
                self._db.execute(f"pragma {BUSY}")
                _write_ahead(self._db)
                self.meta("data")  # it is read again: others see that it is open

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self._db.close()


def checksum(values: Iterable[Any], after: int = 0) -> int:
    """Return a checksum of the values of a line, and of the lines before it."""
    return crc32(repr(list(values)).encode(errors="backslashreplace"), after)


def _run(row: tuple[Any, ...]) -> Run:
    labels = None if row[3] is None else np.frombuffer(row[3], "<u2").astype(np.intp)
    rev, at, upto = row[:3]
    return Run(rev, at, upto, labels, json.loads(row[4]))


def _connect(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open a file, and tell whether it is empty; other databases are refused untouched."""
    try:
        db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=WAIT)
    except sqlite3.OperationalError as error:
        message = f"{path} cannot be opened ({error}). Name another file with --project."
        raise WrongProjectError(message) from error
    try:
        is_empty = _is_empty(db, path)
        mode = _write_ahead(db)
        for setting in SETTINGS:
            db.execute(f"pragma {setting}")
    except (sqlite3.DatabaseError, ValueError) as error:  # messages quote what is damaged
        db.close()
        if isinstance(error, WrongProjectError):
            raise
        raise WrongProjectError(
            f"{path} is no project of linkwise, or a damaged one ({error}). Choose another file."
        ) from error
    if is_empty and mode != "wal":
        warnings.warn(
            f"{path}: this file system has no shared memory for SQLite, so one process at a time "
            "should write to it. A project on a local disk has no such limit.",
            UserWarning,
            stacklevel=4,
        )
    return db, is_empty


def _is_empty(db: sqlite3.Connection, path: Path) -> bool:
    """Whether a database holds nothing yet; raises if it is none of ours. Only reads."""
    db.execute("begin")  # both at one moment
    (application,) = db.execute("pragma application_id").fetchone()
    (n_tables,) = db.execute("select count(*) from sqlite_master").fetchone()
    db.execute("commit")
    if application != APPLICATION and (application or n_tables):
        raise WrongProjectError(f"{path} is no project of linkwise. Choose another file.")
    return bool(application != APPLICATION)


def _write_ahead(db: sqlite3.Connection) -> str:
    """Turn on the write-ahead log; SQLite does not wait by itself while others do the same."""
    end = time.monotonic() + WAIT
    while True:
        try:
            return str(db.execute("pragma journal_mode = wal").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.01)
