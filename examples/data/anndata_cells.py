"""
Single cells: AnnData in three lines
====================================

``linkwise.tl.cluster`` works like the tools of scanpy: it takes the types that you know of some
cells, and writes the clusters into ``adata.obs``.
"""

import matplotlib.pyplot as plt
import numpy as np
import scanpy

from linkwise import tl
from linkwise.metrics import adjusted_rand

cells = scanpy.datasets.pbmc68k_reduced()  # 700 blood cells, their graph and a map; part of scanpy
truth = cells.obs["bulk_labels"].astype(str).to_numpy()

# %%
# The type of 60 cells is known, of the others not.

shown = np.random.RandomState(0).permutation(len(truth))[:60]
cells.obs["known"] = [name if k in set(shown) else None for k, name in enumerate(truth)]
tl.cluster(cells, labels="known")
print(cells.obs["linkwise"].value_counts().to_string())

# %%
# Compare with Louvain clusters that come with the data, which know nothing of types. Scores are
# of the 640 cells whose type was not given.

free = np.setdiff1d(np.arange(len(truth)), shown)
found = cells.obs["linkwise"].astype(str).to_numpy()
louvain = cells.obs["louvain"].astype(str).to_numpy()
panels = {
    "60 known cells": (cells.obs["known"].to_numpy(), None),
    "Louvain": (louvain, louvain),
    "linkwise": (found, found),
    "All types": (truth, None),
}
types = np.unique(truth)
colour = dict(zip(types, plt.get_cmap("tab10").colors, strict=False))
colour |= dict(zip(np.unique(louvain), plt.get_cmap("tab20").colors[1::2] * 2, strict=False))
figure, axes = plt.subplots(1, 4, figsize=(14.5, 4.6), layout="constrained")
for ax, (name, (labels, scored)) in zip(axes, panels.items(), strict=True):
    is_drawn = np.array([isinstance(label, str) for label in labels])
    ax.scatter(*cells.obsm["X_umap"][~is_drawn].T, s=5, color="0.88", linewidths=0)
    ax.scatter(
        *cells.obsm["X_umap"][is_drawn].T,
        s=12 if is_drawn.all() else 26,
        color=[colour.get(label, "0.4") for label in np.asarray(labels)[is_drawn]],
        linewidths=0,
    )
    score = "" if scored is None else f": ARI {adjusted_rand(truth[free], scored[free]):.2f}"
    ax.set_title(name + score)
    ax.set_axis_off()
handles = [plt.Line2D([], [], marker="o", ls="", color=colour[name], label=name) for name in types]
figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=9)
plt.show()
