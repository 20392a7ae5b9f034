"""Wrong answers among the pairs: quality, the estimated share, and the suspects.

Run: python benchmarks/auto/noise.py [--data folder] [--draws 2]

Random pairs of which a share is flipped. ARI over all and over free samples, the share that
`Auto` estimates, and the area under the curve of its suspects: the probability that a wrong pair is
ranked before a right one. `cut` in its soft mode and `ncut`, which ignores pairs, are run as well.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import DESIGN, OUT, SHARED, VALIDATION, load, number, pin, show, with_flips
from sklearn.metrics import roc_auc_score

from linkwise import Auto, ConstrainedCut, Constraints, NCut
from linkwise.metrics import adjusted_rand

# The small sets: as in the study that the method comes from.
SETS = [
    name
    for name in (*DESIGN, *VALIDATION)
    if name not in {"mit8_gist", "corel15_gist", "usps", "orl_32x32"}
]
AMOUNTS = (0.1, 0.5, 2.0)
SHARES = (0.0, 0.1, 0.2)
FEW = 5


def one_fit(X, y, known, wrong, seed):
    k = np.unique(y).size
    model = Auto(k, random_state=seed).fit(X, constraints=known)
    free = (~known.constrained).sum() >= FEW
    suspicion = [s.probability for s in model.suspects_]
    is_wrong = [tuple(sorted(s.samples)) in wrong for s in model.suspects_]
    cut = ConstrainedCut(k, constraints_mode="soft", random_state=seed).fit(X, constraints=known)
    return (
        adjusted_rand(y, model.labels_),
        adjusted_rand(y, model.labels_, outside=known) if free else np.nan,
        model.noise_,
        roc_auc_score(is_wrong, suspicion) if 0 < sum(is_wrong) < len(is_wrong) else np.nan,
        adjusted_rand(y, cut.labels_),
        adjusted_rand(y, NCut(k, random_state=seed).fit(X).labels_),
    )


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=SHARED / "data")
    options.add_argument("--sets", nargs="*", default=SETS)
    options.add_argument("--draws", type=int, default=2)
    asked = options.parse_args()
    pin()
    rows = []
    data = {name: load(asked.data, name) for name in asked.sets}
    for amount in AMOUNTS:
        for share in SHARES:
            cells = []
            for X, y in data.values():
                for draw in range(asked.draws):
                    true = Constraints.sample(y, round(amount * y.size), random_state=draw)
                    known, wrong = with_flips(true, share, draw)
                    cells.append(one_fit(X, y, known, wrong, draw))
            means = np.nanmean(cells, axis=0)
            n_auc = int(np.isfinite(np.array(cells)[:, 3]).sum())
            row = [f"{amount:g} n", f"{100 * share:.0f} %", *map(number, means[:3])]
            row += [f"{number(means[3])} ({n_auc})" if n_auc else "-", *map(number, means[4:])]
            rows.append(row)
            print(row, flush=True)
    head = ["pairs", "wrong", "ARI", "ARI, free", "estimated share", "AUC of suspects (fits)"]
    path = OUT / "noise.md"
    path.unlink(missing_ok=True)
    show(
        f"Wrong pairs, {len(data)} sets, {asked.draws} draws",
        [*head, "cut soft", "ncut"],
        rows,
        path,
    )


if __name__ == "__main__":
    main()
