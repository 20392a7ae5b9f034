"""Draw what `Auto` did on one set: docs/images/auto.png.

Run: python benchmarks/auto/picture.py [--output file]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from common import with_flips
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from linkwise import Auto, Constraints, NCut
from linkwise.metrics import adjusted_rand

COLORS = np.array(["#4477aa", "#ee6677", "#228833"])
N_PAIRS, WRONG = 40, 0.1


def named(labels, y):
    """Return the labels in the numbers of the classes they agree with most."""
    table = np.array([[np.sum((labels == a) & (y == b)) for b in range(3)] for a in range(3)])
    return linear_sum_assignment(-table)[1][labels]


def scatter(axis, P, labels, y, title, size=18.0, marked=True):
    axis.scatter(*P.T, c=COLORS[labels], s=size, linewidths=0)
    if marked:
        wrong = labels != y
        axis.scatter(*P[wrong].T, s=60, facecolors="none", edgecolors="black", linewidths=0.8)
    axis.set_title(title, fontsize=10)
    axis.set_xticks([])
    axis.set_yticks([])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parents[2] / "docs" / "images" / "auto.png"
    options.add_argument("--output", type=Path, default=default)
    asked = options.parse_args()
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    P = PCA(2).fit_transform(X)
    known, wrong = with_flips(Constraints.sample(y, N_PAIRS, random_state=1), WRONG, 0)
    before = named(NCut(3, random_state=0).fit(X).labels_, y)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    after = named(model.labels_, y)
    figure, axes = plt.subplots(1, 4, figsize=(16, 4), width_ratios=[1, 1, 1, 0.9])
    scatter(axes[0], P, before, y, f"without constraints: ARI {adjusted_rand(y, before):.2f}")
    axis = axes[1]
    scatter(axis, P, np.zeros_like(y), y, "", size=6.0, marked=False)
    for pairs, style, color in (
        (known.must_link, "-", "#228833"),
        (known.cannot_link, ":", "#aa3377"),
    ):
        for i, j in pairs:
            axis.plot(*P[[i, j]].T, style, color=color, linewidth=0.9)
    suspects = model.suspects_[: len(wrong)]
    for suspect in suspects:
        i, j = suspect.samples
        hit = tuple(sorted((i, j))) in wrong
        axis.plot(*P[[i, j]].T, "-", color="black" if hit else "#999999", linewidth=2.2)
    found = sum(tuple(sorted(s.samples)) in wrong for s in suspects)
    axis.set_title(
        f"{N_PAIRS} pairs, {len(wrong)} of them wrong;\n"
        f"the {len(wrong)} first suspects (bold): {found} right",
        fontsize=10,
    )
    certainty = model.predict_proba(X).max(axis=1)
    title = f"Auto: ARI {adjusted_rand(y, after):.2f}; dots shrink where it is unsure"
    scatter(axes[2], P, after, y, title, size=4 + 40 * np.maximum(certainty - 0.4, 0))
    weights = defaultdict(float)
    for voice in model.report_.voices:
        weights["\n+ ".join(voice.bases)] += voice.weight
    weights = dict(sorted(weights.items(), key=lambda item: -item[1]))
    axes[3].barh(range(len(weights)), list(weights.values()), color="#4477aa")
    axes[3].set_yticks(range(len(weights)), list(weights), fontsize=8)
    axes[3].invert_yaxis()
    axes[3].set_title("features of the models, by weight", fontsize=10)
    figure.tight_layout()
    figure.savefig(asked.output, dpi=80)
    print(model.report_, found, len(wrong), round(model.noise_, 3))


if __name__ == "__main__":
    main()
