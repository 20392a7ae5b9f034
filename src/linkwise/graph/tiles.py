"""Compiled comparison of samples with the members of cells, in LLVM's vector types.

A tile is `QUERIES` queries times `ROWS` members: its scores stay in registers until they are
compared with what the lists of the queries still take. Products of matrices would write every score
to memory first, and read it again; with 16 features that takes as long as the products.

No BLAS is called, and a score does not depend on the tile that it is in, hence not on the other
queries either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from linkwise.graph.cells import insert

QUERIES = 16  # single numbers in a vector of 512 bits; others take two or four
# Sums that wait for each other keep both units of multiplication busy. Microseconds a sample for
# 32 cells of 667 blobs of 16 features: 6 rows 30, 8 rows 20, products of matrices 42.
ROWS = 8
BITS = 64


def _tile(n_rows: int) -> Any:  # noqa: PLR0915
    """Return the comparison of some members with queries, all in single precision.

    It writes ``scores[r, :] = members[r, -1] + sum_f members[r, f] Q[f, :]`` and returns, as bits
    of two integers, which of them are below the limits of the queries.
    """

    @intrinsic
    def tile(typingctx, arrays, place, width):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            members, Q, limits, scores = (
                context.make_array(kind)(
                    context, builder, builder.extract_value(args[0], item)
                ).data
                for item, kind in enumerate(signature.args[0].types)
            )
            vec = ir.VectorType(ir.FloatType(), QUERIES)
            i64, i32 = ir.IntType(64), ir.IntType(32)
            fast = ("contract",)

            def line(base: Any, offset: Any) -> Any:
                return builder.bitcast(builder.gep(base, [offset]), vec.as_pointer())

            def splat(value: Any) -> Any:
                one = builder.insert_element(ir.Constant(vec, ir.Undefined), value, i32(0))
                mask = ir.Constant(ir.VectorType(i32, QUERIES), [0] * QUERIES)
                return builder.shuffle_vector(one, ir.Constant(vec, ir.Undefined), mask)

            n_features = builder.sub(args[2], i64(1))
            rows = [
                builder.gep(members, [builder.add(args[1], builder.mul(args[2], i64(r)))])
                for r in range(n_rows)
            ]
            norms = [splat(builder.load(builder.gep(row, [n_features]))) for row in rows]
            entry = builder.block
            loop, done = (builder.append_basic_block(name) for name in ("features", "done"))
            builder.cbranch(builder.icmp_signed("<", i64(0), n_features), loop, done)
            builder.position_at_end(loop)
            f = builder.phi(i64)
            sums = [builder.phi(vec) for _ in range(n_rows)]
            q = builder.load(line(Q, builder.mul(f, i64(QUERIES))), align=4)
            added = []
            for row, total in zip(rows, sums, strict=True):
                x = splat(builder.load(builder.gep(row, [f])))
                added.append(builder.fadd(builder.fmul(x, q, flags=fast), total, flags=fast))
            f_next = builder.add(f, i64(1))
            f.add_incoming(i64(0), entry)
            f.add_incoming(f_next, loop)
            for total, norm, new in zip(sums, norms, added, strict=True):
                total.add_incoming(norm, entry)
                total.add_incoming(new, loop)
            builder.cbranch(builder.icmp_signed("<", f_next, n_features), loop, done)
            builder.position_at_end(done)
            totals = [builder.phi(vec) for _ in range(n_rows)]
            for total, norm, new in zip(totals, norms, added, strict=True):
                total.add_incoming(norm, entry)
                total.add_incoming(new, loop)
            limit = builder.load(line(limits, i64(0)), align=4)
            below = [i64(0), i64(0)]
            for r, score in enumerate(totals):
                builder.store(score, line(scores, i64(r * QUERIES)), align=4)
                bits = builder.bitcast(builder.fcmp_ordered("<", score, limit), ir.IntType(QUERIES))
                which, first = divmod(r * QUERIES, BITS)
                moved = builder.shl(builder.zext(bits, i64), i64(first))
                below[which] = builder.or_(below[which], moved)
            return context.make_tuple(builder, signature.return_type, below)

        pair: Any = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
        return pair(arrays, place, width), codegen

    return tile


_tile_many, _tile_one = _tile(ROWS), _tile(1)


def _lowest() -> Any:
    """Return the number of the lowest bit that is set."""

    @intrinsic
    def lowest(typingctx, bits):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.cttz(args[0], ir.IntType(1)(1))

        return types.int64(types.int64), codegen

    return lowest


_lowest_bit = _lowest()


@njit(cache=True, nogil=True)
def _enter(bits, first, own, tile, chosen, found):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Enter the scores of a tile that are below their limits, `first` being that of bit 0."""
    _, norms, limits, scores = tile
    position, self_position = own
    last = found.squares.shape[1] - 1
    while bits != 0:
        place = first + _lowest_bit(bits)
        bits &= bits - 1
        r = place % QUERIES
        i, at = chosen[r], position + place // QUERIES
        # An earlier one of the tile may have lowered the limit.
        if scores[place] < limits[r] and (self_position < 0 or at != self_position + i):
            insert(found, i, scores[place] + norms[r], at)
            limits[r] = found.squares[i, last] - norms[r]


@njit(cache=True, nogil=True)
def compare(members, rows, tile, chosen, self_position, found):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Enter the members ``rows[0]:rows[1]`` in the lists of at most `QUERIES` queries.

    `tile` is ``Q``, the queries times -2 in its columns, their squared norms, their limits, and
    memory for scores; `chosen` are the lists of the queries. With ``self_position >= 0`` a query is
    the member that far from its list, and not its own neighbour.
    """
    Q, _, limits, scores = tile
    arrays = (members, Q, limits, scores)
    width = np.int64(members.shape[1])
    i, end = np.int64(rows[0]), np.int64(rows[1])
    while i < end:
        if i + ROWS <= end:
            low, high = _tile_many(arrays, i * width, width)
            step = np.int64(ROWS)
        else:
            low, high = _tile_one(arrays, i * width, width)
            step = np.int64(1)
        if low != 0:
            _enter(low, 0, (i, self_position), tile, chosen, found)
        if high != 0:
            _enter(high, BITS, (i, self_position), tile, chosen, found)
        i += step


@njit(cache=True, nogil=True)
def _aligned(n):  # type: ignore[no-untyped-def]
    """Return memory for single numbers that begins with a line of the cache."""
    memory = np.zeros(n + 16, np.float32)
    first = (-(memory.ctypes.data // 4)) % 16
    return memory[first : first + n]


@njit(cache=True, nogil=True)
def _new_tile(n_features):  # type: ignore[no-untyped-def]
    Q = _aligned(n_features * QUERIES).reshape((n_features, QUERIES))
    return Q, np.zeros(QUERIES, np.float32), _aligned(QUERIES), _aligned(ROWS * QUERIES)


@njit(cache=True, nogil=True)
def _fill(tile, queries, shift, chosen, found):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Set a tile to some queries, moved; places without one have a limit that nothing is below."""
    Q, norms, limits, _ = tile
    last = found.squares.shape[1] - 1
    limits[:] = -np.inf
    for r in range(chosen.size):
        i = chosen[r]
        norm = np.float32(0)
        for f in range(queries.shape[1]):
            x = queries[i, f] + shift[f]
            norm += x * x
            Q[f, r] = np.float32(-2) * x
        norms[r] = norm
        limits[r] = found.squares[i, last] - norm


@njit(cache=True, nogil=True)
def search_cells(cells, own, queries, probes, self_position, found):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Search the probed cells for the neighbours of queries that share their nearest cell.

    `queries` are relative to the centre of the cell `own`. With ``self_position >= 0`` they are
    the samples from that position on, and not their own neighbours.
    """
    n_queries, n_features = queries.shape
    n_cells = cells.start.size - 1
    # A counting sort of the pairs (cell, query) by cell.
    last = np.zeros(n_cells + 1, np.int64)
    for c in probes.ravel():
        last[c + 1] += 1
    last = np.cumsum(last)
    first = last[:-1].copy()
    rows = np.empty(probes.size, np.int64)
    for i in range(n_queries):
        for c in probes[i]:
            rows[first[c]] = i
            first[c] += 1
    tile = _new_tile(n_features)
    shift = np.empty(n_features, np.float32)
    for turn in range(-1, n_cells):
        # The own cell comes first: its members are near, and the rest is soon too far.
        c = own if turn < 0 else turn
        if turn == own or last[c + 1] == last[c]:
            continue
        for f in range(n_features):
            shift[f] = cells.centres[own, f] - cells.centres[c, f]
        itself = self_position if c == own else np.int64(-1)
        for top in range(last[c], last[c + 1], QUERIES):
            chosen = rows[top : min(top + QUERIES, last[c + 1])]
            _fill(tile, queries, shift, chosen, found)
            compare(
                cells.members, (cells.start[c], cells.start[c + 1]), tile, chosen, itself, found
            )


@njit(cache=True, nogil=True)
def search_all(members, rows, queries, found):  # type: ignore[no-untyped-def]
    """Enter the members ``rows[0]:rows[1]`` in the lists of the queries; all have one origin."""
    tile = _new_tile(queries.shape[1])
    still = np.zeros(queries.shape[1], np.float32)
    everyone = np.arange(queries.shape[0])
    for top in range(0, everyone.size, QUERIES):
        chosen = everyone[top : top + QUERIES]
        _fill(tile, queries, still, chosen, found)
        compare(members, rows, tile, chosen, np.int64(-1), found)


@njit(cache=True, nogil=True)
def rank(queries, X, unit, candidates, distances, indices):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Write the nearest candidates of each query, by distances in double precision, ties by index.

    Missing candidates are -1; they come last, infinitely far.
    """
    k = distances.shape[1]
    for i in range(candidates.shape[0]):
        distances[i] = np.inf
        indices[i] = -1
        for j in candidates[i]:
            if j < 0:
                continue
            total = 0.0
            for f in range(X.shape[1]):
                difference = (np.float64(queries[i, f]) - np.float64(X[j, f])) / unit
                total += difference * difference
            d = np.sqrt(total) * unit
            place = k
            while place > 0 and (
                d < distances[i, place - 1]
                or (d == distances[i, place - 1] and j < indices[i, place - 1])
                or indices[i, place - 1] < 0
            ):
                if place < k:
                    distances[i, place] = distances[i, place - 1]
                    indices[i, place] = indices[i, place - 1]
                place -= 1
            if place < k:
                distances[i, place] = d
                indices[i, place] = j
