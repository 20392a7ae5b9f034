"""Suspect: a constraint that may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.constraints.value import Constraints


class Suspect(NamedTuple):
    """A constraint that the data and the other constraints contradict."""

    kind: str  # "must-link", "cannot-link" or "label"
    samples: tuple[int, ...]  # the pair, or the labelled sample
    row: int  # position among the pairs of its kind as they were given, or the sample
    probability: float | None = None  # of being wrong, if the method estimates it
    strength: float | None = None  # smallest penalty from which on it is satisfied; inf if never


def make_suspects(
    constraints: Constraints,
    items: Ints,
    *,
    probability: Floats | None = None,
    strength: Floats | None = None,
) -> tuple[Suspect, ...]:
    """Return chosen constraints as suspects, in the order given.

    An item is a row of ``constraints.table`` or, counted on from there, a labelled sample
    (``constraints.facts.labelled``). `probability` and `strength` have one entry per item.
    """
    table, labelled = constraints.table, constraints.facts.labelled
    n_pairs = len(table.pairs)
    found = []
    for position, item in enumerate(items.tolist()):
        if item < n_pairs:
            kind = "must-link" if table.sign[item] > 0 else "cannot-link"
            samples, row = tuple(table.pairs[item].tolist()), int(table.row[item])
        else:
            row = int(labelled[item - n_pairs])
            kind, samples = "label", (row,)
        estimates = (None if a is None else float(a[position]) for a in (probability, strength))
        found.append(Suspect(kind, samples, row, *estimates))
    return tuple(found)
