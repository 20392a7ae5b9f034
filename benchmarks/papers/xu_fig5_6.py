"""Xu et al. 2005, figures 5 and 6: Rand index of CSC, KKM and CCL on soybean and iris.

Run: python benchmarks/papers/xu_fig5_6.py [--full] [--jobs 2]

Full Gaussian graph with the paper's heuristic for sigma, features as they are, random pairs, the
mean over 100 draws (20 in reduced size). CSC takes the rows of the eigenvectors as they are, and
CCL merges across cannot-links where it has to, as the papers do. The figures are not in the text
that is at hand, so the amounts are ours: 0 to 100 pairs.

Soybean is UCI's small set of 47 samples; the paper does not say which one it took.

Dashed: CSC on rows of unit length, the same with m = 10 neighbours instead of the heuristic's
number, and CCL with our repair of cannot-links.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import (
    Claim,
    Means,
    Outcome,
    finish,
    load_data,
    paper_figure,
    parsed,
    raw_path,
    tidy,
    wins,
)

from linkwise import CCL, CSC, Affinity, SpectralLearning
from linkwise.evaluate import learning_curve

NAME = "xu_fig5_6"
PAPER = "Xu et al. 2005: local proximity (CSC)"
TITLE = "Figures 5 and 6: Rand index on soybean and iris"
DATASETS = ("soybean_small", "iris")
METRIC = "rand_index"
LABELS = {
    "csc": "CSC",
    "csc:unit": "CSC, unit rows",
    "csc:m10": "CSC, unit rows, m = 10",
    "sl": "KKM",
    "ccl": "CCL",
    "ccl:sound": "CCL, repaired",
}


def methods():
    return [
        ("csc", CSC(rows="raw", link_weight=1.0)),
        ("csc:unit", CSC(link_weight=1.0)),
        ("csc:m10", CSC(affinity=Affinity(None, scale="xu", m=10), link_weight=1.0)),
        ("sl", SpectralLearning(link_weight=1.0)),
        ("ccl", CCL(merging="paper")),
        ("ccl:sound", CCL()),
    ]


def better_than(other):
    """Judge whether CSC is above another method, by the mean over all amounts above 0."""
    return lambda rows: wins(Means(rows, METRIC), "csc", [other])


def with_ten_neighbours(rows):
    """Judge whether CSC with m = 10 and unit rows is above KKM and CCL."""
    return wins(Means(rows, METRIC), "csc:m10", ["sl", "ccl"])


def at_each_amount(rows):
    """Judge whether CSC is above both at every single amount above 0."""
    means, found = Means(rows, METRIC), {}
    for data in means.datasets:
        for amount in means.amounts(data)[1:]:
            scores = {m: means.at(data, m, amount) for m in ("csc", "sl", "ccl")}
            figures = ", ".join(f"{m} {value:.3f}" for m, value in scores.items())
            holds = scores["csc"] >= max(scores["sl"], scores["ccl"])
            found[f"{data}, {amount} pairs"] = Outcome(holds, figures)
    return found


DROWNED = (
    "On iris the largest gap is that from the 99 others to setosa, so the heuristic gives m = 99 "
    "and a sigma by which all samples are near: 100 pairs change nothing. With m = 8 and rows of "
    "unit length the index is 0.89, 0.93 and 0.96 for 10, 50 and 100 pairs (6 draws); with m of 20 "
    "or more it stays below 0.92. On soybean (m = 9) CSC and CCL are equal within 0.013."
)
CLAIMS = (
    Claim("CSC has a higher Rand index than KKM", better_than("sl")),
    Claim("CSC has a higher Rand index than CCL", better_than("ccl"), DROWNED),
    Claim("CSC is above KKM and CCL at every amount", at_each_amount, DROWNED),
    Claim(
        "(Not in the paper.) With m = 10 and rows of unit length CSC is above KKM and CCL",
        with_ten_neighbours,
    ),
)


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    amounts, n_draws = (range(0, 101, 10), 100) if given.full else ((0, 10, 25, 50, 100), 20)
    curves = learning_curve(
        {name: load_data(name) for name in DATASETS},
        methods(),
        amounts,
        n_draws=n_draws,
        metrics=[METRIC],
        affinity=Affinity(None, scale="xu"),
        path=raw_path(given, NAME),
        n_jobs=given.jobs,
    )
    rows = tidy(curves, [METRIC], size=given.size)
    figure = paper_figure(rows, METRIC, labels=LABELS, x_label="number of pairs", columns=2)
    what = f"{n_draws} draws, {len(list(amounts))} amounts from 0 to 100 pairs"
    finish(given, NAME, rows, CLAIMS, {"": figure}, what=what)


if __name__ == "__main__":
    main()
