"""From samples to labels against the neighbour search alone: seconds, memory, quality.

Run: python benchmarks/speed/end_to_end.py [samples.npz] [--k 15] [--threads 2]

The file holds X and y; without one, 300,000 x 50 overlapping blobs are made. "search" are the ten
nearest neighbours by `ApproximateNeighbors`, "all" is `NCut(k).fit(X)`: neighbours, graph, k
eigenvectors and labels. Memory is what is added to the samples at the peak.
"""

from __future__ import annotations

import argparse
import time

import numba
import numpy as np
from harness import peak_memory, report
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkwise import Affinity, ApproximateNeighbors, NCut


def measured(call):
    """Return the answer, wall and CPU seconds, and gigabytes added at the peak."""
    with peak_memory() as peak:
        wall, cpu = time.perf_counter(), time.process_time()
        answer = call()
        seconds = time.perf_counter() - wall, time.process_time() - cpu
    return answer, *seconds, peak[0] / 2**30


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("samples", nargs="?")
    options.add_argument("--k", type=int, default=15)
    options.add_argument("--threads", type=int, default=2)
    asked = options.parse_args()
    if asked.samples:
        stored = np.load(asked.samples)
        X, y = stored["X"].astype(np.float64), stored["y"]
    else:
        X, y = make_blobs(300_000, 50, centers=10, cluster_std=6.0, random_state=0)
    numba.set_num_threads(min(asked.threads, numba.config.NUMBA_NUM_THREADS))
    rows = []
    with threadpool_limits(asked.threads):
        NCut(3, random_state=0).fit(X[:40_000])  # compiles
        search = ApproximateNeighbors(10, n_jobs=asked.threads)
        _, wall, cpu, memory = measured(lambda: search.fit_transform(X))
        rows.append(["search", wall, cpu, memory, search.recall_, ""])
        affinity = Affinity(10, search="approximate", n_jobs=asked.threads)
        model = NCut(asked.k, affinity=affinity, random_state=0)
        _, wall, cpu, memory = measured(lambda: model.fit(X))
        ari = adjusted_rand_score(y, model.labels_)
        rows.append(["all", wall, cpu, memory, model.affinity_.recall_, f"{ari:.3f}"])
    rows.append(["all / search", *(rows[1][i] / rows[0][i] for i in (1, 2)), "", "", ""])
    table = [[f"{cell:.3g}" if isinstance(cell, float) else cell for cell in row] for row in rows]
    header = ["", "wall s", "CPU s", "GB added", "recall", "ARI"]
    title = f"{X.shape[0]:,} x {X.shape[1]}, k = {asked.k}, {asked.threads} threads"
    report("end_to_end", title, header, table)


if __name__ == "__main__":
    main()
