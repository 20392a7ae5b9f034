"""Consensus: one opinion from many experts, each weighted by how it predicts the pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import softmax

from linkwise.auto.propagation import flip_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats, Ints


TEMPERATURE = 10.0  # difference of log-likelihoods that makes a vote e times as heavy
RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
PRIOR_PAIRS = 20.0  # pairs that were right, known before the first one
LEAST_RATE = 0.05  # of wrong pairs when parties are compared: one surprise decides nothing
PRIOR_WEIGHT = 3.0  # pairs that what is given on parties beforehand counts for
GRADIENT = 1e-6  # of the mean log-likelihood, where shares are found


class Consensus(NamedTuple):
    """What the experts say together."""

    probability: Floats  # (n, k)
    weights: Floats  # of the experts, adding up to 1
    order: tuple[Ints, ...]  # for each expert, which of its clusters is cluster c
    noise: float  # estimated share of wrong pairs


def doubted(said: Floats, belief: Floats, noise: float) -> Floats:
    """Return predictions of what pairs say, of which some say the opposite of what is true."""
    flip = flip_rate(belief, noise)
    return (1 - flip) * said + flip * (1 - said)


def likelihood(said: Floats, belief: Floats) -> tuple[float, float]:
    """Score predictions of pairs, at the rate of wrong pairs that explains them best.

    `said` are the predicted probabilities of what the pairs say, each made without that pair.
    Returns the log-likelihood and the rate.
    """
    best, rate = -np.inf, RATES[0]
    for noise in RATES:
        value = float(np.log(doubted(said, belief, noise)).sum())
        value += PRIOR_PAIRS * np.log1p(-noise)
        if value > best:
            best, rate = value, noise
    return best, rate


def votes(scores: Floats, temperature: float = TEMPERATURE) -> Floats:
    """Return weights that add up to 1."""
    weights: Floats = softmax(scores / temperature)
    return weights


def shares(said: Floats, belief: Floats, prior: Floats) -> Floats:
    r"""Return the weights of a mixture that predicts pairs best.

    `said` has a row for each part of the mixture: the probabilities of what the pairs say,
    predicted without them. A pair is wrong with some probability, which turns a prediction
    :math:`s` into :math:`\tilde s`. The weights maximise

    .. math:: \sum_i \log \sum_p w_p \tilde s_{pi} + a \sum_p w^0_p \log w_p

    where the prior :math:`w^0` counts for :math:`a` = `PRIOR_WEIGHT` pairs. Unlike weights by the
    likelihood of each part, they do not settle on the best part while the others know something
    that it does not.
    """
    before = prior / prior.sum()
    noise = max(likelihood(before @ said, belief)[1], LEAST_RATE)
    told = doubted(said, belief, noise)
    total = told.shape[1] + PRIOR_WEIGHT

    def loss(x: Floats) -> tuple[float, Floats]:
        weights = softmax(x)
        mixture = weights @ told
        counts = weights * (told / mixture).sum(axis=1) + PRIOR_WEIGHT * before
        value = np.log(mixture).sum() + PRIOR_WEIGHT * before @ np.log(weights)
        return -float(value) / total, weights - counts / total

    # Concave in the weights, so there is one stationary point; the gradient is its certificate.
    found = minimize(loss, np.log(before), jac=True, method="BFGS", options={"gtol": GRADIENT})
    weights: Floats = softmax(found.x)
    return weights


def matching(Q: Floats, reference: Floats) -> Ints:
    """Return the order of the columns of `Q` that agrees best with a reference."""
    _, order = linear_sum_assignment(-(reference.T @ Q))
    return order.astype(np.intp)


def merge(probabilities: Sequence[Floats], weights: Floats, rates: Floats) -> Consensus:
    """Average soft clusters, after matching them with the heaviest, then with their mean."""
    reference = probabilities[int(weights.argmax())]
    for _ in range(2):
        order = tuple(matching(Q, reference) for Q in probabilities)
        parts = zip(weights, probabilities, order, strict=True)
        reference = np.sum([w * Q[:, at] for w, Q, at in parts], axis=0)
    noise = float(np.exp(weights @ np.log(rates)))
    return Consensus(reference, weights, order, noise)
