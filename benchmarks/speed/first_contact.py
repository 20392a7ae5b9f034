"""First contact: CPU seconds of an import, of the first and the second fit, of a failing command.

Every figure comes from a process of its own. The first fit begins with an empty cache of compiled
kernels, and with modules compiled to bytecode, as installing them does. ``--before FOLDER``
measures other sources as well (the folder that holds ``linkwise``), in turn with these: their ratio
does not depend on what else the machine does.

    python benchmarks/speed/first_contact.py --before ../old/src
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
CLOCK = "import time; t = time.process_time()\n"
STOP = "\nprint(time.process_time() - t)"
README = """
from sklearn.datasets import load_iris
from linkwise import Auto, Constraints

X, y = load_iris(return_X_y=True)
known = Constraints(
    len(X),
    must_link=[(60, 70), (110, 140)],
    cannot_link=[(70, 120), (55, 110), (60, 101)],
)
fit = lambda: Auto(n_clusters=3, random_state=0).fit(X, constraints=known)
"""
PAIRS = README.replace("fit = ", "known = Constraints.sample(y, 60, random_state=0)\nfit = ")
LABELS = README.replace(
    "fit = ",
    """
import numpy as np
partial, some = np.full(150, -1), np.random.RandomState(0).permutation(150)[:60]
partial[some] = y[some]
known = Constraints.from_labels(partial)
fit = """,
)
FAILING = """
import contextlib, io
from linkwise.cli import main
with contextlib.redirect_stderr(io.StringIO()):
    assert main(["cluster", "no-such-file.csv", "-k", "3"]) == 2
"""
IMPORTS = {
    "import sklearn.cluster": f"{CLOCK}import sklearn.cluster{STOP}",
    "import Auto": f"{CLOCK}from linkwise import Auto{STOP}",
    "import E2CP": f"{CLOCK}from linkwise import E2CP{STOP}",
}
MEASURED = {
    **IMPORTS,
    "first fit, nothing compiled": f"{README}{CLOCK}fit(){STOP}",
    "second fit": f"{README}fit()\n{CLOCK}fit(){STOP}",
    "first fit of the next process": f"{README}{CLOCK}fit(){STOP}",
    "first fit with 60 pairs, nothing compiled": f"{PAIRS}{CLOCK}fit(){STOP}",
    "second fit with 60 pairs": f"{PAIRS}fit()\n{CLOCK}fit(){STOP}",
    "first fit with 60 labels, nothing compiled": f"{LABELS}{CLOCK}fit(){STOP}",
    "second fit with 60 labels": f"{LABELS}fit()\n{CLOCK}fit(){STOP}",
    "command with a wrong path": f"{CLOCK}{FAILING}{STOP}",
}


def seconds(code: str, sources: Path, cache: str) -> float:
    environment = {
        **os.environ,
        "PYTHONPATH": str(sources),
        "NUMBA_CACHE_DIR": cache,
        "PYTHONPYCACHEPREFIX": f"{cache} of modules",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def measure(trees: dict[str, Path], repeats: int) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            for code in IMPORTS.values():  # writes the bytecode
                for name, sources in trees.items():
                    seconds(code, sources, f"{folder}/{name}")
            for what, code in MEASURED.items():
                for name, sources in trees.items():
                    cache = f"{folder}/{name}"  # filled by the first fit
                    if "nothing compiled" in what:
                        shutil.rmtree(cache, ignore_errors=True)
                    found.setdefault((what, name), []).append(seconds(code, sources, cache))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="other sources to compare with")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    trees = {"before": asked.before.resolve()} if asked.before else {}
    trees["after"] = SOURCES.resolve()
    found = measure(trees, asked.repeats)
    print(f"| CPU seconds, median of {asked.repeats} | {' | '.join(trees)} |")
    print(f"|---|{'--:|' * len(trees)}")
    for what in MEASURED:
        cells = [f"{statistics.median(found[what, name]):.2f}" for name in trees]
        print(f"| {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
