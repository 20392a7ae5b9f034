"""What the page is told, as plain values for JSON."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.active.stopping import FEW, HALF, STOP, may_stop
from linkwise.app.events import ABOUT_PAIRS, WITHDRAWN
from linkwise.app.matching import in_use
from linkwise.constraints import Constraints
from linkwise.exceptions import ConflictError

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.app.conflicts import Conflict, Evidence, Verdict
    from linkwise.app.engine import Question
    from linkwise.app.events import Event, Pair
    from linkwise.app.room import Room

UNSURE = 0.7  # probability of its cluster below which a sample is a close call
N_EXAMPLES = 3
LISTED = 200


def state(room: Room, who: str) -> dict[str, Any]:
    """Return the figures in the header, and what the page has to fetch again."""
    facts, now = room.project.ledger.facts, room.clustering
    return {
        "title": room.project.path.stem,
        "n": room.n_samples,
        "kind": room.items.kind,
        "by_size": room.by_size,
        "answers": len(facts.given),
        "imported": len(facts.answers) - len(facts.given),
        "settled": room.evidence.n_settled,
        "clusters": 0 if now.labels is None else int(in_use(now.labels).size),
        "k": room.n_clusters,
        "conflicts": len(room.evidence.ignored) + len(room.evidence.disputed),
        "opened": room.opened,
        "rev": now.rev,
        "full": room.is_full,
        "map": {"rev": room.map_rev, "name": room.map_name},
        "doing": room.doing,
        "error": room.error,
        "who": who,
        "undo": room.project.ledger.undoable(who) is not None,
        "redo": room.project.ledger.redoable(who) is not None,
        "stop": stopping(room),
        "ari": None if now.labels is None else room.agreement_with_truth(now.labels),
        "start_ari": _start(room),
        "n_truth": room.n_truth,
        "flagged": sorted(facts.flagged)[:LISTED],
    }


def _start(room: Room) -> float | None:
    """Return the agreement with the truth of a clustering without answers.

    Some may have been given while it was found.
    """
    before = [run for run in room.runs if run.get("fitted", run["given"]) == 0]
    found: float | None = before[-1].get("ari") if before else None
    return found


def question(room: Room, found: Question | None) -> dict[str, Any] | None:
    """Return a question with what is shown of its samples."""
    if found is None:
        return None
    why = "a repeated question" if found.why.startswith("check") else found.why
    return {
        "id": f"{found.pair[0]}-{found.pair[1]}",
        "a": found.pair[0],
        "b": found.pair[1],
        "why": why,
        "check": found.why.removeprefix("check ") if found.why.startswith("check") else None,
        "cards": room.items.cards(found.pair),
        "dates": room.items.dates,
    }


# When to stop ------------------------------------------------------------------------------


def stopping(room: Room) -> dict[str, Any]:
    """Return what the last answers moved, what is still to change, and what that means."""
    still, lately = room.still_to_change, room.moved_lately()
    if room.by_size:
        n_open = room.clustering.n_open
        figures = {"moved": lately, "still": None, "close": None}
        return figures | {"advice": _review_advice(n_open), "reached": n_open == 0}
    confidence = room.clustering.confidence
    close = None  # before the first full clustering everything is one
    if confidence is not None and still is not None:
        close = 0 if room.is_settled else int((confidence < UNSURE).sum())
    figures = {"moved": lately, "still": still, "close": close}
    n_answers = len(room.project.ledger.facts.answers)
    reached = still is not None and (room.is_settled or may_stop(still, n_answers))
    return figures | {"advice": _advice(still, lately, reached=reached), "reached": reached}


def _review_advice(n_open: int | None) -> str:
    if n_open is None:
        return "The clusters are being found."
    if n_open == 0:
        return "No two clusters are a close call any more. You can stop."
    which = "One pair of clusters is" if n_open == 1 else f"{n_open:,} pairs of clusters are"
    return f"{which} a close call. The most useful questions come first."


def _advice(still: float | None, lately: float | None, *, reached: bool) -> str:
    if still is None:
        return "The clusters are being found. You can answer already."
    if reached:
        return "More answers will hardly change the clusters. You can stop."
    if still < FEW:
        return "A few more items may move. A handful of answers would show."
    if still < HALF:
        return "Some clusters are still open. More answers help."
    if lately is not None and lately < STOP:
        return "The last answers moved little, but other clusterings remain possible."
    return "Much may still change. Every answer counts."


# Clusters ----------------------------------------------------------------------------------


def clusters(room: Room) -> list[dict[str, Any]]:
    """Return the clusters with names and clear examples, the largest first."""
    now, facts = room.clustering, room.project.ledger.facts
    if now.labels is None:
        return []
    confidence = now.confidence
    found = []
    sizes = np.bincount(now.labels)
    largest = np.argsort(-sizes, kind="stable")[: min(LISTED, np.count_nonzero(sizes))]
    for number in largest.tolist():
        members = np.flatnonzero(now.labels == number)
        order = members if confidence is None else _surest(members, confidence)
        close = 0
        if confidence is not None and now.still_to_change is not None:
            close = int((confidence[members] < UNSURE).sum())
        found.append(
            {
                "id": number,
                "name": facts.names.get(number, ""),
                "size": int(members.size),
                "lock": facts.locks.get(number, ""),
                "close": close,
                "examples": [brief(room, k) for k in order[:N_EXAMPLES].tolist()],
            }
        )
    return sorted(found, key=lambda one: (-int(one["size"]), one["id"]))


def _surest(members: Ints, confidence: Floats) -> Ints:
    """Return the surest members for examples, without sorting all of them."""
    sure = -confidence[members]
    if members.size > N_EXAMPLES:
        limit = np.partition(sure, N_EXAMPLES)[N_EXAMPLES]
        members, sure = members[sure <= limit], sure[sure <= limit]
    return members[np.argsort(sure, kind="stable")[:N_EXAMPLES]]


def clear_cases(room: Room, number: int, n: int = 3) -> list[int]:
    """Return the members of a cluster that are surest."""
    now = room.clustering
    assert now.labels is not None
    members = np.flatnonzero(now.labels == number)
    if now.confidence is None:
        return [int(k) for k in members[:n]]
    return [int(k) for k in members[np.argsort(-now.confidence[members])][:n]]


def unclear_cases(room: Room, number: int, n: int = 6) -> list[int]:
    """Return the members of a cluster that are least sure."""
    return clear_cases(room, number, room.n_samples)[::-1][:n]


def brief(room: Room, sample: int) -> dict[str, Any]:
    """Return a sample in a few words."""
    return {
        "index": sample,
        "id": str(room.items.names[sample])[:300],
        "about": room.items.summary(sample),
        "media": room.items.image is not None,
    }


def context(room: Room, sample: int) -> dict[str, Any]:
    """Return the nearest neighbours of a sample, and other clear cases of its cluster."""
    near: list[int] = []
    if room.neighbors is not None:
        near = [k for k in room.neighbors[sample].tolist() if k >= 0]
    labels = room.clustering.labels
    clear = [] if labels is None else clear_cases(room, int(labels[sample]), N_EXAMPLES + 1)
    clear = [k for k in clear if k != sample][:N_EXAMPLES]
    return {
        "near": [brief(room, k) for k in near],
        "clear": [brief(room, k) for k in clear],
    }


# Conflicts ---------------------------------------------------------------------------------


def conflicts(room: Room) -> list[dict[str, Any]]:
    """Return what contradicts, each as the answers of which one must be wrong."""
    found = [_contradiction(room, one) for one in room.evidence.conflicts()[:LISTED]]
    found += [_disagreement(room, one) for one in room.evidence.disputed[:LISTED]]
    return found + too_few_clusters(room)


def _contradiction(room: Room, conflict: Conflict) -> dict[str, Any]:
    links = [conflict.ignored, *conflict.chain]
    least = min(links, key=lambda link: support(room, link))
    fewest = room.evidence.fewest_changes(conflict)
    return {
        "key": conflict.key,
        "kind": "contradiction",
        "ignored": _number(room, conflict.ignored),
        "links": [
            _link(room, link) | {"least": link is least, "fewest": link in fewest} for link in links
        ],
    }


def _disagreement(room: Room, verdict: Verdict) -> dict[str, Any]:
    votes = [
        {
            "who": event.owner,
            "relation": event.relation,
            "at": event.at,
            "seq": room.project.ledger.facts.origin(event).seq,
        }
        for event in verdict.events
    ]
    link = _link(room, verdict)
    key = f"{verdict.pair[0]}-{verdict.pair[1]}"
    return {"key": key, "kind": "disagreement", "votes": votes, "links": [link]}


def _link(room: Room, verdict: Verdict) -> dict[str, Any]:
    newest = max(verdict.events, key=lambda event: event.seq)
    return {
        "seq": _number(room, verdict),
        "a": brief(room, verdict.pair[0]),
        "b": brief(room, verdict.pair[1]),
        "relation": verdict.relation,
        "who": ", ".join(dict.fromkeys(event.owner for event in verdict.events)),
        "at": newest.at,
        "weight": verdict.weight,
    }


def _number(room: Room, verdict: Verdict) -> int:
    """Return the number of an answer, which it keeps when it is changed or confirmed."""
    facts = room.project.ledger.facts
    return max(facts.origin(event).seq for event in _said(verdict) or verdict.events)


def _said(verdict: Verdict) -> list[Event]:
    """Return the answers about a pair that say what counts, as they are now."""
    return [event for event in verdict.events if event.relation == verdict.relation]


def support(room: Room, verdict: Verdict) -> float:
    """Return how probable an answer is by the clustering alone; 0.5 if that is not known."""
    probability = room.clustering.probability
    if probability is None:
        return 0.5
    a, b = verdict.pair
    together = float(probability[a] @ probability[b])
    return together if verdict.relation == "same" else 1 - together


def too_few_clusters(room: Room) -> list[dict[str, Any]]:
    """Return groups that are pairwise different, if they are more than there are clusters."""
    k = room.n_clusters
    if k is None:
        return []
    groups = _clique(room.evidence, k)
    if len(groups) <= k:
        return []
    return [
        {
            "key": "clusters",
            "kind": "clusters",
            "k": k,
            "needed": len(groups),
            "groups": [brief(room, group) for group in groups],
        }
    ]


def _clique(evidence: Evidence, k: int) -> list[int]:
    """Return more than `k` samples that are pairwise different, if a proof finds some."""
    ends = sorted({sample for pair in evidence.apart_groups() for sample in pair})
    place = {sample: number for number, sample in enumerate(ends)}
    pairs = [(place[a], place[b]) for a, b in evidence.apart_groups()]
    if not pairs:
        return []
    try:
        Constraints(len(ends), cannot_link=pairs).check(k)
    except ConflictError as error:
        return [ends[number] for number in error.witness]
    return []


# History and quality -----------------------------------------------------------------------


def history(room: Room, *, before: int | None = None, limit: int = 60) -> list[dict[str, Any]]:
    """Return the last events, the newest first."""
    ledger = room.project.ledger
    ignored = {now.seq for one in room.evidence.ignored for now in _said(one)}
    events = [one for one in ledger.events if before is None or one.seq < before]
    return [
        event(room, one)
        | {
            "counts": _counts(room, one),
            "ignored": one.seq in ignored,
            "replaced": _is_replaced(room, one),
        }
        for one in reversed(events[-limit:])
    ]


def _counts(room: Room, event: Event) -> bool:
    return event.kind in {"undo", "redo"} or room.project.ledger.counts(event)


def _is_replaced(room: Room, event: Event) -> bool:
    """Whether an answer does not count any more: withdrawn, changed, or given again."""
    is_answer = event.kind in ABOUT_PAIRS and event.relation != WITHDRAWN
    if not is_answer or not room.project.ledger.counts(event):
        return False
    now = room.project.ledger.facts.answers.get((event.pair, event.owner))
    return now is None or now.seq != event.seq


def event(room: Room, event: Event) -> dict[str, Any]:
    """Return one line of the log."""
    shown: dict[str, Any] = {
        "seq": event.seq,
        "kind": event.kind,
        "who": event.who,
        "at": event.at,
        "relation": event.relation,
        "note": event.note,
        "target": event.target,
    }
    if event.kind in {*ABOUT_PAIRS, "later"}:
        shown["a"], shown["b"] = (brief(room, sample) for sample in event.pair)
    elif event.kind == "flag":
        shown["a"] = brief(room, event.a or 0)
    elif event.kind in {"rename", "lock", "clusters"}:
        shown["cluster"] = event.a
    return shown


def quality(room: Room) -> dict[str, Any]:
    """Return how the clusters settled, how people agree, and which answers deserve another look."""
    return {
        "stop": stopping(room),
        "moved": [round(run["moved"], 5) for run in room.runs[-60:]],
        "given": [run["given"] for run in room.runs[-60:]],
        "ari": _agreements(room),
        "n_truth": room.n_truth,
        "people": people(room),
        "agreement": agreement(room),
        "suspects": [
            _suspect(room, pair, probability)
            for pair, probability in room.clustering.suspects[:10]
            if pair in room.evidence.accepted
        ],
        "method": room.clustering.method,
        "seconds": room.clustering.seconds,
    }


def _agreements(room: Room) -> list[float | None]:
    """Return the agreement with the truth of each clustering, and of what is shown now."""
    found = [run.get("ari") for run in room.runs[-60:]]
    labels = room.clustering.labels
    now = None if labels is None else room.agreement_with_truth(labels)
    return found if not found or now is None or now == found[-1] else [*found, now]


def _suspect(room: Room, pair: Pair, probability: float) -> dict[str, Any]:
    return _link(room, room.evidence.accepted[pair]) | {"probability": round(probability, 3)}


def people(room: Room) -> list[dict[str, Any]]:
    """Return who answered how much, and how often repeated questions were answered otherwise."""
    counts = Counter(event.owner for event in room.project.ledger.facts.given)
    checks: dict[str, list[bool]] = {}
    for event in room.project.ledger.events:
        if event.kind != "answer" or not room.project.ledger.counts(event):
            continue
        if (event.note or "").startswith("check ") and event.relation in {"same", "different"}:
            expected = (event.note or "").removeprefix("check ")
            checks.setdefault(event.who, []).append(expected != event.relation)
    return [
        {
            "name": name,
            "answers": number,
            "checks": len(checks.get(name, [])),
            "differ": sum(checks.get(name, [])),
        }
        for name, number in counts.most_common()
    ]


def agreement(room: Room) -> list[dict[str, Any]]:
    """Return for every two people how many pairs both answered, and on how many they agree."""
    by_person: dict[str, dict[Pair, str]] = {}
    for (pair, who), event in room.project.ledger.facts.answers.items():
        if event.relation in {"same", "different"} and event.kind != "import":
            by_person.setdefault(who, {})[pair] = str(event.relation)
    found = []
    for one, other in combinations(sorted(by_person), 2):
        shared = by_person[one].keys() & by_person[other].keys()
        if shared:
            words = [(by_person[one][pair], by_person[other][pair]) for pair in shared]
            equal = sum(a == b for a, b in words)
            found.append(
                {
                    "people": [one, other],
                    "pairs": len(shared),
                    "agree": equal,
                    "kappa": kappa(words),
                }
            )
    return found


def kappa(words: list[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa; None if chance alone would agree always."""
    n = len(words)
    equal = sum(a == b for a, b in words) / n
    first = sum(a == "same" for a, _ in words) / n
    second = sum(b == "same" for _, b in words) / n
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else round((equal - chance) / (1 - chance), 3)
