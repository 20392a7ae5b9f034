"""What people try first: labels with names, `y`, data of other libraries, disagreeing answers."""

from __future__ import annotations

import pickle
import warnings
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs

import linkwise
from linkwise import (
    COSC,
    CSC,
    E2CP,
    METHODS,
    Auto,
    ConflictError,
    ConstrainedCut,
    Constraints,
    NCut,
)
from linkwise.constraints.labels import Labels, cluster_names, looks_partial
from linkwise.exceptions import ConstraintsIgnoredWarning
from linkwise.methods import ConstrainedClusterer

NAMES = np.array(["Adelie", "Chinstrap", "Gentoo"], dtype=object)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.RandomState(0)
    y = np.repeat(range(3), 20)
    return np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])[y] + rng.normal(size=(60, 2)), y


@pytest.fixture(scope="module")
def partial(blobs):
    """Four names of each class; the rest is not known."""
    _, y = blobs
    return [NAMES[label] if k % 5 == 0 else None for k, label in enumerate(y)]


# Names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", METHODS)
def test_every_method_names_its_clusters(key, blobs, partial):
    X, y = blobs
    model = METHODS[key](3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintsIgnoredWarning)
        model.fit(X, constraints=Constraints.from_labels(partial))
    assert (model.classes_[model.labels_] == NAMES[y]).mean() > 0.9
    model.fit(X)
    assert not hasattr(model, "classes_")


def test_a_cluster_without_labels_gets_a_number(blobs):
    X, y = blobs
    two = Constraints.from_labels([NAMES[label] if label < 2 else None for label in y])
    found = Auto(3, random_state=0).fit(X, constraints=two)
    assert sorted(found.classes_) == ["Adelie", "Chinstrap", "cluster 2"]
    numbers = Constraints.from_labels([5 + label if label < 2 else -1 for label in y])
    assert sorted(E2CP(3, random_state=0).fit(X, constraints=numbers).classes_) == [5, 6, 7]


def test_each_name_is_given_once():
    labels = Labels.of(np.array([0, 0, 0, 1, 1, 1, -1]), ["a", "cluster 2"])
    # Most of both labels are in cluster 0; it has the name of which it has more.
    assert cluster_names(np.array([0, 0, 0, 0, 0, 1, 2]), labels, 3).tolist() == [
        *("a", "cluster 2", "cluster 2'")
    ]


def test_a_cluster_is_not_named_by_a_label_of_few():
    # Cluster 1 has three "B" and one "T", but most of "B" are in cluster 0.
    clusters = np.repeat([0, 1, 2, 3], [5, 4, 2, 1])
    values = np.array([0] * 5 + [0, 0, 0, 1] + [0, 2] + [-1])
    named = cluster_names(clusters, Labels.of(values, ["B", "T", "NK"]), 4)
    assert named.tolist() == ["B", "B (2)", "NK", "cluster 3"]
    assert cluster_names(clusters, Labels(values), 4).tolist() == [0, 3, 2, 4]


def test_names_in_pictures(blobs):
    pytest.importorskip("matplotlib")
    X, y = blobs
    figure = linkwise.plots.draw_side_by_side(X, {"named": NAMES[y], "numbered": y})
    legends = [ax.get_legend() for ax in figure.axes]
    assert [text.get_text() for text in legends[0].get_texts()] == NAMES.tolist()
    assert legends[1] is None


def test_names_in_the_report(blobs, partial):
    pytest.importorskip("jinja2")
    X, _ = blobs
    wrong = [NAMES[2] if k == 0 else name for k, name in enumerate(partial)]
    known = Constraints.from_labels(wrong)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    page = linkwise.report.render_report(
        X=X, labels=model.labels_, constraints=known, result=model, random_state=0
    )
    assert "label Gentoo ≠ label Adelie" in page or "label Adelie ≠ label Gentoo" in page
    assert "Features of cluster Adelie" in page


# y ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "partial"),
    [
        ([0, 1, -1, 1], True),
        ([0.0, np.nan, 1.0, 1.0], True),
        (["a", None, "b", "b"], True),
        ([0, 1, None, 1], True),
        (np.array([0, -1, 1, 1], dtype=object), True),
        ([0, 1, 2, 1], False),
        (["a", "b", "b", "b"], False),
        ([-1, 1, 1, -1], False),  # the two classes of a classifier
        ([-2, -1, 0, 1], False),
        ([-1.0, 0.3, 0.2, 2.0], False),
        ([-1, -1, -1, -1], False),
        ([None] * 4, False),
        ([[0, -1]] * 4, False),
    ],
)
def test_labels_given_as_y_are_not_ignored_in_silence(y, partial):
    X = [[0.0], [0.1], [5.0], [5.1]]
    assert looks_partial(y) is partial
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        NCut(2, random_state=0).fit_predict(X, y)
        NCut(2, random_state=0).fit(X, y)
        NCut(2, random_state=0).fit(X, y, constraints=Constraints(4))
    shown = [warning for warning in caught if "partial labels" in str(warning.message)]
    assert len(shown) == (2 if partial else 0)
    if partial:
        assert "fit(X, constraints=Constraints.from_labels(y))" in str(shown[1].message)
        assert "ncut__constraints=" in str(shown[1].message)
        assert [warning.filename for warning in shown] == [__file__] * 2


# Disagreeing answers ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def disagreement(blobs):
    """Twenty pairs, and one of them the other way round as well."""
    _, y = blobs
    right = Constraints.sample(y, 20, random_state=0)
    return right.with_pairs(cannot_link=right.must_link[:1])


SOFT = {
    "auto": Auto(3, random_state=0),
    "cut": ConstrainedCut(3, constraints_mode="soft", random_state=0),
    "cosc": COSC(3, violations="auto", random_state=0),
}


@pytest.mark.parametrize("key", SOFT)
def test_a_pair_given_both_ways_is_weighed(key, blobs, disagreement):
    X, y = blobs
    model = SOFT[key].fit(X, constraints=disagreement)
    assert model.accepts_contradictions
    assert linkwise.metrics.adjusted_rand(y, model.labels_) == 1
    if key == "cosc":  # which judges no single pair
        return
    first = model.result_.suspects[0]
    assert first.kind == "cannot-link"
    assert first.samples == tuple(disagreement.must_link[0])


@pytest.mark.parametrize("key", METHODS)
def test_hard_methods_say_that_a_pair_is_given_both_ways(key, blobs, disagreement):
    model = METHODS[key](3, random_state=0)
    if model.accepts_contradictions:
        model.set_params(hard=True)
    with pytest.raises(ConflictError, match=r"cannot-linked, but the must-link \d+ - \d+ puts"):
        model.fit(blobs[0], constraints=disagreement)


@pytest.mark.parametrize("key", ["auto", "cosc", "cut"])
def test_too_many_labels_are_listed_by_name(key, blobs):
    X, y = blobs
    model = SOFT[key].__class__(**{**SOFT[key].get_params(), "n_clusters": 2})
    with pytest.raises(ConflictError, match=r"3 different labels \(Adelie, Chinstrap, Gentoo\)"):
        model.fit(X, constraints=Constraints.from_labels(NAMES[y]))


def test_of_a_pair_given_both_ways_one_is_suspected(blobs):
    X, y = blobs
    right = Constraints.sample(y, 20, random_state=0)
    both = right.with_pairs(cannot_link=right.must_link[:2], must_link=right.cannot_link[:1])
    wrong = {("cannot-link", *pair) for pair in right.must_link[:2].tolist()}
    wrong |= {("must-link", *pair) for pair in right.cannot_link[:1].tolist()}
    model = Auto(3, random_state=0).fit(X, constraints=both)
    suspected = [one for one in model.suspects_ if one.probability > 0.5]
    assert {(one.kind, *one.samples) for one in suspected} == wrong


def test_the_share_of_wrong_answers_is_not_far_too_low():
    X, y = make_blobs(300, centers=4, random_state=3)
    right = Constraints.sample(y, 60, random_state=0).table
    sign = right.sign.copy()
    sign[np.random.RandomState(100).permutation(60)[:18]] *= -1
    some_wrong = Constraints(300, right.pairs[sign > 0], right.pairs[sign < 0])
    assert 0.2 < Auto(4, random_state=0).fit(X, constraints=some_wrong).noise_ < 0.4


def test_the_report_names_contradictions():
    X = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]]
    known = Constraints(8, must_link=[(0, 1), (1, 2), (4, 5)], cannot_link=[(0, 2), (1, 6)])
    report = Auto(2, random_state=0).fit(X, constraints=known).report_
    assert (
        "contradiction: samples 0 and 2 are cannot-linked, but the must-links 0 - 1 - 2 put them "
        "in one cluster" in report.summary()
    )
    both = Constraints(8, [(i, i + 1) for i in range(6)], [(i, i + 1) for i in range(6)])
    told = "\n".join(Auto(2, random_state=0).fit(X, constraints=both).report_.summary())
    assert told.count("contradiction:") == 3
    assert "3 more contradictions" in told
    assert "contradiction" not in str(Auto(2, random_state=0).fit(X).report_)


def test_contradictions_name_samples_as_the_pairs_did():
    ids = ["anna", "bob", "cid", "dot", "eve", "fay"]
    pairs = {"i": ["anna", "bob", "anna"], "j": ["bob", "eve", "eve"]}
    known = Constraints.from_frame({**pairs, "link": ["must", "must", "cannot"]}, ids=ids)
    claim = "amples anna and eve are cannot-linked, but the must-links anna - bob - eve put them"
    assert claim in str(known.conflicts()[0])
    with pytest.raises(ConflictError, match=claim):
        pickle.loads(pickle.dumps(known)).restrict([0, 1, 4]).check()
    X = [[0.0], [0.1], [5.0], [5.1], [0.2], [9.0]]
    model = Auto(3, random_state=0).fit(X, constraints=known)
    assert any(claim in line for line in model.report_.summary())
    assert "cluster 2 has only sample fay" in model.report_.summary()
    assert model.suspects_[0].names == tuple(ids[k] for k in model.suspects_[0].samples)


def test_too_few_clusters_name_samples_as_the_pairs_did():
    ids = ["anna", "bob", "cid", "dot"]
    ends = [(i, j) for i in range(4) for j in range(i)]
    pairs = {"i": [ids[i] for i, _ in ends], "j": [ids[j] for _, j in ends]}
    known = Constraints.from_frame({**pairs, "link": ["cannot"] * len(ends)}, ids=ids)
    for n_clusters, shown in ((2, r"\| bob \| .*#0 \(anna, bob\)"), (3, "anna, bob, cid, dot, or")):
        with pytest.raises(ConflictError, match=shown):
            known.check(n_clusters)


# Rows in another order --------------------------------------------------------------------------


def test_labels_in_another_order_than_the_rows_are_noticed(blobs, partial):
    pandas = pytest.importorskip("pandas")
    frame, column = pandas.DataFrame(blobs[0]), pandas.Series(partial)
    shuffled = frame.sample(frac=1, random_state=0)
    known = Constraints.from_labels(column)
    model = CSC(3, random_state=0)
    model.fit(frame, constraints=known)
    model.fit(blobs[0], constraints=known)
    model.fit(shuffled, constraints=Constraints.from_labels(column.reindex(shuffled.index)))
    model.fit(shuffled, constraints=Constraints.from_labels(column.to_numpy()))
    model.fit(shuffled.set_axis([f"r{k}" for k in range(60)]), constraints=known)
    with pytest.raises(ValueError, match=r"in another order than X .*y.reindex\(X.index\)"):
        model.fit(shuffled, constraints=known)
    with pytest.raises(ValueError, match=r"labels are of 12 rows, and X has 60 .*y.reindex"):
        model.fit(frame, constraints=Constraints.from_labels(column.dropna()))
    with pytest.warns(UserWarning, match="labels have other rows than X"):
        model.fit(frame.set_axis(frame.index + 9), constraints=known)


def test_labels_of_none_of_the_rows_are_noticed(blobs, partial):
    pandas = pytest.importorskip("pandas")
    frame, column = pandas.DataFrame(blobs[0]), pandas.Series(partial)
    of_others = Constraints.from_labels(column.set_axis(column.index + 200))
    with pytest.warns(UserWarning, match="labels have other rows than X") as caught:
        CSC(3, random_state=0).fit(frame.set_axis(frame.index + 100), constraints=of_others)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():  # rows that are only counted have no names to compare
        warnings.simplefilter("error")
        CSC(3, random_state=0).fit(frame, constraints=of_others)


# Parameters of the graph --------------------------------------------------------------------------


def test_parameters_of_the_graph_can_be_searched():
    model = clone(NCut(3)).set_params(affinity__neighbors=5, n_clusters=2)
    assert (model.affinity.neighbors, model.n_clusters) == (5, 2)
    assert NCut(3).affinity is None
    with pytest.raises(ValueError, match="neighbours"):
        NCut(3).set_params(affinity__neighbours=5)


# Distances as affinities ------------------------------------------------------------------------


def test_distances_given_as_affinities_are_noticed(blobs):
    X, _ = blobs
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    model = NCut(3, affinity="precomputed", random_state=0)
    for distances in (D, D**2, np.sqrt(D)):
        with pytest.warns(UserWarning, match="looks like a matrix of distances"):
            model.fit(distances)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for W in (np.exp(-(D**2)), np.exp(-(D**2) / 100), 1 / (1 + D), D.max() - D):
            model.fit(W - np.diag(W.diagonal()))
        uniform = np.random.RandomState(0).uniform(0.1, 1, (60, 60))
        model.fit(uniform + uniform.T)
        NCut(3, affinity=linkwise.Affinity(metric="precomputed"), random_state=0).fit(D)


@pytest.mark.parametrize("make", [csr_array, np.asarray])
def test_a_graph_given_as_features_is_noticed(make, blobs):
    X, _ = blobs
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    near = ((D < 12) & (D > 0)).astype(float)
    with pytest.warns(UserWarning, match=r'pass NCut\(..., affinity="precomputed"\)') as told:
        NCut(3, random_state=0).fit(make(near))
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NCut(3, affinity="precomputed", random_state=0).fit(make(near))
        NCut(3, random_state=0).fit(D[:5, :5])  # too small to tell
        NCut(3, random_state=0).fit(np.random.RandomState(0).uniform(size=(60, 60)))


def test_distances_given_as_features_are_noticed(blobs):
    X, _ = blobs
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    right = r'pass Auto\(..., affinity=linkwise.Affinity\(metric="precomputed"\)\)'
    with pytest.warns(UserWarning, match=right):
        Auto(3, random_state=0).fit(D)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        METHODS["ccl"](3, metric="precomputed").fit(D)


# Data of other libraries ------------------------------------------------------------------------


def of_library(module, name, **content):
    return type(name, (SimpleNamespace,), {"__module__": module})(**content)


def tensor(**changes):
    content = {"requires_grad": False, "device": SimpleNamespace(type="cpu"), "is_sparse": False}
    return of_library("torch", "Tensor", **{**content, **changes})


def unreadable(error):
    """Return a tensor that only NumPy finds out about."""

    class Tensor(type(tensor())):
        def __array__(self, dtype=None, copy=None):
            raise error

    return Tensor(**vars(tensor()))


@pytest.mark.parametrize(
    ("X", "call"),
    [
        (of_library("anndata._core.anndata", "AnnData"), r"fit\(adata.obsm\['X_pca'\]\)"),
        (of_library("networkx.classes.graph", "Graph"), r"networkx.to_scipy_sparse_array\(graph"),
        (of_library("igraph", "Graph"), r"fit\(graph.get_adjacency_sparse\('weight'\)\)"),
        (of_library("polars.lazyframe.frame", "LazyFrame", columns=["a"]), r"fit\(X.collect\(\)\)"),
        (tensor(requires_grad=True), r"fit\(X.detach\(\).cpu\(\).double\(\).numpy\(\)\)"),
        (unreadable(TypeError("Got unsupported ScalarType BFloat16")), "such as bfloat16"),
        (unreadable(RuntimeError("has negative bit set")), r"X.detach\(\)"),
        (tensor(device=SimpleNamespace(type="cuda")), r"X.detach\(\)"),
        (tensor(is_sparse=True), r"X.to_dense\(\)"),
    ],
)
def test_data_of_other_libraries_get_the_right_call(X, call, blobs):
    for use in (Auto().fit, linkwise.Prepared, NCut(2, random_state=0).fit(blobs[0]).predict):
        with pytest.raises(TypeError, match=call):
            use(X)


def test_a_tensor_that_numpy_can_read_is_data(blobs):
    class Tensor(type(tensor())):
        def __array__(self, dtype=None, copy=None):
            return blobs[0]

    readable = Tensor(**vars(tensor()))
    assert_array_equal(
        NCut(3, random_state=0).fit(readable).labels_, NCut(3, random_state=0).fit(blobs[0]).labels_
    )


class PolarsColumn:
    """What a column of polars is to NumPy: its type is no type of NumPy."""

    def __init__(self, values):
        self.values, self.dtype = np.asarray(values), "Date"

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype or self.values.dtype)


def test_columns_of_polars_without_numbers_are_named():
    columns = {
        "a": PolarsColumn(np.arange(60.0)),
        "word": PolarsColumn(["u", "v"] * 30),
        "day": PolarsColumn(np.full(60, "2020-01-01", dtype="datetime64[D]")),
    }
    content = {"columns": list(columns), "dtypes": [], "__getitem__": lambda _, n: columns[n]}
    frame = type("DataFrame", (), {"__module__": "polars.dataframe.frame", **content})()
    with pytest.raises(ValueError, match="no numbers in the columns 'word', 'day'") as told:
        NCut(3).fit(frame)
    assert "X.to_dummies(['word', 'day'])" in str(told.value)


def test_columns_of_text_and_absurd_values_are_named(blobs):
    pandas = pytest.importorskip("pandas")
    X, _ = blobs
    frame = pandas.DataFrame(X, columns=["a", "b"])
    days = pandas.date_range("2024-01-01", periods=60)
    with pytest.raises(
        ValueError, match=r"columns 'word', 'day'. .*get_dummies\(X\), dates"
    ) as told:
        NCut(3).fit(frame.assign(word="x", day=days))
    call = "(X['day'] - X['day'].min()).dt.days"
    assert call in str(told.value)
    numbers = eval(call, {"X": frame.assign(day=days)})  # what the message says works
    assert NCut(3, random_state=0).fit(frame.assign(day=numbers)).labels_.size == 60
    frame = frame.assign(a=frame["a"].astype(str))  # numbers as text
    assert NCut(3, random_state=0).fit(frame).labels_.size == 60
    X = X.copy()
    X[7, 1] = -1e300
    for data in (X, csr_array(X)):
        for model in (NCut(3), Auto(3)):  # Auto sorts the samples
            with pytest.raises(ValueError, match=r"feature is 1e.300 in size \(X\[7, 1\]\)"):
                model.fit(data)


def test_missing_values_are_found(blobs):
    pandas = pytest.importorskip("pandas")
    X = blobs[0].copy()
    X[[3, 7], 1] = np.nan
    for data, column in ((X, "1"), (pandas.DataFrame(X, columns=["a", "b"]), "'b'")):
        with pytest.raises(ValueError, match=rf"NaN: 2 missing in 2 .* row 3; columns {column}\. "):
            NCut(3).fit(data)
    X[np.isnan(X)] = np.inf
    with pytest.raises(
        ValueError, match=r"infinity: 2 infinite in 2 .* row 3; columns 1\. Correct"
    ):
        NCut(3).fit(X)


def test_missing_values_of_lists_and_of_several_indices_are_found():
    rows = [[1.0, np.nan], [2.0, 1.0], [3.0, 0.0]]
    for X in (rows, tuple(map(tuple, rows))):
        with pytest.raises(ValueError, match=r"NaN: 1 missing in 1 row\(s\), first in row 0; col"):
            NCut(2).fit(X)
    pandas = pytest.importorskip("pandas")
    index = pandas.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")])
    with pytest.raises(ValueError, match=r"row 0 \(\('a', 'x'\)\); columns 1"):
        NCut(2).fit(pandas.DataFrame(rows, index=index))


@pytest.mark.parametrize("dtype", ["Int64", "Float64", object])
def test_missing_values_of_pandas_are_found(dtype, blobs):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": blobs[0][:, 0], "b": range(60)})
    frame.index = [f"customer {row}" for row in range(60)]
    frame["b"] = frame["b"].astype(dtype).mask(frame["b"] == 3, None)
    message = r"NaN: 1 missing in 1 row.* row 3 \('customer 3'\); columns 'b'"
    with pytest.raises(ValueError, match=message):
        Auto(3).fit(frame)


@pytest.mark.parametrize(
    ("X", "call"),
    [
        (["a few words", "more words"], r"TfidfVectorizer\(\).fit_transform\(X\)"),
        ({"a": [1.0, 2.0], "b": [3.0, 4.0]}, r"fit\(pandas.DataFrame\(X\)\)"),
    ],
)
def test_texts_and_dicts_get_the_right_call(X, call):
    with pytest.raises(TypeError, match=call):
        NCut(2).fit(X)


def test_a_table_given_as_constraints_gets_the_right_call(blobs):
    with pytest.raises(TypeError, match=r"Constraints.from_frame\(pairs, n_samples=len\(X\)\)"):
        Auto(3).fit(blobs[0], constraints={"i": [0], "j": [1], "link": ["same"]})


def test_indices_that_count_from_one_are_noticed():
    with pytest.raises(IndexError, match=r"only 5 samples .* count from 1, subtract 1"):
        Constraints(5, must_link=[(1, 5)])
    with pytest.raises(IndexError) as error:
        Constraints(5, must_link=[(0, 5)])
    assert "subtract" not in str(error.value)


# Methods that contributors write ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (np.zeros(4, int), TypeError, "solve returned ndarray, .*return Result"),
        (None, TypeError, "solve returned NoneType"),
        (linkwise.Result([0, 0, 1, 1]), TypeError, "labels of type list, but they are an integer"),
        (linkwise.Result(np.zeros(4)), TypeError, "labels of type float64"),
        (linkwise.Result(np.zeros(3, int)), ValueError, r"shape \(3,\) .* each of the 4 samples"),
        (linkwise.Result(np.array([0, -1, 0, 1])), ValueError, "from -1 up"),
    ],
)
def test_a_function_that_returns_the_wrong_thing_is_named(returned, error, message):
    def solve(X, n_clusters):
        return returned

    wrong = solve

    class Contributed(ConstrainedClusterer):
        """A method."""

        family = "test"
        n_clusters: int = 2
        solve = staticmethod(wrong)

    with pytest.raises(error, match=message):
        Contributed().fit([[0.0], [0.1], [5.0], [5.1]])


def test_the_template_for_contributors_works(blobs, tmp_path, monkeypatch):
    page = Path(linkwise.__file__).parents[2] / "CONTRIBUTING.md"
    if not page.exists():
        pytest.skip("linkwise is installed without its repository")
    template = page.read_text(encoding="utf-8").partition("```py\n")[2].partition("```")[0]
    (tmp_path / "mine.py").write_text(template)
    monkeypatch.syspath_prepend(tmp_path)
    X, y = blobs
    model = import_module("mine").Mine(3, weight=2.0, random_state=0)
    model.fit(X, constraints=Constraints.sample(y, 20, random_state=0))
    assert linkwise.metrics.adjusted_rand(y, model.labels_) == 1


def mixed_frame(n=60):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {
            "x": np.arange(n) % 2 * 9.0 + np.arange(n) / n,
            "who": [f"K{k:03}" for k in range(n)],
            "city": ["Kiel", "Ulm", "Bonn"] * (n // 3),
            "paid": [f"1,{k:03}.50 €" for k in range(n)],
            "since": [f"2024-01-{1 + k % 28:02}" for k in range(n)],
            "note": [f"a long note about the number {chr(97 + k % 26)}{k}" for k in range(n)],
        }
    )


def test_columns_of_text_are_told_apart():
    """Categories become columns; of names and ids each value would become one."""
    pandas = pytest.importorskip("pandas")
    frame = mixed_frame()
    with pytest.raises(ValueError, match="no numbers in the columns 'who', 'city'") as told:
        Auto(2).fit(frame)
    message = str(told.value)
    drop, dummies = "X.drop(columns=['who'])", "pandas.get_dummies(X, columns=['city'])"
    assert drop in message
    assert dummies in message
    assert "texts ('note') by sklearn.feature_extraction.text.TfidfVectorizer" in message
    assert "written dates by pandas.to_datetime(X['since'])" in message
    # What the message says works
    X = eval(drop, {"X": frame}).drop(columns=["note", "since"])
    call = message.partition("amounts by ")[2].partition(", written dates")[0]
    X["paid"] = eval(call, {"X": X, "pandas": pandas})
    assert X["paid"].tolist() == [1000.5 + k for k in range(60)]
    X = eval(dummies, {"X": X, "pandas": pandas})
    assert X.shape == (60, 5)
    assert Auto(2, random_state=0).fit(X).labels_.size == 60


def test_amounts_with_a_decimal_comma_are_read_as_such():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"paid": [f"1.{k:03},50 €" for k in range(60)]})
    with pytest.raises(ValueError, match="amounts by") as told:
        Auto(2).fit(frame)
    call = str(told.value).partition("amounts by ")[2].rstrip(".")
    assert eval(call, {"X": frame, "pandas": pandas})[3] == 1003.5


@pytest.mark.parametrize(
    ("values", "call"),
    [
        ([np.arange(3.0)] * 30, "numpy.vstack(X['b'])"),
        ([[1.0, 2.0], [3.0, 4.0], (5.0, 6.0)] * 10, "numpy.vstack(X['b'])"),
        ([{"x": 1.0, "y": 2.0}, {"x": 2.0}, {"x": 5.0}] * 10, "pandas.DataFrame(list(X['b']))"),
    ],
)
def test_columns_of_lists_are_spread(values, call):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(30.0), "b": values, "city": ["Kiel", "Ulm"] * 15})
    with pytest.raises(ValueError, match="columns 'b', 'city'") as told:
        Auto(2).fit(frame)
    assert f"lists, spread over columns of numbers, for example by {call}" in str(told.value)
    dummies = "pandas.get_dummies(X, columns=['city'])"
    assert dummies in str(told.value)
    # What the message says works
    assert eval(call, {"X": frame, "numpy": np, "pandas": pandas}).shape == (30, len(values[0]))
    assert eval(dummies, {"X": frame, "pandas": pandas}).shape == (30, 4)
    with pytest.raises(ValueError, match="spread over columns"):  # also among missing ones
        Auto(2).fit(frame[["a", "b"]].assign(b=[None, np.nan, *values[2:]]))


def test_names_of_columns_may_repeat(blobs):
    pandas = pytest.importorskip("pandas")
    X, _ = blobs
    frame = pandas.DataFrame(X, columns=["a", "a"])
    found = NCut(3, random_state=0).fit(frame)
    assert_array_equal(found.labels_, NCut(3, random_state=0).fit(X).labels_)
    assert_array_equal(found.predict(frame), found.labels_)
    frame = pandas.concat([frame, pandas.DataFrame({"a": ["1,200.50 €", "7 €"] * 30})], axis=1)
    with pytest.raises(ValueError, match=r"columns 'a', and several .* the same name") as told:
        NCut(3).fit(frame)
    call = str(told.value).partition("for example by ")[2].rstrip(".")
    frame = eval(call, {"X": frame})
    with pytest.raises(ValueError, match=r"no numbers in the columns 2. .*amounts by"):
        NCut(3).fit(frame)


def test_texts_are_looked_for_in_lists_alone():
    """Of data of another library, the shape may be known and the values far away."""
    with pytest.raises((TypeError, ValueError)) as told:
        NCut(2).fit(SimpleNamespace(shape=(3,)))
    assert "not iterable" not in str(told.value)


def test_texts_are_named_in_any_list():
    pandas = pytest.importorskip("pandas")
    texts = ["the cat sat", "on the mat", "the dog"] * 5
    for given in (texts, tuple(texts), np.array(texts), pandas.Series(texts)):
        with pytest.raises(TypeError, match=r"X is a list of texts. .*TfidfVectorizer") as told:
            Auto(2).fit(given)
        assert "I have text or images" in str(told.value)


def test_new_samples_with_missing_values_or_columns(blobs):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(blobs[0], columns=["a", "b"]).assign(
        c=np.tile([0.0, 1.0], 30), d=np.tile([1.0, 0.0], 30)
    )
    for model in (Auto(3, random_state=0), NCut(3, random_state=0)):
        model.fit(X)
        new = X.copy()
        new.loc[7, "b"] = np.nan
        with pytest.raises(ValueError, match=r"NaN: 1 missing in 1 row.*row 7; columns 'b'"):
            model.predict(new)
        new = X[["b", "a", "c"]]
        with pytest.raises(ValueError, match="feature names should match") as told:
            model.predict(new)
        call = "X.reindex(columns=model.feature_names_in_, fill_value=0)"
        assert call in str(told.value)
        assert model.predict(eval(call, {"X": new, "model": model})).size == 60
