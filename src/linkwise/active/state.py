"""State: everything that a strategy may look at when it chooses questions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import issparse

from linkwise.active.entail import (
    as_labels,
    consistent_part,
    entailed,
    is_decided,
    neighbourhoods,
    with_uncertain,
)
from linkwise.active.fits import Fits
from linkwise.active.model import Model
from linkwise.exceptions import ConflictError
from linkwise.linalg.embedding import random_walk_vectors, spectral_embedding
from linkwise.linalg.laplacian import degrees
from linkwise.methods.csc import edit
from linkwise.methods.ncut import normalized_cut
from linkwise.partition import unit_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from linkwise._types import Bools, Floats, Graph, Int8s, Int64s, Ints
    from linkwise.active.forest import Forest
    from linkwise.active.hypotheses import Beliefs
    from linkwise.constraints import Closure, Constraints
    from linkwise.graph import Prepared
    from linkwise.linalg.eigen import EigenPairs


class Spectrum(NamedTuple):
    """Lowest eigenpairs of ``L f = lambda D f``, with ``f' D f = 1``."""

    values: Floats  # lambda, ascending
    vectors: Floats  # f, in columns; an isolated vertex counts as one of degree 1

    @classmethod
    def of(cls, pairs: EigenPairs, d: Floats) -> Spectrum:
        """Turn eigenpairs of the normalised adjacency into those of the random walk."""
        return cls(1 - pairs.values, random_walk_vectors(pairs.vectors, d))


def spectrum(W: Graph, n_vectors: int) -> Spectrum:
    """Return the lowest eigenpairs of the random-walk Laplacian; the same at each call."""
    d = degrees(W)
    rng = np.random.RandomState(0)
    return Spectrum.of(spectral_embedding(W, min(n_vectors, d.size), rng, d=d), d)


@dataclass
class Cache:
    """What the states of one session share."""

    forest: Forest | None = None


@dataclass(frozen=True, eq=False)
class State:
    """What is known when the next questions are chosen. Frozen; costly parts are made on demand.

    Parameters
    ----------
    data : Prepared
        The samples, or their graph. Distances are those of the embedding where the data are sparse
        or only the graph is given.
    n_clusters : int
        The number of clusters, none of which is empty.
    constraints : Constraints
        The answers so far, and what was known before.
    unknown : array-like of shape (m, 2), default=()
        Pairs that were answered with "unknown".
    last : tuple of int, default=None
        The pair that was asked last.
    noisy : bool, default=False
        Whether answers may be wrong. Nothing is then entailed; only the pairs that were asked
        themselves are not asked again.
    fit : callable, default=None
        Returns the labels of a clustering under the constraints it is given; by default the
        normalised cut of the graph with the constraints written into it.
    believe : callable, default=None
        Returns what the candidates of :class:`~linkwise.Auto` say; by default those of a fit under
        the constraints.
    is_number_known : bool, default=True
        Whether `n_clusters` is the number of clusters, and not only the most there may be.
    cache : Cache
        Results that do not depend on answers, for the states of one session.

    Examples
    --------
    >>> from linkwise import Constraints, Prepared
    >>> from linkwise.datasets import make_xor
    >>> X, _ = make_xor(random_state=0)
    >>> known = Constraints(40, must_link=[(0, 20)], cannot_link=[(0, 10)])
    >>> state = State(Prepared(X), 2, known)
    >>> state.relation(20, [0, 10, 30]).tolist()
    [1, -1, 0]
    >>> [group.tolist() for group in state.neighbourhoods]
    [[0, 20], [10]]
    """

    data: Prepared
    n_clusters: int
    constraints: Constraints
    unknown: ArrayLike = ()
    last: tuple[int, int] | None = None
    noisy: bool = False
    fit: Callable[[Constraints], Ints] | None = None
    believe: Callable[[], Beliefs] | None = None
    is_number_known: bool = True
    cache: Cache = field(default_factory=Cache, repr=False)

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return self.constraints.n_samples

    @property
    def W(self) -> Graph:  # noqa: N802
        """The graph."""
        graph: Graph = self.data.W
        return graph

    @property
    def X(self) -> Floats | None:  # noqa: N802
        """The data; None if they are sparse or only the graph is given."""
        X: Floats = self.data.X
        return None if self.data.is_graph or issparse(X) else X

    # What is known -------------------------------------------------------------------------

    @cached_property
    def facts(self) -> Constraints:
        """The certain pairs and labels, and the pairs that follow from the number of clusters.

        With noisy answers: an estimate, every answer taken as certain unless others contradict it.
        """
        if not self.is_number_known:
            return consistent_part(self.constraints) if self.noisy else self.constraints.certain
        if not self.noisy:
            return entailed(self.constraints.certain, self.n_clusters)
        estimate = consistent_part(self.constraints)
        try:
            return entailed(estimate, self.n_clusters)
        except ConflictError:  # the estimate does not fit into so many clusters
            return estimate

    @cached_property
    def closure(self) -> Closure:
        """Everything that `facts` entail."""
        return self.facts.closure()

    def relation(self, i: ArrayLike, j: ArrayLike) -> Int8s:
        """Return what is known about pairs: 1 together, -1 apart, 0 not known."""
        return self.closure.relation(i, j)

    @cached_property
    def neighbourhoods(self) -> list[Ints]:
        """Groups of samples that are known to be mutually apart; see `entail.neighbourhoods`."""
        return neighbourhoods(self.facts, self.n_clusters)

    @cached_property
    def placed(self) -> Bools:
        """Which samples are in a neighbourhood."""
        placed = np.zeros(self.n_samples, dtype=bool)
        for members in self.neighbourhoods:
            placed[members] = True
        return placed

    # What may be asked ---------------------------------------------------------------------

    @cached_property
    def _asked(self) -> Int64s:
        """Keys of the pairs with an answer, "unknown" too; sorted.

        Answers that cannot be wrong have belief 1; pairs of lower belief may be asked.
        """
        unknown = np.asarray(self.unknown, dtype=np.intp).reshape(-1, 2)
        given = self.constraints if self.noisy else self.constraints.certain
        return np.unique(self._key(np.concatenate((given.table.pairs, unknown))))

    def _key(self, pairs: Ints) -> Int64s:
        low, high = pairs.min(axis=1), pairs.max(axis=1)
        return low.astype(np.int64) * self.n_samples + high

    def maybe_open(self, pairs: Ints) -> Bools:
        """Which pairs were not asked and are not in the closure; colouring is not tried."""
        pairs = np.asarray(pairs, dtype=np.intp).reshape(-1, 2)
        fresh = ~np.isin(self._key(pairs), self._asked) & (pairs[:, 0] != pairs[:, 1])
        if self.noisy:
            return fresh
        known: Bools = self.relation(pairs[:, 0], pairs[:, 1]) != 0
        return fresh & ~known

    def is_open(self, i: int, j: int) -> bool:
        """Whether a pair was not asked and both answers are still possible."""
        if not self.maybe_open(np.array([[i, j]]))[0]:
            return False
        if self.noisy or not self.is_number_known:
            return True
        return not is_decided(self.facts, (i, j), self.n_clusters)

    # What the clustering looks like --------------------------------------------------------

    @cached_property
    def evidence(self) -> Constraints:
        """What a clustering should respect: the facts, or noisy answers with their beliefs.

        In the facts, neighbourhoods are labels, which stand for all pairs of their samples.
        Uncertain pairs that were given beforehand are kept where the facts leave them open.
        """
        if self.noisy:
            return self.constraints
        facts = as_labels(self.facts, self.neighbourhoods)
        if (self.constraints.table.belief == 1).all():
            return facts
        return with_uncertain(facts, self.constraints)

    @cached_property
    def labels(self) -> Ints:
        """The current clustering."""
        if self.fit is not None:
            return self.fit(self.evidence)
        rng = np.random.RandomState(0)
        return normalized_cut(self.edited, self.n_clusters, rng).labels

    @cached_property
    def beliefs(self) -> Beliefs:
        """What the candidate partitions of Auto say, given the answers."""
        if self.believe is not None:
            return self.believe()
        k = self.n_clusters
        model = Model("auto", self.data, n_clusters=k, hard=False, seed=0)
        return Fits(model, self.constraints, noisy=self.noisy).after(()).beliefs(())

    @cached_property
    def base(self) -> Spectrum:
        """Eigenpairs of the graph without constraints: three per cluster, at least ten more."""
        n_vectors = min(max(3 * self.n_clusters, self.n_clusters + 10), self.n_samples)
        pairs = self.data.embedding(n_vectors, np.random.RandomState(0))
        return Spectrum.of(pairs, self.data.degrees)

    @cached_property
    def edited(self) -> Graph:
        """The graph with the answers written into it, as by :class:`linkwise.CSC`."""
        return edit(self.W, self.evidence)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenpairs of `edited`: two per cluster, and four more."""
        return spectrum(self.edited, 2 * self.n_clusters + 4)

    @property
    def points(self) -> Floats:
        """Where the samples are: the data, or the embedding of the graph."""
        if self.X is not None:
            return self.X
        return unit_rows(self.base.vectors[:, : self.n_clusters])
