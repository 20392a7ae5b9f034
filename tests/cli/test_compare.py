"""`linkwise compare`: methods side by side, with the truth or held-out constraints as judge."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkwise import METHODS, Affinity, Constraints, NCut, Prepared, SignedCSC
from linkwise.datasets import make_xor
from linkwise.metrics import adjusted_rand

pytest.importorskip("click")
pytest.importorskip("pandas")


@pytest.fixture
def xor(tmp_path):
    X, y = make_xor(25, random_state=0)
    np.savez(tmp_path / "xor.npz", X=X, y=y)
    known = Constraints.sample(y, 40, random_state=0)
    known.to_csv(tmp_path / "pairs.csv")
    return X, y, known


def test_the_table_holds_what_python_computes(linkwise, xor, tmp_path):
    X, y, known = xor
    run = linkwise(
        "compare", "xor.npz", "-k", 2, "-c", "pairs.csv", "--truth", "y", "-m", "ncut",
        "-m", "signed", "-o", "out.csv", "--json",
    )  # fmt: skip
    assert run.code == 0
    labels = {
        "ncut": NCut(2, random_state=0).fit(X).labels_,
        "signed": SignedCSC(2, random_state=0).fit(X, constraints=known).labels_,
    }
    rows = {row["key"]: row for row in json.loads(run.out)["methods"]}
    for key, found in labels.items():
        assert rows[key]["violated"] == known.n_violated(found)
        assert_allclose(rows[key]["ari"], adjusted_rand(y, found))
        assert rows[key]["held_out"] is None
    agreement = adjusted_rand(labels["ncut"], labels["signed"])
    assert_allclose(rows["ncut"]["agreement"]["signed"], agreement, atol=1e-12)
    with (tmp_path / "out.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["method"] for row in written] == ["signed", "ncut"]  # the best first
    assert "ignores the ones given" not in run.err


def test_a_pipe_is_told_of_each_method_as_it_ends(linkwise, xor):
    asked = ("compare", "xor.npz", "-k", 2, "-c", "pairs.csv", "--truth", "y", "-m", "ncut")
    run = linkwise(*asked, "-m", "signed")
    told = [line.split(":")[0] for line in run.err.splitlines() if ": ARI " in line]
    assert told == ["ncut", "signed"]
    assert ": ARI " not in linkwise(*asked, "--quiet").err


def test_held_out_pairs_judge_without_truth(linkwise, xor):
    X, _, known = xor
    run = linkwise("compare", "xor.npz", "-k", 2, "-c", "pairs.csv", "-m", "signed", "--json")
    right = np.zeros((2, 2))
    for train, test in known.split(5, random_state=0):
        labels = SignedCSC(2, random_state=0).fit(X, constraints=train).labels_
        for row, pairs in enumerate((test.must_link, test.cannot_link)):
            together = labels[pairs[:, 0]] == labels[pairs[:, 1]]
            right[row] += [(together == (row == 0)).sum(), len(pairs)]
    assert_allclose(
        json.loads(run.out)["methods"][0]["held_out"], (right[:, 0] / right[:, 1]).mean()
    )


def test_held_out_labels_judge_too():
    from linkwise.cli.compare import held_out_share, split_labels

    labels = np.array([0, 1, 0, 1, -1, 0, 1, 0, 1, -1])
    folds = split_labels(labels, 2, seed=0)
    tested = np.concatenate([np.flatnonzero(test.labels >= 0) for _, test in folds])
    assert sorted(tested) == np.flatnonzero(labels >= 0).tolist()
    for train, test in folds:
        assert not ((train.labels >= 0) & (test.labels >= 0)).any()
    truth = np.array([0, 1, 0, 1, 1, 0, 1, 0, 1, 1])
    assert held_out_share([(test, truth) for _, test in folds]) == 1.0
    # Everything in one cluster: all must-links hold, no cannot-link does.
    assert held_out_share([(test, truth * 0) for _, test in folds]) == 0.5
    assert held_out_share([]) is None


def test_all_methods_run_and_refusals_are_told(linkwise, xor, tmp_path):
    run = linkwise("compare", "xor.npz", "-k", 2, "-c", "pairs.csv", "--truth", "y")
    assert run.code == 0
    table = run.out.partition("\n\n")[0].splitlines()
    listed = {line.split()[0] for line in table[1:]}
    assert listed == set(METHODS)
    assert "agreement between methods (ARI):" in run.out
    (tmp_path / "one.csv").write_text("i,j,link\n0,1,must\n")
    options = ("xor.npz", "-k", 2, "-c", "one.csv", "-m", "gfhf", "-m", "signed")
    run = linkwise("compare", *options)
    assert run.code == 0
    assert "\ngfhf: " in run.out
    run = linkwise("compare", *options[:-2])
    assert run.code == 2


def test_contradictions_are_left_to_the_methods_that_accept_them(linkwise, xor, tmp_path):
    (tmp_path / "both.csv").write_text("i,j,link\n0,1,must\n1,2,must\n0,2,cannot\n")
    options = ("compare", "xor.npz", "-k", 2, "-c", "both.csv", "--truth", "y", "-m", "signed")
    run = linkwise(*options, "-m", "cut", "-m", "auto")
    assert run.code == 0
    assert run.out.splitlines()[1].startswith("auto")
    # Once, with the lines of the file as an editor counts them, like all other messages.
    assert "\nsigned, cut: 0 and 2 are cannot-linked (line 4), but" in run.out
    assert "0 - 1 (line 2), 1 - 2 (line 3)" in run.out
    assert "#" not in run.out + run.err
    # None of them does: then the file is refused, by its lines.
    run = linkwise(*options, "-m", "cut")
    assert run.code != 0
    assert "line 4" in run.error


def test_settings_go_to_the_methods_that_have_them(linkwise, xor):
    options = ("compare", "xor.npz", "-k", 2, "--truth", "y", "-m", "ncut", "-m", "cut")
    assert linkwise(*options, "--set", "effort=fast", "--set", "rows=raw").code == 0
    run = linkwise(*options, "--set", "effortx=fast")
    assert run.code == 2
    assert "no such parameter" in run.error


def test_constraints_that_no_method_can_satisfy(linkwise, xor, tmp_path):
    (tmp_path / "ring.csv").write_text("i,j,link\n0,1,cannot\n1,2,cannot\n0,2,cannot\n")
    run = linkwise("compare", "xor.npz", "-k", 2, "-c", "ring.csv", "-m", "signed", "-m", "cut")
    assert run.code == 1
    assert run.out.count("signed, cut: 2 clusters cannot satisfy") == 1


@pytest.fixture
def n_builds(monkeypatch):
    """A list with an entry for every graph that is built."""
    built = []
    build = Affinity.fit_transform

    def counted(self, *arguments, **settings):
        built.append(self)
        return build(self, *arguments, **settings)

    monkeypatch.setattr(Affinity, "fit_transform", counted)
    return built


COMPARED = (
    "compare",
    "xor.npz",
    "-k",
    2,
    "-c",
    "pairs.csv",
    "-m",
    "ncut",
    "-m",
    "e2cp",
    "-m",
    "cut",
)


@pytest.mark.parametrize("more", [(), ("--set", "affinity__neighbors=7")])
def test_the_graph_is_built_once_for_all_methods_and_folds(linkwise, xor, n_builds, more):
    assert linkwise(*COMPARED, "--folds", 5, *more).code == 0
    assert len(n_builds) == 1


def test_the_order_of_the_methods_changes_no_number(linkwise, xor):
    def numbers(*keys):
        chosen = [part for key in keys for part in ("-m", key)]
        run = linkwise("compare", "xor.npz", "-k", 2, "-c", "pairs.csv", *chosen, "--json")
        rows = {row["key"]: row for row in json.loads(run.out)["methods"]}
        return {key: (rows[key]["ncut"], rows[key]["held_out"]) for key in keys}

    assert numbers("e2cp", "csc") == numbers("csc", "e2cp")


# --prepared --------------------------------------------------------------------------------


def test_a_prepared_file_is_written_once_and_read_by_every_command(
    linkwise, xor, n_builds, tmp_path
):
    plain = linkwise("cluster", "xor.npz", "-k", 2, "-c", "pairs.csv", "-m", "e2cp")
    first = linkwise(*COMPARED, "--prepared", "xor.prepared.npz")
    assert "wrote xor.prepared.npz" in first.err
    assert len(n_builds) == 2
    again = linkwise(
        "cluster", "xor.npz", "-k", 2, "-c", "pairs.csv", "-m", "e2cp", "--prepared",
        "xor.prepared.npz", "--report", "r.html",
    )  # fmt: skip
    assert again.out == plain.out
    assert linkwise(*COMPARED, "--prepared", "xor.prepared.npz").code == 0
    assert len(n_builds) == 2
    stored = Prepared.load(tmp_path / "xor.prepared.npz")
    assert stored.n_samples == 100


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--set", "affinity__neighbors=7"), "was made with the graph Affinity()"),
        (("--scale",), "was made of other data"),
    ],
)
def test_a_prepared_file_of_something_else_is_an_error(linkwise, xor, more, words):
    linkwise("cluster", "xor.npz", "-k", 2, "--prepared", "p.npz", "-m", "ncut")
    run = linkwise("cluster", "xor.npz", "-k", 2, "--prepared", "p.npz", "-m", "ncut", *more)
    assert run.code == 2
    assert words in run.error


def test_a_file_that_is_not_prepared_data_is_an_error(linkwise, xor):
    run = linkwise("cluster", "xor.npz", "-k", 2, "--prepared", "xor.npz", "-m", "ncut")
    assert run.code == 2
    assert "would overwrite the input" in run.error
    np.savez("other.npz", a=np.ones(3))
    run = linkwise("cluster", "xor.npz", "-k", 2, "--prepared", "other.npz", "-m", "ncut")
    assert run.code == 2
    assert "other.npz" in run.error
