"""Files that appear only when they are complete."""

from __future__ import annotations

import csv
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._optional import require
from linkwise.cli.console import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from linkwise.cli.reading import Data

__all__ = ["atomic", "check_output", "write_clusters", "write_rows"]

CLUSTER_FORMATS = (".csv", ".tsv", ".parquet", ".npy", ".h5ad")


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it becomes `path` if the block ends well, and vanishes if not.

    The unfinished file lies in the same folder, so that renaming it is one step for the file
    system. What is no regular file, such as a pipe, is written directly.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}.unfinished{path.suffix}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def check_output(
    path: Path | None, option: str, *, data: Path | None = None, formats: Sequence[str] = ()
) -> None:
    """Refuse, before any work is done, a file that could not be written in the end."""
    if path is None:
        return
    if path.is_dir():
        message = f"{option} {path} is a folder. Name a file in it."
        raise BadInput(message)
    if not path.resolve().parent.is_dir():
        message = f"{option} {path}: there is no folder {path.resolve().parent}. Create it first."
        raise BadInput(message)
    if data is not None and path.exists() and data.exists() and path.samefile(data):
        message = f"{option} {path} would overwrite the input. Choose another name."
        raise BadInput(message)
    # A pipe or a device has no suffix to go by; it gets the first format.
    if formats and not (path.exists() and not path.is_file()) and path.suffix not in formats:
        message = f"{option} {path}: the name must end in one of {', '.join(formats)}."
        raise BadInput(message)


def write_rows(path: Path, header: Sequence[str], rows: Any, delimiter: str = ",") -> None:
    """Write a table as text."""
    with atomic(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_clusters(path: Path, data: Data, labels: NDArray[np.intp], column: str) -> None:
    """Write the clusters in the format that the name of the file tells."""
    header = (data.id_name, column)
    if path.suffix == ".npy":
        with atomic(path) as unfinished, unfinished.open("wb") as file:
            np.save(file, labels)
    elif path.suffix == ".h5ad":
        copy = data.annotated.copy()
        copy.obs[column] = [str(label) for label in labels]
        copy.obs[column] = copy.obs[column].astype("category")
        with atomic(path) as unfinished:
            copy.write_h5ad(unfinished)
    elif path.suffix == ".parquet":
        pandas = require("pandas", extra="parquet", purpose="Writing Parquet files")
        require("pyarrow", extra="parquet", purpose="Writing Parquet files")
        frame = pandas.DataFrame({header[0]: data.shown_ids(), column: labels})
        with atomic(path) as unfinished:
            frame.to_parquet(unfinished, index=False)
    else:
        rows = zip(data.shown_ids(), labels.tolist(), strict=True)
        write_rows(path, header, rows, "\t" if path.suffix == ".tsv" else ",")
