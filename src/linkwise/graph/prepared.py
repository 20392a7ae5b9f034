"""Prepared: data whose graph is built once and shared by many fits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_array

from linkwise.graph.affinity import Affinity
from linkwise.graph.precomputed import check_affinity
from linkwise.linalg.memory import Memory

__all__ = ["Prepared"]


class Prepared:
    """Data ready for many fits: the graph is built once, and solvers start where they ended.

    Pass it to the `fit` of any method in place of the data. The first fit pays for the graph and
    the eigenvectors; a fit with other constraints, or of another method, begins from them.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data; or, with ``affinity="precomputed"``, the graph.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()``.

    Attributes
    ----------
    X : ndarray, csr_array or csr_matrix
        The data, checked.
    affinity_ : Affinity or None
        The graph builder, fitted when the graph was first needed; None for a precomputed graph.
    memory : linkwise.linalg.memory.Memory
        What earlier fits left behind.

    Notes
    -----
    The answer of a fit is the one without preparation up to the tolerance of the eigensolver: the
    solver stops as soon as its start is good enough. Do not change the data in place.

    Beside the graph it keeps, for each kind of eigenproblem, the last vectors (``8 k`` bytes a
    sample) and an order of the samples, and for each damping of a propagation the columns of the
    constrained samples, at most 10 million entries unless a single fit has more.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CSC, Constraints, Prepared, SignedCSC
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> data = Prepared(X)
    >>> known = Constraints(6, must_link=[(0, 2)])
    >>> CSC(2, random_state=0).fit(data, constraints=known).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> SignedCSC(2, random_state=0).fit(data, constraints=known).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, X: Any, affinity: Affinity | str | None = None) -> None:
        checked = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
        if isinstance(affinity, str):
            if affinity != "precomputed":
                message = f'affinity is an Affinity, "precomputed" or None, not {affinity!r}.'
                raise ValueError(message)
            checked = check_affinity(checked)
        self.source = X  # knows the names of the features, if there are any
        self.X = checked
        self.affinity = affinity
        self.affinity_: Affinity | None = None
        self.memory = Memory()
        self._graph = checked if self.is_graph else None

    @property
    def is_graph(self) -> bool:
        """Whether the data are a precomputed graph."""
        return isinstance(self.affinity, str)

    @property
    def graph(self) -> Any:
        """The graph, a csr_array or ndarray of shape (n_samples, n_samples)."""
        if self._graph is None:
            builder = Affinity() if self.affinity is None else clone(self.affinity)
            graph = builder.fit_transform(self.X)
            self.affinity_, self._graph = builder, graph  # in this order, for other threads
        return self._graph

    def __repr__(self) -> str:
        built = "" if self._graph is None else ", graph built"
        return f"Prepared({self.X.shape[0]} samples{built})"
