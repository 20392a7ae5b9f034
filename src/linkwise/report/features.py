"""Columns to describe clusters with: numbers, money and dates, categories, other texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise._inputs import checked_format
from linkwise._values import are_sentences, is_missing, most_categories, read_dates, read_numbers
from linkwise.metrics.checks import check_length
from linkwise.report.text import name_of

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Ints, Matrix


class Category(NamedTuple):
    """A column of few different texts."""

    name: str
    codes: Ints  # number of the text of each sample; -1 if it is missing
    texts: list[str]


class Text(NamedTuple):
    """A column of texts that hardly repeat: for looking at single samples.

    Of sentences the words tell clusters apart; names and ids say nothing about them.
    """

    name: str
    texts: list[str]

    @property
    def has_words(self) -> bool:
        """Whether clusters are compared by the words of the texts."""
        return are_sentences(self.texts)


@dataclass(frozen=True, eq=False)
class Features:
    """Columns to describe the clusters with, in the units of their owner."""

    values: Matrix  # of the columns that are numbers; dates are days since 1970
    names: list[str]
    dates: frozenset[int] = frozenset()  # which of them are dates
    categories: tuple[Category, ...] = ()
    texts: tuple[Text, ...] = ()

    @cached_property
    def sentences(self) -> tuple[Text, ...]:
        """The texts whose words clusters are compared by."""
        return tuple(text for text in self.texts if text.has_words)

    @property
    def n_left_out(self) -> int:
        """The number of columns that clusters are not compared by."""
        return len(self.texts) - len(self.sentences)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compare clusters by."""
        return not self.names and not self.categories and not self.sentences

    @classmethod
    def of(cls, table: Any, names: Any, n_samples: int) -> Features:
        """Take a matrix, a data frame or a mapping, with the names of its columns or given ones."""
        if isinstance(table, Mapping):
            return cls._of_columns(list(table.values()), _shown(table, names), n_samples)
        columns = getattr(table, "columns", None)
        if columns is not None:
            # By position where names may repeat
            by_place = hasattr(table, "iloc")
            parts = [table.iloc[:, at] if by_place else table[c] for at, c in enumerate(columns)]
            if all(getattr(part.dtype, "kind", "O") in "fiub" for part in parts):
                return cls._of_matrix(np.asarray(table), _shown(columns, names), n_samples)
            return cls._of_columns(parts, _shown(columns, names), n_samples)
        # Without a copy where possible: the table may be large.
        table = checked_format(table, "feature_values")
        values = csr_array(table) if issparse(table) else np.asarray(table)
        if values.ndim != 2:
            message = f"feature_values must have rows and columns, but has shape {values.shape}."
            raise ValueError(message)
        shown = _shown([f"feature {k}" for k in range(values.shape[1])], names)
        if values.dtype.kind in "fiub":
            return cls._of_matrix(values, shown, n_samples)
        return cls._of_columns(list(values.T), shown, n_samples)

    @classmethod
    def _of_matrix(cls, values: Matrix, names: list[str], n_samples: int) -> Features:
        check_length(values.shape[0], n_samples, "feature_values is about")
        return cls(values, names)

    @classmethod
    def _of_columns(cls, columns: list[Any], names: list[str], n_samples: int) -> Features:
        """Sort the columns of a mixed table by what they hold."""
        numbers: dict[str, Floats] = {}
        dates: list[int] = []
        categories: list[Any] = []
        texts: list[Any] = []
        for column, name in zip(columns, names, strict=True):
            check_length(len(column), n_samples, f"feature_values, column {name!r}, is about")
            values, is_date = _numbers(column)
            if values is not None:
                dates += [len(numbers)] if is_date else []
                numbers[name if name not in numbers else f"{name} ({len(numbers)})"] = values
                continue
            found = _category_or_text(column, name)
            (categories if isinstance(found, Category) else texts).append(found)
        matrix = np.column_stack(list(numbers.values())) if numbers else np.empty((n_samples, 0))
        return cls(matrix, list(numbers), frozenset(dates), tuple(categories), tuple(texts))


def _shown(columns: Any, names: Any) -> list[str]:
    """Return the names of the columns, or those that were given instead."""
    columns = list(columns)
    shown = [name_of(name) for name in (columns if names is None else names)]
    if len(shown) != len(columns):
        raise ValueError(
            f"feature_names has {len(shown)} entries, but there are {len(columns)} columns."
        )
    return shown


def _numbers(column: Any) -> tuple[Floats | None, bool]:
    """Return a column as numbers, if it holds any, and whether they are dates."""
    if hasattr(column, "cat"):  # its owner says that it is a category
        return None, False
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind in "fiub":
        return _floats(column), False
    values = np.asarray(column)
    if values.dtype.kind == "M":
        return _days(values), True
    if values.dtype.kind in "fiub":
        return values.astype(np.float64), False
    return _numbers_in_texts(_texts(values))


def _numbers_in_texts(texts: list[str]) -> tuple[Floats | None, bool]:
    """Return texts as numbers, if they are money or dates, and whether they are dates."""
    try:
        found = read_numbers(texts, decimal=".", prefers_comma=False)
        if found is not None:
            return found.values, False
        found = read_dates(texts)
    except ImportError:  # without pandas they are texts
        found = None
    if found is None:
        return None, False
    first = np.datetime64(found.how.rpartition(" ")[2])  # "... days since 2020-01-31"
    return found.values + float(first.astype("datetime64[D]").astype(np.int64)), True


def _floats(column: Any) -> Floats:
    """Return numbers, NaN where pandas has its own missing value."""
    if hasattr(column, "to_numpy") and getattr(column, "hasnans", False):
        return np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column, dtype=np.float64)


def _days(moments: AnyArray) -> Floats:
    """Return moments as days since 1970, NaN where they are missing."""
    seconds = moments.astype("datetime64[s]")
    days = seconds.astype(np.int64) / 86_400.0
    return np.where(np.isnat(seconds), np.nan, days)


def _texts(values: AnyArray) -> list[str]:
    """Return a column as texts; missing values are empty."""
    return ["" if is_missing(value) else str(value).strip() for value in values.tolist()]


def _category_or_text(column: Any, name: str) -> Category | Text:
    texts = [name_of(text) if text else "" for text in _texts(np.asarray(column, dtype=object))]
    found = sorted(set(texts) - {""})
    if len(found) > most_categories(len(texts)) or len(found) == len(texts) > 1:
        return Text(name, texts)
    number = {text: code for code, text in enumerate(found)}
    return Category(name, np.array([number.get(text, -1) for text in texts], dtype=np.intp), found)
