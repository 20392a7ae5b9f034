"""The prior: what the samples say for each unsupervised candidate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from canonical import in_canonical_order
from linkwise import Affinity, Auto, Constraints, Prepared
from linkwise.auto import prior
from linkwise.auto.constraint_model import ConstraintModel
from linkwise.auto.ensemble import ALONE
from linkwise.auto.evidence import Trial
from linkwise.auto.prior import FEW_SHARE, data_prior, few_valued, judged_coordinates, ncut_value
from linkwise.auto.views import Views


def view_of(X, k, candidates=ALONE, **options):
    """Return the samples with unsupervised partitions, and the prior of these."""
    views = Views(Prepared(X, **options))
    view = views.view(None if options else views.scalings[0], k)
    none = Constraints(len(view.rows))
    model = ConstraintModel.of(none, k)
    design = view.design(view.rows, model.vertices)
    trial = Trial(view, none, model, view.rows, lambda: design, found=view.partitions)
    for one in candidates:
        if one.is_used(trial):
            trial.found[one.name] = one.find(trial)
    view.prior = data_prior(view)
    return view


def heaviest(found):
    return max(found.weights, key=found.weights.get)


def test_compact_clusters_are_compared_by_their_likelihood():
    X, y = in_canonical_order(*make_blobs(200, centers=3, random_state=3))
    view = view_of(X, 3)
    found = view.prior
    assert found.kinds["compact"] > 0.9
    assert_allclose(sum(found.kinds.values()), 1.0)
    assert_allclose(sum(found.weights.values()), 1.0)
    assert found.weights.keys() == view.partitions.keys() == found.cut.keys()
    assert adjusted_rand_score(y, view.partitions[heaviest(found)].labels) == 1.0
    assert found.misfit.separate < prior.SEPARATE


@pytest.mark.parametrize(
    "shape",
    [
        make_moons(200, noise=0.05, random_state=0),
        make_circles(200, noise=0.04, factor=0.4, random_state=0),
    ],
    ids=["moons", "circles"],
)
def test_other_shapes_are_compared_by_their_cut(shape):
    X, y = in_canonical_order(*shape)
    view = view_of(X, 2)
    found = view.prior
    assert found.kinds["other shapes"] > 0.9
    assert adjusted_rand_score(y, view.partitions[heaviest(found)].labels) == 1.0
    assert adjusted_rand_score(y, view.partitions["k-means"].labels) < 0.6
    assert found.weights["k-means"] < 0.02


def test_where_clusters_overlap_two_candidates_are_preferred():
    X, _ = make_blobs(400, n_features=4, centers=8, cluster_std=4.0, random_state=2)
    found = view_of(X, 8).prior
    assert max(found.kinds, key=found.kinds.get) == "overlapping"
    assert found.misfit.mixture < found.misfit.separate
    best = sorted(found.weights, key=found.weights.get)[-2:]
    assert set(best) == {"spectral", "linear"}


def test_features_with_few_values_are_compared_by_their_likelihood():
    X = (make_blobs(150, centers=3, n_features=12, random_state=0)[0] > 0).astype(float)
    found = view_of(X, 3).prior
    assert found.misfit is None
    assert found.kinds == {"compact": 1.0, "overlapping": 0.0, "other shapes": 0.0}


def test_a_graph_has_no_features_to_describe():
    X, y = make_moons(150, noise=0.05, random_state=0)
    view = view_of(Affinity().fit_transform(X), 2, affinity="precomputed")
    found = view.prior
    assert found.misfit is None
    assert found.likelihood == {}
    assert found.kinds["other shapes"] == 1.0
    lowest = min(found.cut.values())
    assert_allclose(found.cut[heaviest(found)], lowest)
    assert adjusted_rand_score(y, view.partitions[heaviest(found)].labels) == 1.0


def test_weights_are_the_formula():
    """Those that seek what they are judged by pay, and what two graphs say is averaged."""
    kinds = {"compact": 0.5, "overlapping": 0.2, "other shapes": 0.3}
    fit = {"k-means": -1.0, "spectral": -1.02, "mixture, k-means": -0.97, "coarse cut": -1.01}
    cut = {"k-means": (0.5, 0.4), "spectral": (0.3, 0.4), "mixture, k-means": (0.6, 0.5)}
    cut["coarse cut"] = (0.28, 0.38)
    values = np.array(list(fit.values())), np.array(list(cut.values())).T
    found = prior._weights(list(fit), kinds, values[0], cuts=values[1] / 2)
    total = {}
    for name, value in fit.items():
        paid = 0.03 if name.startswith("mixture") else 0.0
        by_fit = np.exp((value - paid) / prior.TAU_LIKELIHOOD)
        factor = np.exp(0.3) if name == "coarse cut" else 1.0
        by_cut = (factor * (np.array(cut[name]) / 2 + prior.CUT_FLOOR)) ** (-1 / prior.TAU_CUT)
        total[name] = by_fit, *by_cut, float(name == "spectral")
    sums = np.sum(list(total.values()), axis=0)
    each = kinds["other shapes"] / 2
    for name, parts in total.items():
        shares = np.array(parts) / sums
        expected = shares @ [kinds["compact"], each, each, kinds["overlapping"]]
        assert_allclose(found[name], (1 - prior.FLAT) * expected + prior.FLAT / 4)


def test_a_stray_sample_has_no_mutual_neighbours():
    X = np.vstack((make_blobs(100, centers=1, random_state=0)[0], [[50.0, 50.0]]))
    views = Views(Prepared(X))
    near, mutual = views.view(views.scalings[0], 2).witnesses
    stray = int(np.flatnonzero(views.order == 100)[0])
    assert near[[stray]].nnz > 0
    assert mutual[[stray]].nnz == 0
    assert abs(mutual - mutual.T).sum() == 0
    assert mutual.sum(axis=1).max() <= 10


def test_no_candidate_is_without_a_chance():
    X, _ = make_moons(150, noise=0.05, random_state=0)
    weights = view_of(X, 2).prior.weights
    assert min(weights.values()) >= prior.FLAT / len(weights) - 1e-12


@pytest.mark.parametrize("as_graph", [np.asarray, csr_array])
def test_the_normalised_cut_is_that_of_its_definition(as_graph):
    rng = np.random.RandomState(0)
    W = np.triu(rng.uniform(size=(20, 20)), 1)
    W += W.T
    labels = rng.randint(3, size=20)
    expected = sum(W[labels == c][:, labels != c].sum() / W[labels == c].sum() for c in range(3))
    assert_allclose(ncut_value(as_graph(W), labels, 3), expected)
    assert_allclose(ncut_value(as_graph(W), labels, 4), expected + 1)  # one is empty


def test_what_few_values_are():
    rng = np.random.RandomState(0)
    binary = rng.randint(2, size=(200, 8)).astype(float)
    real = rng.normal(size=(200, 8))
    assert few_valued(binary).all()
    assert few_valued(csr_array(binary)).all()
    assert not few_valued(real).any()
    assert not few_valued(csr_array(real)).any()
    assert few_valued(np.hstack((binary[:, :4], real[:, :4]))).mean() < FEW_SHARE
    assert few_valued(np.hstack((binary[:, :7], real[:, :1]))).mean() >= FEW_SHARE
    assert not few_valued(rng.normal(size=(9, 2))).any()  # few samples, not few values


def test_the_prior_is_computed_once_for_all_partitions():
    X, _ = make_blobs(60, centers=2, random_state=0)
    data = Prepared(X)
    few = view_of(X, 2, ALONE[:2])
    assert len(few.prior.weights) == 2
    Auto(2, random_state=0).fit(data)
    view = Views.of(data).view(few.scaling, 2)
    first = view.prior
    assert first.weights.keys() == view.partitions.keys()
    Auto(2, random_state=0).fit(data)
    assert view.prior is first


@pytest.mark.parametrize("n_levels", [2, 3, 5])
def test_a_category_that_means_nothing_does_not_decide(n_levels):
    """Partitions by a category have no variance in its columns: Gaussians are judged elsewhere."""
    rng = np.random.RandomState(0)
    y = np.arange(200) % 3
    X = rng.normal(size=(3, 3))[y] * 4 + rng.normal(size=(200, 3)) * 0.6
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = np.hstack((X, np.eye(n_levels)[rng.randint(n_levels, size=200)]))
    assert adjusted_rand_score(y, Auto(3, random_state=0).fit(X).labels_) == 1.0


def test_nearly_constant_features_are_judged_with_the_others():
    """A rare value makes no cluster, so leaving its feature out would only lose what it tells."""
    rng = np.random.RandomState(0)
    X = np.column_stack((rng.normal(size=(200, 6)), np.arange(200) < 6, np.arange(200) % 2))
    view = view_of(X, 2)
    few = few_valued(X)
    assert few.tolist() == 6 * [False] + [True, True]
    assert judged_coordinates(view, few).shape[1] == 7
    assert_allclose(
        judged_coordinates(view, few & (np.arange(8) == 6)), view.coordinates[view.rows]
    )
