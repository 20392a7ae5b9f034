"""Query by committee: ask what tells the candidate partitions of :class:`~linkwise.Auto` apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.active.hypotheses import WRONG, told
from linkwise.active.representatives import representatives, touched
from linkwise.active.strategies import take

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.active.hypotheses import Beliefs
    from linkwise.active.state import State

TEMPER = 0.5  # power of the weights: the truth is none of the hypotheses
LOCAL = 0.3  # of placing a region beside telling hypotheses apart
UNSURE = 0.03  # probability of other clusters, however sure a region is
BALANCE, RECENT = 3.0, 10  # how far kinds of answers are balanced; recent answers that count
REPEATED = 0.1  # value of a question that another one of the batch answers
MOST_TRIED = 300  # pairs, the most valuable ones, that are looked at for an open one


class Questions(NamedTuple):
    """Pairs that may be asked, and what they are worth."""

    pairs: Ints  # (m, 2), samples
    value: Floats
    together: Floats  # probability that the answer is "same"
    said: Floats  # (n_hypotheses, m), the same by each hypothesis
    weights: Floats  # of the hypotheses


class Proposal(NamedTuple):
    """A question."""

    i: int
    j: int
    probability: float  # that the answer is "same"


def committee(state: State, n_queries: int, rng: np.random.RandomState) -> Ints:
    """Ask what tells the candidate partitions of Auto apart.

    The pair whose answer is expected to lower most the disagreement of the candidates, in adjusted
    Rand index; and, with less weight, the pair that places a doubtful region.
    """
    found = [(one.i, one.j) for one in propose(state, n_queries)]
    return take(state, found, n_queries, rng=rng)


def propose(state: State, n_queries: int) -> list[Proposal]:
    """Return open questions, the most valuable one first, then those that tell something else."""
    asked = questions(state.beliefs)
    value = np.where(state.maybe_open(asked.pairs), asked.value, -np.inf)
    found: list[Proposal] = []
    for _ in range(min(MOST_TRIED, value.size)):
        best = int(value.argmax())
        if len(found) == n_queries or not np.isfinite(value[best]):
            break
        i, j = map(int, asked.pairs[best])
        value[best] = -np.inf
        if state.is_open(i, j):
            found.append(Proposal(i, j, float(asked.together[best])))
            value *= _news(asked, best)
    return found


def _news(asked: Questions, given: int) -> Floats:
    """Return the share of each question that the answer to a given one does not tell.

    It is one minus the squared correlation, over the hypotheses, of what they say; and little is
    left of a question about the same samples.
    """
    off = asked.said - asked.together
    covariance = (asked.weights * off[:, given]) @ off
    variance = asked.weights @ off**2 + 1e-12
    left = 1 - covariance**2 / (variance * variance[given])
    shares = np.isin(asked.pairs, asked.pairs[given]).any(axis=1)
    news: Floats = np.where(shares, REPEATED, 1.0) * np.maximum(left, REPEATED)
    return news


def questions(beliefs: Beliefs) -> Questions:
    """Return the pairs of representatives, and what their answers are worth."""
    points = representatives(beliefs)
    a, b = np.triu_indices(points.size, 1)
    said = np.array([(one @ one.T)[a, b] for one in beliefs.probability(points)])
    said = WRONG + (1 - 2 * WRONG) * said
    weights = beliefs.weights**TEMPER
    weights /= weights.sum()
    value = telling_apart(said, weights, beliefs.hypotheses.distance)
    value += LOCAL * placing(beliefs, points)[a, b]
    together = weights @ said
    value *= balance(beliefs, together)
    pairs = beliefs.hypotheses.samples[np.column_stack((points[a], points[b]))]
    # Rounded, so that ties do not depend on the last bits.
    return Questions(pairs, np.round(value, 12), together, said, weights)


def balance(beliefs: Beliefs, together: Floats) -> Floats:
    """Return factors that prefer "same" after many "different" answers, and the other way round.

    A person whose answers are all alike stops looking.
    """
    words = [one.answer for one in told(beliefs.answers)][-RECENT:]
    wanted = 1 - (words.count("same") + 1) / (len(words) + 2)
    factor = wanted * together + (1 - wanted) * (1 - together)
    return (2 * factor) ** BALANCE


def telling_apart(said: Floats, weights: Floats, distance: Floats) -> Floats:
    r"""Return by how much an answer is expected to lower the disagreement of the hypotheses.

    With weights :math:`v`, distances :math:`D` and probabilities :math:`s` of "same", it is

    .. math:: v'Dv - (vs)'D(vs) / p - (v(1-s))'D(v(1-s)) / (1-p), \qquad p = v's.
    """
    same, different = weights[:, None] * said, weights[:, None] * (1 - said)
    p = same.sum(axis=0)
    left = (same * (distance @ same)).sum(axis=0) / p
    left += (different * (distance @ different)).sum(axis=0) / (1 - p)
    gain: Floats = weights @ distance @ weights - left
    return gain


def placing(beliefs: Beliefs, points: Ints) -> Floats:
    """Return the expected drop of doubt about regions if one point is placed by another."""
    hypotheses, regions = beliefs.hypotheses, beliefs.hypotheses.regions
    mixed = hypotheses.smoothed(hypotheses.smoothed(beliefs.consensus[hypotheses.samples]))
    k = mixed.shape[1]
    mean = np.zeros((regions.size.size, k))
    np.add.at(mean, regions.number, mixed)
    of_point = regions.number[points]
    own = 0.5 * ((mean / regions.size[:, None])[of_point] + mixed[points])
    own = (1 - UNSURE) * own + UNSURE / k
    share = regions.size[of_point] / hypotheses.samples.size
    share = share * 0.5 ** touched(beliefs)[of_point]
    # Point a is placed by b: it is, or is not, in the likeliest cluster of b.
    target = own.argmax(axis=1)
    inside = own[:, target]
    rest = np.maximum(1 - inside, 1e-9)
    squares = (own**2).sum(axis=1)[:, None]
    after = rest - (squares - inside**2) / rest
    drop = share[:, None] * np.maximum(1 - squares - after, 0) * own.max(axis=1)
    return np.maximum(drop, drop.T)
