"""Evidence: constraints are divided into folds, held out, and predicted by the others."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linkwise.auto.constraint_model import DENSE, RATES, ConstraintModel, Pairs, Reliability
from linkwise.auto.evidence import (
    CONFIDENCES,
    FOLDS,
    LEAVE_ONE_OUT,
    MANY_FOLDS,
    Prediction,
    calibrated,
    folds_of,
    held_out_probability,
    make_folds,
    n_folds_for,
)
from linkwise.constraints import Constraints


def model_of(ends, together, labels=None, *, n=12, k=3):
    labels = np.full(n, -1) if labels is None else np.asarray(labels)
    labelled = np.flatnonzero(labels >= 0)
    ends = np.asarray(ends, np.int32).reshape(-1, 2)
    pairs = Pairs(ends, np.asarray(together, bool), np.ones(len(ends)))
    m = len(ends) + labelled.size
    n_wrong = np.repeat([1.0, k - 1.0], [len(ends), labelled.size])
    given, is_dense = Reliability(np.ones(m), n_wrong), len(ends) > DENSE * n
    return ConstraintModel(np.arange(n), pairs, labelled, labels[labelled], k, m, given, is_dense)


def some_model(seed=0):
    rng = np.random.RandomState(seed)
    ends = np.array([rng.choice(12, 2, replace=False) for _ in range(9)])
    labels = np.where(rng.uniform(size=12) < 0.5, rng.randint(3, size=12), -1)
    return model_of(ends, rng.uniform(size=9) < 0.5, labels), rng


def test_every_constraint_is_held_out_once():
    model, rng = some_model()
    folds = make_folds(model, rng, 5)
    assert len(folds) == 5
    assert_array_equal(np.sum([fold.held for fold in folds], axis=0), 1)
    assert min(fold.held.sum() for fold in folds) >= 1


def test_the_number_of_folds():
    assert [n_folds_for(n) for n in (2, LEAVE_ONE_OUT)] == [2, LEAVE_ONE_OUT]
    for (most, folds), after in zip(FOLDS, [*(f for _, f in FOLDS[1:]), MANY_FOLDS], strict=True):
        assert n_folds_for(most) == folds
        assert n_folds_for(most + 1) == after


def test_for_and_against_one_pair_go_into_one_fold():
    model = model_of([(0, 1), (2, 3), (1, 0), (4, 5), (2, 3)], [1, 1, 0, 1, 0])
    for seed in range(10):
        for fold in make_folds(model, np.random.RandomState(seed), 2):
            assert fold.held[0] == fold.held[2]
            assert fold.held[1] == fold.held[4]


def test_one_constraint_cannot_be_held_out():
    rng = np.random.RandomState(0)
    assert make_folds(model_of([(0, 1)], [1]), rng, 5) == []
    assert make_folds(model_of([], []), rng, 5) == []
    assert make_folds(model_of([(0, 1), (1, 0)], [1, 0]), rng, 5) == []
    assert len(make_folds(model_of([(0, 1), (1, 2)], [1, 0]), rng, 5)) == 2


def cluster_of(model, Q):
    """Return the naming of the labels that fits the samples best, of all namings."""

    def fit(order):
        return sum(Q[i, order[c]] for i, c in zip(model.labelled, model.label, strict=True))

    return max(permutations(range(model.k)), key=fit)


def test_a_constraint_is_predicted_by_the_others():
    model, rng = some_model(1)
    logits = np.log(rng.dirichlet(np.ones(3), size=12))
    folds = make_folds(model, rng, 4)
    found = held_out_probability(model, folds, [Prediction(logits, 0.1)] * 4)
    for fold in folds:
        kept = model.subset(~fold.held)
        Q = kept.posterior(logits, 0.1).probability
        for number in np.flatnonzero(fold.held):
            if number < 9:
                i, j = model.pairs.ends[number]
                expected = sum(Q[i, c] * Q[j, c] for c in range(3))
                expected = expected if model.pairs.together[number] else 1 - expected
            else:
                sample, label = model.labelled[number - 9], model.label[number - 9]
                cluster = cluster_of(kept, Q)
                others = [cluster[c] for c in set(kept.label.tolist())]
                is_known = label in kept.label
                expected = Q[sample, cluster[label]] if is_known else 1 - Q[sample, others].sum()
            assert_allclose(found[number], expected, atol=1e-3)


def judged(seed, *, wrong=0.0, misjudged=0.0):
    """Return pairs of 150 samples, some of them wrong, and log-probabilities, some misjudged."""
    rng = np.random.RandomState(seed)
    y = rng.randint(3, size=150)
    ends = np.array([rng.choice(150, 2, replace=False) for _ in range(400)])
    together = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.uniform(size=400) < wrong)
    seen = np.where(rng.uniform(size=150) < misjudged, (y + 1) % 3, y)
    model = model_of(ends, together, n=150)
    return model, make_folds(model, rng, 5), np.log(0.9 * np.eye(3)[seen] + 0.1 / 3)


@pytest.mark.parametrize("seed", range(3))
def test_misjudged_samples_are_told_from_wrong_constraints(seed):
    # Both make about every fifth pair surprising. Other pairs of their samples tell which it is.
    model, folds, logits = judged(seed, misjudged=0.15)
    confidence, rate = calibrated(model, folds, [logits] * 5)
    assert confidence < 1.0
    assert rate < 0.02
    model, folds, logits = judged(seed, wrong=0.25)
    confidence, rate = calibrated(model, folds, [logits] * 5)
    assert confidence > 1.2
    assert 0.15 <= rate <= 0.3


def test_the_calibration_is_a_mean_by_the_likelihood():
    model, folds, logits = judged(0, wrong=0.1, misjudged=0.1)
    weights, values = [], []
    for confidence in CONFIDENCES:
        for rate in RATES:
            said = [Prediction(confidence * logits, rate)] * 5
            p = held_out_probability(model, folds, said)
            weights.append(np.log((1 - rate) * p + rate * (1 - p)).sum())
            values.append([np.log(confidence), np.log(rate)])
    expected = np.exp(np.average(values, axis=0, weights=np.exp(np.array(weights) - max(weights))))
    assert_allclose(calibrated(model, folds, [logits] * 5), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_only_pairs_that_cannot_matter_are_dropped(seed):
    # Many components: the pairs of one say nothing about a constraint of another.
    rng = np.random.RandomState(seed)
    n = 60
    ends = np.array([np.sort(rng.choice(n, 2, replace=False)) for _ in range(40)])
    labels = np.where(rng.uniform(size=n) < 0.1, rng.randint(3, size=n), -1)
    model = model_of(ends, rng.uniform(size=40) < 0.5, labels, n=n)
    logits = np.log(rng.dirichlet(np.ones(3), size=n))
    number = rng.randint(10, size=model.n_constraints)
    folds = folds_of(model, number)
    everything = [fold._replace(model=model.subset(~fold.held)) for fold in folds]
    said = [Prediction(logits, 0.1)] * len(folds)
    sizes = [sum(fold.model.n_constraints for fold in some) for some in (folds, everything)]
    assert sizes[0] < sizes[1]
    assert_allclose(
        held_out_probability(model, folds, said),
        held_out_probability(model, everything, said),
        atol=2e-3,  # belief propagation ends at a change of 1e-3, of all pairs
    )


def test_no_label_is_dropped():
    model, rng = some_model(2)
    for fold in make_folds(model, rng, 4):
        assert fold.model.labelled.size == model.labelled.size - fold.held[9:].sum()
        assert not set(map(tuple, fold.model.pairs.ends)) & set(
            map(tuple, model.pairs.ends[fold.held[:9]])
        )


@pytest.mark.parametrize("order", [np.arange(5), np.array([3, 1, 4, 0, 2])])
def test_labels_that_no_other_sample_has_are_predicted(order):
    labels = np.where(np.arange(10) < 5, np.arange(10), -1)
    model = model_of([], [], labels, n=10, k=5)
    truth = np.tile(np.arange(5), 2)
    # Whatever its clusters are called, a perfect partition predicts that they differ: the sample is
    # in one of the clusters that no other label has, of which there are at most two.
    logits = np.log(np.where(np.eye(5)[order[truth]] > 0, 0.996, 0.001))
    folds = make_folds(model, np.random.RandomState(0), 3)
    found = held_out_probability(model, folds, [Prediction(logits, 0.05)] * 3)
    assert found.min() > 0.9 / 2


def clique(n, k):
    """Return all pairs of `n` samples of `k` classes."""
    y = np.arange(n) % k
    i, j = np.triu_indices(n, 1)
    same = y[i] == y[j]
    return Constraints(n, np.c_[i, j][same], np.c_[i, j][~same])


def test_of_dense_pairs_nothing_gives_a_held_out_one_away():
    """In a clique every pair follows from others: all pairs of a held-out sample are hidden."""
    model = ConstraintModel.of(clique(15, 3), 3)
    folds = make_folds(model, np.random.RandomState(0))
    assert_array_equal(np.sum([fold.held for fold in folds], axis=0), 1)
    knows_nothing = Prediction(np.zeros((15, 3)), 0.05)
    predicted = held_out_probability(model, folds, [knows_nothing] * len(folds))
    assert_allclose(predicted, np.where(model.pairs.together, 1 / 3, 2 / 3), atol=1e-6)
    for fold in folds:
        outside = model.pairs.ends[~fold.hidden]
        assert not np.isin(outside, model.pairs.ends[fold.held, 0]).any()
