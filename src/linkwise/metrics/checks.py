"""Labels, masks and graphs to arrays, or an error that names the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from linkwise._inputs import checked_format

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from linkwise._types import AnyArray, Bools, Ints, Matrix
    from linkwise.constraints import Constraints

    Outside: TypeAlias = Constraints | ArrayLike | None


def as_codes(values: ArrayLike, name: str) -> Ints:
    """Return one label per sample as numbers from 0."""
    array = _vector(values, name)
    try:
        codes: Ints = np.unique(array, return_inverse=True)[1]
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in array.tolist()}))
        message = f"{name} mixes labels that cannot be compared ({kinds}). Use one type."
        raise ValueError(message) from error
    return codes


def _vector(values: ArrayLike, name: str) -> AnyArray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, but has shape {array.shape}.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        where = int(np.flatnonzero(np.isnan(array))[0])
        raise ValueError(f"{name}[{where}] is nan. Leave out samples without a label.")
    return array


def free_points(outside: Outside, n_samples: int) -> Bools:
    """Return which points to score: all, or those outside constraints or a mask."""
    if outside is None:
        return np.ones(n_samples, dtype=bool)
    mask = np.asarray(getattr(outside, "constrained", outside))
    if mask.dtype != bool or mask.ndim != 1:
        raise ValueError(
            "outside must be Constraints, or a boolean mask that is True for the points to "
            f"leave out; got an array of type {mask.dtype} and shape {mask.shape}."
        )
    check_length(mask.size, n_samples, "outside is about")
    return ~mask


def check_length(n_given: int, n_labels: int, about: str) -> None:
    """Raise ValueError if something is about another number of samples than the labels."""
    if n_given != n_labels:
        raise ValueError(f"{about} {n_given} samples, but labels has {n_labels} entries.")


def as_graph(W: Matrix, n_labels: int) -> Matrix:
    """Return a square matrix, sparse by rows or dense."""
    W = csr_array(checked_format(W, "W")) if issparse(W) else np.asarray(W)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"W must be a square matrix, but has shape {W.shape}.")
    check_length(W.shape[0], n_labels, "W is about")
    return W
