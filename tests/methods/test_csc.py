"""CSC: Xu, desJardins & Wagstaff 2005, and its XOR data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise import CSC, Affinity, Constraints, NCut, Prepared
from linkwise.datasets import make_xor
from linkwise.linalg import chebyshev, eigen, ordering
from linkwise.methods.csc import csc, edit

PAPER = Affinity(None, scale="xu")
# The paper counts samples from 1: (1, 21) and (11, 31).
QUESTIONS = [(0, 20), (10, 30)]


@pytest.mark.parametrize("seed", range(10))
def test_heuristic_finds_nine_neighbours_on_xor(seed):
    X, _ = make_xor(random_state=seed)
    affinity = Affinity(None, scale="xu").fit(X)
    assert affinity.m_ == 9


@pytest.mark.parametrize("rows", ["unit", "raw"])
@pytest.mark.parametrize("seed", range(10))
def test_two_must_links_solve_xor(seed, rows):
    X, y = make_xor(random_state=seed)
    model = CSC(2, affinity=PAPER, rows=rows, random_state=0)
    labels = model.fit(X, constraints=Constraints(40, must_link=QUESTIONS)).labels_
    assert_array_equal(labels, y)


def test_one_must_link_does_not_solve_xor():
    # Figure 3: one question leaves the two other corners undecided.
    X, y = make_xor(random_state=0)
    model = CSC(2, affinity=PAPER, random_state=0)
    labels = model.fit(X, constraints=Constraints(40, must_link=QUESTIONS[:1])).labels_
    assert adjusted_rand_score(y, labels) < 0.9


def test_second_eigenvector_of_xor_is_piecewise_constant():
    # Figure 4: with both must-links, one value on each pair of opposite corners.
    X, y = make_xor(random_state=0)
    W = Affinity(None, scale="xu").fit_transform(X)
    second = csc(W, Constraints(40, QUESTIONS), 2, rows="raw", random_state=0).embedding[:, 1]
    inside = max(np.ptp(second[y == 0]), np.ptp(second[y == 1]))
    between = abs(second[y == 0].mean() - second[y == 1].mean())
    assert inside < 0.05 * between


def test_embedding_holds_eigenvectors_of_the_transition_matrix():
    X, y = make_blobs(60, centers=3, cluster_std=2, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 20, random_state=0)
    result = csc(W, known, 3, rows="raw", random_state=0)
    A = edit(W, known).toarray()
    P = A / A.sum(axis=1, keepdims=True)
    assert_allclose(P @ result.embedding, result.embedding * (1 - result.eigenvalues), atol=1e-6)


@pytest.mark.parametrize("rows", ["unit", "raw"])
def test_without_constraints_it_is_ncut(rows):
    X, _ = make_blobs(120, centers=3, cluster_std=2.5, random_state=1)
    assert_array_equal(
        CSC(3, rows=rows, random_state=0).fit(X).labels_,
        NCut(3, rows=rows, random_state=0).fit(X).labels_,
    )


def test_a_later_fit_of_prepared_data_orders_the_graph_no_more(monkeypatch):
    monkeypatch.setattr(eigen, "CHEBYSHEV_FROM", 1_000)
    monkeypatch.setattr(ordering, "NEAR", 1_000)
    X, y = make_blobs(2_000, 3, centers=4, cluster_std=2.0, random_state=0)
    first, second = (Constraints.sample(y, 40, random_state=seed) for seed in (0, 1))
    data = Prepared(X)
    CSC(4, random_state=0).fit(data, constraints=first)
    cold = CSC(4, random_state=0).fit(X, constraints=second)
    monkeypatch.setattr(chebyshev, "local_order", None)
    warm = CSC(4, random_state=0).fit(data, constraints=second)
    assert_allclose(warm.result_.eigenvalues, cold.result_.eigenvalues, atol=1e-6)
    assert adjusted_rand_score(cold.labels_, warm.labels_) > 0.995
