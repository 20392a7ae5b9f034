"""Tables of records: columns of text, numbers and categories; fields may be missing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.cli.console import counted
from linkwise.cli.tables import Features, sorted_columns, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise.cli.problems import Problem
    from linkwise.cli.requests import DataRequest
    from linkwise.cli.tables import SortedColumns


def text_columns(request: DataRequest, columns: list[str]) -> list[str]:
    """Return the columns of --text, several of which may be in one, with commas between."""
    return split_names(request.text, columns)


def split_names(typed: Sequence[str], columns: list[str]) -> list[str]:
    """Return names that were typed, several with commas between unless a column is called so."""
    found: list[str] = []
    for text in typed:
        found += [text] if text in columns else [name.strip() for name in text.split(",")]
    return list(dict.fromkeys(found))


def has_texts(frame: Any, request: DataRequest) -> bool:
    """Whether columns are neither numbers nor categories, so that --text would compare them."""
    found = sorted_columns(frame, request, str)
    return any(_add_to_text(problem.text) != problem.text for problem in found.problems)


def record_features(frame: Any, request: DataRequest, place: Callable[[int], str]) -> Features:
    """Return records as sparse vectors; a missing field has no part in them."""
    columns = [str(name) for name in frame.columns]
    text = [name for name in text_columns(request, columns) if name in columns]
    others = sorted_columns(frame[[name for name in columns if name not in text]], request, place)
    if others.problems or not text:
        problems = with_text(others, request, text)
        return Features(np.empty((len(frame), 0)), [], 0, problems, others.notes, [])
    values: dict[str, Any] = {name: text_of(frame[name]) for name in text}
    values |= {**others.numeric, **others.categories}
    missing = sum(_n_missing(column) for column in values.values())
    if missing:
        others.notes.append(f"{counted(missing, 'field')} missing: they agree with no other")
    vectorizer = import_module("linkwise.linkage.records").RecordVectorizer(
        text, numeric=list(others.numeric), categorical=list(others.categories)
    )
    X = vectorizer.fit_transform(values)
    n_categorical = len(others.categories)
    return Features(X, [], n_categorical, [], others.notes, others.left_out, others.amounts)


def with_text(found: SortedColumns, request: DataRequest, text: list[str]) -> list[Problem]:
    """Return the problems of columns; of those that are text, one --text for all is the remedy."""
    problems = {problem: _add_to_text(problem.text) for problem in found.problems}
    of_text = [problem for problem, words in problems.items() if words != problem.text]
    names = [*text, *(problem.add[1] for problem in of_text)]
    names += [name for name in found.left_out if name not in names]  # such as phone numbers
    typed = [",".join(names)] if not any("," in name for name in names) else names
    add = tuple(part for name in typed for part in ("--text", name))
    remove = ("--text",) if request.text else ()
    return [
        problem._replace(text=words, add=add, remove=remove) if problem in of_text else problem
        for problem, words in problems.items()
    ]


def _add_to_text(words: str) -> str:
    words = words.replace("categories. Use", "categories. Add it to --text, or use")
    return words.replace("Correct it, or use", "Add it to --text, correct it, or use")


def _n_missing(column: Any) -> int:
    if isinstance(column, list):
        return sum(not text for text in column)
    return int(np.isnan(column).sum())
