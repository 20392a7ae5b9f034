"""How many clusters: what the pairs require, what the spectrum suggests, what predicts pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.exceptions import ConflictError

if TYPE_CHECKING:
    from linkwise._types import Floats
    from linkwise.constraints import Constraints


MOST = 12  # clusters that are considered
MORE = 4  # clusters considered beyond the least that the constraints require


class Choice(NamedTuple):
    """Numbers of clusters and how probable each is."""

    numbers: tuple[int, ...]
    probability: Floats

    @property
    def best(self) -> int:
        """The most probable number."""
        return self.numbers[int(self.probability.argmax())]


def least_clusters(constraints: Constraints, most: int) -> int:
    """Return a number of clusters below which the certain constraints are proved impossible.

    Contradictions, which no number satisfies, do not count.
    """
    n_labels = (
        0
        if constraints.labels is None
        else np.unique(constraints.labels[constraints.labels >= 0]).size
    )
    least = min(max(2, n_labels), most)
    while least < most:
        try:
            constraints.check(least)
        except ConflictError as error:
            if error.bracket is None or error.bracket[0] <= least:
                break
            least = min(int(error.bracket[0]), most)
        else:
            break
    return least


def range_of_clusters(least: int, n_samples: int) -> tuple[int, ...]:
    """Return the numbers of clusters that are worth a look."""
    highest = min(max(MOST, least + MORE), max(least, n_samples // 2))
    return tuple(range(least, highest + 1))


def gap_prior(eigenvalues: Floats, numbers: tuple[int, ...]) -> Floats:
    """Return log-probabilities of numbers of clusters by the gaps of the spectrum.

    ``k`` clusters that hang together badly make `k` small eigenvalues. A number is as probable as
    the next eigenvalue is larger than the `k`-th, up to ten times; without a next one there is no
    gap.
    """
    weight = np.full(len(numbers), 1 / 1.1)
    for at, k in enumerate(numbers):
        if k < eigenvalues.size and eigenvalues[k] > 0:
            weight[at] = 1 / (eigenvalues[k - 1] / eigenvalues[k] + 0.1)
    log: Floats = np.log(weight / weight.sum())
    return log


def choose(numbers: tuple[int, ...], scores: Floats, prior: Floats) -> Choice:
    """Return probabilities of the numbers from log-likelihoods and a prior."""
    total = scores + prior
    probability = np.exp(total - total.max())
    return Choice(numbers, probability / probability.sum())
