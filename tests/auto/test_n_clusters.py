"""How many clusters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_blobs

from linkwise import Auto, Constraints, Prepared
from linkwise.auto import n_clusters
from linkwise.auto import views as auto_views
from linkwise.auto.constraint_model import ConstraintModel
from linkwise.auto.n_clusters import (
    average_likelihood,
    choose_n_clusters,
    gap_prior,
    has_declined,
    least_clusters,
    numbers_of_clusters,
    range_of_clusters,
)
from linkwise.auto.views import Views


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
    views = Views.of(Prepared(X))
    return views, y[views.order]


def choose(views, constraints, numbers=(2, 3, 4, 5), callback=ignore):
    scalings = views.scalings[:1]
    return choose_n_clusters(views, scalings, constraints, numbers=numbers, callback=callback)


def gaps(views, numbers=(2, 3, 4, 5)):
    return gap_prior(views.bases(views.scalings[0], 5)[1].spectrum.values, numbers)


def test_without_constraints_the_gaps_decide(four_blobs):
    views, _ = four_blobs
    choice = choose(views, Constraints(120))
    assert_allclose(np.log(choice.probability), gaps(views))
    assert choice.best == 3
    one = Constraints(120, must_link=[(0, 1)])  # nothing is left when it is held out
    again = choose(views, one)
    assert_allclose(again.probability, choice.probability)


def test_predicted_constraints_outweigh_the_gaps(four_blobs):
    views, y = four_blobs
    known = Constraints.sample(y, 80, random_state=0)
    shares = []
    choice = choose(views, known, callback=lambda share, what: shares.append((share, what)))
    assert choice.best == 4
    assert_allclose(choice.probability.sum(), 1.0)
    assert shares[:4] == [(at / 4, f"{at + 1} clusters") for at in (1, 2, 3, 4)]
    assert choice.numbers == tuple(range(2, 2 + len(shares)))
    merged = Constraints.sample(np.minimum(y, 1), 80, random_state=0)
    choice = choose(views, merged)
    assert choice.best < 4
    assert choice.probability[0] > np.exp(gaps(views)[0])


def test_where_nothing_predicts_the_counts_of_pairs_tell():
    """Half of the pairs are must-links: there are few clusters, whatever candidates say."""
    chain = [(i, i + 1) for i in range(0, 80, 2)]
    known = Constraints(80, must_link=chain[:20], cannot_link=chain[20:])
    wrong_half_of_the_time = np.tile([[0.9, 0.1]], (1, 20))
    scores = []
    for k in (2, 3, 7):
        model = ConstraintModel.of(known, k)
        scores.append(average_likelihood(wrong_half_of_the_time, model))
    assert scores[0] > scores[1] + 1
    assert scores[1] > scores[2] + 5


def test_a_candidate_that_predicts_outweighs_the_counts():
    chain = [(i, i + 1) for i in range(0, 80, 2)]
    known = Constraints(80, must_link=chain[:20], cannot_link=chain[20:])
    right, guessed = np.full((1, 40), 0.95), np.full((1, 40), 0.5)
    score = average_likelihood(right, ConstraintModel.of(known, 7))
    assert score > average_likelihood(guessed, ConstraintModel.of(known, 2)) + 10


def test_numbers_share_their_spanning_tree(four_blobs, monkeypatch):
    """It does not depend on the number; the fit that follows needs it as well."""
    views, y = four_blobs
    found, find = [], auto_views.minimum_spanning_tree

    def counted(*args):
        found.append(args)
        return find(*args)

    monkeypatch.setattr(auto_views, "minimum_spanning_tree", counted)
    cold = Views.of(Prepared(views.prepared.X))
    choose(cold, Constraints.sample(y, 40, random_state=0))
    cold.view(cold.scalings[0], 4).tree(robust=False)
    assert len(found) == 1


def test_learners_see_classes_that_the_graph_does_not():
    """Two long classes side by side in five pieces each: only a plane tells them apart."""
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], 100)
    X = np.column_stack((8 * rng.randint(5, size=200), y)) + 0.25 * rng.normal(size=(200, 2))
    X = np.column_stack((X, rng.normal(size=(200, 8))))
    known = Constraints.sample(y, 100, random_state=0)
    assert Auto(random_state=0).fit(X, constraints=known).n_clusters_ == 2


def test_there_may_be_more_clusters_than_were_to_be_tried(four_blobs):
    views, y = four_blobs
    known = Constraints.sample(y, 80, random_state=0)
    choice = choose(views, known, numbers=(2, 3))
    assert choice.best == 4
    X, y = make_blobs(300, centers=15, center_box=(-60, 60), random_state=2)
    known = Constraints.sample(y, 150, random_state=0)
    assert Auto(random_state=0).fit(X, constraints=known).n_clusters_ == 15


def test_the_search_ends_when_nothing_is_probable_any_more():
    rise = np.array([-30.0, -10, -2, 0])
    assert not has_declined(rise, is_last=False)
    assert not has_declined(rise, is_last=True)  # the last one is the best
    assert not has_declined(np.append(rise, [-3.0, -4.0, -6.0]), is_last=False)
    assert has_declined(np.append(rise, [-3.0, -4.0, -6.0]), is_last=True)
    assert has_declined(np.append(rise, [-8.0, -9.0, -12.0]), is_last=False)
    assert not has_declined(np.append(rise, [-3.0, -9.0, -12.0]), is_last=False)


def test_interrupting_leaves_the_other_numbers_out(four_blobs):
    views, y = four_blobs
    known = Constraints.sample(y, 40, random_state=0)

    def stop(share, what):
        if what.startswith("3"):
            raise KeyboardInterrupt

    choice = choose(views, known, callback=stop)
    assert choice.interrupted
    assert choice.numbers == (2, 3)


def test_interrupting_at_once_leaves_the_gaps(four_blobs, monkeypatch):
    views, y = four_blobs

    def stops(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(n_clusters, "log_evidence", stops)
    known = Constraints.sample(y, 40, random_state=0)
    choice = choose(views, known)
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
