"""Proofs of infeasibility: right, small, and found where they are planted."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkwise.constraints.coloring import (
    certificates as certificates_module,
)
from linkwise.constraints.coloring import (
    colors_needed,
    find_certificate,
    graph_of,
    large_clique,
    pairs_of,
)
from linkwise.constraints.coloring import exhaustive as search
from linkwise.constraints.coloring.certificates import odd_ring


def K(n):
    return list(combinations(range(n), 2))


def W(n):
    """The wheel with n spokes."""
    return [(i, (i + 1) % n) for i in range(n)] + [(i, n) for i in range(n)]


def groetzsch():
    """The smallest graph without triangles that needs four colours."""
    edges = [(i, (i + 1) % 5) for i in range(5)]
    for i in range(5):
        edges += [(5 + i, (i + 1) % 5), (5 + i, (i - 1) % 5), (5 + i, 10)]
    return edges


def sorted_pairs(pairs):
    return np.unique(np.sort(np.asarray(pairs, dtype=np.intp).reshape(-1, 2), axis=1), axis=0)


def can_be_colored(pairs, k):
    """Whether k colours suffice, by plain recursion over the vertices."""
    vertices = sorted({int(v) for pair in pairs for v in pair})
    around = {v: set() for v in vertices}
    for a, b in pairs:
        around[int(a)].add(int(b))
        around[int(b)].add(int(a))
    color = {}

    def extend(i):
        if i == len(vertices):
            return True
        v = vertices[i]
        taken = {color[u] for u in around[v] if u in color}
        for c in range(min(k, 1 + max(color.values(), default=-1) + 1)):
            if c not in taken:
                color[v] = c
                if extend(i + 1):
                    return True
                del color[v]
        return False

    vertices.sort(key=lambda v: -len(around[v]))
    return extend(0)


def assert_proves(found, graph, k):
    """The edges are there, and they alone cannot be coloured."""
    known = {tuple(pair) for pair in pairs_of(graph).tolist()}
    edges = [tuple(sorted(edge)) for edge in found.edges.tolist()]
    assert set(edges) <= known
    assert len(set(edges)) == len(edges)
    assert {v for edge in edges for v in edge} == set(found.vertices)
    assert not can_be_colored(edges, k)
    if found.is_minimal:
        for dropped in range(len(edges)):
            assert can_be_colored(edges[:dropped] + edges[dropped + 1 :], k)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_every_small_graph_is_coloured_or_refuted(k):
    kinds = set()
    n_infeasible = 0
    for seed in range(250):
        rng = np.random.RandomState(seed)
        n = rng.randint(1, 9)
        pairs = np.argwhere(np.triu(rng.rand(n, n) < rng.uniform(0.2, 1.0), 1))
        graph = graph_of(pairs, n)
        found = find_certificate(graph, k, rng)
        Y = np.array(list(product(range(k), repeat=n)))
        feasible = (Y[:, pairs[:, 0]] != Y[:, pairs[:, 1]]).all(axis=1).any()
        assert (found is None) == feasible
        if found is not None:
            n_infeasible += 1
            kinds.add(found.kind)
            assert_proves(found, graph, k)
    assert n_infeasible > 10
    assert kinds <= ({"odd ring"} if k == 2 else {"clique", "wheel", "minimal set"})


@pytest.mark.parametrize("seed", range(20))
def test_an_odd_ring_is_found_if_there_is_one_and_is_shortest_in_small_graphs(seed):
    rng = np.random.RandomState(seed)
    n = 25
    pairs = np.argwhere(np.triu(rng.rand(n, n) < 0.09, 1))
    graph = graph_of(pairs, n)
    A = np.zeros((n, n), dtype=int)
    A[pairs[:, 0], pairs[:, 1]] = A[pairs[:, 1], pairs[:, 0]] = 1
    lengths = [m for m in range(3, n + 1, 2) if np.trace(np.linalg.matrix_power(A, m)) > 0]
    found = odd_ring(graph)
    if not lengths:
        assert found is None
    else:
        assert len(found.vertices) == lengths[0]
        assert_proves(found, graph, 2)


@pytest.mark.parametrize("seed", range(20))
def test_a_greedy_clique_is_one_and_is_nearly_as_large_as_can_be(seed):
    rng = np.random.RandomState(seed)
    n = 14
    A = np.triu(rng.rand(n, n) < 0.6, 1)
    graph = graph_of(np.argwhere(A), n)
    found = large_clique(graph, n)
    assert A[found[:, None], found][np.triu_indices(found.size, 1)].all()
    largest = max(
        size
        for size in range(1, n)
        for members in combinations(range(n), size)
        if all(A[a, b] for a, b in combinations(members, 2))
    )
    assert largest - 1 <= found.size <= largest
    assert_array_equal(large_clique(graph, 2).size, 2)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_exhaustive_search_equals_plain_recursion(k):
    for seed in range(60):
        rng = np.random.RandomState(seed)
        pairs = np.argwhere(np.triu(rng.rand(11, 11) < 0.15 * k, 1))
        status, n_nodes, colors = search.exact_coloring(*graph_of(pairs, 11), k, 10**6)
        assert (status == search.COLORED) == can_be_colored(pairs.tolist(), k)
        assert status in (search.COLORED, search.IMPOSSIBLE)
        if status == search.COLORED:
            assert (colors >= 0).all()
            assert (colors[pairs[:, 0]] != colors[pairs[:, 1]]).all()
        if n_nodes > 1:
            assert search.exact_coloring(*graph_of(pairs, 11), k, n_nodes - 1)[0] == -1


def planted(rng, n, k, degree, edges):
    """A graph with a hidden colouring, and an obstruction on random vertices."""
    y = rng.randint(k, size=n)
    pairs = rng.randint(n, size=(3 * int(n * degree), 2))
    pairs = pairs[y[pairs[:, 0]] != y[pairs[:, 1]]][: int(n * degree / 2)]
    members = rng.permutation(n)[: max(map(max, edges)) + 1]
    return graph_of(sorted_pairs([*pairs.tolist(), *members[np.array(edges)].tolist()]), n)


@pytest.mark.parametrize(
    ("edges", "k", "n", "degree", "kind", "size"),
    [
        (K(4), 3, 1_000, 1.2, "clique", 6),
        (K(4), 3, 1_000, 4.0, "clique", 6),
        (K(6), 5, 2_000, 8.0, "clique", 15),
        (K(11), 10, 2_000, 20.0, "clique", 55),
        (W(7), 3, 1_000, 1.2, "wheel", 14),
        (W(7), 3, 1_000, 4.6, "wheel", 14),
        (groetzsch(), 3, 1_000, 1.2, "minimal set", 20),
        (groetzsch(), 3, 400, 3.0, "minimal set", 20),
        (groetzsch(), 3, 20_000, 10.0, "minimal set", 20),  # 100,000 cannot-links
        (K(11), 10, 10_000, 20.0, "clique", 55),
    ],
)
def test_planted_obstructions_are_named(edges, k, n, degree, kind, size):
    rng = np.random.RandomState(0)
    graph = planted(rng, n, k, degree, edges)
    found = find_certificate(graph, k, rng)
    # A random background may hold a smaller one, but these do not.
    assert (found.kind, len(found.edges)) == (kind, size)
    assert found.is_minimal
    if size < 30:
        assert_proves(found, graph, k)


def test_a_random_graph_beyond_the_threshold_is_refuted_by_a_minimal_set():
    rng = np.random.RandomState(3)
    pairs = sorted_pairs([p for p in rng.randint(120, size=(330, 2)).tolist() if p[0] != p[1]])
    graph = graph_of(pairs, 120)
    found = find_certificate(graph, 3, rng)
    assert found.kind == "minimal set"
    assert search.exact_coloring(*graph_of(sorted_pairs(found.edges), 120), 3, 10**6)[0] == 0


def test_a_proof_that_could_not_be_made_minimal_says_so(monkeypatch):
    monkeypatch.setattr(certificates_module, "FILTER_WORK", 10)
    graph = graph_of(sorted_pairs(groetzsch()), 11)
    found = find_certificate(graph, 3, np.random.RandomState(0))
    assert found.kind == "minimal set"
    assert not found.is_minimal
    assert_proves(found, graph, 3)


def test_colors_needed_suffice():
    for seed in range(20):
        rng = np.random.RandomState(seed)
        pairs = np.argwhere(np.triu(rng.rand(9, 9) < 0.5, 1))
        k = colors_needed(graph_of(pairs, 9), 1, rng)
        assert can_be_colored(pairs.tolist(), k)
        assert k == 2 or not can_be_colored(pairs.tolist(), k - 1)  # tight on small graphs
    assert_array_equal(colors_needed(graph_of(sorted_pairs(K(7)), 7), 3, rng), 7)


def test_odd_rings_of_sparse_graphs_with_loose_ends_are_rings():
    n_found = 0
    for seed in range(100):
        rng = np.random.RandomState(seed)
        pairs = np.unique(np.sort(rng.randint(130, size=(90, 2)), axis=1), axis=0)
        graph = graph_of(pairs[pairs[:, 0] < pairs[:, 1]].astype(np.intp), 130)
        found = odd_ring(graph)
        if found is not None:
            n_found += 1
            assert_proves(found, graph, 2)
    assert n_found > 20
