"""From vectors to labels: k-means, signs, thresholds and recursive bisection.

The last step of every spectral method. The functions work on plain arrays: they neither
check their input nor warn, and draw only from the generator they are handed. A graph `W` is
symmetric, a ``csr_array`` or a dense array.
"""

from __future__ import annotations

from linkwise.partition.bisection import Bisection, recursive_bisection
from linkwise.partition.labels import canonical, sign_split, unit_rows
from linkwise.partition.lloyd import KMeansPartition, kmeans
from linkwise.partition.threshold import Threshold, best_threshold

__all__ = [
    "Bisection",
    "KMeansPartition",
    "Threshold",
    "best_threshold",
    "canonical",
    "kmeans",
    "recursive_bisection",
    "sign_split",
    "unit_rows",
]
