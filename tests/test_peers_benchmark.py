"""The comparison with other packages: its tables, its store, its limit; without any of them."""

from __future__ import annotations

import importlib
import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "peers"
if not FOLDER.is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


def imported(name):
    """Import a file of the folder by its plain name, as the files import each other."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


adapters, cells, tables, run = map(imported, ("adapters", "cells", "tables", "run"))
Cell = cells.Cell

FAKE = f"""
import sys
sys.path.insert(0, {str(FOLDER)!r})
import adapters

def method(name):
    def fit(problem):
        if len(problem.X) < 100:  # the warm-up
            return problem.X[:, 0]
        if name == "busy" or (name == "busy-later" and problem.seed == 1):
            while True:
                pass
        if name == "wrong":
            raise RuntimeError("first line\\n  second   line")
        if name == "gone":
            print("last words", file=sys.stderr)
            raise SystemExit(7)
        if name == "greedy":
            return [0] * (2 * 10**9)
        return problem.X[:, 0]
    return fit

adapters.main({{"fake": method}})
"""


@pytest.fixture
def problems(tmp_path):
    """Return two problem files; the first feature of a sample is its class."""
    rng = np.random.RandomState(0)
    paths = []
    for seed in (0, 1):
        y = np.repeat([0, 1], 60)
        known = np.full(120, -1)
        known[[0, 1, 60, 61]] = y[[0, 1, 60, 61]]
        paths.append(tmp_path / f"{seed}.npz")
        np.savez(
            paths[-1],
            X=np.column_stack([y, rng.normal(size=120)]),
            y=y,
            n_clusters=2,
            must_link=[[0, 1]],
            cannot_link=[[0, 60], [1, 61]],
            known=known,
            seed=seed,
        )
    return paths


@pytest.fixture
def answers(tmp_path):
    """Return a function that runs a fake estimator and returns its statuses and answers."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE, encoding="utf-8")
    folder = tmp_path / "answers"
    folder.mkdir()

    def run(method, problems, *more, limit=30):
        paths = map(str, problems)
        command = [sys.executable, str(script), f"fake:{method}", str(folder), *paths, *more]
        return list(cells.run_child(command, folder, problems, limit=limit)), folder

    return run


# ----------------------------------------------------------------------------- one process


def test_an_answer_has_seconds_memory_and_quality(problems, answers):
    found, folder = answers("right", problems)
    assert [status for status, _ in found] == ["done", "done"]
    for number, (_, answer) in enumerate(found):
        assert answer["runs"] == 3
        assert 0 < answer["cpu_s"] < 30
        assert 5 < answer["peak_mb"] < 2000
        assert "numpy" in answer["versions"]
        measured = cells.quality(problems[number], np.load(folder / f"{number}.npy"))
        assert measured == {"ari": 1.0, "free_ari": 1.0, "n_free": 116, "violated": 0.0}


def test_a_fit_over_the_limit_is_ended(problems, answers):
    found, _ = answers("busy", problems[:1], limit=0.2)
    assert found == [("limit", {"message": "over 0.2 CPU s"})]


def test_draws_before_the_limit_stay(problems, answers):
    found, _ = answers("busy-later", problems, limit=0.2)
    assert [status for status, _ in found] == ["done", "limit"]


def test_an_error_is_one_line(problems, answers):
    found, _ = answers("wrong", problems)
    assert [status for status, _ in found] == ["error", "error"]
    assert found[0][1]["message"] == "RuntimeError: first line second line"


def test_an_end_without_an_answer_is_an_error_with_the_last_words(problems, answers):
    found, _ = answers("gone", problems)
    assert found == [("error", {"message": "ended with code 7: last words"})]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep this limit")
def test_too_much_memory_is_an_error(problems, answers):
    found, _ = answers("greedy", problems[:1], "--memory", "1")
    assert found[0][0] == "error"
    assert found[0][1]["message"] == "MemoryError"


def test_short_fits_have_precise_seconds(monkeypatch):
    """While the timer of the limit runs, the clock of the process moves by whole ticks (4 ms)."""

    monkeypatch.setattr(adapters.gc, "collect", int)  # a second, beside the whole suite

    def short(_=None):
        return sum(range(50_000))

    expected = []
    for _ in range(5):
        start = time.thread_time()
        short()
        expected.append(time.thread_time() - start)
    found = [adapters.timed(short, None, 30)[1] for _ in range(5)]
    assert np.median(found) > 0.5 * min(expected)


def test_one_line_without_a_text():
    assert adapters.one_line(KeyError()) == "KeyError"
    assert len(adapters.one_line(ValueError("x" * 1000))) == 200


def test_the_small_part_keeps_pairs_and_classes_together():
    rng = np.random.RandomState(0)
    pairs = np.sort(rng.permutation(1000)[:400].reshape(-1, 2), axis=1)
    known = np.full(1000, -1)
    known[pairs] = pairs % 3
    X = np.arange(1000.0)[:, None]
    small = adapters.small_part(adapters.Problem(X, 3, pairs[:100], pairs[100:], known, 0))
    assert 60 <= len(small.X) <= 120
    assert len(small.must_link) >= 15
    assert len(small.cannot_link) >= 15
    original = small.X[:, 0].astype(int)
    assert {tuple(original[pair]) for pair in small.must_link} <= set(map(tuple, pairs[:100]))
    assert (small.known == known[original]).all()


def test_violations_count_both_kinds(problems):
    labels = np.zeros(120, int)
    labels[1] = 1
    found = cells.quality(problems[0], labels)
    assert found["violated"] == pytest.approx(2 / 3)  # the must-link, and (0, 60)
    with pytest.raises(ValueError, match="for 120 samples"):
        cells.quality(problems[0], labels[:5])


# ------------------------------------------------------------------------------- the store


def cell(n=500, estimator="fake:a", seed=0, part="speed"):
    return Cell(part, estimator, "blobs", n, n // 10, seed)


def test_the_store_goes_on_where_it_was(tmp_path):
    path = tmp_path / "out" / "peers.csv"
    store = cells.Store(path)
    store.add(cell(), {"status": "done", "cpu_s": 0.25, "ari": math.nan})
    store.add(cell(1000), {"status": "error", "message": 'said "no", twice'})
    again = cells.Store(path)
    assert cell() in again
    assert cell(1000) in again
    assert cell(2000) not in again
    assert cell(seed=1) not in again
    assert again.rows == store.rows
    assert again.rows[0]["cpu_s"] == "0.25"
    assert again.rows[1]["message"] == 'said "no", twice'


def test_half_a_row_is_run_again(tmp_path):
    path = tmp_path / "peers.csv"
    store = cells.Store(path)
    store.add(cell(), {"status": "done"})
    store.add(cell(1000), {"status": "done"})
    path.write_text(path.read_text(encoding="utf-8")[:-10], encoding="utf-8")
    again = cells.Store(path)
    assert cell() in again
    assert cell(1000) not in again
    again.add(cell(1000), {"status": "done"})
    assert len(cells.Store(path).rows) == 2


def test_fresh_forgets_the_chosen_rows_only(tmp_path):
    store = cells.Store(tmp_path / "peers.csv")
    store.add(cell(estimator="linkwise:cut"), {"status": "done"})
    store.add(cell(estimator="fake:a"), {"status": "done"})
    assert store.drop(lambda row: row["estimator"].startswith("linkwise:")) == 1
    again = cells.Store(store.path)
    assert cell(estimator="linkwise:cut") not in again
    assert cell(estimator="fake:a") in again


def test_a_failed_installation_is_stored_until_it_works(tmp_path, monkeypatch):
    peers = {"fake": {"version": "1", "methods": {"a": "pairs"}}, "linkwise": {"methods": {}}}
    store = cells.Store(tmp_path / "peers.csv")
    names = ["fake:a", "linkwise:cut"]
    monkeypatch.setattr(cells, "make_environment", lambda *_: "ERROR: no such package")
    found = run.environments(peers, names, tmp_path, store)
    assert found == {"linkwise": Path(sys.executable)}
    assert [one["message"] for one in store.rows] == ["ERROR: no such package"]
    monkeypatch.setattr(cells, "make_environment", lambda *_: "")
    assert set(run.environments(peers, names, tmp_path, store)) == {"fake", "linkwise"}
    assert store.rows == []


def test_estimators_are_chosen_by_package_or_name():
    assert run.chosen(KINDS, []) == list(KINDS)
    assert run.chosen(KINDS, ["linkwise"]) == ["linkwise:cut", "linkwise:gfhf"]
    assert run.chosen(KINDS, ["fake:b"]) == ["fake:b"]
    with pytest.raises(SystemExit, match="unknown: x"):
        run.chosen(KINDS, ["x"])


def test_larger_problems_are_pointless_after_a_limit(tmp_path):
    store = cells.Store(tmp_path / "peers.csv")
    store.add(cell(1000), {"status": "limit", "message": "over 120 CPU s"})
    store.add(cell(500, "fake:b"), {"status": "error", "message": "ValueError: odd"})
    store.add(cell(500, "fake:c"), {"status": "error", "message": "MemoryError: 9 GB"})
    assert cells.is_pointless(cell(2000), store.rows)
    assert not cells.is_pointless(cell(500), store.rows)
    assert not cells.is_pointless(cell(2000, "fake:b"), store.rows)
    assert cells.is_pointless(cell(1000, "fake:c"), store.rows)


def test_the_plan_has_every_cell_once():
    planned = list(cells.plan(["fake:a", "linkwise:cut"], ("quality", "speed")))
    assert len(planned) == len(set(planned)) == 2 * (4 * 3 * 5 + 8)
    ours = [one.n for one in planned if one.part == "speed" and one.estimator == "linkwise:cut"]
    assert ours == sorted(ours)


def test_every_estimator_has_an_adapter_and_a_rival():
    peers = cells.read_peers()
    assert set(peers) == set(adapters.PACKAGES)
    kinds = cells.kinds(peers)
    assert set(kinds.values()) == set(tables.RIVALS)
    assert "linkwise:auto" not in cells.kinds(peers, without=("linkwise:auto",))
    for kind, rivals in tables.RIVALS.items():
        assert {f"linkwise:{rival}" for rival in rivals} <= set(kinds), kind


# ------------------------------------------------------------------------------ the tables


def row(estimator, n, cpu_s=math.nan, free=math.nan, *, status="done", message="", **more):
    found = dict.fromkeys(cells.COLUMNS, "") | {
        "part": "speed", "estimator": estimator, "data": "blobs", "n": n, "pairs": n // 10,
        "seed": 0, "status": status, "message": message,
    }  # fmt: skip
    if status == "done":
        found |= {"cpu_s": cpu_s, "free_ari": free, "ari": free, "violated": 0, "peak_mb": 100}
    return {name: cells.shown(value) for name, value in (found | more).items()}


KINDS = {"fake:a": "pairs", "fake:b": "labels", "linkwise:cut": "pairs", "linkwise:gfhf": "labels"}


def test_a_peer_is_met_at_the_largest_size_that_it_finishes():
    rows = [
        row("fake:a", 500, 1.0, 0.9),
        row("fake:a", 1000, 8.0, 0.7),
        row("fake:a", 2000, status="limit", message="over 120 CPU s"),
        row("fake:b", 500, status="error", message="ValueError: odd"),
        row("linkwise:cut", 500, 0.1, 0.9),
        row("linkwise:cut", 1000, 0.5, 0.75),
        row("linkwise:cut", 2000, 1.0, 0.75),
    ]
    first, second = tables.against(rows, KINDS)
    assert (first["n"], first["cpu_s"], first["end"]) == (1000, 8.0, "over 120 CPU s")
    ratio, difference = first["rivals"]["cut"]
    assert ratio == pytest.approx(16)
    assert difference == pytest.approx(0.05)
    assert first["rivals"]["signed"] is None
    assert (second["n"], second["end"], second["rivals"]) == (None, "ValueError: odd", {})
    text = tables.against_table(rows, KINDS)
    assert "| fake a | 1,000 | 8 | 0.700 | 16 x, +0.050 | over 120 CPU s |" in text
    assert "ValueError: odd" in text


def test_a_slower_method_of_ours_is_shown_as_slower():
    rows = [row("fake:a", 500, 1.0, 0.9), row("linkwise:cut", 500, 4.0, 0.8)]
    assert "0.25 x, -0.100 | not run yet |" in tables.against_table(rows, KINDS)
    at_the_end = [row("fake:a", cells.SIZES[-1], 1.0, 0.9)]
    assert tables.against(at_the_end, KINDS)[0]["end"] == "all sizes"


def test_quality_is_compared_where_both_have_an_answer():
    def draws(estimator, pairs, frees, **more):
        return [
            row(estimator, 150, 0.1, free, part="quality", data="iris", pairs=pairs, seed=s, **more)
            for s, free in enumerate(frees)
        ]

    rows = [
        *draws("fake:a", 15, [0.5, 0.7]),
        *draws("linkwise:cut", 15, [0.8, 0.8]),
        *draws("fake:a", 75, [0.9]),
        *draws("linkwise:cut", 75, [0.8]),
        *draws("fake:a", 300, [math.nan]),
        *draws("linkwise:cut", 300, [math.nan]),
    ]
    found = tables.quality_against(rows, KINDS)["fake:a", "cut"]
    assert found == pytest.approx([0.2, -0.1])
    assert tables.difference_text([*found, 0.3, 0.4, 0.001]) == "+0.160; 3 : 1 of 5"
    shown = dict(tables.quality_tables(rows, KINDS))
    assert "| fake a | pairs | 0.600 / 0.600 / 0 % / 0.1 [2] |" in shown[0.1]
    assert "| - / - / 0 % / 0.1 [1] |" in shown[2.0]


def test_failures_are_listed_and_the_page_is_complete():
    failed = {"status": "error", "message": "ValueError: odd", "part": "quality", "data": "wine"}
    rows = [
        row("fake:a", 178, pairs=18, **failed),
        row("fake:a", 178, pairs=18, **failed | {"seed": 1}),
        row("fake:a", 500, status="limit", message="over 120 CPU s"),
        row("fake:b", 0, status="error", message="ERROR: no such package", part="install"),
    ]
    assert tables.failures(rows) == [
        "* fake a, wine, 18 pairs: ValueError: odd (2 draws)",
        "* fake a, n = 500: over 120 CPU s",
        "* fake b, installation: ERROR: no such package",
    ]
    text = tables.page(rows, KINDS)
    assert "(2 draws)" in text
    assert "| limit |" in text
    assert "| error |" in text
    assert tables.page([], KINDS)
