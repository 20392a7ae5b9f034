"""Labels in a standard order, signs to labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Ints


def relabelled(labels: AnyArray) -> Ints:
    """Renumber clusters by first appearance, so that equal partitions have equal labels.

    Examples
    --------
    >>> relabelled(np.array([7, 2, 7, 0])).tolist()
    [0, 1, 0, 2]
    """
    labels = np.asarray(labels)
    if labels.dtype.kind == "i" and labels.dtype.isnative and labels.size and labels.min() >= 0:
        top = int(labels.max())
        if top <= 4 * labels.size:  # no sort then
            return np.asarray(_ranks(labels, top)[labels], dtype=np.intp)
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.intp)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[codes]


@njit(cache=True, nogil=True)
def _ranks(labels, top):  # type: ignore[no-untyped-def]
    """Return the place of each label up to `top` in the order of first appearance."""
    rank = np.full(top + 1, -1, np.intp)
    n_met = 0
    for label in labels:
        if rank[label] < 0:
            rank[label] = n_met
            n_met += 1
    return rank


def sign_split(v: Floats) -> Ints:
    """Split by sign: label 1 where ``v >= 0``, label 0 elsewhere.

    Zeros go to the positive side, so `v` and ``-v`` are the same partition only where `v` has
    no zero.

    Examples
    --------
    >>> sign_split(np.array([-0.3, 0.0, 0.2])).tolist()
    [0, 1, 1]
    """
    return (v >= 0).astype(np.intp)
