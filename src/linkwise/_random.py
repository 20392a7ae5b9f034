"""Random numbers for compiled searches: a state that is handed over, never a global one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from linkwise._types import Int32s, UInt64s

# splitmix64 (Steele, Lea & Flood 2014). Unsigned throughout: numba would mix in floats.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_30, SHIFT_27, SHIFT_31, SHIFT_11 = (np.uint64(s) for s in (30, 27, 31, 11))
TWO_TO_MINUS_53 = 1.0 / 9007199254740992.0


@njit(cache=True, nogil=True)
def new_stream(seed: int) -> UInt64s:
    """Return the state of a new stream."""
    stream = np.empty(1, np.uint64)
    stream[0] = np.uint64(seed)
    return stream


@njit(cache=True, nogil=True)
def uniform(stream: UInt64s) -> float:
    """Draw from [0, 1)."""
    stream[0] += GOLDEN
    x = stream[0]
    x = (x ^ (x >> SHIFT_30)) * MIX_1
    x = (x ^ (x >> SHIFT_27)) * MIX_2
    x ^= x >> SHIFT_31
    return float(x >> SHIFT_11) * TWO_TO_MINUS_53


@njit(cache=True, nogil=True)
def shuffle(order: Int32s, stream: UInt64s) -> None:
    """Shuffle in place."""
    for i in range(order.size - 1, 0, -1):
        j = int(uniform(stream) * (i + 1))
        order[i], order[j] = order[j], order[i]
