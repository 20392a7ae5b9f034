"""ConstrainedClusterer: the base class of all estimators.

Its `fit` validates, builds the graph, and calls the method's function with what the function names.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from linkwise._docs import inherit_docs
from linkwise._inputs import check_foreign, checked_format, checked_numbers, missing_in
from linkwise._params import HasMethods, Interval, StrOptions, validates_parameters
from linkwise._quiet import kept_filters, user_level
from linkwise._threads import kept_limits
from linkwise.constraints import Constraints
from linkwise.constraints.feasible import raise_too_few_groups
from linkwise.constraints.labels import check_row_names, cluster_names, looks_partial, row_names
from linkwise.exceptions import ConstraintsIgnoredWarning
from linkwise.graph import Affinity, Prepared
from linkwise.graph.frames import checked_frame
from linkwise.graph.precomputed import warn_if_graph
from linkwise.methods._by_blocks import takes_dask_arrays
from linkwise.result import Result
from linkwise.search.bound import CutCertificate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from linkwise._types import Floats, Ints
    from linkwise.linalg.warm import WarmStarts


# Clusters up to which a method computes as many eigenvectors. 200 of 5,000 samples take 7 CPU s,
# 400 take 20, and so on with the square of their number.
MOST_EIGENVECTORS = 300
OTHER_COLUMNS = (
    "If they are columns of pandas.get_dummies, whose values the new samples lack, or in another "
    "order: predict(X.reindex(columns=model.feature_names_in_, fill_value=0))."
)


@dataclass_transform(eq_default=False)
class ConstrainedClusterer(ClusterMixin, BaseEstimator):
    """Base class of all methods.

    A subclass gives `solve`, a function of plain values that returns a
    :class:`~linkwise.Result`. The function names what it needs: ``X`` (the data), ``W`` (the
    graph), ``constraints``, ``warm`` (where solvers start), ``prepared`` (all that is set up once
    for the data), or a parameter of the estimator; it gets nothing else.

    The parameters of a method are the fields of its class, as in a dataclass: `n_clusters` first,
    then ``_: KW_ONLY``. What several methods share is described here once. The docstring of a
    subclass names such a parameter without a description and gets it from here (see
    :func:`inherit_docs`), as well as the attributes and the allowed values.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters. Set it to the number that you expect.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()``. Give an :class:`~linkwise.Affinity` for
        other neighbours or weights, and ``"precomputed"`` if X is a graph already.
    hard : bool, default=False
        Whether certain pairs and labels hold without exception: k-means then chooses among the
        partitions that satisfy them, and raises ConflictError if there is none. Set it if you are
        certain of the pairs.
    random_state : int, RandomState instance or None, default=None
        Seed of the eigensolver's start and of k-means. Give a number to get the same answer every
        time.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    classes_ : ndarray of shape (n_clusters,)
        Name of each cluster, if labels were given: the label that most of its labelled samples
        have (``"B (2)"`` if it names another cluster already), and a number of its own where there
        is none. ``classes_[labels_]`` names the samples.
    result_ : Result
        Labels, embedding, eigenvalues, residuals and objective, where the method has them. Of
        methods that minimise a normalised cut also `bound`, below which no partition with the
        certain constraints gets, and `gap`; they are computed when they are asked for.
    embedding_ : ndarray of shape (n_samples, n_dims)
        Coordinates that were partitioned, where the method has them.
    n_iter_ : int
        Iterations, where the method counts them.
    affinity_matrix_ : csr_array or ndarray of shape (n_samples, n_samples)
        The graph, before constraints change it.
    affinity_ : Affinity or None
        The fitted graph builder; None for a precomputed graph.
    n_features_in_ : int
        Number of features seen by `fit`.
    """

    solve: ClassVar[Callable[..., Result]]
    labels_: Any

    # Facts about the method, for tables and documentation.
    paper: ClassVar[str | None] = None  # authors and year; the whole reference is in the docstring
    family: ClassVar[str]  # methods that use constraints in the same way
    takes: ClassVar[tuple[str, ...]] = ("pairs", "labels")  # kinds of constraints it uses
    enforcement: ClassVar[str] = "soft"  # how far constraints hold, in a word or two
    minimizes_cut: ClassVar[bool] = False  # a normalised cut of the graph: it has a bound
    max_samples: ClassVar[int | None] = None  # None: it has no limit of its own
    max_clusters: ClassVar[int | None] = None
    is_distributed: ClassVar[bool] = False  # it also takes linkwise.distributed.Prepared
    takes_sparse: ClassVar[bool] = False  # a method on features: whether these may be sparse

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 2, None, closed="left")],
        "affinity": [StrOptions({"precomputed"}), HasMethods(["fit_transform", "extend"]), None],
        "hard": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init_subclass__(cls, **settings: Any) -> None:
        """Make `__init__` from the fields; inherit the descriptions of shared parameters."""
        super().__init_subclass__(**settings)
        takes_dask_arrays(cls)
        is_method = "n_clusters" in vars(cls).get("__annotations__", {})  # not a base of methods
        if is_method:
            dataclass(cls, eq=False, repr=False, match_args=False)
        inherit_docs(cls)
        if is_method:
            allowed: dict[str, list[Any]] = {}
            for base in reversed(cls.__mro__):
                allowed |= vars(base).get("_parameter_constraints", {})
            names = signature(cls).parameters
            cls._parameter_constraints = {name: allowed[name] for name in names if name in allowed}

    # With nested validation: the affinity is the user's object, and may be wrong as well.
    @validates_parameters(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: object = None, *, constraints: Constraints | None = None
    ) -> ConstrainedClusterer:
        """Cluster `X` under the constraints.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; or, with ``affinity="precomputed"``, the symmetric non-negative graph of
            shape (n_samples, n_samples). Self-similarities on its diagonal are ignored. A
            :class:`~linkwise.Prepared` brings its graph, and makes the next fit cheaper.
        y : Ignored
            Never supervision: scoring tools pass the true labels here. What is known of the
            labels goes through `constraints`, see :meth:`linkwise.Constraints.from_labels`; there
            is a warning if `y` looks like partial labels and no constraints are given.
        constraints : Constraints, default=None
            What is known about pairs or labels of the samples.

        Returns
        -------
        self
        """
        self._check_settings()
        with kept_filters(), kept_limits():
            prepared = self._checked(X, y, constraints)
            if constraints is not None:
                self._check_feasible(constraints)
            # What a single fit leaves behind is of no use to anyone, but takes memory.
            warm = prepared.warm if prepared is X else None
            result = self._solve(prepared, constraints, warm)
        name = getattr(getattr(self, "solve", None), "__name__", type(self).__name__)
        _check_result(result, prepared.n_samples, name)
        if self._has_bound() and not prepared.is_distributed:
            result = self._certified(result, prepared, constraints)
        self._keep_result(result, constraints)
        if prepared.is_distributed:
            self._keep_distributed(prepared)
        else:
            self._keep_samples(prepared.X)
        return self

    def _keep_distributed(self, prepared: Any) -> None:
        """Make the labels a Dask array; keep some samples that stand for all in `predict`."""
        some = prepared.representatives
        self._kept_memberships = self._memberships(some)
        self.labels_ = prepared.chunked(self.labels_)

    def fit_predict(self, X: Any, y: object = None, **params: Any) -> Ints:
        """Cluster `X` under the constraints and return `labels_`; parameters as in `fit`.

        Parameters
        ----------
        X : array-like, sparse matrix or Prepared
            As in `fit`.
        y : None, default=None
            Not used.
        **params : dict
            ``constraints=``, as in `fit`.
        """
        labels: Ints = self.fit(X, y, **params).labels_  # unlike scikit-learn's, `y` is looked at
        return labels

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of the graph as ``affinity__neighbors=5``.

        Parameters
        ----------
        **params : dict
            Parameters of the method, or of its `affinity`; None is then the default one.

        Returns
        -------
        self
        """
        of_graph = any(name.startswith("affinity__") for name in params)
        if of_graph and "affinity" not in params and getattr(self, "affinity", "") is None:
            params = {"affinity": Affinity(), **params}
        return super().set_params(**params)

    # --- the steps of `fit`; a method may replace them

    def _check_settings(self) -> None:
        """Raise ValueError if valid parameters do not go together."""

    def _checked(self, X: Any, y: object, constraints: Any) -> Prepared:
        """Return the prepared data; raise an error unless data and constraints can be used."""
        if y is not None:
            _check_ignored(y, constraints, step=type(self).__name__.lower())
        prepared = Prepared.of(X, getattr(self, "affinity", None))
        is_table = getattr(self, "affinity", "") is None and prepared is not X
        if is_table and prepared.X.shape[0] == prepared.X.shape[1]:
            warn_if_graph(prepared.X, type(self).__name__)
        self._check_samples(prepared)
        if constraints is None:
            return prepared
        if not isinstance(constraints, Constraints):
            raise TypeError(
                f"constraints must be a linkwise.Constraints, got {type(constraints).__name__}. "
                "Build one with Constraints(n_samples, must_link=[(0, 1)], cannot_link=[(1, 2)]), "
                "Constraints.from_labels(partial_labels), or Constraints.from_frame(pairs, "
                "n_samples=len(X)) of a table with the columns i, j, link."
            )
        if constraints.row_names is not None:
            check_row_names(constraints.row_names, row_names(X))
        if constraints.n_samples != prepared.n_samples:
            raise ValueError(
                f"The constraints are about {constraints.n_samples} samples, but X has "
                f"{prepared.n_samples}. Use constraints.restrict(indices) for a subset of X."
            )
        return prepared

    def _check_samples(self, prepared: Prepared) -> None:
        """Raise an error if the data do not suit the method; note their features."""
        X = prepared.X
        if prepared.is_distributed and not self.is_distributed:
            self._refuse_distributed()
        if self.needs_features and (prepared.is_graph or issparse(X) > self.takes_sparse):
            kind = ValueError if prepared.is_graph else TypeError  # as scikit-learn does
            features = "features" if self.takes_sparse else "dense features"
            raise kind(
                f"{type(self).__name__} needs {features}, but the data are "
                f"{'a graph' if prepared.is_graph else 'sparse'}. Give the array of features."
            )
        if isinstance(self.n_clusters, Integral) and self.n_clusters > X.shape[0]:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than the {X.shape[0]} samples of X. "
                f"Choose at most {X.shape[0]} clusters."
            )
        many = self.max_clusters
        if many is not None and not isinstance(self.n_clusters, str) and self.n_clusters > many:
            self._refuse_many(self.n_clusters)
        self.n_features_in_ = X.shape[1]
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if prepared.feature_names is not None:
            self.feature_names_in_ = prepared.feature_names

    def _refuse_distributed(self) -> None:
        """Raise TypeError: the method is for one machine."""
        raise TypeError(
            f"{type(self).__name__} is for one machine, and the data are on Dask. Take NCut, "
            "SpectralLearning, CSC, SignedCSC, FastGE, E2CP, GFHF, LLGC, Poisson or Auto; or fit "
            "it to a part of the samples, as an array."
        )

    def _refuse_many(self, n_clusters: int) -> None:
        """Raise ValueError: the method would take too long for so many clusters."""
        # Not imported: it is a layer above.
        has_linkage = "Linkage" in dir(sys.modules["linkwise"])
        other = "Linkage" if has_linkage else f"CCL({n_clusters})"
        limit = self.max_clusters
        raise ValueError(
            f"{n_clusters} clusters are more than the {limit} that {type(self).__name__} is "
            "made for: its time grows with the square of their number. For many small clusters "
            f"take linkwise.{other}, or average linkage; otherwise choose at most {limit}."
        )

    def _check_feasible(self, constraints: Constraints) -> None:
        """Raise ConflictError if certain constraints cannot all hold in non-empty clusters."""
        constraints.check(self.n_clusters)
        n_groups = int(constraints.components().max()) + 1
        if n_groups < self.n_clusters:
            raise_too_few_groups(n_groups, self.n_clusters)

    def _solve(
        self, prepared: Prepared, constraints: Constraints | None, warm: WarmStarts | None
    ) -> Result:
        """Call the method's function with what it names."""
        solve = self._solver()
        needed = signature(solve).parameters
        given: dict[str, Any] = {"X": prepared.X, "warm": warm, "prepared": prepared}
        given.update(self.get_params(deep=False))
        if "constraints" in needed:
            none = constraints is None
            given["constraints"] = Constraints(prepared.n_samples) if none else constraints
        elif constraints is not None and not constraints.is_empty:
            message = (
                f"{type(self).__name__} clusters without constraints and ignores the ones given. "
                "Take another method to use them, for example linkwise.SignedCSC."
            )
            warnings.warn(message, ConstraintsIgnoredWarning, stacklevel=user_level())
        if "W" in needed:
            given["W"] = self.affinity_matrix_ = prepared.W
            self.affinity_ = prepared.affinity_
        return solve(**{name: given[name] for name in needed})

    def _has_bound(self) -> bool:
        """Whether, with these parameters, a bound of the normalised cut belongs to the answer."""
        return self.minimizes_cut

    def _certified(
        self, result: Result, prepared: Prepared, constraints: Constraints | None
    ) -> Result:
        """Return the result with what its bound is computed from, when it is asked for."""
        ignored = constraints is None or "constraints" not in self._arguments
        given = constraints
        if given is None or ignored:
            given = Constraints(prepared.n_samples)
        values, residuals = result.eigenvalues, result.residuals
        # Without constraints the eigenvalues are those of the bound.
        known = None if not ignored or values is None or residuals is None else (values, residuals)
        certificate = CutCertificate(prepared.W, given, result.labels, known)
        return replace(result, certificate=certificate)

    def _solver(self) -> Callable[..., Result]:
        """Return the function that `fit` calls; a method may choose it by its parameters."""
        return self.solve

    def _keep_result(self, result: Any, constraints: Constraints | None) -> None:
        """Store what was found; give the clusters the names of labels, if there are any."""
        self.result_: Any = result  # or a kind of Result
        self.labels_ = result.labels  # a Dask array, if the data are one
        for name in ("classes_", "_kept_memberships"):  # of an earlier fit
            self.__dict__.pop(name, None)
        known = None if constraints is None else constraints.known_labels
        if known is not None:
            asked = self.n_clusters if isinstance(self.n_clusters, Integral) else 0
            n_clusters = max(int(self.labels_.max()) + 1, getattr(self, "n_clusters_", int(asked)))
            self.classes_ = cluster_names(self.labels_, known, n_clusters)
        if result.embedding is not None:
            self.embedding_ = result.embedding
        if result.n_iter is not None:
            self.n_iter_ = result.n_iter

    @property
    def _arguments(self) -> Collection[str]:
        """What the method works with: ``X``, ``W``, ``constraints``, parameters."""
        return signature(self._solver()).parameters.keys()

    def _keep_samples(self, X: Any) -> None:
        """Keep what a method's `predict` needs of the training data."""

    # --- new samples

    def predict(self, X: Any) -> Ints:
        """Assign new samples to the clusters found by `fit`.

        A new sample joins the cluster to which it is most similar: the affinities to its
        neighbours among the training samples are added up cluster by cluster, and the largest sum
        wins. (In label propagation, each neighbour's label distribution is weighted by them.) A
        sample that coincides with training samples is decided by these alone, so training data
        get their labels back (unless duplicates of a sample are in several clusters).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_new, n_features)
            New samples; with ``affinity="precomputed"`` their affinities to the training samples,
            of shape (n_new, n_samples).

        Returns
        -------
        ndarray of shape (n_new,)
        """
        X = self._new_samples(X, accept_sparse="csr")
        if not hasattr(self, "affinity_"):
            raise NotImplementedError(
                "A method without a graph writes its own predict (see CONTRIBUTING.md)."
            )
        similarity = _similarities(X) if self.affinity_ is None else self.affinity_.extend(X)
        kept = getattr(self, "_kept_memberships", None)
        votes: Floats = np.asarray(similarity @ (self._memberships() if kept is None else kept))
        return votes.argmax(axis=1)

    def _memberships(self, samples: Any = slice(None)) -> Floats:
        """Return how much each training sample, or some of them, belongs to each cluster."""
        return np.eye(self.labels_.max() + 1)[self.labels_[samples]]

    def _new_samples(self, X: Any, *, accept_sparse: str | bool = False) -> Any:
        """Check samples to predict."""
        check_is_fitted(self)
        check_foreign(X)
        X = checked_frame(X)
        if isinstance(X, Prepared):
            raise TypeError("New samples are given as an array; Prepared is for fit. Pass its .X.")
        X = checked_format(X)
        try:
            with kept_filters(), checked_numbers():
                return validate_data(
                    self, X, accept_sparse=accept_sparse, dtype=np.float64, reset=False
                )
        except (ValueError, TypeError) as error:
            if str(error).startswith("Input X contains") or "NAType" in str(error):
                raise ValueError(missing_in(X)) from error
            if str(error).startswith("The feature names should match"):
                raise ValueError(f"{str(error).rstrip()}\n{OTHER_COLUMNS}") from error
            raise

    @property
    def accepts_contradictions(self) -> bool:
        """Whether, with these parameters, the method accepts constraints that cannot all hold."""
        return False

    @property
    def needs_features(self) -> bool:
        """Whether, with these parameters, the method needs the data: a graph is not enough."""
        return "X" in self._arguments

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(getattr(self, "affinity", None), str)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse or not self.needs_features
        tags.input_tags.pairwise = self._is_precomputed
        return tags


takes_dask_arrays(ConstrainedClusterer)


def _check_ignored(y: object, constraints: Constraints | None, *, step: str) -> None:
    """Warn if what is known was given as `y`, which no method looks at.

    `step` is what scikit-learn calls the method in a pipeline.
    """
    if isinstance(y, Constraints):
        message = "Constraints were given as y, which is ignored. Pass them as constraints=..."
        raise TypeError(message)
    if constraints is not None or not looks_partial(y):
        return
    message = (
        "y looks like partial labels, but fit ignores y. Pass what is known as "
        "fit(X, constraints=Constraints.from_labels(y)), in a pipeline with the name of the step "
        f"before it, {step}__constraints=; or constraints=Constraints(len(y)) if these are the "
        "true labels, and nothing is to be known."
    )
    warnings.warn(message, ConstraintsIgnoredWarning, stacklevel=user_level())


def _check_result(result: Any, n_samples: int, name: str) -> None:
    """Raise TypeError or ValueError if a method's function did not return what it should."""
    if not isinstance(result, Result):
        raise TypeError(
            f"{name} returned {type(result).__name__}, but the function of a method returns a "
            "Result: end it with `return Result(labels)`."
        )
    labels = result.labels
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu":
        kind = getattr(labels, "dtype", type(labels).__name__)
        raise TypeError(
            f"{name} returned Result.labels of type {kind}, but they are an integer array."
        )
    if labels.shape != (n_samples,) or labels.min() < 0:
        raise ValueError(
            f"{name} returned Result.labels of shape {labels.shape} from {labels.min(initial=0)} "
            f"up, but there is one cluster for each of the {n_samples} samples, from 0 up."
        )


def _similarities(X: Any) -> Any:
    """Check precomputed affinities of new samples to the training samples."""
    if X.min() < 0:
        message = f"Affinities must not be negative, but the smallest one given is {X.min():g}."
        raise ValueError(message)
    without = np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() == 0)
    if without.size:
        raise ValueError(
            f"New sample {without[0]} has no affinity to any training sample, so no cluster "
            f"can be predicted ({without.size} such row(s)). Leave it out, or link it."
        )
    return X
