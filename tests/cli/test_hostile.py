"""Files that ask for much, files of something else, names that command terminals: all harmless."""

from __future__ import annotations

import stat
import sys
import zipfile

import numpy as np
import pytest
from scipy.sparse import coo_array, save_npz

pytest.importorskip("click")
pytest.importorskip("pandas")

from linkwise._files import atomic
from linkwise.cli.console import printable, shown
from linkwise.cli.writing import without_formulas

GOOD = "id,a,b\n" + "".join(f"r{k},{k},{k % 3}\n" for k in range(12))
NESTED = "[" * 100_000 + "\n"
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


@pytest.fixture
def cluster(linkwise, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)

    def run(data="t.csv", *options):
        return linkwise("cluster", data, "-k", 2, "-m", "ncut", *options)

    return run


# Foreseeable situations ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["deep.csv", "deep.jsonl"])
def test_deeply_nested_text_is_no_file_of_pairs(cluster, linkwise, tmp_path, name):
    (tmp_path / name).write_text(NESTED)
    assert cluster("t.csv", "-c", name).code == 2
    assert linkwise("check", name).code == 2
    run = linkwise("ask", "t.csv", "-k", 2, "--session", name)
    assert run.code == 2
    assert "is not a record of a session" in run.error


@posix
@pytest.mark.parametrize("option", ["-o", "--report", "--plot", "--prepared"])
def test_an_output_that_is_a_link_to_itself(cluster, tmp_path, option):
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    run = cluster("t.csv", option, "loop.csv")
    assert run.code == 2
    assert "symbolic links" in run.error


@posix
def test_a_second_writer_is_told_to_wait(linkwise, cluster, tmp_path):
    from linkwise._files import lock

    (tmp_path / "kept").write_text("")
    with (tmp_path / "kept").open("r+b") as file:
        lock(file, tmp_path / "kept")
        run = linkwise("ask", "t.csv", "-k", 2, "--id", "id", "--session", "kept")
    assert run.code == 2
    assert "Another run is writing to" in run.error
    assert "mistake" not in run.error


@pytest.mark.parametrize("header", ['{"format": "linkwise session 1"}', '{"format": {}}'])
def test_a_damaged_header_of_a_session(linkwise, cluster, tmp_path, header):
    (tmp_path / "kept").write_text(header + "\n")
    run = linkwise("ask", "t.csv", "-k", 2, "--session", "kept")
    assert run.code == 2
    assert "kept" in run.error


@pytest.mark.parametrize("content", ["numbers", "no groups"])
def test_an_hdf_file_that_is_no_anndata(cluster, tmp_path, content):
    pytest.importorskip("anndata")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        if content == "no groups":
            file.attrs["encoding-type"], file.attrs["encoding-version"] = "anndata", "0.1.0"
            file["obs"] = np.arange(3)
        file["x"] = np.arange(3)
    run = cluster("x.h5ad")
    assert run.code == 2
    assert "no readable .h5ad file" in run.error


def test_numbers_of_400_digits(cluster, linkwise, tmp_path):
    digits = "1" * 400
    (tmp_path / "big.csv").write_text(GOOD.replace("r3,3,", f"r3,{digits},"))
    (tmp_path / "p.csv").write_text(f"i,j,link\n{digits},r1,must\n")
    assert cluster("big.csv", "--id", "id").code == 2
    assert cluster("t.csv", "--seed", digits).code == 2
    assert cluster("t.csv", "--threads", digits).code == 0
    run = cluster("t.csv", "--id", "id", "-c", "p.csv")
    assert run.code == 2
    assert "characters)" in run.error
    assert len(run.error) < 1_000


# Files that ask for much -----------------------------------------------------------------------


def write_npy(file, shape):
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


LARGE = {
    "dense.mtx": "%%MatrixMarket matrix array real general\n100000 100000\n1\n",
    "sparse.mtx": "%%MatrixMarket matrix coordinate real general\n900000000 900000000 1\n1 1 1\n",
    "many.mtx": "%%MatrixMarket matrix coordinate real general\n9 9 90000000000\n1 1 1\n",
}


@pytest.mark.parametrize("name", [*LARGE, "x.npy", "x.npz", "sparse.npz"])
def test_a_small_file_that_declares_gigabytes_is_refused(cluster, tmp_path, name):
    path = tmp_path / name
    if name in LARGE:
        path.write_text(LARGE[name])
    elif name == "x.npy":
        with path.open("wb") as file:
            write_npy(file, (100_000, 100_000))
    elif name == "x.npz":
        with zipfile.ZipFile(path, "w") as archive, archive.open("X.npy", "w") as file:
            write_npy(file, (100_000, 100_000))
    else:
        save_npz(path, coo_array(([1.0], ([0], [1])), shape=(10**9, 10**9)))
    run = cluster(name)
    assert run.code == 2
    assert "the limit is 1 GB" in run.error
    assert "--max-gb" in run.error


def test_the_limit_can_be_raised_and_lowered(cluster, tmp_path):
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((2_000, 100)) + np.arange(100))
    assert "declares 0.0 GB" in cluster("x.npz", "--max-gb", 0.001).error
    (tmp_path / "g.mtx").write_text(
        "%%MatrixMarket matrix coordinate real symmetric\n30000000 30000000 1\n2 1 1\n"
    )
    assert "--max-gb" in cluster("g.mtx", "--max-gb", 0.1).error
    # A file that holds what it declares is read, however low the limit is.
    np.save(tmp_path / "x.npy", np.random.RandomState(0).normal(size=(20, 2)))
    assert cluster("x.npy", "--max-gb", 1e-9).code == 0


def test_an_array_that_is_cut_short_is_damaged(cluster, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((20, 2)))
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-8])
    assert "no readable NumPy file" in cluster("x.npy").error


def test_repeated_columns_are_found_without_comparing_all_with_each_other(cluster, tmp_path):
    from linkwise.cli.formats import check_distinct_names

    class Header(list):
        def count(self, _):
            raise AssertionError("of n names, n^2 comparisons")

    check_distinct_names(Header(f"g{k}" for k in range(100)), "wide.csv")
    (tmp_path / "t.csv").write_text("id,a,a\nx,1,2\n")
    assert "more than one column called 'a'" in cluster().error


def test_a_long_name_is_shortened(cluster, tmp_path):
    name = "x" * 120_000
    (tmp_path / "t.csv").write_text(GOOD.replace("a,b", f"{name},b").replace("r3,3,", "r3,text,"))
    run = cluster("t.csv", "--id", "id")
    assert run.code == 2
    assert len(run.err) < 2_000
    assert "(120,0" in run.error


# Terminals and spreadsheets --------------------------------------------------------------------


COMMANDS = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp"


def test_no_character_commands_the_terminal():
    assert printable(COMMANDS).isprintable()
    assert printable("Zoë 中 👩‍💻\u00a0é") == "Zoë 中 👩‍💻\u00a0é"
    assert shown("two\nlines\tand \x1b") == "two\nlines\\tand \\x1b"


def test_ids_and_columns_are_shown_without_commands(linkwise, tmp_path, monkeypatch):
    import io

    text = GOOD.replace("r", f"{COMMANDS}r").replace(",a,", f",{COMMANDS},")
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO("same\nq\n"))
    run = linkwise("ask", "t.csv", "-k", 2, "--id", "id")
    assert run.code == 0
    (tmp_path / "p.csv").write_text(f"i,j,link\n{COMMANDS}x,{COMMANDS}r1,must\n", encoding="utf-8")
    bad = linkwise("cluster", "t.csv", "-k", 2, "--id", "id", "-c", "p.csv")
    good = linkwise("check", "p.csv")
    assert bad.code == 2
    for shown_text in (run.out, run.err, bad.err, good.out, good.err):
        assert not set(shown_text) & set("\x1b\x07\x9b\u202e")
    assert "\\x1b" in run.out


def test_formulas_are_written_as_text_if_asked_for(linkwise, tmp_path):
    rows = ["=cmd()", "+1+1", "-2+3", "@SUM(1)", "-5", "plain", *(f"r{k}" for k in range(6))]
    text = "id,a\n" + "".join(f"{name},{k}\n" for k, name in enumerate(rows))
    (tmp_path / "t.csv").write_text(text)
    options = ("cluster", "t.csv", "-k", 2, "--id", "id", "-m", "ncut", "-o", "out.csv")
    assert linkwise(*options).code == 0
    assert "\n=cmd()," in (tmp_path / "out.csv").read_text()
    assert linkwise(*options, "--spreadsheet-safe").code == 0
    written = [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()]
    assert written[1:7] == ["'=cmd()", "'+1+1", "'-2+3", "'@SUM(1)", "-5", "plain"]
    assert without_formulas(["\t=x", "1e5", "-inf"]) == ["'\t=x", "1e5", "-inf"]


@posix
def test_a_private_output_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    path.chmod(0o600)
    with atomic(path) as unfinished:
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
        unfinished.write_text("new")
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
