"""Which cells of the neighbour search share a region, so that few edges of the graph leave one.

Cells are vertices of a small graph: two are linked as often as a sample of one of them is near to
the centre of the other. It is bisected again and again, first among workers, then among the
regions of each. A bisection goes along a leading eigenvector of the graph, at the place where the
fewest links are cut, and single cells are then moved while that cuts fewer.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from linkwise.graph.cells import nearest_centres
from linkwise.linalg.embedding import random_walk_vectors, spectral_embedding

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import AnyFloats, Floats, Ints

NEAR = 4  # centres beside the nearest one that a sample links its cell with
# Share of the samples by which a side of a bisection may be larger or smaller than its part.
SLACK = 0.1
VECTORS = 4  # along which a bisection is tried
REFINED = 2  # of these, the ones that cut least, are improved by moves
PASSES = 10  # of moves, at most


class CellGraph:
    """Cells, how many samples they have, and how often they are near each other.

    Parameters
    ----------
    sample : ndarray of shape (n_rows, n_features)
        Some of the samples, in the units of the centres.
    centres : ndarray of shape (n_cells, n_features)
        The centres of the cells.
    nearest : callable, optional
        Finds the nearest centres instead of `nearest_centres`.
    """

    def __init__(
        self, sample: AnyFloats, centres: Floats, nearest: Callable[..., Any] = nearest_centres
    ) -> None:
        n = centres.shape[0]
        near = nearest(sample, centres, min(1 + NEAR, n), n_threads=1)
        self.weights = np.bincount(near[:, 0], minlength=n).astype(np.float64)
        own = np.repeat(near[:, 0], near.shape[1] - 1)
        ends = (own, near[:, 1:].ravel())
        A = csr_array((np.ones(own.size), ends), shape=(n, n))
        self.links = csr_array(A + A.T)

    def divided(self, n_workers: int, n_regions: int) -> Ints:
        """Return the region of each cell: each worker has a run of regions, none is empty.

        `n_regions` is a multiple of `n_workers`; there are fewer if there are fewer cells.
        """
        group_of = np.zeros(self.weights.size, dtype=np.intp)
        waiting = [(np.arange(self.weights.size), 0, n_workers, n_regions // n_workers)]
        while waiting:
            cells, first, workers, regions = waiting.pop()
            group_of[cells] = first
            parts = workers if workers > 1 else regions
            if parts < 2 or cells.size < 2:
                continue
            n_low = parts // 2
            is_low = self._bisected(cells, n_low / parts)
            each = regions if workers > 1 else 1
            for side, start, n in ((is_low, 0, n_low), (~is_low, n_low, parts - n_low)):
                share = (n, regions) if workers > 1 else (1, n)
                waiting.append((cells[side], first + start * each, *share))
        return np.unique(group_of, return_inverse=True)[1]

    def _bisected(self, cells: Ints, share: float) -> Any:
        """Return which cells are on the low side, of about a share of the samples."""
        links = csr_array(self.links[cells][:, cells])
        weights = np.maximum(self.weights[cells], 1e-6 * self.weights.sum() / cells.size)
        bounds = _bounds(weights, share)
        ways = [_swept(links, weights, along, bounds) for along in _directions(links)]
        ways.sort(key=lambda is_low: _cut(links, is_low))
        refined = [_refined(links, weights, is_low, bounds) for is_low in ways[:REFINED]]
        return min(refined, key=lambda is_low: _cut(links, is_low))


def _bounds(weights: Floats, share: float) -> tuple[float, float]:
    """Return the least and the most weight of the low side."""
    total = weights.sum()
    return (share - SLACK * share) * total, (share + SLACK * (1 - share)) * total


def _directions(links: csr_array) -> list[Floats]:
    """Return vectors along which linked cells are near each other."""
    n = links.shape[0]
    k = min(1 + VECTORS, n)
    found = spectral_embedding(links, k, np.random.RandomState(0), tol=1e-3)
    rows = random_walk_vectors(found.vectors, links.sum(axis=1))
    return [rows[:, i] for i in range(k) if np.ptp(rows[:, i]) > 0] or [np.arange(float(n))]


def _cut(links: csr_array, is_low: Any) -> float:
    return float((links @ is_low.astype(np.float64))[~is_low].sum())


def _swept(links: csr_array, weights: Floats, along: Floats, bounds: tuple[float, float]) -> Any:
    """Divide where the fewest links are cut, of the places that leave both sides large enough."""
    n = along.size
    order = np.argsort(along, kind="stable")
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    rows = np.repeat(place, np.diff(links.indptr))
    columns = place[links.indices]
    ahead = columns > rows
    # A link is cut by the places from its first end to the one before its other end.
    change = np.bincount(rows[ahead], links.data[ahead], minlength=n)
    change -= np.bincount(columns[ahead], links.data[ahead], minlength=n)
    cuts = np.cumsum(change)[:-1]
    sizes = np.cumsum(weights[order])[:-1]
    allowed = (bounds[0] <= sizes) & (sizes <= bounds[1])
    if not allowed.any():
        allowed[np.argmin(np.abs(sizes - (bounds[0] + bounds[1]) / 2))] = True
    cut = int(np.argmin(np.where(allowed, cuts, np.inf)))
    is_low = np.zeros(n, dtype=bool)
    is_low[order[: cut + 1]] = True
    return is_low


def _refined(links: csr_array, weights: Floats, is_low: Any, bounds: tuple[float, float]) -> Any:
    """Move cells to the other side while that cuts fewer links (Fiduccia & Mattheyses 1982)."""
    for _ in range(PASSES):
        better = _moved(links, weights, is_low, bounds)
        if better is None:
            break
        is_low = better
    return is_low


def _moved(links: csr_array, weights: Floats, is_low: Any, bounds: tuple[float, float]) -> Any:
    """Move every cell once, the one that gains most first; return the best on the way, if any.

    Moves that lose are made as well, so that whole groups of cells can change sides.
    """
    side = is_low.copy()
    of_low = links @ side.astype(np.float64)
    degrees = links.sum(axis=1)
    gain = np.where(side, degrees - 2 * of_low, 2 * of_low - degrees)
    gain += links.diagonal() * np.where(side, 1.0, -1.0)
    size, total, best, best_length = float(weights[side].sum()), 0.0, 0.0, 0
    heap = [(-g, i) for i, g in enumerate(gain.tolist())]
    heapify(heap)
    # Lists: their single entries are read several times faster than those of arrays.
    gains, sizes, sides = gain.tolist(), weights.tolist(), side.tolist()
    first, ends, counts = links.indptr.tolist(), links.indices.tolist(), links.data.tolist()
    is_done = [False] * len(sides)
    moves: list[int] = []
    while heap and len(moves) - best_length < max(50, len(sides) // 10):
        value, i = heappop(heap)
        if is_done[i] or -value != gains[i]:
            continue
        after = size + (-sizes[i] if sides[i] else sizes[i])
        if not bounds[0] <= after <= bounds[1]:
            continue
        is_done[i], size, total = True, after, total + gains[i]
        moves.append(i)
        for at in range(first[i], first[i + 1]):
            j = ends[at]
            if j != i and not is_done[j]:
                gains[j] += 2 * counts[at] if sides[j] == sides[i] else -2 * counts[at]
                heappush(heap, (-gains[j], j))
        sides[i] = not sides[i]
        if total > best + 1e-9:
            best, best_length = total, len(moves)
    if not best_length:
        return None
    better = is_low.copy()
    better[moves[:best_length]] = ~better[moves[:best_length]]
    return better
