"""What a project gives away: labels, pairs, the log, a copy of the file, and a script."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._inputs import is_sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from linkwise.app.events import Pair
    from linkwise.app.room import Room

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what the cell of a formula begins with
MAX_INFERRED = 20_000  # pairs that follow from answers and are listed
REVIEW_SCRIPT = '''"""Finds the clusters of labels.npy again; needs features.npz and answers.csv."""

import csv

import numpy as np
from scipy.sparse import load_npz

from linkwise.active import Answer, ReviewSession
from linkwise.app.conflicts import Evidence, Verdict
from linkwise.app.settle import settled

data = load_npz("features.npz")
data = data if {is_sparse!r} else data.toarray()
with open("answers.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.reader(file))
answers = [Answer(int(i), int(j), word, belief=float(belief)) for i, j, word, belief in rows]
evidence = Evidence()
for number, one in enumerate(answers):
    if one.answer != "unknown":
        evidence.add(Verdict((one.i, one.j), one.answer, 1.0, number))
labels = ReviewSession(data).after(answers).model.labels_
np.save("reproduced.npy", settled(labels, evidence, may_add=True))
'''
SCRIPT = '''"""Finds the clusters of labels.npy again; needs features.npy and answers.csv.

The numbers of the clusters may differ: those on the page are kept from one clustering to the next.
"""

import csv

import numpy as np

from linkwise.active import Answer, Session
from linkwise.app.conflicts import Evidence, Verdict
from linkwise.app.settle import settled
from linkwise.app.solvers import replay

data = np.load("features.npy", allow_pickle=False)
session = Session(data, {k!r}, affinity={affinity!r}, noisy=True, random_state=0)
with open("answers.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.reader(file))
answers = [Answer(int(i), int(j), word, belief=float(belief)) for i, j, word, belief in rows]
replay(session, answers)
evidence = Evidence()
for number, one in enumerate(answers):
    if one.answer != "unknown":
        evidence.add(Verdict((one.i, one.j), one.answer, 1.0, number))
session.refit()
labels, probability = session.provisional, session.probability
clusters = np.unique(labels)
labels = settled(labels, evidence, (probability[:, clusters], clusters))
np.save("reproduced.npy", labels)
'''


def labels_csv(room: Room, *, safe: bool) -> bytes:
    """Return a row for each sample, in the order of the data."""
    now, facts = room.clustering, room.project.ledger.facts
    labels = np.zeros(room.n_samples, dtype=np.intp) if now.labels is None else now.labels
    confidence = now.confidence
    touching = np.zeros(room.n_samples, dtype=np.intp)
    for pair, _ in facts.answers:
        touching[list(pair)] += 1
    header = ("id", "cluster", "cluster_name", "confidence", "answers_touching", "flagged")
    rows = (
        (
            str(room.items.names[k]),
            int(labels[k]),
            facts.names.get(int(labels[k]), ""),
            "" if confidence is None else f"{confidence[k]:.4f}",
            int(touching[k]),
            int(k in facts.flagged),
        )
        for k in range(room.n_samples)
    )
    return _csv(header, rows, safe=safe)


def constraints_csv(room: Room, *, safe: bool) -> bytes:
    """Return the pairs that were answered or imported, as the command line reads them."""
    header = ("i", "j", "link", "belief", "origin", "annotator", "at", "ignored")
    return _csv(header, _pair_rows(room), safe=safe)


def _pair_rows(room: Room) -> Iterable[Sequence[Any]]:
    names = room.items.names
    links = {"same": "must", "different": "cannot"}
    accepted = room.evidence.accepted
    for (pair, who), event in room.project.ledger.facts.answers.items():
        if pair in accepted and event.relation == accepted[pair].relation:
            origin = "imported" if event.kind == "import" else "answered"
            i, j = (str(names[sample]) for sample in pair)
            belief = min(event.weight, 1.0)
            yield i, j, links[event.relation], belief, origin, who, f"{event.at:.3f}", 0


def ignored_csv(room: Room, *, safe: bool) -> bytes:
    """Return the answers that contradict others, and are ignored."""
    names = room.items.names
    header = ("i", "j", "relation", "annotators")
    rows = (
        (*(str(names[sample]) for sample in pair), relation, ", ".join(people))
        for pair, relation, people in _ignored(room)
    )
    return _csv(header, rows, safe=safe)


def _ignored(room: Room) -> Iterable[tuple[Pair, str, list[str]]]:
    """Yield pairs whose answers are ignored, then the answers that were outvoted."""
    for one in (*room.evidence.ignored, *room.evidence.disputed):
        yield one.pair, one.relation, [event.owner for event in one.events]
    for one in room.evidence.accepted.values():
        against = "different" if one.relation == "same" else "same"
        people = [event.owner for event in one.events if event.relation == against]
        if people:
            yield one.pair, against, people


def inferred_csv(room: Room, *, safe: bool) -> bytes:
    """Return pairs that follow from the answers, at most 20,000."""
    return _csv(("i", "j", "link"), _inferred(room), safe=safe)


def _inferred(room: Room) -> Iterable[tuple[str, str, str]]:
    names, n_listed = room.items.names, 0
    samples = sorted({sample for pair in room.evidence.accepted for sample in pair})
    for place, a in enumerate(samples):
        for b in samples[place + 1 :]:
            relation = room.evidence.relation(a, b)
            if relation and (a, b) not in room.evidence.accepted:
                yield str(names[a]), str(names[b]), "must" if relation > 0 else "cannot"
                n_listed += 1
            if n_listed >= MAX_INFERRED:
                return


def answers_csv(room: Room, **_: Any) -> bytes:
    """Return the accepted answers by position, for the script."""
    rows = ((one.i, one.j, one.answer, one.belief) for one in room.known().answers)
    return _csv(None, rows, safe=False)


def audit_jsonl(room: Room, **_: Any) -> bytes:
    """Return all events, one JSON object a line."""
    lines = (
        json.dumps(event._asdict(), ensure_ascii=False) for event in room.project.ledger.events
    )
    return "".join(f"{line}\n" for line in lines).encode()


def labels_npy(room: Room, **_: Any) -> bytes:
    """Return the clusters as an array."""
    return _npy(room.clustering.labels)


def features_npy(room: Room, **_: Any) -> bytes:
    """Return the numbers that were clustered."""
    X = room.data.X
    return _npy(X.toarray() if hasattr(X, "toarray") else X)


def features_npz(room: Room, **_: Any) -> bytes:
    """Return the same as a sparse matrix, which records are."""
    from scipy.sparse import csr_array, save_npz  # noqa: PLC0415

    buffer = io.BytesIO()
    save_npz(buffer, csr_array(room.data.X))
    return buffer.getvalue()


def script_py(room: Room, **_: Any) -> bytes:
    """Return a script that reproduces the labels."""
    if room.by_size:
        return REVIEW_SCRIPT.format(is_sparse=is_sparse(room.data.X)).encode()
    affinity = "precomputed" if room.data.is_graph else None
    return SCRIPT.format(k=room.n_clusters or "auto", affinity=affinity).encode()


def project_sqlite(room: Room, **_: Any) -> bytes:
    """Return a copy of the project file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy"
        room.project.copy_to(path)
        return path.read_bytes()


EXPORTS: dict[str, tuple[Callable[..., bytes], str]] = {
    "labels.csv": (labels_csv, "text/csv"),
    "constraints.csv": (constraints_csv, "text/csv"),
    "inferred.csv": (inferred_csv, "text/csv"),
    "ignored.csv": (ignored_csv, "text/csv"),
    "answers.csv": (answers_csv, "text/csv"),
    "audit.jsonl": (audit_jsonl, "application/jsonl"),
    "labels.npy": (labels_npy, "application/octet-stream"),
    "features.npy": (features_npy, "application/octet-stream"),
    "features.npz": (features_npz, "application/octet-stream"),
    "reproduce.py": (script_py, "text/x-python"),
    "project.sqlite": (project_sqlite, "application/vnd.sqlite3"),
}


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _csv(header: Sequence[str] | None, rows: Iterable[Sequence[Any]], *, safe: bool) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    if header is not None:
        writer.writerow(header)
    for row in rows:
        writer.writerow([_safe(cell) for cell in row] if safe else row)
    return text.getvalue().encode()


def _safe(cell: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would compute."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell
