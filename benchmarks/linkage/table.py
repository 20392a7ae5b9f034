"""`Linkage` on sets of many small clusters: with and without reviewed pairs, some of them wrong.

Run: python benchmarks/linkage/table.py [--sets zipf orl ...] [--seeds 5] [--levels 0 50 10]

Levels are n/50, n/10, ... pairs; "w" after one means that 10 % of them are wrong. FEBRL sets need
files that `febrl.py` writes. Figures are medians over the seeds; a seed draws the generated data,
the pairs and the projection.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np
from data import DESIGN, REPORT, load, reviewed_pairs
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkwise import Linkage


def measure(name, level, seed):
    """Return ARI, clusters found, CPU seconds and the share of wrong pairs among the suspects."""
    X, y = load(name, seed)
    known, wrong = None, set()
    if level != "0":
        share = 0.1 if level.endswith("w") else 0.0
        m = max(8, y.size // int(level.rstrip("w")))
        known, wrong = reviewed_pairs(X, y, m, wrong=share, seed=seed)
    start = time.process_time()
    model = Linkage(random_state=seed).fit(X, constraints=known)
    spent = time.process_time() - start
    named = {s.samples for s in model.suspects_[: len(wrong)]}
    found = len(named & wrong) / len(wrong) if wrong else np.nan
    score = adjusted_rand_score(y, model.labels_)
    return score, model.n_clusters_, spent, model.error_rate_ or np.nan, found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=[*DESIGN, *REPORT])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--levels", nargs="*", default=["0", "50", "10", "10w"])
    asked = parser.parse_args()
    threadpool_limits(1)
    print(f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print("| set | group | pairs | ARI | lowest | k found | CPU s | error rate | suspects |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in asked.sets:
        group = "design" if name in DESIGN else "report"
        for level in asked.levels:
            rows = np.array([measure(name, level, seed) for seed in range(asked.seeds)])
            score, k, spent, rate, found = np.median(rows, axis=0)
            print(
                f"| {name} | {group} | {level} | {score:.3f} | {rows[:, 0].min():.3f} | {k:.0f} "
                f"| {spent:.1f} | {rate:.3f} | {found:.2f} |",
                flush=True,
            )
    print(f"\nPeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB.")


if __name__ == "__main__":
    main()
