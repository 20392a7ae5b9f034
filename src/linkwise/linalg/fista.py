r"""Total variation on a graph: the convex problem inside 1-spectral clustering.

.. math:: \min_{\lVert f \rVert_2 \le 1} \; \sum_{e = (i, j)} w_e |f_i - f_j|
   + c\,(\max f - \min f) - \langle y, f \rangle

Its dual has one number in ``[-w_e, w_e]`` for each edge, and is solved by FISTA (Beck & Teboulle
2009) with three changes that the structure allows:

- Both simplex variables of the max-min term are eliminated, not one: for given edge duals the best
  `f` is ``y - D'a`` with its top and its bottom cut off, each by a total of `c`.
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
    from numpy.typing import NDArray

    Floats = NDArray[Any]  # float64 or float32, all of one kind

__all__ = ["Edges", "Flow", "InnerSolution", "edges_of", "minimize", "new_flow", "total_variation"]

PARALLEL_FROM = 500_000  # edges below which a second thread costs more than it brings
# Not every threading layer of numba bears two parallel kernels at once, from different threads.
ONE_AT_A_TIME = Lock()
NEWTON = 60  # steps to the levels; two or three are usual
FIRST_CHECK, LAST_CHECK = 10, 160  # iterations between two looks at the duality gap


class Edges(NamedTuple):
    """A graph with each edge stored once, in rows of the smaller vertex."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    weight: Floats
    n_neighbors: Floats
    rows: NDArray[np.int64]  # borders between the blocks of rows that run in parallel

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self.n_neighbors.size


class Flow(NamedTuple):
    """The edge duals, now and one iteration ago, and what FISTA carries from step to step."""

    duals: Floats  # of each edge: its bound, now, and one iteration ago; side by side in memory
    sums: Floats  # of the duals at the vertices
    ahead: Floats  # of the extrapolated duals at the vertices, between two runs
    state: NDArray[np.float64]  # t of FISTA, factor of the extrapolation, upper and lower level

    @property
    def now(self) -> Floats:
        """The edge duals."""
        return self.duals[:, 1]


class InnerSolution(NamedTuple):
    """A minimiser of unit length, its value, and how far from optimal it may be."""

    f: Floats
    value: float  # of the primal problem at f; negative means descent
    bound: float  # the dual value: no f is lower
    n_iter: int

    @property
    def gap(self) -> float:
        """Duality gap."""
        return self.value - self.bound


def edges_of(W: csr_array, dtype: Any = np.float64) -> Edges:
    """Return the upper triangle of a symmetric graph."""
    upper = csr_array(triu(W, 1))
    upper.sort_indices()
    n = W.shape[0]
    indptr = upper.indptr.astype(np.int64)
    ends = np.bincount(upper.indices, minlength=n) + np.diff(indptr)
    return Edges(
        indptr,
        upper.indices.astype(np.uint32),
        upper.data.astype(dtype),
        np.maximum(ends, 1).astype(dtype),
        _borders(indptr),
    )


def _borders(indptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut the rows into blocks with equally many edges; the number depends on the graph alone."""
    n_edges = int(indptr[-1])
    n_blocks = 2 if n_edges >= PARALLEL_FROM else 1
    inner = np.searchsorted(indptr, n_edges * np.arange(1, n_blocks) // n_blocks)
    return np.concatenate(([0], inner, [indptr.size - 1])).astype(np.int64)


def new_flow(edges: Edges) -> Flow:
    """Return edge duals of zero."""
    dtype = edges.weight.dtype
    duals = np.zeros((edges.weight.size, 3), dtype)
    duals[:, 0] = edges.weight
    return Flow(
        duals,
        np.zeros(edges.n_vertices, dtype),
        np.zeros(edges.n_vertices, dtype),
        np.array([1.0, 0.0, 0.0, 0.0]),
    )


def minimize(
    edges: Edges,
    y: Floats,
    c: float,
    flow: Flow,
    *,
    tol: float,
    max_iter: int,
    patience: int | None = None,
    share: float = 0.5,
) -> tuple[InnerSolution, Flow]:
    """Minimise over the unit ball, from the edge duals of `flow`, which is used up.

    Stops once the value is below `share` of the bound (enough of the possible descent), or below
    zero after `patience` iterations, or the bound is above ``-tol`` (there is no descent), or
    after `max_iter` iterations.
    """
    flow = _restarted(flow)
    best = InnerSolution(np.zeros_like(y), 0.0, -np.inf, 0)
    done, check = 0, min(FIRST_CHECK, max_iter)
    while True:
        flow = _iterate(edges, y, c, flow, check)
        done += check
        f, value, bound = _certify(edges, y, c, flow)
        if value < best.value:
            best = best._replace(f=f, value=value)
        best = best._replace(bound=max(bound, best.bound), n_iter=done)
        enough = share * best.bound if patience is None or done < patience else -tol
        if best.value <= enough or best.bound >= -tol or done >= max_iter:
            return best, flow
        check = min(2 * check, LAST_CHECK, max_iter - done)


def _restarted(flow: Flow) -> Flow:
    flow.ahead[:] = flow.sums
    flow.state[:2] = 1.0, 0.0
    return flow


def _iterate(edges: Edges, y: Floats, c: float, flow: Flow, n_steps: int) -> Flow:
    vertex = np.empty((y.size, 2), y.dtype)
    vertex[:, 0] = y - flow.ahead
    vertex[:, 1] = edges.n_neighbors
    scratch = np.zeros((edges.rows.size - 1, y.size), y.dtype)
    if edges.rows.size <= 2:
        _run(edges, y, c, flow, vertex, scratch, n_steps)
    else:
        with ONE_AT_A_TIME:
            _run_threads(edges, y, c, flow, vertex, scratch, n_steps)
    flow.ahead[:] = y - vertex[:, 0]
    return flow


def _certify(edges: Edges, y: Floats, c: float, flow: Flow) -> tuple[Floats, float, float]:
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
def _run(edges, y, c, flow, vertex, scratch, n_steps):  # type: ignore[no-untyped-def]
    state = flow.state
    number = y.dtype.type
    d = vertex[:, 0]
    beyond = np.empty((2, y.size), y.dtype)
    excess = _excess(d, state)
    for _ in range(n_steps):
        if c:
            _find_levels(d, c, state, excess, beyond)
        top, bottom = _levels(c, state)
        factor, top, bottom = number(state[1]), number(top), number(bottom)
        slope = _sweep(edges, 0, flow.duals, vertex, scratch[0], factor, top, bottom)
        theta = number(_next_momentum(state, slope))
        excess = _advance(y, theta, flow.sums, scratch, vertex, 0, y.size, state)


def _run_threads(
    edges: Edges, y: Floats, c: float, flow: Flow, vertex: Floats, scratch: Floats, n_steps: int
) -> None:
    state = flow.state
    number = y.dtype.type
    d, n_blocks = vertex[:, 0], edges.rows.size - 1
    beyond = np.empty((2, y.size), y.dtype)
    excess = _excess_blocks(d, state, n_blocks)
    for _ in range(n_steps):
        if c:
            _find_levels_blocks(d, c, state, excess, beyond, n_blocks)
        levels = np.array([state[1], *_levels(c, state)]).astype(number)
        slope = _sweep_blocks(edges, flow.duals, vertex, scratch, *levels)
        theta = number(_next_momentum(state, slope))
        excess = _advance_blocks(y, theta, flow.sums, scratch, vertex, state)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _sweep(edges, block, duals, vertex, sums, theta, top, bottom):  # type: ignore[no-untyped-def]
    """Move the duals of a block of rows, and add them to `sums`.

    The primal vector is cut off at both levels here, where it is read. Returns the slope of the
    dual along the step, for the restart.
    """
    indptr, indices = edges.indptr, edges.indices
    slope = 0.0
    for i in range(edges.rows[block], edges.rows[block + 1]):
        f_i, neighbors_i = min(max(vertex[i, 0], bottom), top), vertex[i, 1]
        total = sums[i]
        rising = f_i - f_i
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            a = duals[e, 1]
            g = f_i - min(max(vertex[j, 0], bottom), top)
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
def _sweep_blocks(edges, duals, vertex, scratch, theta, top, bottom):  # type: ignore[no-untyped-def]
    slopes = np.zeros(scratch.shape[0])
    for block in prange(scratch.shape[0]):
        slopes[block] = _sweep(edges, block, duals, vertex, scratch[block], theta, top, bottom)
    return slopes.sum()


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _advance(y, theta, sums, scratch, vertex, first, last, state):  # type: ignore[no-untyped-def]
    """Add up the blocks, extrapolate, and put the new primal vector into `vertex`.

    It is not cut off yet: returns what is beyond the last levels. Leaves `scratch` empty.
    """
    top, bottom = state[2], state[3]
    above = below = 0.0
    n_above = n_below = 0
    for i in range(first, last):
        total = scratch[0, i]
        scratch[0, i] = 0
        for block in range(1, scratch.shape[0]):
            total += scratch[block, i]
            scratch[block, i] = 0
        x = y[i] - (total + theta * (total - sums[i]))
        sums[i] = total
        vertex[i, 0] = x
        above += max(x - top, 0.0)
        below += max(bottom - x, 0.0)
        n_above += x > top
        n_below += x < bottom
    return np.array([above, below, float(n_above), float(n_below)])


@njit(cache=True, nogil=True, parallel=True)
def _advance_blocks(y, theta, sums, scratch, vertex, state):  # type: ignore[no-untyped-def]
    n_blocks = scratch.shape[0]
    parts = np.zeros((n_blocks, 4))
    for block in prange(n_blocks):
        first, last = y.size * block // n_blocks, y.size * (block + 1) // n_blocks
        parts[block] = _advance(y, theta, sums, scratch, vertex, first, last, state)
    return parts.sum(axis=0)


@njit(cache=True, nogil=True)
def _next_momentum(state, slope):  # type: ignore[no-untyped-def]
    """Return the factor of the next extrapolation; start anew if the last one went uphill."""
    t = 1.0 if slope < 0 else state[0]
    state[0] = (1 + np.sqrt(1 + 4 * t * t)) / 2
    state[1] = (t - 1) / state[0]
    return state[1]


@njit(cache=True, nogil=True)
def _cut_off(d, c, state):  # type: ignore[no-untyped-def]
    """Cut off the top and the bottom of `d`, a total of `c` each: the prox of the max-min term."""
    if c == 0:
        return
    _find_levels(d, c, state, _excess(d, state), np.empty((2, d.size), d.dtype))
    top, bottom = _levels(c, state)
    top, bottom = d.dtype.type(top), d.dtype.type(bottom)
    for i in range(d.size):
        d[i] = min(max(d[i], bottom), top)


@njit(cache=True, nogil=True)
def _levels(c, state):  # type: ignore[no-untyped-def]
    """Return where to cut off; if the levels cross, nothing is left."""
    if c == 0:
        return np.inf, -np.inf
    return (state[2], state[3]) if state[2] > state[3] else (0.0, 0.0)


@njit(cache=True, nogil=True)
def _find_levels(d, c, state, excess, beyond):  # type: ignore[no-untyped-def]
    """Move the levels until what is beyond them is `c`, from what is beyond them now.

    The sums are convex, so a step of Newton's method from anywhere stops short of the level: what
    is beyond it then is all that the next steps need.
    """
    for _ in range(NEWTON):
        is_step = excess[2] > 0 and excess[3] > 0
        if not _newton(d, c, state, excess):
            return
        if is_step:
            ends = np.empty((1, 2), np.int64)
            ends[0] = _collect(d, state, beyond, 0, d.size)
            _settle(c, state, beyond, ends)
            return
        excess = _excess(d, state)


@njit(cache=True, nogil=True)
def _find_levels_blocks(d, c, state, excess, beyond, n_blocks):  # type: ignore[no-untyped-def]
    """Do the same on several blocks at once."""
    for _ in range(NEWTON):
        is_step = excess[2] > 0 and excess[3] > 0
        if not _newton(d, c, state, excess):
            return
        if is_step:
            _settle(c, state, beyond, _collect_blocks(d, state, beyond, n_blocks))
            return
        excess = _excess_blocks(d, state, n_blocks)


@njit(cache=True, nogil=True)
def _collect(d, state, beyond, first, last):  # type: ignore[no-untyped-def]
    """Put what is beyond each level into its row, from `first` on; return where it ends."""
    top, bottom = state[2], state[3]
    above = below = first
    for i in range(first, last):
        x = d[i]
        beyond[0, above] = x
        beyond[1, below] = x
        above += x > top
        below += x < bottom
    return above, below


@njit(cache=True, nogil=True, parallel=True)
def _collect_blocks(d, state, beyond, n_blocks):  # type: ignore[no-untyped-def]
    ends = np.empty((n_blocks, 2), np.int64)
    for block in prange(n_blocks):
        first, last = d.size * block // n_blocks, d.size * (block + 1) // n_blocks
        ends[block, 0], ends[block, 1] = _collect(d, state, beyond, first, last)
    return ends


@njit(cache=True, nogil=True)
def _settle(c, state, beyond, ends):  # type: ignore[no-untyped-def]
    """Go on with Newton's method on what was collected."""
    n_blocks, n = ends.shape[0], beyond.shape[1]
    for _ in range(NEWTON):
        total = np.zeros(4)
        for block in range(n_blocks):
            first = n * block // n_blocks
            total[0::2] += _excess(beyond[0, first : ends[block, 0]], state)[0::2]
            total[1::2] += _excess(beyond[1, first : ends[block, 1]], state)[1::2]
        if not (total[2] and total[3] and _newton(beyond[0], c, state, total)):
            return


@njit(cache=True, nogil=True)
def _excess(d, state):  # type: ignore[no-untyped-def]
    """Return what is above the upper and below the lower level, and how many entries are.

    The levels stay in double precision: rounded, Newton's method would circle around them.
    """
    top, bottom = state[2], state[3]
    above = below = 0.0
    n_above = n_below = 0
    for x in d:
        above += max(x - top, 0.0)
        below += max(bottom - x, 0.0)
        n_above += x > top
        n_below += x < bottom
    return np.array([above, below, float(n_above), float(n_below)])


@njit(cache=True, nogil=True, parallel=True)
def _excess_blocks(d, state, n_blocks):  # type: ignore[no-untyped-def]
    parts = np.zeros((n_blocks, 4))
    for block in prange(n_blocks):
        first, last = d.size * block // n_blocks, d.size * (block + 1) // n_blocks
        parts[block] = _excess(d[first:last], state)
    return parts.sum(axis=0)


@njit(cache=True, nogil=True)
def _newton(d, c, state, excess):  # type: ignore[no-untyped-def]
    """Move the levels to where linear sums put them: no sorting. Return whether they moved."""
    above, below, n_above, n_below = excess
    top = state[2] + (above - c) / n_above if n_above else d.max() - c / d.size
    bottom = state[3] - (below - c) / n_below if n_below else d.min() + c / d.size
    step = abs(top - state[2]) + abs(bottom - state[3])
    state[2], state[3] = top, bottom
    return step > 1e-7 * (abs(top) + abs(bottom))
