"""Linear projections: the steps they share, and the base class with `transform`.

A projection looks for directions in feature space under which the constraints show, and k-means
clusters the samples there. Inside, data are moved to their mean and measured in a power of two, so
that no unit of `X` under- or overflows when squared, and none changes the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh, qr
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from linkwise._params import Interval
from linkwise.exceptions import TooLargeError
from linkwise.methods._base import ConstrainedClusterer
from linkwise.partition import kmeans, relabelled
from linkwise.result import Result

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.graph import Prepared
    from linkwise.linalg.eigen import EigenPairs


# The matrices of a projection have as many rows as there are features or samples, whichever is
# less: 800 MB each at this size, and some minutes.
MAX_DIMENSIONS = 10_000

# Share of the variance that the default number of components holds (Wacquet et al., section 6).
VARIANCE_SHARE = 0.95

# Entries of one component whose magnitudes differ by less are tied: rounding must not decide which
# of them is made positive.
SIGN_TIE = 1e-4


class Centered(NamedTuple):
    """Data without their mean, ``X = mean + 2^exponent Z basis'``."""

    Z: Floats
    mean: Floats
    exponent: int
    basis: Floats | None  # orthonormal columns, where there are more features than samples


class Directions(NamedTuple):
    """Directions in feature space, one a row, and the eigenpairs that they come from."""

    components: Floats
    mean: Floats
    pairs: EigenPairs


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionResult(Result):
    """The answer of a projection: a :class:`~linkwise.Result` that also assigns new samples.

    Parameters
    ----------
    components : ndarray of shape (n_components, n_features)
        Directions; `embedding` is ``(X - mean) @ components.T``.
    mean : ndarray of shape (n_features,)
        Origin of the projection.
    centers : ndarray of shape (n_clusters, n_components)
        Centres of the clusters in the projection.
    """

    components: Floats | None = None
    mean: Floats | None = None
    centers: Floats | None = None


# Data ---------------------------------------------------------------------------------------------


def center(X: Floats) -> Centered:
    """Move the data to their mean, into units of a power of two and at most `n` dimensions.

    Directions outside the span of the centred samples see nothing of the data, so with more
    features than samples nothing is lost.
    """
    n, d = X.shape
    if min(n, d) > MAX_DIMENSIONS:
        raise TooLargeError(
            f"X has {n} samples and {d} features; a projection needs at most {MAX_DIMENSIONS} of "
            "either. Reduce the features first, for example with sklearn.decomposition."
            'PCA(1000, svd_solver="randomized") in a pipeline.'
        )
    mean = X.mean(axis=0)
    Z = X - mean
    # The rounding of a mean far from zero may not be small beside the spread around it.
    correction = Z.mean(axis=0)
    mean += correction
    Z -= correction
    exponent = _exponent(Z)
    np.ldexp(Z, -exponent, out=Z)
    if d <= n:
        return Centered(Z, mean, exponent, None)
    basis, R = qr(Z.T, mode="economic", overwrite_a=True, check_finite=False)
    return Centered(np.ascontiguousarray(R.T), mean, exponent, basis)


def _exponent(A: Floats) -> int:
    """Return the power of two just above the largest magnitude."""
    largest = max(float(A.max(initial=0.0)), -float(A.min(initial=0.0)))
    return int(np.frexp(largest)[1])


def principal_variances(Z: Floats) -> Floats:
    """Return the eigenvalues of the covariance of centred data, largest first."""
    variances: Floats = eigvalsh(Z.T @ Z / Z.shape[0], check_finite=False)[::-1]
    return np.maximum(variances, 0.0)


def share_dimension(variances: Floats, share: float = VARIANCE_SHARE) -> int:
    """Return how many of the largest variances make up the share of all; at least one.

    Examples
    --------
    >>> share_dimension(np.array([6.0, 3.0, 0.9, 0.1])), share_dimension(np.zeros(3))
    (3, 1)
    """
    total = variances.sum()
    if not total > 0:
        return 1
    held = np.cumsum(variances) / total
    return min(int(np.searchsorted(held, share, side="right")) + 1, variances.size)


def oriented(components: Floats) -> Floats:
    """Turn each row so that its entry of largest magnitude is positive; the first of tied ones.

    Examples
    --------
    >>> oriented(np.array([[0.6, -0.8], [0.8, 0.6]])).tolist()
    [[-0.6, 0.8], [0.8, 0.6]]
    """
    magnitude = np.abs(components)
    tied = magnitude >= (1 - SIGN_TIE) * magnitude.max(axis=1, keepdims=True)
    deciding = components[np.arange(len(components)), tied.argmax(axis=1)]
    return components * np.where(deciding < 0, -1.0, 1.0)[:, None]


def project(X: Floats, mean: Floats, components: Floats) -> Floats:
    """Return the coordinates of samples along the components."""
    embedding: Floats = (X - mean) @ components.T
    return embedding


# Clusters -----------------------------------------------------------------------------------------


def cluster_projected(
    X: Floats, found: Directions, n_clusters: int, *, rng: np.random.RandomState
) -> ProjectionResult:
    """Project the data and cluster them around centres; the objective is the inertia."""
    embedding = project(X, found.mean, found.components)
    exponent = _exponent(embedding)
    partition = kmeans(np.ldexp(embedding, -exponent), n_clusters, rng)
    centers = np.ldexp(partition.centers, exponent)
    labels = nearest_center(embedding, centers)
    objective = float(_in_units(partition.inertia, 2 * exponent))
    if not (np.isfinite(objective) and np.isfinite(found.pairs.values).all()):
        raise ValueError(
            f"The projected samples reach {np.abs(embedding).max():.0e}: sums of squares of such "
            "numbers leave the range of floating-point numbers. Divide X by np.abs(X).max()."
        )
    if np.unique(labels).size == len(centers):
        # The labels are what `predict` answers, whatever the rounding of k-means was.
        centers = centers[np.argsort(np.unique(labels, return_index=True)[1])]
        labels = relabelled(labels)
    else:
        labels = partition.labels
    return ProjectionResult(
        labels=labels,
        embedding=embedding,
        eigenvalues=found.pairs.values,
        residuals=found.pairs.residuals,
        objective=objective,
        converged=found.pairs.converged,
        components=found.components,
        mean=found.mean,
        centers=centers,
    )


def nearest_center(embedding: Floats, centers: Floats) -> Ints:
    """Return the centre nearest to each row; the first one of equally near ones."""
    exponent = _exponent(centers)
    V, places = _in_units(embedding, -exponent), np.ldexp(centers, -exponent)
    nearest = np.zeros(len(V), dtype=np.intp)
    least = np.full(len(V), np.inf)
    for c, place in enumerate(places):
        difference = V - place
        # Rows whose distances overflow are equally far from all centres.
        with np.errstate(over="ignore"):
            distance = np.einsum("ij,ij->i", difference, difference)
        nearest[distance < least] = c
        np.minimum(least, distance, out=least)
    return nearest


def in_units(eigenpairs: EigenPairs, exponent: int) -> EigenPairs:
    """Return eigenpairs of ``2^exponent`` times the matrix."""
    values = _in_units(eigenpairs.values, exponent)
    return replace(eigenpairs, values=values, residuals=_in_units(eigenpairs.residuals, exponent))


def _in_units(values: Any, exponent: int) -> Any:
    """Multiply by a power of two; what a float cannot hold becomes infinite or zero."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, exponent)


# The base class -----------------------------------------------------------------------------------


class ConstrainedProjection(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ConstrainedClusterer
):
    """Base class of the linear projections: clusterers that also transform.

    Their function names ``X`` and returns a `ProjectionResult`. There is no `affinity` parameter:
    new samples are placed by the projection, not by a graph.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of k-means. Give a number to get the same answer every time.

    Attributes
    ----------
    result_ : ProjectionResult
        Labels, embedding, eigenvalues, residuals, objective, components, mean and centres.
    embedding_ : ndarray of shape (n_samples, n_components_)
        The projected samples.
    cluster_centers_ : ndarray of shape (n_clusters, n_components_)
        Centres of the clusters in the projection.
    n_components_ : int
        Number of directions.
    """

    family = "linear projection"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    @property
    def components_(self) -> Floats:
        """Directions of the projection, one a row, of shape ``(n_components_, n_features)``."""
        return np.asarray(self._fitted().components)

    @property
    def mean_(self) -> Floats:
        """Origin of the projection, of shape (n_features,)."""
        return np.asarray(self._fitted().mean)

    @property
    def cluster_centers_(self) -> Floats:
        """Centres of the clusters in the projection, of shape ``(n_clusters, n_components_)``."""
        return np.asarray(self._fitted().centers)

    @property
    def n_components_(self) -> int:
        """Number of components."""
        return int(self.components_.shape[0])

    def transform(self, X: Any) -> Floats:
        """Project samples: ``(X - mean_) @ components_.T``.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            Samples; those of `fit` get `embedding_`.

        Returns
        -------
        ndarray of shape (n_new, n_components_)
        """
        return self._projected(X)

    def predict(self, X: Any) -> Ints:
        """Assign new samples to the clusters found by `fit`.

        A sample joins the cluster whose centre is nearest in the projection, so training data get
        their labels back.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_new,)
        """
        return nearest_center(self._projected(X), self.cluster_centers_)

    def _projected(self, X: Any) -> Floats:
        X = self._new_samples(X)
        return project(X, self.mean_, self.components_)

    def _fitted(self) -> ProjectionResult:
        check_is_fitted(self)
        return self.result_

    def _check_samples(self, prepared: Prepared) -> None:
        super()._check_samples(prepared)
        X = prepared.X
        limit = min(X.shape)
        if self.n_components is not None and self.n_components > limit:
            raise ValueError(
                f"n_components={self.n_components}, but X has {X.shape[0]} samples and "
                f"{X.shape[1]} features: choose at most {limit} components, the smaller of the two."
            )

    @property
    def _is_precomputed(self) -> bool:
        return False

    @property
    def _n_features_out(self) -> int:
        return self.n_components_
