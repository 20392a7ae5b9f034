"""Strategies that look at eigenvectors: regions on which they are constant, and their derivatives.

The signature is that of `strategies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from scipy.special import entr, softmax

from linkwise.active.entail import entailed
from linkwise.active.strategies import first_question, take, unfinished
from linkwise.constraints import Constraints
from linkwise.partition import unit_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Floats, Ints
    from linkwise.active.state import Spectrum, State
    from linkwise.active.strategies import Pair


# Rows nearer than this share of the distance between regions are one value of the eigenvectors.
CONSTANT = 0.1
SMALL_EIGENVALUE = 0.02  # eigenvalues below are small, however much they differ
N_UNCERTAIN = 150  # samples near a boundary whose pairs are compared
N_CENTRAL = 3  # samples of each cluster with the most certain membership
SMALLEST_GAP = 1e-10  # of eigenvalues; nearer ones count as this far apart


# Regions ------------------------------------------------------------------------------------


class Regions(NamedTuple):
    """Sets of samples on which the leading eigenvectors are nearly constant."""

    representative: Ints  # of each region, its most central sample
    rows: Floats  # the embedding
    is_constant: bool  # whether nothing is left to see inside the regions


def regions(spectrum: Spectrum, n_clusters: int, doubled: int = 0) -> Regions:
    """Cut the samples into regions, as many as there are small eigenvalues before the others.

    That is where an eigenvalue exceeds the one before it by the largest factor. Each region gets a
    row of the embedding, found farthest first, and the samples nearest to it.
    With `doubled` the number of regions is doubled so many times.
    """
    n, n_vectors = spectrum.vectors.shape
    count = min(n_clusters, n)
    if n_vectors > n_clusters:
        raised = spectrum.values[n_clusters - 1 :] + SMALL_EIGENVALUE
        count += int(np.argmax(raised[1:] / raised[:-1]))
    rows = unit_rows(spectrum.vectors[:, :count])
    wanted = min(count * 2**doubled, n)
    # Farthest first from the row nearest to the mean, which is not one of the seeds.
    near = _squared(rows - rows.mean(axis=0))
    far = _squared(rows - rows[np.argmin(near)])
    nearest, region = np.full(n, np.inf), np.zeros(n, dtype=np.intp)
    apart, found = np.inf, 0
    while found < wanted:
        seed = int(np.argmax(far if found == 0 else nearest))
        if found and nearest[seed] == 0:
            break  # all rows are seeds, or equal to one
        apart = apart if found == 0 else min(apart, nearest[seed])
        distance = _squared(rows - rows[seed])
        region[distance < nearest] = found
        nearest = np.minimum(nearest, distance)
        found += 1
    is_constant = bool(nearest.max() <= CONSTANT**2 * apart)
    return Regions(_central(rows, region, found), rows, is_constant)


def _squared(differences: Floats) -> Floats:
    squared: Floats = np.einsum("ij,ij->i", differences, differences)
    return squared


def _central(rows: Floats, region: Ints, count: int) -> Ints:
    """Return the sample of each region that is nearest to its mean."""
    size = np.bincount(region, minlength=count)
    means = np.column_stack([np.bincount(region, column, count) / size for column in rows.T])
    # Both samples of a pair are equally central: rounding must not choose between them.
    off = np.round(_squared(rows - means[region]), 9)
    order = np.lexsort((off, region))
    central: Ints = order[np.concatenate(([0], np.cumsum(size)[:-1]))]
    return central


def xu(state: State, n_queries: int, rng: np.random.RandomState) -> Ints:
    """Ask about one representative of each region on which the eigenvectors are constant.

    The active clustering of Xu, desJardins & Wagstaff (2005). If each cluster consists of whole
    regions, it suffices to know which regions belong together. The graph tells least about regions
    that are far apart, so these are asked about first: on the XOR data two questions are enough.
    When all regions are decided and the eigenvectors are constant on them, nothing is left to ask;
    when they are not constant, the regions are cut in two, and the new ones are placed among the
    known neighbourhoods, the most similar ones first.
    """
    candidates = _between_regions(state)
    level = regions(state.base, state.n_clusters)
    pair = next(candidates, None)
    if pair is None and level.is_constant:
        return np.empty((0, 2), dtype=np.intp)
    if pair is None:
        return take(state, _inside_regions(state), n_queries, rng=rng)
    listed = [pair, *(other for other, _ in zip(candidates, range(n_queries), strict=False))]
    return take(state, listed, min(n_queries, len(listed)), rng=rng)


def _between_regions(state: State) -> Iterator[Pair]:
    """Yield the open pairs of representatives, the most distant first.

    The logic is that of regions: as soon as they form as many groups as clusters, all is known.
    """
    representative = regions(state.base, state.n_clusters).representative
    count = representative.size
    a, b = np.triu_indices(count, 1)
    relation = state.relation(representative[a], representative[b])
    pairs = np.column_stack((a, b))
    facts = Constraints(count, pairs[relation == 1], pairs[relation == -1])
    if not state.noisy:
        facts = entailed(facts, min(state.n_clusters, count))
    closed = facts.closure().relation(a, b) != 0
    far = _distances(state, representative)[a, b]
    for at in np.lexsort((np.arange(a.size), -far)):
        i, j = int(representative[a[at]]), int(representative[b[at]])
        if not closed[at] and state.is_open(i, j):
            yield i, j


def _distances(state: State, samples: Ints) -> Floats:
    """Return distances between few samples: of the data, or along the graph.

    The length of an edge is ``-log(w / w_max)``, so that a path is as long as its affinities
    multiplied are small; where there is no path the distance is infinite.
    """
    if state.X is not None:
        rows = state.X[samples]
        return np.sqrt(np.array([_squared(rows - row) for row in rows]))
    W = csr_array(state.W)
    # A length of zero would be no edge.
    length = np.maximum(np.log(W.data.max(initial=1e-300)) - np.log(W.data), 1e-12)
    lengths = csr_array((length, W.indices, W.indptr), shape=W.shape)
    along: Floats = shortest_path(lengths, directed=False, indices=samples)[:, samples]
    return along


def _inside_regions(state: State) -> Iterator[Pair]:
    """Yield questions that place representatives of smaller and smaller regions."""
    if not state.neighbourhoods:
        representative = regions(state.base, state.n_clusters).representative
        a, b = np.triu_indices(representative.size, 1)
        far = np.argsort(-_distances(state, representative)[a, b], kind="stable")
        pairs = np.column_stack((representative[a[far]], representative[b[far]]))
        yield from map(tuple, pairs.tolist())
        return
    doubled = previous = 0
    while True:
        doubled += 1
        found = regions(state.base, state.n_clusters, doubled)
        if found.representative.size == previous:
            return
        previous = found.representative.size
        means = np.array([found.rows[members].mean(axis=0) for members in state.neighbourhoods])
        for sample in [*unfinished(state), *found.representative.tolist()]:
            if not state.placed[sample]:
                order = np.argsort(_squared(means - found.rows[sample]), kind="stable")
                pair = first_question(state, sample, order)
                if pair is not None:
                    yield pair


# Boundary ----------------------------------------------------------------------------------


def boundary(state: State, n_queries: int, rng: np.random.RandomState) -> Ints:
    r"""Ask about the pairs whose answers would turn the eigenvectors most.

    The answers so far are written into the graph. An answer about `i` and `j` changes one
    affinity, which turns the space of the first `k` eigenvectors at the speed `sensitivity`; it
    matters as far as it is not known beforehand. The score of a pair is

    .. math:: h(p_{ij}) \, \Big\| \frac{\partial F}{\partial a_{ij}} \Big\|,

    with the entropy :math:`h` of the probability that the two are in one cluster. That comes
    from memberships which decrease with the squared distance to the means of the clusters in
    the embedding. Pairs are formed of the samples with the least certain membership, and of
    those and the most certain samples of each cluster.
    """
    return take(state, _movable(state), n_queries, rng=rng)


def _movable(state: State) -> Iterator[Pair]:
    k = state.n_clusters
    q = soft_memberships(unit_rows(state.spectrum.vectors[:, :k]), state.labels)
    entropy = entr(q).sum(axis=1)
    uncertain = np.argsort(-entropy, kind="stable")[:N_UNCERTAIN]
    central = np.argsort(-q, axis=0, kind="stable")[:N_CENTRAL].ravel()
    heads, tails = np.meshgrid(uncertain, np.union1d(uncertain, central), indexing="ij")
    pairs = np.column_stack((heads.ravel(), tails.ravel()))
    pairs = pairs[state.maybe_open(pairs)]
    together = np.clip(np.einsum("ij,ij->i", q[pairs[:, 0]], q[pairs[:, 1]]), 0, 1)
    gain = entr(together) + entr(1 - together)
    score = gain * sensitivity(state.spectrum, pairs, k)
    yield from map(tuple, pairs[np.argsort(-score, kind="stable")].tolist())


def soft_memberships(rows: Floats, labels: Ints) -> Floats:
    """Return memberships that decrease with the squared distance to the mean of each cluster."""
    clusters = np.unique(labels)
    means = np.array([rows[labels == c].mean(axis=0) for c in clusters])
    squared = np.column_stack([_squared(rows - mean) for mean in means])
    scale = squared.min(axis=1).mean()
    memberships: Floats = softmax(-squared / (2 * scale if scale > 0 else 1.0), axis=1)
    return memberships


def sensitivity(spectrum: Spectrum, pairs: Ints, k: int) -> Floats:
    r"""Return how fast the first `k` eigenvectors turn as the affinity of each pair grows.

    With :math:`L f = \lambda D f` and :math:`f^T D f = 1`, adding :math:`t` to :math:`a_{ij}` moves
    the eigenvector :math:`f_a` along :math:`f_b` by :math:`t c_{ab}` to first order, with

    .. math::

        c_{ab} = \frac{(f_a(i) - f_a(j)) (f_b(i) - f_b(j))
                 - \lambda_a (f_a(i) f_b(i) + f_a(j) f_b(j))}{\lambda_a - \lambda_b} .

    Turning within the first `k` changes no space, so the speed is the root of the sum of squares
    over :math:`a \le k < b`, as far as eigenvectors were computed.
    """
    lam, F = spectrum
    at_i, at_j = F[pairs[:, 0]], F[pairs[:, 1]]
    step = at_i - at_j
    total = np.zeros(len(pairs))
    for a in range(min(k, lam.size)):
        moved = step[:, a : a + 1] * step[:, k:] - lam[a] * (
            at_i[:, a : a + 1] * at_i[:, k:] + at_j[:, a : a + 1] * at_j[:, k:]
        )
        gap = np.maximum(lam[k:] - lam[a], SMALLEST_GAP)
        total += ((moved / gap) ** 2).sum(axis=1)
    return np.sqrt(total)
