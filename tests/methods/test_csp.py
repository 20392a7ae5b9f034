"""CSP: Wang & Davidson 2010, and the K-way form of Wang, Qian & Davidson 2014."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eig
from scipy.sparse import csr_array, load_npz
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Constraints, NCut
from linkwise.exceptions import TooLargeError
from linkwise.methods.csp import (
    CSP,
    MAX_DENSE,
    _Denominator,
    _Difference,
    _lowest_ratio,
    _Numerator,
    _ShiftedInverse,
    attainable,
    count_feasible,
    csp,
    feasible_vectors,
    pencil,
    reachable_share,
    threshold,
)

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden"
PAPER = {"satisfaction": 0.5, "orthogonal": False, "rows": "raw"}


def golden_case(data, pairs):
    if not GOLDEN.is_dir():
        pytest.skip(f"the golden graphs are not at {GOLDEN}")
    W = csr_array(load_npz(GOLDEN / "graphs" / f"{data}_W.npz"))
    with np.load(GOLDEN / "constraints" / f"{data}_{pairs}.npz") as stored:
        known = Constraints(W.shape[0], stored["must_link"], stored["cannot_link"])
    with np.load(GOLDEN / "graphs" / f"{data}_data.npz") as stored:
        return W, known, stored["y"]


def paper_matrices(W, constraints):
    """Return L_bar, Q_bar and the degrees, dense, by the definitions of the paper."""
    W = W if isinstance(W, np.ndarray) else W.toarray()
    d = W.sum(axis=1)
    root = np.diag(1 / np.sqrt(d))
    Q = np.zeros_like(W)
    for pairs, beliefs, sign in (
        (constraints.must_link, constraints.must_link_belief, 1),
        (constraints.cannot_link, constraints.cannot_link_belief, -1),
    ):
        for (i, j), belief in zip(pairs, beliefs, strict=True):
            Q[i, j] += sign * belief
            Q[j, i] += sign * belief
    return np.eye(len(d)) - root @ W @ root, root @ Q @ root, d


def algorithm_of_the_paper(W, constraints, beta):
    """Solve the indefinite pencil as the authors' program does; return feasible unit vectors."""
    L, Q, _ = paper_matrices(W, constraints)
    values, vectors = eig(L, Q - beta * np.eye(len(L)))
    real = np.isfinite(values) & (np.abs(values.imag) < 1e-9 * np.abs(values))
    F = vectors[:, real].real
    F /= np.linalg.norm(F, axis=0)
    values = values[real].real
    costs = (F * (L @ F)).sum(axis=0)
    keep = (values > 0) & (costs > 1e-10)
    return values[keep], F[:, keep], costs[keep]


def cosine(a, b):
    return abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)


def small_case(seed, n=40, k=2, n_pairs=25):
    X, y = make_blobs(n, centers=k, cluster_std=4.0, random_state=seed)
    return Affinity(6).fit_transform(X), Constraints.sample(y, n_pairs, random_state=seed), y


# --- the paper's formulas


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_two_way_algorithm_step_by_step(seed, solver):
    W, known, _ = small_case(seed)
    L, Q, d = paper_matrices(W, known)
    beta = 0.5 * np.linalg.eigvalsh(Q)[-1]
    values, F, costs = algorithm_of_the_paper(W, known, beta)
    best = costs.argmin()
    result = csp(W, known, 2, **PAPER, solver=solver, random_state=0)
    f = np.sqrt(d) * result.embedding[:, 0]
    f /= np.linalg.norm(f)
    assert cosine(f, F[:, best]) == pytest.approx(1, abs=1e-8)
    assert f @ Q @ f > beta
    assert f @ L @ f == pytest.approx(costs[best], rel=1e-6)
    # The degrees are counted in units of their mean, and Q with them.
    assert result.eigenvalues[0] == pytest.approx(values[best] / d.mean(), rel=1e-6)
    assert result.satisfaction == pytest.approx(0.5)
    assert result.n_feasible == len(values)
    side = f >= 0
    assert len(set(zip(side, result.labels, strict=True))) == 2


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_k_way_takes_the_cheapest_and_weighs_them(solver):
    W, known, _ = small_case(1, n=60, k=3, n_pairs=60)
    L, Q, d = paper_matrices(W, known)
    beta = 0.4 * np.linalg.eigvalsh(Q)[-1]
    _, F, costs = algorithm_of_the_paper(W, known, beta)
    order = np.argsort(costs)[:2]
    V = F[:, order]
    U = np.diag(1 / np.sqrt(d)) @ V @ (np.eye(2) - V.T @ L @ V)
    found = csp(
        W, known, 3, satisfaction=0.4, orthogonal=False, rows="raw", solver=solver, random_state=0
    )
    for column in range(2):
        assert cosine(U[:, column], found.embedding[:, column]) == pytest.approx(1, abs=1e-7)
    scale = np.linalg.norm(found.embedding, axis=0) / np.linalg.norm(U, axis=0)
    assert_allclose(scale, scale[0], rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_solution_is_the_best_of_its_satisfaction(seed):
    # min f'Lf with f'Qf >= q_1, f'f = 1, f orthogonal to D^1/2 1: a certificate by duality.
    W, known, _ = small_case(seed)
    L, Q, d = paper_matrices(W, known)
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=True)
    beta = 0.3 * attainable(P, 1, np.random.RandomState(0))[0]
    found = feasible_vectors(P, beta)
    f, lam = found.vectors[:, 0], 1 / found.mu[0]
    t = np.sqrt(d / d.sum())
    Q = d.mean() * Q
    assert abs(f @ t) < 1e-12
    off = np.eye(len(d)) - np.outer(t, t)
    dual = off @ (L - lam * (Q - beta * np.eye(len(d)))) @ off
    assert np.linalg.eigvalsh(dual)[0] > -1e-10
    assert_allclose(dual @ f, 0, atol=1e-10)
    assert lam > 0


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("share", [0.7, 0.3, 0.05, -0.2])
def test_the_number_of_solutions_follows_from_inertia(orthogonal, share):
    for seed in range(4):
        W, known, _ = small_case(seed)
        P = pencil(W, csr_array(known.to_matrix()), orthogonal=orthogonal)
        values = attainable(P, 40, np.random.RandomState(0))
        beta = share * values[0]
        assert feasible_vectors(P, beta).mu.size == count_feasible(P, values, beta)


@pytest.mark.parametrize("n_pairs", [3, 25, 400])
def test_attainable_values_are_those_of_the_full_matrix(n_pairs):
    # Up to all samples constrained, where nothing is left of the trivial vector.
    W, known, _ = small_case(0, n_pairs=n_pairs)
    _, Q, d = paper_matrices(W, known)
    Q = Q * d.mean()
    rng = np.random.RandomState(0)
    t = np.sqrt(d / d.sum())
    basis = np.linalg.svd(t[None])[2][1:].T
    Y = csr_array(known.to_matrix())
    plain = attainable(pencil(W, Y, orthogonal=False), 100, rng)
    assert_allclose(plain, np.linalg.eigvalsh(Q)[::-1], atol=1e-9)
    orthogonal = attainable(pencil(W, Y, orthogonal=True), 100, rng)
    assert_allclose(orthogonal, np.linalg.eigvalsh(basis.T @ Q @ basis)[::-1], atol=1e-9)


# --- the authors' program


TWO_WAY = [
    (data, f"p{n_pairs}_s{seed}")
    for data in ("iris2", "breast_cancer")
    for n_pairs in (10, 50, 100)
    for seed in (0, 1)
]


@pytest.mark.parametrize(
    ("data", "pairs", "solver"),
    [(*case, "dense") for case in TWO_WAY] + [(*case, "sparse") for case in TWO_WAY[::2]],
)
def test_golden_vectors(data, pairs, solver):
    W, known, _ = golden_case(data, pairs)
    path = GOLDEN / "results" / f"csp__{data}_{pairs}_k2_knn.json"
    original = json.loads(path.read_text(encoding="utf-8"))
    # Their threshold is half the largest singular value of Q_bar, ours half the largest
    # eigenvalue. They take the cheapest vector: unique unless two have one cost.
    _, Q, _ = paper_matrices(W, known)
    spectrum = np.linalg.eigvalsh(Q)
    share = 0.5 * np.abs(spectrum).max() / spectrum[-1]
    result = csp(W, known, 2, satisfaction=share, orthogonal=False, solver=solver, random_state=0)
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=False)
    beta = share * attainable(P, 1, np.random.RandomState(0))[0]
    cheapest = np.sort(feasible_vectors(P, beta).costs)[:2]
    assert np.diff(cheapest)[0] > 1e-6, "the original's answer is not unique"
    assert cosine(np.array(original["u"]), result.embedding[:, 0]) > 0.999999
    assert adjusted_rand_score(original["labels"], result.labels) == 1
    assert result.residuals.max() < 1e-8


def test_the_default_beats_the_paper_s_threshold():
    # The paper's half of the largest eigenvalue asks for more than any clustering can give, and is
    # met by vectors that live on a few low-degree samples.
    scores = {"default": [], "paper": []}
    for data, pairs, k in [(*case, 2) for case in TWO_WAY[1::2]] + [
        (data, f"p{m}_s0", 3) for data in ("iris", "wine") for m in (50, 100)
    ]:
        W, known, y = golden_case(data, pairs)
        for name, options in (("default", {}), ("paper", PAPER)):
            labels = csp(W, known, k, **options, random_state=0).labels
            scores[name].append(adjusted_rand_score(y, labels))
    assert np.mean(scores["default"]) > 0.82
    assert np.mean(scores["paper"]) < 0.65


# --- two solvers


@pytest.mark.parametrize("options", [{}, PAPER], ids=["default", "paper"])
@pytest.mark.parametrize(("data", "pairs", "k"), [("breast_cancer", "p100_s1", 2)])
def test_sparse_equals_dense(data, pairs, k, options):
    W, known, _ = golden_case(data, pairs)
    dense = csp(W, known, k, **options, solver="dense", random_state=0)
    sparse = csp(W, known, k, **options, solver="sparse", random_state=0)
    assert_same_answer(dense, sparse)


def test_sparse_equals_dense_on_the_digits():
    W, known, _ = golden_case("digits", "p50_s0")
    dense = csp(W, known, 10, solver="dense", random_state=0)
    sparse = csp(W, known, 10, solver="sparse", random_state=0)
    assert_same_answer(dense, sparse)


def assert_same_answer(dense, sparse):
    assert_allclose(sparse.eigenvalues, dense.eigenvalues, rtol=1e-8)
    assert dense.satisfaction == pytest.approx(sparse.satisfaction)
    assert sparse.converged
    assert sparse.residuals.max() < 1e-8
    assert_allclose(turned(sparse.embedding), turned(dense.embedding), atol=1e-6)
    assert_array_equal(sparse.labels, dense.labels)


def turned(E):
    """Give the largest entry of each column a positive sign, and all together the size 1."""
    return E * np.sign(E[np.abs(E).argmax(axis=0), np.arange(E.shape[1])]) / np.abs(E).max()


@pytest.mark.parametrize("orthogonal", [True, False])
def test_the_sparse_way_searches_on_until_the_cheapest_is_known(orthogonal):
    # Here it is far behind the first one in the order of mu.
    options = {"satisfaction": 0.5, "orthogonal": orthogonal, "random_state": 0}
    W, known, _ = golden_case("breast_cancer", "p100_s0")
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=orthogonal)
    beta = 0.5 * attainable(P, 1, np.random.RandomState(0))[0]
    assert feasible_vectors(P, beta).costs.argmin() > 0
    dense = csp(W, known, 2, **options, solver="dense")
    sparse = csp(W, known, 2, **options, solver="sparse")
    assert_allclose(sparse.eigenvalues, dense.eigenvalues, rtol=1e-7)


def test_the_shift_is_found_and_the_solves_are_exact():
    W, known, _ = small_case(3)
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=True)
    rng = np.random.RandomState(0)
    beta = 0.2 * attainable(P, 1, rng)[0]
    lam = 1 / feasible_vectors(P, beta).mu
    A, B = _Numerator(P, beta), _Denominator(P)
    assert lam[0] <= _lowest_ratio(A, B, rng) * (1 + 1e-9) < 1.1 * lam[0]
    formed = _Difference(A, B, lam[0] / 2)
    x = rng.normal(size=40)
    assert_allclose(formed @ x, B @ x - lam[0] / 2 * (A @ x), atol=1e-12)
    z = _ShiftedInverse(A, B, lam[0] / 2) @ x
    assert_allclose(formed @ z, x - P.t * (P.t @ x), atol=1e-8)


def test_a_shift_that_is_too_large_is_lowered():
    W, known, _ = small_case(3)
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=True)
    rng = np.random.RandomState(0)
    beta = 0.2 * attainable(P, 1, rng)[0]
    mu = feasible_vectors(P, beta).mu
    inverse = _ShiftedInverse(_Numerator(P, beta), _Denominator(P), 50 / mu[0])
    assert_allclose(inverse.largest(3, rng).values, mu[:3], rtol=1e-8)
    assert inverse.B.tau < 1 / mu[0]


def test_solutions_that_were_taken_out_leave_the_others():
    W, known, _ = small_case(2)
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=False)
    rng = np.random.RandomState(0)
    beta = 0.2 * attainable(P, 1, rng)[0]
    mu = feasible_vectors(P, beta).mu
    A, B = _Numerator(P, beta), _Denominator(P)
    for start, stop in ((0, 1), (1, 4)):
        inverse = _ShiftedInverse(A, B, _lowest_ratio(A, B, rng) / 2)
        pairs = inverse.largest(stop - start, rng)
        assert_allclose(pairs.values, mu[start:stop], rtol=1e-8)
        A.take_out(B, pairs)


def test_a_dense_graph_goes_both_ways():
    X, y = load_iris(return_X_y=True)
    W = Affinity(None).fit_transform(StandardScaler().fit_transform(X))
    known = Constraints.sample(y, 60, random_state=0)
    dense, sparse = (csp(W, known, 3, solver=s, random_state=0) for s in ("dense", "sparse"))
    assert_same_answer(dense, sparse)


def test_the_dense_way_refuses_large_graphs():
    n = MAX_DENSE + 1
    W = csr_array((np.ones(2), ([0, 1], [1, 0])), shape=(n, n))
    with pytest.raises(TooLargeError, match="solver='sparse'"):
        csp(W, Constraints(n, cannot_link=[(0, 1)]), 2, solver="dense")


# --- the threshold


def test_auto_asks_for_what_a_clustering_can_give():
    # Two equal cliques, joined: the indicator of the true partition attains it exactly.
    W = np.kron(np.eye(2), np.ones((5, 5))) + 0.01
    np.fill_diagonal(W, 0)
    known = Constraints(10, must_link=[(0, 1), (5, 6)], cannot_link=[(2, 7)])
    _, Q, d = paper_matrices(W, known)
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=True)
    u = np.sqrt(d / d.sum()) * np.repeat([1, -1], 5)
    reachable = reachable_share(P, 2)
    assert reachable.believed == pytest.approx(d.mean() * (u @ Q @ u))
    assert reachable.certain == pytest.approx(reachable.believed)


def test_auto_asks_for_what_three_clusters_can_give():
    # The corners of a triangle, as two coordinates of variance 1.
    W = np.kron(np.eye(3), np.ones((4, 4))) + 0.01
    np.fill_diagonal(W, 0)
    known = Constraints(12, must_link=[(0, 1), (5, 6)], cannot_link=[(2, 7), (3, 8), (4, 11)])
    _, Q, d = paper_matrices(W, known)
    corners = np.array([[1, 0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]]) * np.sqrt(2)
    U = np.sqrt(d / d.sum())[:, None] * np.repeat(corners, 4, axis=0)
    assert_allclose(U.T @ U, np.eye(2), atol=1e-12)
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=True)
    assert reachable_share(P, 3).believed == pytest.approx(d.mean() * np.trace(U.T @ Q @ U) / 2)


def test_auto_is_lowered_until_it_is_feasible():
    # One pair has one positive eigenvalue; three clusters need two vectors.
    W, _, _ = small_case(0)
    known = Constraints(40, cannot_link=[(0, 1)])
    with pytest.raises(ValueError, match=r"leaves 1 feasible vectors.*3 clusters need 2"):
        csp(W, known, 3, satisfaction=0.1)
    result = csp(W, known, 3, random_state=0)
    assert result.satisfaction < 0
    assert result.n_feasible >= 2
    assert np.unique(result.labels).size == 3


def test_auto_never_asks_for_more_than_half():
    W, known, _ = small_case(0, n_pairs=500)
    result = csp(W, known, 2, random_state=0)
    assert result.satisfaction == pytest.approx(0.5)


def test_shares_that_are_tried():
    W, known, _ = small_case(0, n_pairs=3)
    P = pencil(W, csr_array(known.to_matrix()), orthogonal=True)
    values = attainable(P, 40, np.random.RandomState(0))
    beta = min(0.5 * values[0], reachable_share(P, 2).believed)
    assert threshold(P, values, 2, satisfaction="auto") == beta
    assert threshold(P, values, 2, satisfaction=0.25) == pytest.approx(0.25 * values[0])
    # Three pairs have three positive eigenvalues at most: nothing above zero is feasible for 8.
    assert threshold(P, values, 8, satisfaction="auto") < 0


def test_a_share_that_nothing_reaches():
    W, known, _ = small_case(0)
    with pytest.raises(ValueError, match=r"satisfaction=0\.99 leaves"):
        csp(W, known, 5, satisfaction=0.99)


def test_faint_beliefs_lead_to_ncut():
    # Overlapping clusters, so that pairs would change something.
    W, known, _ = small_case(4, n=90, n_pairs=60)
    plain = NCut(2, affinity="precomputed", random_state=0).fit(W).labels_
    certain = csp(W, known, 2, random_state=0)
    faint = csp(W, known.with_belief(1e-9), 2, random_state=0)
    f = faint.embedding[:, 0]
    # The second eigenvector of the walk, split by sign.
    L, _, d = paper_matrices(W, known)
    second = np.linalg.eigh(L)[1][:, 1] / np.sqrt(d)
    assert cosine(f, second) == pytest.approx(1, abs=1e-6)
    assert adjusted_rand_score(plain, faint.labels) > adjusted_rand_score(plain, certain.labels)
    assert certain.satisfaction > 0 > faint.satisfaction


def test_less_belief_asks_for_less():
    W, known, _ = small_case(4, n=90, n_pairs=60)
    shares = [csp(W, known.with_belief(b), 2).satisfaction for b in (1.0, 0.9, 0.7, 0.6)]
    assert (np.diff(shares) < 0).all()


# --- invariances and corners


@pytest.mark.parametrize("k", [2, 3])
def test_without_constraints_it_is_ncut(k):
    X, _ = load_wine(return_X_y=True)
    model = CSP(k, random_state=0).fit(X)
    assert_array_equal(model.labels_, NCut(k, random_state=0).fit(X).labels_)
    assert model.satisfaction_ is None


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("solver", ["dense", "sparse"])
@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_units_do_not_matter(orthogonal, solver, factor):
    W, known, _ = small_case(2)
    options = {"orthogonal": orthogonal, "solver": solver, "random_state": 0}
    here, there = (csp(c * W, known, 2, **options) for c in (1, factor))
    assert_allclose(there.eigenvalues, here.eigenvalues, rtol=1e-7)
    assert there.satisfaction == pytest.approx(here.satisfaction)
    assert_array_equal(there.labels, here.labels)


def test_the_threshold_is_reported_by_the_estimator():
    X, y = load_iris(return_X_y=True)
    known = Constraints.sample(y, 60, random_state=0)
    assert CSP(3, satisfaction=0.3).fit(X, constraints=known).satisfaction_ == pytest.approx(0.3)
    assert 0 < CSP(3).fit(X, constraints=known).satisfaction_ < 0.5


@settings(max_examples=40)
@given(
    st.integers(2, 6),
    st.integers(0, 1000),
    st.sampled_from(["auto", "dense", "sparse"]),
    st.booleans(),
    st.sampled_from([0.0, 0.5, 1.0]),
)
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_tiny_graphs(n, seed, solver, orthogonal, density):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    W = W + W.T
    y = np.append([0, 1], rng.randint(2, size=n - 2))
    known = Constraints.sample(y, rng.randint(1, n * (n - 1) // 2 + 1), random_state=seed)
    options = {"orthogonal": orthogonal, "solver": solver, "random_state": 0}
    if np.unique(known.components()).size < 2:
        return
    model = CSP(2, affinity="precomputed", **options).fit(W, constraints=known)
    assert np.isfinite(model.embedding_).all()
    assert set(model.labels_) == {0, 1}


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("solver", ["dense", "sparse"])
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_pieces_that_the_pairs_join_and_part(orthogonal, solver):
    # Four cliques and an isolated vertex, constrained as well. Pairs say which belong together.
    W = np.kron(np.eye(4), np.ones((4, 4)))
    W = np.pad(W, (0, 1)) - np.eye(17) * np.append(np.ones(16), 0)[:, None]
    known = Constraints(17, must_link=[(0, 4), (8, 12), (1, 16)], cannot_link=[(0, 8), (5, 13)])
    model = CSP(2, affinity="precomputed", orthogonal=orthogonal, solver=solver, random_state=0)
    labels = model.fit(csr_array(W), constraints=known).labels_
    assert known.n_violated(labels) == 0
    assert_array_equal(labels[:16], np.repeat([0, 1], 8))
    assert model.result_.residuals.max() < 1e-6


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_duplicates_and_all_samples_labelled(solver):
    X, y = make_blobs(30, centers=3, cluster_std=0.5, random_state=0)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    model = CSP(3, solver=solver, random_state=0)
    labels = model.fit(X, constraints=Constraints.from_labels(y)).labels_
    assert adjusted_rand_score(y, labels) == 1


def test_more_clusters_than_constrained_samples():
    X, _ = make_blobs(120, centers=8, cluster_std=0.3, random_state=5)
    known = Constraints(120, must_link=[(0, 1)], cannot_link=[(1, 2)])
    for solver in ("dense", "sparse"):
        labels = CSP(8, solver=solver, random_state=0).fit(X, constraints=known).labels_
        assert np.unique(labels).size == 8


@pytest.mark.parametrize("k", [3, 4, 5])
def test_vectors_in_the_middle_of_the_spectrum_still_tell_clusters_apart(k):
    # On a star all but two vectors cost 1, and the paper's weight 1 - cost leaves nothing of them.
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1
    known = Constraints(6, cannot_link=[(1, 2)])
    found = CSP(k, affinity="precomputed", random_state=0).fit(star, constraints=known)
    assert np.unique(found.labels_).size == k


def test_nearly_as_many_clusters_as_samples():
    X = np.random.RandomState(0).normal(size=(25, 3))
    known = Constraints(25, must_link=[(0, 1)], cannot_link=[(2, 3)])
    for solver in ("sparse", "dense"):
        found = CSP(24, solver=solver, random_state=0).fit(X, constraints=known)
        assert np.unique(found.labels_).size == 24
