"""A binary heap of vertices that compiled searches share; each vertex is in it at most once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s, Int64s


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
    hole = heap.place[v]
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
