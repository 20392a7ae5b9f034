"""Values of single samples, for those who point at them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.report.features import Features

MAX_VALUED = 20_000  # samples on the map; with more, only their names are shown
MAX_COLUMNS = 12  # of a sample
VALUES_BUDGET = 1_000_000  # bytes in the page
SHORT_TEXT = 60  # characters of a text


def shown_values(features: Features | None, chosen: Ints) -> list[dict[str, Any]]:
    """Return columns of the samples on the map: texts, then categories, then numbers.

    Columns beyond a number, or a size, are left out.
    """
    if features is None or chosen.size > MAX_VALUED:
        return []
    columns: list[dict[str, Any]] = []
    left = VALUES_BUDGET
    for column in _columns(features, chosen):
        left -= len(json.dumps(column, ensure_ascii=False).encode())
        if left < 0 or len(columns) == MAX_COLUMNS:
            break
        columns.append(column)
    return columns


def _columns(features: Features, chosen: Ints) -> Any:
    """Yield the columns of a table: names, and a value or the number of a text for each sample."""
    for text in features.texts:
        texts = [text.texts[sample][:SHORT_TEXT] for sample in chosen.tolist()]
        yield {"name": text.name, "values": texts}
    for category in features.categories:
        yield {
            "name": category.name,
            "texts": [text[:SHORT_TEXT] for text in category.texts],
            "values": category.codes[chosen].tolist(),
        }
    rows = features.values[chosen]
    for at, name in enumerate(features.names[:MAX_COLUMNS]):
        column = rows[:, [at]].toarray().ravel() if issparse(rows) else np.asarray(rows)[:, at]
        values = np.asarray(column, dtype=np.float64)
        shown = _dates(values) if at in features.dates else _rounded(values)
        yield {"name": name, "values": shown}


def _rounded(values: Floats) -> list[float | None]:
    return [float(f"{v:.5g}") if np.isfinite(v) else None for v in values.tolist()]


def _dates(days: Floats) -> list[str | None]:
    return [date_of(day) or None for day in days.tolist()]


def date_of(day: float | None) -> str:
    """Return days since 1970 as a date; empty if it is not known.

    Examples
    --------
    >>> date_of(18993.4), date_of(float("nan"))
    ('2022-01-01', '')
    """
    if day is None or not np.isfinite(day) or abs(day) > 3e6:
        return ""
    return str(np.datetime64(round(day), "D"))
