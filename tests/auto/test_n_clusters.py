"""How many clusters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_blobs

from linkwise import Affinity, Auto, Constraints
from linkwise.auto import n_clusters
from linkwise.auto.bases import build_bases
from linkwise.auto.n_clusters import (
    choose_n_clusters,
    gap_prior,
    least_clusters,
    numbers_of_clusters,
    range_of_clusters,
)


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


def ignore(share, what):
    """Take progress that nobody asked for."""


@pytest.fixture(scope="module")
def four_blobs():
    """Return two near and two distant blobs: by the spectrum, three clusters."""
    centers = [(0, 0), (3, 0), (30, 0), (0, 30)]
    X, y = make_blobs(120, centers=np.array(centers), cluster_std=0.8, random_state=0)
    return build_bases(X, Affinity().fit_transform(X), 6), y


def test_without_constraints_the_gaps_decide(four_blobs):
    bases, _ = four_blobs
    choice = choose_n_clusters(bases, Constraints(120), (2, 3, 4, 5), callback=ignore)
    assert_allclose(np.log(choice.probability), gap_prior(bases.spectrum.values, (2, 3, 4, 5)))
    assert choice.best == 3
    one = Constraints(120, must_link=[(0, 1)])  # nothing is left when it is held out
    again = choose_n_clusters(bases, one, (2, 3, 4, 5), callback=ignore)
    assert_allclose(again.probability, choice.probability)


def test_predicted_constraints_outweigh_the_gaps(four_blobs):
    bases, y = four_blobs
    known = Constraints.sample(y, 80, random_state=0)
    shares = []
    choice = choose_n_clusters(
        bases, known, (2, 3, 4, 5), callback=lambda share, what: shares.append((share, what))
    )
    assert choice.best == 4
    assert_allclose(choice.probability.sum(), 1.0)
    assert shares == [(at / 4, f"{at + 1} clusters") for at in (1, 2, 3, 4)]
    merged = Constraints.sample(np.minimum(y, 1), 80, random_state=0)
    choice = choose_n_clusters(bases, merged, (2, 3, 4, 5), callback=ignore)
    assert choice.best < 4
    assert choice.probability[0] > np.exp(gap_prior(bases.spectrum.values, (2, 3, 4, 5))[0])


def test_interrupting_leaves_the_other_numbers_out(four_blobs):
    bases, y = four_blobs
    known = Constraints.sample(y, 40, random_state=0)

    def stop(share, what):
        if what.startswith("3"):
            raise KeyboardInterrupt

    choice = choose_n_clusters(bases, known, (2, 3, 4, 5), callback=stop)
    assert choice.interrupted
    assert choice.best in (2, 3)
    assert_allclose(choice.probability[2:], 0.0)


def test_interrupting_at_once_leaves_the_gaps(four_blobs, monkeypatch):
    bases, y = four_blobs

    def stops(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(n_clusters, "_predictive_score", stops)
    known = Constraints.sample(y, 40, random_state=0)
    choice = choose_n_clusters(bases, known, (2, 3, 4, 5), callback=ignore)
    assert choice.interrupted
    assert choice.best == 3


def test_one_number_is_not_chosen():
    known = Constraints(5, cannot_link=[(i, j) for j in range(5) for i in range(j)])
    assert numbers_of_clusters(known) == (5,)


def test_no_more_clusters_than_must_links_leave():
    """All pairs of three groups: there are three clusters, also where these must hold."""
    X, _ = make_blobs(30, 2, centers=3, random_state=0)
    y = np.random.RandomState(5).randint(3, size=30)
    i, j = np.triu_indices(30, 1)
    pairs, same = np.c_[i, j], y[i] == y[j]
    known = Constraints(30, pairs[same], pairs[~same])
    for hard in (False, True):
        assert Auto(hard=hard, random_state=0).fit(X, constraints=known).n_clusters_ == 3
