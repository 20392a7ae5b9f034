"""Fu et al. 2011, figure 4: distances between the samples as spectral clustering sees them.

Run: python benchmarks/papers/srcp_fig4.py [--full]

The rows of the leading eigenvectors, at unit length, by NCuts, SL, AP and SRCP with pairs of 160 %
of the number of samples (2,400 on Corel, as in the paper). Samples are ordered by class: the
darker a point, the smaller the distance. "More obvious blocks" is measured by the contrast: the
mean distance between classes over the mean distance within them. The ordering and the contrast
know the true classes, the methods do not. Data and graphs are those of `srcp_fig2_3.py`; 3 draws
of the pairs (20 with --full), the picture shows the first.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import pairwise_distances

sys.path.insert(0, str(Path(__file__).parent))
from common import Claim, Means, Outcome, finish, load_data, parsed, pinned, shown, tidy_row
from cosc_table2 import subsample
from srcp_fig2_3 import FEATURES, IMAGES, LABELS, N_NEIGHBORS, STRENGTH
from srcp_fig2_3 import methods as all_methods

from linkwise import Affinity, Constraints
from linkwise.evaluate import draw_constraints
from linkwise.partition import unit_rows

NAME = "srcp_fig4"
PAPER = "Fu et al. 2011: symmetric graph regularized constraint propagation (SRCP)"
TITLE = "Figure 4: distance matrices"
SHOWN = ("ncut", "sl", "gp", "srcp")
DEFAULT = "srcp:default"
PIXELS = 120  # a side of the picture: each is the mean over some samples


def methods():
    return [(name, model) for name, model in all_methods() if name in (*SHOWN, DEFAULT)]


def distances(model, W, y, known):
    """Return all distances between the rows that the method clusters."""
    model.set_params(n_clusters=int(y.max()) + 1, affinity="precomputed", random_state=0)
    return pairwise_distances(unit_rows(model.fit(W, constraints=known).embedding_))


def contrast(D, y):
    """Return the mean distance between classes over the mean distance within them."""
    same = y[:, None] == y
    pairs = np.triu(np.ones(D.shape, dtype=bool), 1)
    within = float(D[same & pairs].mean())
    return float(D[~same & pairs].mean()) / within if within > 0 else np.inf


def coarse(D, pixels=PIXELS):
    """Return the means over blocks of a large matrix."""
    starts = np.unique(np.linspace(0, len(D), pixels, endpoint=False).astype(int))
    sizes = np.diff(np.append(starts, len(D)))
    sums = np.add.reduceat(np.add.reduceat(D, starts, axis=0), starts, axis=1)
    return sums / np.outer(sizes, sizes)


def experiment(n_samples, n_draws):
    """Return the contrasts by data set, amount and method, and the matrices of the first draw."""
    contrasts, pictures = {}, {}
    for name in IMAGES:
        X, y = load_data(name)
        kept = subsample(y, n_samples)
        W, y = Affinity(N_NEIGHBORS).fit_transform(X[kept]), y[kept]
        n_pairs = round(1.6 * y.size)
        order = np.argsort(y, kind="stable")
        for draw in range(n_draws):
            known = draw_constraints(y, n_pairs, data=name, repetition=draw, random_state=0)
            for method, model in methods():
                given = Constraints(y.size) if method == "ncut" else known
                D = distances(model, W, y, given)
                place = name, int(y.size), method, n_pairs
                contrasts.setdefault(place, []).append(contrast(D, y))
                if draw == 0:
                    pictures[name, method] = coarse(D[np.ix_(order, order)])
    return contrasts, pictures


def table(contrasts, size):
    return [
        tidy_row((data, method, n_pairs, "contrast"), values, size=size, n_samples=n_samples)
        for (data, n_samples, method, n_pairs), values in contrasts.items()
    ]


def clearest(rows):
    """Judge, per data set, whether SRCP has the highest contrast."""
    means, found = Means(rows, "contrast"), {}
    for data in means.datasets:
        values = {method: means.last(data, method) for method in SHOWN}
        found[data] = Outcome(values["srcp"] >= max(values.values()), shown(values))
    return found


CLAIMS = (
    Claim(
        "Blocks are the most obvious after SRCP",
        clearest,
        f"{FEATURES} {STRENGTH}",
        "Its mean contrast is the highest.",
    ),
)


def picture(matrices):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.4), layout="constrained")
    axes = figure.subplots(len(IMAGES), len(SHOWN))
    for i, name in enumerate(IMAGES):
        for j, method in enumerate(SHOWN):
            axes[i, j].imshow(matrices[name, method], cmap="gray", vmin=0, vmax=np.sqrt(2))
            axes[i, j].set(xticks=[], yticks=[])
            axes[i, j].set_title(f"{name}: {LABELS[method]}", fontsize=9)
    return figure


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    n_samples, n_draws = (10**6, 20) if given.full else (1500, 3)
    with pinned():
        contrasts, matrices = experiment(n_samples, n_draws)
    rows = table(contrasts, given.size)
    what = f"{n_draws} draws" + ("" if given.full else ", 1,500 of the 2,688 scenes")
    finish(given, NAME, rows, CLAIMS, {"": picture(matrices)}, what=what)


if __name__ == "__main__":
    main()
