"""Clusters by the mean log-odds that their samples are one thing: the function of `Linkage`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from linkwise._threads import one_thread
from linkwise.constraints.table import make_suspects
from linkwise.graph.neighbors import check_magnitude
from linkwise.linkage.coordinates import Coordinates
from linkwise.linkage.rounds import Learned, Reviewed, Task, learn
from linkwise.linkage.tree import Items, MergeRule, Merges, Tree, grow_to, grow_tree
from linkwise.result import Result
from linkwise.search.objective import assert_satisfied, certain_groups
from linkwise.search.rows import cluster_rows

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.constraints import Constraints
    from linkwise.constraints.conflict import Suspect
    from linkwise.linkage.cut import Calibration
    from linkwise.linkage.logodds import LogOdds


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinkedResult(Result):
    """The answer of :func:`linkage`.

    Parameters
    ----------
    coordinates : Coordinates
        Makes dense coordinates of samples.
    odds : LogOdds
        The log-odds of two samples that was learned; `embedding` holds its `g`.
    h : ndarray of shape (n_samples,)
        Its `h`.
    pairs : ndarray of shape (n_pairs, 2)
        Candidate pairs: nearest neighbours in the learned metric.
    tree : Tree
        All merges, best first; the answers about pairs take part in it.
    learned : Tree
        The tree without the answers, by mean log-odds: where the cut was chosen.
    n_merges : int
        Merges up to the cut.
    rule : MergeRule
        When two clusters are merged.
    calibration : Calibration
        How heights and answers become probabilities.
    suspects : tuple of Suspect
        All constraints, the one most likely wrong first.
    """

    embedding: Floats
    coordinates: Coordinates
    odds: LogOdds
    h: Floats
    pairs: Ints
    tree: Tree
    learned: Tree
    n_merges: int
    rule: MergeRule
    calibration: Calibration
    suspects: tuple[Suspect, ...]


def linkage(
    X: Any,
    constraints: Constraints,
    n_clusters: int | None = None,
    *,
    threshold: float | None = None,
    hard: bool = False,
    neighbors: int = 15,
    n_components: int | str = "auto",
    n_rounds: int = 3,
    random_state: int | np.random.RandomState | None = None,
) -> LinkedResult:
    """Merge clusters while their samples are likelier one thing than not; see :class:`Linkage`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples.
    constraints : Constraints
        What is known about the samples.
    n_clusters : int or None, default=None
        Number of clusters; None finds it.
    threshold : float or None, default=None
        Mean log-odds from which on clusters are merged; None takes 0.
    hard : bool, default=False
        Whether certain constraints hold without exception.
    neighbors : int, default=15
        Nearest neighbours of each sample that are looked at.
    n_components : int or "auto", default="auto"
        Dimensions of the coordinates.
    n_rounds : int, default=3
        Rounds in which the metric is learned.
    random_state : int, RandomState instance or None, default=None
        Seed.
    """
    check_magnitude(X)
    rng = check_random_state(random_state)
    if hard and n_clusters is not None:
        certain_groups(constraints, n_clusters, np.random.RandomState(0))  # or why there is none
    pairs, weight = constraints.signed_pairs()
    coordinates = Coordinates(n_components, rng)
    # One thread of BLAS: with more, the last bits would differ.
    with one_thread():
        Z = coordinates.fit_transform(X)
        task = Task(Z, Reviewed(pairs, weight > 0, np.abs(weight)), n_clusters, neighbors, rng)
        found = learn(task, n_rounds)
        tree = _answered(task, found, constraints, hard=hard, least=threshold or 0.0)
    n_merges = len(Z) - n_clusters if n_clusters else tree.n_above(threshold or 0.0)
    labels = tree.labels(n_merges)
    if hard:
        assert_satisfied(constraints, labels)
    return LinkedResult(
        labels=labels,
        embedding=found.g,
        h=found.h,
        n_iter=n_rounds,
        coordinates=coordinates,
        odds=found.odds,
        pairs=found.pairs,
        tree=tree,
        learned=found.tree,
        n_merges=n_merges,
        rule=found.rule,
        calibration=found.calibration,
        suspects=_suspects(found, constraints, task.reviewed),
    )


def _answered(
    task: Task, found: Learned, constraints: Constraints, *, hard: bool, least: float
) -> Tree:
    """Merge once more, with the answers; what is certain first, if it is to hold."""
    if constraints.is_empty and least >= found.rule.stop:
        return found.tree.calibrated(found.calibration)
    group = constraints.components() if hard else np.arange(constraints.n_samples)
    items = _items(task, found, constraints, hard=hard)
    if hard:
        items = items.contracted(group)
    rule = found.rule._replace(stop=min(found.rule.stop, least))
    if task.n_clusters is None:
        return _tree_of_samples(group, grow_tree(items, rule._replace(level=least)))
    rule = rule._replace(stop=-np.inf)
    merges = grow_to(items, rule, task.n_clusters, rng=task.rng)
    if items.size.size - merges.left.size > task.n_clusters:
        # All clusters that are left have to stay apart, though fewer would do: start from those.
        wanted = cluster_rows(found.g, task.n_clusters, task.rng, enforced=constraints.certain)
        items = Items.samples(found.g, found.h, found.pairs)
        items = items._replace(side=wanted.astype(np.int32)).contracted(group)
        merges = grow_to(items, rule, task.n_clusters, rng=task.rng)
    return _tree_of_samples(group, merges)


def _items(task: Task, found: Learned, constraints: Constraints, *, hard: bool) -> Items:
    """Return samples with the answers about them."""
    items, reviewed = Items.samples(found.g, found.h, found.pairs), task.reviewed
    answer = found.calibration.answer_odds(reviewed.is_must, reviewed.belief)
    if hard:
        answer = np.where(reviewed.belief == 1, np.where(reviewed.is_must, 0.0, -np.inf), answer)
        if constraints.labels is not None:
            items = items._replace(side=constraints.labels.astype(np.int32))
    return items.with_answers(reviewed.pairs, answer)


def _tree_of_samples(group: Ints, merges: Merges) -> Tree:
    """Return merges of groups as merges of samples; those within groups come first."""
    first = np.unique(group, return_index=True)[1]
    others = np.setdiff1d(np.arange(group.size), first)
    both = Merges(
        np.concatenate((first[group[others]], first[merges.left])),
        np.concatenate((others, first[merges.right])),
        *(np.concatenate((np.full(others.size, np.inf), x)) for x in (merges.height, merges.odds)),
    )
    return Tree(group.size, both)


def _suspects(found: Learned, constraints: Constraints, reviewed: Reviewed) -> tuple[Suspect, ...]:
    """Return all constraints, the one most likely wrong first.

    Judged by the tree that does not know of them. A label is as likely wrong as the pairs that it
    implies are on average.
    """
    table, labelled = constraints.table, constraints.facts.labelled
    heights = found.tree.join_heights(table.pairs)
    wrong = found.calibration.wrong(heights, table.is_must_link, table.belief)
    if labelled.size:
        assert constraints.labels is not None
        implied = (constraints.labels[reviewed.pairs] >= 0).all(axis=1)
        ends = reviewed.pairs[implied]
        heights = found.tree.join_heights(ends)
        of_pair = found.calibration.wrong(
            heights, reviewed.is_must[implied], reviewed.belief[implied]
        )
        n = constraints.n_samples
        total = np.bincount(ends.ravel(), np.repeat(of_pair, 2), minlength=n)[labelled]
        count = np.bincount(ends.ravel(), minlength=n)[labelled]
        wrong = np.concatenate((wrong, total / np.maximum(count, 1)))
    order = np.argsort(-wrong, kind="stable")
    return make_suspects(constraints, order, probability=wrong[order])
