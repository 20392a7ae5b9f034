"""The verdicts on the papers of COSC and SRCP: right on made-up tables, and on partitions."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "papers"
NAMES = (
    "cosc_table2",
    "cosc_table3",
    "cosc_fig1",
    "cosc_fig2",
    "cosc_large",
    "cosc_volume",
    "srcp_fig2_3",
    "srcp_fig4",
    "srcp_time",
)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not here")


def experiment(name):
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(name)


def row(data, method, amount, metric, mean, **other):
    """Return a tidy row, as the experiments write it."""
    line = {"data": data, "method": method, "amount": amount, "metric": metric, "mean": mean}
    line |= {"n_samples": 100, "n_draws": 4, "n": 4, "sd": 0.0, "failures": 0}
    return line | other


def curves(metric, values, *, data="toy", amounts=(0, 10, 20)):
    """Return rows from ``{method: means at the amounts}``."""
    return [
        row(data, method, amount, metric, mean)
        for method, means in values.items()
        for amount, mean in zip(amounts, means, strict=True)
    ]


def answers(judge, rows):
    return {place: outcome.holds for place, outcome in judge(rows).items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_declares_what_it_tests(name):
    module = experiment(name)
    assert name == module.NAME
    assert module.PAPER
    assert module.TITLE
    assert callable(module.main)
    texts = [claim.text for claim in module.CLAIMS]
    assert texts
    assert len(set(texts)) == len(texts)


# ------------------------------------------------------------------ COSC, tables 2 and 3


def test_one_violation_at_one_amount_is_a_violation():
    table2 = experiment("cosc_table2")
    rows = curves("violated_share", {"cosc": (0, 0, 0), "sl": (0, 0, 0.01)})
    assert answers(table2.satisfies_all("cosc"), rows) == {"toy": True}
    assert answers(table2.satisfies_all("sl"), rows) == {"toy": False}


def test_a_method_without_an_answer_does_not_obey():
    table2 = experiment("cosc_table2")
    rows = [row("toy", "cosc", 10, "violated_share", 0.0, failures=1, n=3)]
    assert answers(table2.satisfies_all("cosc"), rows) == {"toy": False}
    rows = [row("toy", "cosc", 10, "violated_share", np.nan, failures=4, n=0)]
    assert answers(table2.satisfies_all("cosc"), rows) == {"toy": False}


def test_others_must_violate_on_every_set():
    table2 = experiment("cosc_table2")
    rows = curves("violated_share", {"sl": (0, 0.1, 0), "csp": (0, 0, 0)}, data="a")
    rows += curves("violated_share", {"sl": (0, 0, 0.1), "csp": (0, 0.1, 0.1)}, data="b")
    assert answers(table2.others_violate(("sl", "csp")), rows) == {"SL": True, "CSP": False}


def test_a_cut_that_is_equal_up_to_rounding_is_not_lower():
    table2 = experiment("cosc_table2")
    rows = curves("ncut", {"cosc": (0.3, 0.3, 0.4), "sclc": (0.4, 0.3 + 1e-12, 0.3)})
    found = answers(table2.lower_cut_than("sclc"), rows)
    assert list(found.values()) == [True, False, False]


def test_a_cut_that_is_missing_is_not_lower():
    table2 = experiment("cosc_table2")
    rows = curves("ncut", {"cosc": (np.nan, 0.3, 0.3), "sclc": (0.4, np.nan, 0.4)})
    found = answers(table2.lower_cut_than("sclc"), rows)
    assert list(found.values()) == [False, False, True]


def test_lowest_error_is_low_and_not_high():
    table2 = experiment("cosc_table2")
    rows = curves("clustering_error", {"cosc": (0.3, 0.2, 0.1), "sl": (0.2, 0.2, 0.3)})
    rows += curves("clustering_error", {"csp": (np.nan, np.nan, np.nan)})
    found = answers(table2.lowest_error(("sl", "csp")), rows)
    assert list(found.values()) == [False, True, True]
    # Over the amounts above 0 the means are 0.15 and 0.25.
    assert answers(table2.lowest_error_level(("sl", "csp")), rows) == {"toy": True}


def test_no_answer_is_never_the_lowest_error():
    table2 = experiment("cosc_table2")
    rows = curves("clustering_error", {"cosc": (np.nan,) * 3, "sl": (0.5, 0.5, 0.5)})
    assert not any(answers(table2.lowest_error(("sl",)), rows).values())
    assert answers(table2.lowest_error_level(("sl",)), rows) == {"toy": False}


@pytest.mark.parametrize(("sd", "holds"), [(0.0, True), (0.1, True), (0.2, False)])
def test_clearly_below_means_two_standard_errors(sd, holds):
    """Difference 0.2, four draws: two standard errors of a difference are sqrt(2) sd."""
    table2 = experiment("cosc_table2")
    rows = [
        row("toy", method, 10, metric, mean, sd=sd)
        for metric in ("ncut", "clustering_error")
        for method, mean in (("cosc", 0.1), ("sclc", 0.3))
    ]
    found = answers(table2.clearly_below("sclc", ("toy",)), rows)
    assert list(found.values()) == [holds, holds]


def test_subsamples_keep_the_classes_in_proportion():
    subsample = experiment("cosc_table2").subsample
    y = np.repeat([0, 1, 2], [600, 300, 100])
    kept = subsample(y, 100)
    np.testing.assert_array_equal(np.bincount(y[kept]), [60, 30, 10])
    np.testing.assert_array_equal(kept, subsample(y, 100))
    np.testing.assert_array_equal(subsample(y, 5000), np.arange(1000))


def test_graph_of_the_paper():
    """``max(exp(-4 d^2 / s_i^2), exp(-4 d^2 / s_j^2))`` among neighbours, in one piece."""
    paper_graph = experiment("cosc_table2").paper_graph
    rng = np.random.RandomState(0)
    X = np.vstack([rng.normal(size=(12, 2)), rng.normal(size=(12, 2)) + 50])
    D = np.linalg.norm(X[:, None] - X, axis=2)
    scale = np.sort(D, axis=1)[:, 3]
    near = scale[:, None] >= D
    np.fill_diagonal(near, val=False)
    S = np.where(near, np.exp(-4 * (D / scale[:, None]) ** 2), 0.0)
    expected = np.maximum(S, S.T)
    W = paper_graph(X, 3).toarray()
    np.testing.assert_allclose(W[expected > 0], expected[expected > 0])
    np.testing.assert_array_equal(W, W.T)
    links = (W > 0) & (expected == 0)
    assert links.sum() == 2  # one link, in both directions, between the two pieces
    assert links[:12, 12:].sum() == 1


def test_judging_on_some_of_the_sets():
    table2 = experiment("cosc_table2")
    rows = curves("violated_share", {"cosc": (0, 0, 0)}, data="a")
    rows += curves("violated_share", {"cosc": (0, 0, 1)}, data="b")
    assert answers(table2.on(("a",), table2.satisfies_all("cosc")), rows) == {"a": True}


# ------------------------------------------------------------------ COSC, figures and all of MNIST


def test_verdicts_of_figure_1():
    fig1 = experiment("cosc_fig1")
    amounts = (0, 5, 10)
    rows = curves("n_violated", {"cosc": (0, 5, 9)}, amounts=amounts)
    rows += curves("ncut", {"cosc": (0.5, 0.4, 0.4)}, amounts=amounts)
    rows += curves("clustering_error", {"cosc": (0.2, 0.2, 0.3)}, amounts=amounts)
    judges = (fig1.within_budget, fig1.cut_falls, fig1.best_if_hard)
    assert [answers(judge, rows)["toy"] for judge in judges] == [True, True, True]
    rows = curves("n_violated", {"cosc": (0, 6, 9)}, amounts=amounts)
    rows += curves("ncut", {"cosc": (0.5, 0.4, 0.45)}, amounts=amounts)
    rows += curves("clustering_error", {"cosc": (0.2, 0.3, 0.1)}, amounts=amounts)
    assert [answers(judge, rows)["toy"] for judge in judges] == [False, False, False]


def test_split_and_merged_classes_are_recognised():
    fig2 = experiment("cosc_fig2")
    y = np.repeat([0, 1, 2, 3], [250, 75, 75, 100])
    halves = np.where(np.arange(500) < 125, 0, 1)
    wrong = np.where(y == 0, halves, np.where(y == 3, 3, 2))
    assert not fig2.is_split(y, y)
    assert not fig2.is_merged(y, y)
    assert fig2.is_split(y, wrong)
    assert fig2.is_merged(y, wrong)
    few_astray = y.copy()
    few_astray[:10] = 3
    assert not fig2.is_split(y, few_astray)


def test_verdicts_of_figure_2():
    fig2 = experiment("cosc_fig2")
    rows = [row("toy", "cosc", m, "adjusted_rand", 1.0) for m in (0, 80)]
    rows += [row("toy", "cosc", 0, "split", 1.0), row("toy", "cosc", 0, "merged", 1.0)]
    rows += [row("toy", "cosc", 80, "split", 0.0), row("toy", "cosc", 80, "merged", 1.0)]
    assert answers(fig2.wrong(0, 1), rows) == {"toy": True}
    assert answers(fig2.wrong(80, 0), rows) == {"toy": False}
    assert answers(fig2.wrong(80, 1), rows) == {"toy": False}


def test_large_runs_are_taken_up_where_they_stopped(tmp_path, monkeypatch):
    large = experiment("cosc_large")
    calls = []

    def fit(path, method, n_pairs, size):
        calls.append(method)
        return dict.fromkeys((*large.SCORES, *large.COSTS), 0.5)

    monkeypatch.setattr(large, "graph_file", lambda name, out: out / name)
    monkeypatch.setattr(large, "in_process", fit)
    given = large.parsed("x", ["--out", str(tmp_path)], name="x")
    first = large.experiment(given)
    n_fits = len(calls)
    assert large.experiment(given) == first
    assert len(calls) == n_fits == len(large.places(full=False))
    assert ("mnist", "cosc", 700) in first
    rows = large.table(first, "reduced", large.SCORES)
    assert {row["data"] for row in rows} == set(large.SIZES)
    assert not {"cpu_seconds", "megabytes"} & {row["metric"] for row in rows}


def test_a_fit_of_its_own_process(tmp_path):
    """The memory is that of the fit: an array of 64 MB that it makes shows, one of before not."""
    large = experiment("cosc_large")
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the peak of a process can be reset on Linux only")
    before = np.ones(4_000_000)
    start = large.reset_peak()
    assert large.peak_above(start) < 8
    np.ones(8_000_000).sum()
    assert 60 < large.peak_above(start) < 80
    assert before.size
    y = np.repeat(np.arange(10), 12)
    X = np.random.RandomState(0).normal(size=(120, 2)) + 9 * np.c_[y % 4, y // 4]
    W = large.paper_graph(X, 6)
    np.savez(tmp_path / "g.npz", data=W.data, indices=W.indices, indptr=W.indptr, y=y)
    found = large.fitted(tmp_path / "g.npz", "sl", 20, full=False)
    assert set(found) == {*large.SCORES, *large.COSTS}
    assert found["clustering_error"] < 0.2


def test_csp_is_refused_where_it_has_no_answer():
    large = experiment("cosc_large")
    rows = curves("clustering_error", {"cosc": (0.1, 0.1, 0.1), "csp:default": (0.2, 0.2, 0.2)})
    mnist = [r | {"data": "mnist"} for r in rows]
    assert answers(large.refused, mnist) == {"mnist": True}  # a dense matrix of 39 GB
    assert answers(large.refused, rows) == {"toy": False}
    defaults = experiment("common").by_default(rows)
    assert answers(large.refused, defaults) == {"toy": False}


def test_a_set_without_cosc_is_no_place_for_a_claim_about_it():
    large = experiment("cosc_large")
    rows = curves("ncut", {"cosc": (0.1, 0.1, 0.1), "sl": (0.2, 0.2, 0.2)})
    rows += curves("ncut", {"sl": (0.1, 0.1, 0.1)}, data="without")
    found = answers(large.with_cosc(large.lower_cut_than("sl")), rows)
    assert found == {f"toy, {n} pairs": True for n in (0, 10, 20)}


def test_approximate_neighbours_give_the_same_graph():
    """A search that finds all neighbours, and each sample itself, gives the graph of all pairs."""
    table2 = experiment("cosc_table2")
    from linkwise.graph import ApproximateNeighbors

    X = np.random.RandomState(0).normal(size=(60, 3))
    exact = table2.paper_graph(X, 5)
    found = table2.paper_graph(X, search=ApproximateNeighbors(5, recall=1.0, random_state=0))
    np.testing.assert_allclose(found.toarray(), exact.toarray(), atol=1e-6)


def test_volumes_of_clusters():
    volume = experiment("cosc_volume")
    W = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 2], [0, 0, 2, 0]])
    assert volume.smaller_volume(W, np.array([0, 0, 1, 1])) == pytest.approx(3 / 8)
    values = {"truth": (0.1,), "sclc": (0.3,), "cosc": (0.12,)}
    values |= {"sclc:must": (0.1,), "sclc:cannot": (0.11,)}
    rows = curves(volume.METRIC, values, amounts=(10,))
    verdicts = [answers(claim.judge, rows) for claim in volume.CLAIMS]
    assert [next(iter(v.values())) for v in verdicts] == [True, True, False, True]


def test_pairs_of_one_kind():
    volume = experiment("cosc_volume")
    y = np.repeat([0, 1], 20)
    for kind, same in (("must_link", True), ("cannot_link", False)):
        known = volume.one_kind(y, 15, kind, np.random.RandomState(0))
        pairs = np.asarray(getattr(known, kind))
        assert len(pairs) == 15
        assert ((y[pairs[:, 0]] == y[pairs[:, 1]]) == same).all()


# ------------------------------------------------------------------ SRCP


def test_features_are_scaled_to_one():
    scaled = experiment("srcp_fig2_3").scaled
    X = np.array([[1.0, -3.0, 7.0], [3.0, 0.0, 7.0], [2.0, 3.0, 7.0]])
    np.testing.assert_allclose(scaled(X), [[-1, -1, 0], [1, 0, 0], [0, 1, 0]])


def test_best_is_judged_by_set_and_by_amount():
    fig = experiment("srcp_fig2_3")
    rivals = dict.fromkeys(fig.RIVALS, (0.1, 0.5, 0.5))
    rows = curves("adjusted_rand", {**rivals, "srcp": (0.1, 0.4, 0.7)})
    assert answers(fig.best_on(("toy",)), rows) == {"toy": True}
    assert answers(fig.best_on(("other",)), rows) == {}
    found = answers(fig.best_everywhere(("toy",)), rows)
    assert found == {"toy, 10 pairs": False, "toy, 20 pairs": True}


@pytest.mark.parametrize(("sd", "holds"), [(0.0, True), (0.1, True), (0.2, False)])
def test_far_better_means_two_standard_errors(sd, holds):
    fig = experiment("srcp_fig2_3")
    rows = [
        row("toy", method, 10, "adjusted_rand", mean, sd=sd)
        for method, mean in (("srcp", 0.7), ("ncut", 0.5))
    ]
    assert answers(fig.clearly_above_baseline(("toy",)), rows) == {"toy": holds}


@pytest.mark.parametrize(
    ("curve", "holds"),
    [
        ((0.1, 0.2, 0.3), True),
        ((0.1, 0.3, 0.29), True),
        ((0.1, 0.3, 0.2), False),
        ((0.1, 0.1, 0.11), False),
    ],
)
def test_rising_curves(curve, holds):
    fig = experiment("srcp_fig2_3")
    rows = curves("adjusted_rand", {"srcp": curve})
    assert answers(fig.rises(("toy",)), rows) == {"toy": holds}


def test_verdicts_on_the_other_methods():
    fig = experiment("srcp_fig2_3")
    values = {"ncut": (0.4, 0.4, 0.4), "sl": (0.4, 0.3, 0.6), "gp": (0.3, 0.5, 0.9)}
    rows = curves("adjusted_rand", {**values, "sskk": (0.4, 0.3, 0.4), "srcp": (0.4, 0.6, 0.7)})
    places = (("sl", "toy"), ("sskk", "toy"))
    found = answers(fig.no_better_than_baseline(places), rows)
    assert found == {"SL on toy": False, "SSKK on toy": True}
    # A dip on the way is not worse: AP of 0.111, 0.093, 0.543, 0.966 gets better.
    assert answers(fig.falls("toy", ("gp", "sl")), rows) == {"AP": False, "SL": False}
    worse = curves("adjusted_rand", {"gp": (0.4, 0.5, 0.37), "sl": (0.4, 0.3, 0.39)})
    assert answers(fig.falls("toy", ("gp", "sl")), worse) == {"AP": True, "SL": False}
    assert answers(fig.unsteady(("toy",)), rows) == {"AP": False, "SL": True, "SSKK": True}
    assert answers(fig.gains_most(("toy",)), rows) == {"toy": False}
    found = answers(fig.sometimes_degraded(("toy",)), rows)
    assert found == {"AP": False, "SL": True, "SSKK": True}


def test_contrast_is_distance_between_over_distance_within():
    fig4 = experiment("srcp_fig4")
    x = np.array([0.0, 1.0, 10.0, 12.0])
    D = np.abs(x[:, None] - x)
    # Within: 1 and 2. Between: 10, 12, 9, 11.
    assert fig4.contrast(D, np.array([0, 0, 1, 1])) == pytest.approx(10.5 / 1.5)
    rows = [row("toy", m, 9, "contrast", v) for m, v in zip(fig4.SHOWN, (1, 2, 3, 4), strict=True)]
    assert answers(fig4.clearest, rows) == {"toy": True}
    rows[0]["mean"] = 5.0
    assert answers(fig4.clearest, rows) == {"toy": False}


def test_coarse_pictures_are_means_over_blocks():
    coarse = experiment("srcp_fig4").coarse
    D = np.arange(25.0).reshape(5, 5)
    expected = [[D[:2, :2].mean(), D[:2, 2:].mean()], [D[2:, :2].mean(), D[2:, 2:].mean()]]
    np.testing.assert_allclose(coarse(D, 2), expected)
    np.testing.assert_array_equal(coarse(D, 9), D)


def test_verdicts_on_times():
    timing = experiment("srcp_time")
    seconds = {"sl": 1.0, "gp": 3.0, "sskk": 2.0, "srcp": 2.5, timing.OURS: 1.0, timing.SCHUR: 8.0}
    rows = timing.table(seconds, 1e-14, "reduced")
    assert answers(timing.slowest, rows) == {"SL": True, "AP": False, "SSKK": True}
    # What is not the equation takes 1.5 s.
    assert answers(timing.mostly_lyapunov, rows) == {"linkwise": False, "scipy": True}
    assert answers(timing.faster_than_schur, rows) == {"corel15_gist": True}
    rows = timing.table(seconds, 1e-3, "reduced")
    assert answers(timing.faster_than_schur, rows) == {"corel15_gist": False}
