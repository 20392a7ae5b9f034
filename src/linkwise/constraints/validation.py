"""Input to arrays, or an error that names the row, the value and the remedy."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from linkwise._types import AnyArray, Floats, Ints


MAX_SAMPLES = 3_037_000_499  # i * n_samples + j is below 2**63 up to here; see pair_keys
HUGE = 2**62  # numbers beyond are out of every valid range; clipping avoids overflow in casts


def as_count(value: object, name: str, *, minimum: int = 1, remedy: str = "") -> int:
    """Return a Python integer that is not below `minimum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} is {value!r}, but it must be an integer.{remedy}")
    if int(value) < minimum:
        raise ValueError(f"{name} is {value}, but it must be at least {minimum}.{remedy}")
    return int(value)


def as_n_samples(value: object) -> int:
    """Return the number of samples as a Python integer."""
    remedy = " It comes first: Constraints(n_samples, must_link=[(0, 1)])."
    n_samples = as_count(value, "n_samples", remedy=remedy)
    if n_samples > MAX_SAMPLES:
        message = f"n_samples is {n_samples}, but at most {MAX_SAMPLES} samples are supported."
        raise ValueError(message)
    return n_samples


# Pairs -------------------------------------------------------------------------------------


def as_pairs(value: ArrayLike | None, n_samples: int, name: str) -> Ints:
    """Return pairs as an (m, 2) array of valid indices with the smaller one first."""
    array = _pair_array(value, name)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    pairs = as_integers(array, name, _PAIR_REMEDIES)
    _check_range(pairs, n_samples, name)
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        row = loops[0]
        raise ValueError(
            f"{name}[{row}] is {_shown(pairs[row])}, a sample paired with itself. Remove this pair."
        )
    pairs.sort(axis=1)
    return pairs


def _pair_array(value: ArrayLike | None, name: str) -> AnyArray:
    """Return the input as a two-column array of any type."""
    try:
        array = np.asarray(() if value is None else value)
    except ValueError as error:  # numpy's words for rows of different lengths
        raise ValueError(
            f"{name} has rows of different lengths. Every row must be a pair (i, j) of sample "
            "indices."
        ) from error
    if array.ndim in (1, 2) and array.size == 0:
        return array
    if array.ndim != 2 or array.shape[1] != 2:
        found = f"shape {array.shape}" if array.ndim else f"type {type(value).__name__}"
        raise ValueError(
            f"{name} has {found}, but pairs have shape (m, 2). "
            "Write a list of pairs such as [(0, 1), (2, 3)]."
        )
    return array


def _check_range(pairs: Ints, n_samples: int, name: str) -> None:
    """Raise IndexError at the first pair with an index outside 0 .. n_samples - 1."""
    wrong = np.flatnonzero(((pairs < 0) | (pairs >= n_samples)).any(axis=1))
    if not wrong.size:
        return
    row = wrong[0]
    valid = f"valid indices are 0..{n_samples - 1}"
    if (pairs[row] < 0).any():
        message = (
            f"{name}[{row}] is {_shown(pairs[row])}, but indices cannot be negative ({valid})."
        )
    else:
        message = (
            f"{name}[{row}] is {_shown(pairs[row])}, but there are only {n_samples} samples "
            f"({valid})."
        )
        if pairs.min() >= 1 and pairs.max() == n_samples:
            message += " If they count from 1, subtract 1."
    raise IndexError(message)


def as_beliefs(value: ArrayLike | None, pairs: Ints, name: str) -> Floats:
    """Return one belief in (0, 1] for each pair; None means certain."""
    belief_name = f"{name}_belief"
    array = np.asarray(1.0 if value is None else value)
    if array.dtype.kind not in "iuf":
        array = _floats(array, belief_name)
    if array.ndim > 1 or (array.ndim == 1 and array.size != len(pairs)):
        raise ValueError(
            f"{belief_name} has shape {array.shape}, but there are {len(pairs)} pairs in {name}. "
            "Give one number, or one per pair."
        )
    wrong = np.flatnonzero(~((array > 0) & (array <= 1)))
    if wrong.size:
        row = wrong[0]
        where = f"{belief_name}[{row}]" if array.ndim else belief_name
        pair = f", for the pair {_shown(pairs[row])}" if array.ndim else ""
        raise ValueError(
            f"{where} is {array.flat[row]}{pair}, but a belief lies in (0, 1]: 1 is certain. "
            "Leave out a pair that is not believed at all; "
            "a disbelieved must-link is a cannot-link."
        )
    return np.broadcast_to(array, len(pairs)).astype(np.float64)


def _floats(array: AnyArray, name: str) -> Floats:
    """Return an array of objects as floats, or say which one is no number."""
    for row, value in enumerate(array.ravel().tolist()):
        if isinstance(value, bool) or not isinstance(value, Real):
            where = f"{name}[{row}]" if array.ndim else name
            message = f"{where} is {value!r}, but a belief is a number in (0, 1]: 1 is certain."
            raise TypeError(message)
    return array.astype(np.float64)


# Integers ----------------------------------------------------------------------------------


class Remedies(NamedTuple):
    """What to do about values that are no integers."""

    missing: str
    text: str
    flags: str


_PAIR_REMEDIES = Remedies(
    missing="Leave out a pair with an unknown end.",
    text="Pairs are sample indices; Constraints.from_frame(df, ids=names) takes names.",
    flags="Pairs are sample indices; np.argwhere(matrix) turns a matrix of flags into pairs.",
)
INDEX_REMEDIES = Remedies(
    missing="Pass indices of samples.",
    text="Pass indices of samples.",
    flags="Pass a boolean array to use it as a mask.",
)


def is_missing(value: object) -> bool:
    """Whether a value stands for "not known": None, NaN, or pandas' NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and value != value  # noqa: PLR0124 - only NaN differs from itself


def _is_whole(value: object) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, Integral):
        return True
    return isinstance(value, Real) and float(value).is_integer()


def as_integers(array: AnyArray, name: str, remedies: Remedies) -> Ints:
    """Return an array of whole numbers as integers, or name the first other value."""
    kind = array.dtype.kind
    if kind == "b":
        raise TypeError(f"{name} holds booleans (True, False). {remedies.flags}")
    if kind == "i":
        return array.astype(np.intp)
    if kind == "f":
        wrong = ~(np.isfinite(array) & (array == np.floor(array)))
    elif kind == "u":
        wrong = np.zeros(array.shape, dtype=bool)
    else:
        whole = [_is_whole(value) for value in array.ravel().tolist()]
        wrong = ~np.array(whole, dtype=bool).reshape(array.shape)
    if wrong.any():
        _raise_not_whole(array, tuple(np.argwhere(wrong)[0].tolist()), name, remedies=remedies)
    integers: Ints = np.clip(array, -HUGE if kind != "u" else 0, HUGE).astype(np.intp)
    return integers


def _raise_not_whole(
    array: AnyArray, position: tuple[int, ...], name: str, *, remedies: Remedies
) -> None:
    """Raise the error about the value at a position that is no whole number."""
    value = array[position]
    value = value.item() if isinstance(value, np.generic) else value
    found = f"{name}[{position[0]}] is {_shown(array[position[0]])}"
    if is_missing(value):
        raise ValueError(f"{found}, but {value!r} is a missing value. {remedies.missing}")
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{found}, but {value!r} is not an integer. {remedies.text}")
    raise ValueError(f"{found}, but {value!r} is not a whole number.")


def _shown(row: Any) -> object:
    """Return a row of an array as Python prints it: (2, 5), not [2 5]."""
    values: Sequence[Any] | Any = row.tolist() if isinstance(row, np.ndarray | np.generic) else row
    return tuple(values) if isinstance(values, list) else repr(values)
