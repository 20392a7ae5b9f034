"""``linkwise cluster`` of many parquet files on Dask: one file of clusters for each part."""

from __future__ import annotations

import os
import time
from dataclasses import fields
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._files import atomic, resolved
from linkwise._optional import require
from linkwise.cli import options
from linkwise.cli.console import BadInput, counted
from linkwise.cli.records import split_names
from linkwise.cli.tables import warn_of_constants
from linkwise.constraints import Constraints
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats
    from linkwise.cli.console import Console
    from linkwise.cli.requests import ClusterRequest

# Fields of a request that many files have, too. All others are refused, not ignored.
HANDLED = {"data", "id_column", "drop", "features", "scale", "constraints", "n_clusters"}
HANDLED |= {"method", "settings", "seed", "output", "column", "workers", "scheduler"}


def run(request: ClusterRequest, console: Console) -> int:
    """Cluster the rows of all parts together, on a local cluster or one that runs already."""
    _check_options(request)
    files, Method = _parts(request), options.find_method(request.method)
    if not Method.is_distributed:
        usable = ", ".join(key for key, one in METHODS.items() if one.is_distributed)
        raise BadInput(
            f"--method {options.key_of(Method)} is for one machine. On Dask take one of: {usable}."
        )
    if request.n_clusters is None:
        raise BadInput("-k is missing: say how many clusters you want, for example -k 3.")
    settings = options.parse_settings(request.settings, Method)
    if options.scales_features(Method):
        settings = {"scaling": "given", **settings}  # scaled here, or not: not a second time
    columns, outputs = _columns(files, request), _outputs(files, request)
    with console.progress(options.key_of(Method)) as progress, _client(request) as client:
        progress(0.0, "reading", upto=0.1)
        data = _prepared(_array(files, columns), columns, request, client=client)
        known = Constraints(data.n_samples)
        if request.constraints is not None:
            known = Constraints.from_file(request.constraints, data.n_samples)
        shown = f"{data.n_samples:,} rows in {counted(len(files), 'part')} x {len(columns)}"
        if request.scale is not False:
            shown += "; standardised (--no-scale leaves them as they are)"
        console.note(shown)
        model = options.build(
            Method, settings, data, n_clusters=request.n_clusters, request=request
        )
        progress(0.1, "clustering", upto=0.9)
        started = time.perf_counter()
        model.fit(data, **({} if known.is_empty else {"constraints": known}))
        progress(0.9, "writing", upto=1.0)
        sizes = _write(files, outputs, model.labels_, request=request)
    facts = {
        "command": "cluster",
        "data": str(request.data),
        "n_samples": data.n_samples,
        "parts": len(files),
        "method": options.key_of(Method),
        "sizes": sizes,
        "seconds": round(time.perf_counter() - started, 3),
        "outputs": {"clusters": str(request.output)},
    }
    console.note(f"{facts['method']}: clusters of {', '.join(map(str, sizes))} rows")
    console.note(f"wrote {counted(len(files), 'file')} to {request.output}")
    console.summary({**facts, "warnings": console.warnings})
    return 0


# Checks, before anything starts ---------------------------------------------------------------


def _check_options(request: ClusterRequest) -> None:
    """Raise if an option is not for many files, or not for them beside another."""
    for field in fields(request):
        if field.name not in HANDLED and getattr(request, field.name) != field.default:
            option = field.name.replace("_", "-")
            raise BadInput(
                f"--{option} is for one file on one machine, without --workers and --scheduler."
            )
    if request.workers is not None and request.scheduler is not None:
        raise BadInput(
            "--workers and --scheduler: a cluster that runs has workers. Leave one of them out."
        )
    if request.constraints is not None and request.id_column is not None:
        raise BadInput(
            "-c and --id: pairs name the rows of many parts by their number in all of them, from "
            f"0, and not by an id. Use --drop {request.id_column} instead of --id; the clusters "
            "are in the order of the rows."
        )
    if request.id_column is not None and request.column == request.id_column:
        raise BadInput(
            f"--column {request.column}: that is the name of the column of ids. Choose another "
            "with --column."
        )


def _parts(request: ClusterRequest) -> list[str]:
    """Return the files of DATA."""
    files = sorted(glob(str(request.data)))  # noqa: PTH207  (the pattern may be absolute)
    if not files:
        raise BadInput(f"No file matches {request.data}.")
    others = [path for path in files if Path(path).suffix != ".parquet"]
    if others:
        raise BadInput(f"{others[0]} is not a parquet file; --workers reads these only.")
    return files


def _outputs(files: Sequence[str], request: ClusterRequest) -> list[Path]:
    """Return the file of clusters of each part, in the folders that parts of one name have."""
    if request.output is None:
        raise BadInput("-o is missing: the directory that gets a file of clusters for each part.")
    if request.output.exists() and not request.output.is_dir():
        raise BadInput(f"-o {request.output} is a file. Name a folder, for a file for each part.")
    absolute = [Path(os.path.abspath(path)) for path in files]  # noqa: PTH100  (keeps links)
    common = os.path.commonpath([path.parent for path in absolute])
    outputs = [request.output / path.relative_to(common) for path in absolute]
    given = {resolved(path) for path in (*files, request.constraints) if path is not None}
    for path in outputs:
        if resolved(path) in given:
            raise BadInput(
                f"-o {request.output}: {path} would overwrite the input. Choose another folder."
            )
    return outputs


def _columns(files: Sequence[str], request: ClusterRequest) -> list[str]:
    """Return the names of the features; raise if a part lacks a column."""
    parquet = require("pyarrow.parquet", extra="dask", purpose="Reading parquet")
    schemas = {path: parquet.read_schema(path) for path in files}
    first = schemas[files[0]]
    dropped = tuple(split_names(request.drop, first.names))
    asked = {"--features": request.features, "--drop": dropped}
    asked["--id"] = () if request.id_column is None else (request.id_column,)
    for path, schema in schemas.items():
        for option, names in asked.items():
            for name in names:
                if name not in schema.names:
                    raise BadInput(f"{option} {name}: {path} has no column of that name.")
    # The index of a frame is a column of its file, but no feature unless it is asked for.
    index = (first.pandas_metadata or {}).get("index_columns", [])
    wanted = request.features or [name for name in first.names if name not in index]
    columns = [name for name in dict.fromkeys(wanted) if name not in asked["--id"] + dropped]
    if not columns:
        raise BadInput("No column is left as a feature. Choose some with --features.")
    for path, schema in schemas.items():
        for name in columns:
            if name not in schema.names:
                raise BadInput(f"{path} has no column {name!r}, but {files[0]} has.")
    return columns


# Work -----------------------------------------------------------------------------------------


def _client(request: ClusterRequest) -> Any:
    """Return a client, which ends with its block, and so does a local cluster."""
    if request.scheduler is None:
        cluster = require("linkwise.distributed.cluster", extra="dask", purpose="--workers")
        return cluster.local_client(request.workers)
    distributed = require("distributed", extra="dask", purpose="--scheduler")
    try:
        return distributed.Client(request.scheduler, timeout=10)
    except OSError as error:
        raise BadInput(f"--scheduler {request.scheduler} does not answer.") from error


def _array(files: Sequence[str], columns: list[str]) -> Any:
    """Return the features of all parts as a Dask array, a chunk for each."""
    dask = require("dask", extra="dask", purpose="--workers")
    array = require("dask.array", extra="dask", purpose="--workers")
    parquet = require("pyarrow.parquet", extra="dask", purpose="Reading parquet")
    blocks = []
    for path in files:
        shape = (parquet.read_metadata(path).num_rows, len(columns))
        part = dask.delayed(read_part, pure=False)(str(Path(path).resolve()), columns)
        blocks.append(array.from_delayed(part, shape, dtype=np.float64))
    return array.concatenate(blocks)


def read_part(path: str, columns: list[str]) -> Any:
    """Return the features of a part, where a worker needs them."""
    parquet = require("pyarrow.parquet", extra="dask", purpose="Reading parquet")
    frame = parquet.read_table(path, columns=columns).to_pandas(ignore_metadata=True)
    values = frame[columns].to_numpy()
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values  # text: the check of all chunks says where


def _prepared(X: Any, columns: list[str], request: ClusterRequest, *, client: Any) -> Any:
    """Return the data for fits, checked before they are standardised: one NaN would be all."""
    distributed = require("linkwise.distributed", extra="dask", purpose="--workers")
    Method = options.find_method(request.method)
    affinity = options.parse_settings(request.settings, Method).get("affinity")
    data = distributed.Prepared(X, affinity, client=client)
    low, high = data.chunks.low, data.chunks.high
    constant = [name for name, same in zip(columns, low == high, strict=True) if same]
    warn_of_constants(constant, len(columns))
    if request.scale is False:
        return data
    largest = np.maximum(np.abs(low), np.abs(high))
    return distributed.Prepared(_standardised(X, largest), affinity, client=client)


def _standardised(X: Any, largest: Floats) -> Any:
    """Return columns of mean 0 and variance 1 over all parts; constant ones become 0."""
    dask = require("dask", extra="dask", purpose="--workers")
    # In its own unit, so that squares of very large and very small values stay finite.
    X = X / np.where(largest > 0, largest, 1.0)
    mean, spread = dask.compute(X.mean(axis=0), X.std(axis=0))
    # Rounding leaves a constant column a spread of about 1e-17.
    return (X - mean) / np.where(spread > 1e-12, spread, np.inf)


def _write(
    files: Sequence[str], outputs: Sequence[Path], labels: Any, *, request: ClusterRequest
) -> Any:
    """Write a file of clusters for each part, one after the other; return their sizes."""
    pandas = require("pandas", extra="dask", purpose="Writing parquet")
    parquet = require("pyarrow.parquet", extra="dask", purpose="Writing parquet")
    sizes = np.zeros(0, dtype=np.intp)
    first = 0
    for path, output in zip(files, outputs, strict=True):
        n_rows = parquet.read_metadata(path).num_rows  # a part without rows is no chunk
        found = labels[first : first + n_rows].compute()
        first += n_rows
        frame = pandas.DataFrame({request.column: found})
        if request.id_column is not None:
            ids = parquet.read_table(path, columns=[request.id_column])
            # By place: parts of one frame keep the index that they had in it.
            ids = ids.to_pandas(ignore_metadata=True)[request.id_column]
            frame.insert(0, request.id_column, ids.to_numpy())
        output.parent.mkdir(parents=True, exist_ok=True)
        with atomic(output) as unfinished:
            frame.to_parquet(unfinished, index=False)
        counts = np.bincount(found, minlength=sizes.size)
        counts[: sizes.size] += sizes
        sizes = counts
    return sizes
