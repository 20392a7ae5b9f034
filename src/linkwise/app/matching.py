"""Clusters keep their numbers from one clustering to the next, and so their colours and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import AnyArray, Floats, Ints

FEW = 10_000  # pairs up to which no library is needed
MANY = 1_000_000  # pairs of clusters, old and new, beyond which they are matched one by one


def matched(labels: Ints, before: Ints | None) -> Ints:
    """Renumber clusters so that they overlap most with those before.

    A cluster without a counterpart gets the lowest number that was not in use.

    Examples
    --------
    >>> matched(np.array([0, 0, 1, 1, 2]), np.array([4, 4, 1, 1, 1])).tolist()
    [4, 4, 1, 1, 0]
    """
    found, codes = _coded(labels)
    if before is None:
        return codes
    known, old = _coded(before)
    number = np.full(found.size, -1, dtype=np.intp)
    pairing = _best if found.size * known.size <= MANY else _greedy
    for row, column in pairing(codes, old):
        number[row] = known[column]
    taken = set(number.tolist())
    free = (k for k in range(2 * found.size + known.size + 1) if k not in taken)
    for code in np.flatnonzero(number < 0):
        number[code] = next(free)
    return number[codes]


def in_use(labels: Ints) -> Ints:
    """Return the numbers of clusters that have samples, without sorting them."""
    return np.flatnonzero(np.bincount(labels))


def _coded(labels: Ints) -> tuple[Ints, Ints]:
    """Return the numbers in use, and the place of each sample's among them."""
    numbers = in_use(labels)
    place = np.zeros(int(numbers.max()) + 1, dtype=np.intp)
    place[numbers] = np.arange(numbers.size)
    return numbers, place[labels]


def _best(codes: Ints, old: Ints) -> Iterator[tuple[int, int]]:
    """Yield pairs of clusters that overlap, such that most samples are in both of a pair."""
    shape = int(codes.max()) + 1, int(old.max()) + 1
    overlap = np.bincount(codes * shape[1] + old, minlength=shape[0] * shape[1]).reshape(shape)
    rows, columns = _assignment(overlap)
    is_shared = overlap[rows, columns] > 0
    yield from zip(rows[is_shared].tolist(), columns[is_shared].tolist(), strict=True)


def _assignment(overlap: Ints) -> tuple[Ints, Ints]:
    """Return rows and columns of the pairs with the largest sum, no row or column twice."""
    if overlap.size > FEW:
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415  (0.3 s and 40 MB)

        rows, columns = linear_sum_assignment(-overlap)
        return rows, columns
    if overlap.shape[0] > overlap.shape[1]:
        columns, rows = _assignment(overlap.T)
        return rows, columns
    return np.arange(overlap.shape[0]), _partners(-overlap.astype(float))


def _partners(cost: Floats) -> Ints:
    """Return a column for each row, at the least sum: the Hungarian method (Kuhn, 1955).

    There are no more rows than columns. One row after the other gets a column, along the cheapest
    path that gives those before it another one; `offer` and `price` are the dual variables.
    """
    n_rows, n_columns = cost.shape
    offer, price = np.zeros(n_rows), np.zeros(n_columns)
    owner = np.full(n_columns, -1)
    for start in range(n_rows):
        slack, reached_from = np.full(n_columns, np.inf), np.full(n_columns, -1)
        is_done = np.zeros(n_columns, dtype=bool)
        row, column = start, -1
        while row >= 0:
            reduced = cost[row] - offer[row] - price
            is_nearer = ~is_done & (reduced < slack)
            slack[is_nearer], reached_from[is_nearer] = reduced[is_nearer], column
            column = int(np.where(is_done, np.inf, slack).argmin())
            step = slack[column]
            offer[[start, *owner[is_done]]] += step
            price[is_done] -= step
            slack[~is_done] -= step
            is_done[column] = True
            row = int(owner[column])
        while column >= 0:
            before = int(reached_from[column])
            owner[column] = start if before < 0 else owner[before]
            column = before
    columns = np.flatnonzero(owner >= 0)
    return columns[np.argsort(owner[columns])]


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


def adjusted_rand(truth: Ints, labels: Ints) -> float:
    """Return the adjusted Rand index, as `linkwise.metrics` does, whose libraries take seconds."""
    _, classes = np.unique(truth, return_inverse=True)
    _, clusters = _coded(labels)
    n_clusters = int(clusters.max()) + 1
    both = np.bincount(classes * n_clusters + clusters).astype(float)
    one, other = np.bincount(classes).astype(float), np.bincount(clusters).astype(float)
    pairs, ones, others = (float((sizes * (sizes - 1)).sum()) / 2 for sizes in (both, one, other))
    chance = ones * others / max(len(labels) * (len(labels) - 1) / 2, 1)
    most = (ones + others) / 2
    return 1.0 if most == chance else (pairs - chance) / (most - chance)


def moved_share(labels: Ints, before: AnyArray | None) -> float:
    """Return the share of samples in another cluster than before."""
    if before is None:
        return 0.0
    return float((labels != before).mean())
