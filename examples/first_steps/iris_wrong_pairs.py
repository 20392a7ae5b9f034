"""
Iris: forty pairs, four of them wrong
=====================================

Answers of people are sometimes wrong. A method that believes all of them is misled. ``Auto``
weighs each pair against the data and the other pairs, and names the ones to look at again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from linkwise import Auto, ConstrainedCut, Constraints
from linkwise.metrics import adjusted_rand
from linkwise.plots import draw_clusters, matched

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)


def with_errors(draw):
    """Draw forty pairs by the true species, and turn four answers round."""
    right = Constraints.sample(y, 40, random_state=draw)
    must, cannot = right.must_link, right.cannot_link
    wrong = np.vstack((must[:2], cannot[:2]))
    known = Constraints(
        len(X), np.vstack((must[2:], cannot[:2])), np.vstack((cannot[2:], must[:2]))
    )
    return known, {frozenset(pair) for pair in wrong.tolist()}


# %%
# The suspects come with the probability that they are wrong, the likeliest first. Are the four
# wrong pairs the first four?

for draw in range(1, 5):
    known, wrong = with_errors(draw)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    n_found = sum(frozenset(suspect.samples) in wrong for suspect in model.suspects_[:4])
    print(f"draw {draw}: {n_found} of 4 found, ARI {adjusted_rand(y, model.labels_):.2f}")

# %%
# The last of these draws. Red pairs are violated by the clusters shown.

believing = ConstrainedCut(3, random_state=0).fit(X, constraints=known)
flat = PCA(2).fit_transform(X)
figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), width_ratios=[1, 1, 0.9])
for ax, name, fitted in zip(
    axes, ("All believed", "Weighed by Auto"), (believing, model), strict=False
):
    labels = matched(fitted.labels_, y)
    title = f"{name}: ARI {adjusted_rand(y, labels):.2f}"
    draw_clusters(ax, flat, labels, constraints=known, title=title)
shown = model.suspects_[:9][::-1]
is_wrong = [frozenset(suspect.samples) in wrong for suspect in shown]
axes[2].barh(
    [f"{a} – {b}" for a, b in (suspect.samples for suspect in shown)],
    [suspect.probability for suspect in shown],
    color=["#D55E00" if bad else "#9aa3ad" for bad in is_wrong],
)
axes[2].set(xlabel="probability that the pair is wrong", xlim=(0, 1.02))
axes[2].set_title("Suspects; orange: wrong in truth")
plt.show()
