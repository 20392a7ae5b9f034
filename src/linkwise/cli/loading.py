"""What a command is given, read and checked before anything that takes time is imported.

Wrong paths and options, and all problems of DATA and PAIRS, are told here.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from linkwise._hints import hint
from linkwise._optional import require
from linkwise.cli.console import BadInput, counted
from linkwise.cli.formats import writable
from linkwise.cli.pairs import ACCEPTING_METHOD, conflict_problems, read_pairs
from linkwise.cli.problems import Problem, Problems, raise_problems
from linkwise.cli.reading import read_data
from linkwise.cli.requests import AskRequest, ClusterRequest, CompareRequest
from linkwise.cli.sources import is_stdin, suffix_of
from linkwise.cli.writing import check_distinct, check_output
from linkwise.constraints.formats import format_of
from linkwise.constraints.formats import writable as writable_pairs
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from linkwise.cli.console import Console
    from linkwise.cli.pairs import Pairs
    from linkwise.cli.reading import Data
    from linkwise.cli.requests import DataRequest

PICTURES = (".png", ".svg", ".pdf")
REVIEW_HEADER = ("i", "j", "link", "belief", "probability", "wrong")  # and both rows


class Given(NamedTuple):
    """DATA, and the pairs if there is a file of them."""

    data: Data
    pairs: Pairs | None


def read(request: DataRequest, console: Console) -> Given:
    """Check the options, read DATA and pairs, and raise one error about all problems."""
    _check_outputs(request)
    check_output(request.prepared, "--prepared", inputs=(request.data,), formats=(".npz",))
    _check_methods(request)
    # File -> X or W
    data = read_data(request, needs_features=lambda: _options().needs_features_for(request))
    pairs = None
    problems = [*data.problems, *_too_many_clusters(request, data)]
    has_ids = request.id_column is None or data.names is not None  # else they cannot be looked up
    if request.constraints is not None and has_ids:
        pairs = read_pairs(request.constraints, data, request)
        problems += pairs.problems
        problems += _conflicts(pairs, request.constraints, request)
    raise_problems(problems, console.arguments)
    for note in data.notes:
        console.note(f"{request.name}: {note}")
    for note in pairs.notes if pairs is not None else ():
        console.note(note)
    return Given(data, pairs)


def read_filled(request: Any, console: Console) -> Given:
    """Read DATA for a project; columns that are no features are shown, missing values filled.

    `request` is that of ``linkwise serve`` or of ``linkwise ask --project``, for which the samples
    of a project have to be the same.
    """
    try:
        return read(request, console)
    except Problems as error:
        solutions = [problem.add for problem in error.problems]
        if not all(one[:1] in {("--drop",), ("--impute",)} for one in solutions):
            raise
    dropped = tuple(one[1] for one in solutions if one[0] == "--drop")
    if dropped:
        shown = ", ".join(map(repr, dropped))
        console.note(f"{request.name}: shown, but not used for clustering: {shown}")
    if len(dropped) < len(solutions):
        console.note(f"{request.name}: missing values count as the median for clustering")
    impute = "median" if len(dropped) < len(solutions) else request.impute
    return read(replace(request, drop=(*request.drop, *dropped), impute=impute), console)


def _too_many_clusters(request: DataRequest, data: Data) -> list[Problem]:
    k = getattr(request, "n_clusters", None)
    if k is None or k <= data.n_samples:
        return []
    return [Problem(f"-k {k} is more than the {counted(data.n_samples, 'row')} of {request.name}.")]


def _conflicts(pairs: Pairs, path: Path, request: DataRequest) -> list[Problem]:
    """Return the contradictions of the pairs, unless a method accepts them."""
    is_default = isinstance(request, ClusterRequest) and request.method == ACCEPTING_METHOD
    if is_default and not getattr(request, "settings", ()):
        return []  # the default accepts them; it need not be imported for that
    if not pairs.n_conflicts or _options().accepts_contradictions(request):
        return []
    found = conflict_problems(pairs, path)
    if isinstance(request, AskRequest):  # where no method accepts them
        found = [problem._replace(add=(), remove=()) for problem in found]
    if _wants_hard(request):  # a command without it would do something else than was asked for
        found = [problem._replace(add=(), remove=()) for problem in found]
        why = "With hard=true all of them have to hold. Without it, --method auto weighs them."
        found[-1] = found[-1]._replace(text=f"{found[-1].text} {why}")
    return found


def _wants_hard(request: DataRequest) -> bool:
    """Whether everything given has to hold, by ``--set hard=true``."""
    settings = (text.partition("=") for text in getattr(request, "settings", ()))
    return ("hard", "true") in [
        (name.strip(), value.strip().lower()) for name, _, value in settings
    ]


def _options() -> Any:
    """Import what knows the methods themselves; that takes a second or two."""
    return import_module("linkwise.cli.options")


def key_of(typed: str) -> str:
    """Return the key of a method from what was typed: the key, or the class in any case."""
    by_class = {name.lower(): key for name, key in METHODS.keys_by_class.items()}
    for key in (typed, typed.lower()):
        if key in METHODS:
            return key
    if typed.lower() in by_class:
        return by_class[typed.lower()]
    meant = hint(typed, METHODS)
    raise BadInput(f"--method {typed}: no such method.{meant} There are: {', '.join(METHODS)}.")


def _check_methods(request: DataRequest) -> None:
    typed: tuple[str | None, ...] = ()
    if isinstance(request, (ClusterRequest, AskRequest)):
        typed = (request.method,)
    elif isinstance(request, CompareRequest):
        typed = request.methods
    keys = [key_of(method) for method in typed if method is not None]
    names = [text.partition("=")[0].strip() for text in getattr(request, "settings", ())]
    for name in names if len(keys) == 1 else ():
        _check_parameter(name, keys[0])


def _check_parameter(name: str, key: str) -> None:
    """Raise if a method has no parameter of that name, by its source: importing it takes long."""
    known = METHODS.fields(key)
    reserved = {"n_clusters", "random_state", "affinity"}  # these have messages of their own
    if known is None or name in {*known, *reserved} or name.startswith("affinity__") or not name:
        return
    valid = [field for field in known if field not in reserved]
    raise BadInput(no_parameter(name, METHODS.class_name(key), valid, graph="affinity" in known))


def no_parameter(name: str, owner: str, valid: Sequence[str], *, graph: bool) -> str:
    """Say that a method has no parameter of that name, and which it has."""
    shown = ", ".join(valid) or "none"
    if graph:
        shown += ", and affinity__NAME for the graph's"
    return f"--set {name}: {owner} has no such parameter.{hint(name, valid)} It has: {shown}."


def _check_outputs(request: DataRequest) -> None:
    """Raise if a file could not be written in the end."""
    inputs = (request.data, request.constraints)
    if isinstance(request, ClusterRequest):
        _check_cluster_outputs(request)
    elif isinstance(request, CompareRequest):
        check_output(request.output, "--output", inputs=inputs, formats=(".csv", ".tsv"))
    elif isinstance(request, AskRequest):
        check_output(request.output, "--output", inputs=inputs, formats=writable_pairs())
        check_output(request.session, "--session", inputs=inputs)
        check_output(request.project, "--project", inputs=inputs)
        outputs = {"--output": request.output, "--session": request.session}
        check_distinct({**outputs, "--project": request.project})
        if request.session is not None and request.project is not None:
            raise BadInput("--session and --project both keep the answers. Leave one of them out.")
        _check_questions(request)
        if is_stdin(request.data):
            raise BadInput("DATA must be a file: answers are what stdin is for.")


def _check_questions(request: AskRequest) -> None:
    """Raise if questions cannot be chosen in the way that was asked for."""
    if request.is_review:
        for option, typed in (("-k", request.n_clusters), ("--strategy", request.strategy)):
            if typed is not None:
                raise BadInput(
                    f"{option} {typed}: with -m linkage the review queue is asked, and the number "
                    f"of clusters is found. Leave {option} out."
                )


def _check_cluster_outputs(request: ClusterRequest) -> None:
    inputs = (request.data, request.constraints)
    check_output(request.output, "--output", inputs=inputs, formats=writable())
    check_output(request.report, "--report", inputs=inputs, formats=(".html",))
    check_output(request.plot, "--plot", inputs=inputs, formats=PICTURES)
    # The file of pairs may be that for review: its answers are kept.
    kept = inputs[:1] if _is_for_review(request.constraints) else inputs
    check_output(request.review, "--review", inputs=kept, formats=(".csv", ".tsv"))
    _check_answers_kept(request)
    tables = (".csv", ".tsv", ".html")
    check_output(request.duplicates, "--duplicates", inputs=inputs, formats=tables)
    check_distinct(
        {
            "--output": request.output,
            "--report": request.report,
            "--plot": request.plot,
            "--review": request.review,
            "--duplicates": request.duplicates,
        }
    )
    _check_linkage_outputs(request)
    if is_annotated(request) and suffix_of(request) != ".h5ad":
        message = f"--output {request.output}: only .h5ad DATA can be copied to .h5ad. Take .csv."
        raise BadInput(message)
    if request.report is not None:  # an extra that is missing is found now, not after an hour
        require("jinja2", extra="report", purpose="Writing a report")
    if request.plot is not None:
        require("matplotlib", extra="plot", purpose="Drawing clusters")


def _is_for_review(path: Path | None) -> bool:
    """Whether a file of pairs has no column that a file for review would lose."""
    if path is None or not path.is_file():
        return True  # nothing to lose
    try:
        names = format_of(path).read(path).values
    except ValueError:
        return False
    return all(name in REVIEW_HEADER or name.endswith((" i", " j")) for name in names)


def _check_answers_kept(request: ClusterRequest) -> None:
    """Raise if a file for review would be written over answers that are not read."""
    path, given = request.review, request.constraints
    if path is None or not path.is_file() or (given is not None and path.samefile(given)):
        return
    try:
        links = format_of(path).read(path).values.get("link", [])
    except ValueError:
        links = []
    n_answers = sum(bool(str(link).strip()) for link in links)
    if n_answers:
        raise BadInput(
            f"--review {path}: the file holds {counted(n_answers, 'answer')}, which would be lost. "
            f"Use them with -c {path}, or write to another file."
        )


def _check_linkage_outputs(request: ClusterRequest) -> None:
    """Raise if what only the method linkage writes is asked of another."""
    if key_of(request.method) == "linkage":
        return
    for option, path, what in (
        ("--review", request.review, "knows which pairs to review"),
        ("--duplicates", request.duplicates, "looks for duplicates"),
    ):
        if path is not None:
            raise BadInput(
                f"{option} {path}: only the method linkage {what}. Add -m linkage, or leave "
                f"{option} out."
            )


def is_annotated(request: ClusterRequest) -> bool:
    """Whether the clusters are written to a copy of AnnData."""
    return request.output is not None and request.output.suffix.lower() == ".h5ad"
