"""Constraints: what is known about pairs of samples, and what follows from it.

Each module knows only the ones above it::

    table        PairTable: pairs, sign, belief, row; the pairs that partial labels imply
    validation   input -> arrays, or an error that names the row
    kernels      compiled searches on graphs
    conflict     Conflict: one contradiction and its proof; Suspect: one that may be wrong
    logic        components and contradictions; on plain arrays
    closure      Closure: everything that certain pairs entail
    sampling     random pairs and folds
    formats      file formats of pairs
    parsing      columns of a file or frame -> PairTable
    coloring/    colouring the cannot-links between groups, and proofs that it is impossible
    proof        from edges between groups to the user's own pairs
    messages     infeasible constraints in words
    feasible     is there a clustering that satisfies everything? The errors
    value        Constraints
"""

from __future__ import annotations

from linkwise.constraints.closure import Closure
from linkwise.constraints.conflict import Conflict, Suspect
from linkwise.constraints.table import PairTable
from linkwise.constraints.value import Constraints

__all__ = ["Closure", "Conflict", "Constraints", "PairTable", "Suspect"]
