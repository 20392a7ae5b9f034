"""Tables to numbers: which columns are features, and how text becomes numbers."""

from __future__ import annotations

import re
import shlex
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._hints import hint
from linkwise._optional import require
from linkwise.cli.console import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from linkwise._types import Floats, Ints
    from linkwise.cli.requests import DataRequest


# What people and programs write for "not known"; pandas' own list, for columns kept as text.
UNKNOWN = {"", "-1", "-1.0", "?", "na", "n/a", "nan", "null", "none", "<na>"}
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
FEW_CATEGORIES, MANY_CATEGORIES = 10, 100
SHOWN = 8


class Features(NamedTuple):
    """Numbers made of a table, and the columns that they came from."""

    X: Floats
    names: list[str]
    n_categorical: int


# Columns -----------------------------------------------------------------------------------


def check_columns(wanted: Iterable[str], existing: Sequence[str], option: str) -> None:
    """Raise if a column is not there, naming the ones that are."""
    for name in wanted:
        if name not in existing:
            shown = ", ".join(map(repr, existing[:SHOWN])) + ", ..." * (len(existing) > SHOWN)
            message = f"{option} {name}: no such column.{hint(name, existing)} There are: "
            message += f"{shown or 'none'}."
            raise BadInput(message)


def text_of(column: Any) -> list[str]:
    """Return the values of a column as text, the same for 7 and 7.0; missing ones are empty."""
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return ["" if _is_missing(value) else _text(value) for value in values]


def _is_missing(value: Any) -> bool:
    return value is None or value != value or str(value) == "<NA>"  # noqa: PLR0124  (NaN)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def codes(texts: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return a number for each class, in the order of their names; -1 is unknown."""
    known = sorted({text for text in texts if text.lower() not in UNKNOWN}, key=_natural)
    number = {text: code for code, text in enumerate(known)}
    return np.array([number.get(text, -1) for text in texts], dtype=np.intp), known


def _natural(text: str) -> tuple[int, float, str]:
    """Sort numbers as numbers, before words."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


# Features ----------------------------------------------------------------------------------


def features(frame: Any, request: DataRequest, place: Callable[[int], str]) -> Features:
    """Turn columns into numbers: numeric ones as they are, categories into one column each."""
    if not len(frame.columns):
        raise BadInput("No column is left as a feature. Choose some with --features.")
    numeric: dict[str, Floats] = {}
    categories: dict[str, list[str]] = {}
    for name in frame.columns:
        values = _numbers(frame[name], name, request, place=place)
        if values is not None:
            numeric[name] = values
        else:
            categories[name] = text_of(frame[name])
    _fill_missing(numeric, categories, impute=request.impute, place=place)
    for name, values in numeric.items():
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            remedy = f"Correct it, or --drop {shlex.quote(name)}."
            raise BadInput(f"Column {name!r} is infinite in {place(row)}. {remedy}")
    constant = [name for name, values in numeric.items() if values.min() == values.max()]
    constant += [name for name, texts in categories.items() if len(set(texts)) == 1]
    warn_of_constants(constant, len(frame.columns))
    blocks = [_standardised(numeric) if request.scale is not False else _stacked(numeric)]
    names = list(numeric)
    for name, texts in categories.items():
        block, values_found = _one_hot(texts)
        blocks.append(block)
        names += [f"{name}={value}" for value in values_found]
    blocks = [block for block in blocks if block.size]
    X = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    return Features(X, names, len(categories))


def warn_of_constants(constant: Sequence[str], n_columns: int) -> None:
    """Warn of columns that do not vary: they cannot tell clusters apart."""
    shown = ", ".join(map(repr, constant[:SHOWN])) + ", ..." * (len(constant) > SHOWN)
    if len(constant) == n_columns:
        text = f"No column varies ({shown}): the rows are all alike, and their clusters arbitrary."
        warnings.warn(text, UserWarning, stacklevel=2)
    elif constant:
        text = f"Constant columns say nothing about clusters: {shown}."
        warnings.warn(text, UserWarning, stacklevel=2)


def _numbers(
    column: Any, name: str, request: DataRequest, *, place: Callable[[int], str]
) -> Floats | None:
    """Return a column as numbers, or None if it holds categories."""
    pandas = require("pandas", extra="cli", purpose="Reading tables")
    if name in request.categorical:
        return None
    kinds = pandas.api.types
    if kinds.is_bool_dtype(column) or kinds.is_numeric_dtype(column):
        exact = column.astype("Float64" if column.hasnans else "float64")
        return np.asarray(exact.to_numpy(dtype=np.float64, na_value=np.nan))
    is_category = isinstance(column.dtype, pandas.CategoricalDtype)
    if not (kinds.is_object_dtype(column) or kinds.is_string_dtype(column) or is_category):
        raise BadInput(
            f"Column {name!r} holds {column.dtype} values, which are no numbers. "
            f"Use --drop {shlex.quote(name)}, or --categorical {shlex.quote(name)}."
        )
    texts = text_of(column)
    parsed = np.asarray(pandas.to_numeric(pandas.Series(texts), errors="coerce"), dtype=np.float64)
    given = np.array([bool(text) for text in texts])
    no_number = np.flatnonzero(given & np.isnan(parsed)).tolist()
    if given.any() and not no_number:
        return parsed
    _check_categories(texts, no_number, name, place=place)
    return None


def _check_categories(
    texts: list[str], no_number: list[int], name: str, *, place: Callable[[int], str]
) -> None:
    """Raise if a column of text is rather one of numbers, or has too many values."""
    typed, n_distinct = shlex.quote(name), len(set(texts))
    first = f"first {texts[no_number[0]]!r} in {place(no_number[0])}" if no_number else ""
    if no_number and all(DECIMAL_COMMA.fullmatch(texts[row]) for row in no_number):
        raise BadInput(
            f"Column {name!r} holds numbers with a comma, {first}. "
            f"Use --decimal , if it stands before the fraction, or --categorical {typed}."
        )
    if len(no_number) * 2 < sum(map(bool, texts)):
        raise BadInput(
            f"Column {name!r} holds numbers, but text in {len(no_number)} row(s), {first}. "
            f"Correct it, or use --drop {typed}, or --categorical {typed}."
        )
    limit = min(max(FEW_CATEGORIES, len(texts) // 10), MANY_CATEGORIES)
    if n_distinct > limit or n_distinct == len(texts):
        raise BadInput(
            f"Column {name!r} is text with {n_distinct} different values in {len(texts)} rows, too "
            f"many for categories. Use --id {typed} if it names the rows, --drop {typed}, or "
            f"--categorical {typed}."
        )


def _fill_missing(
    numeric: dict[str, Floats],
    categories: dict[str, list[str]],
    *,
    impute: str | None,
    place: Callable[[int], str],
) -> None:
    """Fill missing values in place, or raise with the columns and rows that have some."""
    missing = {name: np.isnan(values) for name, values in numeric.items()}
    missing |= {name: np.array([not t for t in texts]) for name, texts in categories.items()}
    missing = {name: where for name, where in missing.items() if where.any()}
    if not missing:
        return
    for name, where in missing.items():
        if where.all():
            raise BadInput(f"Column {name!r} has no values at all. Use --drop {shlex.quote(name)}.")
    if impute is None:
        rows = np.logical_or.reduce(list(missing.values()))
        shown = ", ".join(f"{name!r} ({int(w.sum())})" for name, w in list(missing.items())[:SHOWN])
        shown += ", ..." * (len(missing) > SHOWN)
        message = (
            f"Values are missing in {rows.sum()} row(s), first in {place(int(rows.argmax()))}; "
            f"columns: {shown}. Use --impute median, or --drop these columns."
        )
        raise BadInput(message)
    for name, where in missing.items():
        if name in numeric:
            numeric[name][where] = np.median(numeric[name][~where])
        else:
            given = [text for text in categories[name] if text]
            most = max(sorted(set(given)), key=given.count)
            categories[name] = [text or most for text in categories[name]]


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
