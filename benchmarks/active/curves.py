"""Questions against quality: every strategy beside random questions, answered by the truth.

Run: python benchmarks/active/curves.py [--data folder] [--sets iris wine] [--strategies explore]
     [--method e2cp] [--draws 10] [--budget 0.25] [--out folder]

Six standardised sets; as many questions as the budget times the samples, with the default graph;
the mean over draws of the adjusted Rand index after every few questions. Prints for each set how
many questions the strategies need to reach, and keep, what random questions reach in the end.
Writes out/curves.csv and out/curves.png. Sets that scikit-learn does not hold come from the folder
named by LINKWISE_DATA, as <name>.npz with X and y.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from linkwise.active import STRATEGIES, Session, TruthOracle, simulate

BUILT_IN = {"iris": load_iris, "wine": load_wine, "wdbc": load_breast_cancer}
SETS = [*BUILT_IN, "ionosphere", "glass", "ecoli"]
DATA = os.environ.get("LINKWISE_DATA", Path(__file__).parents[3] / "shared" / "data")
OUT = Path(__file__).parent / "out"
N_POINTS = 50  # of each curve


def load(folder, name):
    if name in BUILT_IN:
        X, y = BUILT_IN[name](return_X_y=True)
    else:
        stored = np.load(Path(folder) / f"{name}.npz")
        X, y = stored["X"].astype(float), np.unique(stored["y"], return_inverse=True)[1]
    return StandardScaler().fit_transform(X), y


def one_curve(X, y, strategy, asked, draw):
    """Return the index after each number of questions on the common grid, and CPU seconds."""
    budget = round(asked.budget * y.size)
    every = max(1, budget // N_POINTS)
    grid = np.unique([*range(0, budget + 1, every), budget])
    session = Session(
        X, np.unique(y).size, strategy=strategy, method=asked.method, random_state=draw
    )
    start = time.process_time()
    curve = simulate(session, TruthOracle(y), budget, every=every)
    seconds = time.process_time() - start
    ari = curve.ari(y)
    # A session that has nothing left to ask stays where it is.
    place = np.searchsorted(curve.n_questions, grid, side="right") - 1
    return grid, ari[place], seconds


def measure(asked):
    """Yield set, strategy, questions, mean and deviation of the index, CPU seconds of a session."""
    for name in asked.sets:
        X, y = load(asked.data, name)
        for strategy in asked.strategies:
            runs = [one_curve(X, y, strategy, asked, draw) for draw in range(asked.draws)]
            grid, curves = runs[0][0], np.array([run[1] for run in runs])
            seconds = float(np.mean([run[2] for run in runs]))
            mean, deviation = curves.mean(axis=0), curves.std(axis=0)
            print(
                f"{name} {strategy}: {mean[0]:.3f} -> {mean[mean.size // 2]:.3f} -> "
                f"{mean[-1]:.3f}, {seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )
            yield name, strategy, grid, mean, deviation, seconds


def reached(grid, mean, target):
    """Return the number of questions from which on the mean curve is at the target or above."""
    below = np.flatnonzero(mean < target)
    if not below.size:
        return int(grid[0])
    return int(grid[below[-1] + 1]) if below[-1] + 1 < grid.size else None


def summary(rows, strategies):
    """Yield a line of the table for each set."""
    for name in dict.fromkeys(row[0] for row in rows):
        curves = {row[1]: row for row in rows if row[0] == name}
        grid, final = curves["random"][2], curves["random"][3][-1]
        needed = {s: reached(grid, curves[s][3], final) for s in strategies}
        others = [s for s in strategies if s != "random" and needed[s] is not None]
        best = min(others, key=needed.get, default=None)
        shown = {s: "never" if n is None else n for s, n in needed.items()}
        cells = [f"{shown[s]} / {curves[s][3][-1]:.3f}" for s in strategies]
        share = "-" if best is None else f"{best} {needed[best] / grid[-1]:.2f}"
        yield [name, f"{curves['random'][3][0]:.3f}", grid[-1], *cells, share]


def write(rows, out):
    out.mkdir(parents=True, exist_ok=True)
    with (out / "curves.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["set", "strategy", "questions", "ari", "deviation", "session_cpu_s"])
        for name, strategy, grid, mean, deviation, seconds in rows:
            for line in zip(grid, mean, deviation, strict=True):
                writer.writerow([name, strategy, *line, seconds])


def draw(rows, out):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(row[0] for row in rows))
    figure, axes = plt.subplots(2, (len(names) + 1) // 2, figsize=(12, 7), squeeze=False)
    for name, axis in zip(names, axes.flat, strict=False):
        for _, strategy, grid, mean, _, _ in (row for row in rows if row[0] == name):
            axis.plot(grid, mean, label=strategy, color="grey" if strategy == "random" else None)
        axis.set(title=name, xlabel="questions", ylabel="ARI")
    axes.flat[0].legend()
    figure.tight_layout()
    figure.savefig(out / "curves.png", dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument("--method", default="e2cp")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--budget", type=float, default=0.25, help="questions per sample")
    asked = parser.parse_args()
    asked.strategies = list(dict.fromkeys(["random", *asked.strategies]))
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        rows = list(measure(asked))
    write(rows, asked.out)
    draw(rows, asked.out)
    head = ["set", "ARI at 0", "budget", *asked.strategies, "best, share of the budget"]
    print("Questions to reach the ARI of random questions at the whole budget / ARI at the end\n")
    print("| " + " | ".join(head) + " |\n" + "|" + "---|" * len(head))
    for line in summary(rows, asked.strategies):
        print("| " + " | ".join(map(str, line)) + " |")


if __name__ == "__main__":
    main()
