"""The door for sparse matrices: no compiled code sees an index outside the matrix."""

from __future__ import annotations

from copy import copy
from typing import Any

from scipy.sparse import csr_array, issparse

HAVE_A_CHECK = {"csr", "csc", "bsr"}


def checked_format(A: Any, name: str = "X") -> Any:
    """Return what was given; a sparse matrix only if its stored parts fit together.

    A row, column or pointer that lies outside would be followed by compiled code to memory of
    something else, and end the process.

    Raises
    ------
    ValueError
        If an index or a pointer of a sparse matrix is wrong.
    """
    if not issparse(A):
        return A
    try:
        return _checked(A)
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(
            f"{name} is a damaged sparse matrix of shape {A.shape}: {error}. Build it again, for "
            "example by scipy.sparse.coo_array((values, (rows, columns)), shape=...).tocsr()."
        ) from error


def _checked(A: Any) -> Any:
    if A.format == "coo":
        _check_entries(A)
        return A
    # The check of scipy cuts off unused memory, from a matrix that is the user's.
    parts = copy(A) if A.format in HAVE_A_CHECK else csr_array(A)
    parts.check_format(full_check=True)
    return A if A.format in HAVE_A_CHECK else parts


def _check_entries(A: Any) -> None:
    for axis, places, length in zip(("row", "column"), (A.row, A.col), A.shape, strict=True):
        if places.size != A.data.size:
            raise ValueError(f"{places.size} {axis} indices for {A.data.size} values")
        if places.size and not 0 <= places.min() <= places.max() < length:
            wrong = places.min() if places.min() < 0 else places.max()
            raise ValueError(f"{axis} index {wrong} is outside")
