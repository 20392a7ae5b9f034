"""The first minute: what is compiled, what is shown while one waits."""

from __future__ import annotations

import os
import subprocess
import sys

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
