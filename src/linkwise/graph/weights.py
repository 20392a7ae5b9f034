"""From distances to weights: Gaussian affinities and the choice of their scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from linkwise.exceptions import TooLargeError
from linkwise.graph.neighbors import DENSE_LIMIT, NeighborSearch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linkwise._types import Floats


__all__ = [
    "gaussian",
    "largest_gap",
    "positive_scale",
    "sigma_variance",
    "sigma_xu",
    "smallest_positive",
    "symmetrized",
    "xu_neighbor",
]

XU_EPSILON = 1e-3  # affinity of a sample to its m-th neighbour, at least (Xu et al. 2005)


def gaussian(distances: Floats, scale_i: Floats | float, scale_j: Floats | float) -> Floats:
    """Affinities ``exp(-d^2 / (s_i s_j))``; with ``s = sqrt(2) sigma`` the usual Gaussian.

    Subnormal results become zero: their inverse, as the degree of a sample, would overflow.
    """
    # Two divisions instead of d^2 / (s_i s_j), which underflows where distances are near 1e-160.
    weights = np.exp(-(distances / scale_i) * (distances / scale_j))
    weights[weights < np.finfo(float).tiny] = 0
    return weights


def smallest_positive(distances: Floats) -> float:
    """Smallest positive distance; 1 when every distance is zero, for then no scale matters."""
    smallest = float(np.min(distances, where=distances > 0, initial=np.inf))
    return smallest if np.isfinite(smallest) else 1.0


def positive_scale(scale: Floats, replacement: float) -> Floats:
    """Replace the zero scale of samples with many duplicates."""
    return np.where(scale > 0, scale, replacement)


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


def xu_neighbor(search: NeighborSearch) -> tuple[int, float]:
    """Find the rank m of Xu's heuristic, and the largest distance to an m-th neighbour.

    Takes all n^2 distances in blocks, in O(n) memory besides one block.
    """
    if search.n_samples > DENSE_LIMIT:
        message = (
            f'scale="xu" compares all pairs of samples to find m; there are '
            f"{search.n_samples:,} samples and the limit is {DENSE_LIMIT:,}. "
            "Give m= (the size of the smallest group of neighbours to keep together)."
        )
        raise TooLargeError(message)
    return largest_gap(search.row_blocks())


def sigma_xu(widest: float) -> float:
    """Solve for the sigma with ``exp(-widest^2 / (2 sigma^2)) = 0.001`` (Xu et al. 2005)."""
    return float(widest / np.sqrt(-2 * np.log(XU_EPSILON)))


def sigma_variance(X: Any) -> float:
    """Root of the mean variance of the features (Wacquet et al. 2013)."""
    variances = mean_variance_axis(X, axis=0)[1] if issparse(X) else np.var(X, axis=0)
    return float(np.sqrt(np.mean(variances)))


def symmetrized(A: Any, how: str) -> Any:
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
