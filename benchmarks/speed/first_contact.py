"""First contact: CPU seconds of an import, of the first and the second fit, of a failing command.

Every figure comes from a process of its own. The first fit begins with an empty cache of compiled
kernels, and with modules compiled to bytecode, as installing them does. The best of several runs is
told: what else a machine does only adds. ``--before FOLDER`` measures other sources once as well
(the folder that holds ``linkwise``), in turn with these.

    python benchmarks/speed/first_contact.py --before ../old/src
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
CLOCK = "import time; t = time.process_time()\n"
STOP = "\nprint(time.process_time() - t)"
EXAMPLE = (Path(__file__).parents[2] / "README.md").read_text().split("```python\n")[1]
SETUP, _, CALL = EXAMPLE.partition("model = ")
README = f"{SETUP}\nfit = lambda: {CALL.splitlines()[0]}\n"
IRIS = """
from sklearn.datasets import load_iris
from linkwise import Auto, Constraints

X, y = load_iris(return_X_y=True)
fit = lambda: Auto(n_clusters=3, random_state=0).fit(X, constraints=known)
"""
PAIRS = IRIS.replace("fit = ", "known = Constraints.sample(y, 60, random_state=0)\nfit = ")
MANY = PAIRS.replace("60", "120")
LABELS = IRIS.replace(
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
    "first fit of README's example, nothing compiled": f"{README}{CLOCK}fit(){STOP}",
    "second fit": f"{README}fit()\n{CLOCK}fit(){STOP}",
    "first fit of the next process": f"{README}{CLOCK}fit(){STOP}",
    "first fit of iris with 60 pairs, nothing compiled": f"{PAIRS}{CLOCK}fit(){STOP}",
    "second fit with 60 pairs": f"{PAIRS}fit()\n{CLOCK}fit(){STOP}",
    "first fit with 120 pairs, nothing compiled": f"{MANY}{CLOCK}fit(){STOP}",
    "second fit with 120 pairs": f"{MANY}fit()\n{CLOCK}fit(){STOP}",
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
    for number in range(repeats):
        if number == 1:
            trees = {"after": trees["after"]}
        with tempfile.TemporaryDirectory() as folder:
            for code in IMPORTS.values():  # writes the bytecode
                for name, sources in trees.items():
                    seconds(code, sources, f"{folder}/{name}")
            for what, code in MEASURED.items():
                for name, sources in trees.items():
                    cache = f"{folder}/{name}"  # filled by the first fit
                    if "nothing compiled" in what:
                        shutil.rmtree(cache, ignore_errors=True)
                    taken = seconds(code, sources, cache)
                    found.setdefault((what, name), []).append(taken)
                    print(f"{what}, {name}: {taken:.2f}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="other sources to compare with")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    trees = {"before": asked.before.resolve()} if asked.before else {}
    trees["after"] = SOURCES.resolve()
    found = measure(trees, asked.repeats)
    print(f"| CPU seconds, best of {asked.repeats} | {' | '.join(trees)} |")
    print(f"|---|{'--:|' * len(trees)}")
    for what in MEASURED:
        cells = [f"{min(found[what, name]):.2f}" for name in trees]
        print(f"| {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
