"""cPCA: principal components that spread cannot-links and shrink must-links (SSDR)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from linkwise._params import Interval
from linkwise.linalg import eigen
from linkwise.methods._projection import (
    ConstrainedProjection,
    Directions,
    center,
    cluster_projected,
    in_units,
    oriented,
    principal_variances,
    share_dimension,
)

if TYPE_CHECKING:
    from linkwise._types import Floats
    from linkwise.constraints import Constraints
    from linkwise.constraints.table import PairTable
    from linkwise.result import Result


# Pairs taken at a time: their differences stay small beside the data.
PAIRS_PER_BLOCK = 16_384


def cpca(
    X: Floats,
    constraints: Constraints,
    n_clusters: int,
    *,
    n_components: int | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Project on the directions that spread samples and cannot-links, not must-links; k-means.

    The directions `a` of unit length maximise, one orthogonal to the other,

    .. math:: \frac1n \sum_i (a^T x_i - a^T m)^2
        + \frac{\alpha}{|C|} \sum_{(i,j) \in C} (a^T x_i - a^T x_j)^2
        - \frac{\beta}{|M|} \sum_{(i,j) \in M} (a^T x_i - a^T x_j)^2

    with the mean `m`, the cannot-links `C` and the must-links `M`.
    """
    rng = check_random_state(random_state)
    found = _directions(X, constraints, n_components, alpha=alpha, beta=beta, rng=rng)
    return cluster_projected(X, found, n_clusters, rng=rng)


def _directions(
    X: Floats,
    constraints: Constraints,
    n_components: int | None,
    *,
    alpha: float,
    beta: float,
    rng: np.random.RandomState,
) -> Directions:
    Z, mean, exponent, basis = center(X)
    m = share_dimension(principal_variances(Z)) if n_components is None else n_components
    J = criterion_matrix(Z, constraints, alpha=alpha, beta=beta)
    pairs = eigen.largest(J, m, rng, method="dense")
    vectors = pairs.vectors if basis is None else basis @ pairs.vectors
    return Directions(oriented(vectors.T), mean, in_units(pairs, 2 * exponent))


def criterion_matrix(Z: Floats, constraints: Constraints, *, alpha: float, beta: float) -> Floats:
    """Return ``X L X'`` of equation (14) for centred data, one sample a row of `Z`.

    The Laplacian of all pairs is the covariance, and a pair adds the square of its difference: the
    `n x n` matrix is never formed.
    """
    must, cannot = _label_sums(Z, constraints)
    table = _unlabelled_pairs(constraints)
    n_must = must.n_pairs + int(table.is_must_link.sum())
    n_cannot = cannot.n_pairs + int((~table.is_must_link).sum())
    # Covariance, cannot-links, must-links: the three sums of the criterion
    J = Z.T @ Z / Z.shape[0]
    if n_cannot:
        J += alpha / n_cannot * (cannot.scatter + _scatter(Z, table.kept(~table.is_must_link)))
    if n_must:
        J -= beta / n_must * (must.scatter + _scatter(Z, table.kept(table.is_must_link)))
    symmetric: Floats = (J + J.T) / 2
    return symmetric


class _Sum(NamedTuple):
    """Sum of the squared differences of pairs that are not listed, and their number."""

    scatter: Floats | float
    n_pairs: int


def _unlabelled_pairs(constraints: Constraints) -> PairTable:
    """Return the given pairs without those that the labels state as well."""
    table = constraints.table
    if constraints.labels is None:
        return table
    a, b = constraints.labels[table.pairs].T
    stated = (a >= 0) & (b >= 0) & ((a == b) == table.is_must_link)
    return table.kept(~stated)


def _scatter(Z: Floats, table: PairTable) -> Floats:
    """Sum the squared differences of pairs, each weighted by its belief."""
    scatter = np.zeros((Z.shape[1], Z.shape[1]))
    for first in range(0, len(table.pairs), PAIRS_PER_BLOCK):
        block = slice(first, first + PAIRS_PER_BLOCK)
        i, j = table.pairs[block].T
        difference = Z[i] - Z[j]
        scatter += difference.T @ (table.belief[block, None] * difference)
    return scatter


def _label_sums(Z: Floats, constraints: Constraints) -> tuple[_Sum, _Sum]:
    """Sum over all must-links and all cannot-links that the labels imply, without listing them.

    The pairs within a class of `s` samples add up to `s` times its scatter about its mean; those
    across classes are what is left of all pairs.
    """
    if constraints.labels is None:
        return _Sum(0.0, 0), _Sum(0.0, 0)
    known = np.flatnonzero(constraints.labels >= 0)
    V = Z[known]
    _, class_of, sizes = np.unique(
        constraints.labels[known], return_inverse=True, return_counts=True
    )
    order = np.argsort(class_of, kind="stable")
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    means = np.add.reduceat(V[order], starts, axis=0) / sizes[:, None]
    about = V - means[class_of]
    apart = means - V.mean(axis=0)
    size = sizes[class_of][:, None]
    within = about.T @ (size * about)
    across = about.T @ ((known.size - size) * about)
    across += known.size * (apart.T @ (sizes[:, None] * apart))
    n_within = int((sizes.astype(np.int64) * (sizes - 1) // 2).sum())
    n_across = known.size * (known.size - 1) // 2 - n_within
    return _Sum(within, n_within), _Sum(across, n_across)


class ConstrainedPCA(ConstrainedProjection):
    """Constrained principal component analysis (SSDR; Zhang, Zhou & Chen, 2007).

    Finds orthogonal directions along which the samples and the cannot-linked pairs are far apart
    and the must-linked pairs close, and clusters the projected samples by k-means. A transformer
    as well: `transform` projects new samples, `predict` gives them to the nearest centre. Soft:
    no constraint is sure to hold.

    Parameters
    ----------
    n_clusters
    n_components : int, default=None
        Number of directions, at most the number of samples and of features. None means as many as
        principal components hold 95 % of the variance. With as many directions as features the
        projection is a rotation, and the constraints have no effect on the clusters. Take fewer
        than features.
    alpha : float, default=1.0
        Weight of the mean squared length of cannot-links. Raise it if cannot-links should count
        more.
    beta : float, default=1.0
        Weight of the mean squared length of must-links. ``alpha=0, beta=0`` is PCA. Raise it to 10
        or more if must-links should count: the default has little effect.
    random_state

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        Orthonormal directions, that of the largest criterion first. The entry of largest magnitude
        of each is positive.
    mean_ : ndarray of shape (n_features,)
        Mean of the samples.

    References
    ----------
    D. Zhang, Z.-H. Zhou, S. Chen: Semi-supervised dimensionality reduction. SDM 2007.

    G. Wacquet, E. Poisson Caillault, D. Hamad, P.-A. Hebert: Constrained spectral embedding for
    K-way data clustering. Pattern Recognition Letters 34 (2013), section 3.1.

    Examples
    --------
    The samples vary most along the first feature; the pairs show that the second one matters.

    >>> import numpy as np
    >>> from linkwise import ConstrainedPCA, Constraints
    >>> X = np.array([[0.0, 0.0], [4.0, 0.1], [8.0, 0.0], [0.0, 2.0], [4.0, 2.1], [8.0, 2.0]])
    >>> known = Constraints(6, must_link=[(0, 2), (3, 5)], cannot_link=[(0, 3)])
    >>> model = ConstrainedPCA(2, n_components=1, random_state=0).fit(X, constraints=known)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.predict([[9.0, 1.9]]).tolist()
    [1]
    """

    paper = "Zhang et al. 2007"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
    }
    solve = staticmethod(cpca)

    n_clusters: int = 2
    _: KW_ONLY
    n_components: int | None = None
    alpha: float = 1.0
    beta: float = 1.0
    random_state: int | np.random.RandomState | None = None
