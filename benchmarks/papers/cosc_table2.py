"""Rangapuram & Hein 2012, table 2: error, cut and violated constraints with two classes.

Run: python benchmarks/papers/cosc_table2.py [--full] [--jobs 2]

Sonar, Spam, and digit 0 of USPS against the other digits. Random pairs, 10 draws (3 in reduced
size). The plots of the paper are not in our copy of the text, so the amounts are ours, in percent
of the number of samples. In reduced size Spam and USPS are stratified subsamples of 1,500.

The graph is that of Buehler & Hein (2009), to which the paper refers: 10 nearest neighbours, and
the larger of exp(-4 d^2 / s_i^2) and exp(-4 d^2 / s_j^2), where s is the distance to the 10th
neighbour; components are joined by their shortest links. (The formula could not be checked against
the text of that paper.) It matters: on Sonar the default graph of linkwise, with exp(-d^2 / (s_i
s_j)), has heavier edges between the classes, and is run as well ("..., default graph"). Features
are as they are, those of Spam standardised: the paper does not say, and two columns of counts
would outweigh the 55 others.

By the letter COSC is the best of ten starts without local search, CSP solves the full eigenproblem
at half of the largest satisfaction, without orthogonality and with rows as they are, CCSR is the
criterion of its paper, and SCLC is rounded by sign. Our default of COSC refines partitions by moves
that keep every pair; CSP is orthogonal to the constant vector and takes a feasible threshold, CCSR
has a ridge, and SCLC takes the best threshold that satisfies the pairs (``csp:ours``, ...).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.model_selection import train_test_split
from sklearn.neighbors import kneighbors_graph

sys.path.insert(0, str(Path(__file__).parent))
from common import (
    Claim,
    Means,
    Outcome,
    _draw_panel,
    all_ours,
    finish,
    levels,
    load_data,
    parsed,
    pinned,
    raw_path,
    shown,
    tidy,
)

from linkwise import CCSR, COSC, CSP, SCLC, Affinity, SpectralLearning
from linkwise.evaluate import Problem, learning_curve

NAME = "cosc_table2"
PAPER = "Rangapuram & Hein 2012: constrained 1-spectral clustering (COSC)"
TITLE = "Table 2: two classes"
DATASETS = ("sonar", "spam", "usps0")
UNBALANCED = ("spam", "usps0")
OTHER = "sonar, default graph"
ERROR, CUT, VIOLATED = "clustering_error", "ncut", "violated_share"
METRICS = (ERROR, CUT, VIOLATED)
RIVALS = ("sl", "csp", "ccsr", "sclc")
LABELS = {
    "sl": "SL",
    "csp": "CSP",
    "csp:ours": "CSP, our default",
    "ccsr": "CCSR",
    "ccsr:ours": "CCSR, our default",
    "sclc": "SCLC",
    "sclc:ours": "SCLC, our default",
    "cosc": "COSC",
    "cosc:default": "COSC, our default",
}
TIE = 1e-6  # relative: equal cuts differ by rounding


def methods():
    return [
        ("sl", SpectralLearning()),
        ("csp", CSP(satisfaction=0.5, orthogonal=False, rows="raw", solver="dense")),
        ("csp:ours", CSP()),
        ("ccsr", CCSR(ridge=0.0)),
        ("ccsr:ours", CCSR()),
        ("sclc", SCLC(rounding="sign")),
        ("sclc:ours", SCLC()),
        ("cosc", COSC(refine=False)),
        ("cosc:default", COSC()),
    ]


def subsample(y, n_samples):
    """Return the indices of a stratified subsample, the same in every run."""
    if n_samples >= y.size:
        return np.arange(y.size)
    kept, _ = train_test_split(np.arange(y.size), train_size=n_samples, stratify=y, random_state=0)
    return np.sort(kept)


class Once:
    """A neighbour search whose answer is kept, without the samples themselves."""

    def __init__(self, search):
        self.search, self.found = search, None

    def fit_transform(self, X, y=None):
        """Search, or return what was found."""
        if self.found is None:
            self.found = csr_array(self.search.fit_transform(X))
            rows = np.repeat(np.arange(len(X)), np.diff(self.found.indptr))
            others = self.found.indices != rows
            found = self.found.data[others], (rows[others], self.found.indices[others])
            self.found = csr_array(found, shape=self.found.shape)
        return self.found


def paper_graph(X, n_neighbors=10, *, search=None):
    """Return the graph of Buehler & Hein (2009), joined where it falls apart.

    All pairs are compared, unless `search` is a neighbour transformer.
    """
    once = search and Once(search)
    found = once.fit_transform(X) if once else kneighbors_graph(X, n_neighbors, mode="distance")
    distances = csr_array(found)
    counts = np.diff(distances.indptr)
    scale = np.maximum.reduceat(distances.data, distances.indptr[:-1])
    scale = np.where(scale > 0, scale, scale[scale > 0].min())
    similarity = np.exp(-4 * (distances.data / np.repeat(scale, counts)) ** 2)
    W = csr_array((similarity, distances.indices, distances.indptr), shape=distances.shape)
    W = W.maximum(W.T)
    # The same neighbours, and the links between the components.
    joined = Affinity(once or n_neighbors).fit_transform(X)
    return csr_array(W + joined - joined.multiply(W > 0))


def datasets(n_samples):
    found = {}
    with pinned():
        for name in DATASETS:
            X, y = load_data(name, standardized=name == "spam")
            kept = subsample(y, n_samples)
            found[name] = Problem(X[kept], y[kept], W=paper_graph(X[kept]))
        X, y = load_data("sonar")
        found[OTHER] = Problem(X, y, W=Affinity().fit_transform(X))
    return found


def on(names, judge):
    """Judge on some of the data sets."""
    return lambda rows: judge([row for row in rows if row["data"] in names])


# ------------------------------------------------------------------ verdicts, also for table 3


def satisfies_all(method):
    """Judge, per data set, whether no draw at any amount violates a constraint."""

    def judge(rows):
        means, found = Means(rows, VIOLATED), {}
        failures = {(r["data"], r["amount"]): r["failures"] for r in rows if r["method"] == method}
        for data in means.datasets:
            worst = max(means.curve(data, method, above=0), default=np.nan)
            failed = sum(n for place, n in failures.items() if place[0] == data)
            figures = f"violated share at most {worst:.2g}"
            figures += f", {failed} fits without an answer" if failed else ""
            found[data] = Outcome(worst == 0 and not failed, figures)
        return found

    return judge


def others_violate(others):
    """Judge, per method, whether it violates constraints on every data set."""

    def judge(rows):
        means, found = Means(rows, VIOLATED), {}
        for method in [m for m in others if m in means.methods]:
            level = {data: means.level(data, method) for data in means.datasets}
            level = {data: value for data, value in level.items() if not np.isnan(value)}
            found[LABELS[method]] = Outcome(all(v > 0 for v in level.values()), shown(level))
        return found

    return judge


def lower_cut_than(other):
    """Judge, per data set and amount, whether the mean cut of COSC is below another one."""

    def judge(rows):
        means, found = Means(rows, CUT), {}
        for data in means.datasets:
            for amount in means.amounts(data):
                ours, theirs = (means.at(data, method, amount) for method in ("cosc", other))
                holds = ours < theirs * (1 - TIE)
                found[f"{data}, {amount} pairs"] = Outcome(
                    holds, f"{ours:.3f} against {theirs:.3f}"
                )
        return found

    return judge


def lowest_error(others):
    """Judge, per data set and amount, whether no other method has a lower mean error."""

    def judge(rows):
        means, found = Means(rows, ERROR), {}
        for data in means.datasets:
            for amount in means.amounts(data):
                errors = {m: means.at(data, m, amount) for m in ("cosc", *others)}
                errors = {m: value for m, value in errors.items() if not np.isnan(value)}
                rival = min((m for m in errors if m != "cosc"), key=errors.get)
                holds = "cosc" in errors and errors["cosc"] <= errors[rival] + TIE
                figures = (
                    f"{errors.get('cosc', np.nan):.3f}, best other {rival} {errors[rival]:.3f}"
                )
                found[f"{data}, {amount} pairs"] = Outcome(holds, figures)
        return found

    return judge


def lowest_error_level(others):
    """Judge the same by the mean over all amounts, per data set."""

    def judge(rows):
        means, found = Means(rows, ERROR), {}
        for data in means.datasets:
            level = levels(means, data, ("cosc", *others))
            rivals = [value for m, value in level.items() if m != "cosc"]
            holds = "cosc" in level and level["cosc"] <= min(rivals) + TIE
            found[data] = Outcome(holds, shown(level))
        return found

    return judge


def clearly_below(other, data_names):
    """Judge whether cut and error are below by more than two standard errors, at most amounts."""

    def judge(rows):
        place = {(r["data"], r["method"], r["amount"], r["metric"]): r for r in rows}
        found = {}
        for data in data_names:
            for metric in (CUT, ERROR):
                amounts = Means(rows, metric).amounts(data)
                clear = 0
                for amount in amounts:
                    a, b = (place[data, m, amount, metric] for m in ("cosc", other))
                    half = 2 * np.hypot(*(r["sd"] / np.sqrt(max(r["n"], 1)) for r in (a, b)))
                    clear += bool(b["mean"] - a["mean"] > half)
                figures = f"clearly below at {clear} of {len(amounts)} amounts"
                found[f"{data}, {metric}"] = Outcome(2 * clear > len(amounts), figures)
        return found

    return judge


FEW = (
    "With few pairs the lowest cut is far from the classes: the true ones have a higher normalised "
    "cut on Sonar and on Spam, and COSC satisfies all pairs with less."
)
GRAPH = (
    "The graph is the reason: the normalised cut of the true classes is about twice as high on the "
    "default graph as on that of the paper, and far lower cuts exist on both."
)
SIGNIFICANT = (
    "Below by more than two standard errors of the difference, at more than half of the amounts."
)
LEVEL = "Compared is the mean over all amounts."
CLAIMS = (
    Claim(
        "COSC satisfies all constraints",
        on(DATASETS, satisfies_all("cosc")),
        rule="The violated share is 0 in every draw.",
        headline=True,
    ),
    Claim(
        "So does SCLC, although it does not guarantee it",
        on(DATASETS, satisfies_all("sclc")),
        "A sample may be next to zero, where the sign is rounding.",
        "The violated share is 0 in every draw.",
    ),
    Claim(
        "The other methods violate constraints",
        on(DATASETS, others_violate(("sl", "csp", "ccsr"))),
        rule="Each of them violates some on every set.",
    ),
    Claim(
        "The cuts of COSC are always below those of SCLC",
        on(DATASETS, lower_cut_than("sclc")),
        "All ten starts of the letter may miss a cut that SCLC finds; local search from them does "
        "not.",
        "The means at every amount.",
        headline=True,
    ),
    Claim(
        "The error of COSC is below that of all others, at every amount",
        on(DATASETS, lowest_error(RIVALS)),
        FEW,
        "No other mean is lower.",
        headline=True,
    ),
    Claim(
        "The same for the mean over all amounts",
        on(DATASETS, lowest_error_level(RIVALS)),
        FEW,
        LEVEL,
    ),
    Claim(
        "(ours) The same with all methods by our defaults",
        on(DATASETS, lambda rows: lowest_error_level(RIVALS)(all_ours(rows))),
        FEW,
        LEVEL,
    ),
    Claim(
        "(ours) The same on Sonar with the default graph of linkwise",
        on((OTHER,), lowest_error_level(RIVALS)),
        GRAPH,
        LEVEL,
    ),
    Claim(
        "On the unbalanced sets COSC has significantly lower cuts and errors than SCLC",
        clearly_below("sclc", UNBALANCED),
        "SCLC varies much on Spam: in some draws it misses the classes.",
        SIGNIFICANT,
    ),
)


def grid_figure(rows, metrics, labels):
    """Draw a row of panels per data set, a column per metric, as the tables of the paper."""
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(row["data"] for row in rows))
    shape = len(sets), len(metrics)
    size = (3.7 * shape[1], 2.6 * shape[0] + 0.6)
    figure = Figure(figsize=size, dpi=100, layout="constrained")
    axes, handles = figure.subplots(*shape, squeeze=False), {}
    for i, data in enumerate(sets):
        for j, (metric, what) in enumerate(metrics.items()):
            ax = axes[i, j]
            chosen = [r for r in rows if (r["data"], r["metric"]) == (data, metric)]
            _draw_panel(ax, chosen, "amount", handles)
            ax.set_title(f"{data}: {what}", fontsize=10)
            ax.set_xlabel("number of constraints", fontsize=9)
            ax.tick_params(labelsize=8)
            ax.grid(alpha=0.25, linewidth=0.6)
    names = [labels.get(method, method) for method in handles]
    place = {"loc": "outside lower center", "ncols": 6, "frameon": False, "fontsize": 9}
    figure.legend(handles.values(), names, **place)
    return figure


COLUMNS = {ERROR: "clustering error", CUT: "normalised cut", VIOLATED: "violated share"}


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    n_samples, n_draws = (10**6, 10) if given.full else (1500, 3)
    amounts = [f"{share}%" for share in ((2, 5, 10, 15, 20, 30, 40) if given.full else (5, 20, 40))]
    curves = learning_curve(
        datasets(n_samples),
        methods(),
        amounts,
        n_draws=n_draws,
        metrics=METRICS,
        path=raw_path(given, NAME),
        n_jobs=given.jobs,
        retry={"failed"},
    )
    rows = tidy(curves, METRICS, size=given.size)
    what = f"{n_draws} draws, {len(amounts)} amounts from {amounts[0]} to {amounts[-1]} of n"
    what += "" if given.full else ", at most 1,500 samples"
    figure = grid_figure(rows, COLUMNS, LABELS)
    finish(given, NAME, rows, CLAIMS, {"": figure}, what=what)


if __name__ == "__main__":
    main()
