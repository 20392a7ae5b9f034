"""Review queue: the pairs whose answers tell most about the clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from linkwise.constraints.table import pair_keys
from linkwise.linkage.tree import Items

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.constraints import Constraints
    from linkwise.linkage.method import LinkedResult


class ReviewQueue(NamedTuple):
    """Pairs to review, the most useful first; at most one between two clusters."""

    pairs: Ints
    probability: Floats  # that the two clusters are one
    value: Floats  # p (1 - p) sqrt(mA mB)


def review_queue(result: LinkedResult, constraints: Constraints) -> ReviewQueue:
    """Return one pair for each two clusters that are, or could be, merged.

    An answer is worth most where it is open, and where large clusters depend on it: by
    ``p (1 - p) sqrt(mA mB)``, with `p` the probability that clusters of `mA` and `mB` samples are
    one. The clusters are those of the answer and, within these, the two that each merge has
    joined. Of their candidate pairs, the one of the highest log-odds is asked; pairs that have an
    answer are left out.
    """
    pairs = _without_answer(result.pairs, constraints)
    odds = result.odds.between(result.embedding, result.h, pairs)
    group, joint, product = _cluster_pairs(result, constraints, pairs)
    order = np.lexsort((-odds, group))
    first = order[np.flatnonzero(np.diff(group[order], prepend=-1))]
    p = expit(joint[first])
    value = p * (1 - p) * np.sqrt(product[first])
    best = np.argsort(-value, kind="stable")
    return ReviewQueue(pairs[first][best], p[best], value[best])


def _without_answer(pairs: Ints, constraints: Constraints) -> Ints:
    n = constraints.n_samples
    kept = ~np.isin(pair_keys(pairs, n), pair_keys(constraints.table.pairs, n))
    if constraints.labels is not None:
        kept &= (constraints.labels[pairs] < 0).any(axis=1)
    return pairs[kept]


def _cluster_pairs(
    result: LinkedResult, constraints: Constraints, pairs: Ints
) -> tuple[Ints, Floats, Floats]:
    """Return the two clusters of each pair as a number, the log-odds that they are one, mA mB."""
    tree, labels = result.tree, result.labels
    group: Ints = tree.joins(pairs)
    joined = group < result.n_merges
    at = np.minimum(group, tree.n_merges - 1)
    odds, product = tree.odds[at], tree.n_joined[at]
    if joined.all():
        return group, odds, product
    reviewed, weight = constraints.signed_pairs()
    answer = result.calibration.answer_odds(weight > 0, np.abs(weight))
    items = Items.samples(result.embedding, result.h, result.pairs)
    items = items.with_answers(reviewed, answer).contracted(labels)
    n = items.size.size
    place = np.searchsorted(
        pair_keys(items.pairs, n), pair_keys(np.sort(labels[pairs[~joined]]), n)
    )
    group[~joined] = tree.n_merges + place
    odds[~joined] = items.scores(result.rule)[place]
    product[~joined] = items.size[items.pairs[place]].prod(axis=1)
    return group, odds, product
