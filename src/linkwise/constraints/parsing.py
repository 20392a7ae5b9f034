"""Columns of a file or a data frame to a table of pairs; every error names the line or row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._hints import hint
from linkwise.constraints.table import PairTable, common_pair
from linkwise.constraints.validation import as_n_samples, is_missing
from linkwise.exceptions import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from linkwise.constraints.formats import Columns

SIGNS = {
    **dict.fromkeys(("must", "must-link", "must_link", "ml", "1", "+1", "1.0"), 1),
    **dict.fromkeys(("cannot", "cannot-link", "cannot_link", "cl", "-1", "-1.0"), -1),
}


def consistent_table(
    source: Columns, n_samples: int | None, ids: Sequence[object] | None
) -> tuple[int, PairTable]:
    """Return the number of samples and the pairs; raise if one is certainly linked both ways."""
    n, table = pair_table(source, n_samples, ids)
    _check_direct_conflict(n, table, source)
    return n, table


def pair_table(
    source: Columns, n_samples: int | None, ids: Sequence[object] | None
) -> tuple[int, PairTable]:
    """Return the number of samples and the pairs, whether or not they contradict each other."""
    n, parse = _sample_parser(n_samples, ids)
    both = [_parse(source, name, parse) for name in ("i", "j")]
    pairs = np.array(both, dtype=np.intp).T.reshape(-1, 2)
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        raise ValueError(
            f"{source.where(loops[0], 'i')}, and so is j: a sample paired with itself. "
            "Remove this row."
        )
    sign = np.array(_parse(source, "link", _sign), dtype=np.float64)
    belief = np.ones(len(pairs))
    if "belief" in source.values:
        belief = np.array(_parse(source, "belief", _belief), dtype=np.float64)
    return n, PairTable(np.sort(pairs, axis=1), sign, belief, np.array(source.rows, np.intp))


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


def _check_direct_conflict(n_samples: int, table: PairTable, source: Columns) -> None:
    """Raise if one pair is certainly linked both ways, naming both rows."""
    must = np.flatnonzero(table.weight == 1)
    cannot = np.flatnonzero(table.weight == -1)
    common = common_pair(table.pairs[must], table.pairs[cannot], n_samples)
    if common is not None:
        a, b = must[common[0]], cannot[common[1]]
        shown = f"({source.values['i'][a]}, {source.values['j'][a]})"
        message = (
            f"The pair {shown} is must-linked ({source.place(source.rows[a])}) and cannot-linked "
            f"({source.place(source.rows[b])}). Remove one of them, or give one a belief below 1."
        )
        raise ConflictError(message, tuple(table.pairs[a].tolist()), kind="contradiction")


def _parse(source: Columns, column: str, parse: Callable[[Any], Any]) -> list[Any]:
    """Parse a column, or name the first cell that cannot be parsed."""
    values = source.values[column]
    try:
        return [parse(value) for value in values]
    except (ValueError, IndexError):  # one pass without bookkeeping; a second one finds the cell
        for k, value in enumerate(values):
            try:
                parse(value)
            except (ValueError, IndexError) as error:
                raise type(error)(f"{source.where(k, column)}, {error}") from None
        raise


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

    def __call__(self, value: Any) -> int:
        position = self.positions.get(_name(value))
        if position is None:
            known = self.positions
            raise ValueError(f"which is not among the {len(known)} ids.{hint(_name(value), known)}")
        return position


def _sign(value: Any) -> int:
    sign = SIGNS.get(value)  # as it mostly is; the rest only costs time
    if sign is None:
        sign = SIGNS.get(str(value).strip().lower())
    if sign is None:
        raise ValueError("but a link is must or cannot (or 1 or -1).")
    return sign


def _belief(value: Any) -> float:
    if value == "":  # an empty cell means certain
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
