"""The command against the same fit in Python: seconds and peak memory of whole processes.

100,000 rows of 20 numbers with ids as CSV, 1,000 pairs, `SpectralLearning`. Python reads the table
with pandas, standardises, reads the pairs and fits; the command also writes the clusters and, in
the last row, a report. Both include starting Python. Ratios within one run count.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))
from harness import report
from sklearn.datasets import make_blobs

from linkwise import Constraints
from linkwise.metrics import adjusted_rand

N_CLUSTERS = 8
PYTHON = f"""
import pandas as pd
from sklearn.preprocessing import StandardScaler
from linkwise import Constraints, SpectralLearning
frame = pd.read_csv("data.csv", dtype={{"id": str}})
X = StandardScaler().fit_transform(frame.drop(columns="id").to_numpy())
known = Constraints.from_csv("pairs.csv", ids=frame["id"].tolist())
labels = SpectralLearning({N_CLUSTERS}, random_state=0).fit_predict(X, constraints=known)
pd.DataFrame({{"id": frame["id"], "cluster": labels}}).to_csv("python.csv", index=False)
"""


def measured(arguments, folder):
    """Run a process; return its wall seconds, CPU seconds and peak memory in MB."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    before = os.times()
    process = subprocess.Popen(arguments, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"{arguments} ended with {process.returncode}"
        raise RuntimeError(message)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return os.times().elapsed - before.elapsed, used.ru_utime + used.ru_stime, used.ru_maxrss / unit


def write_data(folder, n_samples):
    X, y = make_blobs(n_samples, 20, centers=N_CLUSTERS, cluster_std=4.0, random_state=0)
    names = [f"row{k}" for k in range(n_samples)]
    header = ",".join(["id", *(f"x{k}" for k in range(X.shape[1]))])
    rows = (
        f"{name}," + ",".join(map(repr, row)) for name, row in zip(names, X.tolist(), strict=True)
    )
    (folder / "data.csv").write_text("\n".join([header, *rows]) + "\n")
    Constraints.sample(y, 1_000, random_state=0).to_csv(folder / "pairs.csv", ids=names)
    return y


def clusters(path):
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=1, dtype=int)


def main(n_samples, repeats):
    command = [sys.executable, "-m", "linkwise", "cluster", "data.csv", "-k", str(N_CLUSTERS)]
    command += ["--method", "sl", "-c", "pairs.csv", "-o", "command.csv", "--quiet"]
    runs = {
        "Python": [sys.executable, "-c", PYTHON],
        "linkwise cluster": command,
        "linkwise cluster --report": [*command, "--report", "report.html"],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        y = write_data(folder, n_samples)
        measured(runs["linkwise cluster"], folder)  # compiles what is compiled
        best = {
            what: min(measured(run, folder) for _ in range(repeats)) for what, run in runs.items()
        }
        found, expected = clusters(folder / "command.csv"), clusters(folder / "python.csv")
        quality = f"{adjusted_rand(y, found):.3f}"
        agreement = f"{adjusted_rand(expected, found):.3f}"
    base = best["Python"]
    rows = [
        (
            what,
            f"{wall:.1f}",
            f"{cpu:.1f}",
            f"{wall / base[0]:.2f}",
            f"{cpu / base[1]:.2f}",
            f"{memory:.0f}",
            quality,
        )
        for what, (wall, cpu, memory) in best.items()
    ]
    header = ["process", "seconds", "CPU seconds", "ratio", "CPU ratio", "peak MB", "ARI"]
    title = f"{n_samples} x 20 as CSV, 1,000 pairs, sl; command against Python: ARI {agreement}"
    report("cli_overhead", title, header, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    main(given.samples, given.repeats)
