"""How often random pairs find top and bottom of the four blobs of the README.

Run: python benchmarks/auto/few_pairs.py [8 12 ...]     (100 draws of each number of pairs)
"""

from __future__ import annotations

import sys

from sklearn.datasets import make_blobs

from linkwise import Auto, Constraints
from linkwise.metrics import adjusted_rand

CORNERS = [(0, 0), (2, 0), (0, 1), (2, 1)]
DRAWS = 100
FOUND = 0.9  # ARI


def main(numbers: list[int]) -> None:
    """Print in how many draws the answer is top and bottom."""
    X, group = make_blobs(240, centers=CORNERS, cluster_std=0.2, random_state=0)
    rows = group // 2
    for n_pairs in numbers:
        scores = []
        for draw in range(DRAWS):
            known = Constraints.sample(rows, n_pairs, random_state=draw)
            model = Auto(2, random_state=0).fit(X, constraints=known)
            scores.append(adjusted_rand(rows, model.labels_))
        found = sum(score > FOUND for score in scores)
        print(f"{n_pairs} pairs: {found} of {DRAWS} draws", flush=True)


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [8, 12])
