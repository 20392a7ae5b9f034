"""
The same data, three meanings
=============================

Nine groups of points: are the clusters the rows, the columns or the diagonals? The data cannot
tell. Six pairs can. Every panel has the same points; only the pairs differ.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from linkwise import ConstrainedCut, Constraints
from linkwise.metrics import adjusted_rand
from linkwise.plots import draw_clusters

row, column = np.divmod(np.arange(9), 3)
X, group = make_blobs(
    [25] * 9, centers=3.0 * np.column_stack((column, -row)), cluster_std=0.55, random_state=0
)

# %%
# What each meaning says about a few points: three groups belong together, so two must-links join
# them.

meanings = {"Rows": row, "Columns": column, "Diagonals": (row + column) % 3}
middle = [np.argmin(((X - X[group == g].mean(axis=0)) ** 2).sum(axis=1)) for g in range(9)]


def pairs_of(meaning):
    """Join the three groups of each cluster by two must-links."""
    members = [np.flatnonzero(meaning == cluster) for cluster in range(3)]
    return [(middle[a], middle[b]) for m in members for a, b in pairwise(m)]


# %%
# ``ConstrainedCut`` satisfies every pair and finds the lowest cut among what is left.

figure, axes = plt.subplots(1, 3, figsize=(11, 4.2))
for ax, (name, meaning) in zip(axes, meanings.items(), strict=True):
    known = Constraints(len(X), must_link=pairs_of(meaning))
    labels = ConstrainedCut(3, random_state=0).fit_predict(X, constraints=known)
    score = adjusted_rand(meaning[group], labels)
    draw_clusters(ax, X, labels, constraints=known, title=f"{name}: six pairs, ARI {score:.2f}")
plt.show()
