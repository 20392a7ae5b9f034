"""Predictions for Dask arrays: any fitted estimator, chunk by chunk."""

from __future__ import annotations

from copy import copy
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkwise._optional import require

if TYPE_CHECKING:
    from collections.abc import Callable

BY_BLOCKS = ("predict", "predict_proba")
LEFT_BEHIND = ("affinity_matrix_", "labels_")  # that a copy for workers does without, if on Dask


def is_dask_array(X: Any) -> bool:
    """Whether `X` is an array of Dask, which is not imported for that."""
    return type(X).__module__.startswith("dask.array") and hasattr(X, "map_blocks")


def takes_dask_arrays(cls: type) -> None:
    """Let the methods that predict, as far as a class defines them, take Dask arrays as well."""
    for name in BY_BLOCKS:
        if name in vars(cls):
            setattr(cls, name, _by_blocks(vars(cls)[name]))


def _by_blocks(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def predict(self: Any, X: Any, *others: Any, **named: Any) -> Any:
        if not is_dask_array(X):
            return method(self, X, *others, **named)
        if others or named:
            raise ValueError("X is a Dask array, which is taken alone. Give arrays in memory.")
        check_is_fitted(self)
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array instead. Samples are rows: give "
                "X[:, None] if X is one feature of all samples, X[None] if it is one sample."
            )
        delayed = require("dask", extra="dask", purpose="Predicting a Dask array").delayed
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        settings: dict[str, Any] = {"drop_axis": 1, "dtype": np.intp}
        if method.__name__ == "predict_proba":
            one = predicted(np.zeros((1, X.shape[1])), _for_workers(self), method.__name__)
            settings["dtype"] = np.float64
            if one.ndim == 2:
                settings = {"chunks": (X.chunks[0], (one.shape[1],)), "dtype": np.float64}
        model = delayed(_for_workers(self), pure=False, traverse=False)
        return X.map_blocks(predicted, model, method.__name__, meta=np.empty(0), **settings)

    return predict


def _for_workers(model: Any) -> Any:
    """Return the model without what is on workers already, or of no use there."""
    light = copy(model)
    # A graph builder that is fitted when it is first asked is asked here, once. While Dask sends
    # the model it must not work, and on workers it would do so again for every chunk.
    getattr(getattr(model, "affinity_", None), "n_features_in_", None)
    if is_dask_array(getattr(model, "labels_", None)):
        for name in LEFT_BEHIND:
            light.__dict__.pop(name, None)
    return light


def predicted(chunk: Any, model: Any, name: str) -> Any:
    """Return the predictions for a chunk, which may be empty."""
    chunk = np.asarray(chunk)
    if not len(chunk):
        return predicted(np.zeros((1, chunk.shape[1])), model, name)[:0]
    return getattr(model, name)(chunk)
