"""Compile the kernels that most tests need, into the cache beside the source.

Test processes that start together on an empty cache would each compile them.
"""

from __future__ import annotations

import warnings

from sklearn.datasets import make_blobs

from linkwise import METHODS, Constraints

if __name__ == "__main__":
    X, y = make_blobs(60, centers=3, random_state=0)
    labels = Constraints.from_labels([c if i % 4 == 0 else -1 for i, c in enumerate(y)])
    pairs = Constraints.sample(y, 150, random_state=0)
    pairs.check(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for Method in METHODS.values():
            for known in (labels, pairs):
                Method(3, random_state=0).fit(X, constraints=known).predict(X)
