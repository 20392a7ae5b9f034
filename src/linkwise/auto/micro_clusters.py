"""Micro-clusters of the samples, merged into clusters the way the pairs want it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from linkwise._jit import njit
from linkwise._quiet import quiet

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats, Ints


PENALTY = 5.0  # of a violated pair, in mean squared distances
N_RANDOM, N_PERTURBED = 8, 4  # starts of the merge besides that of k-means
PERTURBED = 0.2  # share of micro-clusters that a perturbation moves
SAMPLE, SAMPLE_EACH = 5_000, 50  # rows on which centres are sought; at least so many a centre
RESTARTS = 3


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
        model = KMeans(n, n_init=RESTARTS, random_state=rng)
        labels, centers = fit_to_sample(rows, n, rng, make=lambda _: model)
        mass = np.bincount(labels, minlength=centers.shape[0]).astype(np.float64)
        seed = int(rng.randint(2**31))
        if centers.shape[0] <= k:
            return cls(labels, centers, mass, np.arange(centers.shape[0]), k, seed)
        first = _kmeans_grouping(centers, mass, k, rng)
        unit = max(_inertia(centers, mass, first, k) / rows.shape[0], 1e-300)
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
        small = Small(self.centers, self.mass, _between(self.labels[pairs], weight, n))
        best, lowest = _descend(small, self.first, self.k)
        for number in range(N_RANDOM + N_PERTURBED):
            share = 1.0 if number < N_RANDOM else PERTURBED
            start = _perturbed(best, self.k, share, rng)
            found, value = _descend(small, start, self.k)
            if value < lowest - 1e-9:
                best, lowest = found, value
        return best[self.labels]


class Small(NamedTuple):
    """Micro-clusters: where they are, what they weigh, and the penalty of putting two together."""

    centers: Floats
    mass: Floats
    apart: Floats  # symmetric; negative where pairs want two of them together


def fit_to_sample(
    rows: Floats, n: int, rng: np.random.RandomState, *, make: Callable[[Floats], KMeans]
) -> tuple[Ints, Floats]:
    """Cluster rows by k-means, of many rows fitted to a sample; return labels and centres.

    ``make(sample)`` returns the model. Clusters that nothing belongs to are left out.
    """
    sample, enough = rows, max(SAMPLE, SAMPLE_EACH * n)
    if rows.shape[0] > enough:
        sample = rows[rng.choice(rows.shape[0], enough, replace=False)]
    model = make(sample)
    with quiet(ConvergenceWarning):  # fewer distinct rows than clusters
        model.fit(sample)
    labels = model.predict(rows) if sample is not rows else model.labels_
    used, labels = np.unique(labels, return_inverse=True)
    centers: Floats = model.cluster_centers_[used].astype(np.float64)
    return labels.astype(np.intp), centers


def _between(pairs: Ints, weight: Floats, n: int) -> Floats:
    """Return the penalty of merging two micro-clusters; below 0, that of keeping them apart."""
    a, b = pairs.T
    table = np.zeros((n, n))
    np.add.at(table, (a, b), -PENALTY * weight)
    table += table.T
    np.fill_diagonal(table, 0.0)  # never decided here
    return table


def _kmeans_grouping(
    centers: Floats, mass: Floats, k: int, rng: np.random.RandomState, *, n_init: int = 5
) -> Ints:
    with quiet(ConvergenceWarning):
        model = KMeans(k, n_init=n_init, random_state=rng).fit(centers, sample_weight=mass)
    labels: Ints = model.labels_.astype(np.intp)
    return labels


def _sums(centers: Floats, mass: Floats, group: Ints, k: int) -> tuple[Floats, Floats]:
    """Return the mass of each group, and the sum of its centres times their mass."""
    sums = np.zeros((k, centers.shape[1]))
    np.add.at(sums, group, centers * mass[:, None])
    weight: Floats = np.bincount(group, weights=mass, minlength=k).astype(np.float64, copy=False)
    return weight, sums


def _inertia(centers: Floats, mass: Floats, group: Ints, k: int) -> float:
    weight, sums = _sums(centers, mass, group, k)
    means = sums / np.maximum(weight, 1e-300)[:, None]
    return float((mass * ((centers - means[group]) ** 2).sum(axis=1)).sum())


def _perturbed(group: Ints, k: int, share: float, rng: np.random.RandomState) -> Ints:
    """Move a share of the micro-clusters anywhere."""
    changed = group.copy()
    moved = rng.uniform(size=group.size) < share
    changed[moved] = rng.randint(k, size=int(moved.sum()))
    return changed


def _descend(small: Small, start: Ints, k: int) -> tuple[Ints, float]:
    """Move single micro-clusters while it pays; return the grouping and its cost."""
    group = start.copy()
    weight, sums = _sums(small.centers, small.mass, group, k)
    _move_singly(small, group, weight, sums, np.empty(k))
    together = group[:, None] == group[None, :]
    # Pairs that are kept apart cost nothing if they want to be, and their penalty if they do not;
    # up to a constant that is the penalty of those put together.
    inertia = _inertia(small.centers, small.mass, group, k)
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
