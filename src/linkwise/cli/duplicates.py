"""What people look at: clusters of several rows with these rows, and pairs to review."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._files import atomic
from linkwise.cli.console import counted
from linkwise.cli.formats import write_rows
from linkwise.cli.loading import REVIEW_HEADER
from linkwise.cli.tables import text_of
from linkwise.cli.writing import without_formulas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from linkwise.cli.reading import Data
    from linkwise.constraints import Constraints

REVIEWED = 200  # pairs in a file for review
SHOWN = 1_000  # clusters on a page; a table has all
ANSWERS = {True: "same", False: "different"}
A_GUESS = (
    "No pairs were given, so the number of clusters is a guess, and it may be far off: review "
    "about 100 to 200 pairs"
)
STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .3rem 0 1.6rem; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-top: 1px solid #8886; }
mark { background: #ffd54f; color: #000; }
"""


class Rows(NamedTuple):
    """The rows of a table as text."""

    ids: list[str]
    columns: dict[str, list[str]]

    @classmethod
    def of(cls, data: Data, *, is_safe: bool = False) -> Rows:
        """Return all columns; if `is_safe`, without what a spreadsheet would compute."""
        frame = data.frame if data.everything is None else data.everything
        names = [] if frame is None else [str(name) for name in frame.columns]
        columns = {name: text_of(frame[name]) for name in names if name != data.id_name}
        ids = [str(name) for name in data.shown_ids()]
        if is_safe:
            ids = without_formulas(ids)
            columns = {name: without_formulas(cells) for name, cells in columns.items()}
        return cls(ids, columns)


class Cluster(NamedTuple):
    """A cluster of several rows."""

    label: int
    rows: list[int]
    probability: float  # the least that a row of it belongs here


def several(labels: Any, probability: Any) -> list[Cluster]:
    """Return the clusters of several rows, the most doubtful first."""
    order = np.argsort(labels, kind="stable")
    begin = np.flatnonzero(np.diff(labels[order], prepend=-1))
    found = [
        Cluster(int(labels[rows[0]]), rows.tolist(), float(probability[rows].min()))
        for rows in np.split(order, begin[1:])
        if rows.size > 1
    ]
    return sorted(found, key=lambda cluster: (round(cluster.probability, 4), cluster.rows))


def write_duplicates(
    path: Path, model: Any, data: Data, *, is_safe: bool, is_guess: bool = False
) -> str:
    """Write the clusters of several rows with these rows; return what there is, in words.

    `is_guess`: a page says that nothing tells how many clusters there are.
    """
    clusters = several(model.labels_, model.probability_)
    rows = Rows.of(data, is_safe=is_safe)
    n_rows = sum(len(cluster.rows) for cluster in clusters)
    words = f"{counted(n_rows, 'row')} of {len(rows.ids)} in "
    words += f"{counted(len(clusters), 'cluster')} of several rows"
    if path.suffix.lower() == ".html":
        with atomic(path) as unfinished:
            warning = f"<p><strong>{escape(A_GUESS)} (--review).</strong>" if is_guess else ""
            page = "".join(_page(clusters, rows, data, words=f"<p>{escape(words)}", note=warning))
            unfinished.write_text(page, encoding="utf-8")
        return words
    header = ["cluster", "probability", data.id_name, *rows.columns]
    lines = (
        [cluster.label, f"{model.probability_[i]:.4f}", rows.ids[i]]
        + [cells[i] for cells in rows.columns.values()]
        for cluster in clusters
        for i in cluster.rows
    )
    write_rows(path, header, lines)
    return words


def _page(
    clusters: list[Cluster], rows: Rows, data: Data, *, words: str, note: str
) -> Iterator[str]:
    """Yield the parts of a page: a table for each cluster, differences marked."""
    yield '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Duplicates</title>'
    yield f"<style>{STYLE}</style><h1>Duplicates</h1>{note}{words}. The most doubtful "
    yield "clusters come first. What differs from most rows of a cluster is <mark>marked</mark>."
    sizes = sorted(Counter(len(cluster.rows) for cluster in clusters).items())
    yield "<p>" + ", ".join(f"{counted(n, 'cluster')} of {size}" for size, n in sizes) + "."
    if len(clusters) > SHOWN:
        yield f"<p>The first {SHOWN} are shown; a .csv file has all."
    names = "".join(f'<th scope="col">{escape(n)}</th>' for n in (data.id_name, *rows.columns))
    for cluster in clusters[:SHOWN]:
        yield f"<table><caption>Cluster {cluster.label}, probability {cluster.probability:.2f}"
        yield f"</caption><thead><tr>{names}</tr></thead><tbody>"
        usual = {
            name: Counter(cells[i] for i in cluster.rows).most_common(1)[0][0]
            for name, cells in rows.columns.items()
        }
        for i in cluster.rows:
            shown = (_cell(cells[i], usual[name]) for name, cells in rows.columns.items())
            yield f'<tr><th scope="row">{escape(rows.ids[i])}</th>{"".join(shown)}</tr>'
        yield "</tbody></table>"
    yield "</html>\n"


def _cell(text: str, usual: str) -> str:
    shown = escape(text)
    return f"<td>{shown if text == usual or not text else f'<mark>{shown}</mark>'}</td>"


class Review(NamedTuple):
    """What was written for review."""

    words: str
    lines: dict[int, int]  # of answers: the line that each is in now, by the one it was in


def write_review(
    path: Path, model: Any, data: Data, known: Constraints, *, is_safe: bool = False
) -> Review:
    """Write the pairs to review, both rows side by side, and below them those with an answer.

    So one file goes back and forth: what was answered stays in it, with the probability that the
    answer is wrong.
    """
    queue, table = model.review(known), known.table
    # Ids stay as they are: the file is read back, and its pairs are looked up by them.
    rows = Rows.of(data, is_safe=is_safe)._replace(ids=[str(name) for name in data.shown_ids()])
    header = [*REVIEW_HEADER]
    header += [f"{name} {side}" for name in rows.columns for side in ("i", "j")]
    wrong = {one.samples: f"{one.probability:.3f}" for one in model.suspects_}
    n_open = min(REVIEWED, len(queue.pairs))
    lines = [
        ["", "", f"{p:.3f}", ""] for p in queue.probability[:n_open].tolist()
    ]  # link, belief, probability, wrong
    given = zip(table.is_must_link.tolist(), table.belief.tolist(), strict=True)
    probability = model.pair_probability(table.pairs) if len(table.pairs) else []
    for (must, belief), p, pair in zip(given, probability, table.pairs.tolist(), strict=True):
        shown = "" if belief == 1 else f"{belief:g}"
        lines.append([ANSWERS[must], shown, f"{p:.3f}", wrong.get(tuple(pair), "")])
    pairs = [*queue.pairs[:n_open].tolist(), *table.pairs.tolist()]
    written = list(_side_by_side(rows, pairs, lines))
    write_rows(path, header, written)
    words = f"{counted(n_open, 'pair')} to review"
    words += f", {counted(len(lines) - n_open, 'answer')} kept" if table.pairs.size else ""
    heights = [1 + sum(cell.count("\n") for cell in line) for line in (header, *written)]
    ends = np.cumsum(heights)[1 + n_open :]  # the line that each answer ends in
    return Review(words, dict(zip(table.row.tolist(), ends.tolist(), strict=True)))


def _side_by_side(
    rows: Rows, pairs: list[list[int]], lines: Iterable[list[str]]
) -> Iterator[list[str]]:
    for (i, j), line in zip(pairs, lines, strict=True):
        cells = (cells[k] for cells in rows.columns.values() for k in (i, j))
        yield [rows.ids[i], rows.ids[j], *line, *cells]
