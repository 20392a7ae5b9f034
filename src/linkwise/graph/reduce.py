"""Fewer dimensions before the search for neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD

from linkwise._threads import one_thread

if TYPE_CHECKING:
    import numpy as np

SPARSE_DIMENSIONS = 100  # what sparse samples are reduced to for an approximate search


class Reduction:
    """Principal components of dense samples, singular vectors of sparse ones.

    Parameters
    ----------
    n_dimensions : int
        Dimensions to keep, less than there are features.
    random_state : RandomState
        For the randomised decomposition.
    """

    def __init__(self, n_dimensions: int, random_state: np.random.RandomState) -> None:
        self.n_dimensions = n_dimensions
        self.random_state = random_state

    def fit_transform(self, X: Any) -> Any:
        """Find the directions, and return the samples along them."""
        kind = TruncatedSVD if issparse(X) else PCA
        self.n_dimensions = min(self.n_dimensions, *X.shape)
        self.model = kind(self.n_dimensions, random_state=self.random_state)
        # One thread: with more, BLAS would sum in another order, and the last bits differ.
        with one_thread():
            return self.model.fit_transform(X)

    def transform(self, X: Any) -> Any:
        """Return new samples along the same directions."""
        with one_thread():
            return self.model.transform(X)
