"""A column of partial labels -> integers, and the names that they stand for."""

from __future__ import annotations

import warnings
from itertools import count
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._quiet import user_level
from linkwise.constraints.validation import Remedies, as_integers, is_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import AnyArray, Bools, Ints

# Texts that people and programs write for "not known"; as a label they are probably a mistake.
UNKNOWN_WORDS = frozenset({"unknown", "unassigned", "unlabeled", "unlabelled"})
UNKNOWN = UNKNOWN_WORDS | {"-1", "-1.0", "?", "na", "n/a", "nan", "null", "none", "<na>", "nat"}
SHOWN = 3  # names of rows in a message
REMEDIES = Remedies(
    missing="To say that a label is unknown, use -1.",
    text="Labels are integers, text or booleans; None, NaN and, among integers, -1 are unknown.",
    flags="Labels are integers, text or booleans.",
)


class Labels(NamedTuple):
    """The label of each sample as an integer, -1 where unknown, and what the integers mean."""

    values: Ints
    classes: AnyArray | None = None  # name of each integer; None if integers were given

    @classmethod
    def of(cls, codes: Ints, names: Sequence[Any]) -> Labels:
        """Return labels whose integers are positions in a list of names."""
        classes = np.empty(len(names), dtype=object)
        classes[:] = names
        return cls(codes, classes)


def as_labels(value: Any, n_samples: int | None = None, *, name: str = "labels") -> Labels:
    """Return partial labels: of integers, text, booleans or categories, some of them unknown."""
    if isinstance(value, Labels):
        return value
    array = _as_array(value)
    if array.ndim != 1 or (n_samples is not None and array.size != n_samples):
        wanted = "one label per sample" if n_samples is None else f"n_samples = {n_samples}"
        raise ValueError(
            f"{name} has shape {array.shape}, but it must be one-dimensional with {wanted}. "
            "Use -1 for an unknown label, or None among names."
        )
    if array.dtype.kind in "iuf":
        return Labels(_integer_labels(array, name))
    known = ~np.array([_is_unknown(item) for item in array.tolist()], dtype=bool)
    given = array[known].tolist()
    if all(isinstance(item, str) for item in given) and given:
        _warn_of_unknown(given, _with_column(name, value))
    elif not all(isinstance(item, bool) for item in given) or not given:
        return Labels(_integer_labels(_as_numbers(array, known, name), name))
    return _named(array, known, _categories(value) or sorted(set(given)))


def _with_column(name: str, value: Any) -> str:
    """Return the name of an argument with that of the column that was given for it."""
    column = getattr(value, "name", None)
    return f"{name} (column {column!r})" if isinstance(column, str) and column else name


def row_names(table: Any) -> Any:
    """Return the index of a data frame or its column; None of what has none."""
    index = getattr(table, "index", None)
    return index if hasattr(index, "equals") and hasattr(index, "is_unique") else None


def check_row_names(labels: Any, rows: Any) -> None:
    """Raise ValueError if labels are in another order than the rows; warn if of other rows.

    Both are indices of pandas, or None.
    """
    if labels is None or rows is None or labels.equals(rows):
        return
    starts = [", ".join(map(repr, index[:SHOWN].tolist())) for index in (labels, rows)]
    begin = f"(the index of y begins {starts[0]}, that of X {starts[1]})"
    remedy = "Use Constraints.from_labels(y.reindex(X.index)), or y.to_numpy() if"
    n_common = len(labels.intersection(rows))
    if len(labels) != len(rows):
        if n_common == len(labels):
            raise ValueError(
                f"The labels are of {len(labels)} rows, and X has {len(rows)} {begin}. "
                "Use Constraints.from_labels(y.reindex(X.index)): the others are then unknown."
            )
    elif n_common == len(rows):
        raise ValueError(f"The labels are in another order than X {begin}. {remedy} they are not.")
    elif n_common or not (_is_count(labels) or _is_count(rows)):
        text = f"The labels have other rows than X {begin}, and are taken in the order of X. "
        warnings.warn(f"{text}{remedy} that is meant.", UserWarning, stacklevel=user_level())


def _is_count(index: Any) -> bool:
    """Whether an index only counts the rows, as pandas does where no names are given."""
    return index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index)))


def _as_array(value: Any) -> AnyArray:
    """Return the values as they were given: NumPy would turn a missing name into text."""
    array = np.asarray(value)
    if array.dtype.kind == "U" and array.ndim == 1 and isinstance(value, (list, tuple)):
        array = np.empty(len(value), dtype=object)
        array[:] = value
    return array


def _is_unknown(value: object) -> bool:
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def _integer_labels(array: AnyArray, name: str) -> Ints:
    """Return whole numbers as integers; NaN becomes -1."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, array)
    labels = as_integers(array, name, REMEDIES)
    wrong = np.flatnonzero(labels < -1)
    if wrong.size:
        raise ValueError(
            f"{name}[{wrong[0]}] is {labels[wrong[0]]}, but labels are 0, 1, 2, ... "
            "Use -1 for an unknown label."
        )
    return labels


def _as_numbers(array: AnyArray, known: Bools, name: str) -> AnyArray:
    """Return a column of integers with missing values, or say what else it mixes."""
    kinds = {_kind(item): row for row, item in enumerate(array.tolist()) if known[row]}
    if len(kinds) > 1:
        shown = ", ".join(f"{name}[{row}] is {array[row]!r}" for row in sorted(kinds.values()))
        remedy = "Give labels of one kind."
        if kinds.keys() == {"text", "numbers"} and _only_minus_one(array, known):
            remedy = "Among names, write None or NaN for unknown, not -1."
        raise TypeError(f"{name} mixes {' and '.join(kinds)}: {shown}. {remedy}")
    return np.where(known, array.astype(object), -1)


def _only_minus_one(array: AnyArray, known: Bools) -> bool:
    """Whether all numbers among names are -1."""
    return all(item == -1 for item in array[known].tolist() if not isinstance(item, str))


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "booleans"
    if isinstance(value, (Integral, Real)):
        return "numbers"
    return "text" if isinstance(value, str) else f"{type(value).__name__} values"


def _warn_of_unknown(given: list[str], name: str) -> None:
    """Warn of text that is taken for a label, but probably means that there is none."""
    found = [text for text in given if text.strip().lower() in UNKNOWN]
    if found:
        word = found[0]
        text = (
            f"{name} holds the text {word!r} as a label ({len(found)} such labels). If it means "
            f"unknown, write None instead; in pandas, column.mask(column == {word!r})."
        )
        warnings.warn(text, UserWarning, stacklevel=user_level())


def _categories(value: Any) -> list[Any] | None:
    """Return the categories that a frame's column declares, in their order, or None."""
    categories = getattr(getattr(value, "dtype", None), "categories", None)
    listed = getattr(categories, "tolist", getattr(categories, "to_list", None))  # pandas, polars
    if listed is None:
        return None
    used = {item for item in np.asarray(value).tolist() if not _is_unknown(item)}
    return [category for category in listed() if category in used]


def _named(array: AnyArray, known: Bools, names: list[Any]) -> Labels:
    code = {name: number for number, name in enumerate(names)}
    values = np.full(array.size, -1, dtype=np.intp)
    values[known] = [code[item] for item in array[known].tolist()]
    return Labels.of(values, names)


def looks_partial(y: Any) -> bool:
    """Whether a column looks like labels of which some are unknown: missing, or -1."""
    array = np.asarray(y)
    if array.ndim != 1 or not array.size:
        return False
    if array.dtype.kind not in "if":
        unknown = [_is_unknown(item) for item in array.tolist()]
        if any(unknown) or array.dtype.kind != "O":
            return any(unknown) and not all(unknown)
        array = _as_floats(array)
    if np.isnan(array).any():
        return not np.isnan(array).all()
    # -1 and 1 alone are the two classes of a classifier; other negative numbers are no labels.
    values = np.unique(array)
    is_classes = values[0] == -1 and np.array_equal(values, np.floor(values))
    return bool(is_classes and values.size > 1 and values[1:].tolist() != [1])


def _as_floats(array: AnyArray) -> AnyArray:
    """Return objects as numbers; 0 where they are none."""
    items = array.tolist()
    return np.array([float(item) if isinstance(item, Real) else 0.0 for item in items])


def cluster_names(clusters: Ints, labels: Labels, n_clusters: int) -> AnyArray:
    """Return a name for each cluster: the label that most of its labelled samples have.

    Every label names one cluster at most, where it is most frequent. Another cluster of the same
    label is called ``"B (2)"``, and one without labels ``"cluster 3"``; among integers both get
    the next number after the labels.
    """
    name_of, most = _majorities(clusters, labels)
    if labels.classes is None:
        first = int(labels.values.max()) + 1
        rest = iter(range(first, first + n_clusters))
        return np.array([name_of[c] if c in name_of else next(rest) for c in range(n_clusters)])
    used = set(labels.classes.tolist())
    names = np.empty(n_clusters, dtype=object)
    for c in range(n_clusters):
        if c in name_of:
            names[c] = labels.classes[name_of[c]]
        elif c in most:
            names[c] = _numbered(labels.classes[most[c]], used)
        else:
            names[c] = _free(f"cluster {c}", used)
        used.add(names[c])
    return names


def _majorities(clusters: Ints, labels: Labels) -> tuple[dict[int, int], dict[int, int]]:
    """Return the label that names a cluster, once each, and the most frequent of each cluster."""
    known = np.flatnonzero(labels.values >= 0)
    cells = np.column_stack((clusters[known], labels.values[known]))
    found, counts = np.unique(cells, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    name_of: dict[int, int] = {}
    most: dict[int, int] = {}
    largest: dict[int, int] = {}
    taken: set[int] = set()
    for (cluster, label), n in zip(found[order].tolist(), counts[order].tolist(), strict=True):
        most.setdefault(cluster, label)
        is_most = n == largest.setdefault(cluster, n)
        if is_most and cluster not in name_of and label not in taken:
            name_of[cluster] = label
            taken.add(label)
    return name_of, most


def _numbered(name: Any, used: set[Any]) -> str:
    return next(text for n in count(2) if (text := f"{name} ({n})") not in used)


def _free(name: str, used: set[Any]) -> str:
    while name in used:
        name += "'"
    return name
