"""Xu et al. 2005, figures 1 to 4: eigenvectors of the XOR data with 0, 1 and 2 must-links.

Run: python benchmarks/papers/xu_fig1_4.py [--full]

Forty samples in four corners; opposite corners belong together. The graph is the paper's: full,
Gaussian, sigma by the gap heuristic. The second eigenvector of the random walk P = D^-1 A is drawn
without constraints, with the must-link (1, 21), and with (11, 31) as well (counted from 1), and so
is the one of the additive chain N of Kamvar et al., about which the paper says that it lacks the
property.

An eigenvector counts as piecewise constant if within every corner its values differ by less than
5 % of its whole range. With two must-links the first two eigenvalues of P are equal in double
precision, and a solver may mix their vectors: so the first one, which is known, is taken out
before. The data of the paper are not published; its claims are tested on many draws of `make_xor`:
100 with --full, 20 in reduced size.

The paper's sigma has two readings. One maps the largest distance of any sample to its m-th
neighbour to an affinity of 0.001 (the formula in the text: taken here); the other the distance
before the gap itself, that of the one sample which has it (step 4 of the heuristic): ``csc:gap``.

``xor+outlier`` has one more sample at (0.5, 2), where the paper expects KKM to split off a
singleton. Three places were tried: KKM does so at two of them and not at the centre (0.5, 0.5). At
(3, 3) CSC makes no singleton but does not find the clusters either.

By the letter CSC takes the rows of the eigenvectors as they are, and CCL merges across cannot-links
where it has to; our defaults are unit rows, and a repair of cannot-links (``ccl:ours``).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import issparse

sys.path.insert(0, str(Path(__file__).parent))
from common import Claim, Means, Outcome, finish, method_style, parsed, pinned, tidy_row

from linkwise import CCL, CSC, Affinity, Constraints, SpectralLearning
from linkwise.datasets import make_xor
from linkwise.methods.csc import edit
from linkwise.metrics import adjusted_rand

NAME = "xu_fig1_4"
PAPER = "Xu et al. 2005: local proximity (CSC)"
TITLE = "Figures 1 to 4: eigenvectors of the XOR data"
LINKS = ((0, 20), (10, 30))  # the paper's (1, 21) and (11, 31)
CORNERS = np.repeat(np.arange(4), 10)
OUTLIER = (0.5, 2.0)
NEARLY_CONSTANT = 0.05  # of the range of the eigenvector
CHAINS = (("csc", "xu", "walk"), ("csc:gap", "xu-gap", "walk"), ("sl", "xu", "additive"))


def second_eigenvector(A, chain):
    """Return the second eigenvector of P = D^-1 A, or of N = (A + d_max I - D) / d_max.

    The first one belongs to the eigenvalue 1 and is moved to -1, below all others.
    """
    d = A.sum(axis=1)
    if chain == "additive":
        N = (A + d.max() * np.eye(d.size) - np.diag(d)) / d.max()
        return eigh(N - 2 / d.size)[1][:, -1]
    root = np.sqrt(d)
    first = root / np.linalg.norm(root)
    return eigh(A / np.outer(root, root) - 2 * np.outer(first, first))[1][:, -1] / root


def spread_within(vector):
    """Return the largest range within a corner, as a share of the range of all."""
    inside = max(np.ptp(vector[corner == CORNERS]) for corner in range(4))
    return float(inside / np.ptp(vector))


def graph(X, scale="xu"):
    builder = Affinity(None, scale=scale)
    return builder.fit_transform(X), builder.m_


def edited(W, n_links):
    A = edit(W, Constraints(len(W), must_link=LINKS[:n_links]), 1.0)
    return A.toarray() if issparse(A) else np.asarray(A)


def methods():
    return [
        ("csc", CSC(rows="raw", link_weight=1.0)),
        ("csc:default", CSC()),
        ("sl", SpectralLearning(link_weight=1.0)),
        ("ccl", CCL(merging="paper")),
        ("ccl:ours", CCL()),
    ]


def fitted(name, model, Z, W):
    """Return the labels with both must-links."""
    known = Constraints(len(Z), must_link=LINKS)
    if name.startswith("ccl"):
        return model.fit(Z, constraints=known).labels_
    model.set_params(affinity="precomputed", random_state=0)
    return model.fit(W, constraints=known).labels_


def of_vector(vector, y):
    """Return what the figures show of an eigenvector."""
    spread = spread_within(vector)
    return {
        "spread": spread,
        "piecewise": spread < NEARLY_CONSTANT,
        "sign_ari": adjusted_rand(y, (vector > 0).astype(int)),
    }


def experiment(n_draws):
    """Return one value per draw for every data set, method, number of links and metric."""
    found = {}

    def note(data, method, n_links, values):
        for metric, value in values.items():
            found.setdefault((data, method, n_links, metric), []).append(float(value))

    for seed in range(n_draws):
        X, y = make_xor(random_state=seed)
        for method, scale, chain in CHAINS:
            W, m = graph(X, scale)
            note("xor", method, 0, {"m": m})
            for n_links in range(3):
                vector = second_eigenvector(edited(W, n_links), chain)
                note("xor", method, n_links, of_vector(vector, y))
        W, _ = graph(X, "xu-gap")
        labels = fitted("csc", dict(methods())["csc"], X, W)
        note("xor", "csc:gap", 2, {"adjusted_rand": adjusted_rand(y, labels)})
        for data, Z in (("xor", X), ("xor+outlier", np.vstack([X, OUTLIER]))):
            W, _ = graph(Z)
            for name, model in methods():
                labels = fitted(name, model, Z, W)
                ari = adjusted_rand(y, labels[: y.size])
                single = np.bincount(labels).min() == 1
                note(data, name, 2, {"adjusted_rand": ari, "singleton": single})
    return found


def table(found, size):
    return [
        tidy_row(place, values, size=size, n_samples=40 + (place[0] != "xor"))
        for place, values in found.items()
    ]


def heuristic(rows):
    """Judge whether the heuristic finds m = 9 in every draw."""
    mean = Means(rows, "m").at("xor", "csc", 0)
    sd = next(r["sd"] for r in rows if r["metric"] == "m")
    return {"xor": Outcome(mean == 9 and not sd > 0, f"m = {mean:g} on average, sd {sd:g}")}


def piecewise(method):
    """Judge whether the second eigenvector is piecewise constant, for each number of links."""

    def judge(rows):
        share, spread = Means(rows, "piecewise"), Means(rows, "spread")
        return {
            f"{n} links": Outcome(
                share.at("xor", method, n) == 1,
                f"in {share.at('xor', method, n):.0%} of the draws, "
                f"spread {spread.at('xor', method, n):.2g} of the range",
            )
            for n in range(3)
        }

    return judge


def lacks(method):
    """Judge whether it is mostly not piecewise constant."""

    def judge(rows):
        share = Means(rows, "piecewise")
        values = {n: share.at("xor", method, n) for n in range(3)}
        return {
            f"{n} links": Outcome(v < 0.5, f"piecewise constant in {v:.0%} of the draws")
            for n, v in values.items()
        }

    return judge


def solved(method):
    """Judge whether two links suffice: by the sign of the eigenvector, and by CSC."""

    def judge(rows):
        places = {"sign of the eigenvector": "sign_ari", "CSC": "adjusted_rand"}
        values = {name: Means(rows, m).at("xor", method, 2) for name, m in places.items()}
        values = {name: value for name, value in values.items() if not np.isnan(value)}
        return {name: Outcome(v > 1 - 1e-9, f"ARI {v:.3f}") for name, v in values.items()}

    return judge


def others_fail(rows):
    """Judge whether the two links are not enough for KKM and for CCL."""
    means = Means(rows, "adjusted_rand")
    return {
        name: Outcome(means.at("xor", m, 2) < 1 - 1e-9, f"ARI {means.at('xor', m, 2):.3f}")
        for name, m in (("KKM", "sl"), ("CCL", "ccl"))
    }


def singletons(rows):
    """Judge whether KKM splits off the outlier and CSC does not, each in most draws."""
    means = Means(rows, "singleton")
    shares = {m: means.at("xor+outlier", m, 2) for m in ("sl", "csc")}
    figures = {m: f"a singleton in {share:.0%} of the draws" for m, share in shares.items()}
    return {
        "KKM has singletons": Outcome(shares["sl"] > 0.5, figures["sl"]),
        "CSC has none": Outcome(shares["csc"] < 0.5, figures["csc"]),
    }


NULL_SPACE = (
    "On this graph the corners are nearly separate components. Then the leading eigenvectors of N "
    "and of P both span the indicators of the components, whatever the normalisation. The chains "
    "differ where degrees do: see the outlier."
)
EASY = (
    "Two must-links between tight corners suffice for all three. In trials with wider corners all "
    "three fail alike, where corners nearly touch."
)
CONSTANT = (
    f"In every draw the values within a corner differ by less than {NEARLY_CONSTANT:.0%} of the "
    "range of the vector."
)
CLAIMS = (
    Claim(
        "The heuristic gives m = 9 on the XOR data",
        heuristic,
        rule="It does so in every draw.",
        headline=True,
    ),
    Claim(
        "The second eigenvector of P is constant on each corner", piecewise("csc"), rule=CONSTANT
    ),
    Claim(
        "After two must-links the clusters are found",
        solved("csc"),
        rule="The ARI is 1 in every draw.",
        headline=True,
    ),
    Claim(
        "(second reading of sigma) The second eigenvector of P is constant on each corner",
        piecewise("csc:gap"),
        rule=CONSTANT,
    ),
    Claim(
        "(second reading of sigma) After two must-links the clusters are found",
        solved("csc:gap"),
        rule="The ARI is 1 in every draw.",
    ),
    Claim(
        "The eigenvectors of the additive chain N are not piecewise constant",
        lacks("sl"),
        NULL_SPACE,
        "It is piecewise constant in less than half of the draws.",
    ),
    Claim(
        "KKM and CCL do not find the clusters with the same two must-links",
        others_fail,
        EASY,
        "The mean ARI is below 1.",
    ),
    Claim(
        "With an outlier KKM makes a singleton cluster, and CSC does not",
        singletons,
        rule="KKM in more, CSC in less than half of the draws.",
    ),
)


def picture():
    """Draw the data and the eigenvectors of both chains, of the first draw."""
    from matplotlib.figure import Figure

    X, y = make_xor(random_state=0)
    W, _ = graph(X)
    figure = Figure(figsize=(11, 3), layout="constrained")
    axes = figure.subplots(1, 4)
    for cluster, marker in enumerate("os"):
        axes[0].plot(
            *X[y == cluster].T, marker, markersize=4, color=("#0072B2", "#E69F00")[cluster]
        )
    axes[0].set_title("the data", fontsize=10)
    for n_links, ax in enumerate(axes[1:]):
        for method, chain, label in (("csc", "walk", "P (CSC)"), ("sl", "additive", "N (KKM)")):
            vector = second_eigenvector(edited(W, n_links), chain)
            vector = vector / np.abs(vector).max() * (1 if vector[0] > 0 else -1)
            style = method_style(method) | {"linestyle": ""}
            ax.plot(np.arange(1, 41), vector, markersize=4, label=label, **style)
        for end in (10.5, 20.5, 30.5):
            ax.axvline(end, color="0.8", linewidth=0.8)
        ax.set_title(f"second eigenvector, {n_links} must-links", fontsize=10)
        ax.set_xlabel("sample", fontsize=9)
    axes[1].legend(fontsize=8)
    return figure


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    n_draws = 100 if given.full else 20
    with pinned():
        rows = table(experiment(n_draws), given.size)
    what = f"{n_draws} draws of the data"
    finish(given, NAME, rows, CLAIMS, {"": picture()}, what=what)


if __name__ == "__main__":
    main()
