"""Event: one line of a project's log. Lines are added, never changed or removed."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

Pair: TypeAlias = tuple[int, int]

ANSWERS = ("same", "different", "unsure")  # what a person says about a pair
WITHDRAWN = "withdrawn"  # takes the place of an answer that no longer counts
OPPOSITE = {"same": "different", "different": "same"}
# Kinds of events that say something about a pair
ABOUT_PAIRS = ("answer", "import", "resolve")
KINDS = (*ABOUT_PAIRS, "later", "flag", "rename", "lock", "clusters", "undo", "redo")
SURE = 10.0  # weight of an answer that was confirmed against others


class Event(NamedTuple):
    """One line of the log.

    Lines with the same `uuid` are one action: they are written, undone and redone together.
    """

    kind: str  # one of KINDS
    uuid: str
    who: str
    a: int | None = None  # a sample; for "rename" and "lock" a cluster
    b: int | None = None  # the other sample of a pair, a < b
    relation: str | None = None
    weight: float = 1.0
    ms: int | None = None  # how long the person looked at the question
    target: int | None = None  # of "undo" and "redo": the first line of the action
    note: str | None = None
    part: int = 0  # place within the action
    at: float = 0.0  # seconds since 1970
    seq: int = 0  # number of the line

    @property
    def owner(self) -> str:
        """Whose answer it is: somebody may resolve a conflict by changing another's."""
        return self.note or self.who if self.kind == "resolve" else self.who

    @property
    def pair(self) -> Pair:
        """The two samples."""
        assert self.a is not None
        assert self.b is not None
        return (self.a, self.b)
