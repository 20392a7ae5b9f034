"""Two coordinates of each sample: principal axes at once, the graph's own layout later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._jit import njit
from linkwise._kernels import new_stream, uniform

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Int32s, Singles, UInt64s
    from linkwise.graph import Prepared

FITTED = 20_000  # samples from which principal axes are found; the others are projected
N_AXES, N_TURNS = 8, 12  # vectors that are turned towards the principal axes, and how often
MANY = 20_000  # samples from which fewer rounds must do
A, B = 0.992, 1.112  # UMAP's curve for points that keep a distance of 0.3
N_PUSHED = 3  # random samples that an end of an edge is pushed away from
LONGEST = 4.0  # step
TRIMMED = 0.002  # share of the samples at each end that does not decide the size of the map


def has_columns(data: Any) -> bool:
    """Whether samples are rows of plain numbers: neither sparse nor a graph."""
    return isinstance(data.X, np.ndarray) and not data.is_graph


def principal_axes(data: Any) -> Singles:
    """Return the first map: two features as they are, more along their principal axes."""
    X: Any = data.X
    if data.is_graph:
        vectors = data.embedding(min(4, data.n_samples), np.random.RandomState(0)).vectors
        return unit_square(vectors[:, 1:3] if vectors.shape[1] > 2 else vectors)
    if not has_columns(data):
        return unit_square(_sparse_axes(X))
    if X.shape[1] <= 2:
        return unit_square(X)
    some = np.random.RandomState(0).permutation(len(X))[:FITTED]
    center = X[some].mean(axis=0)
    return unit_square((X - center) @ leading_axes(X[some] - center))


def _sparse_axes(X: Any) -> Floats:
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415  (the server needs none of it)

    if min(X.shape) <= 2:
        dense: Floats = X.toarray()
        return dense
    found: Floats = TruncatedSVD(2, random_state=0).fit_transform(X)
    return found


def leading_axes(centered: Floats) -> Floats:
    """Return the two axes along which centred rows spread most, by repeated multiplication.

    The largest coordinate of each is positive, so that the map is the same every time.
    """
    n_features = centered.shape[1]
    axes = np.random.RandomState(0).normal(size=(n_features, min(n_features, N_AXES)))
    for _ in range(N_TURNS):
        axes = np.linalg.qr(centered.T @ (centered @ axes))[0]
    turned = np.linalg.svd(centered @ axes, full_matrices=False)[2]
    leading: Floats = axes @ turned[:2].T
    largest = np.abs(leading).argmax(axis=0)
    return leading * np.sign(leading[largest, [0, 1]])


def nearest(W: Graph, n: int) -> Int32s:
    """Return the `n` best connected samples of each sample, the best first, then -1."""
    from scipy.sparse import csr_array  # noqa: PLC0415

    graph = csr_array(W)
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    order = np.lexsort((-graph.data, rows))
    order = order[rows[order] != graph.indices[order]]  # not itself
    row, column = rows[order], graph.indices[order]
    rank = np.arange(row.size) - np.searchsorted(row, row)
    found = np.full((graph.shape[0], n), -1, dtype=np.int32)
    is_near = rank < n
    found[row[is_near], rank[is_near]] = column[is_near]
    return found


def neighbor_layout(data: Prepared, start: Singles) -> Singles | None:
    """Return the map in which samples are near that the graph connects well.

    The layout of UMAP (McInnes, Healy & Melville, 2018): edges pull, random pairs push, from the
    first map on. None if two features are the map already, or there are too few samples.
    """
    if data.n_samples < 8 or (not data.is_graph and data.X.shape[1] <= 2):
        return None
    from scipy.sparse import csr_array, triu  # noqa: PLC0415

    upper = triu(csr_array(data.W), k=1, format="coo")
    if not upper.nnz:
        return None
    points = (10 * np.asarray(start, dtype=np.float64)).copy()
    points += np.random.RandomState(0).normal(scale=0.01, size=points.shape)  # copies move apart
    ends = np.column_stack((upper.row, upper.col)).astype(np.int32)
    strength = np.asarray(upper.data / upper.data.max(), dtype=np.float64)
    n_rounds = 200 if data.n_samples <= MANY else 60
    arrange(points, ends, strength, n_rounds, new_stream(1))
    return unit_square(points)


@njit(cache=True, nogil=True)
def arrange(points: Floats, ends: Int32s, strength: Floats, n_rounds: int, stream: UInt64s) -> None:
    """Move points in place: each edge pulls as often as it is strong, and random pairs push.

    A pair at distance `d` is near with probability ``1 / (1 + A d^(2 B))``.
    """
    n = points.shape[0]
    for step in range(n_rounds):
        rate = 1.0 - step / n_rounds
        for e in range(ends.shape[0]):
            if uniform(stream) > strength[e]:
                continue
            i, j = ends[e, 0], ends[e, 1]
            pull(points, i, j, rate)
            for _ in range(N_PUSHED):
                push(points, i, int(uniform(stream) * n), rate)


@njit(cache=True, nogil=True)
def pull(points: Floats, i: int, j: int, rate: float) -> None:
    """Move both ends of an edge towards each other."""
    dx, dy = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1]
    far = dx * dx + dy * dy
    if far <= 0.0:
        return
    power = far**B
    force = -2.0 * A * B * power / far / (1.0 + A * power)
    x = min(max(force * dx, -LONGEST), LONGEST) * rate
    y = min(max(force * dy, -LONGEST), LONGEST) * rate
    points[i, 0] += x
    points[i, 1] += y
    points[j, 0] -= x
    points[j, 1] -= y


@njit(cache=True, nogil=True)
def push(points: Floats, i: int, j: int, rate: float) -> None:
    """Move a point away from another."""
    dx, dy = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1]
    far = dx * dx + dy * dy
    if i == j or far <= 0.0:
        return
    force = 2.0 * B / ((0.001 + far) * (1.0 + A * far**B))
    points[i, 0] += min(max(force * dx, -LONGEST), LONGEST) * rate
    points[i, 1] += min(max(force * dy, -LONGEST), LONGEST) * rate


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
