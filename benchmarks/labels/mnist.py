"""Accuracy of label propagation on MNIST with 1 and 5 labels a class, with its cost.

Run: python benchmarks/labels/mnist.py [path of mnist.npz] [file to keep the graph in]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz
from sklearn.decomposition import PCA

sys.path.append(str(Path(__file__).parents[1] / "speed"))
from harness import best_of, report

from linkwise import Affinity, Constraints
from linkwise.methods.gfhf import gfhf
from linkwise.methods.llgc import llgc
from linkwise.methods.poisson import poisson

DATA = Path(__file__).parents[3] / "shared" / "data" / "mnist.npz"
N_DRAWS = 10
METHODS = {
    "GFHF": (gfhf, {}),
    "GFHF, class mass": (gfhf, {"class_mass": True}),
    "LLGC, alpha 0.5": (llgc, {}),
    "LLGC, alpha 0.99": (llgc, {"alpha": 0.99}),
    "Poisson": (poisson, {}),
}


def graph_of(X, kept):
    if kept.exists():
        return csr_array(load_npz(kept))
    W = Affinity(10).fit_transform(PCA(50, random_state=0).fit_transform(X / 255.0))
    save_npz(kept, W)
    return W


def drawn(y, n_labels, seed):
    """Return the labels of `n_labels` samples a class, -1 elsewhere."""
    rng = np.random.RandomState(seed)
    partial = np.full(y.size, -1)
    for label in np.unique(y):
        chosen = rng.choice(np.flatnonzero(y == label), n_labels, replace=False)
        partial[chosen] = label
    return partial


def row(name, W, y, n_labels):
    solve, parameters = METHODS[name]
    shares, seconds, iterations = [], [], []
    for seed in range(N_DRAWS):
        partial = drawn(y, n_labels, seed)
        known = Constraints.from_labels(partial)
        result, cost = best_of(
            lambda known=known: solve(W, known, 10, random_state=0, **parameters), 1
        )
        assert result.converged
        hidden = partial < 0
        shares.append(100 * (result.labels[hidden] == y[hidden]).mean())
        seconds.append(cost.seconds)
        iterations.append(result.n_iter)
    return (
        n_labels,
        name,
        f"{np.mean(shares):.1f} ± {np.std(shares):.1f}",
        f"{min(shares):.1f}",
        f"{np.median(seconds):.2f}",
        max(iterations),
    )


def main():
    data = np.load(sys.argv[1] if len(sys.argv) > 1 else DATA)
    y = data["y"].astype(int)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(sys.argv[2] if len(sys.argv) > 2 else f"{folder}/graph.npz")
        W = graph_of(data["X"], kept)
    rows = [row(name, W, y, n_labels) for n_labels in (1, 5) for name in METHODS]
    header = ["labels a class", "method", "% correct, 10 draws", "worst", "seconds", "iterations"]
    report("labels_mnist", "MNIST, 70,000 digits, PCA 50, 10 neighbours", header, rows)


if __name__ == "__main__":
    main()
