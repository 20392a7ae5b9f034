"""COSC on MNIST extended: 630,000 images, every digit with its eight shifts by one pixel.

Run: python benchmarks/cosc/mnist_extended.py [--data FOLDER] [--cache FOLDER] [--pairs 10000]
    [--tasks zero digits] [--shifts 9]

Fifty principal components, the graph of `linkwise.graph.Affinity`, pairs from the true labels. Two
tasks: digit 0 against the rest (two clusters), and all ten digits. Prints what the graph cost, then
for each task seconds and CPU seconds of COSC alone, the normalised cut, error, adjusted Rand index
over the samples without pairs, violated pairs, and the peak of the process. With --cache the graph
is kept in that folder, and its times with it. `--shifts 1` is MNIST itself. Needs mnist.npz.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

from linkwise import COSC, Constraints
from linkwise.datasets import extend_by_shifts
from linkwise.evaluate import draw_constraints
from linkwise.graph import Affinity
from linkwise.graph.approximate import ApproximateNeighbors
from linkwise.metrics import adjusted_rand, clustering_error, ncut

DATA = Path(__file__).parents[3] / "shared" / "data"
BLOCK = 50_000


def clock():
    """Return a function that returns seconds and CPU seconds since now."""
    wall, cpu = time.perf_counter(), time.process_time()
    return lambda: (time.perf_counter() - wall, time.process_time() - cpu)


class Timed:
    """A neighbour search that records its seconds."""

    def __init__(self, search):
        self.search = search

    def fit_transform(self, X, y=None):
        """Search, by the clock."""
        passed = clock()
        found = self.search.fit_transform(X)
        self.cost = passed()
        return found


def principal_components(X, n_components=50):
    """Return float32 rows; in blocks, because the images are bytes and must stay so."""
    mean = X.mean(axis=0, dtype=np.float64)
    scatter = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), BLOCK):
        rows = X[start : start + BLOCK] - mean
        scatter += rows.T @ rows
    axes = np.linalg.eigh(scatter)[1][:, ::-1][:, :n_components]
    blocks = [(X[s : s + BLOCK] - mean) @ axes for s in range(0, len(X), BLOCK)]
    return np.concatenate(blocks).astype(np.float32)


def built(folder, n_shifts):
    """Return the graph, the digits, and what search and graph took: s, CPU s each."""
    data = np.load(folder / "mnist.npz")
    X, y = data["X"], data["y"].astype(int)
    if n_shifts == 9:
        X, y = extend_by_shifts(X, (28, 28)), np.tile(y, 9)
    rows = principal_components(X)
    del X
    print(f"{len(rows):,} samples; 50 components", flush=True)
    builder = Affinity(Timed(ApproximateNeighbors(10, random_state=0)))
    passed = clock()
    W = csr_array(builder.fit_transform(rows))
    return W, y, (*builder.transformer_.cost, *passed())


def prepared(given):
    """Read the graph from the cache, or build it."""
    if given.cache is None:
        return built(given.data, given.shifts)
    given.cache.mkdir(parents=True, exist_ok=True)
    graph = given.cache / f"mnist{given.shifts}.npz"
    rest = given.cache / f"mnist{given.shifts}.json"
    labels = given.cache / f"mnist{given.shifts}-y.npy"
    if not rest.exists():
        W, y, cost = built(given.data, given.shifts)
        save_npz(graph, W, compressed=False)
        np.save(labels, y)
        rest.write_text(json.dumps(cost))
    return csr_array(load_npz(graph)), np.load(labels), tuple(json.loads(rest.read_text()))


def warm_up():
    """Compile, so that no clock counts it; the kernels of large graphs need a large graph."""
    y = np.repeat([0, 1], 40_000)
    X = np.random.RandomState(0).normal(size=(y.size, 2)) + 6 * y[:, None]
    known = Constraints.sample(y, 30, random_state=0)
    for k in (2, 3):
        COSC(k, random_state=0, n_starts=1).fit(X[::20], constraints=Constraints(4000))
    COSC(2, random_state=0, n_starts=1).fit(X, constraints=known)


def row(W, y, k, given):
    known = draw_constraints(y, given.pairs, data="mnist", random_state=0)
    model = COSC(
        k, affinity="precomputed", random_state=0, n_jobs=given.jobs, verbose=given.verbose
    )
    passed = clock()
    labels = model.fit(W, constraints=known).labels_
    wall, cpu = passed()
    found = model.result_
    free = np.ones(y.size, bool)
    free[known.table.pairs.ravel()] = False
    return (
        f"{k}",
        f"{wall:.0f}",
        f"{cpu:.0f}",
        f"{ncut(W, labels):.6f}",
        f"{100 * clustering_error(y, labels):.2f}",
        f"{adjusted_rand(y[free], labels[free]):.4f}",
        f"{found.n_violated}",
        f"{found.n_inner}",
        f"{found.duality_gap:.1e}{'' if found.converged else ', not converged'}",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f}",
    )


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--cache", type=Path)
    options.add_argument("--pairs", type=int, default=10_000)
    options.add_argument(
        "--tasks", nargs="+", choices=("zero", "digits"), default=["zero", "digits"]
    )
    options.add_argument("--shifts", type=int, choices=(1, 9), default=9)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--verbose", type=int, default=0)
    given = options.parse_args()
    W, y, cost = prepared(given)
    print(f"{W.shape[0]:,} samples, {W.nnz // 2:,} edges; load {os.getloadavg()[0]:.1f}")
    print("neighbour search: {:.1f} s, {:.1f} CPU s; with the graph {:.1f}, {:.1f}\n".format(*cost))
    warm_up()
    header = ["k", "s", "CPU s", "NCut", "error %", "ARI free", "violated", "inner iterations"]
    header += ["gap", "peak GB"]
    print("| " + " | ".join(header) + " |\n" + "|" + "---|" * len(header))
    for task in given.tasks:
        target, k = ((y == 0).astype(int), 2) if task == "zero" else (y, 10)
        print("| " + " | ".join(row(W, target, k, given)) + " |", flush=True)


if __name__ == "__main__":
    main()
