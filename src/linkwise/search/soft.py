"""The path of soft constraints: from no constraints at all to as good as hard, and what it tells.

The price of a violated pair is ``t`` times the unit of the landscape. Upward the path starts from
the unconstrained partition, downward from one that obeys; at each price the better one counts,
after the two were recombined. One direction alone gets stuck.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_array

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.constraints import Constraints
from linkwise.constraints.coloring import CannotLinkGraph
from linkwise.constraints.suspect import make_suspects
from linkwise.exceptions import ConflictError, ConvergenceWarning
from linkwise.search.evolve import Found
from linkwise.search.hard import Answer, Search, hard_labels, signed_pairs
from linkwise.search.problem import Groups, pair_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Bools, Floats, Int32s, Ints
    from linkwise.constraints import Suspect
    from linkwise.search.evolve import Report, Run


__all__ = [
    "STRENGTHS",
    "Data",
    "Landscape",
    "Path",
    "answer_likelihood",
    "clearly_best",
    "find_suspects",
    "refuse_too_many_labels",
    "soft_labels",
    "soft_path",
    "violated_items",
]

MANY_PAIRS = 200  # pairs above which the strength is chosen by cross-validation
N_FOLDS = 3
MAX_STRENGTH = 1024.0  # where the search for a number of violations gives up
BISECTIONS = 4
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


# Soft ----------------------------------------------------------------------------------------


def soft_labels(
    task: Search, strength: float | str, violations: int | None
) -> tuple[Answer, Path, float]:
    """Return the labels at the strength asked for, the path, and the strength.

    Partitions of the path cover the samples, followed by one anchor for each label.
    """
    refuse_too_many_labels(task.constraints, task.k)
    landscape = _soft_landscape(task, task.constraints)
    free = landscape.at(0.0).search(task.rng, task.run, report=task.report)
    path = Path((0.0,), (free.z,), interrupted=free.interrupted)
    chosen = 0.0
    try:
        _stop_if(free.interrupted)
        end = _obedient(task, task.constraints, landscape, free.z)
        # Whatever happens later, a strong price was answered.
        path, chosen = _with(path, STRENGTHS[-1], end.z), STRENGTHS[-1]
        _stop_if(end.interrupted)
        asked = () if isinstance(strength, str) else (float(strength),)
        path = soft_path(
            landscape,
            task.data.unit,
            (free.z, end.z),
            task.rng,
            strengths=sorted({*STRENGTHS, *asked}),
            report=task.report,
        )
        chosen = asked[0] if asked else 1.0
        _stop_if(path.interrupted)
        if violations is not None:
            path, chosen = _within_budget(task, landscape, path, violations)
        elif not asked:
            chosen = _chosen_strength(task, free.z)
        here = landscape.at(chosen * task.data.unit)
        found = here.search(task.rng, task.run, first=[path.at(chosen)], report=task.report)
        within = violations is None or _count(task, found.z) <= max(
            violations, _count(task, path.at(chosen))
        )
        if within and here.value(found.z) <= here.value(path.at(chosen)):
            path = _with(path, chosen, found.z)
        _warn_above_budget(_count(task, path.at(chosen)), violations)
        _stop_if(found.interrupted)
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        path = path._replace(interrupted=True)
    labels = path.at(chosen)[: task.constraints.n_samples].astype(np.intp)
    return Answer(labels, len(path.strengths), path.interrupted), path, chosen


def _warn_above_budget(n_violated: int, violations: int | None) -> None:
    if violations is not None and n_violated > violations:
        message = (
            f"No strength was found that violates at most {violations} constraints; the answer "
            f"violates {n_violated}."
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=2)


def _stop_if(interrupted: bool) -> None:
    """Go on interrupting: a search that was interrupted returns its best and does not raise."""
    if interrupted:
        raise KeyboardInterrupt


def _with(path: Path, strength: float, z: Int32s) -> Path:
    """Replace or insert a point of the path."""
    points = dict(zip(path.strengths, path.partitions, strict=True))
    points[strength] = z
    ordered = sorted(points)
    return path._replace(strengths=tuple(ordered), partitions=tuple(points[t] for t in ordered))


def refuse_too_many_labels(constraints: Constraints, n_clusters: int) -> None:
    """Raise ConflictError if there are more labels than clusters."""
    Constraints(constraints.n_samples, labels=constraints.labels).check(n_clusters)


def _soft_landscape(task: Search, constraints: Constraints) -> Landscape:
    """Every pair soft; every label an anchor, anchors apart for certain."""
    n = constraints.n_samples
    anchored, anchor, n_anchors = _anchors(constraints)
    soft = signed_pairs(constraints, uncertain_only=False)
    ties = pair_graph(
        np.column_stack((anchored, n + anchor)), np.full(anchored.size, -1.0), n + n_anchors
    )
    soft.resize((n + n_anchors, n + n_anchors))
    n_items = n + n_anchors
    a, b = np.triu_indices(n_anchors, 1)
    clique = pair_graph(np.column_stack((n + a, n + b)), np.ones(a.size), n_items)
    graph = CannotLinkGraph(clique.indptr.astype(np.int64), clique.indices.astype(np.int32))
    groups = Groups(np.arange(n_items, dtype=np.int32), n_items, graph, n_anchors)
    known = np.zeros(n_items, np.int32)
    known[n:] = np.arange(n_anchors)
    known[: task.k] = np.arange(task.k)  # no cluster empty
    return task.data.landscape(groups, csr_array(soft + ties), known, task.effort)


def _anchors(constraints: Constraints) -> tuple[Ints, Ints, int]:
    """Return the labelled samples, the number of each one's label, and how many labels."""
    if constraints.labels is None:
        none = np.zeros(0, np.intp)
        return none, none, 0
    labelled = np.flatnonzero(constraints.labels >= 0)
    classes, number = np.unique(constraints.labels[labelled], return_inverse=True)
    return labelled, number.astype(np.intp), classes.size


def _obedient(task: Search, constraints: Constraints, landscape: Landscape, free: Int32s) -> Found:
    """Return a partition that satisfies as many constraints as can be."""
    try:
        hard = hard_labels(task._replace(constraints=constraints), STRENGTHS[-1])
    except ConflictError:
        strict = landscape.at(STRENGTHS[-1] * task.data.unit)
        return strict.search(task.rng, task.run, first=[free], report=task.report)
    _, anchor, n_anchors = anchored = _anchors(constraints)
    z = np.empty(constraints.n_samples + n_anchors, np.int32)
    z[: constraints.n_samples] = hard.labels
    z[constraints.n_samples + anchor] = hard.labels[anchored[0]]
    return Found(z, np.nan, hard.n_iter, interrupted=hard.interrupted)


def _chosen_strength(task: Search, free: Int32s) -> float:
    """Return 1; or, with many pairs, a strength that explains held-out answers clearly better."""
    constraints = task.constraints
    if constraints.n_pairs <= MANY_PAIRS or task.effort == "fast":
        return 1.0
    n_must = len(constraints.must_link)
    pairs = np.concatenate((constraints.must_link, constraints.cannot_link))
    is_must_link = np.arange(len(pairs)) < n_must
    fold = task.rng.permutation(len(pairs)) % N_FOLDS
    scores = np.zeros((len(STRENGTHS), len(pairs)))
    quick = task._replace(effort="fast", report=None)  # the ranking of strengths is all that counts
    for number in range(N_FOLDS):
        seen = fold != number
        known = constraints.subset(seen)
        landscape = _soft_landscape(quick, known)
        end = _obedient(quick, known, landscape, free)
        path = soft_path(landscape, task.data.unit, (free, end.z), task.rng)
        _stop_if(end.interrupted or path.interrupted)
        for at, z in enumerate(path.partitions):
            together = z[pairs[:, 0]] == z[pairs[:, 1]]
            likelihood = answer_likelihood(together, is_must_link, seen)
            scores[at, ~seen] = likelihood[~seen]
        if task.report is not None:
            task.report(f"fold {number + 1} of {N_FOLDS}")
    return STRENGTHS[clearly_best(scores, STRENGTHS.index(1.0))]


def _within_budget(
    task: Search, landscape: Landscape, path: Path, violations: int
) -> tuple[Path, float]:
    """Return the path with the smallest strength that violates at most so many constraints."""
    unit = task.data.unit
    while path.strengths[-1] < MAX_STRENGTH and _count(task, path.partitions[-1]) > violations:
        t = 2 * path.strengths[-1]
        path = _with(path, t, landscape.at(t * unit).polish(path.partitions[-1], task.rng))
    obeying = [
        t
        for t, z in zip(path.strengths, path.partitions, strict=True)
        if _count(task, z) <= violations
    ]
    if not obeying:
        return path, path.strengths[-1]
    high = obeying[0]
    below = [t for t in path.strengths if 0 < t < high]
    low = below[-1] if below else high
    for _ in range(BISECTIONS if low < high else 0):
        t = float(np.sqrt(low * high))
        here = landscape.at(t * unit)
        z = here.cross(here.polish(path.at(low), task.rng), path.at(high), task.rng)
        path = _with(path, t, z)
        low, high = (low, t) if _count(task, z) <= violations else (t, high)
    return path, high


def _count(task: Search, z: Int32s) -> int:
    return int(violated_items(task.constraints, z).sum())


# Suspects ------------------------------------------------------------------------------------


def violated_items(constraints: Constraints, z: Int32s) -> Bools:
    """Return which must-links, cannot-links and labels a partition with anchors violates."""
    n = constraints.n_samples
    anchored, anchor, _ = _anchors(constraints)
    must, cannot = constraints.must_link, constraints.cannot_link
    return np.concatenate(
        (
            z[must[:, 0]] != z[must[:, 1]],
            z[cannot[:, 0]] == z[cannot[:, 1]],
            z[anchored] != z[n + anchor],
        )
    )


def find_suspects(constraints: Constraints, path: Path, strength: float) -> tuple[Suspect, ...]:
    """Return what is violated at a strength and at half of it, the longest violated first."""
    half = max((t for t in path.strengths if t <= strength / 2), default=strength)
    tables = {
        t: violated_items(constraints, z)
        for t, z in zip(path.strengths, path.partitions, strict=True)
    }
    suspicious = np.flatnonzero(tables[strength] & tables[half])
    times = np.sum([tables[t][suspicious] for t in path.strengths], axis=0)
    obeyed = np.array([_obeyed_from(tables, item) for item in suspicious.tolist()])
    if not suspicious.size:
        return ()
    order = np.lexsort((suspicious, -times, -obeyed)).tolist()
    return make_suspects(constraints, suspicious[order], strength=obeyed[order])


def _obeyed_from(tables: dict[float, Bools], item: int) -> float:
    """Return the smallest strength from which on a constraint is never violated."""
    last = [t for t, table in tables.items() if table[item]]
    above = [t for t in tables if not last or t > max(last)]
    return min(above) if above else np.inf
