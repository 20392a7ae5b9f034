"""Tree: clusters merged one by one, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from linkwise._threads import uninterrupted
from linkwise.graph.affinity import EXACT_FEATURES, EXACT_SAMPLES
from linkwise.graph.approximate import ApproximateNeighbors
from linkwise.graph.neighbors import NeighborSearch, chunks
from linkwise.linkage.kernels import (
    forest,
    join_times,
    mate_sums,
    merge_some,
    new_state,
    roots_at,
)
from linkwise.linkage.logodds import cluster_sums
from linkwise.partition import relabelled

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s, Int64s, Ints
    from linkwise.linkage.cut import Calibration


STEP = 20_000  # merges between two looks at the keyboard
FEW = 15  # neighbours of clusters that have run out of candidates
ALL_PAIRS = 500  # clusters, up to which all pairs of them are candidates


class MergeRule(NamedTuple):
    """Two clusters are merged if ``slope * (mean log-odds - cut)`` is above `stop`."""

    c: float
    cut: float = 0.0
    slope: float = 1.0
    stop: float = -np.inf
    prior: float = 0.0  # log-odds of two samples about which nothing is known
    level: float = np.inf  # score above which clusters are one, if that is known


class Merges(NamedTuple):
    """Merges in order: the cluster of item `right` becomes part of that of item `left`."""

    left: Ints
    right: Ints
    height: Floats  # the score, by which they are in order
    odds: Floats  # that the two clusters are one, with the answers about them


class Items(NamedTuple):
    """What is merged: samples, or groups of them; and pairs of these that may be merged."""

    size: Floats
    g: Floats
    h: Floats
    pairs: Ints
    answer: Floats  # log-odds of the answers about each pair; -inf keeps apart
    side: Int32s  # items of different sides stay apart; -1: no side

    @classmethod
    def samples(cls, g: Floats, h: Floats, pairs: Ints) -> Items:
        """Return samples about which nothing is given."""
        n = h.size
        return cls(np.ones(n), g, h, pairs, np.zeros(len(pairs)), np.full(n, -1, np.int32))

    def contracted(self, group: Ints) -> Items:
        """Return groups as items; answers about pairs within a group are dropped."""
        order = np.argsort(group, kind="stable")
        begin = np.flatnonzero(np.diff(group[order], prepend=-1))
        ends = np.sort(group[self.pairs], axis=1)
        apart = ends[:, 0] != ends[:, 1]
        pairs, inverse = unique_pairs(ends[apart], begin.size)
        answer = np.zeros(len(pairs))
        np.add.at(answer, inverse, self.answer[apart])
        return Items(
            np.add.reduceat(self.size[order], begin),
            cluster_sums(self.g, group),
            np.add.reduceat(self.h[order], begin),
            pairs,
            answer,
            np.maximum.reduceat(self.side[order], begin),
        )

    def scores(self, rule: MergeRule) -> Floats:
        """Return the log-odds that the two items of each pair are one, with the answers."""
        a, b = self.pairs.T
        m, k = self.size[a], self.size[b]
        mean = rule.c - self.h[a] / m - self.h[b] / k
        for part in chunks(len(self.pairs), self.g.shape[1]):
            products = np.einsum("ij,ij->i", self.g[a[part]], self.g[b[part]])
            mean[part] += products / (m[part] * k[part])
        weight = np.sqrt(2 * m * k / (m + k))
        score = rule.slope * (mean + rule.prior / np.sqrt(weight) - rule.cut)
        return np.where(self.answer != 0, score * weight + self.answer, score)

    def with_answers(self, pairs: Ints, answer: Floats) -> Items:
        """Return the same items with more pairs that may be merged, and answers about them."""
        both, inverse = unique_pairs(np.concatenate((self.pairs, pairs)), self.size.size)
        total = np.zeros(len(both))
        np.add.at(total, inverse, np.concatenate((self.answer, answer)))
        return self._replace(pairs=both, answer=total)


class Tree:
    """Merges in order, with falling heights.

    Parameters
    ----------
    n : int
        Samples.
    merges : Merges
        A sample of each of the two clusters that are merged, and the height: inf for what has to be
        together. Heights are made to fall by a running minimum. `odds` stay as they are where
        answers are part of them.
    """

    def __init__(self, n: int, merges: Merges) -> None:
        self.n = n
        self.left, self.right, height, odds = merges
        self.height: Floats = np.minimum.accumulate(height) if height.size else height
        self.odds: Floats = np.where(odds == height, self.height, odds)
        # The pairs of samples that each merge joins are as many as the product of the two sizes.
        self._parent, self._time, self.n_joined = forest(n, self.left, self.right)

    @property
    def n_merges(self) -> int:
        """Number of merges; all samples are one cluster after n - 1."""
        return int(self.left.size)

    def calibrated(self, rule: Calibration) -> Tree:
        """Return the same merges with the log-odds of `rule` as heights."""
        height = rule.slope * (self.height - rule.cut)
        return Tree(self.n, Merges(self.left, self.right, height, height))

    def labels(self, n_merges: int) -> Ints:
        """Return the clusters after the first merges."""
        return relabelled(roots_at(self._parent, self._time, n_merges))

    def n_above(self, height: float) -> int:
        """Return the number of merges above a height."""
        return int(np.searchsorted(-self.height, -height, side="left"))

    def joins(self, pairs: Ints) -> Int64s:
        """Return the number of the merge that joins each pair; `n_merges` if none does."""
        found: Int64s = join_times(self._parent, self._time, pairs, self.n_merges)
        return found

    def join_heights(self, pairs: Ints) -> Floats:
        """Return the height at which each pair is joined; -inf if it is not."""
        return np.append(self.height, -np.inf)[self.joins(pairs)]

    def join_odds(self, pairs: Ints) -> Floats:
        """Return the log-odds with which each pair is joined; -inf if it is not."""
        return np.append(self.odds, -np.inf)[self.joins(pairs)]

    def joined_shares(self) -> Floats:
        """Return the share of all pairs of samples that are in one cluster after each merge."""
        shares: Floats = np.cumsum(self.n_joined) / (self.n * (self.n - 1) / 2)
        return shares

    def joined_share(self, n_merges: int) -> float:
        """Return the share of all pairs of samples that are in one cluster after some merges."""
        return float(np.append(0.0, self.joined_shares())[n_merges])

    def joined_shares_above(self, heights: Floats) -> Floats:
        """Return the share of all pairs of samples that are in one cluster at cuts."""
        n_merges = np.searchsorted(-self.height, -heights, side="left")
        return np.append(0.0, self.joined_shares())[n_merges]

    def mate_probability(self, n_merges: int) -> Floats:
        """Return the mean probability that a sample and another of its cluster are one.

        Samples that are alone get NaN.
        """
        p = expit(self.odds[:n_merges])
        total, mates = mate_sums(self.n, self.left[:n_merges], self.right[:n_merges], p)
        return np.where(mates > 0, total / np.maximum(mates, 1), np.nan)

    def to_scipy(self) -> Floats:
        """Return the tree in the form of ``scipy.cluster.hierarchy``.

        Distances are how far below the first merge another one is; what was never merged is joined
        beyond the last.
        """
        loose = np.unique(roots_at(self._parent, self._time, self.n_merges))
        finite = self.height[np.isfinite(self.height)]
        distance = np.maximum(finite.max(initial=-np.inf) - self.height, 0.0)
        beyond = 1.1 * distance.max(initial=0.0) or 1.0
        left = np.concatenate((self.left, np.full(loose.size - 1, loose[0])))
        right = np.concatenate((self.right, loose[1:]))
        distance = np.concatenate((distance, np.full(loose.size - 1, beyond)))
        return _scipy_rows(self.n, left, right, distance)


def _scipy_rows(n: int, left: Ints, right: Ints, distance: Floats) -> Floats:
    parent, name, size = list(range(n)), list(range(n)), [1] * n
    rows = np.empty((left.size, 4))

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for t, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        a, b = root(a), root(b)  # noqa: PLW2901
        size[a] += size[b]
        rows[t] = min(name[a], name[b]), max(name[a], name[b]), distance[t], size[a]
        parent[b], name[a] = a, n + t
    return rows


def unique_pairs(pairs: Ints, n: int) -> tuple[Ints, Ints]:
    """Return distinct pairs, the smaller index first, and where each given pair is among them."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    keys, inverse = np.unique(low.astype(np.int64) * n + high, return_inverse=True)
    return np.column_stack((keys // n, keys % n)), inverse


def nearest(points: Floats, k: int, rng: np.random.RandomState) -> tuple[Floats, Ints]:
    """Return distances and indices of the nearest neighbours of all points."""
    k = min(k, len(points) - 1)
    if points.shape[0] <= EXACT_SAMPLES or points.shape[1] <= EXACT_FEATURES:
        return NeighborSearch(points).nearest(k)
    search = ApproximateNeighbors(n_neighbors=k, random_state=rng.randint(2**31))
    return search.fit(points).kneighbors()


def candidate_pairs(indices: Ints) -> Ints:
    """Return a table of neighbours as distinct pairs."""
    n, k = indices.shape
    pairs = np.column_stack((np.repeat(np.arange(n), k), indices.ravel()))
    return unique_pairs(pairs, n)[0]


def grow_tree(items: Items, rule: MergeRule, *, n_left: int = 1) -> Merges:
    """Merge items, best first, until no score is above ``rule.stop`` or `n_left` are left."""
    with uninterrupted():  # numba crashes if Ctrl-C comes while it makes named tuples
        state = new_state(
            items.size,
            np.ascontiguousarray(items.g),
            items.h,
            items.side,
            items.pairs.astype(np.int32),
            items.answer,
            np.array(rule),
        )
    most = items.size.size - n_left
    # In steps, so that Ctrl-C is heard.
    while most > 0 and merge_some(state, np.array(rule), min(STEP, most)):
        most = items.size.size - n_left - int(state.counts[1])
    done = int(state.counts[1])
    left, right = (ends[:done].astype(np.intp) for ends in (state.left, state.right))
    return Merges(left, right, state.height[:done], state.odds[:done])


def grow_to(items: Items, rule: MergeRule, n_left: int, *, rng: np.random.RandomState) -> Merges:
    """Merge items until `n_left` are left, or until all that are left have to stay apart.

    Where candidate pairs end too early, the clusters made so far look for new ones.
    """
    merges = grow_tree(items, rule, n_left=n_left)
    while items.size.size - merges.left.size > n_left:
        tree = Tree(items.size.size, merges)
        labels = tree.labels(tree.n_merges)
        clusters = items.contracted(labels)
        pairs = _cluster_pairs(clusters, rng)
        clusters = clusters.with_answers(pairs, np.zeros(len(pairs)))
        more = grow_tree(clusters, rule, n_left=n_left)
        if not more.left.size:
            break
        first = np.unique(labels, return_index=True)[1]
        more = more._replace(left=first[more.left], right=first[more.right])
        merges = Merges(*(np.concatenate(both) for both in zip(merges, more, strict=True)))
    return merges


def _cluster_pairs(clusters: Items, rng: np.random.RandomState) -> Ints:
    """Return pairs of clusters that may be merged: all, or those of near means."""
    k = clusters.size.size
    if k <= ALL_PAIRS:
        return np.column_stack(np.triu_indices(k, 1))
    return candidate_pairs(nearest(clusters.g / clusters.size[:, None], FEW, rng)[1])
