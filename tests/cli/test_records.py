"""Duplicates from a table: text columns, missing fields, the review file and the questions."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

pytest.importorskip("click")
pytest.importorskip("pandas")

LETTERS = list("abcdefghijklmnopqrstuvwxyz")


@pytest.fixture
def people(tmp_path):
    """Write people.csv: 40 people, three times each, with typing errors and missing fields."""
    rng = np.random.RandomState(0)
    words = [["".join(rng.choice(LETTERS, 8)) for _ in range(3)] for _ in range(40)]
    y = np.repeat(np.arange(40), 3)
    rows = []
    for person in y:
        name, street, city = (list(word) for word in words[person])
        name[rng.randint(8)] = LETTERS[rng.randint(26)]
        fields = ["".join(field) for field in (name, street, city)]
        if rng.rand() < 0.2:
            fields[rng.randint(1, 3)] = ""
        rows.append([*fields, f"0{person:03d}", 20 + person if rng.rand() < 0.8 else "", person])
    with (tmp_path / "people.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["name", "street", "city", "zip", "age", "person"], *rows])
    return y


COMMAND = ("people.csv", "--method", "linkage", "--text", "name,street,city", "--truth", "person")


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_with_missing_fields_becomes_duplicates(linkwise, people, tmp_path):
    run = linkwise("cluster", *COMMAND, "--text", "zip", "-o", "out.csv", "--json")
    assert run.code == 0
    assert json.loads(run.out)["ari"] > 0.95
    rows = read(tmp_path / "out.csv")
    assert list(rows[0]) == ["row", "cluster", "probability"]
    assert adjusted_rand_score(people, [row["cluster"] for row in rows]) > 0.95
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)


def test_the_review_file_is_read_back(linkwise, people, tmp_path):
    first = linkwise("cluster", *COMMAND, "-o", "out.csv", "--review", "review.csv")
    assert first.code == 0
    rows = read(tmp_path / "review.csv")
    shown = ["i", "j", "link", "belief", "probability", "wrong", "name i", "name j"]
    assert list(rows[0])[:8] == shown
    for row in rows[:12]:
        same = people[int(row["i"])] == people[int(row["j"])]
        row["link"] = "same" if same else "different"
    with (tmp_path / "reviewed.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    again = linkwise("cluster", *COMMAND, "-c", "reviewed.csv", "--json")
    assert again.code == 0
    found = json.loads(again.out)
    assert found["must_links"] + found["cannot_links"] == 12
    assert "left out: the link is empty" in again.err


def test_only_linkage_writes_a_review(linkwise, people):
    run = linkwise("cluster", "people.csv", "-k", "3", "-m", "ncut", "--review", "review.csv")
    assert run.code == 2
    assert "only the method linkage knows which pairs to review" in run.err


def test_a_column_that_is_not_there_is_named(linkwise, people):
    run = linkwise("cluster", "people.csv", "-m", "linkage", "--text", "name,citi,street")
    assert run.code == 2
    assert "--text citi: no such column. Did you mean 'city'?" in run.err
    run = linkwise("cluster", "people.csv", "-m", "linkage", "--text", "name")
    assert "Add it to --text" in run.err
    assert run.suggestion[-2:] == ["--text", "name,street,city,zip"]


def test_a_phone_number_with_a_letter_belongs_to_text(linkwise, people, tmp_path):
    lines = (tmp_path / "people.csv").read_text(encoding="utf-8").splitlines()
    lines[5] = lines[5].replace(",00", ",0l")  # in the zip code
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    run = linkwise("cluster", *COMMAND)
    assert run.code == 2
    assert "'zip' holds numbers, but text in 1 row(s)" in run.err
    assert "Add it to --text, correct it" in run.err
    assert run.suggestion[-2:] == ["--text", "name,street,city,zip"]


def test_text_is_for_tables(linkwise, tmp_path):
    np.save(tmp_path / "X.npy", np.eye(4))
    run = linkwise("cluster", "X.npy", "-k", "2", "--text", "name")
    assert run.code == 2
    assert "has no columns for --text" in run.err


def test_questions_are_the_review_queue(linkwise, people, tmp_path, monkeypatch):
    def ask(keys, *typed):
        monkeypatch.setattr("sys.stdin", io.StringIO(keys))
        return linkwise("ask", "people.csv", "--drop", "person", *typed)

    typed = ("-m", "linkage", "--text", "name,street,city", "--session", "s.jsonl")
    assert ask("d\ns\nz\nd\nq\n", *typed, "-o", "pairs.csv").code == 0
    assert [row["link"] for row in read(tmp_path / "pairs.csv")] == ["cannot", "cannot"]
    assert json.loads(ask("q\n", *typed, "--json").out)["n_answers"] == 2
    assert "Leave -k out" in ask("", *typed, "-k", "3").err


def answer(path, people, most):
    """Fill the link of the first open rows of a file for review; return how many there were."""
    rows = read(path)
    open_rows = [row for row in rows if not row["link"]]
    for row in open_rows[:most]:
        same = people[int(row["i"])] == people[int(row["j"])]
        row["link"] = "same" if same else "different"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return [tuple(sorted((row["i"], row["j"]))) for row in open_rows[:most]]


def test_one_file_is_reviewed_in_rounds(linkwise, people, tmp_path):
    path, answered = tmp_path / "review.csv", []
    assert linkwise("cluster", *COMMAND, "-o", "out.csv", "--review", "review.csv").code == 0
    for turn in (1, 2):
        answered += answer(path, people, 7)
        again = ("-c", "review.csv", "--review", "review.csv")
        run = linkwise("cluster", *COMMAND, *again, "-o", "out.csv")
        assert run.code == 0, run.err
        assert f"{7 * turn} answers kept" in run.err
        rows = read(path)
        kept = {tuple(sorted((row["i"], row["j"]))): row for row in rows if row["link"]}
        assert set(kept) == set(answered)  # nothing lost, and nothing asked twice
        assert not set(kept) & {(row["i"], row["j"]) for row in rows if not row["link"]}
        for (i, j), row in kept.items():
            assert row["link"] == ("same" if people[int(i)] == people[int(j)] else "different")
            assert 0 <= float(row["wrong"]) <= 1


def test_answers_are_not_written_over(linkwise, people, tmp_path):
    path = tmp_path / "review.csv"
    review = ("--review", "review.csv", "-o", "out.csv")
    assert linkwise("cluster", *COMMAND, *review).code == 0
    assert linkwise("cluster", *COMMAND, *review).code == 0  # no answer yet: nothing to lose
    answer(path, people, 3)
    before = path.read_bytes()
    for given in ((), ("-c", "other.csv")):
        (tmp_path / "other.csv").write_text("i,j,link\n0,1,same\n", encoding="utf-8")
        run = linkwise("cluster", *COMMAND, *given, *review)
        assert run.code == 2
        assert "the file holds 3 answers, which would be lost. Use them with -c" in run.error
        assert path.read_bytes() == before


def test_beliefs_stay_in_the_file(linkwise, people, tmp_path):
    pairs = "i,j,link,belief\n0,1,same,0.8\n0,3,different,\n"
    (tmp_path / "review.csv").write_text(pairs, encoding="utf-8")
    given = ("-c", "review.csv", "--review", "review.csv")
    assert linkwise("cluster", *COMMAND, *given, "-o", "out.csv").code == 0
    found = [(r["i"], r["j"], r["link"], r["belief"]) for r in read(tmp_path / "review.csv")]
    assert found[-2:] == [("0", "1", "same", "0.8"), ("0", "3", "different", "")]


def test_a_file_of_pairs_with_columns_of_its_own_is_not_rewritten(linkwise, people, tmp_path):
    pairs = "i,j,link,comment\n0,1,same,by phone\n"
    (tmp_path / "pairs.csv").write_text(pairs, encoding="utf-8")
    given = ("-c", "pairs.csv", "--review", "pairs.csv")
    run = linkwise("cluster", *COMMAND, *given, "-o", "out.csv")
    assert "--review pairs.csv would overwrite the input" in run.error
    assert (tmp_path / "pairs.csv").read_text(encoding="utf-8") == pairs
    given = ("-c", "none.csv", "--review", "none.csv")
    assert "There is no file none.csv" in linkwise("cluster", *COMMAND, *given).error


def test_ids_in_a_review_file_are_those_of_the_data(linkwise, people, tmp_path):
    """Else its pairs would name rows that do not exist."""
    rows = read(tmp_path / "people.csv")
    with (tmp_path / "people.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["id", *rows[0]])
        writer.writeheader()
        writer.writerows(
            {**row, "id": f"=r{k}", "city": f"={row['city']}"} for k, row in enumerate(rows)
        )
    options = (*COMMAND, "--id", "id", "--spreadsheet-safe", "-o", "out.csv")
    assert linkwise("cluster", *options, "--review", "review.csv").code == 0
    pair = read(tmp_path / "review.csv")[0]
    assert pair["i"].startswith("=r")
    assert pair["j"].startswith("=r")
    assert pair["city i"].startswith("'=")


def test_duplicates_are_seen_with_their_rows(linkwise, people, tmp_path):
    made = ("-o", "out.csv", "--duplicates", "found.csv")
    run = linkwise("cluster", *COMMAND, *made)
    assert run.code == 0
    cluster_of = [row["cluster"] for row in read(tmp_path / "out.csv")]
    rows = read(tmp_path / "found.csv")
    original = read(tmp_path / "people.csv")
    assert {row["row"] for row in rows} == {
        str(i) for i, label in enumerate(cluster_of) if cluster_of.count(label) > 1
    }
    for row in rows:
        assert row["cluster"] == cluster_of[int(row["row"])]
        assert row["name"] == original[int(row["row"])]["name"]
        assert row["age"] == original[int(row["row"])]["age"]
    groups = [row["cluster"] for row in rows]
    assert len(set(groups)) == 1 + sum(a != b for a, b in pairwise(groups))
    least = {}
    for row in rows:
        least[row["cluster"]] = min(float(row["probability"]), least.get(row["cluster"], 1.0))
    assert list(least.values()) == sorted(least.values())  # the most doubtful first
    assert f"{len(rows)} rows of 120 in {len(least)} clusters of several rows" in run.err


def test_a_page_of_duplicates_marks_what_differs(linkwise, people, tmp_path):
    table = (tmp_path / "people.csv").read_text(encoding="utf-8")
    second = table.splitlines()[2].split(",")[0]
    (tmp_path / "people.csv").write_text(
        table.replace(second, f"{second}<i>&", 1), encoding="utf-8"
    )
    assert linkwise("cluster", *COMMAND, "-o", "out.csv", "--duplicates", "found.html").code == 0
    page = (tmp_path / "found.html").read_text(encoding="utf-8")
    assert "<i>" not in page
    assert f"{second}&lt;i&gt;&amp;" in page
    assert "<td><mark>" in page
    assert page.count("<table>") == page.count("</table>") > 30
    run = linkwise("cluster", "people.csv", "-k", "3", "-m", "ncut", "--duplicates", "found.csv")
    assert run.code == 2
    assert "only the method linkage looks for duplicates" in run.err


@pytest.mark.parametrize("typed", [(), ("--text", "name")])
def test_all_columns_of_text_are_offered_at_once(typed, linkwise, people):
    run = linkwise("cluster", "people.csv", "-m", "linkage", *typed, "--truth", "person")
    assert run.code == 2
    assert "Add it to --text" in run.error
    assert "--drop" not in run.suggestion
    assert run.suggestion[-2:] == ["--text", "name,street,city,zip"]
    assert run.suggestion.count("--text") == 1


def test_linkage_of_numbers_needs_no_text(linkwise, tmp_path):
    values = np.random.RandomState(0).normal(size=(30, 2)).repeat(2, axis=0)
    np.savetxt(tmp_path / "xy.csv", values, delimiter=",", header="x,y", comments="")
    assert linkwise("cluster", "xy.csv", "-m", "linkage", "-o", "out.csv").code == 0


def test_without_pairs_the_number_of_clusters_is_called_a_guess(linkwise, people, tmp_path):
    written = ("-o", "out.csv", "--duplicates", "rows.html", "--review", "review.csv")
    run = linkwise("cluster", *COMMAND, *written)
    assert "the number of clusters is a guess" in run.err
    assert "(in review.csv, column link)" in run.err
    assert "the number of clusters is a guess" in (tmp_path / "rows.html").read_text()
    (tmp_path / "pairs.csv").write_text("i,j,link\n0,1,same\n0,3,different\n")
    run = linkwise("cluster", *COMMAND, *written, "-c", "pairs.csv")
    assert "a guess" not in run.err
    assert "a guess" not in (tmp_path / "rows.html").read_text()


def test_suspects_are_named_by_their_lines_in_the_new_file(linkwise, people, tmp_path):
    pairs = [f"{3 * k},{3 * k + 1},same" for k in range(20)]
    pairs += [f"{3 * k},{3 * k + 2},same" for k in range(1, 20)] + ["0,2,different"]
    (tmp_path / "review.csv").write_text("\n".join(["i,j,link", *pairs]))
    lines = ("-c", "review.csv", "--review", "review.csv", "-o", "out.csv")
    suspects = json.loads(linkwise("cluster", *COMMAND, *lines, "--json").out)["suspects"]
    assert suspects
    with (tmp_path / "review.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    for one in suspects:
        answer = {"must": "same", "cannot": "different"}[one["link"]]
        assert rows[one["line"] - 1][:3] == [str(one["i"]), str(one["j"]), answer]
