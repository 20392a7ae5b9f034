"""Project: one SQLite file. Its events are the truth; everything else is rebuilt from them.

An answer is on the disk when `append` returns (``synchronous=FULL``). Several processes may write:
each reads what the others have added before it adds its own.
"""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from contextlib import closing
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.app.events import KINDS, Event
from linkwise.app.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from linkwise._types import Ints

VERSION = 1
APPLICATION = 0x4C4B5749  # "LKWI": tells our files from other databases
KEPT_RUNS = 60  # clusterings whose labels stay in the file
COLUMNS = ", ".join(Event._fields)
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


class Run(NamedTuple):
    """A clustering that was shown."""

    rev: int
    at: float
    upto: int  # last event that it knew
    labels: Ints | None
    stats: dict[str, Any]


class WrongProjectError(ValueError):
    """A file is no project, or one about other data."""


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
        If the file is something else, or keeps answers about other data.
    """

    def __init__(self, path: Path, names: Sequence[str], fingerprint: str) -> None:
        self.path = path
        self.lock = RLock()
        is_new = not path.exists() or path.stat().st_size == 0
        self._db = _connect(path, is_new=is_new)
        try:
            if is_new:
                self._create(names, fingerprint)
            self._check(len(names), fingerprint)
        except BaseException:
            self._db.close()
            raise
        self.ledger = Ledger()
        self.refresh()

    def _create(self, names: Sequence[str], fingerprint: str) -> None:
        meta = {"data": fingerprint, "n_samples": len(names), "created": time.time()}
        with self._db as db:
            db.execute("begin immediate")
            for statement in SCHEMA.split(";"):
                db.execute(statement)
            rows = [(key, json.dumps(value)) for key, value in meta.items()]
            db.executemany("insert into meta values (?, ?)", rows)
            db.executemany("insert into item values (?, ?)", enumerate(map(str, names)))
            db.execute(f"pragma application_id = {APPLICATION}")
            db.execute(f"pragma user_version = {VERSION}")

    def _check(self, n_samples: int, fingerprint: str) -> None:
        if self._one("pragma application_id") != APPLICATION:
            raise WrongProjectError(f"{self.path} is no project of linkwise. Choose another file.")
        version = self._one("pragma user_version")
        if version != VERSION:
            raise WrongProjectError(
                f"{self.path} is a project of version {version}, and this linkwise reads version "
                f"{VERSION}. Use the linkwise that it was made with, or another file."
            )
        if self.meta("data") != fingerprint:
            raise WrongProjectError(
                f"{self.path} keeps answers about other data ({self.meta('n_samples')} samples; "
                f"these are {n_samples}, or other values). Give the data it was begun with, or "
                "another file with --project."
            )

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
            query = f"select {COLUMNS} from event where seq > ? order by seq"
            rows = self._db.execute(query, (self.ledger.last,)).fetchall()
            for row in rows:
                self.ledger.add(Event(*row))
            return len(rows)

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
                    event._replace(part=part, at=now, seq=self._insert(event, part, now))
                    for part, event in enumerate(events)
                ]
            for event in numbered:  # only what is on the disk counts
                self.ledger.add(event)
            return numbered

    def _insert(self, event: Event, part: int, at: float) -> int:
        values = event._replace(part=part, at=at)[:-1]
        marks = ", ".join("?" * len(values))
        names = ", ".join(Event._fields[:-1])
        row = self._db.execute(f"insert into event ({names}) values ({marks})", values)
        return int(row.lastrowid or 0)

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
            old = "update run set labels = null where rev <= ? and labels is not null"
            db.execute(old, (rev - KEPT_RUNS,))
        return rev

    def runs(self) -> list[Run]:
        """Return all clusterings, the oldest first."""
        with self.lock:
            rows = self._db.execute("select * from run order by rev").fetchall()
        return [_run(row) for row in rows]

    def last_run(self) -> Run | None:
        """Return the clustering that was shown last, or None."""
        with self.lock:
            query = "select * from run where labels is not null order by rev desc limit 1"
            row = self._db.execute(query).fetchone()
        return None if row is None else _run(row)

    # The file ------------------------------------------------------------------------------

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy of the file."""
        with self.lock, closing(sqlite3.connect(path)) as other:
            self._db.backup(other)

    def changed(self) -> int:
        """Return a number that changes when another process has written."""
        with self.lock:
            return int(self._one("pragma data_version"))

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self._db.close()


def _run(row: tuple[Any, ...]) -> Run:
    labels = None if row[3] is None else np.frombuffer(row[3], "<u2").astype(np.intp)
    rev, at, upto = row[:3]
    return Run(rev, at, upto, labels, json.loads(row[4]))


def _connect(path: Path, *, is_new: bool) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5)
    except sqlite3.OperationalError as error:
        message = f"{path} cannot be opened ({error}). Name another file with --project."
        raise WrongProjectError(message) from error
    try:
        mode = db.execute("pragma journal_mode = wal").fetchone()[0]
        for setting in ("synchronous = full", "foreign_keys = on", "busy_timeout = 5000"):
            db.execute(f"pragma {setting}")
    except sqlite3.DatabaseError as error:
        db.close()
        raise WrongProjectError(
            f"{path} is no project of linkwise ({error}). Choose another file."
        ) from error
    if is_new and mode != "wal":
        warnings.warn(
            f"{path}: this file system has no shared memory for SQLite, so one process at a time "
            "should write to it. A project on a local disk has no such limit.",
            UserWarning,
            stacklevel=4,
        )
    return db
