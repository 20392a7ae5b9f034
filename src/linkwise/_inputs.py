"""The door for data: what to pass instead of data of other libraries, and no damaged matrix.

No compiled code sees an index outside a sparse matrix.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from copy import copy
from itertools import islice
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN = 8  # columns in a message
GRAPH = "With affinity='precomputed' pass its adjacency matrix:"
ADVICE = {
    ("anndata", "AnnData"): (
        "an AnnData object. Pass its features, fit(adata.obsm['X_pca']), or with "
        "affinity='precomputed' its graph, fit(adata.obsp['connectivities']). Or in one line: "
        "linkwise.tl.cluster(adata, labels='known')."
    ),
    ("dask", "Array"): (
        "a Dask array. Prepare it: fit(linkwise.distributed.Prepared(X)); or, if it fits into "
        "memory, pass X.compute()."
    ),
    ("networkx", "Graph"): (
        f"a networkx graph. {GRAPH} fit(networkx.to_scipy_sparse_array(graph, weight='weight'))."
    ),
    ("igraph", "Graph"): (
        f"an igraph graph. {GRAPH} fit(graph.get_adjacency_sparse('weight')), or without weights "
        "fit(graph.get_adjacency_sparse())."
    ),
    ("polars", "LazyFrame"): "a lazy frame of polars. Pass its data: fit(X.collect()).",
}
SERIES = ("pandas", "polars")  # modules with a list of this name
HAVE_A_CHECK = {"csr", "csc", "bsr"}


def is_sparse(A: Any) -> bool:
    """Whether something is a sparse matrix, without importing scipy.sparse to find out.

    What nobody has imported nobody can pass. It takes 0.2 s and 20 MB, and whoever reads a table
    needs none of it.
    """
    known = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return known is not None and bool(known(A))


def check_foreign(X: Any) -> None:
    """Raise TypeError if `X` is of another library and no array, with the right call."""
    for cls in type(X).__mro__:
        advice = ADVICE.get((cls.__module__.partition(".")[0], cls.__name__))
        if advice is not None:
            raise TypeError(f"X is {advice}")
        if cls.__module__ == "torch" and cls.__name__ == "Tensor" and not _is_readable(X):
            raise TypeError(
                "X is a torch tensor that NumPy cannot read: it has a gradient, is sparse, is not "
                "in main memory, or has a type that NumPy lacks, such as bfloat16. Pass "
                "fit(X.detach().cpu().double().numpy()), of a sparse one X.to_dense() first."
            )
    if isinstance(X, dict) and not hasattr(X, "shape"):  # a sparse matrix of keys is one too
        raise TypeError("X is a dict. Pass a table: fit(pandas.DataFrame(X)).")
    if _is_list(X) and any(isinstance(value, str) for value in islice(iter(X), SHOWN)):
        raise TypeError(
            "X is a list of texts. Pass numbers, a row per sample; of texts, for example, "
            "fit(sklearn.feature_extraction.text.TfidfVectorizer().fit_transform(X)). See also the "
            'guide "I have text or images".'
        )
    problem = problem_of(X) if isinstance(X, np.ndarray) else None
    if problem is not None:
        what, remedy = problem
        raise ValueError(f"X holds {what}. {remedy}")


def _is_list(X: Any) -> bool:
    """Whether `X` is a list in memory; other things may not be gone through at no cost."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1
    is_series = type(X).__name__ == "Series"
    return isinstance(X, (list, tuple)) or (is_series and type(X).__module__.startswith(SERIES))


def problem_of(X: Any) -> tuple[str, str] | None:
    """Return what an array holds that is read as other numbers than are meant, and the remedy."""
    if X.dtype.kind in "mM":
        return f"dates or durations ({X.dtype})", "Turn them into numbers, such as days."
    if X.dtype.kind == "V":
        return f"records ({X.dtype})", "Put their numbers into columns of one type."
    if np.ma.is_masked(X):
        return "masked values", "Fill them, for example by X.filled(0), or leave these rows out."
    return None


@contextmanager
def checked_numbers() -> Iterator[None]:
    """Let a check of numbers refuse what leaves the range of floating-point numbers, in words."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except OverflowError as error:
        raise ValueError(
            "X holds an integer that is too large for a floating-point number. Correct it."
        ) from error


def _is_readable(tensor: Any) -> bool:
    if tensor.requires_grad or tensor.device.type != "cpu" or tensor.is_sparse:
        return False
    try:
        np.asarray(tensor)  # no copy
    except (TypeError, RuntimeError):
        return False
    return True


def checked_format(A: Any, name: str = "X") -> Any:
    """Return what was given; a sparse matrix only if its stored parts fit together.

    A row, column or pointer that lies outside would be followed by compiled code to memory of
    something else, and end the process.

    Raises
    ------
    ValueError
        If an index or a pointer of a sparse matrix is wrong.
    """
    if not is_sparse(A):
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
    from scipy.sparse import csr_array  # noqa: PLC0415  (it is imported: `A` is sparse)

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


def missing_in(X: Any) -> str:
    """Say where values are missing or infinite, and what to do about it."""
    remedy = "Fill them, for example by sklearn.impute.SimpleImputer, or leave these rows out."
    if not hasattr(X, "dtypes") and not isinstance(X, (np.ndarray, list, tuple)):
        return f"Input X contains NaN or infinity. {remedy}"
    values = _as_floats(X)
    is_nan = np.isnan(values)
    is_wrong = is_nan if is_nan.any() else np.isinf(values)
    what, found = "NaN", "missing"
    if not is_nan.any():
        what, found, remedy = "infinity", "infinite", "Correct them, or leave these rows out."
    rows, columns = is_wrong.nonzero()
    names = getattr(X, "columns", range(values.shape[1]))
    listed = [f"{names[column]!r}" for column in np.unique(columns)[:SHOWN].tolist()]
    shown = ", ".join(listed) + ", ..." * (np.unique(columns).size > SHOWN)
    first = int(rows[0])
    label = X.index[first] if hasattr(X, "columns") and hasattr(X, "index") else first
    name = "" if isinstance(label, Integral) and label == first else f" ({label!r})"
    return (
        f"Input X contains {what}: {rows.size} {found} in {np.unique(rows).size} row(s), first in "
        f"row {first}{name}; columns {shown}. {remedy}"
    )


def _as_floats(X: Any) -> Any:
    """Return numbers as an array; missing ones of pandas, None too, are NaN."""
    if hasattr(X, "isna"):
        return np.where(X.isna(), np.nan, X.to_numpy(dtype=object)).astype(np.float64)
    return np.asarray(X, dtype=np.float64)
