"""Problems with the inputs: collected while reading, told at once, with a command that works."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from linkwise.cli.console import BAD_INPUT, INFEASIBLE, BadInput, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LISTED = 30  # problems in one message


class Problem(NamedTuple):
    """Something wrong in a file or an option, and the options that would make it right."""

    text: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()  # options to leave out, with their values
    exit_code: int = BAD_INPUT
    blocks: bool = True  # whether the command cannot do its work
    adds_text: bool = False  # whether a column could be compared by --text as well

    @property
    def has_options(self) -> bool:
        """Whether options solve it; otherwise somebody has to correct a file or a name."""
        return bool(self.add or self.remove)


class Problems(BadInput):
    """All problems of a command, in one message."""

    def __init__(self, problems: Sequence[Problem], arguments: Sequence[str]) -> None:
        self.problems = list(problems)
        self.suggestion = suggested_command(problems, arguments)
        super().__init__(self._message())

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """Of contradictions alone it is another one than of wrong input."""
        codes = {problem.exit_code for problem in self.problems}
        return INFEASIBLE if codes == {INFEASIBLE} else BAD_INPUT

    def _message(self) -> str:
        texts = [" ".join(problem.text.split()) for problem in self.problems]
        lines = texts
        if len(texts) > 1:
            lines = [f"{counted(len(texts), 'problem')}:", *(f"  {t}" for t in texts[:LISTED])]
        if len(texts) > LISTED:
            lines.append(f"  ... and {len(texts) - LISTED} more")
        if self.suggestion is not None:
            lines = [*lines, f"{self._outcome()}: {self.suggestion}"]
        return "\n".join(lines)

    def _outcome(self) -> str:
        """Say what the suggested command would do."""
        left = {problem.exit_code for problem in self.problems if not problem.blocks}
        if INFEASIBLE in left:
            return f"This would list the conflicts, and end with exit code {INFEASIBLE}"
        return "This would work"


def raise_problems(problems: Iterable[Problem], arguments: Sequence[str]) -> None:
    """Raise one error about all problems, if there are any."""
    found = list(dict.fromkeys(problems))
    if found:
        raise Problems(found, arguments)


def suggested_command(problems: Sequence[Problem], arguments: Sequence[str]) -> str | None:
    """Return what was typed with the options that solve every problem; None if some need more."""
    if not all(problem.has_options or not problem.blocks for problem in problems):
        return None
    removed = {option for problem in problems for option in problem.remove}
    kept, skip = [], False
    for argument in arguments:
        option = argument.partition("=")[0]
        if not skip and option not in removed:
            kept.append(argument)
        skip = option in removed and "=" not in argument and not skip
    added = dict.fromkeys(problem.add for problem in problems if problem.add)
    return shlex.join(["linkwise", *kept, *(text for options in added for text in options)])
