"""Draw the pictures of README and guide into docs/images, and print the figures they show.

Run: python tools/guide_pictures.py [readme choose how-many ...]
"""

from __future__ import annotations

import re
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.patches import FancyBboxPatch
from picture_parts import (
    APART,
    GREY,
    IMAGES,
    INK,
    TOGETHER,
    bare,
    key,
    known_labels,
    named,
    pairs,
    points,
    save,
)
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_moons,
)
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from linkwise import GFHF, METHODS, Affinity, Auto, ConstrainedCut, Constraints, NCut
from linkwise.active import Session, TruthOracle, ask_oracle, simulate
from linkwise.datasets import make_block_model, make_customers
from linkwise.demo import as_numbers
from linkwise.evaluate import learning_curve
from linkwise.exceptions import ConflictError
from linkwise.metrics import adjusted_rand
from linkwise.plots import COLOURS

SAME = [(45, 136), (68, 147), (115, 140), (128, 206), (145, 198), (185, 220)]
DIFFERENT = [(31, 74), (82, 162)]


def scaled(load):
    """Return standardised features and classes."""
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def open_axes(axis, title, x, y):
    """Leave the two axes that a curve needs."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(title, fontsize=12, color=INK)
    axis.set(xlabel=x, ylabel=y)


# README ------------------------------------------------------------------------------------


def readme():
    """Before, what is known, after: the code of the README."""
    corners = [(0, 0), (2, 0), (0, 1), (2, 1)]
    X, group = make_blobs(240, centers=corners, cluster_std=0.2, random_state=0)
    known = Constraints(len(X), SAME, DIFFERENT)
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.1), layout="constrained")
    points(axes[0], X, Auto(2, random_state=0).fit(X).labels_)
    points(axes[1], X)
    pairs(axes[1], X, known)
    model = Auto(2, random_state=0).fit(X, constraints=known)
    points(axes[2], X, named(model.labels_, group // 2))
    titles = "Without pairs: left and right", "You know 8 pairs", "With them: top and bottom"
    for axis, title in zip(axes, titles, strict=True):
        bare(axis, title, 15)
    key(figure, loc="outside lower center", fontsize=12)
    return figure


# Which method? -----------------------------------------------------------------------------

QUESTIONS = [
    ("Thousands of small clusters,\ntheir number unknown?", "Linkage", "records, faces, voices"),
    ("Must every pair hold?", "Auto(hard=True)", "or ConstrainedCut, COSC"),
    ("Right labels, and long\nor curved clusters?", "GFHF", "with class_mass=True; or Poisson"),
    ("A fast answer on\na huge graph?", "FastGE", "or SignedCSC"),
]


def box(axis, at, text, *, color, size, bold=False):
    """Draw a rounded box with its text in the middle."""
    width, height = size
    corner = at[0] - width / 2, at[1] - height / 2
    style = {"boxstyle": "round,pad=0.02,rounding_size=0.12", "lw": 1.4}
    axis.add_patch(FancyBboxPatch(corner, width, height, fc=color, ec=INK, **style))
    weight = "bold" if bold else "normal"
    axis.text(*at, text, ha="center", va="center", fontsize=13, weight=weight, color=INK)


def arrow(axis, start, end, *, text, shift):
    """Draw an arrow with a word beside it."""
    axis.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "lw": 1.6, "color": INK})
    middle = (start[0] + end[0]) / 2 + shift[0], (start[1] + end[1]) / 2 + shift[1]
    axis.text(*middle, text, ha="center", va="center", fontsize=13, color=INK)


def choose():
    """Draw a chain of questions: yes leads to a method at the right, no to the next question."""
    figure, axis = plt.subplots(figsize=(8.4, 6.6), layout="constrained")
    gap, last = 1.45, -1.45 * len(QUESTIONS)
    for number, (question, method, remark) in enumerate(QUESTIONS):
        y = -gap * number
        box(axis, (0, y), question, color="#eef2f7", size=(3.7, 0.8))
        box(axis, (4.6, y), method, color="#fdebd0", size=(2.6, 0.6), bold=True)
        axis.text(4.6, y - 0.55, remark, ha="center", fontsize=12, color="#555555")
        arrow(axis, (1.9, y), (3.27, y), text="yes", shift=(0, 0.17))
        arrow(axis, (0, y - 0.43), (0, y - gap + 0.43), text="no", shift=(0.3, 0))
    box(axis, (0, last), "Auto", color="#d5f0e3", size=(3.7, 0.8), bold=True)
    axis.text(2.1, last, "everything else; in doubt, begin here", va="center", fontsize=12)
    axis.set(xlim=(-2, 6.1), ylim=(last - 0.5, 0.6))
    axis.axis("off")
    return figure


# How many pairs? ---------------------------------------------------------------------------


def how_many():
    """Learning curves over the samples in no pair."""
    loaders = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
    table, segment = make_customers(400, random_state=0)
    data = {"customers": (as_numbers(table), segment)}
    data |= {name: scaled(load) for name, load in loaders.items()}
    amounts = [0, 10, 20, 40, 80]
    curves = learning_curve(
        data, ["auto", "e2cp", "cut"], amounts, n_draws=3, random_state=0, progress=False
    )
    figure, axes = plt.subplots(2, 2, figsize=(9.4, 6.6), layout="constrained", sharey=True)
    axes = axes.ravel()
    for axis, name in zip(axes, data, strict=True):
        for color, method in zip(COLOURS, ("auto", "e2cp", "cut"), strict=False):
            curve(axis, curves, (name, method), amounts=amounts, color=color)
        open_axes(axis, name, "pairs", "ARI of samples in no pair")
    axes[0].legend(frameon=False, loc="lower right")
    axes[0].set_ylim(0, 1)
    return figure


def curve(axis, curves, which, *, amounts, color):
    """Draw the mean of the draws and its standard error."""
    rows = [row for row in curves.rows if (row["data"], row["method"]) == which]
    scores = [[r["free_adjusted_rand"] for r in rows if r["amount"] == m] for m in amounts]
    mean = np.array([np.mean(one) for one in scores])
    error = np.array([np.std(one, ddof=1) / np.sqrt(len(one)) for one in scores])
    print(*which, dict(zip(amounts, mean.round(3).tolist(), strict=True)))
    axis.plot(range(len(amounts)), mean, "o-", color=color, label=which[1], lw=2)
    axis.fill_between(range(len(amounts)), mean - error, mean + error, color=color, alpha=0.2)
    axis.set_xticks(range(len(amounts)), amounts)


# Which pairs? ------------------------------------------------------------------------------


def which_pairs():
    """Draw the first questions on a map, and curves of chosen and random questions."""
    X, y = scaled(load_iris)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    P = PCA(2).fit_transform(X)
    session = Session(X, 3, random_state=0)
    ask_oracle(session, TruthOracle(y), budget=8)
    points(axes[0], P)
    pairs(axes[0], P, session.constraints)
    bare(axes[0], "the first 8 questions on iris, with their answers")
    for color, strategy in zip(COLOURS, ("committee", "random"), strict=False):
        runs = [scores_of(X, y, strategy, seed) for seed in range(4)]
        mean = np.mean(runs, axis=0)
        print(strategy, mean.round(3).tolist())
        label = "chosen by the session" if strategy == "committee" else "random pairs"
        axes[1].plot(range(len(mean)), mean, color=color, lw=2, label=label)
    open_axes(axes[1], "iris, mean of 4 sessions", "answers", "ARI")
    axes[1].legend(frameon=False)
    return figure


def scores_of(X, y, strategy, seed):
    """Return the score after 0, 1, ... 25 answers."""
    session = Session(X, 3, strategy=strategy, random_state=seed)
    scores = simulate(session, TruthOracle(y), budget=25).ari(y)
    return np.pad(scores, (0, 26 - len(scores)), mode="edge")


# Contradictions ----------------------------------------------------------------------------


def contradictions():
    """Draw a chain of must-links, and the cannot-link that cannot be true with it."""
    people = ["Ann Smith", "A. Smith", "Ann Smyth", "Anna Smyth", "A. Smythe"]
    P = np.array([(0, 0), (1.2, 0.75), (2.6, 1), (4, 0.75), (5.2, 0)])
    figure, axis = plt.subplots(figsize=(10, 3.4), layout="constrained")
    chain = [(0, 1), (1, 2), (2, 3), (3, 4)]
    pairs(axis, P, Constraints(5, chain, [(0, 4)]), width=2.6)
    for (x, y), name in zip(P, people, strict=True):
        above = y > 0
        where = {"ha": "center", "va": "bottom" if above else "top", "fontsize": 13}
        axis.text(x, y + (0.12 if above else -0.12), name, **where)
    for i, j in chain:
        middle = P[[i, j]].mean(axis=0)
        axis.text(middle[0], middle[1] - 0.2, "same", ha="center", color=TOGETHER, fontsize=12)
    axis.text(2.6, 0.07, "different", ha="center", color=APART, fontsize=12)
    axis.set(xlim=(-0.8, 6), ylim=(-0.4, 1.4))
    bare(axis, "Five answers that cannot all be right", 14)
    return figure


# Constraints -------------------------------------------------------------------------------

RING = np.array([(0, 0), (1.1, 0.9), (2.2, 0.2), (3.4, 0.9), (4.4, 0.1)])


def constraints():
    """Draw what is given, and what follows from it."""
    given = Constraints(5, [(0, 1), (1, 2)], [(2, 4)])
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
    for axis, known in zip(axes, (given, given.closure().to_constraints()), strict=True):
        pairs(axis, RING, known, width=2.6)
        numbered(axis, RING)
        axis.set(xlim=(-0.5, 4.9), ylim=(-0.45, 1.4))
    bare(axes[0], "Three pairs that you give", 14)
    bare(axes[1], "Six pairs: yours, and what follows from them", 14)
    key(figure, loc="outside lower center", fontsize=12)
    return figure


def numbered(axis, P, labels=None):
    """Draw samples as circles with their numbers, in the colour of their cluster."""
    labels = np.full(len(P), -1) if labels is None else labels
    colors = ["white" if label < 0 else COLOURS[label] for label in labels]
    axis.scatter(*P.T, s=420, c=colors, edgecolors=INK, linewidths=1.4, zorder=5)
    for number, (x, y) in enumerate(P):
        style = {"fontsize": 12, "color": INK if labels[number] < 0 else "white", "weight": "bold"}
        axis.text(x, y, number, ha="center", va="center", zorder=6, **style)


# Feasibility -------------------------------------------------------------------------------


def around(n, radius=1.0):
    """Return points on a circle, the first at the top."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def feasibility():
    """Draw cannot-links that need more clusters than there are: clique, odd ring, wheel."""
    ring = [(i, (i + 1) % 5) for i in range(5)]
    cases = [
        ("Clique: three samples, all apart.\nTwo clusters are not enough", 3, False, 2),
        ("Odd ring: neighbours are apart.\nTwo clusters are not enough", 5, False, 2),
        ("Wheel: a ring, and one apart from all.\nThree clusters are not enough", 5, True, 3),
    ]
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.0), layout="constrained")
    for axis, (title, n, has_hub, n_clusters) in zip(axes, cases, strict=True):
        P = np.vstack([around(n), np.zeros((int(has_hub), 2))])
        links = ring if n == 5 else [(0, 1), (1, 2), (0, 2)]
        links = links + [(i, n) for i in range(n) if has_hub]
        labels = np.append(np.arange(n) % 2, np.full(int(has_hub), 2))
        labels[n - 1] = -1  # no cluster is left for it
        assert Constraints(len(P), cannot_link=links).check(n_clusters + 1) is None
        pairs(axis, P, Constraints(len(P), cannot_link=links), width=2.4)
        numbered(axis, P, labels)
        x, y = P[n - 1]
        axis.text(x - 0.28, y + 0.16, "?", fontsize=18, color=APART, weight="bold", ha="center")
        axis.set(xlim=(-1.45, 1.45), ylim=(-1.2, 1.35), aspect="equal")
        bare(axis, title, 13)
    return figure


# The graph ---------------------------------------------------------------------------------


def affinity():
    """Draw the graphs of two moons: few neighbours, the default, and all within a distance."""
    X, _ = make_moons(160, noise=0.06, random_state=0)
    kinds = {
        "3 neighbours: parts are hardly connected": Affinity(3, connect=None),
        "10 neighbours (the default)": Affinity(10),
        "all within a distance of 0.5": Affinity(radius=0.5),
    }
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    for axis, (title, builder) in zip(axes, kinds.items(), strict=True):
        W = builder.fit_transform(X).tocoo()
        shades = 0.08 + 0.72 * W.data / W.data.max()
        for i, j, shade in zip(*W.coords, shades, strict=True):
            if i < j:
                axis.plot(*X[[i, j]].T, color=INK, lw=0.9, alpha=shade, zorder=1)
        axis.scatter(*X.T, s=22, color=COLOURS[0], linewidths=0, zorder=2)
        bare(axis, title, 13)
    return figure


# Worse -------------------------------------------------------------------------------------


def worse():
    """Scores over the share of wrong pairs: hard, soft, Auto, and no pairs."""
    shares = [0, 0.1, 0.2, 0.3]
    kinds = {
        "Auto": lambda: Auto(3, random_state=0),
        "soft: ConstrainedCut, soft mode": lambda: ConstrainedCut(
            3, constraints_mode="soft", random_state=0, verbose=0
        ),
        "hard: ConstrainedCut": lambda: ConstrainedCut(3, random_state=0, verbose=0),
    }
    figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
    for color, (name, make) in zip(COLOURS, kinds.items(), strict=False):
        means = [np.mean(wrong_scores(make, share)) for share in shares]
        print(name, np.round(means, 3).tolist())
        axis.plot(shares, means, "o-", color=color, lw=2, label=name)
    plain = np.mean([plain_score(X, y) for X, y in two_sets()])
    print("NCut without pairs", round(float(plain), 3))
    axis.axhline(plain, color="#555555", ls=":", label="no pairs: NCut")
    axis.set_xticks(shares, [f"{share:.0%}" for share in shares])
    open_axes(axis, "iris and wine, n/2 pairs", "wrong pairs", "ARI")
    axis.legend(frameon=False)
    return figure


def plain_score(X, y):
    """Return the score of spectral clustering without pairs."""
    return adjusted_rand(y, NCut(3, random_state=0).fit(X).labels_)


def two_sets():
    """Return the sets of the picture."""
    return [scaled(load_iris), scaled(load_wine)]


def wrong_scores(make, share, n_draws=3):
    """Return the scores of all draws; NCut's where the constraints contradict each other."""
    scores = []
    for X, y in two_sets():
        for draw in range(n_draws):
            known = flipped(Constraints.sample(y, len(y) // 2, random_state=draw), share, draw)
            try:
                labels = make().fit(X, constraints=known).labels_
            except ConflictError:
                print("contradiction: no answer at", share)
                labels = NCut(3, random_state=0).fit(X).labels_
            scores.append(adjusted_rand(y, labels))
    return scores


def flipped(known, share, seed):
    """Turn a share of the pairs into their opposite."""
    table = known.table
    turned = np.random.RandomState(seed).rand(len(table.pairs)) < share
    is_must = table.is_must_link != turned
    return Constraints(known.n_samples, table.pairs[is_must], table.pairs[~is_must])


# Graphs ------------------------------------------------------------------------------------


def graphs():
    """Draw a block model, without and with pairs."""
    W, block = make_block_model(100, 4, p_in=0.3, p_out=0.02, random_state=0)
    y = block // 2  # two of the four communities belong together
    known = Constraints.sample(y, 12, random_state=0)
    P = spring(W)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for axis, given, title in zip(
        axes, (None, known), ("without pairs", "with 12 pairs"), strict=True
    ):
        labels = Auto(2, affinity="precomputed", random_state=0).fit(W, constraints=given).labels_
        rows, columns = W.nonzero()
        for i, j in zip(rows, columns, strict=True):
            if i < j:
                axis.plot(*P[[i, j]].T, color="#d0d4d9", lw=0.6, zorder=0)
        points(axis, P, named(labels, y), size=42)
        score = adjusted_rand(y, labels)
        print("graphs", title, round(score, 3))
        bare(axis, f"{title}: ARI {score:.2f}", 13)
    return figure


def spring(W, n_steps=250):
    """Return positions by attraction along edges and repulsion of all nodes."""
    A = W.toarray() > 0
    P = np.random.RandomState(0).normal(size=(len(A), 2))
    ideal = np.sqrt(1 / len(A)) * 3
    for step in range(n_steps):
        difference = P[:, None] - P[None]
        distance = np.maximum(np.sqrt((difference**2).sum(axis=2)), 0.01)
        force = ideal**2 / distance**2 - A * distance / ideal
        move = (difference * force[..., None]).sum(axis=1)
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
        P += move / length * np.minimum(length, 0.1 * (1 - step / n_steps))
    return P


# Labels ------------------------------------------------------------------------------------


def labels():
    """Moons without and with five labels each: of 11 draws, the one with the median score."""
    X, y = make_moons(300, noise=0.16, random_state=0)
    rng = np.random.RandomState(0)
    given = np.full(len(y), -1)
    for moon in (0, 1):
        given[rng.choice(np.flatnonzero(y == moon), 5, replace=False)] = moon
    before = NCut(2, random_state=0).fit(X).labels_
    model = GFHF(2, class_mass=True)
    after = model.fit(X, constraints=Constraints.from_labels(given)).labels_
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for axis, found, title in zip(
        axes, (before, after), ("NCut, no labels", "GFHF, 10 labels"), strict=True
    ):
        points(axis, X, named(found, y))
        bare(axis, f"{title}: ARI {adjusted_rand(y, found):.2f}", 13)
    known_labels(axes[1], X, given)
    return figure


# Text and images ---------------------------------------------------------------------------


def embeddings():
    """Digits as small pictures, in the colours of their clusters, before and after 30 answers."""
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, (3, 5, 8, 9))
    images, X, y = (
        load_digits().images[chosen],
        X[chosen],
        np.unique(y[chosen], return_inverse=True)[1],
    )
    session = Session(X, 4, random_state=0)
    before = named(session.labels.copy(), y)
    ask_oracle(session, TruthOracle(y), budget=30)
    after = named(session.labels, y)
    P = PCA(2, random_state=0).fit_transform(X)
    shown = np.random.RandomState(0).permutation(len(y))[:160]
    figure, axes = plt.subplots(1, 2, figsize=(12.5, 5.6), layout="constrained")
    for axis, found, title in zip(axes, (before, after), ("no answers", "30 answers"), strict=True):
        thumbnails(axis, P[shown], images[shown], found[shown])
        bare(axis, f"{title}: ARI {adjusted_rand(y, found):.2f}", 13)
    return figure


def thumbnails(axis, P, images, labels):
    """Draw images at their places, inked in the colour of the cluster."""
    axis.scatter(*P.T, s=0)
    for place, image, label in zip(P, images, labels, strict=True):
        rgba = np.zeros((*image.shape, 4))
        rgba[..., :3] = plt.matplotlib.colors.to_rgb(COLOURS[label])
        rgba[..., 3] = image / 16
        axis.add_artist(AnnotationBbox(OffsetImage(rgba, zoom=2.6), place, frameon=False))


# Without truth -----------------------------------------------------------------------------


def without_truth():
    """Held-out pairs beside the score that nobody would know."""
    X, y = scaled(load_iris)
    known = Constraints.sample(y, 60, random_state=0)
    keys = ["auto", "gp", "e2cp", "signed", "sl", "ncut"]
    held, true = zip(*(held_out_and_true(one, X, y, known) for one in keys), strict=True)
    figure, axis = plt.subplots(figsize=(8.5, 3.8), layout="constrained")
    places = np.arange(len(keys))
    axis.barh(places - 0.19, held, 0.36, color=COLOURS[0], label="held-out pairs that hold")
    axis.barh(places + 0.19, true, 0.36, color=COLOURS[1], label="true ARI, unknown to you")
    axis.set_yticks(places, keys)
    axis.invert_yaxis()
    open_axes(axis, "iris, 60 pairs (ncut uses none)", "", "")
    axis.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.98, 0.4))
    return figure


def held_out_and_true(which, X, y, known):
    """Return the share of held-out pairs that hold, and the score with all pairs."""
    make = METHODS[which]
    settings = {"random_state": 0}
    shares = [
        test.satisfied(make(3, **settings).fit(X, constraints=train).labels_)
        for train, test in known.split(5, random_state=0)
    ]
    score = adjusted_rand(y, make(3, **settings).fit(X, constraints=known).labels_)
    print(which, round(float(np.mean(shares)), 3), round(score, 3))
    return float(np.mean(shares)), score


# Measurements ------------------------------------------------------------------------------

CELL = re.compile(r"([\d.]+) x, ([+-][\d.]+)")


def summary():
    """Draw other packages at the largest size they finish, from docs/benchmarks.md."""
    page = (IMAGES.parent / "benchmarks.md").read_text(encoding="utf-8")
    table = page.partition("its CPU s")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    names = [f"{name}\nn = {n}" for name, n, *_ in rows]
    seconds, scores = (np.array([float(row[k]) for row in rows]) for k in (2, 3))
    figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained", sharey=True)
    bars = {"the other package": (seconds, scores)}
    for name, column in (("Auto (an older version)", 4), ("SignedCSC", 5)):
        faster, better = np.array([CELL.match(row[column]).groups() for row in rows], float).T
        bars[name] = seconds / faster, scores + better
    for number, (name, values) in enumerate(bars.items()):
        color = GREY if number == 0 else COLOURS[number - 1]
        for axis, value in zip(axes, values, strict=True):
            axis.barh(
                np.arange(len(rows)) + 0.27 * (number - 1), value, 0.25, color=color, label=name
            )
    axes[0].set_yticks(range(len(rows)), names)
    axes[0].invert_yaxis()
    axes[0].set_xscale("log")
    open_axes(axes[0], "CPU seconds, logarithmic\n(shorter is better)", "", "")
    open_axes(axes[1], "ARI of samples in no pair, from 0.5\n(longer is better)", "", "")
    axes[1].set_xlim(0.5, 1)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    return figure


SHOWN = ["ncut", "e2cp", "signed", "fastge", "cut", "auto", "cosc"]


def large_data():
    """Draw the CPU seconds of a million samples, from docs/benchmarks.md."""
    page = (IMAGES.parent / "benchmarks.md").read_text(encoding="utf-8")
    page = page.partition("**A million samples**")[2]
    rows = {key: re.search(rf"^\| `{key}` \| ([\d. |]+) \|", page, re.M)[1] for key in SHOWN}
    cells = {key: [float(cell) for cell in row.split(" | ")] for key, row in rows.items()}
    fits = np.array([cells[key][3] for key in SHOWN])
    graphs = np.array([cells[key][5] for key in SHOWN]) - fits  # end to end, without the fit
    names = [METHODS[key].__name__ + " (an older version)" * (key == "auto") for key in SHOWN]
    figure, axis = plt.subplots(figsize=(9, 3.9), layout="constrained")
    axis.barh(names, graphs, color=GREY, label="neighbours and graph, once for all fits")
    axis.barh(names, fits, left=graphs, color=COLOURS[0], label="fit with 1,000 pairs")
    for y, (graph, fit) in enumerate(zip(graphs, fits, strict=True)):
        axis.text(graph + fit + 2, y, f"{graph + fit:.0f} s", va="center", fontsize=11, color=INK)
    axis.invert_yaxis()
    axis.tick_params(labelsize=12)
    open_axes(axis, "A million samples, one thread", "CPU seconds", "")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=12)
    return figure


PICTURES = {
    "large-data": large_data,
    "benchmarks/summary": summary,
    "readme": readme,
    "choose": choose,
    "how-many": how_many,
    "which-pairs": which_pairs,
    "contradictions": contradictions,
    "constraints": constraints,
    "feasibility": feasibility,
    "affinity": affinity,
    "worse": worse,
    "graphs": graphs,
    "labels": labels,
    "embeddings": embeddings,
    "without-truth": without_truth,
}


def main(names):
    """Draw the named pictures, or all."""
    warnings.simplefilter("ignore")
    for name in names or PICTURES:
        save(PICTURES[name](), name)


if __name__ == "__main__":
    main(sys.argv[1:])
