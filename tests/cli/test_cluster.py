"""`linkwise cluster`: every format in, every format out, and the same answer as in Python."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import mmwrite
from scipy.sparse import csr_array, save_npz
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Auto, ConstrainedPCA, Constraints
from linkwise.metrics import adjusted_rand

pytest.importorskip("click")
pytest.importorskip("pandas")

PAIRS = {"must_link": [(0, 5)], "cannot_link": [(0, 25), (25, 45), (2, 50)]}
BELIEFS = {"must_link_belief": [1], "cannot_link_belief": [1, 1, 0.5]}


def known():
    return Constraints(60, **PAIRS, **BELIEFS)


def expected(X):
    return Auto(3, random_state=0).fit(X, constraints=known()).labels_


def read(path, delimiter=","):
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def numbered_pairs(tmp_path):
    (tmp_path / "numbers.csv").write_text(
        "i,j,link,belief\n0,5,must,1\n0,25,cannot,1\n25,45,cannot,1\n2,50,cannot,0.5\n"
    )
    return "numbers.csv"


# Tables ------------------------------------------------------------------------------------


def test_a_table_gives_the_answer_of_python_with_its_ids(linkwise, table, tmp_path):
    run = linkwise(
        "cluster", "table.csv", "-k", 3, "-c", "pairs.csv", "--id", "name", "--truth", "class",
        "-o", "out.csv",
    )  # fmt: skip
    assert run.code == 0
    assert run.out == ""
    rows = read(tmp_path / "out.csv")
    assert rows[0] == ["name", "cluster"]
    assert [row[0] for row in rows[1:]] == table.names
    labels = expected(StandardScaler().fit_transform(table.X))
    assert [int(row[1]) for row in rows[1:]] == labels.tolist()
    assert "standardised (--no-scale" in run.err
    assert f"ARI {adjusted_rand(table.y, labels):.3f}" in run.err
    assert "0 pairs violated" in run.err


def test_scaling_is_the_standard_one_and_can_be_turned_off(linkwise, table, monkeypatch):
    seen = []
    fit = Auto.fit
    monkeypatch.setattr(Auto, "fit", lambda s, X, **k: seen.append(X.X.copy()) or fit(s, X, **k))
    for option in ((), ("--no-scale",)):
        linkwise("cluster", "table.csv", "-k", 3, "--id", "name", "--drop", "class", *option)
    assert_allclose(seen[0], StandardScaler().fit_transform(table.X), atol=1e-12)
    assert_array_equal(seen[1], table.X)


def test_the_clusters_go_to_stdout_and_nothing_else_does(linkwise, table):
    run = linkwise("cluster", "table.csv", "-k", 3, "--id", "name", "--drop", "class")
    lines = run.out.splitlines()
    assert lines[0] == "name,cluster"
    assert len(lines) == 61
    assert "known: 0 must-links" in run.err
    quiet = linkwise("cluster", "table.csv", "-k", 3, "--id", "name", "--drop", "class", "--quiet")
    assert quiet == (0, run.out, "")


def test_tsv_and_other_delimiters(linkwise, example, tmp_path):
    (tmp_path / "t.tsv").write_text(example.csv("\t"))
    (tmp_path / "t.csv").write_text(example.csv(";"))
    options = ("-k", 3, "--id", "name", "--drop", "class", "--quiet")
    tabs = linkwise("cluster", "t.tsv", *options, "-o", "out.tsv")
    semicolons = linkwise("cluster", "t.csv", *options, "--delimiter", ";", "-o", "out.csv")
    assert tabs.code == semicolons.code == 0
    rows = read(tmp_path / "out.tsv", "\t")
    assert rows == read(tmp_path / "out.csv")
    assert rows[1][0] == "p00"


def test_ids_are_written_as_they_were_read(linkwise, tmp_path):
    rows = "\n".join(f"00{k},{k // 4},{k % 4}" for k in range(8))
    (tmp_path / "t.csv").write_text(f"id,a,b\n{rows}\n")
    (tmp_path / "p.csv").write_text("i,j,link\n000,007,cannot\n")
    run = linkwise("cluster", "t.csv", "-k", 2, "-c", "p.csv", "-o", "out.csv")
    assert run.code == 0
    assert "ids are the column 'id'" in run.err
    assert "2 features (a, b)" in run.err
    assert [row[0] for row in read(tmp_path / "out.csv")] == ["id", *(f"00{k}" for k in range(8))]


def test_rows_without_ids_are_numbered_from_zero_as_in_pairs(linkwise, table, tmp_path):
    pairs = numbered_pairs(tmp_path)
    options = ("cluster", "table.csv", "-k", 3, "-c", pairs, "--drop", "class", "--drop", "name")
    assert linkwise(*options, "-o", "out.csv").code == 0
    rows = read(tmp_path / "out.csv")
    assert rows[:2] == [["row", "cluster"], ["0", "0"]]
    assert rows[-1][0] == "59"
    labels = expected(StandardScaler().fit_transform(table.X))
    assert [int(row[1]) for row in rows[1:]] == labels.tolist()


def test_categories_become_columns_of_zeros_and_ones(linkwise, tmp_path, monkeypatch):
    seen = []
    fit = Auto.fit
    monkeypatch.setattr(Auto, "fit", lambda s, X, **k: seen.append(X.X.copy()) or fit(s, X, **k))
    rows = [(k / 2, "red" if k < 4 else "blue", k % 3, "yes" if k % 2 else "no") for k in range(8)]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (tmp_path / "t.csv").write_text(f"a,colour,size,flag\n{text}\n")
    run = linkwise("cluster", "t.csv", "-k", 2, "--categorical", "size")
    assert run.code == 0
    assert "4 features (a, colour, size, flag); 3 categorical, 8 columns of numbers" in run.err
    X = seen[0]
    assert_allclose(X[:, 0], StandardScaler().fit_transform(np.arange(8.0)[:, None]).ravel())
    assert_array_equal(X[:, 1:3], [[row[1] == "blue", row[1] == "red"] for row in rows])
    assert_array_equal(X[:, 3:6], np.eye(3)[[row[2] for row in rows]])
    assert_array_equal(X[:, 6:], [[row[3] == "no", row[3] == "yes"] for row in rows])


def test_missing_values_are_filled_when_asked(linkwise, tmp_path, monkeypatch):
    seen = []
    fit = Auto.fit
    monkeypatch.setattr(Auto, "fit", lambda s, X, **k: seen.append(X.X.copy()) or fit(s, X, **k))
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,x\n,x\n4,\n9,y\n")
    run = linkwise("cluster", "t.csv", "-k", 2, "--impute", "median", "--no-scale")
    assert run.code == 0
    assert_array_equal(seen[0][:, 0], [1, 2, 3, 4, 9])
    assert_array_equal(seen[0][:, 1], [1, 1, 1, 1, 0])


def test_nearly_empty_columns_are_left_out_and_half_empty_ones_are_named(linkwise, tmp_path):
    rows = [f"{k / 2},{k % 7 if k % 2 else ''},{k if k == 3 else ''}" for k in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["a,half,rare", *rows]))
    options = ("cluster", "t.csv", "-k", 2, "--impute", "median")
    run = linkwise(*options)
    assert run.code == 0
    assert "column 'rare': 95% of it is missing, so it is left out" in run.err
    assert "column 'half': 50% of it was missing, and is filled" in run.err
    assert "2 features (a, half)" in run.err
    asked = linkwise(*options, "--features", "a", "--features", "rare")
    assert "2 features (a, rare)" in asked.err
    assert "column 'rare': 95% of it was missing, and is filled" in asked.err


def test_what_a_column_is_filled_with_is_said(linkwise, tmp_path):
    rows = [f"{k},{'silver' if k % 2 else ''},{k % 5 if k % 2 else ''}" for k in range(20)]
    rows[1] = "1,gold,1"
    (tmp_path / "t.csv").write_text("\n".join(["a,card,n", *rows]))
    run = linkwise("cluster", "t.csv", "-k", 2, "--impute", "median")
    said = "50% of it was missing, and is filled with"
    assert f"column 'card': {said} 'silver', its most frequent value (--drop card" in run.err
    assert f"column 'n': {said} 2, its median (--drop n leaves it out)" in run.err


def test_partial_labels_are_knowledge_and_no_feature(linkwise, table, tmp_path):
    lines = (tmp_path / "table.csv").read_text().splitlines()
    marked = [f"{lines[0]},partial"]
    texts = {0: "late", 1: "late", 30: "early", 50: "-1"}
    marked += [f"{line},{texts.get(k, '')}" for k, line in enumerate(lines[1:])]
    (tmp_path / "t.csv").write_text("\n".join(marked))
    options = ("t.csv", "--id", "name", "--drop", "class", "--labels", "partial", "-m", "gfhf")
    run = linkwise("cluster", *options, "-o", "out.csv")
    assert run.code == 0
    assert "3 labels of 2 classes" in run.err
    assert "-k 2: as many clusters as different labels" in run.err
    names = [row[1] for row in read(tmp_path / "out.csv")[1:]]
    assert (set(names), names[0], names[30]) == ({"early", "late"}, "late", "early")
    told = json.loads(linkwise("cluster", *options, "--json").out)
    assert [told["classes"][label] for label in told["labels"]] == names
    assert "2 features (length, width)" in run.err


def test_truth_is_never_looked_at(linkwise, table, tmp_path):
    shuffled = np.random.RandomState(0).permutation(table.y)
    (tmp_path / "other.csv").write_text(table._replace(y=shuffled).csv())
    options = ("-k", 3, "--id", "name", "--truth", "class")
    runs = [linkwise("cluster", name, *options) for name in ("table.csv", "other.csv")]
    assert runs[0].out == runs[1].out
    assert all("2 features (length, width);" in run.err for run in runs)


# Other formats -----------------------------------------------------------------------------


def test_parquet_in_and_out(linkwise, table, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.read_csv(tmp_path / "table.csv").to_parquet(tmp_path / "t.parquet")
    options = ("-k", 3, "--id", "name", "--drop", "class", "-c", "pairs.csv", "--quiet")
    run = linkwise("cluster", "t.parquet", *options, "-o", "out.parquet")
    assert run.code == 0
    frame = pandas.read_parquet(tmp_path / "out.parquet")
    assert list(frame.columns) == ["name", "cluster"]
    assert frame["name"].tolist() == table.names
    assert_array_equal(frame["cluster"], expected(StandardScaler().fit_transform(table.X)))


def test_arrays_are_not_scaled(linkwise, example, tmp_path):
    np.save(tmp_path / "X.npy", example.X)
    run = linkwise("cluster", "X.npy", "-k", 3, "-c", numbered_pairs(tmp_path), "-o", "labels.npy")
    assert run.code == 0
    assert_array_equal(np.load(tmp_path / "labels.npy"), expected(example.X))


def test_an_archive_holds_names_labels_and_truth_beside_x(linkwise, example, tmp_path):
    partial = np.where(np.arange(60) % 10 == 0, example.y, -1)
    np.savez(tmp_path / "d.npz", X=example.X, names=example.names, y=example.y, partial=partial)
    run = linkwise(
        "cluster", "d.npz", "--scale", "--id", "names", "--truth", "y", "--labels", "partial",
        "-m", "llgc", "-o", "out.csv",
    )  # fmt: skip
    assert run.code == 0
    assert "6 labels of 3 classes" in run.err
    assert "ARI 1.000" in run.err
    assert read(tmp_path / "out.csv")[1] == ["p00", "0"]


@pytest.mark.parametrize("suffix", ["npz", "mtx", "csv", "npy"])
def test_graphs(suffix, linkwise, example, tmp_path):
    W = Affinity().fit_transform(StandardScaler().fit_transform(example.X))
    path = tmp_path / f"graph.{suffix}"
    pairs, options, order = numbered_pairs(tmp_path), (), np.arange(60)
    if suffix == "npz":
        save_npz(path, W)
    elif suffix == "mtx":
        mmwrite(path, W, symmetry="symmetric")
    elif suffix == "npy":
        np.save(path, W.toarray())
        options = ("--graph",)
    else:
        edges = W.tocoo()
        lines = [
            f"{i},{j},{w!r}"
            for i, j, w in zip(edges.row, edges.col, edges.data.tolist(), strict=True)
        ]
        path.write_text("\n".join(["source,target,weight", *lines]) + "\n")
        options = ("--graph",)
    run = linkwise("cluster", path.name, "-k", 3, "-c", pairs, *options, "-o", "out.csv")
    assert run.code == 0
    assert f"graph of 60 nodes and {W.nnz // 2} edges" in run.err
    rows = read(tmp_path / "out.csv")
    assert rows[0][0] == ("node" if suffix == "csv" else "row")
    found = {int(name): int(cluster) for name, cluster in rows[1:]}
    labels = Auto(3, affinity="precomputed", random_state=0).fit(W, constraints=known()).labels_
    assert adjusted_rand(labels, [found[k] for k in order]) == 1.0
    if suffix != "csv":  # the nodes of an edge list are numbered as they appear
        assert_array_equal(labels, [found[k] for k in order])


def test_a_sparse_rectangle_holds_features(linkwise, example, tmp_path):
    save_npz(tmp_path / "X.npz", csr_array(np.abs(example.X)))
    run = linkwise("cluster", "X.npz", "-k", 3, "-c", numbered_pairs(tmp_path), "-o", "out.npy")
    assert run.code == 0
    assert_array_equal(np.load(tmp_path / "out.npy"), expected(csr_array(np.abs(example.X))))


@pytest.fixture
def cells(example, tmp_path):
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    Z = StandardScaler().fit_transform(example.X)
    adata = anndata.AnnData(X=np.zeros((60, 4), dtype=np.float32))
    adata.obs_names = example.names
    adata.obs["type"] = pandas.Categorical([f"c{c}" for c in example.y])
    adata.obsm["X_pca"] = Z
    adata.obsp["connectivities"] = csr_array(Affinity().fit_transform(Z).astype(np.float32))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return adata


@pytest.mark.filterwarnings("ignore")  # of anndata's own
def test_anndata_uses_its_graph_and_gets_a_column(linkwise, cells, table, tmp_path):
    import anndata

    before = (tmp_path / "cells.h5ad").read_bytes()
    run = linkwise(
        "cluster", "cells.h5ad", "-k", 3, "-c", "pairs.csv", "--truth", "type",
        "--column", "linkwise", "-o", "out.h5ad",
    )  # fmt: skip
    assert run.code == 0
    assert "graph obsp['connectivities']" in run.err
    assert "ARI 1.000" in run.err
    copy = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert adjusted_rand(copy.obs["linkwise"].astype(int), table.y) == 1.0
    assert copy.obs["linkwise"].dtype == "category"
    assert_array_equal(copy.obsm["X_pca"], cells.obsm["X_pca"])
    assert (tmp_path / "cells.h5ad").read_bytes() == before


@pytest.mark.filterwarnings("ignore")
def test_anndata_gets_the_names_of_labels(linkwise, cells, table, tmp_path):
    import anndata

    options = ("--labels", "type", "--column", "found", "-o", "out.h5ad", "-m", "gfhf")
    assert linkwise("cluster", "cells.h5ad", "-k", 3, *options).code == 0
    found = anndata.read_h5ad(tmp_path / "out.h5ad").obs["found"]
    assert found.cat.categories.tolist() == ["c0", "c1", "c2"]
    assert (found.astype(str) == cells.obs["type"].astype(str)).all()


@pytest.mark.filterwarnings("ignore")
def test_anndata_gives_its_pca_to_methods_that_need_features(linkwise, cells, table, tmp_path):
    run = linkwise("cluster", "cells.h5ad", "-k", 3, "-c", "pairs.csv", "-m", "cpca", "-o", "o.csv")
    assert run.code == 0
    assert "2 features of obsm['X_pca']" in run.err
    model = ConstrainedPCA(3, random_state=0).fit(cells.obsm["X_pca"], constraints=known())
    rows = read(tmp_path / "o.csv")
    assert rows[0] == ["cell", "cluster"]
    assert [int(row[1]) for row in rows[1:]] == model.labels_.tolist()
    assert linkwise("cluster", "cells.h5ad", "-k", 3, "--use", "X_pca", "-m", "cut").code == 0


# What else comes out -----------------------------------------------------------------------


def test_the_json_summary_says_what_was_done(linkwise, table):
    run = linkwise(
        "cluster", "table.csv", "-k", 3, "-c", "pairs.csv", "--id", "name", "--truth", "class",
        "-m", "srcp", "--set", "mu=0.5", "--set", "affinity__neighbors=8", "--json", "--seed", 3,
    )  # fmt: skip
    told = json.loads(run.out)
    assert run.code == 0
    assert told["method"] == "srcp"
    assert told["parameters"]["mu"] == 0.5
    assert told["parameters"]["affinity"] == "Affinity(neighbors=8)"
    assert told["parameters"]["random_state"] == 3
    assert sum(told["sizes"]) == told["n_samples"] == len(told["labels"]) == 60
    assert (told["must_links"], told["cannot_links"]) == (1, 3)
    assert told["ari"] == 1.0
    assert told["ncut"] > 0
    assert told["warnings"] == []


def test_violated_pairs_are_named(linkwise, table, tmp_path):
    wrong = [f"p0{k},p{20 + k},must,1" for k in range(7)]
    lines = ["i,j,link,belief", "p00,p01,must,1", *wrong, "p08,p09,cannot,0.5"]
    (tmp_path / "wrong.csv").write_text("\n".join(lines) + "\n")
    options = ("cluster", "table.csv", "-k", 3, "--id", "name", "--drop", "class", "-m", "ncut")
    run = linkwise(*options, "-c", "wrong.csv", "-o", "out.csv")
    listed = [line for line in run.err.splitlines() if line.startswith("violated: ")]
    expected = [f"violated: must-link p0{k} - p2{k} (line {k + 3})" for k in range(5)]
    assert listed == [*expected, "violated: 3 more; --json lists all"]
    told = json.loads(linkwise(*options, "-c", "wrong.csv", "--json").out)
    assert told["violated_pairs"] == [
        *(
            {"i": f"p0{k}", "j": f"p2{k}", "link": "must", "belief": 1.0, "line": k + 3}
            for k in range(7)
        ),
        {"i": "p08", "j": "p09", "link": "cannot", "belief": 0.5, "line": 10},
    ]
    assert len(told["violated_pairs"]) == (
        told["violated_must_links"] + told["violated_cannot_links"]
    )
    run = linkwise(*options, "-c", "pairs.csv", "--json")
    assert json.loads(run.out)["violated_pairs"] == []
    assert "violated: " not in run.err


def test_violated_pairs_of_labels_are_counted(linkwise, table, tmp_path):
    lines = (tmp_path / "table.csv").read_text().splitlines()
    texts = {0: "a", 1: "b", 30: "a"}
    marked = [f"{lines[0]},partial", *(f"{x},{texts.get(k, '')}" for k, x in enumerate(lines[1:]))]
    (tmp_path / "t.csv").write_text("\n".join(marked))
    (tmp_path / "p.csv").write_text("i,j,link\np00,p30,must\n")
    options = ("-k", 3, "--id", "name", "--drop", "class", "--labels", "partial", "-m", "ncut")
    run = linkwise("cluster", "t.csv", *options, "-c", "p.csv")
    listed = [line for line in run.err.splitlines() if line.startswith("violated: ")]
    assert listed == [
        "violated: must-link p00 - p30 (line 2)", "violated: 1 pair that labels imply",
    ]  # fmt: skip


@pytest.mark.parametrize("command", [("cluster", "table.csv", "-k", 3, "-c"), ("check",)])
def test_a_session_is_no_file_of_pairs(command, linkwise, table, tmp_path):
    options = ("--id", "name", "--drop", "class") if command[0] == "cluster" else ()
    header = {"format": "linkwise session 1", "n_clusters": 3}
    (tmp_path / "answers.jsonl").write_text(
        json.dumps(header) + '\n{"i": 1, "j": 2, "answer": "same"}\n'
    )
    run = linkwise(*command, "answers.jsonl", *options)
    assert run.code == 2
    assert "answers.jsonl is a session of linkwise ask" in run.error
    assert "linkwise ask DATA -k 3 --session answers.jsonl -o pairs.csv" in run.error


def test_a_warning_is_one_line(linkwise, table):
    run = linkwise("cluster", "table.csv", "-k", 3, "-c", "pairs.csv", "--id", "name", "-m", "ncut")
    assert run.code == 0
    warnings = [line for line in run.err.splitlines() if line.startswith("Warning: ")]
    assert len(warnings) == 1
    assert "clusters without constraints and ignores the ones given" in warnings[0]


# Older matplotlib calls names that newer pyparsing has deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture(suffix, linkwise, table, tmp_path):
    pytest.importorskip("matplotlib")
    run = linkwise("cluster", "table.csv", "-k", 3, "--id", "name", "--plot", f"p.{suffix}")
    assert run.code == 0
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[suffix]
    assert (tmp_path / f"p.{suffix}").read_bytes().startswith(start)
    assert f"wrote p.{suffix}" in run.err


def test_a_report(linkwise, table, tmp_path):
    pytest.importorskip("jinja2")
    run = linkwise(
        "cluster", "table.csv", "-k", 3, "-c", "pairs.csv", "--id", "name", "--truth", "class",
        "--report", "r.html", "--quiet", "-o", "out.csv",
    )  # fmt: skip
    assert (run.code, run.err) == (0, "")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "table.csv: 3 clusters" in page
    assert "width" in page


@pytest.mark.parametrize("word", ["none", "unknown", "-", "missing"])
def test_the_report_counts_a_word_that_the_clustering_uses(word, linkwise, tmp_path):
    pytest.importorskip("jinja2")
    cards = ["gold"] * 10 + ["silver"] * 10 + [word] * 20
    rows = [f"{card},{(k % 7) + 50 * (card == 'silver')}" for k, card in enumerate(cards)]
    (tmp_path / "t.csv").write_text("\n".join(["card,n", *rows]))
    run = linkwise("cluster", "t.csv", "-k", 2, "-m", "cut", "--report", "r.html")
    assert run.code == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "83 %" not in page
    assert f"card: {word}" in page or f"<bdi>{word}</bdi>" in page
    assert "Values are missing" not in page


def test_the_report_takes_categories_for_what_they_were_asked_to_be(linkwise, tmp_path):
    pytest.importorskip("jinja2")
    rows = [f"{k // 10 if k < 20 else 'none'},{k % 7 + 50 * (k < 10)}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["plan,n", *rows]))
    options = ("cluster", "t.csv", "-k", 2, "-m", "cut", "--categorical", "plan")
    run = linkwise(*options, "--report", "r.html")
    assert run.code == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert re.search("plan: (0|none)", page)
    assert "Values are missing" not in page


def test_threads_reach_the_method(linkwise, table, monkeypatch):
    from linkwise import ConstrainedCut

    seen = []
    fit = ConstrainedCut.fit
    monkeypatch.setattr(
        ConstrainedCut, "fit", lambda s, X, **k: seen.append(s.n_jobs) or fit(s, X, **k)
    )
    options = ("cluster", "table.csv", "-k", 3, "--id", "name", "-m", "cut", "--threads", 1)
    assert linkwise(*options).code == 0
    assert seen == [1]


def test_the_same_seed_gives_the_same_answer(linkwise, table):
    options = ("cluster", "table.csv", "-k", 5, "--id", "name", "-m", "cut", "--quiet")
    assert linkwise(*options, "--seed", 1).out == linkwise(*options, "--seed", 1).out


def test_auto_needs_no_number_of_clusters(linkwise, tmp_path):
    y = np.repeat([0, 1, 2], 30)
    X = np.random.RandomState(0).normal(size=(90, 2)) + 9 * np.eye(3)[y][:, :2]
    np.savetxt(tmp_path / "X.csv", X, delimiter=",", header="a,b", comments="")
    run = linkwise("cluster", "X.csv", "-m", "auto", "-o", "out.csv", "--json")
    assert run.code == 0
    found = json.loads(run.out)
    assert found["n_clusters"] == len(found["sizes"]) == 3
    assert linkwise("cluster", "X.csv", "-m", "signed").code != 0


def test_linkage_needs_no_number_of_clusters(linkwise, tmp_path):
    rng = np.random.RandomState(0)
    X = np.repeat(rng.normal(size=(40, 6)), 3, axis=0) + 0.1 * rng.normal(size=(120, 6))
    np.savetxt(tmp_path / "X.csv", X, delimiter=",", header="a,b,c,d,e,f", comments="")
    run = linkwise("cluster", "X.csv", "-m", "linkage", "-o", "out.csv", "--json")
    assert run.code == 0
    found = json.loads(run.out)
    assert found["n_clusters"] == len(found["sizes"]) > 20


def test_a_second_file_of_pairs_does_not_replace_the_first(linkwise, tmp_path):
    (tmp_path / "rows.csv").write_text("x\n" + "\n".join(map(str, range(12))) + "\n")
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("i,j,link\n0,1,must\n")
    run = linkwise("cluster", "rows.csv", "-k", "2", "-c", "one.csv", "-c", "two.csv")
    assert run.code == 2
    assert "Join them" in run.err
