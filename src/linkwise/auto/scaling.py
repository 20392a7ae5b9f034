"""Scalings of the features: as they are given, or each divided by its standard deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats


GIVEN, STANDARDIZED = "as given", "standardised"
NAMES = {"given": GIVEN, "standardize": STANDARDIZED}  # values of the parameter `scaling`
# One feature dominates if the participation ratio of the variances is below this share of the
# number of features, and the largest standard deviation so many times the median one.
PARTICIPATION, RATIO = 0.15, 6.0
ALIKE = 4.0  # variances that differ by a smaller factor need no second look
CONSTANT = 1e-12  # standard deviation of a constant feature, in units of the largest entry


class Scaling(NamedTuple):
    """Features divided by their standard deviations, or as they are."""

    name: str
    used: Bools  # features that are not constant
    mean: Floats  # zero for sparse data, which are not centred
    deviation: Floats

    @property
    def is_given(self) -> bool:
        """Whether the features stay as they are."""
        return self.name == GIVEN

    def transform(self, X: Any) -> Any:
        """Return the scaled features."""
        if self.is_given:
            return X
        if issparse(X):
            weight = np.where(self.used, 1 / np.where(self.used, self.deviation, 1.0), 0.0)
            return csr_array(csr_array(X).multiply(weight[None, :]))
        if not self.used.any():
            return np.zeros((X.shape[0], 1))
        return (X[:, self.used] - self.mean[self.used]) / self.deviation[self.used]


def plausible_scalings(X: Any) -> list[Scaling]:
    """Return the scalings worth trying, the more plausible one first.

    Standardised features come first if a single unit of measurement drowns the others. The
    participation ratio of the variances `v`, ``(sum v)^2 / sum v^2``, counts the features that
    matter to a distance.
    """
    given, standardized = both_scalings(X)
    unit = given.deviation.max(initial=1e-300)  # keeps squares in range
    v = np.sort((given.deviation[given.used] / unit) ** 2)
    d = v.size
    if d < 2 or v[-1] < ALIKE * v[0]:
        return [given]
    is_dominated = (
        v.sum() ** 2 / (v**2).sum() < 1 + PARTICIPATION * (d - 1) and RATIO**2 * v[(d - 1) // 2] < 1
    )
    return [standardized, given] if is_dominated else [given, standardized]


def both_scalings(X: Any) -> tuple[Scaling, Scaling]:
    """Return the features as given, and standardised."""
    largest = float(np.abs(X.data if issparse(X) else X).max(initial=0.0)) or 1.0
    mean, deviation = _moments(X, largest)
    used = deviation > CONSTANT * largest
    center = np.zeros_like(mean) if issparse(X) else mean
    return Scaling(GIVEN, used, center, deviation), Scaling(STANDARDIZED, used, center, deviation)


def _moments(X: Any, unit: float) -> tuple[Floats, Floats]:
    """Return means and standard deviations of the features; `unit` keeps squares in range."""
    if not issparse(X):
        scaled = X / unit
        return scaled.mean(axis=0) * unit, scaled.std(axis=0) * unit
    scaled = csr_array(X) / unit
    mean = np.asarray(scaled.mean(axis=0)).ravel()
    square = np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel()
    return mean * unit, np.sqrt(np.maximum(square - mean**2, 0.0)) * unit
