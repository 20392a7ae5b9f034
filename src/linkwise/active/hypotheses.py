"""Hypotheses: candidate partitions of :class:`~linkwise.Auto`, conditioned on answers.

A candidate is mostly right, never everywhere: near the boundary of a cluster it is less sure, and
any sample may be an odd one that belongs elsewhere. Answers are therefore conditioned on by the
sum-product algorithm, sample by sample: an odd sample that was asked about four times counts once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from linkwise.active.answers import Answer, last_answers
from linkwise.active.regions import Regions, find_regions
from linkwise.auto.consensus import likeliest_labels
from linkwise.auto.constraint_model import Pairs, propagate
from linkwise.auto.learner import log_softmax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Graph, Ints
    from linkwise.auto import Auto
    from linkwise.auto.report import Committee

WRONG = 0.05  # probability that an answer contradicts a right candidate
ODD = 0.1  # probability that a sample belongs to any cluster, whatever a candidate says
LEAST = 1e-3  # weight below which a candidate is not heard, relative to the largest
EPS = 1e-3  # added to a probability before answers are
SHOWN = 0.3  # weight of the clustering that is shown, relative to all candidates


class Clustering(NamedTuple):
    """Clusters of all samples."""

    labels: Ints
    probability: Floats  # (n_samples, n_clusters)


class Rival(NamedTuple):
    """A clustering into another number of clusters, of the same samples."""

    labels: Ints
    weight: float


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """Partitions of some samples, and how far each is believed.

    Parameters
    ----------
    samples : ndarray of shape (m,)
        The samples that are partitioned, ascending.
    labels : ndarray of shape (n_hypotheses, m)
        The partitions; the last one is the clustering that is shown.
    weights : ndarray of shape (n_hypotheses,)
        Weights, adding up to 1.
    W : csr_array or ndarray of shape (m, m)
        The graph of the samples.
    coordinates : ndarray of shape (m, q)
        Where the samples are.
    clustering : Clustering
        The clustering that is shown, of all samples.
    n_doubts : int, default=0
        The number of partitions, the first ones, that are there to be asked about only.
    """

    samples: Ints
    labels: Ints
    weights: Floats
    W: Graph
    coordinates: Floats
    clustering: Clustering
    n_doubts: int = 0

    @classmethod
    def of(cls, model: Auto, shown: Clustering) -> Hypotheses:
        """Return the candidates of a fit that are heard, and the clustering that is shown."""
        committee: Committee = model.committee_
        kept = committee.weights > LEAST * committee.weights.max()
        samples = committee.samples
        labels = np.vstack((committee.labels[kept], shown.labels[samples]))
        weights = np.append(committee.weights[kept], SHOWN * committee.weights[kept].sum())
        W = model.affinity_matrix_
        if samples.size < shown.labels.size:
            W = csr_array(W)[samples][:, samples]
        weights /= weights.sum()
        return cls(samples, labels, weights, W, committee.coordinates, shown)

    def explanation(self, labels: Ints, answers: Sequence[Answer]) -> float:
        """Return the log-likelihood of answers under a clustering of all samples."""
        alone = replace(self, labels=labels[None, self.samples], weights=np.ones(1))
        return Beliefs(alone, (), alone.weights).after_all(answers).log_likelihood

    def beside(self, rivals: Sequence[Rival]) -> Hypotheses:
        """Add clusterings into other numbers of clusters; the shown one stays the last."""
        if not rivals:
            return self
        others = np.array([one.labels for one in rivals])
        added = np.array([one.weight for one in rivals])
        weights = np.concatenate((added, (1 - added.sum()) * self.weights))
        return replace(self, labels=np.vstack((others, self.labels)), weights=weights)

    def doubted(self, rivals: Sequence[Rival]) -> Hypotheses:
        """Add clusterings that only questions look at; the shown one stays the last."""
        return replace(self.beside(rivals), n_doubts=len(rivals))

    @property
    def shown(self) -> Ints:
        """The clustering that is shown."""
        return self.labels[-1]

    @cached_property
    def degrees(self) -> Floats:
        """Degrees of the samples in the graph."""
        return np.maximum(np.asarray(self.W.sum(axis=1)).ravel(), 1e-300)

    @cached_property
    def distance(self) -> Floats:
        """One minus the adjusted Rand index, of every two hypotheses."""
        return np.maximum(1 - rand_indices(self.labels), 0.0)

    @cached_property
    def regions(self) -> Regions:
        """Small parts of the clusters that are shown."""
        return find_regions(self.coordinates, self.shown)

    @cached_property
    def memberships(self) -> list[Floats]:
        """Memberships of each partition: 1 inside a cluster, less at its boundary."""
        found: dict[bytes, Floats] = {}  # many candidates are equal
        for one in self.labels:
            if one.tobytes() not in found:
                found[one.tobytes()] = self.smoothed(np.eye(int(one.max()) + 1)[one])
        return [found[one.tobytes()] for one in self.labels]

    def probability(self, places: Ints) -> list[Floats]:
        """Return the probability of each cluster for some samples, before any answer."""
        return [(1 - ODD) * one[places] + ODD / one.shape[1] for one in self.memberships]

    def forget(self) -> None:
        """Give memory back; what is needed again is worked out again."""
        for name in ("memberships", "distance", "regions"):
            self.__dict__.pop(name, None)

    @cached_property
    def sureness(self) -> Floats:
        """Mean membership of each sample in its own cluster."""
        at = np.arange(self.samples.size)
        own = [one[at, labels] for one, labels in zip(self.memberships, self.labels, strict=True)]
        sureness: Floats = self.weights @ np.array(own)
        return sureness

    def smoothed(self, memberships: Floats) -> Floats:
        """Average memberships with those of the neighbours."""
        mean: Floats = 0.5 * memberships + 0.5 * (self.W @ memberships) / self.degrees[:, None]
        return mean


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What each hypothesis says about the samples, given all answers.

    Parameters
    ----------
    hypotheses : Hypotheses
    answers : tuple of Answer
        Answers so far; "unknown" ones say nothing.
    weights : ndarray of shape (n_hypotheses,)
        Weights of the hypotheses, given the answers.
    log_likelihood : float
        Of the answers that were added by `after`, each given those before.
    n_fitted : int
        The number of answers that the clustering rests on.
    """

    hypotheses: Hypotheses
    answers: tuple[Answer, ...]
    weights: Floats
    log_likelihood: float = 0.0
    n_fitted: int = 0

    def after_all(self, answers: Sequence[Answer]) -> Beliefs:
        """Return the beliefs after some more answers."""
        beliefs = self
        for answer in answers:
            beliefs = beliefs.after(answer)
        return beliefs

    def after(self, answer: Answer) -> Beliefs:
        """Return the beliefs after another answer."""
        answers = (*self.answers, answer)
        if answer.answer == "unknown":
            return replace(self, answers=answers)
        i, j = self.places((answer.i, answer.j))
        if min(i, j) < 0:  # of a sample that was not partitioned
            return replace(self, answers=answers)
        together = np.array([of_i @ of_j for of_i, of_j in self.probability(np.array([i, j]))])
        said = together if answer.answer == "same" else 1 - together
        weights = self.weights * (WRONG + (1 - 2 * WRONG) * said)
        log_likelihood = self.log_likelihood + float(np.log(weights.sum()))
        weights /= weights.sum()
        return replace(self, answers=answers, weights=weights, log_likelihood=log_likelihood)

    def places(self, samples: Sequence[int]) -> Ints:
        """Return where samples are among those that were partitioned; -1 if they are not."""
        known = self.hypotheses.samples
        found = np.minimum(np.searchsorted(known, samples), known.size - 1)
        places: Ints = np.where(known[found] == samples, found, -1)
        return places

    def probability(self, places: Ints) -> list[Floats]:
        """Return the probability of each cluster for some samples, by each hypothesis."""
        vertices, given = self._answered
        found = self.hypotheses.probability(places)
        if vertices.size:
            at = np.minimum(np.searchsorted(vertices, places), vertices.size - 1)
            is_answered = vertices[at] == places
            for one, theirs in zip(found, given, strict=True):
                one[is_answered] = theirs[at[is_answered]]
        return found

    @cached_property
    def _answered(self) -> tuple[Ints, list[Floats]]:
        """The places of the samples in answers, and what each hypothesis says about these."""
        vertices, pairs = self._pairs()
        alone = np.arange(vertices.size)
        before = self.hypotheses.probability(vertices)
        return vertices, [with_answers(one, alone, pairs) for one in before]

    @cached_property
    def consensus(self) -> Floats:
        """Probability of each cluster that is shown, of all samples."""
        known = self.hypotheses.clustering.probability + EPS
        vertices, pairs = as_pairs(told(self.answers))
        return with_answers(known / known.sum(axis=1, keepdims=True), vertices, pairs)

    @cached_property
    def labels(self) -> Ints:
        """The clustering that is shown, with the samples in answers where the answers say."""
        if len(self.answers) == self.n_fitted:
            return self.hypotheses.clustering.labels
        return likeliest_labels(self.consensus)

    @property
    def still_to_change(self) -> float:
        """Expected share of samples that more answers would move to another cluster.

        The mean over all hypotheses but the doubts, whatever their weights: these are too sure.
        """
        shown = self.labels[self.hypotheses.samples]
        heard = self.hypotheses.labels[self.hypotheses.n_doubts :]
        return float(np.mean([share_moved(one, shown) for one in heard]))

    def _pairs(self) -> tuple[Ints, Pairs]:
        """Return the places of the samples in answers, and the answers as pairs of them."""
        found = []
        for one in told(self.answers):
            i, j = self.places(one[:2])
            if min(i, j) >= 0:
                found.append(Answer(int(i), int(j), one.answer, one.belief))
        return as_pairs(found)


def told(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers that say something: of each pair the last one."""
    return [one for one in last_answers(answers).values() if one.answer != "unknown"]


def as_pairs(answers: Sequence[Answer]) -> tuple[Ints, Pairs]:
    """Return the samples in answers, ascending, and the answers as pairs of their places."""
    samples = np.array([one[:2] for one in answers], np.intp).reshape(-1, 2)
    vertices, ends = np.unique(samples, return_inverse=True)
    together = np.array([one.answer == "same" for one in answers], bool)
    belief = np.array([one.belief for one in answers], np.float64)
    return vertices, Pairs(ends.reshape(-1, 2).astype(np.int32), together, belief)


def with_answers(probability: Floats, vertices: Ints, pairs: Pairs) -> Floats:
    """Return the probabilities of clusters, given what answers say about some samples."""
    if not vertices.size:
        return probability
    messages = np.zeros((len(pairs.ends), 2, probability.shape[1]))
    found = propagate(np.log(probability[vertices]), pairs, WRONG, messages=messages)
    given = probability.copy()
    given[vertices] = np.exp(log_softmax(found.logits))
    return given


def share_moved(labels: Ints, shown: Ints) -> float:
    """Return the share of samples in another cluster, after the clusters were matched."""
    k = int(max(labels.max(), shown.max())) + 1
    table = np.zeros((k, k))
    np.add.at(table, (labels, shown), 1)
    return float(1 - table[linear_sum_assignment(-table)].sum() / labels.size)


def rand_indices(partitions: Ints) -> Floats:
    """Return the adjusted Rand index of every two partitions, of any numbers of clusters."""
    n = partitions.shape[1]
    sizes = partitions.max(axis=1) + 1
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    columns = (partitions + first[:, None]).ravel()
    rows = np.tile(np.arange(n), len(partitions))
    member = csr_array((np.ones(columns.size), (rows, columns)))
    table = (member.T @ member).toarray()
    twos = np.add.reduceat(np.add.reduceat(table * (table - 1) / 2, first, 0), first, 1)
    own = twos.diagonal()
    expected = np.outer(own, own) / max(n * (n - 1) / 2, 1)
    above = (own[:, None] + own) / 2 - expected
    is_trivial = above < 1e-9
    index: Floats = np.where(is_trivial, 1.0, (twos - expected) / np.where(is_trivial, 1.0, above))
    return index
