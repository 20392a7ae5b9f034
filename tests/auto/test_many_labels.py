"""More labels than candidates learn from: some are learnt, the rest decide later."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise import Auto, Constraints
from linkwise.auto import constraint_model
from linkwise.auto.constraint_model import learnt_constraints


def test_few_labels_are_all_learnt():
    known = Constraints.from_labels([0, 1, -1, 0])
    assert learnt_constraints(known, 0) is known
    none = Constraints(4, must_link=[(0, 1)])
    assert learnt_constraints(none, 0) is none


def test_some_of_every_label_are_learnt(monkeypatch):
    monkeypatch.setattr(constraint_model, "MOST_LABELS", 60)
    monkeypatch.setattr(constraint_model, "LEAST_OF_LABEL", 10)
    labels = np.array([0] * 300 + [1] * 80 + [2] * 12 + [-1] * 8)
    known = Constraints(400, must_link=[(0, 1)], labels=labels)
    learnt = learnt_constraints(known, 0)
    kept = learnt.labels >= 0
    assert kept.sum() == 60
    assert_array_equal(learnt.labels[kept], labels[kept])
    sizes = np.bincount(learnt.labels[kept])
    assert sizes.min() >= 10
    assert sizes[0] > sizes[1] > sizes[2]
    assert_array_equal(learnt.must_link, known.must_link)
    assert_array_equal(learnt_constraints(known, 0).labels, learnt.labels)


def test_the_other_labels_decide_in_the_end(monkeypatch):
    X, y = make_blobs(240, centers=3, cluster_std=3.0, random_state=3)
    labels = y.copy()
    labels[::4] = -1
    wrong = 13
    labels[wrong] = (y[wrong] + 1) % 3
    known = Constraints.from_labels(labels)
    whole = Auto(3, random_state=0).fit(X, constraints=known)
    monkeypatch.setattr(constraint_model, "MOST_LABELS", 60)
    monkeypatch.setattr(constraint_model, "LEAST_OF_LABEL", 10)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert model.report_.n_constraints == len(model.suspects_) == 180
    free = slice(None, None, 4)
    assert adjusted_rand_score(model.labels_[free], y[free]) > (
        adjusted_rand_score(whole.labels_[free], y[free]) - 0.15
    )
    given = labels >= 0
    assert (model.labels_ == labels)[given].mean() > (y == labels)[given].mean() - 0.05
    assert wrong in [suspect.samples[0] for suspect in model.suspects_[:30]]
    assert_allclose(model.result_.probability.sum(axis=1), 1.0)
