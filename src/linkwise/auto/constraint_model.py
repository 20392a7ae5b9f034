"""What the constraints say about some samples, any of them perhaps wrong, and its posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from linkwise.auto.learner import log_softmax
from linkwise.auto.noise import Reliability
from linkwise.auto.propagation import Pairs, propagate

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Ints
    from linkwise.constraints import Constraints


class ConstraintModel(NamedTuple):
    """Pairs and labels of some samples, the *vertices*, for `k` clusters."""

    vertices: Ints  # the constrained samples, ascending
    pairs: Pairs  # between places in `vertices`
    labelled: Ints  # places in `vertices` of samples with a label
    label: Ints  # the number of each one's label
    k: int

    @classmethod
    def of(cls, constraints: Constraints, k: int) -> ConstraintModel:
        """Return the explicit pairs, must-links first, and the labels."""
        vertices = np.flatnonzero(constraints.constrained)
        place = np.full(constraints.n_samples, -1, np.int32)
        place[vertices] = np.arange(vertices.size)
        table = constraints.table
        labelled, label = labelled_samples(constraints)
        pairs = Pairs(place[table.pairs].reshape(-1, 2), table.sign > 0, table.belief)
        return cls(vertices, pairs, place[labelled].astype(np.intp), label, k)

    @property
    def n_constraints(self) -> int:
        """Number of pairs and labels."""
        return len(self.pairs.ends) + self.labelled.size

    @property
    def belief(self) -> Floats:
        """Belief of each pair, then of each label."""
        return np.concatenate((self.pairs.belief, np.ones(self.labelled.size)))

    @property
    def reliability(self) -> Reliability:
        """How far each pair, then each label, can be trusted."""
        n_wrong = np.ones(self.n_constraints)
        n_wrong[len(self.pairs.ends) :] = max(self.k - 1, 1)
        return Reliability(self.belief, n_wrong)

    def subset(self, kept: Bools) -> ConstraintModel:
        """Return some of the constraints, in the order of `belief`; the vertices stay."""
        pairs, labels = np.split(kept, [len(self.pairs.ends)])
        table = self.pairs
        return self._replace(
            pairs=Pairs(table.ends[pairs], table.together[pairs], table.belief[pairs]),
            labelled=self.labelled[labels],
            label=self.label[labels],
        )

    def posterior(
        self, log_probability: Floats, error_rate: float, messages: Floats | None = None
    ) -> Posterior:
        """Add the constraints to log-probabilities of the vertices, by belief propagation.

        `messages` of an earlier call are where the propagation begins; they are changed in place.
        """
        if messages is None:
            messages = np.zeros((len(self.pairs.ends), 2, self.k))
        likelihood, cluster = self._label_likelihood(log_probability, error_rate)
        found = propagate(log_probability + likelihood, self.pairs, error_rate, messages)
        without = log_softmax((found.logits - likelihood)[self.labelled])
        left_out = np.concatenate(
            (
                np.where(self.pairs.together, found.together, 1 - found.together),
                np.exp(without[np.arange(cluster.size), cluster]),
            )
        )
        return Posterior(np.exp(log_softmax(found.logits)), np.clip(left_out, 0.0, 1.0))

    def _label_likelihood(self, logits: Floats, error_rate: float) -> tuple[Floats, Ints]:
        """Return log-likelihoods of the labels, and the cluster that each label stands for."""
        likelihood = np.zeros((self.vertices.size, self.k))
        if not self.labelled.size:
            return likelihood, np.zeros(0, np.intp)
        known = np.exp(log_softmax(logits[self.labelled]))
        cluster = cluster_of_label(known, self.label)[self.label]
        likelihood[self.labelled] = np.log(max(error_rate, 1e-6) / max(self.k - 1, 1))
        likelihood[self.labelled, cluster] = np.log1p(-error_rate)
        return likelihood, cluster


class Posterior(NamedTuple):
    """Probabilities with what the constraints say."""

    probability: Floats  # (n_vertices, k)
    left_out: Floats  # for each pair, then each label: its probability given the others


def labelled_samples(constraints: Constraints) -> tuple[Ints, Ints]:
    """Return the labelled samples, and the number of each one's label."""
    if constraints.labels is None:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    labelled = np.flatnonzero(constraints.labels >= 0)
    _, number = np.unique(constraints.labels[labelled], return_inverse=True)
    return labelled, number.astype(np.intp)


def cluster_of_label(probability: Floats, label: Ints) -> Ints:
    """Return the cluster that each label stands for: the matching with the highest probability.

    `probability` and `label` are of the labelled samples.
    """
    return matching(probability, np.eye(probability.shape[1])[label])


def matching(Q: Floats, reference: Floats) -> Ints:
    """Return the order of the columns of `Q` that agrees best with a reference."""
    _, order = linear_sum_assignment(-(reference.T @ Q))
    return order.astype(np.intp)


def misplaced(constraints: Constraints, clusters: Ints) -> tuple[Ints, Bools]:
    """Return the labelled samples, and which are outside the cluster of their label."""
    labelled, label = labelled_samples(constraints)
    if not labelled.size:
        return labelled, np.zeros(0, bool)
    k = max(int(clusters.max()), int(label.max())) + 1
    cluster = cluster_of_label(np.eye(k)[clusters[labelled]], label)
    return labelled, clusters[labelled] != cluster[label]
