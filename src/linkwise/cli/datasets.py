"""``linkwise datasets``: what can be loaded by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np
from scipy.sparse import csr_array, issparse, triu

from linkwise._files import atomic
from linkwise.cli.console import BadInput
from linkwise.cli.formats import write_rows
from linkwise.cli.writing import check_output
from linkwise.datasets import available, load

if TYPE_CHECKING:
    from pathlib import Path

    from linkwise.cli.console import Console

HEADER = ("name", "samples", "features", "clusters", "origin", "here")


def run(console: Console, name: str | None, output: Path | None) -> int:
    """Print the table, or describe one data set and write it."""
    if name is None:
        _list(console)
        return 0
    check_output(output, "--output", formats=(".csv", ".tsv", ".npz"))
    data = load(name)
    if output is not None:
        _write(data, output, console)
        console.note(f"wrote {output}")
    facts = {
        "command": "datasets",
        "name": data.name,
        "n_samples": data.X.shape[0],
        "n_features": None if issparse(data.X) else data.X.shape[1],
        "n_clusters": data.n_clusters,
        "source": data.source,
        "description": data.description,
    }
    console.summary(facts)
    if not console.json:
        click.echo(f"{data.name}: {data.X.shape[0]} samples in {data.n_clusters} classes")
        click.echo(f"{data.description} ({data.source})")
    return 0


def _list(console: Console) -> None:
    rows = [
        dict(
            zip(
                HEADER,
                (d.name, d.n_samples, d.n_features, d.n_clusters, d.origin, d.here),
                strict=True,
            )
        )
        for d in available()
    ]
    console.summary({"command": "datasets", "datasets": rows})
    if console.json:
        return
    shown = [{**row, "here": "yes" if row["here"] else "no"} for row in rows]
    cells = [["-" if row[k] is None else str(row[k]) for k in HEADER] for row in shown]
    console.table(HEADER, cells)


def _write(data: Any, output: Path, console: Console) -> None:
    if output.suffix.lower() == ".npz":
        _write_archive(data, output)
        return
    if issparse(data.X):
        if data.X.min() < 0:
            raise BadInput(
                f"{data.name} has negative weights, which no edge list for `cluster --graph` may "
                "have. Take .npz, and in Python linkwise.datasets.signed_parts, which makes a "
                "graph and constraints of it."
            )
        console.warn(
            f"{output} holds the edges alone, without classes. Take .npz to keep them, and score "
            "with `cluster --truth y`."
        )
        edges = triu(data.X).tocoo()
        columns = (edges.row.tolist(), edges.col.tolist(), edges.data.tolist())
        write_rows(output, ("source", "target", "weight"), zip(*columns, strict=True))
        return
    header = ["id", *(f"x{k}" for k in range(data.X.shape[1])), "class"]
    numbered = enumerate(zip(data.X.tolist(), data.y.tolist(), strict=True))
    rows = ([row, *values, cls] for row, (values, cls) in numbered)
    write_rows(output, header, rows)


def _write_archive(data: Any, output: Path) -> None:
    """Write X and y; of a graph what scipy.sparse.load_npz reads, and y beside it."""
    arrays = {"X": data.X}
    if issparse(data.X):
        W = csr_array(data.X)
        parts = {"indices": W.indices, "indptr": W.indptr, "data": W.data}
        arrays = {"format": np.array(b"csr"), "shape": np.array(W.shape), **parts}
    with atomic(output) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays, y=data.y)
