"""RowBlockMatrix: the graph as blocks of rows that live on workers.

Vectors of one number a row are on the client, and so are the few vectors of an embedding; while a
solver iterates, its blocks of vectors are with the rows of the graph. What a block needs of others
is its halo: the rows that its columns name, and nothing else travels.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from linkwise._kernels import relabelled
from linkwise.distributed.cluster import Cluster, identity
from linkwise.linalg.block_kernels import LANES, step
from linkwise.linalg.blocks import BlockMatrix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import AnyArray, AnyInts, Int32s, Ints


class Layout:
    """Which samples are in which block, and where.

    `at` are the places of the blocks among the workers, in [0, 1).
    """

    def __init__(self, samples: Sequence[Ints], at: Sequence[float]) -> None:
        self.samples = list(samples)  # of each block, in the order of its rows
        self.at = list(at)
        sizes = [part.size for part in self.samples]
        self.n, self.n_blocks = sum(sizes), len(sizes)
        self.start = np.concatenate([[0], np.cumsum(sizes)])  # place of the first row of a block
        self.order = np.concatenate(self.samples)  # sample at each place
        self.place = np.empty(self.n, dtype=np.intp)
        self.place[self.order] = np.arange(self.n)
        self.is_ordered = bool((self.place == np.arange(self.n)).all())  # samples are places

    def ordered(self) -> Layout:
        """Return the layout of samples in the order of the blocks."""
        return Layout([np.arange(a, b) for a, b in itertools.pairwise(self.start)], self.at)

    def grouped(self, places: Ints) -> list[Piece]:
        """Return places, ascending, as rows of the blocks that they are in."""
        border = np.searchsorted(places, self.start)
        return [
            Piece(b, (places[first:last] - self.start[b]).astype(np.int32))
            for b, (first, last) in enumerate(itertools.pairwise(border))
            if last > first
        ]

    def split(self, V: AnyArray) -> list[AnyArray]:
        """Return the rows of each block."""
        if self.is_ordered:
            # Copies: a worker in this process would keep a view, and solvers write to `V` again.
            return [V[a:b].copy() for a, b in itertools.pairwise(self.start)]
        return [np.ascontiguousarray(V[part]) for part in self.samples]

    def joined(self, parts: Sequence[AnyArray]) -> AnyArray:
        """Return the rows of all blocks in the order of the samples."""
        if self.is_ordered:
            return np.concatenate(parts)
        whole = np.empty((self.n, *parts[0].shape[1:]), dtype=parts[0].dtype)
        for samples, part in zip(self.samples, parts, strict=True):
            whole[samples] = part
        return whole


class Piece(NamedTuple):
    """Rows of a block that another one needs."""

    block: int
    rows: Int32s


class RowBlockMatrix(BlockMatrix):
    """A symmetric matrix whose rows are in blocks on workers.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    layout : Layout
        The samples of each block.
    blocks : list of futures
        The blocks, as :class:`~linkwise.linalg.blocks.BlockMatrix` describes them.
    halo : list of list of Piece
        For each block, what its columns after its own rows are.
    """

    def __init__(
        self, cluster: Cluster, layout: Layout, blocks: list[Any], halo: list[list[Piece]]
    ) -> None:
        super().__init__(layout.n)
        self.cluster, self.layout, self.blocks, self.halo = cluster, layout, blocks, halo
        self._sent: dict[tuple[int, int], Any] = {}  # futures of the rows of pieces

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.layout.n_blocks

    @property
    def halo_share(self) -> float:
        """Rows that travel between workers in a product, as a share of all rows.

        A block's rows that another block on the same worker needs do not travel.
        """
        worker = [int(at * self.cluster.n_workers) for at in self.layout.at]
        travel = sum(
            piece.rows.size
            for block, pieces in enumerate(self.halo)
            for piece in pieces
            if worker[piece.block] != worker[block]
        )
        return travel / self.layout.n

    def columns(self, block: int) -> Ints:
        """Return the samples that the columns of a block are."""
        outside = [self.layout.samples[piece.block][piece.rows] for piece in self.halo[block]]
        return np.concatenate([self.layout.samples[block], *outside])

    def _applied(self, function: Callable[..., Any], vectors: tuple[AnyArray, ...]) -> list[Any]:
        futures = []
        for number, block in enumerate(self.blocks):
            columns = self.columns(number) if vectors else None
            parts = (vector[columns] for vector in vectors)
            futures.append(self.cluster.submit(function, block, *parts, at=self.layout.at[number]))
        return futures

    def mapped(self, function: Callable[..., csr_array], *vectors: AnyArray) -> RowBlockMatrix:
        """Return the matrix of changed blocks, of the same columns."""
        return self._with(self._applied(function, vectors), self.halo)

    def _with(self, blocks: list[Any], halo: list[list[Piece]]) -> RowBlockMatrix:
        return RowBlockMatrix(self.cluster, self.layout, blocks, halo)

    def collected(self, function: Callable[..., Any], *vectors: AnyArray) -> list[Any]:
        """Return what a function gives for each block."""
        return self.cluster.fetch(self._applied(function, vectors))

    def row_values(self, function: Callable[..., AnyArray], *vectors: AnyArray) -> AnyArray:
        """Return one entry or row for each row of the matrix."""
        return self.layout.joined(self.collected(function, *vectors))

    def merged(
        self, function: Callable[..., csr_array], Q: csr_array, *args: Any
    ) -> RowBlockMatrix:
        """Return the matrix of the blocks ``function(block, rows of Q, *args)``; `Q` is small."""
        blocks, halo = [], []
        for number, block in enumerate(self.blocks):
            part, pieces = self._block_of(Q, number)
            halo.append(self.halo[number] + pieces)
            at = self.layout.at[number]
            blocks.append(self.cluster.submit(merge, function, block, part, *args, at=at))
        return self._with(blocks, halo)

    def _block_of(self, Q: csr_array, number: int) -> tuple[csr_array, list[Piece]]:
        """Return rows of a matrix with the columns of a block, and pieces that these lack."""
        part = csr_array(Q[self.layout.samples[number]])
        own = self.columns(number)
        place = np.full(self.layout.n, -1, dtype=np.int64)
        place[own] = np.arange(own.size)
        missing = np.unique(self.layout.place[part.indices[place[part.indices] < 0]])
        place[self.layout.order[missing]] = own.size + np.arange(missing.size)
        shape = (part.shape[0], own.size + missing.size)
        part = csr_array((part.data, place[part.indices], part.indptr), shape=shape)
        part.sort_indices()
        return part, self.layout.grouped(missing)

    def rows(self, indices: AnyInts) -> csr_array:
        """Return a few rows."""
        place = self.layout.place[indices]
        block = np.searchsorted(self.layout.start, place, side="right") - 1
        numbers = np.unique(block)
        futures = [
            self.cluster.submit(
                rows_of_block,
                self.blocks[b],
                place[block == b] - self.layout.start[b],
                at=self.layout.at[b],
            )
            for b in numbers
        ]
        entries, at, columns = [], [], []
        for b, part in zip(numbers, self.cluster.fetch(futures), strict=True):
            entries.append(part.data)
            at.append(np.repeat(np.flatnonzero(block == b), np.diff(part.indptr)))
            columns.append(self.columns(b)[part.indices])
        places = (np.concatenate(at), np.concatenate(columns))
        return csr_array((np.concatenate(entries), places), shape=(indices.size, self.layout.n))

    def components(self) -> tuple[int, Ints]:
        """Return the number of connected components, and the component of each vertex."""
        parts, first = [], 0
        for part in self.collected(own_components):
            parts.append(part + first)
            first += int(part.max(initial=-1)) + 1
        component = self.layout.joined(parts)
        links = np.concatenate(self.collected(linked_components, component))
        graph = csr_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(first, first))
        n_components, group = connected_components(graph, directed=False)
        return int(n_components), relabelled(group[component])

    # --- products

    def _product(self, X: AnyArray) -> AnyArray:
        block = X[:, None] if X.ndim == 1 else X
        found = (self @ self.in_blocks(np.asarray(block, dtype=np.float64))).gathered()
        return found[:, 0] if X.ndim == 1 else found

    def __matmul__(self, X: Any) -> Any:
        if not isinstance(X, RowBlocks):
            return self._product(np.asarray(X))
        pieces = self.pieces(X.parts, self.cluster.submit)
        parts = [
            self.cluster.submit(multiplied, block, own, *others, at=at)
            for block, own, others, at in zip(
                self.blocks, X.parts, pieces, self.layout.at, strict=True
            )
        ]
        return RowBlocks(self, parts)

    def ordered(self) -> tuple[RowBlockMatrix, Ints]:
        """Return the matrix with its rows in the order of its blocks, and the row at each place."""
        matrix = RowBlockMatrix(self.cluster, self.layout.ordered(), self.blocks, self.halo)
        matrix._sent = self._sent
        return matrix, self.layout.order

    def in_blocks(self, V: AnyArray) -> RowBlocks:
        """Return vectors in blocks of rows, to be multiplied with again and again."""
        parts = zip(self.layout.split(V), self.layout.at, strict=True)
        return RowBlocks(self, [self.cluster.submit(identity, p, at=at) for p, at in parts])

    def pieces(self, parts: list[Any], call: Callable[..., Any]) -> list[list[Any]]:
        """Return, for each block, the rows that it needs of others, by calls on workers."""
        found = []
        for number, halo in enumerate(self.halo):
            mine = []
            for place, piece in enumerate(halo):
                at = self.layout.at[piece.block]
                if (number, place) not in self._sent:
                    self._sent[number, place] = self.cluster.submit(identity, piece.rows, at=at)
                mine.append(call(taken, parts[piece.block], self._sent[number, place], at=at))
            found.append(mine)
        return found

    def recurrence(
        self,
        start: AnyArray | None,
        R: AnyArray,
        steps: Sequence[tuple[AnyArray, AnyArray, AnyArray]],
        *,
        center: float,
        scale: float,
    ) -> AnyArray:
        """Return the last of ``Y = alpha (scale A E - center E + gamma R) - beta Y``, E = Y."""
        cluster, at = self.cluster, self.layout.at
        single = [
            cluster.submit(in_single_precision, block, scale, at=place)
            for block, place in zip(self.blocks, at, strict=True)
        ]
        residuals = self.in_blocks(np.asarray(R, dtype=np.float32)).parts
        E: list[Any] = [None] * len(single)
        if start is not None:
            E = self.in_blocks(np.asarray(start, dtype=np.float32)).parts
        Y: list[Any] = [None] * len(single)
        for given in steps:
            numbers = [np.asarray(part, dtype=np.float32) for part in given]
            numbers.append(np.array([center], dtype=np.float32))
            pieces = [[] for _ in single] if E[0] is None else self.pieces(E, cluster.lazy)
            new = [
                cluster.lazy(
                    advanced, single[b], E[b], residuals[b], Y[b], numbers, *pieces[b], at=at[b]
                )
                for b in range(len(single))
            ]
            E, Y = new, E
        return self.layout.joined(cluster.fetch(cluster.compute(E)))


class RowBlocks:
    """Some vectors side by side, in blocks of rows that live on workers.

    They can be added, multiplied with numbers for each column and with matrices, and measured: what
    the iteration of a linear solver does with arrays, it does with them.
    """

    __array_priority__ = 1000.0
    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(self, matrix: RowBlockMatrix, parts: list[Any]) -> None:
        self.matrix, self.parts = matrix, parts

    def _each(self, function: Callable[..., Any], *others: Any) -> RowBlocks:
        parts = []
        for number, part in enumerate(self.parts):
            given = (o.parts[number] if isinstance(o, RowBlocks) else o for o in others)
            at = self.matrix.layout.at[number]
            parts.append(self.matrix.cluster.submit(function, part, *given, at=at))
        return RowBlocks(self.matrix, parts)

    def times(self, A: RowBlockMatrix) -> RowBlocks:
        """Return the product of a matrix with them."""
        product: RowBlocks = A @ self
        return product

    def gathered(self) -> AnyArray:
        """Return them as an array, in the order of the samples."""
        return self.matrix.layout.joined(self.matrix.cluster.fetch(self.parts))

    def dots(self, other: RowBlocks) -> AnyArray:
        """Return the inner product of each column with that of another block."""
        sums = self._each(column_dots, other).parts
        return np.asarray(np.sum(self.matrix.cluster.fetch(sums), axis=0))

    def columns(self, chosen: AnyArray) -> RowBlocks:
        """Return some of the columns."""
        return self._each(columns_of, chosen)

    def plus(self, factor: Any, other: RowBlocks) -> RowBlocks:
        """Return the sum with another block, whose columns are multiplied with numbers."""
        return self._each(plus, factor, other)


# --- what runs on workers


def merge(function: Callable[..., Any], block: csr_array, part: csr_array, *args: Any) -> Any:
    """Call a function with a block that is as wide as the other matrix."""
    wide = csr_array((block.data, block.indices, block.indptr), (block.shape[0], part.shape[1]))
    return function(wide, part, *args)


def rows_of_block(block: csr_array, rows: Ints) -> csr_array:
    """Return some rows of a block."""
    return csr_array(block[rows])


def own_components(block: csr_array) -> Ints:
    """Return the components of the rows of a block, without the links to others."""
    kept = (block.indices < block.shape[0]) & (block.data != 0)
    before = np.concatenate([[0], np.cumsum(kept, dtype=block.indptr.dtype)])
    shape = (block.shape[0], block.shape[0])
    indices = block.indices[kept]
    own = csr_array((np.ones(indices.size), indices, before[block.indptr]), shape=shape)
    return np.asarray(connected_components(own, directed=False)[1], dtype=np.intp)


def linked_components(block: csr_array, component: Ints) -> Ints:
    """Return the pairs of components that the entries of a block link."""
    kept = np.flatnonzero((block.indices >= block.shape[0]) & (block.data != 0))
    rows = np.searchsorted(block.indptr, kept, side="right") - 1
    first, second = component[rows], component[block.indices[kept]]
    n = int(component.max(initial=0)) + 1
    return np.stack(np.divmod(np.unique(first * n + second), n), axis=1)


def taken(part: AnyArray, rows: Int32s) -> AnyArray:
    """Return rows that another block needs."""
    return part[rows]


def multiplied(block: csr_array, own: AnyArray, *pieces: AnyArray) -> AnyArray:
    """Return the product of a block."""
    X = np.concatenate([own, *pieces])
    m = X.shape[1]
    if m < LANES or X.dtype != np.float64:
        return np.asarray(block @ X)
    wide = -(-m // LANES) * LANES  # the kernel takes whole vectors
    X, new = _widened(X, wide), np.zeros((block.shape[0], wide))
    matrix = (block.indptr.astype(np.int64), block.indices.astype(np.uint32), block.data)
    one, nothing = np.ones(wide), np.zeros(wide)
    step(matrix, (X, X, new), (one, nothing, nothing, np.zeros(1)), (0, 0, 0), 0, len(new))
    return new if wide == m else np.ascontiguousarray(new[:, :m])


def in_single_precision(block: csr_array, scale: float) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return a block as its kernel takes it, multiplied with a number."""
    data = (scale * block.data).astype(np.float32)
    return block.indptr.astype(np.int64), block.indices.astype(np.uint32), data


def advanced(  # noqa: PLR0917  (called as a task)
    single: tuple[AnyArray, AnyArray, AnyArray],
    E: AnyArray | None,
    R: AnyArray,
    Y: AnyArray | None,
    coefficients: list[AnyArray],
    *pieces: AnyArray,
) -> AnyArray:
    """Return the rows of the next block of a recurrence; zero blocks are None."""
    n, m = R.shape
    if E is None:
        return np.asarray(coefficients[0] * coefficients[2] * R)
    wide = -(-m // LANES) * LANES  # the kernel takes whole vectors
    given = [_widened(part, wide) for part in coefficients[:3]]
    X = _widened(np.concatenate([E, *pieces]), wide)
    new = np.zeros((n, wide), np.float32) if Y is None else np.array(_widened(Y, wide), order="C")
    step(single, (X, _widened(R, wide), new), (*given, coefficients[3]), (0, 0, 0), 0, n)
    return new if wide == m else np.ascontiguousarray(new[:, :m])


def _widened(part: AnyArray, width: int) -> AnyArray:
    """Return an array with columns of zeros appended."""
    missing = width - part.shape[-1]
    if not missing:
        return np.ascontiguousarray(part)
    return np.concatenate([part, np.zeros((*part.shape[:-1], missing), part.dtype)], axis=-1)


def column_dots(part: AnyArray, other: AnyArray) -> AnyArray:
    """Return the inner products of the columns."""
    return np.einsum("ij,ij->j", part, other)


def columns_of(part: AnyArray, chosen: AnyArray) -> AnyArray:
    """Return some columns."""
    return np.ascontiguousarray(part[:, chosen])


def plus(part: AnyArray, factor: Any, other: AnyArray) -> AnyArray:
    """Return a sum with multiplied columns."""
    return part + factor * other
