r"""Total variation on a graph: the convex problem inside 1-spectral clustering.

.. math:: \min_{\lVert f \rVert_2 \le 1} \; \sum_{e = (i, j)} w_e |f_i - f_j|
   + c\,(\max f - \min f) - \langle y, f \rangle

Its dual has one number in ``[-w_e, w_e]`` for each edge, and is solved by FISTA (Beck & Teboulle
2009) with three changes that the structure allows:

- The max-min term is left out, and put in at the end: for given edge duals the best `f` is
  ``y - D'a`` with its top and its bottom cut off, each by a total of `c`. Cutting off turns no
  difference around, so edge duals that are best without that term are best with it.
- Every edge has a step of its own, one over the sum of its ends' numbers of neighbours: the step
  for the worst vertex, as in Rangapuram & Hein (2012, Lemma 3.2), is the smallest of them.
- Momentum is dropped when it points uphill (O'Donoghue & Candes 2015).

An iteration is one pass over the edges, each stored once; vertex arrays stay in the cache.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit, prange
from scipy.sparse import csr_array, triu

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Int64s, UInt32s


PARALLEL_FROM = 500_000  # edges below which a second thread costs more than it brings
# Not every threading layer of numba bears two parallel kernels at once, from different threads.
ONE_AT_A_TIME = Lock()
NEWTON = 60  # steps to the levels; two or three are usual
FIRST_CHECK, LAST_CHECK = 10, 160  # iterations between two looks at the duality gap


class Edges(NamedTuple):
    """A graph with each edge stored once, in rows of the smaller vertex."""

    indptr: Int64s
    indices: UInt32s
    weight: AnyArray
    n_neighbors: AnyArray
    rows: Int64s  # borders between the blocks of rows that run in parallel


class Flow(NamedTuple):
    """The edge duals, now and one iteration ago, and what FISTA carries from step to step."""

    duals: AnyArray  # of each edge: its bound, now, and one iteration ago; side by side in memory
    sums: AnyArray  # of the duals at the vertices
    ahead: AnyArray  # of the extrapolated duals at the vertices, between two runs
    state: Floats  # t of FISTA, factor of the extrapolation, upper and lower level


class InnerSolution(NamedTuple):
    """A minimiser of unit length, its value, and how far from optimal it may be."""

    f: AnyArray
    value: float  # of the primal problem at f; negative means descent
    bound: float  # the dual value: no f is lower
    n_iter: int


def edges_of(W: csr_array, dtype: Any = np.float64) -> Edges:
    """Return the upper triangle of a symmetric graph."""
    upper = csr_array(triu(W, 1))
    upper.sort_indices()
    n = W.shape[0]
    indptr = upper.indptr.astype(np.int64)
    n_neighbors = np.bincount(upper.indices, minlength=n) + np.diff(indptr)
    # Blocks of rows with equally many edges; their number depends on the graph alone.
    n_blocks = 2 if upper.nnz >= PARALLEL_FROM else 1
    inner = np.searchsorted(indptr, upper.nnz * np.arange(1, n_blocks) // n_blocks)
    borders = np.concatenate(([0], inner, [n])).astype(np.int64)
    return Edges(
        indptr,
        upper.indices.astype(np.uint32),
        upper.data.astype(dtype),
        np.maximum(n_neighbors, 1).astype(dtype),
        borders,
    )


def new_flow(edges: Edges) -> Flow:
    """Return edge duals of zero."""
    dtype, n = edges.weight.dtype, edges.n_neighbors.size
    duals = np.zeros((edges.weight.size, 3), dtype)
    duals[:, 0] = edges.weight
    return Flow(
        duals,
        np.zeros(n, dtype),
        np.zeros(n, dtype),
        np.array([1.0, 0.0, 0.0, 0.0]),
    )


def minimize(
    edges: Edges,
    y: AnyArray,
    flow: Flow,
    *,
    c: float,
    tol: float,
    max_iter: int,
    patience: int | None = None,
    share: float = 0.5,
) -> InnerSolution:
    """Minimise over the unit ball, from the edge duals of `flow`, which it changes.

    Stops once the value is below `share` of the bound (enough of the possible descent), or below
    zero after `patience` iterations, or the bound is above ``-tol`` (there is no descent), or
    after `max_iter` iterations.
    """
    flow.ahead[:] = flow.sums  # FISTA starts anew
    flow.state[:2] = 1.0, 0.0
    best = InnerSolution(np.zeros_like(y), 0.0, -np.inf, 0)
    done, check = 0, min(FIRST_CHECK, max_iter)
    while True:
        _iterate(edges, y, flow, n_steps=check)
        done += check
        f, value, bound = _certify(edges, y, flow, c=c)
        if value < best.value:
            best = best._replace(f=f, value=value)
        best = best._replace(bound=max(bound, best.bound), n_iter=done)
        enough = share * best.bound if patience is None or done < patience else -tol
        if best.value <= enough or best.bound >= -tol or done >= max_iter:
            return best
        check = min(2 * check, LAST_CHECK, max_iter - done)


def _iterate(edges: Edges, y: AnyArray, flow: Flow, *, n_steps: int) -> None:
    """Run steps of FISTA; they change the flow."""
    # A sweep reads both of them where it reads one.
    vertex = np.empty((y.size, 2), y.dtype)
    vertex[:, 0] = y - flow.ahead
    vertex[:, 1] = edges.n_neighbors
    scratch = np.zeros((edges.rows.size - 1, y.size), y.dtype)
    if edges.rows.size <= 2:
        _run(edges, y, flow, vertex, scratch, n_steps)
    else:
        number = y.dtype.type
        with ONE_AT_A_TIME:
            for _ in range(n_steps):
                theta = number(flow.state[1])
                slope = _sweep_blocks(edges, flow.duals, vertex, scratch, theta)
                theta = number(_next_momentum(flow.state, slope))
                _advance_blocks(y, theta, flow.sums, scratch, vertex)
    flow.ahead[:] = y - vertex[:, 0]


def _certify(edges: Edges, y: AnyArray, flow: Flow, *, c: float) -> tuple[AnyArray, float, float]:
    """Return the primal vector of unit length, its value, and the dual value."""
    f = y - flow.sums
    _cut_off(f, c, flow.state)
    length = float(np.linalg.norm(f))
    if length == 0:
        return f, 0.0, 0.0
    variation = total_variation(edges.indptr, edges.indices, edges.weight, f)
    value = variation + c * float(np.ptp(f)) - float(np.vdot(y.astype(float), f))
    return f / f.dtype.type(length), value / length, -length


@njit(cache=True, nogil=True)
def total_variation(indptr, indices, weight, f):  # type: ignore[no-untyped-def]
    """Return the weighted sum of differences along the edges."""
    total = 0.0
    for i in range(indptr.size - 1):
        row = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            row += weight[e] * abs(f[i] - f[indices[e]])
        total += row
    return total


@njit(cache=True, nogil=True)
def _run(edges, y, flow, vertex, scratch, n_steps):  # type: ignore[no-untyped-def]
    state = flow.state
    number = y.dtype.type
    for _ in range(n_steps):
        slope = _sweep(edges, 0, flow.duals, vertex, scratch[0], number(state[1]))
        theta = number(_next_momentum(state, slope))
        _advance(y, theta, flow.sums, scratch, vertex, 0, y.size)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _sweep(edges, block, duals, vertex, sums, theta):  # type: ignore[no-untyped-def]
    """Move the duals of a block of rows, and add them to `sums`.

    Returns the slope of the dual along the step, for the restart.
    """
    indptr, indices = edges.indptr, edges.indices
    slope = 0.0
    for i in range(edges.rows[block], edges.rows[block + 1]):
        f_i, neighbors_i = vertex[i, 0], vertex[i, 1]
        total = sums[i]
        rising = f_i - f_i
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            a = duals[e, 1]
            g = f_i - vertex[j, 0]
            new = a + theta * (a - duals[e, 2]) + g / (neighbors_i + vertex[j, 1])
            w = duals[e, 0]
            new = min(max(new, -w), w)
            duals[e, 2] = a
            duals[e, 1] = new
            rising += g * (new - a)
            total += new
            sums[j] -= new
        sums[i] = total
        slope += rising
    return slope


@njit(cache=True, nogil=True, parallel=True)
def _sweep_blocks(edges, duals, vertex, scratch, theta):  # type: ignore[no-untyped-def]
    slopes = np.zeros(scratch.shape[0])
    for block in prange(scratch.shape[0]):
        slopes[block] = _sweep(edges, block, duals, vertex, scratch[block], theta)
    return slopes.sum()


@njit(cache=True, nogil=True, fastmath={"contract"})
def _advance(y, theta, sums, scratch, vertex, first, last):  # type: ignore[no-untyped-def]
    """Add up the blocks, extrapolate, and put the new primal vector into `vertex`.

    Leaves `scratch` empty.
    """
    new = scratch[0]
    for block in range(1, scratch.shape[0]):
        other = scratch[block]
        for i in range(first, last):
            new[i] += other[i]
            other[i] = 0
    for i in range(first, last):
        total = new[i]
        new[i] = 0
        vertex[i, 0] = y[i] - (total + theta * (total - sums[i]))
        sums[i] = total


@njit(cache=True, nogil=True, parallel=True)
def _advance_blocks(y, theta, sums, scratch, vertex):  # type: ignore[no-untyped-def]
    n_blocks = scratch.shape[0]
    for block in prange(n_blocks):
        first, last = y.size * block // n_blocks, y.size * (block + 1) // n_blocks
        _advance(y, theta, sums, scratch, vertex, first, last)


@njit(cache=True, nogil=True)
def _next_momentum(state, slope):  # type: ignore[no-untyped-def]
    """Return the factor of the next extrapolation; start anew if the last one went uphill."""
    t = 1.0 if slope < 0 else state[0]
    state[0] = (1 + np.sqrt(1 + 4 * t * t)) / 2
    state[1] = (t - 1) / state[0]
    return state[1]


@njit(cache=True, nogil=True)
def _cut_off(d, c, state):  # type: ignore[no-untyped-def]
    """Cut off the top and the bottom of `d`, a total of `c` each: the prox of the max-min term.

    Newton's method moves the levels of `state` until what is beyond them is `c`. If they cross,
    nothing is left.
    """
    if c == 0:
        return
    for _ in range(NEWTON):
        # Linear sums give the next levels: no sorting.
        above, below, n_above, n_below = _excess(d, state)
        top = state[2] + (above - c) / n_above if n_above else d.max() - c / d.size
        bottom = state[3] - (below - c) / n_below if n_below else d.min() + c / d.size
        step = abs(top - state[2]) + abs(bottom - state[3])
        state[2], state[3] = top, bottom
        if step <= 1e-7 * (abs(top) + abs(bottom)):
            break
    crossed = state[2] <= state[3]
    highest = d.dtype.type(0.0 if crossed else state[2])
    lowest = d.dtype.type(0.0 if crossed else state[3])
    for i in range(d.size):
        d[i] = min(max(d[i], lowest), highest)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _excess(d, state):  # type: ignore[no-untyped-def]
    """Return what is above the upper and below the lower level, and how many entries are.

    The levels stay in double precision: rounded, Newton's method would circle around them. Written
    so that the compiler adds up several entries at once: numbers of one kind, no calls.
    """
    top, bottom = state[2], state[3]
    above = below = n_above = n_below = 0.0
    for i in range(d.size):
        x = np.float64(d[i])
        over, under = x - top, bottom - x
        above += over if over > 0 else 0.0
        below += under if under > 0 else 0.0
        n_above += 1.0 if over > 0 else 0.0
        n_below += 1.0 if under > 0 else 0.0
    return np.array([above, below, n_above, n_below])
