"""The number of clusters unknown: how often `Auto` finds it, beside the eigengap alone.

Run: python benchmarks/auto/clusters.py [--data folder] [--draws 2]

The eigengap takes the number after which the largest gap of the normalised Laplacian's eigenvalues
follows, within the range that `Auto` considers. Shares are of real sets, of seven shapes (XOR has
two numbers of clusters), and of the mix of shapes and ten real sets by which the method was first
judged. The last row compares CPU seconds with those of a fit with the number of classes given.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

import numpy as np
from common import DESIGN, OUT, SHARED, VALIDATION, load, number, pin, show
from shapes import shapes
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Auto, Constraints, NCut
from linkwise.metrics import adjusted_rand

AMOUNTS = (0.0, 0.1, 0.5, 1.0)
SETS = [
    name
    for name in (*DESIGN, *VALIDATION)
    if name not in {"mit8_gist", "corel15_gist", "usps", "orl_32x32", "yale_32x32"}
]
MOST = 12
DIGITS = 1_000
NOT_IN_THE_MIX = {"sonar", "soybean_small"}


def data_sets(asked):
    """Yield the groups of a set, its name, samples and classes."""
    for name in asked.sets:
        groups = ["real sets"] if name in NOT_IN_THE_MIX else ["real sets", "the mix"]
        yield groups, name, *load(asked.data, name)
    if asked.sets == SETS:
        X, y = load_digits(return_X_y=True)
        kept = np.random.RandomState(0).permutation(y.size)[:DIGITS]
        yield ["the mix"], "digits", StandardScaler().fit_transform(X[kept]), y[kept]
        for name, X, y in shapes():
            if name != "XOR":
                yield ["shapes", "the mix"], name, X, y


def by_eigengap(X):
    W = Affinity().fit_transform(X)
    values = NCut(MOST + 1, affinity="precomputed", random_state=0).fit(W).result_.eigenvalues
    return int(np.argmax(np.diff(values)[1:MOST]) + 2)


def timed(model, X, known):
    start = time.process_time()
    model.fit(X, constraints=known)
    return model, time.process_time() - start


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=SHARED / "data")
    options.add_argument("--sets", nargs="*", default=SETS)
    options.add_argument("--draws", type=int, default=2)
    asked = options.parse_args()
    pin()
    rows = []
    errors = defaultdict(lambda: defaultdict(list))  # by group, then by the number of pairs
    seconds = {amount: [] for amount in AMOUNTS}
    for groups, name, X, y in data_sets(asked):
        true = np.unique(y).size
        gap = by_eigengap(X)
        for group in groups:
            errors[group]["gap"].append(abs(gap - true))
        row = [name, true, gap]
        for amount in AMOUNTS:
            found, scores, sure = [], [], []
            for draw in range(asked.draws if amount else 1):
                known = Constraints.sample(y, round(amount * y.size), random_state=draw)
                model, unknown = timed(Auto(random_state=draw), X, known)
                seconds[amount].append((unknown, timed(Auto(true, random_state=draw), X, known)[1]))
                found.append(model.n_clusters_)
                sure.append(model.report_.n_clusters_probability[model.n_clusters_])
                scores.append(adjusted_rand(y, model.labels_))
                for group in groups:
                    errors[group][amount].append(abs(found[-1] - true))
            shown = ", ".join(map(str, found))
            row.append(f"{shown} ({np.mean(sure):.0%}; ARI {number(np.mean(scores))})")
        rows.append(row)
        print(row, flush=True)
    for group, of_amount in errors.items():
        for within in (0, 1):
            shares = [np.mean(np.array(of_amount[key]) <= within) for key in ("gap", *AMOUNTS)]
            cells = [f"{100 * one:.0f} %" for one in shares]
            rows.append([f"{group}: share within {within}", "", *cells])
    means = [np.mean(seconds[amount], axis=0) for amount in AMOUNTS]
    cells = [f"{unknown:.2f}; {given:.2f}" for unknown, given in means]
    rows.append(["CPU s: unknown; given", "", "", *cells])
    head = ["set", "classes", "eigengap", *(f"{a:g} n pairs" for a in AMOUNTS)]
    path = OUT / "clusters.md"
    path.unlink(missing_ok=True)
    show("The number of clusters that was found", head, rows, path)


if __name__ == "__main__":
    main()
