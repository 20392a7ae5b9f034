r"""The prior of unsupervised candidates: what the samples say for each of them.

First: do `k` Gaussians describe the samples? The *misfit* is what they lose against a kernel
density, in nats per sample. If it is small, candidates are compared by their Gaussian likelihood;
if it is large, by their normalised cut on a graph in which none of them was sought. The border is
soft: with the probability `p` of Gaussian clusters,

.. math:: \text{prior} = (1 - f) [p \, \mathrm{softmax}(g / \tau_g)
   + (1 - p) \, \mathrm{softmax}(-c / \tau_c)] + f / n

with Gaussian log-likelihoods `g` per sample and logarithms `c` of cuts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from linkwise.auto.misfit import gaussian_likelihood, gaussian_misfit, smooth_directions
from linkwise.linalg.laplacian import degrees

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.auto.view import View


MISFIT, SOFT = 0.3, 0.05  # nats per sample that Gaussian clusters may lose; softness of the border
TAU_LIKELIHOOD = 0.05  # nats per sample that make a candidate e times as likely
TAU_CUT = 0.1  # the same for logarithms of cuts
CUT_FLOOR = 0.002  # of the cut for each cluster: below, a graph is as good as separated
FLAT = 0.1  # share of the prior that is equal for all
MISFIT_DIRECTIONS = 10


class DataPrior(NamedTuple):
    """What the samples say for each candidate."""

    weights: dict[str, float]
    gaussian: float  # probability that the clusters are Gaussian
    misfit: float  # nats per sample; nan for a graph
    likelihood: dict[str, float]
    cut: dict[str, float]


def data_prior(view: View) -> DataPrior:
    """Compare the unsupervised partitions of a view."""
    labels = {name: one.labels for name, one in view.partitions.items()}
    k = view.k
    cut = {name: ncut_value(view.witness, one, k) for name, one in labels.items()}
    graph = softmax(-np.log(np.array(list(cut.values())) / k + CUT_FLOOR) / TAU_CUT)
    if not view.has_features:
        weights = (1 - FLAT) * graph + FLAT / len(cut)
        return DataPrior(dict(zip(cut, weights, strict=True)), 0.0, np.nan, {}, cut)
    P = view.coordinates[view.rows]
    fit = {name: gaussian_likelihood(P, one, k) for name, one in labels.items()}
    misfit = _misfit(view, P, labels[max(fit, key=lambda name: fit[name])])
    p = float(expit((MISFIT - misfit) / SOFT))
    both = p * softmax(np.array(list(fit.values())) / TAU_LIKELIHOOD) + (1 - p) * graph
    weights = (1 - FLAT) * both + FLAT / len(cut)
    return DataPrior(dict(zip(cut, weights, strict=True)), p, misfit, fit, cut)


def _misfit(view: View, P: Floats, labels: Ints) -> float:
    """Return the misfit of a partition in the smoothest directions on the graph."""
    W = view.W
    if view.rows.size < view.n_samples:
        W = view.witness
    directions = smooth_directions(P, W, min(MISFIT_DIRECTIONS, P.shape[1]))
    return gaussian_misfit(directions, labels, view.k)


def ncut_value(W: Graph, labels: Ints, k: int) -> float:
    """Return the normalised cut of a partition; an empty cluster counts 1."""
    d = degrees(W)
    H = np.zeros((labels.size, k))
    H[np.arange(labels.size), labels] = 1.0
    inside = np.einsum("ic,ic->c", H, W @ H)
    return float((1 - inside / np.maximum(H.T @ d, 1e-12)).sum())
