"""The first minute: what is compiled, what is shown while one waits."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise import COSC, E2CP, Auto, ConstrainedCut, Constraints, NCut, _jit, _progress
from linkwise._progress import Progress
from linkwise.exceptions import ConvergenceWarning

FIRST_FIT = """
from numba.core import event
from sklearn.datasets import load_iris
from linkwise import Auto, Constraints

class Compiled(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        print(function.__module__, function.__name__)

    def on_end(self, event):
        pass

X, y = load_iris(return_X_y=True)
known = Constraints(150, must_link=[(60, 70), (110, 140)], cannot_link=[(70, 120), (55, 110)])
with event.install_listener("numba:compile", Compiled()):
    Auto(3, random_state=0).fit(X, constraints=known)
"""


def test_the_first_fit_compiles_few_kernels_and_each_once(tmp_path):
    # A second signature costs as much as the first; array expressions and slice assignments in
    # kernels make numba compile its strings, for the message when shapes differ.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FIT],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    compiled = done.stdout.splitlines()
    own = [line for line in compiled if line.startswith("linkwise")]
    assert 0 < len(own) <= 28
    assert len(own) == len(set(own))
    assert len(compiled) <= 36
    assert not [line for line in compiled if "unicode" in line]


# Progress ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """An error stream that somebody looks at."""

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    return watched(monkeypatch)


def watched(monkeypatch):
    """Let the modules write to a terminal; pytest has the error stream of the process."""
    seen = SimpleNamespace(stderr=Terminal(), modules=sys.modules)
    for module in (_jit, _progress):
        monkeypatch.setattr(module, "sys", seen)
    return seen.stderr


def shares(terminal):
    return [int(share) for share in re.findall(r"(\d+)% \|", terminal.getvalue())]


def test_a_bar_shows_the_share_and_goes(terminal):
    with Progress("fit") as progress:
        progress(0.25, "graph")
        progress(0.5, "cut")
        progress(None, "still the cut")
    assert shares(terminal)[-1] == 50
    assert max(shares(terminal)) == 50
    assert "fit:" in terminal.getvalue()
    assert "graph" in terminal.getvalue()
    assert terminal.getvalue().endswith(" \r")  # wiped out


def test_a_call_inside_another_moves_its_bar(terminal):
    with Progress("compare") as outer:
        outer(0.5, "auto", upto=0.7)
        with Progress("Auto") as inner:
            inner(0.5, "k-means")
    assert shares(terminal)[-1] == 60
    assert "auto: k-means" in terminal.getvalue()
    assert "Auto:" not in terminal.getvalue()


@pytest.mark.parametrize("verbose", [None, 0])
def test_nothing_is_shown_to_nobody_or_who_does_not_want_it(verbose, monkeypatch, capsys):
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    terminal = watched(monkeypatch) if verbose == 0 else Terminal()
    with Progress("fit", verbose) as progress:
        progress(0.5, "half")
        progress.write("a line")
    assert capsys.readouterr() == ("", "")
    assert terminal.getvalue() == ""


def test_quick_calls_show_nothing(terminal, monkeypatch):
    monkeypatch.setattr(_progress, "DELAY", 60.0)
    with Progress("fit") as progress:
        progress(0.5, "half")
        progress.write("a line")
    assert terminal.getvalue() == ""


def test_without_tqdm_nothing_is_shown(terminal, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with Progress("fit") as progress:
        progress(0.5, "half")
    assert terminal.getvalue() == ""


class NotebookBar:
    """Stands for the bar of tqdm that is a widget."""

    made: ClassVar[list] = []

    def __init__(self, **options):
        self.options, self.n, self.start_t, self.shown, self.open = options, 0, 0.0, [], True
        NotebookBar.made.append(self)

    def set_postfix_str(self, text, refresh):
        self.text = text

    def refresh(self):
        self.shown.append((self.n, self.text))

    def write(self, line, file):
        self.shown.append(line)

    def close(self):
        self.open = False


@pytest.fixture
def notebook(monkeypatch):
    """The process of a notebook: its error stream is no terminal."""
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=NotebookBar))
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    monkeypatch.setattr(NotebookBar, "made", [])
    return NotebookBar.made


def test_a_notebook_shows_a_widget(notebook, capsys):
    with Progress("compare") as progress:
        progress(0.25, "ncut")
        progress.write("ncut: ARI 0.5")
        with Progress("Auto") as inner:
            inner(0.5, "k-means")
        progress(0.75, "auto")
    (bar,) = notebook
    assert bar.options["desc"] == "compare"
    assert bar.options["total"] == 1.0
    assert "|{bar}|" in bar.options["bar_format"]  # the widget's own, instead of letters
    assert (0.75, "auto") in bar.shown
    assert "ncut: ARI 0.5" in bar.shown
    assert not bar.open
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_fits_unless_they_are_silenced(notebook):
    Auto(3, random_state=0).fit(X, constraints=known)
    assert [bar.options["desc"] for bar in notebook] == ["Auto"]
    assert notebook[0].n > 0.9
    notebook.clear()
    Auto(3, verbose=0, random_state=0).fit(X, constraints=known)
    COSC(2, verbose=0, random_state=0).fit(X)
    assert notebook == []


def test_a_notebook_without_widgets_gets_text(notebook, monkeypatch, capsys):
    pytest.importorskip("tqdm")

    def no_widgets(**_):
        raise ImportError("ipywidgets")

    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=no_widgets))
    with Progress("fit") as progress:
        progress(0.5, "half")
    assert "fit:  50%" in capsys.readouterr().err


def test_lines_are_written_as_soon_as_there_is_a_bar(terminal, monkeypatch):
    with Progress("fit") as progress:
        monkeypatch.setattr(_progress, "DELAY", 60.0)
        progress.write("early")
        monkeypatch.setattr(_progress, "DELAY", 0.0)
        progress(0.5, "half")
        progress.write("late")
    assert terminal.getvalue().index("early") < terminal.getvalue().index("late")


def test_fits_in_other_threads_leave_the_bar_alone(terminal):
    def fit():
        with Progress("other") as inner:
            inner(0.9, "elsewhere")

    with Progress("fit") as progress:
        progress(0.1, "begun", upto=1.0)
        thread = threading.Thread(target=fit)
        thread.start()
        thread.join()
        progress(0.2, "end")
    assert max(shares(terminal)) == 20


X, y = make_blobs(80, centers=3, random_state=1)
known = Constraints.sample(y, 12, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        Auto(3, random_state=0),
        COSC(2, random_state=0),
        COSC(3, violations="auto", random_state=0),
        ConstrainedCut(3, random_state=0),
        ConstrainedCut(3, constraints_mode="soft", random_state=0),
        ConstrainedCut(3, objective="kmeans", random_state=0),
    ],
    ids=str,
)
def test_searches_show_their_progress(model, terminal, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            X, constraints=known.subset(known.table.is_must_link) if "2" in str(model) else known
        )
        seen = shares(terminal)
        assert seen == sorted(seen)
        assert seen[-1] > 50
        written = len(terminal.getvalue())
        clone(model).set_params(verbose=0).fit(X, constraints=None)
    assert len(terminal.getvalue()) == written
    assert capsys.readouterr().out == ""


# Compiling ---------------------------------------------------------------------------------


class Compiled:
    """What numba's event tells of a function that is compiled."""

    def __init__(self, module):
        self.data = {"dispatcher": self}
        self.py_func = self
        self.__module__ = module


@pytest.mark.parametrize(
    ("wanted", "module", "shown"),
    [
        (None, "linkwise.auto.coarse_cut", True),
        (False, "linkwise.auto.coarse_cut", False),
        (None, "somebody.else", False),
    ],
)
def test_a_line_says_once_that_kernels_are_compiled(wanted, module, shown, terminal, monkeypatch):
    monkeypatch.setattr(_jit, "NOTE_AFTER", -1.0)
    note = _jit.CompilingNote()
    note.is_wanted = wanted
    for _ in range(2):
        note._begin(Compiled(module))
        note._end()
    assert terminal.getvalue().count("compiling once") == shown


def test_nobody_is_told_in_a_pipe(capsys, monkeypatch):
    monkeypatch.setattr(_jit, "NOTE_AFTER", -1.0)
    _jit.CompilingNote()._begin(Compiled("linkwise.search"))
    assert capsys.readouterr().err == ""


# Ctrl-C ------------------------------------------------------------------------------------


class Interrupt:
    """A callback that presses Ctrl-C once, when a share of the work is done."""

    def __init__(self, moment, press):
        self.moment, self.press, self.done = moment, press, False

    def __call__(self, share, what):
        if share >= self.moment and not self.done:
            self.done = True
            self.press()


def raised():
    raise KeyboardInterrupt


def sent():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.parametrize("press", [raised, sent])
@pytest.mark.parametrize("moment", [0.0, 0.2, 0.4, 0.6, 0.9])
def test_auto_answers_after_an_interrupt(moment, press):
    model = Auto(3, callback=Interrupt(moment, press), random_state=0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model.fit(X, constraints=known)
    finally:
        signal.signal(signal.SIGINT, before)
    assert set(model.labels_) == {0, 1, 2}
    assert not model.result_.converged
    assert adjusted_rand_score(y, model.labels_) > 0.5


# Many clusters -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Auto(101), E2CP(301), NCut(768), COSC(400), ConstrainedCut(301)])
def test_hundreds_of_clusters_are_refused_with_an_alternative(model):
    many = np.random.RandomState(0).normal(size=(800, 2))
    message = rf"{model.n_clusters} clusters are more than the [13]00 that .* take linkwise\.\w+"
    with pytest.raises(ValueError, match=message):
        model.fit(many)
    assert not hasattr(model, "affinity_matrix_")  # at once: no graph was built


def test_labels_of_hundreds_of_classes_are_too_many_for_auto():
    labels = np.arange(800) // 2 % 150
    with pytest.raises(ValueError, match="150 clusters are more than the 100 that Auto"):
        Auto().fit(
            np.random.RandomState(0).normal(size=(800, 2)),
            constraints=Constraints.from_labels(labels),
        )
