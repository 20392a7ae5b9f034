"""How many clusters."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from linkwise import Constraints
from linkwise.auto.clusters import choose, gap_prior, least_clusters, range_of_clusters


def test_at_least_what_cannot_links_require():
    clique = [(i, j) for j in range(5) for i in range(j)]
    assert least_clusters(Constraints(20, cannot_link=clique), 20) == 5
    assert least_clusters(Constraints(20, cannot_link=[(0, 1), (1, 2), (0, 2)]), 20) == 3
    assert least_clusters(Constraints(20), 20) == 2
    assert least_clusters(Constraints.from_labels([0, 1, 2, 3, -1, -1]), 6) == 4


def test_contradictions_do_not_count():
    chain = Constraints(20, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    assert least_clusters(chain, 20) == 2


def test_the_range_contains_what_is_required_and_no_more_than_there_are():
    assert range_of_clusters(2, 1000)[0] == 2
    assert range_of_clusters(15, 1000) == tuple(range(15, 20))
    assert range_of_clusters(2, 4) == (2,)
    assert range_of_clusters(3, 4) == (3,)


def test_the_prior_prefers_the_gap():
    values = np.array([0.0, 0.01, 0.02, 0.5, 0.52, 0.55])
    prior = gap_prior(values, (2, 3, 4))
    assert prior.argmax() == 1
    assert_allclose(np.exp(prior).sum(), 1.0)
    assert_allclose(gap_prior(np.zeros(4), (2, 3)), np.log(0.5))


def test_likelihood_outweighs_the_prior():
    choice = choose((2, 3), np.array([0.0, 10.0]), np.log([0.9, 0.1]))
    assert choice.best == 3
    assert_allclose(choice.probability.sum(), 1.0)
    assert choose((2, 3), np.zeros(2), np.log([0.9, 0.1])).best == 2
