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
from linkwise.linalg.solve import resolvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import AnyInts, Floats, Ints
    from linkwise.linalg.blocks import BlockMatrix


# Rows of a symmetric product computed at a time.
ROWS_PER_BLOCK = 256
# Columns of a resolvent that are pushed into one list.
COLUMNS_PER_LIST = 1_024
# Pushing takes about 1 / (tol (1 - alpha)) steps a column; linear systems do not care. E2CP with 40
# constrained samples of 120: at alpha = 0.9999 3.4 CPU seconds by pushing, 0.4 by systems.
MOST_SWEEPS = 1_000  # passes over all edges, for one column
STEPS_PER_CALL = 200_000_000  # edges passed in one compiled call, which no interrupt stops
ENTRIES_PER_BLOCK = 4_000_000  # of columns that are solved together


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
    most = min(MOST_SWEEPS * (S.indices.size + 1), STEPS_PER_CALL)
    parts: list[tuple[Ints, Ints, Floats]] = []
    n_done = 0
    while n_done < chosen.size:
        # Lists of fixed size: one that held all columns would double while it grows. And calls
        # of a second: in between, an interrupt is heard.
        wanted = chosen[n_done : n_done + COLUMNS_PER_LIST]
        pointers, index, value, n_found = _push(*given, wanted, most, STEPS_PER_CALL)
        filled = pointers[n_found]
        # Copies: the lists were made for more.
        parts.append((pointers[: n_found + 1], index[:filled].copy(), value[:filled].copy()))
        n_done += n_found
        if n_found == 0:  # alpha is so near to 1 that all columns reach far
            parts += _solved_columns(S, tol * profile, chosen[n_done:], alpha=alpha)
            n_done = chosen.size
    sizes = [np.diff(pointers) for pointers, *_ in parts]
    indptr = np.concatenate(([0], *sizes)).cumsum()
    indices = np.concatenate([np.zeros(0, np.int32), *(part[1] for part in parts)])
    data = np.concatenate([np.zeros(0), *(part[2] for part in parts)])
    del parts
    G = csr_array(csc_array((data, indices, indptr), shape=(S.shape[0], chosen.size)))
    G.sort_indices()
    return G


def columns_from_blocks(
    S: BlockMatrix, profile: Floats, columns: AnyInts, *, alpha: float, tol: float
) -> csr_array:
    """Return what `resolvent_columns` does, for a matrix in blocks elsewhere.

    Pushing touches few rows, and these are fetched. A vertex that is reached and whose row is not
    here yet keeps all that arrives, and its row is fetched for the next attempt.
    """
    here = np.unique(columns)
    near = S.only_rows(here)
    while True:
        G = resolvent_columns(near, profile, columns, alpha=alpha, tol=tol)
        missing = np.setdiff1d(np.flatnonzero(np.diff(G.indptr)), here, assume_unique=True)
        if not missing.size:
            return G
        # One step ahead: most of what these reach is asked for next.
        near = csr_array(near + S.only_rows(missing))
        here = np.union1d(here, missing)


def _solved_columns(
    S: csr_array, least: Floats, columns: AnyInts, *, alpha: float
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield columns of the resolvent, without entries below `least`, from linear systems."""
    n = S.shape[0]
    width = max(1, ENTRIES_PER_BLOCK // n)
    for first in range(0, columns.size, width):
        block = columns[first : first + width]
        B = np.zeros((n, block.size))
        B[block, np.arange(block.size)] = 1.0
        X = resolvent(S, alpha, B).x
        G = csc_array(np.where(least[:, None] < X, X, 0.0))
        yield G.indptr, G.indices, G.data


@njit(cache=True, nogil=True)
def _push(  # type: ignore[no-untyped-def]  # noqa: PLR0915, PLR0917
    indptr, indices, data, least, columns, most, budget
):
    """Push columns until `budget` edges were passed; return lists of them, and how many they are.

    None, if the first one takes more than `most` edges.
    """
    n = least.size
    x, r = np.zeros(n), np.zeros(n)
    queue, queued = np.empty(n + 1, dtype=np.int32), np.zeros(n, dtype=np.bool_)
    met, n_met = np.empty(n, dtype=np.int32), 0
    seen = np.zeros(n, dtype=np.bool_)
    out_ptr = np.zeros(columns.size + 1, dtype=np.int64)
    out_index, out_value = np.empty(1024, dtype=np.int32), np.empty(1024)
    filled = n_done = n_steps = 0
    for c in range(columns.size):
        if n_steps > budget:
            break
        start = columns[c]
        n_steps_before = n_steps
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
            n_steps += indptr[u + 1] - indptr[u]
            if n_steps - n_steps_before > most:
                return out_ptr, out_index, out_value, n_done
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
            for at in range(filled):  # not as slices: numba would compile its strings for them
                grown_index[at], grown_value[at] = out_index[at], out_value[at]
            out_index, out_value = grown_index, grown_value
        for m in range(n_met):
            v = met[m]
            if x[v] > 0:
                out_index[filled], out_value[filled] = v, x[v]
                filled += 1
            x[v], r[v], seen[v] = 0.0, 0.0, False
        out_ptr[c + 1] = filled
        n_done += 1
    return out_ptr, out_index, out_value, n_done


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
