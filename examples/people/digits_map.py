"""
A map of digits, before and after 30 answers
============================================

Handwritten digits on a map, each drawn as the digit it is and coloured by its cluster. Thirty
answers to "is this the same digit?" move the colours to where they belong.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from linkwise.active import Session
from linkwise.metrics import adjusted_rand
from linkwise.plots import matched

X, y = (part[:260] for part in load_digits(return_X_y=True))
place = TSNE(random_state=0, perplexity=15).fit_transform(X)

# %%
# A session asks; here the true digits answer.

session = Session(X, 10, random_state=0)
before = session.labels
for _ in range(30):
    i, j = session.next()
    session.answer(i, j, bool(y[i] == y[j]))
after = session.labels

# %%
# On a screen the page of ``linkwise serve`` shows the same, with the images.

colours = plt.get_cmap("tab10").colors
figure, axes = plt.subplots(1, 2, figsize=(13, 6.2))
for ax, name, labels in zip(axes, ("No answers", "30 answers"), (before, after), strict=True):
    for (x, z), digit, cluster in zip(place, y, matched(labels, y), strict=True):
        ax.text(x, z, str(digit), color=colours[cluster], fontsize=11, ha="center", va="center")
    ax.set(xlim=(place[:, 0].min() - 2, place[:, 0].max() + 2))
    ax.set(ylim=(place[:, 1].min() - 2, place[:, 1].max() + 2))
    ax.set_title(f"{name}: ARI {adjusted_rand(y, labels):.2f}", fontsize=14)
    ax.set_axis_off()
plt.show()
