"""``linkwise check``: what follows from a file of pairs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from linkwise.cli.console import INFEASIBLE, BadInput, counted, shown
from linkwise.cli.pairs import (
    conflict_in_words,
    conflict_problems,
    proof_in_words,
    read_pairs,
)
from linkwise.cli.problems import Problem, raise_problems
from linkwise.cli.reading import read_names
from linkwise.constraints import Constraints
from linkwise.constraints.feasible import require_coloring
from linkwise.exceptions import ConflictError, TooLargeError

if TYPE_CHECKING:
    from linkwise.cli.console import Console
    from linkwise.cli.pairs import Pairs
    from linkwise.cli.reading import Data
    from linkwise.cli.requests import CheckRequest

LARGEST_GROUPS = 5


def run(request: CheckRequest, console: Console) -> int:
    """Print what follows from the pairs; return 1 if they cannot all hold."""
    pairs = _pairs(request, console)
    conflicts, total = pairs.conflicts(request.limit)
    words = [conflict_in_words(conflict, pairs.names) for conflict in conflicts]
    summary: dict[str, Any] = {
        "command": "check",
        "pairs": str(request.pairs),
        "data": None if request.data is None else str(request.data),
        "n_samples": pairs.facts.n_samples,
        "must_links": int((pairs.table.sign > 0).sum()),
        "cannot_links": int((pairs.table.sign < 0).sum()),
        "uncertain": int((pairs.table.belief < 1).sum()),
        "n_conflicts": total,
        "conflicts": words,
    }
    lines = _pair_lines(summary, pairs)
    code = 0
    if total:
        lines.append(f"{counted(total, 'conflict')}:")
        lines += [f"  {word}" for word in words]
        if total > len(words):
            lines.append(f"  ... and {total - len(words)} more (--limit)")
        code = INFEASIBLE
    else:
        lines.append("no conflicts")
        n = pairs.facts.n_samples
        constraints = Constraints.from_table(n, pairs.table, labels=pairs.labels)
        lines += _closure_lines(constraints, pairs, summary)
        code = _needed_lines(constraints, pairs, request.n_clusters, summary=summary, lines=lines)
    summary["exit_code"] = code
    console.summary(summary)
    if not console.json:
        for line in lines:
            click.echo(shown(line, most=sys.maxsize))
    return code


def _pairs(request: CheckRequest, console: Console) -> Pairs:
    """Read the pairs, or raise one error about all problems, and the contradictions with them."""
    data = _names(request)
    pairs = read_pairs(request.pairs, data, request)
    problems = [*(data.problems if data is not None else ()), *pairs.problems]
    if problems:
        found = conflict_problems(pairs, request.pairs, request.limit)
        # To tell them is what the command is for: it works with them.
        problems += [problem._replace(add=(), remove=(), blocks=False) for problem in found]
        if not found:
            problems += _too_few_clusters(pairs, request.n_clusters)
        raise_problems(problems, console.arguments)
    for note in pairs.notes:
        console.note(note)
    return pairs


def _too_few_clusters(pairs: Pairs, n_clusters: int | None) -> list[Problem]:
    """Return a problem if pairs that do not contradict each other need more clusters than -k."""
    constraints = Constraints.from_table(pairs.facts.n_samples, pairs.table, labels=pairs.labels)
    try:
        if n_clusters is not None:
            constraints.check(n_clusters)
    except ConflictError:
        return [Problem(f"-k {n_clusters} is too few.", exit_code=INFEASIBLE, blocks=False)]
    return []


def _names(request: CheckRequest) -> Data | None:
    if request.data is None:
        if request.labels or request.id_column:
            raise BadInput("--id and --labels name columns of DATA, but no DATA was given.")
        return None
    return read_names(request)


def _pair_lines(summary: dict[str, Any], pairs: Pairs) -> list[str]:
    text = _two_kinds(summary["must_links"], summary["cannot_links"])
    if summary["uncertain"]:
        text += f" ({summary['uncertain']} of belief below 1, which entail nothing)"
    touched = np.unique(pairs.table.pairs)
    summary["n_constrained"] = int(touched.size)
    return [f"{text} between {touched.size} of {summary['n_samples']} samples"]


def _two_kinds(must: int, cannot: int) -> str:
    return f"{counted(must, 'must-link')} and {counted(cannot, 'cannot-link')}"


def _closure_lines(constraints: Constraints, pairs: Pairs, summary: dict[str, Any]) -> list[str]:
    closure = constraints.closure()
    sizes = np.bincount(closure.component)
    largest = np.argsort(-sizes, kind="stable")[:LARGEST_GROUPS]
    groups = [np.flatnonzero(closure.component == group).tolist() for group in largest]
    n_groups = int((sizes > 1).sum())
    names = pairs.names
    shown = [
        [str(sample) if names is None else names[sample] for sample in group]
        for group in groups
        if len(group) > 1
    ]
    summary |= {
        "entailed_must_links": int(closure.n_must_link),
        "entailed_cannot_links": int(closure.n_cannot_link),
        "n_groups": n_groups,
        "largest_groups": [len(group) for group in shown],
    }
    lines = [
        f"together with what follows: {_two_kinds(closure.n_must_link, closure.n_cannot_link)}",
        counted(n_groups, "group") + " of must-linked samples" + (":" if shown else ""),
    ]
    for group in shown:
        members = ", ".join(group[:10]) + ", ..." * (len(group) > 10)
        lines.append(f"  {len(group)}: {members}")
    if n_groups > len(shown):
        lines.append(f"  ... and {n_groups - len(shown)} more, none of them larger")
    return lines


def _needed_lines(
    constraints: Constraints,
    pairs: Pairs,
    n_clusters: int | None,
    *,
    summary: dict[str, Any],
    lines: list[str],
) -> int:
    lower, upper, why = clusters_needed(constraints)
    summary |= {"clusters_needed": lower, "clusters_sufficient": upper}
    enough = "so many suffice" if upper == lower else f"{upper} suffice for certain"
    if upper is None:
        enough = "how many suffice was not decided"
    lines.append(f"at least {counted(lower, 'cluster')} needed; {enough}")
    if why is not None:
        lines.append(f"  because of {proof_in_words(why, pairs.names)}")
    if n_clusters is None or n_clusters >= lower:
        return 0
    lines.append(f"-k {n_clusters} is too few")
    return INFEASIBLE


def clusters_needed(
    constraints: Constraints,
) -> tuple[int, int | None, ConflictError | None]:
    """Return a number of clusters that is needed, one that suffices, and the proof of the first."""
    lower, why = 1, None
    while True:
        try:
            constraints.check(lower)
            break
        except ConflictError as error:
            why = error
            lower = max(lower + 1, error.bracket[0] if error.bracket else 0)
    try:
        require_coloring(constraints, lower, np.random.RandomState(0))
    except ConflictError as error:
        return lower, error.bracket[1] if error.bracket else None, why
    except TooLargeError:
        return lower, None, why
    return lower, lower, why
