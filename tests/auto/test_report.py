"""The report: what `Auto` says about its answer, in words."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, load_wine, make_blobs, make_moons
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Auto, Constraints
from linkwise.auto.candidates import CANDIDATES
from linkwise.auto.names import in_words
from linkwise.auto.report import KINDS, small_clusters


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def report(iris):
    """Return the report of a fit with 30 pairs."""
    X, y = iris
    known = Constraints.sample(y, 30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Auto(3, random_state=0).fit(X, constraints=known).report_


def test_the_report_can_be_read(report):
    text = str(report)
    assert text.startswith("3 clusters (given)\n")
    assert "30 constraints, " in text
    assert "those given help to predict those held out" in text
    assert "of the samples change their cluster" in text
    assert f"candidates, the 6 heaviest of {len(report.candidates)}:" in text
    assert text.endswith(f"the one that agrees most with the others: {in_words(report.centre)}")
    weights = [one.weight for one in report.candidates]
    assert_allclose(sum(weights), 1.0)
    assert (np.diff(weights) <= 0).all()
    assert report.score > report.score_without > report.score_guess


def test_every_candidate_has_a_name_in_words():
    named = {one.name: in_words(one.name) for one in CANDIDATES}
    assert len(set(named.values())) == len(named)  # they can be told apart
    assert [name for name, words in named.items() if name == words] == ["k-means"]
    assert not any("+" in words or " ." in words for words in named.values())


def test_without_constraints_nothing_is_said_about_them(iris):
    report = Auto(3, random_state=0).fit(iris[0]).report_
    assert len(report.summary()) == 3
    assert "constraint" not in " ".join(report.summary())
    assert (report.n_constraints, report.n_held_back, report.changed) == (0, 0, 0.0)


# What the samples show --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_clusters_is_said(report, kind):
    rest = {other: 0.02 for other in KINDS if other != kind}
    clear = replace(report, kinds={kind: 0.96, **rest}, misfit=0.5)
    assert clear.summary()[1] == f"the samples clearly show {KINDS[kind]}"
    rest = dict.fromkeys(rest, 0.2)
    doubtful = replace(report, kinds={kind: 0.6, **rest}, misfit=0.5)
    assert doubtful.summary()[1] == f"the samples probably (60%) show {KINDS[kind]}"


def test_the_kind_of_some_data():
    blobs, _ = make_blobs(90, centers=3, random_state=3)
    moons, _ = make_moons(150, noise=0.05, random_state=0)
    assert "clearly show compact clusters" in Auto(3).fit(blobs).report_.summary()[1]
    assert "clearly show clusters of other shapes" in Auto(2).fit(moons).report_.summary()[1]
    graph = Auto(2, affinity="precomputed").fit(Affinity().fit_transform(moons)).report_
    assert graph.summary()[1] == "the data are a graph: partitions are compared by their cut"
    assert len(graph.summary()) == 2  # no scaling
    binary = (blobs > np.median(blobs, axis=0)) * np.ones(2)
    few = Auto(2).fit(binary).report_
    assert few.summary()[1].startswith("features have few values")
    assert np.isnan(few.misfit)


def test_the_scaling_is_said_and_how_to_change_it(report):
    X, y = load_wine(return_X_y=True)
    raw = Auto(3, random_state=0).fit(X).report_
    assert raw.summary()[2] == 'features standardised (scaling="given" changes that)'
    assert report.summary()[2] == 'features as given (scaling="standardize" changes that)'
    known = Constraints.sample(y, 6, random_state=0)
    compared = Auto(3, random_state=0).fit(X, constraints=known).report_
    assert "compared by constraints with: " in compared.summary()[2]


def test_a_number_of_clusters_that_is_a_guess_is_called_so(iris):
    report = Auto(random_state=0).fit(iris[0]).report_
    assert report.n_clusters_probability[report.n_clusters] < 0.5
    guess = "a guess; give the number if you know it, or take linkwise.Linkage"
    assert guess in report.summary()[0]
    sure = replace(report, n_clusters=3, n_clusters_probability={2: 0.1, 3: 0.8, 4: 0.1})
    assert sure.summary()[0] == "3 clusters (chosen of 2 to 4, probability 80%, then 2 with 10%)"
    clear = replace(sure, n_clusters_probability={2: 0.01, 3: 0.98, 4: 0.01})
    assert clear.summary()[0] == "3 clusters (chosen of 2 to 4, probability 98%)"
    most = replace(sure, n_clusters=4)
    assert most.summary()[0].endswith(
        "the most that was tried; for many more there is linkwise.Linkage)"
    )


def test_many_small_clusters_of_unknown_number_are_what_linkage_is_for():
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(150), 5)
    X = rng.normal(size=(150, 8))[y] + 0.1 * rng.normal(size=(750, 8))
    assert "linkwise.Linkage" in Auto(random_state=0).fit(X).report_.summary()[0]


def test_small_clusters_are_named(report):
    assert small_clusters(np.array([0, 0, 0, 1, 2, 2])) == ((1, (3,)), (2, (4, 5)))
    labels = np.zeros(150, int)
    labels[7] = 1
    labels[[3, 90]] = 2
    named = replace(report, small_clusters=small_clusters(labels), n_violated=4)
    lines = named.summary()
    assert "cluster 1 has only sample 7" in lines
    assert "cluster 2 has only samples 3 and 90" in lines
    assert "30 constraints, 4 violated" in " ".join(lines)
    X = np.vstack((make_blobs(60, centers=2, cluster_std=0.5, random_state=0)[0], [[200.0, 200.0]]))
    assert "has only sample 60" in str(Auto(3, random_state=0).fit(X).report_)


# What the constraints changed -------------------------------------------------------------------


def test_what_the_constraints_moved_is_counted():
    # The samples show an upper and a lower half; the pairs are about left and right.
    rng = np.random.RandomState(0)
    y = np.arange(80) % 2
    X = np.column_stack((3 * y, 6 * (np.arange(80) % 4 > 1))) + 0.3 * rng.normal(size=(80, 2))
    known = Constraints.sample(y, 40, random_state=0)
    model = Auto(2, scaling="given", random_state=0).fit(X, constraints=known)
    before = Auto(2, scaling="given", random_state=0).fit(X).labels_
    same = (before == model.labels_).mean()
    assert_allclose(model.report_.changed, min(same, 1 - same))
    assert model.report_.changed > 0.3
    text = str(model.report_)
    assert f"with them, {model.report_.changed:.1%} of the samples change their cluster" in text
    assert "they contradict what the samples show on their own, and were followed" in text


def test_the_verdict(report):
    def verdict(**scores):
        return replace(report, **{"score_guess": guess} | scores).summary()[-1]

    guess = np.log(0.5)
    assert verdict(score=-0.2, score_without=-0.4) == "those given help to predict those held out"
    assert verdict(score=-0.2, score_without=-0.21).startswith("they add little")
    assert verdict(score=guess + 0.01, score_without=-1.2).startswith(
        "nothing predicts them better than guessing"
    )
    assert verdict(score=-0.2, score_without=-1.0).startswith("they contradict what the samples")
    # A third of the classes is no coin: of three labels, guessing is right once.
    assert verdict(score=-0.9, score_without=-1.0, score_guess=np.log(1 / 3)).startswith(
        "those given help"
    )
    assert verdict(score=-0.9, score_without=-1.0).startswith("nothing predicts them")


def test_labels_are_judged_against_guessing_among_the_classes(iris):
    X, y = iris
    labels = Constraints.from_labels(np.where(np.arange(150) % 15 == 0, y, -1))
    report = Auto(3, random_state=0).fit(X, constraints=labels).report_
    assert_allclose(report.score_guess, np.log(1 / 3))
    pairs = Constraints.sample(y, 10, random_state=0)
    both = Constraints(150, pairs.must_link, pairs.cannot_link, labels=labels.labels)
    report = Auto(3, random_state=0).fit(X, constraints=both).report_
    # A pair is guessed by the share of must-links, one of each added.
    n_must, n_cannot = len(pairs.must_link), len(pairs.cannot_link)
    share = (n_must + 1) / (n_must + n_cannot + 2)
    of_pairs = n_must * np.log(share) + n_cannot * np.log(1 - share)
    assert_allclose(report.score_guess, (of_pairs + 10 * np.log(1 / 3)) / 20)


def test_random_labels_are_predicted_by_nothing(iris):
    X, y = iris
    rng = np.random.RandomState(1)
    random = np.where(np.arange(150) % 4 == 0, rng.permutation(y), -1)
    report = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(random)).report_
    assert report.summary()[-1].startswith("nothing predicts them better than guessing")


def test_a_single_constraint_is_not_judged(iris):
    X, _ = iris
    report = Auto(3, random_state=0).fit(X, constraints=Constraints(150, [(0, 1)])).report_
    assert report.n_held_back == 0
    assert "1 constraint, 0 violated" in str(report)
    assert "held-out" not in str(report)


def test_labels_and_pairs_that_are_violated_are_counted(iris):
    X, y = iris
    wrong = y.copy()
    wrong[::25] = (wrong[::25] + 1) % 3
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(wrong))
    assert model.report_.n_constraints == 150
    assert 0 < model.report_.n_violated < 20
    assert model.report_.n_suspects == sum(one.probability > 0.5 for one in model.suspects_) > 0


def test_noise_is_the_mean_of_the_suspects(iris):
    X, y = iris
    labels = np.where(np.arange(150) % 4 == 0, y, -1)
    labels[::40] = (labels[::40] + 1) % 3
    model = Auto(3, random_state=0).fit(X, constraints=Constraints.from_labels(labels))
    assert_allclose(model.noise_, np.mean([one.probability for one in model.suspects_]))
    assert f"about {model.noise_:.1%} wrong" in str(model.report_)
    # With hard=True all of them hold, so that the estimate is of what would be without.
    model = Auto(3, random_state=0, hard=True).fit(X, constraints=Constraints.from_labels(labels))
    told = f"0 violated; without hard=True about {model.noise_:.1%} would count as wrong"
    assert told in str(model.report_)
