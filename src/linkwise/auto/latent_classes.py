r"""Latent classes: clusters of samples whose features have two values, such as 0 and 1.

In a cluster `c` a feature `j` has its upper value with a probability :math:`\theta_{cj}`, and the
features are independent: the model of latent class analysis (Lazarsfeld & Henry 1968). Gaussians do
not describe such samples: where all samples of a cluster have the same value, a Gaussian has no
variance and any likelihood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaln, gammaln, logit, softmax

from linkwise.auto.consensus import TRUST, softened

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints

PRIOR = 0.5  # samples of either value seen before the first: Jeffreys' prior
MAX_ITER = 30
TOL = 1e-3  # of the responsibilities, on average


def latent_class_evidence(B: Any, labels: Ints, k: int) -> float:
    r"""Return the log-probability of 0/1 features and labels, per sample.

    With :math:`n_c` samples in a cluster, :math:`s_{cj}` of them with the upper value, and the
    unknown probabilities integrated out,

    .. math:: \frac1n \Bigl[ \log \frac{(k - 1)! \prod_c n_c!}{(n + k - 1)!}
        + \sum_{cj} \log \frac{B(s_{cj} + \frac12, n_c - s_{cj} + \frac12)}{B(\frac12, \frac12)}
        \Bigr] .

    More parameters are not an advantage: what they gain by chance is lost in the integral.
    """
    R = np.eye(k)[labels]
    n, sizes = labels.size, R.sum(axis=0)
    upper = np.asarray((B.T @ R).T)
    of_labels = gammaln(k) - gammaln(n + k) + gammaln(sizes + 1).sum()
    lower = sizes[:, None] - upper
    of_features = betaln(upper + PRIOR, lower + PRIOR) - betaln(PRIOR, PRIOR)
    return float((of_labels + of_features.sum()) / n)


def latent_class_partition(B: Any, start: Ints, k: int) -> Floats:
    """Return probabilities of latent classes that begin as a partition (expectation maximisation).

    The clusters keep the numbers that they have in the partition.
    """
    R = softened(start, k, TRUST)
    for _ in range(MAX_ITER):
        sizes = R.sum(axis=0)
        upper = (np.asarray((B.T @ R).T) + PRIOR) / (sizes[:, None] + 2 * PRIOR)
        of_none = np.log(sizes + 1) + np.log1p(-upper).sum(axis=1)  # no feature has the upper value
        before, R = R, softmax(np.asarray(B @ logit(upper).T) + of_none, axis=1)
        if np.abs(R - before).mean() < TOL:
            break
    return R
