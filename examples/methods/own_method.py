"""
A method of your own in the comparison
======================================

Any function of ``(X, constraints, n_clusters, random_state)`` can be compared with the methods of
linkwise, on the same draws of pairs. Here: k-means after the directions in which must-linked
samples differ were shrunk (relevant component analysis, in six lines).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from linkwise.evaluate import learning_curve


def shrunk_kmeans(X, constraints, n_clusters, random_state):
    """Whiten the differences of must-linked samples, then k-means."""
    if len(constraints.must_link):
        a, b = constraints.must_link.T
        within = np.cov((X[a] - X[b]).T) + 0.1 * np.eye(X.shape[1])
        values, vectors = np.linalg.eigh(within)
        X = X @ vectors / np.sqrt(values)
    return KMeans(n_clusters, n_init=5, random_state=random_state).fit_predict(X)


# %%
# One call fits all of them.

data = {
    name: (StandardScaler().fit_transform(loaded.data), loaded.target)
    for name, loaded in (("iris", load_iris()), ("wine", load_wine()))
}
methods = ["ncut", "e2cp", "signed", ("shrunk k-means", shrunk_kmeans)]
curves = learning_curve(data, methods, [0, 40, 80, 160], n_draws=5, progress=False)

# %%
# Bands are the standard error over five draws.

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), sharey=True)
for ax, name in zip(axes, data, strict=True):
    for method in ("ncut", "e2cp", "signed", "shrunk k-means"):
        rows = [row for row in curves.rows if (row["data"], row["method"]) == (name, method)]
        amounts = sorted({row["amount"] for row in rows})
        scores = [[r["adjusted_rand"] for r in rows if r["amount"] == a] for a in amounts]
        mean, error = np.mean(scores, axis=1), np.std(scores, axis=1, ddof=1) / np.sqrt(5)
        is_own = method == "shrunk k-means"
        line = ax.plot(amounts, mean, marker="o", lw=3 if is_own else 1.6, label=method)[0]
        ax.fill_between(amounts, mean - error, mean + error, color=line.get_color(), alpha=0.15)
    ax.set_title(name)
    ax.set_xlabel("pairs")
axes[0].set_ylabel("adjusted Rand index")
axes[1].legend(loc="lower right")
plt.show()
