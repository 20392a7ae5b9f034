"""Agreement with a truth.

Every score takes the true classes `y_true` and the found clusters `labels`, one per sample. It is
nan when there is no point to score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    adjusted_rand_score,
    normalized_mutual_info_score,
    pair_confusion_matrix,
    rand_score,
)
from sklearn.metrics.cluster import contingency_matrix

from linkwise._quiet import quiet
from linkwise.metrics.checks import as_codes, free_points

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from linkwise._types import Ints
    from linkwise.metrics.checks import Outside


class PairScores(NamedTuple):
    """Precision, recall and their harmonic mean for "these two belong together".

    Parameters
    ----------
    precision : float
        Of the pairs put together, the share that belongs together.
    recall : float
        Of the pairs that belong together, the share put together.
    f : float
        Their harmonic mean.
    """

    precision: float
    recall: float
    f: float


def accuracy(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    r"""Share of points in the right class, under the best one-to-one naming of the clusters.

    .. math:: \max_{\mathrm{map}} \frac1n \sum_i [\, y_i = \mathrm{map}(\ell_i) \,]

    (Wacquet et al. 2013, eq. 45-46), the naming found by the Hungarian method. With more
    clusters than classes some clusters have no name, and their points count as wrong.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], ["b", "b", "b", "a"])
    0.75
    """
    y_true, labels = _compared(y_true, labels, outside)
    if not labels.size:
        return np.nan
    counts = contingency_matrix(y_true, labels)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / labels.size)


def clustering_error(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    r"""Share of points that are not of the majority class of their cluster; lower is better.

    .. math:: 1 - \frac1n \sum_c \max_y |\{i : \ell_i = c, y_i = y\}|

    The error of Rangapuram & Hein (2012), section 6: what remains wrong after one label has
    been asked for each cluster. Several clusters may get the same class, so it falls to 0 when
    every point is its own cluster: compare equal numbers of clusters only.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.

    Examples
    --------
    >>> clustering_error([0, 0, 1, 1], [0, 0, 0, 1])
    0.25
    """
    y_true, labels = _compared(y_true, labels, outside)
    if not labels.size:
        return np.nan
    majority = contingency_matrix(y_true, labels, sparse=True).max(axis=0).sum()
    return float((labels.size - majority) / labels.size)


def rand_index(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    """Share of all pairs on which the two partitions agree: together in both or in neither.

    Wacquet et al. 2013, eq. 47; scikit-learn's ``rand_score``. High by chance when there are many
    classes; :func:`adjusted_rand` is not. 1 for a single point.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.

    Examples
    --------
    >>> rand_index([0, 0, 1, 1], [0, 0, 1, 2])
    0.8333333333333334
    """
    return _score(rand_score, *_compared(y_true, labels, outside))


def adjusted_rand(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    """Rand index corrected for chance: 0 for random partitions, 1 for equal ones.

    Hubert & Arabie (1985); scikit-learn's ``adjusted_rand_score``, between -0.5 and 1. 1 when both
    partitions are one cluster, or both all singletons.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.

    Examples
    --------
    >>> round(adjusted_rand([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    return _score(adjusted_rand_score, *_compared(y_true, labels, outside))


def nmi(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    r"""Mutual information of the two partitions over the mean of their entropies.

    .. math:: \frac{2\, I(y, \ell)}{H(y) + H(\ell)}

    scikit-learn's ``normalized_mutual_info_score``. Not corrected for chance: it grows with the
    number of clusters. 1 when both partitions are one cluster.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.

    Examples
    --------
    >>> round(nmi([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8
    """
    return _score(normalized_mutual_info_score, *_compared(y_true, labels, outside))


def pairwise_f(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> PairScores:
    """Precision, recall and F of the relation "in one cluster" over all pairs.

    Of the pairs put together, the share that belongs together (precision); of the pairs that
    belong together, the share put together (recall); ``f`` is their harmonic mean. A share of no
    pairs is 1, as nothing is wrong in it.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes: integers or strings.
    labels : array-like of shape (n_samples,)
        Cluster of each sample: integers or strings.
    outside : Constraints, array-like of bool or None, default=None
        Score only samples that are in none of these constraints, or where the mask is False.

    Examples
    --------
    >>> pairwise_f([0, 0, 1, 1], [0, 0, 1, 2])
    PairScores(precision=1.0, recall=0.5, f=0.6666666666666666)
    """
    y_true, labels = _compared(y_true, labels, outside)
    if not labels.size:
        return PairScores(np.nan, np.nan, np.nan)
    with quiet(UserWarning):
        (_, only_found), (only_true, both) = pair_confusion_matrix(y_true, labels).tolist()
    return PairScores(
        precision=_share(both, both + only_found),
        recall=_share(both, both + only_true),
        f=_share(2 * both, 2 * both + only_true + only_found),
    )


def _compared(y_true: ArrayLike, labels: ArrayLike, outside: Outside) -> tuple[Ints, Ints]:
    """Return classes and clusters of the points to score, as numbers."""
    classes, clusters = as_codes(y_true, "y_true"), as_codes(labels, "labels")
    if classes.size != clusters.size:
        raise ValueError(f"y_true has {classes.size} entries, but labels has {clusters.size}.")
    free = free_points(outside, clusters.size)
    return classes[free], clusters[free]


def _score(score: Callable[[Ints, Ints], float], classes: Ints, clusters: Ints) -> float:
    """Return a score of scikit-learn, which warns where most clusters are single points."""
    if not clusters.size:
        return np.nan
    with quiet(UserWarning):
        return float(score(classes, clusters))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
