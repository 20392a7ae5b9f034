"""DATA in all its formats: tables, arrays, graphs and AnnData, as one value."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.io import mmread
from scipy.sparse import coo_array, csr_array, issparse, load_npz

from linkwise._optional import require
from linkwise.cli.console import BadInput, counted
from linkwise.cli.tables import (
    ID_NAMES,
    SHOWN,
    check_columns,
    codes,
    features,
    read_table,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from linkwise.cli.requests import DataRequest

    Ints = NDArray[np.intp]

__all__ = ["Data", "read_data", "read_names"]

TABLES = (".csv", ".tsv", ".tab", ".txt", ".parquet")
FORMATS = (*TABLES, ".npy", ".npz", ".mtx", ".h5ad")
SPARSE_KEYS = {"format", "shape", "data"}  # what scipy.sparse.save_npz writes


@dataclass
class Data:
    """The rows of DATA: features or a graph, their names, and what is known of them."""

    n_samples: int
    X: Any = None
    W: csr_array | None = None
    names: list[str] | None = None
    id_name: str = "row"
    feature_names: list[str] = field(default_factory=list)
    labels: Ints | None = None
    label_names: list[str] = field(default_factory=list)
    truth: Ints | None = None
    notes: list[str] = field(default_factory=list)
    frame: Any = None  # the columns as they were typed, for showing rows to people
    annotated: Any = None  # the AnnData object, for writing a copy

    def shown_ids(self) -> list[Any]:
        """Return the names of the rows; their positions if they have none."""
        return list(range(self.n_samples)) if self.names is None else self.names


def read_data(request: DataRequest, *, needs_features: bool) -> Data:
    """Read DATA; `needs_features` says that a graph alone will not do."""
    path = request.data
    suffix = _checked_suffix(path)
    if suffix in TABLES:
        if request.graph:
            _refuse_column_options(request, "an edge list")
            return _edge_list(request)
        return _table(request)
    if suffix == ".h5ad":
        return _annotated(request, needs_features=needs_features)
    if suffix == ".mtx":
        data = _matrix(_read_matrix_market(path), request)
    elif suffix == ".npz":
        data = _archive(request)
    else:
        data = _matrix(_read_array(path), request)
    return data


def read_names(request: DataRequest) -> Data:
    """Read only what `check` needs of DATA: how many rows, their names and labels."""
    if _checked_suffix(request.data) in TABLES and not request.graph:
        frame, data = _identified(request)
        del frame
        return data
    return read_data(request, needs_features=False)


def _checked_suffix(path: Path) -> str:
    if path.is_dir():
        message = f"{path} is a folder, not a file."
        raise BadInput(message)
    if not path.exists():
        message = f"There is no file {path}."
        raise BadInput(message)
    if path.suffix not in FORMATS:
        message = f"{path}: the name must end in one of {', '.join(FORMATS)}."
        raise BadInput(message)
    return path.suffix


def _refuse_column_options(request: DataRequest, what: str) -> None:
    given = {
        "--labels": request.labels,
        "--truth": request.truth,
        "--id": request.id_column,
        "--features": request.features,
        "--drop": request.drop,
        "--categorical": request.categorical,
        "--scale": request.scale,
        "--impute": request.impute,
    }
    for option, value in given.items():
        if value:
            message = (
                f"{request.data} is {what}, which has no columns for {option}. Leave it out; "
                "what is known goes into --constraints."
            )
            raise BadInput(message)


# Tables ------------------------------------------------------------------------------------


def _table(request: DataRequest) -> Data:
    frame, data = _identified(request)
    columns = [str(name) for name in frame.columns]
    for option, names in (("--drop", request.drop), ("--categorical", request.categorical)):
        check_columns(names, columns, option)
    taken = {*request.drop, request.labels, request.truth, data.id_name}
    check_columns(request.features, columns, "--features")
    kept = [name for name in columns if name not in taken]
    if request.features:
        kept = [name for name in request.features if name not in taken]
    frame = frame[kept]

    def place(row: int) -> str:
        return f"row {row}" if data.names is None else f"row {row} ({data.names[row]})"

    found = features(frame, request, place)
    data.X, data.feature_names, data.frame = found.X, found.names, frame
    listed = ", ".join(kept[:SHOWN]) + ", ..." * (len(kept) > SHOWN)
    shown = f"{counted(data.n_samples, 'row')}, {counted(len(kept), 'feature')} ({listed})"
    if found.n_categorical:
        shown += f"; {found.n_categorical} categorical, {found.X.shape[1]} columns of numbers"
    if request.scale is not False:
        shown += "; standardised (--no-scale leaves them as they are)"
    data.notes.append(shown)
    return data


def _identified(request: DataRequest) -> tuple[Any, Data]:
    """Read a table and the columns that are no features."""
    special = [name for name in (request.id_column, request.labels, request.truth) if name]
    frame = read_table(request.data, request.encoding, request.delimiter, special)
    columns = [str(name) for name in frame.columns]
    for option, name in (
        ("--id", request.id_column),
        ("--labels", request.labels),
        ("--truth", request.truth),
    ):
        if name:
            check_columns([name], columns, option)
    data = Data(len(frame))
    id_column = request.id_column
    if id_column is None:
        first = columns[0]
        is_unnamed = first.startswith("Unnamed: ")
        free = first not in (*request.features, *request.drop, *special)
        if free and (first.lower() in ID_NAMES or is_unnamed):
            id_column = first
            shown = "first column" if is_unnamed else f"column {first!r}"
            data.notes.append(f"ids are the {shown} (--id chooses another)")
    if id_column is not None:
        data.names = _distinct(text_of(frame[id_column]), f"column {id_column!r}")
        data.id_name = id_column
    if request.labels:
        data.labels, data.label_names = _partial(text_of(frame[request.labels]), request.labels)
    if request.truth:
        data.truth = codes(text_of(frame[request.truth]))[0]
    return frame, data


def _distinct(names: list[str], place: str) -> list[str]:
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if not name:
            message = f"The {place} has no id in row {row}. Every row needs one."
            raise BadInput(message)
        if name in first:
            message = (
                f"The {place} has the id {name!r} in rows {first[name]} and {row}. Ids must be "
                "unique: correct it, or choose another column with --id (or --drop this one)."
            )
            raise BadInput(message)
        first[name] = row
    return names


def _partial(texts: Sequence[str], name: str) -> tuple[Ints, list[str]]:
    labels, known = codes(texts)
    if not known:
        message = f"--labels {name}: all values are empty, so no label is known."
        raise BadInput(message)
    return labels, known


def _edge_list(request: DataRequest) -> Data:
    """Read a graph from the columns source, target and perhaps weight."""
    frame = read_table(request.data, request.encoding, request.delimiter, (0, 1))
    if len(frame.columns) < 2:
        message = f"{request.data} has one column; an edge list has two ends, and perhaps a weight."
        raise BadInput(message)
    ends = [text_of(frame[name]) for name in frame.columns[:2]]
    number: dict[str, int] = {}
    for row, pair in enumerate(zip(*ends, strict=True)):
        for name in pair:
            if not name:
                message = f"{request.data} has an edge without an end in row {row}."
                raise BadInput(message)
            number.setdefault(name, len(number))
    weights = np.ones(len(frame))
    if len(frame.columns) > 2:
        weights = _edge_weights(text_of(frame[frame.columns[2]]), str(frame.columns[2]))
    heads, tails = (np.array([number[name] for name in names]) for names in ends)
    names = list(number)
    W = _merged_edges(np.minimum(heads, tails), np.maximum(heads, tails), weights, names)
    data = Data(len(names), W=W, names=names, id_name="node")
    data.notes.append(f"graph of {len(names)} nodes and {W.nnz // 2} edges")
    return data


def _edge_weights(texts: list[str], column: str) -> NDArray[np.float64]:
    weights = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            weights[row] = float(text)
        except ValueError:
            weights[row] = np.nan
        if not 0 <= weights[row] < np.inf:
            message = (
                f"The weight of an edge is a number from 0 up, but column {column!r} has {text!r} "
                f"in row {row}."
            )
            raise BadInput(message)
    return weights


def _merged_edges(
    low: NDArray[Any], high: NDArray[Any], weights: NDArray[np.float64], names: list[str]
) -> csr_array:
    """Build the graph; an edge that is given in both directions counts once."""
    n = len(names)
    key = low.astype(np.int64) * n + high
    distinct, first, which = np.unique(key, return_index=True, return_inverse=True)
    differs = np.flatnonzero(weights != weights[first][which])
    if differs.size:
        row, other = int(differs[0]), int(first[which[differs[0]]])
        message = (
            f"The edge {names[low[row]]} - {names[high[row]]} has the weight {weights[other]:g} in "
            f"row {other} and {weights[row]:g} in row {row}. Remove one of them."
        )
        raise BadInput(message)
    upper = coo_array((weights[first], (distinct // n, distinct % n)), shape=(n, n))
    upper.setdiag(0)
    return csr_array(upper + upper.T)


# Arrays and matrices -----------------------------------------------------------------------


def _read_array(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        message = f"{path} is no readable NumPy file of numbers ({error})."
        raise BadInput(message) from error


def _read_matrix_market(path: Path) -> Any:
    try:
        return mmread(path)
    except (ValueError, OverflowError, EOFError) as error:
        message = f"{path} is no readable Matrix Market file ({error})."
        raise BadInput(message) from error


def _archive(request: DataRequest) -> Data:
    """Read an .npz file: a sparse matrix, or X with other arrays beside it."""
    archive = _read_array(request.data)
    if set(archive.files) >= SPARSE_KEYS:
        return _matrix(load_npz(request.data), request)
    try:
        arrays = {name: archive[name] for name in archive.files}
    except ValueError as error:  # a pickled object among them
        message = f"{request.data} holds Python objects; save arrays of numbers or text instead."
        raise BadInput(message) from error
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    name = "X" if "X" in tables else tables[0] if len(tables) == 1 else None
    if name is None:
        message = (
            f"{request.data} holds {', '.join(archive.files) or 'nothing'}: call the matrix with "
            "one row a sample X."
        )
        raise BadInput(message)
    return _matrix(arrays[name], request, beside=arrays)


def _matrix(matrix: Any, request: DataRequest, beside: dict[str, Any] | None = None) -> Data:
    """Take a matrix for a graph, if it is sparse and square or called one, or for features."""
    if matrix.ndim != 2 or 0 in matrix.shape:
        message = f"{request.data} holds an array of shape {matrix.shape}, not rows and columns."
        raise BadInput(message)
    if matrix.dtype.kind not in "biuf":
        message = f"{request.data} holds {matrix.dtype} values, which are no numbers."
        raise BadInput(message)
    is_square = matrix.shape[0] == matrix.shape[1]
    data = Data(matrix.shape[0])
    _take_columns(data, request, beside)
    if request.graph and not is_square:
        message = f"--graph: {request.data} is not square but of shape {matrix.shape}."
        raise BadInput(message)
    if request.graph or (issparse(matrix) and is_square):
        data.W = csr_array(matrix).astype(np.float64)
        data.notes.append(f"graph of {data.n_samples} nodes and {data.W.nnz // 2} edges")
        return data
    if issparse(matrix):
        data.X = csr_array(matrix).astype(np.float64)
        _refuse_unknown_numbers(data.X.data, request)
    else:
        data.X = _dense(np.array(matrix, dtype=np.float64), request)
    data.feature_names = [f"x{k}" for k in range(matrix.shape[1])]
    scaled = "; standardised" if request.scale and not issparse(matrix) else ""
    data.notes.append(
        f"{counted(data.n_samples, 'row')}, {counted(matrix.shape[1], 'feature')}{scaled}"
    )
    return data


def _take_columns(data: Data, request: DataRequest, beside: dict[str, Any] | None) -> None:
    """Find ids, labels and truth among the other arrays of the file."""
    arrays = {
        name: array
        for name, array in (beside or {}).items()
        if array.ndim == 1 and len(array) == data.n_samples
    }
    for option, name in (
        ("--id", request.id_column),
        ("--labels", request.labels),
        ("--truth", request.truth),
    ):
        if name:
            check_columns([name], list(arrays), option)
    if request.id_column:
        data.names = _distinct(text_of(arrays[request.id_column]), f"array {request.id_column!r}")
        data.id_name = request.id_column
    if request.labels:
        data.labels, data.label_names = _partial(text_of(arrays[request.labels]), request.labels)
    if request.truth:
        data.truth = codes(text_of(arrays[request.truth]))[0]


def _dense(X: NDArray[np.float64], request: DataRequest) -> NDArray[np.float64]:
    if request.impute == "median" and np.isnan(X).any():
        median = np.nanmedian(np.where(np.isnan(X).all(axis=0), 0.0, X), axis=0)
        X = np.where(np.isnan(X), median, X)
    _refuse_unknown_numbers(X, request)
    if request.scale:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X


def _refuse_unknown_numbers(values: NDArray[np.float64], request: DataRequest) -> None:
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    rows = np.flatnonzero(bad.any(axis=1)) if bad.ndim == 2 else np.flatnonzero(bad)
    remedy = ", or use --impute median" if np.isnan(values).any() else ""
    message = (
        f"{request.data} has {int(bad.sum())} missing or infinite values, the first in row "
        f"{rows[0]}. Correct them{remedy}."
    )
    raise BadInput(message)


# AnnData -----------------------------------------------------------------------------------


def _annotated(request: DataRequest, *, needs_features: bool) -> Data:
    anndata = require("anndata", extra="anndata", purpose="Reading .h5ad files")
    try:
        adata = anndata.read_h5ad(request.data)
    except (OSError, KeyError, ValueError) as error:
        message = f"{request.data} is no readable .h5ad file ({error})."
        raise BadInput(message) from error
    data = Data(adata.n_obs, id_name="cell", annotated=adata)
    data.names = _distinct([str(name) for name in adata.obs_names], "obs_names")
    for option, name in (("--labels", request.labels), ("--truth", request.truth)):
        if name:
            check_columns([name], [str(column) for column in adata.obs.columns], option)
    if request.labels:
        data.labels, data.label_names = _partial(text_of(adata.obs[request.labels]), request.labels)
    if request.truth:
        data.truth = codes(text_of(adata.obs[request.truth]))[0]
    key = request.use or _preferred(adata, needs_features=needs_features)
    if key is not None and key in adata.obsp:
        graph = csr_array(adata.obsp[key]).astype(np.float64)
        # Neighbour graphs are symmetric up to the rounding of 32 bits.
        data.W = csr_array((graph + graph.T) / 2)
        data.notes.append(f"{data.n_samples} cells, graph obsp[{key!r}]")
        return data
    matrix = adata.X if key == "X" else adata.obsm.get(key) if key is not None else None
    if matrix is None:
        keys = [*adata.obsp, *adata.obsm, "X"]
        wanted = f"no {key!r}" if key else "neither obsp['connectivities'] nor obsm['X_pca']"
        message = (
            f"{request.data} has {wanted}. Compute neighbours or PCA first (scanpy.pp.neighbors, "
            f"scanpy.pp.pca), or choose with --use: {', '.join(keys)}."
        )
        raise BadInput(message)
    data.X = csr_array(matrix).astype(np.float64) if issparse(matrix) else None
    if data.X is None:
        data.X = _dense(np.array(matrix, dtype=np.float64), request)
    where = "X" if key == "X" else f"obsm[{key!r}]"
    data.feature_names = [f"{key}{k}" for k in range(data.X.shape[1])]
    data.notes.append(f"{data.n_samples} cells, {data.X.shape[1]} features of {where}")
    return data


def _preferred(adata: Any, *, needs_features: bool) -> str | None:
    if "connectivities" in adata.obsp and not needs_features:
        return "connectivities"
    return "X_pca" if "X_pca" in adata.obsm else None
