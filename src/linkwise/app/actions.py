"""What people do besides answering: resolve conflicts, name clusters, select on the map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.app.conflicts import Evidence, verdicts
from linkwise.app.engine import Question
from linkwise.app.events import OPPOSITE, SURE, WITHDRAWN, Event
from linkwise.app.requests import BadRequestError, sample_of, samples_of, text_of, uuid_of
from linkwise.app.views import clear_cases, unclear_cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from linkwise.app.conflicts import Verdict
    from linkwise.app.events import Pair
    from linkwise.app.room import Room

LOCKS = ("", "pure", "complete")
TRIED = 12  # clear cases of a cluster that are looked at for an open one


def resolution(room: Room, body: Mapping[str, Any], who: str) -> list[Event]:
    """Return the events that flip, withdraw or confirm an answer of a conflict."""
    a, b = sorted(sample_of(body.get(name), room.n_samples, name) for name in "ab")
    action = body.get("action")
    answers = room.project.ledger.facts.answers
    given = [(owner, event) for (pair, owner), event in answers.items() if pair == (a, b)]
    if not given:
        raise BadRequestError("This answer no longer counts.")
    if action not in ("flip", "withdraw", "sure"):  # a tuple: it may be a list
        raise BadRequestError('action is "flip", "withdraw" or "sure".')
    relation = body.get("relation")
    if action == "sure" and relation is not None:  # people disagree, and one side is right
        given = [(owner, event) for owner, event in given if event.relation == relation]
    uuid, found = uuid_of(body), []
    for owner, event in given:
        word = str(event.relation)
        changed = {"flip": OPPOSITE.get(word, word), "withdraw": WITHDRAWN, "sure": word}
        weight = SURE if action == "sure" else 1.0
        found.append(
            Event("resolve", uuid, who, a, b, changed[str(action)], weight=weight, note=owner)
        )
    if not found:
        raise BadRequestError("Nobody gave this answer.")
    return found


def cluster_change(room: Room, number: int, body: Mapping[str, Any], who: str) -> list[Event]:
    """Return the events that name or lock a cluster."""
    uuid, found = uuid_of(body), []
    if "name" in body:
        found.append(Event("rename", uuid, who, number, note=text_of(body["name"], 80)))
    if "lock" in body:
        if body["lock"] not in LOCKS:
            raise BadRequestError('lock is "", "pure" or "complete".')
        found.append(Event("lock", uuid, who, number, note=body["lock"]))
    if not found:
        raise BadRequestError("Give a name or a lock.")
    if room.clustering.labels is None or number not in room.clustering.labels:
        raise BadRequestError(f"There is no cluster {number}.")
    return found


def questions_about(room: Room, body: Mapping[str, Any]) -> list[Question]:
    """Return questions that decide whether clusters are one, or whether one is mixed."""
    action, listed = body.get("action"), body.get("clusters")
    labels = room.clustering.labels
    if (
        labels is None
        or not isinstance(listed, list)
        or not all(isinstance(one, int) and one in labels for one in listed)
    ):
        raise BadRequestError("clusters is a list of clusters.")
    if action == "merge" and len(listed) == 2 and listed[0] != listed[1]:
        ends = zip(*(clear_cases(room, one, 3) for one in listed), strict=False)
        why = "whether these two clusters are one"
        return [Question(_pair(a, b), why) for a, b in ends]
    if action == "mixed" and len(listed) == 1:
        clear = clear_cases(room, listed[0], 1)[0]
        why = "whether this cluster is mixed"
        others = [k for k in unclear_cases(room, listed[0]) if k != clear]
        return [Question(_pair(clear, k), why) for k in others]
    raise BadRequestError('action is "merge" with two clusters, or "mixed" with one.')


def _pair(a: int, b: int) -> Pair:
    return (min(a, b), max(a, b))


# Selections on the map ---------------------------------------------------------------------


def selected(room: Room, body: Mapping[str, Any], who: str, uuid: str) -> list[Event]:
    """Return the answers that a selection stands for: all the same, or different from a sample."""
    samples = samples_of(body.get("samples"), room.n_samples)
    relation = body.get("relation")
    if relation == "same":
        first, *rest = samples
        pairs = [_pair(first, one) for one in rest]
    elif relation == "different":
        other = sample_of(body.get("other"), room.n_samples, "other")
        pairs = [_pair(other, one) for one in samples if one != other]
    else:
        raise BadRequestError('relation is "same" or "different".')
    open_pairs = [pair for pair in pairs if pair not in room.evidence.accepted]
    return [Event("answer", uuid, who, *pair, relation, note="selection") for pair in open_pairs]


def preview(room: Room, events: Sequence[Event]) -> dict[str, Any]:
    """Return what answers would do, without giving them."""
    answers = dict(room.project.ledger.facts.answers)
    last = room.project.ledger.last
    for number, event in enumerate(events, 1):
        answers[event.pair, event.who] = event._replace(seq=last + number)
    after = Evidence.of(verdicts(answers))
    now = room.clustering
    moved = 0
    if now.base is not None and now.labels is not None:
        moved = int(np.sum(room.settled(now, after) != now.labels))
    before = _keys(room.evidence.ignored)
    return {
        "answers": len(events),
        "moved": moved,
        "settled": after.n_settled - room.evidence.n_settled,
        "conflicts": len(_keys(after.ignored) - before),
    }


def _keys(found: Sequence[Verdict]) -> set[Pair]:
    return {one.pair for one in found}


def _clear_of_each(room: Room, a: int) -> list[int]:
    """Return of each cluster a clear case that a sample may belong with."""
    labels = room.clustering.labels
    numbers = [] if labels is None else np.unique(labels).tolist()
    found = []
    for number in numbers:
        clear = [one for one in clear_cases(room, number, TRIED) if one != a]
        found += [one for one in clear if room.evidence.is_open(a, one)][:1]
    return found


def one_against_many(room: Room, session: str, who: str, n: int = 6) -> dict[str, Any] | None:
    """Return a sample and others that it may belong with: the first open question's."""
    first = room.question(session, who)
    if first is None:
        return None
    a, b = first.pair
    others = [b]
    for sample in room.rivals(a) if room.by_size else _clear_of_each(room, a):
        if sample not in (a, *others) and room.evidence.is_open(a, sample):
            others.append(sample)
    cards = room.items.cards([a, *others[:n]])
    return {"a": a, "others": others[:n], "cards": cards}
