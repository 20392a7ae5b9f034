"""Rangapuram & Hein 2012, section 6: SCLC and clusters of equal volume.

Run: python benchmarks/papers/cosc_volume.py [--full]

The paper says so of the equation f_p = -f_q by which SCLC encodes a cannot-link, and that it can
be observed in the experiments; it shows cuts and errors, not volumes. Here the volume of the
smaller cluster, as a share of all, is measured on the unbalanced sets of table 2 (Spam, and digit
0 of USPS; graphs and draws as there) and on two overlapping Gaussians in the plane of 100 and 900
samples (a new sample in each draw, the default graph of linkwise). Half would be equal volume. It
is compared with the share of the smaller class, and with that of COSC under the same pairs. SCLC
is also run with cannot-links alone and with must-links alone, as many as random pairs in all.

SCLC is rounded by sign, as by the letter. 3 draws (10 with --full), at most 1,500 samples.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from common import Claim, Means, Outcome, finish, load_data, parsed, pinned, shown, tidy_row
from cosc_table2 import UNBALANCED, paper_graph, subsample

from linkwise import COSC, SCLC, Affinity, Constraints
from linkwise.evaluate import draw_constraints

NAME = "cosc_volume"
PAPER = "Rangapuram & Hein 2012: constrained 1-spectral clustering (COSC)"
TITLE = "Section 6: the volumes of SCLC"
GAUSSIANS = "gaussians"
SHARES = (0.05, 0.2, 0.4)  # pairs, of the number of samples
METRIC = "smaller_volume"
CLEAR = 0.02  # of the volume: what counts as a difference


def methods():
    return [
        ("sclc", SCLC(rounding="sign")),
        ("sclc:ours", SCLC()),
        ("cosc", COSC(refine=False)),
        ("cosc:default", COSC()),
    ]


def two_gaussians(seed):
    """Return 100 samples in the plane beside 900, which overlap."""
    y = np.repeat([0, 1], [100, 900])
    X = np.random.RandomState(seed).normal(size=(y.size, 2)) + 3.0 * y[:, None] * [1, 0]
    return X, y


def problems(n_samples, n_draws):
    """Return name, draw, graph and classes of every problem."""
    for name in UNBALANCED:
        X, y = load_data(name, standardized=name == "spam")
        kept = subsample(y, n_samples)
        W = paper_graph(X[kept])
        yield from ((name, draw, W, y[kept]) for draw in range(n_draws))
    for draw in range(n_draws):
        X, y = two_gaussians(draw)
        yield GAUSSIANS, draw, Affinity().fit_transform(X), y


def smaller_volume(W, labels):
    """Return the share of the volume in the smaller of two clusters."""
    volumes = np.bincount(labels, weights=W.sum(axis=1), minlength=2)
    return float(volumes.min() / volumes.sum())


def one_kind(y, n_pairs, kind, rng):
    """Return pairs of one kind alone: random ones, until there are enough."""
    pairs = rng.randint(y.size, size=(40 * n_pairs, 2))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    chosen = pairs[(same if kind == "must_link" else ~same) & (pairs[:, 0] != pairs[:, 1])]
    return Constraints(y.size, **{kind: chosen[:n_pairs]})


def volumes(W, y, known):
    """Return the smaller volume by each method under the same pairs."""
    found = {}
    for method, model in methods():
        model.set_params(affinity="precomputed", random_state=0)
        found[method] = smaller_volume(W, model.fit(W, constraints=known).labels_)
    return found


def experiment(n_samples, n_draws):
    """Return one value per draw for every data set, method and number of pairs."""
    found, sizes = {}, {}
    for name, draw, W, y in problems(n_samples, n_draws):
        sizes[name] = int(y.size)
        for share in SHARES:
            n_pairs = round(share * y.size)
            known = draw_constraints(y, n_pairs, data=name, repetition=draw, random_state=0)
            values = {"truth": smaller_volume(W, y)} | volumes(W, y, known)
            for kind, method in (("must_link", "sclc:must"), ("cannot_link", "sclc:cannot")):
                alone = one_kind(y, n_pairs, kind, np.random.RandomState(draw))
                model = SCLC(rounding="sign", affinity="precomputed", random_state=0)
                values[method] = smaller_volume(W, model.fit(W, constraints=alone).labels_)
            for method, value in values.items():
                found.setdefault((name, method, n_pairs, METRIC), []).append(value)
    return found, sizes


def by_place(rows, methods_shown):
    """Return the means of some methods for each data set and number of pairs."""
    means = Means(rows, METRIC)
    return {
        f"{data}, {m} pairs": {name: means.at(data, name, m) for name in methods_shown}
        for data in means.datasets
        for m in means.amounts(data)
    }


def judged_by(methods_shown, holds):
    """Judge, per data set and number of pairs, by a function of the smaller volumes."""

    def judge(rows):
        found = by_place(rows, methods_shown)
        return {place: Outcome(bool(holds(v)), shown(v)) for place, v in found.items()}

    return judge


def nearer_to_truth(v):
    return abs(v["cosc"] - v["truth"]) < abs(v["sclc"] - v["truth"])


PUSHED = f"Its smaller volume is above that of the smaller class by more than {CLEAR}."
CLAIMS = (
    Claim(
        "SCLC is biased towards clusters of equal volume",
        judged_by(("sclc", "truth"), lambda v: v["sclc"] > v["truth"] + CLEAR),
        "",
        PUSHED,
        headline=True,
    ),
    Claim(
        "It is more so than COSC under the same pairs",
        judged_by(("sclc", "cosc", "truth"), lambda v: v["sclc"] > v["cosc"] + CLEAR),
        "",
        f"Its smaller volume is above that of COSC by more than {CLEAR}.",
    ),
    Claim(
        "It is due to cannot-links",
        judged_by(
            ("sclc:cannot", "sclc:must", "truth"),
            lambda v: v["sclc:cannot"] > v["sclc:must"] + CLEAR,
        ),
        "",
        f"With cannot-links alone the smaller volume is above that with must-links alone by more "
        f"than {CLEAR}.",
    ),
    Claim(
        "(ours) The volumes of COSC are nearer to those of the classes",
        judged_by(("sclc", "cosc", "truth"), nearer_to_truth),
    ),
)


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    n_samples, n_draws = (10**6, 10) if given.full else (1500, 3)
    with pinned():
        found, sizes = experiment(n_samples, n_draws)
    rows = [
        tidy_row(place, values, size=given.size, n_samples=sizes[place[0]])
        for place, values in found.items()
    ]
    what = f"{n_draws} draws, {len(SHARES)} amounts from 5% to 40% of n"
    what += "" if given.full else ", at most 1,500 samples"
    finish(given, NAME, rows, CLAIMS, {}, what=what)


if __name__ == "__main__":
    main()
