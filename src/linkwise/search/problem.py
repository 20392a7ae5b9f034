"""The contracted graph that is searched, its cannot-links and soft pairs, and its coarse levels.

Must-linked samples are one vertex. Volumes and inner weights add up, so the normalised cut of a
partition of the small graph is the normalised cut of the same partition of the samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import block_array, coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from linkwise._jit import njit
from linkwise._kernels import new_stream, shuffle, uniform
from linkwise.constraints.coloring import CannotLinkGraph
from linkwise.constraints.table import symmetric_matrix
from linkwise.linalg.laplacian import degrees

if TYPE_CHECKING:
    from linkwise._types import Floats, Int32s, Int64s

# The volume of a vertex without edges, as a share of the mean: it costs 1 to stand alone.
ISOLATED_VOLUME = 1e-6
NOISE = 0.5  # matchings differ from call to call, so that repeated cycles see other graphs
STALLED = 0.9  # a level that keeps more than this share of its vertices is not worth having


class Groups(NamedTuple):
    """What constraints leave open: groups of samples, cannot-linked groups, and soft pairs.

    Items are the samples, followed by anchors: one for each given label, if labels may be wrong.
    """

    of_sample: Int32s  # the group of each item
    n_groups: int
    apart: CannotLinkGraph
    soft: csr_array  # symmetric over items; must-links positive, cannot-links negative
    feasible: Int32s  # a partition of the groups that satisfies every cannot-link
    n_anchors: int = 0


class Problem(NamedTuple):
    """What the search minimises, in compressed rows.

    ``F(z) = sum_c (1 - A_c / V_c) + gamma * (violated soft weight)`` over partitions `z` that give
    cannot-linked vertices different clusters; `V_c` is the volume of a cluster and `A_c` the
    weight inside it, each edge counted twice.
    """

    indptr: Int64s
    indices: Int32s
    weight: Floats
    volume: Floats  # degree of each vertex, inner weight included
    loop: Floats  # weight inside each vertex, counted twice
    n_samples: Int64s  # in each vertex; a cluster without samples is empty
    apart_indptr: Int64s  # cannot-links
    apart_indices: Int32s
    soft_indptr: Int64s  # soft pairs: must-links positive, cannot-links negative
    soft_indices: Int32s
    soft_weight: Floats
    gamma: float = 0.0  # penalty of violated soft weight

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self.volume.size


def build_problem(W: csr_array, groups: Groups, *, mass: Floats | None = None) -> Problem:
    """Contract the graph `W` of samples, and soft pairs of samples, to groups.

    Diagonals of `W` are ignored, as everywhere. With `mass`, at least the degree of each sample,
    cuts are divided by the mass of a cluster, not its volume: the difference is weight of a sample
    to itself.
    """
    parent, n = groups.of_sample, groups.n_groups
    indptr, indices, weight, inside = _contracted(W, groups)
    # The diagonal was added to `inside` as if it were an edge.
    diagonal = W.diagonal()
    inside -= np.bincount(parent, weights=diagonal, minlength=n)
    degree = degrees(W) - diagonal
    if mass is not None:
        inside += np.bincount(parent, weights=mass - degree, minlength=n)
        degree = mass
    volume = np.bincount(parent, weights=degree, minlength=n).astype(np.float64)
    mean = volume.sum() / W.shape[0] if volume.sum() > 0 else 1.0
    volume[volume <= 0] = ISOLATED_VOLUME * mean
    empty = edgeless_problem(groups, degree)
    return empty._replace(
        indptr=indptr,
        indices=indices,
        weight=weight,
        volume=volume,
        loop=np.maximum(inside, 0.0),
    )


def edgeless_problem(groups: Groups, mass: Floats) -> Problem:
    """Return a problem of pairs alone; `mass` of the samples takes the place of the volume."""
    parent, n = groups.of_sample, groups.n_groups
    samples = parent[: parent.size - groups.n_anchors]
    soft_indptr, soft_indices, soft_weight, _ = _contracted(groups.soft, groups)
    return Problem(
        np.zeros(n + 1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0),
        np.bincount(parent, weights=mass, minlength=n).astype(np.float64),
        np.zeros(n),
        np.bincount(samples, minlength=n).astype(np.int64),
        *groups.apart,
        soft_indptr,
        soft_indices,
        soft_weight,
    )


def merge_for_two(groups: Groups) -> Groups:
    """Merge what two clusters can only keep together: the two sides of connected cannot-links.

    Exact for two clusters. Each connected component of cannot-links becomes two groups with one
    link. The links must not contain an odd ring.
    """
    g = groups.n_groups
    links = csr_array(
        (np.ones(groups.apart.indices.size, np.int8), groups.apart.indices, groups.apart.indptr),
        shape=(g, g),
    )
    # The bipartite double cover: every group even and odd; a link joins different parities.
    cover = block_array([[None, links], [links, None]], format="csr")
    _, part = connected_components(cover, directed=False)
    sides, side = np.unique(part[:g], return_inverse=True)
    linked = np.flatnonzero(np.diff(groups.apart.indptr))
    opposite = np.searchsorted(sides, part[g:][linked])
    pairs = np.unique(np.sort(np.column_stack((side[linked], opposite)), axis=1), axis=0)
    graph = symmetric_matrix(pairs, np.ones(len(pairs)), sides.size)
    feasible = np.empty(sides.size, np.int32)
    feasible[side] = groups.feasible
    return groups._replace(
        of_sample=side[groups.of_sample].astype(np.int32),
        n_groups=sides.size,
        apart=CannotLinkGraph(graph.indptr.astype(np.int64), graph.indices.astype(np.int32)),
        feasible=feasible,
    )


def graph_only(problem: Problem) -> csr_array:
    """Return the graph of a problem, inner weights on the diagonal."""
    n = problem.n_vertices
    graph = csr_array((problem.weight, problem.indices, problem.indptr), shape=(n, n))
    loops = np.arange(n)
    return csr_array(graph + coo_array((problem.loop, (loops, loops)), shape=(n, n)))


def rescaled(W: csr_array) -> tuple[csr_array, float]:
    """Return the graph in units of its largest weight, and that; 1 if there is none.

    No scale of the weights under- or overflows then.
    """
    largest = float(W.max()) if W.nnz else 0.0
    if largest <= 0:
        return W, 1.0
    # Not W / largest: scipy multiplies by the inverse, which may be infinite.
    return csr_array((W.data / largest, W.indices, W.indptr), W.shape), largest


# Contraction ---------------------------------------------------------------------------------


def _contracted(A: csr_array, groups: Groups) -> tuple[Int64s, Int32s, Floats, Floats]:
    """Contract a matrix of items to groups, in the types that the kernels are compiled for."""
    rows = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data.astype(np.float64)
    return contract(*rows, groups.of_sample, groups.n_groups)


@njit(cache=True, nogil=True)
def contract(
    indptr: Int64s, indices: Int32s, weight: Floats, parent: Int32s, n_coarse: int
) -> tuple[Int64s, Int32s, Floats, Floats]:
    """Add up the rows and columns of a symmetric matrix that share a parent.

    Returns the contracted matrix without its diagonal, and the diagonal: the weight inside each
    parent, each pair counted twice.
    """
    first = np.zeros(n_coarse + 1, np.int64)  # the vertices of each parent, by counting
    for v in range(parent.size):
        first[parent[v] + 1] += 1
    first = np.cumsum(first)
    end_of = first.copy()
    members = np.empty(parent.size, np.int32)
    for v in range(parent.size):
        members[end_of[parent[v]]] = v
        end_of[parent[v]] += 1
    place = np.full(n_coarse, -1, np.int64)  # where this row holds a column
    out_indptr = np.zeros(n_coarse + 1, np.int64)
    out_indices = np.empty(indices.size, np.int32)
    out_weight = np.empty(indices.size, np.float64)
    inside = np.zeros(n_coarse, np.float64)
    end = 0
    for row in range(n_coarse):
        start = end
        for at in range(first[row], first[row + 1]):
            v = members[at]
            for e in range(indptr[v], indptr[v + 1]):
                column = parent[indices[e]]
                if column == row:
                    inside[row] += weight[e]
                elif place[column] >= start:
                    out_weight[place[column]] += weight[e]
                else:
                    place[column] = end
                    out_indices[end] = column
                    out_weight[end] = weight[e]
                    end += 1
        out_indptr[row + 1] = end
    return out_indptr, out_indices[:end].copy(), out_weight[:end].copy(), inside


def quotient(problem: Problem, parent: Int32s, n_coarse: int) -> Problem:
    """Merge the vertices that share a parent; none of them may be cannot-linked."""
    p, merged = problem, (parent, n_coarse)
    indptr, indices, weight, inside = contract(p.indptr, p.indices, p.weight, *merged)
    ones = np.ones(p.apart_indices.size)
    apart_indptr, apart_indices, _, _ = contract(p.apart_indptr, p.apart_indices, ones, *merged)
    soft = contract(p.soft_indptr, p.soft_indices, p.soft_weight, *merged)
    return Problem(
        indptr,
        indices,
        weight,
        np.bincount(parent, weights=p.volume, minlength=n_coarse).astype(np.float64),
        inside + np.bincount(parent, weights=p.loop, minlength=n_coarse),
        np.bincount(parent, weights=p.n_samples, minlength=n_coarse).astype(np.int64),
        apart_indptr,
        apart_indices,
        *(soft[0], soft[1], soft[2]),
        p.gamma,
    )


# Coarse levels -------------------------------------------------------------------------------


class Levels(NamedTuple):
    """A graph at ever coarser levels."""

    fine: list[tuple[Problem, Int32s]]  # each with the vertices of the next one that stand for its
    coarsest: Problem

    def down(self, z: Int32s) -> Int32s:
        """Return a partition of the coarsest level: that of some vertex that each stands for."""
        for _, parent in self.fine:
            coarse = np.empty(int(parent.max()) + 1, np.int32)
            coarse[parent] = z
            z = coarse
        return z

    def up(self, z: Int32s) -> Int32s:
        """Return a partition of the coarsest level as one of the graph: the same cut."""
        for _, parent in reversed(self.fine):
            z = z[parent]
        return z


def hierarchy(
    problem: Problem, cells: Int32s, target: int, *, k: int, rng: np.random.RandomState
) -> Levels:
    """Merge matched vertices of the same cell until `target` are left, or hardly any match."""
    fine: list[tuple[Problem, Int32s]] = []
    total = problem.volume.sum()
    while problem.n_vertices > target:
        near_the_end = problem.n_vertices < 4 * target
        limit = total / ((3 if near_the_end else 10) * k)
        parent, n_coarse = _match(problem, cells, limit, int(rng.randint(2**31)))
        if n_coarse > STALLED * problem.n_vertices:
            break
        fine.append((problem, parent))
        problem = quotient(problem, parent, n_coarse)
        cells = Levels(fine[-1:], problem).down(cells)
    return Levels(fine, problem)


@njit(cache=True, nogil=True)
def _match(p: Problem, cells: Int32s, max_volume: float, seed: int) -> tuple[Int32s, int]:
    """Match vertices along heavy edges inside cells; never cannot-linked ones.

    The heaviness ``w (1 / vol_u + 1 / vol_v)`` is what the cut would lose if the edge were cut.
    """
    n = p.volume.size
    stream = new_stream(seed)
    order = np.arange(n).astype(np.int32)
    shuffle(order, stream)
    parent = np.full(n, -1, np.int32)
    apart = np.full(n, -1, np.int32)  # apart[u] == v: u is cannot-linked to v
    n_coarse = 0
    for v in order:
        if parent[v] >= 0:
            continue
        for e in range(p.apart_indptr[v], p.apart_indptr[v + 1]):
            apart[p.apart_indices[e]] = v
        best = -1.0
        mate = -1
        for e in range(p.indptr[v], p.indptr[v + 1]):
            u = p.indices[e]
            if parent[u] >= 0 or cells[u] != cells[v] or apart[u] == v:
                continue
            if p.volume[u] + p.volume[v] > max_volume:
                continue
            heaviness = p.weight[e] * (1.0 / p.volume[u] + 1.0 / p.volume[v])
            heaviness *= 1.0 + NOISE * uniform(stream)
            if heaviness > best:
                best = heaviness
                mate = u
        parent[v] = n_coarse
        if mate >= 0:
            parent[mate] = n_coarse
        n_coarse += 1
    return parent, n_coarse
