"""The server without a browser: answers, conflicts, exports, and who may talk to it."""

from __future__ import annotations

import csv
import io
import json
import socket
import time
import uuid

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="the annotation page needs linkwise[app]")
try:
    from starlette.testclient import TestClient
except (ImportError, RuntimeError):  # starlette raises the second; its older versions want httpx
    pytest.skip("tests of the server need httpx2, or httpx", allow_module_level=True)

from linkwise.active.answers import Answer
from linkwise.active.journal import FORMAT, fingerprint, write
from linkwise.app import views
from linkwise.app.conflicts import Evidence, Verdict
from linkwise.app.engine import Found, Known, Question, answers_of
from linkwise.app.events import Event
from linkwise.app.exports import EXPORTS
from linkwise.app.items import Items
from linkwise.app.listen import bind
from linkwise.app.matching import matched
from linkwise.app.project import Project
from linkwise.app.room import Room
from linkwise.app.server import Server
from linkwise.app.settle import settled
from linkwise.app.solvers import ReviewSolver, SessionSolver, replay
from linkwise.graph import Prepared
from linkwise.metrics import adjusted_rand
from rooms import TOKEN, StubSolver, blobs, make_room

PORT = 8000
FIELDS = (
    "a", "b", "relation", "check", "ms", "answers", "item", "bad", "action", "clusters", "name",
    "lock", "samples", "other", "k", "kind", "text", "dry",
)  # fmt: skip
POSTS = (
    "answers", "flag", "undo", "redo", "resolve", "preview", "select", "clusters/ask", "clusters/0",
    "k", "ask", "me", "import",
)  # fmt: skip
WORDS = ("same", "flip", "sure", "merge", "mixed", "pure", "pairs", "labels", "i,j\n0,1", "\ud800")
ODD_VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 61), st.integers(), st.just(10**400),
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(WORDS), st.text(max_size=3),
)  # fmt: skip
ODD_VALUES = ODD_VALUE | st.lists(ODD_VALUE, max_size=3) | st.dictionaries(st.text(), ODD_VALUE)
HEADERS = {"origin": f"http://127.0.0.1:{PORT}", "x-tab": "one"}


def client_of(room):
    client = TestClient(
        Server(room, PORT).app(TOKEN), base_url=f"http://127.0.0.1:{PORT}", headers=HEADERS
    )
    client.cookies.set(f"linkwise_{PORT}", TOKEN)
    return client


@pytest.fixture
def room(tmp_path):
    return make_room(tmp_path)


@pytest.fixture
def client(room):
    with client_of(room) as client:
        wait_for(lambda: room.clustering.method == "stub")
        yield client


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def send(client, path, **body):
    return client.post(path, json={"uuid": str(uuid.uuid4()), **body})


def say(client, a, b, relation, **more):
    reply = send(client, "/api/answers", a=a, b=b, relation=relation, **more)
    assert reply.status_code == 201, reply.text
    return reply.json()


def state(client):
    return client.get("/api/state").json()["state"]


# Answering -------------------------------------------------------------------------------------


def test_an_answer_is_in_the_file_when_the_reply_comes(client, room):
    question = client.get("/api/question").json()["question"]
    reply = say(client, question["a"], question["b"], "same")
    assert reply["state"]["answers"] == 1
    assert reply["question"]["id"] != question["id"]
    assert room.project._one("select count(*) from event") == 1


def test_the_same_question_until_it_is_answered(client):
    first = client.get("/api/question").json()["question"]["id"]
    assert client.get("/api/question").json()["question"]["id"] == first


@pytest.mark.parametrize("shown", ["31-17", "0-60", "-1-2", "17-17", "17", "17-31-40", "x-y"])
def test_the_question_on_the_screen_stays_if_there_is_such_a_pair(client, room, shown):
    reply = send(client, f"/api/answers?prefer={shown}", a=3, b=4, relation="same")
    assert reply.status_code == 201
    question = reply.json()["question"]["id"]
    assert (question == "17-31") == (shown == "31-17")
    room.release("one")
    assert client.get(f"/api/question?prefer={shown}").json()["question"]["id"] == question


def test_an_answer_that_is_sent_twice_counts_once(client):
    body = {"uuid": str(uuid.uuid4()), "a": 0, "b": 1, "relation": "same"}
    codes = [client.post("/api/answers", json=body).status_code for _ in range(2)]
    assert codes == [201, 200]
    assert state(client)["answers"] == 1


def test_what_follows_is_never_asked(client):
    say(client, 0, 1, "same")
    say(client, 1, 2, "same")
    assert state(client)["settled"] == 3
    for _ in range(50):
        question = client.get("/api/question").json()["question"]
        assert {question["a"], question["b"]} != {0, 2}
        say(client, question["a"], question["b"], "unsure")


def test_not_sure_adds_nothing_and_later_comes_back_after_ten_answers(client, room):
    first = client.get("/api/question").json()["question"]
    say(client, first["a"], first["b"], "later")
    seen = []
    for _ in range(10):
        question = client.get("/api/question").json()["question"]
        seen.append(question["id"])
        say(client, question["a"], question["b"], "unsure")
    assert first["id"] not in seen
    assert client.get("/api/question").json()["question"]["id"] == first["id"]
    assert state(client)["settled"] == 0


def test_a_bad_item_is_not_asked_about_and_flagged_in_the_export(client):
    question = client.get("/api/question").json()["question"]
    send(client, "/api/flag", item=question["a"], bad=True)
    for _ in range(30):
        now = client.get("/api/question").json()["question"]
        assert question["a"] not in (now["a"], now["b"])
        say(client, now["a"], now["b"], "unsure")
    rows = list(csv.DictReader(io.StringIO(client.get("/api/export/labels.csv").text)))
    assert [row["flagged"] for row in rows].index("1") == question["a"]


def test_undo_and_redo_go_all_the_way(client, room):
    rng = np.random.RandomState(0)
    for _ in range(15):
        a, b = rng.choice(60, 2, replace=False).tolist()
        send(client, "/api/answers", a=a, b=b, relation="same" if rng.rand() < 0.5 else "different")
    after = (dict(room.evidence.accepted), room.clustering.labels.tolist())
    for _ in range(15):
        send(client, "/api/undo")
    assert not room.evidence.accepted
    assert send(client, "/api/undo").json()["turned"] == []
    for _ in range(15):
        send(client, "/api/redo")
    assert (dict(room.evidence.accepted), room.clustering.labels.tolist()) == after


def test_labels_follow_the_answers_at_once_and_keep_their_numbers(tmp_path):
    solver = StubSolver(blobs()[1], 3, shift=True)
    room = make_room(tmp_path, solver=solver)
    with client_of(room) as client:
        wait_for(lambda: room.clustering.method == "stub")
        before = room.clustering.labels.copy()
        a, b = int(np.flatnonzero(before == 0)[0]), int(np.flatnonzero(before == 1)[0])
        reply = say(client, a, b, "same")
        assert reply["n_moved"] == 1
        assert room.clustering.labels[a] == room.clustering.labels[b]
        others = np.setdiff1d(np.arange(60), [a, b])
        for k in range(3):  # the solver numbers its clusters anew each time
            n_fits, rev = solver.n_fits, room.clustering.rev
            say(client, 50 + 2 * k, 51 + 2 * k, "unsure")
            wait_for(lambda n=n_fits, r=rev: solver.n_fits > n and room.clustering.rev > r + 2)
            np.testing.assert_array_equal(room.clustering.labels[others], before[others])


def test_the_first_clustering_is_no_effect_of_answers(client, room):
    rng = np.random.RandomState(0)
    for _ in range(16):
        a, b = rng.choice(60, 2, replace=False).tolist()
        say(client, a, b, "unsure")
        wait_for(lambda: room.runs[-1]["given"] == room.project.ledger.facts.n_given)
    quality = client.get("/api/quality").json()
    assert len(quality["moved"]) == 17
    assert not any(quality["moved"])
    assert quality["stop"]["moved"] == 0
    assert quality["stop"]["still"] == 0.05


# Conflicts -------------------------------------------------------------------------------------


def test_a_contradiction_is_shown_and_resolved(client, room):
    say(client, 0, 1, "same")
    say(client, 1, 2, "same")
    reply = say(client, 0, 2, "different")
    assert reply["conflict"]
    assert reply["question"] is not None
    (conflict,) = client.get("/api/conflicts").json()["conflicts"]
    said = {(link["a"]["id"], link["b"]["id"], link["relation"]) for link in conflict["links"]}
    assert said == {
        ("item 0", "item 2", "different"),
        ("item 0", "item 1", "same"),
        ("item 1", "item 2", "same"),
    }
    send(client, "/api/resolve", a=1, b=2, action="flip")
    assert client.get("/api/conflicts").json()["conflicts"] == []
    labels = room.clustering.labels
    assert labels[0] == labels[1] != labels[2]
    assert len(client.get("/api/history").json()["events"]) == 4


def test_a_confirmed_answer_makes_another_one_the_ignored(client, room):
    for a, b, word in [(0, 1, "same"), (1, 2, "same"), (0, 2, "different")]:
        say(client, a, b, word)
    assert [one.pair for one in room.evidence.ignored] == [(0, 2)]
    send(client, "/api/resolve", a=0, b=2, action="sure")
    assert [one.pair for one in room.evidence.ignored] == [(1, 2)]
    send(client, "/api/undo")
    assert [one.pair for one in room.evidence.ignored] == [(0, 2)]


def test_too_few_clusters_are_told_and_more_are_offered(client):
    for a, b in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]:
        say(client, a, b, "different")
    (conflict,) = client.get("/api/conflicts").json()["conflicts"]
    assert (conflict["kind"], conflict["k"], conflict["needed"]) == ("clusters", 3, 4)
    send(client, "/api/k", k=4)
    assert state(client)["k"] == 4
    assert client.get("/api/conflicts").json()["conflicts"] == []


# Several people --------------------------------------------------------------------------------


def test_two_people_get_different_questions_and_their_agreement_is_told(client, room):
    first = client.get("/api/question", headers={"x-tab": "one"}).json()["question"]
    second = client.get("/api/question", headers={"x-tab": "two"}).json()["question"]
    assert first["id"] != second["id"]
    say(client, 0, 1, "same")
    client.post("/api/me", json={"name": "Ada"})
    say(client, 0, 1, "different")
    (conflict,) = client.get("/api/conflicts").json()["conflicts"]
    assert conflict["kind"] == "disagreement"
    assert room.evidence.relation(0, 1) == 0
    (agreement,) = client.get("/api/quality").json()["agreement"]
    assert (agreement["people"], agreement["agree"], agreement["pairs"]) == (["Ada", "me"], 0, 1)
    send(client, "/api/resolve", a=0, b=1, action="sure", relation="same")
    assert room.evidence.relation(0, 1) == 1


def test_repeated_questions_estimate_how_often_a_person_errs(client):
    for a in range(11):
        say(client, a, a + 20, "same")
    reply = client.get("/api/question", headers={"x-check": "1", "x-tab": "new"}).json()
    question = reply["question"]
    assert question["check"] == "same"
    say(client, question["a"], question["b"], "different", check="same")
    (person,) = client.get("/api/quality").json()["people"]
    assert (person["checks"], person["differ"]) == (1, 1)


def test_another_process_is_noticed(tmp_path):
    room = make_room(tmp_path)
    with client_of(room) as client:
        other = Project(room.project.path, room.items.names, "data")
        other.append([Event("answer", str(uuid.uuid4()), "terminal", 3, 4, "same")])
        wait_for(lambda: state(client)["answers"] == 1)
        other.close()


# Clusters, selections, modes -------------------------------------------------------------------


def test_clusters_are_named_locked_and_asked_about(client, room):
    number = client.get("/api/clusters").json()["clusters"][0]["id"]
    send(client, f"/api/clusters/{number}", name="early")
    send(client, f"/api/clusters/{number}", lock="complete")
    named = client.get("/api/clusters").json()["clusters"]
    assert {(one["name"], one["lock"]) for one in named if one["id"] == number} == {
        ("early", "complete")
    }
    labels = room.clustering.labels
    for _ in range(20):
        question = client.get("/api/question").json()["question"]
        assert number not in (labels[question["a"]], labels[question["b"]])
        say(client, question["a"], question["b"], "unsure")
    others = [one["id"] for one in named if one["id"] != number]
    reply = send(client, "/api/clusters/ask", action="merge", clusters=others).json()
    ends = {int(labels[reply["question"][side]]) for side in "ab"}
    assert ends == set(others)
    assert "one" in reply["question"]["why"]


def test_a_selection_is_previewed_and_then_answered(client, room):
    labels = room.clustering.labels
    samples = [*np.flatnonzero(labels == 0)[:3].tolist(), int(np.flatnonzero(labels == 1)[0])]
    told = client.post("/api/preview", json={"samples": samples, "relation": "same"}).json()
    assert told == {"answers": 3, "moved": 1, "settled": 6, "conflicts": 0}
    assert not room.project.ledger.events
    send(client, "/api/select", samples=samples, relation="same")
    assert len({int(room.clustering.labels[k]) for k in samples}) == 1
    assert room.evidence.n_settled == 6
    send(client, "/api/undo")
    assert room.evidence.n_settled == 0


def test_a_new_clustering_is_never_seen_without_the_answers(client, room, monkeypatch):
    pair = (int(np.flatnonzero(room.clustering.labels == 0)[0]),
            int(np.flatnonzero(room.clustering.labels == 1)[0]))  # fmt: skip
    say(client, *pair, "same")
    seen = []
    settle = room.settled

    def looking(now, evidence):
        seen.append(room.clustering.labels[list(pair)].tolist())
        return settle(now, evidence)

    monkeypatch.setattr(room, "settled", looking)
    room.found(room._engine._solver.found(room.known()))
    assert seen
    assert all(a == b for a, b in seen)


def test_one_against_many_answers_all_at_once(client):
    many = client.get("/api/many").json()["many"]
    assert len(many["others"]) >= 2
    answers = [{"a": many["a"], "b": b, "relation": "different"} for b in many["others"]]
    send(client, "/api/answers", answers=answers)
    assert state(client)["answers"] == len(answers)


def test_items_are_found(client):
    found = client.get("/api/find?q=item 7").json()["items"]
    assert found[0]["id"] == "item 7"
    assert client.get("/api/find?q=Name 12").json()["items"][0]["index"] == 12


# Errors of the solver, the end, the news -------------------------------------------------------


def test_a_failing_solver_is_told_and_answering_goes_on(tmp_path, capsys):
    solver = StubSolver(blobs()[1], 3)
    room = make_room(tmp_path, solver=solver)
    with client_of(room) as client:
        wait_for(lambda: room.clustering.method == "stub")
        solver.broken = True
        say(client, 0, 1, "same")
        wait_for(lambda: "broken on purpose" in state(client)["error"])
        solver.broken = False
        assert say(client, 2, 3, "same")["state"]["answers"] == 2
        wait_for(lambda: state(client)["error"] == "")


def test_it_ends_when_nothing_is_left_to_ask(tmp_path):
    room = make_room(tmp_path, n=6, k=2)
    truth = blobs(6, 2)[1]
    with client_of(room) as client:
        wait_for(lambda: room.clustering.labels is not None)  # before, there is no question
        for _ in range(20):
            question = client.get("/api/question").json()["question"]
            if question is None:
                break
            same = truth[question["a"]] == truth[question["b"]]
            say(client, question["a"], question["b"], "same" if same else "different")
        assert question is None
        assert state(client)["settled"] == 15


def test_quality_ends_with_the_agreement_that_the_header_shows(tmp_path):
    truth = blobs()[1]
    room = make_room(tmp_path, truth=truth)
    with client_of(room) as client:
        wait_for(lambda: room.clustering.method == "stub")
        a, b = np.flatnonzero(truth == 0)[0], np.flatnonzero(truth == 1)[0]
        say(client, int(a), int(b), "same")  # wrong: one sample is shown in another cluster
        assert client.get("/api/quality").json()["ari"][-1] == state(client)["ari"] < 1


def test_news_that_a_page_missed_are_sent_again(room):
    import asyncio

    async def read(after, n):
        found = []
        async for text in room.feed.follow(after):
            found.append(text)
            if len(found) == n:
                return found
        return found

    for number in range(3):
        room.feed.publish("rev", {"rev": number})
    retry, *missed = asyncio.run(read(1, 3))
    assert retry.startswith("retry")
    assert [text.split("\n")[0] for text in missed] == ["id: 2", "id: 3"]
    room.close()


# Import and export -----------------------------------------------------------------------------


def test_exports_can_be_imported_again(client, room, tmp_path):
    for a, b, word in [(0, 1, "same"), (1, 2, "same"), (3, 4, "different"), (5, 6, "unsure")]:
        say(client, a, b, word)
    text = client.get("/api/export/constraints.csv").text
    (tmp_path / "other").mkdir()
    other = make_room(tmp_path / "other")
    with client_of(other) as second:
        dry = send(second, "/api/import", kind="pairs", text=text, dry=True).json()
        assert (dry["answers"], dry["settled"]) == (3, 4)
        assert not other.project.ledger.events
        send(second, "/api/import", kind="pairs", text=text, dry=False)
        for a in range(7):
            for b in range(a + 1, 7):
                assert other.evidence.relation(a, b) == room.evidence.relation(a, b)
    rows = list(csv.DictReader(io.StringIO(client.get("/api/export/labels.csv").text)))
    assert [row["id"] for row in rows] == list(room.items.names)
    labels = np.load(io.BytesIO(client.get("/api/export/labels.npy").content), allow_pickle=False)
    assert labels.tolist() == [int(row["cluster"]) for row in rows]
    events = [json.loads(line) for line in client.get("/api/export/audit.jsonl").text.splitlines()]
    assert [event["relation"] for event in events] == ["same", "same", "different", "unsure"]
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(client.get("/api/export/project.sqlite").content)
    from linkwise.app.project import Project

    again = Project(copy, room.items.names, "data")
    assert again.ledger == room.project.ledger
    again.close()


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("pairs", "i,j,link\nitem 0,nobody,must\n", "nobody"),
        ("pairs", "i,j,link\nitem 0,item 1,perhaps\n", "perhaps"),
        ("pairs", "i,j,link,belief\nitem 0,item 1,must,1e999\n", "belief"),
        ("pairs", "\x00\xff", "i"),
        ("pairs", "", "empty"),
        ("labels", "id,label\nnobody,a\n", "nobody"),
        ("labels", "id,label\nitem 0,a\nitem 0,b\n", "two labels"),
        ("labels", "id\n", "two columns"),
        ("other", "i,j,link\n", "pairs"),
        (
            "pairs",
            '{"format": "linkwise session 2"}\n{"i": 0, "j": 1, "answer": "same"}\n',
            "other",
        ),
    ],
)
def test_a_file_that_cannot_be_read_changes_nothing(client, room, kind, text, reason):
    reply = send(client, "/api/import", kind=kind, text=text, dry=False)
    assert reply.status_code == 400
    assert reason in reply.json()["error"]
    assert not room.project.ledger.events


def session_of(path, data, *records):
    """Return the text of a session file."""
    settings = {"strategy": "committee", "method": "auto", "noisy": False, "seed": 0}
    header = {"format": FORMAT, "data": data, "n_samples": 60, "n_clusters": 3, **settings}
    write(path, [header, *records])
    return path.read_text()


def test_labels_and_old_sessions_are_imported(client, room, tmp_path):
    text = "id,label\nitem 0,a\nitem 1,a\nitem 2,b\nitem 3,\n"
    send(client, "/api/import", kind="labels", text=text, dry=False)
    assert (room.evidence.relation(0, 1), room.evidence.relation(1, 2)) == (1, -1)
    journal = session_of(
        tmp_path / "session", fingerprint(room.data.X),
        {"i": 5, "j": 6, "answer": "same", "belief": 0.5},
        {"i": 6, "j": 7, "answer": "different"}, {"undo": True},
        {"i": 8, "j": 9, "answer": "unknown"},
    )  # fmt: skip
    send(client, "/api/import", kind="pairs", text=journal, dry=False)
    assert (room.evidence.relation(5, 6), room.evidence.relation(6, 7)) == (1, 0)
    assert room.evidence.accepted[5, 6].weight == 0.5


def test_a_session_about_other_data_is_not_imported(client, room, tmp_path):
    answer = {"i": 5, "j": 6, "answer": "same"}
    text = session_of(tmp_path / "session", "0", answer)
    reply = send(client, "/api/import", kind="pairs", text=text, dry=False)
    assert (reply.status_code, room.project.ledger.events) == (400, [])
    assert "other data" in reply.json()["error"]
    data = fingerprint(room.data.X)
    text = session_of(tmp_path / "session", data, answer | {"j": 99})
    reply = send(client, "/api/import", kind="pairs", text=text, dry=False)
    assert "Line 2" in reply.json()["error"]


def test_a_damaged_session_is_not_imported(client, room, tmp_path):
    answers = [{"i": 5, "j": 6, "answer": "same"}, {"i": 5, "j": 7, "answer": "same"}]
    text = session_of(tmp_path / "session", fingerprint(room.data.X), *answers)
    changed = text.replace('"i": 5, "j": 6', '"i": 4, "j": 6')
    reply = send(client, "/api/import", kind="pairs", text=changed, dry=False)
    assert (reply.status_code, room.project.ledger.events) == (400, [])
    assert "Line 2 of the file is damaged" in reply.json()["error"]
    torn = text[:-20]  # a line that was never reported as written
    assert send(client, "/api/import", kind="pairs", text=torn, dry=False).status_code == 201
    assert [event.pair for event in room.project.ledger.events] == [(5, 6)]


def test_labels_without_a_header_keep_the_first(client, room):
    send(client, "/api/import", kind="labels", text="item 0,a\nitem 1,a\n", dry=False)
    assert room.evidence.relation(0, 1) == 1


def test_cells_that_look_like_formulas_are_made_harmless(tmp_path):
    names = ["=1+1", "@cmd", *[f"n{k}" for k in range(58)]]
    room = make_room(tmp_path, names=names)
    with client_of(room) as client:
        wait_for(lambda: room.clustering.labels is not None)
        plain = client.get("/api/export/labels.csv").text
        safe = client.get("/api/export/labels.csv?safe=1").text
    assert "\n=1+1," in plain
    assert "\n'=1+1," in safe
    assert "\n'@cmd," in safe


# Security --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example:8000"}, 403),
        ({"host": "127.0.0.1:8001"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"https://127.0.0.1:{PORT}"}, 403),
        ({"cookie": ""}, 401),
        ({"cookie": f"linkwise_{PORT}=wrong"}, 401),
        ({"cookie": f"linkwise_{PORT + 1}={TOKEN}"}, 401),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": ""}, 415),
        ({"content-length": "999999999"}, 413),
        ({}, 201),
    ],
)
def test_only_this_page_can_change_anything(client, room, headers, code):
    body = json.dumps({"uuid": str(uuid.uuid4()), "a": 0, "b": 1, "relation": "same"})
    if "cookie" in headers:
        client.cookies.clear()
    given = {"content-type": "application/json", **headers}
    reply = client.post("/api/answers", content=body, headers=given)
    assert reply.status_code == code
    assert len(room.project.ledger.events) == (code == 201)
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("host", ["evil.example:8000", "127.0.0.1:8001", "127.0.0.1", ""])
def test_a_name_that_was_made_to_point_here_reads_nothing(client, host):
    assert client.get("/api/state", headers={"host": host}).status_code == 403
    assert client.get(f"/?token={TOKEN}", headers={"host": host}).status_code == 403


def test_without_an_origin_the_browser_must_say_that_it_is_the_same_site(client):
    del client.headers["origin"]
    assert send(client, "/api/undo").status_code == 403
    client.headers["sec-fetch-site"] = "same-origin"
    assert send(client, "/api/undo").status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/api/state", "/api/export/project.sqlite", "/static/main.js"]
)
def test_nothing_is_shown_without_the_token(client, path):
    client.cookies.clear()
    reply = client.get(path)
    assert reply.status_code == 401
    assert "item" not in reply.text
    assert client.get("/healthz").json() == {"ok": True}


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(client):
    client.cookies.clear()
    assert client.get("/?token=wrong", follow_redirects=False).status_code == 401
    reply = client.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert client.get("/").status_code == 200


def test_headers_forbid_foreign_content(client):
    headers = client.get("/").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/api/items/99999/media",
        "/api/items/-1/media",
        "/api/items/../../etc/passwd/media",
        "/api/items/..%2f..%2fetc%2fpasswd/media",
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/server.py",
        "/api/export/../project",
        "/api/export/passwd",
    ],
)
def test_paths_lead_nowhere_else(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"a": 0, "b": 0, "relation": "same"},
        {"a": 0, "b": 60, "relation": "same"},
        {"a": -1, "b": 2, "relation": "same"},
        {"a": 0.5, "b": 2, "relation": "same"},
        {"a": True, "b": 2, "relation": "same"},
        {"a": "0", "b": 2, "relation": "same"},
        {"a": 0, "b": 1, "relation": "maybe"},
        {"a": 0, "b": 1},
        {"a": 0, "b": 1, "relation": "same", "uuid": "x"},
        {"a": 0, "b": 1, "relation": "same", "ms": "soon"},
        {"answers": []},
        {"answers": [{"a": 0, "b": 1, "relation": "same"}, {"a": 1, "b": 0, "relation": "same"}]},
        {"answers": [3]},
    ],
)
def test_wrong_values_are_told_and_not_written(client, room, body):
    reply = client.post("/api/answers", json={"uuid": str(uuid.uuid4()), **body})
    assert reply.status_code == 400
    assert reply.json()["error"]
    assert not room.project.ledger.events


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("import", {"kind": {}, "text": "a,b"}),
        ("import", {"kind": ["pairs"], "text": "a,b"}),
        ("import", {"kind": "pairs", "text": "\ud800"}),
        ("resolve", {"a": 0, "b": 1, "action": ["flip"]}),
        ("me", {"name": "\ud800"}),
        ("clusters/ask", {"action": "merge", "clusters": [10**30, 1]}),
        ("clusters/99999999999999999999999", {"name": "x"}),
    ],
)
def test_odd_values_are_bad_requests_and_no_mistakes_of_the_server(client, room, path, body):
    say(client, 0, 1, "same")
    content = json.dumps({"uuid": str(uuid.uuid4()), **body})
    reply = client.post(
        f"/api/{path}", content=content, headers={"content-type": "application/json"}
    )
    assert reply.status_code == 400
    assert len(room.project.ledger.events) == 1


@given(
    body=st.dictionaries(st.sampled_from(FIELDS), ODD_VALUES, min_size=1),
    path=st.sampled_from(POSTS),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_request_is_a_mistake_of_the_server(client, body, path):
    content = json.dumps({"uuid": str(uuid.uuid4()), **body})
    headers = {"content-type": "application/json"}
    assert client.post(f"/api/{path}", content=content, headers=headers).status_code < 500


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000])
def test_what_is_no_json_object_is_refused(client, room, text):
    reply = client.post("/api/answers", content=text, headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert not room.project.ledger.events


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63"
    "fcffff3f0300050001ff5d0a2db40000000049454e44ae426082"
)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("good.png", 200),
        ("picture.svg", 404),
        ("fake.png", 404),
        ("missing.png", 404),
        ("../secret.png", 404),
        ("/etc/hostname", 404),
        ("link.png", 404),
        ("nul\x00.png", 404),
        ("", 404),
    ],
)
def test_images_are_known_types_inside_the_folder(tmp_path, name, code):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "good.png").write_bytes(PNG)
    (folder / "picture.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "fake.png").write_text("<script>alert(1)</script>")
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    names = [str(k) for k in range(60)]
    items = Items(names, "image", {"file": [name] * 60}, image="file", root=folder)
    room = make_room(tmp_path, items=items, names=names)
    with client_of(room) as client:
        reply = client.get("/api/items/3/media")
        assert reply.status_code == code
        if code == 200:
            assert reply.headers["content-type"] == "image/png"


def test_the_scripts_build_no_html():
    from linkwise.app.server import STATIC

    for path in STATIC.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, f"{path.name} uses {word}"
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text


# Several at a time ------------------------------------------------------------------------------


def test_answers_of_another_process_count_with_the_next_own_one(room):
    other = Project(room.project.path, room.items.names, "data")
    other.append([Event("answer", "uuid-1", "terminal", 0, 1, "same")])
    room.act([Event("answer", "uuid-2", "me", 2, 3, "same")])
    other.close()
    assert set(room.evidence.accepted) == {(0, 1), (2, 3)}


def test_looking_ahead_leaves_what_is_to_be_asked(room):
    room.want("tab", [Question((4, 5), "wanted"), Question((6, 7), "wanted")])
    assert room.question("tab", "me").pair == (4, 5)
    room.ahead("tab", "me", 20)
    room.act([Event("answer", "uuid-1", "me", 4, 5, "same")])
    assert room.question("tab", "me").pair == (6, 7)


def test_an_outvoted_answer_is_no_constraint(room):
    for number, (who, word) in enumerate([("a", "same"), ("b", "different"), ("c", "same")]):
        room.act([Event("answer", f"uuid-{number}", who, 0, 1, word)])
    rows = EXPORTS["constraints.csv"][0](room, safe=False).decode().splitlines()[1:]
    assert [row.split(",")[2] for row in rows] == ["must", "must"]
    assert "item 0,item 1,different,b" in EXPORTS["ignored.csv"][0](room, safe=False).decode()


def test_a_failed_look_at_the_file_is_told_and_repeated(tmp_path, monkeypatch):
    room = make_room(tmp_path)
    looks = []

    def poll():
        looks.append(room.error)
        if len(looks) == 1:
            raise OSError("the disk is away")

    monkeypatch.setattr(room, "poll", poll)
    monkeypatch.setattr("linkwise.app.server.POLL", 0.01)
    with client_of(room):
        wait_for(lambda: len(looks) > 2)
    assert "the disk is away" in looks[1]


def test_only_own_answers_are_asked_again(room):
    for number in range(4):
        room.act([Event("answer", f"uuid-{number}", "ada", number, number + 20, "same")])
    assert list(room._repeated("bob")) == []
    assert [one.again for one in room._repeated("ada")] == [True]


def test_the_belief_of_an_answer_reaches_the_session(room):
    room.act([Event("import", "uuid-1", "me", 0, 1, "same", weight=0.2)])
    room.act([Event("import", "uuid-2", "me", 2, 3, "different", weight=0.7)])
    solver = SessionSolver(room.data)
    solver.tell(room.known())
    wanted = answers_of(room.evidence)
    assert [one.belief for one in solver.session.answers] == [one.belief for one in wanted]
    assert [one.belief for one in wanted] == pytest.approx([0.7, 0.2][::-1])
    before = list(solver.session.answers)
    replay(solver.session, wanted)
    assert all(a is b for a, b in zip(before, solver.session.answers, strict=True))


def test_a_clustering_and_its_questions_are_of_one_fit(room, monkeypatch):
    solver = SessionSolver(room.data)
    solver.tell(room.known())
    solver.refit()
    asked, believed = [], solver.session._beliefs_now
    monkeypatch.setattr(solver.session, "_beliefs_now", lambda: asked.append(1) or believed())
    found = solver.found(room.known())
    assert (len(asked), found.probability.shape[0]) == (1, found.labels.size)
    assert found.questions


# Many small clusters -----------------------------------------------------------------------------


@pytest.fixture
def records(tmp_path):
    """A room of forty clusters of three, and what they are."""
    rng = np.random.RandomState(0)
    truth = np.repeat(np.arange(40), 3)
    X = rng.normal(size=(40, 6))[truth] + 0.3 * rng.normal(size=(120, 6))
    names = [f"record {k}" for k in range(120)]
    project = Project(tmp_path / "records.linkwise", names, "data")
    items = Items(names, "row", {"x": X[:, 0].tolist()})
    return Room(project, items, Prepared(X), by_size=True), truth


def test_many_small_clusters_are_reviewed_and_told_by_size(records):
    room, truth = records
    with client_of(room) as client:
        assert client.get("/api/question").json()["question"] is None  # no random pairs before
        wait_for(lambda: room.clustering.method == "Linkage")
        start = adjusted_rand(truth, room.clustering.labels)
        assert state(client)["by_size"]
        assert "close call" in state(client)["stop"]["advice"]
        for _ in range(25):
            found = client.get("/api/question").json()["question"]
            assert found["why"] == "two clusters that may be one"
            a, b = found["a"], found["b"]
            say(client, a, b, "same" if truth[a] == truth[b] else "different")
            assert (room.clustering.labels[a] == room.clustering.labels[b]) == (
                truth[a] == truth[b]
            )
        wait_for(lambda: room.clustering.is_full and len(room.clustering.known.answers) == 25)
        assert adjusted_rand(truth, room.clustering.labels) > start
        sizes = [one["size"] for one in client.get("/api/clusters").json()["clusters"]]
        assert sizes == sorted(sizes, reverse=True)
        assert sum(sizes) == 120
        many = client.get("/api/many").json()["many"]
        assert many["others"]


def test_the_script_of_a_review_finds_the_same_clusters(records, tmp_path, monkeypatch):
    room, truth = records
    with client_of(room) as client:
        wait_for(lambda: room.clustering.method == "Linkage")
        for _ in range(3):
            found = client.get("/api/question").json()["question"]
            same = truth[found["a"]] == truth[found["b"]]
            say(client, found["a"], found["b"], "same" if same else "different")
        wait_for(lambda: room.clustering.is_full and len(room.clustering.known.answers) == 3)
        assert client.get("/api/export/features.npy").status_code == 409
        for name in ("reproduce.py", "features.npz", "answers.csv", "labels.npy"):
            (tmp_path / name).write_bytes(client.get(f"/api/export/{name}").content)
    monkeypatch.chdir(tmp_path)
    exec((tmp_path / "reproduce.py").read_text(), {})
    assert adjusted_rand(np.load("reproduced.npy"), np.load("labels.npy")) == 1


def test_thousands_of_clusters_keep_their_numbers(monkeypatch):
    monkeypatch.setattr("linkwise.app.matching.MANY", 0)
    before = np.array([7, 7, 3, 3, 3, 9, 9])
    assert matched(np.array([0, 0, 1, 1, 1, 2, 2]), before).tolist() == before.tolist()
    assert matched(np.array([0, 0, 1, 1, 2, 2, 2]), before).tolist() == [7, 7, 3, 3, 9, 9, 9]


def test_a_group_that_leaves_its_small_cluster_is_one_of_its_own():
    labels = np.array([0, 0, 0, 1, 1])
    evidence = Evidence.of([Verdict((0, 1), "different", 1.0, 1), Verdict((2, 3), "same", 1.0, 2)])
    found = settled(labels, evidence, may_add=True)
    assert found[0] != found[1]
    assert found[2] == found[3]
    assert len(set(found.tolist())) == 3


def test_replies_are_sent_without_waiting_for_the_browser_to_confirm():
    listening = bind("127.0.0.1", 0)
    with listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_questions_that_come_after_their_clusters_move_nothing(room):
    shown = Found(Known(), blobs()[1], None, None, 0.1, (), "stub", is_full=True)
    room.found(shown._replace(labels=np.zeros(60, int), questions=(Question((1, 2), "test"),)))
    room.found(shown)
    rev, n_runs = room.clustering.rev, len(room.runs)
    assert [one.pair for one in room._pool] == [(1, 2)]  # until there are others
    room.found(shown._replace(questions=(Question((3, 4), "test"),)))
    assert room.clustering.rev == rev
    assert len(room.runs) == n_runs
    assert [one.pair for one in room._pool] == [(3, 4)]
    room.found(shown._replace(labels=np.zeros(60, int), questions=()))  # of other clusters
    assert room.clustering.rev == rev + 1


def test_a_pair_whose_answer_is_restored_is_asked_no_more(client, room):
    question = client.get("/api/question").json()["question"]
    a, b = question["a"], question["b"]
    send(client, "/api/answers", a=a, b=b, relation="different")
    assert send(client, "/api/undo").json()["question"]["id"] == f"{a}-{b}"
    assert send(client, "/api/redo").json()["question"]["id"] != f"{a}-{b}"


def test_an_older_clustering_never_takes_the_place_of_a_newer_one(tmp_path):
    room = make_room(tmp_path)
    y = blobs()[1]
    known = Known(9, (), 3)
    newer = Found(known, y, None, (), 0.1, (), "stub", is_full=True, n_fitted=9)
    older = Found(
        Known(10, (), 3), np.zeros(60, int), None, (Question((3, 4), "test"),), 0.4, (), "stub",
        n_fitted=5,
    )  # fmt: skip
    room.found(newer)
    room.found(older)
    assert room.clustering.labels.tolist() == y.tolist()
    assert room.clustering.still_to_change == 0.1
    assert [one.pair for one in room._pool] == [(3, 4)]  # only its questions
    room.found(older._replace(known=Known(10, (), 2)))  # another number of clusters was chosen
    assert len(set(room.clustering.labels.tolist())) == 1
    room.found(newer)
    room.project.close()
    again = make_room(tmp_path)
    again.found(older)
    assert again.clustering.labels.tolist() == y.tolist()
    again.found(older._replace(is_full=True))  # the new one
    assert len(set(again.clustering.labels.tolist())) == 1
    again.project.close()


def clustered(known, n_fitted, **settings):
    """Return a clustering that rests on the first answers."""
    return Found(known, blobs()[1], None, (), 0.1, (), "stub", n_fitted=n_fitted, **settings)


def imported(n):
    """Return an action that takes pairs from a file."""
    return [Event("import", "file", "ada", k, k + 20, "same") for k in range(n)]


@pytest.mark.parametrize("reopened", ["never", "before", "after"])
def test_answers_that_were_taken_back_hold_no_clustering_back(tmp_path, reopened):
    room = make_room(tmp_path)
    room.act(imported(20))
    room.found(clustered(room.known(), 20, is_full=True))
    if reopened == "before":
        room.project.close()
        room = make_room(tmp_path)
    room.turn("undo", "ada", "undo")
    if reopened == "after":
        room.project.close()
        room = make_room(tmp_path)
    for n in range(1, 16):  # somebody goes on, and no clustering rests on the newest answer
        room.act([Event("answer", f"answer {n}", "ada", n, n + 30, "different")])
        room.found(clustered(room.known(), n - 1))
        assert (room.clustering.n_fitted, room.clustering.known.upto) == (n - 1, 21 + n)
    room.project.close()


def test_what_is_shown_stays_until_a_clustering_rests_on_as_many_answers_that_count(tmp_path):
    room = make_room(tmp_path)
    for n in range(8):
        room.act([Event("answer", f"answer {n}", "ada", n, n + 20, "same")])
    room.found(clustered(room.known(), 8, is_full=True))
    room.turn("undo", "ada", "undo")
    room.found(clustered(room.known(), 5))
    assert room.clustering.n_fitted == 8  # of which 7 count
    room.turn("redo", "ada", "redo")
    room.found(clustered(room.known(), 7))
    assert room.clustering.n_fitted == 8  # all of them count again
    room.turn("undo", "ada", "undo again")
    room.act([Event("answer", "answer 9", "ada", 10, 30, "same")])
    room.found(clustered(room.known(), 7))
    assert room.clustering.n_fitted == 7
    room.project.close()


def test_the_gain_begins_without_answers_also_if_some_came_meanwhile(tmp_path):
    y = blobs()[1]
    room = make_room(tmp_path, truth=y)
    known = room.known()
    room.act([Event("answer", "answer", "ada", 0, 1, "same")])
    room.found(clustered(known, 0))
    room.found(clustered(room.known(), 1, is_full=True))
    assert views.state(room, "ada")["start_ari"] == 1.0
    room.project.close()


def test_a_late_clustering_of_answers_that_were_taken_back_is_not_shown(tmp_path):
    room = make_room(tmp_path)
    room.act(imported(20))
    room.act([Event("answer", f"answer {n}", "bob", n, n + 30, "different") for n in range(3)])
    before = room.known()
    room.turn("undo", "ada", "undo")
    room.found(clustered(room.known(), 3, is_full=True))
    room.found(clustered(before, 20))
    assert room.clustering.n_fitted == 3
    room.project.close()


def test_a_review_says_on_how_many_answers_that_count_it_rests():
    X, y = blobs()
    words = ["same" if y[0] == y[k] else "different" for k in range(6)]
    answers = tuple(Answer(0, k, words[k]) for k in range(1, 6))
    solver = ReviewSolver(Prepared(X))
    solver.tell(Known(5, answers))
    solver.refit()
    for now, n in ((answers, 5), (answers[:3], 3), (answers[1:], 0), ((), 0)):
        assert solver.found(Known(6, now)).n_fitted == n


def test_all_parts_of_the_page_count_the_same_answers(client, room):
    for a in range(3):
        say(client, a, a + 20, "same")
    say(client, 0, 20, "different")  # again: the last one counts
    say(client, 5, 25, "unsure")
    room.act([Event("answer", "one-to-many", "me", 7, b, "different") for b in (30, 31)])
    room.act([Event("import", "uuid-i", "me", 40, 41, "same")])
    send(client, "/api/resolve", a=1, b=21, action="withdraw")
    send(client, "/api/resolve", a=2, b=22, action="sure")
    send(client, "/api/undo")
    send(client, "/api/redo")
    (person,) = client.get("/api/quality").json()["people"]
    lines = client.get("/api/history").json()["events"]
    counted = [
        one
        for one in lines
        if one["kind"] in ("answer", "resolve") and one["counts"] and not one["replaced"]
        if one["relation"] != "withdrawn"
    ]
    assert state(client)["answers"] == person["answers"] == len(counted) == 5
    assert state(client)["imported"] == 1
    send(client, "/api/resolve", a=40, b=41, action="sure")  # it is no answer of a person then
    assert (state(client)["answers"], state(client)["imported"]) == (5, 1)


def test_an_answer_keeps_its_number(client, room):
    for a, b, word in ((0, 1, "same"), (1, 2, "same"), (0, 2, "different")):
        say(client, a, b, word)
    number = client.get("/api/conflicts").json()["conflicts"][0]["ignored"]
    assert number == 3
    send(client, "/api/resolve", a=0, b=2, action="sure")
    (conflict,) = client.get("/api/conflicts").json()["conflicts"]
    assert sorted(link["seq"] for link in conflict["links"]) == [1, 2, 3]
    assert conflict["ignored"] == 2
    assert lines_with(client, "ignored") == [2]
    assert lines_with(client, "replaced") == [3]
    send(client, "/api/resolve", a=0, b=2, action="withdraw")
    say(client, 0, 2, "different")  # another answer has another number
    (conflict,) = client.get("/api/conflicts").json()["conflicts"]
    assert sorted(link["seq"] for link in conflict["links"]) == [1, 2, 6]


def lines_with(client, mark):
    """Return the numbers of the lines of the history that are marked."""
    lines = client.get("/api/history").json()["events"]
    return sorted(one["seq"] for one in lines if one[mark])


def test_the_line_that_is_in_force_is_the_one_shown_as_ignored(client, room):
    for a, b, word in ((0, 1, "same"), (1, 2, "same"), (0, 2, "different")):
        say(client, a, b, word)
    assert lines_with(client, "ignored") == [3]
    for a, b in ((0, 1), (1, 2), (0, 2)):
        send(client, "/api/resolve", a=a, b=b, action="sure")
    assert [one.pair for one in room.evidence.ignored] == [(0, 2)]
    assert client.get("/api/conflicts").json()["conflicts"][0]["ignored"] == 3  # its number
    assert lines_with(client, "replaced") == [1, 2, 3]
    assert lines_with(client, "ignored") == [6]
    room.act([Event("answer", "bob's", "bob", 0, 2, "different", weight=0.25)])
    room.act([Event("answer", "eve's", "eve", 0, 2, "same", weight=0.5)])  # is outvoted
    assert lines_with(client, "ignored") == [6, 7]
    send(client, "/api/undo")
    assert lines_with(client, "replaced") == [1, 2]


def test_when_everything_follows_nothing_changes_any_more(tmp_path):
    room = make_room(tmp_path, n=4, k=2)
    sure = np.full((4, 2), 0.5)
    room.found(Found(Known(0, (), 2), np.array([0, 0, 1, 1]), sure, (), 0.013, (), "stub"))
    for number, (a, b, word) in enumerate([(0, 1, "same"), (2, 3, "same"), (1, 2, "different")]):
        stop = views.stopping(room)
        assert (stop["still"], stop["close"], stop["reached"]) == (0.013, 4, False)
        room.act([Event("answer", f"u{number}", "me", a, b, word)])
    stop = views.stopping(room)
    assert (stop["still"], stop["close"], stop["reached"]) == (0, 0, True)
    room.close()


def test_agreement_says_of_how_many_rows_and_needs_two(tmp_path):
    truth = np.full(60, -1)
    for n_known, ari in ((0, None), (1, None), (2, 1.0)):
        (folder := tmp_path / str(n_known)).mkdir()
        truth[:n_known] = blobs()[1][:n_known]
        room = make_room(folder, truth=truth)
        room.found(Found(Known(0, (), 3), blobs()[1], None, ()))
        shown = views.state(room, "me")
        assert (shown["ari"], shown["n_truth"]) == (ari, n_known)
        room.close()


def test_clusters_rest_on_all_answers_whatever_they_are_called(client, room):
    say(client, 0, 1, "same")
    wait_for(lambda: state(client)["full"])
    number = client.get("/api/clusters").json()["clusters"][0]["id"]
    send(client, f"/api/clusters/{number}", name="early")
    assert state(client)["full"]
