"""Curves: what was measured, summarised and compared."""

from __future__ import annotations

import csv
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from linkwise._files import atomic
from linkwise._optional import require
from linkwise.evaluate.store import Row, read_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from linkwise._types import Floats


STATUSES = ("ok", "slow", "infeasible", "too large", "failed", "skipped")
COSTS = ("clustering_error", "cut", "ncut", "rcut", "seconds", "cpu_seconds")  # lower is better
WIDEST = 80  # characters of a cell; messages are longer
TIE = 1e-9  # relative
QUANTILES = (0.25, 0.5, 0.75)


class Table(list[dict[str, Any]]):
    """Rows of equal columns: a list of dicts that prints as text and can be written.

    Examples
    --------
    >>> print(Table([{"method": "cut", "mean": 0.51234}, {"method": "signed", "mean": 1.0}]))
    method  mean
    cut     0.512
    signed  1
    """

    def __str__(self) -> str:
        if not self:
            return "(no rows)"
        lines = [list(self[0]), *([_shown(value) for value in row.values()] for row in self)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        right = [isinstance(value, int) for value in self[0].values()]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if is_right else cell.ljust(width)
                for cell, width, is_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        )

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as CSV, with a header; an old file is replaced when all are written.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        with (
            atomic(path) as unfinished,
            unfinished.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(file, list(self[0]) if self else [], lineterminator="\n")
            writer.writeheader()
            writer.writerows(self)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame. Needs the extra ``frames``."""
        pandas = require("pandas", extra="frames", purpose="A data frame")
        return pandas.DataFrame(list(self))


def _shown(value: Any) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


class Curves:
    """The rows of a run, and what follows from them.

    Parameters
    ----------
    rows : iterable of dict
        One row per data set, method, amount and draw.
    settings : dict, default=None
        How they came about.

    Attributes
    ----------
    rows : Table
        All of them, in the order of the run: the names `data`, `method`, `amount` and `draw`;
        `status`, `message` and `warnings`; the numbers of samples and constraints; the scores
        (nan without an answer); `seconds` and `cpu_seconds`.
    settings : dict
    """

    def __init__(self, rows: Iterable[Row], settings: Mapping[str, Any] | None = None) -> None:
        self.rows = Table(rows)
        self.settings = dict(settings or {})

    def __repr__(self) -> str:
        n_failed = len(self.failures())
        problems = f", {n_failed} without an answer" if n_failed else ""
        return (
            f"Curves({len(self.rows)} rows: data {self._names('data')}, "
            f"methods {self._names('method')}{problems})"
        )

    def _names(self, column: str) -> list[str]:
        return list(dict.fromkeys(row[column] for row in self.rows))

    @property
    def metrics(self) -> list[str]:
        """The names of the scores."""
        names = list(self.rows[0]) if self.rows else []
        start = names.index("n_labelled") + 1 if names else 0
        return [name for name in names[start:] if name not in {"seconds", "cpu_seconds"}]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all rows as CSV.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        self.rows.to_csv(path)

    def to_frame(self) -> Any:
        """Return all rows as a pandas DataFrame. Needs the extra ``frames``."""
        return self.rows.to_frame()

    def failures(self) -> Table:
        """Return the rows without an answer, with their messages."""
        columns = ("data", "method", "amount", "draw", "status", "message")
        return Table(
            {name: row[name] for name in columns}
            for row in self.rows
            if row["status"] not in {"ok", "slow"}
        )

    def summary(
        self,
        metric: str = "adjusted_rand",
        *,
        quantiles: Sequence[float] = QUANTILES,
        columns: Sequence[str] | None = None,
    ) -> Table:
        """Return mean and spread of a score over the draws, for each data set, method and amount.

        Parameters
        ----------
        metric : str, default="adjusted_rand"
            A score, or ``"seconds"`` or ``"cpu_seconds"``.
        quantiles : sequence of float, default=(0.25, 0.5, 0.75)
            Which quantiles to give.
        columns : sequence of str, default=None
            The columns to keep; None for all.

        Returns
        -------
        Table
            `n_draws` is the number of draws, `n` the number of scores that the mean is over:
            they differ where a method gave no answer (`problems` counts why) or where the score
            is not defined, as over free samples when there are none. `std` is the standard
            deviation with n - 1, `sem` the standard error of the mean, `q25` ... the quantiles,
            and `seconds` the median time of a fit that gave an answer.
        """
        self._check(metric)
        found = Table()
        for (data, method, amount), rows in self._cells().items():
            values = _finite(row[metric] for row in rows)
            spread = float(values.std(ddof=1)) if values.size > 1 else math.nan
            problems = Counter(row["status"] for row in rows if row["status"] != "ok")
            line = {
                "data": data,
                "method": method,
                "amount": amount,
                "metric": metric,
                "n_draws": len(rows),
                "n": values.size,
                "mean": float(values.mean()) if values.size else math.nan,
                "std": spread,
                "sem": spread / math.sqrt(values.size) if values.size else math.nan,
                **{f"q{100 * q:g}": _quantile(values, q) for q in quantiles},
                "problems": ", ".join(f"{status} {n}" for status, n in problems.items()),
            }
            if metric != "seconds":
                answered = (r["seconds"] for r in rows if r["status"] in {"ok", "slow"})
                line["seconds"] = _quantile(_finite(answered), 0.5)
            found.append(line if columns is None else {name: line[name] for name in columns})
        return found

    def compare(
        self, a: str, b: str, metric: str = "adjusted_rand", *, confidence: float = 0.95
    ) -> Table:
        """Compare two methods draw by draw: both had the same constraints.

        Parameters
        ----------
        a, b : str
            Names of methods.
        metric : str, default="adjusted_rand"
            A score, or ``"seconds"`` or ``"cpu_seconds"``.
        confidence : float, default=0.95
            Level of the interval.

        Returns
        -------
        Table
            For each data set and amount the mean of the differences `a` - `b`, its interval by
            Student's t (`low`, `high`), the numbers of draws in which `a` is better, as good or
            worse (`wins`, `ties`, `losses`; lower is better for errors, cuts, violations and
            seconds), and the two-sided p-value of Wilcoxon's signed-rank test, draws without a
            difference left out. Draws in which either has no score are left out: `n` are
            compared, of `n_draws`.
        """
        self._check(metric, a, b)
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
        found, cells = Table(), self._cells()
        names = self._names("data")
        points = {(data, amount) for data, _, amount in cells}
        for data, amount in sorted(points, key=lambda point: (names.index(point[0]), point[1])):
            mine, other = (cells.get((data, method, amount)) for method in (a, b))
            n_draws, difference = _differences(mine, other, metric)
            low, high = _interval(difference, confidence)
            gain = -difference if _is_cost(metric) else difference
            line = {"data": data, "amount": amount, "a": a, "b": b, "metric": metric}
            line |= {"n_draws": n_draws, "n": difference.size}
            line["difference"] = float(difference.mean()) if difference.size else math.nan
            line |= {"low": low, "high": high, **_outcome(gain), "p": _wilcoxon(difference)}
            found.append(line)
        return found

    def stability(self, metric: str = "adjusted_rand", *, baseline: str | None = None) -> Table:
        """Return the share of draws whose constraints helped (Wang et al., figure 5).

        "The percentage of trials with positive performance gain": how many of the draws give a
        strictly better score than clustering without constraints does.

        Parameters
        ----------
        metric : str, default="adjusted_rand"
            The score.
        baseline : str, default=None
            The method to outdo, draw by draw: the paper takes spectral clustering, ``"ncut"``.
            By default each method is compared with itself at amount 0.

        Returns
        -------
        Table
            For each data set, amount and method the numbers of draws with a better, an equal and
            a worse score (`wins`, `ties`, `losses`), and `share`, the wins among the `n` draws in
            which both have a score; draws without are ``n_draws - n``.
        """
        self._check(metric, *([] if baseline is None else [baseline]))
        if baseline is None and not any(row["amount"] == 0 for row in self.rows):
            raise ValueError(
                "Nothing was fitted without constraints. Add the amount 0, or name a baseline."
            )
        found, cells = Table(), self._cells()
        for (data, method, amount), rows in cells.items():
            if method == baseline or (baseline is None and amount == 0):
                continue
            plain = (data, method, 0) if baseline is None else (data, baseline, amount)
            n_draws, gain = _differences(rows, cells.get(plain), metric)
            outcome = _outcome(-gain if _is_cost(metric) else gain)
            line = {"data": data, "method": method, "amount": amount, "metric": metric}
            line |= {"n_draws": n_draws, "n": gain.size, **outcome}
            line["share"] = outcome["wins"] / gain.size if gain.size else math.nan
            found.append(line)
        return found

    def _cells(self) -> dict[tuple[str, str, int], list[Row]]:
        """Return the draws of each data set, method and amount, curve by curve."""
        cells: dict[tuple[str, str, int], list[Row]] = {}
        for row in self.rows:
            cells.setdefault((row["data"], row["method"], row["amount"]), []).append(row)
        data, methods = self._names("data"), self._names("method")
        order = sorted(cells, key=lambda c: (data.index(c[0]), methods.index(c[1]), c[2]))
        return {cell: cells[cell] for cell in order}

    def _check(self, metric: str, *methods: str) -> None:
        numbers = [*self.metrics, "seconds", "cpu_seconds"]
        if metric not in numbers:
            message = f"There is no metric {metric!r} in this run, but {', '.join(numbers)}."
            raise ValueError(message)
        known = self._names("method")
        for method in methods:
            if method not in known:
                message = f"There is no method {method!r} in this run, but {', '.join(known)}."
                raise ValueError(message)


def read_curves(path: str | os.PathLike[str]) -> Curves:
    """Return the curves of a file, finished or not, as :func:`learning_curve` wrote it.

    Parameters
    ----------
    path : str or path-like
        The file.
    """
    settings, rows = read_rows(path)
    return Curves(rows, settings)


def _differences(one: list[Row] | None, other: list[Row] | None, metric: str) -> tuple[int, Floats]:
    """Return the number of draws, and the differences in those where both have a score."""
    by_draw = [{row["draw"]: row[metric] for row in rows or []} for rows in (one, other)]
    draws = sorted(by_draw[0].keys() | by_draw[1].keys())
    values = [[scores.get(draw, math.nan) for scores in by_draw] for draw in draws]
    a, b = np.array(values, dtype=np.float64).reshape(-1, 2).T
    # Equal partitions, numbered differently, have cuts that differ by rounding: that is a tie.
    difference = np.where(np.abs(a - b) <= TIE * np.maximum(np.abs(a), np.abs(b)), 0.0, a - b)
    return len(draws), difference[~np.isnan(difference)]


def _is_cost(metric: str) -> bool:
    return metric.startswith("violated") or metric.removeprefix("free_") in COSTS


def _finite(values: Iterable[float]) -> Floats:
    array = np.array(list(values), dtype=np.float64)
    return array[~np.isnan(array)]


def _quantile(values: Floats, q: float) -> float:
    return float(np.quantile(values, q)) if values.size else math.nan


def _outcome(gain: Floats) -> dict[str, int]:
    return {
        "wins": int((gain > 0).sum()),
        "ties": int((gain == 0).sum()),
        "losses": int((gain < 0).sum()),
    }


def _interval(difference: Floats, confidence: float) -> tuple[float, float]:
    """Return Student's interval of the mean."""
    n = difference.size
    if n < 2:
        return math.nan, math.nan
    half = stats.t.ppf((1 + confidence) / 2, n - 1) * difference.std(ddof=1) / math.sqrt(n)
    return float(difference.mean() - half), float(difference.mean() + half)


def _wilcoxon(difference: Floats) -> float:
    different = difference[difference != 0]
    if different.size == 0:
        return 1.0 if difference.size else math.nan
    return float(stats.wilcoxon(different).pvalue)
