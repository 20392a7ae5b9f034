"""View: the samples in one scaling, with all that no constraint changes.

Everything is computed when it is first needed and stays for later fits on the same
:class:`~linkwise.Prepared` data. No seed of the caller's changes it.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from linkwise.auto.bases import Bases, build_bases
from linkwise.auto.canonical import canonical_order, reordered
from linkwise.auto.coarse_cut import CoarseCut
from linkwise.auto.fold_cache import FoldCache
from linkwise.auto.learner import Ridge
from linkwise.auto.micro_clusters import MicroClusters
from linkwise.auto.prior import DataPrior, data_prior
from linkwise.auto.scaling import Scaling, plausible_scalings
from linkwise.auto.spanning_tree import minimum_spanning_tree
from linkwise.graph import Affinity, Prepared
from linkwise.partition import kmeans

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.auto.partition import Partition


MAX_ROWS = 5_000  # unconstrained samples that candidates partition; the rest follow a classifier
N_COARSE, FEW_COARSE = 6, 3  # micro-clusterings behind a coarse cut; for more samples than MAX_ROWS
MICRO = (2, 4)  # micro-clusters for each cluster
WITNESS_NEIGHBORS = 5  # of the graph that judges cuts: not the one in which they were sought
CORE_NEIGHBOR = 5  # whose distance is the least length of a robust spanning tree's edges
FREE_WEIGHT = 0.3  # of an unconstrained sample in a regression, beside a constrained one
FREE_SHARE = 4.0  # weight of all unconstrained samples of many, at most, beside the constrained


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
    """

    def __init__(self, prepared: Prepared, scaling: Scaling | None, bases: Bases) -> None:
        self.prepared, self.scaling, self.bases = prepared, scaling, bases
        self.k = bases.n_clusters
        self.n_samples = prepared.n_samples
        self.partitions: dict[str, Partition] = {}  # unsupervised, by name, on `rows`
        self._prior: DataPrior | None = None

    @property
    def W(self) -> Graph:  # noqa: N802  (a matrix, as everywhere)
        """The graph."""
        return self.prepared.W

    @property
    def has_features(self) -> bool:
        """Whether there are features, and not a graph alone."""
        return self.bases.components is not None

    @cached_property
    def rows(self) -> Ints:
        """Samples that unsupervised candidates partition: all, or a representative subset."""
        return representative_rows(self.n_samples)

    @cached_property
    def coordinates(self) -> Floats:
        """Principal components of all samples, of mean variance 1; of a graph, its embedding."""
        if self.bases.components is None:
            return self.bases.embedding(self.k)
        return self.bases.components.unit_scores

    @cached_property
    def kmeans(self) -> Ints:
        """K-means of the principal components, on all samples."""
        assert self.bases.components is not None
        return kmeans(self.bases.components.scores, self.k, self._rng(0), n_init=10).labels

    @cached_property
    def spectral(self) -> Ints:
        """Spectral clustering, of all samples."""
        return kmeans(self.bases.embedding(self.k), self.k, self._rng(1), n_init=10).labels

    @cached_property
    def coarse_cuts(self) -> list[CoarseCut]:
        """Micro-clusterings of the graph."""
        rng, wide = self._rng(2), self.bases.wide_embedding
        number = N_COARSE if self.n_samples <= MAX_ROWS else FEW_COARSE
        return [CoarseCut.of(self.W, wide, self.k, rng, start=self.spectral) for _ in range(number)]

    @cached_property
    def micro_clusters(self) -> dict[int, MicroClusters]:
        """Micro-clusters of the principal components, by their number for each cluster."""
        rng = self._rng(3)
        scores = self.coordinates
        return {factor: MicroClusters.of(scores, self.k, rng, factor=factor) for factor in MICRO}

    @cached_property
    def witness(self) -> Graph:
        """The graph of the rows that judges cuts."""
        if not self.has_features:
            return csr_array(csr_array(self.W)[self.rows][:, self.rows])
        neighbors = min(WITNESS_NEIGHBORS, self.rows.size - 1)
        return Affinity(neighbors=neighbors).fit_transform(self.prepared.X[self.rows])

    @cached_property
    def tree(self) -> Ints:
        """Edges of the minimum spanning tree of the rows, ascending."""
        return minimum_spanning_tree(self.coordinates[self.rows])[0]

    @cached_property
    def robust_tree(self) -> Ints:
        """The same for mutual reachability distances."""
        Z = self.coordinates[self.rows]
        m = min(CORE_NEIGHBOR, len(Z) - 1)
        core = np.asarray(KDTree(Z).query(Z, k=[m + 1])[0]).ravel()
        return minimum_spanning_tree(Z, core)[0]

    @property
    def prior(self) -> DataPrior:
        """What the samples say for each of the partitions, computed once for all of them."""
        if self._prior is None or len(self._prior.weights) < len(self.partitions):
            self._prior = data_prior(self)
        return self._prior

    def nearest_row(self, samples: Ints, rows: Ints) -> Ints:
        """Return the place in `rows`, which are ascending, of each sample or its nearest row."""
        place = np.minimum(np.searchsorted(rows, samples), rows.size - 1)
        away = rows[place] != samples
        if away.any():
            tree = KDTree(self.coordinates[rows])
            place[away] = tree.query(self.coordinates[samples[away]])[1]
        return place

    def design(self, rows: Ints, constrained: Ints) -> Design:
        """Return the normal equations of all bases at some samples.

        All of `constrained`, ascending, are among the rows. The others stand for all samples.
        """
        weights = np.ones(rows.size)
        free = np.ones(rows.size, bool)
        free[np.searchsorted(rows, constrained)] = False
        each = FREE_WEIGHT * (self.n_samples - constrained.size) / max(int(free.sum()), 1)
        if self.n_samples > MAX_ROWS and constrained.size:
            most = FREE_SHARE * constrained.size / max(int(free.sum()), 1)
            each = min(each, max(most, FREE_WEIGHT))
        weights[free] = each
        features = self.bases.features(rows)
        ridges = {
            name: Ridge.of(features[name], self.bases.penalty(name), weights)
            for name in self.bases.names
        }
        return Design(rows, weights, ridges)

    @staticmethod
    def _rng(number: int) -> np.random.RandomState:
        """Return random numbers that do not depend on what was computed before."""
        return np.random.RandomState(number)


class Design(NamedTuple):
    """Samples to learn from, their weights, and the normal equations of each basis."""

    rows: Ints
    weights: Floats
    ridges: dict[str, Ridge]


def representative_rows(n_samples: int) -> Ints:
    """Return all samples, or a random subset of many."""
    if n_samples <= MAX_ROWS:
        return np.arange(n_samples)
    rng = np.random.RandomState(0)
    return np.sort(rng.choice(n_samples, MAX_ROWS, replace=False))


_MAKING = RLock()


class Views:
    """The views of one data set, kept with :class:`~linkwise.Prepared` data for later fits."""

    title = "candidates of Auto"  # where a printed `Prepared` lists what it keeps

    def __init__(self, given: Prepared) -> None:
        self.given = given
        self.order = canonical_order(given)  # of the samples of all views; None: as given
        self.prepared = given if self.order is None else reordered(given, self.order)
        self._bases: dict[str, tuple[Prepared, Bases]] = {}
        self._views: dict[tuple[str, int], View] = {}
        self.folds: dict[int, FoldCache] = defaultdict(FoldCache)  # by number of clusters
        self.lock = RLock()  # held by a fit: what it keeps belongs to its constraints

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, lock=RLock())

    @classmethod
    def of(cls, prepared: Prepared) -> Views:
        """Return the views of prepared data, made once."""
        with _MAKING:  # two threads must not make them twice
            views = prepared.attached(cls)
            if views is None:
                views = cls(prepared)
                prepared.attach(views)
            return views

    @cached_property
    def scalings(self) -> list[Scaling]:
        """Scalings worth trying, the more plausible one first."""
        return plausible_scalings(self.prepared.X)

    def bases(self, scaling: Scaling | None, k: int) -> tuple[Prepared, Bases]:
        """Return the samples in a scaling, described for at least `k` clusters."""
        name = "" if scaling is None else scaling.name
        known = self._bases.get(name)
        if known is None or known[1].n_clusters < k:
            data = known[0] if known else self._scaled(scaling)
            X = None if data.is_graph else data.X
            known = self._bases[name] = data, build_bases(X, data.W, k)
        return known

    def view(self, scaling: Scaling | None, k: int) -> View:
        """Return a view for `k` clusters."""
        name = "" if scaling is None else scaling.name
        if (name, k) not in self._views:
            data, bases = self.bases(scaling, k)
            self._views[name, k] = View(data, scaling, bases.for_clusters(k))
        return self._views[name, k]

    def _scaled(self, scaling: Scaling | None) -> Prepared:
        if scaling is None or scaling.is_given:
            return self.prepared
        data: Any = scaling.transform(self.prepared.X)
        return Prepared(data, self.prepared.affinity)
