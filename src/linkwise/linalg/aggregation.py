r"""The coarse level of a symmetric matrix: its eigenvectors approximate those of the matrix.

Eigenvectors near the top of a graph's spectrum hardly change along strong edges. Vertices that
these join are merged into aggregates, and the matrix is restricted to the vectors that are
multiples of one smooth `profile` on every aggregate: :math:`P^T A P` with orthonormal columns of
:math:`P`, about one for eight vertices (smoothed aggregation without the smoothing: Vanek, Mandel
& Brezina 1996, *Algebraic multigrid by smoothed aggregation*). Its values lie within the spectrum
of the matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from linkwise._jit import njit

if TYPE_CHECKING:
    from linkwise._types import Floats, Int64s, UInt32s

    Matrix = tuple[Int64s, UInt32s, Floats]  # indptr, indices, data

LARGEST = 8  # vertices of an aggregate, before the others are assigned
# An edge is strong if its entry is this share of the geometric mean of what its endpoints lack to
# the top of the spectrum. A vertex of low degree may have an eigenvector of its own there (of the
# ratio cut), and stays alone.
STRONG = 0.02
SMOOTHINGS = 4  # products that make the profile
STALLED = 0.5  # a coarse level with more than this share of the vertices does not pay


class Aggregates(NamedTuple):
    """The aggregate of each vertex, its entry of `P`, and ``P' A P``."""

    of: UInt32s
    weight: Floats
    matrix: Matrix

    def restricted(self, block: Any) -> Any:
        """Return ``P' X`` for a dense or sparse block of vectors."""
        n, m = self.of.size, self.matrix[0].size - 1
        P = csr_array((self.weight, self.of.astype(np.int64), np.arange(n + 1)), shape=(n, m))
        return P.T @ block

    def prolong(self, block: Floats, out: Floats) -> None:
        """Write ``P X`` to `out`."""
        np.take(block, self.of, axis=0, out=out, mode="clip")  # the other modes make a copy
        out *= self.weight[:, None]


def aggregated(matrix: Matrix, bounds: tuple[float, float]) -> Aggregates | None:
    """Merge vertices along strong positive entries; None if that hardly makes the matrix smaller.

    Parameters
    ----------
    matrix : tuple of ndarray
        `indptr`, `indices` (unsigned) and `data` of a symmetric matrix.
    bounds : tuple of float
        About the smallest and the largest eigenvalue.
    """
    indptr, indices, data = matrix
    low, high = bounds
    missing = np.maximum(high - _diagonal(*matrix), 1e-3 * (high - low))
    least = np.sqrt(STRONG * missing)
    of = _gathered(indptr, indices, data, least)
    n_aggregates = _joined(matrix, least, of)
    if n_aggregates > STALLED * of.size:
        return None
    profile = np.ones(of.size)
    for _ in range(SMOOTHINGS):
        profile = np.abs(_moved(matrix, profile, low)) / (high - low)
    profile = np.maximum(profile, 1e-3 * profile.mean())
    weight = profile / np.sqrt(np.bincount(of, profile**2, minlength=n_aggregates))[of]
    return Aggregates(of, weight, _restricted(matrix, of, weight, n_aggregates=n_aggregates))


@njit(cache=True, nogil=True)
def _diagonal(indptr, indices, data):  # type: ignore[no-untyped-def]
    found = np.zeros(indptr.size - 1)
    for i in range(found.size):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] == i:
                found[i] += data[e]
    return found


@njit(cache=True, nogil=True, fastmath={"contract"})
def _moved(matrix, x, low):  # type: ignore[no-untyped-def]
    """Return ``(A - low I) x``."""
    indptr, indices, data = matrix
    out = np.empty(x.size)
    for i in range(x.size):
        total = -low * x[i]
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] * x[indices[e]]
        out[i] = total
    return out


@njit(cache=True, nogil=True)
def _gathered(indptr, indices, data, least):  # type: ignore[no-untyped-def]
    """Return the aggregate of each vertex, `n` for vertices that have none yet.

    Vertices in turn take their strongest unassigned neighbours, if most of the strong ones are
    unassigned.
    """
    n = indptr.size - 1
    unassigned = np.uint32(n)
    of = np.full(n, unassigned, np.uint32)
    n_aggregates = 0
    for i in range(n):
        if of[i] != unassigned:
            continue
        n_strong, n_free = 0, 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j != i and data[e] >= least[i] * least[j]:
                n_strong += 1
                n_free += of[j] == unassigned
        if 2 * n_free < n_strong:
            continue
        of[i] = n_aggregates
        for _ in range(min(LARGEST - 1, n_free)):
            best, at = 0.0, -1
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                strong = data[e] >= least[i] * least[j] and data[e] > best
                if strong and of[j] == unassigned:
                    best, at = data[e], j
            if at >= 0:
                of[at] = n_aggregates
        n_aggregates += 1
    return of


@njit(cache=True, nogil=True)
def _joined(matrix, least, of):  # type: ignore[no-untyped-def]
    """Assign the others to the aggregate of a strongest neighbour; return how many there are.

    A vertex without a strong neighbour is an aggregate of its own.
    """
    indptr, indices, data = matrix
    n = of.size
    unassigned = np.uint32(n)
    gathered = 0
    for i in range(n):
        if of[i] != unassigned:
            gathered = max(gathered, of[i] + 1)
    n_aggregates = gathered
    for i in range(n):
        if of[i] != unassigned:
            continue
        best, at = 0.0, unassigned
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if of[j] < gathered and data[e] > best and data[e] >= least[i] * least[j]:
                best, at = data[e], of[j]
        if at == unassigned:
            at = np.uint32(n_aggregates)
            n_aggregates += 1
        of[i] = at
    return n_aggregates


def _restricted(matrix: Matrix, of: Any, weight: Floats, *, n_aggregates: int) -> Matrix:
    members = np.argsort(of, kind="stable").astype(np.int64)
    starts = np.append(0, np.cumsum(np.bincount(of, minlength=n_aggregates))).astype(np.int64)
    counts = _counted(matrix, of, members, starts)
    indptr = np.append(0, np.cumsum(counts)).astype(np.int64)
    indices, data = np.empty(indptr[-1], np.uint32), np.zeros(indptr[-1])
    _filled(matrix, of, weight, (members, starts), (indptr, indices, data))
    return indptr, indices, data


@njit(cache=True, nogil=True)
def _counted(matrix, of, members, starts):  # type: ignore[no-untyped-def]
    """Return the number of entries in each row of the coarse matrix."""
    indptr, indices, _ = matrix
    n_aggregates = starts.size - 1
    last = np.full(n_aggregates, -1, np.int64)
    counts = np.zeros(n_aggregates, np.int64)
    for c in range(n_aggregates):
        for a in range(starts[c], starts[c + 1]):
            i = members[a]
            for e in range(indptr[i], indptr[i + 1]):
                other = of[indices[e]]
                if last[other] != c:
                    last[other] = c
                    counts[c] += 1
    return counts


@njit(cache=True, nogil=True)
def _filled(matrix, of, weight, lists, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Write the entries of the coarse matrix to `out`."""
    indptr, indices, data = matrix
    members, starts = lists
    place = np.full(starts.size - 1, -1, np.int64)
    at = 0
    for c in range(starts.size - 1):
        first = at
        for a in range(starts[c], starts[c + 1]):
            i = members[a]
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                other = of[j]
                if place[other] < first:
                    place[other] = at
                    out[1][at] = other
                    at += 1
                out[2][place[other]] += weight[i] * data[e] * weight[j]
