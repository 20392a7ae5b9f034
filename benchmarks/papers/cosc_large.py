"""Rangapuram & Hein 2012, section 6: COSC on all of MNIST.

Run: python benchmarks/papers/cosc_large.py [--full]

"Scales to large datasets": 70,000 images, 50 principal components, the default graph of linkwise,
ten clusters, 500 and 5,000 random pairs, one draw and one thread. In reduced size a stratified
subsample of 10,000 images with 500 pairs. The table has CPU seconds and the memory that the fit
adds at its peak, without the graph. The paper gives no times.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "speed"))
from common import Claim, Means, Outcome, finish, load_data, parsed, pinned, raw_path
from cosc_table2 import subsample
from harness import MEGABYTE, peak_memory

from linkwise import COSC, Affinity
from linkwise.evaluate import draw_constraints
from linkwise.metrics import clustering_error, ncut, violated_share

NAME = "cosc_large"
PAPER = "Rangapuram & Hein 2012: constrained 1-spectral clustering (COSC)"
TITLE = "Section 6: all of MNIST"


def prepared(n_samples):
    """Return the graph and the digits."""
    X, y = load_data("mnist")
    kept = subsample(y, n_samples)
    Z = PCA(50, random_state=0).fit_transform(X[kept] / 255)
    del X
    return Affinity().fit_transform(Z), y[kept]


def measured(W, y, n_pairs):
    """Return the figures of one fit."""
    known = draw_constraints(y, n_pairs, data="mnist", repetition=0, random_state=0)
    model = COSC(10, affinity="precomputed", random_state=0)
    with peak_memory() as peak:
        start = time.process_time()
        labels = model.fit(W, constraints=known).labels_
        seconds = time.process_time() - start
    return {
        "n_samples": int(y.size),
        "amount": n_pairs,
        "cpu_seconds": seconds,
        "megabytes": peak[0] / MEGABYTE,
        "process_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "ncut": ncut(W, labels),
        "clustering_error": clustering_error(y, labels),
        "violated_share": violated_share(known, labels),
    }


def warm_up():
    """Fit a small graph, so that no clock counts compilation."""
    y = np.repeat(np.arange(3), 20)
    X = np.random.RandomState(0).normal(size=(60, 2)) + 4 * y[:, None]
    COSC(3, random_state=0).fit(X, constraints=draw_constraints(y, 20, random_state=0))


def experiment(n_samples, amounts, path):
    """Return the figures of all fits; finished ones are read from the file."""
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    left = [m for m in amounts if m not in {found["amount"] for found in done}]
    if left:
        warm_up()
        W, y = prepared(n_samples)
    for n_pairs in left:
        done.append(measured(W, y, n_pairs))
        with path.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print(done[-1], flush=True)
    return [found for found in done if found["amount"] in amounts]


def table(found, size):
    return [
        {
            "size": size,
            "data": f"mnist {fit['n_samples']}",
            "n_samples": fit["n_samples"],
            "method": "cosc",
            "amount": fit["amount"],
            "share": "",
            "metric": metric,
            "n_draws": 1,
            "n": 1,
            "mean": float(value),
            "sd": np.nan,
            "failures": 0,
            "problems": "",
            "seconds": "",
        }
        for fit in found
        for metric, value in fit.items()
        if metric not in {"n_samples", "amount"}
    ]


def finishes(rows):
    """Judge, per number of pairs, whether COSC answers and violates nothing."""
    metrics = ("cpu_seconds", "megabytes", "ncut", "clustering_error", "violated_share")
    means = {metric: Means(rows, metric) for metric in metrics}
    found = {}
    for data in means["ncut"].datasets:
        for amount in means["ncut"].amounts(data):
            seconds, megabytes, cut, error, violated = (
                means[metric].at(data, "cosc", amount) for metric in metrics
            )
            figures = (
                f"{seconds:.0f} s CPU, {megabytes:.0f} MB, NCut {cut:.3f}, error {error:.3f}, "
                f"violated share {violated:g}"
            )
            found[f"{data}, {amount} pairs"] = Outcome(violated == 0, figures)
    return found


CLAIMS = (Claim("COSC scales to MNIST, and satisfies all constraints there", finishes),)


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    n_samples, amounts = (70_000, (500, 5000)) if given.full else (10_000, (500,))
    with pinned():
        rows = table(experiment(n_samples, amounts, raw_path(given, NAME)), given.size)
    what = f"{n_samples:,} images, {' and '.join(map(str, amounts))} pairs, one draw, one thread"
    finish(given, NAME, rows, CLAIMS, {}, what=what)


if __name__ == "__main__":
    main()
