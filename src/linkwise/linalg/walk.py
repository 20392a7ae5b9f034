"""Walks: the leading eigenvectors of a graph's random walk, where those of value 1 are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse

from linkwise.linalg import eigen
from linkwise.linalg.components import symmetric_components
from linkwise.linalg.eigen import EigenPairs

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph
    from linkwise.linalg.memory import Memory

__all__ = [
    "component_vectors",
    "leading_vectors",
    "remembered_vectors",
    "staying_if_isolated",
    "walk_vectors",
]


def staying_if_isolated(S: Graph, d: Floats) -> Graph:
    """Let the walk stay at isolated vertices: they are components of their own, with value 1."""
    isolated = d == 0
    if not isolated.any():
        return S
    loops = diags_array(isolated.astype(np.float64), format="csr")
    return csr_array(S + loops) if issparse(S) else S + loops.toarray()


def walk_vectors(z: Floats, d: Floats) -> Floats:
    """Return ``D^-1/2 z``; an isolated vertex, of degree 0, keeps its row."""
    return z / np.sqrt(np.where(d > 0, d, 1.0))[:, None]


def leading_vectors(
    S: Graph,
    profile: Floats,
    k: int,
    rng: np.random.RandomState,
    *,
    tol: float = eigen.DEFAULT_TOL,
    memory: Memory | None = None,
    name: str = "walk",
) -> EigenPairs:
    """Return the `k` leading eigenpairs of a walk matrix whose top value, 1, is known.

    The value 1 has one eigenvector for each connected component, `profile` on the component and 0
    elsewhere. They are written down, not iterated for, so none can be missed however many there
    are. The vectors are kept in the `memory` under a name, and are where the next search starts.
    """
    known = component_vectors(S, profile, k)
    if known.shape[1] == k:
        residuals = np.linalg.norm(S @ known - known, axis=0)
        return EigenPairs(np.ones(k), known, residuals, converged=True, n_products=k)
    return remembered_vectors(S, k, rng, known=known, tol=tol, memory=memory, name=name)


def remembered_vectors(
    S: Graph,
    k: int,
    rng: np.random.RandomState,
    *,
    known: Floats,
    tol: float = eigen.DEFAULT_TOL,
    memory: Memory | None,
    name: str = "walk",
) -> EigenPairs:
    """Return the `k` leading eigenpairs, where those of value 1 are known.

    The search starts from what the `memory` kept under the name, and leaves its own there.
    """
    kept = {} if memory is None else memory.recall((name, "solver")) or {}
    # A generator of its own: what follows does not depend on how long the search takes.
    rng = np.random.RandomState(rng.randint(2**31))
    pairs = eigen.largest(
        S,
        k,
        rng,
        tol=tol,
        known=known,
        known_values=np.ones(known.shape[1]),
        start=None if memory is None else memory.recall(name),
        kept=kept,
    )
    if memory is not None:
        memory.keep(name, pairs.vectors)
        memory.keep((name, "solver"), kept)
    return pairs


def component_vectors(S: Graph, profile: Floats, k: int) -> Floats:
    """Return an orthonormal basis of the known eigenvectors, at most `k` columns.

    With more than `k` components, the ``k - 1`` of largest volume keep a vector of their own and
    the others share the last one: the cut is zero whichever way they are grouped, and splitting
    off the specks first would leave the large pieces unseparated.
    """
    n_components, component = symmetric_components(S)
    # An isolated vertex has no degree, but is a component like any other.
    weight = np.where(profile > 0, profile, 1.0)
    if n_components == 1:
        return weight[:, None] / np.linalg.norm(weight)
    volume = np.bincount(component, weights=profile**2)
    rank = np.empty(volume.size, dtype=np.intp)
    rank[np.argsort(-volume, kind="stable")] = np.arange(volume.size)
    column = np.minimum(rank, k - 1)[component]
    vectors: Floats = np.zeros((component.size, min(volume.size, k)))
    vectors[np.arange(component.size), column] = weight
    vectors /= np.linalg.norm(vectors, axis=0)
    return vectors
