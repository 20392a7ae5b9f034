"""TextOracle: any function from a prompt to a text as an oracle."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.active.answers import graded
from linkwise.active.prompts import (
    QUESTION,
    REMINDER,
    TEMPLATE,
    UnreadableReplyError,
    checked_template,
    describe,
    fill,
    parse_reply,
)
from linkwise.active.replies import ReplyCache, question_key
from linkwise.constraints.validation import as_count

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from linkwise.active.answers import Given

LONGEST_WAIT = 60.0  # seconds before a call is tried again


class ErrorEstimate(NamedTuple):
    """How often a model contradicts itself, and how often it is wrong at least.

    Parameters
    ----------
    n_pairs : int
        Pairs with at least two answers that are not "unsure".
    repeated : float
        Share of contradictions among answers to one prompt; nan if no prompt was repeated.
    swapped : float
        The same among answers to prompts that differ in the order of the items.
    error_rate : float
        The rate of wrong answers that explains the contradictions. Errors that the model makes
        each time do not show: it is a lower bound.
    n_unsure : int
        Answers that were "unsure".
    """

    n_pairs: int
    repeated: float
    swapped: float
    error_rate: float
    n_unsure: int


class TextOracle:
    """Answers by a function from a prompt to a text, such as a call of a language model.

    Nothing is sent anywhere by linkwise: `complete` is yours.

    Parameters
    ----------
    complete : callable
        ``complete(prompt)`` returns the reply, a text. It may raise.
    question : str, optional
        What is asked about two items, such as "Do these two records describe the same person?".
    template : str, optional
        The prompt, with places for ``{a}``, ``{b}`` and ``{question}``. Other braces mean nothing.
    describe : callable, optional
        Turns an item into text. By default texts stay as they are, and rows are written as lines
        of names and values.
    parse : callable, optional
        Turns a reply into True, False, None ("unsure") or the probability of "same", and raises
        ValueError if it cannot; see :func:`parse_reply`.
    votes : int, default=1
        How often each pair is asked, with the items in turn in both orders. The answer is the mean
        of the votes: two that contradict each other are "unknown".
    error_rate : float, default=0.0
        Share of the answers that are wrong, as found by `estimate_error`. An answer is then the
        probability ``1 - error_rate``, and no fact.
    retries : int, default=2
        How often a call is tried again that raised, or whose reply cannot be read.
    wait : float, default=1.0
        Seconds before a call that raised is tried again, doubled each time.
    cache : str or path-like, optional
        A file of replies, so that no prompt is sent twice, in later runs neither.
    model : str, default=""
        Name of the model, for the cache: another one has other replies.
    workers : int, default=1
        Threads in which a batch of pairs is asked.

    Attributes
    ----------
    n_calls : int
        How often `complete` was called.

    Examples
    --------
    >>> def complete(prompt):  # in place of a language model
    ...     first, second = prompt.split("item:")[1:]
    ...     return "Same." if first.split()[0] == second.split()[0] else "Different."
    >>> oracle = TextOracle(complete, votes=2)
    >>> oracle("Ann Smith", "Ann Smyth"), oracle("Ann Smith", "Bob Smith"), oracle.n_calls
    (True, False, 4)
    """

    def __init__(  # noqa: PLR0913  (settings, each with a default)
        self,
        complete: Callable[[str], str],
        *,
        question: str = QUESTION,
        template: str = TEMPLATE,
        describe: Callable[[Any], str] = describe,
        parse: Callable[[str], Given] = parse_reply,
        votes: int = 1,
        error_rate: float = 0.0,
        retries: int = 2,
        wait: float = 1.0,
        cache: str | os.PathLike[str] | None = None,
        model: str = "",
        workers: int = 1,
    ) -> None:
        if not 0 <= error_rate < 0.5:
            raise ValueError(f"error_rate is a share from 0 to below 0.5, got {error_rate!r}.")
        self.complete, self.describe, self.parse = complete, describe, parse
        self.question, self.template = question, checked_template(template)
        self.votes, self.retries = as_count(votes, "votes"), as_count(retries, "retries", minimum=0)
        self.error_rate, self.wait, self.model = error_rate, wait, model
        self.workers = as_count(workers, "workers")
        self.cache = ReplyCache(None if cache is None else Path(cache))
        self.n_calls = 0
        self._counting = Lock()

    def __call__(self, a: Any, b: Any) -> bool | float | None:
        """Answer about two items: True, False, None for "unsure", or a probability."""
        found = self.answers(a, b, self.votes)
        if len(set(found)) == 1 and (found[0] is None or not self.error_rate):
            return found[0]  # as it was given: a fact, if it is no number
        return float(np.mean([self._probability(one) for one in found]))

    def batch(self, pairs: Sequence[tuple[Any, Any]]) -> list[Given | Exception]:
        """Answer about several pairs of items, in threads; exceptions in place of failures."""
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(self._answer_or_error, pairs))

    def answers(self, a: Any, b: Any, n_votes: int) -> list[bool | float | None]:
        """Return several answers about two items, with the items in turn in both orders."""
        return [
            self._vote(*((a, b) if vote % 2 == 0 else (b, a)), repeat=vote // 2)
            for vote in range(n_votes)
        ]

    def estimate_error(
        self, pairs: Sequence[tuple[Any, Any]], *, n_repeats: int = 2
    ) -> ErrorEstimate:
        r"""Ask about pairs several times in both orders, and count the contradictions.

        Two independent answers that are each wrong at the rate :math:`e` contradict each other at
        the rate :math:`d = 2 e (1 - e)`. Half a contradiction is added, since none among few pairs
        does not mean that there are none.

        Parameters
        ----------
        pairs : sequence of (item, item)
            Some twenty pairs of items; what is known of them is not needed.
        n_repeats : int, default=2
            How often each order is asked.

        Returns
        -------
        ErrorEstimate
        """
        n_votes = 2 * as_count(n_repeats, "n_repeats")
        found = [[_leaning(one) for one in self.answers(a, b, n_votes)] for a, b in pairs]
        return error_estimate(found)

    # One vote -----------------------------------------------------------------------------

    def _answer_or_error(self, pair: tuple[Any, Any]) -> Given | Exception:
        try:
            return self(*pair)
        except Exception as error:
            return error

    def _vote(self, a: Any, b: Any, *, repeat: int) -> bool | float | None:
        texts = {"a": self.describe(a), "b": self.describe(b), "question": self.question}
        prompt = fill(self.template, texts)
        key = question_key(self.model, prompt, str(repeat))
        known = self.cache.get(key)
        if known is not None:
            return self._parsed(known)
        reply, answer = self._asked(prompt)
        self.cache.put(key, reply)
        return answer

    def _asked(self, prompt: str) -> tuple[str, bool | float | None]:
        """Return a reply that can be read, and the answer in it."""
        asked, n_failures = prompt, 0
        while True:
            try:
                with self._counting:
                    self.n_calls += 1
                reply = str(self.complete(asked))
                return reply, self._parsed(reply)
            except Exception as error:
                n_failures += 1
                if n_failures > self.retries:
                    raise
                if isinstance(error, UnreadableReplyError):
                    asked = prompt + REMINDER
                else:
                    time.sleep(min(self.wait * 2 ** (n_failures - 1), LONGEST_WAIT))

    def _parsed(self, reply: str) -> bool | float | None:
        """Return the answer in a reply, as True, False, None or a probability."""
        try:
            given = self.parse(reply)
            word, belief = graded(given)
        except ValueError as error:
            raise UnreadableReplyError(str(error)) from error
        if word == "unknown":
            return None
        is_same = word == "same"
        return is_same if belief == 1 else 0.5 + (belief / 2 if is_same else -belief / 2)

    def _probability(self, answer: bool | float | None) -> float:  # noqa: FBT001
        """Return the probability of "same", given how often answers are wrong."""
        p = 0.5 if answer is None else float(answer)
        return self.error_rate + (1 - 2 * self.error_rate) * p


# Contradictions ----------------------------------------------------------------------------


def _leaning(answer: bool | float | None) -> bool | None:  # noqa: FBT001
    return None if answer is None else answer > 0.5


def error_estimate(votes: Sequence[Sequence[bool | None]]) -> ErrorEstimate:
    """Count contradictions among votes on pairs, whose items were in turn in both orders.

    Examples
    --------
    >>> error_estimate([[True, True, True, True], [True, False, True, False]])[:3]
    (2, 0.0, 0.5)
    """
    counts = {True: [0, 0], False: [0, 0]}  # whether in one order: contradictions, comparisons
    n_pairs = 0
    for of_pair in votes:
        known = [(at % 2, vote) for at, vote in enumerate(of_pair) if vote is not None]
        n_pairs += len(known) > 1
        for (order, vote), (other_order, other) in combinations(known, 2):
            counts[order == other_order][0] += vote != other
            counts[order == other_order][1] += 1
    repeated, swapped = (n / m if m else float("nan") for n, m in counts.values())
    n_differ, n_compared = (sum(column) for column in zip(*counts.values(), strict=True))
    differ = min((n_differ + 0.5) / (n_compared + 1), 0.5)
    n_unsure = sum(vote is None for of_pair in votes for vote in of_pair)
    return ErrorEstimate(n_pairs, repeated, swapped, (1 - (1 - 2 * differ) ** 0.5) / 2, n_unsure)
