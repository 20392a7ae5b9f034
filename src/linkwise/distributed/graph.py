"""From neighbours on workers to a symmetric graph in blocks of rows, in one piece."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from linkwise.distributed.cluster import item
from linkwise.distributed.matrix import RowBlockMatrix
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.graph.affinity import FIXED, WEIGHTS, Affinity, symmetrized
from linkwise.graph.connect import shortest_links
from linkwise.graph.neighbors import NeighborSearch
from linkwise.graph.precomputed import listed_sizes
from linkwise.linalg.blocks import smallest_positive_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats, Int64s, Ints
    from linkwise.distributed.chunks import Chunks
    from linkwise.distributed.search import Neighbors, Table

# Samples of a component among which its links to others are looked for: all of small ones.
MEMBERS, MOST_MEMBERS = 2_000, 200_000


class Builder:
    """Builds the graph that an `Affinity` describes, on workers.

    Raises
    ------
    ValueError
        If the affinity has a parameter that is for one machine.
    """

    def __init__(self, affinity: Affinity, chunks: Chunks) -> None:
        check_affinity(affinity)
        self.affinity, self.chunks, self.cluster = affinity, chunks, chunks.cluster
        k = min(int(affinity.neighbors), chunks.n_samples - 1)
        self.k = k
        rank = k if affinity.scale_neighbor is None else int(affinity.scale_neighbor)
        self.rank = min(rank, chunks.n_samples - 1)

    @property
    def n_searched(self) -> int:
        """Neighbours that the graph and its scale need."""
        return max(self.k, self.rank)

    def graph(self, neighbors: Neighbors) -> RowBlockMatrix:
        """Return the graph, in one piece unless the affinity leaves it."""
        scales = self._scales(neighbors)
        W = self._symmetric(neighbors, scales)
        n_components, component = W.components()
        sizes = np.sort(np.bincount(component))[::-1]
        if n_components == 1:
            return W
        if self.affinity.connect is None:
            message = (
                f"The graph has {n_components} connected components, of {listed_sizes(sizes)} "
                'samples. Use connect="mst" to join them by short links, or more neighbours.'
            )
            warnings.warn(message, DisconnectedGraphWarning, stacklevel=5)
            return W
        return self._joined(W, component, scales)

    def _scales(self, neighbors: Neighbors) -> Floats | None:
        """Return the scale of each sample, in the order of places; None if there is one for all."""
        if self.affinity.scale != "local":
            return None
        found = self.cluster.fetch(self._of_tables(neighbors, scales_of, self.rank))
        smallest = min(low for _, low in found)
        scales = np.concatenate([part for part, _ in found])
        return np.where(scales > 0, scales, smallest if np.isfinite(smallest) else 1.0)

    def _of_tables(
        self, neighbors: Neighbors, function: Callable[..., Any], *args: Any
    ) -> list[Any]:
        """Return the futures of a call for each table of neighbours."""
        places = zip(neighbors.tables, neighbors.layout.at, strict=True)
        return [self.cluster.submit(function, table, *args, at=at) for table, at in places]

    def _symmetric(self, neighbors: Neighbors, scales: Floats | None) -> RowBlockMatrix:
        cluster, layout = self.cluster, neighbors.layout
        scale = self.affinity.scale
        given: list[Any] = [None] * layout.n_blocks
        if scales is not None:
            borders = list(pairwise(layout.start.tolist()))
            asked = [
                cluster.submit(outer_places, table, self.k, own, at=at)
                for table, own, at in zip(neighbors.tables, borders, layout.at, strict=True)
            ]
            for number, named in enumerate(cluster.fetch(asked)):
                first, last = borders[number]
                given[number] = (first, scales[first:last], named, scales[named])
        weighted = [
            cluster.submit(weighted_rows, table, self.k, scale, those, at=at)
            for table, those, at in zip(neighbors.tables, given, layout.at, strict=True)
        ]
        blocks, outside = [], []
        for number in range(layout.n_blocks):
            rows = (int(layout.start[number]), int(layout.start[number + 1]))
            arriving = [
                cluster.submit(entries_into, other, int(first), rows, at=at)
                for other, first, at in zip(weighted, layout.start[:-1], layout.at, strict=True)
            ]
            at = layout.at[number]
            settings = (layout.n, self.affinity.symmetrize)
            both = cluster.submit(
                symmetric_block, weighted[number], arriving, rows, settings, at=at
            )
            blocks.append(cluster.submit(item, both, 0, at=at))
            outside.append(cluster.submit(item, both, 1, at=at))
        halo = [layout.grouped(places) for places in cluster.fetch(outside)]
        return RowBlockMatrix(cluster, layout, blocks, halo)

    def _joined(self, W: RowBlockMatrix, component: Ints, scales: Floats | None) -> RowBlockMatrix:
        """Add short links between components: the shortest between some members of each."""
        chosen = members_of(component, np.random.RandomState(0))
        X = self.chunks.rows(chosen).astype(np.float64)
        _, among = np.unique(component[chosen], return_inverse=True)
        links = shortest_links(NeighborSearch(X), among)
        i, j = chosen[links.i], chosen[links.j]
        weight = WEIGHTS.get(str(self.affinity.scale), FIXED)
        if scales is None:
            scale = self.affinity.scale
            weights = weight.formula(links.distance, scale, scale)
        else:
            place = W.layout.place
            weights = weight.formula(links.distance, scales[place[i]], scales[place[j]])
        smallest = min(W.collected(smallest_positive_of))
        weights = np.maximum(weights, smallest) if np.isfinite(smallest) else weights
        both = (np.append(i, j), np.append(j, i))
        n = W.shape[0]
        return W + csr_array((np.append(weights, weights), both), shape=(n, n))


def members_of(component: Ints, rng: np.random.RandomState) -> Ints:
    """Return samples that stand for their components: all of small ones, some of large ones."""
    sizes = np.bincount(component)
    limit = max(1, min(MEMBERS, MOST_MEMBERS // sizes.size))
    shuffled = rng.permutation(component.size)
    order = shuffled[np.argsort(component[shuffled], kind="stable")]
    rank = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[rank < limit])


ALLOWED = {
    "radius": None,
    "metric": "euclidean",
    "metric_params": None,
    "reduce_to": None,
    "m": None,
}


def check_affinity(affinity: Affinity) -> None:
    """Raise ValueError if a parameter of the affinity is wrong, or for one machine."""
    affinity._validate_params()
    for name, allowed in ALLOWED.items():
        if getattr(affinity, name) != allowed:
            raise ValueError(
                f"{name}={getattr(affinity, name)!r} is for one machine. On Dask, Affinity takes "
                'a number of neighbors, scale="local", "connectivity" or a number, scale_neighbor, '
                "symmetrize, connect and random_state."
            )
    if not isinstance(affinity.neighbors, (int, np.integer)):
        raise ValueError(
            f"neighbors={affinity.neighbors!r} is for one machine. On Dask give the number of "
            "nearest neighbours, for example neighbors=10."
        )
    if isinstance(affinity.scale, str) and affinity.scale not in ("local", "connectivity"):
        raise ValueError(
            f'scale={affinity.scale!r} is for one machine. On Dask take scale="local", '
            '"connectivity" or a number.'
        )


# --- what runs on workers


def scales_of(table: Table, rank: int) -> tuple[Floats, float]:
    """Return the distance of each sample to a neighbour, and the smallest positive distance."""
    positive = np.min(table.distances, where=table.distances > 0, initial=np.inf)
    return table.distances[:, rank - 1], float(positive)


def outer_places(table: Table, k: int, rows: tuple[int, int]) -> Int64s:
    """Return the neighbours of a region that are in others."""
    places = table.places[:, :k]
    return np.unique(places[(places < rows[0]) | (places >= rows[1])])


def weighted_rows(table: Table, k: int, scale: Any, given: Any) -> tuple[Int64s, Floats]:
    """Return the neighbours of each sample and the weights of the edges to them."""
    distances, places = table.distances[:, :k], table.places[:, :k]
    weight = WEIGHTS.get(str(scale), FIXED)
    if given is None:
        return places, weight.formula(distances, scale, scale)
    first, own, outer, of_outer = given
    is_outer = (places < first) | (places >= first + own.size)
    scales = own[np.where(is_outer, 0, places - first)]
    scales[is_outer] = of_outer[np.searchsorted(outer, places[is_outer])]
    return places, weight.formula(distances, own[:, None], scales)


def entries_into(
    weighted: tuple[Int64s, Floats], first: int, rows: tuple[int, int]
) -> tuple[Any, ...]:
    """Return the edges that end in some rows: where they begin, the row, the weight."""
    places, weights = weighted
    i, at = np.nonzero((places >= rows[0]) & (places < rows[1]))
    return first + i, places[i, at] - rows[0], weights[i, at]


def symmetric_block(
    weighted: tuple[Int64s, Floats],
    arriving: list[Any],
    rows: tuple[int, int],
    settings: tuple[int, str],
) -> tuple[csr_array, Int64s]:
    """Return a block of the symmetric graph, and the places of its outer columns."""
    places, weights = weighted
    n, how = settings
    n_rows = rows[1] - rows[0]
    begin, end, weight = (np.concatenate(parts) for parts in zip(*arriving, strict=True))
    # The columns of the block first: in as many as all samples, scipy's sums are rarely in a cache.
    column = np.full(n, -1, dtype=np.int32)
    for named in (places.ravel(), begin):
        column[named] = 0
    column[rows[0] : rows[1]] = -1
    outside = np.flatnonzero(column == 0)
    column[rows[0] : rows[1]] = np.arange(n_rows, dtype=np.int32)
    column[outside] = n_rows + np.arange(outside.size, dtype=np.int32)
    shape = (n_rows, n_rows + outside.size)
    indptr = np.arange(0, places.size + 1, places.shape[1], dtype=np.int32)
    # A copy: entries are sorted in place, and the weights are asked for by other blocks.
    A = csr_array((weights.flatten(), column[places].ravel(), indptr), shape=shape)
    A.sort_indices()
    to_here = csr_array((weight, (end.astype(np.int32), column[begin])), shape=shape)
    block = csr_array(symmetrized(A, to_here, how))
    block.eliminate_zeros()
    block.sort_indices()
    return _narrowed(block, outside)


def _narrowed(block: csr_array, outside: Int64s) -> tuple[csr_array, Int64s]:
    """Return a block without the outer columns that have no entry, and the others."""
    n_rows = block.shape[0]
    is_used = np.zeros(block.shape[1], dtype=bool)
    is_used[block.indices] = True
    if is_used[n_rows:].all():
        return block, outside
    is_used[:n_rows] = True
    columns = (np.cumsum(is_used, dtype=np.int32) - 1)[block.indices]
    shape = (n_rows, int(is_used.sum()))
    return csr_array((block.data, columns, block.indptr), shape=shape), outside[is_used[n_rows:]]
