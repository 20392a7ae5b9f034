"""cLPP: locality preserving projection with constraints (Cevikalp et al.; Wacquet et al. 2013)."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_random_state

from linkwise._params import HasMethods, Interval, StrOptions
from linkwise.constraints.table import constraint_matrix
from linkwise.graph import Affinity, Prepared
from linkwise.linalg import eigen
from linkwise.linalg.generalized import generalized_smallest
from linkwise.linalg.laplacian import absolute_degrees, degrees
from linkwise.linalg.sparse import largest_entry
from linkwise.methods._projection import (
    ConstrainedProjection,
    Directions,
    center,
    cluster_projected,
    oriented,
    share_dimension,
)

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph
    from linkwise.constraints import Constraints
    from linkwise.linalg.warm import WarmStarts
    from linkwise.result import Result


# Added to every degree, in units of the mean degree: the right-hand matrix is then positive
# definite wherever the data vary, even where edges and cannot-links cancel out.
RIDGE = 1e-6

# Directions with less than this share of the largest variance are rounding, or constant.
NO_VARIANCE = 1e-12


def clpp(
    X: Floats,
    constraints: Constraints,
    n_clusters: int,
    *,
    W: Graph,
    n_components: int | None = None,
    criterion: str = "signed",
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Project on the directions that keep neighbours and must-links near; then k-means.

    The directions `a` minimise

    .. math:: \frac{\sum_{i<j} |\tilde w_{ij}| (a^T x_i - s_{ij} a^T x_j)^2}
        {\sum_i \bar d_i (a^T x_i)^2}

    one after the other, where :math:`\tilde w` are the affinities plus must-links minus
    cannot-links, :math:`s` their signs and :math:`\bar d` their absolute degrees. The samples
    `x` are measured from their mean weighted by these degrees. With `criterion` ``"paper"`` the
    numerator is that of equations (19) and (20), :math:`\sum \tilde w_{ij} (a^T x_i - a^T x_j)^2`,
    which cannot-links can make negative.
    """
    rng = check_random_state(random_state)
    W_tilde = signed_graph(W, constraints, criterion=criterion)
    found = _directions(X, W_tilde, n_components, criterion=criterion, rng=rng)
    _warn_if_negative(found.pairs.values, criterion)
    return cluster_projected(X, found, n_clusters, rng=rng)


def signed_graph(W: Graph, constraints: Constraints, *, criterion: str = "signed") -> Graph:
    """Return the weights of equation (21): a certain pair weighs as much as the largest affinity.

    For Gaussian affinities that is nearly the paper's 1, and it holds in other units as well. With
    `criterion` ``"paper"`` it is 1.
    """
    if constraints.is_empty:
        return W
    Q = (1.0 if criterion == "paper" else largest_entry(W)) * constraint_matrix(constraints)
    return csr_array(W + Q) if issparse(W) else W + Q.toarray()


def _warn_if_negative(values: Floats, criterion: str) -> None:
    """Warn if criterion (22) of the paper is below zero: it is no longer a sum of squares."""
    n_negative = int((values < -NO_VARIANCE * np.abs(values).max(initial=0.0)).sum())
    if criterion == "paper" and n_negative:
        message = (
            f"Equation (22) has negative eigenvalues, {n_negative} of the {values.size} that were "
            f"taken, the lowest {values.min():.3g}: these directions pull a few cannot-linked "
            "pairs apart rather than keep neighbours together. criterion='signed' has none."
        )
        warnings.warn(message, UserWarning, stacklevel=6)


def _directions(
    X: Floats,
    W_tilde: Graph,
    n_components: int | None,
    *,
    criterion: str,
    rng: np.random.RandomState,
) -> Directions:
    Z, mean, exponent, basis = center(X)
    axes = eigen.largest(Z.T @ Z / Z.shape[0], Z.shape[1], rng, method="dense")
    m = share_dimension(np.maximum(axes.values, 0)) if n_components is None else n_components
    kept = _kept(axes.values, m, is_wide=X.shape[1] > X.shape[0])
    # Unit variance along every axis; data without any variance keep one axis as it is.
    P = axes.vectors[:, :kept] / np.sqrt(axes.values[:kept] if axes.values[0] > 0 else 1.0)
    weight = _vertex_weights(W_tilde)
    origin = weight @ Z / weight.sum()
    d = degrees(W_tilde) if criterion == "paper" else absolute_degrees(W_tilde)
    left, right = locality_matrices((Z - origin) @ P, W_tilde, weight, d=d)
    pairs = generalized_smallest(left, right, min(m, kept), rng=rng, method="dense")
    vectors = P @ pairs.vectors
    if basis is not None:
        vectors, origin = basis @ vectors, basis @ origin
    components = np.ldexp(oriented(vectors.T), -exponent)
    return Directions(components, mean + np.ldexp(origin, exponent), pairs)


def _kept(variances: Floats, m: int, *, is_wide: bool) -> int:
    """Return how many principal axes take part: all in which the data vary.

    With more features than samples every embedding of the samples is linear in the features, and
    nothing would be learnt about new ones: then only those that hold 95 % of the variance, or as
    many as `n_components`.
    """
    rank = max(1, int((variances > NO_VARIANCE * variances[0]).sum()))
    return min(rank, max(m, share_dimension(np.maximum(variances, 0)))) if is_wide else rank


def _vertex_weights(W_tilde: Graph) -> Floats:
    """Return the absolute degrees and a small ridge; all one for a graph without edges."""
    d_bar = absolute_degrees(W_tilde)
    mean = d_bar.mean()
    return d_bar + RIDGE * mean if mean > 0 else np.ones_like(d_bar)


def locality_matrices(
    Y: Floats, W_tilde: Graph, weight: Floats, *, d: Floats
) -> tuple[Floats, Floats]:
    """Return both sides of the eigenproblem (22) for samples in the rows of `Y`.

    The left one is ``Y' (diag(d) - W) Y``. With absolute degrees `d` it is that of the signed
    Laplacian, and positive semidefinite; with signed ones it is equation (20). The right one is
    ``Y' diag(weight) Y``.
    """
    LY = d[:, None] * Y
    LY -= W_tilde @ Y
    left = Y.T @ LY
    right = Y.T @ (weight[:, None] * Y)
    if not right.any():
        right = np.eye(Y.shape[1])
    return (left + left.T) / 2, (right + right.T) / 2


class ConstrainedLPP(ConstrainedProjection):
    """Constrained locality preserving projection (cLPP; Cevikalp et al., 2008).

    Finds directions along which neighbours and must-linked pairs stay close and cannot-linked pairs
    come apart, and clusters the projected samples by k-means. It is spectral clustering with
    signed edges, restricted to linear functions of the features. A transformer as well: `transform`
    projects new samples, `predict` gives them to the nearest centre. Soft: no constraint is sure
    to hold.

    Parameters
    ----------
    n_clusters
    n_components : int, default=None
        Number of directions, at most the number of samples and of features. None means as many as
        principal components hold 95 % of the variance. There are fewer if the data
        vary in fewer. Set it to about the number of clusters.
    criterion : {"signed", "paper"}, default="signed"
        What a cannot-link asks for. ``"signed"``: opposite coordinates, by absolute degrees, so
        that the criterion is a sum of squares. ``"paper"``: distance without limit, the numerator
        of equations (19) and (20) with the weight 1 of a pair. Then (22) can have negative
        eigenvalues, which is warned about: the first directions follow single cannot-links. Take
        ``"paper"`` only to repeat the paper.
    neighbors : int or neighbour transformer, default=10
        Neighbours in the graph, which is ``Affinity(neighbors)``. A transformer with an approximate
        search is worth it for many samples in many dimensions. Take more for large clusters.
    random_state

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Directions, that of the lowest criterion first. The entry of largest magnitude of each is
        positive.
    mean_ : ndarray of shape (n_features,)
        Mean of the samples, weighted by their absolute degrees.
    affinity_matrix_ : csr_array of shape (n_samples, n_samples)
        The graph, before any constraint touched it.
    affinity_ : Affinity
        The fitted graph builder.

    References
    ----------
    H. Cevikalp, J. Verbeek, F. Jurie, A. Klaser: Semi-supervised dimensionality reduction using
    pairwise equivalence constraints. VISAPP 2008.

    G. Wacquet, E. Poisson Caillault, D. Hamad, P.-A. Hebert: Constrained spectral embedding for
    K-way data clustering. Pattern Recognition Letters 34 (2013), section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import ConstrainedLPP, Constraints
    >>> X = np.array([[0.0, 0.0], [4.0, 0.1], [8.0, 0.0], [0.0, 2.0], [4.0, 2.1], [8.0, 2.0]])
    >>> known = Constraints(6, must_link=[(0, 2), (3, 5)], cannot_link=[(0, 3)])
    >>> model = ConstrainedLPP(2, n_components=1, neighbors=2, random_state=0)
    >>> model.fit(X, constraints=known).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[9.0, 1.9]]).tolist()
    [1]
    """

    paper = "Cevikalp et al. 2008"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({"signed", "paper"})],
        "neighbors": [Interval(Integral, 1, None, closed="left"), HasMethods(["fit_transform"])],
    }
    solve = staticmethod(clpp)

    n_clusters: int = 2
    _: KW_ONLY
    n_components: int | None = None
    criterion: str = "signed"
    neighbors: Any = 10
    random_state: int | np.random.RandomState | None = None

    def _solve(
        self, prepared: Prepared, constraints: Constraints | None, warm: WarmStarts | None
    ) -> Result:
        # The graph is built by its own parameter, so a prepared one is not used.
        return super()._solve(Prepared(prepared.X, Affinity(self.neighbors)), constraints, None)
