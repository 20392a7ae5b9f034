"""Symmetric matrices that are never formed: products are all a Krylov solver needs.

Each operator is a ``scipy.sparse.linalg.LinearOperator`` of float64. A product with a block
of vectors is a handful of matrix products, never a loop over its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Block = NDArray[np.float64]

__all__ = ["Congruence", "Counted", "Deflated", "Projected", "Shifted", "SparsePlusLowRank"]


class SymmetricOperator(LinearOperator):
    """A symmetric operator given by one method, `_product`, for vectors and blocks alike."""

    def __init__(self, n: int) -> None:
        super().__init__(np.dtype(np.float64), (n, n))

    def _product(self, X: Block) -> Block:
        raise NotImplementedError

    def _matvec(self, x: Block) -> Block:
        return self._product(x)

    def _matmat(self, X: Block) -> Block:
        return self._product(X)

    def _adjoint(self) -> SymmetricOperator:
        return self

    _transpose = _adjoint


class Shifted(SymmetricOperator):
    """``scale * A + shift * I``: the same eigenvectors, the values mapped."""

    def __init__(self, A: Any, shift: float, *, scale: float = 1.0) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.shift = shift
        self.scale = scale

    def _product(self, X: Block) -> Block:
        product: Block = self.scale * (self.A @ X) + self.shift * X
        return product


class Deflated(SymmetricOperator):
    """``A - shift * V V'``: the eigenvalues of the orthonormal eigenvectors `V`, lowered.

    All other eigenpairs stay. `V` is a dense block, or a sparse one such as the indicator
    vectors of connected components, of which there may be thousands.
    """

    def __init__(self, A: Any, V: Any, shift: float) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.V = V
        self.shift = shift

    def _product(self, X: Block) -> Block:
        product: Block = self.A @ X - self.V @ (self.shift * (self.V.T @ X))
        return product


class Projected(SymmetricOperator):
    """``P A P`` with ``P = I - U U'``: `A` on the complement of the orthonormal columns of `U`.

    Unlike in `Deflated`, `U` need not hold eigenvectors of `A`. They are eigenvectors of ``P A P``,
    with the value 0.
    """

    def __init__(self, A: Any, U: Block) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.U = U

    def _product(self, X: Block) -> Block:
        return self._project(self.A @ self._project(X))

    def _project(self, X: Block) -> Block:
        projected: Block = X - self.U @ (self.U.T @ X)
        return projected


class SparsePlusLowRank(SymmetricOperator):
    """``A + U C U'`` with `A` sparse, `U` tall and `C` small and symmetric.

    `C` is a matrix, or the vector of a diagonal one.
    """

    def __init__(self, A: Any, U: Any, C: Block) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.U = U
        self.C = np.diag(C) if C.ndim == 1 else C

    def _product(self, X: Block) -> Block:
        product: Block = self.A @ X + self.U @ (self.C @ (self.U.T @ X))
        return product


class Congruence(SymmetricOperator):
    """``R' A R`` for a square `R` given by its two products."""

    def __init__(
        self, A: Any, right: Callable[[Block], Block], left: Callable[[Block], Block]
    ) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.right = right
        self.left = left

    def _product(self, X: Block) -> Block:
        return self.left(self.A @ self.right(X))


class Counted(SymmetricOperator):
    """`A`, counting the vectors it was multiplied with in `n_products`."""

    def __init__(self, A: Any) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.n_products = 0

    def _product(self, X: Block) -> Block:
        self.n_products += 1 if X.ndim == 1 else X.shape[1]
        product: Block = self.A @ X
        return product
