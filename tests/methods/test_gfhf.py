"""GFHF: Zhu, Ghahramani & Lafferty 2003, in the notation of Wang; and seeds from constraints."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, make_blobs
from sklearn.semi_supervised import LabelPropagation

from linkwise import Affinity, Constraints, NCut
from linkwise.exceptions import ConstraintsIgnoredWarning
from linkwise.methods._labels import label_seeds
from linkwise.methods.gfhf import GFHF, class_mass_normalized, gfhf
from linkwise.methods.llgc import LLGC
from linkwise.methods.poisson import Poisson

EVERY = pytest.mark.parametrize("Method", [GFHF, LLGC, Poisson])


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(120, centers=3, cluster_std=2.0, random_state=3)


def partly(y, step):
    partial = np.full(y.size, -1)
    partial[::step] = y[::step]
    return partial


def test_equation_2_and_the_harmonic_property(blobs):
    X, y = blobs
    partial = partly(y, 10)
    W = Affinity().fit_transform(X)
    result = gfhf(W, Constraints.from_labels(partial), 3)
    ll, u = np.flatnonzero(partial >= 0), np.flatnonzero(partial < 0)
    P = W.toarray() / W.toarray().sum(axis=1)[:, None]
    y_l = np.eye(3)[partial[ll]]
    f_u = np.linalg.solve(np.eye(u.size) - P[np.ix_(u, u)], P[np.ix_(u, ll)] @ y_l)  # (2)
    assert_allclose(result.embedding[u], f_u, atol=1e-9)
    assert_array_equal(result.embedding[ll], y_l)
    assert_allclose((P @ result.embedding)[u], result.embedding[u], atol=1e-9)
    assert_array_equal(result.labels, result.embedding.argmax(axis=1))
    f = result.embedding
    energy = (W.toarray() * ((f[:, None] - f[None]) ** 2).sum(axis=2)).sum() / 2
    assert result.objective == pytest.approx(energy)
    assert result.residuals.max() < 1e-9


def test_equals_scikit_learn_on_a_full_graph():
    X, y = make_blobs(80, centers=3, cluster_std=2.0, random_state=0)
    partial = partly(y, 8)
    model = LabelPropagation(gamma=0.5, max_iter=100_000, tol=1e-12).fit(X, partial)
    found = GFHF(3, affinity=Affinity(None, scale=1.0)).fit(
        X, constraints=Constraints.from_labels(partial)
    )
    # scikit-learn's walk may also stay: its graph has loops of weight 1, which change nothing
    # about which label is met first.
    assert_allclose(found.label_distributions_, model.label_distributions_, atol=1e-6)


def test_class_mass_normalisation():
    F = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.7, 0.3]])
    seeds = label_seeds(Constraints.from_labels([0, 1, -1, -1]), 2)
    G = class_mass_normalized(F, seeds)
    raw = F * (np.array([0.5, 0.5]) / np.array([1.6, 0.4]))
    assert_allclose(G, raw / raw.sum(axis=1, keepdims=True))
    assert_array_equal(G.argmax(axis=1), [0, 1, 0, 1])


def test_class_mass_helps_when_labels_are_few():
    X, y = load_digits(return_X_y=True)
    W = Affinity(10).fit_transform(X)
    shares = {False: [], True: []}
    for seed in range(5):
        rng = np.random.RandomState(seed)
        partial = np.full(y.size, -1)
        for c in range(10):
            partial[rng.choice(np.flatnonzero(y == c))] = c
        for class_mass, found in shares.items():
            labels = gfhf(W, Constraints.from_labels(partial), 10, class_mass=class_mass).labels
            found.append((labels == y).mean())
    assert np.mean(shares[True]) > np.mean(shares[False]) + 0.02


# What all label methods share -------------------------------------------------------------------


@EVERY
def test_label_values_keep_their_order(Method, blobs):
    X, y = blobs
    partial = partly(y, 10)
    plain = Method(3).fit(X, constraints=Constraints.from_labels(partial))
    named = np.where(partial < 0, -1, np.array([4, 7, 90])[partial])
    assert_array_equal(
        plain.labels_, Method(3).fit(X, constraints=Constraints.from_labels(named)).labels_
    )
    assert (plain.labels_ == y).mean() > 0.9


@EVERY
def test_order_of_samples_does_not_matter(Method, blobs):
    X, y = blobs
    partial = partly(y, 10)
    order = np.random.RandomState(0).permutation(y.size)
    straight = Method(3).fit(X, constraints=Constraints.from_labels(partial))
    shuffled = Method(3).fit(X[order], constraints=Constraints.from_labels(partial[order]))
    assert_allclose(shuffled.label_distributions_, straight.label_distributions_[order], atol=1e-8)


@EVERY
def test_dense_and_sparse_graphs_agree(Method, blobs):
    X, y = blobs
    known = Constraints.from_labels(partly(y, 10))
    W = Affinity().fit_transform(X)
    sparse, dense = (
        Method(3, affinity="precomputed").fit(form, constraints=known) for form in (W, W.toarray())
    )
    assert_allclose(sparse.label_distributions_, dense.label_distributions_, atol=1e-8)


@pytest.mark.filterwarnings("ignore::linkwise.exceptions.ConstraintsIgnoredWarning")
@EVERY
def test_without_knowledge_it_is_ncut(Method, blobs):
    X, y = blobs
    expected = NCut(3, random_state=0).fit(X).labels_
    model = Method(3, random_state=0).fit(X)
    assert_array_equal(model.labels_, expected)
    assert_array_equal(model.label_distributions_, np.eye(3)[expected])
    faint = Constraints.sample(y, 30, random_state=0).with_belief(0.5)
    assert_array_equal(Method(3, random_state=0).fit(X, constraints=faint).labels_, expected)


@EVERY
def test_prediction(Method, blobs):
    X, y = blobs
    model = Method(3).fit(X[:90], constraints=Constraints.from_labels(partly(y, 10)[:90]))
    assert_array_equal(model.predict(X[:90]), model.labels_)
    assert (model.predict(X[90:]) == y[90:]).mean() > 0.85
    similarity = model.affinity_.extend(X[90:])
    mean = similarity.toarray() @ model.label_distributions_
    assert_array_equal(model.predict(X[90:]), mean.argmax(axis=1))


def test_prediction_averages_distributions_instead_of_votes():
    path = np.diag(np.ones(5), 1)
    known = Constraints.from_labels([0, -1, -1, -1, -1, 1])
    model = GFHF(2, affinity="precomputed").fit(path + path.T, constraints=known)
    assert_allclose(model.label_distributions_[:, 1], np.arange(6) / 5)
    # Sample 2 is of class 0, but only by 0.6 to 0.4; sample 5 is wholly of class 1.
    assert_array_equal(model.predict([[0, 0, 2, 0, 0, 1], [0, 0, 2, 0, 0, 0]]), [1, 0])


@EVERY
def test_all_or_all_but_one_sample_labelled(Method, blobs):
    X, y = blobs
    for hidden in ([], [5], [0, 119]):
        partial = y.copy()
        partial[hidden] = -1
        model = Method(3).fit(X, constraints=Constraints.from_labels(partial))
        assert np.isfinite(model.label_distributions_).all()
        if Method is GFHF:
            known = partial >= 0
            assert_array_equal(model.labels_[known], y[known])


@EVERY
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
@pytest.mark.parametrize("form", [csr_array, np.array], ids=["sparse", "dense"])
def test_a_disconnected_graph_and_components_without_labels(Method, form):
    # Cliques of 4, 4 and 3 vertices, and one vertex alone.
    W = np.zeros((12, 12))
    for part in (slice(0, 4), slice(4, 8), slice(8, 11)):
        W[part, part] = 1
    np.fill_diagonal(W, 0)
    partial = np.full(12, -1)
    partial[[0, 4, 5]] = [0, 1, 1]
    model = Method(2, affinity="precomputed").fit(
        form(W), constraints=Constraints.from_labels(partial)
    )
    # No label reaches the last two components: they get the proportions of the labels.
    assert_array_equal(model.labels_, [0] * 4 + [1] * 8)
    assert_allclose(model.label_distributions_[8:], [[1 / 3, 2 / 3]] * 4)


@EVERY
@pytest.mark.filterwarnings("ignore::linkwise.exceptions.DisconnectedGraphWarning")
def test_a_graph_without_edges(Method):
    known = Constraints.from_labels([0, 1, 1, -1])
    model = Method(2, affinity="precomputed").fit(np.zeros((4, 4)), constraints=known)
    assert_array_equal(model.labels_, [0, 1, 1, 1])


@EVERY
@pytest.mark.parametrize("gap", [1.0, 1e-8, 1e-13, 1e-40, 1e-300])
def test_nearly_disconnected_graphs(Method, gap):
    W = np.kron(np.eye(2), np.ones((5, 5)))
    np.fill_diagonal(W, 0)
    W[4, 5] = W[5, 4] = gap
    partial = np.full(10, -1)
    partial[[0, 9]] = [1, 0]
    model = Method(2, affinity="precomputed").fit(W, constraints=Constraints.from_labels(partial))
    assert_array_equal(model.labels_, [1] * 5 + [0] * 5)


@EVERY
def test_fewer_labels_than_clusters_are_reported(Method, blobs):
    X, y = blobs
    partial = partly(y, 10)
    partial[partial == 2] = -1
    with pytest.warns(UserWarning, match="name 2 classes, but n_clusters is 3"):
        model = Method(3).fit(X, constraints=Constraints.from_labels(partial))
    assert model.label_distributions_.shape == (120, 2)


@EVERY
def test_one_class_alone(Method, blobs):
    partial = np.full(120, -1)
    partial[:3] = 5
    with pytest.warns(UserWarning, match="name 1 classes"):
        model = Method(2).fit(blobs[0], constraints=Constraints.from_labels(partial))
    assert_array_equal(model.labels_, 0)


# Seeds ------------------------------------------------------------------------------------------


def seeds(n, k, **given):
    return label_seeds(Constraints(n, **given), k).class_of.tolist()


def test_labels_hold_for_must_linked_samples():
    labels = [3, -1, -1, 5, -1]
    assert seeds(5, 2, must_link=[(0, 1), (1, 2)], labels=labels) == [0, 0, 0, 1, -1]


def test_pairs_alone_name_classes():
    # Groups {1, 2, 4} and {0, 3} are apart: the classes, numbered by their first samples.
    pairs = {"must_link": [(1, 2), (2, 4), (0, 3)], "cannot_link": [(3, 4)]}
    assert seeds(6, 2, **pairs) == [0, 1, 1, 0, 1, -1]


def test_the_largest_groups_that_are_apart_are_taken():
    pairs = {
        "must_link": [(2, 3), (3, 4), (5, 6)],
        "cannot_link": [(0, 1), (4, 5)],
    }
    assert seeds(7, 2, **pairs) == [-1, -1, 0, 0, 0, 1, 1]


def test_exclusion_decides_groups():
    # 0, 1 and 2 are apart; 3 is apart from 0 and 1; 4 from 3 and 0.
    pairs = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (3, 4), (0, 4)]
    assert seeds(6, 3, cannot_link=pairs) == [0, 1, 2, 2, 1, -1]
    # For two clusters a chain of cannot-links alternates.
    assert seeds(5, 2, cannot_link=[(0, 1), (1, 2), (2, 3)]) == [0, 1, 0, 1, -1]


def test_pairs_add_the_classes_that_labels_leave_out():
    found = seeds(5, 3, labels=[7, 9, -1, -1, -1], cannot_link=[(0, 2), (1, 2)])
    assert found == [0, 1, 2, -1, -1]


def test_labels_count_like_the_pairs_they_imply(blobs):
    _, y = blobs
    partial = partly(y, 10)
    i, j = np.triu_indices(y.size, 1)
    both = (partial[i] >= 0) & (partial[j] >= 0)
    pairs, same = np.column_stack([i, j])[both], (partial[i] == partial[j])[both]
    listed = Constraints(y.size, pairs[same], pairs[~same])
    by_labels = label_seeds(Constraints.from_labels(partial), 3).class_of
    by_pairs = label_seeds(listed, 3).class_of
    # The same groups; their numbers differ, as pairs do not know the values of labels.
    assert len(set(zip(by_labels.tolist(), by_pairs.tolist(), strict=True))) == 4


def test_too_few_groups_are_refused_with_the_count():
    known = Constraints(6, must_link=[(0, 1)], cannot_link=[(1, 2), (3, 4)])
    with pytest.raises(ValueError, match=r"of the 3 clusters.*at most 2 were found.*from_labels"):
        label_seeds(known, 3)
    with pytest.raises(ValueError, match="at most 1 were found"):
        label_seeds(Constraints(6, must_link=[(0, 1)]), 2)


def test_uncertain_pairs_are_not_ignored_silently():
    X, y = make_blobs(60, centers=2, random_state=0)
    pairs = Constraints.sample(y, 10, random_state=0).with_belief(0.9)
    with pytest.warns(ConstraintsIgnoredWarning, match="10 pairs of belief below 1") as warned:
        GFHF(2, random_state=0).fit(X, constraints=pairs)
    assert warned[0].filename == __file__
