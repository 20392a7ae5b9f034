r"""Compiled products of a sparse matrix with a block of vectors, and what goes with them.

Rows are independent in every kernel but `cross` and `residual`, which add up the same blocks of
rows in the same order however many threads there are: the bits of an answer do not depend on the
number of threads. No BLAS is called: its sums depend on the number of threads.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import AnyArray, AnyFloats, Floats, Int64s, UInt32s


LANES = 8  # columns of a block come in multiples of this
AHEAD = 24  # entries between the request for a row and its use
ROWS_PER_BLOCK = 16_384  # of a sum over rows
ROWS_PER_TILE = 64  # that are in the first cache at a time
# Work, in entries times columns, below which a second thread costs more than it brings.
PARALLEL_FROM = 1_000_000


class RowThreads:
    """Threads that share the rows of a matrix in parts of equal work."""

    def __init__(self, indptr: Int64s) -> None:
        n, n_entries = indptr.size - 1, int(indptr[-1])
        n_threads = numba.get_num_threads()
        if (n_entries + n) * LANES < PARALLEL_FROM:
            n_threads = 1
        work = indptr + np.arange(n + 1)
        shares = (n_entries + n) * np.arange(1, n_threads) // n_threads
        self._borders = [0, *np.searchsorted(work, shares).tolist(), n]
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    @property
    def n_blocks(self) -> int:
        """Number of blocks that `on_blocks` makes."""
        return -(-self._borders[-1] // ROWS_PER_BLOCK)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def on_rows(self, kernel: Callable[..., None], *args: Any) -> None:
        """Call ``kernel(*args, first, last)`` for the rows of every part."""
        parts = list(zip(self._borders[:-1], self._borders[1:], strict=True))
        self._all(lambda part: kernel(*args, *part), parts)

    def on_blocks(self, kernel: Callable[..., None], *args: Any) -> None:
        """Call ``kernel(*args, block, first, last)`` for every block of as many rows."""
        firsts = range(0, self._borders[-1], ROWS_PER_BLOCK)
        parts = [(b, f, min(f + ROWS_PER_BLOCK, self._borders[-1])) for b, f in enumerate(firsts)]
        self._all(lambda part: kernel(*args, *part), parts)

    def cross(self, X: AnyArray, Y: AnyArray) -> Floats:
        """Return ``X' Y``."""
        sums = np.zeros((self.n_blocks, X.shape[1], Y.shape[1]))
        doubles = X.dtype == Y.dtype == np.float64 and Y.shape[1] % LANES == 0
        self.on_blocks(cross_in_tiles if doubles else cross, X, Y, sums)
        return np.asarray(sums.sum(axis=0))

    def _all(self, call: Callable[[Any], None], parts: list[Any]) -> None:
        for _ in self._pool.map(call, parts) if self._pool else map(call, parts):
            pass


def _row_step(n_vectors: int) -> Any:  # noqa: PLR0915
    """Return the inner loop of `_step_in_registers` for ``n_vectors * LANES`` columns of a row."""

    @intrinsic
    def row_step(typingctx, matrix, blocks, coefficients, place):  # type: ignore[no-untyped-def]  # noqa: PLR0915, PLR0917
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]  # noqa: PLR0915
            def items(position: int) -> Any:
                count = len(signature.args[position].types)
                return [builder.extract_value(args[position], item) for item in range(count)]

            def pointers(position: int) -> Any:
                kinds = signature.args[position].types
                return [
                    context.make_array(kind)(context, builder, array).data
                    for kind, array in zip(kinds, items(position), strict=True)
                ]

            indices, data = pointers(0)
            X, R, Y = pointers(1)
            alpha, beta, gamma, center = pointers(2)
            row, widths, columns, column = items(3)
            first, last, end, i = (builder.extract_value(row, item) for item in range(4))
            x_width, r_width, y_width = (builder.extract_value(widths, item) for item in range(3))
            x_column, r_column, y_column = (
                builder.add(builder.extract_value(columns, item), column) for item in range(3)
            )
            scalar = context.get_value_type(signature.args[1].types[0].dtype)
            vec = ir.VectorType(scalar, LANES)
            i64, i32 = ir.IntType(64), ir.IntType(32)
            fast = ("contract",)

            def load(base: Any, offset: Any) -> Any:
                place = builder.bitcast(builder.gep(base, [offset]), vec.as_pointer())
                return builder.load(place, align=scalar_size)

            def splat(value: Any) -> Any:
                one = builder.insert_element(ir.Constant(vec, ir.Undefined), value, i32(0))
                mask = ir.Constant(ir.VectorType(i32, LANES), [0] * LANES)
                return builder.shuffle_vector(one, ir.Constant(vec, ir.Undefined), mask)

            def madd(a: Any, b: Any, c: Any) -> Any:
                return builder.fadd(builder.fmul(a, b, flags=fast), c, flags=fast)

            def own(width: Any, column: Any, v: int) -> Any:
                first_lane = builder.add(column, i64(v * LANES))
                return builder.add(builder.mul(i, width), first_lane)

            scalar_size = 4 if isinstance(scalar, ir.FloatType) else 8
            byte = ir.IntType(8).as_pointer()
            ask = builder.module.declare_intrinsic(
                "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            )
            zero = ir.Constant(vec, [0.0] * LANES)
            entry = builder.block
            loop, done = (builder.append_basic_block(name) for name in ("entries", "done"))
            builder.cbranch(builder.icmp_signed("<", first, last), loop, done)
            builder.position_at_end(loop)
            e = builder.phi(i64)
            e.add_incoming(first, entry)
            sums = [builder.phi(vec) for _ in range(n_vectors)]
            ahead = builder.add(e, i64(AHEAD))
            ahead = builder.select(builder.icmp_signed("<", ahead, end), ahead, e)
            j = builder.zext(builder.load(builder.gep(indices, [ahead])), i64)
            row = builder.gep(X, [builder.add(builder.mul(j, x_width), x_column)])
            for offset in range(0, n_vectors * LANES, 64 // scalar_size):
                line = builder.bitcast(builder.gep(row, [i64(offset)]), byte)
                builder.call(ask, [line, i32(0), i32(3), i32(1)])
            j = builder.zext(builder.load(builder.gep(indices, [e])), i64)
            value = splat(builder.load(builder.gep(data, [e])))
            row = builder.add(builder.mul(j, x_width), x_column)
            added = [
                madd(value, load(X, builder.add(row, i64(v * LANES))), total)
                for v, total in enumerate(sums)
            ]
            e_next = builder.add(e, i64(1))
            e.add_incoming(e_next, loop)
            for total, new in zip(sums, added, strict=True):
                total.add_incoming(zero, entry)
                total.add_incoming(new, loop)
            builder.cbranch(builder.icmp_signed("<", e_next, last), loop, done)

            builder.position_at_end(done)
            products = [builder.phi(vec) for _ in range(n_vectors)]
            for product, new in zip(products, added, strict=True):
                product.add_incoming(zero, entry)
                product.add_incoming(new, loop)
            shift = splat(builder.fneg(builder.load(center)))
            for v, product in enumerate(products):
                c = builder.add(column, i64(v * LANES))
                x = load(X, own(x_width, x_column, v))
                r = load(R, own(r_width, r_column, v))
                y_place = own(y_width, y_column, v)
                inner = madd(load(gamma, c), r, madd(shift, x, product))
                old = builder.fmul(builder.fneg(load(beta, c)), load(Y, y_place))
                new = madd(load(alpha, c), inner, old)
                target = builder.bitcast(builder.gep(Y, [y_place]), vec.as_pointer())
                builder.store(new, target, align=scalar_size)
            return context.get_dummy_value()

        return types.void(matrix, blocks, coefficients, place), codegen

    return row_step


_one, _two, _three = _row_step(1), _row_step(2), _row_step(3)


@njit(cache=True, nogil=True)
def _step_in_registers(matrix, blocks, coefficients, columns, first, last):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    indptr, indices, data = matrix
    X, R, Y = blocks
    widths = np.int64(X.shape[1]), np.int64(R.shape[1]), np.int64(Y.shape[1])
    m = coefficients[0].size
    for i in range(first, last):
        row = np.int64(indptr[i]), np.int64(indptr[i + 1]), np.int64(indices.size), np.int64(i)
        c = np.int64(0)
        while c < m:
            if m - c >= 3 * LANES:
                _three((indices, data), blocks, coefficients, (row, widths, columns, c))
                c += 3 * LANES
            elif m - c >= 2 * LANES:
                _two((indices, data), blocks, coefficients, (row, widths, columns, c))
                c += 2 * LANES
            else:
                _one((indices, data), blocks, coefficients, (row, widths, columns, c))
                c += LANES


@njit(cache=True, nogil=True, fastmath={"contract"})
def step_loop(matrix, blocks, coefficients, columns, first, last):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Do what `step` does, in plain loops: its twin in tests, and where LLVM has no vectors."""
    indptr, indices, data = matrix
    X, R, Y = blocks
    alpha, beta, gamma, center = coefficients
    # Unsigned: what might be negative is checked at every use, and no loop becomes a vector one.
    x, r, y = np.uint64(columns[0]), np.uint64(columns[1]), np.uint64(columns[2])
    m = np.uint64(alpha.size)
    total = np.empty_like(alpha)
    for i in range(np.uint64(first), np.uint64(last)):
        for c in range(m):
            total[c] = gamma[c] * R[i, r + c] - center[0] * X[i, x + c]
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j, value = indices[e], data[e]
            for c in range(m):
                total[c] += value * X[j, x + c]
        for c in range(m):
            Y[i, y + c] = alpha[c] * total[c] - beta[c] * Y[i, y + c]


@cache
def _fastest_step() -> Callable[..., None]:
    """Return the kernel in LLVM's vector types if it compiles here, and the loop otherwise."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return step_loop
    try:
        matrix = np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0)
        coefficients = tuple(np.zeros(size) for size in (LANES, LANES, LANES, 1))
        _step_in_registers(matrix, (np.zeros((0, LANES)),) * 3, coefficients, (0, 0, 0), 0, 0)
    except Exception as error:
        warnings.warn(
            f"Eigenvectors take up to twice as long, for a kernel does not compile: {error}",
            stacklevel=2,
        )
        return step_loop
    return _step_in_registers


def step(  # noqa: PLR0917  (called as a kernel)
    matrix: tuple[Int64s, UInt32s, AnyFloats],
    blocks: tuple[AnyFloats, AnyFloats, AnyFloats],
    coefficients: tuple[AnyFloats, ...],
    columns: tuple[int, int, int],
    first: int,
    last: int,
) -> None:
    """Overwrite rows of `Y` by ``alpha (A X - center X + gamma R) - beta Y``.

    A product gathers rows of the block, and the time goes into waiting for them. The inner loop is
    therefore written in LLVM's vector types: the sums of 24 columns stay in registers, and the rows
    that are needed some entries later are asked for ahead. Milliseconds in single precision on one
    thread, graphs of 10 neighbours of 100,000 samples in their local order:

    ========  =======  ======  ===========  =====
    features  columns  `step`  `step_loop`  ratio
    ========  =======  ======  ===========  =====
    2         8        2.2     3.4          1.6
    2         24       3.6     4.7          1.3
    16        8        3.3     6.2          1.9
    16        24       7.5     10.2         1.4
    ========  =======  ======  ===========  =====

    With signed indices in `step_loop`, as usual in numba, the ratios are 4.7 to 6.9.

    `matrix` is `indptr`, unsigned `indices` and `data` of `A`; `blocks` are `X`, `R` and `Y`,
    C-contiguous and of the kind of `data`. `coefficients` are `alpha`, `beta`, `gamma`, each with
    one entry a column, and `center`, with one entry. Their length, a multiple of `LANES`, is the
    number of columns that take part, from those in `columns` of `X`, `R` and `Y` on. `first` and
    `last` are the rows of `Y`.
    """
    _fastest_step()(matrix, blocks, coefficients, columns, first, last)


@njit(cache=True, nogil=True, fastmath={"contract"})
def cross(X, Y, sums, block, first, last):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Write the share of some rows of ``X' Y`` to ``sums[block]``.

    Four rows at a time: a pass over the small matrix then serves four updates.
    """
    total = np.zeros((X.shape[1], Y.shape[1]))
    last_four = first + (last - first) // 4 * 4
    for i in range(first, last_four, 4):
        for a in range(X.shape[1]):
            x0, x1, x2, x3 = X[i, a], X[i + 1, a], X[i + 2, a], X[i + 3, a]
            for b in range(Y.shape[1]):
                total[a, b] += x0 * Y[i, b] + x1 * Y[i + 1, b] + x2 * Y[i + 2, b] + x3 * Y[i + 3, b]
    for i in range(last_four, last):
        for a in range(X.shape[1]):
            for b in range(Y.shape[1]):
                total[a, b] += X[i, a] * Y[i, b]
    for a in range(X.shape[1]):
        for b in range(Y.shape[1]):
            sums[block, a, b] = total[a, b]


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_product(Y, X, Q, first, last):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Add rows of ``X Q`` to those of `Y`, where `Q` has a column for each one of `Y`."""
    for i in range(first, last):
        for a in range(X.shape[1]):
            x = X[i, a]
            for b in range(Y.shape[1]):
                Y[i, b] += x * Q[a, b]


def _tile(n_rows: int) -> Any:  # noqa: PLR0915
    """Return a small dense product: ``n_rows`` times `LANES` sums that stay in registers.

    ``C[r, :] += sum_t P[t, r] V[t, :]``, all in double precision. Places are offsets of the first
    entries, steps those from one `t` to the next in `P`, from one `r` to the next in `P`, from one
    `t` to the next in `V`, and from one `r` to the next in `C`.

    Milliseconds for 16,384 rows, against four rows at a time in plain loops. An eigensolve on a
    graph of 100,000 samples takes 1 % less time with 8 columns and 17 % with 24.

    =======  ===============  ===============
    columns  `cross`, loops   `rotate`, loops
    =======  ===============  ===============
    8        0.04    0.19     0.08    0.39
    24       0.36    0.96     0.42    1.06
    48       2.1     4.2      2.1     4.2
    =======  ===============  ===============
    """

    @intrinsic
    def tile(typingctx, arrays, places, steps, count):  # type: ignore[no-untyped-def]  # noqa: PLR0917
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            def items(position: int, n_items: int) -> Any:
                return [builder.extract_value(args[position], item) for item in range(n_items)]

            P, V, C = (
                context.make_array(kind)(context, builder, array).data
                for kind, array in zip(signature.args[0].types, items(0, 3), strict=True)
            )
            p, v, c = items(1, 3)
            p_step, p_row, v_step, c_row = items(2, 4)
            vec = ir.VectorType(ir.DoubleType(), LANES)
            i64, i32 = ir.IntType(64), ir.IntType(32)
            fast = ("contract",)

            def line(base: Any, offset: Any) -> Any:
                return builder.bitcast(builder.gep(base, [offset]), vec.as_pointer())

            def splat(value: Any) -> Any:
                one = builder.insert_element(ir.Constant(vec, ir.Undefined), value, i32(0))
                mask = ir.Constant(ir.VectorType(i32, LANES), [0] * LANES)
                return builder.shuffle_vector(one, ir.Constant(vec, ir.Undefined), mask)

            targets = [line(C, builder.add(c, builder.mul(c_row, i64(r)))) for r in range(n_rows)]
            offsets = [builder.mul(p_row, i64(r)) for r in range(n_rows)]
            firsts = [builder.load(target, align=8) for target in targets]
            entry = builder.block
            loop, done = (builder.append_basic_block(name) for name in ("terms", "done"))
            builder.cbranch(builder.icmp_signed("<", i64(0), args[3]), loop, done)
            builder.position_at_end(loop)
            t, p_now, v_now = (builder.phi(i64) for _ in range(3))
            sums = [builder.phi(vec) for _ in range(n_rows)]
            values = builder.load(line(V, v_now), align=8)
            added = []
            for total, offset in zip(sums, offsets, strict=True):
                x = splat(builder.load(builder.gep(P, [builder.add(p_now, offset)])))
                product = builder.fmul(x, values, flags=fast)
                added.append(builder.fadd(product, total, flags=fast))
            for total, first, new in zip(sums, firsts, added, strict=True):
                total.add_incoming(first, entry)
                total.add_incoming(new, loop)
            t_next = builder.add(t, i64(1))
            t.add_incoming(i64(0), entry)
            t.add_incoming(t_next, loop)
            for now, before, step in ((p_now, p, p_step), (v_now, v, v_step)):
                now.add_incoming(before, entry)
                now.add_incoming(builder.add(now, step), loop)
            builder.cbranch(builder.icmp_signed("<", t_next, args[3]), loop, done)
            builder.position_at_end(done)
            results = [builder.phi(vec) for _ in range(n_rows)]
            for result, first, new in zip(results, firsts, added, strict=True):
                result.add_incoming(first, entry)
                result.add_incoming(new, loop)
            for result, target in zip(results, targets, strict=True):
                builder.store(result, target, align=8)
            return context.get_dummy_value()

        return types.void(arrays, places, steps, count), codegen

    return tile


_tile_one, _tile_eight = _tile(1), _tile(8)


@njit(cache=True, nogil=True)
def cross_in_tiles(X, Y, sums, block, first, last):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Add the share of some rows of ``X' Y`` to ``sums[block]``, for doubles.

    The number of columns of `Y` is a multiple of `LANES`. The rows of a tile's terms stay in the
    first cache until all tiles have read them.
    """
    total = sums[block]
    m, k = np.int64(X.shape[1]), np.int64(Y.shape[1])
    steps = (m, np.int64(1), k, k)
    i = np.int64(first)
    while i < last:
        count = np.int64(min(ROWS_PER_TILE, last - i))
        for b in range(0, k, LANES):
            a = np.int64(0)
            while a + 8 <= m:
                _tile_eight((X, Y, total), (i * m + a, i * k + b, a * k + b), steps, count)
                a += 8
            while a < m:
                _tile_one((X, Y, total), (i * m + a, i * k + b, a * k + b), steps, count)
                a += 1
        i += count


@njit(cache=True, nogil=True)
def rotate(X, Q, first, last):  # type: ignore[no-untyped-def]
    """Overwrite rows of `X` by those of ``X Q``; its columns are a multiple of `LANES`."""
    m = np.int64(X.shape[1])
    new = np.empty((8, m))
    i = np.int64(first)
    while i < last:
        count = np.int64(min(8, last - i))
        new[:] = 0.0
        for b in range(0, m, LANES):
            if count == 8:
                _tile_eight((X, Q, new), (i * m, b, b), (np.int64(1), m, m, m), m)
            else:
                for r in range(count):
                    _tile_one((X, Q, new), ((i + r) * m, b, r * m + b), (np.int64(1), m, m, m), m)
        for r in range(count):
            for b in range(m):
                X[i + r, b] = new[r, b]
        i += count


@njit(cache=True, nogil=True)
def residual(X, AX, values, R, sums, block, first, last):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Write rows of ``A X - X diag(values)`` to `R`, and their squares to ``sums[block]``."""
    m = X.shape[1]
    squares = np.zeros(m)
    for i in range(first, last):
        for c in range(m):
            r = AX[i, c] - X[i, c] * values[c]
            squares[c] += r * r
            R[i, c] = r
    for c in range(m):
        sums[block, c] = squares[c]


@njit(cache=True, nogil=True)
def permute_rows(order, place, old, new, first, last):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Fill rows of the matrix `new` with the rows `order` of `old`, columns renumbered.

    Both are ``(indptr, indices, data)``; `place` is the inverse of `order`.
    """
    for i in range(first, last):
        e = new[0][i]
        for f in range(old[0][order[i]], old[0][order[i] + 1]):
            new[1][e] = place[old[1][f]]
            new[2][e] = old[2][f]
            e += 1
