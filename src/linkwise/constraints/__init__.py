"""Constraints: what is known about pairs of samples, and what follows from it.

The rooms, each of which knows only the ones above it::

    validation   input -> arrays, or an error that names the row
    kernels      compiled searches on graphs
    implied      the pairs that partial labels imply, counted rather than listed
    logic        components and contradictions; on plain arrays
    conflict     Conflict: one contradiction and its proof
    closure      Closure: everything that certain pairs entail
    sampling     random pairs and folds
    io           columns of a file or frame -> pairs
    coloring     colouring the cannot-links between groups, guided by costs
    certificates proofs that a number of colours does not suffice
    proof        from edges between groups to the user's own pairs
    feasible     the order of work, and the errors
    value        Constraints
"""

from __future__ import annotations

from linkwise.constraints.closure import Closure
from linkwise.constraints.conflict import Conflict
from linkwise.constraints.suspect import Suspect
from linkwise.constraints.table import PairTable
from linkwise.constraints.value import Constraints

__all__ = ["Closure", "Conflict", "Constraints", "PairTable", "Suspect"]
