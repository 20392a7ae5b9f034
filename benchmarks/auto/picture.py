"""Draw how `Auto` works: docs/images/auto.png and one picture for each stage, auto-*.png.

Run: python benchmarks/auto/picture.py [--output folder] [--only candidates kinds ...]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from common import canonical, fitted, with_flips
from matplotlib.patches import Ellipse
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs, make_moons
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from linkwise import Auto, Constraints, NCut
from linkwise.auto.consensus import FEW_RATE
from linkwise.auto.constraint_model import log_likelihood
from linkwise.auto.mixture import smooth_directions
from linkwise.auto.prior import MIXTURE, SEPARATE
from linkwise.metrics import adjusted_rand

COLORS = np.array(
    [
        *("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee"),
        *("#aa3377", "#bbbbbb", "#ee8866", "#44bb99", "#777777"),
    ]
)
MUST, CANNOT = "#228833", "#aa3377"
GROUPS = {
    "anchor": "#222222",
    "unsupervised": "#4477aa",
    "coarse cut": "#ee6677",
    "learner": "#228833",
    "micro-clusters": "#ccbb44",
    "propagation": "#66ccee",
    "constrained cut": "#aa3377",
}
KINDS = {"compact": "#4477aa", "overlapping": "#ccbb44", "other shapes": "#ee6677"}
TITLE = 10


def named(labels, y):
    """Return the labels in the numbers of the classes they agree with most."""
    k = max(labels.max(), y.max()) + 1
    table = np.array([[np.sum((labels == a) & (y == b)) for b in range(k)] for a in range(k)])
    return linear_sum_assignment(-table)[1][labels]


def scatter(axis, P, labels, title, size=12.0):
    axis.scatter(*P[:, :2].T, c=COLORS[labels], s=size, linewidths=0)
    axis.set_title(title, fontsize=TITLE)
    axis.set_xticks([])
    axis.set_yticks([])


def draw_pairs(axis, P, known, width=1.2):
    for pairs, style, color in (
        (known.must_link, "-", MUST),
        (known.cannot_link, ":", CANNOT),
    ):
        for i, j in pairs:
            axis.plot(*P[[i, j], :2].T, style, color=color, linewidth=width, zorder=3)
            axis.plot(*P[[i, j], :2].T, "o", color=color, markersize=3.5, zorder=3)


def bars(axis, rows, title):
    """Draw (name, weight, colour), the first at the top."""
    names, weights, colors = zip(*rows, strict=True)
    axis.barh(range(len(rows)), weights, color=colors)
    axis.set_yticks(range(len(rows)), names, fontsize=8)
    axis.invert_yaxis()
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(title, fontsize=TITLE)


# --- the picture of the README


def overview():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    P = PCA(2).fit_transform(X)
    known, wrong = with_flips(Constraints.sample(y, 40, random_state=1), 0.1, 0)
    before = named(NCut(3, random_state=0).fit(X).labels_, y)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    after = named(model.labels_, y)
    figure, axes = plt.subplots(1, 4, figsize=(16, 4), width_ratios=[1, 1, 1, 0.8])
    marked(axes[0], P, before, y, f"normalised cut, no pairs: ARI {adjusted_rand(y, before):.2f}")
    found = suspects(axes[1], P, model, known, wrong)
    certainty = model.predict_proba(X).max(axis=1)
    title = f"Auto: ARI {adjusted_rand(y, after):.2f}; dots shrink where it is unsure"
    marked(axes[2], P, after, y, title, size=4 + 40 * np.maximum(certainty - 0.4, 0))
    weights = defaultdict(float)
    for one in model.report_.candidates:
        weights[one.group] += one.weight
    rows = [(group, weights[group], GROUPS[group]) for group in GROUPS if group in weights]
    bars(axes[3], rows, "weight of each group of candidates")
    print(model.report_, f"{found} of {len(wrong)} found", sep="\n")
    return figure


def marked(axis, P, labels, y, title, size=18.0):
    scatter(axis, P, labels, title, size)
    wrong = labels != y
    axis.scatter(*P[wrong].T, s=60, facecolors="none", edgecolors="black", linewidths=0.8)


def suspects(axis, P, model, known, wrong):
    """Draw pairs, and the first suspects bold: black if they are wrong."""
    axis.scatter(*P.T, c="#cccccc", s=6, linewidths=0)
    draw_pairs(axis, P, known, width=0.9)
    first = model.suspects_[: len(wrong)]
    hits = [tuple(sorted(one.samples)) in wrong for one in first]
    for one, hit in zip(first, hits, strict=True):
        color = "black" if hit else "#999999"
        axis.plot(*P[list(one.samples)].T, "-", color=color, linewidth=2.2, zorder=4)
    axis.set_xticks([])
    axis.set_yticks([])
    n_pairs, n_wrong = known.n_pairs, len(wrong)
    text = f"{n_pairs} pairs, {n_wrong} of them wrong;\nfirst {n_wrong} suspects (bold): "
    axis.set_title(text + f"{sum(hits)} are wrong", fontsize=TITLE)
    return sum(hits)


# --- 1. candidates


def toy():
    """Return two moons and a stripe."""
    rng = np.random.RandomState(0)
    X, y = make_moons(300, noise=0.08, random_state=0)
    stripe = np.c_[1.3 * rng.randn(150), 0.12 * rng.randn(150)] + [0.5, -1.1]
    return np.vstack((X, stripe)), np.r_[y, np.full(150, 2)]


def candidates():
    X, y = canonical(*toy())
    view = fitted(Auto(3, random_state=0), X).view
    prior, partitions = view.prior, view.partitions
    shown = ["k-means", "linear", "mixture, k-means", "spectral", "coarse cut"]
    shown += ["robust tree .3", "tree .3"]
    figure, axes = plt.subplots(2, 4, figsize=(14, 6))
    scatter(axes[0, 0], X, y, f"{y.size} samples in three classes", size=8.0)
    for axis, name in zip(axes.ravel()[1:], shown, strict=True):
        labels = named(partitions[name].labels, y)
        measured = f"cut {prior.cut[name]:.3f}, likelihood {prior.likelihood[name]:.2f}"
        scatter(axis, X, labels, f"{name}: ARI {adjusted_rand(y, labels):.2f}\n{measured}", 8.0)
    return figure


# --- 2. three kinds of clusters


def examples():
    """Yield sets of each kind: name, samples, number of clusters."""
    rng = np.random.RandomState(0)
    yield "three blobs", make_blobs(400, centers=3, random_state=3)[0], 3
    pixels = load_digits().data
    yield "digits", pixels[rng.permutation(len(pixels))[:800]], 10
    yield "two moons", make_moons(400, noise=0.08, random_state=0)[0], 2
    centers = rng.randn(10, 8)
    yield "ten blobs in 8-d", centers[np.arange(600) % 10] + rng.randn(600, 8), 10
    yield "iris", load_iris().data, 3
    angle, radius = rng.uniform(0, 2 * np.pi, 400), np.repeat([1.0, 2.0], 200)
    ring = (radius * np.array([np.cos(angle), np.sin(angle)])).T
    yield "two rings", ring + 0.08 * rng.randn(400, 2), 2
    yield "moons and stripe", toy()[0], 3


def kinds():
    figure, axes = plt.subplots(1, 4, figsize=(16, 4.2))
    points = []
    for at, (name, X, k) in enumerate(examples()):
        view = fitted(Auto(k, random_state=0), X).view
        prior = view.prior
        kind = max(prior.kinds, key=prior.kinds.get)
        points.append((name, kind, prior.misfit))
        if at < 3:
            best = max(prior.likelihood, key=prior.likelihood.get)
            labels = view.partitions[best].labels
            Y = smooth_directions(view.coordinates, view.W, min(3, X.shape[1]))
            loss = "loss: own Gaussian {:.2f}, mixture {:.2f}".format(*prior.misfit)
            gaussians(axes[at], Y, labels, f"{name}: {kind}\n{loss}")
    plane(axes[3], points)
    return figure


def gaussians(axis, Y, labels, title):
    """Draw samples and an ellipse of two standard deviations for each cluster."""
    scatter(axis, Y, labels, title, size=8.0)
    for c in np.unique(labels):
        Z = Y[labels == c, :2]
        values, vectors = np.linalg.eigh(np.cov(Z.T))
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        width, height = 4 * np.sqrt(values[::-1])
        axis.add_patch(
            Ellipse(Z.mean(axis=0), width, height, angle=angle, fill=False, color=COLORS[c], lw=1.4)
        )


def plane(axis, points):
    """Draw the two losses of several sets, and the borders of the three kinds."""
    right, top, low = 1.3, 1.2, -0.15
    shade = {"alpha": 0.15, "linewidth": 0}
    axis.fill_between([low, SEPARATE], low, top, color=KINDS["compact"], **shade)
    axis.fill_between([SEPARATE, right], low, MIXTURE, color=KINDS["overlapping"], **shade)
    axis.fill_between([SEPARATE, right], MIXTURE, top, color=KINDS["other shapes"], **shade)
    for name, kind, misfit in points:
        axis.plot(*misfit, "o", color=KINDS[kind])
        axis.annotate(name, misfit, xytext=(4, 4), textcoords="offset points", fontsize=8)
    for kind, x, y in (("compact", -0.1, 1.1), ("overlapping", 0.95, -0.1)):
        axis.text(x, y, kind, fontsize=9, color="#555555")
    axis.text(0.95, 1.1, "other shapes", fontsize=9, color="#555555")
    axis.set_xlim(low, right)
    axis.set_ylim(low, top)
    axis.set_xlabel("loss of each sample's own Gaussian (nats)", fontsize=9)
    axis.set_ylabel("loss of the mixture of all", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.set_title("seven sets, and the borders", fontsize=TITLE)


# --- 3. evidence


EXAMPLES = ("without constraints", "k-means", "spectral", "tree .3", "mixture, tree .3")
EXAMPLES += ("coarse cut, penalty 0.05", "coarse cut, penalty 0.2", "linear, k-means")
EXAMPLES += ("linear + graph, coarse cut, penalty 0.2", "linear + kernel, consensus")


def rectangle():
    """Return four blobs, nearer up and down than left and right; the upper ones are a class."""
    rng = np.random.RandomState(0)
    corner = np.repeat(np.arange(4), 60)
    X = 0.55 * rng.randn(240, 2) + np.c_[3.2 * (corner % 2), 2.2 * (corner // 2)]
    return X, corner // 2


def evidence():
    X, y = rectangle()
    known = Constraints.sample(y, 12, random_state=0)
    answer = fitted(Auto(2, random_state=0), X, known)
    given = answer.model.reliability
    shown = [
        (float(log_likelihood(one.held_out, given, FEW_RATE)), one)
        for one in answer.members
        if one.name in EXAMPLES
    ]
    shown.sort(key=lambda item: -item[0])
    figure, axes = plt.subplots(1, 2, figsize=(14, 4.5), width_ratios=[1, 1.7])
    scatter(axes[0], X, y, "the classes and 12 pairs (solid: together, dotted: apart)")
    draw_pairs(axes[0], X, known)
    table = np.array([one.held_out for _, one in shown])
    names = [f"{one.name}: {score:.1f}" for score, one in shown]
    kind = np.where(answer.model.pairs.together, "together", "apart")
    figure.colorbar(predictions(axes[1], table, names, kind), ax=axes[1], pad=0.02)
    return figure


def predictions(axis, table, names, kind):
    """Draw the predictions of candidates (rows) for constraints (columns)."""
    image = axis.imshow(table, cmap="RdBu", vmin=0, vmax=1, aspect="auto")
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_xticks(range(len(kind)), kind, fontsize=8, rotation=30)
    for (row, column), value in np.ndenumerate(table):
        color = "white" if abs(value - 0.5) > 0.3 else "black"
        axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=color)
    title = "probability of each pair, predicted without it; log-likelihood beside the name"
    axis.set_title(title, fontsize=TITLE)
    return image


# --- 4. weights and consensus


def xor():
    """Return four squares of which opposite ones belong together."""
    rng = np.random.RandomState(0)
    corner = np.repeat(np.arange(4), 60)
    X = rng.uniform(0, 1, (240, 2)) + 1.8 * np.c_[corner % 2, corner // 2]
    return X, np.array([0, 1, 1, 0])[corner]


def consensus():
    X, y = xor()
    pairs = np.random.RandomState(5).permutation(y.size)[:16].reshape(8, 2)
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    counts = (0, 2, 3, 4, 5, 6, 8)
    models = []
    for m in counts:
        known = Constraints(y.size, pairs[:m][same[:m]], pairs[:m][~same[:m]])
        models.append(Auto(2, random_state=0).fit(X, constraints=known if m else None))
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), width_ratios=[1, 1, 1.4])
    for axis, model, m in zip(axes, (models[0], models[-1]), (0, 8), strict=False):
        labels = named(model.labels_, y)
        scatter(axis, X, labels, f"{m or 'no'} pairs: ARI {abs(adjusted_rand(y, labels)):.2f}")
    draw_pairs(axes[1], X, known)
    scores = [adjusted_rand(y, model.labels_) for model in models]
    stacks(axes[2], counts, [model.report_ for model in models], scores)
    return figure


def stacks(axis, counts, reports, scores):
    """Draw the weights of groups by number of pairs, and the ARI above."""
    bottom = np.zeros(len(counts))
    for group, color in GROUPS.items():
        weight = np.array(
            [sum(one.weight for one in r.candidates if one.group == group) for r in reports]
        )
        if weight.any():
            axis.bar(range(len(counts)), weight, bottom=bottom, color=color, label=group)
        bottom += weight
    for at, score in enumerate(scores):
        axis.text(at, 1.02, f"ARI {abs(score):.2f}", ha="center", fontsize=8)
    axis.set_xticks(range(len(counts)), counts, fontsize=8)
    axis.set_xlabel("pairs", fontsize=9)
    axis.set_ylim(0, 1.1)
    axis.tick_params(axis="y", labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title("weight of each group of candidates", fontsize=TITLE)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)


# --- 5. the report


def report():
    X, y = load_wine(return_X_y=True)
    known, wrong = with_flips(Constraints.sample(y, 30, random_state=0), 0.1, 0)
    model = Auto(3, random_state=0).fit(X, constraints=known)
    P = PCA(2).fit_transform(StandardScaler().fit_transform(X))
    figure, axes = plt.subplots(1, 2, figsize=(14, 4.2), width_ratios=[1, 1.9])
    suspects(axes[0], P, model, known, wrong)
    axes[1].axis("off")
    text = str(model.report_).replace("\n  ", "\n    ")
    axes[1].text(0, 1, text, family="monospace", fontsize=9, va="top", linespacing=1.5)
    axes[1].set_title("print(model.report_)", fontsize=TITLE, loc="left", family="monospace")
    return figure


PICTURES = {
    "auto": overview,
    "auto-candidates": candidates,
    "auto-kinds": kinds,
    "auto-evidence": evidence,
    "auto-consensus": consensus,
    "auto-report": report,
}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parents[2] / "docs" / "images"
    options.add_argument("--output", type=Path, default=default)
    options.add_argument("--only", nargs="*", default=list(PICTURES))
    asked = options.parse_args()
    for name, draw in PICTURES.items():
        if name in asked.only:
            figure = draw()
            figure.tight_layout()
            figure.savefig(asked.output / f"{name}.png", dpi=80)
            plt.close(figure)


if __name__ == "__main__":
    main()
