"""Approximate Euclidean neighbours by cells.

The samples are divided among cells by k-means, and a sample is compared with the members of the
cells whose centres are nearest to it: an inverted file (Sivic & Zisserman 2003). All samples of a
cell are searched for together, and compared many at a time (`linkwise.graph.tiles`), which is
several times faster than one by one.

Kernels work on *positions*: samples in the order of their cells. Coordinates are kept relative to
the centre of the cell, in single precision: samples that lie close together keep their differences
wherever they lie.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._jit import late_module, njit
from linkwise._threads import controller, one_thread
from linkwise.graph.neighbors import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from linkwise._types import AnyFloats, AnyInts, Floats, Int32s, Int64s, Ints, Singles


tiles = late_module("linkwise.graph.tiles")  # imports numba

SPARE = 2  # neighbours beyond those wanted: single precision may swap nearly equal distances
TRAINING_PER_CELL = 32  # samples; twice as many move the recall by less than 0.002
TRAINING_STEPS = 6
# Times the mean size. k-means gives many duplicates one cell, and the work grows with its square.
LARGEST_CELL = 4
QUERY_ROWS = 128  # of a block of distances, which then stays in the second-level cache
ASSIGNED_ROWS = 4_096
CHOSEN_CELLS = 32  # for whose samples cells are chosen together


class Cells(NamedTuple):
    """Samples divided among cells."""

    unit: float  # a power of two near the spread: squares neither overflow nor underflow
    centres: Floats  # (n_cells, n_features), in units
    start: Int64s  # (n_cells + 1,): cell c holds the positions start[c]:start[c + 1]
    order: Int64s  # (n_samples,): the sample at each position
    members: Singles  # (n_samples, n_features + 1): sample less centre, in units; squared norm


class Found(NamedTuple):
    """Neighbours of some queries, from near to far; infinite and -1 where fewer were found."""

    squares: Any
    positions: Any

    @classmethod
    def nothing(cls, n_queries: int, k: int, dtype: Any = np.float32) -> Found:
        """Return the lists to begin with."""
        shape = (n_queries, k)
        return cls(np.full(shape, np.inf, dtype), np.full(shape, -1, np.int32))


def worker_count(n_jobs: int | None) -> int:
    """Read `n_jobs`; None is as many threads as BLAS has leave to use."""
    if n_jobs is not None:
        return thread_count(n_jobs)
    return max((int(pool["num_threads"]) for pool in controller().info()), default=1)


def in_threads(function: Callable[[Any], None], items: Iterable[Any], n_threads: int) -> None:
    """Apply a function to independent blocks of work, BLAS taking one thread in each.

    The blocks do not depend on the number of threads, hence neither does any bit of the answer.
    """
    with one_thread():
        if n_threads == 1:
            for item in items:
                function(item)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            for _ in pool.map(function, items):  # raises what a block raised
                pass


def row_blocks(n_rows: int, size: int) -> list[slice]:
    """Slices over all rows."""
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


def build_cells(
    X: AnyFloats, n_cells: int, random_state: np.random.RandomState, *, n_threads: int
) -> Cells:
    """Divide samples by k-means on some of them; cells far above the mean size are halved."""
    n_cells = min(n_cells, X.shape[0])
    unit = power_of_two(X)
    chosen = training_rows(X.shape[0], n_cells, random_state)
    centres = trained(X[chosen] / unit, n_cells, random_state, n_threads=n_threads)
    nearest = nearest_centres(X, centres, 1, unit=unit, n_threads=n_threads)[:, 0]
    cell = halved(X, nearest, largest_cell(X.shape[0], n_cells))
    return cells_of(X, cell, unit=unit, n_threads=n_threads)


def largest_cell(n_samples: int, n_cells: int) -> int:
    """Return the number of samples above which a cell is halved."""
    return LARGEST_CELL * n_samples // n_cells + 1


def cells_of(X: AnyFloats, cell: AnyInts, *, unit: float, n_threads: int) -> Cells:
    """Return the cells, given that of each sample; empty ones are left out."""
    order = np.argsort(cell, kind="stable")
    counts = np.bincount(cell)
    counts = counts[counts > 0]
    start = np.concatenate([[0], np.cumsum(counts)])
    centres = sums_by_cell(X, order, start) / counts[:, None] / unit
    members = np.empty((X.shape[0], X.shape[1] + 1), np.float32)

    def fill(block: slice) -> None:
        cells = np.searchsorted(start, np.arange(block.start, block.stop), side="right") - 1
        members[block, :-1] = X[order[block]] / unit - centres[cells]
        members[block, -1] = np.einsum("ij,ij->i", members[block, :-1], members[block, :-1])

    in_threads(fill, row_blocks(X.shape[0], ASSIGNED_ROWS), n_threads)
    return Cells(unit, centres, start, order, members)


def power_of_two(X: AnyFloats) -> float:
    """Power of two near the spread of the samples; a division by it rounds nothing."""
    return power_above(float((X.max(axis=0) - X.min(axis=0)).max()))


def power_above(spread: float) -> float:
    """Return the power of two next to a spread."""
    return float(2.0 ** np.clip(np.ceil(np.log2(spread)), -1000, 1000)) if spread > 0 else 1.0


def training_rows(n_samples: int, n_cells: int, random_state: np.random.RandomState) -> Ints:
    """Draw the samples that centres are found on, ascending."""
    size = min(n_samples, TRAINING_PER_CELL * n_cells)
    return np.sort(random_state.permutation(n_samples)[:size])


def trained(
    sample: AnyFloats,
    n_cells: int,
    random_state: np.random.RandomState,
    *,
    n_threads: int,
    nearest: Callable[..., Any] | None = None,
) -> Floats:
    """Centres by a few steps of Lloyd's algorithm on a sample; an empty cell keeps its centre.

    `nearest` finds the nearest centres instead of `nearest_centres`.
    """
    nearest = nearest_centres if nearest is None else nearest
    size = sample.shape[0]
    centres = np.array(sample[random_state.permutation(size)[:n_cells]], dtype=np.float64)
    for _ in range(TRAINING_STEPS if n_cells > 1 else 0):
        cell = nearest(sample, centres, 1, n_threads=n_threads)[:, 0]
        counts = np.bincount(cell, minlength=n_cells)
        kept = counts > 0
        start = np.concatenate([[0], np.cumsum(counts[kept])])
        order = np.argsort(cell, kind="stable")
        centres[kept] = sums_by_cell(sample, order, start) / counts[kept][:, None]
    return centres


def sums_by_cell(X: AnyFloats, order: AnyInts, start: AnyInts) -> Floats:
    """Sum the rows of every cell; no cell is empty."""
    sums = np.empty((start.size - 1, X.shape[1]))
    for cell, (first, last) in enumerate(pairwise(start)):
        X[order[first:last]].sum(axis=0, dtype=np.float64, out=sums[cell])
    return sums


def nearest_centres(
    X: AnyFloats, centres: Floats, k: int, *, unit: float = 1.0, n_threads: int
) -> Int32s:
    """Return the cells whose centres are nearest to each sample, from near to far."""
    offset = centres.mean(axis=0)
    columns = augmented(centres - offset)
    found = Found.nothing(X.shape[0], k)

    def assign(block: slice) -> None:
        rows = (X[block] / unit - offset).astype(np.float32)
        lists = Found(found.squares[block], found.positions[block])
        tiles.search_all(columns, (0, len(columns)), rows, lists)

    in_threads(assign, row_blocks(X.shape[0], ASSIGNED_ROWS), n_threads)
    return found.positions


def chosen_cells(
    cells: Cells, centres: Floats, n_probes: int, *, n_around: int | None = None, n_threads: int
) -> Int32s:
    """Return the cells whose centres are nearest to the sample at each position, near ones first.

    They are chosen among all `centres` or, of many, among the `n_around` nearest to the centre of
    the sample's own cell. These are looked at from near to far: what is entered in a list early
    then mostly stays there.
    """
    probes = np.empty((cells.members.shape[0], n_probes), np.int32)
    n_around = len(centres) if n_around is None else min(n_around, len(centres))

    def choose(block: slice) -> None:
        around = centres_around(cells.centres[block], centres, n_around)
        for cell, near in zip(range(block.start, block.stop), around, strict=True):
            part = slice(cells.start[cell], cells.start[cell + 1])
            queries = np.ascontiguousarray(cells.members[part, :-1])
            found = Found.nothing(queries.shape[0], n_probes)
            columns = augmented(centres[near] - cells.centres[cell])
            tiles.search_all(columns, (0, len(columns)), queries, found)
            probes[part] = near[found.positions]

    in_threads(choose, row_blocks(cells.centres.shape[0], CHOSEN_CELLS), n_threads)
    return probes


def ranked_centres(X: AnyFloats, centres: Floats, *, unit: float) -> Ints:
    """Return all cells from near to far, for each of a few samples.

    `nearest_centres` keeps ordered lists, and the time for all would grow with their square.
    """
    offset = centres.mean(axis=0)
    scores = doubled(X / unit - offset) @ augmented(centres - offset).T
    return np.argsort(scores, axis=1, kind="stable")


def centres_around(own: Floats, centres: Floats, k: int) -> Int32s:
    """Return the `k` centres that are nearest to each of some, from near to far."""
    offset = centres.mean(axis=0)
    scores = doubled(own - offset) @ augmented(centres - offset).T
    near = np.argpartition(scores, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(scores, near, axis=1), axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1).astype(np.int32)


def augmented(X: AnyFloats) -> Singles:
    """Append the squared norms, so that one product with `doubled` rows gives |x|^2 - 2 q'x."""
    rows = np.empty((X.shape[0], X.shape[1] + 1), np.float32)
    rows[:, :-1] = X
    rows[:, -1] = np.einsum("ij,ij->i", X, X)
    return rows


def doubled(Q: AnyFloats) -> Singles:
    """Rows (-2 q, 1)."""
    rows = np.ones((Q.shape[0], Q.shape[1] + 1), np.float32)
    np.multiply(Q, -2, out=rows[:, :-1])
    return rows


def halved(X: AnyFloats, cell: AnyInts, largest: int) -> Int64s:
    """Halve large cells at the median of their widest feature until none is too large."""
    parts = cell.astype(np.int64)
    counts = np.bincount(cell)
    waiting = [np.flatnonzero(cell == c) for c in np.flatnonzero(counts > largest)]
    next_cell = counts.size
    while waiting:
        members = waiting.pop()
        if members.size <= largest:
            continue
        widest = int(np.argmax(X[members].std(axis=0)))
        sorted_members = members[np.argsort(X[members, widest], kind="stable")]
        low, high = np.array_split(sorted_members, 2)
        parts[high] = next_cell
        next_cell += 1
        waiting += [low, high]
    return parts


@njit(cache=True, nogil=True)
def insert(found: Any, query: int, square: float, position: int) -> None:
    """Put a neighbour in its place of an ordered list; the last one falls out."""
    place = found.squares.shape[1] - 1
    while place > 0 and found.squares[query, place - 1] > square:
        found.squares[query, place] = found.squares[query, place - 1]
        found.positions[query, place] = found.positions[query, place - 1]
        place -= 1
    found.squares[query, place] = square
    found.positions[query, place] = position


@njit(cache=True, nogil=True)
def keep_smallest(  # noqa: PLR0917  (numba takes no keyword-only arguments)
    scores: Any, norms: Any, queries: Any, first: int, found: Any
) -> None:
    """Enter a block of scores (squared distances less the norms of the queries) in the lists.

    Nearly all scores are too large. So 64 at a time are compared with the worst of the list; a
    branch for each score takes ten times as long.
    """
    n_columns, k = scores.shape[1], found.squares.shape[1]
    yes, no = np.int32(1), np.int32(0)
    last = max(n_columns - 64, 0)
    for r in range(scores.shape[0]):
        row, i = scores[r], queries[r]
        limit = found.squares[i, k - 1] - norms[r]
        for begin in range(0, n_columns, 64):
            if n_columns >= 64:
                some = row[min(begin, last) :]  # counted from its start, it compiles to vectors
                any_smaller = no
                for j in range(64):  # a constant number of turns, for the compiler
                    any_smaller |= yes if some[j] < limit else no
                if any_smaller == no:
                    continue
            for j in range(begin, min(begin + 64, n_columns)):
                if row[j] < limit:
                    insert(found, i, row[j] + norms[r], first + j)
                    limit = found.squares[i, k - 1] - norms[r]


def search_cells(  # noqa: PLR0917  (called as a kernel)
    cells: Cells, own: int, queries: Singles, probes: Int32s, self_position: int, found: Found
) -> None:
    """Search the probed cells for the neighbours of queries that share their nearest cell.

    `queries` are relative to the centre of the cell `own`. With ``self_position >= 0`` they are
    the samples from that position on, and not their own neighbours.
    """
    tiles.search_cells(cells, own, queries, probes, self_position, found)


@njit(cache=True, nogil=True)
def enter_offers(rows: Any, squares: Any, positions: Any, lists: Any) -> None:
    """Enter positions in the lists of rows, where they are near enough and not there yet."""
    last = lists.positions.shape[1] - 1
    for offer in range(rows.size):
        row, square, position = rows[offer], squares[offer], positions[offer]
        if square < lists.squares[row, last] and not holds(lists, row, position):
            insert(lists, row, square, position)


@njit(cache=True, nogil=True)
def holds(lists: Any, row: int, position: int) -> bool:
    """Return whether a row lists a position."""
    for held in lists.positions[row]:  # noqa: SIM110  (numba compiles no generators)
        if held == position:
            return True
    return False


@njit(cache=True, nogil=True, fastmath={"contract"})
def square_between(X: Any, scale: float, i: int, j: int) -> float:
    """Squared distance of two rows; eight sums become a vector."""
    n_features = X.shape[1]
    zero = scale * 0
    a, b, c, d, e, g, h, k = zero, zero, zero, zero, zero, zero, zero, zero
    f = 0
    while f + 8 <= n_features:
        x, y = X[i, f : f + 8], X[j, f : f + 8]
        a += (x[0] - y[0]) * (x[0] - y[0])
        b += (x[1] - y[1]) * (x[1] - y[1])
        c += (x[2] - y[2]) * (x[2] - y[2])
        d += (x[3] - y[3]) * (x[3] - y[3])
        e += (x[4] - y[4]) * (x[4] - y[4])
        g += (x[5] - y[5]) * (x[5] - y[5])
        h += (x[6] - y[6]) * (x[6] - y[6])
        k += (x[7] - y[7]) * (x[7] - y[7])
        f += 8
    for last in range(f, n_features):
        a += (X[i, last] - X[j, last]) * (X[i, last] - X[j, last])
    return (((a + e) + (c + h)) + ((b + g) + (d + k))) * scale * scale


def ranked(
    queries: AnyFloats, X: AnyFloats, candidates: AnyInts, *, k: int, unit: float, n_threads: int
) -> tuple[Floats, Ints]:
    """Keep the k nearest candidates of each query by their exact distances, ties by index.

    Missing candidates, and queries themselves, are -1; they come last, infinitely far.
    """
    distances = np.empty((candidates.shape[0], k))
    indices = np.empty((candidates.shape[0], k), np.intp)

    def rank(block: slice) -> None:
        tiles.rank(queries[block], X, unit, candidates[block], distances[block], indices[block])

    in_threads(rank, row_blocks(candidates.shape[0], ASSIGNED_ROWS), n_threads)
    return distances, indices


def nearest_in_cells(
    X: AnyFloats,
    cells: Cells,
    queries: AnyFloats,
    k: int,
    *,
    itself: AnyInts | None = None,
    n_threads: int = 1,
) -> tuple[Floats, Ints]:
    """Return the k nearest samples of each query, by comparison with the members of all cells.

    It is `nearest_exactly` on samples that are in cells, in a tenth of its time. `itself` are the
    samples that the queries are, if they are, and that do not count.
    """
    found = Found.nothing(queries.shape[0], k + SPARE + (itself is not None))

    def search(rows: slice) -> None:
        asked = queries[rows] / cells.unit
        lists = Found(found.squares[rows], found.positions[rows])
        for centre, members in zip(cells.centres, pairwise(cells.start), strict=True):
            relative = (asked - centre).astype(np.float32)
            tiles.search_all(cells.members, members, relative, lists)

    in_threads(search, row_blocks(queries.shape[0], 2 * QUERY_ROWS), n_threads)
    samples = np.where(found.positions < 0, -1, cells.order[found.positions])
    if itself is not None:
        samples[samples == itself[:, None]] = -1
    return ranked(queries, X, samples, k=k, unit=cells.unit, n_threads=n_threads)


def nearest_exactly(
    X: AnyFloats, queries: AnyFloats, k: int, *, itself: AnyInts | None = None, n_threads: int = 1
) -> tuple[Floats, Ints]:
    """Return the k nearest samples of each query, by comparison with all.

    `itself` are the samples that the queries are, if they are, and that do not count.
    """
    unit = power_of_two(X)
    offset = X.mean(axis=0, dtype=np.float64) / unit
    found = Found.nothing(queries.shape[0], k + SPARE, np.float64)

    def compare(rows: slice) -> None:
        asked = queries[rows] / unit - offset
        norms = np.einsum("ij,ij->i", asked, asked)
        left = np.column_stack([-2 * asked, np.ones(norms.size)])
        for columns in row_blocks(X.shape[0], ASSIGNED_ROWS):
            block = X[columns] / unit - offset
            scores = left @ np.column_stack([block, np.einsum("ij,ij->i", block, block)]).T
            if itself is not None:
                column = itself[rows] - columns.start
                own = np.flatnonzero((column >= 0) & (column < scores.shape[1]))
                scores[own, column[own]] = np.inf
            keep_smallest(scores, norms, np.arange(rows.start, rows.stop), columns.start, found)

    in_threads(compare, row_blocks(queries.shape[0], 2 * QUERY_ROWS), n_threads)
    return ranked(queries, X, found.positions, k=k, unit=unit, n_threads=n_threads)
