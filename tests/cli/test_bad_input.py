"""Whatever is wrong: one line that says what, where and what to do, and the right exit code."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.io import mmwrite

from linkwise import METHODS

pytest.importorskip("click")
pytest.importorskip("pandas")

GOOD = "name,a,b\n" + "".join(f"r{k},{k},{k % 3}\n" for k in range(12))
OPTIONS = ("-k", 2, "--id", "name", "-m", "signed")

# (what is in t.csv, options after "cluster t.csv -k 2 --id name", parts of the message)
TABLES = {
    "empty file": ("", (), ["t.csv is empty", "must name the columns"]),
    "header only": ("name,a,b\n", (), ["has no rows"]),
    "wrong id column": (
        GOOD,
        ("--id", "namex"),
        ["--id namex", "Did you mean 'name'?", "'a', 'b'"],
    ),
    "wrong feature": (GOOD, ("--features", "c"), ["--features c: no such column"]),
    "wrong drop": (GOOD, ("--drop", "c"), ["--drop c: no such column"]),
    "wrong labels": (GOOD, ("--labels", "c"), ["--labels c: no such column"]),
    "wrong truth": (GOOD, ("--truth", "c"), ["--truth c: no such column"]),
    "no feature left": (GOOD, ("--drop", "a", "--drop", "b"), ["No column is left"]),
    "text among numbers": (
        GOOD.replace("r7,7,1", "r7,seven,1"),
        (),
        ["Column 'a'", "text in 1 row(s)", "'seven' in line 9 (r7)", "--drop a"],
    ),
    "points and commas": (
        GOOD.replace("r7,7,1", 'r7,"7,5",1').replace("r8,8", "r8,8.5"),
        (),
        ["Column 'a'", "'7,5' in line 9 (r7)"],
    ),
    "too many categories": (
        "name,a,text\n" + "".join(f"r{k},{k},word{k % 11}\n" for k in range(12)),
        (),
        ["Column 'text'", "11 different values in 12 rows", "--id text", "--categorical text"],
    ),
    "missing values": (
        GOOD.replace("r3,3,0", "r3,,0").replace("r5,5,2", "r5,,"),
        (),
        ["missing in 2 row(s), first in line 5 (r3)", "'a' (2), 'b' (1)", "--impute median"],
    ),
    "short row": (GOOD.replace("r3,3,0", "r3,3"), (), ["missing in 1 row(s)", "'b' (1)"]),
    "long row": (GOOD.replace("r3,3,0", "r3,3,0,9"), (), ["no regular table", "line 5"]),
    "long rows": (GOOD.replace("\n", ",1\n").replace("b,1", "b", 1), (), ["no regular table"]),
    "infinite value": (GOOD.replace("r3,3,0", "r3,inf,0"), (), ["'a' is infinite in line 5 (r3)"]),
    "empty column": (
        "name,a,b\n" + "".join(f"r{k},{k},\n" for k in range(9)),
        ("--impute", "median"),
        ["Column 'b' has no values at all", "--drop b"],
    ),
    "duplicate ids": (
        GOOD.replace("r7,", "r2,"),
        (),
        ["column 'name' has the id 'r2' in lines 4, 9", "must be unique"],
    ),
    "missing id": (GOOD.replace("r7,", ","), (), ["column 'name' has no id in line 9"]),
    "repeated column": ("name,a,a\nx,1,2\n", (), ["more than one column called 'a'"]),
    "one column": (
        GOOD.replace(",", ";"),
        ("--delimiter", ","),
        ["one column", "--delimiter ';'"],
    ),
    "no labels": (
        "name,a,c\n" + "".join(f"r{k},{k},\n" for k in range(9)),
        ("--labels", "c"),
        ["--labels c: all values are empty"],
    ),
    "k too large": (GOOD, ("-k", 13), ["-k 13 is more than the 12 rows of t.csv"]),
    "k too small": (GOOD, ("-k", 1), ["'-k'", "1 is not in the range x>=2"]),
    "k no number": (GOOD, ("-k", "two"), ["'-k'", "'two' is not a valid integer"]),
    "unknown method": (GOOD, ("-m", "sined"), ["no such method. Did you mean 'signed'?", "ncut"]),
    "unknown option": (GOOD, ("--metod", "cut"), ["--metod", "linkwise cluster --help"]),
    "set without value": (GOOD, ("--set", "gamma"), ["--set gamma: write it as NAME=VALUE"]),
    "set unknown": (
        GOOD,
        ("--set", "gama=1"),
        ["SignedCSC has no such parameter. Did you mean 'gamma'?", "link_weight", "affinity__NAME"],
    ),
    "set out of range": (GOOD, ("--set", "gamma=-1"), ["--set:", "'gamma'", "Got -1"]),
    "set to text": (GOOD, ("--set", "hard=maybe"), ["'hard'", "Got 'maybe'"]),
    "set k": (GOOD, ("--set", "n_clusters=3"), ["use -k instead"]),
    "set seed": (GOOD, ("--set", "random_state=3"), ["use --seed instead"]),
    "set graph unknown": (
        GOOD,
        ("--set", "affinity__neighbours=3"),
        ["Did you mean 'affinity__neighbors'", "affinity__radius"],
    ),
    "set graph out of range": (GOOD, ("--set", "affinity__neighbors=0"), ["'neighbors'", "Got 0"]),
    "encoding unknown": (GOOD, ("--encoding", "utf-9"), ["--encoding utf-9: there is no such"]),
    "output suffix": (GOOD, ("-o", "out.xls"), ["--output out.xls", ".csv", ".h5ad"]),
    "output folder": (GOOD, ("-o", "none/out.csv"), ["there is no folder"]),
    "output is input": (GOOD, ("-o", "t.csv"), ["would overwrite the input"]),
    "output is folder": (GOOD, ("-o", "."), ["is a folder"]),
    "h5ad of a table": (GOOD, ("-o", "out.h5ad"), ["only .h5ad DATA can be copied"]),
    "report suffix": (GOOD, ("--report", "r.pdf"), ["--report r.pdf", ".html"]),
    "plot suffix": (GOOD, ("--plot", "p.txt"), ["--plot p.txt", ".png"]),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables(case, linkwise, tmp_path):
    text, options, parts = TABLES[case]
    (tmp_path / "t.csv").write_text(text)
    run = linkwise("cluster", "t.csv", *OPTIONS, *options)
    assert run.code == 2
    assert run.out == ""
    for part in parts:
        assert part in run.error, run.error
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


PAIRS = {
    "no such file": (None, 2, ["There is no file p.csv"]),
    "empty": ("", 2, ["p.csv is empty", "i,j,link"]),
    "columns": ("a,b\n1,2\n", 2, ["p.csv, line 1 has no column 'i', 'j', 'link'"]),
    "unknown id": ("i,j,link\nr0,r1,must\nr0,r77,must\n", 2, ["line 3: j is 'r77'", "12 ids"]),
    "unknown link": ("i,j,link\nr0,r1,perhaps\n", 2, ["line 2: link is 'perhaps'"]),
    "belief": ("i,j,link,belief\nr0,r1,must,2\n", 2, ["line 2: belief is '2'"]),
    "itself": ("i,j,link\nr0,r0,no\n", 2, ["line 2", "cannot-linked to itself"]),
    "contradiction": (
        "i,j,link\nr0,r1,must\nr4,r5,must\nr1,r2,must\nr2,r0,cannot\n",
        1,
        ["r0 and r2 are cannot-linked (line 5)", "r0 - r1 (line 2), r1 - r2 (line 4)"],
    ),
    "direct contradiction": (
        "i,j,link\nr0,r1,must\nr0,r1,cannot\nr5,r6,must\nr5,r6,cannot\n",
        1,
        ["r0 and r1 are cannot-linked (line 3)", "r0 - r1 (line 2)", "r5 - r6 (line 4)"],
    ),
    "k too few": (
        "i,j,link\nr0,r1,cannot\nr1,r2,cannot\nr2,r0,cannot\n",
        1,
        ["2 clusters cannot satisfy", "r0, r1, r2", "lines 2, 3, 4", "-k 3"],
    ),
    "too few groups": (
        "i,j,link\n" + "".join(f"r0,r{k},must\n" for k in range(1, 12)),
        1,
        ["only 1 group(s)", "lower -k"],
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_pairs(case, linkwise, tmp_path):
    text, code, parts = PAIRS[case]
    (tmp_path / "t.csv").write_text(GOOD)
    if text is not None:
        (tmp_path / "p.csv").write_text(text)
    run = linkwise("cluster", "t.csv", *OPTIONS, "-c", "p.csv", "-o", "out.csv")
    assert run.code == code
    for part in parts:
        assert part in run.error, run.error
    assert not (tmp_path / "out.csv").exists()


def test_pairs_of_names_without_a_column_of_ids(linkwise, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    (tmp_path / "p.csv").write_text("i,j,link\nr0,r1,must\n")
    run = linkwise("cluster", "t.csv", "-k", 2, "--drop", "name", "-c", "p.csv")
    assert run.code == 2
    assert "line 2: i is 'r0'" in run.error
    assert "--id" in run.error


def test_labels_that_contradict_pairs(linkwise, tmp_path):
    text = GOOD.replace("name,a,b\n", "name,a,b,known\n")
    known = {"r0": "x", "r1": "y"}
    lines = [
        line + "," * (k > 0) + known.get(line.partition(",")[0], "")
        for k, line in enumerate(text.splitlines())
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    (tmp_path / "p.csv").write_text("i,j,link\nr0,r4,must\nr4,r1,must\n")
    run = linkwise("cluster", "t.csv", *OPTIONS, "--labels", "known", "-c", "p.csv")
    assert run.code == 1
    assert "r0 and r1 have the labels x and y" in run.error
    assert "r0 - r4 (line 2), r4 - r1 (line 3)" in run.error


def test_more_labels_than_clusters(linkwise, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    run = linkwise("cluster", "t.csv", *OPTIONS, "--labels", "b")
    assert run.code == 1
    assert "3 different labels" in run.error
    assert "-k 3" in run.error


def test_the_default_method_finds_k_and_names_suspects(linkwise, tmp_path):
    rng = np.random.RandomState(0)
    rows = [f"r{i},{10.0 * (i % 3) + rng.normal():.3f},{rng.normal():.3f}" for i in range(60)]
    (tmp_path / "t.csv").write_text("name,a,b\n" + "\n".join(rows) + "\n")
    right = "".join(f"r{i},r{i + 3},must\nr{i},r{i + 1},cannot\n" for i in range(0, 30, 2))
    (tmp_path / "p.csv").write_text(f"i,j,link\n{right}")
    run = linkwise("cluster", "t.csv", "--id", "name", "-c", "p.csv", "-o", "out.csv", "--json")
    assert run.code == 0
    told = json.loads(run.out)
    assert (told["method"], told["n_clusters"], told["suspects"]) == ("auto", 3, [])
    (tmp_path / "p.csv").write_text(f"i,j,link\nr0,r57,cannot\n{right}")
    options = ("t.csv", "--id", "name", "-c", "p.csv", "-k", 3)
    told = json.loads(linkwise("cluster", *options, "--json").out)
    assert 0 < told["noise"] < 0.2
    (suspect,) = told["suspects"]
    assert suspect.pop("probability") > 0.5
    assert suspect == {"i": "r0", "j": "r57", "link": "cannot", "line": 2}
    spoken = linkwise("cluster", *options).err
    assert "suspect: cannot-link r0 - r57 (line 2), wrong with probability" in spoken


def test_k_is_needed(linkwise, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    run = linkwise("cluster", "t.csv", "--id", "name", "-m", "signed")
    assert run.code == 2
    assert "-k is missing" in run.error


def test_files_of_other_kinds(linkwise, tmp_path):
    for name in ("t.doc", "t.csv.gz"):
        (tmp_path / name).write_text("no")
    (tmp_path / "latin.csv").write_bytes("name,größe\nä\x81,1\nö,2\n".encode("latin-1"))
    (tmp_path / "late.csv").write_bytes(b"name,a\n" + b"x,1\n" * 9000 + b"\x81,1\n")
    for name in ("bad.npy", "bad.npz", "bad.mtx"):
        (tmp_path / name).write_text("this is no such file")
    np.save(tmp_path / "text.npy", np.array([["a"], ["b"]]))
    np.save(tmp_path / "object.npy", np.array([[None], [1]]), allow_pickle=True)
    np.save(tmp_path / "line.npy", np.arange(5.0))
    np.save(tmp_path / "nan.npy", np.array([[1.0, 2], [np.nan, 3], [2, 2]]))
    np.savez(tmp_path / "two.npz", A=np.eye(3), B=np.eye(3))
    expected = {
        "none.csv": "There is no file none.csv",
        ".": "is a folder",
        "https://example.org/t.csv": "It is an address: download the file first",
        "t.doc": "must end in one of .csv",
        "t.csv.gz": "Unpack the file first",
        "latin.csv": "not utf-8 text. Save it as UTF-8, or try --encoding latin-1",
        "late.csv": "not utf-8 text",
        "bad.npy": "no readable NumPy file",
        "bad.npz": "no readable NumPy file",
        "bad.mtx": "no readable Matrix Market file",
        "text.npy": "values, which are no numbers",
        "object.npy": "holds Python objects",
        "line.npy": "shape (5,)",
        "nan.npy": "1 missing or infinite values, the first in row 1 (counted from 0)",
        "two.npz": "holds A, B: call the matrix with one row a sample X",
    }
    for name, part in expected.items():
        run = linkwise("cluster", name, "-k", 2)
        assert run.code == 2, name
        assert part in run.error, run.error
    run = linkwise("cluster", "latin.csv", "-k", 2, "--encoding", "latin-1", "--id", "name")
    assert (run.code, run.out.splitlines()[1][0]) == (0, "ä")


@pytest.mark.parametrize(
    ("suffix", "library", "part"),
    [("parquet", "pyarrow", "no readable Parquet file"), ("h5ad", "anndata", "no readable .h5ad")],
)
def test_files_that_need_a_library(suffix, library, part, linkwise, tmp_path, monkeypatch):
    import sys

    (tmp_path / f"bad.{suffix}").write_text("this is no such file")
    with monkeypatch.context() as without:
        loaded = [name for name in sys.modules if name.startswith(f"{library}.")]
        for name in (library, *loaded):
            without.setitem(sys.modules, name, None)
        run = linkwise("cluster", f"bad.{suffix}", "-k", 2)
        assert run.code == 3
        assert (
            f"pip install 'linkwise[{'parquet' if library == 'pyarrow' else library}]'" in run.error
        )
    pytest.importorskip(library)
    run = linkwise("cluster", f"bad.{suffix}", "-k", 2)
    assert run.code == 2
    assert part in run.error


EDGES = {
    "one end": ("a\nx\n", ["one column"]),
    "no end": ("a,b\nx,\n", ["without an end in line 2"]),
    "text weight": ("a,b,w\nx,y,1\ny,z,heavy\n", ["'heavy' in line 3"]),
    "negative weight": ("a,b,w\nx,y,-1\n", ["'-1' in line 2"]),
    "two weights": ("a,b,w\nx,y,1\ny,x,2\n", ["x - y has the weight 1 in line 2 and 2 in line 3"]),
}


@pytest.mark.parametrize("case", EDGES)
def test_edge_lists(case, linkwise, tmp_path):
    text, parts = EDGES[case]
    (tmp_path / "e.csv").write_text(text)
    run = linkwise("cluster", "e.csv", "--graph", "-k", 2)
    assert run.code == 2
    for part in parts:
        assert part in run.error, run.error


def test_graphs(linkwise, tmp_path):
    mmwrite(tmp_path / "asymmetric.mtx", np.array([[0.0, 1, 0], [2, 0, 1], [0, 1, 0]]))
    np.save(tmp_path / "wide.npy", np.ones((2, 3)))
    ring = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
    np.save(tmp_path / "ring.npy", ring)
    run = linkwise("cluster", "asymmetric.mtx", "--graph", "-k", 2)
    assert run.code == 2
    assert "must be symmetric" in run.error
    assert "not square" in linkwise("cluster", "wide.npy", "--graph", "-k", 2).error
    run = linkwise("cluster", "ring.npy", "--graph", "-k", 2, "-m", "cpca")
    assert run.code == 2
    assert "cpca needs features, but DATA is a graph" in run.error
    run = linkwise("cluster", "ring.npy", "--graph", "-k", 2, "--set", "affinity__neighbors=3")
    assert "DATA is a graph already" in run.error
    (tmp_path / "e.csv").write_text("a,b\nx,y\ny,z\n")
    run = linkwise("cluster", "e.csv", "--graph", "-k", 2, "--labels", "a")
    assert "no columns for --labels" in run.error


def test_a_missing_library_is_named_with_its_extra(linkwise, tmp_path, monkeypatch):
    import sys

    (tmp_path / "t.csv").write_text(GOOD)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run = linkwise("cluster", "t.csv", *OPTIONS, "--plot", "p.png")
    assert run.code == 3
    assert "pip install 'linkwise[plot]'" in run.error
    monkeypatch.setitem(sys.modules, "click", None)
    run = linkwise("--help")
    assert run.code == 3
    assert run.err == (
        "Error: The command line needs click, which is not installed. "
        "Install it with: pip install 'linkwise[cli]'\n"
    )


def test_a_mistake_of_ours_is_told_as_such(linkwise, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("oh")

    (tmp_path / "t.csv").write_text(GOOD)
    monkeypatch.setattr(METHODS["signed"], "fit", broken)
    run = linkwise("cluster", "t.csv", *OPTIONS, "-o", "out.csv")
    assert run.code == 70
    assert run.error.startswith("Error: RuntimeError: oh (a mistake in linkwise")
    assert not (tmp_path / "out.csv").exists()
    debug = linkwise("cluster", "t.csv", *OPTIONS, "--debug")
    assert "Traceback" in debug.err
    assert "in broken" in debug.err
