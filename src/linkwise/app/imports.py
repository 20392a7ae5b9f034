"""Pairs and labels from a file become events; what cannot be read is told before anything is."""

from __future__ import annotations

import csv
import io
import tempfile
import warnings
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from linkwise.active.journal import Journal, fingerprint
from linkwise.app.events import ANSWERS, Event
from linkwise.constraints import Constraints

if TYPE_CHECKING:
    from collections.abc import Sequence

Row: TypeAlias = tuple[int, int, str, float]  # two samples, what is said, and the belief

UNKNOWN = {"", "-1", "?", "na", "n/a", "nan", "null", "none"}
MAX_PAIRS = 200_000


class Imported(NamedTuple):
    """Pairs of a file with their beliefs, and what is to be said about it."""

    pairs: list[Row]
    notes: list[str]


def read_pairs(text: str, names: Sequence[str]) -> Imported:
    """Read a CSV of i, j, link and perhaps belief, as the command line reads it.

    Raises
    ------
    ValueError
        That names every line that cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        path = Path(folder) / "pairs.csv"
        path.write_text(text, encoding="utf-8")
        try:
            found = Constraints.from_csv(path, len(names), ids=list(names))
        except (ValueError, IndexError) as error:
            raise ValueError(str(error).replace(str(path), "The file")) from error
    return Imported(
        of_constraints(found), [str(one.message).replace(str(path), "The file") for one in heard]
    )


def of_constraints(known: Constraints) -> list[Row]:
    """Return pairs with their beliefs; of labels, a chain for each and a pair for every two."""
    table = known.table
    columns = (table.pairs.tolist(), table.sign.tolist(), table.belief.tolist())
    pairs: list[Row] = [
        (int(a), int(b), "same" if sign > 0 else "different", float(belief))
        for (a, b), sign, belief in zip(*columns, strict=True)
    ]
    if known.labels is not None:
        classes = sorted(set(known.labels[known.labels >= 0].tolist()))
        pairs += _of_groups([(known.labels == one).nonzero()[0].tolist() for one in classes])
    return pairs


def _of_groups(groups: Sequence[Sequence[int]]) -> list[Row]:
    """Return the fewest pairs from which all pairs of groups follow."""
    pairs: list[Row] = [
        (min(ends), max(ends), "same", 1.0) for group in groups for ends in pairwise(group)
    ]
    firsts = [group[0] for group in groups if group]
    pairs += [(min(ends), max(ends), "different", 1.0) for ends in combinations(firsts, 2)]
    return pairs


def read_labels(text: str, names: Sequence[str]) -> Imported:
    """Read a CSV of id and label, with or without a header; an empty label is unknown."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"The file is no valid CSV ({error}).") from error
    if not rows or len(rows[0]) < 2:
        raise ValueError("A file of labels has two columns: the id and its label.")
    place = {str(name): number for number, name in enumerate(names)}
    members: dict[str, list[int]] = {}
    unknown = []
    has_header = rows[0][0].strip() not in place
    for line, row in enumerate(rows[has_header:], 1 + has_header):
        name, label = (cell.strip() for cell in (*row, "", "")[:2])
        if name not in place:
            unknown.append(f"{name!r} (line {line})")
        elif label.lower() not in UNKNOWN:
            members.setdefault(label, []).append(place[name])
    if unknown:
        more = ", ..." * (len(unknown) > 5)
        raise ValueError(f"There are no such ids: {', '.join(unknown[:5])}{more}.")
    listed = [sample for group in members.values() for sample in group]
    if len(set(listed)) < len(listed):
        raise ValueError("An id has two labels. Every id may be listed once.")
    note = f"{len(listed)} labels of {len(members)} classes"
    return Imported(_of_groups(list(members.values())), [note])


def read_journal(text: str, n_samples: int, data: Any) -> Imported:
    """Read the answers that ``linkwise ask --session`` kept before there were projects."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session"
        path.write_bytes(text.encode())
        try:
            journal = Journal(path)  # checks every line
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "the file")) from error
    if (journal.header or {}).get("data") != fingerprint(data):
        raise ValueError(
            "The session is about other data (line 1): its answers would be read as answers about "
            "other samples. Import it into a project of the data that it was begun with."
        )
    last = {row[:2]: row for row in _answers(journal.records, n_samples)}
    # Of several answers about a pair the last one counts.
    return Imported(list(last.values()), [f"{len(last)} answers of a session"])


def _answers(records: Sequence[Any], n_samples: int) -> list[Row]:
    """Return the answers of a session that were not taken back."""
    kept: list[Row] = []
    for number, record in enumerate(records, 2):
        try:
            if record.get("undo"):
                kept.pop()
                continue
            a, b = sorted((int(record["i"]), int(record["j"])))
            word = {"unknown": "unsure"}.get(record["answer"], record["answer"])
            belief = float(record.get("belief", 1.0))
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"Line {number} is no answer of a session.") from error
        if word not in ANSWERS or not 0 <= a < b < n_samples or not 0 < belief <= 1:
            raise ValueError(f"Line {number} is no answer about these data.")
        kept.append((a, b, word, belief))
    return kept


def as_events(imported: Imported, who: str, uuid: str) -> list[Event]:
    """Return the events of one action that adds all pairs.

    If a file says both of a pair, the second is another voice: so it is a conflict, and not settled
    by the order of the lines.
    """
    if len(imported.pairs) > MAX_PAIRS:
        raise ValueError(f"The file has {len(imported.pairs):,} pairs; {MAX_PAIRS:,} are the most.")
    said: dict[tuple[int, int], str] = {}
    return [
        Event(
            "import", uuid, who if said.setdefault((a, b), word) == word else f"{who} (too)",
            a, b, word, weight=belief,
        )
        for a, b, word, belief in imported.pairs
    ]  # fmt: skip


def read(kind: Any, text: Any, names: Sequence[str], *, data: Any = None) -> Imported:
    """Read a file of a kind: "pairs" or "labels"; a session must be about `data`."""
    if not isinstance(text, str) or kind not in ("pairs", "labels"):
        raise ValueError('An import is {"kind": "pairs" or "labels", "text": the file}.')
    if text.startswith('{"format": "linkwise session'):
        return read_journal(text, len(names), data)
    return (read_pairs if kind == "pairs" else read_labels)(text, names)
