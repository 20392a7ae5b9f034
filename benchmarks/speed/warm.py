"""The second fit of prepared data against the first: CPU seconds, same labels, quality.

Run: python benchmarks/speed/warm.py [--n 100000] [--features 16] [--methods sl csc]

Overlapping blobs, 1,000 random pairs; then ten pairs more. "first" is a fit from the samples,
graph included; "second" the fit of the same prepared data with the ten pairs more, "anew" with
1,000 other pairs. The labels of the second fit are compared with those of an unprepared one.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from harness import report
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkwise import METHODS, Constraints, Prepared

N_PAIRS, N_MORE = 1_000, 10


def spent(call):
    """Return the answer and the CPU seconds of a call."""
    start = time.process_time()
    answer = call()
    return answer, time.process_time() - start


def more(known, y, seed):
    """Return the pairs with a few more."""
    new = Constraints.sample(y, N_MORE, random_state=seed)
    return Constraints(
        y.size,
        must_link=np.vstack([known.must_link, new.must_link]),
        cannot_link=np.vstack([known.cannot_link, new.cannot_link]),
    )


def one_method(key, X, y, asked):
    k = np.unique(y).size
    first = Constraints.sample(y, N_PAIRS, random_state=0)
    second, anew = more(first, y, 1), Constraints.sample(y, N_PAIRS, random_state=2)

    def fit(data, known):
        return METHODS[key](k, random_state=0).fit(data, constraints=known).labels_

    seconds = {"first": [], "second": [], "anew": []}
    for _ in range(asked.repeats):
        data = []
        cost = spent(lambda data=data: data.append(Prepared(X)) or fit(data[0], first))[1]
        seconds["first"].append(cost)
        labels, cost = spent(lambda data=data: fit(data[0], second))
        seconds["second"].append(cost)
        seconds["anew"].append(spent(lambda data=data: fit(data[0], anew))[1])
    best = {name: min(values) for name, values in seconds.items()}
    cold = METHODS[key](k, affinity="precomputed", random_state=0)
    cold = cold.fit(data[0].W, constraints=second).labels_
    return [
        f"`{key}`",
        *(f"{best[name]:.2f}" for name in ("first", "second", "anew")),
        f"{100 * best['second'] / best['first']:.1f} %",
        f"{100 * best['anew'] / best['first']:.1f} %",
        f"{adjusted_rand_score(cold, labels):.4f}",
        f"{adjusted_rand_score(y, labels):.3f}",
        f"{adjusted_rand_score(y, cold):.3f}",
    ]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--n", type=int, default=100_000)
    options.add_argument("--features", type=int, default=16)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--methods", nargs="*", default=["sl", "csc", "signed", "e2cp", "srcp"])
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    X, y = make_blobs(
        asked.n, asked.features, centers=5, cluster_std=3.0, center_box=(-5, 5), random_state=0
    )
    small = slice(0, 6_000)
    with threadpool_limits(1):
        for key in asked.methods:  # compiles
            data = Prepared(X[small])
            known = Constraints.sample(y[small], 100, random_state=0)
            METHODS[key](5, random_state=0).fit(data, constraints=known)
        rows = [one_method(key, X, y, asked) for key in asked.methods]
    header = ["method", "first, s", "second, s", "anew, s", "second / first", "anew / first"]
    header += ["ARI to unprepared", "ARI", "ARI unprepared"]
    report("warm", f"Fits of prepared data, {asked.n:,} samples", header, rows)


if __name__ == "__main__":
    main()
