"""View: the samples in one scaling, with all that no constraint changes.

Everything is computed when it is first needed and stays for later fits on the same
:class:`~linkwise.Prepared` data. No seed of the caller's changes it, and no order of the samples:
random starts are drawn by the numbers of samples, so all views number them by a projection.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.spatial import KDTree
from sklearn.neighbors import kneighbors_graph

from linkwise._rows import RowIndex
from linkwise.auto.bases import NAMES as BASES
from linkwise.auto.bases import (
    Bases,
    Jittered,
    binary_features,
    build_bases,
    few_valued,
    jittered,
    nearly_constant,
    one_hot_blocks,
)
from linkwise.auto.coarse_cut import CoarseCut, MicroClusters
from linkwise.auto.constraint_model import labelled_samples
from linkwise.auto.evidence import FoldCache
from linkwise.auto.learner import Design, Ridge
from linkwise.auto.spanning_tree import minimum_spanning_tree
from linkwise.constraints.table import pair_keys
from linkwise.graph import Affinity, Prepared
from linkwise.graph.affinity import check_in_range
from linkwise.graph.prepared import drawn
from linkwise.partition import kmeans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Bools, Floats, Graph, Ints
    from linkwise.auto.consensus import Partition
    from linkwise.auto.prior import DataPrior
    from linkwise.constraints import Constraints


MAX_ROWS = 5_000  # unconstrained samples that candidates partition; the rest follow a classifier
N_COARSE, FEW_COARSE = 6, 3  # micro-clusterings behind a coarse cut; for more samples than MAX_ROWS
MICRO = (2, 4)  # micro-clusters for each cluster
# Of the graphs that judge cuts, none of them the one in which they were sought
WITNESS_NEIGHBORS, MUTUAL_NEIGHBORS = 5, 10
CORE_NEIGHBOR = 5  # whose distance is the least length of a robust spanning tree's edges
FREE_WEIGHT = 0.3  # of an unconstrained sample in a regression, beside a constrained one
FREE_SHARE = 4.0  # weight of all unconstrained samples of many, at most, beside the constrained

GIVEN, STANDARDIZED = "as given", "standardised"
JITTERED = ", those with few values jittered"  # after one of these
NAMES = {"given": GIVEN, "standardize": STANDARDIZED}  # values of the parameter `scaling`
# One feature dominates if the participation ratio of the variances is below this share of the
# number of features, and the largest standard deviation so many times the median one.
PARTICIPATION, RATIO = 0.15, 6.0
ALIKE = 4.0  # variances that differ by a smaller factor need no second look
JITTERED_FROM = 0.2  # share of features with few values; among fewer, the others decide
MOSTLY_BINARY = 0.9  # share of features with two values, from which on none is jittered
LEAST_FEATURES, LEAST_SAMPLES = 3, 100  # to jitter some: among few samples, noise has patterns
CONSTANT = 1e-12  # standard deviation of a constant feature, in units of the largest entry

ORDERED_UP_TO = 20_000  # samples; beyond, a second copy of the graph costs more than it is worth


# --- scalings of the features: as they are given, or each divided by its standard deviation, the
# columns of a category by a common one


class Scaling(NamedTuple):
    """Features divided by their deviations, or as they are."""

    name: str
    used: Bools  # features that are not constant
    mean: Floats  # zero for sparse data, which are not centred
    deviation: Floats  # standardised, the columns of a category have one
    shrinkage: Floats | None = None  # of jittered features

    @property
    def unit(self) -> str:
        """Whether features are as given or standardised, jittered or not."""
        return self.name.removesuffix(JITTERED)

    def transform(self, X: Any) -> Any:
        """Return the scaled features of new samples, which are not jittered themselves."""
        if self.shrinkage is not None:
            X = self.mean + self.shrinkage * (X - self.mean)
        return self.scaled(X)

    def scaled(self, X: Any) -> Any:
        """Return the features in these units."""
        if self.unit == GIVEN:
            return X
        if issparse(X):
            weight = np.where(self.used, 1 / np.where(self.used, self.deviation, 1.0), 0.0)
            return csr_array(csr_array(X).multiply(weight[None, :]))
        if not self.used.any():
            return np.zeros((X.shape[0], 1))
        return (X[:, self.used] - self.mean[self.used]) / self.deviation[self.used]


def both_scalings(X: Any) -> tuple[Scaling, Scaling]:
    """Return the features as given, and standardised.

    The columns of a category are divided by one number, so that all of them together have the
    variance of one feature: by its own deviation, each would count as much as a number, and a rare
    value would be farthest from all others.
    """
    unit = float(np.abs(X.data if issparse(X) else X).max(initial=0.0)) or 1.0
    if issparse(X):
        scaled = csr_array(X) / unit  # keeps squares in range
        mean = np.asarray(scaled.mean(axis=0)).ravel()
        square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0)) * unit
        center = np.zeros_like(mean)
    else:
        scaled = X / unit
        center, deviation = scaled.mean(axis=0) * unit, scaled.std(axis=0) * unit
    used = deviation > CONSTANT * unit
    common = deviation.copy()
    for block in one_hot_blocks(X):
        common[block] = np.sqrt(((deviation[block] / unit) ** 2).sum()) * unit
    return Scaling(GIVEN, used, center, deviation), Scaling(STANDARDIZED, used, center, common)


def plausible_scalings(X: Any) -> list[Scaling]:
    """Return the scalings worth trying, the more plausible one first.

    Standardised features come first if a single unit of measurement drowns the others. The
    participation ratio of the variances `v`, ``(sum v)^2 / sum v^2``, counts the features that
    matter to a distance. The columns of a category have no unit, so the other features are judged;
    beside these, standardising comes first as well if it does not change the others.
    """
    given, standardized = both_scalings(X)
    in_category = standardized.deviation != given.deviation
    has_category = bool(in_category.any())
    judged = given.used & ~in_category
    if not judged.any():
        judged = given.used
        has_category = False
    unit = given.deviation.max(initial=1e-300)  # keeps squares in range
    v = np.sort((given.deviation[judged] / unit) ** 2)
    d = v.size
    if d < 2 or v[-1] < ALIKE * v[0]:
        return [standardized, given] if has_category else [given]
    is_dominated = (
        v.sum() ** 2 / (v**2).sum() < 1 + PARTICIPATION * (d - 1) and RATIO**2 * v[(d - 1) // 2] < 1
    )
    return [standardized, given] if is_dominated else [given, standardized]


# --- an order of the samples that does not depend on the order in which they are given


def canonical_order(prepared: Prepared) -> Ints | None:
    """Return the samples sorted by a projection; None for a graph, which has none, or many."""
    if prepared.is_graph or prepared.n_samples > ORDERED_UP_TO:
        return None
    X = prepared.X
    direction = np.random.RandomState(0).normal(size=X.shape[1])
    # Summed row by row: the last bits do not depend on the place of a row.
    unit = np.abs(X.data if issparse(X) else X).max(initial=0.0) or 1.0
    scaled = X / unit
    key = scaled @ direction if issparse(X) else (scaled * direction).sum(axis=1)
    return np.argsort(np.asarray(key).ravel(), kind="stable")


def permuted(W: Graph, order: Ints) -> Graph:
    """Return a graph of the same samples in another order."""
    return csr_array(csr_array(W)[order][:, order]) if issparse(W) else W[np.ix_(order, order)]


def constraint_places(constraints: Constraints, order: Ints) -> Ints:
    """Return where each pair, then each label, is among the same ones on reordered samples."""
    rank = np.argsort(order)
    table, labelled = constraints.table, labelled_samples(constraints)[0]
    # Reordered constraints are sorted: must-links, cannot-links, labels, each by its samples.
    keys = pair_keys(np.sort(rank[table.pairs], axis=1), order.size)
    of_pairs = np.argsort(np.lexsort((keys, -table.sign)))
    of_labels = keys.size + np.argsort(np.argsort(rank[labelled]))
    return np.concatenate((of_pairs, of_labels)).astype(np.intp)


# --- views


class View:
    """Samples in one scaling, described for `k` clusters.

    Parameters
    ----------
    prepared : Prepared
        The samples in this scaling, and their graph.
    scaling : Scaling or None
        The scaling; None for a graph.
    bases : Bases
        Descriptions of the samples, for `k` clusters.
    trees : dict or None
        Spanning trees found before, which do not depend on `k`; new ones are added.
    rows : ndarray of int or None
        Samples that unsupervised candidates partition; None for all, or a random subset of many.
    """

    def __init__(
        self,
        prepared: Prepared,
        scaling: Scaling | None,
        bases: Bases,
        trees: dict[bool, Ints] | None = None,
        *,
        rows: Ints | None = None,
    ) -> None:
        self.prepared, self.scaling, self.bases = prepared, scaling, bases
        self.name = "" if scaling is None else scaling.name
        self.k, self.W = bases.n_clusters, bases.W
        self.has_features = bases.scores is not None  # and not a graph alone
        self.n_samples = prepared.n_samples
        self.rows = np.arange(self.n_samples) if rows is None else rows
        if rows is None and self.n_samples > MAX_ROWS:
            self.rows = drawn(self.n_samples, MAX_ROWS)
        self.partitions: dict[str, Partition] = {}  # unsupervised, by name, on `rows`
        self._trees = {} if trees is None else trees
        self.prior: DataPrior | None = None  # of as many of them as there were

    @cached_property
    def coordinates(self) -> Floats:
        """Principal components of all samples, of mean variance 1; of a graph, its embedding."""
        if self.bases.scores is None:
            return self.bases.embedding(self.k)
        return self.bases.scores / self.bases.rms

    @cached_property
    def binary(self) -> Any | None:
        """The features of the rows as 0 and 1, if each has two values."""
        return binary_features(self.prepared.X[self.rows]) if self.has_features else None

    @cached_property
    def spectral(self) -> Ints:
        """Spectral clustering, of all samples."""
        rng = np.random.RandomState(1)
        return kmeans(self.bases.embedding(self.k), self.k, rng, n_init=10).labels

    @cached_property
    def coarse_cuts(self) -> list[CoarseCut]:
        """Micro-clusterings of the graph, in an embedding where its components differ."""
        embedding = self.bases.embedding(max(2 * self.k, self.bases.spectrum.n_pieces))
        number = N_COARSE if self.n_samples <= MAX_ROWS else FEW_COARSE
        rng = np.random.RandomState(2)
        found: list[CoarseCut] = []
        while len(found) < number:
            found.append(CoarseCut.of(self.W, embedding, self.k, rng=rng, start=self.spectral))
        return found

    @cached_property
    def micro_clusters(self) -> dict[int, MicroClusters]:
        """Micro-clusters of the principal components, by their number for each cluster."""
        rng, found = np.random.RandomState(3), {}
        for factor in MICRO:
            found[factor] = MicroClusters.of(self.coordinates, self.k, rng, factor=factor)
        return found

    @cached_property
    def witnesses(self) -> tuple[Graph, ...]:
        """The graphs of the rows that judge cuts: of near neighbours, and of mutual ones.

        The second has no edges to stray samples, which have neighbours and are nobody's. Of a graph
        alone, that graph.
        """
        if not self.has_features:
            return (csr_array(csr_array(self.W)[self.rows][:, self.rows]),)
        most = self.rows.size - 1
        near = Affinity(neighbors=min(WITNESS_NEIGHBORS, most))
        nearest = kneighbors_graph(self.coordinates[self.rows], min(MUTUAL_NEIGHBORS, most))
        mutual = csr_array(nearest.minimum(nearest.T))
        return near.fit_transform(self.prepared.X[self.rows]), mutual

    def tree(self, *, robust: bool) -> Ints:
        """Return the edges of the minimum spanning tree of the rows, ascending.

        A `robust` one is that of mutual reachability distances.
        """
        if robust not in self._trees:
            Z, core = self.coordinates[self.rows], None
            if robust:
                m = min(CORE_NEIGHBOR, len(Z) - 1)
                core = np.asarray(KDTree(Z).query(Z, k=[m + 1])[0]).ravel()
            self._trees[robust] = minimum_spanning_tree(Z, core)[0]
        return self._trees[robust]

    def nearest_row(self, samples: Ints, rows: Ints) -> Ints:
        """Return the place in `rows`, which are ascending, of each sample or its nearest row."""
        place = np.minimum(np.searchsorted(rows, samples), rows.size - 1)
        away = rows[place] != samples
        if away.any():
            tree = KDTree(self.coordinates[rows])
            place[away] = tree.query(self.coordinates[samples[away]])[1]
        return place

    def design(self, rows: Ints, constrained: Ints, names: Sequence[str] = BASES) -> Design:
        """Return the normal equations of all bases, or of some, at some samples.

        All of `constrained`, ascending, are among the rows. The others stand for all samples.
        """
        free = np.ones(rows.size, bool)
        free[np.searchsorted(rows, constrained)] = False
        n_free = max(int(free.sum()), 1)
        each = FREE_WEIGHT * (self.n_samples - constrained.size) / n_free
        if self.n_samples > MAX_ROWS and constrained.size:
            each = min(each, max(FREE_SHARE * constrained.size / n_free, FREE_WEIGHT))
        weights = np.where(free, each, 1.0)
        ridges = {}
        for name, basis in self.bases.at(rows, names).items():
            if name in names:
                ridges[name] = Ridge.of(basis, weights)
        return Design(rows, weights, ridges)


_MAKING = RLock()


class Views:
    """The views of one data set, kept with :class:`~linkwise.Prepared` data for later fits."""

    title = "candidates of Auto"  # where a printed `Prepared` lists what it keeps

    def __init__(self, given: Prepared) -> None:
        self.given = self.prepared = given
        self.order = canonical_order(given)  # of the samples of all views; None: as given
        if self.order is not None:
            self.prepared = Prepared(given.X[self.order], given.affinity)
            if given.has_graph:  # it is not built again
                self.prepared.set_graph(permuted(given.W, self.order))
        self.jittered: Jittered | None = None  # with the scalings, if few values are many
        self.rows = given.drawn
        if self.rows is not None and self.order is not None:
            self.rows = np.sort(np.argsort(self.order)[self.rows])
        self._bases: dict[str, tuple[Prepared, Bases]] = {}
        self._views: dict[tuple[str, int], View] = {}
        self._trees: dict[str, dict[bool, Ints]] = defaultdict(dict)  # by names of scalings
        self.folds: dict[int, FoldCache] = defaultdict(FoldCache)  # by number of clusters
        self.lock = RLock()  # held by a fit: what it keeps belongs to its constraints

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=RLock())

    @cached_property
    def scalings(self) -> list[Scaling]:
        """Scalings worth trying, the more plausible one first; none of a graph."""
        if self.prepared.is_graph:
            return []
        plausible = plausible_scalings(self.prepared.X)
        if not self._are_many_few_valued(plausible[0].used):
            return plausible
        self.jittered = jittered(self.prepared.X, few_valued(self.prepared.X))
        first, *others = (
            one._replace(name=one.name + JITTERED, shrinkage=self.jittered.shrinkage)
            for one in plausible
        )
        # Without jitter second: constraints may show that a category is a cluster
        return [first, plausible[0], *others]

    def _are_many_few_valued(self, used: Bools) -> bool:
        """Whether many of the features in use have few values, and are to be jittered.

        Not if nearly all have two, of which the clusters are made; nor if most samples have equals,
        or there are two features: then the values are all there is. Nor of few samples. With an
        affinity of the caller's, features are taken as given.
        """
        X = self.prepared.X
        if issparse(X) or self.prepared.affinity is not None:
            return False
        X = X[:, used]
        if X.shape[1] < LEAST_FEATURES or X.shape[0] < LEAST_SAMPLES:
            return False
        share = (few_valued(X) & ~nearly_constant(X)).mean()
        has_two = ((X.min(axis=0) == X) | (X.max(axis=0) == X)).all(axis=0).mean()
        if share < JITTERED_FROM or has_two >= MOSTLY_BINARY:
            return False
        return bool(np.unique(RowIndex(X).find(X)).size >= len(X) / 2)

    @classmethod
    def of(cls, prepared: Prepared) -> Views:
        """Return the views of prepared data, made once."""
        with _MAKING:  # two threads must not make them twice
            if cls not in prepared.attached:
                prepared.attached[cls] = cls(prepared)
            views: Views = prepared.attached[cls]
            return views

    def bases(self, scaling: Scaling | None, k: int) -> tuple[Prepared, Bases]:
        """Return the samples in a scaling, described for at least `k` clusters."""
        name = "" if scaling is None else scaling.name
        known = self._bases.get(name)
        if known is None or known[1].n_clusters < k:
            data = known[0] if known else self.prepared
            if known is None and scaling is not None and name != GIVEN:
                X = data.X
                if scaling.shrinkage is not None and self.jittered is not None:
                    X = self.jittered.X
                data = Prepared(scaling.scaled(X), data.affinity)
            elif known is None and not data.is_graph:
                check_in_range(self.given.X, data.affinity)  # names rows, in the order given
            X = None if data.is_graph else data.X
            known = self._bases[name] = data, build_bases(X, data.W, k)
        return known

    def view(self, scaling: Scaling | None, k: int, *, is_kept: bool = True) -> View:
        """Return a view for `k` clusters, kept for later fits or not."""
        name = "" if scaling is None else scaling.name
        view = self._views.get((name, k))
        if view is None:
            data, bases = self.bases(scaling, k)
            bases = bases if bases.n_clusters == k else bases.for_clusters(k)
            view = View(data, scaling, bases, self._trees[name], rows=self.rows)
        if is_kept:
            self._views[name, k] = view
        return view
