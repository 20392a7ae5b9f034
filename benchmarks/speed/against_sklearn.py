"""NCut against scikit-learn's SpectralClustering on neighbour graphs: seconds, memory, ARI."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import numpy as np
from harness import MEGABYTE, best_of, peak_memory, report
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs

from linkwise import NCut
from linkwise.metrics import adjusted_rand

# Draws of the data over which ARI is averaged; scikit-learn needs minutes for the largest.
DRAWS = {2_000: 10, 10_000: 3, 20_000: 1}
N_CLUSTERS = 5


def make_model(name: str):
    if name == "linkwise":
        return NCut(N_CLUSTERS, random_state=0)
    return SpectralClustering(N_CLUSTERS, affinity="nearest_neighbors", random_state=0)


def measure(name: str, n_samples: int) -> dict[str, float]:
    warnings.simplefilter("ignore")
    make_model(name).fit(draw(500, 0)[0])
    model = make_model(name)
    quality = []
    for seed in range(DRAWS[n_samples]):
        X, y = draw(n_samples, seed)
        with peak_memory() as peak:
            model.fit(X)
        quality.append(adjusted_rand(y, model.labels_))
    _, cost = best_of(lambda: model.fit(X), repeats=3 if n_samples <= 10_000 else 1)
    return {
        "seconds": cost.seconds,
        "peak_MB": peak[0] / MEGABYTE,
        "ari": float(np.mean(quality)),
    }


def draw(n_samples: int, seed: int):
    return make_blobs(n_samples, 10, centers=N_CLUSTERS, cluster_std=4.0, random_state=seed)


def main() -> None:
    rows = []
    for n_samples in DRAWS:
        found = {}
        for name in ("linkwise", "scikit-learn"):
            command = [sys.executable, __file__, "--child", name, str(n_samples)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name] = json.loads(done.stdout.splitlines()[-1])
        ours, theirs = found["linkwise"], found["scikit-learn"]
        rows.append(
            [
                f"{n_samples:,}",
                f"{ours['seconds']:.2f}",
                f"{theirs['seconds']:.2f}",
                f"{theirs['seconds'] / ours['seconds']:.1f} x",
                f"{ours['peak_MB']:.0f}",
                f"{theirs['peak_MB']:.0f}",
                f"{ours['ari']:.3f}",
                f"{theirs['ari']:.3f}",
            ]
        )
    header = ["n", "NCut s", "scikit-learn s", "faster", "NCut MB", "scikit-learn MB",
              "ARI", "scikit-learn ARI"]  # fmt: skip
    report(
        "against_sklearn",
        "NCut against SpectralClustering(affinity='nearest_neighbors'), blobs in 10 dimensions, "
        f"k = {N_CLUSTERS}, one thread",
        header,
        rows,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        main()
