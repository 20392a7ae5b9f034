"""The lower bound of the normalised cut: below every partition that satisfies the constraints."""

from __future__ import annotations

import json
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, load_npz
from sklearn.datasets import make_blobs, make_moons

from linkwise import (
    COSC,
    CSC,
    CSP,
    SCLC,
    Affinity,
    ConstrainedCut,
    Constraints,
    NCut,
    SpectralLearning,
    metrics,
)
from linkwise.report import render_report
from linkwise.search.bound import CutCertificate, contract, lower_bound

GOLDEN = Path(__file__).parents[2] / "shared" / "golden"
ABSENT = "the recorded answers of the authors' program are not here"
RECORDED = sorted((GOLDEN / "results").glob("cosc__*_default.json"))
SMALL = ("iris", "iris2", "wine", "breast_cancer")


def tiny_problem(seed):
    """A random graph of 5 to 8 vertices, weights of any size, and a few random pairs."""
    rng = np.random.RandomState(seed)
    n, k = rng.randint(5, 9), rng.randint(2, 4)
    W = np.triu(rng.uniform(size=(n, n)) ** 3 * (rng.uniform(size=(n, n)) < 0.6), 1)
    W = (W + W.T) * 10.0 ** rng.randint(-2, 3)
    y = rng.randint(k, size=n)
    y[:k] = np.arange(k)
    known = Constraints.sample(y, rng.randint(0, 5), random_state=rng)
    if seed % 4 == 0:
        labels = np.where(rng.uniform(size=n) < 0.3, y, -1)
        known = Constraints.from_labels(labels)
    return W, known, k


def partitions(n, k):
    """All labellings in k non-empty clusters, the first sample in cluster 0."""
    for rest in product(range(k), repeat=n - 1):
        labels = np.array((0, *rest))
        if np.unique(labels).size == k:
            yield labels


def best_cut(W, known, k):
    cuts = [metrics.ncut(W, z) for z in partitions(len(W), k) if known.certain.n_violated(z) == 0]
    return min(cuts, default=np.inf)


@pytest.mark.parametrize("block", range(8))
def test_no_partition_of_200_tiny_graphs_is_below(block):
    n_used = 0
    for seed in range(25 * block, 25 * block + 25):
        W, known, k = tiny_problem(seed)
        best = best_cut(W, known, k)
        for target in (best, np.inf):
            bound = lower_bound(csr_array(W), known, k, target=target)
            assert bound <= best * (1 + 1e-9) + 1e-12, seed
        assert lower_bound(W, known, k) <= best * (1 + 1e-9) + 1e-12
        n_used += bool(np.isfinite(best) and best > 0)
    assert n_used > 10


@pytest.mark.skipif(
    not RECORDED, reason="the recorded answers of the authors' program are not here"
)
@pytest.mark.parametrize("data", SMALL)
def test_no_recorded_answer_that_satisfies_the_pairs_is_below(data):
    W = csr_array(load_npz(GOLDEN / "graphs" / f"{data}_W.npz"))
    n_used = 0
    for path in sorted((GOLDEN / "results").glob(f"*__{data}_*.json")):
        stored = json.loads(path.read_text())
        if stored.get("constraints", "none") == "none" or "labels" not in stored:
            continue
        source = GOLDEN / "constraints" / f"{data}_{stored['constraints']}.npz"
        pairs = np.load(source)
        if "must_link" not in pairs or n_used >= 8:
            continue
        known = Constraints(W.shape[0], pairs["must_link"], pairs["cannot_link"])
        labels = np.asarray(stored["labels"]) - min(stored["labels"])
        if known.n_violated(labels) or np.unique(labels).size < 2:
            continue
        k, cut = np.unique(labels).size, metrics.ncut(W, labels)
        plain = lower_bound(W, known, k, target=cut, ascents=0)
        bound = lower_bound(W, known, k, target=cut)
        assert plain <= bound <= cut
        n_used += 1
    assert n_used


def test_it_is_the_sum_of_the_smallest_eigenvalues_after_contraction():
    X, _ = make_blobs(60, centers=3, cluster_std=3, random_state=0)
    W = Affinity(6).fit_transform(X).toarray()
    known = Constraints(60, must_link=[(0, 5), (5, 9), (20, 21)])
    group = known.components()
    R = np.eye(group.max() + 1)[group]
    A = R.T @ W @ R
    np.testing.assert_allclose(contract(csr_array(W), group).toarray(), A)
    d = A.sum(axis=1)
    values = np.linalg.eigvalsh(np.eye(d.size) - A / np.sqrt(np.outer(d, d)))
    assert lower_bound(csr_array(W), known, 3) == pytest.approx(values[:3].sum(), abs=1e-5)
    assert lower_bound(csr_array(W), known, 3) <= values[:3].sum()
    assert lower_bound(csr_array(W), Constraints(60), 3) < values[:3].sum()


def test_cannot_links_raise_it():
    X, y = make_moons(120, noise=0.2, random_state=0)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, 60, random_state=0)
    apart = Constraints(120, cannot_link=known.cannot_link)
    cut = metrics.ncut(W, y)
    plain = lower_bound(W, Constraints(120), 2)
    for k, constraints in ((2, apart), (3, apart)):
        assert lower_bound(W, constraints, k, target=cut, ascents=0) >= plain * (1 - 1e-9)
    assert lower_bound(W, apart, 2, target=cut) > 1.2 * plain


METHODS = [
    NCut(2),
    CSC(2),
    CSP(2),
    SCLC(2),
    SpectralLearning(2),
    ConstrainedCut(2),
    COSC(2),
    COSC(2, violations=1),
]


@pytest.mark.parametrize("model", METHODS, ids=lambda model: type(model).__name__)
def test_methods_report_it(model):
    X, y = make_moons(100, noise=0.15, random_state=0)
    known = Constraints.sample(y, 15, random_state=0)
    fitted = model.set_params(random_state=0)
    fitted.fit(X, constraints=None if type(model) is NCut else known)
    result, W = fitted.result_, fitted.affinity_matrix_
    assert result.cut == pytest.approx(metrics.ncut(W, fitted.labels_))
    assert result.bound >= 0
    if type(model) is NCut:
        assert result.bound == pytest.approx(result.eigenvalues.sum(), abs=1e-5)
    assert result.gap == pytest.approx(1 - result.bound / result.cut)
    assert result.bound <= metrics.ncut(W, y)  # the classes satisfy every pair
    again = pickle.loads(pickle.dumps(fitted)).result_
    assert again.bound == result.bound


def test_it_is_not_computed_before_it_is_asked_for(monkeypatch):
    X, y = make_moons(60, noise=0.1, random_state=0)
    known = Constraints.sample(y, 10, random_state=0)
    asked = []
    monkeypatch.setattr(
        "linkwise.search.bound.lower_bound", lambda *_, **__: asked.append(1) or 0.0
    )
    model = COSC(2, random_state=0).fit(X, constraints=known)
    assert not asked
    assert model.result_.bound == model.result_.bound == 0.0
    assert len(asked) == 1


def test_other_objectives_have_none():
    X, _ = make_moons(60, noise=0.1, random_state=0)
    for model in (ConstrainedCut(2, objective="kmeans"), COSC(2, vertex_weights="unit")):
        result = model.set_params(random_state=0).fit(X).result_
        assert result.cut is result.bound is result.gap is None


def test_the_sentence():
    X, y = make_moons(100, noise=0.15, random_state=0)
    known = Constraints.sample(y, 15, random_state=0)
    certificate = COSC(2, random_state=0).fit(X, constraints=known).result_.certificate
    assert certificate.sentence().startswith("No partition that keeps your certain pairs can have")
    free = NCut(2, random_state=0).fit(X).result_.certificate
    assert free.sentence().startswith("No partition can have a normalised cut more than")
    wrong = CutCertificate(certificate.W, known, np.arange(100) % 2)
    assert "violates" in wrong.sentence()
    halves = csr_array(np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)))
    apart = CutCertificate(halves, Constraints(6), np.repeat([0, 1], 3))
    assert apart.sentence() == "The normalised cut is 0: no partition is better."
    assert apart.gap == 0.0


def test_the_report_says_how_far_it_is_from_the_best():
    pytest.importorskip("jinja2")
    X, y = make_moons(100, noise=0.15, random_state=0)
    model = COSC(2, random_state=0).fit(X, constraints=Constraints.sample(y, 15, random_state=0))
    page = render_report(labels=model.labels_, X=X, result=model)
    assert model.result_.certificate.sentence() in page


def test_contradictions_and_odd_rings_leave_the_must_links():
    W = Affinity(3).fit_transform(make_blobs(12, random_state=0)[0])
    ring = Constraints(12, cannot_link=[(0, 1), (1, 2), (0, 2)])
    plain = lower_bound(W, Constraints(12), 2)
    assert lower_bound(W, ring, 2) >= plain
    both = Constraints(12, must_link=[(0, 1)], cannot_link=[(0, 1)])
    together = Constraints(12, must_link=[(0, 1)])
    assert lower_bound(W, both, 2) == pytest.approx(lower_bound(W, together, 2))


def test_as_many_groups_as_clusters_leave_one_partition():
    W = np.ones((4, 4)) - np.eye(4)
    known = Constraints(4, must_link=[(0, 1), (2, 3)])
    assert lower_bound(W, known, 2) == pytest.approx(metrics.ncut(W, [0, 0, 1, 1]))
