"""How the inner solver of COSC compares with one product of the same graph and a vector.

Run: python benchmarks/cosc/bandwidth.py [--nodes 630000] [--repeats 15] [--graph FILE]

One iteration passes once over the edges, each stored once: it reads two duals, a weight and a
neighbour, and writes two duals; the max-min term does not enter. The product with a vector (float32
values, uint32 indices, every edge stored twice) is the least that any method on the graph does.
Both run on the same two threads, on the same numbering, in turn; seconds and CPU seconds are
compared within each turn, because a busy machine slows both down. The triad a = b + s c measures
the memory bandwidth.

A graph of points in space with 10 neighbours each, or from a file of save_npz; numbered
by reverse Cuthill-McKee, as the method numbers large graphs.
"""

from __future__ import annotations

import argparse
import os
import time

import numba
import numpy as np
from numba import njit, prange
from scipy.sparse import csr_array, load_npz
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.spatial import cKDTree

from linkwise.linalg import fista

STEPS = 20  # iterations that are timed together


def neighbor_graph(n: int, dimension: int = 5) -> csr_array:
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(n, dimension)).astype(np.float32)
    distance, index = cKDTree(X).query(X, 11, workers=-1, eps=0.5)
    heads = np.repeat(np.arange(n), 10)
    weight = np.exp(-((distance[:, 1:] / distance[:, 10:]) ** 2)).ravel()
    A = csr_array((weight, (heads, index[:, 1:].ravel())), shape=(n, n))
    return csr_array(A.maximum(A.T))


def renumbered(W: csr_array) -> csr_array:
    order = reverse_cuthill_mckee(W, symmetric_mode=True)
    W = csr_array(W[np.ix_(order, order)])
    W.sort_indices()
    return W


@njit(parallel=True, fastmath=True)
def triad(a, b, c, s):
    for i in prange(a.size):
        a[i] = b[i] + s * c[i]


@njit(parallel=True, fastmath={"contract"})
def product(indptr, indices, weight, x, out, rows):
    for block in prange(rows.size - 1):
        for i in range(rows[block], rows[block + 1]):
            total = x[i] - x[i]
            for e in range(indptr[i], indptr[i + 1]):
                total += weight[e] * x[indices[e]]
            out[i] = total


class Turns:
    """Seconds and CPU seconds of calls that take turns."""

    def __init__(self):
        self.seconds, self.cpu = {}, {}

    def time(self, name, call, count):
        """Run a call some times, and keep what one run took."""
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            call()
        self.cpu.setdefault(name, []).append((time.process_time() - cpu) / count)
        self.seconds.setdefault(name, []).append((time.perf_counter() - wall) / count)

    def ratio(self, name, other):
        """Return the medians of the ratios of one turn: seconds, CPU seconds."""
        return tuple(
            float(np.median(np.array(found[name]) / found[other]))
            for found in (self.seconds, self.cpu)
        )


def a_product(W, dtype):
    indptr, indices = W.indptr.astype(np.int64), W.indices.astype(np.uint32)
    weight = W.data.astype(dtype)
    x = np.random.RandomState(0).normal(size=W.shape[0]).astype(dtype)
    half = np.searchsorted(indptr, indptr[-1] // 2)
    rows = np.array([0, half, W.shape[0]], np.int64)
    out = np.empty_like(x)
    return lambda: product(indptr, indices, weight, x, out, rows)


def a_run(W, dtype):
    """Return a call that goes on with the solver where it was."""
    edges = fista.edges_of(W, dtype)
    y = np.random.RandomState(1).normal(size=edges.n_vertices)
    y = (y - y.mean()).astype(dtype)
    flow = fista.new_flow(edges)
    return lambda: fista._iterate(edges, y, flow, n_steps=STEPS)


def megabytes(W, dtype) -> float:
    """Least traffic of an iteration: duals, weights, neighbours; vertex arrays once a pass."""
    size = np.dtype(dtype).itemsize
    per_edge = 5 * size + 4
    # Sweep: vertex pairs read, two blocks of sums. Advance: these, flows and data; three written.
    per_vertex = 2 * size + 2 * size + 4 * size + 4 * size
    return (W.nnz // 2 * per_edge + W.shape[0] * per_vertex) / 1e6


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nodes", type=int, default=630_000)
    options.add_argument("--repeats", type=int, default=15)
    options.add_argument("--graph")
    given = options.parse_args()
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    W = renumbered(csr_array(load_npz(given.graph)) if given.graph else neighbor_graph(given.nodes))
    print(
        f"{W.shape[0]:,} nodes, {W.nnz // 2:,} edges, {numba.get_num_threads()} threads, "
        f"load {os.getloadavg()[0]:.1f}\n"
    )
    n = 40_000_000
    a, b, c = np.zeros(n, np.float32), np.ones(n, np.float32), np.ones(n, np.float32)
    print(
        "| iteration | MB | ms best (median) | product, ms best (median) | ratio: best | median | "
        "median, CPU | triad, GB/s best |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for dtype in (np.float32, np.float64):
        times, run = a_product(W, dtype), a_run(W, dtype)
        turns = Turns()
        for repeat in range(-1, given.repeats):
            if repeat == 0:  # the first turn compiled
                turns = Turns()
            turns.time("product", times, STEPS)
            turns.time("run", run, 1)
            turns.time("triad", lambda: triad(a, b, c, np.float32(2)), 1)
        own = np.array(turns.seconds["run"]) / STEPS
        other = np.array(turns.seconds["product"])
        middle, cpu = (value / STEPS for value in turns.ratio("run", "product"))
        print(
            f"| {np.dtype(dtype).name} | {megabytes(W, dtype):.0f} | {1e3 * own.min():.1f} "
            f"({1e3 * np.median(own):.1f}) | {1e3 * other.min():.1f} "
            f"({1e3 * np.median(other):.1f}) | {own.min() / other.min():.2f} | {middle:.2f} | "
            f"{cpu:.2f} | {3 * a.nbytes / min(turns.seconds['triad']) / 1e9:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
