"""Labels as text for the file of a session: short, because few change from one to the next."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from linkwise._types import Ints


def packed(labels: Ints, before: Ints | None = None) -> str:
    """Return labels as text: what differs from the labels before, compressed.

    Examples
    --------
    >>> labels = np.array([0, 1, 1, 2])
    >>> unpacked(packed(labels, np.array([0, 1, 2, 2])), np.array([0, 1, 2, 2])).tolist()
    [0, 1, 1, 2]
    """
    difference = labels.astype("<u4")
    if before is not None:
        difference ^= before.astype("<u4")
    # Byte by byte of all labels: nearly all are zero.
    columns = difference.view(np.uint8).reshape(-1, 4).T
    return b64encode(zlib.compress(columns.tobytes())).decode()


def unpacked(text: str, before: Ints | None = None) -> Ints:
    """Return what was packed."""
    columns = np.frombuffer(zlib.decompress(b64decode(text)), np.uint8).reshape(4, -1)
    difference = np.ascontiguousarray(columns.T).view("<u4").ravel()
    if before is not None:
        difference = difference ^ before.astype("<u4")
    return difference.astype(np.intp)
