"""``linkwise cluster`` of many parquet files on Dask: one file of clusters for each part."""

from __future__ import annotations

import os
import time
from dataclasses import fields
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._files import atomic, resolved
from linkwise._optional import require
from linkwise.cli import options
from linkwise.cli.console import BadInput, counted
from linkwise.cli.formats import check_distinct_names
from linkwise.cli.records import split_names
from linkwise.cli.sizes import check_size, matrix_bytes
from linkwise.cli.sources import Source
from linkwise.cli.tables import warn_of_constants
from linkwise.cli.writing import check_output
from linkwise.constraints import Constraints
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Floats
    from linkwise.cli.console import Console
    from linkwise.cli.requests import ClusterRequest

# Fields of a request that many files have, too. All others are refused, not ignored.
HANDLED = {"data", "id_column", "drop", "features", "scale", "constraints", "n_clusters"}
HANDLED |= {"method", "settings", "seed", "output", "column", "workers", "scheduler", "max_gb"}


class Part(NamedTuple):
    """What the end of a parquet file tells about it."""

    path: str
    n_rows: int
    schema: Any


def run(request: ClusterRequest, console: Console) -> int:
    """Cluster the rows of all parts together, on a local cluster or one that runs already."""
    _check_options(request)
    files, Method = _files(request), options.find_method(request.method)
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
    outputs = _outputs(files, request)
    parts = [_looked_at(path) for path in files]
    columns = _columns(parts, request)
    for part in parts:  # each has to fit into the memory of a worker
        source = Source(part.path, Path(part.path), ".parquet")
        check_size(source, matrix_bytes(part.n_rows, len(columns)), request)
    with console.progress(options.key_of(Method)) as progress, _client(request) as client:
        progress(0.0, "reading", upto=0.1)
        data = _prepared(parts, columns, request, client=client)
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
        sizes = _write(parts, outputs, model.labels_, request=request)
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


def _files(request: ClusterRequest) -> list[str]:
    """Return the files of DATA: the one of that name, or those of the pattern."""
    wanted = str(request.data)
    is_name = os.path.lexists(wanted)  # also of a name with brackets, which a pattern has, too
    files = [wanted] if is_name else sorted(glob(wanted))  # noqa: PTH207  (may be absolute)
    if not files:
        raise BadInput(f"No file matches {wanted}.")
    for path in files:
        if Path(path).suffix != ".parquet":
            raise BadInput(f"{path} is not a parquet file; --workers reads these only.")
        if not resolved(path).is_file():  # reading a pipe would wait without end
            what = "a folder or a pipe" if Path(path).exists() else "a link to nothing"
            raise BadInput(f"{path} is {what}, not a parquet file. Leave it out of DATA.")
    return files


def _outputs(files: Sequence[str], request: ClusterRequest) -> list[Path]:
    """Return the file of clusters of each part, in the folders that parts of one name have."""
    if request.output is None:
        raise BadInput("-o is missing: the directory that gets a file of clusters for each part.")
    if request.output.exists() and not request.output.is_dir():
        raise BadInput(f"-o {request.output} is a file. Name a folder, for a file for each part.")
    if request.output.is_symlink() and not resolved(request.output).exists():
        raise BadInput(f"-o {request.output} is a link to nothing. Create that folder first.")
    absolute = [Path(os.path.abspath(path)) for path in files]  # noqa: PTH100  (keeps links)
    common = os.path.commonpath([path.parent for path in absolute])
    outputs = [request.output / path.relative_to(common) for path in absolute]
    given = {resolved(path) for path in (*files, request.constraints) if path is not None}
    taken: dict[Path, Path] = {}
    for path in outputs:
        final = resolved(path)
        if final in given:
            raise BadInput(
                f"-o {request.output}: {path} would overwrite the input. Choose another folder."
            )
        if final in taken:
            raise BadInput(
                f"-o {request.output}: {path} and {taken[final]} are one file, by a link. Choose "
                "another folder."
            )
        taken[final] = path
        _check_writable(final, path)
    return outputs


def _check_writable(final: Path, path: Path) -> None:
    """Raise, before any work is done, if a file could not be written in the end."""
    folder = final.parent
    while not os.path.lexists(folder):  # made when there is something to write
        folder = folder.parent
    if not folder.is_dir():
        raise BadInput(f"-o {path}: {folder} is no folder. Choose another one.")
    if folder == final.parent:
        check_output(path, "-o")
    elif not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"-o {path}: nothing can be written to the folder {folder}.")


def _looked_at(path: str) -> Part:
    """Read the end of a part; raise if it is damaged."""
    parquet = require("pyarrow.parquet", extra="dask", purpose="Reading parquet")
    try:
        facts = parquet.read_metadata(path)
        schema = facts.schema.to_arrow_schema()
    except (ValueError, OSError) as error:  # pyarrow's errors are one or the other
        raise BadInput(f"{path} is no readable Parquet file ({error}).") from error
    check_distinct_names(schema.names, path)
    return Part(path, int(facts.num_rows), schema)


def _columns(parts: Sequence[Part], request: ClusterRequest) -> list[str]:
    """Return the names of the features; raise if a part lacks a column that an option names."""
    first = parts[0].schema
    dropped = tuple(split_names(request.drop, first.names))
    chosen = tuple(split_names(request.features, first.names))
    asked = {"--features": chosen, "--drop": dropped}
    asked["--id"] = () if request.id_column is None else (request.id_column,)
    for part in parts:
        for option, names in asked.items():
            for name in names:
                if name not in part.schema.names:
                    raise BadInput(f"{option} {name}: {part.path} has no column of that name.")
    # The index of a frame is a column of its file, but no feature unless it is asked for.
    index = (first.pandas_metadata or {}).get("index_columns", [])
    wanted = chosen or [name for name in first.names if name not in index]
    columns = [name for name in dict.fromkeys(wanted) if name not in asked["--id"] + dropped]
    if not columns:
        raise BadInput("No column is left as a feature. Choose some with --features.")
    for part in parts:
        for name in columns:
            if name not in part.schema.names:
                raise BadInput(f"{part.path} has no column {name!r}, but {parts[0].path} has.")
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


def _array(parts: Sequence[Part], columns: list[str]) -> Any:
    """Return the features of all parts as a Dask array, a chunk for each that has rows."""
    dask = require("dask", extra="dask", purpose="--workers")
    array = require("dask.array", extra="dask", purpose="--workers")
    read = dask.delayed(read_part, pure=False)
    blocks = [
        array.from_delayed(
            read(str(resolved(part.path)), columns), (part.n_rows, len(columns)), dtype=np.float64
        )
        for part in parts
    ]
    return array.concatenate(blocks)


def read_part(path: str, columns: list[str]) -> Any:
    """Return the features of a part, where a worker needs them."""
    parquet = require("pyarrow.parquet", extra="dask", purpose="Reading parquet")
    try:
        table = parquet.read_table(path, columns=columns)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is no readable Parquet file ({error}).") from error
    frame = table.to_pandas(ignore_metadata=True, date_as_object=False)[columns]
    for name in columns:
        if frame[name].dtype.kind in "mM":
            frame[name] = _days(frame[name])
    values = frame.to_numpy()
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values  # text: the check of all chunks says where


def _days(column: Any) -> Any:
    """Return dates and durations as days; missing ones are NaN."""
    pandas = require("pandas", extra="dask", purpose="Reading parquet")
    if column.dtype.kind == "M":
        column = column - pandas.Timestamp(0, tz=column.dt.tz)
    return column / pandas.Timedelta(days=1)


def _prepared(
    parts: Sequence[Part], columns: list[str], request: ClusterRequest, *, client: Any
) -> Any:
    """Return the data for fits, checked before they are standardised: one NaN would be all."""
    distributed = require("linkwise.distributed", extra="dask", purpose="--workers")
    Method = options.find_method(request.method)
    affinity = options.parse_settings(request.settings, Method).get("affinity")
    X = _array(parts, columns)
    try:
        data = distributed.Prepared(X, affinity, client=client)
    except ValueError as error:
        raise BadInput(_with_file(error, parts, columns)) from error
    low, high = data.chunks.low, data.chunks.high
    constant = [name for name, same in zip(columns, low == high, strict=True) if same]
    warn_of_constants(constant, len(columns))
    if request.scale is False:
        return data
    largest = np.maximum(np.abs(low), np.abs(high))
    return distributed.Prepared(_standardised(X, largest), affinity, client=client)


def _with_file(error: ValueError, parts: Sequence[Part], columns: Sequence[str]) -> str:
    """Return a message that begins with the file of a chunk, and the name of the column."""
    number, column = getattr(error, "chunk", None), getattr(error, "column", None)
    if number is None:
        return str(error)
    path = [part.path for part in parts if part.n_rows][number]
    named = "" if column is None else f", column {columns[column]!r}"
    return f"{path}{named}: {error}"


def _standardised(X: Any, largest: Floats) -> Any:
    """Return columns of mean 0 and variance 1 over all parts; constant ones become 0."""
    dask = require("dask", extra="dask", purpose="--workers")
    # In its own unit, so that squares of very large and very small values stay finite.
    X = X / np.where(largest > 0, largest, 1.0)
    mean, spread = dask.compute(X.mean(axis=0), X.std(axis=0))
    # Rounding leaves a constant column a spread of about 1e-17.
    return (X - mean) / np.where(spread > 1e-12, spread, np.inf)


def _write(
    parts: Sequence[Part], outputs: Sequence[Path], labels: Any, *, request: ClusterRequest
) -> Any:
    """Write a file of clusters for each part, one after the other; return their sizes."""
    pandas = require("pandas", extra="dask", purpose="Writing parquet")
    parquet = require("pyarrow.parquet", extra="dask", purpose="Writing parquet")
    sizes = np.zeros(0, dtype=np.intp)
    first = 0
    for part, output in zip(parts, outputs, strict=True):  # one without rows is no chunk
        found = labels[first : first + part.n_rows].compute()
        first += part.n_rows
        frame = pandas.DataFrame({request.column: found})
        if request.id_column is not None:
            ids = parquet.read_table(part.path, columns=[request.id_column])
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
