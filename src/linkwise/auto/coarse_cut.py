r"""Coarse cuts: micro-clusters of an embedding, grouped by a low normalised cut and by the pairs.

With :math:`H` the indicator matrix of the micro-clusters, a partition of their graph
:math:`C = H^T W H` has the normalised cut of the partition of all samples that it stands for. The
search therefore does not depend on the number of samples, and can be repeated for every fold.
Micro-clusters of the features are merged in the same way, by the sum of squares and by the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from linkwise._jit import njit
from linkwise._kernels import uniform
from linkwise._quiet import quiet
from linkwise.partition import spread_seeds

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Graph, Int64s, Ints, Matrix, UInt64s

FACTORS = (2, 5, 12)  # micro-clusters per cluster, from the coarsest level to the finest
MOST = 3_000  # micro-clusters of a level, unless there are more clusters: their graph is dense
FIRST_STARTS, LATER_STARTS = 12, 2  # random starts at the first level, at the others
PERTURBATIONS = 8  # of the best partition of a level
MAX_ITER = 10  # of a quick k-means
MUTATED = 0.2  # share of micro-clusters that a random perturbation moves
MAX_SWEEPS = 50
LEAST_GAIN = 1e-9  # what a move must lower the objective by
NO_VOLUME = 1e-12  # share of the graph's volume below which a volume is rounding

PENALTY = 5.0  # of a violated pair, in mean squared distances
N_RANDOM, N_PERTURBED = 8, 4  # starts of the merge besides that of k-means
PERTURBED = 0.2  # share of micro-clusters that a perturbation moves
SAMPLE, SAMPLE_EACH = 5_000, 50  # rows on which centres are sought; at least so many a centre
RESTARTS, GROUPINGS = 3, 5  # of k-means: of the rows, of the centres


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
        *,
        rng: np.random.RandomState,
        start: Ints | None = None,
    ) -> CoarseCut:
        """Cluster the rows of an embedding into about 2, 5 and 12 `k` micro-clusters by k-means."""
        seed = int(rng.randint(2**31 - len(FACTORS)))
        most, levels = min(embedding.shape[0] // 2, MOST), []
        for factor in FACTORS:
            size = max(k, min(factor * k, most))
            labels = fit_to_sample(embedding, size, rng, quick=True)[0]
            if int(labels.max()) + 1 < k:
                labels = split_to(labels, k)
            levels.append(Level(labels, contracted(W, labels)))
        return cls(tuple(levels), k, seed, start)

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
        found, start, k = [], self.start, self.k
        for number, level in enumerate(self.levels):
            graph = level.penalised(pairs, weight, price)
            best = np.zeros(graph.degree.size, np.int64)
            starts = np.zeros((0, best.size), np.int64)
            if start is not None:  # of each micro-cluster, the label that most of its samples have
                count = np.bincount(level.labels * k + start, minlength=best.size * k)
                starts = count.reshape(1, best.size, k).argmax(axis=2).astype(np.int64)
            stream = np.array([self.seed + number], np.uint64)
            arrays = Clusters.empty(best.size, k), best
            n_random = LATER_STARTS if number else FIRST_STARTS
            _search(graph, starts, n_random, stream, arrays)
            start = best[level.labels]
            found.append(start)
        return found[1:]


class Level(NamedTuple):
    """Micro-clusters, and the weights of the edges between and inside them."""

    labels: Ints  # the micro-cluster of each sample
    affinity: Floats

    def penalised(self, pairs: Ints, weight: Floats, price: float) -> PenalisedGraph:
        """Add the penalty of putting two micro-clusters together (negative: of separating them).

        For pairs inside a micro-cluster there is nothing to decide.
        """
        penalty = penalties(self.labels[pairs], -price * weight, self.affinity.shape[0])
        affinity = self.affinity / (self.affinity.sum() or 1.0)
        return PenalisedGraph.of(affinity, penalty)


class PenalisedGraph(NamedTuple):
    """Symmetric tables over pairs of micro-clusters; the graph has volume 1, or 0."""

    affinity: Floats
    degree: Floats
    penalty: Floats
    first: Int64s  # where the `related` of each micro-cluster begin, and where the last ones end
    related: Int64s  # those that it has an edge or a penalty with, ascending; few, where `k` is not

    @classmethod
    def of(cls, affinity: Floats, penalty: Floats) -> PenalisedGraph:
        """Return the tables, and where they are not zero."""
        rows, related = np.nonzero((affinity != 0) | (penalty != 0))
        first = np.zeros(len(affinity) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(affinity)), out=first[1:])
        return cls(affinity, affinity.sum(axis=1), penalty, first, related)


class Clusters(NamedTuple):
    """A partition of the micro-clusters, with the sums that tell what a move changes."""

    group: Int64s  # the cluster of each micro-cluster
    size: Int64s
    volume: Floats
    inside: Floats  # weight of the edges within each cluster, C(c, c)
    loss: Floats  # of each cluster, its part of the objective
    gain: Floats  # of a move to each cluster
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
            loss=np.zeros(k),
            gain=np.zeros(k),
            links=np.zeros((n, k)),
            penalty=np.zeros((n, k)),
            between=np.zeros((k, k)),
        )


def contracted(W: Matrix, labels: Ints, n_groups: int = 0) -> Floats:
    r"""Return :math:`H^T W H`, the weights between and inside groups of vertices, in `O(nnz)`.

    There may be more groups than those that have a vertex.
    """
    n_groups = n_groups or int(labels.max()) + 1
    if not issparse(W):
        places, shape = (labels, np.arange(labels.size)), (n_groups, labels.size)
        H = csr_array((np.ones(labels.size), places), shape=shape)
        return np.ascontiguousarray(H @ (H @ W).T, dtype=np.float64)
    cells = np.repeat(labels, np.diff(W.indptr)) * n_groups
    cells += labels[W.indices]
    sums = np.bincount(cells, W.data, n_groups**2)
    return sums.astype(np.float64, copy=False).reshape(n_groups, n_groups)


def penalties(groups: Ints, weight: Floats, n: int) -> Floats:
    """Return the symmetric table of what it costs to put two groups together, given pairs of them.

    For pairs inside a group there is nothing to decide.
    """
    sums = np.bincount(groups[:, 0] * n + groups[:, 1], weight, n * n)
    table = sums.astype(np.float64, copy=False).reshape(n, n)
    table = table + table.T
    np.fill_diagonal(table, 0.0)
    return table


def split_to(labels: Ints, k: int) -> Ints:
    """Return at least `k` groups, by taking single samples out of the largest ones.

    Fewer than `k` groups come from fewer than `k` distinct samples: any split is as good.
    """
    labels = labels.copy()
    for new in range(int(labels.max()) + 1, k):
        labels[np.flatnonzero(labels == np.bincount(labels).argmax())[-1]] = new
    return labels


def fit_to_sample(
    rows: Floats, n: int, rng: np.random.RandomState, *, quick: bool = False
) -> tuple[Ints, Floats]:
    """Cluster rows by k-means, of many rows fitted to a sample; return labels and centres.

    Clusters that nothing belongs to are left out. A `quick` one need not be optimal.
    """
    sample, enough = rows, max(SAMPLE, SAMPLE_EACH * n)
    if rows.shape[0] > enough:
        sample = rows[rng.choice(rows.shape[0], enough, replace=False)]
    model = KMeans(n, n_init=RESTARTS, random_state=rng)
    if quick:
        seeds = sample[spread_seeds(sample, n, rng)]
        model = KMeans(n, init=seeds, n_init=1, max_iter=MAX_ITER, random_state=0)
    with quiet(ConvergenceWarning):  # fewer distinct rows than clusters
        model.fit(sample)
    labels = model.predict(rows) if sample is not rows else model.labels_
    used, labels = np.unique(labels, return_inverse=True)
    centers: Floats = model.cluster_centers_[used].astype(np.float64)
    return labels.astype(np.intp), centers


# --- the search for a low cut


@njit(cache=True, nogil=True, error_model="numpy")
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
            share = 1.0 if number < n_starts else MUTATED
            for a in range(group.size):  # moved anywhere
                if uniform(stream) < share:
                    group[a] = int(uniform(stream) * clusters.size.size)
        _fill_empty(clusters, stream)
        value = _descend(graph, clusters)
        if value < lowest - LEAST_GAIN:
            lowest = value
            for a in range(group.size):
                best[a] = group[a]


@njit(cache=True, nogil=True, error_model="numpy")
def _descend(graph: PenalisedGraph, clusters: Clusters) -> float:
    """Move single micro-clusters while it pays; return the value, up to a constant.

    The constant is the penalty of separating all pairs that are not inside a micro-cluster.
    """
    group, links, penalty = clusters.group, clusters.links, clusters.penalty
    for c in range(clusters.size.size):
        clusters.size[c] = 0
        clusters.volume[c] = clusters.inside[c] = 0.0
    for a in range(group.size):  # all sums
        clusters.size[group[a]] += 1
        clusters.volume[group[a]] += graph.degree[a]
        for c in range(clusters.size.size):
            links[a, c] = penalty[a, c] = 0.0
        for at in range(graph.first[a], graph.first[a + 1]):
            b = graph.related[at]
            links[a, group[b]] += graph.affinity[a, b]
            penalty[a, group[b]] += graph.penalty[a, b]
        clusters.inside[group[a]] += links[a, group[a]]
    for c in range(clusters.size.size):
        clusters.loss[c] = _loss(clusters.inside[c], clusters.volume[c])
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
        value += clusters.loss[c]
    for a in range(group.size):
        value += 0.5 * clusters.penalty[a, group[a]]
    return value


@njit(cache=True, nogil=True)
def _loss(inside: float, volume: float) -> float:
    """Return ``cut(c) / vol(c)``; 1 of a cluster without volume."""
    return 1.0 - inside / volume if volume > NO_VOLUME else 1.0


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def _best_cluster(graph: PenalisedGraph, clusters: Clusters, a: int) -> int:
    """Return the cluster in which a micro-cluster has the lowest value; never leave one empty."""
    here = clusters.group[a]
    if clusters.size[here] <= 1:
        return here
    volume, inside, loss = clusters.volume, clusters.inside, clusters.loss
    links, penalty, gain = clusters.links[a], clusters.penalty[a], clusters.gain
    own, degree = graph.affinity[a, a], graph.degree[a]
    rest = _loss(inside[here] - 2 * links[here] + own, volume[here] - degree)
    gain_here = loss[here] - rest + penalty[here]
    for c in range(gain.size):  # without a branch: several at a time
        together = volume[c] + degree
        joined = 1.0 - (inside[c] + 2 * links[c] + own) / together
        joined = joined if together > NO_VOLUME else 1.0
        gain[c] = gain_here + loss[c] - joined - penalty[c]
    gain[here] = -np.inf
    best, highest = here, LEAST_GAIN
    for c in range(gain.size):
        if gain[c] > highest:
            best, highest = c, gain[c]
    return best


@njit(cache=True, nogil=True, inline="always")
def _move(graph: PenalisedGraph, clusters: Clusters, a: int, to: int) -> None:
    here, own = clusters.group[a], graph.affinity[a, a]
    clusters.group[a] = to
    clusters.size[here] -= 1
    clusters.size[to] += 1
    clusters.inside[here] -= 2 * clusters.links[a, here] - own
    clusters.inside[to] += 2 * clusters.links[a, to] + own
    for at in range(graph.first[a], graph.first[a + 1]):
        b = graph.related[at]
        clusters.links[b, here] -= graph.affinity[a, b]
        clusters.links[b, to] += graph.affinity[a, b]
        clusters.penalty[b, here] -= graph.penalty[a, b]
        clusters.penalty[b, to] += graph.penalty[a, b]
    clusters.volume[here] -= graph.degree[a]
    clusters.volume[to] += graph.degree[a]
    for c in (here, to):
        clusters.loss[c] = _loss(clusters.inside[c], clusters.volume[c])


@njit(cache=True, nogil=True, inline="always")
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


@njit(cache=True, nogil=True, inline="always")
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
        for at in range(graph.first[a], graph.first[a + 1]):
            b = graph.related[at]
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


@njit(cache=True, nogil=True, inline="always")
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


# --- micro-clusters of the features, merged the way the pairs want it


class MicroClusters(NamedTuple):
    """Micro-clusters of rows, to be merged the way pairs want it."""

    labels: Ints  # the micro-cluster of each row
    centers: Floats
    mass: Floats  # of the micro-clusters, in units of the mean squared distance
    first: Ints  # the group of each micro-cluster that k-means gives it
    k: int
    seed: int

    @classmethod
    def of(cls, rows: Floats, k: int, rng: np.random.RandomState, *, factor: int) -> MicroClusters:
        """Cluster rows into ``factor * k`` micro-clusters by k-means."""
        n = min(factor * k, rows.shape[0])
        labels, centers = fit_to_sample(rows, n, rng)
        mass = np.bincount(labels, minlength=centers.shape[0]).astype(np.float64)
        seed = int(rng.randint(2**31))
        if centers.shape[0] <= k:
            return cls(labels, centers, mass, np.arange(centers.shape[0]), k, seed)
        with quiet(ConvergenceWarning):
            model = KMeans(k, n_init=GROUPINGS, random_state=rng).fit(centers, sample_weight=mass)
        first = model.labels_.astype(np.intp)
        unit = max(_sums(centers, mass, first, k=k)[2] / rows.shape[0], 1e-300)
        return cls(labels, centers, mass / unit, first, k, seed)

    def merged(self, pairs: Ints, weight: Floats) -> Ints:
        r"""Group the micro-clusters into `k`; return the group of each row.

        `pairs` are pairs of rows, `weight` is positive for a must-link and negative for a
        cannot-link.

        The grouping `g` lowers, in units of the mean squared distance :math:`s^2`,

        .. math:: \sum_A n_A \| c_A - \mu_{g(A)} \|^2 / s^2
           + \text{PENALTY} \cdot (\text{weight of violated pairs})

        by moving one micro-cluster at a time, from several starts.
        """
        n = self.centers.shape[0]
        if n <= self.k:
            return self.labels
        rng = np.random.RandomState(self.seed)
        apart = penalties(self.labels[pairs], -PENALTY * weight, n)
        small = Small(self.centers, self.mass, apart)
        best, lowest = _lower_inertia(small, self.first, self.k)
        for number in range(N_RANDOM + N_PERTURBED):
            start = best.copy()
            share = 1.0 if number < N_RANDOM else PERTURBED
            moved: Bools = np.asarray(rng.uniform(size=n) < share)
            start[moved] = rng.randint(self.k, size=int(moved.sum()))
            found, value = _lower_inertia(small, start, self.k)
            if value < lowest - 1e-9:
                best, lowest = found, value
        return best[self.labels]


class Small(NamedTuple):
    """Micro-clusters: where they are, what they weigh, and the penalty of putting two together."""

    centers: Floats
    mass: Floats
    apart: Floats  # symmetric; negative where pairs want two of them together


def _sums(centers: Floats, mass: Floats, group: Ints, *, k: int) -> tuple[Floats, Floats, float]:
    """Return the mass of each group, the sum of its centres times their mass, and the inertia."""
    sums = np.zeros((k, centers.shape[1]))
    np.add.at(sums, group, centers * mass[:, None])
    weight: Floats = np.bincount(group, weights=mass, minlength=k).astype(np.float64, copy=False)
    means = sums / np.maximum(weight, 1e-300)[:, None]
    return weight, sums, float((mass * ((centers - means[group]) ** 2).sum(axis=1)).sum())


def _lower_inertia(small: Small, start: Ints, k: int) -> tuple[Ints, float]:
    """Move single micro-clusters while it pays; return the grouping and its cost."""
    group = start.copy()
    weight, sums, _ = _sums(small.centers, small.mass, group, k=k)
    _move_singly(small, group, weight, sums, np.empty(k))
    together = group[:, None] == group[None, :]
    # Pairs that are kept apart cost nothing if they want to be, and their penalty if they do not;
    # up to a constant that is the penalty of those put together.
    inertia = _sums(small.centers, small.mass, group, k=k)[2]
    return group, inertia + 0.5 * float(small.apart[together].sum())


@njit(cache=True, nogil=True)
def _move_singly(  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0917
    small, group, weight, sums, cost
):
    """Move micro-clusters in place, and keep the sums of the groups; `cost` is scratch memory.

    Loops over numbers: an array expression takes numba seconds to compile.
    """
    centers, mass, apart = small.centers, small.mass, small.apart
    n, d = centers.shape
    for _ in range(50):
        moved = False
        for a in range(n):
            here = group[a]
            if weight[here] <= mass[a] * (1 + 1e-9):
                continue  # the last one of its cluster
            for c in range(cost.size):
                cost[c] = 0.0
            for b in range(n):
                if b != a:
                    cost[group[b]] += apart[a, b]
            for c in range(cost.size):
                own = mass[a] if c == here else 0.0
                left = weight[c] - own
                if left > 0:
                    distance = 0.0
                    for j in range(d):
                        x = centers[a, j] - (sums[c, j] - own * centers[a, j]) / left
                        distance += x * x
                    cost[c] += mass[a] * left / (left + mass[a]) * distance
            best, lowest = here, 0.0
            for c in range(cost.size):
                if c != here and cost[c] - cost[here] < lowest - 1e-9:
                    best, lowest = c, cost[c] - cost[here]
            if best != here:
                weight[here] -= mass[a]
                weight[best] += mass[a]
                for j in range(d):
                    sums[here, j] -= mass[a] * centers[a, j]
                    sums[best, j] += mass[a] * centers[a, j]
                group[a] = best
                moved = True
        if not moved:
            break
