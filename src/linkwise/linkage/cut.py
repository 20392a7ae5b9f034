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
DOUBT = 2.0  # standard errors by which a cut has to be better than the prior one
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

    A cut gains the belief of the answers that it violates less than the prior cut does, and loses
    as much for each share of all pairs that it joins in addition, since answers tell little of
    giant clusters. The gain is uncertain: only answers between the two heights count, and each of
    them could have been another. The cut taken has the largest gain less twice its standard error;
    with few answers, or answers that disagree, that is the prior cut.
    """
    n = tree.n_merges
    if not answers.joins.size or not n:
        return prior.cut
    start = tree.n_above(prior.cut)
    violated = _accumulated(answers, np.where(answers.is_must, -1, 1) * answers.belief, n)
    joined = np.append(0.0, tree.joined_shares()) * answers.belief.sum()
    gain = violated[start] - violated - np.maximum(joined - joined[start], 0.0)
    seen = _accumulated(answers, answers.belief**2, n)
    gain -= DOUBT * np.sqrt(np.abs(seen - seen[start]))
    best = np.flatnonzero(gain > gain.max() - 1e-9)
    if gain[start] >= gain[best[0]]:
        return prior.cut
    nearest = int(best[np.abs(best - start).argmin()])
    heights = np.concatenate(
        (tree.height[:1] + prior.scale, tree.height, tree.height[-1:] - prior.scale)
    )
    return float(heights[nearest : nearest + 2].mean())


def _accumulated(answers: Answers, weight: Floats, n_merges: int) -> Floats:
    """Return the sum of the weights of answers about pairs that are joined, after each merge."""
    change = np.bincount(answers.joins, weight, minlength=n_merges + 1)[:n_merges]
    return np.append(0.0, np.cumsum(change))


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
