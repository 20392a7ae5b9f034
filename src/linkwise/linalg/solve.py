r"""Linear systems of graphs, solved with a certificate.

`W` is a symmetric non-negative adjacency without loops, a ``csr_array`` or a dense array, and
`S` its normalised adjacency. Three problems, for blocks of right-hand sides:

=================  ======================================================================
`dirichlet`        :math:`L_{uu} F_u = W_{ul} Y_l`: the harmonic extension of known values
`resolvent`        :math:`(I - \alpha S) X = B`
`poisson_solve`    :math:`L U = B` with `B` orthogonal to the kernel of :math:`L = D - W`
=================  ======================================================================

Each is scaled to a unit diagonal (Jacobi) and solved in one of two ways: by a sparse or dense
factorisation, or by conjugate gradients on all columns at once. Nothing is inverted, and nothing of
size n x n is formed from a sparse graph.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array, csr_array, diags_array, issparse
from scipy.sparse.linalg import splu

from linkwise.exceptions import ConvergenceWarning
from linkwise.linalg.blocks import BlockMatrix, edges_between, in_blocks, kept_where
from linkwise.linalg.laplacian import (
    degrees,
    diagonal_minus,
    inverse_sqrt,
    normalized_adjacency,
    scaled,
    symmetric_components,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Bools, Floats, Ints, Matrix


Method: TypeAlias = Literal["auto", "direct", "cg"]

# Below this size a sparse factorisation takes milliseconds; above it the fill of neighbour graphs
# in many dimensions makes it slower than conjugate gradients.
DIRECT_LIMIT = 1_000
# Conjugate gradients are slow on graphs of paths and thin strips, and these have little fill: up
# to this size they are factorised after all when the iteration has not converged.
SECOND_CHANCE_LIMIT = 20_000
TOL = 1e-10
MAX_ITER = 2_000
# Entries of a block of right-hand sides that are solved together: an iteration has four of these,
# of 130 MB each. At a million rows these are 16 columns.
BLOCK_ENTRIES = 16_000_000
SLACK = 10  # the recursive residual of conjugate gradients drifts from the true one

# An edge below this share of the degrees of both its ends conducts nothing that double precision
# could tell from rounding.
FAINT = 1e-10


class Solution(NamedTuple):
    """The solution of a block of systems, with its certificate."""

    x: Floats
    residuals: Floats  # ||b - A x|| / (||b|| + ||x||) of the scaled system, for each column
    n_iter: int  # iterations of conjugate gradients; 0 for a factorisation
    converged: bool


def definite_solve(
    A: Matrix, B: Floats, *, method: Method = "auto", tol: float = TOL, max_iter: int = MAX_ITER
) -> Solution:
    """Solve ``A X = B`` for a symmetric positive definite `A`.

    ``method="direct"`` factorises (dense: Cholesky; sparse: SuperLU without pivoting), ``"cg"``
    runs conjugate gradients with Jacobi's preconditioner, ``"auto"`` factorises dense and small
    matrices, and sparse ones of up to 20,000 rows on which conjugate gradients fail. These stop
    when every column has ``||b - A x|| <= tol ||b||`` in the scaled system. A residual of ten times
    ``tol (||b|| + ||x||)`` counts as converged.

    Examples
    --------
    >>> A = csr_array([[2.0, -1.0], [-1.0, 2.0]])
    >>> definite_solve(A, np.array([[3.0], [0.0]])).x.round(12).tolist()
    [[2.0], [1.0]]
    """
    s = 1 / np.sqrt(A.diagonal())
    A = A if (s == 1).all() else scaled(A, s)
    B = s[:, None] * B
    found = _solved(A, B, lambda: _factorized(A, B), method=method, tol=tol, max_iter=max_iter)
    return found._replace(x=s[:, None] * found.x)


def resolvent(S: Matrix, alpha: float, B: Floats, **options: Any) -> Solution:
    """Solve ``(I - alpha S) X = B`` for a symmetric `S` of norm 1 and ``0 <= alpha < 1``.

    The condition number is at most ``(1 + alpha) / (1 - alpha)``: conjugate gradients take some
    20 iterations at ``alpha=0.5`` and 150 at 0.99, whatever the size. Options are those of
    `definite_solve`.

    Examples
    --------
    >>> S = csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> resolvent(S, 0.5, np.array([[3.0], [0.0]])).x.round(12).tolist()
    [[4.0], [2.0]]
    """
    return definite_solve(_identity_minus(alpha * S), B, **options)


def dirichlet(W: Matrix, fixed: Bools, values: Floats, **options: Any) -> Solution:
    """Extend `values` harmonically from the vertices `fixed` to all, one problem a column.

    Solves

    .. math:: L_{uu} F_u = W_{ul} Y_l

    so that every other vertex has the weighted mean of its neighbours' values, within the range of
    the given ones (maximum principle). Components without a fixed vertex have no harmonic
    extension: they get 0. `options` are `method`, `tol` and `max_iter` of `definite_solve`.

    Vertices without a fixed one among them that hang on the rest by edges below 1e-10 of the
    degrees of both ends would make the system singular to rounding. Their extension is constant to
    that precision, so they are contracted to one vertex and solved afterwards.

    Examples
    --------
    >>> path = np.diag([1.0, 1.0, 1.0], 1)
    >>> known = np.array([True, False, False, True])
    >>> dirichlet(csr_array(path + path.T), known, np.array([[0.0], [3.0]])).x[:, 0].round(9)
    array([0., 1., 2., 3.])
    """
    F = np.zeros((fixed.size, values.shape[1]))
    F[fixed] = values
    stages = _extend(W, fixed, F, **options)
    reached = _shares_component(symmetric_components(W)[1], fixed)
    np.clip(F, values.min(axis=0), values.max(axis=0), out=F, where=reached[:, None])
    return Solution(
        F,
        np.max([stage.residuals for stage in stages], axis=0, initial=0.0),
        sum(stage.n_iter for stage in stages),
        all(stage.converged for stage in stages),
    )


def poisson_solve(
    W: Matrix, B: Floats, *, method: Method = "auto", tol: float = TOL, max_iter: int = MAX_ITER
) -> Solution:
    """Solve ``L U = B`` for the Laplacian ``L = D - W``; settings as in `definite_solve`.

    The graph may have several components, but no faint edges, see `solid`. The sum of `B` over each
    component is subtracted evenly: without that there is no solution. The one returned has
    ``sum_i d_i u_i = 0`` in each component.

    Examples
    --------
    >>> W, B = np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([[1.0], [-1.0]])
    >>> poisson_solve(W, B).x.round(12).tolist()
    [[0.25], [-0.25]]
    """
    d = degrees(W)
    n_components, component = symmetric_components(W)
    kernel = _kernel(np.sqrt(d), component)
    s = inverse_sqrt(d)[:, None]
    sums = csr_array((np.ones(d.size), (component, np.arange(d.size))), (n_components, d.size))
    B = B - ((sums @ B) / np.bincount(component)[:, None])[component]
    B *= s
    A = _identity_minus(normalized_adjacency(W, d))
    found = _solved(
        A,
        B,
        lambda: _grounded(A, B, _heaviest(d, component)),
        method=method,
        tol=tol,
        max_iter=max_iter,
    )
    return found._replace(x=s * (found.x - kernel.T @ (kernel @ found.x)))


def solid(W: Matrix) -> Matrix:
    """Return the graph without the edges that are faint at both of their ends.

    An edge is faint at a vertex below 1e-10 of its degree. A vertex always keeps its heaviest
    edge.
    """
    d = degrees(W)
    if isinstance(W, BlockMatrix):
        return W.mapped(_solid_block, d)
    if not issparse(W):
        return np.where(FAINT * np.minimum.outer(d, d) <= W, W, 0.0)
    return _solid_block(W, d)


def _solid_block(W: csr_array, d: Floats) -> csr_array:
    """Return rows of a graph without faint edges, given the degrees of their columns."""
    rows = np.repeat(d[: W.shape[0]], np.diff(W.indptr))
    keep = W.data >= FAINT * np.minimum(rows, d[W.indices])
    if keep.all():
        return W
    kept = csr_array((W.data * keep, W.indices.copy(), W.indptr.copy()), shape=W.shape)
    kept.eliminate_zeros()
    return kept


# --- parts of graphs


def _extend(W: Matrix, fixed: Bools, F: Floats, **options: Any) -> list[Solution]:
    """Fill the rows of `F` that are not fixed, stage by stage; return the certificates.

    A stage solves the components of the solid graph that hold a fixed vertex. The others, to which
    only faint edges lead, do not act back on these: they are contracted for the next stage, in
    which all vertices so far are fixed.
    """
    _, component = symmetric_components(solid(W))
    anchored = _shares_component(component, fixed)
    stages = []
    unknown = anchored & ~fixed
    if unknown.any():
        inner = _inner_in_blocks if isinstance(W, BlockMatrix) else _inner
        stages.append(inner(W, anchored, fixed, F=F, **options))
    if anchored.all():
        return stages
    label = np.where(anchored, component.max() + 1 + np.arange(component.size), component)
    if isinstance(W, BlockMatrix):
        W, label, chosen = _rest(W, label, ~anchored)
        anchored, all_F = anchored[chosen], F
        F = all_F[chosen]
    else:
        chosen, all_F = np.arange(component.size), F
    if not _block(W, ~anchored, anchored).sum():
        return stages
    _, first, node = np.unique(label, return_index=True, return_inverse=True)
    coarse = F[first]
    stages += _extend(_contracted(W, node), anchored[first], coarse, **options)
    all_F[chosen[~anchored]] = coarse[node[~anchored]]
    return stages


def _inner(W: Matrix, anchored: Bools, fixed: Bools, *, F: Floats, **options: Any) -> Solution:
    """Fill the rows of `F` that are anchored and not fixed."""
    graph = _block(W, anchored, anchored)
    inner = ~fixed[anchored]
    s = inverse_sqrt(degrees(graph))[inner, None]
    B = s * (_block(graph, inner, ~inner) @ F[fixed])
    A = _identity_minus(_block(normalized_adjacency(graph), inner, inner))
    found = definite_solve(A, B, **options)
    F[anchored & ~fixed] = s * found.x
    return found


def _inner_in_blocks(
    W: BlockMatrix, anchored: Bools, fixed: Bools, *, F: Floats, **options: Any
) -> Solution:
    """Do the same where rows stay in their blocks: those of other vertices get no entries."""
    graph = W if anchored.all() else W.mapped(kept_where, anchored)
    inner = anchored & ~fixed
    s = inverse_sqrt(degrees(graph)) * inner
    B = s[:, None] * (graph @ (F * fixed[:, None]))
    found = definite_solve(_identity_minus(scaled(graph, s)), B, **options)
    F[inner] = (s[:, None] * found.x)[inner]
    return found


def _rest(W: BlockMatrix, label: Ints, outside: Bools) -> tuple[csr_array, Ints, Ints]:
    """Return the graph between the nodes outside and all that they touch, on this machine.

    Also the node of each of its vertices, and which ones these are.
    """
    edges = np.concatenate(W.collected(edges_between, label, outside, np.arange(label.size)))
    ends = edges[:, :2].astype(np.intp)
    chosen = np.union1d(ends.ravel(), np.flatnonzero(outside))
    i, j = np.searchsorted(chosen, ends.T)
    graph = csr_array((edges[:, 2], (i, j)), shape=(chosen.size, chosen.size))
    return csr_array(graph.maximum(graph.T)), label[chosen], chosen


def _contracted(W: Matrix, node: Ints) -> Matrix:
    """Merge the vertices of a node; the inside becomes a loop, which is dropped."""
    P = csr_array((np.ones(node.size), (np.arange(node.size), node)))
    W = P.T @ W @ P
    if not issparse(W):
        return W - np.diag(W.diagonal())
    W = csr_array(W - diags_array(W.diagonal()))
    W.eliminate_zeros()
    return W


def _shares_component(component: Ints, fixed: Bools) -> Bools:
    """Which vertices share a component with a fixed one."""
    reached = np.zeros(int(component.max()) + 1, dtype=bool)
    reached[component[fixed]] = True
    return reached[component]


def _heaviest(d: Floats, component: Ints) -> Bools:
    """Mark one vertex of each component: the first of largest degree."""
    order = np.lexsort((-d, component))
    first = np.unique(component[order], return_index=True)[1]
    marked = np.zeros(d.size, dtype=bool)
    marked[order[first]] = True
    return marked


def _kernel(profile: Floats, component: Ints) -> csr_array:
    """Return the unit vectors, one row a component, that are `profile` on it and 0 elsewhere."""
    lengths = np.sqrt(np.bincount(component, weights=profile**2))
    unit = profile / np.where(lengths > 0, lengths, 1.0)[component]
    return csr_array((unit, (component, np.arange(profile.size))))


# --- matrices


def _identity_minus(S: Matrix) -> Matrix:
    return diagonal_minus(np.ones(S.shape[0]), S)


def _block(W: Matrix, rows: Bools, columns: Bools) -> Matrix:
    return W[rows][:, columns]


# --- the two ways


def _solved(
    A: Matrix,
    B: Floats,
    direct: Callable[[], Floats | None],
    *,
    method: Method,
    tol: float,
    max_iter: int,
) -> Solution:
    """Solve ``A X = B`` by a factorisation or by conjugate gradients, whichever suits.

    `direct` factorises, and returns the solution; None if the matrix is singular to rounding.
    """
    if isinstance(A, BlockMatrix):
        method = "cg"
    is_small = not issparse(A) or A.shape[0] <= DIRECT_LIMIT
    X = direct() if method == "direct" or (method == "auto" and is_small) else None
    if X is None:
        found = _conjugate_gradients(A, B, tol, max_iter=max_iter)
        if not found.converged and method == "auto" and A.shape[0] <= SECOND_CHANCE_LIMIT:
            X = direct()
    if X is not None:
        found = _certified(A, B, X, tol=tol)
    if not found.converged:
        _warn(found, tol)
    return found


def _factorized(A: Matrix, B: Floats) -> Floats | None:
    """Solve by a factorisation; None if `A` is singular to rounding."""
    try:
        if not issparse(A):
            factor = cho_factor(A, check_finite=False)
            return np.asarray(cho_solve(factor, B, check_finite=False))
        lu = splu(
            csc_array(A),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except (np.linalg.LinAlgError, RuntimeError):
        return None
    return np.asarray(lu.solve(B))


def _grounded(A: Matrix, B: Floats, ground: Bools) -> Floats | None:
    """Solve ``A X = B``, `B` in the range of `A`, with the value 0 at the ground.

    Isolated vertices have no equation: all of them are ground.
    """
    X = np.zeros_like(B)
    free = ~ground
    if free.any():
        found = _factorized(_block(A, free, free), B[free])
        if found is None:
            return None
        X[free] = found
    return X


def _conjugate_gradients(A: Matrix, B: Floats, tol: float, *, max_iter: int) -> Solution:
    """Solve ``A X = B`` by conjugate gradients, some columns at a time if they are many.

    `A` may be singular if `B` is in its range.
    """
    n_blocks = A.n_blocks if isinstance(A, BlockMatrix) else 1
    width = max(1, BLOCK_ENTRIES * n_blocks // B.shape[0])
    if B.shape[1] <= width:
        return _side_by_side(A, B, tol, max_iter=max_iter)
    X, residuals, n_iter, converged = np.empty_like(B), np.empty(B.shape[1]), 0, True
    for first in range(0, B.shape[1], width):
        part = slice(first, first + width)
        found = _side_by_side(A, np.ascontiguousarray(B[:, part]), tol, max_iter=max_iter)
        X[:, part], residuals[part] = found.x, found.residuals
        n_iter, converged = max(n_iter, found.n_iter), converged and found.converged
    return Solution(X, residuals, n_iter, converged)


def _side_by_side(A: Matrix, B: Floats, tol: float, *, max_iter: int) -> Solution:
    """Run conjugate gradients on all columns at once: one product with a block an iteration.

    Columns that are done leave the block.
    """
    X = np.zeros_like(B)
    limit = tol * np.linalg.norm(B, axis=0)
    active = np.flatnonzero(limit > 0)
    x, P = in_blocks(A, X[:, active]), in_blocks(A, B[:, active])
    R, squared = P, P.dots(P)
    n_iter = 0
    while active.size and n_iter < max_iter:
        n_iter += 1
        AP = P.times(A)
        step = squared / P.dots(AP)
        x, R = x.plus(step, P), R.plus(-step, AP)
        before, squared = squared, R.dots(R)
        done = np.sqrt(squared) <= limit[active]
        P = R.plus(squared / before, P)
        if done.any():
            X[:, active[done]] = x.columns(done).gathered()
            x, R, P = (block.columns(~done) for block in (x, R, P))
            active, squared = active[~done], squared[~done]
    if active.size:
        X[:, active] = x.gathered()
    return _certified(A, B, X, tol=tol, n_iter=n_iter)


def _certified(A: Matrix, B: Floats, X: Floats, *, tol: float, n_iter: int = 0) -> Solution:
    # A has a unit diagonal, so the norm of A X is about that of X: a solution much larger than B
    # leaves a residual of its own rounding.
    size = np.linalg.norm(B, axis=0) + np.linalg.norm(X, axis=0)
    residuals = np.linalg.norm(B - A @ X, axis=0) / np.where(size > 0, size, 1.0)
    return Solution(X, residuals, n_iter, bool((residuals <= SLACK * tol).all()))


def _warn(found: Solution, tol: float) -> None:
    message = (
        f"{np.sum(~(found.residuals <= SLACK * tol))} of {found.residuals.size} linear systems "
        f"were not solved to tol={tol:g}: the largest relative residual is "
        f"{found.residuals.max():.1e} after {found.n_iter} iterations. Rows far from all "
        "fixed values or sources are uncertain; a denser graph, or more of these, help."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=4)
