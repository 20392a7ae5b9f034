"""Evidence: how candidates predict constraints that were held out from them.

A candidate that learns from constraints predicts them too well, even each one given the others:
what it has learnt from a constraint comes back through all samples. Therefore every candidate with
constraints is found again without some of them, the *held-out* ones, and is judged by these. A
*trial* is one set of constraints with the partitions found with it: all constraints, or those that
are not held out in a *fold*.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax

from linkwise.auto.consensus import EPS, ERROR_RATE, Partition, matched_mean, softened
from linkwise.auto.constraint_model import (
    RATES,
    ConstraintModel,
    cluster_of_label,
    labelled_samples,
    likelihood,
    log_likelihood,
)
from linkwise.auto.learner import fit_learner, log_softmax
from linkwise.constraints.table import pair_keys
from linkwise.linalg.warm import WarmStarts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Bools, Floats, Ints
    from linkwise.auto.bases import Basis
    from linkwise.auto.learner import Design
    from linkwise.auto.views import View
    from linkwise.constraints import Constraints


# Constraints up to which so many folds are made: one each at first.
LEAVE_ONE_OUT = 8
FOLDS = ((40, 6), (400, 5))
MANY_FOLDS = 3
NEW_SHARE, NEW_LEAST = 0.1, 2  # new constraints that join folds of an earlier fit, at most
STALE_SHARE = 0.1  # constraints that a fold may lack before it is found again

# Factors of log-probabilities: candidates that agree may be surer together than each of them alone,
# and all of them may be too sure.
CONFIDENCES = (0.375, 0.75, 1.5, 3.0)

MAX_ROUNDS = 15  # of a learner
TOL = 2e-3  # mean change of a probability
START_TRUST = 0.9  # in the labels that a learner begins with
SAME_START = 0.99  # share of equal labels from which on a learner continues from the last fit
VOTE = 10.0  # log-likelihood that makes a learner's vote e times as heavy

Key = tuple[int, int, int, float]  # samples, kind or label, belief


# --- folds


class Fold(NamedTuple):
    """Constraints that are held out, and the others."""

    held: Bools  # pairs, then labels
    hidden: Bools  # these, and what would give them away: candidates do not see it
    model: ConstraintModel  # the others, as far as they matter


def make_folds(
    model: ConstraintModel, rng: np.random.RandomState, n_folds: int | None = None
) -> list[Fold]:
    """Divide the constraints into folds; none for a single one."""
    number = fold_numbers(model, rng, n_folds or n_folds_for(model.n_constraints))
    return folds_of(model, number)


def fold_numbers(model: ConstraintModel, rng: np.random.RandomState, n_folds: int) -> Ints:
    """Return the fold of each constraint.

    What is said for and against one pair is one question, and goes into one fold. If pairs are
    dense, most of them follow from others; then all pairs with the same first sample do.
    """
    keys = pair_keys(np.sort(model.pairs.ends.astype(np.intp), axis=1), model.vertices.size)
    if model.is_dense:
        keys = model.pairs.ends[:, 0].astype(np.intp)
    question = np.unique(keys, return_inverse=True)[1].ravel()
    n_pairs = int(question.max(initial=-1)) + 1
    question = np.concatenate((question, n_pairs + np.arange(model.labelled.size)))
    n = n_pairs + model.labelled.size
    number: Ints = (rng.permutation(n) % max(min(n_folds, n), 1))[question]
    return number


def folds_of(model: ConstraintModel, number: Ints) -> list[Fold]:
    """Return the folds, given the number of each constraint's."""
    n_folds = int(number.max(initial=-1)) + 1
    if n_folds < 2:
        return []
    # The connected component of each vertex, joined by pairs and by labels
    n, n_pairs = model.vertices.size, len(model.pairs.ends)
    joined = coo_array((np.ones(n_pairs), tuple(model.pairs.ends.T)), shape=(n, n))
    component: Ints = connected_components(joined, directed=False)[1]
    if model.labelled.size:  # all labels are learnt together
        labelled = np.unique(component[model.labelled])
        component = np.where(np.isin(component, labelled), labelled[0], component)
    folds = []
    for at in range(n_folds):
        held = number == at
        hidden = held.copy()
        if model.is_dense:
            hidden[:n_pairs] = np.isin(model.pairs.ends, model.pairs.ends[held[:n_pairs], 0]).any(1)
        # Pairs that no held-out constraint is connected to cannot change its prediction.
        reached = np.zeros(component.max(initial=0) + 1, bool)
        reached[component[model.pairs.ends[held[:n_pairs], 0]]] = True
        reached[component[model.labelled[held[n_pairs:]]]] = True
        kept = ~hidden
        kept[:n_pairs] &= reached[component[model.pairs.ends[:, 0]]]
        folds.append(Fold(held, hidden, model.subset(kept)))
    return folds


def n_folds_for(n_constraints: int) -> int:
    """Return the number of folds."""
    if n_constraints <= LEAVE_ONE_OUT:
        return n_constraints
    for most, folds in FOLDS:
        if n_constraints <= most:
            return folds
    return MANY_FOLDS


class Prediction(NamedTuple):
    """What a candidate says about the vertices, found without the held-out constraints."""

    log_probability: Floats  # (n_vertices, k)
    error_rate: float


def held_out_probability(
    model: ConstraintModel, folds: Sequence[Fold], predictions: Sequence[Prediction]
) -> Floats:
    """Return the probability of each constraint by a candidate that was found without it."""
    probability = np.full(model.n_constraints, np.nan)
    n_pairs = len(model.pairs.ends)
    for fold, one in zip(folds, predictions, strict=True):
        Q = fold.model.posterior(one.log_probability, one.error_rate).probability
        pair, label = np.flatnonzero(fold.held[:n_pairs]), fold.held[n_pairs:]
        i, j = model.pairs.ends[pair].T
        together = np.einsum("ic,ic->i", Q[i], Q[j])
        probability[pair] = np.where(model.pairs.together[pair], together, 1 - together)
        if label.any():
            probability[n_pairs:][label] = _label_probability(
                fold.model, Q, samples=model.labelled[label], label=model.label[label]
            )
    return np.clip(probability, 0.0, 1.0)


def calibrated(
    model: ConstraintModel, folds: Sequence[Fold], said: Sequence[Floats]
) -> tuple[float, float]:
    """Return the factor that log-probabilities need, and the rate of wrong constraints.

    `said` are log-probabilities of the vertices, found without each fold. Where a sample has more
    constraints than one, these tell whether the samples are misjudged (then its other constraints
    predict one that is held out better than they do) or the constraint is wrong. Both numbers are
    means of their logarithms, weighted by the likelihood of the held-out constraints. They are a
    little too hopeful: the weights by which candidates were averaged rest on all constraints.
    """
    grid = list(product(CONFIDENCES, RATES))
    evidence, logits = np.empty(len(grid)), np.array(said)
    for at, (confidence, rate) in enumerate(grid):
        predictions = list(map(Prediction, confidence * logits, repeat(rate)))
        predicted = held_out_probability(model, folds, predictions)
        evidence[at] = log_likelihood(predicted, model.reliability, rate)
    confidence, rate = np.exp(softmax(evidence) @ np.log(grid))
    return float(confidence), float(rate)


def _label_probability(given: ConstraintModel, Q: Floats, *, samples: Ints, label: Ints) -> Floats:
    """Return the probability of held-out labels.

    Of a label that no other sample has, it is predicted that the sample is in one of the clusters
    that have no label yet.
    """
    cluster = cluster_of_label(Q[given.labelled], given.label)
    known = np.unique(given.label)
    own = Q[samples, cluster[label]]
    another = (1 - Q[samples][:, cluster[known]].sum(axis=1)) / max(given.k - known.size, 1)
    probability: Floats = np.where(np.isin(label, known), own, another)
    return probability


# --- trials


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
    design : callable
        Returns what learners learn from, a Design, which is made once: all rows, or some.
    seed : int
        Of random numbers.
    warm : WarmStarts
        Where solvers start.
    found : dict
        Partitions by the names of their candidates.
    ends : dict
        By the keys of learners, the labels where each began and the soft partition where it ended,
        in the last fit with nearly the same constraints and then in this one.
    """

    view: View
    constraints: Constraints
    model: ConstraintModel
    rows: Ints
    design: Callable[[], Design]
    seed: int = 0
    warm: WarmStarts = field(default_factory=WarmStarts)
    found: dict[str, Partition] = field(default_factory=dict)
    ends: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)
    described: dict[str, Basis] = field(default_factory=dict)  # bases at all rows, by their names

    @cached_property
    def pairs(self) -> tuple[Ints, Floats]:
        """Pairs of samples, also those that labels imply, and their signed weights."""
        return self.constraints.signed_pairs()

    def labels_of(self, name: str) -> Ints:
        """Return the labels of a partition found before, by its name, on the rows."""
        if name in self.found:
            return self.found[name].labels
        return self.view.partitions[name].labels[self.view.nearest_row(self.rows, self.view.rows)]

    def without(self, held: Bools, design: Callable[[], Design]) -> Trial:
        """Return a trial with the constraints that are not held out."""
        return Trial(
            self.view,
            without_held(self.constraints, held),
            self.model.subset(~held),
            self.rows,
            design,
            self.seed,
            # The same starts: this trial, with all constraints, is run first, and no column that
            # it leaves there is computed again.
            self.warm,
            described=self.described,
        )

    def _described(self, names: tuple[str, ...]) -> dict[str, Basis]:
        """Return bases at all rows, which the trials of a fit share."""
        missing = [name for name in names if name not in self.described]
        if missing:
            found = self.view.bases.at(self.rows, missing)
            self.described.update((name, found[name]) for name in missing)
        return self.described

    def learn(
        self, key: str, bases: tuple[str, ...], start: Any, *, rate: float = ERROR_RATE
    ) -> Partition:
        """Alternate between a learner and what the constraints make of its probabilities.

        It begins with labels of the rows, or with a soft partition of the samples to learn from.
        """
        design = self.design()
        at = np.searchsorted(self.rows, design.rows)
        vertices = np.searchsorted(design.rows, self.model.vertices)
        first: Floats = softened(start[at], self.model.k, START_TRUST) if start.ndim == 1 else start
        labels = first.argmax(axis=1)
        # Where the learner ended in the last fit, if it begins at the same place
        began, Q = self.ends.get(key, (labels[:0], first))
        if began.size != labels.size or (began == labels).mean() < SAME_START:
            Q = first
        messages = np.zeros((len(self.model.pairs.ends), 2, self.model.k))
        for _ in range(MAX_ROUNDS):
            left_out, learner = fit_learner(design, bases, Q)
            found = self.model.posterior(left_out[vertices], rate, messages)
            before, Q = Q, np.exp(log_softmax(left_out))
            Q[vertices] = found.probability
            if float(np.abs(Q - before).mean()) < TOL:
                break
        self.ends[key] = labels, Q
        score, rate = likelihood(found.left_out, self.model.reliability)
        if self.rows.size > design.rows.size:
            everywhere = learner.log_probability(self._described(learner.names))
            everywhere[at] = left_out
            left_out = everywhere
        return Partition(left_out, rate, Q, score)

    @cached_property
    def first_learners(self) -> Agreement:
        """What the learners found so far say together; read after the first ones."""
        rows = self.design().rows
        at = np.searchsorted(self.rows, rows)
        vertices = np.searchsorted(rows, self.model.vertices)
        parts, scores, rates, posteriors = [], [], [], []
        for one in self.found.values():
            if one.posterior is not None:
                parts.append(np.exp(log_softmax(one.log_probability[at])))
                scores.append(one.score)
                rates.append(one.error_rate)
                posteriors.append(one.posterior)
        weights = np.exp((np.array(scores) - max(scores)) / VOTE)
        weights /= weights.sum()
        leader = int(weights.argmax())
        rate = float(np.exp(weights @ np.log(rates)))
        logits = np.log(matched_mean(parts, weights, parts[leader]) + EPS)
        P = np.exp(log_softmax(logits))
        P[vertices] = self.model.posterior(logits[vertices], rate).probability
        return Agreement(P, posteriors[leader], rate)


class Agreement(NamedTuple):
    """What learners say together, on the samples that they learn from."""

    consensus: Floats  # the average, with what the constraints say
    leader: Floats  # the same of the learner that predicts the constraints best
    error_rate: float


def without_held(constraints: Constraints, held: Bools) -> Constraints:
    """Return the constraints that are not held out; `held` is of the pairs, then of the labels."""
    pairs, labels = np.split(held, [len(constraints.table.pairs)])
    given = constraints.subset(~pairs)
    if constraints.labels is None:
        return given
    known = constraints.labels.copy()
    known[labelled_samples(constraints)[0][labels]] = -1
    return replace(given, labels=known)


# --- folds of an earlier fit


@dataclass(eq=False)
class FoldCache:
    """The folds of the last fit, for one number of clusters.

    With one constraint more, no candidate is found again without some. A new constraint joins a
    fold. What was found without the fold has not seen it, so it is held out there as well. What was
    found without another fold has not seen it either: its predictions are made with a little less
    than all other constraints, and are still honest. When a fold lacks a tenth of the constraints,
    it is found again, one such fold in a fit; at once when it lacks a fifth.
    """

    # By the names of scalings: warm starts of solvers that use all constraints, and `Trial.ends`
    warm: dict[str, WarmStarts] = field(default_factory=dict)
    ends: dict[str, dict[str, tuple[Ints, Floats]]] = field(default_factory=dict)
    _trials: dict[str, list[Trial]] = field(default_factory=dict)
    _fold: dict[Key, int] = field(default_factory=dict)  # of each constraint
    _mode: tuple[int, bool] | None = None  # the seed, and whether pairs are dense

    def __reduce__(self) -> tuple[type[FoldCache], tuple[()]]:
        """Leave the folds out of a pickled model: they only make a later fit quicker."""
        return FoldCache, ()

    def begin(self, model: ConstraintModel, seed: int) -> Ints:
        """Return the fold of each constraint: that of the last fit, if they are nearly the same."""
        keys = constraint_keys(model)
        dense = model.is_dense
        if (seed, dense) != self._mode or not self._can_continue(keys):
            rng = np.random.RandomState(seed)
            number = fold_numbers(model, rng, n_folds_for(model.n_constraints))
            self._trials, self.ends = {}, {}
        else:
            if len(keys) == len(self._fold):  # the same fit again gives the same answer
                self.ends = {}
            number = self._continued(keys, n_shared=1 if dense else 2)
        self._mode, self._fold = (seed, dense), dict(zip(keys, number.tolist(), strict=True))
        return number

    def _can_continue(self, keys: Sequence[Key]) -> bool:
        n_old = len(self._fold)
        n_new = len(keys) - n_old
        most = max(NEW_LEAST, NEW_SHARE * n_old)
        return n_old > LEAVE_ONE_OUT and 0 <= n_new <= most and self._fold.keys() <= set(keys)

    def _continued(self, keys: Sequence[Key], *, n_shared: int) -> Ints:
        """Put new constraints into the smallest folds, or with those of the same samples."""
        number = np.array([self._fold.get(key, -1) for key in keys])
        sizes = np.bincount(number[number >= 0])
        of_samples = {key[:n_shared]: fold for key, fold in self._fold.items()}
        for at in np.flatnonzero(number < 0).tolist():
            samples = keys[at][:n_shared]
            number[at] = of_samples.get(samples, int(sizes.argmin()))
            of_samples[samples] = number[at]
            sizes[number[at]] += 1
        return number

    def trials(
        self, whole: Trial, design: Callable[[], Design], hidden: Sequence[Bools]
    ) -> list[Trial]:
        """Return the trial of each fold; those of the last fit, but for the one that lacks most."""
        last = self._trials.get(whole.view.name)
        is_dense = self._mode is not None and self._mode[1]
        lack, limit = np.zeros(len(hidden)), np.zeros(len(hidden))
        if last is not None:
            for at, (one, trial) in enumerate(zip(hidden, last, strict=True)):
                n_given = int((~one).sum())
                lack[at] = n_given - trial.model.n_constraints
                limit[at] = max(NEW_LEAST, STALE_SHARE * n_given)
        found = []
        for at, one in enumerate(hidden):
            is_stale = lack[at] > limit[at] and (
                at == int(lack.argmax()) or lack[at] > 2 * limit[at]
            )
            if last is None or is_stale or (is_dense and _has_seen(last[at], whole, one)):
                found.append(whole.without(one, design))
            else:
                found.append(last[at])
        self._trials[whole.view.name] = found
        return found

    def forget(self) -> None:
        """Give memory back after a fit: the next one finds little again in the same trials."""
        for trial in chain.from_iterable(self._trials.values()):
            trial.described.clear()


def _has_seen(trial: Trial, whole: Trial, hidden: Bools) -> bool:
    """Whether a trial was given a constraint that is hidden from its fold now."""
    keys = constraint_keys(whole.model)
    return not set(constraint_keys(trial.model)).isdisjoint(
        keys[at] for at in np.flatnonzero(hidden).tolist()
    )


def constraint_keys(model: ConstraintModel) -> list[Key]:
    """Return what each constraint says: samples, kind or label, belief."""
    i, j = np.sort(model.vertices[model.pairs.ends], axis=1).T.tolist()
    together = model.pairs.together.astype(int).tolist()
    pairs = zip(i, j, together, model.pairs.belief.tolist(), strict=True)
    labelled, n = model.vertices[model.labelled].tolist(), model.labelled.size
    labels = zip(labelled, [-1] * n, model.label.tolist(), [1.0] * n, strict=True)
    return [*pairs, *labels]
