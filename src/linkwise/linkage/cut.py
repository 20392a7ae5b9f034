"""Where a tree is cut, and how far its heights and the answers about pairs can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int64s
    from linkwise.linkage.tree import Tree


BINS = 1_000
CLEAR = 4.0  # distance of two Gaussians, in standard deviations, that makes them two
ANCHOR = 2.0  # answers that it takes to move the cut at all
PULL = 5.0  # answers that it takes in addition to move it far
DOUBT = 1.0  # standard errors that are taken off what answers gain
WRONG = 0.1  # share of wrong answers to expect while the cut is chosen
LOG_ODDS = float(logit(1 - WRONG))  # that an answer is worth
SLOPE = 6.0  # of the log-odds of two samples, in units of the prior
REACH = 3  # units of the prior that the cut may move
NO_ANSWERS = 0.03  # share of wrong answers to expect before there are any


class Prior(NamedTuple):
    """The cut before any answer, and the unit in which heights differ."""

    cut: float
    scale: float
    is_clear: bool  # whether there are two kinds of candidates


class Answers(NamedTuple):
    """Answers about pairs, and when these are joined in a tree."""

    joins: Int64s
    is_must: Bools
    belief: Floats


class Calibration(NamedTuple):
    """``P(same) = expit(slope (height - cut))``, and the share of wrong answers."""

    cut: float
    slope: float
    error_rate: float

    def probability(self, height: Floats) -> Floats:
        """Return the probability that pairs joined at these heights are of one cluster."""
        return np.asarray(expit(self.slope * (height - self.cut)))

    def right(self, belief: Floats) -> Floats:
        """Return the probability that an answer is right, before looking at its pair."""
        return 0.5 + belief * (0.5 - self.error_rate)

    def answer_odds(self, is_must: Bools, belief: Floats) -> Floats:
        """Return the log-odds that answers give for their pairs being of one cluster."""
        odds: Floats = logit(self.right(belief))
        return np.where(is_must, odds, -odds)

    def wrong(self, height: Floats, is_must: Bools, belief: Floats) -> Floats:
        """Return the probability that answers are wrong, given where their pairs are joined."""
        p = self.probability(height)
        agrees = np.where(is_must, p, 1 - p)
        right = self.right(belief)
        wrong: Floats = (1 - right) * (1 - agrees)
        return wrong / (wrong + right * agrees + np.finfo(float).tiny)


def prior_cut(odds: Floats) -> Prior:
    """Return where two Gaussians cross that are fitted to the log-odds of candidate pairs."""
    p, m, v = _two_gaussians(odds)
    scale = max(m[1] - m[0], 1e-9)
    grid = np.linspace(m[0], m[1], 1_000)
    density = [np.log(p[i]) - 0.5 * np.log(v[i]) - 0.5 * (grid - m[i]) ** 2 / v[i] for i in (0, 1)]
    above = np.flatnonzero(density[1] > density[0])
    cut = float(grid[above[0]] if above.size else m[1])
    return Prior(cut, float(scale), bool(scale >= CLEAR * np.sqrt(v.mean())))


def _two_gaussians(odds: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit shares, means and variances by expectation-maximisation on a histogram."""
    low, high = np.percentile(odds, [1, 99.5])
    counts, edges = np.histogram(np.clip(odds, low, high), BINS)
    x, w = (edges[1:] + edges[:-1]) / 2, counts / counts.sum()
    m = np.percentile(odds, [30, 95]).clip(low, high)
    total = float(w @ (x - w @ x) ** 2) + 1e-12
    v, p = np.full(2, total / 4), np.array([0.8, 0.2])
    for _ in range(100):
        log_density = np.log(p) - 0.5 * np.log(v) - 0.5 * (x[:, None] - m) ** 2 / v
        q = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        q *= (w / q.sum(axis=1))[:, None]
        p = q.sum(axis=0) + 1e-9
        m = q.T @ x / p
        v = (q * (x[:, None] - m) ** 2).sum(axis=0) / p + 1e-6 * total
    order = np.argsort(m)
    return p[order], m[order], v[order]


def choose_cut(tree: Tree, answers: Answers, prior: Prior) -> float:
    """Return the prior cut, or a height that is better by the answers beyond doubt.

    A cut gains the log-likelihood of the answers over that of the prior cut. It loses a standard
    error of this gain; what two answers are worth, and up to five more far from the prior cut; and
    as much as the share of all pairs that it joins in addition is of the answers, since these tell
    little of giant clusters. With few answers, or answers that disagree, no other cut gains.
    """
    if not answers.joins.size or not tree.n_merges:
        return prior.cut
    height = np.append(tree.height, -np.inf)[answers.joins]
    moves = np.linspace(-REACH, REACH, 60 * REACH + 1)  # in units of the prior; 0 is among them
    gain, error = _gains((height - prior.cut) / prior.scale, answers, moves)
    cuts = prior.cut + moves * prior.scale
    joined = tree.joined_shares_above(np.append(cuts, prior.cut))
    joined = np.maximum(joined[:-1] - joined[-1], 0.0) * answers.belief.sum()
    penalty = ANCHOR * (moves != 0) + PULL * np.minimum(1.0, moves**2) + joined
    return float(cuts[np.argmax(gain - DOUBT * error - LOG_ODDS * penalty)])


def _gains(x: Floats, answers: Answers, moves: Floats) -> tuple[Floats, Floats]:
    """Return the log-likelihood that moves of the cut gain, and its standard error.

    Answers at about the same height are taken together: there may be a million of them.
    """
    edges = np.linspace(-REACH - 1, REACH + 1, BINS + 1)
    at = np.clip(np.searchsorted(edges, x) - 1, 0, BINS - 1)
    x = (edges[1:] + edges[:-1])[:, None] / 2
    gain = np.zeros(moves.size)
    square = np.zeros(moves.size)
    for sign in (1, -1):
        kept = answers.is_must == (sign > 0)
        right = expit(sign * SLOPE * (x - moves))
        log = np.log(WRONG + (1 - 2 * WRONG) * right)
        log -= np.log(WRONG + (1 - 2 * WRONG) * expit(sign * SLOPE * x))
        weight = np.bincount(at[kept], answers.belief[kept], minlength=BINS)
        gain += weight @ log
        square += np.bincount(at[kept], answers.belief[kept] ** 2, minlength=BINS) @ log**2
    return gain, np.sqrt(square)


def calibrate(height: Floats, answers: Answers, cut: float, scale: float) -> Calibration:
    """Fit the slope and the share of wrong answers by expectation-maximisation.

    It starts steep: from a flat slope, wrong answers would be taken for a flat slope. The share is
    Beta(1, 49) before; two answers of .1 and .9 on either side keep the slope finite.
    """
    a0 = 6.0 / scale
    if not height.size or not answers.belief.sum():
        return Calibration(cut, 4.0 / scale, NO_ANSWERS)
    x = np.clip(height - cut, -3 * scale, 3 * scale)
    w = answers.belief
    a, rate = a0, 0.1
    xs, ws = np.append(x, [-2 / a0, 2 / a0]), np.append(w, [1.0, 1.0])
    for _ in range(50):
        model = Calibration(0.0, a, rate)
        wrong = model.wrong(x, answers.is_must, np.ones_like(w))
        same = np.where(answers.is_must, 1 - wrong, wrong)
        a = _slope(xs, np.append(same, [0.1, 0.9]), ws, a)
        before, rate = rate, float(np.clip((w @ wrong + 1) / (w.sum() + 50), 1e-3, 0.4))
        if abs(rate - before) < 1e-6:
            break
    return Calibration(cut, a, rate)


def _slope(x: Floats, same: Floats, weight: Floats, a: float) -> float:
    """Fit ``P(same) = expit(a x)`` by Newton steps."""
    for _ in range(10):
        p = expit(a * x)
        gradient = weight @ ((same - p) * x)
        curvature = weight @ (p * (1 - p) * x * x) + 1e-12
        step = float(np.clip(gradient / curvature, -0.5 * a, a))
        a += step
        if abs(step) < 1e-6 * a:
            break
    return a
