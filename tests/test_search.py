"""The search among feasible partitions: exact gains, feasibility at every step, exact quotients."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from linkwise import METHODS, Constraints
from linkwise._kernels import empty_heap, new_stream, put, remove, shuffle, uniform
from linkwise._quiet import quiet
from linkwise.constraints.coloring import CannotLinkGraph
from linkwise.constraints.coloring.kernels import kempe_chain, new_scratch
from linkwise.constraints.table import symmetric_matrix
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.search import cut, local_search, means, objective, problem, starts
from linkwise.search.objective import Context
from linkwise.search.soft import answer_likelihood, clearly_best, soft_path

PLAN = local_search.Plan(sweep_cap=64, climb_cap=8, rounds=3, fruit=30, hub_degree=10**6)


def random_problem(seed, n=14, k=3, *, gamma=0.3, n_links=8, n_soft=6):
    """A small problem with a feasible partition `z`, every cluster non-empty."""
    rng = np.random.RandomState(seed)
    upper = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4), 1)
    z = rng.permutation(np.arange(n) % k).astype(np.int32)
    pairs = rng.randint(n, size=(n_links, 2))
    links = np.unique(np.sort(pairs[z[pairs[:, 0]] != z[pairs[:, 1]]], axis=1), axis=0)
    soft = rng.randint(n, size=(n_soft, 2))
    soft = soft[soft[:, 0] != soft[:, 1]]
    W = csr_array(upper + upper.T)
    soft = symmetric_matrix(soft, rng.normal(size=len(soft)), n)
    groups = one_group_each(n, links, soft)
    return problem.build_problem(W, groups)._replace(gamma=gamma), z, W, links, soft


def one_group_each(n, links, soft=None):
    graph = symmetric_matrix(np.asarray(links).reshape(-1, 2), np.ones(len(links)), n)
    apart = CannotLinkGraph(graph.indptr.astype(np.int64), graph.indices.astype(np.int32))
    soft = csr_array((n, n)) if soft is None else soft
    return problem.Groups(np.arange(n, dtype=np.int32), n, apart, soft, np.zeros(n, np.int32))


def chain(p, s, scratch, v, b, cap):
    return kempe_chain(p.apart_indptr, p.apart_indices, s.z, v, b, cap, scratch)


def dense_objective(W, soft, gamma, z, k):
    """Return F(z) straight from its definition, with dense matrices."""
    W = W.toarray()
    total = 0.0
    for c in range(k):
        mine = z == c
        volume = W[mine].sum()
        if volume > 0:
            total += W[mine][:, ~mine].sum() / volume
        elif mine.any():
            total += 1.0
    for i, j in zip(*np.triu(soft.toarray(), 1).nonzero(), strict=True):
        r = soft[i, j]
        total += gamma * abs(r) * ((z[i] == z[j]) == (r < 0))
    return total


def is_proper(p, z):
    heads = np.repeat(np.arange(z.size), np.diff(p.apart_indptr))
    return (z[heads] != z[p.apart_indices]).all()


def assert_exact_tables(p, s):
    fresh = local_search.new_state(p, s.z, s.volume.size)
    for name in s._fields:
        assert_allclose(getattr(s, name), getattr(fresh, name), atol=1e-12, err_msg=name)


seeds = st.integers(0, 10_000)


@given(seeds)
def test_the_objective_is_its_definition(seed):
    p, z, W, _, soft = random_problem(seed)
    assert local_search.evaluate(p, z, 3) == pytest.approx(dense_objective(W, soft, 0.3, z, 3))


@given(seeds, st.integers(2, 4))
def test_gains_of_chains_are_exact_and_keep_every_cannot_link(seed, k):
    p, z, *_ = random_problem(seed, k=k)
    rng = np.random.RandomState(seed)
    s, scratch = local_search.new_state(p, z, k), new_scratch(z.size)
    for _ in range(10):
        v, b = rng.randint(z.size), rng.randint(k)
        a = s.z[v]
        if a == b:
            continue
        size = chain(p, s, scratch, v, b, z.size)
        gain = local_search.chain_gain(p, s, scratch, size, a, b)
        before = local_search.evaluate(p, s.z, k)
        if gain == -np.inf:  # it would empty a cluster
            assert min(s.size[a], s.size[b]) <= size
            continue
        assert local_search.execute(p, s, scratch, v, b) == size
        assert before - local_search.evaluate(p, s.z, k) == pytest.approx(gain, abs=1e-12)
        assert is_proper(p, s.z)
        assert_exact_tables(p, s)


@given(seeds, st.integers(2, 4), st.booleans())
def test_the_best_move_is_the_best_of_all_tried_one_by_one(seed, k, near):
    p, z, *_ = random_problem(seed, k=k)
    s, scratch = local_search.new_state(p, z, k), new_scratch(z.size)
    before = local_search.evaluate(p, z, k)
    for v in range(z.size):
        gains = {}
        for b in set(range(k)) - {int(z[v])}:
            if near and s.S[v, b] <= 0 and s.R[v, b] <= 0:
                continue
            trial, more = local_search.new_state(p, z, k), new_scratch(z.size)
            local_search.execute(p, trial, more, v, b)
            if trial.size.min() > 0:
                gains[b] = before - local_search.evaluate(p, trial.z, k)
        gain, b = local_search.best_move(p, s, scratch, v, z.size + 1, near)
        if not gains:
            assert b == -1
        else:
            assert gain == pytest.approx(max(gains.values()), abs=1e-12)
            assert gains[b] == pytest.approx(gain, abs=1e-12)


@given(seeds)
def test_a_locked_vertex_or_a_long_chain_is_left_alone(seed):
    p, z, *_ = random_problem(seed, n_links=14)
    s, scratch = local_search.new_state(p, z, 3), new_scratch(z.size)
    for v in range(z.size):
        b = (z[v] + 1) % 3
        size = chain(p, s, scratch, v, b, z.size)
        if size < 2:
            continue
        last = scratch.members[size - 1]
        assert chain(p, s, scratch, v, b, size - 1) == 0
        scratch.locked[last] = scratch.epoch[0]
        assert chain(p, s, scratch, v, b, z.size) == 0
        scratch.locked[last] = 0


@given(seeds, st.integers(2, 4))
@settings(max_examples=50)
def test_refining_never_raises_the_objective_nor_leaves_feasibility(seed, k):
    p, z, *_ = random_problem(seed, n=24, k=k, n_links=16)
    refined = local_search.refine(p, z, k, PLAN, seed)
    assert local_search.evaluate(p, refined, k) <= local_search.evaluate(p, z, k) + 1e-12
    assert is_proper(p, refined)
    assert np.unique(refined).size == k
    # At the end no single move or short chain gains.
    s, scratch = local_search.new_state(p, refined, k), new_scratch(z.size)
    assert (
        max(local_search.best_move(p, s, scratch, v, 64, False)[0] for v in range(z.size)) <= 1e-9
    )


@given(seeds)
@settings(max_examples=30)
def test_a_climb_leaves_exact_tables_and_gains_what_it_says(seed):
    p, z, *_ = random_problem(seed, n=24, n_links=12)
    s, scratch = local_search.new_state(p, z, 3), new_scratch(z.size)
    order = np.arange(z.size, dtype=np.int32)
    log = local_search.Log(np.zeros(z.size, bool), order.copy(), order.copy())
    heap = empty_heap(z.size, np.zeros(0, np.int64))
    gained = sum(local_search._climb(p, s, scratch, heap, log, v, PLAN) for v in order)
    assert_exact_tables(p, s)
    assert is_proper(p, s.z)
    before, after = local_search.evaluate(p, z, 3), local_search.evaluate(p, s.z, 3)
    assert before - after == pytest.approx(gained, abs=1e-10)
    assert gained >= 0


def test_a_climb_passes_a_wall_that_descent_does_not():
    # Two triangles on a path: from a bad cut every single move loses first.
    n_tried = n_better = 0
    for seed in range(60):
        p, z, *_ = random_problem(seed, n=30, k=2, n_links=0, n_soft=0)
        descended = local_search.refine(p, z, 2, PLAN._replace(rounds=0), seed)
        climbed = local_search.refine(p, z, 2, PLAN, seed)
        n_tried += 1
        n_better += (
            local_search.evaluate(p, climbed, 2) < local_search.evaluate(p, descended, 2) - 1e-9
        )
    assert n_better > n_tried // 4


# Contraction and coarsening ------------------------------------------------------------------


@given(seeds)
def test_contraction_preserves_the_cut(seed):
    rng = np.random.RandomState(seed)
    _, _, W, _, _ = random_problem(seed)
    group = np.unique(rng.randint(8, size=14), return_inverse=True)[1]
    g = group.max() + 1
    alone = one_group_each(g, np.zeros((0, 2), int))
    groups = alone._replace(of_sample=group.astype(np.int32), soft=csr_array((14, 14)))
    p = problem.build_problem(W, groups)
    z = rng.randint(3, size=g).astype(np.int32)
    assert local_search.evaluate(p, z, 3) == pytest.approx(
        dense_objective(W, csr_array((14, 14)), 0.0, z[group], 3), abs=1e-5
    )


@given(seeds)
def test_a_quotient_keeps_differences_of_the_objective(seed):
    p, z, *_ = random_problem(seed, n=20)
    parent, n_coarse = problem._match(p, z, np.inf, seed)
    coarse = problem.quotient(p, parent, n_coarse)
    rng = np.random.RandomState(seed)
    # Soft pairs inside a coarse vertex cost the same whatever the partition.
    values = []
    for _ in range(3):
        labels = rng.randint(3, size=n_coarse).astype(np.int32)
        fine, small = labels[parent], local_search.evaluate(coarse, labels, 3)
        values.append(local_search.evaluate(p, fine, 3) - small)
    assert_allclose(values, values[0], atol=1e-10)


@given(seeds, st.booleans())
def test_a_matching_stays_inside_cells_and_apart_from_cannot_links(seed, one_cell):
    p, z, *_ = random_problem(seed, n=20, n_links=20)
    cells = np.zeros_like(z) if one_cell else z
    parent, n_coarse = problem._match(p, cells, np.inf, seed)
    assert_array_equal(np.unique(parent), np.arange(n_coarse))
    assert np.bincount(parent).max() <= 2
    for c in range(n_coarse):
        members = np.flatnonzero(parent == c)
        assert np.unique(cells[members]).size == 1
        if members.size == 2:
            row = p.apart_indices[p.apart_indptr[members[0]] : p.apart_indptr[members[0] + 1]]
            assert members[1] not in row


def test_no_vertex_outgrows_the_limit():
    p, z, *_ = random_problem(3, n=20)
    limit = 1.2 * p.volume.max()
    parent, _ = problem._match(p, np.zeros_like(z), limit, 0)
    assert np.bincount(parent, weights=p.volume).max() <= limit


@given(seeds)
@settings(max_examples=40)
def test_merging_for_two_clusters_keeps_exactly_the_feasible_partitions(seed):
    rng = np.random.RandomState(seed)
    n = 7
    z = rng.randint(2, size=n)
    pairs = rng.randint(n, size=(5, 2))
    links = np.unique(np.sort(pairs[z[pairs[:, 0]] != z[pairs[:, 1]]], axis=1), axis=0)
    merged = problem.merge_for_two(one_group_each(n, links))
    assert np.diff(merged.apart.indptr).max(initial=0) <= 1
    feasible = {p for p in product((0, 1), repeat=n) if all(p[i] != p[j] for i, j in links)}
    heads = np.repeat(np.arange(merged.n_groups), np.diff(merged.apart.indptr))
    kept = {
        tuple(np.array(p)[merged.of_sample].tolist())
        for p in product((0, 1), repeat=merged.n_groups)
        if all(p[a] != p[b] for a, b in zip(heads, merged.apart.indices, strict=True))
    }
    assert kept == feasible


def test_isolated_vertices_weigh_next_to_nothing_and_cost_one_alone():
    W = csr_array((np.ones(2), ([0, 1], [1, 0])), shape=(4, 4))
    p = problem.build_problem(W, one_group_each(4, np.zeros((0, 2), int)))
    assert p.volume[2] == pytest.approx(0.5e-6)
    assert local_search.evaluate(p, np.array([0, 0, 1, 1], np.int32), 2) == pytest.approx(1.0)


# Cycles --------------------------------------------------------------------------------------


def cut_objective(p, z, k):
    return cut.CutObjective(p, k, objective.colorer(p, k, z), cut.Effort(2, 2, 2), 1.0)


@given(seeds, st.integers(2, 4))
@settings(max_examples=12)
def test_a_cycle_is_never_worse_than_either_way_it_began(seed, k):
    p, z, *_ = random_problem(seed, n=100, k=k, n_links=40)
    rng = np.random.RandomState(seed)
    cuts = cut_objective(p, z, k)
    other = local_search.refine(p, z, k, PLAN, seed)
    for child in (
        cuts.local_search(z, rng),
        cuts.local_search(z, rng, is_refined=True),
        cuts.local_search(z, rng, other=other, is_refined=True),
    ):
        assert local_search.evaluate(p, child, k) <= local_search.evaluate(p, z, k) + 1e-12
        assert is_proper(p, child)
        assert np.unique(child).size == k


def test_split_merge_returns_a_feasible_partition_with_all_clusters():
    p, z, *_ = random_problem(5, n=60, k=4, n_links=40)
    color = objective.colorer(p, 4, z)
    rng = np.random.RandomState(0)
    vectors = starts.embed(p, 4, rng)
    for _ in range(20):
        mutated = starts.mutate_split_merge(p, z, vectors, color=color, rng=rng)
        assert is_proper(p, mutated)
        assert_array_equal(np.unique(mutated), np.arange(4))


def test_a_failed_colouring_falls_back_on_the_feasible_one(monkeypatch):
    p, z, *_ = random_problem(5, n=30, n_links=20)
    failed = objective.guided_coloring.__globals__["Coloring"](np.full(30, -1, np.int32), 30)
    monkeypatch.setattr(objective, "guided_coloring", lambda *_args, **_named: failed)
    cost = np.ones((30, 3))
    cost[np.arange(30), (z + 1) % 3] = 0.0  # the feasible partition, under other names
    assert_array_equal(objective.colorer(p, 3, z)(cost, np.random.RandomState(0)), (z + 1) % 3)


def test_the_embedding_separates_two_cliques_also_when_it_is_coarsened(monkeypatch):
    n = 40
    W = np.kron(np.eye(2), np.ones((n // 2, n // 2))) - np.eye(n)
    W[0, n // 2] = W[n // 2, 0] = 0.5
    p = problem.build_problem(csr_array(W), one_group_each(n, np.zeros((0, 2), int)))
    for limit in (starts.EMBEDDED, 10):
        monkeypatch.setattr(starts, "EMBEDDED", limit)
        second = starts.embed(p, 2, np.random.RandomState(0))[:, 1]
        assert_array_equal(second > 0, np.repeat([second[0] > 0, second[0] <= 0], n // 2))


# The sum of squares --------------------------------------------------------------------------


def means_case(seed, n=12, k=3):
    _, z, _, links, soft = random_problem(seed, n=n, k=k)
    rows = np.random.RandomState(seed).normal(size=(n, 2))
    groups = one_group_each(n, links, soft)
    return problem.edgeless_problem(groups, np.ones(n))._replace(gamma=0.3), rows, z, soft


def dense_sum_of_squares(rows, soft, gamma, z):
    total = sum(((rows[z == c] - rows[z == c].mean(axis=0)) ** 2).sum() for c in np.unique(z))
    for i, j in zip(*np.triu(soft.toarray(), 1).nonzero(), strict=True):
        total += gamma * abs(soft[i, j]) * ((z[i] == z[j]) == (soft[i, j] < 0))
    return total


@given(seeds)
def test_the_sum_of_squares_is_its_definition(seed):
    p, rows, z, soft = means_case(seed)
    expected = dense_sum_of_squares(rows, soft, 0.3, z)
    assert means.evaluate_means(p, rows, z, 3) == pytest.approx(expected)


@given(seeds)
def test_gains_of_the_sum_of_squares_are_exact(seed):
    p, rows, z, _ = means_case(seed)
    s, scratch = local_search.new_state(p, z, 3), new_scratch(z.size)
    M = np.array([rows[z == c].sum(axis=0) for c in range(3)])
    before = means.evaluate_means(p, rows, z, 3)
    for v in range(z.size):
        gain, b = means._best_move(p, s, scratch, rows, M, v)
        if b < 0:
            continue
        trial = local_search.new_state(p, z, 3)
        local_search.execute(p, trial, new_scratch(z.size), v, b)
        after = means.evaluate_means(p, rows, trial.z, 3)
        assert before - after == pytest.approx(gain, abs=1e-12)


@given(seeds)
@settings(max_examples=40)
def test_the_sum_of_squares_descends_within_feasibility(seed):
    p, rows, z, _ = means_case(seed, n=20)
    found = means._descend(p, rows, z, 3, seed)
    assert is_proper(p, found)
    assert np.unique(found).size == 3
    assert means.evaluate_means(p, rows, found, 3) <= means.evaluate_means(p, rows, z, 3) + 1e-12


# Odds and ends -------------------------------------------------------------------------------


def test_random_numbers_are_uniform_and_follow_the_seed():
    stream = new_stream(7)
    drawn = np.array([uniform(stream) for _ in range(20_000)])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert_allclose(np.histogram(drawn, 10, (0, 1))[0] / 2_000, 1, atol=0.1)
    again = new_stream(7)
    assert [uniform(again) for _ in range(3)] == drawn[:3].tolist()
    order = np.arange(50, dtype=np.int32)
    shuffle(order, stream)
    assert_array_equal(np.sort(order), np.arange(50))
    assert (order != np.arange(50)).any()


def test_held_out_answers_are_likelier_where_the_partition_explains_them():
    is_must_link = np.array([True] * 10 + [False] * 10)
    seen = np.tile([True, False], 10)
    right = answer_likelihood(is_must_link, is_must_link, seen)[~seen].sum()
    useless = answer_likelihood(np.zeros(20, bool), is_must_link, seen)[~seen].sum()
    # All seen answers agree with the partition: P = (5 + 0.5) / (5 + 1) for each held-out one.
    assert right == pytest.approx(10 * np.log(5.5 / 6))
    assert useless == pytest.approx(10 * np.log(0.5))


def test_the_default_stays_unless_another_is_clearly_better():
    rng = np.random.RandomState(0)
    default = rng.normal(size=300)
    noise = default + rng.normal(scale=0.3, size=300)
    assert clearly_best(np.array([default, noise + 0.01]), 0) == 0
    assert clearly_best(np.array([default, noise + 0.2]), 0) == 1
    assert clearly_best(np.array([default, default]), 0) == 0


def test_of_two_with_the_same_value_the_better_one_stays():
    z = np.zeros(1, np.int32)
    population = [cut.Member(1.0, z), cut.Member(2.0, z)]
    cut._insert(population, cut.Member(1.0 + 1e-12, z), 2)
    assert [m.value for m in population] == [1.0, 2.0]
    cut._insert(population, cut.Member(1.0 - 1e-12, z), 2)
    assert [m.value for m in population] == [1.0 - 1e-12, 2.0]
    cut._insert(population, cut.Member(0.5, z), 2)
    assert [m.value for m in population] == [0.5, 1.0 - 1e-12]


class Valley:
    """An objective on integers: the penalty pulls from 0 to 10, local search takes one step."""

    unit = 1.0

    def __init__(self, gamma=0.0):
        self.gamma = gamma

    def at(self, gamma):
        return Valley(gamma)

    def value(self, z):
        return float(z[0] ** 2 + self.gamma * (10 - z[0]) ** 2)

    def local_search(self, z, rng):
        return min((z, z + 1, z - 1), key=self.value)

    def recombine(self, z, other, rng):
        return min((z, other), key=self.value)


def test_the_path_goes_up_and_down_and_takes_the_better_neighbour():
    ends = (np.array([0]), np.array([10]))
    # Upwards one step a strength leads to 0, 1, 2, downwards to 7, 8, 9; at a penalty of 5 the best
    # is 8, which only the neighbour has met.
    path = soft_path(Valley(), ends, Context(None), strengths=(0.0, 4.0, 5.0))
    assert [int(z[0]) for z in path.partitions] == [0, 8, 8]


def test_recombination_keeps_what_both_parents_agree_on(monkeypatch):
    p, z, *_ = random_problem(3, n=200, k=3, n_links=60)
    other = local_search.refine(p, z, 3, PLAN, 0)
    seen = []
    original = cut.hierarchy

    def watched(problem, cells, *args, **named):
        seen.append(cells)
        return original(problem, cells, *args, **named)

    monkeypatch.setattr(cut, "hierarchy", watched)
    cut_objective(p, z, 3).recombine(z, other, np.random.RandomState(0))
    cells = seen[0]
    for cell in np.unique(cells):
        assert np.unique(z[cells == cell]).size == np.unique(other[cells == cell]).size == 1


def test_threads_and_no_threads_run_the_same_tasks():
    tasks = [lambda i=i: cut.Member(float(i), np.zeros(1, np.int32)) for i in range(5)]
    for n_jobs in (1, 2):
        with objective.workers(n_jobs) as run:
            assert [member.value for member in run(tasks)] == [0, 1, 2, 3, 4]


def test_dense_levels_of_large_graphs_are_not_climbed():
    dense = problem.build_problem(csr_array(1 - np.eye(60)), one_group_each(60, []))
    ring = np.eye(60, k=1) + np.eye(60, k=59)
    sparse = problem.build_problem(csr_array(ring + ring.T), one_group_each(60, []))
    for name in ("default", "fast"):
        effort = cut.effort_for(name, 100_000, 5, mean_degree=16.0)
        assert cut._plan(effort, dense, 5).rounds == 0
        assert cut._plan(effort, sparse, 5).rounds > 0
        # A graph that is dense itself is climbed, and so is every small one.
        assert cut._plan(cut.effort_for(name, 100_000, 5, mean_degree=50.0), dense, 5).rounds > 0
        assert cut._plan(cut.effort_for(name, 1_000, 5, mean_degree=16.0), dense, 5).rounds > 0
    assert cut._plan(cut.effort_for("thorough", 100_000, 5, mean_degree=16.0), dense, 5).rounds > 0


@given(seeds, st.booleans())
def test_the_heap_gives_vertices_by_rank_and_key(seed, ranked):
    rng = np.random.RandomState(seed)
    rank = rng.randint(3, size=20).astype(np.int64) if ranked else np.zeros(0, np.int64)
    heap = empty_heap(20, rank)
    keys = {}
    for v in rng.randint(20, size=60).tolist():
        if v in keys and rng.uniform() < 0.3:
            remove(heap, v)
            del keys[v]
        else:
            keys[v] = float(rng.randint(5))
            put(heap, v, keys[v])
    drawn = []
    while heap.size[0]:
        drawn.append(int(heap.vertex[0]))
        remove(heap, drawn[-1])
    assert sorted(drawn) == sorted(keys)
    if ranked:
        assert drawn == sorted(keys, key=lambda v: (-rank[v], -keys[v], v))
    else:
        assert [keys[v] for v in drawn] == sorted(keys.values(), reverse=True)


# Weights of very different size --------------------------------------------------------------


@pytest.mark.parametrize("key", ["cut", "cosc", "sskk"])
@pytest.mark.parametrize("k", [2, 3])
def test_a_star_of_weights_1_and_1e_17_is_clustered(key, k):
    W = np.zeros((8, 8))
    W[0, 1:] = W[1:, 0] = [1, 1e-17] * 3 + [1]
    known = Constraints(8, [(1, 2)], [(3, 4)])
    for seed in range(6):
        model = METHODS[key](k, affinity="precomputed", random_state=seed)
        labels = model.fit(W, constraints=known).labels_
        assert np.unique(labels).size == k
        assert key == "sskk" or known.n_violated(labels) == 0


def test_a_volume_is_counted_again_where_rounding_leaves_nothing():
    W = csr_array(np.array([[0, 1, 1e-17], [1, 0, 0], [1e-17, 0, 0.0]]))
    p = problem.build_problem(W, one_group_each(3, np.zeros((0, 2), int)))
    state = local_search.new_state(p, np.array([0, 1, 0], np.int32), 2)
    local_search.move(p, state, 0, 1)  # 1 + 1e-17 - 1
    assert state.volume.tolist() == [1e-17, 2.0]
    assert state.inside.tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    "edges", [[(0, 1), (1, 2)], [(0, 2), (2, 4), (2, 5)], [(0, 2), (0, 3), (2, 3), (0, 5), (2, 5)]]
)
def test_isolated_vertices_are_no_reason_to_cut_the_rest(edges):
    """A cluster of isolated vertices costs 1, so the best cut leaves the component whole."""
    W = np.zeros((6, 6))
    W[tuple(np.transpose(edges))] = 1
    W += W.T
    is_isolated = ~W.any(axis=1)
    k = int(is_isolated.sum()) + 1
    with quiet(DisconnectedGraphWarning):
        labels = METHODS["cut"](k, affinity="precomputed", random_state=0).fit(W).labels_
    assert np.unique(labels[~is_isolated]).size == 1


@pytest.mark.parametrize("seed", range(3))
def test_climbs_in_many_calls_find_what_one_call_finds(seed):
    p, z, *_ = random_problem(seed, n=60, k=3)
    at_once = local_search.refine(p, z, 3, PLAN, seed)
    in_steps = local_search.refine(p, z, 3, PLAN._replace(climbs_per_call=2), seed)
    assert_array_equal(at_once, in_steps)


def test_dense_graphs_have_fewer_climbs():
    p, *_ = random_problem(0, n=200, n_links=0, n_soft=0)
    assert p.indices.size / 200 > cut.CLIMB_DEGREE
    assert cut._plan(cut.effort_for("default", 200, 3), p, 3).starts < 200
