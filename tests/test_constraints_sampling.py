"""Random pairs: their distribution, not only their number; and folds that do not leak."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import chi2

from linkwise.constraints import Constraints
from linkwise.constraints.sampling import draw_distinct, draw_folds, unrank_pairs
from strategies import any_constraints, constraints_from_a_partition

# Pairs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_pairs", [1, 4, 10, 12, 20])  # both ways of drawing, and the last pair
def test_every_pair_is_equally_likely(n_pairs):
    y = np.array([0, 0, 0, 1, 1, 2, 2, -1])
    known = 7
    n_all = known * (known - 1) // 2
    rng = np.random.RandomState(n_pairs)
    n_trials = 3000
    counts = Counter()
    n_must = 0
    for _ in range(n_trials):
        c = Constraints.sample(y, n_pairs, random_state=rng)
        assert c.n_pairs == n_pairs
        n_must += len(c.must_link)
        counts.update(map(tuple, np.concatenate((c.must_link, c.cannot_link)).tolist()))

    observed = np.array([counts[pair] for pair in combinations(range(known), 2)])
    assert observed.sum() == n_trials * n_pairs  # no other pair was drawn
    expected = n_trials * n_pairs / n_all
    # Drawing without replacement makes counts vary less than a multinomial would.
    statistic = ((observed - expected) ** 2 / expected).sum() * (n_all - 1) / (n_all - n_pairs)
    assert 1e-4 < chi2.sf(statistic, n_all - 1) < 1 - 1e-4

    share = 5 / n_all  # 3 + 1 + 1 pairs have equal labels
    deviation = np.sqrt(n_trials * n_pairs * share * (1 - share))
    assert abs(n_must - n_trials * n_pairs * share) < 4 * deviation


def test_all_pairs_can_be_drawn():
    y = np.array([0, 1, 0, -1, 1])
    c = Constraints.sample(y, 6, random_state=0)
    assert_array_equal(c.must_link, [[0, 2], [1, 4]])
    assert_array_equal(c.cannot_link, [[0, 1], [0, 4], [1, 2], [2, 4]])
    assert Constraints.sample(y, 0).is_empty


def test_a_large_draw_takes_no_quadratic_memory():
    y = np.random.RandomState(0).randint(5, size=1_000_000)
    c = Constraints.sample(y, 200_000, random_state=0)
    assert c.n_pairs == 200_000
    assert_array_equal(y[c.must_link[:, 0]], y[c.must_link[:, 1]])
    assert abs(len(c.must_link) - 40_000) < 1000
    # Both ends are spread over all samples.
    quarters = np.bincount(np.concatenate((c.must_link, c.cannot_link)).ravel() // 250_000)
    assert (np.abs(quarters - 100_000) < 2000).all()


def test_the_same_seed_gives_the_same_pairs():
    y = np.arange(100) % 4
    a, b = (Constraints.sample(y, 50, random_state=3) for _ in range(2))
    assert_array_equal(a.must_link, b.must_link)
    assert_array_equal(a.cannot_link, b.cannot_link)


@pytest.mark.parametrize(
    ("n_pairs", "error", "message"),
    [
        (4, ValueError, "n_pairs is 4, but the 3 samples with a known label have only 3 distinct"),
        (-1, ValueError, "n_pairs is -1, but it must be at least 0"),
        (1.0, TypeError, "n_pairs is 1.0"),
    ],
)
def test_wrong_numbers_of_pairs(n_pairs, error, message):
    with pytest.raises(error, match=message):
        Constraints.sample([0, 1, 1, -1], n_pairs)


def test_unranking_lists_every_pair_once():
    n = 60
    pairs = unrank_pairs(np.arange(n * (n - 1) // 2))
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert {tuple(pair) for pair in pairs.tolist()} == set(combinations(range(n), 2))


@given(st.integers(2, 3_000_000_000), st.data())
def test_unranking_is_exact_for_large_ranks(j, data):
    i = data.draw(st.sampled_from([0, 1, j - 2, j - 1])) % j
    assert unrank_pairs(np.array([j * (j - 1) // 2 + i])).tolist() == [[i, j]]


@given(st.integers(0, 30), st.data())
def test_draws_are_distinct(population, data):
    size = data.draw(st.integers(0, population))
    drawn = draw_distinct(population, size, np.random.RandomState(0))
    assert len(set(drawn.tolist())) == drawn.size == size
    assert all(0 <= value < population for value in drawn)


# Folds -------------------------------------------------------------------------------------


def entailed(train, i, j):
    """Whether certain training pairs say anything about (i, j); by boolean matrix products."""
    n = train.n_samples
    M, C = np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool)
    for matrix, pairs, belief in (
        (M, train.must_link, train.must_link_belief),
        (C, train.cannot_link, train.cannot_link_belief),
    ):
        a, b = pairs[belief == 1].T
        matrix[a, b] = matrix[b, a] = True
    if train.labels is not None:
        known = train.labels >= 0
        both = known[:, None] & known
        equal = train.labels[:, None] == train.labels
        M, C = M | (both & equal), C | (both & ~equal)
    for _ in range(n):
        M = M @ M
    return (M | (M @ C @ M))[i, j]


@given(st.one_of(any_constraints(), constraints_from_a_partition()), st.integers(0, 5))
@settings(max_examples=200)
def test_no_test_pair_is_entailed_by_the_training_pairs(c, seed):
    keys = {tuple(p) for p in np.concatenate((c.must_link, c.cannot_link)).tolist()}
    if len(keys) < 3:
        return
    tested = Counter()
    for train, test in c.split(3, random_state=seed):
        trained = {tuple(p) for p in np.concatenate((train.must_link, train.cannot_link)).tolist()}
        for kind in ("must_link", "cannot_link"):
            for i, j in getattr(test, kind).tolist():
                assert not entailed(train, i, j)
                assert (i, j) not in trained
                tested[kind, i, j] += 1
        # What is in neither part was dropped because it is entailed.
        held = {tuple(p) for p in np.concatenate((test.must_link, test.cannot_link)).tolist()}
        for i, j in keys - trained - held:
            assert entailed(train, i, j)
        assert test.labels is None
        assert_array_equal(train.labels, c.labels)
    assert all(count == 1 for count in tested.values())


def test_free_pairs_are_all_tested_with_their_beliefs():
    pairs = [(2 * k, 2 * k + 1) for k in range(10)]
    belief = np.linspace(0.1, 1, 10)
    c = Constraints(20, must_link=pairs, must_link_belief=belief)
    tests = [test for _, test in c.split(5, random_state=0)]
    assert [test.n_pairs for test in tests] == [2] * 5
    assert_array_equal(np.sort(np.concatenate([t.must_link_belief for t in tests])), belief)


def test_folds_differ_in_size_by_one_at_most():
    assert sorted(np.bincount(draw_folds(11, 3, np.random.RandomState(0)))) == [3, 4, 4]


@pytest.mark.parametrize("n_folds", [1, 4])
def test_wrong_numbers_of_folds(n_folds):
    c = Constraints(6, must_link=[(0, 1), (2, 3)], cannot_link=[(4, 5)])
    with pytest.raises(ValueError, match=rf"n_folds is {n_folds}, .*distinct explicit pairs \(3\)"):
        c.split(n_folds)


@pytest.mark.parametrize("c", [Constraints(3), Constraints.from_labels([0, -1, 1])])
def test_folds_without_explicit_pairs_have_empty_tests(c):
    folds = list(c.split(2))
    assert [train for train, _ in folds] == [c, c]
    assert all(test.is_empty for _, test in folds)
