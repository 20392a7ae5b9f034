"""Forest: a random forest on the same samples under changing labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.tree import DecisionTreeRegressor

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints

N_TREES = 50  # as Xiong, Azimi & Fern
MAX_ROWS = 500


class Forest:
    """The trees of scikit-learn's ``RandomForestClassifier(random_state=0)``, grown as needed.

    A tree depends on the labels of its bootstrap sample only, and is grown again only when these
    change. So the leaves are a function of the labels, whatever the forest learnt before.

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_features)
        The samples.

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> leaf = Forest(points).leaves(np.array([0, 0, 1, 1]))
    >>> bool((leaf[0] == leaf[1]).all()), leaf.shape
    (True, (4, 50))
    """

    def __init__(self, points: Floats) -> None:
        self._points = np.ascontiguousarray(points, dtype=np.float32)  # as trees take them
        n = len(points)
        rng = np.random.RandomState(0)
        self._seeds = [rng.randint(np.iinfo(np.int32).max) for _ in range(N_TREES)]
        # The bootstrap sample of each tree: rows, and how often each was drawn
        self._rows, self._counts = [], []
        for seed in self._seeds:
            drawn = np.random.RandomState(seed).randint(0, n, min(n, MAX_ROWS), dtype=np.int32)
            rows, counts = np.unique(drawn, return_counts=True)
            self._rows.append(rows)
            self._counts.append(counts.astype(np.float64))
        self._leaves: Ints = np.zeros((N_TREES, n), dtype=np.intp)
        self._labels: Ints | None = None

    def leaves(self, labels: Ints) -> Ints:
        """Return the leaf of every sample in each tree of a forest that learnt the labels."""
        before, self._labels = self._labels, labels.copy()
        # The squared error of indicator columns is the Gini impurity: the trees of the classifier,
        # which takes longer to check its labels than to grow a tree of 500 rows.
        indicators = np.eye(int(labels.max()) + 1)[labels]
        for t, rows in enumerate(self._rows):
            if before is None or not np.array_equal(before[rows], labels[rows]):
                tree = DecisionTreeRegressor(max_features="sqrt", random_state=self._seeds[t])
                weight = self._counts[t]
                tree.fit(
                    self._points[rows], indicators[rows], sample_weight=weight, check_input=False
                )
                self._leaves[t] = tree.tree_.apply(self._points)
        return self._leaves.T
