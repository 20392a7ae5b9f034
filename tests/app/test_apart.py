"""The process that clusters, and a server that needs none of its libraries."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import Queue
from threading import Event as Signal
from threading import Thread

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.decomposition import PCA

pytest.importorskip("starlette", reason="the annotation page needs linkwise[app]")
psutil = pytest.importorskip("psutil")

from linkwise._jit import CompilingNote
from linkwise.active import Answer, Session
from linkwise.active.fits import Fit, Fits
from linkwise.app import apart, layout, wire
from linkwise.app.apart import Apart, Process
from linkwise.app.engine import Engine, Found, Known, Question
from linkwise.app.events import Event
from linkwise.app.first import provisional
from linkwise.app.items import Items
from linkwise.app.matching import _assignment
from linkwise.app.matching import adjusted_rand as own_adjusted_rand
from linkwise.app.project import Project
from linkwise.app.room import Room
from linkwise.app.samples import Samples, samples_of
from linkwise.app.solvers import PageSession, SessionSolver
from linkwise.app.worker import Sender
from linkwise.graph import Prepared
from linkwise.metrics import adjusted_rand
from rooms import blobs, make_room

HEAVY = ("sklearn", "numba", "scipy", "pandas")
SERVED = """
import sys
import linkwise.cli.commands, linkwise.cli.serve, linkwise.cli.loading, linkwise.app.listen
from linkwise.app.first import provisional
from linkwise.app.engine import Engine, Found, Known, Question
from linkwise.app.events import Event
from linkwise.app.samples import samples_of
import numpy as np
provisional(samples_of(np.random.RandomState(0).normal(size=(50, 4))), Known())
print([name for name in {heavy} if name in sys.modules])
"""


def test_the_server_imports_nothing_that_clusters():
    code = SERVED.format(heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_other_process_keeps_pandas_out_and_can_still_import_it():
    code = (
        "import sys\n"
        "from linkwise.app.worker import _import\n"
        "_import()\n"
        "from linkwise import Auto\n"
        "Auto(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]] * 5)\n"
        "print('pandas' in sys.modules)\n"
        "import pandas"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# The other process -----------------------------------------------------------------------------


class Told:
    """A publisher that remembers everything."""

    def __init__(self):
        self.results, self.reasons, self.maps, self.neighbors = [], [], [], None
        self.doing = "nothing yet"

    def found(self, result):
        self.results.append(result)

    def placed(self, points, name):
        self.maps.append(name)

    def linked(self, neighbors):
        self.neighbors = neighbors

    def failed(self, reason):
        self.reasons.append(reason)

    def working(self, what):
        self.doing = what

    def wait(self, condition, seconds=120.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited in vain; {self.reasons}"
            time.sleep(0.01)


def full(told, upto):
    return any(one.is_full and one.known.upto == upto for one in told.results)


def test_clusters_come_from_another_process_which_is_started_again_if_it_ends():
    X, y = blobs()
    told, process = Told(), Process()
    engine = Apart(samples_of(X), told, process)
    engine.start(Known(n_clusters=3), is_new=True)
    try:
        told.wait(lambda: full(told, 0) and told.neighbors is not None)
        assert told.results[0].method.startswith("k-means")  # at once, by the server itself
        assert told.maps == ["axes", "graph"]
        assert adjusted_rand(y, told.results[-1].labels) == 1
        same = y == y[0]
        assert all(y[k] == y[0] for k in told.neighbors[same].ravel() if k >= 0)

        os.kill(process.pid, signal.SIGKILL)
        told.wait(lambda: told.reasons and "has ended" in told.reasons[-1])
        assert told.doing == ""
        i, j = np.flatnonzero(same)[:2].tolist()
        engine.submit(Known(1, (Answer(i, j, "same"),), 3))
        told.wait(lambda: full(told, 1))
        told.wait(lambda: told.reasons[-1] == "")  # the error is over
    finally:
        engine.stop()
    assert engine.is_stopped


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_process_ends_with_the_server():
    code = (
        "from linkwise.app.apart import Process\n"
        "import os, signal\n"
        "process = Process()\n"
        "print(process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False
    )
    pid = int(done.stdout)
    end = time.monotonic() + 60
    while is_running(pid):
        assert time.monotonic() < end, "it still runs"
        time.sleep(0.05)


def is_running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be stopped there")
def test_an_answer_never_waits_for_the_other_process(tmp_path):
    X, _ = blobs(30_000)  # more than a pipe takes at once
    names = [f"item {k}" for k in range(len(X))]
    items, project = Items(names, "point", {}, X, "abcd"), Project(tmp_path / "p", names, "data")
    process = Process()
    os.kill(process.pid, signal.SIGSTOP)  # as busy as can be
    room = Room(project, items, samples_of(X), n_clusters=3, process=process)
    room.open()
    end = time.monotonic() + 30
    while room.clustering.labels is None:
        assert time.monotonic() < end, "no provisional clusters"
        time.sleep(0.01)
    first = room.question("tab", "me")
    assert first.why == "a close call between two clusters"
    time.sleep(0.5)  # the samples are on their way
    acting = Thread(
        target=room.act, args=([Event("answer", "u1", "me", *first.pair, "same")],), daemon=True
    )
    acting.start()
    acting.join(10)
    assert not acting.is_alive()
    assert room.question("tab", "me").pair != first.pair
    room.close()


def test_compiling_is_told_on_the_page(tmp_path):
    with (tmp_path / "news").open("wb") as file:
        sender = Sender(file)
        note = CompilingNote()
        note.tell = sender.compiling
        sender.working("clustering")
        note._spent = 1.0  # seconds so far
        note._is_registered = True
        note._depth = 1
        note._begin(None)
    with (tmp_path / "news").open("rb") as file:
        news = [wire.receive(file) for _ in range(2)]
    assert news[-1] == ("working", ["clustering (compiling once, 10 to 40 s)"])


def test_messages_arrive_as_they_were_sent():
    known = Known(3, (Answer(0, 1, "same", belief=0.3), Answer(1, 2, "unknown")), None)
    probability = np.random.RandomState(0).dirichlet(np.ones(3), size=4)
    found = Found(
        known, np.arange(4), probability[:, ::-1], [Question((0, 2), "Köln\n", again=True)],
        np.float64(0.25), [((0, 1), 0.7)], "Auto", is_full=True, seconds=1 / 3, n_open=None,
    )  # fmt: skip
    X = csr_array(np.eye(3))
    stream = io.BytesIO()
    wire.send(stream, "found", found, {"by_size": True}, X)
    wire.send(stream, "working", "")
    stream.seek(0)
    name, (back, settings, again) = wire.receive(stream)
    assert (name, settings) == ("found", {"by_size": True})
    assert back.known == known
    assert [one.belief for one in back.known.answers] == [0.3, 1.0]
    assert np.array_equal(back.labels, found.labels)
    assert np.array_equal(back.probability, found.probability)
    assert back[3:] == (tuple(found.questions), *found[4:5], tuple(found.suspects), *found[6:])
    assert (again != X).nnz == 0
    assert wire.receive(stream) == ("working", [""])
    with pytest.raises(EOFError):
        wire.receive(stream)
    with pytest.raises(ValueError, match="no kind of numbers"):
        wire.receive(io.BytesIO(b'["found", [{"array": ["|O", [1]]}]]\n12345678'))


# What the server finds by itself ---------------------------------------------------------------


def test_there_is_no_random_question_while_clusters_are_being_found(tmp_path):
    room = make_room(tmp_path)
    assert room.question("tab", "me") is None
    room.failed("no clusters today")
    assert room.question("tab", "me").why == "a random pair"
    room.close()


def test_provisional_clusters_are_those_of_k_means():
    X, y = blobs(300)
    found = provisional(Samples(X), Known(n_clusters=3))
    assert adjusted_rand(y, found.labels) == 1
    assert found.questions
    alike = provisional(Samples(np.ones((20, 4))), Known(n_clusters=3))  # nothing to tell apart
    assert np.isfinite(alike.probability).all()


@pytest.mark.parametrize("n_features", [3, 40])
def test_the_first_map_is_along_the_principal_axes(n_features):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(200, n_features)) * np.linspace(5, 1, n_features)
    axes = layout.leading_axes(X - X.mean(axis=0))
    expected = PCA(2).fit(X).components_
    assert np.abs(np.abs(expected @ axes) - np.eye(2)).max() < 1e-3


def test_the_nearest_are_those_with_the_largest_weights():
    W = np.array([[9.0, 1, 2, 0], [1, 0, 0, 0], [2, 0, 0, 3], [0, 0, 3, 0]])
    expected = [[2, 1, -1], [0, -1, -1], [3, 0, -1], [2, -1, -1]]
    for graph in (W, csr_array(W)):
        assert layout.nearest(graph, 3).tolist() == expected


def test_samples_that_need_a_closer_look_are_prepared():
    assert isinstance(samples_of(np.ones((3, 2))), Samples)
    assert isinstance(samples_of(csr_array(np.ones((3, 2)))), Prepared)
    with pytest.raises(ValueError, match="NaN"):
        samples_of(np.array([[np.nan, 1.0], [1.0, 1.0]]))


def test_matching_and_agreement_equal_those_of_the_libraries():
    rng = np.random.RandomState(0)
    for _ in range(300):
        overlap = rng.randint(rng.choice([2, 5, 100]), size=rng.randint(1, 9, size=2))
        rows, columns = _assignment(overlap)
        assert len(set(columns.tolist())) == len(set(rows.tolist())) == min(overlap.shape)
        assert overlap[rows, columns].sum() == overlap[linear_sum_assignment(-overlap)].sum()
        truth, labels = rng.randint(4, size=(2, 30))
        assert own_adjusted_rand(truth, labels) == pytest.approx(adjusted_rand(truth, labels))


# What goes wrong with the other process --------------------------------------------------------


def test_the_process_imports_in_the_order_of_the_server_and_nothing_of_the_folder(
    tmp_path, monkeypatch
):
    sources = str(Path(apart.linkwise.__file__).resolve().parent.parent)
    others = [path for path in sys.path if path and os.path.realpath(path) != sources]
    (tmp_path / "json.py").write_text("raise RuntimeError('of the data')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *others, sources])
    code = "import sys, json, linkwise.app.worker; print(json.dumps(sys.argv[1:]))"
    done = subprocess.run(
        apart.command(f"import sys; sys.path[:] = sys.argv[1:]; {code}"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [*others, sources]
    monkeypatch.setattr(sys, "path", others)  # found in another way, such as by a hook
    assert apart.command()[-1] == sources


def of(*commands):
    """Start these one after the other, the last one again and again."""
    left = list(commands)
    return lambda: [sys.executable, "-c", left.pop(0) if len(left) > 1 else left[0]]


NO_JSON = "import time; print('{no json', flush=True); time.sleep(60)"


def test_a_process_that_cannot_be_read_is_ended(monkeypatch):
    monkeypatch.setattr(apart, "command", of(NO_JSON))
    told, process = Told(), Process()
    engine = Apart(samples_of(blobs()[0]), told, process)
    engine.start(Known(n_clusters=3), is_new=True)
    told.wait(lambda: told.reasons)
    assert "ended (-9); the next answer starts another" in told.reasons[0]
    assert not is_running(process.pid)
    engine.submit(Known(1, (), 3))
    told.wait(lambda: len(told.reasons) == 2)
    engine.stop()


def test_a_process_that_dies_before_there_are_questions_is_started_again(monkeypatch):
    monkeypatch.setattr(apart, "command", of("raise SystemExit(7)"))
    told = Told()
    engine = Apart(samples_of(blobs()[0]), told, Process(), by_size=True)
    engine.start(Known(), is_new=True)  # without provisional clusters, nobody can answer
    told.wait(lambda: "3 times" in "".join(told.reasons))
    assert ["(7), and another is started" in one for one in told.reasons] == [True, True, False]
    engine.stop()


def test_the_first_clusters_come_from_the_second_process(monkeypatch):
    real, commands = apart.command, [[sys.executable, "-c", "raise SystemExit(7)"]]
    monkeypatch.setattr(apart, "command", lambda: commands.pop() if commands else real())
    told = Told()
    engine = Apart(samples_of(blobs()[0]), told, Process(), by_size=True)
    engine.start(Known(), is_new=True)
    try:
        told.wait(lambda: told.results)
        assert told.results[0].method == "Linkage"
    finally:
        engine.stop()


class Silent:
    """A process that says what it is given to say; sending fails while `broken`."""

    threads, pid, broken = None, 0, False

    def __init__(self, *messages):
        self.messages, self.sent = Queue(), []
        for one in messages:
            self.messages.put(one)

    def send(self, name, *values):
        if self.broken:
            raise TypeError("broken on purpose")
        self.sent.append(name)

    def receive(self):
        return self.messages.get()

    def end(self):
        pass


def test_who_speaks_goes_on_after_an_error(capsys):
    told, process = Told(), Silent()
    engine = Apart(samples_of(blobs()[0]), told, process)
    process.broken = True
    engine.start(Known(n_clusters=3), is_new=True)
    for number in range(1, 3):  # when it begins, and when it goes on
        told.wait(lambda n=number: told.reasons.count("TypeError: broken on purpose") == n)
        process.broken = False
        engine.submit(Known(number, (), 3))
        told.wait(lambda n=number: len(process.sent) == n)
        process.broken = True
        engine.submit(Known(number, (), 3))
    engine.stop()


def test_who_listens_goes_on_after_an_error(capsys):
    told = Told()
    told.placed = None  # cannot be called
    process = Silent(("placed", [1, 2]), ("no such news", []), ("working", ["clustering"]))
    engine = Apart(samples_of(blobs()[0]), told, process)
    engine.start(Known(n_clusters=3), is_new=True)
    told.wait(lambda: told.doing == "clustering")
    assert any("no such news" in one for one in told.reasons)
    engine.stop()


@pytest.mark.skipif(os.name != "posix", reason="a terminal interrupts a group of processes there")
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.1, 0.2, 0.5])
def test_an_early_interrupt_leaves_no_traceback_and_no_process(tmp_path, seconds):
    np.save(tmp_path / "data.npy", blobs()[0])
    command = [sys.executable, "-m", "linkwise", "serve", str(tmp_path / "data.npy")]
    with subprocess.Popen(
        [*command, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as server:  # fmt: skip
        end = time.monotonic() + 60
        while not (children := psutil.Process(server.pid).children()):
            assert time.monotonic() < end, "it starts no process"
            time.sleep(0.001)
        time.sleep(seconds)
        os.killpg(server.pid, signal.SIGINT)
        try:
            _, errors = server.communicate(timeout=60)
        finally:
            server.kill()  # it does not end if it heard nothing
    assert "Traceback" not in errors
    assert "KeyboardInterrupt" not in errors
    # Python ends by the signal if that hit code made from text, as of a named tuple: 130 in a shell
    assert server.returncode in {0, 130, -signal.SIGINT}
    psutil.wait_procs(children, timeout=30)
    assert not any(one.is_running() for one in children)


def test_the_process_uses_as_many_threads_as_are_wanted(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    usual, wanted = apart._threads(None), apart._threads(1)
    assert usual["OMP_NUM_THREADS"] == "5"
    assert usual["NUMBA_NUM_THREADS"] == str(max(os.cpu_count() - 1, 1))
    assert wanted["OMP_NUM_THREADS"] == wanted["NUMBA_NUM_THREADS"] == "1"


def test_what_follows_from_a_first_error_does_not_hide_it():
    class Refusing:
        is_behind = False

        def tell(self, known):
            raise ValueError("the reason")

        def refit(self):
            raise AssertionError("it was not told anything")

    told = Told()
    engine = Engine(Prepared(blobs()[0]), told, Refusing())
    engine.start(Known(), is_new=False)
    told.wait(lambda: told.reasons and not told.doing)
    assert set(told.reasons) == {"ValueError: the reason"}
    engine.stop()


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_numbers_without_squares_are_refused_before_there_is_a_page(factor):
    with pytest.raises(ValueError, match="largest feature"):
        samples_of(np.array([[1.0, 2.0], [3.0, 4.0]]) * factor)
    assert samples_of(np.zeros((3, 2))).n_samples == 3


class Slow:
    """A solver whose questions take longer than its clusters."""

    is_quick, patience = True, None

    def __init__(self):
        self.upto, self.fitted, self.order = 0, -1, []
        self.is_broken = False

    @property
    def is_behind(self):
        return self.fitted < self.upto

    def tell(self, known):
        self.upto = known.upto

    def refit(self):
        self.order.append("refit")
        if self.is_broken:
            raise ValueError("broken on purpose")
        self.fitted = self.upto

    def _found(self, questions):
        return Found(Known(self.upto), np.arange(3), questions=questions, is_full=True)

    def shown(self):
        self.order.append("shown")
        return self._found(None)

    def found(self, known):
        self.order.append("found")
        return self._found((Question((0, 1), "test"),))


def test_new_clusters_are_shown_before_the_next_questions_are_worked_out():
    told = Told()
    solver = Slow()
    engine = Engine(Prepared(blobs()[0]), told, solver, has_map=True)
    engine.start(Known(), is_new=False)
    told.wait(lambda: solver.order[-1:] == ["found"] and not told.doing)
    assert "shown" not in solver.order  # of the first clusters, there are no questions yet
    told.results, solver.order[:] = [], []
    engine.submit(Known(1))
    told.wait(lambda: len(told.results) == 2)
    assert solver.order == ["refit", "shown", "found"]  # no questions that are old in a moment
    assert [one.questions for one in told.results] == [None, (Question((0, 1), "test"),)]
    solver.order.clear()
    solver.is_broken = True
    engine.submit(Known(2))
    told.wait(lambda: len(told.results) == 3)  # then without the newest clusters
    engine.stop()
    assert solver.order == ["refit", "found"]


def test_questions_do_not_wait_for_the_better_map(monkeypatch):
    told, improved = Told(), Signal()
    monkeypatch.setattr(layout, "neighbor_layout", lambda data, axes: improved.wait(60) and axes)
    engine = Engine(Prepared(blobs()[0]), told, Slow(), has_map=True)
    engine.start(Known(), is_new=False)
    try:
        told.wait(lambda: told.doing == "improving the map" and told.results)
        for upto in (1, 2):
            engine.submit(Known(upto))
            told.wait(lambda n=upto: told.results[-1].known.upto == n, 10)
            assert told.results[-1].questions
    finally:
        improved.set()
        engine.stop()


def test_the_clusters_that_are_shown_first_are_those_that_come_with_questions():
    solver = SessionSolver(Prepared(blobs(60)[0]))
    for n in (0, 6):
        pairs = [(0, k) for k in range(1, n)]
        answers = tuple(Answer(*one, "same" if one[1] % 2 else "different") for one in pairs)
        known = Known(n, answers, 3)
        solver.tell(known)
        solver.refit()
        shown, found = solver.shown(), solver.found(known)
        assert shown.questions is None
        assert found.questions
        for name in ("known", "still_to_change", "suspects", "method", "is_full", "seconds"):
            assert getattr(shown, name) == getattr(found, name)
        assert shown.labels.tolist() == found.labels.tolist()
        assert shown.probability.tolist() == found.probability.tolist()
    solver.tell(Known(n + 1, (*answers, Answer(20, 21, "same")), 3))
    assert solver.shown() is None  # it is not of all answers


class Rare(Slow):
    """A solver that is never behind, as one whose clusterings take long."""

    is_behind, is_quick = False, False

    @property
    def patience(self):
        return 0.0 if self.fitted < self.upto else None

    def shown(self):
        """Nothing: what is published comes with questions."""

    def found(self, known):
        rests = {"is_full": self.fitted == known.upto, "n_fitted": self.fitted}
        return Found(known, np.arange(3), **rests)


def test_clusters_rest_on_all_answers_when_nobody_answers_any_more():
    told, solver = Told(), Rare()
    engine = Engine(Prepared(blobs()[0]), told, solver, has_map=True)
    engine.start(Known(), is_new=False)
    try:
        told.wait(lambda: full(told, 0))
        for upto in (31, 30, 31, 36):  # an answer, undo, redo, more
            engine.submit(Known(upto))
        told.wait(lambda: full(told, 36), 10)
        solver.is_broken = True
        solver.order.clear()
        engine.submit(Known(37))
        told.wait(lambda: "broken on purpose" in "".join(told.reasons) and not told.doing, 10)
        engine.submit(Known(38))  # what failed is tried again with the next answer, not by itself
        told.wait(lambda: told.results[-1].known.upto == 38 and not told.doing, 10)
    finally:
        engine.stop()
    assert solver.order.count("refit") <= 2


def a_solver(n_answers):
    """Return a solver that was told so many answers, and these."""
    X, y = blobs(60)
    words = ["same" if y[0] == y[k] else "different" for k in range(n_answers + 1)]
    answers = tuple(Answer(0, k, words[k]) for k in range(1, n_answers + 1))
    solver = SessionSolver(Prepared(X))
    solver.tell(Known(n_answers, answers, 3))
    return solver, answers


def test_a_slow_clustering_waits_for_as_long_as_it_takes():
    solver, answers = a_solver(5)
    assert solver.patience == 0
    solver.refit()
    assert solver.patience is None
    solver._seconds = 7.0  # of a machine that was busy
    solver.tell(Known(6, (*answers, Answer(20, 21, "same")), 3))
    assert not solver.is_behind
    assert solver.patience == 7
    solver.tell(Known(7, answers, 3))
    solver.refit()  # is there already
    assert solver._seconds == 7


def test_what_is_clustered_are_answers_that_counted_at_one_time(monkeypatch):
    solver, answers = a_solver(4)
    fitted, begun = [], Signal()
    monkeypatch.setattr(PageSession, "cluster", lambda self, these: fitted.append(tuple(these)))
    undo = Session.undo

    def halting(session):
        if not begun.is_set():
            begun.set()
            refitting.start()
            refitting.join(0.2)  # it has to wait for the rest
        return undo(session)

    refitting = Thread(target=solver.refit)
    monkeypatch.setattr(Session, "undo", halting)
    wanted = (answers[0]._replace(belief=0.5), *answers[1:])
    solver.tell(Known(5, wanted, 3))
    refitting.join(10)
    assert fitted == [wanted]


def test_a_clustering_after_many_answers_were_taken_back_is_kept(monkeypatch):
    solver, answers = a_solver(12)
    empty = solver.session._fits.after(())
    monkeypatch.setattr(Fits, "_fit", lambda self, these: Fit(these, (), empty.candidates))
    for n in range(1, 13):
        solver.tell(Known(n, answers[:n], 3))
        solver.refit()
    solver.tell(Known(14, answers[:3], 3))
    solver.refit()
    assert solver.patience is None
    assert not solver.is_behind
