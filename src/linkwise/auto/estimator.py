"""Auto: the consensus of partitions of many kinds. The method to begin with."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linkwise._params import Interval, StrOptions, validates_parameters
from linkwise._progress import Progress
from linkwise._quiet import kept_filters
from linkwise._rows import RowIndex
from linkwise._threads import kept_limits, one_thread
from linkwise.auto.consensus import feasible_labels, in_order, likeliest_labels
from linkwise.auto.constraint_model import (
    add_other_labels,
    learnt_constraints,
    misplaced,
)
from linkwise.auto.ensemble import Answer, Ensemble
from linkwise.auto.learner import Classifier, blocks, everywhere
from linkwise.auto.n_clusters import Choice, choose_n_clusters, numbers_of_clusters
from linkwise.auto.report import AutoReport, committee_of, make_report, rank_suspects
from linkwise.auto.views import (
    GIVEN,
    MAX_ROWS,
    NAMES,
    View,
    Views,
    both_scalings,
    constraint_places,
    permuted,
)
from linkwise.constraints import Constraints
from linkwise.graph import Prepared
from linkwise.graph.prepared import drawn
from linkwise.methods._base import ConstrainedClusterer, _similarities
from linkwise.result import Result
from linkwise.search.objective import certain_groups, warn_interrupted
from linkwise.search.soft import check_label_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from linkwise._progress import Report
    from linkwise._types import Bools, Floats, Ints
    from linkwise.auto.views import Scaling
    from linkwise.constraints.conflict import Suspect
    from linkwise.graph import Affinity


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


def alike_if_equal(probability: Floats, X: Floats, free: Bools) -> Floats:
    """Give equal samples that no constraint names the mean of their probabilities.

    Jitter has told them apart.
    """
    first = RowIndex(X).find(X)
    total = np.zeros_like(probability)
    np.add.at(total, first[free], probability[free])
    mean = total / np.maximum(np.bincount(first[free], minlength=free.size), 1)[:, None]
    return np.where(free[:, None], mean[first], probability)


class Auto(ConstrainedClusterer):
    """Clusters by the consensus of partitions of many kinds: the default method.

    It makes clusterings of many kinds: by k-means, spectral clustering, cuts of the graph,
    spanning trees and mixtures of Gaussians. Without constraints, the data decide which of them to
    believe. With constraints, there are more clusterings, which learn from them. All are then
    judged by constraints that they have not seen. The answer combines those that predict these
    best. Any constraint may be found wrong. There is nothing to tune.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. ``"auto"`` takes the one that predicts the constraints best, with a
        preference for gaps of the spectrum, and at least as many as the cannot-links require. Give
        the number if you know it.
    hard : bool, default=False
        Whether pairs of belief 1 and labels hold without exception. If they cannot,
        :class:`~linkwise.exceptions.ConflictError` says why. By default any of them may be found
        wrong, and contradictory ones are accepted. Set it if you are certain of the pairs.
    scaling : {"auto", "given", "standardize"}, default="auto"
        Whether features are taken as they are, or each is divided by its standard deviation; the
        columns of 0 and 1 of a category, which have to stand side by side, by one number, so that
        together they count as one feature.
        ``"auto"`` decides by the variances and, with constraints and up to 20,000 samples, by what
        predicts constraints better; `report_` tells which one was taken. A graph is never scaled,
        and with an `affinity` of your own the features are taken as given. Take ``"given"`` if the
        units mean something, as in embeddings.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()``. With ``"precomputed"``, X is the graph,
        and candidates on graphs alone are used. Give an :class:`~linkwise.Affinity` to choose the
        graph yourself.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds. The answer does not depend on `n_jobs`. Give a number to get the same
        answer every time.
    n_jobs : int, default=None
        Threads for independent candidates; -1 for all. Set -1 on an idle machine.
    callback : callable, default=None
        Called as ``callback(share, what)`` with the share of the work that is done, from 0 to 1,
        and what was done last. Raising KeyboardInterrupt in it ends the fit, as Ctrl-C does, with
        the best answer so far. Before the first candidate, the first two are found; a second
        interrupt then leaves no answer. Use it to show progress in a program of your own.
    verbose : int or None, default=None
        None shows a progress bar on a terminal or in a notebook if the fit takes more than two
        seconds, 0 shows nothing, 1 prints a line for each step. Set 0 in scripts whose output is
        read by programs.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters.
    noise_ : float
        Estimated share of wrong constraints: the mean of the probabilities of `suspects_`, or
        more if predictions of held-out constraints say so.
    suspects_ : tuple of Suspect
        All constraints, the one most likely wrong first: `kind`, `samples`, `row`, `probability`.
    report_ : AutoReport
        What was chosen, and why; print it.
    result_ : AutoResult
        All of this, and the probabilities of the training samples.
    committee_ : Committee
        The candidate partitions: `names`, `labels` of the `samples`, `weights`, and `evidence`, the
        log-likelihood of held-out constraints.
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
    is_distributed = True
    max_clusters = 100
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

    needs_features = False  # they are used if there are any

    @property
    def _arguments(self) -> Collection[str]:
        return ("X", "W", "constraints")

    @validates_parameters(prefer_skip_nested_validation=False)
    def fit(  # noqa: D102  (that of the base class)
        self, X: Any, y: object = None, *, constraints: Constraints | None = None
    ) -> Auto:
        with kept_filters(), kept_limits():
            prepared = self._checked(X, y, constraints)
            whole, known = prepared, constraints
            if whole.is_distributed:
                samples, prepared, constraints = self._subset(whole, known)
            given = Constraints(prepared.n_samples) if constraints is None else constraints
            if self.hard and isinstance(self.n_clusters, str):
                given.check(given.n_samples)  # contradictions, whatever the number
            if not self.hard and not isinstance(self.n_clusters, str) and given.labels is not None:
                check_label_count(given, self.n_clusters)
            rng = check_random_state(self.random_state)
            views = Views.of(prepared)
            found = self._found(views, given, seed=int(rng.randint(2**31)))
            result = self._result(found, given, rng)
            self._keep_view(found.answer.view, views, result)
            self.committee_ = committee_of(found.answer, views.order)
            self._keep_result(result, constraints)
            if whole.is_distributed:
                self._classify_others(whole, samples, found.answer, order=views.order)
                every = Constraints(whole.n_samples) if known is None else known
                report = replace(self.result_.report, constraints=every)  # by their numbers
                self.result_ = replace(self.result_, report=report)
        return self

    fit.__doc__ = ConstrainedClusterer.fit.__doc__

    def _subset(
        self, whole: Any, constraints: Constraints | None
    ) -> tuple[Ints, Prepared, Constraints | None]:
        """Return some samples and all that have a constraint, and what is known of them.

        Those that candidates partition are the same as if the fit were to all samples.
        """
        given = Constraints(whole.n_samples) if constraints is None else constraints
        samples = whole.subset(np.flatnonzero(given.constrained))
        subset = Prepared(whole.rows(samples), whole.affinity)
        if samples.size < whole.n_samples:  # otherwise they are drawn in an order of their own
            subset.drawn = np.searchsorted(samples, drawn(whole.n_samples, MAX_ROWS))
        known = None if constraints is None else constraints.restrict(samples)
        return samples, self._checked(subset, None, known), known

    def _classify_others(
        self, whole: Any, samples: Ints, answer: Answer, *, order: Ints | None
    ) -> None:
        """Name the samples of a subset by their numbers among all, and classify all by chunks.

        Others get their clusters as samples of one machine do that were not partitioned.
        """
        assert self.result_.probability is not None
        rows = answer.rows if order is None else order[answer.rows]
        classifier = Classifier.of(answer.view, answer.rows, self.result_.probability[rows])
        self._renumber(samples)
        predicts = self if classifier is None else classifier
        self.labels_ = whole.predicted(predicts, samples, self.result_.labels)

    def _renumber(self, samples: Ints) -> None:
        """Let what names samples of a subset name those of all."""
        suspects = tuple(
            one._replace(samples=tuple(int(samples[i]) for i in one.samples))
            for one in self.result_.suspects
        )
        self.result_ = replace(self.result_, suspects=suspects)
        self.committee_ = self.committee_._replace(samples=samples[self.committee_.samples])

    def _result(
        self, found: Found, constraints: Constraints, rng: np.random.RandomState
    ) -> AutoResult:
        """Return labels, numbered, and the report about them."""
        answer, probability = found.answer, found.probability
        if self.hard:
            labels = feasible_labels(np.log(probability + 1e-12), constraints, rng)
        else:
            labels = likeliest_labels(probability)
        numbers = in_order(labels, constraints, probability.shape[1])
        labels, probability = np.argsort(numbers)[labels], probability[:, numbers]
        suspects = rank_suspects(constraints, found.left_out, answer)
        n_violated = int(constraints.table.is_violated(labels).sum())
        if constraints.labels is not None:
            n_violated += int(misplaced(constraints, labels)[1].sum())
        report = replace(
            make_report(answer, found.choice, suspects, labels=labels),
            n_violated=n_violated,
            scaling_is_chosen=self.scaling == "auto",
            hard=self.hard,
            constraints=constraints,
        )
        return AutoResult(
            labels=labels,
            objective=-report.score,
            n_iter=len(answer.members),
            converged=not answer.interrupted,
            probability=probability,
            noise=report.noise,
            suspects=suspects,
            report=report,
        )

    def _found(self, views: Views, constraints: Constraints, *, seed: int) -> Found:
        """Choose the number of clusters and find the answer, in an order of the samples' own."""
        order = np.arange(constraints.n_samples) if views.order is None else views.order
        inner = constraints if views.order is None else constraints.restrict(order)
        learnt = inner if inner.labels is None else learnt_constraints(inner, seed)
        # One thread of BLAS: its many calls are tiny, and with more the last bits would differ.
        # Threads that share prepared data take turns.
        shown = Progress("Auto", self.verbose, callback=self.callback)
        with views.lock, one_thread(), shown as progress:
            if isinstance(self.n_clusters, str):
                choice = self._choice(views, learnt, progress.part(last=CHOICE_SHARE))
            else:
                choice = Choice(int(self.n_clusters), (int(self.n_clusters),), np.ones(1))
            if self.hard:
                certain_groups(constraints, choice.best, np.random.RandomState(0))  # or why not
            rest = progress.part(CHOICE_SHARE if len(choice.numbers) > 1 else 0.0)
            scalings, n_jobs = self._scalings(views, learnt), effective_n_jobs(self.n_jobs)
            ensemble = Ensemble(
                views, scalings, learnt, k=choice.best, seed=seed, n_jobs=n_jobs, callback=rest
            )
            answer = ensemble.answer(hurry=choice.interrupted)
            found = answer.probability.copy()
            if answer.rows.size < order.size:
                found = everywhere(answer.view, answer.rows, found)
        scaling = answer.view.scaling
        if scaling is not None and scaling.shrinkage is not None:
            found = alike_if_equal(found, views.prepared.X, ~inner.constrained)
        if answer.interrupted:
            warn_interrupted()
        left_out = answer.posterior.left_out
        if learnt is not inner:
            rate = answer.error_rate
            left_out = add_other_labels(found, inner, learnt, said=answer.posterior, rate=rate)
        probability = np.empty_like(found)
        probability[order] = found
        return Found(answer, choice, probability, left_out[constraint_places(constraints, order)])

    def _scalings(self, views: Views, constraints: Constraints) -> list[Scaling | None]:
        """Return the scalings to compare, the most plausible one first; None for a graph."""
        prepared = views.prepared
        if prepared.is_graph:
            return [None]
        if self.scaling != "auto" or prepared.affinity is not None:
            name = NAMES.get(self.scaling, GIVEN)
            return [one for one in both_scalings(prepared.X) if one.name == name]
        given = len(constraints.table.pairs) or constraints.labels is not None
        two = given and prepared.n_samples <= SECOND_SCALING_UP_TO
        return list(views.scalings if two else views.scalings[:1])

    def _choice(self, views: Views, constraints: Constraints, callback: Report | None) -> Choice:
        """Choose the number of clusters."""
        numbers = numbers_of_clusters(constraints)
        if self.max_clusters is not None and numbers[0] > self.max_clusters:
            self._refuse_many(numbers[0])
        scalings = self._scalings(views, constraints)
        # Without jitter, too: a category may be meant
        is_jittered = scalings[0] is not None and scalings[0].shrinkage is not None
        n_used = 2 if is_jittered else 1
        return choose_n_clusters(
            views, scalings[:n_used], constraints, numbers=numbers, callback=callback
        )

    def _keep_view(self, view: View, views: Views, result: AutoResult) -> None:
        """Keep the graph of the view, and what `predict` needs."""
        probability: Any = result.probability
        given, order = views.given, views.order
        self._scaling = view.scaling
        self.affinity_ = view.prepared.affinity_
        self.affinity_matrix_, self._neighbors = view.W, probability
        if order is not None:
            is_given = given.has_graph and view.prepared is views.prepared
            self.affinity_matrix_ = given.W if is_given else permuted(view.W, np.argsort(order))
            if is_given:
                self.affinity_ = given.affinity_
            else:
                self._neighbors = probability[order]
        self._known = RowIndex(given.X) if view.has_features else None
        if view.has_features and not view.coordinates.any():
            message = "All samples are equal: only constraints can tell them apart."
            warnings.warn(message, UserWarning, stacklevel=4)

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

        The training samples as a whole get `labels_`. Otherwise a copy of several training samples,
        which constraints may have put into several clusters, goes where the first of them is.

        After a fit on Dask of more samples than `Auto` learns from, only these are training
        samples. The others may get another cluster than in `labels_` (about 1 in 100): `predict`
        follows neighbours, but a function of the features may have given `labels_`.

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
        labels = self.result_.labels  # of the training samples, which need not be all
        return np.where(copies >= 0, labels[copies], probability.argmax(axis=1))

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
            if self._known.is_all(X):  # of equal samples, each is itself
                copies = np.arange(X.shape[0])
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
