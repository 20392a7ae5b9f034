"""A small table and its pairs, and two ways to run the program."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest


class Run(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def error(self):
        """What went wrong: one line, or one for each problem and a command that would work."""
        assert f"\n{self.err}".count("\nError: ") == 1, self.err
        assert "Traceback" not in self.err
        return "Error: " + f"\n{self.err}".rpartition("\nError: ")[2].strip()

    @property
    def suggestion(self):
        """The options and files of the command that is said to work."""
        return shlex.split(self.error.partition(": linkwise ")[2])


@pytest.fixture
def linkwise(tmp_path, monkeypatch, capsys):
    """Run the command in this process, in an empty folder."""
    main = pytest.importorskip("linkwise.cli").main
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        return Run(code, *capsys.readouterr())

    return run


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
PROGRAM = [sys.executable, "-m", "linkwise"]


@pytest.fixture
def program(tmp_path):
    """Run the installed program as a process of its own, in an empty folder."""

    def run(*arguments, **settings):
        done = subprocess.run(
            [*PROGRAM, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=ENVIRONMENT,
            check=False,
            timeout=120,
            **settings,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def start(tmp_path):
    """Start the program and go on at once; what still runs in the end is killed."""
    running = []

    def run(*arguments, **settings):
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
        process = subprocess.Popen(
            [*PROGRAM, *map(str, arguments)], text=True, cwd=tmp_path, env=ENVIRONMENT, **settings
        )
        running.append(process)
        return process

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()


class Example(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    names: list[str]

    def csv(self, delimiter=","):
        header = delimiter.join(["name", "length", "width", "class"])
        rows = [
            delimiter.join([name, repr(float(a)), repr(float(b)), f"c{cls}"])
            for name, (a, b), cls in zip(self.names, self.X, self.y, strict=True)
        ]
        return "\n".join([header, *rows]) + "\n"


@pytest.fixture
def example():
    """Three clear clusters of 20 points; the first column is in another unit than the second."""
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], 20)
    X = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[y] + rng.normal(size=(60, 2)) * 0.5
    return Example(X * [1000.0, 1.0], y, [f"p{k:02d}" for k in range(60)])


@pytest.fixture
def table(example, tmp_path):
    """`table.csv` and `pairs.csv`, in the folder where the program runs."""
    (tmp_path / "table.csv").write_text(example.csv())
    (tmp_path / "pairs.csv").write_text(
        "i,j,link,belief\np00,p05,must,1\np00,p25,cannot,1\np25,p45,cannot,1\np02,p50,cannot,0.5\n"
    )
    return example
