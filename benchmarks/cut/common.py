"""What the benchmarks of the constrained cut share: arguments, the clock, compiling, tables."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from pathlib import Path

import numba
import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from linkwise import Constraints
from linkwise.methods.cut import constrained_cut, constrained_kmeans

SHARED = Path(__file__).parents[3] / "shared"


def parser(description: str) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=description.splitlines()[0])
    found.add_argument("--csv", type=Path, help="write the rows to this file as well")
    return found


def with_shared(options: argparse.ArgumentParser) -> argparse.ArgumentParser:
    options.add_argument("--shared", type=Path, default=SHARED, help="folder of the reference data")
    return options


def require_folder(shared: Path, name: str) -> Path:
    """Return a folder of the reference data, or stop with a sentence."""
    folder = shared / name
    if not folder.is_dir():
        sys.exit(f"There is no {folder}. Give the folder of the reference data with --shared.")
    return folder


def pin() -> None:
    """Compute on one thread from here on."""
    threadpool_limits(1)
    numba.set_num_threads(1)


def timed(call):
    """Return the answer of a call, and the CPU seconds of this thread."""
    start = time.thread_time()
    answer = call()
    return answer, time.thread_time() - start


def compile_kernels(*, soft: bool = False, means: bool = False) -> None:
    """Run each kind of search once on a toy, so that no clock sees the compiler."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(300, 2))
    A = csr_array((rng.uniform(size=(300, 300)) < 0.03).astype(float))
    W = csr_array(A + A.T)
    W.setdiag(0)
    W.eliminate_zeros()
    y = rng.randint(3, size=300)
    for k in (2, 3):
        # With 600 pairs and three clusters some cannot-links do not peel away.
        known = Constraints.sample(y % k, 600 if k == 3 else 60, random_state=0)
        for mode in ("hard", "soft") if soft else ("hard",):
            constrained_cut(W, known, k, constraints_mode=mode, effort="fast", random_state=0)
            if means:
                constrained_kmeans(X, known, k, constraints_mode=mode, random_state=0)


def show(title: str, header: list[str], rows: list[list[object]], path: Path | None = None) -> None:
    """Print a Markdown table; write the rows to a file if there is one."""
    print(f"\n## {title}\n\nLoad {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    sys.stdout.flush()
    if path is not None:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
