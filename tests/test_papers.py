"""The papers' experiments: their helpers, their verdicts on made-up tables, one tiny run."""

from __future__ import annotations

import csv
import importlib
import inspect
import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "papers"
NAMES = ("wacquet_fig1_2", "wacquet_fig3_4", "xu_fig1_4", "xu_fig5_6", "wang_fig4_5")
# Older matplotlib calls names that newer pyparsing has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
if not FOLDER.is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


def imported(name):
    """Import a file of the folder by its plain name, as the experiments import each other."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


common, run_all, make_page = map(imported, ("common", "run_all", "make_page"))
wacquet, faces, xor, xu, wang = map(imported, NAMES)


def made_up(curves, metric, *, data="toy", failures=0):
    """Return tidy rows from the means of each method at the amounts 0, 10, 20, ..."""
    return [
        {
            "size": "reduced",
            "data": data,
            "n_samples": 100,
            "method": method,
            "amount": 10 * number,
            "share": 2.5 * number,
            "metric": metric,
            "n_draws": 3,
            "n": 3,
            "mean": mean,
            "sd": 0.1,
            "failures": failures,
            "problems": "",
        }
        for method, means in curves.items()
        for number, mean in enumerate(means)
    ]


def outcome(judge, rows):
    """Return what a judge says, place by place."""
    return {place: bool(found.holds) for place, found in judge(rows).items()}


# ------------------------------------------------------------------ helpers


def test_every_experiment_declares_what_it_tests():
    paths = run_all.experiments()
    assert {path.stem for path in paths} >= set(NAMES)
    for path in paths:
        module = imported(path.stem)
        assert path.stem == module.NAME
        assert module.TITLE
        assert module.PAPER
        assert module.CLAIMS
        assert "argv" in inspect.signature(module.main).parameters
        for claim in module.CLAIMS:
            assert claim.text
            assert callable(claim.judge)


def test_papers_come_in_the_order_of_the_page():
    papers = [path.stem.partition("_")[0] for path in run_all.experiments()]
    assert papers == sorted(papers, key=run_all.ORDER.index)


@pytest.mark.parametrize(
    ("holds_on", "of", "expected"),
    [
        (6, 6, "holds"),
        (5, 6, "partly"),
        (3, 6, "partly"),
        (2, 6, "does not hold"),
        (0, 1, "does not hold"),
        (0, 0, "not tested"),
    ],
)
def test_a_verdict_counts_places(holds_on, of, expected):
    assert common.Tally(holds_on, of, "").verdict == expected


def test_the_reason_is_given_only_where_a_claim_fails():
    judge = lambda rows: {"a": common.Outcome(rows[0]["mean"] > 1, "x")}  # noqa: E731
    claim = common.Claim("up", judge, "reason")
    (good,), (bad,) = (common.judged([claim], made_up({"m": [v]}, "x")) for v in (2, 1))
    assert (good.letter, good.note) == ((1, 1, "a: x"), "")
    assert (bad.letter, bad.note) == ((0, 1, "a (no): x"), "reason")


def test_colours_are_distinct_with_their_markers():
    assert len(set(common.METHOD_COLORS.values())) == len(common.METHOD_COLORS)
    plain, variant = common.method_style("signed"), common.method_style("signed:paper")
    assert plain["color"] == variant["color"]
    assert plain["linestyle"] != variant["linestyle"]
    assert common.method_style("one without an entry")["color"] == "#777777"


def test_the_default_takes_the_place_of_the_letter_where_it_was_run():
    curves = {"a": [1, 2], "a:default": [3, 4], "b": [5, 6], "b:ours": [7, 8]}
    rows = made_up(curves, "x") + made_up({"a": [9]}, "y")
    found = {(r["method"], r["metric"]): r["mean"] for r in common.by_default(rows)}
    assert found == {("a", "x"): 4, ("b", "x"): 6, ("b:ours", "x"): 8, ("a", "y"): 9}
    ours = {(r["method"], r["metric"]): r["mean"] for r in common.all_ours(rows)}
    assert ours == {("a", "x"): 4, ("b", "x"): 8, ("a", "y"): 9}


def test_a_claim_is_judged_by_the_letter_and_by_default():
    rows = made_up({"a": [0, 0.4], "a:default": [0, 0.6], "b": [0, 0.5]}, "x")
    claim = common.Claim("best", lambda r: common.wins(common.Means(r, "x"), "a", ["b"]), "why")
    (verdict,) = common.judged([claim], rows)
    assert str(verdict.letter) == "does not hold (0 of 1)"
    assert str(verdict.default) == "holds (1 of 1)"
    assert not verdict.is_same
    assert verdict.note == "why"
    (same,) = common.judged([claim], [row for row in rows if row["method"] != "a:default"])
    assert same.is_same


def test_means_are_looked_up_by_place():
    rows = made_up({"a": [0.1, 0.2, 0.6], "b": [0.5, 0.5, np.nan]}, "accuracy")
    means = common.Means(rows + made_up({"a": [9, 9, 9]}, "other"), "accuracy")
    assert means.amounts("toy") == [0, 10, 20]
    assert means.at("toy", "a", 10) == 0.2
    assert np.isnan(means.at("toy", "a", 11))
    assert means.level("toy", "a") == pytest.approx(0.4)  # without the amount 0
    assert means.last("toy", "a") == 0.6
    assert np.isnan(means.level("toy", "b"))


def test_wins_compares_levels_and_leaves_out_what_has_no_score():
    rows = made_up({"a": [0, 0.6], "b": [0.9, 0.5], "c": [0, np.nan]}, "accuracy")
    means = common.Means(rows, "accuracy")
    assert common.wins(means, "a", ["b", "c", "absent"])["toy"].holds
    assert not common.wins(means, "b", ["a"])["toy"].holds
    assert common.wins(means, "b", ["a"], slack=0.11)["toy"].holds
    assert not common.wins(means, "c", ["a"])["toy"].holds


def test_a_table_can_be_read_again(tmp_path):
    rows = made_up({"a": [1 / 3, 0.5]}, "accuracy")
    common.write_csv(tmp_path / "t.csv", rows)
    again = common.read_rows(tmp_path / "t.csv")
    assert [row.pop("mean") for row in again] == [0.333333, 0.5]
    known = [{k: v for k, v in row.items() if k not in {"mean", "share"}} for row in rows]
    assert [{k: v for k, v in row.items() if k != "share"} for row in again] == known
    assert [row["share"] for row in again] == [0.0, 2.5]


def test_a_row_of_draws():
    row = common.tidy_row(("iris", "csc", 15, "ari"), [0.5, 0.7], size="reduced", n_samples=150)
    assert (row["data"], row["method"], row["amount"], row["metric"]) == ("iris", "csc", 15, "ari")
    assert (row["mean"], row["n"], row["share"]) == (0.6, 2, 10.0)
    assert row["sd"] == pytest.approx(0.1 * 2**0.5)


def test_a_picture_is_not_too_wide(tmp_path):
    image = pytest.importorskip("PIL.Image")
    curves = {"ncut": [0.1, 0.2], "sl": [0.1, 0.4]}
    rows = [row for data in "abcd" for row in made_up(curves, "accuracy", data=data)]
    figure = common.paper_figure(rows, "accuracy", labels={"sl": "SL"}, x="share")
    common.save_figure(figure, tmp_path / "t.png")
    with image.open(tmp_path / "t.png") as picture:
        assert 900 < picture.width <= 1200
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["ncut", "SL"]


def test_data_come_from_the_folder_that_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LINKWISE_DATA", str(tmp_path))
    assert common.data_home() == tmp_path
    X, y = common.load_data("iris", standardized=True)
    assert np.allclose(X.std(axis=0), 1)
    assert len(y) == 150


# ------------------------------------------------------------------ methods, by the letter


def test_clpp_has_the_graph_of_equation_15(monkeypatch):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(40, 3)) * [5.0, 2.0, 0.1]
    met = []
    monkeypatch.setattr(
        wacquet, "projected", lambda *given, **options: met.append((given, options)) or Labels()
    )
    wacquet.clpp(X, None, 2, 0)
    (Z, *_), options = met[0]
    assert Z.shape == (40, 2)  # 95 % of the variance
    D = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    is_near = np.argsort(np.argsort(D, axis=1), axis=1) <= 10  # the sample itself, and ten others
    W = np.where(is_near | is_near.T, np.exp(-(D**2) / (2 * X.var(axis=0).mean())), 0.0)
    np.fill_diagonal(W, 0.0)
    np.testing.assert_allclose(options["W"].toarray(), W)
    assert options["criterion"] == "paper"


class Labels:
    labels = None


def test_clpp_on_faces_has_local_scales_as_the_other_methods():
    assert dict(faces.methods())["clpp"] is wacquet.clpp_local
    assert dict(wacquet.methods())["clpp"] is wacquet.clpp


# ------------------------------------------------------------------ judges, on made-up tables


def test_wacquet_best_and_second():
    curves = {"ncut": [0.5] * 3, "sl": [0.5, 0.6, 0.7], "signed": [0.5, 0.7, 0.8]}
    curves |= {"cpca": [0.4] * 3, "clpp": [0.3] * 3, "csp": [0.5, np.nan, np.nan]}
    rows = made_up(curves, "accuracy")
    assert outcome(wacquet.best("accuracy"), rows) == {"toy": True}
    assert outcome(wacquet.second("accuracy"), rows) == {"toy": True}
    worse = made_up(curves | {"clpp": [0.9] * 3}, "accuracy")
    assert outcome(wacquet.best("accuracy"), worse) == {"toy": False}
    assert outcome(wacquet.second("accuracy"), worse) == {"toy": False}
    plain = ("ncut", "sl", "signed")
    assert outcome(wacquet.worst("accuracy", plain), rows) == {"toy": True}
    assert outcome(wacquet.worst("accuracy", plain), worse) == {"toy": False}


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([0.5, 0.6, 0.7], True),
        ([0.5, 0.6, 0.59], True),
        ([0.5, 0.6, 0.55], False),
        ([0.5, 0.5, 0.5], False),
        ([0.5, 0.55, 0.49], False),
    ],
)
def test_wacquet_rising_curves(curve, expected):
    rows = made_up({"sl": curve}, "accuracy")
    assert outcome(wacquet.rises("accuracy", "sl"), rows) == {"toy": expected}


def test_wacquet_infeasible_thresholds_and_the_second_vector():
    # At the amount 0 there is no threshold to miss: it does not count.
    rows = made_up({"csp": [0.5, np.nan]}, "accuracy", data="glass", failures=3)
    assert outcome(wacquet.infeasible, rows) == {"glass": True}
    rows[-1]["failures"] = 2
    assert outcome(wacquet.infeasible, rows) == {"glass": False}
    two = made_up({"csp": [0.5], "signed:default": [0.9], "signed": [0.9]}, "accuracy")
    assert outcome(wacquet.infeasible, [row | {"data": "hepatitis"} for row in two]) == {}
    two = [row | {"data": "hepatitis"} for row in two]
    assert outcome(wacquet.second_vector, two) == {"hepatitis": True}
    two[-1]["mean"] = 0.5
    assert outcome(wacquet.second_vector, two) == {"hepatitis": False}
    # It is a claim about the letter: with the default in its place there is nothing to compare.
    assert outcome(wacquet.second_vector, common.by_default(two)) == {}


def test_fcsc_is_run_as_in_equation_30_and_orthogonal():
    run = dict(wacquet.methods())
    assert run["csp"].get_params()["orthogonal"] is False
    assert run["csp"].get_params()["satisfaction"] == 0.5
    assert run["csp:orthogonal"].get_params()["orthogonal"] is True
    curves = {"csp": [0, 0.8], "csp:orthogonal": [0, 0.6]}
    rows = made_up(curves, "accuracy", data="hepatitis")
    assert outcome(wacquet.orthogonality, rows) == {"hepatitis": False}


def test_wacquet_dimensions_are_those_of_the_variance():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(200, 5)) * [10, 10, 10, 0.1, 0.1]
    assert wacquet.principal(X).shape == (200, 3)
    assert wacquet.principal(X * [1, 0, 0, 1, 1]).shape == (
        200,
        2,
    )  # one would do, two is the least


def test_faces():
    curves = {"signed": [0.5, 0.7, 0.75, 0.7], "sl": [0.5, 0.6, 0.6, 0.9], "ncut": [0.5] * 4}
    curves |= {"cpca": [0.4] * 4, "clpp": [0.3] * 4}
    rows = made_up(curves, "accuracy")  # at 0, 2.5, 5 and 7.5 %
    assert outcome(faces.at_low("accuracy"), rows) == {"toy": True}
    assert outcome(faces.best_at_the_end("accuracy"), rows) == {"toy": True}
    assert outcome(faces.below_plain("accuracy"), rows) == {"toy": True}
    rows = made_up(curves | {"signed": [0.5, 0.4, 0.4, 1.0], "cpca": [0.4] * 3 + [0.6]}, "accuracy")
    assert outcome(faces.at_low("accuracy"), rows) == {"toy": False}
    assert outcome(faces.best_at_the_end("accuracy"), rows) == {"toy": False}
    assert outcome(faces.below_plain("accuracy"), rows) == {"toy": False}


def test_xu_curves():
    rows = made_up({"csc": [0, 0.9, 0.8], "sl": [0, 0.8, 0.7], "ccl": [1, 0.7, 0.9]}, "rand_index")
    assert outcome(xu.better_than("sl"), rows) == {"toy": True}
    assert outcome(xu.better_than("ccl"), rows) == {"toy": True}
    assert outcome(xu.at_each_amount, rows) == {"toy, 10 pairs": True, "toy, 20 pairs": False}


def test_xor_eigenvectors_are_those_of_the_chains():
    rng = np.random.RandomState(0)
    A = rng.uniform(size=(12, 12))
    A = A + A.T
    d = A.sum(axis=1)
    chains = {"walk": A / d[:, None], "additive": (A + np.diag(d.max() - d)) / d.max()}
    for chain, P in chains.items():
        v = xor.second_eigenvector(A, chain)
        ratio = (P @ v) / v
        assert np.allclose(ratio, ratio[0])
        assert np.isclose(ratio[0], np.sort(np.linalg.eigvals(P).real)[-2])


def test_xor_judges():
    found = {("xor", "csc", 0, "m"): [9.0, 9.0]}
    for n in range(3):
        for method in ("csc", "csc:gap", "sl"):
            found["xor", method, n, "spread"] = [0.001, 0.2 if method == "sl" else 0.001]
            found["xor", method, n, "piecewise"] = [1.0, float(method != "sl")]
    for method, ari in (("csc", 1.0), ("csc:gap", 0.9), ("sl", 0.4), ("ccl", 1.0)):
        found["xor", method, 2, "adjusted_rand"] = [ari]
        found["xor", method, 2, "sign_ari"] = [1.0]
        found["xor+outlier", method, 2, "singleton"] = [float(method == "sl")]
    rows = xor.table(found, "reduced")
    verdicts = [v.letter[:2] for v in common.judged(xor.CLAIMS, rows)]
    assert verdicts == [(1, 1), (3, 3), (2, 2), (3, 3), (1, 2), (0, 3), (1, 2), (2, 2)]
    found["xor", "csc", 0, "m"] = [8.0, 10.0]  # 9 on average is not 9
    assert outcome(xor.heuristic, xor.table(found, "reduced")) == {"xor": False}


def test_wang_judges():
    def table(data, **curves):
        return made_up(curves, "adjusted_rand", data=data)

    flat = {"ncut": [0.5] * 3, "llgc": [0.2, 0.6, 0.7], "csp": [0.2, 0.6, 0.72]}
    easy = table("iris2", **flat, gfhf=[0.3, 0.6, 0.7], cscgfhf=[0.6, 0.7, 0.8])
    hard = table("glass2", **flat | {"ncut": [0.9] * 3}, gfhf=[0, 0, 0.1], cscgfhf=[0.5, 0.6, 1])
    rows = easy + hard
    assert outcome(wang.competitors_help, rows) == {"iris2": True}
    assert outcome(wang.competitors_fail, rows) == {"glass2": True}
    assert outcome(wang.above_plain("cscgfhf"), rows) == {"iris2": True, "glass2": True}
    few = wang.above_plain("cscgfhf", at="first")
    assert outcome(few, rows) == {"iris2": True, "glass2": False}
    assert outcome(wang.similar("llgc"), rows) == {"iris2": True, "glass2": True}
    assert outcome(wang.similar("gfhf"), rows) == {"iris2": True, "glass2": False}
    # With the most labels 0.72 and 0.8, and 0.72 and 1; with the fewest 0.2 and 0.6, and 0.5.
    near = wang.converged("adjusted_rand", 0.1)
    assert outcome(near, rows) == {"iris2": True, "glass2": False}
    assert outcome(wang.converged("adjusted_rand", 0.05), easy) == {"iris2": False}
    apart = table("iris2", csp=[0.5, 0.5], cscgfhf=[0.5, 0.54])
    assert outcome(near, apart) == {"iris2": False}
    gain = [row | {"metric": wang.GAIN} for row in rows]
    assert outcome(wang.best_gain_with_few, gain) == {"iris2": True, "glass2": True}
    alike = [row | {"data": "hepatitis", "mean": 0.4} for row in gain]
    assert outcome(wang.comparable, alike) == {"hepatitis": True}
    alike[-1]["mean"] = 0.9
    assert outcome(wang.comparable, alike) == {"hepatitis": False}
    assert outcome(wang.best_gain_with_few, alike) == {}


# ------------------------------------------------------------------ from end to end


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    """Run one experiment on iris with one draw and two amounts."""
    out = tmp_path_factory.mktemp("papers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xu, "DATASETS", ("iris",))
        real = xu.learning_curve

        def small(datasets, methods, amounts, **settings):
            return real(datasets, methods, [0, 10], **settings | {"n_draws": 1, "progress": False})

        patch.setattr(xu, "learning_curve", small)
        xu.main(["--out", str(out)])
        before = (out / "xu_fig5_6.reduced.jsonl").read_text()
        xu.main(["--out", str(out)])  # finds all fits done
    return out, before


def test_a_run_writes_its_table_picture_and_verdicts(tiny_run):
    out, _ = tiny_run
    with (out / "xu_fig5_6.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(xu.methods()) * 2
    assert {row["size"] for row in rows} == {"reduced"}
    assert not any("second" in column for column in rows[0])  # times differ from run to run
    # The figures of a verdict are those of the table.
    verdicts = common.judged(xu.CLAIMS, common.read_rows(out / "xu_fig5_6.csv"))
    mean = {(row["method"], row["amount"]): float(row["mean"]) for row in rows}
    expected = f"csc {mean['csc', '10']:.3f}, sl {mean['sl', '10']:.3f}"
    assert expected in verdicts[0].letter.numbers
    run = json.loads((out / "xu_fig5_6.run.json").read_text())
    assert run["size"].startswith("reduced: ")
    assert run["cpu_seconds"] > 0
    assert (out / "xu_fig5_6.png").stat().st_size > 10_000


def test_a_second_run_computes_nothing_again(tiny_run):
    out, before = tiny_run
    assert (out / "xu_fig5_6.reduced.jsonl").read_text() == before
    assert all(json.loads(line) for line in before.splitlines())


def test_the_page_is_written_from_the_tables(tiny_run, tmp_path):
    pytest.importorskip("PIL")
    out, _ = tiny_run
    make_page.main(["--out", str(out), "--results", str(out), "--docs", str(tmp_path)])
    page = (tmp_path / "papers.md").read_text(encoding="utf-8")
    for claim in xu.CLAIMS:
        assert f"| {claim.text} |" in page
    assert "![Figures 5 and 6: Rand index on soybean and iris](images/papers/xu_fig5_6.png)" in page
    assert (tmp_path / "images" / "papers" / "xu_fig5_6.png").stat().st_size < make_page.LARGEST
    assert "Run: python" not in page
    assert "`wang_fig4_5`" in page.splitlines()[-1]  # not run yet
    assert "`CSC(link_weight=1.0, rows='raw')`" in page


def test_run_all_goes_on_after_a_failure(tmp_path, capfd):
    (tmp_path / "bad.py").write_text("raise SystemExit(3)")
    (tmp_path / "good.py").write_text(
        "import sys, pathlib\n"
        "out = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])\n"
        "(out / 'good.run.json').write_text('{\"cpu_seconds\": 7}')\n"
    )
    paths = run_all.experiments(tmp_path)
    assert [path.stem for path in paths] == ["bad", "good"]
    given = common.options("x").parse_args(["--out", str(tmp_path), "--fresh"])
    rows = run_all.run(paths, given)
    assert [row[1] for row in rows] == ["FAILED (3)", "done"]
    assert [row[3] for row in rows] == [0, 7]
    assert "--fresh" in run_all.command(paths[0], given)
    assert "--full" not in run_all.command(paths[0], given)
    run_all.report(rows, given)
    assert "FAILED (3)" in capfd.readouterr().out


def test_a_second_run_is_compared_digit_by_digit(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, last in ((old, 0.5), (new, 0.5)):
        folder.mkdir()
        common.write_csv(folder / "t.csv", made_up({"a": [0.1, last]}, "x"))
    assert run_all.compared("t", new, old) == "every digit the same"
    common.write_csv(new / "t.csv", made_up({"a": [0.1, 0.500001]}, "x"))
    assert run_all.compared("t", new, old) == "1 of 3 lines differ"
    common.write_csv(new / "t.csv", made_up({"a": [0.1]}, "x"))
    assert "differ" in run_all.compared("t", new, old)
    assert run_all.compared("absent", new, old) == "nothing to compare"
