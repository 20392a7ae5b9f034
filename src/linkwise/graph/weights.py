"""From distances to weights: `WEIGHTS` is the table of weight functions and their scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from linkwise.exceptions import TooLargeError
from linkwise.graph.neighbors import DENSE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from linkwise._types import Floats, Matrix
    from linkwise.graph.affinity import Affinity


XU_EPSILON = 1e-3  # affinity of a sample to its m-th neighbour, at least (Xu et al. 2005)
# Zelnik-Manor & Perona (2004) scale by the distance to the 7th neighbour.
SELF_TUNING_NEIGHBOR = 7


class Weight(NamedTuple):
    """A weight function: how its scale is chosen, and its formula.

    ``choose(builder, distances)`` returns the scale of a distance graph, a positive number; if
    `is_per_sample`, ``choose(builder, distances, query)`` returns one for each row, which are the
    samples of `fit`, or new ones in `query`. ``formula(d, s_i, s_j)`` returns the weights of
    distances between samples with these scales.
    """

    choose: Callable[..., Any]
    formula: Callable[[Floats, Any, Any], Floats]
    is_per_sample: bool = False


def gaussian(distances: Floats, s_i: Any, s_j: Any) -> Floats:
    """Affinities ``exp(-d^2 / (s_i s_j))``.

    Subnormal results become zero: their inverse, as the degree of a sample, would overflow.
    """
    # Two divisions instead of d^2 / (s_i s_j), which underflows where distances are near 1e-160.
    weights = np.exp(-(distances / s_i) * (distances / s_j))
    weights[weights < np.finfo(float).tiny] = 0
    return weights


def gaussian_of_sigma(distances: Floats, sigma: float, _: float) -> Floats:
    """Affinities ``exp(-d^2 / (2 sigma^2))``."""
    return gaussian(distances, np.sqrt(2) * sigma, np.sqrt(2) * sigma)


def ones(distances: Floats, _s_i: Any, _s_j: Any) -> Floats:
    """Return weight 1 for every edge."""
    return np.ones_like(distances)


def local_scale(builder: Affinity, distances: Matrix, query: Any = None) -> Floats:
    """Distance of every sample to the same neighbour (Zelnik-Manor & Perona 2004)."""
    scale = builder._kth_distance(distances, "scale_neighbor", query)
    return np.where(scale > 0, scale, builder._smallest_distance)  # zero among many duplicates


def sigma_xu(builder: Affinity, distances: Matrix) -> float:
    """Solve for the sigma with ``exp(-widest^2 / (2 sigma^2)) = 0.001`` (Xu et al. 2005).

    `widest` is the largest distance of a sample to its m-th neighbour.
    """
    n_samples = distances.shape[0]
    if builder.m is not None:
        builder.m_ = min(int(builder.m), n_samples - 1)
        widest = float(builder._kth_distance(distances, "m").max())
    elif n_samples <= DENSE_LIMIT:
        builder.m_, widest = largest_gap(builder._search.row_blocks())
    else:
        message = (
            f'scale="xu" compares all pairs of samples to find m; there are '
            f"{n_samples:,} samples and the limit is {DENSE_LIMIT:,}. "
            "Give m= (the size of the smallest group of neighbours to keep together)."
        )
        raise TooLargeError(message)
    return float(widest / np.sqrt(-2 * np.log(XU_EPSILON))) or builder._smallest_distance


def sigma_variance(builder: Affinity, _: Matrix) -> float:
    """Root of the mean variance of the features (Wacquet et al. 2013)."""
    if builder._search.is_precomputed:
        message = (
            'scale="variance" is about features, but metric="precomputed" gives none. '
            'Use scale="local" or a number.'
        )
        raise ValueError(message)
    X = builder._search.X
    variances = mean_variance_axis(X, axis=0)[1] if issparse(X) else np.var(X, axis=0)
    return float(np.sqrt(np.mean(variances))) or builder._smallest_distance


def given_sigma(builder: Affinity, _: Matrix) -> float:
    """Return the number that is the scale."""
    return float(builder.scale)


def no_scale(_builder: Affinity, _: Matrix) -> None:
    """Return None: the weight does not depend on the distance."""


# A new weight function is one more line here.
WEIGHTS = {
    "local": Weight(local_scale, gaussian, is_per_sample=True),
    "xu": Weight(sigma_xu, gaussian_of_sigma),
    "variance": Weight(sigma_variance, gaussian_of_sigma),
    "connectivity": Weight(no_scale, ones),
}
FIXED = Weight(given_sigma, gaussian_of_sigma)  # if the scale is a number


def largest_gap(blocks: Iterable[Floats]) -> tuple[int, float]:
    """Find the rank m after which some sample has its largest gap (Xu et al. 2005).

    Parameters
    ----------
    blocks : iterable of ndarray of shape (n_rows, n_samples)
        All distances, infinite from a sample to itself. One block is held at a time.

    Returns
    -------
    m : int
        The m of the largest ``delta_{i,m+1} - delta_{i,m}`` over all samples i, where
        ``delta_{i,m}`` is the distance of sample i to its m-th neighbour.
    widest : float
        ``max_i delta_{i,m}``.
    """
    best, m = -np.inf, 1
    widest: Floats | float = 0.0
    for block in blocks:
        delta = np.sort(block, axis=1)[:, :-1]
        widest = np.maximum(widest, delta.max(axis=0))
        gaps = np.diff(delta, axis=1)
        if gaps.size and gaps.max() > best:
            best = gaps.max()
            m = int(gaps.argmax() % gaps.shape[1]) + 1
    return m, float(np.atleast_1d(widest)[m - 1])


def smallest_positive(values: Matrix) -> float:
    """Smallest positive entry; 1 if there is none."""
    values = values.data if issparse(values) else values
    smallest = float(np.min(values, where=values > 0, initial=np.inf))
    return smallest if np.isfinite(smallest) else 1.0


def symmetrized(A: Matrix, how: str) -> Matrix:
    """Make the weights of the two directions of every edge one.

    "union" takes the larger and "mutual" the smaller of the two, an absent edge being zero;
    "mean" their mean, so that an edge seen from one side only has half its weight.
    """
    transposed = csr_array(A.T) if issparse(A) else A.T
    if how == "mean":
        return (A + transposed) / 2
    if not issparse(A):
        return np.maximum(A, transposed) if how == "union" else np.minimum(A, transposed)
    return A.maximum(transposed) if how == "union" else A.minimum(transposed)
