"""What the papers' experiments share: arguments, data, tidy tables, pictures and verdicts.

Each figure or table of a paper is one file here, with these names:

``NAME``
    of the files that are written: ``out/NAME.csv`` (tidy rows), ``NAME.png`` or ``NAME_*.png``,
    ``NAME.verdicts.csv``, and ``NAME.reduced.jsonl`` or ``NAME.full.jsonl`` (every single fit).
``PAPER``, ``TITLE``
    of the section and of the picture on the page that `make_page.py` writes.
``CLAIMS``
    a tuple of `Claim`: a claim of the paper, in our words, and a function that reads the tidy
    rows and returns for each place (mostly a data set) whether it holds, and the figures.
``main(argv=None)``
    runs it, at the paper's own size with ``--full``.

A verdict is computed from the numbers, never typed in: `judged`. The note of a claim is the
reason that was looked for, and is shown where the claim does not hold.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.datasets import load
from linkwise.evaluate.measure import pinned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from linkwise.evaluate import Curves

__all__ = [
    "METHOD_COLORS",
    "Claim",
    "Means",
    "Outcome",
    "Verdict",
    "data_home",
    "finish",
    "judged",
    "load_data",
    "method_style",
    "options",
    "paper_figure",
    "parsed",
    "pinned",
    "raw_path",
    "save_figure",
    "tidy",
    "wins",
    "write_csv",
    "write_verdicts",
]

HERE = Path(__file__).parent
OUT = HERE / "out"
SHARED_DATA = HERE.parents[2] / "shared" / "data"
Row = dict[str, Any]
Rows = list[Row]

# One colour and marker a method in all pictures. The first eight are Okabe & Ito's, the others
# Paul Tol's muted ones: with the markers no two are alike, also without colours.
METHOD_COLORS: dict[str, tuple[str, str]] = {
    "auto": ("#000000", "*"),
    "ncut": ("#000000", "o"),
    "signed": ("#D55E00", "s"),
    "sl": ("#0072B2", "^"),
    "csp": ("#009E73", "D"),
    "cpca": ("#CC79A7", "v"),
    "clpp": ("#E69F00", "P"),
    "csc": ("#D55E00", "X"),
    "ccl": ("#56B4E9", "*"),
    "gfhf": ("#0072B2", "<"),
    "llgc": ("#56B4E9", ">"),
    "cscgfhf": ("#D55E00", "p"),
    "cosc": ("#882255", "h"),
    "srcp": ("#AA4499", "H"),
    "e2cp": ("#332288", "d"),
    "gp": ("#117733", "8"),
    "sclc": ("#44AA99", "<"),
    "fastge": ("#999933", ">"),
    "ccsr": ("#DDCC77", "p"),
    "sskk": ("#88CCEE", "s"),
    "cut": ("#CC6677", "o"),
    "poisson": ("#661100", "v"),
    "kmeans": ("#777777", "x"),
}


# ------------------------------------------------------------------ arguments and data


def options(description: str) -> argparse.ArgumentParser:
    """Return the arguments that all experiments take."""
    found = argparse.ArgumentParser(description=description.splitlines()[0])
    found.add_argument("--full", action="store_true", help="the paper's own size (hours)")
    found.add_argument("--jobs", type=int, default=1, help="processes, each on one thread")
    found.add_argument("--out", type=Path, default=OUT, help="folder of what is written")
    found.add_argument(
        "--fresh", action="store_true", help="do all fits again (needed after changes in the code)"
    )
    return found


def parsed(
    description: str, argv: Sequence[str] | None = None, *, name: str = ""
) -> argparse.Namespace:
    """Parse the arguments, prepare the folder, and with --fresh forget the fits of before."""
    given = options(description).parse_args(argv)
    given.size = "full" if given.full else "reduced"
    given.out.mkdir(parents=True, exist_ok=True)
    if given.fresh and name:
        raw_path(given, name).unlink(missing_ok=True)
    return given


def raw_path(given: argparse.Namespace, name: str) -> Path:
    """Return the file of `learning_curve`, by which a stopped run continues."""
    return given.out / f"{name}.{given.size}.jsonl"


def data_home() -> Path | None:
    """Return the folder of the data: LINKWISE_DATA, else ``../shared/data`` if it is there."""
    if "LINKWISE_DATA" in os.environ:
        return Path(os.environ["LINKWISE_DATA"])
    return SHARED_DATA if SHARED_DATA.is_dir() else None


def load_data(name: str, *, standardized: bool = False) -> tuple[Any, Any]:
    """Return X as floats, and y; standardised to zero mean and unit variance if asked."""
    data = load(name, data_home=data_home())
    X = np.asarray(data.X, dtype=np.float64)
    if standardized:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X, data.y


# ------------------------------------------------------------------ tidy rows


def tidy(
    curves: Curves, metrics: Iterable[str], *, size: str, share_of: str | None = "samples"
) -> Rows:
    """Return a row per data set, method, amount and metric: mean, sd, n and failures.

    `share` is the amount in percent of the samples or (``share_of="pairs"``) of all pairs.
    `failures` counts draws without an answer, and `problems` says which kind.
    """
    n_samples = {row["data"]: row["n_samples"] for row in curves.rows}
    found = []
    for metric in metrics:
        for line in curves.summary(metric):
            n = n_samples[line["data"]]
            whole = n * (n - 1) / 2 if share_of == "pairs" else n
            failed = [r for r in curves.rows if r["status"] not in {"ok", "slow"}]
            place = (line["data"], line["method"], line["amount"])
            found.append(
                {
                    "size": size,
                    "data": line["data"],
                    "n_samples": n,
                    "method": line["method"],
                    "amount": line["amount"],
                    "share": round(100 * line["amount"] / whole, 4) if share_of else "",
                    "metric": metric,
                    "n_draws": line["n_draws"],
                    "n": line["n"],
                    "mean": line["mean"],
                    "sd": line["std"],
                    "failures": sum((r["data"], r["method"], r["amount"]) == place for r in failed),
                    "problems": line["problems"],
                    "seconds": line.get("seconds", ""),
                }
            )
    return found


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of equal columns; floats with six digits."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            shown = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
            writer.writerow(shown)


class Means:
    """The means of tidy rows, looked up by data set, method, amount and metric."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], metric: str):
        self.rows = [row for row in rows if row["metric"] == metric]
        self.metric = metric
        self._mean = {(r["data"], r["method"], r["amount"]): float(r["mean"]) for r in self.rows}

    @property
    def datasets(self) -> list[str]:
        """Return the names of the data sets, in the order of the rows."""
        return list(dict.fromkeys(row["data"] for row in self.rows))

    @property
    def methods(self) -> list[str]:
        """Return the names of the methods, in the order of the rows."""
        return list(dict.fromkeys(row["method"] for row in self.rows))

    def amounts(self, data: str) -> list[int]:
        """Return the amounts tried on a data set, in increasing order."""
        return sorted({row["amount"] for row in self.rows if row["data"] == data})

    def at(self, data: str, method: str, amount: int) -> float:
        """Return one mean; nan where there is none."""
        return self._mean.get((data, method, amount), np.nan)

    def curve(self, data: str, method: str, *, above: int = -1) -> Any:
        """Return the means of a method at all amounts above one, in increasing order."""
        return np.array([self.at(data, method, m) for m in self.amounts(data) if m > above])

    def level(self, data: str, method: str) -> float:
        """Return the mean over all amounts above 0: the height of a curve in one number."""
        curve = self.curve(data, method, above=0)
        return float(np.mean(curve)) if curve.size else np.nan

    def last(self, data: str, method: str) -> float:
        """Return the mean at the largest amount."""
        return float(self.curve(data, method)[-1])


# ------------------------------------------------------------------ verdicts


class Outcome(NamedTuple):
    """Whether a claim holds in one place, and the figures by which it does or does not."""

    holds: bool
    figures: str


class Claim(NamedTuple):
    """A claim of a paper.

    `judge` takes the tidy rows and returns an `Outcome` for each place. `note` is the reason that
    was looked for, shown where the claim does not hold everywhere.
    """

    text: str
    judge: Callable[[Rows], dict[str, Outcome]]
    note: str = ""


class Verdict(NamedTuple):
    """A line of the table of verdicts."""

    claim: str
    holds_on: int
    of: int
    numbers: str
    note: str = ""

    @property
    def verdict(self) -> str:
        """Return "holds" (everywhere), "partly" (in half of the places or more), or neither."""
        if self.of == 0:
            return "not tested"
        if self.holds_on == self.of:
            return "holds"
        return "partly" if 2 * self.holds_on >= self.of else "does not hold"


def judged(claims: Iterable[Claim], rows: Rows) -> list[Verdict]:
    """Return the verdict of each claim on tidy rows."""
    found = []
    for claim in claims:
        outcomes = claim.judge(rows)
        holds = sum(bool(outcome.holds) for outcome in outcomes.values())
        numbers = "; ".join(
            f"{place}{'' if o.holds else ' (no)'}: {o.figures}" for place, o in outcomes.items()
        )
        note = claim.note if holds < len(outcomes) else ""
        found.append(Verdict(claim.text, holds, len(outcomes), numbers, note))
    return found


def wins(
    means: Means,
    best: str,
    others: Sequence[str],
    *,
    slack: float = 0.0,
    beside: Sequence[str] = (),
) -> dict[str, Outcome]:
    """Judge, per data set, whether the level of one method is at least that of all the others.

    `slack` is how far it may be below. Methods that are not in the table are left out; those in
    `beside` are shown among the figures and do not count.
    """
    found = {}
    for data in means.datasets:
        levels = {m: means.level(data, m) for m in (best, *others) if m in means.methods}
        levels = {m: value for m, value in levels.items() if not np.isnan(value)}
        rivals = [value for m, value in levels.items() if m != best]
        holds = best in levels and all(levels[best] >= value - slack for value in rivals)
        levels |= {m: means.level(data, m) for m in beside}
        figures = ", ".join(f"{m} {value:.3f}" for m, value in levels.items())
        found[data] = Outcome(holds, figures)
    return found


VERDICT_COLUMNS = ("claim", "holds_on", "of", "verdict", "numbers", "note", "size", "machine")


def write_verdicts(path: Path, verdicts: Iterable[Verdict], *, size: str) -> None:
    """Write the table of verdicts; `size` is what was run, for example "reduced: 5 draws"."""
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    rows = [
        dict(
            zip(
                VERDICT_COLUMNS,
                (v.claim, v.holds_on, v.of, v.verdict, v.numbers, v.note, size, machine),
                strict=True,
            )
        )
        for v in verdicts
    ]
    write_csv(path, rows)
    for row in rows:
        print(f"[{row['verdict']}, {row['holds_on']} of {row['of']}] {row['claim']}")
        print(f"    {row['numbers']}")
    sys.stdout.flush()


# ------------------------------------------------------------------ pictures


def method_style(method: str) -> dict[str, Any]:
    """Return colour and marker of a method; a variant is named ``key:variant`` and is dashed."""
    key, _, variant = method.partition(":")
    colour, marker = METHOD_COLORS.get(key, ("#777777", "x"))
    return {"color": colour, "marker": marker, "linestyle": "--" if variant else "-"}


def paper_figure(
    rows: Rows,
    metric: str,
    *,
    labels: Mapping[str, str] | None = None,
    x: str = "amount",
    x_label: str = "number of constraints",
    y_label: str | None = None,
    title: str = "",
    columns: int = 3,
) -> Any:
    """Draw a panel per data set: means over the amounts, with bands of one standard error.

    `labels` are the names of the paper for the methods; `x` is "amount" or "share". An open marker
    stands for a mean over fewer draws than there were.
    """
    from matplotlib.figure import Figure

    chosen = [row for row in rows if row["metric"] == metric]
    names = list(dict.fromkeys(row["data"] for row in chosen))
    n_rows, n_columns = -(-len(names) // columns), min(len(names), columns)
    size = (3.9 * n_columns, 3.0 * n_rows + 0.8)
    figure = Figure(figsize=size, dpi=100, layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for ax, name in zip(axes, names, strict=False):
        _draw_panel(ax, [row for row in chosen if row["data"] == name], x, handles)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel(x_label, fontsize=9)
        ax.set_ylabel(y_label or metric.replace("_", " "), fontsize=9)
        ax.tick_params(labelsize=8)
        ax.grid(alpha=0.25, linewidth=0.6)
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    shown = [(labels or {}).get(method, method) for method in handles]
    figure.legend(
        handles.values(), shown, loc="outside lower center", ncols=6, frameon=False, fontsize=9
    )
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _draw_panel(ax: Any, rows: Rows, x: str, handles: dict[str, Any]) -> None:
    for method in dict.fromkeys(row["method"] for row in rows):
        curve = sorted((r for r in rows if r["method"] == method), key=lambda r: r["amount"])
        style = method_style(method)
        at = np.array([row[x] for row in curve], dtype=float)
        mean = np.array([row["mean"] for row in curve], dtype=float)
        n = np.array([row["n"] for row in curve], dtype=float)
        half = np.array([row["sd"] for row in curve], dtype=float) / np.sqrt(np.maximum(n, 1))
        few = np.array([row["n"] < row["n_draws"] for row in curve])
        (line,) = ax.plot(at, mean, markersize=4, linewidth=1.3, **style)
        ax.plot(at[few], mean[few], **style | {"linestyle": "", "markerfacecolor": "white"})
        ax.fill_between(at, mean - half, mean + half, color=style["color"], alpha=0.15, linewidth=0)
        handles.setdefault(method, line)


def save_figure(figure: Any, path: Path) -> None:
    """Save a picture, at most 1200 pixels wide."""
    width = figure.get_size_inches()[0]
    figure.savefig(path, dpi=min(120, int(1190 / width)), metadata={"Software": None})


def finish(
    given: argparse.Namespace,
    name: str,
    rows: Rows,
    claims: Iterable[Claim],
    figures: Mapping[str, Any],
    *,
    what: str,
) -> list[Verdict]:
    """Write table, pictures and verdicts. Pictures by suffix: "" is ``NAME.png``."""
    size = f"{given.size}: {what}"
    print(f"{name}, {size}")
    write_csv(given.out / f"{name}.csv", rows)
    for suffix, figure in figures.items():
        save_figure(figure, given.out / f"{name}{suffix and '_'}{suffix}.png")
    verdicts = judged(claims, rows)
    write_verdicts(given.out / f"{name}.verdicts.csv", verdicts, size=size)
    return verdicts
