"""What a clustering of many small clusters is worth: ARI, pairwise F1, B-cubed."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array


def scores(y, labels):
    """Return ARI, pairwise F1, B-cubed F1 and the number of clusters; labels of -1 are alone."""
    labels = np.asarray(labels)
    alone = labels < 0
    labels = np.where(alone, labels.max() + 1 + np.cumsum(alone), labels)
    labels = np.unique(labels, return_inverse=True)[1]
    both = coo_array((np.ones(y.size), (y, labels))).tocsr()
    true, found = (np.asarray(both.sum(axis=axis)).ravel() for axis in (1, 0))
    n, (same, t, f) = y.size, (n_pairs(x) for x in (both.data, true, found))
    expected = t * f / n_pairs(np.array([n]))
    cells = both.tocoo()
    precision = (cells.data**2 / found[cells.coords[1]]).sum() / n
    recall = (cells.data**2 / true[cells.coords[0]]).sum() / n
    return {
        "ari": (same - expected) / ((t + f) / 2 - expected),
        "f1": 2 * same / (t + f),
        "b3": 2 * precision * recall / (precision + recall),
        "k": found.size,
    }


def n_pairs(sizes):
    return float((sizes * (sizes - 1) / 2).sum())
