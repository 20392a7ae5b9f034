"""Conflict: one contradiction, with its proof. Suspect: a constraint that may be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two samples that must and must not be in one cluster, and the chain that proves it.

    Parameters
    ----------
    pair : tuple of int
        The two samples that are to be kept apart.
    chain : tuple of int
        Samples from the first of the pair to the second. No chain is shorter.
    steps : tuple of {"must-link", "label"}
        What ties each sample of the chain to the next: a certain must-link, or equal labels.
    rows : tuple of (int or None)
        For each step, the row of its must-link as it was given; None for a label.
    cannot_link_row : int or None
        Row of the cannot-link as it was given; None if different labels keep the pair apart.
    labels : tuple or None
        The two different labels, if those keep the pair apart; by name if they have names.
    names : tuple of str or None
        Names of the samples of the chain, if they have some; the message uses them.
    """

    pair: tuple[int, int]
    chain: tuple[int, ...]
    steps: tuple[str, ...]
    rows: tuple[int | None, ...]
    cannot_link_row: int | None = None
    labels: tuple[Any, ...] | None = None
    names: tuple[str, ...] | None = None

    @property
    def message(self) -> str:
        """The contradiction in words, and what to do about it."""
        return f"{self.claim}. {self._remedy()}"

    @property
    def claim(self) -> str:
        """The contradiction in words, without what to do."""
        shown = self.chain if self.names is None else self.names
        i, j = shown[0], shown[-1]
        claim = f"Samples {i} and {j} are cannot-linked"
        if self.labels is not None:
            claim = f"Samples {i} and {j} have the labels {self.labels[0]} and {self.labels[1]}"
        return f"{claim}, but {self._proof()} one cluster"

    def _proof(self) -> str:
        if self.steps == ("label",):
            return "their equal labels put them in"
        shown = self.chain if self.names is None else self.names
        chain = str(shown[0])
        for sample, step in zip(shown[1:], self.steps, strict=True):
            chain += f" {'-' if step == 'must-link' else '='} {sample}"
        if "label" in self.steps:
            return f"the must-links (-) and equal labels (=) {chain} put them in"
        if len(self.steps) == 1:
            return f"the must-link {chain} puts them in"
        return f"the must-links {chain} put them in"

    @property
    def labelled(self) -> tuple[int, ...]:
        """The samples whose labels take part in the proof."""
        found = set() if self.labels is None else set(self.pair)
        for (i, j), step in zip(pairwise(self.chain), self.steps, strict=True):
            found |= {i, j} if step == "label" else set()
        return tuple(sorted(found))

    def _remedy(self) -> str:
        if self.labels is None and "label" not in self.steps:
            return f"Remove one of these links ({self._places()}), or give them beliefs below 1."
        if self.steps == ("label",):
            return (
                f"Correct a label, or remove the cannot-link ({self._places()}) or give it a "
                "belief below 1."
            )
        return (
            f"Correct a label, or remove one of these links ({self._places()}) or give it a "
            "belief below 1."
        )

    def _places(self) -> str:
        """Name the rows of the links, in the order of the message."""
        must = [f"#{row}" for row in self.rows if row is not None]
        shown = [] if self.cannot_link_row is None else [f"cannot-link #{self.cannot_link_row}"]
        if must:
            shown.append(f"must-link{'s' * (len(must) > 1)} {', '.join(must)}")
        return "; ".join(shown)

    def __str__(self) -> str:
        return self.message


class Suspect(NamedTuple):
    """A constraint that the data and the other constraints contradict."""

    kind: str  # "must-link", "cannot-link" or "label"
    samples: tuple[int, ...]  # the pair, or the labelled sample
    row: int  # position among the pairs of its kind as they were given, or the sample
    probability: float | None = None  # of being wrong, if the method estimates it
    strength: float | None = None  # smallest penalty from which on it is satisfied; inf if never
    names: tuple[str, ...] | None = None  # of the samples, if the constraints name them
