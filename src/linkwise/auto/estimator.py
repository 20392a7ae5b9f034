"""Auto: experts that learn from pairs, and their consensus. The method to begin with."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from linkwise._params import Interval, StrOptions
from linkwise._rows import RowIndex
from linkwise.auto.assign import feasible_labels, likeliest_labels
from linkwise.auto.bases import Bases, build_bases
from linkwise.auto.clusters import Choice
from linkwise.auto.pool import Pool, say
from linkwise.auto.report import (
    AutoReport,
    Voice,
    make_report,
    n_violated,
    rank_suspects,
)
from linkwise.auto.survey import (
    Found,
    Said,
    Survey,
    choose_clusters,
    heard_constraints,
    most_clusters,
)
from linkwise.auto.task import cluster_of_label, labelled_samples
from linkwise.constraints import Constraints
from linkwise.constraints.conflict import Suspect
from linkwise.methods._base import ConstrainedClusterer, _similarities
from linkwise.result import Result
from linkwise.search.objective import certain_groups, warn_interrupted, workers
from linkwise.search.soft import check_label_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Floats, Graph, Ints
    from linkwise.auto.expert import Expert
    from linkwise.graph import Affinity, Prepared
    from linkwise.linalg.warm import WarmStarts


__all__ = ["Auto", "AutoReport", "AutoResult", "Suspect", "Voice", "auto"]

BLOCK = 20_000  # samples described at a time
HEARD = 1e-3  # weight below which an expert is not heard


@dataclass(frozen=True, eq=False, repr=False)
class AutoResult(Result):
    """The answer of :func:`auto`.

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
    panel : Panel
        The experts that were heard; they have an opinion on new samples as well.
    """

    probability: Floats | None = None
    noise: float = 0.0
    suspects: tuple[Suspect, ...] = ()
    report: AutoReport | None = None
    panel: Panel | None = None


class Panel(NamedTuple):
    """Experts with their weights and the names they give to clusters."""

    experts: tuple[Expert, ...]
    weights: Floats
    order: tuple[Ints, ...]

    def probability(self, features: dict[str, Floats]) -> Floats:
        """Return probabilities of clusters for rows of bases."""
        voices = zip(self.experts, self.weights, self.order, strict=True)
        P = np.sum([w * np.exp(e.opinion(features))[:, at] for e, w, at in voices], axis=0)
        probability: Floats = P / P.sum(axis=1, keepdims=True)  # no opinion is certain: above 1
        return probability

    def renamed(self, order: Ints) -> Panel:
        """Return the panel with its clusters in another order."""
        return self._replace(order=tuple(at[order] for at in self.order))


def auto(
    X: Floats | None,
    constraints: Constraints,
    n_clusters: int | str = "auto",
    *,
    W: Graph,
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AutoResult:
    """Cluster by the consensus of experts that learn from constraints; see :class:`Auto`.

    `X` are features, or None if there is only the graph `W`.
    """
    most = most_clusters(constraints, n_clusters, W.shape[0])
    bases = build_bases(X, W, most, fine=True)
    options = Options(n_clusters, hard, random_state, n_jobs, verbose)
    return consult_experts(bases, constraints, options)


class Options(NamedTuple):
    """Parameters; see :class:`Auto`."""

    n_clusters: int | str
    hard: bool
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int


def consult_experts(bases: Bases, constraints: Constraints, options: Options) -> AutoResult:
    """Cluster samples that are described already."""
    rng = check_random_state(options.random_state)
    report = _print_progress if options.verbose else None
    # One thread of BLAS: its many calls are tiny, and with more the last bits would differ.
    with threadpool_limits(1), workers(effective_n_jobs(options.n_jobs)) as run:
        seed = int(rng.randint(2**31))
        survey_of = Survey(bases, heard_constraints(constraints, seed), seed, run)
        if isinstance(options.n_clusters, str):
            choice = choose_clusters(survey_of)
            say(report, f"{choice.best} clusters")
        else:
            choice = Choice((int(options.n_clusters),), np.ones(1))
        k = choice.best
        if options.hard:
            certain_groups(constraints, k, np.random.RandomState(0))  # or the reason why not
        found = survey_of(k, report)
        probability, said = _opinion(bases.for_clusters(k), constraints, found)
    if found.pool.interrupted:
        warn_interrupted()
    suspects = rank_suspects(constraints, said, found.pool.consensus.noise)
    told = make_report(found, choice, suspects)
    if options.hard:
        labels = feasible_labels(np.log(probability + 1e-12), constraints, rng)
    else:
        labels = likeliest_labels(probability)
    order = _in_order(labels, constraints, k)
    labels = np.argsort(order)[labels]
    return AutoResult(
        labels=labels,
        objective=-told.score,
        n_iter=sum(c.n_rounds for c in found.pool.candidates),
        converged=not found.pool.interrupted,
        probability=probability[:, order],
        noise=told.noise,
        suspects=suspects,
        report=replace(told, n_violated=n_violated(constraints, labels)),
        panel=_panel(found.pool).renamed(order),
    )


def _opinion(bases: Bases, constraints: Constraints, found: Found) -> tuple[Floats, Said]:
    """Return the probabilities of all samples, and how they predict all that is said."""
    panel = _panel(found.pool)
    probability = np.empty((bases.n_samples, found.k))
    for block in _blocks(bases.n_samples, found.rows):
        probability[block] = panel.probability(bases.features(block))
    probability[found.rows] = found.pool.settled.probability
    said = Said(found.pool.settled.said, found.task.belief)
    if found.heard is constraints:
        return probability, said
    return probability, _hear_rest(probability, constraints, found)


def _hear_rest(probability: Floats, constraints: Constraints, found: Found) -> Said:
    """Add the labels that the experts did not learn from, in place."""
    labelled, label = labelled_samples(constraints)
    assert found.heard.labels is not None
    known = found.heard.labels[labelled] >= 0
    cluster = cluster_of_label(probability[labelled[known]], label[known])[label]
    noise = found.pool.consensus.noise
    n_pairs = constraints.n_pairs
    said = np.empty(n_pairs + labelled.size)
    said[:n_pairs] = found.pool.settled.said[:n_pairs]
    said[n_pairs:][known] = found.pool.settled.said[n_pairs:]
    rest, of_rest = labelled[~known], cluster[~known]
    said[n_pairs:][~known] = probability[rest, of_rest]
    probability[rest, of_rest] *= (1 - noise) * max(found.k - 1, 1) / max(noise, 1e-6)
    probability[rest] /= probability[rest].sum(axis=1, keepdims=True)
    beliefs = constraints.must_link_belief, constraints.cannot_link_belief
    return Said(said, np.concatenate((*beliefs, np.ones(labelled.size))))


def _in_order(labels: Ints, constraints: Constraints, k: int) -> Ints:
    """Return the clusters as they are numbered: those of labels as these, then by appearance.

    Labels that are no numbers of clusters, being too large, are numbered in their order.
    """
    order = _by_appearance(labels, k)
    labelled, label = labelled_samples(constraints)
    if not labelled.size or constraints.labels is None:
        return order
    values = np.unique(constraints.labels[labelled])
    named = cluster_of_label(np.eye(k)[labels[labelled]], label)[: values.size]
    numbered = np.empty(k, np.intp)
    own = values if values[-1] < k else np.arange(values.size)
    numbered[own] = named
    numbered[np.setdiff1d(np.arange(k), own)] = order[~np.isin(order, named)]
    return numbered


def _by_appearance(labels: Ints, k: int) -> Ints:
    """Return the clusters in order of their first sample, then the empty ones."""
    seen, first = np.unique(labels, return_index=True)
    order = seen[np.argsort(first)]
    return np.concatenate((order, np.setdiff1d(np.arange(k), order))).astype(np.intp)


def _panel(pool: Pool) -> Panel:
    """Return the experts that weigh enough to be heard."""
    weights = pool.consensus.weights
    heard = np.flatnonzero(weights >= min(HEARD, weights.max()))
    return Panel(
        tuple(pool.candidates[at].expert for at in heard),
        weights[heard] / weights[heard].sum(),
        tuple(pool.consensus.order[at] for at in heard),
    )


def _blocks(n: int, known: Ints) -> Iterator[Ints]:
    """Yield the samples that experts have not learnt from, in blocks."""
    rest = np.setdiff1d(np.arange(n), known, assume_unique=True)
    for start in range(0, rest.size, BLOCK):
        yield rest[start : start + BLOCK]


def _print_progress(line: str) -> None:
    print(f"[Auto] {line}")


class Auto(ConstrainedClusterer):
    """Clusters by the consensus of experts that learn from constraints: the default method.

    Several experts describe the samples in their own way: by principal components, by smooth
    functions on the neighbour graph, by radial functions. Each alternates between its opinion on
    every sample, formed without that sample, and what pairs and labels make of it by belief
    propagation, where any of them may be wrong. All learn again without some of the constraints, in
    turn; who predicts those is heard more, and the average is the answer. There is nothing to tune.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. ``"auto"`` takes the one that predicts the constraints best, with a
        preference for gaps of the spectrum, and at least as many as the cannot-links require.
    hard : bool, default=False
        Whether pairs of belief 1 and labels hold without exception. If they cannot,
        :class:`~linkwise.exceptions.ConflictError` says why. By default any of them may be found
        wrong, and contradictory ones are accepted.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()`` and, up to 20,000 samples, a finer graph
        beside it. With ``"precomputed"``, X is the graph, and experts on graphs alone are heard.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The answer does not depend on `n_jobs`.
    n_jobs : int, default=None
        Threads for independent experts; -1 for all.
    verbose : int, default=0
        Whether to print progress.

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
    bases_ : Bases
        How the samples are described. :class:`~linkwise.Prepared` data keep them for later fits.
    affinity_matrix_ : csr_array or ndarray of shape (n_samples, n_samples)
        The graph.

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
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    solve = staticmethod(auto)

    n_clusters: int | str = "auto"
    _: KW_ONLY
    hard: bool = False
    affinity: Affinity | str | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def _solve(
        self, prepared: Prepared, constraints: Constraints | None, warm: WarmStarts | None
    ) -> AutoResult:
        n = prepared.n_samples
        constraints = Constraints(n) if constraints is None else constraints
        bases = self._described(prepared, most_clusters(constraints, self.n_clusters, n))
        if bases.components is not None and not bases.components.scores.any():
            message = "All samples are equal: only constraints can tell them apart."
            warnings.warn(message, UserWarning, stacklevel=4)
        options = Options(self.n_clusters, self.hard, self.random_state, self.n_jobs, self.verbose)
        result = consult_experts(bases, constraints, options)
        assert result.report is not None
        self.bases_ = bases.for_clusters(result.report.n_clusters)
        return result

    def _described(self, prepared: Prepared, most_clusters: int) -> Bases:
        """Build the graph and the bases, unless prepared data hold them already."""
        self.affinity_matrix_, self.affinity_ = prepared.W, prepared.affinity_
        features = None if prepared.is_graph else prepared.X
        bases = prepared.attached(Bases)
        if bases is None or bases.n_clusters < most_clusters:
            fine = prepared.affinity is None
            bases = build_bases(features, self.affinity_matrix_, most_clusters, fine=fine)
            prepared.attach(bases)
        self._known = None if features is None else RowIndex(features)
        return bases

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each cluster for new samples.

        A copy of a training sample gets that one's probabilities, which constraints may have
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
        assert self.result_.panel is not None
        assert self.result_.probability is not None
        copies = np.full(X.shape[0], -1)
        if self._known is None:
            X = _similarities(X)
        else:
            X = self.bases_.in_form(X)
            copies = self._known.find(X)
        probability = np.empty((X.shape[0], self.result_.probability.shape[1]))
        probability[copies >= 0] = self.result_.probability[copies[copies >= 0]]
        with threadpool_limits(1):
            for block in _blocks(X.shape[0], np.flatnonzero(copies >= 0)):
                similar = X[block] if self.affinity_ is None else self.affinity_.extend(X[block])
                features = self.bases_.new(X[block], similar)
                probability[block] = self.result_.panel.probability(features)
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
