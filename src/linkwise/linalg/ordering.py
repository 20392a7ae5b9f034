"""An order of the vertices in which neighbours are near each other in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import reverse_cuthill_mckee

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from linkwise._types import Int64s, Ints

# Bytes of a block that the products of one row with its neighbours may be spread over: the second
# level cache of one core. Nothing is gained where they are nearer already.
NEAR = 1_000_000
# The order costs some ten products: it must bring neighbours nearer by the factor, or make this
# share more of them near. In many dimensions few get near and most stay far, which the mean does
# not show: on the graph of 630,000 digits it falls by a third, and a product takes half the time.
WORTH, WORTH_SHARE = 1.5, 0.1
SAMPLE = 100_000  # entries that are looked at


def local_order(A: csr_array, row_bytes: int) -> Ints | None:
    """Return the reverse Cuthill-McKee order of a symmetric matrix, or None if it does not pay.

    `row_bytes` are the bytes of a row of the blocks that `A` will be multiplied with.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> local_order(csr_array([[0.0, 1.0], [1.0, 0.0]]), 96) is None
    True
    """
    n = A.shape[0]
    if n * row_bytes <= NEAR or A.nnz == 0:
        return None
    rows, columns = _sample(A)
    before = np.abs(rows - columns)
    if before.mean() * row_bytes <= NEAR:
        return None
    order = np.asarray(reverse_cuthill_mckee(A, symmetric_mode=True), dtype=np.intp)
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    after = np.abs(place[rows] - place[columns])
    gain = _near(after, row_bytes) - _near(before, row_bytes)
    return order if before.mean() >= WORTH * after.mean() or gain >= WORTH_SHARE else None


def _near(distances: Int64s, row_bytes: int) -> float:
    return float((distances * row_bytes <= NEAR).mean())


def _sample(A: csr_array) -> tuple[Int64s, Int64s]:
    """Return rows and columns of evenly spaced entries."""
    entries = np.linspace(0, A.nnz - 1, min(A.nnz, SAMPLE)).astype(np.int64)
    rows = np.searchsorted(A.indptr, entries, side="right") - 1
    return rows.astype(np.int64), A.indices[entries].astype(np.int64)
