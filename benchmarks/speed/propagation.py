"""Propagated pairs: the exact F beside scipy's solver, the low-rank F beside the exact one, size.

Speed is never reported without quality: errors and adjusted Rand indices are in the tables.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from harness import MEGABYTE, best_of, peak_memory, report
from scipy.linalg import solve_continuous_lyapunov
from scipy.sparse import csr_array, load_npz, save_npz
from sklearn.datasets import load_digits, make_blobs

from linkwise import GFHF, LLGC, Affinity, Constraints, NCut, Poisson
from linkwise.constraints.table import constraint_matrix
from linkwise.linalg.laplacian import symmetric
from linkwise.linalg.lowrank import values_on
from linkwise.methods import e2cp, srcp
from linkwise.methods._propagation import constrained_samples, pairs_of, pattern_with_pairs
from linkwise.methods.e2cp import E2CP
from linkwise.methods.gp import GPAffinity
from linkwise.methods.srcp import SRCP
from linkwise.metrics import adjusted_rand

PAIR_MODELS = {"ncut": NCut, "e2cp": E2CP, "srcp": SRCP, "gp": GPAffinity}
# A thousand random pairs name no five mutually separated groups: label methods raise an error.
MODELS = PAIR_MODELS | {"gfhf": GFHF, "llgc": LLGC, "poisson": Poisson}


def exact() -> None:
    """Run the paper's largest case: 1,500 samples in 15 classes, 2,400 pairs, mu = 0.2."""
    n, k, mu = 1_500, 15, 0.2
    X, y = make_blobs(n, 10, centers=k, cluster_std=4.0, random_state=0)
    W = Affinity(20).fit_transform(X)
    known = Constraints.sample(y, 2_400, random_state=0)
    Y, L = constraint_matrix(known), symmetric(W).toarray()
    srcp.srcp(W, known, k, random_state=0)
    F, ours = best_of(lambda: srcp.propagate(W, Y, mu))
    A, right = mu * np.eye(n) + L, 2 * mu * Y.toarray()
    scipys, theirs = best_of(lambda: solve_continuous_lyapunov(A, right), repeats=1)
    _, eigh = best_of(lambda: np.linalg.eigh(L))
    rows = [
        ["numpy.linalg.eigh", *seconds(eigh), "", "", ""],
        ["solve_continuous_lyapunov", *seconds(theirs), times(theirs, ours) + " F", "", ""],
        ["SRCP F", *seconds(ours), times(ours, eigh) + " eigh",
         f"{np.abs(F - scipys).max():.0e}", ""],
    ]  # fmt: skip
    for name, method in (("SRCP", srcp.srcp), ("E2CP", e2cp.e2cp)):
        for solver in ("exact", "lowrank"):
            result, cost = best_of(
                lambda m=method, s=solver: m(W, known, k, solver=s, random_state=0)
            )
            ari = f"{adjusted_rand(y, result.labels):.3f}"
            rows.append(
                [f"{name} whole, {solver}", *seconds(cost), times(cost, eigh) + " eigh", "", ari]
            )
    plain = NCut(k, affinity="precomputed", random_state=0).fit(W)
    rows.append(["NCut", "", "", "", "", f"{adjusted_rand(y, plain.labels_):.3f}"])
    header = ["1,500 samples, 2,400 pairs", "s", "CPU s", "ratio", "error", "ARI"]
    report("propagation_exact", "SRCP exactly, one thread", header, rows)


def seconds(cost) -> tuple[str, str]:
    return f"{cost.seconds:.2f}", f"{cost.cpu_seconds:.2f}"


def times(cost, other) -> str:
    return f"{cost.cpu_seconds / other.cpu_seconds:.1f} x"


def approximation() -> None:
    """Compare low-rank with exact propagation on digits, 200 pairs."""
    X, y = load_digits(return_X_y=True)
    W = Affinity(10).fit_transform(X)
    known = Constraints.sample(y, 200, random_state=0)
    rows = []
    for method, function, name, values in (
        (e2cp, e2cp.e2cp, "alpha", (0.5, 0.8, 0.9, 0.99)),
        (srcp, srcp.srcp, "mu", (1.0, 0.2, 0.05, 0.01)),
    ):
        for value in values:
            F = method.propagate(W, constraint_matrix(known), value)
            for tol in (2e-3, 5e-4, 1e-4):
                errors, factors, reached = error_of(method, W, known, F, value, tol)
                labels = [
                    function(W, known, 10, solver=s, tol=tol, random_state=0, **{name: value})
                    for s in ("exact", "lowrank")
                ]
                n_terms = factors.G.shape[1] // factors.near.shape[1]
                rows.append(
                    [function.__name__, f"{name} = {value}", f"{tol:g}", n_terms,
                     f"{factors.near.nnz / factors.near.shape[1]:.0f}", *errors, f"{reached:.0%}",
                     *(f"{adjusted_rand(y, found.labels):.3f}" for found in labels)]
                )  # fmt: skip
    header = ["method", "parameter", "tol", "terms", "entries a column", "error, edges and pairs",
              "edges alone", "pairs alone", "F > 0 reached",
              "ARI exact", "ARI low-rank"]  # fmt: skip
    title = "Low-rank against exact F (relative, Frobenius), digits, n = 1,797, 200 pairs"
    report("propagation_lowrank", title, header, rows)


def error_of(method, W, known, F, value, tol):
    Y = constraint_matrix(known)
    name = "alpha" if method is e2cp else "mu"
    factors = method.propagation_factors(W, constrained_samples(Y), tol=tol, **{name: value})
    pattern = pattern_with_pairs(W, Y, factors.near)
    f = values_on(factors.G, pairs_of(factors, Y), pattern)
    rows = np.repeat(np.arange(W.shape[0]), np.diff(pattern.indptr))
    exact = F[rows, pattern.indices]
    edges, pairs = pattern.data > 0, np.asarray(Y[rows, pattern.indices]).ravel() != 0
    errors = [
        f"{np.linalg.norm((f - exact)[part]) / np.linalg.norm(exact[part]):.2%}"
        for part in (edges | pairs, edges, pairs)
    ]
    positive = np.maximum(F, 0).sum() - np.maximum(F.diagonal(), 0).sum()
    return errors, factors, 2 * np.maximum(exact, 0).sum() / positive


def large(n_samples: int = 100_000) -> None:
    """Fit every method in a process of its own."""
    rows, base = [], np.nan
    with tempfile.TemporaryDirectory() as folder:
        X, y = make_blobs(n_samples, 10, centers=5, cluster_std=4.0, random_state=0)
        save_npz(Path(folder) / "graph.npz", Affinity(10).fit_transform(X))
        np.save(Path(folder) / "y.npy", y)
        for supervision in ("1,000 pairs", "1,000 labels"):
            for name in PAIR_MODELS if supervision.endswith("pairs") else MODELS:
                command = [sys.executable, __file__, "--child", folder, name, supervision]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found = json.loads(done.stdout.splitlines()[-1])
                base = found["cpu"] if name == "ncut" else base
                rows.append(
                    [supervision, name, f"{found['seconds']:.2f}", f"{found['cpu']:.2f}",
                     f"{found['cpu'] / base:.1f} x", f"{found['peak']:.0f}",
                     f"{found['ari']:.4f}", f"{found['satisfied']:.3f}"]
                )  # fmt: skip
    header = ["given", "method", "s", "CPU s", "of NCut", "peak MB", "ARI", "satisfied"]
    report("propagation_large", f"Blobs, n = {n_samples:,}, 10-NN, one thread", header, rows)


def measure(folder: str, name: str, supervision: str) -> dict[str, float]:
    W, y = csr_array(load_npz(Path(folder) / "graph.npz")), np.load(Path(folder) / "y.npy")
    if supervision.endswith("pairs"):
        known = Constraints.sample(y, 1_000, random_state=0)
    else:
        labelled = np.random.RandomState(0).permutation(y.size) < 1_000
        known = Constraints.from_labels(np.where(labelled, y, -1))
    model = MODELS[name](5, affinity="precomputed", random_state=0)
    given = None if name == "ncut" else known
    with peak_memory() as peak:
        model.fit(W, constraints=given)
    _, cost = best_of(lambda: model.fit(W, constraints=given))
    return {
        "seconds": cost.seconds,
        "cpu": cost.cpu_seconds,
        "peak": peak[0] / MEGABYTE,
        "ari": adjusted_rand(y, model.labels_),
        "satisfied": known.satisfied(model.labels_),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure(*sys.argv[2:])))
    elif sys.argv[1:2] == ["large"]:
        large()
    else:
        exact()
        approximation()
        large()
