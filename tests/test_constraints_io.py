"""Reading and writing pairs: round trips, and errors that name the line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.testing import assert_array_equal

from linkwise.constraints import Constraints, PairTable, formats
from linkwise.constraints import table as table_module
from linkwise.constraints.table import implied_pairs
from linkwise.exceptions import TooLargeError
from strategies import any_constraints

NAMES = ["ada", "bob", "cleo", "dan"]


@pytest.fixture
def csv_file(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "pairs.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


# Reading -----------------------------------------------------------------------------------


def test_read_positions(csv_file):
    path = csv_file("i,j,link,belief\n0,1,must,1\n3,1,cannot,0.5\n\n1,2,MUST-LINK,.25\n")
    c = Constraints.from_csv(path, 4)
    assert_array_equal(c.must_link, [[0, 1], [1, 2]])
    assert_array_equal(c.must_link_belief, [1, 0.25])
    assert_array_equal(c.cannot_link, [[1, 3]])
    assert_array_equal(c.cannot_link_belief, [0.5])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_spreadsheets_write_marks_and_other_line_ends(csv_file, encoding, newline):
    path = csv_file(newline.join(["I , J,note,Link", '0, 1 ,"a, b",ml', "2,0.0,,-1"]), encoding)
    c = Constraints.from_csv(path, 3)
    assert_array_equal(c.must_link, [[0, 1]])
    assert_array_equal(c.cannot_link, [[0, 2]])


@pytest.mark.parametrize(
    ("word", "must"),
    [
        *((word, 1) for word in ("must", "Must-Link", "must_link", "ML", "1", "1.0", "+1")),
        *((word, 1) for word in ("same", "Yes", "y", "TRUE", "together")),
        *((word, 0) for word in ("cannot", "Cannot-Link", "CL", "-1", "0", "0.0")),
        *((word, 0) for word in ("different", "No", "n", "false", "apart")),
    ],
)
def test_words_for_links(csv_file, word, must):
    c = Constraints.from_csv(csv_file(f"i,j,link\n0,1,{word}\n"), 2)
    assert (len(c.must_link), len(c.cannot_link)) == (must, 1 - must)


def test_read_names(csv_file):
    path = csv_file("i,j,link\nbob,ada,must\ncleo , dan,cannot\n")
    c = Constraints.from_csv(path, ids=NAMES)
    assert c.n_samples == 4
    assert_array_equal(c.must_link, [[0, 1]])
    assert_array_equal(c.cannot_link, [[2, 3]])


def test_names_that_look_like_numbers_are_names(csv_file):
    path = csv_file("i,j,link\n30,10,must\n")
    assert_array_equal(Constraints.from_csv(path, ids=[10, 20, 30]).must_link, [[0, 2]])
    assert_array_equal(Constraints.from_csv(path, ids=["10", "20", "30"]).must_link, [[0, 2]])
    frame = {"i": [30.0], "j": [10.0], "link": [1]}
    assert_array_equal(Constraints.from_frame(frame, ids=[10, 20, 30]).must_link, [[0, 2]])


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_columns_are_separated_by_what_the_first_line_has(csv_file, mark):
    c = Constraints.from_csv(csv_file("i,j,link\n0,1,must\n1,2,no\n".replace(",", mark)), 3)
    assert (c.must_link.tolist(), c.cannot_link.tolist()) == ([[0, 1]], [[1, 2]])


def test_columns_may_have_other_names(csv_file):
    path = csv_file("Left;Right;by;verdict;sure\n0;1;me;same;1\n1;2;you;different;.5\n")
    c = Constraints.from_csv(path, 3, columns=("left", "Right", "verdict", "sure"))
    assert (c.must_link.tolist(), c.cannot_link_belief.tolist()) == ([[0, 1]], [0.5])
    with pytest.raises(ValueError, match=r"line 1 has no column 'i', 'j', 'link'.*columns="):
        Constraints.from_csv(path, 3)
    with pytest.raises(ValueError, match=r"no column 'right2'; the columns found are \['Left'"):
        Constraints.from_csv(path, 3, columns=("left", "right2", "verdict"))
    with pytest.raises(ValueError, match=r"2 columns are named \(left, right\)"):
        Constraints.from_csv(path, 3, columns=("left", "right"))


def test_all_problems_are_in_one_error(csv_file):
    path = csv_file(
        "i,j,link,belief\nada,bib,must,1\nbob,cleo,maybe,1\nx,y,must,1\ndan,ada,cannot,7\n"
    )
    with pytest.raises(ValueError, match="There are 4 problems with the pairs") as caught:
        Constraints.from_csv(path, ids=NAMES)
    lines = str(caught.value).splitlines()[1:]
    assert [line.partition(", line ")[2][0] for line in lines] == ["2", "3", "4", "5"]
    assert "Did you mean 'bob'?" in lines[0]
    many = "i,j,link\n" + "7,0,must\n" * 25
    with pytest.raises(IndexError, match=r"There are 25 problems(.|\n)*and 5 more"):
        Constraints.from_csv(csv_file(many), 4)


def test_unknown_samples_can_be_skipped(csv_file):
    path = csv_file("i,j,link\nada,nobody,must\nada,bob,must\nx,y,cannot\n")
    with pytest.warns(UserWarning, match=r"^2 skipped: .* not known \(lines 2, 4\)$"):
        c = Constraints.from_csv(path, ids=NAMES, skip_unknown=True)
    assert c.must_link.tolist() == [[0, 1]]
    with pytest.warns(UserWarning, match="1 skipped"):
        Constraints.from_frame({"i": [9], "j": [0], "link": [1]}, 4, skip_unknown=True)
    with pytest.raises(ValueError, match="link is 'x'"):  # other problems stay
        Constraints.from_csv(csv_file("i,j,link\n9,0,must\n0,1,x\n"), 4, skip_unknown=True)


def test_repeated_pairs_and_pairs_of_one_sample_are_counted(csv_file):
    path = csv_file("i,j,link\n0,1,must\n1,0,must\n2,2,must\n0,1,cannot\n0,1,same\n")
    with pytest.warns(UserWarning, match="repeated|itself") as caught:
        c = Constraints.from_csv(path, 3)
    assert [str(warning.message) for warning in caught] == [
        "2 repeated: each pair counts once, with the larger belief (lines 3, 6)",
        "1 left out: a must-link of a sample to itself (line 4)",
    ]
    assert (c.n_pairs, c.n_conflicts) == (2, 1)  # the cannot-link contradicts, it is not repeated


def test_spreadsheets_are_recognised_by_their_content(csv_file, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(ValueError, match=r"is a spreadsheet, not CSV. Name it .xlsx .* or save"):
        Constraints.from_csv(path, 3)
    path.write_bytes(b"\xd0\xcf\x11\xe0 and so on")
    with pytest.raises(ValueError, match=r"Save it as .xlsx or CSV"):
        Constraints.from_csv(path, 3)
    with pytest.raises(ValueError, match=r"cannot be written as .xlsx. Call the file .csv"):
        Constraints(3, [(0, 1)]).to_file(tmp_path / "pairs.xlsx")


def test_read_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("i", "j", "link"), (0, 1, "must"), (None, None, None), (1, 2, 0)]:
        book.active.append(row)
    book.save(tmp_path / "pairs.xlsx")
    c = Constraints.from_file(tmp_path / "pairs.xlsx", 3)
    assert (c.must_link.tolist(), c.cannot_link.tolist()) == ([[0, 1]], [[1, 2]])
    assert c.table.row.tolist() == [2, 4]
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(ValueError, match=r"broken.xlsx is no readable .xlsx file"):
        Constraints.from_file(tmp_path / "broken.xlsx", 3)


def test_a_header_alone_is_no_pairs(csv_file):
    assert Constraints.from_csv(csv_file("i,j,link\n"), 3).is_empty


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ValueError, r"pairs\.csv is empty\. Its first line must name the columns"),
        ("a,b\n0,1\n", ValueError, r"line 1 has no column 'i', 'j', 'link'; .*\['a', 'b'\]"),
        ("i,j,i,link\n0,1,2,must\n", ValueError, "the column 'i' more than once"),
        ("i,j,link\n0,1,must\n0,2\n", ValueError, "line 3: 2 values, but the header names 3"),
        ("i,j,link\n0,1,must\n0,x,must\n", ValueError, r"line 3: j is 'x', but .*ids=names"),
        ("i,j,link\n0,1.5,must\n", ValueError, r"line 2: j is '1\.5', but a position is a whole"),
        ("i,j,link\n0,nan,must\n", ValueError, "line 2: j is 'nan'"),
        ("i,j,link\n0,,must\n", ValueError, "line 2: j is ''"),
        ("i,j,link\n0,inf,must\n", ValueError, "line 2: j is 'inf'"),
        ("i,j,link\n\n0,4,must\n", IndexError, r"line 3: j is '4', but there are only 4 samples"),
        ("i,j,link\n-1,2,must\n", IndexError, r"line 2: i is '-1'.*valid positions are 0\.\.3"),
        ("i,j,link\n2,2,no\n", ValueError, "line 2: i is '2', and so is j: .*cannot-linked to it"),
        ("i,j,link\n0,1,0\n0,2,-1\n", ValueError, "line 2: link is '0', but -1 is a link as well"),
        ("i,j,link\n0,1,maybe\n", ValueError, "line 2: link is 'maybe', but a link is must or"),
        ("i,j,link,belief\n0,1,must,2\n", ValueError, r"line 2: belief is '2', .*\(0, 1\]"),
        ("i,j,link,belief\n0,1,must,nan\n", ValueError, "line 2: belief is 'nan'"),
        ('i,j,link\n0,1,must\n"0,1,must\n', ValueError, "line 3"),
    ],
)
def test_wrong_files(csv_file, text, error, message):
    with pytest.raises(error, match=message):
        Constraints.from_csv(csv_file(text), 4)


def test_wrong_names(csv_file):
    path = csv_file("i,j,link\nada,boob,must\n")
    with pytest.raises(ValueError, match=r"line 2: j is 'boob', .* 4 ids\. Did you mean 'bob'\?"):
        Constraints.from_csv(path, ids=NAMES)
    with pytest.raises(ValueError, match=r"ids\[2\] is 'a', and so is ids\[0\]"):
        Constraints.from_csv(path, ids=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"ids\[1\] is None"):
        Constraints.from_csv(path, ids=["a", None])
    with pytest.raises(ValueError, match="There are 4 ids, but n_samples is 5"):
        Constraints.from_csv(path, 5, ids=NAMES)
    with pytest.raises(TypeError, match="ids is the text 'abc'"):
        Constraints.from_csv(path, ids="abc")


def test_positions_need_the_number_of_samples(csv_file):
    with pytest.raises(TypeError, match=r"n_samples is missing.*len\(X\), or ids=names"):
        Constraints.from_csv(csv_file("i,j,link\n0,1,must\n"))


def test_other_encodings(csv_file):
    path = csv_file("i,j,link\nJosé,ada,must\n", encoding="cp1252")
    with pytest.warns(UserWarning, match="is not UTF-8, so it is read as cp1252"):
        assert Constraints.from_csv(path, ids=["José", "ada"]).must_link.tolist() == [[0, 1]]
    path = csv_file("i,j,link\nJosé\x81,ada,must\n", encoding="latin-1")  # nor of Windows
    with pytest.raises(ValueError, match=r"is not UTF-8 text .* Save it as UTF-8"):
        Constraints.from_csv(path, ids=["José", "ada"])


def test_contradictions_name_the_lines_of_the_file(csv_file):
    path = csv_file("i,j,link\n0,2,cannot\n1,2,must\n0,1,must\n")
    (conflict,) = Constraints.from_csv(path, 3).conflicts()
    assert conflict.rows == (4, 3)
    assert conflict.cannot_link_row == 2


# Frames ------------------------------------------------------------------------------------


def test_frames_of_pandas():
    pd = pytest.importorskip("pandas")
    df = pd.DataFrame(
        {"i": [0, 2], "j": [1, 3], "link": ["must", "cannot"], "belief": [1, 0.5]}, index=[7, 8]
    )
    c = Constraints.from_frame(df, 4)
    assert_array_equal(c.must_link, [[0, 1]])
    assert_array_equal(c.cannot_link_belief, [0.5])
    named = df.assign(i=["ada", "bob"], j=["dan", "cleo"], link=[1, -1])
    assert_array_equal(Constraints.from_frame(named, ids=NAMES).cannot_link, [[1, 2]])
    missing = df.astype({"i": "Int64"})
    missing.loc[8, "i"] = pd.NA
    with pytest.raises(ValueError, match=r"row 1: i is (nan|<NA>), but a position"):
        Constraints.from_frame(missing, 4)
    with pytest.raises(ValueError, match=r"The data frame has no column 'link'; .*\['i', 'j'\]"):
        Constraints.from_frame(df[["i", "j"]], 4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"i": [0, 2.5]}, ValueError, "row 1: i is 2.5, but a position is a whole number"),
        ({"i": np.array([0, True], object)}, ValueError, "row 1: i is True, but a position is"),
        ({"j": [1, 9]}, IndexError, "row 1: j is 9, but there are only 4 samples"),
        ({"link": ["must", None]}, ValueError, "row 1: link is None"),
        ({"link": [1, 2]}, ValueError, "row 1: link is 2"),
        ({"belief": [1, "x"]}, ValueError, "row 1: belief is 'x'"),
        ({"belief": [1]}, ValueError, "different lengths"),
    ],
)
def test_wrong_frames(change, error, message):
    frame = {"i": [0, 2], "j": [1, 1], "link": ["must", "must"], **change}
    with pytest.raises(error, match=message):
        Constraints.from_frame(frame, 4)


# Writing -----------------------------------------------------------------------------------


@given(any_constraints())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path, c):
    path = tmp_path / "pairs.csv"
    pairs = c.table.joined(PairTable.of(*implied_pairs(c.labels)))
    expected = Constraints.from_table(c.n_samples, pairs)
    ids = [f'"{k}",;' for k in range(c.n_samples)]
    for names in (None, ids):
        c.to_csv(path, ids=names)
        read = Constraints.from_csv(path, None if names else c.n_samples, ids=names)
        for name in ("must_link", "cannot_link", "must_link_belief", "cannot_link_belief"):
            assert_array_equal(getattr(read, name), getattr(expected, name))


@pytest.mark.parametrize("missing", [np.nan, None, ""])
def test_a_missing_belief_means_certain_in_a_frame_too(missing):
    table = {"i": [0, 1], "j": [1, 2], "link": ["must"] * 2, "belief": [missing, 0.5]}
    assert Constraints.from_frame(table, 3).must_link_belief.tolist() == [1, 0.5]


def test_a_data_frame_is_no_sequence_of_ids():
    pandas = pytest.importorskip("pandas")
    table = {"i": ["a"], "j": ["b"], "link": ["must"]}
    frame = pandas.DataFrame({"x": [0.0, 1.0]}, index=["a", "b"])
    with pytest.raises(TypeError, match=r"ids is a data frame.*df\.index"):
        Constraints.from_frame(table, ids=frame)
    assert Constraints.from_frame(table, ids=frame.index).n_samples == 2


def test_beliefs_survive_to_the_last_digit(tmp_path):
    c = Constraints(2, must_link=[(0, 1)], must_link_belief=0.1 + 0.2)
    c.to_csv(tmp_path / "c.csv")
    assert Constraints.from_csv(tmp_path / "c.csv", 2).must_link_belief[0] == 0.1 + 0.2


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "pairs.csv"
    Constraints(3, must_link=[(0, 1)]).to_csv(path)
    before = path.read_text()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(formats.Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        Constraints(3, must_link=[(1, 2)]).to_csv(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["pairs.csv"]


def test_labels_are_written_as_pairs_up_to_a_limit(tmp_path, monkeypatch):
    c = Constraints.from_labels([0, 0, 1])
    c.to_csv(tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text() == (
        "i,j,link,belief\n0,1,must,1.0\n0,2,cannot,1.0\n1,2,cannot,1.0\n"
    )
    monkeypatch.setattr(table_module, "MAX_LISTED", 2)
    with pytest.raises(TooLargeError, match="to_csv writes pairs, but these labels imply 3 pairs"):
        c.to_csv(tmp_path / "c.csv")


def test_names_to_write_must_fit(tmp_path):
    with pytest.raises(ValueError, match="There are 4 ids, but n_samples is 3"):
        Constraints(3).to_csv(tmp_path / "c.csv", ids=NAMES)


def test_a_format_is_added_in_one_place(tmp_path, monkeypatch):
    """Pairs as lines "i sign j"; the reader and the writer are all there is to it."""

    def read(path):
        rows = [line.split() for line in path.read_text().splitlines()]
        values = {
            "i": [r[0] for r in rows],
            "link": [r[1] for r in rows],
            "j": [r[2] for r in rows],
        }
        lines = list(range(1, len(rows) + 1))
        return formats.Columns(values, lines, lambda line: f"{path}, line {line}")

    def write(path, table, names):
        rows = zip(table.pairs.tolist(), table.sign.tolist(), strict=True)
        path.write_text("\n".join(f"{i} {sign:+.0f} {j}" for (i, j), sign in rows))

    monkeypatch.setitem(formats.FORMATS, ".links", formats.Format(read, write))
    known = Constraints(4, must_link=[(0, 1)], cannot_link=[(1, 3)])
    known.to_file(tmp_path / "pairs.links")
    assert (tmp_path / "pairs.links").read_text() == "0 +1 1\n1 -1 3"
    assert Constraints.from_file(tmp_path / "pairs.links", 4) == known
    known.to_file(tmp_path / "pairs.csv")
    assert Constraints.from_file(tmp_path / "pairs.csv", 4) == known


def test_rows_without_a_link_are_to_be_reviewed(csv_file):
    path = csv_file("i,j,link,probability\n0,1,same,.5\n0,2,,.4\n1,2, ,.3\n")
    with pytest.warns(UserWarning, match=r"2 left out: the link is empty \(lines 3, 4\)"):
        known = Constraints.from_csv(path, 3)
    assert known.must_link.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="line 2: link is ''"):
        Constraints.from_csv(csv_file("i,j,link\n0,1,\n"), 3)
