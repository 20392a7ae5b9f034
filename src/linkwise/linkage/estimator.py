"""Linkage: thousands of small clusters, their number found."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from linkwise._params import Interval, StrOptions
from linkwise._rows import RowIndex
from linkwise._threads import one_thread
from linkwise.constraints import Constraints
from linkwise.constraints.feasible import raise_too_few_groups
from linkwise.constraints.validation import as_pairs
from linkwise.graph.neighbors import NeighborSearch
from linkwise.linkage.logodds import cluster_sums
from linkwise.linkage.method import linkage
from linkwise.linkage.review import ReviewQueue, review_queue
from linkwise.methods._base import ConstrainedClusterer
from linkwise.search.soft import check_label_count

if TYPE_CHECKING:
    from linkwise._types import Floats, Ints
    from linkwise.constraints.conflict import Suspect
    from linkwise.linkage.method import LinkedResult


COMPUTED = ("tree_", "pair_probability_", "probability_")  # attributes, when first looked at


class Linkage(ConstrainedClusterer):
    """Clusters by the mean log-odds that their samples are one thing; finds their number.

    For thousands of small clusters: records of one person, photos of one face, recordings of one
    speaker. A two-covariance model gives the log-odds that two samples are of one cluster; its
    covariance within clusters is learned from its own clusters, in rounds. Clusters are merged by
    the mean over all their pairs, best first, which makes a tree. The tree is cut where it
    violates the fewest pairs and, without pairs, between the two kinds of neighbours there are.
    Pairs may be wrong: their error rate is estimated, and suspects are named.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means it is found. Give the number only if you know it.
    threshold : float, default=None
        Log-odds above which two clusters are merged. None means 0; more gives purer and smaller
        clusters, less gives larger ones. Not together with `n_clusters`. Raise it if different
        things were merged, lower it if one thing was split.
    hard : bool, default=False
        Whether pairs of belief 1 and labels hold without exception. If they cannot,
        :class:`~linkwise.exceptions.ConflictError` says why. By default any of them may be found
        wrong, and contradictory ones are accepted. Set it if you are certain of the pairs.
    neighbors : int, default=15
        Nearest neighbours of each sample that are looked at as candidates. Raise it if clusters
        have more than about 15 samples.
    n_components : int or "auto", default="auto"
        Dimensions of the coordinates. "auto": those of the data, at most 100 principal components;
        256 random projections of sparse rows. Lower it to save time on data with many features.
    n_rounds : int, default=3
        Rounds in which the metric is learned. Leave it, unless you measure.
    random_state : int, RandomState instance or None, default=None
        Seed of the random projection and of approximate neighbours. Dense data of up to 30,000
        samples need no random numbers. Give a number to get the same answer every time.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    n_clusters_ : int
        Number of clusters.
    pairs_ : ndarray of shape (n_pairs, 2)
        Candidate pairs.
    pair_probability_ : ndarray of shape (n_pairs,)
        Probability that the candidates are of one cluster.
    probability_ : ndarray of shape (n_samples,)
        Probability that a sample is where it belongs: that it and another sample of its cluster
        are one, on average; alone, that it and its nearest candidate are not.
    cut_ : float
        Mean log-odds of the model at which the tree is cut.
    error_rate_ : float or None
        Estimated share of wrong answers; None if there are none.
    suspects_ : tuple of Suspect
        All constraints, the one most likely wrong first: `kind`, `samples`, `row`, `probability`.
    tree_ : ndarray of shape (n_samples - 1, 4)
        The merges in the form of ``scipy.cluster.hierarchy``. The clusters are those after
        ``n_samples - n_clusters_`` merges.
    result_ : LinkedResult
        All of this, and the metric.
    embedding_ : ndarray of shape (n_samples, n_dimensions)
        Samples in the learned metric.
    n_features_in_ : int
        Number of features seen by `fit`.

    Notes
    -----
    The two-covariance model is that of N. Brümmer and E. de Villiers: The speaker partitioning
    problem, Odyssey 2010. Learning it from its own clusters, and the cut, are linkwise's.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints, Linkage
    >>> rng = np.random.RandomState(0)
    >>> y = np.repeat(np.arange(100), 3)
    >>> X = rng.normal(size=(100, 8))[y] + 0.05 * rng.normal(size=(300, 8))
    >>> Linkage().fit(X).n_clusters_
    100
    """

    family = "hierarchical"
    takes_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 2, None, closed="left"), None],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "n_rounds": [Interval(Integral, 1, None, closed="left")],
    }
    solve = staticmethod(linkage)

    n_clusters: int | None = None
    _: KW_ONLY
    threshold: float | None = None
    hard: bool = False
    neighbors: int = 15
    n_components: int | str = "auto"
    n_rounds: int = 3
    random_state: int | np.random.RandomState | None = None

    def predict(self, X: Any) -> Ints:
        """Assign new samples to the clusters found by `fit`, or to none.

        A new sample joins the cluster of highest mean log-odds among those of its neighbours. If
        that is below the cut, it belongs to none of them and gets -1; not if `n_clusters` was
        given. Copies of training samples get their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_new,)
        """
        X = self._new_samples(X, accept_sparse="csr")
        index = RowIndex(self._samples)
        X = index.in_form(X)
        copies = index.find(X)
        predicted = self.labels_[copies]
        new = np.flatnonzero(copies < 0)
        if new.size:
            with one_thread():
                predicted[new] = self._likeliest(X[new])
        return predicted

    def predict_proba(self, X: Any, Y: Any = None) -> Floats:
        """Return the probability that samples are one thing: per pair of rows, or with a cluster.

        No column for each cluster: there are thousands.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            Samples, new or not.
        Y : array-like or sparse matrix of shape (n_new, n_features), default=None
            Other samples: row by row, are the two one thing? None: the cluster that suits each
            sample most. `predict` gives it if the probability is above one half, or that of
            `threshold`.

        Returns
        -------
        ndarray of shape (n_new,)
        """
        found = self._fitted
        X = self._new_samples(X, accept_sparse="csr")
        with one_thread():
            if Y is None:
                odds = self._best(X)[1]
            else:
                Y = self._new_samples(Y, accept_sparse="csr")
                if X.shape[0] != Y.shape[0]:
                    raise ValueError(
                        f"X has {X.shape[0]} rows and Y has {Y.shape[0]}: they are compared row by "
                        "row. Give as many of each."
                    )
                odds = found.rule.prior + found.odds.rowwise(
                    *(found.odds.terms(found.coordinates.transform(side)) for side in (X, Y))
                )
        return np.asarray(expit(found.rule.slope * (odds - found.rule.cut)))

    def _likeliest(self, X: Any) -> Ints:
        """Return the clusters of highest mean log-odds, or -1."""
        found = self.result_
        clusters, odds = self._best(X)
        least = found.rule.cut + (self.threshold or 0.0) / found.rule.slope
        return np.where((odds > least) | (self.n_clusters is not None), clusters, -1)

    def _best(self, X: Any) -> tuple[Ints, Floats]:
        """Return the cluster of highest mean log-odds among those of neighbours, and these."""
        found = self.result_
        g, h = found.odds.terms(found.coordinates.transform(X))
        near = NeighborSearch(found.embedding).nearest(self.neighbors, query=g)[1]
        clusters = self.labels_[near]
        means, offset = self._cluster_means()
        odds = offset[clusters] - h[:, None]
        for at in range(clusters.shape[1]):  # one neighbour after the other: little memory
            odds[:, at] += np.einsum("ij,ij->i", g, means[clusters[:, at]])
        best = np.arange(len(odds)), odds.argmax(axis=1)
        return clusters[best], odds[best]

    def _cluster_means(self) -> tuple[Floats, Floats]:
        """Return the mean of `g` in each cluster, and the log-odds that are the cluster's alone."""
        found = self.result_
        size = np.bincount(self.labels_)
        g, h = found.odds.terms(found.coordinates.transform(self._samples))
        means = cluster_sums(g, self.labels_) / size[:, None]
        prior = found.rule.prior / (2 * size / (1 + size)) ** 0.25
        return means, found.rule.c + prior - np.bincount(self.labels_, h) / size

    def pair_probability(self, pairs: Any) -> Floats:
        """Return the probability that pairs of training samples are of one cluster.

        It is that of the clusters they were in when they were joined, with all that is said about
        them: above one half for pairs in one cluster.

        Parameters
        ----------
        pairs : array-like of shape (m, 2)
            Indices of samples.

        Returns
        -------
        ndarray of shape (m,)
        """
        check_is_fitted(self, "result_")
        checked = as_pairs(pairs, self.labels_.size, "pairs")
        return np.asarray(expit(self.result_.tree.join_odds(checked)))

    @cached_property
    def pair_probability_(self) -> Floats:
        """Probability that the candidate pairs are of one cluster."""
        return self.pair_probability(self.pairs_)

    @cached_property
    def probability_(self) -> Floats:
        """Probability that each sample is where it belongs."""
        tree, n_merges = self._fitted.tree, self._fitted.n_merges
        found = tree.mate_probability(n_merges)
        alone = np.isnan(found)
        nearest = np.zeros(found.size)
        np.maximum.at(nearest, self.pairs_.ravel(), np.repeat(self.pair_probability_, 2))
        return np.where(alone, 1 - nearest, found)

    @property
    def _fitted(self) -> LinkedResult:
        check_is_fitted(self, "result_")
        result: LinkedResult = self.result_
        return result

    def review(self, constraints: Constraints | None = None) -> ReviewQueue:
        """Return pairs of samples to ask a person about, the most useful first.

        At most one pair of two clusters, by ``p (1 - p) sqrt(mA mB)``: `p` is the probability that
        clusters of `mA` and `mB` samples are one.

        Parameters
        ----------
        constraints : Constraints, default=None
            What `fit` was given: those pairs are not asked again.

        Returns
        -------
        ReviewQueue
            `pairs`, an array of shape (m, 2), the `probability` that their clusters are one, and
            the `value` by which they are sorted.
        """
        known = Constraints(self.labels_.size) if constraints is None else constraints
        return review_queue(self._fitted, known)

    @cached_property
    def tree_(self) -> Floats:
        """The merges in the form of ``scipy.cluster.hierarchy``."""
        check_is_fitted(self, "result_")
        return self.result_.tree.to_scipy()

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        check_is_fitted(self, "result_")
        return int(self.labels_.max()) + 1

    @property
    def pairs_(self) -> Ints:
        """Candidate pairs."""
        check_is_fitted(self, "result_")
        return self.result_.pairs

    @property
    def cut_(self) -> float:
        """Mean log-odds of the model at which the tree is cut."""
        check_is_fitted(self, "result_")
        return self.result_.rule.cut

    @property
    def error_rate_(self) -> float | None:
        """Estimated share of wrong answers."""
        check_is_fitted(self, "result_")
        return self.result_.calibration.error_rate if self.result_.suspects else None

    @property
    def suspects_(self) -> tuple[Suspect, ...]:
        """All constraints, the one most likely wrong first."""
        check_is_fitted(self, "result_")
        return self.result_.suspects

    @property
    def accepts_contradictions(self) -> bool:
        """Whether constraints may be found wrong: then contradictory ones are accepted."""
        return not self.hard

    def _check_settings(self) -> None:
        if self.n_clusters is not None and self.threshold is not None:
            raise ValueError(
                f"n_clusters={self.n_clusters} and threshold={self.threshold:g} both say where to "
                "stop merging. Leave one of them out."
            )

    def _check_feasible(self, constraints: Constraints) -> None:
        if self.hard:
            constraints.check(constraints.n_samples)  # contradictions, whatever the number
        if self.n_clusters is None:
            return
        check_label_count(constraints, self.n_clusters)
        n_groups = int(constraints.components().max()) + 1
        if self.hard and n_groups < self.n_clusters:
            raise_too_few_groups(n_groups, self.n_clusters)

    def _keep_samples(self, X: Any) -> None:
        self._samples = X
        for name in COMPUTED:  # of an earlier fit
            self.__dict__.pop(name, None)
