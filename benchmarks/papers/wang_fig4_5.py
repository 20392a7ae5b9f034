"""Wang et al. (labels vs. pairwise constraints), figures 4 and 5: labels on six two-class sets.

Run: python benchmarks/papers/wang_fig4_5.py [--full] [--jobs 2]

Adjusted Rand index, and the share of draws that beat spectral clustering without labels, for 5 to
50 % labels, 100 draws. In reduced size there are 10 draws, 4 amounts, and a sample of 285 (every
second one) of the 569 of WDBC.

What the paper leaves open, and what was taken:

* **Wine.** The text leaves out class 3 (130 samples, taken here), the table counts 119.
* **The graph** is a full Gaussian one of unknown sigma. The paper reports that GFHF, LLGC and CSC
  do not improve on spectral clustering on wine, glass and breast cancer, even with many labels.
  Tried were raw and standardised features with sigma^2 = mean variance, total variance, squared
  median distance, and local scales. Nearest to the report come raw features with a wide sigma
  (median distance, taken here, or total variance): all samples are near, and labels hardly
  propagate. Standardised ones with the median distance behave so on wine and breast cancer, not on
  glass. With sigma^2 = mean variance and with local scales GFHF and LLGC are above the plain cut
  on all six sets with 50 % labels, and GFHF is above CSC+GFHF.
* **CSC** is algorithm 3: the key `csp`, at half of the largest satisfaction, and without the
  condition of orthogonality that equation 7 has and the algorithm lacks. It matters: orthogonal to
  the constant vector (``csp:ours``), all samples without a label get the sign of the minority on
  such a graph.
* **CSC+GFHF**: sigma of its kernel is 1 (labels are -1 and 1); the default is 0.5. With 0.25 it
  fails on iris and wine.

These settings were chosen after looking at results, so the verdicts are favourable to the paper: of
7 graphs, 3 values of sigma of the kernel, and CSC with 3 thresholds, with and without orthogonality
(2 to 4 draws each, scored against the true classes), the ones were taken that come nearest to what
the paper describes. They say that its claims can be had, not that they hold on graphs chosen
otherwise. On standardised features with local scales and sigma 0.5, which would have been taken
without looking, CSC+GFHF was above GFHF, LLGC and CSC (orthogonal) on two of the six sets (iris and
wine; 4 draws, 2 of WDBC). The draws of this run are others than those of the choice; the data are
the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

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
    shown,
    tidy,
    wins,
)

from linkwise import CSCGFHF, CSP, GFHF, LLGC, Affinity, NCut
from linkwise.evaluate import Problem, learning_curve

NAME = "wang_fig4_5"
PAPER = "Wang et al.: labels and pairwise constraints (CSC+GFHF)"
TITLE = "Figures 4 and 5: adjusted Rand index and stability with 5 to 50 % labels"
DATASETS = ("hepatitis", "iris2", "wine2", "glass2", "ionosphere", "wdbc")
HARD_ONES = ("wine2", "glass2", "wdbc")  # where the paper's competitors fail
COMPARABLE = "hepatitis"  # where the paper's four methods help alike
SEED = 1  # the settings were chosen on draws of the seed 0
METRIC = "adjusted_rand"
GAIN = "positive_gain"
RIVALS = ("gfhf", "llgc", "csp")
SIMILAR = 0.05  # mean difference of two adjusted Rand indices that are called similar
NEAR_SHARE = 0.1  # difference of two shares of draws that are called comparable
LABELS = {
    "ncut": "Spectral",
    "gfhf": "GFHF",
    "llgc": "LLGC",
    "csp": "CSC",
    "csp:ours": "CSC, our default",
    "cscgfhf": "CSC+GFHF",
    "cscgfhf:default": "CSC+GFHF, our default",
}


def methods():
    return [
        ("ncut", NCut()),
        ("gfhf", GFHF()),
        ("llgc", LLGC(alpha=0.5)),
        ("csp", CSP(satisfaction=0.5, orthogonal=False)),
        ("csp:ours", CSP()),
        ("cscgfhf", CSCGFHF(sigma=1.0)),
        ("cscgfhf:default", CSCGFHF()),
    ]


def problem(name, *, full):
    X, y = load_data(name)
    if name == "wdbc" and not full:
        X, y = X[::2], y[::2]
    W = Affinity(None, scale=float(np.median(pdist(X)))).fit_transform(X)
    return Problem(X, y, W=W)


def gains(curves, size):
    """Return tidy rows of the share of draws with a positive gain over spectral clustering."""
    n_samples = {row["data"]: row["n_samples"] for row in curves.rows}
    return [
        {
            "size": size,
            "data": line["data"],
            "n_samples": n_samples[line["data"]],
            "method": line["method"],
            "amount": line["amount"],
            "share": round(100 * line["amount"] / n_samples[line["data"]], 4),
            "metric": GAIN,
            "n_draws": line["n_draws"],
            "n": line["n"],
            "mean": line["share"],
            "sd": float(np.sqrt(line["share"] * (1 - line["share"]))),
            "failures": line["n_draws"] - line["n"],
            "problems": "",
        }
        for line in curves.stability(METRIC, baseline="ncut")
    ]


def above_plain(method, *, at="last"):
    """Judge whether a method is above spectral clustering, with the fewest or the most labels."""

    def judge(rows):
        means, found = Means(rows, METRIC), {}
        for data in means.datasets:
            amount = means.amounts(data)[-1 if at == "last" else 0]
            mine, plain = (means.at(data, m, amount) for m in (method, "ncut"))
            found[data] = Outcome(mine > plain, f"{mine:.3f} against {plain:.3f}")
        return found

    return judge


def competitors_fail(rows):
    """Judge whether GFHF, LLGC and CSC are not above spectral clustering on three sets."""
    means, found = Means(rows, METRIC), {}
    for data in [name for name in means.datasets if name in HARD_ONES]:
        level = {m: means.level(data, m) for m in (*RIVALS, "ncut")}
        holds = max(level[m] for m in RIVALS) <= level["ncut"]
        found[data] = Outcome(holds, shown(level))
    return found


def competitors_help(rows):
    """Judge whether GFHF, LLGC and CSC are above spectral clustering on the other three sets."""
    means, found = Means(rows, METRIC), {}
    for data in [name for name in means.datasets if name not in HARD_ONES]:
        level = {m: means.level(data, m) for m in (*RIVALS, "ncut")}
        holds = min(level[m] for m in RIVALS) > level["ncut"]
        found[data] = Outcome(holds, shown(level))
    return found


def similar(other):
    """Judge whether CSC and another method differ by less than SIMILAR on average."""

    def judge(rows):
        means, found = Means(rows, METRIC), {}
        for data in means.datasets:
            gap = np.abs(means.curve(data, "csp") - means.curve(data, other)).mean()
            found[data] = Outcome(bool(gap < SIMILAR), f"mean difference {gap:.3f}")
        return found

    return judge


def converged(metric, within):
    """Judge whether CSC and CSC+GFHF come together as labels are added.

    With the most labels they differ by at most `within`, and by no more than with the fewest.
    """

    def judge(rows):
        means, found = Means(rows, metric), {}
        for data in means.datasets:
            gaps = np.abs(means.curve(data, "csp") - means.curve(data, "cscgfhf"))
            holds = gaps[-1] <= min(within, gaps[0]) + 1e-9
            found[data] = Outcome(bool(holds), "differences " + " ".join(f"{g:.3f}" for g in gaps))
        return found

    return judge


def without(rows, name):
    return [row for row in rows if row["data"] != name]


def comparable(rows):
    """Judge whether the shares of gains of all four are near each other on one set."""
    means = Means(rows, GAIN)
    if COMPARABLE not in means.datasets:
        return {}
    level = {m: means.level(COMPARABLE, m) for m in ("cscgfhf", *RIVALS)}
    near = max(level.values()) - min(level.values()) <= NEAR_SHARE
    return {COMPARABLE: Outcome(near, shown(level))}


def best_gain_with_few(rows):
    """Judge whether CSC+GFHF has the largest share of gains with the fewest labels."""
    means, found = Means(without(rows, COMPARABLE), GAIN), {}
    for data in means.datasets:
        first = means.amounts(data)[0]
        share = {m: means.at(data, m, first) for m in ("cscgfhf", *RIVALS)}
        holds = share["cscgfhf"] >= max(share[m] for m in RIVALS)
        found[data] = Outcome(holds, shown(share, ".0%"))
    return found


COUNTED = (
    "The index counts the labelled samples too. With half of the labels GFHF and LLGC, which keep "
    "them, are above any plain cut that is not very good; the paper's may have been better."
)
GRAPH = (
    "It depends on the graph, which the paper does not give. On raw features with a wide sigma "
    "(this run) it is nearly so; with local scales or 10 neighbours GFHF is above CSC+GFHF with "
    "half of the labels (docs/methods/cscgfhf.md has a table)."
)
FEW = (
    "With 5 % labels (4 of hepatitis) some draws lack a class altogether, and propagation gives "
    "all samples one label."
)
MAJORITY = (
    "On a graph in which all samples are near, GFHF gives nearly all of them the more frequent "
    "label while labels are few."
)
DENSE = (
    "CSC+GFHF turns the labels into a dense matrix of all samples, CSC uses the pairs of labelled "
    "ones alone. On these graphs both gain by labels, and not the same."
)
LEVEL = "Compared is the mean over all amounts."
CONVERGED = "With 50 % labels the two differ by at most {}, and by no more than with 5 %."
CLAIMS = (
    Claim(
        "GFHF, LLGC and CSC improve on spectral clustering on hepatitis, iris and ionosphere",
        competitors_help,
        FEW,
        f"{LEVEL} All three have to be above.",
    ),
    Claim(
        "They do not on wine, glass and breast cancer",
        competitors_fail,
        COUNTED,
        f"{LEVEL} None of the three may be above.",
    ),
    Claim(
        "CSC+GFHF improves on spectral clustering with 50 % labels",
        above_plain("cscgfhf"),
        rule="The mean is above.",
    ),
    Claim(
        "CSC+GFHF improves on spectral clustering with few labels (5 %)",
        above_plain("cscgfhf", at="first"),
        FEW,
        "The mean is above.",
        headline=True,
    ),
    Claim(
        "CSC+GFHF is above GFHF, LLGC and CSC",
        lambda rows: wins(Means(rows, METRIC), "cscgfhf", RIVALS),
        GRAPH,
        LEVEL,
        headline=True,
    ),
    Claim(
        "On all sets but hepatitis CSC+GFHF helps in more draws than GFHF, LLGC and CSC",
        lambda rows: wins(Means(without(rows, COMPARABLE), GAIN), "cscgfhf", RIVALS),
        GRAPH,
        LEVEL,
        headline=True,
    ),
    Claim(
        "On hepatitis all four help in about as many draws",
        comparable,
        FEW,
        f"{LEVEL} The shares of draws differ by at most {NEAR_SHARE}.",
    ),
    Claim(
        "It does so especially with few labels (5 %)",
        best_gain_with_few,
        GRAPH,
        "With the fewest labels no other method helps in more draws.",
    ),
    Claim(
        "CSC and LLGC give very similar results",
        similar("llgc"),
        MAJORITY,
        f"The difference, averaged over the amounts, is below {SIMILAR}.",
    ),
    Claim(
        "CSC and GFHF give similar results",
        similar("gfhf"),
        MAJORITY,
        f"The difference, averaged over the amounts, is below {SIMILAR}.",
    ),
    Claim(
        "With more labels CSC and CSC+GFHF converge (adjusted Rand index)",
        converged(METRIC, SIMILAR),
        DENSE,
        CONVERGED.format(SIMILAR),
    ),
    Claim(
        "With more labels CSC and CSC+GFHF converge (share of draws that gain)",
        converged(GAIN, NEAR_SHARE),
        DENSE,
        CONVERGED.format(NEAR_SHARE),
    ),
)


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    shares, n_draws = (range(5, 51, 5), 100) if given.full else ((5, 15, 30, 50), 10)
    curves = learning_curve(
        {name: problem(name, full=given.full) for name in DATASETS},
        methods(),
        [f"{share}%" for share in shares],
        kind="labels",
        n_draws=n_draws,
        random_state=SEED,
        metrics=[METRIC],
        path=raw_path(given, NAME),
        n_jobs=given.jobs,
    )
    rows = tidy(curves, [METRIC], size=given.size) + gains(curves, given.size)
    figures = {
        name: paper_figure(rows, metric, labels=LABELS, x_label="number of labels", y_label=label)
        for name, metric, label in (
            ("rand", METRIC, "adjusted Rand"),
            ("gain", GAIN, "share of draws with a gain"),
        )
    }
    what = f"{n_draws} draws, {len(list(shares))} amounts from 5 to 50 % labels"
    what += "" if given.full else ", half of WDBC"
    finish(given, NAME, rows, CLAIMS, figures, what=what)


if __name__ == "__main__":
    main()
