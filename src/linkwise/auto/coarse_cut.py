r"""Coarse cuts: micro-clusters of an embedding, grouped by a low normalised cut and by the pairs.

With :math:`H` the indicator matrix of the micro-clusters, a partition of their graph
:math:`C = H^T W H` has the normalised cut of the partition of all samples that it stands for. The
search therefore does not depend on the number of samples, and can be repeated for every fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.cluster import KMeans

from linkwise._jit import njit
from linkwise._kernels import uniform
from linkwise.auto.micro_clusters import fit_to_sample
from linkwise.partition import spread_seeds

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Int64s, Ints, Matrix, UInt64s

FACTORS = (2, 5, 12)  # micro-clusters per cluster, from the coarsest level to the finest
MOST = 3_000  # micro-clusters of a level, unless there are more clusters: their graph is dense
FIRST_STARTS, LATER_STARTS = 12, 2  # random starts at the first level, at the others
PERTURBATIONS = 8  # of the best partition of a level
MAX_ITER = 10  # of k-means: micro-clusters need not be optimal
MUTATED = 0.2  # share of micro-clusters that a random perturbation moves
MAX_SWEEPS = 50
LEAST_GAIN = 1e-9  # what a move must lower the objective by
NO_VOLUME = 1e-12  # share of the graph's volume below which a volume is rounding


@dataclass(frozen=True, eq=False)
class CoarseCut:
    """Three levels of micro-clusters with their graphs, the coarsest first."""

    levels: tuple[Level, ...]
    k: int
    seed: int
    start: Ints | None  # a partition of the samples that the search begins with

    @classmethod
    def of(
        cls,
        W: Graph,
        embedding: Floats,
        k: int,
        rng: np.random.RandomState,
        *,
        start: Ints | None = None,
    ) -> CoarseCut:
        """Cluster the rows of an embedding into about 2, 5 and 12 `k` micro-clusters by k-means."""
        seed = int(rng.randint(2**31 - len(FACTORS)))
        most = min(embedding.shape[0] // 2, MOST)
        sizes = [max(k, min(factor * k, most)) for factor in FACTORS]
        labels = [_micro_clusters(embedding, size, rng) for size in sizes]
        levels = tuple(Level.of(W, split_to(found, k)) for found in labels)
        return cls(levels, k, seed, start)

    def partitions(self, pairs: Ints, weight: Floats, price: float) -> list[Ints]:
        r"""Return a partition into `k` clusters from every level but the first.

        Each has a low value of

        .. math:: \sum_c \Bigl(1 - \frac{C(c, c)}{\mathrm{vol}(c)}\Bigr)
           + \text{price} \cdot (\text{weight of violated pairs}) ,

        found by moving single micro-clusters from several starts. The first level begins with the
        given partition, every other with what the level before has found. A cluster without volume
        counts 1.

        Parameters
        ----------
        pairs : ndarray of shape (n_pairs, 2)
        weight : ndarray of shape (n_pairs,)
            Positive for must-links, negative for cannot-links.
        price : float
            Penalty of a violated pair of weight 1.

        Returns
        -------
        list of ndarray of shape (n_samples,)
            Every label from 0 to ``k - 1`` is used.
        """
        found, start = [], self.start
        for number, level in enumerate(self.levels):
            n_random = LATER_STARTS if number else FIRST_STARTS
            graph = level.penalised(pairs, weight, price)
            starts, seed = level.grouped(start, self.k), self.seed + number
            start = search(graph, starts, self.k, n_random=n_random, seed=seed)[level.labels]
            found.append(start)
        return found[1:]


class Level(NamedTuple):
    """Micro-clusters, and the weights of the edges between and inside them."""

    labels: Ints  # the micro-cluster of each sample
    affinity: Floats

    @classmethod
    def of(cls, W: Graph, labels: Ints) -> Level:
        """Contract a graph to the micro-clusters."""
        return cls(labels, contracted(W, labels))

    def penalised(self, pairs: Ints, weight: Floats, price: float) -> PenalisedGraph:
        """Add the penalty of putting two micro-clusters together (negative: of separating them).

        For pairs inside a micro-cluster there is nothing to decide.
        """
        a, b = self.labels[pairs].T
        penalty = _table(a, b, -price * weight, n=self.affinity.shape[0])
        penalty += penalty.T
        np.fill_diagonal(penalty, 0.0)
        affinity = self.affinity / (self.affinity.sum() or 1.0)
        return PenalisedGraph(affinity, affinity.sum(axis=1), penalty)

    def grouped(self, start: Ints | None, k: int) -> Int64s:
        """Give every micro-cluster the label that most of its samples have; one row, or none."""
        size = self.affinity.shape[0]
        if start is None:
            return np.zeros((0, size), np.int64)
        count = np.bincount(self.labels * k + start, minlength=size * k).reshape(size, k)
        return count.argmax(axis=1).astype(np.int64)[None]


class PenalisedGraph(NamedTuple):
    """Symmetric tables over pairs of micro-clusters; the graph has volume 1, or 0."""

    affinity: Floats
    degree: Floats
    penalty: Floats


class Clusters(NamedTuple):
    """A partition of the micro-clusters, with the sums that tell what a move changes."""

    group: Int64s  # the cluster of each micro-cluster
    size: Int64s
    volume: Floats
    inside: Floats  # weight of the edges within each cluster, C(c, c)
    links: Floats  # of each micro-cluster to each cluster
    penalty: Floats  # of each micro-cluster in each cluster
    between: Floats  # weight of the edges between clusters, when two are to be merged

    @classmethod
    def empty(cls, n: int, k: int) -> Clusters:
        """Return arrays for `n` micro-clusters in `k` clusters.

        They are made here, not in a kernel: numba compiles a function for each kind of array.
        """
        return cls(
            group=np.zeros(n, np.int64),
            size=np.zeros(k, np.int64),
            volume=np.zeros(k),
            inside=np.zeros(k),
            links=np.zeros((n, k)),
            penalty=np.zeros((n, k)),
            between=np.zeros((k, k)),
        )


def contracted(W: Matrix, labels: Ints) -> Floats:
    r"""Return :math:`H^T W H`, the weights between and inside groups of vertices, in `O(nnz)`."""
    n_groups = int(labels.max()) + 1
    if not issparse(W):
        H = csr_array((np.ones(labels.size), (labels, np.arange(labels.size))))
        return np.ascontiguousarray(H @ (H @ W).T, dtype=np.float64)
    rows = np.repeat(labels, np.diff(W.indptr))
    return _table(rows, labels[W.indices], W.data, n=n_groups)


def _table(rows: Ints, columns: Ints, values: Floats, *, n: int) -> Floats:
    """Return the `n` x `n` matrix of the sums of the values in each cell; overwrites `rows`."""
    rows *= n
    rows += columns
    return np.bincount(rows, values, n * n).astype(np.float64, copy=False).reshape(n, n)


def split_to(labels: Ints, k: int) -> Ints:
    """Return at least `k` groups, by taking single samples out of the largest ones.

    Fewer than `k` groups come from fewer than `k` distinct samples: any split is as good.
    """
    labels = labels.copy()
    for new in range(int(labels.max()) + 1, k):
        labels[np.flatnonzero(labels == np.bincount(labels).argmax())[-1]] = new
    return labels


def _micro_clusters(rows: Floats, size: int, rng: np.random.RandomState) -> Ints:
    def make(sample: Floats) -> KMeans:
        seeds = sample[spread_seeds(sample, size, rng)]
        return KMeans(size, init=seeds, n_init=1, max_iter=MAX_ITER, random_state=0)

    return fit_to_sample(rows, size, rng, make=make)[0]


def search(graph: PenalisedGraph, starts: Int64s, k: int, *, n_random: int, seed: int) -> Int64s:
    """Return the best partition found from the given starts and from random ones."""
    best = np.zeros(graph.degree.size, np.int64)
    stream = np.array([seed], np.uint64)
    _search(graph, starts, n_random, stream, (Clusters.empty(best.size, k), best))
    return best


@njit(cache=True, nogil=True)
def _search(graph, starts, n_random, stream, arrays):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Descend from the given starts and from random ones, then perturb the best."""
    clusters, best = arrays
    group = clusters.group
    n_starts = starts.shape[0] + n_random
    lowest = np.inf
    for number in range(n_starts + PERTURBATIONS):
        for a in range(group.size):
            group[a] = starts[number, a] if number < starts.shape[0] else best[a]
        if number >= n_starts and clusters.size.size > 2 and (number - n_starts) % 4 > 0:
            _split_merge(graph, clusters, stream)
        elif number >= starts.shape[0]:
            _mutate(clusters, 1.0 if number < n_starts else MUTATED, stream)
        _fill_empty(clusters, stream)
        value = _descend(graph, clusters)
        if value < lowest - LEAST_GAIN:
            lowest = value
            for a in range(group.size):
                best[a] = group[a]


@njit(cache=True, nogil=True)
def _descend(graph: PenalisedGraph, clusters: Clusters) -> float:
    """Move single micro-clusters while it pays; return the value, up to a constant.

    The constant is the penalty of separating all pairs that are not inside a micro-cluster.
    """
    _sum_up(graph, clusters)
    group = clusters.group
    for _ in range(MAX_SWEEPS):
        has_moved = False
        for a in range(group.size):
            to = _best_cluster(graph, clusters, a)
            if to != group[a]:
                _move(graph, clusters, a, to)
                has_moved = True
        if not has_moved:
            break
    value = 0.0
    for c in range(clusters.size.size):
        value += _loss(clusters.inside[c], clusters.volume[c])
    for a in range(group.size):
        value += 0.5 * clusters.penalty[a, group[a]]
    return value


@njit(cache=True, nogil=True)
def _sum_up(graph: PenalisedGraph, clusters: Clusters) -> None:
    """Compute all sums from the partition."""
    group, links, penalty = clusters.group, clusters.links, clusters.penalty
    for c in range(clusters.size.size):
        clusters.size[c] = 0
        clusters.volume[c] = clusters.inside[c] = 0.0
    for a in range(group.size):
        clusters.size[group[a]] += 1
        clusters.volume[group[a]] += graph.degree[a]
        for c in range(clusters.size.size):
            links[a, c] = penalty[a, c] = 0.0
        for b in range(group.size):
            links[a, group[b]] += graph.affinity[a, b]
            penalty[a, group[b]] += graph.penalty[a, b]
        clusters.inside[group[a]] += links[a, group[a]]


@njit(cache=True, nogil=True)
def _loss(inside: float, volume: float) -> float:
    """Return ``cut(c) / vol(c)``; 1 of a cluster without volume."""
    return 1.0 - inside / volume if volume > NO_VOLUME else 1.0


@njit(cache=True, nogil=True)
def _best_cluster(graph: PenalisedGraph, clusters: Clusters, a: int) -> int:
    """Return the cluster in which a micro-cluster has the lowest value; never leave one empty."""
    here = clusters.group[a]
    if clusters.size[here] <= 1:
        return here
    volume, inside, links = clusters.volume, clusters.inside, clusters.links[a]
    own, degree = graph.affinity[a, a], graph.degree[a]
    rest = _loss(inside[here] - 2 * links[here] + own, volume[here] - degree)
    gain_here = _loss(inside[here], volume[here]) - rest + clusters.penalty[a, here]
    best, highest = here, LEAST_GAIN
    for c in range(volume.size):
        if c != here:
            joined = _loss(inside[c] + 2 * links[c] + own, volume[c] + degree)
            gain = gain_here + _loss(inside[c], volume[c]) - joined - clusters.penalty[a, c]
            if gain > highest:
                best, highest = c, gain
    return best


@njit(cache=True, nogil=True)
def _move(graph: PenalisedGraph, clusters: Clusters, a: int, to: int) -> None:
    here, own = clusters.group[a], graph.affinity[a, a]
    clusters.group[a] = to
    clusters.size[here] -= 1
    clusters.size[to] += 1
    clusters.inside[here] -= 2 * clusters.links[a, here] - own
    clusters.inside[to] += 2 * clusters.links[a, to] + own
    for b in range(clusters.group.size):
        clusters.links[b, here] -= graph.affinity[a, b]
        clusters.links[b, to] += graph.affinity[a, b]
        clusters.penalty[b, here] -= graph.penalty[a, b]
        clusters.penalty[b, to] += graph.penalty[a, b]
    clusters.volume[here] -= graph.degree[a]
    clusters.volume[to] += graph.degree[a]


@njit(cache=True, nogil=True)
def _mutate(clusters: Clusters, share: float, stream: UInt64s) -> None:
    """Move a share of the micro-clusters anywhere."""
    for a in range(clusters.group.size):
        if uniform(stream) < share:
            clusters.group[a] = int(uniform(stream) * clusters.size.size)


@njit(cache=True, nogil=True)
def _fill_empty(clusters: Clusters, stream: UInt64s) -> None:
    """Give every empty cluster a micro-cluster of one that has several."""
    group, size = clusters.group, clusters.size
    for c in range(size.size):
        size[c] = 0
    for a in range(group.size):
        size[group[a]] += 1
    for c in range(size.size):
        a = int(uniform(stream) * group.size)
        while size[c] == 0:
            if size[group[a]] > 1:
                size[group[a]] -= 1
                size[c] = 1
                group[a] = c
            a = (a + 1) % group.size


@njit(cache=True, nogil=True)
def _split_merge(graph: PenalisedGraph, clusters: Clusters, stream: UInt64s) -> None:
    """Merge two clusters with many edges between them, and split a third one in two."""
    group, size, volume, between = (
        clusters.group,
        clusters.size,
        clusters.volume,
        clusters.between,
    )
    for c in range(size.size):
        size[c] = 0
        volume[c] = 0.0
        for b in range(size.size):
            between[c, b] = 0.0
    for a in range(group.size):
        size[group[a]] += 1
        volume[group[a]] += graph.degree[a]
        for b in range(group.size):
            between[group[a], group[b]] += graph.affinity[a, b]
    keep, free = _close_clusters(between, volume, stream)
    for c in range(size.size):
        if c in (keep, free) or size[c] < 2:
            volume[c] = 0.0
    split = _drawn(volume, stream)
    if split < 0:
        return
    first = int(uniform(stream) * size[split])
    second = (first + 1 + int(uniform(stream) * (size[split] - 1))) % size[split]
    s, t = _member(group, split, first), _member(group, split, second)
    for a in range(group.size):
        if group[a] == free:
            group[a] = keep
        elif group[a] == split and a != s:
            # Compared as a / b > c / d, without the division: degrees may be 0.
            is_nearer = graph.affinity[a, t] * graph.degree[s] > (
                graph.affinity[a, s] * graph.degree[t]
            )
            if a == t or is_nearer:
                group[a] = free


@njit(cache=True, nogil=True)
def _close_clusters(between: Floats, volume: Floats, stream: UInt64s) -> tuple[int, int]:
    """Return the two clusters that share most of the smaller one's edges, times a random factor."""
    first, second, highest = 0, 1, -1.0
    for a in range(volume.size):
        for b in range(volume.size):
            if a != b:
                share = between[a, b] / max(min(volume[a], volume[b]), NO_VOLUME)
                share *= 0.2 + uniform(stream)
                if share > highest:
                    first, second, highest = a, b, share
    return first, second


@njit(cache=True, nogil=True)
def _drawn(weight: Floats, stream: UInt64s) -> int:
    """Draw an index with these odds; -1 if all are 0."""
    total = 0.0
    for c in range(weight.size):
        total += weight[c]
    left = uniform(stream) * total
    drawn = -1
    for c in range(weight.size):
        if weight[c] > 0.0 and left >= 0.0:
            drawn = c
            left -= weight[c]
    return drawn


@njit(cache=True, nogil=True)
def _member(group: Int64s, c: int, number: int) -> int:
    """Return the micro-cluster that is the `number`-th of a cluster."""
    for a in range(group.size):
        if group[a] == c:
            if number == 0:
                return a
            number -= 1
    return -1
