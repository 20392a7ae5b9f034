"""Random pairs, uniformly and without listing all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.constraints.table import choose_two

if TYPE_CHECKING:
    from linkwise._types import Ints


def sample_pairs(labels: Ints, n_pairs: int, rng: np.random.RandomState) -> Ints:
    """Draw distinct pairs of samples with a known label, each equally likely."""
    known = np.flatnonzero(labels >= 0)
    n_all = choose_two(known.size)
    if n_pairs > n_all:
        raise ValueError(
            f"n_pairs is {n_pairs}, but the {known.size} samples with a known label have only "
            f"{n_all} distinct pairs."
        )
    return known[unrank_pairs(draw_distinct(n_all, n_pairs, rng))]


def draw_distinct(population: int, size: int, rng: np.random.RandomState) -> Ints:
    """Draw distinct integers below `population`, uniformly; memory grows with `size` only."""
    if 2 * size > population:
        return rng.permutation(population)[:size].astype(np.intp)
    # The distinct values of draws with replacement, in order of first appearance, are a uniform
    # sample without replacement. At most half of all values are drawn, so few draws are lost.
    drawn = np.empty(0, dtype=np.int64)
    first = np.empty(0, dtype=np.intp)
    while first.size < size:
        extra = rng.randint(0, population, size=2 * (size - first.size) + 16, dtype=np.int64)
        drawn = np.concatenate((drawn, extra))
        first = np.sort(np.unique(drawn, return_index=True)[1])
    return drawn[first[:size]].astype(np.intp)


def unrank_pairs(rank: Ints) -> Ints:
    """Return the pairs (i, j), i < j, at positions of the list (0,1), (0,2), (1,2), (0,3), ...

    Pair (i, j) has the rank ``j (j - 1) / 2 + i``.
    """
    j = ((1 + np.sqrt(1 + 8 * rank.astype(np.float64))) / 2).astype(np.intp)
    # The square root is rounded for large ranks; it is off by one at most.
    j -= j * (j - 1) // 2 > rank
    j += j * (j + 1) // 2 <= rank
    return np.column_stack((rank - j * (j - 1) // 2, j))


def draw_folds(n_items: int, n_folds: int, rng: np.random.RandomState) -> Ints:
    """Return a fold for each item; the folds' sizes differ by one at most."""
    fold = np.empty(n_items, dtype=np.intp)
    fold[rng.permutation(n_items)] = np.arange(n_items) % n_folds
    return fold
