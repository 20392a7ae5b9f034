"""``linkwise serve`` up to the open room, ``linkwise ask --project``, and what is shown of rows."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

pytest.importorskip("click", reason="the command line needs linkwise[cli]")
pd = pytest.importorskip("pandas", reason="the command line needs linkwise[cli]")

from linkwise.app import exports
from linkwise.app.engine import Known, give_back_memory
from linkwise.app.events import Event
from linkwise.app.first import close_calls
from linkwise.app.items import Items, MissingImageError
from linkwise.app.layout import arrange, neighbor_layout, principal_axes, pull, push, unit_square
from linkwise.app.matching import matched
from linkwise.app.project import Project
from linkwise.app.room import Clustering
from linkwise.app.samples import prepared
from linkwise.app.solvers import ReviewSolver, SessionSolver
from linkwise.app.terminal import ProjectSession
from linkwise.app.token import kept_token
from linkwise.app.views import stopping
from linkwise.cli import main
from linkwise.cli.console import BadInput, Console
from linkwise.cli.requests import ServeRequest
from linkwise.cli.serve import opened
from linkwise.graph import Prepared
from linkwise.metrics import adjusted_rand
from rooms import blobs, make_room


@pytest.fixture
def table(tmp_path):
    X, y = blobs()
    lines = ["id,name,x,y,z,group"]
    lines += [f"r{k},Name {k},{a:.4f},{b:.4f},{c:.4f},{y[k]}" for k, (a, b, c, _) in enumerate(X)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def room_of(path, **typed):
    room = opened(ServeRequest(data=path, **typed), Console(quiet=True))
    room.project.close()
    return room


def test_all_columns_are_shown_but_the_truth(table):
    room = room_of(table, truth="group", drop=("name",))
    card = room.items.cards([3])[0]
    assert card["id"] == "r3"
    assert [field[0] for field in card["fields"]] == ["name", "x", "y", "z"]
    assert room.data.X.shape == (60, 3)
    assert room.project.path == table.with_suffix(".linkwise")
    assert room.agreement_with_truth(blobs()[1]) == 1


def test_columns_that_are_no_features_are_shown_and_left_out(tmp_path, capsys):
    X, _ = blobs()
    rows = [f"{k},note {k % 40},{a:.3f},{b:.3f}" for k, (a, b) in enumerate(X[:, :2])]
    rows[5] = "5,note 5,,1.0"
    path = tmp_path / "notes.csv"
    path.write_text("\n".join(["id,note,x,y", *rows]) + "\n")
    room = opened(ServeRequest(data=path), Console())
    room.project.close()
    assert room.data.X.shape == (60, 2)
    assert [field[:3] for field in room.items.cards([5])[0]["fields"]] == [
        ["note", "note 5", 0],
        ["x", "", 0],
        ["y", "1", 0],
    ]
    told = capsys.readouterr().err
    assert "shown, but not used for clustering: 'note'" in told
    assert "median" in told


def test_labels_and_pairs_of_the_command_line_are_imported_once(table, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("i,j,link\nr0,r1,must\nr1,r2,cannot\n")
    for _ in range(2):
        room = room_of(table, drop=("group", "name"), constraints=pairs)
        assert room.evidence.relation(0, 2) == -1
        assert len(room.project.ledger.events) == 2


def test_pairs_of_a_new_project_are_added_and_of_an_old_one_it_goes_on(table, capsys):
    pairs = table.with_name("pairs.csv")
    pairs.write_text("i,j,link\nr0,r1,must\nr1,r2,must\n")
    request = ServeRequest(data=table, constraints=pairs, drop=("name",))
    opened(request, Console()).project.close()
    told = capsys.readouterr().err
    assert "2 pairs added" in told
    assert "goes on" not in told
    opened(request, Console()).project.close()
    told = capsys.readouterr().err
    assert "goes on after 0 answers and 2 imported pairs" in told
    assert "added" not in told


def test_pairs_that_contradict_each_other_are_a_conflict(table, capsys):
    from linkwise.app import views
    from linkwise.app.actions import resolution

    pairs = table.with_name("pairs.csv")
    pairs.write_text("i,j,link\nr0,r1,must\nr3,r4,must\nr0,r1,cannot\n")
    room = opened(ServeRequest(data=table, constraints=pairs, drop=("name",)), Console())
    assert "3 pairs added; 1 conflict: see the page" in capsys.readouterr().err
    assert room.evidence.relation(0, 1) == 0  # not settled by the order of the lines
    assert room.evidence.relation(3, 4) == 1
    (conflict,) = views.conflicts(room)
    assert (conflict["kind"], len(conflict["votes"])) == ("disagreement", 2)
    body = {"a": 0, "b": 1, "action": "sure", "relation": "different", "uuid": "55555555"}
    room.act(resolution(room, body, "ada"))
    room.project.close()
    again = room_of(table, constraints=pairs, drop=("name",))
    assert again.evidence.relation(0, 1) == -1
    assert len(again.project.ledger.events) == 4


def test_a_graph_is_shown_by_its_names(tmp_path):
    path = tmp_path / "graph.npy"
    W = np.ones((6, 6)) - np.eye(6)
    np.save(path, W)
    room = room_of(path, graph=True)
    assert room.items.kind == "row"
    with pytest.raises(BadInput, match="needs features"):
        room_of(path, graph=True, kind="series")


def test_numbers_that_cannot_be_clustered_are_told_at_once(tmp_path):
    np.save(tmp_path / "huge.npy", blobs()[0] * 1e200)
    with pytest.raises(BadInput, match=r"huge.npy: The largest feature is \de\+2"):
        room_of(tmp_path / "huge.npy")


def test_threads_are_those_that_are_typed(tmp_path, monkeypatch):
    from linkwise.app import apart
    from linkwise.cli import serve

    asked = []
    monkeypatch.setattr(apart, "Process", lambda threads: asked.append(threads) or Ended())
    monkeypatch.setattr(serve, "_served", lambda *_: 0)
    np.save(tmp_path / "data.npy", blobs()[0])
    with threadpool_limits():  # brings back what was before
        for threads, expected in [("1", 1), (None, None)]:
            options = [] if threads is None else ["--threads", threads]
            assert main(["serve", str(tmp_path / "data.npy"), *options]) == 0
            assert asked.pop() == expected
            if threads:
                pools = threadpool_info()
                assert {one["num_threads"] for one in pools if one["user_api"] == "blas"} == {1}


class Ended:
    def end(self):
        pass


# The token -------------------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")


@posix
def test_a_project_keeps_its_token_for_this_user_alone(tmp_path):
    project = tmp_path / "people.linkwise"
    token = kept_token(project)
    file = tmp_path / "people.linkwise-token"
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert file.read_text() == token == kept_token(project)
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


@posix
@pytest.mark.parametrize("how", ["readable", "writable", "link", "other text", "folder"])
def test_a_token_that_others_may_know_is_replaced(tmp_path, how):
    project, file = tmp_path / "p.linkwise", tmp_path / "p.linkwise-token"
    token = kept_token(project)
    if how in {"readable", "writable"}:
        file.chmod(0o640 if how == "readable" else 0o620)
    elif how == "link":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
    elif how == "other text":
        file.write_text("0" * 31 + "\n")
    else:
        file.unlink()
        file.mkdir()
    new = kept_token(project)
    assert new not in {token, "0" * 31 + "\n"}
    assert re.fullmatch("[0-9a-f]{32}", new)
    if how != "folder":
        assert kept_token(project) == new
        assert file.stat().st_mode & 0o777 == 0o600
        assert not file.is_symlink()


@posix
def test_where_others_can_listen_the_token_is_new(tmp_path):
    from linkwise.cli.serve import _token

    path = tmp_path / "p.linkwise"
    here = {_token(host, path, anew=False) for host in ("127.0.0.1", "localhost")}
    assert here == {kept_token(path)}
    everywhere = [_token("0.0.0.0", path, anew=False) for _ in range(2)]
    assert len({*everywhere, kept_token(path)}) == 3


@posix
def test_a_token_lives_for_half_a_day(tmp_path):
    project, file = tmp_path / "p.linkwise", tmp_path / "p.linkwise-token"
    token = kept_token(project)
    now = time.time()
    os.utime(file, (now, now - 11.9 * 3600))
    assert kept_token(project) == token
    os.utime(file, (now, now - 12.1 * 3600))
    new = kept_token(project)
    assert new == kept_token(project) != token


@posix
@pytest.mark.parametrize("how", ["mode", "owner"])
def test_no_token_is_written_where_others_can_read_it(tmp_path, monkeypatch, how):
    import linkwise.app.token

    def fstat(file, real=os.fstat):
        found = list(real(file))
        if how == "mode":
            found[0] |= 0o777  # as of vfat, CIFS and mounts of WSL
        else:
            found[4] += 1
        return os.stat_result(found)

    written = []
    monkeypatch.setattr(linkwise.app.token.os, "fstat", fstat)
    monkeypatch.setattr(Path, "replace", lambda *given: written.append(given))
    project = tmp_path / "p.linkwise"
    assert kept_token(project) != kept_token(project)
    assert written == []
    assert list(tmp_path.iterdir()) == []


@posix
@pytest.mark.parametrize("is_usual", [True, False])
def test_the_token_is_new_if_another_process_had_the_port(table, monkeypatch, is_usual):
    pytest.importorskip("starlette")
    from linkwise.app.listen import Listening, bind
    from linkwise.cli.serve import _served, _usual_port

    used = []
    make = Listening.__init__
    monkeypatch.setattr(
        Listening, "__init__", lambda *a, **more: used.append(more["token"]) or make(*a, **more)
    )
    monkeypatch.setattr(Listening, "listen", lambda self: self.sock.close())
    project = table.with_suffix(".linkwise")
    token = kept_token(project)
    port = _usual_port(project, "127.0.0.1")
    request = ServeRequest(
        data=table, drop=("name", "group"), browser=False, port=0 if is_usual else port
    )
    _served(request, Console(quiet=True), None)
    assert used == [token]
    with bind("127.0.0.1", port):
        if is_usual:
            _served(request, Console(quiet=True), None)
            assert used[1] == kept_token(project)
        else:
            with pytest.raises(BadInput, match="in use"):
                _served(request, Console(quiet=True), None)
    assert kept_token(project) != token


def test_a_pair_of_the_data_that_was_withdrawn_stays_withdrawn(table):
    from linkwise.app.actions import resolution

    pairs = table.with_name("pairs.csv")
    pairs.write_text("i,j,link\nr0,r1,must\n")
    room = opened(ServeRequest(data=table, constraints=pairs, drop=("name",)), Console(quiet=True))
    body = {"a": 0, "b": 1, "action": "withdraw", "uuid": "55555555"}
    room.act(resolution(room, body, "ada"))
    room.project.close()
    assert not room.evidence.accepted
    assert not room_of(table, constraints=pairs, drop=("name",)).evidence.accepted


def test_a_project_of_texts_is_known_by_the_texts(tmp_path, monkeypatch):
    from linkwise.cli import serve

    path, words = tmp_path / "texts.csv", ["late card", "card lost", "new phone", "phone case"]
    path.write_text("\n".join(["id,message", *(f"{k},{text}" for k, text in enumerate(words))]))
    first = room_of(path, shown_text="message")
    exact = serve._text_features
    monkeypatch.setattr(serve, "_text_features", lambda texts: exact(texts) * (1 + 1e-15))
    again = room_of(path, shown_text="message")  # as with another number of threads
    assert not np.array_equal(again.data.X, first.data.X)
    path.write_text(path.read_text().replace("lost", "found"))
    with pytest.raises(BadInput, match="other data"):
        room_of(path, shown_text="message")


def test_texts_are_compared_by_their_words(tmp_path):
    path = tmp_path / "texts.csv"
    topics = ["reset the card pin", "late card delivery parcel", "exchange rate euro dollar"]
    rows = [f'{k},"{topics[k % 3]} number {k}"' for k in range(60)]
    path.write_text("id,message\n" + "\n".join(rows) + "\n")
    room = room_of(path, shown_text="message")
    card = room.items.cards([4])[0]
    assert card["text"] == "late card delivery parcel number 4"
    X = room.data.X
    assert X[0] @ X[3] > X[0] @ X[1]


def test_features_may_be_the_pixels_of_an_image(tmp_path):
    path = tmp_path / "pixels.npy"
    np.save(path, np.random.RandomState(0).rand(20, 12))
    room = room_of(path, image="4x3")
    assert room.items.kind == "image"
    media = room.items.media(2)
    assert (media.type, media.content[:4]) == ("image/png", b"\x89PNG")
    with pytest.raises(BadInput, match="20 features, but DATA has 12"):
        room_of(path, image="5x4")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--text", "nothing"], "no such column"),
        (["--image", "nothing"], "no such column"),
        (["--project", "."], "is a folder"),
        (["--kind", "hologram"], "hologram"),
    ],
)
def test_wrong_options_are_told_in_one_line(table, capsys, monkeypatch, arguments, reason):
    pytest.importorskip("starlette")
    monkeypatch.chdir(table.parent)
    typed = ["serve", str(table), "--drop", "name", "--drop", "group", "--no-browser"]
    assert main([*typed, *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_a_port_in_use_is_told(table, capsys):
    pytest.importorskip("starlette")
    from linkwise.app.listen import bind

    taken = bind("127.0.0.1", 0)
    port = str(taken.getsockname()[1])
    typed = ["serve", str(table), "--drop", "name", "--drop", "group", "--no-browser"]
    assert main([*typed, "--port", port]) == 2
    taken.close()
    assert "may be in use" in capsys.readouterr().err
    assert list(table.parent.iterdir()) == [table]  # no project, and no token


def test_what_cannot_be_shown_makes_no_project(table):
    with pytest.raises(BadInput, match="DATA has 3"):
        room_of(table, drop=("name", "group"), image="8x8")
    assert list(table.parent.iterdir()) == [table]


def test_a_page_that_ended_leaves_one_file_of_answers(table):
    room = opened(ServeRequest(data=table, drop=("name", "group")), Console(quiet=True))
    room.act([Event("answer", "uuid-1", "me", 0, 1, "same")])
    log = table.with_name("data.linkwise-wal")
    assert log.exists()
    copy = table.with_name("copy")
    copy.write_bytes(exports.EXPORTS["project.sqlite"][0](room))
    data = room.project.meta("data")
    room.close()
    assert not log.exists()
    for path in (copy, table.with_suffix(".linkwise")):
        project = Project(path, room.items.names, data)
        assert len(project.ledger.events) == 1
        project.close()


def test_a_project_has_its_usual_port_unless_it_is_taken(tmp_path):
    pytest.importorskip("starlette")
    from linkwise.app.listen import bind
    from linkwise.cli.serve import _usual_port

    host, path = "127.0.0.1", tmp_path / "a.linkwise"
    port = _usual_port(path, host)
    assert port == _usual_port(path, host) != _usual_port(tmp_path / "b.linkwise", host)
    taken = bind(host, port)
    assert _usual_port(path, host) == 0
    taken.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signals")
def test_ctrl_c_is_how_the_page_ends(table):
    pytest.importorskip("starlette")
    typed = ["serve", str(table), "--drop", "name", "--drop", "group", "--no-browser"]
    command = [sys.executable, "-m", "linkwise", *typed]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as server:
        address = server.stdout.readline().split()[1]
        with pytest.raises(HTTPError, match="401"):  # it listens; only browsers keep the token
            urlopen(address, timeout=60)
        server.send_signal(signal.SIGINT)
        _, notes = server.communicate(timeout=60)
    assert server.returncode == 0  # as of uvicorn, Jupyter and http.server
    assert "0 answers kept in" in notes
    assert "Interrupted" not in notes


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "[::1]")]
)
def test_the_address_that_is_told_is_the_one_that_answers(table, capsys, monkeypatch, host, shown):
    pytest.importorskip("starlette")
    from linkwise.app.listen import Listening

    bound = []
    monkeypatch.setattr(Listening, "listen", lambda self: bound.append(self.sock))
    typed = ["serve", str(table), "--drop", "name", "--drop", "group", "--no-browser"]
    try:
        assert main([*typed, "--host", host]) == 0
    except BadInput:
        pytest.skip("this machine has no IPv6")
    name, port = bound[0].getsockname()[:2]
    bound[0].close()
    assert f"http://{shown}:{port}/" in capsys.readouterr().out
    assert shown.strip("[]") == name


PEOPLE = zip(("Anna Schmidt", "Bert Weber", "Carla Vogt"), ("Bonn", "Ulm", "Kiel"), strict=True)
RECORDS = [
    f"{name}{typo},{city},19{50 + k}"
    for k, (name, city) in enumerate(PEOPLE)
    for typo in ("", "e", "x")
]


def test_records_are_compared_letter_by_letter_and_reviewed(tmp_path, capsys, monkeypatch):
    pytest.importorskip("starlette")
    from linkwise.app.listen import Listening

    rooms = []
    monkeypatch.setattr(Listening, "listen", lambda self: rooms.append(self.room))
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["name,city,born", *RECORDS]))
    typed = ["serve", str(path), "-m", "linkage", "--no-browser"]
    assert main([*typed, "-k", "3"]) == 2
    assert "Leave -k out" in capsys.readouterr().err
    assert main([*typed, "--text", "name,city"]) == 0
    (room,) = rooms
    assert room.by_size
    assert [field[:2] for field in room.items.cards([1])[0]["fields"]] == [
        ["name", "Anna Schmidte"],
        ["city", "Bonn"],
        ["born", "1950"],
    ]
    solver = ReviewSolver(room.data)
    solver.tell(Known())
    solver.refit()
    found = solver.found(Known())
    assert len(set(found.labels.tolist())) == 3
    room.project.close()


def test_a_project_about_other_data_is_not_opened(table, capsys):
    room_of(table, drop=("name", "group"))
    pytest.importorskip("starlette")
    typed = ["serve", str(table), "--drop", "name", "--no-browser"]
    assert main([*typed, "--features", "x", "--features", "y"]) == 2
    assert "other data" in capsys.readouterr().err


def test_the_terminal_and_the_page_share_a_project(table, monkeypatch, capsys):
    room_of(table, drop=("name", "group"), n_clusters=3)
    monkeypatch.setattr(sys, "stdin", io.StringIO("sdszuq\n"))
    project = str(table.with_suffix(".linkwise"))
    typed = ["ask", str(table), "--drop", "name", "--drop", "group", "-k", "3", "--quiet"]
    assert main([*typed, "--project", project]) == 0
    room = room_of(table, drop=("name", "group"), n_clusters=3)
    said = [event.relation for event in room.project.ledger.facts.answers.values()]
    assert said == ["same", "different", "unsure"]
    assert {event.who for event in room.project.ledger.events} == {"terminal"}
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    capsys.readouterr()
    assert main([*typed[:-1], "--project", project]) == 0
    assert "goes on after 3 answers" in capsys.readouterr().err


def test_the_script_finds_the_same_clusters(tmp_path):
    from sklearn.datasets import load_iris

    from linkwise.app.events import Event

    X, truth = load_iris(return_X_y=True)
    rows = "\n".join(",".join(map(str, row)) for row in X.tolist())
    (tmp_path / "iris.csv").write_text(f"a,b,c,d\n{rows}\n")
    room = opened(ServeRequest(data=tmp_path / "iris.csv"), Console(quiet=True))
    room.open()
    rng = np.random.RandomState(0)
    for number in range(12):
        a, b = sorted(rng.choice(150, 2, replace=False).tolist())
        word = "same" if truth[a] == truth[b] else "different"
        room.act([Event("answer", f"uuid-{number}", "ada", a, b, word)])
    end = time.monotonic() + 120
    while not (room.clustering.is_full and room.clustering.known == room.known()):
        assert time.monotonic() < end
        time.sleep(0.05)
    for name in ("features.npy", "answers.csv", "reproduce.py", "labels.npy"):
        (tmp_path / name).write_bytes(exports.EXPORTS[name][0](room))
    room.close()
    subprocess.run([sys.executable, "reproduce.py"], cwd=tmp_path, check=True, timeout=120)
    found, wanted = (np.load(tmp_path / name) for name in ("reproduced.npy", "labels.npy"))
    assert adjusted_rand(found, wanted) == 1


def test_the_script_takes_a_graph_for_a_graph(tmp_path):
    X, y = blobs()
    W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0)
    room = make_room(tmp_path)
    room.data = Prepared(W, "precomputed")
    for name in ("features.npy", "answers.csv", "reproduce.py"):
        (tmp_path / name).write_bytes(exports.EXPORTS[name][0](room))
    room.close()
    subprocess.run([sys.executable, "reproduce.py"], cwd=tmp_path, check=True, timeout=120)
    assert adjusted_rand(np.load(tmp_path / "reproduced.npy"), y) == 1


# Parts -----------------------------------------------------------------------------------------


def test_clusters_keep_their_numbers_when_one_splits():
    before = np.repeat([2, 5], [10, 6])
    after = np.repeat([0, 1, 2], [4, 6, 6])
    assert matched(after, before).tolist() == [0] * 4 + [2] * 6 + [5] * 6


def test_close_calls_are_between_clusters_and_differ():
    probability = np.array([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.45, 0.55]])
    labels = probability.argmax(axis=1)
    first, second = close_calls(probability, labels)[:2]
    assert 0 in first.pair
    assert 3 in second.pair


def test_the_layout_keeps_clusters_together_and_equals_its_slow_twin():
    X, y = blobs()
    data = Prepared(X)
    start = principal_axes(data)
    assert start.shape == (60, 2)
    assert (start >= 0).all()
    assert (start <= 1).all()
    points = neighbor_layout(data, start)
    centers = np.array([points[y == c].mean(axis=0) for c in range(3)])
    nearest = np.linalg.norm(points[:, None] - centers, axis=2).argmin(axis=1)
    assert (nearest == y).all()
    fast, slow = (np.random.RandomState(0).rand(6, 2) for _ in range(2))
    for points, near, away in ((fast, pull, push), (slow, pull.py_func, push.py_func)):
        near(points, 0, 1, 0.5)
        away(points, 2, 3, 0.5)
        near(points, 4, 4, 0.5)
    np.testing.assert_allclose(fast, slow)
    assert arrange.py_func.__doc__


def test_far_samples_do_not_shrink_the_map():
    points = np.random.RandomState(0).normal(size=(1_000, 2))
    points[0] = 1e6
    unit = unit_square(points)
    assert np.ptp(unit[1:], axis=0).min() > 0.5
    assert unit.max() <= 1
    assert np.isfinite(unit_square(np.zeros((5, 1)))).all()


def test_summaries_are_words_and_differences_of_numbers_are_measured():
    numbers = [1.0, 2.0, 3.0]
    items = Items(["a", "b", "c"], "row", {"x": numbers, "name": ["Ann", "Bo", ""]})
    assert items.quantities["x"].usual == pytest.approx(1 / 1.349)  # of the middle half
    assert [items.summary(k) for k in range(3)] == ["Ann, x 1", "Bo, x 2", "x 3"]


def test_numbers_have_their_place_among_many_words():
    words = {f"w{k}": [f"word{k}", "other"] for k in range(7)}
    items = Items(["a", "b"], "row", words | {f"x{k}": [1.5, 2.0] for k in range(5)})
    assert items.summary(0) == "word0, word1, word2, x0 1.5, x1 1.5, x2 1.5, word3, word4, word5"


def test_a_few_large_sums_do_not_make_all_others_alike():
    paid = [10.0, 12.0, 14.0, 16.0, 90.0, 5000.0]
    usual = Items(list("abcdef"), "row", {"paid": paid}).quantities["paid"].usual
    assert usual < 90 - 10
    mostly_one = [0.0] * 9 + [5.0]
    usual = Items(list("abcdefghij"), "row", {"paid": mostly_one}).quantities["paid"].usual
    assert usual == pytest.approx(np.std(mostly_one))


def test_money_and_dates_are_quantities_and_codes_are_not():
    columns = {
        "paid": ["$1,200.50", "$80", "n/a", "(USD 20)"],
        "day": ["2024-03-01", "2024-03-02", "2023-01-01", ""],
        "phone": ["030 123 456", "089 654 321", "030 123 457", "040 111 222"],
        "code": ["01234", "01235", "99999", "12345"],
        "name": ["Ann", "Bo", "Cy", "Di"],
    }
    items = Items(list("abcd"), "row", columns)
    assert {name: one.kind for name, one in items.quantities.items()} == {
        "paid": "amount",
        "day": "date",
    }
    assert items.dates == ["day"]
    values = items.quantities["paid"].values
    assert values.tolist()[:2] == [1200.5, 80.0]
    assert np.isnan(values[2])
    assert values[3] == -20
    first, second = ({one[0]: one[3] for one in card["fields"]} for card in items.cards([0, 1]))
    assert second["day"] - first["day"] == pytest.approx(1 / items.quantities["day"].usual)
    assert items.summary(3) == "(USD 20), 040 111 222, 12345, Di"


def test_long_whole_numbers_are_shown_with_all_digits_and_are_no_quantities():
    phones = [3865286.0, float("nan"), 4684400.0, 7625660.0]
    items = Items(list("abcd"), "row", {"phone": phones, "year": [1999, 2001, 2004, 2001]})
    assert [one[1] for one in items.cards([0, 2])[0]["fields"]] == ["3865286", "1999"]
    assert list(items.quantities) == ["year"]


def test_cards_of_values_that_are_missing_or_long():
    items = Items(["a"], "row", {"x": [float("nan")], "y": ["z" * 5_000], "n": [1 / 3]})
    (card,) = items.cards([0])
    assert card["fields"] == [
        ["x", "", 0, None],
        ["y", "z" * 4_000, 1_000, None],
        ["n", "0.333333", 0, None],
    ]
    (whole,) = items.cards([0], whole=True)
    assert whole["fields"][1] == ["y", "z" * 5_000, 0, None]
    with pytest.raises(MissingImageError):
        items.media(0)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps memory that was freed")
def test_memory_that_a_clustering_freed_is_given_back():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    arrays = [np.ones(10_000) for _ in range(1_000)]
    kept = arrays[::50]  # what stays here and there keeps the pages around it
    del arrays
    before = resident()
    give_back_memory()
    assert before - resident() > 30_000_000
    assert len(kept) == 20


def test_another_number_of_clusters_is_noted(table, capsys):
    room = opened(ServeRequest(data=table, drop=("name", "group"), n_clusters=3), Console())
    stats = {"clusters": 3, "still": None, "given": 0, "counts": False}
    room.project.keep_run(np.zeros(60, dtype=np.intp), 0, stats)
    room.project.close()
    for k, told in ((3, False), (4, True)):
        capsys.readouterr()
        opened(
            ServeRequest(data=table, drop=("name", "group"), n_clusters=k), Console()
        ).project.close()
        assert ("had 3 clusters, and now gets 4 (-k)" in capsys.readouterr().err) == told


def test_a_project_of_other_columns_says_what_to_do(table):
    room_of(table, drop=("name", "group"))
    with pytest.raises(BadInput, match=r"the columns or values differ.*such as --drop"):
        room_of(table, drop=("name", "group", "z"))


def test_the_page_says_to_stop_after_five_answers_at_the_earliest(tmp_path):
    room = make_room(tmp_path)
    room.clustering = Clustering(still_to_change=0.0)
    for k in range(6):
        stop = stopping(room)
        assert stop["reached"] == (k == 5)
        assert ("You can stop" in stop["advice"]) == (k == 5)
        room.project.append([Event("answer", f"u{k}", "me", 2 * k, 2 * k + 1, "same")])
    room.project.close()


def test_the_terminal_reads_a_table_of_a_project_as_the_page_does(tmp_path, monkeypatch, capsys):
    X, _ = blobs()
    rows = [f"{k},note {k % 40},{a:.3f},{b:.3f}" for k, (a, b) in enumerate(X[:, :2])]
    rows[5] = "5,note 5,,1.0"
    path = tmp_path / "notes.csv"
    path.write_text("\n".join(["id,note,x,y", *rows]) + "\n")
    room_of(path, n_clusters=3)
    monkeypatch.setattr(sys, "stdin", io.StringIO("sq\n"))
    project = str(path.with_suffix(".linkwise"))
    assert main(["ask", str(path), "-k", "3", "--project", project]) == 0
    assert "not used for clustering: 'note'" in capsys.readouterr().err
    assert len(room_of(path, n_clusters=3).project.ledger.facts.answers) == 1


def ask(table, monkeypatch, *arguments, keys="q\n"):
    monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
    typed = ["ask", str(table), "--drop", "name", "--drop", "group"]
    return main([*typed, "--project", str(table.with_suffix(".linkwise")), *arguments])


def test_the_terminal_says_what_the_page_says_of_the_same_project(table, monkeypatch, capsys):
    request = ServeRequest(data=table, drop=("name", "group"), n_clusters=3)
    room = opened(request, Console(quiet=True))
    y = blobs()[1]
    for k in range(1, 8):
        word = "same" if y[0] == y[k] else "different"
        room.act([Event("answer", f"uuid-{k}", "ada", 0, k, word, weight=0.7 if k == 1 else 1.0)])
    room.act([Event("answer", "uuid-8", "ada", 0, 8, "same")])
    room.act([Event("resolve", "uuid-9", "ada", 0, 8, "withdrawn", note="ada")])
    solver = SessionSolver(prepared(room.data))
    solver.tell(room.known())
    solver.refit()
    found = solver.found(room.known())
    room.project.keep_run(found.labels, 9, {"clusters": 3, "still": None, "given": 8})
    page = exports.EXPORTS["constraints.csv"][0](room, safe=False).decode()
    data = room.project.meta("data")
    room.close()

    written = table.with_name("pairs.csv")
    assert ask(table, monkeypatch, "-k", "3", "-o", str(written)) == 0
    told = capsys.readouterr()
    assert "goes on after 7 answers" in told.err
    assert f"{found.still_to_change:.0%} of the rows may still move" in told.err + told.out
    assert "known:" not in told.err
    assert "-k" not in told.err
    said, wanted = (pd.read_csv(one) for one in (written, io.StringIO(page)))
    beliefs = [one.set_index(["i", "j"])["belief"].to_dict() for one in (said, wanted)]
    assert beliefs[0] == pytest.approx(beliefs[1])
    assert set(beliefs[0].values()) > {1.0}

    assert ask(table, monkeypatch, "-k", "4") == 0
    assert "had 3 clusters, and now gets 4 (-k)" in capsys.readouterr().err
    project = Project(table.with_suffix(".linkwise"), room.items.names, data)
    project.append([Event("clusters", "uuid-k", "ada", 3)])
    project.close()
    assert ask(table, monkeypatch, "-k", "4") == 0
    assert "-k 4 is not used, as the page was told 3 clusters" in capsys.readouterr().err


def test_a_folder_of_images_is_told_what_to_do(tmp_path):
    with pytest.raises(BadInput, match=r"is a folder, not a file\.$"):
        room_of(tmp_path)
    (tmp_path / "one.png").write_bytes(b"")
    with pytest.raises(BadInput, match="--image COLUMN"):
        room_of(tmp_path)


def test_the_terminal_begins_with_a_clustering_under_all_answers(tmp_path):
    X, y = blobs()
    project = Project(tmp_path / "p", [str(k) for k in range(60)], "data")
    for k in range(1, 8):
        word = "same" if y[0] == y[k] else "different"
        project.append([Event("answer", f"uuid-{k}", "ada", 0, k, word)])
    session = ProjectSession(Prepared(X), 3, project=project, random_state=0)
    session.next()
    assert session.n_clustered == 7
    session.answer(20, 21, "same")
    session.next()
    assert session.n_clustered == 7  # then when it is due: nobody waits for each question
    project.close()


def test_two_pages_of_one_project_are_told(table, capsys):
    first = opened(ServeRequest(data=table, drop=("name", "group")), Console())
    assert "another process has it open" not in capsys.readouterr().err
    second = opened(ServeRequest(data=table, drop=("name", "group")), Console())
    assert "another process has it open, too" in capsys.readouterr().err
    for room in (first, second):
        room.project.close()
