"""
Hard or soft: must every pair hold?
===================================

A hard method satisfies every pair, right or wrong. A soft one may violate pairs that do not fit.
If all pairs are right, hard is safe. If some are wrong, each of them costs a hard method dearly.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import ConstrainedCut, Constraints, Prepared
from linkwise.datasets import make_moons
from linkwise.metrics import adjusted_rand
from linkwise.plots import draw_clusters

X, y = make_moons(200, noise=0.12, random_state=0)
data = Prepared(X)
MODES = ("hard", "soft")


def with_errors(share, draw):
    """Draw 40 pairs, a share of which is turned round."""
    rng = np.random.RandomState(draw)
    table = Constraints.sample(y, 40, random_state=draw).table
    is_must = table.is_must_link ^ (rng.permutation(table.sign.size) < share * table.sign.size)
    return Constraints(len(X), table.pairs[is_must], table.pairs[~is_must])


def fitted(mode, known):
    """Return labels, or nothing if hard pairs contradict each other."""
    model = ConstrainedCut(2, constraints_mode=mode, effort="fast", random_state=0)
    try:
        return model.fit_predict(data, constraints=known)
    except ValueError:
        return None


# %%
# Left and middle: one draw of 40 pairs, four of them wrong. Right: the mean of four draws.

figure, axes = plt.subplots(1, 3, figsize=(12.5, 4), width_ratios=[1, 1, 1.05])
known = with_errors(0.1, 1)
for ax, mode in zip(axes, MODES, strict=False):
    labels = fitted(mode, known)
    title = f"{mode}: {known.n_violated(labels)} violated, ARI {adjusted_rand(y, labels):.2f}"
    draw_clusters(ax, X, labels, constraints=known, title=title)

shares = [0, 0.05, 0.1, 0.2]
for mode, colour in zip(MODES, ("#0072B2", "#E69F00"), strict=True):
    answers = [[fitted(mode, with_errors(share, draw)) for draw in range(4)] for share in shares]
    means = [
        np.mean([adjusted_rand(y, labels) for labels in row if labels is not None] or np.nan)
        for row in answers
    ]
    axes[2].plot([100 * share for share in shares], means, marker="o", label=mode, color=colour)
axes[2].set(xlabel="wrong pairs, %", ylabel="adjusted Rand index", ylim=(0, 1.03))
axes[2].set_title("Mean of four draws")
axes[2].legend()
plt.show()
