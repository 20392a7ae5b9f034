"""A short fuzz of all methods, the same cases each time; `make fuzz` draws new ones for longer."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import fuzz
from linkwise import Constraints

N_CASES, SHARE = 160, 20


@pytest.mark.parametrize("first", range(0, N_CASES, SHARE))
def test_answers_or_clear_refusals_and_nothing_left_behind(first):
    assert fuzz.run(range(first, first + SHARE)) == []


def test_most_cases_are_answered():
    answered = 0
    for seed in range(60):
        try:
            fuzz.drawn(seed).fit()
            answered += 1
        except fuzz.REFUSALS:
            pass
        except Warning:
            answered += 1
    assert answered > 20


DAMAGE = {
    "random state": "the global random state changed",
    "input": "X was changed",
    "error": "KeyError",
    "warning": "leaked RuntimeWarning",
    "promise": "1 certain constraints are violated",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_the_fuzz_sees_what_goes_wrong(what, monkeypatch):
    X = np.random.default_rng(0).normal(size=(8, 2))
    known = Constraints(8, [(0, 1)], [(0, 2)])
    case = fuzz.Case(0, "cut", {"n_clusters": 2, "random_state": 0}, X, known)
    assert fuzz.failure(case) is None
    good = case.fit().labels_

    def damage(case):
        if what == "random state":
            np.random.uniform()  # noqa: NPY002
        elif what == "input":
            case.X[0] += 1
        elif what == "error":
            raise KeyError("x")
        elif what == "warning":
            warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        labels = np.repeat([0, 1], 4) if what == "promise" else good
        return SimpleNamespace(labels_=labels.astype(np.intp))

    monkeypatch.setattr(fuzz.Case, "fit", damage)
    state = np.random.get_state()  # noqa: NPY002
    assert DAMAGE[what] in fuzz.failure(case)
    np.random.set_state(state)  # noqa: NPY002
