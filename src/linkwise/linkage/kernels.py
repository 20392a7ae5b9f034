"""Compiled greedy merging of clusters on a sparse graph of candidate pairs.

The log-odds of two samples are ``c - h(x) - h(y) + g(x) . g(y)``. Their mean over all pairs of two
clusters A and B follows from sums over the clusters: ``c - h(A)/m(A) - h(B)/m(B) +
g(A) . g(B) / (m(A) m(B))``. So no pair is missing, though only clusters with a candidate pair
between them are merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._jit import njit

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s, Int64s


NEVER = np.iinfo(np.int64).max
LATE = 1e-9  # of the level: how far above it the merges are that answers ask for


class State(NamedTuple):
    """All that merging changes. A cluster has the number of one of its items."""

    size: Floats  # of each cluster, in samples
    g: Floats  # sums over each cluster
    h: Floats
    side: Int32s  # clusters of different sides stay apart; -1: no side
    ends: Int32s  # the clusters of each edge, of shape (n_edges, 2)
    dot: Floats  # g(A) . g(B) of each edge
    answer: Floats  # sum of the log-odds of the answers about pairs between A and B
    score: Floats  # of each edge: by what it is in order
    first: Int32s  # first half-edge of each cluster; half-edge 2 e + s is side s of edge e
    after: Int32s  # half-edge after each half-edge
    heap: Int32s  # edges, a binary heap with the largest score on top
    place: Int32s  # of each edge in the heap; -1: not in it
    mark: Int32s  # scratch: the edge from the merged cluster to each other one
    left: Int32s  # the merges: `right` becomes part of `left`, at `height`
    right: Int32s
    height: Floats  # the score
    odds: Floats  # that they are one, with the answers
    counts: Int64s  # entries of the heap, merges


@njit(cache=True, nogil=True)
def new_state(size, g, h, side, ends, answer, rule):  # type: ignore[no-untyped-def]
    """Return the state in which every item is a cluster; `rule` is a MergeRule."""
    n, n_edges = size.size, ends.shape[0]
    first, after = np.full(n, -1, np.int32), np.full(2 * n_edges, -1, np.int32)
    state = State(
        size.copy(),
        g.copy(),
        h.copy(),
        side.copy(),
        ends.copy(),
        np.empty(n_edges),
        answer.copy(),
        np.empty(n_edges),
        first,
        after,
        np.empty(n_edges, np.int32),
        np.full(n_edges, -1, np.int32),
        np.full(n, -1, np.int32),
        np.empty(max(n - 1, 0), np.int32),
        np.empty(max(n - 1, 0), np.int32),
        np.empty(max(n - 1, 0)),
        np.empty(max(n - 1, 0)),
        np.zeros(2, np.int64),
    )
    for e in range(n_edges):
        for s in range(2):
            x = ends[e, s]
            after[2 * e + s] = first[x]
            first[x] = 2 * e + s
        state.dot[e] = _dot(g[ends[e, 0]], g[ends[e, 1]])
        _rescore(state, e, rule)
    return state


@njit(cache=True, nogil=True)
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@njit(cache=True, nogil=True)
def _score(state, e, rule):  # type: ignore[no-untyped-def]
    """Return by what an edge is put in order, and the log-odds that its two clusters are one."""
    a, b = state.ends[e, 0], state.ends[e, 1]
    if state.side[a] >= 0 and state.side[b] >= 0 and state.side[a] != state.side[b]:
        return -np.inf, -np.inf
    m, k = state.size[a], state.size[b]
    mean = rule[0] - state.h[a] / m - state.h[b] / k + state.dot[e] / (m * k)
    # What is known of the two clusters as such weighs against the evidence of all their samples,
    # which is not independent: answers against the root of their harmonic mean size, the log-odds
    # of any two samples against the root of that.
    weight = np.sqrt(2 * m * k / (m + k))
    score = rule[2] * (mean + rule[4] / np.sqrt(weight) - rule[1])
    if state.answer[e] == 0.0:
        return score, score
    odds = score * weight + state.answer[e]
    return _place(score, odds, state.answer[e], rule[5]), odds


@njit(cache=True, nogil=True)
def _place(score, odds, answer, level):  # type: ignore[no-untyped-def]
    """Return by what an edge with an answer is put in order.

    An answer decides whether two clusters are merged, and does not hurry it: two samples that only
    an answer holds together, merged first, would be a seed to which the others do not fit. What is
    merged for an answer's sake comes after all that is merged without.
    """
    if answer < 0.0:
        return min(score, odds)
    if score > level:
        return score
    if odds <= level or level == np.inf:
        return odds
    above = odds - level
    return level + LATE * max(1.0, abs(level)) * above / (1.0 + above)


@njit(cache=True, nogil=True)
def _rescore(state, e, rule):  # type: ignore[no-untyped-def]
    """Compute the score of an edge, and put it where it belongs in the heap."""
    state.score[e], _ = _score(state, e, rule)
    if state.score[e] <= rule[3]:
        _leave_heap(state, e)
        return
    if state.place[e] < 0:
        last = state.counts[0]
        state.heap[last] = e
        state.place[e] = last
        state.counts[0] += 1
    _settle(state, state.place[e])


@njit(cache=True, nogil=True)
def _leave_heap(state, e):  # type: ignore[no-untyped-def]
    at = state.place[e]
    if at < 0:
        return
    state.counts[0] -= 1
    last = state.heap[state.counts[0]]
    state.place[e] = -1
    if last != e:
        state.heap[at] = last
        state.place[last] = at
        _settle(state, at)


@njit(cache=True, nogil=True)
def _is_before(state, e, f):  # type: ignore[no-untyped-def]
    if state.score[e] != state.score[f]:
        return state.score[e] > state.score[f]
    return e < f


@njit(cache=True, nogil=True)
def _settle(state, at):  # type: ignore[no-untyped-def]
    """Move an entry of the heap up or down until the heap is in order."""
    heap, place = state.heap, state.place
    e = heap[at]
    while at > 0 and _is_before(state, e, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        place[heap[at]] = at
        at = (at - 1) // 2
    while True:
        child = 2 * at + 1
        if child >= state.counts[0]:
            break
        if child + 1 < state.counts[0] and _is_before(state, heap[child + 1], heap[child]):
            child += 1
        if not _is_before(state, heap[child], e):
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = e
    place[e] = at


@njit(cache=True, nogil=True)
def merge_some(state, rule, most):  # type: ignore[no-untyped-def]
    """Make up to `most` merges, best first; return whether any may be left."""
    for _ in range(most):
        if state.counts[0] == 0:
            return False
        e = state.heap[0]
        _leave_heap(state, e)
        a, b = state.ends[e, 0], state.ends[e, 1]
        if state.size[a] < state.size[b]:
            a, b = b, a
        done = state.counts[1]
        state.left[done], state.right[done], state.height[done] = a, b, state.score[e]
        _, state.odds[done] = _score(state, e, rule)
        state.counts[1] += 1
        state.ends[e, 0] = state.ends[e, 1] = -1
        _merge(state, a, b, rule)
    return state.counts[0] > 0


@njit(cache=True, nogil=True)
def _merge(state, a, b, rule):  # type: ignore[no-untyped-def]
    """Make cluster `b` part of `a`, and renew all edges of it."""
    _drop_dead(state, a)
    half = state.first[a]
    while half >= 0:
        state.mark[state.ends[half // 2, 1 - half % 2]] = half // 2
        half = state.after[half]
    _join_edges(state, a, _take_edges(state, a, b), b)
    for j in range(state.g.shape[1]):
        state.g[a, j] += state.g[b, j]
    state.h[a] += state.h[b]
    state.size[a] += state.size[b]
    state.side[a] = max(state.side[a], state.side[b])
    half = state.first[a]
    while half >= 0:
        _rescore(state, half // 2, rule)
        half = state.after[half]


@njit(cache=True, nogil=True)
def _take_edges(state, a, b):  # type: ignore[no-untyped-def]
    """Add edges of `b` to their twins at `a`; return the first of the list of those without."""
    ends, after, moved = state.ends, state.after, np.int32(-1)
    half = state.first[b]
    state.first[b] = -1
    while half >= 0:
        following, e, s = after[half], half // 2, half % 2
        x = ends[e, 1 - s]
        if x >= 0 and state.mark[x] >= 0:
            twin = state.mark[x]
            state.dot[twin] += state.dot[e]
            state.answer[twin] += state.answer[e]
            state.mark[x] = -1  # its product is complete
            ends[e, 0] = ends[e, 1] = -1
            _leave_heap(state, e)
        elif x >= 0:
            state.dot[e] += _dot(state.g[a], state.g[x])
            ends[e, s] = a
            after[half] = moved
            moved = half
        half = following
    return moved


@njit(cache=True, nogil=True)
def _join_edges(state, a, moved, b):  # type: ignore[no-untyped-def]
    """Complete the products of edges that only `a` had, and append those that only `b` had."""
    last, half = np.int32(-1), state.first[a]
    while half >= 0:
        x = state.ends[half // 2, 1 - half % 2]
        if state.mark[x] >= 0:
            state.dot[half // 2] += _dot(state.g[b], state.g[x])
            state.mark[x] = -1
        last = half
        half = state.after[half]
    if last < 0:
        state.first[a] = moved
    else:
        state.after[last] = moved


@njit(cache=True, nogil=True)
def _drop_dead(state, a):  # type: ignore[no-untyped-def]
    """Take edges out of the list of a cluster that are no more."""
    before, half = np.int32(-1), state.first[a]
    while half >= 0:
        if state.ends[half // 2, 0] >= 0:
            before = half
        elif before < 0:
            state.first[a] = state.after[half]
        else:
            state.after[before] = state.after[half]
        half = state.after[half]


# Trees ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def forest(n, left, right):  # type: ignore[no-untyped-def]
    """Return a parent of each sample, the merge that made it so, and the pairs each merge joins.

    Merges join samples that stand for clusters; the smaller tree is hung below the larger, so no
    path is longer than log2 n. Numbers of merges grow along a path.
    """
    parent, time = np.arange(n), np.full(n, NEVER)
    size, n_joined = np.ones(n, np.int64), np.empty(left.size)
    for t in range(left.size):
        a, b = left[t], right[t]
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if size[a] < size[b]:
            a, b = b, a
        parent[b], time[b] = a, t
        n_joined[t] = float(size[a]) * size[b]
        size[a] += size[b]
    return parent, time, n_joined


@njit(cache=True, nogil=True)
def join_times(parent, time, pairs, never):  # type: ignore[no-untyped-def]
    """Return the number of the merge that joins each pair, or `never`."""
    found = np.empty(pairs.shape[0], np.int64)
    for i in range(pairs.shape[0]):
        u, v = pairs[i, 0], pairs[i, 1]
        at = np.int64(-1)
        while u != v:
            if time[u] > time[v]:
                u, v = v, u
            at = time[u]
            if at == NEVER:
                at = never
                break
            u = parent[u]
        found[i] = at
    return found


@njit(cache=True, nogil=True)
def roots_at(parent, time, n_merges):  # type: ignore[no-untyped-def]
    """Return a sample that first for the cluster of each sample after the first merges."""
    root = np.empty(parent.size, np.int64)
    for i in range(parent.size):
        x = i
        while time[x] < n_merges:
            x = parent[x]
        root[i] = x
    return root


@njit(cache=True, nogil=True)
def mate_sums(n, left, right, value):  # type: ignore[no-untyped-def]
    """Return the sum of `value` over the merges that joined a sample with each of its mates.

    And the number of mates. Merges are nodes of a tree; sums are passed down from the last one.
    """
    n_merges = left.size
    node, root = np.arange(n), np.arange(n)
    child = np.empty((n_merges, 2), np.int64)
    size = np.ones(n + n_merges, np.int64)
    for t in range(n_merges):
        a, b = left[t], right[t]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        child[t, 0], child[t, 1] = node[a], node[b]
        size[n + t] = size[node[a]] + size[node[b]]
        root[b], node[a] = a, n + t
    total, mates = np.zeros(n + n_merges), np.zeros(n + n_merges, np.int64)
    for t in range(n_merges - 1, -1, -1):
        for s in range(2):
            x, other = child[t, s], child[t, 1 - s]
            total[x] = total[n + t] + value[t] * size[other]
            mates[x] = mates[n + t] + size[other]
    return total[:n], mates[:n]
