r"""The prior of unsupervised candidates: what the samples say for each of them.

First: do `k` Gaussians describe the samples? The *misfit* is what they lose against a kernel
density, in nats per sample. If each sample is well described by the Gaussian of its own cluster,
candidates are compared by their Gaussian likelihood `g`. If not even the mixture of all Gaussians
describes the samples, clusters have other shapes, and candidates are compared by the logarithm `c`
of their normalised cut, on two graphs in which none of them was sought; the mean of both counts. In
between, clusters are
Gaussian but overlap: neither the likelihood nor the cut tells good partitions from bad ones there,
and the candidates that hold on such data, the spectral and the linear one, are preferred. With the
probabilities of the three kinds,

.. math:: \text{prior} = (1 - f) [p_g \, \mathrm{softmax}(g / \tau_g)
   + p_c \, \mathrm{softmax}(-c / \tau_c) + p_o \, \mathrm{preferred}] + f / n .
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, softmax

from linkwise.auto.bases import few_valued, nearly_constant, principal_components
from linkwise.auto.candidates import CANDIDATES
from linkwise.auto.coarse_cut import contracted
from linkwise.auto.latent_classes import latent_class_evidence
from linkwise.auto.mixture import Misfit, gaussian_likelihood, gaussian_misfit, smooth_directions

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Graph, Ints
    from linkwise.auto.views import View


# Nats per sample that Gaussians may lose, and the softness of the border: those of separate
# clusters, then their mixture. Any border of the first from .25 to .4, and of the second from .1
# to .2, gives the same mean on both halves of the battery within .01.
SEPARATE, SEPARATE_SOFT = 0.3, 0.05
MIXTURE, MIXTURE_SOFT = 0.15, 0.05
TAU_LIKELIHOOD = 0.05  # nats per sample that make a candidate e times as likely
TAU_CUT = 0.1  # difference of logarithms of cuts that makes a candidate e times as likely
CUT_FLOOR = 0.002  # of the cut for each cluster: below, a graph is as good as separated
FLAT = 0.1  # share of the prior that is equal for all
DIRECTIONS = 10
LEAST_JUDGED = 2  # features with many values, to judge Gaussians in them alone
FEW_SHARE = 0.75  # of the features that have few values, beyond which the others are too few
BY_NAME = {one.name: one for one in CANDIDATES}


class DataPrior(NamedTuple):
    """What the samples say for each candidate."""

    weights: dict[str, float]
    kinds: dict[str, float]  # probabilities: "compact", "overlapping", "other shapes"
    misfit: Misfit | None  # None for a graph, or features with few values
    likelihood: dict[str, float]
    cut: dict[str, float]  # on the first graph


def data_prior(view: View) -> DataPrior:
    """Compare the unsupervised partitions of a view."""
    names, found, k = list(view.partitions), list(view.partitions.values()), view.k
    cuts, fit = np.empty((len(view.witnesses), len(names))), np.zeros(len(names))
    for at, partition in enumerate(found):
        for number, W in enumerate(view.witnesses):
            cuts[number, at] = ncut_value(W, partition.labels, k)
    misfit, compact, overlap = None, 0.0, 0.0  # a graph has no features to describe
    if view.binary is not None:
        for at, partition in enumerate(found):
            fit[at] = latent_class_evidence(view.binary, partition.labels, k)
        compact = 1.0
    elif view.has_features:
        few = few_valued(view.prepared.X)
        P = judged_coordinates(view, few) if few.any() else view.coordinates[view.rows]
        for at, partition in enumerate(found):
            fit[at] = gaussian_likelihood(P, partition.labels, k)
        compact = 1.0
        if few.mean() < FEW_SHARE:
            W = view.W if view.rows.size == view.n_samples else view.witnesses[0]
            Y = smooth_directions(P, W, min(DIRECTIONS, P.shape[1]))
            misfit = gaussian_misfit(Y, found[int(fit.argmax())].labels, k)
            compact = float(expit((SEPARATE - misfit.separate) / SEPARATE_SOFT))
            overlap = (1 - compact) * float(expit((MIXTURE - misfit.mixture) / MIXTURE_SOFT))
    kinds = {"compact": compact, "overlapping": overlap, "other shapes": 1 - compact - overlap}
    weights = _weights(names, kinds, fit, cuts=cuts / k)
    likelihood = dict(zip(names, fit.tolist(), strict=True)) if view.has_features else {}
    cut = dict(zip(names, cuts[0].tolist(), strict=True))
    return DataPrior(weights, kinds, misfit, likelihood, cut)


def _weights(
    names: list[str], kinds: dict[str, float], fit: Floats, *, cuts: Floats
) -> dict[str, float]:
    """Mix what the cuts, the likelihood, and a preference say, by the kinds of clusters.

    `cuts` has a row for each graph; what they say is averaged.
    """
    fit, log_cuts, preferred = fit.copy(), np.log(cuts + CUT_FLOOR), np.zeros(len(names))
    for at, name in enumerate(names):
        fit[at] -= BY_NAME[name].optimism
        log_cuts[:, at] += BY_NAME[name].cut_optimism
        preferred[at] = BY_NAME[name].is_preferred
    total = (
        kinds["other shapes"] * softmax(-log_cuts / TAU_CUT, axis=1).mean(axis=0)
        + kinds["compact"] * softmax(fit / TAU_LIKELIHOOD)
        + kinds["overlapping"] * preferred / max(preferred.sum(), 1.0)
    )
    weights = (1 - FLAT) * total / total.sum() + FLAT / len(names)
    return dict(zip(names, weights.tolist(), strict=True))


def judged_coordinates(view: View, few: Bools) -> Floats:
    """Return the coordinates of the rows in which Gaussians are judged.

    Features with few values, such as the columns of a category, are left out if there are enough
    others: a partition by a category would have no variance in them, and any likelihood. Nearly
    constant features stay: no partition into clusters of some size can be that of their values.
    """
    X = view.prepared.X
    if issparse(X) or few.mean() >= FEW_SHARE:
        return view.coordinates[view.rows]
    rows = X[view.rows]
    judged = ~few | nearly_constant(rows)
    if judged.all() or judged.sum() < LEAST_JUDGED:
        return view.coordinates[view.rows]
    scores = principal_components(rows[:, judged]).scores
    return scores / (float(np.sqrt((scores**2).mean())) or 1.0)


def ncut_value(W: Graph, labels: Ints, k: int) -> float:
    """Return the normalised cut of a partition; a cluster without volume counts 1."""
    between = contracted(W, labels, k)
    volume = between.sum(axis=1)
    lost = volume - between.diagonal()
    return float(np.divide(lost, volume, out=np.ones(k), where=volume > 0).sum())
