"""Tables and pairs as people have them: what is read, and all problems at once with a remedy."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from linkwise import _values
from linkwise._values import read_dates, read_numbers

pytest.importorskip("click")
pandas = pytest.importorskip("pandas")

N = 24
CLUSTER = ("cluster", "t.csv", "-k", 2, "-m", "signed")


def column(name, make):
    return [name, *(make(k) for k in range(N))]


X = column("x", lambda k: k % 2 * 9 + k / 100)
CODE = column("code", lambda k: f"c{k:02}")


@pytest.fixture
def write(tmp_path):
    """Write columns, or a text, to a file."""

    def to(name, *columns, delimiter=","):
        if isinstance(columns[0], str):
            (tmp_path / name).write_text(columns[0])
            return
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows(zip(*columns, strict=True))
        (tmp_path / name).write_text(text.getvalue())

    return to


# Values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "2.5", "-"], [1, 2.5, np.nan]),
        (["$1,234.00", "$12", "unknown"], [1234, 12, np.nan]),
        (["1,234,567", "8"], [1234567, 8]),
        (["1,234", "2,500"], [1234, 2500]),
        (["1,5", "2"], [1.5, 2]),
        (["1.234,50 €", "3,00 €"], [1234.5, 3]),
        (["1 234", "5"], [1234, 5]),
        (["1'234.5", "5"], [1234.5, 5]),
        (["(12)", "-$5", "USD 7"], [-12, -5, 7]),
        (["5%", "7.5 %"], [5, 7.5]),
        (["1e5", "2,000"], [1e5, 2000]),
        (["1,5", "2.5"], None),
        (["12 kg", "3 kg", ""], [12, 3, np.nan]),
        (["1.5km/h", "20km/h"], [1.5, 20]),
        (["1,234.5 m", "20 m"], [1234.5, 20]),
        (["12 kg", "300 g"], None),
        (["12 kg", "3"], None),
        (["12a", "3a"], None),
        (["101ctrl", "102ctrl"], None),
        (["0012 AB", "0013 AB"], None),
        (["9 am", "12 am"], None),
        (["-5 °C", "12.5 °C"], [-5, 12.5]),
        (["12°C", "3°C"], [12, 3]),
        (["12 Main Street", "3 Main Street"], None),
        (["1,23,4", "2"], None),
        (["a", "b"], None),
        (["", "-"], None),
    ],
)
def test_numbers_as_people_write_them(texts, values):
    found = read_numbers(texts, decimal=".", prefers_comma=False)
    assert (found is None) == (values is None)
    if values is not None:
        np.testing.assert_array_equal(found.values, values)
        assert bool(found.how) == (texts[0] != "1")


@pytest.mark.parametrize(("decimal", "prefers"), [(".", True), (",", False)])
def test_a_comma_is_what_the_file_makes_likely(decimal, prefers):
    found = read_numbers(["1,234", "2,500"], decimal=decimal, prefers_comma=prefers)
    assert found.values.tolist() == [1.234, 2.5]


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2024-01-03", "2024-02-01", ""], [0, 29, np.nan]),
        (["2024-01-03T06:00:00Z", "2024-01-03 18:00"], [0, 0.5]),
        (["13/01/2024", "02/01/2024"], [11, 0]),
        (["01/13/2024", "1/2/2024"], [11, 0]),
        (["03.04.2024", "04.04.2024"], [0, 1]),
        (["12 Mar 2024", "13 March 2024"], [0, 1]),
        (["Mar 12, 2024", "Mar 13, 2024"], [0, 1]),
        (["31/01/2024", "01/31/2024"], None),
        (["2024-13-45", "2024-01-01"], None),
        (["monday", "tuesday"], None),
        (["", ""], None),
    ],
)
def test_dates_as_people_write_them(texts, days):
    found = read_dates(texts)
    assert (found is None) == (days is None)
    if days is not None:
        np.testing.assert_allclose(found.values, days)


# Tables -----------------------------------------------------------------------------------------


def test_columns_are_taken_for_what_they_are(linkwise, write):
    email = column("email", lambda k: f"u{k}@x.org")
    since = column("since", lambda k: f"2024-03-{k + 1:02}")
    price = column("price", lambda k: f"${k % 2 * 1000 + 500 + k:,.2f}")
    write("t.csv", X, email, since, price, CODE)
    run = linkwise(*CLUSTER)
    assert run.code == 0
    assert run.out.startswith("email,cluster\nu0@x.org,")
    for note in (
        "ids are the column 'email', which differs in every row (--id chooses another)",
        "left out, because the text differs in every row: 'code'",
        "column 'since': dates, used as days since 2024-03-01 (--drop since leaves it out)",
        "column 'price': '$500.00' is read as 500 (--drop price leaves it out)",
        "3 features (x, since, price)",
    ):
        assert note in run.err, run.err
    assert linkwise(*CLUSTER, "--id", "code").out.startswith("code,cluster\nc00,")


def test_numbers_that_name_something_are_no_features(linkwise, write):
    phone = column("Phone No.", lambda k: f"{5550000000 + 7919 * k}")
    store = column("store_id", lambda k: f"{k % 3}")
    code = column("code", lambda k: f"{1234567890 + 104729 * k}")
    visits = column("number of visits", lambda k: f"{k % 5}")
    write("t.csv", X, phone, store, code, visits)
    run = linkwise(*CLUSTER)
    assert run.code == 0
    for name in ("Phone No.", "store_id"):
        assert f"column {name!r}: it names something and counts nothing" in run.err
    assert "column 'code': whole numbers such as 1234567890, hardly any of them twice" in run.err
    assert "3 features (x, code, number of visits)" in run.err
    asked = linkwise(*CLUSTER, "--categorical", "store_id")
    assert "4 features (x, store_id, code, number of visits); 1 categorical" in asked.err
    only = linkwise(*CLUSTER, "--features", "store_id")
    assert "1 feature (store_id)" in only.err
    write("t.csv", phone, store)
    assert "No column is left as a feature" in linkwise(*CLUSTER).error


def test_text_of_windows_is_read(linkwise, tmp_path):
    rows = [f"Müller {k};{k // 5 * 9 + k % 5}" for k in range(10)]
    table, pairs = "\n".join(["name;größe", *rows]), "i;j;link\nMüller 0;Müller 9;different\n"
    (tmp_path / "t.csv").write_bytes(table.encode("cp1252"))
    (tmp_path / "p.csv").write_bytes(pairs.encode("cp1252"))
    run = linkwise(*CLUSTER, "-c", "p.csv", "-m", "csc")
    assert run.code == 0
    assert run.out.splitlines()[1].startswith("Müller 0,")
    for name in ("t.csv", "p.csv"):
        assert f"{name} is not UTF-8, so it is read as cp1252" in run.err
    strict = linkwise(*CLUSTER, "--encoding", "ascii")
    assert "t.csv is not ascii text" in strict.error


def test_dates_that_are_typed(linkwise, write, tmp_path):
    pytest.importorskip("pyarrow")
    days = pandas.date_range("2024-01-01", periods=N, freq="12h")
    frame = pandas.DataFrame({"day": days, "for": days - days[0], "x": X[1:]})
    frame.to_parquet(tmp_path / "t.parquet")
    run = linkwise("cluster", "t.parquet", "-k", 2, "-m", "signed")
    assert run.code == 0
    assert "column 'day': dates, used as days since 2024-01-01" in run.err


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_delimiters_are_just_read(mark, linkwise, write):
    write("t.csv", CODE, X, delimiter=",")
    expected = linkwise(*CLUSTER).out
    write("t.csv", CODE, X, delimiter=mark)
    assert linkwise(*CLUSTER).out == expected
    write("t.tsv", CODE, X, delimiter=mark)
    assert linkwise("cluster", "t.tsv", *CLUSTER[2:]).out == expected


@pytest.mark.parametrize("name", ["customer_id", "PassengerId", "row ID"])
def test_a_first_column_called_an_id_names_the_rows(name, linkwise, write):
    write("t.csv", column(name, lambda k: f"{k:04}"), X)
    assert linkwise(*CLUSTER).out.startswith(f"{name},cluster\n0000,")
    write("t.csv", column(name, lambda k: k // 2), X)  # several rows each: no ids, and no number
    run = linkwise(*CLUSTER)
    assert run.suggestion[-2:] == ["--drop", name]
    assert linkwise(*run.suggestion).code == 0


@pytest.mark.parametrize(("name", "digits"), [("No.", 3), ("line", 1)])
@pytest.mark.parametrize("first", [0, 1])
def test_a_first_column_that_counts_the_rows_is_no_feature(name, digits, first, linkwise, write):
    write("t.csv", column(name, lambda k: f"{k + first:0{digits}}"), X)
    run = linkwise(*CLUSTER)
    assert f"left out, because it counts the rows: {name!r} (--id makes it ids)" in run.err
    assert "1 feature (x)" in run.err
    run = linkwise(*CLUSTER, f"--features={name}", "--features=x")
    assert f"2 features ({name}, x)" in run.err
    assert linkwise(*CLUSTER, f"--id={name}").out.startswith(f"{name},cluster\n{first:0{digits}},")


@pytest.mark.parametrize("pairs", ["1,3,must\n2,4,must", "1,3,must\n2,4,must\n0,9,cannot"])
@pytest.mark.parametrize("digits", [1, 3])
def test_pairs_beside_a_column_that_counts_from_one_are_positions(pairs, digits, linkwise, write):
    # Whatever else is in the file: only --id makes its numbers those of the column.
    write("t.csv", column("frame", lambda k: f"{k + 1:0{digits}}"), X)
    write("p.csv", f"i,j,link\n{pairs}\n")
    groups = linkwise("check", "p.csv", "t.csv").out
    assert "1, 3" in groups
    assert "2, 4" in groups
    write("p.csv", f"i,j,link\n{1:0{digits}},{3:0{digits}},must\n")
    assert f"{1:0{digits}}, {3:0{digits}}" in linkwise("check", "p.csv", "t.csv", "--id=frame").out


@pytest.mark.parametrize("pairs", ["n00,n02,must\nn00,n01,no", "n00,n02,must\nn00,Zorro,no"])
def test_pairs_by_the_names_of_another_column(pairs, linkwise, write):
    write("t.csv", column("id", lambda k: f"c{k:02}"), column("name", lambda k: f"n{k:02}"), X)
    write("p.csv", f"i,j,link\n{pairs}\n")
    run = linkwise(*CLUSTER, "-c", "p.csv")
    assert "p.csv: its names are not ids, but those of the column 'name'." in run.error
    assert "--id name" in run.error
    # Only the name that is in no column is left out.
    assert ("--skip-unknown" in run.error) == ("Zorro" in pairs)
    assert linkwise(*run.suggestion).code == 0


@pytest.mark.parametrize("step", [2, -1])
def test_a_first_column_of_other_numbers_is_a_feature(step, linkwise, write):
    write("t.csv", column("line", lambda k: k * step), X)
    assert "2 features (line, x)" in linkwise(*CLUSTER).err


def test_delimiters_at_the_end_of_every_line_are_no_column(linkwise, write):
    write("t.csv", CODE, X, column("", lambda k: ""), column("", lambda k: " "))
    run = linkwise(*CLUSTER)
    assert run.code == 0
    assert "1 feature (x)" in run.err
    assert linkwise(*CLUSTER, "--drop", "Unnamed: 2").code == 0
    write("t.csv", column("", lambda k: ""), CODE, X)  # an empty first column names no rows
    assert linkwise(*CLUSTER).out.startswith("code,cluster\nc00,")
    write("t.csv", CODE, X, column("empty", lambda k: ""))  # one with a name was meant
    assert "Column 'empty' has no values at all" in linkwise(*CLUSTER).error


def test_more_clusters_than_rows_are_a_problem_among_others(linkwise, write):
    write("t.csv", CODE, X, column("empty", lambda k: ""))
    run = linkwise("cluster", "t.csv", "-k", 25)
    assert "-k 25 is more than the 24 rows of t.csv" in run.error
    assert "'empty'" in run.error
    assert "This would work" not in run.error


def test_an_absurd_value_is_named(linkwise, write):
    write("t.csv", CODE, column("x", lambda k: 1e300 if k == 5 else k), column("y", lambda k: k))
    run = linkwise(*CLUSTER)
    assert run.code == 0
    assert "Column 'x' has 1e+300 in line 7 (c05), while all others lie between 0 and 23" in run.err
    assert "Column 'y'" not in run.err


def test_excel(linkwise, write, tmp_path):
    write("t.csv", CODE, X)
    expected = linkwise(*CLUSTER).out
    for start, advice in ((b"PK\x03\x04", "--format xlsx"), (b"\xd0\xcf\x11\xe0", "as .xlsx or")):
        (tmp_path / "b.csv").write_bytes(start + b" and so on")
        run = linkwise("cluster", "b.csv", "-k", 2)
        assert (run.code, advice in run.error) == (2, True)
    pytest.importorskip("openpyxl")
    pandas.read_csv(tmp_path / "t.csv").to_excel(tmp_path / "t.xlsx", index=False)
    assert linkwise("cluster", "t.xlsx", *CLUSTER[2:]).out == expected
    (tmp_path / "t.xlsx").rename(tmp_path / "b.csv")
    assert linkwise("cluster", "b.csv", "--format", "xlsx", *CLUSTER[2:]).out == expected
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04 and so on")
    assert "no readable .xlsx file" in linkwise("cluster", "bad.xlsx", "-k", 2).error


# All problems at once ---------------------------------------------------------------------------


@pytest.fixture
def troubled(write):
    """A table with five problems, and pairs with three."""
    write(
        "t.csv",
        CODE,
        X,
        column("note", lambda k: f"w{k % 20}"),
        column("size", lambda k: "" if k % 5 == 0 else k % 7),
        column("height", lambda k: "tall" if k == 3 else k),
        column("never", lambda k: ""),
        column("far", lambda k: "inf" if k == 2 else k),
    )
    write(
        "p.csv",
        "left,right,verdict\nc00,c02,same\nc01,c00,different\nc99,c01,same\nc00,nobody,different\n",
    )
    write("both.csv", "i,j,link\nc00,c02,same\nc00,c02,different\n")
    return ("cluster", "t.csv", "-k", 2, "-m", "signed", "-c", "p.csv")


def test_all_problems_are_told_with_a_command_that_works(linkwise, troubled):
    run = linkwise(*troubled)
    assert (run.code, run.out) == (2, "")
    lines = run.error.splitlines()
    assert lines[0] == "Error: 8 problems:"
    for line, part in zip(
        lines[1:],
        [
            "Column 'note' is text with 20 different values in 24 rows",
            "Column 'height' holds numbers, but text in 1 row(s), first 'tall' in line 5 (c03)",
            "Column 'far' is infinite in line 4 (c02)",
            "Column 'never' has no values at all",
            "Values are missing in 5 row(s), first in line 2 (c00); columns: 'size' (5)",
            "p.csv, line 1 has no column 'i', 'j', 'link'",
            "p.csv, line 4: i is 'c99', which is not among the 24 ids",
            "p.csv, line 5: j is 'nobody', which is not among the 24 ids",
        ],
        strict=False,
    ):
        assert part in line
    assert run.suggestion[: len(troubled)] == [str(argument) for argument in troubled]
    again = linkwise(*run.suggestion)
    assert again.code == 0, again.err
    assert "p.csv: 2 skipped: a sample that is not known (lines 4, 5)" in again.err
    assert "1 feature (x)" in again.err or "2 features (x, size)" in again.err


def test_problems_for_machines(linkwise, troubled):
    run = linkwise(*troubled, "--json")
    told = json.loads(run.out)
    assert len(told["problems"]) == 8
    assert told["suggestion"].startswith("linkwise cluster t.csv -k 2")
    assert "--skip-unknown" in told["suggestion"]


def test_what_no_option_solves_gets_no_command(linkwise, write):
    write("t.csv", CODE, X)
    write("p.csv", "i,j,link\nc00,c01,perhaps\nc00,c77,must\n")
    run = linkwise(*CLUSTER, "-c", "p.csv", "--drop", "y", "--id", "cod")
    assert "This would work" not in run.error
    assert len(run.error.splitlines()) == 3  # without ids the pairs cannot be judged
    for part in ("--drop y: no such column", "--id cod: no such column"):
        assert part in run.error
    run = linkwise(*CLUSTER, "-c", "p.csv")
    assert "This would work" not in run.error
    assert "link is 'perhaps'" in run.error
    write("t.csv", column("note", lambda k: f"w{k % 20}"))
    assert "This would work" not in linkwise(*CLUSTER).error  # nothing would be left


def test_repeated_ids_are_listed_together(linkwise, write):
    write("t.csv", column("key", lambda k: f"c{k % 22}" if k else ""), X)
    run = linkwise(*CLUSTER, "--id", "key")
    assert "no id in line 2" in run.error
    write("t.csv", column("key", lambda k: f"c{k % 22}"), X)
    run = linkwise(*CLUSTER, "--id", "key")
    assert "has the id 'c0' in lines 2, 24, 'c1' in lines 3, 25" in run.error
    assert run.suggestion == ["cluster", "t.csv", "-k", "2", "-m", "signed", "--drop", "key"]
    assert linkwise(*run.suggestion).code == 0
    write("p.csv", "i,j,link\nc5,c6,must\n")  # the pairs need the ids
    assert "This would work" not in linkwise(*CLUSTER, "--id=key", "-c", "p.csv").error


def test_labels_that_are_all_empty(linkwise, write):
    write("t.csv", CODE, X, column("known", lambda k: ""))
    run = linkwise(*CLUSTER, "--labels", "known")
    assert linkwise(*run.suggestion).code == 0


@pytest.mark.parametrize("word", ["Unknown", "unassigned"])
def test_a_word_for_unknown_is_no_class(word, linkwise, write):
    write("t.csv", CODE, X, column("known", lambda k: ("a", word, "b", word)[k % 4]))
    run = linkwise(*CLUSTER, "--labels", "known", "--truth", "known", "-o", "out.csv")
    assert f"column 'known': {word!r} (12 rows) is taken for an unknown label" in run.err
    assert "12 labels of 2 classes" in run.err
    assert word not in Path("out.csv").read_text()


# Pairs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [CLUSTER, ("check",), ("compare", "t.csv", "-k", 2, "-m", "signed")]
)
def test_repeated_pairs_and_pairs_of_one_row_are_told(command, linkwise, write):
    write("t.csv", CODE, X)
    pairs = ["c00,c02,must", "c02,c00,same", "c05,c05,must", "c00,c01,no", "c00,c02,yes"]
    write("p.csv", "\n".join(["i,j,link", *pairs]))
    files = ("p.csv", "t.csv") if command == ("check",) else ("-c", "p.csv")
    run = linkwise(*command, *files)
    assert run.code == 0
    assert (
        "p.csv: 2 repeated: each pair counts once, with the larger belief (lines 3, 6)" in run.err
    )
    assert "p.csv: 1 left out: a must-link of a sample to itself (line 4)" in run.err
    assert "1 must-link" in run.err + run.out
    assert "1 cannot-link" in run.err + run.out


def test_disagreeing_pairs_are_for_methods_that_weigh_them(linkwise, write):
    write("t.csv", CODE, X)
    links = ["c00,c02,must", "c00,c02,cannot", "c01,c03,must", "c03,c01,no", "c04,c06,same"]
    write("p.csv", "\n".join(["i,j,link", *links]))
    run = linkwise(*CLUSTER, "-c", "p.csv")
    assert run.code == 1
    assert "c00 and c02 are cannot-linked (line 3)" in run.error
    assert "c01 and c03 are cannot-linked (line 5)" in run.error
    assert run.suggestion == ["cluster", "t.csv", "-k", "2", "-c", "p.csv", "-m", "auto"]
    again = linkwise(*run.suggestion)
    assert again.code == 0
    assert "suspect: cannot-link c00 - c02 (line 3)" in again.err


def test_positions_although_a_column_was_taken_for_ids(linkwise, write):
    write("t.csv", CODE, X)
    write("p.csv", "i,j,link\n0,2,must\n0,1,cannot\n")
    run = linkwise(*CLUSTER, "-c", "p.csv")
    assert run.code == 0
    assert "i and j are positions of rows, counted from 0: none is an id" in run.err
    assert linkwise(*CLUSTER, "-c", "p.csv", "--id", "code").code == 2  # asked for


def test_no_command_without_hard_is_suggested_to_who_asked_for_it(linkwise, write):
    write("t.csv", CODE, X)
    write("p.csv", "i,j,link\nc00,c01,must\nc01,c02,must\nc00,c02,cannot\n")
    for method in ("auto", "e2cp"):
        run = linkwise(*CLUSTER, "-c", "p.csv", "-m", method, "--set", "hard=true")
        assert run.code == 1
        assert "This would work" not in run.error
        assert "With hard=true all of them have to hold" in run.error
    soft = linkwise(*CLUSTER, "-c", "p.csv", "-m", "cut")
    assert "This would work" in soft.error


def test_check_takes_a_command_line_of_cluster(linkwise, write, troubled):
    options = ("--pair-columns", "left,right,verdict", "--skip-unknown", "--drop", "note")
    options += ("--impute", "median", "--seed", 3, "-o", "out.csv", "--set", "gamma=1")
    run = linkwise("check", *troubled[1:], *options)
    assert run.code == 0, run.err
    assert "1 must-link and 1 cannot-link between 3 of 24 samples" in run.out
    assert linkwise("check", "p.csv", "t.csv", *options).out == run.out
    assert linkwise("check", "p.csv", "t.csv", "x.csv").code == 2
    write("p.csv", "i,j,link\nc00,c02,must\nc00,c02,no\nc99,c01,same\nc00,c01,perhaps\n")
    run = linkwise("check", "p.csv", "t.csv")
    assert run.code == 2
    for part in ("line 4: i is 'c99'", "line 5: link is 'perhaps'", "c00 and c02 are cannot"):
        assert part in run.error


# Imports ----------------------------------------------------------------------------------------

FAILING = {
    "no such file": ("cluster", "no.csv", "-k", "2"),
    "no such option": ("cluster", "t.csv", "--nonsense"),
    "no such method": ("cluster", "t.csv", "-k", "2", "-m", "e3cp"),
    "no such parameter": ("cluster", "t.csv", "-k", "2", "-m", "e2cp", "--set", "alfa=1"),
    "no such parameter of the default": ("cluster", "t.csv", "-k", "2", "--set", "alfa=1"),
    "no folder": ("cluster", "t.csv", "-k", "2", "-o", "none/out.csv"),
    "problems": ("cluster", "t.csv", "-k", "2", "-c", "p.csv"),
    "disagreeing pairs": ("cluster", "t.csv", "-k", "2", "-c", "both.csv"),
    "compare": ("compare", "t.csv", "-k", "2", "-c", "p.csv"),
    "ask": ("ask", "t.csv", "-k", "2", "-c", "p.csv"),
    "check": ("check", "p.csv", "t.csv"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_command_fails_before_it_imports_what_takes_long(case, troubled, tmp_path):
    script = f"""
import sys
from linkwise.cli import main
code = main({list(FAILING[case])!r})
print(code, [name for name in ("sklearn", "numba") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "2 []\n", done.stderr
    assert case != "no such parameter" or "E2CP has no such parameter" in done.stderr


def test_a_column_that_is_mostly_missing_is_rather_left_out(linkwise, write):
    rows = "".join(f"{k},{k * k if k % 4 else ''},{k if k < 8 else ''}\n" for k in range(20))
    write("data.csv", f"x,y,z\n{rows}")
    run = linkwise("cluster", "data.csv", "-k", 2, "-o", "out.csv")
    assert "Column 'z': 60% of it is missing. Use --drop z" in run.error
    assert "columns: 'y' (5)." in run.error
    assert run.suggestion[-4:] == ["--drop", "z", "--impute", "median"]
    assert linkwise(*run.suggestion).code == 0


def test_drop_takes_several_columns(linkwise, write):
    rows = "".join(f"{k / 2},{k * k},a{k % 3},{k}\n" for k in range(20))
    write("data.csv", f'x,y,kind,"b,c"\n{rows}')
    run = linkwise("cluster", "data.csv", "-k", 2, "-o", "out.csv", "--drop", "y, kind")
    assert "2 features (x, b,c)" in run.err
    run = linkwise("cluster", "data.csv", "-k", 2, "-o", "out.csv", "--drop", "b,c")
    assert "3 features (x, y, kind)" in run.err
    run = linkwise("cluster", "data.csv", "-k", 2, "-o", "out.csv", "--drop", "y,nothing")
    assert "--drop nothing: no such column" in run.error


# Where ------------------------------------------------------------------------------------------


def test_lines_are_those_that_an_editor_shows(linkwise, tmp_path):
    """Counted from 1, with the header, blank lines, and cells of several lines."""
    (tmp_path / "t.csv").write_text(
        'code,x,note\nc0,1,fine\n\nc1,2,"two\nlines"\nc2,three,fine\nc3,4,fine\n   \nc4,,fine\n',
        encoding="utf-8",
    )
    error = linkwise(*CLUSTER, "--drop", "note").error
    assert "first 'three' in line 6 (c2)" in error
    run = linkwise(*CLUSTER, "--drop", "note", "--categorical", "x")
    assert "first in line 9 (c4)" in run.error


def test_rows_of_a_sheet_are_those_that_it_shows(linkwise, tmp_path):
    pytest.importorskip("openpyxl")
    table = {"code": ["c0", "c1", "c2", "c3"], "x": [1.0, None, 3.0, 4.0]}
    pandas.DataFrame(table).to_excel(tmp_path / "t.xlsx", index=False)
    assert "first in row 3 (c1);" in linkwise("cluster", "t.xlsx", "-k", 2).error
    pandas.DataFrame(table).to_parquet(tmp_path / "t.parquet")
    assert "first in row 1 (c1), counted from 0;" in linkwise("cluster", "t.parquet", "-k", 2).error


def test_the_row_of_a_missing_entry_of_a_sparse_matrix(linkwise, tmp_path):
    X = np.eye(5, 3) + 1
    X[3, 1] = np.nan
    save_npz(tmp_path / "t.npz", csr_array(X))
    assert "first in row 3 (counted from 0)" in linkwise("cluster", "t.npz", "-k", 2).error


def test_numbers_are_read_from_arrays_that_cannot_be_written_to(monkeypatch):
    def locked(texts):
        values = plain_numbers(texts)
        values.flags.writeable = False  # as those of pandas 3 are
        return values

    plain_numbers = _values.plain_numbers
    monkeypatch.setattr(_values, "plain_numbers", locked)
    found = read_numbers(["€1.50", "€2"], decimal=".", prefers_comma=False)
    assert found.values.tolist() == [1.5, 2]
