"""A published benchmark with its own constraint sets: adjusted Rand index beside seven methods.

Run: python benchmarks/cut/col1.py [--shared folder] [--seeds 0 1 2] [--csv file]

Features are standardised and the graph is the default one. "free" counts only the samples that no
constraint names. Published figures are the authors'; ours are means over the seeds, with the
largest distance between two seeds where there is one.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from common import compile_kernels, parser, pin, require_folder, show, timed, with_shared
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Constraints
from linkwise.methods.cut import ConstrainedCut
from linkwise.metrics import adjusted_rand

LEVELS = (5, 10, 15, 20)
METHODS = ("PCCC", "PCCC-R", "COPKM", "CSC", "DILS", "LCC", "KMEANS")
OBJECTIVES = ("ncut", "kmeans")
FEW = 5  # free samples, up to which their score means nothing
CLEAR = 0.005  # of adjusted Rand index: a smaller difference is no win


class Scores:
    """What the seeds gave for one set, level and objective."""

    def __init__(self, X, y, known, objective, seeds):
        self.all, self.free, self.n_violated, self.seconds = [], [], 0, 0.0
        for seed in seeds:
            model = ConstrainedCut(
                np.unique(y).size, objective=objective, affinity=Affinity(), random_state=seed
            )
            _, spent = timed(lambda model=model: model.fit(X, constraints=known))
            self.seconds += spent / len(seeds)
            self.n_violated += known.n_violated(model.labels_)
            self.all.append(adjusted_rand(y, model.labels_))
            self.free.append(
                np.nan
                if (~known.constrained).sum() <= FEW
                else adjusted_rand(y, model.labels_, outside=known)
            )

    def __str__(self):
        return with_spread(self.all)


def with_spread(values):
    spread = max(values) - min(values)
    shown = f"{np.mean(values):.3f}"
    return f"{shown} [{spread:.3f}]" if spread >= 0.0005 else shown


def number(value):
    return "-" if value is None or np.isnan(value) else f"{value:.3f}"


def read_case(folder, name, level):
    stored = np.load(folder / f"{name}.npz")
    X = StandardScaler().fit_transform(stored["X"])
    known = Constraints(
        X.shape[0], must_link=stored[f"must_{level}"], cannot_link=stored[f"cannot_{level}"]
    )
    return X, stored["y"], known


def mean_row(level, ours, published):
    """Return the means of a level, and wins and losses against PCCC-R."""
    reference = np.array([p["PCCC-R"] for p in published])
    row = [f"{level} %"]
    for objective in OBJECTIVES:
        scores = np.array([s[objective].all for s in ours])
        means = scores.mean(axis=1)
        won, lost = (means > reference + CLEAR).sum(), (means < reference - CLEAR).sum()
        by_seed = scores.mean(axis=0)
        row += [f"{means.mean():.3f}", f"{by_seed.min():.3f} to {by_seed.max():.3f}"]
        row += [f"{won} to {lost}"]
    for method in METHODS:
        found = [np.nan if p[method] is None else p[method] for p in published]
        row.append(f"{np.nanmean(found):.3f} ({np.isfinite(found).sum()})")
    for objective in OBJECTIVES:
        free = [np.mean(s[objective].free) for s in ours if np.isfinite(s[objective].free[0])]
        row.append(f"{np.mean(free):.3f} ({len(free)})" if free else "-")
    row += [sum(s[objective].n_violated for s in ours for objective in OBJECTIVES)]
    return row + [f"{sum(s[objective].seconds for s in ours):.1f}" for objective in OBJECTIVES]


def main():
    options = with_shared(parser(__doc__))
    options.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    given = options.parse_args()
    folder = require_folder(given.shared, "benchmark") / "col1"
    published = json.loads((folder / "published.json").read_text())["published"]
    names = sorted(path.stem for path in folder.glob("*.npz"))
    pin()
    compile_kernels(means=True)
    rows, means = [], []
    for level in LEVELS:
        ours, theirs = [], []
        for name in names:
            X, y, known = read_case(folder, name, level)
            found = {o: Scores(X, y, known, o, given.seeds) for o in OBJECTIVES}
            ours.append(found)
            theirs.append(published[name][str(level)])
            rows.append(
                [
                    name,
                    f"{level} %",
                    *(str(found[o]) for o in OBJECTIVES),
                    *(number(theirs[-1][method]) for method in METHODS),
                    int((~known.constrained).sum()),
                    *(number(np.mean(found[o].free)) for o in OBJECTIVES),
                    sum(found[o].n_violated for o in OBJECTIVES),
                ]
            )
            print(*rows[-1], file=sys.stderr, flush=True)
        means.append(mean_row(level, ours, theirs))
    header = ["set", "pairs", *OBJECTIVES, *METHODS, "free samples"]
    header += [*(f"free, {o}" for o in OBJECTIVES), "violated"]
    show("Adjusted Rand index", header, rows, given.csv)
    header = ["pairs"]
    for objective in OBJECTIVES:
        header += [objective, f"{objective}, by seed", "won to lost against PCCC-R"]
    header += [*(f"{m} (sets)" for m in METHODS), *(f"free, {o} (sets)" for o in OBJECTIVES)]
    header += ["violated", *(f"CPU s, {o}" for o in OBJECTIVES)]
    show(f"Means of {len(names)} sets", header, means)


if __name__ == "__main__":
    main()
