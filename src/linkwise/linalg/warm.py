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

# Entries of the columns of one resolvent that are kept, 120 MB; a single call may need more.
MOST_ENTRIES = 10_000_000


@dataclass(eq=False)
class EigenWarmStart:
    """Where the next search for eigenvectors of nearly the same matrix begins.

    `linkwise.linalg.eigen.largest` reads it and writes its own findings to it. Several threads may
    share one: every field is replaced as a whole, and any combination of fields is a valid start.

    Parameters
    ----------
    vectors : ndarray of shape (n, s), optional
        Approximate eigenvectors, in any order.
    row_order : ndarray of shape (n,), optional
        An order of the rows in which products are fast; empty if the given order is as good.
    spectrum : tuple of float, optional
        Lower bound of the spectrum, about its largest value, and about its largest magnitude.
    cutoffs : dict of int to float
        For a number of pairs, the eigenvalue below which a filter damps.
    """

    vectors: Floats | None = None
    row_order: Ints | None = None
    spectrum: tuple[float, float, float] | None = None
    cutoffs: dict[int, float] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return nbytes(self.vectors) + nbytes(self.row_order)


@dataclass(eq=False)
class WarmStarts:
    """Start vectors and columns of earlier solves on one graph, a bounded number of them.

    Parameters
    ----------
    adjacency : EigenWarmStart
        Of the normalised adjacency, of the graph or of a graph that constraints have changed.
    additive : EigenWarmStart
        The same of the additive normalisation.
    resolvents : dict
        For each damping and tolerance: indices of columns, and these columns of
        ``(I - alpha S)^-1``.

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
        """Return columns of a resolvent, computing those that are not there yet.

        They are kept in turn; when that gets too much, only the wanted ones are.

        Parameters
        ----------
        key : tuple of float
            Damping and tolerance.
        wanted : ndarray of int
            Columns to return, in increasing order. Do not change what comes back.
        compute : callable
            ``compute(indices)`` returns these columns, as a sparse matrix.
        """
        if key not in self.resolvents:
            found = csc_array(compute(wanted))
            self.resolvents[key] = (wanted, found)
            return found
        have, kept = self.resolvents[key]
        missing = np.setdiff1d(wanted, have)
        if missing.size:
            kept = csc_array(hstack([kept, csc_array(compute(missing))], format="csc"))
            have = np.append(have, missing)
        position = np.argsort(have, kind="stable")
        found = csc_array(kept[:, position[np.searchsorted(have[position], wanted)]])
        self.resolvents[key] = (wanted, found) if kept.nnz > MOST_ENTRIES else (have, kept)
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
