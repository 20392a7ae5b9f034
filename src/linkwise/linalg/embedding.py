"""The spectral embedding of a graph: leading eigenvectors of its normalised adjacency.

The eigenvectors of value 1 are known, one for each connected component. They are written down, not
iterated for, so none can be missed however many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from linkwise.linalg import eigen
from linkwise.linalg.blocks import BlockMatrix
from linkwise.linalg.eigen import EigenPairs
from linkwise.linalg.laplacian import degrees, normalized_adjacency, symmetric_components

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.linalg.warm import EigenWarmStart


def spectral_embedding(
    W: Graph,
    k: int,
    rng: np.random.RandomState,
    *,
    d: Floats | None = None,
    tol: float = eigen.DEFAULT_TOL,
    warm: EigenWarmStart | None = None,
) -> EigenPairs:
    """Return the `k` leading eigenpairs of ``D^-1/2 W D^-1/2``, with loops at isolated vertices.

    The eigenvalues of the normalised Laplacian are ``1 - values``; the eigenvectors of the random
    walk ``D^-1 W`` are ``random_walk_vectors(vectors, d)``. One number is drawn from `rng`, or none
    if the graph has at least `k` components: what follows does not depend on how long the solver
    takes. `d` are the degrees, if they are at hand; `warm` is where the solver starts, and leaves
    what it finds.

    Examples
    --------
    >>> W = np.array([[0.0, 4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> spectral_embedding(W, 3, np.random.RandomState(0)).values.round(12).tolist()
    [1.0, 1.0, -1.0]
    """
    d = degrees(W) if d is None else d
    return leading_eigenpairs(
        looped_adjacency(W, d), k, rng, profile=np.sqrt(d), tol=tol, warm=warm
    )


def looped_adjacency(W: Graph, d: Floats) -> Graph:
    """Return ``D^-1/2 W D^-1/2`` with self-loops of weight 1 at isolated vertices.

    These are components of their own then, with the eigenvalue 1. `d` are the degrees, or the
    absolute degrees of a signed graph.
    """
    S: Graph = normalized_adjacency(W, d)
    isolated = d == 0
    if not isolated.any():
        return S
    if isinstance(S, BlockMatrix):
        return S.plus_diagonal(isolated.astype(np.float64))
    loops = diags_array(isolated.astype(np.float64), format="csr")
    return csr_array(S + loops) if issparse(S) else S + loops.toarray()


def random_walk_vectors(z: Floats, d: Floats) -> Floats:
    """Return ``D^-1/2 z``, eigenvectors of ``D^-1 W``; an isolated vertex keeps its row."""
    return z / np.sqrt(np.where(d > 0, d, 1.0))[:, None]


def leading_eigenpairs(
    S: Graph,
    k: int,
    rng: np.random.RandomState,
    *,
    profile: Floats,
    tol: float = eigen.DEFAULT_TOL,
    warm: EigenWarmStart | None = None,
) -> EigenPairs:
    """Return the `k` leading eigenpairs of a matrix whose top value, 1, is known.

    The value 1 has one eigenvector for each connected component: `profile` (the square roots of the
    degrees, for a normalised adjacency) on the component and 0 elsewhere.
    """
    known = component_vectors(symmetric_components(S)[1], profile, k)
    if known.shape[1] == k:
        residuals = np.linalg.norm(S @ known - known, axis=0)
        return EigenPairs(np.ones(k), known, residuals, converged=True, n_products=k)
    # A generator of its own: what follows does not depend on how long the search takes.
    rng = np.random.RandomState(rng.randint(2**31))
    ones = np.ones(known.shape[1])
    return eigen.largest(S, k, rng, tol=tol, known=known, known_values=ones, warm=warm)


def component_vectors(component: Ints, profile: Floats, k: int) -> Floats:
    """Return an orthonormal basis of the eigenvectors that `profile` makes, at most `k` columns.

    With more than `k` components, the ``k - 1`` of largest volume keep a vector of their own and
    the others share the last one: the cut is zero whichever way they are grouped, and splitting
    off the smallest first would leave the large components unseparated.
    """
    # An isolated vertex has no degree, but is a component like any other.
    weight = np.where(profile > 0, profile, 1.0)
    if not component.any():
        return weight[:, None] / np.linalg.norm(weight)
    volume = np.bincount(component, weights=profile**2)
    rank = np.empty(volume.size, dtype=np.intp)
    rank[np.argsort(-volume, kind="stable")] = np.arange(volume.size)
    column = np.minimum(rank, k - 1)[component]
    vectors: Floats = np.zeros((component.size, min(volume.size, k)))
    vectors[np.arange(component.size), column] = weight
    vectors /= np.linalg.norm(vectors, axis=0)
    return vectors
