"""
Which pairs to ask about
========================

Answers cost somebody's time. A ``Session`` asks about the pairs that tell most. Here true classes
answer, once for questions that were chosen and once for random ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise.active import Session, TruthOracle, simulate
from linkwise.datasets import make_circles
from linkwise.plots import draw_clusters, matched

X, y = make_circles(150, noise=0.1, random_state=0)
budget, every = 25, 5

# %%
# Three sessions each, with other seeds.

curves = {
    strategy: [
        simulate(
            Session(X, 2, strategy=strategy, random_state=seed), TruthOracle(y), budget, every=every
        )
        for seed in range(3)
    ]
    for strategy in ("random", "committee")
}

# %%
# The first chosen questions, and what the sessions reach.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6))
session = Session(X, 2, random_state=0)
for _ in range(12):
    i, j = session.next()
    session.answer(i, j, bool(y[i] == y[j]))
draw_clusters(left, X, matched(session.labels, y), constraints=session.constraints)
left.set_title("The first twelve questions")
names = {"random": "random pairs", "committee": "chosen pairs"}
for (strategy, name), colour in zip(names.items(), ("0.55", "#0072B2"), strict=True):
    scores = np.array([curve.ari(y) for curve in curves[strategy]])
    answers = curves[strategy][0].n_questions
    right.plot(answers, scores.T, color=colour, lw=0.9, alpha=0.5)
    right.plot(answers, scores.mean(axis=0), color=colour, marker="o", label=name)
right.set(xlabel="answers", ylabel="adjusted Rand index", ylim=(-0.05, 1.05))
right.set_title("Mean of three sessions")
right.legend(loc="lower right")
plt.show()
