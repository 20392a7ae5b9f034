"""What the page sends, checked: wrong values are told, and nothing is written."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from linkwise.app.events import ANSWERS, Event

if TYPE_CHECKING:
    from collections.abc import Mapping

UUID = re.compile(r"[0-9a-fA-F-]{8,64}")
NAME = re.compile(r"[^\x00-\x1f\x7f;,\"\\]{1,40}")
MAX_PAIRS = 5_000  # of one action


class BadRequestError(ValueError):
    """A request that cannot be understood; the message says why."""


class Said(NamedTuple):
    """What is said about one pair."""

    a: int
    b: int
    relation: str
    note: str | None


def parse_body(content: bytes) -> dict[str, Any]:
    """Read a JSON object; no NaN, no numbers beyond all bounds, no key twice, no half letters."""
    try:
        body = json.loads(content, parse_constant=_no_number, object_pairs_hook=_no_repeats)
        json.dumps(body, ensure_ascii=False).encode()  # a lone surrogate cannot be written
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"The request is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("The request is no JSON object.")
    return body


def _no_number(text: str) -> float:
    raise BadRequestError(f"{text} is no number.")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadRequestError("A key is given twice.")
    return found


def uuid_of(body: Mapping[str, Any]) -> str:
    """Return the name of an action, which is written once however often it is sent."""
    text = body.get("uuid")
    if not isinstance(text, str) or not UUID.fullmatch(text):
        raise BadRequestError("uuid is missing: a text that no other action has.")
    return text


def sample_of(value: Any, n_samples: int, name: str) -> int:
    """Return the index of a sample."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < n_samples:
        raise BadRequestError(f"{name} is {value!r}, but samples are 0 to {n_samples - 1}.")
    return value


def samples_of(value: Any, n_samples: int) -> list[int]:
    """Return a list of different samples."""
    if not isinstance(value, list) or not 2 <= len(value) <= MAX_PAIRS:
        raise BadRequestError(f"samples is a list of 2 to {MAX_PAIRS} samples.")
    return list(dict.fromkeys(sample_of(one, n_samples, "a sample") for one in value))


def said_of(value: Any, n_samples: int) -> Said:
    """Return what is said about a pair, the smaller index first."""
    if not isinstance(value, dict):
        raise BadRequestError("An answer is an object with a, b and relation.")
    a, b = (sample_of(value.get(name), n_samples, name) for name in "ab")
    relation, check = value.get("relation"), value.get("check")
    if a == b:
        raise BadRequestError(f"Sample {a} is paired with itself.")
    if relation not in (*ANSWERS, "later"):
        raise BadRequestError(
            f"relation is {relation!r}, not one of {', '.join(ANSWERS)} or later."
        )
    if check not in (None, "same", "different"):
        raise BadRequestError("check is what a repeated question was answered with before.")
    note = None if check is None else f"check {check}"
    return Said(min(a, b), max(a, b), relation, note)


def answer_events(body: Mapping[str, Any], who: str, n_samples: int) -> list[Event]:
    """Return the events of an action that answers one question or several."""
    uuid, ms = uuid_of(body), _milliseconds(body.get("ms"))
    listed = body.get("answers", [body])
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_PAIRS:
        raise BadRequestError(f"answers is a list of 1 to {MAX_PAIRS} answers.")
    found = [said_of(one, n_samples) for one in listed]
    if len({one[:2] for one in found}) < len(found):
        raise BadRequestError("A pair is answered twice in one action.")
    return [
        Event("later", uuid, who, one.a, one.b, ms=ms)
        if one.relation == "later"
        else Event("answer", uuid, who, one.a, one.b, one.relation, ms=ms, note=one.note)
        for one in found
    ]


def _milliseconds(value: Any) -> int | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not -math.inf < value < math.inf:  # also of integers beyond all floats
        raise BadRequestError(f"ms is {value!r}, which is no number of milliseconds.")
    return int(min(max(value, 0), 1e9))


def name_of(value: Any) -> str:
    """Return the name of a person."""
    text = value.strip() if isinstance(value, str) else ""
    if not NAME.fullmatch(text):
        raise BadRequestError("A name has 1 to 40 letters, without quotes, commas or semicolons.")
    return text


def text_of(value: Any, limit: int) -> str:
    """Return a text of limited length without control characters."""
    if not isinstance(value, str) or len(value) > limit or not value.isprintable():
        raise BadRequestError(f"A text of up to {limit} letters is expected.")
    return value.strip()
