"""Neighbours of the rows of a Dask array, by the cells and the kernel of one machine.

Cells are found on a sample. Each row goes to the cell with the nearest centre, and rows are
shuffled so that near cells are in one region. A region searches its own cells and those around
them, which it gets from other regions. Up to `EXACT_SAMPLES` rows every cell is searched.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.distributed.chunks import Chunks, numbers
from linkwise.distributed.matrix import Layout
from linkwise.distributed.regions import CellGraph
from linkwise.graph.affinity import EXACT_SAMPLES
from linkwise.graph.approximate import ApproximateNeighbors, cell_count, more_probes
from linkwise.graph.cells import (
    SPARE,
    Cells,
    Found,
    cells_of,
    chosen_cells,
    enter_offers,
    halved,
    largest_cell,
    nearest_centres,
    nearest_exactly,
    nearest_in_cells,
    power_above,
    ranked,
    ranked_centres,
    search_cells,
    tiles,
    trained,
    training_rows,
)
from linkwise.graph.transformer import SAMPLE_SIZE, recall_of

if TYPE_CHECKING:
    from linkwise._types import AnyArray, AnyFloats, Floats, Int32s, Int64s, Ints
    from linkwise.distributed.cluster import Cluster


RECALL = 0.98  # as on one machine
# Beyond `PROPORTIONAL_FROM` samples cells are searched for this share of the neighbours, in lists
# of this length, and most others are found by what these lists hold. The cells that hold 0.98 of
# the neighbours become more with the samples: 32 of 1 million blobs, 75 of 8 million.
SEARCHED_RECALL, LISTED = 0.92, 12
JOINED_RECALL = 0.97  # that is enough after the join: a second search would cost twice as much
# Cells that a sample looks at in the time of the join and the offers: 13 on a surface, 26 in blobs.
# Where no more than so many more hold 0.98, they are searched instead: in data of few dimensions.
JOIN_CELLS = 15
# Cells grow in number with the root of the samples up to here, as on one machine, and with the
# samples beyond, so that a cell holds as many as before.
PROPORTIONAL_FROM = 1_000_000
REGION_ROWS = 1_000_000  # at most, about
REGIONS_PER_WORKER = 1  # at least; every further one makes more, smaller tasks
CELLS_PER_REGION = 8  # at least, of few samples
NEARBY = 8  # cells whose order no longer matters
# Centres that a sample is compared with, to choose the cells that it looks at: all or, if there are
# more than `ALL_CELLS`, at least `NEAR_CELLS` around its own cell. With fewer, neighbours are
# missed: 4 times as many as a sample looks at gave a recall of 0.952 at 2,000,000 samples. At
# 8,000,000, 33 cells chosen among 1,000 hold 0.905 of the neighbours, among 2,000 they hold 0.906.
ALL_CELLS, NEAR_CELLS = 2_000, 1_000
AROUND = 4  # times as many cells as a sample looks at, at least


class Region(NamedTuple):
    """Samples that are near each other, in the order of their cells."""

    X: AnyArray
    samples: Int64s
    cells: Cells


class Table(NamedTuple):
    """Neighbours of the samples of a region, from near to far."""

    distances: Floats
    places: Int64s  # in the order of all regions


class Neighbors(NamedTuple):
    """Neighbours of all samples, on the workers."""

    layout: Layout
    tables: list[Any]  # futures
    recall: float
    n_cells: int
    n_probes: int


def n_cells_for(n_samples: int) -> int:
    """Return how many cells samples are divided among."""
    if n_samples <= PROPORTIONAL_FROM:
        return cell_count(n_samples)
    return cell_count(PROPORTIONAL_FROM) * n_samples // PROPORTIONAL_FROM


def find_neighbors(chunks: Chunks, k: int, rng: np.random.RandomState) -> Neighbors:
    """Search for the `k` nearest samples of each; the recall is measured."""
    n, cluster = chunks.n_samples, chunks.cluster
    k = min(k, n - 1)
    unit = power_above(float((chunks.high - chunks.low).max()))
    n_workers = cluster.n_workers
    n_regions = n_workers * max(REGIONS_PER_WORKER, -(-n // (n_workers * REGION_ROWS)))
    n_cells = min(max(n_cells_for(n), CELLS_PER_REGION * n_regions), n)
    rows = training_rows(n, n_cells, rng)
    sample = chunks.rows(rows) / unit
    centres = trained_cells(sample, n_cells, rng)
    centres = centres[nearby_order(centres)]
    # Which cells are a region, and the rows of each
    nearest = nearest_centres if n_cells <= ALL_CELLS else _nearest_of_many
    region_of = CellGraph(sample, centres, nearest).divided(n_workers, n_regions)
    n_regions = int(region_of.max()) + 1
    division = Division(NearestCentre(centres, unit), region_of, chunks.dtype)
    pieces = chunks.mapped(divided, division)
    regions = [
        cluster.submit(
            built_region,
            [cluster.submit(piece_of, piece, number) for piece in pieces],
            unit,
            largest_cell(n, n_cells),
            at=number / n_regions,
        )
        for number in range(n_regions)
    ]
    del pieces
    outlines = [
        cluster.submit(outline, region, at=number / n_regions)
        for number, region in enumerate(regions)
    ]
    seen = cluster.fetch(outlines)
    kept = [number for number, outlined in enumerate(seen) if outlined[0].size]
    regions, seen = [regions[i] for i in kept], [seen[i] for i in kept]
    layout = Layout([samples for samples, _, _ in seen], [i / n_regions for i in kept])
    index = CellIndex([centres for _, centres, _ in seen], [starts for _, _, starts in seen])
    return _searched(chunks, regions, layout, index=index, k=k, unit=unit, rng=rng)


def trained_cells(sample: Floats, n_cells: int, rng: np.random.RandomState) -> Floats:
    """Find centres on a sample, as one machine does where these are few."""
    if n_cells <= ALL_CELLS:
        return trained(sample, n_cells, rng, n_threads=1)
    return trained(sample, n_cells, rng, n_threads=1, nearest=_nearest_of_many)


def nearby_order(centres: Floats) -> Ints:
    """Return an order of the centres in which those next to each other are mostly near.

    Blocks of rows are in the order of their cells. What a row's neighbours hold is then mostly in
    the cache when a product, or the join of lists, comes to it.
    """
    order, waiting = [], [np.arange(centres.shape[0])]
    while waiting:
        part = waiting.pop()
        if part.size <= NEARBY:
            order.append(part)
            continue
        widest = int(centres[part].std(axis=0).argmax())
        ascending = part[np.argsort(centres[part, widest], kind="stable")]
        waiting += [ascending[part.size // 2 :], ascending[: part.size // 2]]
    return np.concatenate(order)


def _nearest_of_many(X: AnyFloats, centres: Floats, k: int, *, n_threads: int) -> Int32s:
    return NearestCentre(centres, 1.0).nearest(X, k)


class NearestCentre:
    """The centre that is nearest to a sample; of many centres, nearly always.

    The work for a sample grows with the root of their number: centres are in cells of their own.
    """

    def __init__(self, centres: Floats, unit: float) -> None:
        self.centres, self.unit = centres, unit
        self.search = None
        if centres.shape[0] > ALL_CELLS:
            self.search = ApproximateNeighbors(1, recall=RECALL, n_jobs=1).fit(centres)

    def nearest(self, X: AnyFloats, k: int) -> Int32s:
        """Return the cells of the `k` nearest centres of each sample."""
        if self.search is None:
            return nearest_centres(X, self.centres, k, unit=self.unit, n_threads=1)
        return self.search.kneighbors(X / X.dtype.type(self.unit), k)[1].astype(np.int32)

    def cells(self, X: AnyFloats) -> Int32s:
        """Return the cell of each sample."""
        return self.nearest(X, 1)[:, 0]


class Division(NamedTuple):
    """How rows are divided among regions."""

    nearest: NearestCentre
    region_of: Ints  # of each cell
    dtype: Any


class CellIndex:
    """The cells of all regions, numbered one region after the other."""

    def __init__(self, centres: list[Floats], starts: list[Int64s]) -> None:
        sizes = [len(part) for part in centres]
        self.first = np.concatenate([[0], np.cumsum(sizes)])  # cell of each region
        self.centres = np.concatenate(centres)
        self.counts = np.concatenate([np.diff(part) for part in starts])
        self.starts = starts

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.centres.shape[0])

    def cell_of(self, region: int, row: Ints) -> Ints:
        """Return the cells of rows of a region."""
        inside = np.searchsorted(self.starts[region], row, side="right") - 1
        return np.asarray(self.first[region] + inside)


def _searched(
    chunks: Chunks,
    regions: list[Any],
    layout: Layout,
    *,
    index: CellIndex,
    k: int,
    unit: float,
    rng: np.random.RandomState,
) -> Neighbors:
    """Choose how many cells are searched, search them, and measure what was found."""
    n, cluster = layout.n, chunks.cluster
    sample = rng.permutation(n)[: 2 * SAMPLE_SIZE]
    chooses, tests = (np.sort(part) for part in np.array_split(sample, 2))
    tables = _Tables(cluster, regions, layout, index=index, k=k)
    if n <= EXACT_SAMPLES:
        return Neighbors(layout, tables.exact(), 1.0, index.n_cells, index.n_cells)
    true = _TrueNeighbors(chunks, regions, layout, sample=np.sort(sample), k=k)
    direct = true.n_probes(chooses, index, unit, RECALL)
    plans = [(direct, False)]  # how many cells are searched, and whether lists are joined
    if n > PROPORTIONAL_FROM:
        few = true.n_probes(chooses, index, unit, SEARCHED_RECALL)
        plans = [(few, True) if few + JOIN_CELLS < direct else (direct, False), (direct, True)]
    # Less what is measured on a few samples may be off
    enough = JOINED_RECALL - np.sqrt(JOINED_RECALL * (1 - JOINED_RECALL) / chooses.size)
    found: list[Any] = []
    for n_probes, joins in plans:
        found.clear()  # so that workers do not hold the tables of both searches
        found = tables.searched(n_probes, joins=joins)
        if len(plans) == 1 or true.recall_of(found, chooses) >= enough:
            break
    return Neighbors(layout, found, true.recall_of(found, tests), index.n_cells, n_probes)


class _Tables:
    """Searches the regions."""

    def __init__(
        self, cluster: Cluster, regions: list[Any], layout: Layout, *, index: CellIndex, k: int
    ) -> None:
        self.cluster, self.regions, self.layout = cluster, regions, layout
        self.index, self.k = index, k

    def exact(self) -> list[Any]:
        """Return the tables of neighbours, by comparison of all samples."""
        everything = np.arange(self.index.n_cells)
        return [
            self._of_region(number, None, everything, is_exact=True)
            for number in range(len(self.regions))
        ]

    def searched(self, n_probes: int, *, joins: bool) -> list[Any]:
        """Return the tables of neighbours in some cells and, if `joins`, of their neighbours."""
        probes = [
            self.cluster.submit(probed, region, self.index.centres, n_probes, at=at)
            for region, at in zip(self.regions, self.layout.at, strict=True)
        ]
        needed = [
            self.cluster.submit(distinct, part, self.index.n_cells, at=at)
            for part, at in zip(probes, self.layout.at, strict=True)
        ]
        cells = self.cluster.fetch(needed)
        found: list[Any] = [None] * len(self.regions)
        for number in self._by_turns():
            found[number] = self._of_region(number, probes[number], cells[number], joins=joins)
        return self._offered(found) if joins else found

    def _offered(self, tables: list[Any]) -> list[Any]:
        """Return the tables with those neighbours in other regions that found a sample first."""
        submit, at, start = self.cluster.submit, self.layout.at, self.layout.start
        offers = [
            [
                submit(
                    offers_to,
                    table,
                    int(start[other]),
                    (int(start[i]), int(start[i + 1])),
                    at=there,
                )
                for other, (table, there) in enumerate(zip(tables, at, strict=True))
                if other != i
            ]
            for i in range(len(tables))
        ]
        rows = zip(tables, offers, at, strict=True)
        return [submit(with_offers, table, given, at=here) for table, given, here in rows]

    def _by_turns(self) -> list[int]:
        """Return the regions, the first ones of all workers first.

        What a region needs of another worker is asked for before that one has searched all its own.
        """
        place = [at * self.cluster.n_workers % 1 for at in self.layout.at]
        return sorted(range(len(place)), key=lambda number: (place[number], number))

    def _of_region(
        self, number: int, probes: Any, cells: Ints, *, is_exact: bool = False, joins: bool = False
    ) -> Any:
        """Return the table of a region that needs some cells, its own ones apart."""
        first, layout = self.index.first, self.layout
        pieces, parts = [], [np.arange(first[number], first[number + 1])]
        for other, region in enumerate(self.regions):
            inside = cells[(cells >= first[other]) & (cells < first[other + 1])]
            if other != number and inside.size:
                here, start = inside - first[other], int(layout.start[other])
                at = layout.at[other]
                pieces.append(self.cluster.submit(extracted, region, here, start, at=at))
                parts.append(inside)
        settings = (self.k, np.concatenate(parts), int(layout.start[number]), is_exact, joins)
        at = layout.at[number]
        return self.cluster.submit(searched, self.regions[number], probes, pieces, settings, at=at)


def _rows_of_tables(cluster: Any, tables: list[Any], layout: Layout, samples: Ints) -> Floats:
    """Return the distances to the neighbours of some samples."""
    place = layout.place[samples]
    distances: list[Floats] = []
    at = []
    for number in range(len(tables)):
        mine = np.flatnonzero((place >= layout.start[number]) & (place < layout.start[number + 1]))
        rows = place[mine] - layout.start[number]
        at_region = layout.at[number]
        distances.append(cluster.submit(distances_at, tables[number], rows, at=at_region))
        at.append(mine)
    found = np.concatenate(cluster.fetch(distances))
    ordered = np.empty_like(found)
    ordered[np.concatenate(at)] = found
    return ordered


class _TrueNeighbors:
    """The true neighbours of some samples, by comparison with all."""

    def __init__(
        self, chunks: Chunks, regions: list[Any], layout: Layout, *, sample: Ints, k: int
    ) -> None:
        self.sample, self.X = sample, chunks.rows(sample).astype(np.float64)
        self.cluster, self.layout = chunks.cluster, layout
        place = layout.place[sample]
        futures = []
        for number, region in enumerate(regions):
            own = place - layout.start[number]
            task = (nearest_in_region, region, self.X, own, k)
            futures.append(chunks.cluster.submit(*task, at=layout.at[number]))
        distances, rows, of_region = [], [], []
        for number, (far, near) in enumerate(chunks.cluster.fetch(futures)):
            distances.append(far)
            rows.append(near)
            of_region.append(np.full(near.shape, number))
        everything = np.hstack(distances)
        order = np.argsort(everything, axis=1, kind="stable")[:, :k]
        self.distances = np.take_along_axis(everything, order, axis=1)
        self.rows = np.take_along_axis(np.hstack(rows), order, axis=1)
        self.regions = np.take_along_axis(np.hstack(of_region), order, axis=1)

    def recall_of(self, tables: list[Any], some: Ints) -> float:
        """Return the share of the neighbours of some samples that tables hold."""
        found = _rows_of_tables(self.cluster, tables, self.layout, some)
        return recall_of(found, self.distances[np.searchsorted(self.sample, some), -1:])

    def n_probes(self, chooses: Ints, index: CellIndex, unit: float, share: float) -> int:
        """Return how many cells hold a share of the neighbours of some samples.

        A neighbour is found if its cell is among those that are searched, the nearest ones.
        """
        mine = np.searchsorted(self.sample, chooses)
        cells = np.empty(self.rows[mine].shape, dtype=np.intp)
        for region in np.unique(self.regions[mine]):
            here = self.regions[mine] == region
            cells[here] = index.cell_of(int(region), self.rows[mine][here])
        order = ranked_centres(self.X[mine], index.centres, unit=unit)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(index.n_cells)[None], axis=1)
        needed = np.take_along_axis(rank, cells, axis=1)
        n_probes = 1
        while (needed < n_probes).mean() < share and n_probes < index.n_cells:
            n_probes = min(more_probes(n_probes), index.n_cells)
        return n_probes


# --- what runs on workers


def divided(chunk: Any, first: int, division: Division) -> list[tuple[AnyArray, Int64s, Int32s]]:
    """Divide the rows of a chunk among regions: rows, samples and cells."""
    nearest, region_of, dtype = division
    X = numbers(chunk, dtype)
    cell = nearest.cells(X)
    region = region_of[cell]
    order = np.argsort(region, kind="stable")
    border = np.searchsorted(region[order], np.arange(int(region_of.max()) + 2))
    parts = [order[a:b] for a, b in itertools.pairwise(border)]
    return [(X[part], first + part.astype(np.int64), cell[part]) for part in parts]


def piece_of(pieces: list[Any], number: int) -> Any:
    """Return what one region gets of a chunk."""
    return pieces[number]


def built_region(pieces: list[Any], unit: float, largest: int) -> Region:
    """Put the rows of a region together, in the order of their cells."""
    X, samples, cell = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    if not samples.size:
        empty = np.zeros(0, np.int64)
        nothing = np.zeros((0, X.shape[1] + 1), np.float32)
        cells = Cells(unit, np.zeros((0, X.shape[1])), np.zeros(1, np.int64), empty, nothing)
        return Region(X, samples, cells)
    _, cell = np.unique(cell, return_inverse=True)
    cells = cells_of(X, halved(X, cell, largest), unit=unit, n_threads=1)
    order = cells.order
    return Region(X[order], samples[order], cells._replace(order=np.arange(order.size)))


def outline(region: Region) -> tuple[Int64s, Floats, Int64s]:
    """Return what the client knows of a region: samples, centres, first rows of cells."""
    return region.samples, region.cells.centres, region.cells.start


def probed(region: Region, centres: Floats, n_probes: int) -> Int32s:
    """Return the cells that each sample looks at, from near to far.

    They are chosen among all or, if these are many, among those around the cell of the sample.
    """
    n_around = max(NEAR_CELLS, int(AROUND * n_probes))
    some = None if len(centres) <= max(ALL_CELLS, n_around) else n_around
    n_probes = min(n_probes, len(centres))
    return chosen_cells(region.cells, centres, n_probes, n_around=some, n_threads=1)


def distinct(probes: Int32s, n_cells: int) -> Ints:
    """Return the cells that any sample looks at."""
    seen = np.zeros(n_cells, dtype=bool)
    seen[probes.ravel()] = True
    return np.flatnonzero(seen)


def extracted(region: Region, cells: Ints, first: int) -> tuple[AnyArray, ...]:
    """Return some cells of a region: rows, places, members, centres and sizes."""
    start, centres = region.cells.start, region.cells.centres
    parts = [np.arange(start[c], start[c + 1]) for c in cells]
    rows = np.concatenate(parts)
    sizes = np.array([part.size for part in parts])
    return region.X[rows], first + rows, region.cells.members[rows], centres[cells], sizes


def searched(region: Region, probes: Int32s, pieces: list[Any], settings: tuple[Any, ...]) -> Table:
    """Search the cells of a region and those around it for the neighbours of its samples."""
    k, known, first, is_exact, joins = settings
    own, n_rows = region.cells, region.X.shape[0]
    X, places, members, centres, sizes = (
        np.concatenate(parts)
        for parts in zip(
            (region.X, first + np.arange(n_rows), own.members, own.centres, np.diff(own.start)),
            *pieces,
            strict=True,
        )
    )
    if is_exact:  # all are here
        everyone = np.arange(n_rows)
        distances, rows = nearest_exactly(X, region.X, k, itself=everyone, n_threads=1)
        return Table(distances, places[rows])
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    cells = Cells(own.unit, centres, start, np.arange(places.size), members)
    local = np.full(int(known.max(initial=0)) + 1, -1, dtype=np.int32)
    local[known] = np.arange(known.size, dtype=np.int32)
    found = Found.nothing(n_rows, max(k + SPARE, LISTED) if joins else k + SPARE)
    for cell in range(own.centres.shape[0]):
        part = slice(own.start[cell], own.start[cell + 1])
        queries = np.ascontiguousarray(own.members[part, :-1])
        lists = Found(found.squares[part], found.positions[part])
        search_cells(cells, cell, queries, local[probes[part]], part.start, lists)
    if joins:
        tiles.offer_back(found)
        cell_of = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
        tiles.join_neighbors(X, own.unit, tiles.both_ways(found), local[probes], cell_of, found)
    nearest = found.positions[:, : k + SPARE]
    distances, rows = ranked(region.X, X, nearest, k=k, unit=own.unit, n_threads=1)
    missing = np.flatnonzero(rows[:, -1] < 0)
    if missing.size:
        # Cells with fewer samples than neighbours: all that is here is compared.
        distances[missing], rows[missing] = nearest_exactly(
            X, region.X[missing], k, itself=missing, n_threads=1
        )
    _check_found(rows, places, k)
    return Table(distances, places[rows])


def offers_to(table: Table, first: int, places: tuple[int, int]) -> tuple[AnyArray, ...]:
    """Return whom the samples of a region are neighbours of in another: rows, distances, places."""
    i, at = np.nonzero((table.places >= places[0]) & (table.places < places[1]))
    return table.places[i, at] - places[0], table.distances[i, at], first + i


def with_offers(table: Table, offers: list[Any]) -> Table:
    """Enter samples of other regions in the lists of those that they found."""
    found = Found(table.distances.copy(), table.places.copy())
    for offer in offers:
        enter_offers(*offer, found)
    return Table(*found)


def _check_found(rows: Ints, places: Ints, k: int) -> None:
    """Refuse samples that have fewer neighbours within reach than are asked for."""
    short = np.flatnonzero(rows[:, -1] < 0)
    if short.size:
        raise ValueError(
            f"{short.size:,} samples have fewer than {k} neighbours in the cells around them: the "
            "samples are spread too unevenly for this many. Ask for fewer neighbours, remove "
            f"samples far from all others, or take linkwise.Prepared for {places.size:,} samples."
        )


def distances_at(table: Table, rows: Ints) -> Floats:
    """Return the distances of some samples to their neighbours."""
    return table.distances[rows]


def nearest_in_region(region: Region, queries: Floats, own: Ints, k: int) -> tuple[Floats, Int64s]:
    """Return the nearest samples of a region, those that are the queries themselves left out."""
    k = min(k, region.X.shape[0])
    inside = np.where((own >= 0) & (own < region.X.shape[0]), own, -1)
    return nearest_in_cells(region.X, region.cells, queries, k, itself=inside)
