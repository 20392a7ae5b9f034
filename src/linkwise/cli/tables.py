"""Tables to numbers: which columns are features, and how text becomes numbers."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._hints import hint
from linkwise._optional import require
from linkwise._values import (
    Numbers,
    are_sentences,
    days,
    is_given,
    is_missing,
    most_categories,
    plain_numbers,
    read_dates,
    read_numbers,
)
from linkwise.cli.console import counted
from linkwise.cli.formats import names_things
from linkwise.cli.problems import Problem
from linkwise.constraints.labels import UNKNOWN, UNKNOWN_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from linkwise._types import Bools, Floats, Ints
    from linkwise.cli.requests import DataRequest


NEARLY_EMPTY, HALF, MUCH_MISSING = 0.9, 0.5, 0.3  # shares of a column that are missing
SHOWN = 8
CELLS = 3  # of a column that are shown in a message
LEFT_OUT = "it is left out"
NO_FEATURE = "No column is left as a feature. Choose some with --features."
HARDLY_REPEATED = 0.5  # different values per row from which on categories say hardly anything
MANY_DIGITS, CODES = 8, 20  # digits, and values, from which on whole numbers may be codes
ABSURD = 1e6  # times the usual distance from the median


class Features(NamedTuple):
    """Numbers made of a table, the columns that they came from, and what is to be said."""

    X: Floats
    names: list[str]
    n_categorical: int
    problems: list[Problem]
    notes: list[str]
    left_out: Sequence[str] = ()  # columns of which hardly anything is known, or that only name
    amounts: Mapping[str, Floats] = {}  # columns of text that were read as numbers: money, dates
    is_standardised: bool = False  # whether there are numbers, and they are not as in the file


@dataclass
class SortedColumns:
    """The columns of a table by kind, while it is read."""

    numeric: dict[str, Floats] = field(default_factory=dict)
    categories: dict[str, list[str]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # hardly anything is known of them
    amounts: dict[str, Floats] = field(default_factory=dict)  # read from text: money, dates
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# Columns -----------------------------------------------------------------------------------


def check_columns(wanted: Iterable[str], existing: Sequence[str], option: str) -> list[Problem]:
    """Return a problem for each column that is not there, naming the ones that are."""
    shown = ", ".join(map(repr, existing[:SHOWN])) + ", ..." * (len(existing) > SHOWN)
    return [
        Problem(
            f"{option} {name}: no such column.{hint(name, existing)} There are: {shown or 'none'}."
        )
        for name in wanted
        if name not in existing
    ]


def dropped(name: str, text: str) -> Problem:
    """Return a problem that is solved by leaving a column out."""
    return Problem(text, ("--drop", name))


def text_of(column: Any) -> list[str]:
    """Return the values of a column as text, the same for 7 and 7.0; missing ones are empty."""
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return ["" if is_missing(value) else _text(value) for value in values]


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def codes(texts: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return a number for each class, in the order of their names; -1 is unknown."""
    known = sorted({text for text in texts if text and text.lower() not in UNKNOWN}, key=_natural)
    number = {text: code for code, text in enumerate(known)}
    return np.array([number.get(text, -1) for text in texts], dtype=np.intp), known


def note_of_unknown(texts: Sequence[str], column: str) -> list[str]:
    """Return a note of each word among labels that is taken for "not known"."""
    words = Counter(text for text in texts if text.lower() in UNKNOWN_WORDS)
    return [
        f"column {column!r}: {word!r} ({counted(number, 'row')}) is taken for an unknown label, "
        "not for a class (a class needs another name)"
        for word, number in words.items()
    ]


def _natural(text: str) -> tuple[int, float, str]:
    """Sort numbers as numbers, before words."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


# Features ----------------------------------------------------------------------------------


def features(frame: Any, request: DataRequest, place: Callable[[int], str]) -> Features:
    """Turn columns into numbers: numeric ones as they are, categories into one column each."""
    found = sorted_columns(frame, request, place)
    if len(found.left_out) == len(frame.columns):
        found.problems.append(Problem(NO_FEATURE))
    found.problems += _fill_missing(found, request=request, place=place)
    if not found.problems:
        _warn_of_absurd(found.numeric, place)
        constant = [name for name, values in found.numeric.items() if values.min() == values.max()]
        constant += [name for name, texts in found.categories.items() if len(set(texts)) == 1]
        warn_of_constants(constant, len(frame.columns))
        return _assembled(found, scale=request.scale is not False)
    if not found.numeric and not found.categories:  # dropping all of them would not work
        found.problems = _with_text(found.problems)
    return Features(np.empty((len(frame), 0)), [], 0, found.problems, found.notes)


def _with_text(problems: list[Problem]) -> list[Problem]:
    """Return problems of columns none of which can be used as it is: texts can be compared."""
    if not any(problem.adds_text for problem in problems):
        return [problem._replace(add=()) for problem in problems]
    return [
        problem._replace(add=("--text", problem.add[1])) if problem.adds_text else problem
        for problem in problems
    ]


def sorted_columns(frame: Any, request: DataRequest, place: Callable[[int], str]) -> SortedColumns:
    """Return the columns by kind, with the problems of those that are neither."""
    found = SortedColumns()
    for name in frame.columns:
        _sort_column(found, frame[name], name, request=request, place=place)
    return found


def _assembled(found: SortedColumns, *, scale: bool) -> Features:
    """Put the columns side by side."""
    blocks = [_standardised(found.numeric) if scale else _stacked(found.numeric)]
    names = list(found.numeric)
    for name, texts in found.categories.items():
        block, values = _one_hot(texts)
        blocks.append(block)
        names += [f"{name}={value}" for value in values]
    blocks = [block for block in blocks if block.size]
    X = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    n_categorical = len(found.categories)
    is_standardised = scale and bool(found.numeric)
    return Features(
        X, names, n_categorical, [], found.notes, found.left_out, found.amounts, is_standardised
    )


def warn_of_constants(constant: Sequence[str], n_columns: int) -> None:
    """Warn of columns that do not vary: they cannot tell clusters apart."""
    shown = ", ".join(map(repr, constant[:SHOWN])) + ", ..." * (len(constant) > SHOWN)
    if len(constant) == n_columns:
        text = f"No column varies ({shown}): the rows are all alike, and their clusters arbitrary."
        warnings.warn(text, UserWarning, stacklevel=2)
    elif constant:
        text = f"Constant columns say nothing about clusters: {shown}."
        warnings.warn(text, UserWarning, stacklevel=2)


def _warn_of_absurd(numeric: dict[str, Floats], place: Callable[[int], str]) -> None:
    """Warn of a value so far from all others that these become alike."""
    for name, values in numeric.items():
        distance = np.abs(values / 2 - np.median(values) / 2)  # halves, which cannot overflow
        row = int(distance.argmax())
        usual = float(np.quantile(distance, 0.9))
        if usual > 0 and distance[row] > ABSURD * usual:
            rest = np.delete(values, row)
            text = (
                f"Column {name!r} has {values[row]:g} in {place(row)}, while all others lie "
                f"between {rest.min():g} and {rest.max():g}: beside it these are alike. Correct it "
                "if it is wrong."
            )
            warnings.warn(text, UserWarning, stacklevel=2)


def _sort_column(
    found: SortedColumns,
    column: Any,
    name: str,
    *,
    request: DataRequest,
    place: Callable[[int], str],
) -> None:
    """Put a column among the numbers or the categories, or note why it is neither."""
    read = None if name in request.categorical else numbers_in(column, request)
    if read is None:
        texts = text_of(column)
        problem = None
        if name in request.categorical:
            _warn_of_distinct(texts, name, request)
        else:
            problem = _category_problem(texts, name, request=request, place=place)
        if problem is None:
            found.categories[name] = texts
        else:
            found.problems.append(problem)
        return
    if read.how:
        typed = shlex.quote(name)
        found.notes.append(f"column {name!r}: {read.how} (--drop {typed} leaves it out)")
        found.amounts[name] = read.values
    if name not in request.features:
        note = _doubt_as_quantity(name, read.values)
        found.notes += [f"column {name!r}: {note}"] if note else []
        if note.endswith(LEFT_OUT):
            found.left_out.append(name)
            return
    infinite = np.flatnonzero(np.isinf(read.values))
    if infinite.size:
        remedy = f"Correct it, or --drop {shlex.quote(name)}."
        text = f"Column {name!r} is infinite in {place(int(infinite[0]))}. {remedy}"
        found.problems.append(dropped(name, text))
    else:
        found.numeric[name] = read.values


def _doubt_as_quantity(name: str, values: Floats) -> str:
    """Return a note if whole numbers name something, such as phones; empty if they may count."""
    given = values[np.isfinite(values)]
    if not given.size or (given != np.floor(given)).any():
        return ""
    typed = shlex.quote(name)
    if names_things(name):
        uses = f"(--categorical {typed} uses it)"
        return f"it names something and counts nothing {uses}, so {LEFT_OUT}"
    has_many_digits = given.min() >= 10 ** (MANY_DIGITS - 1) and given.max() < 100 * given.min()
    if given.size >= CODES and has_many_digits and np.unique(given).size >= 0.99 * given.size:
        return (
            f"whole numbers such as {given[0]:.0f}, hardly any of them twice, are used as a "
            f"quantity (--drop {typed} if they name something)"
        )
    return ""


def numbers_in(column: Any, request: DataRequest) -> Numbers | None:
    """Return a column of numbers or dates, by its type or as text, or None if it is neither."""
    typed = _typed_numbers(column)
    if typed is not None:
        return typed
    texts = text_of(column)
    prefers_comma = column.attrs.get("delimiter", ",") != ","
    read = read_numbers(texts, decimal=request.decimal, prefers_comma=prefers_comma)
    return read_dates(texts) if read is None else read


def _typed_numbers(column: Any) -> Numbers | None:
    """Return a column whose type is a number or a date, or None."""
    pandas = require("pandas", extra="cli", purpose="Reading tables")
    kinds = pandas.api.types
    if kinds.is_bool_dtype(column) or kinds.is_numeric_dtype(column):
        exact = column.astype("Float64" if column.hasnans else "float64")
        return Numbers(np.asarray(exact.to_numpy(dtype=np.float64, na_value=np.nan)))
    if kinds.is_datetime64_any_dtype(column):
        return days(column)
    if kinds.is_timedelta64_dtype(column):
        return Numbers(column.dt.total_seconds().to_numpy(dtype=np.float64))
    return None


def _warn_of_distinct(texts: list[str], name: str, request: DataRequest) -> None:
    """Warn of a column that was asked for as categories, of which hardly two rows share one."""
    given = [text for text in texts if text]
    n_distinct, typed = len(set(given)), shlex.quote(name)
    if n_distinct <= max(most_categories(len(texts)), HARDLY_REPEATED * len(given)):
        return
    remedy = f"--drop {typed} leaves it out"
    if are_sentences(texts):
        remedy = f"{advice_on_text(typed, request)}, {remedy}"
    text = (
        f"--categorical {typed}: {n_distinct} different values in {len(texts)} rows, so hardly two "
        f"rows have one in common, and the column says next to nothing about clusters. {remedy}."
    )
    warnings.warn(text, UserWarning, stacklevel=2)


def advice_on_text(typed: str, request: DataRequest) -> str:
    """Say what --text would do with a column; the page compares words, all others letters."""
    how = "its words" if request.compares_words else "its texts letter by letter"
    return f"--text {typed} compares {how}"


def _category_problem(
    texts: list[str], name: str, *, request: DataRequest, place: Callable[[int], str]
) -> Problem | None:
    """Return what is wrong if a column of text is rather one of numbers, or has many values."""
    typed, n_distinct = shlex.quote(name), len(set(texts))
    is_text = np.isnan(plain_numbers(texts))
    no_number = [row for row, text in enumerate(texts) if is_text[row] and is_given(text)]
    if no_number and len(no_number) * 2 < sum(map(is_given, texts)):
        shown = ", ".join(f"{texts[row]!r} in {place(row)}" for row in no_number[:CELLS])
        shown += ", ..." * (len(no_number) > CELLS)
        return dropped(
            name,
            f"Column {name!r} holds numbers, but text in {len(no_number)} row(s), first {shown}. "
            f"Correct it, or use --drop {typed}, or --categorical {typed}.",
        )
    if n_distinct > most_categories(len(texts)) or n_distinct == len(texts):
        adds_to_text = bool(request.text) or request.is_linkage  # then --text is said for all
        if are_sentences(texts) and not adds_to_text:
            return dropped(
                name,
                f"Column {name!r} holds texts, {n_distinct} different ones in {len(texts)} rows. "
                f"Use --drop {typed}; or {advice_on_text(typed, request)}.",
            )._replace(adds_text=True)
        return dropped(
            name,
            f"Column {name!r} is text with {n_distinct} different values in {len(texts)} rows, too "
            f"many for categories. Use --id {typed} if it names the rows, --drop {typed}, or "
            f"--categorical {typed}.",
        )
    return None


def _fill_missing(
    found: SortedColumns, *, request: DataRequest, place: Callable[[int], str]
) -> list[Problem]:
    """Fill missing values in place, or return the problems of the columns that have some."""
    numeric, categories = found.numeric, found.categories
    missing = {name: np.isnan(values) for name, values in numeric.items()}
    missing |= {name: np.array([not t for t in texts]) for name, texts in categories.items()}
    empty = [name for name, where in missing.items() if where.all()]
    missing = {name: where for name, where in missing.items() if where.any() and not where.all()}
    for name in empty:
        (numeric if name in numeric else categories).pop(name)
    problems = [
        dropped(name, f"Column {name!r} has no values at all. Use --drop {shlex.quote(name)}.")
        for name in empty
    ]
    if request.impute is not None:
        missing = _without_nearly_empty(found, missing, request)
    elif missing:
        mostly = _mostly_missing(missing, n_columns=len(numeric) + len(categories))
        problems += mostly.values()
        missing = {name: where for name, where in missing.items() if name not in mostly}
        if not missing:
            return problems
        rows = np.logical_or.reduce(list(missing.values()))
        shown = ", ".join(f"{name!r} ({int(w.sum())})" for name, w in list(missing.items())[:SHOWN])
        shown += ", ..." * (len(missing) > SHOWN)
        text = (
            f"Values are missing in {rows.sum()} row(s), first in {place(int(rows.argmax()))}; "
            f"columns: {shown}. Use --impute median, or --drop these columns."
        )
        return [*problems, Problem(text, ("--impute", "median"))]
    for name, where in missing.items():
        if name in numeric:
            middle = np.median(numeric[name][~where])
            numeric[name][where] = middle
            filled = f"{middle:.6g}, its median"
        else:
            given = Counter(text for text in categories[name] if text)
            most = max(sorted(given), key=given.__getitem__)
            categories[name] = [text or most for text in categories[name]]
            filled = f"{most!r}, its most frequent value"
        if where.mean() > MUCH_MISSING:
            found.notes.append(
                f"column {name!r}: {where.mean():.0%} of it was missing, and is filled with "
                f"{filled} (--drop {shlex.quote(name)} leaves it out)"
            )
    return problems


def _mostly_missing(missing: dict[str, Bools], *, n_columns: int) -> dict[str, Problem]:
    """Return the problems of columns that are rather left out than filled, if others remain."""
    mostly = {name: where.mean() for name, where in missing.items() if where.mean() > HALF}
    if len(mostly) == n_columns:
        return {}
    return {
        name: dropped(
            name,
            f"Column {name!r}: {share:.0%} of it is missing. Use --drop {shlex.quote(name)}, or "
            "--impute median to fill it all the same.",
        )
        for name, share in mostly.items()
    }


def _without_nearly_empty(
    found: SortedColumns, missing: dict[str, Bools], request: DataRequest
) -> dict[str, Bools]:
    """Leave out columns of which hardly anything is known, unless they are asked for; note it."""
    kept = {}
    asked = (*request.features, *request.categorical)
    for name, where in missing.items():
        share = where.mean()
        n_left = len(found.numeric) + len(found.categories)
        if share > NEARLY_EMPTY and name not in asked and n_left > 1:
            (found.numeric if name in found.numeric else found.categories).pop(name)
            found.left_out.append(name)
            found.notes.append(
                f"column {name!r}: {share:.0%} of it is missing, so it is left out "
                "(unless --features names it)"
            )
        else:
            kept[name] = where
    return kept


def _stacked(numeric: dict[str, Floats]) -> Floats:
    return np.column_stack(list(numeric.values())) if numeric else np.empty((0, 0))


def _standardised(numeric: dict[str, Floats]) -> Floats:
    """Return columns of mean 0 and variance 1; constant ones become 0."""
    X = _stacked(numeric)
    for k in range(X.shape[1]):  # one at a time: no copy of the whole
        largest = np.abs(X[:, k]).max()
        # In its own unit, so that squares of very large and very small values stay finite.
        column = X[:, k] / largest if largest > 0 else X[:, k]
        column = column - column.mean()
        spread = column.std()
        # Rounding leaves a constant column a spread of about 1e-17.
        X[:, k] = column / spread if spread > 1e-12 else 0.0
    return X


def _one_hot(texts: list[str]) -> tuple[Floats, list[str]]:
    """Return one column of 0 and 1 for each value.

    They are not standardised: two different categories are sqrt(2) apart, as two samples of a
    standardised number are on average.
    """
    values = sorted(set(texts), key=_natural)
    number = {value: code for code, value in enumerate(values)}
    return np.eye(len(values))[[number[text] for text in texts]], values
