"""From samples to a similarity graph. Knows nothing of constraints or clusters."""

from __future__ import annotations

from linkwise.graph.affinity import Affinity
from linkwise.graph.approximate import ApproximateNeighbors
from linkwise.graph.neighbors import DENSE_LIMIT
from linkwise.graph.precomputed import check_affinity
from linkwise.graph.prepared import Prepared

__all__ = ["DENSE_LIMIT", "Affinity", "ApproximateNeighbors", "Prepared", "check_affinity"]
