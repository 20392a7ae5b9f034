"""Files in and out: pipes, links, names that collide, archives that are damaged, other scripts."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, load_npz, save_npz

from linkwise import Affinity, Constraints
from linkwise._files import atomic, lock
from linkwise.metrics import adjusted_rand

pytest.importorskip("click")
pandas = pytest.importorskip("pandas")

CLUSTER = ("cluster", "table.csv", "-k", 3, "--id", "name", "--drop", "class")
POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes and links of POSIX")


class Pipe:
    """A named pipe, and what came out of it."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path, self.content = path, None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        self.content = self.path.read_bytes()

    def text(self):
        self._reader.join(timeout=60)
        assert self.content is not None, "nobody wrote"
        assert self.path.is_fifo(), "the pipe was replaced by a file"
        return self.content.decode()


def pipe_in(monkeypatch, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


# Writing -----------------------------------------------------------------------------------


@POSIX
def test_a_pipe_is_written_and_not_replaced(linkwise, table, tmp_path):
    pytest.importorskip("jinja2")
    clusters, report = Pipe(tmp_path / "clusters"), Pipe(tmp_path / "report")
    assert linkwise(*CLUSTER, "-o", "clusters", "--report", "report").code == 0
    assert clusters.text().startswith("name,cluster\np00,0\n")
    assert report.text().startswith("<!DOCTYPE html>")
    pairs = Pipe(tmp_path / "pairs")
    Constraints(3, must_link=[(0, 1)]).to_csv(pairs.path)
    assert pairs.text() == "i,j,link,belief\n0,1,must,1.0\n"


@POSIX
def test_stdout_by_name_may_be_a_pipe(program, table):
    run = program(*CLUSTER, "-o", "/dev/stdout", "--quiet")
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("name,cluster\np00,0\n")


@POSIX
def test_a_link_is_followed_and_rights_are_kept(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    with atomic(link) as unfinished:
        unfinished.write_text("new")
        assert unfinished.suffix == ".txt"
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o600
    (tmp_path / ("x" * 240 + ".csv")).write_text("a name near the limit")
    with atomic(tmp_path / ("x" * 240 + ".csv")) as unfinished:
        unfinished.write_text("new")


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    def write(error):
        with atomic(tmp_path / "out.csv") as unfinished:
            unfinished.write_text("half")
            raise error(unfinished)

    for error in (
        lambda path: OSError(errno.ENOSPC, "No space left on device", str(path)),
        lambda path: OSError(errno.ENOSPC, "No space left on device"),
        lambda path: OSError(f"unable to write {path}"),
    ):
        with pytest.raises(OSError, match=r"out\.csv") as caught:
            write(error)
        assert "unfinished" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []


@POSIX
def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "log"
    with path.open("ab") as first, path.open("ab") as second:
        lock(first, path)
        with pytest.raises(RuntimeError, match=r"Another run is writing to .*log"):
            lock(second, path)
    with path.open("ab") as third:
        lock(third, path)


@pytest.mark.parametrize(
    "arguments",
    [
        (*CLUSTER, "-c", "pairs.csv", "-o", "pairs.csv"),
        (*CLUSTER, "-o", "table.csv"),
        (*CLUSTER, "-o", "link.csv"),
        ("compare", "table.csv", "-k", 3, "-c", "pairs.csv", "-o", "pairs.csv"),
        ("ask", "table.csv", "-k", 3, "-c", "pairs.csv", "-o", "pairs.csv"),
        ("ask", "table.csv", "-k", 3, "-c", "pairs.csv", "--session", "pairs.csv"),
    ],
)
@POSIX
def test_inputs_are_never_overwritten(arguments, linkwise, table, tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "table.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    run = linkwise(*arguments)
    assert run.code == 2
    assert "would overwrite the input" in run.error
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_outputs_need_two_names(linkwise, table, tmp_path):
    run = linkwise("ask", "table.csv", "-k", 3, "-o", "a.csv", "--session", "./a.csv")
    assert run.code == 2
    assert "--session a.csv is the file of --output" in run.error
    assert not (tmp_path / "a.csv").exists()


def test_what_cannot_be_written_is_found_before_the_work(linkwise, table, tmp_path, monkeypatch):
    (tmp_path / "locked").mkdir()
    (tmp_path / "old.csv").write_text("old")
    closed = {tmp_path / "locked", Path("old.csv")}
    monkeypatch.setattr("linkwise.cli.writing.os.access", lambda path, _: path not in closed)
    monkeypatch.setattr("linkwise.cli.cluster.load", None)  # not even reading begins
    run = linkwise(*CLUSTER, "-o", "locked/out.csv")
    assert run.code == 2
    assert "nothing can be written to the folder" in run.error
    assert "write-protected" in linkwise(*CLUSTER, "-o", "old.csv").error


def test_capitals_in_suffixes(linkwise, table, tmp_path):
    (tmp_path / "TABLE.CSV").write_bytes((tmp_path / "table.csv").read_bytes())
    options = ("-k", 3, "--id", "name", "--drop", "class")
    assert linkwise("cluster", "TABLE.CSV", *options, "-o", "OUT.NPY").code == 0
    assert np.load(tmp_path / "OUT.NPY").shape == (60,)
    assert linkwise("cluster", "TABLE.CSV", *options, "-o", "OUT.TSV").code == 0
    assert (tmp_path / "OUT.TSV").read_text().startswith("name\tcluster\n")


def test_the_new_column_needs_a_name_of_its_own(linkwise, table):
    run = linkwise(*CLUSTER, "--column", "name")
    assert run.code == 2
    assert "--column name: that is the name of the column of ids" in run.error


# For machines ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("cluster", "no.csv", "-k", 3), 2, "There is no file no.csv"),
        (("cluster", "table.csv", "--nonsense"), 2, "No such option"),
        (("cluster", "table.csv", "-k", "many"), 2, "not a valid integer"),
        ((*CLUSTER, "-c", "wrong.csv", "-m", "csc"), 1, "p00 and p05 are cannot-linked"),
    ],
)
def test_errors_are_told_to_machines(arguments, code, part, linkwise, table, tmp_path):
    (tmp_path / "wrong.csv").write_text("i,j,link\np00,p05,must\np00,p05,cannot\n")
    run = linkwise(*arguments, "--json")
    told = json.loads(run.out)
    assert (run.code, told["exit_code"]) == (code, code)
    assert part in told["error"]
    assert f"Error: {told['error']}" == run.error


def test_questions_stay_off_the_output_for_machines(linkwise, table, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("sdq"))
    run = linkwise("ask", *CLUSTER[1:], "--json")
    assert json.loads(run.out)["n_answers"] == 2
    assert run.err.count("Question") == 3


# Reading -----------------------------------------------------------------------------------


def test_data_from_stdin(linkwise, table, tmp_path, monkeypatch):
    expected = linkwise(*CLUSTER).out
    content = (tmp_path / "table.csv").read_bytes()
    pipe_in(monkeypatch, content)
    run = linkwise("cluster", "-", *CLUSTER[2:])
    assert (run.code, run.out) == (0, expected)
    assert "standard input: 60 rows" in run.err
    pipe_in(monkeypatch, content.replace(b",", b"\t"))
    assert linkwise("cluster", "-", *CLUSTER[2:], "--format", "tsv").out == expected
    array = io.BytesIO()
    np.save(array, table.X)
    pipe_in(monkeypatch, array.getvalue())
    assert linkwise("cluster", "-", "-k", 3, "--format", "npy", "--scale").code == 0
    pipe_in(monkeypatch, b"")
    assert "standard input is empty" in linkwise("cluster", "-", "-k", 3).error
    assert "must be a file" in linkwise("ask", "-", "-k", 3).error
    assert "needs a file" in linkwise("cluster", "-", "-k", 3, "--format", "h5ad").error


@POSIX
def test_data_and_pairs_from_named_pipes(linkwise, table, tmp_path):
    """As of process substitution: the names have no suffix, and can be read only once."""
    expected = linkwise(*CLUSTER, "-c", "pairs.csv").out
    for name in ("table", "pairs"):
        os.mkfifo(tmp_path / name)
        content = (tmp_path / f"{name}.csv").read_bytes()
        threading.Thread(target=(tmp_path / name).write_bytes, args=[content], daemon=True).start()
    run = linkwise("cluster", "table", *CLUSTER[2:], "-c", "pairs")
    assert (run.code, run.out) == (0, expected)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_damaged_archives_are_bad_input(kind, linkwise, tmp_path):
    path = tmp_path / "a.npz"
    X = np.random.RandomState(0).normal(size=(300, 20))
    if kind == "dense":
        np.savez_compressed(path, X=X)
    else:
        save_npz(path, csr_array(X))
    whole = path.read_bytes()
    middle = len(whole) // 2
    for content in (
        whole[:middle],
        whole[:middle] + bytes(200) + whole[middle + 200 :],
        b"PK\x03\x04",
    ):
        path.write_bytes(content)
        run = linkwise("cluster", "a.npz", "-k", 2)
        assert run.code == 2, run.err
        assert "a.npz is no readable" in run.error


def test_a_sparse_archive_that_lacks_a_part(linkwise, tmp_path):
    np.savez(tmp_path / "a.npz", format=b"csr", shape=[2, 2], data=[1.0])
    run = linkwise("cluster", "a.npz", "-k", 2)
    assert run.code == 2
    assert "no readable sparse matrix" in run.error


def test_the_index_of_a_parquet_file_names_its_rows(linkwise, table, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(table.X, columns=["a", "b"])
    expected = linkwise(*CLUSTER).out.splitlines()[1:]

    def run(index, *arguments):
        frame.set_index(index).to_parquet(tmp_path / "t.parquet")
        return linkwise("cluster", "t.parquet", "-k", 3, *arguments)

    names = pandas.Index(table.names)
    done = run(names)
    assert done.out.splitlines() == ["index,cluster", *expected]
    assert "ids are the index of the table" in done.err
    assert "2 features (a, b)" in done.err
    assert run(names.rename("name")).out.splitlines() == ["name,cluster", *expected]
    assert run(names.rename("a")).out.splitlines() == ["index,cluster", *expected]
    assert run(pandas.RangeIndex(60)).out.startswith("row,cluster\n0,")
    done = run(pandas.Index([0] * 60))
    assert "index repeats or lacks values" in done.err
    assert done.out.startswith("row,cluster\n0,")
    done = run(pandas.Index(range(5, 65)), "--id", "a")
    assert done.out.startswith("a,cluster\n")
    assert "1 feature (b)" in done.err  # what names rows does not describe them
    two = pandas.MultiIndex.from_arrays([["x"] * 60, range(60)])
    assert run(two).out.startswith("index,cluster\nx/0,")


def test_a_feature_named_twice_counts_once(linkwise, table):
    once = linkwise(*CLUSTER, "--features", "width")
    twice = linkwise(*CLUSTER, "--features", "width", "--features", "width")
    assert (twice.code, twice.out) == (0, once.out)


def test_decimal_commas(linkwise, table, tmp_path):
    expected = linkwise(*CLUSTER).out
    text = (tmp_path / "table.csv").read_text().replace(",", ";").replace(".", ",")
    (tmp_path / "table.csv").write_text(text)
    run = linkwise(*CLUSTER)
    assert (run.code, run.out) == (0, expected)
    assert re.search(r"column 'length': '\d+,\d+' is read as \d+\.\d+ \(--drop length", run.err)
    run = linkwise(*CLUSTER, "--delimiter", ";", "--decimal", ",")
    assert (run.code, run.out) == (0, expected)
    assert "is read as" not in run.err


def test_a_file_without_a_header_is_noticed(linkwise, tmp_path):
    rows = "\n".join(f"{k}.5,{k % 2}.25" for k in range(20))
    (tmp_path / "t.csv").write_text(rows + "\n")
    run = linkwise("cluster", "t.csv", "-k", 2)
    assert run.code == 0
    assert "the first line (0.5, 0.25) holds numbers only" in run.err
    (tmp_path / "t.csv").write_text("0,1\n" + rows + "\n")  # as data frames number columns
    assert "holds numbers only" not in linkwise("cluster", "t.csv", "-k", 2).err
    (tmp_path / "t.csv").write_text("1,1\n" + rows + "\n")
    assert "must name the columns, but holds numbers" in linkwise("cluster", "t.csv", "-k", 2).error
    (tmp_path / "e.csv").write_text("0,1\n1,2\n2,0\n2,3\n3,4\n4,5\n5,3\n")
    assert "holds numbers only" in linkwise("cluster", "e.csv", "--graph", "-k", 2).err


def test_columns_that_do_not_vary(linkwise, table, tmp_path):
    frame = pandas.DataFrame(table.X, columns=["a", "b"]).assign(same=7, word="x")
    frame.to_csv(tmp_path / "t.csv", index=False)
    run = linkwise("cluster", "t.csv", "-k", 3)
    assert "Constant columns say nothing about clusters: 'same', 'word'." in run.err
    run = linkwise("cluster", "t.csv", "-k", 3, "--features", "same", "-m", "ncut")
    assert "No column varies ('same')" in run.err
    np.save(tmp_path / "X.npy", np.column_stack((table.X, np.ones(60))))
    assert "'column 2'" in linkwise("cluster", "X.npy", "-k", 3, "--scale").err
    assert "Warning" not in linkwise("cluster", "X.npy", "-k", 3).err


def test_messages_can_be_copied(linkwise, tmp_path):
    rows = "".join(f"{k},{k % 3},w{k % 30}x\n" for k in range(40))
    (tmp_path / "t.csv").write_text("a,b,\n" + rows)
    assert "--drop 'Unnamed: 2'" in linkwise("cluster", "t.csv", "-k", 2).error
    assert linkwise("cluster", "t.csv", "-k", 2, "--drop", "Unnamed: 2").code == 0


def test_other_ways_to_write_pairs(linkwise, table, tmp_path):
    text = (tmp_path / "pairs.csv").read_text()
    expected = linkwise(*CLUSTER, "-c", "pairs.csv").out
    (tmp_path / "semicolon.csv").write_text(text.replace(",", ";"))
    assert linkwise(*CLUSTER, "-c", "semicolon.csv").out == expected
    (tmp_path / "blank.csv").write_text(text.replace(",1\n", ",\n"))
    assert linkwise(*CLUSTER, "-c", "blank.csv").out == expected
    (tmp_path / "wide.csv").write_text(text, encoding="utf-16")
    assert linkwise(*CLUSTER, "-c", "wide.csv").out == expected


def test_tables_in_utf_16(linkwise, table, tmp_path):
    expected = linkwise(*CLUSTER).out
    (tmp_path / "table.csv").write_text(table.csv(), encoding="utf-16")
    run = linkwise(*CLUSTER)
    assert (run.code, run.out) == (0, expected)


def test_options_about_features_are_refused_for_graphs(linkwise, table, tmp_path):
    (tmp_path / "e.csv").write_text("a,b\n0,1\n1,2\n2,0\n2,3\n3,4\n4,5\n5,3\n")
    run = linkwise("cluster", "e.csv", "--graph", "-k", 2, "--no-scale")
    assert run.code == 2
    assert "no columns for --no-scale" in run.error
    save_npz(tmp_path / "W.npz", csr_array(Affinity().fit_transform(table.X)))
    assert "--impute" in linkwise("cluster", "W.npz", "-k", 2, "--impute", "median").error
    np.save(tmp_path / "X.npy", table.X)
    assert "--features" in linkwise("cluster", "X.npy", "-k", 2, "--features", "x0").error


# Data sets, sessions, cells ----------------------------------------------------------------


def test_graphs_are_written_with_their_classes(linkwise, tmp_path):
    from linkwise.datasets import load

    data = load("block_model")
    run = linkwise("datasets", "block_model", "-o", "g.npz")
    assert (run.code, "Warning" in run.err) == (0, False)
    assert abs(load_npz(tmp_path / "g.npz") - data.X).max() == 0
    run = linkwise("cluster", "g.npz", "-k", data.n_clusters, "--truth", "y", "-o", "out.npy")
    assert run.code == 0
    ari = adjusted_rand(data.y, np.load(tmp_path / "out.npy"))
    assert f"ARI {ari:.3f}" in run.err
    assert "without classes" in linkwise("datasets", "block_model", "-o", "g.csv").err
    run = linkwise("datasets", "signed_block_model", "-o", "s.csv")
    assert run.code == 2
    assert "signed_parts" in run.error
    assert not (tmp_path / "s.csv").exists()
    assert linkwise("datasets", "signed_block_model", "-o", "s.npz").code == 0
    assert linkwise("datasets", "iris", "-o", "iris.npz").code == 0
    assert linkwise("cluster", "iris.npz", "-k", 3, "--truth", "y").code == 0


def test_a_session_keeps_its_seed(linkwise, table, monkeypatch):
    def ask(*more):
        monkeypatch.setattr("sys.stdin", io.StringIO("dq"))
        return linkwise("ask", *CLUSTER[1:], "--session", "s.jsonl", *more)

    assert ask("--seed", 1).code == 0
    run = ask("--seed", 2)
    assert run.code == 2
    assert "was begun with --seed 1, not --seed 2. Leave --seed out" in run.error
    assert "Session.load" not in run.error
    assert ask().code == 0
    assert ask("--seed", 1).code == 0


@pytest.fixture
def cells(table, tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(X=np.zeros((60, 4), dtype=np.float32))
    adata.obs_names = table.names
    adata.obs["cluster"] = pandas.Categorical([f"c{c}" for c in table.y])
    Z = table.X / table.X.std(axis=0)
    adata.obsm["X_pca"] = Z
    adata.obsp["connectivities"] = csr_array(Affinity().fit_transform(Z))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return adata


@pytest.mark.filterwarnings("ignore")  # of anndata's own
def test_methods_that_need_features_get_those_of_the_cells(linkwise, cells, tmp_path):
    run = linkwise("compare", "cells.h5ad", "-k", 3, "-m", "cpca", "-m", "ncut", "--json")
    told = json.loads(run.out)
    assert told["refused"] == {}
    assert {row["key"] for row in told["methods"]} == {"cpca", "ncut"}
    del cells.obsm["X_pca"]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    run = linkwise("compare", "cells.h5ad", "-k", 3, "--folds", 0)
    assert run.code == 0
    left_out = run.out.partition("left out, because they need features: ")[2]
    assert "cpca" in left_out.split(", ")


@pytest.mark.filterwarnings("ignore")
def test_columns_of_cells_are_not_replaced(linkwise, cells, tmp_path):
    run = linkwise("cluster", "cells.h5ad", "-k", 3, "-o", "out.h5ad")
    assert run.code == 2
    assert "--column cluster: obs of cells.h5ad has a column of that name" in run.error
    assert linkwise("cluster", "cells.h5ad", "-k", 3, "-o", "o.h5ad", "--column", "new").code == 0
    cells.obs_names = ["a"] * 60
    cells.write_h5ad(tmp_path / "cells.h5ad")
    assert "obs_names_make_unique" in linkwise("cluster", "cells.h5ad", "-k", 3).error


# The report --------------------------------------------------------------------------------


def test_a_report_on_categories_and_unknown_classes(linkwise, table, tmp_path):
    pytest.importorskip("jinja2")
    frame = pandas.DataFrame(table.X, columns=["length", "width"])
    frame["colour"] = np.array(["red", "blue"])[np.arange(60) % 2]
    frame["class"] = [f"c{cls}" if k % 4 else "" for k, cls in enumerate(table.y)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    run = linkwise("cluster", "t.csv", "-k", 3, "--truth", "class", "--report", "r.html", "--json")
    assert run.code == 0, run.err
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "length" in page
    assert "The class of 15 samples is unknown" in page
    assert all(f"<bdi>c{cls}</bdi>" in page for cls in range(3))
    assert "<bdi>-1</bdi>" not in page
    shown = page.partition("<dt>Adjusted Rand</dt><dd>")[2].partition("<")[0]
    assert float(shown) == pytest.approx(json.loads(run.out)["ari"], abs=5e-4)
