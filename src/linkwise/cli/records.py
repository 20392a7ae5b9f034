"""Tables of records: columns of text, numbers and categories; fields may be missing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.cli.console import counted
from linkwise.cli.formats import write_rows
from linkwise.cli.tables import Features, sorted_columns, text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from linkwise.cli.problems import Problem
    from linkwise.cli.reading import Data
    from linkwise.cli.requests import DataRequest
    from linkwise.constraints import Constraints

REVIEWED = 200  # pairs in a file for review


def text_columns(request: DataRequest, columns: list[str]) -> list[str]:
    """Return the columns of --text, several of which may be in one, with commas between."""
    found: list[str] = []
    for typed in request.text:
        found += [typed] if typed in columns else [name.strip() for name in typed.split(",")]
    return list(dict.fromkeys(found))


def record_features(frame: Any, request: DataRequest, place: Callable[[int], str]) -> Features:
    """Return records as sparse vectors; a missing field has no part in them."""
    columns = [str(name) for name in frame.columns]
    text = [name for name in text_columns(request, columns) if name in columns]
    others = sorted_columns(frame[[name for name in columns if name not in text]], request, place)
    if others.problems or not text:
        problems = [_with_text(problem) for problem in others.problems]
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
    return Features(X, [], len(others.categories), [], others.notes, [])


def _with_text(problem: Problem) -> Problem:
    """Name --text among the remedies of a column that is no number and no category."""
    text = problem.text.replace("categories. Use", "categories. Add it to --text, or use")
    return problem._replace(text=text)


def _n_missing(column: Any) -> int:
    if isinstance(column, list):
        return sum(not text for text in column)
    return int(np.isnan(column).sum())


def write_review(path: Path, model: Any, data: Data, known: Constraints) -> int:
    """Write the pairs to review, both rows side by side, with an empty column for the answers."""
    queue = model.review(known)
    pairs, probability = queue.pairs[:REVIEWED], queue.probability[:REVIEWED]
    shown = [] if data.frame is None else list(data.frame.columns)
    header = ["i", "j", "link", "probability"]
    header += [f"{name} {side}" for name in shown for side in ("i", "j")]
    ids = data.shown_ids()
    cells = [text_of(data.frame[name]) for name in shown]
    rows = (
        [ids[i], ids[j], "", f"{p:.3f}", *(column[k] for column in cells for k in (i, j))]
        for (i, j), p in zip(pairs.tolist(), probability.tolist(), strict=True)
    )
    write_rows(path, header, rows)
    return len(pairs)
