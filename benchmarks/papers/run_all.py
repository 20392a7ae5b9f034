"""Run the papers' experiments one after the other, each in its own process.

Run: python benchmarks/papers/run_all.py [--full] [--jobs 2] [--only wacquet] [--page]

A failure is reported and the next one starts. Ends with a table of times and verdicts. What an
experiment has computed is kept in ``out``: a second run does only what is missing, unless
``--fresh`` is given. ``--page`` then writes ``docs/papers.md``.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import HERE, options

# In the order of the page; what is not listed comes after, by name.
ORDER = ("wacquet", "xu", "wang", "srcp", "cosc")
HELPERS = {"common", "run_all", "make_page"}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def experiments(folder=HERE):
    """Return the files of the experiments, paper by paper."""

    def place(path):
        paper = path.stem.partition("_")[0]
        return (ORDER.index(paper) if paper in ORDER else len(ORDER), path.stem)

    return sorted((p for p in Path(folder).glob("*.py") if p.stem not in HELPERS), key=place)


def command(path, given):
    """Return the call of one experiment, with the arguments of this run."""
    call = [sys.executable, str(path), "--jobs", str(given.jobs), "--out", str(given.out)]
    return call + [f"--{name}" for name in ("full", "fresh") if getattr(given, name)]


def counted(path):
    """Return the numbers of verdicts in a file; nothing if it is not there."""
    if not path.is_file():
        return Counter()
    with path.open(newline="", encoding="utf-8") as file:
        return Counter(row["verdict"] for row in csv.DictReader(file))


def run(paths, given):
    """Run the experiments; return a row for each: name, status, seconds, verdicts."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    rows = []
    for path in paths:
        print(f"--- {path.stem}", flush=True)
        start = time.perf_counter()
        code = subprocess.run(command(path, given), env=environment, check=False).returncode
        seconds = time.perf_counter() - start
        verdicts = counted(given.out / f"{path.stem}.verdicts.csv") if code == 0 else Counter()
        rows.append((path.stem, "done" if code == 0 else f"FAILED ({code})", seconds, verdicts))
    return rows


def report(rows):
    kinds = ("holds", "partly", "does not hold", "not tested")
    print(f"\n{'experiment':<18}{'status':<13}{'seconds':>8}" + "".join(f"{k:>15}" for k in kinds))
    for name, status, seconds, verdicts in rows:
        counts = "".join(f"{verdicts[kind]:>15}" for kind in kinds)
        print(f"{name:<18}{status:<13}{seconds:>8.0f}{counts}")
    total = sum((row[3] for row in rows), Counter())
    print(
        f"{'all':<31}{sum(row[2] for row in rows):>8.0f}"
        + "".join(f"{total[kind]:>15}" for kind in kinds)
    )


def main(argv=None):
    parser = options(__doc__)
    parser.add_argument("--only", default="", help="experiments whose name contains this")
    parser.add_argument("--page", action="store_true", help="write docs/papers.md afterwards")
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    rows = run([path for path in experiments() if given.only in path.stem], given)
    report(rows)
    if given.page:
        from make_page import main as make_page

        make_page(["--out", str(given.out)])
    return int(any(row[1] != "done" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
