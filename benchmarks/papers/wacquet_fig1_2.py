"""Wacquet et al. 2013, figures 1 and 2: accuracy and Rand index on six UCI sets, 0-20 % pairs.

Run: python benchmarks/papers/wacquet_fig1_2.py [--full] [--jobs 2]

The settings are those of the paper: a full Gaussian graph whose sigma^2 is the mean variance of the
features, gamma = 0.5, FCSC with half of the largest satisfaction, 95 % of the variance for the
linear methods, sets of pairs that grow (nested), ten draws.

What it does not say, and was found out:

* The features are not scaled. Only then do 95 % of the variance take the dimensions that the paper
  lists: 3, 24, 3, 5, 5 for hepatitis, ionosphere, dermatology, glass and ecoli, 71 and 115 for the
  faces, and for wine 1, where the paper has 2. (Standardised: 16, 23, 22, 6, 6, and 10 for wine.)
  So at least two are taken.
* These dimensions are taken by PCA before cLPP. On the features as they are, where our default is
  run (``clpp:ours``), it is better on wine: its criterion does not see their scales. The paper
  reports it among the worst.
* A percentage is one of all pairs. With 20 pairs per 100 samples nothing moves on this graph, with
  20 % of the labels little; with 20 % of all pairs the curves rise as described.

The reading of the percentage and PCA before cLPP were chosen among three and two possibilities
after looking at results (2 draws, accuracy), because they come nearest to the paper's description;
the scaling was chosen by the dimensions alone.

The letter of cSC is the sign of the second eigenvector for two clusters, and k-means on unit rows
for more. The letter of FCSC is equation 30: half of the largest satisfaction, and a solution that
is not the constant vector, but need not be orthogonal to it. ``csp:orthogonal`` is the same with
orthogonality, which equation 7 of Wang, Qian & Davidson has, and ``csp:ours`` takes a threshold
that is feasible as well. The letter of cLPP is the numerator of equations 19 and 20, by which a
cannot-link asks for distance without limit and equation 22 can have negative eigenvalues, on the
graph of equation 15: 10 neighbours, and the sigma of the full graph. ``clpp:signed`` takes absolute
degrees instead, and local scales, on the same components.

In reduced size there are 3 draws instead of 10, and steps of 5 % instead of 2 %.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

sys.path.insert(0, str(Path(__file__).parent))
from common import (
    Claim,
    Means,
    Outcome,
    finish,
    levels,
    load_data,
    paper_figure,
    parsed,
    raw_path,
    shown,
    tidy,
    wins,
)

from linkwise import (
    CSP,
    Affinity,
    ConstrainedLPP,
    ConstrainedPCA,
    NCut,
    SignedCSC,
    SpectralLearning,
)
from linkwise.evaluate import learning_curve
from linkwise.methods.clpp import clpp as projected

NAME = "wacquet_fig1_2"
PAPER = "Wacquet et al. 2013: signed Laplacian (cSC)"
TITLE = "Figures 1 and 2: accuracy and Rand index on six UCI sets"
DATASETS = ("hepatitis", "ionosphere", "wine", "dermatology", "glass", "ecoli")
TWO_CLASSES = ("hepatitis", "ionosphere")
LABELS = {
    "ncut": "SC",
    "sl": "SL",
    "csp": "FCSC",
    "csp:orthogonal": "FCSC, orthogonal",
    "csp:ours": "FCSC, our default",
    "cpca": "cPCA",
    "clpp": "cLPP",
    "clpp:signed": "cLPP, absolute degrees",
    "clpp:ours": "cLPP, our default",
    "signed": "cSC",
    "signed:default": "cSC, our default",
}
METRICS = ("accuracy", "rand_index")
VARIANCE = 0.95  # held by the principal components
FALL = 0.02  # how far a curve that rises may fall from one amount to the next


def principal(X):
    """Return the principal components that hold 95 % of the variance, at least two."""
    scores = PCA(min(X.shape), svd_solver="full").fit(X)
    n_components = int((np.cumsum(scores.explained_variance_ratio_) < VARIANCE).sum()) + 1
    return scores.transform(X)[:, : max(n_components, 2)]


def cpca(X, constraints, n_clusters, random_state):
    """ConstrainedPCA, as many directions as components."""
    n_components = principal(X).shape[1]
    model = ConstrainedPCA(n_clusters, n_components=n_components, random_state=random_state)
    return model.fit(X, constraints=constraints).labels_


def clpp_signed(X, constraints, n_clusters, random_state):
    """ConstrainedLPP on the components."""
    Z = principal(X)
    model = ConstrainedLPP(n_clusters, n_components=Z.shape[1], random_state=random_state)
    return model.fit(Z, constraints=constraints).labels_


def clpp(X, constraints, n_clusters, random_state):
    """ConstrainedLPP(criterion='paper') on the components, with the graph of equation 15."""
    Z = principal(X)
    sigma = float(np.sqrt(X.var(axis=0).mean()))
    W = Affinity(10, scale=sigma).fit_transform(Z)
    options = {"criterion": "paper", "n_components": Z.shape[1], "random_state": random_state}
    return projected(Z, constraints, n_clusters, W=W, **options).labels


def clpp_local(X, constraints, n_clusters, random_state):
    """ConstrainedLPP(criterion='paper') on the components."""
    Z = principal(X)
    model = ConstrainedLPP(
        n_clusters, criterion="paper", n_components=Z.shape[1], random_state=random_state
    )
    return model.fit(Z, constraints=constraints).labels_


def methods():
    """Return the methods. The 1 of a must-link is that of Gaussian affinities."""
    return [
        ("ncut", NCut()),
        ("sl", SpectralLearning(normalization="symmetric", link_weight=1.0)),
        ("csp", CSP(satisfaction=0.5, orthogonal=False)),
        ("csp:orthogonal", CSP(satisfaction=0.5)),
        ("csp:ours", CSP()),
        ("cpca", cpca),
        ("clpp", clpp),
        ("clpp:signed", clpp_signed),
        ("clpp:ours", ConstrainedLPP()),
        ("signed", SignedCSC(selection="paper", link_weight=1.0)),
        ("signed:default", SignedCSC()),
    ]


def best(metric):
    """Judge whether cSC is above SC, SL, FCSC, cPCA and cLPP."""
    return lambda rows: wins(Means(rows, metric), "signed", ("ncut", "sl", "csp", "cpca", "clpp"))


def second(metric):
    """Judge whether SL is above SC, FCSC, cPCA and cLPP."""
    return lambda rows: wins(Means(rows, metric), "sl", ["ncut", "csp", "cpca", "clpp"])


def rises(metric, method):
    """Judge whether a curve ends above its start, and nowhere falls by more than FALL."""

    def judge(rows):
        means = Means(rows, metric)
        found = {}
        for data in means.datasets:
            curve = means.curve(data, method)
            holds = curve[-1] > curve[0] and np.diff(curve).min() >= -FALL
            found[data] = Outcome(bool(holds), " ".join(f"{value:.3f}" for value in curve))
        return found

    return judge


def worst(metric, others):
    """Judge whether cPCA and cLPP are both below the others."""

    def judge(rows):
        means = Means(rows, metric)
        found = {}
        for data in means.datasets:
            level = levels(means, data, ("cpca", "clpp", *others))
            holds = max(level["cpca"], level["clpp"]) < min(level[m] for m in others)
            found[data] = Outcome(bool(holds), shown(level))
        return found

    return judge


def infeasible(rows):
    """Judge whether FCSC with the paper's threshold fails where there are more than two classes."""
    found = {}
    for data in Means(rows, "accuracy").datasets:
        if data in TWO_CLASSES:
            continue
        cells = [
            r
            for r in rows
            if (r["data"], r["method"], r["metric"]) == (data, "csp", "accuracy") and r["amount"]
        ]
        failed, fits = (sum(r[key] for r in cells) for key in ("failures", "n_draws"))
        found[data] = Outcome(failed == fits, f"{failed} of {fits} fits without an answer")
    return found


def orthogonality(rows):
    """Judge, for two classes, whether FCSC gains by orthogonality to the constant vector."""
    means = Means(rows, "accuracy")
    found = {}
    for data in [name for name in means.datasets if name in TWO_CLASSES]:
        level = levels(means, data, ("csp", "csp:orthogonal"))
        found[data] = Outcome(level["csp:orthogonal"] > level["csp"], shown(level))
    return found


def second_vector(rows):
    """Judge whether the paper's rule for two clusters is as good as using both vectors."""
    means = Means(rows, "accuracy")
    if "signed:default" not in means.methods:
        return {}
    found = {}
    for data in [name for name in means.datasets if name in TWO_CLASSES]:
        letter, sound = (means.last(data, m) for m in ("signed", "signed:default"))
        figures = f"at the largest amount {letter:.3f}, with both vectors {sound:.3f}"
        found[data] = Outcome(letter >= sound - FALL, figures)
    return found


FIRST_VECTOR = (
    "With cannot-links the first eigenvector is no longer constant: it is the partition, and the "
    "second one is not. Our default takes the best rounding of both."
)
REASONS = (
    f"On hepatitis and ionosphere it is the rule for two clusters. {FIRST_VECTOR} Ecoli has "
    "classes of 2, 2 and 5 samples, too small, we think, for eigenvectors of their own; without "
    "them, and with a smaller gamma, cSC came near SL or above it in trials."
)
PLAIN = (
    "It is plain SC that is lower than they are: on this graph it depends on sigma more than on "
    "anything else, as trials with 0.5 to 8 times the paper's sigma showed. Among the constrained "
    "methods the claim is tested below."
)
FEASIBLE = (
    "On wine the two eigenvectors that three clusters need pass the threshold. The text of the "
    "paper may ask for a third one (it speaks of K), which was there in some fits only."
)
LEVEL = "Compared is the mean over all amounts above 0; methods without an answer are left out."
RISES = f"The last value is above the first, and no step falls by more than {FALL}."


def claims_on(metric, name):
    """Return the claims that the paper makes of both figures."""
    return (
        Claim(f"cSC has the highest {name}", best(metric), REASONS, LEVEL, headline=True),
        Claim(f"SL has a higher {name} than all but cSC", second(metric), FEASIBLE, LEVEL),
        Claim(
            f"The {name} of cSC increases with the constraints",
            rises(metric, "signed"),
            FIRST_VECTOR,
            RISES,
            headline=True,
        ),
        Claim(f"The {name} of SL increases with the constraints", rises(metric, "sl"), rule=RISES),
        Claim(
            f"cPCA and cLPP have a lower {name} than the non-linear constrained methods",
            worst(metric, ("sl", "signed")),
            REASONS,
            LEVEL,
        ),
    )


CLAIMS = (
    *claims_on("accuracy", "accuracy"),
    Claim(
        "cPCA and cLPP have the lowest accuracy",
        worst("accuracy", ("ncut", "sl", "signed")),
        PLAIN,
        LEVEL,
    ),
    *claims_on("rand_index", "Rand index"),
    Claim(
        "With more than two classes FCSC finds no feasible solution",
        infeasible,
        FEASIBLE,
        "No fit with pairs has an answer.",
    ),
    Claim(
        "For two clusters the sign of the second eigenvector of cSC is the partition",
        second_vector,
        FIRST_VECTOR,
        f"At the largest amount it is at most {FALL} below our rounding of both vectors.",
    ),
    Claim(
        "(ours) FCSC gains by orthogonality to the constant vector",
        orthogonality,
        rule=LEVEL,
    ),
)


def main(argv=None):
    given = parsed(__doc__, argv, name=NAME)
    step, n_draws = (2, 10) if given.full else (5, 3)
    curves = learning_curve(
        {name: load_data(name) for name in DATASETS},
        methods(),
        [f"{share}%" for share in range(0, 21, step)],
        share_of="pairs",
        nested=True,
        n_draws=n_draws,
        metrics=METRICS,
        affinity=Affinity(None, scale="variance"),
        path=raw_path(given, NAME),
        n_jobs=given.jobs,
    )
    rows = tidy(curves, METRICS, size=given.size, share_of="pairs")
    figures = {
        metric: paper_figure(
            rows, metric, labels=LABELS, x="share", x_label="pairs given, % of all pairs"
        )
        for metric in METRICS
    }
    what = f"{n_draws} draws, steps of {step} % of all pairs, six sets"
    finish(given, NAME, rows, CLAIMS, figures, what=what)


if __name__ == "__main__":
    main()
