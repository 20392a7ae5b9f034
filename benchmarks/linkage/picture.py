"""Draw the pictures of the guide "Duplicates, faces, voices": a tree with its cut, and its heights.

Run: python benchmarks/linkage/picture.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import cophenet, dendrogram, linkage
from scipy.spatial.distance import squareform

from linkwise import Constraints, Linkage
from linkwise.graph.neighbors import NeighborSearch
from linkwise.linkage.tree import candidate_pairs

GREY, BLUE, RED = "0.6", "#2166ac", "#b2182b"


def separate_things(rng):
    """Return 150 things of three samples each."""
    y = np.repeat(np.arange(150), 3)
    return rng.normal(size=(150, 8))[y] + 0.3 * rng.normal(size=(450, 8)), y


def many_things(rng):
    """Return 300 things of four samples each, and reviewed pairs, a tenth of them wrong."""
    y = np.repeat(np.arange(300), 4)
    X = rng.normal(size=(300, 10))[y] + 0.3 * rng.normal(size=(1_200, 10))
    near = candidate_pairs(NeighborSearch(X).nearest(8)[1])
    pairs = rng.permutation(near)[:250]
    wrong = rng.rand(250) < 0.1
    same = (y[pairs[:, 0]] == y[pairs[:, 1]]) ^ wrong
    return X, pairs, same, wrong


def draw_tree(path):
    """Draw the part of the tree that joins the samples of twelve things."""
    X, y = separate_things(np.random.RandomState(0))
    model = Linkage(random_state=0).fit(X)
    n_merges = len(X) - model.n_clusters_
    cut = model.tree_[n_merges - 1 : n_merges + 1, 2].mean()
    shown = slice(0, 36)
    distances = squareform(cophenet(model.tree_))[shown, shown]
    tree = linkage(squareform(distances), "single")  # the same tree, of these samples
    figure, axes = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    dendrogram(tree, ax=axes, labels=y[shown], color_threshold=cut, above_threshold_color=GREY)
    axes.axhline(cut, color=RED, lw=1.2)
    axes.annotate("cut", (1.0, cut), xycoords=("axes fraction", "data"), color=RED, va="center")
    axes.set(ylabel="log-odds below\nthe first merge", xlabel="sample, by the thing it shows")
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    figure.savefig(path, dpi=150)


def draw_heights(path):
    X, pairs, same, wrong = many_things(np.random.RandomState(0))
    known = Constraints(len(X), pairs[same], pairs[~same])
    model = Linkage(random_state=0).fit(X, constraints=known)
    found = model.result_
    height = found.learned.join_heights(pairs)
    height = np.maximum(height, found.rule.cut - 40)
    grid = np.linspace(height.min() - 2, height.max() + 2, 300)
    figure, axes = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    axes.plot(grid, found.calibration.probability(grid), color="black", lw=1.2)
    jitter = np.random.RandomState(0).uniform(-0.04, 0.04, len(pairs))
    for kind, color, word in ((True, BLUE, "answered same"), (False, RED, "answered different")):
        shown = same == kind
        axes.scatter(height[shown], kind + jitter[shown], s=9, color=color, label=word, alpha=0.6)
    suspects = {one.samples for one in model.suspects_ if one.probability > 0.5}
    named = np.array([tuple(sorted(pair)) in suspects for pair in pairs.tolist()])
    axes.scatter(
        *(height[named], (same + jitter)[named]),
        s=50,
        facecolor="none",
        edgecolor="black",
        lw=0.8,
        label=f"suspects ({int((named & wrong).sum())} of {int(named.sum())} are wrong)",
    )
    axes.axvline(found.rule.cut, color=GREY, lw=1)
    axes.set(xlabel="height at which the pair joins (mean log-odds)", ylabel="P(same)")
    axes.legend(loc="center left", fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    mpl.use("Agg")
    default = Path(__file__).parents[2] / "docs" / "images"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    draw_tree(folder / "linkage-tree.png")
    draw_heights(folder / "linkage-heights.png")
