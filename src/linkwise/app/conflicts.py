"""Evidence: the answers that can hold together, and for each other one the chain against it.

Answers are taken in the order of their weight, the older one first among equals. One that
contradicts those taken before is ignored until somebody resolves the conflict; nobody is stopped.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from linkwise.app.events import Event, Pair


class Verdict(NamedTuple):
    """What was said about one pair, all people together."""

    pair: Pair
    relation: str  # "same", "different", "unsure", or "disputed" between people
    weight: float
    seq: int  # the newest answer that says so
    events: tuple[Event, ...] = ()  # all answers about the pair


class Conflict(NamedTuple):
    """An answer that is ignored, and the answers that contradict it, from one end to the other."""

    ignored: Verdict
    chain: tuple[Verdict, ...]

    @property
    def key(self) -> str:
        """A name that stays while the conflict does."""
        return f"{self.ignored.pair[0]}-{self.ignored.pair[1]}"


def verdicts(answers: Mapping[tuple[Pair, str], Event]) -> list[Verdict]:
    """Return what was said about each pair; people who disagree are outvoted, or it is disputed."""
    by_pair: dict[Pair, list[Event]] = {}
    for (pair, _), event in answers.items():
        by_pair.setdefault(pair, []).append(event)
    return [_verdict(pair, events) for pair, events in by_pair.items()]


def _verdict(pair: Pair, events: list[Event]) -> Verdict:
    votes = {"same": 0.0, "different": 0.0}
    for event in events:
        if event.relation in votes:
            votes[event.relation] += event.weight
    margin = votes["same"] - votes["different"]
    relation = "same" if margin > 0 else "different"
    if not any(votes.values()):
        relation = "unsure"
    elif margin == 0:
        relation = "disputed"
    seqs = [event.seq for event in events if event.relation == relation]
    newest = max(seqs or [event.seq for event in events])
    return Verdict(pair, relation, abs(margin), newest, tuple(events))


@dataclass
class Evidence:
    """Answers that can hold together, as groups of samples and pairs of groups that are apart.

    Examples
    --------
    >>> said = [((0, 1), "same"), ((1, 2), "same"), ((0, 2), "different")]
    >>> evidence = Evidence.of(Verdict(pair, word, 1.0, n) for n, (pair, word) in enumerate(said))
    >>> evidence.relation(0, 2)
    1
    >>> [(c.ignored.pair, [v.pair for v in c.chain]) for c in evidence.conflicts()]
    [((0, 2), [(0, 1), (1, 2)])]
    """

    accepted: dict[Pair, Verdict] = field(default_factory=dict)
    ignored: list[Verdict] = field(default_factory=list)
    disputed: list[Verdict] = field(default_factory=list)
    unsure: dict[Pair, Verdict] = field(default_factory=dict)
    _parent: dict[int, int] = field(default_factory=dict)
    _members: dict[int, list[int]] = field(default_factory=dict)  # of groups of two or more
    _apart: dict[int, set[int]] = field(default_factory=dict)  # by group
    _links: dict[int, list[tuple[int, Verdict]]] = field(default_factory=dict)  # by sample

    @classmethod
    def of(cls, found: Iterable[Verdict]) -> Evidence:
        """Take verdicts, the heaviest and then the oldest first."""
        evidence = cls()
        for verdict in sorted(found, key=lambda one: (-one.weight, one.seq)):
            evidence.add(verdict)
        return evidence

    def add(self, verdict: Verdict) -> None:
        """Take one more verdict, or put it among those ignored."""
        if verdict.relation == "unsure":
            self.unsure[verdict.pair] = verdict
        elif verdict.relation == "disputed":
            self.disputed.append(verdict)
        elif self.relation(*verdict.pair) == (-1 if verdict.relation == "same" else 1):
            self.ignored.append(verdict)
        else:
            self.accepted[verdict.pair] = verdict
            self._link(verdict)

    def _link(self, verdict: Verdict) -> None:
        a, b = verdict.pair
        self._links.setdefault(a, []).append((b, verdict))
        self._links.setdefault(b, []).append((a, verdict))
        low, high = self.group(a), self.group(b)
        if verdict.relation == "different":
            self._apart.setdefault(low, set()).add(high)
            self._apart.setdefault(high, set()).add(low)
        elif low != high:
            self._join(low, high)

    def _join(self, a: int, b: int) -> None:
        if len(self.members(a)) < len(self.members(b)):
            a, b = b, a
        self._members[a] = [*self.members(a), *self.members(b)]
        for sample in self.members(b):
            self._parent[sample] = a
        self._members.pop(b, None)
        for other in self._apart.pop(b, set()):
            self._apart[other].discard(b)
            self._apart[other].add(a)
            self._apart.setdefault(a, set()).add(other)

    def group(self, sample: int) -> int:
        """Return the sample that stands for the group of a sample."""
        return self._parent.get(sample, sample)

    def members(self, sample: int) -> list[int]:
        """Return the samples that belong together with a sample, itself included."""
        return self._members.get(self.group(sample), [self.group(sample)])

    def groups(self) -> list[list[int]]:
        """Return the groups of two or more samples."""
        return list(self._members.values())

    def relation(self, a: int, b: int) -> int:
        """Return what is known about two samples: 1 together, -1 apart, 0 not known."""
        one, other = self.group(a), self.group(b)
        if one == other:
            return 1
        return -1 if other in self._apart.get(one, ()) else 0

    def is_open(self, a: int, b: int) -> bool:
        """Whether nothing was said about a pair, and nothing follows."""
        pair = (min(a, b), max(a, b))
        return a != b and pair not in self.unsure and not self.relation(a, b)

    @property
    def n_settled(self) -> int:
        """The number of pairs that are known, answered or not."""
        inside = sum(len(group) * (len(group) - 1) // 2 for group in self._members.values())
        between = sum(
            len(self.members(one)) * len(self.members(other))
            for one, others in self._apart.items()
            for other in others
        )
        return inside + between // 2

    def apart_groups(self) -> list[Pair]:
        """Return the pairs of groups that are apart, by the samples that stand for them."""
        return [(a, b) for a, others in self._apart.items() for b in others if a < b]

    # Conflicts -----------------------------------------------------------------------------

    def conflicts(self) -> list[Conflict]:
        """Return the answers that are ignored, each with the shortest chain against it."""
        return [Conflict(one, self.chain(*one.pair, one.relation)) for one in self.ignored]

    def chain(self, a: int, b: int, relation: str) -> tuple[Verdict, ...]:
        """Return the fewest answers that contradict one about a pair; none if nothing does.

        Against "different": a path of "same" from one end to the other. Against "same": a path
        with exactly one "different" on it. Breadth first, over samples and whether the
        "different" was passed.
        """
        start, goal = (a, False), (b, relation == "same")
        came: dict[tuple[int, bool], tuple[tuple[int, bool], Verdict] | None] = {start: None}
        queue = deque([start])
        while queue and goal not in came:
            sample, crossed = here = queue.popleft()
            for other, verdict in self._links.get(sample, ()):
                crosses = verdict.relation == "different"
                there = (other, crossed or crosses)
                if there in came or (crosses and (crossed or not goal[1])):
                    continue
                came[there] = (here, verdict)
                queue.append(there)
        chain: list[Verdict] = []
        step = came.get(goal)
        while step is not None:
            chain.append(step[1])
            step = came[step[0]]
        return tuple(reversed(chain))

    def fewest_changes(self, conflict: Conflict) -> tuple[Verdict, ...]:
        """Return the lighter side of a conflict: what to change so that the rest can hold.

        Either the answer that is ignored, or a cheapest set of accepted answers without which
        nothing contradicts it: found by taking out the lightest answer of one chain after
        another, which is exact for one chain and an upper bound otherwise.
        """
        rest = Evidence.of(self.accepted.values())
        taken: list[Verdict] = []
        one = conflict.ignored
        while chain := rest.chain(*one.pair, one.relation):
            lightest = min(chain, key=lambda link: (link.weight, -link.seq))
            taken.append(lightest)
            if sum(link.weight for link in taken) >= one.weight:
                return (one,)
            kept = [link for link in rest.accepted.values() if link not in taken]
            rest = Evidence.of(kept)
        return tuple(taken)
