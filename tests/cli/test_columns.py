"""Columns as new users have them: texts, short rows, lists with commas, raw units, new rows."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from linkwise import Auto, Constraints, _jit
from linkwise.cli.console import Console

pytest.importorskip("click")
pandas = pytest.importorskip("pandas")

N = 40
KINDS = ("steel kettle for the kitchen", "running shoes with good grip", "garden shears and seeds")
TEXTS = [f"{KINDS[k % 3]} {chr(97 + k // 26) * 2}{chr(97 + k % 26) * 2}" for k in range(N)]
LETTERS = ("cluster", "t.csv", "-k", 3)


def write(tmp_path, **columns):
    pandas.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)


def numbers():
    return np.repeat([0.0, 8.0], N // 2) + np.random.RandomState(0).normal(size=N)


def clusters(path):
    with path.open(newline="") as file:
        return [row["cluster"] for row in csv.DictReader(file)]


# Texts -------------------------------------------------------------------------------------


def test_texts_alone_are_offered_as_text(linkwise, tmp_path):
    write(tmp_path, sku=[f"P{k:02}" for k in range(N)], words=TEXTS)
    run = linkwise(*LETTERS)
    assert run.code == 2
    assert "--text words compares its texts letter by letter" in run.error
    assert run.suggestion == [*map(str, LETTERS), "--text", "words"]
    assert linkwise(*run.suggestion).code == 0


def test_texts_that_repeat_are_offered_as_text(linkwise, tmp_path):
    write(tmp_path, sku=[f"P{k:02}" for k in range(N)], words=[*TEXTS[:-1], TEXTS[0]])
    run = linkwise(*LETTERS)
    assert "Column 'words' holds texts" in run.error
    assert "--categorical" not in run.error
    assert linkwise(*run.suggestion).code == 0
    assert run.suggestion[-2:] == ["--text", "words"]


def test_texts_beside_numbers_are_dropped_or_compared(linkwise, tmp_path):
    write(tmp_path, x=numbers(), words=[*TEXTS[:-1], TEXTS[0]])
    run = linkwise(*LETTERS)
    assert "Use --drop words; or --text words compares its texts letter by letter" in run.error
    assert run.suggestion[-2:] == ["--drop", "words"]


def test_names_are_no_texts(linkwise, tmp_path):
    write(tmp_path, x=numbers(), who=[f"Ann Lee{chr(97 + k % 30)}" for k in range(N)])
    assert "--text" not in linkwise(*LETTERS).error


def test_the_page_says_that_it_compares_words(linkwise, tmp_path):
    write(tmp_path, sku=[f"P{k:02}" for k in range(N)], words=TEXTS)
    run = linkwise("serve", "t.csv")
    assert run.code == 2
    assert "--text words compares its words" in run.error


@pytest.mark.parametrize(("command", "how"), [("cluster", "letter by letter"), ("serve", "words")])
def test_help_says_how_texts_are_compared(command, how, linkwise):
    text = " ".join(linkwise(command, "--help").out.split())
    assert how in text.partition("--text")[2][:150]


def test_categories_that_hardly_repeat_cause_a_warning(linkwise, tmp_path):
    write(tmp_path, x=numbers(), words=TEXTS, kind=["a", "b"] * (N // 2))
    run = linkwise(*LETTERS, "--categorical", "words,kind", "--quiet")
    assert run.code == 0
    assert "--categorical words: 40 different values in 40 rows" in run.err
    assert "--text words compares" in run.err
    assert "--drop words leaves it out" in run.err
    assert "--categorical kind" not in run.err


def test_the_report_describes_clusters_of_texts(linkwise, tmp_path):
    pytest.importorskip("jinja2")
    write(tmp_path, sku=[f"P{k:02}" for k in range(N)], words=TEXTS)
    assert linkwise(*LETTERS, "--text", "words", "--report", "r.html", "-o", "o.csv").code == 0
    page = (tmp_path / "r.html").read_text()
    portrait = page.partition('class="who"')[2].partition("</ul>")[0]
    assert "with <bdi>kettle</bdi>" in portrait.replace("</b> mostly ", "</b> mostly")


# Rows --------------------------------------------------------------------------------------


def rows_with(short, n=12, header="name,a,b"):
    rows = [f"r{k},{k % 2 * 9},{k}" if k not in short else f"r{k},{k}" for k in range(n)]
    return "\n".join([header, *rows]) + "\n"


def test_a_short_row_is_told(linkwise, tmp_path):
    (tmp_path / "t.csv").write_text(rows_with({3, 7}))
    run = linkwise("cluster", "t.csv", "-k", 2, "--impute", "median", "--quiet")
    assert run.code == 0
    told = "t.csv: 2 of 12 rows have fewer values than the 3 columns of the header, first line 5"
    assert f"{told}, with 2" in run.err


def test_a_table_of_short_rows_is_an_error(linkwise, tmp_path):
    (tmp_path / "t.csv").write_text(rows_with(set(range(11))))
    run = linkwise("cluster", "t.csv", "-k", 2, "--impute", "median")
    assert run.code == 2
    assert "11 of 12 rows have fewer values" in run.error
    assert "first line 2, with 2" in run.error
    assert "--delimiter" in run.error


@pytest.mark.parametrize(
    "text",
    [
        rows_with(set(), header="name,a,b,"),  # only the header ends by a delimiter
        rows_with(set()).replace("\nr3", "\n\nr3"),  # an empty line is no row
        rows_with(set()).replace("r3,9,3", "r3,9,"),  # missing, but its place is there
        rows_with(set()).replace("r3", '"r\n3"'),  # a cell of two lines
    ],
)
def test_complete_rows_are_not_told(text, linkwise, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    run = linkwise("cluster", "t.csv", "-k", 2, "--impute", "median")
    assert run.code == 0
    assert "fewer values" not in run.err


# Options -----------------------------------------------------------------------------------


def test_features_are_a_list_with_commas(linkwise, tmp_path):
    write(tmp_path, age=numbers(), income=numbers()[::-1], other=np.arange(N) % 7)
    once = linkwise("cluster", "t.csv", "-k", 2, "--features", "age,income", "-o", "a.csv")
    assert "2 features (age, income)" in once.err
    linkwise(
        "cluster", "t.csv", "-k", 2, "--features", "age", "--features", "income", "-o", "b.csv"
    )
    assert clusters(tmp_path / "a.csv") == clusters(tmp_path / "b.csv")


def test_a_column_with_a_comma_in_its_name_is_one_feature(linkwise, tmp_path):
    write(tmp_path, **{"age,income": numbers(), "age": np.arange(N) % 7.0})
    run = linkwise("cluster", "t.csv", "-k", 2, "--features", "age,income")
    assert "1 feature (age,income)" in run.err


def test_a_name_in_other_capitals_is_meant(linkwise, tmp_path):
    write(tmp_path, Ages=numbers(), age=numbers(), wage=numbers())
    error = linkwise("cluster", "t.csv", "-k", 2, "--features", "Age,wage").error
    assert "--features Age: no such column. Did you mean 'age'? There are" in error


def test_where_ids_are_is_said_once(linkwise, tmp_path):
    write(tmp_path, a=numbers(), b=numbers()[::-1])
    (tmp_path / "p.csv").write_text("i,j,link\n" + "K1,K2,must\n" * 5)
    error = linkwise("cluster", "t.csv", "-k", 2, "-c", "p.csv").error
    assert error.count("a position is a whole number") == 5
    assert error.count("--id") == 1


def test_advice_of_a_fit_names_options(linkwise, tmp_path):
    flat = np.random.RandomState(0).uniform(size=(N, 2))
    write(tmp_path, a=flat[:, 0], b=flat[:, 1])
    run = linkwise("cluster", "t.csv")
    assert "linkwise.Linkage" in str(Auto(random_state=0).fit(flat).report_)
    assert "-m linkage" in run.err
    assert "linkwise.Linkage" not in run.err


def test_too_many_clusters_name_the_option(linkwise, tmp_path):
    write(tmp_path, a=np.arange(150) % 13, b=np.arange(150) % 7)
    error = linkwise("cluster", "t.csv", "-k", 120).error
    assert "-m linkage" in error
    assert "linkwise.Linkage" not in error


# Units -------------------------------------------------------------------------------------


def test_the_report_says_that_columns_were_standardised(linkwise, table, tmp_path):
    pytest.importorskip("jinja2")
    options = ("cluster", "table.csv", "-k", 3, "--drop", "class", "-o", "o.csv")
    linkwise(*options, "--report", "scaled.html")
    linkwise(*options, "--report", "raw.html", "--no-scale")
    scaled, raw = ((tmp_path / name).read_text() for name in ("scaled.html", "raw.html"))
    assert "standardised beforehand (--no-scale leaves the numbers as they are)" in scaled
    assert "as they are in the file (--no-scale)" in raw
    assert "standardised beforehand" not in raw


def test_the_method_can_choose_as_in_python(linkwise, table, tmp_path):
    """The pairs are those of the file; the answer is that of `Auto` on the raw columns."""
    options = ("cluster", "table.csv", "-k", 3, "--drop", "class", "-c", "pairs.csv")
    run = linkwise(*options, "-o", "scaled.csv")
    assert "--no-scale --set scaling=auto lets what is known decide" in run.err
    run = linkwise(*options, "--no-scale", "--set", "scaling=auto", "-o", "o.csv")
    assert "lets what is known decide" not in run.err
    known = Constraints.from_file(tmp_path / "pairs.csv", 60, ids=table.names)
    model = Auto(3, random_state=0).fit(table.X, constraints=known)
    assert [int(found) for found in clusters(tmp_path / "o.csv")] == model.labels_.tolist()
    assert f"features {model.report_.scaling}" in run.err
    assert "--set scaling=" in run.err.partition("features ")[2]


def test_the_method_is_not_to_scale_categories(linkwise, table):
    run = linkwise("cluster", "table.csv", "-k", 3, "-c", "pairs.csv", "--categorical", "class")
    assert "standardised" in run.err
    assert "scaling=auto" not in run.err


# New rows ----------------------------------------------------------------------------------


def test_new_rows_join_the_clusters_of_the_old_ones(linkwise, example, tmp_path):
    """The way of the guide: the clusters of then are labels, and new rows have none."""
    old = pandas.DataFrame(example.X, columns=["length", "width"]).assign(name=example.names)
    old.to_csv(tmp_path / "old.csv", index=False)
    run = linkwise("cluster", "old.csv", "-k", 3, "--id", "name", "-o", "then.csv")
    assert run.code == 0
    then = pandas.read_csv(tmp_path / "then.csv")
    centres = np.array([[0.0, 0.0], [6000.0, 0.0], [0.0, 6.0]])
    new = pandas.DataFrame(centres, columns=["length", "width"]).assign(name=["n0", "n1", "n2"])
    columns = ["name", "cluster"]
    both = pandas.concat([old.merge(then[columns], on="name"), new])
    both.assign(cluster=both["cluster"].astype("Int64")).to_csv(tmp_path / "both.csv", index=False)
    run = linkwise(
        "cluster", "both.csv", "-k", 3, "--id", "name", "--labels", "cluster",
        "--set", "hard=true", "-o", "now.csv",
    )  # fmt: skip
    assert run.code == 0
    now = pandas.read_csv(tmp_path / "now.csv").set_index("name")["cluster"]
    assert now[then["name"]].tolist() == then["cluster"].tolist()
    per_class = [then["cluster"][example.y == cls].mode()[0] for cls in range(3)]
    assert now[["n0", "n1", "n2"]].tolist() == per_class


# Waiting -----------------------------------------------------------------------------------


def test_the_end_of_compiling_is_told_once(monkeypatch, capsys):
    console, note = Console(), _jit.compiling_note
    monkeypatch.setattr(note, "_is_open", True)
    monkeypatch.setattr(note, "_spent", 12.3)
    for _ in range(2):
        with console.progress("auto"):
            pass
    assert capsys.readouterr().err.count("compiling is done, after 12 s") == 1
