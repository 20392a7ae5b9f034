"""Fu et al. 2011, figures 2 and 3: adjusted Rand index on four UCI and two image sets.

Run: python benchmarks/papers/srcp_fig2_3.py [--full] [--jobs 2]

Random pairs, 20 draws (5 in reduced size), mu = 0.2, graphs of 20 neighbours. The plots of the
paper are not in our copy of the text, so the amounts are ours, in percent of the number of samples;
the only one that it states, 2,400 pairs on the 1,500 images of Corel, is 160 %.

UCI sets: Gaussian weights with sigma = 1, as in the paper. It does not say how features are
scaled, but on Wine and WDBC as they are nearly all weights would underflow. They are scaled to
[-1, 1] here, which hardly changes Ionosphere. To see what depends on that, the same sets are also
run standardised with self-tuning weights ("..., self-tuning").

Image sets: GIST features with self-tuning weights. The paper has SIFT and Gabor words and a
spatial Markov kernel, and for Corel other images. In reduced size a stratified subsample of 1,500
scenes.

AP is `gp`, with a noise of 0.01: the paper gives none. By the letter SRCP adjusts the weights as in
equation 9, SL sets must-links to 1, and SSKK starts from the neighbourhoods of must-links. Our
default of SRCP brings the propagated pairs back to full strength; that of SSKK keeps the best of
three starts (``sskk:ours``).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from common import (
    Claim,
    Means,
    Outcome,
    finish,
    load_data,
    paper_figure,
    parsed,
    pinned,
    raw_path,
    shown,
    tidy,
    wins,
)
from cosc_table2 import subsample

from linkwise import SRCP, SSKK, Affinity, GPAffinity, NCut, SpectralLearning
from linkwise.evaluate import Problem, learning_curve

NAME = "srcp_fig2_3"
PAPER = "Fu et al. 2011: symmetric graph regularized constraint propagation (SRCP)"
TITLE = "Figures 2 and 3: adjusted Rand index"
UCI = ("zoo", "wdbc", "ionosphere", "wine")
IMAGES = ("mit8_gist", "corel15_gist")
METRIC = "adjusted_rand"
RIVALS = ("ncut", "sl", "gp", "sskk")
LABELS = {
    "ncut": "NCuts",
    "sl": "SL",
    "gp": "AP",
    "sskk": "SSKK",
    "sskk:ours": "SSKK, our default",
    "srcp": "SRCP",
    "srcp:default": "SRCP, our default",
}
CONSTRAINED = ("gp", "sl", "sskk")
FALL = 0.02  # how far a curve that rises may fall from one amount to the next
N_NEIGHBORS = 20
OTHER_GRAPH = ", self-tuning"


def methods():
    return [
        ("ncut", NCut()),
        ("sl", SpectralLearning(link_weight=1.0)),
        ("gp", GPAffinity()),
        ("sskk", SSKK(start="neighborhoods")),
        ("sskk:ours", SSKK()),
        ("srcp", SRCP(scale="paper")),
        ("srcp:default", SRCP()),
    ]


def scaled(X):
    """Scale every feature to [-1, 1]; a constant one becomes 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    return (X - middle) / np.where(half > 0, half, 1.0)


def datasets(n_scenes):
    found = {}
    with pinned():
        for name in UCI:
            X, y = load_data(name)
            found[name] = Problem(X, y, W=Affinity(N_NEIGHBORS, scale=1.0).fit_transform(scaled(X)))
        for name in IMAGES:
            X, y = load_data(name)
            kept = subsample(y, n_scenes)
            W = Affinity(N_NEIGHBORS).fit_transform(X[kept])
            found[name] = Problem(X[kept], y[kept], W=W)
        for name in UCI:
            X, y = load_data(name, standardized=True)
            W = Affinity(N_NEIGHBORS).fit_transform(X)
            found[name + OTHER_GRAPH] = Problem(X, y, W=W)
    return found


def of(rows, names):
    return [row for row in rows if row["data"] in names]


def best_on(names):
    """Judge, per data set, whether SRCP is above all others, by the mean over all amounts."""
    return lambda rows: wins(Means(of(rows, names), METRIC), "srcp", RIVALS)


def best_everywhere(names):
    """Judge, per data set and amount, whether SRCP is above all others."""

    def judge(rows):
        means, found = Means(of(rows, names), METRIC), {}
        for data in means.datasets:
            for amount in means.amounts(data)[1:]:
                scores = {m: means.at(data, m, amount) for m in ("srcp", *RIVALS)}
                holds = scores["srcp"] >= np.nanmax([scores[m] for m in RIVALS])
                found[f"{data}, {amount} pairs"] = Outcome(bool(holds), shown(scores))
        return found

    return judge


def clearly_above_baseline(names):
    """Judge whether SRCP is above NCuts by two standard errors, at the largest amount."""

    def judge(rows):
        found = {}
        for data in names:
            lines = [r for r in rows if (r["data"], r["metric"]) == (data, METRIC)]
            most = max(r["amount"] for r in lines)
            ours, base = (
                next(r for r in lines if (r["method"], r["amount"]) == (m, most))
                for m in ("srcp", "ncut")
            )
            half = 2 * np.hypot(*(r["sd"] / np.sqrt(max(r["n"], 1)) for r in (ours, base)))
            figures = f"{ours['mean']:.3f} against {base['mean']:.3f}, margin {half:.3f}"
            found[data] = Outcome(bool(ours["mean"] - base["mean"] > half), figures)
        return found

    return judge


def no_better_than_baseline(places):
    """Judge, per method and data set, whether it stays at NCuts or below over all amounts."""

    def judge(rows):
        means = Means(rows, METRIC)
        levels = {p: (means.level(p[1], p[0]), means.level(p[1], "ncut")) for p in places}
        return {
            f"{LABELS[method]} on {data}": Outcome(own <= base, f"{own:.3f} against {base:.3f}")
            for (method, data), (own, base) in levels.items()
        }

    return judge


def is_rising(curve):
    """Say whether a curve ends above its start by more than FALL, and no step falls by more."""
    return bool((np.diff(curve) >= -FALL).all() and curve[-1] > curve[0] + FALL)


def drawn(curve):
    return ", ".join(f"{value:.3f}" for value in curve)


def rises(names):
    """Judge whether the curve of SRCP rises."""

    def judge(rows):
        means = Means(rows, METRIC)
        curves = {data: means.curve(data, "srcp") for data in names}
        return {data: Outcome(is_rising(c), drawn(c)) for data, c in curves.items()}

    return judge


def unsteady(names):
    """Judge, per other method, whether its curve does not rise on some of the sets."""

    def judge(rows):
        means, found = Means(rows, METRIC), {}
        for method in CONSTRAINED:
            curves = {data: means.curve(data, method) for data in names}
            flat = [data for data, curve in curves.items() if not is_rising(curve)]
            figures = " / ".join(f"{data} {drawn(curve)}" for data, curve in curves.items())
            found[LABELS[method]] = Outcome(bool(flat), figures)
        return found

    return judge


def falls(data, others):
    """Judge, per method, whether it is worse with the most constraints than without any."""

    def judge(rows):
        means = Means(rows, METRIC)
        curves = {method: means.curve(data, method) for method in others}
        return {
            LABELS[method]: Outcome(bool(curve[-1] < curve[0] - FALL), drawn(curve))
            for method, curve in curves.items()
        }

    return judge


def gains_most(names):
    """Judge whether SRCP gains most from no pairs to the largest number."""

    def judge(rows):
        means, found = Means(rows, METRIC), {}
        for data in names:
            gains = {}
            for method in ("srcp", *CONSTRAINED):
                curve = means.curve(data, method)
                gains[method] = float(curve[-1] - curve[0])
            found[data] = Outcome(gains["srcp"] >= max(gains.values()), shown(gains, "+.3f"))
        return found

    return judge


def sometimes_degraded(names):
    """Judge, per method, whether at some amount on some set it is not above NCuts."""

    def judge(rows):
        means, found = Means(rows, METRIC), {}
        for method in CONSTRAINED:
            above = {
                f"{data}, {amount} pairs": means.at(data, method, amount)
                - means.at(data, "ncut", amount)
                for data in names
                for amount in means.amounts(data)[1:]
            }
            worst = min(above, key=above.get)
            figures = f"{above[worst]:+.3f} against NCuts at {worst}"
            found[LABELS[method]] = Outcome(above[worst] <= 0, figures)
        return found

    return judge


STRENGTH = (
    "The ranking of the methods here depends on how strongly they enforce pairs, and equation 9 "
    "does it faintly: a pair keeps about a seventh of its strength at its own place. AP with a "
    "noise of 0.01 satisfies nearly all pairs; with more noise it came down to SRCP in trials. The "
    "paper does not give the noise of AP."
)
PIECES = (
    "With sigma = 1 a tenth of Ionosphere's samples have degrees next to zero, and the cut splits "
    "off a few of them."
)
SCALING = (
    "It depends on the scale of the features, which the paper does not state. On Ionosphere SL "
    "splits off a single sample, with and without pairs."
)
AP_RISES = (
    f"AP dips by no more than {FALL} with few pairs, and then rises far above its start. "
    "SL splits off a single sample on this graph, with and without pairs, and cannot fall."
)
FEATURES = (
    "Other features, and a graph on which the classes hardly show: NCuts is low on Corel, and of "
    "random pairs among 15 classes only one in 15 is a must-link, while cannot-links can only "
    "lower weights that there are. In a trial other values of mu hardly changed it."
)
SELF_TUNING = tuple(name + OTHER_GRAPH for name in UCI)
LEVEL = "Compared is the mean over all amounts above 0."
RISING = f"The last value is above the first by more than {FALL}, and no step falls by more."
CLAIMS = (
    Claim("SRCP is the best on all four UCI sets", best_on(UCI), STRENGTH, LEVEL, headline=True),
    Claim("The same, on self-tuning graphs", best_on(SELF_TUNING), STRENGTH, LEVEL),
    Claim(
        "SRCP is far better than NCuts",
        clearly_above_baseline(UCI),
        f"{PIECES} {STRENGTH}",
        "At the largest amount it is above by more than two standard errors of the difference.",
    ),
    Claim(
        "SL on Zoo, and SSKK on Zoo and Ionosphere, are no better than NCuts",
        no_better_than_baseline((("sl", "zoo"), ("sskk", "zoo"), ("sskk", "ionosphere"))),
        SCALING,
        LEVEL,
    ),
    Claim(
        "SRCP gets better with more constraints on all four UCI sets",
        rises(UCI),
        f"{PIECES} {STRENGTH}",
        RISING,
        headline=True,
    ),
    Claim(
        "AP, SL and SSKK do not get better steadily on all four UCI sets",
        unsteady(UCI),
        "AP rises on all four.",
        f"On some set the curve does not rise. A curve rises if: {RISING[0].lower()}{RISING[1:]}",
    ),
    Claim(
        "On Ionosphere constraints make AP and SL worse",
        falls("ionosphere", ("gp", "sl")),
        AP_RISES,
        f"With the most constraints it is below its value without any by more than {FALL}.",
    ),
    Claim(
        "SRCP is the best on both image sets at every amount",
        best_everywhere(IMAGES),
        FEATURES,
        "At least as high as every other.",
        headline=True,
    ),
    Claim(
        "SRCP gains more from constraints than the others on image sets",
        gains_most(IMAGES),
        FEATURES,
        "Compared is the largest amount minus none.",
    ),
    Claim(
        "AP, SL and SSKK are in some cases not better than NCuts on image sets",
        sometimes_degraded(IMAGES),
        STRENGTH,
        "At some amount on one of the sets the mean is not above that of NCuts.",
    ),
)


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    n_scenes, n_draws = (10**6, 20) if given.full else (1500, 5)
    shares = range(20, 161, 20) if given.full else (40, 80, 160)
    curves = learning_curve(
        datasets(n_scenes),
        methods(),
        [0, *(f"{share}%" for share in shares)],
        n_draws=n_draws,
        metrics=[METRIC],
        path=raw_path(given, NAME),
        n_jobs=given.jobs,
        retry={"failed"},
    )
    rows = tidy(curves, [METRIC], size=given.size)
    figures = {
        "uci": paper_figure(of(rows, UCI), METRIC, labels=LABELS, columns=2),
        "images": paper_figure(of(rows, IMAGES), METRIC, labels=LABELS, columns=2),
    }
    what = f"{n_draws} draws, {len(shares)} amounts up to 160 % of n"
    what += "" if given.full else ", 1,500 of the 2,688 scenes"
    finish(given, NAME, rows, CLAIMS, figures, what=what)


if __name__ == "__main__":
    main()
