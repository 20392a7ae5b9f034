"""Colouring cannot-links: proper, cheap, exact where it can be."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linkwise.constraints.coloring import (
    assign,
    find_coloring,
    graph_of,
    guided_coloring,
    kernels,
    pairs_of,
    peel,
)
from linkwise.constraints.coloring.search import subgraph


def random_pairs(rng, n, p):
    return np.argwhere(np.triu(rng.rand(n, n) < p, 1))


def planted(rng, n, k, degree):
    """A graph with a hidden proper colouring."""
    y = rng.randint(k, size=n)
    pairs = np.sort(rng.randint(n, size=(2 * int(n * degree), 2)), axis=1)
    pairs = np.unique(pairs[y[pairs[:, 0]] != y[pairs[:, 1]]][: int(n * degree / 2)], axis=0)
    return graph_of(pairs, n), y


def random_tree(rng, n):
    return np.array([(rng.randint(v), v) for v in range(1, n)])


def sorted_pairs(pairs):
    pairs = np.sort(np.asarray(pairs, dtype=np.intp).reshape(-1, 2), axis=1)
    return np.unique(pairs, axis=0)


def assert_proper(graph, colors):
    pairs = pairs_of(graph)
    a, b = colors[pairs[:, 0]], colors[pairs[:, 1]]
    assert not ((a == b) & (a >= 0)).any()


def all_colorings(pairs, n, k):
    Y = np.array(list(product(range(k), repeat=n)))
    return Y[(Y[:, pairs[:, 0]] != Y[:, pairs[:, 1]]).all(axis=1)]


def paid(cost, colors):
    return cost[np.arange(len(cost)), colors].sum(axis=-1)


# Kernels against slow twins ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_symmetric_and_sorted(seed):
    rng = np.random.RandomState(seed)
    pairs = random_pairs(rng, 12, 0.3)
    graph = graph_of(pairs, 12)
    A = np.zeros((12, 12), dtype=bool)
    A[pairs[:, 0], pairs[:, 1]] = A[pairs[:, 1], pairs[:, 0]] = True
    for v in range(12):
        row = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        assert_array_equal(row, np.flatnonzero(A[v]))
    assert_array_equal(pairs_of(graph), pairs)


@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_a_subgraph_is_that_of_the_table(p):
    rng = np.random.RandomState(0)
    table = np.triu(rng.rand(15, 15) < 0.3, 1)
    kept = rng.rand(15) < p
    vertices, graph = subgraph(graph_of(np.argwhere(table), 15), kept)
    assert_array_equal(vertices, np.flatnonzero(kept))
    assert_array_equal(pairs_of(graph), np.argwhere(table[np.ix_(kept, kept)]))
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_peeling_leaves_the_core_and_an_order_that_always_finds_a_colour(k):
    for seed in range(20):
        rng = np.random.RandomState(seed)
        pairs = random_pairs(rng, 30, 0.02 * seed)
        graph = graph_of(pairs, 30)
        A = np.zeros((30, 30), dtype=bool)
        A[pairs[:, 0], pairs[:, 1]] = A[pairs[:, 1], pairs[:, 0]] = True
        kept = np.ones(30, dtype=bool)
        while (kept & (A[:, kept].sum(axis=1) < k)).any():
            kept &= A[:, kept].sum(axis=1) >= k
        peeling = peel(graph, k)
        assert_array_equal(peeling.core, kept)
        assert_array_equal(np.sort(peeling.order), np.flatnonzero(~kept))
        later = kept.copy()
        for v in peeling.order[::-1]:
            assert (A[v] & later).sum() < k
            later[v] = True


def slow_dsatur(A, cost, failures):
    """DSATUR as it is written down: look at everything before each step."""
    n, k = cost.shape
    colors = np.full(n, -1)
    left = set(range(n))
    degree = A.sum(axis=1)
    hub = [np.floor(2 * np.log2(d / k)) if d > 4 * k else 0 for d in degree]
    while left:

        def key(v):
            allowed = sorted(set(range(k)) - set(colors[A[v]]), key=lambda c: cost[v, c])
            regret = cost[v, allowed[1]] - cost[v, allowed[0]] if len(allowed) > 1 else np.inf
            return (-(k - len(allowed)), -hub[v] - failures[v], -regret, v)

        v = min(left, key=key)
        left.remove(v)
        allowed = set(range(k)) - set(colors[A[v]])
        if allowed:
            colors[v] = min(allowed, key=lambda c: cost[v, c])
    return colors


@pytest.mark.parametrize("seed", range(12))
def test_dsatur_equals_its_slow_twin(seed):
    rng = np.random.RandomState(seed)
    n, k = 40, 2 + seed % 3
    pairs = random_pairs(rng, n, 0.08 + 0.05 * (seed % 4))
    if seed % 2:  # a hub
        pairs = sorted_pairs([*pairs.tolist(), *((0, v) for v in range(1, n))])
    A = np.zeros((n, n), dtype=bool)
    A[pairs[:, 0], pairs[:, 1]] = A[pairs[:, 1], pairs[:, 0]] = True
    cost, failures = rng.rand(n, k), rng.randint(3, size=n)
    colors, n_left = kernels.dsatur(*graph_of(pairs, n), cost, failures)
    assert_array_equal(colors, slow_dsatur(A, cost, failures))
    assert n_left == (colors < 0).sum()


def test_the_tabu_search_keeps_what_it_has_proper_and_never_loses():
    for seed in range(10):
        rng = np.random.RandomState(seed)
        graph, _ = planted(rng, 200, 3, 5.0)
        start, n_left = kernels.dsatur(*graph, rng.rand(200, 3), np.zeros(200, np.int64))
        colors, fewer, pressure = kernels.partial_col(*graph, start.copy(), 3, 3_000, seed)
        assert_proper(graph, colors)
        assert fewer == (colors < 0).sum() <= n_left
        assert (pressure[start < 0] > 0).all()


def test_annealing_removes_conflicts():
    graph, _ = planted(np.random.RandomState(0), 500, 3, 3.0)
    colors = np.random.RandomState(1).randint(3, size=500).astype(np.int32)
    pairs = pairs_of(graph)

    def conflicts():
        return int((colors[pairs[:, 0]] == colors[pairs[:, 1]]).sum())

    before = conflicts()
    kernels.anneal(*graph, colors, 3, 300, 0)
    assert conflicts() < before / 20


@pytest.mark.parametrize("k", [2, 3, 6])
def test_kempe_descent_lowers_the_cost_keeps_the_colouring_and_ends_where_no_swap_pays(k):
    for seed in range(10):
        rng = np.random.RandomState(seed)
        graph, y = planted(rng, 60, k, 2.0)
        cost = rng.rand(60, k)
        colors = y.astype(np.int32)
        n_sweeps = kernels.kempe_descent(*graph, cost, colors, 100, False)
        assert n_sweeps < 100
        assert_proper(graph, colors)
        assert paid(cost, colors) <= paid(cost, y) + 1e-12
        assert len(set(colors)) == len(set(y))
        # No Kempe chain, found here by plain search, gains anything.
        pairs = pairs_of(graph)
        for v in range(60):
            for other in set(range(k)) - {colors[v]}:
                own, chain = colors[v], {v}
                while True:
                    edge = pairs[np.isin(colors[pairs], [own, other]).all(axis=1)]
                    grown = chain | set(edge[np.isin(edge, list(chain)).any(axis=1)].ravel())
                    if grown == chain:
                        break
                    chain = grown
                chain = np.array(sorted(chain))
                swapped = colors.copy()
                swapped[chain] = own + other - colors[chain]
                if len(set(swapped)) == len(set(colors)):
                    assert paid(cost, swapped) >= paid(cost, colors) - 1e-9


# Exactness ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4])
def test_small_graphs_are_coloured_whenever_they_can_be(k):
    n_feasible = n_infeasible = 0
    for seed in range(80):
        rng = np.random.RandomState(seed)
        n = rng.randint(2, 9)
        pairs = random_pairs(rng, n, rng.uniform(0.2, 1.0))
        graph, cost = graph_of(pairs, n), rng.rand(n, k)
        feasible = len(all_colorings(pairs, n, k)) > 0
        n_feasible += feasible
        n_infeasible += not feasible
        for found in (
            guided_coloring(graph, cost, rng, tabu_steps=2_000),
            find_coloring(graph, k, rng) if seed % 10 == 0 else None,
            assign(graph, cost, rng, n_restarts=3) if seed % 3 == 0 else None,
        ):
            if found is None:
                continue
            assert_proper(graph, found.colors)
            assert found.n_left == (found.colors < 0).sum()
            assert (found.n_left == 0) == feasible
            if feasible and n >= k:
                assert_array_equal(np.unique(found.colors), np.arange(k))
    assert n_feasible > 10
    assert n_infeasible > 5


@pytest.mark.parametrize("k", [2, 3, 4])
def test_assignment_to_a_forest_is_optimal(k):
    for seed in range(30):
        rng = np.random.RandomState(seed)
        n = rng.randint(max(2, k), 9)
        pairs = random_tree(rng, n)
        pairs = sorted_pairs(pairs[rng.rand(len(pairs)) < 0.8])  # some trees of the forest
        cost = rng.normal(size=(n, k))
        found = assign(graph_of(pairs, n), cost, rng)
        assert_proper(graph_of(pairs, n), found.colors)
        Y = all_colorings(pairs, n, k)
        best = paid(cost, Y).min()
        if len(np.unique(Y[paid(cost, Y).argmin()])) == k:
            assert_allclose(paid(cost, found.colors), best)
        else:
            assert paid(cost, found.colors) >= best


def test_assignment_with_cycles_is_optimal_on_small_graphs():
    n_optimal = n_all = 0
    for seed in range(60):
        rng = np.random.RandomState(seed)
        n, k = 8, 3
        pairs = random_pairs(rng, n, 0.3)
        Y, cost = all_colorings(pairs, n, k), rng.rand(n, k)
        Y = np.array([y for y in Y if len(set(y)) == k])
        if not len(Y):
            continue
        found = assign(graph_of(pairs, n), cost, rng)
        n_all += 1
        n_optimal += paid(cost, found.colors) <= paid(cost, Y).min() + 1e-9
    assert n_all > 40
    assert n_optimal >= 0.95 * n_all


def test_folding_leaves_is_the_recursion_over_trees():
    # A path 0 - 1 - 2 with two colours: both colourings by hand.
    cost = np.array([[0.0, 5.0], [1.0, 0.0], [0.0, 2.0]])
    folded = cost.copy()
    order, _, n_folded = kernels.fold_leaves(*graph_of(np.array([[0, 1], [1, 2]]), 3), folded)
    assert n_folded == 3
    assert folded[order[2]].min() == min(0 + 0 + 0, 5 + 1 + 2)


# Larger problems ---------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "per_sample"), [(3, 1.0), (3, 1.5), (3, 5.0), (10, 1.0), (10, 5.0)])
def test_random_pairs_of_true_clusters_are_always_coloured(k, per_sample):
    # The table of the usual protocol, with random costs, the worst case for guidance.
    rng = np.random.RandomState(0)
    from linkwise import Constraints
    from linkwise.constraints.feasible import feasible_groups

    y = rng.randint(k, size=3_000)
    known = Constraints.sample(y, int(per_sample * 3_000), random_state=1)
    groups = feasible_groups(known, k)
    found = guided_coloring(groups.graph, rng.rand(groups.n_groups, k), rng)
    assert found.n_left == 0
    assert known.n_violated(found.colors[groups.component]) == 0
    assert np.unique(found.colors).size == k


@pytest.mark.parametrize(("k", "degree"), [(3, 6.0), (5, 30.0)])
def test_the_second_guess_finds_a_planted_colouring(k, degree):
    rng = np.random.RandomState(0)
    graph, _ = planted(rng, 1_000, k, degree)
    found = find_coloring(graph, k, rng)
    assert found.n_left == 0
    assert_proper(graph, found.colors)


def test_costs_guide_the_colouring_at_any_scale():
    rng = np.random.RandomState(0)
    graph, y = planted(rng, 500, 4, 3.0)
    cost = 1.0 - np.eye(4)[y]
    for scale in (1e-100, 1.0, 1e100):
        for shift in (0.0, 7.0):
            found = guided_coloring(graph, scale * (cost + shift), rng)
            assert_array_equal(found.colors, y)
            assert_array_equal(assign(graph, scale * (cost + shift), rng).colors, y)


def test_the_same_seed_gives_the_same_colouring():
    graph, _ = planted(np.random.RandomState(0), 300, 3, 4.6)
    cost = np.random.RandomState(1).rand(300, 3)
    for search in (
        lambda rng: guided_coloring(graph, cost, rng, tabu_steps=5_000),
        lambda rng: assign(graph, cost, rng),
    ):
        first, second = (search(np.random.RandomState(5)) for _ in range(2))
        assert_array_equal(first.colors, second.colors)


def test_empty_colours_are_filled_by_the_cheapest_vertices():
    cost = np.array([[0.0, 9.0, 5.0], [0.0, 9.0, 1.0], [0.0, 2.0, 9.0], [0.0, 9.0, 9.0]])
    none = np.empty((0, 2), dtype=np.intp)
    for search in (guided_coloring, assign):
        found = search(graph_of(none, 4), cost, np.random.RandomState(0))
        assert found.colors.tolist() == [0, 2, 1, 0]
    # Fewer vertices than colours: none is uncoloured, and no two share a colour for nothing.
    few = guided_coloring(graph_of(none, 2), np.zeros((2, 5)), np.random.RandomState(0))
    assert few.n_left == 0
    assert len(set(few.colors.tolist())) == 2


@pytest.mark.parametrize("k", [1, 2, 3])
def test_cliques_leave_exactly_the_surplus(k):
    n = 6
    pairs = np.array(list(combinations(range(n), 2)))
    cost = np.zeros((n, k))
    for search in (guided_coloring, assign):
        found = search(graph_of(pairs, n), cost, np.random.RandomState(0))
        assert found.n_left == n - k
        assert_proper(graph_of(pairs, n), found.colors)


def test_a_million_groups_with_an_empty_core():
    rng = np.random.RandomState(0)
    graph, _ = planted(rng, 1_000_000, 5, 1.5)
    found = guided_coloring(graph, rng.rand(1_000_000, 5), rng)
    assert found.n_left == 0
    assert_proper(graph, found.colors)
