"""Chunks of a Dask array: checked one by one, and rows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Ints
    from linkwise.distributed.cluster import Cluster


class Seen(NamedTuple):
    """What a look at a chunk shows."""

    n_rows: int
    n_columns: int
    problem: tuple[int, str] | None  # row in the chunk, and what is wrong there
    low: Floats
    high: Floats


class Chunks:
    """The rows of a Dask array, in chunks that are read where they are needed.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_features)
        The samples.
    cluster : Cluster
        Where they are read.

    Raises
    ------
    ValueError
        If an entry is no finite number, or a chunk has another width. The message names the chunk
        and the row.
    """

    def __init__(self, X: Any, cluster: Cluster) -> None:
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimension(s), but samples are rows of 2 dimensions.")
        self.cluster = cluster
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        self.blocks = list(X.to_delayed().ravel())
        seen = self._looked_at()
        self._check(seen, None if np.isnan(X.shape[1]) else int(X.shape[1]))
        self.sizes = np.array([one.n_rows for one in seen])
        self.start = np.concatenate([[0], np.cumsum(self.sizes)])
        self.n_samples, self.n_features = int(self.start[-1]), seen[0].n_columns
        if self.n_samples < 2:
            raise ValueError(f"X has {self.n_samples} sample(s), but a graph needs 2 at least.")
        self.low = np.min([one.low for one in seen if one.n_rows], axis=0)
        self.high = np.max([one.high for one in seen if one.n_rows], axis=0)
        kind = np.float32 if X.dtype == np.float32 else np.float64
        self.dtype = np.dtype(kind)

    def _looked_at(self) -> list[Seen]:
        tasks = [self.cluster.dask.delayed(looked_at, pure=False)(block) for block in self.blocks]
        return self.cluster.fetch(self.cluster.compute(tasks))

    @staticmethod
    def _check(seen: list[Seen], n_columns: int | None) -> None:
        width = seen[0].n_columns if n_columns is None else n_columns
        first = 0
        for number, one in enumerate(seen):
            where = f"chunk {number} (its row 0 is row {first:,} of X)"
            if one.n_columns != width:
                raise ValueError(
                    f"X has {one.n_columns} columns in {where}, and {width} elsewhere. Samples "
                    "have the same features: correct this chunk."
                )
            if one.problem is not None:
                row, what = one.problem
                raise ValueError(
                    f"X holds {what} in row {row} of chunk {number}, which is row {first + row:,} "
                    "of X. Correct it, or leave the row out."
                )
            first += one.n_rows

    def rows(self, indices: Ints) -> AnyArray:
        """Return a few samples, ascending by their index."""
        chunk = np.searchsorted(self.start, indices, side="right") - 1
        tasks = []
        for number in np.unique(chunk):
            inside = indices[chunk == number] - self.start[number]
            task = self.cluster.dask.delayed(rows_of, pure=False)
            tasks.append(task(self.blocks[number], inside, self.dtype))
        return np.concatenate(self.cluster.fetch(self.cluster.compute(tasks)))

    def mapped(self, function: Any, *args: Any) -> list[Any]:
        """Return the futures of ``function(chunk, its first row, *args)``."""
        lazy = self.cluster.dask.delayed(function, pure=False)
        shared = [self.cluster.dask.delayed(arg, pure=False) for arg in args]
        tasks = [
            lazy(block, int(first), *shared)
            for block, first in zip(self.blocks, self.start[:-1], strict=True)
        ]
        return self.cluster.compute(tasks)


def numbers(chunk: Any, dtype: Any = np.float64) -> AnyArray:
    """Return a chunk as an array of floating-point numbers."""
    return np.ascontiguousarray(chunk, dtype=dtype)


def rows_of(chunk: Any, inside: Ints, dtype: Any) -> AnyArray:
    """Return some rows of a chunk."""
    return numbers(np.asarray(chunk)[inside], dtype)


def looked_at(chunk: Any) -> Seen:
    """Check a chunk, and measure it."""
    n_rows, n_columns = chunk.shape
    nothing = np.full(n_columns, np.nan)
    if issparse(chunk):
        what = "sparse rows, where dense ones are taken (X.map_blocks(lambda b: b.toarray())),"
        return Seen(n_rows, n_columns, (0, what), nothing, nothing)
    chunk = np.asarray(chunk)
    if chunk.dtype.kind == "c":
        return Seen(n_rows, n_columns, (0, "complex numbers"), nothing, nothing)
    try:
        values = chunk if chunk.dtype.kind == "f" else numbers(chunk)
    except (TypeError, ValueError):
        return Seen(n_rows, n_columns, _first_text(chunk), nothing, nothing)
    if not np.isfinite(values.sum(dtype=np.float64)):
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            row, column = bad[0]
            what = f"{values[row, column]} (column {column})"
            return Seen(n_rows, n_columns, (int(row), what), nothing, nothing)
    if n_rows == 0:
        return Seen(0, n_columns, None, nothing, nothing)
    low, high = (side.astype(np.float64) for side in (values.min(axis=0), values.max(axis=0)))
    return Seen(n_rows, n_columns, None, low, high)


def _first_text(chunk: AnyArray) -> tuple[int, str]:
    """Return the row of the first entry that is no number, and the entry."""
    for row, entries in enumerate(chunk):
        for column, entry in enumerate(entries):
            try:
                float(entry)
            except (TypeError, ValueError):
                return row, f"{entry!r}, which is no number (column {column}),"
    return 0, f"entries of type {chunk.dtype}"
