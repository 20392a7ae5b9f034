"""Learning curves: the same draws for all, resumable, nothing dropped, right by hand."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import cache, partial, wraps
from importlib import import_module
from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkwise import METHODS, Affinity, ConflictError, Constraints, Result, SignedCSC
from linkwise.datasets import make_xor
from linkwise.evaluate import (
    Curves,
    Problem,
    Table,
    draw_constraints,
    draw_curves,
    learning_curve,
    read_curves,
)
from linkwise.evaluate.draws import counts, encoded
from linkwise.evaluate.estimators import described
from linkwise.evaluate.measure import CUTS, METRICS, _Clock
from linkwise.evaluate.store import read_rows
from linkwise.exceptions import TooLargeError
from linkwise.methods import ConstrainedClusterer
from linkwise.methods.signed import signed_csc

CLOCKS = ("seconds", "cpu_seconds")
X, Y = make_xor(random_state=0)
TRUTH_BY_X = {tuple(x): label for x, label in zip(X, Y, strict=True)}


def run(methods, amounts=(0, 5, 10), datasets=None, **settings):
    settings = {"n_draws": 3, "progress": False} | settings
    return learning_curve(
        {"xor": (X, Y)} if datasets is None else datasets, methods, amounts, **settings
    )


def truth(X, constraints, n_clusters, random_state):
    return np.array([TRUTH_BY_X[tuple(x)] for x in X])


def one_cluster(X, constraints, n_clusters, random_state):
    return np.zeros(len(X), dtype=int)


def improving(X, constraints, n_clusters, random_state):
    # One sample less is wrong with each pair.
    labels = truth(X, constraints, n_clusters, random_state)
    n_wrong = max(0, 10 - constraints.n_pairs)
    labels[:n_wrong] = 1 - labels[:n_wrong]
    return labels


def by_luck(X, constraints, n_clusters, random_state):
    return np.random.RandomState(random_state).randint(n_clusters, size=len(X))


def failing(X, constraints, n_clusters, random_state):
    if constraints.n_pairs == 5:
        raise KeyError("not today")
    if constraints.n_pairs == 10:
        raise ConflictError("they contradict each other")
    if constraints.n_pairs == 15:
        raise TooLargeError("above 10 samples")
    return np.zeros(3)


def untimed(rows):
    return [{name: value for name, value in row.items() if name not in CLOCKS} for row in rows]


def assert_same_rows(one, other):
    one, other = untimed(one), untimed(other)
    assert len(one) == len(other) > 0
    for a, b in zip(one, other, strict=True):
        assert a.keys() == b.keys()
        for name, value in a.items():
            assert value == b[name] or np.isnan([value, b[name]]).all(), (name, a, b)


# The draws -----------------------------------------------------------------------------------


def listening(heard, name):
    def method(X, constraints, n_clusters, random_state):
        heard[name].append((constraints, n_clusters, random_state))
        return np.arange(len(X)) % n_clusters

    return name, method


def test_all_methods_get_the_same_constraints_in_any_order_and_company():
    names = ("a", "b", "c")
    heard = {name: [] for name in names}
    run([listening(heard, name) for name in names])
    assert len(heard["a"]) == 9
    assert heard["a"] == heard["b"] == heard["c"]
    assert len({known for known, _, _ in heard["a"]}) == 7  # amount 0, and two amounts times three

    again = {name: [] for name in names}
    run([listening(again, name) for name in ("c", "a")])
    assert again["a"] == again["c"] == heard["a"]


def test_the_constraints_of_a_run_can_be_had_again():
    heard = {"a": []}
    run([listening(heard, "a")], [4, 9], kind="labels", random_state=5)
    for (known, n_clusters, _), (amount, draw) in zip(
        heard["a"], [(m, r) for m in (4, 9) for r in range(3)], strict=True
    ):
        asked = {"kind": "labels", "data": "xor", "repetition": draw, "random_state": 5}
        assert known == draw_constraints(Y, amount, **asked)
        assert n_clusters == 2
        assert (known.labels >= 0).sum() == amount


def test_a_draw_depends_on_seed_name_amount_and_repetition():
    drawn = [
        draw_constraints(Y, amount, data=data, repetition=repetition, random_state=seed)
        for amount in (30, 31)
        for data in ("a", "b")
        for repetition in (0, 1)
        for seed in (0, 1)
    ]
    for one, other in combinations(drawn, 2):
        both = {tuple(p) for p in one.must_link} & {tuple(p) for p in other.must_link}
        assert len(both) < 8  # independent ones share about 15 * 15 / 380 pairs


def test_draws_do_not_change_between_releases():
    # The sets behind published figures: these numbers are never to be corrected.
    known = draw_constraints([0, 0, 0, 1, 1, 1, 2, 2], 5, data="iris", repetition=3, random_state=1)
    assert known.must_link.tolist() == []
    assert known.cannot_link.tolist() == [[0, 3], [0, 7], [1, 4], [1, 5], [5, 7]]
    stratified = draw_constraints([0, 0, 0, 1, 1, 1, 2, 2], 4, kind="stratified")
    assert stratified.labels.tolist() == [-1, 0, -1, -1, 1, 1, -1, 2]


def test_the_seed_of_a_fit_is_shared_by_methods_and_amounts():
    heard = {"a": [], "b": []}
    run([listening(heard, "a"), listening(heard, "b")])
    seeds = [seed for _, _, seed in heard["a"]]
    assert seeds[:3] == seeds[3:6] == seeds[6:]
    assert len(set(seeds)) == 3


@pytest.mark.parametrize("kind", ["pairs", "labels", "stratified", "per_class"])
def test_nested_sets_grow(kind):
    for repetition in range(5):
        sets = [
            draw_constraints(Y, amount, kind=kind, nested=True, repetition=repetition)
            for amount in (1, 4, 9, 17)
        ]
        for small, large in pairwise(sets):
            assert {tuple(p) for p in small.must_link} <= {tuple(p) for p in large.must_link}
            assert {tuple(p) for p in small.cannot_link} <= {tuple(p) for p in large.cannot_link}
            if kind != "pairs":
                assert_array_equal(large.labels[small.constrained], Y[small.constrained])
            assert small.constrained.sum() < large.constrained.sum()


def test_sets_that_are_not_nested_do_not_grow():
    small, large = (draw_constraints(Y, amount, kind="labels") for amount in (15, 16))
    assert not (small.constrained <= large.constrained).all()


def test_pairs_are_uniform():
    seen = np.zeros((6, 6))
    for repetition in range(800):
        drawn = draw_constraints([0, 1, 2, 3, 4, 5], 4, repetition=repetition)
        assert drawn.n_pairs == 4
        seen[tuple(drawn.cannot_link.T)] += 1
    counted = seen[np.triu_indices(6, 1)]
    # Each of the 15 pairs is in 4/15 of the sets; negatively correlated, so this is strict enough.
    assert stats.chisquare(counted).pvalue > 1e-3
    assert counted.sum() == 3200


def test_pairs_of_many_samples_are_distinct_and_nested(monkeypatch):
    # Above a number of pairs they are not all shuffled: the same promises hold.
    monkeypatch.setattr("linkwise.evaluate.draws.SHUFFLED", 10)
    monkeypatch.setattr("linkwise.evaluate.draws.FIRST_BLOCK", 64)
    y = np.arange(100)
    small, large = (draw_constraints(y, amount, nested=True) for amount in (50, 4000))
    assert small.n_pairs == 50
    assert large.n_pairs == 4000
    assert {tuple(p) for p in small.cannot_link} <= {tuple(p) for p in large.cannot_link}
    seen = np.zeros(15)
    for repetition in range(800):
        drawn = draw_constraints(np.arange(6), 4, repetition=repetition)
        i, j = drawn.cannot_link.T
        np.add.at(seen, j * (j - 1) // 2 + i, 1)
    assert stats.chisquare(seen).pvalue > 1e-3


def test_pairs_and_labels_tell_the_truth():
    for kind, amount in (("pairs", 200), ("labels", 13), ("stratified", 13), ("per_class", 7)):
        assert draw_constraints(Y, amount, kind=kind).satisfied(Y) == 1.0


def test_stratified_labels_keep_the_proportions():
    y = np.repeat([0, 1, 2], [60, 30, 3])
    for amount in (3, 10, 31, 62, 93):
        known = draw_constraints(y, amount, kind="stratified").labels
        shares = np.bincount(known[known >= 0], minlength=3)
        assert shares.sum() == amount
        assert (shares >= 1).all()
        assert_allclose(shares, amount * np.array([60, 30, 3]) / 93, atol=1.0)


def test_labels_per_class_take_all_of_a_small_class():
    y = np.repeat([0, 1, 2], [60, 30, 3])
    known = draw_constraints(y, 5, kind="per_class").labels
    assert np.bincount(known[known >= 0]).tolist() == [5, 5, 3]


def test_a_sampler_of_ones_own():
    def first_samples(y, amount, random_state):
        return Constraints.from_labels(np.where(np.arange(y.size) < amount, y, -1))

    heard = {"a": []}
    run([listening(heard, "a")], [3], kind=first_samples, n_draws=1)
    assert heard["a"][0][0].labels[:4].tolist() == [*Y[:3], -1]
    with pytest.raises(TypeError, match="must return Constraints on 40 samples"):
        run([listening(heard, "a")], [3], kind=lambda y, amount, rng: None)


# Amounts -------------------------------------------------------------------------------------


def test_amounts_are_counts_or_shares():
    y = encoded(np.arange(200) % 3)
    pairs = partial(counts, y=y, kind="pairs", data="d")
    assert pairs([0, 7, 0.1, "10%", "200%"], share_of="samples") == [0, 7, 20, 400]
    assert pairs(["1%", 0.2], share_of="pairs") == [199, 3980]
    assert counts([0.05, "50%"], y, kind="labels", share_of="samples", data="d") == [10, 100]
    assert pairs([0.0725], share_of="samples") == [15]  # half a pair is rounded up
    for percent in range(101):  # no rounding error of a share is seen
        assert pairs([f"{percent}%"], share_of="samples") == [2 * percent]


@pytest.mark.parametrize(
    ("amounts", "settings", "message"),
    [
        ([], {}, "amounts is empty"),
        ([-1], {}, "neither a number of constraints"),
        ([1.0], {}, "neither a number of constraints"),
        ([True], {}, "neither a number of constraints"),
        (["ten"], {}, "neither a number of constraints"),
        (["-5%"], {}, "neither a number of constraints"),
        ([0.1], {"kind": "per_class"}, "Take kind='stratified'"),
        ([0.1], {"kind": "labels", "share_of": "pairs"}, "share_of='pairs' is for kind='pairs'"),
        ([0.1], {"share_of": "people"}, "share_of must be"),
        ([10], {"kind": "couples"}, "kind must be one of"),
        ([781], {}, "781 is impossible on 'xor', which has 780 distinct pairs"),
        ([41], {"kind": "labels"}, "41 is impossible on 'xor', which has 40 samples"),
        ([21], {"kind": "per_class"}, "20 samples in the largest class"),
        ([5], {"n_draws": 0}, "n_draws must be a positive integer"),
        ([5], {"random_state": None}, "random_state must be an integer"),
        ([5], {"metrics": ["accuracies"]}, "Did you mean 'accuracy'"),
        ([5], {"metrics": []}, "metrics is empty"),
        ([5], {"retry": "failed"}, "retry must be a set"),
    ],
)
def test_wrong_settings_are_refused_before_anything_runs(amounts, settings, message):
    with pytest.raises(ValueError, match=message):
        run([("never", never)], amounts, **settings)


# Curves by hand ------------------------------------------------------------------------------


def test_known_answers_give_known_curves():
    curves = run([truth, one_cluster, improving], [0, 4, 10])
    means = {(r["method"], r["amount"]): r["mean"] for r in curves.summary("accuracy")}
    for amount in (0, 4, 10):
        assert means["truth", amount] == 1.0
        assert means["one_cluster", amount] == 0.5
        assert means["improving", amount] == pytest.approx(1 - (10 - amount) / 40)
    ari = {(r["method"], r["amount"]): r for r in curves.summary()}
    assert ari["one_cluster", 4]["mean"] == 0.0
    labels = improving(X, draw_constraints(Y, 4), 2, 0)
    assert ari["improving", 4]["mean"] == pytest.approx(adjusted_rand_score(Y, labels))
    assert ari["improving", 4]["std"] == 0.0


def test_every_metric_is_recorded_and_agrees_with_the_functions():
    from linkwise import metrics

    curves = run([by_luck], [10], n_draws=1)
    (row,) = curves.rows
    assert curves.metrics == list(METRICS)
    assert {"accuracy", "rand_index", "nmi", "pair_f", "free_accuracy", "ncut"} <= set(METRICS)
    known = draw_constraints(Y, 10, data="xor")
    seed = {"a": []}
    run([listening(seed, "a")], [10], n_draws=1)
    labels = by_luck(X, known, 2, seed["a"][0][2])
    W = Affinity().fit_transform(X)
    assert row["adjusted_rand"] == metrics.adjusted_rand(Y, labels)
    assert row["free_nmi"] == metrics.nmi(Y, labels, outside=known)
    assert row["ncut"] == pytest.approx(metrics.ncut(W, labels))
    assert row["violated_share"] == metrics.violated_share(known, labels)
    assert row["n_must_link"] == len(known.must_link)
    assert row["n_cannot_link"] == len(known.cannot_link)
    assert row["n_samples"] == 40
    assert row["seconds"] >= 0
    assert row["cpu_seconds"] >= 0


def toy(values, status=None):
    """Curves with given scores: {(method, amount): scores of the draws}."""
    return Curves(
        {
            "data": "d",
            "method": method,
            "amount": amount,
            "draw": draw,
            "status": "failed" if value is None else "ok",
            "message": "",
            "n_labelled": 0,
            "adjusted_rand": np.nan if value is None else value,
            "clustering_error": np.nan if value is None else 1 - value,
            "seconds": 1.0,
            "cpu_seconds": 1.0,
        }
        for (method, amount), scores in values.items()
        for draw, value in enumerate(scores)
    )


def test_mean_and_spread_by_hand():
    (line,) = toy({("a", 5): [0.1, 0.2, 0.6, None]}).summary(quantiles=(0.5, 0.9))
    assert line["n_draws"] == 4
    assert line["n"] == 3
    assert line["problems"] == "failed 1"
    assert line["mean"] == pytest.approx(0.3)
    assert line["std"] == pytest.approx(np.sqrt(0.07))  # (0.04 + 0.01 + 0.09) / 2
    assert line["sem"] == pytest.approx(np.sqrt(0.07 / 3))
    assert line["q50"] == pytest.approx(0.2)
    assert line["q90"] == pytest.approx(0.52)
    assert line["seconds"] == 1.0


def test_stability_by_hand():
    # Figure 5 of Wang et al.: trials with a positive gain over the baseline; a tie is no gain.
    values = {
        ("ncut", 0): [0.5, 0.5, 0.5, 0.5],
        ("ncut", 9): [0.5, 0.5, 0.6, 0.5],
        ("a", 0): [0.2, 0.9, 0.5, 0.5],
        ("a", 9): [0.6, 0.5, 0.55, None],
    }
    curves = toy(values)
    at = {(r["method"], r["amount"]): r for r in curves.stability(baseline="ncut")}
    assert set(at) == {("a", 0), ("a", 9)}
    assert [at["a", 9][name] for name in ("n_draws", "n", "wins", "ties", "losses")] == [
        4,
        3,
        1,
        1,
        1,
    ]
    assert at["a", 9]["share"] == pytest.approx(1 / 3)
    itself = {(r["method"], r["amount"]): r for r in curves.stability()}
    assert set(itself) == {("ncut", 9), ("a", 9)}
    assert itself["a", 9]["share"] == pytest.approx(2 / 3)
    assert itself["ncut", 9]["share"] == pytest.approx(1 / 4)
    errors = {(r["method"], r["amount"]): r for r in curves.stability("clustering_error")}
    assert errors["a", 9]["share"] == pytest.approx(2 / 3)  # lower is better
    with pytest.raises(ValueError, match="Add the amount 0"):
        toy({("a", 9): [0.5]}).stability()


def test_paired_comparison_by_hand():
    a, b = [0.5, 0.7, 0.9, 0.4, 0.3], [0.4, 0.7, 0.6, 0.6, None]
    curves = toy({("a", 5): a, ("b", 5): b})
    (line,) = curves.compare("a", "b", confidence=0.9)
    difference = np.array([0.1, 0.0, 0.3, -0.2])
    assert (line["n_draws"], line["n"]) == (5, 4)
    assert (line["wins"], line["ties"], line["losses"]) == (2, 1, 1)
    assert line["difference"] == pytest.approx(0.05)
    expected = stats.ttest_1samp(difference, 0).confidence_interval(0.9)
    assert_allclose([line["low"], line["high"]], expected)
    assert line["p"] == pytest.approx(stats.wilcoxon([0.1, 0.3, -0.2]).pvalue)
    (turned,) = curves.compare("b", "a", confidence=0.9)
    assert turned["difference"] == pytest.approx(-0.05)
    assert (turned["wins"], turned["losses"]) == (1, 2)
    (errors,) = curves.compare("a", "b", "clustering_error")
    assert errors["difference"] == pytest.approx(-0.05)
    assert (errors["wins"], errors["losses"]) == (2, 1)


def test_comparison_of_equals_and_of_too_few():
    (line,) = toy({("a", 5): [0.5, 0.6], ("b", 5): [0.5, 0.6 + 1e-13]}).compare("a", "b")
    assert (line["wins"], line["ties"], line["losses"]) == (0, 2, 0)
    assert (line["difference"], line["low"], line["high"], line["p"]) == (0.0, 0.0, 0.0, 1.0)
    (one,) = toy({("a", 5): [0.5], ("b", 5): [0.25]}).compare("a", "b")
    assert one["difference"] == 0.25
    assert np.isnan(one["low"])
    (none,) = toy({("a", 5): [None], ("b", 5): [0.25]}).compare("a", "b")
    assert none["n"] == 0
    assert np.isnan([none["difference"], none["low"], none["p"]]).all()


def test_what_is_not_in_a_run_cannot_be_asked_of_it():
    curves = toy({("a", 5): [0.5]})
    with pytest.raises(ValueError, match="no metric 'nmi' in this run, but adjusted_rand"):
        curves.summary("nmi")
    with pytest.raises(ValueError, match="no method 'b' in this run, but a"):
        curves.compare("a", "b")
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        curves.compare("a", "a", confidence=95)


# Failures ------------------------------------------------------------------------------------


def test_a_failure_is_recorded_and_counted():
    curves = run([truth, failing], [0, 5, 10, 15], n_draws=2)
    found = {(r["amount"], r["status"]) for r in curves.rows if r["method"] == "failing"}
    assert found == {(0, "failed"), (5, "failed"), (10, "infeasible"), (15, "too large")}
    messages = {row["amount"]: row["message"] for row in curves.failures()}
    assert messages[0].startswith("ValueError: The answer has shape (3,)")
    assert messages[5] == "KeyError: 'not today'"
    assert messages[10] == "ConflictError: they contradict each other"
    problems = {(r["method"], r["amount"]): r for r in curves.summary()}
    assert problems["failing", 10]["problems"] == "infeasible 2"
    assert problems["failing", 10]["n"] == 0
    assert np.isnan(problems["failing", 10]["mean"])
    assert problems["truth", 10]["n"] == 2
    assert "8 without an answer" in repr(curves)
    assert all(np.isnan(row["accuracy"]) for row in curves.rows if row["method"] == "failing")


def test_warnings_are_noted_and_do_not_stop_a_run():
    import warnings

    def warning(X, constraints, n_clusters, random_state):
        warnings.warn("careful", RuntimeWarning, stacklevel=1)
        return np.zeros(len(X))

    (row,) = run([warning], [5], n_draws=1).rows
    assert (row["status"], row["warnings"]) == ("ok", "RuntimeWarning")


def test_an_interrupt_is_no_failure(tmp_path):
    def interrupted(X, constraints, n_clusters, random_state):
        raise KeyboardInterrupt

    path = tmp_path / "run.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run([truth, interrupted], path=path)
    assert len(read_curves(path).rows) == 1


def leaving(X, constraints, n_clusters, random_state):
    sys.exit(3)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_method_that_ends_the_program_has_failed(n_jobs):
    curves = run([leaving, truth], [5], n_draws=1, n_jobs=n_jobs)
    assert [row["status"] for row in curves.rows] == ["failed", "ok"]
    assert curves.rows[0]["message"] == "SystemExit: 3"


def test_a_careless_method_cannot_spoil_the_data_of_the_next():
    def careless(X, W, constraints, n_clusters):
        X[:] = 0
        W.data[:] = 1
        return np.zeros(len(X))

    data = {"d": (X.copy(), Y.copy())}
    alone, after = (
        run(["signed", "cpca"], [20], data, n_draws=1),
        run([careless, "signed", "cpca"], [20], data, n_draws=1),
    )
    assert_same_rows(alone.rows, [row for row in after.rows if row["method"] != "careless"])


def test_beyond_the_time_limit_larger_amounts_are_skipped(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_Clock, "_now", staticmethod(lambda: (now[0], now[0])))

    def slow_from_five(X, constraints, n_clusters, random_state):
        now[0] += 3.0 if constraints.n_pairs == 5 else 1.0
        return np.zeros(len(X))

    path = tmp_path / "run.jsonl"
    methods = [truth, ("slow", slow_from_five)]
    curves = run(methods, [0, 5, 10], n_draws=2, time_limit=2.5, path=path)
    status = {(r["method"], r["amount"]): r["status"] for r in curves.rows}
    assert status["slow", 0] == "ok"
    assert status["slow", 5] == "slow"
    assert status["slow", 10] == "skipped"
    assert {status["truth", amount] for amount in (0, 5, 10)} == {"ok"}
    lines = {(r["method"], r["amount"]): r for r in curves.summary("accuracy")}
    assert lines["slow", 5]["n"] == 2  # late, but an answer
    assert lines["slow", 5]["problems"] == "slow 2"
    assert lines["slow", 10]["problems"] == "skipped 2"
    assert curves.failures()[0]["message"] == "With amount 5 a fit took 3 s; the limit is 2.5 s."

    with pytest.warns(UserWarning, match="results of 'slow'"):
        again = run(methods, [0, 5, 10], n_draws=2, path=path, retry={"skipped"})
    assert {r["status"] for r in again.rows if r["amount"] == 10} == {"ok"}
    with pytest.warns(UserWarning, match="results of 'slow'"):
        assert_same_rows(again.rows, run(methods, [0, 5, 10], n_draws=2, path=path).rows)
    assert len(read_curves(path).rows) == 12


# What can be compared ------------------------------------------------------------------------


def test_keys_estimators_and_functions_give_the_same_answers():
    methods = [
        "signed",
        ("estimator", SignedCSC()),
        ("class", SignedCSC),
        ("function", signed_csc),
        (
            "by hand",
            lambda X, known, k, seed: (
                SignedCSC(k, random_state=seed).fit(X, constraints=known).labels_
            ),
        ),
    ]
    curves = run(methods, [0, 12], n_draws=1)
    assert {row["status"] for row in curves.rows} == {"ok"}
    for name in ("estimator", "class", "function", "by hand"):
        mine = [row | {"method": "signed"} for row in curves.rows if row["method"] == name]
        assert_same_rows([row for row in curves.rows if row["method"] == "signed"], mine)


def test_estimators_of_others_and_pipelines():
    import sklearn

    methods = {
        "kmeans": KMeans(n_init=2),
        "scaled": make_pipeline(StandardScaler(), KMeans(n_init=2)),
    }
    y = np.arange(40) // 10
    curves = run({"kmeans": methods["kmeans"]}, [0, 20], {"corners": (X, y)}, n_draws=1)
    assert [row["adjusted_rand"] for row in curves.rows] == [1.0, 1.0]  # four clusters were asked
    unrouted = run({"scaled": methods["scaled"]}, [5], {"corners": (X, y)}, n_draws=1)
    assert unrouted.rows[0]["status"] == "failed"  # nobody drops constraints in silence
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), SignedCSC().set_fit_request(constraints=True))
        routed = run({"scaled": model}, [20], {"corners": (X, y)}, n_draws=1)
        expected = SignedCSC(4, random_state=0).fit(
            StandardScaler().fit_transform(X), constraints=draw_constraints(y, 20, data="corners")
        )
    assert routed.rows[0]["status"] == "ok"
    assert routed.rows[0]["adjusted_rand"] == adjusted_rand_score(y, expected.labels_)


def test_the_graph_is_built_once_and_shared():
    class Counting(Affinity):
        built = 0

        def fit_transform(self, X, y=None):
            type(self).built += 1
            return super().fit_transform(X)

    graphs = []

    def on_graph(W, constraints, n_clusters):
        graphs.append(W)
        return np.arange(40) % n_clusters

    builder = Counting(5)
    curves = run(["signed", "e2cp", ("w", on_graph)], [0, 5], affinity=builder, n_draws=2)
    assert Counting.built == 1
    expected = Affinity(5).fit_transform(X)
    for W in graphs:
        assert (expected != W).nnz == 0
    assert {row["status"] for row in curves.rows} == {"ok"}

    Counting.built = 0
    run([truth, "cpca"], [5], affinity=builder, metrics=["accuracy"])
    assert Counting.built == 0  # nobody needs it


def test_rows_do_not_depend_on_the_fits_before_them():
    def scores(methods):
        rows = run(methods, [5, 10], n_draws=2).rows
        return {(r["method"], r["amount"], r["draw"]): r["ncut"] for r in rows}

    together = scores(["csc", "e2cp"])
    assert scores(["e2cp", "csc"]) == together
    assert together == scores(["csc"]) | scores(["e2cp"])


def test_an_affinity_of_ones_own_is_kept():
    own = SignedCSC(affinity=Affinity(4))
    curves = run([("own", own), "signed"], [15], n_draws=1)
    known = draw_constraints(Y, 15, data="xor")
    labels = SignedCSC(2, affinity=Affinity(4), random_state=0).fit(X, constraints=known).labels_
    assert curves.rows[0]["adjusted_rand"] == adjusted_rand_score(Y, labels)
    assert own.affinity is not None


def test_a_method_that_needs_features_and_graph_gets_the_features():
    def both(X, W, constraints, n_clusters):
        assert X.shape == (40, 2)
        return Result(np.arange(40) % n_clusters)

    class Both(ConstrainedClusterer):
        solve = staticmethod(both)

        def __init__(self, n_clusters=2, *, affinity=None):
            self.n_clusters = n_clusters
            self.affinity = affinity

    curves = run([("both", Both())], [15], n_draws=1)
    assert [row["status"] for row in curves.rows] == ["ok"], curves.failures()


def test_data_that_are_only_a_graph():
    W = Affinity().fit_transform(X)
    graph = {"graph": Problem(None, Y, W=W)}
    curves = run(["signed", "cpca", truth], [15], graph, n_draws=1)
    assert [row["status"] for row in curves.rows] == ["ok", "failed", "failed"]
    assert "needs the features X" in curves.rows[1]["message"]
    alone = run(["auto"], [15], graph, n_draws=1)  # which takes features, where there are any
    assert alone.rows[0]["status"] == "ok"
    features = run(["signed"], [15], {"graph": (X, Y)}, n_draws=1)
    assert curves.rows[0]["adjusted_rand"] == features.rows[0]["adjusted_rand"]
    assert curves.rows[0]["ncut"] == pytest.approx(features.rows[0]["ncut"])


@pytest.mark.parametrize("key", METHODS)
def test_every_registered_method_can_be_entered(key):
    # Labels of both classes: what every method can use.
    curves = run([key], [0, 6], kind="per_class", n_draws=1)
    assert [row["status"] for row in curves.rows] == ["ok", "ok"], curves.failures()
    assert all(row["warnings"] == "" for row in curves.rows)
    assert not np.isnan([row[name] for row in curves.rows for name in METRICS]).any()


def test_more_clusters_than_classes_can_be_asked_for():
    curves = run(["ncut"], [0], {"four": Problem(X, Y, n_clusters=4)}, n_draws=1)
    assert curves.rows[0]["n_clusters"] == 4
    assert curves.rows[0]["clustering_error"] == 0.0


def test_classes_may_be_words_and_data_a_bunch():
    from sklearn.utils import Bunch

    words = np.where(Y == 0, "even", "odd")
    plain = run(["sclc"], [9], {"d": (X, Y)})
    for given in ((X, words), Bunch(data=X, target=Y), Problem(X.tolist(), words.tolist())):
        assert_same_rows(plain.rows, run(["sclc"], [9], {"d": given}).rows)


def test_loaded_data_bring_their_names():
    class Loaded:
        name, X, y = "xor", X, Y

    plain = run(["sclc"], [9])
    for given in ([Loaded()], Loaded(), {"xor": Loaded()}):
        assert_same_rows(plain.rows, run(["sclc"], [9], given).rows)
    with pytest.raises(ValueError, match="the same name"):
        run(["sclc"], [9], [Loaded(), Loaded()])
    with pytest.raises(TypeError, match="data sets that have a name"):
        run(["sclc"], [9], [(X, Y)])


@pytest.mark.parametrize(
    ("data", "methods", "error", "message"),
    [
        ({}, ["ncut"], ValueError, "no data set"),
        ({"d": X}, ["ncut"], TypeError, r"Data set 'd' must be \(X, y\)"),
        ({"d": (X, Y[:5])}, ["ncut"], ValueError, "Data set 'd': X must have one row per sample"),
        ({"d": (X, np.full(40, np.nan))}, ["ncut"], ValueError, r"y\[0\] is nan"),
        ({"d": (X, Y)}, [], ValueError, "There is no method"),
        ({"d": (X, Y)}, ["ncuts"], ValueError, "Did you mean 'ncut'"),
        ({"d": (X, Y)}, ["ncut", ("ncut", truth)], ValueError, "Two methods are called 'ncut'"),
        ({"d": (X, Y)}, [("n", 3)], TypeError, "an estimator with fit_predict, or a function"),
    ],
)
def test_wrong_data_and_methods_are_refused(data, methods, error, message):
    with pytest.raises(error, match=message):
        run(methods, [5], data)


def never(X, constraints, n_clusters, random_state):
    pytest.fail("a fit was started")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gap_in_one_data_set_is_named_before_anything_runs(value):
    gap = X.copy()
    gap[7, 1] = value
    for given in (gap, csr_array(gap)):
        with pytest.raises(ValueError, match=r"Data set 'b': X\[7, 1\] is (nan|inf)"):
            run([("never", never)], [5], {"a": (X, Y), "b": (given, Y)})
    # Without the graph of these data, it is up to the methods.
    with_graph = {"b": Problem(gap, Y, W=Affinity().fit_transform(X))}
    assert run(["signed"], [5], with_graph, n_draws=1).rows[0]["status"] == "ok"
    alone = run([one_cluster], [5], {"b": (gap, Y)}, n_draws=1, metrics=["accuracy"])
    assert alone.rows[0]["accuracy"] == 0.5


def test_a_graph_that_cannot_be_built_is_of_a_data_set_with_a_name():
    words = np.array([["a", "b"]] * 40)
    with pytest.raises(ValueError, match="Data set 'words': "):
        run(["signed"], [5], {"words": (words, Y)})


def test_one_class_is_refused_by_name():
    for alone in ((X, np.ones(40)), (X, ["a"] * 40), Problem(X, np.zeros(40), n_clusters=2)):
        with pytest.raises(ValueError, match="Data set 'b': all 40 samples are of one class"):
            run([("never", never)], [0], {"a": (X, Y), "b": alone})


def test_tiny_data():
    for n in (2, 3, 4):
        y = np.arange(n) % 2
        curves = run(
            [truth_of(y), "signed", "cut", "cpca"], [0, 1], {"d": (np.eye(n), y)}, n_draws=1
        )
        assert {r["status"] for r in curves.rows if r["method"] == "truth"} == {"ok"}
        curves.summary()
        curves.summary("free_accuracy")
        curves.stability()


def truth_of(y):
    return "truth", lambda X, constraints, n_clusters, random_state: y


# Twice, in parallel, interrupted ------------------------------------------------------------


COMPARED = ["sclc", by_luck, failing]


def test_the_same_numbers_twice():
    one, other = run(COMPARED), run(COMPARED)
    assert_same_rows(one.rows, other.rows)
    changed = run(COMPARED, random_state=1)
    assert untimed(one.rows) != untimed(changed.rows)
    spread = {(r["method"], r["amount"]): r["std"] for r in one.summary()}
    assert spread["by_luck", 0] > 0


def test_the_same_numbers_in_parallel(tmp_path):
    methods = [*COMPARED, "cpca", ("inline", lambda X, known, k, seed: np.arange(40) % k)]
    alone = run(methods, [0, "10%", 60], n_draws=2, path=tmp_path / "one.jsonl")
    many = run(methods, [0, "10%", 60], n_draws=2, path=tmp_path / "two.jsonl", n_jobs=2)
    assert_same_rows(alone.rows, many.rows)
    one, two = (untimed_lines(tmp_path / f"{name}.jsonl") for name in ("one", "two"))
    assert one == two


def untimed_lines(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    timed = {*CLOCKS, "check"}
    return [json.dumps({k: v for k, v in r.items() if k not in timed}) for r in records]


def without_checks(path):
    """Make it a file of an older version."""
    path.write_text(re.sub(r', "check": "\w{8}"', "", path.read_text()))


def test_the_file_gives_the_rows_back(tmp_path):
    path = tmp_path / "deep" / "run.jsonl"
    curves = run(COMPARED, path=path)
    assert_same_rows(curves.rows, read_curves(path).rows)
    assert [row["seconds"] for row in curves.rows] == [r["seconds"] for r in read_curves(path).rows]
    assert read_curves(path).settings == curves.settings
    before = path.read_bytes()
    again = run([("by_luck", by_luck)], path=path)  # all there: nothing is done
    assert path.read_bytes() == before
    assert [r["method"] for r in again.rows] == ["by_luck"] * 9


LUCK = """
import time
import numpy as np

PAUSE = 0.0

def by_luck(X, constraints, n_clusters, random_state):
    time.sleep(PAUSE)
    # In memory the order of these words differs from process to process.
    assert not any(word in {"one", "two", "three", "four", "five"} for word in ("six", "seven"))
    return np.random.RandomState(random_state).randint(n_clusters, size=len(X))
"""
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
import luck
from linkwise.datasets import make_xor
from linkwise.evaluate import learning_curve

luck.PAUSE = 0.5
learning_curve(
    {"xor": make_xor(random_state=0)}, ["sclc", ("by_luck", luck.by_luck)], [0, 5, 10],
    n_draws=4, path=sys.argv[1], progress=False,
)
"""


def wait_for_lines(process, path, n_lines):
    for _ in range(600):
        if path.exists() and path.read_bytes().count(b"\n") >= n_lines:
            return
        assert process.poll() is None, "the run ended by itself"
        time.sleep(0.1)
    pytest.fail("the run wrote nothing for a minute")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL and no locks there")
def test_a_killed_run_continues_and_a_running_one_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "luck.py").write_text(LUCK)
    killed = tmp_path / "killed.jsonl"
    command = [sys.executable, "-c", SCRIPT, str(killed), str(tmp_path)]
    with subprocess.Popen(command, env=os.environ | {"PYTHONHASHSEED": "1"}) as process:
        try:
            wait_for_lines(process, killed, 6)
            with pytest.raises(RuntimeError, match="Another run is writing"):
                run([truth], path=killed)
        finally:
            os.kill(process.pid, signal.SIGKILL)
    kept = killed.read_bytes()
    assert 6 <= kept.count(b"\n") < 25
    monkeypatch.syspath_prepend(tmp_path)
    methods = ["sclc", ("by_luck", import_module("luck").by_luck)]
    run(methods, n_draws=4, path=killed)
    assert killed.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])  # nothing done twice
    whole = tmp_path / "whole.jsonl"
    run(methods, n_draws=4, path=whole)
    assert untimed_lines(killed) == untimed_lines(whole)  # the description of the code, too
    assert len(untimed_lines(whole)) == 1 + 3 * 4 * 2


def test_a_torn_line_is_computed_again(tmp_path):
    path = tmp_path / "run.jsonl"
    curves = run(COMPARED, path=path)
    whole = path.read_bytes()
    expected = untimed_lines(path)
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for length in (len(whole) - 1, len(whole) - 30, last + 1, last, 200, 20, 0):
        path.write_bytes(whole[:length])
        assert_same_rows(curves.rows, run(COMPARED, path=path).rows)
        assert untimed_lines(path) == expected


def test_a_torn_file_can_be_read_and_is_left_alone(tmp_path):
    path = tmp_path / "run.jsonl"
    run(COMPARED, path=path)
    torn = path.read_bytes()[:-10]
    path.write_bytes(torn)
    assert len(read_curves(path).rows) == 9 * len(COMPARED) - 1
    assert path.read_bytes() == torn
    path.write_bytes(torn[:30])
    with pytest.raises(ValueError, match="stopped before it began"):
        read_curves(path)


def test_damage_elsewhere_is_reported(tmp_path):
    path = tmp_path / "run.jsonl"
    run([truth], path=path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:3], "what\n", *lines[4:]]))
    with pytest.raises(ValueError, match="line 4 is damaged"):
        run([truth], path=path)


def rows_or_refusal(path):
    try:
        return read_curves(path).rows
    except ValueError as error:
        assert re.search(r"line \d+ is damaged|not the file of a learning curve", str(error))  # noqa: PT017
        return None


def test_a_changed_byte_is_named_or_harmless(tmp_path):
    path, rng = tmp_path / "run.jsonl", np.random.default_rng(0)
    rows = run([truth], [5, 6], path=path, n_draws=1).rows
    whole = path.read_bytes()
    named = 0
    for at in range(len(whole)):
        other = whole[at] ^ int(rng.integers(1, 256))
        for byte in {other, ord("\n"), ord("1"), ord('"')} - {whole[at]}:
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            read = rows_or_refusal(path)
            assert read is None or repr(read) == repr(rows), (at, byte)
            named += read is None
    assert named > 3 * len(whole) - 20


def test_lines_that_are_lost_are_computed_again_and_swapped_ones_are_the_same(tmp_path):
    path = tmp_path / "run.jsonl"
    curves = run([truth], path=path)
    first, second, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([first, *rest[::-1]]))
    assert_same_rows(curves.rows, run([truth], path=path).rows)
    path.write_text("".join([second, first, *rest]))
    with pytest.raises(ValueError, match="not the file of a learning curve"):
        run([truth], path=path)


def test_files_of_older_versions_have_no_checksums_and_get_none(tmp_path):
    path = tmp_path / "run.jsonl"
    curves = run([truth], path=path)
    without_checks(path)
    old = path.read_bytes()
    assert b"check" not in old
    assert_same_rows(curves.rows, read_curves(path).rows)
    path.write_bytes(old[: old.rstrip(b"\n").rfind(b"\n") + 1])
    assert_same_rows(curves.rows, run([truth], path=path).rows)
    assert b"check" not in path.read_bytes()
    assert_same_rows(curves.rows, read_curves(path).rows)


def test_a_foreign_file_is_left_alone(tmp_path):
    path = tmp_path / "thesis.tex"
    path.write_text("years of work")
    with pytest.raises(ValueError, match="not the file of a learning curve"):
        run([truth], path=path)
    assert path.read_text() == "years of work"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"random_state": 1}, "random_state is 0 there, and 1 now"),
        ({"kind": "labels"}, "kind is 'pairs' there, and 'labels' now"),
        ({"nested": True}, "nested is False there, and True now"),
        ({"metrics": ["accuracy"]}, "metrics is"),
        ({"affinity": Affinity(3)}, "affinity is .*neighbors=10.* there, and .*neighbors=3"),
        ({"methods": [("signed", SignedCSC(gamma=0.1))]}, r"methods\['signed'\] is .*gamma=0.1"),
        ({"methods": [("signed", truth)]}, r"methods\['signed'\] is .*SignedCSC.* and .*truth"),
        ({"datasets": {"xor": (X + 1, Y)}}, r"data\['xor'\] is"),
        ({"datasets": {"xor": (X, 1 - Y)}}, r"data\['xor'\] is"),
        ({"datasets": {"xor": Problem(X, Y, n_clusters=3)}}, r"data\['xor'\] is"),
    ],
)
def test_other_settings_are_refused(tmp_path, changed, message):
    path = tmp_path / "run.jsonl"
    run(["signed"], [0], path=path, n_draws=1)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        run(changed.pop("methods", ["signed"]), [0], path=path, n_draws=1, **changed)
    assert path.read_bytes() == before


def test_methods_data_amounts_and_draws_may_be_added(tmp_path):
    path = tmp_path / "run.jsonl"
    run(["ncut"], [0, 5], path=path, n_draws=1)
    more = {"xor": (X, Y), "other": (X[::-1].copy(), Y)}
    grown = run(["sclc", by_luck, "ncut"], [0, 5, 10], more, path=path, n_draws=2)
    assert_same_rows(grown.rows, run(["sclc", by_luck, "ncut"], [0, 5, 10], more, n_draws=2).rows)
    with pytest.raises(ValueError, match=r"methods\['by_luck'\]"):  # what was added counts, too
        run([("by_luck", truth)], path=path)
    assert len(read_curves(path).rows) == 36


def test_what_was_added_to_a_file_is_read_as_well(tmp_path):
    path = tmp_path / "run.jsonl"
    more = {"xor": (X, Y), "other": (X[::-1].copy(), Y)}
    run([truth], [0], path=path, n_draws=1)
    run([by_luck], [0], more, path=path, n_draws=1)
    added = run([truth, by_luck], [0], more, path=path, n_draws=1)
    assert read_curves(path).settings == added.settings
    assert set(read_curves(path).settings["methods"]) == {"truth", "by_luck"}


# The code of functions -----------------------------------------------------------------------


def compiled(source, name="f", **outside):
    """Return a function of one and the same module and name, whatever its code."""
    space = {"__name__": "notebook", **outside}
    exec(source, space)
    return space[name]


SIGNATURE = "def f(X, constraints, n_clusters, random_state{}):"
ALIKE = SIGNATURE.format("") + "\n    return [i % 2 for i in range(len(X))]"
CHANGED = [
    ALIKE.replace("% 2", "% 3"),
    ALIKE.replace("% 2", "// 2"),
    ALIKE.replace("len(", "max("),
    ALIKE.replace("i % 2", "(lambda a: a % 2)(i)"),
    ALIKE.replace("random_state)", "random_state, depth=3)"),
    ALIKE.replace("random_state)", "random_state, *, depth=3)"),
]


@pytest.mark.parametrize("changed", CHANGED)
def test_results_of_other_code_are_refused(tmp_path, changed):
    path = tmp_path / "run.jsonl"
    run([("f", compiled(ALIKE))], [0], path=path, n_draws=1)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"methods\['f'\] is .*notebook\.f \(code"):
        run([("f", compiled(changed))], [0], path=path, n_draws=1)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "same",
    [
        "\n\n# A word about it.\n" + ALIKE,
        ALIKE.replace(":\n", ":\n    'What it does.'\n"),
    ],
)
def test_words_about_code_are_no_code(tmp_path, same):
    path = tmp_path / "run.jsonl"
    run([("f", compiled(ALIKE))], [0], path=path, n_draws=1)
    run([("f", compiled(same))], [0], path=path, n_draws=1)


def test_parts_of_a_function_are_seen():
    class Thing:
        def __call__(self, X):
            return X

        def method(self, X):
            return X

    def decorated(function):
        @wraps(function)
        def wrapper(*given):
            return function(*given)

        return wrapper

    first, second = compiled("def f(X): return 1"), compiled("def f(X): return 2")
    assert described(decorated(first)) != described(decorated(second))
    assert described(partial(first, 3)) != described(partial(second, 3))
    for thing in (Thing(), Thing().method, partial(first, 3)):
        assert "(code " in described(thing)
        assert "closure" not in described(thing)
    assert described(len) == "builtins.len"


def test_what_a_function_takes_from_outside_is_warned_of(tmp_path):
    path = tmp_path / "run.jsonl"

    def shifted(shift):
        return lambda X, constraints, n_clusters, random_state: (np.arange(len(X)) + shift) % 2

    def sampler(y, amount, random_state):
        return Constraints(y.size + 0 * len(path.name))

    run([("f", shifted(0)), truth], [5], path=path, n_draws=1)
    with pytest.warns(UserWarning, match=r"run.jsonl holds results of 'f'\. Of a function only"):
        run([("f", shifted(1)), truth], [5], path=path, n_draws=1)
    run([truth], [5, 6], path=path, n_draws=1)  # no such function: no warning
    run([("g", shifted(1))], [5], path=path, n_draws=1)  # new in the file
    other = tmp_path / "other.jsonl"
    run([truth], [5], path=other, n_draws=1, kind=sampler)
    with pytest.warns(UserWarning, match="results of kind"):
        run([truth], [5], path=other, n_draws=1, kind=sampler)


def test_files_that_know_functions_by_name_go_on_with_a_warning(tmp_path):
    path = tmp_path / "run.jsonl"
    run([truth], [5], path=path, n_draws=1)
    path.write_text(re.sub(r" \(code \w+\)", "", path.read_text()))
    without_checks(path)
    with pytest.warns(UserWarning, match="in older files only the name"):
        run([truth], [5, 6], path=path, n_draws=1)
    with pytest.raises(ValueError, match=r"methods\['truth'\]"):
        run([("truth", by_luck)], [5], path=path, n_draws=1)


# Showing ------------------------------------------------------------------------------------


def test_tables_print_and_are_written(tmp_path):
    curves = run([truth, failing], [5], n_draws=2)
    text = str(curves.summary("accuracy")).splitlines()
    assert len({line.index("accuracy") for line in text[1:]}) == 1
    assert text[0].split()[:3] == ["data", "method", "amount"]
    assert max(map(len, str(curves.failures()).splitlines())) < 140
    assert str(Table()) == "(no rows)"
    pandas = pytest.importorskip("pandas")
    curves.to_csv(tmp_path / "rows.csv")
    exact = {"keep_default_na": False, "na_values": ["nan"], "float_precision": "round_trip"}
    read = pandas.read_csv(tmp_path / "rows.csv", **exact)
    pandas.testing.assert_frame_equal(read, curves.to_frame(), check_dtype=False, check_exact=True)
    assert curves.summary().to_frame()["n"].tolist() == [2, 0]


def test_tables_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "rows.csv"
    Table([{"a": 1}]).to_csv(path)
    with pytest.raises(ValueError, match="fields"):
        Table([{"a": 2}, {"b": 3}]).to_csv(path)
    assert path.read_text() == "a\n1\n"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match=r"missing.rows\.csv"):
        Table().to_csv(tmp_path / "missing" / "rows.csv")


def test_progress_is_an_occasional_line_unless_silenced(capsys, monkeypatch):
    monkeypatch.setattr("linkwise.evaluate.progress.SECONDS_BETWEEN_LINES", 0.0)
    run([truth, failing], [5], n_draws=1, progress=True)
    assert "2 of 2 fits in 0 s, 1 without an answer" in capsys.readouterr().err
    run([truth], [5], n_draws=1, progress=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("linkwise.evaluate.progress.SECONDS_BETWEEN_LINES", 30.0)
    run([truth], [5], n_draws=1, progress=True)
    assert capsys.readouterr().err == ""


def test_progress_is_a_bar_in_a_terminal(capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    run([truth, failing], [5], n_draws=2, progress=True)
    shown = capsys.readouterr().err
    assert "4/4" in shown
    assert "failed=2" in shown


@cache
def four_curves():
    data = dict.fromkeys("abcd", (X, Y))
    return run([truth, by_luck, failing], [0, 5], data, n_draws=2, metrics=["accuracy"])


# Older matplotlib calls names that newer pyparsing has deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("spread", ["sem", "std", "quartiles", "none"])
def test_curves_are_drawn(spread):
    pytest.importorskip("matplotlib")
    curves = four_curves()
    figure = draw_curves(curves, "accuracy", spread=spread)
    shown = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in shown] == ["a", "b", "c", "d"]
    drawn = {line.get_label(): line.get_ydata() for line in shown[0].lines}
    lines = curves.summary("accuracy")
    means = [r["mean"] for r in lines if (r["data"], r["method"]) == ("a", "by_luck")]
    assert_array_equal(drawn["by_luck"], means)
    assert len(shown[0].collections) == (0 if spread == "none" else 3)
    figure.canvas.draw()


def test_a_picture_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="spread must be"):
        draw_curves(toy({("a", 5): [0.5]}), spread="range")


def test_cuts_are_the_metrics_that_need_the_graph():
    from linkwise.metrics import scores

    without = scores(Y, Y, constraints=Constraints(40))
    assert set(METRICS) - set(without) == set(CUTS)


@pytest.mark.parametrize("settings", ["", ', "settings": 3', ', "settings": {}'])
def test_a_file_without_settings_is_damaged(tmp_path, settings):
    path = tmp_path / "curve.jsonl"
    path.write_text(f'{{"file": "linkwise learning curve, format 1"{settings}}}\n')
    with pytest.raises(ValueError, match="line 1 is damaged"):
        read_rows(path)
    path.write_text('{"file": "linkwise learning curve, format 1"' + "[" * 100_000 + "\n")
    with pytest.raises(ValueError, match="line 1 is damaged"):
        read_rows(path)
