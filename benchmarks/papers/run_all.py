"""Run the papers' experiments one after the other, each in its own process.

Run: python benchmarks/papers/run_all.py [--full] [--jobs 2] [--only wacquet] [--page]

A failure is reported and the next one starts. Ends with a table of times, and says which tables
differ from those of the page, in ``results``. What an experiment has computed is kept in ``out``: a
second run does only what is missing, unless ``--fresh`` is given. ``--page`` then copies the tables
to ``results`` and writes ``docs/papers.md``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import HERE, RESULTS, options

# In the order of the page; what is not listed comes after, by name.
ORDER = ("wacquet", "xu", "wang", "srcp", "cosc")
ONLY_TIMES = {"srcp_time"}  # all that they measure differs from run to run
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


def run(paths, given):
    """Run the experiments; return a row for each: name, status, seconds, CPU seconds."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    rows = []
    for path in paths:
        print(f"--- {path.stem}", flush=True)
        start = time.perf_counter()
        code = subprocess.run(command(path, given), env=environment, check=False).returncode
        seconds = time.perf_counter() - start
        cpu = cpu_seconds(given.out / f"{path.stem}.run.json") if code == 0 else 0
        rows.append((path.stem, "done" if code == 0 else f"FAILED ({code})", seconds, cpu))
    return rows


def cpu_seconds(path):
    """Return what an experiment says that it took; 0 if it says nothing."""
    return json.loads(path.read_text(encoding="utf-8"))["cpu_seconds"] if path.is_file() else 0


def compared(name, out, results):
    """Say how a table differs from that of the page."""
    new, old = (folder / f"{name}.csv" for folder in (out, results))
    if not (new.is_file() and old.is_file()):
        return "nothing to compare"
    lines, known = (path.read_text(encoding="utf-8").splitlines() for path in (new, old))
    other = [line for line in lines if line not in set(known)]
    gone = len(known) - (len(lines) - len(other))
    return f"{len(other)} of {len(lines)} lines differ" if other or gone else "every digit the same"


def report(rows, given):
    """Print times, and how the tables compare with those of the page."""
    print(f"\n{'experiment':<18}{'status':<13}{'seconds':>8}{'CPU s':>8}  beside the page")
    for name, status, seconds, cpu in rows:
        beside = "times" if name in ONLY_TIMES else compared(name, given.out, RESULTS)
        print(f"{name:<18}{status:<13}{seconds:>8.0f}{cpu:>8}  {beside}")
    print(f"{'all':<31}{sum(row[2] for row in rows):>8.0f}{sum(row[3] for row in rows):>8}")


def accept(names, out):
    """Copy the tables of a run to those of the page."""
    RESULTS.mkdir(exist_ok=True)
    for name in names:
        for path in (out / f"{name}{end}" for end in (".csv", ".costs.csv", ".run.json")):
            if path.is_file():
                shutil.copy(path, RESULTS / path.name)


def main(argv=None):
    parser = options(__doc__)
    parser.add_argument("--only", default="", help="experiments whose name contains this")
    parser.add_argument(
        "--page", action="store_true", help="then copy the tables and write docs/papers.md"
    )
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    rows = run([path for path in experiments() if given.only in path.stem], given)
    report(rows, given)
    if given.page:
        from make_page import main as make_page

        accept([name for name, status, *_ in rows if status == "done"], given.out)
        make_page(["--out", str(given.out)])
    return int(any(row[1] != "done" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
