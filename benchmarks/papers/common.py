"""What the papers' experiments share: arguments, data, tidy tables, pictures and verdicts.

Each figure or table of a paper is one file here, with these names:

``NAME``
    of the files that are written: ``out/NAME.csv`` (tidy rows), ``NAME.png`` or ``NAME_*.png``,
    ``NAME.run.json`` (what was run), ``NAME.costs.csv`` (times and memory, if it has any), and
    ``NAME.reduced.jsonl`` or ``NAME.full.jsonl`` (every single fit).
``PAPER``, ``TITLE``
    of the section and of the picture on the page that `make_page.py` writes.
``CLAIMS``
    a tuple of `Claim`: a claim of the paper, in our words, the rule by which it is judged, and a
    function that reads the tidy rows and returns for each place (mostly a data set) whether it
    holds, and the figures.
``methods()``
    what was run: names and estimators. A plain key (``signed``) is the method to the letter of its
    paper. ``signed:default`` is the method that the paper proposes with the defaults of linkwise.
    Any other variant is shown and does not count, such as ``csp:ours``, a competitor with those
    defaults.
``main(argv=None)``
    runs it, at the paper's own size with ``--full``.

A verdict is computed from the table as it was written, never typed in: `judged`. Each claim is
judged twice by the same function: on the letter, and with our default of the proposed method in
the place of its letter (`by_default`), against the same competitors. The note of a claim is the
reason that was looked for, and is shown where the claim does not hold.

The tables in ``results`` are those of the page. They are committed, and nothing else is read when
the page is written: `make_page.py`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import resource
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
    "RESULTS",
    "Claim",
    "Means",
    "Outcome",
    "Verdict",
    "all_ours",
    "by_default",
    "data_home",
    "finish",
    "judged",
    "levels",
    "load_data",
    "method_style",
    "options",
    "paper_figure",
    "parsed",
    "pinned",
    "raw_path",
    "read_rows",
    "save_figure",
    "shown",
    "tidy",
    "tidy_row",
    "wins",
    "write_csv",
]

HERE = Path(__file__).parent
OUT = HERE / "out"
RESULTS = HERE / "results"
DEFAULT = ":default"  # the method that a paper proposes, with the defaults of linkwise
OURS = ":ours"  # a competitor with the defaults of linkwise
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
                }
            )
    return found


def tidy_row(
    place: tuple[str, str, int, str], values: Sequence[float], *, size: str, n_samples: int
) -> Row:
    """Return the tidy row of a data set, method, amount and metric from one value for each draw."""
    data, method, amount, metric = place
    known = np.asarray(values, dtype=float)
    return {
        "size": size,
        "data": data,
        "n_samples": n_samples,
        "method": method,
        "amount": amount,
        "share": round(100 * amount / n_samples, 4),
        "metric": metric,
        "n_draws": known.size,
        "n": known.size,
        "mean": float(known.mean()),
        "sd": float(known.std(ddof=1)) if known.size > 1 else np.nan,
        "failures": 0,
        "problems": "",
    }


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of equal columns; floats with six digits."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            text = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
            writer.writerow(text)


COUNTS = ("n_samples", "amount", "n_draws", "n", "failures")


def read_rows(path: Path) -> Rows:
    """Return tidy rows as `write_csv` wrote them."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows: Rows = [dict(row) for row in csv.DictReader(file)]
    for row in rows:
        row.update({name: int(row[name]) for name in COUNTS})
        row.update({name: float(row[name]) for name in ("mean", "sd")})
        row["share"] = float(row["share"]) if row["share"] else ""
    return rows


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

    `judge` takes the tidy rows and returns an `Outcome` for each place. `rule` says in words what
    `judge` looks at, with its tolerances. `note` is the reason that was looked for, shown where the
    claim does not hold everywhere. A `headline` is one of the few that the paper is known for.
    """

    text: str
    judge: Callable[[Rows], dict[str, Outcome]]
    note: str = ""
    rule: str = ""
    headline: bool = False


class Tally(NamedTuple):
    """In how many places a claim holds, and the figures of all of them."""

    holds_on: int
    of: int
    numbers: str

    @property
    def verdict(self) -> str:
        """Return "holds" (everywhere), "partly" (in half of the places or more), or neither."""
        if self.of == 0:
            return "not tested"
        if self.holds_on == self.of:
            return "holds"
        return "partly" if 2 * self.holds_on >= self.of else "does not hold"

    def __str__(self) -> str:
        return f"{self.verdict} ({self.holds_on} of {self.of})" if self.of else self.verdict


class Verdict(NamedTuple):
    """A claim with its tally by the letter, and by our default of the proposed method."""

    claim: Claim
    letter: Tally
    default: Tally

    @property
    def is_same(self) -> bool:
        """Say whether our default has the figures of the letter."""
        return self.letter == self.default

    @property
    def note(self) -> str:
        """Return the reason that was looked for, if there is something to explain."""
        fails = any(tally.holds_on < tally.of for tally in (self.letter, self.default))
        return self.claim.note if fails else ""


def by_default(rows: Rows, *, variant: str = DEFAULT) -> Rows:
    """Return the rows with those of a variant in the place of the letters, where it was run."""
    measured = {_place(row) for row in rows}
    kept = [row for row in rows if _place(row, variant) not in measured]
    return [row | {"method": row["method"].removesuffix(variant)} for row in kept]


def _place(row: Row, variant: str = "") -> tuple[Any, ...]:
    return row["data"], row["method"] + variant, row["amount"], row["metric"]


def all_ours(rows: Rows) -> Rows:
    """Return the rows with our defaults of all methods in the place of the letters."""
    return by_default(by_default(rows), variant=OURS)


def tallied(outcomes: Mapping[str, Outcome]) -> Tally:
    """Count the places where a claim holds; mark the others."""
    holds = sum(bool(outcome.holds) for outcome in outcomes.values())
    numbers = "; ".join(
        f"{place}{'' if o.holds else ' (no)'}: {o.figures}" for place, o in outcomes.items()
    )
    return Tally(holds, len(outcomes), numbers)


def judged(claims: Iterable[Claim], rows: Rows) -> list[Verdict]:
    """Return the verdict of each claim on tidy rows."""
    defaults = by_default(rows)
    return [
        Verdict(claim, tallied(claim.judge(rows)), tallied(claim.judge(defaults)))
        for claim in claims
    ]


def shown(values: Mapping[str, float], style: str = ".3f") -> str:
    """Return named values as a text."""
    return ", ".join(f"{name} {value:{style}}" for name, value in values.items())


def levels(means: Means, data: str, methods: Iterable[str]) -> dict[str, float]:
    """Return the levels of the methods that have one on a data set."""
    found = {m: means.level(data, m) for m in methods if m in means.methods}
    return {m: value for m, value in found.items() if not np.isnan(value)}


def wins(
    means: Means, best: str, others: Sequence[str], *, slack: float = 0.0
) -> dict[str, Outcome]:
    """Judge, per data set, whether the level of one method is at least that of all the others.

    `slack` is how far it may be below. Methods that are not in the table, and those without an
    answer at some amount, are left out.
    """
    found = {}
    for data in means.datasets:
        level = levels(means, data, (best, *others))
        rivals = [value for m, value in level.items() if m != best]
        holds = best in level and all(level[best] >= value - slack for value in rivals)
        found[data] = Outcome(holds, shown(level))
    return found


# ------------------------------------------------------------------ pictures


def method_style(method: str) -> dict[str, Any]:
    """Return colour and marker of a method; dashed is the default, dotted a variant."""
    key, _, variant = method.partition(":")
    colour, marker = METHOD_COLORS.get(key, ("#777777", "x"))
    styles = {"": "-", "default": "--"}
    return {"color": colour, "marker": marker, "linestyle": styles.get(variant, ":")}


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
    names = [(labels or {}).get(method, method) for method in handles]
    figure.legend(
        handles.values(), names, loc="outside lower center", ncols=6, frameon=False, fontsize=9
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
    costs: Rows | None = None,
) -> list[Verdict]:
    """Write tables and pictures, print the verdicts. Pictures by suffix: "" is ``NAME.png``."""
    size = f"{given.size}: {what}"
    print(f"{name}, {size}")
    table = given.out / f"{name}.csv"
    write_csv(table, rows)
    if costs:
        write_csv(given.out / f"{name}.costs.csv", costs)
    write_run(given.out / f"{name}.run.json", size=size, fits=raw_path(given, name))
    for suffix, figure in figures.items():
        save_figure(figure, given.out / f"{name}{suffix and '_'}{suffix}.png")
    # From the file: what it says is what the page will say.
    verdicts = judged(claims, read_rows(table))
    for verdict in verdicts:
        print(f"[{verdict.letter} by the letter, {verdict.default} by default]", verdict.claim.text)
    sys.stdout.flush()
    return verdicts


def write_run(path: Path, *, size: str, fits: Path) -> None:
    """Write what was run, on what, and the CPU seconds.

    They are those of this process and its children, or of all fits if that is more: some may have
    been done in an earlier run, or in processes that go on.
    """
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    here = sum(u.ru_utime + u.ru_stime for u in used)
    run = {
        "size": size,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu_seconds": round(max(here, fitted_seconds(fits))),
    }
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def fitted_seconds(path: Path) -> float:
    """Return the CPU seconds of all fits in a file of `learning_curve` or of `cosc_large.py`."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = [row[-1] if isinstance(row, list) else row for row in map(json.loads, lines)]
    return float(np.nansum([row.get("cpu_seconds", 0.0) for row in found]))
