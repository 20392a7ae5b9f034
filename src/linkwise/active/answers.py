"""Answers about pairs of samples, and the constraints that they amount to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.constraints import Constraints, PairTable
from linkwise.constraints.table import pair_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise.active.strategies import Pair

ANSWERS = {True: "same", False: "different", None: "unknown"}
NOISY_BELIEF = 0.9  # in an answer that may be wrong


class Answer(NamedTuple):
    """The answer about a pair of samples."""

    i: int
    j: int
    answer: str  # "same", "different" or "unknown"


def as_answer(answer: str | bool | None) -> str:  # noqa: FBT001
    """Return an answer as a word."""
    if answer is None or isinstance(answer, bool | np.bool_):
        return ANSWERS[None if answer is None else bool(answer)]
    if answer in ANSWERS.values():
        return str(answer)
    raise ValueError(
        f'An answer is "same", "different" or "unknown" (or True, False, None), not {answer!r}.'
    )


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


def last_answers(answers: Sequence[Answer]) -> dict[Pair, str]:
    """Return the answer that counts for each pair: the last one."""
    return {(i, j): answer for i, j, answer in answers}


def constraints_of(answers: Sequence[Answer], prior: Constraints, *, noisy: bool) -> Constraints:
    """Add answers to the constraints that were known before; "unknown" adds nothing."""
    last, before = last_answers(answers), prior.table
    if not noisy:  # an answer replaces an uncertain pair
        answered = [i * prior.n_samples + j for (i, j), word in last.items() if word != "unknown"]
        is_answered = np.isin(pair_keys(before.pairs, prior.n_samples), answered)
        before = before.kept((before.belief == 1) | ~is_answered)
    same, different = (
        np.array([pair for pair, answer in last.items() if answer == word], np.intp).reshape(-1, 2)
        for word in ("same", "different")
    )
    belief = NOISY_BELIEF if noisy else 1.0
    given = PairTable.of(same, different, must_link_belief=belief, cannot_link_belief=belief)
    return Constraints.from_table(prior.n_samples, before.joined(given), labels=prior.labels)
