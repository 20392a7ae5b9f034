"""Answers about pairs of samples, and the constraints that they amount to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from linkwise.constraints import Constraints, PairTable
from linkwise.constraints.parsing import SIGNS
from linkwise.constraints.table import pair_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from linkwise._types import Floats, Ints
    from linkwise.active.strategies import Pair

    Given: TypeAlias = str | bool | float | None  # an answer as people and programs give it

ANSWERS = {True: "same", False: "different", None: "unknown"}
NOISY_BELIEF = 0.9  # in an answer that may be wrong


class _PairAnswer(NamedTuple):
    i: int
    j: int
    answer: str


class Answer(_PairAnswer):
    """The answer about a pair of samples: ``(i, j, answer)``, and its belief.

    Parameters
    ----------
    i, j : int
        The samples.
    answer : {"same", "different", "unknown"}
        Whether they belong together.
    belief : float, default=1.0
        Below 1 if the answer was given as a probability.
    """

    belief: float

    def __new__(cls, i: int, j: int, answer: str, belief: float = 1.0) -> Answer:
        """Make an answer. The belief is no element of the tuple: most answers have none."""
        made = super().__new__(cls, i, j, answer)
        made.belief = belief
        return made

    def __eq__(self, other: object) -> bool:
        """Whether all is the same, the belief too: it changes the clustering."""
        same = tuple(self) == (tuple(other) if isinstance(other, tuple) else other)
        return same and self.belief == getattr(other, "belief", 1.0)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self) if self.belief == 1 else (*self, self.belief))

    def _replace(self, **changes: Any) -> Answer:
        """Return the answer with some parts changed."""
        return Answer(**{**self._asdict(), **changes})

    def __repr__(self) -> str:
        belief = f", belief={self.belief:g}" if self.belief < 1 else ""
        return f"Answer(i={self.i}, j={self.j}, answer={self.answer!r}{belief})"

    @property
    def is_fact(self) -> bool:
        """Whether conclusions are drawn from it."""
        return self.answer != "unknown" and self.belief == 1

    def _asdict(self) -> dict[str, Any]:
        """Return what a file keeps; the belief only if there is something to say."""
        return super()._asdict() | ({"belief": self.belief} if self.belief < 1 else {})


def as_answer(answer: Given) -> str:
    """Return an answer as a word."""
    return graded(answer)[0]


def graded(answer: Given) -> tuple[str, float]:
    """Return an answer as a word and a belief.

    The probability :math:`p` that two samples belong together has the belief :math:`|2 p - 1|`, as
    votes have: three for and two against are a must-link of belief 1/5.

    Examples
    --------
    >>> graded(True), graded(0.25), graded(0.5)
    (('same', 1.0), ('different', 0.5), ('unknown', 1.0))
    """
    if answer is None or isinstance(answer, bool | np.bool_):
        return ANSWERS[None if answer is None else bool(answer)], 1.0
    if isinstance(answer, str):
        word = answer.strip().lower()
        if word in SIGNS or word in ANSWERS.values():
            return ANSWERS[SIGNS[word] > 0] if word in SIGNS else word, 1.0
    if isinstance(answer, int | float | np.integer | np.floating) and 0 <= answer <= 1:
        lean = 2 * float(answer) - 1
        return ("unknown", 1.0) if lean == 0 else ("same" if lean > 0 else "different", abs(lean))
    raise ValueError(
        'An answer is "same", "different" or "unknown" (or True, False, None), or the probability '
        f"of the same cluster, from 0 to 1; not {answer!r}."
    )


def from_record(record: dict[str, Any], n_samples: int) -> Answer:
    """Return the answer that a line of a file holds."""
    word, belief = record["answer"], record.get("belief", 1.0)
    if word not in ANSWERS.values() or not isinstance(belief, float) or not 0 < belief <= 1:
        raise ValueError(f"{word!r} of belief {belief!r} is no answer")
    return Answer(*as_pair(record["i"], record["j"], n_samples), word, belief)


def as_pair(i: Any, j: Any, n_samples: int) -> Pair:
    """Return two different samples, the smaller index first."""
    for value in (i, j):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"A sample is an integer, got {value!r}.")
        if not 0 <= value < n_samples:
            raise IndexError(
                f"There is no sample {value}: there are {n_samples} "
                f"(valid indices are 0..{n_samples - 1})."
            )
    if i == j:
        raise ValueError(f"Sample {i} is paired with itself. Name two different samples.")
    return (int(min(i, j)), int(max(i, j)))


def last_answers(answers: Sequence[Answer]) -> dict[Pair, Answer]:
    """Return the answer that counts for each pair, the last one."""
    return {(one.i, one.j): one for one in answers}


def uncertain_pairs(answers: Sequence[Answer]) -> list[Pair]:
    """Return the pairs that were answered, but not as facts: they are not asked again."""
    return [pair for pair, one in last_answers(answers).items() if not one.is_fact]


def constraints_of(answers: Sequence[Answer], prior: Constraints, *, noisy: bool) -> Constraints:
    """Add answers to the constraints that were known before; "unknown" adds nothing."""
    last, before = last_answers(answers), prior.table
    if not noisy:  # an answer replaces an uncertain pair
        answered = [
            i * prior.n_samples + j for (i, j), one in last.items() if one.answer != "unknown"
        ]
        is_answered = np.isin(pair_keys(before.pairs, prior.n_samples), answered)
        before = before.kept((before.belief == 1) | ~is_answered)
    scale = NOISY_BELIEF if noisy else 1.0
    same, same_belief = _pairs_of(last.values(), "same", scale)
    different, different_belief = _pairs_of(last.values(), "different", scale)
    given = PairTable.of(
        same, different, must_link_belief=same_belief, cannot_link_belief=different_belief
    )
    return Constraints.from_table(prior.n_samples, before.joined(given), labels=prior.labels)


def _pairs_of(answers: Iterable[Answer], word: str, scale: float) -> tuple[Ints, Floats]:
    """Return the pairs of one kind of answer, and their beliefs."""
    found = [one for one in answers if one.answer == word]
    pairs = np.array([(one.i, one.j) for one in found], np.intp).reshape(-1, 2)
    return pairs, scale * np.array([one.belief for one in found], np.float64)
