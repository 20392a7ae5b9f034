"""More labels than candidates learn from: some of each class are learnt, the rest decide later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linkwise.auto.constraint_model import cluster_of_label, labelled_samples

if TYPE_CHECKING:
    from linkwise._types import Floats
    from linkwise.auto.ensemble import Answer
    from linkwise.constraints import Constraints


MOST_LABELS = 20_000  # samples with a label that candidates learn from
LEAST_OF_LABEL = 50  # of each label, if there are so many


def learnt_constraints(constraints: Constraints, seed: int) -> Constraints:
    """Return the constraints without those labels that would be too many to learn from."""
    labelled, label = labelled_samples(constraints)
    if labelled.size <= MOST_LABELS:
        return constraints
    mixed = np.random.RandomState(seed).permutation(labelled.size)
    mixed = mixed[np.argsort(label[mixed], kind="stable")]
    sizes = np.bincount(label)
    rank = np.arange(mixed.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Some of every label first; then all in proportion.
    plenty = rank >= LEAST_OF_LABEL
    turn = np.where(plenty, rank / np.repeat(sizes, sizes), rank)
    kept = mixed[np.lexsort((turn, plenty))[:MOST_LABELS]]
    labels = np.full(constraints.n_samples, -1)
    labels[labelled[kept]] = label[kept]
    return replace(constraints, labels=labels)


def add_other_labels(
    probability: Floats, constraints: Constraints, learnt: Constraints, answer: Answer
) -> Floats:
    """Add the labels that were not learnt to the probabilities, in place.

    Returns the probability of each pair, then of each label, given the others.
    """
    left_out = answer.posterior.left_out
    if learnt is constraints:
        return left_out
    assert learnt.labels is not None
    labelled, label = labelled_samples(constraints)
    known = learnt.labels[labelled] >= 0
    cluster = cluster_of_label(probability[labelled[known]], label[known])[label]
    rate, n_pairs = answer.consensus.error_rate, constraints.n_pairs
    said = np.empty(n_pairs + labelled.size)
    said[:n_pairs] = left_out[:n_pairs]
    said[n_pairs:][known] = left_out[n_pairs:]
    rest, of_rest = labelled[~known], cluster[~known]
    said[n_pairs:][~known] = probability[rest, of_rest]
    probability[rest, of_rest] *= (1 - rate) * max(answer.model.k - 1, 1) / max(rate, 1e-6)
    probability[rest] /= probability[rest].sum(axis=1, keepdims=True)
    return said
