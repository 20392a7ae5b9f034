"""Trial: one set of constraints, and the partitions that candidates find with it.

The answer comes from the trial with all constraints. Trials without some of them, the folds, show
how well each candidate predicts constraints that it has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.constraint_model import ConstraintModel, labelled_samples
from linkwise.auto.learner import fit_learner, log_softmax
from linkwise.auto.noise import likelihood
from linkwise.auto.partition import EPS, ERROR_RATE, Partition, matched_mean, softened
from linkwise.constraints import Constraints
from linkwise.linalg.warm import WarmStarts

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Bools, Floats, Ints
    from linkwise.auto.view import Design, View


MAX_ROUNDS = 15
TOL = 2e-3  # mean change of a probability
START_TRUST = 0.9  # in the labels that a learner begins with
SAME_START = 0.99  # share of equal labels from which on a learner continues from the last fit
VOTE = 10.0  # log-likelihood that makes a learner's vote e times as heavy


@dataclass(eq=False)
class Trial:
    """Constraints, and what was found with them.

    Parameters
    ----------
    view : View
        The samples.
    constraints : Constraints
        What is given in this trial.
    model : ConstraintModel
        The same; its vertices are those of all constraints.
    rows : ndarray of int
        Samples that are partitioned, ascending; the vertices are among them.
    make_design : callable
        Returns what learners learn from, a Design: all rows, or some.
    seed : int
        Of random numbers.
    warm : WarmStarts
        Where solvers start.
    found : dict
        Partitions by the names of their candidates.
    ends : dict
        By the names of learners, the labels where each began and the soft partition where it ended,
        in the last fit with nearly the same constraints and then in this one.
    """

    view: View
    constraints: Constraints
    model: ConstraintModel
    rows: Ints
    make_design: Callable[[], Design]
    seed: int = 0
    warm: WarmStarts = field(default_factory=WarmStarts)
    found: dict[str, Partition] = field(default_factory=dict)
    ends: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)

    @cached_property
    def design(self) -> Design:
        """What learners learn from."""
        return self.make_design()

    @cached_property
    def pairs(self) -> tuple[Ints, Floats]:
        """Pairs of samples, also those that labels imply, and their signed weights."""
        return self.constraints.signed_pairs()

    @cached_property
    def at(self) -> Ints:
        """Places in `rows` of the samples that learners learn from."""
        return np.searchsorted(self.rows, self.design.rows)

    @cached_property
    def learnt_vertices(self) -> Ints:
        """Places of the vertices among the samples that learners learn from."""
        return np.searchsorted(self.design.rows, self.model.vertices)

    def labels_of(self, name: str) -> Ints:
        """Return the labels of a partition found before, by its name, on the rows."""
        if name in self.found:
            return self.found[name].labels
        return self.view.partitions[name].labels[self.view.nearest_row(self.rows, self.view.rows)]

    def without(self, held: Bools, make_design: Callable[[], Design]) -> Trial:
        """Return a trial with the constraints that are not held out."""
        return Trial(
            self.view,
            without_held(self.constraints, held),
            self.model.subset(~held),
            self.rows,
            make_design,
            self.seed,
            # A copy: no trial depends on which one was run before it.
            replace(self.warm, resolvents=dict(self.warm.resolvents)),
        )

    # --- learners

    def begin(self, labels: Ints) -> Floats:
        """Return where a learner begins, given labels of the rows."""
        return softened(labels[self.at], self.model.k, START_TRUST)

    def learn(
        self, name: str, bases: tuple[str, ...], start: Floats, *, rate: float = ERROR_RATE
    ) -> Partition:
        """Alternate between a learner and what the constraints make of its probabilities."""
        ridges = [self.design.ridges[basis] for basis in bases]
        vertices = self.learnt_vertices
        messages = np.zeros((len(self.model.pairs.ends), 2, self.model.k))
        labels = start.argmax(axis=1)
        Q = self._continued(name, labels, start)
        for _ in range(MAX_ROUNDS):
            left_out, learner = fit_learner(ridges, bases, Q, self.design.weights)
            found = self.model.posterior(left_out[vertices], rate, messages)
            new = np.exp(log_softmax(left_out))
            new[vertices] = found.probability
            change = float(np.abs(new - Q).mean())
            Q = new
            if change < TOL:
                break
        self.ends[name] = labels, Q
        score, rate = likelihood(found.left_out, self.model.reliability)
        log_probability = left_out
        if self.rows.size > self.design.rows.size:
            log_probability = learner.log_probability(self.view.bases.features(self.rows))
            log_probability[self.at] = left_out
        return Partition(log_probability, rate, Q, score)

    def _continued(self, name: str, labels: Ints, start: Floats) -> Floats:
        """Return where the learner ended in the last fit, if it begins at the same place."""
        began, ended = self.ends.get(name, (labels[:0], start))
        is_same = began.size == labels.size and (began == labels).mean() >= SAME_START
        return ended if is_same else start

    @cached_property
    def first_learners(self) -> Agreement:
        """What the learners found so far say together; read after the first ones."""
        learners = [one for one in self.found.values() if one.posterior is not None]
        scores = np.array([one.score for one in learners])
        weights = np.exp((scores - scores.max()) / VOTE)
        weights /= weights.sum()
        parts = [np.exp(log_softmax(one.log_probability[self.at])) for one in learners]
        leader = int(weights.argmax())
        P = matched_mean(parts, weights, parts[leader])
        rate = float(np.exp(weights @ np.log([one.error_rate for one in learners])))
        logits = np.log(P + EPS)
        P = np.exp(log_softmax(logits))
        P[self.learnt_vertices] = self.model.posterior(
            logits[self.learnt_vertices], rate
        ).probability
        best = learners[leader].posterior
        assert best is not None
        return Agreement(P, best, rate)


class Agreement(NamedTuple):
    """What learners say together, on the samples that they learn from."""

    consensus: Floats  # the average, with what the constraints say
    leader: Floats  # the same of the learner that predicts the constraints best
    error_rate: float


def unsupervised_trial(view: View) -> Trial:
    """Return the trial without constraints."""
    none = Constraints(view.n_samples)
    rows = view.rows
    model = ConstraintModel.of(none, view.k)
    return Trial(view, none, model, rows, partial(view.design, rows, np.zeros(0, np.intp)))


def without_held(constraints: Constraints, held: Bools) -> Constraints:
    """Return the constraints that are not held out; `held` is of the pairs, then of the labels."""
    pairs, labels = np.split(held, [constraints.n_pairs])
    given = constraints.subset(~pairs)
    if constraints.labels is None:
        return given
    known = constraints.labels.copy()
    known[labelled_samples(constraints)[0][labels]] = -1
    return replace(given, labels=known)
