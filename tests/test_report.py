"""The report: its numbers are right, its page is safe and complete, a browser draws it."""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import block_diag, csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_score

from linkwise import (
    Affinity,
    Auto,
    Constraints,
    NCut,
    Prepared,
    Result,
    SignedCSC,
    metrics,
    plots,
)
from linkwise.datasets import make_xor

pytest.importorskip("jinja2", reason="the report needs the extra 'report'")

from linkwise import report
from linkwise.report import (
    describe,
    numbers,
    page,
    pairs,
    palette,
    render_report,
    spectrum,
    values,
    write_report,
)
from linkwise.report import map as maps
from linkwise.report.features import Features
from linkwise.report.inputs import Inputs, Partition
from linkwise.report.text import plain

NASTY = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted\" & 'single'",
    "{{ 7 * 7 }}",
    "\u05e9\u05dc\u05d5\u05dd \u202eabc",
    "\U0001f469\u200d\U0001f52c",
    "line\u2028separator",
    "\ud800 lone surrogate",
    "nul\x00 and bell\x07",
    "x" * 5_000,
    "",
    "]]><!--",
]


def given(**arguments):
    """Return the checked input of a report."""
    names = (
        "X",
        "W",
        "constraints",
        "result",
        "ids",
        "feature_names",
        "feature_values",
        "cluster_names",
        "parameters",
        "truth",
    )
    return Inputs.of(dict.fromkeys(names) | arguments)


def blobs(n=60, k=3, seed=0):
    return make_blobs(n, 4, centers=k, cluster_std=2.0, random_state=seed)


def path_graph(n):
    line = np.diag(np.ones(n - 1), 1)
    return csr_array(line + line.T)


class Parsed(HTMLParser):
    """The elements of a page, the text of each script, and all visible text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.words, self.inside = [], [], [], None
        self.feed(text)
        self.close()
        self.text = re.sub(r"\s+", " ", "".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside = tag
            if tag == "script":
                self.scripts.append([dict(attrs), ""])

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1][1] += data
        elif self.inside is None:
            self.words.append(data)

    @property
    def data(self):
        return next(json.loads(text) for attrs, text in self.scripts if attrs.get("id"))


# ---------------------------------------------------------------------------------------------
# Numbers
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [csr_array, np.asarray], ids=["sparse", "dense"])
def test_the_shares_of_the_clusters_add_up_to_the_normalised_cut(form):
    X, y = blobs()
    W = form(Affinity().fit_transform(X).toarray())
    cuts = numbers.cluster_cuts(W, Partition.of(y, "labels"))
    assert_allclose(cuts.share.sum(), metrics.ncut(W, y))
    assert_allclose(cuts.lost.sum() / 2, metrics.cut(W, y))
    for c in range(3):
        dense = np.asarray(csr_array(W).toarray())
        assert_allclose(cuts.lost[c], dense[np.ix_(y == c, y != c)].sum())


def test_isolated_vertices_and_a_single_cluster_lose_nothing():
    W = csr_array(block_diag([path_graph(3).toarray(), np.zeros((1, 1))]))
    cuts = numbers.cluster_cuts(W, Partition.of([0, 0, 0, 1], "labels"))
    assert_array_equal(cuts.share, [0, 0])
    assert numbers.cluster_cuts(W, Partition.of([5] * 4, "labels")).share.tolist() == [0.0]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_silhouette_is_that_of_scikit_learn_at_any_scale(scale):
    X, y = blobs()
    found = numbers.silhouette(scale * X, Partition.of(y, "labels"), np.random.RandomState(0))
    assert_allclose(found.mean, silhouette_score(X, y))
    assert found.n_used == 60


def test_a_sampled_silhouette_weighs_clusters_by_their_true_size(monkeypatch):
    monkeypatch.setattr(numbers, "SILHOUETTE_SAMPLES", 300)
    rng = np.random.RandomState(0)
    # A large loose cluster, and small tight ones of which the sample has too many.
    tight = [rng.normal(5 + c, 0.01, (10, 2)) for c in range(30)]
    X = np.concatenate([rng.normal(size=(3_000, 2)), *tight])
    y = np.concatenate((np.zeros(3_000, int), np.repeat(np.arange(1, 31), 10)))
    found = numbers.silhouette(X, Partition.of(y, "labels"), rng)
    assert 500 <= found.n_used <= 600
    assert abs(found.mean - silhouette_score(X, y)) < 0.03


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2]], ids=["one cluster", "all alone"])
def test_there_is_no_silhouette_of_one_cluster_or_of_single_samples(labels):
    clusters = Partition.of(labels, "labels")
    assert numbers.silhouette(np.eye(3), clusters, np.random.RandomState(0)) is None


def features_by_loops(values, y, c):
    """Slow twin: standardised difference of the means, one column at a time."""
    gaps = {}
    for f in range(values.shape[1]):
        column = values[:, f]
        known = ~np.isnan(column)
        here, others = column[known & (y == c)], column[known & (y != c)]
        if here.size and others.size and column[known].std() > 0:
            gaps[f] = (
                (here.mean() - others.mean()) / column[known].std(),
                here.mean(),
                others.mean(),
            )
    return gaps


@pytest.mark.parametrize("block", [10, 10_000])
def test_features_are_ranked_by_their_standardised_difference(block, monkeypatch):
    monkeypatch.setattr(describe, "FEATURE_BLOCK", block)
    rng = np.random.RandomState(0)
    y = rng.randint(3, size=50)
    values = rng.normal(size=(50, 14)) + y[:, None] * np.arange(14) / 7
    values[rng.uniform(size=values.shape) < 0.1] = np.nan
    values[:, 3], values[y == 1, 5] = 7.0, np.nan
    names = [f"f{i}" for i in range(14)]
    found = describe.cluster_features(Features(values, names), Partition.of(y, "labels"))
    assert found.n_constant == 1
    for c in range(3):
        twin = features_by_loops(values, y, c)
        expected = sorted(twin, key=lambda f: -abs(twin[f][0]))[: describe.TOP_FEATURES]
        assert [row.name for row in found.top[c]] == [names[f] for f in expected]
        assert_allclose([row[1:4] for row in found.top[c]], [twin[f] for f in expected])


@pytest.mark.parametrize("scale", [1e-300, 1e150, 1e300])
def test_tiny_and_huge_units_do_not_change_the_differences(scale):
    X, y = blobs()
    clusters = Partition.of(y, "labels")
    plain_units = describe.cluster_features(Features.of(X, None, 60), clusters)
    scaled = describe.cluster_features(Features.of(scale * X, None, 60), clusters)
    for a, b in zip(itertools.chain(*plain_units.top), itertools.chain(*scaled.top), strict=True):
        assert a.name == b.name
        assert_allclose([a.difference, a.inside], [b.difference, b.inside / scale], rtol=1e-9)


def test_sparse_features_are_described_like_dense_ones():
    X, y = blobs()
    X[X < 1] = 0
    clusters = Partition.of(y, "labels")
    dense = describe.cluster_features(Features.of(X, None, 60), clusters)
    sparse = describe.cluster_features(Features.of(csr_array(X), None, 60), clusters)
    for a, b in zip(itertools.chain(*dense.top), itertools.chain(*sparse.top), strict=True):
        assert a.name == b.name
        assert_allclose(a[1:4], b[1:4], rtol=1e-12)


def test_money_dates_and_categories_describe_clusters_and_texts_do_not():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "price": ["$1,200", "$1,300.50", "$90", None] * 5,
            "since": ["2020-01-01", "2020-01-03", "2022-06-01", "2022-06-03"] * 5,
            "colour": pandas.Categorical(["red", "red", "blue", None] * 5),
            "n": [1, 2, 3, 4] * 5,
            "seen": pandas.to_datetime(["2021-01-01", "2021-01-01", "2021-01-02", None] * 5),
            "comment": [f"text {i}" for i in range(20)],
        }
    )
    found = Features.of(frame, None, 20)
    assert found.names == ["price", "since", "n", "seen"]
    assert [found.names[at] for at in sorted(found.dates)] == ["since", "seen"]
    assert [one.name for one in found.categories] == ["colour"]
    assert [one.name for one in found.texts] == ["comment"]
    top = describe.cluster_features(found, Partition.of([0, 0, 1, 1] * 5, "labels")).top[0]
    rows = {row.name: row for row in top}
    assert rows["price"].inside == pytest.approx(1250.25)
    assert page.value(rows["since"].inside, "date") == "2020-01-02"
    assert (rows["colour"].category, rows["colour"].inside, rows["colour"].outside) == ("red", 1, 0)
    text = Parsed(render_report(labels=[0, 0, 1, 1] * 5, feature_values=frame)).text
    assert "Left out is 1 column of texts that hardly repeat" in text
    assert "colour: red" in text
    assert "2020-01-02" in text


def test_sentences_describe_clusters_by_their_words():
    """A word is a feature that a text has or not: its share by loops."""
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], 20)
    own, common = ["kettle", "shoes", "seeds"], ["black", "new", "small", "large"]
    texts = [
        " ".join([*rng.choice(common, 3), own[cls] if rng.rand() < 0.8 else "thing", str(k)])
        for k, cls in enumerate(y)
    ]
    found = Features.of({"text": texts}, None, 60)
    assert found.n_left_out == 0
    top = describe.cluster_features(found, Partition.of(y, "labels")).top
    for cls in range(3):
        first = top[cls][0]
        assert (first.name, first.category, first.is_word) == ("text", own[cls], True)
        for row in top[cls]:
            has = np.array([row.category in text.split() for text in texts])
            inside, outside = has[y == cls].mean(), has[y != cls].mean()
            assert_allclose((row.inside, row.outside), (inside, outside))
            assert_allclose(row.difference, (inside - outside) / has.std())
            assert row.difference > 0
    text = Parsed(render_report(labels=y, feature_values={"text": texts})).text
    assert "text mostly with kettle" in " ".join(text.split())
    assert "texts that hardly repeat" not in text


def test_texts_of_which_no_word_is_there_twice_say_nothing():
    texts = [" ".join(chr(97 + k) * (2 + m) for m in range(3)) for k in range(12)]
    top = describe.cluster_features(
        Features.of({"text": texts}, None, 12), Partition.of([0, 1] * 6, "labels")
    ).top
    assert top == [[], []]


def shares_by_loops(codes, y, c):
    """Slow twin: standardised difference of the share of each category."""
    gaps = {}
    for value in np.unique(codes[codes >= 0]):
        is_value, known = codes == value, codes >= 0
        here, others = is_value[known & (y == c)].mean(), is_value[known & (y != c)].mean()
        gaps[value] = (here - others) / is_value[known].std(), here, others
    return gaps


def test_the_category_that_differs_most_is_shown():
    rng = np.random.RandomState(0)
    y, codes = rng.randint(3, size=200), rng.randint(-1, 4, size=200)
    texts = np.array(["a", "b", "c", "d", ""])[codes]
    found = describe.cluster_features(
        Features.of({"letter": texts}, None, 200), Partition.of(y, "labels")
    )
    for c in range(3):
        twin = shares_by_loops(codes, y, c)
        best = max(twin, key=lambda value: abs(twin[value][0]))
        assert found.top[c][0].category == "abcd"[best]
        assert_allclose(found.top[c][0][1:4], twin[best])


@pytest.mark.parametrize(
    "word", ["none", "None", "n/a", "unknown", "null", "missing", "-", "?", "NaT"]
)
def test_a_word_is_a_category_like_any_other(word):
    card = ["gold"] * 10 + ["silver"] * 10 + [word] * 20
    labels = [0] * 10 + [1] * 10 + [0] * 20
    found = Features.of({"card": np.array(card, dtype=object)}, None, 40)
    assert sorted(found.categories[0].texts) == sorted(["gold", "silver", word])
    described = describe.cluster_features(found, Partition.of(labels, "labels"))
    assert described.top[1][0][2:4] == (1, 0)  # silver here and elsewhere
    assert described.missing == {}
    text = Parsed(render_report(labels=labels, feature_values={"card": card})).text
    assert "mostly gold" not in text
    assert "Values are missing" not in text


def test_shares_are_of_the_samples_with_a_value_and_a_note_counts_the_others():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "card": pandas.array(["gold", "gold ", None, "none"] * 5, dtype="string"),
            "seat": ["aisle", "", "window", None] * 5,
            "n": [1.0, 2.0, np.nan, 4.0] * 5,
            "full": [1, 2, 3, 5] * 5,
        }
    )
    found = Features.of(frame, None, 20)
    assert [one.texts for one in found.categories] == [["gold", "none"], ["aisle", "window"]]
    clusters = Partition.of([0, 0, 0, 1] * 5, "labels")
    described = describe.cluster_features(found, clusters)
    assert described.missing == {"n": 5, "card": 5, "seat": 10}
    rows = {row.name: row for row in described.top[0]}
    assert rows["card"].inside in {0, 1}
    text = " ".join(Parsed(render_report(labels=clusters.codes, feature_values=frame)).text.split())
    note = r"Values are missing in n \(5 samples\), card \(5 samples\)"
    end = r"\. Means and shares are of the samples that have a value\."
    spaced = re.sub(r" ([,.;)])", r"\1", text).replace("( ", "(")
    assert re.search(note + end, spaced)
    assert re.search(note + r", seat \(10 samples\)" + end, spaced)
    many = {f"column {k}": [1.0, np.nan, 3.0] for k in range(10)}
    text = Parsed(render_report(labels=[0, 1, 1], feature_values=many)).text
    assert "and 2 other features" in text


def test_tables_may_be_mappings_and_object_arrays():
    columns = {"x": np.arange(4.0), "kind": np.array(["a", "a", "b", "b"])}
    by_mapping = Features.of(columns, None, 4)
    assert (by_mapping.names, by_mapping.categories[0].texts) == (["x"], ["a", "b"])
    mixed = np.array([[1, "a"], [2, "a"], [3, "b"], [4, "b"]], dtype=object)
    assert Features.of(mixed, ["x", "kind"], 4).names == ["x"]
    with pytest.raises(ValueError, match=r"column 'x'.*3"):
        Features.of({"x": np.arange(3.0)}, None, 4)


def test_who_the_clusters_are_is_said_at_the_top():
    table = {
        "visits": np.repeat([9.0, 1.0], 20) + np.tile([0.0, 0.1], 20),
        "category": np.repeat(["groceries", "toys"], 20),
        "noise": np.tile([0.0, 1.0], 20),
    }
    text = render_report(labels=np.repeat([0, 1], 20), feature_values=table)
    who = re.sub(r"<[^>]*>|\s+", " ", text.partition('class="who"')[2].partition("</ul>")[0])
    who = re.sub(r" +", " ", who)
    assert "high visits (9.05, others 1.05)" in who
    assert "category mostly groceries (100 %, others 0 %)" in who
    assert "noise" not in who
    assert text.index('class="who"') < text.index("<nav")
    alike = render_report(labels=np.tile([0, 1], 20), feature_values={"x": np.repeat([0, 1], 20)})
    assert alike.count("no feature sets it apart") == 2


def test_clusters_of_one_row_are_named():
    text = Parsed(render_report(labels=[0, 0, 0, 7], X=[[0.0], [0.1], [0.2], [9.0]])).text
    assert re.search(r"1 sample, 25 %\s*: only\s+3\b", text)
    ids = Parsed(render_report(labels=[0, 0, 0, 7], ids=["a", "b", "c", "Bob"])).text
    assert re.search(r": only\s+Bob\b", ids)


def test_clusters_have_given_names():
    text = Parsed(render_report(labels=[5, 5, 7], cluster_names={5: "regulars"})).text
    assert "regulars" in text
    assert given(labels=["b", "a", "a"], cluster_names=["first", "second"]).clusters.names == [
        "first",
        "second",
    ]
    for wrong, message in (
        ({9: "x"}, "names 9"),
        (["one"], "has 1 names"),
        (["x", "x"], "'x' twice"),
    ):
        with pytest.raises(ValueError, match=message):
            render_report(labels=[5, 5, 7], cluster_names=wrong)


def test_the_first_map_is_the_one_that_separates_the_clusters():
    rng = np.random.RandomState(0)
    y = np.tile([0, 1, 2], 100)
    X = rng.normal(size=(300, 6)) * [20, 20, 20, 1, 1, 1]
    X[:, 3:5] += 8 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    inputs = given(labels=y, X=X)
    made = maps.draw_map(
        inputs,
        spectrum.graph_spectrum(inputs, rng),
        pairs.drawn_pairs(inputs, None),
        rng=np.random.RandomState(0),
    )
    assert [view.name for view in made.views] == ["Differences", "Principal axes"]
    # Dots are no better than clusters that are clearly apart: the features as they are come first.
    Z = 5 * np.eye(2)[np.tile([0, 1], 30)] + 0.5 * rng.normal(size=(60, 2))
    apart = given(labels=np.tile([0, 1], 30), X=Z, W=Affinity().fit_transform(Z))
    views = maps._best_first(
        maps._placements(apart, spectrum.graph_spectrum(apart, rng), rng), apart, rng
    )
    assert [name for name, *_ in views] == ["Features", "Graph"]
    few = given(labels=y[:20], X=X[:20])  # any three clusters could be separated
    placed = maps._placements(few, spectrum.graph_spectrum(few, rng), rng)
    assert [name for name, *_ in placed] == ["Principal axes"]


def test_the_page_has_the_values_of_the_rows(monkeypatch):
    table = {
        "age": [31.0, np.nan],
        "city": ["York", ""],
        "since": np.array(["2020-01-01", "NaT"], "M8[D]"),
    }
    found = Features.of(table, None, 2)
    shown = values.shown_values(found, np.arange(2))
    assert {one["name"]: one["values"] for one in shown} == {
        "city": [0, -1],
        "age": [31.0, None],
        "since": ["2020-01-01", None],
    }
    monkeypatch.setattr(values, "VALUES_BUDGET", 60)
    assert len(values.shown_values(found, np.arange(2))) == 1
    monkeypatch.setattr(values, "MAX_VALUED", 1)
    assert values.shown_values(found, np.arange(2)) == []


def test_agreement_with_the_truth_is_that_of_the_metrics():
    X, y = blobs()
    labels = np.where(np.arange(60) < 6, 0, y)
    known = Constraints.sample(y, 10, random_state=0)
    truth = numbers.agreement(given(labels=labels, X=X, truth=y, constraints=known))
    assert truth.scores[0][1:] == (
        metrics.adjusted_rand(y, labels),
        metrics.adjusted_rand(y, labels, outside=known),
    )
    assert_array_equal(
        truth.counts, [[((y == a) & (labels == b)).sum() for b in range(3)] for a in range(3)]
    )


@pytest.mark.parametrize(
    "unknown", [lambda c: -1, lambda c: np.nan, lambda c: None], ids=["-1", "nan", "None"]
)
def test_unknown_classes_are_left_out_of_the_scores(unknown):
    X, y = blobs()
    labels = np.where(np.arange(60) < 6, 0, y)
    known = Constraints.sample(y, 10, random_state=0)
    is_known = np.arange(60) % 3 > 0
    partial = [c if told else unknown(c) for c, told in zip(y.tolist(), is_known, strict=True)]
    truth = numbers.agreement(given(labels=labels, X=X, truth=partial, constraints=known))
    for name, everywhere, free in truth.scores:
        score = {"accuracy": metrics.accuracy, "adjusted Rand index": metrics.adjusted_rand}
        score = score.get(name, metrics.nmi)
        assert everywhere == score(y[is_known], labels[is_known])
        outside = known.constrained[is_known]
        assert free == score(y[is_known], labels[is_known], outside=outside)
    assert (truth.n_known, truth.n_unknown) == (40, 20)
    assert truth.n_free == (is_known & ~known.constrained).sum()
    assert truth.counts.sum() == 40
    text = render_report(labels=labels, X=X, truth=partial, constraints=known)
    assert "The class of 20 samples is unknown" in text
    assert "40 known samples" in text


def test_a_class_may_be_called_minus_one_and_none_may_be_known():
    truth = given(labels=[0, 0, 1], truth=["-1", "a", None]).truth
    assert truth.names == ["-1", "a"]
    assert_array_equal(truth.codes, [0, 1, -1])
    assert given(labels=[0, 0, 1], truth=[-1, -1, -1]).truth is None
    assert "is unknown" not in render_report(labels=[0, 0, 1], truth=["a", "b", "b"])


def test_a_stratified_sample_has_every_group_and_what_is_wanted_first():
    rng = np.random.RandomState(0)
    codes = np.repeat(np.arange(4), [1, 10, 500, 4_489])
    wanted = np.zeros(5_000, dtype=bool)
    wanted[[700, 800, 900]] = True
    chosen = numbers.stratified(codes, 100, rng, wanted=wanted)
    assert np.isin([700, 800, 900], chosen).all()
    assert np.bincount(codes[chosen]).tolist() == [1, 1, 10, 90]
    assert (np.diff(chosen) > 0).all()
    some = numbers.stratified(codes, 100, rng, least=20)
    assert np.bincount(codes[some]).tolist() == [1, 10, 20, 90]
    assert_array_equal(numbers.stratified(codes, 5_000, rng), np.arange(5_000))


# ---------------------------------------------------------------------------------------------
# Eigenvalues
# ---------------------------------------------------------------------------------------------


def test_eigenvalues_of_a_cycle_are_the_known_ones():
    n = 40
    W = csr_array(np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))
    labels = np.repeat([0, 1], 20)
    found = spectrum.graph_spectrum(given(labels=labels, W=W), np.random.RandomState(0))
    turns = np.array([0, 1, 1, 2, 2, 3, 3])
    assert_allclose(found.values, 1 - np.cos(2 * np.pi * turns / n), atol=1e-8)
    assert found.n_components == 1


def test_pieces_of_a_graph_are_counted_and_the_gap_follows_them():
    W = csr_array(block_diag([np.ones((4, 4)) - np.eye(4)] * 3))
    text = Parsed(render_report(labels=np.repeat([0, 1, 2], 4), W=W)).text
    assert "The graph is in 3 pieces: as many eigenvalues are 0" in text
    assert "It is the widest of those shown" in text
    two = Parsed(render_report(labels=np.repeat([0, 0, 1], 4), W=W)).text
    assert "the graph suggests 3 clusters" in two


def test_the_plot_keeps_order_and_stays_in_its_box():
    values = np.array([0.0, 0.01, 0.02, 0.3, 0.31])
    plot = spectrum.eigen_plot(values, 3)
    xs, ys = np.array([point[:2] for point in plot.points]).T
    assert (np.diff(xs) > 0).all()
    assert (np.diff(ys) < 0).all()
    assert (ys >= spectrum.TOP).all()
    assert (ys <= spectrum.HEIGHT - spectrum.BOTTOM).all()
    assert plot.gap[1] == ys[3]
    assert_allclose(plot.gap[1] + plot.gap[3], ys[2])
    assert_allclose(plot.gap_size, 0.28)
    assert plot.widest == 3
    assert spectrum.eigen_plot(np.zeros(4), 2) is not None
    assert spectrum.eigen_plot(np.zeros(1), 1) is None


def test_large_graphs_show_what_the_method_found_instead(monkeypatch):
    monkeypatch.setattr(spectrum, "LARGEST_BLOCK", 100)
    X, y = blobs()
    model = NCut(3, random_state=0).fit(X)
    parsed = Parsed(render_report(labels=model.labels_, X=X, result=model))
    assert "8 eigenvectors of 60 samples were not computed" in parsed.text
    assert "eigenvalues of the matrix that the method made" in parsed.text
    assert "Embedding" in parsed.text
    bare = Parsed(render_report(labels=y, W=model.affinity_matrix_))
    assert "No plot. 8 eigenvectors of 60 samples were not computed" in bare.text
    assert len(bare.data["views"]) == 1  # a graph alone still gets its map


# ---------------------------------------------------------------------------------------------
# Constraints
# ---------------------------------------------------------------------------------------------


def pairs_by_loops(constraints):
    """Slow twin: every constraint once, explicit or implied by labels."""
    must = {tuple(pair) for pair in constraints.must_link.tolist()}
    cannot = {tuple(pair) for pair in constraints.cannot_link.tolist()}
    known = constraints.labels
    if known is not None:
        for i, j in itertools.combinations(range(constraints.n_samples), 2):
            if known[i] >= 0 and known[j] >= 0:
                (must if known[i] == known[j] else cannot).add((i, j))
    return must, cannot


@pytest.mark.parametrize("seed", range(6))
def test_violated_constraints_are_counted_and_listed_completely(seed):
    rng = np.random.RandomState(seed)
    y = rng.randint(3, size=24)
    drawn = Constraints.sample(y, 30, random_state=seed)
    labels = np.where(rng.uniform(size=24) < 0.4, y, -1) if seed % 2 else None
    known = Constraints(
        24,
        drawn.must_link,
        drawn.cannot_link,
        must_link_belief=rng.uniform(0.5, 1, len(drawn.must_link)),
        labels=labels,
    )
    clusters = rng.randint(3, size=24)
    must, cannot = pairs_by_loops(known)
    found = pairs.pair_report(given(labels=clusters, constraints=known))
    assert found.n_total == len(must) + len(cannot)
    assert found.n_must_broken == sum(clusters[i] != clusters[j] for i, j in must)
    assert found.n_cannot_broken == sum(clusters[i] == clusters[j] for i, j in cannot)
    assert found.n_unlisted == 0
    assert [row.belief for row in found.broken] == sorted(
        (row.belief for row in found.broken), reverse=True
    )
    explicit = {(row.is_must, row.samples) for row in found.broken if row.labels is None}
    assert explicit == {
        (is_must, pair)
        for is_must, listed in ((True, drawn.must_link), (False, drawn.cannot_link))
        for pair in map(tuple, listed.tolist())
        if (clusters[pair[0]] == clusters[pair[1]]) != is_must
    }
    # A line for labels stands for pairs of samples that have its labels and are in its clusters.
    for row in (row for row in found.broken if row.labels is not None):
        assert tuple(labels[list(row.samples)]) == row.labels
        assert (clusters[row.samples[0]] == clusters[row.samples[1]]) != row.is_must
    implied = pairs_by_loops(Constraints(24, labels=labels))
    for is_must, listed in zip((True, False), implied, strict=True):
        stood_for = sum(
            r.n_pairs for r in found.broken if r.labels is not None and r.is_must == is_must
        )
        assert stood_for == sum((clusters[i] == clusters[j]) != is_must for i, j in listed)


def test_more_violations_than_the_table_holds_are_said_to_be_missing():
    n = 60
    cannot = list(itertools.combinations(range(n), 2))
    inputs = given(labels=np.zeros(n, int), constraints=Constraints(n, cannot_link=cannot))
    found = pairs.pair_report(inputs)
    assert len(found.broken) == pairs.MAX_LISTED
    assert found.n_unlisted == len(cannot) - pairs.MAX_LISTED
    drawn = pairs.drawn_pairs(inputs, found)
    assert drawn.is_broken.sum() == pairs.MAX_DRAWN
    assert drawn.n_undrawn == len(cannot) - pairs.MAX_DRAWN
    many = given(labels=np.zeros(n, int), constraints=Constraints.from_labels(np.arange(n)))
    assert pairs.pair_report(many).n_unlisted == len(cannot) - pairs.MAX_LISTED


def test_the_reason_of_a_violation_is_told():
    known = Constraints(
        6,
        must_link=[(0, 3)],
        must_link_belief=0.7,
        cannot_link=[(1, 2)],
        labels=[-1, -1, -1, 5, 5, 8],
    )
    ids = ["ann", "bob", "cid", "dee", "eve", "fay"]
    text = Parsed(render_report(labels=[0, 0, 0, 1, 0, 0], ids=ids, constraints=known)).text
    assert "2 pairs given, and 3 samples with a known label: 5 constraints in all." in text
    assert "Violated are 2 must-links" in text
    assert "2 cannot-links" in text
    assert re.search(r"must-link\s*ann\s*0\s*dee\s*1\s*0\.7\s*given", text)
    assert re.search(r"cannot-link\s*bob\s*0\s*cid\s*0\s*1\s*given", text)
    assert re.search(r"dee – label 5 – eve|eve – label 5 – dee", text)
    assert "eve – label 5 ≠ label 8 – fay" in text


def test_contradictions_are_shown_with_their_chain():
    known = Constraints(4, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    text = Parsed(render_report(labels=[0, 0, 0, 1], ids=list("wxyz"), constraints=known)).text
    assert "contradict each other in 1 place: no clustering satisfies all of them" in text
    assert "w and y are cannot-linked, but belong together: w must-link x must-link y." in text


# ---------------------------------------------------------------------------------------------
# What `Auto` tells
# ---------------------------------------------------------------------------------------------

NONE_SUSPECT = "No constraint is more likely wrong than right."


@pytest.fixture(scope="module")
def doubtful():
    """Data, constraints of which one pair and one label are wrong, and a fitted `Auto`."""
    X, y = make_blobs(60, 4, centers=3, random_state=0)
    right = Constraints.sample(y, 20, random_state=0)
    first, other = (int(np.flatnonzero(y == c)[0]) for c in (0, 1))
    partial = np.where(np.arange(60) >= 45, y, -1)
    partial[50] = (y[50] + 1) % 3
    must = [*map(tuple, right.must_link.tolist()), (first, other)]
    known = Constraints(60, must, right.cannot_link, labels=partial)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    return X, known, model, {tuple(sorted((first, other))), (50,)}


def of_auto(doubtful, **arguments):
    X, known, model, _ = doubtful
    given = {"labels": model.labels_, "X": X, "constraints": known, "result": model}
    return render_report(**given | arguments, random_state=0)


def judge(labels, suspects=(), lines=None):
    """Return a fitted model that has opinions on its constraints."""
    Opinion = SimpleNamespace
    found = [Opinion(kind=kind, samples=on, probability=p) for kind, on, p in suspects]
    told = {} if lines is None else {"report_": Opinion(summary=lambda: lines)}
    result = Result(np.asarray(labels))
    return Opinion(result_=result, get_params=lambda deep: {}, suspects_=tuple(found), **told)


def suspects_section(text):
    return text[text.index('<section id="suspects"') : text.index('<section id="clusters"')]


def test_suspects_are_those_of_the_model_and_violated_as_it_counts(doubtful):
    X, known, model, wrong = doubtful
    inputs = given(labels=model.labels_, X=X, constraints=known, result=model)
    found = pairs.suspect_report(inputs)
    likely = [one for one in model.suspects_ if one.probability > 0.5]
    assert {tuple(sorted(row.suspect.samples)) for row in found.listed} == wrong
    assert [row.suspect for row in found.listed] == likely
    assert (found.n_judged, found.n_labels) == (len(model.suspects_), 15)
    assert found.n_suspects == len(found.listed)
    everything = SimpleNamespace(
        result_=model.result_,
        get_params=model.get_params,
        suspects_=[one._replace(probability=0.9) for one in model.suspects_],
    )
    inputs = given(labels=model.labels_, constraints=known, result=everything)
    n_broken = sum(row.is_broken for row in pairs.suspect_report(inputs).listed)
    assert n_broken == model.report_.n_violated > 0


def test_the_page_of_auto_lists_its_suspects(doubtful):
    _, known, model, wrong = doubtful
    text = of_auto(doubtful, ids=[f"s{i}" for i in range(60)])
    section = suspects_section(text)
    told = Parsed(section).text
    n = len(model.suspects_)
    assert f"2 of {n} constraints (a known label counts as one) are more likely wrong" in told
    assert NONE_SUSPECT not in text
    assert section.count("<tr>") == 1 + 2
    by_samples = {tuple(sorted(one.samples)): one for one in model.suspects_}
    i, j = max(wrong, key=len)
    p = re.escape(page.number(by_samples[i, j].probability))
    a, b = model.labels_[[i, j]]
    assert re.search(rf"must-link\s*s{i}\s*{a}\s*s{j}\s*{b}\s*{p}\s*yes", told)
    p = re.escape(page.number(by_samples[50,].probability))
    expected = rf"label {known.labels[50]}\s*s50\s*{model.labels_[50]}\s*–\s*–\s*{p}\s*yes"
    assert re.search(expected, told)
    assert '<a href="#suspects">Suspects</a>' in text


def test_the_page_of_auto_says_at_its_top_what_was_chosen(doubtful):
    model = doubtful[2]
    text = of_auto(doubtful)
    top = text[: text.index("<main>")]
    lines = re.findall(r"<li>(.*?)</li>", top)
    assert [html.unescape(line) for line in lines] == model.report_.summary()
    assert len(lines) > 2
    assert '<ul class="choices" aria-label=' in top


def test_other_methods_have_no_suspects_and_no_choices():
    X, _ = blobs()
    model = NCut(3, random_state=0).fit(X)
    known = Constraints(60, must_link=[(0, 1)])
    text = render_report(labels=model.labels_, X=X, constraints=known, result=model)
    assert "uspect" not in text
    assert NONE_SUSPECT not in text
    assert 'class="choices"' not in text


def test_constraints_that_nobody_doubts_get_a_sentence_and_none_get_no_section():
    known = Constraints(3, must_link=[(0, 1)])
    trusted = judge([0, 0, 1], [("must-link", (0, 1), 0.5)])
    section = suspects_section(render_report(labels=[0, 0, 1], constraints=known, result=trusted))
    assert NONE_SUSPECT in section
    assert "<table>" not in section
    nothing = judge([0, 0, 1], lines=["3 clusters"])
    assert 'id="suspects"' not in render_report(labels=[0, 0, 1], result=nothing)


def test_suspects_may_be_obeyed_and_labels_may_not_be_given():
    suspects = [("label", (2,), 0.6), ("cannot-link", (0, 2), 0.7), ("must-link", (0, 2), 0.8)]
    model = judge([0, 0, 1], suspects)
    told = Parsed(suspects_section(render_report(labels=[0, 0, 1], result=model))).text
    assert re.search(r"must-link\s*0\s*0\s*2\s*1\s*0\.8\s*yes", told)
    assert re.search(r"cannot-link\s*0\s*0\s*2\s*1\s*0\.7\s*no", told)
    assert re.search(r"label\s*2\s*1\s*–\s*–\s*0\.6\s*–", told)
    assert told.index("0.8") < told.index("0.7") < told.index("0.6")


def test_a_label_stands_for_the_cluster_that_most_of_its_samples_are_in():
    known = Constraints(6, labels=[5, 5, 5, 8, 8, 8])
    clusters = [1, 1, 0, 0, 0, 0]
    model = judge(clusters, [("label", (i,), 0.9) for i in range(6)])
    found = pairs.suspect_report(given(labels=clusters, constraints=known, result=model))
    assert [row.label for row in found.listed] == [5, 5, 5, 8, 8, 8]
    assert [row.is_broken for row in found.listed] == [i == 2 for i in range(6)]


def test_more_suspects_than_the_table_holds_are_said_to_be_missing():
    n = pairs.MAX_LISTED + 30
    model = judge(np.arange(n) % 2, [("cannot-link", (i, (i + 1) % n), 0.9) for i in range(n)])
    section = suspects_section(render_report(labels=np.arange(n) % 2, result=model))
    assert section.count("<tr>") == 1 + pairs.MAX_LISTED
    assert f"{n} of {n} constraints are more likely wrong than right" in section
    assert "30 more lines not shown" in section


def test_hostile_names_and_lines_stay_text(doubtful):
    harmless = Parsed(of_auto(doubtful))
    text = of_auto(doubtful, ids=[NASTY[0]] * 60)
    assert [tag for tag, _ in Parsed(text).elements] == [tag for tag, _ in harmless.elements]
    assert suspects_section(text).count(f'<bdi class="id">{html.escape(NASTY[0])}</bdi>') == 3
    model = judge([0, 1], [(NASTY[0], (0, 1), 0.9)], [*NASTY, "x" * 5_000])
    text = render_report(labels=[0, 1], result=model)
    assert not {"img", "script"} & {tag for tag, _ in Parsed(text).elements}
    assert html.escape(NASTY[0]) in suspects_section(text)
    assert html.escape(NASTY[0]) in text[: text.index("<main>")]
    assert "x" * 300 not in text
    text.encode("utf-8")


def test_the_page_of_auto_keeps_the_rules_for_screen_readers(doubtful):
    follows_the_rules(of_auto(doubtful))


def test_suspects_of_other_samples_are_refused():
    with pytest.raises(ValueError, match="result has a constraint on sample 7, but labels has 2"):
        render_report(labels=[0, 1], result=judge([0, 1], [("label", (7,), 0.9)]))


# ---------------------------------------------------------------------------------------------
# Map
# ---------------------------------------------------------------------------------------------


def decoded(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def test_coordinates_labels_and_pairs_survive_the_way_into_the_page():
    X, y = make_xor(25, random_state=0)
    known = Constraints.sample(y, 12, random_state=0)
    labels = np.where(np.arange(y.size) < 40, 0, y)
    data = Parsed(render_report(labels=labels, X=X, constraints=known)).data
    xy = decoded(data["views"][0]["xy"], "<u2").reshape(-1, 2) / 65_535
    span = np.ptp(X, axis=0)
    expected = (X - X.min(axis=0)) / span
    assert_allclose(xy, np.column_stack((expected[:, 0], 1 - expected[:, 1])), atol=1e-5)
    assert_allclose(data["views"][0]["height"] / data["views"][0]["width"], span[1] / span[0])
    assert_array_equal(decoded(data["labels"], "<u1"), labels)
    drawn = np.reshape(data["pairs"], (-1, 4))
    assert len(drawn) == 12
    for i, j, is_must, is_broken in drawn.tolist():
        listed = known.must_link if is_must else known.cannot_link
        assert [i, j] in listed.tolist()
        assert is_broken == ((labels[i] == labels[j]) != is_must)
    assert 0 < drawn[:, 3].sum() < 12
    assert (np.diff(drawn[:, 3]) >= 0).all()  # violated ones are drawn last, on top


def test_long_thin_data_are_stretched_and_the_page_says_so():
    X = np.column_stack((np.linspace(0, 900, 20), np.linspace(0, 1, 20) ** 2))
    parsed = Parsed(render_report(labels=np.arange(20) % 2, X=X))
    assert "the vertical axis is stretched 300 times" in parsed.text
    assert_allclose(parsed.data["views"][0]["height"], 1 / 3)


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_more_than_two_columns_are_drawn_along_their_principal_axes(form):
    X, y = blobs(40, k=2)
    X = np.column_stack((X, X[:, 0] * 3))
    view = Parsed(render_report(labels=y, X=form(X), random_state=0)).data["views"][0]
    xy = decoded(view["xy"], "<u2").reshape(-1, 2) * [view["width"], view["height"]]
    centred = X - X.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    for axis in range(2):
        assert abs(np.corrcoef(xy[:, axis], u[:, axis] * s[axis])[0, 1]) > 1 - 1e-6


def test_a_large_map_is_a_sample_with_every_cluster_and_every_drawn_pair(monkeypatch):
    monkeypatch.setattr(maps, "MAX_POINTS", 120)
    rng = np.random.RandomState(0)
    y = np.r_[np.zeros(900, int), np.ones(95, int), 2, 3, 4, 5, 6]
    X = rng.normal(size=(1_000, 3)) + y[:, None]
    known = Constraints.sample(y, 15, random_state=0)
    ids = [f"s{i}" for i in range(1_000)]
    parsed = Parsed(render_report(labels=y, X=X, constraints=known, ids=ids, random_state=0))
    labels, rows = decoded(parsed.data["labels"], "<u1"), decoded(parsed.data["rows"], "<u4")
    assert set(labels) == set(range(7))
    assert 120 <= labels.size <= 127
    assert_array_equal(y[rows], labels)
    assert parsed.data["ids"] == [ids[row] for row in rows]
    assert len(parsed.data["pairs"]) == 4 * 15
    assert f"a sample of {labels.size} of the 1,000 samples" in parsed.text


def test_identifiers_beyond_the_budget_give_way_to_row_numbers(monkeypatch):
    monkeypatch.setattr(maps, "IDS_BUDGET", 100)
    parsed = Parsed(render_report(labels=[0, 1] * 10, X=np.eye(20), ids=["a long name"] * 20))
    assert parsed.data["ids"] is None
    assert "it shows row numbers" in parsed.text


def test_more_than_256_clusters_take_wider_labels():
    labels = np.arange(600) // 2
    data = Parsed(
        render_report(labels=labels, X=np.random.RandomState(0).normal(size=(600, 2)))
    ).data
    assert data["labelBytes"] == 2
    assert_array_equal(decoded(data["labels"], "<u2"), labels)


def test_the_picture_without_scripts_is_small_and_has_every_cluster(monkeypatch):
    X, y = blobs(3_000)
    inputs = given(labels=y, X=X, constraints=Constraints.sample(y, 9, random_state=0))
    rng = np.random.RandomState(0)
    drawn = pairs.drawn_pairs(inputs, pairs.pair_report(inputs))
    made = maps.draw_map(inputs, spectrum.graph_spectrum(inputs, rng), drawn, rng=rng)
    picture = maps.static_map(inputs, drawn, made, rng=rng)
    assert picture.n_points == sum(path.count("M") for _, path in picture.paths)
    assert maps.MAX_STATIC_POINTS <= picture.n_points <= maps.MAX_STATIC_POINTS + 3
    assert [cluster for cluster, _ in picture.paths] == [0, 1, 2]
    assert sum(path.count("L") for _, _, path in picture.lines) == 9
    coordinates = np.array(
        re.findall(r"M(\d+) (\d+)", "".join(path for _, path in picture.paths)), int
    )
    assert (coordinates.max(axis=0) <= [picture.width, picture.height]).all()


def test_colours_are_those_of_the_plots_and_none_is_black_on_black():
    first = palette.looks(8)
    assert tuple(look.light for look in first) == plots.COLOURS
    assert [look.shape for look in first] == list(range(8))
    assert "#000000" not in [look.dark for look in palette.looks(100)]
    # Three laps differ by colour alone, far more by colour and shape.
    assert len({look.light for look in palette.looks(24)}) == 24 - 1  # black cannot get darker
    assert len({(look.light, look.shape) for look in palette.looks(64)}) == 64
    assert len(palette.PATHS) == len(plots.SHAPES)


# ---------------------------------------------------------------------------------------------
# Page
# ---------------------------------------------------------------------------------------------


def test_the_summary_says_what_was_found():
    X, y = make_xor(25, random_state=0)
    known = Constraints.sample(y, 8, random_state=0)
    model = SignedCSC(2, random_state=0).fit(X, constraints=known)
    command = "linkwise cluster xor.csv \\\n  --method signed"
    text = render_report(
        labels=model.labels_,
        X=X,
        constraints=known,
        result=model,
        truth=y,
        title="Corners",
        command=command,
    )
    parsed = Parsed(text)
    assert "100 samples in 2 clusters by SignedCSC. 0 of 8 constraints violated." in parsed.text
    assert command in "".join(parsed.words)
    ncut = metrics.ncut(model.affinity_matrix_, model.labels_)
    assert f"Normalised cut {page.number(ncut, 3)}" in re.sub(r"(?<=cut)(?=\d)", " ", parsed.text)
    for name, value in model.get_params(deep=False).items():
        assert f'<th scope="row">{name}</th><td><code>{html.escape(str(value))}</code>' in text
    for library in ("linkwise", "Python", "numpy", "scipy", "scikit-learn", "numba"):
        assert library in parsed.text
    assert np.__version__ in parsed.text


def test_a_solver_that_did_not_converge_is_mentioned():
    stopped = Result(np.array([0, 0, 1]), converged=False, n_iter=1_234)
    text = Parsed(render_report(labels=[0, 0, 1], result=stopped)).text
    assert "The solver stopped before it reached its tolerance" in text
    assert "1,234" in text


def nasty_report():
    n = len(NASTY)
    known = Constraints(n, must_link=[(i, i + 1) for i in range(n - 1)])
    return render_report(
        labels=NASTY,
        X=np.random.RandomState(0).normal(size=(n, n)),
        constraints=known,
        ids=NASTY,
        feature_names=NASTY,
        title=NASTY[1],
        command="\n".join(NASTY),
        parameters={"method": NASTY[0], **{name: name for name in NASTY}},
        truth=NASTY[::-1],
        random_state=0,
    )


def test_nothing_from_the_data_becomes_markup():
    text = nasty_report()
    parsed, harmless = Parsed(text), Parsed(render_report(labels=[0, 0, 1], X=np.eye(3)))
    assert {tag for tag, _ in parsed.elements} <= {tag for tag, _ in harmless.elements} | {
        "code",
        "div",
        "h3",
        "li",
        "pre",
        "small",
        "tfoot",
        "ul",
    }
    assert [attrs.get("type") for attrs, _ in parsed.scripts] == ["application/json", None]
    assert parsed.scripts[1][1] == harmless.scripts[1][1]
    for _, attrs in parsed.elements:
        assert not any(name.startswith("on") for name in attrs)
    assert "{{ 7 * 7 }}" in parsed.text
    assert "alert(1)" in parsed.text
    short = [plain(name) if len(name) <= 60 else plain(name)[:60] + "…" for name in NASTY]
    short[NASTY.index("")] = "(empty)"
    assert parsed.data["ids"] == short
    payload = parsed.scripts[0][1]
    assert not set("<>&\u2028\u2029") & set(payload)
    text.encode("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def test_only_the_script_of_the_page_may_run_and_nothing_may_be_fetched():
    text = nasty_report()
    parsed = Parsed(text)
    policy = next(
        attrs["content"]
        for tag, attrs in parsed.elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    digest = base64.b64encode(hashlib.sha256(parsed.scripts[1][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    for _, attrs in parsed.elements:
        assert "src" not in attrs
        assert attrs.get("href", "#").startswith(("#", "data:,"))
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "http" not in style


def test_headings_captions_and_names_for_screen_readers():
    X, y = blobs()
    known = Constraints.sample(1 - (y > 0), 9, random_state=0)
    W = Affinity().fit_transform(X)
    follows_the_rules(render_report(labels=y, X=X, W=W, constraints=known, truth=y))


def follows_the_rules(text):
    parsed = Parsed(text)
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("h1") == 1
    assert tags.count("table") == tags.count("caption") > 4
    assert all("lang" in attrs for tag, attrs in parsed.elements if tag == "html")
    named = [
        attrs for tag, attrs in parsed.elements if attrs.get("role") in ("img", "region", "group")
    ]
    assert named
    assert all(attrs.get("aria-label") for attrs in named)
    for tag, attrs in parsed.elements:
        if tag == "section":
            assert f'id="{attrs["aria-labelledby"]}"' in text
        if tag == "th":
            assert attrs["scope"] in ("row", "col")
        if tag == "a":
            assert f'id="{attrs["href"][1:]}"' in text
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


DEGENERATE = {
    "one sample": {"labels": [0], "X": [[1.0, 2.0, 3.0]]},
    "one sample, graph": {"labels": [0], "W": [[0.0]]},
    "two samples": {"labels": [0, 1], "X": [[1.0], [2.0]], "W": [[0.0, 1.0], [1.0, 0.0]]},
    "labels alone": {"labels": [3, -1, 3]},
    "equal samples": {"labels": [0, 1, 0, 1], "X": np.ones((4, 3))},
    "equal, two columns": {"labels": [0, 1, 0, 1], "X": np.ones((4, 2))},
    "no edges": {"labels": [0, 1, 0], "W": csr_array((3, 3))},
    "tiny units": {"labels": [0, 1, 0, 1], "X": 1e-300 * np.arange(12.0).reshape(4, 3)},
    "huge units": {"labels": [0, 1, 0, 1], "X": 1e300 * (np.arange(12.0).reshape(4, 3) - 6)},
    "huge, two columns": {
        "labels": [0, 1, 0],
        "X": 1.7e308 * np.array([[-1, 1], [1, 0], [0, -1.0]]),
    },
    "sparse, one column": {"labels": [0, 1, 0], "X": csr_array([[0.0], [1.0], [2.0]])},
    "no columns of numbers": {"labels": [0, 1], "feature_values": np.array([["a"], ["b"]])},
    "missing values only": {"labels": [0, 1], "feature_values": np.full((2, 2), np.nan)},
    "every sample its own": {"labels": np.arange(30), "X": np.eye(30), "W": path_graph(30)},
    "bools": {
        "labels": np.array([True, False, True]),
        "X": [[0], [1], [0]],
        "truth": ["a", "b", "b"],
    },
    "embedding alone": {
        "labels": [0, 1, 1],
        "result": Result(np.array([0, 1, 1]), np.eye(3)[:, :2], np.array([0.0, np.nan])),
    },
}


@pytest.mark.parametrize("arguments", DEGENERATE.values(), ids=DEGENERATE)
def test_degenerate_input_still_gives_a_page(arguments):
    n = len(arguments["labels"])
    for constraints in (None, Constraints(n, labels=[1] * n)):
        parsed = Parsed(render_report(**arguments, constraints=constraints, random_state=0))
        assert f"{n} sample{'s' * (n > 1)} in " in parsed.text
        assert not re.search(r"\b(nan|inf|None)\b", parsed.text)
        if any(attrs.get("id") == "points" for _, attrs in parsed.elements):
            assert decoded(parsed.data["labels"], "<u1").size == n


def test_the_same_seed_gives_the_same_page(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setattr(maps, "MAX_POINTS", 50)
    X, y = blobs(200)
    W = Affinity().fit_transform(X)
    first, again, other = (
        render_report(labels=y, X=X, W=W, random_state=seed) for seed in (0, 0, 1)
    )
    assert first == again != other
    assert "2023-11-14 22:13 UTC" in first


def test_the_arguments_are_not_changed():
    X, y = blobs()
    W = Affinity().fit_transform(X)
    values = np.where(X > 2, np.nan, X)
    copies = X.copy(), y.copy(), W.copy(), values.copy()
    render_report(labels=y, X=X, W=W, feature_values=values)
    assert_array_equal(X, copies[0])
    assert_array_equal(y, copies[1])
    assert_array_equal(W.data, copies[2].data)
    assert_array_equal(values, copies[3])


WRONG = {
    "labels must hold one label a sample": {"labels": [[0], [1]]},
    "labels[1] is nan": {"labels": [0.0, np.nan]},
    "X is about 3 samples, but labels has 2 entries": {"X": np.eye(3)},
    "Input X contains NaN": {"X": [[np.nan], [0.0]]},
    "W is about 3 samples": {"W": np.ones((3, 3))},
    "must not be negative": {"W": [[0.0, -1.0], [-1.0, 0.0]]},
    "must be symmetric": {"W": [[0.0, 1.0], [0.0, 0.0]]},
    "ids is about 1 samples": {"ids": ["a"]},
    "truth is about 3 samples": {"truth": [0, 1, 1]},
    "feature_values is about 3 samples": {"feature_values": np.eye(3)},
    "feature_names has 1 entries, but there are 2 columns": {
        "X": np.eye(2),
        "feature_names": ["a"],
    },
    "constraints is about 5 samples": {"constraints": Constraints(5)},
    "constraints must be a linkwise.Constraints, got list": {"constraints": [(0, 1)]},
    "result must be a linkwise.Result or a fitted estimator": {"result": NCut(2)},
    "parameters must be a dict": {"parameters": ["k"]},
}


@pytest.mark.parametrize(("message", "arguments"), WRONG.items(), ids=WRONG)
def test_wrong_input_gets_one_clear_error(message, arguments):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        render_report(**{"labels": [0, 1]} | arguments)


def test_numbers_are_written_for_readers():
    assert page.number(None) == page.number(np.inf) == "–"
    assert page.number(-0.0) == "0"
    assert [page.number(x) for x in (0.0, 999.94, 1234567.0, 1e7)] == [
        "0",
        "999.9",
        "1,234,567",
        "1.00e+07",
    ]
    assert [page.percent(x) for x in (0.996, 0.0099, 0.5)] == ["99.6 %", "0.99 %", "50 %"]


# ---------------------------------------------------------------------------------------------
# The file
# ---------------------------------------------------------------------------------------------


def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_report(path, labels=[0, 1], X=[[0.0], [1.0]])
    before = path.read_bytes()
    assert before.endswith(b"</html>")
    with pytest.raises(ValueError, match="X is about 3"):
        write_report(path, labels=[0, 1], X=np.eye(3))
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(path, labels=[0, 1], X=[[5.0], [1.0]])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    path, events, rename = tmp_path / "report.html", [], Path.replace
    monkeypatch.setattr(
        os, "fsync", lambda handle: events.append(stat.S_ISDIR(os.fstat(handle).st_mode))
    )
    monkeypatch.setattr(Path, "replace", lambda *names: events.append("rename") or rename(*names))
    write_report(path, labels=[0, 1])
    assert events[:2] == [False, "rename"]
    assert events[2:] == ([] if sys.platform == "win32" else [True])


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX systems")
def test_the_file_is_as_readable_as_any_other_new_file(tmp_path):
    (tmp_path / "other").write_text("")
    write_report(tmp_path / "report.html", labels=[0, 1])
    assert (tmp_path / "report.html").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist\. Create it"):
        write_report(tmp_path / "nowhere" / "report.html", labels=[0, 1])


def test_without_jinja2_the_extra_is_named(monkeypatch):
    page._template.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'linkwise[report]'")):
        render_report(labels=[0, 1])
    page._template.cache_clear()


def test_100_000_points_stay_below_three_megabytes():
    n = 100_000
    rng = np.random.RandomState(0)
    X, labels = rng.normal(size=(n, 3)), rng.randint(12, size=n)
    ids = [f"sample{i:06d}" for i in range(n)]
    inputs = given(labels=labels, X=X, ids=ids, result=Result(labels, X[:, :2]))
    drawn = pairs.drawn_pairs(inputs, None)
    made = maps.draw_map(inputs, spectrum.graph_spectrum(inputs, rng), drawn, rng=rng)
    payload = page.as_json(maps.map_data(inputs, drawn, made))
    assert len(made.views) == 2
    assert made.has_ids
    assert len(payload) < 2_900_000  # the rest of the page is some 50 kB


# ---------------------------------------------------------------------------------------------
# In a browser
# ---------------------------------------------------------------------------------------------

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
in_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--virtual-time-budget=4000",
)


def browse(folder, text, *flags):
    """Open a page in an empty profile; return what the browser prints."""
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    profile = folder / "profile"
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={profile}", *flags, file.as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    return done.stdout.decode("utf-8")


def screenshot(folder, text, *flags):
    """Return the picture of a page as an array of numbers."""
    image = pytest.importorskip("PIL.Image", reason="reading a screenshot needs pillow")
    browse(folder, text, f"--screenshot={folder / 'page.png'}", *flags)
    with image.open(folder / "page.png") as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def n_near(pixels, colour, tolerance=40):
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return int((abs(pixels - wanted).max(axis=2) <= tolerance).sum())


def example(n=60):
    X, y = make_blobs(n, centers=3, cluster_std=1.5, random_state=1)
    known = Constraints(n, must_link=[(0, int(np.flatnonzero(y != y[0])[0]))])
    ids = ["<b>first</b>", *(f"s{i}" for i in range(1, n))]
    W = Affinity().fit_transform(X)
    return render_report(labels=y, X=X, W=W, constraints=known, ids=ids, random_state=0), y


# The map lies below the title, the clusters in words and the cards, and above the tables.
MAP = slice(350, 1100)


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_browser_shows_coloured_points_and_violated_links(tmp_path, scheme):
    text, _ = example()
    pixels = screenshot(
        tmp_path,
        text,
        "--window-size=1000,1300",
        f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
    )
    assert (pixels[5, 5].mean() < 60) == (scheme == "dark")
    for colour in plots.COLOURS[:3]:
        assert n_near(pixels[MAP], colour) > 300
    assert n_near(pixels[MAP], plots.VIOLATED if scheme == "light" else page.VIOLATED_ON_DARK) > 100


@in_browser
def test_without_scripts_there_is_a_picture(tmp_path):
    text, _ = example()
    # A sandboxed frame is a page whose scripts are switched off.
    size = "width:980px;height:1280px;border:0"
    frame = f'<iframe sandbox srcdoc="{html.escape(text)}" style="{size}"></iframe>'
    pixels = screenshot(
        tmp_path,
        frame,
        "--window-size=1000,1300",
        "--disable-site-isolation-trials",
        "--disable-features=IsolateSandboxedIframes",
        "--blink-settings=preferredColorScheme=1",
    )
    for colour in plots.COLOURS[:3]:
        assert n_near(pixels[MAP], colour) > 300
    assert n_near(pixels[MAP], plots.VIOLATED) > 100


PROBE = """
<script>
const found = { width: document.documentElement.scrollWidth, window: window.innerWidth };
const problem = document.getElementById("problem");
const canvas = document.getElementById("points"), tip = document.getElementById("tip");
const frame = () => new Promise((done) => setTimeout(done, 60));
const press = async (selector) => { document.querySelector(selector).click(); await frame(); };
const read = () => Number(canvas.dataset.drawn);
(async () => {
  await frame();
  found.all = read();
  await press("[data-cluster='0']");
  found.without = read();
  await press("[data-all='true']");
  await press("[data-zoom='in']");
  found.zoomed = canvas.classList.contains("zoomed");
  await press("[data-zoom='reset']");
  await press("[data-view='1']");
  found.second = read();
  found.about = document.querySelector("[data-about='1']").hidden;
  await press("[data-view='0']");
  const names = new Set();
  const { width, height } = canvas.getBoundingClientRect();
  for (let y = 0; y < height; y += 6) for (let x = 0; x < width; x += 6) {
    const event = new PointerEvent("pointermove", { pointerType: "mouse" });
    Object.defineProperty(event, "offsetX", { value: x });
    Object.defineProperty(event, "offsetY", { value: y });
    canvas.dispatchEvent(event);
    if (!tip.hidden) names.add(tip.innerText);
  }
  found.names = [...names];
  found.problem = problem.hidden ? "" : problem.textContent;
  found.bold = tip.querySelectorAll("b b").length;
  parent.document.title = JSON.stringify(found);
})().catch((error) => { parent.document.title = JSON.stringify(String(error)); });
</script>
"""


@in_browser
def test_the_map_answers_to_buttons_and_pointer_on_a_phone(tmp_path):
    text, y = example()
    # The policy of the page would refuse the probe, as it should. Without a screen there are no
    # frames to wait for, and a window is at least 500 pixels wide: hence a clock and a frame.
    clock = "<script>window.requestAnimationFrame = (act) => setTimeout(act, 16)</script>"
    inner = re.sub(r"<meta http-equiv[^>]*>", clock, text).replace("</body>", PROBE + "</body>")
    phone = f'<iframe srcdoc="{html.escape(inner)}" style="width:360px;height:740px;border:0">'
    dom = browse(tmp_path, f"<title></title>{phone}</iframe>", "--dump-dom")
    found = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom, re.S)[1]))
    assert found["problem"] == ""
    assert found["width"] <= found["window"] == 360, "the page scrolls sideways"
    assert found["all"] == found["second"] == 60
    assert found["without"] == (y != 0).sum()
    assert found["zoomed"]
    assert not found["about"]
    assert found["bold"] == 0
    named = {name.split("\n")[0]: name.split("\n")[1] for name in found["names"]}
    assert len(named) > 30  # the others lie behind nearer ones
    ids = ["<b>first</b>", *(f"s{i}" for i in range(1, 60))]
    for name, cluster in named.items():
        assert cluster == f"cluster {y[ids.index(name)]}"


MEMBERS = """
const found = { violations: [], texts: [] }, blobs = [];
const make = URL.createObjectURL;
URL.createObjectURL = (blob) => { blobs.push(blob); return make.call(URL, blob); };
const violated = (event) => found.violations.push(event.violatedDirective);
document.addEventListener("securitypolicyviolation", violated);
(async () => {
  for (const which of ["all", "1"]) document.querySelector(`[data-members='${which}']`).click();
  for (const blob of blobs) found.texts.push(await blob.text());
  const canvas = document.getElementById("points"), tip = document.getElementById("tip");
  const { width, height } = canvas.getBoundingClientRect();
  for (let y = 0; y < height; y += 4) for (let x = 0; x < width; x += 4) {
    const event = new PointerEvent("pointermove", { pointerType: "mouse" });
    Object.defineProperty(event, "offsetX", { value: x });
    Object.defineProperty(event, "offsetY", { value: y });
    canvas.dispatchEvent(event);
    if (!tip.hidden && tip.innerText.startsWith("Bob")) found.tip = tip.innerText;
  }
  parent.document.title = JSON.stringify(found);
})().catch((error) => { parent.document.title = JSON.stringify(String(error)); });
"""


@in_browser
def test_members_are_a_download_and_pointing_shows_the_values_of_a_row(tmp_path):
    table = {
        "age": np.array([31.0, 45.5, np.nan, 20.0]),
        "kind": np.array(["new", "<b>old</b>", "new", "new"]),
    }
    text = render_report(
        labels=[0, 1, 1, 0],
        X=[[0.0, 0.0], [5.0, 5.0], [5.0, 4.0], [0.0, 1.0]],
        ids=["=1+1", "Bob", 'a "b", c', "-3"],
        feature_values=table,
        cluster_names=["new", "@old"],
    )
    # The policy stays: of the page's own script and of the probe, nothing else may run.
    digest = base64.b64encode(hashlib.sha256(MEMBERS.encode()).digest()).decode()
    text = text.replace("script-src '", f"script-src 'sha256-{digest}' '")
    text = text.replace("</body>", f"<script>{MEMBERS}</script></body>")
    frame = f'<iframe srcdoc="{html.escape(text)}" style="width:900px;height:900px"></iframe>'
    dom = browse(tmp_path, f"<title></title>{frame}", "--dump-dom")
    found = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom, re.S)[1]))
    assert found["violations"] == []
    everything, second = (text.removeprefix("\ufeff") for text in found["texts"])
    assert everything.splitlines() == [
        "row,id,cluster",
        "0,'=1+1,new",
        "1,Bob,'@old",
        '2,"a ""b"", c",\'@old',
        "3,-3,new",
    ]
    assert second.splitlines()[1:] == everything.splitlines()[2:4]
    assert found["tip"].split("\n") == ["Bob", "cluster @old", "kind", "<b>old</b>", "age", "45.5"]


@in_browser
def test_a_script_error_is_written_into_the_page(tmp_path):
    text, _ = example()
    broken = re.sub(r"<meta http-equiv[^>]*>", "", text).replace('"labels":"', '"labels":"!')
    dom = browse(tmp_path, broken, "--dump-dom")
    assert "The map could not be drawn" in dom


@in_browser
def test_nasty_names_run_nothing_and_the_policy_stops_every_request(tmp_path):
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        intruder = (
            f'<img src="{address}/image"><link rel="stylesheet" href="{address}/style">'
            f'<script src="{address}/script"></script><script>document.title = "run"</script>'
        )
        text = nasty_report().replace("</main>", intruder + "</main>")
        dom = browse(tmp_path, text, "--dump-dom")
        assert asked == []
        assert "<title>run</title>" not in dom
        assert re.search(r'<p id="problem"[^>]*hidden', dom)
        assert f'data-drawn="{len(NASTY)}"' in dom
        # Without the policy the same page does ask: the test can fail.
        browse(tmp_path, re.sub(r"<meta http-equiv[^>]*>", "", text), "--dump-dom")
        assert "/image" in asked
        server.shutdown()


def test_the_public_names_are_two():
    assert report.__all__ == ["render_report", "write_report"]


# Prepared data -----------------------------------------------------------------------------


def test_a_report_takes_the_graph_and_the_eigenvectors_that_are_there(monkeypatch):
    X, y = blobs()
    data = Prepared(X)
    plain_page = render_report(labels=y, X=X, W=data.W, random_state=0)
    data.embedding(8, np.random.RandomState(0))
    monkeypatch.setattr(Affinity, "fit_transform", None)  # not called again
    monkeypatch.setattr("linkwise.graph.prepared.spectral_embedding", None)
    page_of_prepared = render_report(labels=y, X=data, random_state=0)
    titles = re.compile(r"<h2[^>]*>[^<]*")
    assert titles.findall(page_of_prepared) == titles.findall(plain_page)
    with pytest.raises(ValueError, match="X is about 60 samples, but labels has 59"):
        render_report(labels=y[:-1], X=data)


def test_prepared_graphs_have_no_features():
    X, y = blobs()
    inputs = given(labels=y, X=Prepared(Affinity().fit_transform(X), "precomputed"))
    assert inputs.X is None
    assert inputs.features is None
    assert inputs.W.shape == (60, 60)


def test_positions_are_features_axes_or_eigenvectors():
    X, _ = blobs()
    assert_array_equal(plots.positions(Prepared(X[:, :2])), X[:, :2])
    assert_array_equal(plots.positions(Prepared(X[:, :1]))[:, 1], np.zeros(60))
    assert plots.positions(Prepared(X)).shape == (60, 2)
    assert plots.positions(Prepared(csr_array(X))).shape == (60, 2)
    graph = Prepared(Affinity().fit_transform(X), "precomputed")
    assert plots.positions(graph).shape == (60, 2)
    assert_array_equal(plots.positions(graph, X[:, 2:]), X[:, 2:])


def test_a_report_without_labels_says_where_they_are(tmp_path):
    with pytest.raises(TypeError, match=r"write_report needs labels=.*labels=model.labels_"):
        write_report(tmp_path / "w.html", result=None)


@in_browser
def test_long_names_of_features_do_not_push_numbers_out_of_the_page(tmp_path):
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], 30)
    values = rng.normal(1000, 100, (60, 3)) + 2000 * y[:, None]
    names = [f"Average revenue of the last {k} months" for k in (3, 6, 12)]
    text = render_report(X=values, labels=y, feature_names=names)
    probe = """<script>document.title = [...document.querySelectorAll("#features .scroll")]
      .map((one) => one.scrollWidth - one.clientWidth).join()</script></body>"""
    inner = re.sub(r"<meta http-equiv[^>]*>", "", text).replace("</body>", probe)
    dom = browse(tmp_path, inner, "--dump-dom", "--window-size=1200,900")
    assert re.search(r"<title>(.*?)</title>", dom)[1] == "0,0"


def test_columns_of_a_frame_may_have_the_same_name():
    pandas = pytest.importorskip("pandas")
    X = np.random.RandomState(0).normal(size=(40, 3))
    X[20:] += 5
    frame = pandas.DataFrame(X, columns=["a", "a", "b"])
    labels = np.arange(40) // 20
    page = render_report(X=frame, feature_values=frame, labels=labels)
    assert page.count("high <b><bdi>a</bdi></b>") == 2
    mixed = frame.assign(c=np.where(labels, "red", "blue"))
    page = render_report(X=frame, feature_values=mixed, labels=labels)
    assert "<bdi>red</bdi>" in page
