"""From vectors to labels: k-means, signs, thresholds and recursive bisection.

The last step of every spectral method. The functions work on plain arrays: they neither
check their input nor warn, and draw only from the generator they are handed. A graph `W` is
symmetric, a ``csr_array`` or a dense array.
"""

from __future__ import annotations

from linkwise._kernels import relabelled
from linkwise.partition.bisection import Bisection, recursive_bisection
from linkwise.partition.lloyd import KMeansPartition, kmeans, spread_seeds, unit_rows
from linkwise.partition.threshold import Threshold, best_threshold, sign_split

__all__ = [
    "Bisection",
    "KMeansPartition",
    "Threshold",
    "best_threshold",
    "kmeans",
    "recursive_bisection",
    "relabelled",
    "sign_split",
    "spread_seeds",
    "unit_rows",
]
