"""What the papers did to their data before clustering it, one small function each."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike

    from linkwise._types import AnyArray, Floats, Ints

    Data = tuple[AnyArray, Ints]

DECIMALS = 6  # of a fingerprint: copies in single and in double precision agree
BLOCK = 4096  # rows hashed at a time: no copy of the whole data in double precision


def encoded(labels: ArrayLike, order: tuple[str, ...] = ()) -> Ints:
    """Return labels as ``0 .. k - 1``: in the given order of names, else numbers by size.

    Names that are not in `order` come after it; names that are no numbers, by alphabet.

    Examples
    --------
    >>> encoded(["10", "2", "1", "2"]).tolist()
    [2, 1, 0, 1]
    >>> encoded(["hen", "cat", "ant"], order=("cat", "hen")).tolist()
    [1, 0, 2]
    """
    names, y = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    place = {name: number for number, name in enumerate(order)}
    numbers = _as_numbers(names)
    value = np.arange(names.size) if numbers is None else numbers
    rank = np.array([place.get(name, len(place)) for name in names.tolist()])
    new = np.empty(names.size, dtype=np.intp)
    new[np.lexsort([value, rank])] = np.arange(names.size)
    return new[y.ravel()]


def _as_numbers(names: Iterable[str]) -> Floats | None:
    """Return what the names say, if all of them are numbers."""
    try:
        return np.array([float(name) for name in names])
    except ValueError:
        return None


def complete_cases(X: AnyArray, y: Ints) -> Data:
    """Leave out samples with a missing value (NaN).

    Examples
    --------
    >>> X, y = complete_cases(np.array([[1.0], [np.nan], [3.0]]), np.array([0, 1, 1]))
    >>> X.ravel().tolist(), y.tolist()
    ([1.0, 3.0], [0, 1])
    """
    known = ~np.isnan(X).any(axis=1)
    return X[known], y[known]


def median_filled(X: AnyArray, y: Ints) -> Data:
    """Put the median of its feature for a missing value (NaN).

    Examples
    --------
    >>> median_filled(np.array([[1.0], [np.nan], [3.0]]), np.array([0, 1, 1]))[0].ravel().tolist()
    [1.0, 2.0, 3.0]
    """
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X), y


def unique_rows(X: AnyArray, y: Ints) -> Data:
    """Leave out samples whose features repeat those of an earlier one, whatever their class.

    Examples
    --------
    >>> X, y = unique_rows(np.array([[2.0], [1.0], [2.0]]), np.array([0, 1, 1]))
    >>> X.ravel().tolist(), y.tolist()
    ([2.0, 1.0], [0, 1])
    """
    _, first = np.unique(X, axis=0, return_index=True)
    keep = np.sort(first)
    return X[keep], y[keep]


def without_class(X: AnyArray, y: Ints, left_out: int) -> Data:
    """Leave out a class, and close the gap in the numbers of the others.

    Examples
    --------
    >>> without_class(np.eye(3), np.array([0, 1, 2]), 1)[1].tolist()
    [0, 1]
    """
    keep = y != left_out
    return X[keep], y[keep] - (y[keep] > left_out)


def one_against_rest(X: AnyArray, y: Ints, one: int) -> Data:
    """Make a class 0 of one class, and a class 1 of all others.

    Examples
    --------
    >>> one_against_rest(np.eye(3), np.array([0, 1, 2]), 1)[1].tolist()
    [1, 0, 1]
    """
    return X, (y != one).astype(np.intp)


def grouped(X: AnyArray, y: Ints, groups: tuple[int, ...]) -> Data:
    """Put classes together: class `c` becomes ``groups[c]``.

    Examples
    --------
    >>> grouped(np.eye(3), np.array([0, 1, 2]), (0, 0, 1))[1].tolist()
    [0, 0, 1]
    """
    return X, np.array(groups, dtype=np.intp)[y]


def unit_range(X: AnyArray, y: Ints) -> Data:
    """Scale all values together to the range from 0 to 1, in single precision.

    Examples
    --------
    >>> unit_range(np.array([[-1.0, 0.0, 1.0]]), np.array([0]))[0].tolist()
    [[0.0, 0.5, 1.0]]
    """
    low, high = X.min(), X.max()
    return ((X - low) / ((high - low) or 1.0)).astype(np.float32), y


def as_bytes(X: AnyArray, y: Ints) -> Data:
    """Store grey values of 0 to 255 as bytes.

    Examples
    --------
    >>> as_bytes(np.array([[0.0, 255.0]]), np.array([0]))[0].dtype.name
    'uint8'
    """
    return X.astype(np.uint8), y


def fingerprint(X: AnyArray, y: Ints) -> str:
    """Return a checksum of the content: the same for any order of samples or names of classes.

    Values count up to six decimals, so the precision of storage does not matter.

    Examples
    --------
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1])
    >>> fingerprint(X, y) == fingerprint(X[::-1].astype(np.float32), y)
    True
    >>> fingerprint(X, y) == fingerprint(X, np.array([0, 0]))
    False
    """
    rows: list[bytes] = []
    for begin in range(0, X.shape[0], BLOCK):
        # Adding 0 makes 0 of -0.
        block = np.round(X[begin : begin + BLOCK].astype("<f8"), DECIMALS) + 0.0
        rows += [hashlib.sha256(row.tobytes()).digest() for row in block]
    members: dict[int, list[bytes]] = {}
    for row, label in zip(rows, y.tolist(), strict=True):
        members.setdefault(label, []).append(row)
    classes = sorted(hashlib.sha256(b"".join(sorted(c))).digest() for c in members.values())
    return hashlib.sha256(b"".join(classes)).hexdigest()
