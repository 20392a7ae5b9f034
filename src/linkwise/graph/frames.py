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
OTHER_TEXTS = ("amount", "written date", "text", "list")  # of which no columns of 0 and 1 are made
KINDS = ("category", "date", "name", *OTHER_TEXTS)
NOT_IN_FIGURES = r"[^\d.-]", r"[^\d,-]"  # with a point, or a comma, before the fraction


def checked_frame(X: Any) -> Any:
    """Return what was given; of a data frame whose names repeat, with numbers for names.

    Raises
    ------
    ValueError
        If a data frame has columns without numbers. The message says what to do with each.
    """
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return X
    given, repeat = list(X.columns), len(set(X.columns)) < len(X.columns)
    if repeat:  # names that do not tell columns apart are of no use, and scikit-learn refuses them
        X = X.set_axis(range(len(given)), axis=1)
    no_numbers = [name for name in X.columns if not _is_numeric(X[name])]
    if repeat and no_numbers:  # advice goes by names
        raise ValueError(
            f"X has no numbers in the columns {_listed([given[at] for at in no_numbers])}, and "
            "several columns have the same name. Give each a name of its own, for example by "
            "X.set_axis(range(X.shape[1]), axis=1)."
        )
    if no_numbers:
        raise ValueError(_message(X, no_numbers))
    return X


def _message(X: Any, no_numbers: list[Any]) -> str:
    """Say which columns hold no numbers, and what to do with each."""
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
    return f"X has no numbers in the columns {_listed(no_numbers)}. {remedy}."


def _advice(X: Any, names: dict[str, list[Any]]) -> list[str]:
    """Return how to turn columns into numbers: an example of each kind."""
    advice = []
    if names["category"]:
        has_other_texts = any(names[kind] for kind in ("name", *OTHER_TEXTS))
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
    advice += [
        f"lists, spread over columns of numbers, for example by {_spread_call(X[name], name)}"
        for name in names["list"][:1]
    ]
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
    if any(_is_list(value) for value in _values(column)):
        return "list"
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
    return ["" if is_missing(value) else str(value).strip() for value in _values(column)]


def _values(column: Any) -> list[Any]:
    values: list[Any] = np.asarray(column, dtype=object).tolist()
    return values


def _is_list(value: Any) -> bool:
    """Whether a cell holds several values: a list, an array or a dict."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes))


def _spread_call(column: Any, name: Any) -> str:
    """Return the call that gives a column to each entry of lists, or of dicts."""
    if any(isinstance(value, dict) for value in _values(column)):
        return f"pandas.DataFrame(list(X[{name!r}]))"
    return f"numpy.vstack(X[{name!r}])"


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
