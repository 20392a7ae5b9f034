"""A soft partition of some samples, as candidates give it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.constraint_model import matching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Ints


ERROR_RATE = 0.05  # of constraints, before any is looked at
EPS = 1e-3  # added to a probability before its logarithm is taken
TRUST = 0.95  # probability of the cluster that a hard partition gives to a sample
CENTRE_POWER = 4.0  # of the agreement with the centre, by which weights are multiplied


class Partition(NamedTuple):
    """Log-probabilities of clusters, without what constraints say about the sample itself."""

    log_probability: Floats  # (n_rows, k)
    error_rate: float = ERROR_RATE  # estimated share of wrong constraints
    posterior: Floats | None = None  # of a learner: probabilities with what constraints say
    score: float = 0.0  # of a learner: log-likelihood of each constraint given the others

    @property
    def labels(self) -> Ints:
        """The likeliest cluster of each sample."""
        return self.log_probability.argmax(axis=1)


def from_labels(labels: Ints, k: int) -> Partition:
    """Return a hard partition, not quite trusted."""
    return Partition(np.log(softened(labels, k, TRUST)))


def from_probability(probability: Floats) -> Partition:
    """Return a soft partition."""
    return Partition(np.log(probability + EPS))


def softened(labels: Ints, k: int, trust: float) -> Floats:
    """Return probabilities that trust labels not quite."""
    Q = np.full((labels.size, k), (1 - trust) / max(k - 1, 1))
    Q[np.arange(labels.size), labels] = trust
    return Q


class Mean(NamedTuple):
    """An average of soft partitions around their centre."""

    probability: Floats  # (n, k)
    weights: Floats  # of the partitions, adding up to 1
    centre: int  # the one that agrees most with all others


def centred_mean(parts: Sequence[Floats], weights: Floats, *, power: float = CENTRE_POWER) -> Mean:
    """Average soft partitions that resemble the one most others agree with.

    The centre is the partition with the highest weighted adjusted Rand index to all. Weights are
    multiplied by a power of the index to the centre; then clusters are matched and averaged.
    """
    weights = weights / weights.sum()
    if len(parts) == 1:
        return Mean(parts[0], weights, 0)
    agreement = rand_matrix([Q.argmax(axis=1) for Q in parts], parts[0].shape[1])
    centre = int((agreement @ weights).argmax())
    weights = weights * np.maximum(agreement[centre], 0.0) ** power
    weights = weights / weights.sum()
    return Mean(matched_mean(parts, weights, parts[centre]), weights, centre)


def matched_mean(parts: Sequence[Floats], weights: Floats, reference: Floats) -> Floats:
    """Average soft partitions, after matching clusters with a reference, then with their mean."""
    for _ in range(2):
        pairs = zip(weights, parts, strict=True)
        reference = np.sum([w * Q[:, matching(Q, reference)] for w, Q in pairs], axis=0)
    return reference


def rand_matrix(partitions: Sequence[Ints], k: int) -> Floats:
    """Return the adjusted Rand index of every two partitions."""
    n = partitions[0].size
    p = len(partitions)
    member = np.zeros((n, p * k))
    for at, labels in enumerate(partitions):
        member[np.arange(n), at * k + labels] = 1.0
    table = (member.T @ member).reshape(p, k, p, k)
    same = (table * (table - 1) / 2).sum(axis=(1, 3))
    own = same.diagonal()
    expected = np.outer(own, own) / max(n * (n - 1) / 2, 1)
    top = (own[:, None] + own[None, :]) / 2
    is_trivial = top == expected
    index: Floats = np.where(
        is_trivial, 1.0, (same - expected) / np.where(is_trivial, 1.0, top - expected)
    )
    return index
