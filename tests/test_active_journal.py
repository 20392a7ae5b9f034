"""The file of a session: interrupts at every bytecode, damage of every byte, two at once."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pytest

import linkwise
from linkwise import Prepared
from linkwise._files import FileInUseError, create
from linkwise.active import Session
from linkwise.active.journal import WITHOUT_CHECKS, Journal

FILES = ("active/session.py", "active/journal.py", "active/answers.py", "_files.py")
PLACES = {str(Path(linkwise.__file__).parent / name) for name in FILES}
data = Prepared(np.arange(8.0).reshape(-1, 1))


def a_session(path, **settings):
    return Session(data, 3, strategy="random", random_state=0, path=path, **settings)


def kept(path):
    answers = []
    for record in Journal(path).records:
        if record.pop("undo", False):
            answers.pop()
        else:
            answers.append(tuple(record.values()))
    return answers


# Interrupts --------------------------------------------------------------------------------


class Interrupt:
    """Raise KeyboardInterrupt before the bytecode of this number, in the code of sessions."""

    def __init__(self, at):
        self.left = at

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename not in PLACES:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def is_interrupted(call, at):
    traced = sys.gettrace()
    sys.settrace(Interrupt(at))
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(traced)
    return False


CALLS = {
    "answer": lambda session: session.answer(4, 5, "different"),
    "undo": lambda session: session.undo(),
}


@pytest.mark.parametrize("name", CALLS)
def test_file_and_memory_agree_after_an_interrupt_anywhere(name, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # takes milliseconds
    call, n_seen = CALLS[name], set()
    with warnings.catch_warnings():
        # Python closes the file of an interrupted open().
        warnings.simplefilter("ignore", ResourceWarning)
        for at in range(5_000):
            path = tmp_path / f"{at}"
            session = a_session(path, noisy=True)  # proofs would take most of the time
            session.answer(0, 1, "same")
            session.answer(2, 3, "same")
            was_interrupted = is_interrupted(lambda s=session: call(s), at)
            assert kept(path) == session.answers, at
            n_seen.add(len(session.answers))
            session.answer(6, 7, "different")
            assert kept(path) == session.answers, at
            # What was computed before the answers is not used any more.
            assert session.state.is_open(2, 3) == ((2, 3, "same") not in session.answers), at
            if not was_interrupted:
                break
    assert at > 200
    assert not was_interrupted
    assert n_seen == ({2, 3} if name == "answer" else {1, 2})


def test_a_second_interrupt_does_not_count_an_answer_twice(tmp_path, monkeypatch):
    session = a_session(tmp_path / "kept")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_cut_off", interrupted)
        patch.setattr(Journal, "_close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.answer(0, 1, "same")
    assert session.answers == []
    session.answer(0, 1, "different")
    assert kept(tmp_path / "kept") == session.answers == [(0, 1, "different")]


# Damage ------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "kept"
    session = a_session(path)
    for pair in ((0, 1), (2, 3), (3, 6)):
        session.answer(*pair, "same")
    session.undo()
    return path


@pytest.mark.parametrize("change", ["next", "bit", "digit", "newline", "space"])
def test_a_changed_byte_is_named_and_never_another_answer(written, change):
    content = written.read_bytes()
    for at, byte in enumerate(content):
        to = {"next": byte + 1, "bit": byte ^ 8, "digit": 49, "newline": 10, "space": 32}[change]
        if to == byte:
            continue
        written.write_bytes(content[:at] + bytes([to]) + content[at + 1 :])
        with pytest.raises(ValueError, match=r"Line \d of .*kept is|is not the header"):
            Journal(written)


@pytest.mark.parametrize("change", ["lost", "repeated", "swapped"])
def test_a_lost_or_repeated_line_is_named(written, change):
    first, *lines = written.read_bytes().splitlines(keepends=True)
    changed = {
        "lost": [*lines[:1], *lines[2:]],
        "repeated": [*lines, lines[-1]],
        "swapped": [lines[1], lines[0], *lines[2:]],
    }
    written.write_bytes(b"".join([first, *changed[change]]))
    with pytest.raises(ValueError, match=r"Line \d of .* is damaged"):
        Journal(written)


def test_a_line_that_nests_deeply_is_named(written):
    written.write_bytes(written.read_bytes() + b"[" * 100_000 + b"\n")
    with pytest.raises(ValueError, match="Line 6"):
        Journal(written)


def test_a_line_cut_off_anywhere_is_dropped(written):
    content = written.read_bytes()
    start = content.rfind(b"\n", 0, -1) + 1
    for end in range(start + 1, len(content)):
        written.write_bytes(content[:end])
        assert len(Journal(written).records) == 3
        assert written.read_bytes() == content[:start]


def test_files_without_checksums_are_read_and_gone_on_with(tmp_path):
    path = tmp_path / "old"
    a_session(path).answer(0, 1, "same")
    lines = path.read_text().splitlines()
    plain = [line[: line.index(', "check"')] + "}" for line in lines]
    plain[0] = plain[0].replace("session 2", "session 1")
    path.write_text("\n".join(plain) + "\n")
    assert WITHOUT_CHECKS in plain[0]
    session = a_session(path)
    session.answer(2, 3, "different")
    assert kept(path) == session.answers == [(0, 1, "same"), (2, 3, "different")]
    assert "check" not in path.read_text()


@pytest.mark.parametrize("wrong", ['"seed": 0', '"noisy": false', '"data": '])
def test_an_old_header_without_a_setting_is_named(tmp_path, wrong):
    path = tmp_path / "old"
    a_session(path)
    text = path.read_text()
    text = text[: text.index(', "check"')].replace("session 2", "session 1") + "}\n"
    path.write_text(text.replace(wrong, f'"x{wrong[1:]}'))
    with pytest.raises(ValueError, match="Line 1"):
        a_session(path)


# Two at once -------------------------------------------------------------------------------


def test_one_of_many_sessions_begins_a_file(tmp_path):
    for attempt in range(5):
        path, barrier, done = tmp_path / f"{attempt}", Barrier(6), []

        def begin(number, path=path, barrier=barrier, done=done):
            barrier.wait()
            try:
                create(path, b"%d\n" % number)
                done.append(number)
            except FileInUseError:
                pass

        threads = [Thread(target=begin, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert path.read_bytes() == b"%d\n" % done[0]
        assert len(done) == 1
    assert len(list(tmp_path.iterdir())) == 5


def test_a_session_begins_no_file_that_another_one_has_begun(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    content = Journal(path)  # found nothing
    a_session(path)
    begun = path.read_bytes()
    with pytest.raises(FileInUseError, match="at the same moment"):
        content.begin({"format": "mine"})
    assert path.read_bytes() == begun
    path.write_bytes(b"")  # an empty file may be begun, on file systems without links as well
    a_session(path)
    monkeypatch.setattr("os.link", lambda *_: Path("/missing/x").read_bytes())
    a_session(tmp_path / "linkless")
    assert kept(tmp_path / "linkless") == []
