"""Committee: the candidate partitions of a fit, for whoever asks what tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.consensus import least_rate
from linkwise.auto.noise import log_likelihood

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.auto.ensemble import Answer


class Committee(NamedTuple):
    """Candidate partitions of some samples, in the order of the data, and how far each is believed.

    Parameters
    ----------
    names : tuple of str
        Names of the candidates.
    samples : ndarray of shape (m,)
        Samples that were partitioned, ascending: all, or a part of many.
    labels : ndarray of shape (n_candidates, m)
        The partitions.
    weights : ndarray of shape (n_candidates,)
        Weights, adding up to 1.
    evidence : ndarray of shape (n_candidates,) or None
        Log-likelihood of held-out constraints; None if none were held out.
    coordinates : ndarray of shape (m, q)
        Where the samples are.
    """

    names: tuple[str, ...]
    samples: Ints
    labels: Ints
    weights: Floats
    evidence: Floats | None
    coordinates: Floats


def committee_of(answer: Answer, order: Ints) -> Committee:
    """Return the candidates of an answer; `order` are the samples in the order of its rows."""
    samples = order[answer.rows]
    ascending = np.argsort(samples)
    members, given = answer.members, answer.model.reliability
    evidence = None
    if answer.n_held_out:
        held_out = np.array([one.held_out for one in members])
        evidence = log_likelihood(held_out, given, least_rate(given.size))
    labels = np.array([one.partition.labels for one in members], np.int32)
    return Committee(
        tuple(one.name for one in members),
        samples[ascending],
        labels[:, ascending],
        answer.consensus.weights,
        evidence,
        answer.view.coordinates[answer.rows][ascending],
    )
