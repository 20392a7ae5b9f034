"""Leiden on the sets of `table.py`, without pairs: modularity, and the best of six resolutions.

Run: python benchmarks/linkage/leiden.py [--sets zipf orl ...] [--seeds 1]

The graph: 15 nearest neighbours, weights ``exp(-d^2 / (2 s^2))`` with `s` the median distance. Text
in 100 singular vectors. leidenalg runs in an environment of its own, as in `records.py`; CPU
seconds are those of one resolution, without the graph.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from data import DESIGN, REPORT, load
from records import HERE, python_of
from scipy.sparse import issparse
from scores import scores
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from linkwise.graph.neighbors import NeighborSearch
from linkwise.linkage.tree import unique_pairs


def graph(X, k=15):
    """Return distinct pairs of neighbours and their weights."""
    Z = normalize(TruncatedSVD(100, random_state=0).fit_transform(X)) if issparse(X) else X
    distances, indices = NeighborSearch(Z).nearest(k)
    both = np.column_stack((np.repeat(np.arange(len(Z)), k), indices.ravel()))
    pairs, place = unique_pairs(both, len(Z))
    length = np.empty(len(pairs))
    length[place] = distances.ravel()
    return pairs, np.exp(-(length**2) / (2 * np.median(length) ** 2))


def measure(name, seed):
    X, y = load(name, seed)
    pairs, weight = graph(X)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "graph.npz", Path(folder) / "labels.npy"
        np.savez(given, pairs=pairs, weight=weight, n=y.size)
        command = [python_of("leidenalg"), HERE / "peers" / "run_leiden.py", given, found]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows = [scores(y, labels) for labels in np.load(found)]
    best = max(rows[1:], key=lambda row: row["ari"])
    return {"modularity": rows[0]["ari"], **best, **json.loads(done.stdout.splitlines()[-1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=[*DESIGN, *REPORT])
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    for name in asked.sets:
        for seed in range(asked.seeds):
            row = {key: round(float(value), 3) for key, value in measure(name, seed).items()}
            print(json.dumps({"set": name, "seed": seed, **row}), flush=True)


if __name__ == "__main__":
    main()
