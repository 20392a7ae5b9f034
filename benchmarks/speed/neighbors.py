"""Search for neighbours: exact, by cells, and by faiss (if installed); seconds, recall, memory.

Without arguments: five Gaussian clusters of growing size and dimension, on one thread, to see from
which size on an approximate search pays. With an ``.npz`` file that holds X: that data on all
threads (``--threads``), with the graph that `Affinity` builds of it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from harness import MEGABYTE, peak_memory, report
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

from linkwise.graph import Affinity, ApproximateNeighbors
from linkwise.graph.cells import nearest_exactly
from linkwise.graph.neighbors import NeighborSearch

SIZES = (10_000, 20_000, 50_000, 100_000)
FEATURES = (2, 4, 8, 16, 50)
N_NEIGHBORS = 10
SLOW = 400e9  # multiplications; exact searches above are left out


class Clock:
    """Seconds and CPU seconds since it was made."""

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self):
        """Return both."""
        return time.perf_counter() - self.wall, time.process_time() - self.cpu


def exact(X, threads):
    return NeighborSearch(X, n_jobs=threads).nearest(N_NEIGHBORS)


def by_cells(X, threads):
    return ApproximateNeighbors(N_NEIGHBORS, n_jobs=threads).fit(X).kneighbors()


def by_faiss(kind):
    def search(X, threads):
        import faiss

        faiss.omp_set_num_threads(threads)
        X = np.ascontiguousarray(X, dtype=np.float32)
        if kind == "HNSW":
            index = faiss.IndexHNSWFlat(X.shape[1], 16)
            index.hnsw.efConstruction, index.hnsw.efSearch = 64, 48
        else:
            n_lists = int(4 * np.sqrt(X.shape[0]))
            index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_lists)
            index.nprobe = 16
            index.train(X)
        index.add(X)
        squares, indices = index.search(X, N_NEIGHBORS + 1)
        is_self = indices == np.arange(X.shape[0])[:, None]
        is_self[~is_self.any(axis=1), -1] = True
        shape = (X.shape[0], N_NEIGHBORS)
        return np.sqrt(squares[~is_self]).reshape(shape), indices[~is_self].reshape(shape)

    return search


def recall(X, indices, n_tested=2_000):
    """Share of the true neighbours found, on samples that no search has seen."""
    tested = np.random.default_rng(7).choice(X.shape[0], min(n_tested, X.shape[0]), replace=False)
    true, _ = nearest_exactly(X, X[tested], N_NEIGHBORS, itself=tested)
    found = np.linalg.norm(X[tested][:, None, :] - X[indices[tested]], axis=2)
    return float(np.mean(found <= true[:, -1:] * (1 + 1e-6)))


def measured(search, X, threads):
    with threadpool_limits(threads), peak_memory() as peak:
        clock = Clock()
        _, indices = search(X, threads)
        seconds, cpu = clock.read()
    return seconds, cpu, recall(X, indices), peak[0] / MEGABYTE


def crossover():
    rows = []
    by_cells(make_blobs(3_000, 2, random_state=0)[0], 1)  # compile
    for d in FEATURES:
        for n in SIZES:
            X, _ = make_blobs(n, d, centers=5, cluster_std=2.0, random_state=0)
            slow = float(n) ** 2 * d > SLOW
            _, cells, found, _ = measured(by_cells, X, 1)
            whole = "-" if slow else f"{measured(exact, X, 1)[1]:.2f}"
            rows.append([f"{n:,}", d, whole, f"{cells:.2f}", f"{found:.3f}"])
            print(*rows[-1], flush=True)
    header = ["n", "features", "exact CPU s", "approximate CPU s", "recall"]
    report("neighbors", "Exact or approximate: 10 neighbours, 5 clusters, one thread", header, rows)


def one_set(path, threads, names):
    X = np.load(path)["X"].astype(np.float64)
    searches = {"cells": by_cells, "faiss IVF 16": by_faiss("IVF"), "faiss HNSW": by_faiss("HNSW")}
    by_cells(X[:3_000], threads)  # compile
    rows = []
    for name in names:
        if name == "Affinity":
            continue
        seconds, cpu, found, peak = measured(searches[name], X, threads)
        rows.append([name, f"{seconds:.1f}", f"{cpu:.1f}", f"{found:.3f}", f"{peak:.0f}"])
        print(*rows[-1], flush=True)
    if "Affinity" in names:
        Affinity().fit(X[:3_000])
        with threadpool_limits(threads), peak_memory() as peak:
            clock = Clock()
            built = Affinity(n_jobs=threads).fit(X)
            seconds, cpu = clock.read()
        parts = f"{built.recall_:.3f} ({built.n_components_} components)"
        rows.append(
            ["Affinity", f"{seconds:.1f}", f"{cpu:.1f}", parts, f"{peak[0] / MEGABYTE:.0f}"]
        )
    n, d = X.shape
    title = f"{n:,} samples of {d} features, 10 neighbours, {threads} threads"
    report(f"neighbors_{n}", title, ["search", "s", "CPU s", "recall", "peak MB"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", help="an .npz file with X")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--searches", nargs="+", default=["cells", "faiss IVF 16", "faiss HNSW", "Affinity"]
    )
    given = parser.parse_args()
    if given.data is None:
        crossover()
    else:
        one_set(given.data, given.threads, given.searches)
