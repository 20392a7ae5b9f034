"""Partitions that satisfy every certain constraint, or the reason why there is none."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.constraints.feasible import feasible_groups, require_coloring
from linkwise.exceptions import ConvergenceWarning
from linkwise.search.problem import Groups, merge_for_two, pair_graph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from linkwise._types import Ints
    from linkwise.constraints import Constraints
    from linkwise.search.objective import Build, Context


class Task(NamedTuple):
    """The objective to minimise, over which partitions, and how."""

    build: Build
    constraints: Constraints
    k: int
    context: Context
    effort: str = "default"


class Answer(NamedTuple):
    """Labels of samples, and how the search for them went."""

    labels: Ints
    n_iter: int
    interrupted: bool = False


def certain_groups(constraints: Constraints, k: int, rng: np.random.RandomState) -> Groups:
    """Return what certain constraints leave open, and one feasible partition of it.

    Raises ConflictError if there is none, or none was found.
    """
    found = feasible_groups(constraints, k)
    colors = require_coloring(constraints, k, rng, groups=found).colors
    soft = soft_matrix(constraints, uncertain_only=True)
    groups = Groups(found.component.astype(np.int32), found.n_groups, found.graph, soft, colors)
    return merge_for_two(groups) if k == 2 else groups


def hard_labels(task: Task, strength: float, *, check: bool = True) -> Answer:
    """Return a partition that satisfies every certain constraint, or raise ConflictError.

    Pairs of lower belief are soft, with the penalty `strength`. With `check`, the labels are
    counted on the constraints as they were given, whatever the search found.
    """
    context = task.context
    groups = certain_groups(task.constraints, task.k, context.rng)
    objective = task.build(groups, task.effort)
    found = objective.at(strength * objective.unit).search(context)
    labels = found.z[groups.of_sample].astype(np.intp)
    if check:
        assert_satisfied(task.constraints, labels)
    return Answer(labels, found.n_generations, found.interrupted)


def assert_satisfied(constraints: Constraints, labels: Ints) -> None:
    """Raise AssertionError if labels violate a certain constraint: the search has an error."""
    n_violated = constraints.certain.n_violated(labels)
    if n_violated:
        message = f"{n_violated} certain constraints are violated: this is an error in linkwise."
        raise AssertionError(message)


def warn_if_interrupted(*, interrupted: bool) -> None:
    """Warn that the answer is the best so far."""
    if interrupted:
        message = "The search was interrupted; this is the best partition found until then."
        warnings.warn(message, ConvergenceWarning, stacklevel=2)


def soft_matrix(constraints: Constraints, *, uncertain_only: bool) -> csr_array:
    """Return pairs as a matrix over samples: must-links positive, cannot-links negative."""
    table = constraints.table
    if uncertain_only:
        table = table.kept(table.belief < 1)
    return pair_graph(table.pairs, table.weight, constraints.n_samples)
