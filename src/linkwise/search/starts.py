"""Where a search begins: eigenvectors of the shrunken graph, k-means, and a guided colouring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from linkwise._quiet import quiet
from linkwise.linalg import eigen
from linkwise.search.problem import Problem, graph_only, hierarchy

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int32s
    from linkwise.search.objective import Colorer


EMBEDDED = 4000  # vertices of the graph whose eigenvectors are computed
SMOOTHING = 2  # averages with the neighbours' values, after those of a coarse vertex are copied
EIGEN_TOL = 1e-4  # starts need no more


def embed(problem: Problem, k: int, rng: np.random.RandomState) -> Floats:
    """Return ``k + 1`` leading eigenvectors of the random walk ``D^-1 W``, a row for each vertex.

    Above some thousand vertices, of a coarser graph; merged vertices share their values, smoothed.
    """
    one_cell = np.zeros(problem.n_vertices, np.int32)
    levels = hierarchy(problem, one_cell, EMBEDDED, k=k, rng=rng)
    vectors = _eigenvectors(levels.coarsest, min(k + 1, levels.coarsest.n_vertices), rng)
    for fine, parent in reversed(levels.fine):
        vectors = vectors[parent]
        random_walk = csr_array(diags_array(1.0 / fine.volume) @ graph_only(fine))
        for _ in range(SMOOTHING):
            vectors = 0.5 * (vectors + random_walk @ vectors)
    return np.ascontiguousarray(vectors)


def _eigenvectors(problem: Problem, m: int, rng: np.random.RandomState) -> Floats:
    """Return the leading eigenvectors of ``D^-1 W``, scaled by the root of the volume."""
    root = np.sqrt(problem.volume)
    scaling = diags_array(1.0 / root)
    S = csr_array(scaling @ graph_only(problem) @ scaling)
    if m >= problem.n_vertices:
        vectors = np.linalg.eigh(S.toarray())[1][:, ::-1]
    else:
        vectors = eigen.largest(S, m, rng, tol=EIGEN_TOL, warns=False).vectors
    scaled: Floats = vectors / root[:, None]
    return scaled * np.sqrt(problem.volume.sum())


def spectral_start(
    vectors: Floats,
    weights: Floats,
    rng: np.random.RandomState,
    *,
    color: Colorer,
    k: int,
    unit: bool,
) -> Int32s:
    """Return the feasible partition nearest to the centres of one run of k-means.

    With `unit`, rows of the embedding are scaled to length 1.
    """
    if unit:
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(length > 0, length, 1.0)
    centers = _kmeans_centers(vectors, weights, k, rng=rng)
    return color(squared_distances(vectors, centers), rng)


def _kmeans_centers(rows: Floats, weights: Floats, k: int, *, rng: np.random.RandomState) -> Floats:
    """Run k-means once, on a sample of the rows if they are many."""
    chosen = np.arange(rows.shape[0])
    if chosen.size > EMBEDDED:
        chosen = rng.choice(chosen.size, max(EMBEDDED, 10 * k), replace=False)
    model = KMeans(k, n_init=1, random_state=rng)
    # Fewer distinct rows than clusters: the colouring fills the empty ones.
    with quiet(ConvergenceWarning):
        model.fit(rows[chosen], sample_weight=weights[chosen])
    centers: Floats = model.cluster_centers_
    return centers


def squared_distances(rows: Floats, centers: Floats) -> Floats:
    """Return the squared distance of every row to every centre."""
    squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centers.T + (centers**2).sum(axis=1)
    return np.maximum(squares, 0.0)


def mutate_split_merge(
    problem: Problem,
    z: Int32s,
    vectors: Floats,
    *,
    color: Colorer,
    rng: np.random.RandomState,
) -> Int32s:
    """Split one cluster in two and merge two others: a step that no local move can make.

    Clusters are split by their volume; those of isolated vertices, which have next to none, as
    often as the largest one.
    """
    k = int(z.max()) + 1
    volume: Floats = np.bincount(z, weights=problem.volume, minlength=k).astype(np.float64)
    target = z.copy()
    n_edges = np.bincount(z, weights=np.diff(problem.indptr), minlength=k)
    chance = np.where((n_edges == 0) & (np.bincount(z) > 1), volume.max(), volume)
    split = int(rng.choice(k, p=chance / chance.sum()))
    members = np.flatnonzero(z == split)
    second = members[_two_means(vectors[members], problem.volume[members], rng)]
    a, b = _pair_to_merge(problem, z, volume, split=split, rng=rng)
    target[target == b] = a
    target[second] = b
    cost = np.repeat(problem.volume[:, None], k, axis=1)
    cost[np.arange(z.size), target] = 0.0
    return color(cost, rng)


def _pair_to_merge(
    problem: Problem, z: Int32s, volume: Floats, *, split: int, rng: np.random.RandomState
) -> tuple[int, int]:
    """Return two clusters with much weight between them, not the one that is split."""
    k = volume.size
    heads = np.repeat(z, np.diff(problem.indptr)).astype(np.int64)
    cut = np.bincount(heads * k + z[problem.indices], weights=problem.weight, minlength=k * k)
    share = cut.reshape(k, k) / np.minimum.outer(volume, volume)
    share = (share + 1e-12) * rng.uniform(0.2, 1.2, size=(k, k))
    share[np.tril_indices(k)] = -1.0
    share[split, :] = share[:, split] = -1.0
    a, b = divmod(int(share.argmax()), k)
    return a, b


def _two_means(rows: Floats, weights: Floats, rng: np.random.RandomState) -> Bools:
    """Return which rows are in the second of two clusters; neither is empty if there are two."""
    if rows.shape[0] < 2:
        return np.zeros(rows.shape[0], bool)
    centers = rows[rng.choice(rows.shape[0], 2, replace=False)]
    second = np.zeros(rows.shape[0], bool)
    for _ in range(10):
        distances = squared_distances(rows, centers)
        nearer = distances[:, 1] < distances[:, 0]
        if not nearer.any() or nearer.all() or (nearer == second).all():
            break
        second = nearer
        centers = np.array(
            [np.average(rows[part], axis=0, weights=weights[part]) for part in (~second, second)]
        )
    if not second.any():  # all rows are equal
        second[rng.randint(rows.shape[0])] = True
    return second
