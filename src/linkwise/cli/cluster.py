"""``linkwise cluster``: data and constraints in, ids and clusters out."""

from __future__ import annotations

import csv
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise import metrics
from linkwise._files import atomic
from linkwise._interrupts import noted_interrupts
from linkwise._optional import require
from linkwise.cli import options
from linkwise.cli.console import INTERRUPTED, BadInput, counted, in_options, printable
from linkwise.cli.duplicates import A_GUESS, write_duplicates, write_review
from linkwise.cli.formats import Column, write_clusters
from linkwise.cli.loading import is_annotated
from linkwise.cli.pairs import suspicious, violated_pairs
from linkwise.cli.records import split_names
from linkwise.cli.tables import text_of
from linkwise.cli.task import fit, load, number_of_clusters, save_prepared
from linkwise.cli.writing import without_formulas

if TYPE_CHECKING:
    from linkwise._types import Ints
    from linkwise.cli.console import Console
    from linkwise.cli.loading import Given
    from linkwise.cli.reading import Data
    from linkwise.cli.requests import ClusterRequest
    from linkwise.cli.task import Task

READING = 0.05  # share of the work, for those who watch
FEW_CLUSTERS = 20  # whose sizes are all shown
LISTED = 5  # violated pairs on stderr; --json has all


def run(request: ClusterRequest, console: Console, given: Given) -> int:
    """Cluster DATA; every wrong option is found before the work begins."""
    Method = options.find_method(request.method)
    settings = options.parse_settings(request.settings, Method)
    options.limit_threads(request.threads)
    with console.progress(options.key_of(Method)) as progress, noted_interrupts() as interrupts:
        progress(0.0, "reading", upto=READING)
        task = load(request, console, given, affinity=settings.get("affinity"))
        _check_column(request, task.data)
        k = number_of_clusters(request.n_clusters, task.data, console, Method=Method)
        is_scaled = request.scale is not None or task.data.frame is not None
        if is_scaled and options.scales_features(Method):
            _note_scaling(request, task, settings, console)
            settings = {"scaling": "given", **settings}  # scaled here, or not: not a second time
        model = options.build(Method, settings, task.prepared, n_clusters=k, request=request)
        progress(READING, "clustering", upto=1.0)
        started = time.perf_counter()
        # X, W, constraints -> labels
        fit(model, task.prepared, task)
        seconds = time.perf_counter() - started
    if hasattr(model, "report_"):
        for line in model.report_.summary():
            console.note(in_options(line))
    # Labels -> scores, files, summary
    summary = _summary(request, task, model, seconds=seconds)
    summary["outputs"] = _write(request, task, model, summary=summary, console=console)
    save_prepared(task, request, console)
    _note_result(summary, console)
    if _is_guess(request, task):
        where = f"in {request.review}, column link" if request.review else "--review pairs.csv"
        console.note(f"{A_GUESS} ({where}), and give them with -c")
    if request.output is None and console.json:
        summary["labels"] = model.labels_
    summary["warnings"] = console.warnings
    summary["interrupted"] = bool(interrupts)
    console.summary(summary)
    return INTERRUPTED if interrupts else 0


def _note_scaling(
    request: ClusterRequest, task: Task, settings: dict[str, Any], console: Console
) -> None:
    """Say that pairs could decide whether to standardise, which is what has been done already."""
    data = task.data
    # A method would also scale the 0 and 1 that categories are.
    of_numbers = data.frame is not None and len(data.feature_names) == len(data.frame.columns)
    is_open = data.is_standardised and of_numbers and "scaling" not in settings
    if is_open and not task.known.is_empty:
        how = "--no-scale --set scaling=auto"
        console.note(f"{request.name}: {how} lets what is known decide whether to standardise")


def n_found(model: Any) -> int:
    """Return the number of clusters of a fitted model, which may have chosen it."""
    return int(getattr(model, "n_clusters_", model.n_clusters))


def _check_column(request: ClusterRequest, data: Data) -> None:
    """Raise if the name for the clusters is taken."""
    if is_annotated(request):
        if request.column in data.annotated.obs.columns:
            raise BadInput(
                f"--column {request.column}: obs of {request.name} has a column of that name. "
                "Choose another with --column."
            )
    elif request.column == data.id_name:
        raise BadInput(
            f"--column {request.column}: that is the name of the column of ids. Choose another "
            "with --column."
        )


# Output ------------------------------------------------------------------------------------


def _is_guess(request: ClusterRequest, task: Task) -> bool:
    """Whether nothing but the data tells the number of clusters of linkage."""
    return request.is_linkage and request.n_clusters is None and task.known.is_empty


def _is_same_file(one: Path, other: Path | None) -> bool:
    return other is not None and one.resolve() == other.resolve()


def _renumber(summary: dict[str, Any], lines: dict[int, int]) -> None:
    """Name the lines of the file that has just replaced the given one."""
    for pair in (*summary["violated_pairs"], *summary.get("suspects", ())):
        if "line" in pair:
            pair["line"] = lines[pair["line"]]


def _write(
    request: ClusterRequest,
    task: Task,
    model: Any,
    *,
    summary: dict[str, Any],
    console: Console,
) -> dict[str, str]:
    written: dict[str, str] = {}
    classes, probability = (getattr(model, name, None) for name in ("classes_", "probability_"))
    found = Column(request.column, model.labels_, classes, probability)
    data = task.data
    if data.names is not None and request.spreadsheet_safe:
        data = replace(data, names=without_formulas(data.names))
    if request.output is not None:
        write_clusters(request.output, data, found)
        written["clusters"] = str(request.output)
    elif not console.json:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        columns = found.beside(data.id_name, data.shown_ids())
        if sys.stdout.isatty():
            columns = {name: [printable(str(v)) for v in cells] for name, cells in columns.items()}
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    if request.plot is not None:
        _draw(request.plot, task, model, labels=found.shown)
        written["plot"] = str(request.plot)
    if request.report is not None:
        _report(request, task, model)
        written["report"] = str(request.report)
    is_safe = request.spreadsheet_safe
    if request.duplicates is not None:
        is_guess = _is_guess(request, task)
        words = write_duplicates(
            request.duplicates, model, task.data, is_safe=is_safe, is_guess=is_guess
        )
        console.note(words)
        written["duplicates"] = str(request.duplicates)
    if request.review is not None:
        known = task.known
        review = write_review(request.review, model, task.data, known, is_safe=is_safe)
        console.note(review.words)
        if _is_same_file(request.review, request.constraints):
            _renumber(summary, review.lines)
        written["review"] = str(request.review)
    return written


def _draw(path: Path, task: Task, model: Any, *, labels: list[Any]) -> None:
    plots = require("linkwise.plots", extra="plot", purpose="Drawing clusters")
    title = f"{type(model).__name__}, {n_found(model)} clusters"
    points = plots.positions(task.prepared, getattr(model, "embedding_", None))
    figure = plots.draw_side_by_side(
        points, {title: labels}, constraints=task.known, legend_title="cluster"
    )
    with atomic(path) as unfinished:
        figure.savefig(unfinished)


def _report(request: ClusterRequest, task: Task, model: Any) -> None:
    report = require("linkwise.report", extra="report", purpose="Writing a report")
    data = task.data
    report.write_report(
        request.report,
        # With its graph and eigenvectors, if the method used the graph.
        X=task.prepared if data.X is None or hasattr(model, "affinity_matrix_") else data.X,
        labels=model.labels_,
        constraints=task.known,
        result=model,
        ids=data.names,
        # In the units of the file: people do not think in standard deviations. The columns of a
        # table have their own names; those of `X` may be more, one for each category.
        feature_names=data.feature_names if data.frame is None and data.feature_names else None,
        feature_values=_as_used(data.frame, request),
        title=f"{Path(request.name).name}: {n_found(model)} clusters",
        command=shlex.join(["linkwise", *sys.argv[1:]]),
        parameters=_parameters_in_report(request, task, model),
        truth=data.truth_in_words(),
        random_state=request.seed,
    )


def _as_used(frame: Any, request: ClusterRequest) -> Any:
    """Return the columns with those that were asked for as categories as such."""
    if frame is None:
        return None
    asked = split_names(request.categorical, [str(name) for name in frame.columns])
    chosen = [name for name in asked if name in frame]
    if not chosen:
        return frame
    pandas = require("pandas", extra="cli", purpose="Reading tables")
    texts = {name: pandas.Categorical(text_of(frame[name])) for name in chosen}
    return frame.assign(**texts)


def _parameters_in_report(request: ClusterRequest, task: Task, model: Any) -> dict[str, Any]:
    """Return the parameters, and what was done to the columns before the method saw them."""
    parameters = _parameters(model)
    if task.data.is_standardised:
        done = "standardised beforehand (--no-scale leaves the numbers as they are)"
        parameters = {"columns": done, **parameters}
    elif task.data.frame is not None and request.scale is False:
        parameters = {"columns": "as they are in the file (--no-scale)", **parameters}
    return parameters


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a model as plain values."""
    plain = (str, int, float, bool, type(None))
    found = model.get_params(deep=False)
    return {name: v if isinstance(v, plain) else repr(v) for name, v in sorted(found.items())}


def _summary(request: ClusterRequest, task: Task, model: Any, *, seconds: float) -> dict[str, Any]:
    data, known = task.data, task.known
    labels = model.labels_
    broken = metrics.violated_count(known, labels)
    W = getattr(model, "affinity_matrix_", data.W)
    objective = model.result_.objective
    summary: dict[str, Any] = {
        "command": "cluster",
        "data": str(request.data),
        "n_samples": data.n_samples,
        "n_features": None if data.X is None else data.X.shape[1],
        "standardised": data.is_standardised,
        "method": options.key_of(type(model)),
        "parameters": _parameters(model),
        "n_clusters": n_found(model),
        "sizes": np.bincount(labels, minlength=n_found(model)),
        "classes": getattr(model, "classes_", None),
        "must_links": len(known.must_link),
        "cannot_links": len(known.cannot_link),
        "labelled": 0 if known.labels is None else int((known.labels >= 0).sum()),
        "violated_must_links": broken.must_link,
        "violated_cannot_links": broken.cannot_link,
        "violated_pairs": violated_pairs(known, labels, data.shown_ids()),
        "ncut": None if W is None else metrics.ncut(W, labels),
        "objective": None if objective is None else objective + 0.0,  # zero has no sign
        "converged": bool(model.result_.converged),
        "ari": adjusted_rand(data.truth, labels),
        "seconds": round(seconds, 3),
    }
    if hasattr(model, "report_"):
        summary["n_clusters_probability"] = model.report_.n_clusters_probability[n_found(model)]
        summary["noise"] = model.noise_
    if hasattr(model, "error_rate_"):
        summary["noise"] = model.error_rate_
    if hasattr(model, "suspects_"):
        summary["suspects"] = suspicious(model.suspects_, data.shown_ids())
    return summary


def adjusted_rand(truth: Ints | None, labels: Ints) -> float | None:
    """Return the agreement with the truth where that is known."""
    if truth is None or not (truth >= 0).any():
        return None
    return float(metrics.adjusted_rand(truth[truth >= 0], labels[truth >= 0]))


def _note_result(summary: dict[str, Any], console: Console) -> None:
    sizes = _shown_sizes(summary["sizes"])
    if summary["classes"] is not None:
        named = zip(summary["classes"], summary["sizes"], strict=False)
        sizes = "of " + ", ".join(f"{size} ({name})" for name, size in named)
    text = f"{summary['method']}: {summary['n_clusters']} clusters {sizes} rows"
    violated = summary["violated_must_links"] + summary["violated_cannot_links"]
    if summary["must_links"] + summary["cannot_links"] + summary["labelled"]:
        text += f"; {counted(violated, 'pair')} violated"
    if summary["ari"] is not None:
        text += f"; ARI {summary['ari']:.3f}"
    console.note(f"{text}; {summary['seconds']:.1f} s")
    _note_violated(summary["violated_pairs"], violated, console)
    _note_suspects(summary.get("suspects", []), console)
    for path in summary["outputs"].values():
        console.note(f"wrote {path}")


def _shown_sizes(sizes: Ints) -> str:
    """Return the sizes of few clusters, or the largest ones of many."""
    if len(sizes) <= FEW_CLUSTERS:
        return "of " + ", ".join(map(str, sizes))
    largest = ", ".join(map(str, np.sort(sizes)[::-1][:LISTED]))
    return f"({int((sizes == 1).sum())} of one row), the largest of {largest}"


def _note_suspects(suspects: list[dict[str, Any]], console: Console) -> None:
    lines = [
        f"{_pair_in_words(one) if 'j' in one else 'label of ' + str(one['i'])}, "
        f"wrong with probability {one['probability']:.1%}"
        for one in suspects
    ]
    _note_first("suspect", lines, console)


def _note_violated(pairs: list[dict[str, Any]], total: int, console: Console) -> None:
    _note_first("violated", [_pair_in_words(pair) for pair in pairs], console)
    if total > len(pairs):
        console.note(f"violated: {counted(total - len(pairs), 'pair')} that labels imply")


def _pair_in_words(pair: dict[str, Any]) -> str:
    return f"{pair['link']}-link {pair['i']} - {pair['j']} (line {pair['line']})"


def _note_first(what: str, lines: list[str], console: Console) -> None:
    for line in lines[:LISTED]:
        console.note(f"{what}: {line}")
    if len(lines) > LISTED:
        console.note(f"{what}: {len(lines) - LISTED} more; --json lists all")
