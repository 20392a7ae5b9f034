"""
Learning curves: what is a pair worth?
======================================

How good are the clusters after so many random pairs? All methods get the same pairs. Only samples
that are in no pair are scored, so that nobody is praised for repeating the answers.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from linkwise.evaluate import learning_curve

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X[::2])
names = {
    "ncut": "NCut (no pairs)",
    "csc": "CSC",
    "fastge": "FastGE",
    "e2cp": "E2CP",
    "auto": "Auto",
}
curves = learning_curve(
    {"breast cancer": (X, y[::2])},
    list(names),
    [0, 20, 50, 100],
    n_draws=4,
    metrics=["free_adjusted_rand"],
    progress=False,
)

# %%
# The line is the mean of four draws, the band goes from the first quartile to the third.

frame = curves.to_frame()
figure, ax = plt.subplots(figsize=(8, 4.8))
for key, name in names.items():
    scores = frame[frame["method"] == key].groupby("amount")["free_adjusted_rand"]
    mean, low, high = scores.mean(), scores.quantile(0.25), scores.quantile(0.75)
    line = ax.plot(mean.index, mean, marker="o", ms=5)[0]
    ax.fill_between(mean.index, low, high, color=line.get_color(), alpha=0.15, lw=0)
    ax.annotate(
        name,
        (mean.index[-1], mean.iloc[-1]),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        color=line.get_color(),
        fontweight="bold",
    )
ax.set(xlabel="random pairs", ylabel="adjusted Rand index of samples in no pair", xlim=(0, 128))
ax.set_title(f"Breast cancer, {len(X)} samples")
plt.show()
