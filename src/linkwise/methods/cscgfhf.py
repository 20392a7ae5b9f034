"""CSC+GFHF: constrained cuts from propagated labels (Wang et al., Algorithm 4)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from linkwise._params import Interval
from linkwise.linalg.laplacian import degrees, symmetric, symmetric_components
from linkwise.linalg.solve import Solution, dirichlet, poisson_solve, solid
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.methods._labels import Seeds, distributions, label_seeds
from linkwise.methods.ncut import normalized_cut
from linkwise.partition import kmeans, sign_split
from linkwise.result import Result

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity


# The kernel (15) is smooth in few dimensions, so of low rank. Its factor stops when no diagonal
# entry (they are 1) is missed by more than this, or at this many columns. On the digits, ten
# classes, a tolerance of 1e-4 (169 columns) changes neither labels nor six digits of lambda.
KERNEL_TOL = 1e-6
MAX_RANK = 200
# Entries of the factor, 400 MB: from 250,000 samples on it has fewer columns. Fifty, on blobs of
# 20,000 samples, change lambda by less than 1e-4 of itself, and no label.
MAX_ENTRIES = 50_000_000
# Eigenvalues 1 / lambda below this share of the largest are rounding: lambda is infinite.
FINITE = 1e-10


def cscgfhf(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    sigma: float = 0.5,
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Cut a graph under constraints that are made of propagated labels.

    With `y` the labels propagated by GFHF, solves

    .. math:: \bar L f = \lambda \bar Q f \quad (12), \qquad
       Q_{ij} = \exp(-\|y_i - y_j\|^2 / 2 \sigma^2) \quad (15),

    without the trivial solution, and keeps the ``k - 1`` solutions of length 1 with the largest
    ``f' Q_bar f``. `embedding` holds them, `eigenvalues` their ``lambda``, `residuals` the norms
    of ``L_bar f - lambda Q_bar f``, `objective` the sum of ``f' L_bar f``.
    """
    rng = check_random_state(random_state)
    seeds = label_seeds(constraints, n_clusters)
    if seeds is None:
        return normalized_cut(W, n_clusters, rng)
    # y: labels propagated by GFHF
    propagated = dirichlet(W, seeds.known, seeds.indicator)
    y = distributions(propagated.x, seeds)
    # Q_bar = G G': the normalised kernel (15) of y; f: solutions of (12)
    G = normalized_factor(kernel_factor(encoded(y), sigma))
    found = stationary_vectors(W, G, n_clusters - 1)
    return Result(
        labels=_rounded(found.vectors, y, seeds, n_clusters=n_clusters, rng=rng),
        embedding=found.vectors,
        eigenvalues=found.values,
        residuals=found.residuals,
        objective=float(found.costs.sum()),
        n_iter=propagated.n_iter + found.solution.n_iter,
        converged=propagated.converged and found.solution.converged,
    )


def _rounded(
    f: Floats, y: Floats, seeds: Seeds, *, n_clusters: int, rng: np.random.RandomState
) -> Ints:
    """Split by sign for two clusters, else by k-means; clusters get the numbers of the classes."""
    if f.shape[1] == 0:
        # Propagation gave all samples one label: there is nothing to cut.
        return y.argmax(axis=1)
    if n_clusters == 2:
        return named(sign_split(f[:, 0]), seeds, 2)
    return named(kmeans(f, n_clusters, rng).labels, seeds, n_clusters)


def encoded(y: Floats) -> Floats:
    """Return the labels of two classes as numbers in [-1, 1], those of more as they are."""
    return y[:, [1]] - y[:, [0]] if y.shape[1] == 2 else y


def kernel_factor(y: Floats, sigma: float) -> Floats:
    """Return `G` with ``Q = G G'`` for the Gaussian kernel of the rows of `y`.

    Cholesky's factorisation with diagonal pivoting, stopped when the rest is negligible. It takes
    ``rank`` columns of `Q` and never the whole; ``n * rank^2`` operations.
    """
    left = np.ones(len(y))
    n_columns = min(MAX_RANK, max(1, MAX_ENTRIES // len(y)), len(y))
    columns = np.empty((n_columns, len(y)))  # rows here: they are contiguous
    rank = 0
    while rank < len(columns) and left.max() > KERNEL_TOL:
        pivot = int(left.argmax())
        column = np.exp(-((y - y[pivot]) ** 2).sum(axis=1) / (2 * sigma**2))
        column -= columns[:rank, pivot] @ columns[:rank]
        column /= np.sqrt(left[pivot])
        columns[rank] = column
        left = np.maximum(left - column**2, 0.0)
        left[pivot] = 0.0
        rank += 1
    return np.ascontiguousarray(columns[:rank].T)


def normalized_factor(G: Floats) -> Floats:
    """Return the factor of ``Q_bar = D_Q^-1/2 Q D_Q^-1/2`` from that of `Q`."""
    return G / np.sqrt(G @ G.sum(axis=0))[:, None]


class StationaryVectors(NamedTuple):
    """Solutions of ``L_bar f = lambda G G' f`` of length 1, by falling ``|G' f|``."""

    values: Floats
    vectors: Floats
    residuals: Floats
    costs: Floats  # f' L_bar f
    solution: Solution  # of the linear systems with L_bar


def stationary_vectors(W: Graph, G: Floats, k: int) -> StationaryVectors:
    r"""Solve ``L_bar f = lambda Q_bar f``, ``Q_bar = G G'`` of low rank, without the trivial one.

    With `V` the kernel of `L_bar`, solutions of ``lambda != 0`` have ``V' Q_bar f = 0``. Then
    ``h = G' f`` solves the small symmetric problem

    .. math:: \Pi G^T \bar L^+ G \, \Pi \, h = \lambda^{-1} h, \qquad
        f = \bar L^+ G h - V A^+ G^T \bar L^+ G h, \qquad A = G^T V,

    with :math:`\Pi` the projection off the range of `A`: no matrix is inverted, and a singular
    ``Q_bar`` does no harm. If the graph has several components, ``lambda = 0`` has other solutions
    than the trivial ``D^1/2 1``; they separate components and are kept.
    """
    W = solid(W)
    d = degrees(W)
    V, volume = _kernel(W, d)
    root = np.sqrt(d)[:, None]
    solution = poisson_solve(W, root * (G - V.T @ (V @ G)))
    Z = root * solution.x
    A, M = (V @ G).T, G.T @ Z
    basis, weights, _ = np.linalg.svd(A, full_matrices=False)
    basis = basis[:, weights > FINITE * weights.max()]

    def off(H: Floats) -> Floats:
        return H - basis @ (basis.T @ H)

    inverse, H = np.linalg.eigh(off(off((M + M.T) / 2).T))
    finite = inverse > FINITE * max(inverse.max(), np.finfo(float).tiny)
    H = off(H[:, finite])
    F = Z @ H - V.T @ (np.linalg.pinv(A, rcond=FINITE) @ (M @ H))
    separating = V.T @ _separating(A, np.sqrt(volume))
    F = np.column_stack([F, separating])
    values = np.append(1 / inverse[finite], np.zeros(separating.shape[1]))
    length = np.linalg.norm(F, axis=0)
    lasting = length > 0  # what rounding cancels is no solution
    F, values = F[:, lasting] / length[lasting], values[lasting]
    order = np.argsort(-((G.T @ F) ** 2).sum(axis=0), kind="stable")[:k]
    F, values = _with_fixed_signs(F[:, order]), values[order]
    LF = symmetric(W) @ F
    residuals = np.linalg.norm(LF - G @ (G.T @ F) * values, axis=0)
    return StationaryVectors(values, F, residuals, (F * LF).sum(axis=0), solution)


def _with_fixed_signs(F: Floats) -> Floats:
    """Turn each vector so that its entry of largest magnitude is positive."""
    deciding = F[np.abs(F).argmax(axis=0), np.arange(F.shape[1])]
    return F * np.where(deciding < 0, -1.0, 1.0)


def _kernel(W: Any, d: Floats) -> tuple[csr_array, Floats]:
    """Return the unit vectors of the kernel of `L_bar`, one row a component, and the volumes."""
    _, component = symmetric_components(W)
    weight = np.where(d > 0, d, 1.0)  # an isolated vertex is a component like any other
    volume: Floats = np.bincount(component, weights=weight).astype(np.float64)
    unit = np.sqrt(weight / volume[component])
    return csr_array((unit, (component, np.arange(d.size)))), volume


def _separating(A: Floats, trivial: Floats) -> Floats:
    """Return the combinations of components that are `Q_bar`-orthogonal to the trivial one."""
    at = A @ trivial
    share = (at @ A) / (at @ at)
    _, weights, X = np.linalg.svd(A - np.outer(at, share), full_matrices=False)
    X = X[weights > FINITE * np.linalg.norm(at) / np.linalg.norm(trivial)].T
    return X - np.outer(trivial, share @ X)


def named(clusters: Ints, seeds: Seeds, k: int) -> Ints:
    """Name clusters by the classes with which they share the most labelled samples."""
    shared = np.zeros((k, k))
    np.add.at(shared, (clusters[seeds.known], seeds.class_of[seeds.known]), 1.0)
    _, name = linear_sum_assignment(-shared)
    return np.asarray(name)[clusters]


class CSCGFHF(ConstrainedClusterer):
    """Constrained spectral clustering with constraints from propagated labels (CSC+GFHF).

    Labels are propagated by GFHF; samples of similar propagated labels should be together. Unlike
    in GFHF the cut has the last word, so known labels may be overruled. Without any constraints
    the answer is that of :class:`~linkwise.NCut`.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters: at least the number of distinct labels. Set it to the number that you
        expect.
    affinity
    sigma : float, default=0.5
        Width of the kernel (15) between propagated labels. Labels of two classes are numbers in
        [-1, 1], those of more are distributions over the classes. Take 0.5 with many labels, and 1
        with few.
    random_state : int, RandomState instance or None, default=None
        Seed of k-means, for more than two clusters, and of the cut without constraints. Give a
        number to get the same answer every time.

    References
    ----------
    X. Wang, B. Qian, I. Davidson: Labels vs. pairwise constraints: a unified view of label
    propagation and constrained spectral clustering. ICDM 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CSCGFHF, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints.from_labels([-1, 1, -1, -1, 0, -1])
    >>> CSCGFHF(2).fit_predict(X, constraints=known).tolist()
    [1, 1, 1, 0, 0, 0]
    """

    paper = "Wang et al. 2012"
    family = "label propagation"
    max_clusters = MOST_EIGENVECTORS
    takes = ("labels",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sigma": [Interval(Real, 1e-3, 1e3, closed="both")],
    }
    solve = staticmethod(cscgfhf)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    sigma: float = 0.5
    random_state: int | np.random.RandomState | None = None
