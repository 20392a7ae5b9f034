"""Rangapuram & Hein 2012, figure 2: a mixture of Gaussians without and with 80 constraints.

Run: python benchmarks/papers/cosc_fig2.py [--full]

500 points in the plane. The paper describes the effect, not how the data were made: without
constraints the points of one class are split and two other classes are merged; with 80 random
pairs they are not. Our mixture (`make_mixture`) was made to do the former to the normalised cut,
so only the latter is a test. 5 draws of the data, each with its own pairs (20 with --full); the
picture is the first, by default. The graph is the default one of linkwise. By the letter COSC
splits again and again, and does not repair what a split has violated.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from common import Claim, Means, Outcome, finish, parsed, pinned, tidy_row

from linkwise import COSC, Affinity, Constraints
from linkwise.datasets import make_mixture
from linkwise.metrics import adjusted_rand, clustering_error, ncut, violated_share
from linkwise.plots import draw_clusters

NAME = "cosc_fig2"
PAPER = "Rangapuram & Hein 2012: constrained 1-spectral clustering (COSC)"
TITLE = "Figure 2: a mixture of four Gaussians"
N_PAIRS = 80
WHOLE = 0.9  # a class counts as whole if one cluster has this share of it


def is_split(y, labels):
    """Say whether the largest class lies in more than one cluster."""
    inside = labels[y == np.bincount(y).argmax()]
    return bool(np.bincount(inside).max() < WHOLE * inside.size)


def is_merged(y, labels):
    """Say whether two classes have the same cluster as their most frequent one."""
    homes = [int(np.bincount(labels[y == c]).argmax()) for c in np.unique(y)]
    return len(set(homes)) < len(homes)


def methods():
    return [("cosc", COSC(refine=False)), ("cosc:default", COSC())]


def solved(seed, n_pairs, model):
    """Return data, truth, pairs, labels and scores of one draw."""
    X, y = make_mixture(random_state=seed)
    W = Affinity().fit_transform(X)
    known = Constraints.sample(y, n_pairs, random_state=seed) if n_pairs else Constraints(y.size)
    model.set_params(n_clusters=4, affinity="precomputed", random_state=0)
    labels = model.fit(W, constraints=known).labels_
    scores = {
        "adjusted_rand": adjusted_rand(y, labels),
        "clustering_error": clustering_error(y, labels),
        "ncut": ncut(W, labels),
        "violated_share": violated_share(known, labels),
        "split": is_split(y, labels),
        "merged": is_merged(y, labels),
    }
    return X, y, known, labels, scores


def table(n_draws, size):
    return [
        tidy_row(
            (f"mixture, draw {seed}", name, n_pairs, metric), [value], size=size, n_samples=500
        )
        for seed in range(n_draws)
        for n_pairs in (0, N_PAIRS)
        for name, model in methods()
        for metric, value in solved(seed, n_pairs, model)[-1].items()
    ]


def wrong(n_pairs, wanted):
    """Judge, per draw, whether a class is split and two are merged (or, wanted = 0, neither)."""

    def judge(rows):
        split, merged, ari = (Means(rows, m) for m in ("split", "merged", "adjusted_rand"))
        found = {}
        for data in ari.datasets:
            states = [means.at(data, "cosc", n_pairs) for means in (split, merged)]
            words = [
                w if s else f"not {w}" for w, s in zip(("split", "merged"), states, strict=True)
            ]
            figures = f"{', '.join(words)}, ARI {ari.at(data, 'cosc', n_pairs):.3f}"
            found[data] = Outcome(states == [wanted, wanted], figures)
        return found

    return judge


def all_satisfied(rows):
    """Judge, per draw, whether no constraint is violated."""
    means = Means(rows, "violated_share")
    shares = {data: means.at(data, "cosc", N_PAIRS) for data in means.datasets}
    return {data: Outcome(v == 0, f"violated share {v:.2g}") for data, v in shares.items()}


SPLITS = (
    "Only splits in two can be forced to satisfy all pairs; an early split may have to leave some, "
    "and a later one may not be able to part them."
)
STATES = (
    f"A class is split if no cluster has {WHOLE:.0%} of it (the largest class), two are merged if "
    "the same cluster has most of both."
)
CLAIMS = (
    Claim("Without constraints one class is split and two are merged", wrong(0, 1), rule=STATES),
    Claim(
        "With 80 random constraints no class is split and none are merged",
        wrong(N_PAIRS, 0),
        rule=STATES,
        headline=True,
    ),
    Claim(
        "All constraints are satisfied, with four classes",
        all_satisfied,
        SPLITS,
        "The violated share is 0.",
    ),
)


def picture():
    from matplotlib.figure import Figure

    X, y, _, free, _ = solved(0, 0, COSC())
    *_, known, labels, _ = solved(0, N_PAIRS, COSC())
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes = figure.subplots(1, 3)
    draw_clusters(axes[0], X, y, title="truth")
    draw_clusters(axes[1], X, free, title="without constraints")
    draw_clusters(axes[2], X, labels, constraints=known, title=f"with {N_PAIRS} random constraints")
    return figure


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    n_draws = 20 if given.full else 5
    with pinned():
        rows = table(n_draws, given.size)
        figure = picture()
    finish(given, NAME, rows, CLAIMS, {"": figure}, what=f"{n_draws} draws of the data")


if __name__ == "__main__":
    main()
