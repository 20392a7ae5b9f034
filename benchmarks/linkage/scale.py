"""`Linkage` on generated samples of 32 features in n/5 clusters: CPU seconds, memory, ARI.

Run: python benchmarks/linkage/scale.py [samples] [pairs]

100,000 samples unless told. The first fit in a fresh checkout compiles the kernels; run it twice.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from data import clusters
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from linkwise import Constraints, Linkage
from linkwise.graph import ApproximateNeighbors


def neighbours_reviewed(X, y, m):
    """Return random pairs of neighbours with true answers."""
    rng = np.random.RandomState(0)
    near = ApproximateNeighbors(10).fit(X).kneighbors()[1]
    i = rng.randint(y.size, size=m)
    pairs = np.column_stack((i, near[i, rng.randint(10, size=m)]))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Constraints(y.size, pairs[same], pairs[~same])


threadpool_limits(1)
n, n_pairs, *_ = [int(word) for word in (*sys.argv[1:], *("100000", "0")[len(sys.argv) - 1 :])]
X, y = clusters(np.random.RandomState(1000), n, n // 5, 32, spread=0.25, exponent=0.3)
known = neighbours_reviewed(X, y, n_pairs) if n_pairs else None
start = time.process_time()
model = Linkage(random_state=0).fit(X, constraints=known)
spent = time.process_time() - start
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
score = adjusted_rand_score(y, model.labels_)
print(
    f"{n} samples, {n_pairs} pairs: ARI {score:.4f}, k {model.n_clusters_}, {spent:.1f} CPU s, "
    f"{memory:.0f} MB",
    flush=True,
)
