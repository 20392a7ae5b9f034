"""Checks of graphs and distances that users bring."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise._quiet import user_level
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.linalg.laplacian import symmetric_components

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints


# Rounding of a symmetric computation stays far below, a real asymmetry far above.
SYMMETRY_TOLERANCE = 1e-8
# Of matrices that may be distances: rows that are compared, the smallest matrix that tells, entries
# that are not zero, and a difference of correlations.
ROWS_LOOKED_AT, LEAST_ROWS, DENSE, CLEARLY = 200, 10, 0.95, 0.2


def check_affinity(W: Graph) -> Graph:
    """Return `W` as a graph: symmetric, non-negative, without loops; or raise ValueError.

    `W` is finite and of floats already; it is never changed. Sparse graphs come back as
    ``csr_array`` with sorted indices.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_samples, n_samples)
        Affinities of samples.
    """
    if W.shape[0] != W.shape[1]:
        raise ValueError(
            f"A precomputed affinity is a square matrix, one row and column a sample; got shape "
            f"{W.shape}. For a matrix of features leave affinity=None."
        )
    W = _without_loops(W)
    _check_sign(W)
    W = _symmetric(W)
    if not issparse(W):
        _warn_if_distances(W)
    _warn_if_disconnected(W)
    return W


def _without_loops(W: Graph) -> Graph:
    """Drop self-similarities: they do not affect which samples belong together."""
    if not issparse(W):
        return W if not W.diagonal().any() else W - np.diag(W.diagonal())
    W = csr_array(W)
    if not W.has_canonical_format or (W.data == 0).any() or W.diagonal().any():
        W = W.copy()
        W.sum_duplicates()
        rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
        W.data[rows == W.indices] = 0
        W.eliminate_zeros()
    return W


def _check_sign(W: Graph) -> None:
    values: Floats = W.data if issparse(W) else W  # type: ignore[assignment]
    if values.size == 0 or values.min() >= 0:
        return
    entries = csr_array(W).tocoo()
    first = int(np.argmax(entries.data < 0))
    raise ValueError(
        f"A precomputed affinity must not be negative, but W[{entries.row[first]}, "
        f"{entries.col[first]}] is {entries.data[first]:g}. Knowledge that two samples differ goes "
        "into constraints=; distances become affinities through linkwise.Affinity."
    )


def _symmetric(W: Graph) -> Graph:
    if _looks_symmetric(W):
        return W
    transposed = csr_array(W.T) if issparse(W) else W.T
    difference = abs(W - transposed)
    if float(difference.max()) > SYMMETRY_TOLERANCE * float(W.max()):
        entries = csr_array(difference).tocoo()
        worst = int(np.argmax(entries.data))
        i, j = int(entries.row[worst]), int(entries.col[worst])
        raise ValueError(
            f"A precomputed affinity must be symmetric, but W[{i}, {j}] is {W[i, j]:g} and "
            f"W[{j}, {i}] is {W[j, i]:g}. Use W.maximum(W.T) (an edge if either side has it) or "
            "(W + W.T) / 2."
        )
    mean = (W + transposed) / 2
    return csr_array(mean) if issparse(W) else mean


def _looks_symmetric(W: Graph) -> bool:
    """Compare ``W u`` with ``W' u`` for one fixed random `u` (Freivalds' test).

    Two products instead of a transposed copy. `u` is continuous, so asymmetries above rounding
    (1e-12 of the sum of a row) cancel with probability zero.
    """
    u = np.random.RandomState(0).uniform(1, 2, size=W.shape[0])
    forwards, backwards = W @ u, u @ W
    return bool((abs(forwards - backwards) <= 1e-12 * (forwards + backwards)).all())


def _warn_if_distances(W: Floats) -> None:
    """Warn if a dense matrix looks like distances: large where samples differ.

    Samples that are alike have similar rows. Among distances these are the samples with the
    smallest entry, among affinities those with the largest. A graph with many zeros is no matrix
    of distances.
    """
    n = W.shape[0]
    rows = np.random.RandomState(0).permutation(n)[:ROWS_LOOKED_AT]
    some = W[rows].copy()
    at = np.arange(rows.size)
    if n < LEAST_ROWS or np.count_nonzero(some) < DENSE * rows.size * (n - 1):
        return
    some[at, rows] = -np.inf
    farthest = some.argmax(axis=1)
    some[at, rows] = np.inf
    nearest = some.argmin(axis=1)
    if _likeness(W, rows, nearest) < _likeness(W, rows, farthest) + CLEARLY:
        return
    message = (
        "The precomputed affinity looks like a matrix of distances: it is large where samples are "
        "far from each other. Affinities are large where samples are alike. Pass distances with "
        'affinity=linkwise.Affinity(metric="precomputed").'
    )
    warnings.warn(message, UserWarning, stacklevel=user_level())


def warn_if_graph(X: Graph, name: str) -> None:
    """Warn if a square table of features is a graph or a matrix of distances.

    No table of features is symmetric by chance. `name` is that of the estimator.
    """
    n = X.shape[0]
    if n < LEAST_ROWS:
        return
    values: Floats = X.data if issparse(X) else X  # type: ignore[assignment]
    if not values.size or values.min() < 0 or not _looks_symmetric(X):
        return
    is_dense = not issparse(X) and np.count_nonzero(X) >= DENSE * n * (n - 1)
    if is_dense and not X.diagonal().any():
        what, call = "of distances", 'affinity=linkwise.Affinity(metric="precomputed")'
    else:
        what, call = "of a graph", 'affinity="precomputed"'
    message = (
        f"X is square and symmetric, like the matrix {what}, but each column was taken for a "
        f"feature. If it is one, pass {name}(..., {call})."
    )
    warnings.warn(message, UserWarning, stacklevel=user_level())


def _likeness(W: Floats, rows: Ints, others: Ints) -> float:
    """Return the mean correlation of the rows of some samples with those of others."""
    at, kept = np.arange(rows.size), np.ones((rows.size, W.shape[0]))
    kept[at, rows] = kept[at, others] = 0.0  # what two samples say of each other and of themselves
    n_kept = kept.sum(axis=1, keepdims=True)
    A, B = (
        kept * (M - (kept * M).sum(axis=1, keepdims=True) / n_kept) for M in (W[rows], W[others])
    )
    size = np.sqrt((A**2).sum(axis=1) * (B**2).sum(axis=1))
    return float(((A * B).sum(axis=1) / np.where(size > 0, size, 1.0)).mean())


def _warn_if_disconnected(W: Graph) -> None:
    n_components, component = symmetric_components(W)
    if n_components == 1:
        return
    sizes = np.sort(np.bincount(component))[::-1]
    message = (
        f"The graph has {n_components} connected components (sizes {listed_sizes(sizes)}). No "
        "edge shows which belong together: unless constraints link them, clusters follow the "
        "components. Connect them, or build the graph with linkwise.Affinity, which joins them."
    )
    # The user's line is behind check_affinity, Prepared, `fit` and scikit-learn's wrapper.
    warnings.warn(message, DisconnectedGraphWarning, stacklevel=user_level())


def listed_sizes(sizes: Ints) -> str:
    """Write the first sizes of components, in decreasing order."""
    return ", ".join(map(str, sizes[:5].tolist())) + (", ..." if sizes.size > 5 else "")


def check_distances(D: Floats) -> None:
    """Raise ValueError unless `D` is a square symmetric matrix without negative entries."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(f'metric="precomputed" needs a square matrix of distances, got {D.shape}.')
    if D.min() < 0:
        i, j = np.unravel_index(D.argmin(), D.shape)
        raise ValueError(f"Distances must not be negative, but X[{i}, {j}] is {D[i, j]}.")
    gap = np.abs(D - D.T)
    if gap.max() > SYMMETRY_TOLERANCE * D.max():
        i, j = np.unravel_index(gap.argmax(), D.shape)
        raise ValueError(
            f"Distances must be symmetric, but X[{i}, {j}] is {D[i, j]:g} and X[{j}, {i}] is "
            f"{D[j, i]:g}. Fill in both triangles, for example X + X.T."
        )
