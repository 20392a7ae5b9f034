"""Task: what `cluster`, `compare` and `ask` work on."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from linkwise.cli.console import BadInput, Infeasible, counted
from linkwise.cli.pairs import error_in_words
from linkwise.constraints import Constraints
from linkwise.exceptions import ConflictError
from linkwise.graph import Affinity, Prepared

if TYPE_CHECKING:
    from linkwise.cli.console import Console
    from linkwise.cli.loading import Given
    from linkwise.cli.reading import Data
    from linkwise.cli.requests import DataRequest


class Task(NamedTuple):
    """The data, their graph, and what is known about them."""

    data: Data
    prepared: Prepared
    known: Constraints


def load(
    request: DataRequest,
    console: Console,
    given: Given,
    *,
    affinity: Affinity | None = None,
    has_project: bool = False,
) -> Task:
    """Return DATA with their graph and the constraints on them, and note what these are.

    With a project, most of what is known is in there: that nothing else is, is no news.
    """
    data, pairs = given
    # Pairs and labels -> Constraints
    if pairs is None:
        known = Constraints(data.n_samples, labels=data.known_labels)
    else:
        known = Constraints.from_table(
            data.n_samples, pairs.table, labels=pairs.labels, ids=pairs.names
        )
    if not (has_project and known.is_empty):
        console.note(f"known: {_counted(known)}")
    return Task(data, prepare(data, affinity, request), known)


def prepare(data: Data, affinity: Affinity | None, request: DataRequest) -> Prepared:
    """Return the data with their graph, which is built when needed or read from a file."""
    made = Prepared(data.W, "precomputed") if data.X is None else Prepared(data.X, affinity)
    path = request.prepared
    if path is None or not path.exists():
        return made
    try:
        stored = Prepared.load(path)
    except ValueError as error:
        raise BadInput(str(error)) from error
    if not _is_same(stored.X, made.X):
        raise BadInput(
            f"--prepared {path} was made of other data. Give the same DATA and the same options "
            "for reading it, or another file."
        )
    if _graph_settings(stored) != _graph_settings(made):
        raise BadInput(
            f"--prepared {path} was made with the graph {_graph_settings(stored)}, not "
            f"{_graph_settings(made)}. Give the same --set affinity__... options, or another file."
        )
    return stored


def _is_same(a: Any, b: Any) -> bool:
    if issparse(a) or issparse(b):
        return issparse(a) and issparse(b) and a.shape == b.shape and (a != b).nnz == 0
    return np.array_equal(a, b)


def _graph_settings(prepared: Prepared) -> str:
    return "precomputed" if prepared.is_graph else repr(prepared.affinity or Affinity())


def save_prepared(task: Task, request: DataRequest, console: Console) -> None:
    """Write the graph and what solvers found to the file of --prepared, if there is none yet."""
    if request.prepared is not None and not request.prepared.exists():
        task.prepared.save(request.prepared)
        console.note(f"wrote {request.prepared}")


def _counted(known: Constraints) -> str:
    parts = [
        counted(len(known.must_link), "must-link"),
        counted(len(known.cannot_link), "cannot-link"),
    ]
    if known.labels is not None:
        labels = known.labels[known.labels >= 0]
        classes = counted(np.unique(labels).size, "class")
        parts.append(f"{counted(labels.size, 'label')} of {classes}")
    return ", ".join(parts)


def number_of_clusters(
    typed: int | None, data: Data, console: Console, *, Method: Any = None
) -> int | str | None:
    """Return -k, or the default of a method that finds it, or the number of different labels."""
    if typed is not None:
        return typed
    default = 2 if Method is None else signature(Method).parameters["n_clusters"].default
    if default in ("auto", None):
        found: str | None = default
        return found
    if len(data.label_names) < 2:
        raise BadInput("-k is missing: say how many clusters you want, for example -k 3.")
    console.note(f"-k {len(data.label_names)}: as many clusters as different labels")
    return len(data.label_names)


def fit(model: Any, prepared: Prepared, task: Task, *, known: Constraints | None = None) -> Any:
    """Fit a model; an error about constraints names the rows as the file does."""
    known = task.known if known is None else known
    try:
        return model.fit(prepared, constraints=known)
    except ConflictError as error:
        words = error_in_words(error, known, task.data.names, model.n_clusters)
        raise Infeasible(words) from error
