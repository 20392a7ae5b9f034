"""Tables to numbers: which columns are features, and what stands in the way."""

from __future__ import annotations

import csv
import warnings
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._optional import require
from linkwise.cli.console import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from linkwise.cli.requests import DataRequest

    Floats = NDArray[np.float64]

__all__ = [
    "ID_NAMES",
    "SHOWN",
    "Features",
    "check_columns",
    "codes",
    "features",
    "read_table",
    "text_of",
]

SEPARATORS = {".tsv": "\t", ".tab": "\t"}
# What people and programs write for "not known"; pandas' own list, for columns kept as text.
UNKNOWN = {"", "-1", "-1.0", "?", "na", "n/a", "nan", "null", "none", "<na>"}
FEW_CATEGORIES, MANY_CATEGORIES = 10, 100
SHOWN = 8
ID_NAMES = ("id", "ids", "")  # first columns that are taken for names without asking


class Features(NamedTuple):
    """Numbers made of a table, and the columns that they came from."""

    X: Floats
    names: list[str]
    n_categorical: int


# Reading -----------------------------------------------------------------------------------


def read_table(
    path: Path, encoding: str, delimiter: str | None, as_text: Sequence[str | int]
) -> Any:
    """Read a CSV, TSV or Parquet file as a pandas data frame.

    Columns in `as_text` stay as they were typed, and so does a first column that is called id.
    """
    pandas = require("pandas", extra="cli", purpose="Reading tables")
    if path.suffix == ".parquet":
        require("pyarrow", extra="parquet", purpose="Reading Parquet files")
        try:
            frame = pandas.read_parquet(path)
        except ValueError as error:  # pyarrow's errors are ValueErrors
            message = f"{path} is no readable Parquet file ({error})."
            raise BadInput(message) from error
        return _with_text_header(_with_rows(frame, path), path)
    separator = delimiter or SEPARATORS.get(path.suffix, ",")
    header = _checked_header(path, encoding, separator)
    converted = [name for name in as_text if name in header or name in range(len(header))]
    if header[0].lower() in ID_NAMES and header[0] not in converted and 0 not in converted:
        converted.append(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                path,
                sep=separator,
                encoding=_with_mark(encoding),
                index_col=False,
                low_memory=False,
                float_precision="round_trip",  # the nearest double, as Python reads it
                converters=dict.fromkeys(converted, str.strip),
            )
    except UnicodeDecodeError as error:
        raise BadInput(_encoding_words(path, encoding)) from error
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        reason = str(error).rpartition("C error: ")[2].strip().rstrip(".")
        message = (
            f"{path} is no regular table ({reason}). Every row needs as many values as the header; "
            "quote texts that contain the delimiter."
        )
        raise BadInput(message) from error
    return _with_rows(frame, path)


def _with_rows(frame: Any, path: Path) -> Any:
    if not len(frame):
        message = f"{path} has a header but no rows."
        raise BadInput(message)
    return frame


def _with_text_header(frame: Any, path: Path) -> Any:
    frame.columns = [str(name) for name in frame.columns]
    _refuse_repeated(list(frame.columns), path)
    if frame.index.name is not None and frame.index.name not in frame.columns:
        frame = frame.reset_index()
    return frame


def _checked_header(path: Path, encoding: str, separator: str) -> list[str]:
    """Look at the first line alone: pandas renames repeated columns and guesses an index."""
    try:
        # A byte order mark, which spreadsheets write, is no part of the first name.
        with path.open(newline="", encoding=_with_mark(encoding)) as file:
            header = next(csv.reader(file, delimiter=separator), None)
    except UnicodeDecodeError as error:
        raise BadInput(_encoding_words(path, encoding)) from error
    except LookupError as error:
        message = f"--encoding {encoding}: there is no such encoding. utf-8 and latin-1 are common."
        raise BadInput(message) from error
    except (csv.Error, TypeError) as error:
        message = f"{path}: the first line cannot be read with --delimiter {separator!r} ({error})."
        raise BadInput(message) from error
    if not header or not any(header):
        message = f"{path} is empty. Its first line must name the columns."
        raise BadInput(message)
    if len(header) == 1:
        for other in ("\t", ";", "|", ","):
            if other in header[0]:
                message = (
                    f"{path} has one column, {header[0][:60]!r}, which holds {other!r}. "
                    f"Use --delimiter {'$' * (other == chr(9))}{other!r}."
                )
                raise BadInput(message)
    _refuse_repeated(header, path)
    return header


def _refuse_repeated(header: list[str], path: Path) -> None:
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        message = f"{path} has more than one column called {repeated[0]!r}. Rename one."
        raise BadInput(message)


def _with_mark(encoding: str) -> str:
    return "utf-8-sig" if encoding.lower() in {"utf-8", "utf8"} else encoding


def _encoding_words(path: Path, encoding: str) -> str:
    return f"{path} is not {encoding} text. Save it as UTF-8, or try --encoding latin-1."


# Columns -----------------------------------------------------------------------------------


def check_columns(wanted: Iterable[str], existing: Sequence[str], option: str) -> None:
    """Raise if a column is not there, naming the ones that are."""
    for name in wanted:
        if name not in existing:
            close = get_close_matches(name, existing, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            shown = ", ".join(map(repr, existing[:SHOWN])) + ", ..." * (len(existing) > SHOWN)
            message = f"{option} {name}: no such column.{hint} There are: {shown or 'none'}."
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


def codes(texts: Sequence[str]) -> tuple[NDArray[np.intp], list[str]]:
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
        message = "No column is left as a feature. Choose some with --features."
        raise BadInput(message)
    numeric: dict[str, Floats] = {}
    categories: dict[str, list[str]] = {}
    for name in frame.columns:
        values = _numbers(frame[name], name, request, place)
        if values is not None:
            numeric[name] = values
        else:
            categories[name] = text_of(frame[name])
    _deal_with_missing(numeric, categories, request.impute, place)
    for name, values in numeric.items():
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            message = f"Column {name!r} is infinite in {place(row)}. Correct it, or --drop {name}."
            raise BadInput(message)
    blocks = [_standardised(numeric) if request.scale is not False else _stacked(numeric)]
    names = list(numeric)
    for name, texts in categories.items():
        block, values_found = _one_hot(texts)
        blocks.append(block)
        names += [f"{name}={value}" for value in values_found]
    blocks = [block for block in blocks if block.size]
    X = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    return Features(X, names, len(categories))


def _numbers(
    column: Any, name: str, request: DataRequest, place: Callable[[int], str]
) -> Floats | None:
    """Return a column as numbers, or None if it holds categories."""
    pandas = require("pandas", extra="cli", purpose="Reading tables")
    if name in request.categorical:
        return None
    kinds = pandas.api.types
    if kinds.is_bool_dtype(column) or kinds.is_numeric_dtype(column):
        return np.asarray(
            column.astype("float64" if not column.hasnans else "Float64").to_numpy(
                dtype=np.float64, na_value=np.nan
            )
        )
    if not (
        kinds.is_object_dtype(column)
        or kinds.is_string_dtype(column)
        or isinstance(column.dtype, pandas.CategoricalDtype)
    ):
        message = (
            f"Column {name!r} holds {column.dtype} values, which are no numbers. "
            f"Use --drop {name}, or --categorical {name}."
        )
        raise BadInput(message)
    texts = text_of(column)
    parsed = np.asarray(pandas.to_numeric(pandas.Series(texts), errors="coerce"), dtype=np.float64)
    given = np.array([bool(text) for text in texts])
    no_number = np.flatnonzero(given & np.isnan(parsed))
    if given.any() and not no_number.size:
        return parsed
    if no_number.size * 2 < given.sum():
        row = int(no_number[0])
        message = (
            f"Column {name!r} holds numbers, but text in {no_number.size} row(s), first "
            f"{texts[row]!r} in {place(row)}. Correct it, or use --drop {name}, or "
            f"--categorical {name}."
        )
        raise BadInput(message)
    n_distinct = len(set(texts))
    limit = min(max(FEW_CATEGORIES, len(texts) // 10), MANY_CATEGORIES)
    if n_distinct > limit or n_distinct == len(texts):
        message = (
            f"Column {name!r} is text with {n_distinct} different values in {len(texts)} rows, too "
            f"many for categories. Use --id {name} if it names the rows, --drop {name}, or "
            f"--categorical {name}."
        )
        raise BadInput(message)
    return None


def _deal_with_missing(
    numeric: dict[str, Floats],
    categories: dict[str, list[str]],
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
            message = f"Column {name!r} has no values at all. Use --drop {name}."
            raise BadInput(message)
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
