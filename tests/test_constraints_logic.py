"""Closure, contradictions and feasibility, against references that are obvious by eye."""

from __future__ import annotations

import pickle
import re
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from linkwise.constraints import Constraints
from linkwise.constraints import closure as closure_module
from linkwise.exceptions import ConflictError, TooLargeError
from strategies import any_constraints, constraints_from_a_partition

# References --------------------------------------------------------------------------------


def ties(c):
    """Certain must-links and equal labels, as a boolean matrix."""
    M = np.zeros((c.n_samples, c.n_samples), dtype=bool)
    for (i, j), belief in zip(c.must_link.tolist(), c.must_link_belief, strict=True):
        M[i, j] |= belief == 1
    if c.labels is not None:
        for i, j in combinations(range(c.n_samples), 2):
            M[i, j] |= c.labels[i] == c.labels[j] >= 0
    return M | M.T


def cuts(c, *, by_label=True):
    """Certain cannot-links and different labels, as a boolean matrix."""
    C = np.zeros((c.n_samples, c.n_samples), dtype=bool)
    for (i, j), belief in zip(c.cannot_link.tolist(), c.cannot_link_belief, strict=True):
        C[i, j] |= belief == 1
    if c.labels is not None and by_label:
        for i, j in combinations(range(c.n_samples), 2):
            C[i, j] |= c.labels[i] >= 0 and c.labels[j] >= 0 and c.labels[i] != c.labels[j]
    return C | C.T


def reachability(M):
    """Reachability by repeated products, O(n^4)."""
    R = np.eye(len(M), dtype=bool) | M
    for _ in M:
        R = R @ R
    return R


def distances(M):
    """Number of steps from each sample to each other, -1 if there is no way."""
    D = np.where(np.eye(len(M), dtype=bool), 0, -1)
    reached = np.eye(len(M), dtype=bool)
    for step in range(1, len(M)):
        further = reached | (reached @ M)
        D[further & ~reached] = step
        reached = further
    return D


def clusterings(n, k):
    """All assignments of n samples to k clusters."""
    return np.array(list(product(range(k), repeat=n)))


def is_feasible(c, k):
    Y = clusterings(c.n_samples, k)
    same = Y[:, :, None] == Y[:, None, :]
    return bool((~(same & cuts(c)).any(axis=(1, 2)) & ~(~same & ties(c)).any(axis=(1, 2))).any())


# Closure -----------------------------------------------------------------------------------


@given(constraints_from_a_partition())
def test_closure_equals_boolean_matrix_powers(c):
    # Reference: reachability by repeated squaring, O(n^3), obvious by eye.
    M = reachability(c.to_matrix().toarray() > 0)
    C = M @ (c.to_matrix().toarray() < 0) @ M
    expected = np.where(M & ~np.eye(c.n_samples, dtype=bool), 1, 0) - C
    closure = c.closure()
    assert_array_equal(closure.to_matrix().toarray(), expected)

    # The same facts in the other forms.
    i, j = np.indices(expected.shape)
    assert_array_equal(closure.relation(i, j), expected + np.eye(c.n_samples))
    assert closure.n_must_link == len(closure.must_link) == (np.triu(expected) > 0).sum()
    assert closure.n_cannot_link == len(closure.cannot_link) == (expected < 0).sum() // 2
    assert_array_equal(closure.must_link, np.argwhere(np.triu(expected) > 0))
    assert_array_equal(closure.cannot_link, np.argwhere(np.triu(expected) < 0))
    groups = {tuple(sorted(closure.component[[i, j]])) for i, j in np.argwhere(expected < 0)}
    assert {tuple(pair) for pair in closure.apart.tolist()} == groups
    assert len(closure.apart) == len(groups)


@given(any_constraints())
def test_components_are_numbered_by_first_appearance(c):
    reachable = reachability(ties(c))
    first = reachable.argmax(axis=1)
    assert_array_equal(c.components(), np.unique(first, return_inverse=True)[1])


@given(constraints_from_a_partition())
def test_the_closure_of_the_closure_is_the_closure(c):
    expanded = c.closure().to_constraints()
    assert_array_equal(expanded.closure().to_matrix().toarray(), c.closure().to_matrix().toarray())
    assert expanded.n_pairs == c.closure().n_must_link + c.closure().n_cannot_link


def test_uncertain_pairs_are_evidence_and_entail_nothing():
    c = Constraints(
        5,
        must_link=[(0, 1), (1, 2), (2, 3)],
        must_link_belief=[1, 1, 0.5],
        cannot_link=[(0, 2), (3, 4)],
        cannot_link_belief=[0.5, 1],
    )
    c.check(2)
    closure = c.closure()
    assert closure.relation([0, 2, 2], [2, 3, 4]).tolist() == [1, 0, 0]
    expanded = closure.to_constraints()
    # (0, 2) is refuted and goes; (2, 3) is open and stays.
    assert_array_equal(expanded.must_link, [[0, 1], [0, 2], [1, 2], [2, 3]])
    assert_array_equal(expanded.must_link_belief, [1, 1, 1, 0.5])
    assert_array_equal(expanded.cannot_link, [[3, 4]])


def test_counts_are_exact_where_floats_are_not():
    n = 200_000_001
    closure = Constraints(4, must_link=[(0, 1)], cannot_link=[(1, 2)]).closure()
    object.__setattr__(closure, "_sizes", np.array([n, n, 1]))
    assert closure.n_must_link == n * (n - 1)
    assert closure.n_cannot_link == n * n


def test_a_large_closure_is_counted_but_not_listed(monkeypatch):
    c = Constraints.from_labels([0, 0, 0, 1, 1])
    monkeypatch.setattr(closure_module, "MAX_PAIRS", 3)
    closure = c.closure()
    assert (closure.n_must_link, closure.n_cannot_link) == (4, 6)
    for ask in (lambda: closure.must_link, lambda: closure.cannot_link, closure.to_matrix):
        with pytest.raises(TooLargeError, match=r"at most 3 are listed.*relation\(i, j\)"):
            ask()
    assert closure.relation(0, 4) == -1


def test_relation_checks_its_samples():
    closure = Constraints(3).closure()
    assert repr(closure) == "Closure(n_samples=3, must_link=0, cannot_link=0)"
    assert closure.relation([], []).shape == (0,)
    with pytest.raises(IndexError, match="j holds the index 3, but there are only 3 samples"):
        closure.relation(0, [1, 3])
    with pytest.raises(TypeError, match="samples are integers"):
        closure.relation(0.5, 1)


def test_closure_of_a_contradiction_is_refused():
    with pytest.raises(ConflictError, match="0 - 1 - 2 put them in one cluster"):
        Constraints(3, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)]).closure()


# Contradictions ----------------------------------------------------------------------------


def assert_proves(conflict, c):
    """The chain leads from one end to the other by links that are there."""
    assert (conflict.chain[0], conflict.chain[-1]) == conflict.pair
    assert len(conflict.steps) == len(conflict.rows) == len(conflict.chain) - 1
    for (i, j), step, row in zip(
        pairwise(conflict.chain), conflict.steps, conflict.rows, strict=True
    ):
        if step == "label":
            assert row is None
            assert c.labels[i] == c.labels[j] >= 0
        else:
            place = np.flatnonzero(c.table.row[c.table.sign > 0] == row)[0]
            assert c.must_link[place].tolist() == sorted((i, j))
            assert c.must_link_belief[place] == 1


@given(any_constraints())
def test_every_contradiction_is_found_with_a_shortest_chain(c):
    found = c.conflicts()
    M = ties(c)
    D = distances(M)
    for conflict in found:
        assert_proves(conflict, c)

    by_link = {f.pair: f for f in found if f.labels is None}
    C = cuts(c, by_label=False)
    assert set(by_link) == {(i, j) for i, j in np.argwhere(np.triu(C)).tolist() if D[i, j] >= 0}
    for (i, j), conflict in by_link.items():
        assert len(conflict.steps) == D[i, j]
        at = (c.table.row == conflict.cannot_link_row) & (c.table.sign < 0)
        assert c.table.pairs[at].tolist() == [[i, j]]

    by_label = {f.labels: f for f in found if f.labels is not None}
    expected = {}
    for a, b in combinations([] if c.labels is None else np.unique(c.labels[c.labels >= 0]), 2):
        between = D[np.ix_(c.labels == a, c.labels == b)]
        if (between >= 0).any():
            expected[a, b] = between[between >= 0].min()
    assert {labels: len(f.steps) for labels, f in by_label.items()} == expected
    for labels, conflict in by_label.items():
        assert tuple(c.labels[list(conflict.pair)]) == labels
    assert len(found) == c.n_conflicts == len(by_link) + len(by_label)


@pytest.mark.parametrize("seed", range(3))
def test_chains_are_shortest_in_larger_graphs(seed):
    # Long chains, several classes on the way, and both sides of the search at work.
    rng = np.random.RandomState(seed)
    n = 60
    must = rng.randint(n, size=(55, 2))
    cannot = rng.randint(n, size=(150, 2))
    must, cannot = must[must[:, 0] != must[:, 1]], cannot[cannot[:, 0] != cannot[:, 1]]
    known = {tuple(sorted(pair)) for pair in must.tolist()}
    cannot = [pair for pair in cannot.tolist() if tuple(sorted(pair)) not in known]
    labels = np.where(rng.rand(n) < 0.3, rng.randint(6, size=n), -1)
    c = Constraints(n, must, cannot, labels=labels)
    D = distances(ties(c))
    longest = 0
    for conflict in c.conflicts(limit=None):
        assert_proves(conflict, c)
        longest = max(longest, len(conflict.steps))
        if conflict.labels is None:
            assert len(conflict.steps) == D[conflict.pair]
        else:
            a, b = conflict.labels
            between = D[np.ix_(labels == a, labels == b)]
            assert len(conflict.steps) == between[between >= 0].min()
    assert longest >= 5


def test_messages_say_what_contradicts_what():
    c = Constraints(10, must_link=[(4, 7), (7, 9)], cannot_link=[(9, 4)])
    with pytest.raises(ConflictError) as error:
        c.check()
    assert str(error.value) == (
        "Samples 4 and 9 are cannot-linked, but the must-links 4 - 7 - 9 put them in one cluster. "
        "Remove one of these links (cannot-link #0; must-links #0, #1), or give them beliefs "
        "below 1."
    )
    assert error.value.witness == (4, 7, 9)

    c = Constraints(4, must_link=[(0, 1)], cannot_link=[(0, 2), (1, 2)], labels=[0, 0, 0, -1])
    with pytest.raises(
        ConflictError, match=r"their equal labels put them in one cluster\. Correct"
    ):
        c.check()
    with pytest.raises(ConflictError, match=r"\(and 1 more contradiction; see conflicts\(\)\)"):
        c.check()

    c = Constraints(4, must_link=[(1, 2)], labels=[0, 0, 1, -1])
    assert str(c.conflicts()[0]) == (
        "Samples 1 and 2 have the labels 0 and 1, but the must-link 1 - 2 puts them in one "
        "cluster. Correct a label, or remove one of these links (must-link #0) or give it a "
        "belief below 1."
    )
    c = Constraints(4, must_link=[(1, 2)], cannot_link=[(0, 2)], labels=[0, 0, -1, -1])
    assert "the must-links (-) and equal labels (=) 0 = 1 - 2 put" in c.conflicts()[0].message


def test_rows_are_those_of_the_input():
    c = Constraints(6, must_link=[(5, 4), (2, 1), (1, 0)], cannot_link=[(3, 4), (0, 2)])
    (conflict,) = c.conflicts()
    assert conflict.chain == (0, 1, 2)
    assert conflict.rows == (2, 1)
    assert conflict.cannot_link_row == 1
    assert pickle.loads(pickle.dumps(conflict)) == conflict


def test_the_limit_is_on_proofs_and_not_on_the_count():
    labels = np.arange(30) // 3
    c = Constraints(30, must_link=[(i, i + 3) for i in range(0, 27, 3)], labels=labels)
    assert c.n_conflicts == 45
    assert len(c.conflicts(limit=7)) == 7
    assert len(c.conflicts()) == len(c.conflicts(limit=None)) == 45
    with pytest.raises(ValueError, match=r"limit is 0, .*None means no limit"):
        c.conflicts(limit=0)


def test_a_million_pairs_with_many_contradictions():
    rng = np.random.RandomState(0)
    n = 100_000
    y = rng.randint(5, size=n)
    c = Constraints.sample(y, 1_000_000, random_state=0)
    assert c.n_conflicts == 0
    pairs = np.concatenate((c.must_link, c.cannot_link))
    must = np.arange(len(pairs)) < len(c.must_link)
    must ^= rng.rand(len(pairs)) < 0.1
    flipped = Constraints(n, pairs[must], pairs[~must])
    found = flipped.conflicts(limit=500)
    assert flipped.n_conflicts > 700_000
    assert len(found) == 500
    for conflict in found[:20]:
        assert_proves(conflict, flipped)
    for k in (None, 2, 10):
        with pytest.raises(ConflictError, match="more contradictions"):
            flipped.check(k)


# Feasibility -------------------------------------------------------------------------------


def assert_proves_infeasible(error, c, k):
    """The witness is a contradiction, too many labels, an odd ring, or a clique."""
    witness = list(error.witness)
    M, message = reachability(ties(c)), str(error)
    apart = M @ cuts(c) @ M
    if "put them in" in message or "puts them in" in message:
        assert all(ties(c)[i, j] for i, j in pairwise(witness))
        assert cuts(c)[witness[0], witness[-1]]
    elif "different labels" in message:
        assert len(set(c.labels[witness])) == len(witness) == k + 1
    elif "odd ring" in message:
        around = list(zip(witness, witness[1:] + witness[:1], strict=True))
        assert all(apart[i, j] or M[i, j] for i, j in around)
        assert sum(apart[i, j] for i, j in around) % 2 == 1
        length, shown = re.search(r"odd ring of (\d+) cannot-links ([\d |-]+) \(", message).groups()
        words = shown.split()
        samples, signs = list(map(int, words[::2])), words[1::2]
        assert samples[0] == samples[-1]
        assert signs.count("|") == int(length)
        for (i, j), sign in zip(pairwise(samples), signs, strict=True):
            assert (cuts(c) if sign == "|" else M)[i, j]
    elif error.kind == "wheel":
        hubs, ring = witness[: k - 2], witness[k - 2 :]
        assert len(ring) % 2 == 1
        assert all(apart[i, j] for i, j in combinations(hubs, 2))
        assert all(apart[i, j] for i in hubs for j in ring)
        assert all(apart[i, j] for i, j in zip(ring, ring[1:] + ring[:1], strict=True))
    else:
        assert len(witness) == k + 1
        assert all(apart[i, j] for i, j in combinations(witness, 2))


@given(any_constraints(max_samples=6, max_clusters=4), st.integers(1, 4))
@settings(max_examples=300)
def test_check_is_right_whenever_it_raises_and_exact_for_two_clusters(c, k):
    feasible = is_feasible(c, k)
    error = None
    try:
        c.check(k)
    except ConflictError as raised:
        error = raised
    if error is not None:
        assert not feasible, error
        assert_proves_infeasible(error, c, k)
    else:
        assert feasible


def is_accepted(c, k):
    try:
        c.check(k)
    except ConflictError:
        return False
    return True


@given(any_constraints(), st.integers(1, 3), st.data())
def test_the_numbers_of_samples_and_the_order_of_pairs_do_not_matter(c, k, data):
    order = data.draw(st.permutations(range(c.n_samples)))
    other = c.restrict(order)
    rows = data.draw(st.permutations(range(len(other.table.pairs))))
    other = Constraints.from_table(
        c.n_samples, other.table.kept(np.array(rows, dtype=np.intp)), labels=other.labels
    )
    assert other.n_conflicts == c.n_conflicts
    assert is_accepted(other, k) == is_accepted(c, k)
    together = c.components()[order][:, None] == c.components()[order]
    assert_array_equal(other.components()[:, None] == other.components(), together)


@given(constraints_from_a_partition(max_clusters=3))
def test_check_is_silent_about_constraints_that_a_partition_satisfies(c):
    c.check()
    c.check(3)
    c.check(100)


def test_odd_rings_are_shown_from_sample_to_sample():
    triangle = Constraints(5, must_link=[(2, 4)], cannot_link=[(0, 1), (1, 2), (4, 0)])
    triangle.check(3)
    with pytest.raises(
        ConflictError, match=r"odd ring of 3 cannot-links .*n_clusters to at least 3"
    ):
        triangle.check(2)
    by_labels = Constraints(3, cannot_link=[(0, 2), (1, 2)], labels=[0, 1, -1])
    with pytest.raises(ConflictError, match=r"0 \| 1 \| 2 \| 0"):
        by_labels.check(2)
    with pytest.raises(ConflictError, match=r"2 - 4|4 - 2"):
        triangle.check(2)


def test_a_short_odd_ring_is_preferred_to_a_long_one():
    ring = [(i, (i + 1) % 31) for i in range(31)]
    triangle = [(31, 32), (32, 33), (31, 33), (0, 33)]
    with pytest.raises(ConflictError) as error:
        Constraints(34, cannot_link=ring + triangle).check(2)
    assert sorted(error.value.witness) == [31, 32, 33]


def test_a_long_even_ring_is_fine_and_a_long_odd_one_is_not():
    for n, feasible in ((1000, True), (1001, False)):
        c = Constraints(n, cannot_link=[(i, (i + 1) % n) for i in range(n)])
        if feasible:
            c.check(2)
        else:
            with pytest.raises(ConflictError) as error:
                c.check(2)
            assert len(error.value.witness) == n


def test_an_odd_walk_is_reduced_to_its_odd_ring():
    # A triangle far down a path: the walk from the path's start goes there and back.
    path = [(i, i + 1) for i in range(20)]
    with pytest.raises(ConflictError) as error:
        Constraints(22, cannot_link=[*path, (20, 21), (19, 21)]).check(2)
    assert sorted(error.value.witness) == [19, 20, 21]


def test_more_labels_than_clusters():
    c = Constraints.from_labels([4, -1, 0, 9, 4])
    c.check(3)
    with pytest.raises(
        ConflictError, match=r"3 different labels \(0, 4, 9\), but n_clusters is only 2"
    ):
        c.check(2)


def test_one_cluster_satisfies_no_cannot_link():
    with pytest.raises(
        ConflictError, match=r"by the cannot-link #0 \(0, 2\)\. They need 2 clusters"
    ):
        Constraints(3, must_link=[(0, 1)], cannot_link=[(0, 2)]).check(1)


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_clique_is_found_in_a_large_graph(seed):
    rng = np.random.RandomState(seed)
    n, k = 20_000, 8
    pairs = rng.randint(n, size=(60_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    members = rng.choice(n, k + 1, replace=False)
    clique = list(combinations(members.tolist(), 2))
    c = Constraints(n, cannot_link=[*pairs.tolist(), *clique])
    with pytest.raises(ConflictError, match=f"They need {k + 1} clusters") as error:
        c.check(k)
    assert sorted(error.value.witness) == sorted(members)
    c.check(k + 1)


def test_labels_take_part_in_cliques():
    c = Constraints(5, cannot_link=[(4, 0), (4, 1), (4, 2)], labels=[0, 1, 2, 2, -1])
    c.check(4)
    with pytest.raises(ConflictError, match="They need 4 clusters"):
        c.check(3)


def test_many_labels_are_checked_without_listing_their_pairs():
    c = Constraints.from_labels(np.arange(50_000))
    c.check(50_000)
    assert c.closure().n_cannot_link == 50_000 * 49_999 // 2
    with pytest.raises(ConflictError, match=r"\(0, 1, 2, 3, 4, \.\.\.\)"):
        c.check(49_999)


@pytest.mark.parametrize(("k", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError)])
def test_wrong_number_of_clusters(k, error):
    with pytest.raises(error, match=f"n_clusters is {k}"):
        Constraints(3).check(k)


def test_contradictions_left_unproved_are_announced():
    i, j = np.triu_indices(160, 2)
    chain = np.column_stack([np.arange(159), np.arange(1, 160)])
    c = Constraints(160, must_link=chain, cannot_link=np.column_stack([i, j]))
    assert c.n_conflicts == 12_561
    with pytest.warns(UserWarning, match=r"12,561 contradictions were found; 10,000 of them"):
        assert len(c.conflicts()) == 10_000
    assert len(c.conflicts(limit=None)) == 12_561
