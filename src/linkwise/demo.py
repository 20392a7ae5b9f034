"""The main job on built-in data: cluster without and with a little knowledge.

Run it with ``python -m linkwise.demo [folder]``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple

from linkwise import Constraints, NCut, SignedCSC
from linkwise.datasets import make_xor
from linkwise.metrics import adjusted_rand, violated_count

N_PAIRS = 8


class Row(NamedTuple):
    """One line of the table."""

    method: str
    n_used: int
    n_violated: int
    ari: float
    seconds: float


def main(folder: str = "demo-output") -> None:
    """Cluster the XOR data twice, print a table and write a picture to `folder`."""
    X, y = make_xor(100, spread=0.4, random_state=0)
    known = Constraints.sample(y, N_PAIRS, random_state=0)
    print(f"{len(y)} points in four corners; opposite corners belong together.")
    print(
        f"Known: {len(known.must_link)} must-link and {len(known.cannot_link)} cannot-link pairs.\n"
    )
    SignedCSC(2).fit(X, constraints=known)  # compiles what is compiled before the clock starts
    rows, clusterings = [], {}
    for model, used in ((NCut(2, random_state=0), None), (SignedCSC(2, random_state=0), known)):
        started = time.perf_counter()
        labels = model.fit_predict(X, constraints=used)
        seconds = time.perf_counter() - started
        rows.append(
            Row(
                type(model).__name__,
                0 if used is None else used.n_pairs,
                violated_count(known, labels).total,
                round(adjusted_rand(y, labels), 2) + 0.0,  # never "-0.00"
                seconds,
            )
        )
        title = "without constraints" if used is None else f"with {used.n_pairs} constraints"
        clusterings[f"{rows[-1].method}, {title}: ARI {rows[-1].ari:.2f}"] = labels
    print_table(rows)
    write_picture(X, clusterings, known, folder=Path(folder))


def print_table(rows: list[Row]) -> None:
    """Print what was used, what was violated, and how good the answer is."""
    print(f"{'method':<12}{'constraints':>12}{'violated':>10}{'ARI':>8}{'seconds':>9}")
    for row in rows:
        print(
            f"{row.method:<12}{row.n_used:>12}{row.n_violated:>10}"
            f"{row.ari:>8.2f}{row.seconds:>9.2f}"
        )


def write_picture(X, clusterings, known, *, folder: Path) -> None:  # type: ignore[no-untyped-def]
    """Write the picture of before and after, or print what is missing for it."""
    from linkwise.plots import draw_side_by_side  # noqa: PLC0415

    try:
        figure = draw_side_by_side(X, clusterings, constraints=known)
    except ImportError as error:
        print(f"\nNo picture: {error}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "before-after.png"
    figure.savefig(path)
    print(f"\nWrote {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
