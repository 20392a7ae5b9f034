"""Consensus: candidates weighted by prior and evidence, averaged around their centre."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from linkwise.auto import consensus
from linkwise.auto.candidates import COARSE_CUT, LEARNER, UNSUPERVISED
from linkwise.auto.consensus import (
    ANCHOR,
    Member,
    find_consensus,
    from_labels,
    stacking_weights,
    temperature,
    weigh,
)
from linkwise.auto.constraint_model import Reliability, likelihood, log_likelihood

Y = np.arange(60) % 3


def given(belief):
    """Return pairs of some belief."""
    return Reliability(belief, np.ones(belief.size))


GROUPS = {
    "anchor": ANCHOR,
    "unsupervised": UNSUPERVISED,
    "coarse cut": COARSE_CUT,
    "learner": LEARNER,
}


def member(name, labels=Y, *, group="unsupervised", prior=0.5, held_out=None, is_apart=False):
    if held_out is not None:
        held_out = np.asarray(held_out, float)
    return Member(name, GROUPS[group], from_labels(labels, 3), prior, held_out, is_apart)


def test_without_constraints_weights_are_the_prior():
    members = [member("a", prior=0.2), member("b", prior=0.6)]
    assert_allclose(weigh(members, None), [0.25, 0.75])


def test_evidence_multiplies_the_prior():
    held_out = [[0.9, 0.8, 0.6, 0.9], [0.4, 0.9, 0.5, 0.2]]
    members = [
        member("a", prior=0.2, held_out=held_out[0]),
        member("b", prior=0.8, held_out=held_out[1]),
    ]
    prior = np.array([0.2, 0.8])
    rate = consensus.FEW_RATE
    evidence = [log_likelihood(np.array(row), given(np.ones(4)), rate) for row in held_out]
    expected = prior * np.exp(evidence) / (prior * np.exp(evidence)).sum()
    assert_allclose(weigh(members, given(np.ones(4))), expected, rtol=1e-6)


def test_names_of_clusters_do_not_matter():
    other = np.where(np.arange(60) < 4, (Y + 1) % 3, Y)
    straight = find_consensus([member("a"), member("b", other)], None)
    renamed = find_consensus([member("a"), member("b", (other + 1) % 3)], None)
    assert_allclose(straight.probability, renamed.probability)
    assert_allclose(straight.probability.sum(axis=1), 1.0)


def test_the_centre_is_the_one_that_most_agree_with():
    rng = np.random.RandomState(0)
    members = [member(name, prior=0.3) for name in ("a", "b")]
    members += [member("odd", rng.permutation(Y), prior=0.4)]
    found = find_consensus(members, None)
    assert members[found.centre].name in ("a", "b")
    assert_array_equal(found.probability.argmax(axis=1), Y)
    assert_allclose(found.weights, [0.3, 0.3, 0.4])
    assert_allclose(found.around, [0.5, 0.5, 0.0], atol=1e-6)


def test_evidence_of_many_constraints_is_tempered():
    assert temperature(1) == temperature(16) == 1.0
    assert_allclose(temperature(32), 2.0)
    assert temperature(100_000) == consensus.MOST_DEGREES


def test_few_pairs_that_another_one_explains_better_do_not_leave_the_anchor():
    rng = np.random.RandomState(0)
    for m in range(1, 9):
        anchor = member("anchor", group="anchor", prior=1.0, held_out=np.full(m, 0.8))
        luckier = member("b", rng.permutation(Y), prior=0.2, held_out=np.full(m, 0.95))
        found = find_consensus([anchor, luckier], given(np.ones(m)))
        assert_array_equal(found.probability.argmax(axis=1), Y)


def test_pairs_that_contradict_the_anchor_leave_it():
    wrong = np.random.RandomState(0).permutation(Y)
    anchor = member("anchor", wrong, group="anchor", prior=1.0, held_out=np.full(8, 0.1))
    other = member("b", Y, prior=1.0, held_out=np.full(8, 0.95))
    assert_array_equal(
        find_consensus([anchor, other], given(np.ones(8))).probability.argmax(axis=1), Y
    )


@pytest.mark.parametrize("m", [consensus.STACK_FROM, 100, 1_000])
def test_many_pairs_that_tell_nothing_do_not_leave_the_anchor(m):
    """All predict them alike: most candidates agree on another partition, and it is not taken."""
    another, flat = np.random.RandomState(0).permutation(Y), np.full(m, 0.95)
    anchor = member("anchor", group="anchor", prior=1.0, held_out=flat)
    others = [
        member("a", another, prior=1.0, held_out=flat),
        member("b", another, group="learner", prior=0.5, held_out=flat),
        member("c", another, group="learner", prior=0.5, held_out=flat),
    ]
    found = find_consensus([anchor, *others], given(np.ones(m)))
    assert_array_equal(found.probability.argmax(axis=1), Y)
    # Its share of the stacking, .1 of .7, of what the prior does not keep for it
    assert_allclose(found.weights[0], 0.6 + 0.4 / 7, atol=1e-3)


def test_many_pairs_that_a_learner_predicts_better_leave_the_anchor():
    m, another = 100, np.random.RandomState(0).permutation(Y)
    often_right = np.repeat([0.95, 0.05], [80, 20])
    anchor = member("anchor", another, group="anchor", prior=1.0, held_out=often_right)
    learner = member("b", Y, group="learner", prior=1.0, held_out=np.full(m, 0.95))
    found = find_consensus([anchor, learner], given(np.ones(m)))
    assert found.weights[0] < 0.1
    assert_array_equal(found.probability.argmax(axis=1), Y)


def test_pairs_that_a_learner_predicts_only_more_confidently_do_not_leave_the_anchor():
    """Both are right on all of them. A learner is surer of itself, and that is no evidence."""
    m, another = 65, np.random.RandomState(0).permutation(Y)
    anchor = member("anchor", Y, group="anchor", prior=1.0, held_out=np.full(m, 0.91))
    learner = member("b", another, group="learner", prior=1.0, held_out=np.full(m, 0.999))
    found = find_consensus([anchor, learner], given(np.ones(m)))
    assert found.weights[0] > 0.6
    assert_array_equal(found.probability.argmax(axis=1), Y)


def test_coarse_cuts_are_doubted_while_constraints_are_few():
    def weights(m, **options):
        flat = np.full(m, 0.5)
        cut = member("cut", group="coarse cut", prior=1.0, held_out=flat, **options)
        return weigh([member("a", prior=1.0, held_out=flat), cut], given(np.ones(m)))

    few, enough = weights(consensus.FEW - 1), weights(consensus.FEW)
    apart = weights(consensus.FEW - 1, is_apart=True)
    usual = COARSE_CUT.prior / UNSUPERVISED.prior
    assert_allclose(few[1] / few[0], COARSE_CUT.few / UNSUPERVISED.prior)
    assert_allclose([enough[1] / enough[0], apart[1] / apart[0]], usual)


def test_with_many_constraints_groups_are_stacked():
    m = consensus.STACK_FROM
    rng = np.random.RandomState(0)
    held_out = np.clip(rng.uniform(0.3, 1.0, size=(3, m)), 0, 1)
    members = [
        member("a", prior=0.5, held_out=held_out[0]),
        member("b", prior=0.5, held_out=held_out[1]),
        member("c", group="learner", prior=1.0, held_out=held_out[2]),
    ]
    found = weigh(members, given(np.ones(m)))
    prior = np.array([0.3, 0.3, 0.3])
    logits = np.log(prior) + log_likelihood(held_out, given(np.ones(m)), consensus.LEAST_RATE)
    inside = softmax(logits[:2] / temperature(m))
    groups = np.array([UNSUPERVISED.stacked, LEARNER.prior])
    share = stacking_weights(
        np.array([inside @ held_out[:2], held_out[2]]), given(np.ones(m)), groups
    )
    assert_allclose(found, [*(share[0] * inside), share[1]], rtol=1e-4)


def best_mixture(predicted, belief, prior, n_rounds=200_000):
    """The same objective, by expectation maximisation until nothing moves any more."""
    before = prior / prior.sum()
    rate = max(likelihood(before @ predicted, given(belief))[1], consensus.LEAST_RATE)
    flip = belief * rate + (1 - belief) / 2
    adjusted = (1 - flip) * predicted + flip * (1 - predicted)
    weights = before
    for _ in range(n_rounds):
        owed = weights[:, None] * adjusted
        counts = (owed / owed.sum(axis=0)).sum(axis=1) + consensus.STACK_PRIOR * before
        last, weights = weights, counts / counts.sum()
        if np.abs(weights - last).max() < 1e-10:
            break
    return weights


@pytest.mark.parametrize(("m", "differ"), [(1, 1.0), (7, 1.0), (60, 1.0), (2000, 0.01)])
def test_stacking_weights_maximise_the_likelihood_of_the_mixture(m, differ):
    rng = np.random.RandomState(m)
    # The last case: parts that hardly differ, where steps are small long before the maximum.
    predicted = np.clip(rng.beta(0.5, 0.5, size=m) + differ * rng.normal(size=(4, m)), 0.0, 1.0)
    belief = np.where(rng.uniform(size=m) < 0.3, rng.uniform(size=m), 1.0)
    prior = rng.uniform(0.2, 2.0, size=4)
    found = stacking_weights(predicted, given(belief), prior)
    assert_allclose(found.sum(), 1.0)
    assert_allclose(found, best_mixture(predicted, belief, prior), atol=1e-3)


def test_stacking_weights_are_the_prior_where_nothing_is_known():
    prior = np.array([1.0, 3.0])
    assert_allclose(stacking_weights(np.zeros((2, 0)), given(np.zeros(0)), prior), [0.25, 0.75])
    predicted = np.array([[0.9] * 50, [0.1] * 50])
    assert_allclose(
        stacking_weights(predicted, given(np.zeros(50)), prior), [0.25, 0.75], atol=1e-4
    )


def test_many_pairs_overrule_the_prior():
    predicted = np.array([[0.5] * 400, [0.98] * 400])
    found = stacking_weights(predicted, given(np.ones(400)), np.array([9.0, 1.0]))
    assert found[1] > 0.95
    few = stacking_weights(predicted[:, :2], given(np.ones(2)), np.array([9.0, 1.0]))
    assert few[1] < 0.3


def test_a_part_that_knows_something_else_keeps_its_share():
    # The first knows 110 of 200 pairs, the second the other 90: by likelihood it would be lost.
    knows = np.arange(200) < 110
    predicted = np.where(np.array([knows, ~knows]), 0.95, 0.3)
    found = stacking_weights(predicted, given(np.ones(200)), np.ones(2))
    assert 0.35 < found[1] < found[0]
    scores = np.array([likelihood(row, given(np.ones(200)))[0] for row in predicted])
    assert softmax(scores / 2)[1] < 0.01
