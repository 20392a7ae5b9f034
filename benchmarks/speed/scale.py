"""How every method grows from a thousand samples to a million, beside the graph it works on.

Run: python benchmarks/speed/scale.py [--methods ncut sl ...] [--sizes 1000 100000 ...]
     [--pairs 1000] [--limit 600] [--threads 1] [--repeats 2] [--folder graphs] [--write]
     python benchmarks/speed/scale.py --same-on-threads --sizes 100000

Five blobs in 16 dimensions that overlap a little. The graph of each size is built once and stored;
each method then runs in a process of its own on the stored graph, with a time limit. "end to end"
is the graph's seconds and the method's. "added MB" is what the call adds at its peak, above
samples and graph. Methods that propagate labels get labels, as many as the others get pairs.
Seconds are CPU seconds, the best of the repeats (calls above 30 s are not repeated). The exponent
is the slope of log seconds over log edges, from 100,000 samples on.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.metadata
import inspect
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from harness import MEGABYTE, OUT, peak_memory
from scipy.sparse import csr_array, load_npz, save_npz
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs

from linkwise import METHODS, Affinity, Constraints, metrics

DOCS = Path(__file__).parents[2] / "docs"
SIZES = (1_000, 10_000, 100_000, 300_000, 1_000_000)
KEYS = (
    "ncut", "sl", "csc", "signed", "fastge", "e2cp", "srcp", "gp", "sclc", "csp", "sskk", "ccsr",
    "cut", "cosc", "gfhf", "llgc", "poisson", "cscgfhf", "cpca", "clpp",
)  # fmt: skip
NO_GRAPH = ("cpca", "clpp")  # the one takes none, the other builds its own in every fit
FROM_LABELS = ("gfhf", "llgc", "poisson", "cscgfhf")
N_CLUSTERS = 5
N_COMPILED = 1_500  # samples of the call that compiles, before the clock starts
LONG = 30.0  # seconds from which a call is not repeated
FIT_FROM = 100_000
COLUMNS = (
    "method", "n", "edges", "pairs", "threads", "cpu_s", "wall_s", "graph_s", "peak_mb", "ari",
    "ari_free", "violated", "note",
)  # fmt: skip


class Stored(BaseEstimator):
    """An affinity that hands out a graph that was built before."""

    graph: csr_array | None = None

    def fit_transform(self, X, y=None):
        """Return the graph, whatever the samples."""
        return Stored.graph

    def extend(self, X):
        """Raise an error: nothing is predicted here."""
        raise NotImplementedError


class Case(NamedTuple):
    """One fit: a method on samples of one size, with so many pairs or labels."""

    key: str
    n_samples: int
    n_pairs: int
    n_threads: int


# --- data


def samples(n_samples: int):
    X, y = make_blobs(
        n_samples, 16, centers=N_CLUSTERS, cluster_std=3.0, center_box=(-5, 5), random_state=0
    )
    return X, y


def known_of(y, n_known: int, *, as_labels: bool) -> tuple[Constraints, np.ndarray]:
    """Return pairs or labels, and which samples are in none of them."""
    free = np.ones(y.size, dtype=bool)
    if not as_labels:
        known = Constraints.sample(y, n_known, random_state=0)
        free[known.must_link] = free[known.cannot_link] = False
        return known, free
    chosen = np.random.RandomState(0).choice(y.size, min(n_known, y.size // 2), replace=False)
    partial = np.full(y.size, -1)
    partial[chosen] = y[chosen]
    free[chosen] = False
    return Constraints.from_labels(partial), free


def violated_share(known: Constraints, labels) -> float:
    if known.labels is None:
        return known.n_violated(labels) / known.n_pairs
    labelled = known.labels >= 0
    return float((known.labels[labelled] != labels[labelled]).mean())


# --- in a process of its own


def build(folder: Path, n_samples: int) -> dict[str, float]:
    """Store samples and their graph."""
    X, y = samples(n_samples)
    Affinity().fit(X[:N_COMPILED])
    with peak_memory() as peak:
        wall, cpu = time.perf_counter(), time.process_time()
        W = Affinity().fit_transform(X)
        seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    save_npz(folder / "graph.npz", W, compressed=False)
    np.savez(folder / "samples.npz", X=X, y=y)
    return {**seconds, "peak": peak[0] / MEGABYTE, "edges": W.nnz // 2}


def fit(case: Case, X, y, W):
    """Return the fitted labels."""
    Stored.graph = W
    cls = METHODS[case.key]
    graph = {"affinity": Stored()} if "affinity" in inspect.signature(cls).parameters else {}
    model = cls(N_CLUSTERS, random_state=0, **graph)
    known, free = known_of(y, case.n_pairs, as_labels=case.key in FROM_LABELS)
    model.fit(X, constraints=None if case.key == "ncut" else known)
    return model.labels_, known, free


def measure(case: Case, folder: Path, repeats: int) -> dict[str, object]:
    warnings.simplefilter("ignore")
    stored = np.load(folder / "samples.npz")
    X, y, W = stored["X"], stored["y"], csr_array(load_npz(folder / "graph.npz"))
    few = np.random.RandomState(0).permutation(y.size)[:N_COMPILED]
    toy = case._replace(n_pairs=min(case.n_pairs, 200))
    try:
        fit(toy, X[few], y[few], Affinity().fit_transform(X[few]))
    except ValueError as error:  # the fit itself will raise it again
        print(error, file=sys.stderr)
    costs = []
    for repeat in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        with peak_memory() as peak:
            labels, known, free = fit(case, X, y, W)
        costs.append((time.process_time() - cpu, time.perf_counter() - wall))
        if repeat == 0:
            peak_mb = peak[0] / MEGABYTE
        if costs[-1][0] > LONG:
            break
    return {
        "cpu_s": min(cost[0] for cost in costs),
        "wall_s": min(cost[1] for cost in costs),
        "peak_mb": peak_mb,
        "ari": metrics.adjusted_rand(y, labels),
        "ari_free": metrics.adjusted_rand(y[free], labels[free]),
        "violated": violated_share(known, labels),
        "hash": hashlib.sha256(labels.astype(np.int64).tobytes()).hexdigest()[:16],
    }


# --- the parent


def child(n_threads: int, limit: float | None, *arguments: object) -> dict[str, object]:
    """Run this script on one task; return what it found, or why it did not."""
    threads = ("OMP", "OPENBLAS", "MKL", "NUMBA")
    pinned = {f"{name}_NUM_THREADS": str(n_threads) for name in threads}
    command = [sys.executable, __file__, "--child", *map(str, arguments)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **pinned},
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return {"note": f"stopped after {limit:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"note": lines[-1][:160]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def graph_of(folder: Path, n_samples: int, n_threads: int) -> tuple[Path, dict[str, object]]:
    """Return where samples and graph of a size are stored, building them if need be."""
    place = folder / str(n_samples)
    about = place / "graph.json"
    if not about.exists():
        place.mkdir(parents=True, exist_ok=True)
        found = child(n_threads, None, "graph", place, n_samples)
        if "note" in found:
            sys.exit(f"No graph of {n_samples} samples: {found['note']}")
        about.write_text(json.dumps(found))
    return place, json.loads(about.read_text())


def run(case: Case, folder: Path, options: argparse.Namespace) -> dict[str, object]:
    place, graph = graph_of(folder, case.n_samples, case.n_threads)
    found = child(case.n_threads, options.limit, "fit", place, options.repeats, *case)
    about = {"method": case.key, "n": case.n_samples, "edges": graph["edges"]}
    about |= {"pairs": case.n_pairs, "threads": case.n_threads, "graph_s": graph["cpu"]}
    return {**about, **found}


def exponent(rows: list[dict[str, object]], key: str) -> float | None:
    """Return the slope of log seconds over log edges, at the large sizes."""
    points = [
        (float(row["edges"]), float(row["cpu_s"]))
        for row in rows
        if row["method"] == key and row["n"] >= FIT_FROM and "cpu_s" in row
    ]
    if len(points) < 2:
        return None
    edges, seconds = np.log(np.array(points)).T
    return float(np.polyfit(edges, seconds, 1)[0])


def markdown(rows: list[dict[str, object]], options: argparse.Namespace) -> str:
    """Return one table of seconds by size, and one of all else at the largest size."""
    sizes = sorted({int(row["n"]) for row in rows})
    keys = list(dict.fromkeys(str(row["method"]) for row in rows))
    of = {(row["method"], row["n"]): row for row in rows}
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy")]
    lines = [
        f"CPU seconds on a given graph, {options.pairs:,} pairs, {N_CLUSTERS} clusters, "
        f"{options.threads} thread(s), best of {options.repeats}; {platform.processor() or 'CPU'}, "
        f"{os.cpu_count()} cores, {', '.join(versions)}, load {os.getloadavg()[0]:.1f}, "
        f"{time.strftime('%Y-%m-%d')}.",
        "",
        "| method | " + " | ".join(f"{n:,}" for n in sizes) + " | exponent |",
        "|---" * (len(sizes) + 2) + "|",
    ]
    for key in keys:
        power = exponent(rows, key)
        cells = [_cell(of.get((key, n), {})) for n in sizes]
        cells.append("" if power is None else f"{power:.2f}")
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    largest = sizes[-1]
    lines += [
        "",
        f"At {largest:,} samples:",
        "",
        "| method | CPU s | wall s | end to end CPU s | added MB | ARI | ARI free | violated |",
        "|---" * 8 + "|",
    ]
    for key in keys:
        row = of.get((key, largest), {})
        if "cpu_s" not in row:
            lines.append(f"| {key} | {row.get('note', '')} |" + " |" * 6)
            continue
        total = float(row["cpu_s"]) + (0.0 if key in NO_GRAPH else float(row["graph_s"]))
        lines.append(
            f"| {key} | {row['cpu_s']:.1f} | {row['wall_s']:.1f} | {total:.1f} | "
            f"{row['peak_mb']:.0f} | {row['ari']:.3f} | {row['ari_free']:.3f} | "
            f"{row['violated']:.4f} |"
        )
    return "\n".join(lines) + "\n"


def _cell(row: dict[str, object]) -> str:
    return f"{row['cpu_s']:.2f}" if "cpu_s" in row else str(row.get("note", ""))[:40]


def plot(rows: list[dict[str, object]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    colors = plt.get_cmap("tab20").colors
    ends = {}
    for at, key in enumerate(dict.fromkeys(str(row["method"]) for row in rows)):
        points = [
            (row["n"], row["cpu_s"]) for row in rows if row["method"] == key and "cpu_s" in row
        ]
        if points:
            style = "-" if at < len(colors) // 2 else "--"
            kind = {"color": colors[at % 20], "marker": "o", "ms": 3, "label": key}
            axes.loglog(*zip(*points, strict=True), style, **kind)
            ends[key] = points[-1]
    graphs = sorted({(int(row["n"]), float(row["graph_s"])) for row in rows})
    axes.loglog(*zip(*graphs, strict=True), ":", color="black", label="neighbour graph")
    ends["neighbour graph"] = graphs[-1]
    axes.set_xlabel("samples")
    axes.set_ylabel("CPU seconds")
    lines, names = axes.get_legend_handles_labels()
    slowest = sorted(range(len(names)), key=lambda at: ends[names[at]], reverse=True)
    order = {"handles": [lines[at] for at in slowest], "labels": [names[at] for at in slowest]}
    axes.legend(**order, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def same_on_threads(options: argparse.Namespace, folder: Path) -> bool:
    """Print whether one and two threads give the same labels."""
    all_same = True
    print("| method | n | 1 thread | 2 threads | same labels |\n|---|---|---|---|---|")
    for n in options.sizes:
        graph_of(folder, n, options.threads)
        for key in options.methods:
            rows = [run(Case(key, n, options.pairs, t), folder, options) for t in (1, 2)]
            same = "hash" in rows[0] and rows[0].get("hash") == rows[1].get("hash")
            all_same &= same
            seconds = [f"{row['wall_s']:.1f} s" if "wall_s" in row else row["note"] for row in rows]
            print(f"| {key} | {n:,} | {seconds[0]} | {seconds[1]} | {same} |", flush=True)
    return all_same


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(KEYS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--pairs", type=int, default=1_000)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one method")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where graphs are kept; else a temporary one")
    parser.add_argument("--same-on-threads", action="store_true", help="compare 1 and 2 threads")
    parser.add_argument("--write", action="store_true", help="put the plot into the documentation")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        if options.same_on_threads:
            sys.exit(0 if same_on_threads(options, folder) else 1)
        rows = []
        OUT.mkdir(exist_ok=True)
        with (OUT / "scale.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            for n in options.sizes:
                for key in options.methods:
                    rows.append(run(Case(key, n, options.pairs, options.threads), folder, options))
                    writer.writerow(rows[-1])
                    file.flush()
                    print(key, n, _cell(rows[-1]), file=sys.stderr, flush=True)
    table = markdown(rows, options)
    print(table)
    (OUT / "scale.md").write_text(table)
    plot(rows, OUT / "scale.png")
    if options.write:
        plot(rows, DOCS / "images" / "benchmarks" / "scale.png")
        print("![CPU seconds over samples, by method](images/benchmarks/scale.png)\n\n" + table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        task, place, *given = sys.argv[2:]
        if task == "graph":
            answer = build(Path(place), int(given[0]))
        else:
            case = Case(given[1], *map(int, given[2:]))
            answer = measure(case, Path(place), int(given[0]))
        print(json.dumps(answer))
    else:
        main()
