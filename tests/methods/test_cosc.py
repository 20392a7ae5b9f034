"""COSC: the theorems of Rangapuram & Hein (2012), enumeration, and the authors' own answers."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, diags_array, load_npz
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from linkwise import Affinity, ConstrainedCut, Constraints, metrics
from linkwise._quiet import quiet
from linkwise.exceptions import ConflictError, ConvergenceWarning, DisconnectedGraphWarning
from linkwise.linalg import fista
from linkwise.methods.cosc import COSC, cosc
from linkwise.search import bisection, one_spectral, recursion
from linkwise.search import cut as cut_search
from linkwise.search.bisection import family_of, matrices_of
from linkwise.search.cut import CutObjective
from linkwise.search.objective import Context, certain_groups
from linkwise.search.one_spectral import PenalizedCut, Record, Settings, ratio_dca
from linkwise.search.problem import build_problem

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"
needs_golden = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="the recorded answers of the authors' program are not here"
)


def random_graph(rng, n, density=0.5):
    upper = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    upper[np.arange(n - 1), np.arange(1, n)] = rng.uniform(0.1, 1.0, size=n - 1)
    return csr_array(upper + upper.T)


def consistent_constraints(rng, n):
    y = rng.randint(2, size=n)
    y[:2] = 0, 1
    pairs = [tuple(rng.choice(n, 2, replace=False)) for _ in range(rng.randint(n))]
    return Constraints(
        n,
        must_link=[(i, j) for i, j in pairs if y[i] == y[j]],
        cannot_link=[(i, j) for i, j in pairs if y[i] != y[j]],
    )


def penalized(W, b, pairs=(), gamma=0.0, balance="lovasz"):
    pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    degree = np.asarray(W.sum(axis=1)).ravel()
    return PenalizedCut(
        fista.edges_of(W),
        b,
        pairs[:, 0],
        pairs[:, 1],
        np.full(len(pairs), gamma),
        csr_array(diags_array(1 / degree) @ W),
        balance,
    )


def set_function(W, b, pairs, gamma, inside):
    """F-hat of equation (1); M-hat and N-hat count ordered pairs, and so does the cut."""
    W = W.toarray()
    outside = ~inside
    cut = 2 * W[np.ix_(inside, outside)].sum()
    N = sum(2.0 for i, j in pairs if inside[i] == inside[j])
    bal = 2 * b[inside].sum() * b[outside].sum() / b.sum()
    return (cut + gamma * N) / bal


def functional(W, b, pairs, gamma, f):
    """F_gamma of section 2.1, over all ordered pairs, with the paper's own S."""
    differences = np.abs(f[:, None] - f[None, :])
    Q = np.zeros(W.shape)
    for i, j in pairs:
        Q[i, j] = Q[j, i] = 1
    numerator = (W.toarray() * differences).sum()
    numerator += gamma * (Q.sum() * (f.max() - f.min()) - (Q * differences).sum())
    return numerator / np.abs(b * (f - (f @ b) / b.sum())).sum()


def all_splits(n):
    """Every partition in two, as rows of booleans."""
    rows = np.array(list(product([False, True], repeat=n - 1)))[1:]
    return np.column_stack((np.zeros(len(rows), bool), rows))


def enumerate_cuts(W, b, splits):
    """Cut over vertex weight, both sides added, of every row."""
    inside = splits.astype(float)
    cut = np.einsum("pi,ij,pj->p", inside, W.toarray(), 1 - inside, optimize=True)
    return cut * (1 / (inside @ b) + 1 / ((1 - inside) @ b))


def keeps(constraints, splits):
    must, cannot = constraints.must_link, constraints.cannot_link
    return (splits[:, must[:, 0]] == splits[:, must[:, 1]]).all(axis=1) & (
        splits[:, cannot[:, 0]] != splits[:, cannot[:, 1]]
    ).all(axis=1)


problems = st.tuples(st.integers(0, 10_000), st.integers(4, 10), st.floats(0, 3))


def random_problem(seed, n):
    rng = np.random.RandomState(seed)
    W = random_graph(rng, n)
    b = rng.uniform(0.2, 3.0, size=n)
    drawn = [tuple(sorted(rng.choice(n, 2, replace=False))) for _ in range(rng.randint(5))]
    return rng, W, b, sorted(set(drawn))


# --- the functional


@settings(max_examples=60, deadline=None)
@given(problems)
def test_the_functional_is_the_set_function_on_indicators(problem):
    # Lemma 2.2, for both extensions of the balance.
    seed, n, gamma = problem
    rng, W, b, pairs = random_problem(seed, n)
    inside = rng.permutation(n) < rng.randint(1, n)
    expected = set_function(W, b, pairs, gamma, inside)
    for balance in ("lovasz", "deviation"):
        cut = penalized(W, b, pairs, gamma, balance)
        assert_allclose(cut.value(inside.astype(float)), expected)
    assert_allclose(functional(W, b, pairs, gamma, inside.astype(float)), expected)


@settings(max_examples=60, deadline=None)
@given(problems)
def test_the_functional_of_vectors(problem):
    seed, n, gamma = problem
    rng, W, b, pairs = random_problem(seed, n)
    f = rng.normal(size=n)
    paper = penalized(W, b, pairs, gamma, "deviation")
    assert_allclose(paper.value(f), functional(W, b, pairs, gamma, f))
    # The Lovasz extension of S is the largest convex one, so its ratio is the smallest.
    assert penalized(W, b, pairs, gamma).value(f) <= paper.value(f) * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(problems)
def test_the_best_threshold_is_found_and_never_above_the_functional(problem):
    # Theorem 2.2: optimal thresholding descends.
    seed, n, gamma = problem
    rng, W, b, pairs = random_problem(seed, n)
    f = np.round(rng.normal(size=n), 1)
    if np.ptp(f) == 0:
        return
    cut = penalized(W, b, pairs, gamma)
    split = cut.threshold(f)
    every = [f > t for t in np.unique(f)[:-1]]
    lowest = min(set_function(W, b, pairs, gamma, inside) for inside in every)
    assert_allclose(split.value, lowest)
    assert_allclose(set_function(W, b, pairs, gamma, split.above), lowest)
    assert split.value <= cut.value(f) * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(problems)
def test_slopes_support_their_functions(problem):
    # g = S(f) - <s, f> = 0 and S(h) >= <s, h> for all h: the definition of a subgradient.
    seed, n, gamma = problem
    rng, W, b, pairs = random_problem(seed, n)
    f = np.round(rng.normal(size=n), 1)
    ties = rng.normal(size=n)
    for balance in ("lovasz", "deviation"):
        cut = penalized(W, b, pairs, 1.0 + gamma, balance)
        s, r = cut.balance_slope(f, ties), cut.pair_slope(f, ties)
        assert_allclose([s.sum(), r.sum()], 0, atol=1e-10)
        heads, tails, penalty = cut.heads, cut.tails, cut.penalty
        assert_allclose(r @ f, penalty @ np.abs(f[heads] - f[tails]), atol=1e-10)
        for h in rng.normal(size=(10, n)):
            assert s @ h <= h @ cut.balance_slope(h, h) + 1e-10
            assert r @ h <= penalty @ np.abs(h[heads] - h[tails]) + 1e-10


# --- the descent


@settings(max_examples=40, deadline=None)
@given(problems)
def test_descent_or_stop(problem):
    # Theorem 3.1, first part: from any partition, strictly lower or the same.
    seed, n, gamma = problem
    rng, W, b, pairs = random_problem(seed, n)
    inside = rng.permutation(n) < rng.randint(1, n)
    before = set_function(W, b, pairs, gamma, inside)
    cut, settings = penalized(W, b, pairs, gamma), Settings(max_iter=4000)
    found = ratio_dca(cut, inside.astype(float), settings, record=Record())
    after = set_function(W, b, pairs, gamma, found.split.above)
    assert_allclose(found.split.value, after)
    assert after < before or (found.n_outer == 1 and after == pytest.approx(before, rel=1e-12))


@settings(max_examples=40, deadline=None)
@given(problems)
def test_descent_stays_consistent_at_the_penalty_of_the_theorem(problem):
    # Theorem 3.1, second part, and Theorem 2.1: gamma above gvol(V) / 4 times the cut.
    seed, n, _ = problem
    rng, W, b, _ = random_problem(seed, n)
    inside = rng.permutation(n) < rng.randint(1, n)
    ups, downs = np.flatnonzero(inside), np.flatnonzero(~inside)
    pairs = [(rng.choice(ups), rng.choice(downs)) for _ in range(3)]
    value = set_function(W, b, pairs, 0.0, inside)
    cut = penalized(W, b, pairs, 1.01 * b.sum() / 4 * value)
    found = ratio_dca(cut, inside.astype(float), Settings(), record=Record())
    above = found.split.above
    assert all(above[i] != above[j] for i, j in pairs)
    assert set_function(W, b, pairs, 0.0, above) <= value * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 12))
def test_contraction_preserves_the_cut(seed, n):
    # Lemma 2.3, and the merging of cannot-link webs for two clusters.
    rng = np.random.RandomState(seed)
    W, known = random_graph(rng, n), consistent_constraints(rng, n)
    groups = certain_groups(known, 2, rng)
    colors = groups.feasible
    problem = build_problem(W, groups)
    matrices = matrices_of(problem)
    z = colors.astype(bool)
    if z.all() or not z.any():
        return
    small = family_of(matrices, "lovasz").at().value(z.astype(float))
    labels = colors[groups.of_sample]
    assert known.n_violated(labels) == 0
    assert_allclose(small, metrics.ncut(W, labels))


# --- against enumeration


@pytest.mark.parametrize("vertex_weights", ["degree", "unit", "given"])
def test_tiny_graphs_are_solved_to_the_optimum(vertex_weights):
    rng = np.random.RandomState(5)
    n_graphs, n_optimal = (100 if vertex_weights == "degree" else 50), 0
    for seed in range(n_graphs):
        n = 6 + seed % 9
        W, known = random_graph(rng, n), consistent_constraints(rng, n)
        given_weights = {"degree": W.sum(axis=1), "unit": np.ones(n)}
        b = given_weights.get(vertex_weights, rng.uniform(0.2, 3.0, size=n))
        splits = all_splits(n)
        feasible = splits[keeps(known, splits)]
        optimum = enumerate_cuts(W, np.asarray(b), feasible).min()
        asked = b if vertex_weights == "given" else vertex_weights
        found = cosc(W, known, 2, vertex_weights=asked, random_state=seed)
        assert found.n_violated == 0
        assert found.objective >= optimum * (1 - 1e-9)
        n_optimal += found.objective <= optimum * (1 + 1e-9)
    assert n_optimal >= 0.98 * n_graphs


def test_the_bare_method_is_optimal_on_most_tiny_graphs():
    rng = np.random.RandomState(6)
    n_optimal = 0
    for seed in range(50):
        n = 6 + seed % 9
        W, known = random_graph(rng, n), consistent_constraints(rng, n)
        splits = all_splits(n)
        b = np.asarray(W.sum(axis=1)).ravel()
        optimum = enumerate_cuts(W, b, splits[keeps(known, splits)]).min()
        found = cosc(W, known, 2, refine=False, random_state=seed)
        assert found.n_violated == 0
        assert found.objective >= optimum * (1 - 1e-9)
        n_optimal += found.objective <= optimum * (1 + 1e-9)
    assert n_optimal >= 0.95 * 50


# --- the authors' own answers


def golden_case(name):
    data, _, pairs = name.partition(" ")
    W = csr_array(load_npz(GOLDEN / "graphs" / f"{data}_W.npz"))
    if pairs == "none":
        return W, Constraints(W.shape[0])
    stored = np.load(GOLDEN / "constraints" / f"{data}_{pairs}.npz")
    return W, Constraints(
        W.shape[0], must_link=stored["must_link"], cannot_link=stored["cannot_link"]
    )


def recorded(pattern):
    """The lowest cut that a program recorded for a case, and whether it violates nothing."""
    found = []
    for path in sorted((GOLDEN / "results").glob(pattern)):
        stored = json.loads(path.read_text())
        n_violated = stored.get("violated_ml", 0) + stored.get("violated_cl", 0)
        found.append((stored["ncut"], n_violated))
    return found


@needs_golden
@pytest.mark.parametrize("data", ["iris2", "breast_cancer", "moons2000", "moons2000h"])
def test_without_constraints_it_is_one_spectral_clustering(data):
    W, known = golden_case(f"{data} none")
    (expected, _), *_ = recorded(f"onespec__{data}_k2_*.json")
    for refine in (True, False):
        found = cosc(W, known, 2, refine=refine, random_state=0)
        assert found.objective <= expected * (1 + 1e-9)
        assert found.gamma == 0.0


TWO = [f"iris2 p{p}_s{s}" for p in (10, 50, 100) for s in (0, 1)] + [
    "breast_cancer p10_s0",
    "breast_cancer p50_s0",
    "breast_cancer p50_s1",
    "breast_cancer p100_s0",
    "breast_cancer p100_s1",
    "moons2000 p50_s0",
    "moons2000h p100_s1",
]


@needs_golden
@pytest.mark.parametrize("name", TWO)
def test_two_clusters_are_as_good_as_the_authors(name):
    W, known = golden_case(name)
    data, _, pairs = name.partition(" ")
    reference = min(ncut for ncut, n_violated in recorded(f"cosc__{data}_{pairs}_k2_*.json"))
    found = cosc(W, known, 2, random_state=0)
    assert found.n_violated == 0
    assert metrics.ncut(W, found.labels) <= reference * (1 + 1e-6)


THREE = [f"{d} p{p}_s{s}" for d in ("iris", "wine") for p in (10, 50, 100) for s in (0, 1)]


@needs_golden
@pytest.mark.parametrize("name", THREE)
def test_three_clusters_violate_nothing_and_cost_no_more(name):
    W, known = golden_case(name)
    data, _, pairs = name.partition(" ")
    others = recorded(f"cosc__{data}_{pairs}_k3_*.json") + recorded(f"sssc__{data}_{pairs}_*.json")
    found = cosc(W, known, 3, random_state=0)
    assert found.n_violated == 0
    for ncut, n_violated in others:
        if n_violated == 0:
            assert metrics.ncut(W, found.labels) <= ncut * (1 + 1e-6)


# --- more than two clusters


@pytest.fixture(scope="module")
def four_blobs():
    X, y = make_blobs(200, centers=4, cluster_std=2.5, random_state=3)
    return Affinity().fit_transform(X), y


def test_the_bare_recursion_lists_what_it_violates(four_blobs):
    W, y = four_blobs
    known = Constraints.sample(y, 150, random_state=0)
    bare = cosc(W, known, 4, refine=False, random_state=0)
    assert bare.n_violated == known.n_violated(bare.labels)
    assert bare.violated == known.violated(bare.labels)
    assert len(bare.violated.must_link) == 0  # contracted
    refined = cosc(W, known, 4, random_state=0)
    assert refined.n_violated == 0
    assert np.unique(refined.labels).size == np.unique(bare.labels).size == 4


def splitting_of(matrices, n_samples, record=None):
    """Splits of a graph into four clusters."""
    problem = SimpleNamespace(n_samples=n_samples, gamma=0.0)
    cuts = SimpleNamespace(problem=problem, k=4, settings=Settings(), record=record)
    return recursion.Splitting(cuts, matrices, None if matrices is None else matrices.volume, None)


def test_allowed_violations_follow_the_uniform_model():
    # Section 5: (k-1)(k-2)/2 of k(k-1)/2 pairs of classes stay inside when one class is parted.
    members = np.arange(200)
    splitting = splitting_of(None, np.ones(200, np.int64))
    assert splitting._allowed(members, 60) == 60 * 3 // 6
    assert splitting._allowed(members[:150], 60) == 60 * 1 // 3  # three classes are left
    assert splitting._allowed(members[:100], 60) == 0


def test_repair_parts_every_pair_and_leaves_the_rest(four_blobs):
    W, y = four_blobs
    known = Constraints.sample(y, 80, random_state=1)
    rng = np.random.RandomState(0)
    groups = certain_groups(known, 4, rng)
    cuts = recursion.Recursion.on(W, groups, k=4, mass=None, settings=Settings(), record=Record())
    z = recursion.recursive_partition(cuts, np.random.RandomState(1))
    repaired = recursion.repair(cuts, z, rng)
    assert known.n_violated(repaired[groups.of_sample]) == 0
    assert (repaired == z).mean() > 0.8


# --- soft


def test_the_trade_off_goes_from_the_free_cut_to_all_constraints():
    X, y = make_moons(200, noise=0.2, random_state=1)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 60, random_state=1)
    found = cosc(W, known, 2, violations="auto", random_state=0)
    gammas, cuts, violated = zip(*found.path, strict=True)
    free = cosc(W, Constraints(200), 2, random_state=0)
    assert gammas[0] == 0.0
    assert_allclose(cuts[0], free.objective)
    assert (np.diff(gammas) > 0).all()
    assert violated[0] > violated[-1]
    assert found.n_violated == known.n_violated(found.labels)
    # At its price no other point of the path is better.
    b = np.asarray(W.sum(axis=1)).ravel()

    def price(labels):
        sides = np.bincount(labels, weights=b)
        return metrics.ncut(W, labels) + found.gamma * known.n_violated(labels) * (1 / sides).sum()

    hard = cosc(W, known, 2, random_state=0)
    assert price(found.labels) <= min(price(free.labels), price(hard.labels)) * (1 + 1e-9)


@pytest.mark.parametrize("allowed", [0, 2, 5])
def test_a_budget_of_violations_is_kept(allowed):
    X, y = make_moons(150, noise=0.25, random_state=2)
    known = Constraints.sample(y, 50, random_state=2)
    W = Affinity().fit_transform(X)
    found = cosc(W, known, 2, violations=allowed, random_state=0)
    assert found.n_violated <= allowed


def test_contradictions_raise_in_hard_mode_and_are_answered_in_soft_mode():
    X, _ = make_blobs(40, centers=2, random_state=0)
    odd_ring = Constraints(40, cannot_link=[(0, 1), (1, 2), (2, 0)])
    with pytest.raises(ConflictError, match=r"0.*1.*2"):
        COSC(2, random_state=0).fit(X, constraints=odd_ring)
    soft = COSC(2, violations="auto", random_state=0).fit(X, constraints=odd_ring)
    assert soft.result_.n_violated >= 1
    assert soft.result_.violated == odd_ring.violated(soft.labels_)
    chain = Constraints(40, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    with pytest.raises(ConflictError, match="0 - 1 - 2"):
        COSC(2, random_state=0).fit(X, constraints=chain)
    assert COSC(2, violations=1, random_state=0).fit(X, constraints=chain).result_.n_violated == 1


def test_a_clique_of_one_more_than_k():
    X, _ = make_blobs(40, centers=3, random_state=0)
    clique = Constraints(40, cannot_link=[(i, j) for i in range(4) for j in range(i)])
    with pytest.raises(ConflictError) as caught:
        COSC(3, random_state=0).fit(X, constraints=clique)
    assert set(caught.value.cannot_link) == set(range(6))
    soft = COSC(3, violations="auto", random_state=0).fit(X, constraints=clique)
    assert soft.result_.n_violated >= 1


def test_beliefs_are_traded_while_certain_pairs_hold():
    X, y = make_blobs(60, centers=[(0, 0), (8, 0)], random_state=0)
    W = Affinity().fit_transform(X)
    same = np.flatnonzero(y == 0)
    weak = Constraints(60, cannot_link=[same[:2]], cannot_link_belief=[1e-3])
    found = cosc(W, weak, 2, random_state=0)
    assert_allclose(adjusted_rand_score(y, found.labels), 1.0)  # not worth a cut
    assert found.n_violated == 1
    certain = Constraints(60, cannot_link=[same[:2]])
    assert cosc(W, certain, 2, random_state=0).n_violated == 0


def test_labels_in_both_modes():
    X, y = make_moons(120, noise=0.1, random_state=0)
    partial = np.full(120, -1)
    partial[::6] = y[::6]
    known = Constraints.from_labels(partial)
    W = Affinity().fit_transform(X)
    hard = cosc(W, known, 2, random_state=0)
    assert hard.n_violated == 0
    wrong = partial.copy()
    wrong[0] = 1 - wrong[0]
    soft = cosc(W, Constraints.from_labels(wrong), 2, violations="auto", random_state=0)
    assert adjusted_rand_score(y, soft.labels) > 0.9
    with pytest.raises(ConflictError, match="labels"):
        COSC(2, violations=1).fit(X, constraints=Constraints.from_labels(np.arange(120) % 3))


# --- behaviour


def test_same_seed_same_answer_on_any_number_of_threads():
    X, y = make_moons(200, noise=0.25, random_state=0)
    W = Affinity().fit_transform(X)
    for k in (2, 3):
        known = Constraints.sample(y if k == 2 else (y + (X[:, 0] > 1)), 40, random_state=0)
        one = cosc(W, known, k, random_state=7)
        two = cosc(W, known, k, random_state=7, n_jobs=2)
        assert_array_equal(one.labels, two.labels)
        assert one.path == two.path


@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_the_scale_of_the_graph_does_not_matter(factor):
    X, y = make_moons(100, noise=0.25, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 30, random_state=0)
    plain, scaled = (cosc(A, known, 2, random_state=0) for A in (W, csr_array(W * factor)))
    assert_array_equal(plain.labels, scaled.labels)
    assert_allclose(scaled.gamma, plain.gamma * factor, rtol=1e-6)
    ratio = cosc(csr_array(W * factor), known, 2, vertex_weights="unit", random_state=0)
    assert_allclose(ratio.objective, metrics.rcut(W, ratio.labels) * factor, rtol=1e-9)


def test_the_certificate():
    X, y = make_moons(150, noise=0.2, random_state=0)
    known = Constraints.sample(y, 40, random_state=0)
    found = COSC(2, random_state=0).fit(X, constraints=known).result_
    assert found.converged
    assert 0 <= found.duality_gap <= 1e-5
    assert found.n_inner > found.n_iter > 0
    assert found.path[0].gamma == 0.0
    assert found.path[-1].gamma == found.gamma


def test_few_iterations_are_not_called_converged():
    X, y = make_moons(300, noise=0.2, random_state=0)
    known = Constraints.sample(y, 40, random_state=0)
    found = COSC(2, random_state=0, max_iter=2, tol=1e-12).fit(X, constraints=known).result_
    assert not found.converged
    assert found.n_violated == 0


def test_an_interrupt_returns_the_best_so_far(monkeypatch):
    X, y = make_moons(150, noise=0.2, random_state=0)
    known = Constraints.sample(y, 40, random_state=0)
    calls = {"n": 0}
    track = bisection.Bisection._track

    def interrupted(self, *arguments):
        calls["n"] += 1
        if calls["n"] == 3:
            raise KeyboardInterrupt
        return track(self, *arguments)

    monkeypatch.setattr(bisection.Bisection, "_track", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = COSC(2, random_state=0).fit(X, constraints=known)
    assert model.result_.n_violated == 0
    assert not model.result_.converged


def test_progress_is_printed_on_demand(capsys):
    X, y = make_moons(60, noise=0.2, random_state=0)
    known = Constraints.sample(y, 10, random_state=0)
    COSC(2, random_state=0, verbose=1).fit(X, constraints=known)
    assert "[COSC]   7% start 1: best" in capsys.readouterr().out
    COSC(2, random_state=0).fit(X, constraints=known)
    assert capsys.readouterr().out == ""


def test_bad_vertex_weights_are_refused():
    W = random_graph(np.random.RandomState(0), 6)
    with pytest.raises(ValueError, match=r"shape \(3,\), but there are 6 samples"):
        cosc(W, Constraints(6), 2, vertex_weights=np.ones(3))
    with pytest.raises(ValueError, match=r"vertex_weights\[2\] is -1"):
        cosc(W, Constraints(6), 2, vertex_weights=np.array([1, 1, -1, 1, 1, 1.0]))
    with pytest.raises(ValueError, match="refine=True"):
        COSC(3, violations=2, refine=False).fit(np.eye(6))


@pytest.mark.parametrize("k", [2, 3])
def test_isolated_samples_and_separate_pieces(k):
    blocks = np.kron(np.eye(3), np.ones((4, 4))) - np.eye(12)
    W = np.zeros((14, 14))
    W[:12, :12] = blocks
    known = Constraints(14, cannot_link=[(0, 1), (12, 13)])
    found = cosc(csr_array(W), known, k, random_state=0)
    assert found.n_violated == 0
    assert np.unique(found.labels).size == k
    empty = cosc(csr_array((5, 5)), Constraints(5, cannot_link=[(0, 3)]), 2, random_state=0)
    assert empty.labels[0] != empty.labels[3]


def test_it_is_never_worse_than_the_constrained_cut_on_two_clusters():
    X, y = make_moons(300, noise=0.3, random_state=4)
    W = Affinity().fit_transform(X)
    for seed in range(3):
        known = Constraints.sample(y, 60, random_state=seed)
        ours = cosc(W, known, 2, random_state=0).objective
        other = ConstrainedCut(2, affinity="precomputed", random_state=0).fit(W, constraints=known)
        assert ours <= other.result_.objective * 1.02


def test_large_graphs_are_renumbered_without_changing_the_answer(monkeypatch):
    X, y = make_moons(200, noise=0.25, random_state=0)
    W = Affinity().fit_transform(X)
    for k in (2, 3):
        known = Constraints.sample(y if k == 2 else (y + (X[:, 0] > 1)), 40, random_state=0)
        plain = cosc(W, known, k, random_state=1)
        with monkeypatch.context() as patch:
            patch.setattr(bisection, "REORDERED_FROM", 0)
            patch.setattr(bisection, "FLOAT32_FROM", 0)
            patch.setattr(fista, "PARALLEL_FROM", 100)
            renumbered = cosc(W, known, k, random_state=1)
            again = cosc(W, known, k, random_state=1, n_jobs=2)
        assert renumbered.n_violated == 0
        assert_allclose(renumbered.objective, plain.objective, rtol=1e-6)
        assert_array_equal(renumbered.labels, again.labels)


# --- numbers of very different size


def two_groups(seed, separation):
    rng = np.random.RandomState(seed)
    X = np.concatenate(
        (rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + np.array([separation, 0]))
    )
    K = np.exp(-3.0 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(K, 0)
    return csr_array(K)


@pytest.mark.parametrize("seed", range(3))
def test_cuts_far_below_the_weights_around_them(seed):
    # Thresholds are summed up along the whole graph; their rounding must not pass for descent.
    W = two_groups(seed, 7.0)
    known = Constraints(60, cannot_link=[(0, 40), (3, 50)])
    found = cosc(W, known, 2, random_state=0)
    assert_allclose(found.objective, metrics.ncut(W, found.labels))
    other = ConstrainedCut(2, affinity="precomputed", random_state=0).fit(W, constraints=known)
    assert found.objective <= other.result_.objective * (1 + 1e-9)
    assert min(point.objective for point in found.path) >= found.objective * (1 - 1e-9) or any(
        point.n_violated for point in found.path
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 9), st.sampled_from([3, 12, 20]))
def test_values_are_exact_and_sides_alike(seed, n, decades):
    rng = np.random.RandomState(seed)
    W = random_graph(rng, n)
    W.data = 10.0 ** rng.uniform(-decades, 0, size=W.nnz)
    W = csr_array(W.maximum(W.T))
    b = np.asarray(W.sum(axis=1)).ravel()
    cut = penalized(W, b)
    f = rng.normal(size=n)
    assert_allclose(cut.value(-f), cut.value(f), rtol=1e-9)
    splits = [f > t for t in np.sort(f)[:-1]]
    dense = W.toarray()
    values = [dense[np.ix_(s, ~s)].sum() * (1 / b[s].sum() + 1 / b[~s].sum()) for s in splits]
    assert_allclose(cut.threshold(f).value, min(values), rtol=1e-9)
    assert_allclose(cut.threshold(-f).value, min(values), rtol=1e-9)


@pytest.mark.parametrize("weak", [1e-12, 1e-200, 1e-300])
def test_cliques_that_hardly_touch(weak):
    clique = np.ones((10, 10)) - np.eye(10)
    W = np.kron(np.eye(2), clique)
    W[0, 10] = W[10, 0] = weak
    known = Constraints(20, cannot_link=[(1, 12)])
    for violations in (None, "auto"):
        found = cosc(csr_array(W), known, 2, violations=violations, random_state=0)
        assert_array_equal(found.labels, np.repeat([0, 1], 10))


def test_uneven_weights():
    rng = np.random.RandomState(0)
    W = random_graph(rng, 12)
    for k in (2, 3):
        b = 10.0 ** np.linspace(-5, 5, 12)
        found = cosc(W, Constraints(12, cannot_link=[(0, 1)]), k, vertex_weights=b, random_state=0)
        assert found.labels[0] != found.labels[1]
    with pytest.raises(ValueError, match="within a factor of 1e"):
        cosc(W, Constraints(12), 2, vertex_weights=10.0 ** np.linspace(-8, 8, 12))
    wild = np.triu(10.0 ** np.random.RandomState(3).uniform(-300, 300, (12, 12)), 1)
    for k in (2, 3):
        for seed in (0, 1):
            known = Constraints(12, cannot_link=[(0, 1), (1, 2)])
            found = cosc(csr_array(wild + wild.T), known, k, random_state=seed)
            assert found.n_violated == 0


def test_beliefs_that_add_up_stay_beliefs():
    rng = np.random.RandomState(1)
    A = np.triu(rng.uniform(0.1, 1, (10, 10)), 1)
    four = [(0, 2), (0, 3), (1, 2), (1, 3)]
    known = Constraints(
        10,
        must_link=[(0, 1), (2, 3)],
        cannot_link=[*four, (2, 4), (0, 5)],
        cannot_link_belief=[0.5] * 4 + [1, 1],
    )
    found = cosc(csr_array(A + A.T), known, 2, random_state=0)
    assert found.labels[2] != found.labels[4]
    assert found.labels[0] != found.labels[5]


@pytest.mark.parametrize("k", [2, 3])
def test_uncertain_must_links_pull(k):
    X, y = make_blobs(60, centers=[(0, 0), (6, 0), (3, 6)][:k], random_state=0)
    W = Affinity().fit_transform(X)
    lone = int(np.flatnonzero(y == 0)[0])
    partners = np.flatnonzero(y == 1)[:15]
    known = Constraints(
        60, must_link=[(lone, int(p)) for p in partners], must_link_belief=np.full(15, 0.9)
    )
    found = cosc(W, known, k, random_state=0)
    assert found.labels[lone] == found.labels[partners[0]]
    weak = Constraints(60, must_link=[(lone, int(partners[0]))], must_link_belief=[0.01])
    assert cosc(W, weak, k, random_state=0).n_violated == 1


# --- interrupts at any moment


@pytest.mark.parametrize("mode", [None, "auto"])
@pytest.mark.parametrize("where", ["_best_of", "_restarted", "_certified"])
def test_an_interrupt_never_loses_the_best(monkeypatch, where, mode):
    X, y = make_moons(120, noise=0.25, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 40, random_state=0)
    whole = cosc(W, known, 2, violations=mode, random_state=0)
    spoiled = {"left": 1 if mode is None else 3}
    step = getattr(bisection.Bisection, where)

    def interrupted(self, *arguments):
        spoiled["left"] -= 1
        if spoiled["left"] == 0:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(bisection.Bisection, where, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = cosc(W, known, 2, violations=mode, random_state=0)
    assert not found.converged
    if mode is None:
        assert found.n_violated == 0
        assert found.objective <= 1.3 * whole.objective
    else:
        assert found.n_violated <= whole.n_violated + 2


def test_an_interrupted_search_keeps_the_repaired_splits(monkeypatch, four_blobs):
    W, y = four_blobs
    known = Constraints.sample(y, 60, random_state=0)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("linkwise.search.cut.embed", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = cosc(W, known, 4, random_state=0)
    assert found.n_violated == 0
    assert found.objective < 1.0  # the bare colouring costs about 3


# --- what is given is left alone


def test_the_graph_is_not_changed_and_loops_do_not_count():
    rng = np.random.RandomState(0)
    W = random_graph(rng, 20)
    shuffled = csr_array(W[:, ::-1][:, ::-1])
    looped = csr_array(shuffled + diags_array(np.full(20, 5.0)))
    before = looped.copy()
    known = Constraints(20, cannot_link=[(0, 1)])
    with_loops, without = (cosc(A, known, 2, random_state=0) for A in (looped, W))
    assert_allclose(with_loops.objective, without.objective)
    assert_array_equal(before.indices, looped.indices)
    assert_array_equal(before.data, looped.data)


def test_stored_zeros_and_no_edges_in_every_mode():
    W = random_graph(np.random.RandomState(0), 12)
    W.data[:] = 0
    known = Constraints(12, cannot_link=[(0, 1)])
    for violations in (None, 0, "auto"):
        found = cosc(W, known, 2, violations=violations, random_state=0)
        assert np.unique(found.labels).size == 2
    path = csr_array(np.array([[0, 1.0, 0], [1, 0, 0], [0, 0, 0]]))
    assert np.unique(cosc(path, Constraints(3), 3, refine=False).labels).size == 3
    assert np.unique(cosc(csr_array((5, 5)), Constraints(5), 3, refine=False).labels).size == 3


def test_a_side_without_any_edge():
    # One group has all the weight, so every feasible cut is infinite: feasible all the same.
    W = np.zeros((6, 6))
    W[:4, :4] = 1 - np.eye(4)
    known = Constraints(6, must_link=[(0, 1), (1, 2), (2, 3)], cannot_link=[(0, 4), (4, 3)])
    for refine in (True, False):
        found = cosc(csr_array(W), known, 2, refine=refine, random_state=0)
        assert found.n_violated == 0


def test_disconnected_cliques_are_certified():
    W = csr_array(np.kron(np.eye(3), np.ones((4, 4)) - np.eye(4)))
    found = cosc(W, Constraints(12), 3, random_state=0)
    assert found.objective == 0
    assert found.converged
    assert found.duality_gap <= 1e-6


def test_filters_of_warnings_survive_threads():
    import warnings

    before = list(warnings.filters)
    X, y = make_moons(100, noise=0.2, random_state=0)
    for k in (2, 3):
        known = Constraints.sample(y, 10, random_state=0)
        COSC(k, random_state=0, n_jobs=4).fit(X, constraints=known)
    assert list(warnings.filters) == before


def test_splits_keep_their_allowance(four_blobs):
    W, y = four_blobs
    known = Constraints.sample(y, 150, random_state=0)
    seen = []
    follow = bisection.follow

    def watched(family, f, *arguments, allowed=0, **others):
        track = follow(family, f, *arguments, allowed=allowed, **others)
        if any(point.n_violated <= allowed for point in track.path):
            seen.append(family.n_violated(track.split.above) <= allowed)
        return track

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recursion, "follow", watched)
        for seed in range(3):
            cosc(W, known, 4, random_state=seed)
    assert len(seen) > 5
    assert all(seen)


def test_splits_report_their_penalties(four_blobs):
    W, y = four_blobs
    known = Constraints.sample(y, 60, random_state=0)
    for refine in (True, False):
        path = cosc(W, known, 4, refine=refine, random_state=0).path
        assert len(path) >= 3  # splits
        assert path[0].gamma == 0.0
        assert min(point.objective for point in path) > 0


def test_steps_are_reported_now_and_then(monkeypatch, capsys):
    X, y = make_moons(60, noise=0.2, random_state=0)
    known = Constraints.sample(y, 10, random_state=0)
    monkeypatch.setattr(one_spectral, "EVERY", 0.0)
    COSC(2, random_state=0, verbose=1).fit(X, constraints=known)
    assert "[COSC]   0% step 1, " in capsys.readouterr().out


def test_a_descent_may_end_at_small_steps(noisy_moons):
    W, _ = noisy_moons
    cut = penalized(W.toarray(), np.asarray(W.sum(axis=1)).ravel())
    f = np.random.RandomState(2).normal(size=W.shape[0])
    values = []

    class Watching(Record):
        def step(self, n_outer, n_iter, value):
            values.append(value)
            return False

    whole = ratio_dca(cut, f, Settings(), record=Watching())
    steps = -np.diff(values) / values[:-1]
    least = 0.005
    early = ratio_dca(cut, f, Settings(least=least), record=Record())
    assert early.n_outer == 1 + np.flatnonzero(steps <= least)[0] < whole.n_outer
    assert early.n_iter < whole.n_iter
    assert whole.split.value <= early.split.value <= values[early.n_outer - 1]
    assert not early.converged


# --- coarse levels of large graphs


@pytest.fixture
def made_large(monkeypatch):
    """Every graph above 150 vertices counts as large."""
    monkeypatch.setattr(cut_search, "COARSE_FROM", 150)
    monkeypatch.setattr(cut_search, "COARSE", 60)


@pytest.fixture(scope="module")
def noisy_moons():
    X, y = make_moons(900, noise=0.2, random_state=0)
    return Affinity().fit_transform(X), y


def search_of(W, known, k):
    return CutObjective.on(W, certain_groups(known, k, np.random.RandomState(0)), k=k)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.usefixtures("made_large")
def test_a_coarse_level_has_the_same_cuts_and_constraints(noisy_moons, k):
    W, y = noisy_moons
    cuts = search_of(W, Constraints.sample(y, 60, random_state=0), k)
    rng = np.random.RandomState(0)
    coarse, levels = cuts.coarse_level(rng)
    small = coarse.problem
    n_tied = np.count_nonzero(np.diff(cuts.problem.apart_indptr))
    assert small.n_vertices <= 2 * (60 + n_tied)
    assert np.count_nonzero(np.diff(small.apart_indptr)) == n_tied
    assert small.apart_indices.size == cuts.problem.apart_indices.size
    z = coarse.color(rng.uniform(size=(small.n_vertices, k)), rng)
    up = levels.up(z)
    refined = cut_search.refine_up(levels, z, rng, k=k, effort=cuts.effort)
    assert_allclose(coarse.value(z), cuts.value(up))
    assert_array_equal(levels.down(up), z)
    heads = np.repeat(np.arange(up.size), np.diff(cuts.problem.apart_indptr))
    for partition in (up, refined):
        assert (partition[heads] != partition[cuts.problem.apart_indices]).all()
    assert cuts.value(refined) <= cuts.value(up)


@pytest.mark.usefixtures("made_large")
def test_a_coarse_level_with_many_edges_is_shrunk_further(monkeypatch, noisy_moons):
    W, y = noisy_moons
    cuts = search_of(W, Constraints.sample(y, 20, random_state=0), 3)
    n_tied = np.count_nonzero(np.diff(cuts.problem.apart_indptr))
    first = [(np.arange(cuts.problem.n_vertices) % 2).astype(np.int32)]
    sizes = {}
    for n_edges, least in ((10**6, 10), (40, 10), (40, 30)):
        monkeypatch.setattr(cut_search, "EDGES", n_edges)
        monkeypatch.setattr(cut_search, "LEAST", least)
        rng = np.random.RandomState(0)
        coarse, levels = cuts.coarse_level(rng, first)
        small = coarse.problem
        sizes[n_edges, least] = small.n_vertices
        assert np.count_nonzero(np.diff(small.apart_indptr)) == n_tied
        assert_array_equal(levels.up(levels.down(first[0])), first[0])
        z = coarse.color(rng.uniform(size=(small.n_vertices, 3)), rng)
        assert_allclose(coarse.value(z), cuts.value(levels.up(z)))
    assert sizes[40, 10] < sizes[40, 30] < sizes[10**6, 10]


@pytest.mark.usefixtures("made_large")
def test_a_coarse_level_keeps_given_partitions_apart(noisy_moons):
    W, y = noisy_moons
    cuts = search_of(W, Constraints.sample(y, 20, random_state=0), 2)
    first = [np.random.RandomState(s).randint(2, size=cuts.problem.n_vertices) for s in (0, 1)]
    first = [z.astype(np.int32) for z in first]
    _, levels = cuts.coarse_level(np.random.RandomState(0), first)
    for z in first:
        assert_array_equal(levels.up(levels.down(z)), z)


def test_small_or_tied_graphs_have_no_coarse_level(monkeypatch, noisy_moons):
    W, y = noisy_moons
    cuts = search_of(W, Constraints.sample(y, 20, random_state=0), 2)
    assert cuts.coarse_level(np.random.RandomState(0)) is None
    monkeypatch.setattr(cut_search, "COARSE_FROM", 150)
    everyone = cuts.problem.n_vertices
    pairs = np.arange(everyone - everyone % 2).reshape(-1, 2)
    alternating = Constraints(W.shape[0], cannot_link=pairs)
    assert search_of(W, alternating, 3).coarse_level(np.random.RandomState(0)) is None


@pytest.mark.parametrize("n_pairs", [0, 30, 120])
def test_two_clusters_by_a_coarse_level_are_as_good(noisy_moons, made_large, n_pairs):
    W, y = noisy_moons
    known = Constraints.sample(y, n_pairs, random_state=0)
    found = cosc(W, known, 2, random_state=0)
    assert found.n_violated == 0
    assert found.converged
    assert found.duality_gap <= 1e-6
    again = cosc(W, known, 2, random_state=0, n_jobs=2)
    assert_array_equal(found.labels, again.labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut_search, "COARSE_FROM", 10**9)
        whole = cosc(W, known, 2, random_state=0)
    assert found.objective <= 1.005 * whole.objective


@pytest.mark.usefixtures("made_large")
def test_restarts_disturb_a_coarse_level_and_never_the_graph(monkeypatch, noisy_moons):
    W, y = noisy_moons
    known = Constraints.sample(y, 30, random_state=0)
    record = Record()
    objective = bisection.Bisection.on(
        W,
        certain_groups(known, 2, np.random.RandomState(0)),
        mass=None,
        settings=Settings(),
        record=record,
    )
    cuts = objective.cuts
    restarted, sizes = bisection.Bisection._restarted, []

    def counted(self, z, *arguments):
        sizes.append(z.size)
        return restarted(self, z, *arguments)

    monkeypatch.setattr(bisection.Bisection, "_restarted", counted)
    rng = np.random.RandomState(0)
    poor = cuts.color.feasible
    z = objective._restarted_coarse(poor, Context(rng))
    assert objective.value(z) < 0.5 * objective.value(poor)
    heads = np.repeat(np.arange(z.size), np.diff(cuts.problem.apart_indptr))
    assert (z[heads] != z[cuts.problem.apart_indices]).all()
    assert record.n_iter > 0
    again = objective._restarted_coarse(z, Context(rng))
    assert objective.value(again) <= objective.value(z)
    objective.search(Context(rng))
    assert max(sizes) < 0.5 * z.size


@pytest.mark.usefixtures("made_large")
def test_more_clusters_by_a_coarse_level():
    X, y = make_blobs(600, centers=5, cluster_std=1.5, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 80, random_state=0)
    found = cosc(W, known, 5, random_state=0)
    assert found.n_violated == 0
    assert (
        found.objective
        <= 1.01
        * ConstrainedCut(5, affinity="precomputed", random_state=0)
        .fit(W, constraints=known)
        .result_.objective
    )
    assert found.path


@pytest.mark.usefixtures("made_large")
def test_on_a_coarse_level_only_the_best_start_of_a_split_is_solved_to_the_end(monkeypatch):
    X, y = make_blobs(600, centers=5, cluster_std=1.5, random_state=0)
    W = Affinity().fit_transform(X)
    patience = []

    def counted(cut, f, settings, **more):
        patience.append((f.size, settings.max_iter, settings.least))
        return ratio_dca(cut, f, settings, **more)

    monkeypatch.setattr(bisection, "ratio_dca", counted)
    monkeypatch.setattr(recursion, "ratio_dca", counted)
    cosc(W, Constraints.sample(y, 80, random_state=0), 5, random_state=0)
    whole = [size for size, n, _ in patience if n == 800]
    rough = [size for size, n, least in patience if n == 200 and least == 1e-4]
    assert len(whole) + len(rough) == len(patience)
    assert set(whole) == set(rough)
    assert len(rough) >= 2 * len(whole)


def test_a_split_that_is_continued_is_never_worse(four_blobs):
    W, y = four_blobs
    cuts = search_of(W, Constraints.sample(y, 100, random_state=0), 4)
    matrices = matrices_of(cuts.problem)
    family = family_of(matrices, "lovasz")
    record = Record()
    splitting = splitting_of(matrices, cuts.problem.n_samples, record)
    for seed in range(3):
        f = np.random.RandomState(seed).normal(size=matrices.volume.size)
        hasty = Settings().rough()._replace(max_iter=10)
        track = bisection.follow(family, f, hasty, record=record, allowed=10, or_nearest=True)
        longer = splitting._continued(family, track, 0.0)
        assert longer.split.value <= track.split.value
        above = longer.split.above
        assert family.n_violated(above) <= family.n_violated(track.split.above)
        assert_allclose(longer.split.value, family.at().value(above.astype(float)))
        assert longer.last.converged


@pytest.mark.usefixtures("made_large")
def test_soft_constraints_by_a_coarse_level(noisy_moons):
    W, y = noisy_moons
    known = Constraints.sample(y, 60, random_state=0)
    assert cosc(W, known, 2, violations=3, random_state=0).n_violated <= 3
    ring = Constraints(W.shape[0], cannot_link=[(0, 1), (1, 2), (0, 2)])
    assert cosc(W, ring, 2, violations="auto", random_state=0).n_violated >= 1


@pytest.mark.parametrize("where", ["_track", "_refined_up", "_restarted_coarse", "_certified"])
@pytest.mark.usefixtures("made_large")
def test_an_interrupt_of_a_coarse_search_loses_nothing(monkeypatch, noisy_moons, where):
    W, y = noisy_moons
    known = Constraints.sample(y, 60, random_state=0)
    whole = cosc(W, known, 2, random_state=0)
    step = getattr(bisection.Bisection, where)
    calls = {"n": 0}

    def interrupted(self, *arguments):
        calls["n"] += 1
        if calls["n"] == 2 or where != "_track":
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(bisection.Bisection, where, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = cosc(W, known, 2, random_state=0)
    assert found.n_violated == 0
    assert not found.converged
    assert found.objective <= 3 * whole.objective


def test_a_split_that_leaves_a_side_without_volume_has_a_finite_penalty():
    W = np.zeros((5, 5))
    W[1, 3] = W[3, 1] = 1.0
    known = Constraints(5, cannot_link=[(0, 2), (0, 3), (1, 3)], labels=[-1, -1, 0, -1, 2])
    with quiet(DisconnectedGraphWarning):
        labels = COSC(4, affinity="precomputed", random_state=388).fit(W, constraints=known).labels_
    assert known.n_violated(labels) == 0
