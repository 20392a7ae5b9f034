"""Duplicates from a table: text columns, missing fields, the review file and the questions."""

from __future__ import annotations

import csv
import io
import json

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
    assert list(rows[0])[:6] == ["i", "j", "link", "probability", "name i", "name j"]
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
