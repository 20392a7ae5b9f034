"""Where a search begins: eigenvectors of the shrunken graph, k-means, and a guided colouring."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, diags_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from linkwise._quiet import quiet
from linkwise.constraints.coloring import CannotLinkGraph, Peeling, guided_coloring, peel
from linkwise.linalg import eigen
from linkwise.search.coarsen import hierarchy
from linkwise.search.problem import Problem, graph_only

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int32s, Int64s


__all__ = [
    "Colorer",
    "colorer",
    "embed",
    "mutate_split_merge",
    "spectral_start",
    "squared_distances",
]

EMBEDDED = 4000  # vertices of the graph whose eigenvectors are computed
SMOOTHING = 2  # steps of the walk that round off what a coarse vertex gives its members
EIGEN_TOL = 1e-4  # starts need no more


class Colorer(NamedTuple):
    """Turns costs into feasible partitions."""

    graph: CannotLinkGraph
    peeling: Peeling
    known: Int32s  # a feasible partition, for when the guided one fails
    n_samples: Int64s  # of each vertex

    def __call__(self, cost: Floats, rng: np.random.RandomState) -> Int32s:
        """Return a feasible partition with low cost, every cluster non-empty."""
        found = guided_coloring(self.graph, cost, rng, peeling=self.peeling)
        colors = found.colors if found.n_left == 0 else _recolored(self.known, cost)
        return _with_samples(colors, cost, self.n_samples)


def colorer(problem: Problem, k: int, known: Int32s) -> Colorer:
    """Prepare colouring the cannot-links of a problem, for which `known` is one answer."""
    graph = CannotLinkGraph(problem.apart_indptr, problem.apart_indices)
    return Colorer(graph, peel(graph, k), known, problem.n_samples)


def _with_samples(colors: Int32s, cost: Floats, count: Int64s) -> Int32s:
    """Give each cluster that holds nothing but anchors the sample that is cheapest for it.

    Where there are anchors, samples have no cannot-links.
    """
    k = cost.shape[1]
    if count.all():
        return colors
    for c in np.flatnonzero(np.bincount(colors, weights=count, minlength=k) == 0):
        size = np.bincount(colors, weights=count, minlength=k)
        can_go = (count > 0) & (size[colors] > count)
        extra = np.where(can_go, cost[:, c] - cost[np.arange(colors.size), colors], np.inf)
        colors[int(extra.argmin())] = c
    return colors


def _recolored(known: Int32s, cost: Floats) -> Int32s:
    """Rename the clusters of a partition so that they cost least."""
    k = cost.shape[1]
    totals = np.array([cost[known == c].sum(axis=0) for c in range(k)])
    _, names = linear_sum_assignment(totals)
    renamed: Int32s = names.astype(np.int32)[known]
    return renamed


def embed(problem: Problem, k: int, rng: np.random.RandomState) -> Floats:
    """Return ``k + 1`` leading eigenvectors of the walk ``D^-1 W``, one row for each vertex.

    Above some thousand vertices, of a coarser graph; its members share their values, smoothed.
    """
    one_cell = np.zeros(problem.n_vertices, np.int32)
    levels, small = hierarchy(problem, one_cell, EMBEDDED, k, rng)
    vectors = _walk_vectors(small, min(k + 1, small.n_vertices), rng)
    for fine, parent in reversed(levels):
        vectors = vectors[parent]
        walk = _walk(fine)
        for _ in range(SMOOTHING):
            vectors = 0.5 * (vectors + walk @ vectors)
    return np.ascontiguousarray(vectors)


def _walk(problem: Problem) -> csr_array:
    inverse: Floats = 1.0 / problem.volume
    return csr_array(diags_array(inverse) @ graph_only(problem))


def _walk_vectors(problem: Problem, m: int, rng: np.random.RandomState) -> Floats:
    root = np.sqrt(problem.volume)
    scaling = diags_array(1.0 / root)
    S = csr_array(scaling @ graph_only(problem) @ scaling)
    if m >= problem.n_vertices:
        vectors = np.linalg.eigh(S.toarray())[1][:, ::-1]
    else:
        with quiet(ConvergenceWarning):  # a start may be rough
            vectors = eigen.largest(S, m, rng, tol=EIGEN_TOL).vectors
    walk: Floats = vectors / root[:, None]
    return walk * np.sqrt(problem.volume.sum())


def spectral_start(
    problem: Problem,
    vectors: Floats,
    k: int,
    color: Colorer,
    rng: np.random.RandomState,
    *,
    unit_rows: bool,
) -> Int32s:
    """Return the feasible partition nearest to the centres of one run of k-means."""
    rows = vectors
    if unit_rows:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(length > 0, length, 1.0)
    centers = _centers(rows, problem.volume, k, rng)
    cost = squared_distances(rows, centers)
    return color(cost, rng)


def _centers(rows: Floats, weights: Floats, k: int, rng: np.random.RandomState) -> Floats:
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
    problem: Problem, z: Int32s, vectors: Floats, color: Colorer, rng: np.random.RandomState
) -> Int32s:
    """Split one cluster in two and merge two others: a step that no local move can make."""
    k = int(z.max()) + 1
    volume: Floats = np.bincount(z, weights=problem.volume, minlength=k).astype(np.float64)
    target = z.copy()
    split = int(rng.choice(k, p=volume / volume.sum()))
    members = np.flatnonzero(z == split)
    second = members[_two_means(vectors[members], problem.volume[members], rng)]
    a, b = _pair_to_merge(problem, z, volume, split, rng)
    target[target == b] = a
    target[second] = b
    cost = np.repeat(problem.volume[:, None], k, axis=1)
    cost[np.arange(z.size), target] = 0.0
    return color(cost, rng)


def _pair_to_merge(
    problem: Problem, z: Int32s, volume: Floats, split: int, rng: np.random.RandomState
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
    return second
