"""What constraints say about their samples: pairs and labels, each of them perhaps wrong."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from linkwise import Constraints
from linkwise.auto import constraint_model
from linkwise.auto.consensus import softened
from linkwise.auto.constraint_model import (
    ConstraintModel,
    Reliability,
    cluster_of_label,
    matching,
    misplaced,
)


def some_constraints(seed=0, n=14, k=3):
    rng = np.random.RandomState(seed)
    ends = np.array([np.sort(rng.choice(n, 2, replace=False)) for _ in range(9)])
    together = rng.uniform(size=9) < 0.5
    labels = np.where(rng.uniform(size=n) < 0.3, 2 * rng.randint(k, size=n), -1)
    belief = rng.uniform(0.2, 1.0, size=9)
    return Constraints(
        n,
        ends[together],
        ends[~together],
        must_link_belief=belief[together],
        cannot_link_belief=belief[~together],
        labels=labels,
    )


def test_the_vertices_are_the_constrained_samples():
    known = some_constraints()
    model = ConstraintModel.of(known, 3)
    assert_array_equal(model.vertices, np.flatnonzero(known.constrained))
    ends = model.vertices[model.pairs.ends]
    n_must = len(known.must_link)
    assert_array_equal(ends[:n_must], known.must_link)
    assert_array_equal(ends[n_must:], known.cannot_link)
    assert_array_equal(model.pairs.together, np.arange(9) < n_must)
    assert_array_equal(model.vertices[model.labelled], np.flatnonzero(known.labels >= 0))
    given = known.labels[known.labels >= 0]
    assert_array_equal(np.unique(given)[model.label], given)  # numbers, not names
    assert model.n_constraints == model.reliability.belief.size == 9 + (known.labels >= 0).sum()
    assert_array_equal(model.reliability.belief[9:], 1.0)


def test_a_subset_keeps_the_vertices():
    model = ConstraintModel.of(some_constraints(), 3)
    kept = np.arange(model.n_constraints) % 2 == 0
    some = model.subset(kept)
    assert some.vertices is model.vertices
    assert some.n_constraints == kept.sum()
    assert_array_equal(some.reliability.belief, model.reliability.belief[kept])
    assert_array_equal(some.reliability.n_wrong, model.reliability.n_wrong[kept])
    assert some.n_constraints == kept.sum()
    assert_array_equal(some.pairs.ends, model.pairs.ends[kept[:9]])
    assert_array_equal(some.labelled, model.labelled[kept[9:]])


def test_a_label_is_evidence_on_its_own_sample():
    y = np.arange(30) % 3
    partial = np.where(np.arange(30) < 15, y, -1)
    model = ConstraintModel.of(Constraints.from_labels(partial), 3)
    # Log-probabilities that know the classes under other names, but for the first sample.
    log_probability = np.log(softened((y[:15] + 1) % 3, 3, 0.9))
    log_probability[0] = np.log([0.05, 0.05, 0.9])
    found = model.posterior(log_probability, 0.05)
    assert found.probability[0].argmax() == (y[0] + 1) % 3
    assert found.left_out.argmin() == 0
    assert_allclose(found.left_out[0], 0.05, atol=1e-6)
    assert_allclose(found.left_out[1:], 0.9, atol=1e-6)


def test_the_posterior_of_one_pair_is_the_rule_of_bayes():
    model = ConstraintModel.of(Constraints(2, must_link=[(0, 1)], must_link_belief=[0.5]), 2)
    P = np.array([[0.9, 0.1], [0.3, 0.7]])
    found = model.posterior(np.log(P), 0.1)
    flip = 0.5 * 0.1 + 0.5 / 2
    joint = P[0][:, None] * P[1][None] * np.where(np.eye(2) > 0, 1 - flip, flip)
    joint /= joint.sum()
    assert_allclose(found.probability, [joint.sum(axis=1), joint.sum(axis=0)], atol=1e-3)
    assert_allclose(found.left_out, [0.9 * 0.3 + 0.1 * 0.7], atol=1e-6)


def test_names_of_clusters_do_not_matter():
    model = ConstraintModel.of(some_constraints(1), 3)
    logits = np.random.RandomState(0).normal(size=(model.vertices.size, 3))
    order = np.array([2, 0, 1])
    one, two = model.posterior(logits, 0.1), model.posterior(logits[:, order], 0.1)
    assert_allclose(two.probability, one.probability[:, order], atol=1e-9)
    assert_allclose(two.left_out, one.left_out, atol=1e-9)


def test_messages_go_on_where_they_ended():
    model = ConstraintModel.of(some_constraints(2), 3)
    logits = np.random.RandomState(0).normal(size=(model.vertices.size, 3))
    messages = np.zeros((9, 2, 3))
    for _ in range(20):
        found = model.posterior(logits, 0.1, messages)
    fixed = model.posterior(logits, 0.1, messages.copy())
    assert_allclose(found.probability, fixed.probability, atol=1e-3)
    assert np.abs(messages).max() > 0.1


def test_nothing_is_given():
    model = ConstraintModel.of(Constraints(5), 3)
    found = model.posterior(np.zeros((0, 3)), 0.05)
    assert found.probability.shape == (0, 3)
    assert found.left_out.size == model.n_constraints == 0


def test_the_cluster_of_a_label_is_that_of_the_best_matching():
    rng = np.random.RandomState(0)
    for _ in range(10):
        P, label = rng.dirichlet(np.ones(4), size=12), rng.randint(3, size=12)

        def fit(order, P=P, label=label):
            return sum(P[i, order[c]] for i, c in enumerate(label))

        best = max(permutations(range(4)), key=fit)
        assert_allclose(fit(cluster_of_label(P, label)), fit(best))


def test_matching_undoes_a_permutation():
    Q = softened(np.array([0, 0, 1, 2, 2, 1]), 3, 0.9)
    order = np.array([1, 2, 0])
    assert_array_equal(Q[:, order][:, matching(Q[:, order], Q)], Q)


def test_misplaced_labels():
    labels = np.array([7, 7, 7, 2, 2, -1, 2])
    clusters = np.array([0, 0, 1, 1, 1, 1, 1])
    samples, wrong = misplaced(Constraints.from_labels(labels), clusters)
    assert samples.tolist() == [0, 1, 2, 3, 4, 6]
    assert samples[wrong].tolist() == [2]
    assert misplaced(Constraints(7), clusters)[0].size == 0


def test_the_likelihood_of_all_rates_at_once_is_that_of_each():
    rng = np.random.RandomState(0)
    given = Reliability(rng.uniform(size=30), np.ones(30))
    predicted = rng.uniform(size=30)
    each = [
        float(constraint_model.log_likelihood(predicted, given, rate))
        + constraint_model.PRIOR_PAIRS * np.log1p(-rate)
        for rate in constraint_model.RATES
    ]
    best = int(np.argmax(each))
    expected = each[best], constraint_model.RATES[best]
    assert constraint_model.likelihood(predicted, given) == expected
