"""Evidence: how candidates predict constraints that were held out from them.

A candidate that learns from constraints predicts them too well, even each one given the others:
what it has learnt from a constraint comes back through all samples. Therefore every candidate with
constraints is found again without some of them, the *held-out* ones, and is judged by these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from linkwise.auto.constraint_model import ConstraintModel, cluster_of_label
from linkwise.constraints.table import pair_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Bools, Floats, Ints


# Constraints up to which so many folds are made: one each at first.
LEAVE_ONE_OUT = 8
FOLDS = ((40, 6), (400, 5))
MANY_FOLDS = 3
DENSE = 2.0  # pairs for each constrained sample beyond which samples are held out, not pairs


class Fold(NamedTuple):
    """Constraints that are held out, and the others."""

    held: Bools  # pairs, then labels
    hidden: Bools  # these, and what would give them away: candidates do not see it
    model: ConstraintModel  # the others, as far as they matter


class Prediction(NamedTuple):
    """What a candidate says about the vertices, found without the held-out constraints."""

    log_probability: Floats  # (n_vertices, k)
    error_rate: float


def make_folds(
    model: ConstraintModel, rng: np.random.RandomState, n_folds: int | None = None
) -> list[Fold]:
    """Divide the constraints into folds; none for a single one."""
    number = fold_numbers(model, rng, n_folds or n_folds_for(model.n_constraints))
    return folds_of(model, number)


def fold_numbers(model: ConstraintModel, rng: np.random.RandomState, n_folds: int) -> Ints:
    """Return the fold of each constraint.

    What is said for and against one pair is one question, and goes into one fold. If pairs are
    dense, most of them follow from others; then all pairs with the same first sample do.
    """
    keys = pair_keys(np.sort(model.pairs.ends.astype(np.intp), axis=1), model.vertices.size)
    if is_dense(model):
        keys = model.pairs.ends[:, 0].astype(np.intp)
    question = np.unique(keys, return_inverse=True)[1].ravel()
    n_pairs = int(question.max(initial=-1)) + 1
    question = np.concatenate((question, n_pairs + np.arange(model.labelled.size)))
    n = n_pairs + model.labelled.size
    number: Ints = (rng.permutation(n) % max(min(n_folds, n), 1))[question]
    return number


def folds_of(model: ConstraintModel, number: Ints) -> list[Fold]:
    """Return the folds, given the number of each constraint's."""
    n_folds = int(number.max(initial=-1)) + 1
    if n_folds < 2:
        return []
    component = _components(model)
    n_pairs = len(model.pairs.ends)
    folds = []
    for at in range(n_folds):
        held = number == at
        hidden = held.copy()
        if is_dense(model):
            hidden[:n_pairs] = np.isin(model.pairs.ends, model.pairs.ends[held[:n_pairs], 0]).any(1)
        # Pairs that no held-out constraint is connected to cannot change its prediction.
        reached = np.zeros(component.max(initial=0) + 1, bool)
        reached[component[model.pairs.ends[held[:n_pairs], 0]]] = True
        reached[component[model.labelled[held[n_pairs:]]]] = True
        kept = ~hidden
        kept[:n_pairs] &= reached[component[model.pairs.ends[:, 0]]]
        folds.append(Fold(held, hidden, model.subset(kept)))
    return folds


def both_ways(model: ConstraintModel) -> Bools:
    """Return which constraints are pairs that are given as must-link and as cannot-link."""
    keys = pair_keys(np.sort(model.pairs.ends.astype(np.intp), axis=1), model.vertices.size)
    _, question, count = np.unique(keys, return_inverse=True, return_counts=True)
    found = np.zeros(model.n_constraints, bool)
    found[: keys.size] = count[question.ravel()] > 1
    return found


def is_dense(model: ConstraintModel) -> bool:
    """Whether there are so many pairs of the same samples that most follow from others."""
    return len(model.pairs.ends) > DENSE * model.vertices.size


def _components(model: ConstraintModel) -> Ints:
    """Return the connected component of each vertex, joined by pairs and by labels."""
    n = model.vertices.size
    i, j = model.pairs.ends.T
    joined = coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    component: Ints = connected_components(joined, directed=False)[1]
    if model.labelled.size:  # all labels are learnt together
        labelled = np.unique(component[model.labelled])
        component = np.where(np.isin(component, labelled), labelled[0], component)
    return component


def n_folds_for(n_constraints: int) -> int:
    """Return the number of folds."""
    if n_constraints <= LEAVE_ONE_OUT:
        return n_constraints
    return next((folds for most, folds in FOLDS if n_constraints <= most), MANY_FOLDS)


def held_out_probability(
    model: ConstraintModel, folds: Sequence[Fold], predictions: Sequence[Prediction]
) -> Floats:
    """Return the probability of each constraint by a candidate that was found without it."""
    probability = np.full(model.n_constraints, np.nan)
    n_pairs = len(model.pairs.ends)
    for fold, one in zip(folds, predictions, strict=True):
        Q = fold.model.posterior(one.log_probability, one.error_rate).probability
        pair, label = np.flatnonzero(fold.held[:n_pairs]), fold.held[n_pairs:]
        i, j = model.pairs.ends[pair].T
        together = np.einsum("ic,ic->i", Q[i], Q[j])
        probability[pair] = np.where(model.pairs.together[pair], together, 1 - together)
        of = model.labelled[label], model.label[label]
        probability[n_pairs:][label] = _label_probability(fold.model, Q, *of)
    return np.clip(probability, 0.0, 1.0)


def _label_probability(given: ConstraintModel, Q: Floats, samples: Ints, label: Ints) -> Floats:
    """Return the probability of held-out labels.

    Of a label that no other sample has, it is predicted that the sample is in one of the clusters
    that have no label yet.
    """
    cluster = cluster_of_label(Q[given.labelled], given.label)
    known = np.unique(given.label)
    own = Q[samples, cluster[label]]
    another = (1 - Q[samples][:, cluster[known]].sum(axis=1)) / max(given.k - known.size, 1)
    probability: Floats = np.where(np.isin(label, known), own, another)
    return probability
