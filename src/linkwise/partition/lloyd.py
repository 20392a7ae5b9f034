"""k-means: rows around centres, from many starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from linkwise._jit import njit
from linkwise._kernels import relabelled
from linkwise._quiet import quiet

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints

# Restarts run on at most this many rows, and Lloyd's algorithm on all rows finishes the best:
# on 100,000 structureless rows a tenth of the time, at an inertia within 0.1 %.
RESTART_ROWS = 5_000

# Restarts are cheap where few rows make bad luck likely.
MANY_RESTARTS, MANY_RESTARTS_ROWS = 20, 2_000
FEW_RESTARTS = 10

# Up to RESTART_ROWS Lloyd runs until no row moves. Above, until the centres move less than this
# share of the variance: structureless data would creep on for hundreds of iterations.
LARGE_TOL = 1e-4

# Rows nearer than this share of the largest entry differ by the rounding of an eigensolver only.
SAME_ROW = 1e-12


class KMeansPartition(NamedTuple):
    """Clusters of the rows of a matrix."""

    labels: Ints
    centers: Floats
    inertia: float
    n_iter: int


def unit_rows(V: Floats) -> Floats:
    """Scale every row to length 1; a row of zeros stays as it is.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    # Dividing by the largest entry first keeps tiny and huge rows from under- and overflowing.
    largest = np.abs(V).max(axis=1, keepdims=True, initial=0.0)
    scaled = V / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Floats = scaled / np.where(lengths > 0, lengths, 1.0)
    return unit


def kmeans(
    V: Floats,
    k: int,
    rng: np.random.RandomState,
    *,
    n_init: int | None = None,
    max_iter: int = 300,
) -> KMeansPartition:
    r"""Cluster rows around `k` centres.

    Looks for the partition of the rows :math:`v_i` with the lowest inertia

    .. math:: \sum_{c=1}^{k} \sum_{i \in c} \| v_i - \mu_c \|^2 .

    The rows are taken as they are; spectral methods that want directions pass :func:`unit_rows`.
    Several runs from random starts (k-means++; 20 up to 2,000 rows and 10 above, unless given)
    compete with one from the farthest-first rows, which depends neither on the seed nor on the
    order of the rows; the best of them is run until no row changes its cluster. Above 5,000 rows
    the competition is held on a random sample and judged on all rows, and the last run ends when
    the centres move by less than 1e-4 of the variance. An iteration costs
    ``O(n_rows * n_columns * k)``.

    Labels are numbered by first appearance (row 0 is in cluster 0), the centres in that order.
    There are exactly `k` non-empty clusters when at least `k` rows are distinct: farther apart than
    1e-12 times the largest entry of `V`. With fewer distinct rows each of them is a cluster: equal
    rows are never separated, because must-linked samples often have them.

    Examples
    --------
    >>> V = np.array([[0.0], [5.0], [0.2], [5.2]])
    >>> kmeans(V, 2, np.random.RandomState(0)).labels.tolist()
    [0, 1, 0, 1]
    """
    V = np.ascontiguousarray(V, dtype=np.float64)
    n_rows = V.shape[0]
    seeds, nearest = _farthest_first(V, k)
    if seeds.size < k:
        return _partition(V, nearest)
    if n_init is None:
        n_init = MANY_RESTARTS if n_rows <= MANY_RESTARTS_ROWS else FEW_RESTARTS
    start = _best_start(V, seeds, rng, n_init=n_init, max_iter=max_iter)
    tol = 0.0 if n_rows <= RESTART_ROWS else LARGE_TOL
    # Nothing is random from given centres; a fixed state keeps numpy's global one untouched.
    last = KMeans(k, init=start, n_init=1, max_iter=max_iter, tol=tol, random_state=0)
    found = _lloyd(last, V)
    # Lloyd can lose a cluster to rounding when rows nearly coincide; the seeds never do.
    if not np.bincount(found.labels, minlength=k).all():
        return _partition(V, nearest)
    labels, before = relabelled(found.labels), np.empty(k, dtype=np.intp)
    before[labels] = found.labels
    return found._replace(labels=labels, centers=found.centers[before])


def _farthest_first(V: Floats, k: int) -> tuple[Ints, Ints]:
    """Find up to `k` rows, each the farthest from those before, and put all with the nearest.

    Stops early when every row equals one of those found. No cluster is empty, as the rows
    found differ.
    """
    same = (SAME_ROW * np.abs(V).max(initial=0.0)) ** 2
    distances, nearest = np.full(V.shape[0], np.inf), np.zeros(V.shape[0], dtype=np.intp)
    _come_nearer(V, V.mean(axis=0), distances, nearest, 0)
    seeds = [int(distances.argmax())]
    distances[:] = np.inf
    _come_nearer(V, V[seeds[0]], distances, nearest, 0)
    while len(seeds) < k and distances.max() > same:
        seeds.append(int(distances.argmax()))
        _come_nearer(V, V[seeds[-1]], distances, nearest, len(seeds) - 1)
    return np.array(seeds, dtype=np.intp), nearest


@njit(cache=True, nogil=True)
def _come_nearer(V, point, distances, nearest, label):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Lower squared distances to those from a point, and write its label where it is nearer."""
    for i in range(V.shape[0]):
        total = 0.0
        for c in range(V.shape[1]):
            # Differences: |v|^2 - 2 v.p + |p|^2 could not tell near rows from equal ones.
            total += (V[i, c] - point[c]) ** 2
        if total < distances[i]:
            distances[i], nearest[i] = total, label


def spread_seeds(
    V: Floats, k: int, rng: np.random.RandomState, *, mass: Floats | None = None
) -> Ints:
    """Draw rows, each with a probability by its squared distance from those before (k-means++).

    With a `mass` of each row, the probability is also proportional to that.
    The greedy variant of scikit-learn, which draws several rows at each step and keeps the best,
    takes about three times as long.
    """
    V = np.ascontiguousarray(V, dtype=np.float64)  # one layout: the kernel is compiled once
    distances, nearest = np.full(V.shape[0], np.inf), np.zeros(V.shape[0], dtype=np.intp)
    weight = np.ones(V.shape[0]) if mass is None else mass
    first = rng.randint(V.shape[0]) if mass is None else rng.choice(mass.size, p=mass / mass.sum())
    seeds = [int(first)]
    for draw in rng.uniform(size=k - 1):
        _come_nearer(V, V[seeds[-1]], distances, nearest, len(seeds) - 1)
        total = np.cumsum(weight * distances if distances.any() else weight)
        seeds.append(
            min(int(np.searchsorted(total, draw * total[-1], side="right")), total.size - 1)
        )
    return np.array(seeds, dtype=np.intp)


def _partition(V: Floats, labels: Ints) -> KMeansPartition:
    """Describe clusters found without Lloyd's algorithm."""
    labels = relabelled(labels)
    sizes = np.bincount(labels)
    centers = np.column_stack([np.bincount(labels, column) / sizes for column in V.T])
    inertia = float(((V - centers[labels]) ** 2).sum())
    return KMeansPartition(labels, centers, inertia, 0)


def _best_start(
    V: Floats, seeds: Ints, rng: np.random.RandomState, *, n_init: int, max_iter: int
) -> Floats:
    """Centres of the best of all starts, each run to the end on (a sample of) the rows."""
    k, n_rows = seeds.size, V.shape[0]
    sample = V
    if n_rows > RESTART_ROWS:
        # The seeds stay in, or a small far cluster might leave no row to run on.
        chosen = rng.choice(n_rows, RESTART_ROWS, replace=False)
        sample = V[np.union1d(chosen, seeds)]
    given = KMeans(k, init=V[seeds], n_init=1, max_iter=max_iter, random_state=0)
    drawn = KMeans(k, n_init=n_init, max_iter=max_iter, random_state=rng)
    ordered, random = _lloyd(given, sample), _lloyd(drawn, sample)
    values = ordered.inertia, random.inertia
    if sample is not V:
        values = _inertia(V, ordered.centers), _inertia(V, random.centers)
    return ordered.centers if values[0] <= values[1] else random.centers


def _inertia(V: Floats, centers: Floats) -> float:
    """Return the sum of the squared distances of all rows to their nearest centres."""
    distances, nearest = np.full(V.shape[0], np.inf), np.zeros(V.shape[0], dtype=np.intp)
    for label, center in enumerate(centers):
        _come_nearer(V, center, distances, nearest, label)
    return float(distances.sum())


def _lloyd(model: KMeans, V: Floats) -> KMeansPartition:
    with quiet(ConvergenceWarning):  # clusters lost to rounding are dealt with in `kmeans`
        model.fit(V)
    return KMeansPartition(
        model.labels_.astype(np.intp), model.cluster_centers_, float(model.inertia_), model.n_iter_
    )
