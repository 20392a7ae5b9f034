"""Warm starts: what one solve leaves behind for the next one on nearly the same matrix.

Everything here is a shortcut: a solver that finds nothing, or what belongs to another matrix, takes
longer and gives the same answer within its tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, hstack, issparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats, Ints

# Entries of the columns of one resolvent that are cached, 120 MB; a single call may need more.
MOST_ENTRIES = 10_000_000


@dataclass(eq=False)
class EigenWarmStart:
    """Where the next search for eigenvectors of nearly the same matrix begins.

    `linkwise.linalg.eigen.largest` reads it and writes its own findings to it. Several threads may
    share one: every field is replaced as a whole, and any combination of fields is a valid start.
    """

    vectors: Floats | None = None  # approximate eigenvectors in columns, in any order
    row_order: Ints | None = None  # rows in an order of fast products; empty if theirs is as good
    # Lower bound of the spectrum, about its largest value, and about its largest magnitude.
    spectrum: tuple[float, float, float] | None = None
    cutoffs: dict[int, float] = field(default_factory=dict)  # of a filter, by number of pairs

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return nbytes(self.vectors) + nbytes(self.row_order)


@dataclass(eq=False)
class WarmStarts:
    """Start vectors and columns of earlier solves on one graph, a bounded number of them.

    They are of the normalised adjacency and of the additive normalisation, of the graph or of one
    that constraints have changed; and for each damping and tolerance, indices of columns and these
    columns of ``(I - alpha S)^-1``.

    Examples
    --------
    >>> warm = WarmStarts()
    >>> warm.adjacency.vectors = np.eye(3)[:, :2]
    >>> warm.nbytes
    48
    """

    adjacency: EigenWarmStart = field(default_factory=EigenWarmStart)
    additive: EigenWarmStart = field(default_factory=EigenWarmStart)
    resolvents: dict[tuple[float, float], tuple[Ints, csc_array]] = field(default_factory=dict)

    def columns(
        self, key: tuple[float, float], wanted: Ints, compute: Callable[[Ints], Any]
    ) -> csc_array:
        """Return the columns `wanted` (ascending) of a resolvent; they must not be changed.

        `key` is its damping and tolerance. ``compute(indices)`` returns columns that are not cached
        as a sparse matrix. If all are too many to cache, only the wanted ones are.
        """
        if key not in self.resolvents:
            found = csc_array(compute(wanted))
            self.resolvents[key] = (wanted, found)
            return found
        have, cached = self.resolvents[key]
        missing = np.setdiff1d(wanted, have)
        if missing.size:
            cached = csc_array(hstack([cached, csc_array(compute(missing))], format="csc"))
            have = np.append(have, missing)
        position = np.argsort(have, kind="stable")
        found = csc_array(cached[:, position[np.searchsorted(have[position], wanted)]])
        if missing.size:
            self.resolvents[key] = (wanted, found) if cached.nnz > MOST_ENTRIES else (have, cached)
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        columns = sum(nbytes(part) for pair in self.resolvents.values() for part in pair)
        return self.adjacency.nbytes + self.additive.nbytes + columns

    def table(self, counted: Floats | None = None) -> list[tuple[str, str, int]]:
        """Return name, size in words and bytes of each start; `counted` are counted elsewhere."""
        rows = []
        for name, start in (("adjacency", self.adjacency), ("additive", self.additive)):
            if start.vectors is not None:
                n_bytes = start.nbytes - (nbytes(counted) if start.vectors is counted else 0)
                rows.append((f"warm: {name}", f"{start.vectors.shape[1]} vectors", n_bytes))
        for (damping, _), (columns, matrix) in self.resolvents.items():
            n_bytes = nbytes(columns) + nbytes(matrix)
            rows.append((f"warm: resolvent {damping:g}", f"{columns.size} columns", n_bytes))
        return rows


def nbytes(matrix: Any) -> int:
    """Return the bytes of an array or a compressed sparse matrix; 0 for None."""
    if matrix is None:
        return 0
    if issparse(matrix):
        return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)
    return int(matrix.nbytes)
