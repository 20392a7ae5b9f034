r"""Label propagation as the papers write it, and operators that only tests use.

Dense and for small graphs; the methods solve the same problems by :mod:`linkwise.linalg.solve`.
Notation of Wang et al., *Labels vs. pairwise constraints*: `A` the affinity, ``P = D^-1 A``,
``A_bar = D^-1/2 A D^-1/2``, ``L_bar = I - A_bar``, ``Q_bar`` the normalised constraint matrix;
equation (7) is that of Fu et al. (2011), SRCP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import eye_array

from linkwise.linalg.laplacian import absolute_degrees, degrees, inverse_sqrt, scaled
from linkwise.linalg.operators import Sum, SymmetricOperator, as_sum

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats


# Eigenvalues below this share of the largest belong to the kernel.
KERNEL = 1e-10


class StationaryLabelings(NamedTuple):
    """Solutions of ``(I - P_GG) f = lambda P_GH f`` with finite non-zero ``lambda``."""

    values: Floats  # lambda, ascending
    vectors: Floats  # f, one column each, of length 1


def gfhf_step(P: Any, labelled: Bools, y: Floats) -> Floats:
    """One step of GFHF, equation (1) of Wang: walk, then put the known labels back."""
    return np.where(labelled[:, None], y, P @ y)


def llgc_step(A_bar: Any, alpha: float, y: Floats, y0: Floats) -> Floats:
    """One step of LLGC, equation (4) of Wang: ``alpha A_bar y + (1 - alpha) y0``."""
    stepped: Floats = alpha * (A_bar @ y) + (1 - alpha) * y0
    return stepped


def spreading_step(S: Any, alpha: float, F: Floats, Y: Floats) -> Floats:
    """One step of SRCP, equation (7) of Fu: pairs spread along rows and columns alike."""
    stepped: Floats = alpha / 2 * (S @ F) + alpha / 2 * (F @ S) + (1 - alpha) * Y
    return stepped


def stationary_labeling(P_GG: Floats, P_GH: Floats) -> StationaryLabelings:
    r"""Find all labelings that propagation from a latent graph `H` to `G` leaves in place.

    Definition 1 of Wang: `f` with

    .. math:: f = \lambda (I - P_{GG})^{-1} P_{GH} f,
       \quad\text{that is}\quad (I - P_{GG}) f = \lambda P_{GH} f \quad (11),

    without those of ``lambda = 0``.

    Parameters
    ----------
    P_GG, P_GH : ndarray of shape (n, n)
        Propagation within `G` and from `H` to `G`; symmetric, and ``I - P_GG`` and `P_GH` positive
        semidefinite. Either may be singular.

    Returns
    -------
    StationaryLabelings
        In the order of ``lambda``. Labelings that `P_GH` maps to 0 have an infinite ``lambda`` and
        are left out: nothing of them comes from `H`.

    Notes
    -----
    With ``L = I - P_GG`` and `V` a basis of its kernel, solutions of ``lambda != 0`` are
    `P_GH`-orthogonal to the kernel. So ``f = g + V c`` with `g` in the range of `L`, where the
    problem is the symmetric one of ``L^+/2 M L^+/2`` for ``M = Q - Q V (V'Q V)^+ V'Q`` and
    ``Q = P_GH``; its eigenvalues are ``1 / lambda``.

    Examples
    --------
    >>> two = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> found = stationary_labeling(two, np.eye(2))
    >>> found.values.round(12).tolist(), np.abs(found.vectors[:, 0]).round(3).tolist()
    ([2.0], [0.707, 0.707])
    """
    values, U = eigh(np.eye(len(P_GG)) - P_GG)
    in_kernel = values <= KERNEL * max(values[-1], 1.0)
    V, root = U[:, in_kernel], U[:, ~in_kernel] / np.sqrt(values[~in_kernel])
    QV = P_GH @ V
    back = np.linalg.pinv(V.T @ QV, rcond=KERNEL, hermitian=True) @ QV.T
    inverse, Z = eigh(root.T @ (P_GH - QV @ back) @ root)
    finite = inverse > KERNEL * max(inverse.max(initial=0.0), np.finfo(float).tiny)
    G = root @ Z[:, finite][:, ::-1]
    F = G - V @ (back @ G)
    return StationaryLabelings(1 / inverse[finite][::-1], F / np.linalg.norm(F, axis=0))


def transition_matrix(W):
    """Return ``D^-1 W`` of a dense graph, the probabilities of a random walk from row to column."""
    d = degrees(W)
    return np.divide(W, d[:, None], out=np.zeros_like(W), where=d[:, None] > 0)


def signed_normalized_adjacency(W):
    """Return `W` normalised by its absolute degrees on both sides.

    The eigenvalues lie in [-1, 1]. The value 1 counts the balanced components: those that
    fall into two camps with positive edges inside and negative edges across.
    """
    return scaled(W, inverse_sqrt(absolute_degrees(W)))


def signed_symmetric(W):
    """Return the signed Laplacian, normalised on both sides; no vertex is isolated."""
    return eye_array(W.shape[0], format="csr") - signed_normalized_adjacency(W)


class SparsePlusLowRank(SymmetricOperator):
    """``A + U C U'`` with `A` sparse, `U` tall and `C` small and symmetric.

    `C` is a matrix, or the vector of a diagonal one.
    """

    def __init__(self, A: Any, U: Any, C: Floats) -> None:
        super().__init__(A.shape[0])
        self.A = A
        self.U = U
        self.C = np.diag(C) if C.ndim == 1 else C

    def _product(self, X: Floats) -> Floats:
        product: Floats = self.A @ X + self.U @ (self.C @ (self.U.T @ X))
        return product

    def as_sum(self) -> Sum | None:
        """Return the parts."""
        inner = as_sum(self.A)
        return None if inner is None else inner.plus(self.U, self.C)
