"""Fit every method on a sparse graph, beside scipy's eigensolver for the same eigenvectors.

Each method runs in a process of its own, so that its peak memory is its own. The reference is
``eigsh`` on the matrix whose eigenvectors the method takes, at the same tolerance and at scipy's
default one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from harness import MEGABYTE, best_of, peak_memory, report
from scipy.sparse import csr_array, load_npz, save_npz
from scipy.sparse.linalg import eigsh
from sklearn.datasets import make_blobs

from linkwise import METHODS, Affinity, Constraints
from linkwise.constraints.table import constraint_matrix
from linkwise.linalg.eigen import DEFAULT_TOL
from linkwise.linalg.laplacian import (
    additive_normalization,
    normalized_adjacency,
    signed_normalized_adjacency,
)
from linkwise.methods.csc import edit
from linkwise.metrics import adjusted_rand

KEYS = ("ncut", "sl", "csc", "signed")  # those that end in one eigenproblem of the graph
N_CLUSTERS, N_PAIRS = 5, 1_000


def make_case(folder: Path, n_samples: int) -> None:
    X, y = make_blobs(n_samples, 10, centers=N_CLUSTERS, cluster_std=4.0, random_state=0)
    save_npz(folder / "graph.npz", Affinity(10).fit_transform(X))
    np.save(folder / "y.npy", y)


def operator(key: str, W: csr_array, known: Constraints) -> csr_array:
    """Return the matrix whose leading eigenvectors the method takes."""
    if key == "ncut":
        return normalized_adjacency(W)
    if key == "sl":
        return additive_normalization(edit(W, known))
    if key == "csc":
        return normalized_adjacency(edit(W, known))
    return signed_normalized_adjacency(
        csr_array(0.5 * W + 0.5 * W.max() * constraint_matrix(known))
    )


def measure(key: str, folder: Path) -> dict[str, float]:
    W, y = csr_array(load_npz(folder / "graph.npz")), np.load(folder / "y.npy")
    known = Constraints.sample(y, N_PAIRS, random_state=0)
    used = None if key == "ncut" else known
    model = METHODS[key](N_CLUSTERS, affinity="precomputed", random_state=0)
    small = csr_array(W[:2000, :2000])
    if used is not None:  # compile before anything is measured
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            METHODS[key](2, affinity="precomputed", random_state=0).fit(
                small, constraints=used.restrict(np.arange(2000))
            )
    with peak_memory() as peak:
        model.fit(W, constraints=used)
    _, fit = best_of(lambda: model.fit(W, constraints=used))
    A = operator(key, W, known)
    start = np.random.RandomState(0).normal(size=A.shape[0])
    _, same = best_of(lambda: eigsh(A, N_CLUSTERS, which="LA", tol=DEFAULT_TOL, v0=start))
    _, exact = best_of(lambda: eigsh(A, N_CLUSTERS, which="LA", v0=start))
    graph_bytes = W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
    return {
        "graph_MB": graph_bytes / MEGABYTE,
        "peak_MB": peak[0] / MEGABYTE,
        "limit_MB": (12 * graph_bytes + 8 * W.shape[0] * N_CLUSTERS) / MEGABYTE,
        "fit_s": fit.seconds,
        "eigsh_same_s": same.seconds,
        "eigsh_default_s": exact.seconds,
        "residual": float(model.result_.residuals.max()),
        "ari": adjusted_rand(y, model.labels_),
        "satisfied": known.satisfied(model.labels_),
    }


def main(n_samples: int = 100_000) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_case(folder, n_samples)
        for key in KEYS:
            command = [sys.executable, __file__, "--child", key, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            rows.append(
                [
                    key,
                    f"{found['fit_s']:.2f}",
                    f"{found['eigsh_same_s']:.2f}",
                    f"{found['fit_s'] / found['eigsh_same_s']:.2f}",
                    f"{found['fit_s'] / found['eigsh_default_s']:.2f}",
                    f"{found['peak_MB']:.0f}",
                    f"{found['peak_MB'] / found['graph_MB']:.1f}",
                    f"{found['limit_MB']:.0f}",
                    f"{found['residual']:.0e}",
                    f"{found['ari']:.3f}",
                    f"{found['satisfied']:.3f}",
                ]
            )
    header = [
        "method", "fit s", "eigsh s", "fit / eigsh", "fit / eigsh (tol 0)", "peak MB",
        "peak / graph", "limit MB", "residual", "ARI", "satisfied",
    ]  # fmt: skip
    title = f"Sparse graph of {n_samples:,} nodes, k = {N_CLUSTERS}, {N_PAIRS:,} pairs, one thread"
    report("sparse_graph", title, header, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure(sys.argv[2], Path(sys.argv[3]))))
    else:
        main(*map(int, sys.argv[1:2]))
