"""Strategies: which pairs to ask next.

Each is a function ``(state, n_queries, rng) -> pairs``. It returns at most `n_queries` distinct
pairs, as an array of shape (m, 2), that were not asked before and whose answers are not entailed by
those so far. It draws only from the generator it is handed.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import entr
from sklearn.metrics import pairwise_distances_chunked

from linkwise.active.forest import Forest
from linkwise.partition import relabelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from linkwise._types import Floats, Ints
    from linkwise.active.state import State

    Pair: TypeAlias = tuple[int, int]
    Strategy: TypeAlias = Callable[[State, int, np.random.RandomState], Ints]

DRAWS = 1_000  # random pairs tried before the open ones are searched for one by one


def take(
    state: State, candidates: Iterable[Pair], n_queries: int, *, rng: np.random.RandomState
) -> Ints:
    """Return the first open candidates, filled up with random open pairs."""
    found: list[Pair] = []
    seen: set[Pair] = set()
    for i, j in chain(candidates, _random_pairs(state, rng)):
        pair = (min(i, j), max(i, j))
        if pair not in seen and state.is_open(*pair):
            found.append(pair)
        if len(found) == n_queries:
            break
        seen.add(pair)
    return np.array(found, dtype=np.intp).reshape(-1, 2)


# Random ------------------------------------------------------------------------------------


def random(state: State, n_queries: int, rng: np.random.RandomState) -> Ints:
    """Ask about any open pair: what every other strategy has to beat."""
    return take(state, (), n_queries, rng=rng)


def _random_pairs(state: State, rng: np.random.RandomState) -> Iterator[Pair]:
    """Yield pairs that may be open: uniform draws first, then all that are left, row by row."""
    n = state.n_samples
    pairs = np.column_stack((rng.randint(n, size=DRAWS), rng.randint(n, size=DRAWS)))
    yield from map(tuple, pairs[state.maybe_open(pairs)].tolist())
    # One sample stands for its group, unless pairs of the same groups were asked already.
    some = np.unique(state.closure.component, return_index=True)[1]
    for samples in (some, np.arange(n)):
        order = rng.permutation(samples)
        for place, i in enumerate(order[:-1]):
            rest = order[place + 1 :]
            pairs = np.column_stack((np.full(rest.size, i), rest))
            yield from map(tuple, pairs[state.maybe_open(pairs)].tolist())
        if not state.noisy and not len(np.atleast_1d(state.unknown)):
            return


# Neighbourhoods ----------------------------------------------------------------------------


def questions_to_place(state: State, sample: int, order: Iterable[int]) -> Iterator[Pair]:
    """Yield a question about a sample and each neighbourhood, its nearest member, in an order."""
    for which in order:
        members = state.neighbourhoods[which]
        offset = state.points[members] - state.points[sample]
        yield sample, int(members[np.argmin(np.einsum("ij,ij->i", offset, offset))])


def first_question(state: State, sample: int, order: Iterable[int]) -> Pair | None:
    """Return the first open question of `questions_to_place`."""
    return next((p for p in questions_to_place(state, sample, order) if state.is_open(*p)), None)


def unfinished(state: State) -> list[int]:
    """Return the samples of the last question that no neighbourhood has yet."""
    return [] if state.last is None else [s for s in state.last if not state.placed[s]]


def _farthest_first(state: State, rng: np.random.RandomState) -> Iterator[int]:
    """Yield samples outside the neighbourhoods, the farthest from all members first."""
    started = bool(state.neighbourhoods)
    points = state.points
    traversed = np.flatnonzero(state.placed) if started else rng.randint(len(points), size=1)
    # Squared distances to the nearest member, block by block: no n x n array.
    blocks = pairwise_distances_chunked(
        points, points[traversed], reduce_func=lambda block, _: block.min(axis=1)
    )
    far = np.concatenate(list(blocks))
    far[state.placed] = -1
    for sample in np.argsort(-far, kind="stable"):
        if far[sample] >= 0:
            yield int(sample)


def _nearest_neighbourhoods(state: State, sample: int) -> Ints:
    """Order the neighbourhoods by the distance of their means from a sample."""
    means = np.array([state.points[members].mean(axis=0) for members in state.neighbourhoods])
    return np.argsort(np.linalg.norm(means - state.points[sample], axis=1), kind="stable")


def explore(state: State, n_queries: int, rng: np.random.RandomState) -> Ints:
    """Find a neighbourhood of each cluster, farthest first; then place samples at random.

    *Explore*: the sample farthest from all neighbourhoods is asked about against each of them,
    the nearest mean first; if it belongs to none, it starts a new one. *Consolidate*: once there
    is one for each cluster, random samples are placed in the same way (Basu, Banerjee & Mooney
    2004). A sample is finished before the next one is begun.
    """
    return take(state, _explored(state, rng), n_queries, rng=rng)


def _explored(state: State, rng: np.random.RandomState) -> Iterator[Pair]:
    found = state.neighbourhoods
    if not found:
        yield from _first_pairs(state, rng)
        return
    if len(found) < state.n_clusters:
        samples: Iterable[int] = _farthest_first(state, rng)
    else:
        samples = map(int, rng.permutation(np.flatnonzero(~state.placed)))
    for sample in (s for part in (unfinished(state), samples) for s in part):
        pair = first_question(state, sample, _nearest_neighbourhoods(state, sample))
        if pair is not None:
            yield pair


def _first_pairs(state: State, rng: np.random.RandomState) -> Iterator[Pair]:
    """Yield a random sample with each of the others, the farthest first."""
    start = int(rng.randint(state.n_samples))
    far = np.linalg.norm(state.points - state.points[start], axis=1)
    for other in np.argsort(-far, kind="stable"):
        if other != start:
            yield start, int(other)


# Uncertainty -------------------------------------------------------------------------------


def uncertainty(state: State, n_queries: int, rng: np.random.RandomState) -> Ints:
    """Place the sample whose neighbourhood is least certain for the questions it takes.

    The normalised point-based uncertainty of Xiong, Azimi & Fern (2014). A random forest learns
    the current clustering; samples are similar that share many of its leaves. A sample belongs to
    a neighbourhood with a probability in proportion to its mean similarity to the members. The
    entropy of that, divided by the expected number of questions until the sample is placed, is
    the value of asking about it. The neighbourhoods are tried in the order of their probability.
    Until there are two of them, samples are chosen as in `explore`. Without data the forest
    learns from the embedding of the graph.
    """
    if len(state.neighbourhoods) < 2:
        return explore(state, n_queries, rng=rng)
    return take(state, _uncertain(state, rng), n_queries, rng=rng)


def _uncertain(state: State, rng: np.random.RandomState) -> Iterator[Pair]:
    probability = memberships(state)
    value = question_value(probability)
    value[state.placed] = -1
    order = np.lexsort((rng.random_sample(value.size), -value))
    for sample in [*unfinished(state), *order[: (~state.placed).sum()].tolist()]:
        likely = np.argsort(-probability[sample], kind="stable")
        pair = first_question(state, sample, likely)
        if pair is not None:
            yield pair


def question_value(probability: Floats) -> Floats:
    """Return the entropy of each row, divided by the expected number of questions.

    Asked in the order of decreasing probability, the q-th question is the last one with the q-th
    largest probability.
    """
    ranked = -np.sort(-probability, axis=1)
    expected = ranked @ np.arange(1, ranked.shape[1] + 1)
    value: Floats = entr(ranked).sum(axis=1) / expected
    return value


def memberships(state: State) -> Floats:
    """Return the probability that each sample belongs to each neighbourhood."""
    similarity = leaf_similarity(leaves(state), state.neighbourhoods)
    total = similarity.sum(axis=1, keepdims=True)
    even = np.full_like(similarity, 1 / similarity.shape[1])
    return np.where(total > 0, similarity / np.where(total > 0, total, 1), even)


def leaves(state: State) -> Ints:
    """Return the leaf of every sample in each tree of a forest that learnt the clustering."""
    if state.cache.forest is None:
        state.cache.forest = Forest(state.points)
    return state.cache.forest.leaves(relabelled(state.labels))


def leaf_similarity(leaf: Ints, groups: list[Ints]) -> Floats:
    """Return the mean share of trees in which a sample shares its leaf with members of a group."""
    n, n_trees = leaf.shape
    n_leaves = int(leaf.max()) + 1
    cell = leaf + n_leaves * np.arange(n_trees)
    similarity = np.empty((n, len(groups)))
    for g, members in enumerate(groups):
        count = np.bincount(cell[members].ravel(), minlength=n_leaves * n_trees)
        similarity[:, g] = count[cell].sum(axis=1) / (members.size * n_trees)
    return similarity
