"""Constraints in a report: how many hold, which do not and why, which are likely wrong or drawn."""

from __future__ import annotations

from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.auto.constraint_model import misplaced
from linkwise.constraints.table import choose_two
from linkwise.report.text import plain

if TYPE_CHECKING:
    from linkwise._types import Bools, Ints
    from linkwise.constraints import Conflict, Constraints, Suspect
    from linkwise.report.inputs import Inputs


MAX_LISTED = 200  # violated constraints in the table, and suspects in theirs
SUSPICIOUS = 0.5  # probability of being wrong above which a constraint is a suspect
MAX_DRAWN = 1_000  # lines of violated pairs on the map; more would hide the data
MAX_DRAWN_KEPT = 300  # lines of satisfied pairs, which are of less interest
MAX_RINGED = 2_000  # labelled samples marked on the map
MAX_CONTRADICTIONS = 10


class Broken(NamedTuple):
    """A violated constraint. One line stands for all pairs that a label implies alike."""

    is_must: bool
    samples: tuple[int, int]
    belief: float
    labels: (
        tuple[int | str, int | str] | None
    )  # of the two samples, if these imply it; None if it was given
    n_pairs: int


class Contradiction(NamedTuple):
    """A chain of must-links and equal labels between two samples that are to be apart."""

    pair: tuple[int, int]
    chain: list[tuple[str, int]]  # what leads to each sample, and the sample
    labels: tuple[Any, ...] | None


class PairReport(NamedTuple):
    """The numbers and tables about the constraints."""

    n_given: int  # explicit pairs
    n_labelled: int
    n_total: int  # explicit and label-implied pairs, each once
    n_must_broken: int
    n_cannot_broken: int
    share_broken: float  # weighted by belief
    broken: list[Broken]
    n_unlisted: int
    contradictions: list[Contradiction]
    n_contradictions: int

    @property
    def n_broken(self) -> int:
        """The number of violated pairs."""
        return self.n_must_broken + self.n_cannot_broken


class SuspectLine(NamedTuple):
    """A constraint that is more likely wrong than right."""

    suspect: Suspect
    label: int | str | None  # of the sample, if it is a label and the labels were given
    is_broken: bool | None  # None if it is a label and the labels were not given


class SuspectReport(NamedTuple):
    """What the method thinks of the constraints."""

    n_judged: int  # pairs, and labelled samples
    n_labels: int  # of them
    n_suspects: int
    listed: list[SuspectLine]

    @property
    def n_unlisted(self) -> int:
        """The number of suspects that the table leaves out."""
        return self.n_suspects - len(self.listed)


class Drawn(NamedTuple):
    """Pairs on the map, the violated ones last and so on top; and samples with a known label."""

    pairs: Ints
    is_must: Bools
    is_broken: Bools
    ringed: Ints
    n_undrawn: int


def pair_report(inputs: Inputs) -> PairReport | None:
    """Compare a clustering with its constraints; None if there are none."""
    constraints, codes = inputs.constraints, inputs.clusters.codes
    if constraints.is_empty:
        return None
    counts = constraints.count_violated(codes)
    given = _broken_given(constraints, codes)
    by_label, n_lines = _broken_labels(constraints, codes)
    # Certain ones first: they matter most to the reader.
    broken = sorted([*given, *by_label], key=lambda row: -row.belief)[:MAX_LISTED]
    known = constraints.labels
    return PairReport(
        n_given=constraints.n_pairs,
        n_labelled=0 if known is None else int((known >= 0).sum()),
        n_total=constraints.n_distinct_pairs,
        n_must_broken=counts.must_link,
        n_cannot_broken=counts.cannot_link,
        share_broken=1.0 - constraints.satisfied(codes),
        broken=broken,
        n_unlisted=len(given) + n_lines - len(broken),
        contradictions=[_contradiction(c) for c in constraints.conflicts(limit=MAX_CONTRADICTIONS)],
        n_contradictions=constraints.n_conflicts,
    )


def _broken_given(constraints: Constraints, codes: Ints) -> list[Broken]:
    table = constraints.violated(codes).table
    columns = (table.is_must_link.tolist(), table.pairs.tolist(), table.belief.tolist())
    return [
        Broken(is_must, (i, j), belief, None, 1)
        for is_must, (i, j), belief in zip(*columns, strict=True)
    ]


def _broken_labels(constraints: Constraints, codes: Ints) -> tuple[list[Broken], int]:
    """List what the labels imply and the clusters break; also the number of such lines.

    Samples with one label that are in one cluster are a cell. A line is two cells of a label in
    different clusters, or two labels in one cluster; the first sample of a cell stands for it.
    """
    known = constraints.labels
    if known is None:
        return [], 0
    labelled = np.flatnonzero(known >= 0)
    cells, first, counts = np.unique(
        np.column_stack((known[labelled], codes[labelled])),
        axis=0,
        return_index=True,
        return_counts=True,
    )
    lines, n_lines = [], 0
    for by, is_must in ((0, True), (1, False)):
        order = np.lexsort((-counts, cells[:, by]))  # large cells first
        groups = np.split(order, np.flatnonzero(np.diff(cells[order, by])) + 1)
        n_lines += choose_two([group.size for group in groups])
        for group in groups:
            lines += [
                (is_must, *two) for two in islice(combinations(group.tolist(), 2), MAX_LISTED)
            ]
    samples = labelled[first].tolist()
    rows = []
    for is_must, a, b in lines:
        labels = _label(constraints, cells[a, 0]), _label(constraints, cells[b, 0])
        n_pairs = int(counts[a]) * int(counts[b])
        rows.append(Broken(is_must, (samples[a], samples[b]), 1.0, labels, n_pairs))
    rows.sort(key=lambda row: -row.n_pairs)
    return rows[:MAX_LISTED], n_lines


def _label(constraints: Constraints, value: Any) -> int | str:
    """Return a label as it was given."""
    return int(value) if constraints.classes is None else plain(constraints.classes[value])


def _contradiction(found: Conflict) -> Contradiction:
    leads = ("", *("must-link" if step == "must-link" else "same label" for step in found.steps))
    return Contradiction(found.pair, list(zip(leads, found.chain, strict=True)), found.labels)


def suspect_report(inputs: Inputs) -> SuspectReport | None:
    """List the constraints that are more likely wrong than right; None if none was judged."""
    judged = inputs.suspects
    if not judged:
        return None
    found = [one for one in judged if (one.probability or 0.0) > SUSPICIOUS]
    found.sort(key=lambda one: -(one.probability or 0.0))
    # Whether a labelled sample is outside the cluster that its label stands for
    labelled, outside = misplaced(inputs.constraints, inputs.clusters.codes)
    broken = dict(zip(labelled.tolist(), outside.tolist(), strict=True))
    return SuspectReport(
        n_judged=len(judged),
        n_labels=sum(len(one.samples) == 1 for one in judged),
        n_suspects=len(found),
        listed=[_suspect_line(inputs, one, broken) for one in found[:MAX_LISTED]],
    )


def _suspect_line(inputs: Inputs, suspect: Suspect, broken: dict[int, bool]) -> SuspectLine:
    codes, known = inputs.clusters.codes, inputs.constraints.labels
    if len(suspect.samples) == 1:
        sample = suspect.samples[0]
        label = None
        if known is not None and sample in broken:
            label = _label(inputs.constraints, known[sample])
        return SuspectLine(suspect, label, broken.get(sample))
    i, j = suspect.samples
    is_broken = (codes[i] == codes[j]) != (suspect.kind == "must-link")
    return SuspectLine(suspect, None, bool(is_broken))


def drawn_pairs(inputs: Inputs, report: PairReport | None) -> Drawn:
    """Choose the pairs to draw: violated ones before others, spread over the input."""
    constraints, codes = inputs.constraints, inputs.clusters.codes
    pairs, is_must = constraints.table.pairs, constraints.table.is_must_link
    # One line stands for the pairs that a label implies.
    implied = [row for row in (report.broken if report else []) if row.labels]
    if implied:
        pairs = np.concatenate((pairs, [row.samples for row in implied]))
        is_must = np.concatenate((is_must, [row.is_must for row in implied]))
    is_broken = (codes[pairs[:, 0]] == codes[pairs[:, 1]]) != is_must
    broken, kept = np.flatnonzero(is_broken), np.flatnonzero(~is_broken)
    broken = _thinned(broken, MAX_DRAWN)
    kept = _thinned(kept, MAX_DRAWN_KEPT)
    chosen = np.concatenate((kept, broken))
    known = constraints.labels
    ringed = np.flatnonzero(known >= 0) if known is not None else np.empty(0, dtype=np.intp)
    return Drawn(
        pairs[chosen],
        is_must[chosen],
        is_broken[chosen],
        _thinned(ringed, MAX_RINGED),
        len(pairs) - chosen.size,
    )


def _thinned(positions: Ints, size: int) -> Ints:
    if positions.size <= size:
        return positions
    return positions[np.linspace(0, positions.size - 1, size).astype(np.intp)]
