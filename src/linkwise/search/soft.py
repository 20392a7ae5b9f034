"""Soft constraints: the path from no penalty to one as good as hard, the strength, and suspects.

The penalty of a violated pair is the strength times the unit of the objective. Upward the path
starts from the unconstrained partition, downward from one that satisfies the constraints; at each
strength the better one counts, after the two were recombined. One direction alone gets stuck.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.constraints import Constraints
from linkwise.constraints.coloring import CannotLinkGraph
from linkwise.constraints.table import make_suspects, symmetric_matrix
from linkwise.exceptions import ConflictError, ConvergenceWarning
from linkwise.search.objective import Answer, Context, Found, Task, hard_labels
from linkwise.search.problem import Groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Bools, Floats, Int32s
    from linkwise.constraints import Suspect
    from linkwise.search.objective import Objective

MANY_PAIRS = 200  # pairs above which the strength is chosen by cross-validation
N_FOLDS = 3
MAX_STRENGTH = 1024.0  # where the search for a number of violations gives up
BISECTIONS = 4
# From which share of the work to which, about, for those who watch
FREE, SATISFYING, FOLLOWING = (0.0, 0.25), (0.25, 0.5), (0.5, 0.65)
CHOOSING, SEARCHING = (0.65, 0.8), (0.8, 1.0)
STRENGTHS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class Path(NamedTuple):
    """Partitions along the strengths, ascending."""

    strengths: tuple[float, ...]
    partitions: tuple[Int32s, ...]
    interrupted: bool = False

    def at(self, strength: float) -> Int32s:
        """Return the partition of a strength on the path."""
        return self.partitions[self.strengths.index(strength)]

    def updated(self, strength: float, z: Int32s) -> Path:
        """Replace or insert a point of the path."""
        points = dict(zip(self.strengths, self.partitions, strict=True))
        points[strength] = z
        ordered = sorted(points)
        return self._replace(strengths=tuple(ordered), partitions=tuple(points[t] for t in ordered))


def soft_path(
    objective: Objective,
    endpoints: tuple[Int32s, Int32s],
    context: Context,
    *,
    strengths: Sequence[float] = STRENGTHS,
) -> Path:
    """Follow the best partition from no penalty to a high one and back.

    `endpoints` are a good partition without constraints, and one that satisfies them as well as it
    can. Interrupting returns what was reached; other strengths have the better one of these.
    """
    ordered = tuple(sorted(strengths))
    at = {t: objective.at(t * objective.unit) for t in ordered}
    best: dict[float, Int32s] = {}
    interrupted, n_done = False, 0
    try:
        for direction, z in ((ordered, endpoints[0]), (ordered[::-1], endpoints[1])):
            for t in direction:
                context.log(f"strength {t:g}", n_done / (2 * len(ordered)))
                n_done += 1
                z = at[t].local_search(z, context.rng)  # noqa: PLW2901
                z = at[t].recombine(best[t], z, context.rng) if t in best else z  # noqa: PLW2901
                best[t] = z
        for direction in (ordered, ordered[::-1]):  # a neighbour on the path may have a better one
            for t, neighbor in zip(direction[1:], direction[:-1], strict=True):
                if at[t].value(best[neighbor]) < at[t].value(best[t]):
                    best[t] = best[neighbor]
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        interrupted = True
        for t in ordered:
            best.setdefault(t, min(endpoints, key=at[t].value))
    values = ", ".join(f"{t:g}: {at[t].value(best[t]):.6g}" for t in ordered)
    context.log(f"path {values}", 1.0)
    return Path(ordered, tuple(best[t] for t in ordered), interrupted)


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


# Labels --------------------------------------------------------------------------------------


def soft_labels(
    task: Task, strength: float | str, violations: int | None, *, warns: bool = True
) -> tuple[Answer, Path, float]:
    """Return the labels at a given strength or number of violations, the path, and the strength.

    With `warns`, there is a warning if more are violated. Partitions of the path cover the samples,
    followed by one anchor for each label.
    """
    check_label_count(task.constraints, task.k)
    context = task.context
    objective = _soft_objective(task)
    free = objective.at(0.0).search(context.part(*FREE))
    path = Path((0.0,), (free.z,), interrupted=free.interrupted)
    chosen = 0.0
    try:
        _stop_if(free.interrupted)
        end = _satisfying(_part(task, SATISFYING), objective, free.z)
        # Whatever happens later, there is an answer to a strong penalty.
        path, chosen = path.updated(STRENGTHS[-1], end.z), STRENGTHS[-1]
        _stop_if(end.interrupted)
        given = () if isinstance(strength, str) else (float(strength),)
        strengths = sorted({*STRENGTHS, *given})
        at = context.part(*FOLLOWING)
        path = soft_path(objective, (free.z, end.z), at, strengths=strengths)
        chosen = given[0] if given else 1.0
        _stop_if(path.interrupted)
        if violations is not None:
            path, chosen = _within_budget(task, objective, path, violations=violations)
        elif not given:
            chosen = _chosen_strength(_part(task, CHOOSING), free.z)
        last = _part(task, SEARCHING)
        path = _searched_at(last, objective, path, strength=chosen, violations=violations)
        _stop_if(path.interrupted)
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        path = path._replace(interrupted=True)
    n_violated = int(violated_items(task.constraints, path.at(chosen)).sum())
    if warns and violations is not None and n_violated > violations and not path.interrupted:
        warn_beyond(violations, n_violated)
    labels = path.at(chosen)[: task.constraints.n_samples].astype(np.intp)
    return Answer(labels, len(path.strengths), path.interrupted), path, chosen


def _part(task: Task, shares: tuple[float, float]) -> Task:
    """Return the same task, as a part of the work."""
    return task._replace(context=task.context.part(*shares))


class Prices(NamedTuple):
    """The search for the lowest price that violates at most so many constraints."""

    task: Task
    objective: Objective
    violations: int

    def bracketed(self, path: Path, others: Sequence[Int32s] = ()) -> Path:
        """Raise the price until few enough are violated; then halve the last step."""
        path = self.with_best(path, others)
        while not path.interrupted and self.chosen(path) is None:
            t = 2 * path.strengths[-1] or STRENGTHS[1]
            if t > MAX_STRENGTH:
                break
            path = self.with_best(self.searched(path, t), others)
        for _ in range(BISECTIONS):
            high = self.chosen(path)
            if not high or path.interrupted:
                break
            low = max(t for t in path.strengths if t < high)
            middle = float(np.sqrt(low * high)) if low else high / 2
            path = self.with_best(self.searched(path, middle), others)
        return path

    def chosen(self, path: Path) -> float | None:
        """Return the lowest strength on the path that violates at most so many constraints."""
        for t, z in zip(path.strengths, path.partitions, strict=True):
            if violated_items(self.task.constraints, z).sum() <= self.violations:
                return t
        return None

    def searched(self, path: Path, strength: float) -> Path:
        """Search at one more strength, from the partitions at those next to it."""
        near = sorted(path.strengths, key=lambda t: abs(t - strength))[:2]
        here = self.objective.at(strength * self.objective.unit)
        found = here.search(self.task.context, [path.at(t) for t in near])
        return path.updated(strength, found.z)._replace(interrupted=found.interrupted)

    def with_best(self, path: Path, others: Sequence[Int32s]) -> Path:
        """Give each strength the best partition of all strengths, and of others."""
        known = (*path.partitions, *others)
        for t in path.strengths:
            at = self.objective.at(t * self.objective.unit)
            path = path.updated(t, min((path.at(t), *known), key=at.value))
        return path


def priced_labels(
    task: Task, violations: int, explore: Callable[[Path], Sequence[Int32s]]
) -> tuple[Answer, Path, float]:
    """Return the minimiser at the lowest price that violates at most so many constraints.

    The price rises until it does, from the minimiser at the price before, and the last step is
    halved (Rangapuram & Hein 2012, sections 3 and 4). There is a whole search at every price, and
    no partition of the path or that `explore` makes of them is lower there.
    """
    check_label_count(task.constraints, task.k)
    prices = Prices(task, _soft_objective(task), violations)
    found = prices.objective.at(0.0).search(task.context)
    path = prices.bracketed(Path((0.0,), (found.z,), interrupted=found.interrupted))
    if not path.interrupted:
        path = prices.bracketed(path, explore(path))
    chosen = prices.chosen(path)
    if chosen is None:
        chosen = path.strengths[-1]
        warn_beyond(violations, int(violated_items(task.constraints, path.at(chosen)).sum()))
    labels = path.at(chosen)[: task.constraints.n_samples].astype(np.intp)
    return Answer(labels, len(path.strengths), path.interrupted), path, chosen


def warn_beyond(violations: int, n_violated: int) -> None:
    """Warn that more constraints are violated than were allowed."""
    message = (
        f"No strength was found that violates at most {violations} constraints; the answer "
        f"violates {n_violated}."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=3)


def _searched_at(
    task: Task, objective: Objective, path: Path, *, strength: float, violations: int | None
) -> Path:
    """Search once more at the chosen strength, from the path; keep what is better within budget."""
    z = path.at(strength)
    here = objective.at(strength * objective.unit)
    found = here.search(task.context, [z])
    n_before, n_violated = (int(violated_items(task.constraints, a).sum()) for a in (z, found.z))
    within = violations is None or n_violated <= max(violations, n_before)
    if within and here.value(found.z) <= here.value(z):
        path = path.updated(strength, found.z)
    return path._replace(interrupted=found.interrupted)


def _stop_if(interrupted: bool) -> None:
    """Go on interrupting: a search that was interrupted returns its best and does not raise."""
    if interrupted:
        raise KeyboardInterrupt


def check_label_count(constraints: Constraints, n_clusters: int) -> None:
    """Raise ConflictError if there are more labels than clusters."""
    Constraints(constraints.n_samples, labels=constraints.known_labels).check(n_clusters)


def _soft_objective(task: Task) -> Objective:
    """Return the objective with every pair soft; every label an anchor, anchors apart for sure."""
    facts, n = task.constraints.facts, task.constraints.n_samples
    n_anchors = facts.classes.size
    n_items = n + n_anchors
    table = task.constraints.table
    soft = symmetric_matrix(table.pairs, table.weight, n_items)
    labels = np.column_stack((facts.labelled, n + facts.class_of))
    soft = csr_array(soft + symmetric_matrix(labels, np.ones(len(labels)), n_items))
    a, b = np.triu_indices(n_anchors, 1)
    clique = symmetric_matrix(np.column_stack((n + a, n + b)), np.ones(a.size), n_items)
    apart = CannotLinkGraph(clique.indptr.astype(np.int64), clique.indices.astype(np.int32))
    feasible = np.zeros(n_items, np.int32)
    feasible[n:] = np.arange(n_anchors)
    feasible[: task.k] = np.arange(task.k)  # no cluster empty
    one_each = np.arange(n_items, dtype=np.int32)
    groups = Groups(one_each, n_items, apart, soft, feasible, n_anchors=n_anchors)
    return task.build(groups, task.effort)


def _satisfying(task: Task, objective: Objective, free: Int32s) -> Found:
    """Return a partition that satisfies as many constraints as can be."""
    try:
        hard = hard_labels(task, STRENGTHS[-1])
    except ConflictError:
        return objective.at(STRENGTHS[-1] * objective.unit).search(task.context, [free])
    facts, n = task.constraints.facts, task.constraints.n_samples
    z = np.empty(n + facts.classes.size, np.int32)
    z[:n] = hard.labels
    z[n + facts.class_of] = hard.labels[facts.labelled]
    return Found(z, np.nan, hard.n_iter, interrupted=hard.interrupted)


def _chosen_strength(task: Task, free: Int32s) -> float:
    """Return 1; or, with many pairs, a strength that explains held-out answers clearly better."""
    constraints, context, table = task.constraints, task.context, task.constraints.table
    if constraints.n_pairs <= MANY_PAIRS or task.effort == "fast":
        return 1.0
    fold = context.rng.permutation(len(table.pairs)) % N_FOLDS
    scores = np.zeros((len(STRENGTHS), len(table.pairs)))
    silent = context._replace(report=None)
    for number in range(N_FOLDS):
        seen = fold != number
        # The ranking of the strengths is all that counts here.
        quick = task._replace(constraints=constraints.subset(seen), effort="fast", context=silent)
        objective = _soft_objective(quick)
        end = _satisfying(quick, objective, free)
        path = soft_path(objective, (free, end.z), silent)
        _stop_if(end.interrupted or path.interrupted)
        for at, z in enumerate(path.partitions):
            together = z[table.pairs[:, 0]] == z[table.pairs[:, 1]]
            likelihood = answer_likelihood(together, table.is_must_link, seen)
            scores[at, ~seen] = likelihood[~seen]
        context.log(f"fold {number + 1} of {N_FOLDS}", (number + 1) / N_FOLDS)
    return STRENGTHS[clearly_best(scores, STRENGTHS.index(1.0))]


def _within_budget(
    task: Task, objective: Objective, path: Path, *, violations: int
) -> tuple[Path, float]:
    """Return the path with the smallest strength that violates at most so many constraints."""
    unit, rng = objective.unit, task.context.rng

    def is_within(z: Int32s) -> bool:
        return bool(violated_items(task.constraints, z).sum() <= violations)

    while path.strengths[-1] < MAX_STRENGTH and not is_within(path.partitions[-1]):
        t = 2 * path.strengths[-1]
        path = path.updated(t, objective.at(t * unit).local_search(path.partitions[-1], rng))
    points = zip(path.strengths, path.partitions, strict=True)
    high = next((t for t, z in points if is_within(z)), None)
    if high is None:
        return path, path.strengths[-1]
    low = max((t for t in path.strengths if 0 < t < high), default=high)
    for _ in range(BISECTIONS if low < high else 0):
        t = float(np.sqrt(low * high))
        here = objective.at(t * unit)
        z = here.recombine(here.local_search(path.at(low), rng), path.at(high), rng)
        path = path.updated(t, z)
        low, high = (low, t) if is_within(z) else (t, high)
    return path, high


# Suspects ------------------------------------------------------------------------------------


def violated_items(constraints: Constraints, z: Int32s) -> Bools:
    """Return which must-links, cannot-links and labels a partition with anchors violates."""
    facts, n = constraints.facts, constraints.n_samples
    labels = z[facts.labelled] != z[n + facts.class_of]
    return np.concatenate((constraints.table.is_violated(z), labels))


def find_suspects(constraints: Constraints, path: Path, strength: float) -> tuple[Suspect, ...]:
    """Return what is violated at a strength and at half of it, the longest violated first."""
    half = max((t for t in path.strengths if t <= strength / 2), default=strength)
    # One row for each strength, ascending.
    violated = np.array([violated_items(constraints, z) for z in path.partitions])
    strengths = np.array([*path.strengths, np.inf])
    at, at_half = (path.strengths.index(t) for t in (strength, half))
    suspicious = np.flatnonzero(violated[at] & violated[at_half])
    last = len(violated) - 1 - violated[::-1, suspicious].argmax(axis=0)
    satisfied_from = strengths[last + 1]
    times = violated[:, suspicious].sum(axis=0)
    order = np.lexsort((suspicious, -times, -satisfied_from))
    return make_suspects(constraints, suspicious[order], strength=satisfied_from[order])
