"""The value: what it stores, what it refuses, and how it is counted, cut and copied."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from dataclasses import fields
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from linkwise.constraints import Constraints, Suspect, logic
from linkwise.constraints import table as table_module
from linkwise.constraints.table import make_suspects
from linkwise.exceptions import ConflictError, TooLargeError
from strategies import any_constraints, constraints_from_a_partition


def all_signed_pairs(c):
    """Every pair once per sign, as {(i, j): belief}; the slow twin of the counting code."""
    must = dict(zip(map(tuple, c.must_link.tolist()), c.must_link_belief.tolist(), strict=True))
    cannot = dict(
        zip(map(tuple, c.cannot_link.tolist()), c.cannot_link_belief.tolist(), strict=True)
    )
    if c.labels is not None:
        for i, j in combinations(np.flatnonzero(c.labels >= 0).tolist(), 2):
            (must if c.labels[i] == c.labels[j] else cannot)[i, j] = 1.0
    return must, cannot


def same(a, b):
    """Whether two constraints hold the same."""
    assert a.n_samples == b.n_samples
    for name in ("must_link", "cannot_link", "must_link_belief", "cannot_link_belief", "labels"):
        assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    return True


# Storing -----------------------------------------------------------------------------------


def test_pairs_are_ordered_sorted_and_merged_with_the_larger_belief():
    c = Constraints(5, must_link=[(3, 1), (0, 4), (1, 3)], must_link_belief=[0.2, 1, 0.7])
    assert_array_equal(c.must_link, [[0, 4], [1, 3]])
    assert_array_equal(c.must_link_belief, [1, 0.7])
    assert_array_equal(c.table.row[c.table.sign > 0], [1, 2])


@pytest.mark.parametrize("empty", [(), [], None, np.empty((0, 2)), np.empty(0), [[]]])
def test_nothing_is_fine(empty):
    c = Constraints(3, empty, empty, must_link_belief=0.5, cannot_link_belief=[])
    assert c.is_empty
    assert c.must_link.shape == c.cannot_link.shape == (0, 2)
    assert c.satisfied([0, 1, 2]) == 1.0
    assert c.n_violated([0, 0, 0]) == 0
    assert c.conflicts() == []
    c.check(1)
    assert c.closure().n_cannot_link == 0
    assert c.to_matrix().nnz == 0
    assert not c.constrained.any()


def test_whole_floats_unsigned_integers_and_objects_are_indices():
    for pairs in (
        [(0.0, 2.0)],
        np.array([[0, 2]], dtype=np.uint64),
        np.array([[0, 2]], dtype=object),
        np.array([[0, 2]], dtype=np.int8),
    ):
        c = Constraints(3, must_link=pairs)
        assert c.must_link.dtype == np.intp
        assert_array_equal(c.must_link, [[0, 2]])


def test_the_input_is_neither_kept_nor_changed():
    pairs, labels = np.array([[2, 0]]), np.array([0, 1, -1])
    c = Constraints(3, must_link=pairs, labels=labels)
    assert_array_equal(pairs, [[2, 0]])
    pairs[:], labels[:] = 1, 5
    assert_array_equal(c.must_link, [[0, 2]])
    assert_array_equal(c.labels, [0, 1, -1])


def test_it_is_frozen():
    c = Constraints(3, must_link=[(0, 1)], labels=[0, 0, 1])
    with pytest.raises(AttributeError):
        c.n_samples = 4
    for name in ("must_link", "cannot_link", "must_link_belief", "cannot_link_belief", "labels"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(c, name)[...] = 0


def test_the_table_holds_must_links_first_with_one_sign_convention():
    c = Constraints(
        5, [(3, 2), (1, 0), (0, 1)], [(4, 0)], must_link_belief=[0.5, 0.2, 0.7], labels=[0] * 5
    )
    assert c.table.pairs.tolist() == [[0, 1], [2, 3], [0, 4]]
    assert c.table.sign.tolist() == [1, 1, -1]
    assert c.table.belief.tolist() == [0.7, 0.5, 1]
    assert c.table.row.tolist() == [2, 0, 0]
    assert c.table.weight.tolist() == [0.7, 0.5, -1]
    assert all(not column.flags.writeable for column in c.table)
    assert np.shares_memory(c.must_link, c.table.pairs)
    assert c.is_violated([0, 1, 1, 1, 0]).tolist() == [True, False, True]
    assert c.subset(c.table.sign < 0).table.row.tolist() == [0]
    assert c.certain.table.pairs.tolist() == [[0, 4]]
    assert c.certain.certain is c.certain


def test_three_questions_of_logic_compute_facts_and_components_once(monkeypatch):
    counts = Counter()

    def counting(function):
        def counted(*args):
            counts[function.__name__] += 1
            return function(*args)

        return counted

    for name in ("facts_of", "components", "contradictions", "contract"):
        monkeypatch.setattr(logic, name, counting(getattr(logic, name)))
    c = Constraints(6, must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3), (3, 4)])
    first = c.closure()
    c.check(2)
    assert c.n_conflicts == len(c.conflicts()) == 0
    assert c.closure() is first
    assert c.components() is c.components()
    assert set(counts.values()) == {1}
    assert not c.components().flags.writeable
    assert set(vars(pickle.loads(pickle.dumps(c)))) == {f.name for f in fields(c)}
    assert c == pickle.loads(pickle.dumps(c))
    assert hash(c) == hash(pickle.loads(pickle.dumps(c)))


def test_suspects_name_pairs_and_labels_by_the_rows_that_were_given():
    c = Constraints(4, must_link=[(2, 3), (0, 1)], cannot_link=[(1, 2)], labels=[-1, 0, -1, 0])
    found = make_suspects(c, np.array([1, 4, 2]), probability=np.array([0.9, 0.5, 0.1]))
    assert found == (
        Suspect("must-link", (2, 3), 0, 0.9),
        Suspect("label", (3,), 3, 0.5),
        Suspect("cannot-link", (1, 2), 0, 0.1),
    )
    (resisting,) = make_suspects(c, np.array([0]), strength=np.array([np.inf]))
    assert (resisting.row, resisting.probability, resisting.strength) == (1, None, np.inf)


def test_copies_and_pickles_are_equal_and_frozen():
    c = Constraints(4, [(0, 1)], [(1, 3)], cannot_link_belief=0.5, labels=[-1, 0, 1, -1])
    assert copy.copy(c) is copy.deepcopy(c) is clone(c, safe=False) is c
    unpickled = pickle.loads(pickle.dumps(c))
    assert same(unpickled, c)
    assert not unpickled.must_link.flags.writeable
    assert unpickled.conflicts() == []


def test_labels_of_which_none_is_known_are_no_labels():
    assert Constraints(2, labels=[-1, -1]).labels is None
    assert Constraints.from_labels([-1]).is_empty


def test_repr_counts():
    c = Constraints(4, [(0, 1)], [(1, 3)], cannot_link_belief=0.5, labels=[-1, 0, 1, -1])
    assert repr(c) == (
        "Constraints(n_samples=4, must_link=1, cannot_link=1, uncertain=1, labelled=2 in 2 classes)"
    )


# Refusing ----------------------------------------------------------------------------------

OUT_OF_RANGE = (
    r"must_link\[1\] is \(2, 5\), but there are only 5 samples \(valid indices are 0\.\.4\)"
)
NO_PAIRS = r"but pairs have shape \(m, 2\)\. Write a list of pairs"


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        ([(0, 1), (2, 5)], IndexError, OUT_OF_RANGE),
        ([(0, -1)], IndexError, r"must_link\[0\] is \(0, -1\), but indices cannot be negative"),
        (np.array([[0, 2**63]], dtype=np.uint64), IndexError, "only 5 samples"),
        ([(0, 1e300)], IndexError, "only 5 samples"),
        ([(0, 2**70)], IndexError, "only 5 samples"),
        ([(0, 1), (3, 3)], ValueError, r"must_link\[1\] is \(3, 3\), a sample paired with itself"),
        ([0, 1, 2], ValueError, r"must_link has shape \(3,\), " + NO_PAIRS),
        ([(0, 1, 2)], ValueError, r"must_link has shape \(1, 3\), " + NO_PAIRS),
        ({(0, 1)}, ValueError, r"must_link has type set, " + NO_PAIRS),
        (3, ValueError, NO_PAIRS),
        ([(0, 1), (2,)], ValueError, "rows of different lengths"),
        ([(0, 1), (0, 1.5)], ValueError, r"must_link\[1\] is .*1\.5 is not a whole number"),
        ([(0, np.inf)], ValueError, "inf is not a whole number"),
        ([(0, np.nan)], ValueError, r"must_link\[0\].*nan is a missing value\. Leave out"),
        ([(0, None)], ValueError, r"must_link\[0\] is \(0, None\), but None is a missing value"),
        ([("a", "b")], TypeError, r"must_link\[0\] is \('a', 'b'\).*from_frame\(df, ids=names\)"),
        ([(True, False)], TypeError, "must_link holds booleans .*np.argwhere"),
        (np.array([[0, True]], dtype=object), TypeError, "True is not an integer"),
    ],
)
def test_wrong_pairs(pairs, error, message):
    with pytest.raises(error, match=message):
        Constraints(5, must_link=pairs)


@pytest.mark.parametrize(
    ("belief", "error", "message"),
    [
        ([1, 0], ValueError, r"cannot_link_belief\[1\] is 0, for the pair \(2, 4\).*\(0, 1\]"),
        (1.5, ValueError, r"cannot_link_belief is 1\.5, but a belief lies in \(0, 1\]"),
        ([0.5, -0.1], ValueError, r"cannot_link_belief\[1\] is -0\.1"),
        ([np.nan, 1], ValueError, r"cannot_link_belief\[0\] is nan"),
        ([1, 1, 1], ValueError, r"has shape \(3,\), but there are 2 pairs in cannot_link"),
        ([[1, 1]], ValueError, r"has shape \(1, 2\)"),
        (["high", "low"], TypeError, r"cannot_link_belief\[0\] is 'high'"),
        (True, TypeError, "cannot_link_belief is True"),
        ([0.5, None], TypeError, r"cannot_link_belief\[1\] is None"),
    ],
)
def test_wrong_beliefs(belief, error, message):
    with pytest.raises(error, match=message):
        Constraints(5, cannot_link=[(1, 0), (4, 2)], cannot_link_belief=belief)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 1, -2], ValueError, r"labels\[2\] is -2, but labels are 0, 1, 2.*Use -1"),
        ([0, 1], ValueError, r"labels has shape \(2,\).*n_samples = 3"),
        ([[0, 1, 2]], ValueError, "one-dimensional"),
        (["a", "b", 3], TypeError, r"labels mixes text and numbers: .*\[1\] is 'b'.*\[2\] is 3"),
        (["a", "b", -1], TypeError, r"\[2\] is -1.*Among names, write None or NaN for unknown"),
        ([-1.0, "a", None], TypeError, r"\[0\] is -1\.0.*Among names, write None or NaN"),
        ([True, 1, None], TypeError, "labels mixes booleans and numbers.*Give labels of one kind"),
        ([b"a", b"b", None], TypeError, r"labels\[0\] is b'a', .*integers, text or booleans"),
        ([0, 0.5, 1], ValueError, r"labels\[1\] is 0\.5, but 0\.5 is not a whole number"),
    ],
)
def test_wrong_labels(labels, error, message):
    with pytest.raises(error, match=message):
        Constraints(3, labels=labels)


def series(values, **options):
    return pytest.importorskip("pandas").Series(values, **options)


class Polars:
    """What a column of polars is to NumPy."""

    def __init__(self, values, categories=None):
        self.values = values
        if categories is not None:
            self.dtype = SimpleNamespace(categories=SimpleNamespace(to_list=lambda: categories))

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=object)


ANIMALS = ["dog", None, "cat", "dog"]


@pytest.mark.parametrize(
    ("make", "values", "classes"),
    [
        (lambda: [1, -1, 0, 1], [1, -1, 0, 1], None),
        (lambda: [1.0, np.nan, 0.0, 1.0], [1, -1, 0, 1], None),
        (lambda: [1, None, 0, -1], [1, -1, 0, -1], None),
        (lambda: series([1, None, 0, 1], dtype="Int64"), [1, -1, 0, 1], None),
        (lambda: series([1, None, 0, 1], dtype="category"), [1, -1, 0, 1], None),
        (lambda: ANIMALS, [1, -1, 0, 1], ["cat", "dog"]),
        (lambda: tuple(ANIMALS), [1, -1, 0, 1], ["cat", "dog"]),
        (lambda: ["dog", np.nan, "cat", " "], [1, -1, 0, -1], ["cat", "dog"]),
        (lambda: np.array(["dog", "", "cat", "dog"]), [1, -1, 0, 1], ["cat", "dog"]),
        (lambda: np.array(ANIMALS, dtype=object), [1, -1, 0, 1], ["cat", "dog"]),
        (lambda: Polars(ANIMALS), [1, -1, 0, 1], ["cat", "dog"]),
        (lambda: Polars(ANIMALS, ["fox", "dog", "cat"]), [0, -1, 1, 0], ["dog", "cat"]),
        (lambda: series(ANIMALS), [1, -1, 0, 1], ["cat", "dog"]),
        (lambda: series(ANIMALS, dtype="string"), [1, -1, 0, 1], ["cat", "dog"]),
        (lambda: series(ANIMALS, dtype="category"), [1, -1, 0, 1], ["cat", "dog"]),
        (lambda: [True, None, False, True], [1, -1, 0, 1], [False, True]),
        (lambda: np.array([True, False, False, True]), [1, 0, 0, 1], [False, True]),
        (lambda: series([True, None, False, True], dtype="boolean"), [1, -1, 0, 1], [False, True]),
    ],
)
def test_labels_as_tables_have_them(make, values, classes):
    c = Constraints.from_labels(make())
    assert c.labels.tolist() == values
    assert c.classes is classes is None or c.classes.tolist() == classes
    assert Constraints(4, labels=make()) == c
    assert Constraints.sample(make(), 1, random_state=0).n_pairs == 1


def test_names_of_labels_stay_with_the_constraints():
    pd = pytest.importorskip("pandas")
    sizes = pd.Categorical(["L", "S", None, "S"], categories=["S", "M", "L"])
    c = Constraints.from_labels(sizes)
    assert c.classes.tolist() == ["S", "L"]  # in their order; M is not used
    for same in (c.restrict([0, 3]), c.with_pairs([(0, 2)]), pickle.loads(pickle.dumps(c)), c[1:]):
        assert same.classes.tolist() == ["S", "L"]
    assert c != Constraints.from_labels([1, 0, -1, 0])
    assert Constraints.from_labels([None, None, ""]).is_empty
    with pytest.raises(ConflictError, match=r"2 different labels \(S, L\)"):
        c.check(1)
    (conflict,) = c.with_pairs([(0, 1)]).conflicts()
    assert conflict.labels == ("S", "L")
    assert "the labels S and L" in str(conflict)


@pytest.mark.parametrize("word", ["nan", "Unknown", "unassigned"])
def test_text_that_means_unknown_is_noticed(word):
    with pytest.warns(UserWarning, match=rf"the text '{word}' as a label \(2 such.* write None"):
        c = Constraints.from_labels(np.array(["a", word, "b", word]))
    assert sorted(c.classes.tolist()) == sorted(["a", "b", word])


@pytest.mark.parametrize("n", [0, -3])
def test_too_few_samples(n):
    with pytest.raises(ValueError, match=f"n_samples is {n}, but it must be at least 1"):
        Constraints(n)


@pytest.mark.parametrize("n", [2.0, "3", None, True, [(0, 1)]])
def test_samples_that_are_no_number(n):
    with pytest.raises(TypeError, match=r"n_samples is .* It comes first"):
        Constraints(n)


def test_too_many_samples():
    with pytest.raises(ValueError, match="at most 3037000499 samples are supported"):
        Constraints(10**10)


def test_a_pair_that_is_certain_both_ways_is_a_contradiction_like_others():
    c = Constraints(5, must_link=[(0, 1), (3, 1)], cannot_link=[(1, 3)])
    (conflict,) = c.conflicts()
    assert (conflict.pair, conflict.rows, conflict.cannot_link_row) == ((1, 3), (1,), 0)
    with pytest.raises(ConflictError, match=r"Samples 1 and 3 .* must-link 1 - 3 puts") as e:
        c.check()
    assert (e.value.must_link, e.value.cannot_link) == ((1,), (0,))
    assert c.to_matrix()[1, 3] == 0


def test_evidence_for_and_against_is_allowed_and_adds_up():
    c = Constraints(5, must_link=[(1, 3)], cannot_link=[(3, 1)], cannot_link_belief=0.25)
    assert c.to_matrix()[1, 3] == 0.75
    c.check()
    balanced = c.with_belief(0.5).to_matrix()
    assert balanced.nnz == 0


# Counting ----------------------------------------------------------------------------------


@given(any_constraints(), st.data())
def test_counts_equal_those_over_all_pairs(c, data):
    n = c.n_samples
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    must, cannot = all_signed_pairs(c)
    wrong_must = {p: b for p, b in must.items() if y[p[0]] != y[p[1]]}
    wrong_cannot = {p: b for p, b in cannot.items() if y[p[0]] == y[p[1]]}
    total = sum(must.values()) + sum(cannot.values())
    wrong = sum(wrong_must.values()) + sum(wrong_cannot.values())

    assert c.n_violated(y) == len(wrong_must) + len(wrong_cannot)
    assert_allclose(c.satisfied(y), 1 - wrong / total if total else 1)
    violated = c.violated(y)
    assert {tuple(p) for p in violated.must_link.tolist()} == {
        (i, j) for i, j in c.must_link.tolist() if y[i] != y[j]
    }
    assert {tuple(p) for p in violated.cannot_link.tolist()} == {
        (i, j) for i, j in c.cannot_link.tolist() if y[i] == y[j]
    }
    assert_allclose(
        violated.must_link_belief.sum(),
        sum(
            b
            for (i, j), b in zip(c.must_link.tolist(), c.must_link_belief, strict=True)
            if y[i] != y[j]
        ),
    )
    touched = {s for pair in c.must_link.tolist() + c.cannot_link.tolist() for s in pair}
    touched |= set() if c.labels is None else set(np.flatnonzero(c.labels >= 0).tolist())
    assert set(np.flatnonzero(c.constrained).tolist()) == touched


@given(any_constraints())
def test_the_matrix_and_the_signed_pairs_hold_every_pair(c):
    expected = np.zeros((c.n_samples, c.n_samples))
    must, cannot = all_signed_pairs(c)
    for sign, pairs in ((1, must), (-1, cannot)):
        for (i, j), belief in pairs.items():
            expected[i, j] += sign * belief
            expected[j, i] += sign * belief
    matrix = c.to_matrix()
    assert_array_equal(matrix.toarray(), expected)
    assert matrix.nnz == np.count_nonzero(expected)
    pairs, weights = c.signed_pairs()
    listed = dict(zip(map(tuple, pairs[weights > 0].tolist()), weights[weights > 0], strict=True))
    assert listed == must
    listed = dict(zip(map(tuple, pairs[weights < 0].tolist()), -weights[weights < 0], strict=True))
    assert listed == cannot


def test_labels_of_a_clustering_may_be_anything_of_the_right_length():
    c = Constraints(3, must_link=[(0, 1)], labels=[0, -1, 1])
    assert c.n_violated(["a", "b", "a"]) == 2
    assert c.n_violated([-1, -1, 0]) == 0
    with pytest.raises(ValueError, match=r"labels has shape \(2,\), but .* 3 samples.*restrict"):
        c.satisfied([0, 1])


def test_implied_pairs_are_counted_without_being_listed():
    y = np.arange(300_000) % 3
    c = Constraints.from_labels(y)
    assert c.satisfied(y) == 1.0
    assert c.n_violated(np.zeros_like(y)) == 3 * 100_000**2
    with pytest.raises(TooLargeError, match="signed_pairs"):
        c.to_matrix()


# Signed pairs in place of too many implied ones --------------------------------------------


@given(constraints_from_a_partition(max_samples=12, max_clusters=5), st.integers(0, 20))
def test_the_stand_in_has_the_same_closure(c, limit):
    pairs, weights = c.signed_pairs(limit=limit)
    stand_in = Constraints(c.n_samples, pairs[weights > 0], pairs[weights < 0])
    assert_array_equal(stand_in.closure().to_matrix().toarray(), c.closure().to_matrix().toarray())
    assert len(np.unique(pairs, axis=0)) == len(pairs)


@pytest.mark.parametrize("limit", [30_000, 60_000, 100_000, 400_000])
def test_the_stand_in_is_as_large_as_asked_for_and_covers_the_samples(limit):
    y = np.random.RandomState(0).randint(4, size=30_000)
    pairs, weights = Constraints.from_labels(y).signed_pairs(limit=limit)
    assert 0.5 * limit < len(pairs) < 1.01 * limit + 10
    assert np.isin(np.arange(y.size), pairs[weights > 0]).all()
    assert_array_equal(y[pairs[:, 0]] == y[pairs[:, 1]], weights > 0)
    if limit >= 2 * y.size:
        assert np.isin(np.arange(y.size), pairs[weights < 0]).all()


def test_too_many_classes_for_a_stand_in():
    with pytest.raises(TooLargeError, match="7000 different labels need 24496500 cannot-links"):
        Constraints.from_labels(np.arange(7000)).signed_pairs()


# Other beliefs -----------------------------------------------------------------------------


def test_with_belief_makes_a_contradiction_evidence():
    c = Constraints(3, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    doubted = c.with_belief(0.9)
    doubted.check()
    assert_array_equal(doubted.must_link, c.must_link)
    assert_array_equal(doubted.cannot_link_belief, [0.9])


def test_with_belief_turns_labels_into_pairs(monkeypatch):
    c = Constraints(4, cannot_link=[(0, 3)], labels=[0, 0, 1, -1])
    doubted = c.with_belief(0.5)
    assert doubted.labels is None
    assert_array_equal(doubted.must_link, [[0, 1]])
    assert_array_equal(doubted.cannot_link, [[0, 2], [0, 3], [1, 2]])
    assert_array_equal(c.with_belief(1).labels, c.labels)
    monkeypatch.setattr(table_module, "MAX_LISTED", 2)
    with pytest.raises(TooLargeError, match="these labels imply 3 pairs; the limit is 2"):
        c.with_belief(0.5)


# Subsets -----------------------------------------------------------------------------------


@given(any_constraints(), st.data())
def test_restrict_keeps_the_pairs_inside(c, data):
    order = data.draw(st.permutations(range(c.n_samples)))
    chosen = order[: data.draw(st.integers(1, c.n_samples))]
    part = c.restrict(chosen)
    whole = c.to_matrix().toarray()
    assert_array_equal(part.to_matrix().toarray(), whole[np.ix_(chosen, chosen)])
    assert part.n_samples == len(part) == part.shape[0] == len(chosen)
    if c.labels is not None and (c.labels[chosen] >= 0).any():
        assert_array_equal(part.labels, c.labels[chosen])


@given(constraints_from_a_partition(), st.data())
def test_the_closure_keeps_what_is_entailed_through_dropped_samples(c, data):
    chosen = data.draw(st.permutations(range(c.n_samples)))[: (c.n_samples + 1) // 2]
    full = c.closure().to_matrix().toarray()
    part = c.closure().to_constraints().restrict(chosen)
    assert_array_equal(part.closure().to_matrix().toarray(), full[np.ix_(chosen, chosen)])


def test_masks_slices_and_ellipses_are_indices():
    c = Constraints(5, must_link=[(0, 4)], cannot_link=[(2, 4)])
    expected = c.restrict([0, 2, 4])
    for key in (
        np.array([True, False, True, False, True]),
        slice(None, None, 2),
        np.array([0, 2, 4]),
        ([0, 2, 4], ...),
    ):
        assert same(c[key], expected)
    assert c[3].n_samples == 1


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([0, 5], IndexError, r"indices\[1\] is 5, but there are only 5 samples"),
        ([-1], IndexError, r"indices\[0\] is -1"),
        ([3, 1, 3], ValueError, "the sample 3 more than once.*np.unique"),
        ([], ValueError, "selects no sample"),
        ([True, False], IndexError, "The mask has 2 entries, but there are 5 samples"),
        ([[0, 1]], IndexError, "one-dimensional"),
        ([0.5], ValueError, "not a whole number"),
        (["a"], TypeError, "not an integer"),
    ],
)
def test_wrong_indices(indices, error, message):
    with pytest.raises(error, match=message):
        Constraints(5).restrict(indices)


def test_numpy_does_not_take_it_for_a_sequence():
    c = Constraints(3)
    with pytest.raises(TypeError, match="not an array"):
        np.asarray(c)
    with pytest.raises(TypeError, match="not iterable"):
        list(c)


# Cross-validation by scikit-learn ----------------------------------------------------------


class Recorder(ClusterMixin, BaseEstimator):
    """Clusters nothing, but says which constraints it was given."""

    seen: list = []  # noqa: RUF012 - shared on purpose: cross-validation clones the estimator

    def __init__(self, alpha=1):
        self.alpha = alpha

    def fit(self, X, y=None, *, constraints=None):
        Recorder.seen.append((X.ravel().astype(int).tolist(), constraints))
        self.labels_ = np.zeros(len(X), dtype=int)
        return self

    def score(self, X, y=None):
        return 0.0


def test_scikit_learn_indexes_it():
    c = Constraints(6, must_link=[(0, 3)], cannot_link=[(3, 5)])
    chosen = np.array([5, 3, 0])
    assert same(_safe_indexing(c, chosen), c.restrict(chosen))
    assert same(_safe_indexing(c, chosen.tolist()), c.restrict(chosen))
    mask = np.isin(np.arange(6), chosen)
    assert same(_safe_indexing(c, mask), c.restrict(mask))
    params = _check_method_params(np.zeros((6, 1)), {"constraints": c}, indices=chosen)
    assert same(params["constraints"], c.restrict(chosen))


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("search", [False, True])
def test_cross_validation_restricts_it(routing, search):
    X = np.arange(6.0)[:, None]
    c = Constraints(6, must_link=[(0, 3)], cannot_link=[(3, 5), (1, 2)], labels=[0, 1, -1, 0, 2, 1])
    Recorder.seen.clear()
    with sklearn.config_context(enable_metadata_routing=routing):
        estimator = Recorder()
        if routing:
            estimator.set_fit_request(constraints=True)
        cv = KFold(3)
        if search:
            GridSearchCV(estimator, {"alpha": [1]}, cv=cv, refit=False).fit(X, constraints=c)
        else:
            cross_validate(estimator, X, cv=cv, params={"constraints": c})
    assert len(Recorder.seen) == 3
    for chosen, constraints in Recorder.seen:
        assert same(constraints, c.restrict(chosen))


def test_equal_content_is_equal():
    c = Constraints(4, [(1, 0), (0, 1)], [(2, 3)], cannot_link_belief=0.5, labels=[-1, -1, -1, 2])
    same = Constraints(4, [(0, 1)], [(3, 2)], cannot_link_belief=[0.5], labels=[-1, -1, -1, 2])
    assert c == same == pickle.loads(pickle.dumps(c))
    assert len({c, same}) == 1
    others = [
        Constraints(5, [(0, 1)], [(2, 3)], cannot_link_belief=0.5),
        Constraints(4, [(0, 1)], [(2, 3)], cannot_link_belief=0.5),
        Constraints(4, [(0, 1)], [(2, 3)], labels=[-1, -1, -1, 2]),
        Constraints(4, [(0, 1)], labels=[-1, -1, -1, 2]),
        Constraints(4, [(0, 2)], [(2, 3)], cannot_link_belief=0.5, labels=[-1, -1, -1, 2]),
    ]
    assert all(c != other for other in others)
    assert c != "constraints"
