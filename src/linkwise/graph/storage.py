"""Prepared data in a file: an npz archive of plain arrays, without pickle.

The array ``prepared`` holds a JSON text with all that is no array. A sparse matrix `M` is the
arrays ``M.data``, ``M.indices``, ``M.indptr`` and ``M.shape``.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csc_array, csr_array, issparse

from linkwise._files import atomic
from linkwise.graph.affinity import Affinity
from linkwise.graph.approximate import ApproximateNeighbors
from linkwise.linalg.eigen import EigenPairs

if TYPE_CHECKING:
    import os

    from linkwise._types import AnyArray
    from linkwise.graph.prepared import Prepared
    from linkwise.linalg.warm import EigenWarmStart

VERSION = 1
BUILDERS = {"Affinity": Affinity, "ApproximateNeighbors": ApproximateNeighbors}
DAMAGED = (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, MemoryError)


class RestoredAffinity(Affinity):
    """A builder that only has its samples, and perhaps its graph; fitted when more is asked of it.

    So it is where the graph was built elsewhere: read from a file, or on the workers of a cluster.
    """

    @classmethod
    def of(cls, affinity: Affinity, samples: Any, **found: Any) -> RestoredAffinity:
        """Return one with the parameters of `affinity`; `found` is what is known of the fit."""
        restored = cls(**affinity.get_params(deep=False))
        restored.__dict__.update(found, _samples=samples)
        return restored

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        can_fit = "_samples" in state and "n_features_in_" not in state
        if not can_fit or name.startswith("_") or not name.endswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        state.update(vars(Affinity(**self.get_params(deep=False)).fit(state["_samples"])))
        return getattr(self, name)

    def extend(self, X: Any) -> csr_array:
        """Return the affinities of new samples; see `Affinity.extend`."""
        self.n_features_in_  # noqa: B018  (fits)
        return super().extend(X)


def described(affinity: Any) -> Any:
    """Return the class and parameters of an affinity in values that JSON knows.

    Raises
    ------
    ValueError
        If it is no `Affinity`, or one of its parameters is an object or a function.
    """
    if affinity is None or isinstance(affinity, str):
        return affinity
    kind = Affinity if type(affinity) is RestoredAffinity else type(affinity)
    if kind not in BUILDERS.values():
        raise ValueError(
            f"Only data with an Affinity can be saved, not with {affinity!r}. Build the graph and "
            'prepare that: Prepared(W, affinity="precomputed").'
        )
    parameters = affinity.get_params(deep=False)
    if isinstance(parameters.get("neighbors"), ApproximateNeighbors):
        parameters["neighbors"] = described(parameters["neighbors"])
    return {
        "class": kind.__name__,
        **{key: _plain(key, value) for key, value in parameters.items()},
    }


def _plain(name: str, value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    try:
        json.dumps(value)
    except TypeError:
        raise ValueError(
            f"The affinity's {name}={value!r} cannot be written to a file. Build the graph and "
            'prepare that: Prepared(W, affinity="precomputed").'
        ) from None
    return value


def _built(description: Any) -> Any:
    if description is None or isinstance(description, str):
        return description
    parameters = dict(description)
    if isinstance(parameters.get("neighbors"), dict):
        parameters["neighbors"] = _built(parameters["neighbors"])
    return BUILDERS[parameters.pop("class")](**parameters)


# --- writing


def save(data: Prepared, path: str | os.PathLike[str]) -> None:
    """Write prepared data to a file."""
    arrays: dict[str, AnyArray] = {}
    facts: dict[str, Any] = {"version": VERSION, "affinity": described(data.affinity)}
    if data.feature_names is not None:
        facts["feature_names"] = list(data.feature_names)
    _put(arrays, "X", data.X)
    if not data.is_graph:
        _put(arrays, "W", data._W)
    _put(arrays, "degrees", data._degrees)
    _put(arrays, "components", data._components)
    pairs = data._embedding
    if pairs is not None:
        facts["n_products"] = pairs.n_products
        for name in ("values", "vectors", "residuals"):
            _put(arrays, f"embedding.{name}", getattr(pairs, name))
    for name in ("adjacency", "additive"):
        start: EigenWarmStart = getattr(data.warm, name)
        embedded = pairs is not None and start.vectors is pairs.vectors
        _put(arrays, f"{name}.vectors", None if embedded else start.vectors)
        _put(arrays, f"{name}.row_order", start.row_order)
        cutoffs = list(start.cutoffs.items())
        facts[name] = {"spectrum": start.spectrum, "cutoffs": cutoffs, "embedded": embedded}
    facts["resolvents"] = list(data.warm.resolvents)
    for number, (columns, matrix) in enumerate(data.warm.resolvents.values()):
        _put(arrays, f"resolvent{number}.columns", columns)
        _put(arrays, f"resolvent{number}", matrix)
    facts["digest"] = _digest(arrays)
    arrays["prepared"] = np.array(json.dumps(facts))
    with atomic(path) as unfinished, unfinished.open("wb") as file:
        _write_archive(file, arrays)


def _write_archive(file: IO[bytes], arrays: dict[str, AnyArray]) -> None:
    """Write what `np.savez` writes, in any version of NumPy, and never a pickle.

    Older versions of `savez` take ``allow_pickle=False`` for one more array.
    """
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)


def _digest(arrays: dict[str, AnyArray]) -> str:
    """Return a checksum of all arrays: no solver has to expect a damaged one."""
    total = sha256()
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        total.update(np.ascontiguousarray(arrays[name]).data)
    return total.hexdigest()


def _put(arrays: dict[str, AnyArray], name: str, matrix: Any) -> None:
    if issparse(matrix):
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}.{part}"] = getattr(matrix, part)
        arrays[f"{name}.shape"] = np.array(matrix.shape)
    elif matrix is not None:
        arrays[name] = matrix


# --- reading


def load(cls: type[Prepared], path: str | os.PathLike[str]) -> Prepared:
    """Read prepared data from a file."""
    with Path(path).open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as stored:
                return _restored(cls, {name: stored[name] for name in stored.files})
        except DAMAGED as error:
            raise ValueError(
                f"{path} was not written by Prepared.save, or it is damaged ({error}). Prepare the "
                "data again."
            ) from error


def _restored(cls: type[Prepared], arrays: dict[str, AnyArray]) -> Prepared:
    facts = json.loads(str(arrays.pop("prepared")))
    if facts["version"] != VERSION:
        raise ValueError(f"it has version {facts['version']}, this program reads version {VERSION}")
    if facts["digest"] != _digest(arrays):
        raise ValueError("its checksum is wrong")
    data = cls(_got(arrays, "X"), _built(facts["affinity"]))
    n = data.n_samples
    if "feature_names" in facts:
        data.feature_names = np.array(facts["feature_names"], dtype=object)
    W = None if data.is_graph else _got(arrays, "W", shape=(n, n))
    if W is not None:
        affinity = _built(facts["affinity"]) or Affinity()
        data.affinity_ = RestoredAffinity.of(affinity, data.X, affinity_matrix_=W)
        data._W = W
    data._degrees = _got(arrays, "degrees", shape=(n,))
    data._components = _got(arrays, "components", shape=(n,))
    data._embedding = _embedding(arrays, facts.get("n_products"), n)
    _restore_warm_starts(data, arrays, facts)
    return data


def _embedding(arrays: dict[str, AnyArray], n_products: int | None, n: int) -> EigenPairs | None:
    values = arrays.get("embedding.values")
    if values is None:
        return None
    vectors = _got(arrays, "embedding.vectors", shape=(n, values.size))
    residuals = _got(arrays, "embedding.residuals", shape=(values.size,))
    return EigenPairs(values, vectors, residuals, converged=True, n_products=n_products)


def _restore_warm_starts(
    data: Prepared, arrays: dict[str, AnyArray], facts: dict[str, Any]
) -> None:
    n = data.n_samples
    for name in ("adjacency", "additive"):
        start: EigenWarmStart = getattr(data.warm, name)
        start.vectors = _got(arrays, f"{name}.vectors", shape=(n, None))
        if facts[name]["embedded"] and data._embedding is not None:
            start.vectors = data._embedding.vectors
        start.row_order = _got(arrays, f"{name}.row_order")
        spectrum = facts[name]["spectrum"]
        start.spectrum = None if spectrum is None else tuple(spectrum)
        start.cutoffs = dict(facts[name]["cutoffs"])
    for number, key in enumerate(facts["resolvents"]):
        columns = arrays[f"resolvent{number}.columns"]
        matrix = _got(arrays, f"resolvent{number}", shape=(n, columns.size), kind=csc_array)
        data.warm.resolvents[tuple(key)] = (columns, matrix)


def _got(
    arrays: dict[str, AnyArray], name: str, *, shape: Any = None, kind: Any = csr_array
) -> Any:
    """Return an array or a sparse matrix, of the expected shape; None if there is none."""
    if f"{name}.data" in arrays:
        parts = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
        matrix: Any = kind(parts, shape=tuple(arrays[f"{name}.shape"].tolist()))
        matrix.check_format(full_check=True)
    else:
        matrix = arrays.get(name)
    if matrix is None or shape is None:
        return matrix
    fits = len(shape) == matrix.ndim
    if not fits or any(m not in {None, n} for m, n in zip(shape, matrix.shape, strict=True)):
        raise ValueError(f"{name} has shape {matrix.shape}, not {shape}")
    return matrix
