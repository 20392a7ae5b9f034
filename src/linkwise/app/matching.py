"""Clusters keep their numbers from one clustering to the next, and so their colours and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Ints

MANY = 1_000_000  # pairs of clusters, old and new, beyond which they are matched one by one


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
    number = np.full(found.size, -1, dtype=np.intp)
    pairing = _best if found.size * known.size <= MANY else _greedy
    for row, column in pairing(codes, old):
        number[row] = known[column]
    taken = set(number.tolist())
    free = (k for k in range(2 * found.size + known.size + 1) if k not in taken)
    for code in np.flatnonzero(number < 0):
        number[code] = next(free)
    return number[codes]


def _best(codes: Ints, old: Ints) -> Iterator[tuple[int, int]]:
    """Yield pairs of clusters that overlap, such that most samples are in both of a pair."""
    overlap = np.zeros((codes.max() + 1, old.max() + 1))
    np.add.at(overlap, (codes, old), 1)
    rows, columns = linear_sum_assignment(-overlap)
    is_shared = overlap[rows, columns] > 0
    yield from zip(rows[is_shared].tolist(), columns[is_shared].tolist(), strict=True)


def _greedy(codes: Ints, old: Ints) -> Iterator[tuple[int, int]]:
    """Yield pairs of thousands of clusters, the largest overlap first."""
    pairs, shared = np.unique(np.column_stack((codes, old)), axis=0, return_counts=True)
    rows: set[int] = set()
    columns: set[int] = set()
    for row, column in pairs[np.argsort(-shared, kind="stable")].tolist():
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            yield row, column


def moved_share(labels: Ints, before: Ints | None) -> float:
    """Return the share of samples in another cluster than before."""
    if before is None:
        return 0.0
    return float((labels != before).mean())
