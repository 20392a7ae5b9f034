"""
Two moons, two pairs
====================

The moons are noisy and nearly touch. K-means cuts them across, and so does the normalised cut.
One must-link along each moon says what is meant.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from linkwise import ConstrainedCut, Constraints, NCut
from linkwise.datasets import make_moons
from linkwise.metrics import adjusted_rand
from linkwise.plots import draw_clusters

X, y = make_moons(300, noise=0.12, random_state=2)

# %%
# A pair joins the two ends of a moon.

ends = [np.flatnonzero(y == moon)[np.argsort(X[y == moon, 0])[[3, -4]]] for moon in (0, 1)]
known = Constraints(len(X), must_link=ends)

models = {
    "k-means": KMeans(2, random_state=0),
    "NCut": NCut(2, random_state=0),
    "ConstrainedCut, two pairs": ConstrainedCut(2, random_state=0),
}

# %%
# Red lines are pairs that a clustering violates.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.1))
for ax, (name, model) in zip(axes, models.items(), strict=True):
    given = {"constraints": known} if isinstance(model, ConstrainedCut) else {}
    labels = model.fit(X, **given).labels_
    title = f"{name}: ARI {adjusted_rand(y, labels):.2f}"
    draw_clusters(ax, X, labels, constraints=known, title=title)
plt.show()
