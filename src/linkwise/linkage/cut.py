"""Where a tree is cut, and how far its heights and the answers about pairs can be trusted."""

from __future__ import annotations

from itertools import product
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
WRONG = np.array([0.1, 0.03, 0.01])  # shares of wrong answers
BEFORE = 48  # answers, all of them right, that are known before: Beta(1, 49)
LOG_ODDS = float(logit(1 - WRONG[0]))  # that an answer is worth at least
SLOPES = 6.0 * 2.0 ** np.arange(4)  # of the log-odds of two samples, in units of the prior
MODELS = np.array(list(product(SLOPES, WRONG)))  # slopes with shares of wrong answers
REACH = 3  # units of the prior that the cut may move
STEPS = 400  # into which the heights of answers are sorted
EDGES = np.linspace(-REACH - 1, REACH + 1, STEPS + 1)
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

    A cut goes down only for answers that it violates. It may also go up, until it is well between
    the two kinds of answers: what is merged below all that was answered "same" has no support.
    """
    if not answers.joins.size or not tree.n_merges:
        return prior.cut
    height = np.append(tree.height, -np.inf)[answers.joins]
    moves = np.linspace(-REACH, REACH, 60 * REACH + 1)  # in units of the prior; 0 is among them
    x = (height - prior.cut) / prior.scale
    violated, between = (_sure_gains(x, answers, moves, models) for models in (MODELS, MODELS[:1]))
    gain = np.where(moves > 0, np.maximum(violated, between), violated)
    cuts = prior.cut + moves * prior.scale
    joined = tree.joined_shares_above(np.append(cuts, prior.cut))
    joined = np.maximum(joined[:-1] - joined[-1], 0.0) * answers.belief.sum()
    penalty = ANCHOR * (moves != 0) + PULL * np.minimum(1.0, moves**2) + joined
    return float(cuts[np.argmax(gain - LOG_ODDS * penalty)])


def _sure_gains(x: Floats, answers: Answers, moves: Floats, models: Floats) -> Floats:
    """Return the log-likelihood that moves of the cut gain, less its standard error."""
    gain, error = _gains(x, answers, moves, models)
    return gain - DOUBT * error


def _gains(x: Floats, answers: Answers, moves: Floats, models: Floats) -> tuple[Floats, Floats]:
    """Return the log-likelihood that moves of the cut gain, and its standard error.

    Each cut has the model that suits it best: a slope, and a share of wrong answers. With one slope
    for all, answers that a cut satisfies push it away until they are far from it; with one share,
    an answer among many that agree is worth no more than one among many that do not.
    """
    tallies = [_tally(x, answers, sign) for sign in (1, -1)]
    logs = np.array([_log_likelihoods(moves, *model) for model in models])
    before = BEFORE * np.log1p(-models[:, 1:])
    total = sum((tally[0] @ logs[:, at] for at, tally in enumerate(tallies)), before)
    best = np.argmax(total, axis=0)
    here = int(np.flatnonzero(moves == 0)[0])
    each = np.arange(moves.size)
    gain = total[best, each] - total[best[here], here]
    square = np.zeros(moves.size)
    for at, tally in enumerate(tallies):
        changed = logs[best, at, :, each] - logs[best[here], at, :, here]
        square += changed**2 @ tally[1]
    return gain, np.sqrt(square)


def _tally(x: Floats, answers: Answers, sign: int) -> tuple[Floats, Floats]:
    """Return the sums of beliefs and of their squares at each height: there may be a million."""
    kept = answers.is_must == (sign > 0)
    at = np.clip(np.searchsorted(EDGES, x[kept]) - 1, 0, STEPS - 1)
    belief = answers.belief[kept]
    total = np.bincount(at, belief, minlength=STEPS).astype(np.float64)
    return total, np.bincount(at, belief**2, minlength=STEPS).astype(np.float64)


def _log_likelihoods(moves: Floats, slope: float, wrong: float) -> Floats:
    """Return the log-likelihood of "same" and "different" at each height, for each cut."""
    x = slope * ((EDGES[1:] + EDGES[:-1])[:, None] / 2 - moves)
    return np.log(wrong + (1 - 2 * wrong) * np.array([expit(x), expit(-x)]))


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
