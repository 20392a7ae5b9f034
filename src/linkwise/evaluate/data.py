"""Data sets as `learning_curve` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, issparse
from sklearn.utils import check_array

from linkwise._inputs import checked_format
from linkwise._quiet import quiet
from linkwise.evaluate.draws import encoded
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.graph import Affinity, Prepared, check_affinity


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples with a known truth, to be clustered.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features) or None
        The data; None if there is only a graph.
    y : array-like of shape (n_samples,)
        True classes, integers or strings. Every value is a class, -1 too.
    n_clusters : int, default=None
        The number of clusters to ask for: by default the number of classes.
    W : array-like or sparse matrix of shape (n_samples, n_samples), default=None
        The graph that graph methods work on; by default it is built from `X`.

    Examples
    --------
    >>> Problem([[0.0], [0.1], [5.0]], ["a", "a", "b"]).n_clusters
    2
    """

    X: Any
    y: Any
    n_clusters: int | None = None
    W: Any = None

    def __post_init__(self) -> None:
        y = encoded(self.y)
        X = checked_format(self.X)
        X = X if X is None or issparse(X) else np.asarray(X)
        if X is None and self.W is None:
            raise ValueError("A data set needs X, or a graph W, or both.")
        if X is not None and (X.ndim != 2 or X.shape[0] != y.size):
            message = f"X must have one row per sample: its shape is {X.shape}, y has {y.size}."
            raise ValueError(message)
        is_raw = self.W is not None and not isinstance(self.W, Prepared)
        W = _graph(self.W, y.size) if is_raw else self.W
        k = int(y.max()) + 1 if self.n_clusters is None else int(self.n_clusters)
        for name, value in {"X": X, "y": y, "n_clusters": k, "W": W}.items():
            object.__setattr__(self, name, value)


def _graph(W: Any, n_samples: int) -> Any:
    W = check_array(checked_format(W, "W"), accept_sparse="csr", dtype=np.float64, input_name="W")
    if W.shape != (n_samples, n_samples):
        message = f"W must be of shape {(n_samples, n_samples)}, as y has it; it is {W.shape}."
        raise ValueError(message)
    return check_affinity(W)


def named_datasets(given: Any) -> dict[str, Problem]:
    """Return the data sets by name, from any of the forms that `learning_curve` takes."""
    if isinstance(given, Mapping) and not _is_bunch(given):
        named = {str(name): _dataset(value, name) for name, value in given.items()}
    elif isinstance(given, list):
        named = {_name(value): _dataset(value, _name(value)) for value in given}
        if len(named) < len(given):
            raise ValueError("Two data sets have the same name. Give a dict of name: data set.")
    else:
        name = getattr(given, "name", "data")
        named = {name: _dataset(given, name)}
    if not named:
        raise ValueError("There is no data set. Give a dict of name: (X, y).")
    for name, dataset in named.items():
        _check_classes(dataset, name)
    return named


def _check_classes(dataset: Problem, name: str) -> None:
    if not dataset.y.any():
        raise ValueError(
            f"Data set {name!r}: all {dataset.y.size} samples are of one class, so there is "
            "nothing to find or to score. Give data of two classes or more."
        )


def check_finite(dataset: Problem, name: str) -> None:
    """Raise ValueError if a value of `X` keeps the graph from being built."""
    if dataset.W is not None or dataset.X is None:
        return
    stored = dataset.X.data if issparse(dataset.X) else dataset.X
    if stored.dtype.kind not in "fc" or np.isfinite(stored).all():
        return
    X = coo_array(dataset.X) if issparse(dataset.X) else dataset.X
    if issparse(X):
        at = int(np.flatnonzero(~np.isfinite(X.data))[0])
        row, column, value = X.row[at], X.col[at], X.data[at]
    else:
        row, column = np.argwhere(~np.isfinite(X))[0]
        value = X[row, column]
    raise ValueError(
        f"Data set {name!r}: X[{row}, {column}] is {value}, so its graph cannot be built. Fill or "
        "leave out such values, or give the graph, as Problem(X, y, W=W)."
    )


def _dataset(value: Any, name: object) -> Problem:
    if isinstance(value, Problem):
        return value
    try:
        if _is_bunch(value):
            return Problem(value["data"], value["target"])
        if isinstance(value, tuple) and len(value) == 2:
            return Problem(*value)
        if hasattr(value, "X") and hasattr(value, "y"):
            return Problem(value.X, value.y)
    except ValueError as error:
        raise ValueError(f"Data set {name!r}: {error}") from error
    raise TypeError(
        f"Data set {name!r} must be (X, y), a Problem, or what a loader of linkwise or "
        f"scikit-learn returns; got {type(value).__name__}."
    )


def _name(value: Any) -> str:
    name = getattr(value, "name", None)
    if not isinstance(name, str):
        message = "A list holds data sets that have a name. Give a dict of name: (X, y) otherwise."
        raise TypeError(message)
    return name


def _is_bunch(value: Any) -> bool:
    return isinstance(value, Mapping) and {"data", "target"} <= set(value)


def with_graph(dataset: Problem, affinity: Affinity) -> Problem:
    """Return the data set with a :class:`Prepared` as `W`, its graph built unless it was given."""
    if dataset.W is None:
        graph = Prepared(dataset.X, affinity)
    else:
        with quiet(DisconnectedGraphWarning):  # the user was warned when the graph was given
            graph = Prepared(dataset.W, "precomputed")
    _ = graph.W  # built now, and not while a fit is timed
    return Problem(dataset.X, dataset.y, dataset.n_clusters, graph)
