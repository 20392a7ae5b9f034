"""`linkwise ask`: in a pipe, and on a real terminal, with undo and resuming after a kill."""

from __future__ import annotations

import csv
import json
import os
import select
import signal
import time

import numpy as np
import pytest

from linkwise.active import Session
from linkwise.constraints.formats import FORMATS
from linkwise.metrics import adjusted_rand

pytest.importorskip("click")
pytest.importorskip("pandas")

from linkwise.cli.items import Comparison, compare_rows, fields
from linkwise.cli.reading import Data, read_data
from linkwise.cli.requests import DataRequest

OPTIONS = ("-k", 3, "--id", "name", "--drop", "class")


def answers_of(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return records[1:]


def type_keys(monkeypatch, keys):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(keys))


def test_keys_from_a_pipe_become_constraints(linkwise, table, tmp_path, monkeypatch):
    type_keys(monkeypatch, "s d\n\nuq")
    run = linkwise("ask", "table.csv", *OPTIONS, "--session", "s.jsonl", "-o", "answers.csv")
    assert run.code == 0
    kept = answers_of(tmp_path / "s.jsonl")
    assert [record["answer"] for record in kept] == ["same", "different", "unknown"]
    with (tmp_path / "answers.csv").open() as file:
        written = {(row["i"], row["j"], row["link"]) for row in csv.DictReader(file)}
    named = [(table.names[record["i"]], table.names[record["j"]]) for record in kept]
    assert written == {(*named[0], "must"), (*named[1], "cannot")}
    assert run.out.count("Question") == 4
    assert "Question 1 (now " in run.out
    assert "may still move" not in run.out.partition("Question 2")[0]
    assert "of the rows may still move" in run.out.partition("Question 2")[2]
    for name in named[0]:  # both rows, side by side
        assert name in run.out.partition("Question 2")[0]


@pytest.mark.usefixtures("table")
def test_answers_are_written_in_any_format_of_pairs(linkwise, tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, ".links", FORMATS[".csv"])
    type_keys(monkeypatch, "sdq")
    assert linkwise("ask", "table.csv", *OPTIONS, "-o", "pairs.links").code == 0
    assert len(FORMATS[".links"].read(tmp_path / "pairs.links").rows) == 2


def test_the_end_of_the_keys_is_the_end(linkwise, table, monkeypatch):
    type_keys(monkeypatch, "d")
    run = linkwise("ask", "table.csv", *OPTIONS, "--json", "--quiet")
    assert run.code == 0
    told = json.loads(run.out)
    assert run.err.endswith("[s/d/u/z/q] \nWarning: 1 answer given, but not kept: "
                            "use -o pairs.csv or --session FILE to keep them.\n")  # fmt: skip
    assert (told["n_answers"], told["different"], len(told["labels"])) == (1, 1, 60)


def test_undo_asks_the_same_question_again(linkwise, table, tmp_path, monkeypatch):
    type_keys(monkeypatch, "szzdq")
    run = linkwise("ask", "table.csv", *OPTIONS, "--session", "s.jsonl")
    questions = [part.split("\n\n")[0] for part in run.out.split("Question ")[1:]]
    assert "took back: same" in run.out
    assert "nothing to undo" in run.out
    assert questions[0].splitlines()[1] == questions[2].splitlines()[1]  # the same two rows
    kept = answers_of(tmp_path / "s.jsonl")
    assert [record.get("answer", "undo") for record in kept] == ["same", "undo", "different"]


def test_it_goes_on_where_it_was_left(linkwise, table, tmp_path, monkeypatch):
    type_keys(monkeypatch, "dsdq")
    linkwise("ask", "table.csv", *OPTIONS, "--session", "whole.jsonl")
    for keys in ("dq", "sq", "dq"):
        type_keys(monkeypatch, keys)
        run = linkwise("ask", "table.csv", *OPTIONS, "--session", "parts.jsonl")
    assert "goes on after 2 answers" in run.err
    assert answers_of(tmp_path / "whole.jsonl") == answers_of(tmp_path / "parts.jsonl")
    type_keys(monkeypatch, "q")
    run = linkwise("ask", "table.csv", "-k", 2, "--id", "name", "--drop", "class",
                   "--session", "parts.jsonl")  # fmt: skip
    assert run.code == 2
    assert "was begun with -k 3, not -k 2. Use -k 3, or choose another file." in run.error
    run = linkwise("ask", "table.csv", *OPTIONS, "--session", "parts.jsonl", "--seed", 5)
    assert run.code == 2
    assert "was begun with --seed 0, not --seed 5. Leave --seed out" in run.error
    run = linkwise("ask", "table.csv", "-k", 3, "--id", "name", "--session", "parts.jsonl")
    assert run.code == 2
    assert "other data: the columns or values differ" in run.error
    assert "--drop" in run.error
    lines = (tmp_path / "table.csv").read_text().splitlines(keepends=True)
    (tmp_path / "table.csv").write_text("".join(lines[:-1]))
    run = linkwise("ask", "table.csv", *OPTIONS, "--session", "parts.jsonl")
    assert run.code == 2
    assert "other data: 60 rows, and these are 59" in run.error


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        *((word, "same") for word in ("same", "s", "yes", "y", " YES ")),
        *((word, "different") for word in ("different", "d", "no", "n")),
        *((word, "unknown") for word in ("unknown", "u", "?", "don't know", "Don\u2019t  know")),
        *((word, None) for word in ("quit", "q", "zq", "undo", "")),
    ],
)
def test_a_line_of_a_pipe_is_an_answer(line, answer, linkwise, table, tmp_path, monkeypatch):
    type_keys(monkeypatch, f"{line}\n")
    run = linkwise("ask", "table.csv", *OPTIONS, "--session", "s.jsonl")
    assert run.code == 0
    said = [record["answer"] for record in answers_of(tmp_path / "s.jsonl")]
    assert said == ([] if answer is None else [answer])


@pytest.mark.parametrize("line", ["unsure", "dunno", "sdx", "yyn", "don't", "s,d", "quit now"])
def test_a_line_that_is_no_answer_is_refused_as_a_whole(
    line, linkwise, table, tmp_path, monkeypatch
):
    type_keys(monkeypatch, f"don't know\n{line}\nyes\n")
    run = linkwise("ask", "table.csv", *OPTIONS, "--session", "s.jsonl", "-o", "o.csv")
    assert run.code == 2
    assert f"Line 2 of the answers is {line!r}, which is no answer." in run.error
    assert "same (s, yes, y), different (d, no, n), unknown (u, ?, don't know)" in run.error
    assert run.out.endswith("[s/d/u/z/q] \n")
    assert [record["answer"] for record in answers_of(tmp_path / "s.jsonl")] == ["unknown"]
    assert "1 answer kept in s.jsonl; linkwise ask ... -o pairs.csv" in run.err
    assert not (tmp_path / "o.csv").exists()


def test_it_says_where_the_answers_are(linkwise, table, monkeypatch):
    lost = "2 answers given, but not kept: use -o pairs.csv or --session FILE"
    kept = "2 answers kept in s.jsonl"
    how = "; linkwise ask ... -o pairs.csv writes them as pairs"
    for arguments, told, untold in (
        ((), lost, "kept in"),
        (("--session", "s.jsonl"), kept + how, "not kept"),
        (("-o", "o.csv"), "wrote o.csv", "kept"),
    ):
        type_keys(monkeypatch, "sdq")
        run = linkwise("ask", "table.csv", *OPTIONS, *arguments)
        assert run.code == 0
        assert run.out.endswith("[s/d/u/z/q] \n")
        assert told in run.err
        assert untold not in run.err
    type_keys(monkeypatch, "q")
    run = linkwise("ask", "table.csv", *OPTIONS, "--session", "s.jsonl", "-o", "o.csv")
    assert kept in run.err
    assert how not in run.err
    type_keys(monkeypatch, "q")
    assert "kept" not in linkwise("ask", "table.csv", *OPTIONS).err


def test_all_questions_can_be_answered(linkwise, table, monkeypatch):
    asked = []
    ask_next = Session.next

    def remembered(self):
        asked.append(ask_next(self))
        return asked[-1]

    class Oracle:
        def isatty(self):
            return False

        def readline(self):
            i, j = asked[-1]
            return "same\n" if table.y[i] == table.y[j] else "different\n"

    monkeypatch.setattr(Session, "next", remembered)
    monkeypatch.setattr("sys.stdin", Oracle())
    run = linkwise("ask", "table.csv", *OPTIONS, "--strategy", "explore", "--json")
    assert run.code == 0
    assert "Nothing is left to ask" in run.err
    assert asked[-1] is None
    told = json.loads(run.out.splitlines()[-1])
    assert adjusted_rand(told["labels"], table.y) == 1.0


def test_columns_are_compared_in_their_own_units():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0, 6.0], "kind": ["a", "b", "a", "a"]})
    data = Data(4, X=np.zeros((4, 2)), frame=frame)
    spread = np.std([1, 2, 3, 6])
    assert compare_rows(data, (0, 3)) == [
        Comparison("size", "1", "6", 5 / spread),
        Comparison("kind", "a", "a", 0.0),
    ]
    assert [c.mark for c in compare_rows(data, (0, 3))] == ["***", ""]
    assert [c.mark for c in compare_rows(data, (1, 2))] == ["*", "*" * 2]


def test_money_and_dates_differ_by_their_amounts(linkwise, tmp_path, monkeypatch):
    rows = [f"{k * 100:.2f} €;2024-01-{1 + k:02};{10**9 + k};v{k % 2}" for k in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["price;day;phone;kind", *rows]), encoding="utf-8")
    request = DataRequest(data=tmp_path / "t.csv")
    data = read_data(request, needs_features=lambda: True)
    near, far = (compare_rows(data, pair) for pair in ((0, 1), (0, 19)))
    assert [(one.name, one.first, one.mark) for one in near[:2]] == [
        *(("price", "0.00 €", "*"), ("day", "2024-01-01", "*"))
    ]
    assert [one.mark for one in far[:2]] == ["***", "***"]
    assert (far[-1].name, far[-1].second, far[-1].mark) == ("phone", "1000000019", "")


CARS = """name,date,kind,size,weight,class
a,2020-01-05,old car,1,2,x
b,2020-02-05,new car,1.1,2.1,x
c,2021-03-05,lorry,9,8,y
d,2021-04-05,big lorry,9.1,8.1,y
"""


def test_columns_that_clustering_leaves_out_are_shown(linkwise, tmp_path, monkeypatch):
    (tmp_path / "cars.csv").write_text(CARS)
    type_keys(monkeypatch, "q")
    run = linkwise(
        *("ask", "cars.csv", "-k", 2, "--id", "name", "--drop", "date", "--truth", "class")
    )
    assert run.code == 0
    shown = run.out.partition("[s/d")[0]
    assert "date" in shown  # dropped
    assert "2020-0" in shown
    assert "lorry" in shown  # left out, because the text differs in every row
    assert "class" not in shown  # this would be the answer
    request = DataRequest(
        data=tmp_path / "cars.csv", id_column="name", drop=("date",), truth="class"
    )
    data = read_data(request, needs_features=lambda: False)
    assert data.feature_names == ["size", "weight"]
    assert fields(data, 2) == {
        "name": "c",
        "size": "9",
        "weight": "8",
        "date": "2021-03-05",
        "kind": "lorry",
    }
    assert [c.name for c in compare_rows(data, (0, 2)) if not c.is_feature] == ["date", "kind"]


def test_rows_of_an_array_have_fields_too():
    data = Data(2, X=np.array([[1.0, 2.5], [3.0, 4.0]]), feature_names=["a", "b"], names=["p", "q"])
    assert fields(data, 0) == {"row": "p", "a": "1", "b": "2.5"}


def test_the_answers_tell_the_number_of_clusters(linkwise, table, tmp_path, monkeypatch):
    type_keys(monkeypatch, "sdq")
    options = ("--id", "name", "--drop", "class", "--session", "s.jsonl")
    run = linkwise("ask", "table.csv", *options, "--json")
    assert run.code == 0
    assert json.loads(run.out.splitlines()[-1])["n_clusters"] >= 2
    assert "clusters" in run.err.partition("Question 1")[2].splitlines()[0]
    type_keys(monkeypatch, "q")
    assert "goes on after 2 answers" in linkwise("ask", "table.csv", *options).err
    run = linkwise("ask", "table.csv", *options, "-k", 3)
    assert "was begun with -k auto, not -k 3. Leave -k out" in run.error
    run = linkwise("ask", "table.csv", *options[:4], "--strategy", "xu")
    assert run.code == 2
    assert "Say it with -k" in run.error


def test_of_many_columns_the_most_different_are_shown():
    X = np.random.RandomState(0).normal(size=(50, 100))
    data = Data(50, X=X, feature_names=[f"x{k}" for k in range(100)])
    shown = compare_rows(data, (3, 4))
    order = np.argsort(-np.abs(X[3] - X[4]) / X.std(axis=0))[:20]
    assert [c.name for c in shown] == [f"x{k}" for k in sorted(order)]


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("--strategy", "guess"), 2, "There is no strategy 'guess'"),
        (("-m", "guess"), 2, "no such method"),
        (("--session", "table.csv"), 2, "would overwrite the input"),
        (("--session", "other.txt"), 2, "Choose another path"),
        (("-o", "answers.txt"), 2, ".csv"),
        (("-c", "ring.csv", "-k", 2), 1, "2 clusters cannot satisfy"),
    ],
)
def test_bad_input(arguments, code, part, linkwise, table, tmp_path, monkeypatch):
    (tmp_path / "other.txt").write_text("hello\nworld\n")
    (tmp_path / "ring.csv").write_text("i,j,link\np00,p01,cannot\np01,p02,cannot\np00,p02,cannot\n")
    type_keys(monkeypatch, "q")
    run = linkwise("ask", "table.csv", *OPTIONS, *arguments)
    assert run.code == code
    assert part in run.error


# A real terminal ---------------------------------------------------------------------------


class Terminal:
    """A program that runs in a terminal of its own."""

    def __init__(self, start, *arguments):
        import fcntl
        import pty
        import termios

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.master, slave = pty.openpty()
        self.process = start(
            *arguments, stdin=slave, stdout=slave, stderr=slave, preexec_fn=take_terminal
        )
        os.close(slave)
        self.text = ""

    def wait_for(self, part, seconds=30):
        """Read until a text appears after what was waited for before; return what came."""
        until = time.monotonic() + seconds
        while part not in self.text:
            assert time.monotonic() < until, f"no {part!r} in {self.text!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode()
                except OSError:  # the program has ended
                    break
        came, found, self.text = self.text.partition(part)
        assert found
        return came + found

    def press(self, keys):
        os.write(self.master, keys.encode())

    def close(self):
        os.close(self.master)


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals of POSIX")
def test_a_terminal_with_undo_and_a_kill(start, table, tmp_path):
    arguments = ("ask", "table.csv", *OPTIONS, "--session", "s.jsonl", "-o", "answers.csv")
    first = Terminal(start, *arguments)
    first.wait_for("Question 1")
    first.wait_for("[s/d/u/z/q]")
    first.press("d")  # no Enter: one key is one answer
    first.wait_for("Question 2")
    first.wait_for("[s/d/u/z/q]")
    first.press("s")
    first.wait_for("Question 3")
    first.wait_for("[s/d/u/z/q]")
    first.press("z")
    assert "took back: same" in first.wait_for("Question 2")
    asked = first.wait_for("[s/d/u/z/q]")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    first.close()
    assert [r.get("answer", "undo") for r in answers_of(tmp_path / "s.jsonl")] == [
        "different", "same", "undo",
    ]  # fmt: skip
    assert not (tmp_path / "answers.csv").exists()

    second = Terminal(start, *arguments)
    second.wait_for("goes on after 1 answer")
    second.wait_for("Question 2")
    again = second.wait_for("[s/d/u/z/q]")
    assert again.splitlines()[1] == asked.splitlines()[1]  # the same two rows
    second.press("d")
    second.wait_for("Question 3")
    second.press("\x1b[D")  # an arrow is no answer, though it ends in a D
    second.wait_for("u don't know")
    second.press("q")
    second.wait_for("wrote answers.csv")
    assert second.process.wait(timeout=60) == 0
    second.close()
    lines = (tmp_path / "answers.csv").read_text().splitlines()
    assert len(lines) == 3
    assert all(",cannot," in line for line in lines[1:])


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals of POSIX")
def test_ctrl_c_on_a_terminal(start, table, tmp_path):
    terminal = Terminal(start, "ask", "table.csv", *OPTIONS, "-o", "answers.csv")
    terminal.wait_for("[s/d/u/z/q]")
    terminal.press("\x03")
    terminal.wait_for("Interrupted")
    assert terminal.process.wait(timeout=60) == 130
    terminal.close()
    assert not (tmp_path / "answers.csv").exists()


def test_stdin_of_a_process(program, table, tmp_path):
    run = program("ask", "table.csv", *OPTIONS, "-o", "answers.csv", input="dq")
    assert run.code == 0
    assert (tmp_path / "answers.csv").read_text().count("cannot") == 1


def test_phone_numbers_are_shown_as_they_are_written(linkwise, tmp_path, monkeypatch):
    rows = "".join(f"0{70000 + k},0{k % 2},{k},{k * k}\n" for k in range(20))
    (tmp_path / "people.csv").write_text(f"Phone,code,x,y\n{rows}")
    type_keys(monkeypatch, "q")
    run = linkwise("ask", "people.csv", "-k", 2, "--drop", "code")
    assert run.code == 0
    cells = {line.split()[0]: line.split()[1:] for line in run.out.splitlines() if line.split()}
    assert all(cell.startswith("07") for cell in cells["Phone"])
    assert all(cell in {"00", "01"} for cell in cells["code"])


@pytest.mark.parametrize(
    ("still", "keys", "told"),
    [(0.019, "uuuuuq", True), (0.019, "uuuuq", False), (0.021, "uuuuuq", False)],
)
@pytest.mark.usefixtures("table")
def test_it_says_when_to_stop_as_the_page_does(still, keys, told, linkwise, monkeypatch):
    monkeypatch.setattr(Session, "still_to_change", still)
    type_keys(monkeypatch, keys)
    run = linkwise("ask", "table.csv", *OPTIONS)
    assert "2% of the rows may still move" in run.out
    assert ("2% of the rows may still move: you can stop)" in run.out) == told
    assert "stability" not in run.out


def test_what_is_missing_is_no_difference(linkwise, tmp_path, monkeypatch):
    assert [Comparison("x", "", "1", 2.0).mark, Comparison("x", "1", "", 2.0).mark] == ["", ""]
    rows = "".join(f"{k},{k * k},\n" for k in range(20))
    (tmp_path / "numbers.csv").write_text(f"x,y,remark\n{rows}")
    type_keys(monkeypatch, "q")
    run = linkwise("ask", "numbers.csv", "-k", 2, "--drop", "remark")
    shown = [line.split() for line in run.out.splitlines()]
    assert ["remark", "missing", "missing"] in shown


@pytest.mark.usefixtures("table")
def test_yes_and_no_are_keys_and_others_show_the_prompt_again(linkwise, monkeypatch):
    keys = iter("yxnq")
    monkeypatch.setattr("linkwise.cli.ask._Lines.key", lambda _: next(keys))
    run = linkwise("ask", "table.csv", *OPTIONS, "--json", "--quiet")
    told = json.loads(run.out)
    assert (told["same"], told["different"]) == (1, 1)
    assert "(y and n are s and d)\n[s/d/u/z/q] " in run.err
