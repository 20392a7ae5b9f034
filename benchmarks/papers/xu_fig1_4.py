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

``xor+outlier`` has one more sample at (0.5, 2), where the paper expects KKM to split off a
singleton. Three places were tried: KKM does so at two of them and not at the centre (0.5, 0.5). At
(3, 3) CSC makes no singleton but does not find the clusters either (ARI 0.12).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import issparse

sys.path.insert(0, str(Path(__file__).parent))
from common import Claim, Means, Outcome, finish, method_style, parsed, pinned

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


def graph(X):
    builder = Affinity(None, scale="xu")
    return builder.fit_transform(X), builder.m_


def edited(W, n_links):
    A = edit(W, Constraints(len(W), must_link=LINKS[:n_links]), 1.0)
    return A.toarray() if issparse(A) else np.asarray(A)


def estimators():
    return {
        "csc": CSC(affinity="precomputed", rows="raw", link_weight=1.0, random_state=0),
        "sl": SpectralLearning(affinity="precomputed", link_weight=1.0, random_state=0),
        "ccl": CCL(merging="paper"),
    }


def experiment(n_draws):
    """Return one value per draw for every data set, method, number of links and metric."""
    found = {}

    def note(*place_and_value):
        *place, value = place_and_value
        found.setdefault(tuple(place), []).append(float(value))

    for seed in range(n_draws):
        X, y = make_xor(random_state=seed)
        W, m = graph(X)
        note("xor", "csc", 0, "m", m)
        for n_links in range(3):
            A = edited(W, n_links)
            for method, chain in (("csc", "walk"), ("sl", "additive")):
                vector = second_eigenvector(A, chain)
                place = ("xor", method, n_links)
                note(*place, "spread", spread_within(vector))
                note(*place, "piecewise", spread_within(vector) < NEARLY_CONSTANT)
                note(*place, "sign_ari", adjusted_rand(y, (vector > 0).astype(int)))
        for data, Z in (("xor", X), ("xor+outlier", np.vstack([X, OUTLIER]))):
            W, _ = graph(Z)
            known = Constraints(len(Z), must_link=LINKS)
            for method, model in estimators().items():
                labels = model.fit(Z if method == "ccl" else W, constraints=known).labels_
                note(data, method, 2, "adjusted_rand", adjusted_rand(y, labels[: y.size]))
                note(data, method, 2, "singleton", np.bincount(labels).min() == 1)
    return found


def table(found, size):
    return [
        {
            "size": size,
            "data": data,
            "n_samples": 40 + (data != "xor"),
            "method": method,
            "amount": n_links,
            "share": "",
            "metric": metric,
            "n_draws": len(values),
            "n": len(values),
            "mean": float(np.mean(values)),
            "sd": float(np.std(values, ddof=1)) if len(values) > 1 else np.nan,
            "failures": 0,
            "problems": "",
            "seconds": "",
        }
        for (data, method, n_links, metric), values in found.items()
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


def solved(rows):
    """Judge whether two links suffice: by the sign of the eigenvector, and by CSC."""
    sign, csc = (
        Means(rows, metric).at("xor", "csc", 2) for metric in ("sign_ari", "adjusted_rand")
    )
    return {
        "sign of the eigenvector": Outcome(sign > 1 - 1e-9, f"ARI {sign:.3f}"),
        "CSC": Outcome(csc > 1 - 1e-9, f"ARI {csc:.3f}"),
    }


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
    "Two must-links between tight corners suffice for all three. With wider corners (spread 0.3 "
    "instead of 0.04) the ARI of CSC and KKM is still 1, that of CCL 0.96; at 0.35, where corners "
    "nearly touch, CSC has 0.69, KKM 0.73, CCL 0.75 (20 draws)."
)
CLAIMS = (
    Claim("The heuristic gives m = 9 on the XOR data", heuristic),
    Claim("The second eigenvector of P is constant on each corner", piecewise("csc")),
    Claim("After two must-links it separates the two clusters", solved),
    Claim(
        "The eigenvectors of the additive chain N are not piecewise constant",
        lacks("sl"),
        NULL_SPACE,
    ),
    Claim("KKM and CCL do not find the clusters with the same two must-links", others_fail, EASY),
    Claim("With an outlier KKM makes a singleton cluster, and CSC does not", singletons),
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
