"""``linkwise compare``: several methods on the same data, side by side."""

from __future__ import annotations

import time
import warnings
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from linkwise import metrics
from linkwise._interrupts import INTERRUPTS, noted_interrupts, raise_if_not_interrupt
from linkwise._progress import is_watched
from linkwise.cli import options
from linkwise.cli.cluster import adjusted_rand
from linkwise.cli.console import (
    BAD_INPUT,
    INFEASIBLE,
    INTERRUPTED,
    BadInput,
    Infeasible,
    counted,
    shown,
)
from linkwise.cli.formats import write_rows
from linkwise.cli.reading import with_features
from linkwise.cli.task import Task, fit, load, number_of_clusters, save_prepared
from linkwise.constraints import Constraints
from linkwise.exceptions import ConstraintsIgnoredWarning
from linkwise.graph import Prepared
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from linkwise._progress import Progress
    from linkwise._types import Floats, Ints
    from linkwise.cli.console import Console
    from linkwise.cli.loading import Given
    from linkwise.cli.requests import CompareRequest

    Folds = list[tuple[Constraints, Constraints]]

DEFAULT_FOLDS = 5
HEADER = ("method", "violated", "ncut", "held-out", "ARI", "agreement", "seconds")


class Row(NamedTuple):
    """One method: its labels and scores; an error instead if it raised one."""

    key: str
    labels: Ints | None = None
    violated: int | None = None
    ncut: float | None = None
    held_out: float | None = None
    ari: float | None = None
    seconds: float | None = None
    error: str | None = None
    infeasible: bool = False


def run(request: CompareRequest, console: Console, given: Given) -> int:
    """Fit every method; an error of a method becomes a line of the table."""
    chosen = {key: options.find_method(key) for key in request.methods} or dict(METHODS)
    chosen = {options.key_of(Method): Method for Method in chosen.values()}
    settings = options.settings_for(chosen, request.settings)
    options.limit_threads(request.threads)
    # X, constraints
    affinity = next((s["affinity"] for s in settings.values() if "affinity" in s), None)
    task = load(request, console, given, affinity=affinity)
    tasks = _suited(task, chosen, settings, request=request)
    left_out = [] if request.methods else _without_features(tasks, chosen)
    k = number_of_clusters(request.n_clusters, task.data, console)
    builds = {
        key: partial(
            options.build, M, settings[key], tasks[key].prepared, n_clusters=k, request=request
        )
        for key, M in chosen.items()
        if key not in left_out
    }
    folds = _folds(task, request)
    with noted_interrupts() as interrupts:
        rows = _rows(builds, tasks, folds, W=task.prepared.W, console=console, stop=interrupts)
    save_prepared(task, request, console)
    if interrupts:
        if not rows:
            raise KeyboardInterrupt
        done = f"{len(rows)} of {counted(len(builds), 'method')}"
        console.note(f"Interrupted: {done}. The table has those that were finished.")
    _show(rows, left_out, request, console=console)
    if interrupts:
        return INTERRUPTED
    if any(row.labels is not None for row in rows):
        return 0
    return INFEASIBLE if all(row.infeasible for row in rows) else BAD_INPUT


def _rows(
    builds: Mapping[str, Callable[[], Any]],
    tasks: dict[str, Task],
    folds: Folds,
    *,
    W: Any,
    console: Console,
    stop: Sequence[object],
) -> list[Row]:
    """Fit every method to all constraints, and to those of each fold, until there is a `stop`.

    A method that was interrupted is left out, though it may have an answer.
    """
    rows: list[Row] = []
    # A baseline that ignores constraints belongs into a comparison.
    warnings.simplefilter("ignore", ConstraintsIgnoredWarning)
    with console.progress("compare") as progress:
        for number, (key, build) in enumerate(builds.items()):
            shares = (number / len(builds), (number + 1) / len(builds))
            steps = Steps(progress, key, np.linspace(*shares, 2 + len(folds)), stop)
            try:
                row = _row(key, build, tasks[key], W=W, folds=folds, step=steps.begin)
            except INTERRUPTS as error:
                raise_if_not_interrupt(error)
                break
            if stop:
                break
            rows.append(row)
            # In a pipe there is no bar to write above, and nothing else tells how far it is.
            (progress.write if is_watched() else console.note)(_line(row))
    return rows


class Steps:
    """The fits of a method, as a part of the work."""

    def __init__(
        self, progress: Progress, key: str, shares: Floats, stop: Sequence[object]
    ) -> None:
        self._progress, self._key, self._stop = progress, key, stop
        self._shares = iter(pairwise(shares.tolist()))

    def begin(self) -> None:
        """Tell that the next fit begins; after an interrupt, that it does not."""
        if self._stop:
            raise KeyboardInterrupt
        first, last = next(self._shares)
        self._progress(first, self._key, upto=last)


def _line(row: Row) -> str:
    """Return what is said of a method as soon as it has ended."""
    if row.error is not None:
        return shown(f"{row.key}: {row.error}")
    scores = {"ARI": row.ari, "held-out": row.held_out, "ncut": row.ncut}
    name, score = next((name, score) for name, score in scores.items() if score is not None)
    return f"{row.key}: {name} {score:.3f}, {row.seconds:.2f} s"


def _suited(
    task: Task,
    chosen: dict[str, Any],
    settings: dict[str, dict[str, Any]],
    *,
    request: CompareRequest,
) -> dict[str, Task]:
    """Give methods that have to see features those that stand beside the graph, if any."""
    needs = {key for key, M in chosen.items() if options.needs_features(M, settings[key])}
    found = with_features(task.data, request) if task.data.X is None and needs else task.data
    other = task
    if found is not task.data:
        other = Task(found, Prepared(found.X), task.known)
    return {key: other if key in needs else task for key in chosen}


def _without_features(tasks: dict[str, Task], chosen: dict[str, Any]) -> list[str]:
    """Return the methods that need features where there is only a graph."""
    no_features = [key for key in chosen if tasks[key].data.X is None]
    return [key for key in no_features if not options.takes_graph(chosen[key])]


def _row(
    key: str,
    build: Callable[[], Any],
    task: Task,
    *,
    W: Any,
    folds: Folds,
    step: Callable[[], None],
) -> Row:
    # Solvers start cold for each method, so that the order of the methods does not matter; in the
    # folds they start from what the fit to all constraints has found.
    prepared = task.prepared.cold()
    try:
        step()
        started = time.perf_counter()
        labels = fit(build(), prepared, task).labels_
        seconds = time.perf_counter() - started
        held_out = []
        for train, test in folds:
            step()
            if not test.is_empty:
                held_out.append((test, fit(build(), prepared, task, known=train).labels_))
    except (ValueError, IndexError, Infeasible, BadInput) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        found = " ".join(text.split())
        return Row(key, error=found, infeasible=isinstance(error, Infeasible))
    return Row(
        key,
        labels,
        violated=metrics.violated_count(task.known, labels).total,
        ncut=float(metrics.ncut(W, labels)),
        held_out=held_out_share(held_out),
        ari=adjusted_rand(task.data.truth, labels),
        seconds=seconds,
    )


# Held-out constraints ----------------------------------------------------------------------


def _folds(task: Task, request: CompareRequest) -> Folds:
    n_folds = request.folds
    if n_folds is None:
        n_folds = 0 if task.data.truth is not None else DEFAULT_FOLDS
    known = task.known
    if known.n_pairs:
        n_folds = min(n_folds, known.n_pairs)
        return list(known.split(n_folds, random_state=request.seed)) if n_folds > 1 else []
    if known.labels is not None and n_folds > 1:
        return split_labels(known.labels, n_folds, request.seed)
    return []


def split_labels(labels: Ints, n_folds: int, seed: int) -> Folds:
    """Split the labelled samples into folds; the test is about pairs inside the fold."""
    samples = np.random.RandomState(seed).permutation(np.flatnonzero(labels >= 0))
    folds = []
    for held_out in np.array_split(samples, min(n_folds, max(1, samples.size // 2))):
        train, test = labels.copy(), np.full_like(labels, -1)
        test[held_out] = labels[held_out]
        train[held_out] = -1
        made = [Constraints(labels.size, labels=part) for part in (train, test)]
        folds.append((made[0], made[1]))
    return folds if len(folds) > 1 else []


def held_out_share(fits: list[tuple[Constraints, Ints]]) -> float | None:
    """Return the share of held-out pairs that hold: the mean of must-links and cannot-links.

    Of the two kinds together the more frequent one, mostly cannot-links, would decide; and those
    hold by chance in all but one of `n_clusters` cases.
    """
    satisfied, total = np.zeros(2), np.zeros(2)
    for test, labels in fits:
        pairs, signs = test.signed_pairs()
        is_together = labels[pairs[:, 0]] == labels[pairs[:, 1]]
        for k, of_kind in enumerate((signs > 0, signs < 0)):
            weight = np.abs(signs) * of_kind
            total[k] += weight.sum()
            satisfied[k] += weight[is_together == (k == 0)].sum()
    if not total.any():
        return None
    return float(np.mean(satisfied[total > 0] / total[total > 0]))


# The table ---------------------------------------------------------------------------------


def _show(
    rows: list[Row], left_out: list[str], request: CompareRequest, *, console: Console
) -> None:
    done = sorted((row for row in rows if row.labels is not None), key=_rank)
    found: list[Any] = [row.labels for row in done]
    agreement = np.array([[metrics.adjusted_rand(a, b) for b in found] for a in found])
    failed = {row.key: row.error for row in rows if row.labels is None}
    cells = _cells(done, agreement)
    if request.output is not None:
        write_rows(request.output, HEADER, cells)
        console.note(f"wrote {request.output}")
    console.summary(
        {
            "command": "compare",
            "methods": _facts(done, agreement),
            "refused": failed,
            "left_out": left_out,
            "warnings": console.warnings,
        }
    )
    if not console.json:
        _print_tables(cells, agreement, console=console)
        for error in dict.fromkeys(failed.values()):
            refused = ", ".join(k for k in failed if failed[k] == error)
            click.echo(shown(f"\n{refused}: {error}"))
        if left_out:
            click.echo(f"\nleft out, because they need features: {', '.join(left_out)}")


def _cells(done: list[Row], agreement: Floats) -> list[tuple[str, ...]]:
    """Return the table as text."""
    n = len(done)
    cells = []
    for row, shares in zip(done, agreement, strict=True):
        mean = (shares.sum() - 1) / (n - 1) if n > 1 else None
        scores = map(_number, (row.ncut, row.held_out, row.ari, mean))
        cells.append((row.key, str(row.violated), *scores, f"{row.seconds:.2f}"))
    return cells


def _facts(done: list[Row], agreement: Floats) -> list[dict[str, Any]]:
    """Return the table for machines, with the agreement between all methods."""
    facts = []
    for row, shares in zip(done, agreement, strict=True):
        fact = row._asdict()
        del fact["labels"], fact["infeasible"]
        fact["agreement"] = dict(zip([other.key for other in done], shares, strict=True))
        facts.append(fact)
    return facts


def _print_tables(cells: Sequence[Sequence[str]], agreement: Floats, *, console: Console) -> None:
    filled = [k for k in range(len(HEADER)) if any(row[k] for row in cells)]
    console.table([HEADER[k] for k in filled], [[row[k] for k in filled] for row in cells])
    if len(cells) > 1:
        click.echo("\nagreement between methods (ARI):")
        keys = [row[0] for row in cells]
        matrix = [[key, *(f"{a:.2f}" for a in agreement[i])] for i, key in enumerate(keys)]
        console.table(["", *keys], matrix)


def _rank(row: Row) -> float:
    """Sort the best first: by the truth, or by held-out pairs; the order stays without both."""
    score = row.ari if row.ari is not None else row.held_out
    return 0.0 if score is None else -score


def _number(value: float | None) -> str:
    return "" if value is None else f"{value + 0.0:.3f}"
