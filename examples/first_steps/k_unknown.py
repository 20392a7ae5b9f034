"""
The number of clusters is unknown
=================================

``Auto()`` without a number looks for one. Without pairs it takes what the data show. Pairs tell
how fine the clusters should be: the same points may be two clusters, three or five.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from linkwise import Auto, Constraints
from linkwise.metrics import adjusted_rand
from linkwise.plots import draw_clusters

centers = np.array([[-6, 0], [-3.2, 0], [3, 1.5], [3, -1.5], [7, 0]])
X, blob = make_blobs(300, centers=centers, cluster_std=0.65, random_state=3)

# %%
# Four people, four purposes. Each draws random pairs by what a cluster is for them.

sides = np.array([0, 0, 1, 1, 1])[blob]
thirds = np.array([0, 0, 1, 1, 2])[blob]
tasks = {
    "No pairs": (blob, None),
    "12 pairs by side": (sides, Constraints.sample(sides, 12, random_state=0)),
    "20 pairs by third": (thirds, Constraints.sample(thirds, 20, random_state=0)),
    "30 pairs by blob": (blob, Constraints.sample(blob, 30, random_state=0)),
}

figure, axes = plt.subplots(2, 2, figsize=(10.5, 5.8))
for ax, (name, (truth, known)) in zip(axes.flat, tasks.items(), strict=True):
    model = Auto(random_state=0).fit(X, constraints=known)
    draw_clusters(ax, X, model.labels_, constraints=known)
    ax.set_title(f"{name}: {model.n_clusters_} clusters")
    if known:
        score = adjusted_rand(truth, model.labels_)
        ax.set_xlabel(f"meant: {len(np.unique(truth))}, ARI {score:.2f}")
plt.show()
