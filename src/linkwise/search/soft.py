"""The path of soft constraints: from no constraints at all to as good as hard, and what it tells.

The price of a violated pair is ``t`` times the unit of the landscape. Upward the path starts from
the unconstrained partition, downward from one that obeys; at each price the better one counts,
after the two were recombined. One direction alone gets stuck.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array

    from linkwise._types import Bools, Floats, Int32s
    from linkwise.search.evolve import Found, Report, Run
    from linkwise.search.problem import Groups


__all__ = [
    "STRENGTHS",
    "Data",
    "Landscape",
    "Path",
    "answer_likelihood",
    "clearly_best",
    "soft_path",
]

STRENGTHS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class Landscape(Protocol):
    """An objective with a price of soft pairs, and ways to lower it."""

    def at(self, gamma: float) -> Landscape: ...  # noqa: D102

    def value(self, z: Int32s) -> float: ...  # noqa: D102

    def polish(self, z: Int32s, rng: np.random.RandomState) -> Int32s: ...  # noqa: D102

    def cross(self, z: Int32s, other: Int32s, rng: np.random.RandomState) -> Int32s: ...  # noqa: D102

    def search(  # noqa: D102
        self,
        rng: np.random.RandomState,
        run: Run,
        first: Sequence[Int32s] = (),
        report: Report | None = None,
    ) -> Found: ...


class Data(Protocol):
    """What is clustered: it makes landscapes of the partitions that constraints leave open."""

    @property
    def k(self) -> int: ...  # noqa: D102

    @property
    def unit(self) -> float: ...  # noqa: D102

    def landscape(  # noqa: D102
        self, groups: Groups, soft: csr_array, known: Int32s, effort: str
    ) -> Landscape: ...


class Path(NamedTuple):
    """Partitions along the strengths, ascending."""

    strengths: tuple[float, ...]
    partitions: tuple[Int32s, ...]
    interrupted: bool = False

    def at(self, strength: float) -> Int32s:
        """Return the partition of a strength on the path."""
        return self.partitions[self.strengths.index(strength)]


def soft_path(
    landscape: Landscape,
    unit: float,
    ends: tuple[Int32s, Int32s],
    rng: np.random.RandomState,
    *,
    strengths: Sequence[float] = STRENGTHS,
    report: Report | None = None,
) -> Path:
    """Follow the best partition from no price to a high one and back.

    `ends` are a good partition without constraints, and one that obeys them as well as it can.
    Interrupting keeps what was reached; strengths not reached have the better one of the ends.
    """
    ordered = tuple(sorted(strengths))
    best: dict[float, Int32s] = {}
    interrupted = False
    try:
        _follow(landscape, unit, ordered, ends[0], rng, best)
        _follow(landscape, unit, ordered[::-1], ends[1], rng, best)
        # Neighbours on the path know of each other's finds.
        for t, neighbor in zip(ordered[1:], ordered[:-1], strict=True):
            _offer(landscape.at(t * unit), t, best[neighbor], best)
        for t, neighbor in zip(ordered[-2::-1], ordered[:0:-1], strict=True):
            _offer(landscape.at(t * unit), t, best[neighbor], best)
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        interrupted = True
        for t in ordered:
            here = landscape.at(t * unit)
            best.setdefault(t, min(ends, key=here.value))
    if report is not None:
        shown = (f"{t:g}: {landscape.at(t * unit).value(best[t]):.6g}" for t in ordered)
        report(f"path {', '.join(shown)}")
    return Path(ordered, tuple(best[t] for t in ordered), interrupted)


def _follow(
    landscape: Landscape,
    unit: float,
    strengths: tuple[float, ...],
    z: Int32s,
    rng: np.random.RandomState,
    best: dict[float, Int32s],
) -> None:
    """Polish a partition from strength to strength; recombine with what is known there."""
    for t in strengths:
        here = landscape.at(t * unit)
        z = here.polish(z, rng)
        if t in best:
            z = here.cross(best[t], z, rng)
        best[t] = z


def _offer(here: Landscape, t: float, z: Int32s, best: dict[float, Int32s]) -> None:
    if here.value(z) < here.value(best[t]):
        best[t] = z


def answer_likelihood(together: Bools, is_must_link: Bools, seen: Bools) -> Floats:
    """Return the log-likelihood of each answer, given how the partition treats its pair.

    ``P(answer | together or not)`` is counted on the seen pairs, with half a count added to each
    cell; `together` tells whether the partition puts a pair in one cluster.
    """
    cell = 2 * together.astype(np.intp) + is_must_link
    counts = 0.5 + np.bincount(cell[seen], minlength=4).reshape(2, 2)
    likelihood: Floats = np.log(counts / counts.sum(axis=1, keepdims=True)).ravel()
    return likelihood[cell]


def clearly_best(scores: Floats, default: int) -> int:
    """Return the row with the highest total, unless the default is within the noise of it.

    Rows are candidates, columns what they were scored on. The best must beat the default by two
    standard errors of the sum of differences: a few hundred answers often cannot tell candidates
    apart, and then the default is the better guess.
    """
    best = int(scores.sum(axis=1).argmax())
    difference = scores[best] - scores[default]
    error = np.sqrt(difference.size) * difference.std()
    return best if difference.sum() > 2 * error else default
