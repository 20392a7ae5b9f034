"""Oracles: items, batches, probabilities, failures; language models as functions of a prompt."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from linkwise import ConflictError, Constraints
from linkwise.active import (
    Answer,
    OracleError,
    ReviewSession,
    Session,
    TextOracle,
    TruthOracle,
    UnreadableReplyError,
    ask_oracle,
    parse_reply,
    simulate,
)
from linkwise.active.answers import graded
from linkwise.active.prompts import describe, fill
from linkwise.active.replies import ReplyCache, question_key
from linkwise.active.text_oracle import error_estimate

X, y = make_blobs(40, centers=3, cluster_std=3, random_state=0)
NAMES = [f"{'abc'[k]}-{i}" for i, k in enumerate(y)]


def a_session(**settings):
    return Session(X, 3, **{"strategy": "explore", "random_state": 0, **settings})


def same_letter(a, b):
    return a[0] == b[0]


def model(prompt):
    """In place of a language model: the items are of one class if their first letters agree."""
    first, second = (part.strip()[0] for part in prompt.split("item:")[1:])
    return "Same." if first == second else "Different."


# Probabilities ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probability", "word", "belief"),
    [(0.9, "same", 0.8), (0.25, "different", 0.5), (1.0, "same", 1), (0, "different", 1)],
)
def test_a_probability_becomes_a_belief_as_votes_do(probability, word, belief):
    found, lean = graded(probability)
    assert (found, round(lean, 12)) == (word, belief)
    assert graded(np.float32(0.5)) == ("unknown", 1.0)


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan"), "perhaps", 2, [True]])
def test_what_is_no_answer_is_refused(wrong):
    with pytest.raises(ValueError, match="from 0 to 1"):
        graded(wrong)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        *((word, "same") for word in ("Same", " YES ", "must-link", "1")),
        *((word, "different") for word in ("Diff", "cannot")),
        ("Unknown", "unknown"),
    ],
)
def test_answers_may_be_the_words_of_files(word, meant):
    assert graded(word) == (meant, 1.0)


def test_an_oracle_whose_first_answer_is_none_ends_at_once():
    asked = []
    with pytest.raises(OracleError, match=r"not 'maybe'.*asked for the first time"):
        ask_oracle(a_session(), lambda *pair: asked.append(pair) or "maybe", 20, items=NAMES)
    assert len(asked) == 1


def test_probabilities_are_evidence_and_no_facts():
    session = a_session()
    session.answer(0, 1, 0.9)
    session.answer(1, 2, 0.2)
    session.answer(0, 2, "same")  # no contradiction: the others are no facts
    c = session.constraints
    assert c.must_link.tolist() == [[0, 1], [0, 2]]
    np.testing.assert_allclose(c.must_link_belief, [0.8, 1.0])
    np.testing.assert_allclose(c.cannot_link_belief, [0.6])


def test_a_pair_with_a_probability_is_not_asked_again():
    session = a_session()
    asked = set()
    for _ in range(15):
        pair = session.next()
        assert pair not in asked
        asked.add(pair)
        session.answer(*pair, 0.7 if y[pair[0]] == y[pair[1]] else 0.3)


def test_noisy_sessions_weigh_probabilities_less_too():
    session = a_session(noisy=True)
    session.answer(0, 1, 0.75)
    np.testing.assert_allclose(session.constraints.must_link_belief, [0.45])


def test_beliefs_survive_the_file_and_damage_is_named(tmp_path):
    path = tmp_path / "answers.jsonl"
    session = a_session(path=path)
    session.answer(0, 1, 0.9)
    session.answer(2, 3, "same")
    again = Session.load(path, X)
    assert again.constraints == session.constraints
    assert again.answers[0].belief == pytest.approx(0.8)
    lines = path.read_text().splitlines()
    assert "belief" not in lines[2]  # files without probabilities stay as they were
    session.save(tmp_path / "copy.jsonl")
    assert Session.load(tmp_path / "copy.jsonl", X).constraints == session.constraints


def test_the_review_queue_takes_probabilities_too(tmp_path):
    path = tmp_path / "review.jsonl"
    review = ReviewSession(X, path=path)
    review.answer(0, 1, 0.75)
    np.testing.assert_allclose(review.constraints.must_link_belief, [0.5])
    assert ReviewSession(X, path=path).constraints == review.constraints


def test_an_answer_is_still_a_triple():
    i, j, word = Answer(0, 1, "same", 0.5)
    assert (i, j, word) == (0, 1, "same")
    assert pickle.loads(pickle.dumps(Answer(0, 1, "same", 0.5))).belief == 0.5
    assert repr(Answer(0, 1, "same", 0.5)).endswith("belief=0.5)")
    assert Answer(0, 1, "same").belief == 1


# Items ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "items",
    [NAMES, np.array(NAMES), pd.Series(NAMES, index=range(100, 140))],
    ids=["list", "array", "series"],
)
def test_oracles_get_the_items(items):
    by_items, by_rows = a_session(), a_session()
    asked = ask_oracle(by_items, same_letter, 20, items=items)
    simulate(by_rows, TruthOracle(y), 20, every=20)
    assert by_items.answers == by_rows.answers
    assert asked.n_answers == 20
    assert not asked.left


def test_rows_of_a_data_frame_are_items():
    frame = pd.DataFrame({"name": NAMES, "x": X[:, 0]}, index=NAMES)
    session = a_session()
    ask_oracle(session, lambda a, b: same_letter(a["name"], b["name"]), 5, items=frame)
    assert len(session.answers) == 5


def test_wrong_numbers_of_items_are_named():
    with pytest.raises(ValueError, match="39 items, but the session is about 40"):
        ask_oracle(a_session(), same_letter, 5, items=NAMES[1:])


def test_simulated_sessions_take_items_and_batches():
    curve = simulate(
        a_session(),
        lambda pairs: [same_letter(*pair) for pair in pairs],
        12,
        every=4,
        items=NAMES,
        batch_size=4,
    )
    assert curve.n_questions.tolist() == [0, 4, 8, 12]


# Batches ----------------------------------------------------------------------------------


def test_batches_are_answered_at_once_and_the_budget_holds():
    sizes = []

    def oracle(pairs):
        sizes.append(len(pairs))
        return [same_letter(*pair) for pair in pairs]

    session = a_session(strategy="random")
    asked = ask_oracle(session, oracle, 10, items=NAMES, batch_size=4)
    assert sizes == [4, 4, 2]
    assert asked.n_answers == len(session.answers) == 10


def test_too_few_answers_of_a_batch_are_an_error():
    with pytest.raises(ValueError, match="got 4 pairs and returned 1 answers"):
        ask_oracle(a_session(strategy="random"), lambda _: [True], 8, batch_size=4)


def test_a_contradiction_in_a_batch_loses_no_other_answer():
    session = a_session(strategy=lambda *_: [(0, 1), (1, 2), (0, 2), (3, 4)])
    with pytest.raises(ConflictError, match="0 - 1 - 2"):
        ask_oracle(session, lambda _: [True, True, False, True], 4, batch_size=4)
    assert session.constraints == Constraints(40, [(0, 1), (1, 2), (3, 4)])


# Failures ---------------------------------------------------------------------------------


class Unreliable:
    """Fails at the calls of some numbers."""

    def __init__(self, *fails):
        self.fails, self.n_calls, self.asked = set(fails), 0, []

    def __call__(self, a, b):
        self.n_calls += 1
        self.asked.append((a, b))
        if self.n_calls in self.fails:
            raise TimeoutError("no reply")
        return same_letter(a, b)


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(1, 15), max_size=8), st.integers(1, 4))
def test_failures_are_asked_again_and_nothing_is_lost(fails, batch_size):
    oracle = Unreliable(*fails)
    session = a_session(strategy="random")
    asked = (
        ask_oracle(session, oracle, 12, items=NAMES)
        if batch_size == 1
        else ask_oracle(
            session,
            lambda pairs: [attempt(oracle, pair) for pair in pairs],
            12,
            items=NAMES,
            batch_size=batch_size,
        )
    )
    assert asked.n_answers == 12 == len({a[:2] for a in session.answers})
    assert asked.n_failures == len([n for n in fails if n <= oracle.n_calls])
    assert all((y[a.i] == y[a.j]) == (a.answer == "same") for a in session.answers)


def attempt(oracle, pair):
    try:
        return oracle(*pair)
    except TimeoutError as error:
        return error


def test_another_question_comes_before_the_one_that_failed():
    oracle = Unreliable(1)
    ask_oracle(a_session(strategy="random"), oracle, 2, items=NAMES)
    first, second, *_ = oracle.asked
    assert first != second


def test_a_question_that_always_fails_is_left():
    session = a_session(strategy=lambda *_: [(0, 1)])

    def oracle(a, b):
        raise ConnectionError("offline")

    asked = ask_oracle(session, oracle, 5)
    assert asked == (0, 3, [(0, 1)])


@pytest.mark.parametrize("wrong", [ConnectionError("offline"), "perhaps"])
def test_an_oracle_that_is_gone_ends_the_run_and_the_session_goes_on(tmp_path, wrong):
    path = tmp_path / "answers.jsonl"
    session = a_session(strategy="random", path=path)
    n_calls = []

    def oracle(a, b):
        n_calls.append(1)
        if len(n_calls) <= 3:
            return same_letter(a, b)
        if isinstance(wrong, Exception):
            raise wrong
        return wrong

    with pytest.raises(OracleError, match=r"failed 10 times in a row.*3 answers"):
        ask_oracle(session, oracle, 30, items=NAMES)
    again = Session.load(path, X)
    assert len(again.answers) == 3
    assert ask_oracle(again, same_letter, 4, items=NAMES).n_answers == 4
    assert len(Session.load(path, X).answers) == 7


def test_an_interrupt_is_no_failure_and_loses_nothing(tmp_path):
    path = tmp_path / "answers.jsonl"
    session = a_session(strategy="random", path=path)
    n_calls = []

    def oracle(a, b):
        n_calls.append(1)
        if len(n_calls) == 4:
            raise KeyboardInterrupt
        return same_letter(a, b)

    with pytest.raises(KeyboardInterrupt):
        ask_oracle(session, oracle, 10, items=NAMES)
    assert len(Session.load(path, X).answers) == 3


# Replies ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Same.", True),
        ("**different**", False),
        ("Unsure", None),
        ("They are the same", True),
        ("They aren't the same.", False),
        ("They cannot be the same person.", False),
        ("They don't differ", True),
        ("no match", False),
        ("No information is given about that.", None),
        ("I'm not sure, but they may be the same.", None),
        ("I can\u2019t tell.", None),
        ("Both live in the same city.\nFinal answer: **different**", False),
        ("<think>could be the same</think>different", False),
        ('{"same": false, "why": "the same city, but..."}', False),
        ('```json\n{"answer": "same"}\n```', True),
        ('{"answer": "different", "probability": 0.1}', 0.1),
        ("0.75", 0.75),
        ("85 %", 0.85),
        ("Probability of same: 93 %", 0.93),
        ("Same (confidence: 80%)", 0.8),
        ("Different, confidence 0.75", 0.25),
        ("Yes, they are.", True),
        ("No, they are two people.", False),
    ],
)
def test_replies_are_read_as_meant(reply, answer):
    found = parse_reply(reply)
    assert found == answer
    assert (found is None) == (answer is None)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "7",
        "-0.3",
        "120 %",
        "Hello!",
        "Same city, different names.",
        "same, different, or unsure",
        "The same city. So they are different people.",
        "answer: different, probability: 0.9",
    ],
)
def test_what_says_nothing_or_two_things_is_unreadable(reply):
    with pytest.raises(UnreadableReplyError, match="does not say"):
        parse_reply(reply)


WORDS = st.sampled_from(
    [
        "same",
        "different",
        "unsure",
        "not",
        "the",
        "answer:",
        "0.5",
        "90%",
        "\n",
        ".",
        "yes",
        "no",
        "{",
    ]
)


@given(st.one_of(st.text(), st.lists(WORDS).map(" ".join)))
def test_any_reply_is_an_answer_or_unreadable(reply):
    try:
        found = parse_reply(reply)
    except UnreadableReplyError:
        return
    assert found is None or 0 <= found <= 1


@given(
    st.sampled_from([("same", True), ("different", False), ("unsure", None)]), st.text("*_ \n.!\"'")
)
def test_decoration_does_not_matter(meant, decoration):
    word, answer = meant
    assert parse_reply(f"{decoration}{word.title()}{decoration}") is answer


@given(st.text(), st.text())
def test_items_are_put_into_a_template_as_they_are(a, b):
    assert fill("<{a}|{b}|{c}>", {"a": a, "b": b, "question": ""}) == f"<{a}|{b}|{{c}}>"


def test_items_are_described():
    row = pd.Series({"name": "Ann", "age": 31.0})
    assert describe(row) == "name: Ann\nage: 31"
    assert describe([1, 2.5]) == "1, 2.5"
    assert describe("text") == "text"
    assert describe(7) == "7"
    assert len(describe("x" * 10_000)) == 4_000


def test_a_template_without_an_item_is_refused():
    with pytest.raises(ValueError, match=r"has no {b}"):
        TextOracle(model, template="{a}?")


# A model as an oracle ---------------------------------------------------------------------


def test_a_model_answers_a_session():
    session = a_session()
    oracle = TextOracle(model)
    ask_oracle(session, oracle, 15, items=NAMES)
    assert all((y[a.i] == y[a.j]) == (a.answer == "same") for a in session.answers)
    assert oracle.n_calls == 15


def test_calls_are_tried_again_and_unreadable_replies_get_a_reminder():
    prompts = []

    def complete(prompt):
        prompts.append(prompt)
        if len(prompts) == 1:
            raise TimeoutError
        return "Well..." if len(prompts) == 2 else "same"

    assert TextOracle(complete, wait=0)("a", "b") is True
    assert prompts[0] == prompts[1]
    assert prompts[2].startswith(prompts[0])
    assert "nothing but one word" in prompts[2]


@pytest.mark.parametrize(
    ("reply", "error"), [("Well...", UnreadableReplyError), (1 / 3, ValueError)]
)
def test_after_its_retries_a_call_raises(reply, error):
    oracle = TextOracle(lambda _: str(reply) + "?", retries=2, parse=refuse, wait=0)
    with pytest.raises(error):
        oracle("a", "b")
    assert oracle.n_calls == 3
    assert len(oracle.cache) == 0  # what cannot be read is not kept


def refuse(reply):
    raise ValueError(f"{reply} is not what was expected")


def test_votes_in_both_orders_show_a_model_that_prefers_the_first_place():
    def first_place(prompt):
        first, second = (part.strip()[0] for part in prompt.split("item:")[1:])
        return "same" if first <= second else "different"

    oracle = TextOracle(first_place, votes=2)
    assert oracle("a", "b") == 0.5
    assert oracle("a", "a") is True
    found = oracle.estimate_error([("a", "b"), ("a", "a"), ("b", "c"), ("c", "c")])
    assert found.repeated == 0
    assert found.swapped == 0.5
    assert 0.15 < found.error_rate < 0.5


def test_the_estimate_of_errors_is_near_the_truth():
    rng = np.random.RandomState(0)

    def complete(prompt):
        return (
            model(prompt)
            if rng.random_sample() > 0.1
            else ["Same", "Different"]["S" in model(prompt)]
        )

    pairs = [(NAMES[i], NAMES[j]) for i, j in rng.choice(40, size=(60, 2))]
    found = TextOracle(complete).estimate_error(pairs)
    assert 0.05 < found.error_rate < 0.15
    assert found.n_pairs == 60


def test_no_contradiction_among_few_pairs_is_no_proof():
    few, many = (error_estimate([[True] * 4] * n).error_rate for n in (2, 200))
    assert 0 < many < few < 0.1
    assert np.isnan(error_estimate([]).repeated)
    assert error_estimate([[None, True], [True, None]])[0] == 0


def test_an_error_rate_makes_answers_evidence():
    session = a_session(strategy=lambda *_: [(0, 1)])
    ask_oracle(session, TextOracle(lambda _: "same", error_rate=0.1), 1)
    np.testing.assert_allclose(session.constraints.must_link_belief, [0.8])
    with pytest.raises(ValueError, match=r"below 0\.5"):
        TextOracle(model, error_rate=0.5)


def test_a_batch_is_asked_in_threads_with_exceptions_in_place():
    def complete(prompt):
        if "c-" in prompt:
            raise TimeoutError
        return model(prompt)

    oracle = TextOracle(complete, workers=4, retries=0)
    found = oracle.batch([("a-1", "a-2"), ("a-1", "c-2"), ("a-1", "b-2")])
    assert (found[0], found[2]) == (True, False)
    assert isinstance(found[1], TimeoutError)
    session = a_session()
    ask_oracle(session, TextOracle(model, workers=4), 9, items=NAMES, batch_size=3)
    assert all((y[a.i] == y[a.j]) == (a.answer == "same") for a in session.answers)


# The file of replies ----------------------------------------------------------------------


def test_no_prompt_is_sent_twice_in_another_run_neither(tmp_path):
    path = tmp_path / "replies.jsonl"
    first = TextOracle(model, cache=path, votes=4)
    answers = [first("a", "b"), first("a", "aa")]
    second = TextOracle(model, cache=path, votes=4)
    assert [second("a", "b"), second("a", "aa")] == answers
    assert second.n_calls == 0
    assert first.n_calls == 8 == len(second.cache)  # repeated votes are calls of their own
    other = TextOracle(model, cache=path, model="larger")
    other("a", "b")
    assert other.n_calls == 1


def test_a_damaged_line_is_left_out_and_asked_again(tmp_path):
    path = tmp_path / "replies.jsonl"
    cache = ReplyCache(path)
    for number in range(3):
        cache.put(question_key(str(number)), f"reply {number} \u00e9\n")
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for at in range(len(lines[0]), len(lines[0]) + len(lines[1]) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.warns(UserWarning, match="damaged lines"):
            again = ReplyCache(path)
        assert again.get(question_key("0")) == "reply 0 \u00e9\n"
        assert again.get(question_key("2")) == "reply 2 \u00e9\n"
        assert again.get(question_key("1")) is None


def test_no_changed_byte_is_read_as_another_reply(tmp_path):
    path, rng = tmp_path / "replies.jsonl", np.random.default_rng(0)
    replies = {question_key(word): word for word in ("same", "different")}
    for key, reply in replies.items():
        ReplyCache(path).put(key, reply)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for byte in {whole[at] ^ int(rng.integers(1, 256)), ord("\n"), ord('"')} - {whole[at]}:
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*damaged lines")
                cache = ReplyCache(path)
            assert all(cache.get(key) in {reply, None} for key, reply in replies.items())
            assert len(cache) == sum(cache.get(key) is not None for key in replies)
            assert len(cache) + (whole[at] == ord("\n")) >= 1


def test_a_torn_line_is_left_out_and_the_next_one_is_whole(tmp_path):
    path = tmp_path / "replies.jsonl"
    ReplyCache(path).put(question_key("0"), "same")
    whole = path.read_bytes()
    for cut in range(1, len(whole) - 1):
        path.write_bytes(whole + whole[:cut])
        again = ReplyCache(path)
        assert len(again) == 1
        again.put(question_key("1"), "different")
        with pytest.warns(UserWarning, match="1 damaged"):
            assert len(ReplyCache(path)) == 2


def test_a_file_of_something_else_is_not_touched(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("name,age\nAnn,31\n")
    with pytest.raises(ValueError, match="no file of replies"):
        TextOracle(model, cache=path)
    assert path.read_text() == "name,age\nAnn,31\n"


@given(st.text(), st.text())
def test_any_reply_survives_its_file(tmp_path_factory, prompt, reply):
    path = tmp_path_factory.mktemp("replies") / "replies.jsonl"
    ReplyCache(path).put(question_key(prompt), reply)
    assert ReplyCache(path).get(question_key(prompt)) == reply
    json.loads(path.read_bytes())


KILLED = """
import os, sys
from linkwise.active import TextOracle
def complete(prompt):
    if "third" in prompt:
        os._exit(9)
    return "same"
oracle = TextOracle(complete, cache=sys.argv[1])
for word in ("first", "second", "third"):
    oracle("a", word)
"""


def test_a_killed_process_leaves_its_replies(tmp_path):
    path = tmp_path / "replies.jsonl"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == 9
    assert len(ReplyCache(path)) == 2
