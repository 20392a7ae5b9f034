"""The project file: events are the truth, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.app.events import Event
from linkwise.app.ledger import Facts, Ledger
from linkwise.app.project import Project, WrongProjectError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"row {k}" for k in range(6)]
N_KILLS = int(os.environ.get("LINKWISE_KILLS", "12"))


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path / "p.linkwise", NAMES, "data")
    yield made
    made.close()


def answer(a, b, relation, who="ada", **more):
    return Event("answer", str(uuid.uuid4()), who, a, b, relation, **more)


def said(project):
    return {key: event.relation for key, event in project.ledger.facts.answers.items()}


@st.composite
def actions(draw):
    """Return a kind of action with its arguments."""
    kind = draw(st.sampled_from(["answer", "many", "later", "flag", "rename", "lock", "k", "undo"]))
    pair = tuple(sorted(draw(st.lists(st.integers(0, 5), min_size=2, max_size=2, unique=True))))
    who = draw(st.sampled_from(["ada", "bob"]))
    word = draw(st.sampled_from(["same", "different", "unsure", "withdrawn"]))
    return kind, pair, who, word, draw(st.booleans())


def perform(project, action):
    kind, (a, b), who, word, switch = action
    name = str(uuid.uuid4())
    if kind == "undo":
        ledger = project.ledger
        target = (ledger.redoable if switch else ledger.undoable)(who)
        if target is None:
            return
        events = [Event("redo" if switch else "undo", name, who, target=target)]
    elif kind == "many":
        events = [Event("answer", name, who, a, b, word), Event("answer", name, who, 0, 5, "same")]
    elif kind == "flag":
        events = [Event("flag", name, who, a, relation="bad" if switch else "good")]
    elif kind in {"rename", "lock"}:
        events = [Event(kind, name, who, a, note="text" if switch else "")]
    elif kind == "k":
        events = [Event("clusters", name, who, a + 2)]
    else:
        events = [Event(kind, name, who, a, b, word)]
    project.append(events)


def counted(events):
    """Return the facts of the actions that are not undone, by a plain simulation of undo."""
    done, undone, off = {}, {}, set()
    for event in events:
        mine, taken = done.setdefault(event.who, []), undone.setdefault(event.who, [])
        if event.kind == "undo":
            taken.append(mine.pop())
            off.add(taken[-1])
        elif event.kind == "redo":
            mine.append(taken.pop())
            off.discard(mine[-1])
        elif event.uuid not in mine:
            mine.append(event.uuid)
            taken.clear()
    facts = Facts()
    for event in events:
        if event.kind not in {"undo", "redo"} and event.uuid not in off:
            facts.add(event)
    return facts


@given(st.lists(actions(), max_size=25))
def test_replaying_the_events_rebuilds_everything(tmp_path_factory, done):
    path = tmp_path_factory.mktemp("replay") / "p"
    project = Project(path, NAMES, "data")
    for action in done:
        perform(project, action)
    kept = project.ledger
    project.close()
    again = Project(path, NAMES, "data")
    assert again.ledger == kept == Ledger.of(kept.events)
    assert kept.facts == counted(kept.events)
    again.close()


def test_undo_takes_back_the_last_action_of_the_person_and_redo_brings_it_back(project):
    project.append([answer(0, 1, "same")])
    project.append([answer(1, 2, "different", who="bob")])
    project.append([answer(0, 1, "different")])
    for _ in range(2):
        target = project.ledger.undoable("ada")
        project.append([Event("undo", str(uuid.uuid4()), "ada", target=target)])
    assert said(project) == {((1, 2), "bob"): "different"}
    for _ in range(2):
        target = project.ledger.redoable("ada")
        project.append([Event("redo", str(uuid.uuid4()), "ada", target=target)])
    assert said(project) == {((1, 2), "bob"): "different", ((0, 1), "ada"): "different"}
    assert len(project.ledger.events) == 7  # nothing was removed


def test_an_action_that_is_sent_twice_is_written_once(project):
    event = answer(0, 1, "same")
    assert len(project.append([event])) == 1
    assert project.append([event]) == []
    assert len(project.ledger.events) == 1


def test_two_processes_write_to_one_file(tmp_path):
    one, two = (Project(tmp_path / "p", NAMES, "data") for _ in range(2))
    before = one.changed()
    one.append([answer(0, 1, "same")])
    two.append([answer(1, 2, "same", who="bob")])
    assert len(two.ledger.events) == 2  # it read the other's before it wrote
    assert one.changed() != before
    assert one.refresh() == 1
    assert one.ledger == two.ledger
    one.close(), two.close()


def test_clusterings_are_kept(tmp_path):
    project = Project(tmp_path / "p", NAMES, "data")
    project.keep_run(np.array([0, 1, 0, 1, 2, 2]), 0, {"moved": 0.5})
    project.close()
    again = Project(tmp_path / "p", NAMES, "data")
    assert again.last_run().labels.tolist() == [0, 1, 0, 1, 2, 2]
    assert again.runs()[0].stats == {"moved": 0.5}
    again.close()


def test_other_files_and_other_data_are_refused(tmp_path):
    (tmp_path / "text").write_text("no database, but a text of some length" * 40)
    with pytest.raises(WrongProjectError, match="no project"):
        Project(tmp_path / "text", NAMES, "data")
    with sqlite3.connect(tmp_path / "other") as db:
        db.execute("create table t (x)")
    db.close()
    with pytest.raises(WrongProjectError, match="no project"):
        Project(tmp_path / "other", NAMES, "data")
    Project(tmp_path / "p", NAMES, "data").close()
    with pytest.raises(WrongProjectError, match="other data"):
        Project(tmp_path / "p", NAMES, "changed")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_database_is_refused_untouched(tmp_path, mode):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute(f"pragma journal_mode = {mode}")
        db.execute("create table t (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(WrongProjectError, match="no project"):
        Project(path, NAMES, "data")
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["other.db"]


def test_a_file_that_another_process_makes_meanwhile_is_taken(tmp_path, monkeypatch):
    path, create = tmp_path / "p", Project._create

    def overtaken(self, names, fingerprint):
        monkeypatch.setattr(Project, "_create", create)
        Project(path, NAMES, "data").close()
        create(self, names, fingerprint)

    monkeypatch.setattr(Project, "_create", overtaken)
    project = Project(path, NAMES, "data")
    project.append([answer(0, 1, "same")])
    project.close()


def test_many_make_the_same_file_at_once(tmp_path):
    for trial in range(10):
        with ThreadPoolExecutor(4) as pool:
            opened = [pool.submit(Project, tmp_path / f"{trial}", NAMES, "data") for _ in range(4)]
            for one in opened:
                one.result().close()


WRITER = """
import sys, uuid
from pathlib import Path
from linkwise.app.events import Event
from linkwise.app.project import Project
project = Project(Path(sys.argv[1]), [str(k) for k in range(6)], "data")
print("ready", flush=True)
while True:
    name = str(uuid.uuid4())
    project.append([Event("answer", name, "ada", 0, 1, "same")])
    print(name, flush=True)
"""


def killed_writer(path: Path, n_answers: int) -> list[str]:
    """Answer until so many are acknowledged, then kill without warning; returns these."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "ready\n"
        heard = [writer.stdout.readline().strip() for _ in range(n_answers)]
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
    return heard + [line for line in rest if len(line) == 36]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL, which Windows lacks")
def test_no_acknowledged_answer_is_lost_when_the_process_is_killed(tmp_path):
    path, heard = tmp_path / "p", []
    for kill in range(N_KILLS):
        heard += killed_writer(path, 1 + kill % 4)
    project = Project(path, [str(k) for k in range(6)], "data")
    kept = [event.uuid for event in project.ledger.events]
    assert set(heard) <= set(kept)
    assert len(kept) - len(heard) <= N_KILLS  # at most one was written but not yet acknowledged
    project.close()


# Damage --------------------------------------------------------------------------------------


def a_whole_file(path):
    """Return a project's bytes, its facts and its clusterings."""
    made = Project(path, NAMES, "data")
    made.append([answer(0, 1, "same"), answer(1, 2, "different", ms=1200)])
    made.append([answer(3, 4, "same", who="bob")])
    made.append([Event("rename", "u1", "ada", 0, note="zero")])
    made.append([Event("undo", "u2", "bob", target=made.ledger.undoable("bob"))])
    for k in (2, 3):
        made.keep_run(np.arange(6) % k, 3, {"moved": k})
    facts, runs = repr(made.ledger), {repr(run) for run in made.runs()}
    made.close()
    return path.read_bytes(), facts, runs


def reopened(path, content):
    for left in path.parent.iterdir():
        left.unlink()
    path.write_bytes(content)
    try:
        return Project(path, NAMES, "data")
    except WrongProjectError as error:
        assert str(path) in str(error)  # noqa: PT017
        return None


def test_a_changed_byte_is_named_or_harmless(tmp_path):
    path, rng = tmp_path / "p.linkwise", np.random.default_rng(0)
    whole, facts, runs = a_whole_file(path)
    used = np.flatnonzero(np.frombuffer(whole, np.uint8))
    places = {*range(100), *rng.choice(used, 500).tolist(), *rng.choice(len(whole), 50).tolist()}
    for at in sorted(places):
        byte = bytes([whole[at] ^ int(rng.integers(1, 256))])
        project = reopened(path, whole[:at] + byte + whole[at + 1 :])
        if project is not None:
            assert repr(project.ledger) == facts, at
            assert {repr(run) for run in project.runs()} <= runs, at
            assert repr(project.last_run()) in {*runs, "None"}, at
            assert project.append([answer(0, 5, "different")]), at
            project.close()


def test_a_changed_value_is_named(tmp_path):
    path = tmp_path / "p.linkwise"
    whole, *_ = a_whole_file(path)
    changes = [
        "update event set relation = 'same' where relation = 'different'",
        "update event set weight = 2 where seq = 1",
        "delete from event where seq = 2",
        "delete from checksum where line = 'event' and number = 5",
        "update checksum set value = value + 1 where number = 1",
    ]
    for change in changes:
        path.write_bytes(whole)
        with sqlite3.connect(path) as db:
            db.execute(change)
        db.close()
        with pytest.raises(WrongProjectError, match="checksum of event"):
            Project(path, NAMES, "data")


def test_a_damaged_clustering_is_forgotten(tmp_path):
    path = tmp_path / "p.linkwise"
    _, facts, _ = a_whole_file(path)
    with sqlite3.connect(path) as db:
        db.execute("update run set labels = x'000001000000010000000100' where rev = 2")
    db.close()
    project = Project(path, NAMES, "data")
    assert repr(project.ledger) == facts
    assert [run.rev for run in project.runs()] == [1]
    assert project.last_run() is None
    project.close()


def test_a_project_without_checksums_gets_them(tmp_path):
    path = tmp_path / "p.linkwise"
    _, facts, runs = a_whole_file(path)
    with sqlite3.connect(path) as db:
        db.execute("drop table checksum")
        db.execute("pragma user_version = 1")
    db.close()
    for _ in range(2):
        project = Project(path, NAMES, "data")
        assert repr(project.ledger) == facts
        assert {repr(run) for run in project.runs()} == runs
        project.close()


def test_old_clusterings_keep_their_figures(project, monkeypatch):
    monkeypatch.setattr("linkwise.app.project.KEPT_RUNS", 2)
    for k in range(4):
        project.keep_run(np.full(6, k), k, {"moved": k})
    assert [run.stats["moved"] for run in project.runs()] == [0, 1, 2, 3]
    assert [run.labels is None for run in project.runs()] == [True, True, False, False]


def test_a_project_in_use_is_not_called_damaged(tmp_path, monkeypatch):
    path = tmp_path / "p.linkwise"
    a_whole_file(path)
    monkeypatch.setattr(
        "linkwise.app.project.SETTINGS", ("synchronous = full", "busy_timeout = 10")
    )
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(WrongProjectError, match=r"cannot be used .*locked"):
        Project(path, NAMES, "data")
    other.close()


def test_a_project_knows_that_another_has_it_open(tmp_path):
    one = Project(tmp_path / "p.linkwise", NAMES, "data")
    assert not one.is_open_elsewhere()
    other = Project(tmp_path / "p.linkwise", NAMES, "data")
    assert one.is_open_elsewhere()
    assert other.is_open_elsewhere()
    one.append([answer(0, 1, "same")])
    other.refresh()
    assert said(other) == said(one)
    other.close()
    assert not one.is_open_elsewhere()
    assert one._one("pragma journal_mode") == "wal"
    assert one._one("pragma busy_timeout") == 5000
    assert len(said(one)) == 1
    one.close()
