"""Files of pairs, with everything that contradicts in them, in the names and lines of the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.cli.console import INFEASIBLE, BadInput
from linkwise.cli.problems import Problem
from linkwise.cli.tables import text_of
from linkwise.constraints import logic, parsing
from linkwise.constraints.feasible import shortest_conflict
from linkwise.constraints.formats import format_of
from linkwise.constraints.table import PairTable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from linkwise._types import Ints
    from linkwise.cli.reading import Data
    from linkwise.cli.requests import DataRequest
    from linkwise.constraints import Constraints
    from linkwise.constraints.conflict import Conflict, Suspect
    from linkwise.constraints.formats import Columns
    from linkwise.constraints.labels import Labels
    from linkwise.exceptions import ConflictError


SUSPICIOUS = 0.5  # probability of being wrong above which a constraint is named
LISTED = 20  # lines or names in one message
NAME_IDS = "If i and j are names, say with --id which column of DATA holds them."
ACCEPTING_METHOD = "auto"  # accepts contradictions unless it is set otherwise
ACCEPTING = ("-m", ACCEPTING_METHOD), ("-m", "--method", "--set")  # to use, and to leave out
KINDS = {
    "odd ring": "cannot-links around a ring of odd length",
    "clique": "rows that are pairwise kept apart",
    "wheel": "cannot-links around a ring of odd length and rows apart from all of it",
    "minimal set": "a set of pairs that exhaustive search could not satisfy",
}


class Pairs(NamedTuple):
    """The pairs of a file and the labels of the data, contradictory or not."""

    facts: logic.Facts
    names: list[str] | None
    table: PairTable
    labels: Labels | None
    problems: list[Problem]
    notes: list[str]

    def conflicts(self, limit: int) -> tuple[list[Conflict], int]:
        """Return the first contradictions with their proofs, and how many there are."""
        found = logic.contradictions(self.facts, logic.components(self.facts))
        return logic.explain(self.facts, found, limit), found.total

    @property
    def n_conflicts(self) -> int:
        """The number of contradictions."""
        return logic.contradictions(self.facts, logic.components(self.facts)).total


def read_pairs(path: Path, data: Data | None, request: DataRequest) -> Pairs:
    """Read a file of pairs and note its problems; without DATA every name in it is a sample."""
    ids = None if data is None else data.names
    try:
        columns, problems = _columns(path, request)
        if data is None:
            ids = _names_in(columns, path)
        found, by_position = _parsed(columns, data, ids=ids, request=request)
        if data is not None and not by_position and (other := _other_ids(path, columns, data)):
            # Their problems and contradictions are told with this one, not after it.
            ids = other[1]
            problems.append(other[0])
            found, _ = _parsed(columns, data, ids=ids, request=request)
    except (ValueError, IndexError) as error:
        return _no_pairs(data, Problem(_in_options(error)))
    n, table, errors, notes = found
    texts = _advised_once([_in_options(error.error) for error in errors])
    problems += [
        Problem(text, ("--skip-unknown",) if error.is_unknown else ())
        for text, error in zip(texts, errors, strict=True)
    ]
    if by_position:
        notes.append("i and j are positions of rows, counted from 0: none is an id")
    names = None if ids is None else [str(name) for name in ids]
    labels = None if data is None else data.known_labels
    table = table.unique(n)
    facts = logic.facts_of(n, table, labels)
    return Pairs(facts, names, table, labels, problems, [f"{path}: {note}" for note in notes])


def _columns(path: Path, request: DataRequest) -> tuple[Columns, list[Problem]]:
    """Return the columns of pairs; if they have other names, those that are probably meant."""
    if path.is_dir() or not path.exists():
        raise ValueError(
            f"There is no file {path}." if not path.exists() else f"{path} is a folder."
        )
    wanted = None if request.pair_columns is None else request.pair_columns.split(",")
    try:
        found = format_of(path).read(path)
        return parsing.choose_columns(found, wanted), []
    except parsing.ColumnsError as error:
        _raise_if_session(path)
        if not error.guess:
            raise
        option = ("--pair-columns", ",".join(error.guess))
        problem = Problem(_in_options(error), option, ("--pair-columns",))
        return parsing.choose_columns(found, error.guess), [problem]
    except ValueError:
        _raise_if_session(path)
        raise


def _parsed(
    columns: Columns, data: Data | None, *, ids: list[str] | None, request: DataRequest
) -> tuple[parsing.Parsed, bool]:
    """Parse the rows; if ids were only guessed and none fits, as positions, and say so."""
    n = None if data is None else data.n_samples
    skip = request.skip_unknown
    if data is not None and data.ids_were_found and ids is not None:
        known = set(ids)
        if not any(str(value).strip() in known for name in "ij" for value in columns.values[name]):
            found = parsing.parse_pairs(columns, n, None, skip_unknown=skip)
            if not any(problem.is_unknown for problem in found.problems):
                return found, True
    return parsing.parse_pairs(columns, n, ids, skip_unknown=skip), False


def _other_ids(path: Path, columns: Columns, data: Data) -> tuple[Problem, list[str]] | None:
    """Return a problem if no name of the pairs is an id, but most are in another column; and it."""
    given = {str(value).strip() for name in "ij" for value in columns.values[name]}
    if not given or data.names is None or not given.isdisjoint(data.names):
        return None
    for name in () if data.everything is None else data.everything.columns:
        texts = text_of(data.everything[name])
        if 2 * len(given.intersection(texts)) > len(given) and len(set(texts)) == len(texts):
            text = f"{path}: its names are not ids, but those of the column {str(name)!r}."
            return Problem(text, ("--id", str(name)), ("--id",)), list(texts)
    return None


def _no_pairs(data: Data | None, problem: Problem) -> Pairs:
    none = PairTable.of(*[np.empty((0, 2), dtype=np.intp)] * 2)
    labels = None if data is None else data.known_labels
    facts = logic.facts_of(1 if data is None else data.n_samples, none, labels)
    return Pairs(facts, None, none, labels, [problem], [])


def _in_options(error: Exception) -> str:
    """Return a message with the options of the command line."""
    text = str(error).replace("Pass ids=names if the columns hold names.", NAME_IDS)
    return text.replace("columns=(...) says", "--pair-columns I,J,LINK says")


def _advised_once(texts: list[str]) -> list[str]:
    """Return messages of which only the first says how to name the column with the ids."""
    first = next((k for k, text in enumerate(texts) if text.endswith(NAME_IDS)), 0)
    return [
        text if k == first else text.removesuffix(f" {NAME_IDS}") for k, text in enumerate(texts)
    ]


def conflict_problems(pairs: Pairs, path: Path, limit: int = LISTED) -> list[Problem]:
    """Return the contradictions of a file as problems; the default method accepts them."""
    conflicts, total = pairs.conflicts(limit)
    if not total:
        return []
    texts = [f"{path}: {conflict_in_words(conflict, pairs.names)}" for conflict in conflicts]
    if total > len(texts):
        texts[-1] += f" {total - len(texts)} more: linkwise check lists them."
    return [Problem(text, *ACCEPTING, INFEASIBLE) for text in texts]


def _names_in(columns: Columns, path: Path) -> list[str]:
    names = parsing.names_in(columns)
    if not names:
        raise ValueError(f"{path} has a header but no pairs.")
    return names


def _raise_if_session(path: Path) -> None:
    """Say how to get pairs if a file is what ``linkwise ask --session`` keeps."""
    if not path.is_file():  # a pipe has been read
        return
    with path.open("rb") as file:
        start = file.readline(10_000)
    try:
        header = json.loads(start)
    except (ValueError, RecursionError):
        return
    if isinstance(header, dict) and str(header.get("format")).startswith("linkwise session"):
        k = header.get("n_clusters")  # 0 if it is found
        option = f"-k {k}" if k else f"-m {header.get('method')}"
        command = f"linkwise ask DATA {option} --session {path} -o pairs.csv"
        raise BadInput(
            f"{path} is a session of linkwise ask, not a file of pairs. Write its answers as "
            f"pairs: {command}, with the options that it was begun with."
        )


def violated_pairs(known: Constraints, labels: Ints, ids: list[Any]) -> list[dict[str, Any]]:
    """Return the pairs of a file that a clustering violates, in the order of their lines."""
    found: list[dict[str, Any]] = []
    wrong = known.violated(labels).table
    for pair, sign, belief, line in zip(*map(np.ndarray.tolist, wrong), strict=True):
        i, j = (ids[sample] for sample in pair)
        link = "must" if sign > 0 else "cannot"
        found.append({"i": i, "j": j, "link": link, "belief": belief, "line": line})
    return sorted(found, key=lambda pair: pair["line"])


def suspicious(suspects: Iterable[Suspect], ids: list[Any]) -> list[dict[str, Any]]:
    """Return the constraints that are more likely wrong than right, the likeliest first."""
    found = []
    for one in suspects:
        if one.probability is None or one.probability <= SUSPICIOUS:
            break
        named: dict[str, Any] = {"i": ids[one.samples[0]], "link": one.kind.removesuffix("-link")}
        if len(one.samples) == 2:
            named |= {"j": ids[one.samples[1]], "line": int(one.row)}
        found.append({**named, "probability": round(one.probability, 4)})
    return found


# In words ----------------------------------------------------------------------------------


def conflict_in_words(conflict: Conflict, names: list[str] | None) -> str:
    """Tell a contradiction in the names and line numbers of the file."""
    i, j = (_named(sample, names) for sample in conflict.pair)
    if conflict.labels is not None:
        a, b = conflict.labels
        claim = f"{i} and {j} have the labels {a} and {b}"
    else:
        claim = f"{i} and {j} are cannot-linked (line {conflict.cannot_link_row})"
    steps = []
    for k, row in enumerate(conflict.rows):
        ends = (_named(sample, names) for sample in conflict.chain[k : k + 2])
        how = "equal labels" if row is None else f"line {row}"
        steps.append(f"{' - '.join(ends)} ({how})")
    shown = ", ".join(steps[:LISTED]) + ", ..." * (len(steps) > LISTED)
    what = "Correct a label, or remove" if conflict.labelled else "Remove"
    remedy = f"{what} one of these lines, or give it a belief below 1."
    return f"{claim}, but these belong together: {shown}. {remedy}"


def error_in_words(
    error: ConflictError, known: Constraints, names: list[str] | None, n_clusters: int
) -> str:
    """Tell why some number of clusters cannot satisfy the pairs, in the names of the file."""
    if error.kind == "contradiction":
        return conflict_in_words(shortest_conflict(known.facts, known.contradictions), names)
    if error.kind == "labels" and error.bracket is not None:
        return (
            f"There are {error.bracket[0]} different labels, but only {n_clusters} clusters. Use "
            f"-k {error.bracket[0]}, or merge labels."
        )
    if error.kind not in {*KINDS, "undecided"} or error.bracket is None:
        return str(error).replace("lower n_clusters", "lower -k")
    proof = proof_in_words(error, names)
    lower, upper = error.bracket
    what = f"{n_clusters} clusters cannot satisfy {proof}"
    if error.kind == "undecided":
        what = f"Could not decide if {n_clusters} clusters can satisfy all pairs; left: {proof}"
    enough = f" ({upper} suffice for certain)" if upper is not None and upper > lower else ""
    return (
        f"{what}. Use -k {lower} or more{enough}, correct one of these lines, give it a belief "
        "below 1, or use --method cut --set constraints_mode=soft."
    )


def proof_in_words(error: ConflictError, names: list[str] | None) -> str:
    """Name the rows, lines and labels that prove a number of clusters to be too few."""
    parts = [f"rows {_some([_named(sample, names) for sample in error.witness])}"]
    lines = sorted((*error.must_link, *error.cannot_link))
    if lines:
        parts.append(f"line{'s' * (len(lines) > 1)} {_some([str(line) for line in lines])}")
    if error.labelled:
        parts.append("labels of " + _some([_named(sample, names) for sample in error.labelled]))
    return f"{KINDS.get(error.kind or '', 'pairs')} ({'; '.join(parts)})"


def _named(sample: int, names: list[str] | None) -> str:
    return str(sample) if names is None else names[sample]


def _some(texts: list[str]) -> str:
    return ", ".join(texts[:LISTED]) + ", ..." * (len(texts) > LISTED)
