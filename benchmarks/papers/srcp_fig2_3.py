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

AP is `gp`. ``srcp:paper`` adjusts the weights exactly as in equation 9, without bringing the
propagated pairs back to full strength as our default does.
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
    tidy,
    wins,
)
from cosc_table2 import subsample

from linkwise import SRCP, Affinity
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
    "srcp": "SRCP",
    "srcp:paper": "SRCP, eq. 9 to the letter",
}
N_NEIGHBORS = 20
OTHER_GRAPH = ", self-tuning"


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
                figures = ", ".join(f"{m} {value:.3f}" for m, value in scores.items())
                holds = scores["srcp"] >= np.nanmax([scores[m] for m in RIVALS])
                found[f"{data}, {amount} pairs"] = Outcome(bool(holds), figures)
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


def rises(names, *, slack=0.02):
    """Judge whether the curve of SRCP rises, and nowhere falls by more than the slack."""

    def judge(rows):
        means = Means(rows, METRIC)
        curves = {data: means.curve(data, "srcp") for data in names}
        return {
            data: Outcome(
                bool((np.diff(curve) >= -slack).all() and curve[-1] > curve[0] + slack),
                ", ".join(f"{value:.3f}" for value in curve),
            )
            for data, curve in curves.items()
        }

    return judge


def falls(data, others):
    """Judge, per method, whether constraints make it worse at some amount than it was without."""

    def judge(rows):
        means = Means(rows, METRIC)
        curves = {method: means.curve(data, method) for method in others}
        return {
            LABELS[method]: Outcome(
                bool(np.nanmin(curve[1:]) < curve[0]), ", ".join(f"{v:.3f}" for v in curve)
            )
            for method, curve in curves.items()
        }

    return judge


def gains_most(names):
    """Judge whether SRCP gains most from no pairs to the largest number."""

    def judge(rows):
        means, found = Means(rows, METRIC), {}
        for data in names:
            gains = {}
            for method in ("srcp", "sl", "gp", "sskk"):
                curve = means.curve(data, method)
                gains[method] = float(curve[-1] - curve[0])
            figures = ", ".join(f"{m} {value:+.3f}" for m, value in gains.items())
            found[data] = Outcome(gains["srcp"] >= max(gains.values()), figures)
        return found

    return judge


def sometimes_degraded(names):
    """Judge, per method, whether at some amount on some set it is not above NCuts."""

    def judge(rows):
        means, found = Means(rows, METRIC), {}
        for method in ("gp", "sl", "sskk"):
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
    "The ranking of the methods here depends on how strongly they enforce pairs. With 160 % and 3 "
    "draws on WDBC, AP "
    "as it is (noise 0.01) violates no pair and has an ARI of 0.995, with noise 10 it violates 3 % "
    "and has 0.921; SRCP violates 6 % and has 0.874 (8 % and 0.824 exactly as in equation 9), "
    "and with hard=True 0.991. The paper does not give the noise of AP."
)
PIECES = (
    "With sigma = 1 a tenth of Ionosphere's samples have degrees below 0.003, where the median is "
    "8, and the cut splits off a few of them (3 of 351 in a draw with 160 %): SRCP violates 45 % "
    "of the pairs with an ARI of 0.01 (3 draws), and with hard=True has 0.97."
)
DIP = "On Zoo the dip of 0.02 is 1.5 standard errors in 5 draws."
SCALING = (
    "It depends on the scale of the features, which the paper does not state. With those of Zoo as "
    "they are and 50 pairs, one draw gave SL 0.734 and NCuts 0.714, without pairs 0.612 and 0.714. "
    "On Ionosphere SL splits off a single sample of degree 0.00003 or less, with and without pairs."
)
FEATURES = (
    "Other features, and a graph on which the classes hardly show: NCuts is low on Corel, and of "
    "random pairs among 15 classes only one in 15 is a must-link, while cannot-links can only "
    "lower weights that there are. With mu 1 or 0.02 instead of 0.2 the ARI on Corel changes by "
    "0.002 at most (one draw of 2,400 pairs)."
)
SELF_TUNING = tuple(name + OTHER_GRAPH for name in UCI)
CLAIMS = (
    Claim("SRCP is the best on all four UCI sets", best_on(UCI), STRENGTH),
    Claim("The same, on self-tuning graphs", best_on(SELF_TUNING), STRENGTH),
    Claim("SRCP is far better than NCuts", clearly_above_baseline(UCI), PIECES),
    Claim(
        "SL on Zoo, and SSKK on Zoo and Ionosphere, are no better than NCuts",
        no_better_than_baseline((("sl", "zoo"), ("sskk", "zoo"), ("sskk", "ionosphere"))),
        SCALING,
    ),
    Claim(
        "SRCP gets better with more constraints on all four UCI sets", rises(UCI), f"{PIECES} {DIP}"
    ),
    Claim(
        "On Ionosphere constraints make AP and SL worse", falls("ionosphere", ("gp", "sl")), SCALING
    ),
    Claim("SRCP is the best on both image sets at every amount", best_everywhere(IMAGES), FEATURES),
    Claim(
        "SRCP gains more from constraints than the others on image sets",
        gains_most(IMAGES),
        FEATURES,
    ),
    Claim(
        "AP, SL and SSKK are in some cases not better than NCuts on image sets",
        sometimes_degraded(IMAGES),
        STRENGTH,
    ),
)


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    n_scenes, n_draws = (10**6, 20) if given.full else (1500, 5)
    shares = range(20, 161, 20) if given.full else (40, 80, 160)
    curves = learning_curve(
        datasets(n_scenes),
        [*RIVALS, "srcp", ("srcp:paper", SRCP(scale="paper"))],
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
