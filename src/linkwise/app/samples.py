"""Samples: rows of numbers as they are clustered, without the libraries that cluster them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from linkwise._types import Floats
    from linkwise.graph import Prepared

SMALL = 1e-100  # a largest number below it, or above its inverse, gets a closer look


class Samples:
    """Rows of finite numbers; `samples_of` makes them.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    """

    is_graph = False

    def __init__(self, X: Floats) -> None:
        self.X, self.n_samples = X, len(X)


def samples_of(X: Any, *, is_graph: bool = False) -> Samples | Prepared:
    """Return samples to be clustered elsewhere; what needs a closer look is prepared here."""
    is_plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.float64
    if is_plain and not is_graph and len(X) > 1 and X.shape[1] and _has_safe_squares(X):
        return Samples(X)
    from linkwise.graph import Prepared  # noqa: PLC0415
    from linkwise.graph.affinity import check_in_range  # noqa: PLC0415

    data = Prepared(X, "precomputed" if is_graph else None)
    if not is_graph:
        check_in_range(data.X, None)
    return data


def _has_safe_squares(X: Floats) -> bool:
    """Whether the numbers are finite, and their squares far from the ends of the range."""
    largest = float(np.abs(X).max())
    return largest == 0 or SMALL < largest < 1 / SMALL  # False of NaN, too


def prepared(data: Samples | Prepared) -> Prepared:
    """Return samples ready to be clustered in this process."""
    from linkwise.graph import Prepared  # noqa: PLC0415

    return data if isinstance(data, Prepared) else Prepared(data.X)
