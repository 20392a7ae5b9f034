"""Data frames with columns that are no numbers: what each of them is, and how to turn it into some.

Only looked at to write an error message.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise._values import (
    are_sentences,
    is_missing,
    most_categories,
    plain_numbers,
    read_dates,
    read_numbers,
)

SHOWN = 8  # columns in a message
HARDLY_REPEATED = 0.5  # different values per row from which on a column names its rows
KINDS = ("category", "amount", "date", "written date", "text", "name")
NOT_IN_FIGURES = r"[^\d.-]", r"[^\d,-]"  # with a point, or a comma, before the fraction


def check_frame(X: Any) -> None:
    """Raise ValueError if a data frame has columns without numbers; say what to do with each."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    no_numbers = [name for name in X.columns if not _is_numeric(X[name])]
    if not no_numbers:
        return
    names: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for name in no_numbers:
        names[_kind(X[name])].append(name)
    remedy = "Leave them out"
    if names["name"]:  # each of their values would become a column
        drop = "X.drop(" if _is_polars(X) else "X.drop(columns="
        listed = f"{drop}{names['name'][:SHOWN]!r})"
        remedy = f"Leave out those that hardly repeat, such as names and ids, by {listed}"
    advice = _advice(X, names)
    if advice:
        turn = "; turn the others" if names["name"] else ", or turn them"
        remedy += f"{turn} into numbers: {', '.join(advice)}"
    raise ValueError(f"X has no numbers in the columns {_listed(no_numbers)}. {remedy}.")


def _advice(X: Any, names: dict[str, list[Any]]) -> list[str]:
    """Return how to turn columns into numbers: an example of each kind."""
    advice = []
    if names["category"]:
        has_other_texts = any(names[kind] for kind in ("name", "text", "amount", "written date"))
        advice.append(f"categories by {_dummies(X, names, has_other_texts=has_other_texts)}")
    advice += [f"amounts by {_numbers_call(X[name], name)}" for name in names["amount"][:1]]
    advice += [f"dates by (X[{name!r}] - X[{name!r}].min()).dt.days" for name in names["date"][:1]]
    advice += [
        f"written dates by pandas.to_datetime(X[{name!r}]), and these as days"
        for name in names["written date"][:1]
    ]
    if names["text"]:
        vectors = "sklearn.feature_extraction.text.TfidfVectorizer"
        advice.append(f"texts ({_listed(names['text'])}) by {vectors}")
    return advice


def _dummies(X: Any, names: dict[str, list[Any]], *, has_other_texts: bool) -> str:
    """Return the call that turns categories into columns, and leaves other texts alone."""
    found = names["category"]
    if _is_polars(X):
        every = found if has_other_texts else found + names["date"]  # `dt.days` is of pandas
        return f"X.to_dummies({every[:SHOWN]!r})"
    only = f", columns={found!r}" if has_other_texts else ""
    return f"pandas.get_dummies(X{only})"


def _is_polars(X: Any) -> bool:
    return type(X).__module__.startswith("polars")


def _listed(names: list[Any]) -> str:
    return ", ".join(map(repr, names[:SHOWN])) + ", ..." * (len(names) > SHOWN)


def _is_numeric(column: Any) -> bool:
    """Whether a column holds numbers, as numbers or as text; missing ones count as such."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biufmM":
        return kind not in "mM"  # dates and durations
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        return "NAType" in str(error)  # told with its place later
    return np.asarray(column).dtype.kind not in "mM"  # polars has types of its own


def _kind(column: Any) -> str:
    """Return what a column without numbers holds, as far as that decides what becomes of it."""
    if np.asarray(column).dtype.kind in "mM":
        return "date"
    texts = _texts(column)
    try:
        if read_numbers(texts, decimal=".", prefers_comma=False) is not None:
            return "amount"
        if read_dates(texts) is not None:
            return "written date"
    except ImportError:  # without pandas they are texts
        pass
    given = [text for text in texts if text]
    if len(set(given)) <= max(most_categories(len(texts)), HARDLY_REPEATED * len(given)):
        return "category"
    return "text" if are_sentences(texts) else "name"


def _texts(column: Any) -> list[str]:
    """Return the values of a column as texts; missing ones are empty."""
    values = np.asarray(column, dtype=object).tolist()
    return ["" if is_missing(value) else str(value).strip() for value in values]


def _numbers_call(column: Any, name: Any) -> str:
    """Return the call that reads amounts such as ``1,200 €`` as the numbers that they are."""
    texts = _texts(column)
    found = read_numbers(texts, decimal=".", prefers_comma=False)
    assert found is not None
    given = np.isfinite(found.values)
    for pattern, mark in zip(NOT_IN_FIGURES, ".,", strict=True):
        kept = {*"0123456789-", mark}
        figures = ["".join(c for c in text if c in kept).replace(",", ".") for text in texts]
        if np.array_equal(plain_numbers(figures)[given], found.values[given]):
            comma = ".str.replace(',', '.')" if mark == "," else ""
            cut = f"X[{name!r}].str.replace(r'{pattern}', '', regex=True){comma}"
            return f"pandas.to_numeric({cut})"
    return f"pandas.to_numeric(X[{name!r}]), after what is no figure is cut off"
