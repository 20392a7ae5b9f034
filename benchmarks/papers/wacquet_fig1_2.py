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
* These dimensions are taken by PCA before cLPP. cLPP on all 13 features of wine is best of all on
  that set (accuracy 0.81), since its criterion does not see the scales of features; after PCA it is
  among the worst (0.70), which is what the paper reports.
* A percentage is one of all pairs. With 20 pairs per 100 samples nothing moves on this graph
  (wine, glass: at most 0.02 of accuracy between 0 and 20 %), with 20 % of the labels little;
  with 20 % of all pairs the curves rise as described. Labels have one thing for them: the paper's
  rule for two clusters gains by them (hepatitis: accuracy 0.60 without, 0.77 with 20 %), by pairs
  it does not. But then cSC and SL stay below cPCA on wine (0.69, 0.65 and 0.70 with 20 %).

The reading of the percentage and PCA before cLPP were chosen among three and two possibilities
after looking at results (2 draws, accuracy), because they come nearest to the paper's description;
the scaling was chosen by the dimensions alone. With cLPP on all features cSC was best on 4 sets
instead of 5, and SL followed on 5 instead of 6.

Two variants are dashed. ``signed:paper`` is exactly the method of the paper, which for two clusters
takes the sign of the second eigenvector; ``csp:auto`` is FCSC with a threshold that is feasible.

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
    load_data,
    paper_figure,
    parsed,
    raw_path,
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

NAME = "wacquet_fig1_2"
PAPER = "Wacquet et al. 2013: signed Laplacian (cSC)"
TITLE = "Figures 1 and 2: accuracy and Rand index on six UCI sets"
DATASETS = ("hepatitis", "ionosphere", "wine", "dermatology", "glass", "ecoli")
TWO_CLASSES = ("hepatitis", "ionosphere")
LABELS = {
    "ncut": "SC",
    "sl": "SL",
    "csp": "FCSC",
    "csp:auto": "FCSC, feasible threshold",
    "cpca": "cPCA",
    "clpp": "cLPP",
    "signed": "cSC",
    "signed:paper": "cSC, as in the paper",
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
    n_components = principal(X).shape[1]
    model = ConstrainedPCA(n_clusters, n_components=n_components, random_state=random_state)
    return model.fit(X, constraints=constraints).labels_


def clpp(X, constraints, n_clusters, random_state):
    Z = principal(X)
    model = ConstrainedLPP(n_clusters, n_components=Z.shape[1], random_state=random_state)
    return model.fit(Z, constraints=constraints).labels_


def methods():
    """Return the methods of the paper. The 1 of a must-link is that of Gaussian affinities."""
    return [
        ("ncut", NCut()),
        ("sl", SpectralLearning(normalization="symmetric", link_weight=1.0)),
        ("csp", CSP(satisfaction=0.5)),
        ("csp:auto", CSP()),
        ("cpca", cpca),
        ("clpp", clpp),
        ("signed", SignedCSC(link_weight=1.0)),
        ("signed:paper", SignedCSC(selection="paper", link_weight=1.0)),
    ]


def best(metric):
    """Judge whether cSC is above SC, SL, FCSC, cPCA and cLPP."""
    others = ("ncut", "sl", "csp", "cpca", "clpp")
    return lambda rows: wins(Means(rows, metric), "signed", others, beside=["signed:paper"])


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
            level = {m: means.level(data, m) for m in ("cpca", "clpp", *others)}
            holds = max(level["cpca"], level["clpp"]) < min(level[m] for m in others)
            figures = ", ".join(f"{m} {value:.3f}" for m, value in level.items())
            found[data] = Outcome(bool(holds), figures)
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


def second_vector(rows):
    """Judge whether the paper's rule for two clusters is as good as using both vectors."""
    means = Means(rows, "accuracy")
    found = {}
    for data in [name for name in means.datasets if name in TWO_CLASSES]:
        letter, sound = (means.last(data, m) for m in ("signed:paper", "signed"))
        figures = f"at the largest amount {letter:.3f}, with both vectors {sound:.3f}"
        found[data] = Outcome(letter >= sound - FALL, figures)
    return found


ECOLI = (
    "Only ecoli fails. It has classes of 2, 2 and 5 samples, too small, we think, for "
    "eigenvectors of their own. That is part of it: without them (327 samples, 3 draws of 5, "
    "10, 20 %) cSC has an accuracy of .82, .75, .99, and SL .89, .93, .97. Gamma is another: "
    "there 0.3 gives cSC .95, .99, 1.00. On all 8 classes no gamma from 0.1 to 0.95 brings it "
    "to SL."
)
PLAIN = (
    "It is plain SC that is lower than they are: on this graph it depends on sigma more than on "
    "anything else. With 0.5, 1, 2, 4 and 8 times the paper's sigma its accuracy on ionosphere is "
    ".68, .51, .62, .71, .70, on ecoli .79, .57, .53, .56, .54, on dermatology .37, .38, .27, .40, "
    ".58. Among the constrained methods the claim is tested below."
)
FEASIBLE = (
    "On wine the two eigenvectors that three clusters need pass the threshold. A third one, which "
    "the paper's text may ask for (it speaks of K), was there in 2 of 5 fits with 5 and 10 %."
)
FIRST_VECTOR = (
    "With cannot-links the first eigenvector is no longer constant: it is the partition, and the "
    "second one is not. The curves of cSC take a rounding of both."
)
CLAIMS = (
    Claim(
        "cSC has the highest accuracy (mean over all amounts)",
        best("accuracy"),
        ECOLI,
    ),
    Claim("SL has a higher accuracy than all but cSC", second("accuracy"), FEASIBLE),
    Claim("The accuracy of cSC increases with the constraints", rises("accuracy", "signed")),
    Claim("The accuracy of SL increases with the constraints", rises("accuracy", "sl")),
    Claim(
        "cPCA and cLPP have the lowest accuracy",
        worst("accuracy", ("ncut", "sl", "signed")),
        PLAIN,
    ),
    Claim(
        "cPCA and cLPP have a lower accuracy than the non-linear constrained methods",
        worst("accuracy", ("sl", "signed")),
    ),
    Claim("With more than two classes FCSC finds no feasible solution", infeasible, FEASIBLE),
    Claim("cSC has the highest Rand index", best("rand_index"), ECOLI),
    Claim("SL has a higher Rand index than all but cSC", second("rand_index"), FEASIBLE),
    Claim("The Rand index of cSC increases with the constraints", rises("rand_index", "signed")),
    Claim("The Rand index of SL increases with the constraints", rises("rand_index", "sl")),
    Claim(
        "cPCA and cLPP have a lower Rand index than the non-linear constrained methods",
        worst("rand_index", ("sl", "signed")),
    ),
    Claim(
        "For two clusters the sign of the second eigenvector of cSC is the partition",
        second_vector,
        FIRST_VECTOR,
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
