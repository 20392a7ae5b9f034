"""Checks that every registered method must pass: scikit-learn's, and ours."""

from __future__ import annotations

import pickle
import re
import warnings
from functools import cache
from inspect import Parameter, signature
from pathlib import Path

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import linkwise
from linkwise import METHODS, Affinity, ConflictError, Constraints
from linkwise.datasets import make_xor
from linkwise.exceptions import ConstraintsIgnoredWarning, DisconnectedGraphWarning

ROOT = Path(__file__).resolve().parents[1]


def each_method(is_meant):
    """Run a test for every method of this kind; its key is the id, for ``pytest -k <key>``."""
    meant = {key: Method for key, Method in METHODS.items() if is_meant(Method)}
    return pytest.mark.parametrize("Method", meant.values(), ids=meant)


def uses_constraints(Method):
    return bool(Method.takes)


def arguments(Method):
    """Return the names of what a method is given; one without a function is given everything."""
    if not hasattr(Method, "solve"):
        return {"X", "W", "constraints", "prepared"}
    return signature(Method.solve).parameters.keys()


def takes_a_graph(Method):
    # Projections work on the features: they have no `affinity` that could be chosen or given.
    return "affinity" in signature(Method).parameters


every_method = each_method(lambda _: True)
constrained_method = each_method(uses_constraints)
# Methods that weigh contradictory pairs instead of refusing them have tests of their own.
strict_method = each_method(lambda Method: not Method().accepts_contradictions)
graph_method = each_method(takes_a_graph)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=3, cluster_std=1.0, random_state=3)


@pytest.fixture(scope="module")
def known(blobs):
    # Enough pairs for three mutually separated groups, which label methods take as classes.
    return Constraints.sample(blobs[1], 150, random_state=0)


@pytest.fixture(scope="module")
def graph(blobs):
    return Affinity().fit_transform(blobs[0])


@pytest.fixture(scope="module")
def fitted(blobs, known, graph):
    """Fit a method once for all tests that only look at the model."""

    @cache
    def fit(Method, *, constrained=False, precomputed=False):
        data, given = (graph, {"affinity": "precomputed"}) if precomputed else (blobs[0], {})
        used = known if constrained and uses_constraints(Method) else None
        return Method(3, random_state=0, **given).fit(data, constraints=used)

    return fit


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1.0


# These checks set n_clusters=1, which linkwise refuses: one cluster answers no question. They are
# run below with two clusters instead.
SET_ONE_CLUSTER = {
    "check_dont_overwrite_parameters",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_methods_subset_invariance",
}


# Every estimator with probabilities is one to these.
TAKES_FOR_CLASSIFIER = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")


def asks_for_another_estimator(estimator, check):
    # `test_auto` looks at sparse data itself
    takes_for_classifier = hasattr(estimator, "predict_proba") and check in TAKES_FOR_CLASSIFIER
    return check in SET_ONE_CLUSTER or takes_for_classifier


SCIKIT_LEARN_CHECKS = [
    pytest.param(*given, id=f"{key}-{given[1].func.__name__}")
    for key, Method in METHODS.items()
    for given in estimator_checks.estimator_checks_generator(Method(), mark="xfail")
]


@pytest.mark.parametrize(("estimator", "check"), SCIKIT_LEARN_CHECKS)
def test_scikit_learn_contract(estimator, check):
    if asks_for_another_estimator(estimator, check.func.__name__):
        with pytest.raises((AssertionError, ValueError)):
            check(estimator)
    else:
        check(estimator)


def never_one_cluster(Method):
    """Return a subclass for which setting n_clusters=1 means 2."""

    def set_attribute(self, name, value):
        Method.__setattr__(self, name, 2 if (name, value) == ("n_clusters", 1) else value)

    changed = {"__setattr__": set_attribute, "__init__": Method.__init__}
    return type(Method.__name__, (Method,), changed)


@every_method
@pytest.mark.parametrize("check", sorted(SET_ONE_CLUSTER))
def test_scikit_learn_contract_with_two_clusters(Method, check):
    getattr(estimator_checks, check)(Method.__name__, never_one_cluster(Method)())


# The contract of the library --------------------------------------------------------------------


@each_method(lambda Method: hasattr(Method, "solve"))
def test_function_and_estimator_agree_on_parameters(Method):
    shell = {n: p.default for n, p in signature(Method).parameters.items()}
    for name, p in signature(Method.solve).parameters.items():
        is_setting = name not in {"W", "warm", "prepared"}  # which come with the data
        if p.kind is Parameter.KEYWORD_ONLY and is_setting:
            assert shell[name] == p.default, name


@every_method
def test_every_method_is_public_and_has_a_page_and_a_test(Method):
    key = next(key for key, value in METHODS.items() if value is Method)
    assert getattr(linkwise, Method.__name__) is Method
    assert (ROOT / "docs" / "methods" / f"{key}.md").is_file()
    package = Method.__module__.split(".")[1]  # methods, or one of its own
    assert (ROOT / "tests" / package / f"test_{key}.py").is_file()


@every_method
def test_every_method_states_its_facts(Method):
    assert isinstance(Method.family, str)
    assert Method.enforcement
    assert set(Method.takes) <= {"pairs", "labels"}
    assert bool(Method.takes) == ("constraints" in arguments(Method))
    assert Method.max_samples is None or Method.max_samples > 0
    references = Method.__doc__.partition("References\n----------\n")[2].partition("\n\n")[0]
    if Method.paper is None:
        assert not references
    else:
        *authors, year = Method.paper.replace(" et al.", "").replace(" &", "").split()
        assert all(author in references for author in authors), references
        assert year in references


@every_method
def test_the_docstring_describes_every_parameter_and_attribute(Method):
    described = Method.__doc__.partition("Parameters\n----------\n")[2]
    parameters, _, attributes = described.partition("\n\nAttributes\n----------\n")
    names = re.findall(r"^(\w+) : \S.*\n    \S", parameters, re.MULTILINE)
    assert names == list(signature(Method).parameters)
    attributes = attributes.partition("\n\n")[0]
    assert re.findall(r"^\w+$", attributes, re.MULTILINE) == []
    for name in re.findall(r"^(\w+) :", attributes, re.MULTILINE):
        assert name.endswith("_")
    assert {"labels_", "result_", "n_features_in_"} <= set(re.findall(r"^\w+", attributes, re.M))
    assert ("\naffinity_ : " in attributes) == ("W" in arguments(Method))


@every_method
def test_every_parameter_has_allowed_values(Method):
    assert list(Method._parameter_constraints) == list(signature(Method).parameters)


@every_method
def test_true_labels_passed_for_scoring_are_not_supervision(Method, blobs, fitted):
    X, y = blobs
    shuffled = np.random.RandomState(1).permutation(y)
    assert_array_equal(
        fitted(Method).labels_,
        Method(3, random_state=0).fit(X, shuffled).labels_,
    )


@every_method
def test_result_is_complete(Method, fitted):
    model = fitted(Method)
    assert_array_equal(model.labels_, model.result_.labels)
    assert set(model.labels_) == {0, 1, 2}
    assert model.n_features_in_ == 2
    if "W" in arguments(Method):
        assert model.affinity_matrix_.shape == (90, 90)
    if model.result_.embedding is not None:
        assert model.embedding_.shape[0] == 90
    assert model.result_.converged
    if model.result_.residuals is not None:  # of an eigensolver
        assert model.result_.residuals.max() < 1e-5
    assert "n_clusters=3" in repr(model.result_)


@every_method
def test_same_seed_same_answer(Method, blobs, known):
    used = known if uses_constraints(Method) else None
    first, second = (
        Method(3, random_state=7).fit(blobs[0], constraints=used).result_ for _ in range(2)
    )
    assert_array_equal(first.labels, second.labels)
    assert_array_equal(first.embedding, second.embedding)


@pytest.mark.parametrize("key", ["ncut", "gfhf", "sclc"])
def test_a_warning_about_ignored_constraints_names_the_line_of_fit(key, blobs):
    known = Constraints(90, [(0, 1)], must_link_belief=0.5)
    with pytest.warns(ConstraintsIgnoredWarning) as caught:
        METHODS[key](3, random_state=0).fit(blobs[0], constraints=known)
    assert caught[0].filename == __file__


@constrained_method
def test_fit_predict_passes_the_constraints_on(Method, blobs, known, fitted):
    X, _ = blobs
    assert_array_equal(
        Method(3, random_state=0).fit_predict(X, constraints=known),
        fitted(Method, constrained=True).labels_,
    )


@graph_method
def test_features_and_precomputed_graph_give_one_answer(Method, graph, fitted):
    from_features, from_graph = fitted(Method), fitted(Method, precomputed=True)
    from_dense = Method(3, affinity="precomputed", random_state=0).fit(graph.toarray())
    assert_array_equal(from_features.labels_, from_graph.labels_)
    assert same_partition(from_graph.labels_, from_dense.labels_)


@graph_method
def test_a_graph_is_never_changed(Method, graph, known):
    W = graph.copy()
    W.setdiag(1.0)
    before = W.toarray()
    used = known if uses_constraints(Method) else None
    Method(3, affinity="precomputed", random_state=0).fit(W, constraints=used)
    assert_array_equal(W.toarray(), before)


@graph_method
def test_self_similarities_do_not_count(Method, graph, fitted):
    loops = graph.copy()
    loops.setdiag(5.0)
    model = Method(3, affinity="precomputed", random_state=0).fit(loops)
    assert_array_equal(fitted(Method, precomputed=True).labels_, model.labels_)


# Invariances ------------------------------------------------------------------------------------


def moved(constraints, position):
    """Return the same pairs when sample `i` stands at `position[i]`."""
    return Constraints(
        constraints.n_samples,
        position[constraints.must_link],
        position[constraints.cannot_link],
        must_link_belief=constraints.must_link_belief,
        cannot_link_belief=constraints.cannot_link_belief,
    )


@every_method
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_order_of_samples_does_not_matter(Method, blobs, known, fitted, seed):
    X, _ = blobs
    order = np.random.RandomState(seed).permutation(len(X))
    there = moved(known, np.argsort(order)) if uses_constraints(Method) else None
    straight = fitted(Method, constrained=True).labels_
    shuffled = Method(3, random_state=0).fit(X[order], constraints=there).labels_
    assert same_partition(straight[order], shuffled)


@graph_method
@pytest.mark.parametrize("factor", [1e-100, 1e-10, 0.5, 1e4, 1e100])
def test_unit_of_the_affinity_does_not_matter(Method, graph, known, fitted, factor):
    used = known if uses_constraints(Method) else None
    model = Method(3, affinity="precomputed", random_state=0)
    labels = fitted(Method, constrained=True, precomputed=True).labels_
    assert same_partition(labels, model.fit(factor * graph, constraints=used).labels_)


@constrained_method
def test_writing_of_pairs_does_not_matter(Method, blobs, known, fitted):
    X, _ = blobs
    rewritten = Constraints(
        len(X),
        np.vstack([known.must_link[::-1, ::-1], known.must_link]),
        np.vstack([known.cannot_link, known.cannot_link[:, ::-1]]),
    )
    assert_array_equal(
        fitted(Method, constrained=True).labels_,
        Method(3, random_state=0).fit(X, constraints=rewritten).labels_,
    )


def made_for_constraints(Method):
    """Return an estimator, data that it divides otherwise without constraints, and the clusters."""
    if takes_a_graph(Method):
        return Method(2, random_state=0), *make_xor(25, spread=0.3, random_state=1)
    # No linear projection separates XOR. These are four groups at the corners of a rectangle: its
    # long sides are the clusters, where the features alone make them of the short sides.
    corners = np.array([[0, 0], [0, 4], [6, 0], [6, 4]])
    X, corner = make_blobs(100, centers=corners, cluster_std=0.7, random_state=0)
    # A projection has to choose one direction: with two it keeps the plane.
    given = {"n_components": 1} if "n_components" in signature(Method).parameters else {}
    return Method(2, random_state=0, **given), X, corner % 2


@constrained_method
def test_constraints_improve_what_they_are_about(Method):
    model, X, y = made_for_constraints(Method)
    known = Constraints.sample(y, 60, random_state=0)
    without = model.fit(X).labels_
    with_them = model.fit(X, constraints=known).labels_
    assert known.satisfied(with_them) > known.satisfied(without)


@constrained_method
def test_uncertain_pairs_change_the_result_or_are_reported(Method):
    model, X, y = made_for_constraints(Method)
    doubtful = Constraints.sample(y, 60, random_state=0).with_belief(0.5)
    without = model.fit(X).result_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with_them = model.fit(X, constraints=doubtful).result_
    are_reported = any(w.category is ConstraintsIgnoredWarning for w in caught)
    is_same = all(
        np.array_equal(getattr(without, name), getattr(with_them, name))
        for name in ("labels", "embedding")
    )
    assert are_reported or not is_same


@constrained_method
def test_labels_count_like_the_pairs_they_imply(Method, blobs):
    X, y = blobs
    partial = np.full(len(y), -1)
    partial[::10] = y[::10]
    labelled = Constraints.from_labels(partial)
    i, j = np.triu_indices(len(y), 1)
    both = (partial[i] >= 0) & (partial[j] >= 0)
    pairs, same = np.column_stack([i, j])[both], (partial[i] == partial[j])[both]
    listed = Constraints(len(y), pairs[same], pairs[~same])
    assert same_partition(
        Method(3, random_state=0).fit(X, constraints=labelled).labels_,
        Method(3, random_state=0).fit(X, constraints=listed).labels_,
    )


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.ConstraintsIgnoredWarning")
@constrained_method
def test_a_faint_belief_is_nearly_no_constraint(Method, blobs, known, fitted):
    X, _ = blobs
    faint = known.with_belief(1e-12)
    assert same_partition(
        fitted(Method).labels_,
        Method(3, random_state=0).fit(X, constraints=faint).labels_,
    )


AFFINITIES = {
    "default": None,
    "connectivity": Affinity(5, scale="connectivity"),
    "full": Affinity(None, scale=1.0),
    "radius": Affinity(radius=2.0),
}

# New samples ------------------------------------------------------------------------------------


@graph_method
@pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
def test_training_samples_are_predicted_as_fitted(Method, affinity):
    # Clusters overlap, so that some samples are outvoted by their neighbours.
    X, _ = make_blobs(90, centers=3, cluster_std=4.0, random_state=3)
    model = Method(3, affinity=affinity, random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES)
def test_one_sample_is_predicted_like_many(affinity):
    X, _ = make_blobs(60, centers=3, cluster_std=2.0, random_state=3)
    model = linkwise.CSC(3, affinity=affinity, random_state=0).fit(X[:40])
    one_by_one = [model.predict(X[i : i + 1])[0] for i in range(40, 60)]
    assert_array_equal(model.predict(X[40:]), one_by_one)


def test_near_neighbours_count_more_than_many():
    # Two samples nearby outvote three farther ones.
    X = np.array([[0.0], [0.1], [3.0], [3.1], [3.2], [9.0], [9.1], [9.2]])
    known = Constraints.from_labels([0, 0, 1, 1, 1, 1, 1, 1])
    model = linkwise.CSC(2, affinity=Affinity(5, scale=0.5), random_state=0).fit(
        X, constraints=known
    )
    assert model.labels_.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert model.predict([[0.7]]).tolist() == [0]


@every_method
def test_new_samples_join_the_cluster_around_them(Method):
    X, y = make_blobs(200, centers=3, cluster_std=0.5, random_state=3)
    model = Method(3, random_state=0).fit(X[:150])
    assert same_partition(np.concatenate([model.labels_, model.predict(X[150:])]), y)
    far_away = model.predict(X[:3] + 1e6)
    assert set(far_away) <= {0, 1, 2}


def test_a_method_without_a_graph_has_to_write_predict(blobs):
    class OnFeatures(linkwise.NCut):
        solve = staticmethod(lambda X: linkwise.Result(labels=np.arange(len(X)) % 2))

    model = OnFeatures().fit(blobs[0])
    with pytest.raises(NotImplementedError, match="writes its own predict"):
        model.predict(blobs[0])


@graph_method
def test_prediction_from_a_precomputed_graph(Method, graph, fitted):
    model = fitted(Method, precomputed=True)
    assert (model.predict(graph) == model.labels_).mean() > 0.95
    with pytest.raises(ValueError, match="5 features"):
        model.predict(np.ones((2, 5)))
    with pytest.raises(ValueError, match=r"must not be negative.*-1"):
        model.predict(-np.ones((2, 90)))
    lonely = np.ones((3, 90))
    lonely[1] = 0
    with pytest.raises(ValueError, match="New sample 1 has no affinity"):
        model.predict(lonely)


# scikit-learn's tools ---------------------------------------------------------------------------


@constrained_method
def test_cross_validation_restricts_the_constraints(Method, blobs, known):
    X, y = blobs
    with sklearn.config_context(enable_metadata_routing=True):
        model = Method(3, random_state=0).set_fit_request(constraints=True)
        folds = KFold(3, shuffle=True, random_state=0)
        grid = {"affinity": [Affinity(5), Affinity(10)]} if takes_a_graph(Method) else {}
        search = GridSearchCV(
            model, grid, scoring="adjusted_rand_score", cv=folds, error_score="raise"
        )
        search.fit(X, y, constraints=known)
    assert search.best_score_ > 0.9


@constrained_method
def test_constraints_travel_through_a_pipeline(Method, blobs, known):
    X, _ = blobs
    with sklearn.config_context(enable_metadata_routing=True):
        model = Method(3, random_state=0).set_fit_request(constraints=True)
        labels = make_pipeline(StandardScaler(), model).fit_predict(X, constraints=known)
    scaled = StandardScaler().fit_transform(X)
    assert_array_equal(labels, clone(model).fit(scaled, constraints=known).labels_)


@every_method
def test_a_fitted_model_can_be_stored(Method, blobs, fitted):
    model = fitted(Method)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(blobs[0]), model.labels_)


# Bad input --------------------------------------------------------------------------------------


def refuses(Method, X, error, match, *, k=3, constraints=None, affinity=None):
    given = {"affinity": affinity} if takes_a_graph(Method) else {}
    with pytest.raises(error, match=match):
        Method(k, random_state=0, **given).fit(X, constraints=constraints)


@every_method
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_inf_in_X(Method, blobs, bad):
    X = blobs[0].copy()
    X[4, 1] = bad
    refuses(Method, X, ValueError, "NaN|infinity")


@every_method
def test_more_clusters_than_samples(Method, blobs):
    refuses(Method, blobs[0][:4], ValueError, "n_clusters=5 is more than the 4 samples", k=5)


@every_method
@pytest.mark.parametrize("k", [1, 0, -2, 2.5, "two"])
def test_fewer_than_two_clusters(Method, blobs, k):
    refuses(Method, blobs[0], ValueError, "'n_clusters' parameter", k=k)


@every_method
def test_constraints_for_another_number_of_samples(Method, blobs):
    wrong = Constraints(80, must_link=[(0, 1)])
    refuses(Method, blobs[0], ValueError, "about 80 samples, but X has 90", constraints=wrong)


@every_method
def test_constraints_of_another_type(Method, blobs):
    refuses(Method, blobs[0], TypeError, "linkwise.Constraints, got list", constraints=[(0, 1)])


@every_method
def test_constraints_given_as_y(Method, blobs, known):
    with pytest.raises(TypeError, match="Pass them as constraints="):
        Method(3, random_state=0).fit(blobs[0], known)


@graph_method
@pytest.mark.parametrize(
    "wrong", [{"scale": "rbf"}, {"scale": -1}, {"neighbors": 0}, {"radius": -1}]
)
def test_a_wrong_affinity_inside_the_method(Method, blobs, wrong):
    refuses(Method, blobs[0], ValueError, "parameter of Affinity", affinity=Affinity(**wrong))


@strict_method
def test_must_links_that_leave_too_few_groups(Method, blobs):
    chain = Constraints(4, must_link=[(0, 1), (1, 2), (2, 3)])
    refuses(Method, blobs[0][:4], ConflictError, r"only 1 group", k=2, constraints=chain)


@strict_method
def test_contradiction_by_a_chain(Method, blobs):
    chain = Constraints(90, must_link=[(4, 7), (7, 9)], cannot_link=[(4, 9)])
    refuses(Method, blobs[0], ConflictError, "4 - 7 - 9", constraints=chain)


@strict_method
def test_a_clique_of_more_cannot_links_than_clusters(Method, blobs):
    clique = Constraints(90, cannot_link=[(i, j) for j in range(4) for i in range(j)])
    refuses(Method, blobs[0], ConflictError, "4", constraints=clique)


@strict_method
def test_an_odd_ring_for_two_clusters(Method, blobs):
    ring = Constraints(90, cannot_link=[(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    refuses(Method, blobs[0], ConflictError, "odd", k=2, constraints=ring)


@graph_method
def test_graph_that_is_not_symmetric(Method, graph):
    W = graph.toarray()
    W[3, 5], W[5, 3] = 0.25, 0.75
    for form in (W, csr_array(W)):
        refuses(Method, form, ValueError, r"symmetric.*0\.\d+.*W\.maximum", affinity="precomputed")


@graph_method
def test_graph_with_a_negative_weight(Method, graph):
    W = graph.toarray()
    W[3, 5] = W[5, 3] = -0.5
    for form in (W, csr_array(W)):
        refuses(Method, form, ValueError, r"W\[3, 5\] is -0.5", affinity="precomputed")


@graph_method
def test_graph_that_is_not_square(Method, blobs):
    refuses(Method, blobs[0], ValueError, r"square.*\(90, 2\)", affinity="precomputed")


@graph_method
def test_a_disconnected_graph_is_reported(Method):
    piece = np.ones((4, 4)) - np.eye(4)
    W = csr_array(np.kron(np.eye(2), piece))
    message = r"2 connected components \(sizes 4, 4\)"
    with pytest.warns(DisconnectedGraphWarning, match=message) as warned:
        labels = Method(2, affinity="precomputed", random_state=0).fit(W).labels_
    assert warned[0].filename == __file__
    assert_array_equal(labels, [0, 0, 0, 0, 1, 1, 1, 1])


@graph_method
def test_more_pieces_than_clusters_and_isolated_vertices(Method):
    W = np.zeros((12, 12))
    W[:5, :5] = W[5:9, 5:9] = 1
    np.fill_diagonal(W, 0)
    with pytest.warns(DisconnectedGraphWarning, match="5 connected components"):
        labels = Method(2, affinity="precomputed", random_state=0).fit(csr_array(W)).labels_
    assert_array_equal(labels[:9], [0] * 5 + [1] * 4)
    # To a cut, isolated vertices are as good anywhere.
    if Method not in (linkwise.ConstrainedCut, linkwise.COSC):
        # The largest piece stands alone, the rest is the other cluster.
        assert_array_equal(labels[9:], [1] * 3)


def test_constraints_are_never_ignored_silently(blobs, known):
    with pytest.warns(ConstraintsIgnoredWarning, match="NCut .* ignores") as warned:
        linkwise.NCut(3, random_state=0).fit(blobs[0], constraints=known)
    assert warned[0].filename == __file__
