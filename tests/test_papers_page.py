"""docs/papers.md against the tables behind it: every verdict and every figure, computed again."""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "papers"
RESULTS = FOLDER / "results"
PAGE = ROOT / "docs" / "papers.md"
if not (RESULTS.is_dir() and PAGE.is_file()):
    pytest.skip("the tables or the page are not here", allow_module_level=True)
NAMES = sorted(path.name.removesuffix(".run.json") for path in RESULTS.glob("*.run.json"))
ROW = re.compile(r"^\| (\d+) \| (.*) \| (.*) \| (.*) \|$")


def imported(name):
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(name)


def text_of(title):
    """Return the part of the page under a heading."""
    page = PAGE.read_text(encoding="utf-8")
    start = page.index(f"### {title}\n")
    ends = [at for mark in ("\n### ", "\n## ") if (at := page.find(mark, start + 4)) > 0]
    return page[start : min(ends, default=len(page))]


def printed(name):
    """Return number, claim and both verdicts of each line that the page has of an experiment."""
    lines = text_of(imported(name).TITLE).splitlines()
    return [match.groups() for line in lines if (match := ROW.match(line))]


def verdicts_of(name):
    common = imported("common")
    return common.judged(imported(name).CLAIMS, common.read_rows(RESULTS / f"{name}.csv"))


CLAIMS = [
    pytest.param(name, number, id=f"{name}-{number + 1}")
    for name in NAMES
    for number in range(len(imported(name).CLAIMS))
]


@pytest.mark.parametrize(("name", "number"), CLAIMS)
def test_the_verdict_on_the_page_follows_from_the_table(name, number):
    verdict = verdicts_of(name)[number]
    at, claim, letter, default = printed(name)[number]
    assert (int(at), claim) == (number + 1, verdict.claim.text)
    assert letter == (str(verdict.letter) if verdict.letter.of else "not run")
    if verdict.is_same:
        assert default == "the same"
    else:
        assert default == (str(verdict.default) if verdict.default.of else "-")
    text = text_of(imported(name).TITLE)
    line = next(x for x in text.splitlines() if x.startswith(f"{number + 1}. "))
    assert verdict.claim.rule in line
    assert verdict.letter.numbers in line
    assert verdict.is_same or verdict.default.numbers in line


def test_every_experiment_is_on_the_page():
    missing = {path.stem for path in imported("run_all").experiments()} - set(NAMES)
    last = PAGE.read_text(encoding="utf-8").splitlines()[-1]
    assert set(re.findall(r"`(\w+)`", last if last.startswith("Not run yet") else "")) == missing


def test_the_page_is_what_the_tables_give():
    """Nothing on the page is typed in, and nothing was changed after the tables."""
    text = imported("make_page").page_text(RESULTS, ROOT / "docs" / "images" / "papers")
    assert text == PAGE.read_text(encoding="utf-8")


def test_tolerances_stand_on_the_page():
    wang, fall = imported("wang_fig4_5"), imported("srcp_fig2_3").FALL
    page = PAGE.read_text(encoding="utf-8")
    assert f"is below {wang.SIMILAR}." in page
    assert f"no step falls by more than {imported('wacquet_fig1_2').FALL}." in page
    assert f"above the first by more than {fall}, and no step falls by more." in page


def test_times_are_not_among_the_figures_that_come_again():
    for name in set(NAMES) - imported("run_all").ONLY_TIMES:
        with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert not {"seconds", "cpu_seconds"} & set(rows[0])
        assert not any("second" in r["metric"] or "megabyte" in r["metric"] for r in rows)
        run = json.loads((RESULTS / f"{name}.run.json").read_text(encoding="utf-8"))
        assert run["size"].startswith("reduced: ")


def test_all_runs_together_take_less_than_half_an_hour_on_two_cores():
    """By their CPU seconds as measured: an hour of them, 30 minutes on two cores."""
    runs = [json.loads((RESULTS / f"{name}.run.json").read_text()) for name in NAMES]
    assert sum(run["cpu_seconds"] for run in runs) < 3600


# ------------------------------------------------------------------ without the judges


def table(name, metric):
    """Return the means by data set, method and amount, read with nothing of ours."""
    with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == metric]
    return {(r["data"], r["method"], int(r["amount"])): float(r["mean"]) for r in rows}


def heights(means, data, method):
    return np.mean([v for (d, m, a), v in means.items() if (d, m) == (data, method) and a > 0])


@pytest.mark.parametrize(("metric", "place"), [("accuracy", 1), ("rand_index", 7)])
def test_csc_is_best_as_often_as_the_page_says(metric, place):
    means = table("wacquet_fig1_2", metric)
    sets = dict.fromkeys(data for data, _, _ in means)
    best = {}
    for own in ("signed", "signed:default"):
        rivals = ("ncut", "sl", "csp", "cpca", "clpp")
        level = {d: {m: heights(means, d, m) for m in (own, *rivals)} for d in sets}
        best[own] = sum(
            values[own] >= np.nanmax(list(values.values())) for values in level.values()
        )
    _, claim, letter, default = printed("wacquet_fig1_2")[place - 1]
    assert claim.startswith("cSC has the highest")
    assert f"({best['signed']} of {len(sets)})" in letter
    assert f"({best['signed:default']} of {len(sets)})" in default


def test_constraints_do_not_make_ap_worse_on_ionosphere():
    means = table("srcp_fig2_3", "adjusted_rand")
    worse = []
    for method in ("gp", "sl"):
        curve = [v for (d, m, _), v in sorted(means.items()) if (d, m) == ("ionosphere", method)]
        worse.append(curve[-1] < curve[0] - 0.02)
    assert not worse[0]
    rows = {claim: letter for _, claim, letter, _ in printed("srcp_fig2_3")}
    assert f"({sum(worse)} of 2)" in rows["On Ionosphere constraints make AP and SL worse"]


def test_cosc_satisfies_all_pairs_by_default():
    for name in ("cosc_table2", "cosc_table3", "cosc_large"):
        violated = table(name, "violated_share")
        assert all(v == 0 for (_, m, _), v in violated.items() if m == "cosc:default")
