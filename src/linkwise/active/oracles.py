"""Anything can answer: a person, a program, a language model; one pair at a time, or many.

An oracle is a function of two samples. It gets their row numbers or, with `items`, the things
themselves. What it returns is an answer, a probability, or None for "not sure". If it raises, the
question is put aside and asked again later; what was answered before is kept.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from linkwise.active.answers import as_answer
from linkwise.constraints.validation import as_count
from linkwise.exceptions import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from linkwise.active.answers import Answer, Given
    from linkwise.active.session import Session
    from linkwise.active.strategies import Pair

    Oracle: TypeAlias = Callable[[Any, Any], Given]
    BatchOracle: TypeAlias = Callable[[Sequence[tuple[Any, Any]]], Sequence[Given | Exception]]

MAX_FAILURES = 3  # of one question, after which it is left for another time
MAX_FAILURES_IN_A_ROW = 10  # calls without an answer, after which nobody seems to be there


class OracleError(RuntimeError):
    """An oracle failed again and again; everything that it answered before is in the session."""


class WrongFormError(ValueError):
    """What an oracle returned is no answer."""


class Asked(NamedTuple):
    """What an oracle was asked.

    Parameters
    ----------
    n_answers : int
        Answers that were recorded, "unknown" among them.
    n_failures : int
        How often the oracle raised.
    left : list of tuple of int
        Questions that it never answered, each of which raised three times.
    """

    n_answers: int
    n_failures: int
    left: list[Pair]


def ask_oracle(
    session: Session,
    oracle: Oracle | BatchOracle,
    budget: int,
    *,
    items: Any = None,
    batch_size: int | None = None,
) -> Asked:
    """Let an oracle answer questions of a session.

    Parameters
    ----------
    session : Session
        It goes on from where it is.
    oracle : callable
        ``oracle(a, b)`` returns "same", "different" or "unknown" (or True, False, None), or the
        probability that the two belong together, which is evidence of belief ``|2 p - 1|``. If it
        raises an exception, the question is asked again later.
    budget : int
        The number of answers; fewer are asked for if nothing is left to ask.
    items : sequence or data frame, default=None
        What the oracle gets instead of row numbers: for each sample a text, a row, an image.
    batch_size : int, default=None
        If given, the oracle gets a list of up to so many pairs, and returns one answer for each; in
        place of an answer an exception means that this one is asked again. If the oracle has a
        method `batch`, that is called.

    Returns
    -------
    Asked

    Raises
    ------
    OracleError
        If the oracle raised ten times in a row, or if what it returns first is no answer.
    ConflictError
        If an answer contradicts earlier ones; the other answers of its batch are recorded. In a
        session with ``noisy=True``, where answers may be wrong, this cannot happen.

    Examples
    --------
    >>> from linkwise.active import Session, ask_oracle
    >>> fruits = ["red apple", "green apple", "red cherry", "sour cherry", "sweet cherry"]
    >>> session = Session([[0.0], [1.0], [5.0], [6.0], [7.0]], 2, random_state=0)
    >>> asked = ask_oracle(session, lambda a, b: a[-5:] == b[-5:], 10, items=fruits)
    >>> labels = session.labels.tolist()
    >>> asked.left, labels[0] == labels[1] != labels[2]
    ([], True)
    """
    run = Run(session, oracle, items=items, batch_size=batch_size)
    for _ in run.answers(as_count(budget, "budget", minimum=0)):
        pass
    return run.asked


class Run:
    """An oracle at work in a session."""

    def __init__(
        self, session: Session, oracle: Any, *, items: Any = None, batch_size: int | None = None
    ) -> None:
        self.session = session
        self._item = _getter(items, session.n_samples)
        self.batch_size = 1 if batch_size is None else as_count(batch_size, "batch_size")
        one_by_one = batch_size is None
        self._ask = _one_by_one(oracle) if one_by_one else getattr(oracle, "batch", oracle)
        self._failures: Counter[Pair] = Counter()  # of questions without an answer
        self._n_answers = self._n_failures = self._in_a_row = 0

    @property
    def asked(self) -> Asked:
        """What was asked so far."""
        left = [pair for pair, n in self._failures.items() if n >= MAX_FAILURES]
        return Asked(self._n_answers, self._n_failures, left)

    def answers(self, budget: int) -> Iterator[Answer]:
        """Yield up to `budget` answers, each after it was recorded."""
        end = self._n_answers + budget
        while self._n_answers < end:
            pairs = self._questions(min(self.batch_size, end - self._n_answers))
            if not pairs:
                return
            yield from self._recorded(pairs, self._answered(pairs))

    def _questions(self, n_queries: int) -> list[Pair]:
        """Return the next questions; those that failed come after those that did not."""
        if n_queries == 1 and not self._failures:
            question = self.session.next()
            return [] if question is None else [question]
        pairs = self.session.batch(n_queries + len(self._failures))
        rest = [pair for pair in pairs if self._failures[pair] < MAX_FAILURES]
        return sorted(rest, key=lambda pair: self._failures[pair])[:n_queries]

    def _answered(self, pairs: list[Pair]) -> list[Any]:
        """Return the answers, exceptions among them."""
        try:
            found = list(self._ask([(self._item(i), self._item(j)) for i, j in pairs]))
        except Exception as error:
            return [error] * len(pairs)
        if len(found) != len(pairs):
            raise ValueError(
                f"The oracle got {len(pairs)} pairs and returned {len(found)} answers. It has to "
                "return one for each, in their order; None means that it is not sure."
            )
        return found

    def _recorded(self, pairs: list[Pair], found: list[Any]) -> Iterator[Answer]:
        """Record the answers, and put failures aside; contradictions are raised at the end."""
        conflict = None
        self._in_a_row += 1
        for pair, answer in zip(pairs, map(_failure_or_answer, found), strict=True):
            if isinstance(answer, WrongFormError) and not self._n_answers + self._n_failures:
                message = f"{answer} The oracle returned it when it was asked for the first time."
                raise OracleError(message) from answer
            if isinstance(answer, Exception):
                self._put_aside(pair, answer)
                continue
            try:
                self.session.answer(*pair, answer)
            except ConflictError as error:
                conflict = conflict or error
                continue
            self._in_a_row = 0
            self._n_answers += 1
            del self._failures[pair]
            yield self.session.answers[-1]
        if conflict is not None:
            raise conflict

    def _put_aside(self, pair: Pair, error: Exception) -> None:
        self._failures[pair] += 1
        self._n_failures += 1
        if self._in_a_row >= MAX_FAILURES_IN_A_ROW:
            raise OracleError(
                f"The oracle failed {self._in_a_row} times in a row, at last with "
                f"{type(error).__name__}: {error} The {len(self.session.answers)} answers so far "
                "are in the session; call again to go on."
            ) from error


def _failure_or_answer(answer: Any) -> Any:
    """Return an answer, or an exception, also in place of what is no answer."""
    try:
        if not isinstance(answer, Exception):
            as_answer(answer)
    except ValueError as error:
        return WrongFormError(*error.args)
    return answer


def _one_by_one(oracle: Callable[[Any, Any], Any]) -> Callable[[list[tuple[Any, Any]]], list[Any]]:
    def ask(pairs: list[tuple[Any, Any]]) -> list[Any]:
        return [oracle(*pair) for pair in pairs]

    return ask


def _getter(items: Any, n_samples: int) -> Callable[[int], Any]:
    """Return a function from the number of a sample to what the oracle gets."""
    if items is None:
        return int
    if len(items) != n_samples:
        message = f"There are {len(items)} items, but the session is about {n_samples} samples."
        raise ValueError(message)
    if hasattr(items, "iloc"):  # pandas: by position, whatever the index is
        return lambda at: items.iloc[at]
    if hasattr(items, "row") and hasattr(items, "columns"):  # polars
        return lambda at: items.row(at, named=True)
    return lambda at: items[at]
