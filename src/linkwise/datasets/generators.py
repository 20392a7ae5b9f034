"""Generators of small data sets with a known truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["make_xor"]

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])


def make_xor(
    n_per_corner: int = 10,
    *,
    spread: float = 0.04,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Make the XOR data of Xu et al. (2005): four tight corners, opposite ones belong together.

    Samples come corner by corner, counter-clockwise from the lower left, as the paper numbers
    them. With the default `n_per_corner` these are its 40 points.

    Returns
    -------
    X : ndarray of shape (4 * n_per_corner, 2)
    y : ndarray of shape (4 * n_per_corner,)
        0 for the lower left and upper right corners, 1 for the other two.

    Examples
    --------
    >>> X, y = make_xor(random_state=0)
    >>> X.shape, y[[0, 10, 20, 30]].tolist()
    ((40, 2), [0, 1, 0, 1])
    """
    rng = check_random_state(random_state)
    corner = np.repeat(np.arange(4), n_per_corner)
    X = CORNERS[corner] + rng.uniform(-spread, spread, size=(corner.size, 2))
    return X, (corner % 2).astype(np.intp)
