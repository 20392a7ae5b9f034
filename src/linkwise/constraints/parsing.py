"""Columns of a file or a data frame to a table of pairs; every problem names its line or row."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._hints import hint
from linkwise._quiet import user_level
from linkwise.constraints.formats import KNOWN, REQUIRED, Columns
from linkwise.constraints.table import PairTable, pair_keys
from linkwise.constraints.validation import as_n_samples, is_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from linkwise._types import Bools

MUST = ("must", "must-link", "must_link", "mustlink", "ml", "1", "+1", "1.0")
SAME = ("same", "yes", "y", "true", "t", "together")
CANNOT = ("cannot", "cannot-link", "cannot_link", "cannotlink", "cl", "-1", "-1.0", "0", "0.0")
DIFFERENT = ("different", "diff", "no", "n", "false", "f", "apart")
SIGNS = {**dict.fromkeys(MUST + SAME, 1), **dict.fromkeys(CANNOT + DIFFERENT, -1)}
LISTED = 20  # problems in one message
HINTED = 20_000  # ids among which a misspelt one is looked for, which takes time
HINTS = 6  # misspelt ids that are looked for


class ColumnsError(ValueError):
    """Columns of pairs that are not there; `guess` names those that may be meant."""

    guess: tuple[str, ...] = ()


class UnknownSampleError(ValueError):
    """A name or a position that is not among the samples."""


class Problem(NamedTuple):
    """A row that cannot be read, and why."""

    row: int  # or line
    error: Exception

    @property
    def is_unknown(self) -> bool:
        """Whether a sample is not known: such rows can be skipped."""
        return isinstance(self.error, (UnknownSampleError, IndexError))


class Parsed(NamedTuple):
    """The pairs that could be read, and what is to be said about the others."""

    n_samples: int
    table: PairTable
    problems: list[Problem]
    notes: list[str]


def pair_table(
    source: Columns,
    n_samples: int | None,
    ids: Sequence[object] | None = None,
    *,
    columns: Sequence[str] | None = None,
    skip_unknown: bool = False,
) -> tuple[int, PairTable]:
    """Return the number of samples and the pairs, or raise one error about all problems."""
    chosen = choose_columns(source, columns)
    found = parse_pairs(chosen, n_samples, ids, skip_unknown=skip_unknown)
    if found.problems:
        raise_problems(found.problems)
    for note in found.notes:
        warnings.warn(note, UserWarning, stacklevel=user_level())
    return found.n_samples, found.table


def raise_problems(problems: list[Problem]) -> None:
    """Raise the error of the only problem, or one that lists them."""
    if len(problems) == 1:
        raise problems[0].error from None
    kind = IndexError if all(type(p.error) is IndexError for p in problems) else ValueError
    lines = [f"  {problem.error}" for problem in problems[:LISTED]]
    if len(problems) > LISTED:
        lines.append(f"  ... and {len(problems) - LISTED} more")
    raise kind(f"There are {len(problems)} problems with the pairs:\n" + "\n".join(lines))


# Columns -----------------------------------------------------------------------------------


def choose_columns(source: Columns, names: Sequence[str] | None = None) -> Columns:
    """Return the columns i, j, link and perhaps belief, which may have other names."""
    place = "The data frame" if source.unit == "row" else source.place(1)
    folded = {name.lower(): name for name in source.values}
    wanted = KNOWN[: len(names)] if names else [name for name in KNOWN if name in folded]
    given = list(names or wanted)
    if names is not None and not len(REQUIRED) <= len(names) <= len(KNOWN):
        message = f"{len(names)} columns are named ({', '.join(names)}), but pairs need i, j, link "
        raise ValueError(message + "and perhaps belief: three or four names, in this order.")
    missing = [name for name in given if name.strip().lower() not in folded]
    missing += [name for name in REQUIRED if name not in wanted]
    if missing:
        _raise_missing(source, missing, place)
    values = {
        name: source.values[folded[other.strip().lower()]]
        for name, other in zip(wanted, given, strict=True)
    }
    return source._replace(values=values)


def _raise_missing(source: Columns, missing: list[str], place: str) -> None:
    error = ColumnsError(
        f"{place} has no column {', '.join(map(repr, missing))}; the columns found are "
        f"{list(source.values)}. Needed are i, j (samples), link (must or cannot) and, if wanted, "
        "belief; columns=(...) says which columns these are."
    )
    error.guess = _guess(source)
    raise error


def _guess(source: Columns) -> tuple[str, ...]:
    """Return the only column that holds links, after the first two others; empty if unclear."""
    links = [
        name
        for name, values in source.values.items()
        if values and all(str(value).strip().lower() in SIGNS for value in values)
    ]
    others = [name for name in source.values if name not in links]
    if len(links) != 1 or len(others) < 2 or any("," in name for name in others[:2] + links):
        return ()
    return (*others[:2], links[0])


# Rows --------------------------------------------------------------------------------------


def parse_pairs(
    source: Columns,
    n_samples: int | None,
    ids: Sequence[object] | None,
    *,
    skip_unknown: bool = False,
) -> Parsed:
    """Read the rows that can be read, whether or not they contradict each other."""
    n, parse = _sample_parser(n_samples, ids)
    source, unanswered = _answered(source)
    errors: dict[int, Exception] = {}
    table = _table(source, parse, errors)
    kept = np.ones(len(table.pairs), dtype=bool)
    kept[list(errors)] = False
    _check_zeros(source, errors)
    is_loop = kept & (table.pairs[:, 0] == table.pairs[:, 1])
    _check_loops(source, is_loop & ~table.is_must_link, errors)
    problems = [Problem(source.rows[k], errors[k]) for k in sorted(errors)]
    skipped = [problem.row for problem in problems if skip_unknown and problem.is_unknown]
    told = {
        "repeated: each pair counts once, with the larger belief": _repeated(
            table.kept(kept & ~is_loop), n
        ),
        "left out: a must-link of a sample to itself": table.row[
            is_loop & table.is_must_link
        ].tolist(),
        "skipped: a sample that is not known": skipped,
        "left out: the link is empty": unanswered,
    }
    notes = [f"{len(k)} {what} ({_listed(k, source.unit)})" for what, k in told.items() if k]
    if skip_unknown:
        problems = [problem for problem in problems if not problem.is_unknown]
    return Parsed(n, table.kept(kept & ~is_loop), problems, notes)


def _answered(source: Columns) -> tuple[Columns, list[int]]:
    """Return the rows with a link, and the numbers of the others: pairs that are to be reviewed."""
    is_open = [isinstance(link, str) and not link.strip() for link in source.values["link"]]
    if not any(is_open) or all(is_open):
        # All empty is more likely another column than a review that nobody began.
        return source, []
    kept = [k for k, is_empty in enumerate(is_open) if not is_empty]
    values = {name: [column[k] for k in kept] for name, column in source.values.items()}
    rows = [source.rows[k] for k in kept]
    open_rows = [row for row, is_empty in zip(source.rows, is_open, strict=True) if is_empty]
    return source._replace(values=values, rows=rows), open_rows


def _table(source: Columns, parse: Callable[[Any], int], errors: dict[int, Exception]) -> PairTable:
    """Parse all columns; rows that cannot be parsed get an entry in `errors`."""
    parsers = {"i": parse, "j": parse, "link": _sign, "belief": _belief}
    found = {name: _parse(source, name, parsers[name], errors=errors) for name in source.values}
    pairs = np.array([found["i"], found["j"]], dtype=np.intp).T.reshape(-1, 2)
    sign = np.array(found["link"], dtype=np.float64)
    belief = np.array(found.get("belief", np.ones(len(pairs))), dtype=np.float64)
    return PairTable(np.sort(pairs, axis=1), sign, belief, np.array(source.rows, np.intp))


def _check_loops(source: Columns, is_wrong: Bools, errors: dict[int, Exception]) -> None:
    for k in np.flatnonzero(is_wrong).tolist():
        errors[k] = ValueError(
            f"{source.where(k, 'i')}, and so is j: a sample that is cannot-linked to itself. "
            "Remove this row."
        )


def _check_zeros(source: Columns, errors: dict[int, Exception]) -> None:
    """Note a problem if 0 and -1 are both links: one of them may mean "not known"."""
    zeros = {value for value in set(source.values["link"]) if str(value).strip() in ("0", "0.0")}
    if zeros and any(str(value).strip() in ("-1", "-1.0") for value in set(source.values["link"])):
        first = next(k for k, value in enumerate(source.values["link"]) if value in zeros)
        errors[first] = ValueError(
            f"{source.where(first, 'link')}, but -1 is a link as well: it is not clear whether "
            "0 means cannot or not known. Write must and cannot, and remove the other rows."
        )


def _repeated(table: PairTable, n_samples: int) -> list[int]:
    """Return the rows of pairs that were given before, as the same kind of link."""
    keys = pair_keys(table.pairs, n_samples) * np.where(table.is_must_link, 1, -1)
    repeated = np.ones(keys.size, dtype=bool)
    repeated[np.unique(keys, return_index=True)[1]] = False
    rows: list[int] = table.row[repeated].tolist()
    return rows


def _listed(rows: list[int], unit: str) -> str:
    shown = ", ".join(map(str, rows[:LISTED])) + ", ..." * (len(rows) > LISTED)
    return f"{unit}{'s' * (len(rows) > 1)} {shown}"


def _sample_parser(
    n_samples: int | None, ids: Sequence[object] | None
) -> tuple[int, Callable[[Any], int]]:
    """Return the number of samples, and what turns a value into a position."""
    if ids is not None:
        positions = id_positions(ids, n_samples)
        return len(positions), _IdParser(positions)
    if n_samples is None:
        raise TypeError(
            "n_samples is missing: without ids, i and j are positions, and the pairs do not "
            "tell how many samples there are. Pass n_samples=len(X), or ids=names."
        )
    n = as_n_samples(n_samples)
    return n, _PositionParser(n)


def names_in(source: Columns) -> list[str]:
    """Return every name in the columns: without data, these are the samples."""
    both = zip(source.values["i"], source.values["j"], strict=True)
    return list(dict.fromkeys(_name(value) for pair in both for value in pair))


def _parse(
    source: Columns, column: str, parse: Callable[[Any], Any], *, errors: dict[int, Exception]
) -> list[Any]:
    """Parse a column; what cannot be parsed is 1, and gets an entry in `errors`."""
    values = source.values[column]
    try:
        return [parse(value) for value in values]
    except (ValueError, IndexError):  # one pass without bookkeeping; a second one finds the cells
        found = []
        for k, value in enumerate(values):
            try:
                found.append(parse(value))
            except (ValueError, IndexError) as error:
                errors.setdefault(k, type(error)(f"{source.where(k, column)}, {error}"))
                found.append(1)
        return found


class _PositionParser:
    """Parse sample positions."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples

    def __call__(self, value: Any) -> int:
        try:
            # int() is exact for text but truncates floats; "3.0" is text that only float() reads.
            position = int(value) if type(value) is str else int(_whole(value))
        except ValueError:
            position = int(_whole(value))
        if not 0 <= position < self.n_samples:
            raise IndexError(
                f"but there are only {self.n_samples} samples (valid positions are "
                f"0..{self.n_samples - 1})."
            )
        return position


def _whole(value: Any) -> float:
    """Return a number without fraction, or raise ValueError."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(value, bool) or not number.is_integer():
        message = "but a position is a whole number. Pass ids=names if the columns hold names."
        raise ValueError(message)
    return number


class _IdParser:
    """Look names up."""

    def __init__(self, positions: dict[str, int]) -> None:
        self.positions = positions
        self.n_hints = HINTS if len(positions) <= HINTED else 0

    def __call__(self, value: Any) -> int:
        position = self.positions.get(_name(value))
        if position is None:
            known = self.positions
            meant = hint(_name(value), known) if self.n_hints else ""
            self.n_hints -= bool(self.n_hints)
            raise UnknownSampleError(f"which is not among the {len(known)} ids.{meant}")
        return position


def _sign(value: Any) -> int:
    sign = SIGNS.get(value)  # as it mostly is; the rest only costs time
    if sign is None:
        sign = SIGNS.get(str(value).strip().lower())
    if sign is None:
        raise ValueError("but a link is must or cannot (or same or different, yes or no, 1 or -1).")
    return sign


def _belief(value: Any) -> float:
    if value == "" or is_missing(value):  # an empty cell means certain
        return 1.0
    try:
        belief = float(value)
    except (TypeError, ValueError):
        belief = np.nan
    if not 0 < belief <= 1:
        raise ValueError("but a belief is a number in (0, 1]. Write 1 for a certain pair.")
    return belief


# Names -------------------------------------------------------------------------------------


def _name(value: object) -> str:
    """Return a name as text, the same for 7, 7.0 and "7": files and frames disagree on types."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def id_positions(ids: Iterable[object], n_samples: int | None) -> dict[str, int]:
    """Return the position of each name, after checking that the names are distinct."""
    if isinstance(ids, str):
        message = f"ids is the text {ids!r}, but it must be a sequence of names, one per sample."
        raise TypeError(message)
    if hasattr(ids, "columns"):
        raise TypeError("ids is a data frame, not its names. Use df.index, or one of its columns.")
    positions: dict[str, int] = {}
    for position, value in enumerate(ids):
        if is_missing(value):
            raise ValueError(f"ids[{position}] is {value!r}. Every sample needs a name.")
        name = _name(value)
        if name in positions:
            raise ValueError(
                f"ids[{position}] is {name!r}, and so is ids[{positions[name]}]. "
                "Names must be unique."
            )
        positions[name] = position
    if n_samples is not None and n_samples != len(positions):
        raise ValueError(f"There are {len(positions)} ids, but n_samples is {n_samples}.")
    as_n_samples(len(positions))
    return positions
