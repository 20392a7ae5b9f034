"""The ensemble: which candidates are found, in which scaling, and what they say together.

The order is that of the mathematics. Unsupervised candidates come first, with the prior of what the
samples say for them. With some constraints, cheap candidates choose the scaling, and the others are
found there. All predict held-out constraints; the consensus is the answer.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.auto.candidates import CANDIDATES, Candidate
from linkwise.auto.consensus import (
    ANCHOR_FROM,
    Consensus,
    Member,
    find_consensus,
    least_rate,
)
from linkwise.auto.evidence import (
    Fold,
    Prediction,
    both_ways,
    folds_of,
    held_out_probability,
)
from linkwise.auto.learner import log_softmax
from linkwise.auto.noise import likelihood, log_likelihood
from linkwise.auto.partition import EPS, ERROR_RATE, Partition, from_probability
from linkwise.auto.prior import ncut_value
from linkwise.auto.trial import Trial, unsupervised_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Floats, Ints
    from linkwise.auto.constraint_model import ConstraintModel, Posterior
    from linkwise.auto.fold_cache import FoldCache
    from linkwise.auto.view import View
    from linkwise.constraints import Constraints
    from linkwise.search.objective import Run


FEW = 4  # constraints below which none is held out
FOLD_ROWS = 600  # unconstrained samples that learners of a fold learn from
# Factor of the log-probabilities that constraints are added to: candidates that agree are surer
# together than each of them alone, unless they predict held-out constraints like guessing.
AGREED, GUESSING = 1.5, 0.5
OTHER_SCALING = 0.05  # prior of the less plausible scaling
APART, APART_BELOW = 0.005, 12  # cut for each cluster of separate components; constraints below
# Unsupervised candidates and, of these, those that compare scalings; the same with constraints.
UNSUPERVISED = [one for one in CANDIDATES if one.group == "unsupervised"]
QUICK = [one for one in UNSUPERVISED if one.is_quick]
CHEAP = [one for one in CANDIDATES if one.group != "unsupervised" and one.is_quick]
OTHERS = [one for one in CANDIDATES if one.group != "unsupervised" and not one.is_quick]


class Answer(NamedTuple):
    """What the candidates and the constraints say together."""

    view: View
    scalings: tuple[str, ...]  # that were compared
    rows: Ints  # samples that were partitioned
    probability: Floats  # (n_rows, k), with what the constraints say
    model: ConstraintModel
    posterior: Posterior
    members: list[Member]
    consensus: Consensus
    n_held_out: int
    interrupted: bool = False


class Progress:
    """Tells the share of the work that is done."""

    def __init__(self, callback: Callable[[float, str], None] | None, total: int) -> None:
        self.callback, self.total, self.done = callback, max(total, 1), 0

    def step(self, what: str, n: int = 1) -> None:
        """Count finished work."""
        self.done += n
        if self.callback is not None:
            self.callback(min(self.done / self.total, 1.0), what)


class Ensemble:
    """Candidates for one set of constraints.

    Parameters
    ----------
    makers : list of callable
        Each returns the samples in a scaling, a View; the most plausible scaling first.
    model : ConstraintModel
        What is given.
    constraints : Constraints
        The same.
    cache : FoldCache
        Folds of an earlier fit with nearly the same constraints.
    seed : int
        Of random numbers.
    run : callable
        Runs independent tasks.
    callback : callable or None
        Called with the share of the work that is done, and what was done last.
    """

    def __init__(
        self,
        makers: Sequence[Callable[[], View]],
        model: ConstraintModel,
        constraints: Constraints,
        *,
        cache: FoldCache,
        seed: int,
        run: Run,
        callback: Callable[[float, str], None] | None = None,
    ) -> None:
        self.makers, self.model, self.constraints = makers, model, constraints
        self.cache, self.seed, self.run = cache, seed, run
        self.folds: list[Fold] = []
        if model.n_constraints >= FEW:
            self.folds = folds_of(model, cache.begin(model, seed))
        self.progress = Progress(callback, self._amount())
        self.views: list[View] = []
        self.members: list[Member] = []
        self.best = 0  # the view that was chosen
        self.is_chosen = False  # whether scalings were compared, and not interrupted before

    def answer(self, *, hurry: bool = False) -> Answer:
        """Find candidates and their consensus.

        Interrupting ends with the candidates found so far. In a `hurry`, one of them is enough.
        """
        interrupted = hurry
        if hurry:  # a callback that goes on interrupting would leave no answer
            self.progress.callback = None
        try:
            self._find(hurry=hurry)
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            if not self.members and self.views:
                self.members = self._unsupervised_members(self.views[0])
            if not self.members:
                raise KeyboardInterrupt from error
            interrupted = True
        return self._concluded(interrupted=interrupted)

    def _amount(self) -> int:
        """Return the number of steps of the work."""
        if not self.model.n_constraints:
            return len(UNSUPERVISED)
        n_views = len(self.makers)
        supervised = n_views * len(CHEAP) + len(OTHERS) if self.folds else 0
        # Those of the first view, the quick ones of all, and those of the view that was chosen.
        unsupervised = 2 * len(UNSUPERVISED) + n_views * len(QUICK)
        return unsupervised + supervised * (1 + len(self.folds))

    def _find(self, *, hurry: bool) -> None:
        view = self._next_view()
        find_unsupervised(view, UNSUPERVISED[:2] if hurry else UNSUPERVISED, self.progress)
        self.members = self._unsupervised_members(view)
        if hurry or not self.model.n_constraints:
            return
        # The scaling: that in which quick candidates predict better
        best, trials, cheap = self._choose_scaling()
        view = self.views[best]
        find_unsupervised(view, UNSUPERVISED, self.progress)
        members = self._unsupervised_members(view) + cheap
        if self.model.n_constraints >= ANCHOR_FROM:
            members = [self._anchor(members, view), *members]
        self.best, self.members, self.is_chosen = best, members, True
        if self.folds:
            self.members = members + self._supervised(trials, OTHERS)

    def _next_view(self) -> View:
        self.views.append(self.makers[len(self.views)]())
        return self.views[-1]

    def _choose_scaling(self) -> tuple[int, list[Trial], list[Member]]:
        """Return the number of the best view, its trials, and its cheap candidates."""
        options = []
        for number in range(len(self.makers)):
            view = self.views[0] if number == 0 else self._next_view()
            find_unsupervised(view, QUICK, self.progress)
            trials = self._trials(view) if self.folds else []
            cheap = self._supervised(trials, CHEAP) if self.folds else []
            options.append((self._scaling_score(view, cheap, number), number, trials, cheap))
        return max(options, key=lambda option: option[0])[1:]

    def _scaling_score(self, view: View, cheap: list[Member], number: int) -> float:
        """Return how well quick candidates predict constraints, with the prior of the scaling."""
        if len(self.makers) == 1:
            return 0.0
        rows = self._rows(view)
        places = view.nearest_row(rows, view.rows)
        held_out = [one.held_out for one in cheap]
        for one in QUICK:
            if one.name in view.partitions:
                on_rows = Partition(view.partitions[one.name].log_probability[places])
                held_out.append(self._unsupervised_prediction(on_rows, rows))
        rate = least_rate(self.model.n_constraints)
        evidence = log_likelihood(np.array(held_out), self.model.reliability, rate)
        mean = float(np.logaddexp.reduce(evidence)) - np.log(len(held_out))
        prior = np.log(OTHER_SCALING if number else 1 - OTHER_SCALING)
        return float(prior + mean)

    def _anchor(self, members: list[Member], view: View) -> Member:
        alone = [one._replace(held_out=None) for one in members if one.group == "unsupervised"]
        without = find_consensus(alone)
        partition = from_probability(without.probability)
        held_out = self._unsupervised_prediction(partition, self._rows(view))
        return Member("without constraints", "anchor", partition, 1.0, held_out)

    # --- candidates

    def _unsupervised_members(self, view: View) -> list[Member]:
        """Return the unsupervised candidates of a view, with their prior and predictions."""
        if not view.partitions:
            return []
        prior = view.prior.weights
        rows = self._rows(view)
        places = view.nearest_row(rows, view.rows)
        members = []
        for name, partition in view.partitions.items():
            on_rows = Partition(partition.log_probability[places])
            held_out = self._unsupervised_prediction(on_rows, rows)
            members.append(Member(name, "unsupervised", on_rows, prior[name], held_out))
        return members

    def _unsupervised_prediction(self, partition: Partition, rows: Ints) -> Floats | None:
        if not self.model.n_constraints:
            return None
        logits = partition.log_probability[np.searchsorted(rows, self.model.vertices)]
        if not self.folds:
            # Constraints that are wrong half of the time teach nothing about each other.
            return self.model.posterior(logits, 0.5).left_out
        said = [Prediction(logits, ERROR_RATE)] * len(self.folds)
        return held_out_probability(self.model, self.folds, said)

    def _rows(self, view: View) -> Ints:
        """Return the samples that are partitioned, the constrained ones among them."""
        return np.union1d(view.rows, self.model.vertices)

    def _trials(self, view: View) -> list[Trial]:
        """Return the trial with all constraints, then one for each fold."""
        rows, vertices = self._rows(view), self.model.vertices
        design = cache(partial(view.design, rows, vertices))
        warm = self.cache.warm_starts(view)
        whole = Trial(view, self.constraints, self.model, rows, design, self.seed, warm)
        whole.ends = self.cache.learners_ends(view)
        free = np.setdiff1d(rows, vertices, assume_unique=True)
        if free.size > FOLD_ROWS:
            drawn = np.random.RandomState(self.seed).choice(free, FOLD_ROWS, replace=False)
            design = cache(partial(view.design, np.union1d(vertices, drawn), vertices))
        hidden = [fold.hidden for fold in self.folds]
        return [whole, *self.cache.trials(view, whole, design, hidden)]

    def _supervised(self, trials: list[Trial], candidates: list[Candidate]) -> list[Member]:
        """Find candidates with all constraints and without each fold."""
        used = [one for one in candidates if is_used(one, trials[0])]
        skipped = (len(candidates) - len(used)) * len(trials)
        self.progress.step("candidates", skipped)
        find_all(trials[0], used, self.progress)
        tasks = [partial(find_all, trial, used, self.progress) for trial in trials[1:]]
        for _ in self.run(tasks):
            pass
        return [self._member(one, trials, used) for one in used]

    def _member(self, one: Candidate, trials: list[Trial], used: list[Candidate]) -> Member:
        whole = trials[0]
        partition = whole.found[one.name]
        said = [self._prediction(trial, one.name) for trial in trials[1:]]
        held_out = held_out_probability(self.model, self.folds, said)
        share = 1 / sum(other.group == one.group for other in used)
        if self._is_apart(one, whole):
            # The graph has more components than clusters: which of them belong together, only
            # pairs can tell. Those that were used to decide it count.
            i, j = self.model.vertices[self.model.pairs.ends].T
            P = np.exp(log_softmax(partition.log_probability))[np.searchsorted(whole.rows, (i, j))]
            together = np.einsum("ic,ic->i", *P)
            of_pairs = np.where(self.model.pairs.together, together, 1 - together)
            held_out[: of_pairs.size] = of_pairs
            return Member(one.name, one.group, partition, share, held_out, is_apart=True)
        return Member(one.name, one.group, partition, share, held_out)

    def _prediction(self, trial: Trial, name: str) -> Prediction:
        """Return what a candidate says about the vertices, found in the trial of a fold."""
        found = trial.found[name]
        at = trial.view.nearest_row(self.model.vertices, trial.rows)
        return Prediction(found.log_probability[at], found.error_rate)

    def _is_apart(self, one: Candidate, whole: Trial) -> bool:
        """Whether clusters are separate components of the graph."""
        if one.group != "coarse cut" or self.model.n_constraints >= APART_BELOW:
            return False
        view, labels = whole.view, whole.found[one.name].labels
        W = view.W if whole.rows.size == view.n_samples else view.W[whole.rows][:, whole.rows]
        return ncut_value(W, labels, view.k) < APART * view.k

    # --- the answer

    def _confidence(self, consensus: Consensus) -> float:
        """Return how far the consensus is trusted beside the constraints."""
        if not self.folds:
            return 1.0
        held_out = consensus.weights @ np.array([one.held_out for one in self.members])
        # Of a pair given both ways one is wrong: it says nothing about the candidates.
        single = ~both_ways(self.model)
        judged = self.model.subset(single)
        score = likelihood(held_out[single], judged.reliability)[0]
        return AGREED if score >= guessing_score(judged) else GUESSING

    def _concluded(self, *, interrupted: bool) -> Answer:
        """Average the candidates, and add what the constraints say."""
        view = self.views[self.best]
        compared = self.views if self.is_chosen else [view]
        rows = self._rows(view)
        consensus = find_consensus(self.members, self.model.reliability)
        logits = np.log(consensus.probability + EPS)
        P = np.exp(log_softmax(logits))
        vertices = np.searchsorted(rows, self.model.vertices)
        factor = self._confidence(consensus)
        posterior = self.model.posterior(factor * logits[vertices], consensus.error_rate)
        P[vertices] = posterior.probability
        return Answer(
            view=view,
            scalings=tuple(one.scaling.name for one in compared if one.scaling is not None),
            rows=rows,
            probability=P,
            model=self.model,
            posterior=posterior,
            members=self.members,
            consensus=consensus,
            n_held_out=self.model.n_constraints if self.folds else 0,
            interrupted=interrupted,
        )


def guessing_score(model: ConstraintModel) -> float:
    """Return the log-likelihood of guessing the constraints.

    A pair is guessed by the share of must-links (one of each is added), a label among the clusters.
    """
    n_pairs, n_must = len(model.pairs.ends), int(model.pairs.together.sum())
    p = (n_must + 1) / (n_pairs + 2)
    of_pairs = n_must * np.log(p) + (n_pairs - n_must) * np.log(1 - p)
    return float(of_pairs + model.labelled.size * np.log(1 / model.k))


def find_unsupervised(view: View, candidates: list[Candidate], progress: Progress) -> None:
    """Find unsupervised candidates of a view, unless they are there."""
    missing = [one for one in candidates if one.name not in view.partitions]
    if not missing:
        progress.step("candidates", len(candidates))
        return
    trial = unsupervised_trial(view)
    trial.found = view.partitions
    progress.step("samples described", len(candidates) - len(missing))
    for one in missing:
        if is_used(one, trial):
            trial.found[one.name] = one.find(trial)
        progress.step(one.name)


def find_all(trial: Trial, candidates: list[Candidate], progress: Progress) -> None:
    """Find candidates, one after the other: some begin from those before."""
    for one in candidates:
        if one.name not in trial.found:  # it may be there from an earlier fit
            trial.found[one.name] = one.find(trial)
        progress.step(one.name)


def is_used(one: Candidate, trial: Trial) -> bool:
    """Whether a candidate is used, given all constraints."""
    if trial.model.n_constraints < one.least:
        return False
    return one.applies is None or one.applies(trial)
