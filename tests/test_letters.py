"""The papers to the letter: each method with the options that are its paper, against dense algebra.

Every reference is written in the notation of the paper, entry by entry or with dense matrices, and
shares no code with the library. Three graphs each: two moons, three blobs, and wine with a full
Gaussian. Methods that a paper compares itself with are read in their own papers' notation.
"""

from __future__ import annotations

import warnings
from itertools import combinations, product

import numpy as np
import pytest
from numpy.linalg import eigh, inv, pinv, solve
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eig, null_space, solve_continuous_lyapunov
from scipy.linalg import eigh as generalized_eigh
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine, make_blobs, make_moons
from sklearn.preprocessing import StandardScaler

from linkwise import COSC, CSC, E2CP, SCLC, SRCP, Affinity, ConstrainedLPP, Constraints, SignedCSC
from linkwise.methods import _propagation
from linkwise.methods.ccl import ccl
from linkwise.methods.ccsr import ccsr
from linkwise.methods.clpp import clpp
from linkwise.methods.cpca import cpca
from linkwise.methods.cscgfhf import cscgfhf
from linkwise.methods.csp import csp
from linkwise.methods.e2cp import e2cp
from linkwise.methods.fastge import fast_ge
from linkwise.methods.gfhf import gfhf
from linkwise.methods.gp import gp_affinity
from linkwise.methods.llgc import llgc
from linkwise.methods.ncut import ncut
from linkwise.methods.poisson import poisson
from linkwise.methods.sclc import sclc
from linkwise.methods.signed import signed_csc
from linkwise.methods.sl import sl
from linkwise.methods.srcp import srcp
from linkwise.methods.sskk import sskk


def moons():
    X, y = make_moons(60, noise=0.1, random_state=0)
    return X, y, Affinity(8).fit_transform(X)


def blobs():
    X, y = make_blobs(75, centers=3, n_features=4, cluster_std=2.5, random_state=1)
    return X, y, Affinity(10, symmetrize="mean").fit_transform(X)


def wine():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)[::2]
    return X, y[::2], Affinity(None, scale="variance").fit_transform(X)


GRAPHS = [moons, blobs, wine]
on_three_graphs = pytest.mark.parametrize("graph", GRAPHS)


def problem(graph, *, two=False, n_pairs=30):
    """Return samples, the graph as a dense matrix, constraints, their matrix, and the classes."""
    X, y, W = graph()
    y = np.minimum(y, 1) if two else y
    known = Constraints.sample(y, n_pairs, random_state=3)
    W = np.asarray(W) if isinstance(W, np.ndarray) else W.toarray()
    Y = np.zeros_like(W)
    for i, j in known.must_link:
        Y[i, j] = Y[j, i] = 1
    for i, j in known.cannot_link:
        Y[i, j] = Y[j, i] = -1
    return X, W, known, Y, int(y.max()) + 1


def scaled(A, d):
    """D^-1/2 A D^-1/2."""
    return np.diag(d**-0.5) @ A @ np.diag(d**-0.5)


def cosines(rows):
    """All cosines between rows, which no rotation of the columns changes."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


def assert_clusters_graph(result, W_star, k):
    """Check that a result embeds the dense graph `W_star` by its normalised Laplacian."""
    values, U = eigh(np.eye(len(W_star)) - scaled(W_star, W_star.sum(axis=1)))
    assert_allclose(result.eigenvalues, values[:k], atol=1e-7)
    assert_allclose(cosines(result.embedding), cosines(U[:, :k]), atol=1e-4)


def equation_9(W, F):
    """Fu et al. (9), for distinct samples: the diagonal of a similarity matrix is zero there."""
    W_star = np.zeros_like(W)
    for i, j in product(range(len(W)), repeat=2):
        if i != j and F[i, j] >= 0:
            W_star[i, j] = 1 - (1 - F[i, j]) * (1 - W[i, j])
        elif i != j:
            W_star[i, j] = (1 + F[i, j]) * W[i, j]
    return W_star


# Fu et al. 2011; Lu & Ip 2010 ---------------------------------------------------------------------


@on_three_graphs
@pytest.mark.parametrize("largest", [1.0, 0.4])
def test_srcp(graph, largest):
    _, W, known, Y, k = problem(graph)
    W *= largest / W.max()
    mu, eye = 0.2, np.eye(len(W))
    L_bar = eye - scaled(W, W.sum(axis=1))
    F = solve_continuous_lyapunov(mu * eye + L_bar, 2 * mu * Y)  # (5)
    found = srcp(W, known, k, mu=mu, scale="paper", random_state=0)
    assert_clusters_graph(found, equation_9(W, F), k)


@on_three_graphs
@pytest.mark.parametrize("largest", [1.0, 0.4])
def test_e2cp(graph, largest):
    _, W, known, Y, k = problem(graph)
    W *= largest / W.max()
    alpha = 0.8
    P = inv(np.eye(len(W)) - alpha * scaled(W, W.sum(axis=1)))
    F = (1 - alpha) ** 2 * P @ Y @ P
    found = e2cp(W, known, k, alpha=alpha, scale="paper", random_state=0)
    assert_clusters_graph(found, equation_9(W, F), k)


@pytest.mark.parametrize("Method", [SRCP, E2CP])
def test_affinities_above_one_are_not_what_equation_9_is_about(Method):
    _, y, W = moons()
    known = Constraints.sample(y, 10, random_state=0)
    with pytest.warns(UserWarning, match=r"affinities in \[0, 1\]; the largest here is 3"):
        Method(2, affinity="precomputed", scale="paper", random_state=0).fit(
            3 * W / W.max(), constraints=known
        )


@pytest.mark.parametrize(
    ("Method", "far", "near"),
    [(E2CP, {"alpha": 0.95}, {"alpha": 0.9}), (SRCP, {"mu": 0.02}, {"mu": 0.05})],
)
def test_pairs_that_are_spread_far_are_propagated_exactly_or_with_a_warning(
    Method, far, near, monkeypatch
):
    _, y, W = moons()
    known = Constraints.sample(y, 10, random_state=0)
    monkeypatch.setattr(_propagation, "AUTO_EXACT", 20)

    def answer(settings, solver):
        model = Method(2, affinity="precomputed", solver=solver, random_state=0, **settings)
        return model.fit(W, constraints=known).result_.eigenvalues

    assert_array_equal(answer(far, "auto"), answer(far, "exact"))
    assert_array_equal(answer(near, "auto"), answer(near, "lowrank"))
    name, value = next(iter(far.items()))
    words = f"{name}={value} spreads pairs over the whole graph.*solver='exact'"
    with pytest.warns(UserWarning, match=words):
        answer(far, "lowrank")
    monkeypatch.setattr(_propagation, "GLOBAL_EXACT", 20)
    with pytest.warns(UserWarning, match=words):
        answer(far, "auto")


# Wacquet et al. 2013 ------------------------------------------------------------------------------


def signed_laplacian(W, Q, gamma=0.5):
    """The vectors z of the normalised signed Laplacian of gamma W + (1 - gamma) Q (41 - 44)."""
    W_csc = gamma * W + (1 - gamma) * Q
    d_bar = np.abs(W_csc).sum(axis=1)
    return eigh(np.eye(len(W)) - scaled(W_csc, d_bar))


@on_three_graphs
def test_signed_csc_two_clusters(graph):
    _, W, known, Q, _ = problem(graph, two=True)
    values, z = signed_laplacian(W, Q)
    found = signed_csc(W, known, 2, selection="paper", link_weight=1, random_state=0)
    assert_allclose(found.eigenvalues, values[:2], atol=1e-7)
    clear = np.abs(z[:, 1]) > 1e-6
    side = (z[:, 1] > 0) != (z[0, 1] > 0)
    assert_array_equal(found.labels[clear] != found.labels[0], side[clear])


@on_three_graphs
def test_signed_csc_more_clusters(graph):
    _, W, known, Q, _ = problem(graph)
    values, z = signed_laplacian(W, Q)
    found = SignedCSC(3, affinity="precomputed", selection="paper", link_weight=1, random_state=0)
    found.fit(W, constraints=known)
    assert_allclose(found.result_.eigenvalues, values[:3], atol=1e-7)
    assert_allclose(cosines(found.embedding_), cosines(z[:, :3]), atol=1e-4)


@on_three_graphs
def test_spectral_learning(graph):
    _, W, known, Q, k = problem(graph)
    A = np.where(Q > 0, 1.0, np.where(Q < 0, 0.0, W))  # (27)
    found = sl(W, known, k, normalization="symmetric", link_weight=1, random_state=0)
    assert_clusters_graph(found, A, k)


FCSC = {"satisfaction": 0.5, "orthogonal": False, "rows": "raw"}


def feasible_vectors(W, Q, share):
    """Solve equation (30) as it stands, an indefinite pencil; return unit vectors and their costs.

    They need not be orthogonal to the constant, which is left out.
    """
    d = W.sum(axis=1)
    L, Q_bar = np.eye(len(W)) - scaled(W, d), scaled(Q, d)
    alpha = share * eigh(Q_bar)[0][-1]  # share lambda_max vol(G), in units of vol(G)
    values, u = eig(L, Q_bar - alpha * np.eye(len(W)))
    is_real = np.isfinite(values) & (np.abs(values.imag) < 1e-9 * np.abs(values))
    u = u[:, is_real & (values.real > 0)].real
    u /= np.linalg.norm(u, axis=0)
    cost = (u * (L @ u)).sum(axis=0)
    return u[:, cost > 1e-10], cost[cost > 1e-10]


def assert_same_lines(found, expected):
    """Check that columns agree up to their signs."""
    found, expected = (columns / np.linalg.norm(columns, axis=0) for columns in (found, expected))
    assert_allclose(np.abs((found * expected).sum(axis=0)), 1, atol=1e-6)


@on_three_graphs
def test_fcsc(graph):
    _, W, known, Q, _ = problem(graph, two=True)
    u, cost = feasible_vectors(W, Q, 0.5)
    best = u[:, [cost.argmin()]] / np.sqrt(W.sum(axis=1))[:, None]
    assert_same_lines(csp(W, known, 2, **FCSC, random_state=0).embedding, best)


@on_three_graphs
def test_csp_of_three_clusters(graph):
    # Wang, Qian & Davidson 2014: the two cheapest, each weighted by 1 - v' L v.
    _, W, known, Q, _ = problem(graph, n_pairs=60)
    v, cost = feasible_vectors(W, Q, 0.3)
    cheapest = np.argsort(cost)[:2]
    V = (v * (1 - cost))[:, cheapest] / np.sqrt(W.sum(axis=1))[:, None]
    found = csp(W, known, 3, **FCSC | {"satisfaction": 0.3}, random_state=0).embedding
    assert_same_lines(found, V)
    lengths = np.linalg.norm(found, axis=0) / np.linalg.norm(V, axis=0)
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-6)


@on_three_graphs
def test_cpca(graph):
    X, _, known, Q, k = problem(graph)
    n, n_cannot, n_must = len(X), (Q < 0).sum() / 2, (Q > 0).sum() / 2
    alpha, beta = 1.0, 20.0
    W = np.full((n, n), 1 / n**2)  # (11), entry by entry
    for i, j in product(range(n), repeat=2):
        if Q[i, j] < 0:
            W[i, j] += alpha / n_cannot
        elif Q[i, j] > 0:
            W[i, j] -= beta / n_must
    L = np.diag(W.sum(axis=1)) - W
    m = min(3, X.shape[1])
    values, a = eigh(X.T @ L @ X)  # (14)
    found = cpca(X, known, k, n_components=m, alpha=alpha, beta=beta, random_state=0)
    assert_allclose(found.eigenvalues, values[::-1][:m], rtol=1e-9)
    assert_same_lines(found.components.T, a[:, ::-1][:, :m])


def equations_19_to_22(X, W, Q, m):
    """Return the lowest values of (20) over the norm by absolute degrees, and the weights (21)."""
    W_tilde = W + Q
    d_bar = np.abs(W_tilde).sum(axis=1)
    X = X - d_bar @ X / d_bar.sum()
    J = np.zeros((X.shape[1], X.shape[1]))
    for i, j in product(range(len(X)), repeat=2):
        J += W_tilde[i, j] / 2 * np.outer(X[i] - X[j], X[i] - X[j])
    return generalized_eigh(J, X.T @ np.diag(d_bar) @ X)[0][:m]


@on_three_graphs
def test_clpp_numerator_of_19_and_20(graph):
    X, W, known, Q, k = problem(graph)
    m = min(3, X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of negative eigenvalues; see below
        found = clpp(X, known, k, W=W, n_components=m, criterion="paper", random_state=0)
    assert_allclose(found.eigenvalues, equations_19_to_22(X, W, Q, m), atol=1e-5)


def test_clpp_warns_of_negative_eigenvalues():
    X, y = make_blobs(40, centers=2, random_state=0)
    known = Constraints(40, cannot_link=[(0, j) for j in range(1, 15) if y[j] != y[0]])
    model = ConstrainedLPP(2, criterion="paper", random_state=0)
    with pytest.warns(UserWarning, match="Equation .22. has negative eigenvalues, 1 of the"):
        model.fit(X, constraints=known)
    assert model.result_.eigenvalues[0] < 0
    # Without cannot-links the two criteria differ by the weight of a pair only.
    ConstrainedLPP(2, criterion="paper", random_state=0).fit(X, constraints=Constraints(40))


# Wang et al. 2012 ---------------------------------------------------------------------------------


def labelled(graph, *, two=False):
    """Return a dense graph, constraints from the labels of every sixth sample, and those labels."""
    _, y, W = graph()
    y = np.minimum(y, 1) if two else y
    partial = np.full(y.size, -1)
    partial[::6] = y[::6]
    W = np.asarray(W) if isinstance(W, np.ndarray) else W.toarray()
    return W, Constraints.from_labels(partial), partial, int(y.max()) + 1


def harmonic(A, partial, k):
    """GFHF by equation (2): y_u = (I - P_uu)^-1 P_ul y_l."""
    ll, u = np.flatnonzero(partial >= 0), np.flatnonzero(partial < 0)
    P = np.diag(1 / A.sum(axis=1)) @ A
    y = np.zeros((len(A), k))
    y[ll] = np.eye(k)[partial[ll]]
    y[u] = solve(np.eye(u.size) - P[np.ix_(u, u)], P[np.ix_(u, ll)] @ y[ll])
    return y


@on_three_graphs
def test_gfhf(graph):
    A, known, partial, k = labelled(graph)
    y = harmonic(A, partial, k)
    found = gfhf(A, known, k)
    assert_allclose(found.embedding, y, atol=1e-9)
    assert_array_equal(found.labels, y.argmax(axis=1))


@on_three_graphs
@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_llgc(graph, alpha):
    A, known, partial, k = labelled(graph)
    y_0 = np.where(partial[:, None] == np.arange(k), 1.0, 0.0)
    A_bar = scaled(A, A.sum(axis=1))
    y = (1 - alpha) * inv(np.eye(len(A)) - alpha * A_bar) @ y_0  # (5)
    found = llgc(A, known, k, alpha=alpha)
    assert_allclose(found.embedding, y / y.sum(axis=1, keepdims=True), atol=1e-9)
    assert_array_equal(found.labels, y.argmax(axis=1))


@on_three_graphs
@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_csc_gfhf(graph, sigma):
    # Algorithm 4. Solutions of (12) beside the trivial one, t, have t' Q_bar f = 0.
    A, known, partial, _ = labelled(graph, two=True)
    y = harmonic(A, partial, 2) @ [-1, 1]
    Q = np.exp(-((y[:, None] - y[None]) ** 2) / (2 * sigma**2))  # (15)
    d = A.sum(axis=1)
    L_bar, Q_bar = np.eye(len(A)) - scaled(A, d), scaled(Q, Q.sum(axis=1))
    N = null_space((Q_bar @ np.sqrt(d))[None])
    f = N @ generalized_eigh(N.T @ Q_bar @ N, N.T @ L_bar @ N)[1]
    f /= np.linalg.norm(f, axis=0)
    best = f[:, [(f * (Q_bar @ f)).sum(axis=0).argmax()]]
    found = cscgfhf(A, known, 2, sigma=sigma)
    assert_same_lines(found.embedding, best)
    ratio = float((best.T @ L_bar @ best / (best.T @ Q_bar @ best)).item())
    assert found.eigenvalues[0] == pytest.approx(ratio, rel=1e-4)
    clear = np.abs(best[:, 0]) > 1e-5
    assert len({*zip(best[clear, 0] > 0, found.labels[clear], strict=True)}) == 2


# Xu et al. 2005 -----------------------------------------------------------------------------------


def heuristic(X):
    """Steps 1 to 4: the sample i, the rank m, and both distances that sigma may map to 0.001."""
    n = len(X)
    delta = [np.sort(np.delete(row, i)) for i, row in enumerate(cdist(X, X))]
    _, i, m = max((delta[i][m] - delta[i][m - 1], -i, m) for i in range(n) for m in range(1, n - 1))
    return m, max(row[m - 1] for row in delta), delta[-i][m - 1]


@on_three_graphs
@pytest.mark.parametrize("scale", ["xu", "xu-gap"])
def test_csc_and_both_readings_of_sigma(graph, scale):
    X, y, _ = graph()
    known = Constraints.sample(y, 20, random_state=0)
    m, widest, at_gap = heuristic(X)
    sigma = (widest if scale == "xu" else at_gap) / np.sqrt(-2 * np.log(0.001))
    A = np.exp(-(cdist(X, X) ** 2) / (2 * sigma**2))  # (1)
    np.fill_diagonal(A, 0)
    for i, j in known.must_link:
        A[i, j] = A[j, i] = 1
    for i, j in known.cannot_link:
        A[i, j] = A[j, i] = 0
    builder = Affinity(None, scale=scale)
    k = int(y.max()) + 1
    model = CSC(k, affinity=builder, link_weight=1, rows="raw", random_state=0)
    model.fit(X, constraints=known)
    assert model.affinity_.m_ == m
    assert model.affinity_.scale_ == pytest.approx(sigma)
    P = np.diag(1 / A.sum(axis=1)) @ A
    v = model.embedding_
    assert_allclose(P @ v, v * (1 - model.result_.eigenvalues), atol=1e-6 * np.abs(v).max())
    largest = np.sort(np.linalg.eigvals(P).real)[::-1][:k]
    assert_allclose(1 - model.result_.eigenvalues, largest, atol=1e-7)


@on_three_graphs
def test_kkm_walks_with_the_additive_chain(graph):
    # Kamvar, Klein & Manning 2003: N = (A + d_max I - D) / d_max.
    _, W, known, Q, k = problem(graph)
    A = np.where(Q > 0, 1.0, np.where(Q < 0, 0.0, W))
    d = A.sum(axis=1)
    N = (A + d.max() * np.eye(len(A)) - np.diag(d)) / d.max()
    found = sl(W, known, k, link_weight=1, normalization="additive", random_state=0)
    values, v = eigh(N)
    assert_allclose(found.eigenvalues, 1 - values[::-1][:k], atol=1e-8)
    assert_allclose(cosines(found.embedding), cosines(v[:, ::-1][:, :k]), atol=1e-4)


@on_three_graphs
def test_ccl(graph):
    # Klein, Kamvar & Manning 2002: impose, propagate by all shortest paths, then complete link.
    X, y, _ = graph()
    known, k = Constraints.sample(y, 20, random_state=0), int(y.max()) + 1
    D = cdist(X, X)
    for i, j in known.must_link:
        D[i, j] = D[j, i] = 0
    for m in range(len(D)):
        D = np.minimum(D, D[:, [m]] + D[[m]])
    beyond = D.max() + 1
    for i, j in known.cannot_link:
        D[i, j] = D[j, i] = beyond
    clusters = [[i] for i in range(len(D))]
    while len(clusters) > k:
        pairs = list(combinations(range(len(clusters)), 2))
        a, b = min(pairs, key=lambda ab: D[np.ix_(clusters[ab[0]], clusters[ab[1]])].max())
        clusters[a] += clusters.pop(b)
    found = ccl(X, known, k, merging="paper", random_state=0).labels
    assert {frozenset(c) for c in clusters} == {
        frozenset(np.flatnonzero(found == c).tolist()) for c in range(k)
    }


def test_the_gap_has_its_own_m():
    X, _, _ = moons()
    with pytest.raises(ValueError, match="takes m from the largest gap, but m=3 is given"):
        Affinity(None, scale="xu-gap", m=3).fit(X)


# Rangapuram & Hein 2012 ---------------------------------------------------------------------------


@on_three_graphs
def test_sclc_by_signs(graph):
    _, W, known, Q, _ = problem(graph, two=True)
    d = W.sum(axis=1)
    rows = [d / d.sum()]
    for i, j in zip(*np.nonzero(np.triu(Q)), strict=True):
        row = np.zeros(len(W))
        row[i], row[j] = 1, -Q[i, j]  # f_p = f_q, or f_p = -f_q
        rows.append(row)
    N = null_space(np.array(rows))
    values, z = generalized_eigh(N.T @ (np.diag(d) - W) @ N, N.T @ np.diag(d) @ N)
    f = N @ z[:, 0]
    found = sclc(W, known, 2, rounding="sign", random_state=0)
    assert found.eigenvalues[0] == pytest.approx(values[0], abs=1e-7)
    clear = np.abs(f) > 1e-6 * np.abs(f).max()
    assert_array_equal(found.labels[clear] != found.labels[0], ((f > 0) != (f[0] > 0))[clear])
    assert known.n_violated(found.labels) == 0


def test_sclc_without_constraints_takes_the_sign_of_the_second_vector():
    _, _, W = moons()
    z = eigh(np.eye(60) - scaled(W.toarray(), W.sum(axis=1)))[1]
    model = SCLC(2, affinity="precomputed", rounding="sign", random_state=0).fit(W)
    assert_array_equal(model.labels_ != model.labels_[0], (z[:, 1] > 0) != (z[0, 1] > 0))


def tiny(seed, n=9):
    rng = np.random.RandomState(seed)
    W = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5), 1) + np.eye(n, k=1)
    return W + W.T


def f_hat(C, W, Q, gamma):
    """F_gamma of a partition, equation (1)."""
    d, inside = W.sum(axis=1), np.flatnonzero(C)
    outside = np.flatnonzero(~C)
    cut = 2 * W[np.ix_(inside, outside)].sum()
    bal = 2 * d[C].sum() * d[~C].sum() / d.sum()
    apart = np.not_equal.outer(C, C)
    violated = (Q > 0)[apart].sum() + (Q < 0)[~apart].sum()  # M(C) + N(C), both orders
    return (cut + gamma * violated) / bal


@pytest.mark.parametrize("seed", range(3))
def test_cosc_of_two_clusters_is_the_minimum_of_theorem_2_1(seed):
    W = tiny(seed)
    Q = np.zeros_like(W)
    for i, j, q in [(0, 4, 1), (1, 7, -1), (2, 8, -1)]:
        Q[i, j] = Q[j, i] = q
    known = Constraints(9, must_link=[(0, 4)], cannot_link=[(1, 7), (2, 8)])
    sides = [np.array((False, *rest)) for rest in product([False, True], repeat=8) if any(rest)]
    consistent = [C for C in sides if f_hat(C, W, Q, 1.0) == f_hat(C, W, Q, 0.0)]
    best = min(f_hat(C, W, Q, 0.0) for C in consistent)
    gamma = W.sum() / 4 * best
    assert min(f_hat(C, W, Q, gamma) for C in sides) == pytest.approx(best)  # Theorem 2.1
    for balance in ("lovasz", "deviation"):
        model = COSC(2, affinity="precomputed", refine=False, balance=balance, random_state=0)
        model.fit(W, constraints=known)
        assert f_hat(model.labels_ == 1, W, Q, 0.0) == pytest.approx(best)


# What the papers compare themselves with, and later ones ------------------------------------------


@on_three_graphs
def test_ncut(graph):
    # Shi & Malik 2000: (D - W) y = lambda D y.
    _, W, _, _, k = problem(graph)
    D = np.diag(W.sum(axis=1))
    values, y = generalized_eigh(D - W, D)
    found = ncut(W, k, rows="raw", random_state=0)
    assert_allclose(found.eigenvalues, values[:k], atol=1e-8)
    assert_same_lines(found.embedding, y[:, :k])


@on_three_graphs
def test_ccsr(graph):
    # Li, Liu & Tang 2009: M >= 0 with the least sum of (f_i' M f_j - t_ij)^2, over the samples with
    # themselves and the pairs. The problem is convex: its optimality conditions are the reference.
    _, W, known, Q, k = problem(graph)
    n, m = len(W), 8
    F = np.sqrt(n) * eigh(np.eye(n) - scaled(W, W.sum(axis=1)))[1][:, :m]
    found = ccsr(W, known, k, n_components=m, ridge=0.0, random_state=0)
    M = F.T @ found.embedding @ found.embedding.T @ F / n**2
    terms = [(i, i, 1.0) for i in range(n)]
    terms += [(i, j, float(Q[i, j] > 0)) for i, j in zip(*np.nonzero(np.triu(Q)), strict=True)]
    slope, total = np.zeros((m, m)), 0.0
    for i, j, t in terms:
        off = F[i] @ M @ F[j] - t
        slope += off * (np.outer(F[i], F[j]) + np.outer(F[j], F[i]))
        total += off**2
    assert found.objective == pytest.approx(total, rel=1e-6)
    size = np.abs(slope).max() + n
    assert eigh(M)[0][0] > -1e-9
    assert eigh(slope)[0][0] > -1e-3 * size
    assert abs((slope * M).sum()) < 1e-3 * size


@on_three_graphs
def test_affinity_propagation_by_a_gaussian_process(graph):
    # Lu & Carreira-Perpinan 2008: the covariance given f_i = f_j and f_i = -f_j.
    _, W, known, Q, _ = problem(graph, two=True)
    n, noise = len(W), 0.01
    K = W / max(W.max(), -eigh(W)[0][0]) + np.eye(n)
    pairs = list(zip(*np.nonzero(np.triu(Q)), strict=True))
    M = np.array([np.eye(n)[i] - Q[i, j] * np.eye(n)[j] for i, j in pairs]).T
    posterior = K - K @ M @ inv(M.T @ K @ M + noise * np.eye(len(pairs))) @ M.T @ K
    A = np.maximum(posterior, 0)
    np.fill_diagonal(A, 0)
    found = gp_affinity(W, known, 2, noise=noise, solver="exact", random_state=0)
    assert_clusters_graph(found, A, 2)


@on_three_graphs
def test_fast_ge(graph):
    # Cucuringu et al. 2016: L_G x = lambda L_H x, pairs of weight d_i d_j / (d_min d_max).
    _, W, known, Q, k = problem(graph)
    W = W / W.max()
    d = W.sum(axis=1)
    K = np.outer(d, d) / d.sum()
    np.fill_diagonal(K, 0)
    weight = np.outer(d, d) / (d.min() * d.max())
    G, H = W + weight * (Q > 0), weight * (Q < 0) + K / len(W)
    P = null_space(np.ones((1, len(W))))
    L_G, L_H = (np.diag(A.sum(axis=1)) - A for A in (G, H))
    values = generalized_eigh(P.T @ L_G @ P, P.T @ L_H @ P)[0]
    found = fast_ge(W, known, k, link_weight="paper", random_state=0)
    assert_allclose(found.eigenvalues, [0, *values[: k - 1]], rtol=1e-6, atol=1e-10)


@on_three_graphs
def test_semi_supervised_kernel_k_means(graph):
    # Kulis et al. 2005: K = sigma D^-1 + D^-1 (A + C) D^-1; no sample has a nearer mean.
    _, A, known, Q, k = problem(graph)
    A = A / A.sum(axis=1).mean()
    d, w = A.sum(axis=1), 0.3
    sigma = 0.1 - eigh(scaled(A + w * Q, d))[0][0]  # K is positive definite
    K = np.diag(1 / d) @ (sigma * np.diag(d) + A + w * Q) @ np.diag(1 / d)
    found = sskk(A, known, k, penalty=w, shift=sigma, start="neighborhoods", random_state=0)
    distance = np.empty((len(A), k))
    objective = 0.0
    for c in range(k):
        V = found.labels == c
        alpha = d * V / d[V].sum()
        distance[:, c] = np.diag(K) - 2 * K @ alpha + alpha @ K @ alpha
        inside = np.ix_(V, V)
        objective += (A[V][:, ~V].sum() - w * Q[inside].sum()) / d[V].sum()
    assert found.objective == pytest.approx(objective)
    assert_array_equal(found.labels, distance.argmin(axis=1))


@on_three_graphs
def test_poisson_learning(graph):
    # Calder et al. 2020: L u = sum over labelled j of (y_j - y_bar) delta_j, with sum d_i u_i = 0.
    W, known, partial, k = labelled(graph)
    Y = np.where(partial[:, None] == np.arange(k), 1.0, 0.0)
    B = np.where(partial[:, None] >= 0, Y - Y[partial >= 0].mean(axis=0), 0.0)
    d = W.sum(axis=1)
    u = pinv(np.diag(d) - W) @ B
    u -= d @ u / d.sum()
    found = poisson(W, known, k)
    assert_allclose(found.embedding, u, atol=1e-8 * np.abs(u).max())
    assert_array_equal(found.labels, u.argmax(axis=1))
