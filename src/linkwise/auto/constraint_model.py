"""What the constraints say about some samples, any of them perhaps wrong, and its posterior.

A share of the constraints is wrong. The *error rate* of their source is estimated with everything
else; at that rate, a prediction of a constraint has a likelihood, and a constraint a probability to
be wrong.

A sample has a distribution over clusters, the *opinion* of a candidate. A pair says that its two
samples share a cluster, or that they do not. The messages of the sum-product algorithm add up what
all pairs say. On a tree the beliefs are the exact marginals; elsewhere they are a good
approximation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from linkwise._jit import njit
from linkwise.auto.learner import log_softmax

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int32s, Ints
    from linkwise.constraints import Constraints


RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
PRIOR_PAIRS = 20.0  # correct constraints that the prior of the error rate counts for
DENSE = 2.0  # pairs for each constrained sample beyond which samples are held out, not pairs
MOST_LABELS = 20_000  # samples with a label that candidates learn from
LEAST_OF_LABEL = 50  # of each label, if there are so many

DAMPING = 0.3  # share of the old message that stays: loops would oscillate
MAX_SWEEPS = 12
TOL = 1e-3  # largest change of a message after which nothing more is sent


class Reliability(NamedTuple):
    """How far constraints can be trusted: pairs, then labels."""

    belief: Floats
    n_wrong: Floats  # ways of being wrong: 1 for a pair, one for each other cluster for a label


class Pairs(NamedTuple):
    """Pairs of vertices, whether they are said to be together, and how firmly."""

    ends: Int32s  # (m, 2)
    together: Bools  # (m,)
    belief: Floats  # (m,), 1: as reliable as the others; near 0: says next to nothing


class ConstraintModel(NamedTuple):
    """Pairs and labels of some samples, the *vertices*, for `k` clusters."""

    vertices: Ints  # the constrained samples, ascending
    pairs: Pairs  # between places in `vertices`
    labelled: Ints  # places in `vertices` of samples with a label
    label: Ints  # the number of each one's label
    k: int
    n_constraints: int  # pairs and labels
    reliability: Reliability  # how far each pair, then each label, can be trusted
    is_dense: bool  # so many pairs of the same samples that most follow from others

    @classmethod
    def of(cls, constraints: Constraints, k: int) -> ConstraintModel:
        """Return the explicit pairs, must-links first, and the labels."""
        vertices = np.flatnonzero(constraints.constrained)
        place = np.full(constraints.n_samples, -1, np.int32)
        place[vertices] = np.arange(vertices.size)
        table = constraints.table
        labelled, label = labelled_samples(constraints)
        pairs = Pairs(place[table.pairs].reshape(-1, 2), table.sign > 0, table.belief)
        belief = np.concatenate((table.belief, np.ones(labelled.size)))
        n_wrong = np.ones(belief.size)
        n_wrong[table.belief.size :] = max(k - 1, 1)
        given = Reliability(belief, n_wrong)
        is_dense = len(pairs.ends) > DENSE * vertices.size
        at = place[labelled].astype(np.intp)
        return cls(vertices, pairs, at, label, k, belief.size, given, is_dense)

    def subset(self, kept: Bools) -> ConstraintModel:
        """Return some of the constraints, given for the pairs, then the labels; all vertices."""
        pairs, labels = np.split(kept, [len(self.pairs.ends)])
        table, given = self.pairs, self.reliability
        return self._replace(
            pairs=Pairs(table.ends[pairs], table.together[pairs], table.belief[pairs]),
            labelled=self.labelled[labels],
            label=self.label[labels],
            n_constraints=int(kept.sum()),
            reliability=Reliability(given.belief[kept], given.n_wrong[kept]),
        )

    def posterior(
        self, log_probability: Floats, error_rate: float, messages: Floats | None = None
    ) -> Posterior:
        """Add the constraints to log-probabilities of the vertices, by belief propagation.

        `messages` of an earlier call are where the propagation begins; they are changed in place.
        """
        if messages is None:
            messages = np.zeros((len(self.pairs.ends), 2, self.k))
        cluster = self.label
        if not cluster.size:
            found = propagate(log_probability, self.pairs, error_rate, messages=messages)
            left_out = np.where(self.pairs.together, found.together, 1 - found.together)
            np.minimum(np.maximum(left_out, 0.0, out=left_out), 1.0, out=left_out)
            return Posterior(np.exp(log_softmax(found.logits)), left_out)
        likelihood = np.zeros((self.vertices.size, self.k))  # each label stands for a cluster
        known = np.exp(log_softmax(log_probability[self.labelled]))
        cluster = cluster_of_label(known, self.label)[self.label]
        likelihood[self.labelled] = np.log(max(error_rate, 1e-6) / max(self.k - 1, 1))
        likelihood[self.labelled, cluster] = np.log1p(-error_rate)
        found = propagate(log_probability + likelihood, self.pairs, error_rate, messages=messages)
        of_pairs = np.where(self.pairs.together, found.together, 1 - found.together)
        without = log_softmax((found.logits - likelihood)[self.labelled])
        of_labels = np.exp(without[np.arange(cluster.size), cluster])
        left_out = np.clip(np.concatenate((of_pairs, of_labels)), 0.0, 1.0)
        return Posterior(np.exp(log_softmax(found.logits)), left_out)


class Posterior(NamedTuple):
    """Probabilities with what the constraints say."""

    probability: Floats  # (n_vertices, k)
    left_out: Floats  # for each pair, then each label: its probability given the others


# --- belief propagation


class Beliefs(NamedTuple):
    """The outcome of a propagation."""

    logits: Floats  # (n_vertices, k), opinions and all messages added up
    together: Floats  # (m,), probability that a pair is together, without what it says itself
    n_sweeps: int
    change: float  # of the last sweep: below the tolerance if it converged


def propagate(
    opinion: Floats,
    pairs: Pairs,
    noise: float,
    *,
    messages: Floats,
    max_sweeps: int = MAX_SWEEPS,
    tol: float = TOL,
    damping: float = DAMPING,
) -> Beliefs:
    """Send messages along all pairs until they settle.

    `opinion` are logarithms of probabilities up to a constant in each row, `noise` the probability
    that a pair is wrong. `messages`, of shape (m, 2, k), go into the first and the second vertex of
    each pair; they are changed in place, so that a later call goes on from here.

    Examples
    --------
    Of two samples that are apart, the first one knows where it is.

    >>> pairs = Pairs(np.array([[0, 1]], np.int32), np.array([False]), np.ones(1))
    >>> opinion = np.log([[0.9, 0.1], [0.5, 0.5]])
    >>> found = propagate(
    ...     opinion, pairs, 0.0, messages=np.zeros((1, 2, 2)), max_sweeps=100, tol=1e-9
    ... )
    >>> np.exp(found.logits[1] - np.logaddexp.reduce(found.logits[1])).round(3).tolist()
    [0.1, 0.9]
    """
    total, together = np.empty_like(opinion, order="C"), np.empty(pairs.belief.size)
    scratch = np.empty((3, opinion.shape[1]))
    # The probability that the samples of a pair *are* together, given what it says
    flip = flip_rate(pairs.belief, noise)
    agreement = np.where(pairs.together, 1 - flip, flip)
    n_sweeps, change = _propagate(
        np.ascontiguousarray(opinion),
        (pairs.ends, agreement),
        (messages, total, together, scratch),
        (max_sweeps, tol, damping),
    )
    return Beliefs(total, together, n_sweeps, change)


@njit(cache=True, nogil=True)
def _propagate(opinion, said, arrays, limits):  # type: ignore[no-untyped-def]
    ends, agreement = said
    messages, total, together, scratch = arrays
    max_sweeps, tol, damping = limits
    n_sweeps, change = 0, 0.0
    _sum_messages(total, opinion, ends, messages)
    for _ in range(max_sweeps):
        change = 0.0
        for e in range(together.size):
            # Both cavities first: the new messages of a pair do not know of each other.
            _cavities(total, ends, messages, e, scratch)
            for side in range(2):
                new = _message(messages, e, side, agreement[e], damping, scratch)
                change = max(change, new)
        _sum_messages(total, opinion, ends, messages)
        n_sweeps += 1
        if change < tol:
            break
    for e in range(together.size):
        _cavities(total, ends, messages, e, scratch)
        together[e] = 0.0
        for c in range(total.shape[1]):
            together[e] += scratch[0, c] * scratch[1, c]
    return n_sweeps, change


@njit(cache=True, nogil=True)
def _sum_messages(total, opinion, ends, messages):  # type: ignore[no-untyped-def]
    for vertex in range(total.shape[0]):
        for c in range(total.shape[1]):
            total[vertex, c] = opinion[vertex, c]
    for e in range(ends.shape[0]):
        for side in range(2):
            vertex = ends[e, side]
            for c in range(total.shape[1]):
                total[vertex, c] += messages[e, side, c]


@njit(cache=True, nogil=True)
def _cavities(total, ends, messages, e, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Write the beliefs of the vertices of a pair, each without the message of the pair."""
    for side in range(2):
        vertex = ends[e, side]
        largest = -np.inf
        for c in range(total.shape[1]):
            out[side, c] = total[vertex, c] - messages[e, side, c]
            largest = max(largest, out[side, c])
        add = 0.0
        for c in range(total.shape[1]):
            out[side, c] = np.exp(out[side, c] - largest)
            add += out[side, c]
        for c in range(total.shape[1]):
            out[side, c] /= add


@njit(cache=True, nogil=True)
def _message(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    messages, e, side, agreement, damping, scratch
):
    """Renew a message given the cavity belief of its sender; return how much it changed."""
    largest = -np.inf
    for c in range(messages.shape[2]):
        p = scratch[1 - side, c]
        scratch[2, c] = np.log(max(agreement * p + (1 - agreement) * (1 - p), 1e-300))
        largest = max(largest, scratch[2, c])
    change = 0.0
    for c in range(messages.shape[2]):
        old = messages[e, side, c]
        renewed = damping * old + (1 - damping) * (scratch[2, c] - largest)
        change = max(change, abs(renewed - old))
        messages[e, side, c] = renewed
    return change


# --- labels


def labelled_samples(constraints: Constraints) -> tuple[Ints, Ints]:
    """Return the labelled samples, and the number of each one's label."""
    if constraints.labels is None:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    labelled = np.flatnonzero(constraints.labels >= 0)
    _, number = np.unique(constraints.labels[labelled], return_inverse=True)
    return labelled, number.astype(np.intp)


def matching(Q: Floats, reference: Floats) -> Ints:
    """Return the order of the columns of `Q` that agrees best with a reference."""
    _, order = linear_sum_assignment(-(reference.T @ Q))
    return order.astype(np.intp)


def cluster_of_label(probability: Floats, label: Ints) -> Ints:
    """Return the cluster that each label stands for: the matching with the highest probability.

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
    probability: Floats,
    constraints: Constraints,
    learnt: Constraints,
    *,
    said: Posterior,
    rate: float,
) -> Floats:
    """Add the labels that were not learnt to the probabilities of all samples, in place.

    Returns the probability of each pair, then of each label, given the others.
    """
    assert learnt.labels is not None
    labelled, label = labelled_samples(constraints)
    known = learnt.labels[labelled] >= 0
    cluster = cluster_of_label(probability[labelled[known]], label[known])[label]
    n_pairs, k = constraints.n_pairs, probability.shape[1]
    left_out = np.empty(n_pairs + labelled.size)
    left_out[:n_pairs] = said.left_out[:n_pairs]
    left_out[n_pairs:][known] = said.left_out[n_pairs:]
    rest, of_rest = labelled[~known], cluster[~known]
    left_out[n_pairs:][~known] = probability[rest, of_rest]
    probability[rest, of_rest] *= (1 - rate) * max(k - 1, 1) / max(rate, 1e-6)
    probability[rest] /= probability[rest].sum(axis=1, keepdims=True)
    return left_out


# --- constraints that may be wrong


def flip_rate(belief: Floats, noise: float | Floats) -> Floats:
    """Return the probability that what is said is wrong.

    A share `belief` of what is said is said by someone who errs at the rate `noise`; the rest is
    the toss of a coin.
    """
    flip: Floats = belief * noise + (1 - belief) / 2
    return flip


def noisy(predicted: Floats, given: Reliability, rate: float | Floats) -> Floats:
    """Return predictions of constraints of which some say another thing than what is true."""
    flip = flip_rate(given.belief, rate)
    return (1 - flip) * predicted + flip * (1 - predicted) / given.n_wrong


def log_likelihood(predicted: Floats, given: Reliability, rate: float | Floats) -> Floats:
    """Return the log-likelihood of the constraints, at a rate of errors, or at each of a column."""
    total: Floats = np.log(np.maximum(noisy(predicted, given, rate), 1e-300)).sum(axis=-1)
    return total


def likelihood(predicted: Floats, given: Reliability) -> tuple[float, float]:
    """Return the log-likelihood at the rate of errors that explains it best, and that rate."""
    rates = np.array(RATES)
    values = log_likelihood(predicted, given, rates[:, None]) + PRIOR_PAIRS * np.log1p(-rates)
    best = int(values.argmax())
    return float(values[best]), RATES[best]


def guessing_score(model: ConstraintModel) -> float:
    """Return the log-likelihood of guessing the constraints.

    A pair is guessed by the share of must-links (one of each is added), a label among the clusters.
    """
    n_pairs, n_must = len(model.pairs.ends), int(model.pairs.together.sum())
    p = (n_must + 1) / (n_pairs + 2)
    of_pairs = n_must * np.log(p) + (n_pairs - n_must) * np.log(1 - p)
    return float(of_pairs + model.labelled.size * np.log(1 / model.k))


def probability_wrong(predicted: Floats, given: Reliability, rate: float) -> Floats:
    """Return the probability of each constraint to be wrong, given its prediction by others."""
    flip = flip_rate(given.belief, rate)
    by_error = flip * (1 - predicted) / given.n_wrong
    wrong: Floats = by_error / np.maximum(noisy(predicted, given, rate), 1e-300)
    return wrong
