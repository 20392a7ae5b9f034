"""COSC with a number of violations: the lowest cut within it, against all partitions."""

from __future__ import annotations

import warnings
from itertools import combinations, product

import numpy as np
import pytest
from scipy.sparse import csr_array

from linkwise import COSC, Constraints, metrics
from linkwise.exceptions import ConvergenceWarning
from linkwise.methods.cosc import cosc
from linkwise.search.allowance import _cheapest, _ratio, _tables, allowance_of, lowest_within


def tiny_problem(seed, k):
    """A connected graph of 6 to 12 vertices (9 for more clusters), pairs, and an allowance."""
    rng = np.random.RandomState(seed)
    n = rng.randint(6, 13 if k == 2 else 10)
    W = np.triu(rng.uniform(size=(n, n)) ** 2 * (rng.uniform(size=(n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.05, 1, size=n - 1), 1)
    pairs = np.array(list(combinations(range(n), 2)))
    chosen = pairs[rng.choice(len(pairs), rng.randint(2, 9), replace=False)]
    must = rng.uniform(size=len(chosen)) < 0.5
    known = Constraints(n, chosen[must], chosen[~must])
    return W + W.T, known, rng.randint(0, 4) if seed % 2 else 1


def all_partitions(n, k):
    Z = np.array([(0, *rest) for rest in product(range(k), repeat=n - 1)], dtype=np.int8)
    return Z[np.all([(c == Z).any(axis=1) for c in range(k)], axis=0)]


def enumerated(W, known, k):
    """All partitions, their normalised cuts, and what they violate."""
    Z = all_partitions(len(W), k)
    cut = np.zeros(len(Z))
    for c in range(k):
        inside = (c == Z).astype(float)
        cut += 1 - ((inside @ W) * inside).sum(axis=1) / (inside @ W.sum(axis=1))
    violated = np.zeros(len(Z), int)
    for i, j in known.must_link:
        violated += Z[:, i] != Z[:, j]
    for i, j in known.cannot_link:
        violated += Z[:, i] == Z[:, j]
    return Z, cut, violated


def assert_lowest(seed, k):
    W, known, allowed = tiny_problem(seed, k)
    _, cut, violated = enumerated(W, known, k)
    allowed = max(allowed, violated.min())  # what can be met
    found = cosc(csr_array(W), known, k, violations=allowed, random_state=0)
    assert found.n_violated <= allowed, seed
    assert found.objective <= cut[violated <= allowed].min() * (1 + 1e-9), seed


@pytest.mark.parametrize("block", range(10))
def test_the_lowest_cut_within_the_allowance_on_200_graphs(block):
    for seed in range(20 * block, 20 * block + 20):
        assert_lowest(seed, 2)


@pytest.mark.parametrize("seed", range(20))
def test_the_lowest_cut_of_three_clusters(seed):
    assert_lowest(seed, 3)


@pytest.mark.parametrize("seed", [*range(20), 22, 64])
def test_without_refinement_it_is_the_minimiser_at_its_own_penalty(seed):
    W, known, allowed = tiny_problem(seed, 2)
    Z, cut, violated = enumerated(W, known, 2)
    found = cosc(csr_array(W), known, 2, violations=allowed, refine=False, random_state=0)
    first = (Z == 0) @ W.sum(axis=1)
    F = cut + found.gamma * violated * (1 / first + 1 / (W.sum() - first))
    own = (found.labels == Z).all(axis=1) | (1 - found.labels == Z).all(axis=1)
    assert F[own][0] <= F.min() * (1 + 1e-9)
    assert found.n_violated <= allowed or (violated > allowed).all()


def test_between_two_prices_there_is_a_lower_cut():
    lower = 0
    for seed in range(40):
        W, known, allowed = tiny_problem(seed, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            bare = cosc(csr_array(W), known, 2, violations=allowed, refine=False, random_state=0)
        if bare.n_violated <= allowed:
            found = cosc(csr_array(W), known, 2, violations=allowed, random_state=0)
            assert found.objective <= bare.objective * (1 + 1e-9)
            lower += found.objective < bare.objective * 0.98
    assert lower


def test_an_allowance_that_cannot_be_met_is_warned_about():
    W = np.ones((5, 5)) - np.eye(5)
    triangles = Constraints(5, cannot_link=[(0, 1), (1, 2), (0, 2), (3, 4), (2, 4), (2, 3)])
    for refine in (True, False):
        with pytest.warns(ConvergenceWarning, match="at most 0 constraints; the answer violates 2"):
            cosc(csr_array(W), triangles, 2, violations=0, refine=refine, random_state=0)


def test_labels_and_pairs_given_both_ways_count():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]])
    wrong = Constraints(8, labels=[0, -1, 1, 0, 1, -1, 1, 1])
    model = COSC(2, violations=1, random_state=0).fit(X, constraints=wrong)
    assert model.labels_.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    both = Constraints(8, must_link=[(0, 1)], cannot_link=[(0, 1), (1, 2)])
    problem = allowance_of(csr_array((8, 8)), None, both, k=2, n_allowed=1)
    assert problem.n_allowed == 0  # one of the two is violated in any case


def test_tables_and_moves_equal_their_slow_twins():
    W, known, _ = tiny_problem(5, 3)
    rng, k = np.random.RandomState(0), 3
    z = rng.randint(k, size=len(W)).astype(np.int32)
    z[:k] = np.arange(k)
    problem = allowance_of(csr_array(W), None, known, k=k, n_allowed=0)
    G, P, weight = problem.graph, problem.pairs, problem.weight
    graph, pairs = (G.indptr, G.indices, G.data, weight), (P.indptr, P.indices, P.data)
    items, clusters, n_violated = _tables.py_func(z, graph, pairs, problem.is_movable, k)
    assert n_violated == known.n_violated(z)
    total = sum(_ratio.py_func(c, t) for c, t in zip(*clusters[:2], strict=True))
    assert total == pytest.approx(metrics.ncut(W, z))
    free = ~problem.is_movable, weight
    v, c = _cheapest.py_func(z, free, items, clusters, (n_violated, 0, 0.7, 0.2))
    best, lowest = None, np.inf
    for vertex, to in product(range(len(W)), range(k)):
        moved = z.copy()
        moved[vertex] = to
        if to == z[vertex] or np.unique(moved).size < k:
            continue
        n = known.n_violated(moved)
        volume = np.bincount(moved, W.sum(axis=1))
        cost = metrics.ncut(W, moved) + 0.7 * n + 0.2 * n * (1 / volume).sum()
        if cost < lowest - 1e-12:
            best, lowest = (vertex, to), cost
    assert (v, c) == best


def test_the_search_needs_no_good_start():
    W, known, allowed = tiny_problem(3, 2)
    _, cut, violated = enumerated(W, known, 2)
    problem = allowance_of(csr_array(W), None, known, k=2, n_allowed=allowed)
    start = (np.arange(len(W)) % 2).astype(np.int32)
    found = lowest_within(problem, [start], np.random.RandomState(0))
    assert found.cut == pytest.approx(cut[violated <= allowed].min())
    assert found.n_violated == known.n_violated(found.z)
