"""FastGE: constraints as a second Laplacian (Cucuringu et al. 2016)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, issparse
from sklearn.utils import check_random_state

from linkwise._params import Interval, StrOptions
from linkwise.constraints.table import constraint_matrix
from linkwise.linalg import pencil
from linkwise.linalg.blocks import BlockMatrix
from linkwise.linalg.eigen import EigenPairs
from linkwise.linalg.laplacian import combinatorial, degrees, scaled, symmetric_components
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.partition import unit_rows
from linkwise.result import Result
from linkwise.search.rows import cluster_rows

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity


def fast_ge(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    link_weight: float | str = 1.0,
    solver: pencil.Solver = "lanczos",
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Cut few edges and must-links for many cannot-links.

    Relaxes

    .. math:: \min_{C_1 \dots C_k} \sum_c \mathrm{cut}_G(C_c) / \mathrm{cut}_H(C_c)

    with `G` the graph plus the must-links and `H` the cannot-links plus the demand graph
    ``d_i d_j / vol``, to the lowest eigenvectors of ``L_G x = lambda L_H x``, and rounds their
    rows by k-means.
    """
    rng = check_random_state(random_state)
    graphs = two_graphs(W, constraints, link_weight)
    n_components, component = symmetric_components(graphs.G)
    if n_components >= n_clusters:
        z = _grouped_components(graphs, component, n_clusters)
        zeros = np.zeros(n_clusters)
        eigenpairs = EigenPairs(zeros, z, zeros, converged=True, n_products=None)
    else:
        eigenpairs = _lowest(graphs, component, n_clusters, rng=rng, solver=solver)
    embedding = unit_rows(eigenpairs.vectors)
    labels = cluster_rows(embedding, n_clusters, rng, enforced=constraints if hard else None)
    return Result(
        labels=labels,
        embedding=embedding,
        eigenvalues=eigenpairs.values / graphs.demand,
        residuals=eigenpairs.residuals,
        objective=constraint_cut(graphs, labels),
        converged=eigenpairs.converged,
    )


class Graphs(NamedTuple):
    """What is to be cut little, and what is to be cut much."""

    G: Graph  # the graph and the must-links
    C: csr_array  # the cannot-links
    d: Floats  # degrees of the graph, positive
    demand: float  # factor of the demand graph d_i d_j / vol


def two_graphs(W: Graph, constraints: Constraints, link_weight: float | str) -> Graphs:
    """Return `G` and `H`, in units of the largest affinity.

    A certain pair weighs `link_weight` times the lesser degree of its two samples: with 1, as much
    as all edges of that sample. ``"paper"`` is ``d_i d_j / (d_min d_max)``, with the demand graph
    divided by the number of samples.
    """
    n = W.shape[0]
    W = W / (float(W.max()) or 1.0)
    d = degrees(W)
    # An isolated sample has the demand of the least connected one.
    d = np.where(d > 0, d, d[d > 0].min() if d.any() else 1.0)
    Q = constraint_matrix(constraints).tocoo()
    if isinstance(link_weight, str):
        weight, demand = d[Q.row] * d[Q.col] / (d.min() * d.max()), 1 / n
    else:
        weight, demand = link_weight * np.minimum(d[Q.row], d[Q.col]), 1.0
    must, cannot = (
        csr_array((weight[kept] * np.abs(Q.data[kept]), (Q.row[kept], Q.col[kept])), shape=(n, n))
        for kept in (Q.data > 0, Q.data < 0)
    )
    G = W + (must.toarray() if isinstance(W, np.ndarray) else must)
    return Graphs(G, cannot, d, demand)


def _lowest(
    graphs: Graphs,
    component: Ints,
    k: int,
    *,
    rng: np.random.RandomState,
    solver: pencil.Solver,
) -> EigenPairs:
    """Return the lowest eigenpairs of ``A z = lambda B z``, the pencil scaled by the degrees.

    With ``x = D^-1/2 z``, ``L_H = L_C + demand (D - d d' / vol)``. All vectors but the constant
    are taken orthogonal to `d`, where the rank-one term vanishes and ``L_H`` is sparse and
    positive definite.
    """
    s = diags_array(1 / np.sqrt(graphs.d))
    A = scaled(combinatorial(graphs.G), 1 / np.sqrt(graphs.d))
    P = s @ combinatorial(graphs.C) @ s / graphs.demand
    B = csr_array(eye_array(P.shape[0], format="csr") + P)
    kernel = np.zeros((component.size, int(component.max()) + 1))
    kernel[np.arange(component.size), component] = np.sqrt(graphs.d)
    # Cannot-links between components couple their vectors in B.
    factor = np.linalg.cholesky(kernel.T @ (B @ kernel))
    orthonormal = np.asarray(np.linalg.solve(factor, kernel.T).T, dtype=np.float64)
    return pencil.lowest(A, B, k, rng=rng, kernel=orthonormal, solver=solver)


def _grouped_components(graphs: Graphs, component: Ints, k: int) -> Floats:
    """Return the indicators of `k` groups of components: nothing is cut whichever they are.

    As in NCut, the ``k - 1`` of largest volume are clusters. Of the others, one that is
    cannot-linked with the last group joins the group with which it is least so.
    """
    volume = np.bincount(component, weights=degrees(graphs.G))
    order = np.argsort(-volume, kind="stable")
    group = np.empty(volume.size, dtype=np.intp)
    group[order] = np.minimum(np.arange(volume.size), k - 1)
    links = graphs.C.tocoo()
    ends = (component[links.row], component[links.col])
    between = csr_array((links.data, ends), shape=(volume.size, volume.size))
    placed = np.zeros(volume.size, dtype=bool)
    placed[order[:k]] = True
    for c in order[k:][np.diff(between.indptr)[order[k:]] > 0]:
        row = slice(between.indptr[c], between.indptr[c + 1])
        others, weights = between.indices[row], between.data[row]
        seen = placed[others] & (others != c)
        against = np.bincount(group[others[seen]], weights=weights[seen], minlength=k)
        if against[k - 1] > 0:
            group[c] = int(against.argmin())
        placed[c] = True
    z = np.zeros((component.size, k))
    z[np.arange(component.size), group[component]] = 1.0
    return z


def constraint_cut(graphs: Graphs, labels: Ints) -> float:
    """Return ``sum_c cut_G(c) / (demand vol(c) + cut_C(c))``; without pairs, the normalised cut.

    The criterion whose relaxation are the eigenvectors: the quotient of the two quadratic forms at
    the indicator of a cluster. (Its denominator has the constant vector's share in it, which
    ``cut_H`` leaves out.)
    """
    k = int(labels.max()) + 1
    volume = np.bincount(labels, weights=graphs.d, minlength=k)
    lost, won = (_cuts(A, labels, k) for A in (graphs.G, graphs.C))
    return float((lost / (graphs.demand * volume + won)).sum())


def _cuts(A: Graph, labels: Ints, k: int) -> Floats:
    """Return the weight that leaves each cluster."""
    membership: Any = csr_array(
        (np.ones(labels.size), (np.arange(labels.size), labels)), shape=(labels.size, k)
    )
    if isinstance(A, BlockMatrix):
        membership = membership.toarray()
    between: Any = membership.T @ (A @ membership)
    between = between.toarray() if issparse(between) else np.asarray(between)
    leaving: Floats = between.sum(axis=1) - between.diagonal()
    return np.maximum(leaving, 0)


class FastGE(ConstrainedClusterer):
    """Constrained clustering by a generalised eigenproblem (FAST-GE; Cucuringu et al., 2016).

    Must-links join the graph that is to be cut little, cannot-links a second graph that is to be
    cut much; the lowest eigenvectors of both Laplacians together are clustered. Nearly as fast as
    NCut, whatever the number of pairs. Soft: it trades the cut against the constraints.

    Parameters
    ----------
    n_clusters
    affinity
    link_weight : float or "paper", default=1.0
        Weight of a certain pair, in units of the lesser degree of its two samples. Raise it where
        all pairs are certain and must hold, lower it where some are wrong. ``"paper"`` takes
        ``d_i d_j / (d_min d_max)``, in units of the largest affinity, and divides the demand
        graph by the number of samples.
    solver : {"lanczos", "multigrid"}, default="lanczos"
        ``"multigrid"`` is LOBPCG preconditioned by algebraic multigrid, with pyamg (from
        ``linkwise[large]``): faster on large graphs of few dimensions, where clusters are long and
        the eigenvalues tiny. Take it there. Dense and small graphs are solved by ``"lanczos"`` and
        LAPACK.
    hard
    random_state

    References
    ----------
    M. Cucuringu, I. Koutis, S. Chawla, G. Miller, R. Peng: Simple and scalable constrained
    clustering: a generalized spectral method. AISTATS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints, FastGE
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> FastGE(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Cucuringu et al. 2016"
    family = "constrained criterion"
    is_distributed = True
    max_clusters = MOST_EIGENVECTORS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "link_weight": [StrOptions({"paper"}), Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"lanczos", "multigrid"})],
    }
    solve = staticmethod(fast_ge)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    link_weight: float | str = 1.0
    solver: pencil.Solver = "lanczos"
    hard: bool = False
    random_state: int | np.random.RandomState | None = None
