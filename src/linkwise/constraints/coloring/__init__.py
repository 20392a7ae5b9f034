"""Colouring the graph of cannot-links: clusters that satisfy all of them.

Contract every must-link group to a vertex. Then a clustering that satisfies all certain pairs
is a proper colouring of the cannot-links between groups. Nothing here knows samples,
similarities or messages; `feasible` asks and explains.

Each module knows only the ones above it::

    kernels       compiled: peeling, DSATUR, tabu search, annealing, Kempe chains
    exhaustive    compiled: odd rings, cliques, exact colouring
    search        CannotLinkGraph, its core, and proper colourings guided by costs
    linear        proper colourings of small total cost
    certificates  proofs that a number of colours does not suffice
"""

from __future__ import annotations

from linkwise.constraints.coloring.certificates import (
    Certificate,
    color_exhaustively,
    colors_needed,
    find_certificate,
    large_clique,
)
from linkwise.constraints.coloring.linear import assign
from linkwise.constraints.coloring.search import (
    CannotLinkGraph,
    Coloring,
    Peeling,
    find_coloring,
    graph_of,
    guided_coloring,
    pairs_of,
    peel,
)

__all__ = [
    "CannotLinkGraph",
    "Certificate",
    "Coloring",
    "Peeling",
    "assign",
    "color_exhaustively",
    "colors_needed",
    "find_certificate",
    "find_coloring",
    "graph_of",
    "guided_coloring",
    "large_clique",
    "pairs_of",
    "peel",
]
