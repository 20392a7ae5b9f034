"""Clusters keep their numbers from one clustering to the next, and so their colours and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

if TYPE_CHECKING:
    from linkwise._types import Ints


def matched(labels: Ints, before: Ints | None) -> Ints:
    """Renumber clusters so that they overlap most with those before.

    A cluster without a counterpart gets the lowest number that was not in use.

    Examples
    --------
    >>> matched(np.array([0, 0, 1, 1, 2]), np.array([4, 4, 1, 1, 1])).tolist()
    [4, 4, 1, 1, 0]
    """
    found, codes = np.unique(labels, return_inverse=True)
    if before is None:
        return codes
    known, old = np.unique(before, return_inverse=True)
    overlap = np.zeros((found.size, known.size))
    np.add.at(overlap, (codes, old), 1)
    rows, columns = linear_sum_assignment(-overlap)
    number = np.full(found.size, -1, dtype=np.intp)
    is_shared = overlap[rows, columns] > 0
    number[rows[is_shared]] = known[columns[is_shared]]
    taken = set(number.tolist())
    free = (k for k in range(2 * found.size + known.size + 1) if k not in taken)
    for code in np.flatnonzero(number < 0):
        number[code] = next(free)
    return number[codes]


def moved_share(labels: Ints, before: Ints | None) -> float:
    """Return the share of samples in another cluster than before."""
    if before is None:
        return 0.0
    return float((labels != before).mean())
