"""Files that appear only when they are complete."""

from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._files import atomic
from linkwise._optional import require
from linkwise.cli.console import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from linkwise._types import Ints
    from linkwise.cli.reading import Data

__all__ = ["check_output", "refuse_equal", "write_clusters", "write_rows"]

CLUSTER_FORMATS = (".csv", ".tsv", ".parquet", ".npy", ".h5ad")


def check_output(
    path: Path | None,
    option: str,
    *,
    inputs: Sequence[Path | None] = (),
    formats: Sequence[str] = (),
) -> None:
    """Refuse, before any work is done, a file that could not be written in the end."""
    if path is None:
        return
    if path.is_dir():
        message = f"{option} {path} is a folder. Name a file in it."
        raise BadInput(message)
    folder = path.resolve().parent
    if not folder.is_dir():
        message = f"{option} {path}: there is no folder {folder}. Create it first."
        raise BadInput(message)
    is_special = path.exists() and not path.is_file()
    if not is_special and not os.access(folder, os.W_OK | os.X_OK):
        message = f"{option} {path}: nothing can be written to the folder {folder}."
        raise BadInput(message)
    if path.exists() and not os.access(path, os.W_OK):
        message = f"{option} {path} is write-protected. Choose another name."
        raise BadInput(message)
    for given in inputs:
        if given is not None and _is_same_file(path, given):
            message = f"{option} {path} would overwrite the input. Choose another name."
            raise BadInput(message)
    # A pipe or a device has no suffix to go by; it gets the first format.
    if formats and not is_special and path.suffix.lower() not in formats:
        message = f"{option} {path}: the name must end in one of {', '.join(formats)}."
        raise BadInput(message)


def refuse_equal(outputs: Mapping[str, Path | None]) -> None:
    """Refuse one name for two files; the keys are the options."""
    given = [(option, path) for option, path in outputs.items() if path is not None]
    for k, (option, path) in enumerate(given):
        for other, taken in given[:k]:
            if _is_same_file(path, taken):
                message = f"{option} {path} is the file of {other}. Choose another name."
                raise BadInput(message)


def _is_same_file(path: Path, other: Path) -> bool:
    """Whether two names mean one file; into a pipe or a device anything may go."""
    if path.exists() and other.exists():
        return path.is_file() and path.samefile(other)
    return path.resolve() == other.resolve()


def write_rows(path: Path, header: Sequence[str], rows: Any) -> None:
    """Write a table as text: with tabs if the name says so, else with commas."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with atomic(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_clusters(path: Path, data: Data, labels: Ints, column: str) -> None:
    """Write the clusters in the format that the name of the file tells."""
    header = (data.id_name, column)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        with atomic(path) as unfinished, unfinished.open("wb") as file:
            np.save(file, labels)
    elif suffix == ".h5ad":
        copy = data.annotated.copy()
        copy.obs[column] = [str(label) for label in labels]
        copy.obs[column] = copy.obs[column].astype("category")
        with atomic(path) as unfinished:
            copy.write_h5ad(unfinished)
    elif suffix == ".parquet":
        pandas = require("pandas", extra="parquet", purpose="Writing Parquet files")
        require("pyarrow", extra="parquet", purpose="Writing Parquet files")
        frame = pandas.DataFrame({header[0]: data.shown_ids(), column: labels})
        with atomic(path) as unfinished:
            frame.to_parquet(unfinished, index=False)
    else:
        rows = zip(data.shown_ids(), labels.tolist(), strict=True)
        write_rows(path, header, rows)
