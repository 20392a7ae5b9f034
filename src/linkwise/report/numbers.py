"""The numbers of a report: clusters, their silhouette and cut, agreement with a truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.metrics import silhouette_samples

from linkwise import metrics
from linkwise.metrics.cuts import ClusterCuts, ratios

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Ints
    from linkwise.report.inputs import Inputs, Partition


SILHOUETTE_SAMPLES = 10_000  # all distances between them take a second or two
SEPARATION_SAMPLES = 2_000  # of a map, to compare it with others
LARGEST_TABLE = 30  # rows or columns of the table of classes and clusters


class Silhouette(NamedTuple):
    """Mean silhouette of each cluster and of all samples; nan where there is none."""

    per_cluster: Floats
    mean: float
    n_used: int


class Cuts(NamedTuple):
    """What each cluster loses to the others: the weight, and its share of the volume."""

    lost: Floats
    share: Floats


class Truth(NamedTuple):
    """Agreement with true classes, over the samples of known class and the free ones of them."""

    scores: list[tuple[str, float, float]]
    n_known: int
    n_unknown: int
    n_free: int
    counts: Ints | None  # classes x clusters; None when that would be a large table


def stratified(
    codes: Ints,
    size: int,
    rng: np.random.RandomState,
    *,
    wanted: Bools | None = None,
    least: int = 1,
) -> Ints:
    """Draw about `size` samples, of each group its share; ascending.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Group of each sample, numbered from 0.
    size : int
        The number wanted. More are drawn because shares are rounded up, and for `least`.
    rng : RandomState
        Source of the draw.
    wanted : ndarray of bool of shape (n,), optional
        Samples that come first in the draw of their group.
    least : int, default=1
        Draw at least so many of each group, or all of it.

    Examples
    --------
    >>> codes = np.array([0] * 90 + [1] * 10)
    >>> np.bincount(codes[stratified(codes, 20, np.random.RandomState(0))]).tolist()
    [18, 2]
    """
    n = codes.size
    if size >= n:
        return np.arange(n)
    priority = rng.uniform(size=n)
    if wanted is not None:
        priority[wanted] -= 1.0
    order = np.lexsort((priority, codes))
    sizes = np.bincount(codes)
    quota = np.maximum(-(-sizes * size // n), least)
    first = np.cumsum(sizes) - sizes
    rank = np.arange(n) - first[codes[order]]
    return np.sort(order[rank < quota[codes[order]]])


def unit_scale(X: Any) -> Any:
    """Divide by the largest entry: squares then neither vanish nor overflow."""
    largest = float(max(X.max(), -X.min())) if min(X.shape) else 0.0
    return X if largest == 0 else X / largest


def silhouette(points: Any, clusters: Partition, rng: np.random.RandomState) -> Silhouette | None:
    """Compute the silhouette, from a stratified sample of about 10,000 points if there are more.

    None if there is one cluster only, or every sample is its own.
    """
    # A single member of a cluster would have no silhouette.
    least = max(1, min(20, SILHOUETTE_SAMPLES // clusters.n_groups))
    chosen = stratified(clusters.codes, SILHOUETTE_SAMPLES, rng, least=least)
    codes = clusters.codes[chosen]
    if not 2 <= clusters.n_groups < chosen.size:
        return None
    widths = silhouette_samples(unit_scale(points[chosen]), codes)
    n_drawn = np.bincount(codes, minlength=clusters.n_groups)
    per_cluster = np.bincount(codes, weights=widths, minlength=clusters.n_groups) / n_drawn
    # Small clusters are over-represented in the sample: their weight is their true size.
    mean = float(per_cluster @ clusters.sizes / clusters.codes.size)
    return Silhouette(per_cluster, mean, chosen.size)


def separation(points: Floats, clusters: Partition, rng: np.random.RandomState) -> float:
    """Return how well clusters are apart on a map: their mean silhouette, from a sample."""
    some = stratified(clusters.codes, SEPARATION_SAMPLES, rng)
    codes = clusters.codes[some]
    n_drawn = np.unique(codes).size
    if not 2 <= n_drawn < some.size:
        return 0.0
    return float(silhouette_samples(unit_scale(points[some]), codes).mean())


def cluster_cuts(W: Any, clusters: Partition) -> Cuts:
    """Return what each cluster loses; the sum of the shares is the normalised cut."""
    lost, volume, _ = ClusterCuts.of(W, clusters.codes)
    return Cuts(lost, ratios(lost, volume))


# Truth -------------------------------------------------------------------------------------


def agreement(inputs: Inputs) -> Truth | None:
    """Compare with the true classes, if they are known."""
    truth, clusters = inputs.truth, inputs.clusters
    if truth is None:
        return None
    compared = (
        ("adjusted Rand index", metrics.adjusted_rand),
        ("normalised mutual information", metrics.nmi),
        ("accuracy", metrics.accuracy),
    )
    known = truth.codes >= 0
    bound = inputs.constraints.constrained[known]
    classes, found = truth.codes[known], clusters.codes[known]
    scores = [
        (name, score(classes, found), score(classes, found, outside=bound))
        for name, score in compared
    ]
    counts = None
    if max(truth.n_groups, clusters.n_groups) <= LARGEST_TABLE:
        counts = np.zeros((truth.n_groups, clusters.n_groups), dtype=np.intp)
        np.add.at(counts, (classes, found), 1)
    n_known = int(known.sum())
    return Truth(scores, n_known, known.size - n_known, int((~bound).sum()), counts)
