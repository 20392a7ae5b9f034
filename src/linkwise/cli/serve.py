"""``linkwise serve``: the annotation page, on this machine."""

from __future__ import annotations

import json
import os
import re
import secrets
import webbrowser
from dataclasses import replace
from hashlib import sha256
from threading import Timer
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from linkwise._optional import require
from linkwise.cli.console import BadInput, counted
from linkwise.cli.problems import raise_problems
from linkwise.cli.projects import answers_told, note_clusters
from linkwise.cli.sources import is_stdin
from linkwise.cli.tables import check_columns, text_of
from linkwise.cli.writing import check_output

if TYPE_CHECKING:
    from pathlib import Path

    from linkwise._types import Floats
    from linkwise.app.apart import Process
    from linkwise.app.items import Items
    from linkwise.app.room import Room
    from linkwise.cli.console import Console
    from linkwise.cli.reading import Data
    from linkwise.cli.requests import ServeRequest
    from linkwise.constraints import Constraints

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
PIXELS = re.compile(r"[1-9]\d{0,3}x[1-9]\d{0,3}")
TEXT_AXES = 50  # dimensions that texts are compared in
SUFFIX = ".linkwise"


def run(request: ServeRequest, console: Console) -> int:
    """Read the data, open the room and serve the page until it is interrupted."""
    for module in ("uvicorn", "starlette"):
        require(module, extra="app", purpose="The annotation page")
    _check(request)
    from linkwise.app.apart import Process  # noqa: PLC0415

    process = Process(request.threads)  # imports what clusters while the data are read
    if request.threads is not None:
        threads = min(request.threads, os.cpu_count() or 1)
        require("threadpoolctl", extra="cli", purpose="--threads").threadpool_limits(threads)
    try:
        return _served(request, console, process)
    finally:
        process.end()


def _served(request: ServeRequest, console: Console, process: Process) -> int:
    """Serve the page with a process that clusters."""
    from linkwise.app.listen import Listening  # noqa: PLC0415

    path = _project_path(request)
    sock, is_taken = _bound(request, path)  # before anything is written
    try:
        room = opened(_as_records(request), console, process)
    except BaseException:
        sock.close()
        raise
    token = _token(request.host, path, anew=is_taken)
    server = Listening(room, sock, token=token, host=request.host)
    address = f"http://{_shown(request.host)}:{server.port}/?token={token}"
    console.note(f"answers are kept in {path}")
    console.ask(f"Open {address}\n(Ctrl-C ends the page; nothing is lost.)")
    if request.browser:
        Timer(0.3, webbrowser.open, [address]).start()
    server.listen()
    facts = room.project.ledger.facts
    console.note(f"{answers_told(facts)} kept in {path}")
    console.summary({"command": "serve", "n_answers": len(facts.given)})
    return 0


def _project_path(request: ServeRequest) -> Path:
    return request.project or request.data.with_suffix(SUFFIX)


def _bound(request: ServeRequest, project: Path) -> tuple[Any, bool]:
    """Return a socket that listens, and whether another process has the usual port."""
    from linkwise.app.listen import bind  # noqa: PLC0415
    from linkwise.app.token import replace_token  # noqa: PLC0415

    port = request.port or _usual_port(project, request.host)
    try:
        return bind(request.host, port), port == 0
    except OSError as error:
        replace_token(project)  # who listens there may have been told the old one
        free = "; without --port a free one is taken" if request.port else ""
        raise BadInput(f"{error}. It may be in use{free}.") from error


def _token(host: str, project: Path, *, anew: bool) -> str:
    """Return the secret of the address: the project's, but a new one where others can listen.

    It is new, too, if another process has the port: tabs that are open tell it the old one.
    """
    from linkwise.app.token import kept_token, new_token  # noqa: PLC0415

    return kept_token(project, anew=anew) if host in LOOPBACK else new_token()


def _shown(host: str) -> str:
    """Return the host of the address that is opened; one that stands for all is this machine."""
    name = {"0.0.0.0": "127.0.0.1", "localhost": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{name}]" if ":" in name else name


def _usual_port(path: Path, host: str) -> int:
    """Return a port that is the same for a project each time, or 0 if it is in use.

    What a browser keeps, such as answers that could not be sent, belongs to the port.
    """
    from linkwise.app.listen import bind  # noqa: PLC0415

    port = 20_000 + crc32(str(path.resolve()).encode()) % 12_000
    try:
        bind(host, port).close()
    except OSError:
        return 0
    return port


def _as_records(request: ServeRequest) -> ServeRequest:
    """Of records, columns of text are compared letter by letter and shown as fields."""
    if not request.is_review or request.shown_text is None:
        return request
    return replace(request, text=(request.shown_text,), shown_text=None)


def _check(request: ServeRequest) -> None:
    if request.is_review and request.n_clusters is not None:
        raise BadInput(
            f"-k {request.n_clusters}: with -m linkage the number of clusters is found. "
            "Leave -k out."
        )
    if request.is_review and request.graph:
        raise BadInput("--graph: linkage needs the data themselves. Leave --graph out.")
    if is_stdin(request.data):
        raise BadInput("DATA must be a file: the page shows it again the next time.")
    check_output(request.project, "--project", inputs=(request.data, request.constraints))


def opened(request: ServeRequest, console: Console, process: Process | None = None) -> Room:
    """Return the room of a project: its file, the samples to show and to cluster."""
    if request.host not in LOOPBACK:
        console.warn(
            f"--host {request.host}: others can reach the page. It asks for the token in the "
            "address, but the connection is not encrypted, and there are no accounts."
        )
    data, known = _read(request, console)
    from linkwise.app.project import Project, WrongProjectError  # noqa: PLC0415
    from linkwise.app.room import Room  # noqa: PLC0415
    from linkwise.app.samples import samples_of  # noqa: PLC0415

    is_graph = data.X is None
    try:
        samples = samples_of(data.W if is_graph else data.X, is_graph=is_graph)
    except ValueError as error:
        raise BadInput(f"{request.name}: {error}") from error
    names = [str(name) for name in data.shown_ids()]
    path = _project_path(request)
    items = _items(request, data, names)  # what is wrong is told before a file is made
    try:
        project = Project(path, names, _fingerprint(request, data, samples.X))
    except WrongProjectError as error:
        raise BadInput(str(error)) from error
    if project.is_open_elsewhere():
        console.note(f"{path}: another process has it open, too; each sees what the other writes")
    room = Room(
        project,
        items,
        samples,
        n_clusters=request.n_clusters,
        truth=data.truth,
        by_size=request.is_review,
        process=process,
    )
    if project.ledger.events:
        console.note(f"{path}: goes on after {answers_told(project.ledger.facts)}")
    _add_known(room, known, console)
    note_clusters(project, request.n_clusters, console)
    return room


def _fingerprint(request: ServeRequest, data: Data, X: Any) -> str:
    """Return a hash of the data; of texts themselves, as their axes differ in the last digits."""
    from linkwise.active.journal import fingerprint  # noqa: PLC0415

    if not _compares_texts(request):
        return fingerprint(X)
    settings = [request.shown_text, TEXT_AXES, text_of(data.everything[request.shown_text])]
    return sha256(json.dumps(settings).encode()).hexdigest()


def _compares_texts(request: ServeRequest) -> bool:
    return request.shown_text is not None and not request.features


# Data --------------------------------------------------------------------------------------


def _read(request: ServeRequest, console: Console) -> tuple[Data, Constraints | None]:
    """Read DATA; the columns of text and images are shown, and texts become features."""
    from linkwise.cli import loading, reading  # noqa: PLC0415
    from linkwise.constraints import Constraints  # noqa: PLC0415

    has_file_column = request.image is not None and not PIXELS.fullmatch(request.image)
    shown = [request.shown_text, request.image if has_file_column else None]
    reduced = replace(request, drop=(*request.drop, *(name for name in shown if name)))
    if not _compares_texts(request):
        data, pairs = loading.read_filled(reduced, console)
    else:
        data, pairs = reading.read_names(reduced), None
        raise_problems(
            [*data.problems, *_no_column(data, str(request.shown_text), "--text")],
            console.arguments,
        )
        data.X = _text_features(text_of(data.everything[request.shown_text]))
        data.feature_names = [f"axis {k}" for k in range(data.X.shape[1])]
        console.note(f"{request.name}: {len(data.X)} texts, compared by their words")
    if has_file_column:
        raise_problems(_no_column(data, str(request.image), "--image"), console.arguments)
    if pairs is not None:
        return data, Constraints.from_table(data.n_samples, pairs.table, labels=pairs.labels)
    return data, Constraints(data.n_samples, labels=data.known_labels)


def _no_column(data: Data, name: str, option: str) -> Any:
    columns = [] if data.everything is None else [str(one) for one in data.everything.columns]
    return check_columns([name], columns, option)


def _text_features(texts: list[str]) -> Floats:
    """Return coordinates of texts: weights of their words, reduced to some axes."""
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.preprocessing import normalize  # noqa: PLC0415

    if not any(re.search(r"\w\w", text) for text in texts):
        raise BadInput("--text: the column has no words.")
    vectors = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=1 + (len(texts) > 200))
    weights = vectors.fit_transform(texts)
    n_axes = min(TEXT_AXES, min(weights.shape) - 1)
    if n_axes < 2:
        return np.asarray(weights.toarray())
    reduced: Floats = normalize(TruncatedSVD(n_axes, random_state=0).fit_transform(weights))
    return reduced


def _items(request: ServeRequest, data: Data, names: list[str]) -> Items:
    """Return the samples as they are shown: all columns but the answer to all questions."""
    from linkwise.app.items import Items  # noqa: PLC0415

    hidden = {request.truth, request.labels, data.id_name if data.names is not None else None}
    columns = {}
    if data.everything is not None:
        frame = data.everything
        columns = {str(one): frame[one].tolist() for one in frame.columns if str(one) not in hidden}
    image = request.image
    if image is not None and PIXELS.fullmatch(image):
        _check_pixels(image, data)
        columns = {}  # the pixels are the picture
    kind = request.kind or _kind(request, columns, data)
    if kind in {"series", "point"} and data.X is None:
        raise BadInput(f"--kind {kind} needs features, but DATA is a graph.")
    return Items(
        names,
        kind,
        columns if kind not in {"series", "point"} else _others(columns, data),
        data.X,
        data.feature_names,
        request.shown_text,
        image,
        request.data.resolve().parent,
    )


def _kind(request: ServeRequest, columns: dict[str, Any], data: Data) -> str:
    if request.shown_text is not None:
        return "text"
    if request.image is not None:
        return "image"
    return "row" if columns or data.X is None else "point"


def _others(columns: dict[str, Any], data: Data) -> dict[str, Any]:
    """Return the columns that are no features: those are drawn."""
    return {name: column for name, column in columns.items() if name not in data.feature_names}


def _check_pixels(image: str, data: Data) -> None:
    width, height = map(int, image.split("x"))
    found = 0 if data.X is None else data.X.shape[1]
    if width * height != found:
        raise BadInput(
            f"--image {image}: {width} x {height} pixels are {width * height} features, but DATA "
            f"has {found}."
        )


def _add_known(room: Room, known: Constraints | None, console: Console) -> None:
    """Write pairs and labels that were given with the data to the project, once."""
    from linkwise.app.imports import Imported, as_events, of_constraints  # noqa: PLC0415

    if known is None or known.is_empty:
        return
    ledger = room.project.ledger
    said = {pair for pair, _ in ledger.facts.answers}
    # What was written once and withdrawn since stays withdrawn
    said |= {one.pair for one in ledger.events if one.kind == "import" and one.who == "data"}
    new = [one for one in of_constraints(known) if one[:2] not in said]
    if new:
        room.act(as_events(Imported(new, []), "data", secrets.token_hex(16)))
        n_conflicts = len(room.evidence.ignored) + len(room.evidence.disputed)
        contradict = f"; {counted(n_conflicts, 'conflict')}: see the page" if n_conflicts else ""
        console.note(f"{room.project.path}: {counted(len(new), 'pair')} added{contradict}")
