"""Rehearsals: constraints are dealt, held back, and foretold."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from linkwise.auto.propagation import Pairs
from linkwise.auto.rehearsal import Opinion, Rehearsal, deal, foretold, merged, without_held
from linkwise.auto.task import Task, settle


def task_of(ends, together, labels=None, *, n=12, k=3):
    """Return a task on `n` vertices without bases."""
    labels = np.full(n, -1) if labels is None else np.asarray(labels)
    labelled = np.flatnonzero(labels >= 0)
    ends = np.asarray(ends, np.int32).reshape(-1, 2)
    pairs = Pairs(ends, np.asarray(together, bool), np.ones(len(ends)))
    return Task({}, np.ones(n), np.arange(n), pairs, labelled, labels[labelled], k)


def some_task(seed=0):
    rng = np.random.RandomState(seed)
    ends = np.array([rng.choice(12, 2, replace=False) for _ in range(9)])
    labels = np.where(rng.uniform(size=12) < 0.5, rng.randint(3, size=12), -1)
    return task_of(ends, rng.uniform(size=9) < 0.5, labels), rng


def test_every_constraint_is_held_back_once():
    task, rng = some_task()
    folds = deal(task, 5, rng)
    assert len(folds) == 5
    assert_array_equal(np.sum(folds, axis=0), 1)
    assert min(fold.sum() for fold in folds) >= 1


def test_one_question_goes_into_one_fold():
    task = task_of([(0, 1), (2, 3), (1, 0), (4, 5), (2, 3)], [1, 1, 0, 1, 0])
    for seed in range(10):
        for held in deal(task, 2, np.random.RandomState(seed)):
            assert held[0] == held[2]
            assert held[1] == held[4]


def test_one_constraint_cannot_be_held_back():
    assert deal(task_of([(0, 1)], [1]), 5, np.random.RandomState(0)) == []
    assert deal(task_of([], []), 5, np.random.RandomState(0)) == []
    assert deal(task_of([(0, 1), (1, 0)], [1, 0]), 5, np.random.RandomState(0)) == []
    assert len(deal(task_of([(0, 1), (1, 2)], [1, 0]), 5, np.random.RandomState(0))) == 2


def test_it_is_foretold_by_the_others():
    task, rng = some_task(1)
    logits = np.log(rng.dirichlet(np.ones(3), size=12))
    held = deal(task, 4, rng)[0]
    kept = task.told(~held)
    Q = settle(kept, logits, 0.1).probability
    rehearsal = Rehearsal(held, without_held(task, held), ())
    said = foretold(task, [rehearsal], [Opinion(logits, 0.1)])
    assert_array_equal(np.isfinite(said), held)
    for number in np.flatnonzero(held):
        if number < 9:
            i, j = task.pairs.ends[number]
            expected = sum(Q[i, c] * Q[j, c] for c in range(3))
            expected = expected if task.pairs.together[number] else 1 - expected
        else:
            sample, label = task.labelled[number - 9], task.label[number - 9]
            cluster = cluster_of(kept, Q)
            others = [cluster[c] for c in set(kept.label.tolist())]
            is_known = label in kept.label
            expected = Q[sample, cluster[label]] if is_known else 1 - Q[sample, others].sum()
        assert_allclose(said[number], expected)


def cluster_of(task, Q):
    """Return the naming of the labels that fits the samples best, of all namings."""
    from itertools import permutations

    def fit(order):
        return sum(Q[i, order[c]] for i, c in zip(task.labelled, task.label, strict=True))

    return max(permutations(range(task.k)), key=fit)


def test_an_average_of_opinions_knows_clusters_by_their_members():
    rng = np.random.RandomState(0)
    Q = rng.dirichlet(np.full(3, 0.2), size=30)
    one, two = Opinion(np.log(Q), 0.01), Opinion(np.log(Q[:, [1, 2, 0]]), 0.04)
    found = merged([one, two], np.array([0.5, 0.5]))
    assert_allclose(np.exp(found.logits), Q + 1e-3, atol=1e-9)
    assert_allclose(found.noise, 0.02)


def one_label_each(k):
    """Return a task with one label for each of `k` classes, of two samples each."""
    labels = np.where(np.arange(2 * k) < k, np.arange(2 * k), -1)
    return task_of([], [], labels, n=2 * k, k=k)


def test_labels_that_no_other_sample_has_are_foretold():
    task = one_label_each(5)
    truth = np.tile(np.arange(5), 2)
    for order in (np.arange(5), np.array([3, 1, 4, 0, 2])):
        # Whatever its clusters are called, a perfect opinion foretells that they differ.
        logits = np.log(np.where(np.eye(5)[order[truth]] > 0, 0.996, 0.001))
        rehearsals = [
            Rehearsal(held, without_held(task, held), ())
            for held in deal(task, 3, np.random.RandomState(0))
        ]
        said = foretold(task, rehearsals, [Opinion(logits, 0.05)] * 3)
        assert said.min() > 0.9
