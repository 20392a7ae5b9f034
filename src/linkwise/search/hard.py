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

    from linkwise._types import Int32s, Ints
    from linkwise.constraints import Constraints
    from linkwise.search.evolve import Report, Run
    from linkwise.search.soft import Data


__all__ = [
    "Answer",
    "Search",
    "certain_groups",
    "hard_labels",
    "n_certain_violated",
    "refuse_broken_promise",
    "signed_pairs",
    "warn_if_interrupted",
]


class Search(NamedTuple):
    """What a search is about, and its means."""

    data: Data
    constraints: Constraints
    effort: str
    rng: np.random.RandomState
    run: Run
    report: Report | None = None

    @property
    def k(self) -> int:
        """Number of clusters."""
        return self.data.k


class Answer(NamedTuple):
    """Ints of samples, and how the search for them went."""

    labels: Ints
    n_iter: int
    interrupted: bool = False


def certain_groups(
    constraints: Constraints, k: int, rng: np.random.RandomState
) -> tuple[Groups, Int32s]:
    """Return what certain constraints leave open, and one feasible partition of it.

    Raises ConflictError if there is none, or none was found.
    """
    known = feasible_groups(constraints, k)
    colors = require_coloring(constraints, k, rng, groups=known).colors
    groups = Groups(known.component.astype(np.int32), known.n_groups, known.graph)
    if k != 2:
        return groups, colors
    merged = merge_for_two(groups)
    merged_colors = np.empty(merged.n_groups, np.int32)
    merged_colors[merged.of_sample] = colors[groups.of_sample]
    return merged, merged_colors


def hard_labels(task: Search, strength: float) -> Answer:
    """Return a partition that satisfies every certain constraint, or raise ConflictError.

    Pairs of lower belief are soft, at the price `strength`.
    """
    groups, colors = certain_groups(task.constraints, task.k, task.rng)
    soft = signed_pairs(task.constraints, uncertain_only=True)
    landscape = task.data.landscape(groups, soft, colors, task.effort)
    priced = landscape.at(strength * task.data.unit)
    found = priced.search(task.rng, task.run, report=task.report)
    labels = found.z[groups.of_sample].astype(np.intp)
    refuse_broken_promise(task.constraints, labels)
    return Answer(labels, found.n_generations, found.interrupted)


def n_certain_violated(constraints: Constraints, labels: Ints) -> int:
    """Return how many certain pairs and labels a partition violates."""
    return constraints.certain.n_violated(labels)


def warn_if_interrupted(*, interrupted: bool) -> None:
    """Say that the answer is the best so far."""
    if interrupted:
        message = "The search was interrupted; this is the best partition found until then."
        warnings.warn(message, ConvergenceWarning, stacklevel=2)


def refuse_broken_promise(constraints: Constraints, labels: Ints) -> None:
    """Count the labels on the constraints as they were given: the search is not trusted."""
    n_violated = n_certain_violated(constraints, labels)
    if n_violated:
        message = f"{n_violated} certain constraints are violated: this is an error in linkwise."
        raise AssertionError(message)


def signed_pairs(constraints: Constraints, *, uncertain_only: bool) -> csr_array:
    """Return pairs as a signed matrix over samples: positive keeps apart."""
    belief = np.concatenate((constraints.must_link_belief, constraints.cannot_link_belief))
    pairs = np.concatenate((constraints.must_link, constraints.cannot_link))
    sign = np.repeat([-1.0, 1.0], [len(constraints.must_link), len(constraints.cannot_link)])
    kept = belief < 1 if uncertain_only else np.ones(belief.size, bool)
    return pair_graph(pairs[kept], (sign * belief)[kept], constraints.n_samples)
