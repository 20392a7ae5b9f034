"""What all experts learn from: samples, and what is said about some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.consensus import matching
from linkwise.auto.expert import Ridge, log_softmax
from linkwise.auto.propagation import Pairs, propagate

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Ints
    from linkwise.constraints import Constraints


class Task(NamedTuple):
    """Samples, described by bases, and what is said about some of them."""

    ridges: dict[str, Ridge]
    weights: Floats  # of the samples
    vertices: Ints  # samples that something is said about
    pairs: Pairs  # between vertices
    labelled: Ints  # vertices with a label
    label: Ints  # the number of each one's label
    k: int

    @property
    def is_told(self) -> bool:
        """Whether anything is said at all."""
        return bool(self.vertices.size)

    @property
    def belief(self) -> Floats:
        """How firmly each pair, then each label, is said."""
        return np.concatenate((self.pairs.belief, np.ones(self.labelled.size)))

    def told(self, kept: Bools) -> Task:
        """Return the task with some of the pairs and labels, in the order of `belief`."""
        pairs, labels = np.split(kept, [len(self.pairs.ends)])
        return self._replace(
            pairs=Pairs(
                self.pairs.ends[pairs], self.pairs.together[pairs], self.pairs.belief[pairs]
            ),
            labelled=self.labelled[labels],
            label=self.label[labels],
        )

    def blind(self) -> Task:
        """Return the task without constraints."""
        nothing = self.told(np.zeros(len(self.pairs.ends) + self.labelled.size, bool))
        return nothing._replace(vertices=self.vertices[:0])


class Settled(NamedTuple):
    """Opinions and what is said, added up."""

    probability: Floats  # (n, k)
    said: Floats  # for each pair, then each label: its probability without itself
    logits: Floats  # (n_vertices, k)


def settle(task: Task, opinion: Floats, noise: float, messages: Floats | None = None) -> Settled:
    """Add what pairs and labels say to the opinion on their samples."""
    if messages is None:
        messages = np.zeros((len(task.pairs.ends), 2, task.k))
    probability = np.exp(log_softmax(opinion))
    at = task.vertices
    evidence, cluster = _label_evidence(task, probability, noise)
    found = propagate(opinion[at] + evidence, task.pairs, noise, messages)
    probability[at] = np.exp(log_softmax(found.logits))
    without = log_softmax((found.logits - evidence)[task.labelled])
    said = np.concatenate(
        (
            np.where(task.pairs.together, found.together, 1 - found.together),
            np.exp(without[np.arange(cluster.size), cluster]),
        )
    )
    return Settled(probability, np.clip(said, 0.0, 1.0), found.logits)


def labelled_samples(constraints: Constraints) -> tuple[Ints, Ints]:
    """Return the labelled samples, and the number of each one's label."""
    if constraints.labels is None:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    labelled = np.flatnonzero(constraints.labels >= 0)
    _, number = np.unique(constraints.labels[labelled], return_inverse=True)
    return labelled, number.astype(np.intp)


def cluster_of_label(probability: Floats, label: Ints) -> Ints:
    """Return the cluster that each label stands for, by the opinions on all samples that have it.

    `probability` and `label` are of the labelled samples.
    """
    return matching(probability, np.eye(probability.shape[1])[label])


def misplaced(constraints: Constraints, clusters: Ints) -> tuple[Ints, Bools]:
    """Return the labelled samples, and which are outside the cluster of their label."""
    labelled, label = labelled_samples(constraints)
    if not labelled.size:
        return labelled, np.zeros(0, bool)
    k = max(int(clusters.max()), int(label.max())) + 1
    cluster = cluster_of_label(np.eye(k)[clusters[labelled]], label)
    return labelled, clusters[labelled] != cluster[label]


def _label_evidence(task: Task, probability: Floats, noise: float) -> tuple[Floats, Ints]:
    """Return log-likelihoods of the labels, and the cluster that each labelled vertex is said."""
    evidence = np.zeros((task.vertices.size, task.k))
    if not task.labelled.size:
        return evidence, np.zeros(0, np.intp)
    known = probability[task.vertices[task.labelled]]
    cluster = cluster_of_label(known, task.label)[task.label]
    evidence[task.labelled] = np.log(max(noise, 1e-6) / max(task.k - 1, 1))
    evidence[task.labelled, cluster] = np.log1p(-noise)
    return evidence, cluster
