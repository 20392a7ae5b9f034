"""A graph in units of its largest weight, so that no scale under- or overflows."""

from __future__ import annotations

from scipy.sparse import csr_array

__all__ = ["in_units"]


def in_units(W: csr_array) -> tuple[csr_array, float]:
    """Return the graph in units of its largest weight, and that; 1 if there is none."""
    largest = float(W.max()) if W.nnz else 0.0
    if largest <= 0:
        return W, 1.0
    # Not W / largest: scipy multiplies by the inverse, which may be infinite.
    return csr_array((W.data / largest, W.indices, W.indptr), W.shape), largest
