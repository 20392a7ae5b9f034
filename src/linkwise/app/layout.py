"""Two coordinates of each sample: principal axes at once, the graph's own layout later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD

from linkwise.partition import unit_rows

if TYPE_CHECKING:
    from linkwise._types import Floats, Singles
    from linkwise.graph import Prepared

FITTED = 20_000  # samples from which principal axes are found; the others are projected
TRIMMED = 0.002  # share of the samples at each end that does not decide the size of the map


def principal_axes(data: Prepared) -> Singles:
    """Return the first map: two features as they are, more along their principal axes."""
    X: Any = data.X
    if data.is_graph:
        vectors = data.embedding(min(4, data.n_samples), np.random.RandomState(0)).vectors
        return unit_square(vectors[:, 1:3] if vectors.shape[1] > 2 else vectors)
    if issparse(X):
        if min(X.shape) <= 2:
            return unit_square(X.toarray())
        return unit_square(TruncatedSVD(2, random_state=0).fit_transform(X))
    if X.shape[1] <= 2:
        return unit_square(X)
    some = np.random.RandomState(0).permutation(len(X))[:FITTED]
    return unit_square(PCA(2, random_state=0).fit(X[some]).transform(X))


def spectral(data: Prepared, n_clusters: int) -> Singles | None:
    """Return the map in which samples are near that the graph connects well; None if too few."""
    k = min(max(n_clusters, 3), data.n_samples - 1)
    if k < 3 or (not data.is_graph and data.X.shape[1] <= 2):
        return None  # two features are the map that their owner knows
    vectors = data.embedding(k, np.random.RandomState(0)).vectors
    rows = unit_rows(vectors)
    flat = PCA(2, random_state=0).fit_transform(rows)
    return unit_square(flat)


def unit_square(points: Any) -> Singles:
    """Bring coordinates to [0, 1]; a few samples far outside are moved closer."""
    flat = np.zeros((len(points), 2))
    used = np.asarray(points, dtype=np.float64)[:, :2]
    flat[:, : used.shape[1]] = used
    low, high = np.quantile(flat, [TRIMMED, 1 - TRIMMED], axis=0)
    is_flat = high <= low
    low, high = np.where(is_flat, flat.min(axis=0), low), np.where(is_flat, flat.max(axis=0), high)
    half = (high - low) / 2
    # A long map is stretched to at most twice its width, to use the space there is.
    half = np.maximum(half, max(float(half.max()) / 2, 1e-300))
    unit = (flat - (low + high) / 2) / half
    far: Floats = np.abs(unit) > 1
    unit = np.where(far, np.sign(unit) * (1 + 0.1 * np.tanh(np.abs(unit) - 1)), unit)
    unit[:, 1] = -unit[:, 1]  # the second axis points upwards
    return np.asarray(0.5 + unit / 2.4, dtype=np.float32)
