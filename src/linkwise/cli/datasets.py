"""``linkwise datasets``: what can be loaded by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from scipy.sparse import issparse, triu

from linkwise.cli.writing import check_output, write_rows
from linkwise.datasets import available, load

if TYPE_CHECKING:
    from pathlib import Path

    from linkwise.cli.console import Console

__all__ = ["run"]

HEADER = ("name", "samples", "features", "clusters", "origin", "here")


def run(console: Console, name: str | None, output: Path | None) -> int:
    """Print the table, or describe one data set and write it."""
    if name is None:
        _list(console)
        return 0
    check_output(output, "--output", formats=(".csv", ".tsv"))
    data = load(name)
    if output is not None:
        _write(data, output)
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
    listed = available()
    rows = [
        {
            "name": entry.name,
            "samples": entry.n_samples,
            "features": entry.n_features,
            "clusters": entry.n_clusters,
            "origin": entry.origin,
            "here": entry.here,
        }
        for entry in listed
    ]
    console.summary({"command": "datasets", "datasets": rows})
    if console.json:
        return
    shown = [{**row, "here": "yes" if row["here"] else "no"} for row in rows]
    cells = [["-" if row[k] is None else str(row[k]) for k in HEADER] for row in shown]
    console.table(HEADER, cells)


def _write(data: Any, output: Path) -> None:
    separator = "\t" if output.suffix == ".tsv" else ","
    if issparse(data.X):
        edges = triu(data.X).tocoo()
        columns = (edges.row.tolist(), edges.col.tolist(), edges.data.tolist())
        write_rows(output, ("source", "target", "weight"), zip(*columns, strict=True), separator)
        return
    header = ["id", *(f"x{k}" for k in range(data.X.shape[1])), "class"]
    numbered = enumerate(zip(data.X.tolist(), data.y.tolist(), strict=True))
    rows = ([row, *values, cls] for row, (values, cls) in numbered)
    write_rows(output, header, rows, separator)
