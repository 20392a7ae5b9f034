"""A published benchmark with its own constraint sets: `Auto(hard=True)` beside PCCC-R and `cut`.

Run: python benchmarks/auto/col1.py [--shared folder] [--seeds 0 1]

ARI over all samples; published figures are the authors'. Features are standardised.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from common import OUT, SHARED, number, pin, show
from sklearn.preprocessing import StandardScaler

from linkwise import Auto, ConstrainedCut, Constraints
from linkwise.metrics import adjusted_rand

LEVELS = (5, 10, 15, 20)
THEIRS = ("PCCC-R", "PCCC", "COPKM", "CSC", "DILS", "LCC", "KMEANS")
OURS = {
    "auto hard": lambda k, seed: Auto(k, hard=True, random_state=seed),
    "auto": lambda k, seed: Auto(k, random_state=seed),
    "cut": lambda k, seed: ConstrainedCut(k, random_state=seed),
}


def one_case(folder, name, level, seeds):
    stored = np.load(folder / f"{name}.npz")
    X, y = StandardScaler().fit_transform(stored["X"]), stored["y"]
    must, cannot = stored[f"must_{level}"], stored[f"cannot_{level}"]
    known = Constraints(y.size, must_link=must, cannot_link=cannot)
    found = {}
    for method, make in OURS.items():
        start = time.process_time()
        labels = [make(np.unique(y).size, seed).fit(X, constraints=known).labels_ for seed in seeds]
        found[method] = (
            np.mean([adjusted_rand(y, one) for one in labels]),
            sum(known.n_violated(one) for one in labels),
            (time.process_time() - start) / len(seeds),
        )
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--shared", type=Path, default=SHARED)
    options.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    asked = options.parse_args()
    folder = asked.shared / "benchmark" / "col1"
    published = json.loads((folder / "published.json").read_text())["published"]
    names = sorted(path.stem for path in folder.glob("*.npz"))
    pin()
    path = OUT / "col1.md"
    path.unlink(missing_ok=True)
    means, cells = [], []
    for level in LEVELS:
        ours = [one_case(folder, name, level, asked.seeds) for name in names]
        theirs = [published[name][str(level)] for name in names]
        for name, mine, other in zip(names, ours, theirs, strict=True):
            figures = [number(mine[m][0]) for m in OURS]
            figures += [number(other[m]) for m in THEIRS]
            cells.append([name, f"{level} %", *figures, mine["auto hard"][1], mine["auto"][1]])
        row = [f"{level} %", *(number(np.mean([one[m][0] for one in ours])) for m in OURS)]
        for method in THEIRS:
            known = [one[method] for one in theirs if one[method] is not None]
            row.append(f"{np.mean(known):.3f} ({len(known)})")
        row.append(sum(one["auto hard"][1] for one in ours))
        row += [number(np.mean([one[m][2] for one in ours]), 2) for m in OURS]
        means.append(row)
        print(row, flush=True)
    head = ["set", "pairs", *OURS, *THEIRS, "violated, hard", "violated, soft"]
    show("Adjusted Rand index", head, cells, path)
    head = ["pairs", *OURS, *(f"{m} (sets)" for m in THEIRS), "violated, hard"]
    show(f"Means of {len(names)} sets", [*head, *(f"CPU s, {m}" for m in OURS)], means, path)


if __name__ == "__main__":
    main()
