"""Rounds: a metric makes a tree, a cut of the tree makes clusters, clusters make a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logit

from linkwise.linkage.cut import Answers, Calibration, calibrate, choose_cut, prior_cut
from linkwise.linkage.logodds import (
    LogOdds,
    Scatter,
    pair_scatter,
    shrunk_covariance,
    total_covariance,
    within_scatter,
)
from linkwise.linkage.tree import (
    Items,
    MergeRule,
    Tree,
    candidate_pairs,
    grow_to,
    grow_tree,
    nearest,
)

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Ints


LOWER = 0.5  # of the distance of the two kinds of pairs: how much lower the first cut is
WIDER = 1.5  # clusters are wider than their nearest neighbours are far apart
LEAST_FREEDOM = 10  # degrees of freedom, below which clusters say nothing about the metric


class Reviewed(NamedTuple):
    """Answers about pairs of samples."""

    pairs: Ints
    is_must: Bools
    belief: Floats


class Task(NamedTuple):
    """Coordinates, answers, and settings."""

    Z: Floats
    reviewed: Reviewed
    n_clusters: int | None
    neighbors: int
    rng: np.random.RandomState


class Learned(NamedTuple):
    """What one round found."""

    odds: LogOdds
    g: Floats
    h: Floats
    pairs: Ints  # candidates
    tree: Tree  # by mean log-odds, without the answers
    rule: MergeRule
    calibration: Calibration
    n_merges: int  # up to the cut


def learn(task: Task, n_rounds: int) -> Learned:
    """Learn the metric from its own clusters, and the cut from the answers."""
    Z = task.Z
    T = total_covariance(Z)
    table = nearest(Z, task.neighbors, task.rng)[1]
    scatter = start = neighbor_scatter(Z, table)
    share = None
    for number in range(n_rounds):
        odds = LogOdds.of(shrunk_covariance(scatter, T), T, len(Z))
        if number:
            table = nearest(odds.terms(Z)[0], task.neighbors, task.rng)[1]
        # A metric learned from pieces of clusters makes pieces: rather too large at first.
        lower = LOWER if number == 0 < n_rounds - 1 else 0.0
        found = _round(task, odds, candidate_pairs(table), share=share, lower=lower)
        scatter = within_scatter(Z, found.tree.labels(found.n_merges))
        if scatter.freedom < LEAST_FREEDOM:
            scatter = start
        if number == n_rounds - 2:
            share = found.tree.joined_share(found.n_merges)
    return found


def neighbor_scatter(Z: Floats, table: Ints) -> Scatter:
    """Return the scatter of samples that are each other's nearest, widened to that of clusters."""
    i, j = np.arange(len(Z)), table[:, 0]
    mutual = (table[j, 0] == i) & (i < j)
    if not mutual.any():  # copies of one sample need not be mutual
        mutual[:] = True
    scatter = pair_scatter(Z, np.column_stack((i, j))[mutual])
    return scatter._replace(sums=WIDER * scatter.sums)


def _round(task: Task, odds: LogOdds, pairs: Ints, *, share: float | None, lower: float) -> Learned:
    """Build a tree by mean log-odds, and cut it.

    In the last round `share` of all pairs of samples are taken to be in one cluster.
    """
    g, h = odds.terms(task.Z)
    prior = prior_cut(odds.between(g, h, pairs))
    before = 0.0
    if not prior.is_clear:
        cut = 0.0 if share is not None else -lower * prior.scale
        before = 0.0 if share is None else float(logit(np.clip(share, 1e-12, 0.5)))
        prior = prior._replace(cut=cut)
    # Where pairs of samples are that have nothing to do with each other.
    floor = min(odds.c - 2 * float(np.median(h)), prior.cut - prior.scale)
    whole = share is not None or len(task.reviewed.pairs)
    rule = MergeRule(odds.c, stop=floor if whole else prior.cut, prior=before)
    tree = _grown(task, Items.samples(g, h, pairs), rule)
    reviewed = task.reviewed
    answers = Answers(tree.joins(reviewed.pairs), reviewed.is_must, reviewed.belief)
    if task.n_clusters is None:
        cut = choose_cut(tree, answers, prior)
    else:
        cut = _between(tree, h.size - task.n_clusters)
    calibration = calibrate(tree.join_heights(reviewed.pairs), answers, cut, prior.scale)
    rule = rule._replace(cut=cut, slope=calibration.slope, stop=calibration.slope * (floor - cut))
    return Learned(odds, g, h, pairs, tree, rule, calibration, tree.n_above(cut))


def _grown(task: Task, items: Items, rule: MergeRule) -> Tree:
    """Merge down to the floor, or to the number of clusters wanted and one merge more."""
    n = items.size.size
    merges = grow_tree(items, rule)
    wanted = n if task.n_clusters is None else task.n_clusters - 1
    if n - merges.left.size > wanted:
        merges = grow_to(items, rule._replace(stop=-np.inf), wanted, rng=task.rng)
    return Tree(n, merges)


def _between(tree: Tree, n_merges: int) -> float:
    """Return a height between two merges."""
    around = tree.height[max(n_merges - 1, 0) : n_merges + 1]
    return float(around.mean()) if around.size else 0.0
