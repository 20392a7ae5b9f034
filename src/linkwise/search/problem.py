"""Problem: a contracted graph, the cannot-links on it, and soft pairs; and how it shrinks.

Must-linked samples are one vertex. Volumes and inner weights add up, so the normalised cut of a
partition of the small graph is the normalised cut of the same partition of the samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import block_array, coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from linkwise.constraints.coloring import CannotLinkGraph

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Int32s, Int64s, Ints


__all__ = [
    "Groups",
    "Problem",
    "build_problem",
    "edgeless_problem",
    "graph_only",
    "in_units",
    "merge_for_two",
    "pair_graph",
    "quotient",
]

# The volume of a vertex without edges, as a share of the mean: it costs 1 to stand alone.
ISOLATED_VOLUME = 1e-6


class Groups(NamedTuple):
    """Samples that share a cluster for certain, and which groups must not."""

    of_sample: Int32s
    n_groups: int
    apart: CannotLinkGraph
    n_anchors: int = 0  # items at the end that are no samples


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
    soft_indptr: Int64s  # soft pairs: positive keeps apart, negative together
    soft_indices: Int32s
    soft_weight: Floats
    gamma: float

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return self.volume.size


def build_problem(
    W: csr_array, groups: Groups, soft: csr_array, gamma: float, mass: Floats | None = None
) -> Problem:
    """Contract the graph `W` of samples, and soft pairs of samples, to groups.

    `soft` is symmetric over samples. Diagonals of `W` are ignored, as everywhere. With `mass`, at
    least the degree of each sample, cuts are divided by the mass of a cluster, not its volume: the
    difference is weight of a sample to itself.
    """
    parent = groups.of_sample
    members = _members(parent, groups.n_groups)
    indptr, indices, weight, inside = _merged_rows(*_compressed(W), parent, *members)
    # The diagonal was added to `inside` as if it were an edge.
    diagonal = W.diagonal()
    inside -= _sums_by(parent, diagonal, groups.n_groups)
    degree = _row_sums(W) - diagonal
    if mass is not None:
        inside += _sums_by(parent, mass - degree, groups.n_groups)
        degree = mass
    volume = _sums_by(parent, degree, groups.n_groups)
    mean = volume.sum() / W.shape[0] if volume.sum() > 0 else 1.0
    volume[volume <= 0] = ISOLATED_VOLUME * mean
    loop = np.maximum(inside, 0.0)
    soft_indptr, soft_indices, soft_weight = _soft_rows(soft, groups)
    return Problem(
        indptr,
        indices,
        weight,
        volume,
        loop,
        _count_samples(groups),
        groups.apart.indptr,
        groups.apart.indices,
        soft_indptr,
        soft_indices,
        soft_weight,
        gamma,
    )


def edgeless_problem(groups: Groups, mass: Floats, soft: csr_array, gamma: float) -> Problem:
    """Return a problem of pairs alone; `mass` of the samples takes the place of the volume."""
    volume = _sums_by(groups.of_sample, mass, groups.n_groups)
    indptr, indices, weight = _compressed(csr_array((groups.n_groups, groups.n_groups)))
    soft_indptr, soft_indices, soft_weight = _soft_rows(soft, groups)
    return Problem(
        indptr,
        indices,
        weight,
        volume,
        np.zeros_like(volume),
        _count_samples(groups),
        groups.apart.indptr,
        groups.apart.indices,
        soft_indptr,
        soft_indices,
        soft_weight,
        gamma,
    )


def _count_samples(groups: Groups) -> Int64s:
    n_items = groups.of_sample.size
    samples = groups.of_sample[: n_items - groups.n_anchors]
    return np.bincount(samples, minlength=groups.n_groups).astype(np.int64)


def _soft_rows(soft: csr_array, groups: Groups) -> tuple[Int64s, Int32s, Floats]:
    parent = groups.of_sample
    members = _members(parent, groups.n_groups)
    indptr, indices, weight, _ = _merged_rows(*_compressed(soft), parent, *members)
    return indptr, indices, weight


def merge_for_two(groups: Groups) -> Groups:
    """Merge what two clusters can only keep together: the sides of each ring-free web of links.

    Exact for two clusters. Each connected web of cannot-links becomes two groups with one link.
    The links must not contain an odd ring.
    """
    g = groups.n_groups
    links = csr_array(
        (np.ones(groups.apart.indices.size, np.int8), groups.apart.indices, groups.apart.indptr),
        shape=(g, g),
    )
    # Two copies of every group, even and odd; a link joins copies of different parity.
    cover = block_array([[None, links], [links, None]], format="csr")
    _, part = connected_components(cover, directed=False)
    sides, side = np.unique(part[:g], return_inverse=True)
    linked = np.flatnonzero(np.diff(groups.apart.indptr))
    opposite = np.searchsorted(sides, part[g:][linked])
    pairs = np.unique(np.sort(np.column_stack((side[linked], opposite)), axis=1), axis=0)
    graph = pair_graph(pairs, np.ones(len(pairs)), sides.size)
    apart = CannotLinkGraph(graph.indptr.astype(np.int64), graph.indices.astype(np.int32))
    return Groups(side[groups.of_sample].astype(np.int32), sides.size, apart)


def quotient(problem: Problem, parent: Int32s, n_coarse: int) -> Problem:
    """Merge the vertices that share a parent; none of them may be cannot-linked."""
    members = _members(parent, n_coarse)
    indptr, indices, weight, inside = _merged_rows(
        problem.indptr, problem.indices, problem.weight, parent, *members
    )
    apart_indptr, apart_indices = _merged_links(
        problem.apart_indptr, problem.apart_indices, parent, *members
    )
    soft_indptr, soft_indices, soft_weight, _ = _merged_rows(
        problem.soft_indptr, problem.soft_indices, problem.soft_weight, parent, *members
    )
    return Problem(
        indptr,
        indices,
        weight,
        _sums_by(parent, problem.volume, n_coarse),
        inside + _sums_by(parent, problem.loop, n_coarse),
        _sums_by(parent, problem.n_samples, n_coarse).astype(np.int64),
        apart_indptr,
        apart_indices,
        soft_indptr,
        soft_indices,
        soft_weight,
        problem.gamma,
    )


def graph_only(problem: Problem) -> csr_array:
    """Return the graph of a problem, inner weights on the diagonal."""
    n = problem.n_vertices
    graph = csr_array((problem.weight, problem.indices, problem.indptr), shape=(n, n))
    loops = np.arange(n)
    return csr_array(graph + coo_array((problem.loop, (loops, loops)), shape=(n, n)))


def pair_graph(pairs: Ints, weights: Floats, n: int) -> csr_array:
    """Return pairs as a symmetric matrix; repeated pairs add up."""
    heads = np.concatenate((pairs[:, 0], pairs[:, 1]))
    tails = np.concatenate((pairs[:, 1], pairs[:, 0]))
    return csr_array((np.concatenate((weights, weights)), (heads, tails)), shape=(n, n))


def in_units(W: csr_array) -> tuple[csr_array, float]:
    """Return the graph in units of its largest weight, and that; 1 if there is none."""
    largest = float(W.max()) if W.nnz else 0.0
    if largest <= 0:
        return W, 1.0
    # Not W / largest: scipy multiplies by the inverse, which may be infinite.
    return csr_array((W.data / largest, W.indices, W.indptr), W.shape), largest


def _sums_by(parent: Int32s, values: AnyArray, n_coarse: int) -> Floats:
    sums: Floats = np.bincount(parent, weights=values, minlength=n_coarse).astype(np.float64)
    return sums


def _row_sums(W: csr_array) -> Floats:
    return np.asarray(W.sum(axis=1), dtype=np.float64).ravel()


def _compressed(A: csr_array) -> tuple[Int64s, Int32s, Floats]:
    """Return the arrays of a matrix in the types that the kernels are compiled for."""
    return (
        A.indptr.astype(np.int64),
        A.indices.astype(np.int32),
        A.data.astype(np.float64),
    )


def _members(parent: Int32s, n_coarse: int) -> tuple[Int64s, Int32s]:
    """Return the vertices of each parent in compressed rows."""
    sizes = np.bincount(parent, minlength=n_coarse)
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return indptr, np.argsort(parent, kind="stable").astype(np.int32)


@njit(cache=True, nogil=True)
def _merged_rows(
    indptr: Int64s,
    indices: Int32s,
    weight: Floats,
    parent: Int32s,
    member_indptr: Int64s,
    members: Int32s,
) -> tuple[Int64s, Int32s, Floats, Floats]:
    """Add up the rows and columns of a symmetric matrix that share a parent.

    Returns the merged matrix without its diagonal, and the diagonal: the weight inside each
    parent, each pair counted twice.
    """
    n_coarse = member_indptr.size - 1
    place = np.full(n_coarse, -1, np.int64)  # where this row holds a column
    out_indptr = np.zeros(n_coarse + 1, np.int64)
    out_indices = np.empty(indices.size, np.int32)
    out_weight = np.empty(indices.size, np.float64)
    inside = np.zeros(n_coarse, np.float64)
    end = 0
    for row in range(n_coarse):
        start = end
        for at in range(member_indptr[row], member_indptr[row + 1]):
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


@njit(cache=True, nogil=True)
def _merged_links(
    indptr: Int64s,
    indices: Int32s,
    parent: Int32s,
    member_indptr: Int64s,
    members: Int32s,
) -> tuple[Int64s, Int32s]:
    """Merge the vertices of an unweighted graph that share a parent; loops are dropped."""
    n_coarse = member_indptr.size - 1
    last_row = np.full(n_coarse, -1, np.int64)
    out_indptr = np.zeros(n_coarse + 1, np.int64)
    out_indices = np.empty(indices.size, np.int32)
    end = 0
    for row in range(n_coarse):
        for at in range(member_indptr[row], member_indptr[row + 1]):
            v = members[at]
            for e in range(indptr[v], indptr[v + 1]):
                column = parent[indices[e]]
                if column != row and last_row[column] != row:
                    last_row[column] = row
                    out_indices[end] = column
                    end += 1
        out_indptr[row + 1] = end
    return out_indptr, out_indices[:end].copy()
