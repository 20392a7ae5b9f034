"""The ensemble: which candidates are found, in which scaling, and what they say together.

The order is that of the mathematics. Unsupervised candidates come first, with the prior of what the
samples say for them. With some constraints, cheap candidates choose the scaling, and the others are
found there. All predict held-out constraints; the consensus is the answer.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt
from linkwise.auto.candidates import CANDIDATES, UNSUPERVISED, Candidate
from linkwise.auto.consensus import (
    ANCHOR,
    EPS,
    ERROR_RATE,
    Consensus,
    Member,
    Partition,
    find_consensus,
    from_probability,
    least_rate,
    matched_mean,
)
from linkwise.auto.constraint_model import (
    ConstraintModel,
    log_likelihood,
)
from linkwise.auto.evidence import (
    Fold,
    Prediction,
    Trial,
    calibrated,
    folds_of,
    held_out_probability,
    without_held,
)
from linkwise.auto.learner import log_softmax
from linkwise.auto.prior import data_prior, ncut_value
from linkwise.linalg.warm import WarmStarts
from linkwise.search.objective import workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Floats, Ints
    from linkwise.auto.constraint_model import Posterior
    from linkwise.auto.views import Scaling, View, Views
    from linkwise.constraints import Constraints


FEW = 4  # constraints below which none is held out
FOLD_ROWS = 600  # unconstrained samples that learners of a fold learn from
OTHER_SCALING = 0.05  # prior of a less plausible scaling, beside the first
WITHOUT_JITTER = 0.3  # prior of the first one without jitter: a category is often what is meant
APART, APART_BELOW = 0.005, 12  # cut for each cluster of separate components; constraints below
# Candidates without constraints and, of these, those that compare scalings; the same with them.
ALONE = [one for one in CANDIDATES if one.group == UNSUPERVISED]
QUICK = [one for one in ALONE if one.is_quick]
CHEAP = [one for one in CANDIDATES if one.group != UNSUPERVISED and one.is_quick]
OTHERS = [one for one in CANDIDATES if one.group != UNSUPERVISED and not one.is_quick]


class Answer(NamedTuple):
    """What the candidates and the constraints say together."""

    view: View
    scalings: tuple[str, ...]  # that were compared
    rows: Ints  # samples that were partitioned
    probability: Floats  # (n_rows, k), with what the constraints say
    without: Floats  # the same without constraints
    model: ConstraintModel
    posterior: Posterior
    members: list[Member]
    consensus: Consensus
    error_rate: float  # of the constraints
    n_held_out: int
    interrupted: bool = False


class Alone(NamedTuple):
    """What the samples of a view say without constraints."""

    members: list[Member]
    without: Floats  # (n_rows, k), their consensus
    anchor: Member  # the same as a candidate


class Ensemble:
    """Candidates for one set of constraints.

    Parameters
    ----------
    data : Views
        The samples, with what earlier fits found.
    scalings : list of (Scaling or None)
        Scalings to compare, the most plausible one first; None for a graph.
    constraints : Constraints
        What is given.
    k : int
        Number of clusters.
    seed : int
        Of random numbers.
    n_jobs : int
        Number of threads.
    callback : callable or None
        Called with the share of the work that is done, and what was done last.
    """

    def __init__(
        self,
        data: Views,
        scalings: Sequence[Scaling | None],
        constraints: Constraints,
        *,
        k: int,
        seed: int,
        n_jobs: int = 1,
        callback: Callable[[float, str], None] | None = None,
    ) -> None:
        self.data, self.scalings, self.constraints = data, scalings, constraints
        self.seed, self.n_jobs, self.callback = seed, n_jobs, callback
        self.model = model = ConstraintModel.of(constraints, k)
        self.cache = data.folds[k]  # of an earlier fit with nearly the same constraints
        self.folds: list[Fold] = []
        if model.n_constraints >= FEW:
            self.folds = folds_of(model, self.cache.begin(model, seed))
        self.views: list[View] = []
        self.rows = model.vertices  # samples that are partitioned, the constrained ones among them
        self.members: list[Member] = []
        self.without = np.zeros((0, k))  # what the unsupervised ones say together
        self.best = 0  # the view that was chosen
        self.is_chosen = False  # whether scalings were compared, and not interrupted before
        # Steps: candidates of a view without constraints; all that are done, and to be done
        self.n_alone, self.n_done, self.n_steps = len(ALONE), 0, 0
        if model.n_constraints:
            self.n_steps = len(scalings) * len(QUICK)
        if self.folds:
            n_supervised = len(scalings) * len(CHEAP) + len(OTHERS)
            self.n_steps += n_supervised * (1 + len(self.folds))

    def answer(self, *, hurry: bool = False) -> Answer:
        """Find candidates and their consensus.

        Interrupting ends with the candidates found so far. If there is none yet, or in a `hurry`,
        the first ones are found; interrupting again then leaves no answer.
        """
        is_interrupted = hurry
        try:
            self._find_all(hurry=hurry)
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
            is_interrupted = True
            if not self.members:
                self._find_all(hurry=True)
        finally:
            self.cache.forget()
        # Their average, with what the constraints say
        view = self.views[self.best]
        compared = self.views if self.is_chosen else [view]
        consensus = find_consensus(self.members, self.model.reliability)
        logits = np.log(consensus.probability + EPS)
        P = np.exp(log_softmax(logits))
        vertices = np.searchsorted(self.rows, self.model.vertices)
        confidence, error_rate = self._calibrated(consensus)
        posterior = self.model.posterior(confidence * logits[vertices], error_rate)
        P[vertices] = posterior.probability
        return Answer(
            view=view,
            scalings=tuple(filter(None, map(attrgetter("name"), compared))),
            rows=self.rows,
            probability=P,
            without=self.without,
            model=self.model,
            posterior=posterior,
            members=self.members,
            consensus=consensus,
            error_rate=error_rate,
            n_held_out=self.model.n_constraints if self.folds else 0,
            interrupted=is_interrupted,
        )

    def _find_all(self, *, hurry: bool) -> None:
        if not self.views:
            self.views.append(self.data.view(self.scalings[0], self.model.k))
        view, wanted = self.views[0], ALONE
        if view.binary is None:  # candidates for features with two values are no steps
            self.n_alone = len(ALONE) - sum(map(attrgetter("needs_binary"), ALONE))
        is_compared = self.model.n_constraints > 0 and len(self.scalings) > 1
        self.n_steps += (2 if is_compared else 1) * self.n_alone
        self.rows = np.union1d(view.rows, self.model.vertices)
        if hurry:  # a callback that goes on interrupting would leave no answer
            self.callback = None
            wanted = [] if view.partitions else ALONE[:2]
        alone = self._alone(view, wanted)
        self.members, self.without = alone.members, alone.without
        if hurry or not self.model.n_constraints:
            return
        # The scaling: that in which candidates predict better
        best, alone, trials, cheap = self._choose_scaling(alone)
        members = [alone.anchor, *alone.members, *cheap]  # an interrupt finds all or nothing new
        self.best, self.without, self.members, self.is_chosen = best, alone.without, members, True
        if self.folds:
            self.members = self.members + self._supervised(trials, OTHERS)

    def _choose_scaling(self, alone: Alone) -> tuple[int, Alone, list[Trial], list[Member]]:
        """Return the number of the best view, what its samples say alone, trials, cheap candidates.

        Quick candidates name a view. If it is not the first, what its samples say alone counts:
        a candidate that nothing else speaks for may predict constraints by chance.
        """
        prior, first = np.full(len(self.scalings), OTHER_SCALING), self.scalings[0]
        prior[0] = 1 - OTHER_SCALING
        if prior.size > 1 and first is not None and first.shrinkage is not None:
            prior[1] = WITHOUT_JITTER
        log_prior = np.log(prior)
        found, quick = [], np.zeros(log_prior.size)
        for number, scaling in enumerate(self.scalings):
            if number == len(self.views):
                self.views.append(self.data.view(scaling, self.model.k))
            view = self.views[number]
            self._find_unsupervised(view, QUICK)
            trials = self._trials(view) if self.folds else []
            cheap = self._supervised(trials, CHEAP) if self.folds else []
            if log_prior.size > 1:
                quick[number] = self._quick_score(view, cheap)
            found.append((trials, cheap))
        best, other = 0, int(np.argmax(quick + log_prior))
        if other:
            challenger = self._alone(self.views[other], ALONE)
            # Evidence for each of both: of its quick candidates, and of its anchor
            evidence = np.log(1 - ANCHOR.prior) + quick
            for number, one in ((0, alone), (other, challenger)):
                of_anchor = np.log(ANCHOR.prior) + self._evidence([one.anchor.held_out])
                evidence[number] = np.logaddexp(evidence[number], of_anchor)
            score = evidence + log_prior
            if score[other] > score[0]:
                best, alone = other, challenger
        elif log_prior.size > 1:
            self._step("candidates", self.n_alone)
        return best, alone, *found[best]

    def _alone(self, view: View, candidates: list[Candidate]) -> Alone:
        """Return what the samples of a view say without constraints."""
        self._find_unsupervised(view, candidates)
        members = self._unsupervised_members(view)
        without = find_consensus(members).probability
        partition = from_probability(without)
        held_out = self._unsupervised_prediction(partition)
        anchor = Member("without constraints", ANCHOR, partition, 1.0, held_out)
        return Alone(members, without, anchor)

    def _quick_score(self, view: View, cheap: list[Member]) -> float:
        """Return how well quick candidates predict constraints."""
        places = view.nearest_row(self.rows, view.rows)
        held_out = [one.held_out for one in cheap]
        for one in QUICK:
            if one.name in view.partitions:
                on_rows = Partition(view.partitions[one.name].log_probability[places])
                held_out.append(self._unsupervised_prediction(on_rows))
        return self._evidence(held_out)

    def _evidence(self, held_out: list[Floats | None]) -> float:
        """Return the log-likelihood of the constraints, averaged over predictions."""
        rate = least_rate(self.model.n_constraints)
        evidence = log_likelihood(np.array(held_out), self.model.reliability, rate)
        return float(np.logaddexp.reduce(evidence)) - float(np.log(len(held_out)))

    # --- candidates

    def _step(self, what: str, n: int = 1) -> None:
        """Count finished work, and tell its share."""
        self.n_done += n
        if self.callback is not None:
            self.callback(min(self.n_done / self.n_steps, 1.0), what)

    def _find(self, trials: list[Trial], candidates: list[Candidate]) -> list[Candidate]:
        """Find candidates in each trial; return those that are used, given the first one."""
        used = list(filter(methodcaller("is_used", trials[0]), candidates))
        skipped = set(candidates).difference(used)
        n_skipped = len(skipped) - sum(map(attrgetter("needs_binary"), skipped))
        self._step("candidates", n_skipped * len(trials))
        self._find_in(trials[0], used)
        if self.n_jobs == 1:
            for trial in trials[1:]:
                self._find_in(trial, used)
        elif len(trials) > 1:
            with workers(self.n_jobs) as run:
                list(run([partial(self._find_in, trial, used) for trial in trials[1:]]))
        return used

    def _find_in(self, trial: Trial, candidates: list[Candidate]) -> None:
        """Find candidates, one after the other: some begin from those before."""
        for one in candidates:
            if one.name not in trial.found:  # it may be there from an earlier fit
                trial.found[one.name] = one.find(trial)
            self._step(one.name)

    def _find_unsupervised(self, view: View, candidates: list[Candidate]) -> None:
        """Find candidates of a view that see no constraint."""
        none = without_held(self.constraints, np.ones(self.model.n_constraints, bool))
        model = ConstraintModel.of(none, view.k)
        design = cache(partial(view.design, view.rows, model.vertices))
        self._find([Trial(view, none, model, view.rows, design, found=view.partitions)], candidates)

    def _unsupervised_members(self, view: View) -> list[Member]:
        """Return the unsupervised candidates of a view, with their prior and predictions."""
        if view.prior is None or len(view.prior.weights) < len(view.partitions):
            view.prior = data_prior(view)
        prior, members = view.prior.weights, []
        places = view.nearest_row(self.rows, view.rows)
        for name, partition in view.partitions.items():
            on_rows = Partition(partition.log_probability[places])
            held_out = self._unsupervised_prediction(on_rows)
            members.append(Member(name, UNSUPERVISED, on_rows, prior[name], held_out))
        return members

    def _unsupervised_prediction(self, partition: Partition) -> Floats | None:
        if not self.model.n_constraints:
            return None
        logits = partition.log_probability[np.searchsorted(self.rows, self.model.vertices)]
        if not self.folds:
            # Constraints that are wrong half of the time teach nothing about each other.
            return self.model.posterior(logits, 0.5).left_out
        said = [Prediction(logits, ERROR_RATE)] * len(self.folds)
        return held_out_probability(self.model, self.folds, said)

    def _trials(self, view: View) -> list[Trial]:
        """Return the trial with all constraints, then one for each fold."""
        rows, vertices = self.rows, self.model.vertices
        design = cache(partial(view.design, rows, vertices))
        warm = self.cache.warm.setdefault(view.name, WarmStarts())
        whole = Trial(view, self.constraints, self.model, rows, design, self.seed, warm)
        whole.ends = self.cache.ends.setdefault(view.name, {})
        free = np.setdiff1d(rows, vertices, assume_unique=True)
        if free.size > FOLD_ROWS:
            drawn = np.random.RandomState(self.seed).choice(free, FOLD_ROWS, replace=False)
            design = cache(partial(view.design, np.union1d(vertices, drawn), vertices))
        hidden = list(map(attrgetter("hidden"), self.folds))
        return [whole, *self.cache.trials(whole, design, hidden)]

    def _supervised(self, trials: list[Trial], candidates: list[Candidate]) -> list[Member]:
        """Find candidates with all constraints and without each fold."""
        used, members = self._find(trials, candidates), []
        sizes = Counter(map(attrgetter("group"), used))
        for one in used:
            partition, said = trials[0].found[one.name], []
            for trial in trials[1:]:
                found = trial.found[one.name]
                at = trial.view.nearest_row(self.model.vertices, trial.rows)
                said.append(Prediction(found.log_probability[at], found.error_rate))
            held_out = held_out_probability(self.model, self.folds, said)
            logits = tuple(map(attrgetter("log_probability"), said))
            share = 1 / sizes[one.group]
            member = Member(one.name, one.group, partition, share, held_out, said=logits)
            if one.group.few is not None and self.model.n_constraints < APART_BELOW:
                member = self._with_components(member, trials[0])
            members.append(member)
        return members

    def _with_components(self, member: Member, whole: Trial) -> Member:
        """Judge a candidate by all pairs if its clusters are separate components of the graph.

        If there are more components than clusters, only pairs can tell which of them belong
        together. Those that were used to decide it count.
        """
        view, partition = whole.view, member.partition
        W = view.W if whole.rows.size == view.n_samples else view.W[whole.rows][:, whole.rows]
        if ncut_value(W, partition.labels, view.k) >= APART * view.k or member.held_out is None:
            return member
        i, j = self.model.vertices[self.model.pairs.ends].T
        P = np.exp(log_softmax(partition.log_probability))[np.searchsorted(whole.rows, (i, j))]
        together = np.einsum("ic,ic->i", *P)
        of_pairs = np.where(self.model.pairs.together, together, 1 - together)
        of_labels = member.held_out[of_pairs.size :]
        return member._replace(held_out=np.concatenate((of_pairs, of_labels)), is_apart=True)

    def _calibrated(self, consensus: Consensus) -> tuple[float, float]:
        """Return how far the consensus is trusted beside constraints, and how many are wrong."""
        if not self.folds:
            return 1.0, ERROR_RATE
        used = np.flatnonzero(consensus.around)
        centre = int(np.searchsorted(used, consensus.centre))
        vertices = np.searchsorted(self.rows, self.model.vertices)
        said = []
        for number in range(len(self.folds)):
            parts = []
            for at in used:
                one = self.members[at]
                logits = one.said[number] if one.said else one.partition.log_probability[vertices]
                parts.append(np.exp(log_softmax(logits)))
            mean = matched_mean(parts, consensus.around[used], parts[centre])
            said.append(np.log(mean + EPS))
        return calibrated(self.model, self.folds, said)
