"""Chunks of a Dask array: checked one by one, and rows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from linkwise._inputs import checked_numbers, problem_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import AnyArray, Floats, Ints
    from linkwise.distributed.cluster import Cluster


LONGEST = 100  # letters of an entry in a message


class ChunkError(ValueError):
    """A chunk is not what it should be; its number, and the column if it is a single one."""

    def __init__(self, message: str, chunk: int, column: int | None = None) -> None:
        super().__init__(message, chunk, column)
        self.chunk, self.column = chunk, column

    def __str__(self) -> str:
        return str(self.args[0])


class Problem(NamedTuple):
    """What is wrong in a row of a chunk, and in which column if it is a single one."""

    row: int
    what: str
    column: int | None = None
    remedy: str = "Correct it, or leave the row out."


class Seen(NamedTuple):
    """What a look at a chunk shows."""

    n_rows: int
    n_columns: int
    problem: Problem | None
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
        self._check(seen, None if np.isnan(X.shape[1]) else int(X.shape[1]), X.chunks[0])
        self.sizes = np.array([one.n_rows for one in seen])
        self.start = np.concatenate([[0], np.cumsum(self.sizes)])
        self.n_samples, self.n_features = int(self.start[-1]), seen[0].n_columns
        if self.n_samples < 2:
            raise ValueError(f"X has {self.n_samples} sample(s), but a graph needs 2 at least.")
        if not self.n_features:
            raise ValueError("X has 0 features, but samples need 1 at least.")
        self.low = np.min([one.low for one in seen if one.n_rows], axis=0)
        self.high = np.max([one.high for one in seen if one.n_rows], axis=0)
        self._check_range()
        kind = np.float32 if X.dtype == np.float32 else np.float64
        self.dtype = np.dtype(kind)

    def _looked_at(self) -> list[Seen]:
        tasks = [self.cluster.dask.delayed(looked_at, pure=False)(block) for block in self.blocks]
        return self.cluster.fetch(self.cluster.compute(tasks))

    def _check_range(self) -> None:
        """Refuse numbers whose differences are infinite."""
        with np.errstate(over="ignore"):
            is_finite = np.isfinite(self.high - self.low)
        if not is_finite.all():
            column = int(is_finite.argmin())
            raise ValueError(
                f"X lies between {self.low[column]:.0e} and {self.high[column]:.0e} in column "
                f"{column}: differences of such numbers leave the range of floating-point "
                "numbers. Correct it, or divide X by 1e10."
            )

    @staticmethod
    def _check(seen: list[Seen], n_columns: int | None, sizes: Sequence[float]) -> None:
        width = seen[0].n_columns if n_columns is None else n_columns
        first = 0
        for number, (one, size) in enumerate(zip(seen, sizes, strict=True)):
            where = f"chunk {number} (its row 0 is row {first:,} of X)"
            if one.problem is not None:
                row, what, column, remedy = one.problem
                raise ChunkError(
                    f"X holds {what} in row {row} of chunk {number}, which is row {first + row:,} "
                    f"of X. {remedy}",
                    number,
                    column,
                )
            if one.n_columns != width:
                raise ChunkError(
                    f"X has {one.n_columns} columns in {where}, and {width} elsewhere. Samples "
                    "have the same features: correct this chunk.",
                    number,
                )
            if not np.isnan(size) and one.n_rows != size:
                raise ChunkError(
                    f"X has {one.n_rows:,} rows in {where}, where it says {int(size):,}. Correct "
                    "the chunks of X.",
                    number,
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
    problem = _of_another_kind(chunk)
    if problem is not None:
        n_rows, n_columns = chunk.shape if issparse(chunk) else (0, 0)
        return _refused(n_rows, n_columns, problem)
    n_rows, n_columns = chunk.shape
    chunk = np.asarray(chunk)
    try:
        with checked_numbers():
            # One that is longer may be finite where a double is not.
            values = chunk if chunk.dtype in (np.float64, np.float32) else numbers(chunk)
            total = values.sum(dtype=np.float64)
    except (TypeError, ValueError):
        return _refused(n_rows, n_columns, _first_text(chunk))
    if not np.isfinite(total):
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            row, column = bad[0].tolist()
            what = f"{values[row, column]} (column {column})"
            return _refused(n_rows, n_columns, Problem(row, what, column))
    if n_rows == 0:
        return _refused(0, n_columns, None)
    low, high = (side.astype(np.float64) for side in (values.min(axis=0), values.max(axis=0)))
    return Seen(n_rows, n_columns, None, low, high)


def _of_another_kind(chunk: Any) -> Problem | None:
    """Return what is wrong with a chunk that is no plain array of two dimensions."""
    if issparse(chunk):
        remedy = "Make it dense: X.map_blocks(lambda block: block.toarray())."
        return Problem(0, "sparse rows", remedy=remedy)
    if len(getattr(chunk, "shape", ())) != 2:
        what = f"something of the type {type(chunk).__name__}, which has no rows and columns,"
        return Problem(0, what, remedy="Correct this chunk.")
    array = chunk if isinstance(chunk, np.ndarray) else np.asarray(chunk)
    found = problem_of(array)
    if found is None and array.dtype.kind == "c":
        found = ("complex numbers", "Take their real parts, or their sizes.")
    if found is None:
        return None
    is_masked = np.ma.getmaskarray(array).any(axis=1)
    row = int(is_masked.argmax()) if is_masked.any() else 0
    return Problem(row, found[0], remedy=found[1])


def _refused(n_rows: int, n_columns: int, problem: Problem | None) -> Seen:
    """Return a look at a chunk without numbers that could be measured."""
    nothing = np.full(n_columns, np.nan)
    return Seen(n_rows, n_columns, problem, nothing, nothing)


def _first_text(chunk: AnyArray) -> Problem:
    """Return the place of the first entry that is no number, and the entry."""
    for row, entries in enumerate(chunk):
        for column, entry in enumerate(entries):
            try:
                float(entry)
            except OverflowError:
                return Problem(row, f"an integer too large (column {column})", column)
            except (TypeError, ValueError):
                what = f"{_shortened(entry)}, which is no number (column {column}),"
                return Problem(row, what, column)
    return Problem(0, f"entries of type {chunk.dtype}")


def _shortened(entry: Any) -> str:
    shown = repr(entry)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}... ({len(shown):,} characters)"
