"""Memory: what one solve leaves behind for the next one on nearly the same matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, hstack

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from linkwise._types import Ints


__all__ = ["Memory"]

# Entries of the columns of one matrix that are kept, 120 MB; a single call may need more.
MOST_ENTRIES = 10_000_000


class Memory:
    """Start vectors and columns of earlier solves, a bounded number of them.

    Everything in it is a shortcut: a solve that finds nothing here, or something of another
    problem, takes longer and gives the same answer within its tolerance.

    Examples
    --------
    >>> memory = Memory()
    >>> memory.recall("walk") is None
    True
    >>> memory.keep("walk", np.eye(3)[:, :2])
    >>> memory.recall("walk").shape
    (3, 2)
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def recall(self, name: Hashable) -> Any:
        """Return what was kept under a name, or None."""
        return self._kept.get(name)

    def keep(self, name: Hashable, value: Any) -> None:
        """Keep a value under a name, in place of the one before."""
        self._kept[name] = value

    def columns(self, name: Hashable, wanted: Ints, compute: Callable[[Ints], Any]) -> csc_array:
        """Return columns of a sparse matrix, computing those that were not kept.

        They are kept in turn; when that gets too much, only the wanted ones are.

        Parameters
        ----------
        name : hashable
            Which matrix: all that its columns depend on.
        wanted : ndarray of int
            Columns to return, in increasing order.
        compute : callable
            ``compute(indices)`` returns these columns, as a sparse matrix.
        """
        have, kept = self._kept.get(name, (np.empty(0, dtype=np.intp), None))
        missing = np.setdiff1d(wanted, have)
        if missing.size:
            new = csc_array(compute(missing))
            kept = new if kept is None else csc_array(hstack([kept, new], format="csc"))
            have = np.append(have, missing)
            self._kept[name] = (have, kept)
        if kept is None:
            return csc_array(compute(wanted))
        place = np.argsort(have, kind="stable")
        found = csc_array(kept[:, place[np.searchsorted(have[place], wanted)]])
        if kept.nnz > MOST_ENTRIES:
            self._kept[name] = (wanted, found)
        return found
