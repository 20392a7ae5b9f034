r"""Products ``G T G'`` that are never formed: few columns of a resolvent, values where needed.

The resolvent of a random walk, :math:`(I - \alpha S)^{-1}`, decays away from the diagonal like
:math:`\alpha` to the power of the distance. Its columns at few vertices are therefore sparse up
to a tolerance, and pushing finds them without touching the rest of the graph (Andersen, Chung
& Lang 2006, *Local graph partitioning using PageRank vectors*).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.special import ellipj, ellipkm1

from linkwise._jit import njit

if TYPE_CHECKING:
    from linkwise._types import AnyInts, Floats


# Rows of a symmetric product computed at a time.
ROWS_PER_BLOCK = 256
# Columns of a resolvent that are pushed into one list.
COLUMNS_PER_LIST = 1_024


def resolvent_columns(
    S: csr_array, profile: Floats, columns: AnyInts, *, alpha: float, tol: float
) -> csr_array:
    r"""Return columns of :math:`P = (I - \alpha S)^{-1}`, entries too small to matter left out.

    A vertex with residual above ``tol * profile`` keeps it and hands :math:`\alpha` of it on to its
    neighbours, until no such vertex is left. `S` is symmetric and non-negative, and `profile`
    positive with ``S @ profile <= profile``: the square roots of the degrees for a normalised
    adjacency. The answer is never above `P`, and below it in each entry by at most
    ``tol / (1 - alpha) * profile``.
    """
    given = (S.indptr, S.indices, alpha * S.data, tol * profile)
    chosen = np.asarray(columns, dtype=np.int64)
    # Lists of fixed size: one that held all columns would double while it grows.
    parts = [
        _push(*given, chosen[first : first + COLUMNS_PER_LIST])
        for first in range(0, max(chosen.size, 1), COLUMNS_PER_LIST)
    ]
    sizes = np.concatenate([np.diff(part[0]) for part in parts])
    indices, data = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    del parts
    indptr = np.append(0, np.cumsum(sizes))
    G = csr_array(csc_array((data, indices, indptr), shape=(S.shape[0], chosen.size)))
    G.sort_indices()
    return G


@njit(cache=True)
def _push(indptr, indices, data, least, columns):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    n = least.size
    x, r = np.zeros(n), np.zeros(n)
    queue, queued = np.empty(n + 1, dtype=np.int32), np.zeros(n, dtype=np.bool_)
    met, n_met = np.empty(n, dtype=np.int32), 0
    seen = np.zeros(n, dtype=np.bool_)
    out_ptr = np.zeros(columns.size + 1, dtype=np.int64)
    out_index, out_value = np.empty(1024, dtype=np.int32), np.empty(1024)
    filled = 0
    for c in range(columns.size):
        start = columns[c]
        r[start], seen[start], queued[start] = 1.0, True, True
        met[0], n_met = start, 1
        queue[0], head, tail = start, 0, 1
        while head != tail:
            u = queue[head]
            head = head + 1 if head < n else 0
            queued[u] = False
            kept = r[u]
            r[u] = 0.0
            x[u] += kept
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                r[v] += data[e] * kept
                if not seen[v]:
                    seen[v] = True
                    met[n_met] = v
                    n_met += 1
                if r[v] > least[v] and not queued[v]:
                    queued[v] = True
                    queue[tail] = v
                    tail = tail + 1 if tail < n else 0
        if filled + n_met > out_index.size:
            size = max(2 * out_index.size, filled + n_met)
            grown_index, grown_value = np.empty(size, dtype=np.int32), np.empty(size)
            grown_index[:filled], grown_value[:filled] = out_index[:filled], out_value[:filled]
            out_index, out_value = grown_index, grown_value
        for m in range(n_met):
            v = met[m]
            if x[v] > 0:
                out_index[filled], out_value[filled] = v, x[v]
                filled += 1
            x[v], r[v], seen[v] = 0.0, 0.0, False
        out_ptr[c + 1] = filled
    return out_ptr, out_index[:filled].copy(), out_value[:filled].copy()


def values_on(G: csr_array, T: csr_array, pattern: csr_array) -> Floats:
    """Return the values of the symmetric ``G T G'`` at the stored entries of `pattern`, in order.

    `G` is sparse, of shape (n, c). For each row of `pattern`, the cost is one product with `T` and
    one sparse inner product an entry.
    """
    parts = (G.indptr, G.indices, G.data, T.indptr, T.indices, T.data)
    return np.asarray(_values_on(*parts, pattern.indptr, pattern.indices, T.shape[0]))


@njit(cache=True)
def _values_on(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917
    g_ptr, g_index, g_value, t_ptr, t_index, t_value, ptr, index, width
):
    values = np.zeros(index.size)
    h, met = np.zeros(width), np.empty(width, dtype=np.int64)
    seen = np.zeros(width, dtype=np.bool_)
    for i in range(ptr.size - 1):
        if ptr[i] == ptr[i + 1]:
            continue
        n_met = 0
        for a in range(g_ptr[i], g_ptr[i + 1]):
            c = g_index[a]
            for b in range(t_ptr[c], t_ptr[c + 1]):
                d = t_index[b]
                h[d] += g_value[a] * t_value[b]
                if not seen[d]:
                    seen[d] = True
                    met[n_met] = d
                    n_met += 1
        if n_met == 0:
            continue
        for e in range(ptr[i], ptr[i + 1]):
            j = index[e]
            total = 0.0
            for a in range(g_ptr[j], g_ptr[j + 1]):
                total += g_value[a] * h[g_index[a]]
            values[e] = total
        for m in range(n_met):
            h[met[m]], seen[met[m]] = 0.0, False
    return values


def symmetric_product(A: Floats, B: Floats) -> Floats:
    """Return ``A @ B`` when it is known to be symmetric: half the work, and exact symmetry."""
    n = A.shape[0]
    product = np.empty((n, n))
    for first in range(0, n, ROWS_PER_BLOCK):
        rows = slice(first, min(first + ROWS_PER_BLOCK, n))
        product[rows, : rows.stop] = A[rows] @ B[:, : rows.stop]
        corner = product[rows, rows]
        product[rows, rows] = (corner + corner.T) / 2
        product[:first, rows] = product[rows, :first].T
    return product


class CauchySum(NamedTuple):
    """``1 / (x + y)`` as ``sum_kl weights_kl / ((x + shifts_k) (y + shifts_l))``.

    The weights are symmetric and positive definite.
    """

    shifts: Floats
    weights: Floats
    error: float  # relative, at worst over the interval


def cauchy_sum(low: float, high: float, tol: float) -> CauchySum:
    r"""Separate the kernel ``1 / (x + y)`` on ``[low, high]``, with relative error below `tol`.

    Interpolation at shifts :math:`s_k` leaves the relative error :math:`r(x) \, r(y)` with
    :math:`r(x) = \prod_k (x - s_k) / (x + s_k)`. Its maximum is least for the shifts of
    Wachspress, which are Zolotarev's points; they are the parameters of the ADI iteration.

    Examples
    --------
    >>> found = cauchy_sum(0.2, 2.2, tol=3e-3)
    >>> len(found.shifts), found.error < 3e-3
    (3, True)
    """
    x = np.geomspace(low, high, 400)
    for m in range(1, 64):
        shifts = _wachspress(low, high, m)
        r = np.prod((x[:, None] - shifts) / (x[:, None] + shifts), axis=1)
        error = float(np.max(r**2))
        if error <= tol:
            break
    weights = np.linalg.inv(1 / np.add.outer(shifts, shifts))
    return CauchySum(shifts, (weights + weights.T) / 2, error)


def _wachspress(low: float, high: float, m: int) -> Floats:
    modulus = (low / high) ** 2
    u = (2 * np.arange(1, m + 1) - 1) / (2 * m) * ellipkm1(modulus)
    return np.asarray(high * ellipj(u, 1 - modulus)[2])
