"""Consensus: candidates weighted by prior and evidence, averaged around a centre; its labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax

from linkwise.auto.constraint_model import (
    Reliability,
    cluster_of_label,
    labelled_samples,
    likelihood,
    log_likelihood,
    matching,
    noisy,
)
from linkwise.auto.learner import log_softmax
from linkwise.constraints.coloring import CannotLinkGraph
from linkwise.constraints.table import symmetric_matrix
from linkwise.search.cut import effort_for, improve
from linkwise.search.local_search import evaluate
from linkwise.search.objective import assert_satisfied, certain_groups, colorer
from linkwise.search.problem import Groups, edgeless_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Ints
    from linkwise.constraints import Constraints


ERROR_RATE = 0.05  # of constraints, before any is looked at
EPS = 1e-3  # added to a probability before its logarithm is taken
TRUST = 0.95  # probability of the cluster that a hard partition gives to a sample
CENTRE_POWER = 4.0  # of the agreement with the centre, by which weights are multiplied
FEW = 9  # constraints below which some groups have another prior
# Of wrong constraints when candidates are compared: one surprise decides nothing. It is larger as
# long as a few constraints could lead away from the anchor by chance.
LEAST_RATE, FEW_RATE = 0.05, 0.15
STACK_FROM = 30  # constraints from which groups are stacked
STACK_PRIOR = 3.0  # constraints that the prior of the stacking counts for
PER_DEGREE, MOST_DEGREES = 16.0, 6.0  # constraints for each degree of temperature; most degrees
EVEN = 0.5  # probability above which a constraint is predicted right
KEPT = 1e-3  # weight, relative to the largest, below which a candidate is left out
GRADIENT = 1e-6  # of the mean log-likelihood, where stacking weights are found

ANCHOR_MASS = 1e-9  # of the vertex that stands for a cluster
STARTS, FEW_STARTS = 20, 3  # of feasible labels, up to so many groups, and beyond
MANY_GROUPS = 2_000


# --- soft partitions


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
    agreement = rand_matrix(parts)
    centre = int((agreement @ weights).argmax())
    weights = weights * np.maximum(agreement[centre], 0.0) ** power
    weights = weights / weights.sum()
    return Mean(matched_mean(parts, weights, parts[centre]), weights, centre)


def matched_mean(parts: Sequence[Floats], weights: Floats, reference: Floats) -> Floats:
    """Average soft partitions, after matching clusters with a reference, then with their mean."""
    for _ in range(2):
        mean = np.zeros_like(reference)
        for weight, Q in zip(weights, parts, strict=True):
            mean += weight * Q[:, matching(Q, reference)]
        reference = mean
    return reference


def rand_matrix(parts: Sequence[Floats]) -> Floats:
    """Return the adjusted Rand index of every two partitions, by their likeliest clusters."""
    n, k = parts[0].shape
    p = len(parts)
    member = np.zeros((n, p * k))
    for at, Q in enumerate(parts):
        member[np.arange(n), at * k + Q.argmax(axis=1)] = 1.0
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


# --- candidates, weighted


class Group(NamedTuple):
    """Candidates of one kind. Its prior is shared among them."""

    name: str
    prior: float
    stacked: float | None = None  # the prior where groups are stacked, if it is another one
    few: float | None = None  # with few constraints, unless clusters are separate components


# The answer without constraints: what is to be left only for good reasons.
ANCHOR = Group("anchor", 0.6, stacked=0.1)


class Member(NamedTuple):
    """A candidate, its partition, its prior, and its predictions of held-out constraints."""

    name: str
    group: Group
    partition: Partition
    prior: float  # within its group; all of a group add up to 1
    held_out: Floats | None = None
    is_apart: bool = False  # whether its clusters are separate components of the graph
    # Of a candidate with constraints: log-probabilities of the vertices, found without each fold
    said: tuple[Floats, ...] = ()


class Consensus(NamedTuple):
    """What the candidates say together."""

    probability: Floats  # (n_rows, k)
    weights: Floats  # of all candidates, before the centre is chosen
    around: Floats  # the same around the centre; 0 for those that are left out
    centre: int  # the candidate that agrees most with the others


def temperature(n_constraints: int) -> float:
    """Return how far evidence is tempered: candidates share their mistakes."""
    return float(np.clip(n_constraints / PER_DEGREE, 1.0, MOST_DEGREES))


def least_rate(n_constraints: int) -> float:
    """Return the rate of wrong constraints at which candidates are compared."""
    return FEW_RATE if n_constraints < STACK_FROM else LEAST_RATE


def find_consensus(members: Sequence[Member], given: Reliability | None = None) -> Consensus:
    """Weigh the candidates, and average those that resemble their centre."""
    weights = weigh(members, given)
    kept = np.flatnonzero(weights > KEPT * weights.max())
    parts = []
    for at in kept.tolist():
        logits = members[at].partition.log_probability
        parts.append(np.exp(log_softmax(logits)))
    power = CENTRE_POWER / temperature(0 if given is None else given.belief.size) ** 2
    mean = centred_mean(parts, weights[kept], power=power)
    around = np.zeros(len(members))
    around[kept] = mean.weights
    return Consensus(mean.probability, weights, around, int(kept[mean.centre]))


def weigh(members: Sequence[Member], given: Reliability | None) -> Floats:
    """Return weights: prior times evidence, tempered; with many constraints, stacked groups."""
    n_constraints = 0 if given is None else given.belief.size
    prior, held_out = np.empty(len(members)), []
    for at, one in enumerate(members):
        of_group = one.group.prior
        if one.group.few is not None and n_constraints < FEW and not one.is_apart:
            of_group = one.group.few
        prior[at] = one.prior * of_group
        held_out.append(one.held_out)
    prior /= prior.sum()
    if given is None or held_out[0] is None:
        return prior
    predicted = np.array(held_out)
    evidence = log_likelihood(predicted, given, least_rate(n_constraints))
    logits = (np.log(prior + 1e-12) + evidence) / temperature(n_constraints)
    if n_constraints >= STACK_FROM:
        stacked = _stacked(members, logits, predicted, given=given)
        return _beside_anchor(members, stacked, predicted, given=given)
    weights: Floats = softmax(logits)
    return weights


def _stacked(
    members: Sequence[Member], logits: Floats, held_out: Floats, *, given: Reliability
) -> Floats:
    """Return weights by likelihood within each group, and stacking weights of the groups."""
    groups = list(dict.fromkeys(one.group for one in members))
    within = np.zeros((len(groups), len(members)))
    for at, group in enumerate(groups):
        inside = np.array([one.group == group for one in members])
        within[at, inside] = softmax(logits[inside])
    prior = np.array([one.prior if one.stacked is None else one.stacked for one in groups])
    return stacking_weights(within @ held_out, given, prior) @ within


def _beside_anchor(
    members: Sequence[Member], weights: Floats, held_out: Floats, *, given: Reliability
) -> Floats:
    """Return weights with the anchor's raised as far as constraints do not speak against it.

    Where all candidates predict the constraints alike, these tell nothing, and the answer without
    them is to be kept. It is, with the odds of its prior times the ratio of the likelihoods of the
    anchor and of the mixture. What counts is which constraints each predicts right, not how
    confidently: a learner is surer of its clusters than a partition that is not quite trusted.
    """
    groups = [one.group for one in members]
    if ANCHOR not in groups:  # interrupted before there was one
        return weights
    anchor = groups.index(ANCHOR)
    compared = np.array([held_out[anchor], weights @ held_out])
    is_right = np.where(compared > EVEN, 1.0, 0.0)
    of_anchor, of_mixture = log_likelihood(is_right, given, LEAST_RATE)
    kept = expit(logit(ANCHOR.prior) + of_anchor - of_mixture)
    raised: Floats = (1 - kept) * weights
    raised[anchor] += kept
    return raised


def stacking_weights(predicted: Floats, given: Reliability, prior: Floats) -> Floats:
    r"""Return the weights of a mixture that predicts constraints best.

    `predicted` has a row for each part of the mixture: the probabilities of the constraints,
    predicted without them. A constraint is wrong with some probability, which turns a prediction
    :math:`s` into :math:`\tilde s`. The weights maximise

    .. math:: \sum_i \log \sum_p w_p \tilde s_{pi} + a \sum_p w^0_p \log w_p

    where the prior :math:`w^0` counts for :math:`a` = `STACK_PRIOR` constraints. Unlike weights by
    the likelihood of each part, they do not settle on the best part while the others know something
    that it does not.
    """
    before = prior / prior.sum()
    rate = max(likelihood(before @ predicted, given)[1], LEAST_RATE)
    adjusted = noisy(predicted, given, rate)
    total = adjusted.shape[1] + STACK_PRIOR

    def loss(x: Floats) -> tuple[float, Floats]:
        weights = softmax(x)
        mixture = weights @ adjusted
        counts = weights * (adjusted / mixture).sum(axis=1) + STACK_PRIOR * before
        value = np.log(mixture).sum() + STACK_PRIOR * before @ np.log(weights)
        return -float(value) / total, weights - counts / total

    # Concave in the weights, so there is one stationary point; the gradient is its certificate.
    found = minimize(loss, np.log(before), jac=True, method="BFGS", options={"gtol": GRADIENT})
    weights: Floats = softmax(found.x)
    return weights


# --- from probabilities to labels: the likeliest ones, or the likeliest that satisfy constraints


def likeliest_labels(probability: Floats) -> Ints:
    """Give each sample its likeliest cluster; an empty cluster gets the sample likeliest for it."""
    labels = probability.argmax(axis=1)
    k = probability.shape[1]
    sizes = np.bincount(labels, minlength=k)
    for c in np.flatnonzero(sizes == 0):
        gain = np.where(sizes[labels] > 1, probability[:, c], -1.0)
        taken = int(gain.argmax())
        if gain[taken] < 0:
            break  # fewer samples than clusters
        sizes[labels[taken]] -= 1
        labels[taken], sizes[c] = c, 1
    return labels.astype(np.intp)


def feasible_labels(
    log_probability: Floats, constraints: Constraints, rng: np.random.RandomState
) -> Ints:
    """Return likely labels among those that satisfy every certain constraint.

    Raises ConflictError if there are none, or none were found. Each cluster is an *anchor*: a
    vertex that all anchors are cannot-linked to. A sample in a cluster pays the price
    ``-log p`` to its anchor, and single moves and Kempe chains lower the sum.
    """
    k = log_probability.shape[1]
    groups = certain_groups(constraints, k, rng)
    cost = np.zeros((groups.n_groups, k))
    np.add.at(cost, groups.of_sample, -log_probability)
    g = groups.n_groups
    vertex, cluster = np.divmod(np.arange(g * k), k)
    prices = symmetric_matrix(np.column_stack((vertex, g + cluster)), -cost.ravel(), g + k)
    a, b = np.triu_indices(k, 1)
    clique = symmetric_matrix(np.column_stack((a, b)), np.ones(a.size), k)
    apart = CannotLinkGraph(
        np.concatenate((groups.apart.indptr, groups.apart.indptr[-1] + clique.indptr[1:])).astype(
            np.int64
        ),
        np.concatenate((groups.apart.indices, g + clique.indices)).astype(np.int32),
    )
    # The groups are the items now: they are contracted already.
    feasible = np.concatenate((groups.feasible, np.arange(k))).astype(np.int32)
    items = Groups(np.arange(g + k, dtype=np.int32), g + k, apart, prices, feasible, n_anchors=k)
    mass = np.concatenate((np.bincount(groups.of_sample, minlength=g), np.full(k, ANCHOR_MASS)))
    problem = edgeless_problem(items, mass.astype(np.float64))._replace(gamma=1.0)
    effort = effort_for("default", g, k)
    alone = edgeless_problem(groups, np.ones(groups.of_sample.size))
    color = colorer(alone, k, groups.feasible)
    best, lowest = None, np.inf
    for number in range(STARTS if g <= MANY_GROUPS else FEW_STARTS):
        # The first start is the likeliest; the others lean elsewhere.
        lean = 1.0 if number == 0 else rng.exponential(size=cost.shape)
        z = np.concatenate((color(cost * lean, rng), np.arange(k))).astype(np.int32)
        z = improve(problem, z, rng, k=k, effort=effort)
        value = evaluate(problem, z, k)
        if value < lowest:
            best, lowest = z, value
    assert best is not None
    name = np.empty(k, np.intp)
    name[best[g:]] = np.arange(k)  # anchors may have changed places
    labels: Ints = name[best[:g]][groups.of_sample]
    assert_satisfied(constraints, labels)
    return labels


def in_order(labels: Ints, constraints: Constraints, k: int) -> Ints:
    """Return the clusters as they are numbered: those of labels as these, then by appearance.

    Labels that are no numbers of clusters, being too large, are numbered in their order.
    """
    seen, first = np.unique(labels, return_index=True)
    order = seen[np.argsort(first)]
    order = np.concatenate((order, np.setdiff1d(np.arange(k), order))).astype(np.intp)
    if constraints.labels is None:
        return order
    labelled, label = labelled_samples(constraints)
    values = np.unique(constraints.labels[labelled])
    named = cluster_of_label(np.eye(k)[labels[labelled]], label)[: values.size]
    numbered = np.empty(k, np.intp)
    own = values if values[-1] < k else np.arange(values.size)
    numbered[own] = named
    numbered[np.setdiff1d(np.arange(k), own)] = order[~np.isin(order, named)]
    return numbered
