"""
A language model, or any function, answers
==========================================

Questions of a session need not go to a person. ``TextOracle`` writes a prompt about two items,
hands it to your function, and reads the reply. Here the function is a stand-in that works
offline; put a call of your model in its place.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from linkwise.active import Session, TextOracle, ask_oracle
from linkwise.metrics import adjusted_rand
from linkwise.plots import matched

# %%
# Names of products in a shop. Words such as "red" and "wool" are in all kinds of them.

KINDS = {
    "clothes": ["shirt", "sweater", "jacket"],
    "shoes": ["boots", "sneakers"],
    "furniture": ["chair", "sofa", "shelf"],
}
rng = np.random.RandomState(0)
things = [(kind, thing) for kind, own in KINDS.items() for thing in own]
picked = [things[k] for k in rng.randint(len(things), size=180)]
COLOURS_OF_THINGS = ["red", "blue", "green", "grey"]
MATERIALS = ["wool", "leather", "linen", "oak"]
titles = [f"{rng.choice(COLOURS_OF_THINGS)} {rng.choice(MATERIALS)} {thing}" for _, thing in picked]
y = np.array([list(KINDS).index(kind) for kind, _ in picked])


def complete(prompt):
    """Stand in for a language model: it knows what a sofa is, and is wrong now and then."""
    first, second = (
        next(kind for kind, own in KINDS.items() if any(thing in part for thing in own))
        for part in prompt.split("\n\n")[1:3]
    )
    is_wrong = sum(map(ord, prompt)) % 20 == 0
    return "Same." if (first == second) != is_wrong else "I think that they are different."


# %%
# Forty questions. ``noisy=True``: an answer is evidence, not a fact.

X = TruncatedSVD(12, random_state=0).fit_transform(TfidfVectorizer().fit_transform(titles))
oracle = TextOracle(complete, question="Are these two products of the same kind?")
session = Session(X, 3, noisy=True, random_state=0)
before = session.labels
asked = ask_oracle(session, oracle, budget=40, items=titles)
after = session.labels
print(asked)
for i, j in [*session.constraints.must_link[:3], *session.constraints.cannot_link[:3]]:
    print(f"{titles[i]:<24}{titles[j]:<24}{'same kind' if y[i] == y[j] else 'different'} in truth")

# %%
# Where the things ended: each row is a kind of thing, each column a cluster. Without answers
# words such as "oak" decide as much as the things do.

nouns = [thing for _, thing in things]
noun_of = np.array([title.split()[-1] for title in titles])
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.8), sharey=True)
for ax, name, labels in zip(axes, ("Words alone", "40 replies"), (before, after), strict=True):
    clusters = matched(labels, y)
    shares = [[(clusters[noun_of == noun] == c).mean() for c in range(3)] for noun in nouns]
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        colour = "white" if share > 0.6 else "0.3"
        ax.text(column, row, f"{share:.0%}", ha="center", va="center", color=colour)
    ax.set(xticks=range(3), xticklabels=["cluster 1", "cluster 2", "cluster 3"])
    ax.set(yticks=range(len(nouns)), yticklabels=nouns)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(f"{name}: ARI {adjusted_rand(y, labels):.2f}")
plt.show()
