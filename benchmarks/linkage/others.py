"""Average linkage, Ward and HDBSCAN on the sets of `table.py`, without pairs.

Run: python benchmarks/linkage/others.py [--sets zipf orl ...]

"True k" cuts at the true number of clusters, "best" at the best of 60 cuts in hindsight: neither is
known in practice. Text is compared by cosine for average linkage, and in 100 singular vectors
otherwise.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from data import DESIGN, REPORT, load
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.sparse import issparse
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import HDBSCAN
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits


def distances(X):
    if not issparse(X):
        return pdist(X)
    X = normalize(X)
    agreement = 1 - (X @ X.T).toarray()
    np.fill_diagonal(agreement, 0.0)
    return squareform(np.maximum(agreement, 0.0), checks=False)


def tree_scores(tree, y):
    """Return the ARI at the true number of clusters, and the best of 60."""
    k = int(y.max()) + 1
    numbers = np.unique([*np.geomspace(max(2, k // 8), y.size - 1, 59).astype(int).tolist(), k])
    cuts = cut_tree(tree, numbers)
    scores = [adjusted_rand_score(y, cut) for cut in cuts.T]
    return scores[int(np.flatnonzero(numbers == k)[0])], max(scores)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=[*DESIGN, *REPORT])
    asked = parser.parse_args()
    threadpool_limits(1)
    print("| set | average, true k | best | Ward, true k | best | HDBSCAN | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name in asked.sets:
        X, y = load(name)
        start = time.process_time()
        average = tree_scores(linkage(distances(X), "average"), y)
        Z = normalize(TruncatedSVD(100, random_state=0).fit_transform(X)) if issparse(X) else X
        ward = tree_scores(linkage(Z, "ward"), y)
        found = HDBSCAN(min_cluster_size=2, copy=True).fit_predict(Z)
        alone = np.where(found < 0, found.max() + 1 + np.arange(y.size), found)
        scores = [*average, *ward, adjusted_rand_score(y, alone)]
        shown = " | ".join(f"{score:.3f}" for score in scores)
        print(f"| {name} | {shown} | {time.process_time() - start:.0f} |", flush=True)


if __name__ == "__main__":
    main()
