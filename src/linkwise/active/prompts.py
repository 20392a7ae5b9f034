"""Questions as text, and replies as answers: what a language model reads and writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATE = """\
{question}

First item:
{a}

Second item:
{b}

Reply with one word: same, different, or unsure.
"""
QUESTION = "Do these two items belong to the same group?"
REMINDER = "\nReply with nothing but one word: same, different, or unsure."
LONGEST_ITEM = 4_000  # characters of an item in a prompt


class UnreadableReplyError(ValueError):
    """A reply in which no answer was found, or more than one."""


# Items -------------------------------------------------------------------------------------


def describe(item: Any) -> str:
    """Return an item as text: texts as they are, rows as names and values.

    Examples
    --------
    >>> print(describe({"name": "Ann Smith", "city": "York"}))
    name: Ann Smith
    city: York
    >>> describe(np.array([1.0, 0.25]))
    '1, 0.25'
    """
    if isinstance(item, str):
        return item[:LONGEST_ITEM]
    if hasattr(item, "_asdict"):  # a named tuple
        item = item._asdict()
    if hasattr(item, "items"):  # a mapping, or a row of a data frame
        lines = (f"{name}: {_value(value)}" for name, value in item.items())
        return "\n".join(lines)[:LONGEST_ITEM]
    if isinstance(item, (np.ndarray, list, tuple)):
        return ", ".join(_value(value) for value in np.asarray(item).ravel().tolist())[
            :LONGEST_ITEM
        ]
    return str(item)[:LONGEST_ITEM]


def _value(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    return str(value)


def checked_template(template: str) -> str:
    """Raise ValueError if a template has no place for one of the items."""
    missing = [f"{{{name}}}" for name in ("a", "b") if f"{{{name}}}" not in template]
    if missing:
        raise ValueError(f"The template has no {' and no '.join(missing)}, where an item belongs.")
    return template


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values into a template, in one pass: braces in a value, or elsewhere, mean nothing.

    Examples
    --------
    >>> fill('{"first": "{a}", "second": "{b}"}', {"a": "{b}", "b": "x", "question": ""})
    '{"first": "{b}", "second": "x"}'
    """
    return re.sub(r"\{(a|b|question)\}", lambda found: values[found[1]], template)


# Replies -----------------------------------------------------------------------------------

NOT = r"(?:not|no|never|hardly|cannot|\w+n't)"
TELL = r"(?:say|tell|know|decide|determine|judge)"
# Of several that begin at one place, the first is meant: "not the same" is no "same".
SIGNS: tuple[tuple[str, bool | None], ...] = (
    (rf"{NOT} (?:at all |entirely |quite )?(?:sure|certain|clear|possible to {TELL})", None),
    (r"unsure|unknown|uncertain|undecided|unclear|ambiguous|maybe|perhaps|no idea", None),
    (rf"(?:cannot|can't|can not|don't|do not|unable to|impossible to) {TELL}", None),
    (r"(?:not enough|insufficient|no) information", None),
    (rf"{NOT} (?:\w+ )?(?:the |a |in the )?(?:same|identical|match|duplicates?)", False),
    (rf"{NOT} (?:\w+ )?(?:different|distinct|differ)", True),
    (r"same|identical|match(?:es|ing)?|duplicates?|yes|true", True),
    (r"different|distinct|differ|separate|mismatch|no|false", False),
)
SIGN = re.compile(
    "|".join(rf"(?P<s{number}>\b(?:{sign})\b)" for number, (sign, _) in enumerate(SIGNS))
)
LEADING = re.compile(r"^(?:the|they are|they're|these are|it is|it's|both are|\W)*")
ENDED = re.compile(r"\s*(?:[^\w\s%]|\n|$)")  # of a reply that is a word: what may follow it
ASIDE = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)  # what it says to itself
EMPHASIS = str.maketrans("*_`", "   ")
ECHO = re.compile(r"\bsame\W+(?:or\W+)?different(?:\W+(?:or\W+)?unsure)?\b")
FRACTION = r"(\d+(?:\.\d+)?|\.\d+)\s*(%?)"
PROBABILITY = re.compile(rf"\bprobability\b[^0-9.\n]{{0,40}}{FRACTION}")  # of "same"
CONFIDENCE = re.compile(rf"\bconfiden(?:ce|t)\b[^0-9.\n]{{0,40}}{FRACTION}")  # in the answer
NUMBER = re.compile(rf"^[^\w.-]*{FRACTION}\W*$")
STATED = re.compile(r"\b(?:answer|verdict|conclusion|decision|result|same)\b[\"'*_ ]*[:=](.*)")


def parse_reply(text: str) -> bool | float | None:
    r"""Return the answer that a reply gives: True, False, None for "not sure", or a probability.

    A line such as ``Answer: same`` counts before anything else; then a number alone, or after the
    word "probability"; then the first word, if it is an answer by itself; and at last what all the
    words agree on.

    Raises
    ------
    UnreadableReplyError
        If there is no answer in it, or more than one.

    Parameters
    ----------
    text : str
        The reply of a model or a person.

    Examples
    --------
    >>> parse_reply("Same."), parse_reply("They are not the same."), parse_reply("I cannot tell")
    (True, False, None)
    >>> parse_reply("Both are called Ann.\nAnswer: different"), parse_reply("85 %")
    (False, 0.85)
    """
    plain = ASIDE.sub(" ", text.lower().replace("\u2019", "'"))
    plain = ECHO.sub(" ", plain.translate(EMPHASIS))
    number, answer = _number(PROBABILITY, plain), _answer(plain)
    if isinstance(answer, float):
        return answer
    if number is not None and (answer == "" or answer is (number > 0.5)):
        return number
    confidence = _number(CONFIDENCE, plain)
    if isinstance(answer, bool) and number is None and confidence is not None:
        return confidence if answer else 1 - confidence
    if answer != "" and number is None:
        return answer
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    raise UnreadableReplyError(
        f"The reply {shown!r} does not say whether the two are the same, different, or unsure."
    )


def _number(pattern: re.Pattern[str], text: str) -> float | None:
    """Return the fraction that a text names, if it does."""
    found = pattern.search(text)
    if found is None:
        return None
    value = float(found[1]) / (100 if found[2] else 1)
    return value if value <= 1 else None


def _answer(text: str) -> Any:
    """Return the answer in words, or a number that is all there is; an empty text if there is none.

    What is stated as the answer counts before the rest.
    """
    for part in (*STATED.findall(text)[-1:], text):
        number = _number(NUMBER, part)
        if number is not None:
            return number
        answers = _answers(part)
        if answers:
            return answers.pop() if len(answers) == 1 else ""
    return ""


def _answers(text: str) -> set[bool | None]:
    """Return all answers that a text might give; one, if it begins with a word that is one."""
    start = LEADING.match(text)
    first = SIGN.match(text, start.end() if start else 0)
    if first is not None and ENDED.match(text, first.end()):
        return {_meaning(first)}
    found = {_meaning(one) for one in SIGN.finditer(text)}
    return {None} if None in found else found  # who is not sure says what might be


def _meaning(sign: re.Match[str]) -> bool | None:
    return SIGNS[int(str(sign.lastgroup)[1:])][1]
