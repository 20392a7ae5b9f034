"""Helpers: random numbers and a heap for searches, compiled; clusters numbered in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._jit import njit

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Int32s, Int64s, Ints, UInt64s

# splitmix64 (Steele, Lea & Flood 2014). Unsigned throughout: numba would mix in floats.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_30, SHIFT_27, SHIFT_31, SHIFT_11 = (np.uint64(s) for s in (30, 27, 31, 11))
TWO_TO_MINUS_53 = 1.0 / 9007199254740992.0


# A heap of vertices, each in it at most once ------------------------------------------------


class Heap(NamedTuple):
    """Vertices by rank, then by key, the largest first.

    Without ranks, vertices of equal keys are in no particular order; with ranks, by number.
    """

    vertex: Int32s
    place: Int32s  # of each vertex, -1 outside
    key: Floats  # of each vertex
    rank: Int64s  # of each vertex; empty without ranks
    size: Int64s  # one entry


@njit(cache=True, nogil=True)
def empty_heap(n: int, ranks: Int64s) -> Heap:
    """Return a heap for `n` vertices."""
    place = np.full(n, -1, np.int32)
    return Heap(np.empty(n, np.int32), place, np.zeros(n), ranks, np.zeros(1, np.int64))


@njit(cache=True, nogil=True, inline="always")
def _before(heap: Heap, u: int, v: int) -> bool:
    has_ranks = heap.rank.size > 0
    if has_ranks and heap.rank[u] != heap.rank[v]:
        return heap.rank[u] > heap.rank[v]
    if heap.key[u] != heap.key[v]:
        return heap.key[u] > heap.key[v]
    return has_ranks and u < v


@njit(cache=True, nogil=True)
def put(heap: Heap, v: int, key: float) -> None:
    """Put a vertex in the heap, or change its key."""
    heap.key[v] = key
    at = heap.place[v]
    if at < 0:
        at = heap.size[0]
        heap.size[0] += 1
        heap.vertex[at] = v
        heap.place[v] = at
    _rise(heap, at)
    sink(heap, heap.place[v])


@njit(cache=True, nogil=True)
def remove(heap: Heap, v: int) -> None:
    """Take a vertex out."""
    hole = np.int64(heap.place[v])
    heap.place[v] = -1
    heap.size[0] -= 1
    last = heap.vertex[heap.size[0]]
    if last == v:
        return
    heap.vertex[hole] = last
    heap.place[last] = hole
    _rise(heap, hole)
    sink(heap, heap.place[last])


@njit(cache=True, nogil=True)
def _rise(heap: Heap, at: int) -> None:
    v = heap.vertex[at]
    while at > 0:
        up = (at - 1) // 2
        u = heap.vertex[up]
        if not _before(heap, v, u):
            break
        heap.vertex[at] = u
        heap.place[u] = at
        at = up
    heap.vertex[at] = v
    heap.place[v] = at


@njit(cache=True, nogil=True)
def sink(heap: Heap, at: int) -> None:
    """Move the vertex at a place down to where it belongs."""
    v = heap.vertex[at]
    size = heap.size[0]
    while 2 * at + 1 < size:
        down = 2 * at + 1
        if down + 1 < size and _before(heap, heap.vertex[down + 1], heap.vertex[down]):
            down += 1
        u = heap.vertex[down]
        if not _before(heap, u, v):
            break
        heap.vertex[at] = u
        heap.place[u] = at
        at = down
    heap.vertex[at] = v
    heap.place[v] = at


# Random numbers: a state that is handed over, never a global one ---------------------------


@njit(cache=True, nogil=True)
def new_stream(seed: int) -> UInt64s:
    """Return the state of a new stream."""
    stream = np.empty(1, np.uint64)
    stream[0] = np.uint64(seed)
    return stream


@njit(cache=True, nogil=True)
def uniform(stream: UInt64s) -> float:
    """Draw from [0, 1)."""
    stream[0] += GOLDEN
    x = stream[0]
    x = (x ^ (x >> SHIFT_30)) * MIX_1
    x = (x ^ (x >> SHIFT_27)) * MIX_2
    x ^= x >> SHIFT_31
    return float(x >> SHIFT_11) * TWO_TO_MINUS_53


@njit(cache=True, nogil=True)
def shuffle(order: Int32s, stream: UInt64s) -> None:
    """Shuffle in place."""
    for i in range(order.size - 1, 0, -1):
        j = int(uniform(stream) * (i + 1))
        order[i], order[j] = order[j], order[i]


# Labels ------------------------------------------------------------------------------------


def relabelled(labels: AnyArray) -> Ints:
    """Renumber clusters by first appearance, so that equal partitions have equal labels.

    Examples
    --------
    >>> relabelled(np.array([7, 2, 7, 0])).tolist()
    [0, 1, 0, 2]
    """
    labels = np.asarray(labels)
    if labels.dtype.kind == "i" and labels.size and labels.min() >= 0:
        top = int(labels.max())
        if top <= 4 * labels.size:  # no sort then
            rows, first = np.arange(labels.size), np.empty(top + 1, dtype=np.intp)
            first[labels[::-1]] = rows[::-1]  # the last assignment stays
            place = first[labels]
            return np.asarray((np.cumsum(place == rows) - 1)[place], dtype=np.intp)
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.intp)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[codes]
