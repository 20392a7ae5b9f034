"""Every method on the same data, pairs and draws: quality, violated share, CPU seconds.

Run: python benchmarks/quality/pairs.py [--data folder] [--sets iris wine] [--methods cut signed]

Six standardised sets; n/10, n/2 and 2n random pairs labelled by the true classes; five draws. ARI
over all samples and over the free ones, which no pair names. Methods that need labels raise an
error for pairs that name too few groups: the number of such draws is in brackets. Writes
out/pairs.csv.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1] / "speed"))
from harness import report

from linkwise import METHODS, Constraints

DATA = Path(__file__).parents[3] / "shared" / "data"
SETS = ["iris", "wine", "wdbc", "ionosphere", "glass", "digits"]
SHARES = [0.1, 0.5, 2.0]
N_DRAWS = 5
OUT = Path(__file__).parent / "out"


def load(folder, name):
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        stored = np.load(Path(folder) / f"{name}.npz")
        X, y = stored["X"].astype(float), np.unique(stored["y"], return_inverse=True)[1]
    return StandardScaler().fit_transform(X), y


def one_fit(key, X, y, known):
    """Return ARI over all and free samples, violated share, CPU seconds; None after an error."""
    model = METHODS[key](np.unique(y).size)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    start = time.process_time()
    try:
        labels = model.fit(X, constraints=known if key != "ncut" else None).labels_
    except ValueError as error:
        if "group" not in str(error) and "two clusters" not in str(error):
            raise
        return None
    seconds = time.process_time() - start
    free = ~known.constrained
    free_ari = adjusted_rand_score(y[free], labels[free]) if free.sum() > 5 else np.nan
    violated = known.n_violated(labels) / known.n_pairs
    return adjusted_rand_score(y, labels), free_ari, violated, seconds


def compile_kernels(keys):
    """Fit every method once on tiny data, so that no clock counts compilation."""
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 3)) + 4 * y[:, None]
    for k in (2, 3):
        classes = np.minimum(y, k - 1)
        for key in keys:
            one_fit(key, X, classes, Constraints.sample(classes, 40, random_state=0))


def measure(keys, sets, folder):
    for name in sets:
        X, y = load(folder, name)
        for share in SHARES:
            for key in keys:
                fits = [
                    one_fit(key, X, y, Constraints.sample(y, round(share * y.size), draw))
                    for draw in range(N_DRAWS)
                ]
                done = [fit for fit in fits if fit is not None]
                means = np.nanmean(done, axis=0) if done else [np.nan] * 4
                yield name, share, key, *means, N_DRAWS - len(done)
                print(f"{name} {share:g} n {key}: {means}", file=sys.stderr, flush=True)


def cell(row):
    _, _, _, ari, free, violated, seconds, n_failed = row
    if n_failed == N_DRAWS:
        return "error"
    shown = f"{ari:.3f} / {'-' if np.isnan(free) else f'{free:.3f}'} / {100 * violated:.0f} %"
    return f"{shown} / {seconds:.2f}" + (f" [{n_failed}]" if n_failed else "")


def table(rows, keys, sets):
    by_place = {row[:3]: row for row in rows}
    for share in SHARES:
        yield (
            share,
            f"{share:g} n pairs: ARI of all / of free samples / violated / CPU s",
            ["method", *sets],
            [[key, *(cell(by_place[name, share, key]) for name in sets)] for key in keys],
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        compile_kernels(asked.methods)
        rows = list(measure(asked.methods, asked.sets, asked.data))
    OUT.mkdir(exist_ok=True)
    with (OUT / "pairs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = ["set", "pairs per sample", "method", "ari", "free_ari", "violated", "cpu_s"]
        writer.writerow([*names, "errors"])
        writer.writerows(rows)
    for share, title, head, body in table(rows, asked.methods, asked.sets):
        report(f"quality_{share:g}n", title, head, body)


if __name__ == "__main__":
    main()
