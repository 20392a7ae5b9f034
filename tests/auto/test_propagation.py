"""Belief propagation against enumeration and against a plain twin."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkwise.auto.constraint_model import Pairs, flip_rate, propagate

UNTIL_SETTLED = {"max_sweeps": 500, "tol": 1e-13, "damping": 0.0}


def random_tree(n, k, seed):
    rng = np.random.RandomState(seed)
    ends = np.array([(rng.randint(i), i) for i in range(1, n)], np.int32)
    pairs = Pairs(ends, rng.uniform(size=n - 1) < 0.5, rng.uniform(0.2, 1.0, n - 1))
    return rng.normal(size=(n, k)), pairs


def enumerated(opinion, pairs, noise, leave_out=None):
    """Return exact marginals, and the probability that each pair is together."""
    n, k = opinion.shape
    flip = pairs.belief * noise + (1 - pairs.belief) / 2
    marginal, together = np.zeros((n, k)), np.zeros(len(pairs.ends))
    for z in product(range(k), repeat=n):
        weight = np.exp(sum(opinion[i, z[i]] for i in range(n)))
        for e, (i, j) in enumerate(pairs.ends):
            if e != leave_out:
                obeyed = (z[i] == z[j]) == pairs.together[e]
                weight *= 1 - flip[e] if obeyed else flip[e]
        marginal[range(n), z] += weight
        together += weight * np.array([z[i] == z[j] for i, j in pairs.ends])
    return marginal / marginal.sum(axis=1, keepdims=True), together / marginal[0].sum()


def plain_sweep(opinion, pairs, noise, messages, damping):
    """Return all messages after one parallel sweep, written as in the formula."""
    flip = flip_rate(pairs.belief, noise)
    agreement = np.where(pairs.together, 1 - flip, flip)
    total = opinion.copy()
    for (i, j), (into_i, into_j) in zip(pairs.ends, messages, strict=True):
        total[i] += into_i
        total[j] += into_j
    new = messages.copy()
    for e, (i, j) in enumerate(pairs.ends):
        for side, sender, back in ((0, j, messages[e, 1]), (1, i, messages[e, 0])):
            p = np.exp(total[sender] - back)
            p /= p.sum()
            m = np.log(agreement[e] * p + (1 - agreement[e]) * (1 - p))
            new[e, side] = damping * messages[e, side] + (1 - damping) * (m - m.max())
    return new


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_exact_on_trees(k, seed):
    opinion, pairs = random_tree(6, k, seed)
    found = propagate(opinion, pairs, 0.1, messages=np.zeros((5, 2, k)), **UNTIL_SETTLED)
    belief = np.exp(found.logits)
    belief /= belief.sum(axis=1, keepdims=True)
    assert found.change <= 1e-13
    assert_allclose(belief, enumerated(opinion, pairs, 0.1)[0], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_prediction_of_a_pair_is_that_of_all_others(seed):
    # On a tree, leaving a pair out makes its two ends independent.
    opinion, pairs = random_tree(6, 3, seed)
    found = propagate(opinion, pairs, 0.1, messages=np.zeros((5, 2, 3)), **UNTIL_SETTLED)
    expected = [enumerated(opinion, pairs, 0.1, leave_out=e)[1][e] for e in range(5)]
    assert_allclose(found.together, expected, atol=1e-12)


def test_equals_the_plain_twin_on_a_loopy_graph():
    rng = np.random.RandomState(0)
    n, k, m = 12, 4, 30
    ends = np.array([rng.choice(n, 2, replace=False) for _ in range(m)], np.int32)
    pairs = Pairs(ends, rng.uniform(size=m) < 0.4, np.ones(m))
    opinion = rng.normal(size=(n, k))
    messages, twin = np.zeros((m, 2, k)), np.zeros((m, 2, k))
    for _ in range(3):
        propagate(opinion, pairs, 0.05, messages=messages, max_sweeps=2, tol=0.0)
        for _ in range(2):
            twin = plain_sweep(opinion, pairs, 0.05, twin, 0.3)
        assert_allclose(messages, twin, atol=1e-12)


def test_permuting_clusters_permutes_the_beliefs():
    opinion, pairs = random_tree(8, 3, 1)
    order = np.array([2, 0, 1])
    found = propagate(opinion, pairs, 0.1, messages=np.zeros((7, 2, 3)))
    turned = propagate(opinion[:, order], pairs, 0.1, messages=np.zeros((7, 2, 3)))
    assert_allclose(turned.logits, found.logits[:, order], atol=1e-12)
    assert_allclose(turned.together, found.together, atol=1e-12)


def test_a_faint_pair_says_nothing():
    opinion, pairs = random_tree(5, 3, 2)
    faint = pairs._replace(belief=np.full(4, 1e-12))
    found = propagate(opinion, faint, 0.1, messages=np.zeros((4, 2, 3)))
    assert_allclose(found.logits, opinion, atol=1e-9)


def test_a_contradiction_is_weighed_not_refused():
    # Two chains say together, one link says apart: the odd one out is the improbable one.
    ends = np.array([(0, 1), (1, 2), (0, 3), (3, 2), (0, 2)], np.int32)
    pairs = Pairs(ends, np.array([True, True, True, True, False]), np.ones(5))
    opinion = np.log(np.full((4, 2), 0.5))
    opinion[0] = np.log([0.9, 0.1])
    found = propagate(opinion, pairs, 0.05, messages=np.zeros((5, 2, 2)), max_sweeps=200)
    said = np.where(pairs.together, found.together, 1 - found.together)
    assert said.argmin() == 4


def test_nothing_said():
    none = Pairs(np.zeros((0, 2), np.int32), np.zeros(0, bool), np.zeros(0))
    found = propagate(np.zeros((0, 3)), none, 0.1, messages=np.zeros((0, 2, 3)))
    assert found.logits.shape == (0, 3)
    assert found.together.size == 0
