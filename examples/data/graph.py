"""
A graph instead of features
===========================

Friendships, citations, a graph of cells: often there are no features, only edges. Every graph
method takes a sparse graph with ``affinity="precomputed"``.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import Auto, Constraints
from linkwise.datasets import make_block_model
from linkwise.metrics import adjusted_rand
from linkwise.plots import COLOURS, matched

W, circle = make_block_model(240, 4, p_in=0.2, p_out=0.04, random_state=0)
y = circle % 2
print(f"{W.shape[0]} nodes, {W.nnz // 2} edges")

# %%
# Four circles of friends, two parties: two circles each. Who belongs to which party is known of
# five people in each circle; the edges alone cannot tell which circles go together.

rng = np.random.RandomState(0)
chosen = np.concatenate([rng.choice(np.flatnonzero(circle == c), 5) for c in range(4)])
partial = np.full(len(y), -1)
partial[chosen] = y[chosen]
known = Constraints.from_labels(partial)

plain = Auto(2, affinity="precomputed", random_state=0).fit_predict(W)
helped = Auto(2, affinity="precomputed", random_state=0).fit_predict(W, constraints=known)

# %%
# The matrix of edges, its rows sorted by party as it was found, and by circle within. Scores are
# of the nodes without a label.

figure, axes = plt.subplots(1, 3, figsize=(12, 4.3))
edges = W.toarray() > 0
tasks = {
    "As given": None,
    "No labels": matched(plain, y),
    f"{known.constrained.sum()} labels": matched(helped, y),
}
for ax, (name, labels) in zip(axes, tasks.items(), strict=True):
    order = rng.permutation(len(y)) if labels is None else np.lexsort((circle, labels))
    ax.imshow(edges[np.ix_(order, order)], cmap="Greys", interpolation="antialiased")
    if labels is not None:
        for cluster, start in zip(*np.unique(labels[order], return_index=True), strict=True):
            size = (labels == cluster).sum()
            frame = {"fill": False, "ec": COLOURS[cluster], "lw": 3}
            ax.add_patch(plt.Rectangle((start, start), size, size, **frame))
    score = "" if labels is None else f": ARI {adjusted_rand(y, labels, outside=known):.2f}"
    ax.set_title(name + score)
    ax.set_axis_off()
plt.show()
