"""How good is a clustering: agreement with a truth, quality of the cut, violated constraints.

Scores over all points flatter a method that merely satisfies its constraints: the constrained
points are answers it was given. Scores of agreement and cuts therefore take
``outside=constraints`` (or a boolean mask) and then look at the *free points* only, those in no
constraint, as if the others did not exist.

Labels may be any integers or strings, in the truth and in the clustering; only equality counts.
In particular -1 is a label like any other: noise points are one cluster.
"""

from __future__ import annotations

from linkwise.constraints.table import Violations
from linkwise.metrics.agreement import (
    PairScores,
    accuracy,
    adjusted_rand,
    clustering_error,
    nmi,
    pairwise_f,
    rand_index,
)
from linkwise.metrics.cuts import cut, ncut, rcut
from linkwise.metrics.summary import scores, violated_count, violated_share

__all__ = [
    "PairScores",
    "Violations",
    "accuracy",
    "adjusted_rand",
    "clustering_error",
    "cut",
    "ncut",
    "nmi",
    "pairwise_f",
    "rand_index",
    "rcut",
    "scores",
    "violated_count",
    "violated_share",
]
