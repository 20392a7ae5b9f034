"""Thousands of small clusters: records of one person, photos of one face, recordings of one voice.

In the order of the mathematics: `coordinates` of the samples; `logodds` that two of them are one
thing; a `tree` of merges by their mean, made by `kernels`; the `cut` of the tree; `rounds` in which
the metric is learned; `method` puts the answers about pairs in, `estimator` is the method itself.
"""

from linkwise.linkage.estimator import Linkage
from linkwise.linkage.method import LinkedResult, linkage

__all__ = ["Linkage", "LinkedResult", "linkage"]
