"""Ledger: what the events of a project amount to, kept up to date event by event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from linkwise.app.events import ABOUT_PAIRS, WITHDRAWN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkwise.app.events import Event, Pair


@dataclass
class Facts:
    """Everything that follows from the events that count."""

    answers: dict[tuple[Pair, str], Event] = field(default_factory=dict)  # by pair and person
    later: dict[Pair, int] = field(default_factory=dict)  # number of answers when put off
    flagged: set[int] = field(default_factory=set)
    names: dict[int, str] = field(default_factory=dict)
    locks: dict[int, str] = field(default_factory=dict)
    n_clusters: int | None = None
    n_given: int = 0  # answers that were typed so far, also those that others took the place of
    origins: dict[tuple[Pair, str], Event] = field(default_factory=dict)  # how answers were given

    @property
    def given(self) -> list[Event]:
        """The answers of people that count: the last one of each person about each pair.

        A pair of a file stays one of a file if somebody confirms or changes it.
        """
        return [one for one in self.answers.values() if self.origin(one).kind != "import"]

    def origin(self, event: Event) -> Event:
        """Return the line in which an answer was given, which was changed or confirmed since."""
        return self.origins.get((event.pair, event.owner), event)

    def add(self, event: Event) -> None:
        """Add what an event says."""
        if event.kind in ABOUT_PAIRS:
            self._add_answer(event)
        elif event.kind == "later":
            self.later[event.pair] = self.n_given
        elif event.kind == "flag":
            change = self.flagged.add if event.relation == "bad" else self.flagged.discard
            change(event.a or 0)
        elif event.kind == "clusters":
            self.n_clusters = event.a
        else:
            kept = self.names if event.kind == "rename" else self.locks
            _set_or_remove(kept, event.a or 0, event.note or "")

    def _add_answer(self, event: Event) -> None:
        self.n_given += event.kind == "answer"
        key = (event.pair, event.owner)
        self.answers.pop(key, None)  # the newest comes last
        if event.kind != "resolve":  # an answer that is changed or confirmed stays the same one
            self.origins[key] = event
        if event.relation != WITHDRAWN:
            self.answers[key] = event


def _set_or_remove(kept: dict[int, str], key: int, text: str) -> None:
    if text:
        kept[key] = text
    else:
        kept.pop(key, None)


@dataclass
class Ledger:
    """The events of a project, and what they amount to.

    Examples
    --------
    >>> from linkwise.app.events import Event
    >>> ledger = Ledger.of([Event("answer", "u1", "ada", 0, 1, "same", seq=1)])
    >>> ledger.add(Event("undo", "u2", "ada", target=1, seq=2))
    >>> ledger.facts.answers, ledger.redoable("ada")
    ({}, 1)
    """

    events: list[Event] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    _first: dict[str, int] = field(default_factory=dict)  # uuid -> first line of the action
    _off: set[int] = field(default_factory=set)  # actions that are undone
    _done: dict[str, list[int]] = field(default_factory=dict)  # by person, oldest first
    _undone: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Ledger:
        """Replay events from the first one on."""
        ledger = cls()
        for event in events:
            ledger.add(event)
        return ledger

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.events[-1].seq if self.events else 0

    def add(self, event: Event) -> None:
        """Add the next event."""
        self.events.append(event)
        if event.kind in {"undo", "redo"}:
            self._turn(event)
            return
        if event.uuid not in self._first:
            self._first[event.uuid] = event.seq
            self._done.setdefault(event.who, []).append(event.seq)
            self._undone.pop(event.who, None)
        self.facts.add(event)

    def _turn(self, event: Event) -> None:
        """Undo or redo an action, and work out again what is left."""
        done = self._done.setdefault(event.who, [])
        undone = self._undone.setdefault(event.who, [])
        source, other = (done, undone) if event.kind == "undo" else (undone, done)
        target = event.target or 0
        if target not in source:
            return  # another process was faster
        source.remove(target)
        other.append(target)
        (self._off.add if event.kind == "undo" else self._off.discard)(target)
        self.facts = Facts()
        for one in self.events:
            if self.counts(one):
                self.facts.add(one)

    def counts(self, event: Event) -> bool:
        """Whether an event is an action that is not undone."""
        return event.kind not in {"undo", "redo"} and self._first[event.uuid] not in self._off

    def undoable(self, who: str) -> int | None:
        """Return the first line of the last action of a person, or None."""
        return next(iter(self._done.get(who, [])[-1:]), None)

    def redoable(self, who: str) -> int | None:
        """Return the first line of the action that a person undid last, or None."""
        return next(iter(self._undone.get(who, [])[-1:]), None)

    def action(self, first: int) -> list[Event]:
        """Return the events of an action, by its first line."""
        uuid = next((one.uuid for one in self.events if one.seq == first), None)
        return [one for one in self.events if one.uuid == uuid]
