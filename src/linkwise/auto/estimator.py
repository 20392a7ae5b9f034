"""Auto: the consensus of partitions of many kinds. The method to begin with."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linkwise._params import Interval, StrOptions
from linkwise._progress import Progress
from linkwise._rows import RowIndex
from linkwise._threads import one_thread
from linkwise.auto.assign import feasible_labels, in_order, likeliest_labels
from linkwise.auto.canonical import constraint_places, in_given_order
from linkwise.auto.classifier import blocks, everywhere
from linkwise.auto.constraint_model import ConstraintModel
from linkwise.auto.ensemble import Answer, Ensemble
from linkwise.auto.many_labels import add_other_labels, learnt_constraints
from linkwise.auto.n_clusters import Choice, choose_n_clusters, numbers_of_clusters
from linkwise.auto.report import AutoReport, make_report, n_violated, rank_suspects
from linkwise.auto.scaling import GIVEN, NAMES, both_scalings
from linkwise.auto.view import View, Views
from linkwise.constraints import Constraints
from linkwise.methods._base import ConstrainedClusterer, _similarities
from linkwise.result import Result
from linkwise.search.objective import certain_groups, warn_interrupted, workers
from linkwise.search.soft import check_label_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from linkwise._types import Floats, Ints
    from linkwise.auto.scaling import Scaling
    from linkwise.constraints.conflict import Suspect
    from linkwise.graph import Affinity, Prepared
    from linkwise.linalg.warm import WarmStarts
    from linkwise.search.objective import Run


SECOND_SCALING_UP_TO = 20_000  # samples; beyond, a second graph takes too long
CHOICE_SHARE = 0.4  # of the work, if the number of clusters is chosen


@dataclass(frozen=True, eq=False, repr=False)
class AutoResult(Result):
    """The answer of :class:`Auto`.

    Parameters
    ----------
    probability : ndarray of shape (n_samples, n_clusters)
        Probability of each cluster, with what the constraints say.
    noise : float
        Expected share of wrong constraints.
    suspects : tuple of Suspect
        All constraints, the one most likely wrong first.
    report : AutoReport
        What was chosen, and why.
    """

    probability: Floats | None = None
    noise: float = 0.0
    suspects: tuple[Suspect, ...] = ()
    report: AutoReport | None = None


class Found(NamedTuple):
    """The answer, with the samples in the order of the data."""

    answer: Answer
    choice: Choice
    probability: Floats
    left_out: Floats  # probability of each constraint given the others


class Auto(ConstrainedClusterer):
    """Clusters by the consensus of partitions of many kinds: the default method.

    Without constraints, partitions of different kinds are made: by k-means, spectral clustering,
    coarse cuts, spanning trees, mixtures of Gaussians. The samples themselves tell which of them to
    believe: if Gaussians describe them, the likelihood decides, otherwise the cut of the neighbour
    graph. With constraints, others join that learn from them, and all are judged by constraints
    that were held out. The consensus of those that predict best is the answer. Any constraint may
    be found wrong. There is nothing to tune.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. ``"auto"`` takes the one that predicts the constraints best, with a
        preference for gaps of the spectrum, and at least as many as the cannot-links require.
    hard : bool, default=False
        Whether pairs of belief 1 and labels hold without exception. If they cannot,
        :class:`~linkwise.exceptions.ConflictError` says why. By default any of them may be found
        wrong, and contradictory ones are accepted.
    scaling : {"auto", "given", "standardize"}, default="auto"
        Whether features are taken as they are, or each is divided by its standard deviation.
        ``"auto"`` decides by the variances and, with constraints and up to 20,000 samples, by what
        predicts constraints better; `report_` tells which one was taken. A graph is never scaled,
        and with an `affinity` of your own the features are taken as given.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()``. With ``"precomputed"``, X is the graph,
        and candidates on graphs alone are used.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds. The answer does not depend on `n_jobs`.
    n_jobs : int, default=None
        Threads for independent candidates; -1 for all.
    callback : callable, default=None
        Called as ``callback(share, what)`` with the share of the work that is done, from 0 to 1,
        and what was done last. Raising KeyboardInterrupt in it ends the fit, as Ctrl-C does, with
        the best answer so far.
    verbose : int or None, default=None
        None shows a progress bar on a terminal or in a notebook if the fit takes more than two
        seconds, 0 shows nothing, 1 prints a line for each step.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters.
    noise_ : float
        Expected share of wrong constraints: the mean of the probabilities of `suspects_`.
    suspects_ : tuple of Suspect
        All constraints, the one most likely wrong first: `kind`, `samples`, `row`, `probability`.
    report_ : AutoReport
        What was chosen, and why; print it.
    result_ : AutoResult
        All of this, and the probabilities of the training samples.
    affinity_matrix_ : csr_array or ndarray of shape (n_samples, n_samples)
        The graph, in the scaling that was chosen.

    Notes
    -----
    A pair of belief `b` is taken for one that a reliable source gave with probability `b`, and a
    coin otherwise: before the samples are looked at, it is wrong with probability
    ``b * eta + (1 - b) / 2``. The rate `eta` of the source is estimated with the clusters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkwise import Auto, Constraints
    >>> X, y = load_iris(return_X_y=True)
    >>> known = Constraints.sample(y, 15, random_state=0)
    >>> model = Auto(3, random_state=0).fit(X, constraints=known)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    family = "ensemble"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
        "scaling": [StrOptions({"auto", "given", "standardize"})],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "verbose": ["verbose", None],
    }
    n_clusters: int | str = "auto"
    _: KW_ONLY
    hard: bool = False
    scaling: str = "auto"
    affinity: Affinity | str | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    callback: Callable[[float, str], None] | None = None
    verbose: int | None = None

    @property
    def _arguments(self) -> Collection[str]:
        return ("X", "W", "constraints")

    def _solve(
        self, prepared: Prepared, constraints: Constraints | None, warm: WarmStarts | None
    ) -> AutoResult:
        constraints = Constraints(prepared.n_samples) if constraints is None else constraints
        rng = check_random_state(self.random_state)
        views = Views.of(prepared)
        found = self._found(views, constraints, seed=int(rng.randint(2**31)))
        k, probability = found.choice.best, found.probability
        # What the others say about each constraint, and what all of it tells
        given = ConstraintModel.of(constraints, k).reliability
        rate = found.answer.consensus.error_rate
        suspects = rank_suspects(constraints, found.left_out, given, error_rate=rate)
        report = make_report(found.answer, found.choice, suspects)
        if self.hard:
            labels = feasible_labels(np.log(probability + 1e-12), constraints, rng)
        else:
            labels = likeliest_labels(probability)
        numbers = in_order(labels, constraints, k)
        labels, probability = np.argsort(numbers)[labels], probability[:, numbers]
        self._keep_view(found.answer.view, views, probability)
        return AutoResult(
            labels=labels,
            objective=-report.score,
            n_iter=len(found.answer.members),
            converged=not found.answer.interrupted,
            probability=probability,
            noise=report.noise,
            suspects=suspects,
            report=replace(
                report.with_labels(labels, n_violated(constraints, labels)),
                scaling_is_chosen=self.scaling == "auto",
            ),
        )

    def _found(self, views: Views, constraints: Constraints, *, seed: int) -> Found:
        """Choose the number of clusters and find the answer, in an order of the samples' own."""
        n = constraints.n_samples
        order = np.arange(n) if views.order is None else views.order
        inner = constraints if views.order is None else constraints.restrict(order)
        learnt = learnt_constraints(inner, seed)
        # One thread of BLAS: its many calls are tiny, and with more the last bits would differ.
        # Threads that share prepared data take turns.
        shown = Progress("Auto", self.verbose, callback=self.callback)
        n_jobs = effective_n_jobs(self.n_jobs)
        with views.lock, one_thread(), workers(n_jobs) as run, shown as progress:
            choice = self._choice(views, learnt, progress)
            if self.hard:
                certain_groups(constraints, choice.best, np.random.RandomState(0))  # or why not
            rest = progress.part(CHOICE_SHARE if len(choice.numbers) > 1 else 0.0)
            answer = self._answer(views, learnt, choice, seed=seed, run=run, callback=rest)
            found = everywhere(answer)
        if answer.interrupted:
            warn_interrupted()
        left_out = add_other_labels(found, inner, learnt, answer)
        probability = np.empty_like(found)
        probability[order] = found
        places = constraint_places(constraints, inner, order)
        return Found(answer, choice, probability, left_out[places])

    def _answer(
        self,
        views: Views,
        constraints: Constraints,
        choice: Choice,
        *,
        seed: int,
        run: Run,
        callback: Callable[[float, str], None],
    ) -> Answer:
        """Find candidates, and their consensus."""
        model = ConstraintModel.of(constraints, choice.best)
        scalings = self._scalings(views, constraints)
        makers = [partial(views.view, scaling, choice.best) for scaling in scalings]
        cache = views.folds[choice.best]
        ensemble = Ensemble(
            makers, model, constraints, cache=cache, seed=seed, run=run, callback=callback
        )
        return ensemble.answer(hurry=choice.interrupted)

    def _scalings(self, views: Views, constraints: Constraints) -> list[Scaling | None]:
        """Return the scalings to compare, the most plausible one first; None for a graph."""
        prepared = views.prepared
        if prepared.is_graph:
            return [None]
        if self.scaling != "auto" or prepared.affinity is not None:
            name = NAMES.get(self.scaling, GIVEN)
            return [one for one in both_scalings(prepared.X) if one.name == name]
        one_is_enough = constraints.is_empty or prepared.n_samples > SECOND_SCALING_UP_TO
        return list(views.scalings[: 1 if one_is_enough else None])

    def _choice(self, views: Views, constraints: Constraints, progress: Progress) -> Choice:
        """Return the number of clusters, given or chosen."""
        if not isinstance(self.n_clusters, str):
            return Choice((int(self.n_clusters),), np.ones(1))
        numbers = numbers_of_clusters(constraints)
        scaling = self._scalings(views, constraints)[0]
        bases = views.bases(scaling, numbers[-1])[1]
        part = progress.part(last=CHOICE_SHARE)
        return choose_n_clusters(bases, constraints, numbers, callback=part)

    def _keep_view(self, view: View, views: Views, probability: Floats) -> None:
        """Keep the graph of the view, and what `predict` needs."""
        given, order = views.given, views.order
        self._scaling = view.scaling
        self.affinity_ = view.prepared.affinity_
        self.affinity_matrix_, self._neighbors = view.W, probability
        if order is not None:
            is_given = given.has_graph and view.prepared is views.prepared
            self.affinity_matrix_ = given.W if is_given else in_given_order(view.W, order)
            if is_given:
                self.affinity_ = given.affinity_
            else:
                self._neighbors = probability[order]
        self._known = RowIndex(given.X) if view.has_features else None
        if view.has_features and not view.coordinates.any():
            message = "All samples are equal: only constraints can tell them apart."
            warnings.warn(message, UserWarning, stacklevel=5)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each cluster for new samples.

        It is the mean over their neighbours among the training samples, weighted by affinity. A
        copy of a training sample gets that one's probabilities, which constraints may have
        decided.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New samples; with ``affinity="precomputed"`` their affinities to the training samples,
            of shape (n_new, n_samples).

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
        """
        return self._predicted(X)[0]

    def predict(self, X: Any) -> Ints:
        """Assign new samples to their likeliest clusters; copies of training samples to theirs.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New samples; with ``affinity="precomputed"`` their affinities to the training samples,
            of shape (n_new, n_samples).

        Returns
        -------
        ndarray of shape (n_new,)
        """
        probability, copies = self._predicted(X)
        return np.where(copies >= 0, self.labels_[copies], probability.argmax(axis=1))

    def _predicted(self, X: Any) -> tuple[Floats, Ints]:
        """Return probabilities, and the training sample that each row is a copy of, or -1."""
        check_is_fitted(self)
        X = self._new_samples(X, accept_sparse="csr")
        known = self.result_.probability
        assert known is not None
        copies = np.full(X.shape[0], -1)
        if self._known is None:
            X = _similarities(X)
        else:
            X = self._known.in_form(X)
            copies = self._known.find(X)
            assert self._scaling is not None
            X = self._scaling.transform(X)
        probability = np.empty((X.shape[0], known.shape[1]))
        probability[copies >= 0] = known[copies[copies >= 0]]
        with one_thread():
            for block in blocks(X.shape[0], np.flatnonzero(copies >= 0)):
                similar = X[block] if self.affinity_ is None else self.affinity_.extend(X[block])
                votes = np.asarray(similar @ self._neighbors)
                probability[block] = votes / votes.sum(axis=1, keepdims=True)
        return probability, copies

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        return self._report.n_clusters

    @property
    def noise_(self) -> float:
        """Expected share of wrong constraints."""
        check_is_fitted(self, "result_")
        return self.result_.noise

    @property
    def suspects_(self) -> tuple[Suspect, ...]:
        """All constraints, the one most likely wrong first."""
        check_is_fitted(self, "result_")
        return self.result_.suspects

    @property
    def report_(self) -> AutoReport:
        """What was chosen, and why."""
        return self._report

    @property
    def _report(self) -> AutoReport:
        check_is_fitted(self, "result_")
        assert self.result_.report is not None
        return self.result_.report

    @property
    def accepts_contradictions(self) -> bool:
        """Whether constraints may be found wrong: then contradictory ones are accepted."""
        return not self.hard

    @property
    def needs_features(self) -> bool:
        """False: features are used if there are any."""
        return False

    def _check_feasible(self, constraints: Constraints) -> None:
        if self.hard and isinstance(self.n_clusters, str):
            constraints.check(constraints.n_samples)  # contradictions, whatever the number
        if self.hard or isinstance(self.n_clusters, str):
            return  # `fit` looks for a partition itself, and explains if there is none
        check_label_count(constraints, self.n_clusters)
