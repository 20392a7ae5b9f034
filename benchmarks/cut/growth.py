"""How the constrained cut grows with the samples, beside two baselines.

Run: python benchmarks/cut/growth.py [--sizes 1000 10000 100000] [--no-million] [--csv file]

Overlapping data on purpose, so that constraints matter. Baselines: the spectral cut without
constraints, and k-means whose violated groups are moved, one after the other, to the cheapest
cluster that allows them. Each answer is computed in a process of its own, on one thread; the graph
is given. "added MB" is what the call adds at its peak.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import compile_kernels, parser, pin, show, timed
from scipy.sparse import coo_array, csr_array, load_npz, save_npz
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons

sys.path.append(str(Path(__file__).parents[1] / "speed"))
from harness import MEGABYTE, peak_memory

from linkwise import Affinity, Constraints, metrics
from linkwise.constraints.feasible import feasible_groups
from linkwise.methods.cut import constrained_cut
from linkwise.methods.ncut import ncut

MILLION = 1_000_000
MANY = 100_000
REPAIR_PASSES = 10
EFFORTS = ("default", "fast")
METHODS = (*EFFORTS, "k-means, repaired", "NCut")
TIME_LIMIT = 900  # seconds for one answer; eigenvectors of a million samples may take longer
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


class Case(NamedTuple):
    """Samples, and how many pairs are known of them."""

    data: str
    n_samples: int
    n_pairs: int
    k: int
    methods: tuple[str, ...]


def samples(case: Case):
    if case.data == "moons":
        return make_moons(case.n_samples, noise=0.22, random_state=0)
    if case.data == "3 blobs":
        corners = [(0.0, 0.0), (4.0, 0.0), (2.0, 3.5)]
        return make_blobs(case.n_samples, centers=corners, cluster_std=1.2, random_state=0)
    return make_blobs(case.n_samples, 3, centers=case.k, cluster_std=2.5, random_state=0)


def repaired_kmeans(X, known: Constraints, k: int):
    """Cluster by k-means; move violated groups to their cheapest allowed cluster, if any."""
    model = KMeans(k, n_init=3, random_state=0).fit(X)
    groups = feasible_groups(known, k)
    distances = model.transform(X) ** 2
    cost = np.column_stack([np.bincount(groups.component, column) for column in distances.T])
    z = cost.argmin(axis=1)
    indptr, indices = groups.graph.indptr, groups.graph.indices
    for _ in range(REPAIR_PASSES):
        heads = np.repeat(np.arange(z.size), np.diff(indptr))
        violated = np.unique(heads[z[heads] == z[indices]])
        n_moved = 0
        for v in violated.tolist():
            around = z[indices[indptr[v] : indptr[v + 1]]]
            if not (around == z[v]).any():
                continue
            allowed = np.setdiff1d(np.arange(k), around)
            if allowed.size:
                z[v] = allowed[cost[v, allowed].argmin()]
                n_moved += 1
        if n_moved == 0:
            break
    return z[groups.component]


def solve(method: str, W, X, known: Constraints, k: int):
    if method == "NCut":
        return ncut(W, k, random_state=0).labels
    if method == "k-means, repaired":
        return repaired_kmeans(X, known, k)
    return constrained_cut(W, known, k, effort=method, random_state=0).labels


def measure(folder: Path, method: str, k: int, n_pairs: int) -> dict[str, float]:
    pin()
    W, y = csr_array(load_npz(folder / "graph.npz")), np.load(folder / "y.npy")
    X = np.load(folder / "X.npy")
    known = Constraints.sample(y, n_pairs, random_state=0)
    # What is compiled or loaded on first use is no part of the answer.
    if method in EFFORTS:
        compile_kernels()
    else:
        few = np.arange(500)
        inside = csr_array(W[few][:, few] + coo_array(np.full((500, 500), 1e-3)))
        solve(method, inside, X[few], known.restrict(few), k)
    with peak_memory() as peak:
        labels, seconds = timed(lambda: solve(method, W, X, known, k))
    return {
        "seconds": seconds,
        "ncut": metrics.ncut(W, labels),
        "violated": known.n_violated(labels),
        "peak": peak[0] / MEGABYTE,
        "ari": metrics.adjusted_rand(y, labels),
        "graph": (W.data.nbytes + W.indices.nbytes + W.indptr.nbytes) / MEGABYTE,
    }


def make_samples(case: Case, folder: Path) -> float:
    """Store samples and graph; return the CPU seconds of the graph."""
    X, y = samples(case)
    start = time.process_time()
    W = Affinity().fit_transform(X)
    seconds = time.process_time() - start
    save_npz(folder / "graph.npz", W, compressed=False)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return seconds


def run(case: Case, folder: Path, graph_seconds: float) -> list[list[object]]:
    rows: list[list[object]] = []
    for method in case.methods:
        command = [sys.executable, __file__, "--child", str(folder), method]
        command += [str(case.k), str(case.n_pairs)]
        about = [case.data, case.k, case.n_samples, case.n_pairs, method]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, **ONE_THREAD},
                timeout=TIME_LIMIT,
            )
        except subprocess.TimeoutExpired:
            rows.append([*about, f"stopped after {TIME_LIMIT}", *["-"] * 5, f"{graph_seconds:.1f}"])
            continue
        if done.returncode:
            sys.exit(f"{case}, {method}:\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        rows.append(
            [
                *about,
                f"{found['seconds']:.2f}",
                f"{found['ncut']:.4f}",
                int(found["violated"]),
                f"{found['peak']:.0f}",
                f"{found['graph']:.0f}",
                f"{found['ari']:.3f}",
                f"{graph_seconds:.1f}",
            ]
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def cases(sizes: list[int], methods: list[str], *, million: bool) -> list[list[Case]]:
    """Return the cases, in lists that share their samples."""
    found = [
        [Case(data, n, n_pairs, k, tuple(methods)) for n_pairs in (n // 10, n)]
        for data, k in (("moons", 2), ("3 blobs", 3))
        for n in sizes
    ]
    if million:
        chosen = tuple(method for method in methods if method != "default")
        found.append([Case("5 blobs, 3-D", MILLION, 10_000, 5, chosen)])
    return found


def exponents(rows: list[list[object]]) -> list[list[object]]:
    """Return how CPU seconds grow from one size to the next, tenfold one."""
    seconds = {tuple(row[:5]): float(str(row[5])) for row in rows if row[2] <= MANY}
    found = []
    for (data, k, n, n_pairs, method), later in seconds.items():
        earlier = seconds.get((data, k, n // 10, n_pairs // 10, method))
        if n == MANY and earlier:
            power = np.log10(later / earlier)
            found.append([data, f"{n_pairs / n:.1f} n", method, earlier, later, f"{power:.2f}"])
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    options.add_argument("--no-million", action="store_true", help="leave out the largest case")
    options.add_argument("--methods", nargs="*", choices=METHODS, default=METHODS)
    given = options.parse_args()
    rows: list[list[object]] = []
    for alike in cases(given.sizes, given.methods, million=not given.no_million):
        with tempfile.TemporaryDirectory() as name:
            graph_seconds = make_samples(alike[0], Path(name))
            for case in alike:
                rows += run(case, Path(name), graph_seconds)
    header = [
        "data", "k", "n", "pairs", "method", "CPU s", "NCut", "violated", "added MB", "graph MB",
        "ARI", "graph s",
    ]  # fmt: skip
    show("Growth of the constrained cut, one thread", header, rows, given.csv)
    header = ["data", "pairs", "method", "10,000: CPU s", "100,000: CPU s", "exponent"]
    show("Growth from 10,000 to 100,000 samples", header, exponents(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child = measure(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
        print(json.dumps(child))
    else:
        main()
