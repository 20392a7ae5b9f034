"""Where a tree is cut, and how far its heights and the answers about pairs can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int64s, Ints
    from linkwise.linkage.tree import Tree


BINS = 1_000
CLEAR = 4.0  # distance of two Gaussians, in standard deviations, that makes them two
DOUBT = 1.64  # standard deviations that a gain must be above 0: nineteen times in twenty
PULL = 11.0  # log-odds against a cut that is a unit of the prior away, or more
WRONG = np.array([0.1, 0.03, 0.01])  # shares of wrong answers
RIGHT_BEFORE, WRONG_BEFORE = 9.0, 1.0  # the share of wrong answers is Beta(1, 9) before any
SLOPES = 1.5 * 2.0 ** np.arange(6)  # of the log-odds of two samples, in units of the prior
REACH = 3  # units of the prior that the cut may move
STEPS = 400  # into which heights are sorted
EDGES = np.arange(-STEPS // 2, STEPS // 2 + 1) / 50  # from -4 to 4; 0 is among them
CENTRES = (EDGES[1:] + EDGES[:-1]) / 2
CUTS = np.arange(50, STEPS - 49, 2)  # edges at which the tree may be cut; the middle one is 0
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
    """Return the prior cut, or one whose clusters are better by the answers beyond doubt.

    The answers tell how likely pairs are one thing that join at a height: a logistic curve, of
    which there is a posterior. With a curve, every cut has an expected F1 over all pairs of
    samples; a merge joins as many of them as the product of its two sizes. The cut moves where F1
    rises by more than `DOUBT` posterior standard deviations; with few answers, nowhere.

    The number of answers that a cut violates would mislead. Reviewed pairs are near ones. If most
    of these are different, no cut violates less than the one that leaves all samples alone. And a
    cluster of a hundred samples has 4,950 pairs, but few answers.
    """
    if not answers.joins.size or not tree.n_merges:
        return prior.cut
    height = np.append(tree.height, -np.inf)[answers.joins]
    weight = _posterior((height - prior.cut) / prior.scale, answers)
    gain = _f1_gains((tree.height - prior.cut) / prior.scale, tree.n_joined, tree.n)
    mean, square = (np.einsum("st,stc->c", weight, x) for x in (gain, gain**2))
    sure = mean - DOUBT * np.sqrt(np.maximum(square - mean**2, 0.0))
    moves = EDGES[CUTS]
    best = np.flatnonzero(sure >= sure.max() - 1e-9)  # all of the same clusters
    if sure.max() < 1e-9:
        return prior.cut
    return float(prior.cut + moves[best[best.size // 2]] * prior.scale)


def _posterior(x: Floats, answers: Answers) -> Floats:
    """Return the probability of curves: for each slope, and each height of even odds."""
    same, different = (_tally(x, answers, sign) for sign in (1, -1))
    p = _curves()
    log = np.zeros((WRONG.size, *p.shape[:2]))
    for at, wrong in enumerate(WRONG):
        right = wrong + (1 - 2 * wrong) * p
        log[at] = np.log(right) @ same + np.log1p(-right) @ different
    log += ((RIGHT_BEFORE - 1) * np.log1p(-WRONG))[:, None, None]
    log -= PULL * np.minimum(1.0, EDGES[CUTS] ** 2)
    weight = np.exp(log - log.max()).sum(axis=0)
    return np.asarray(weight / weight.sum())


def _curves() -> Floats:
    """Return P(same) at each height, for each slope and each height of even odds."""
    return np.asarray(expit(SLOPES[:, None, None] * (CENTRES - EDGES[CUTS, None])))


def _f1_gains(x: Floats, n_pairs: Floats, n_samples: int) -> Floats:
    """Return what cuts gain in F1 over the prior cut, for each curve.

    A sample and itself are half a pair: without any duplicates, all alone is right.
    """
    joined = np.bincount(_bins(x), n_pairs, minlength=STEPS).astype(np.float64)
    total, same = (n_samples / 2 + _from_above(pairs) for pairs in (joined, _curves() * joined))
    f1 = 2 * same[..., CUTS] / (total[CUTS] + same[..., :1])
    return np.asarray(f1 - f1[..., CUTS.size // 2, None])


def _from_above(counts: Floats) -> Floats:
    return np.asarray(np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1])


def _tally(x: Floats, answers: Answers, sign: int) -> Floats:
    """Return the sum of beliefs at each height: there may be a million answers."""
    kept = answers.is_must == (sign > 0)
    return np.bincount(_bins(x[kept]), answers.belief[kept], minlength=STEPS).astype(np.float64)


def _bins(x: Floats) -> Ints:
    return np.clip(np.searchsorted(EDGES, x) - 1, 0, STEPS - 1)


def calibrate(height: Floats, answers: Answers, cut: float, scale: float) -> Calibration:
    """Fit the slope and the share of wrong answers by expectation-maximisation.

    It starts steep: from a flat slope, wrong answers would be taken for a flat slope. The share
    is Beta(1, 9) before, so that few answers do not hold against all samples of two clusters; two
    answers of .1 and .9 on either side keep the slope finite.
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
        counts = WRONG_BEFORE + w @ wrong, RIGHT_BEFORE + w @ (1 - wrong)
        before, rate = rate, float(np.clip(counts[0] / sum(counts), 1e-3, 0.4))
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
