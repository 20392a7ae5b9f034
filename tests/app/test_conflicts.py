"""Answers that contradict each other, and the chains that show it."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from linkwise.app.conflicts import Evidence, Verdict, verdicts
from linkwise.app.events import Event
from linkwise.app.imports import read
from linkwise.app.requests import BadRequestError, parse_body
from linkwise.constraints import Constraints


def evidence_of(*said):
    return Evidence.of(Verdict((a, b), word, 1.0, n) for n, (a, b, word) in enumerate(said, 1))


def test_a_contradiction_is_shown_as_the_shortest_chain():
    evidence = evidence_of(
        *((0, 1, "same"), (1, 2, "same"), (2, 3, "same"), (0, 2, "same")),
        *((0, 4, "same"), (4, 5, "same"), (3, 5, "same"), (0, 3, "different")),
    )
    (conflict,) = evidence.conflicts()
    assert conflict.ignored.pair == (0, 3)
    assert [link.pair for link in conflict.chain] == [(0, 2), (2, 3)]


def test_same_is_contradicted_by_a_chain_with_one_different():
    evidence = evidence_of((0, 1, "same"), (1, 2, "different"), (2, 3, "same"), (0, 3, "same"))
    (conflict,) = evidence.conflicts()
    assert [(link.pair, link.relation) for link in conflict.chain] == [
        ((0, 1), "same"),
        ((1, 2), "different"),
        ((2, 3), "same"),
    ]


def test_a_confirmed_answer_is_kept_and_the_newest_of_the_others_ignored():
    found = [
        Verdict((0, 1), "same", 1.0, 1),
        Verdict((1, 2), "same", 1.0, 2),
        Verdict((0, 2), "different", 10.0, 3),
    ]
    evidence = Evidence.of(found)
    assert [one.seq for one in evidence.ignored] == [2]


def test_fewest_changes_is_the_lighter_side():
    heavy = [Verdict((0, 1), "same", 3.0, 1), Verdict((1, 2), "same", 3.0, 2)]
    evidence = Evidence.of([*heavy, Verdict((0, 2), "different", 1.0, 3)])
    (conflict,) = evidence.conflicts()
    assert [one.seq for one in evidence.fewest_changes(conflict)] == [3]


def test_people_outvote_each_other_and_a_tie_is_disputed():
    def said(*words):
        return {
            ((0, 1), str(n)): Event("answer", str(n), str(n), 0, 1, word, seq=n)
            for n, word in enumerate(words)
        }

    (two_to_one,) = verdicts(said("same", "different", "same"))
    assert (two_to_one.relation, two_to_one.weight) == ("same", 1.0)
    (tie,) = verdicts(said("same", "different"))
    assert tie.relation == "disputed"
    assert verdicts(said("unsure", "same"))[0].relation == "same"


@given(st.sampled_from(["pairs", "labels"]), st.text(max_size=80), st.booleans())
def test_any_file_is_read_or_refused_in_words(kind, text, with_header):
    header = "i,j,link\n" if kind == "pairs" else "id,label\n"
    try:
        found = read(kind, header + text if with_header else text, ["a", "b", "1"])
    except ValueError:
        return
    for a, b, word, belief in found.pairs:
        assert 0 <= a < b < 3
        assert word in {"same", "different", "unsure"}
        assert 0 < belief <= 1


@given(st.binary(max_size=60))
def test_any_request_is_an_object_or_refused(content):
    with suppress(BadRequestError):
        assert isinstance(parse_body(content), dict)


answers = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from(["same", "different"])).filter(
        lambda one: one[0] < one[1]
    ),
    max_size=18,
    unique_by=lambda one: one[:2],
)


@given(answers)
def test_what_is_accepted_is_consistent_and_equals_the_closure(said):
    evidence = evidence_of(*said)
    by_word = {
        word: [pair for pair, one in evidence.accepted.items() if one.relation == word]
        for word in ("same", "different")
    }
    closure = Constraints(7, by_word["same"], by_word["different"]).closure()  # raises if not
    for a, b in combinations(range(7), 2):
        assert evidence.relation(a, b) == closure.relation(a, b)
    assert evidence.n_settled == closure.n_must_link + closure.n_cannot_link
    for conflict in evidence.conflicts():
        links = [*conflict.chain, conflict.ignored]
        # An odd number of "different" around a ring of "same" cannot be, and one is odd.
        assert sum(link.relation == "different" for link in links) == 1
        ends = [sample for link in links for sample in link.pair]
        assert all(ends.count(sample) == 2 for sample in ends)
