"""The installed program as a process: streams, signals, pipes, files, and the time of --help."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from linkwise import __version__

pytest.importorskip("click")
pytest.importorskip("pandas")


def test_streams_exit_codes_and_files(program, table, tmp_path):
    options = ("-k", "3", "-c", "pairs.csv", "--id", "name", "--truth", "class")
    run = program("cluster", "table.csv", *options, "-o", "out.csv", "--json")
    assert run.code == 0
    told = json.loads(run.out)
    assert told["outputs"] == {"clusters": "out.csv"}
    assert told["ari"] == 1.0
    assert "wrote out.csv" in run.err
    assert "\r" not in run.err  # no progress bar in a pipe
    text = (tmp_path / "out.csv").read_bytes()
    assert text.startswith(b"name,cluster\np00,0\np01,0\n")
    assert text.count(b"\n") == 61
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "pairs.csv", "out.csv"}

    run = program("cluster", "none.csv", "-k", "3")
    assert run == (2, "", "Error: There is no file none.csv.\n")
    (tmp_path / "pairs.csv").write_text("i,j,link\np00,p01,must\np01,p00,cannot\n")
    run = program("cluster", "table.csv", *options, "--quiet", "-m", "csc")
    assert run.code == 1
    assert run.err == (
        "Error: pairs.csv: p00 and p01 are cannot-linked (line 3), but these belong together: "
        "p00 - p01 (line 2). Remove one of these lines, or give it a belief below 1.\n"
        "This would work: linkwise cluster table.csv -k 3 -c pairs.csv --id name --truth class "
        "--quiet -m auto\n"
    )


@pytest.mark.parametrize("arguments", [["--help"], ["cluster", "--help"], ["--version"]])
def test_help_and_version_import_nothing_heavy(arguments):
    script = """
import sys
import linkwise
before = set(sys.modules)
from linkwise.cli import main
code = main(sys.argv[1:])
heavy = {"numpy", "scipy", "sklearn", "numba", "pandas", "tqdm"} & (set(sys.modules) - before)
print(code, sorted(heavy), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout
    assert done.stderr == "0 []\n"


def test_without_a_command_the_help_is_shown(linkwise):
    run = linkwise()
    assert run == linkwise("--help")
    assert linkwise("--version").out.split() == ["linkwise", __version__]
    assert run.code == 0
    for command in ("cluster", "check", "methods", "compare", "ask", "demo", "datasets"):
        assert f"\n  {command} " in run.out
    assert "Exit codes:" in run.out


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_no_file(sent, code, start, tmp_path):
    rng = np.random.RandomState(0)
    np.save(tmp_path / "X.npy", rng.normal(size=(60_000, 20)))
    process = start("cluster", "X.npy", "-k", "40", "-m", "sl", "-o", "out.csv")
    for line in process.stderr:
        if line.startswith("known:"):  # everything is read: the long part begins
            break
    time.sleep(0.5)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError])
def test_a_file_appears_only_when_it_is_complete(error, tmp_path):
    from linkwise._files import atomic

    path = tmp_path / "out.csv"
    path.write_text("old")
    seen = []

    def write_half():
        with atomic(path) as unfinished:
            unfinished.write_text("half")
            seen.append(unfinished)
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["out.csv"]
    assert seen[0].parent == tmp_path
    with atomic(path) as unfinished:
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [found.name for found in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_leaves_is_no_error_of_ours(start, tmp_path):
    np.save(tmp_path / "X.npy", np.random.RandomState(0).normal(size=(20_000, 2)))
    process = start("cluster", "X.npy", "-k", "2", "-m", "sl", "--quiet")
    assert process.stdout.readline() == "row,cluster\n"
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) == 141
    assert err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, linkwise):
    run = linkwise("completion", shell)
    assert run.code == 0
    assert "_LINKWISE_COMPLETE" in run.out


def test_the_shell_gets_commands_and_methods(linkwise, monkeypatch):
    monkeypatch.setenv("_LINKWISE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "linkwise cl")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert linkwise().out.split() == ["plain,cluster"]
    monkeypatch.setenv("COMP_WORDS", "linkwise cluster x.csv --method sr")
    monkeypatch.setenv("COMP_CWORD", "4")
    assert linkwise().out.split() == ["plain,srcp"]


# Older matplotlib calls names that newer pyparsing has deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_demo(linkwise, tmp_path):
    run = linkwise("demo", tmp_path / "pictures")
    assert run.code == 0
    assert "SignedCSC" in run.out
    assert (tmp_path / "pictures" / "before-after.png").exists()


def test_data_sets_are_listed_and_written(linkwise, tmp_path):
    run = linkwise("datasets")
    assert run.code == 0
    assert run.out.splitlines()[0].split() == [
        "name", "samples", "features", "clusters", "origin", "here",
    ]  # fmt: skip
    assert any(line.split()[:4] == ["iris", "150", "4", "3"] for line in run.out.splitlines())
    run = linkwise("datasets", "iris", "-o", "iris.csv")
    assert run.code == 0
    lines = (tmp_path / "iris.csv").read_text().splitlines()
    assert lines[:2] == ["id,x0,x1,x2,x3,class", "0,5.1,3.5,1.4,0.2,0"]
    run = linkwise("cluster", "iris.csv", "-k", 3, "--truth", "class", "--json")
    assert json.loads(run.out)["ari"] > 0.5
    run = linkwise("datasets", "irys")
    assert run.code == 2
    assert "Did you mean 'iris'" in run.error
