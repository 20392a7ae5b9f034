"""Result: what every method returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints


class Certificate(Protocol):
    """How good a cut is, computed when it is asked for."""

    @property
    def cut(self) -> float:
        """The normalised cut of the labels."""

    @property
    def bound(self) -> float:
        """A lower bound of it."""

    @property
    def gap(self) -> float:
        """How far they are apart, as a share of the cut."""

    def sentence(self) -> str:
        """Say so in one sentence."""


@dataclass(frozen=True, eq=False)
class Result:
    """The answer of a method, with the certificate of its solver.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Cluster of each sample, ``0 .. n_clusters - 1``.
    embedding : ndarray of shape (n_samples, n_dims) or None
        Coordinates in which the samples were partitioned.
    eigenvalues : ndarray or None
        Eigenvalues that belong to the columns of `embedding`.
    residuals : ndarray or None
        Norm of ``A v - lambda v`` for each eigenpair: how well the solver did.
    objective : float or None
        Value of the criterion that the method minimises, at `labels`.
    n_iter : int or None
        Iterations of the outermost loop, where there is one.
    converged : bool
        Whether every iterative step reached its tolerance.
    certificate : object or None
        Of methods that minimise a normalised cut, after `fit`: where `cut`, `bound` and `gap` come
        from. They are computed when they are asked for.
    """

    labels: Ints
    embedding: Floats | None = None
    eigenvalues: Floats | None = None
    residuals: Floats | None = None
    objective: float | None = None
    n_iter: int | None = None
    converged: bool = True
    certificate: Certificate | None = None

    @property
    def cut(self) -> float | None:
        """Normalised cut of the labels in the graph, or None where there is no certificate."""
        return None if self.certificate is None else self.certificate.cut

    @property
    def bound(self) -> float | None:
        """What every partition that satisfies the certain constraints costs at least.

        As a normalised cut, in as many clusters; see :func:`linkwise.search.bound.lower_bound`.
        """
        return None if self.certificate is None else self.certificate.bound

    @property
    def gap(self) -> float | None:
        """The share of `cut` by which a partition that satisfies them could be lower at most.

        Negative if the labels violate certain constraints and pay less for it.
        """
        return None if self.certificate is None else self.certificate.gap

    def __repr__(self) -> str:
        shown: list[str] = [f"n_samples={self.labels.size}"]
        shown.append(f"n_clusters={np.unique(self.labels).size}")
        for name in ("objective", "n_iter", "converged"):
            value: Any = getattr(self, name)
            if value is not None:
                shown.append(f"{name}={value:.6g}" if name == "objective" else f"{name}={value}")
        return f"Result({', '.join(shown)})"
