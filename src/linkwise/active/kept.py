"""Answers in memory and in a file, which agree whatever gets between."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from linkwise.active.answers import Answer, from_record
from linkwise.active.journal import Journal, Mark, check_settings

if TYPE_CHECKING:
    import os


class Kept(NamedTuple):
    """The answers, and where the file ends that keeps them."""

    answers: list[Answer]
    mark: Mark


class KeepsAnswers:
    """What sessions share: the list of answers, and the file that has them as soon as given."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._journal = None if path is None else Journal(Path(path))
        self._kept = Kept([], Mark())

    @property
    def answers(self) -> list[Answer]:
        """All answers, the last one last."""
        return self._kept.answers

    def undo(self) -> Answer:
        """Take back the last answer and return it."""
        if not self.answers:
            raise ValueError("There is no answer to take back.")
        last = self.answers[-1]
        self._commit({"undo": True}, self.answers[:-1])
        return last

    def _take_up(self) -> None:
        """Begin the file, or go on with the answers that it keeps."""
        journal = self._journal
        if journal is None:
            return
        header = self._header()
        if journal.header is None:
            self._kept = Kept([], journal.begin(header))
        else:
            check_settings(journal.path, journal.header, header)
            self._kept = Kept(self._answers_in(journal, header["n_samples"]), journal.mark)

    def _answers_in(self, journal: Journal, n_samples: int) -> list[Answer]:
        """Return the answers that a file keeps, without those that were taken back."""
        answers: list[Answer] = []
        for number, record in enumerate(journal.records, 2):
            try:
                if record.get("undo"):
                    answers.pop()
                    continue
                answer = from_record(record, n_samples)
                self._recall(record, answers)
                answers.append(answer)
            except (LookupError, TypeError, ValueError) as error:
                message = f"Line {number} of {journal.path} is not an answer: {error!r}."
                raise ValueError(message) from error
        return answers

    def _commit(self, record: dict[str, Any], answers: list[Answer]) -> None:
        """Write a record, and make `answers` the answers; or neither, if something gets between."""
        self._forget(len(answers))
        if self._journal is None:
            self._kept = Kept(answers, Mark())
            return
        try:
            # One assignment: an interrupt comes before it or after it.
            self._kept = Kept(answers, self._journal.append(record, self._kept.mark))
        except BaseException:
            self._journal.roll_back(self._kept.mark)
            raise

    def _header(self) -> dict[str, Any]:
        """Return the settings that the file begins with."""
        raise NotImplementedError

    def _recall(self, record: dict[str, Any], answers: list[Answer]) -> None:
        """Take what a record holds beside its answer; `answers` are those before it."""

    def _forget(self, n_answers: int) -> None:
        """Drop what rests on the answers so far; there will be `n_answers`."""
