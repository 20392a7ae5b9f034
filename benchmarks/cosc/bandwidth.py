"""How near the inner solver of COSC comes to the memory's own speed.

Run: python benchmarks/cosc/bandwidth.py [--nodes 630000] [--repeats 15]

One iteration passes once over the edges, each stored once: it reads two duals, a weight and a
neighbour, and writes one dual. That least traffic, over the time it takes, is compared with the
triad a = b + s c in the same process, on the same two threads, in turn. A graph of points in space
with 10 neighbours each, numbered by reverse Cuthill-McKee as the method numbers large graphs.
"""

from __future__ import annotations

import argparse
import time

import numba
import numpy as np
from numba import njit, prange
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.spatial import cKDTree

from linkwise.linalg import fista


def neighbor_graph(n: int, dimension: int = 5) -> csr_array:
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(n, dimension)).astype(np.float32)
    distance, index = cKDTree(X).query(X, 11, workers=-1, eps=0.5)
    heads = np.repeat(np.arange(n), 10)
    weight = np.exp(-((distance[:, 1:] / distance[:, 10:]) ** 2)).ravel()
    A = csr_array((weight, (heads, index[:, 1:].ravel())), shape=(n, n))
    W = csr_array(A.maximum(A.T))
    order = reverse_cuthill_mckee(W, symmetric_mode=True)
    return csr_array(W[np.ix_(order, order)])


@njit(parallel=True, fastmath=True)
def triad(a, b, c, s):
    for i in prange(a.size):
        a[i] = b[i] + s * c[i]


def best_of(call, repeats):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), float(np.median(seconds))


def bytes_per_iteration(edges) -> int:
    """Least traffic: duals read and written, weights, neighbours; vertex arrays once a pass."""
    size = edges.weight.itemsize
    per_edge = 3 * size + size + 4
    n_blocks = edges.rows.size - 1
    # Sweep: vertex pairs read, sums written. Advance: sums, flows and data read, three written.
    per_vertex = 2 * size + n_blocks * size + (n_blocks + 2) * size + 3 * size
    return edges.weight.size * per_edge + edges.n_vertices * per_vertex


def measure(W, c, dtype, repeats):
    edges = fista.edges_of(W, dtype)
    rng = np.random.RandomState(1)
    y = rng.normal(size=edges.n_vertices)
    y = (y - y.mean()).astype(dtype)
    flow = fista.new_flow(edges)
    flow = fista._iterate(edges, y, c, flow, 3)
    steps = 10
    best, median = best_of(lambda: fista._iterate(edges, y, c, flow, steps), repeats)
    return bytes_per_iteration(edges), best / steps, median / steps


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--nodes", type=int, default=630_000)
    options.add_argument("--repeats", type=int, default=15)
    given = options.parse_args()
    numba.set_num_threads(2)
    n = 40_000_000
    a, b, c = np.zeros(n, np.float32), np.ones(n, np.float32), np.ones(n, np.float32)
    triad(a, b, c, np.float32(2))
    W = neighbor_graph(given.nodes)
    print(f"{given.nodes:,} nodes, {W.nnz // 2:,} edges, 2 threads\n")
    print(
        "| kernel | MB an iteration | ms best (median) | GB/s best | of the triad, best (median) |"
    )
    print("|---|---|---|---|---|")
    for dtype in (np.float32, np.float64):
        for price in (0.0, 10.0):
            seconds, middle = best_of(lambda: triad(a, b, c, np.float32(2)), given.repeats)
            limit, usual = 3 * a.nbytes / seconds, 3 * a.nbytes / middle
            moved, best, median = measure(W, price, dtype, given.repeats)
            name = f"{np.dtype(dtype).name}, {'with' if price else 'without'} the max-min term"
            print(
                f"| {name} | {moved / 1e6:.0f} | {1e3 * best:.1f} ({1e3 * median:.1f}) | "
                f"{moved / best / 1e9:.1f} | {moved / best / limit:.0%} "
                f"({moved / median / usual:.0%}) |",
                flush=True,
            )
    print(f"\nTriad in the last round: {limit / 1e9:.1f} GB/s best, {usual / 1e9:.1f} median.")


if __name__ == "__main__":
    main()
