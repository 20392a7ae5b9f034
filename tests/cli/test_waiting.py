"""Long commands: Ctrl-C keeps what was found, and kernels are compiled beforehand."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from linkwise import _progress
from linkwise._interrupts import noted_interrupts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")


@pytest.fixture
def press(monkeypatch):
    """Press Ctrl-C when a call has done a share of its work."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    original = _progress.Progress.__call__

    def prepare(name, moment):
        pressed = []

        def told(self, share, what, **more):
            original(self, share, what, **more)
            if self._name == name and (share or 0) >= moment and not pressed:
                pressed.append(share)
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(_progress.Progress, "__call__", told)

    yield prepare
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_search_writes_its_answer_and_says_so(linkwise, table, press, tmp_path):
    press("Auto", 0.5)
    done = linkwise("cluster", "table.csv", "-k", 3, "-o", "clusters.csv", "--json")
    assert done.code == 130
    assert "interrupted" in done.err
    assert json.loads(done.out)["interrupted"] is True
    lines = (tmp_path / "clusters.csv").read_text().splitlines()
    assert len(lines) > 3


def test_a_whole_search_is_not_interrupted(linkwise, table):
    done = linkwise("cluster", "table.csv", "-k", 3, "--method", "ncut", "--json")
    assert done.code == 0
    assert json.loads(done.out)["interrupted"] is False


@pytest.mark.parametrize(("last", "during"), [("auto", "Auto"), ("csc", "compare")])
def test_an_interrupted_comparison_shows_what_was_finished(linkwise, table, press, last, during):
    press(during, 0.4)
    methods = [part for key in ("sl", last) for part in ("-m", key)]
    done = linkwise("compare", "table.csv", "-k", 3, "--folds", 0, *methods)
    assert done.code == 130
    assert "Interrupted: 1 of 2 methods. The table has those that were finished." in done.err
    assert done.out.splitlines()[1].startswith("sl ")
    assert last not in done.out


def test_interrupted_before_the_first_method_there_is_no_table(linkwise, table, press):
    press("compare", 0.0)
    done = linkwise("compare", "table.csv", "-k", 3, "--folds", 0, "-m", "auto")
    assert done.code == 130
    assert done.out == ""


def test_interrupts_are_noted_and_go_on(press):
    before = signal.getsignal(signal.SIGINT)
    with noted_interrupts() as noted, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    assert noted == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before


def test_ignored_interrupts_stay_ignored(press):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with noted_interrupts() as noted:
        os.kill(os.getpid(), signal.SIGINT)
    assert noted == []


def test_warm_up(linkwise):
    done = linkwise("warm-up", "ncut", "gfhf", "--json")
    assert done.code == 0
    assert json.loads(done.out)["methods"] == ["ncut", "gfhf"]
    assert linkwise("warm-up", "no-such-method").code == 2
