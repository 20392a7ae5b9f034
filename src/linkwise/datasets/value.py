"""Dataset: data with a known truth, and what can go wrong on the way to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from linkwise._types import AnyArray, Ints


class DatasetNotFoundError(FileNotFoundError):
    """A data set of a known name is neither in the folder nor to be had from elsewhere."""


class UnverifiedDataWarning(UserWarning):
    """Data are of the right size, but not equal to the copy that the catalogue knows."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Data with a known truth.

    Parameters
    ----------
    name : str
        Its name in the catalogue.
    X : ndarray of shape (n_samples, n_features) or csr_array of shape (n_samples, n_samples)
        Features; or a graph, which is signed for ``"signed_block_model"``.
    y : ndarray of shape (n_samples,)
        Class of each sample, ``0 .. n_clusters - 1``. For scoring, not for fitting.
    description : str
        What the data are, what was done to them, and which papers use them.
    source : str
        Where this copy comes from.
    verified : bool
        Whether the content is known to be right: made here, part of scikit-learn, or equal to the
        copy that the catalogue knows.

    Examples
    --------
    >>> from linkwise.datasets import load
    >>> load("iris2")
    Dataset(name='iris2', shape=(100, 4), n_clusters=2)
    """

    name: str
    X: AnyArray | csr_array
    y: Ints
    description: str
    source: str
    verified: bool = True

    @property
    def n_clusters(self) -> int:
        """Number of classes."""
        return int(np.unique(self.y).size)

    def __repr__(self) -> str:
        return f"Dataset(name={self.name!r}, shape={self.X.shape}, n_clusters={self.n_clusters})"
