"""
XOR: opposite corners belong together
=====================================

Four groups in the corners, two clusters: opposite corners are one. No distance shows that, so no
method can find it without help. How many random pairs does it take?
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import Auto, Constraints, Prepared
from linkwise.datasets import make_xor
from linkwise.metrics import adjusted_rand
from linkwise.plots import draw_clusters

X, y = make_xor(50, spread=0.25, random_state=0)
data = Prepared(X)  # the graph is built once for all fits

# %%
# Pairs are drawn at random. They can only be enough once they connect all four corners.

amounts = [0, 2, 4, 8, 12]
draws = 5
scores = np.array(
    [
        [
            adjusted_rand(
                y,
                Auto(2, random_state=0).fit_predict(
                    data, constraints=Constraints.sample(y, n_pairs, random_state=draw)
                ),
            )
            for n_pairs in amounts
        ]
        for draw in range(draws)
    ]
)

# %%
# Left and middle: one draw. Right: all five.

figure, axes = plt.subplots(1, 3, figsize=(12, 4), width_ratios=[1, 1, 1.15])
known = Constraints.sample(y, 8, random_state=0)
for ax, given in zip(axes, (None, known), strict=False):
    labels = Auto(2, random_state=0).fit_predict(data, constraints=given)
    what = "Eight pairs" if given else "No pairs"
    title = f"{what}: ARI {adjusted_rand(y, labels):.2f}"
    draw_clusters(ax, X, labels, constraints=given, title=title)
axes[2].plot(amounts, scores.T, color="0.75", lw=1.2, marker="o", ms=3)
axes[2].plot(amounts, scores.mean(axis=0), marker="o", label="mean of five draws")
axes[2].set(xlabel="pairs", ylabel="adjusted Rand index", ylim=(-0.08, 1.05))
axes[2].set_title("More pairs")
axes[2].legend(loc="lower right")
plt.show()
