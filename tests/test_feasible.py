"""Errors about infeasible constraints: every claim is checked against the pairs it names."""

from __future__ import annotations

import pickle
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise import Constraints
from linkwise.constraints import PairTable
from linkwise.constraints import feasible as feasible_module
from linkwise.constraints.coloring import Coloring, graph_of
from linkwise.constraints.feasible import explain_infeasible, feasible_groups, require_coloring
from linkwise.constraints.proof import _pruned, _spanning_forest
from linkwise.exceptions import ConflictError, TooLargeError
from strategies import any_constraints


def is_feasible(c, k):
    """Whether k clusters can satisfy the certain pairs and labels, by trying all."""
    Y = np.array(list(product(range(k), repeat=c.n_samples)))
    must = c.must_link[c.must_link_belief == 1]
    cannot = c.cannot_link[c.cannot_link_belief == 1]
    if c.labels is not None:
        for i, j in combinations(np.flatnonzero(c.labels >= 0), 2):
            pair = np.array([[i, j]])
            if c.labels[i] == c.labels[j]:
                must = np.concatenate((must, pair))
            else:
                cannot = np.concatenate((cannot, pair))
    fine = (Y[:, must[:, 0]] == Y[:, must[:, 1]]).all(axis=1)
    return bool((fine & (Y[:, cannot[:, 0]] != Y[:, cannot[:, 1]]).all(axis=1)).any())


def named_part(c, error):
    """The pairs and labels that an error names, and nothing else."""
    must = [np.flatnonzero(c.table.row[c.table.sign > 0] == row) for row in error.must_link]
    cannot = [np.flatnonzero(c.table.row[c.table.sign < 0] == row) for row in error.cannot_link]
    assert all(len(place) == 1 for place in must + cannot)
    must = np.concatenate([*must, np.empty(0, np.intp)]).astype(int)
    cannot = np.concatenate([*cannot, np.empty(0, np.intp)]).astype(int)
    assert (c.must_link_belief[must] == 1).all()
    assert (c.cannot_link_belief[cannot] == 1).all()
    labels = np.full(c.n_samples, -1)
    if error.labelled:
        labels[list(error.labelled)] = c.labels[list(error.labelled)]
        assert (labels[list(error.labelled)] >= 0).all()
    return c.must_link[must], c.cannot_link[cannot], labels


def error_of(call):
    try:
        call()
    except ConflictError as error:
        return error
    return None


def caught(call):
    error = error_of(call)
    assert error is not None
    return error


@given(any_constraints(max_samples=7, max_clusters=4), st.integers(1, 4))
@settings(max_examples=400)
def test_the_named_pairs_alone_are_infeasible(c, k):
    error = error_of(lambda: c.check(k))
    assert (error is None) == is_feasible(c, k)
    if error is None:
        return
    must, cannot, labels = named_part(c, error)
    proof = Constraints.from_table(c.n_samples, PairTable.of(must, cannot), labels=labels)
    assert not is_feasible(proof, k)
    if error.bracket is None:
        assert error.kind == "contradiction"
    else:
        lower, upper = error.bracket
        assert k < lower <= upper
        assert not is_feasible(c, lower - 1)
        assert upper > 4 or is_feasible(c, upper)


def expanded(edges, rng, size=3):
    """Constraints whose groups form a graph, held together by chains of must-links."""
    n_groups = max(map(max, edges)) + 1
    order = rng.permutation(n_groups * size).reshape(n_groups, size)
    must = [(g[i], g[i + 1]) for g in order.tolist() for i in range(size - 1)]
    cannot = [(order[a, rng.randint(size)], order[b, rng.randint(size)]) for a, b in edges]
    return Constraints(n_groups * size, np.array(must), np.array(cannot))


WHEEL5 = [(i, (i + 1) % 5) for i in range(5)] + [(i, 5) for i in range(5)]
GROETZSCH = [(i, (i + 1) % 5) for i in range(5)] + [
    edge for i in range(5) for edge in ((5 + i, (i + 1) % 5), (5 + i, (i - 1) % 5), (5 + i, 10))
]


@pytest.mark.parametrize(
    ("edges", "k", "kind", "words"),
    [
        ([(0, 1), (1, 2), (0, 2)], 2, "odd ring", "odd ring of 3 cannot-links"),
        (list(combinations(range(4), 2)), 3, "clique", "They need 4 clusters"),
        (WHEEL5, 3, "wheel", "odd ring of 5 cannot-linked samples"),
        (GROETZSCH, 3, "minimal set", "none of these cannot-links can be spared"),
    ],
)
def test_a_certificate_is_told_in_the_users_pairs(edges, k, kind, words):
    for seed in range(5):
        c = expanded(edges, np.random.RandomState(seed))
        error = caught(lambda c=c: c.check(k))
        assert error.kind == kind
        assert words in str(error)
        assert f"Set n_clusters to at least {k + 1}, remove one of these links" in str(error)
        assert 'constraints_mode="soft"' in str(error)
        assert error.bracket == (k + 1, k + 1)
        assert len(error.cannot_link) == len(edges)
        for row in error.cannot_link:
            i, j = c.cannot_link[np.flatnonzero(c.table.row[c.table.sign < 0] == row)[0]]
            assert f"#{row} ({i}, {j})" in str(error)
        # The named pairs are needed and suffice: without any one of them the rest is feasible.
        must, cannot, _ = named_part(c, error)
        alone = Constraints(c.n_samples, must, cannot)
        assert caught(lambda c=alone: c.check(k)).kind == kind
        for row in range(len(cannot)):
            Constraints(c.n_samples, must, np.delete(cannot, row, axis=0)).check(k)
        # Must-links form trees without idle branches.
        ends, counts = np.unique(must, return_counts=True)
        assert set(ends[counts == 1]) <= set(cannot.ravel())


def test_ties_are_trees_without_idle_branches():
    ring = {0: {1, 4}, 1: {0, 2}, 2: {1, 3}, 3: {2, 4}, 4: {3, 0}}
    tree = _spanning_forest(ring)
    assert sum(map(len, tree.values())) == 2 * 4
    # 0 and 1 are needed; the branches 1 - 2 - 3 and 0 - 4 are not.
    path = {4: {0}, 0: {4, 1}, 1: {0, 2}, 2: {1, 3}, 3: {2}}
    assert _pruned(path, {0, 1}) == {0: {1}, 1: {0}}


def test_labels_take_part_by_name():
    c = Constraints(5, cannot_link=[(4, 0), (4, 1), (4, 2)], labels=[0, 1, 2, 2, -1])
    error = caught(lambda: c.check(3))
    assert error.kind == "clique"
    assert error.cannot_link == (0, 1, 2)
    assert error.labelled == (0, 1, 2)
    assert "the labels of the samples 0 (label 0), 1 (label 1), 2 (label 2)" in str(error)
    assert "correct a label" in str(error)

    many = caught(lambda: Constraints.from_labels([0, 1, 2]).check(2))
    assert (many.kind, many.labelled, many.bracket) == ("labels", (0, 1, 2), (3, 3))


def test_the_shortest_contradiction_is_shown():
    chain = [(i, i + 1) for i in range(6)]
    c = Constraints(9, must_link=[*chain, (7, 8), (6, 7)], cannot_link=[(0, 5), (6, 8)])
    error = caught(c.check)
    assert error.kind == "contradiction"
    assert error.witness == (6, 7, 8)
    assert error.must_link == (7, 6)
    assert error.cannot_link == (1,)
    assert "cannot-link #1; must-links #7, #6" in str(error)

    direct = caught(Constraints(3, [(0, 1), (1, 2)], [(0, 2), (2, 1)]).check)
    assert (direct.kind, direct.must_link, direct.cannot_link) == ("contradiction", (1,), (1,))


def test_errors_survive_pickling():
    error = caught(lambda: Constraints(3, cannot_link=[(0, 1), (1, 2), (0, 2)]).check(2))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_groups_hold_labels_as_pairs():
    c = Constraints(6, must_link=[(0, 1)], cannot_link=[(1, 2)], labels=[-1, 3, -1, 0, 3, -1])
    groups = feasible_groups(c, 2)
    assert groups.component.tolist() == [0, 0, 1, 2, 0, 3]
    assert groups.n_groups == groups.graph.n_groups == 4
    assert groups.graph.indptr.tolist() == [0, 2, 3, 4, 4]
    assert groups.graph.indices.tolist() == [1, 2, 0, 0]
    found = require_coloring(c, 2, np.random.RandomState(0))
    assert c.n_violated(found.colors[groups.component]) == 0


def test_groups_refuse_what_no_colouring_can_repair(monkeypatch):
    few = caught(lambda: feasible_groups(Constraints(3, must_link=[(0, 1)]), 3))
    assert few.kind == "too few groups"
    assert "only 2 group(s)" in str(few)
    labels = caught(lambda: feasible_groups(Constraints.from_labels([0, 1, 2]), 2))
    assert labels.kind == "labels"
    ring = Constraints(3, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    assert caught(lambda: feasible_groups(ring, 1)).kind == "contradiction"
    monkeypatch.setattr(feasible_module, "MAX_LABEL_PAIRS", 2)
    with pytest.raises(TooLargeError, match="by 3 pairs; at most 2"):
        feasible_groups(Constraints.from_labels([0, 1, 2]), 3)


def test_what_is_undecided_is_called_so_and_the_attempt_is_kept(monkeypatch):
    # A graph that can be coloured, but nobody is to find out.
    monkeypatch.setattr(feasible_module, "find_certificate", lambda *_: None)
    c = Constraints(6, cannot_link=[*combinations(range(4), 2), (4, 5)], must_link=[(4, 3)])
    groups = feasible_groups(c, 4)
    attempt = Coloring(np.array([0, 1, 2, -1, 0], dtype=np.int32), 1)
    assert groups.n_groups == 5
    error = caught(lambda: explain_infeasible(c, 4, attempt))
    assert error.kind == "undecided"
    assert "Could not decide whether 4 clusters" in str(error)
    assert error.attempt.tolist() == [0, 1, 2, 3, 3, 0]
    assert error.cannot_link == ()
    assert error.bracket == (4, 5)
    worse = Coloring(np.array([0, 1, 2, 2, 0], dtype=np.int32), 1)
    error = caught(lambda: explain_infeasible(c, 4, worse))
    assert error.cannot_link == (5,)
    assert "#5 (2, 3)" in str(error)
    assert error.witness == (2, 3)
    monkeypatch.undo()
    # With the search in place, an infeasible number is refuted instead.
    assert caught(lambda: explain_infeasible(c, 3, attempt)).kind == "clique"
    assert caught(lambda: require_coloring(c, 3, np.random.RandomState(0))).kind == "clique"


def test_a_question_at_the_threshold_is_undecided_or_answered():
    # Planted at the hardest density: silence of check is allowed, a wrong claim is not.
    rng = np.random.RandomState(0)
    n, k = 300, 3
    y = rng.randint(k, size=n)
    pairs = rng.randint(n, size=(6 * n, 2))
    pairs = pairs[y[pairs[:, 0]] != y[pairs[:, 1]]][: int(2.35 * n)]
    c = Constraints(n, cannot_link=pairs)
    c.check(k)  # it is feasible, so any error would be wrong
    error = error_of(lambda: require_coloring(c, k, rng))
    if error is not None:
        assert error.kind == "undecided"
        left = c.cannot_link[np.isin(c.table.row[c.table.sign < 0], error.cannot_link)]
        assert len(left) == c.n_violated(error.attempt) > 0
        assert error.bracket[0] <= k < error.bracket[1]


def test_long_proofs_are_cut_in_the_message_and_whole_in_the_attributes():
    c = Constraints(11, cannot_link=list(combinations(range(11), 2)))
    error = caught(lambda: c.check(10))
    assert len(error.cannot_link) == 55
    assert "55 cannot-links (all are in .cannot_link of this error), such as #" in str(error)
    assert str(error).count("#") == 20


def test_a_graph_without_pairs_is_fine():
    empty = graph_of(np.empty((0, 2), dtype=np.intp), 3)
    assert empty.indices.size == 0
    for k in (1, 2, 3):
        Constraints(3).check(k)
        assert require_coloring(Constraints(3), k, np.random.RandomState(0)).n_left == 0


SUDOKU = """
8 . . . . . . . .
. . 3 6 . . . . .
. 7 . . 9 . 2 . .
. 5 . . . 7 . . .
. . . . 4 5 7 . .
. . . 1 . . . 3 .
. . 1 . . . . 6 8
. . 8 5 . . . 1 .
. 9 . . . . 4 . .
"""


def test_a_sudoku_is_solved():
    # Greedy colouring and tabu search fail on it; backtracking does not.
    clues = np.array([-1 if c == "." else int(c) - 1 for c in SUDOKU.split()])
    row, column = np.divmod(np.arange(81), 9)
    box = 3 * (row // 3) + column // 3
    i, j = np.triu_indices(81, 1)
    apart = (row[i] == row[j]) | (column[i] == column[j]) | (box[i] == box[j])
    known = Constraints(81, cannot_link=np.column_stack((i, j))[apart], labels=clues)
    groups = feasible_groups(known, 9)
    colors = require_coloring(known, 9, np.random.RandomState(0)).colors[groups.component]
    assert known.n_violated(colors) == 0
    for part in (row, column, box):
        for number in range(9):
            assert np.unique(colors[part == number]).size == 9
