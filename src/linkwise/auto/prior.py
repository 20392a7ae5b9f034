r"""The prior of unsupervised candidates: what the samples say for each of them.

First: do `k` Gaussians describe the samples? The *misfit* is what they lose against a kernel
density, in nats per sample. If each sample is well described by the Gaussian of its own cluster,
candidates are compared by their Gaussian likelihood `g`. If not even the mixture of all Gaussians
describes the samples, clusters have other shapes, and candidates are compared by the logarithm `c`
of their normalised cut, on a graph in which none of them was sought. In between, clusters are
Gaussian but overlap: neither the likelihood nor the cut tells good partitions from bad ones there,
and the spectral and the linear candidate, which hold on such data, are preferred. With the
probabilities of the three kinds,

.. math:: \text{prior} = (1 - f) [p_g \, \mathrm{softmax}(g / \tau_g)
   + p_c \, \mathrm{softmax}(-c / \tau_c) + p_o \, \mathrm{preferred}] + f / n .
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, issparse
from scipy.special import expit, softmax

from linkwise.auto.bases import Components
from linkwise.auto.misfit import (
    Misfit,
    gaussian_likelihood,
    gaussian_misfit,
    smooth_directions,
)
from linkwise.linalg.laplacian import degrees
from linkwise.methods.ncut import ratio_sum

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Graph, Ints
    from linkwise.auto.view import View


# Nats per sample that Gaussians may lose, and the softness of the border: those of separate
# clusters, then their mixture. Any border of the first from .25 to .4, and of the second from .1
# to .2, gives the same mean on both halves of the battery within .01.
SEPARATE, SEPARATE_SOFT = 0.3, 0.05
MIXTURE, MIXTURE_SOFT = 0.15, 0.05
TAU_LIKELIHOOD = 0.05  # nats per sample that make a candidate e times as likely
OPTIMISM = 0.03  # nats per sample that mixtures gain by maximising the likelihood themselves
TAU_CUT = 0.1  # difference of logarithms of cuts that makes a candidate e times as likely
CUT_FLOOR = 0.002  # of the cut for each cluster: below, a graph is as good as separated
FLAT = 0.1  # share of the prior that is equal for all
PREFERRED = ("spectral", "linear")  # where clusters overlap
DIRECTIONS = 10
LEAST_JUDGED = 2  # features with many values, to judge Gaussians in them alone
FEW_VALUES, FEW_SHARE = 10, 0.75  # distinct values, and share of the features that have so few
CHECKED = 1_000  # rows and columns of which distinct values are counted


class DataPrior(NamedTuple):
    """What the samples say for each candidate."""

    weights: dict[str, float]
    kinds: dict[str, float]  # probabilities: "compact", "overlapping", "other shapes"
    misfit: Misfit | None  # None for a graph, or features with few values
    likelihood: dict[str, float]
    cut: dict[str, float]


def data_prior(view: View) -> DataPrior:
    """Compare the unsupervised partitions of a view."""
    labels = {name: one.labels for name, one in view.partitions.items()}
    cut = {name: ncut_value(view.witness, one, view.k) for name, one in labels.items()}
    fit: dict[str, float] = {}
    misfit = None
    compact = overlap = 0.0  # a graph has no features to describe
    if view.has_features:
        P = judged_coordinates(view)
        fit = {name: gaussian_likelihood(P, one, view.k) for name, one in labels.items()}
        compact = 1.0
        if not has_few_values(view.prepared.X):
            misfit = _misfit(view, P, labels[max(fit, key=lambda name: fit[name])])
            compact = float(expit((SEPARATE - misfit.separate) / SEPARATE_SOFT))
            overlap = (1 - compact) * float(expit((MIXTURE - misfit.mixture) / MIXTURE_SOFT))
    kinds = {"compact": compact, "overlapping": overlap, "other shapes": 1 - compact - overlap}
    weights = _weights(kinds, fit, cut, k=view.k)
    return DataPrior(weights, kinds, misfit, fit, cut)


def _weights(
    kinds: dict[str, float], fit: dict[str, float], cut: dict[str, float], *, k: int
) -> dict[str, float]:
    names = list(cut)
    logs = np.log(np.array([cut[name] for name in names]) / k + CUT_FLOOR)
    total = kinds["other shapes"] * softmax(-logs / TAU_CUT)
    if fit:
        paid = np.array([OPTIMISM if name.startswith("mixture") else 0.0 for name in names])
        gain = np.array([fit[name] for name in names]) - paid
        total = total + kinds["compact"] * softmax(gain / TAU_LIKELIHOOD)
        preferred = np.array([float(name in PREFERRED) for name in names])
        total = total + kinds["overlapping"] * preferred / max(preferred.sum(), 1.0)
    weights = (1 - FLAT) * total / total.sum() + FLAT / len(names)
    return dict(zip(names, weights.tolist(), strict=True))


def _misfit(view: View, P: Floats, labels: Ints) -> Misfit:
    """Return the misfit of a partition in the smoothest directions on the graph."""
    W = view.W if view.rows.size == view.n_samples else view.witness
    directions = smooth_directions(P, W, min(DIRECTIONS, P.shape[1]))
    return gaussian_misfit(directions, labels, view.k)


def judged_coordinates(view: View) -> Floats:
    """Return the coordinates of the rows in which Gaussians are judged.

    Features with few values, such as the columns of a category, are left out if there are enough
    others: a partition by a category would have no variance in them, and any likelihood.
    """
    X = view.prepared.X
    if not issparse(X) and not has_few_values(X):
        has_many = ~few_valued(X)
        if has_many.sum() >= LEAST_JUDGED and not has_many.all():
            return Components.of(X[np.ix_(view.rows, has_many)]).unit_scores
    return view.coordinates[view.rows]


def has_few_values(X: Any) -> bool:
    """Whether most features have so few values that a density of them means nothing."""
    if issparse(X):
        columns = csc_array(X[_spread(X.shape[0])][:, _spread(X.shape[1])])
        values = np.split(columns.data, columns.indptr[1:-1])
        return bool(np.mean([np.unique(one).size < FEW_VALUES for one in values]) >= FEW_SHARE)
    return bool(few_valued(X).mean() >= FEW_SHARE)


def few_valued(X: Floats) -> Bools:
    """Return which features have few distinct values, among samples from all of them."""
    rows = X[_spread(X.shape[0])]
    most = min(FEW_VALUES, rows.shape[0] // 4)
    return np.array([np.unique(column).size <= most for column in rows.T])


def _spread(n: int) -> Ints:
    """Return at most `CHECKED` numbers below `n`, evenly: samples may be sorted."""
    return np.linspace(0, n - 1, min(n, CHECKED)).astype(np.intp)


def ncut_value(W: Graph, labels: Ints, k: int) -> float:
    """Return the normalised cut of a partition; a cluster without volume counts 1."""
    d = degrees(W)
    volume = np.bincount(labels, weights=d, minlength=k)
    return ratio_sum(W, labels, d) + float((volume == 0).sum())
