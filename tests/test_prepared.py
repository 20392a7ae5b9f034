"""Prepared data: one graph for many fits, and solvers that start where they ended."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from linkwise import CSC, E2CP, METHODS, Affinity, Constraints, NCut, Prepared, SpectralLearning
from linkwise.linalg import warm as warm_module
from linkwise.linalg.warm import WarmStarts

every_method = pytest.mark.parametrize("Method", METHODS.values(), ids=METHODS.keys())


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], 40)
    return rng.normal(size=(120, 4)) + 4 * y[:, None], y


@pytest.fixture
def known(blobs):
    known = Constraints.sample(blobs[1], 30, random_state=0)
    triangle = [(0, 40), (0, 80), (40, 80)]  # label methods need three groups that differ
    return Constraints(
        120, must_link=known.must_link, cannot_link=np.vstack([known.cannot_link, triangle])
    )


@every_method
def test_prepared_data_give_the_same_clusters(Method, blobs, known):
    X, _ = blobs
    known = None if Method is NCut else known
    plain = Method(3, random_state=0).fit(X, constraints=known)
    prepared = Method(3, random_state=0).fit(Prepared(X), constraints=known)
    assert_array_equal(plain.labels_, prepared.labels_)
    assert prepared.n_features_in_ == 4
    assert_array_equal(plain.predict(X[:5] + 0.1), prepared.predict(X[:5] + 0.1))


@every_method
def test_new_samples_are_an_array(Method, blobs, known):
    data = Prepared(blobs[0])
    model = Method(3, random_state=0).fit(data, constraints=None if Method is NCut else known)
    with pytest.raises(TypeError, match=r"Pass its \.X"):
        model.predict(data)


def test_the_graph_is_built_once_and_only_when_needed(blobs, known):
    X, _ = blobs
    built = []

    class Counting(Affinity):
        def fit_transform(self, X, y=None):
            built.append(X.shape)
            return super().fit_transform(X, y)

    data = Prepared(X, affinity=Counting(8))
    assert not built
    METHODS["cpca"](3).fit(data, constraints=known)
    assert not built
    for Method in (CSC, NCut, E2CP):
        used = None if Method is NCut else known
        model = Method(3, random_state=0).fit(data, constraints=used)
        assert model.affinity_matrix_ is data.W
        assert model.affinity_ is data.affinity_
    assert len(built) == 1


def test_a_precomputed_graph_is_checked_once(blobs, known):
    W = Affinity().fit_transform(blobs[0])
    data = Prepared(W, affinity="precomputed")
    for affinity in (None, "precomputed"):
        model = CSC(3, affinity=affinity, random_state=0).fit(data, constraints=known)
        assert model.affinity_ is None
        assert_array_equal(model.predict(W[:10]), model.labels_[:10])
    with pytest.raises(ValueError, match="negative"):
        Prepared(csr_array(-W), affinity="precomputed")


def test_refused(blobs):
    X, _ = blobs
    data = Prepared(X)
    with pytest.raises(ValueError, match="Give it to Prepared"):
        CSC(3, affinity=Affinity(5)).fit(data)
    with pytest.raises(ValueError, match="not 'full'"):
        Prepared(X, affinity="full")
    with pytest.raises(ValueError, match="needs dense features"):
        METHODS["cpca"](3).fit(Prepared(csr_array(X)))
    with pytest.raises(ValueError, match="the data are a graph"):
        METHODS["cpca"](3).fit(Prepared(Affinity().fit_transform(X), affinity="precomputed"))
    with pytest.raises(ValueError, match="NaN"):
        Prepared(np.full((3, 2), np.nan))


def test_feature_names_are_kept(blobs):
    pandas = pytest.importorskip("pandas", reason="needs the extra 'frames'")
    frame = pandas.DataFrame(blobs[0], columns=list("abcd"))
    model = NCut(3, random_state=0).fit(Prepared(frame))
    assert model.feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("Method", [NCut, SpectralLearning, CSC, METHODS["signed"], E2CP])
def test_a_later_fit_starts_from_the_vectors_of_an_earlier_one(Method):
    rng = np.random.RandomState(1)
    y = np.repeat(np.arange(4), 1_000)
    X = rng.normal(size=(4_000, 3)) + 5 * rng.normal(size=(4, 3))[y]
    known = [Constraints.sample(y, 60, random_state=s) for s in (0, 1)]
    data = Prepared(X)
    used = None if Method is NCut else known[1]
    Method(4, random_state=0).fit(data, constraints=None if Method is NCut else known[0])
    warm = Method(4, random_state=0).fit(data, constraints=used)
    cold = Method(4, random_state=0).fit(X, constraints=used)
    assert adjusted_rand_score(cold.labels_, warm.labels_) > 0.995
    assert warm.result_.converged
    assert np.allclose(cold.result_.eigenvalues, warm.result_.eigenvalues, atol=1e-5)


def test_only_missing_columns_are_computed():
    A = csr_array(np.random.RandomState(0).uniform(size=(6, 6)))
    asked = []

    def compute(columns):
        asked.append(columns.tolist())
        return A[:, columns]

    warm = WarmStarts()
    for wanted in ([1, 4], [0, 4, 5], [1, 4], [0, 1, 4, 5]):
        found = warm.columns((0.5, 1e-4), np.array(wanted), compute)
        assert_array_equal(found.toarray(), A.toarray()[:, wanted])
    assert asked == [[1, 4], [0, 5]]
    assert warm.columns((0.8, 1e-4), np.empty(0, dtype=np.intp), compute).shape == (6, 0)


def test_the_number_of_columns_has_a_limit(monkeypatch):
    monkeypatch.setattr(warm_module, "MOST_ENTRIES", 20)
    A = csr_array(np.ones((6, 6)))
    asked = []

    def compute(columns):
        asked.append(columns.tolist())
        return A[:, columns]

    warm = WarmStarts()
    for wanted in ([0, 1, 2], [2, 3], [3], [0, 3]):
        found = warm.columns((0.5, 1e-4), np.array(wanted), compute)
        assert_array_equal(found.toarray(), np.ones((6, len(wanted))))
    # After the second call only its own columns are left.
    assert asked == [[0, 1, 2], [3], [0]]


@pytest.mark.parametrize("key", ["sl", "csc", "signed", "e2cp", "srcp"])
def test_later_fits_of_large_data_are_those_of_new_data(key, monkeypatch):
    # Filtering, as from 10,000 samples on.
    monkeypatch.setattr("linkwise.linalg.eigen.CHEBYSHEV_FROM", 1_000)
    rng = np.random.RandomState(2)
    y = np.repeat(np.arange(4), 900)
    X = rng.normal(size=(3_600, 4)) + 4 * rng.normal(size=(4, 4))[y]
    data = Prepared(X)
    for n_pairs, seed in ((200, 0), (210, 0), (200, 1), (20, 2)):
        known = Constraints.sample(y, n_pairs, random_state=seed)
        warm = METHODS[key](4, random_state=0).fit(data, constraints=known)
        cold = METHODS[key](4, affinity="precomputed", random_state=0)
        cold.fit(data.W, constraints=known)
        assert warm.result_.converged
        assert_allclose(warm.result_.eigenvalues, cold.result_.eigenvalues, atol=1e-8)
        assert adjusted_rand_score(cold.labels_, warm.labels_) > 0.999


def test_cold_data_share_the_graph_and_nothing_that_solvers_found(blobs):
    data = Prepared(blobs[0])
    CSC(2, random_state=0).fit(data)
    cold = data.cold()
    assert cold.W is data.W
    assert cold.warm.adjacency.vectors is None
    CSC(2, random_state=0).fit(cold)
    assert cold.warm.adjacency.vectors is not data.warm.adjacency.vectors
