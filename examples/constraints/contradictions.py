"""
Pairs that contradict each other
================================

Two samples are cannot-linked, yet a chain of must-links puts them into one cluster. linkwise
finds the shortest chain and says which of your own pairs to look at.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from linkwise import ConflictError, ConstrainedCut, Constraints
from linkwise.datasets import make_moons
from linkwise.plots import COLOURS, VIOLATED

X, y = make_moons(120, random_state=1)
order = np.flatnonzero(y == 0)[np.argsort(X[y == 0, 0])]
chain = order[[2, 14, 27, 41, 57]]  # along the upper moon
others = np.flatnonzero(y == 1)
known = Constraints(
    len(X),
    must_link=[*pairwise(chain), (others[3], others[20])],
    cannot_link=[(chain[0], chain[-1]), (others[5], chain[2])],
)

# %%
# A method that must satisfy everything refuses, with the proof:

try:
    ConstrainedCut(2, random_state=0).fit(X, constraints=known)
except ConflictError as error:
    print(error)

# %%
# The same as data: which must-links, in which rows.

conflict = known.conflicts()[0]
print("chain:", conflict.chain, " rows of must_link:", conflict.rows)

# %%
# The chain is blue, the cannot-link that cannot hold is red. The grey pairs are not involved.

figure, ax = plt.subplots(figsize=(8, 4.6))
ax.scatter(*X.T, color="0.82", s=22, linewidths=0)
for a, b in known.must_link:
    is_involved = a in conflict.chain and b in conflict.chain
    ax.plot(*X[[a, b]].T, color=COLOURS[0] if is_involved else "0.6", lw=3 if is_involved else 1.4)
for a, b in known.cannot_link:
    is_involved = a in conflict.chain and b in conflict.chain
    ax.plot(*X[[a, b]].T, "--", color=VIOLATED if is_involved else "0.6", lw=2.2)
ax.scatter(*X[list(conflict.chain)].T, color=COLOURS[0], s=70, zorder=3)
for sample in conflict.chain:
    ax.annotate(str(sample), X[sample], xytext=(0, 9), textcoords="offset points", ha="center")
ax.set_title(f"Four must-links join {chain[0]} and {chain[-1]}; a cannot-link parts them")
ax.set_axis_off()
ax.set_aspect("equal")
plt.show()
