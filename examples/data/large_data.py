"""
Large data
==========

No n × n array is formed, so the time grows with the number of samples and not with its square.
Most of it goes into the graph, and ``Prepared`` builds that once: further pairs cost little.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from linkwise import CSC, Constraints, Prepared
from linkwise.metrics import adjusted_rand


def steps(n_samples):
    """Return CPU seconds for the graph, a first fit and one with ten pairs more; and the score."""
    X, y = make_blobs(n_samples, 16, centers=5, cluster_std=5.5, random_state=0)
    n_pairs = 1_000
    model, seconds = CSC(5, random_state=0), []
    first = Constraints.sample(y, n_pairs, random_state=0)
    ten = Constraints.sample(y, 10, random_state=1)
    more = first.with_pairs(ten.must_link, ten.cannot_link)
    data = Prepared(X)
    for known in (None, first, more):
        started = time.process_time()
        _ = data.W if known is None else model.fit(data, constraints=known)
        seconds.append(time.process_time() - started)
    return seconds, adjusted_rand(y, model.labels_)


steps(35_000)  # compiles what is compiled before anything counts

# %%
# From 40,000 to 120,000 samples; on a laptop it goes on like this to a million.

sizes = [40_000, 80_000, 120_000]
seconds, scores = zip(*(steps(n) for n in sizes), strict=True)
for n, score in zip(sizes, scores, strict=True):
    print(f"{n:>6} samples: ARI {score:.3f}")

# %%
# What takes how long.

figure, ax = plt.subplots(figsize=(8, 4.6))
names = ["neighbour graph", "first fit", "ten pairs more"]
bottom = np.zeros(len(sizes))
for name, heights in zip(names, np.transpose(seconds), strict=True):
    ax.bar([f"{n:,}" for n in sizes], heights, bottom=bottom, label=name, width=0.62)
    bottom += heights
ax.set(xlabel="samples", ylabel="CPU seconds")
ax.set_title("The graph is built once")
ax.legend()
plt.show()
