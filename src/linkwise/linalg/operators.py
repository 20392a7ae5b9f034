"""Symmetric matrices that are never formed: products are all a Krylov solver needs.

Each operator is a ``scipy.sparse.linalg.LinearOperator`` of float64. A product with a block
of vectors is a handful of matrix products, never a loop over its columns.

`as_sum` takes an operator apart that is a sparse matrix plus terms of low rank: a solver can then
multiply with the sparse matrix by a kernel of its own, in single precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Floats


WIDE = 64  # columns up to which a term of low rank is written out


class Sum(NamedTuple):
    """``scale * A + shift * I + sum_t U_t C_t U_t'`` with `A` sparse."""

    A: csr_array
    scale: float = 1.0
    shift: float = 0.0
    terms: tuple[tuple[Any, Floats], ...] = ()  # (U_t, C_t)

    def plus(self, U: Any, C: Floats) -> Sum:
        """Add a term of low rank."""
        return self._replace(terms=(*self.terms, (U, C)))


def as_sum(A: Any) -> Sum | None:
    """Return the parts of a symmetric matrix, or None if it is none of this form.

    Examples
    --------
    >>> as_sum(Shifted(csr_array([[2.0]]), 3.0, scale=-1.0))[1:]
    (-1.0, 3.0, ())
    """
    if issparse(A):
        return Sum(csr_array(A))
    return A.as_sum() if isinstance(A, SymmetricOperator) else None


class SymmetricOperator(LinearOperator):
    """A symmetric operator given by one method, `_product`, for vectors and blocks alike."""

    def __init__(self, n: int) -> None:
        super().__init__(np.dtype(np.float64), (n, n))

    def _product(self, X: Floats) -> Floats:
        raise NotImplementedError

    def as_sum(self) -> Sum | None:
        """Return the parts, if the operator is a sparse matrix plus terms of low rank."""
        return None

    def _matvec(self, x: Floats) -> Floats:
        return self._product(x)

    def _matmat(self, X: Floats) -> Floats:
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

    def _product(self, X: Floats) -> Floats:
        product: Floats = self.scale * (self.A @ X) + self.shift * X
        return product

    def as_sum(self) -> Sum | None:
        """Return the parts."""
        inner = as_sum(self.A)
        if inner is None:
            return None
        return Sum(
            inner.A,
            self.scale * inner.scale,
            self.scale * inner.shift + self.shift,
            tuple((U, self.scale * C) for U, C in inner.terms),
        )


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

    def _product(self, X: Floats) -> Floats:
        product: Floats = self.A @ X - self.V @ (self.shift * (self.V.T @ X))
        return product

    def as_sum(self) -> Sum | None:
        """Return the parts."""
        inner = as_sum(self.A)
        # Thousands of vectors have no small matrix of their products.
        if inner is None or self.V.shape[1] > WIDE:
            return None
        return inner.plus(self.V, -self.shift * np.eye(self.V.shape[1]))


class Projected(SymmetricOperator):
    """``P A P`` with ``P = I - U U'``: `A` on the complement of the orthonormal columns of `U`.

    Unlike in `Deflated`, `U` need not hold eigenvectors of `A`. They are eigenvectors of ``P A P``,
    with the value 0.
    """

    def __init__(self, A: Any, U: Floats) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.U = U

    def _product(self, X: Floats) -> Floats:
        return self._project(self.A @ self._project(X))

    def as_sum(self) -> Sum | None:
        """Return the parts: ``P A P = A - U (A U)' - (A U) U' + U (U' A U) U'``."""
        inner = as_sum(self.A)
        if inner is None or self.U.shape[1] > WIDE:
            return None
        AU = np.asarray(self.A @ self.U)
        one = np.eye(self.U.shape[1])
        C = np.block([[self.U.T @ AU, -one], [-one, np.zeros_like(one)]])
        return inner.plus(np.hstack([self.U, AU]), C)

    def _project(self, X: Floats) -> Floats:
        projected: Floats = X - self.U @ (self.U.T @ X)
        return projected


class Congruence(SymmetricOperator):
    """``R' A R`` for a square `R` given by its two products."""

    def __init__(
        self, A: Any, right: Callable[[Floats], Floats], left: Callable[[Floats], Floats]
    ) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.right = right
        self.left = left

    def _product(self, X: Floats) -> Floats:
        return self.left(self.A @ self.right(X))


class Counted(SymmetricOperator):
    """`A`, counting the vectors it was multiplied with in `n_products`."""

    def __init__(self, A: Any) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.n_products = 0

    def _product(self, X: Floats) -> Floats:
        self.n_products += 1 if X.ndim == 1 else X.shape[1]
        product: Floats = self.A @ X
        return product

    def as_sum(self) -> Sum | None:
        """Return the parts of `A`; whoever multiplies with them adds to `n_products`."""
        return as_sum(self.A)
