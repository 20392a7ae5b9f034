"""
Every method on six toy sets
============================

All methods of linkwise get the same points and the same pairs, drawn as lines: solid for
must-link, dashed for cannot-link, red where the answer violates it. The number is the adjusted
Rand index of the samples that are in no pair. Methods that need labels get those of the samples
in the pairs.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PathCollection
from sklearn.datasets import make_blobs

from linkwise import METHODS, Constraints, Prepared
from linkwise.datasets import make_circles, make_moons, make_spirals, make_xor
from linkwise.metrics import adjusted_rand
from linkwise.plots import draw_clusters, matched

sizes = make_blobs([50, 20, 10], centers=[[0, 0], [3, 2], [4, -1]], cluster_std=0.8, random_state=1)
flat = make_blobs(80, centers=[[0, 0], [0, 5], [0, 10]], random_state=2)
datasets = {
    "moons": make_moons(80, noise=0.11, random_state=0),
    "circles": make_circles(80, noise=0.05, factor=0.4, random_state=0),
    "spirals": make_spirals(90, turns=0.8, noise=0.02, random_state=0),
    "corners": make_xor(20, spread=0.25, random_state=0),
    "unequal": sizes,
    "stretched": (flat[0] * [4.0, 1.0], flat[1]),
}
PAIRS = 12


def answer(Method, data, y, known):
    """Fit a method on pairs, or on the labels of their samples if it needs labels."""
    given = known
    if Method.takes == ("labels",):
        given = Constraints.from_labels(np.where(known.constrained, y, -1))
    fixed = {"random_state": 0} if "random_state" in Method().get_params() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NCut warns that it ignores pairs
        return Method(len(np.unique(y)), **fixed).fit_predict(data, constraints=given)


def draw(keys):
    """Draw a column for each method and a row for each data set."""
    shape = len(datasets), len(keys)
    _, axes = plt.subplots(*shape, figsize=(1.3 * shape[1], 1.34 * shape[0]), layout="none")
    plt.subplots_adjust(0.02, 0.03, 0.995, 0.96, wspace=0.06, hspace=0.24)
    for row, (name, (X, y)) in zip(axes, datasets.items(), strict=True):
        data, known = Prepared(X), Constraints.sample(y, PAIRS, random_state=4)
        for ax, key in zip(row, keys, strict=True):
            labels = matched(answer(METHODS[key], data, y, known), y)
            draw_clusters(ax, X, labels, constraints=known)
            for drawn in ax.collections:  # small panels: smaller points, thinner lines
                drawn.set(linewidths=0.5 * np.asarray(drawn.get_linewidths()))
                if isinstance(drawn, PathCollection):
                    drawn.set_sizes([7])
            score = adjusted_rand(y, labels, outside=known)
            ax.set_xlabel(f"{score:.2f}", fontsize=8.5, labelpad=1)
        row[0].set_ylabel(name, fontsize=10)
    for ax, key in zip(axes[0], keys, strict=True):
        ax.set_title(METHODS[key].__name__.replace("Constrained", "Constr."), fontsize=8.5, pad=4)


# %%
# The graph-based methods first.

keys = list(METHODS)
draw(keys[:12])

# %%
# And the others: exact cuts, labels, projections, kernels, trees.

draw(keys[12:])
plt.show()
