"""The main job on built-in data: cluster without and with a little knowledge.

Run it with ``python -m linkwise.demo [folder]``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise import Auto, Constraints, NCut, SignedCSC
from linkwise.datasets import make_customers, make_xor
from linkwise.metrics import adjusted_rand, violated_count

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Ints

N_CUSTOMER_PAIRS = 30
N_CORNER_PAIRS = 8


class Row(NamedTuple):
    """One line of a table: a model, and how well it did."""

    model: Any
    n_used: int
    n_violated: int
    ari: float
    seconds: float

    @property
    def title(self) -> str:
        """What stands over its picture."""
        used = f"with {self.n_used} constraints" if self.n_used else "without constraints"
        return f"{type(self.model).__name__}, {used}: ARI {self.ari:.2f}"


def main(folder: str = "demo-output") -> None:
    """Cluster customers and corners; print tables, and write a report and pictures to `folder`."""
    place = Path(folder)
    customers(place)
    corners(place)


# Customers ---------------------------------------------------------------------------------


def customers(folder: Path) -> None:
    """Find segments of customers, without and with pairs; leave the report."""
    table, y = make_customers(400, random_state=0)
    known = Constraints.sample(y, N_CUSTOMER_PAIRS, random_state=0)
    print(f"{len(y)} customers in three segments; two generations are easier to see.")
    _print_known(known)
    X = as_numbers(table)
    rows = [
        fit(Auto(3, scaling="given", random_state=0), (X, y), known, used=used)
        for used in (False, True)
    ]
    print_table(rows)
    ids = [f"customer {number}" for number in range(1, len(y) + 1)]
    model = rows[-1].model
    content = {"labels": model.labels_, "X": X, "result": model, "constraints": known, "ids": ids}
    text = {"title": "Customers", "command": "python -m linkwise.demo"}
    write_html(folder / "customers.html", feature_values=table, truth=y, **content, **text)
    spending = np.log10(np.column_stack((table["visits"], table["basket"])))
    write_picture(spending, rows, known, path=folder / "customers.png")


def as_numbers(table: dict[str, AnyArray]) -> Floats:
    """Return numbers on one scale, and one column of 0 and 1 for each category.

    Dates are left out. `linkwise cluster` prepares tables in the same way.
    """
    columns = []
    for values in table.values():
        if values.dtype.kind == "f":
            columns.append(((values - values.mean()) / values.std())[:, None])
        elif values.dtype.kind == "U":
            columns.append((values[:, None] == np.unique(values)).astype(np.float64))
    return np.concatenate(columns, axis=1)


# Corners -----------------------------------------------------------------------------------


def corners(folder: Path) -> None:
    """Cluster the XOR data by published methods, without and with pairs."""
    X, y = make_xor(100, spread=0.4, random_state=0)
    known = Constraints.sample(y, N_CORNER_PAIRS, random_state=0)
    print(f"\n{len(y)} points in four corners; opposite corners belong together.")
    _print_known(known)
    SignedCSC(2).fit(X, constraints=known)  # compiles what is compiled before the clock starts
    models = {NCut(2, random_state=0): False, SignedCSC(2, random_state=0): True}
    rows = [fit(model, (X, y), known, used=used) for model, used in models.items()]
    print_table(rows)
    write_picture(X, rows, known, path=folder / "before-after.png")


# Both --------------------------------------------------------------------------------------


def fit(model: Any, data: tuple[Floats, Ints], known: Constraints, *, used: bool) -> Row:
    """Fit a model with the constraints, or without them."""
    X, y = data
    started = time.perf_counter()
    model.fit(X, constraints=known if used else None)
    seconds = time.perf_counter() - started
    ari = round(adjusted_rand(y, model.labels_), 2) + 0.0  # never "-0.00"
    n_violated = violated_count(known, model.labels_).total
    return Row(model, known.n_pairs if used else 0, n_violated, ari, seconds)


def _print_known(known: Constraints) -> None:
    must, cannot = len(known.must_link), len(known.cannot_link)
    print(f"Known: {must} must-link and {cannot} cannot-link pairs.\n")


def print_table(rows: list[Row]) -> None:
    """Print what was used, what was violated, and how good the answer is."""
    print(f"{'method':<12}{'constraints':>12}{'violated':>10}{'ARI':>8}{'seconds':>9}")
    for row in rows:
        print(
            f"{type(row.model).__name__:<12}{row.n_used:>12}{row.n_violated:>10}"
            f"{row.ari:>8.2f}{row.seconds:>9.2f}"
        )
    print()


def write_html(path: Path, **content: Any) -> None:
    """Write the report, or print what is missing for it."""
    from linkwise.report import write_report  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_report(path, random_state=0, **content)
    except ImportError as error:
        print(f"No report: {error}")
        return
    print(f"Wrote {path}: open it in a browser")


def write_picture(X: Floats, rows: list[Row], known: Constraints, *, path: Path) -> None:
    """Write the picture of before and after, or print what is missing for it."""
    from linkwise.plots import draw_side_by_side  # noqa: PLC0415

    clusterings = {row.title: row.model.labels_ for row in rows}
    try:
        figure = draw_side_by_side(X, clusterings, constraints=known)
    except ImportError as error:
        print(f"No picture: {error}")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    print(f"Wrote {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
