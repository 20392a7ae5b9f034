"""Consensus: candidates weighted by prior and evidence, averaged around their centre."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from linkwise.auto.learner import log_softmax
from linkwise.auto.noise import Reliability, likelihood, log_likelihood, noisy
from linkwise.auto.partition import CENTRE_POWER, centred_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats
    from linkwise.auto.partition import Partition


# Prior of the groups of candidates, shared among their members. The anchor is the answer without
# constraints: what is to be left only for good reasons.
GROUPS = {
    "anchor": 0.6,
    "unsupervised": 0.6,
    "learner": 0.3,
    "coarse cut": 0.1,
    "propagation": 0.05,
    "label propagation": 0.1,
    "micro-clusters": 0.05,
    "constrained cut": 0.05,
}
# Of coarse cuts while nothing learns from constraints, unless the graph falls into components.
FEW_COARSE, FEW = 0.03, 9
# Of wrong constraints when candidates are compared: one surprise decides nothing. It is larger as
# long as a few constraints could lead away from the anchor by chance.
LEAST_RATE, FEW_RATE = 0.05, 0.15
ANCHOR_FROM = 3  # constraints from which there is an anchor
STACK_FROM = 30  # constraints from which groups are stacked
STACK_PRIOR = 3.0  # constraints that the prior of the stacking counts for
STACK_GROUPS = GROUPS | {"anchor": 0.1, "unsupervised": 0.3}  # the prior of the groups there
PER_DEGREE, MOST_DEGREES = 16.0, 6.0  # constraints for each degree of temperature; most degrees
KEPT = 1e-3  # weight, relative to the largest, below which a candidate is left out
GRADIENT = 1e-6  # of the mean log-likelihood, where stacking weights are found


class Member(NamedTuple):
    """A candidate, its partition, its prior, and its predictions of held-out constraints."""

    name: str
    group: str
    partition: Partition
    prior: float  # within its group; all of a group add up to 1
    held_out: Floats | None = None
    is_apart: bool = False  # whether its clusters are separate components of the graph


class Consensus(NamedTuple):
    """What the candidates say together."""

    probability: Floats  # (n_rows, k)
    weights: Floats  # of all candidates, before the centre is chosen
    centre: str  # name of the candidate that agrees most with the others
    error_rate: float  # of the constraints


def temperature(n_constraints: int) -> float:
    """Return how far evidence is tempered: candidates share their mistakes."""
    return float(np.clip(n_constraints / PER_DEGREE, 1.0, MOST_DEGREES))


def least_rate(n_constraints: int) -> float:
    """Return the rate of wrong constraints at which candidates are compared."""
    return FEW_RATE if ANCHOR_FROM <= n_constraints < STACK_FROM else LEAST_RATE


def find_consensus(members: Sequence[Member], given: Reliability | None = None) -> Consensus:
    """Weigh the candidates, and average those that resemble their centre."""
    weights = weigh(members, given)
    n_constraints = 0 if given is None else given.size
    kept = np.flatnonzero(weights > KEPT * weights.max()).tolist()
    parts = [np.exp(log_softmax(members[at].partition.log_probability)) for at in kept]
    power = CENTRE_POWER / temperature(n_constraints) ** 2
    mean = centred_mean(parts, weights[kept], power=power)
    rates = np.log([members[at].partition.error_rate for at in kept])
    rate = float(np.exp(mean.weights @ rates))
    return Consensus(mean.probability, weights, members[kept[mean.centre]].name, rate)


def weigh(members: Sequence[Member], given: Reliability | None) -> Floats:
    """Return weights: prior times evidence, tempered; with many constraints, stacked groups."""
    n_constraints = 0 if given is None else given.size
    prior = np.array([_group_prior(one, n_constraints) * one.prior for one in members])
    prior /= prior.sum()
    if given is None or members[0].held_out is None:
        return prior
    held_out = np.array([one.held_out for one in members])
    evidence = log_likelihood(held_out, given, least_rate(n_constraints))
    logits = (np.log(prior + 1e-12) + evidence) / temperature(n_constraints)
    if n_constraints >= STACK_FROM:
        return _stacked(members, logits, held_out, given=given)
    weights: Floats = softmax(logits)
    return weights


def _group_prior(one: Member, n_constraints: int) -> float:
    if one.group == "coarse cut" and n_constraints < FEW and not one.is_apart:
        return FEW_COARSE
    return GROUPS[one.group]


def _stacked(
    members: Sequence[Member], logits: Floats, held_out: Floats, *, given: Reliability
) -> Floats:
    """Return weights by likelihood within each group, and stacking weights of the groups."""
    groups = [group for group in GROUPS if any(one.group == group for one in members)]
    within = np.zeros((len(groups), len(members)))
    for at, group in enumerate(groups):
        inside = np.array([one.group == group for one in members])
        within[at, inside] = softmax(logits[inside])
    prior = np.array([STACK_GROUPS[group] for group in groups])
    return stacking_weights(within @ held_out, given, prior) @ within


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
