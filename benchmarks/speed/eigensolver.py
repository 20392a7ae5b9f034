"""The leading eigenvectors of a graph: linkwise against ARPACK as scipy calls it.

    python benchmarks/speed/eigensolver.py [graph.npz] [--k 15] [--tol 1e-3 1e-5] [--threads 2]

The graph is a symmetric sparse matrix stored by ``scipy.sparse.save_npz``; without one, a 10-NN
graph of ``--n`` samples in 16-dimensional blobs is built. Both solvers get ``D^-1/2 W D^-1/2``.
Accuracy is the sine of the largest angle between the first vectors (two thirds of them) and those
of a reference at tolerance 1e-9; speed is never shown without it. Seconds are the best of
``--repeats`` runs, once as the clock shows them and once of the processor.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from functools import partial

import numba
import numpy as np
from harness import MEGABYTE, peak_memory, report
from scipy.sparse import csr_array, load_npz
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

from linkwise.linalg import chebyshev, eigen
from linkwise.linalg.laplacian import normalized_adjacency

REFERENCE_TOL = 1e-9


def blobs_graph(n, n_neighbors=10):
    from sklearn.neighbors import kneighbors_graph

    rng = np.random.RandomState(0)
    centers = rng.normal(size=(30, 16))
    X = centers[rng.randint(30, size=n)] + 0.6 * rng.normal(size=(n, 16))
    W = kneighbors_graph(X.astype(np.float32), n_neighbors, n_jobs=2)
    return csr_array(W.maximum(W.T))


def planar_graph(n, n_neighbors=10):
    from sklearn.neighbors import kneighbors_graph

    X = np.random.RandomState(0).uniform(size=(n, 2))
    W = kneighbors_graph(X, n_neighbors)
    return csr_array(W.maximum(W.T))


def sine(V, reference):
    """Return the sine of the largest angle between two spaces of as many dimensions."""
    rest = V - reference @ (reference.T @ V)
    return float(np.linalg.norm(rest, 2))


def measure(solve, repeats):
    wall, cpu = [], []
    for _ in range(repeats):
        clock, processor = time.perf_counter(), time.process_time()
        values, vectors = solve()
        wall.append(time.perf_counter() - clock)
        cpu.append(time.process_time() - processor)
    return values, vectors, min(wall), min(cpu)


def by_scipy(S, k, tol):
    v0 = np.random.RandomState(0).uniform(-1, 1, size=S.shape[0])
    values, vectors = eigsh(S, k, which="LA", tol=tol, v0=v0)
    return values[::-1], vectors[:, ::-1]


def by_linkwise(S, k, tol, method):
    pairs = eigen.largest(S, k, np.random.RandomState(0), tol=tol, method=method)
    return pairs.values, pairs.vectors


def table(S, k, tols, repeats, methods):
    """Return the rows of the report; scipy, the slowest, comes last at each tolerance."""
    clock = time.perf_counter()
    reference = by_linkwise(S, k, REFERENCE_TOL, "chebyshev")[1]
    print(f"reference: {time.perf_counter() - clock:.1f} s", flush=True)
    first = max(1, 2 * k // 3)
    solvers = {name: partial(by_linkwise, S, k, method=name) for name in methods}
    solvers["scipy"] = partial(by_scipy, S, k)
    rows = []
    for tol in tols:
        costs = {}
        for name, solver in solvers.items():
            with peak_memory() as memory:
                values, vectors, *costs[name] = measure(partial(solver, tol=tol), repeats)
            residual = np.linalg.norm(S @ vectors - vectors * values, axis=0).max()
            angle = sine(vectors[:, :first], reference[:, :first])
            found = (f"{residual:.1e}", f"{angle:.1e}", f"{memory[0] / MEGABYTE:.0f}")
            print(name, tol, *(f"{cost:.2f}" for cost in costs[name]), *found, flush=True)
            rows.append([name, f"{tol:.0e}", *found])
        for row in rows[-len(solvers) :]:
            own, other = costs[row[0]], costs["scipy"]
            ratios = (f"{b / a:.1f}" for a, b in zip(own, other, strict=True))
            row[2:2] = [f"{own[0]:.2f}", f"{own[1]:.2f}", *ratios]
    return rows


def shares(S, k, tol):
    """Return where the time goes, by function, in seconds of one run."""
    profile = cProfile.Profile()
    profile.enable()
    by_linkwise(S, k, tol, "chebyshev")
    profile.disable()
    stats = pstats.Stats(profile).stats
    wanted = {
        "filter (single precision)": (chebyshev._Basis.filter, 3),
        "of it, products": (chebyshev._SparseProduct.advance, 3),
        "Rayleigh-Ritz (double precision)": (chebyshev._Basis.rayleigh_ritz, 3),
        "of it, products ": (chebyshev._SparseProduct.apply, 3),
        "ordering": (chebyshev.local_order, 3),
        "setting up": (chebyshev._SparseProduct.__init__, 3),
        "bounds by Lanczos": (eigen.spectrum_bounds, 3),
        "all": (eigen._extreme, 3),
    }
    for name, (function, column) in wanted.items():
        code = function.__code__
        key = (code.co_filename, code.co_firstlineno, code.co_name)
        if key in stats:
            yield name, f"{stats[key][column]:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", nargs="?", help="sparse matrix stored by scipy.sparse.save_npz")
    parser.add_argument("--n", type=int, default=50_000, help="samples, if no graph is given")
    parser.add_argument("--planar", action="store_true", help="samples in the unit square")
    parser.add_argument("--k", type=int, default=15)
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-3, 1e-5])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=["chebyshev"])
    args = parser.parse_args()
    threads = min(args.threads, numba.config.NUMBA_NUM_THREADS)
    numba.set_num_threads(threads)
    if args.graph:
        W = csr_array(load_npz(args.graph))
    else:
        W = planar_graph(args.n) if args.planar else blobs_graph(args.n)
    S = normalized_adjacency(W)
    with threadpool_limits(threads):
        # Compiled kernels are loaded before the clock starts.
        by_linkwise(normalized_adjacency(planar_graph(1_000)), 2, 1e-3, "chebyshev")
        rows = table(S, args.k, args.tol, args.repeats, args.methods)
        header = ["solver", "tol", "wall s", "CPU s", "x wall", "x CPU", "residual", "sine", "MB"]
        title = f"{S.shape[0]:,} vertices, {S.nnz:,} entries, k = {args.k}, {threads} threads"
        report("eigensolver", title, header, rows)
        report("eigensolver-shares", title, ["part", "s"], list(shares(S, args.k, args.tol[-1])))


if __name__ == "__main__":
    main()
