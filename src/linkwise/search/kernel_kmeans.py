r"""Weighted kernel k-means on a sparse graph: batch steps, single moves, contraction.

A graph `M` with vertex weights `d` stands for the kernel ``sigma D^-1 + D^-1 M D^-1``. With the
weight :math:`V_c` of a cluster and the sum :math:`Q_c = x_c^T M x_c` of the edges inside it (both
directions, and loops), the weighted sum of squared distances to the means is

.. math:: \sum_i d_i \| \phi_i - m_{c(i)} \|^2
   = \sigma (n - k) + \sum_i M_{ii} / d_i - \sum_c Q_c / V_c ,

so k-means looks for the largest :math:`\sum_c Q_c / V_c`, whatever `sigma` is. Nothing here has
more than ``nnz + n k`` entries or steps a pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from linkwise._jit import njit

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints


# A move counts as an improvement when it gains more than this share of the terms it is made of:
# far above rounding, so that no sequence of moves can return to where it was.
LEAST_GAIN = 1e-10
# A weight that loses all but this share of what leaves is added up again: of 1 + 1e-17 - 1 nothing
# would be left.
CANCELLED = 1e-9


class VertexWeighted(NamedTuple):
    """A symmetric graph of any signs, loops included, with positive vertex weights."""

    M: csr_array
    d: Floats


class Descent(NamedTuple):
    """A clustering and how it was reached: the association after each step, and the passes."""

    labels: Ints
    history: list[float]
    n_iter: int
    converged: bool


def association(graph: VertexWeighted, labels: Ints, k: int) -> float:
    """Return the sum over the clusters of ``Q_c / V_c``; empty clusters add nothing."""
    Q, V = _sums(graph, labels, k)
    return float(np.divide(Q, V, out=np.zeros(k), where=V > 0).sum())


def batch_steps(
    graph: VertexWeighted, labels: Ints, k: int, *, sigma: float, max_iter: int
) -> Descent:
    """Send all vertices to their nearest means at once, as long as that is an improvement.

    With a positive semidefinite kernel every step is one. Without, a step that is none is not
    taken, and neither is one that would leave a cluster empty.
    """
    M, d = graph
    history = [association(graph, labels, k)]
    for n_iter in range(1, max_iter + 1):
        Q, V = _sums(graph, labels, k)
        moved = _nearest_means(M.indptr, M.indices, M.data, d, labels, Q, V, sigma)
        value = association(graph, moved, k)
        is_complete = np.bincount(moved, minlength=k).min() > 0
        if not is_complete or value <= history[-1] + LEAST_GAIN * abs(history[-1]):
            return Descent(labels, history, n_iter, converged=True)
        labels = moved
        history.append(value)
    return Descent(labels, history, max_iter, converged=False)


def single_moves(
    graph: VertexWeighted, labels: Ints, k: int, *, rng: np.random.RandomState, max_iter: int
) -> Descent:
    """Move one vertex after the other to where it helps most, until no move is left.

    Every move raises the association by a known amount, for any kernel, and none empties a
    cluster. One entry of the history is a pass over all vertices, in random order.
    """
    M, d = graph
    labels, loops = labels.copy(), M.diagonal()
    history = [association(graph, labels, k)]
    for n_iter in range(1, max_iter + 1):
        # Summed afresh for each pass: the rounding of single updates does not add up.
        Q, V = _sums(graph, labels, k)
        order = rng.permutation(d.size)
        if not _one_pass(M.indptr, M.indices, M.data, loops, d, labels, Q, V, order):
            return Descent(labels, history, n_iter, converged=True)
        history.append(association(graph, labels, k))
    return Descent(labels, history, max_iter, converged=False)


def filled(graph: VertexWeighted, labels: Ints, k: int) -> Ints:
    """Give every empty cluster one vertex: the one that loses least, or gains most, alone.

    Needs at least `k` vertices.
    """
    M, d = graph
    labels, loops = labels.copy(), M.diagonal()
    for cluster in np.flatnonzero(np.bincount(labels, minlength=k) == 0):
        Q, V = _sums(graph, labels, k)
        inside = _own_sums(M.indptr, M.indices, M.data, labels)
        density = np.divide(Q, V, out=np.zeros(k), where=V > 0)
        has_company = np.bincount(labels, minlength=k)[labels] > 1
        rest = np.where(has_company, np.maximum(V[labels] - d, CANCELLED * d), 1.0)
        # The loop of a vertex counts once in Q, its other edges twice.
        without = (d * density[labels] - 2 * inside + loops) / rest
        labels[np.argmax(np.where(has_company, without + loops / d, -np.inf))] = cluster
    return labels


def contracted(graph: VertexWeighted, group: Ints) -> VertexWeighted:
    """Return the graph of the groups: edges and weights added up, inner edges become loops."""
    n, n_groups = group.size, int(group.max()) + 1
    P = csr_array((np.ones(n), group, np.arange(n + 1)), shape=(n, n_groups))
    M = csr_array(P.T @ graph.M @ P)
    M.sort_indices()
    d: Floats = np.bincount(group, weights=graph.d, minlength=n_groups).astype(np.float64)
    return VertexWeighted(M, d)


def _sums(graph: VertexWeighted, labels: Ints, k: int) -> tuple[Floats, Floats]:
    """Return ``Q_c`` and ``V_c``."""
    M, d = graph
    Q = _inner_weights(M.indptr, M.indices, M.data, labels, k)
    return Q, np.bincount(labels, weights=d, minlength=k).astype(np.float64)


@njit(cache=True)
def _inner_weights(  # type: ignore[no-untyped-def]
    indptr, indices, data, labels, k
):
    Q = np.zeros(k)
    for v in range(labels.size):
        for e in range(indptr[v], indptr[v + 1]):
            if labels[indices[e]] == labels[v]:
                Q[labels[v]] += data[e]
    return Q


@njit(cache=True)
def _own_sums(indptr, indices, data, labels):  # type: ignore[no-untyped-def]
    own = np.zeros(labels.size)
    for v in range(labels.size):
        for e in range(indptr[v], indptr[v + 1]):
            if labels[indices[e]] == labels[v]:
                own[v] += data[e]
    return own


@njit(cache=True)
def _nearest_means(  # type: ignore[no-untyped-def]
    indptr, indices, data, d, labels, Q, V, sigma
):
    k = Q.size
    nearest = labels.copy()
    s = np.empty(k)
    for v in range(labels.size):
        s[:] = 0.0
        for e in range(indptr[v], indptr[v + 1]):
            s[labels[indices[e]]] += data[e]
        best, least = labels[v], np.inf
        for c in range(k):
            if V[c] <= 0:
                continue
            inner = s[c] / d[v] + (sigma if c == labels[v] else 0.0)
            distance = (sigma + Q[c] / V[c] - 2 * inner) / V[c]
            # On a tie the vertex stays.
            if distance < least or (distance == least and c == labels[v]):
                best, least = c, distance
        nearest[v] = best
    return nearest


@njit(cache=True)
def _rest(  # type: ignore[no-untyped-def]
    indptr, indices, data, d, labels, v
):
    """Add up the vertex weight and the inner weight of the cluster of `v` without it."""
    weight = inner = 0.0
    for u in range(labels.size):
        if labels[u] != labels[v] or u == v:
            continue
        weight += d[u]
        for e in range(indptr[u], indptr[u + 1]):
            if labels[indices[e]] == labels[v] and indices[e] != v:
                inner += data[e]
    return weight, inner


@njit(cache=True)
def _one_pass(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    indptr, indices, data, loops, d, labels, Q, V, order
):
    k = Q.size
    size = np.zeros(k, dtype=np.int64)
    for v in range(labels.size):
        size[labels[v]] += 1
    s = np.empty(k)
    n_moved = 0
    for v in order:
        a = labels[v]
        if size[a] == 1:
            continue
        s[:] = 0.0
        for e in range(indptr[v], indptr[v + 1]):
            if indices[e] != v:
                s[labels[indices[e]]] += data[e]
        left, kept = V[a] - d[v], Q[a] - (2 * s[a] + loops[v])
        if left < CANCELLED * d[v]:
            left, kept = _rest(indptr, indices, data, d, labels, v)
        loss = (2 * s[a] + loops[v] - d[v] * Q[a] / V[a]) / left
        best, most, scale = a, 0.0, 0.0
        for b in range(k):
            if b == a:
                continue
            gain = (2 * s[b] + loops[v] - d[v] * Q[b] / V[b]) / (V[b] + d[v])
            if gain - loss > most:
                best, most = b, gain - loss
                terms = 2 * abs(s[b]) + abs(loops[v]) + d[v] * abs(Q[b]) / V[b]
                scale = terms / (V[b] + d[v])
        if best == a:
            continue
        scale += (2 * abs(s[a]) + abs(loops[v]) + d[v] * abs(Q[a]) / V[a]) / left
        if most <= LEAST_GAIN * scale:
            continue
        Q[a], V[a] = kept, left
        size[a] -= 1
        Q[best] += 2 * s[best] + loops[v]
        V[best] += d[v]
        size[best] += 1
        labels[v] = best
        n_moved += 1
    return n_moved
