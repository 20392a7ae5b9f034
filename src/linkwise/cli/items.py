"""Items: the rows of DATA as a person sees them who is asked whether two belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.cli.tables import text_of

if TYPE_CHECKING:
    from linkwise._types import Floats
    from linkwise.cli.reading import Data

MAX_SHOWN = 20  # features of a row; the most different ones
MAX_COLUMNS = 10_000  # of an array without a table


class Comparison(NamedTuple):
    """One column of two rows, and how much they differ."""

    name: str
    first: str
    second: str
    difference: float  # in standard deviations; of texts 0 or 1
    is_feature: bool = True  # whether clustering looks at it

    @property
    def mark(self) -> str:
        """Nothing for equal values, more signs for more different ones."""
        is_known = self.first and self.second  # what is missing may be the same
        if self.first == self.second or not is_known or not self.is_feature:
            return ""
        return "*" * (1 + int(self.difference >= 1) + int(self.difference >= 2))


def fields(data: Data, row: int) -> dict[str, str]:
    """Return everything that is known of a row, by column: its id, the features, and the others.

    Columns that clustering leaves out, such as names and dates, are what people recognise; classes
    (--truth, --labels) are not among them.
    """
    found = {data.id_name: str(data.names[row])} if data.names is not None else {}
    frames = [frame for frame in (data.frame, data.others) if frame is not None]
    for frame in frames:
        found |= {str(name): _text(frame[name], row) for name in frame.columns}
    if data.frame is None and data.X is not None:
        names = data.feature_names[:MAX_COLUMNS]
        values = _dense(data.X[[row]])[0, : len(names)].tolist()
        found |= {name: f"{value:.6g}" for name, value in zip(names, values, strict=True)}
    return found


def compare_rows(data: Data, pair: tuple[int, int]) -> list[Comparison]:
    """Return the columns of two rows with their differences.

    Of the features at most 20, the most different ones; then the columns that clustering leaves
    out.
    """
    if data.X is None:
        return _compare_nodes(data.W, pair)
    if data.frame is None:
        columns = [data.X[:, [k]] for k in range(min(data.X.shape[1], MAX_COLUMNS))]
        found = [
            _compared(name, _dense(column).ravel(), pair)
            for name, column in zip(data.feature_names, columns, strict=False)
        ]
    else:
        found = [
            _compared(str(name), data.frame[name], pair, data.amounts.get(str(name)))
            for name in data.frame.columns
        ]
    kept = sorted(sorted(range(len(found)), key=lambda k: -found[k].difference)[:MAX_SHOWN])
    return [*(found[k] for k in kept), *_others(data, pair)]


def _others(data: Data, pair: tuple[int, int]) -> list[Comparison]:
    """Compare the columns that clustering leaves out, as they are."""
    if data.others is None:
        return []
    found = []
    for name in list(data.others.columns)[:MAX_SHOWN]:
        first, second = (_text(data.others[name], row) for row in pair)
        found.append(Comparison(str(name), first, second, 0.0, is_feature=False))
    return found


def _text(column: Any, row: int) -> str:
    return text_of(np.asarray(column)[[row]])[0]


def _dense(values: Any) -> Any:
    return np.asarray(values.todense() if hasattr(values, "todense") else values)


def _compared(
    name: str, column: Any, pair: tuple[int, int], amounts: Floats | None = None
) -> Comparison:
    """Compare a column of two rows; money and dates, as `amounts`, by the numbers they are."""
    values = np.asarray(column)
    first, second = text_of(values[list(pair)])
    values = values if amounts is None else amounts
    if values.dtype.kind not in "biuf":
        return Comparison(name, first, second, float(first != second))
    spread = float(np.nanstd(values.astype(np.float64)))
    gap = abs(float(values[pair[0]]) - float(values[pair[1]]))
    difference = gap / spread if spread > 0 and np.isfinite(gap) else 0.0
    if amounts is None:
        first, second = _short(first), _short(second)
    return Comparison(name, first, second, difference)


def _short(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    return text if value.is_integer() else f"{value:.6g}"


def _compare_nodes(W: Any, pair: tuple[int, int]) -> list[Comparison]:
    """Compare two nodes of a graph: edges, their weight, common neighbours."""
    rows = [W[[sample]] for sample in pair]
    neighbours = [set(row.nonzero()[1].tolist()) for row in rows]
    link, common = float(W[pair[0], pair[1]]), len(neighbours[0] & neighbours[1])
    edges, weights = [len(found) for found in neighbours], [float(row.sum()) for row in rows]
    return [
        Comparison("edges", str(edges[0]), str(edges[1]), 0.0),
        Comparison("weight of edges", f"{weights[0]:.6g}", f"{weights[1]:.6g}", 0.0),
        Comparison("edge between them", f"{link:.6g}", f"{link:.6g}", 0.0),
        Comparison("common neighbours", str(common), str(common), 0.0),
    ]
